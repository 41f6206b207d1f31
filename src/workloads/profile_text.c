/*
 * Generated applications: their texts, in the order of members that the server writes, with
 * everything filled in that it fills in. What a controller or a kubelet would find to do about these
 * objects is nothing.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "workloads/profile.h"
#include "document/quantity.h"

/* Where text goes; after a failure nothing more does. */
struct writer {
    struct kinf__buffer *text;
    int failed;
};

#define HOLE_NAME     "\1n"
#define HOLE_UID      "\1u"
#define HOLE_VERSION  "\1v"
#define HOLE_NODE     "\1o"
#define HOLE_POD_IP   "\1i"
#define HOLE_HOST_IP  "\1h"
#define HOLE_CREATED  "\1c"
#define HOLE_STARTED  "\1s"
#define HOLE_DELETED  "\1e"
#define HOLE_DIGEST   "\1d"
#define HOLE_SUFFIX   "\1x"
#define HOLE_RESTARTS "\1r"

static KINF_PRINTF(2, 3) void put(struct writer *writer, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (writer->failed == 0)
        writer->failed = len >= 0 && (size_t)len < sizeof text
                             ? kinf__buffer_append(writer->text, text, (size_t)len)
                             : KINF_ERR_LIMIT;
}

static const char *comma(unsigned i)
{
    return i != 0 ? "," : "";
}

static void put_pairs(struct writer *writer, const struct kinf__pairs *pairs)
{
    for (unsigned i = 0; i < pairs->n; i++)
        put(writer, "%s\"%s\":\"%s\"", comma(i), pairs->items[i].name, pairs->items[i].value);
}

/* --- containers --- */

static void put_variable(struct writer *writer, const struct kinf__profile *profile,
                         const struct kinf__profile_container *container,
                         const struct kinf__pair *variable)
{
    const char *source = variable->source;

    put(writer, "{\"name\":\"%s\",", variable->name);
    if (source == NULL)
        put(writer, "\"value\":\"%s\"}", variable->value);
    else if (strcmp(source, "fieldRef") == 0)
        put(writer, "\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"%s\"}}}",
            variable->value);
    else if (strcmp(source, "resourceFieldRef") == 0)
        put(writer,
            "\"valueFrom\":{\"resourceFieldRef\":{\"containerName\":\"%s\",\"resource\":\"%s\","
            "\"divisor\":\"0\"}}}",
            container->name, variable->value);
    else
        put(writer, "\"valueFrom\":{\"secretKeyRef\":{\"name\":\"%s\",\"key\":\"%s\"}}}",
            profile->name, variable->name);
}

static void put_probe(struct writer *writer, const char *name,
                      const struct kinf__profile_container *container)
{
    put(writer,
        "\"%s\":{\"httpGet\":{\"path\":\"%s\",\"port\":%u,\"scheme\":\"HTTP\"},"
        "\"timeoutSeconds\":1,\"periodSeconds\":10,\"successThreshold\":1,"
        "\"failureThreshold\":3},",
        name, container->probe_path, container->port);
}

/* A member behind others; none at all, where the list would be empty. */
static void put_mounts(struct writer *writer, const struct kinf__profile *profile, bool is_first,
                       bool is_pod, bool in_status)
{
    const char *recursive = in_status ? ",\"recursiveReadOnly\":\"Disabled\"" : "";
    unsigned n = 0;

    if (!is_first && !is_pod)
        return;
    put(writer, ",\"volumeMounts\":[");
    for (; is_first && n < profile->n_volumes; n++)
        put(writer, "%s{\"name\":\"%s\",\"mountPath\":\"/var/run/%s/%s\"}", comma(n),
            profile->volumes[n], profile->app, profile->volumes[n]);
    if (is_pod)
        put(writer,
            "%s{\"name\":\"kube-api-access-" HOLE_SUFFIX "\",\"readOnly\":true%s,\"mountPath\":"
            "\"/var/run/secrets/kubernetes.io/serviceaccount\"}",
            comma(n), recursive);
    put(writer, "]");
}

/* As the server writes it: 3000m is 3. */
static void put_quantity(struct writer *writer, const char *before, unsigned number,
                         const char *unit)
{
    char text[KINF__QUANTITY_SIZE], canonical[KINF__QUANTITY_SIZE];

    snprintf(text, sizeof text, "%u%s", number, unit);
    put(writer, "%s\"%s\"", before, kinf__quantity_write(text, canonical) ? canonical : text);
}

