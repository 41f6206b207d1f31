/*
 * The kinds that have rules of their own, and what all kinds share: status is written by its
 * subresource and nothing else is. Neighbours: kinds_*.c have the rules, verbs.c asks.
 */
#include "apiserver/kinds.h"

#include <string.h>

#include "apiserver/definitions.h"
#include "apiserver/kinds_priv.h"
#include "apiserver/metadata.h"
#include "apiserver/namespaces.h"
#include "apiserver/refuse.h"

struct rules {
    const char *group;
    const char *kind;
    enum kinf__name_form form;
    bool has_generation;
    const char *status;    /* of a new object, in JSON; NULL: none */
    kinf__rule_cb *create; /* of a new object */
    kinf__rule_cb *update; /* of an update of the object itself */
    kinf__check_cb *check;
};

#define SUBDOMAIN KINF__NAME_SUBDOMAIN
#define SHORT     KINF__NAME_SHORT_SUBDOMAIN
#define LABEL     KINF__NAME_LABEL
#define SEGMENT   KINF__NAME_SEGMENT
#define APPS      "apps"
#define BATCH     "batch"
#define NETWORK   "networking.k8s.io"
#define STORAGE   "storage.k8s.io"
#define RBAC      "rbac.authorization.k8s.io"
#define ADMISSION "admissionregistration.k8s.io"

static const char daemon_set_status[] =
    "{\"currentNumberScheduled\":0,\"numberMisscheduled\":0,\"desiredNumberScheduled\":0,"
    "\"numberReady\":0}";
static const char budget_status[] =
    "{\"disruptionsAllowed\":0,\"currentHealthy\":0,\"desiredHealthy\":0,\"expectedPods\":0}";
static const char node_status[] =
    "{\"nodeInfo\":{\"machineID\":\"\",\"systemUUID\":\"\",\"bootID\":\"\",\"kernelVersion\":\"\","
    "\"osImage\":\"\",\"containerRuntimeVersion\":\"\",\"kubeletVersion\":\"\","
    "\"kubeProxyVersion\":\"\",\"operatingSystem\":\"\",\"architecture\":\"\"}}";
static const char balancer_status[] = "{\"loadBalancer\":{}}";
static const char pending_status[] = "{\"phase\":\"Pending\"}";
static const char replicas_status[] = "{\"replicas\":0}";
static const char stateful_status[] = "{\"replicas\":0,\"availableReplicas\":0}";
static const char autoscaler_status[] = "{\"desiredReplicas\":0,\"currentMetrics\":null}";

