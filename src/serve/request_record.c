/*
 * From exchanges to counters and lines. Neighbours: exchange.c and access.c call, request_metrics.c
 * counts.
 */
#include "serve/request_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "serve/exchange_priv.h"
#include "serve/query.h"
#include "serve/report.h"

#define TARGET_MAX   1024
#define RESOURCE_MAX 320 /* "RESOURCE.GROUP" */

/* --- the beginning --- */

static bool may_be_told(struct kinf_str name)
{
    static const char *const names[] = { "allowWatchBookmarks",
                                         "container",
                                         "dryRun",
                                         "fieldManager",
                                         "fieldSelector",
                                         "fieldValidation",
                                         "follow",
                                         "force",
                                         "gracePeriodSeconds",
                                         "includeObject",
                                         "labelSelector",
                                         "limit",
                                         "previous",
                                         "propagationPolicy",
                                         "resourceVersion",
                                         "resourceVersionMatch",
                                         "sendInitialEvents",
                                         "shardSelector",
                                         "sinceSeconds",
                                         "tailLines",
                                         "timeout",
                                         "timeoutSeconds",
                                         "verbose",
                                         "watch" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        if (kinf__query_is_named(name, names[i]))
            return true;
    }
    return false;
}

/* A page is told from the first one, its token is not. */
static int append_pair(struct kinf__buffer *out, const struct kinf__query_pair *pair, char before)
{
    if (kinf__query_is_named(pair->name, "continue"))
        return kinf__buffer_printf(out, "%ccontinue=...", before);
    return kinf__buffer_printf(out, "%c%.*s=%.*s", before, (int)pair->name.len, pair->name.bytes,
                               (int)pair->value.len, pair->value.bytes);
}

static int append_query(struct kinf__buffer *out, struct kinf_str query)
{
    struct kinf__query_pair pair;
    char before = '?';
    int failed = 0;

    while (failed == 0 && out->len < TARGET_MAX && kinf__query_next(&query, &pair)) {
        if (!may_be_told(pair.name) && !kinf__query_is_named(pair.name, "continue"))
            continue;
        failed = append_pair(out, &pair, before);
        before = '&';
    }
    return failed;
}

/* What is behind "/proxy/" is another server's, and may be its password. */
static size_t told_path_len(struct kinf_str target)
{
    static const char proxy[] = "/proxy/";
    const char *mark = memchr(target.bytes, '?', target.len);
    size_t len = mark != NULL ? (size_t)(mark - target.bytes) : target.len;
    const char *found = memmem(target.bytes, len, proxy, sizeof proxy - 1);

    return found != NULL ? (size_t)(found - target.bytes) + sizeof proxy - 1 : len;
}

/* NULL: no memory. */
static char *tell_target(struct kinf_str target, struct kinf_str query)
{
    struct kinf__buffer text = KINF__BUFFER_INIT;

    target.len = told_path_len(target);
    /* "http://USER:PASSWORD@HOST/" */
    if (target.len != 0 && target.bytes[0] != '/')
        target.len = 0;
    if (kinf__buffer_append_str(&text, target) < 0 || append_query(&text, query) < 0) {
        kinf__buffer_release(&text);
        return NULL; /* no memory */
    }
    if (text.len > TARGET_MAX)
        text.len = TARGET_MAX;
    (void)kinf__buffer_cstr(&text);
    return text.bytes;
}

void kinf__request_record_begin(struct kinf__exchange *exchange)
{
    const struct kinf__request *request = &exchange->request;
    struct kinf__request_record *record = &exchange->record;

    record->began_ns = kinf__clock_now_ns();
    record->is_endless =
        request->verb == KINF__VERB_WATCH || kinf__request_is_true(request, "follow");
    if (exchange->server->log_request != NULL)
        record->target = tell_target(exchange->head.target, request->query);
}

/* Whether nobody had to be asked; what could not be asked for is no such thing. */
static bool is_kept(const struct kinf__request_record *record, enum kinf__verdict verdict)
{
    return !record->awaits_review && verdict != KINF__VERDICT_THROTTLED &&
           verdict != KINF__VERDICT_FAILED;
}

