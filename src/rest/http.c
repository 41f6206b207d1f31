/*
 * One round trip of ours, waited for. Neighbours: transport.h carries it, inflate.h undoes gzip,
 * status.h reads a refusal.
 *
 * Invariant: the round trip is in the transport only while kinf__http_perform() runs.
 */
#include "rest/http.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "rest/client.h"
#include "rest/connection.h"
#include "rest/inflate.h"
#include "rest/status.h"
#include "rest/transport.h"

#define RECEIVE_BUFFER_BYTES (256 * 1024L)
#define REFUSAL_MAX_BYTES    65536 /* of a body that is no success */
#define EXCERPT_BYTES        100   /* of a body that is no JSON */
#define LOOK_MS              10000 /* between looks at certificates */

struct kinf__http {
    struct kinf_client *client;
    struct kinf__waker *waker;
    struct kinf__transport transport;
    struct kinf__roundtrip trip;
    struct kinf__credential *credential;   /* of the last request; the trip borrows it */
    struct kinf__credential_holder holder; /* of that, while an exchange may be left */
    int64_t next_look_ms;                  /* whether it is outdated */
    bool is_outdated;
    _Atomic(bool) is_look_due;     /* before that */
    struct kinf__inflate *inflate; /* made when first needed */

    /* the exchange that runs */
    const struct kinf__http_request *request;
    struct kinf_error *err;
    size_t n_sent; /* of the request's body */
    bool is_gzip;
    struct kinf__buffer refusal;
    bool is_through;
    int code; /* once it is through */
};

/* --- what the transport calls --- */

static bool is_success(const struct kinf__http *http)
{
    return http->trip.head.code >= 200 && http->trip.head.code < 300;
}

static bool on_head(const struct kinf__head *head, void *ctx)
{
    struct kinf__http *http = ctx;

    http->is_gzip = strcasecmp(kinf__head_value(head, "Content-Encoding"), "gzip") == 0;
    if (!is_success(http))
        return false;
    if (http->request->on_head != NULL)
        http->request->on_head(head->code, http->request->ctx);
    return true;
}

/* Inflated bytes of any response. A refusal that does not end is left when it is long enough. */
static int take_body(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct kinf__http *http = ctx;
    size_t room = REFUSAL_MAX_BYTES - http->refusal.len;

    if (is_success(http))
        return http->request->on_body(bytes, len, http->request->ctx, err);
    if (kinf__buffer_append(&http->refusal, bytes, len < room ? len : room) < 0)
        return kinf__error_no_memory(err);
    return http->refusal.len < REFUSAL_MAX_BYTES ? 0 : KINF_ERR_LIMIT;
}

static int on_body(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct kinf__http *http = ctx;
    int failed = 0;

    if (!http->is_gzip)
        return take_body(bytes, len, http, err);
    if (http->inflate == NULL)
        failed = kinf__inflate_new(&http->inflate, err);
    return failed < 0 ? failed
                      : kinf__inflate_feed(http->inflate, bytes, len, take_body, http, err);
}

static ssize_t on_send(char *bytes, size_t room, void *ctx)
{
    struct kinf__http *http = ctx;
    struct kinf_str body = http->request->body;
    size_t left = body.len - http->n_sent;
    size_t len = left < room ? left : room;

    memcpy(bytes, body.bytes + http->n_sent, len);
    http->n_sent += len;
    return (ssize_t)len;
}

static void on_end(int code, const struct kinf_error *err, void *ctx)
{
    struct kinf__http *http = ctx;

    http->is_through = true;
    http->code = code;
    if (code < 0 && err->code != 0 && http->err != NULL)
        *http->err = *err;
}

static const struct kinf__roundtrip_ops ops = { on_send, on_head, on_body, on_end };

/* --- life --- */

static void look_soon(void *ctx)
{
    struct kinf__http *http = ctx;

    atomic_store(&http->is_look_due, true);
    kinf__transport_wake(&http->transport);
}

int kinf__http_new(struct kinf_client *client, struct kinf__waker *waker,
                   struct kinf__http **ret_http, struct kinf_error *err)
{
    struct kinf__http *http = calloc(1, sizeof *http);
    int failed;

    if (http == NULL)
        return kinf__error_no_memory(err);
    http->client = client;
    http->waker = waker;
    http->holder = (struct kinf__credential_holder){ .wake = look_soon, .ctx = http };
    if ((failed = kinf__transport_init(&http->transport, err)) < 0 ||
        (failed = kinf__roundtrip_init(&http->trip, client, client->user_agent,
                                       RECEIVE_BUFFER_BYTES, &ops, http, err)) < 0) {
        kinf__http_free(http);
        return failed;
    }
    *ret_http = http;
    return 0;
}

void kinf__http_free(struct kinf__http *http)
{
    if (http == NULL)
        return;
    kinf__roundtrip_release(&http->trip);
    kinf__transport_release(&http->transport);
    kinf__credential_unref(http->credential);
    kinf__inflate_free(http->inflate);
    kinf__buffer_release(&http->refusal);
    free(http);
}

