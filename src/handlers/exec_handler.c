/*
 * The thread that starts a handler's program, tells it what the outbox has, and starts it again.
 * Neighbours: child.c has the process, outbox.c what it is to be told.
 */
#include "handlers/exec_handler.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "handlers/child.h"
#include "handlers/line.h"
#include "handlers/outbox.h"
#include "json/scan.h"
#include "reflector/backoff.h"

#define BATCH_BYTES      65536 /* composed ahead of the pipe */
#define BACKOFF_BASE_MS  1000
#define BACKOFF_MAX_MS   30000 /* with jitter twice this */
#define NO_MEMORY_MS     100
#define LOG_LINES_MAX    100
#define LOG_INTERVAL_MS  10000
#define ACKNOWLEDGE_DEEP 10

struct kinf__exec_handler {
    /* constant */
    char **args;
    size_t n_args;
    char *name;
    pthread_t thread;
    struct kinf__outbox outbox;
    /* the thread's */
    struct kinf__child child;
    struct kinf__buffer lines; /* what it is being sent, from `at` on */
    size_t at;
    struct kinf__backoff backoff;
    int64_t log_until_ms; /* the interval of which n_logged lines were written */
    unsigned n_logged;
    /* the owner's */
    bool has_thread;
    /* atomic */
    _Atomic(bool) is_running;
    _Atomic(uint64_t) n_starts;
    _Atomic(uint64_t) n_bad_lines;
};

static bool is_stopping(struct kinf__exec_handler *handler)
{
    return kinf__outbox_is_closed(&handler->outbox);
}

/* --- what it says --- */

static void log_said(struct kinf__exec_handler *handler, const char *what, const char *line)
{
    int64_t now_ms = kinf__clock_now_ms();

    if (now_ms >= handler->log_until_ms) {
        handler->log_until_ms = kinf__clock_add_ms(now_ms, LOG_INTERVAL_MS);
        handler->n_logged = 0;
    }
    if (handler->n_logged++ < LOG_LINES_MAX)
        KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_INFO, "%s handler=%s line=%s%s", what,
                  KINF__QUOTED(handler->name), KINF__QUOTED(line),
                  handler->n_logged == LOG_LINES_MAX ? " (more is not shown for a while)" : "");
}

static void on_said(const char *line, void *ctx)
{
    log_said(ctx, "said", line);
}

/* {"ack":7}, whatever else is in it. */
static bool read_acknowledgement(const char *line, uint64_t *ret_sequence)
{
    struct kinf_str text = kinf_str_from(line);
    struct kinf__json_value value;
    size_t len;
    char *end;

    if (kinf__json_scan_all(text, ACKNOWLEDGE_DEEP, &len) < 0 ||
        !kinf__json_member(kinf__json_value_of(text), KINF_STR("ack"), &value) ||
        value.type != KINF__JSON_NUMBER || *value.raw.bytes == '-')
        return false;
    errno = 0;
    *ret_sequence = strtoull(value.raw.bytes, &end, 10);
    return errno == 0 && end == value.raw.bytes + value.raw.len;
}

static void on_acknowledged(const char *line, void *ctx)
{
    struct kinf__exec_handler *handler = ctx;
    uint64_t sequence;

    if (read_acknowledgement(line, &sequence) &&
        kinf__outbox_acknowledge(&handler->outbox, sequence))
        return;
    atomic_fetch_add(&handler->n_bad_lines, 1);
    log_said(handler, "no acknowledgement", line);
}

/* --- what it is told --- */

static bool has_lines(const struct kinf__exec_handler *handler)
{
    return handler->at != handler->lines.len;
}

static int append_line(const struct kinf_change *change, void *ctx)
{
    return kinf__line_append(ctx, change, KINF__LINE_OBJECT);
}

/* Returns false if that has to be tried again for want of memory. */
static bool compose(struct kinf__exec_handler *handler)
{
    int n = 1;

    if (has_lines(handler))
        return true;
    handler->at = handler->lines.len = 0;
    if (handler->lines.size > 2 * BATCH_BYTES) /* for a large object */
        kinf__buffer_release(&handler->lines);
    while (handler->lines.len < BATCH_BYTES && n > 0)
        n = kinf__outbox_next(&handler->outbox, append_line, &handler->lines);
    return n >= 0 || has_lines(handler);
}

