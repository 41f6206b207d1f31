/*
 * The listeners of one informer. Neighbours: handle_deltas.c begins and commits changes,
 * informer.c lets handlers join and leave.
 *
 * Invariants: a listener is in `listeners` until it is removed and then in `leaving` until it is
 * joined; whoever claims it there, and nobody else, joins it, without the lock. A listener
 * is told a change exactly if its snapshot does not have it.
 */
#include "informer/processor.h"

#include "base/clock.h"
#include "base/error.h"
#include "informer/callback.h"

/* Notifications that are told under one acquisition of the lock. */
#define SLICE_LEN 1000

static struct kinf__listener *listener_of(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct kinf__listener, in_owner);
}

static struct kinf__listener *find(struct kinf__list *list, kinf_handler_id id)
{
    KINF__LIST_FOR_EACH (node, list) {
        if (listener_of(node)->id == id)
            return listener_of(node);
    }
    return NULL;
}

void kinf__processor_init(struct kinf__processor *processor, const void *owner,
                          struct kinf_indexer *indexer)
{
    *processor = (struct kinf__processor){ .owner = owner, .indexer = indexer };
    kinf__mutex_init(&processor->lock, KINF__RANK_APPLY);
    kinf__cond_init(&processor->gone);
    kinf__list_init(&processor->listeners);
    kinf__list_init(&processor->leaving);
    kinf__list_init(&processor->joined);
}

void kinf__processor_release(struct kinf__processor *processor)
{
    kinf__processor_close(processor);
    kinf__processor_join(processor);
    KINF__LIST_FOR_EACH_SAFE (node, &processor->joined)
        kinf__listener_free(listener_of(node));
    kinf__cond_release(&processor->gone);
    kinf__mutex_release(&processor->lock);
}

static size_t count_slices(size_t n)
{
    return (n + SLICE_LEN - 1) / SLICE_LEN;
}

/* Makes sure that the listener can be told. One that turns syncing later is not told of this. */
static int reserve(struct kinf__listener *listener, const struct kinf__announcement *announcement)
{
    size_t n_told = announcement->n_told, n_resynced = announcement->n_resynced;
    size_t n_most = n_told > n_resynced || !listener->is_syncing ? n_told : n_resynced;
    size_t n_pushes = count_slices(n_told);

    listener->hears_unchanged = listener->is_syncing;
    if (listener->hears_unchanged)
        n_pushes += count_slices(n_resynced);
    return kinf__listener_reserve(listener, n_pushes, n_most < SLICE_LEN ? n_most : SLICE_LEN);
}

/* --- joining --- */

