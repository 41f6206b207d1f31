/*
 * What the server says of itself to probes and to Prometheus: health and metrics. Neighbours:
 * exchange.c routes here, debug_state.c tells more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kinformer/metrics.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "serve/exchange_priv.h"

static const char plain[] = "text/plain; charset=utf-8";

void kinf__source_status(const struct kinf__source *source, struct kinf_informer_status *ret_status)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;
    uint64_t version;

    if (source->informer != NULL) {
        kinf_informer_status(source->informer, ret_status);
        return;
    }
    *ret_status = (struct kinf_informer_status){ .state = KINF_STATE_LIVE,
                                                 .last_contact_ms = kinf__clock_now_ms() };
    snapshot = kinf__watchcache_snapshot(source->cache, &version);
    ret_status->has_synced = snapshot != NULL;
    if (snapshot != NULL)
        ret_status->n_objects = kinf_snapshot_count(snapshot);
}

int64_t kinf__source_staleness_ms(const struct kinf__source *source, int64_t now_ms)
{
    struct kinf_informer_status status;

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
    int64_t staleness_ms;

    if (kinf__watchcache_version(source->cache) == 0)
        return "not synced";
    staleness_ms = kinf__source_staleness_ms(source, kinf__clock_now_ms());
    return staleness_ms < 0 || staleness_ms > server->max_staleness_ms ? "stale" : NULL;
}

struct checks {
    struct kinf__exchange *exchange;
    struct kinf__buffer lines;
    bool is_failed;
    bool is_found;    /* the one that was asked for */
    bool has_remarks; /* there is more to say than "ok" */
    bool is_out_of_memory;
};

/* `n_left_out`: objects that a source leaves out, which is told and fails nothing: one broken object
 * must not take the others out of service. */
static void add_check(struct checks *checks, const char *name, const char *reason,
                      uint64_t n_left_out)
{
    const char *asked = checks->exchange->request.name;
    char remark[64] = "";
    int failed;

    if (*asked != '\0' && strcmp(asked, name) != 0)
        return;
    checks->is_found = true;
    checks->is_failed = checks->is_failed || reason != NULL;
    checks->has_remarks = checks->has_remarks || n_left_out != 0;
    if (n_left_out != 0)
        snprintf(remark, sizeof remark, ", %" PRIu64 " objects left out", n_left_out);
    failed = reason == NULL
                 ? kinf__buffer_printf(&checks->lines, "[+]%s ok%s\n", name, remark)
                 : kinf__buffer_printf(&checks->lines, "[-]%s failed: %s\n", name, reason);
    checks->is_out_of_memory = checks->is_out_of_memory || failed < 0;
}

