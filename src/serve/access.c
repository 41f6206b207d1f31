/*
 * From requests to attributes, from verdicts to refusals. Neighbours: authorizer.c decides,
 * exchange.c asks here before it answers anything.
 *
 * /healthz, /livez and /readyz are open, as kube-apiserver's are to everybody by default; the checks
 * below them are not. Who shows a certificate and a token is whom the certificate names. A request
 * that is no GET is answered by nobody but the upstream, which judges its credentials itself: here it
 * only needs to have some.
 */
#include "serve/access.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "serve/backend.h"
#include "serve/web_token.h"

#define LENIENCY_MS 60000

static int refuse_unauthorized(struct kinf__exchange *exchange)
{
    return kinf__refuse(exchange->refusal, 401, "Unauthorized", "Unauthorized");
}

bool kinf__access_is_open(const struct kinf__exchange *exchange)
{
    return exchange->request.route == KINF__ROUTE_HEALTH && *exchange->request.name == '\0';
}

/* No resource is asked for. */
static bool is_by_path(const struct kinf__request *request)
{
    return request->route != KINF__ROUTE_RESOURCE || *request->resource == '\0';
}

/* Options that do not read ask for nothing that is answered: the least is as good as any. */
static void add_options(const struct kinf__list_options *options,
                        struct kinf__attributes *attributes)
{
    const char *name = kinf__fields_required(options->fields, "metadata.name");

    if (options->text == NULL)
        return;
    attributes->label_selector = options->label_selector;
    attributes->field_selector = options->field_selector;
    if (name != NULL)
        attributes->name = name;
}

static void describe(const struct kinf__exchange *exchange, const char *path,
                     struct kinf__attributes *attributes)
{
    const struct kinf__request *request = &exchange->request;

    *attributes = (struct kinf__attributes){
        kinf__request_verb_to_string(request->verb), "", "", "", "", "", "", "", "", ""
    };
    if (is_by_path(request)) {
        attributes->path = path;
        return;
    }
    attributes->group = request->group;
    attributes->version = request->version;
    attributes->resource = request->resource;
    attributes->subresource = request->subresource;
    attributes->name_space = request->name_space;
    attributes->name = request->is_watch_path ? request->watched_name : request->name;
    /* As the API server sees it, a namespace is in itself. */
    if (strcmp(request->resource, "namespaces") == 0 && *request->name_space == '\0')
        attributes->name_space = attributes->name;
    /* Selectors are of no account at the deprecated paths. */
    if (!request->is_watch_path && *request->name == '\0')
        add_options(&exchange->options, attributes);
}

/* Whether a token may be anybody's now, by what it says of itself: then *ret_expires_ms is when it
 * ends, monotonic. One from the future is as early as the API server allows: clocks differ. */
static bool is_of_now(struct kinf_str token, int64_t now_ms, int64_t *ret_expires_ms)
{
    struct kinf__web_token_times times = kinf__web_token_times(token);
    int64_t wall_ms = kinf__clock_wall_ms();

    *ret_expires_ms = times.expires_s < 0 ? INT64_MAX : now_ms + times.expires_s * 1000 - wall_ms;
    return *ret_expires_ms > now_ms && times.not_before_s * 1000 <= wall_ms + LENIENCY_MS;
}

int kinf__access_refuse(struct kinf__refusal *refusal, const struct kinf__attributes *attributes,
                        const char *user, const char *reason)
{
    const char *colon = *reason != '\0' ? ": " : "";
    bool is_named = *attributes->name_space != '\0';

    if (*attributes->path != '\0') {
        kinf__refuse(refusal, 403, "Forbidden", "forbidden: User \"%s\" cannot %s path \"%s\"%s%s",
                     user, attributes->verb, attributes->path, colon, reason);
        return kinf__refusal_empty(refusal, 0);
    }
    kinf__refuse(refusal, 403, "Forbidden",
                 "%s%s%s%s is forbidden: User \"%s\" cannot %s resource \"%s\" in API group \"%s\" "
                 "%s%s%s%s%s",
                 attributes->resource, *attributes->name != '\0' ? " \"" : "", attributes->name,
                 *attributes->name != '\0' ? "\"" : "", user, attributes->verb,
                 attributes->resource, attributes->group,
                 is_named ? "in the namespace \"" : "at the cluster scope", attributes->name_space,
                 is_named ? "\"" : "", colon, reason);
    kinf__refusal_set_object(refusal, attributes->group, attributes->resource, attributes->name);
    return KINF_ERR_INVALID;
}

