/*
 * A body on its way out that does not arrive as it should: a stream around the one that makes it.
 *
 * Owner: an exchange. Threads: the connection's.
 */
#ifndef KINF_FAULT_FAULT_STREAM_H
#define KINF_FAULT_FAULT_STREAM_H

#include "base/buffer.h"
#include "serve/stream.h"
#include "fault/fault_spec.h"

/* Whoever knows the time, and when to give up. Called on the connection's thread. */
struct kinf__fault_clock {
    int64_t (*now_ms)(void *ctx);
    /* The stream has to be read again then (KINF__NEVER_MS: when is_over() says so). The last call
     * counts. */
    void (*wake_at)(int64_t at_ms, void *ctx);
    bool (*is_over)(
        void *ctx); /* nobody waits any more: the server stops, or the client has gone */
    void *ctx;
};

/* Sends `take_body`, or, if it is empty, what `take_inner` sends (NULL: nothing); the inner one is
 * kept in either case, since others may know it, and freed with the stream. Faults that are no
 * streams' change nothing. Errors: KINF_ERR_NO_MEMORY, nothing is taken. */
KINF_MUST_CHECK int kinf__fault_stream_new(const struct kinf__fault_effect *effect,
                                           const struct kinf__fault_clock *clock,
                                           struct kinf__stream *take_inner,
                                           struct kinf__buffer *take_body,
                                           struct kinf__stream **ret_stream);

#endif
