/*
 * Kinds with little of their own, one after another: namespaces, nodes, volumes, ingresses, roles
 * and others. Neighbours: kinds.c.
 */
#include "apiserver/kinds_priv.h"

#include <stdio.h>
#include <string.h>

static int add_text(struct cJSON *object, const char *name, const char *text)
{
    struct cJSON *array = kinf__doc_get(object, name), *item;

    cJSON_ArrayForEach(item, array)
    {
        if (cJSON_IsString(item) && strcmp(item->valuestring, text) == 0)
            return 0;
    }
    if (!cJSON_IsArray(array)) {
        if (kinf__doc_set(object, name, cJSON_CreateArray()) < 0)
            return KINF_ERR_NO_MEMORY;
        array = kinf__doc_get(object, name);
    }
    return kinf__doc_append(array, cJSON_CreateString(text));
}

static bool has_text(const struct cJSON *object, const char *name)
{
    return *kinf__doc_text(object, name, NULL) != '\0';
}

static void require(const struct cJSON *object, const struct kinf__field *parent, const char *name,
                    struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, name);

    if (!has_text(object, name))
        kinf__invalid_required(invalid, &field, "");
}

/* --- namespaces --- */

static int put_back(const struct cJSON *from, struct cJSON *to, const char *name)
{
    const struct cJSON *member = kinf__doc_get(from, name);

    if (member != NULL)
        return kinf__doc_set(to, name, kinf__doc_dup(member));
    kinf__doc_remove(to, name);
    return 0;
}

/* Its own finalizers are what only its end removes, by another subresource. */
int kinf__namespace_write(const struct kinf__write *write)
{
    const char *name = kinf__doc_text(write->object, "metadata", "name", NULL);
    struct cJSON *labels = kinf__doc_object(kinf__doc_get(write->object, "metadata"), "labels");
    struct cJSON *spec;

    if (labels == NULL || kinf__doc_set_text(labels, "kubernetes.io/metadata.name", name) < 0)
        return KINF_ERR_NO_MEMORY;
    if (write->old != NULL)
        return put_back(write->old, write->object, "spec");
    spec = kinf__doc_object(write->object, "spec");
    return spec != NULL ? add_text(spec, "finalizers", "kubernetes") : KINF_ERR_NO_MEMORY;
}

/* Nothing but spec.finalizers is written. */
int kinf__namespace_finalize(const struct kinf__write *write)
{
    struct cJSON *finalizers =
        cJSON_DetachItemFromObjectCaseSensitive(kinf__doc_get(write->object, "spec"), "finalizers");
    struct cJSON *spec;

    if (put_back(write->old, write->object, "status") < 0) {
        cJSON_Delete(finalizers);
        return KINF_ERR_NO_MEMORY;
    }
    spec = kinf__doc_object(write->object, "spec");
    if (spec == NULL) {
        cJSON_Delete(finalizers);
        return KINF_ERR_NO_MEMORY;
    }
    kinf__doc_remove(spec, "finalizers");
    if (cJSON_GetArraySize(finalizers) != 0)
        return kinf__doc_set(spec, "finalizers", finalizers);
    cJSON_Delete(finalizers);
    return 0;
}

void kinf__namespace_check_fields(const struct cJSON *object, const struct cJSON *old,
                                  struct kinf__invalid *invalid)
{
    const struct kinf__field spec = kinf__field(NULL, "spec");
    const struct kinf__field finalizers = kinf__field(&spec, "finalizers");
    const struct kinf__field status = kinf__field(NULL, "status");
    const struct kinf__field phase_field = kinf__field(&status, "Phase");
    const char *phase = kinf__doc_text(object, "status", "phase", NULL);
    const struct cJSON *finalizer;
    bool is_going;

    cJSON_ArrayForEach(finalizer, kinf__doc_find(object, "spec", "finalizers", NULL))
    {
        const char *text = cJSON_IsString(finalizer) ? finalizer->valuestring : "";

        if (strchr(text, '/') == NULL && strcmp(text, "kubernetes") != 0)
            kinf__invalid_text(
                invalid, &finalizers, text,
                "name is neither a standard finalizer name nor is it fully qualified");
    }
    if (old == NULL)
        return;
    is_going = *kinf__doc_text(old, "metadata", "deletionTimestamp", NULL) != '\0';
    if (is_going && strcmp(phase, "Terminating") != 0)
        kinf__invalid_text(invalid, &phase_field, phase,
                           "may only be 'Terminating' if `deletionTimestamp` is not empty");
    if (!is_going && strcmp(phase, "Active") != 0)
        kinf__invalid_text(invalid, &phase_field, phase,
                           "may only be 'Active' if `deletionTimestamp` is empty");
}

/* --- nodes and volumes --- */

