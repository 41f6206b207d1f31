/*
 * The watch stream. Neighbours: the watch cache has the events and wakes, resource.c opens,
 * mhd_request.c reads. An event's bytes are made when its reader has room, and for no longer: an idle
 * watch holds no text, and one whose client takes nothing some tens of kB and a reference.
 */
#include "serve/watch.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define PIECE_BYTES (32u << 10)
#define LARGE_BYTES (16u << 10) /* of an object, what is sent from itself */

enum phase {
    PHASE_REPLAY,
    PHASE_LIVE,
    PHASE_OVER, /* what is in `out` is the last */
};

struct watch {
    struct kinf__stream stream;
    struct kinf__watchcache *cache;
    struct kinf__watch_cursor *cursor;
    kinf__watch_wake_cb *wake;
    void (*cut_off)(void *ctx);
    void *ctx;
    struct kinf__encoder encoder;
    enum phase phase;
    bool bookmarks;
    struct kinf_snapshot *snapshot; /* during the replay */
    uint64_t snapshot_version;
    struct kinf__walk walk;
    uint64_t told; /* the version of the last bookmark or event */
    struct kinf__pieces out;
    /* atomic */
    _Atomic(bool) is_end_asked;
    _Atomic(bool) is_bookmark_asked;
    _Atomic(uint64_t) n_events;
};

static void watch_free(struct kinf__stream *stream)
{
    struct watch *watch = KINF__CONTAINER_OF(stream, struct watch, stream);

    kinf__watch_cursor_free(watch->cursor);
    kinf_snapshot_unref(watch->snapshot);
    kinf__encoder_release(&watch->encoder);
    kinf__pieces_release(&watch->out);
    free(watch);
}

static int begin_event(struct watch *watch, const char *type)
{
    return kinf__buffer_printf(&watch->out.bytes, "{\"type\":\"%s\",\"object\":", type);
}

static int end_event(struct watch *watch)
{
    atomic_fetch_add_explicit(&watch->n_events, 1, memory_order_relaxed);
    return kinf__buffer_append(&watch->out.bytes, "}\n", 2);
}

static int write_object(struct watch *watch, enum kinf__watch_event_type type,
                        const struct kinf_object *object, const char *version)
{
    watch->encoder.now_s = kinf__clock_wall_ms() / 1000;
    if (begin_event(watch, kinf__watch_event_type_to_string(type)) < 0 ||
        kinf__encode_object(&watch->encoder, object, version, &watch->out) < 0)
        return KINF_ERR_NO_MEMORY;
    watch->encoder.no_columns = true;
    return end_event(watch);
}

static int write_bookmark(struct watch *watch, uint64_t version, bool ends_initial_events)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, version);
    watch->told = version;
    if (begin_event(watch, "BOOKMARK") < 0 ||
        kinf__encode_bookmark(&watch->encoder, text, ends_initial_events, &watch->out.bytes) < 0)
        return KINF_ERR_NO_MEMORY;
    watch->encoder.no_columns = true;
    return end_event(watch);
}

static int write_refusal(struct watch *watch, const struct kinf__refusal *refusal)
{
    watch->phase = PHASE_OVER;
    if (begin_event(watch, "ERROR") < 0 ||
        kinf__refusal_write_status(refusal, &watch->out.bytes) < 0)
        return KINF_ERR_NO_MEMORY;
    return end_event(watch);
}

static int write_expired(struct watch *watch, uint64_t version)
{
    struct kinf__refusal refusal;

    kinf__refuse(&refusal, 410, "Expired", "too old resource version: %" PRIu64 " (%" PRIu64 ")",
                 version, kinf__watchcache_version(watch->cache));
    return write_refusal(watch, &refusal);
}

static int end_replay(struct watch *watch)
{
    kinf_snapshot_unref(KINF__TAKE(watch->snapshot));
    watch->phase = PHASE_LIVE;
    return watch->bookmarks ? write_bookmark(watch, watch->snapshot_version, true) : 0;
}

