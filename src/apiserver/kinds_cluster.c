/*
 * What a cluster is run with: namespaces and quotas, nodes and leases, priority classes, API services,
 * roles and their bindings, events. Neighbours: kinds.c, namespaces.c, api_services.c.
 */
#include "apiserver/kinds_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- namespaces --- */

/* Its own finalizers are what only its end removes, by another subresource. */
int kinf__namespace_write(const struct kinf__write *write)
{
    const char *name = kinf__doc_text(write->object, "metadata", "name", NULL);
    struct cJSON *labels = kinf__doc_object(kinf__doc_get(write->object, "metadata"), "labels");
    struct cJSON *spec;

    if (labels == NULL || kinf__doc_set_text(labels, "kubernetes.io/metadata.name", name) < 0)
        return KINF_ERR_NO_MEMORY;
    if (write->old != NULL)
        return kinf__kind_restore(write->old, write->object, "spec");
    spec = kinf__doc_object(write->object, "spec");
    return spec != NULL ? kinf__doc_add_text(spec, "finalizers", "kubernetes") : KINF_ERR_NO_MEMORY;
}

/* Nothing but spec.finalizers is written. */
int kinf__namespace_finalize(const struct kinf__write *write)
{
    KINF__AUTO_DOC *finalizers =
        cJSON_DetachItemFromObjectCaseSensitive(kinf__doc_get(write->object, "spec"), "finalizers");
    struct cJSON *spec = kinf__doc_object(write->object, "spec");

    if (spec == NULL || kinf__kind_restore(write->old, write->object, "status") < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__doc_remove(spec, "finalizers");
    return cJSON_GetArraySize(finalizers) != 0
               ? kinf__doc_set(spec, "finalizers", KINF__TAKE(finalizers))
               : 0;
}

void kinf__namespace_check_fields(const struct cJSON *object, const struct cJSON *old,
                                  struct kinf__invalid *invalid)
{
    const struct kinf__field phase_field = kinf__field(NULL, "status.Phase");
    const char *phase = kinf__doc_text(object, "status", "phase", NULL);
    const struct cJSON *finalizer;
    bool is_going;

    cJSON_ArrayForEach(finalizer, kinf__doc_find(object, "spec", "finalizers", NULL))
    {
        const char *text = cJSON_IsString(finalizer) ? finalizer->valuestring : "";

        if (strchr(text, '/') == NULL && strcmp(text, "kubernetes") != 0)
            kinf__invalid_text(
                invalid, KINF__AT(NULL, "spec.finalizers"), text,
                "name is neither a standard finalizer name nor is it fully qualified");
    }
    if (old == NULL)
        return;
    is_going = kinf__is_being_deleted(old);
    if (is_going && strcmp(phase, "Terminating") != 0)
        kinf__invalid_text(invalid, &phase_field, phase,
                           "may only be 'Terminating' if `deletionTimestamp` is not empty");
    if (!is_going && strcmp(phase, "Active") != 0)
        kinf__invalid_text(invalid, &phase_field, phase,
                           "may only be 'Active' if `deletionTimestamp` is empty");
}

void kinf__quota_check(const struct cJSON *object, const struct cJSON *old,
                       struct kinf__invalid *invalid)
{
    const struct kinf__field hard = kinf__field(NULL, "spec.hard");
    const struct cJSON *quantity;

    (void)old;
    cJSON_ArrayForEach(quantity, kinf__doc_find(object, "spec", "hard", NULL))
    {
        const struct kinf__field item = kinf__field_key(&hard, quantity->string);

        if (cJSON_IsString(quantity) && quantity->valuestring[0] == '-')
            kinf__invalid_text(invalid, &item, quantity->valuestring,
                               "must be greater than or equal to 0");
    }
}

/* --- nodes, leases --- */

/* Admission: a node that nobody has called ready takes no pods. What it has it can give, too. */
int kinf__node_create(const struct kinf__write *write)
{
    struct cJSON *spec = kinf__doc_object(write->object, "spec");
    const struct cJSON *taint;
    struct cJSON *taints = spec != NULL ? kinf__doc_array(spec, "taints") : NULL;

    if (taints == NULL)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(taint, taints)
    {
        if (strcmp(kinf__doc_text(taint, "key", NULL), "node.kubernetes.io/not-ready") == 0)
            return 0;
    }
    return kinf__doc_append(taints, cJSON_Parse("{\"key\":\"node.kubernetes.io/not-ready\","
                                                "\"effect\":\"NoSchedule\"}"));
}

void kinf__lease_check(const struct cJSON *object, const struct cJSON *old,
                       struct kinf__invalid *invalid)
{
    int64_t duration_s =
        kinf__doc_integer(kinf__doc_get(object, "spec"), "leaseDurationSeconds", 1);

    (void)old;
    if (duration_s <= 0)
        kinf__invalid_integer(invalid, KINF__AT(NULL, "spec.leaseDurationSeconds"), duration_s,
                              "must be greater than 0");
}

/* --- priority classes, API services --- */

void kinf__priority_class_check(const struct cJSON *object, const struct cJSON *old,
                                struct kinf__invalid *invalid)
{
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);
    char why[KINF__NAME_FAULT_SIZE];

    if (strncmp(name, "system-", 7) == 0 && strcmp(name, "system-cluster-critical") != 0 &&
        strcmp(name, "system-node-critical") != 0) {
        snprintf(why, sizeof why,
                 "priority class names with 'system-' prefix are reserved for system use only. "
                 "error: %.253s is not a known system priority class",
                 name);
        kinf__invalid_forbidden(invalid, KINF__AT(NULL, "metadata.name"), why);
    }
    if (old != NULL && kinf__doc_integer(old, "value", 0) != kinf__doc_integer(object, "value", 0))
        kinf__invalid_forbidden(invalid, KINF__AT(NULL, "value"),
                                "may not be changed in an update.");
}

