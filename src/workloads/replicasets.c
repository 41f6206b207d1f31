/*
 * ReplicaSets: as many pods as are wanted. Neighbours: deployments.c says how many.
 */
#include <stdio.h>
#include <string.h>

#include "workloads/workloads_priv.h"

#define MANAGER "kube-controller-manager"

static void record(struct kinf__workloads *workloads, const struct cJSON *replicaset,
                   const char *reason, const char *verb, const char *pod)
{
    struct kinf__happening happening = { "apps/v1",  "ReplicaSet",
                                         replicaset, "replicaset-controller",
                                         "Normal",   reason };

    kinf__record(&workloads->recorder, workloads->sim, workloads->now_ms, &happening, "%s pod: %s",
                 verb, pod);
}

static int create_pods(struct kinf__workloads *workloads, const struct cJSON *replicaset, int64_t n)
{
    int failed = 0;

    for (int64_t i = 0; failed == 0 && i < n; i++) {
        struct kinf__verb verb = { .sim = workloads->sim,
                                   .resource = workloads->resources[KINF__WORK_POD],
                                   .manager = MANAGER };
        struct cJSON *pod = kinf__pod_of_template(KINF__WORK_REPLICASET, replicaset);

        if (pod == NULL)
            return KINF_ERR_NO_MEMORY;
        failed = kinf__verb_create(&verb, pod);
        if (failed == 0)
            record(workloads, replicaset, "SuccessfulCreate", "Created",
                   kinf__doc_text(verb.object, "metadata", "name", NULL));
        kinf__verb_release(&verb);
    }
    return failed;
}

/* The further it has come, the longer a pod stays; of equals the older one. */
static int progress_of(const struct kinf__member *pod)
{
    return (pod->host != NULL) + pod->is_running + pod->is_ready;
}

static int compare_pods(const void *a, const void *b)
{
    const struct kinf__member *left = *(struct kinf__member *const *)a,
                              *right = *(struct kinf__member *const *)b;

    if (progress_of(left) != progress_of(right))
        return progress_of(left) - progress_of(right);
    return (left->order < right->order) - (left->order > right->order);
}

static int delete_pods(struct kinf__workloads *workloads, const struct cJSON *replicaset,
                       const struct kinf__owner *owner, int64_t n)
{
    KINF__AUTO_FREE struct kinf__member **pods =
        calloc(owner->n_members, sizeof(struct kinf__member *));
    size_t n_pods = 0;
    int failed = 0;

    if (pods == NULL)
        return KINF_ERR_NO_MEMORY;
    KINF__POD_INDEX_FOR_EACH(pod, owner)
    {
        if (kinf__member_is_active(pod))
            pods[n_pods++] = pod;
    }
    qsort(pods, n_pods, sizeof *pods, compare_pods);
    /* A delete may free the pod it is of, and no other. */
    for (size_t i = 0; failed == 0 && i < n_pods && (int64_t)i < n; i++) {
        char name[KINF_NAME_MAX];

        snprintf(name, sizeof name, "%s", kinf__name_of_key(pods[i]->key));
        failed = kinf__workloads_delete(workloads, KINF__WORK_POD, pods[i]->key, -1);
        if (failed == 0)
            record(workloads, replicaset, "SuccessfulDelete", "Deleted", name);
    }
    return failed;
}

static int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

static int scale(struct kinf__workloads *workloads, const char *key, const struct cJSON *replicaset,
                 const struct kinf__owner *owner, int64_t n_missing)
{
    int64_t n = at_most(n_missing < 0 ? -n_missing : n_missing, KINF__WORK_BURST);

    if (n_missing == 0)
        return 0;
    if (n == KINF__WORK_BURST)
        kinf__workloads_again(workloads, KINF__WORK_REPLICASET, key, workloads->now_ms);
    return n_missing > 0 ? create_pods(workloads, replicaset, n)
                         : delete_pods(workloads, replicaset, owner, n);
}

static int write_status(struct kinf__workloads *workloads, struct cJSON **replicaset,
                        const struct kinf__pod_counts *counts)
{
    KINF__AUTO_DOC *before = kinf__doc_dup(kinf__doc_get(*replicaset, "status"));
    struct cJSON *status = kinf__doc_object(*replicaset, "status");
    int64_t generation = kinf__doc_integer(kinf__doc_get(*replicaset, "metadata"), "generation", 1);

    if (status == NULL || kinf__doc_set_integer(status, "replicas", counts->active) < 0 ||
        kinf__set_count(status, "fullyLabeledReplicas", counts->active) < 0 ||
        kinf__set_count(status, "readyReplicas", counts->ready) < 0 ||
        kinf__set_count(status, "availableReplicas", counts->available) < 0 ||
        kinf__set_count(status, "terminatingReplicas", counts->terminating) < 0 ||
        kinf__set_count(status, "observedGeneration", generation) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__put_changed_status(workloads, KINF__WORK_REPLICASET, MANAGER, replicaset, before);
}

int kinf__reconcile_replicaset(struct kinf__workloads *workloads, const char *key)
{
    KINF__AUTO_DOC *replicaset = NULL;
    const struct kinf__owner *owner;
    const struct cJSON *spec;
    struct kinf__pod_counts counts;
    int64_t next_ms = KINF__NEVER_MS, min_ready_s;
    int failed = kinf__workloads_read(workloads, KINF__WORK_REPLICASET, key, &replicaset);
    const char *uid;

    if (failed < 0)
        return failed == KINF_ERR_NOT_FOUND ? 0 : failed;
    spec = kinf__doc_get(replicaset, "spec");
    uid = kinf__doc_text(replicaset, "metadata", "uid", NULL);
    min_ready_s = kinf__doc_integer(spec, "minReadySeconds", 0);
    owner = kinf__pod_index_find_owner(&workloads->pods, uid);
    counts = kinf__count_pods(owner, min_ready_s, workloads->now_ms, &next_ms);
    if (!kinf__is_being_deleted(replicaset))
        failed = scale(workloads, key, replicaset, owner,
                       kinf__doc_integer(spec, "replicas", 1) - counts.active);
    owner = kinf__pod_index_find_owner(&workloads->pods, uid);
    counts = kinf__count_pods(owner, min_ready_s, workloads->now_ms, &next_ms);
    if (next_ms != KINF__NEVER_MS)
        kinf__workloads_again(workloads, KINF__WORK_REPLICASET, key, next_ms);
    if (failed == 0)
        failed = write_status(workloads, &replicaset, &counts);
    return failed;
}