/* Admission: a node that nobody has called ready takes no pods. What it has it can give, too. */
int kinf__node_create(const struct kinf__write *write)
{
    struct cJSON *spec = kinf__doc_object(write->object, "spec");
    const struct cJSON *taint;
    struct cJSON *taints;
    int failed;

    if (spec == NULL)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(taint, kinf__doc_get(spec, "taints"))
    {
        if (strcmp(kinf__doc_text(taint, "key", NULL), "node.kubernetes.io/not-ready") == 0)
            return 0;
    }
    if (!cJSON_IsArray(kinf__doc_get(spec, "taints"))) {
        failed = kinf__doc_set(spec, "taints", cJSON_CreateArray());
        if (failed < 0)
            return failed;
    }
    taints = kinf__doc_get(spec, "taints");
    return kinf__doc_append(taints, cJSON_Parse("{\"key\":\"node.kubernetes.io/not-ready\","
                                                "\"effect\":\"NoSchedule\"}"));
}

int kinf__volume_create(const struct kinf__write *write)
{
    struct cJSON *status = kinf__doc_get(write->object, "status");
    char time[KINF__TIME_SIZE];

    kinf__sim_time(time);
    if (kinf__doc_set_text(status, "lastPhaseTransitionTime", time) < 0)
        return KINF_ERR_NO_MEMORY;
    return add_text(kinf__doc_get(write->object, "metadata"), "finalizers",
                    "kubernetes.io/pv-protection");
}

int kinf__volume_claim_create(const struct kinf__write *write)
{
    return add_text(kinf__doc_get(write->object, "metadata"), "finalizers",
                    "kubernetes.io/pvc-protection");
}

static const char access_modes[] =
    "\"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"";

static void check_access_modes(const struct cJSON *spec, const struct kinf__field *parent,
                               const char *why, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, "accessModes");
    const struct cJSON *modes = kinf__doc_get(spec, "accessModes"), *mode;

    if (cJSON_GetArraySize(modes) == 0)
        kinf__invalid_required(invalid, &field, why);
    cJSON_ArrayForEach(mode, modes)
    {
        const char *text = cJSON_IsString(mode) ? mode->valuestring : "";
        char quoted[64];

        snprintf(quoted, sizeof quoted, "\"%s\"", text);
        if (strstr(access_modes, quoted) == NULL)
            kinf__invalid_unsupported(invalid, &field, text, access_modes);
    }
}

/* A volume's source is the member that nothing else is. */
static bool is_source(const char *name)
{
    static const char *const others[] = { "capacity",
                                          "accessModes",
                                          "claimRef",
                                          "persistentVolumeReclaimPolicy",
                                          "storageClassName",
                                          "mountOptions",
                                          "volumeMode",
                                          "nodeAffinity",
                                          "volumeAttributesClassName" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(others); i++) {
        if (strcmp(name, others[i]) == 0)
            return false;
    }
    return true;
}

void kinf__volume_check(const struct cJSON *object, const struct cJSON *old,
                        struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct kinf__field capacity = kinf__field(&field, "capacity");
    const struct kinf__field source_field = kinf__field(&field, "persistentvolumesource");
    const struct cJSON *spec = kinf__doc_get(object, "spec"), *source = NULL, *member;

    check_access_modes(spec, &field, "", invalid);
    if (cJSON_GetArraySize(kinf__doc_get(spec, "capacity")) == 0)
        kinf__invalid_required(invalid, &capacity, "");
    cJSON_ArrayForEach(member, spec)
    {
        if (is_source(member->string))
            source = member;
    }
    if (source == NULL)
        kinf__invalid_required(invalid, &field, "must specify a volume type");
    else if (old != NULL &&
             !kinf__doc_equal(source, kinf__doc_find(old, "spec", source->string, NULL)))
        kinf__invalid_forbidden(invalid, &source_field,
                                "spec.persistentvolumesource is immutable after creation");
}

/* Requests of a claim may grow, and it may be bound. */
static void forget_mutable(struct cJSON *spec)
{
    kinf__doc_remove(spec, "resources");
    kinf__doc_remove(spec, "volumeName");
    kinf__doc_remove(spec, "volumeAttributesClassName");
    kinf__doc_remove(spec, "storageClassName");
}

static void check_claim_update(const struct cJSON *spec, const struct cJSON *old,
                               const struct kinf__field *field, struct kinf__invalid *invalid)
{
    KINF__AUTO_DOC *before = kinf__doc_dup(old);
    KINF__AUTO_DOC *after = kinf__doc_dup(spec);

    /* Without memory it is the write itself that fails next. */
    if (before == NULL || after == NULL)
        return;
    forget_mutable(before);
    forget_mutable(after);
    if (!kinf__doc_equal(before, after))
        kinf__invalid_forbidden(invalid, field,
                                "spec is immutable after creation except resources.requests and "
                                "volumeAttributesClassName for bound claims");
}

void kinf__volume_claim_check(const struct cJSON *object, const struct cJSON *old,
                              struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct kinf__field resources = kinf__field(&field, "resources");
    const struct kinf__field storage = kinf__field_key(&resources, "storage");
    const struct cJSON *spec = kinf__doc_get(object, "spec");

    check_access_modes(spec, &field, "at least 1 access mode is required", invalid);
    if (kinf__doc_find(spec, "resources", "requests", "storage", NULL) == NULL)
        kinf__invalid_required(invalid, &storage, "");
    if (old != NULL)
        check_claim_update(spec, kinf__doc_get(old, "spec"), &field, invalid);
}

