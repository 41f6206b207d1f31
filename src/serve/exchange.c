/*
 * Requests, phase after phase. Neighbours: mhd_request.c carries bytes, route.c decides on the way,
 * access.c who may go it; passthrough.c, resource.c, the backend and own.c are at its end.
 */
#include "serve/exchange.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hmap.h"
#include "serve/access.h"
#include "serve/backend.h"
#include "serve/exchange_priv.h"
#include "serve/list.h"
#include "serve/passthrough.h"

static const char json[] = "application/json";

/* --- phases --- */

int kinf__exchange_read_options(struct kinf__exchange *exchange, struct kinf__refusal *refusal)
{
    int failed = 0;

    if (exchange->options.text == NULL)
        failed = kinf__list_options_read(&exchange->request, &exchange->options, refusal);
    return failed;
}

/* Whose request it is, and whether it is to fail. */
static void ask_backend(struct kinf__exchange *exchange)
{
    const struct kinf__request_head *head = &exchange->head;
    const struct kinf__backend *backend = exchange->server->backend;

    if (backend == NULL)
        return;
    if (backend->takes(head, &exchange->request, backend->ctx))
        exchange->body_state = head->body_len != 0 ? KINF__BODY_AWAITED : KINF__BODY_WHOLE;
    if (backend->find_fault != NULL)
        exchange->fault = backend->find_fault(head, &exchange->request, backend->ctx);
}

static int answer_by_backend(struct kinf__exchange *exchange)
{
    const struct kinf__backend *backend = exchange->server->backend;
    const struct kinf__backend_call call = { &exchange->head, &exchange->request,
                                             kinf__buffer_str(&exchange->body) };

    if (exchange->body_state == KINF__BODY_AWAITED)
        return KINF__STEP_WAITS;
    if (exchange->body_state == KINF__BODY_TOO_LONG)
        return kinf__passthrough_refuse_length(exchange->refusal);
    exchange->answer.content_type = json;
    return backend->answer(&call, &exchange->answer, exchange->refusal, backend->ctx);
}

/* To the end of the way. */
static int go(struct kinf__exchange *exchange)
{
    switch (exchange->way) {
    case KINF__WAY_BACKEND:
        exchange->phase = KINF__PHASE_BACKEND;
        return answer_by_backend(exchange);
    case KINF__WAY_CACHE:
        exchange->phase = KINF__PHASE_CACHE;
        return kinf__resource_step(exchange);
    case KINF__WAY_OWN:
        return kinf__own_answer(exchange);
    default:
        return kinf__route_refuse(exchange, exchange->way);
    }
}

static int review(struct kinf__exchange *exchange)
{
    int step = kinf__access_step(exchange);

    return step == KINF__STEP_ANSWERED ? go(exchange) : step;
}

/* What is sent on is judged by the API server, with the caller's token; what is answered here is
 * answered only to those who may have it. */
static int choose_way(struct kinf__exchange *exchange)
{
    if (exchange->owner.is_health && !kinf__access_is_open(exchange))
        return kinf__refuse_path(exchange->refusal);
    exchange->way = kinf__route_choose(exchange);
    if (exchange->way == KINF__WAY_UPSTREAM)
        return kinf__passthrough_begin(exchange);
    if (!kinf__route_is_reviewed(exchange->way))
        return kinf__route_refuse(exchange, exchange->way);
    exchange->phase = KINF__PHASE_REVIEW;
    return review(exchange);
}

static int leave_fault(struct kinf__exchange *exchange)
{
    const struct kinf__backend *backend = exchange->server->backend;
    int step = exchange->fault != NULL
                   ? backend->hold(exchange->fault, &exchange->owner, exchange->refusal)
                   : KINF__STEP_ANSWERED;

    return step == KINF__STEP_ANSWERED ? choose_way(exchange) : step;
}

static int begin(struct kinf__exchange *exchange)
{
    int failed = kinf__request_parse(exchange->head.method, exchange->head.target,
                                     &exchange->request, exchange->refusal);

    kinf__request_record_begin(exchange);
    if (failed < 0)
        return failed;
    ask_backend(exchange);
    exchange->phase = KINF__PHASE_HELD;
    return 0;
}