/* What is not here has names that are subdomains, no generation, and an empty status if any. */
static const struct rules table[] = {
    { "", "Namespace", LABEL, false, "{\"phase\":\"Active\"}", kinf__namespace_write,
      kinf__namespace_write, kinf__namespace_check_fields },
    { "", "Pod", SUBDOMAIN, true, pending_status, kinf__pod_create, kinf__pod_update,
      kinf__pod_check },
    { "", "PodTemplate", SUBDOMAIN, true, NULL, NULL, NULL, kinf__pod_template_check },
    { "", "ReplicationController", SUBDOMAIN, true, replicas_status, NULL, NULL,
      kinf__replication_controller_check },
    { "", "Service", LABEL, false, balancer_status, kinf__service_create, kinf__service_update,
      kinf__service_check },
    { "", "ConfigMap", SUBDOMAIN, false, NULL, NULL, NULL, kinf__config_map_check },
    { "", "Secret", SUBDOMAIN, false, NULL, NULL, NULL, kinf__secret_check },
    { "", "Node", SUBDOMAIN, false, node_status, kinf__node_create, NULL, NULL },
    { "", "PersistentVolume", SUBDOMAIN, false, pending_status, kinf__volume_create, NULL,
      kinf__volume_check },
    { "", "PersistentVolumeClaim", SUBDOMAIN, false, pending_status, kinf__volume_claim_create,
      NULL, kinf__volume_claim_check },
    { "", "ResourceQuota", SUBDOMAIN, false, "{}", NULL, NULL, kinf__quota_check },
    { "", "Event", SUBDOMAIN, false, NULL, kinf__core_event_write, kinf__core_event_write,
      kinf__core_event_check },
    { "events.k8s.io", "Event", SUBDOMAIN, false, NULL, kinf__event_write, kinf__event_write,
      kinf__event_check },
    { APPS, "ControllerRevision", SUBDOMAIN, false, NULL, NULL, NULL, kinf__revision_check },
    { APPS, "Deployment", SUBDOMAIN, true, "{}", NULL, NULL, kinf__deployment_check },
    { APPS, "ReplicaSet", SUBDOMAIN, true, replicas_status, NULL, NULL, kinf__replica_set_check },
    { APPS, "StatefulSet", LABEL, true, stateful_status, NULL, NULL, kinf__stateful_set_check },
    { APPS, "DaemonSet", SUBDOMAIN, true, daemon_set_status, kinf__daemon_set_create,
      kinf__daemon_set_update, kinf__daemon_set_check },
    { BATCH, "Job", SUBDOMAIN, true, "{}", NULL, NULL, kinf__job_check },
    { BATCH, "CronJob", SHORT, true, "{}", NULL, NULL, kinf__cron_job_check },
    { NETWORK, "Ingress", SUBDOMAIN, true, balancer_status, NULL, NULL, kinf__ingress_check },
    { NETWORK, "IngressClass", SUBDOMAIN, true, NULL, NULL, NULL, kinf__ingress_class_check },
    { NETWORK, "ServiceCIDR", SUBDOMAIN, false, NULL, NULL, NULL, kinf__service_range_check },
    { NETWORK, "NetworkPolicy", SUBDOMAIN, true, NULL, NULL, NULL, NULL },
    { "policy", "PodDisruptionBudget", SUBDOMAIN, true, budget_status, NULL, NULL, NULL },
    { "autoscaling", "HorizontalPodAutoscaler", SUBDOMAIN, true, autoscaler_status, NULL, NULL,
      kinf__autoscaler_check },
    { "scheduling.k8s.io", "PriorityClass", SUBDOMAIN, true, NULL, NULL, NULL,
      kinf__priority_class_check },
    { STORAGE, "StorageClass", SUBDOMAIN, false, NULL, NULL, NULL, kinf__storage_class_check },
    { STORAGE, "VolumeAttributesClass", SUBDOMAIN, false, NULL, NULL, NULL,
      kinf__volume_attributes_check },
    { STORAGE, "VolumeAttachment", SUBDOMAIN, false, "{\"attached\":false}", NULL, NULL, NULL },
    { "discovery.k8s.io", "EndpointSlice", SUBDOMAIN, true, NULL, kinf__endpoint_slice_write,
      kinf__endpoint_slice_write, kinf__endpoint_slice_check },
    { "coordination.k8s.io", "Lease", SUBDOMAIN, false, NULL, NULL, NULL, kinf__lease_check },
    { RBAC, "Role", SEGMENT, false, NULL, kinf__role_write, kinf__role_write, kinf__role_check },
    { RBAC, "ClusterRole", SEGMENT, false, NULL, kinf__role_write, kinf__role_write,
      kinf__cluster_role_check },
    { RBAC, "RoleBinding", SEGMENT, false, NULL, NULL, NULL, kinf__binding_check },
    { RBAC, "ClusterRoleBinding", SEGMENT, false, NULL, NULL, NULL, kinf__binding_check },
    { "apiregistration.k8s.io", "APIService", SEGMENT, false, NULL, NULL, NULL,
      kinf__api_service_check },
    { ADMISSION, "MutatingWebhookConfiguration", SUBDOMAIN, true, NULL, NULL, NULL, NULL },
    { ADMISSION, "ValidatingWebhookConfiguration", SUBDOMAIN, true, NULL, NULL, NULL, NULL },
    { ADMISSION, "ValidatingAdmissionPolicy", SUBDOMAIN, true, "{}", NULL, NULL, NULL },
    { ADMISSION, "ValidatingAdmissionPolicyBinding", SUBDOMAIN, true, NULL, NULL, NULL, NULL },
    { "apiextensions.k8s.io", "CustomResourceDefinition", SUBDOMAIN, true,
      "{\"conditions\":null,\"acceptedNames\":{\"plural\":\"\",\"kind\":\"\"}}",
      kinf__definition_write, kinf__definition_write, kinf__definition_check },
};

static const struct rules other_rules = { "", "", SUBDOMAIN, false, NULL, NULL, NULL, NULL };
static const struct rules custom_rules = { "", "", SUBDOMAIN, true, NULL, NULL, NULL, NULL };

static const struct rules *rules_of(const struct kinf__resource *resource)
{
    if (resource->is_custom)
        return &custom_rules;
    for (size_t i = 0; i < KINF__ARRAY_LEN(table); i++) {
        if (strcmp(table[i].kind, resource->kind) == 0 &&
            strcmp(table[i].group, resource->group) == 0)
            return &table[i];
    }
    return &other_rules;
}

