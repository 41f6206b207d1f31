/*
 * DaemonSets: a pod on each node. Neighbours: pod_index.c has the nodes, pods.c runs the pods, which
 * name their node from the beginning. Taints are nothing to them; spec.template's nodeSelector is
 * not looked at.
 */
#include <string.h>

#include "workloads/rollout.h"
#include "workloads/workloads_priv.h"

struct daemonset {
    struct kinf__work *work;
    char revision[KINF__TEMPLATE_HASH_SIZE];
    uint64_t revision_hash;
    int64_t n_wanted, n_updated;
};

static int create_pod(struct daemonset *set, const struct kinf__host *host)
{
    KINF__AUTO_DOC *pod = kinf__work_make_pod(set->work);

    if (pod == NULL ||
        kinf__doc_set_text(kinf__doc_find(pod, "metadata", "labels", NULL),
                           "controller-revision-hash", set->revision) < 0 ||
        kinf__doc_set_text(kinf__doc_get(pod, "spec"), "nodeName", host->name) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__workloads_create(set->work->workloads, KINF__WORK_POD, KINF__CONTROLLER_MANAGER,
                                  KINF__TAKE(pod), NULL);
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

static int fill(struct daemonset *set, uint64_t mark)
{
    int n_made = 0, failed = 0;

    KINF__LIST_FOR_EACH (node, &set->work->workloads->pods.hosts) {
        const struct kinf__host *host = KINF__LIST_ENTRY(node, struct kinf__host, link);

        if (!host->is_there || host->mark == mark)
            continue;
        if (n_made++ == KINF__WORK_BURST) {
            kinf__work_again(set->work, set->work->workloads->now_ms);
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
    const struct cJSON *strategy = kinf__doc_get(set->work->spec, "updateStrategy");
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
    return old != NULL ? kinf__workloads_delete(set->work->workloads, KINF__WORK_POD, old->key, -1)
                       : 0;
}

static int write_status(struct daemonset *set, const struct kinf__pod_counts *counts)
{
    struct cJSON *status = kinf__doc_object(set->work->tree, "status");
    int64_t generation =
        kinf__doc_integer(kinf__doc_get(set->work->tree, "metadata"), "generation", 1);
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
    return kinf__work_put_changed_status(set->work);
}

static int advance(struct daemonset *set, const struct kinf__owner *owner, int64_t n_available)
{
    uint64_t mark = ++set->work->workloads->pods.n_marks;
    const struct kinf__member *surplus = mark_hosts(set, owner, mark);
    int failed;

    KINF__LIST_FOR_EACH (node, &set->work->workloads->pods.hosts)
        set->n_wanted += KINF__LIST_ENTRY(node, struct kinf__host, link)->is_there;
    if (kinf__is_being_deleted(set->work->tree))
        return 0;
    if (surplus != NULL)
        return kinf__workloads_delete(set->work->workloads, KINF__WORK_POD, surplus->key, -1);
    failed = fill(set, mark);
    return failed == 0 ? update(set, owner, n_available) : failed;
}

int kinf__reconcile_daemonset(struct kinf__work *work)
{
    struct daemonset set = { .work = work };
    const struct kinf__owner *owner;
    struct kinf__pod_counts counts;
    int failed = kinf__work_read(work);

    if (failed < 0)
        return failed;
    if (kinf__template_hash(kinf__doc_get(work->spec, "template"), 0, set.revision) < 0)
        return KINF_ERR_NO_MEMORY;
    set.revision_hash = kinf__text_hash(set.revision, strlen(set.revision));
    owner = kinf__work_owner(work);
    counts = kinf__count_pods(work, owner);
    failed = advance(&set, owner, counts.available);
    if (failed < 0)
        return failed;
    counts = kinf__count_pods(work, kinf__work_owner(work));
    return write_status(&set, &counts);
}
