/*
 * The processor: what one informer tells, and to whom.
 *
 * A change of the store is announced (begin), made, and told (distribute). The store is changed without
 * a lock, since index functions are user code; who subscribes in between has a snapshot with the
 * change, or with as many writes as when it began, and only in the second case is told of it.
 *
 * Mirrors: cache.sharedProcessor.
 * Threads: any thread; begin, distribute and cancel on the one that pops (informer.h).
 */
#ifndef KINF_INFORMER_PROCESSOR_H
#define KINF_INFORMER_PROCESSOR_H

#include <kinformer/informer.h>

#include "base/stop.h"
#include "informer/listener.h"

struct kinf__batch;

/* Handlers' resync periods below this are raised to it. */
#define KINF__RESYNC_MIN_MS 1000

struct kinf__processor {
    /* constant after creation */
    struct kinf_indexer *indexer;

    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list subscriptions;
    size_t n_subscriptions;
    bool has_synced;
    const struct kinf__batch *changing; /* under way; NULL: none */
    uint64_t n_writes;                  /* of the store, before the last change */
};

struct kinf__handler_report {
    kinf_handler_id id;
    bool is_dispatched;
    struct kinf_handler_status status;
};

/* `indexer` is borrowed. */
void kinf__processor_init(struct kinf__processor *processor, struct kinf_indexer *indexer);
/* Nobody subscribes any more. */
void kinf__processor_release(struct kinf__processor *processor);

/* --- who is told --- */

/* Gives the subscription a snapshot, so that nothing falls between it and what is told later.
 * `now_ms` starts the resync period. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__processor_subscribe(struct kinf__processor *processor,
                                              struct kinf__subscription *subscription,
                                              int64_t now_ms, struct kinf_error *err);
/* From now on nothing is pushed. One that has not subscribed is allowed. */
void kinf__processor_unsubscribe(struct kinf__processor *processor,
                                 struct kinf__subscription *subscription);

size_t kinf__processor_count(struct kinf__processor *processor);
/* What waits for all of them; the caller frees it. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__processor_report(struct kinf__processor *processor, int64_t now_ms,
                                           struct kinf__handler_report **ret_handlers,
                                           size_t *ret_n_handlers);

/* --- distribution --- */

/* The store is about to change. Makes sure that everybody can be told what is in the batch, which
 * stays as it is until distribute or cancel. Errors: KINF_ERR_NO_MEMORY, nothing is under way. */
KINF_MUST_CHECK int kinf__processor_begin(struct kinf__processor *processor,
                                          const struct kinf__batch *batch);
/* It has changed: queues what is told for everybody. Who sleeps is told at
 * kinf__processor_wake(). The lock is held for 1,000 notifications at a time: who joins or leaves,
 * or asks for the status, never waits for a whole list, and who joins in between has the change in
 * its snapshot. Errors: KINF_ERR_STOPPED (`stop`, which may be NULL, was set): the rest is not told
 * to anybody. */
KINF_MUST_CHECK int kinf__processor_distribute(struct kinf__processor *processor,
                                               const struct kinf__batch *batch,
                                               const struct kinf__stop *stop);
/* It has not. */
void kinf__processor_cancel(struct kinf__processor *processor);

/* Wakes the listeners that have something to tell: after a batch of changes, since a wake-up costs
 * more than a change. */
void kinf__processor_wake(struct kinf__processor *processor);

/* The initial list has been told: puts the sentinel behind it, once. Any thread. */
void kinf__processor_set_synced(struct kinf__processor *processor);

/* --- resync: nothing here reads a clock --- */

/* When the next listener is due; KINF_FOREVER: none. Mirrors: ResyncPeriod. */
int64_t kinf__processor_next_resync_ms(struct kinf__processor *processor);
/* Whether any is due. Those that are become syncing, and due again one period after `now_ms`. Those
 * that are not stop being syncing, but only once what the last resync queued `is_drained`: another
 * one's resync must not cut it short. Mirrors: sharedProcessor.shouldResync. */
bool kinf__processor_should_resync(struct kinf__processor *processor, int64_t now_ms,
                                   bool is_drained);

/* Whether the structure is sound: the number is right, each backlog is. */
bool kinf__processor_check(struct kinf__processor *processor);

#endif
