/*
 * The client's insides, for http.c and the reflector.
 *
 * Threads: as said at each member.
 */
#ifndef KINF_REST_CLIENT_H
#define KINF_REST_CLIENT_H

#include <kinformer/client.h>

#include "base/lock.h"
#include "base/thread.h"
#include "rest/credentials.h"
#include "rest/discovery_reader.h"
#include "rest/kubeconfig.h"
#include "rest/rate_limit.h"

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

    struct kinf__credentials credentials; /* has its own lock */

    struct kinf__discovery_cache discovery; /* has its own lock */

    struct kinf__mutex requests_lock;
    /* guarded by requests_lock */
    struct kinf__rate_limit rate_limit;
    struct kinf__http *idle[KINF__MAX_IDLE_CONNECTIONS]; /* connections for the next requests */
    size_t n_idle;
};

#endif
