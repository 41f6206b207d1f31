/*
 * Starting a handler's program, and telling it what the outbox has. Neighbours: handler.c starts it
 * again, child.c has the process, outbox.c what it is to be told.
 */
#include "handlers/exec_handler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "handlers/child.h"
#include "handlers/line.h"
#include "json/scan.h"

#define BATCH_BYTES      65536 /* composed ahead of the pipe */
#define NO_MEMORY_MS     100
#define LOG_LINES_MAX    100
#define LOG_INTERVAL_MS  10000
#define ACKNOWLEDGE_DEEP 10

struct exec_handler {
    struct kinf__handler base;
    /* constant */
    char **args;
    size_t n_args;
    /* the thread's */
    struct kinf__child child;
    struct kinf__buffer lines; /* what it is being sent, from `at` on */
    size_t at;
    int64_t log_until_ms; /* the interval of which n_logged lines were written */
    unsigned n_logged;
};

/* --- what it says --- */

static void log_said(struct exec_handler *handler, const char *what, const char *line)
{
    int64_t now_ms = kinf__clock_now_ms();

    if (now_ms >= handler->log_until_ms) {
        handler->log_until_ms = kinf__clock_add_ms(now_ms, LOG_INTERVAL_MS);
        handler->n_logged = 0;
    }
    if (handler->n_logged++ < LOG_LINES_MAX)
        KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_INFO, "%s handler=%s line=%s%s", what,
                  KINF__QUOTED(handler->base.name), KINF__QUOTED(line),
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
    struct exec_handler *handler = ctx;
    uint64_t sequence;

    if (read_acknowledgement(line, &sequence) &&
        kinf__outbox_acknowledge(&handler->base.outbox, sequence))
        return;
    kinf__handler_note_error(&handler->base, "a line is no acknowledgement");
    log_said(handler, "no acknowledgement", line);
}

/* --- what it is told --- */

static bool has_lines(const struct exec_handler *handler)
{
    return handler->at != handler->lines.len;
}

static int append_line(const struct kinf_change *change, void *ctx)
{
    return kinf__line_append(ctx, change, KINF__LINE_OBJECT);
}

/* Returns false if that has to be tried again for want of memory. */
static bool compose(struct exec_handler *handler)
{
    int n = 1;

    if (has_lines(handler))
        return true;
    handler->at = handler->lines.len = 0;
    if (handler->lines.size > 2 * BATCH_BYTES) /* for a large object */
        kinf__buffer_release(&handler->lines);
    while (handler->lines.len < BATCH_BYTES && n > 0)
        n = kinf__outbox_next(&handler->base.outbox, append_line, &handler->lines);
    return n >= 0 || has_lines(handler);
}

static void write_lines(struct exec_handler *handler)
{
    handler->at += kinf__child_write(&handler->child, handler->lines.bytes + handler->at,
                                     handler->lines.len - handler->at);
}

/* Lines that it has not begun to read are not sent. */
static void keep_begun_line(struct exec_handler *handler)
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

static void finish_line(struct exec_handler *handler)
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
static const char *trouble(const struct exec_handler *handler)
{
    const struct kinf__child *child = &handler->child;

    if (kinf__child_has_ended(child))
        return "ended";
    if (kinf__child_is_deaf(child))
        return "closed its standard input";
    if (handler->base.outbox.options.acknowledges && child->watched[KINF__CHILD_OUT].fd < 0)
        return "closed its standard output";
    return NULL;
}

/* Composes and writes. Returns how long to wait for news then: not at all behind the last line of a batch,
 * since more may wait. */
static int64_t tell(struct exec_handler *handler)
{
    bool is_composed = compose(handler), had_lines = has_lines(handler);

    if (had_lines)
        write_lines(handler);
    if (had_lines && !has_lines(handler))
        return 0;
    return is_composed ? INT64_MAX : NO_MEMORY_MS;
}

/* Returns NULL if it is not to go on. */
static const char *attend(struct exec_handler *handler)
{
    const char *why = NULL;

    while (why == NULL && kinf__handler_goes_on(&handler->base)) {
        int64_t wait_ms = tell(handler);

        kinf__child_poll(&handler->child, has_lines(handler), handler->base.outbox.wake.fd,
                         wait_ms);
        kinf__waker_clear(&handler->base.outbox.wake);
        why = trouble(handler);
    }
    return kinf__handler_is_stopping(&handler->base) ? NULL : why;
}

static void attend_to_program(struct kinf__handler *base)
{
    struct exec_handler *handler = KINF__CONTAINER_OF(base, struct exec_handler, base);
    const char *why;
    int status;
    int failed = kinf__child_start(&handler->child, handler->args);

    atomic_fetch_add(&base->n_starts, 1);
    if (failed != 0) {
        kinf__handler_failed(base, "it cannot be run: %s", strerrordesc_np(failed));
        return;
    }
    atomic_store(&base->is_running, true);
    handler->at = handler->lines.len = 0;
    kinf__outbox_reset(&handler->base.outbox);
    why = attend(handler);
    finish_line(handler);
    status = kinf__child_end(&handler->child);
    atomic_store(&base->is_running, false);
    if (why != NULL)
        kinf__handler_failed(base, "it %s %s=%d", why, WIFSIGNALED(status) ? "signal" : "exit_code",
                             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* --- what the header promises --- */

static char *command_line(char *const *args, size_t n_args)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    char *text = NULL;

    for (size_t i = 0; i < n_args; i++) {
        if (kinf__buffer_printf(&line, "%s%s", i == 0 ? "" : " ", args[i]) < 0)
            return NULL;
    }
    return kinf__buffer_take_text(&line, &text, NULL) == 0 ? text : NULL;
}

static int copy_args(struct exec_handler *handler, char *const *args, size_t n_args,
                     struct kinf_error *err)
{
    handler->args = calloc(n_args + 1, sizeof(char *));
    if (handler->args == NULL)
        return kinf__error_no_memory(err);
    for (; handler->n_args < n_args; handler->n_args++) {
        if ((handler->args[handler->n_args] = strdup(args[handler->n_args])) == NULL)
            return kinf__error_no_memory(err);
    }
    return 0;
}

static void release(struct kinf__handler *base)
{
    struct exec_handler *handler = KINF__CONTAINER_OF(base, struct exec_handler, base);

    kinf__buffer_release(&handler->lines);
    for (size_t i = 0; i < handler->n_args; i++)
        free(handler->args[i]);
    free(handler->args);
}

int kinf__exec_handler_new(char *const *args, size_t n_args, bool acknowledges,
                           struct kinf__handler **ret_handler, struct kinf_error *err)
{
    static const struct kinf__handler_kind kind = { .attend = attend_to_program,
                                                    .release = release,
                                                    .name = "exec" };
    struct exec_handler *handler = calloc(1, sizeof *handler);
    int failed;

    if (handler == NULL)
        return kinf__error_no_memory(err);
    handler->child.ctx = handler;
    handler->child.err.on_line = on_said;
    handler->child.out.on_line = acknowledges ? on_acknowledged : on_said;
    failed =
        kinf__handler_init(&handler->base, &kind, command_line(args, n_args),
                           &(struct kinf__outbox_options){ .acknowledges = acknowledges }, err);
    if (failed == 0)
        failed = copy_args(handler, args, n_args, err);
    if (failed < 0) {
        kinf__handler_free(&handler->base);
        return failed;
    }
    *ret_handler = &handler->base;
    return 0;
}
