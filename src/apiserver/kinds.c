/*
 * The kinds that have rules of their own, and what all kinds share: status is written by its
 * subresource and nothing else is. Neighbours: kinds_*.c have the rules, verbs.c asks.
 */
#include "apiserver/kinds.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/definitions.h"
#include "apiserver/kinds_priv.h"
#include "apiserver/namespaces.h"
#include "apiserver/refuse.h"
#include "apiserver/types.h"

struct rules {
    const char *group;
    const char *kind;
    enum kinf__name_form form;
    bool has_generation;
    const char *status;    /* of a new object, in JSON; NULL: none */
    const char *filled;    /* what Go's structs have always, though nobody has said it, likewise */
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
static const char core_event_members[] =
    "{\"eventTime\":null,\"firstTimestamp\":null,\"lastTimestamp\":null,"
    "\"reportingComponent\":\"\",\"reportingInstance\":\"\"}";
static const char event_members[] =
    "{\"eventTime\":null,\"deprecatedFirstTimestamp\":null,\"deprecatedLastTimestamp\":null}";
static const char balancer_status[] = "{\"loadBalancer\":{}}";
static const char pending_status[] = "{\"phase\":\"Pending\"}";
static const char replicas_status[] = "{\"replicas\":0}";
static const char stateful_status[] = "{\"replicas\":0,\"availableReplicas\":0}";
static const char autoscaler_status[] = "{\"desiredReplicas\":0,\"currentMetrics\":null}";

/* What is not here has names that are subdomains, no generation, and an empty status if any. */
static const struct rules table[] = {
    { "", "Namespace", LABEL, .status = "{\"phase\":\"Active\"}", .create = kinf__namespace_write,
      .update = kinf__namespace_write, .check = kinf__namespace_check_fields },
    { "", "Pod", SUBDOMAIN, .has_generation = true, .status = pending_status,
      .create = kinf__pod_create, .update = kinf__pod_update, .check = kinf__pod_check },
    { "", "PodTemplate", SUBDOMAIN, .has_generation = true, .check = kinf__pod_template_check },
    { "", "ReplicationController", SUBDOMAIN, .has_generation = true, .status = replicas_status,
      .check = kinf__replication_controller_check },
    { "", "Service", LABEL, .status = balancer_status, .create = kinf__service_create,
      .update = kinf__service_update, .check = kinf__service_check },
    { "", "ConfigMap", SUBDOMAIN, .check = kinf__config_map_check },
    { "", "Secret", SUBDOMAIN, .check = kinf__secret_check },
    { "", "Node", SUBDOMAIN, .status = node_status, .create = kinf__node_create },
    { "", "PersistentVolume", SUBDOMAIN, .status = pending_status, .create = kinf__volume_create,
      .check = kinf__volume_check },
    { "", "PersistentVolumeClaim", SUBDOMAIN, .status = pending_status,
      .create = kinf__volume_claim_create, .update = kinf__volume_claim_update,
      .check = kinf__volume_claim_check },
    { "", "ResourceQuota", SUBDOMAIN, .status = "{}", .check = kinf__quota_check },
    { "", "Event", SUBDOMAIN, .filled = core_event_members, .check = kinf__core_event_check },
    { "events.k8s.io", "Event", SUBDOMAIN, .filled = event_members, .check = kinf__event_check },
    { APPS, "ControllerRevision", SUBDOMAIN, .check = kinf__revision_check },
    { APPS, "Deployment", SUBDOMAIN, .has_generation = true, .status = "{}",
      .check = kinf__deployment_check },
    { APPS, "ReplicaSet", SUBDOMAIN, .has_generation = true, .status = replicas_status,
      .check = kinf__replica_set_check },
    { APPS, "StatefulSet", LABEL, .has_generation = true, .status = stateful_status,
      .check = kinf__stateful_set_check },
    { APPS, "DaemonSet", SUBDOMAIN, .has_generation = true, .status = daemon_set_status,
      .create = kinf__daemon_set_create, .update = kinf__daemon_set_update,
      .check = kinf__daemon_set_check },
    { BATCH, "Job", SUBDOMAIN, .has_generation = true, .status = "{}", .check = kinf__job_check },
    { BATCH, "CronJob", SHORT, .has_generation = true, .status = "{}",
      .check = kinf__cron_job_check },
    { NETWORK, "Ingress", SUBDOMAIN, .has_generation = true, .status = balancer_status,
      .check = kinf__ingress_check },
    { NETWORK, "IngressClass", SUBDOMAIN, .has_generation = true },
    { NETWORK, "NetworkPolicy", SUBDOMAIN, .has_generation = true },
    { "policy", "PodDisruptionBudget", SUBDOMAIN, .has_generation = true, .status = budget_status },
    { "autoscaling", "HorizontalPodAutoscaler", SUBDOMAIN, .has_generation = true,
      .status = autoscaler_status, .check = kinf__autoscaler_check },
    { "scheduling.k8s.io", "PriorityClass", SUBDOMAIN, .has_generation = true,
      .check = kinf__priority_class_check },
    { STORAGE, "VolumeAttachment", SUBDOMAIN, .status = "{\"attached\":false}" },
    { "discovery.k8s.io", "EndpointSlice", SUBDOMAIN, .has_generation = true,
      .filled = "{\"ports\":null}" },
    { "coordination.k8s.io", "Lease", SUBDOMAIN, .check = kinf__lease_check },
    { RBAC, "Role", SEGMENT, .filled = "{\"rules\":null}", .check = kinf__role_check },
    { RBAC, "ClusterRole", SEGMENT, .filled = "{\"rules\":null}", .check = kinf__role_check },
    { RBAC, "RoleBinding", SEGMENT, .check = kinf__binding_check },
    { RBAC, "ClusterRoleBinding", SEGMENT, .check = kinf__binding_check },
    { "apiregistration.k8s.io", "APIService", SEGMENT, .check = kinf__api_service_check },
    { ADMISSION, "MutatingWebhookConfiguration", SUBDOMAIN, .has_generation = true },
    { ADMISSION, "ValidatingWebhookConfiguration", SUBDOMAIN, .has_generation = true },
    { ADMISSION, "ValidatingAdmissionPolicy", SUBDOMAIN, .has_generation = true, .status = "{}" },
    { ADMISSION, "ValidatingAdmissionPolicyBinding", SUBDOMAIN, .has_generation = true },
    { "apiextensions.k8s.io", "CustomResourceDefinition", SUBDOMAIN, .has_generation = true,
      .status = "{\"conditions\":null,\"acceptedNames\":{\"plural\":\"\",\"kind\":\"\"}}",
      .create = kinf__definition_write, .update = kinf__definition_write,
      .check = kinf__definition_check },
};

static const struct rules other_rules = { "", "", SUBDOMAIN, .has_generation = false };
static const struct rules custom_rules = { "", "", SUBDOMAIN, .has_generation = true };

enum demand {
    A_TEXT,           /* that is not empty */
    ITEMS,            /* of a list or a map: at least one */
    NO_CHANGE,        /* immutable */
    NO_CHANGE_UNTOLD, /* likewise; the server does not say what it is not to become */
    NOT_NEGATIVE,
};

/* What is asked of single members, after the rules' check. */
static const struct {
    const char *kind;
    const char *parent; /* "spec"; NULL: the object itself */
    const char *member;
    enum demand demand;
    const char *why; /* of ITEMS */
} demands[] = {
    { "StatefulSet", "spec", "serviceName", NO_CHANGE, NULL },
    { "StatefulSet", "spec", "podManagementPolicy", NO_CHANGE, NULL },
    { "StatefulSet", "spec", "volumeClaimTemplates", NO_CHANGE, NULL },
    { "Job", "spec", "completionMode", NO_CHANGE, NULL },
    { "Job", "spec", "selector", NO_CHANGE, NULL },
    { "Job", "spec", "podFailurePolicy", NO_CHANGE, NULL },
    { "Job", "spec", "backoffLimitPerIndex", NO_CHANGE, NULL },
    { "Job", "spec", "managedBy", NO_CHANGE, NULL },
    { "Job", "spec", "successPolicy", NO_CHANGE, NULL },
    { "IngressClass", "spec", "controller", A_TEXT, NULL },
    { "ServiceCIDR", "spec", "cidrs", ITEMS, "at least one CIDR required" },
    { "StorageClass", NULL, "provisioner", A_TEXT, NULL },
    { "StorageClass", NULL, "provisioner", NO_CHANGE_UNTOLD, NULL },
    { "StorageClass", NULL, "parameters", NO_CHANGE_UNTOLD, NULL },
    { "StorageClass", NULL, "reclaimPolicy", NO_CHANGE_UNTOLD, NULL },
    { "StorageClass", NULL, "volumeBindingMode", NO_CHANGE_UNTOLD, NULL },
    { "VolumeAttributesClass", NULL, "driverName", A_TEXT, NULL },
    { "VolumeAttributesClass", NULL, "parameters", ITEMS,
      "must contain at least one key/value pair" },
    { "EndpointSlice", NULL, "addressType", A_TEXT, NULL },
    { "EndpointSlice", NULL, "addressType", NO_CHANGE_UNTOLD, NULL },
    { "Lease", "spec", "leaseTransitions", NOT_NEGATIVE, NULL },
    { "RoleBinding", NULL, "roleRef", NO_CHANGE, NULL },
    { "ClusterRoleBinding", NULL, "roleRef", NO_CHANGE, NULL },
};

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
    const struct cJSON *value = kinf__doc_get(object, name);

