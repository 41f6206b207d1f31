/*
 * What one informer tells to whom. Neighbours: handle_deltas.c begins changes and distributes them,
 * handlers.c lets handlers join and leave.
 *
 * Invariant: a subscription is told a change exactly if its snapshot does not have it, which is one
 * with no more writes than the store had when the change began.
 */
#include "informer/processor.h"

#include <assert.h>

#include "base/clock.h"
#include "base/error.h"
#include "indexer/snapshot.h"
#include "informer/batch.h"

/* Notifications that are told under one acquisition of the lock. */
#define SLICE_LEN 1000

static struct kinf__subscription *subscription_of(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct kinf__subscription, in_processor);
}

void kinf__processor_init(struct kinf__processor *processor, struct kinf_indexer *indexer)
{
    *processor = (struct kinf__processor){ .indexer = indexer };
    kinf__mutex_init(&processor->lock, KINF__RANK_APPLY);
    kinf__list_init(&processor->subscriptions);
}

void kinf__processor_release(struct kinf__processor *processor)
{
    assert(processor->n_subscriptions == 0);
    kinf__mutex_release(&processor->lock);
}

/* Makes sure that the change can be told. One that turns syncing later is not told of what did not
 * change. */
static int reserve(struct kinf__subscription *subscription, const struct kinf__batch *batch)
{
    size_t n = batch->n_notifications;

    subscription->hears_unchanged = subscription->is_syncing;
    if (subscription->hears_unchanged)
        n += batch->n_resynced;
    return kinf__listener_reserve(subscription, n);
}

/* --- who is told --- */

static int64_t period_of(const struct kinf__subscription *subscription)
{
    int64_t period_ms = subscription->listener->handler.resync_period_ms;

    return period_ms < KINF__RESYNC_MIN_MS ? KINF__RESYNC_MIN_MS : period_ms;
}

static int subscribe_locked(struct kinf__processor *processor,
                            struct kinf__subscription *subscription, int64_t now_ms)
    KINF__REQUIRES(processor->lock)
{
    struct kinf_snapshot *snapshot = kinf_indexer_snapshot(processor->indexer);

    subscription->n_writes = snapshot->n_writes;
    kinf__listener_set_initial(subscription, snapshot);
    if (processor->changing != NULL && reserve(subscription, processor->changing) < 0)
        return KINF_ERR_NO_MEMORY;
    subscription->next_resync_ms = subscription->listener->handler.resync_period_ms > 0
                                       ? kinf__clock_add_ms(now_ms, period_of(subscription))
                                       : KINF_FOREVER;
    if (processor->has_synced)
        kinf__listener_note_synced(subscription->listener, now_ms);
    kinf__list_push_back(&processor->subscriptions, &subscription->in_processor);
    processor->n_subscriptions++;
    return 0;
}

int kinf__processor_subscribe(struct kinf__processor *processor,
                              struct kinf__subscription *subscription, int64_t now_ms,
                              struct kinf_error *err)
{
    int rc;

    kinf__mutex_lock(&processor->lock);
    rc = subscribe_locked(processor, subscription, now_ms);
    kinf__mutex_unlock(&processor->lock);
    return rc < 0 ? kinf__error_no_memory(err) : 0;
}

void kinf__processor_unsubscribe(struct kinf__processor *processor,
                                 struct kinf__subscription *subscription)
{
    kinf__mutex_lock(&processor->lock);
    if (!kinf__list_is_empty(&subscription->in_processor)) {
        kinf__list_remove(&subscription->in_processor);
        processor->n_subscriptions--;
    }
    kinf__mutex_unlock(&processor->lock);
}

size_t kinf__processor_count(struct kinf__processor *processor)
{
    size_t n_subscriptions;

    kinf__mutex_lock(&processor->lock);
    n_subscriptions = processor->n_subscriptions;
    kinf__mutex_unlock(&processor->lock);
    return n_subscriptions;
}

static struct kinf__handler_report *report_locked(struct kinf__processor *processor, int64_t now_ms)
    KINF__REQUIRES(processor->lock)
{
    struct kinf__handler_report *handlers =
        calloc(processor->n_subscriptions + 1, sizeof *handlers);
    size_t n = 0;

    if (handlers == NULL)
        return NULL;
    KINF__LIST_FOR_EACH (node, &processor->subscriptions) {
        struct kinf__listener *listener = subscription_of(node)->listener;

        handlers[n].id = listener->id;
        handlers[n].is_dispatched = listener->waker != NULL;
        kinf__listener_status(listener, now_ms, &handlers[n++].status);
    }
    return handlers;
}

int kinf__processor_report(struct kinf__processor *processor, int64_t now_ms,
                           struct kinf__handler_report **ret_handlers, size_t *ret_n_handlers)
{
    struct kinf__handler_report *handlers;

