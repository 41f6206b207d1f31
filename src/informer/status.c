/*
 * What is known of an informer, and waiting for it: what its reflector reports, whether the first
 * list is in, which versions of the server the store has seen. Neighbours: state.c derives the
 * visible state, pop_loop.c says when the store may have changed.
 *
 * Invariant: while somebody waits for a version, each one that the store reached is
 * looked at, so that one that goes backwards is seen even if it soon is above the awaited one.
 */
#include "informer/informer.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "deltafifo/deltafifo.h"
#include "indexer/indexer.h"
#include "informer/callback.h"
#include "informer/saved.h"
#include "rest/client.h"

/* How often is looked for what wakes no condition: an interrupt, which may come from a signal
 * handler; of several that are waited for, that another one is refused. */
#define LOOK_INTERVAL_MS 50

/* --- the first list is in --- */

static size_t count_objects(struct kinf_informer *informer)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(informer->indexer);

    return kinf_snapshot_count(snapshot);
}

static void tell_unmet(const char *path, const char *role, void *ctx)
{
    const struct kinf_informer *informer = ctx;

    KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_WARN,
              "a path names nothing in the whole first list resource=%s option=%s path=%s",
              informer->type->resource, role, KINF__QUOTED(path));
}

/* What was mistyped, or is of another type. */
static void tell_unmet_paths(struct kinf_informer *informer)
{
    if (informer->client == NULL || count_objects(informer) == 0)
        return;
    kinf__prune_plan_each_unmet(informer->plan, tell_unmet, informer);
    kinf__indexer_each_unmet(informer->indexer, tell_unmet, informer);
}

void kinf__informer_check_synced(struct kinf_informer *informer)
{
    bool is_first;

    if (atomic_load_explicit(&informer->has_synced, memory_order_acquire) ||
        atomic_load(&informer->saved) != KINF__SAVED_NONE ||
        !kinf_deltafifo_has_synced(informer->fifo))
        return;
    kinf__processor_set_synced(&informer->processor);
    kinf__mutex_lock(&informer->status_lock);
    is_first = !informer->state.has_synced;
    kinf__state_synced(&informer->state, kinf__clock_now_ms());
    atomic_store_explicit(&informer->has_synced, true, memory_order_release);
    kinf__cond_broadcast(&informer->status_changed);
    kinf__mutex_unlock(&informer->status_lock);
    if (is_first)
        tell_unmet_paths(informer);
}

/* --- what the reflector reports --- */

void kinf__informer_note_contact(struct kinf_informer *informer)
{
    if (atomic_load(&informer->saved) == KINF__SAVED_LOADED)
        return; /* the oldest change that was missed proves nothing yet */
    atomic_store_explicit(&informer->last_contact_ms, kinf__clock_now_ms(), memory_order_relaxed);
    /* By key, a bookmark and an empty list leave nothing to pop. */
    kinf__informer_check_synced(informer);
    kinf__informer_note_progress(informer);
}

static const char *namespace_of(const struct kinf_informer *informer)
{
    return informer->name_space != NULL ? informer->name_space : "*";
}

static void tell_watch_error(struct kinf_informer *informer, const struct kinf_error *err,
                             int64_t wait_ms)
{
    struct kinf__callback_mark before;

    KINF__LOG(KINF__LOG_INFORMER,
              kinf__trouble_level(&informer->trouble, err, kinf__clock_now_ms()),
              "list or watch failed resource=%s namespace=%s retry_in_ms=%lld error=%s",
              informer->type->resource, namespace_of(informer), (long long)wait_ms,
              KINF__QUOTED(err->message));
    if (informer->on_watch_error == NULL)
        return;
    before = kinf__callback_enter(informer, true);
    informer->on_watch_error(err, informer->on_watch_error_ctx);
    kinf__callback_leave(before);
}

