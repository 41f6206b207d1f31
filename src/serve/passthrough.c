/*
 * Requests for the API server. Neighbours: route.c decides which those are, forward.h carries them,
 * exchange.c brings their bodies.
 */
#include "serve/passthrough.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/event_frames.h"
#include "serve/exchange_priv.h"
#include "serve/token.h"

/* --- headers --- */

/* Credentials go on because they are the caller's. X-Remote-User and its like would be believed of a
 * front proxy, and so they are never sent, whoever asks. */
static const char *const sent[] = {
    "Accept",        "Accept-Encoding",     "Audit-ID",        "Authorization",
    "Cache-Control", "Content-Type",        "If-Match",        "If-Modified-Since",
    "If-None-Match", "If-Unmodified-Since", "Kubectl-Command", "Kubectl-Session",
    "Traceparent",   "Tracestate",          "User-Agent",
};

static const char *const returned[] = {
    "Audit-Id",
    "Cache-Control",
    "Content-Encoding",
    "Content-Type",
    "ETag",
    "Expires",
    "Last-Modified",
    "Retry-After",
    "Vary",
    "Warning",
    "X-Content-Type-Options",
    "X-Kubernetes-Pf-Flowschema-Uid",
    "X-Kubernetes-Pf-Prioritylevel-Uid",
    "X-Accepted-Stream-Protocol-Versions",
};

/* Watches over websockets are refused without an Origin. */
static const char *const of_protocols[] = {
    "Origin",
    "Sec-WebSocket-Accept",
    "Sec-WebSocket-Extensions",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Version",
    "Upgrade",
    "X-Stream-Protocol-Version",
};

static bool begins_with(const char *text, const char *prefix)
{
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_among(const char *name, const char *const *names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

bool kinf__passthrough_sends(const char *name)
{
    return begins_with(name, "Impersonate-") || is_among(name, sent, KINF__ARRAY_LEN(sent));
}

/* Whether no byte would be read otherwise by others: browsers drop some, and turn some around. */
static bool is_plain(struct kinf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.bytes[i] <= ' ' || text.bytes[i] >= 0x7f ||
            strchr("#\\\"<>^`{|}", text.bytes[i]) != NULL)
            return false;
    }
    return text.len != 0;
}

/* A place is handed back only if it is on this server, whatever its name here. */
bool kinf__passthrough_returns(const struct kinf__header *header)
{
    if (strcasecmp(header->name, "Location") == 0)
        return header->value[0] == '/' && header->value[1] != '/' &&
               is_plain(kinf_str_from(header->value));
    return is_among(header->name, returned, KINF__ARRAY_LEN(returned));
}

bool kinf__passthrough_names_protocol(const char *name)
{
    return is_among(name, of_protocols, KINF__ARRAY_LEN(of_protocols));
}

/* --- targets --- */

static bool has_gap(struct kinf_str target)
{
    for (size_t i = 1; i < target.len && target.bytes[i] != '?'; i++) {
        if (target.bytes[i - 1] == '/' && target.bytes[i] == '/')
            return true;
    }
    return false;
}

bool kinf__passthrough_is_plain(const char *method, struct kinf_str target)
{
    return is_plain(target) && (strcmp(method, "GET") == 0 || !has_gap(target));
}

int kinf__passthrough_refuse_length(struct kinf__refusal *refusal)
{
    return kinf__refuse(refusal, 413, "RequestEntityTooLarge",
                        "Request entity too large: limit is %d", KINF__PASS_BODY_MAX);
}

/* --- an exchange --- */

struct pass_stream {
    struct kinf__stream stream;
    struct kinf__exchange *exchange;
    struct kinf__event_frames frames; /* of a watch: where it may end */
    bool is_over;
    char last;    /* of the answer to a write: the byte that was read last */
    bool is_held; /* it was not given out, since it may be the answer's last */
};

/* The daemon ends a watch as the server does, between two events: when it stops, or since the cache has
 * come to have the type, or is late no more. */
