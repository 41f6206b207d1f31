/*
 * A funnel: one handler told by several listeners, on a thread of its own.
 *
 * Each of several informers has a listener whose callbacks put what they are told into the funnel;
 * the funnel's thread takes it out and calls the user's handler. It has room for a few
 * notifications and then holds the listeners back, so it needs no memory while it runs, and what
 * waits does so in the listeners' queues, under their rules.
 *
 * Owner: the several-namespaces informer. Threads: as each function says.
 */
#ifndef KINF_INFORMER_FUNNEL_H
#define KINF_INFORMER_FUNNEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "informer/listener.h"

#define KINF__FUNNEL_LEN 128

struct kinf__funnel {
    /* constant after creation */
    struct kinf_handler handler;
    const void *owner; /* see informer/callback.h */

    /* owned by who starts and finishes */
    pthread_t thread;
    bool has_thread;

    /* owned by the thread */
    size_t n_unsynced; /* inputs that have not told their initial list */

    struct kinf__mutex lock;
    struct kinf__cond not_empty;
    struct kinf__cond not_full;
    /* guarded by lock; a ring, with references */
    struct kinf__notification items[KINF__FUNNEL_LEN];
    size_t first;
    size_t n_items;

    /* atomic */
    _Atomic(bool) is_removed; /* set with the lock held */
    _Atomic(bool) has_synced;
    _Atomic(bool) is_done; /* on_done has run: joining does not wait */
};

/* `handler` is copied; `n_inputs` listeners will put. Any thread. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__funnel_new(const struct kinf_handler *handler, size_t n_inputs,
                                     const void *owner, struct kinf__funnel **ret_funnel,
                                     struct kinf_error *err);
/* The handler to add to each of the informers. It must be gone from all before the funnel is freed.
 */
struct kinf_handler kinf__funnel_input(struct kinf__funnel *funnel);
/* Starts the thread, once. Errors: KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__funnel_start(struct kinf__funnel *funnel, struct kinf_error *err);

/* From now on no callback begins but on_done, one that is running goes on; and nobody is held back.
 * Any thread. */
void kinf__funnel_remove(struct kinf__funnel *funnel);
/* Waits until the removed funnel's thread has ended and joins it; of one without a thread it runs
 * on_done here. No lock may be held. */
void kinf__funnel_finish(struct kinf__funnel *funnel);
/* One that is finished, or was never started and shall not hear of it. NULL is allowed. */
void kinf__funnel_free(struct kinf__funnel *funnel);

#endif
