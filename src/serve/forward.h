/*
 * Requests of others, carried to the server as they are and answered as it answers.
 *
 * A forwarder is one thread with connections of its own. They are made to the client's server, with
 * its authority, its tls-server-name and its proxy, but never with the client's certificate, token
 * or password: a request goes out with the headers that it was given, and no others. Bodies pass
 * through buffers of a fixed size; whoever does not take or bring bytes holds up its own request and
 * nothing else.
 *
 * Nobody takes it all: a caller has a share of the places, and so have all together whom the server
 * has not accepted yet (places.h). Accepted is who got an answer of 2xx or 403.
 *
 * If a request for another protocol is answered by a 101, body and answer are what is sent and received
 * by that from then on, at the same time.
 *
 * Ended are: requests to which no answer begins in time, answers that are silent for too long while
 * their reader wants more, and any whose peer is found dead (connection.h: within a minute). How long
 * its owner may take over a body or an answer is not the forwarder's business.
 *
 * Threads: a forwarder, any; a forward, one at a time, but for kinf__forward_end(). The wake
 * callback runs on the forwarder's thread, with its lock held.
 */
#ifndef KINF_SERVE_FORWARD_H
#define KINF_SERVE_FORWARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <kinformer/client.h>
#include <kinformer/str.h>

#include "base/metrics.h"
#include "rest/head.h"

struct kinf__forwarder;
struct kinf__forward;

/* 0: the default. */
struct kinf__forwarder_options {
    size_t max_forwards;      /* at once; 256 */
    size_t max_of_one;        /* of them for one caller; a quarter */
    size_t max_of_strangers;  /* of them for callers that were not accepted yet; a half */
    int64_t head_limit_ms;    /* from the end of a request, or its last byte, to the head; 75 s */
    int64_t silence_limit_ms; /* between two pieces of an answer; 75 s */
};

#define KINF__FORWARDER_OPTIONS_INIT                                                               \
    {                                                                                              \
        0                                                                                          \
    }

/* `client` is borrowed. Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__forwarder_new(struct kinf_client *client,
                                        const struct kinf__forwarder_options *options,
                                        struct kinf__forwarder **ret_forwarder,
                                        struct kinf_error *err);
/* How many there are at once; each has a connection. */
size_t kinf__forwarder_max(const struct kinf__forwarder *forwarder);
/* Every forward has been freed. NULL is allowed. */
void kinf__forwarder_free(struct kinf__forwarder *forwarder);

struct kinf__forwarder_status {
    size_t n_forwards;      /* under way */
    uint64_t n_connections; /* that were made */
};

void kinf__forwarder_status(struct kinf__forwarder *forwarder,
                            struct kinf__forwarder_status *ret_status);
/* How long the server took until it answered; the forwarder's own. */
const struct kinf__histogram *kinf__forwarder_latency(const struct kinf__forwarder *forwarder);

struct kinf__forward_request {
    const char *method;
    struct kinf_str target;             /* one that was parsed; printable, without '#' */
    const struct kinf__header *headers; /* all that is sent beside Host and the body's length */
    size_t n_headers;
    int64_t body_len;        /* 0: none; KINF__CHUNKED: not known */
    struct kinf_str caller;  /* who asks, as the server would tell callers apart */
    bool is_endless;         /* its answer may be silent for any time, as a watch */
    bool is_upgrade;         /* of no body: it asks for another protocol (rest/transport.h) */
    void (*wake)(void *ctx); /* look again: there is room, a head, a piece, the end */
    void *wake_ctx;
};

/* Everything of the request is copied; of the caller a digest. Errors: KINF_ERR_LIMIT (too many at
 * once, with the reason), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__forward_new(struct kinf__forwarder *forwarder,
                                      const struct kinf__forward_request *request,
                                      struct kinf__forward **ret_forward, struct kinf_error *err);
/* Leaves the exchange, wherever it is. After this no wake callback runs. NULL is allowed. */
void kinf__forward_free(struct kinf__forward *forward);

/* Ends it before its time: what is received already can be read up to the last line's end. The wake
 * callback runs. Any thread. */
void kinf__forward_end(struct kinf__forward *forward);

/* Takes a piece of the request's body. Returns how much of it; 0: no room now. Once there is an
 * answer, other than a 101, or an error all is taken, and dropped. */
size_t kinf__forward_send(struct kinf__forward *forward, const char *bytes, size_t len);
void kinf__forward_end_body(struct kinf__forward *forward);

/* Returns 1 and the head, the forward's own; 0: not there yet; or negative, there will be none:
 * KINF_ERR_NETWORK, KINF_ERR_TLS, KINF_ERR_SYSTEM, KINF_ERR_NO_MEMORY, KINF_ERR_TIMEOUT,
 * KINF_ERR_STOPPED (kinf__forward_end()). */
KINF_MUST_CHECK int kinf__forward_head(struct kinf__forward *forward,
                                       const struct kinf__head **ret_head, struct kinf_error *err);

/* Whether the server may have acted on a request without a head: a part of it went out. */
bool kinf__forward_is_sent(struct kinf__forward *forward);

#define KINF__FORWARD_END    (-1) /* the answer is complete */
#define KINF__FORWARD_BROKEN (-2) /* it will never be */

/* After the head. Returns how many bytes of the answer's body it wrote; 0: none now. */
ssize_t kinf__forward_read(struct kinf__forward *forward, char *buf, size_t size);

#endif