static int next_step(struct kinf__exchange *exchange)
{
    int failed = exchange->phase == KINF__PHASE_NEW ? begin(exchange) : 0;

    if (failed < 0)
        return failed;
    if (exchange->phase <= KINF__PHASE_REVIEW && atomic_load(&exchange->server->is_stopping)) {
        kinf__refuse(exchange->refusal, 503, "ServiceUnavailable", "%s is stopping",
                     exchange->server->name);
        return kinf__refusal_empty(exchange->refusal, 1);
    }
    switch (exchange->phase) {
    case KINF__PHASE_HELD:
        return leave_fault(exchange);
    case KINF__PHASE_REVIEW:
        return review(exchange);
    case KINF__PHASE_BACKEND:
        return answer_by_backend(exchange);
    case KINF__PHASE_CACHE:
        return kinf__resource_step_again(exchange);
    default:
        return kinf__passthrough_step(exchange);
    }
}

static void answer_refusal(struct kinf__exchange *exchange)
{
    struct kinf__answer *answer = &exchange->answer;

    kinf__buffer_release(&answer->body);
    kinf__buffer_release(&answer->warnings);
    answer->code = exchange->refusal->code;
    answer->content_type = exchange->refusal->is_plain ? "text/plain; charset=utf-8" : json;
    answer->retry_after_s = exchange->refusal->retry_after_s;
    /* Without memory there is a code and no body. */
    if (kinf__refusal_write(exchange->refusal, &answer->body) < 0)
        kinf__buffer_release(&answer->body);
    kinf__mutex_lock(&exchange->server->lock);
    exchange->server->n_refused++;
    kinf__mutex_unlock(&exchange->server->lock);
}

/* Without memory the answer is what it is. */
static const struct kinf__answer *give(struct kinf__exchange *exchange)
{
    const struct kinf__backend *backend = exchange->server->backend;

    if (exchange->fault != NULL && exchange->phase != KINF__PHASE_GIVEN &&
        backend->distort(exchange->fault, &exchange->owner, &exchange->answer) == KINF__STEP_WAITS)
        return NULL;
    exchange->phase = KINF__PHASE_GIVEN;
    kinf__request_record_answer(exchange);
    return &exchange->answer;
}

const struct kinf__answer *kinf__exchange_step(struct kinf__exchange *exchange)
{
    int step;

    if (exchange->phase >= KINF__PHASE_ANSWERED)
        return give(exchange);
    step = next_step(exchange);
    if (step == KINF__STEP_WAITS)
        return NULL;
    if (step < 0)
        answer_refusal(exchange);
    else if (exchange->answer.code == 0)
        exchange->answer.code = 200;
    exchange->phase = KINF__PHASE_ANSWERED;
    return give(exchange);
}

/* The text is quoted: it must not end early. */
void kinf__answer_warn(struct kinf__answer *answer, const char *fmt, ...)
{
    struct kinf__buffer *out = &answer->warnings;
    size_t before = out->len;
    char text[512];
    va_list args;
    int failed;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    kinf__make_one_line(text);
    failed = kinf__buffer_append_str(out, KINF_STR("299 - \""));
    for (const char *at = text; failed == 0 && *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            failed = kinf__buffer_append(out, "\\", 1);
        if (failed == 0)
            failed = kinf__buffer_append(out, at, 1);
    }
    if (failed < 0 || kinf__buffer_append(out, "\"", 2) < 0)
        out->len = before;
}

/* From now on the tunnel sees that the client hangs up, and what it sent before. */
struct kinf__tunnel *kinf__exchange_tunnel(struct kinf__exchange *exchange,
                                           struct kinf__buffer *head, void (*on_over)(void *ctx),
                                           void *ctx)
{
    kinf__mutex_lock(&exchange->server->lock);
    kinf__server_forget_hang_up(exchange);
    kinf__mutex_unlock(&exchange->server->lock);
    return kinf__tunnel_new(exchange->server->tunnels, exchange->forward, head, on_over, ctx);
}

/* --- the request's body --- */