static void put_resources(struct writer *writer, const struct kinf__profile_container *container)
{
    put(writer, "\"resources\":{");
    if (container->has_limits) {
        put_quantity(writer, "\"limits\":{\"cpu\":", 4 * container->cpu_m, "m");
        put_quantity(writer, ",\"memory\":", 2 * container->memory_mi, "Mi");
        put(writer, "},");
    }
    put_quantity(writer, "\"requests\":{\"cpu\":", container->cpu_m, "m");
    put_quantity(writer, ",\"memory\":", container->memory_mi, "Mi");
    put(writer, "}}");
}

static void put_container(struct writer *writer, const struct kinf__profile *profile,
                          unsigned number, bool is_pod)
{
    const struct kinf__profile_container *container = &profile->containers[number];

    put(writer, "%s{\"name\":\"%s\",\"image\":\"%s\",", comma(number), container->name,
        container->image);
    if (container->port != 0)
        put(writer, "\"ports\":[{\"name\":\"http\",\"containerPort\":%u,\"protocol\":\"TCP\"}],",
            container->port);
    put(writer, "\"env\":[");
    for (unsigned i = 0; i < container->env.n; i++) {
        put(writer, "%s", comma(i));
        put_variable(writer, profile, container, &container->env.items[i]);
    }
    put(writer, "],");
    put_resources(writer, container);
    put_mounts(writer, profile, number == 0, is_pod, false);
    put(writer, ",");
    if (container->has_probes) {
        put_probe(writer, "livenessProbe", container);
        put_probe(writer, "readinessProbe", container);
    }
    put(writer, "\"terminationMessagePath\":\"/dev/termination-log\","
                "\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}");
}

static void put_init_container(struct writer *writer, const struct kinf__profile *profile,
                               bool is_pod)
{
    put(writer,
        "\"initContainers\":[{\"name\":\"migrate\",\"image\":\"%s\",\"command\":[\"/bin/%s\","
        "\"migrate\",\"--wait\"],\"resources\":{}",
        profile->containers[0].image, profile->app);
    put_mounts(writer, profile, false, is_pod, false);
    put(writer, ",\"terminationMessagePath\":\"/dev/termination-log\","
                "\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}],");
}

/* --- the pod's specification, which the templates have, too --- */

static void put_volumes(struct writer *writer, const struct kinf__profile *profile, bool is_pod)
{
    for (unsigned i = 0; i < profile->n_volumes; i++) {
        put(writer, "%s{\"name\":\"%s\",", comma(i), profile->volumes[i]);
        if (strcmp(profile->volumes[i], "scratch") == 0)
            put(writer, "\"emptyDir\":{}}");
        else if (strcmp(profile->volumes[i], "certificates") == 0)
            put(writer, "\"secret\":{\"secretName\":\"%s-tls\",\"defaultMode\":420}}",
                profile->name);
        else
            put(writer, "\"configMap\":{\"name\":\"%s-%s\",\"defaultMode\":420}}", profile->name,
                profile->volumes[i]);
    }
    if (is_pod)
        put(writer,
            "%s{\"name\":\"kube-api-access-" HOLE_SUFFIX "\",\"projected\":{\"sources\":["
            "{\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}},"
            "{\"configMap\":{\"name\":\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\","
            "\"path\":\"ca.crt\"}]}},{\"downwardAPI\":{\"items\":[{\"path\":\"namespace\","
            "\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.namespace\"}}]}}],"
            "\"defaultMode\":420}}",
            comma(profile->n_volumes));
}

static void put_toleration(struct writer *writer, const char *before, const char *key)
{
    put(writer,
        "%s{\"key\":\"node.kubernetes.io/%s\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
        "\"tolerationSeconds\":300}",
        before, key);
}

