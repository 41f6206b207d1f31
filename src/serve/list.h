/*
 * Lists: from a version of the store to JSON, a piece at a time, so that a list of any size holds up
 * nobody else on its connection's thread, and one whose client takes nothing holds no more than the
 * snapshot and some 256 kB, as much again while it compresses, and 8 bytes for each object of a page.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_SERVE_LIST_H
#define KINF_SERVE_LIST_H

#include "base/buffer.h"
#include "serve/encode.h"
#include "serve/selection.h"
#include "serve/stream.h"
#include "serve/token.h"

/* Of a page, whatever the client asks for: it may always be given less, and a token. */
#define KINF__LIST_PAGE_MAX 16384

struct kinf__list_params {
    const struct kinf__selection *selection; /* borrowed */
    struct kinf_snapshot *snapshot;          /* a reference, consumed in any case */
    uint32_t issuer;                         /* of tokens; token.h */
    const struct kinf__encoder *encoder;     /* how; copied */
    /* The snapshot's version, the key to begin above ("": at the start), and what is known to be
     * left; copied. */
    const struct kinf__token *from;
    int64_t limit; /* 0 or less: none */
    bool may_gzip;
};

struct kinf__list_result {
    struct kinf__buffer body;    /* all of it, if it is small; else empty, and */
    struct kinf__stream *stream; /* the listing as a stream, that frees it */
    struct kinf_snapshot
        *snapshot; /* borrowed: should be held, since a token was given out; or NULL */
    struct kinf__store_version version; /* its */
    bool is_gzip;
};

struct kinf__listing;

/* The caller frees it. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__listing_new(const struct kinf__list_params *params,
                                      struct kinf__listing **ret_listing);
/* NULL is allowed. */
void kinf__listing_free(struct kinf__listing *listing);

/* Goes on until it is known how the answer begins: 0, and *ret_result is written; 1 if that takes
 * more of these calls, each of about a millisecond. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__listing_step(struct kinf__listing *listing,
                                       struct kinf__list_result *ret_result);

#endif
