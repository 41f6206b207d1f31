/*
 * StatefulSets: pods with ordinals, one after the other. Neighbours: pods.c runs them.
 *
 * One step a reconcile: the first thing that is not as it should be is mended, and what comes of it
 * is waited for, unless podManagementPolicy says Parallel. There are no ControllerRevisions and no
 * volume claims: a pod of an older template is simply deleted and made anew.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "workloads/workloads_priv.h"

#define MAX 10000 /* ordinals that are looked at */

struct statefulset {
    struct kinf__work *work;
    const char *name;
    char revision[KINF_NAME_MAX + KINF__TEMPLATE_HASH_SIZE];
    uint64_t revision_hash;
    int64_t replicas, start;
    bool is_parallel;
    struct kinf__member **pods;   /* by ordinal, from start on; NULL: none */
    struct kinf__member *surplus; /* the one of the highest ordinal beyond them; NULL: none */
    int64_t n_updated;
};

/* Behind "name-"; -1: it is none of ours. */
static int64_t ordinal_of(const struct statefulset *set, const struct kinf__member *pod)
{
    const char *name = kinf__object_key_name(pod->key);
    size_t len = strlen(set->name);
    int64_t ordinal;
    char *end;

    if (strncmp(name, set->name, len) != 0 || name[len] != '-' || name[len + 1] < '0' ||
        name[len + 1] > '9')
        return -1;
    ordinal = strtoll(name + len + 1, &end, 10);
    return *end == '\0' && ordinal <= INT32_MAX ? ordinal : -1;
}

static int read_pods(struct statefulset *set, const struct kinf__owner *owner)
{
    int64_t highest = -1;

    set->pods = calloc((size_t)set->replicas + 1, sizeof(struct kinf__member *));
    if (set->pods == NULL)
        return KINF_ERR_NO_MEMORY;
    KINF__POD_INDEX_FOR_EACH(pod, owner)
    {
        int64_t ordinal = ordinal_of(set, pod), place = ordinal - set->start;

        if (pod->revision == set->revision_hash && kinf__member_is_active(pod))
            set->n_updated++;
        if (place >= 0 && place < set->replicas) {
            set->pods[place] = pod;
        } else if (ordinal > highest) {
            highest = ordinal;
            set->surplus = pod;
        }
    }
    return 0;
}

static int create_pod(struct statefulset *set, int64_t ordinal)
{
    KINF__AUTO_DOC *pod = kinf__work_make_pod(set->work);
    struct cJSON *metadata = kinf__doc_get(pod, "metadata");
    struct cJSON *labels = kinf__doc_get(metadata, "labels"), *spec = kinf__doc_get(pod, "spec");
    const char *service = kinf__doc_text(set->work->spec, "serviceName", NULL);
    char name[2 * KINF_NAME_MAX], index[24];
    int failed;

    snprintf(name, sizeof name, "%s-%" PRId64, set->name, ordinal);
    snprintf(index, sizeof index, "%" PRId64, ordinal);
    if (pod == NULL || kinf__doc_set_text(metadata, "name", name) < 0 ||
        kinf__doc_set_text(labels, "controller-revision-hash", set->revision) < 0 ||
        kinf__doc_set_text(labels, "statefulset.kubernetes.io/pod-name", name) < 0 ||
        kinf__doc_set_text(labels, "apps.kubernetes.io/pod-index", index) < 0 ||
        kinf__doc_set_text(spec, "hostname", name) < 0 ||
        (*service != '\0' && kinf__doc_set_text(spec, "subdomain", service) < 0))
        return KINF_ERR_NO_MEMORY;
    failed = kinf__workloads_create(set->work->workloads, KINF__WORK_POD, KINF__CONTROLLER_MANAGER,
                                    KINF__TAKE(pod), NULL);
    if (failed == 0)
        kinf__work_record(set->work, "statefulset-controller", "SuccessfulCreate",
                          "create Pod %s in StatefulSet %s successful", name, set->name);
    return failed;
}

static int delete_pod(struct statefulset *set, const struct kinf__member *pod)
{
    kinf__work_record(set->work, "statefulset-controller", "SuccessfulDelete",
                      "delete Pod %s in StatefulSet %s successful", kinf__object_key_name(pod->key),
                      set->name);
    return kinf__workloads_delete(set->work->workloads, KINF__WORK_POD, pod->key, -1);
}

