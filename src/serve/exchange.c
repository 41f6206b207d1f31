/*
 * Requests: which route, and what is answered there. Neighbours: transfer.c carries bytes,
 * resource.c answers for objects and lists, state.c for health and metrics, catalog.c writes
 * documents of discovery.
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
static const char discovery_json[] =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/* --- discovery --- */

static int write_api_versions(struct kinf__buffer *out)
{
    return kinf__buffer_append_str(out, KINF_STR("{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                                                 "\"serverAddressByClientCIDRs\":[]}\n"));
}

/* The lock is held; there is a catalog. */
static int write_discovery(struct kinf__exchange *exchange)
{
    const struct kinf__server *server = exchange->server;
    const struct kinf__request *request = &exchange->request;
    struct kinf__buffer *out = &exchange->answer.body;

    if (exchange->accepted.form == KINF__FORM_DISCOVERY)
        return kinf__catalog_write_aggregated(server, request->route == KINF__ROUTE_API, out);
    switch (request->route) {
    case KINF__ROUTE_API:
        return write_api_versions(out);
    case KINF__ROUTE_APIS:
        return kinf__catalog_write_groups(server, out);
    case KINF__ROUTE_GROUP:
        return kinf__catalog_write_group(server, request->group, out);
    default:
        return kinf__catalog_write_resources(server, request->group, request->version, out);
    }
}

static bool equals_etag(const char *if_none_match, const char *etag)
{
    return if_none_match != NULL && strcmp(if_none_match, etag) == 0;
}

static void mark_discovery(struct kinf__exchange *exchange, const struct kinf__exchange_head *head)
{
    struct kinf__answer *answer = &exchange->answer;

    answer->content_type = discovery_json;
    answer->is_public = true;
    snprintf(answer->etag, sizeof answer->etag, "\"%016" PRIX64 "\"",
             kinf__hash(kinf__buffer_str(&answer->body)));
    if (equals_etag(head->if_none_match, answer->etag)) {
        answer->code = 304;
        answer->body.len = 0;
    }
}

static int answer_discovery(struct kinf__exchange *exchange, const struct kinf__exchange_head *head)
{
    enum kinf__route route = exchange->request.route;
    bool is_root = route == KINF__ROUTE_API || route == KINF__ROUTE_APIS;
    int failed =
        kinf__accept_negotiate(head->accept, is_root ? KINF__FORMS_DISCOVERY : KINF__FORMS_PLAIN,
                               &exchange->accepted, exchange->refusal);

    if (failed < 0)
        return failed;
    exchange->answer.content_type = json;
    kinf__mutex_lock(&exchange->server->lock);
    if (exchange->server->catalog == NULL)
        failed = kinf__resource_refuse_unready(exchange);
    else if ((failed = write_discovery(exchange)) == KINF_ERR_NOT_FOUND)
        failed = kinf__resource_refuse_unknown(exchange);
    else if (failed < 0)
        failed = kinf__refuse_no_memory(exchange->refusal);
    kinf__mutex_unlock(&exchange->server->lock);
    if (failed == 0 && exchange->accepted.form == KINF__FORM_DISCOVERY)
        mark_discovery(exchange, head);
    return failed;
}

static int answer_version(struct kinf__exchange *exchange)
{
    int failed = 0;

    exchange->answer.content_type = json;
    kinf__mutex_lock(&exchange->server->lock);
    if (exchange->server->catalog == NULL)
        failed = kinf__resource_refuse_unready(exchange);
    else if (kinf__buffer_printf(&exchange->answer.body, "%s\n",
                                 kinf__catalog_version(exchange->server->catalog)) < 0)
        failed = kinf__refuse_no_memory(exchange->refusal);
    kinf__mutex_unlock(&exchange->server->lock);
    return failed;
}