void kinf__api_service_check(const struct cJSON *object, const struct cJSON *old,
                             struct kinf__invalid *invalid)
{
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);
    char wanted[KINF__NAME_FAULT_SIZE], why[KINF__NAME_FAULT_SIZE + 64];

    (void)old;
    snprintf(wanted, sizeof wanted, "%.63s.%.253s", kinf__doc_text(object, "spec", "version", NULL),
             kinf__doc_text(object, "spec", "group", NULL));
    snprintf(why, sizeof why, "must be `spec.version+\".\"+spec.group`: \"%s\"", wanted);
    if (strcmp(name, wanted) != 0)
        kinf__invalid_text(invalid, KINF__AT(NULL, "metadata.name"), name, why);
}

/* --- roles --- */

static void check_rule(const struct cJSON *rule, bool is_namespaced,
                       const struct kinf__field *field, struct kinf__invalid *invalid)
{
    const struct kinf__field urls_field = kinf__field(field, "nonResourceURLs");
    const struct cJSON *urls = kinf__doc_get(rule, "nonResourceURLs");
    bool has_urls = cJSON_GetArraySize(urls) != 0;
    bool has_groups = cJSON_GetArraySize(kinf__doc_get(rule, "apiGroups")) != 0;
    bool has_resources = cJSON_GetArraySize(kinf__doc_get(rule, "resources")) != 0;

    if (cJSON_GetArraySize(kinf__doc_get(rule, "verbs")) == 0)
        kinf__invalid_required(invalid, KINF__AT(field, "verbs"), "");
    if (has_urls && is_namespaced)
        kinf__invalid_value(invalid, &urls_field, urls,
                            "namespaced rules cannot apply to non-resource URLs");
    if (has_urls && (has_groups || has_resources))
        kinf__invalid_value(invalid, &urls_field, urls,
                            "rules cannot apply to both regular resources and non-resource URLs");
    if (has_urls)
        return;
    if (!has_groups)
        kinf__invalid_required(invalid, KINF__AT(field, "apiGroups"),
                               "resource rules must supply at least one api group");
    if (!has_resources)
        kinf__invalid_required(invalid, KINF__AT(field, "resources"),
                               "resource rules must supply at least one resource");
}

void kinf__role_check(const struct cJSON *object, const struct cJSON *old,
                      struct kinf__invalid *invalid)
{
    bool is_namespaced = strcmp(kinf__doc_text(object, "kind", NULL), "Role") == 0;
    const struct kinf__field field = kinf__field(NULL, "rules");
    const struct cJSON *rule;
    size_t i = 0;

    (void)old;
    cJSON_ArrayForEach(rule, kinf__doc_get(object, "rules"))
    {
        const struct kinf__field item = kinf__field_index(&field, i++);

        check_rule(rule, is_namespaced, &item, invalid);
    }
}

static void check_subject(const struct cJSON *subject, const struct kinf__field *field,
                          struct kinf__invalid *invalid)
{
    static const char kinds[] = "\"ServiceAccount\", \"User\", \"Group\"";
    const char *kind = kinf__doc_text(subject, "kind", NULL);

    kinf__kind_require(subject, field, "name", invalid);
    if (!kinf__kind_is_supported(kinds, kind))
        kinf__invalid_unsupported(invalid, KINF__AT(field, "kind"), kind, kinds);
}