/* `stage` below zero: of a template. */
static void put_pod_spec(struct writer *writer, const struct kinf__profile *profile, int stage)
{
    bool is_pod = stage >= 0;

    put(writer, "{\"volumes\":[");
    put_volumes(writer, profile, is_pod);
    put(writer, "],");
    if (profile->has_init)
        put_init_container(writer, profile, is_pod);
    put(writer, "\"containers\":[");
    for (unsigned i = 0; i < profile->n_containers; i++)
        put_container(writer, profile, i, is_pod);
    put(writer, "],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,"
                "\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"default\","
                "\"serviceAccount\":\"default\",");
    if (stage >= KINF__POD_BOUND)
        put(writer, "\"nodeName\":\"" HOLE_NODE "\",");
    put(writer, "\"securityContext\":{},\"schedulerName\":\"%s\"", profile->scheduler);
    if (is_pod) {
        put(writer, ",\"tolerations\":[");
        put_toleration(writer, "", "not-ready");
        put_toleration(writer, ",", "unreachable");
        put(writer, "],\"priority\":0,\"enableServiceLinks\":true,"
                    "\"preemptionPolicy\":\"PreemptLowerPriority\"");
    }
    put(writer, "}");
}

/* --- managed fields --- */

static void put_field_names(struct writer *writer, const struct kinf__pairs *pairs)
{
    put(writer, "{\".\":{}");
    for (unsigned i = 0; i < pairs->n; i++)
        put(writer, ",\"f:%s\":{}", pairs->items[i].name);
    put(writer, "}");
}

static void put_container_fields(struct writer *writer, const struct kinf__profile *profile,
                                 unsigned number)
{
    const struct kinf__profile_container *container = &profile->containers[number];

    put(writer, "%s\"k:{\\\"name\\\":\\\"%s\\\"}\":{\".\":{},\"f:env\":{\".\":{}", comma(number),
        container->name);
    for (unsigned i = 0; i < container->env.n; i++) {
        const struct kinf__pair *variable = &container->env.items[i];

        put(writer, ",\"k:{\\\"name\\\":\\\"%s\\\"}\":{\".\":{},\"f:name\":{},", variable->name);
        if (variable->source == NULL)
            put(writer, "\"f:value\":{}}");
        else
            put(writer, "\"f:valueFrom\":{\".\":{},\"f:%s\":{}}}", variable->source);
    }
    put(writer, "},\"f:image\":{},\"f:imagePullPolicy\":{},");
    if (container->has_probes)
        put(writer,
            "\"f:livenessProbe\":{\".\":{},\"f:failureThreshold\":{},\"f:httpGet\":{\".\":{},"
            "\"f:path\":{},\"f:port\":{},\"f:scheme\":{}},\"f:periodSeconds\":{},"
            "\"f:successThreshold\":{},\"f:timeoutSeconds\":{}},");
    put(writer, "\"f:name\":{},");
    if (container->port != 0)
        put(writer,
            "\"f:ports\":{\".\":{},\"k:{\\\"containerPort\\\":%u,\\\"protocol\\\":\\\"TCP\\\"}\":{"
            "\".\":{},\"f:containerPort\":{},\"f:name\":{},\"f:protocol\":{}}},",
            container->port);
    put(writer, "\"f:resources\":{},\"f:terminationMessagePath\":{},"
                "\"f:terminationMessagePolicy\":{},\"f:volumeMounts\":{}}");
}

static void put_controller_fields(struct writer *writer, const struct kinf__profile *profile)
{
    put(writer,
        "{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\",\"apiVersion\":\"v1\","
        "\"time\":\"" HOLE_CREATED "\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{"
        "\"f:annotations\":");
    put_field_names(writer, &profile->annotations);
    put(writer, ",\"f:generateName\":{},\"f:labels\":");
    put_field_names(writer, &profile->labels);
    if (profile->replicaset_uid[0] != '\0')
        put(writer, ",\"f:ownerReferences\":{\".\":{},\"k:{\\\"uid\\\":\\\"%s\\\"}\":{}}",
            profile->replicaset_uid);
    put(writer, "},\"f:spec\":{\"f:containers\":{");
    for (unsigned i = 0; i < profile->n_containers; i++)
        put_container_fields(writer, profile, i);
    put(writer, "},\"f:dnsPolicy\":{},\"f:enableServiceLinks\":{},\"f:restartPolicy\":{},"
                "\"f:schedulerName\":{},\"f:securityContext\":{},"
                "\"f:terminationGracePeriodSeconds\":{},\"f:volumes\":{\".\":{}");
    for (unsigned i = 0; i < profile->n_volumes; i++)
        put(writer, ",\"k:{\\\"name\\\":\\\"%s\\\"}\":{\".\":{},\"f:name\":{}}",
            profile->volumes[i]);
    put(writer, "}}}}");
}