/* From the first ordinal up. Returns 1 if what is missing has to come first. */
static int fill(struct statefulset *set)
{
    int failed = 0, n_made = 0;
    bool waits = false;

    for (int64_t i = 0; i < set->replicas && failed == 0 && n_made < KINF__WORK_BURST; i++) {
        const struct kinf__member *pod = set->pods[i];

        if (pod != NULL && pod->is_ready && kinf__member_is_active(pod))
            continue;
        waits = true;
        if (pod == NULL)
            failed = create_pod(set, set->start + i);
        else if (pod->is_finished && !pod->is_terminating)
            failed = delete_pod(set, pod);
        n_made++;
        if (!set->is_parallel)
            break;
    }
    return failed < 0 ? failed : waits;
}

/* From the last ordinal down, to the partition. */
static int update(struct statefulset *set)
{
    const struct cJSON *strategy = kinf__doc_get(set->work->spec, "updateStrategy");
    int64_t partition = kinf__doc_integer(kinf__doc_get(strategy, "rollingUpdate"), "partition", 0);

    if (strcmp(kinf__doc_text(strategy, "type", NULL), "OnDelete") == 0)
        return 0;
    for (int64_t i = set->replicas - 1; i >= 0 && set->start + i >= partition; i--) {
        if (set->pods[i] != NULL && set->pods[i]->revision != set->revision_hash &&
            !set->pods[i]->is_terminating)
            return delete_pod(set, set->pods[i]);
    }
    return 0;
}

static int advance(struct statefulset *set)
{
    int waits;

    if (kinf__is_being_deleted(set->work->tree))
        return 0;
    waits = fill(set);
    if (waits != 0)
        return waits < 0 ? waits : 0;
    if (set->surplus != NULL)
        return set->surplus->is_terminating ? 0 : delete_pod(set, set->surplus);
    return update(set);
}

static int write_status(struct statefulset *set)
{
    struct cJSON *status = kinf__doc_object(set->work->tree, "status");
    struct kinf__pod_counts counts = kinf__count_pods(set->work, kinf__work_owner(set->work));
    int64_t generation =
        kinf__doc_integer(kinf__doc_get(set->work->tree, "metadata"), "generation", 1);
    const char *current = kinf__doc_text(status, "currentRevision", NULL);
    bool is_updated = set->n_updated == counts.active && counts.ready == set->replicas;
    bool is_current = *current == '\0' || strcmp(current, set->revision) == 0 || is_updated;

    if (status == NULL || kinf__set_count(status, "observedGeneration", generation) < 0 ||
        kinf__doc_set_integer(status, "replicas", counts.active) < 0 ||
        kinf__set_count(status, "readyReplicas", counts.ready) < 0 ||
        kinf__doc_set_integer(status, "availableReplicas", counts.available) < 0 ||
        kinf__set_count(status, "updatedReplicas", set->n_updated) < 0 ||
        kinf__set_count(status, "currentReplicas",
                        is_current ? set->n_updated : counts.active - set->n_updated) < 0 ||
        (is_current && kinf__doc_set_text(status, "currentRevision", set->revision) < 0) ||
        kinf__doc_set_text(status, "updateRevision", set->revision) < 0 ||
        kinf__doc_set_integer(status, "collisionCount", 0) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__work_put_changed_status(set->work);
}

static int reconcile(struct statefulset *set)
{
    const struct cJSON *spec = set->work->spec;
    char hash[KINF__TEMPLATE_HASH_SIZE];
    int failed;

    set->name = kinf__object_key_name(set->work->key);
    set->replicas = kinf__doc_integer(spec, "replicas", 1);
    set->replicas = set->replicas < 0 ? 0 : set->replicas > MAX ? MAX : set->replicas;
    set->start = kinf__doc_integer(kinf__doc_get(spec, "ordinals"), "start", 0);
    set->is_parallel = strcmp(kinf__doc_text(spec, "podManagementPolicy", NULL), "Parallel") == 0;
    if (kinf__template_hash(kinf__doc_get(spec, "template"), 0, hash) < 0)
        return KINF_ERR_NO_MEMORY;
    snprintf(set->revision, sizeof set->revision, "%.52s-%s", set->name, hash);
    set->revision_hash = kinf__text_hash(set->revision, strlen(set->revision));
    if (read_pods(set, kinf__work_owner(set->work)) < 0)
        return KINF_ERR_NO_MEMORY;
    failed = advance(set);
    return failed == 0 ? write_status(set) : failed;
}

int kinf__reconcile_statefulset(struct kinf__work *work)
{
    struct statefulset set = { .work = work };
    int failed = kinf__work_read(work);

    if (failed == 0)
        failed = reconcile(&set);
    free(set.pods);
    return failed;
}
