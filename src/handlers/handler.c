/*
 * A handler's life. Neighbours: exec_handler.c is one kind, outbox.c has what is to be told.
 */
#include "handlers/handler.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

bool kinf__handler_is_stopping(struct kinf__handler *handler)
{
    return atomic_load(&handler->is_halted) || kinf__outbox_is_closed(&handler->outbox);
}

static bool may_tell(const struct kinf__handler *handler)
{
    return handler->may_tell == NULL || handler->may_tell(handler->may_tell_ctx);
}

bool kinf__handler_goes_on(struct kinf__handler *handler)
{
    return !kinf__handler_is_stopping(handler) && may_tell(handler);
}

void kinf__handler_note_error(struct kinf__handler *handler, const char *message)
{
    struct kinf__handler_error error = { .at_ms = kinf__clock_now_ms() };

    snprintf(error.message, sizeof error.message, "%s", message);
    atomic_fetch_add(&handler->n_errors, 1);
    kinf__mutex_lock(&handler->lock);
    handler->last_error = error;
    kinf__mutex_unlock(&handler->lock);
}

void kinf__handler_failed(struct kinf__handler *handler, const char *fmt, ...)
{
    char message[KINF_ERROR_MESSAGE_SIZE];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    kinf__handler_note_error(handler, message);
    KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_WARN, "handler failed handler=%s error=%s",
              KINF__QUOTED(handler->name), KINF__QUOTED(message));
}

void kinf__handler_pause(struct kinf__handler *handler, struct kinf__backoff *backoff,
                         int64_t retry_after_ms)
{
    int64_t now_ms = kinf__clock_now_ms();
    int64_t wait_ms =
        kinf__backoff_next(backoff, now_ms, (uint64_t)kinf__clock_now_ns(), retry_after_ms);
    int64_t deadline_ms = kinf__clock_add_ms(now_ms, wait_ms);

    while (wait_ms > 0 && !kinf__handler_is_stopping(handler) &&
           !atomic_exchange(&handler->is_hurried, false)) {
        kinf__waker_wait(&handler->outbox.wake, wait_ms);
        kinf__waker_clear(&handler->outbox.wake);
        wait_ms = kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms);
    }
}

static void *run(void *ctx)
{
    struct kinf__handler *handler = ctx;

    while (!kinf__handler_is_stopping(handler)) {
        if (may_tell(handler))
            handler->kind->attend(handler);
        kinf__handler_pause(handler, &handler->backoff, 0);
    }
    if (handler->kind->end != NULL)
        handler->kind->end(handler);
    kinf__waker_set(&handler->ended);
    return NULL;
}

int kinf__handler_init(struct kinf__handler *handler, const struct kinf__handler_kind *kind,
                       char *name, const struct kinf__outbox_options *options,
                       struct kinf_error *err)
{
    int failed;

    handler->kind = kind;
    handler->name = name;
    handler->stop.fd = handler->ended.fd = -1;
    kinf__backoff_init(&handler->backoff, KINF__HANDLER_BACKOFF_BASE_MS,
                       KINF__HANDLER_BACKOFF_MAX_MS);
    kinf__mutex_init(&handler->lock, KINF__RANK_STATUS);
    failed = kinf__outbox_init(&handler->outbox, options, err);
    if (failed == 0)
        failed = kinf__waker_init(&handler->stop, err);
    if (failed == 0)
        failed = kinf__waker_init(&handler->ended, err);
    return failed == 0 && name == NULL ? kinf__error_no_memory(err) : failed;
}

static void begin_end(struct kinf__handler *handler)
{
    kinf__mutex_lock(&handler->lock);
    if (handler->stop_by_ms == 0)
        handler->stop_by_ms = kinf__clock_add_ms(kinf__clock_now_ms(), handler->kind->patience_ms);
    kinf__waker_set(&handler->stop);
    kinf__mutex_unlock(&handler->lock);
}

/* An interruption is for good: one that comes just now has closed the outbox before it began the end. */
static void revoke_end(struct kinf__handler *handler)
{
    kinf__mutex_lock(&handler->lock);
    handler->stop_by_ms = 0;
    kinf__waker_clear(&handler->stop);
    kinf__mutex_unlock(&handler->lock);
    if (kinf__outbox_is_closed(&handler->outbox))
        begin_end(handler);
}

void kinf__handler_set_term(struct kinf__handler *handler, const char *lease, int64_t term)
{
    handler->lease = lease;
    handler->term = term;
}

int kinf__handler_start(struct kinf__handler *handler, struct kinf_error *err)
{
    int failed;

    if (handler->has_thread)
        return kinf__error_set(err, KINF_ERR_STATE, "the handler runs already");
    revoke_end(handler);
    kinf__waker_clear(&handler->ended);
    atomic_store(&handler->is_halted, false);
    /* It may call a plugin. */
    failed = kinf__thread_start_for_others(&handler->thread, "handler", run, handler, err);
    handler->has_thread = failed == 0;
    return failed;
}

void kinf__handler_hurry(struct kinf__handler *handler)
{
    atomic_store(&handler->is_hurried, true);
    kinf__waker_set(&handler->outbox.wake);
}

/* --- its end --- */

void kinf__handler_halt(struct kinf__handler *handler)
{
    atomic_store(&handler->is_halted, true);
    kinf__waker_set(&handler->outbox.wake);
    begin_end(handler);
}

void kinf__handler_interrupt(struct kinf__handler *handler)
{
    kinf__outbox_close(&handler->outbox);
    begin_end(handler);
}

static bool has_ended(struct kinf__handler *handler)
{
    int64_t stop_by_ms;

    kinf__mutex_lock(&handler->lock);
    stop_by_ms = handler->stop_by_ms;
    kinf__mutex_unlock(&handler->lock);
    return handler->kind->patience_ms == 0 ||
           kinf__waker_wait(&handler->ended, kinf__clock_left_ms(kinf__clock_now_ms(), stop_by_ms));
}

bool kinf__handler_join(struct kinf__handler *handler)
{
    if (!handler->has_thread)
        return true;
    if (!has_ended(handler)) {
        if (!handler->is_left_alone)
            KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_ERROR, "handler does not end handler=%s",
                      KINF__QUOTED(handler->name));
        handler->is_left_alone = true;
        return false;
    }
    pthread_join(handler->thread, NULL);
    handler->has_thread = false;
    return true;
}

bool kinf__handler_stop(struct kinf__handler *handler)
{
    kinf__handler_interrupt(handler);
    return kinf__handler_join(handler);
}

void kinf__handler_free(struct kinf__handler *handler)
{
    if (handler == NULL)
        return;
    if (handler->has_thread && !kinf__handler_stop(handler))
        return;
    handler->kind->release(handler);
    kinf__outbox_release(&handler->outbox);
    kinf__waker_release(&handler->stop);
    kinf__waker_release(&handler->ended);
    kinf__mutex_release(&handler->lock);
    free(handler->name);
    free(handler);
}

void kinf__handler_status(struct kinf__handler *handler, struct kinf__handler_status *ret_status)
{
    ret_status->is_running = atomic_load(&handler->is_running);
    ret_status->n_starts = atomic_load(&handler->n_starts);
    ret_status->n_errors = atomic_load(&handler->n_errors);
    kinf__mutex_lock(&handler->lock);
    ret_status->last_error = handler->last_error;
    kinf__mutex_unlock(&handler->lock);
    kinf__outbox_status(&handler->outbox, &ret_status->outbox);
}