static void on_phase(enum kinf__reflector_phase phase, const struct kinf_error *err,
                     int64_t wait_ms, void *ctx)
{
    struct kinf_informer *informer = ctx;

    kinf__mutex_lock(&informer->status_lock);
    kinf__state_phase(&informer->state, phase, err, kinf__clock_now_ms());
    if (kinf__state_refusal(&informer->state) != NULL)
        kinf__cond_broadcast(&informer->status_changed);
    kinf__mutex_unlock(&informer->status_lock);
    if (phase != KINF__REFLECTOR_WAITING || err == NULL)
        return;
    informer->is_in_doubt = true;
    tell_watch_error(informer, err, wait_ms);
}

static void on_frozen(const struct kinf_error *err, void *ctx)
{
    struct kinf_informer *informer = ctx;

    kinf__mutex_lock(&informer->status_lock);
    kinf__state_frozen(&informer->state, err, kinf__clock_now_ms());
    kinf__mutex_unlock(&informer->status_lock);
    if (err != NULL)
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_WARN,
                  "watches are not to be relied on resource=%s namespace=%s error=%s",
                  informer->type->resource, namespace_of(informer), KINF__QUOTED(err->message));
    else
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_INFO,
                  "watches deliver again resource=%s namespace=%s", informer->type->resource,
                  namespace_of(informer));
}

/* Who reads of a failure wants to read of its end. */
static void end_doubt(struct kinf_informer *informer)
{
    informer->is_in_doubt = false;
    kinf__mutex_lock(&informer->status_lock);
    kinf__state_contact(&informer->state);
    kinf__mutex_unlock(&informer->status_lock);
    if (kinf__trouble_end(&informer->trouble))
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_INFO, "watching again resource=%s namespace=%s",
                  informer->type->resource, namespace_of(informer));
}

static void on_contact(bool by_watch, void *ctx)
{
    struct kinf_informer *informer = ctx;

    kinf__informer_note_contact(informer);
    if (by_watch && informer->is_in_doubt)
        end_doubt(informer);
}

static void on_pause(void *ctx)
{
    kinf__pop_at_once(ctx);
}

static void on_quarantine(const char *key, const struct kinf_error *err, void *ctx)
{
    struct kinf_informer *informer = ctx;
    struct kinf__reflector_counts counts;

    kinf__reflector_counts(informer->reflector, &counts);
    kinf__mutex_lock(&informer->status_lock);
    kinf__state_quarantine(&informer->state, key, err, counts.n_quarantined, kinf__clock_now_ms());
    kinf__mutex_unlock(&informer->status_lock);
    KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_WARN, "object left out resource=%s key=%s error=%s",
              informer->type->resource, key, KINF__QUOTED(err->message));
}

static void on_shard_ignored(const char *key, void *ctx)
{
    struct kinf_informer *informer = ctx;

    kinf__mutex_lock(&informer->status_lock);
    kinf__state_shard_ignored(&informer->state, key, kinf__clock_now_ms());
    kinf__mutex_unlock(&informer->status_lock);
    if (key != NULL)
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_WARN,
                  "server ignores the shard selector, leaving out what is outside resource=%s "
                  "key=%s",
                  informer->type->resource, key);
    else
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_INFO, "server obeys the shard selector resource=%s",
                  informer->type->resource);
}

/* --- a saved state --- */

static void set_saved_wall_ms(struct kinf_informer *informer, int64_t wall_ms)
{
    kinf__mutex_lock(&informer->status_lock);
    informer->state.saved_wall_ms = wall_ms;
    kinf__mutex_unlock(&informer->status_lock);
}

static void on_loaded(int64_t wall_ms, void *ctx)
{
    struct kinf_informer *informer = ctx;

    set_saved_wall_ms(informer, wall_ms);
    atomic_store(&informer->saved, wall_ms != 0 ? KINF__SAVED_LOADED : KINF__SAVED_NONE);
}

