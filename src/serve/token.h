/*
 * Continue tokens: where the next page of a list begins, in a form that clients cannot change.
 *
 * A list that was passed on comes back with a token of the server behind, which may be of this same
 * software. So each says who its issuer is: a number that stays when a process is restarted, and that
 * no two servers on the way of one request share.
 *
 * Threads: any thread.
 */
#ifndef KINF_SERVE_TOKEN_H
#define KINF_SERVE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/object.h>

#include "base/buffer.h"
#include "serve/refusal.h"
#include "watchcache/watchcache.h"

/* Two names, as in a key. */
#define KINF__TOKEN_KEY_SIZE (2 * KINF_NAME_MAX)

struct kinf__token {
    /* Of the store that the pages are read from, without its bytes; none: whatever there is. */
    struct kinf__store_version version;
    uint64_t n_remaining; /* objects behind `after`; 0: not counted */
    char after[KINF__TOKEN_KEY_SIZE];
};

/* Who serves what is read from `source` (a URL; of a server that has its objects itself: its name). */
uint32_t kinf__token_issuer(const char *source);

/* Appends a token, with a NUL behind it that is not counted. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__token_write(uint32_t issuer, const struct kinf__token *token,
                                      struct kinf__buffer *out);

/* Whether it looks like one of this issuer's, of whatever process. */
bool kinf__token_is_of(uint32_t issuer, const char *text);

/* Refuses with 400 what is no token, and with 410 what another process or another issuer wrote: a
 * restart of the daemon expires its tokens. */
KINF_MUST_CHECK int kinf__token_read(uint32_t issuer, const char *text,
                                     struct kinf__token *ret_token, struct kinf__refusal *refusal);

/* Refuses with 410: the pages' version is no longer held. */
int kinf__token_refuse_expired(struct kinf__refusal *refusal);
/* The same, and a token for the rest, out of whatever there is then. Returns KINF_ERR_INVALID or
 * KINF_ERR_NO_MEMORY. */
int kinf__token_offer_rest(uint32_t issuer, const struct kinf__token *token,
                           struct kinf__refusal *refusal);

#endif
