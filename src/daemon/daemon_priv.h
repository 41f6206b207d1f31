/*
 * The daemon's insides, shared by daemon.c (its life) and errand.c (what it asks the API server
 * meanwhile).
 *
 * Threads: the main thread, unless a line says otherwise.
 */
#ifndef KINF_DAEMON_DAEMON_PRIV_H
#define KINF_DAEMON_DAEMON_PRIV_H

#include <stdatomic.h>

#include "base/lock.h"
#include "base/thread.h"
#include "daemon/daemon.h"
#include "daemon/serving.h"
#include "daemon/watch.h"

/* What the API server is asked while the daemon runs. It may take its time, and the service manager
 * wants to be told in time that the main thread lives: so another thread asks. */
struct kinf__errand {
    pthread_t thread;
    bool is_under_way; /* the thread is to be joined */
    bool is_reload;    /* else the columns alone are asked for */
    int64_t columns_ms;
    uint64_t columns_watches; /* how many watches had begun when the columns were asked for */
    /* the thread's until is_done */
    struct kinf__config config;
    struct kinf__watch **watches; /* those of `config`; the daemon's own among them */
    int failed;
    struct kinf_error err;
    /* atomic */
    _Atomic(bool) is_done;
};

struct kinf__daemon {
    const struct kinf__options *options;
    struct kinf__config config;
    struct kinf_client *client;
    struct kinf__serving *serving; /* NULL: nothing listens */
    struct kinf__watch **watches;  /* one for each resource of config, in its order */
    size_t n_watches;
    struct kinf__output output;
    struct kinf__errand errand;
    /* constant after start */
    enum kinf__events_mode events_mode;
    bool events_objects;
    struct kinf__waker *wake; /* the main thread looks again; any thread sets it */
    /* atomic */
    _Atomic(bool) is_running; /* everything has synced once */
    /* guarded by lock */
    struct kinf__mutex lock;
    struct kinf_error failure; /* why to end; code 0: go on */
};

/* Makes what the configuration asks for; it does not run yet. Also on the errand's thread. */
KINF_MUST_CHECK int kinf__daemon_make_watch(struct kinf__daemon *daemon,
                                            const struct kinf__resource_config *resource,
                                            struct kinf__watch **ret_watch, struct kinf_error *err);
/* The reason to end, unless there is one. Any thread. */
void kinf__daemon_fail(struct kinf__daemon *daemon, const struct kinf_error *err);

/* Begins to take over the configuration file as it is now. None is under way. What is wrong with the
 * file is logged, and nothing changes. */
void kinf__errand_reload(struct kinf__daemon *daemon);
/* Begins to ask for the columns of custom resources again, if there may be others. None is under
 * way. */
void kinf__errand_refresh_columns(struct kinf__daemon *daemon);
/* Takes over what a finished errand brought. */
void kinf__errand_finish(struct kinf__daemon *daemon);
/* Ends one that is under way, and drops what it brought. Nobody else waits for the client. */
void kinf__errand_end(struct kinf__daemon *daemon);

#endif