static ssize_t read_stream(struct kinf__stream *stream, char *buf, size_t size)
{
    struct pass_stream *pass = KINF__CONTAINER_OF(stream, struct pass_stream, stream);
    bool is_to_end = atomic_load(&pass->exchange->is_to_end);
    size_t whole;
    ssize_t n;

    if (pass->is_over || (is_to_end && kinf__event_frames_are_whole(&pass->frames)))
        return KINF__STREAM_END;
    n = kinf__forward_read(pass->exchange->forward, buf, size);
    if (n == KINF__FORWARD_BROKEN)
        return kinf__event_frames_are_whole(&pass->frames) &&
                       atomic_load(&pass->exchange->server->is_stopping)
                   ? KINF__STREAM_END
                   : KINF__STREAM_BROKEN;
    if (n == KINF__FORWARD_END)
        return KINF__STREAM_END;
    whole = kinf__event_frames_take(&pass->frames, buf, (size_t)n);
    if (is_to_end && whole != 0) {
        pass->is_over = true;
        n = (ssize_t)whole;
    }
    return n;
}

/* Who has all of an answer to a write finds it noted. */
static ssize_t end_write(struct pass_stream *pass, char *buf, ssize_t end)
{
    kinf__write_end_answer(pass->exchange->write, end == KINF__FORWARD_END);
    if (end != KINF__FORWARD_END || !pass->is_held)
        return end == KINF__FORWARD_END ? KINF__STREAM_END : KINF__STREAM_BROKEN;
    pass->is_held = false;
    buf[0] = pass->last;
    return 1;
}

/* The last byte that came stays here until it is known what is behind it. */
static ssize_t read_write(struct kinf__stream *stream, char *buf, size_t size)
{
    struct pass_stream *pass = KINF__CONTAINER_OF(stream, struct pass_stream, stream);
    size_t n_held = pass->is_held ? 1 : 0;
    char next, *to = size > n_held ? buf + n_held : &next;
    ssize_t n = kinf__forward_read(pass->exchange->forward, to, size > n_held ? size - n_held : 1);

    if (n == 0)
        return 0;
    if (n < 0)
        return end_write(pass, buf, n);
    kinf__write_take_answer(pass->exchange->write, to, (size_t)n);
    if (pass->is_held)
        buf[0] = pass->last;
    pass->last = to[n - 1];
    pass->is_held = true;
    n += (ssize_t)n_held - 1;
    return n != 0 ? n : KINF__STREAM_LATER;
}

static void free_stream(struct kinf__stream *stream)
{
    free(KINF__CONTAINER_OF(stream, struct pass_stream, stream));
}

/* Watches and followed logs may be silent for as long as they like. */
static bool is_endless(const struct kinf__request *request)
{
    return request->is_watch_path || kinf__request_is_true(request, "watch") ||
           kinf__request_is_true(request, "follow");
}

/* It is not the cache's any more. */
static void leave_source(struct kinf__exchange *exchange)
{
    if (exchange->source == NULL)
        return;
    kinf__watchcache_cancel_wait(exchange->source->cache, &exchange->waiter);
    kinf__mutex_lock(&exchange->server->lock);
    exchange->source->n_users--;
    exchange->source = NULL;
    kinf__cond_broadcast(&exchange->server->changed);
    kinf__mutex_unlock(&exchange->server->lock);
}

/* From here on others may end it. */
static void publish(struct kinf__exchange *exchange, struct kinf__forward *forward)
{
    kinf__mutex_lock(&exchange->server->lock);
    exchange->forward = forward;
    exchange->server->n_passed++;
    if (atomic_load(&exchange->server->is_stopping) || exchange->has_hung_up)
        kinf__forward_end(forward);
    kinf__mutex_unlock(&exchange->server->lock);
}

static int refuse_busy(struct kinf__exchange *exchange, const struct kinf_error *err)
{
    if (err->code != KINF_ERR_LIMIT)
        return kinf__refuse_no_memory(exchange->refusal);
    kinf__refuse(exchange->refusal, 429, "TooManyRequests", "%s", err->message);
    kinf__mutex_lock(&exchange->server->lock);
    exchange->server->n_crowded++;
    kinf__mutex_unlock(&exchange->server->lock);
    return kinf__refusal_empty(exchange->refusal, 1);
}

