/*
 * A child process with pipes to its standard input, output and error, and its end.
 *
 * What it writes is taken line by line; of a line longer than KINF__CHILD_LINE_BYTES the rest is left
 * out. It ends with everything in its process group: what it started in one of their own stays.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_HANDLERS_CHILD_H
#define KINF_HANDLERS_CHILD_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

#define KINF__CHILD_LINE_BYTES 400

/* A NUL is behind the line; it has no other. */
typedef void kinf__child_line_cb(const char *line, void *ctx);

struct kinf__child_stream {
    char line[KINF__CHILD_LINE_BYTES + 1];
    size_t len;
    kinf__child_line_cb *on_line;
};

enum { KINF__CHILD_PROCESS, KINF__CHILD_IN, KINF__CHILD_OUT, KINF__CHILD_ERR, KINF__CHILD_N_FDS };

struct kinf__child {
    pid_t pid; /* 0: there is none */
    struct kinf__child_stream out, err;
    void *ctx;                                /* of their callbacks */
    struct pollfd watched[KINF__CHILD_N_FDS]; /* -1: closed, by us or it */
};

/* Starts a program, see kinf__process_start(). The streams' callbacks and ctx are set before. Returns 0
 * or an errno. */
KINF_MUST_CHECK int kinf__child_start(struct kinf__child *child, char *const *args);

/* Waits until there is something to read, or to write if `writes`, or it has ended, or `fd` (-1: none)
 * is readable, and takes what there is to read. */
void kinf__child_poll(struct kinf__child *child, bool writes, int fd, int64_t wait_ms);

bool kinf__child_has_ended(const struct kinf__child *child); /* by the last poll */
/* Nobody reads its standard input any more, by the last poll. */
bool kinf__child_is_deaf(const struct kinf__child *child);

/* Returns how much of it its standard input took, 0 when that is full or closed. */
size_t kinf__child_write(struct kinf__child *child, const char *bytes, size_t len);
void kinf__child_close_input(struct kinf__child *child);

/* Gives it KINF__CHILD_GRACE_MS to end by itself, as long again after SIGTERM, then it is killed; what
 * is left of its group is killed in any case. Returns its status, as of waitpid(). */
#define KINF__CHILD_GRACE_MS 1000
int kinf__child_end(struct kinf__child *child);

#endif
