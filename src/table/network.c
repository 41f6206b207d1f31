/*
 * Services, endpoint slices, ingresses.
 */
#include "table/rules.h"

#include <inttypes.h>

#define MAX_SHOWN 3

/* --- services --- */

static void append_addresses(struct kinf__row *row, const char *path)
{
    struct kinf__json_iter iter;
    struct kinf__json_value address;
    struct kinf_str key;

    kinf__field_each(&iter, row->object, path);
    while (kinf__field_next(&iter, &key, &address)) {
        kinf__row_comma(row);
        if (address.type == KINF__JSON_STRING)
            kinf__row_append(row, address);
        else
            kinf__row_append_field(row, address,
                                   kinf__field_has_text(address, "ip") ? "ip" : "hostname");
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
    struct kinf__json_iter iter;
    struct kinf__json_value port;
    struct kinf_str key;

    kinf__field_each(&iter, row->object, "spec.ports");
    while (kinf__field_next(&iter, &key, &port)) {
        int64_t node_port = kinf__field_int(port, "nodePort", 0);

        kinf__row_comma(row);
        kinf__row_append_field(row, port, "port");
        if (node_port > 0)
            kinf__row_printf(row, ":%" PRId64, node_port);
        kinf__row_printf(row, "/");
        kinf__row_append_field(row, port, "protocol");
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
    struct kinf__json_iter iter;
    struct kinf__json_value port, number;
    struct kinf_str key;
    size_t n = 0;

    kinf__field_each(&iter, row->object, "ports");
    while (kinf__field_next(&iter, &key, &port)) {
        if (!kinf__field(port, "port", &number))
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
    struct kinf__json_iter iter;
    struct kinf__json_value endpoint;
    struct kinf_str key;
    size_t n = 0;

    kinf__field_each(&iter, row->object, "endpoints");
    while (kinf__field_next(&iter, &key, &endpoint)) {
        struct kinf__json_iter addresses;
        struct kinf__json_value address;

        kinf__field_each(&addresses, endpoint, "addresses");
        while (kinf__field_next(&addresses, &key, &address)) {
            if (n++ < MAX_SHOWN) {
                kinf__row_comma(row);
                kinf__row_append(row, address);
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
    struct kinf__json_iter iter;
    struct kinf__json_value rule;
    struct kinf_str key;
    size_t n = 0;

    kinf__field_each(&iter, row->object, "spec.rules");
    while (kinf__field_next(&iter, &key, &rule)) {
        if (!kinf__field_has_text(rule, "host"))
            continue;
        if (n++ < MAX_SHOWN) {
            kinf__row_comma(row);
            kinf__row_append_field(row, rule, "host");
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