static void add_source_checks(struct checks *checks)
{
    struct kinf__server *server = checks->exchange->server;

    kinf__mutex_lock(&server->lock);
    add_check(checks, "discovery", server->catalog != NULL ? NULL : "not fetched", 0);
    for (size_t i = 0; i < server->n_sources; i++) {
        if (!server->sources[i]->is_unserved)
            add_check(checks, server->sources[i]->name, unready_reason(server, server->sources[i]),
                      kinf__source_left_out(server->sources[i]));
    }
    kinf__mutex_unlock(&server->lock);
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

    add_check(&checks, "ping", NULL, 0);
    if (strcmp(exchange->request.check, "readyz") == 0)
        add_source_checks(&checks);
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

/* X(name, type, help, member of the cache's status) */
#define CACHE_METRICS(X)                                                                           \
    X("kinformer_store_bytes", KINF__METRIC_GAUGE, "Bytes of the objects in the store.",           \
      store_bytes)                                                                                 \
    X("kinformer_history_events", KINF__METRIC_GAUGE, "Events that a watch can be resumed in.",    \
      n_events)                                                                                    \
    X("kinformer_history_bytes", KINF__METRIC_GAUGE, "Memory that the history alone holds.",       \
      history_bytes)                                                                               \
    X("kinformer_pages", KINF__METRIC_GAUGE, "Old versions held for lists in pages.", n_pages)     \
    X("kinformer_page_bytes", KINF__METRIC_GAUGE, "Memory that old versions hold, about.",         \
      page_bytes)                                                                                  \
    X("kinformer_watchers", KINF__METRIC_GAUGE, "Watches that are served.", n_cursors)             \
    X("kinformer_watcher_max_lag_events", KINF__METRIC_GAUGE,                                      \
      "Events that the slowest watch has before it.", max_lag)                                     \
    X("kinformer_watchers_expired_total", KINF__METRIC_COUNTER,                                    \
      "Watches that fell out of the history.", n_cursors_expired)                                  \
    X("kinformer_watchers_cut_off_total", KINF__METRIC_COUNTER,                                    \
      "Watches of those that held too much of what the history has no more.", n_cursors_given_up)  \
    X("kinformer_watcher_wakes_total", KINF__METRIC_COUNTER, "Times that a watch was woken.",      \
      n_wakes)

static const struct {
    const char *name;
    enum kinf__metric_type type;
    const char *help;
} cache_metrics[] = {
#define X(name, type, help, member) { name, type, help },
    CACHE_METRICS(X)
#undef X
};

static uint64_t metric_value(size_t metric, const struct kinf__watchcache_status *status)
{
    const uint64_t values[] = {
#define X(name, type, help, member) status->member,
        CACHE_METRICS(X)
#undef X
    };

    return values[metric];
}

/* One family, a sample for each source. The lock is held. */
static int write_family(const struct kinf__server *server, size_t metric, struct kinf__buffer *out)
{
    const char *name = cache_metrics[metric].name;
    int failed =
        kinf__metrics_family(out, name, cache_metrics[metric].type, cache_metrics[metric].help);

    for (size_t i = 0; failed == 0 && i < server->n_sources; i++) {
        struct kinf__watchcache_status status;
        struct kinf__label label = { "name", server->sources[i]->name };

        if (server->sources[i]->is_unserved)
            continue;
        kinf__watchcache_status(server->sources[i]->cache, &status);
        failed = kinf__metrics_sample(out, name, &label, 1, metric_value(metric, &status), 0);
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

uint64_t kinf__state_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long n_pages = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%*u %llu", &n_pages) != 1)
        n_pages = 0;
    fclose(file);
    return n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int write_process(struct kinf__buffer *out)
{
    static const char name[] = "process_resident_memory_bytes";
    int failed = kinf__metrics_family(out, name, KINF__METRIC_GAUGE, "Resident memory in bytes.");

    return failed < 0 ? failed
                      : kinf__metrics_sample(out, name, NULL, 0, kinf__state_resident_bytes(), 0);
}

static int write_requests(const struct kinf__server *server, struct kinf__buffer *out)
{
    const struct {
        const char *name, *help;
        uint64_t n;
    } counters[] = {
        { "kinformer_requests_total", "Requests that were answered or are under way.",
          server->n_requests },
        { "kinformer_requests_refused_total", "Requests that were answered with an error.",
          server->n_refused },
        { "kinformer_requests_passed_total", "Requests that were passed on to the API server.",
          server->n_passed },
        { "kinformer_requests_crowded_total",
          "Requests that were not passed on, since too many were.", server->n_crowded },
    };
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(counters); i++) {
        failed =
            kinf__metrics_family(out, counters[i].name, KINF__METRIC_COUNTER, counters[i].help);
        if (failed == 0)
            failed = kinf__metrics_sample(out, counters[i].name, NULL, 0, counters[i].n, 0);
    }
    return failed;
}

int kinf__state_answer_metrics(struct kinf__exchange *exchange)
{
    struct kinf__server *server = exchange->server;
    struct kinf__buffer *out = &exchange->answer.body;
    int failed;

    kinf__mutex_lock(&server->lock);
    failed = write_informers(server, out);
    if (failed == 0)
        failed = write_process(out);
    if (failed == 0)
        failed = write_requests(server, out);
    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(cache_metrics); i++)
        failed = write_family(server, i, out);
    kinf__mutex_unlock(&server->lock);
    exchange->answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return failed < 0 ? kinf__refuse_no_memory(exchange->refusal) : 0;
}
