/*
 * Ways and sources. Neighbours: exchange.c goes the way, passthrough.c the one to the API server,
 * resource.c the one to a cache. A request that is wider than what a source covers is never answered
 * in part.
 *
 * A way is decided without holding anything, since reviews may take their time; the source is chosen
 * again when it is held. If it has gone meanwhile, that is as if it had turned out not to have what is
 * asked for.
 */
#include "serve/route.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "rest/discovery.h"
#include "serve/demand.h"
#include "serve/exchange_priv.h"
#include "serve/passthrough.h"
#include "serve/token.h"

/* --- the decision --- */

static bool is_own(enum kinf__route route)
{
    return route == KINF__ROUTE_ROOT || route == KINF__ROUTE_HEALTH ||
           route == KINF__ROUTE_METRICS || route == KINF__ROUTE_DEBUG_STATE ||
           route == KINF__ROUTE_VERSION;
}

static bool is_discovery(enum kinf__route route)
{
    return route == KINF__ROUTE_API || route == KINF__ROUTE_APIS || route == KINF__ROUTE_GROUP ||
           route == KINF__ROUTE_GROUP_VERSION;
}

static bool is_supported(const char *method)
{
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(methods); i++) {
        if (strcmp(method, methods[i]) == 0)
            return true;
    }
    return false;
}

static bool is_get(const struct kinf__route_facts *facts)
{
    return strcmp(facts->head->method, "GET") == 0;
}

/* Whoever has no token sees in discovery what can be had without one. */
static bool is_for_upstream(const struct kinf__route_facts *facts)
{
    return facts->passes && !is_own(facts->route) && is_supported(facts->head->method) &&
           (facts->head->is_impersonated || !is_get(facts) || facts->route == KINF__ROUTE_OTHER ||
            facts->is_beyond || (is_discovery(facts->route) && facts->head->token.len != 0));
}

static enum kinf__way pass_on(const struct kinf__route_facts *facts)
{
    if (!facts->is_plain || facts->head->has_two_credentials)
        return KINF__WAY_MALFORMED;
    if (facts->head->token.len == 0)
        return KINF__WAY_NO_TOKEN;
    if (facts->is_pruned && strcmp(facts->head->method, "PUT") == 0)
        return KINF__WAY_PRUNED;
    return KINF__WAY_UPSTREAM;
}

/* Whether more can be said to who has no token than that: here, what the API server would not have or
 * do for anybody; where tokens are looked at, that there is none. */
static bool needs_no_token(const struct kinf__route_facts *facts)
{
    if (!facts->is_open)
        return facts->is_beyond && !facts->is_named;
    return facts->route == KINF__ROUTE_RESOURCE ? !facts->takes : is_discovery(facts->route);
}

static enum kinf__way find_resource(const struct kinf__route_facts *facts)
{
    if (!facts->is_known)
        return KINF__WAY_UNREADY;
    return facts->is_there ? KINF__WAY_CACHE : KINF__WAY_NOTHING;
}

/* Nobody has looked at the token of what is no GET: what there is is not told. */
static enum kinf__way refuse_method(const struct kinf__route_facts *facts)
{
    enum kinf__way way = find_resource(facts);

    return facts->is_open && facts->route == KINF__ROUTE_RESOURCE && way != KINF__WAY_CACHE
               ? way
               : KINF__WAY_METHOD;
}

/* exec, attach, port-forward, websockets. */
static bool can_upgrade(const struct kinf__route_facts *facts)
{
    return facts->passes && !is_own(facts->route) && facts->head->body_len == 0 &&
           (is_get(facts) || strcmp(facts->head->method, "POST") == 0);
}

enum kinf__way kinf__route_decide(const struct kinf__route_facts *facts)
{
    enum kinf__way way;

    if (facts->head->is_upgrade)
        return can_upgrade(facts) ? pass_on(facts) : KINF__WAY_UPGRADE;
    if (is_for_upstream(facts)) {
        way = pass_on(facts);
        if (way != KINF__WAY_NO_TOKEN || !needs_no_token(facts))
            return way;
    }
    if (facts->head->is_impersonated)
        return KINF__WAY_IMPERSONATED;
    if (facts->is_backend)
        return KINF__WAY_BACKEND;
    if (facts->route == KINF__ROUTE_OTHER)
        return KINF__WAY_NOTHING;
    if (!is_get(facts))
        return refuse_method(facts);
    return facts->route == KINF__ROUTE_RESOURCE ? find_resource(facts) : KINF__WAY_OWN;
}

