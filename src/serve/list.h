/*
 * Lists: from a version of the store to JSON, a piece at a time, so that a list of any size holds up
 * nobody else on its connection's thread, and one whose client takes nothing holds no more than the
 * snapshot and some 256 kB, as much again while it compresses.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_SERVE_LIST_H
#define KINF_SERVE_LIST_H

#include "base/buffer.h"
#include "serve/encode.h"
#include "serve/selection.h"
#include "serve/stream.h"

struct kinf__list_params {
    const struct kinf__selection *selection; /* borrowed */
    struct kinf_snapshot *snapshot;          /* a reference, consumed in any case */
    uint64_t version;                        /* the snapshot's */
    uint32_t issuer;                         /* of tokens; token.h */
    const struct kinf__encoder *encoder;     /* how; copied */
    const char *after;                       /* a key to begin above; "": at the start; copied */
    int64_t limit;                           /* 0 or less: none */
    bool may_gzip;
};

struct kinf__list_result {
    /* The whole body, if it is small; else a stream, which the caller frees. */
    struct kinf__buffer body;
    struct kinf__stream *stream;
    bool is_gzip;
    bool has_more; /* a token was given out: the snapshot should be held */
};

/* Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__list_open(const struct kinf__list_params *params,
                                    struct kinf__list_result *ret_result);

#endif
