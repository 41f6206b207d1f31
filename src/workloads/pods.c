/*
 * The life of a pod: what the scheduler and the kubelets do. Neighbours: pod_index.c says how far each
 * pod has come; that decides the next step, and a step is taken a while after it was seen to be due.
 *
 * Containers are names only: all of them start, those of Jobs end well, nothing is ever restarted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apiserver/kinds.h"
#include "workloads/workloads_priv.h"

/* X(step, the shortest and the longest time before it is taken) */
#define STEPS(X)                                                                                   \
    X(STEP_NONE, 0, 0)                                                                             \
    X(STEP_BIND, 5, 50)                                                                            \
    X(STEP_START, 10, 60)                                                                          \
    X(STEP_RUN, 150, 900)                                                                          \
    X(STEP_FINISH, 500, 1500)                                                                      \
    X(STEP_END, 100, 900)   /* it is being deleted */                                              \
    X(STEP_LOSE, 500, 1000) /* its node has been deleted */

enum step {
#define X(step, shortest_ms, longest_ms) step,
    STEPS(X)
#undef X
};

static enum step next_step(const struct kinf__member *pod)
{
    if (pod->is_terminating)
        return pod->is_ended ? STEP_NONE : STEP_END;
    if (pod->is_finished || pod->is_of_churn)
        return STEP_NONE;
    if (pod->host == NULL)
        return pod->is_gated ? STEP_NONE : STEP_BIND;
    if (!pod->host->is_there)
        return pod->host->was_there ? STEP_LOSE : STEP_NONE;
    if (pod->is_running)
        return pod->owner != NULL && pod->owner->kind == KINF__WORK_JOB ? STEP_FINISH : STEP_NONE;
    return pod->is_started ? STEP_RUN : STEP_START;
}

bool kinf__pod_needs_work(const struct kinf__member *pod)
{
    return next_step(pod) != STEP_NONE;
}

static int64_t draw_delay(struct kinf__sim *sim, enum step step)
{
    static const struct {
        uint64_t shortest_ms, longest_ms;
    } delays[] = {
#define X(step, shortest_ms, longest_ms) { shortest_ms, longest_ms },
        STEPS(X)
#undef X
    };

    return (int64_t)(delays[step].shortest_ms +
                     kinf__sim_random(sim) %
                         (delays[step].longest_ms - delays[step].shortest_ms + 1));
}

/* --- conditions --- */

static int set_condition(struct cJSON *pod, const char *type, const char *status,
                         const char *reason, const char *message)
{
    struct kinf__condition condition = { type, status, reason, message };
    int64_t generation = kinf__doc_integer(kinf__doc_get(pod, "metadata"), "generation", 0);
    struct cJSON *node = kinf__condition_set(pod, &condition);

    if (node == NULL || kinf__doc_set(node, "lastProbeTime", cJSON_CreateNull()) < 0 ||
        (generation != 0 && kinf__doc_set_integer(node, "observedGeneration", generation) < 0))
        return KINF_ERR_NO_MEMORY;
    return 0;
}

/* Ready and what goes with it: all of the containers, or none. */
static int set_readiness(struct cJSON *pod, bool is_ready, const char *reason, const char *message)
{
    const char *status = is_ready ? "True" : "False";

    if (set_condition(pod, "PodReadyToStartContainers", status, NULL, NULL) < 0 ||
        set_condition(pod, "Ready", status, reason, message) < 0)
        return KINF_ERR_NO_MEMORY;
    return set_condition(pod, "ContainersReady", status, reason, message);
}

/* "containers with unready status: [main sidecar]" */
static int set_unready(struct cJSON *pod)
{
    const struct cJSON *container;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    const char *before = "containers with unready status: [", *message;

    cJSON_ArrayForEach(container, kinf__doc_find(pod, "spec", "containers", NULL))
    {
        if (kinf__buffer_printf(&text, "%s%s", before, kinf__doc_text(container, "name", NULL)) < 0)
            return KINF_ERR_NO_MEMORY;
        before = " ";
    }
    if (kinf__buffer_append(&text, "]", 1) < 0 || (message = kinf__buffer_cstr(&text)) == NULL)
        return KINF_ERR_NO_MEMORY;
    return set_readiness(pod, false, "ContainersNotReady", message);
}

/* --- containers --- */

enum container_state {
    CONTAINER_WAITING,
    CONTAINER_RUNNING,
    CONTAINER_DONE,
};

