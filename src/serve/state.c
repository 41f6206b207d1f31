/*
 * What the server says of itself to probes and to Prometheus: health and metrics. Neighbours:
 * exchange.c routes here, debug_state.c tells more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/api.h>
#include <kinformer/metrics.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "informer/saved.h"
#include "serve/authorizer.h"
#include "serve/demand.h"
#include "serve/exchange_priv.h"
#include "serve/process_metrics.h"

/* A stale type on demand is given up by then (demand.h, D10), unless the API server is away. */
#define GIVE_UP_MS 20000

static const char plain[] = "text/plain; charset=utf-8";

void kinf__source_status(const struct kinf__source *source, struct kinf_informer_status *ret_status)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;

    if (source->informer != NULL) {
        kinf_informer_status(source->informer, ret_status);
        return;
    }
    *ret_status = (struct kinf_informer_status){ .state = KINF_STATE_LIVE,
                                                 .last_contact_ms = kinf__clock_now_ms() };
    snapshot = kinf__watchcache_snapshot(source->cache, NULL);
    ret_status->has_synced = snapshot != NULL;
    if (snapshot != NULL)
        ret_status->n_objects = kinf_snapshot_count(snapshot);
}

/* 0: nothing of what it has is of an earlier run and unconfirmed. */
static int64_t saved_wall_ms(const struct kinf__source *source)
{
    return source->informer != NULL ? kinf__informer_saved_wall_ms(source->informer) : 0;
}

const char *kinf__source_missing(const struct kinf__source *source)
{
    if (kinf__watchcache_version(source->cache) == 0)
        return "the first list is not in the cache yet";
    return source->serves_saved || saved_wall_ms(source) == 0
               ? NULL
               : "the API server has not confirmed yet what the cache has from before a restart";
}

bool kinf__source_is_saved(const struct kinf__source *source)
{
    return saved_wall_ms(source) != 0;
}

bool kinf__source_saved_when(const struct kinf__source *source, char buf[KINF__RFC3339_SIZE])
{
    int64_t wall_ms = saved_wall_ms(source);

    if (wall_ms != 0)
        kinf__rfc3339_write(wall_ms / 1000, 0, 0, buf);
    return wall_ms != 0;
}

int64_t kinf__source_staleness_ms(const struct kinf__source *source, int64_t now_ms)
{
    int64_t wall_ms = saved_wall_ms(source);
    struct kinf_informer_status status;

    if (wall_ms != 0)
        return kinf__clock_wall_ms() > wall_ms ? kinf__clock_wall_ms() - wall_ms : 0;
    kinf__source_status(source, &status);
    if (status.last_contact_ms == 0)
        return -1;
    return now_ms > status.last_contact_ms ? now_ms - status.last_contact_ms : 0;
}

uint64_t kinf__source_left_out(const struct kinf__source *source)
{
    struct kinf_informer_status status;

    kinf__source_status(source, &status);
    return status.n_quarantined;
}

/* --- health --- */

/* Why a source is not ready; NULL if it is. */
static const char *unready_reason(const struct kinf__server *server,
                                  const struct kinf__source *source)
{
    int64_t max_ms = server->max_staleness_ms + (source->is_on_demand ? GIVE_UP_MS : 0);
    int64_t staleness_ms;

    if (kinf__watchcache_version(source->cache) == 0)
        return "not synced";
    if (saved_wall_ms(source) != 0)
        return source->serves_saved ? NULL : "stale, of before a restart, and not confirmed";
    staleness_ms = kinf__source_staleness_ms(source, kinf__clock_now_ms());
    return staleness_ms < 0 || staleness_ms > max_ms ? "stale" : NULL;
}

struct checks {
    struct kinf__exchange *exchange;
    struct kinf__buffer lines;
    bool is_failed;
    bool is_found;    /* the one that was asked for */
    bool has_remarks; /* there is more to say than "ok" */
    bool is_out_of_memory;
};

