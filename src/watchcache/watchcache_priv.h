/*
 * The cache's insides, shared by watchcache.c (life, state), feed.c (what the sink is told),
 * versions.c (snapshots, pages, waiters), cursor.c (watches) and wake.c (whom an event concerns).
 *
 * Threads: as each member says; functions as their names do (_locked: the caller holds the lock).
 */
#ifndef KINF_WATCHCACHE_WATCHCACHE_PRIV_H
#define KINF_WATCHCACHE_WATCHCACHE_PRIV_H

#include "base/hmap.h"
#include "base/lock.h"
#include "indexer/snapshot.h"
#include "watchcache/history.h"
#include "watchcache/watchcache.h"

/* --- whom an event concerns --- */

enum kinf__bucket_type {
    KINF__BUCKET_ALL,
    KINF__BUCKET_KEY,
    KINF__BUCKET_NAMESPACE, /* with its slash */
    KINF__BUCKET_INDEX,
    KINF__N_BUCKET_TYPES
};

/* Cursors that only objects with this value concern. Lives as long as it has cursors. */
struct kinf__bucket {
    struct kinf__hmap_node node;
    enum kinf__bucket_type type;
    uint32_t index; /* KINF__BUCKET_INDEX: its number */
    size_t n_cursors;
    struct kinf__list armed; /* struct kinf__watch_cursor.armed_node */
    size_t len;
    char value[]; /* len bytes and a NUL */
};

struct kinf__watch_cursor {
    /* constant */
    struct kinf__watchcache *cache;
    struct kinf__bucket *bucket;
    char *key; /* of the one object, or the namespace with its slash; NULL: all */
    size_t key_len;
    bool is_one_key;
    char *index_value; /* NULL: all */
    uint32_t index;
    int (*match)(const struct kinf_object *object, void *ctx);
    void *match_ctx;
    bool wants_bookmarks;
    kinf__watch_wake_cb *wake;
    void *wake_ctx;

    /* guarded by the cache's lock */
    struct kinf__list node;       /* in the cache's cursors */
    struct kinf__list armed_node; /* in its bucket's armed ones, in the cache's woken ones, alone */
    bool is_armed;
    bool has_expired;
    uint64_t epoch; /* of the history that `next` is of */
    uint64_t next;  /* number of the event to look at next; armed: at least the cache's `asked` */
    uint64_t after; /* what is not above this version is not told */
    uint64_t seen;  /* nothing up to this version is missing; at least `after` */
    uint64_t progress; /* the most that was ever answered */
    bool is_given_up;

    /* atomic */
    _Atomic(uint64_t) n_told;
    /* Has the object that was given last. Its own thread sets it, and takes it back under the lock:
     * whoever holds that may look. */
    _Atomic(struct kinf__entry *) held;
};

/* A held version. */
struct kinf__page {
    struct kinf_snapshot *snapshot;
    struct kinf__store_version version;
    int64_t since_ms;   /* not above that of a younger one */
    uint64_t last_read; /* the cache's count then; or when it was held */
};

struct kinf__watchcache {
    /* constant */
    struct kinf_indexer *indexer;
    struct kinf__watchcache_limits limits;
    kinf__watchcache_due_cb *on_due; /* NULL: nobody is told */
    void *due_ctx;

    struct kinf__mutex lock;
    struct kinf__cond call_ended;
    /* guarded by lock */
    struct kinf_snapshot *current; /* NULL: disabled */
    uint64_t version;              /* of it */
    uint64_t lineage;              /* of it */
    uint64_t suspect_version;      /* up to this, the server has used versions twice */
    uint64_t epoch;                /* counts the history's beginnings */
    struct kinf__history history;
    uint64_t asked; /* events before this number have woken whom they concern */

    struct kinf__list cursors; /* the oldest first */
    size_t n_cursors;
    struct kinf__hmap buckets; /* all but `everybody` */
    size_t n_buckets[KINF__N_BUCKET_TYPES];
    struct kinf__bucket *everybody;

    size_t store_bytes;       /* of the objects of `current` */
    struct kinf__page *pages; /* the oldest first; room for one more than the limit */
    size_t n_pages;
    uint64_t n_page_reads;
    uint64_t given_up_version; /* the highest of those that were given up for a limit */
    uint64_t n_bytes_out;      /* bytes of all that was ever taken out of the store */

    struct kinf__list waiters;
    size_t n_waiters;
    uint64_t lowest_awaited; /* not above any waiter's */