static int start_all_locked(struct kinf__processor *processor, struct kinf_error *err)
    KINF__REQUIRES(processor->lock)
{
    KINF__LIST_FOR_EACH (node, &processor->listeners) {
        int rc = kinf__listener_start(listener_of(node), err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

int kinf__processor_start(struct kinf__processor *processor, struct kinf_error *err)
{
    int rc;

    kinf__mutex_lock(&processor->lock);
    processor->is_started = true;
    rc = start_all_locked(processor, err);
    kinf__mutex_unlock(&processor->lock);
    return rc;
}

static bool has_change_locked(const struct kinf__processor *processor,
                              const struct kinf_snapshot *snapshot) KINF__REQUIRES(processor->lock)
{
    const struct kinf__announcement *changing = processor->changing;

    return changing != NULL && changing->key != NULL &&
           kinf_snapshot_get(snapshot, changing->key) == changing->object;
}

static int64_t period_of(const struct kinf__listener *listener)
{
    int64_t period_ms = listener->handler.resync_period_ms;

    return period_ms < KINF__RESYNC_MIN_MS ? KINF__RESYNC_MIN_MS : period_ms;
}

static int make_listener_locked(struct kinf__processor *processor,
                                const struct kinf_handler *handler, int64_t now_ms,
                                struct kinf__listener **ret_listener, struct kinf_error *err)
    KINF__REQUIRES(processor->lock)
{
    struct kinf_snapshot *snapshot = kinf_indexer_snapshot(processor->indexer);
    bool has_change = has_change_locked(processor, snapshot);
    struct kinf__listener *listener;
    int rc = kinf__listener_new(handler, processor->last_id + 1, processor->owner, snapshot, now_ms,
                                &listener, err);

    if (rc < 0)
        return rc;
    listener->skips_change = has_change;
    if (processor->changing != NULL && reserve(listener, processor->changing) < 0) {
        kinf__listener_free(listener);
        return kinf__error_no_memory(err);
    }
    if (handler->resync_period_ms > 0)
        listener->next_resync_ms = kinf__clock_add_ms(now_ms, period_of(listener));
    if (processor->has_synced)
        kinf__listener_push_synced(listener, now_ms);
    *ret_listener = listener;
    return 0;
}

static int add_locked(struct kinf__processor *processor, const struct kinf_handler *handler,
                      int64_t now_ms, kinf_handler_id *ret_id, struct kinf_error *err)
    KINF__REQUIRES(processor->lock)
{
    struct kinf__listener *listener = NULL;
    int rc;

    if (processor->is_closed)
        return kinf__error_set(err, KINF_ERR_STOPPED, "the informer has stopped");
    rc = make_listener_locked(processor, handler, now_ms, &listener, err);
    if (rc == 0 && processor->is_started)
        rc = kinf__listener_start(listener, err);
    if (rc < 0) {
        kinf__listener_free(listener);
        return rc;
    }
    kinf__list_push_back(&processor->listeners, &listener->in_owner);
    processor->n_listeners++;
    processor->last_id = listener->id;
    *ret_id = listener->id;
    return 0;
}

int kinf__processor_add(struct kinf__processor *processor, const struct kinf_handler *handler,
                        int64_t now_ms, kinf_handler_id *ret_id, struct kinf_error *err)
{
    int rc;

    kinf__mutex_lock(&processor->lock);
    rc = add_locked(processor, handler, now_ms, ret_id, err);
    kinf__mutex_unlock(&processor->lock);
    return rc;
}

/* --- leaving --- */

static void dismiss_locked(struct kinf__processor *processor, struct kinf__listener *listener)
    KINF__REQUIRES(processor->lock)
{
    kinf__list_remove(&listener->in_owner);
    kinf__list_push_back(&processor->leaving, &listener->in_owner);
    processor->n_listeners--;
    kinf__listener_remove(listener);
}

/* The caller has claimed it; its callbacks and on_done may be running or still to come. It is the
 * caller's then. */
static void finish_claimed(struct kinf__processor *processor, struct kinf__listener *listener)
{
    kinf__listener_finish(listener);
    kinf__mutex_lock(&processor->lock);
    kinf__list_remove(&listener->in_owner);
    kinf__cond_broadcast(&processor->gone);
    kinf__mutex_unlock(&processor->lock);
}

/* Claims a leaving listener for this thread to finish. NULL when there is nothing to do for it:
 * the listener is gone, or is left to others because this thread must not wait. */
static struct kinf__listener *claim_locked(struct kinf__processor *processor, kinf_handler_id id)
    KINF__REQUIRES(processor->lock)
{
    struct kinf__listener *listener;

    while ((listener = find(&processor->leaving, id)) != NULL) {
        if (listener->has_thread && kinf__callback_owner() != NULL)
            return NULL;
        if (!listener->is_claimed) {
            listener->is_claimed = true;
            return listener;
        }
        if (kinf__callback_owner() != NULL)
            return NULL;
        kinf__cond_wait_until(&processor->gone, &processor->lock, KINF_FOREVER);
    }
    return NULL;
}

void kinf__processor_remove(struct kinf__processor *processor, kinf_handler_id id)
{
    struct kinf__listener *listener;

    kinf__mutex_lock(&processor->lock);
    listener = find(&processor->listeners, id);
    if (listener != NULL)
        dismiss_locked(processor, listener);
    listener = claim_locked(processor, id);
    kinf__mutex_unlock(&processor->lock);
    if (listener == NULL)
        return;
    finish_claimed(processor, listener);
    kinf__listener_free(listener);
}

/* NULL if there is none. */
static struct kinf__listener *claim_any_locked(struct kinf__processor *processor, bool only_done)
    KINF__REQUIRES(processor->lock)
{
    KINF__LIST_FOR_EACH (node, &processor->leaving) {
        struct kinf__listener *listener = listener_of(node);
        bool is_done = atomic_load_explicit(&listener->is_done, memory_order_acquire);

        if (!listener->is_claimed && (is_done || !only_done)) {
            listener->is_claimed = true;
            return listener;
        }
    }
    return NULL;
}

void kinf__processor_reap(struct kinf__processor *processor)
{
    struct kinf__listener *listener;

    kinf__mutex_lock(&processor->lock);
    while ((listener = claim_any_locked(processor, true)) != NULL) {
        kinf__mutex_unlock(&processor->lock);
        finish_claimed(processor, listener);
        kinf__listener_free(listener);
        kinf__mutex_lock(&processor->lock);
    }
    kinf__mutex_unlock(&processor->lock);
}

void kinf__processor_close(struct kinf__processor *processor)
{
    kinf__mutex_lock(&processor->lock);
    processor->is_closed = true;
    KINF__LIST_FOR_EACH_SAFE (node, &processor->listeners)
        dismiss_locked(processor, listener_of(node));
    kinf__mutex_unlock(&processor->lock);
}

void kinf__processor_join(struct kinf__processor *processor)
{
    struct kinf__listener *listener;

    kinf__mutex_lock(&processor->lock);
    while ((listener = claim_any_locked(processor, false)) != NULL) {
        kinf__mutex_unlock(&processor->lock);
        finish_claimed(processor, listener);
        kinf__mutex_lock(&processor->lock);
        kinf__list_push_back(&processor->joined, &listener->in_owner);
    }
    while (!kinf__list_is_empty(&processor->leaving))
        kinf__cond_wait_until(&processor->gone, &processor->lock, KINF_FOREVER);
    kinf__mutex_unlock(&processor->lock);
}

size_t kinf__processor_count(struct kinf__processor *processor)
{
    size_t n_listeners;

    kinf__mutex_lock(&processor->lock);
    n_listeners = processor->n_listeners;
    kinf__mutex_unlock(&processor->lock);
    return n_listeners;
}

bool kinf__processor_handler_has_synced(struct kinf__processor *processor, kinf_handler_id id)
{
    const struct kinf__listener *listener;
    bool has_synced;

    kinf__mutex_lock(&processor->lock);
    listener = find(&processor->listeners, id);
    has_synced =
        listener != NULL && atomic_load_explicit(&listener->has_synced, memory_order_acquire);
    kinf__mutex_unlock(&processor->lock);
    return has_synced;
}

bool kinf__processor_handler_status(struct kinf__processor *processor, kinf_handler_id id,
                                    int64_t now_ms, struct kinf_handler_status *ret_status)
{
    struct kinf__listener *listener;

    kinf__mutex_lock(&processor->lock);
    listener = find(&processor->listeners, id);
    if (listener != NULL)
        kinf__listener_status(listener, now_ms, ret_status);
    kinf__mutex_unlock(&processor->lock);
    return listener != NULL;
}

static struct kinf__handler_report *report_locked(struct kinf__processor *processor, int64_t now_ms)
    KINF__REQUIRES(processor->lock)
{
    struct kinf__handler_report *handlers = calloc(processor->n_listeners + 1, sizeof *handlers);
    size_t n = 0;

    if (handlers == NULL)
        return NULL;
    KINF__LIST_FOR_EACH (node, &processor->listeners) {
        handlers[n].id = listener_of(node)->id;
        kinf__listener_status(listener_of(node), now_ms, &handlers[n++].status);
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
        *ret_n_handlers = processor->n_listeners;
    }
    kinf__mutex_unlock(&processor->lock);
    return handlers != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* --- distribution --- */

static int reserve_all_locked(struct kinf__processor *processor,
                              const struct kinf__announcement *announcement)
    KINF__REQUIRES(processor->lock)
{
    KINF__LIST_FOR_EACH (node, &processor->listeners) {
        if (reserve(listener_of(node), announcement) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

int kinf__processor_begin(struct kinf__processor *processor,
                          const struct kinf__announcement *announcement)
{
    int rc;

    kinf__mutex_lock(&processor->lock);
    rc = reserve_all_locked(processor, announcement);
    if (rc == 0)
        processor->changing = announcement;
    kinf__mutex_unlock(&processor->lock);
    return rc;
}

static void end_change_locked(struct kinf__processor *processor) KINF__REQUIRES(processor->lock)
{
    processor->changing = NULL;
    KINF__LIST_FOR_EACH (node, &processor->listeners) {
        listener_of(node)->skips_change = false;
        listener_of(node)->hears_unchanged = false;
        kinf__listener_trim(listener_of(node));
    }
}

/* The part of `n` that lies in the slice at `at`. */
static size_t slice_len(size_t n, size_t at)
{
    size_t n_left = n > at ? n - at : 0;

    return n_left < SLICE_LEN ? n_left : SLICE_LEN;
}

static void tell_slice_locked(struct kinf__processor *processor,
                              const struct kinf__announcement *announcement, size_t at,
                              int64_t now_ms) KINF__REQUIRES(processor->lock)
{
    size_t n_told = slice_len(announcement->n_told, at);
    size_t n_resynced = slice_len(announcement->n_resynced, at);

    KINF__LIST_FOR_EACH (node, &processor->listeners) {
        struct kinf__listener *listener = listener_of(node);

        if (listener->skips_change)
            continue;
        if (n_told != 0)
            kinf__listener_push(listener, announcement->told + at, n_told, now_ms);
        if (n_resynced != 0 && listener->hears_unchanged)
            kinf__listener_push(listener, announcement->resynced + at, n_resynced, now_ms);
    }
}

int kinf__processor_commit(struct kinf__processor *processor,
                           const struct kinf__announcement *announcement,
                           const struct kinf__stop *stop)
{
    size_t n = announcement->n_told > announcement->n_resynced ? announcement->n_told
                                                               : announcement->n_resynced;
    int64_t now_ms = kinf__clock_now_ms();

    for (size_t at = 0;; at += SLICE_LEN) {
        bool is_last = n <= SLICE_LEN || at >= n - SLICE_LEN, is_stopped = kinf__stop_is_set(stop);

        kinf__mutex_lock(&processor->lock);
        if (!is_stopped)
            tell_slice_locked(processor, announcement, at, now_ms);
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
    KINF__LIST_FOR_EACH (node, &processor->listeners)
        kinf__listener_wake(listener_of(node));
    kinf__mutex_unlock(&processor->lock);
}

void kinf__processor_set_synced(struct kinf__processor *processor)
{
    kinf__mutex_lock(&processor->lock);
    if (!processor->has_synced) {
        processor->has_synced = true;
        KINF__LIST_FOR_EACH (node, &processor->listeners)
            kinf__listener_push_synced(listener_of(node), kinf__clock_now_ms());
    }
    kinf__mutex_unlock(&processor->lock);
}

/* --- resync --- */

int64_t kinf__processor_next_resync_ms(struct kinf__processor *processor)
{
    int64_t next_ms = KINF_FOREVER;

    kinf__mutex_lock(&processor->lock);
    KINF__LIST_FOR_EACH (node, &processor->listeners) {
        if (listener_of(node)->next_resync_ms < next_ms)
            next_ms = listener_of(node)->next_resync_ms;
    }
    kinf__mutex_unlock(&processor->lock);
    return next_ms;
}

static bool mark_syncing(struct kinf__listener *listener, int64_t now_ms, bool is_drained)
{
    bool is_due = now_ms >= listener->next_resync_ms;

    if (is_due)
        listener->next_resync_ms = kinf__clock_add_ms(now_ms, period_of(listener));
    listener->is_syncing = is_due || (listener->is_syncing && !is_drained);
    return is_due;
}

bool kinf__processor_should_resync(struct kinf__processor *processor, int64_t now_ms,
                                   bool is_drained)
{
    bool should_resync = false;

    kinf__mutex_lock(&processor->lock);
    KINF__LIST_FOR_EACH (node, &processor->listeners) {
        if (mark_syncing(listener_of(node), now_ms, is_drained))
            should_resync = true;
    }
    kinf__mutex_unlock(&processor->lock);
    return should_resync;
}

/* --- check --- */

static bool list_is_sound(struct kinf__list *list, bool is_leaving, size_t *ret_n_listeners)
{
    kinf_handler_id last_id = 0;
    size_t n_listeners = 0;

    KINF__LIST_FOR_EACH (node, list) {
        struct kinf__listener *listener = listener_of(node);

        if ((!is_leaving && listener->id <= last_id) || !kinf__listener_check(listener) ||
            atomic_load(&listener->is_removed) != is_leaving)
            return false;
        last_id = listener->id;
        n_listeners++;
    }
    *ret_n_listeners = n_listeners;
    return true;
}

bool kinf__processor_check(struct kinf__processor *processor)
{
    size_t n_listeners = 0, n_leaving;
    bool is_sound;

    kinf__mutex_lock(&processor->lock);
    is_sound = list_is_sound(&processor->listeners, false, &n_listeners) &&
               list_is_sound(&processor->leaving, true, &n_leaving) &&
               n_listeners == processor->n_listeners;
    kinf__mutex_unlock(&processor->lock);
    return is_sound;
}
