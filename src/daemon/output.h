/*
 * Standard output for several threads: whole lines, and nobody stuck in a write when the daemon
 * stops, or when what it writes of is not wanted any more.
 *
 * Threads: any thread.
 */
#ifndef KINF_DAEMON_OUTPUT_H
#define KINF_DAEMON_OUTPUT_H

#include <stddef.h>

#include <kinformer/error.h>

#include "base/buffer.h"
#include "base/lock.h"
#include "base/stop.h"
#include "base/thread.h"

struct kinf__output {
    /* constant after init */
    int fd;
    const char *name;        /* for errors; the caller's */
    struct kinf__waker wake; /* who writes looks whether it is to end */
    /* atomic */
    struct kinf__stop stop;
    struct kinf__mutex lock;
    struct kinf__cond changed;
    /* guarded by lock */
    bool is_taken;            /* somebody writes, and has these: */
    struct kinf__buffer rest; /* of a line that was not ended, so that lines stay whole */
};

KINF_MUST_CHECK int kinf__output_init(struct kinf__output *output, int fd, const char *name,
                                      struct kinf_error *err);
void kinf__output_release(struct kinf__output *output);

/* Writes all bytes, of whole lines. Blocks while nobody reads, until kinf__output_stop(), or
 * kinf__output_leave() of `left` (NULL: nobody leaves). A line that was begun when it fails the next
 * writer ends. Errors: KINF_ERR_STOPPED, KINF_ERR_SYSTEM (the reader is gone),
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__output_write(struct kinf__output *output, const struct kinf__stop *left,
                                       const char *bytes, size_t len, struct kinf_error *err);

/* Sets it, and ends every write with it, running and future, with KINF_ERR_STOPPED. */
void kinf__output_leave(struct kinf__output *output, struct kinf__stop *left);
/* The same of all. */
void kinf__output_stop(struct kinf__output *output);

#endif
