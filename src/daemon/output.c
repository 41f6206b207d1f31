/*
 * Writing to a descriptor that may block for ever. A blocking descriptor cannot be interrupted in
 * the middle of write(), and O_NONBLOCK would change it for others who share it (a terminal), so
 * pieces are kept to what poll() has promised room for.
 */
#include "daemon/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"

int kinf__output_init(struct kinf__output *output, int fd, const char *name, struct kinf_error *err)
{
    output->fd = fd;
    output->name = name;
    kinf__mutex_init(&output->lock, KINF__RANK_OUTPUT);
    return kinf__waker_init(&output->stop, err);
}

void kinf__output_release(struct kinf__output *output)
{
    kinf__waker_release(&output->stop);
    kinf__mutex_release(&output->lock);
}

void kinf__output_stop(struct kinf__output *output)
{
    kinf__waker_set(&output->stop);
}

/* Returns bytes written, 0 when it has to be tried again. */
static ssize_t write_piece(struct kinf__output *output, const char *bytes, size_t len,
                           struct kinf_error *err)
{
    struct pollfd fds[] = { { output->stop.fd, POLLIN, 0 }, { output->fd, POLLOUT, 0 } };
    ssize_t n;

    if (poll(fds, 2, -1) < 0 && errno != EINTR)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write to %s",
                                     output->name);
    if (fds[0].revents != 0)
        return kinf__error_set(err, KINF_ERR_STOPPED, "stopped");
    if (fds[1].revents == 0)
        return 0;
    n = write(output->fd, bytes, len < PIPE_BUF ? len : PIPE_BUF);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write to %s",
                                     output->name);
    return n < 0 ? 0 : n;
}

int kinf__output_write(struct kinf__output *output, const char *bytes, size_t len,
                       struct kinf_error *err)
{
    ssize_t n = 0;

    kinf__mutex_lock(&output->lock);
    kinf__log_show_progress(""); /* which may be on the same terminal */
    while (len != 0 && (n = write_piece(output, bytes, len, err)) >= 0) {
        bytes += n;
        len -= (size_t)n;
    }
    kinf__mutex_unlock(&output->lock);
    return n < 0 ? (int)n : 0;
}