static void write_lines(struct kinf__exec_handler *handler)
{
    handler->at += kinf__child_write(&handler->child, handler->lines.bytes + handler->at,
                                     handler->lines.len - handler->at);
}

/* Lines that it has not begun to read are not sent. */
static void keep_begun_line(struct kinf__exec_handler *handler)
{
    struct kinf__buffer *lines = &handler->lines;
    const char *end;

    if (!has_lines(handler))
        return;
    end =
        handler->at == 0 || lines->bytes[handler->at - 1] == '\n'
            ? lines->bytes + handler->at
            : (const char *)memchr(lines->bytes + handler->at, '\n', lines->len - handler->at) + 1;
    lines->len = (size_t)(end - lines->bytes);
}

static void finish_line(struct kinf__exec_handler *handler)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), KINF__CHILD_GRACE_MS), left_ms;

    keep_begun_line(handler);
    while (has_lines(handler) && !kinf__child_is_deaf(&handler->child) &&
           !kinf__child_has_ended(&handler->child) &&
           (left_ms = kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms)) > 0) {
        kinf__child_poll(&handler->child, true, -1, left_ms);
        write_lines(handler);
    }
}

/* --- its life --- */

/* Why it does not go on; NULL: it does. */
static const char *trouble(const struct kinf__exec_handler *handler)
{
    const struct kinf__child *child = &handler->child;

    if (kinf__child_has_ended(child))
        return "ended";
    if (kinf__child_is_deaf(child))
        return "closed its standard input";
    if (handler->outbox.options.acknowledges && child->watched[KINF__CHILD_OUT].fd < 0)
        return "closed its standard output";
    return NULL;
}

/* Composes and writes. Returns how long to wait for news then: not at all behind the last line of a batch,
 * since more may wait. */
static int64_t tell(struct kinf__exec_handler *handler)
{
    bool is_composed = compose(handler), had_lines = has_lines(handler);

    if (had_lines)
        write_lines(handler);
    if (had_lines && !has_lines(handler))
        return 0;
    return is_composed ? INT64_MAX : NO_MEMORY_MS;
}

/* Returns NULL if it is to stop. */
static const char *attend(struct kinf__exec_handler *handler)
{
    const char *why = NULL;

    while (why == NULL && !is_stopping(handler)) {
        int64_t wait_ms = tell(handler);

        kinf__child_poll(&handler->child, has_lines(handler), handler->outbox.wake.fd, wait_ms);
        kinf__waker_clear(&handler->outbox.wake);
        why = trouble(handler);
    }
    return is_stopping(handler) ? NULL : why;
}

static void tell_end(const struct kinf__exec_handler *handler, const char *why, int status)
{
    KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_WARN, "handler %s handler=%s %s=%d", why,
              KINF__QUOTED(handler->name), WIFSIGNALED(status) ? "signal" : "exit_code",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void run_once(struct kinf__exec_handler *handler)
{
    const char *why;
    int status;
    int failed = kinf__child_start(&handler->child, handler->args);

    atomic_fetch_add(&handler->n_starts, 1);
    if (failed != 0) {
        KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_WARN, "handler cannot be run handler=%s error=%s",
                  KINF__QUOTED(handler->name), KINF__QUOTED(strerrordesc_np(failed)));
        return;
    }
    atomic_store(&handler->is_running, true);
    handler->at = handler->lines.len = 0;
    kinf__outbox_reset(&handler->outbox);
    why = attend(handler);
    finish_line(handler);
    status = kinf__child_end(&handler->child);
    atomic_store(&handler->is_running, false);
    if (why != NULL)
        tell_end(handler, why, status);
}

