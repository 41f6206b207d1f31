/*
 * A forward's insides, shared by forward.c (the owner's side), forward_curl.c (the handle and what
 * it calls) and forward_thread.c (the thread that drives all handles).
 *
 * Threads: as each member says. Only the thread touches a handle once it is in the list; what curl
 * has paused is therefore resumed by a mark and a wake-up.
 */
#ifndef KINF_REST_FORWARD_PRIV_H
#define KINF_REST_FORWARD_PRIV_H

#include <curl/curl.h>

#include "base/buffer.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/thread.h"
#include "rest/client.h"
#include "rest/forward.h"
#include "rest/places.h"

#define KINF__FORWARD_BUFFER_BYTES (64u << 10)
#define KINF__FORWARD_HEADERS_MAX  64

struct kinf__forwarder {
    /* constant */
    struct kinf_client *client;
    int64_t head_limit_ms;
    int64_t silence_limit_ms;
    pthread_t thread;
    struct kinf__waker waker;
    CURLM *multi; /* the thread's */
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list forwards;
    struct kinf__places places;
    bool is_ended;
};

struct kinf__forward {
    /* constant after creation */
    struct kinf__forwarder *forwarder;
    bool has_body;
    bool is_endless;
    struct curl_slist *sent_headers;
    struct curl_slist *connect_to;
    struct kinf__credential *credential; /* the handle has its authority */

    /* the thread's */
    CURL *easy;
    bool is_added;
    int socket_errno;
    char curl_message[CURL_ERROR_SIZE];

    /* guarded by the forwarder's lock */
    struct kinf__list node;
    struct kinf__caller *caller; /* whose place it has */
    void (*wake)(void *ctx);     /* NULL: the owner has left */
    void *wake_ctx;
    struct kinf__buffer in;  /* of the request's body */
    struct kinf__buffer out; /* of the answer's */
    bool is_body_complete;
    bool is_send_paused;
    bool is_receive_paused;
    bool wants_end;
    bool is_sent;
    int64_t last_byte_ms;
    struct kinf__header headers[KINF__FORWARD_HEADERS_MAX];
    size_t n_headers;
    int64_t body_len;
    bool is_chunked;
    int code;
    bool has_head;
    bool is_through;           /* curl is, or it never began */
    struct kinf_error failure; /* code 0: the answer is complete */
};

/* The lock is held. */
static inline void kinf__forward_wake_locked(struct kinf__forward *forward)
{
    if (forward->wake != NULL)
        forward->wake(forward->wake_ctx);
}

/* Makes the handle. Everything of the request is copied. Returns false when out of memory. */
KINF_MUST_CHECK bool kinf__forward_prepare(struct kinf__forward *forward,
                                           const struct kinf__forward_request *request);
/* Frees it, when no list has it. */
void kinf__forward_destroy(struct kinf__forward *forward);

/* The thread's body; `ctx` is the forwarder. Returns when it is ended and has no forwards. */
void *kinf__forwarder_run(void *ctx);

#endif
