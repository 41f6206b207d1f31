/*
 * A handler's life. Neighbours: exec_handler.c is one kind, outbox.c has what is to be told.
 */
#include "handlers/handler.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"

#define BACKOFF_BASE_MS 1000
#define BACKOFF_MAX_MS  30000 /* with jitter twice this */

bool kinf__handler_is_stopping(struct kinf__handler *handler)
{
    return kinf__outbox_is_closed(&handler->outbox);
}

static void pause_a_while(struct kinf__handler *handler)
{
    int64_t now_ms = kinf__clock_now_ms();
    int64_t wait_ms =
        kinf__backoff_next(&handler->backoff, now_ms, (uint64_t)kinf__clock_now_ns(), 0);
    int64_t deadline_ms = kinf__clock_add_ms(now_ms, wait_ms);

    while (wait_ms > 0 && !kinf__handler_is_stopping(handler)) {
        kinf__waker_wait(&handler->outbox.wake, wait_ms);
        kinf__waker_clear(&handler->outbox.wake);
        wait_ms = kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms);
    }
}

static void *run(void *ctx)
{
    struct kinf__handler *handler = ctx;

    while (!kinf__handler_is_stopping(handler)) {
        handler->kind->attend(handler);
        pause_a_while(handler);
    }
    return NULL;
}

int kinf__handler_init(struct kinf__handler *handler, const struct kinf__handler_kind *kind,
                       char *name, const struct kinf__outbox_options *options,
                       struct kinf_error *err)
{
    int failed = kinf__outbox_init(&handler->outbox, options, err);

    handler->kind = kind;
    handler->name = name;
    kinf__backoff_init(&handler->backoff, BACKOFF_BASE_MS, BACKOFF_MAX_MS);
    return failed == 0 && name == NULL ? kinf__error_no_memory(err) : failed;
}

int kinf__handler_start(struct kinf__handler *handler, struct kinf_error *err)
{
    int failed = kinf__thread_start(&handler->thread, "handler", run, handler, err);

    handler->has_thread = failed == 0;
    return failed;
}

void kinf__handler_interrupt(struct kinf__handler *handler)
{
    kinf__outbox_close(&handler->outbox);
}

void kinf__handler_stop(struct kinf__handler *handler)
{
    kinf__handler_interrupt(handler);
    if (handler->has_thread)
        pthread_join(handler->thread, NULL);
    handler->has_thread = false;
}

void kinf__handler_free(struct kinf__handler *handler)
{
    if (handler == NULL)
        return;
    if (handler->has_thread)
        kinf__handler_stop(handler);
    handler->kind->release(handler);
    kinf__outbox_release(&handler->outbox);
    free(handler->name);
    free(handler);
}

void kinf__handler_status(struct kinf__handler *handler, struct kinf__handler_status *ret_status)
{
    ret_status->is_running = atomic_load(&handler->is_running);
    ret_status->n_starts = atomic_load(&handler->n_starts);
    ret_status->n_errors = atomic_load(&handler->n_errors);
    kinf__outbox_status(&handler->outbox, &ret_status->outbox);
}
