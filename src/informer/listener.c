/*
 * One handler's queue and thread. Neighbours: the processor pushes, under its lock; this thread
 * takes. Of a chain it takes all under one acquisition of the lock, so both sides meet once a
 * batch; of a coalescer one key, since what was taken merges no more.
 *
 * Invariants: pushing cannot fail, since what it needs was reserved before the store changed: a
 * handler that missed a notification could never be told the truth again. What waits in the queue
 * follows what the snapshot has, so a key that waits and is still to be told from the snapshot has
 * the snapshot's object as its last one.
 */
#include "informer/listener.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/thread.h"
#include "informer/callback.h"

/* --- the thread --- */

static bool is_removed(const struct kinf__listener *listener)
{
    return atomic_load_explicit(&listener->is_removed, memory_order_acquire);
}

static void tell_add(const struct kinf_handler *handler, const struct kinf_object *object,
                     bool in_initial_list)
{
    if (handler->on_add != NULL)
        handler->on_add(object, in_initial_list, handler->ctx);
    else if (handler->on_change != NULL)
        handler->on_change(NULL, object, handler->ctx);
}

static void tell_update(const struct kinf_handler *handler, const struct kinf_object *old,
                        const struct kinf_object *object)
{
    if (handler->on_update != NULL)
        handler->on_update(old, object, handler->ctx);
    else if (handler->on_change != NULL)
        handler->on_change(old, object, handler->ctx);
}

static void tell_delete(const struct kinf_handler *handler, const struct kinf_object *object,
                        bool final_state_unknown)
{
    if (handler->on_delete != NULL)
        handler->on_delete(object, final_state_unknown, handler->ctx);
    else if (handler->on_change != NULL)
        handler->on_change(object, NULL, handler->ctx);
}

static void tell_done(struct kinf__listener *listener)
{
    if (listener->handler.on_done != NULL)
        listener->handler.on_done(listener->handler.ctx);
    atomic_store_explicit(&listener->is_done, true, memory_order_release);
}

void kinf__handler_tell(const struct kinf_handler *handler,
                        const struct kinf__notification *notification)
{
    switch (notification->type) {
    case KINF__NOTIFY_ADD:
        tell_add(handler, notification->object, notification->in_initial_list);
        break;
    case KINF__NOTIFY_UPDATE:
        tell_update(handler, notification->old, notification->object);
        break;
    case KINF__NOTIFY_DELETE:
        tell_delete(handler, notification->object, notification->final_state_unknown);
        break;
    case KINF__NOTIFY_SYNCED:
        if (handler->on_synced != NULL)
            handler->on_synced(handler->ctx);
        break;
    }
}

static void tell(struct kinf__listener *listener, const struct kinf__notification *notification)
{
    kinf__handler_tell(&listener->handler, notification);
    if (notification->type == KINF__NOTIFY_SYNCED)
        atomic_store_explicit(&listener->has_synced, true, memory_order_release);
}

static bool coalesces(const struct kinf__listener *listener)
{
    return listener->handler.backlog == KINF_BACKLOG_COALESCE;
}

/* Its callback has run, unless the listener was removed before. */
static void tell_one(struct kinf__listener *listener, const struct kinf__notification *notification)
{
    if (!is_removed(listener)) {
        tell(listener, notification);
        atomic_fetch_add_explicit(&listener->n_told, 1, memory_order_relaxed);
    }
    atomic_fetch_sub_explicit(&listener->n_taken, 1, memory_order_relaxed);
}

/* --- of the snapshot --- */

static struct kinf__pending *take_changed(struct kinf__listener *listener,
                                          const struct kinf_object *object)
{
    struct kinf__pending *pending;

    if (!coalesces(listener))
        return NULL;
    kinf__mutex_lock(&listener->lock);
    pending = kinf__coalescer_take_initial(&listener->coalescer, kinf_object_key(object));
    kinf__mutex_unlock(&listener->lock);
    return pending;
}

