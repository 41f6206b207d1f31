/*
 * The client's insides, for http.c and the reflector.
 *
 * Threads: as said at each member.
 */
#ifndef KINF_REST_CLIENT_H
#define KINF_REST_CLIENT_H

#include <kinformer/client.h>

#include "base/thread.h"
#include "rest/credentials.h"
#include "rest/kubeconfig.h"

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
};

#endif
