/*
 * A listener: one handler with its queue and its thread.
 *
 * It first tells its handler what the store held when it joined, from a snapshot, then what was
 * pushed. A slow handler holds up nobody; what it costs is its own choice: a queue without a bound
 * (chain.h), or one in which the notifications of a key merge (coalescer.h). The second merges what
 * the snapshot has still to tell, too: a key that changed meanwhile is told as it is now, and one
 * that went is not told at all.
 *
 * Mirrors: cache.processorListener. Differences: one thread and not two; the initial adds of a late
 * handler are read from a snapshot and not queued; has_synced is a sentinel and not a count.
 * Threads: each function says which lock of its owner (the processor) it needs.
 */
#ifndef KINF_INFORMER_LISTENER_H
#define KINF_INFORMER_LISTENER_H

#include <pthread.h>
#include <stdatomic.h>

#include <kinformer/informer.h>

#include "base/list.h"
#include "base/lock.h"
#include "informer/chain.h"
#include "informer/coalescer.h"
#include "informer/notification.h"

/* Calls the callback that a notification is for. */
void kinf__handler_tell(const struct kinf_handler *handler,
                        const struct kinf__notification *notification);

struct kinf__listener {
    /* constant after creation */
    struct kinf_handler handler;
    kinf_handler_id id;
    const void *owner; /* see informer/callback.h */

    /* guarded by the owner's lock */
    struct kinf__list in_owner;
    pthread_t thread;
    bool has_thread;
    bool is_claimed; /* somebody is about to join and free it */
    bool is_syncing; /* told unchanged objects */
    /* of the change that is under way */
    bool skips_change;    /* its snapshot has it */
    bool hears_unchanged; /* was syncing when it began, so that room is reserved for that */
    int64_t next_resync_ms;

    /* owned by the thread */
    struct kinf_snapshot *initial; /* until it was told */
    struct kinf__chunk *taken;     /* of the chain, and not yet told */

    struct kinf__mutex lock;
    struct kinf__cond not_empty;
    /* guarded by lock; of the queues the one that handler.backlog names. What a push may need is
     * reserved under the owner's lock, which alone guards the spares. */
    struct kinf__chain chain;
    struct kinf__coalescer coalescer;
    bool is_waiting;

    /* atomic */
    _Atomic(bool) is_removed;
    _Atomic(bool) has_synced;
    _Atomic(bool) is_done;         /* on_done has run: joining does not wait */
    _Atomic(size_t) n_taken;       /* taken from snapshot or queue, and not yet told */
    _Atomic(uint32_t) taken_since; /* of the oldest of them: the lower half of a time */
    _Atomic(uint64_t) n_told;      /* callbacks that have run, but on_done */
};

/* `take_initial` is consumed, on failure too; NULL: none. Errors: KINF_ERR_INVALID (no such
 * backlog), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__listener_new(const struct kinf_handler *handler, kinf_handler_id id,
                                       const void *owner, struct kinf_snapshot *take_initial,
                                       int64_t now_ms, struct kinf__listener **ret_listener,
                                       struct kinf_error *err);
/* Starts the thread, once. Owner's lock. Errors: KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__listener_start(struct kinf__listener *listener, struct kinf_error *err);

/* Makes sure that the next `n_pushes`, of up to `n_most` notifications each, cannot fail. Owner's
 * lock. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__listener_reserve(struct kinf__listener *listener, size_t n_pushes,
                                           size_t n_most);
/* Gives back what was reserved and not needed. Owner's lock. */
void kinf__listener_trim(struct kinf__listener *listener);
/* Queues notifications that room was reserved for; the objects gain references. The thread may
 * sleep on until kinf__listener_wake(). Owner's lock. */
void kinf__listener_push(struct kinf__listener *listener,
                         const struct kinf__notification *notifications, size_t n_notifications,
                         int64_t now_ms);
/* Wakes the thread if something is queued. Owner's lock. */
void kinf__listener_wake(struct kinf__listener *listener);
/* Queues the sentinel, the first time, and wakes the thread. Needs no reserve. Owner's lock. */
void kinf__listener_push_synced(struct kinf__listener *listener, int64_t now_ms);

/* From now on no callback begins but on_done; one that is running goes on, and what is queued stays
 * until the listener is freed: that may take a while. Any thread. */
void kinf__listener_remove(struct kinf__listener *listener);
/* Waits until the removed listener's thread has ended and joins it; of one without a thread it runs
 * on_done here. No lock may be held. */
void kinf__listener_finish(struct kinf__listener *listener);
/* One that is finished, or was never started and shall not hear of it. NULL is allowed. */
void kinf__listener_free(struct kinf__listener *listener);

/* What waits. Owner's lock. */
void kinf__listener_status(struct kinf__listener *listener, int64_t now_ms,
                           struct kinf_handler_status *ret_status);

/* Whether its queue is sound. Takes the listener's lock; owner's lock. */
bool kinf__listener_check(struct kinf__listener *listener);

#endif