static int conclude(struct kinf__exchange *exchange, const struct kinf__attributes *attributes,
                    const struct kinf__access_answer *answer)
{
    switch (answer->verdict) {
    case KINF__VERDICT_WAITS:
        return KINF__STEP_WAITS;
    case KINF__VERDICT_ALLOWED:
        return KINF__STEP_ANSWERED;
    case KINF__VERDICT_DENIED:
        return kinf__access_refuse(exchange->refusal, attributes, answer->user, answer->reason);
    case KINF__VERDICT_UNKNOWN:
        return refuse_unauthorized(exchange);
    case KINF__VERDICT_THROTTLED:
        kinf__refuse(exchange->refusal, 429, "TooManyRequests",
                     "too many reviews of credentials at once");
        break;
    case KINF__VERDICT_FAILED:
        kinf__refuse(exchange->refusal, 503, "ServiceUnavailable",
                     "the API server does not say who may read");
        break;
    }
    return kinf__refusal_empty(exchange->refusal, 1);
}

/* Whom the certificate names, as the API server does with who has both, or whose the token is. Returns
 * false: nobody's. */
static bool find_credential(const struct kinf__exchange *exchange, int64_t now_ms,
                            struct kinf__access_request *request)
{
    const struct kinf__client_certificate *certificate = exchange->owner.certificate;

    if (!kinf__client_certificate_names(certificate)) {
        request->token = exchange->head.token;
        return is_of_now(request->token, now_ms, &request->expires_ms);
    }
    request->user = certificate->user;
    request->expires_ms = now_ms + certificate->expires_ms - kinf__clock_wall_ms();
    return true;
}

static int ask_authorizer(struct kinf__exchange *exchange,
                          const struct kinf__attributes *attributes)
{
    struct kinf__access_request request = {
        .address = exchange->owner.address,
        .attributes = *attributes,
    };
    struct kinf__access_answer answer;
    int64_t now_ms = kinf__clock_now_ms();
    int step;

    if (!find_credential(exchange, now_ms, &request))
        return refuse_unauthorized(exchange);
    exchange->access.wake = exchange->owner.wake;
    exchange->access.ctx = exchange->owner.ctx;
    kinf__authorizer_ask(exchange->owner.authorizer, &request, &exchange->access, now_ms, &answer);
    kinf__request_record_access(exchange, &answer);
    step = conclude(exchange, attributes, &answer);
    exchange->access_until_ms = answer.until_ms;
    return step;
}

/* What the request asks for, put to the backend, which judges writes as well, or to the authorizer. */
static int ask(struct kinf__exchange *exchange, const char *path)
{
    const struct kinf__backend *backend = exchange->server->backend;
    struct kinf__attributes attributes;

    describe(exchange, path, &attributes);
    return backend != NULL
               ? backend->admit(&exchange->head, &attributes, exchange->refusal, backend->ctx)
               : ask_authorizer(exchange, &attributes);
}

int kinf__access_step(struct kinf__exchange *exchange)
{
    const struct kinf__request_head *head = &exchange->head;
    bool has_backend = exchange->server->backend != NULL;
    size_t len = strcspn(head->target.bytes, "?");
    char path[1024];

    if (kinf__access_is_open(exchange) || (!has_backend && exchange->owner.authorizer == NULL))
        return KINF__STEP_ANSWERED;
    if (!has_backend &&
        ((head->token.len == 0 && !kinf__client_certificate_names(exchange->owner.certificate)) ||
         head->has_two_credentials))
        return refuse_unauthorized(exchange);
    if (!has_backend && strcmp(head->method, "GET") != 0)
        return KINF__STEP_ANSWERED;
    /* What no rule could name is what nobody may. */
    if (len >= sizeof path || memchr(head->target.bytes, '%', len) != NULL) {
        if (is_by_path(&exchange->request))
            return kinf__refuse_path(exchange->refusal);
        len = 0;
    }
    memcpy(path, head->target.bytes, len);
    path[len] = '\0';
    return ask(exchange, path);
}

void kinf__access_release(struct kinf__exchange *exchange)
{
    if (exchange->owner.authorizer != NULL)
        kinf__authorizer_cancel(exchange->owner.authorizer, &exchange->access);
}