static void on_confirmed(const char *rv, void *ctx)
{
    struct kinf_informer *informer = ctx;

    kinf__mutex_lock(&informer->status_lock);
    snprintf(informer->state.confirming_rv, sizeof informer->state.confirming_rv, "%s", rv);
    kinf__mutex_unlock(&informer->status_lock);
    atomic_store(&informer->saved, KINF__SAVED_CONFIRMED);
    kinf__informer_note_contact(informer);
}

/* Another bookmark may have been queued before that version, with what was missed behind it. */
static bool is_confirmed_by(const struct kinf__state *state, const char *rv)
{
    int order;

    return kinf_rv_compare(rv, state->confirming_rv, &order, NULL) < 0 || order >= 0;
}

void kinf__informer_note_bookmark(struct kinf_informer *informer, const char *rv)
{
    bool is_confirmed;

    if (atomic_load(&informer->saved) != KINF__SAVED_CONFIRMED)
        return;
    kinf__mutex_lock(&informer->status_lock);
    is_confirmed = is_confirmed_by(&informer->state, rv);
    if (is_confirmed)
        informer->state.saved_wall_ms = 0;
    kinf__mutex_unlock(&informer->status_lock);
    if (is_confirmed)
        atomic_store(&informer->saved, KINF__SAVED_NONE);
}

int64_t kinf__informer_saved_wall_ms(struct kinf_informer *informer)
{
    int64_t wall_ms;

    kinf__mutex_lock(&informer->status_lock);
    wall_ms = informer->state.saved_wall_ms;
    kinf__mutex_unlock(&informer->status_lock);
    return wall_ms;
}

struct kinf_snapshot *kinf__informer_savable(struct kinf_informer *informer)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;
    struct kinf_informer_status status;

    /* Before the status: what is left out since then is in it. */
    snapshot = kinf_indexer_snapshot(informer->indexer);
    kinf_informer_status(informer, &status);
    if (!status.has_synced || status.n_quarantined != 0 ||
        kinf_snapshot_resource_version(snapshot)[0] == '\0')
        return NULL;
    return kinf_snapshot_ref(snapshot);
}

struct kinf__reflector_callbacks kinf__informer_reports(struct kinf_informer *informer)
{
    return (struct kinf__reflector_callbacks){ .on_phase = on_phase,
                                               .on_contact = on_contact,
                                               .on_pause = on_pause,
                                               .on_quarantine = on_quarantine,
                                               .on_shard_ignored = on_shard_ignored,
                                               .on_frozen = on_frozen,
                                               .on_loaded = on_loaded,
                                               .on_confirmed = on_confirmed,
                                               .ctx = informer };
}

/* --- state --- */

static void derive_locked(struct kinf_informer *informer, struct kinf_informer_status *status)
    KINF__REQUIRES(informer->status_lock)
{
    struct kinf__reflector_counts counts = { 0 };
    struct kinf__state_counts mattering;

    if (informer->reflector != NULL)
        kinf__reflector_counts(informer->reflector, &counts);
    status->n_lists = counts.n_lists;
    status->n_watches = counts.n_watches;
    status->n_events = counts.n_events;
    status->n_bookmarks = counts.n_bookmarks;
    status->n_errors = counts.n_errors;
    status->n_silent = counts.n_silent;
    status->n_extra_lists = counts.n_extra_lists;
    status->n_quarantined = counts.n_quarantined;
    status->n_outside_shard = counts.n_outside_shard;
    status->received_bytes = counts.received_bytes;
    status->last_list_ms = counts.last_list_ms;
    status->list_since_ms = counts.list_since_ms;
    status->n_list_objects = counts.n_list_objects;
    status->n_list_expected = counts.n_list_expected;
    status->list_bytes = counts.list_bytes;
    status->n_failed_index_values = kinf_indexer_failed_index_values(informer->indexer);
    mattering.last_contact_ms =
        atomic_load_explicit(&informer->last_contact_ms, memory_order_relaxed);
    mattering.n_quarantined = counts.n_quarantined;
    mattering.n_failed_index_values = status->n_failed_index_values;
    kinf__state_derive(&informer->state, &mattering, kinf__clock_now_ms(), status);
}