void kinf__http_disconnect(struct kinf__http *http)
{
    kinf__transport_release(&http->transport);
}

/* --- one exchange --- */

static const char *method_of(const struct kinf__http_request *request)
{
    if (request->method != NULL)
        return request->method;
    return request->body.bytes != NULL ? "POST" : "GET";
}

static const char *or_json(const char *media_type)
{
    return media_type != NULL ? media_type : "application/json";
}

static int loggable_len(const struct kinf__http_request *request)
{
    return (int)(request->is_query_secret ? strcspn(request->target, "?")
                                          : strlen(request->target));
}

static void begin(struct kinf__http *http, const struct kinf__http_request *request,
                  struct kinf_error *err)
{
    http->request = request;
    http->err = err;
    http->n_sent = 0;
    http->is_gzip = false;
    http->refusal.len = 0;
    http->is_through = false;
    http->code = 0;
    if (http->inflate != NULL)
        kinf__inflate_reset(http->inflate);
    KINF__LOG(KINF__LOG_REST, KINF_LOG_DEBUG, "%s %.*s host=%s", method_of(request),
              loggable_len(request), request->target, http->client->host);
}

/* Returns how many there are; there is room for three, and more. */
static size_t gather_headers(const struct kinf__http_request *request, struct kinf__header *headers)
{
    size_t n = 0;

    headers[n++] = (struct kinf__header){ "Accept", or_json(request->accept) };
    headers[n++] =
        (struct kinf__header){ "Accept-Encoding", request->accept_gzip ? "gzip" : "identity" };
    if (request->body.bytes != NULL)
        headers[n++] = (struct kinf__header){ "Content-Type", or_json(request->content_type) };
    assert(request->n_headers <= KINF__HTTP_MORE_HEADERS);
    for (size_t i = 0; i < request->n_headers; i++)
        headers[n++] = request->headers[i];
    return n;
}

/* How long it may wait for a credential. */
static int64_t patience_ms(const struct kinf__http_request *request)
{
    int64_t wait_ms = request->head_timeout_ms, total_ms = request->total_timeout_ms;

    if (wait_ms == 0 || (total_ms != 0 && total_ms < wait_ms))
        wait_ms = total_ms;
    return wait_ms != 0 ? wait_ms : KINF__NEVER_MS;
}

/* A connection that was made with other certificates is closed. */
static int prepare(struct kinf__http *http, const struct kinf__http_request *request,
                   int64_t began_ms)
{
    struct kinf__header headers[3 + KINF__HTTP_MORE_HEADERS];
    struct kinf__roundtrip_request own = {
        .method = method_of(request),
        .target = kinf_str_from(request->target),
        .has_body = request->body.bytes != NULL,
        .body_len = (int64_t)request->body.len,
        .headers = headers,
        .n_headers = gather_headers(request, headers),
        .limits = { request->head_timeout_ms, request->idle_timeout_ms, request->total_timeout_ms,
                    began_ms },
        .stop = http->waker,
    };
    struct kinf__credential *before = http->credential;
    int failed =
        kinf__credentials_take(&http->client->credentials, kinf__moment_now(), patience_ms(request),
                               http->waker, &http->credential, http->err);

    if (failed < 0)
        return failed;
    if (before != NULL && before->tls_number != http->credential->tls_number)
        kinf__http_disconnect(http);
    own.credential = http->credential;
    failed = kinf__roundtrip_prepare(&http->trip, &own, http->err);
    kinf__credential_unref(before);
    return failed;
}

/* Whether the exchange is to be left for a connection with other certificates. */
static bool is_to_be_left(struct kinf__http *http, int64_t now_ms)
{
    const struct kinf__http_request *request = http->request;

    if (request->may_end == NULL || !is_success(http) ||
        (!atomic_load_explicit(&http->is_look_due, memory_order_relaxed) &&
         now_ms < http->next_look_ms))
        return false;
    atomic_store(&http->is_look_due, false);
    http->next_look_ms = now_ms + LOOK_MS;
    http->is_outdated = kinf__credentials_are_outdated(&http->client->credentials, http->credential,
                                                       kinf__moment_now());
    return http->is_outdated && request->may_end(request->ctx);
}

/* When to look next, if nothing comes. Who is not the first looks when something does, too: the first
 * may be held up. */
static int64_t look_ms(const struct kinf__http *http)
{
    bool may_be_left = http->request->may_end != NULL && is_success(http);

    return may_be_left && (http->is_outdated ||
                           kinf__credentials_has_to_look(&http->client->credentials, &http->holder))
               ? http->next_look_ms
               : KINF__NEVER_MS;
}

