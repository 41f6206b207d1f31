/*
 * What a client's server said of its resources, kept: whoever finds one by kinf_client_find_type().
 *
 * One thread reads at a time, the others wait for their turn: what the first one asked for serves
 * all.
 *
 * Mirrors: memory.NewMemCacheClient.
 * Threads: any thread; a reader belongs to one.
 */
#ifndef KINF_REST_DISCOVERY_CACHE_H
#define KINF_REST_DISCOVERY_CACHE_H

#include <stdint.h>

#include <kinformer/client.h>

#include "base/lock.h"
#include "rest/discovery.h"

/* What was read is asked for again at most this often. */
#define KINF__DISCOVERY_INTERVAL_MS 10000

/* The client's. */
struct kinf__discovery_cache {
    struct kinf__mutex lock;
    struct kinf__cond changed;
    bool is_taken; /* guarded by lock: somebody's turn */
    /* - of whose turn it is */
    struct kinf__discovery table;
    int64_t begun_ms; /* when the table was empty last */
};

void kinf__discovery_cache_init(struct kinf__discovery_cache *cache);
void kinf__discovery_cache_release(struct kinf__discovery_cache *cache);

/* Whose turn it is. */
struct kinf__discovery_reader {
    struct kinf__discovery_cache *cache;
    struct kinf__discovery_source source; /* the server, on a connection of its own */
};

/* Waits for the turn; asks for nothing yet. Errors, after which it is closed: those of
 * kinf__http_new(). */
KINF_MUST_CHECK int kinf__discovery_open(struct kinf_client *client,
                                         struct kinf__discovery_reader *ret_reader,
                                         struct kinf_error *err);
void kinf__discovery_close(struct kinf__discovery_reader *reader);

/* Empties the table, so that all is asked for again; returns false, and does not, while it is younger
 * than the interval. */
bool kinf__discovery_refresh(struct kinf__discovery_reader *reader);

/* As kinf_client_find_type(), but what was read a while ago (KINF__DISCOVERY_INTERVAL_MS) is asked
 * for again first: a name may mean another version by now. */
KINF_MUST_CHECK int kinf__discovery_find_anew(struct kinf_client *client, const char *resource,
                                              const struct kinf_type **ret_type,
                                              struct kinf_error *err);

/* A source's ask: `ctx` is a kinf__http. Errors: KINF_ERR_LIMIT (an answer above 16 MiB), those of
 * kinf__http_perform(). */
KINF_MUST_CHECK int kinf__discovery_ask(void *ctx, const char *target, const char *accept,
                                        struct kinf__buffer *answer, struct kinf_error *err);

#endif