static void write_digest(uint64_t seed, char text[65])
{
    for (int i = 0; i < 4; i++) {
        seed = (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9U + 0x9e3779b97f4a7c15U;
        snprintf(text + 16 * i, 17, "%016" PRIx64, seed);
    }
}

static struct cJSON *make_state(enum container_state state, const char *waiting_for,
                                const char *started, const char *id)
{
    char time[KINF__RFC3339_SIZE];

    kinf__sim_time(time);
    switch (state) {
    case CONTAINER_WAITING:
        return kinf__json_format("{\"waiting\":{\"reason\":\"%s\"}}", waiting_for);
    case CONTAINER_RUNNING:
        return kinf__json_format("{\"running\":{\"startedAt\":\"%s\"}}", time);
    default:
        return kinf__json_format("{\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\","
                                 "\"startedAt\":\"%s\",\"finishedAt\":\"%s\","
                                 "\"containerID\":\"%s\"}}",
                                 *started != '\0' ? started : time, time, id);
    }
}

/* What the runtime knows of it once it is there. */
static int set_ids(struct cJSON *status, const char *image, const char *container_id)
{
    char digest[65], id[KINF_NAME_MAX + 80];
    const char *last = strrchr(image, '/');
    size_t repository_len = last != NULL ? (size_t)(last - image) : 0;

    repository_len += strcspn(image + repository_len, ":@");
    write_digest(kinf__text_hash(image, strlen(image)), digest);
    snprintf(id, sizeof id, "%.*s@sha256:%s",
             repository_len < KINF_NAME_MAX ? (int)repository_len : KINF_NAME_MAX, image, digest);
    if (kinf__doc_set_text(status, "imageID", id) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_set_text(status, "containerID", container_id);
}

static struct cJSON *make_container_status(struct kinf__workloads *workloads,
                                           const struct cJSON *container,
                                           enum container_state state, const char *waiting_for,
                                           const struct cJSON *before)
{
    const char *image = kinf__doc_text(container, "image", NULL);
    const char *started = kinf__doc_text(before, "state", "running", "startedAt", NULL);
    const char *old_id = kinf__doc_text(before, "containerID", NULL);
    bool is_running = state == CONTAINER_RUNNING;
    char digest[65], id[80];
    KINF__AUTO_DOC *status = kinf__json_format(
        "{\"lastState\":{},\"ready\":%s,\"restartCount\":0,\"imageID\":\"\","
        "\"started\":%s}",
        state == CONTAINER_WAITING ? "false" : "true", is_running ? "true" : "false");

    write_digest(kinf__sim_random(workloads->sim), digest);
    snprintf(id, sizeof id, "%.79s", old_id);
    if (*old_id == '\0')
        snprintf(id, sizeof id, "containerd://%s", digest);
    if (status == NULL ||
        kinf__doc_set_text(status, "name", kinf__doc_text(container, "name", NULL)) < 0 ||
        kinf__doc_set_text(status, "image", image) < 0 ||
        kinf__doc_set(status, "state", make_state(state, waiting_for, started, id)) < 0 ||
        (state != CONTAINER_WAITING && set_ids(status, image, id) < 0))
        return NULL;
    return KINF__TAKE(status);
}

static const struct cJSON *find_status(const struct cJSON *statuses, const char *name)
{
    const struct cJSON *status;

    cJSON_ArrayForEach(status, statuses)
    {
        if (strcmp(kinf__doc_text(status, "name", NULL), name) == 0)
            return status;
    }
    return NULL;
}

/* Of one list of containers: `statuses` is its member of the status. */
static int set_container_statuses(struct kinf__workloads *workloads, struct cJSON *pod,
                                  const char *list, const char *statuses,
                                  enum container_state state)
{
    const struct cJSON *containers = kinf__doc_find(pod, "spec", list, NULL), *container;
    const struct cJSON *inits = kinf__doc_find(pod, "spec", "initContainers", NULL);
    const struct cJSON *before = kinf__doc_find(pod, "status", statuses, NULL);
    bool is_init = containers == inits;
    KINF__AUTO_DOC *made = cJSON_CreateArray();

    if (containers == NULL)
        return 0;
    cJSON_ArrayForEach(container, containers)
    {
        const char *name = kinf__doc_text(container, "name", NULL);
        bool is_sidecar =
            is_init && strcmp(kinf__doc_text(container, "restartPolicy", NULL), "Always") == 0;
        enum container_state its_state =
            is_init && !is_sidecar && state == CONTAINER_RUNNING ? CONTAINER_DONE : state;

        if (kinf__doc_append(
                made, make_container_status(workloads, container, its_state,
                                            inits != NULL ? "PodInitializing" : "ContainerCreating",
                                            find_status(before, name))) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return kinf__doc_set(kinf__doc_object(pod, "status"), statuses, KINF__TAKE(made));
}

static int set_containers(struct kinf__workloads *workloads, struct cJSON *pod,
                          enum container_state state)
{
    if (set_container_statuses(workloads, pod, "initContainers", "initContainerStatuses", state) <
        0)
        return KINF_ERR_NO_MEMORY;
    return set_container_statuses(workloads, pod, "containers", "containerStatuses", state);
}

/* --- scheduler --- */

struct wish {
    struct kinf__workloads *workloads;
    const struct cJSON *labels; /* spec.nodeSelector */
};

static bool fits(const struct kinf__host *host, void *ctx)
{
    const struct wish *wish = ctx;
    const struct kinf_object *node kinf_auto_object = NULL;
    const struct cJSON *label;
    char value[128];

    if (wish->labels == NULL || wish->labels->child == NULL)
        return true;
    node = kinf__store_get(wish->workloads->resources[KINF__WORK_NODE], "", host->name);
    if (node == NULL)
        return false;
    cJSON_ArrayForEach(label, wish->labels)
    {
        if (kinf_object_get_label(node, label->string, value, sizeof value) < 0 ||
            strcmp(value, cJSON_IsString(label) ? label->valuestring : "") != 0)
            return false;
    }
    return true;
}

static int say_unschedulable(struct kinf__work *work, struct kinf__member *pod)
{
    struct kinf__workloads *workloads = work->workloads;
    size_t n_nodes = workloads->pods.by_name.n_nodes;
    char message[128] = "no nodes available to schedule pods";

    kinf__list_remove(&pod->waiting);
    kinf__list_push_back(&workloads->pods.waiting, &pod->waiting);
    if (!workloads->had_node)
        return kinf__make_first_node(workloads);
    if (pod->is_unschedulable)
        return 0;
    if (n_nodes != 0)
        snprintf(message, sizeof message,
                 "0/%zu nodes are available: %zu node(s) didn't match what the pod wants.", n_nodes,
                 n_nodes);
    kinf__work_record(work, "default-scheduler", "FailedScheduling", "%s", message);
    if (set_condition(work->tree, "PodScheduled", "False", "Unschedulable", message) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__work_put_status(work, "kube-scheduler");
}

/* The node and the condition in one change, as a Binding has it; it is nobody's managed field. */
static int bind_pod(struct kinf__work *work, struct kinf__member *pod)
{
    struct kinf__workloads *workloads = work->workloads;
    const char *scheduler = kinf__doc_text(work->spec, "schedulerName", NULL);
    struct wish wish = { workloads, kinf__doc_get(work->spec, "nodeSelector") };
    struct kinf__host *host = kinf__pod_index_pick_host(&workloads->pods, fits, &wish);

    if (*scheduler != '\0' && strcmp(scheduler, "default-scheduler") != 0)
        return 0;
    if (host == NULL)
        return say_unschedulable(work, pod);
    if (kinf__doc_set_text(kinf__doc_get(work->tree, "spec"), "nodeName", host->name) < 0 ||
        kinf__pod_take_topology(workloads->sim, host->name, work->tree) < 0 ||
        set_condition(work->tree, "PodScheduled", "True", NULL, NULL) < 0)
        return KINF_ERR_NO_MEMORY;
    if (kinf__store_put(kinf__sim_store(workloads->sim), workloads->resources[KINF__WORK_POD],
                        work->tree, NULL) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__work_record(work, "default-scheduler", "Scheduled", "Successfully assigned %s to %s",
                      pod->key, host->name);
    return 0;
}

/* --- kubelet --- */

static int set_ip(struct cJSON *status, const char *name, const char *list, const char *ip)
{
    if (kinf__doc_set_text(status, name, ip) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_set(status, list, kinf__json_format("[{\"ip\":\"%s\"}]", ip));
}

static int start_pod(struct kinf__work *work, const struct kinf__member *pod)
{
    struct cJSON *status = kinf__doc_object(work->tree, "status");
    bool has_inits = kinf__doc_get(work->spec, "initContainers") != NULL;
    char time[KINF__RFC3339_SIZE];

    kinf__sim_time(time);
    if (status == NULL || kinf__doc_set_text(status, "phase", "Pending") < 0 ||
        kinf__doc_set_text(status, "startTime", time) < 0 ||
        (pod->host->ip[0] != '\0' && set_ip(status, "hostIP", "hostIPs", pod->host->ip) < 0) ||
        set_unready(work->tree) < 0 ||
        set_condition(work->tree, "Initialized", has_inits ? "False" : "True",
                      has_inits ? "ContainersNotInitialized" : NULL, NULL) < 0 ||
        set_condition(work->tree, "PodScheduled", "True", NULL, NULL) < 0 ||
        set_containers(work->workloads, work->tree, CONTAINER_WAITING) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__work_put_status(work, "kubelet");
}

static int give_ip(const struct kinf__work *work, const struct kinf__member *pod)
{
    struct cJSON *status = kinf__doc_object(work->tree, "status");
    uint32_t n = work->workloads->n_ips++;
    char ip[64];

    if (kinf__doc_is_true(work->spec, "hostNetwork"))
        snprintf(ip, sizeof ip, "%s", pod->host->ip);
    else
        snprintf(ip, sizeof ip, "10.%u.%u.%u", 128 + n / (254 * 256) % 128, n / 254 % 256,
                 n % 254 + 1);
    return status != NULL ? set_ip(status, "podIP", "podIPs", ip) : KINF_ERR_NO_MEMORY;
}

static int run_pod(struct kinf__work *work, const struct kinf__member *pod)
{
    struct cJSON *status = kinf__doc_object(work->tree, "status");
    const struct cJSON *container;

    if (status == NULL || kinf__doc_set_text(status, "phase", "Running") < 0 ||
        give_ip(work, pod) < 0 ||
        set_condition(work->tree, "Initialized", "True", NULL, NULL) < 0 ||
        set_readiness(work->tree, true, NULL, NULL) < 0 ||
        set_containers(work->workloads, work->tree, CONTAINER_RUNNING) < 0)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(container, kinf__doc_get(work->spec, "containers"))
    {
        kinf__work_record(work, "kubelet", "Pulled",
                          "Container image \"%s\" already present on machine",
                          kinf__doc_text(container, "image", NULL));
        kinf__work_record(work, "kubelet", "Created", "Container created");
        kinf__work_record(work, "kubelet", "Started", "Container started");
    }
    return kinf__work_put_status(work, "kubelet");
}

static int finish_pod(struct kinf__work *work)
{
    struct cJSON *status = kinf__doc_object(work->tree, "status"), *container;

    if (status == NULL || kinf__doc_set_text(status, "phase", "Succeeded") < 0 ||
        set_condition(work->tree, "Initialized", "True", "PodCompleted", NULL) < 0 ||
        set_readiness(work->tree, false, "PodCompleted", NULL) < 0 ||
        set_containers(work->workloads, work->tree, CONTAINER_DONE) < 0)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(container, kinf__doc_get(status, "containerStatuses"))
    {
        if (kinf__doc_set(container, "ready", cJSON_CreateFalse()) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return kinf__work_put_status(work, "kubelet");
}

/* --- steps --- */

static int take_step(struct kinf__work *work, struct kinf__member *pod, enum step step)
{
    int failed;

    if (step == STEP_END || step == STEP_LOSE)
        return kinf__workloads_delete(work->workloads, KINF__WORK_POD, pod->key, 0);
    failed = kinf__work_read(work);
    if (failed < 0)
        return failed;
    switch (step) {
    case STEP_BIND:
        return bind_pod(work, pod);
    case STEP_START:
        return start_pod(work, pod);
    case STEP_RUN:
        return run_pod(work, pod);
    default:
        return finish_pod(work);
    }
}

/* One "Killing" a pod, for what has containers that run. */
static void announce_end(struct kinf__work *work, const struct kinf__member *pod)
{
    if (pod->is_running && !pod->is_of_churn && kinf__work_read(work) == 0)
        kinf__work_record(work, "kubelet", "Killing", "Stopping containers");
}

int kinf__reconcile_pod(struct kinf__work *work)
{
    struct kinf__workloads *workloads = work->workloads;
    struct kinf__member *pod = kinf__pod_index_find(&workloads->pods, KINF__WORK_POD, work->key);
    enum step step = pod != NULL ? next_step(pod) : STEP_NONE;

    if (step == STEP_NONE)
        return 0;
    if (pod->step != (int)step) {
        pod->step = (int)step;
        pod->step_ms = workloads->now_ms + draw_delay(workloads->sim, step);
        if (step == STEP_END)
            announce_end(work, pod);
    }
    if (pod->step_ms > workloads->now_ms) {
        kinf__work_again(work, pod->step_ms);
        return 0;
    }
    return take_step(work, pod, step);
}