/* Why the first list is not waited for; NULL: it is. */
static const struct kinf_error *refusal_locked(const struct kinf_informer *informer)
    KINF__REQUIRES(informer->status_lock)
{
    return informer->wait_out_refusals ? NULL : kinf__state_refusal(&informer->state);
}

static int refused(const struct kinf_informer *informer, const struct kinf_error *refusal,
                   struct kinf_error *err)
{
    if (err != NULL)
        *err = *refusal;
    kinf__error_prefix(err, "%s: not synced", informer->type->resource);
    return (int)refusal->code;
}

static int not_synced_locked(struct kinf_informer *informer, int64_t timeout_ms,
                             struct kinf_error *err) KINF__REQUIRES(informer->status_lock)
{
    struct kinf_informer_status status = { 0 };

    if (informer->is_stopping)
        return kinf__error_set(err, KINF_ERR_STOPPED, "%s: stopped before the first list was in",
                               informer->type->resource);
    if (refusal_locked(informer) != NULL)
        return refused(informer, refusal_locked(informer), err);
    derive_locked(informer, &status);
    return kinf__error_set(err, KINF_ERR_TIMEOUT, "%s: not synced after %lld ms: %s%s%s",
                           informer->type->resource, (long long)timeout_ms,
                           kinf_informer_state_to_string(status.state),
                           status.reason[0] != '\0' ? ": " : "", status.reason);
}

static int refuse_feeder(const struct kinf_informer *informer, struct kinf_error *err)
{
    return kinf__callback_feeds(informer)
               ? kinf__error_set(err, KINF_ERR_STATE,
                                 "%s: the store waits for this thread, so it cannot wait for it",
                                 informer->type->resource)
               : 0;
}

int kinf_informer_wait_synced(struct kinf_informer *informer, int64_t timeout_ms,
                              struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer);

    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms);
    int rc = refuse_feeder(informer, err);

    if (rc < 0)
        return rc;
    kinf__mutex_lock(&informer->status_lock);
    while (!informer->state.has_synced && !informer->is_stopping &&
           refusal_locked(informer) == NULL &&
           kinf__cond_wait_until(&informer->status_changed, &informer->status_lock, deadline_ms))
        continue;
    if (!informer->state.has_synced)
        rc = not_synced_locked(informer, timeout_ms, err);
    kinf__mutex_unlock(&informer->status_lock);
    return rc;
}

/* Looks at each. KINF_ERR_TIMEOUT: *ret_waiting is the first that may still become synced. */
static int look_at_each(kinf__informer_at *at, void *ctx, struct kinf_informer **ret_waiting,
                        struct kinf_error *err)
{
    struct kinf_informer *informer, *waiting = NULL;

    for (size_t i = 0; (informer = at(i, ctx)) != NULL; i++) {
        struct kinf_error own = KINF_ERROR_INIT; /* it may be none */
        int rc = kinf_informer_wait_synced(informer, 0, &own);

        if (rc < 0 && rc != KINF_ERR_TIMEOUT) {
            if (informer->name_space != NULL)
                kinf__error_prefix(&own, "namespace %s", informer->name_space);
            if (err != NULL)
                *err = own;
            return rc;
        }
        if (rc < 0 && waiting == NULL)
            waiting = informer;
    }
    *ret_waiting = waiting;
    return waiting != NULL ? KINF_ERR_TIMEOUT : 0;
}

