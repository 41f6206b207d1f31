/*
 * What the server says of itself and of what it serves. Neighbours: catalog.c writes documents of
 * discovery, state.c health and metrics, page.c the page.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hmap.h"
#include "serve/exchange_priv.h"

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

static void mark_discovery(struct kinf__exchange *exchange)
{
    struct kinf__answer *answer = &exchange->answer;

    answer->content_type = discovery_json;
    answer->is_public = true;
    snprintf(answer->etag, sizeof answer->etag, "\"%016" PRIX64 "\"",
             kinf__hash(kinf__buffer_str(&answer->body)));
    if (equals_etag(exchange->head.if_none_match, answer->etag)) {
        answer->code = 304;
        answer->body.len = 0;
    }
}

static int answer_discovery(struct kinf__exchange *exchange)
{
    enum kinf__route route = exchange->request.route;
    bool is_root = route == KINF__ROUTE_API || route == KINF__ROUTE_APIS;
    int failed = kinf__accept_negotiate(exchange->head.accept,
                                        is_root ? KINF__FORMS_DISCOVERY : KINF__FORMS_PLAIN,
                                        &exchange->accepted, exchange->refusal);

    if (failed < 0)
        return failed;
    exchange->answer.content_type = json;
    kinf__mutex_lock(&exchange->server->lock);
    if (exchange->server->catalog == NULL)
        failed = kinf__route_refuse_unready(exchange);
    else if ((failed = write_discovery(exchange)) == KINF_ERR_NOT_FOUND)
        failed = kinf__route_refuse_unknown(exchange);
    else if (failed < 0)
        failed = kinf__refuse_no_memory(exchange->refusal);
    kinf__mutex_unlock(&exchange->server->lock);
    if (failed == 0 && exchange->accepted.form == KINF__FORM_DISCOVERY)
        mark_discovery(exchange);
    return failed;
}

/* A daemon that began without its API server has types, and no version yet. */
static int answer_version(struct kinf__exchange *exchange)
{
    const struct kinf__catalog *catalog;
    int failed = 0;

    exchange->answer.content_type = json;
    kinf__mutex_lock(&exchange->server->lock);
    catalog = exchange->server->catalog;
    if (catalog == NULL || *kinf__catalog_version(catalog) == '\0')
        failed = kinf__route_refuse_unready(exchange);
    else if (kinf__buffer_printf(&exchange->answer.body, "%s\n", kinf__catalog_version(catalog)) <
             0)
        failed = kinf__refuse_no_memory(exchange->refusal);
    kinf__mutex_unlock(&exchange->server->lock);
    return failed;
}

static int answer_root(struct kinf__exchange *exchange)
{
    const char *accept = exchange->head.accept;

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

/* --- which --- */

int kinf__own_answer(struct kinf__exchange *exchange)
{
    switch (exchange->request.route) {
    case KINF__ROUTE_HEALTH:
        return kinf__state_answer_health(exchange);
    case KINF__ROUTE_METRICS:
        return kinf__state_answer_metrics(exchange);
    case KINF__ROUTE_DEBUG_STATE:
        return kinf__state_answer_debug(exchange);
    case KINF__ROUTE_VERSION:
        return answer_version(exchange);
    case KINF__ROUTE_ROOT:
        return answer_root(exchange);
    default:
        return answer_discovery(exchange);
    }
}
