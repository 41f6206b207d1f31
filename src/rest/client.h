/*
 * The client's insides, for http.c and the reflector.
 *
 * Threads: as said at each member.
 */
#ifndef KINF_REST_CLIENT_H
#define KINF_REST_CLIENT_H

#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <kinformer/client.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/rate_limit.h"
#include "base/thread.h"
#include "rest/credentials.h"
#include "rest/discovery_cache.h"
#include "rest/kubeconfig.h"

#define KINF__MAX_IDLE_CONNECTIONS 4

struct kinf_client {
    /* constant after creation */
    struct kinf__cluster_config config;
    char *host;    /* "name:port" of the server, for messages */
    bool is_https; /* otherwise no credential is sent */
    char *user_agent;
    int64_t connect_timeout_ms;
    int64_t request_timeout_ms;
    struct kinf__waker interrupted;
    struct sockaddr_un local; /* where the server is, if local_len is not 0; else the network */
    socklen_t local_len;

    struct kinf__mutex users_lock;
    /* guarded by users_lock */
    struct kinf__list users; /* informers, by a node of theirs */

    struct kinf__mutex controllers_lock;
    /* guarded by controllers_lock */
    struct kinf__list controllers; /* likewise */

    _Atomic(size_t) n_holders; /* atomic: informers and factories that have it, calls that run */

    struct kinf__credentials credentials; /* has its own lock */

    struct kinf__discovery_cache discovery; /* has its own lock */

    struct kinf__mutex requests_lock;
    /* guarded by requests_lock */
    struct kinf__rate_limit rate_limit;
    struct kinf__http *idle[KINF__MAX_IDLE_CONNECTIONS]; /* connections for the next requests */
    size_t n_idle;
};

/* Until it is let go as often as it was held, kinf_client_free() is refused. */
static inline void kinf__client_hold(struct kinf_client *client)
{
    atomic_fetch_add_explicit(&client->n_holders, 1, memory_order_relaxed);
}
static inline void kinf__client_let_go(struct kinf_client *client)
{
    atomic_fetch_sub_explicit(&client->n_holders, 1, memory_order_release);
}
/* Logs why when it is true. */
bool kinf__client_is_held(struct kinf_client *client);

/* Informers that run are known to it. */
void kinf__client_add_user(struct kinf_client *client, struct kinf__list *node);
void kinf__client_remove_user(struct kinf_client *client, struct kinf__list *node);
/* Controllers likewise. */
void kinf__client_add_controller(struct kinf_client *client, struct kinf__list *node);
void kinf__client_remove_controller(struct kinf_client *client, struct kinf__list *node);

/* A client of a server in this process: plain HTTP over unix sockets; no configuration is read.
 * Errors: KINF_ERR_UNSUPPORTED, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__client_new_local(const struct sockaddr_un *address, socklen_t address_len,
                                           struct kinf_client **ret_client, struct kinf_error *err);
/* One of a server that no kubeconfig names; site.h says which. Errors: as kinf_client_new(). */
KINF_MUST_CHECK int kinf__client_new_of(struct kinf__cluster_config *take_config,
                                        int64_t connect_timeout_ms, struct kinf_client **ret_client,
                                        struct kinf_error *err);

#endif
