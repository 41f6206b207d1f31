/*
 * Watches: a replay of the state if it is asked for, then the history as it grows.
 *
 * A client that takes nothing holds some tens of kB, and the snapshot of its replay or one object:
 * what is large of that is sent from itself. Who has fallen out of the history in the midst of one
 * is told 410 behind it, or cut off if such objects become too many.
 *
 * Threads: the connection's; any for what others may do to a watch, which is said there.
 */
#ifndef KINF_SERVE_WATCH_H
#define KINF_SERVE_WATCH_H

#include "serve/encode.h"
#include "serve/refusal.h"
#include "serve/selection.h"
#include "serve/stream.h"
#include "watchcache/watchcache.h"

struct kinf__watch_params {
    struct kinf__watchcache *cache;    /* outlives the stream */
    struct kinf__selection *selection; /* likewise */
    const struct kinf__encoder *encoder;
    uint64_t version; /* starts after it; 0: from now on */
    bool replays;     /* the state first; `version` is 0 */
    bool bookmarks;   /* wanted; with a replay its end is marked, too */
    kinf__watch_wake_cb *wake;
    void (*cut_off)(void *ctx); /* what it holds is wanted back (W7): its connection is to break */
    void *ctx;                  /* of both */
};

/* A version that is too old is a stream that says so. Errors: KINF_ERR_STATE (not synced),
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__watch_open(const struct kinf__watch_params *params,
                                     struct kinf__stream **ret_stream);
/* A stream of one ERROR event. */
KINF_MUST_CHECK int kinf__watch_open_refusal(const struct kinf__refusal *refusal,
                                             struct kinf__stream **ret_stream);

/* The stream ends when it is read next: wake the reader afterwards. Any thread. */
void kinf__watch_end(struct kinf__stream *stream);
/* The stream says how far it is when it is read next, if the client takes bookmarks. Any thread. */
void kinf__watch_want_bookmark(struct kinf__stream *stream);

struct kinf__watch_status {
    struct kinf__watch_cursor_status cursor;
    uint64_t n_sent; /* events and bookmarks, those of the replay, too */
};

/* Any thread. */
void kinf__watch_status(const struct kinf__stream *stream, int64_t now_ms,
                        struct kinf__watch_status *ret_status);

#endif
