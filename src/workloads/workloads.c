/*
 * The controller itself: notes what changed, keeps the index and the queue, and lets one key after
 * the other be reconciled. Neighbours: pods.c, nodes.c, replicasets.c, deployments.c,
 * statefulsets.c, daemonsets.c, jobs.c and protection.c do that, template.c makes what they write.
 *
 * Notes are cheap and never fail: if one cannot be kept, the index is lost and made anew from what
 * is stored. So it is at the beginning, too.
 */
#include "workloads/workloads.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/meta_text.h"
#include "workloads/workloads_priv.h"

#define PORTION  25   /* keys before others get the lock */
#define RETRY_MS 1000 /* after a failure */

/* --- noting --- */

static struct kinf__workloads *of(struct kinf__controller *controller)
{
    return KINF__CONTAINER_OF(controller, struct kinf__workloads, controller);
}

/* To be looked at again. */
static void again(struct kinf__workloads *workloads, enum kinf__work_kind kind, const char *key,
                  int64_t due_ms)
{
    if (kinf__workqueue_add(&workloads->queue, kind, key, due_ms) < 0)
        workloads->is_lost = true;
}

static void note_member(struct kinf__workloads *workloads, enum kinf__work_kind kind,
                        const char *key, const struct kinf_object *object)
{
    struct kinf__member_change change;

    if (kinf__pod_index_set(&workloads->pods, kind, key, object, &change) < 0) {
        workloads->is_lost = true;
        return;
    }
    /* Owners of thousands look at all of them each time: they wait for some changes more. */
    if (change.owner_key[0] != '\0')
        again(workloads, change.owner_kind, change.owner_key,
              workloads->now_ms + (int64_t)change.n_siblings / 100);
    if (change.old_owner_key[0] != '\0')
        again(workloads, change.old_owner_kind, change.old_owner_key, 0);
    if (kind == KINF__WORK_REPLICASET ||
        (change.member != NULL && kinf__pod_needs_work(change.member)))
        again(workloads, kind, key, 0);
}

/* DaemonSets are few. */
static void look_at_daemonsets(struct kinf__workloads *workloads)
{
    struct kinf_snapshot *snapshot kinf_auto_snapshot =
        kinf__store_snapshot(workloads->resources[KINF__WORK_DAEMONSET]);
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL)
        again(workloads, KINF__WORK_DAEMONSET, kinf_object_key(object), 0);
}

static void look_at_pods_of_host(struct kinf__workloads *workloads, const struct kinf__host *host)
{
    KINF__LIST_FOR_EACH (node, &host->pods) {
        const struct kinf__member *pod = KINF__LIST_ENTRY(node, struct kinf__member, on_host);

        if (kinf__pod_needs_work(pod))
            again(workloads, KINF__WORK_POD, pod->key, 0);
    }
}

static void look_at_waiting(struct kinf__workloads *workloads)
{
    KINF__LIST_FOR_EACH (node, &workloads->pods.waiting)
        again(workloads, KINF__WORK_POD, KINF__LIST_ENTRY(node, struct kinf__member, waiting)->key,
              0);
}

/* That a node comes, goes, is cordoned or not concerns others; its heartbeats do not. */
static void note_host(struct kinf__workloads *workloads, const char *name,
                      const struct kinf_object *object)
{
    const struct kinf__host *before = kinf__pod_index_find_host(&workloads->pods, name);
    bool was_there = before != NULL && before->is_there;
    bool took_pods = before != NULL && before->takes_pods;
    struct kinf__host *host;

    if (kinf__pod_index_set_host(&workloads->pods, name, object, &host) < 0) {
        workloads->is_lost = true;
        return;
    }
    workloads->had_node |= object != NULL;
    if (was_there != (object != NULL)) {
        look_at_daemonsets(workloads);
        if (host != NULL)
            look_at_pods_of_host(workloads, host);
    }
    if (!took_pods && host != NULL && host->takes_pods)
        look_at_waiting(workloads);
    if (host != NULL && host->needs_kubelet)
        again(workloads, KINF__WORK_NODE, name, 0);
}

/* Those that a pod has used which is gone. */
static void note_claims(struct kinf__workloads *workloads, const struct kinf_object *pod)
{
    char claim[KINF__KEY_SIZE];

    for (size_t i = 0; kinf__pod_get_claim(pod, i, claim); i++) {
        if (claim[0] != '\0')
            again(workloads, KINF__WORK_CLAIM, claim, 0);
    }
}

static void note_key(struct kinf__workloads *workloads, enum kinf__work_kind kind, const char *key,
                     const struct kinf_object *object)
{
    if (kind == KINF__WORK_POD || kind == KINF__WORK_REPLICASET)
        note_member(workloads, kind, key, object);
    else if (kind == KINF__WORK_NODE)
        note_host(workloads, key, object);
    else if ((kind != KINF__WORK_CLAIM && kind != KINF__WORK_VOLUME) ||
             kinf__meta_text_is_going(object))
        again(workloads, kind, key, 0);
}

