/*
 * The model server's objects and their past. Neighbours: server_model.c serves them, and
 * test_engine_model.c judges by the logs. Invariant: the last state of each log is the present one.
 */
#include "unit/server_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object/object.h"
#include "object/shard.h"

static void must(int r)
{
    if (r < 0)
        abort();
}

/* --- objects --- */

static void format_namespace(size_t slot, char *buf, size_t size)
{
    snprintf(buf, size, "ns%zu", slot % 3);
}

size_t server_slot_of(const struct kinf_object *object)
{
    return strtoul(kinf_object_name(object) + 1, NULL, 10);
}

/* A text that depends on the serial: mostly short, with all that needs care. */
static void append_text(struct kinf__buffer *text, unsigned long serial)
{
    static const char *const words[] = { "plain", "\\n", "\\\"", "}", "[", "é", "\\u00e9", "\\\\" };
    size_t n_words = serial % 16 == 0 ? 300 : serial % 5;

    for (size_t i = 0; i < n_words; i++)
        must(kinf__buffer_printf(text, "%s", words[(serial + i) % KINF__ARRAY_LEN(words)]));
}

/* Ends so that neighbours have hashes that lie far apart. */
static void format_uid(unsigned long uid, char *buf, size_t size)
{
    snprintf(buf, size, "u%lu-000", uid);
}

static bool is_in_shard(unsigned long uid)
{
    char text[32];

    format_uid(uid, text, sizeof text);
    return kinf__shard_hash(kinf_str_from(text)) >> 63 == 0;
}

static void append_values(struct kinf__buffer *text, unsigned long serial, enum server_part part)
{
    must(kinf__buffer_printf(text, ",\"data\":{\"serial\":\"%lu\"", serial));
    if (part == SERVER_WHOLE) {
        must(kinf__buffer_printf(text, ",\"text\":\""));
        append_text(text, serial);
        must(kinf__buffer_printf(text, "\""));
    }
    must(kinf__buffer_printf(text, "}"));
}

void server_append_object(struct kinf__buffer *text, size_t slot, const struct server_state *state,
                          unsigned long rv, enum server_part part, bool is_typed)
{
    const char *type = part >= SERVER_METADATA
                           ? "\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
                           : "\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",";
    char name_space[16], uid[32];

    format_namespace(slot, name_space, sizeof name_space);
    format_uid(state->uid, uid, sizeof uid);
    must(kinf__buffer_printf(text,
                             "{%s\"metadata\":{\"name\":\"k%zu\",\"namespace\":\"%s\","
                             "\"uid\":\"%s\",\"resourceVersion\":\"%lu\","
                             "\"labels\":{\"app\":\"%s\"}",
                             is_typed ? type : "", slot, name_space, uid, rv,
                             state->is_labelled ? "a" : "b"));
    if (slot % 4 != 0) /* compressed stores hold those of one owner by the first of them */
        must(kinf__buffer_printf(text, ",\"ownerReferences\":[{\"uid\":\"o%zu\"}]", slot % 3));
    if (part == SERVER_ALL_METADATA)
        must(kinf__buffer_printf(text, ",\"managedFields\":[{\"manager\":\"m%lu\"}]",
                                 state->serial));
    must(kinf__buffer_printf(text, "}"));
    if (part < SERVER_METADATA)
        append_values(text, state->serial, part);
    must(kinf__buffer_printf(text, "}"));
}

bool server_view_sees(const struct server_view *view, size_t slot, const struct server_state *state)
{
    char name_space[16];

    format_namespace(slot, name_space, sizeof name_space);
    return state->serial != 0 && (state->is_labelled || !view->only_labelled) &&
           (!view->only_shard || is_in_shard(state->uid)) &&
           (view->name_space == NULL || strcmp(view->name_space, name_space) == 0);
}

/* Whether it is the object of this state, byte for byte, but at this version. */
static bool is_object_of(const struct kinf_object *object, const struct server_view *view,
                         const struct server_state *state, unsigned long rv)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str body;

    must(kinf__object_body(object, &scratch, &body));
    server_append_object(&text, server_slot_of(object), state, rv, view->part, false);
    return kinf_str_equal(kinf__buffer_str(&text), body);
}

static bool has_uid(const struct kinf_object *object, unsigned long uid)
{
    return strtoul(kinf_object_uid(object) + 1, NULL, 10) == uid;
}

/* --- changes --- */

static void *grown(void *items, size_t n_items, size_t size)
{
    /* At powers of two there may be no room. */
    if ((n_items & (n_items - 1)) != 0)
        return items;
    items = realloc(items, (n_items == 0 ? 1 : 2 * n_items) * size);
    if (items == NULL)
        abort();
    return items;
}

