/*
 * A child's life, seen from its pipes and a pidfd. Neighbours: exec_handler.c has what it is told.
 *
 * Invariant: a child that was started is waited for in kinf__child_end(), by its number and no other.
 * Until then that number is its own, and so is its group's: both may be sent signals.
 */
#include "handlers/child.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"

#define READS_MAX 16 /* between two looks at what else there is */

static void close_watched(struct pollfd *watched)
{
    kinf__close_fd(&watched->fd);
    *watched = (struct pollfd){ -1, 0, 0 };
}

int kinf__child_start(struct kinf__child *child, char *const *args)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
    int failed = kinf__process_pipe(in, 1);

    if (failed == 0)
        failed = kinf__process_pipe(out, 0);
    if (failed == 0)
        failed = kinf__process_pipe(err, 0);
    if (failed == 0)
        failed = kinf__process_start(args, environ, (int[]){ in[0], out[1], err[1] }, &child->pid);
    child->watched[KINF__CHILD_IN] = (struct pollfd){ in[1], 0, 0 };
    child->watched[KINF__CHILD_OUT] = (struct pollfd){ out[0], POLLIN, 0 };
    child->watched[KINF__CHILD_ERR] = (struct pollfd){ err[0], POLLIN, 0 };
    child->watched[KINF__CHILD_PROCESS] = (struct pollfd){ -1, POLLIN, 0 };
    child->out.len = child->err.len = 0;
    kinf__close_fd(&in[0]);
    kinf__close_fd(&out[1]);
    kinf__close_fd(&err[1]);
    if (failed == 0) {
        child->watched[KINF__CHILD_PROCESS].fd = pidfd_open(child->pid, 0);
        failed = child->watched[KINF__CHILD_PROCESS].fd < 0 ? errno : 0;
    }
    if (failed != 0)
        (void)kinf__child_end(child);
    return failed;
}

/* --- what it writes --- */

static void end_line(struct kinf__child *child, struct kinf__child_stream *stream)
{
    if (stream->len == 0)
        return;
    stream->line[stream->len] = '\0';
    stream->len = 0;
    stream->on_line(stream->line, child->ctx);
}

static void take(struct kinf__child *child, struct kinf__child_stream *stream, const char *bytes,
                 size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n')
            end_line(child, stream);
        else if (bytes[i] != '\0' && stream->len < KINF__CHILD_LINE_BYTES)
            stream->line[stream->len++] = bytes[i];
    }
}

static void read_stream(struct kinf__child *child, struct pollfd *watched,
                        struct kinf__child_stream *stream)
{
    char bytes[4096];
    ssize_t n = 1;

    if (watched->fd < 0 || watched->revents == 0)
        return;
    for (unsigned i = 0; i < READS_MAX && n > 0; i++) {
        n = read(watched->fd, bytes, sizeof bytes);
        if (n > 0)
            take(child, stream, bytes, (size_t)n);
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        end_line(child, stream);
        close_watched(watched);
    }
}

void kinf__child_poll(struct kinf__child *child, bool writes, int fd, int64_t wait_ms)
{
    struct pollfd watched[KINF__CHILD_N_FDS + 1];

    child->watched[KINF__CHILD_IN].events = writes ? POLLOUT : 0;
    for (size_t i = 0; i < KINF__CHILD_N_FDS; i++)
        watched[i] = child->watched[i];
    watched[KINF__CHILD_N_FDS] = (struct pollfd){ fd, POLLIN, 0 };
    if (poll(watched, KINF__CHILD_N_FDS + 1, wait_ms < INT_MAX ? (int)wait_ms : INT_MAX) < 0)
        return;
    for (size_t i = 0; i < KINF__CHILD_N_FDS; i++)
        child->watched[i].revents = watched[i].revents;
    read_stream(child, &child->watched[KINF__CHILD_OUT], &child->out);
    read_stream(child, &child->watched[KINF__CHILD_ERR], &child->err);
}

bool kinf__child_has_ended(const struct kinf__child *child)
{
    return child->watched[KINF__CHILD_PROCESS].revents != 0;
}

/* --- what it reads --- */

bool kinf__child_is_deaf(const struct kinf__child *child)
{
    return (child->watched[KINF__CHILD_IN].revents & POLLERR) != 0;
}

size_t kinf__child_write(struct kinf__child *child, const char *bytes, size_t len)
{
    ssize_t n;

    if (child->watched[KINF__CHILD_IN].fd < 0)
        return 0;
    n = write(child->watched[KINF__CHILD_IN].fd, bytes, len);
    return n < 0 ? 0 : (size_t)n;
}

void kinf__child_close_input(struct kinf__child *child)
{
    close_watched(&child->watched[KINF__CHILD_IN]);
}

/* --- the end --- */

static bool ends_within(struct kinf__child *child, int64_t limit_ms)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), limit_ms), left_ms;

    while (!kinf__child_has_ended(child) &&
           (left_ms = kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms)) > 0)
        kinf__child_poll(child, false, -1, left_ms);
    return kinf__child_has_ended(child);
}

static int reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* Also to itself: it may have gone to another group. */
static void send_signal(const struct kinf__child *child, int signal_no)
{
    kill(-child->pid, signal_no);
    kill(child->pid, signal_no);
}

static void end_group(struct kinf__child *child)
{
    if (child->watched[KINF__CHILD_PROCESS].fd >= 0 && !ends_within(child, KINF__CHILD_GRACE_MS)) {
        send_signal(child, SIGTERM);
        (void)ends_within(child, KINF__CHILD_GRACE_MS);
    }
    send_signal(child, SIGKILL);
}

int kinf__child_end(struct kinf__child *child)
{
    int status = 0;

    kinf__child_close_input(child);
    if (child->pid != 0) {
        end_group(child);
        kinf__child_poll(child, false, -1, 0); /* its last words */
        status = reap(child->pid);
    }
    for (size_t i = 0; i < KINF__CHILD_N_FDS; i++)
        close_watched(&child->watched[i]);
    child->pid = 0;
    return status;
}