static void note(struct kinf__controller *controller, struct kinf__resource *resource,
                 const struct kinf_object *old, const struct kinf_object *object)
{
    struct kinf__workloads *workloads = of(controller);

    workloads->is_lost = workloads->is_lost || (old == NULL && object == NULL);
    for (int kind = 0; kind < KINF__N_WORK_KINDS && !workloads->is_lost; kind++) {
        if (workloads->resources[kind] == resource)
            note_key(workloads, (enum kinf__work_kind)kind,
                     kinf_object_key(object != NULL ? object : old), object);
    }
    if (object == NULL && !workloads->is_lost && workloads->resources[KINF__WORK_POD] == resource)
        note_claims(workloads, old);
}

/* --- working --- */

static void read_all(struct kinf__workloads *workloads, enum kinf__work_kind kind)
{
    struct kinf_snapshot *snapshot kinf_auto_snapshot =
        kinf__store_snapshot(workloads->resources[kind]);
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    kinf_cursor_all(&cursor, snapshot);
    while (!workloads->is_lost && (object = kinf_cursor_next(&cursor)) != NULL)
        note_key(workloads, kind, kinf_object_key(object), object);
}

static bool find_resources(struct kinf__workloads *workloads)
{
    for (int i = 0; i < KINF__N_WORK_KINDS; i++) {
        workloads->resources[i] =
            kinf__store_find(kinf__sim_store(workloads->sim), kinf__work_types[i].group,
                             kinf__work_types[i].resource);
        if (workloads->resources[i] == NULL)
            return false;
    }
    return true;
}

/* Returns false if that does not succeed now. */
static bool begin_anew(struct kinf__workloads *workloads)
{
    kinf__workqueue_release(&workloads->queue);
    kinf__pod_index_release(&workloads->pods);
    workloads->is_lost = !find_resources(workloads);
    for (int kind = 0; kind < KINF__N_WORK_KINDS; kind++)
        read_all(workloads, (enum kinf__work_kind)kind);
    return !workloads->is_lost;
}

static int reconcile(struct kinf__work *work)
{
    static int (*const reconcilers[KINF__N_WORK_KINDS])(struct kinf__work *) = {
        [KINF__WORK_POD] = kinf__reconcile_pod,
        [KINF__WORK_NODE] = kinf__reconcile_node,
        [KINF__WORK_REPLICASET] = kinf__reconcile_replicaset,
        [KINF__WORK_DEPLOYMENT] = kinf__reconcile_deployment,
        [KINF__WORK_STATEFULSET] = kinf__reconcile_statefulset,
        [KINF__WORK_DAEMONSET] = kinf__reconcile_daemonset,
        [KINF__WORK_JOB] = kinf__reconcile_job,
        [KINF__WORK_CLAIM] = kinf__reconcile_claim,
        [KINF__WORK_VOLUME] = kinf__reconcile_volume,
    };
    int failed = reconcilers[work->kind](work);

    cJSON_Delete(work->tree);
    cJSON_Delete(work->old_status);
    return failed == KINF_ERR_NOT_FOUND ? 0 : failed;
}

static void do_item(struct kinf__workloads *workloads, const struct kinf__work_item *item)
{
    struct kinf__work work = { .workloads = workloads,
                               .kind = (enum kinf__work_kind)item->kind,
                               .key = item->key,
                               .next_ms = KINF__NEVER_MS };

    if (reconcile(&work) < 0)
        work.next_ms = workloads->now_ms + RETRY_MS;
    if (work.next_ms != KINF__NEVER_MS)
        again(workloads, work.kind, work.key, work.next_ms);
}

static int64_t work(struct kinf__controller *controller, struct kinf__sim *sim, int64_t now_ms)
{
    struct kinf__workloads *workloads = of(controller);
    struct kinf__work_item *item;

    workloads->sim = sim;
    workloads->now_ms = now_ms;
    if (workloads->is_lost && !begin_anew(workloads))
        return now_ms + RETRY_MS;
    for (int i = 0; i < PORTION && !workloads->is_lost; i++) {
        item = kinf__workqueue_take(&workloads->queue, now_ms);
        if (item == NULL)
            break;
        do_item(workloads, item);
        free(item);
    }
    return workloads->is_lost ? now_ms : kinf__workqueue_due_ms(&workloads->queue);
}

/* --- writing --- */

static void name_verb(struct kinf__verb *verb, const char *key, char name_space[KINF_NAME_MAX])
{
    verb->name = kinf__object_key_split(key, name_space);
    verb->name_space = name_space;
}

