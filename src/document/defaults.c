/*
 * Defaults that take a rule. Neighbours: schema.txt has those that are values, schema_prune.c fills
 * them in; verbs.c calls both.
 */
#include "document/schema.h"

#include <string.h>

#include "base/compiler.h"
#include "document/node_index.h"
#include "rest/secret.h"

/* --- filling in --- */

/* Go takes "" for none. */
static bool is_missing(const struct cJSON *member)
{
    return member == NULL || (cJSON_IsString(member) && member->valuestring[0] == '\0');
}

static bool is_zero(const struct cJSON *member)
{
    return cJSON_IsNumber(member) && member->valuedouble == 0;
}

static int set_text_once(struct cJSON *object, const char *name, const char *text)
{
    return is_missing(kinf__doc_get(object, name)) ? kinf__doc_set_text(object, name, text) : 0;
}

static int copy_if_empty(struct cJSON *object, const char *name, const struct cJSON *from)
{
    if (kinf__doc_is_empty(from) || !kinf__doc_is_empty(kinf__doc_get(object, name)))
        return 0;
    return kinf__doc_set(object, name, kinf__doc_dup(from));
}

/* What `from` has and the object has not, also in objects that both have. */
static int add_missing(struct cJSON *object, const struct cJSON *from)
{
    KINF__AUTO_NODE_MEMBERS members = { NULL, false, { KINF__HMAP_INIT } };
    int failed;

    if (!cJSON_IsObject(object) || !cJSON_IsObject(from))
        return 0;
    failed = kinf__node_members_init(&members, object, (size_t)cJSON_GetArraySize(from));
    for (const struct cJSON *value = from->child; failed == 0 && value != NULL;
         value = value->next) {
        struct cJSON *old = kinf__node_members_get(&members, value->string);

        failed = is_missing(old)
                     ? kinf__node_members_set(&members, value->string, kinf__doc_dup(value))
                     : add_missing(old, value);
    }
    return failed;
}

/* Likewise of an object below, which is made if there is none. */
static int add_missing_to(struct cJSON *object, const char *name, const struct cJSON *from)
{
    if (!cJSON_IsObject(from))
        return 0;
    object = kinf__doc_object(object, name);
    return object != NULL ? add_missing(object, from) : KINF_ERR_NO_MEMORY;
}

static int add_defaults(struct cJSON *object, const char *json)
{
    KINF__AUTO_DOC *from = cJSON_Parse(json);

    return from != NULL ? add_missing(object, from) : KINF_ERR_NO_MEMORY;
}

/* The list, if there is none, begins with what stands under `first`. */
static int begin_list(struct cJSON *object, const char *list, const char *first)
{
    const char *text = kinf__doc_text(object, first, NULL);

    return *text != '\0' && kinf__doc_get(object, list) == NULL
               ? kinf__doc_add_text(object, list, text)
               : 0;
}

