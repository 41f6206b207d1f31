/*
 * From deltas to the store and to notifications. Neighbours: pop_loop.c pops deltas and calls this,
 * batch.c has the arrays of a batch, processor.c hands it to the handlers. Invariants: what handlers
 * were told of a key is what the store had there, one state after the other; everything that can
 * fail comes before the first transform.
 */
#include "informer/handle_deltas.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "indexer/indexer.h"
#include "object/object.h"

static bool same_text(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}

static bool same_body(const struct kinf_object *a, const struct kinf_object *b)
{
    kinf_auto_scratch struct kinf_scratch scratch_a = KINF_SCRATCH_INIT;
    kinf_auto_scratch struct kinf_scratch scratch_b = KINF_SCRATCH_INIT;
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

    if (kinf__log_limit_pass(&target->failures, kinf__clock_now_ms(), &n_suppressed))
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_ERROR,
                  "transform failed, object stored as received key=%s result=%d suppressed=%llu",
                  key, rc, (unsigned long long)n_suppressed);
}

/* With a reference. What the reflector found unchanged is the stored object, which was transformed
 * when it arrived. */
static const struct kinf_object *transformed(struct kinf__delta_target *target,
                                             const struct kinf_object *object,
                                             const struct kinf_object *old)
{
    const char *key = kinf_object_key(object);
    const struct kinf_object *result = NULL;
    int rc;

    if (target->transform == NULL || object == old)
        return kinf_object_ref(object);
    rc = target->transform(object, &result, target->transform_ctx);
    if (rc == 0 && result != NULL && same_text(kinf_object_key(result), key))
        return result;
    if (rc == 0)
        kinf_object_unref(result);
    log_transform_failure(target, key, rc);
    return kinf_object_ref(object);
}

/* --- deciding --- */

static void tell_state(struct kinf__batch *batch, const struct kinf_object *old,
                       const struct kinf_object *object, bool in_initial_list)
{
    if (old == NULL) {
        kinf__batch_notify_add(batch, object, in_initial_list);
    } else if (kinf__object_same_uid(old, object)) {
        kinf__batch_notify_update(batch, old, object);
    } else {
        kinf__batch_notify_delete(batch, old, old, true);
        kinf__batch_notify_add(batch, object, in_initial_list);
    }
}

/* The store refuses a longer one, and would refuse the whole batch. */
static bool rv_fits(const struct kinf_object *object)
{
    return strlen(kinf_object_resource_version(object)) < KINF__RESOURCE_VERSION_SIZE;
}

/* What the server said, whatever a transform makes of it; NULL: nothing. */
static const char *version_of(const struct kinf_delta *delta)
{
    return rv_fits(delta->object) ? kinf_object_resource_version(delta->object) : NULL;
}

static void log_long_version(struct kinf__delta_target *target, const char *key)
{
    uint64_t n_suppressed;

    if (kinf__log_limit_pass(&target->failures, kinf__clock_now_ms(), &n_suppressed))
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_ERROR,
                  "resourceVersion too long, object left out key=%s suppressed=%llu", key,
                  (unsigned long long)n_suppressed);
}

/* The object that is to be stored for a new state of a key: `object`, transformed unless it is
 * `old`, which is what the store has (NULL: nothing); or `old`, if nothing changed or the object
 * cannot be stored. Tells what that means. Borrowed from the batch, or as `old` is. */
static const struct kinf_object *handle_state(struct kinf__delta_target *target,
                                              const struct kinf_object *object,
                                              const struct kinf_object *old, bool in_initial_list,
                                              struct kinf__batch *batch)
{
    const struct kinf_object *result;

    if (object == old) { /* most of a list: its bytes stay untouched */
        kinf__batch_notify_unchanged(batch, old);
        return old;
    }
    result = transformed(target, object, old);
    if (!rv_fits(result)) {
        log_long_version(target, kinf_object_key(result));
        kinf_object_unref(result);
        return old;
    }
    if (old != NULL && kinf__object_same_uid(old, result) && is_unchanged(old, result)) {
        kinf_object_unref(result);
        kinf__batch_notify_unchanged(batch, old);
        return old;
    }
    kinf__batch_hold(batch, result);
    tell_state(batch, old, result, in_initial_list);
    return result;
}

/* A tombstone says only that the key is gone: its object may be one that waited in the queue, which
 * no transform has seen. What the store has is the last known state. */
static void handle_tombstone(const char *key, const struct kinf_object *old,
                             struct kinf__batch *batch)
{
    kinf__batch_remove(batch, key, NULL);
    if (old != NULL)
        kinf__batch_notify_delete(batch, old, old, true);
}

static void handle_deletion(struct kinf__delta_target *target, const struct kinf_delta *delta,
                            const struct kinf_object *old, struct kinf__batch *batch)
{
    const struct kinf_object *object = transformed(target, delta->object, old);

    kinf__batch_hold(batch, object);
    kinf__batch_remove(batch, kinf_object_key(object), version_of(delta));
    if (old == NULL)
        return;
    /* The deletion of a successor whose arrival was missed: it ended the stored one too. */
    if (!kinf__object_same_uid(old, object))
        kinf__batch_notify_delete(batch, old, old, true);
    else
        kinf__batch_notify_delete(batch, old, object, false);
}

