/*
 * ReplicaSets: as many pods as are wanted. Neighbours: deployments.c says how many.
 */
#include <stdio.h>
#include <string.h>

#include "workloads/workloads_priv.h"

static int create_pods(const struct kinf__work *work, int64_t n)
{
    int failed = 0;

    for (int64_t i = 0; failed == 0 && i < n; i++) {
        KINF__AUTO_DOC *pod = NULL;

        failed = kinf__workloads_create(work->workloads, KINF__WORK_POD, KINF__CONTROLLER_MANAGER,
                                        kinf__work_make_pod(work), &pod);
        if (failed == 0)
            kinf__work_record(work, "replicaset-controller", "SuccessfulCreate", "Created pod: %s",
                              kinf__doc_text(pod, "metadata", "name", NULL));
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

static int delete_pods(const struct kinf__work *work, const struct kinf__owner *owner, int64_t n)
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

        snprintf(name, sizeof name, "%s", kinf__object_key_name(pods[i]->key));
        failed = kinf__workloads_delete(work->workloads, KINF__WORK_POD, pods[i]->key, -1);
        if (failed == 0)
            kinf__work_record(work, "replicaset-controller", "SuccessfulDelete", "Deleted pod: %s",
                              name);
    }
    return failed;
}

static int scale(struct kinf__work *work, const struct kinf__owner *owner, int64_t n_missing)
{
    int64_t n = n_missing < 0 ? -n_missing : n_missing;

    if (n >= KINF__WORK_BURST) {
        n = KINF__WORK_BURST;
        kinf__work_again(work, work->workloads->now_ms);
    }
    return n_missing >= 0 ? create_pods(work, n) : delete_pods(work, owner, n);
}

static int write_status(struct kinf__work *work, const struct kinf__pod_counts *counts)
{
    struct cJSON *status = kinf__doc_object(work->tree, "status");
    int64_t generation = kinf__doc_integer(kinf__doc_get(work->tree, "metadata"), "generation", 1);

    if (status == NULL || kinf__doc_set_integer(status, "replicas", counts->active) < 0 ||
        kinf__set_count(status, "fullyLabeledReplicas", counts->active) < 0 ||
        kinf__set_count(status, "readyReplicas", counts->ready) < 0 ||
        kinf__set_count(status, "availableReplicas", counts->available) < 0 ||
        kinf__set_count(status, "terminatingReplicas", counts->terminating) < 0 ||
        kinf__set_count(status, "observedGeneration", generation) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__work_put_changed_status(work);
}

int kinf__reconcile_replicaset(struct kinf__work *work)
{
    const struct kinf__owner *owner;
    struct kinf__pod_counts counts;
    int failed = kinf__work_read(work);

    if (failed < 0)
        return failed;
    owner = kinf__work_owner(work);
    counts = kinf__count_pods(work, owner);
    if (!kinf__is_being_deleted(work->tree))
        failed = scale(work, owner, kinf__doc_integer(work->spec, "replicas", 1) - counts.active);
    if (failed < 0)
        return failed;
    counts = kinf__count_pods(work, kinf__work_owner(work));
    return write_status(work, &counts);
}