static int write_replay(struct watch *watch)
{
    size_t patience = KINF__WALK_PATIENCE;
    const struct kinf_object *object;

    while (!kinf__pieces_are_enough(&watch->out, PIECE_BYTES)) {
        enum kinf__walked walked = kinf__walk_next(&watch->walk, &patience, &object);

        if (walked == KINF__WALK_PAUSED)
            return 0;
        if (walked == KINF__WALK_END)
            return end_replay(watch);
        if (walked == KINF__WALK_NO_MEMORY ||
            write_object(watch, KINF__WATCH_ADDED, object, NULL) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int write_event(struct watch *watch, const struct kinf__watch_event *event)
{
    char version[24];

    if (event->object == NULL)
        return watch->bookmarks ? write_bookmark(watch, event->version, false) : 0;
    snprintf(version, sizeof version, "%" PRIu64, event->version);
    watch->told = event->version;
    return write_object(watch, event->type, event->object, version);
}

/* What the history has now. Returns 1 if there may be more, 0 if the cursor is armed. */
static int write_live(struct watch *watch)
{
    struct kinf__watch_event event;

    while (!kinf__pieces_are_enough(&watch->out, PIECE_BYTES)) {
        int more = kinf__watch_cursor_next(watch->cursor, &event);

        if (more == KINF_ERR_NO_MEMORY)
            return more;
        if (more < 0)
            return write_expired(watch, watch->told) < 0 ? KINF_ERR_NO_MEMORY : 1;
        if (more == KINF__WATCH_CURSOR_PAUSED)
            return 1;
        if (more == 0)
            return kinf__pieces_len(&watch->out) != 0 || kinf__watch_cursor_arm(watch->cursor) ? 1
                                                                                               : 0;
        if (write_event(watch, &event) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 1;
}

/* Behind the replay. */
static int write_progress(struct watch *watch)
{
    uint64_t progress = kinf__watch_cursor_progress(watch->cursor);

    if (progress == 0)
        return write_expired(watch, watch->told);
    return watch->bookmarks && progress > watch->told ? write_bookmark(watch, progress, false) : 0;
}

/* Returns as write_live(). */
static int write_next(struct watch *watch)
{
    if (atomic_load(&watch->is_end_asked)) {
        if (watch->phase == PHASE_LIVE && write_progress(watch) < 0)
            return KINF_ERR_NO_MEMORY;
        watch->phase = PHASE_OVER;
        return 1;
    }
    if (watch->phase == PHASE_REPLAY)
        return write_replay(watch) < 0 ? KINF_ERR_NO_MEMORY : 1;
    if (atomic_exchange(&watch->is_bookmark_asked, false))
        return write_progress(watch) < 0 ? KINF_ERR_NO_MEMORY : 1;
    return write_live(watch);
}

static ssize_t watch_read(struct kinf__stream *stream, char *buf, size_t size)
{
    struct watch *watch = KINF__CONTAINER_OF(stream, struct watch, stream);
    int more = 1;

    if (kinf__pieces_len(&watch->out) == 0) {
        kinf__pieces_clear(&watch->out, watch->phase == PHASE_REPLAY ? PIECE_BYTES : 0);
        if (watch->phase == PHASE_OVER)
            return KINF__STREAM_END;
        more = write_next(watch);
        if (watch->phase != PHASE_REPLAY) /* what it has inflated for the text */
            kinf__encoder_release(&watch->encoder);
    }
    if (more < 0)
        return KINF__STREAM_BROKEN;
    if (kinf__pieces_len(&watch->out) != 0)
        return (ssize_t)kinf__pieces_take(&watch->out, buf, size);
    /* Not later: a server that stops waits for no walk. */
    if (watch->phase == PHASE_OVER)
        return KINF__STREAM_END;
    return more == 0 ? 0 : KINF__STREAM_LATER;
}

static struct watch *watch_new(void)
{
    struct watch *watch = calloc(1, sizeof *watch);

    if (watch == NULL)
        return NULL;
    watch->stream = (struct kinf__stream){ watch_read, watch_free, true };
    watch->out.large = LARGE_BYTES;
    return watch;
}

static void on_wake(void *ctx)
{
    struct watch *watch = ctx;

    if (kinf__watch_cursor_is_given_up(watch->cursor))
        watch->cut_off(watch->ctx);
    else
        watch->wake(watch->ctx);
}

static int subscribe(struct watch *watch, const struct kinf__watch_params *params)
{
    const struct kinf__selection *selection = params->selection;
    struct kinf__watch_filter filter = {
        .name_space = selection->name_space,
        .name = *selection->name != '\0' ? selection->name : NULL,
        .index = selection->index,
        .index_value = selection->index_value,
        .match =
            selection->labels != NULL || selection->fields != NULL ? kinf__selection_matches : NULL,
        .match_ctx = params->selection,
        .wants_bookmarks = params->bookmarks,
    };
    struct kinf_snapshot *snapshot = NULL;
    int failed;

    if (params->version != 0)
        failed = kinf__watchcache_subscribe(params->cache, &filter, params->version, on_wake, watch,
                                            &watch->cursor, NULL);
    else
        failed = kinf__watchcache_subscribe_now(params->cache, &filter, on_wake, watch, &snapshot,
                                                &watch->cursor, NULL);
    watch->phase = PHASE_LIVE;
    watch->told = params->version;
    if (failed == 0 && params->replays) {
        watch->phase = PHASE_REPLAY;
        watch->snapshot = KINF__TAKE(snapshot);
        watch->snapshot_version =
            kinf__watchcache_parse_rv(kinf_snapshot_resource_version(watch->snapshot));
        kinf__walk_init(&watch->walk, selection, watch->snapshot, "");
    }
    kinf_snapshot_unref(snapshot);
    return failed;
}

int kinf__watch_open(const struct kinf__watch_params *params, struct kinf__stream **ret_stream)
{
    struct watch *watch = watch_new();
    int failed;

    if (watch == NULL)
        return KINF_ERR_NO_MEMORY;
    watch->cache = params->cache;
    watch->wake = params->wake;
    watch->cut_off = params->cut_off;
    watch->ctx = params->ctx;
    watch->encoder = *params->encoder;
    watch->bookmarks = params->bookmarks;
    failed = subscribe(watch, params);
    if (failed == KINF_ERR_EXPIRED)
        failed = write_expired(watch, params->version);
    if (failed < 0) {
        watch_free(&watch->stream);
        return failed;
    }
    *ret_stream = &watch->stream;
    return 0;
}

int kinf__watch_open_refusal(const struct kinf__refusal *refusal, struct kinf__stream **ret_stream)
{
    struct watch *watch = watch_new();

    if (watch == NULL)
        return KINF_ERR_NO_MEMORY;
    if (write_refusal(watch, refusal) < 0) {
        watch_free(&watch->stream);
        return KINF_ERR_NO_MEMORY;
    }
    *ret_stream = &watch->stream;
    return 0;
}

void kinf__watch_end(struct kinf__stream *stream)
{
    atomic_store(&KINF__CONTAINER_OF(stream, struct watch, stream)->is_end_asked, true);
}

void kinf__watch_want_bookmark(struct kinf__stream *stream)
{
    atomic_store(&KINF__CONTAINER_OF(stream, struct watch, stream)->is_bookmark_asked, true);
}

void kinf__watch_status(const struct kinf__stream *stream, int64_t now_ms,
                        struct kinf__watch_status *ret_status)
{
    const struct watch *watch = KINF__CONTAINER_OF(stream, const struct watch, stream);

    *ret_status = (struct kinf__watch_status){ .n_sent = atomic_load_explicit(
                                                   &watch->n_events, memory_order_relaxed) };
    if (watch->cursor != NULL)
        kinf__watch_cursor_status(watch->cursor, now_ms, &ret_status->cursor);
    else
        ret_status->cursor.has_expired = true;
}