static void put_kubelet_fields(struct writer *writer)
{
    static const char *const conditions[] = { "ContainersReady", "Initialized",
                                              "PodReadyToStartContainers", "Ready" };

    put(writer, "{\"manager\":\"kubelet\",\"operation\":\"Update\",\"apiVersion\":\"v1\","
                "\"time\":\"" HOLE_STARTED "\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{"
                "\"f:status\":{\"f:conditions\":{");
    for (unsigned i = 0; i < KINF__ARRAY_LEN(conditions); i++)
        put(writer,
            "%s\"k:{\\\"type\\\":\\\"%s\\\"}\":{\".\":{},\"f:lastProbeTime\":{},"
            "\"f:lastTransitionTime\":{},\"f:observedGeneration\":{},\"f:status\":{},"
            "\"f:type\":{}}",
            comma(i), conditions[i]);
    put(writer, "},\"f:containerStatuses\":{},\"f:hostIP\":{},\"f:hostIPs\":{},"
                "\"f:observedGeneration\":{},\"f:phase\":{},\"f:podIP\":{},\"f:podIPs\":{\".\":{},"
                "\"k:{\\\"ip\\\":\\\"" HOLE_POD_IP "\\\"}\":{\".\":{},\"f:ip\":{}}},"
                "\"f:startTime\":{}}},\"subresource\":\"status\"}");
}

/* --- the pod --- */

static void put_condition(struct writer *writer, bool is_first, const char *type, bool is_true,
                          const char *time)
{
    put(writer,
        "%s{\"type\":\"%s\",\"observedGeneration\":1,\"status\":\"%s\",\"lastProbeTime\":null,"
        "\"lastTransitionTime\":\"%s\"",
        is_first ? "" : ",", type, is_true ? "True" : "False", time);
    if (!is_true)
        put(writer, ",\"reason\":\"ContainersNotReady\",\"message\":\"containers with unready "
                    "status\"");
    put(writer, "}");
}

static void put_conditions(struct writer *writer, enum kinf__pod_stage stage)
{
    bool is_ready = stage == KINF__POD_RUNNING || stage == KINF__POD_ENDING;

    if (stage >= KINF__POD_STARTING) {
        put_condition(writer, true, "PodReadyToStartContainers", true, HOLE_STARTED);
        put_condition(writer, false, "Initialized", true, HOLE_STARTED);
        put_condition(writer, false, "Ready", is_ready, HOLE_STARTED);
        put_condition(writer, false, "ContainersReady", is_ready, HOLE_STARTED);
    }
    put_condition(writer, stage < KINF__POD_STARTING, "PodScheduled", true, HOLE_CREATED);
}

static void put_state(struct writer *writer, const struct kinf__profile_container *container,
                      enum kinf__pod_stage stage, bool is_first)
{
    bool is_down = is_first && stage == KINF__POD_UNREADY;
    const char *ready = is_down ? "false" : "true";

    if (stage == KINF__POD_STARTING) {
        put(writer,
            "\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}},\"lastState\":{},"
            "\"ready\":false,\"restartCount\":0,\"image\":\"%s\",\"imageID\":\"\","
            "\"started\":false",
            container->image);
        return;
    }
    if (is_down)
        put(writer,
            "\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},\"lastState\":{"
            "\"terminated\":{\"exitCode\":1,\"reason\":\"Error\",\"startedAt\":\"" HOLE_CREATED
            "\",\"finishedAt\":\"" HOLE_STARTED "\"}},");
    else
        put(writer, "\"state\":{\"running\":{\"startedAt\":\"" HOLE_STARTED "\"}},"
                    "\"lastState\":{},");
    put(writer,
        "\"ready\":%s,\"restartCount\":%s,\"image\":\"%s\",\"imageID\":\"%.*s@sha256:" HOLE_DIGEST
        "\",\"containerID\":\"containerd://" HOLE_DIGEST "\",\"started\":%s",
        ready, is_first ? HOLE_RESTARTS : "0", container->image,
        (int)(strrchr(container->image, ':') - container->image), container->image, ready);
}

static void put_container_status(struct writer *writer, const struct kinf__profile *profile,
                                 enum kinf__pod_stage stage, unsigned number)
{
    const struct kinf__profile_container *container = &profile->containers[number];

    put(writer, "%s{\"name\":\"%s\",", comma(number), container->name);
    put_state(writer, container, stage, number == 0);
    put_mounts(writer, profile, number == 0, true, true);
    put(writer, "}");
}