static int answer_root(struct kinf__exchange *exchange, const char *accept)
{
    exchange->answer.varies_by_accept = true;
    if (accept != NULL && strstr(accept, "text/html") != NULL)
        return kinf__page_answer(exchange);
    exchange->answer.content_type = json;
    return kinf__buffer_append_str(&exchange->answer.body,
                                   KINF_STR("{\"paths\":[\"/api\",\"/apis\",\"/debug/state\","
                                            "\"/healthz\",\"/livez\",\"/metrics\",\"/readyz\","
                                            "\"/version\"]}\n")) < 0
               ? kinf__refuse_no_memory(exchange->refusal)
               : 0;
}

/* --- routes --- */

static int refuse_method(struct kinf__exchange *exchange)
{
    kinf__refuse(exchange->refusal, 405, "MethodNotAllowed",
                 "the server does not allow this method on the requested resource");
    return kinf__refusal_empty(exchange->refusal, 0);
}

static int route(struct kinf__exchange *exchange, const struct kinf__exchange_head *head)
{
    enum kinf__route route = exchange->request.route;

    if (route == KINF__ROUTE_OTHER)
        return kinf__refuse_path(exchange->refusal);
    if (strcmp(head->method, "GET") != 0) {
        /* Nobody has looked at the token: what there is is not told. */
        if (exchange->owner.authorizer == NULL && route == KINF__ROUTE_RESOURCE &&
            kinf__resource_check_path(exchange) < 0)
            return KINF_ERR_INVALID;
        return refuse_method(exchange);
    }
    switch (route) {
    case KINF__ROUTE_HEALTH:
        return kinf__state_answer_health(exchange);
    case KINF__ROUTE_METRICS:
        return kinf__state_answer_metrics(exchange);
    case KINF__ROUTE_DEBUG_STATE:
        return kinf__state_answer_debug(exchange);
    case KINF__ROUTE_VERSION:
        return answer_version(exchange);
    case KINF__ROUTE_ROOT:
        return answer_root(exchange, head->accept);
    case KINF__ROUTE_RESOURCE:
        return kinf__resource_step(exchange, head->accept);
    default:
        return answer_discovery(exchange, head);
    }
}

static bool accepts_gzip(const char *header)
{
    return header != NULL && strstr(header, "gzip") != NULL;
}

int kinf__exchange_read_options(struct kinf__exchange *exchange, struct kinf__refusal *refusal)
{
    int failed = 0;

    if (!exchange->has_options)
        failed = kinf__request_read_options(&exchange->request, &exchange->options, refusal);
    exchange->has_options = failed == 0;
    return failed;
}

/* Whose request it is, and whether it is to fail. */
static void ask_backend(struct kinf__exchange *exchange, const struct kinf__exchange_head *head)
{
    const struct kinf__backend *backend = exchange->server->backend;

    if (backend == NULL)
        return;
    if (backend->takes(head, &exchange->request, backend->ctx))
        exchange->body_state = head->body_len != 0 ? KINF__BODY_AWAITED : KINF__BODY_WHOLE;
    if (backend->find_fault != NULL)
        exchange->fault = backend->find_fault(head, &exchange->request, backend->ctx);
    /* What it looks for in the body has to be there to be read. */
    exchange->may_gzip = exchange->may_gzip && exchange->fault == NULL;
}

static int begin(struct kinf__exchange *exchange, const struct kinf__exchange_head *head)
{
    int failed;

    exchange->may_gzip = accepts_gzip(head->accept_encoding);
    if (head->client != NULL)
        exchange->client = *head->client;
    failed = kinf__request_parse(head->target, &exchange->request, exchange->refusal);
    kinf__request_record_begin(exchange, head);
    if (failed < 0)
        return failed;
    ask_backend(exchange, head);
    exchange->phase = KINF__PHASE_ASKING;
    return 0;
}

