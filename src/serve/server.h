/*
 * What is served: sources (an informer's store and its watch cache, with the scope that they
 * cover), the upstream's catalog, and the requests under way. Transport is the listener's.
 *
 * Threads: any, unless a line says otherwise.
 */
#ifndef KINF_SERVE_SERVER_H
#define KINF_SERVE_SERVER_H

#include <kinformer/informer.h>

#include "serve/forward.h"
#include "serve/catalog.h"
#include "watchcache/watchcache.h"

/* Silence of less than this proves nothing: a quiet watch has a bookmark a minute, and may miss
 * one. */
#define KINF__SERVE_STALENESS_MIN_MS 180000

struct kinf__server;

struct kinf__authorizer;
struct kinf__backend;
struct kinf__demand;
struct kinf__report;

/* Takes a line of the access log; does not block. Returns how many were dropped since the last call, this one
 * included. Any thread, no lock of the server is held. */
typedef uint64_t kinf__log_request_cb(struct kinf_str line, void *ctx);

/* Appends the program's own metrics (base/metrics.h). Any thread, no lock of the server is held. Errors:
 * KINF_ERR_NO_MEMORY. */
typedef int kinf__write_metrics_cb(struct kinf__buffer *out, void *ctx);
/* Writes members of its own into the object that is /debug/state (serve/report.h). Any thread; the
 * server's lock is held, so it calls nothing of it. */
typedef void kinf__write_state_cb(struct kinf__report *report, void *ctx);

struct kinf__server_options {
    int64_t max_staleness_ms; /* for /readyz; 0: KINF__SERVE_STALENESS_MIN_MS */
    /* Takes writes; NULL: nothing does. Borrowed until the server is freed. */
    const struct kinf__backend *backend;
    const char *name;   /* of the program, in messages; a literal; NULL: "kinformerd" */
    const char *source; /* the URL of the server whose objects these are; NULL: its own */
    /* What is not cached is passed on by it; NULL: is refused. Borrowed until the server is freed. */
    struct kinf__forwarder *forwarder;
    /* Is told of types that no source has; NULL: nobody is. Borrowed until the server is freed. */
    struct kinf__demand *demand;
    kinf__log_request_cb *log_request; /* NULL: no request is logged */
    void *log_ctx;
    kinf__write_metrics_cb *write_metrics; /* NULL: there are no others */
    kinf__write_state_cb *write_state;     /* likewise */
    void *program_ctx;                     /* of both */
};

/* Starts the thread that keeps time. Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__server_new(const struct kinf__server_options *options,
                                     struct kinf__server **ret_server, struct kinf_error *err);
/* No listener uses it and no source is left. NULL is allowed. */
void kinf__server_free(struct kinf__server *server);

/* Replaces the catalog, which is consumed. Before the first one everything is 429. What did not
 * answer is as it was in the one before. */
void kinf__server_set_catalog(struct kinf__server *server, struct kinf__catalog *catalog);

/* A store that somebody writes who is no informer: then its writer tells the watch cache. */
struct kinf__store_source {
    const struct kinf_type *type;
    struct kinf_indexer *indexer; /* borrowed; outlives the source */
    /* Brings the watch cache to the version that is the newest of all types, since resourceVersions
     * are of the whole server. Called before each read, on any thread, without a lock. */
    void (*catch_up)(void *ctx);
    void *ctx;
};

/* What reads see that name no resourceVersion. X(enumerator, name, what) */
#define KINF__CONSISTENCIES(X)                                                                     \
    X(KINF__CONSISTENCY_SESSION, "session", "the writes that were passed on and answered before")  \
    X(KINF__CONSISTENCY_CACHE, "cache", "what the cache has")                                      \
    X(KINF__CONSISTENCY_LATEST, "latest", "all that was written: they are passed on")

enum kinf__consistency {
#define X(consistency, name, what) consistency,
    KINF__CONSISTENCIES(X)
#undef X
};

