/*
 * The client's insides, for http.c and the reflector.
 *
 * Threads: as said at each member.
 */
#ifndef KINF_REST_CLIENT_H
#define KINF_REST_CLIENT_H

#include <kinformer/client.h>

#include "base/buffer.h"
#include "base/lock.h"
#include "base/thread.h"
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

    /* guarded by lock */
    struct kinf__mutex lock;
    char *token; /* the last one read from token_file */
    int64_t token_read_ms;
};

/* Appends "Authorization: Bearer ..." (or Basic) to `header`, or nothing when there is no such
 * credential. The token file is read again when the last reading is older than a minute, or at once
 * if `refresh` (after a 401); unreadable or empty keeps the last token. */
KINF_MUST_CHECK int kinf__client_authorization(struct kinf_client *client, bool refresh,
                                               struct kinf__buffer *header, struct kinf_error *err);

#endif