static int step_backend(struct kinf__exchange *exchange, const struct kinf__exchange_head *head)
{
    const struct kinf__backend *backend = exchange->server->backend;
    const struct kinf__backend_call call = { head, &exchange->request,
                                             kinf__buffer_str(&exchange->body) };

    if (exchange->body_state == KINF__BODY_AWAITED)
        return KINF__STEP_WAITS;
    if (exchange->body_state == KINF__BODY_TOO_LONG)
        return kinf__passthrough_refuse_length(exchange->refusal);
    exchange->answer.content_type = json;
    return backend->answer(&call, &exchange->answer, exchange->refusal, backend->ctx);
}

/* What is sent on is judged by the API server, with the caller's token; what is answered here is
 * answered only to those who may read it. */
static int first_step(struct kinf__exchange *exchange, const struct kinf__exchange_head *head)
{
    int step = exchange->phase == KINF__PHASE_NEW ? begin(exchange, head) : 0;

    if (step < 0)
        return step;
    if (atomic_load(&exchange->server->is_stopping))
        return kinf__refuse(exchange->refusal, 503, "ServiceUnavailable", "%s is stopping",
                            exchange->server->name);
    if (exchange->fault != NULL) {
        step =
            exchange->server->backend->hold(exchange->fault, &exchange->owner, exchange->refusal);
        if (step != KINF__STEP_ANSWERED)
            return step;
    }
    if (exchange->owner.is_health && !kinf__access_is_open(exchange))
        return kinf__refuse_path(exchange->refusal);
    step = kinf__passthrough_step(exchange, head, false);
    if (step != KINF__PASS_NOT_TAKEN)
        return step;
    if (kinf__passthrough_look(head->headers, head->n_headers).is_impersonated) {
        kinf__refuse(exchange->refusal, 403, "Forbidden",
                     "impersonation is not answered from a cache");
        return kinf__refusal_empty(exchange->refusal, 0);
    }
    step = kinf__access_step(exchange, head);
    if (step != KINF__STEP_ANSWERED)
        return step;
    exchange->phase =
        exchange->body_state == KINF__BODY_UNWANTED ? KINF__PHASE_CACHE : KINF__PHASE_BACKEND;
    return exchange->phase == KINF__PHASE_CACHE ? route(exchange, head)
                                                : step_backend(exchange, head);
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

static int next_step(struct kinf__exchange *exchange, const struct kinf__exchange_head *head)
{
    int step, passed;

    if (exchange->phase == KINF__PHASE_PASSED)
        return kinf__passthrough_step_again(exchange);
    if (exchange->phase == KINF__PHASE_BACKEND)
        return step_backend(exchange, head);
    step = exchange->phase == KINF__PHASE_CACHE ? kinf__resource_step_again(exchange)
                                                : first_step(exchange, head);
    if (step >= 0 || !exchange->is_beyond_cache)
        return step;
    passed = kinf__passthrough_step(exchange, head, true);
    return passed != KINF__PASS_NOT_TAKEN ? passed : step;
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

const struct kinf__answer *kinf__exchange_step(struct kinf__exchange *exchange,
                                               const struct kinf__exchange_head *head)
{
    int step;

    if (exchange->phase >= KINF__PHASE_ANSWERED)
        return give(exchange);
    step = next_step(exchange, head);
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
    if (!is_awaited)
        len = kinf__forward_send(exchange->forward, bytes, len);
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

struct kinf__exchange *kinf__exchange_new(struct kinf__server *server,
                                          const struct kinf__exchange_owner *owner)
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
    exchange->answer.staleness_ms = -1;
    exchange->answer.stream_len = -1;
    exchange->hang_up_fd = -1;
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
    kinf__timer_clear(&exchange->server->timers, &exchange->timer);
    kinf__server_forget_hang_up(exchange);
    kinf__mutex_unlock(&exchange->server->lock);
    if (exchange->source != NULL)
        kinf__watchcache_cancel_wait(exchange->source->cache, &exchange->waiter);
    if (exchange->answer.stream != NULL)
        exchange->answer.stream->free(exchange->answer.stream);
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