/* `remark` is told and fails nothing; "": none. */
static void add_check(struct checks *checks, const char *name, const char *reason,
                      const char *remark)
{
    const char *asked = checks->exchange->request.name;
    int failed;

    if (*asked != '\0' && strcmp(asked, name) != 0)
        return;
    checks->is_found = true;
    checks->is_failed = checks->is_failed || reason != NULL;
    checks->has_remarks = checks->has_remarks || *remark != '\0';
    failed = reason == NULL
                 ? kinf__buffer_printf(&checks->lines, "[+]%s ok%s\n", name, remark)
                 : kinf__buffer_printf(&checks->lines, "[-]%s failed: %s\n", name, reason);
    checks->is_out_of_memory = checks->is_out_of_memory || failed < 0;
}

/* One broken object must not take the others out of service. */
static void add_source_check(struct checks *checks, const struct kinf__source *source)
{
    uint64_t n_left_out = kinf__source_left_out(source);
    char remark[96] = "", when[KINF__RFC3339_SIZE];

    if (n_left_out != 0)
        snprintf(remark, sizeof remark, ", %" PRIu64 " objects left out", n_left_out);
    else if (kinf__source_saved_when(source, when))
        snprintf(remark, sizeof remark, ", stale, of %s, and not confirmed", when);
    add_check(checks, source->name, unready_reason(checks->exchange->server, source), remark);
}

static void add_source_checks(struct checks *checks)
{
    struct kinf__server *server = checks->exchange->server;

    kinf__mutex_lock(&server->lock);
    add_check(checks, "discovery", server->catalog != NULL ? NULL : "not fetched", "");
    for (size_t i = 0; i < server->n_sources; i++) {
        if (!server->sources[i]->is_unserved)
            add_source_check(checks, server->sources[i]);
    }
    kinf__mutex_unlock(&server->lock);
}

static void add_authorization_check(struct checks *checks)
{
    struct kinf__authorizer *authorizer = checks->exchange->server->authorizer;
    struct kinf__authorizer_status status;
    char remark[96] = "";

    if (authorizer == NULL)
        return;
    kinf__authorizer_status(authorizer, kinf__clock_now_ms(), &status);
    if (status.away_ms != 0)
        snprintf(remark, sizeof remark, ", by answers of before: nobody reviews for %" PRId64 " s",
                 status.away_ms / 1000);
    add_check(checks, "authorization",
              status.answers_nobody ? "the API server does not say who may read" : NULL, remark);
}