static void tell_initial_object(struct kinf__listener *listener, const struct kinf_object *object)
{
    struct kinf__pending *changed = take_changed(listener, object);
    const struct kinf__notification add = {
        .type = KINF__NOTIFY_ADD,
        .in_initial_list = true,
        .object = changed != NULL ? changed->object : object,
    };

    if (add.object != NULL)
        tell_one(listener, &add);
    else
        atomic_fetch_sub_explicit(&listener->n_taken, 1, memory_order_relaxed);
    kinf__pending_free(changed);
}

static void tell_initial(struct kinf__listener *listener)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    if (listener->initial == NULL)
        return;
    kinf_cursor_all(&cursor, listener->initial);
    while (!is_removed(listener) && (object = kinf_cursor_next(&cursor)) != NULL)
        tell_initial_object(listener, object);
    atomic_store_explicit(&listener->n_taken, 0, memory_order_relaxed);
    kinf_snapshot_unref(KINF__TAKE(listener->initial));
}

/* --- of the queue --- */

static size_t n_queued_locked(const struct kinf__listener *listener) KINF__REQUIRES(listener->lock)
{
    return coalesces(listener) ? listener->coalescer.n_notifications
                               : listener->chain.n_notifications;
}

static bool oldest_queued_locked(const struct kinf__listener *listener, uint32_t *ret_since_ms)
    KINF__REQUIRES(listener->lock)
{
    return coalesces(listener) ? kinf__coalescer_oldest(&listener->coalescer, ret_since_ms)
                               : kinf__chain_oldest(&listener->chain, ret_since_ms);
}

/* Until something is queued or the listener is removed. */
static void wait_queued_locked(struct kinf__listener *listener) KINF__REQUIRES(listener->lock)
{
    listener->is_waiting = true;
    while (n_queued_locked(listener) == 0 && !is_removed(listener))
        kinf__cond_wait_until(&listener->not_empty, &listener->lock, KINF_FOREVER);
    listener->is_waiting = false;
}

static void note_taken_locked(struct kinf__listener *listener, size_t n_taken, uint32_t since_ms)
    KINF__REQUIRES(listener->lock)
{
    atomic_store_explicit(&listener->taken_since, since_ms, memory_order_relaxed);
    atomic_store_explicit(&listener->n_taken, n_taken, memory_order_relaxed);
}

/* Objects are given up one by one, so that a long batch does not hold what was told. */
static void tell_chunk(struct kinf__listener *listener, struct kinf__chunk *chunk)
{
    while (chunk->n_released < chunk->n_items && !is_removed(listener)) {
        struct kinf__notification *item = &chunk->items[chunk->n_released++];

        atomic_store_explicit(&listener->taken_since, item->since_ms, memory_order_relaxed);
        tell_one(listener, item);
        kinf__notification_release(item);
    }
}

/* The whole chain, unless the listener is removed. */
static void take_all(struct kinf__listener *listener)
{
    kinf__mutex_lock(&listener->lock);
    wait_queued_locked(listener);
    if (!is_removed(listener)) {
        size_t n_taken = listener->chain.n_notifications;

        listener->taken = kinf__chain_take_all(&listener->chain);
        note_taken_locked(listener, n_taken, listener->taken->items[0].since_ms);
    }
    kinf__mutex_unlock(&listener->lock);
}

static void tell_chain(struct kinf__listener *listener)
{
    while (!is_removed(listener)) {
        struct kinf__chunk *chunk = listener->taken;

        if (chunk == NULL) {
            take_all(listener);
            continue;
        }
        tell_chunk(listener, chunk);
        if (chunk->n_released == chunk->n_items) {
            listener->taken = KINF__TAKE(chunk->next);
            kinf__chunks_free(chunk);
        }
    }
}

/* NULL once the listener is removed. */
static struct kinf__pending *take_first(struct kinf__listener *listener)
{
    struct kinf__pending *pending;
    size_t n_before;

    kinf__mutex_lock(&listener->lock);
    wait_queued_locked(listener);
    n_before = listener->coalescer.n_notifications;
    pending = is_removed(listener) ? NULL : kinf__coalescer_pop(&listener->coalescer);
    if (pending != NULL)
        note_taken_locked(listener, n_before - listener->coalescer.n_notifications,
                          pending->since_ms);
    kinf__mutex_unlock(&listener->lock);
    return pending;
}

