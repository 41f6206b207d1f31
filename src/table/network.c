/*
 * Services, endpoints, ingresses.
 */
#include "table/rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SHOWN 3

/* --- services --- */

static struct kinf_str address_of(struct kinf__json_value ingress)
{
    struct kinf__json_value address;

    if (!kinf__field(ingress, kinf__field_has_text(ingress, "ip") ? "ip" : "hostname", &address) ||
        address.raw.len <= 2)
        return KINF_STR("");
    return (struct kinf_str){ address.raw.bytes + 1, address.raw.len - 2 };
}

/* Of a load balancer. */
static void append_addresses(struct kinf__row *row)
{
    static const char path[] = "status.loadBalancer.ingress";
    size_t n = 0, size = kinf__field_count(row->object, path);
    KINF__AUTO_FREE struct kinf_str *addresses = calloc(size + 1, sizeof *addresses);

    if (addresses == NULL) {
        row->is_out_of_memory = true;
        return;
    }
    for (struct kinf__items item = kinf__field_items(row->object, path); kinf__items_next(&item);) {
        addresses[n] = address_of(item.value);
        n += addresses[n].len != 0;
    }
    kinf__row_append_set(row, addresses, n);
}

void kinf__cell_external_ip(struct kinf__row *row)
{
    bool is_balanced = kinf__field_is(row->object, "spec.type", "LoadBalancer");

    if (kinf__field_is(row->object, "spec.type", "ExternalName")) {
        kinf__cell_string(row, "spec.externalName", "");
        return;
    }
    if (is_balanced)
        append_addresses(row);
    kinf__row_append_each(row, row->object, "spec.externalIPs", NULL);
    kinf__cell_text(row, is_balanced ? "<pending>" : "<none>");
}

void kinf__cell_service_ports(struct kinf__row *row)
{
    for (struct kinf__items port = kinf__field_items(row->object, "spec.ports");
         kinf__items_next(&port);) {
        int64_t node_port = kinf__field_int(port.value, "nodePort", 0);

        kinf__row_comma(row);
        kinf__row_append_field(row, port.value, "port");
        if (node_port > 0)
            kinf__row_printf(row, ":%" PRId64, node_port);
        kinf__row_printf(row, "/");
        kinf__row_append_field(row, port.value, "protocol");
    }
    kinf__cell_text(row, "<none>");
}

/* --- endpoints --- */

static void end_shown(struct kinf__row *row, size_t n, const char *otherwise)
{
    if (n > MAX_SHOWN)
        kinf__row_printf(row, " + %zu more...", n - MAX_SHOWN);
    kinf__cell_text(row, otherwise);
}

/* "[::1]:80"; without a port the address alone. */
static void append_endpoint(struct kinf__row *row, struct kinf__json_value address, int64_t port)
{
    struct kinf__json_value ip;
    bool is_v6 = port >= 0 && kinf__field(address, "ip", &ip) &&
                 memchr(ip.raw.bytes, ':', ip.raw.len) != NULL;

    kinf__row_comma(row);
    kinf__row_printf(row, "%s", is_v6 ? "[" : "");
    kinf__row_append_field(row, address, "ip");
    kinf__row_printf(row, "%s", is_v6 ? "]" : "");
    if (port >= 0)
        kinf__row_printf(row, ":%" PRId64, port);
}

/* Of one port, which is negative if there is none. Returns how many are told by now. */
static size_t append_subset(struct kinf__row *row, struct kinf__json_value subset, int64_t port,
                            size_t n)
{
    for (struct kinf__items address = kinf__field_items(subset, "addresses");
         kinf__items_next(&address);) {
        if (n++ < MAX_SHOWN)
            append_endpoint(row, address.value, port);
    }
    return n;
}