static void put_init_status(struct writer *writer, const struct kinf__profile *profile)
{
    put(writer,
        "\"initContainerStatuses\":[{\"name\":\"migrate\",\"state\":{\"terminated\":{"
        "\"exitCode\":0,\"reason\":\"Completed\",\"startedAt\":\"" HOLE_CREATED "\","
        "\"finishedAt\":\"" HOLE_STARTED "\",\"containerID\":\"containerd://" HOLE_DIGEST "\"}},"
        "\"lastState\":{},\"ready\":true,\"restartCount\":0,\"image\":\"%s\",\"imageID\":\"\","
        "\"started\":false}],",
        profile->containers[0].image);
}

static void put_pod_metadata(struct writer *writer, const struct kinf__profile *profile,
                             enum kinf__pod_stage stage)
{
    put(writer,
        "{\"name\":\"" HOLE_NAME "\",\"generateName\":\"%s-%s-\",\"namespace\":\"%s\","
        "\"uid\":\"" HOLE_UID "\",\"resourceVersion\":\"" HOLE_VERSION "\",\"generation\":%d,"
        "\"creationTimestamp\":\"" HOLE_CREATED "\",",
        profile->name, profile->hash, profile->name_space, stage == KINF__POD_ENDING ? 2 : 1);
    if (stage == KINF__POD_ENDING)
        put(writer, "\"deletionTimestamp\":\"" HOLE_DELETED "\","
                    "\"deletionGracePeriodSeconds\":30,");
    put(writer, "\"labels\":{");
    put_pairs(writer, &profile->labels);
    put(writer, "},\"annotations\":{");
    put_pairs(writer, &profile->annotations);
    put(writer, "},");
    if (profile->replicaset_uid[0] != '\0')
        put(writer,
            "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
            "\"name\":\"%s-%s\",\"uid\":\"%s\",\"controller\":true,\"blockOwnerDeletion\":true}],",
            profile->name, profile->hash, profile->replicaset_uid);
    put(writer, "\"managedFields\":[");
    put_controller_fields(writer, profile);
    if (stage >= KINF__POD_STARTING) {
        put(writer, ",");
        put_kubelet_fields(writer);
    }
    put(writer, "]}");
}

/* The hash is a label of pods and of the ReplicaSet, where it belongs by name. */
static struct kinf__profile with_hash(const struct kinf__profile *profile)
{
    struct kinf__profile copy = *profile;
    struct kinf__pair *labels = copy.labels.items;
    unsigned at = copy.labels.n++;

    for (; at > 0 && strcmp(labels[at - 1].name, "pod-template-hash") > 0; at--)
        labels[at] = labels[at - 1];
    labels[at].name = "pod-template-hash";
    labels[at].source = NULL;
    snprintf(labels[at].value, sizeof labels[at].value, "%s", copy.hash);
    return copy;
}

static void put_pod_status(struct writer *writer, const struct kinf__profile *profile,
                           enum kinf__pod_stage stage)
{
    put(writer, "{\"phase\":\"%s\",", stage < KINF__POD_RUNNING ? "Pending" : "Running");
    if (stage >= KINF__POD_BOUND) {
        put(writer, "\"conditions\":[");
        put_conditions(writer, stage);
        put(writer, "],");
    }
    if (stage >= KINF__POD_STARTING)
        put(writer, "\"observedGeneration\":1,\"hostIP\":\"" HOLE_HOST_IP "\",\"hostIPs\":[{"
                    "\"ip\":\"" HOLE_HOST_IP "\"}],\"startTime\":\"" HOLE_CREATED "\",");
    if (stage >= KINF__POD_RUNNING)
        put(writer, "\"podIP\":\"" HOLE_POD_IP "\",\"podIPs\":[{\"ip\":\"" HOLE_POD_IP "\"}],");
    if (stage >= KINF__POD_RUNNING && profile->has_init)
        put_init_status(writer, profile);
    if (stage >= KINF__POD_STARTING) {
        put(writer, "\"containerStatuses\":[");
        for (unsigned i = 0; i < profile->n_containers; i++)
            put_container_status(writer, profile, stage, i);
        put(writer, "],");
    }
    put(writer, "\"qosClass\":\"Burstable\"}");
}

int kinf__profile_write_pod(const struct kinf__profile *profile, enum kinf__pod_stage stage,
                            struct kinf__buffer *text)
{
    struct kinf__profile hashed = with_hash(profile);
    struct writer writer = { text, 0 };

