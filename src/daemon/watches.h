/*
 * All resources of the configuration at work, and why the daemon should end.
 *
 * Owner: the daemon. Threads: the main thread, unless a line says otherwise.
 */
#ifndef KINF_DAEMON_WATCHES_H
#define KINF_DAEMON_WATCHES_H

#include <stdatomic.h>

#include "base/lock.h"
#include "base/thread.h"
#include "daemon/config.h"
#include "daemon/handlers.h"
#include "daemon/output.h"
#include "daemon/serving.h"
#include "daemon/watch.h"

struct kinf__watches {
    /* constant after start */
    struct kinf_client *client;
    struct kinf__serving *serving;     /* NULL: nothing listens */
    struct kinf__state_keeper *keeper; /* NULL: nothing is kept */
    struct kinf__daemon_handlers handlers;
    struct kinf__output output;
    enum kinf__events_mode events_mode;
    bool events_objects;
    struct kinf__waker *wake; /* the main thread looks again; any thread sets it */
    /* the main thread's; others may read them while it waits for what they bring */
    struct kinf__config config;
    struct kinf__config started; /* what the daemon was started with, once `config` is another */
    bool is_reloaded;
    struct kinf__watch **items; /* one for each resource of config, in its order */
    size_t n_items;
    /* atomic */
    _Atomic(bool) are_running;    /* everything has synced once */
    _Atomic(bool) misses_one;     /* the server said 404 to one that runs */
    _Atomic(bool) is_catalog_due; /* what is told of the server was kept from before */
    /* guarded by lock */
    struct kinf__mutex lock;
    struct kinf_error failure; /* why to end; code 0: go on */
};

/* Makes what the configuration asks for; it does not run yet. Any thread. */
KINF_MUST_CHECK int kinf__watches_make(struct kinf__watches *watches,
                                       const struct kinf__resource_config *resource,
                                       struct kinf__watch **ret_watch, struct kinf_error *err);
/* Whether it is one of these. */
bool kinf__watches_have(const struct kinf__watches *watches, const struct kinf__watch *watch);
bool kinf__watches_have_synced(const struct kinf__watches *watches);
bool kinf__watches_are_ready(const struct kinf__watches *watches); /* each, as one is */

/* Starts those that are new. On failure they are to be freed: what ran before goes on. Errors:
 * kinf_informer_start()'s. */
KINF_MUST_CHECK int kinf__watches_start(const struct kinf__watches *watches,
                                        struct kinf__watch *const *items, size_t n,
                                        struct kinf_error *err);
/* Puts `take_items`, which run, in place of what ran, for the resources of `take_config` (NULL: for the
 * same as before): what is not wanted any more goes. */
void kinf__watches_exchange(struct kinf__watches *watches, struct kinf__watch **take_items,
                            struct kinf__config *take_config);

/* What the daemon was started with: some of it changes only by a restart. */
const struct kinf__config *kinf__watches_started(const struct kinf__watches *watches);

/* The reason to end, unless there is one. Any thread. */
void kinf__watches_fail(struct kinf__watches *watches, const struct kinf_error *err);
/* Returns the failure's code, 0 if there is none. */
int kinf__watches_failure(struct kinf__watches *watches, struct kinf_error *err);

#endif