void kinf__cell_endpoints(struct kinf__row *row)
{
    struct kinf__items subset = kinf__field_items(row->object, "subsets");
    const char *otherwise = "<none>";
    size_t n = 0;

    for (; kinf__items_next(&subset); otherwise = "") {
        struct kinf__items port = kinf__field_items(subset.value, "ports");

        if (kinf__field_count(subset.value, "ports") == 0)
            n = append_subset(row, subset.value, -1, n);
        while (kinf__items_next(&port))
            n = append_subset(row, subset.value, kinf__field_int(port.value, "port", 0), n);
    }
    end_shown(row, n, otherwise);
}

void kinf__cell_slice_ports(struct kinf__row *row)
{
    struct kinf__json_value shown;
    size_t n = 0;

    for (struct kinf__items port = kinf__field_items(row->object, "ports");
         kinf__items_next(&port);) {
        if (n++ >= MAX_SHOWN)
            continue;
        kinf__row_printf(row, "%s", n > 1 ? "," : "");
        if (kinf__field(port.value, "port", &shown) || kinf__field(port.value, "name", &shown))
            kinf__row_append(row, shown);
        else
            kinf__row_printf(row, "*");
    }
    end_shown(row, n, "<unset>");
}

void kinf__cell_slice_endpoints(struct kinf__row *row)
{
    size_t n = 0;

    for (struct kinf__items endpoint = kinf__field_items(row->object, "endpoints");
         kinf__items_next(&endpoint);) {
        for (struct kinf__items address = kinf__field_items(endpoint.value, "addresses");
             kinf__items_next(&address);) {
            if (n++ < MAX_SHOWN) {
                kinf__row_comma(row);
                kinf__row_append(row, address.value);
            }
        }
    }
    end_shown(row, n, "<unset>");
}

/* --- ingresses --- */

/* Who has no host is not told, but counted with the rest. */
void kinf__cell_hosts(struct kinf__row *row)
{
    size_t n = 0, n_rules = 0, n_more = 0;

    for (struct kinf__items rule = kinf__field_items(row->object, "spec.rules");
         kinf__items_next(&rule); n_rules++) {
        n_more += n == MAX_SHOWN;
        if (n == MAX_SHOWN || !kinf__field_has_text(rule.value, "host"))
            continue;
        kinf__row_comma(row);
        kinf__row_append_field(row, rule.value, "host");
        n++;
    }
    end_shown(row, n_more != 0 ? n_rules : 0, "*");
}

void kinf__cell_ingress_address(struct kinf__row *row)
{
    append_addresses(row);
    kinf__cell_text(row, "");
}

void kinf__cell_ingress_ports(struct kinf__row *row)
{
    kinf__row_printf(row, "%s", kinf__field_count(row->object, "spec.tls") != 0 ? "80, 443" : "80");
    kinf__cell_text(row, "");
}

void kinf__cell_class_parameters(struct kinf__row *row)
{
    kinf__row_append_field(row, row->object, "spec.parameters.kind");
    if (kinf__field_has_text(row->object, "spec.parameters.apiGroup"))
        kinf__row_printf(row, ".");
    kinf__row_append_field(row, row->object, "spec.parameters.apiGroup");
    if (row->text.len != 0)
        kinf__row_printf(row, "/");
    kinf__row_append_field(row, row->object, "spec.parameters.name");
    kinf__cell_text(row, "<none>");
}

void kinf__cell_parent(struct kinf__row *row)
{
    kinf__row_append_field(row, row->object, "spec.parentRef.resource");
    if (kinf__field_has_text(row->object, "spec.parentRef.group"))
        kinf__row_printf(row, ".");
    kinf__row_append_field(row, row->object, "spec.parentRef.group");
    kinf__row_lower(row);
    if (kinf__field_has_text(row->object, "spec.parentRef.namespace"))
        kinf__row_printf(row, "/");
    kinf__row_append_field(row, row->object, "spec.parentRef.namespace");
    if (kinf__field_has_text(row->object, "spec.parentRef.name"))
        kinf__row_printf(row, "/");
    kinf__row_append_field(row, row->object, "spec.parentRef.name");
    kinf__cell_text(row, "<none>");
}