static void handle_one(struct kinf__delta_target *target, const struct kinf_delta *delta,
                       bool in_initial_list, bool is_in_order, struct kinf__batch *batch)
{
    const struct kinf_object *old = NULL, *stored;

    /* This thread alone writes the store, so the answer stays true until the batch is applied. */
    if (kinf_indexer_get_by_key(target->indexer, kinf_object_key(delta->object), &old) < 0)
        old = NULL;
    kinf__batch_hold(batch, old);
    if (delta->final_state_unknown) {
        handle_tombstone(kinf_object_key(delta->object), old, batch);
        return;
    }
    if (delta->type == KINF_DELTA_DELETED) {
        handle_deletion(target, delta, old, batch);
        return;
    }
    stored = handle_state(target, delta->object, old, in_initial_list, batch);
    /* In order, the store's resourceVersion follows even what does not change it, if that is no object
     * that was left out. */
    if (stored != NULL && (stored != old || (is_in_order && rv_fits(delta->object))))
        kinf__batch_put(batch, stored, version_of(delta));
}

static int prepare_changes(struct kinf__delta_target *target, const struct kinf_deltas *deltas,
                           bool in_initial_list, struct kinf__batch *batch)
{
    int rc = kinf__batch_reserve_changes(batch, deltas->n_items);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < deltas->n_items; i++)
        handle_one(target, &deltas->items[i], in_initial_list, deltas->key == NULL, batch);
    return 0;
}

/* --- a whole list: what is gone first, then as it was listed --- */

static int prepare_relist(struct kinf__delta_target *target, const struct kinf_delta *delta,
                          bool in_initial_list, struct kinf__batch *batch)
{
    const struct kinf__join *join = &batch->join;
    int rc = kinf__batch_join(batch, kinf_indexer_snapshot(target->indexer), delta->objects,
                              delta->n_objects, target->stop);

    if (rc < 0)
        return rc;
    batch->write = KINF__WRITE_ALL;
    batch->resource_version = delta->resource_version;
    for (size_t i = join->n_listed; i < join->n_pairs && !kinf__stop_is_set(target->stop); i++)
        kinf__batch_notify_delete(batch, join->pairs[i].old, join->pairs[i].old, true);
    for (size_t i = 0; i < join->n_listed && !kinf__stop_is_set(target->stop); i++) {
        struct kinf__pair *pair = &join->pairs[i];

        if (pair->object != NULL)
            pair->object = handle_state(target, pair->object, pair->old, in_initial_list, batch);
    }
    return kinf__stop_is_set(target->stop) ? KINF_ERR_STOPPED : 0;
}

/* --- a batch --- */

static int prepare_resync(struct kinf__delta_target *target, struct kinf__batch *batch)
{
    struct kinf_snapshot *snapshot = kinf_indexer_snapshot(target->indexer);
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    int rc = kinf__batch_reserve_resynced(batch, kinf_snapshot_count(snapshot));

    if (rc < 0) {
        kinf_snapshot_unref(snapshot);
        return rc; /* no memory */
    }
    batch->snapshot = snapshot;
    kinf_cursor_all(&cursor, snapshot);
    while (!kinf__stop_is_set(target->stop) && (object = kinf_cursor_next(&cursor)) != NULL)
        kinf__batch_notify_unchanged(batch, object);
    return kinf__stop_is_set(target->stop) ? KINF_ERR_STOPPED : 0;
}

static int prepare(struct kinf__delta_target *target, const struct kinf_deltas *deltas,
                   bool in_initial_list, struct kinf__batch *batch)
{
    const struct kinf_delta *first = &deltas->items[0];

    switch (first->type) {
    case KINF_DELTA_ADDED:
    case KINF_DELTA_UPDATED:
    case KINF_DELTA_DELETED:
    case KINF_DELTA_REPLACED:
    case KINF_DELTA_SYNC:
        return prepare_changes(target, deltas, in_initial_list, batch);
    case KINF_DELTA_REPLACED_ALL:
        return prepare_relist(target, first, in_initial_list, batch);
    case KINF_DELTA_SYNC_ALL:
        return prepare_resync(target, batch);
    case KINF_DELTA_BOOKMARK:
        batch->write = KINF__WRITE_RESOURCE_VERSION;
        batch->resource_version = first->resource_version;
        break;
    }
    return 0;
}

/* --- applying --- */

static int write_store(struct kinf_indexer *indexer, const struct kinf__batch *batch)
{
    switch (batch->write) {
    case KINF__WRITE_NOTHING:
        break;
    case KINF__WRITE_CHANGES:
        return kinf_indexer_transaction(indexer, batch->changes.items, batch->n_changes, NULL);
    case KINF__WRITE_ALL:
        return kinf__indexer_replace(indexer, &batch->join, batch->resource_version, NULL);
    case KINF__WRITE_RESOURCE_VERSION:
        return kinf_indexer_bookmark(indexer, batch->resource_version, NULL);
    }
    return 0;
}

static void tell_sink(const struct kinf__sink *sink, const struct kinf__batch *batch)
{
    if (sink != NULL && batch->write != KINF__WRITE_NOTHING)
        sink->on_write(batch->write, batch->notifications.items, batch->n_notifications,
                       kinf__clock_now_ms(), sink->ctx);
}

static int apply(const struct kinf__delta_target *target, const struct kinf__batch *batch)
{
    int rc = kinf__processor_begin(target->processor, batch);

    if (rc < 0)
        return rc;
    rc = write_store(target->indexer, batch);
    if (rc < 0) {
        kinf__processor_cancel(target->processor);
        return rc;
    }
    tell_sink(target->sink, batch);
    return kinf__processor_distribute(target->processor, batch, target->stop);
}

int kinf__handle_deltas(struct kinf__delta_target *target, const struct kinf_deltas *deltas,
                        bool in_initial_list, struct kinf__batch *batch)
{
    if (!batch->is_prepared) {
        int rc = prepare(target, deltas, in_initial_list, batch);

        if (rc < 0)
            return rc;
        batch->is_prepared = true;
    }
    return apply(target, batch);
}
