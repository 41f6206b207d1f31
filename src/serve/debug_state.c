/*
 * The server's state for a script and for the page: informers, watches, what happened last.
 * Neighbours: exchange.c routes here, state.c has health and metrics, page.html reads this.
 *
 * No object is written, only keys and versions: what a Secret holds is in none of them.
 *
 * There may be thousands of watches: the document is written in slices, each under the server's lock,
 * which tells of now. Between two of them the place among the published sources is a number, and the
 * place among the watches of one is the exchange's own node in their list; when the source goes, the
 * node is taken out, and so its watches are over.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "informer/informer.h"
#include "serve/demand.h"
#include "serve/exchange_priv.h"
#include "serve/process_metrics.h"
#include "serve/query.h"
#include "serve/report.h"
#include "serve/watch.h"

#define N_RECENT    64
#define SLICE_BYTES (24u << 10) /* that are written at once, about: less than a millisecond */

enum part {
    PART_PROCESS,
    PART_INFORMERS,
    PART_WATCHERS, /* of one of them */
    PART_END,      /* what comes behind them */
    PART_NONE,
};

struct debug_state {
    struct kinf__stream stream;
    struct kinf__exchange *exchange;
    enum part part;
    uint64_t number;            /* of the last source that was begun */
    struct kinf__list *watches; /* in PART_WATCHERS: its list, as long as the place is in it */
    struct kinf__report report;
    struct kinf__buffer out;
    size_t n_sent; /* of `out` */
};

/* --- informers --- */

static void write_scope(struct kinf__report *report, const struct kinf__source *source)
{
    kinf__report_text(report, "name", source->name);
    kinf__report_text(report, "resource", source->type->resource);
    kinf__report_text(report, "group", source->type->group);
    kinf__report_text(report, "version", source->type->version);
    kinf__report_text(report, "namespace", source->scope.name_space);
    kinf__report_text(report, "labelSelector", source->scope.label_selector);
    kinf__report_text(report, "fieldSelector", source->scope.field_selector);
    kinf__report_text(report, "shardSelector", source->scope.shard_selector);
    kinf__report_bool(report, "served", !source->is_unserved);
    kinf__report_bool(report, "pruned", source->is_pruned);
    kinf__report_bool(report, "assumeScope", source->assume_scope);
    kinf__report_bool(report, "onDemand", source->is_on_demand);
}

static void write_errors(struct kinf__report *report, const struct kinf__source *source)
{
    struct kinf__last_errors errors = { .n_items = 0 };

    if (source->informer != NULL)
        kinf__informer_last_errors(source->informer, &errors);
    kinf__report_open(report, "lastErrors", '[');
    for (size_t i = 0; i < errors.n_items; i++) {
        kinf__report_open(report, NULL, '{');
        kinf__report_time(report, "first", errors.items[i].first_ms);
        kinf__report_time(report, "last", errors.items[i].last_ms);
        kinf__report_count(report, "times", errors.items[i].n);
        kinf__report_text(report, "message", errors.items[i].message);
        kinf__report_close(report, '}');
    }
    kinf__report_close(report, ']');
}

static void write_counts(struct kinf__report *report, const struct kinf_informer_status *status)
{
    kinf__report_count(report, "objects", status->n_objects);
    kinf__report_count(report, "lists", status->n_lists);
    kinf__report_count(report, "extraLists", status->n_extra_lists);
    kinf__report_time(report, "listSince", status->list_since_ms);
    kinf__report_count(report, "listObjects", status->n_list_objects);
    kinf__report_count(report, "listExpected", status->n_list_expected);
    kinf__report_count(report, "listBytes", status->list_bytes);
    kinf__report_count(report, "watches", status->n_watches);
    kinf__report_count(report, "events", status->n_events);
    kinf__report_count(report, "bookmarks", status->n_bookmarks);
    kinf__report_count(report, "errors", status->n_errors);
    kinf__report_count(report, "silentWatches", status->n_silent);
    kinf__report_count(report, "quarantined", status->n_quarantined);
    kinf__report_count(report, "outsideShard", status->n_outside_shard);
    kinf__report_count(report, "failedIndexValues", status->n_failed_index_values);
    kinf__report_count(report, "receivedBytes", status->received_bytes);
    kinf__report_count(report, "handlers", status->n_handlers);
    kinf__report_count(report, "queued", status->n_queued);
    kinf__report_count(report, "queuedBytes", status->queued_bytes);
    kinf__report_count(report, "maxQueuedBytes", status->max_queued_bytes);
}

