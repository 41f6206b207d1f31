/*
 * A handler of any kind: a thread that tells a consumer what the outbox has, and begins anew when that
 * failed, after 1 to 60 seconds, twice as long each time unless it went well for two minutes.
 *
 * A kind (exec_handler.h, webhook_handler.h) has a struct that begins with this one.
 *
 * Threads: any, but for new and free; one owner at a time starts, halts and joins it, whoever interrupts
 * it meanwhile.
 */
#ifndef KINF_HANDLERS_HANDLER_H
#define KINF_HANDLERS_HANDLER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <kinformer/error.h>

#include "base/compiler.h"
#include "handlers/outbox.h"
#include "reflector/backoff.h"

struct kinf__handler;

struct kinf__handler_kind {
    /* Tells one consumer, from kinf__outbox_reset() on, until it fails, which is logged here, or
     * kinf__handler_goes_on() is false. On the handler's thread. */
    void (*attend)(struct kinf__handler *handler);
    /* Releases what the kind has. The thread has ended, or never ran. */
    void (*release)(struct kinf__handler *handler);
    const char *name; /* "exec" */
    /* Ends what it tells. On the handler's thread, which ends then. NULL: there is nothing to end. */
    void (*end)(struct kinf__handler *handler);
    /* Who does not end within this time from the interruption is left alone; 0: it always ends. */
    int64_t patience_ms;
};

struct kinf__handler_error {
    char message[KINF_ERROR_MESSAGE_SIZE]; /* "": there was none */
    int64_t at_ms;
};

struct kinf__handler {
    /* constant */
    const struct kinf__handler_kind *kind;
    char *name; /* for people */
    struct kinf__outbox outbox;
    struct kinf__waker stop;  /* set when it is to stop; changes under the lock */
    struct kinf__waker ended; /* set by the thread */
    /* constant after the first start, the owner's to set */
    bool (*may_tell)(void *ctx); /* NULL: always; on the handler's thread */
    void *may_tell_ctx;
    /* the owner's */
    const char *lease; /* borrowed; NULL: there is none */
    int64_t term;      /* of it */
    pthread_t thread;
    bool has_thread;
    bool is_left_alone;
    /* the thread's */
    struct kinf__backoff backoff;
    /* atomic */
    _Atomic(bool) is_hurried;
    _Atomic(bool) is_halted;
    /* the kind's to set */
    _Atomic(bool) is_running; /* the consumer is there */
    _Atomic(uint64_t) n_starts;
    _Atomic(uint64_t) n_errors;
    struct kinf__mutex lock;
    /* guarded by lock */
    int64_t stop_by_ms; /* 0: it is not to stop yet */
    struct kinf__handler_error last_error;
};

/* For kinds. `handler` begins an allocation of its kind, which is zero otherwise; it is freed by
 * kinf__handler_free(), on failure too. `name` is taken over; NULL is KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__handler_init(struct kinf__handler *handler,
                                       const struct kinf__handler_kind *kind, char *name,
                                       const struct kinf__outbox_options *options,
                                       struct kinf_error *err);
/* For the owner, behind a kind's new. Starts the thread, also when it was halted. Errors:
 * KINF_ERR_STATE (it runs), KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__handler_start(struct kinf__handler *handler, struct kinf_error *err);
/* In front of a start: by which Lease, and in which term of it, it is told, for who can refuse what an
 * earlier one had on its way. */
void kinf__handler_set_term(struct kinf__handler *handler, const char *lease, int64_t term);
/* Begins its end, which is not for good: what it is to be told waits until it is started again. */
void kinf__handler_halt(struct kinf__handler *handler);
bool kinf__handler_is_stopping(struct kinf__handler *handler);
/* Asked in front of everything that is told: a term of a Lease ends by the clock, and whoever would halt
 * the handler then may be late, if this whole process was halted, say. */
bool kinf__handler_goes_on(struct kinf__handler *handler);
/* Ends the pause before the next attempt, now or when it begins. Any thread. */
void kinf__handler_hurry(struct kinf__handler *handler);
/* What went wrong, in words for people: kept for the status and counted; the second is also logged. */
void kinf__handler_note_error(struct kinf__handler *handler, const char *message);
void kinf__handler_failed(struct kinf__handler *handler, const char *fmt, ...) KINF_PRINTF(2, 3);
/* Until it may be tried again, or the handler is to stop. `retry_after_ms` is the least, 0: none. */
void kinf__handler_pause(struct kinf__handler *handler, struct kinf__backoff *backoff,
                         int64_t retry_after_ms);

#define KINF__HANDLER_BACKOFF_BASE_MS 1000
#define KINF__HANDLER_BACKOFF_MAX_MS  30000 /* with jitter twice this */

/* Begins its end for good, and waits for nothing. */
void kinf__handler_interrupt(struct kinf__handler *handler);
/* Waits until it has ended: three seconds at most, and a bit. Returns false if it did not: its thread
 * is in a call that does not return, which is said by name. */
bool kinf__handler_join(struct kinf__handler *handler);
/* Interrupts it, and joins. */
bool kinf__handler_stop(struct kinf__handler *handler);
/* After its feeds. Stops it, if need be. What did not end is left as it is. NULL is allowed. */
void kinf__handler_free(struct kinf__handler *handler);

struct kinf__handler_status {
    bool is_running;
    uint64_t n_starts; /* attempts */
    uint64_t n_errors;
    struct kinf__handler_error last_error;
    struct kinf__outbox_status outbox;
};
void kinf__handler_status(struct kinf__handler *handler, struct kinf__handler_status *ret_status);

#endif