    put(&writer, "{\"metadata\":");
    put_pod_metadata(&writer, &hashed, stage);
    put(&writer, ",\"spec\":");
    put_pod_spec(&writer, &hashed, (int)stage);
    put(&writer, ",\"status\":");
    put_pod_status(&writer, &hashed, stage);
    put(&writer, "}");
    return writer.failed;
}

/* --- its owners --- */

/* An object, up to its labels. `generation`: that member with a comma, or nothing. */
static void put_start(struct writer *writer, const struct kinf__profile *profile, const char *name,
                      const char *uid, const char *generation)
{
    put(writer,
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\","
        "\"resourceVersion\":\"" HOLE_VERSION "\",%s\"creationTimestamp\":\"%s\",\"labels\":{",
        name, profile->name_space, uid, generation, profile->time);
    put_pairs(writer, &profile->labels);
    put(writer, "}");
}

static void put_selector_and_template(struct writer *writer, const struct kinf__profile *profile,
                                      bool is_hashed)
{
    put(writer, "\"selector\":{\"matchLabels\":{\"app.kubernetes.io/instance\":\"%s\"",
        profile->name);
    if (is_hashed)
        put(writer, ",\"pod-template-hash\":\"%s\"", profile->hash);
    put(writer, "}},\"template\":{\"metadata\":{\"labels\":{");
    put_pairs(writer, &profile->labels);
    put(writer, "},\"annotations\":{");
    put_pairs(writer, &profile->annotations);
    put(writer, "}},\"spec\":");
    put_pod_spec(writer, profile, -1);
    put(writer, "}");
}

int kinf__profile_write_replicaset(const struct kinf__profile *profile, struct kinf__buffer *text)
{
    struct kinf__profile hashed = with_hash(profile);
    struct writer writer = { text, 0 };
    unsigned n = profile->replicas;
    char name[sizeof profile->name + sizeof profile->hash];

    snprintf(name, sizeof name, "%s-%s", profile->name, profile->hash);
    put_start(&writer, &hashed, name, profile->replicaset_uid, "\"generation\":1,");
    put(&writer,
        ",\"annotations\":{\"deployment.kubernetes.io/desired-replicas\":\"%u\","
        "\"deployment.kubernetes.io/max-replicas\":\"%u\","
        "\"deployment.kubernetes.io/revision\":\"1\"},\"ownerReferences\":[{"
        "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"%s\",\"uid\":\"%s\","
        "\"controller\":true,\"blockOwnerDeletion\":true}]},\"spec\":{\"replicas\":%u,",
        n, n + (n + 3) / 4, profile->name, profile->deployment_uid, n);
    put_selector_and_template(&writer, &hashed, true);
    put(&writer, "},\"status\":{\"replicas\":%u", n);
    if (n != 0)
        put(&writer, ",\"fullyLabeledReplicas\":%u,\"readyReplicas\":%u,\"availableReplicas\":%u",
            n, n, n);
    put(&writer, ",\"observedGeneration\":1}}");
    return writer.failed;
}

static void put_deployment_status(struct writer *writer, const struct kinf__profile *profile)
{
    unsigned n = profile->replicas;

    put(writer, "{\"observedGeneration\":1,");
    if (n != 0)
        put(writer,
            "\"replicas\":%u,\"updatedReplicas\":%u,\"readyReplicas\":%u,"
            "\"availableReplicas\":%u,",
            n, n, n, n);
    put(writer,
        "\"conditions\":[{\"type\":\"Available\",\"status\":\"True\",\"lastUpdateTime\":\"%s\","
        "\"lastTransitionTime\":\"%s\",\"reason\":\"MinimumReplicasAvailable\","
        "\"message\":\"Deployment has minimum availability.\"},",
        profile->time, profile->time);
    put(writer,
        "{\"type\":\"Progressing\",\"status\":\"True\",\"lastUpdateTime\":\"%s\","
        "\"lastTransitionTime\":\"%s\",\"reason\":\"NewReplicaSetAvailable\","
        "\"message\":\"ReplicaSet \\\"%s-%s\\\" has successfully progressed.\"}]}",
        profile->time, profile->time, profile->name, profile->hash);
}