static void write_informer(struct kinf__report *report, const struct kinf__source *source)
{
    struct kinf_informer_status status;
    char version[64] = "";

    kinf__source_status(source, &status);
    if (source->informer == NULL)
        snprintf(version, sizeof version, "%" PRIu64, kinf__watchcache_version(source->cache));
    else
        (void)!kinf_informer_resource_version(source->informer, version, sizeof version);
    write_scope(report, source);
    kinf__report_text(report, "state", kinf_informer_state_to_string(status.state));
    kinf__report_text(report, "reason", status.reason);
    kinf__report_bool(report, "synced", status.has_synced);
    kinf__report_time(report, "since", status.state_since_ms);
    kinf__report_time(report, "lastContact", status.last_contact_ms);
    kinf__report_time(report, "lastList", status.last_list_ms);
    kinf__report_ms(report, "stalenessMs", kinf__source_staleness_ms(source, report->now_ms));
    kinf__report_text(report, "resourceVersion", version);
    write_counts(report, &status);
}

static void write_cache(struct kinf__report *report, const struct kinf__source *source)
{
    const struct kinf__watchcache_limits *limits = kinf__watchcache_limits(source->cache);
    struct kinf__watchcache_status status;

    kinf__watchcache_status(source->cache, &status);
    kinf__report_version(report, "servedResourceVersion", status.version);
    kinf__report_version(report, "oldestResourceVersion", status.oldest_version);
    kinf__report_count(report, "storeBytes", status.store_bytes);
    kinf__report_count(report, "historyEvents", status.n_events);
    kinf__report_count(report, "historyBytes", status.history_bytes);
    kinf__report_count(report, "maxHistoryBytes", limits->history_bytes);
    kinf__report_ms(report, "maxHistoryAgeMs", limits->history_age_ms);
    kinf__report_count(report, "historyRestarts", status.n_restarts);
    kinf__report_text(report, "lastHistoryRestart", status.last_restart_reason);
    kinf__report_count(report, "pages", status.n_pages);
    kinf__report_count(report, "maxPages", limits->max_pages);
    kinf__report_count(report, "pageBytes", status.page_bytes);
    kinf__report_count(report, "maxPageBytes", limits->page_bytes);
    kinf__report_ms(report, "maxPageAgeMs", limits->page_age_ms);
    kinf__report_count(report, "watcherCount", status.n_cursors);
    kinf__report_count(report, "watchersExpired", status.n_cursors_expired);
}

static void write_session(struct kinf__report *report, struct kinf__source *source)
{
    struct kinf__session_status status;

    kinf__session_status(&source->session, &status);
    kinf__report_text(report, "consistency", kinf__consistency_to_string(source->consistency));
    kinf__report_version(report, "awaitedResourceVersion", status.version);
    kinf__report_count(report, "awaitedSigns", status.n_signs);
    kinf__report_bool(report, "unknownWrite", status.is_unknown);
    kinf__report_bool(report, "late", status.is_late);
    kinf__report_count(report, "sessionWaits", status.n_waits);
    kinf__report_count(report, "sessionMisses", status.n_misses);
}

/* --- watches --- */

static void write_watcher(struct kinf__report *report, const struct kinf__exchange *exchange)
{
    struct kinf__watch_status status;

    kinf__watch_status(exchange->watch, report->now_ms, &status);
    kinf__report_open(report, NULL, '{');
    kinf__report_count(report, "id", exchange->id);
    kinf__report_text(report, "client", exchange->client.peer);
    kinf__report_text(report, "userAgent", exchange->client.user_agent);
    kinf__report_text(report, "namespace", exchange->selection.name_space);
    kinf__report_text(report, "objectName", exchange->selection.name);
    kinf__report_text(report, "labelSelector", exchange->options.label_selector);
    kinf__report_text(report, "fieldSelector", exchange->options.field_selector);
    kinf__report_ms(report, "ageMs", report->now_ms - exchange->watch_since_ms);
    kinf__report_count(report, "sentEvents", status.n_sent);
    kinf__report_count(report, "lagEvents", status.cursor.lag_events);
    kinf__report_ms(report, "lagMs", status.cursor.lag_ms);
    kinf__report_bool(report, "expired", status.cursor.has_expired);
    kinf__report_close(report, '}');
}

/* --- what happened last --- */

struct recent {
    struct kinf__watch_recent_event event;
    const struct kinf__source *source;
};

