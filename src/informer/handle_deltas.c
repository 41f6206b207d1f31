/*
 * From deltas to the store and to notifications. Neighbours: informer.c pops deltas and calls this,
 * the processor tells. Invariant: what handlers were told of a key is what the store had there, one
 * state after the other.
 */
#include "informer/handle_deltas.h"

#include <string.h>

#include "base/clock.h"
#include "object/object.h"

static bool same_text(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}

static bool same_body(const struct kinf_object *a, const struct kinf_object *b)
{
    kinf_auto_scratch scratch_a = KINF_SCRATCH_INIT;
    kinf_auto_scratch scratch_b = KINF_SCRATCH_INIT;
    struct kinf_str body_a, body_b;

    return kinf__object_body(a, &scratch_a, &body_a) == 0 &&
           kinf__object_body(b, &scratch_b, &body_b) == 0 && kinf_str_equal(body_a, body_b);
}

static bool is_unchanged(const struct kinf_object *old, const struct kinf_object *object)
{
    return old == object ||
           (same_text(kinf_object_resource_version(old), kinf_object_resource_version(object)) &&
            same_body(old, object));
}

/* --- transform --- */

static void log_transform_failure(struct kinf__delta_target *target, const char *key, int rc)
{
    uint64_t n_suppressed;

    if (kinf__log_limit_pass(&target->transform_failures, kinf__clock_now_ms(), &n_suppressed))
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_ERROR,
                  "transform failed, object stored as received key=%s result=%d suppressed=%llu",
                  key, rc, (unsigned long long)n_suppressed);
}

/* Tombstones and resyncs come from the store and were transformed when they arrived, as was what
 * the reflector found unchanged. */
static bool needs_transform(const struct kinf__delta_target *target, const struct kinf_delta *delta,
                            const struct kinf_object *old)
{
    return target->transform != NULL && delta->type != KINF_DELTA_SYNC &&
           !delta->final_state_unknown && delta->object != old;
}

static const struct kinf_object *transformed(struct kinf__delta_target *target,
                                             const struct kinf_delta *delta,
                                             const struct kinf_object *old)
{
    const char *key = kinf_object_key(delta->object);
    const struct kinf_object *result = NULL;
    int rc;

    if (!needs_transform(target, delta, old))
        return kinf_object_ref(delta->object);
    rc = target->transform(delta->object, &result, target->transform_ctx);
    if (rc == 0 && result != NULL && same_text(kinf_object_key(result), key))
        return result;
    if (rc == 0)
        kinf_object_unref(result);
    log_transform_failure(target, key, rc);
    return kinf_object_ref(delta->object);
}

/* --- deciding --- */

static void notify(struct kinf__change *change, struct kinf__notification notification)
{
    change->notifications[change->n_notifications++] = notification;
}

static void notify_add(struct kinf__change *change, bool in_initial_list)
{
    notify(change, (struct kinf__notification){ .type = KINF__NOTIFY_ADD,
                                                .in_initial_list = in_initial_list,
                                                .object = change->object });
}

static void notify_update(struct kinf__change *change, const struct kinf_object *object)
{
    notify(change, (struct kinf__notification){
                       .type = KINF__NOTIFY_UPDATE, .old = change->old, .object = object });
}

static void notify_delete(struct kinf__change *change, const struct kinf_object *object,
                          bool final_state_unknown)
{
    notify(change, (struct kinf__notification){ .type = KINF__NOTIFY_DELETE,
                                                .final_state_unknown = final_state_unknown,
                                                .old = change->old,
                                                .object = object });
}

static void decide_deletion(struct kinf__change *change, const struct kinf_delta *delta)
{
    change->store = KINF__STORE_REMOVE;
    if (!delta->final_state_unknown)
        change->resource_version = kinf_object_resource_version(change->object);
    if (change->old == NULL)
        return;
    /* The deletion of a successor whose arrival was missed: it ended the stored one too. */
    if (!kinf__object_same_uid(change->old, change->object))
        notify_delete(change, change->old, true);
    else
        notify_delete(change, change->object, delta->final_state_unknown);
}

static void decide_state(struct kinf__change *change, bool in_initial_list)
{
    change->store = KINF__STORE_PUT;
    if (change->old == NULL) {
        notify_add(change, in_initial_list);
    } else if (!kinf__object_same_uid(change->old, change->object)) {
        notify_delete(change, change->old, true);
        notify_add(change, in_initial_list);
    } else if (is_unchanged(change->old, change->object)) {
        change->store = KINF__STORE_KEEP;
        change->only_syncing = true;
        notify_update(change, change->old);
    } else {
        notify_update(change, change->object);
    }
}

void kinf__change_prepare(struct kinf__delta_target *target, const struct kinf_delta *delta,
                          bool in_initial_list, struct kinf__change *ret_change)
{
    const struct kinf_object *old = NULL;

    /* This thread alone writes the store, so the answer stays true until the change is applied. */
    if (kinf_indexer_get_by_key(target->indexer, kinf_object_key(delta->object), &old) < 0)
        old = NULL;
    *ret_change = (struct kinf__change){ .old = old, .object = transformed(target, delta, old) };
    if (delta->type == KINF_DELTA_DELETED)
        decide_deletion(ret_change, delta);
    else
        decide_state(ret_change, in_initial_list);
}

/* --- applying --- */

static int change_store(struct kinf__delta_target *target, const struct kinf__change *change)
{
    switch (change->store) {
    case KINF__STORE_KEEP:
        return 0;
    case KINF__STORE_PUT:
        return kinf_indexer_update(target->indexer, change->object, NULL, NULL);
    case KINF__STORE_REMOVE:
        return kinf_indexer_delete(target->indexer, kinf_object_key(change->object),
                                   change->resource_version, NULL, NULL);
    }
    return 0;
}

static const struct kinf_object *outcome_of(const struct kinf__change *change)
{
    switch (change->store) {
    case KINF__STORE_KEEP:
        return change->old;
    case KINF__STORE_PUT:
        return change->object;
    case KINF__STORE_REMOVE:
        break;
    }
    return NULL;
}

int kinf__change_apply(struct kinf__delta_target *target, const struct kinf__change *change)
{
    int rc = kinf__processor_begin(target->processor, kinf_object_key(change->object),
                                   outcome_of(change));

    if (rc < 0)
        return rc;
    rc = change_store(target, change);
    if (rc < 0)
        kinf__processor_cancel(target->processor);
    else
        kinf__processor_commit(target->processor, change->notifications, change->n_notifications,
                               change->only_syncing);
    return rc;
}

void kinf__change_release(struct kinf__change *change)
{
    kinf_object_unref(change->old);
    kinf_object_unref(change->object);
}
