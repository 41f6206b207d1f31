/*
 * Answers of the upstream server's reviews, kept for a while: who a token is, and what a user may.
 *
 * A question is kept as a hash only (SHA-256), so that no token stays in memory. Bounded by count:
 * the one that was not asked for the longest goes first.
 *
 * Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_SERVE_DECISIONS_H
#define KINF_SERVE_DECISIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

#include "base/hmap.h"
#include "base/list.h"
#include "serve/digest.h"

/* What was asked, by kinf__digest(). */
struct kinf__question {
    unsigned char digest[KINF__DIGEST_SIZE];
};

struct kinf__decision {
    bool is_yes;
    int64_t until_ms;       /* monotonic; not used from then on */
    int64_t stale_until_ms; /* not before: but kept until then, for when nobody can be asked */
    char *text;             /* who the user is, or why not; owned, may be NULL */
};

struct kinf__decisions {
    struct kinf__hmap map;
    struct kinf__list by_use; /* the next one to go first */
    size_t max;
};

void kinf__decisions_init(struct kinf__decisions *decisions, size_t max);
void kinf__decisions_release(struct kinf__decisions *decisions);

/* The decision, valid until the next call; NULL if there is none, or none any more. `or_stale`: also
 * one that is only kept. */
const struct kinf__decision *kinf__decisions_find(struct kinf__decisions *decisions,
                                                  const struct kinf__question *question,
                                                  int64_t now_ms, bool or_stale);

/* Keeps a decision, in place of an older one; its text is copied. Errors: KINF_ERR_NO_MEMORY: nothing
 * is known then. */
KINF_MUST_CHECK int kinf__decisions_put(struct kinf__decisions *decisions,
                                        const struct kinf__question *question,
                                        const struct kinf__decision *decision);

/* Whether map and list hold the same, within the bound. For tests. */
bool kinf__decisions_check(const struct kinf__decisions *decisions);

#endif