const char *kinf__consistency_to_string(enum kinf__consistency consistency);
/* Returns false if there is none of that name. */
bool kinf__consistency_parse(const char *name, enum kinf__consistency *ret_consistency);

/* One informer, or one store, that is served. Strings and arrays are copied. */
struct kinf__source_options {
    struct kinf_informer *informer; /* borrowed; in order, not started; NULL: `store` */
    struct kinf__store_source store;
    const char *name_space;     /* NULL: all */
    const char *label_selector; /* NULL: all */
    const char *field_selector;
    const char *shard_selector;
    const char *const *index_names;
    const char *const *index_paths;
    size_t n_indices;
    bool is_pruned;    /* fields are left out: answers carry a Warning */
    bool assume_scope; /* answers what is wider than the scope, with a Warning */
    enum kinf__consistency consistency;
    /* Nobody named it: it comes and goes, and other pages than its own are passed on. */
    bool is_on_demand;
    struct kinf__watchcache_limits limits;
    bool is_unserved; /* its state is told, nothing is answered from it */
    /* What the informer has of an earlier run is served, with a Warning, before the API server has
     * confirmed it (informer/saved.h); otherwise it is as if the first list were not in. */
    bool serves_saved;
};

struct kinf__source;

/* Makes its watch cache and sets the informer's sink. Nobody hears of it before it is published.
 * Errors: KINF_ERR_NO_MEMORY, and those of kinf__informer_set_sink(). */
KINF_MUST_CHECK int kinf__server_add_source(struct kinf__server *server,
                                            const struct kinf__source_options *options,
                                            struct kinf__source **ret_source,
                                            struct kinf_error *err);
/* The source's own, for who writes its store. */
struct kinf__watchcache *kinf__source_cache(const struct kinf__source *source);

/* From here on it answers, and has to be in sync for the server to be ready. Where two cover a
 * request, the one that was published first answers. Of one on demand, watches that were passed on so far
 * end behind their next event: their clients come back here. */
void kinf__server_publish_source(struct kinf__server *server, struct kinf__source *source);
/* No new request is answered from it from here on, and its watches end, as they do when their time is
 * over; what else is under way goes on. The informer still runs. */
void kinf__server_withdraw_source(struct kinf__server *server, struct kinf__source *source);

struct kinf__source_use {
    size_t n_users;   /* requests under way, watches included */
    size_t n_watches; /* that are served */
    int64_t last_ms;  /* monotonic; when it was chosen last; 0: never */
    uint64_t bytes;   /* of its store, its history and old versions, about */
};

void kinf__server_source_use(struct kinf__server *server, const struct kinf__source *source,
                             struct kinf__source_use *ret_use);
/* From here on nothing is answered from it: watches end. Waits for requests that use it; a client
 * that takes nothing is cut off after 2 s, or 2 s after it was withdrawn. The informer still runs. */
void kinf__server_retire_source(struct kinf__server *server, struct kinf__source *source);
/* After retiring, when its informer has stopped. NULL is allowed. */
void kinf__source_free(struct kinf__source *source);

/* Every watch that takes bookmarks gets one, which says how far it has been told. */
void kinf__server_want_bookmarks(struct kinf__server *server);

/* Who decides at its addresses: /readyz and /metrics tell of it. Before the first address; it outlives
 * the server. NULL is allowed. */
void kinf__server_set_authorizer(struct kinf__server *server, struct kinf__authorizer *authorizer);

/* Ends watches and waiting requests, refuses new ones, and waits up to 2 s until none is left. */
void kinf__server_stop(struct kinf__server *server);
/* Whether that has begun. Any thread. */
bool kinf__server_is_stopping(struct kinf__server *server);

/* Breaks the connection of every request under way, watches included. */
void kinf__server_cut_off(struct kinf__server *server);

/* Requests under way, watches included. For tests. */
size_t kinf__server_n_exchanges(struct kinf__server *server);

#endif
