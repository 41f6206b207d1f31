/*
 * One version of a resource: an indexer and its watch cache, registered with the server as a source.
 *
 * Every write up to the newest version is in the feed, or owed to it; what is owed is written before
 * anything later is.
 *
 * Threads: the store's lock orders those who write; readers catch up without it. A feed has a lock of
 * its own, so that they do not wait for each other.
 */
#ifndef KINF_APISERVER_FEED_H
#define KINF_APISERVER_FEED_H

#include <stdatomic.h>

#include <kinformer/indexer.h>

#include "serve/server.h"
#include "watchcache/watchcache.h"

#define KINF__VERSION_SIZE 24

struct kinf__feed;
struct kinf__prune_plan;

/* What the feeds of a store share; constant but for the version. */
struct kinf__feeds {
    struct kinf__server *server; /* borrowed */
    struct kinf__watchcache_limits limits;
    struct kinf__prune_plan *plan;
    _Atomic(uint64_t) version; /* the newest; written under the store's lock, read by anyone */
};

/* A write, as one version of a resource sees it. */
struct kinf__feed_change {
    const struct kinf_object *object;
    bool is_removal; /* of what has its key */
    uint64_t version;
};

/* It is served from here on, empty. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__feed_new(const struct kinf__feeds *feeds, const struct kinf_type *type,
                                   struct kinf__feed **ret_feed, struct kinf_error *err);
/* Takes it out of the server. Without the store's lock: whoever answers from it may want that. */
void kinf__feed_retire(struct kinf__feed *feed);
/* After that. NULL is allowed. */
void kinf__feed_free(struct kinf__feed *feed);

struct kinf_indexer *kinf__feed_indexer(const struct kinf__feed *feed);

/* Writes what is owed. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__feed_settle(struct kinf__feed *feed, struct kinf_error *err);
/* A write is done once the first version has it, which is what everybody who writes reads; another one
 * that has no memory for it is owed it. `*ret_old` is what was there, with a reference. Errors:
 * KINF_ERR_NO_MEMORY, of the first one alone. */
KINF_MUST_CHECK int kinf__feed_write(struct kinf__feed *feed,
                                     const struct kinf__feed_change *change, bool is_first,
                                     const struct kinf_object **ret_old, struct kinf_error *err);
/* Brings the cache to the newest version. Any thread. */
void kinf__feed_catch_up(struct kinf__feed *feed);

/* A new version has what another one has; its history begins then. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__feed_fill(struct kinf__feed *feed, const struct kinf__feed *from,
                                    struct kinf_error *err);
/* Its history is forgotten. */
void kinf__feed_expire(struct kinf__feed *feed);
/* It has what the snapshot has (NULL: nothing), at that version. Whoever watches is told 410, as after
 * the restart that a restore is; from a version of the lost future on a watch is silent. */
KINF_MUST_CHECK int kinf__feed_restore(struct kinf__feed *feed,
                                       const struct kinf_snapshot *snapshot, uint64_t version);

/* A text without kind and apiVersion, as an object of a type. Errors: KINF_ERR_INVALID, KINF_ERR_LIMIT
 * (too large), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__feeds_decode(const struct kinf__feeds *feeds,
                                       const struct kinf_type *type, struct kinf_str text,
                                       const struct kinf_object **ret_object,
                                       struct kinf_error *err);
void kinf__print_version(uint64_t version, char text[KINF__VERSION_SIZE]);

#endif
