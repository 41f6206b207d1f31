/*
 * Services get an address, and node ports; both are kept, and given back with the service: what is
 * in use is what the services there are have. And Ingresses. Neighbours: kinds.c.
 */
#include "apiserver/kinds_priv.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/node_index.h"

#define PORT_RANGE "must be between 1 and 65535, inclusive"

/* 10.0.0.0/16, of which the first is the API's. */
#define ADDRESS_BASE  0x0a000000U
#define N_ADDRESSES   65534U
#define NODE_PORT_MIN 30000
#define N_NODE_PORTS  2768U

static const char *type_of(const struct cJSON *object)
{
    const char *type = kinf__doc_text(object, "spec", "type", NULL);

    return *type != '\0' ? type : "ClusterIP";
}

static bool is_type(const struct cJSON *object, const char *type)
{
    return strcmp(type_of(object), type) == 0;
}

static bool needs_address(const struct cJSON *object)
{
    return !is_type(object, "ExternalName");
}

static bool needs_node_ports(const struct cJSON *object)
{
    return is_type(object, "NodePort") ||
           (is_type(object, "LoadBalancer") &&
            !cJSON_IsFalse(kinf__doc_find(object, "spec", "allocateLoadBalancerNodePorts", NULL)));
}

static bool is_headless(const struct cJSON *object)
{
    return strcmp(kinf__doc_text(object, "spec", "clusterIP", NULL), "None") == 0;
}

#define PORT_KEY_SIZE 64

/* What tells ports apart: "80/TCP". */
static const char *port_key(const struct cJSON *port, char key[PORT_KEY_SIZE])
{
    snprintf(key, PORT_KEY_SIZE, "%lld/%.32s", (long long)kinf__doc_integer(port, "port", 0),
             kinf__doc_text(port, "protocol", NULL));
    return key;
}