static void pause_a_while(struct kinf__exec_handler *handler)
{
    int64_t now_ms = kinf__clock_now_ms();
    int64_t wait_ms =
        kinf__backoff_next(&handler->backoff, now_ms, (uint64_t)kinf__clock_now_ns(), 0);
    int64_t deadline_ms = kinf__clock_add_ms(now_ms, wait_ms);

    while (wait_ms > 0 && !is_stopping(handler)) {
        kinf__waker_wait(&handler->outbox.wake, wait_ms);
        kinf__waker_clear(&handler->outbox.wake);
        wait_ms = kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms);
    }
}

static void *run(void *ctx)
{
    struct kinf__exec_handler *handler = ctx;

    while (!is_stopping(handler)) {
        run_once(handler);
        pause_a_while(handler);
    }
    return NULL;
}

/* --- what the header promises --- */

static int copy_args(struct kinf__exec_handler *handler, char *const *args, size_t n_args)
{
    KINF__AUTO_BUFFER name = KINF__BUFFER_INIT;

    handler->args = calloc(n_args + 1, sizeof(char *));
    if (handler->args == NULL)
        return KINF_ERR_NO_MEMORY;
    for (; handler->n_args < n_args; handler->n_args++) {
        handler->args[handler->n_args] = strdup(args[handler->n_args]);
        if (handler->args[handler->n_args] == NULL ||
            kinf__buffer_printf(&name, "%s%s", handler->n_args == 0 ? "" : " ",
                                args[handler->n_args]) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return kinf__buffer_take_text(&name, &handler->name, NULL);
}

int kinf__exec_handler_new(char *const *args, size_t n_args, bool acknowledges,
                           struct kinf__exec_handler **ret_handler, struct kinf_error *err)
{
    struct kinf__exec_handler *handler = calloc(1, sizeof *handler);
    int failed;

    if (handler == NULL)
        return kinf__error_no_memory(err);
    handler->child.ctx = handler;
    handler->child.err.on_line = on_said;
    handler->child.out.on_line = acknowledges ? on_acknowledged : on_said;
    kinf__backoff_init(&handler->backoff, BACKOFF_BASE_MS, BACKOFF_MAX_MS);
    failed = kinf__outbox_init(&handler->outbox,
                               &(struct kinf__outbox_options){ .acknowledges = acknowledges }, err);
    if (failed == 0 && copy_args(handler, args, n_args) < 0)
        failed = kinf__error_no_memory(err);
    if (failed == 0)
        failed = kinf__thread_start(&handler->thread, "handler", run, handler, err);
    handler->has_thread = failed == 0;
    if (failed < 0) {
        kinf__exec_handler_free(handler);
        return failed;
    }
    *ret_handler = handler;
    return 0;
}

void kinf__exec_handler_interrupt(struct kinf__exec_handler *handler)
{
    kinf__outbox_close(&handler->outbox);
}

void kinf__exec_handler_stop(struct kinf__exec_handler *handler)
{
    kinf__exec_handler_interrupt(handler);
    if (handler->has_thread)
        pthread_join(handler->thread, NULL);
    handler->has_thread = false;
}

void kinf__exec_handler_free(struct kinf__exec_handler *handler)
{
    if (handler == NULL)
        return;
    if (handler->has_thread)
        kinf__exec_handler_stop(handler);
    kinf__outbox_release(&handler->outbox);
    kinf__buffer_release(&handler->lines);
    for (size_t i = 0; handler->args != NULL && i <= handler->n_args; i++)
        free(handler->args[i]);
    free(handler->args);
    free(handler->name);
    free(handler);
}

struct kinf__outbox *kinf__exec_handler_outbox(struct kinf__exec_handler *handler)
{
    return &handler->outbox;
}

const char *kinf__exec_handler_name(const struct kinf__exec_handler *handler)
{
    return handler->name;
}

void kinf__exec_handler_status(struct kinf__exec_handler *handler,
                               struct kinf__exec_handler_status *ret_status)
{
    ret_status->is_running = atomic_load(&handler->is_running);
    ret_status->n_starts = atomic_load(&handler->n_starts);
    ret_status->n_bad_lines = atomic_load(&handler->n_bad_lines);
}