int kinf__workloads_read(struct kinf__workloads *workloads, enum kinf__work_kind kind,
                         const char *key, struct cJSON **ret_object)
{
    struct kinf__verb verb = { .sim = NULL };
    char name_space[KINF_NAME_MAX];

    name_verb(&verb, key, name_space);
    return kinf__store_read(workloads->resources[kind], name_space, verb.name, ret_object);
}

/* What is not there any more, or another now, has been noted, and comes again by itself; so does
 * what a namespace that ends refuses. */
static int end_verb(struct kinf__verb *verb, int failed)
{
    int code = verb->refusal.code;

    kinf__verb_release(verb);
    return failed < 0 && (code == 404 || code == 409 || code == 403) ? 0 : failed;
}

int kinf__work_read(struct kinf__work *work)
{
    int failed = kinf__workloads_read(work->workloads, work->kind, work->key, &work->tree);

    if (failed < 0)
        return failed;
    work->spec = kinf__doc_get(work->tree, "spec");
    work->old_status = kinf__doc_dup(kinf__doc_get(work->tree, "status"));
    return 0;
}

void kinf__work_again(struct kinf__work *work, int64_t due_ms)
{
    if (due_ms < work->next_ms)
        work->next_ms = due_ms;
}

int kinf__workloads_create(struct kinf__workloads *workloads, enum kinf__work_kind kind,
                           const char *manager, struct cJSON *take_object,
                           struct cJSON **ret_object)
{
    struct kinf__verb verb = { .sim = workloads->sim,
                               .resource = workloads->resources[kind],
                               .manager = manager };
    int failed;

    if (take_object == NULL)
        return KINF_ERR_NO_MEMORY;
    failed = kinf__verb_create(&verb, take_object);
    if (failed < 0 && verb.refusal.code == 409)
        failed = KINF_ERR_CONFLICT;
    if (failed == 0 && ret_object != NULL)
        *ret_object = KINF__TAKE(verb.object);
    kinf__verb_release(&verb);
    return failed;
}

int kinf__work_put_status(struct kinf__work *work, const char *manager)
{
    struct kinf__verb verb = { .sim = work->workloads->sim,
                               .resource = work->workloads->resources[work->kind],
                               .subresource = "status",
                               .manager = manager };

    return end_verb(&verb, kinf__verb_update(&verb, KINF__TAKE(work->tree)));
}

int kinf__workloads_merge(struct kinf__workloads *workloads, enum kinf__work_kind kind,
                          const char *key, struct cJSON *take_patch)
{
    KINF__AUTO_DOC *patch = take_patch;
    struct kinf__verb verb = { .sim = workloads->sim,
                               .resource = workloads->resources[kind],
                               .manager = KINF__CONTROLLER_MANAGER };
    char name_space[KINF_NAME_MAX];

    if (patch == NULL)
        return KINF_ERR_NO_MEMORY;
    name_verb(&verb, key, name_space);
    return end_verb(&verb, kinf__verb_patch(&verb, KINF__PATCH_MERGE, patch, false));
}

int kinf__workloads_delete(struct kinf__workloads *workloads, enum kinf__work_kind kind,
                           const char *key, int64_t grace_s)
{
    struct kinf__verb verb = { .sim = workloads->sim, .resource = workloads->resources[kind] };
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    char copy[KINF__KEY_SIZE], name_space[KINF_NAME_MAX];
    bool is_gone;

    /* The key may be the index's, which forgets it on the way. */
    snprintf(copy, sizeof copy, "%s", key);
    name_verb(&verb, copy, name_space);
    options.grace_s = grace_s;
    options.propagation = KINF__PROPAGATION_BACKGROUND;
    return end_verb(&verb, kinf__verb_delete(&verb, &options, &is_gone));
}

/* --- life --- */

static void free_workloads(struct kinf__controller *controller)
{
    struct kinf__workloads *workloads = of(controller);

    kinf__workqueue_release(&workloads->queue);
    kinf__pod_index_release(&workloads->pods);
    kinf__recorder_release(&workloads->recorder);
    free(workloads);
}

int kinf__workloads_add(struct kinf__sim *sim, struct kinf__controller **ret_controller,
                        struct kinf_error *err)
{
    static const struct kinf__controller_ops ops = { note, work, free_workloads };
    struct kinf__workloads *workloads = kinf__controller_new(sizeof *workloads, &ops, err);

    if (workloads == NULL)
        return KINF_ERR_NO_MEMORY;
    workloads->is_lost = true;
    kinf__pod_index_init(&workloads->pods);
    kinf__recorder_init(&workloads->recorder);
    kinf__sim_add_controller(sim, &workloads->controller);
    if (ret_controller != NULL)
        *ret_controller = &workloads->controller;
    return 0;
}