static int write_checks(struct checks *checks)
{
    struct kinf__exchange *exchange = checks->exchange;
    const char *check = exchange->request.check;
    struct kinf__buffer *out = &exchange->answer.body;

    if (!checks->is_failed && !checks->has_remarks &&
        !kinf__request_has_parameter(&exchange->request, "verbose"))
        return kinf__buffer_append(out, "ok", 2);
    if (kinf__buffer_append_str(out, kinf__buffer_str(&checks->lines)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, "%s check %s\n", check,
                               checks->is_failed ? "failed" : "passed");
}

int kinf__state_answer_health(struct kinf__exchange *exchange)
{
    struct checks checks = { .exchange = exchange, .lines = KINF__BUFFER_INIT };
    int failed;

    add_check(&checks, "ping", NULL, "");
    if (strcmp(exchange->request.check, "readyz") == 0) {
        add_source_checks(&checks);
        add_authorization_check(&checks);
    }
    exchange->answer.content_type = plain;
    exchange->answer.code = checks.is_failed ? 500 : 200;
    failed = checks.is_out_of_memory ? KINF_ERR_NO_MEMORY : write_checks(&checks);
    kinf__buffer_release(&checks.lines);
    if (failed == 0 && checks.is_found)
        return 0;
    exchange->answer.code = 0;
    return failed < 0 ? kinf__refuse_no_memory(exchange->refusal)
                      : kinf__refuse_path(exchange->refusal);
}

/* --- metrics --- */

/* X(name, type, decimals, help, value), of a source's `cache` and `session` */
#define SOURCE_METRICS(X)                                                                          \
    X("kinformer_store_bytes", GAUGE, 0, "Bytes of the objects in the store.", cache->store_bytes) \
    X("kinformer_history_events", GAUGE, 0, "Events that a watch can be resumed in.",              \
      cache->n_events)                                                                             \
    X("kinformer_history_bytes", GAUGE, 0, "Memory that the history alone holds.",                 \
      cache->history_bytes)                                                                        \
    X("kinformer_pages", GAUGE, 0, "Old versions held for lists in pages.", cache->n_pages)        \
    X("kinformer_page_bytes", GAUGE, 0, "Memory that old versions hold, about.",                   \
      cache->page_bytes)                                                                           \
    X("kinformer_watchers", GAUGE, 0, "Watches that are served.", cache->n_cursors)                \
    X("kinformer_watcher_max_lag_events", GAUGE, 0,                                                \
      "Events that the slowest watch has before it.", cache->max_lag)                              \
    X("kinformer_watcher_max_lag_seconds", GAUGE, 3, "How long the first of them waits.",          \
      since_ms(cache->max_lag_since_ms))                                                           \
    X("kinformer_watchers_expired_total", COUNTER, 0, "Watches that fell out of the history.",     \
      cache->n_cursors_expired)                                                                    \
    X("kinformer_watchers_cut_off_total", COUNTER, 0,                                              \
      "Watches of those that held too much of what the history has no more.",                      \
      cache->n_cursors_given_up)                                                                   \
    X("kinformer_watcher_wakes_total", COUNTER, 0, "Times that a watch was woken.",                \
      cache->n_wakes)                                                                              \
    X("kinformer_session_waits_total", COUNTER, 0,                                                 \
      "Reads that waited until the cache had what was written through it.", session->n_waits)      \
    X("kinformer_session_misses_total", COUNTER, 0,                                                \
      "Reads that the cache did not answer, since it had not got that.", session->n_misses)

static const struct kinf__metric source_metrics[] = { SOURCE_METRICS(KINF__METRIC_ROW) };

/* 0: never. */
static uint64_t since_ms(int64_t at_ms)
{
    int64_t now_ms = kinf__clock_now_ms();

    return at_ms != 0 && now_ms > at_ms ? (uint64_t)(now_ms - at_ms) : 0;
}

static uint64_t metric_value(size_t metric, const struct kinf__watchcache_status *cache,
                             const struct kinf__session_status *session)
{
    const uint64_t values[] = { SOURCE_METRICS(KINF__METRIC_VALUE) };

    return values[metric];
}

/* One family, a sample for each source. The lock is held. */
static int write_family(const struct kinf__server *server, size_t metric, struct kinf__buffer *out)
{
    const struct kinf__metric *family = &source_metrics[metric];
    int failed = kinf__metrics_family(out, family->name, family->type, family->help);

    for (size_t i = 0; failed == 0 && i < server->n_sources; i++) {
        struct kinf__source *source = server->sources[i];
        struct kinf__label label = { "name", source->name };
        struct kinf__watchcache_status cache;
        struct kinf__session_status session;

        if (source->is_unserved)
            continue;
        kinf__watchcache_status(source->cache, &cache);
        kinf__session_status(&source->session, &session);
        failed = kinf__metrics_sample(out, family->name, &label, 1,
                                      metric_value(metric, &cache, &session), family->n_decimals);
    }
    return failed;
}

static int write_informers(const struct kinf__server *server, struct kinf__buffer *out)
{
    struct kinf_metrics_source *sources = calloc(server->n_sources + 1, sizeof *sources);
    size_t n = 0;
    char *text = NULL;
    int failed = sources != NULL ? 0 : KINF_ERR_NO_MEMORY;

    for (size_t i = 0; failed == 0 && i < server->n_sources; i++) {
        if (server->sources[i]->informer != NULL)
            sources[n++] = (struct kinf_metrics_source){ server->sources[i]->name,
                                                         server->sources[i]->informer };
    }
    if (failed == 0)
        failed = kinf_metrics_text(sources, n, &text, NULL);
    if (failed == 0)
        failed = kinf__buffer_append_str(out, kinf_str_from(text));
    free(text);
    free(sources);
    return failed;
}

static int write_build(struct kinf__buffer *out)
{
    static const char name[] = "kinformer_build_info";
    const struct kinf__label label = { "version", KINF_VERSION_STRING };
    int failed = kinf__metrics_family(out, name, KINF__METRIC_GAUGE, "Always 1; what is running.");

    return failed < 0 ? failed : kinf__metrics_sample(out, name, &label, 1, 1, 0);
}

/* X(name, type, decimals, help, value), of `server`, `access` and `upstream`: zeros where nobody decides
 * and nothing is passed on. */
#define SERVER_METRICS(X)                                                                          \
    X("kinformer_requests_in_flight", GAUGE, 0, "Requests under way, watches included.",           \
      server->n_exchanges)                                                                         \
    X("kinformer_requests_crowded_total", COUNTER, 0,                                              \
      "Requests that were not passed on, since too many were.", server->n_crowded)                 \
    X("kinformer_lists_cut_off_total", COUNTER, 0,                                                 \
      "Lists that were not read to their end within a minute.", server->n_lists_cut_off)           \
    X("kinformer_access_log_dropped_total", COUNTER, 0,                                            \
      "Requests that are not in the access log, since it was too slow, or full.",                  \
      atomic_load(&server->n_log_dropped))                                                         \
    X("kinformer_access_unreviewed_seconds", GAUGE, 0,                                             \
      "For how long the API server reviews nothing; 0: it does.", (access.away_ms + 999) / 1000)   \
    X("kinformer_access_stale_total", COUNTER, 0,                                                  \
      "Requests that an older answer of the API server let in, since it reviews nothing "          \
      "(authStaleFor).",                                                                           \
      access.n_stale)                                                                              \
    X("kinformer_upstream_requests_in_flight", GAUGE, 0,                                           \
      "Requests that are passed on and not over.", upstream.n_forwards)                            \
    X("kinformer_upstream_connections_total", COUNTER, 0,                                          \
      "Connections made for requests that were passed on.", upstream.n_connections)

/* The lock is held. */
static int write_numbers(const struct kinf__server *server, struct kinf__buffer *out)
{
    static const struct kinf__metric families[] = { SERVER_METRICS(KINF__METRIC_ROW) };
    struct kinf__authorizer_status access = { .n_stale = 0 };
    struct kinf__forwarder_status upstream = { .n_forwards = 0 };

    if (server->authorizer != NULL)
        kinf__authorizer_status(server->authorizer, kinf__clock_now_ms(), &access);
    if (server->forwarder != NULL)
        kinf__forwarder_status(server->forwarder, &upstream);

    const uint64_t values[] = { SERVER_METRICS(KINF__METRIC_VALUE) };

    return kinf__metrics_numbers(out, families, values, KINF__ARRAY_LEN(families), NULL);
}

/* Empty where nothing is passed on. */
static int write_latency(const struct kinf__server *server, struct kinf__buffer *out)
{
    static const char name[] = "kinformer_upstream_response_seconds";
    const struct kinf__histogram none = { .sum_ns = 0 };
    int failed =
        kinf__metrics_family(out, name, KINF__METRIC_HISTOGRAM,
                             "Time until the API server begins to answer what is passed on.");

    return failed < 0 ? failed
                      : kinf__metrics_histogram(out, name, NULL, 0,
                                                server->forwarder != NULL
                                                    ? kinf__forwarder_latency(server->forwarder)
                                                    : &none);
}

/* What needs the lock. */
static int write_served(struct kinf__server *server, struct kinf__buffer *out)
{
    int failed;

    kinf__mutex_lock(&server->lock);
    failed = write_informers(server, out);
    if (failed == 0)
        failed = write_numbers(server, out);
    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(source_metrics); i++)
        failed = write_family(server, i, out);
    kinf__mutex_unlock(&server->lock);
    return failed;
}

int kinf__state_answer_metrics(struct kinf__exchange *exchange)
{
    struct kinf__server *server = exchange->server;
    struct kinf__buffer *out = &exchange->answer.body;
    int failed = write_build(out);

    if (failed == 0)
        failed = kinf__process_metrics_write(out);
    if (failed == 0)
        failed = write_served(server, out);
    if (failed == 0)
        failed = kinf__request_metrics_write(&server->request_metrics, out);
    if (failed == 0)
        failed = write_latency(server, out);
    if (failed == 0)
        failed = kinf__demand_write_metrics(server->demand, kinf__clock_now_ms(), out);
    if (failed == 0 && server->write_metrics != NULL)
        failed = server->write_metrics(out, server->program_ctx);
    exchange->answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return failed < 0 ? kinf__refuse_no_memory(exchange->refusal) : 0;
}