bool kinf__route_is_reviewed(enum kinf__way way)
{
    return way >= KINF__WAY_BACKEND;
}

/* --- what the server has --- */

bool kinf__route_lacks_namespace(const struct kinf__request *request)
{
    return request->is_in_namespace && *request->name_space == '\0' && *request->name != '\0';
}

/* What the upstream has at this path, whatever is served of it; NULL: nothing. There is a catalog,
 * and the lock is held. */
static const struct kinf__catalog_entry *find_entry(const struct kinf__exchange *exchange)
{
    const struct kinf__request *request = &exchange->request;
    const struct kinf__catalog_entry *entry = kinf__catalog_find(
        exchange->server->catalog, request->group, request->version, request->resource);
    char name[2 * KINF_NAME_MAX];

    if (entry == NULL || (!entry->resource.namespaced && request->is_in_namespace) ||
        (entry->resource.namespaced && *request->name != '\0' && !request->is_in_namespace) ||
        (kinf__route_lacks_namespace(request) && kinf__is_custom_group(request->group)))
        return NULL;
    if (*request->subresource == '\0')
        return entry;
    snprintf(name, sizeof name, "%s/%s", request->resource, request->subresource);
    return kinf__catalog_find(exchange->server->catalog, request->group, request->version, name);
}

/* Objects are created in a list and otherwise changed by name, and never in all namespaces at once. */
static bool has_verb(const struct kinf__catalog_entry *entry, const struct kinf__request *request)
{
    bool is_list = *request->name == '\0', creates = request->verb == KINF__VERB_CREATE;

    if (request->verb <= KINF__VERB_WATCH)
        return true;
    if ((entry->resource.namespaced && *request->name_space == '\0') ||
        (*request->subresource == '\0' && request->verb != KINF__VERB_DELETE &&
         request->verb != KINF__VERB_DELETE_COLLECTION && is_list != creates))
        return false;
    return kinf__has_word(entry->resource.verbs, kinf__request_verb_to_string(request->verb));
}

/* --- which source --- */

static bool is_of_type(const struct kinf__source *source, const struct kinf__request *request)
{
    return strcmp(source->type->group, request->group) == 0 &&
           strcmp(source->type->version, request->version) == 0 &&
           strcmp(source->type->resource, request->resource) == 0;
}

/* An object that is found is in the scope; whether one that is not exists is another question. */
static bool covers(const struct kinf__source *source, const struct kinf__exchange *exchange)
{
    const struct kinf__request *request = &exchange->request;

    return kinf__scope_covers_namespace(&source->scope, request->name_space) &&
           (*request->name != '\0' ||
            kinf__scope_covers_selection(&source->scope, &exchange->options));
}

bool kinf__route_is_page_of_ours(const struct kinf__exchange *exchange)
{
    return exchange->options.text != NULL && *exchange->options.continue_token != '\0' &&
           kinf__token_is_of(exchange->server->token_issuer, exchange->options.continue_token);
}

bool kinf__route_wants_latest(const struct kinf__exchange *exchange)
{
    return *exchange->options.resource_version == '\0' && !kinf__route_is_page_of_ours(exchange);
}

/* One whose first was passed on: its type was not cached yet, or the cache was behind. */
static bool is_page_of_upstream(const struct kinf__exchange *exchange)
{
    return exchange->server->forwarder != NULL && exchange->head.token.len != 0 &&
           *exchange->options.continue_token != '\0' && !kinf__route_is_page_of_ours(exchange);
}

/* The first that covers it, and has all that is in its namespaces, if it `is_whole`; *ret_near is one of this
 * type that does not. */
static struct kinf__source *find_source(const struct kinf__exchange *exchange, bool is_whole,
                                        struct kinf__source **ret_near)
{
    const struct kinf__server *server = exchange->server;

    *ret_near = NULL;
    for (size_t i = 0; i < server->n_sources; i++) {
        struct kinf__source *source = server->sources[i];

        if (source->is_unserved || !is_of_type(source, &exchange->request))
            continue;
        if (covers(source, exchange) && !(is_whole && kinf__scope_is_selective(&source->scope)))
            return source;
        *ret_near = source;
    }
    return NULL;
}