    struct kinf__list woken;   /* cursors whose callback is to run */
    struct kinf__list ended;   /* waiters whose callback is to run */
    struct kinf__list running; /* callbacks that do: struct kinf__running_call */

    struct kinf__watchcache_status counts; /* its counters alone */

    /* atomic */
    _Atomic(size_t) held_bytes; /* of the objects that cursors hold, each counted as often */
};

/* --- watchcache.c --- */

/* Tells who ticks. */
void kinf__watchcache_expect(const struct kinf__watchcache *cache, int64_t due_ms);

/* Begins the history anew at the version of now; every cursor expires, and who was armed is to be
 * woken. The caller releases the result once it has unlocked. `reason` is static. */
struct kinf__history kinf__watchcache_restart_locked(struct kinf__watchcache *cache,
                                                     const char *reason)
    KINF__REQUIRES(cache->lock);

/* --- versions.c --- */

/* The bytes that held versions keep in memory, about: all that left the store since the oldest. */
size_t kinf__pages_bytes_locked(const struct kinf__watchcache *cache) KINF__REQUIRES(cache->lock);
/* Gives up what is too old or above the limit of bytes. */
void kinf__pages_expire_locked(struct kinf__watchcache *cache, int64_t now_ms)
    KINF__REQUIRES(cache->lock);
/* From here on numbers may stand for other states than before: no page is read any more. */
void kinf__lineage_begin_locked(struct kinf__watchcache *cache) KINF__REQUIRES(cache->lock);

/* Ends those whose version is reached. */
void kinf__waiters_note_version_locked(struct kinf__watchcache *cache) KINF__REQUIRES(cache->lock);
/* Returns when the next of them times out. */
int64_t kinf__waiters_note_time_locked(struct kinf__watchcache *cache, int64_t now_ms)
    KINF__REQUIRES(cache->lock);
void kinf__waiters_end_all_locked(struct kinf__watchcache *cache, int result)
    KINF__REQUIRES(cache->lock);

/* --- cursor.c --- */

/* Whoever is to begin in there expires, and is woken. */
void kinf__cursors_pass_gap_locked(struct kinf__watchcache *cache, struct kinf__history_gap gap)
    KINF__REQUIRES(cache->lock);

bool kinf__entry_has_value(const struct kinf__entry *entry, uint32_t index, struct kinf_str value);
/* As a filter's `match`, and its key and value; NULL is not selected. */
KINF_MUST_CHECK int kinf__watch_cursor_sees(const struct kinf__watch_cursor *cursor,
                                            const struct kinf__entry *entry);
/* Whether cursors hold so much that some may have to be given up. */
bool kinf__cursors_hold_much(struct kinf__watchcache *cache);
/* Gives up those who hold the oldest, as W7 says. */
void kinf__cursors_bound_stalled_locked(struct kinf__watchcache *cache) KINF__REQUIRES(cache->lock);
/* How many events it has before it. */
uint64_t kinf__watch_cursor_lag_locked(const struct kinf__watchcache *cache,
                                       const struct kinf__watch_cursor *cursor)
    KINF__REQUIRES(cache->lock);

/* --- wake.c --- */

/* The bucket of a filter, counted for one more cursor. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__bucket_join_locked(struct kinf__watchcache *cache,
                                             enum kinf__bucket_type type, uint32_t index,
                                             struct kinf_str value,
                                             struct kinf__bucket **ret_bucket)
    KINF__REQUIRES(cache->lock);
void kinf__bucket_leave_locked(struct kinf__watchcache *cache, struct kinf__bucket *bucket)
    KINF__REQUIRES(cache->lock);

/* The callback of an armed cursor is to run. */
void kinf__wake_locked(struct kinf__watchcache *cache, struct kinf__watch_cursor *cursor)
    KINF__REQUIRES(cache->lock);
/* Finds whom the events that nobody was asked about concern, as long as the history is of `epoch`.
 * Takes the lock for one event after the other. */
void kinf__wake_concerned(struct kinf__watchcache *cache, uint64_t epoch);

/* Runs the callbacks that are to run. With no lock held. */
void kinf__run_calls(struct kinf__watchcache *cache);
/* Waits until no callback of this cursor or waiter runs. */
void kinf__await_call_locked(struct kinf__watchcache *cache, const void *whose)
    KINF__REQUIRES(cache->lock);

#endif
