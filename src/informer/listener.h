/*
 * A listener: one handler with its backlog, told by one processor or by several.
 *
 * It first tells its handler what the stores held when it joined, from a snapshot of each, then
 * what was pushed. A slow handler holds up nobody; what it costs is its own choice (backlog.h). A
 * coalescing backlog merges what the snapshots have still to tell, too: a key that changed meanwhile
 * is told as it is now, and one that went is not told at all.
 *
 * A dispatched one has no thread but a waker, which is set when there is something to tell: whoever
 * owns that has it tell a few at a time.
 *
 * Mirrors: cache.processorListener. Differences: one thread and not two; the initial adds of a late
 * handler are read from a snapshot and not queued; has_synced is a sentinel and not a count.
 * Threads: kinf__listener_run() is its thread's, kinf__listener_tell() one thread's at a time; the
 * rest any thread, but that of one subscription's functions are under its processor's lock.
 */
#ifndef KINF_INFORMER_LISTENER_H
#define KINF_INFORMER_LISTENER_H

#include <pthread.h>
#include <stdatomic.h>

#include <kinformer/informer.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/thread.h"
#include "informer/backlog.h"

struct kinf__listener;
struct kinf__handlers;

/* What ties a listener to one processor. Guarded by that processor's lock, but for `initial`. */
struct kinf__subscription {
    struct kinf__listener *listener;
    struct kinf__list in_processor;
    bool is_syncing; /* told unchanged objects */
    int64_t next_resync_ms;
    uint64_t n_writes; /* that its snapshot has */
    /* of the change that is under way */
    bool hears_unchanged; /* was syncing when it began, so that room is reserved for that */
    size_t n_reserved;    /* notifications that can be pushed */
    /* owned by who tells */
    struct kinf_snapshot *initial; /* until it was told */
};

struct kinf__listener {
    /* constant after creation */
    struct kinf_handler handler;
    kinf_handler_id id;
    struct kinf__handlers *handlers; /* who owns it */
    struct kinf__waker *waker;       /* NULL: it has a thread; else it is dispatched */

    /* guarded by the owner's lock */
    struct kinf__list in_owner;
    pthread_t thread;
    bool has_thread;
    bool is_telling; /* somebody dispatches it */
    bool is_claimed; /* somebody is about to join and free it */
    bool is_done;    /* on_done has run, and joining does not wait */

    struct kinf__mutex lock;
    struct kinf__cond not_empty;
    /* guarded by lock */
    struct kinf__backlog *backlog;
    size_t n_unsynced; /* subscriptions that have not told their initial list */
    bool is_waiting;   /* for kinf__listener_wake() to wake the thread, or to set the waker */

    /* owned by who tells: its thread, or who dispatches it */
    size_t n_initial_told;     /* subscriptions whose snapshot has been told */
    struct kinf_cursor cursor; /* in the snapshot of the next */
    struct kinf__notification batch[KINF__BACKLOG_TAKE]; /* taken from the backlog */
    size_t batch_begin;                                  /* what was told lies before it */
    size_t batch_end;

    /* atomic */
    _Atomic(bool) is_removed;
    _Atomic(bool) has_synced;
    _Atomic(size_t) n_taken;       /* taken from snapshots or backlog, and not yet told */
    _Atomic(uint32_t) taken_since; /* of the oldest of them: the lower half of a time */
    _Atomic(uint64_t) n_told;      /* callbacks that have run, but on_done */

    size_t n_subscriptions;
    struct kinf__subscription subscriptions[];
};

/* With as many subscriptions, to be made by kinf__processor_subscribe(). Errors: KINF_ERR_INVALID
 * (no such backlog), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__listener_new(const struct kinf_handler *handler, size_t n_subscriptions,
                                       int64_t now_ms, struct kinf__listener **ret_listener,
                                       struct kinf_error *err);
/* Nobody pushes any more, and its thread has ended. Frees what waits, which may take a while. */
void kinf__listener_free(struct kinf__listener *listener);

/* Gives the subscription what it tells first; consumed. Before the listener runs. */
void kinf__listener_set_initial(struct kinf__subscription *subscription,
                                struct kinf_snapshot *take_initial);

/* Makes sure that `n` more notifications can be pushed by this subscription. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__listener_reserve(struct kinf__subscription *subscription, size_t n);
/* Gives back what it has reserved and not needed. */
void kinf__listener_unreserve(struct kinf__subscription *subscription);
/* Queues notifications that room was reserved for; the objects gain references. The thread may
 * sleep on until kinf__listener_wake(). */
void kinf__listener_push(struct kinf__subscription *subscription,
                         const struct kinf__notification *notifications, size_t n, int64_t now_ms);
/* Wakes the thread, or sets the waker, if something is queued. */
void kinf__listener_wake(struct kinf__listener *listener);
/* One subscription has told its initial list. Behind the last one's comes the sentinel. */
void kinf__listener_note_synced(struct kinf__listener *listener, int64_t now_ms);

/* From now on no callback begins but on_done; one that is running goes on, and what is queued stays
 * until the listener is freed. */
void kinf__listener_remove(struct kinf__listener *listener);
/* Tells the handler everything until the listener is removed, and then on_done; callbacks are marked
 * with `owner` (informer/callback.h). */
void kinf__listener_run(struct kinf__listener *listener, const void *owner);
/* Of a dispatched one: tells `max` at most of what is there, and returns how many. */
size_t kinf__listener_tell(struct kinf__listener *listener, size_t max, const void *owner);
/* How many are to be told. If none is, kinf__listener_wake() sets the waker when something was pushed; before, it would be set over
 * and over. */
size_t kinf__listener_arm(struct kinf__listener *listener);

/* What waits. */
void kinf__listener_status(struct kinf__listener *listener, int64_t now_ms,
                           struct kinf_handler_status *ret_status);

/* Whether its backlog is sound. */
bool kinf__listener_check(struct kinf__listener *listener);

#endif
