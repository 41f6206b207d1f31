/*
 * The watch cache: what one type needs to be served. It holds the version of the store that readers
 * are told, a few older versions for lists in pages, and the history of recent changes, over which
 * cursors move: one for each watch. A cursor copies nothing; the bytes of an event exist once.
 *
 * Numbered promises, which tests cite:
 *  W1  The version that readers get and the history move together: a list at version V and a watch
 *      after V see every change exactly once.
 *  W2  In the history versions rise strictly, so a watch may end behind any event and go on after
 *      its version without a loss or a repetition, but within a Replace (W8).
 *  W3  A Replace enters at once: what is new or changed ascending by resourceVersion, a re-created
 *      name as DELETED below its ADDED, other deletes as late as there are free versions, the last
 *      one with the list's if that is free; then a bookmark.
 *  W4  A cursor is told what its selection sees: ADDED when an object enters, DELETED with the last
 *      object that was in it when one leaves.
 *  W5  Whoever cannot be told everything is told KINF_ERR_EXPIRED, and nothing after that: a cursor
 *      that fell behind the history, all of them when the server went back, memory was out, or
 *      versions came out of order. Nobody else notices a stalled cursor.
 *  W6  A cursor is woken only for what it will be told, once for each time that it was armed.
 *  W7  What only expired cursors keep in memory, each the object of the event that it was given
 *      last, is bounded (page_bytes): above that those who have the oldest are given up.
 *  W8  What came and went between the store and a list that replaced it nobody knows, and who begins
 *      at a version in between may have it from elsewhere: he is told KINF_ERR_EXPIRED.
 *
 * Versions are numbers here, from 1 to 2^64-1, as the served API has them; 0 is none. A server that
 * numbers otherwise is never ready to be served.
 *
 * Threads: any thread for the cache; one thread at a time for each cursor and each waiter. Nothing
 * here blocks but for short critical sections. No callback is called with a lock held.
 */
#ifndef KINF_WATCHCACHE_WATCHCACHE_H
#define KINF_WATCHCACHE_WATCHCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/indexer.h>

#include "base/list.h"
#include "informer/sink.h"

/* 0 in each member: the default in brackets. */
struct kinf__watchcache_limits {
    size_t history_bytes;   /* of what the history alone keeps in memory [64 MiB] */
    int64_t history_age_ms; /* of an event [300,000] */
    size_t
        page_bytes; /* of what old versions keep in memory, about; stalled cursors, too [64 MiB] */
    int64_t page_age_ms; /* of an old version, since it was held first [300,000] */
    size_t max_pages;    /* old versions held at once; the one read longest ago goes [64] */
};

struct kinf__watchcache;

/* Borrows the indexer, which must outlive it. `limits` NULL: the defaults. Begins disabled. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__watchcache_new(struct kinf_indexer *indexer,
                                         const struct kinf__watchcache_limits *limits,
                                         struct kinf__watchcache **ret_cache,
                                         struct kinf_error *err);
/* Nothing feeds it any more, and cursors and waiters are gone. NULL is allowed. */
void kinf__watchcache_free(struct kinf__watchcache *cache);

/* Disabled, it holds nothing and has nothing, and what it is fed is dropped. Disabling expires every
 * cursor and ends every waiter with KINF_ERR_STOPPED: their callbacks run on this thread. Enabling
 * begins with the store's version of now and an empty history. Any time. */
void kinf__watchcache_set_enabled(struct kinf__watchcache *cache, bool enabled);

/* --- feeding --- */

/* To hand to kinf__informer_set_sink(). Without an informer: call its function after each write of
 * the indexer, from one thread at a time. Wake and waiters' callbacks run on that thread. */
struct kinf__sink kinf__watchcache_sink(struct kinf__watchcache *cache);

/* What time does: events and held versions that became too old go, waiters time out. For whoever
 * serves; callbacks run on its thread. Returns when it is due again, `now_ms` if as soon as may be,
 * but for what kinf__watchcache_set_on_due()'s callback tells in the meantime. */
int64_t kinf__watchcache_tick(struct kinf__watchcache *cache, int64_t now_ms);

/* Told when a tick is due that the last one did not know of. Runs on any thread, with the cache's
 * lock held or not: it takes no lock. */
typedef void kinf__watchcache_due_cb(int64_t due_ms, void *ctx);

/* Before anybody waits or reads. */
void kinf__watchcache_set_on_due(struct kinf__watchcache *cache, kinf__watchcache_due_cb *on_due,
                                 void *ctx);

/* --- versions --- */

/* The version that readers are told, the same as kinf__watchcache_snapshot()'s; 0: the first list
 * is not in (not synced), or disabled. */
uint64_t kinf__watchcache_version(struct kinf__watchcache *cache);

/* A resourceVersion as a number: decimal, no leading zero, from 1 to 2^64-1; else 0. */
uint64_t kinf__watchcache_parse_rv(const char *rv);

/* Which state of the store a snapshot is. A server that went back gives numbers again, to other
 * states: those are of another lineage. */