/* The options are read, and the lock is held. Whether there is an object of a name only one that has all
 * knows. A source that does not cover it answers even so if it may: then *ret_is_wider. NULL: none, and
 * *ret_near is one of this type that does not. */
static struct kinf__source *choose_source(const struct kinf__exchange *exchange,
                                          struct kinf__source **ret_near, bool *ret_is_wider)
{
    struct kinf__source *found = NULL;

    *ret_near = NULL;
    *ret_is_wider = false;
    if (*exchange->request.subresource != '\0')
        return NULL;
    if (*exchange->request.name != '\0')
        found = find_source(exchange, true, ret_near);
    if (found == NULL)
        found = find_source(exchange, false, ret_near);
    if (found != NULL)
        return found;
    *ret_is_wider = *ret_near != NULL && (*ret_near)->assume_scope;
    return *ret_is_wider ? *ret_near : NULL;
}

static bool leaves_it_upstream(const struct kinf__exchange *exchange,
                               const struct kinf__source *source)
{
    return (source->consistency == KINF__CONSISTENCY_LATEST &&
            kinf__route_wants_latest(exchange)) ||
           is_page_of_upstream(exchange);
}

/* --- facts --- */

/* In whatever version. */
static bool is_of_resource(const struct kinf_type *type, const struct kinf__request *request)
{
    return strcmp(type->group, request->group) == 0 &&
           strcmp(type->resource, request->resource) == 0;
}

/* What was read stays with its readers when its source has gone. */
static bool was_pruned(const struct kinf__server *server, const struct kinf__request *request)
{
    for (size_t i = 0; i < server->n_pruned; i++) {
        if (is_of_resource(server->pruned[i], request))
            return true;
    }
    return false;
}

/* Other subresources have a body of their own, which takes nothing away from the object. */
static bool is_pruned(const struct kinf__server *server, const struct kinf__request *request)
{
    bool is_whole = false;

    if (*request->subresource != '\0' && strcmp(request->subresource, "status") != 0)
        return false;
    for (size_t i = 0; i < server->n_sources; i++) {
        if (server->sources[i]->is_unserved || !is_of_resource(server->sources[i]->type, request))
            continue;
        if (server->sources[i]->is_pruned)
            return true;
        is_whole = true;
    }
    return !is_whole && was_pruned(server, request);
}

/* Whether no cache answers: options that are refused are refused here. The lock is held. */
static bool is_beyond(const struct kinf__exchange *exchange)
{
    struct kinf__source *near, *source;
    bool is_wider;

    if (kinf__route_lacks_namespace(&exchange->request) || exchange->options.text == NULL)
        return false;
    source = choose_source(exchange, &near, &is_wider);
    return source == NULL || leaves_it_upstream(exchange, source);
}

/* The lock is held. */
static void look_at_resource(const struct kinf__exchange *exchange, struct kinf__route_facts *facts)
{
    const struct kinf__server *server = exchange->server;
    const struct kinf__catalog_entry *entry;

    facts->is_pruned = is_pruned(server, &exchange->request);
    facts->is_known = server->catalog != NULL;
    if (!facts->is_known)
        return;
    entry = find_entry(exchange);
    facts->is_there = entry != NULL;
    facts->takes = facts->is_there && has_verb(entry, &exchange->request);
    facts->is_beyond = is_get(facts) && (!facts->is_there || is_beyond(exchange));
}

static struct kinf__route_facts look(const struct kinf__exchange *exchange)
{
    const struct kinf__request_head *head = &exchange->head;
    struct kinf__route_facts facts = {
        .head = head,
        .route = exchange->request.route,
        .passes = exchange->server->forwarder != NULL,
        .is_open = exchange->owner.authorizer == NULL,
        .is_named = kinf__client_certificate_names(exchange->owner.certificate),
        .is_backend = exchange->body_state != KINF__BODY_UNWANTED,
        .is_plain = kinf__passthrough_is_plain(head->method, head->target),
        .is_there = true,
        .takes = true,
    };

    if (facts.route != KINF__ROUTE_RESOURCE)
        return facts;
    kinf__mutex_lock(&exchange->server->lock);
    look_at_resource(exchange, &facts);
    kinf__mutex_unlock(&exchange->server->lock);
    return facts;
}