void kinf__request_record_access(struct kinf__exchange *exchange,
                                 const struct kinf__access_answer *answer)
{
    struct kinf__request_record *record = &exchange->record;

    if (answer->verdict == KINF__VERDICT_WAITS) {
        record->awaits_review = true;
        return;
    }
    kinf__request_metrics_note_decision(&exchange->server->request_metrics,
                                        is_kept(record, answer->verdict), answer->verdict);
    if (exchange->server->log_request != NULL && *answer->user != '\0' && record->user == NULL)
        record->user = strdup(answer->user);
}

/* --- the end --- */

static enum kinf__request_source source_of(const struct kinf__exchange *exchange)
{
    if (exchange->answer.is_passed)
        return KINF__SOURCE_UPSTREAM;
    return exchange->request.route == KINF__ROUTE_RESOURCE ? KINF__SOURCE_CACHE : KINF__SOURCE_SELF;
}

/* Writes what the server has, else "other": clients may make up what they like. */
static void name_resource(const struct kinf__exchange *exchange, char *name, size_t size)
{
    const struct kinf__request *request = &exchange->request;
    struct kinf__server *server = exchange->server;
    bool is_known;

    if (request->route != KINF__ROUTE_RESOURCE) {
        *name = '\0';
        return;
    }
    kinf__mutex_lock(&server->lock);
    is_known =
        server->catalog != NULL && kinf__catalog_find(server->catalog, request->group,
                                                      request->version, request->resource) != NULL;
    kinf__mutex_unlock(&server->lock);
    if (is_known)
        snprintf(name, size, "%s%s%s", request->resource, *request->group != '\0' ? "." : "",
                 request->group);
    else
        snprintf(name, size, "%s", KINF__REQUEST_OTHER);
}

static int write_line(const struct kinf__exchange *exchange,
                      const struct kinf__request_outcome *outcome, struct kinf__buffer *line)
{
    const struct kinf__request_record *record = &exchange->record;
    struct kinf__report report = { .out = line,
                                   .now_ms = kinf__clock_now_ms(),
                                   .now_wall_ms = kinf__clock_wall_ms() };

    kinf__report_open(&report, NULL, '{');
    kinf__report_time(&report, "time", report.now_ms);
    if (record->user != NULL)
        kinf__report_text(&report, "user", record->user);
    kinf__report_text(&report, "client", exchange->client.peer);
    kinf__report_text(&report, "verb", kinf__request_verb_to_string(outcome->verb));
    kinf__report_text(&report, "target", record->target != NULL ? record->target : "");
    kinf__report_count(&report, "code", (uint64_t)outcome->code);
    kinf__report_text(&report, "source", kinf__request_source_to_string(outcome->source));
    kinf__report_exact_ms(&report, "ms", outcome->duration_ns);
    kinf__report_close(&report, '}');
    return kinf__report_end(&report);
}

static void log_line(struct kinf__exchange *exchange, const struct kinf__request_outcome *outcome)
{
    struct kinf__server *server = exchange->server;
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    uint64_t n_dropped = 1;

    if (write_line(exchange, outcome, &line) == 0)
        n_dropped = server->log_request(kinf__buffer_str(&line), server->log_ctx);
    atomic_fetch_add_explicit(&server->n_log_dropped, n_dropped, memory_order_relaxed);
}

static void tell(struct kinf__exchange *exchange)
{
    struct kinf__request_record *record = &exchange->record;
    char resource[RESOURCE_MAX];
    const struct kinf__request_outcome outcome = {
        .verb = exchange->answer.code == 101 ? KINF__VERB_CONNECT : exchange->request.verb,
        .source = source_of(exchange),
        .resource = resource,
        .code = exchange->phase == KINF__PHASE_GIVEN ? exchange->answer.code : KINF__CODE_GONE,
        .duration_ns = kinf__clock_now_ns() - record->began_ns,
    };

    name_resource(exchange, resource, sizeof resource);
    kinf__request_metrics_observe(&exchange->server->request_metrics, &outcome);
    if (exchange->server->log_request != NULL)
        log_line(exchange, &outcome);
}

void kinf__request_record_end(struct kinf__exchange *exchange)
{
    struct kinf__request_record *record = &exchange->record;

    if (record->began_ns != 0)
        tell(exchange);
    record->began_ns = 0;
    free(record->target);
    free(record->user);
    record->target = record->user = NULL;
}

void kinf__request_record_answer(struct kinf__exchange *exchange)
{
    if (exchange->record.is_endless)
        kinf__request_record_end(exchange);
}
