/*
 * The daemon's serving side: the server, what it listens at, and the kubeconfig for its clients.
 *
 * Owner: the daemon. Threads: the main thread.
 */
#ifndef KINF_DAEMON_SERVING_H
#define KINF_DAEMON_SERVING_H

#include <kinformer/client.h>

#include "daemon/client_kubeconfig.h"
#include "daemon/config.h"
#include "daemon/handlers.h"
#include "daemon/state_keeper.h"
#include "serve/demand.h"
#include "serve/server.h"

/* For its owner but the server, which is for who adds sources and asks for definitions. */
struct kinf__serving {
    struct kinf__forwarder *forwarder; /* NULL: nothing is passed on */
    struct kinf__server *server;
    struct kinf__endpoint **endpoints;
    size_t n_endpoints;
    struct kinf__authorizer *authorizer;        /* NULL: none */
    struct kinf__access_log *access_log;        /* NULL: none */
    struct kinf__client_kubeconfig *kubeconfig; /* NULL: none */
    struct kinf__demand demand;                 /* the server's, if there is a forwarder */
    /* told of in metrics and state */
    struct kinf__daemon_handlers *handlers;
    struct kinf__state_keeper *keeper; /* NULL: none */
};

/* Whether tokens of others may be passed on to this server. Errors: KINF_ERR_CONFIG (they would go over
 * plain HTTP). */
KINF_MUST_CHECK int kinf__serving_check_upstream(const struct kinf_client *client,
                                                 struct kinf_error *err);
/* Nothing listens yet. `handlers` and `keeper` (NULL: none) are told of in metrics and state. `client` is
 * borrowed, for what is passed on; `wake` is set when a type is asked for that is not cached. Errors: KINF_ERR_NO_MEMORY,
 * KINF_ERR_SYSTEM, kinf__serving_check_upstream()'s. */
KINF_MUST_CHECK int kinf__serving_new(const struct kinf__config *config, struct kinf_client *client,
                                      struct kinf__waker *wake,
                                      struct kinf__daemon_handlers *handlers,
                                      struct kinf__state_keeper *keeper,
                                      struct kinf__serving **ret_serving, struct kinf_error *err);
/* A file that was renamed is left. */
void kinf__serving_reopen_log(struct kinf__serving *serving);
/* After a change of what it is made of; looked at from time to time. */
void kinf__serving_refresh_kubeconfig(struct kinf__serving *serving);
/* Ends every request within a bound, and listening; sources go afterwards, before
 * kinf__serving_free(). NULL is allowed. */
void kinf__serving_stop(struct kinf__serving *serving);
void kinf__serving_free(struct kinf__serving *serving); /* NULL is allowed */

/* Asks the upstream what it has (again, after a reload), and how custom resources are shown. Any
 * thread, one at a time. Errors: kinf__catalog_fetch()'s. */
KINF_MUST_CHECK int kinf__serving_refresh(struct kinf__serving *serving, struct kinf_client *client,
                                          struct kinf_error *err);

/* Until then this is what there is. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__serving_use_types(struct kinf__serving *serving,
                                            const struct kinf_type *const *types, size_t n_types,
                                            struct kinf_error *err);

/* Listens at every address of the configuration, then writes the kubeconfig that the options ask for,
 * for the first TCP one. `client` asks for reviews, the options are needed as long as it, too. Errors:
 * kinf__endpoint_start()'s, kinf__authorizer_start()'s, kinf__client_kubeconfig_new()'s. */
KINF_MUST_CHECK int kinf__serving_listen(struct kinf__serving *serving,
                                         const struct kinf__config *config,
                                         struct kinf_client *client,
                                         const struct kinf__options *given, struct kinf_error *err);

#endif