static void log_state_locked(struct server_history *history, size_t slot)
{
    struct server_log *log = &history->logs[slot];

    log->states = grown(log->states, log->n_states, sizeof log->states[0]);
    log->states[log->n_states++] = history->now[slot];
}

static size_t below(struct server_history *history, size_t limit)
{
    return test_random_below(&history->random, limit);
}

/* Other resources are written too. */
static void advance_locked(struct server_history *history)
{
    history->rv += 1 + (below(history, 4) == 0 ? below(history, 5) : 0);
    if (history->rv > history->highest_rv)
        history->highest_rv = history->rv;
}

static void set_locked(struct server_history *history, size_t slot, struct server_state after)
{
    struct server_event event = { .slot = slot, .before = history->now[slot] };

    advance_locked(history);
    after.rv = history->rv;
    event.rv = history->rv;
    event.after = after;
    history->now[slot] = after;
    history->events = grown(history->events, history->n_events, sizeof history->events[0]);
    history->events[history->n_events++] = event;
    log_state_locked(history, slot);
}

static void write_locked(struct server_history *history, size_t slot)
{
    struct server_state state = history->now[slot];

    if (state.serial == 0) {
        state.uid = ++history->last_uid;
        state.is_labelled = below(history, 2) == 0;
    }
    state.serial = ++history->last_serial;
    if (below(history, 4) == 0)
        state.is_labelled = !state.is_labelled;
    set_locked(history, slot, state);
}

static void delete_locked(struct server_history *history, size_t slot)
{
    struct server_state state = history->now[slot];

    state.serial = 0;
    set_locked(history, slot, state);
}

void server_history_change(struct server_history *history)
{
    size_t slot;

    pthread_mutex_lock(&history->lock);
    slot = below(history, SERVER_N_SLOTS);
    if (history->now[slot].serial != 0 && below(history, 3) == 0) {
        delete_locked(history, slot);
        if (below(history, 2) == 0)
            write_locked(history, slot);
    } else {
        write_locked(history, slot);
    }
    pthread_mutex_unlock(&history->lock);
}

void server_history_set_checkpoint(struct server_history *history)
{
    pthread_mutex_lock(&history->lock);
    history->checkpoint.rv = history->rv;
    memcpy(history->checkpoint.states, history->now, sizeof history->now);
    pthread_mutex_unlock(&history->lock);
}

static void end_generation_locked(struct server_history *history)
{
    struct server_past *past;

    history->past = grown(history->past, history->generation, sizeof history->past[0]);
    past = &history->past[history->generation++];
    *past = (struct server_past){ .first_rv = history->first_rv,
                                  .last_rv = history->rv,
                                  .events = history->events,
                                  .n_events = history->n_events };
    memcpy(past->last, history->now, sizeof history->now);
    history->events = NULL;
    history->n_events = 0;
}

void server_history_restore(struct server_history *history)
{
    pthread_mutex_lock(&history->lock);
    end_generation_locked(history);
    history->rv = history->checkpoint.rv;
    history->first_rv = history->rv;
    history->oldest_rv = history->rv;
    for (size_t i = 0; i < SERVER_N_SLOTS; i++) {
        if (history->now[i].serial == history->checkpoint.states[i].serial)
            continue;
        history->now[i] = history->checkpoint.states[i];
        if (history->now[i].serial == 0)
            history->now[i].rv = 0;
        log_state_locked(history, i);
    }
    pthread_mutex_unlock(&history->lock);
}

void server_history_forget(struct server_history *history)
{
    pthread_mutex_lock(&history->lock);
    history->oldest_rv = history->rv;
    pthread_mutex_unlock(&history->lock);
}

void server_history_outrun(struct server_history *history)
{
    pthread_mutex_lock(&history->lock);
    history->rv = ++history->highest_rv;
    pthread_mutex_unlock(&history->lock);
}

static void undo(struct server_state *states, const struct server_event *events, size_t n_events,
                 unsigned long rv)
{
    for (size_t i = n_events; i > 0 && events[i - 1].rv > rv; i--)
        states[events[i - 1].slot] = events[i - 1].before;
}

void server_history_at_locked(const struct server_history *history, unsigned long rv,
                              struct server_state *ret_states)
{
    memcpy(ret_states, history->now, sizeof history->now);
    undo(ret_states, history->events, history->n_events, rv);
}

void server_history_init(struct server_history *history, uint64_t seed)
{
    *history = (struct server_history){ .random = { seed }, .rv = 100, .highest_rv = 100 };
    history->first_rv = history->rv;
    history->oldest_rv = history->rv;
    history->checkpoint.rv = history->rv;
    pthread_mutex_init(&history->lock, NULL);
    for (size_t i = 0; i < SERVER_N_SLOTS; i++)
        log_state_locked(history, i);
}