static void tell_coalesced(struct kinf__listener *listener)
{
    struct kinf__pending *pending;

    while ((pending = take_first(listener)) != NULL) {
        struct kinf__notification notifications[KINF__PENDING_MAX];
        size_t n = kinf__pending_notifications(pending, notifications);

        for (size_t i = 0; i < n; i++)
            tell_one(listener, &notifications[i]);
        kinf__pending_free(pending);
    }
}

static void *run(void *ctx)
{
    struct kinf__listener *listener = ctx;

    (void)kinf__callback_enter(listener->owner, false);
    tell_initial(listener);
    if (coalesces(listener))
        tell_coalesced(listener);
    else
        tell_chain(listener);
    tell_done(listener);
    return NULL;
}

/* --- life --- */

static int init_queue(struct kinf__listener *listener)
{
    return coalesces(listener) ? kinf__coalescer_init(&listener->coalescer)
                               : kinf__chain_init(&listener->chain);
}

static struct kinf__listener *allocate(const struct kinf_handler *handler, int64_t now_ms)
{
    struct kinf__listener *listener = calloc(1, sizeof *listener);

    if (listener == NULL)
        return NULL;
    listener->handler = *handler;
    listener->next_resync_ms = KINF_FOREVER;
    listener->taken_since = (uint32_t)now_ms;
    kinf__list_init(&listener->in_owner);
    kinf__mutex_init(&listener->lock, KINF__RANK_LISTENER);
    kinf__cond_init(&listener->not_empty);
    if (init_queue(listener) == 0)
        return listener;
    kinf__listener_free(listener);
    return NULL;
}

int kinf__listener_new(const struct kinf_handler *handler, kinf_handler_id id, const void *owner,
                       struct kinf_snapshot *take_initial, int64_t now_ms,
                       struct kinf__listener **ret_listener, struct kinf_error *err)
{
    bool is_known =
        handler->backlog == KINF_BACKLOG_UNBOUNDED || handler->backlog == KINF_BACKLOG_COALESCE;
    struct kinf__listener *listener = is_known ? allocate(handler, now_ms) : NULL;

    if (listener == NULL) {
        kinf_snapshot_unref(take_initial);
        return is_known ? kinf__error_no_memory(err)
                        : kinf__error_set(err, KINF_ERR_INVALID, "a handler has no backlog %d",
                                          (int)handler->backlog);
    }
    listener->id = id;
    listener->owner = owner;
    listener->initial = take_initial;
    listener->n_taken = take_initial != NULL ? kinf_snapshot_count(take_initial) : 0;
    *ret_listener = listener;
    return 0;
}

int kinf__listener_start(struct kinf__listener *listener, struct kinf_error *err)
{
    int rc = kinf__thread_start(&listener->thread, "kinf-listener", run, listener, err);

    listener->has_thread = rc == 0;
    return rc;
}

/* --- the queue --- */

int kinf__listener_reserve(struct kinf__listener *listener, size_t n_pushes, size_t n_most)
{
    int rc;

    if (!coalesces(listener))
        return kinf__chain_reserve(&listener->chain, n_pushes, n_most);
    kinf__mutex_lock(&listener->lock);
    rc = kinf__coalescer_reserve(&listener->coalescer, n_pushes * n_most);
    kinf__mutex_unlock(&listener->lock);
    return rc;
}

void kinf__listener_trim(struct kinf__listener *listener)
{
    if (coalesces(listener))
        kinf__coalescer_trim(&listener->coalescer);
    else
        kinf__chain_trim(&listener->chain);
}

static void wake_locked(struct kinf__listener *listener) KINF__REQUIRES(listener->lock)
{
    if (listener->is_waiting)
        kinf__cond_signal(&listener->not_empty);
}