enum kinf__way kinf__route_choose(struct kinf__exchange *exchange)
{
    struct kinf__refusal ignored = { 0 };
    struct kinf__route_facts facts;
    int failed = 0;

    /* Why they are refused is for those to know who may ask. */
    if (exchange->request.route == KINF__ROUTE_RESOURCE)
        failed = kinf__exchange_read_options(exchange, &ignored);
    (void)failed;
    facts = look(exchange);
    return kinf__route_decide(&facts);
}

/* --- refusals --- */

int kinf__route_refuse_unready(struct kinf__exchange *exchange)
{
    kinf__refuse(exchange->refusal, 429, "TooManyRequests", "the cache is not ready yet");
    return kinf__refusal_empty(exchange->refusal, 1);
}

int kinf__route_refuse_unknown(struct kinf__exchange *exchange)
{
    const struct kinf__catalog *catalog = exchange->server->catalog;
    const char *group = exchange->request.group;

    if (*group != '\0' &&
        (!kinf__catalog_has_group(catalog, group) || kinf__is_custom_group(group)))
        return kinf__refuse_path(exchange->refusal);
    return kinf__refuse_resource(exchange->refusal);
}

/* Between the decision and this the catalog only becomes another. */
static int refuse_nothing(struct kinf__exchange *exchange)
{
    int failed;

    if (exchange->request.route == KINF__ROUTE_OTHER)
        return kinf__refuse_path(exchange->refusal);
    kinf__mutex_lock(&exchange->server->lock);
    failed = kinf__route_refuse_unknown(exchange);
    kinf__mutex_unlock(&exchange->server->lock);
    return failed;
}

int kinf__route_refuse_scope(struct kinf__exchange *exchange, const struct kinf__source *source)
{
    const struct kinf__request *request = &exchange->request;
    char resource[2 * KINF_NAME_MAX], scope[512] = "";

    snprintf(resource, sizeof resource, "%s%s%s", request->resource,
             *request->group != '\0' ? "." : "", request->group);
    if (source != NULL)
        kinf__scope_words(&source->scope, scope, sizeof scope);
    if (*request->subresource != '\0')
        kinf__refuse(exchange->refusal, 403, "Forbidden",
                     "%s \"%s\" is forbidden: the subresource \"%s\" is not served from a cache",
                     resource, request->name, request->subresource);
    else
        kinf__refuse(exchange->refusal, 403, "Forbidden", "%s is forbidden: this cache has %s%s",
                     resource, source != NULL ? "only those" : "no such resource", scope);
    kinf__refusal_set_object(exchange->refusal, request->group, request->resource, request->name);
    return KINF_ERR_INVALID;
}

static int refuse_latest(struct kinf__exchange *exchange)
{
    return kinf__refuse(exchange->refusal, 403, "Forbidden",
                        "%s without a resourceVersion are answered by the API server alone",
                        exchange->request.resource);
}

int kinf__route_refuse(struct kinf__exchange *exchange, enum kinf__way way)
{
    struct kinf__refusal *refusal = exchange->refusal;

    switch (way) {
    case KINF__WAY_UPGRADE:
        kinf__refuse(refusal, 403, "Forbidden",
                     "upgraded connections (exec, attach, port-forward, websockets) %s",
                     exchange->server->backend != NULL
                         ? "are not for kinformer-sim, where no container runs"
                         : "are only for what kinformerd passes on to the API server "
                           "(--pass-through)");
        break;
    case KINF__WAY_NO_TOKEN:
        kinf__refuse(
            refusal, 401, "Unauthorized",
            "this is passed on to the API server, which needs a bearer token of yours (%s)",
            kinf__client_certificate_names(exchange->owner.certificate)
                ? "a client certificate is good for what is read here"
                : "kubectl sends none over plain HTTP");
        break;
    case KINF__WAY_PRUNED:
        kinf__refuse(refusal, 405, "MethodNotAllowed",
                     "%s cannot be replaced (PUT) here: this cache leaves fields out of them, and "
                     "what was read from it would delete those; use PATCH (kubectl patch, kubectl "
                     "apply --server-side)",
                     exchange->request.resource);
        break;
    case KINF__WAY_IMPERSONATED:
        kinf__refuse(refusal, 403, "Forbidden", "impersonation is not answered from a cache");
        break;
    case KINF__WAY_UNREADY:
        return kinf__route_refuse_unready(exchange);
    case KINF__WAY_NOTHING:
        return refuse_nothing(exchange);
    case KINF__WAY_METHOD:
        kinf__refuse(refusal, 405, "MethodNotAllowed",
                     "the server does not allow this method on the requested resource");
        break;
    default:
        kinf__refuse(refusal, 400, "BadRequest",
                     "the request is not passed on: its target or its headers can be read in more "
                     "than one way");
        break;
    }
    return kinf__refusal_empty(refusal, 0);
}

