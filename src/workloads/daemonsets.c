/*
 * DaemonSets: a pod on each node. Neighbours: pod_index.c has the nodes, pods.c runs the pods, which
 * name their node from the beginning. Taints are nothing to them; spec.template's nodeSelector is
 * not looked at.
 */
#include <stdio.h>
#include <string.h>

#include "workloads/rollout.h"
#include "workloads/workloads_priv.h"

#define MANAGER "kube-controller-manager"

struct daemonset {
    struct kinf__workloads *workloads;
    struct cJSON *tree;
    const struct cJSON *spec;
    char revision[KINF__TEMPLATE_HASH_SIZE];
    uint64_t revision_hash;
    int64_t n_wanted, n_updated;
};

static int create_pod(struct daemonset *set, const struct kinf__host *host)
{
    KINF__AUTO_DOC *pod = kinf__pod_of_template(KINF__WORK_DAEMONSET, set->tree);

    if (pod == NULL ||
        kinf__doc_set_text(kinf__doc_find(pod, "metadata", "labels", NULL),
                           "controller-revision-hash", set->revision) < 0 ||
        kinf__doc_set_text(kinf__doc_get(pod, "spec"), "nodeName", host->name) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__workloads_create(set->workloads, KINF__WORK_POD, MANAGER, KINF__TAKE(pod));
}

/* Every pod marks its node; a second one of a node, or one of no node, is too many. */
static const struct kinf__member *mark_hosts(struct daemonset *set, const struct kinf__owner *owner,
                                             uint64_t mark)
{
    const struct kinf__member *surplus = NULL;

    KINF__POD_INDEX_FOR_EACH(pod, owner)
    {
        bool is_surplus = pod->host == NULL || !pod->host->is_there || pod->is_finished ||
                          pod->host->mark == mark;

        if (is_surplus && !pod->is_terminating)
            surplus = pod;
        /* One that is going is waited for. */
        if (pod->host != NULL)
            pod->host->mark = mark;
        if (pod->revision == set->revision_hash && kinf__member_is_active(pod))
            set->n_updated++;
    }
    return surplus;
}

static int fill(struct daemonset *set, const char *key, uint64_t mark)
{
    int n_made = 0, failed = 0;

    KINF__LIST_FOR_EACH (node, &set->workloads->pods.hosts) {
        const struct kinf__host *host = KINF__LIST_ENTRY(node, struct kinf__host, link);

        if (!host->is_there || host->mark == mark)
            continue;
        if (n_made++ == KINF__WORK_BURST) {
            kinf__workloads_again(set->workloads, KINF__WORK_DAEMONSET, key,
                                  set->workloads->now_ms);
            break;
        }
        failed = create_pod(set, host);
        if (failed < 0)
            break;
    }
    return failed;
}

/* As many at a time as may be unavailable. */
static int update(struct daemonset *set, const struct kinf__owner *owner, int64_t n_available)
{
    const struct cJSON *strategy = kinf__doc_get(set->spec, "updateStrategy");
    int64_t n_may = kinf__rollout_share(
        kinf__doc_find(strategy, "rollingUpdate", "maxUnavailable", NULL), set->n_wanted, true, 1);
    const struct kinf__member *old = NULL;

    if (strcmp(kinf__doc_text(strategy, "type", NULL), "OnDelete") == 0 ||
        set->n_wanted - n_available >= (n_may > 0 ? n_may : 1))
        return 0;
    KINF__POD_INDEX_FOR_EACH(pod, owner)
    {
        if (pod->revision != set->revision_hash && kinf__member_is_active(pod))
            old = pod;
    }
    return old != NULL ? kinf__workloads_delete(set->workloads, KINF__WORK_POD, old->key, -1) : 0;
}

static int write_status(struct daemonset *set, const struct kinf__pod_counts *counts)
{
    KINF__AUTO_DOC *before = kinf__doc_dup(kinf__doc_get(set->tree, "status"));
    struct cJSON *status = kinf__doc_object(set->tree, "status");
    int64_t generation = kinf__doc_integer(kinf__doc_get(set->tree, "metadata"), "generation", 1);
    int64_t unavailable = set->n_wanted - counts->available;

    if (status == NULL || kinf__set_count(status, "observedGeneration", generation) < 0 ||
        kinf__doc_set_integer(status, "currentNumberScheduled", counts->active) < 0 ||
        kinf__doc_set_integer(status, "numberMisscheduled", 0) < 0 ||
        kinf__doc_set_integer(status, "desiredNumberScheduled", set->n_wanted) < 0 ||
        kinf__doc_set_integer(status, "numberReady", counts->ready) < 0 ||
        kinf__set_count(status, "updatedNumberScheduled", set->n_updated) < 0 ||
        kinf__set_count(status, "numberAvailable", counts->available) < 0 ||
        kinf__set_count(status, "numberUnavailable", unavailable > 0 ? unavailable : 0) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__put_changed_status(set->workloads, KINF__WORK_DAEMONSET, MANAGER, &set->tree,
                                    before);
}

static int advance(struct daemonset *set, const char *key, const struct kinf__owner *owner,
                   int64_t n_available)
{
    uint64_t mark = ++set->workloads->pods.n_marks;
    const struct kinf__member *surplus = mark_hosts(set, owner, mark);
    int failed;

    KINF__LIST_FOR_EACH (node, &set->workloads->pods.hosts)
        set->n_wanted += KINF__LIST_ENTRY(node, struct kinf__host, link)->is_there;
    if (kinf__is_being_deleted(set->tree))
        return 0;
    if (surplus != NULL)
        return kinf__workloads_delete(set->workloads, KINF__WORK_POD, surplus->key, -1);
    failed = fill(set, key, mark);
    return failed == 0 ? update(set, owner, n_available) : failed;
}

static int reconcile(struct daemonset *set, const char *key)
{
    const struct kinf__pod_index *index = &set->workloads->pods;
    const char *uid = kinf__doc_text(set->tree, "metadata", "uid", NULL);
    struct kinf__pod_counts counts;
    int64_t next_ms = KINF__NEVER_MS, min_ready_s;
    int failed;

    set->spec = kinf__doc_get(set->tree, "spec");
    min_ready_s = kinf__doc_integer(set->spec, "minReadySeconds", 0);
    if (kinf__template_hash(kinf__doc_get(set->spec, "template"), 0, set->revision) < 0)
        return KINF_ERR_NO_MEMORY;
    set->revision_hash = kinf__text_hash(set->revision, strlen(set->revision));
    counts = kinf__count_pods(kinf__pod_index_find_owner(index, uid), min_ready_s,
                              set->workloads->now_ms, &next_ms);
    failed = advance(set, key, kinf__pod_index_find_owner(index, uid), counts.available);
    if (failed < 0)
        return failed;
    counts = kinf__count_pods(kinf__pod_index_find_owner(index, uid), min_ready_s,
                              set->workloads->now_ms, &next_ms);
    if (next_ms != KINF__NEVER_MS)
        kinf__workloads_again(set->workloads, KINF__WORK_DAEMONSET, key, next_ms);
    return write_status(set, &counts);
}

int kinf__reconcile_daemonset(struct kinf__workloads *workloads, const char *key)
{
    struct daemonset set = { .workloads = workloads };
    int failed = kinf__workloads_read(workloads, KINF__WORK_DAEMONSET, key, &set.tree);

    if (failed < 0)
        return failed == KINF_ERR_NOT_FOUND ? 0 : failed;
    failed = reconcile(&set, key);
    cJSON_Delete(set.tree);
    return failed;
}
