/*
 * A body that is made while it is sent.
 *
 * Owner: an exchange. Threads: the connection's.
 */
#ifndef KINF_SERVE_STREAM_H
#define KINF_SERVE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    KINF__STREAM_END = -1,    /* the body is complete */
    KINF__STREAM_BROKEN = -2, /* it cannot be completed: the client must see that */
    KINF__STREAM_RESET = -3,  /* likewise, by a reset of the connection, where it can have one */
    KINF__STREAM_LATER = -4,  /* nothing yet: read again, after others had their turn */
};

struct kinf__stream {
    /* Writes up to `size` bytes. 0: nothing now, the exchange's wake callback will run. */
    ssize_t (*read)(struct kinf__stream *stream, char *buf, size_t size);
    void (*free)(struct kinf__stream *stream);
    bool is_watch; /* there are thousands, mostly silent: its connection shall hold little memory */
};

#endif
