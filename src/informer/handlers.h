/*
 * Handlers: the listeners that an informer, or several namespaces as one, has, each with a thread
 * of its own however many processors it listens to, but for the dispatched ones: they share a waker,
 * which is set as long as something is to be told, and whoever dispatches tells it.
 *
 * A handler that is removed from a callback is not waited for: its thread is joined by the next one
 * that ends, or by whoever adds or removes a handler, or by stop; so at most one such thread is left.
 *
 * Threads: any thread.
 */
#ifndef KINF_INFORMER_HANDLERS_H
#define KINF_INFORMER_HANDLERS_H

#include "informer/processor.h"

struct kinf__handlers {
    /* constant after creation */
    const void *owner; /* see informer/callback.h */
    struct kinf__processor *const *processors;
    size_t n_processors;

    struct kinf__mutex lock;
    struct kinf__cond gone; /* one of `leaving` was joined, or a dispatch has ended */
    /* guarded by lock */
    struct kinf__list
        listeners; /* of those that are dispatched, who is to be told next before others */
    struct kinf__list leaving; /* removed, not yet joined */
    struct kinf__list joined;  /* since it was closed; freed with the handlers */
    struct kinf__waker waker;  /* made when it is asked for, or needed; its fd is -1 before */
    bool is_dispatching;
    bool is_started;
    bool is_closed;
};

/* The processors are borrowed, and the array of them; `owner` is what callbacks are marked with. */
void kinf__handlers_init(struct kinf__handlers *handlers, const void *owner,
                         struct kinf__processor *const *processors, size_t n_processors);
/* Closes and joins first. */
void kinf__handlers_release(struct kinf__handlers *handlers);

/* Starts the threads of those who joined before; who joins later is started at once. Errors:
 * KINF_ERR_STATE (it was started or closed before), KINF_ERR_SYSTEM: some may run, close. */
KINF_MUST_CHECK int kinf__handlers_start(struct kinf__handlers *handlers, struct kinf_error *err);

/* Joins each processor with a snapshot, so that nothing falls between it and what is told later.
 * `now_ms` starts the resync period. Errors: KINF_ERR_STOPPED, KINF_ERR_INVALID (no such backlog),
 * KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM; on_done does not run then. */
KINF_MUST_CHECK int kinf__handlers_add(struct kinf__handlers *handlers,
                                       const struct kinf_handler *handler, int64_t now_ms,
                                       kinf_handler_id *ret_id, struct kinf_error *err);
/* Waits until the handler is gone, also when somebody else is removing it; but not when this thread
 * runs a callback. */
void kinf__handlers_remove(struct kinf__handlers *handlers, kinf_handler_id id);

/* Of kinf_informer_fd(). Errors: KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__handlers_fd(struct kinf__handlers *handlers, int *ret_fd,
                                      struct kinf_error *err);
/* kinf_informer_dispatch(). */
KINF_MUST_CHECK int kinf__handlers_dispatch(struct kinf__handlers *handlers, size_t max,
                                            size_t *ret_n_waiting, struct kinf_error *err);

/* Removes every handler and refuses new ones. Does not wait. */
void kinf__handlers_close(struct kinf__handlers *handlers);
/* Waits until the thread of every removed handler has ended, and a dispatch that is under way. What was queued for them is freed with
 * the handlers: that takes longer than a stop may. Not from a callback of theirs. */
void kinf__handlers_join(struct kinf__handlers *handlers);

bool kinf__handlers_has_synced(struct kinf__handlers *handlers, kinf_handler_id id);
/* What waits for it; false, and nothing written: there is no such handler. */
bool kinf__handlers_status(struct kinf__handlers *handlers, kinf_handler_id id, int64_t now_ms,
                           struct kinf_handler_status *ret_status);

/* Whether the structure is sound: those who listen are not removed and those who leave are. */
bool kinf__handlers_check(struct kinf__handlers *handlers);

#endif