int kinf__informer_wait_each_synced(kinf__informer_at *at, void *ctx, int64_t timeout_ms,
                                    struct kinf_error *err)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms), left_ms;
    struct kinf_informer *waiting;
    int rc;

    while ((rc = look_at_each(at, ctx, &waiting, err)) == KINF_ERR_TIMEOUT &&
           (left_ms = kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms)) > 0) {
        int64_t look_ms = left_ms < LOOK_INTERVAL_MS ? left_ms : LOOK_INTERVAL_MS;

        if (kinf_informer_wait_synced(waiting, look_ms, NULL) < 0)
            continue; /* the next look tells why */
    }
    if (rc != KINF_ERR_TIMEOUT)
        return rc;
    kinf__mutex_lock(&waiting->status_lock);
    rc = not_synced_locked(waiting, timeout_ms, err);
    kinf__mutex_unlock(&waiting->status_lock);
    if (waiting->name_space != NULL)
        kinf__error_prefix(err, "namespace %s", waiting->name_space);
    return rc;
}

bool kinf_informer_has_synced(struct kinf_informer *informer)
{
    KINF__REFUSE_NULL(NULL, false, informer);
    return atomic_load_explicit(&informer->has_synced, memory_order_acquire);
}

void kinf_informer_status(struct kinf_informer *informer, struct kinf_informer_status *ret_status)
{
    KINF__REFUSE_NULL(NULL, , informer, ret_status);
    *ret_status = (struct kinf_informer_status){
        .n_objects = count_objects(informer),
        .n_queued = kinf_deltafifo_len(informer->fifo),
        .queued_bytes = kinf_deltafifo_bytes(informer->fifo),
        .max_queued_bytes = informer->max_queued_bytes,
        .n_handlers = kinf__processor_count(&informer->processor),
    };
    kinf__mutex_lock(&informer->status_lock);
    derive_locked(informer, ret_status);
    kinf__mutex_unlock(&informer->status_lock);
}

void kinf__informer_last_errors(struct kinf_informer *informer,
                                struct kinf__last_errors *ret_errors)
{
    kinf__mutex_lock(&informer->status_lock);
    *ret_errors = informer->state.last_errors;
    kinf__mutex_unlock(&informer->status_lock);
}

static bool has_quiet_handlers(struct kinf_informer *informer)
{
    KINF__AUTO_FREE struct kinf__handler_report *handlers = NULL;
    size_t n_handlers;

    if (kinf__processor_report(&informer->processor, kinf__clock_now_ms(), &handlers, &n_handlers) <
        0)
        return false; /* no memory */
    for (size_t i = 0; i < n_handlers; i++) {
        if (handlers[i].status.n_waiting != 0 && !handlers[i].is_dispatched)
            return false;
    }
    return true;
}

bool kinf__informer_is_settled(struct kinf_informer *informer, const char *version)
{
    char seen[KINF__RESOURCE_VERSION_SIZE];
    int order;

    if (kinf_informer_resource_version(informer, seen, sizeof seen) < 0 ||
        kinf_rv_compare(seen, version, &order, NULL) < 0 || order < 0)
        return false;
    return kinf__deltafifo_is_idle(informer->fifo) && has_quiet_handlers(informer);
}

/* --- versions --- */

int kinf_informer_resource_version(struct kinf_informer *informer, char *buf, size_t size)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, informer, buf);
    return informer->order == KINF_FIFO_IN_ORDER
               ? kinf_indexer_resource_version(informer->indexer, buf, size)
               : kinf_deltafifo_resource_version(informer->fifo, buf, size);
}

/* By key, the version of a server that went back is unknown for a while. */
static bool is_setback(const char *before, const char *now)
{
    int order;

    if (before[0] == '\0')
        return false;
    return now[0] == '\0' || (kinf_rv_compare(now, before, &order, NULL) == 0 && order < 0);
}

static void look_locked(struct kinf_informer *informer) KINF__REQUIRES(informer->progress_lock)
{
    char now[sizeof informer->seen_rv];

    if (kinf_informer_resource_version(informer, now, sizeof now) < 0)
        return; /* untested: any version fits */
    if (is_setback(informer->seen_rv, now))
        informer->n_setbacks++;
    strcpy(informer->seen_rv, now);
}

