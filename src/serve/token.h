/*
 * Continue tokens: where the next page of a list begins, in a form that clients cannot change.
 *
 * Threads: any thread.
 */
#ifndef KINF_SERVE_TOKEN_H
#define KINF_SERVE_TOKEN_H

#include <stdint.h>

#include <kinformer/object.h>

#include "base/buffer.h"
#include "serve/refusal.h"

/* Two names, as in a key. */
#define KINF__TOKEN_KEY_SIZE (2 * KINF_NAME_MAX)

struct kinf__token {
    uint64_t version; /* of the store that the pages are read from */
    char after[KINF__TOKEN_KEY_SIZE];
};

/* Appends a token, with a NUL behind it that is not counted. `after` is a key. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__token_write(uint64_t version, const char *after,
                                      struct kinf__buffer *out);

/* Refuses with 400 what this process did not write, and with 410 what another one did: a restart of
 * the daemon expires its tokens. */
KINF_MUST_CHECK int kinf__token_read(const char *text, struct kinf__token *ret_token,
                                     struct kinf__refusal *refusal);

/* Refuses with 410: the pages' version is no longer held. */
int kinf__token_refuse_expired(struct kinf__refusal *refusal);

#endif
