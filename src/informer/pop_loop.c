/*
 * The processor thread: pops deltas, applies them, and does the chores that nobody else has time
 * for. What comes while it sleeps the reflector's thread does in its place. Neighbours:
 * handle_deltas.c for what a delta means, life.c starts and joins it.
 *
 * What cannot be applied for want of memory is tried again and not dropped: the queue fills
 * meanwhile and holds the reflector back, and nobody is told anything that is not in the store.
 */
#include "informer/informer.h"

#include "base/clock.h"
#include "deltafifo/deltafifo.h"
#include "indexer/indexer.h"
#include "informer/callback.h"

#define CHORES_INTERVAL_MS 1000
#define QUIET_INTERVAL_MS  30000 /* if nothing was popped between two */
#define NO_MEMORY_RETRY_MS 100
#define REAPED_AT_ONCE     1000
#define DELTAS_A_WAKE      64

static void log_failure(struct kinf_informer *informer, const struct kinf_deltas *deltas, int rc)
{
    uint64_t n_suppressed;

    if (kinf__log_limit_pass(&informer->apply_failures, kinf__clock_now_ms(), &n_suppressed))
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_ERROR,
                  "store not changed resource=%s delta=%s deltas=%zu error=%s suppressed=%llu",
                  informer->type->resource, kinf_delta_type_to_string(deltas->items[0].type),
                  deltas->n_items, kinf_errc_to_string((enum kinf_errc)rc),
                  (unsigned long long)n_suppressed);
}

/* KINF_ERR_STOPPED if the informer is stopping: then the batch stays, since to give up what a list
 * holds takes longer than a stop may. */
static int handle_together(struct kinf_informer *informer, const struct kinf_deltas *deltas,
                           bool in_initial_list)
{
    int rc;

    while ((rc = kinf__handle_deltas(&informer->target, deltas, in_initial_list,
                                     &informer->batch)) == KINF_ERR_NO_MEMORY) {
        log_failure(informer, deltas, rc);
        kinf__processor_wake(&informer->processor);
        if (!kinf__informer_pause(informer, NO_MEMORY_RETRY_MS))
            return KINF_ERR_STOPPED; /* untested: a stop in the tenth of a second without memory */
    }
    if (!kinf__stop_is_set(&informer->stop))
        kinf__batch_clear(&informer->batch);
    return rc;
}

/* By key, the deltas are states of one object, to be told one after the other. */
static int handle_item(struct kinf_informer *informer, const struct kinf_deltas *deltas,
                       bool in_initial_list)
{
    int rc = 0;

    if (deltas->key == NULL)
        return handle_together(informer, deltas, in_initial_list);
    for (size_t i = 0; i < deltas->n_items && rc == 0; i++) {
        const struct kinf_deltas one = { deltas->key, &deltas->items[i], 1 };

        rc = kinf__stop_is_set(&informer->stop) ? KINF_ERR_STOPPED
                                                : handle_together(informer, &one, in_initial_list);
    }
    return rc;
}

static int handle_deltas(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct kinf_informer *informer = ctx;
    int64_t begun_ns = kinf__clock_now_ns();
    int rc = KINF_ERR_STOPPED;

    if (!kinf__stop_is_set(&informer->stop))
        rc = handle_item(informer, deltas, in_initial_list);
    if (rc < 0) {
        kinf_deltafifo_abort(informer->fifo); /* so that this does not count as processed */
        return rc;
    }
    if (deltas->items[0].type == KINF_DELTA_BOOKMARK)
        kinf__informer_note_bookmark(informer, deltas->items[0].resource_version);
    informer->n_unheard += deltas->n_items;
    kinf__histogram_observe(&informer->processing_latency, kinf__clock_now_ns() - begun_ns);
    return 0;
}

/* Handlers hear of what was applied when nothing more waits, at the latest after a small batch. A
 * transform is user code and may take long, so nobody waits for that. */
static void wake_listeners(struct kinf_informer *informer)
{
    if (informer->target.transform == NULL && informer->n_unheard < DELTAS_A_WAKE &&
        kinf_deltafifo_len(informer->fifo) != 0)
        return;
    informer->n_unheard = 0;
    kinf__processor_wake(&informer->processor);
}

