/*
 * Writing to a descriptor that may block for ever. A blocking descriptor cannot be interrupted in
 * the middle of write(), and O_NONBLOCK would change it for others who share it (a terminal), so
 * pieces are kept to what poll() has promised room for.
 */
#include "daemon/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

int kinf__output_init(struct kinf__output *output, int fd, const char *name, struct kinf_error *err)
{
    *output = (struct kinf__output){ .fd = fd, .name = name, .rest = KINF__BUFFER_INIT };
    kinf__mutex_init(&output->lock, KINF__RANK_OUTPUT);
    kinf__cond_init(&output->changed);
    return kinf__waker_init(&output->wake, err);
}

void kinf__output_release(struct kinf__output *output)
{
    kinf__waker_release(&output->wake);
    kinf__cond_release(&output->changed);
    kinf__mutex_release(&output->lock);
    kinf__buffer_release(&output->rest);
}

void kinf__output_leave(struct kinf__output *output, struct kinf__stop *left)
{
    kinf__stop_set(left);
    kinf__mutex_lock(&output->lock);
    kinf__cond_broadcast(&output->changed);
    kinf__mutex_unlock(&output->lock);
    kinf__waker_set(&output->wake);
}

void kinf__output_stop(struct kinf__output *output)
{
    kinf__output_leave(output, &output->stop);
}

static bool is_to_end(const struct kinf__output *output, const struct kinf__stop *left)
{
    return kinf__stop_is_set(&output->stop) || kinf__stop_is_set(left);
}

/* Returns false if it is to end. */
static bool take_turn(struct kinf__output *output, const struct kinf__stop *left)
{
    bool is_mine;

    kinf__mutex_lock(&output->lock);
    while (output->is_taken && !is_to_end(output, left))
        kinf__cond_wait_until(&output->changed, &output->lock, KINF__NEVER_MS);
    is_mine = !output->is_taken;
    output->is_taken = true;
    kinf__mutex_unlock(&output->lock);
    return is_mine;
}

static void give_turn(struct kinf__output *output)
{
    kinf__mutex_lock(&output->lock);
    output->is_taken = false;
    kinf__cond_broadcast(&output->changed);
    kinf__mutex_unlock(&output->lock);
}

/* Returns bytes written, 0 when it has to be tried again. */
static ssize_t write_piece(struct kinf__output *output, const struct kinf__stop *left,
                           const char *bytes, size_t len, struct kinf_error *err)
{
    struct pollfd fds[] = { { output->wake.fd, POLLIN, 0 }, { output->fd, POLLOUT, 0 } };
    ssize_t n;

    if (is_to_end(output, left))
        return kinf__error_set(err, KINF_ERR_STOPPED, "stopped");
    if (poll(fds, 2, -1) < 0 && errno != EINTR)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write to %s",
                                     output->name);
    if (fds[0].revents != 0) {
        kinf__waker_clear(&output->wake); /* only who has the turn waits for it */
        return 0;
    }
    if (fds[1].revents == 0)
        return 0;
    n = write(output->fd, bytes, len < PIPE_BUF ? len : PIPE_BUF);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write to %s",
                                     output->name);
    return n < 0 ? 0 : n;
}

/* *ret_len is how much it wrote, on failure too. */
static int write_all(struct kinf__output *output, const struct kinf__stop *left,
                     struct kinf_str text, size_t *ret_len, struct kinf_error *err)
{
    ssize_t n = 0;

    *ret_len = 0;
    while (*ret_len != text.len && n >= 0) {
        n = write_piece(output, left, text.bytes + *ret_len, text.len - *ret_len, err);
        *ret_len += n > 0 ? (size_t)n : 0;
    }
    return n < 0 ? (int)n : 0;
}

static int write_rest(struct kinf__output *output, const struct kinf__stop *left,
                      struct kinf_error *err)
{
    struct kinf__buffer *rest = &output->rest;
    size_t len;
    int failed = write_all(output, left, kinf__buffer_str(rest), &len, err);

    memmove(rest->bytes, rest->bytes + len, rest->len - len);
    rest->len -= len;
    return failed;
}

/* Of the line of which the first `len` bytes were the last that was written. */
static int keep_rest(struct kinf__output *output, struct kinf_str lines, size_t len)
{
    const char *end;

    if (len == 0 || len == lines.len || lines.bytes[len - 1] == '\n')
        return 0;
    end = memchr(lines.bytes + len, '\n', lines.len - len);
    return kinf__buffer_append(&output->rest, lines.bytes + len,
                               end != NULL ? (size_t)(end + 1 - lines.bytes) - len
                                           : lines.len - len);
}

static int write_lines(struct kinf__output *output, const struct kinf__stop *left,
                       struct kinf_str lines, struct kinf_error *err)
{
    size_t len;
    int failed = write_all(output, left, lines, &len, err);

    return failed < 0 && keep_rest(output, lines, len) < 0 ? kinf__error_no_memory(err) : failed;
}

int kinf__output_write(struct kinf__output *output, const struct kinf__stop *left,
                       const char *bytes, size_t len, struct kinf_error *err)
{
    int failed = 0;

    if (!take_turn(output, left))
        return kinf__error_set(err, KINF_ERR_STOPPED, "stopped");
    kinf__log_show_progress(""); /* which may be on the same terminal */
    if (output->rest.len != 0)
        failed = write_rest(output, left, err);
    if (failed == 0)
        failed = write_lines(output, left, (struct kinf_str){ bytes, len }, err);
    give_turn(output);
    return failed;
}