int kinf__profile_write_deployment(const struct kinf__profile *profile, struct kinf__buffer *text)
{
    struct writer writer = { text, 0 };

    put_start(&writer, profile, profile->name, profile->deployment_uid, "\"generation\":1,");
    put(&writer,
        ",\"annotations\":{\"deployment.kubernetes.io/revision\":\"1\"}},\"spec\":{"
        "\"replicas\":%u,",
        profile->replicas);
    put_selector_and_template(&writer, profile, false);
    put(&writer, ",\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{"
                 "\"maxUnavailable\":\"25%%\",\"maxSurge\":\"25%%\"}},\"revisionHistoryLimit\":10,"
                 "\"progressDeadlineSeconds\":600},\"status\":");
    put_deployment_status(&writer, profile);
    put(&writer, "}");
    return writer.failed;
}

/* --- others --- */

int kinf__profile_write_service(const struct kinf__profile *profile, struct kinf__buffer *text)
{
    struct writer writer = { text, 0 };

    put_start(&writer, profile, profile->name, HOLE_UID, "");
    put(&writer,
        "},\"spec\":{\"ports\":[{\"name\":\"http\",\"protocol\":\"TCP\",\"port\":80,"
        "\"targetPort\":%u}],\"selector\":{\"app.kubernetes.io/instance\":\"%s\"},"
        "\"clusterIP\":\"" HOLE_POD_IP "\",\"clusterIPs\":[\"" HOLE_POD_IP "\"],"
        "\"type\":\"ClusterIP\",\"sessionAffinity\":\"None\",\"ipFamilies\":[\"IPv4\"],"
        "\"ipFamilyPolicy\":\"SingleStack\",\"internalTrafficPolicy\":\"Cluster\"},"
        "\"status\":{\"loadBalancer\":{}}}",
        profile->containers[0].port, profile->name);
    return writer.failed;
}

int kinf__profile_write_configmap(const struct kinf__profile *profile, struct kinf__dice *dice,
                                  struct kinf__buffer *text)
{
    unsigned n_lines = 10 + kinf__dice_below(dice, 60);
    struct writer writer = { text, 0 };

    put_start(&writer, profile, HOLE_NAME, HOLE_UID, "");
    put(&writer, "},\"data\":{\"application.properties\":\"");
    for (unsigned i = 0; i < n_lines; i++)
        put(&writer, "%s.%s.%u=%016" PRIx64 "\\n", profile->team, profile->app, i,
            kinf__dice_next(dice));
    put(&writer, "\",\"log-level\":\"%s\"}}", kinf__dice_below(dice, 2) == 0 ? "info" : "debug");
    return writer.failed;
}

static void put_node_conditions(struct writer *writer)
{
    for (unsigned i = 0; i < KINF__N_NODE_CONDITIONS; i++) {
        const struct kinf__condition *condition = &kinf__node_conditions[i];

        put(writer,
            "%s{\"type\":\"%s\",\"status\":\"%s\",\"lastHeartbeatTime\":\"" HOLE_STARTED "\","
            "\"lastTransitionTime\":\"" HOLE_CREATED "\",\"reason\":\"%s\",\"message\":\"%s\"}",
            comma(i), condition->type, condition->status, condition->reason, condition->message);
    }
}

static void put_node_images(struct writer *writer, struct kinf__dice *dice)
{
    unsigned n_images = 8 + kinf__dice_below(dice, 24);
    struct kinf__profile profile;

    for (unsigned i = 0; i < n_images; i++) {
        const char *image = profile.containers[0].image;

        kinf__profile_init(&profile, kinf__dice_next(dice), i);
        put(writer, "%s{\"names\":[\"%.*s@sha256:" HOLE_DIGEST "\",\"%s\"],\"sizeBytes\":%u}",
            comma(i), (int)(strrchr(image, ':') - image), image, image,
            1000000 + kinf__dice_below(dice, 900000000));
    }
}

static void put_node_metadata(struct writer *writer, struct kinf__dice *dice, unsigned number)
{
    static const char *const machines[] = { "m6.xlarge", "m6.2xlarge", "c7.4xlarge", "r6.xlarge" };

    put(writer,
        "{\"name\":\"node-%u\",\"uid\":\"" HOLE_UID "\",\"resourceVersion\":\"" HOLE_VERSION "\","
        "\"creationTimestamp\":\"" HOLE_CREATED "\",\"labels\":{\"kubernetes.io/arch\":\"amd64\","
        "\"kubernetes.io/hostname\":\"node-%u\",\"kubernetes.io/os\":\"linux\","
        "\"node.kubernetes.io/instance-type\":\"%s\",\"topology.kubernetes.io/region\":\"eu-1\","
        "\"topology.kubernetes.io/zone\":\"eu-1%c\"},\"annotations\":{"
        "\"node.alpha.kubernetes.io/ttl\":\"0\","
        "\"volumes.kubernetes.io/controller-managed-attach-detach\":\"true\"}}",
        number, number, machines[kinf__dice_below(dice, KINF__ARRAY_LEN(machines))],
        (char)('a' + number % 3));
}