/* Who begins to wait counts itself before it looks at the version, and this comes after the version
 * changed: either it is counted here, or it sees the new version. */
void kinf__informer_note_progress(struct kinf_informer *informer)
{
    if (atomic_load(&informer->n_rv_waiters) == 0)
        return;
    kinf__mutex_lock(&informer->progress_lock);
    look_locked(informer);
    kinf__cond_broadcast(&informer->progressed);
    kinf__mutex_unlock(&informer->progress_lock);
}

void kinf__informer_end_progress(struct kinf_informer *informer)
{
    kinf__mutex_lock(&informer->progress_lock);
    informer->has_ended = true;
    kinf__cond_broadcast(&informer->progressed);
    kinf__mutex_unlock(&informer->progress_lock);
}

static bool has_reached_locked(const struct kinf_informer *informer, const char *rv)
    KINF__REQUIRES(informer->progress_lock)
{
    int order;

    return kinf_rv_compare(informer->seen_rv, rv, &order, NULL) == 0 && order >= 0;
}

/* False once the time is over. */
static bool wait_a_while_locked(struct kinf_informer *informer, int64_t deadline_ms)
    KINF__REQUIRES(informer->progress_lock)
{
    int64_t look_ms = informer->client != NULL
                          ? kinf__clock_add_ms(kinf__clock_now_ms(), LOOK_INTERVAL_MS)
                          : deadline_ms;
    bool is_last = look_ms >= deadline_ms;

    return kinf__cond_wait_until(&informer->progressed, &informer->progress_lock,
                                 is_last ? deadline_ms : look_ms) ||
           !is_last;
}

static int wait_locked(struct kinf_informer *informer, const char *rv, int64_t timeout_ms,
                       struct kinf_error *err) KINF__REQUIRES(informer->progress_lock)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms);
    bool in_time = true;
    uint64_t n_setbacks;

    look_locked(informer);
    n_setbacks = informer->n_setbacks;
    for (;; look_locked(informer)) {
        if (informer->n_setbacks != n_setbacks)
            return kinf__error_set(err, KINF_ERR_EXPIRED,
                                   "%s: the server went back to resourceVersion \"%s\"",
                                   informer->type->resource, informer->seen_rv);
        if (has_reached_locked(informer, rv))
            return 0;
        if (informer->has_ended)
            return kinf__error_set(err, KINF_ERR_STOPPED,
                                   "%s: stopped before resourceVersion %s was in",
                                   informer->type->resource, rv);
        if (!in_time)
            return kinf__error_set(
                err, KINF_ERR_TIMEOUT, "%s: resourceVersion %s not seen after %lld ms, but \"%s\"",
                informer->type->resource, rv, (long long)timeout_ms, informer->seen_rv);
        if (informer->client != NULL && kinf__waker_is_set(&informer->client->interrupted))
            return kinf__error_set(err, KINF_ERR_STOPPED, "interrupted");
        in_time = wait_a_while_locked(informer, deadline_ms);
    }
}

int kinf_informer_wait_for_rv(struct kinf_informer *informer, const char *resource_version,
                              int64_t timeout_ms, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer, resource_version);

    int order, rc = kinf_rv_compare(resource_version, resource_version, &order, err);

    if (rc < 0)
        return rc;
    rc = refuse_feeder(informer, err);
    if (rc < 0)
        return rc;
    kinf__mutex_lock(&informer->progress_lock);
    if (atomic_fetch_add(&informer->n_rv_waiters, 1) == 0)
        informer->seen_rv[0] = '\0'; /* nobody looked for a while */
    rc = wait_locked(informer, resource_version, timeout_ms, err);
    atomic_fetch_sub(&informer->n_rv_waiters, 1);
    kinf__mutex_unlock(&informer->progress_lock);
    return rc;
}
