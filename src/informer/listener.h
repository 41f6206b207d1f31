/*
 * A listener: one handler with its queue and its thread.
 *
 * It first tells its handler what the store held when it joined, from a snapshot, then what was
 * pushed. The queue is unbounded: a slow handler costs memory and holds up nobody.
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

/* X(enumerator, name) */
#define KINF__NOTIFICATION_TYPES(X)                                                                \
    X(KINF__NOTIFY_ADD, "add")                                                                     \
    X(KINF__NOTIFY_UPDATE, "update")                                                               \
    X(KINF__NOTIFY_DELETE, "delete")                                                               \
    X(KINF__NOTIFY_SYNCED, "synced") /* the sentinel behind the initial list */

enum kinf__notification_type {
#define X(type, name) type,
    KINF__NOTIFICATION_TYPES(X)
#undef X
};

struct kinf__notification {
    enum kinf__notification_type type;
    bool in_initial_list;          /* add */
    bool final_state_unknown;      /* delete */
    const struct kinf_object *old; /* update, else NULL */
    const struct kinf_object *object;
};

/* Calls the callback that a notification is for. */
void kinf__handler_tell(const struct kinf_handler *handler,
                        const struct kinf__notification *notification);

struct kinf__notification_chunk;

struct kinf__listener {
    /* constant after creation */
    struct kinf_handler handler;
    kinf_handler_id id;
    const void *owner; /* see kinf__callback_owner() */

    /* guarded by the owner's lock */
    struct kinf__list in_owner;
    pthread_t thread;
    bool has_thread;
    bool is_claimed;   /* somebody is about to join and free it */
    bool is_syncing;   /* told unchanged objects */
    bool skips_change; /* its snapshot has the change that is under way */
    int64_t next_resync_ms;
    struct kinf__notification_chunk
        *spares; /* empty, and all of one size; a push takes at most one */
    size_t n_spares;
    struct kinf__notification_chunk *sentinel; /* until it is pushed */

    /* owned by the thread */
    struct kinf_snapshot *initial; /* until it was told */

    struct kinf__mutex lock;
    struct kinf__cond not_empty;
    /* guarded by lock */
    struct kinf__notification_chunk *first;
    struct kinf__notification_chunk *last;
    bool is_waiting;

    /* atomic */
    _Atomic(bool) is_removed;
    _Atomic(bool) has_synced;
    _Atomic(bool) is_done; /* on_done has run: joining does not wait */
};

/* The owner whose user code this thread is running; NULL: none. A thread that runs user code marks
 * itself, and puts back what this returned before. */
const void *kinf__callback_owner(void);
void kinf__callback_set_owner(const void *owner);

/* `take_initial` is consumed, on failure too; NULL: none. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__listener_new(const struct kinf_handler *handler, kinf_handler_id id,
                                       const void *owner, struct kinf_snapshot *take_initial,
                                       struct kinf__listener **ret_listener,
                                       struct kinf_error *err);
/* Starts the thread, once. Owner's lock. Errors: KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__listener_start(struct kinf__listener *listener, struct kinf_error *err);

/* Makes sure that the next `n_pushes`, of up to `n_most` notifications each, cannot fail. Owner's
 * lock. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__listener_reserve(struct kinf__listener *listener, size_t n_pushes,
                                           size_t n_most);
/* Queues notifications that room was reserved for; the objects gain references. The thread may
 * sleep on until kinf__listener_wake(). Owner's lock. */
void kinf__listener_push(struct kinf__listener *listener,
                         const struct kinf__notification *notifications, size_t n_notifications);
/* Wakes the thread if something is queued. Owner's lock. */
void kinf__listener_wake(struct kinf__listener *listener);
/* Queues the sentinel, the first time, and wakes the thread. Needs no reserve. Owner's lock. */
void kinf__listener_push_synced(struct kinf__listener *listener);

/* From now on no callback begins but on_done; one that is running goes on. Any thread. */
void kinf__listener_remove(struct kinf__listener *listener);
/* Waits until the removed listener's thread has ended and joins it; of one without a thread it runs
 * on_done here. No lock may be held. */
void kinf__listener_finish(struct kinf__listener *listener);
/* One that is finished, or was never started and shall not hear of it. NULL is allowed. */
void kinf__listener_free(struct kinf__listener *listener);

/* Whether the queue is sound: chunks are filled in order and none is empty, the last one is last,
 * notifications have the objects of their type. Takes the listener's lock; owner's lock. */
bool kinf__listener_check(struct kinf__listener *listener);

#endif