static int compare_recent(const void *a, const void *b)
{
    const struct kinf__watch_recent_event *x = &((const struct recent *)a)->event,
                                          *y = &((const struct recent *)b)->event;

    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? 1 : -1;
    return x->version < y->version ? 1 : x->version > y->version ? -1 : 0;
}

static void drop_recent(struct recent *events, size_t n_events)
{
    for (size_t i = 0; i < n_events; i++)
        kinf_object_unref(events[i].event.object);
}

/* Keeps the newest of what was there and what this source has; returns how many. There is room for
 * twice N_RECENT. */
static size_t merge_recent(const struct kinf__source *source, struct recent *events,
                           size_t n_events)
{
    struct kinf__watch_recent_event found[N_RECENT];
    size_t n_found = kinf__watchcache_recent(source->cache, found, N_RECENT);

    for (size_t i = 0; i < n_found; i++)
        events[n_events++] = (struct recent){ found[i], source };
    qsort(events, n_events, sizeof *events, compare_recent);
    if (n_events > N_RECENT) {
        drop_recent(events + N_RECENT, n_events - N_RECENT);
        n_events = N_RECENT;
    }
    return n_events;
}

static void write_recent(struct kinf__report *report, const struct recent *recent)
{
    const struct kinf__watch_recent_event *event = &recent->event;

    kinf__report_open(report, NULL, '{');
    kinf__report_time(report, "time", event->at_ms);
    kinf__report_text(report, "informer", recent->source->name);
    kinf__report_text(report, "type", kinf__watch_event_type_to_string(event->type));
    kinf__report_text(report, "key", kinf_object_key(event->object));
    kinf__report_version(report, "resourceVersion", event->version);
    kinf__report_close(report, '}');
}

static void write_recent_events(struct kinf__report *report, const struct kinf__server *server)
{
    struct recent events[2 * N_RECENT];
    size_t n_events = 0;

    for (size_t i = 0; i < server->n_sources; i++)
        n_events = merge_recent(server->sources[i], events, n_events);
    kinf__report_open(report, "recentEvents", '[');
    for (size_t i = 0; i < n_events; i++)
        write_recent(report, &events[i]);
    kinf__report_close(report, ']');
    drop_recent(events, n_events);
}

/* --- all of it --- */

static void write_process(struct kinf__report *report, const struct kinf__server *server)
{
    kinf__report_text(report, "kinformerVersion", KINF_VERSION_STRING);
    kinf__report_time(report, "time", report->now_ms);
    kinf__report_time(report, "started", server->started_ms);
    kinf__report_count(report, "residentBytes", kinf__process_resident_bytes());
    kinf__report_count(report, "requests", server->n_requests);
    kinf__report_count(report, "refused", server->n_refused);
    kinf__report_count(report, "passed", server->n_passed);
    kinf__report_count(report, "crowded", server->n_crowded);
    kinf__report_count(report, "underWay", server->n_exchanges);
    kinf__report_ms(report, "maxStalenessMs", server->max_staleness_ms);
}

/* Whether the request wants the watchers and errors of this one: `details` names some, or none. */
static bool wants_details(const struct kinf__request *request, const char *name)
{
    struct kinf_str rest = request->query;
    struct kinf__query_pair pair;
    bool is_choice = false;

    while (kinf__query_next(&rest, &pair)) {
        if (!kinf__query_is_named(pair.name, "details"))
            continue;
        if (kinf__query_is_named(pair.value, name))
            return true;
        is_choice = true;
    }
    return !is_choice;
}

static struct kinf__source *next_source(const struct kinf__server *server, uint64_t number)
{
    for (size_t i = 0; i < server->n_sources; i++) {
        if (server->sources[i]->number > number)
            return server->sources[i];
    }
    return NULL;
}

static void begin_watchers(struct debug_state *state, struct kinf__list *watches)
{
    kinf__report_open(&state->report, "watchers", '[');
    kinf__list_push_back(watches->next, &state->exchange->watch_node);
    state->watches = watches;
    state->part = PART_WATCHERS;
}

static void write_next_informer(struct debug_state *state)
{
    struct kinf__report *report = &state->report;
    struct kinf__source *source = next_source(state->exchange->server, state->number);
    bool has_details;

    if (source == NULL) {
        kinf__report_close(report, ']');
        state->part = PART_END;
        return;
    }
    state->number = source->number;
    has_details = wants_details(&state->exchange->request, source->name);
    kinf__report_open(report, NULL, '{');
    write_informer(report, source);
    if (has_details)
        write_errors(report, source);
    if (!source->is_unserved) {
        write_cache(report, source);
        write_session(report, source);
    }
    if (has_details && !source->is_unserved)
        begin_watchers(state, &source->watches);
    else
        kinf__report_close(report, '}');
}

