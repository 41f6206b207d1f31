/*
 * Which versions of the server the store has seen, and waiting for one. Neighbours: pop_loop.c and
 * the reflector's proofs say when that may have changed.
 *
 * Invariant: while somebody waits, each version that the processor thread reached is looked at, so
 * that one that goes backwards is seen even if it soon is above the awaited one.
 */
#include "informer/informer.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "informer/callback.h"
#include "rest/client.h"

#define LOOK_INTERVAL_MS 50

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
        return;
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

/* False once the time is over. An interrupt, which may come from a signal handler, cannot wake a
 * condition: it is looked for now and then. */
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
    if (kinf__callback_feeds(informer))
        return kinf__error_set(err, KINF_ERR_STATE,
                               "%s: the store waits for this thread, so it cannot wait for it",
                               informer->type->resource);
    kinf__mutex_lock(&informer->progress_lock);
    if (atomic_fetch_add(&informer->n_rv_waiters, 1) == 0)
        informer->seen_rv[0] = '\0'; /* nobody looked for a while */
    rc = wait_locked(informer, resource_version, timeout_ms, err);
    atomic_fetch_sub(&informer->n_rv_waiters, 1);
    kinf__mutex_unlock(&informer->progress_lock);
    return rc;
}