struct kinf__store_version {
    uint64_t number;      /* the resourceVersion; 0: none */
    uint64_t lineage;     /* no two caches of a process share one; 0: it is not known */
    uint64_t n_bytes_out; /* the cache's own: what had left the store by then */
};

/* The version of the store that readers are told, with a reference for the caller; NULL if that is
 * 0. `ret_version` may be NULL. */
struct kinf_snapshot *kinf__watchcache_snapshot(struct kinf__watchcache *cache,
                                                struct kinf__store_version *ret_version);

/* Keeps a snapshot that came from here, with its version, for later pages, until it is too old or
 * too expensive; once held, holding it again changes nothing. That it could not be held (given up
 * before, disabled, of a server that went back) shows when it is asked for. */
void kinf__watchcache_hold(struct kinf__watchcache *cache, struct kinf_snapshot *snapshot,
                           const struct kinf__store_version *version, int64_t now_ms);

/* Exactly this version, of which the number and perhaps the lineage are known: the current or a held
 * one, with a reference for the caller; then *version is complete. Errors: KINF_ERR_EXPIRED (not
 * held, or no longer; of another lineage; without one, a number that the server has used before),
 * KINF_ERR_RV_TOO_LARGE (above the current one). */
KINF_MUST_CHECK int kinf__watchcache_snapshot_at(struct kinf__watchcache *cache,
                                                 struct kinf__store_version *version,
                                                 struct kinf_snapshot **ret_snapshot,
                                                 struct kinf_error *err);

/*
 * Waiting for a version without blocking: a waiter is the caller's and stays in place until its
 * callback ran or kinf__watchcache_cancel_wait() returned.
 */
struct kinf__version_waiter {
    /* set by the caller */
    uint64_t version;
    int64_t deadline_ms; /* on the clock of kinf__watchcache_tick() */
    /* `result` is 0 (it is reached), KINF_ERR_TIMEOUT, KINF_ERR_EXPIRED (the server went back) or
     * KINF_ERR_STOPPED (disabled). Once. May call the cache, and free the waiter. */
    void (*done)(struct kinf__version_waiter *waiter, int result, void *ctx);
    void *ctx;
    /* the cache's */
    struct kinf__list node;
    int result;
    bool is_waiting;
};

/* True if the version is reached: then the callback will not run. False: it will. */
KINF_MUST_CHECK bool kinf__watchcache_wait(struct kinf__watchcache *cache,
                                           struct kinf__version_waiter *waiter);
/* When it returns, the callback is not running and will not. Not from the callback. True if it will
 * never have run. */
bool kinf__watchcache_cancel_wait(struct kinf__watchcache *cache,
                                  struct kinf__version_waiter *waiter);

/* --- cursors --- */

/* The selection of a watch: an object is in it if every part that is set says so. The texts are
 * copied. */
struct kinf__watch_filter {
    const char *name_space; /* NULL or "": all */
    const char *name;       /* NULL: all; in `name_space`, or cluster-scoped without it */
    /* Only objects that have this value in this index of the indexer; NULL: all. With it the
     * cursor costs nothing for others' objects: `spec.nodeName=x` as {"byNodeName", "x"}. */
    const char *index;
    const char *index_value;
    /* Labels and fields; NULL: all. Depends on the object alone and calls nothing of the cache: it
     * runs on the feeding thread with the cache's lock held, and in kinf__watch_cursor_next(). 1: it
     * is selected; 0: it is not. Errors: KINF_ERR_NO_MEMORY. */
    int (*match)(const struct kinf_object *object, void *ctx);
    void *match_ctx; /* must outlive the cursor */
    bool wants_bookmarks;
};

/* X(enumerator, name on the wire) */
#define KINF__WATCH_EVENT_TYPES(X)                                                                 \
    X(KINF__WATCH_ADDED, "ADDED")                                                                  \
    X(KINF__WATCH_MODIFIED, "MODIFIED")                                                            \
    X(KINF__WATCH_DELETED, "DELETED")                                                              \
    X(KINF__WATCH_BOOKMARK, "BOOKMARK")

enum kinf__watch_event_type {
#define X(type, name) type,
    KINF__WATCH_EVENT_TYPES(X)
#undef X
};

const char *kinf__watch_event_type_to_string(enum kinf__watch_event_type type);

struct kinf__watch_event {
    enum kinf__watch_event_type type;
    /* The resourceVersion to tell in place of the object's own: in a DELETED they differ. */
    uint64_t version;
    const struct kinf_object *object; /* NULL: bookmark */
};

struct kinf__watch_cursor;

/* Calls for a call of kinf__watch_cursor_next(). Runs on whatever thread caused it, with no lock
 * held; may call the cache and its cursors, but not free this one. */
typedef void kinf__watch_wake_cb(void *ctx);