    if (!kinf__doc_equal(kinf__doc_get(old, name), value))
        kinf__invalid_value(invalid, KINF__AT(parent, name), value, why);
}

void kinf__kind_check_not_negative(const struct cJSON *object, const struct kinf__field *parent,
                                   const char *name, struct kinf__invalid *invalid)
{
    int64_t number = kinf__doc_integer(object, name, 0);

    if (number < 0)
        kinf__invalid_integer(invalid, KINF__AT(parent, name), number,
                              "must be greater than or equal to 0");
}

bool kinf__kind_is_supported(const char *supported, const char *word)
{
    char quoted[64];

    snprintf(quoted, sizeof quoted, "\"%s\"", word);
    return strchr(word, '"') == NULL && strstr(supported, quoted) != NULL;
}

void kinf__kind_check_word(const struct cJSON *object, const struct kinf__field *parent,
                           const char *name, const char *supported, struct kinf__invalid *invalid)
{
    const char *word = kinf__doc_text(object, name, NULL);

    if (*word != '\0' && !kinf__kind_is_supported(supported, word))
        kinf__invalid_unsupported(invalid, KINF__AT(parent, name), word, supported);
}

void kinf__kind_check_item_name(struct kinf__node_index *names, struct cJSON *item,
                                const struct kinf__field *field, struct kinf__invalid *invalid)
{
    const struct kinf__field name_field = kinf__field(field, "name");
    const char *name = kinf__doc_text(item, "name", NULL);

    if (*name == '\0')
        kinf__invalid_required(invalid, &name_field, "");
    else if (!kinf__invalid_check_name(invalid, &name_field, KINF__NAME_LABEL, name))
        return;
    else if (kinf__node_index_find(names, name) != NULL)
        kinf__invalid_duplicate(invalid, &name_field, name);
    else
        (void)!kinf__node_index_add(names, name, item, 0);
}

