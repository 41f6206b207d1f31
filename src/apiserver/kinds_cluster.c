/*
 * What a cluster is run with: namespaces and quotas, nodes and leases, priority classes, API services.
 * Neighbours: kinds.c, namespaces.c, api_services.c.
 */
#include "apiserver/kinds_priv.h"

#include <stdio.h>
#include <string.h>

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
    return spec != NULL ? kinf__doc_add_text(spec, "finalizers", "kubernetes") : KINF_ERR_NO_MEMORY;
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

void kinf__quota_check(const struct cJSON *object, const struct cJSON *old,
                       struct kinf__invalid *invalid)
{
    const struct kinf__field spec = kinf__field(NULL, "spec");
    const struct kinf__field hard = kinf__field(&spec, "hard");
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
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct kinf__field duration_field = kinf__field(&field, "leaseDurationSeconds");
    const struct cJSON *spec = kinf__doc_get(object, "spec");
    int64_t duration_s = kinf__doc_integer(spec, "leaseDurationSeconds", 1);

    (void)old;
    if (duration_s <= 0)
        kinf__invalid_integer(invalid, &duration_field, duration_s, "must be greater than 0");
    kinf__kind_check_not_negative(spec, &field, "leaseTransitions", invalid);
}

/* --- priority classes, API services --- */

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

void kinf__api_service_check(const struct cJSON *object, const struct cJSON *old,
                             struct kinf__invalid *invalid)
{
    const struct kinf__field metadata = kinf__field(NULL, "metadata");
    const struct kinf__field field = kinf__field(&metadata, "name");
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);
    char wanted[KINF__NAME_FAULT_SIZE], why[KINF__NAME_FAULT_SIZE + 64];

    (void)old;
    snprintf(wanted, sizeof wanted, "%.63s.%.253s", kinf__doc_text(object, "spec", "version", NULL),
             kinf__doc_text(object, "spec", "group", NULL));
    snprintf(why, sizeof why, "must be `spec.version+\".\"+spec.group`: \"%s\"", wanted);
    if (strcmp(name, wanted) != 0)
        kinf__invalid_text(invalid, &field, name, why);
}
