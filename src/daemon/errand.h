/*
 * What the API server is asked while the daemon runs. It may take its time, and the service manager
 * wants to be told in time that the main thread lives: so another thread asks, and what it brought
 * the main thread takes over.
 *
 * Owner: the daemon. Threads: the main thread, unless a line says otherwise.
 */
#ifndef KINF_DAEMON_ERRAND_H
#define KINF_DAEMON_ERRAND_H

#include <stdatomic.h>

#include "daemon/on_demand.h"
#include "daemon/options.h"
#include "daemon/watches.h"

enum kinf__errand_kind {
    KINF__ERRAND_RELOAD,    /* the configuration file as it is now */
    KINF__ERRAND_LOOK_UP,   /* what the names of resources mean that are gone */
    KINF__ERRAND_ON_DEMAND, /* types that were asked for */
    KINF__ERRAND_COLUMNS,   /* how custom resources are shown */
    KINF__ERRAND_CATALOG,   /* what it has, as at a start that did not ask, or asked too early */
};

struct kinf__errand {
    /* constant after start */
    const struct kinf__options *options;
    struct kinf__watches *watches;
    struct kinf__on_demand *on_demand;
    /* the main thread's */
    pthread_t thread;
    bool is_under_way; /* the thread is to be joined */
    int64_t columns_ms;
    int64_t catalog_ms;       /* not before */
    uint64_t columns_watches; /* how many watches had begun when the columns were asked for */
    /* the thread's until is_done */
    enum kinf__errand_kind kind;
    struct kinf__config config; /* of a reload */
    const struct kinf__config
        *asked; /* the same, or the watches' own; NULL: no watches of the configuration */
    struct kinf__watch **items; /* those of `asked`; those that run among them */
    int failed;
    struct kinf_error err;
    /* atomic */
    _Atomic(bool) is_done;
};

/* None is under way. Begins whatever is called for: to take over the configuration file (what is
 * wrong with it is logged, and nothing changes), to look up what is missed, to make what is cached on
 * demand, to ask what the server has if the start did not, or to ask for the columns of custom
 * resources again, if there may be others. */
void kinf__errand_begin(struct kinf__errand *errand, bool is_reload);
/* Takes over what a finished errand brought. */
void kinf__errand_finish(struct kinf__errand *errand);
/* Ends one that is under way, and drops what it brought. Nobody else waits for the client. */
void kinf__errand_end(struct kinf__errand *errand);

#endif