static bool is(const struct kinf__resource *resource, const char *group, const char *kind)
{
    return strcmp(resource->kind, kind) == 0 && strcmp(resource->group, group) == 0;
}

/* --- shared by the rules --- */

static int fill_from(struct cJSON *object, const struct cJSON *missing)
{
    const struct cJSON *member;

    cJSON_ArrayForEach(member, missing)
    {
        struct cJSON *there = kinf__doc_get(object, member->string);
        int failed = 0;

        if (there == NULL || (cJSON_IsNull(there) && !cJSON_IsNull(member)))
            failed = kinf__doc_set(object, member->string, kinf__doc_dup(member));
        else if (cJSON_IsObject(member) && cJSON_IsObject(there))
            failed = fill_from(there, member);
        if (failed < 0)
            return failed;
    }
    return 0;
}

int kinf__kind_fill(struct cJSON *object, const char *json)
{
    KINF__AUTO_DOC *missing = cJSON_Parse(json);

    return missing != NULL ? fill_from(object, missing) : KINF_ERR_NO_MEMORY;
}

void kinf__kind_check_same(const struct cJSON *old, const struct cJSON *object,
                           const struct kinf__field *parent, const char *name, const char *why,
                           struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, name);
    const struct cJSON *value = kinf__doc_get(object, name);

    if (!kinf__doc_equal(kinf__doc_get(old, name), value))
        kinf__invalid_value(invalid, &field, value, why);
}

void kinf__kind_check_not_negative(const struct cJSON *object, const struct kinf__field *parent,
                                   const char *name, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, name);
    int64_t number = kinf__doc_integer(object, name, 0);

    if (number < 0)
        kinf__invalid_integer(invalid, &field, number, "must be greater than or equal to 0");
}

void kinf__kind_require(const struct cJSON *object, const struct kinf__field *parent,
                        const char *name, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, name);

    if (*kinf__doc_text(object, name, NULL) == '\0')
        kinf__invalid_required(invalid, &field, "");
}

void kinf__kind_require_items(const struct cJSON *object, const struct kinf__field *parent,
                              const char *name, const char *why, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, name);

    if (cJSON_GetArraySize(kinf__doc_get(object, name)) == 0)
        kinf__invalid_required(invalid, &field, why);
}

void kinf__kind_require_each(const struct cJSON *list, const struct kinf__field *field,
                             const char *name, const char *why, struct kinf__invalid *invalid)
{
    const struct cJSON *element;
    size_t i = 0;

    cJSON_ArrayForEach(element, list)
    {
        const struct kinf__field item = kinf__field_index(field, i++);
        const struct kinf__field member = kinf__field(&item, name);

        if (*kinf__doc_text(element, name, NULL) == '\0')
            kinf__invalid_required(invalid, &member, why);
    }
}

void kinf__kind_check_fixed(const struct cJSON *object, const struct cJSON *old, const char *name,
                            struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, name);

    if (old != NULL && !kinf__doc_equal(kinf__doc_get(old, name), kinf__doc_get(object, name)))
        kinf__invalid_value(invalid, &field, NULL, KINF__IMMUTABLE);
}

/* --- status --- */

/* Of the version that the object is written in. */
static bool has_status(struct kinf__resource *resource, const struct cJSON *object)
{
    const char *api_version = kinf__doc_text(object, "apiVersion", NULL);
    const char *slash = strchr(api_version, '/');
    struct kinf__resource_version *version =
        kinf__resource_find_version(resource, slash != NULL ? slash + 1 : api_version);

    if (version == NULL)
        version = &resource->versions[0];
    return version->has_status;
}

/* Numbers that are 0 are told all the same. */
static int fill_status(const struct rules *rules, struct cJSON *object)
{
    struct cJSON *status;

    if (rules->status == NULL)
        return 0;
    status = kinf__doc_object(object, "status");
    return status != NULL ? kinf__kind_fill(status, rules->status) : KINF_ERR_NO_MEMORY;
}

/* Puts `old`'s member into the object; none if it has none. */
static int restore(const struct cJSON *old, struct cJSON *object, const char *name)
{
    const struct cJSON *member = kinf__doc_get(old, name);

    if (member != NULL)
        return kinf__doc_set(object, name, kinf__doc_dup(member));
    kinf__doc_remove(object, name);
    return 0;
}

