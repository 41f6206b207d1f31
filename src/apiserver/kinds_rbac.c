/*
 * Roles and their bindings. Neighbours: kinds.c.
 */
#include "apiserver/kinds_priv.h"

#include <string.h>

/* What Go's structs have always, though nobody has said it. */
int kinf__role_write(const struct kinf__write *write)
{
    return kinf__kind_fill(write->object, "{\"rules\":null}");
}

static void check_rule(const struct cJSON *rule, bool is_namespaced,
                       const struct kinf__field *field, struct kinf__invalid *invalid)
{
    const struct kinf__field verbs = kinf__field(field, "verbs");
    const struct kinf__field groups = kinf__field(field, "apiGroups");
    const struct kinf__field resources = kinf__field(field, "resources");
    const struct kinf__field urls_field = kinf__field(field, "nonResourceURLs");
    const struct cJSON *urls = kinf__doc_get(rule, "nonResourceURLs");
    bool has_urls = cJSON_GetArraySize(urls) != 0;
    bool has_groups = cJSON_GetArraySize(kinf__doc_get(rule, "apiGroups")) != 0;
    bool has_resources = cJSON_GetArraySize(kinf__doc_get(rule, "resources")) != 0;

    if (cJSON_GetArraySize(kinf__doc_get(rule, "verbs")) == 0)
        kinf__invalid_required(invalid, &verbs, "");
    if (has_urls && is_namespaced)
        kinf__invalid_value(invalid, &urls_field, urls,
                            "namespaced rules cannot apply to non-resource URLs");
    if (has_urls && (has_groups || has_resources))
        kinf__invalid_value(invalid, &urls_field, urls,
                            "rules cannot apply to both regular resources and non-resource URLs");
    if (has_urls)
        return;
    if (!has_groups)
        kinf__invalid_required(invalid, &groups,
                               "resource rules must supply at least one api group");
    if (!has_resources)
        kinf__invalid_required(invalid, &resources,
                               "resource rules must supply at least one resource");
}

static void check_rules(const struct cJSON *object, bool is_namespaced,
                        struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "rules");
    const struct cJSON *rule;
    size_t i = 0;

    cJSON_ArrayForEach(rule, kinf__doc_get(object, "rules"))
    {
        const struct kinf__field item = kinf__field_index(&field, i++);

        check_rule(rule, is_namespaced, &item, invalid);
    }
}

void kinf__role_check(const struct cJSON *object, const struct cJSON *old,
                      struct kinf__invalid *invalid)
{
    (void)old;
    check_rules(object, true, invalid);
}

void kinf__cluster_role_check(const struct cJSON *object, const struct cJSON *old,
                              struct kinf__invalid *invalid)
{
    (void)old;
    check_rules(object, false, invalid);
}

static void check_subject(const struct cJSON *subject, const struct kinf__field *field,
                          struct kinf__invalid *invalid)
{
    const struct kinf__field kind_field = kinf__field(field, "kind");
    const char *kind = kinf__doc_text(subject, "kind", NULL);

    kinf__kind_require(subject, field, "name", invalid);
    if (strcmp(kind, "ServiceAccount") != 0 && strcmp(kind, "User") != 0 &&
        strcmp(kind, "Group") != 0)
        kinf__invalid_unsupported(invalid, &kind_field, kind,
                                  "\"ServiceAccount\", \"User\", \"Group\"");
}

void kinf__binding_check(const struct cJSON *object, const struct cJSON *old,
                         struct kinf__invalid *invalid)
{
    const struct kinf__field role = kinf__field(NULL, "roleRef");
    const struct kinf__field kind_field = kinf__field(&role, "kind");
    const struct kinf__field subjects = kinf__field(NULL, "subjects");
    bool is_namespaced = strcmp(kinf__doc_text(object, "kind", NULL), "RoleBinding") == 0;
    const char *kind = kinf__doc_text(object, "roleRef", "kind", NULL);
    const struct cJSON *subject;
    size_t i = 0;

    if (strcmp(kind, "ClusterRole") != 0 && (!is_namespaced || strcmp(kind, "Role") != 0))
        kinf__invalid_unsupported(invalid, &kind_field, kind,
                                  is_namespaced ? "\"Role\", \"ClusterRole\"" : "\"ClusterRole\"");
    kinf__kind_require(kinf__doc_get(object, "roleRef"), &role, "name", invalid);
    cJSON_ArrayForEach(subject, kinf__doc_get(object, "subjects"))
    {
        const struct kinf__field item = kinf__field_index(&subjects, i++);

        check_subject(subject, &item, invalid);
    }
    if (old != NULL)
        kinf__kind_check_same(old, object, NULL, "roleRef", KINF__IMMUTABLE, invalid);
}