size_t kinf__exchange_take_body(struct kinf__exchange *exchange, const char *bytes, size_t len)
{
    bool is_awaited = exchange->body_state == KINF__BODY_AWAITED;

    if ((!is_awaited && exchange->body_state != KINF__BODY_SENT_ON) ||
        exchange->phase >= KINF__PHASE_ANSWERED)
        return len;
    /* What there is no memory for is too long. */
    if (exchange->body_len + len > KINF__PASS_BODY_MAX ||
        (is_awaited && kinf__buffer_append(&exchange->body, bytes, len) < 0)) {
        exchange->body_state = KINF__BODY_TOO_LONG;
        if (exchange->forward != NULL)
            kinf__forward_end(exchange->forward);
        return len;
    }
    if (!is_awaited) {
        len = kinf__forward_send(exchange->forward, bytes, len);
        kinf__write_take_body(exchange->write, bytes, len);
    }
    exchange->body_len += len;
    return len;
}

void kinf__exchange_end_body(struct kinf__exchange *exchange)
{
    if (exchange->body_state == KINF__BODY_AWAITED) {
        exchange->body_state = KINF__BODY_WHOLE;
    } else if (exchange->body_state == KINF__BODY_SENT_ON) {
        exchange->body_state = KINF__BODY_UNWANTED;
        kinf__forward_end_body(exchange->forward);
    }
}

/* --- life --- */

static void describe_client(struct kinf__exchange *exchange, const char *peer)
{
    struct kinf__client *client = &exchange->client;

    snprintf(client->peer, sizeof client->peer, "%s", peer != NULL ? peer : "");
    snprintf(client->user_agent, sizeof client->user_agent, "%s", exchange->head.user_agent);
}

struct kinf__exchange *kinf__exchange_new(struct kinf__server *server,
                                          const struct kinf__exchange_owner *owner,
                                          const struct kinf__request_head *head, const char *peer)
{
    struct kinf__exchange *exchange = calloc(1, sizeof *exchange);

    if (exchange == NULL)
        return NULL;
    exchange->refusal = calloc(1, sizeof *exchange->refusal);
    if (exchange->refusal == NULL) {
        free(exchange);
        return NULL;
    }
    exchange->server = server;
    exchange->owner = *owner;
    exchange->head = *head;
    exchange->request.verb = KINF__VERB_OTHER;
    describe_client(exchange, peer);
    exchange->answer.staleness_ms = -1;
    exchange->answer.stream_len = -1;
    exchange->hang_up_fd = -1;
    kinf__list_init(&exchange->watch_node);
    kinf__mutex_lock(&server->lock);
    kinf__list_push_back(&server->exchanges, &exchange->node);
    server->n_exchanges++;
    exchange->id = ++server->n_requests;
    kinf__mutex_unlock(&server->lock);
    return exchange;
}

/* Nobody wakes it from here on. */
static void detach(struct kinf__exchange *exchange)
{
    kinf__access_release(exchange);
    kinf__mutex_lock(&exchange->server->lock);
    kinf__list_remove(&exchange->node);
    kinf__list_remove(&exchange->watch_node);
    kinf__timer_clear(&exchange->server->timers, &exchange->timer);
    kinf__server_forget_hang_up(exchange);
    kinf__mutex_unlock(&exchange->server->lock);
    if (exchange->source != NULL)
        kinf__watchcache_cancel_wait(exchange->source->cache, &exchange->waiter);
    if (exchange->answer.stream != NULL)
        exchange->answer.stream->free(exchange->answer.stream);
    kinf__write_free(exchange->write);
    kinf__listing_free(exchange->listing);
    kinf__forward_free(exchange->forward);
}

void kinf__exchange_free(struct kinf__exchange *exchange)
{
    struct kinf__server *server;

    if (exchange == NULL)
        return;
    server = exchange->server;
    kinf__request_record_end(exchange);
    detach(exchange);
    kinf__mutex_lock(&server->lock);
    if (exchange->source != NULL)
        exchange->source->n_users--;
    server->n_exchanges--;
    kinf__cond_broadcast(&server->changed);
    kinf__mutex_unlock(&server->lock);
    kinf__encoder_release(&exchange->encoder);
    kinf__list_options_release(&exchange->options);
    kinf__request_release(&exchange->request);
    kinf__buffer_release(&exchange->answer.body);
    kinf__buffer_release(&exchange->answer.warnings);
    free(exchange->refusal);
    kinf__buffer_release(&exchange->body);
    if (exchange->fault != NULL)
        server->backend->free_fault(exchange->fault);
    free(exchange);
}
