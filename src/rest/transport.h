/*
 * Requests to the client's server and their answers, any number at once on one thread.
 *
 * A transport has the connections, a round trip is one request and its answer: it is prepared,
 * added, performed, and ends by itself or is left; then it can be prepared again. It says which
 * headers and credentials go out, and its callbacks have the bodies and the end; who waits is the
 * thread's business. HTTP/1.1 only, no redirects, no cookies, proxies as the configuration says.
 *
 * Threads: one thread per transport and what is added to it, the callbacks included, which call
 * nothing of this; a round trip that is not added, one at a time.
 */
#ifndef KINF_REST_TRANSPORT_H
#define KINF_REST_TRANSPORT_H

#include <stdatomic.h>
#include <sys/types.h>

#include <kinformer/client.h>

#include "base/list.h"
#include "base/thread.h"
#include "rest/credentials.h"
#include "rest/head.h"

struct kinf__upgrade;

struct kinf__transport {
    void *multi; /* curl's */
    struct kinf__list trips;
    struct curl_waitfd *waits;       /* for the waker, and the upgrades among the trips */
    size_t n_waits;                  /* that there is room for */
    _Atomic(uint64_t) n_connections; /* that were made; any thread */
};

/* Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__transport_init(struct kinf__transport *transport, struct kinf_error *err);
/* Closes the connections, while nothing is added. Adding makes new ones. One that is all zero is
 * allowed. */
void kinf__transport_release(struct kinf__transport *transport);

/* Does what can be done without waiting. Bytes may come faster than they are taken: limits, and the
 * wakers of those that have one, are looked at meanwhile. */
void kinf__transport_perform(struct kinf__transport *transport);
/* Ends the wait of whoever waits, or the next one. Any thread. */
void kinf__transport_wake(struct kinf__transport *transport);
/* Waits until there is more to do, the waker is set, or that time has come, or for no reason now and
 * then. Round trips whose time is over end here, and those that the waker stops. */
void kinf__transport_wait(struct kinf__transport *transport, struct kinf__waker *waker,
                          int64_t until_ms);

#define KINF__ROUNDTRIP_MESSAGE_SIZE 256 /* of curl */
#define KINF__ROUNDTRIP_PAUSE        1   /* not now: called again after kinf__roundtrip_resume() */

struct kinf__roundtrip_ops {
    /* Writes up to `room` bytes of the request's body and returns how many, or the negative of
     * KINF__ROUNDTRIP_PAUSE. No byte is asked for a second time. */
    ssize_t (*on_send)(char *bytes, size_t room, void *ctx);
    /* The head of the final answer; it is the round trip's until that is prepared again. Returns
     * whether it is what was asked for: otherwise the head's limit is that of the body, too. */
    bool (*on_head)(const struct kinf__head *head, void *ctx);
    /* Returns 0, KINF__ROUNDTRIP_PAUSE (nothing was taken), or a negative code that ends it. */
    int (*on_body)(const char *bytes, size_t len, void *ctx, struct kinf_error *err);
    /* It is over and not added any more. `code` is 0 when the answer came to its end, whatever its
     * status is; what on_body returned; or
     *   KINF_ERR_STOPPED, KINF_ERR_TIMEOUT (a limit, which the message names; no connection),
     *   KINF_ERR_NETWORK, KINF_ERR_TLS, KINF_ERR_SYSTEM (no socket), KINF_ERR_NO_MEMORY. */
    void (*on_end)(int code, const struct kinf_error *err, void *ctx);
};

/* 0: none. */
struct kinf__limits {
    int64_t head_ms; /* from the start, or the last byte that was sent, to the end of the head */
    int64_t idle_ms; /* between two pieces of the answer, while somebody wants them */
    int64_t total_ms;
    int64_t total_from_ms; /* when that began; 0: when it is added */
};

struct kinf__roundtrip_request {
    const char *method;
    struct kinf_str target; /* printable, without '#' */
    bool has_body;
    int64_t body_len; /* KINF__CHUNKED: not known */
    bool is_upgrade;  /* of a foreign request, with Upgrade among its headers; sends Connection */
    /* All that is sent beside Host, the user agent, the body's length and the credential. */
    const struct kinf__header *headers;
    size_t n_headers;
    /* Borrowed until the next is prepared. Token and impersonation go to servers with https:// alone.
     * NULL: nothing of the client's is shown, and its authority is trusted. */
    const struct kinf__credential *credential;
    struct kinf__limits limits;
    const struct kinf__waker *stop; /* borrowed; NULL: none */
};

/* Stays where it is from init to release. */
struct kinf__roundtrip {
    /* for its owner to read, and is_held to write */
    struct kinf__head head;
    bool is_held; /* silence is nobody's loss now: its taker has not taken all yet */
    bool is_sent; /* the server may have seen something of it; once it is over */

    /* the transport's own; constant after creation */
    struct kinf_client *client;
    const struct kinf__roundtrip_ops *ops;
    void *ctx;
    void *easy; /* curl's */

    /* of the request */
    struct curl_slist *headers, *connect_to;
    struct kinf__credential *authority; /* a foreign request's: the handle has its text */
    struct kinf__upgrade *upgrade;      /* NULL: curl has the connection */
    struct kinf__limits limits;
    const struct kinf__waker *stop;

    struct kinf__transport *transport; /* NULL: it is not added */
    struct kinf__list node;
    bool is_accepted; /* the head is */
    bool may_repeat;  /* it changes nothing */
    bool has_begun;   /* it was about to be sent, on some connection */
    bool has_body;
    bool is_body_begun; /* something of it was handed out */
    bool is_send_paused;
    bool is_receive_paused;
    int64_t started_ms;
    int64_t sent_ms; /* the last piece of it */
    int64_t received_ms;
    int64_t looked_ms; /* at the limits */
    int code;          /* what ended it from inside; 0: nothing did */
    int socket_errno;  /* why there was no socket, if descriptors ran out; curl does not tell */
    char message[KINF__ROUNDTRIP_MESSAGE_SIZE];
    struct kinf_error failure;
};

/* `user_agent` NULL: none. `buffer_bytes` is what is handed out at once. The client and `ctx` are
 * borrowed. Errors: KINF_ERR_NO_MEMORY; it is to be released all the same. */
KINF_MUST_CHECK int kinf__roundtrip_init(struct kinf__roundtrip *trip, struct kinf_client *client,
                                         const char *user_agent, long buffer_bytes,
                                         const struct kinf__roundtrip_ops *ops, void *ctx,
                                         struct kinf_error *err);
/* Leaves it before. One that is all zero is allowed. */
void kinf__roundtrip_release(struct kinf__roundtrip *trip);

/* Everything of the request is copied but what is borrowed. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__roundtrip_prepare(struct kinf__roundtrip *trip,
                                            const struct kinf__roundtrip_request *request,
                                            struct kinf_error *err);
/* Errors: KINF_ERR_NO_MEMORY; it is not added then. */
KINF_MUST_CHECK int kinf__roundtrip_add(struct kinf__roundtrip *trip,
                                        struct kinf__transport *transport, struct kinf_error *err);
/* Takes it out; on_end is not called. Nothing happens if it is not added. */
void kinf__roundtrip_leave(struct kinf__roundtrip *trip);

/* What a callback paused. */
void kinf__roundtrip_resume(struct kinf__roundtrip *trip);

#endif