/* A cursor that is told what happens after `version`: any from the oldest that the history has, or
 * one in the future, where nothing is told up to it. The caller frees it. Errors: KINF_ERR_EXPIRED
 * (older; or of before the server went back, as far as that can be told), KINF_ERR_NOT_FOUND (no
 * such index), KINF_ERR_STATE (not synced, or disabled), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__watchcache_subscribe(struct kinf__watchcache *cache,
                                               const struct kinf__watch_filter *filter,
                                               uint64_t version, kinf__watch_wake_cb *wake,
                                               void *wake_ctx,
                                               struct kinf__watch_cursor **ret_cursor,
                                               struct kinf_error *err);
/* The same from now on, and the snapshot (with a reference for the caller) that is now: nothing is
 * lost between them. */
KINF_MUST_CHECK int kinf__watchcache_subscribe_now(struct kinf__watchcache *cache,
                                                   const struct kinf__watch_filter *filter,
                                                   kinf__watch_wake_cb *wake, void *wake_ctx,
                                                   struct kinf_snapshot **ret_snapshot,
                                                   struct kinf__watch_cursor **ret_cursor,
                                                   struct kinf_error *err);
/* When it returns, its wake callback is not running and will not. Not from that callback. NULL is
 * allowed. */
void kinf__watch_cursor_free(struct kinf__watch_cursor *cursor);

/* So many events of the history that are not for the cursor were looked at in one call; a call goes
 * on where the last one stopped. */
#define KINF__WATCH_CURSOR_PAUSED 2

/* The next event: 1 and it is written, its object borrowed until the next such call or the cursor is
 * freed; 0 if there is none now; KINF__WATCH_CURSOR_PAUSED: about a millisecond was spent. Disarms.
 * Errors: KINF_ERR_EXPIRED, from then on always; KINF_ERR_NO_MEMORY, and the event is lost to it. */
KINF_MUST_CHECK int kinf__watch_cursor_next(struct kinf__watch_cursor *cursor,
                                            struct kinf__watch_event *ret_event);

/* Asks for one wake-up, when next() has something to say again (an event, or that it expired). True
 * if that may be so already: then it is not armed, and next() is to be called at once. */
KINF_MUST_CHECK bool kinf__watch_cursor_arm(struct kinf__watch_cursor *cursor);

/* The version up to which this cursor was told everything: what a bookmark may say, and what a new
 * cursor may start from, so in the midst of a Replace one of before it. Never below the one that it
 * started from, and never falls; 0 once it has expired. */
uint64_t kinf__watch_cursor_progress(struct kinf__watch_cursor *cursor);

/* Whether it is to be freed without regard to the event that it is half way through (W7). It is woken
 * for that, by kinf__watchcache_tick(). Any thread. */
bool kinf__watch_cursor_is_given_up(struct kinf__watch_cursor *cursor);

/* --- state, for /debug/state and metrics --- */

struct kinf__watchcache_status {
    bool is_enabled;
    uint64_t version;        /* 0: not synced */
    uint64_t oldest_version; /* that a watch can start from */
    size_t n_events;         /* in the history */
    size_t history_bytes;
    size_t store_bytes; /* of the objects of the newest version */
    size_t n_pages;     /* versions held */
    size_t page_bytes;  /* that they keep in memory, about */
    size_t n_cursors;
    size_t n_waiters;
    uint64_t max_lag;             /* events that the slowest cursor has before it */
    int64_t max_lag_since_ms;     /* when the first of them came; 0: none */
    uint64_t n_events_total;      /* counters from here */
    uint64_t n_evicted_for_bytes; /* events */
    uint64_t n_evicted_for_age;   /* events */
    uint64_t n_pages_dropped;     /* for bytes or number, before their age */
    uint64_t n_restarts;          /* of the history: all cursors expired */
    uint64_t n_cursors_total;
    uint64_t n_cursors_expired;
    uint64_t n_cursors_given_up;
    uint64_t n_wakes;
    const char *last_restart_reason; /* static; "" if there was none */
};

void kinf__watchcache_status(struct kinf__watchcache *cache,
                             struct kinf__watchcache_status *ret_status);

/* As they were given, with the defaults. */
const struct kinf__watchcache_limits *kinf__watchcache_limits(const struct kinf__watchcache *cache);

/* An event of the history, as one who sees everything is told it. */
struct kinf__watch_recent_event {
    enum kinf__watch_event_type type;
    uint64_t version;
    int64_t at_ms;
    const struct kinf_object *object; /* a reference, the caller's */
};

/* The last `n_max` events of the history but bookmarks, the newest first; returns how many were
 * written. */
size_t kinf__watchcache_recent(struct kinf__watchcache *cache,
                               struct kinf__watch_recent_event *ret_events, size_t n_max);

struct kinf__watch_cursor_status {
    uint64_t lag_events; /* that it has before it, of all selections */
    int64_t lag_ms;      /* how long the oldest of them waits */
    uint64_t n_told;     /* events that next() gave */
    bool is_armed;
    bool has_expired;
};

/* Any thread. */
void kinf__watch_cursor_status(struct kinf__watch_cursor *cursor, int64_t now_ms,
                               struct kinf__watch_cursor_status *ret_status);

/* NULL if the cache is as it should be, else what is wrong. Not while it is being fed. */
const char *kinf__watchcache_check(struct kinf__watchcache *cache);

#endif