/* Of those that may be written with a status, which are many: upstream forgot few. */
static int restore_metadata(const struct kinf__resource *resource, const struct cJSON *old,
                            struct cJSON *object)
{
    static const char *const members[] = { "labels", "annotations", "finalizers", "ownerReferences",
                                           "generation" };
    const struct cJSON *old_metadata = kinf__doc_get(old, "metadata");
    struct cJSON *metadata = kinf__doc_get(object, "metadata");
    bool is_whole = resource->is_custom || is(resource, "storage.k8s.io", "VolumeAttachment");
    int failed = 0;

    for (size_t i = 0; failed == 0 && is_whole && i < KINF__ARRAY_LEN(members); i++)
        failed = restore(old_metadata, metadata, members[i]);
    if (failed == 0 && is(resource, APPS, "Deployment"))
        failed = restore(old_metadata, metadata, "labels");
    if (failed == 0 && is(resource, "", "Pod"))
        failed = restore(old_metadata, metadata, "ownerReferences");
    return failed;
}

/* All but the status is as it was: in a copy of `old`, from which the object takes its members. */
static int write_status(const struct kinf__write *write)
{
    struct cJSON *object = write->object;
    struct cJSON *member = object->child, *next;
    int failed = 0;

    for (; member != NULL; member = next) {
        next = member->next;
        if (strcmp(member->string, "status") != 0 && strcmp(member->string, "metadata") != 0 &&
            strcmp(member->string, "apiVersion") != 0 && strcmp(member->string, "kind") != 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(object, member));
    }
    cJSON_ArrayForEach(member, write->old)
    {
        if (failed == 0 && strcmp(member->string, "status") != 0 &&
            kinf__doc_get(object, member->string) == NULL)
            failed = kinf__doc_set(object, member->string, kinf__doc_dup(member));
    }
    if (failed == 0)
        failed = restore_metadata(write->resource, write->old, object);
    return failed;
}

/* --- writes --- */

static int run(kinf__rule_cb *rule, const struct kinf__write *write)
{
    int failed = rule != NULL ? rule(write) : 0;

    return failed == KINF_ERR_NO_MEMORY ? kinf__refuse_no_memory(write->refusal) : failed;
}

int kinf__kind_prepare_create(struct kinf__sim *sim, struct kinf__resource *resource,
                              struct cJSON *object, struct kinf__refusal *refusal)
{
    const struct kinf__write write = { sim, resource, NULL, object, refusal };
    const struct rules *rules = rules_of(resource);
    int failed;

    if (resource->is_going)
        return kinf__refuse_forbidden(
            refusal, resource, kinf__doc_text(object, "metadata", "name", NULL),
            "create not allowed while custom resource definition is terminating");
    failed = fill_status(rules, object);
    if (failed < 0)
        return kinf__refuse_no_memory(refusal);
    return run(rules->create, &write);
}

static int keep_status(const struct kinf__write *write)
{
    if (!has_status(write->resource, write->object))
        return 0;
    if (write->old != NULL)
        return restore(write->old, write->object, "status");
    /* A node brings its status along. */
    if (!is(write->resource, "", "Node"))
        kinf__doc_remove(write->object, "status");
    return 0;
}

int kinf__kind_keep_rest(struct kinf__resource *resource, const struct cJSON *old,
                         struct cJSON *object, const char *subresource,
                         struct kinf__refusal *refusal)
{
    const struct kinf__write write = { NULL, resource, old, object, refusal };

    if (strcmp(subresource, "status") == 0)
        return run(write_status, &write);
    /* Binding writes both halves. */
    return strcmp(subresource, "finalize") != 0 && strcmp(subresource, "binding") != 0
               ? run(keep_status, &write)
               : 0;
}

int kinf__kind_prepare_update(struct kinf__sim *sim, struct kinf__resource *resource,
                              const struct cJSON *old, struct cJSON *object,
                              const char *subresource, struct kinf__refusal *refusal)
{
    const struct kinf__write write = { sim, resource, old, object, refusal };
    const struct rules *rules = rules_of(resource);

    if (strcmp(subresource, "status") == 0)
        return fill_status(rules, object) < 0 ? kinf__refuse_no_memory(refusal) : 0;
    if (strcmp(subresource, "finalize") == 0)
        return run(kinf__namespace_finalize, &write);
    return *subresource == '\0' ? run(rules->update, &write) : 0;
}