/* Until the first list is in the store there is nothing to say again. */
static void resync(struct kinf_informer *informer, int64_t now_ms)
{
    bool is_drained = kinf_deltafifo_len(informer->fifo) == 0;
    struct kinf_error err = KINF_ERROR_INIT;
    int64_t next_ms;

    if (!atomic_load_explicit(&informer->has_synced, memory_order_acquire))
        return;
    if (kinf__processor_should_resync(&informer->processor, now_ms, is_drained) &&
        kinf_deltafifo_resync(informer->fifo, &err) == KINF_ERR_NO_MEMORY)
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_WARN, /* no memory */
                  "resync cut short resource=%s error=%s", informer->type->resource,
                  KINF__QUOTED(err.message));
    next_ms = kinf__processor_next_resync_ms(&informer->processor);
    informer->is_resynced = next_ms != KINF_FOREVER;
    if (next_ms < informer->next_chores_ms)
        informer->next_chores_ms = next_ms;
}

/* Nobody tells that an old version of the store has been let go of. */
static bool has_chores(const struct kinf_informer *informer)
{
    return informer->is_resynced || kinf__indexer_may_have_garbage(informer->indexer);
}

static void do_chores(struct kinf_informer *informer, int64_t now_ms)
{
    int64_t again_ms =
        kinf__clock_add_ms(now_ms, informer->is_quiet ? QUIET_INTERVAL_MS : CHORES_INTERVAL_MS);

    informer->next_chores_ms = KINF__NEVER_MS;
    resync(informer, now_ms);
    informer->has_garbage = kinf__indexer_reap(informer->indexer, REAPED_AT_ONCE);
    if (has_chores(informer) && again_ms < informer->next_chores_ms)
        informer->next_chores_ms = again_ms;
    informer->is_quiet = true;
}

static void note_popped(struct kinf_informer *informer, int64_t now_ms)
{
    int64_t soon_ms = kinf__clock_add_ms(now_ms, CHORES_INTERVAL_MS);

    informer->is_quiet = false;
    if (informer->next_chores_ms > soon_ms && has_chores(informer))
        informer->next_chores_ms = soon_ms;
}

static int64_t time_to_chores(const struct kinf_informer *informer)
{
    int64_t now_ms = kinf__clock_now_ms();

    if (informer->has_garbage || informer->next_chores_ms <= now_ms)
        return 0;
    return informer->next_chores_ms - now_ms;
}

/* After each item, and when there was none for a while. */
static void tell_progress(struct kinf_informer *informer)
{
    wake_listeners(informer);
    kinf__informer_check_synced(informer);
    kinf__informer_note_progress(informer);
}

void *kinf__pop_loop(void *ctx)
{
    struct kinf_informer *informer = ctx;
    int rc = 0;

    (void)kinf__callback_enter(informer, true);
    while (rc != KINF_ERR_STOPPED) {
        int64_t now_ms;

        informer->sleeps_until_ms = informer->next_chores_ms;
        rc = kinf_deltafifo_pop(informer->fifo, handle_deltas, informer, time_to_chores(informer));
        tell_progress(informer);
        now_ms = kinf__clock_now_ms();
        if (rc != KINF_ERR_TIMEOUT)
            note_popped(informer, now_ms);
        if (rc == KINF_ERR_TIMEOUT || now_ms >= informer->next_chores_ms)
            do_chores(informer, now_ms);
    }
    return NULL;
}

/* The processor sees to chores, and to transforms: user code that may take long. */
void kinf__pop_at_once(struct kinf_informer *informer)
{
    struct kinf__callback_mark before;

    if (informer->target.transform != NULL || !kinf__deltafifo_borrow(informer->fifo))
        return;
    before = kinf__callback_enter(informer, true);
    while (kinf__deltafifo_pop_borrowed(informer->fifo, handle_deltas, informer) == 0)
        tell_progress(informer);
    note_popped(informer, kinf__clock_now_ms());
    kinf__callback_leave(before);
    kinf__deltafifo_give_back(informer->fifo, informer->next_chores_ms < informer->sleeps_until_ms);
}
