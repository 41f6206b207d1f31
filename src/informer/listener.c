/*
 * One handler's backlog, and what its thread does, or who dispatches it. Neighbours: processors push,
 * each under its own lock; handlers.c has the thread.
 *
 * Invariants: pushing cannot fail, since what it needs was reserved before the store changed: a
 * handler that missed a notification could never be told the truth again. What waits in the backlog
 * follows what the snapshots have, so a key that waits and is still to be told from a snapshot has
 * the snapshot's object as its last one.
 */
#include "informer/listener.h"

#include <stdlib.h>

#include "base/error.h"
#include "informer/callback.h"

static bool is_removed(const struct kinf__listener *listener)
{
    return atomic_load_explicit(&listener->is_removed, memory_order_acquire);
}

/* --- callbacks --- */

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

static void tell_synced(struct kinf__listener *listener)
{
    if (listener->handler.on_synced != NULL)
        listener->handler.on_synced(listener->handler.ctx);
    atomic_store_explicit(&listener->has_synced, true, memory_order_release);
}

static void tell(struct kinf__listener *listener, const struct kinf__notification *notification)
{
    const struct kinf_handler *handler = &listener->handler;

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
        tell_synced(listener);
        break;
    }
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

/* --- the snapshots --- */

static void tell_initial_object(struct kinf__listener *listener, const struct kinf_object *object)
{
    kinf_auto_object const struct kinf_object *changed = NULL;
    struct kinf__notification add = { .type = KINF__NOTIFY_ADD, .in_initial_list = true };
    bool has_changed;

    kinf__mutex_lock(&listener->lock);
    has_changed = kinf__backlog_take_initial(listener->backlog, kinf_object_key(object), &changed);
    kinf__mutex_unlock(&listener->lock);
    add.object = has_changed ? changed : object;
    if (add.object != NULL)
        tell_one(listener, &add);
    else
        atomic_fetch_sub_explicit(&listener->n_taken, 1, memory_order_relaxed);
}

/* The next object of the snapshots; NULL: all of them have been told. */
static const struct kinf_object *next_initial(struct kinf__listener *listener)
{
    for (; listener->n_initial_told < listener->n_subscriptions; listener->n_initial_told++) {
        struct kinf__subscription *subscription =
            &listener->subscriptions[listener->n_initial_told];
        const struct kinf_object *object;

        if (listener->cursor.snapshot != subscription->initial)
            kinf_cursor_all(&listener->cursor, subscription->initial);
        object = kinf_cursor_next(&listener->cursor);
        if (object != NULL)
            return object;
        kinf_snapshot_unref(KINF__TAKE(subscription->initial));
    }
    return NULL;
}

/* --- the backlog --- */

static bool take(struct kinf__listener *listener)
{
    size_t n;

    kinf__mutex_lock(&listener->lock);
    n = kinf__backlog_take(listener->backlog, listener->batch);
    if (n != 0)
        atomic_store_explicit(&listener->taken_since, listener->batch[0].since_ms,
                              memory_order_relaxed);
    atomic_store_explicit(&listener->n_taken, n, memory_order_relaxed);
    kinf__mutex_unlock(&listener->lock);
    listener->batch_begin = 0;
    listener->batch_end = n;
    return n != 0;
}

/* Objects are given up one by one, so that a long batch does not hold what was told. */
static void tell_taken(struct kinf__listener *listener)
{
    struct kinf__notification *notification = &listener->batch[listener->batch_begin];

    atomic_store_explicit(&listener->taken_since, notification->since_ms, memory_order_relaxed);
    tell_one(listener, notification);
    kinf__notification_release(notification);
    listener->batch_begin++;
}

/* --- telling --- */

/* False: nothing is left for now. */
static bool tell_next(struct kinf__listener *listener)
{
    const struct kinf_object *object = next_initial(listener);

    if (object != NULL)
        tell_initial_object(listener, object);
    else if (listener->batch_begin < listener->batch_end || take(listener))
        tell_taken(listener);
    else
        return false;
    return true;
}

/* Waits until something is queued; false: the listener is removed. */
static bool wait(struct kinf__listener *listener)
{
    kinf__mutex_lock(&listener->lock);
    listener->is_waiting = true;
    while (listener->backlog->n_notifications == 0 && !is_removed(listener))
        kinf__cond_wait_until(&listener->not_empty, &listener->lock, KINF_FOREVER);
    listener->is_waiting = false;
    kinf__mutex_unlock(&listener->lock);
    return !is_removed(listener);
}

void kinf__listener_run(struct kinf__listener *listener, const void *owner)
{
    struct kinf__callback_mark before = kinf__callback_enter(owner, false);

    do {
        while (!is_removed(listener) && tell_next(listener))
            continue;
    } while (wait(listener));
    if (listener->handler.on_done != NULL)
        listener->handler.on_done(listener->handler.ctx);
    kinf__callback_leave(before);
}

size_t kinf__listener_tell(struct kinf__listener *listener, size_t max, const void *owner)
{
    struct kinf__callback_mark before = kinf__callback_enter(owner, false);
    size_t n = 0;

    while (n < max && !is_removed(listener) && tell_next(listener))
        n++;
    kinf__callback_leave(before);
    return n;
}

size_t kinf__listener_arm(struct kinf__listener *listener)
{
    size_t n;

    kinf__mutex_lock(&listener->lock);
    n = atomic_load_explicit(&listener->n_taken, memory_order_relaxed) +
        listener->backlog->n_notifications;
    listener->is_waiting = n == 0;
    kinf__mutex_unlock(&listener->lock);
    return n;
}