/* Steps over the next one. Others' places are no watches. */
static const struct kinf__exchange *take_watcher(struct kinf__list *place)
{
    struct kinf__list *next = place->next;

    kinf__list_remove(place);
    kinf__list_push_back(next->next, place);
    return KINF__LIST_ENTRY(next, struct kinf__exchange, watch_node);
}

static void write_watchers(struct debug_state *state)
{
    struct kinf__list *place = &state->exchange->watch_node;

    while (!kinf__list_is_empty(place) && place->next != state->watches) {
        const struct kinf__exchange *exchange = take_watcher(place);

        if (exchange->watch != NULL)
            write_watcher(&state->report, exchange);
        if (state->out.len >= SLICE_BYTES)
            return;
    }
    kinf__list_remove(place);
    kinf__report_close(&state->report, ']');
    kinf__report_close(&state->report, '}');
    state->part = PART_INFORMERS;
}

static void write_end(struct debug_state *state)
{
    const struct kinf__server *server = state->exchange->server;

    if (server->demand != NULL)
        kinf__demand_report(server->demand, &state->report);
    if (server->write_state != NULL)
        server->write_state(&state->report, server->program_ctx);
    write_recent_events(&state->report, server);
    if (kinf__request_has_parameter(&state->exchange->request, "lastHour"))
        kinf__last_hour_write(&server->last_hour, &state->report);
    kinf__report_close(&state->report, '}');
    state->part = PART_NONE;
}

/* One step; the lock is held. */
static void write_some(struct debug_state *state)
{
    switch (state->part) {
    case PART_PROCESS:
        kinf__report_open(&state->report, NULL, '{');
        write_process(&state->report, state->exchange->server);
        kinf__report_open(&state->report, "informers", '[');
        state->part = PART_INFORMERS;
        break;
    case PART_INFORMERS:
        write_next_informer(state);
        break;
    case PART_WATCHERS:
        write_watchers(state);
        break;
    default:
        write_end(state);
    }
}

static int write_slice(struct debug_state *state)
{
    state->out.len = state->n_sent = 0;
    state->report.now_ms = kinf__clock_now_ms();
    state->report.now_wall_ms = kinf__clock_wall_ms();
    kinf__mutex_lock(&state->exchange->server->lock);
    while (state->part != PART_NONE && state->out.len < SLICE_BYTES)
        write_some(state);
    kinf__mutex_unlock(&state->exchange->server->lock);
    if (state->part == PART_NONE)
        return kinf__report_end(&state->report);
    return state->report.is_out_of_memory ? KINF_ERR_NO_MEMORY : 0;
}

/* --- as a stream --- */

static ssize_t stream_read(struct kinf__stream *stream, char *buf, size_t size)
{
    struct debug_state *state = KINF__CONTAINER_OF(stream, struct debug_state, stream);
    size_t n;

    if (state->n_sent == state->out.len) {
        if (state->part == PART_NONE)
            return KINF__STREAM_END;
        if (write_slice(state) < 0)
            return KINF__STREAM_BROKEN; /* no memory */
    }
    n = state->out.len - state->n_sent;
    if (n > size)
        n = size;
    memcpy(buf, state->out.bytes + state->n_sent, n);
    state->n_sent += n;
    return (ssize_t)n;
}

static void stream_free(struct kinf__stream *stream)
{
    struct debug_state *state = KINF__CONTAINER_OF(stream, struct debug_state, stream);

    kinf__buffer_release(&state->out);
    free(state);
}

/* What is small is sent as one piece. */
int kinf__state_answer_debug(struct kinf__exchange *exchange)
{
    struct debug_state *state = calloc(1, sizeof *state);

    if (state == NULL)
        return kinf__refuse_no_memory(exchange->refusal);
    state->stream = (struct kinf__stream){ stream_read, stream_free, false };
    state->exchange = exchange;
    state->report.out = &state->out;
    if (write_slice(state) < 0) {
        stream_free(&state->stream);
        return kinf__refuse_no_memory(exchange->refusal);
    }
    exchange->answer.content_type = "application/json";
    if (state->part != PART_NONE) {
        exchange->answer.stream = &state->stream;
        return 0;
    }
    exchange->answer.body = state->out;
    state->out = (struct kinf__buffer)KINF__BUFFER_INIT;
    stream_free(&state->stream);
    return 0;
}
