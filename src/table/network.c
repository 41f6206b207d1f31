/*
 * Services, endpoint slices, ingresses.
 */
#include "table/rules.h"

#include <inttypes.h>

#define MAX_SHOWN 3

/* --- services --- */

static void append_addresses(struct kinf__row *row, const char *path)
{
    for (struct kinf__items address = kinf__field_items(row->object, path);
         kinf__items_next(&address);) {
        kinf__row_comma(row);
        if (address.value.type == KINF__JSON_STRING)
            kinf__row_append(row, address.value);
        else
            kinf__row_append_field(row, address.value,
                                   kinf__field_has_text(address.value, "ip") ? "ip" : "hostname");
    }
}

static void cell_external_ip(struct kinf__row *row)
{
    if (kinf__field_is(row->object, "spec.type", "ExternalName")) {
        kinf__cell_string(row, "spec.externalName", "");
    } else if (kinf__field_is(row->object, "spec.type", "LoadBalancer")) {
        append_addresses(row, "status.loadBalancer.ingress");
        append_addresses(row, "spec.externalIPs");
        kinf__cell_text(row, "<pending>");
    } else {
        append_addresses(row, "spec.externalIPs");
        kinf__cell_text(row, "<none>");
    }
}

static void cell_service_ports(struct kinf__row *row)
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

void kinf__table_service(struct kinf__row *row)
{
    kinf__cell_string(row, "spec.type", "");
    kinf__cell_string(row, "spec.clusterIP", "<none>");
    cell_external_ip(row);
    cell_service_ports(row);
    kinf__cell_age(row);
    kinf__row_append_labels(row, row->object, "spec.selector");
    kinf__cell_text(row, "<none>");
}

/* --- endpoint slices --- */

static void end_shown(struct kinf__row *row, size_t n, const char *otherwise)
{
    if (n > MAX_SHOWN)
        kinf__row_printf(row, " + %zu more...", n - MAX_SHOWN);
    kinf__cell_text(row, otherwise);
}

static void cell_slice_ports(struct kinf__row *row)
{
    struct kinf__json_value number;
    size_t n = 0;

    for (struct kinf__items port = kinf__field_items(row->object, "ports");
         kinf__items_next(&port);) {
        if (!kinf__field(port.value, "port", &number))
            continue;
        if (n++ < MAX_SHOWN) {
            kinf__row_comma(row);
            kinf__row_append(row, number);
        }
    }
    end_shown(row, n, "<unset>");
}

static void cell_slice_endpoints(struct kinf__row *row)
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

void kinf__table_endpointslice(struct kinf__row *row)
{
    kinf__cell_string(row, "addressType", "");
    cell_slice_ports(row);
    cell_slice_endpoints(row);
    kinf__cell_age(row);
}

/* --- ingresses --- */

static void cell_hosts(struct kinf__row *row)
{
    size_t n = 0;

    for (struct kinf__items rule = kinf__field_items(row->object, "spec.rules");
         kinf__items_next(&rule);) {
        if (!kinf__field_has_text(rule.value, "host"))
            continue;
        if (n++ < MAX_SHOWN) {
            kinf__row_comma(row);
            kinf__row_append_field(row, rule.value, "host");
        }
    }
    end_shown(row, n, "*");
}

void kinf__table_ingress(struct kinf__row *row)
{
    kinf__cell_string(row, "spec.ingressClassName", "<none>");
    cell_hosts(row);
    append_addresses(row, "status.loadBalancer.ingress");
    kinf__cell_text(row, "");
    kinf__row_printf(row, "%s", kinf__field_count(row->object, "spec.tls") != 0 ? "80, 443" : "80");
    kinf__cell_text(row, "");
    kinf__cell_age(row);
}
