/*
 * One WATCH, also one that sends the whole state first: then what comes before its bookmark is
 * collected like a list. Neighbours: reflector_collect.c. Invariants: before the bookmark neither
 * the queue nor the policy learns of an event; the policy learns of a version after the queue took
 * the event, so a watch that starts there misses nothing.
 */
#include "reflector/reflector_priv.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "deltafifo/deltafifo.h"

/* --- before the bookmark of a watch list --- */

static void begin_stream(struct kinf__reflector *reflector)
{
    kinf__reflector_begin_list(reflector);
    reflector->is_streaming = true;
}

static int on_initial_end(struct kinf__reflector *reflector, const char *rv, struct kinf_error *err)
{
    int r;

    if (reflector->must_relist)
        return kinf__error_set(err, KINF_ERR_PARSE, "undecodable initial event");
    r = kinf__reflector_finish_list(reflector, "watchlist", rv, err);
    if (r < 0)
        return r;
    reflector->is_streaming = false;
    reflector->is_silent = false;
    kinf__reflector_count(&reflector->n_watches, 1);
    kinf__reflector_tell(reflector,
                         &(struct kinf__policy_event){ .type = KINF__POLICY_INITIAL_END,
                                                       .rv = rv,
                                                       .n_bytes = reflector->n_list_bytes });
    kinf__reflector_set_phase(reflector, KINF__REFLECTOR_WATCHING);
    kinf__reflector_note_contact(reflector, true);
    return 0;
}

static void give_up_stream(struct kinf__reflector *reflector)
{
    reflector->is_streaming = false;
    kinf__reflector_drop_list(reflector);
    if (kinf__policy_is_by_list(&reflector->policy))
        KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_INFO,
                  "no watch list from this server now, asking for a list resource=%s "
                  "namespace=%s",
                  reflector->options.type->resource, kinf__reflector_namespace(reflector));
}

/* --- what comes --- */

static int enqueue(struct kinf__reflector *reflector, enum kinf__watch_event_type type,
                   const struct kinf_object *object, struct kinf_error *err)
{
    switch (type) {
    case KINF__WATCH_ADDED:
        return kinf_deltafifo_add(reflector->options.fifo, object, err);
    case KINF__WATCH_MODIFIED:
        return kinf_deltafifo_update(reflector->options.fifo, object, err);
    case KINF__WATCH_DELETED:
        break;
    }
    return kinf_deltafifo_delete(reflector->options.fifo, object, err);
}

static void advance(struct kinf__reflector *reflector, const char *rv, bool is_bookmark)
{
    kinf__reflector_tell(reflector, &(struct kinf__policy_event){ .type = KINF__POLICY_WATCH_RV,
                                                                  .rv = rv,
                                                                  .is_bookmark = is_bookmark });
    reflector->is_silent = false;
    kinf__reflector_note_contact(reflector, true);
}

int kinf__reflector_on_event(enum kinf__watch_event_type type, const struct kinf_object *object,
                             void *ctx, struct kinf_error *err)
{
    struct kinf__reflector *reflector = ctx;
    bool is_outside = kinf__reflector_is_outside(reflector, object);
    int r;

    reflector->n_brought++;
    if (reflector->is_streaming)
        return is_outside ? 0
                          : kinf__reflector_collect_event(reflector, object,
                                                          type == KINF__WATCH_DELETED, err);
    r = is_outside ? 0 : enqueue(reflector, type, object, err);
    if (r < 0)
        return r;
    kinf__reflector_count(&reflector->n_events, 1);
    kinf__reflector_note_decoded(reflector, kinf_object_key(object));
    if (reflector->n_known >= 0)
        reflector->n_known += (type == KINF__WATCH_ADDED) - (type == KINF__WATCH_DELETED);
    if (!is_outside)
        kinf__newest_note(&reflector->newest, object, type == KINF__WATCH_DELETED);
    advance(reflector, kinf_object_resource_version(object), false);
    return 0;
}

/* Who went on from a version before the last one, or from one that is none, as "0", would be told again what
 * was told, or miss what was deleted. Where versions have no order the server is believed. */
static bool is_ahead(const struct kinf__reflector *reflector, const char *rv)
{
    const char *last = reflector->policy.rv;
    int order;

    return kinf_rv_compare(last, last, &order, NULL) < 0 ||
           (kinf_rv_compare(rv, last, &order, NULL) == 0 && order >= 0);
}

int kinf__reflector_on_bookmark(const char *rv, bool ends_initial_events, void *ctx,
                                struct kinf_error *err)
{
    struct kinf__reflector *reflector = ctx;
    int r;

    reflector->n_brought++;
    kinf__reflector_count(&reflector->n_bookmarks, 1);
    if (reflector->is_streaming)
        return ends_initial_events ? on_initial_end(reflector, rv, err) : 0;
    if (!is_ahead(reflector, rv))
        return 0;
    r = kinf_deltafifo_bookmark(reflector->options.fifo, rv, err);
    if (r < 0)
        return r;
    advance(reflector, rv, true);
    return 0;
}