/* --- ingresses --- */

static void check_paths(const struct cJSON *paths, const struct kinf__field *field,
                        struct kinf__invalid *invalid)
{
    const struct cJSON *path;
    size_t i = 0;

    cJSON_ArrayForEach(path, paths)
    {
        const struct kinf__field item = kinf__field_index(field, i++);
        const struct kinf__field type = kinf__field(&item, "pathType");

        if (!has_text(path, "pathType"))
            kinf__invalid_required(invalid, &type, "pathType must be specified");
    }
}

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
        check_paths(kinf__doc_find(rule, "http", "paths", NULL), &paths, invalid);
    }
}

/* --- roles --- */

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

    require(subject, field, "name", invalid);
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
    require(kinf__doc_get(object, "roleRef"), &role, "name", invalid);
    cJSON_ArrayForEach(subject, kinf__doc_get(object, "subjects"))
    {
        const struct kinf__field item = kinf__field_index(&subjects, i++);

        check_subject(subject, &item, invalid);
    }
    if (old != NULL)
        kinf__kind_check_same(old, object, NULL, "roleRef", KINF__IMMUTABLE, invalid);
}

/* --- others --- */

void kinf__lease_check(const struct cJSON *object, const struct cJSON *old,
                       struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct kinf__field duration_field = kinf__field(&field, "leaseDurationSeconds");
    const struct cJSON *spec = kinf__doc_get(object, "spec");
    int64_t duration_s = kinf__doc_integer(spec, "leaseDurationSeconds", 1);

    (void)old;
    if (duration_s <= 0)
        kinf__invalid_integer(invalid, &duration_field, duration_s, "must be greater than 0");
    kinf__kind_check_not_negative(spec, &field, "leaseTransitions", invalid);
}

void kinf__priority_class_check(const struct cJSON *object, const struct cJSON *old,
                                struct kinf__invalid *invalid)
{
    const struct kinf__field metadata = kinf__field(NULL, "metadata");
    const struct kinf__field name_field = kinf__field(&metadata, "name");
    const struct kinf__field value = kinf__field(NULL, "value");
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);
    char why[KINF__NAME_FAULT_SIZE];

    if (strncmp(name, "system-", 7) == 0 && strcmp(name, "system-cluster-critical") != 0 &&
        strcmp(name, "system-node-critical") != 0) {
        snprintf(why, sizeof why,
                 "priority class names with 'system-' prefix are reserved for system use only. "
                 "error: %.253s is not a known system priority class",
                 name);
        kinf__invalid_forbidden(invalid, &name_field, why);
    }
    if (old != NULL && kinf__doc_integer(old, "value", 0) != kinf__doc_integer(object, "value", 0))
        kinf__invalid_forbidden(invalid, &value, "may not be changed in an update.");
}

/* The server does not say what it is not to become. */
static void check_unchanged(const struct cJSON *object, const struct cJSON *old, const char *name,
                            struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, name);

    if (old != NULL && !kinf__doc_equal(kinf__doc_get(old, name), kinf__doc_get(object, name)))
        kinf__invalid_value(invalid, &field, NULL, KINF__IMMUTABLE);
}

void kinf__storage_class_check(const struct cJSON *object, const struct cJSON *old,
                               struct kinf__invalid *invalid)
{
    static const char *const members[] = { "provisioner", "parameters", "reclaimPolicy",
                                           "volumeBindingMode" };

    require(object, NULL, "provisioner", invalid);
    for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++)
        check_unchanged(object, old, members[i], invalid);
}

void kinf__endpoint_slice_check(const struct cJSON *object, const struct cJSON *old,
                                struct kinf__invalid *invalid)
{
    require(object, NULL, "addressType", invalid);
    check_unchanged(object, old, "addressType", invalid);
}

void kinf__autoscaler_check(const struct cJSON *object, const struct cJSON *old,
                            struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct kinf__field target_field = kinf__field(&field, "scaleTargetRef");
    const struct kinf__field max_field = kinf__field(&field, "maxReplicas");
    const struct cJSON *spec = kinf__doc_get(object, "spec");
    const struct cJSON *target = kinf__doc_get(spec, "scaleTargetRef");
    int64_t max = kinf__doc_integer(spec, "maxReplicas", 0);

    (void)old;
    if (max < kinf__doc_integer(spec, "minReplicas", 1))
        kinf__invalid_integer(invalid, &max_field, max,
                              "must be greater than or equal to `minReplicas`");
    require(target, &target_field, "kind", invalid);
    require(target, &target_field, "name", invalid);
    if (kinf__doc_get(spec, "maxReplicas") == NULL)
        kinf__invalid_required(invalid, &max_field, "");
}
