/*
 * From requests to attributes, from verdicts to refusals. Neighbours: authorizer.c decides,
 * exchange.c asks here before it answers anything.
 *
 * /healthz, /livez and /readyz are open, as kube-apiserver's are to everybody by default; the checks
 * below them are not. A request that is no GET is answered by nobody but the upstream, which judges
 * its credentials itself: here it only needs to have some.
 */
#include "serve/access.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "serve/backend.h"
#include "serve/web_token.h"

static int refuse_unauthorized(struct kinf__exchange *exchange)
{
    return kinf__refuse(exchange->refusal, 401, "Unauthorized", "Unauthorized");
}

/* The token behind "Bearer"; empty: none. */
static struct kinf_str bearer_token(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    const char *token;

    if (authorization == NULL || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return kinf_str_from("");
    token = authorization + sizeof scheme - 1;
    token += strspn(token, " ");
    return (struct kinf_str){ token, strcspn(token, " ") };
}

bool kinf__access_is_open(const struct kinf__exchange *exchange)
{
    return exchange->request.route == KINF__ROUTE_HEALTH && *exchange->request.name == '\0';
}

/* Options that do not read ask for nothing that is answered: the least is as good as any. */
static void add_options(const struct kinf__list_options *options,
                        struct kinf__attributes *attributes)
{
    const char *name = kinf__fields_required(options->fields, "metadata.name");

    attributes->verb = options->is_watch ? "watch" : "list";
    attributes->label_selector = options->label_selector;
    attributes->field_selector = options->field_selector;
    if (name != NULL)
        attributes->name = name;
}

/* No resource is asked for. */
static bool is_by_path(const struct kinf__request *request)
{
    return request->route != KINF__ROUTE_RESOURCE || *request->resource == '\0';
}

static void describe(const struct kinf__request *request, const char *path,
                     const struct kinf__list_options *options, struct kinf__attributes *attributes)
{
    *attributes = (struct kinf__attributes){ "get", "", "", "", "", "", "", "", "", "" };
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
    /* Selectors are of no account there. */
    if (request->is_watch_path)
        attributes->verb = "watch";
    else if (*request->name == '\0')
        add_options(options, attributes);
}

/* When the token ends, monotonic. */
static int64_t expiry_ms(struct kinf_str token, int64_t now_ms)
{
    int64_t expiry_s = kinf__web_token_expiry_s(token);

    if (expiry_s < 0)
        return INT64_MAX;
    return now_ms + expiry_s * 1000 - kinf__clock_wall_ms();
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

static int ask_authorizer(struct kinf__exchange *exchange, const struct kinf__exchange_head *head,
                          const struct kinf__attributes *attributes)
{
    struct kinf__access_request request = { .token = bearer_token(head->authorization),
                                            .attributes = *attributes };
    struct kinf__access_answer answer;
    int64_t now_ms = kinf__clock_now_ms();
    int step;

    request.expires_ms = expiry_ms(request.token, now_ms);
    exchange->access.wake = exchange->owner.wake;
    exchange->access.ctx = exchange->owner.ctx;
    kinf__authorizer_ask(exchange->owner.authorizer, &request, &exchange->access, now_ms, &answer);
    kinf__request_record_access(exchange, &answer);
    step = conclude(exchange, attributes, &answer);
    exchange->access_until_ms = answer.until_ms;
    return step;
}

/* The verb that authorization knows a request by. */
static const char *verb_of(const char *method, const struct kinf__request *request,
                           const char *read_verb)
{
    if (request->is_watch_path)
        return read_verb;
    if (strcmp(method, "POST") == 0)
        return "create";
    if (strcmp(method, "PUT") == 0)
        return "update";
    if (strcmp(method, "PATCH") == 0)
        return "patch";
    if (strcmp(method, "DELETE") == 0)
        return *request->name != '\0' ? "delete" : "deletecollection";
    return read_verb;
}

/* What the request asks for, put to the backend, which judges writes as well, or to the authorizer. */
static int ask(struct kinf__exchange *exchange, const struct kinf__exchange_head *head,
               const char *path)
{
    const struct kinf__backend *backend = exchange->server->backend;
    struct kinf__list_options options = { .label_selector = "", .field_selector = "" };
    struct kinf__refusal ignored = { 0 };
    struct kinf__attributes attributes;
    int step;

    if (exchange->request.route == KINF__ROUTE_RESOURCE &&
        kinf__request_read_options(&exchange->request, &options, &ignored) == KINF_ERR_NO_MEMORY)
        return kinf__refuse_no_memory(exchange->refusal);
    describe(&exchange->request, path, &options, &attributes);
    attributes.verb = verb_of(head->method, &exchange->request, attributes.verb);
    step = backend != NULL ? backend->admit(head, &attributes, exchange->refusal, backend->ctx)
                           : ask_authorizer(exchange, head, &attributes);
    kinf__list_options_release(&options);
    return step;
}

int kinf__access_step(struct kinf__exchange *exchange, const struct kinf__exchange_head *head)
{
    bool has_backend = exchange->server->backend != NULL;
    size_t len = strcspn(head->target.bytes, "?");
    char path[1024];

    if (kinf__access_is_open(exchange) || (!has_backend && exchange->owner.authorizer == NULL))
        return KINF__STEP_ANSWERED;
    if (!has_backend &&
        (bearer_token(head->authorization).len == 0 || head->has_many_authorizations))
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
    return ask(exchange, head, path);
}

void kinf__access_release(struct kinf__exchange *exchange)
{
    if (exchange->owner.authorizer != NULL)
        kinf__authorizer_cancel(exchange->owner.authorizer, &exchange->access);
}