static int index_ports(struct kinf__node_index *index, const struct cJSON *object)
{
    char key[PORT_KEY_SIZE];
    struct cJSON *port;

    cJSON_ArrayForEach(port, kinf__doc_find(object, "spec", "ports", NULL))
    {
        if (kinf__node_index_find(index, port_key(port, key)) == NULL &&
            kinf__node_index_add(index, key, port, 0) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* --- what is in use --- */

struct used {
    unsigned char addresses[N_ADDRESSES / 8 + 1]; /* a bit for each */
    unsigned char node_ports[N_NODE_PORTS / 8 + 1];
};

static void set_bit(unsigned char *bits, size_t i)
{
    bits[i / 8] |= (unsigned char)(1U << i % 8);
}

static bool has_bit(const unsigned char *bits, size_t i)
{
    return (bits[i / 8] >> i % 8 & 1) != 0;
}

/* The number of an address in the range, from 1; 0: it is none of it. */
static unsigned address_number(const char *text)
{
    struct in_addr address;
    uint32_t offset;

    if (inet_pton(AF_INET, text, &address) != 1)
        return 0;
    offset = ntohl(address.s_addr) - ADDRESS_BASE;
    return offset <= N_ADDRESSES ? offset : 0;
}

static int mark_node_port(struct kinf_str json, void *ctx)
{
    struct used *used = ctx;
    char text[16];
    long port;

    snprintf(text, sizeof text, "%.*s", (int)(json.len < sizeof text ? json.len : 0), json.bytes);
    port = strtol(text, NULL, 10) - NODE_PORT_MIN;

    if (port >= 0 && port < (long)N_NODE_PORTS)
        set_bit(used->node_ports, (size_t)port);
    return 0;
}

static int mark(const struct kinf_object *service, const struct kinf_path *node_ports,
                struct used *used)
{
    char address[64];
    int failed = kinf_object_get_string(service, "spec.clusterIP", address, sizeof address);

    if (failed == 0 && address_number(address) != 0)
        set_bit(used->addresses, address_number(address) - 1);
    if (failed == KINF_ERR_NO_MEMORY)
        return failed;
    return kinf_object_each(service, node_ports, mark_node_port, used);
}

static int find_used(const struct kinf__write *write, struct used *used)
{
    struct kinf_snapshot *snapshot;
    const struct kinf_object *service;
    struct kinf_path *node_ports;
    struct kinf_cursor cursor;
    int failed = kinf_path_parse("spec.ports[*].nodePort", &node_ports, NULL);

    memset(used, 0, sizeof *used);
    if (failed < 0)
        return KINF_ERR_NO_MEMORY;
    snapshot = kinf__store_snapshot(write->resource);
    kinf_cursor_all(&cursor, snapshot);
    while (failed == 0 && (service = kinf_cursor_next(&cursor)) != NULL)
        failed = mark(service, node_ports, used);
    kinf_snapshot_unref(snapshot);
    kinf_path_free(node_ports);
    return failed;
}

/* Any free one, from a random place on; `n`: there is none. */
static size_t find_free(struct kinf__sim *sim, const unsigned char *bits, size_t n)
{
    size_t start = (size_t)(kinf__sim_random(sim) % n);

    for (size_t i = 0; i < n; i++) {
        if (!has_bit(bits, (start + i) % n))
            return (start + i) % n;
    }
    return n;
}

/* --- allocation --- */

static int refuse_field(const struct kinf__write *write, const struct kinf__field *field,
                        const struct cJSON *value, const char *why)
{
    struct kinf__invalid invalid;

    kinf__invalid_init(&invalid, write->refusal);
    kinf__invalid_value(&invalid, field, value, why);
    return kinf__invalid_finish(&invalid, "", "Service",
                                kinf__doc_text(write->object, "metadata", "name", NULL));
}

/* Whether the address that the client wants is free. */
static int claim_address(const struct kinf__write *write, const char *address,
                         const struct used *used)
{
    const struct cJSON *value = kinf__doc_find(write->object, "spec", "clusterIPs", NULL);
    unsigned number = address_number(address);
    struct in_addr any;
    char why[192];

    /* What is no address at all is for the validation to tell. */
    if (inet_pton(AF_INET, address, &any) != 1 ||
        (number != 0 && !has_bit(used->addresses, number - 1)))
        return 0;
    snprintf(why, sizeof why, "failed to allocate IP %s: %s", address,
             number != 0 ? "provided IP is already allocated"
                         : "the provided network does not match the current range");
    return refuse_field(write, KINF__AT(NULL, "spec.clusterIPs"), value, why);
}

static int set_addresses(struct cJSON *spec, const char *address)
{
    if (kinf__doc_set(spec, "clusterIPs", cJSON_CreateArray()) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_append(kinf__doc_get(spec, "clusterIPs"), cJSON_CreateString(address));
}

static int set_address(struct cJSON *spec, const char *address)
{
    return kinf__doc_set_text(spec, "clusterIP", address) < 0 ? KINF_ERR_NO_MEMORY
                                                              : set_addresses(spec, address);
}

static int allocate_address(const struct kinf__write *write, const struct used *used)
{
    struct cJSON *spec = kinf__doc_get(write->object, "spec");
    const char *wanted = kinf__doc_text(spec, "clusterIP", NULL);
    struct in_addr address;
    char text[INET_ADDRSTRLEN];
    size_t free_one;
    int failed;

    if (*wanted != '\0') {
        snprintf(text, sizeof text, "%s", wanted);
        if (kinf__doc_get(spec, "clusterIPs") == NULL && (failed = set_address(spec, wanted)) < 0)
            return failed;
        return is_headless(write->object) ? 0 : claim_address(write, text, used);
    }
    free_one = find_free(write->sim, used->addresses, N_ADDRESSES);
    if (free_one == N_ADDRESSES) {
        return kinf__refuse(
            write->refusal, 500, "InternalError",
            "Internal error occurred: failed to allocate a serviceIP: range is full");
    }
    address.s_addr = htonl(ADDRESS_BASE + (uint32_t)free_one + 1);
    inet_ntop(AF_INET, &address, text, sizeof text);
    return set_address(spec, text);
}

static int claim_node_port(const struct kinf__write *write, const struct cJSON *port, size_t index,
                           struct used *used)
{
    const struct kinf__field ports = kinf__field(NULL, "spec.ports");
    const struct kinf__field item = kinf__field_index(&ports, index);
    const struct kinf__field field = kinf__field(&item, "nodePort");
    int64_t number = kinf__doc_integer(port, "nodePort", 0) - NODE_PORT_MIN;

    if (number < 0 || number >= (int64_t)N_NODE_PORTS)
        return refuse_field(write, &field, kinf__doc_get(port, "nodePort"),
                            "provided port is not in the valid range. The range of valid ports is "
                            "30000-32767");
    if (has_bit(used->node_ports, (size_t)number))
        return refuse_field(write, &field, kinf__doc_get(port, "nodePort"),
                            "provided port is already allocated");
    set_bit(used->node_ports, (size_t)number);
    return 0;
}

static int allocate_node_port(const struct kinf__write *write, struct cJSON *port,
                              struct used *used)
{
    size_t free_one = find_free(write->sim, used->node_ports, N_NODE_PORTS);

    if (free_one == N_NODE_PORTS) {
        return kinf__refuse(
            write->refusal, 500, "InternalError",
            "Internal error occurred: failed to allocate a nodePort: range is full");
    }
    set_bit(used->node_ports, free_one);
    return kinf__doc_set_integer(port, "nodePort", (int64_t)free_one + NODE_PORT_MIN);
}

static int allocate_node_ports(const struct kinf__write *write, struct used *used)
{
    struct cJSON *port;
    size_t i = 0;
    int failed = 0;

    cJSON_ArrayForEach(port, kinf__doc_find(write->object, "spec", "ports", NULL))
    {
        if (failed < 0 || !cJSON_IsObject(port))
            continue;
        failed = kinf__doc_integer(port, "nodePort", 0) != 0
                     ? claim_node_port(write, port, i, used)
                     : allocate_node_port(write, port, used);
        i++;
    }
    return failed;
}

/* Whether none of it is missing: then there is no need to look what others have. */
static bool is_complete(const struct cJSON *object)
{
    const struct cJSON *port;

    if (needs_address(object) && *kinf__doc_text(object, "spec", "clusterIP", NULL) == '\0')
        return false;
    cJSON_ArrayForEach(port, kinf__doc_find(object, "spec", "ports", NULL))
    {
        if (needs_node_ports(object) && kinf__doc_integer(port, "nodePort", 0) == 0)
            return false;
    }
    return true;
}

/* Selectors make a headless service of both families where there is nothing to select. */
static int set_families(struct cJSON *object)
{
    bool is_both = is_headless(object) && kinf__doc_find(object, "spec", "selector", NULL) == NULL;

    return kinf__kind_fill(kinf__doc_get(object, "spec"),
                           is_both ? "{\"ipFamilies\":[\"IPv4\",\"IPv6\"],"
                                     "\"ipFamilyPolicy\":\"RequireDualStack\"}"
                                   : "{\"ipFamilies\":[\"IPv4\"],"
                                     "\"ipFamilyPolicy\":\"SingleStack\"}");
}

int kinf__service_create(const struct kinf__write *write)
{
    struct used used;
    int failed = find_used(write, &used);

    if (failed == 0 && needs_address(write->object))
        failed = allocate_address(write, &used);
    if (failed == 0 && needs_address(write->object))
        failed = set_families(write->object);
    return failed == 0 && needs_node_ports(write->object) ? allocate_node_ports(write, &used)
                                                          : failed;
}

/* --- updates --- */

static const char *const address_members[] = { "clusterIP", "clusterIPs", "ipFamilies",
                                               "ipFamilyPolicy" };

static int64_t old_node_port(const struct kinf__node_index *before, const struct cJSON *port)
{
    char key[PORT_KEY_SIZE];
    const struct kinf__node_index_entry *entry = kinf__node_index_find(before, port_key(port, key));

    return entry != NULL ? kinf__doc_integer(entry->node, "nodePort", 0) : 0;
}

static int keep_node_ports(const struct kinf__node_index *before, struct cJSON *object)
{
    struct cJSON *port;

    cJSON_ArrayForEach(port, kinf__doc_find(object, "spec", "ports", NULL))
    {
        int64_t number = old_node_port(before, port);

        if (kinf__doc_integer(port, "nodePort", 0) == 0 && number != 0 &&
            kinf__doc_set_integer(port, "nodePort", number) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* What a service of this type does not have. */
static void drop_unneeded(const struct kinf__node_index *before, struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec"), *port;

    for (size_t i = 0; !needs_address(object) && i < KINF__ARRAY_LEN(address_members); i++)
        kinf__doc_remove(spec, address_members[i]);
    if (!needs_address(object))
        kinf__doc_remove(spec, "internalTrafficPolicy");
    if (needs_node_ports(object))
        return;
    cJSON_ArrayForEach(port, kinf__doc_get(spec, "ports"))
    {
        if (kinf__doc_integer(port, "nodePort", 0) == old_node_port(before, port))
            kinf__doc_remove(port, "nodePort");
    }
    if (!is_type(object, "LoadBalancer")) {
        kinf__doc_remove(spec, "externalTrafficPolicy");
        kinf__doc_remove(spec, "allocateLoadBalancerNodePorts");
    }
}

/* Ports of its own are not taken by anybody else. */
static void forget_own(const struct cJSON *old, struct used *used)
{
    const struct cJSON *port;
    unsigned number = address_number(kinf__doc_text(old, "spec", "clusterIP", NULL));

    if (number != 0)
        used->addresses[(number - 1) / 8] &= (unsigned char)~(1U << (number - 1) % 8);
    cJSON_ArrayForEach(port, kinf__doc_find(old, "spec", "ports", NULL))
    {
        int64_t i = kinf__doc_integer(port, "nodePort", 0) - NODE_PORT_MIN;

        if (i >= 0 && i < (int64_t)N_NODE_PORTS)
            used->node_ports[i / 8] &= (unsigned char)~(1U << i % 8);
    }
}

/* Who changes clusterIP alone means both. */
static int follow_address(const struct cJSON *old, struct cJSON *object)
{
    const struct cJSON *before = kinf__doc_get(old, "spec");
    struct cJSON *spec = kinf__doc_get(object, "spec");
    const char *address = kinf__doc_text(spec, "clusterIP", NULL);

    if (*address == '\0' || strcmp(address, kinf__doc_text(before, "clusterIP", NULL)) == 0 ||
        !kinf__doc_equal(kinf__doc_get(before, "clusterIPs"), kinf__doc_get(spec, "clusterIPs")))
        return 0;
    return set_addresses(spec, address);
}

int kinf__service_update(const struct kinf__write *write)
{
    KINF__AUTO_NODE_INDEX before = { KINF__HMAP_INIT };
    struct cJSON *object = write->object;
    struct used used;
    int failed = index_ports(&before, write->old);

    if (failed == 0 && needs_address(object) && needs_address(write->old))
        failed =
            kinf__kind_keep_unsaid(kinf__doc_get(write->old, "spec"), kinf__doc_get(object, "spec"),
                                   address_members, KINF__ARRAY_LEN(address_members));
    if (failed == 0)
        failed = follow_address(write->old, object);
    if (failed == 0 && needs_node_ports(object) && needs_node_ports(write->old))
        failed = keep_node_ports(&before, object);
    if (failed < 0)
        return failed;
    drop_unneeded(&before, object);
    if (needs_address(object) && (failed = set_families(object)) < 0)
        return failed;
    if (is_complete(object) && kinf__doc_equal(kinf__doc_find(write->old, "spec", "ports", NULL),
                                               kinf__doc_find(object, "spec", "ports", NULL)))
        return 0;
    failed = find_used(write, &used);
    if (failed < 0)
        return failed;
    forget_own(write->old, &used);
    if (needs_address(object) && *kinf__doc_text(object, "spec", "clusterIP", NULL) == '\0' &&
        (failed = allocate_address(write, &used)) < 0)
        return failed;
    return needs_node_ports(object) ? allocate_node_ports(write, &used) : 0;
}

/* --- validation --- */

static void check_number(const struct cJSON *port, const char *name,
                         const struct kinf__field *parent, struct kinf__invalid *invalid)
{
    int64_t number = kinf__doc_integer(port, name, 0);

    if (!cJSON_IsString(kinf__doc_get(port, name)) && (number < 1 || number > 65535))
        kinf__invalid_integer(invalid, KINF__AT(parent, name), number, PORT_RANGE);
}

/* `names`: of those before it, of several. */
static void check_port(struct cJSON *port, bool is_only, struct kinf__node_index *names,
                       const struct kinf__field *field, struct kinf__invalid *invalid)
{
    if (!is_only || *kinf__doc_text(port, "name", NULL) != '\0')
        kinf__kind_check_item_name(names, port, field, invalid);
    check_number(port, "port", field, invalid);
    kinf__kind_check_word(port, field, "protocol", "\"SCTP\", \"TCP\", \"UDP\"", invalid);
    check_number(port, "targetPort", field, invalid);
}

/* One port of one protocol, once. */
static void check_twice(const struct cJSON *ports, const struct kinf__field *field,
                        struct kinf__invalid *invalid)
{
    KINF__AUTO_NODE_INDEX numbers = { KINF__HMAP_INIT };
    struct cJSON *port;
    size_t i = 0;

    cJSON_ArrayForEach(port, ports)
    {
        const struct kinf__field item = kinf__field_index(field, i++);
        const char *protocol = kinf__doc_text(port, "protocol", NULL);
        long long number = (long long)kinf__doc_integer(port, "port", 0);
        char key[PORT_KEY_SIZE], shown[192];

        snprintf(shown, sizeof shown,
                 "{\"Name\":\"\",\"Protocol\":\"%.32s\",\"AppProtocol\":null,\"Port\":%lld,"
                 "\"TargetPort\":0,\"NodePort\":0}",
                 protocol, number);
        if (kinf__node_index_find(&numbers, port_key(port, key)) != NULL)
            kinf__invalid_duplicate_raw(invalid, &item, shown);
        else if (kinf__node_index_add(&numbers, key, port, 0) < 0)
            return;
    }
}

static bool is_address(const char *text)
{
    struct in6_addr any;

    return inet_pton(AF_INET, text, &any) == 1 || inet_pton(AF_INET6, text, &any) == 1;
}

static void check_address(const struct cJSON *object, const struct cJSON *old,
                          const struct kinf__field *spec, struct kinf__invalid *invalid)
{
    const struct kinf__field addresses = kinf__field(spec, "clusterIPs");
    const struct kinf__field field = kinf__field_index(&addresses, 0);
    const char *address = kinf__doc_text(object, "spec", "clusterIP", NULL);
    const char *before = kinf__doc_text(old, "spec", "clusterIP", NULL);

    if (*address == '\0')
        return;
    if (!is_headless(object) && !is_address(address))
        kinf__invalid_text(invalid, &field, address,
                           "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    else if (*before != '\0' && strcmp(before, address) != 0)
        kinf__invalid_value(invalid, &field, kinf__doc_find(object, "spec", "clusterIPs", NULL),
                            "may not change once set");
}

void kinf__service_check(const struct cJSON *object, const struct cJSON *old,
                         struct kinf__invalid *invalid)
{
    const struct kinf__field spec = kinf__field(NULL, "spec");
    const struct kinf__field ports_field = kinf__field(&spec, "ports");
    const struct cJSON *ports = kinf__doc_find(object, "spec", "ports", NULL);
    KINF__AUTO_NODE_INDEX names = { KINF__HMAP_INIT };
    struct cJSON *port;
    size_t i = 0;

    if (cJSON_GetArraySize(ports) == 0 && needs_address(object) && !is_headless(object))
        kinf__invalid_required(invalid, &ports_field, "");
    if (!needs_address(object) && *kinf__doc_text(object, "spec", "externalName", NULL) == '\0')
        kinf__invalid_required(invalid, KINF__AT(&spec, "externalName"), "");
    cJSON_ArrayForEach(port, ports)
    {
        const struct kinf__field item = kinf__field_index(&ports_field, i++);

        check_port(port, ports->child->next == NULL, &names, &item, invalid);
    }
    check_twice(ports, &ports_field, invalid);
    kinf__kind_check_word(kinf__doc_get(object, "spec"), &spec, "type",
                          "\"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
                          invalid);
    check_address(object, old, &spec, invalid);
    if (!is_type(object, "LoadBalancer") &&
        cJSON_GetArraySize(kinf__doc_find(object, "status", "loadBalancer", "ingress", NULL)) != 0)
        kinf__invalid_forbidden(invalid, KINF__AT(NULL, "status.loadBalancer.ingress"),
                                "may only be used when `spec.type` is 'LoadBalancer'");
}

/* --- ingresses --- */

static void check_host(const char *host, const struct kinf__field *parent,
                       struct kinf__invalid *invalid)
{
    const char *name = strncmp(host, "*.", 2) == 0 ? host + 2 : host;
    char why[KINF__NAME_FAULT_SIZE];

    if (*host != '\0' && !kinf__name_is(KINF__NAME_SUBDOMAIN, name, why))
        kinf__invalid_text(invalid, KINF__AT(parent, "host"), host, why);
}

void kinf__ingress_check(const struct cJSON *object, const struct cJSON *old,
                         struct kinf__invalid *invalid)
{
    const struct kinf__field spec_field = kinf__field(NULL, "spec");
    const struct kinf__field rules = kinf__field(&spec_field, "rules");
    const struct cJSON *spec = kinf__doc_get(object, "spec"), *rule;
    size_t i = 0;

    (void)old;
    if (cJSON_GetArraySize(kinf__doc_get(spec, "rules")) == 0 &&
        kinf__doc_get(spec, "defaultBackend") == NULL)
        kinf__invalid_value(invalid, &spec_field, NULL,
                            "either `defaultBackend` or `rules` must be specified");
    cJSON_ArrayForEach(rule, kinf__doc_get(spec, "rules"))
    {
        const struct kinf__field item = kinf__field_index(&rules, i++);

        check_host(kinf__doc_text(rule, "host", NULL), &item, invalid);
        kinf__kind_require_each(kinf__doc_find(rule, "http", "paths", NULL),
                                KINF__AT(&item, "http.paths"), "pathType",
                                "pathType must be specified", invalid);
    }
}