/* --- on the way to a cache --- */

static void warn_of_source(struct kinf__exchange *exchange, const struct kinf__source *source,
                           bool is_wider)
{
    char scope[160];

    kinf__scope_words(&source->scope, scope, sizeof scope);
    if (is_wider)
        kinf__answer_warn(&exchange->answer, "kinformer: only %s%s are in this answer",
                          source->type->resource, scope);
    else if (source->is_pruned)
        kinf__answer_warn(&exchange->answer,
                          "kinformer: these %s come without the fields that this cache leaves out",
                          source->type->resource);
}

static int acquire_source_locked(struct kinf__exchange *exchange)
{
    struct kinf__source *near, *source;
    bool is_wider;

    source = choose_source(exchange, &near, &is_wider);
    if (source == NULL)
        return kinf__route_refuse_scope(exchange, near);
    if (leaves_it_upstream(exchange, source))
        return refuse_latest(exchange);
    warn_of_source(exchange, source, is_wider);
    source->n_users++;
    source->used_ms = kinf__clock_now_ms();
    exchange->source = source;
    return 0;
}

/* --- types on demand --- */

/* What the configuration names is as it says, whatever else is asked for. */
static bool is_configured(const struct kinf__exchange *exchange)
{
    const struct kinf__server *server = exchange->server;

    for (size_t i = 0; i < server->n_sources + server->n_unpublished; i++) {
        if (!server->sources[i]->is_on_demand && is_of_type(server->sources[i], &exchange->request))
            return true;
    }
    return false;
}

/* The lock is held, and there is a catalog. */
static void note_demand(const struct kinf__exchange *exchange, struct kinf__demand *demand)
{
    const struct kinf__request *request = &exchange->request;
    const struct kinf__catalog_entry *entry = find_entry(exchange);

    if (entry == NULL)
        kinf__demand_ask_unknown(demand);
    else if (!is_configured(exchange))
        kinf__demand_ask(
            demand,
            &(struct kinf__demand_request){ .group = request->group,
                                            .version = request->version,
                                            .resource = request->resource,
                                            .verbs = entry->resource.verbs,
                                            .is_get = request->verb == KINF__VERB_GET },
            kinf__clock_now_ms());
}

void kinf__route_note_demand(struct kinf__exchange *exchange)
{
    struct kinf__server *server = exchange->server;
    const struct kinf__request *request = &exchange->request;

    if (server->demand == NULL || request->route != KINF__ROUTE_RESOURCE ||
        request->verb > KINF__VERB_WATCH || *request->subresource != '\0' ||
        exchange->head.is_impersonated)
        return;
    kinf__mutex_lock(&server->lock);
    if (server->catalog != NULL)
        note_demand(exchange, server->demand);
    kinf__mutex_unlock(&server->lock);
}

int kinf__route_acquire_source(struct kinf__exchange *exchange)
{
    int failed;

    kinf__mutex_lock(&exchange->server->lock);
    failed = acquire_source_locked(exchange);
    kinf__mutex_unlock(&exchange->server->lock);
    return failed < 0 ? kinf__route_go_upstream(exchange) : 0;
}

int kinf__route_go_upstream(struct kinf__exchange *exchange)
{
    struct kinf__route_facts facts = look(exchange);
    enum kinf__way way;

    facts.is_beyond = true;
    way = kinf__route_decide(&facts);
    if (way == KINF__WAY_UPSTREAM)
        return kinf__passthrough_begin(exchange);
    return kinf__route_is_reviewed(way) ? KINF_ERR_INVALID : kinf__route_refuse(exchange, way);
}