bool kinf__kind_is_same_but(const struct cJSON *old, const struct cJSON *object,
                            void (*forget)(struct cJSON *object))
{
    KINF__AUTO_DOC *before = kinf__doc_dup(old);
    KINF__AUTO_DOC *after = kinf__doc_dup(object);

    if (before == NULL || after == NULL)
        return true;
    forget(before);
    forget(after);
    return kinf__doc_equal(before, after);
}

void kinf__kind_require(const struct cJSON *object, const struct kinf__field *parent,
                        const char *name, struct kinf__invalid *invalid)
{
    if (*kinf__doc_text(object, name, NULL) == '\0')
        kinf__invalid_required(invalid, KINF__AT(parent, name), "");
}

void kinf__kind_require_each(const struct cJSON *list, const struct kinf__field *field,
                             const char *name, const char *why, struct kinf__invalid *invalid)
{
    const struct cJSON *element;
    size_t i = 0;

    cJSON_ArrayForEach(element, list)
    {
        const struct kinf__field item = kinf__field_index(field, i++);

        if (*kinf__doc_text(element, name, NULL) == '\0')
            kinf__invalid_required(invalid, KINF__AT(&item, name), why);
    }
}

static void check_demand(size_t i, const struct cJSON *object, const struct cJSON *old,
                         struct kinf__invalid *invalid)
{
    const char *parent = demands[i].parent, *name = demands[i].member;
    const struct kinf__field field = kinf__field(NULL, parent),
                             *at = parent != NULL ? &field : NULL;
    const struct cJSON *in = parent != NULL ? kinf__doc_get(object, parent) : object;
    const struct cJSON *before = parent != NULL ? kinf__doc_get(old, parent) : old;

