/*
 * Ingress, IngressClass, ServiceCIDR and EndpointSlice. Neighbours: kinds.c, kinds_services.c.
 */
#include "apiserver/kinds_priv.h"

#include <string.h>

/* --- ingresses --- */

static void check_host(const char *host, const struct kinf__field *parent,
                       struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, "host");
    const char *name = strncmp(host, "*.", 2) == 0 ? host + 2 : host;
    char why[KINF__NAME_FAULT_SIZE];

    if (*host != '\0' && !kinf__name_is(KINF__NAME_SUBDOMAIN, name, why))
        kinf__invalid_text(invalid, &field, host, why);
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
        const struct kinf__field http = kinf__field(&item, "http");
        const struct kinf__field paths = kinf__field(&http, "paths");

        check_host(kinf__doc_text(rule, "host", NULL), &item, invalid);
        kinf__kind_require_each(kinf__doc_find(rule, "http", "paths", NULL), &paths, "pathType",
                                "pathType must be specified", invalid);
    }
}

void kinf__ingress_class_check(const struct cJSON *object, const struct cJSON *old,
                               struct kinf__invalid *invalid)
{
    const struct kinf__field spec = kinf__field(NULL, "spec");

    (void)old;
    kinf__kind_require(kinf__doc_get(object, "spec"), &spec, "controller", invalid);
}

void kinf__service_range_check(const struct cJSON *object, const struct cJSON *old,
                               struct kinf__invalid *invalid)
{
    const struct kinf__field spec = kinf__field(NULL, "spec");

    (void)old;
    kinf__kind_require_items(kinf__doc_get(object, "spec"), &spec, "cidrs",
                             "at least one CIDR required", invalid);
}

/* --- endpoint slices --- */

/* What Go's structs have always, though nobody has said it. */
int kinf__endpoint_slice_write(const struct kinf__write *write)
{
    return kinf__kind_fill(write->object, "{\"ports\":null}");
}

void kinf__endpoint_slice_check(const struct cJSON *object, const struct cJSON *old,
                                struct kinf__invalid *invalid)
{
    kinf__kind_require(object, NULL, "addressType", invalid);
    kinf__kind_check_fixed(object, old, "addressType", invalid);
}
