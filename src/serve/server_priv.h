/*
 * The server's insides, shared by server.c (sources), server_time.c, exchange.c (one request),
 * resource.c (objects and lists), catalog.c (discovery) and state.c (health, metrics).
 *
 * Threads: as each member says.
 */
#ifndef KINF_SERVE_SERVER_PRIV_H
#define KINF_SERVE_SERVER_PRIV_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/thread.h"
#include "base/timers.h"
#include "serve/connections.h"
#include "serve/digest.h"
#include "serve/last_hour.h"
#include "serve/request_metrics.h"
#include "serve/scope.h"
#include "serve/server.h"
#include "serve/session.h"
#include "serve/tunnel.h"

/* What else is done when the timer ticks, under the server's lock; it must not block. Returns when it
 * is due again, but for what kinf__server_expect() is told in the meantime. */
struct kinf__tick_hook {
    int64_t (*tick)(int64_t now_ms, void *ctx);
    void *ctx;
    struct kinf__list node;
};

void kinf__server_add_hook(struct kinf__server *server, struct kinf__tick_hook *hook);
void kinf__server_remove_hook(struct kinf__server *server, struct kinf__tick_hook *hook);

/* Something is due at `due_ms` that the last tick did not know of; 0: as soon as may be. Takes no
 * lock. Any thread. */
void kinf__server_expect(struct kinf__server *server, int64_t due_ms);

struct kinf__source {
    /* constant */
    const struct kinf_type *type;
    struct kinf_informer *informer; /* NULL: `store` */
    struct kinf__store_source store;
    struct kinf__watchcache *cache;
    struct kinf__scope scope;
    char **index_names;
    char **index_paths;
    size_t n_indices;
    bool is_pruned;
    bool assume_scope;
    enum kinf__consistency consistency;
    bool is_on_demand;
    bool is_unserved;
    bool serves_saved;
    /* atomic; the server's or static */
    _Atomic(const struct kinf__table *) table;
    /* its own lock */
    struct kinf__session session;
    /* guarded by the server's lock */
    char name[3 * KINF_NAME_MAX]; /* unique: "pods", "deployments.apps:NAMESPACE", "pods-2" */
    uint64_t number;              /* published ones in their order: 1, 2, ... */
    size_t n_users;
    uint64_t n_events_sampled; /* that the last hour knows of */
    struct kinf__list
        watches;             /* exchanges that watch, in order; debug_state.c keeps places in it */
    int64_t used_ms;         /* when it was chosen last; 0: never */
    bool has_passed_watches; /* since it was late: they end when it is not any more */
    int64_t withdrawn_ms;    /* 0: it is not */
    bool is_retired;
    bool has_definition;
    unsigned char definition[KINF__DIGEST_SIZE]; /* of what `table` was made from */
};

/* Of a definition of a custom resource. */
struct kinf__defined_table {
    const struct kinf_type *type;
    unsigned char definition[KINF__DIGEST_SIZE];
    struct kinf__table *table;
};

struct kinf__server {
    /* constant after creation */
    int64_t max_staleness_ms;
    struct kinf__forwarder *forwarder;     /* NULL: nothing is passed on */
    struct kinf__tunnels *tunnels;         /* likewise */
    const struct kinf__backend *backend;   /* NULL: nothing is written */
    struct kinf__demand *demand;           /* NULL: no types are cached but those that are named */
    kinf__log_request_cb *log_request;     /* NULL: there is no access log */
    kinf__write_metrics_cb *write_metrics; /* NULL: there are no others */
    kinf__write_state_cb *write_state;     /* likewise */
    void *program_ctx;
    void *log_ctx;
    const char *name;
    uint32_t token_issuer;
    struct kinf__authorizer *authorizer; /* of its addresses; NULL: none */
    int64_t started_ms;
    pthread_t timer;
    struct kinf__waker time_changed;      /* wakes the timer's thread */
    int hang_ups;                         /* an epoll of peers that must not go unseen */
    struct kinf__connections connections; /* of its endpoints */
    struct kinf__mutex lock;
    struct kinf__cond changed; /* for who waits until nothing uses a source */
    /* guarded by lock */
    struct kinf__source **sources; /* published ones, and behind them the others */
    size_t n_sources;              /* published */
    size_t n_unpublished;
    const struct kinf_type **pruned; /* that were ever published with fields left out */
    size_t n_pruned;
    struct kinf__catalog *catalog;      /* NULL: not yet */
    struct kinf__defined_table *tables; /* kept until the end, since watches write by them */
    size_t n_tables;
    struct kinf__list exchanges;
    struct kinf__list hooks;
    struct kinf__timers timers; /* of watches */
    struct kinf__last_hour last_hour;
    uint64_t n_published; /* sources, ever */
    size_t n_exchanges;
    uint64_t n_requests;
    uint64_t n_refused;
    uint64_t n_passed;
    uint64_t n_crowded; /* refused, since too many were passed on */
    uint64_t n_lists_cut_off;
    /* atomic */
    _Atomic(bool) is_stopping;
    _Atomic(bool) is_time_over;
    _Atomic(int64_t) next_tick_ms; /* nothing is due before */
    _Atomic(uint64_t) n_log_dropped;
    _Atomic(size_t) n_answer_bytes; /* of writes, that are being read */
    /* its own lock */
    struct kinf__request_metrics request_metrics;
};

/* Ends watches that were passed on since this source was late: their clients come back to it. The lock
 * is held. */
void kinf__server_call_watches_back(struct kinf__server *server, struct kinf__source *source);

/* server_time.c: its thread. Errors: KINF_ERR_SYSTEM, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__server_begin_time(struct kinf__server *server, struct kinf_error *err);
void kinf__server_end_time(struct kinf__server *server);

#endif