int kinf__kind_validate(const struct kinf__resource *resource, const struct cJSON *object,
                        const struct cJSON *old, struct kinf__refusal *refusal)
{
    const struct rules *rules = rules_of(resource);
    const struct kinf__metadata_rules metadata = {
        .form = rules->form,
        .is_extension = resource->is_custom || strcmp(resource->group, "apiextensions.k8s.io") == 0,
    };
    struct kinf__invalid invalid;

    kinf__invalid_init(&invalid, refusal);
    kinf__metadata_validate(object, old, metadata, &invalid);
    if (rules->check != NULL)
        rules->check(object, old, &invalid);
    /* Events of either group are the older one's to the server. */
    return kinf__invalid_finish(&invalid,
                                is(resource, "events.k8s.io", "Event") ? "" : resource->group,
                                resource->kind, kinf__doc_text(object, "metadata", "name", NULL));
}

/* --- generations --- */

bool kinf__kind_has_generation(const struct kinf__resource *resource)
{
    return rules_of(resource)->has_generation;
}

static bool is_wanted(const struct cJSON *member, bool status_counts)
{
    return strcmp(member->string, "metadata") != 0 && strcmp(member->string, "apiVersion") != 0 &&
           (status_counts || strcmp(member->string, "status") != 0);
}

static size_t count_wanted(const struct cJSON *object, bool status_counts)
{
    const struct cJSON *member;
    size_t n = 0;

    cJSON_ArrayForEach(member, object) n += is_wanted(member, status_counts);
    return n;
}

static bool is_metadata_changed(const struct cJSON *old, const struct cJSON *object,
                                const char *name)
{
    return !kinf__doc_equal(kinf__doc_find(old, "metadata", name, NULL),
                            kinf__doc_find(object, "metadata", name, NULL));
}

bool kinf__kind_is_changed(const struct kinf__resource *resource, bool status_counts,
                           const struct cJSON *old, const struct cJSON *object)
{
    bool is_slice = is(resource, "discovery.k8s.io", "EndpointSlice");
    const struct cJSON *member;

    status_counts = status_counts && resource->is_custom;
    /* They are part of what others get of it: replica sets, proxies. */
    if (((is_slice || is(resource, APPS, "Deployment")) &&
         is_metadata_changed(old, object, "annotations")) ||
        (is_slice && is_metadata_changed(old, object, "labels")))
        return true;
    if (count_wanted(old, status_counts) != count_wanted(object, status_counts))
        return true;
    cJSON_ArrayForEach(member, object)
    {
        if (is_wanted(member, status_counts) &&
            !kinf__doc_equal(member, kinf__doc_get(old, member->string)))
            return true;
    }
    return false;
}

/* --- deletion --- */

static bool is_namespace(const struct kinf__resource *resource)
{
    return is(resource, "", "Namespace");
}

/* Admission: namespaces that are never deleted. */
static int check_immortal(const struct kinf__resource *namespaces, const struct cJSON *object,
                          struct kinf__refusal *refusal)
{
    static const char *const immortal[] = { "default", "kube-system", "kube-public" };
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);

    for (size_t i = 0; i < KINF__ARRAY_LEN(immortal); i++) {
        if (strcmp(name, immortal[i]) == 0)
            return kinf__refuse_forbidden(refusal, namespaces, name,
                                          "this namespace may not be deleted");
    }
    return 0;
}

int kinf__kind_prepare_delete(struct kinf__sim *sim, struct kinf__resource *resource,
                              struct cJSON *object, struct kinf__refusal *refusal)
{
    int failed = is_namespace(resource) ? check_immortal(resource, object, refusal) : 0;

    (void)sim;
    if (failed < 0)
        return failed;
    if (is_namespace(resource))
        failed = kinf__namespace_begin_end(object);
    else if (is(resource, "apiextensions.k8s.io", "CustomResourceDefinition"))
        failed = kinf__definition_begin_end(object);
    return failed == KINF_ERR_NO_MEMORY ? kinf__refuse_no_memory(refusal) : failed;
}

static bool has_items(const struct cJSON *array)
{
    return cJSON_IsArray(array) && array->child != NULL;
}

bool kinf__kind_is_held(const struct kinf__resource *resource, const struct cJSON *object)
{
    return has_items(kinf__doc_find(object, "metadata", "finalizers", NULL)) ||
           (is_namespace(resource) &&
            has_items(kinf__doc_find(object, "spec", "finalizers", NULL)));
}
