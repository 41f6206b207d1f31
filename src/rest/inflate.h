/*
 * Undoing Content-Encoding: gzip, in any number of members one behind the other: since 1.37 a
 * watch-list is a new member with every flush.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REST_INFLATE_H
#define KINF_REST_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>

struct kinf__inflate;

/* Receives inflated bytes; a negative return ends the feeding and is returned by it. */
typedef int kinf__inflate_cb(const char *bytes, size_t len, void *ctx, struct kinf_error *err);

KINF_MUST_CHECK int kinf__inflate_new(struct kinf__inflate **ret_inflate, struct kinf_error *err);
void kinf__inflate_free(struct kinf__inflate *inflate); /* NULL is allowed */

/* Forgets what it is in the middle of. */
void kinf__inflate_reset(struct kinf__inflate *inflate);

/* Hands out all that the bytes give, without waiting for more. Errors: KINF_ERR_PARSE (no gzip),
 * KINF_ERR_NO_MEMORY, what the callback returned. */
KINF_MUST_CHECK int kinf__inflate_feed(struct kinf__inflate *inflate, const char *bytes, size_t len,
                                       kinf__inflate_cb *callback, void *ctx,
                                       struct kinf_error *err);

/* Whether the bytes so far end with a member's end, as those of a whole body do. */
bool kinf__inflate_is_complete(const struct kinf__inflate *inflate);

#endif