int kinf__passthrough_begin(struct kinf__exchange *exchange)
{
    const struct kinf__request_head *head = &exchange->head;
    KINF__AUTO_FREE struct kinf__header *headers = calloc(head->n_headers + 1, sizeof *headers);
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__forward *made;
    struct kinf__forward_request request = {
        .method = head->method,
        .target = head->target,
        .headers = headers,
        .body_len = strcmp(head->method, "GET") != 0 ? head->body_len : 0,
        .caller = head->token,
        .is_upgrade = head->is_upgrade,
        .is_endless = is_endless(&exchange->request),
        .wake = exchange->owner.wake,
        .wake_ctx = exchange->owner.ctx,
    };

    if (head->body_len > KINF__PASS_BODY_MAX)
        return kinf__passthrough_refuse_length(exchange->refusal);
    if (kinf__route_is_page_of_ours(exchange))
        return kinf__token_refuse_expired(exchange->refusal);
    if (headers == NULL)
        return kinf__refuse_no_memory(exchange->refusal);
    for (size_t i = 0; i < head->n_headers; i++) {
        if (kinf__passthrough_sends(head->headers[i].name) ||
            (head->is_upgrade && kinf__passthrough_names_protocol(head->headers[i].name)))
            headers[request.n_headers++] = head->headers[i];
    }
    leave_source(exchange);
    if (kinf__write_new(exchange->server, &exchange->request, exchange->reads_ahead,
                        &exchange->write) < 0)
        return kinf__refuse_no_memory(exchange->refusal);
    if (kinf__forward_new(exchange->server->forwarder, &request, &made, &err) < 0)
        return refuse_busy(exchange, &err);
    exchange->body_state = request.body_len != 0 ? KINF__BODY_SENT_ON : KINF__BODY_UNWANTED;
    exchange->phase = KINF__PHASE_PASSED;
    publish(exchange, made);
    return KINF__STEP_WAITS;
}

/* A request that went out may have been acted upon: 504 says that nobody knows. */
static int refuse_failure(struct kinf__exchange *exchange, const struct kinf_error *err)
{
    if (err->code == KINF_ERR_TIMEOUT || kinf__forward_is_sent(exchange->forward))
        return kinf__refuse(exchange->refusal, 504, "Timeout", "the API server did not answer: %s",
                            err->message);
    if (atomic_load(&exchange->server->is_stopping)) /* untested: a race with a stop */
        return kinf__refuse(exchange->refusal, 503, "ServiceUnavailable", "kinformerd is stopping");
    return kinf__refuse(exchange->refusal, 503, "ServiceUnavailable",
                        "the API server cannot be reached: %s", err->message);
}

static int hand_on(struct kinf__exchange *exchange, const struct kinf__head *head)
{
    struct kinf__answer *answer = &exchange->answer;
    struct pass_stream *pass = NULL;
    bool is_read;

    answer->code = head->code;
    answer->is_passed = true;
    answer->headers = head->headers;
    answer->n_headers = head->n_headers;
    answer->stream_len = head->body_len;
    if (head->code == 200)
        kinf__route_note_demand(exchange);
    is_read = exchange->write != NULL && kinf__write_begin_answer(exchange->write, head);
    if (head->code == 204 || head->code == 304 || head->code == 101) {
        if (exchange->write != NULL)
            kinf__write_end_answer(exchange->write, true);
        return 0;
    }
    pass = calloc(1, sizeof *pass);
    if (pass == NULL) {
        answer->code = 0;
        answer->is_passed = false;
        return kinf__refuse_no_memory(exchange->refusal);
    }
    pass->stream.read = is_read ? read_write : read_stream;
    pass->stream.free = free_stream;
    pass->exchange = exchange;
    if (exchange->request.verb == KINF__VERB_WATCH)
        kinf__event_frames_init(&pass->frames, kinf__head_value(head, "Content-Type"),
                                kinf__head_value(head, "Content-Encoding"));
    answer->stream = &pass->stream;
    return 0;
}

int kinf__passthrough_step(struct kinf__exchange *exchange)
{
    const struct kinf__head *head;
    struct kinf_error err = KINF_ERROR_INIT;
    int state;

    if (exchange->body_state == KINF__BODY_TOO_LONG)
        return kinf__passthrough_refuse_length(exchange->refusal);
    state = kinf__forward_head(exchange->forward, &head, &err);
    if (state == 0)
        return KINF__STEP_WAITS;
    return state < 0 ? refuse_failure(exchange, &err) : hand_on(exchange, head);
}
