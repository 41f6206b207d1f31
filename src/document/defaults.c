/*
 * Defaults that take a rule. Neighbours: schema.txt has those that are values, schema_prune.c fills
 * them in; verbs.c calls both.
 */
#include "document/defaults.h"

#include <string.h>

#include "base/compiler.h"
#include "document/node_index.h"
#include "rest/secret.h"

#define CLIENT_IP_SECONDS 10800
#define UNLIMITED_RETRIES 2147483647

/* --- filling in --- */

static int set_text_once(struct cJSON *object, const char *name, const char *text)
{
    const char *old = kinf__doc_text(object, name, NULL);

    return *old == '\0' ? kinf__doc_set_text(object, name, text) : 0;
}

static int set_once(struct cJSON *object, const char *name, struct cJSON *take_value)
{
    if (kinf__doc_get(object, name) == NULL)
        return kinf__doc_set(object, name, take_value);
    cJSON_Delete(take_value);
    return 0;
}

static int set_integer_once(struct cJSON *object, const char *name, int64_t number)
{
    return kinf__doc_get(object, name) == NULL ? kinf__doc_set_integer(object, name, number) : 0;
}

/* Members of `from` that `map` does not have; `map` is made if there is none. */
static int add_missing(struct cJSON *object, const char *name, const struct cJSON *from)
{
    KINF__AUTO_NODE_MEMBERS members = { NULL, false, { KINF__HMAP_INIT } };
    const struct cJSON *value;
    struct cJSON *map;

    if (!cJSON_IsObject(from))
        return 0;
    map = kinf__doc_object(object, name);
    if (map == NULL || kinf__node_members_init(&members, map, (size_t)cJSON_GetArraySize(from)) < 0)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(value, from)
    {
        if (kinf__node_members_get(&members, value->string) == NULL &&
            kinf__node_members_set(&members, value->string, kinf__doc_dup(value)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static bool is_empty(const struct cJSON *container)
{
    return container == NULL || container->child == NULL;
}

static int copy_if_empty(struct cJSON *object, const char *name, const struct cJSON *from)
{
    if (is_empty(from) || !is_empty(kinf__doc_get(object, name)))
        return 0;
    return kinf__doc_set(object, name, kinf__doc_dup(from));
}

static int set_parsed_once(struct cJSON *object, const char *name, const char *json)
{
    return set_once(object, name, cJSON_Parse(json));
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
    if (failed < 0 || set_once(spec, "securityContext", cJSON_CreateObject()) < 0 ||
        default_containers(spec, "containers") < 0 ||
        default_containers(spec, "initContainers") < 0 ||
        default_containers(spec, "ephemeralContainers") < 0)
        return KINF_ERR_NO_MEMORY;
    return default_service_account(spec);
}

static int default_host_ports(const struct cJSON *container)
{
    struct cJSON *port;

    cJSON_ArrayForEach(port, kinf__doc_get(container, "ports"))
    {
        const struct cJSON *own = kinf__doc_get(port, "containerPort");

        if (own != NULL && kinf__doc_integer(port, "hostPort", 0) == 0 &&
            kinf__doc_set(port, "hostPort", kinf__doc_dup(own)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* Limits are requests where these say nothing. */
static int default_running(struct cJSON *spec, const char *name)
{
    bool on_host = cJSON_IsTrue(kinf__doc_get(spec, "hostNetwork"));
    struct cJSON *container, *resources;

    cJSON_ArrayForEach(container, kinf__doc_get(spec, name))
    {
        resources = kinf__doc_get(container, "resources");
        if (add_missing(resources, "requests", kinf__doc_get(resources, "limits")) < 0)
            return KINF_ERR_NO_MEMORY;
        if (on_host && default_host_ports(container) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int default_pod(struct cJSON *pod)
{
    struct cJSON *spec = kinf__doc_get(pod, "spec");

    if (!cJSON_IsObject(spec))
        return 0;
    if (default_pod_spec(spec) < 0 || default_running(spec, "containers") < 0 ||
        default_running(spec, "initContainers") < 0)
        return KINF_ERR_NO_MEMORY;
    return set_once(spec, "enableServiceLinks", cJSON_CreateTrue());
}

/* --- workloads --- */

static int default_template(struct cJSON *object)
{
    return default_pod_spec(kinf__doc_find(object, "spec", "template", "spec", NULL));
}

static int default_pod_template(struct cJSON *object)
{
    return default_pod_spec(kinf__doc_find(object, "template", "spec", NULL));
}

/* The members of rollingUpdate, where it is made: schema.txt has them for one that is there. */
static int default_rolling(struct cJSON *object, const char *strategy, const char *json)
{
    struct cJSON *node = kinf__doc_find(object, "spec", strategy, NULL);

    if (strcmp(kinf__doc_text(node, "type", NULL), "RollingUpdate") == 0 &&
        set_parsed_once(node, "rollingUpdate", json) < 0)
        return KINF_ERR_NO_MEMORY;
    return default_template(object);
}

static int default_deployment(struct cJSON *object)
{
    return default_rolling(object, "strategy", "{\"maxUnavailable\":\"25%\",\"maxSurge\":\"25%\"}");
}

static int default_daemon_set(struct cJSON *object)
{
    return default_rolling(object, "updateStrategy", "{\"maxUnavailable\":1,\"maxSurge\":0}");
}

static int default_claim_template(struct cJSON *claim)
{
    return set_text_once(claim, "kind", "PersistentVolumeClaim") < 0
               ? KINF_ERR_NO_MEMORY
               : set_text_once(claim, "apiVersion", "v1");
}

static int default_stateful_set(struct cJSON *object)
{
    struct cJSON *claim;

    cJSON_ArrayForEach(claim, kinf__doc_find(object, "spec", "volumeClaimTemplates", NULL))
    {
        if (cJSON_IsObject(claim) && default_claim_template(claim) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (cJSON_IsObject(kinf__doc_get(object, "spec")) &&
        set_parsed_once(kinf__doc_get(object, "spec"), "persistentVolumeClaimRetentionPolicy",
                        "{\"whenDeleted\":\"Retain\",\"whenScaled\":\"Retain\"}") < 0)
        return KINF_ERR_NO_MEMORY;
    return default_rolling(object, "updateStrategy", "{\"partition\":0,\"maxUnavailable\":1}");
}

static int default_replication_controller(struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec");
    const struct cJSON *labels = kinf__doc_find(spec, "template", "metadata", "labels", NULL);

    if (cJSON_IsObject(labels) &&
        (copy_if_empty(spec, "selector", labels) < 0 ||
         copy_if_empty(kinf__doc_object(object, "metadata"), "labels", labels) < 0))
        return KINF_ERR_NO_MEMORY;
    return default_template(object);
}

/* --- jobs --- */

static int label_template(struct cJSON *spec, const char *name, const char *uid)
{
    struct cJSON *template = kinf__doc_object(spec, "template");
    struct cJSON *metadata = template != NULL ? kinf__doc_object(template, "metadata") : NULL;
    struct cJSON *labels = metadata != NULL ? kinf__doc_object(metadata, "labels") : NULL;

    if (labels == NULL ||
        kinf__doc_set_text(labels, "batch.kubernetes.io/controller-uid", uid) < 0 ||
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
    struct cJSON *selector, *labels;

    if (*uid == '\0' || kinf__doc_get(spec, "selector") != NULL ||
        cJSON_IsTrue(kinf__doc_get(spec, "manualSelector")))
        return 0;
    selector = kinf__doc_object(spec, "selector");
    labels = selector != NULL ? kinf__doc_object(selector, "matchLabels") : NULL;
    if (labels == NULL || kinf__doc_set_text(labels, "batch.kubernetes.io/controller-uid", uid) < 0)
        return KINF_ERR_NO_MEMORY;
    return label_template(spec, name, uid);
}

static int default_job_spec(struct cJSON *spec)
{
    bool by_index = kinf__doc_get(spec, "backoffLimitPerIndex") != NULL;
    bool has_policy = kinf__doc_get(spec, "podFailurePolicy") != NULL;
    int failed = 0;

    if (kinf__doc_get(spec, "parallelism") == NULL)
        failed = set_integer_once(spec, "completions", 1);
    if (failed < 0 || set_integer_once(spec, "parallelism", 1) < 0 ||
        set_integer_once(spec, "backoffLimit", by_index ? UNLIMITED_RETRIES : 6) < 0 ||
        set_text_once(spec, "completionMode", "NonIndexed") < 0 ||
        set_once(spec, "suspend", cJSON_CreateFalse()) < 0 ||
        set_once(spec, "manualSelector", cJSON_CreateFalse()) < 0)
        return KINF_ERR_NO_MEMORY;
    return set_text_once(spec, "podReplacementPolicy",
                         has_policy ? "Failed" : "TerminatingOrFailed");
}

/* The template's labels are the job's, too, if it has none. */
static int default_job(struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec");

    if (!cJSON_IsObject(spec))
        return 0;
    if (default_job_spec(spec) < 0 || default_job_selector(object, spec) < 0 ||
        copy_if_empty(kinf__doc_object(object, "metadata"), "labels",
                      kinf__doc_find(spec, "template", "metadata", "labels", NULL)) < 0)
        return KINF_ERR_NO_MEMORY;
    return default_template(object);
}

static int default_cron_job(struct cJSON *object)
{
    return default_pod_spec(
        kinf__doc_find(object, "spec", "jobTemplate", "spec", "template", "spec", NULL));
}

/* --- services --- */

/* 0 and "" are no targets. */
static bool has_target(const struct cJSON *port)
{
    const struct cJSON *target = kinf__doc_get(port, "targetPort");

    return cJSON_IsString(target) ? target->valuestring[0] != '\0'
                                  : kinf__doc_integer(port, "targetPort", 0) != 0;
}

static int default_service_ports(const struct cJSON *spec)
{
    struct cJSON *port;

    cJSON_ArrayForEach(port, kinf__doc_get(spec, "ports"))
    {
        const struct cJSON *own = kinf__doc_get(port, "port");

        if (own != NULL && !has_target(port) &&
            kinf__doc_set(port, "targetPort", kinf__doc_dup(own)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int default_affinity(struct cJSON *spec)
{
    struct cJSON *config, *client;

    if (strcmp(kinf__doc_text(spec, "sessionAffinity", NULL), "ClientIP") != 0) {
        kinf__doc_remove(spec, "sessionAffinityConfig");
        return 0;
    }
    config = kinf__doc_object(spec, "sessionAffinityConfig");
    client = config != NULL ? kinf__doc_object(config, "clientIP") : NULL;
    return client != NULL ? set_integer_once(client, "timeoutSeconds", CLIENT_IP_SECONDS)
                          : KINF_ERR_NO_MEMORY;
}

/* clusterIPs begins with clusterIP, once there is one. */
static int default_addresses(struct cJSON *spec)
{
    const struct cJSON *address = kinf__doc_get(spec, "clusterIP");

    if (*kinf__doc_text(spec, "clusterIP", NULL) == '\0' ||
        kinf__doc_get(spec, "clusterIPs") != NULL)
        return 0;
    if (set_parsed_once(spec, "clusterIPs", "[]") < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_append(kinf__doc_get(spec, "clusterIPs"), kinf__doc_dup(address));
}

static int default_service(struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec");
    const char *type = kinf__doc_text(spec, "type", NULL);
    bool is_balanced = strcmp(type, "LoadBalancer") == 0;
    bool is_outside = is_balanced || strcmp(type, "NodePort") == 0 ||
                      !is_empty(kinf__doc_get(spec, "externalIPs"));

    if (!cJSON_IsObject(spec))
        return 0;
    if (default_service_ports(spec) < 0 || default_affinity(spec) < 0)
        return KINF_ERR_NO_MEMORY;
    if (strcmp(type, "ExternalName") == 0)
        return 0;
    if (is_outside && set_text_once(spec, "externalTrafficPolicy", "Cluster") < 0)
        return KINF_ERR_NO_MEMORY;
    if (is_balanced && set_once(spec, "allocateLoadBalancerNodePorts", cJSON_CreateTrue()) < 0)
        return KINF_ERR_NO_MEMORY;
    return set_text_once(spec, "internalTrafficPolicy", "Cluster") < 0 ? KINF_ERR_NO_MEMORY
                                                                       : default_addresses(spec);
}

/* --- others --- */

static int default_namespace(struct cJSON *object)
{
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);
    struct cJSON *metadata = kinf__doc_get(object, "metadata");
    struct cJSON *labels;

    if (*name == '\0')
        return 0;
    labels = kinf__doc_object(metadata, "labels");
    return labels != NULL ? kinf__doc_set_text(labels, "kubernetes.io/metadata.name", name)
                          : KINF_ERR_NO_MEMORY;
}

static int default_ranges(struct cJSON *node)
{
    struct cJSON *spec = kinf__doc_get(node, "spec");

    if (kinf__doc_get(spec, "podCIDRs") != NULL)
        return 0;
    if (set_parsed_once(spec, "podCIDRs", "[]") < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_append(kinf__doc_get(spec, "podCIDRs"),
                            kinf__doc_dup(kinf__doc_get(spec, "podCIDR")));
}

static int default_node(struct cJSON *object)
{
    struct cJSON *status = kinf__doc_get(object, "status");
    const struct cJSON *capacity = kinf__doc_get(status, "capacity");

    if (*kinf__doc_text(object, "spec", "podCIDR", NULL) != '\0' && default_ranges(object) < 0)
        return KINF_ERR_NO_MEMORY;
    return capacity != NULL ? set_once(status, "allocatable", kinf__doc_dup(capacity)) : 0;
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
    struct cJSON *data;

    if (!cJSON_IsObject(texts) || is_empty(texts)) {
        kinf__doc_remove(object, "stringData");
        return 0;
    }
    data = kinf__doc_object(object, "data");
    if (data == NULL)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(text, texts)
    {
        if (cJSON_IsString(text) && encode(data, text) < 0)
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
            (add_missing(limit, "default", kinf__doc_get(limit, "max")) < 0 ||
             add_missing(limit, "defaultRequest", kinf__doc_get(limit, "default")) < 0 ||
             add_missing(limit, "defaultRequest", kinf__doc_get(limit, "min")) < 0))
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int default_network_policy(struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec");
    bool has_egress = !is_empty(kinf__doc_get(spec, "egress"));

    if (!cJSON_IsObject(spec) || !is_empty(kinf__doc_get(spec, "policyTypes")))
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

static int default_scaling(struct cJSON *behavior, const char *name, const char *policies,
                           int64_t window_seconds)
{
    struct cJSON *rules = kinf__doc_object(behavior, name);

    if (rules == NULL || set_text_once(rules, "selectPolicy", "Max") < 0 ||
        set_parsed_once(rules, "policies", policies) < 0)
        return KINF_ERR_NO_MEMORY;
    return window_seconds >= 0
               ? set_integer_once(rules, "stabilizationWindowSeconds", window_seconds)
               : 0;
}

static int default_autoscaler(struct cJSON *object)
{
    struct cJSON *spec = kinf__doc_get(object, "spec");
    struct cJSON *behavior = kinf__doc_get(spec, "behavior");

    if (!cJSON_IsObject(spec))
        return 0;
    if (set_parsed_once(
            spec, "metrics",
            "[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":{\"type\":"
            "\"Utilization\",\"averageUtilization\":80}}}]") < 0)
        return KINF_ERR_NO_MEMORY;
    if (!cJSON_IsObject(behavior))
        return 0;
    if (default_scaling(behavior, "scaleUp",
                        "[{\"type\":\"Pods\",\"value\":4,\"periodSeconds\":15},"
                        "{\"type\":\"Percent\",\"value\":100,\"periodSeconds\":15}]",
                        0) < 0)
        return KINF_ERR_NO_MEMORY;
    return default_scaling(behavior, "scaleDown",
                           "[{\"type\":\"Percent\",\"value\":100,\"periodSeconds\":15}]", -1);
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
    if (!cJSON_IsObject(status) || !is_empty(kinf__doc_get(status, "storedVersions")))
        return 0;
    cJSON_ArrayForEach(version, kinf__doc_find(object, "spec", "versions", NULL))
    {
        if (!cJSON_IsTrue(kinf__doc_get(version, "storage")))
            continue;
        if (kinf__doc_set(status, "storedVersions", cJSON_CreateArray()) < 0)
            return KINF_ERR_NO_MEMORY;
        return kinf__doc_append(kinf__doc_get(status, "storedVersions"),
                                cJSON_CreateString(kinf__doc_text(version, "name", NULL)));
    }
    return 0;
}

static const struct {
    const char *group;
    const char *kind;
    int (*fill)(struct cJSON *object);
} rules[] = {
    { "", "Pod", default_pod },
    { "", "Service", default_service },
    { "", "Secret", default_secret },
    { "", "Namespace", default_namespace },
    { "", "Node", default_node },
    { "", "LimitRange", default_limit_range },
    { "", "PodTemplate", default_pod_template },
    { "", "ReplicationController", default_replication_controller },
    { "apps", "Deployment", default_deployment },
    { "apps", "DaemonSet", default_daemon_set },
    { "apps", "StatefulSet", default_stateful_set },
    { "apps", "ReplicaSet", default_template },
    { "batch", "Job", default_job },
    { "batch", "CronJob", default_cron_job },
    { "autoscaling", "HorizontalPodAutoscaler", default_autoscaler },
    { "networking.k8s.io", "NetworkPolicy", default_network_policy },
    { "rbac.authorization.k8s.io", "RoleBinding", default_role_binding },
    { "rbac.authorization.k8s.io", "ClusterRoleBinding", default_role_binding },
    { "apiextensions.k8s.io", "CustomResourceDefinition", default_definition },
};

int kinf__default_object(const char *group, const char *kind, struct cJSON *object)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(rules); i++) {
        if (strcmp(rules[i].kind, kind) == 0 && strcmp(rules[i].group, group) == 0)
            return rules[i].fill(object);
    }
    return 0;
}
