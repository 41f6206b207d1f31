/*
 * Where in the bytes of a connection an answer's head ends, what its body is and where that ends: for
 * connections that curl makes and does not read, which are those that may change their protocol.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REST_FRAMING_H
#define KINF_REST_FRAMING_H

#include "base/buffer.h"
#include "rest/head.h"

/* X(enumerator, what comes next) */
#define KINF__FRAMING_STATES(X)                                                                    \
    X(KINF__FRAMING_HEAD, "a line of the head")                                                    \
    X(KINF__FRAMING_SIZED, "so many bytes of the body, the last ones")                             \
    X(KINF__FRAMING_ENDLESS, "the body, until the connection ends")                                \
    X(KINF__FRAMING_SIZE, "the line with a chunk's size")                                          \
    X(KINF__FRAMING_CHUNK, "so many bytes of a chunk")                                             \
    X(KINF__FRAMING_CHUNK_END, "the end of line behind a chunk")                                   \
    X(KINF__FRAMING_TRAILER, "a line behind the last chunk")                                       \
    X(KINF__FRAMING_OVER, "nothing of this answer")

enum kinf__framing_state {
#define X(state, what) state,
    KINF__FRAMING_STATES(X)
#undef X
};

/* All zero is the beginning. */
struct kinf__framing {
    enum kinf__framing_state state;
    int64_t left;             /* of what is counted */
    size_t n_head;            /* bytes of all heads */
    struct kinf__buffer line; /* so far */
};

void kinf__framing_release(struct kinf__framing *framing);

/* Takes the next line or piece of body, or the beginning of one, off the front of *bytes, which are
 * not empty. *ret_body is what of that is the body's, a part of them, or "". Once the head is complete
 * nothing behind it has been taken yet; that of a 101 is complete, and the new protocol is its body.
 * Errors: KINF_ERR_NETWORK (this is no answer, or its length cannot be told), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__framing_take(struct kinf__framing *framing, struct kinf__head *head,
                                       struct kinf_str *bytes, struct kinf_str *ret_body,
                                       struct kinf_error *err);

/* Whether the answer is complete if the connection ends here. */
bool kinf__framing_may_end(const struct kinf__framing *framing);

#endif
