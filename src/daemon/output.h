/*
 * Standard output for several threads: whole lines, and nobody stuck in a write when the daemon
 * stops.
 *
 * Threads: any thread.
 */
#ifndef KINF_DAEMON_OUTPUT_H
#define KINF_DAEMON_OUTPUT_H

#include <stddef.h>

#include <kinformer/error.h>

#include "base/lock.h"
#include "base/thread.h"

struct kinf__output {
    /* constant after init */
    int fd;
    const char *name; /* for errors; the caller's */
    struct kinf__waker stop;
    /* guarded by lock: the descriptor, so that lines stay whole */
    struct kinf__mutex lock;
};

KINF_MUST_CHECK int kinf__output_init(struct kinf__output *output, int fd, const char *name,
                                      struct kinf_error *err);
void kinf__output_release(struct kinf__output *output);

/* Writes all bytes. Blocks while nobody reads, until kinf__output_stop(). Errors: KINF_ERR_STOPPED,
 * KINF_ERR_SYSTEM (the reader is gone). */
KINF_MUST_CHECK int kinf__output_write(struct kinf__output *output, const char *bytes, size_t len,
                                       struct kinf_error *err);

/* Ends every write, running and future, with KINF_ERR_STOPPED. */
void kinf__output_stop(struct kinf__output *output);

#endif