    switch (demands[i].demand) {
    case A_TEXT:
        kinf__kind_require(in, at, name, invalid);
        break;
    case ITEMS:
        if (cJSON_GetArraySize(kinf__doc_get(in, name)) == 0)
            kinf__invalid_required(invalid, KINF__AT(at, name), demands[i].why);
        break;
    case NO_CHANGE:
        if (old != NULL)
            kinf__kind_check_same(before, in, at, name, KINF__IMMUTABLE, invalid);
        break;
    case NO_CHANGE_UNTOLD:
        if (old != NULL && !kinf__doc_equal(kinf__doc_get(before, name), kinf__doc_get(in, name)))
            kinf__invalid_value(invalid, KINF__AT(at, name), NULL, KINF__IMMUTABLE);
        break;
    case NOT_NEGATIVE:
        kinf__kind_check_not_negative(in, at, name, invalid);
        break;
    }
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

static int fill_members(const struct rules *rules, struct cJSON *object)
{
    return rules->filled != NULL ? kinf__kind_fill(object, rules->filled) : 0;
}

int kinf__kind_restore(const struct cJSON *old, struct cJSON *object, const char *name)
{
    const struct cJSON *member = kinf__doc_get(old, name);

    if (member != NULL)
        return kinf__doc_set(object, name, kinf__doc_dup(member));
    kinf__doc_remove(object, name);
    return 0;
}

int kinf__kind_keep_unsaid(const struct cJSON *old, struct cJSON *object, const char *const *names,
                           size_t n_names)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < n_names; i++) {
        if (kinf__doc_get(object, names[i]) == NULL)
            failed = kinf__kind_restore(old, object, names[i]);
    }
    return failed;
}

/* Of those that may be written with a status, which are many: upstream forgot few. */
static int restore_metadata(const struct kinf__resource *resource, const struct cJSON *old,
                            struct cJSON *object)
{
    static const char *const members[] = { "labels", "annotations", "finalizers", "ownerReferences",
                                           "generation" };
    const struct cJSON *old_metadata = kinf__doc_get(old, "metadata");
    struct cJSON *metadata = kinf__doc_get(object, "metadata");
    bool is_whole = is(resource, STORAGE, "VolumeAttachment");
    int failed = 0;

    for (size_t i = 0; failed == 0 && is_whole && i < KINF__ARRAY_LEN(members); i++)
        failed = kinf__kind_restore(old_metadata, metadata, members[i]);
    if (failed == 0 && is(resource, APPS, "Deployment"))
        failed = kinf__kind_restore(old_metadata, metadata, "labels");
    if (failed == 0 && is(resource, "", "Pod"))
        failed = kinf__kind_restore(old_metadata, metadata, "ownerReferences");
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
    if (failed == 0)
        failed = fill_members(rules, object);
    return failed < 0 ? kinf__refuse_no_memory(refusal) : run(rules->create, &write);
}

static int keep_status(const struct kinf__write *write)
{
    if (!has_status(write->resource, write->object))
        return 0;
    if (write->old != NULL)
        return kinf__kind_restore(write->old, write->object, "status");
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
    /* Binding writes both halves; parts of pods are taken when their managers are known. */
    return kinf__has_word("finalize,binding,resize,ephemeralcontainers", subresource)
               ? 0
               : run(keep_status, &write);
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
    if (strcmp(subresource, "resize") == 0)
        return run(kinf__pod_resize, &write);
    if (strcmp(subresource, "ephemeralcontainers") == 0)
        return run(kinf__pod_add_ephemeral, &write);
    if (*subresource != '\0')
        return 0;
    return fill_members(rules, object) < 0 ? kinf__refuse_no_memory(refusal)
                                           : run(rules->update, &write);
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
    for (size_t i = 0; !resource->is_custom && i < KINF__ARRAY_LEN(demands); i++) {
        if (strcmp(demands[i].kind, resource->kind) == 0)
            check_demand(i, object, old, &invalid);
    }
    /* Events of either group are the older one's to the server. */
    return kinf__invalid_finish(&invalid,
                                is(resource, "events.k8s.io", "Event") ? "" : resource->group,
                                resource->kind, kinf__doc_text(object, "metadata", "name", NULL));
}

int kinf__kind_convert(const struct kinf__resource *resource, struct cJSON *object)
{
    return kinf__event_rename(object) < 0 ? KINF_ERR_NO_MEMORY
                                          : fill_members(rules_of(resource), object);
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
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);

    return kinf__has_word("default,kube-system,kube-public", name)
               ? kinf__refuse_forbidden(refusal, namespaces, name,
                                        "this namespace may not be deleted")
               : 0;
}

int kinf__kind_prepare_delete(const struct kinf__resource *resource, struct cJSON *object,
                              struct kinf__refusal *refusal)
{
    int failed = is_namespace(resource) ? check_immortal(resource, object, refusal) : 0;

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
