/*
 * Two buffers, one that is filled and one that is written. Neighbours: output.c writes to what may
 * block, serving.c hands lines over.
 */
#include "daemon/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/output.h"

#define PATIENCE_MS 1000 /* at the end */

struct kinf__access_log {
    /* constant */
    char *path; /* NULL: standard error */
    pthread_t thread;
    bool has_thread;
    /* the thread's */
    struct kinf__output output;
    bool is_failing; /* it has said so */
    struct kinf__mutex lock;
    struct kinf__cond changed;
    /* guarded by lock */
    struct kinf__buffer waiting;
    uint64_t n_dropped; /* and not told of yet */
    bool is_reopening;
    bool is_ending;
    bool is_through;
};

static int open_file(const char *path, struct kinf_error *err)
{
    int fd = path == NULL
                 ? STDERR_FILENO
                 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);

    return fd >= 0 ? fd
                   : kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno,
                                           "cannot open the access log %s", path);
}

/* --- the thread --- */

static void reopen(struct kinf__access_log *log)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int fd = log->path != NULL ? open_file(log->path, &err) : -1;

    if (fd >= 0) {
        close(log->output.fd);
        log->output.fd = fd;
        log->output.rest.len = 0; /* of a line of the old one */
        log->is_failing = false;
    } else if (log->path != NULL) {
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN, "%s: the old one is kept",
                  KINF__QUOTED(err.message));
    }
}

static uint64_t count_lines(struct kinf_str text)
{
    uint64_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.bytes[i] == '\n';
    return n;
}

/* Also those of them that were written before it failed. */
static void note_dropped(struct kinf__access_log *log, const struct kinf__buffer *lines)
{
    uint64_t n_lines = count_lines(kinf__buffer_str(lines));

    kinf__mutex_lock(&log->lock);
    log->n_dropped += n_lines;
    kinf__mutex_unlock(&log->lock);
}

/* A full disk is told once, until a write succeeds. */
static void write_lines(struct kinf__access_log *log, const struct kinf__buffer *lines)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed = kinf__output_write(&log->output, NULL, lines->bytes, lines->len, &err);

    if (failed == KINF_ERR_SYSTEM && !log->is_failing)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN, "the access log is not written error=%s",
                  KINF__QUOTED(err.message));
    log->is_failing = failed == KINF_ERR_SYSTEM;
    if (failed < 0)
        note_dropped(log, lines);
}

/* Returns false when there is nothing more to come. */
static bool await(struct kinf__access_log *log, struct kinf__buffer *ret_lines, bool *ret_reopens)
{
    bool goes_on;

    kinf__mutex_lock(&log->lock);
    while (log->waiting.len == 0 && !log->is_reopening && !log->is_ending)
        kinf__cond_wait_until(&log->changed, &log->lock, KINF__NEVER_MS);
    goes_on = log->waiting.len != 0 || log->is_reopening;
    *ret_lines = log->waiting;
    *ret_reopens = log->is_reopening;
    log->waiting = (struct kinf__buffer)KINF__BUFFER_INIT;
    log->is_reopening = false;
    kinf__mutex_unlock(&log->lock);
    return goes_on;
}

static void *run(void *ctx)
{
    struct kinf__access_log *log = ctx;
    struct kinf__buffer lines;
    bool reopens;

    while (await(log, &lines, &reopens)) {
        if (reopens)
            reopen(log);
        if (lines.len != 0)
            write_lines(log, &lines);
        kinf__buffer_release(&lines);
    }
    kinf__mutex_lock(&log->lock);
    log->is_through = true;
    kinf__cond_broadcast(&log->changed);
    kinf__mutex_unlock(&log->lock);
    return NULL;
}

/* --- whoever has lines --- */

uint64_t kinf__access_log_take(struct kinf_str line, void *ctx)
{
    struct kinf__access_log *log = ctx;
    uint64_t n_dropped;

    kinf__mutex_lock(&log->lock);
    if (log->waiting.len + line.len > KINF__ACCESS_LOG_BYTES ||
        kinf__buffer_append_str(&log->waiting, line) < 0)
        log->n_dropped++;
    n_dropped = log->n_dropped;
    log->n_dropped = 0;
    kinf__cond_signal(&log->changed);
    kinf__mutex_unlock(&log->lock);
    return n_dropped;
}

void kinf__access_log_reopen(struct kinf__access_log *log)
{
    kinf__mutex_lock(&log->lock);
    log->is_reopening = true;
    kinf__cond_broadcast(&log->changed);
    kinf__mutex_unlock(&log->lock);
}

/* --- life --- */

static int open_log(struct kinf__access_log *log, struct kinf_error *err)
{
    int fd = open_file(log->path, err);

    return fd < 0 ? fd
                  : kinf__output_init(&log->output, fd,
                                      log->path != NULL ? log->path : "standard error", err);
}

int kinf__access_log_new(const char *path, struct kinf__access_log **ret_log,
                         struct kinf_error *err)
{
    struct kinf__access_log *log = calloc(1, sizeof *log);
    int failed = 0;

    if (log == NULL)
        return kinf__error_no_memory(err);
    kinf__mutex_init(&log->lock, KINF__RANK_ACCESS_LOG);
    kinf__cond_init(&log->changed);
    log->output.fd = log->output.wake.fd = -1;
    if (strcmp(path, "-") != 0 && (log->path = strdup(path)) == NULL)
        failed = kinf__error_no_memory(err);
    if (failed == 0)
        failed = open_log(log, err);
    if (failed == 0)
        failed = kinf__thread_start(&log->thread, "access-log", run, log, err);
    log->has_thread = failed == 0;
    if (failed < 0) {
        kinf__access_log_free(log);
        return failed;
    }
    *ret_log = log;
    return 0;
}

/* Lines that nobody takes are given up. */
static void end_thread(struct kinf__access_log *log)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), PATIENCE_MS);

    kinf__mutex_lock(&log->lock);
    log->is_ending = true;
    kinf__cond_broadcast(&log->changed);
    while (!log->is_through && kinf__cond_wait_until(&log->changed, &log->lock, deadline_ms))
        continue;
    kinf__mutex_unlock(&log->lock);
    kinf__output_stop(&log->output);
    pthread_join(log->thread, NULL);
}

void kinf__access_log_free(struct kinf__access_log *log)
{
    if (log == NULL)
        return;
    if (log->has_thread)
        end_thread(log);
    if (log->path != NULL && log->output.fd >= 0)
        close(log->output.fd);
    if (log->output.wake.fd >= 0)
        kinf__output_release(&log->output);
    kinf__buffer_release(&log->waiting);
    kinf__cond_release(&log->changed);
    kinf__mutex_release(&log->lock);
    free(log->path);
    free(log);
}
