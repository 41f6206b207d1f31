/*
 * One configured resource at work: an informer for each of its namespaces (one for all, if none is
 * named), with the printing handler.
 *
 * Owner: the daemon. Threads: the main thread, unless a line says otherwise.
 */
#ifndef KINF_DAEMON_WATCH_H
#define KINF_DAEMON_WATCH_H

#include <stdatomic.h>

#include <kinformer/informer.h>

#include "daemon/config.h"
#include "daemon/events.h"
#include "daemon/handlers.h"
#include "daemon/state_keeper.h"
#include "serve/server.h"

/* What a watch tells the daemon. */
struct kinf__watch_owner {
    void (*on_synced)(void *ctx); /* all its informers are; on a listener's thread */
    /* A request failed; on a reflector's thread. Returns whether the daemon goes on. */
    bool (*on_error)(const char *resource, bool is_ready, const struct kinf_error *err, void *ctx);
    void (*on_output_failure)(const struct kinf_error *err, void *ctx); /* on a listener's thread */
    void *ctx;
};

/* What of a watch is an informer's. */
struct kinf__watch_part {
    struct kinf__watch *watch;
    /* the reflector's thread's */
    unsigned n_refusals; /* in a row */
    /* atomic */
    _Atomic(bool) is_settled; /* the feeds have had everything, or there is nothing to be had */
};

struct kinf__watch {
    /* constant after start */
    const struct kinf__resource_config *config; /* the daemon's; main sets it anew on a reload */
    struct kinf__watch_owner owner;
    struct kinf__events events;       /* mode KINF__EVENTS_NONE: nothing is printed */
    struct kinf__handler_feeds feeds; /* of the handlers that are told */
    char *resource;                   /* "pods", "deployments.apps" */
    struct kinf_informer **informers;
    struct kinf__watch_part *parts;    /* of the informers, in their order */
    struct kinf__source **sources;     /* likewise; NULL: not served */
    struct kinf__state_entry **states; /* likewise; NULL: not kept */
    size_t n_informers;
    struct kinf__server *server;       /* NULL: not served */
    struct kinf__state_keeper *keeper; /* NULL: nothing is kept */
    int64_t started_ns;
    /* atomic */
    _Atomic(size_t) n_unsynced;
    _Atomic(size_t) n_unsettled;
    _Atomic(size_t) n_fed;      /* informers of which the feeds have had everything */
    _Atomic(int64_t) synced_ns; /* 0: not yet */
};

/* Asks the server for the resource and makes the informers; they do not run yet. `server` NULL:
 * nothing is served; otherwise this is, unless the configuration says otherwise. `events` is copied, its resource and failure callback are the watch's. `handlers` (NULL: none) are told of it. `keeper` (NULL: none) keeps its stores.
 * Errors: those of kinf_informer_new(). */
KINF_MUST_CHECK int kinf__watch_new(struct kinf_client *client,
                                    const struct kinf__resource_config *config,
                                    const struct kinf__events *events,
                                    const struct kinf__daemon_handlers *handlers,
                                    const struct kinf__watch_owner *owner,
                                    struct kinf__server *server, struct kinf__state_keeper *keeper,
                                    struct kinf__watch **ret_watch, struct kinf_error *err);
/* From here on requests are answered from it, once it has synced, and handlers are told of it. Once. */
void kinf__watch_publish(struct kinf__watch *watch);
KINF_MUST_CHECK int kinf__watch_start(struct kinf__watch *watch, struct kinf_error *err);
/* Nothing more is printed of it, no new request is answered from it, and who reads it has two seconds:
 * many may end together. Before it is freed. */
void kinf__watch_withdraw(struct kinf__watch *watch);
/* Tells its threads to end, and waits for none. NULL is allowed. */
void kinf__watch_interrupt(struct kinf__watch *watch);
/* Stops and frees. NULL is allowed. */
void kinf__watch_free(struct kinf__watch *watch);

bool kinf__watch_has_synced(const struct kinf__watch *watch); /* any thread */
/* Or it serves what was kept, until it has. Any thread. */
bool kinf__watch_is_ready(const struct kinf__watch *watch);

/* Whether its resource is gone, with all its objects, and the name means another one by now: of
 * another version, say. Asks the server, if it is gone. Any thread. */
bool kinf__watch_is_outdated(const struct kinf__watch *watch, struct kinf_client *client);

#endif
