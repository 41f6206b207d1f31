/*
 * One HTTP exchange at a time, over TLS, with every way to end it early.
 *
 * A kinf__http belongs to one thread and holds at most one connection. kinf__http_perform() blocks
 * and hands the body to a callback as it comes; it ends when the response ends, when a time is
 * over, or at once when the waker is set. What goes over the wire is transport.h's.
 *
 * Threads: one thread per object; the waker may be set from any.
 */
#ifndef KINF_REST_HTTP_H
#define KINF_REST_HTTP_H

#include <kinformer/client.h>
#include <kinformer/str.h>

#include "base/buffer.h"
#include "base/thread.h"
#include "rest/head.h"

/* Of a request, beside those that each has. */
#define KINF__HTTP_MORE_HEADERS 4

struct kinf__http;

/* `waker` is borrowed and must outlive the object. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__http_new(struct kinf_client *client, struct kinf__waker *waker,
                                   struct kinf__http **ret_http, struct kinf_error *err);
/* Closes the connection. NULL is allowed. */
void kinf__http_free(struct kinf__http *http);

/* Closes the connection, so that the next exchange makes a new one (after 401, after a silent
 * peer). */
void kinf__http_disconnect(struct kinf__http *http);

/* A piece of a 2xx response's body, inflated. A negative return ends the exchange and is returned
 * by it, with the error that the callback wrote. */
typedef int kinf__http_body_cb(const char *bytes, size_t len, void *ctx, struct kinf_error *err);

/* A body that is kept whole, up to a limit: for on_head, on_body and ctx of a request. Errors:
 * KINF_ERR_LIMIT, KINF_ERR_NO_MEMORY. */
struct kinf__http_body {
    struct kinf__buffer *bytes;
    size_t max_len;
    int http_status;
};
void kinf__http_body_begin(int http_status, void *ctx);
KINF_MUST_CHECK int kinf__http_body_keep(const char *bytes, size_t len, void *ctx,
                                         struct kinf_error *err);

struct kinf__http_request {
    const char *method;   /* default: GET; POST with a body */
    const char *target;   /* "/api/v1/pods?watch=1" */
    bool is_query_secret; /* what is behind its '?' is not logged */
    /* What is sent; bytes NULL: nothing. Never sent a second time once a part of it went out, even
     * if the connection turns out to be dead: the server may have acted. */
    struct kinf_str body;
    const char *content_type;           /* of it */
    const char *accept;                 /* default: application/json */
    const struct kinf__header *headers; /* more of them; KINF__HTTP_MORE_HEADERS at most */
    size_t n_headers;
    bool accept_gzip; /* otherwise identity; gzip, also in several members, is understood anyway */
    int64_t head_timeout_ms;  /* from the request to the end of the response's head, or of a refusal
                                 to its end; 0: none */
    int64_t idle_timeout_ms;  /* between two pieces of the response; 0: none */
    int64_t total_timeout_ms; /* with the wait for a credential; 0: none */
    kinf__http_body_cb *on_body;
    void (*on_head)(int http_status,
                    void *ctx); /* of a 2xx response, before its body; may be NULL */
    /* All that is here was handed out; called before each wait and at the end; may be NULL. */
    void (*on_pause)(void *ctx);
    /* Asked when the certificates that the connection was made with are outdated: whether the
     * exchange may end here, as if the server had ended it. NULL: never. */
    bool (*may_end)(void *ctx);
    void *ctx;
};

/* Returns 0 when a 2xx response came to its proper end (the last chunk, or all of Content-Length).
 * Errors:
 *   KINF_ERR_STOPPED      the waker is set
 *   KINF_ERR_TIMEOUT      one of the three times is over (message says which), or the first or the
 *                         last before there is a credential
 *   KINF_ERR_NETWORK      resolve, connect, send, receive; a body cut short
 *   KINF_ERR_TLS          handshake or verification, with OpenSSL's reason
 *   KINF_ERR_UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, EXISTS (also 409 to a POST that gives no
 *   reason), EXPIRED (410), RV_TOO_LARGE, TOO_MANY_REQUESTS, SERVER: the response was no success; message from its Status (a Status is
 *                         looked for whatever the Content-Type says); http_status and
 *                         retry_after_ms are set
 *   KINF_ERR_CONFIG       the token's file has none
 *   KINF_ERR_UNAUTHORIZED also, with http_status 0: the credential plugin gave nothing
 *   KINF_ERR_PARSE        a compressed body that is none
 *   KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM
 *   and what on_body returned.
 * Every message of the network and the server names the server's host. */
KINF_MUST_CHECK int kinf__http_perform(struct kinf__http *http,
                                       const struct kinf__http_request *request,
                                       struct kinf_error *err);

/* Whether the response under way, or the last one, has JSON by its Content-Type, or says nothing: pages
 * of proxies come with 200, too. `bytes` is how its body begins. Errors: KINF_ERR_PROTOCOL, with that, and
 * without the host. */
KINF_MUST_CHECK int kinf__http_check_json(const struct kinf__http *http, const char *bytes,
                                          size_t len, struct kinf_error *err);

/* "name:port" of the server, for messages, and the client's limit for a short request. */
const char *kinf__http_host(const struct kinf__http *http);
int64_t kinf__http_request_timeout_ms(const struct kinf__http *http);

#endif
