/*
 * The head of an answer, gathered line by line as curl hands it out.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REST_HEAD_H
#define KINF_REST_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

#define KINF__HEADERS_MAX 64   /* more are left out */
#define KINF__CHUNKED     (-1) /* the length of a body that is not told */

struct kinf__header {
    const char *name;
    const char *value;
};

/* All zero is empty and valid. */
struct kinf__head {
    int code;         /* 0 before the status line, or if it has none */
    bool is_complete; /* of the final answer: nothing changes it any more */
    struct kinf__header headers[KINF__HEADERS_MAX]; /* in order; not their body's length */
    size_t n_headers;
    int64_t body_len; /* KINF__CHUNKED: not told */
    bool is_chunked;
};

void kinf__head_release(struct kinf__head *head);

/* Heads of a 100 are forgotten when the next begins, trailers passed over. Errors:
 * KINF_ERR_NO_MEMORY, KINF_ERR_NETWORK (no length, or two). */
KINF_MUST_CHECK int kinf__head_take(struct kinf__head *head, struct kinf_str line,
                                    struct kinf_error *err);

/* "" if there is none. */
const char *kinf__head_value(const struct kinf__head *head, const char *name);
/* Of Retry-After: seconds, an hour at most; the other form, a date, is 0. */
uint32_t kinf__head_retry_after_ms(const struct kinf__head *head);

#endif
