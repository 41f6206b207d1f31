/*
 * Reading a server's discovery documents through the client's cache of them.
 *
 * One thread reads at a time, the others wait for their turn: what the first one fetched serves all.
 *
 * Mirrors: memory.NewMemCacheClient.
 * Threads: any thread; a reader belongs to one.
 */
#ifndef KINF_REST_DISCOVERY_READER_H
#define KINF_REST_DISCOVERY_READER_H

#include <kinformer/client.h>
#include <kinformer/str.h>

#include "base/buffer.h"
#include "base/lock.h"
#include "rest/documents.h"

/* What is read is asked for again at most this often. */
#define KINF__DISCOVERY_INTERVAL_MS 10000

/* How the server answers. */
enum kinf__discovery_form {
    KINF__DISCOVERY_UNKNOWN,    /* not asked yet */
    KINF__DISCOVERY_LEGACY,     /* a request for each document */
    KINF__DISCOVERY_AGGREGATED, /* all is there: what is not does not exist */
};

/* The client's. */
struct kinf__discovery_cache {
    struct kinf__mutex lock;
    struct kinf__cond changed;
    bool is_taken; /* guarded by lock: somebody's turn */
    /* - of whose turn it is */
    struct kinf__documents documents;
    enum kinf__discovery_form core, groups; /* what is below /api, and below /apis */
    int64_t begun_ms;                       /* with the first request */
};

void kinf__discovery_cache_init(struct kinf__discovery_cache *cache);
void kinf__discovery_cache_release(struct kinf__discovery_cache *cache);

struct kinf__discovery_reader;

/* Waits for the turn; asks for nothing yet. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__discovery_open(struct kinf_client *client,
                                         struct kinf__discovery_reader **ret_reader,
                                         struct kinf_error *err);
/* Gives the turn back. NULL is allowed. */
void kinf__discovery_close(struct kinf__discovery_reader *reader);

/* Forgets what was read, so that it is asked for again; returns false, and does not, while it is
 * younger than the interval. */
bool kinf__discovery_refresh(struct kinf__discovery_reader *reader);

/* *ret_text is valid until the reader refreshes or is closed. Errors: KINF_ERR_NOT_FOUND, KINF_ERR_SERVER (whose server
 * is away), KINF_ERR_LIMIT (above 16 MiB), and those of a request. */
KINF_MUST_CHECK int kinf__discovery_read(struct kinf__discovery_reader *reader, const char *target,
                                         struct kinf_str *ret_text, struct kinf_error *err);

#endif