/* --- life --- */

int kinf__listener_new(const struct kinf_handler *handler, size_t n_subscriptions, int64_t now_ms,
                       struct kinf__listener **ret_listener, struct kinf_error *err)
{
    struct kinf__listener *listener =
        calloc(1, sizeof *listener + n_subscriptions * sizeof listener->subscriptions[0]);
    int rc;

    if (listener == NULL)
        return kinf__error_no_memory(err);
    listener->handler = *handler;
    listener->taken_since = (uint32_t)now_ms;
    listener->n_unsynced = n_subscriptions;
    listener->n_subscriptions = n_subscriptions;
    for (size_t i = 0; i < n_subscriptions; i++) {
        listener->subscriptions[i].listener = listener;
        kinf__list_init(&listener->subscriptions[i].in_processor);
    }
    kinf__list_init(&listener->in_owner);
    kinf__mutex_init(&listener->lock, KINF__RANK_LISTENER);
    kinf__cond_init(&listener->not_empty);
    rc = kinf__backlog_new(handler->backlog, &listener->backlog, err);
    if (rc < 0)
        kinf__listener_free(listener);
    else
        *ret_listener = listener;
    return rc;
}

void kinf__listener_free(struct kinf__listener *listener)
{
    for (size_t i = 0; i < listener->n_subscriptions; i++)
        kinf_snapshot_unref(listener->subscriptions[i].initial);
    for (size_t i = listener->batch_begin; i < listener->batch_end; i++)
        kinf__notification_release(&listener->batch[i]);
    kinf__backlog_free(listener->backlog);
    kinf__cond_release(&listener->not_empty);
    kinf__mutex_release(&listener->lock);
    free(listener);
}

void kinf__listener_set_initial(struct kinf__subscription *subscription,
                                struct kinf_snapshot *take_initial)
{
    subscription->initial = take_initial;
    atomic_fetch_add_explicit(&subscription->listener->n_taken, kinf_snapshot_count(take_initial),
                              memory_order_relaxed);
}

void kinf__listener_remove(struct kinf__listener *listener)
{
    kinf__mutex_lock(&listener->lock);
    atomic_store_explicit(&listener->is_removed, true, memory_order_release);
    kinf__cond_signal(&listener->not_empty);
    kinf__mutex_unlock(&listener->lock);
}

/* --- pushing --- */

int kinf__listener_reserve(struct kinf__subscription *subscription, size_t n)
{
    struct kinf__listener *listener = subscription->listener;
    int rc;

    kinf__mutex_lock(&listener->lock);
    rc = kinf__backlog_reserve(listener->backlog, n);
    kinf__mutex_unlock(&listener->lock);
    if (rc == 0)
        subscription->n_reserved += n;
    return rc;
}

void kinf__listener_unreserve(struct kinf__subscription *subscription)
{
    struct kinf__listener *listener = subscription->listener;

    kinf__mutex_lock(&listener->lock);
    kinf__backlog_unreserve(listener->backlog, subscription->n_reserved);
    kinf__mutex_unlock(&listener->lock);
    subscription->n_reserved = 0;
}

void kinf__listener_push(struct kinf__subscription *subscription,
                         const struct kinf__notification *notifications, size_t n, int64_t now_ms)
{
    struct kinf__listener *listener = subscription->listener;

    subscription->n_reserved -= n;
    kinf__mutex_lock(&listener->lock);
    kinf__backlog_push(listener->backlog, notifications, n, now_ms);
    kinf__mutex_unlock(&listener->lock);
}

/* Signals after the lock: the thread would only wait for that. The waker is set under it, so that it
 * is not set when what was queued has been told. */
void kinf__listener_wake(struct kinf__listener *listener)
{
    bool must_wake;

    kinf__mutex_lock(&listener->lock);
    must_wake = listener->is_waiting && listener->backlog->n_notifications != 0;
    if (must_wake && listener->waker != NULL) {
        kinf__waker_set(listener->waker);
        listener->is_waiting = false;
    }
    kinf__mutex_unlock(&listener->lock);
    if (must_wake)
        kinf__cond_signal(&listener->not_empty);
}

void kinf__listener_note_synced(struct kinf__listener *listener, int64_t now_ms)
{
    const struct kinf__notification sentinel = { .type = KINF__NOTIFY_SYNCED };

    kinf__mutex_lock(&listener->lock);
    if (--listener->n_unsynced == 0)
        kinf__backlog_push(listener->backlog, &sentinel, 1, now_ms);
    kinf__mutex_unlock(&listener->lock);
    kinf__listener_wake(listener);
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
    else
        (void)kinf__backlog_oldest(listener->backlog, &since_ms);
    *ret_status = (struct kinf_handler_status){
        .backlog = listener->handler.backlog,
        .has_synced = atomic_load_explicit(&listener->has_synced, memory_order_acquire),
        .n_waiting = n_taken + listener->backlog->n_notifications,
        .oldest_ms = age_ms(since_ms, now_ms),
        .n_told = atomic_load_explicit(&listener->n_told, memory_order_relaxed),
        .n_merged = listener->backlog->n_merged,
    };
    kinf__mutex_unlock(&listener->lock);
}

bool kinf__listener_check(struct kinf__listener *listener)
{
    bool is_sound;

    kinf__mutex_lock(&listener->lock);
    is_sound = kinf__backlog_check(listener->backlog);
    kinf__mutex_unlock(&listener->lock);
    return is_sound;
}