void kinf__binding_check(const struct cJSON *object, const struct cJSON *old,
                         struct kinf__invalid *invalid)
{
    const struct kinf__field role = kinf__field(NULL, "roleRef");
    const struct kinf__field subjects = kinf__field(NULL, "subjects");
    bool is_namespaced = strcmp(kinf__doc_text(object, "kind", NULL), "RoleBinding") == 0;
    const char *kind = kinf__doc_text(object, "roleRef", "kind", NULL);
    const struct cJSON *subject;
    size_t i = 0;

    (void)old;
    if (strcmp(kind, "ClusterRole") != 0 && (!is_namespaced || strcmp(kind, "Role") != 0))
        kinf__invalid_unsupported(invalid, KINF__AT(&role, "kind"), kind,
                                  is_namespaced ? "\"Role\", \"ClusterRole\"" : "\"ClusterRole\"");
    kinf__kind_require(kinf__doc_get(object, "roleRef"), &role, "name", invalid);
    cJSON_ArrayForEach(subject, kinf__doc_get(object, "subjects"))
    {
        const struct kinf__field item = kinf__field_index(&subjects, i++);

        check_subject(subject, &item, invalid);
    }
}

/* --- events --- */

/* The name in the other group; NULL: the same. */
static const char *other_name(const char *name)
{
    static const struct {
        const char *core, *events;
    } names[] = {
        { "involvedObject", "regarding" },
        { "message", "note" },
        { "reportingComponent", "reportingController" },
        { "source", "deprecatedSource" },
        { "firstTimestamp", "deprecatedFirstTimestamp" },
        { "lastTimestamp", "deprecatedLastTimestamp" },
        { "count", "deprecatedCount" },
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        if (strcmp(names[i].core, name) == 0)
            return names[i].events;
        if (strcmp(names[i].events, name) == 0)
            return names[i].core;
    }
    return NULL;
}

int kinf__event_rename(struct cJSON *object)
{
    struct cJSON *member = object->child, *next;

    for (; member != NULL; member = next) {
        const char *name = other_name(member->string);
        char *copy;

        next = member->next;
        /* One group leaves texts out that are empty in the other one. */
        if (cJSON_IsString(member) && *member->valuestring == '\0') {
            kinf__doc_drop(object, member);
        } else if (name != NULL) {
            copy = strdup(name);
            if (copy == NULL)
                return KINF_ERR_NO_MEMORY;
            free(member->string);
            member->string = copy;
        }
    }
    return 0;
}

/* Both kinds of events are one to the server: faults have the names of the older one's fields. */
static void check_about(const struct cJSON *object, const char *about,
                        struct kinf__invalid *invalid)
{
    const char *its = kinf__doc_text(object, about, "namespace", NULL),
               *own = kinf__doc_text(object, "metadata", "namespace", NULL);

    if (strcmp(*its != '\0' ? its : "default", own) != 0)
        kinf__invalid_text(invalid, KINF__AT(NULL, "involvedObject.namespace"), its,
                           "does not match event.namespace");
}

void kinf__core_event_check(const struct cJSON *object, const struct cJSON *old,
                            struct kinf__invalid *invalid)
{
    (void)old;
    check_about(object, "involvedObject", invalid);
}

static void check_new_event(const struct cJSON *object, struct kinf__invalid *invalid)
{
    const char *type = kinf__doc_text(object, "type", NULL);
    char why[KINF__NAME_FAULT_SIZE];

    kinf__kind_require(object, NULL, "eventTime", invalid);
    snprintf(why, sizeof why, "has invalid value: %.128s", type);
    if (strcmp(type, "Normal") != 0 && strcmp(type, "Warning") != 0)
        kinf__invalid_text(invalid, KINF__AT(NULL, "type"), "", why);
}

/* Series go on; the rest stays, also of what the older group has left open. */
static void check_changed_event(const struct cJSON *object, const struct cJSON *old,
                                struct kinf__invalid *invalid)
{
    static const char *const members[] = {
        "regarding",
        "reason",
        "note",
        "deprecatedSource",
        "deprecatedFirstTimestamp",
        "deprecatedLastTimestamp",
        "deprecatedCount",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingController",
        "reportingInstance",
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++) {
        const char *name = other_name(members[i]);

        if (name == NULL || strcmp(name, "reportingComponent") == 0)
            name = members[i];
        if (!kinf__doc_equal(kinf__doc_get(old, members[i]), kinf__doc_get(object, members[i])))
            kinf__invalid_value(invalid, KINF__AT(NULL, name), kinf__doc_get(object, members[i]),
                                KINF__IMMUTABLE);
    }
}

void kinf__event_check(const struct cJSON *object, const struct cJSON *old,
                       struct kinf__invalid *invalid)
{
    check_about(object, "regarding", invalid);
    if (old == NULL)
        check_new_event(object, invalid);
    else
        check_changed_event(object, old, invalid);
}