/* All under one acquisition: in between the thread could take the chunk that has the room. */
void kinf__listener_push(struct kinf__listener *listener,
                         const struct kinf__notification *notifications, size_t n_notifications,
                         int64_t now_ms)
{
    kinf__mutex_lock(&listener->lock);
    if (coalesces(listener))
        kinf__coalescer_push(&listener->coalescer, notifications, n_notifications, now_ms);
    else
        kinf__chain_push(&listener->chain, notifications, n_notifications, now_ms);
    kinf__mutex_unlock(&listener->lock);
}

/* Signals after the lock: the thread would only wait for that. */
void kinf__listener_wake(struct kinf__listener *listener)
{
    bool must_wake;

    kinf__mutex_lock(&listener->lock);
    must_wake = n_queued_locked(listener) != 0 && listener->is_waiting;
    kinf__mutex_unlock(&listener->lock);
    if (must_wake)
        kinf__cond_signal(&listener->not_empty);
}

void kinf__listener_push_synced(struct kinf__listener *listener, int64_t now_ms)
{
    kinf__mutex_lock(&listener->lock);
    if (coalesces(listener))
        kinf__coalescer_push_synced(&listener->coalescer, now_ms);
    else
        kinf__chain_push_synced(&listener->chain, now_ms);
    wake_locked(listener);
    kinf__mutex_unlock(&listener->lock);
}

/* --- the end --- */

void kinf__listener_remove(struct kinf__listener *listener)
{
    kinf__mutex_lock(&listener->lock);
    atomic_store_explicit(&listener->is_removed, true, memory_order_release);
    wake_locked(listener);
    kinf__mutex_unlock(&listener->lock);
}

void kinf__listener_finish(struct kinf__listener *listener)
{
    struct kinf__callback_mark before;

    if (listener->has_thread) {
        pthread_join(listener->thread, NULL);
        return;
    }
    before = kinf__callback_enter(listener->owner, false);
    tell_done(listener);
    kinf__callback_leave(before);
}

void kinf__listener_free(struct kinf__listener *listener)
{
    if (listener == NULL)
        return;
    if (coalesces(listener))
        kinf__coalescer_release(&listener->coalescer);
    else
        kinf__chain_release(&listener->chain);
    kinf__chunks_free(listener->taken);
    kinf_snapshot_unref(listener->initial);
    kinf__cond_release(&listener->not_empty);
    kinf__mutex_release(&listener->lock);
    free(listener);
}

/* --- status, check --- */

/* Where both clocks are read at almost the same time, the later one may be read first. */
static int64_t age_ms(uint32_t since_ms, int64_t now_ms)
{
    int32_t age = (int32_t)((uint32_t)now_ms - since_ms);

    return age > 0 ? age : 0;
}

void kinf__listener_status(struct kinf__listener *listener, int64_t now_ms,
                           struct kinf_handler_status *ret_status)
{
    uint32_t since_ms = (uint32_t)now_ms;
    size_t n_taken;

    kinf__mutex_lock(&listener->lock);
    n_taken = atomic_load_explicit(&listener->n_taken, memory_order_relaxed);
    if (n_taken != 0)
        since_ms = atomic_load_explicit(&listener->taken_since, memory_order_relaxed);
    else if (!oldest_queued_locked(listener, &since_ms))
        since_ms = (uint32_t)now_ms;
    *ret_status = (struct kinf_handler_status){
        .backlog = listener->handler.backlog,
        .has_synced = atomic_load_explicit(&listener->has_synced, memory_order_acquire),
        .n_waiting = n_taken + n_queued_locked(listener),
        .oldest_ms = age_ms(since_ms, now_ms),
        .n_told = atomic_load_explicit(&listener->n_told, memory_order_relaxed),
        .n_merged = coalesces(listener) ? listener->coalescer.n_merged : 0,
    };
    kinf__mutex_unlock(&listener->lock);
}

bool kinf__listener_check(struct kinf__listener *listener)
{
    bool is_sound;

    kinf__mutex_lock(&listener->lock);
    is_sound = coalesces(listener) ? kinf__coalescer_check(&listener->coalescer)
                                   : kinf__chain_check(&listener->chain);
    kinf__mutex_unlock(&listener->lock);
    return is_sound;
}