/* Nothing comes behind an ERROR, so the stream is left at once. */
int kinf__reflector_on_error(const struct kinf_error *event, void *ctx, struct kinf_error *err)
{
    struct kinf__reflector *reflector = ctx;

    reflector->has_error_event = true;
    reflector->error_event = *event;
    return kinf__error_set(err, KINF_ERR_SERVER, "ERROR event");
}

int kinf__reflector_on_rejected_event(const char *key, const struct kinf_error *why, void *ctx,
                                      struct kinf_error *err)
{
    struct kinf__reflector *reflector = ctx;
    enum kinf__quarantine_verdict verdict;
    int r = kinf__reflector_reject(reflector, key, why, &verdict, err);

    reflector->n_brought++;
    kinf__newest_drop(&reflector->newest, key);
    reflector->n_known = -1;
    if (r == 0 && verdict == KINF__QUARANTINE_NEW && !reflector->is_streaming)
        reflector->is_behind = true;
    /* Of the initial events all are looked at, so that one round finds every bad object. */
    if (r == 0 && verdict == KINF__QUARANTINE_RELIST && !reflector->is_streaming)
        return kinf__error_set(err, KINF_ERR_PARSE, "undecodable event");
    return r;
}

static void on_head(int http_status, void *ctx)
{
    struct kinf__reflector *reflector = ctx;

    (void)http_status;
    reflector->has_begun = true;
    kinf__reflector_tell(reflector,
                         &(struct kinf__policy_event){ .type = KINF__POLICY_WATCH_ACCEPTED });
    if (!reflector->is_streaming)
        kinf__reflector_set_phase(reflector, KINF__REFLECTOR_WATCHING);
}

/* White space between events is no progress; what is there of an event that is not complete is. */
static int keep_pace(struct kinf__reflector *reflector, size_t len, bool is_progress,
                     int64_t came_ms, struct kinf_error *err)
{
    const struct kinf__watch_stream *stream = &reflector->watch_stream;
    bool is_in_event = stream->tail.len != 0 || stream->is_skipping;

    if (kinf__pace_take(&reflector->pace, is_in_event ? len : 0, is_progress, came_ms,
                        kinf__clock_now_ms()))
        return 0;
    reflector->is_late = true;
    return kinf__error_set(err, KINF_ERR_TIMEOUT,
                           "server %s: bytes of the watch come, but no event for %lld ms",
                           kinf__http_host(reflector->http), (long long)reflector->pace.window_ms);
}

static int on_body(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct kinf__reflector *reflector = ctx;
    int64_t came_ms = kinf__clock_now_ms();
    size_t n_before = reflector->n_brought;
    int r = kinf__reflector_check_type(reflector, bytes, len, err);

    if (r < 0)
        return r;
    reflector->n_list_bytes += len;
    kinf__reflector_count(&reflector->received_bytes, len);
    if (!reflector->is_corked)
        kinf__deltafifo_set_corked(reflector->options.fifo, true);
    reflector->is_corked = true;
    r = kinf__watch_stream_feed(&reflector->watch_stream, bytes, len, err);
    reflector->n_list_items = reflector->n_brought;
    kinf__reflector_note_progress(reflector);
    return r < 0 ? r : keep_pace(reflector, len, reflector->n_brought != n_before, came_ms, err);
}

/* The consumer is woken only for what nobody has taken by then. */
static void on_pause(void *ctx)
{
    struct kinf__reflector *reflector = ctx;
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;

    if (!reflector->is_corked)
        return;
    if (callbacks->on_pause != NULL)
        callbacks->on_pause(callbacks->ctx);
    kinf__deltafifo_set_corked(reflector->options.fifo, false);
    reflector->is_corked = false;
}

/* Between two events nothing is lost; the initial ones would all come again. */
static bool may_end(void *ctx)
{
    const struct kinf__reflector *reflector = ctx;

    return !reflector->is_streaming && reflector->watch_stream.tail.len == 0 &&
           !reflector->watch_stream.is_skipping;
}

/* --- the request --- */

static int append_target(struct kinf__reflector *reflector,
                         const struct kinf__policy_action *action, struct kinf__buffer *target)
{
    char timeout_s[24];
    int r = kinf__reflector_append_target(reflector, NULL, target);

    snprintf(timeout_s, sizeof timeout_s, "%" PRId64, action->timeout_s);
    if (r == 0)
        r = kinf__reflector_append_query(target, "watch", "1");
    if (r == 0)
        r = kinf__reflector_append_query(target, "allowWatchBookmarks", "true");
    if (r == 0 && action->type == KINF__DO_WATCH_LIST)
        r = kinf__reflector_append_query(target, "sendInitialEvents", "true");
    if (r == 0 && action->type == KINF__DO_WATCH_LIST)
        r = kinf__reflector_append_query(target, "resourceVersionMatch", "NotOlderThan");
    if (r == 0)
        r = kinf__reflector_append_query(target, "resourceVersion", action->rv);
    return r < 0 ? r : kinf__reflector_append_query(target, "timeoutSeconds", timeout_s);
}

