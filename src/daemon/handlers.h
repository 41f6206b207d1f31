/*
 * The configured handlers at work: who is told what of the resources that are watched.
 *
 * Owner: the daemon. Threads: the main thread, unless a line says otherwise.
 */
#ifndef KINF_DAEMON_HANDLERS_H
#define KINF_DAEMON_HANDLERS_H

#include "daemon/config.h"
#include "daemon/lease.h"
#include "handlers/handler.h"
#include "serve/report.h"

struct kinf__running_handler {
    struct kinf__handler_config config; /* its plugin_config is the main thread's, after start */
    struct kinf__handler *handler;
};

/* Constant after start, but for what a reload changes. */
struct kinf__daemon_handlers {
    struct kinf__running_handler *items;
    size_t n_items;
    struct kinf__daemon_lease *lease; /* NULL: they run all the time */
};

/* With a Lease they run whenever that is led, and nobody asks for it before
 * kinf__daemon_handlers_stand(). Errors: of the kinds' new, kinf__daemon_lease_new()'s,
 * KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__daemon_handlers_start(struct kinf__daemon_handlers *handlers,
                                                const struct kinf__config *config,
                                                struct kinf_client *client, struct kinf_error *err);
/* Stands for the Lease, if there is one. Errors: KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__daemon_handlers_stand(struct kinf__daemon_handlers *handlers,
                                                struct kinf_error *err);
/* What of them changes by a reload: a plugin's file, and its configuration, if there is a new one. NULL:
 * all came by flags. What does not succeed is logged. Returns whether there is a plugin. */
bool kinf__daemon_handlers_reload(struct kinf__daemon_handlers *handlers,
                                  const struct kinf__config *config);
/* Says it by name when one is slow. */
void kinf__daemon_handlers_look(struct kinf__daemon_handlers *handlers);
/* Begins their end; kinf__daemon_handlers_stop() waits for it, for about three seconds at most, and two
 * more to hand over. It returns false if one did not end: the process has to end without it, and without
 * exit(), which would take its libraries from under it. */
void kinf__daemon_handlers_interrupt(struct kinf__daemon_handlers *handlers);
bool kinf__daemon_handlers_stop(struct kinf__daemon_handlers *handlers);
/* After their feeds. */
void kinf__daemon_handlers_release(struct kinf__daemon_handlers *handlers);

/* What a resource is told by. */
struct kinf__handler_feeds {
    struct kinf__outbox_feed **items; /* of each handler that wants it */
    size_t n_items;
};

/* `configured` is how the configuration names it, `name` how lines do. Any thread. Errors:
 * KINF_ERR_NO_MEMORY; the owner releases what there is. */
KINF_MUST_CHECK int kinf__daemon_handlers_make_feeds(const struct kinf__daemon_handlers *handlers,
                                                     const char *configured, const char *name,
                                                     struct kinf__handler_feeds *feeds,
                                                     struct kinf_error *err);
void kinf__handler_feeds_join(const struct kinf__handler_feeds *feeds);
void kinf__handler_feeds_open(const struct kinf__handler_feeds *feeds);
void kinf__handler_feeds_release(struct kinf__handler_feeds *feeds);

/* A kinf__write_metrics_cb and a kinf__write_state_cb (serve/server.h) of the handlers. Any thread. */
KINF_MUST_CHECK int kinf__daemon_handlers_write_metrics(struct kinf__buffer *out, void *ctx);
void kinf__daemon_handlers_report(struct kinf__report *report, void *ctx);

#endif