int kinf__profile_write_node(struct kinf__dice *dice, unsigned number, struct kinf__buffer *text)
{
    struct writer writer = { text, 0 };
    unsigned cpus = 4U << kinf__dice_below(dice, 4);

    put(&writer, "{\"metadata\":");
    put_node_metadata(&writer, dice, number);
    put(&writer,
        ",\"spec\":{\"podCIDR\":\"10.%u.%u.0/24\",\"podCIDRs\":[\"10.%u.%u.0/24\"],"
        "\"providerID\":\"sim:///eu-1/node-%u\"},\"status\":{",
        64 + number / 256 % 64, number % 256, 64 + number / 256 % 64, number % 256, number);
    put(&writer,
        "\"capacity\":{\"cpu\":\"%u\",\"ephemeral-storage\":\"203056560Ki\",\"memory\":\"%uGi\","
        "\"pods\":\"250\"},\"allocatable\":{\"cpu\":\"%um\",\"ephemeral-storage\":\"187136925Ki\","
        "\"memory\":\"%uMi\",\"pods\":\"250\"},\"conditions\":[",
        cpus, cpus * 4, cpus * 1000 - 80, cpus * 4096 - 1100);
    put_node_conditions(&writer);
    put(&writer,
        "],\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"" HOLE_HOST_IP "\"},"
        "{\"type\":\"Hostname\",\"address\":\"node-%u\"}],\"daemonEndpoints\":{"
        "\"kubeletEndpoint\":{\"Port\":10250}},",
        number);
    put(&writer,
        "\"nodeInfo\":{\"machineID\":\"%016" PRIx64 "%016" PRIx64 "\",\"systemUUID\":\"" HOLE_UID
        "\",\"bootID\":\"" HOLE_UID "\",\"kernelVersion\":\"6.12.41\",\"osImage\":\"Linux\","
        "\"containerRuntimeVersion\":\"containerd://2.1.4\",\"kubeletVersion\":\"v1.37.1\","
        "\"kubeProxyVersion\":\"\",\"operatingSystem\":\"linux\",\"architecture\":\"amd64\"},"
        "\"images\":[",
        kinf__dice_next(dice), kinf__dice_next(dice));
    put_node_images(&writer, dice);
    put(&writer, "]}}");
    return writer.failed;
}

/* --- holes --- */

static int put_digest(struct kinf__dice *dice, struct kinf__buffer *out)
{
    static const char digits[] = "0123456789abcdef";
    char digest[64];

    for (int i = 0; i < 4; i++) {
        uint64_t number = kinf__dice_next(dice);

        for (int j = 0; j < 16; j++, number >>= 4)
            digest[16 * i + j] = digits[number & 15];
    }
    return kinf__buffer_append(out, digest, sizeof digest);
}

static const char *value_of(const struct kinf__hole_values *values, char hole)
{
    switch (hole) {
#define X(member, letter)                                                                          \
    case letter:                                                                                   \
        return values->member;
        KINF__HOLES(X)
#undef X
    default:
        return NULL;
    }
}

int kinf__fill_holes(struct kinf_str text, const struct kinf__hole_values *values,
                     struct kinf__buffer *out)
{
    const char *at = text.bytes, *end = text.bytes + text.len, *hole;
    int failed = 0;

    while (failed == 0 && (hole = memchr(at, KINF__HOLE, (size_t)(end - at))) != NULL) {
        const char *value = value_of(values, hole[1]);

        failed = kinf__buffer_append(out, at, (size_t)(hole - at));
        if (failed == 0)
            failed = hole[1] == KINF__HOLE_DIGEST
                         ? put_digest(values->dice, out)
                         : kinf__buffer_append_str(out, kinf_str_from(value));
        at = hole + 2;
    }
    return failed < 0 ? failed : kinf__buffer_append(out, at, (size_t)(end - at));
}