void server_history_release(struct server_history *history)
{
    for (size_t i = 0; i < SERVER_N_SLOTS; i++)
        free(history->logs[i].states);
    for (size_t i = 0; i < history->generation; i++)
        free(history->past[i].events);
    free(history->past);
    free(history->events);
    pthread_mutex_destroy(&history->lock);
}

/* --- judging clients --- */

/* Whether the `at`-th state of its log explains that a client is told of the object. */
typedef bool explains_fn(const struct server_log *log, size_t at, const struct server_view *view,
                         const struct kinf_object *object);

static size_t find(struct server_history *history, const struct server_view *view, size_t from,
                   const struct kinf_object *object, explains_fn *explains)
{
    const struct server_log *log = &history->logs[server_slot_of(object)];
    size_t at;

    pthread_mutex_lock(&history->lock);
    for (at = from; at < log->n_states && !explains(log, at, view, object); at++)
        continue;
    if (at >= log->n_states)
        at = SERVER_NOWHERE;
    pthread_mutex_unlock(&history->lock);
    return at;
}

static bool sees_object(const struct server_log *log, size_t at, const struct server_view *view,
                        const struct kinf_object *object)
{
    const struct server_state *state = &log->states[at];

    return server_view_sees(view, server_slot_of(object), state) &&
           is_object_of(object, view, state, state->rv);
}

static bool loses_object(const struct server_log *log, size_t at, const struct server_view *view,
                         const struct kinf_object *object)
{
    size_t slot = server_slot_of(object);

    return at > 0 && !server_view_sees(view, slot, &log->states[at]) &&
           server_view_sees(view, slot, &log->states[at - 1]) &&
           is_object_of(object, view, &log->states[at - 1], log->states[at].rv);
}

static bool misses_object(const struct server_log *log, size_t at, const struct server_view *view,
                          const struct kinf_object *object)
{
    const struct server_state *state = &log->states[at];

    return !server_view_sees(view, server_slot_of(object), state) || !has_uid(object, state->uid);
}

size_t server_history_find_state(struct server_history *history, const struct server_view *view,
                                 size_t from, const struct kinf_object *object)
{
    return find(history, view, from, object, sees_object);
}

size_t server_history_find_deletion(struct server_history *history, const struct server_view *view,
                                    size_t from, const struct kinf_object *object)
{
    return find(history, view, from, object, loses_object);
}

size_t server_history_find_absence(struct server_history *history, const struct server_view *view,
                                   size_t from, const struct kinf_object *object)
{
    return find(history, view, from, object, misses_object);
}

static bool equals(const struct server_state *states, const struct server_view *view,
                   const struct kinf_snapshot *snapshot)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    size_t n_seen = 0;

    for (size_t i = 0; i < SERVER_N_SLOTS; i++)
        n_seen += server_view_sees(view, i, &states[i]);
    if (n_seen != kinf_snapshot_count(snapshot))
        return false;
    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        const struct server_state *state = &states[server_slot_of(object)];

        if (!server_view_sees(view, server_slot_of(object), state) ||
            !is_object_of(object, view, state, state->rv))
            return false;
    }
    return true;
}

bool server_history_equals(struct server_history *history, const struct server_view *view,
                           const struct kinf_snapshot *snapshot)
{
    bool is_equal;

    pthread_mutex_lock(&history->lock);
    is_equal = equals(history->now, view, snapshot);
    pthread_mutex_unlock(&history->lock);
    return is_equal;
}

static bool had_in_past(const struct server_past *past, unsigned long rv,
                        const struct server_view *view, const struct kinf_snapshot *snapshot)
{
    struct server_state states[SERVER_N_SLOTS];

    if (rv < past->first_rv || rv > past->last_rv)
        return false;
    memcpy(states, past->last, sizeof states);
    undo(states, past->events, past->n_events, rv);
    return equals(states, view, snapshot);
}

static bool had_locked(const struct server_history *history, unsigned long rv,
                       const struct server_view *view, const struct kinf_snapshot *snapshot)
{
    struct server_state states[SERVER_N_SLOTS];

    server_history_at_locked(history, rv, states);
    if (rv >= history->first_rv && rv <= history->rv && equals(states, view, snapshot))
        return true;
    for (size_t i = 0; i < history->generation; i++) {
        if (had_in_past(&history->past[i], rv, view, snapshot))
            return true;
    }
    return false;
}

bool server_history_had(struct server_history *history, const struct server_view *view,
                        const struct kinf_snapshot *snapshot)
{
    unsigned long rv = strtoul(kinf_snapshot_resource_version(snapshot), NULL, 10);
    bool had;

    pthread_mutex_lock(&history->lock);
    had = had_locked(history, rv, view, snapshot);
    pthread_mutex_unlock(&history->lock);
    return had;
}