/* Returns false when the exchange was left early, as if it had ended. */
static bool go_on(struct kinf__http *http)
{
    for (;;) {
        kinf__transport_perform(&http->transport);
        if (http->request->on_pause != NULL)
            http->request->on_pause(http->request->ctx);
        if (http->is_through)
            return true;
        if (is_to_be_left(http, kinf__clock_now_ms())) {
            kinf__roundtrip_leave(&http->trip);
            return false;
        }
        kinf__transport_wait(&http->transport, http->waker, look_ms(http));
        if (http->is_through)
            return true;
    }
}

/* The same. What changed before we are told of changes is seen by the first look. */
static bool drive(struct kinf__http *http)
{
    bool may_be_left = http->request->may_end != NULL, has_ended;

    http->is_outdated = false;
    atomic_store(&http->is_look_due, true);
    if (may_be_left)
        kinf__credentials_hold(&http->client->credentials, &http->holder);
    has_ended = go_on(http);
    if (may_be_left)
        kinf__credentials_let_go(&http->client->credentials, &http->holder);
    return has_ended;
}

/* A head that says no has said it, whatever became of its body. */
static bool is_refused(const struct kinf__http *http)
{
    return http->trip.head.code >= 300 && http->code != KINF_ERR_STOPPED &&
           http->code != KINF_ERR_TIMEOUT && http->code != KINF_ERR_NO_MEMORY;
}

/* A conflict without a reason, for what was to be made: its name is taken. */
static bool is_name_taken(const struct kinf__http *http, int code)
{
    return code == KINF_ERR_CONFLICT && strcmp(method_of(http->request), "POST") == 0 &&
           !kinf__status_has_reason(kinf__buffer_str(&http->refusal));
}

static int judge_refusal(struct kinf__http *http, struct kinf_error *err)
{
    uint32_t retry_after_ms = kinf__head_retry_after_ms(&http->trip.head);
    int code = kinf__status_to_error(kinf__buffer_str(&http->refusal), http->trip.head.code, err);

    if (is_name_taken(http, code)) {
        code = KINF_ERR_EXISTS;
        if (err != NULL)
            err->code = KINF_ERR_EXISTS;
    }
    if (err != NULL && retry_after_ms != 0)
        err->retry_after_ms = retry_after_ms;
    kinf__error_prefix(err, "server %s answered %d", http->client->host, http->trip.head.code);
    if (http->trip.head.code == 401) {
        kinf__credentials_refused(&http->client->credentials, http->credential, kinf__moment_now());
        kinf__http_disconnect(http);
    }
    return code;
}

static int judge(struct kinf__http *http)
{
    if (is_refused(http))
        return judge_refusal(http, http->err);
    if (http->code == KINF_ERR_TLS)
        kinf__credentials_distrusted(&http->client->credentials);
    if (http->code == 0 && http->is_gzip && http->inflate != NULL &&
        !kinf__inflate_is_complete(http->inflate))
        return kinf__broken_off(http->client, "a compressed body was cut short", http->err);
    return http->code;
}

int kinf__http_perform(struct kinf__http *http, const struct kinf__http_request *request,
                       struct kinf_error *err)
{
    int64_t began_ms = kinf__clock_now_ms();
    int failed;

    begin(http, request, err);
    failed = prepare(http, request, began_ms);
    /* Who was halted meanwhile must not write after his time. */
    if (failed == 0 && request->total_timeout_ms != 0 &&
        kinf__clock_now_ms() - began_ms >= request->total_timeout_ms)
        failed = kinf__error_set(err, KINF_ERR_TIMEOUT, "the time is over before it was sent");
    if (failed == 0)
        failed = kinf__roundtrip_add(&http->trip, &http->transport, err);
    return failed == 0 && drive(http) ? judge(http) : failed;
}

void kinf__http_body_begin(int http_status, void *ctx)
{
    struct kinf__http_body *body = ctx;

    body->http_status = http_status;
    body->bytes->len = 0;
}

int kinf__http_body_keep(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    const struct kinf__http_body *body = ctx;

    if (len > body->max_len - body->bytes->len)
        return kinf__error_set(err, KINF_ERR_LIMIT, "the answer is longer than %zu bytes",
                               body->max_len);
    return kinf__buffer_append(body->bytes, bytes, len) < 0 ? kinf__error_no_memory(err) : 0;
}

int kinf__http_check_json(const struct kinf__http *http, const char *bytes, size_t len,
                          struct kinf_error *err)
{
    const char *type = kinf__head_value(&http->trip.head, "Content-Type");
    size_t n = 0;

    if (type[0] == '\0' || strcasestr(type, "json") != NULL)
        return 0;
    while (n < len && n < EXCERPT_BYTES && (unsigned char)bytes[n] >= 0x20)
        n++;
    return kinf__error_set(err, KINF_ERR_PROTOCOL, "answered with %s, not JSON: %.*s", type, (int)n,
                           bytes);
}

const char *kinf__http_host(const struct kinf__http *http)
{
    return http->client->host;
}

int64_t kinf__http_request_timeout_ms(const struct kinf__http *http)
{
    return http->client->request_timeout_ms;
}