    kinf__mutex_lock(&processor->lock);
    handlers = report_locked(processor, now_ms);
    if (handlers != NULL) {
        *ret_handlers = handlers;
        *ret_n_handlers = processor->n_subscriptions;
    }
    kinf__mutex_unlock(&processor->lock);
    return handlers != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* --- distribution --- */

static void end_change_locked(struct kinf__processor *processor) KINF__REQUIRES(processor->lock)
{
    processor->changing = NULL;
    KINF__LIST_FOR_EACH (node, &processor->subscriptions)
        kinf__listener_unreserve(subscription_of(node));
}

static int reserve_all_locked(struct kinf__processor *processor, const struct kinf__batch *batch)
    KINF__REQUIRES(processor->lock)
{
    KINF__LIST_FOR_EACH (node, &processor->subscriptions) {
        if (reserve(subscription_of(node), batch) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

int kinf__processor_begin(struct kinf__processor *processor, const struct kinf__batch *batch)
{
    kinf_auto_snapshot struct kinf_snapshot *before = kinf_indexer_snapshot(processor->indexer);
    int rc;

    kinf__mutex_lock(&processor->lock);
    processor->n_writes = before->n_writes;
    rc = reserve_all_locked(processor, batch);
    if (rc == 0)
        processor->changing = batch;
    else
        end_change_locked(processor);
    kinf__mutex_unlock(&processor->lock);
    return rc;
}

/* The part of `n` that lies in the slice at `at`. */
static size_t slice_len(size_t n, size_t at)
{
    size_t n_left = n > at ? n - at : 0;

    return n_left < SLICE_LEN ? n_left : SLICE_LEN;
}

static void tell_slice_locked(struct kinf__processor *processor, const struct kinf__batch *batch,
                              size_t at, int64_t now_ms) KINF__REQUIRES(processor->lock)
{
    const struct kinf__notification *notifications = batch->notifications.items,
                                    *resynced = batch->resynced.items;
    size_t n_notifications = slice_len(batch->n_notifications, at);
    size_t n_resynced = slice_len(batch->n_resynced, at);

    KINF__LIST_FOR_EACH (node, &processor->subscriptions) {
        struct kinf__subscription *subscription = subscription_of(node);

        if (subscription->n_writes > processor->n_writes)
            continue;
        if (n_notifications != 0)
            kinf__listener_push(subscription, notifications + at, n_notifications, now_ms);
        if (n_resynced != 0 && subscription->hears_unchanged)
            kinf__listener_push(subscription, resynced + at, n_resynced, now_ms);
    }
}

int kinf__processor_distribute(struct kinf__processor *processor, const struct kinf__batch *batch,
                               const struct kinf__stop *stop)
{
    size_t n =
        batch->n_notifications > batch->n_resynced ? batch->n_notifications : batch->n_resynced;
    int64_t now_ms = kinf__clock_now_ms();

    for (size_t at = 0;; at += SLICE_LEN) {
        bool is_last = n <= SLICE_LEN || at >= n - SLICE_LEN, is_stopped = kinf__stop_is_set(stop);

        kinf__mutex_lock(&processor->lock);
        if (!is_stopped)
            tell_slice_locked(processor, batch, at, now_ms);
        if (is_last || is_stopped)
            end_change_locked(processor);
        kinf__mutex_unlock(&processor->lock);
        if (is_last || is_stopped)
            return is_stopped ? KINF_ERR_STOPPED : 0;
    }
}

void kinf__processor_cancel(struct kinf__processor *processor)
{
    kinf__mutex_lock(&processor->lock);
    end_change_locked(processor);
    kinf__mutex_unlock(&processor->lock);
}

void kinf__processor_wake(struct kinf__processor *processor)
{
    kinf__mutex_lock(&processor->lock);
    KINF__LIST_FOR_EACH (node, &processor->subscriptions)
        kinf__listener_wake(subscription_of(node)->listener);
    kinf__mutex_unlock(&processor->lock);
}

void kinf__processor_set_synced(struct kinf__processor *processor)
{
    kinf__mutex_lock(&processor->lock);
    if (!processor->has_synced) {
        processor->has_synced = true;
        KINF__LIST_FOR_EACH (node, &processor->subscriptions)
            kinf__listener_note_synced(subscription_of(node)->listener, kinf__clock_now_ms());
    }
    kinf__mutex_unlock(&processor->lock);
}

/* --- resync --- */

int64_t kinf__processor_next_resync_ms(struct kinf__processor *processor)
{
    int64_t next_ms = KINF_FOREVER;

    kinf__mutex_lock(&processor->lock);
    KINF__LIST_FOR_EACH (node, &processor->subscriptions) {
        if (subscription_of(node)->next_resync_ms < next_ms)
            next_ms = subscription_of(node)->next_resync_ms;
    }
    kinf__mutex_unlock(&processor->lock);
    return next_ms;
}

static bool mark_syncing(struct kinf__subscription *subscription, int64_t now_ms, bool is_drained)
{
    bool is_due = now_ms >= subscription->next_resync_ms;

    if (is_due)
        subscription->next_resync_ms = kinf__clock_add_ms(now_ms, period_of(subscription));
    subscription->is_syncing = is_due || (subscription->is_syncing && !is_drained);
    return is_due;
}

bool kinf__processor_should_resync(struct kinf__processor *processor, int64_t now_ms,
                                   bool is_drained)
{
    bool should_resync = false;

    kinf__mutex_lock(&processor->lock);
    KINF__LIST_FOR_EACH (node, &processor->subscriptions) {
        if (mark_syncing(subscription_of(node), now_ms, is_drained))
            should_resync = true;
    }
    kinf__mutex_unlock(&processor->lock);
    return should_resync;
}

/* --- check --- */

bool kinf__processor_check(struct kinf__processor *processor)
{
    size_t n_subscriptions = 0;
    bool is_sound = true;

    kinf__mutex_lock(&processor->lock);
    KINF__LIST_FOR_EACH (node, &processor->subscriptions) {
        is_sound = is_sound && kinf__listener_check(subscription_of(node)->listener);
        n_subscriptions++;
    }
    is_sound = is_sound && n_subscriptions == processor->n_subscriptions;
    kinf__mutex_unlock(&processor->lock);
    return is_sound;
}