static int perform(struct kinf__reflector *reflector, const struct kinf__policy_action *action,
                   struct kinf_error *err)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    struct kinf__http_request request = {
        .accept = reflector->options.metadata_only ? KINF__ACCEPT_METADATA("") : NULL,
        .head_timeout_ms = action->head_timeout_ms,
        .idle_timeout_ms = action->idle_timeout_ms,
        .total_timeout_ms = action->total_timeout_ms,
        .on_body = on_body,
        .on_head = on_head,
        .on_pause = on_pause,
        .may_end = may_end,
        .ctx = reflector,
    };
    int r;

    if (append_target(reflector, action, &target) < 0 ||
        (request.target = kinf__buffer_cstr(&target)) == NULL)
        return kinf__error_no_memory(err);
    r = kinf__http_perform(reflector->http, &request, err);
    return r < 0 ? r : kinf__watch_stream_finish(&reflector->watch_stream, err);
}

/* What a watch left out may be gone by now, or whole again. */
static bool is_list_due(const struct kinf__reflector *reflector)
{
    return reflector->is_behind && reflector->quarantine.n_quarantined != 0 &&
           kinf__clock_now_ms() - reflector->last_list_ms >= KINF__QUARANTINE_MEMORY_MS;
}

static void on_end(struct kinf__reflector *reflector)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (!reflector->is_streaming && is_list_due(reflector)) {
        kinf__reflector_tell_failure(reflector, KINF__POLICY_UNDECODABLE, &reflector->relist_why);
        return;
    }
    (void)kinf__error_set(&err, KINF_ERR_SERVER, "the watch ended %s",
                          reflector->is_streaming ? "before its initial events were complete"
                                                  : "too soon");
    kinf__reflector_tell(
        reflector, &(struct kinf__policy_event){ .type = KINF__POLICY_WATCH_ENDED, .err = &err });
}

/* There are resources whose watches are silent as a rule: the first time is news. */
static void on_silence(struct kinf__reflector *reflector, const struct kinf_error *err)
{
    KINF__LOG(KINF__LOG_REFLECTOR, reflector->is_silent ? KINF_LOG_DEBUG : KINF_LOG_INFO,
              "watch was silent, watching again resource=%s namespace=%s error=%s",
              reflector->options.type->resource, kinf__reflector_namespace(reflector),
              KINF__QUOTED(err->message));
    reflector->is_silent = true;
    kinf__reflector_count(&reflector->n_silent, 1);
    kinf__reflector_tell_failure(reflector, KINF__POLICY_WATCH_SILENT, err);
}

/* It was accepted, and ended by one of our own times. Silence before the end of the initial events is
 * no silence of a quiet resource. */
static void on_timeout(struct kinf__reflector *reflector, const struct kinf__policy_action *action,
                       const struct kinf_error *err)
{
    int64_t lived_ms = kinf__clock_now_ms() - reflector->begun_ms;

    if (reflector->is_streaming || reflector->is_late)
        kinf__reflector_tell_failure(reflector, KINF__POLICY_WATCH_FAILED, err);
    else if (reflector->n_brought != 0 && lived_ms >= action->total_timeout_ms)
        on_end(reflector);
    else
        on_silence(reflector, err);
}

/* Tells the policy how the request ended. */
static void tell_end(struct kinf__reflector *reflector, const struct kinf__policy_action *action,
                     int r, const struct kinf_error *err)
{
    if (r == KINF_ERR_TIMEOUT)
        kinf__http_disconnect(reflector->http);
    if (reflector->must_relist && r != KINF_ERR_STOPPED)
        kinf__reflector_tell_failure(reflector, KINF__POLICY_UNDECODABLE, &reflector->relist_why);
    else if (r == 0)
        on_end(reflector);
    else if (reflector->has_error_event)
        kinf__reflector_tell_failure(reflector, KINF__POLICY_WATCH_ERROR, &reflector->error_event);
    else if (r == KINF_ERR_TIMEOUT && reflector->has_begun)
        on_timeout(reflector, action, err);
    else
        kinf__reflector_tell_failure(reflector, KINF__POLICY_WATCH_FAILED, err);
    if (kinf__policy_was_quiet(&reflector->policy))
        kinf__reflector_note_contact(reflector, true);
}

void kinf__reflector_watch(struct kinf__reflector *reflector,
                           const struct kinf__policy_action *action)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int r;

    reflector->has_begun = false;
    reflector->is_json = false;
    reflector->must_relist = false;
    reflector->has_error_event = false;
    reflector->is_late = false;
    reflector->n_brought = 0;
    reflector->begun_ms = kinf__clock_now_ms();
    kinf__pace_begin(&reflector->pace, action->idle_timeout_ms, reflector->begun_ms);
    kinf__watch_stream_reset(&reflector->watch_stream);
    if (action->type == KINF__DO_WATCH_LIST)
        begin_stream(reflector);
    else
        kinf__reflector_count(&reflector->n_watches, 1);
    r = perform(reflector, action, &err);
    tell_end(reflector, action, r, &err);
    if (reflector->is_streaming)
        give_up_stream(reflector);
}