/* Of each port, one number is the other if that says nothing: 0 and "" are none. */
static int default_ports(const struct cJSON *object, const char *name, const char *from)
{
    struct cJSON *port;

    cJSON_ArrayForEach(port, kinf__doc_get(object, "ports"))
    {
        const struct cJSON *number = kinf__doc_get(port, from), *old = kinf__doc_get(port, name);

        if (number != NULL && (is_missing(old) || is_zero(old)) &&
            kinf__doc_set(port, name, kinf__doc_dup(number)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* --- pods --- */

/* The tag, in front of a digest, is "latest", or there is neither. */
static bool is_latest(const char *image)
{
    size_t len = strcspn(image, "@");
    size_t at = len;

    if (len == 0)
        return false;
    while (at > 0 && image[at - 1] != ':' && image[at - 1] != '/')
        at--;
    if (at == 0 || image[at - 1] == '/')
        return image[len] == '\0';
    return len - at == strlen("latest") && memcmp(image + at, "latest", len - at) == 0;
}

static int default_pull_policy(struct cJSON *object, const char *name, const char *image)
{
    return set_text_once(object, name, is_latest(image) ? "Always" : "IfNotPresent");
}

static int default_containers(struct cJSON *spec, const char *name)
{
    struct cJSON *container;

    cJSON_ArrayForEach(container, kinf__doc_get(spec, name))
    {
        if (cJSON_IsObject(container) &&
            default_pull_policy(container, "imagePullPolicy",
                                kinf__doc_text(container, "image", NULL)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* A volume that says nothing but its name is an empty one. */
static int default_volume(struct cJSON *volume)
{
    struct cJSON *image = kinf__doc_get(volume, "image"), *member;

    if (cJSON_IsObject(image))
        return default_pull_policy(image, "pullPolicy", kinf__doc_text(image, "reference", NULL));
    cJSON_ArrayForEach(member, volume)
    {
        if (strcmp(member->string, "name") != 0)
            return 0;
    }
    return kinf__doc_object(volume, "emptyDir") != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* serviceAccount is the old name of serviceAccountName, which wins. */
static int default_service_account(struct cJSON *spec)
{
    const char *name = kinf__doc_text(spec, "serviceAccountName", NULL);
    const char *old = kinf__doc_text(spec, "serviceAccount", NULL);

    if (*name == '\0')
        return *old != '\0' ? kinf__doc_set_text(spec, "serviceAccountName", old) : 0;
    return strcmp(name, old) != 0 ? kinf__doc_set_text(spec, "serviceAccount", name) : 0;
}

static int default_pod_spec(struct cJSON *spec)
{
    struct cJSON *volume;
    int failed = 0;

    if (!cJSON_IsObject(spec))
        return 0;
    cJSON_ArrayForEach(volume, kinf__doc_get(spec, "volumes"))
    {
        if (cJSON_IsObject(volume) && failed == 0)
            failed = default_volume(volume);
    }
    if (failed < 0 || add_defaults(spec, "{\"securityContext\":{}}") < 0 ||
        default_containers(spec, "containers") < 0 ||
        default_containers(spec, "initContainers") < 0 ||
        default_containers(spec, "ephemeralContainers") < 0)
        return KINF_ERR_NO_MEMORY;
    return default_service_account(spec);
}

/* Limits are requests where these say nothing. */
static int default_running(struct cJSON *spec, const char *name)
{
    bool on_host = kinf__doc_is_true(spec, "hostNetwork");
    struct cJSON *container, *resources;

    cJSON_ArrayForEach(container, kinf__doc_get(spec, name))
    {
        resources = kinf__doc_get(container, "resources");
        if (add_missing_to(resources, "requests", kinf__doc_get(resources, "limits")) < 0 ||
            (on_host && default_ports(container, "hostPort", "containerPort") < 0))
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int default_pod(struct cJSON *pod)
{
    struct cJSON *spec = kinf__doc_get(pod, "spec");

    if (default_running(spec, "containers") < 0 || default_running(spec, "initContainers") < 0)
        return KINF_ERR_NO_MEMORY;
    return add_defaults(spec, "{\"enableServiceLinks\":true}");
}

/* --- workloads --- */

/* The members of rollingUpdate, where it is made: schema.txt has them for one that is there. */
static int default_rolling(struct cJSON *object, const char *strategy, const char *json)
{
    struct cJSON *node = kinf__doc_find(object, "spec", strategy, NULL);

    return strcmp(kinf__doc_text(node, "type", NULL), "RollingUpdate") == 0
               ? add_defaults(node, json)
               : 0;
}

static int default_deployment(struct cJSON *object)
{
    return default_rolling(object, "strategy",
                           "{\"rollingUpdate\":{\"maxUnavailable\":\"25%\",\"maxSurge\":\"25%\"}}");
}

static int default_daemon_set(struct cJSON *object)
{
    return default_rolling(object, "updateStrategy",
                           "{\"rollingUpdate\":{\"maxUnavailable\":1,\"maxSurge\":0}}");
}

static int default_stateful_set(struct cJSON *object)
{
    struct cJSON *claim;

    cJSON_ArrayForEach(claim, kinf__doc_find(object, "spec", "volumeClaimTemplates", NULL))
    {
        if (add_defaults(claim, "{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\"}") < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (add_defaults(kinf__doc_get(object, "spec"),
                     "{\"persistentVolumeClaimRetentionPolicy\":{\"whenDeleted\":\"Retain\","
                     "\"whenScaled\":\"Retain\"}}") < 0)
        return KINF_ERR_NO_MEMORY;
    return default_rolling(object, "updateStrategy",
                           "{\"rollingUpdate\":{\"partition\":0,\"maxUnavailable\":1}}");
}

static int default_replication_controller(struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec");
    const struct cJSON *labels = kinf__doc_find(spec, "template", "metadata", "labels", NULL);

    if (!cJSON_IsObject(labels))
        return 0;
    return copy_if_empty(spec, "selector", labels) < 0
               ? KINF_ERR_NO_MEMORY
               : copy_if_empty(kinf__doc_object(object, "metadata"), "labels", labels);
}

/* --- jobs --- */

/* A bit of a type that cJSON does not use: of labels of a job that has no uid yet. */
#define SHARED (1 << 16)

static int label_template(struct cJSON *spec, const char *name, const char *uid)
{
    struct cJSON *template = kinf__doc_object(spec, "template");
    struct cJSON *labels = kinf__doc_object(kinf__doc_object(template, "metadata"), "labels");

    if (kinf__doc_set_text(labels, "batch.kubernetes.io/controller-uid", uid) < 0 ||
        kinf__doc_set_text(labels, "batch.kubernetes.io/job-name", name) < 0 ||
        kinf__doc_set_text(labels, "controller-uid", uid) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_set_text(labels, "job-name", name);
}

/* By its uid, so that no two jobs have the same pods. */
static int default_job_selector(const struct cJSON *object, struct cJSON *spec)
{
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);
    const char *uid = kinf__doc_text(object, "metadata", "uid", NULL);
    struct cJSON *labels;

    if (*uid == '\0' || kinf__doc_get(spec, "selector") != NULL ||
        kinf__doc_is_true(spec, "manualSelector"))
        return 0;
    labels = kinf__doc_object(kinf__doc_object(spec, "selector"), "matchLabels");
    if (kinf__doc_set_text(labels, "batch.kubernetes.io/controller-uid", uid) < 0)
        return KINF_ERR_NO_MEMORY;
    return label_template(spec, name, uid);
}

static int default_job_spec(struct cJSON *spec)
{
    bool by_index = kinf__doc_get(spec, "backoffLimitPerIndex") != NULL;
    bool has_policy = kinf__doc_get(spec, "podFailurePolicy") != NULL;

    if ((kinf__doc_get(spec, "parallelism") == NULL &&
         add_defaults(spec, "{\"completions\":1,\"parallelism\":1}") < 0) ||
        add_defaults(spec, by_index ? "{\"backoffLimit\":2147483647}" : "{\"backoffLimit\":6}") <
            0 ||
        add_defaults(spec, "{\"completionMode\":\"NonIndexed\",\"suspend\":false,"
                           "\"manualSelector\":false}") < 0)
        return KINF_ERR_NO_MEMORY;
    return set_text_once(spec, "podReplacementPolicy",
                         has_policy ? "Failed" : "TerminatingOrFailed");
}

/* The template's labels are the job's, too, if it has none: in Go they are one map then, so that those
 * which the template gets with the uid are the job's as well. */
static int default_job(struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec"), *labels;
    struct cJSON *metadata = kinf__doc_object(object, "metadata");

    if (!cJSON_IsObject(spec))
        return 0;
    if (default_job_spec(spec) < 0 || default_job_selector(object, spec) < 0)
        return KINF_ERR_NO_MEMORY;
    labels = kinf__doc_get(metadata, "labels");
    if (labels != NULL && (labels->type & SHARED) != 0)
        kinf__doc_drop(metadata, labels);
    else if (!kinf__doc_is_empty(labels))
        return 0;
    if (copy_if_empty(metadata, "labels",
                      kinf__doc_find(spec, "template", "metadata", "labels", NULL)) < 0)
        return KINF_ERR_NO_MEMORY;
    labels = kinf__doc_get(metadata, "labels");
    if (labels != NULL && *kinf__doc_text(metadata, "uid", NULL) == '\0')
        labels->type |= SHARED;
    return 0;
}

/* --- services --- */

static int default_affinity(struct cJSON *spec)
{
    if (strcmp(kinf__doc_text(spec, "sessionAffinity", NULL), "ClientIP") == 0)
        return add_defaults(
            spec, "{\"sessionAffinityConfig\":{\"clientIP\":{\"timeoutSeconds\":10800}}}");
    kinf__doc_remove(spec, "sessionAffinityConfig");
    return 0;
}

static int default_service(struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec");
    const char *type = kinf__doc_text(spec, "type", NULL);
    bool is_balanced = strcmp(type, "LoadBalancer") == 0;
    bool is_outside = is_balanced || strcmp(type, "NodePort") == 0 ||
                      !kinf__doc_is_empty(kinf__doc_get(spec, "externalIPs"));

    if (!cJSON_IsObject(spec))
        return 0;
    if (default_ports(spec, "targetPort", "port") < 0 || default_affinity(spec) < 0)
        return KINF_ERR_NO_MEMORY;
    if (strcmp(type, "ExternalName") == 0)
        return 0;
    if (is_outside && set_text_once(spec, "externalTrafficPolicy", "Cluster") < 0)
        return KINF_ERR_NO_MEMORY;
    if (is_balanced && add_defaults(spec, "{\"allocateLoadBalancerNodePorts\":true}") < 0)
        return KINF_ERR_NO_MEMORY;
    return set_text_once(spec, "internalTrafficPolicy", "Cluster") < 0
               ? KINF_ERR_NO_MEMORY
               : begin_list(spec, "clusterIPs", "clusterIP");
}

/* --- others --- */

static int default_namespace(struct cJSON *object)
{
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);

    return *name != '\0'
               ? kinf__doc_set_text(kinf__doc_object(kinf__doc_get(object, "metadata"), "labels"),
                                    "kubernetes.io/metadata.name", name)
               : 0;
}

static int default_node(struct cJSON *object)
{
    struct cJSON *status = kinf__doc_get(object, "status");
    const struct cJSON *capacity = kinf__doc_get(status, "capacity");

    if (begin_list(kinf__doc_get(object, "spec"), "podCIDRs", "podCIDR") < 0)
        return KINF_ERR_NO_MEMORY;
    return capacity != NULL && kinf__doc_get(status, "allocatable") == NULL
               ? kinf__doc_set(status, "allocatable", kinf__doc_dup(capacity))
               : 0;
}

static int encode(struct cJSON *data, const struct cJSON *text)
{
    KINF__AUTO_BUFFER base64 = KINF__BUFFER_INIT;

    if (kinf__secret_append_base64(&base64, text->valuestring, strlen(text->valuestring)) < 0 ||
        kinf__buffer_cstr(&base64) == NULL)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_set_text(data, text->string, base64.bytes);
}

static int default_secret(struct cJSON *object)
{
    const struct cJSON *texts = kinf__doc_get(object, "stringData"), *text;

    cJSON_ArrayForEach(text, texts)
    {
        if (cJSON_IsObject(texts) && cJSON_IsString(text) &&
            encode(kinf__doc_object(object, "data"), text) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    kinf__doc_remove(object, "stringData");
    return 0;
}

/* Of containers: max is the default limit, that the default request, and min what is left of it. */
static int default_limit_range(struct cJSON *object)
{
    struct cJSON *limit;

    cJSON_ArrayForEach(limit, kinf__doc_find(object, "spec", "limits", NULL))
    {
        if (strcmp(kinf__doc_text(limit, "type", NULL), "Container") == 0 &&
            (add_missing_to(limit, "default", kinf__doc_get(limit, "max")) < 0 ||
             add_missing_to(limit, "defaultRequest", kinf__doc_get(limit, "default")) < 0 ||
             add_missing_to(limit, "defaultRequest", kinf__doc_get(limit, "min")) < 0))
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int default_network_policy(struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec");
    bool has_egress = !kinf__doc_is_empty(kinf__doc_get(spec, "egress"));

    if (!cJSON_IsObject(spec) || !kinf__doc_is_empty(kinf__doc_get(spec, "policyTypes")))
        return 0;
    return kinf__doc_set(spec, "policyTypes",
                         cJSON_Parse(has_egress ? "[\"Ingress\",\"Egress\"]" : "[\"Ingress\"]"));
}

static int default_role_binding(struct cJSON *object)
{
    struct cJSON *subject;

    cJSON_ArrayForEach(subject, kinf__doc_get(object, "subjects"))
    {
        const char *kind = kinf__doc_text(subject, "kind", NULL);

        if ((strcmp(kind, "User") == 0 || strcmp(kind, "Group") == 0) &&
            set_text_once(subject, "apiGroup", "rbac.authorization.k8s.io") < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int default_autoscaler(struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec");

    if (add_defaults(spec,
                     "{\"metrics\":[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\","
                     "\"target\":{\"type\":\"Utilization\",\"averageUtilization\":80}}}]}") < 0)
        return KINF_ERR_NO_MEMORY;
    return add_defaults(kinf__doc_get(spec, "behavior"),
                        "{\"scaleUp\":{\"selectPolicy\":\"Max\",\"stabilizationWindowSeconds\":0,"
                        "\"policies\":[{\"type\":\"Pods\",\"value\":4,\"periodSeconds\":15},"
                        "{\"type\":\"Percent\",\"value\":100,\"periodSeconds\":15}]},"
                        "\"scaleDown\":{\"selectPolicy\":\"Max\",\"policies\":["
                        "{\"type\":\"Percent\",\"value\":100,\"periodSeconds\":15}]}}");
}

static int default_names(struct cJSON *names, const char *kind)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    if (*kind == '\0')
        return 0;
    if (kinf__buffer_printf(&text, "%sList", kind) < 0 || kinf__buffer_cstr(&text) == NULL ||
        set_text_once(names, "listKind", text.bytes) < 0)
        return KINF_ERR_NO_MEMORY;
    text.bytes[text.len - strlen("List")] = '\0';
    for (char *c = text.bytes; *c != '\0'; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    return set_text_once(names, "singular", text.bytes);
}

/* The version that is stored is the only one that ever was. */
static int default_definition(struct cJSON *object)
{
    struct cJSON *names = kinf__doc_find(object, "spec", "names", NULL), *version;
    struct cJSON *status = kinf__doc_get(object, "status");

    if (cJSON_IsObject(names) && default_names(names, kinf__doc_text(names, "kind", NULL)) < 0)
        return KINF_ERR_NO_MEMORY;
    if (!cJSON_IsObject(status) || !kinf__doc_is_empty(kinf__doc_get(status, "storedVersions")))
        return 0;
    cJSON_ArrayForEach(version, kinf__doc_find(object, "spec", "versions", NULL))
    {
        if (kinf__doc_is_true(version, "storage"))
            return kinf__doc_add_text(status, "storedVersions",
                                      kinf__doc_text(version, "name", NULL));
    }
    return 0;
}

#define TEMPLATE                                                                                   \
    {                                                                                              \
        "spec", "template", "spec"                                                                 \
    }

static const struct {
    const char *group;
    const char *kind;
    int (*fill)(struct cJSON *object); /* NULL: nothing but what the pod has */
    const char *pod_spec[6]; /* where a pod's spec is; NULL at the end, or all: it has none */
} rules[] = {
    { "", "Pod", default_pod, { "spec" } },
    { "", "Service", default_service, { NULL } },
    { "", "Secret", default_secret, { NULL } },
    { "", "Namespace", default_namespace, { NULL } },
    { "", "Node", default_node, { NULL } },
    { "", "LimitRange", default_limit_range, { NULL } },
    { "", "PodTemplate", NULL, { "template", "spec" } },
    { "", "ReplicationController", default_replication_controller, TEMPLATE },
    { "apps", "Deployment", default_deployment, TEMPLATE },
    { "apps", "DaemonSet", default_daemon_set, TEMPLATE },
    { "apps", "StatefulSet", default_stateful_set, TEMPLATE },
    { "apps", "ReplicaSet", NULL, TEMPLATE },
    { "batch", "Job", default_job, TEMPLATE },
    { "batch", "CronJob", NULL, { "spec", "jobTemplate", "spec", "template", "spec" } },
    { "autoscaling", "HorizontalPodAutoscaler", default_autoscaler, { NULL } },
    { "networking.k8s.io", "NetworkPolicy", default_network_policy, { NULL } },
    { "rbac.authorization.k8s.io", "RoleBinding", default_role_binding, { NULL } },
    { "rbac.authorization.k8s.io", "ClusterRoleBinding", default_role_binding, { NULL } },
    { "apiextensions.k8s.io", "CustomResourceDefinition", default_definition, { NULL } },
};

static int fill_by_rule(size_t i, struct cJSON *object)
{
    int failed = rules[i].fill != NULL ? rules[i].fill(object) : 0;

    if (failed < 0 || rules[i].pod_spec[0] == NULL)
        return failed;
    for (const char *const *name = rules[i].pod_spec; *name != NULL; name++)
        object = kinf__doc_get(object, *name);
    return default_pod_spec(object);
}

int kinf__default_object(const char *group, const char *kind, struct cJSON *object)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(rules); i++) {
        if (strcmp(rules[i].kind, kind) == 0 && strcmp(rules[i].group, group) == 0)
            return fill_by_rule(i, object);
    }
    return 0;
}
