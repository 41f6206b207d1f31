/*
 * Cursors: one place in the history for each watch. Neighbours: wake.c wakes armed ones, feed.c
 * lets the history grow and the oldest events fall out.
 *
 * A cursor holds nothing but the object that it gave last. What it has not been given is not its
 * own, so one that is stalled costs nobody anything: the history moves on, and it expires (W5). The
 * one object is its own until it asks for the next, within bounds (W7).
 */
#include "watchcache/watchcache_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* In one call: events that have nothing of the cursor's scope, and those whose object had to be
 * looked at. */
#define N_PASSED_AT_ONCE 2048
#define N_UNSEEN_AT_ONCE 512

const char *kinf__watch_event_type_to_string(enum kinf__watch_event_type type)
{
    static const char *const names[] = {
#define X(value, name) [value] = name,
        KINF__WATCH_EVENT_TYPES(X)
#undef X
    };

    return (size_t)type < KINF__ARRAY_LEN(names) ? names[type] : "?";
}

/* --- the selection --- */

static bool has_key(const struct kinf__watch_cursor *cursor, const struct kinf_object *object)
{
    struct kinf_str key = kinf__object_key(object);

    if (cursor->key == NULL)
        return true;
    return (cursor->is_one_key ? key.len == cursor->key_len : key.len >= cursor->key_len) &&
           memcmp(key.bytes, cursor->key, cursor->key_len) == 0;
}

bool kinf__entry_has_value(const struct kinf__entry *entry, uint32_t index, struct kinf_str value)
{
    if (index >= entry->n_indices)
        return false; /* untested: with a new index a new history begins */
    for (uint32_t at = entry->starts[index]; at < entry->starts[index + 1];) {
        struct kinf_str its_value = kinf__entry_value(entry, at);

        if (kinf_str_equal(its_value, value))
            return true;
        at += (uint32_t)its_value.len + 1;
    }
    return false;
}

/* All of the selection that can be told without reading the object. */
static bool may_see(const struct kinf__watch_cursor *cursor, const struct kinf__entry *entry)
{
    return entry != NULL && has_key(cursor, entry->object) &&
           (cursor->index_value == NULL ||
            kinf__entry_has_value(entry, cursor->index, kinf_str_from(cursor->index_value)));
}

int kinf__watch_cursor_sees(const struct kinf__watch_cursor *cursor,
                            const struct kinf__entry *entry)
{
    if (!may_see(cursor, entry))
        return 0;
    return cursor->match != NULL ? cursor->match(entry->object, cursor->match_ctx) : 1;
}

/* --- places --- */

/* The number of the event that it is in front of. What fell out before that, and is not above what
 * it has seen, was not for it. */
static uint64_t place_locked(const struct kinf__watchcache *cache,
                             const struct kinf__watch_cursor *cursor) KINF__REQUIRES(cache->lock)
{
    const struct kinf__history *history = &cache->history;

    if (cursor->is_armed && cursor->next < cache->asked)
        return cache->asked;
    if (cursor->next < history->first && cursor->seen >= history->start)
        return history->first;
    return cursor->next;
}

static void expire_locked(struct kinf__watchcache *cache, struct kinf__watch_cursor *cursor)
    KINF__REQUIRES(cache->lock)
{
    cursor->has_expired = true;
    cache->counts.n_cursors_expired++;
}

static bool check_expired_locked(struct kinf__watchcache *cache, struct kinf__watch_cursor *cursor)
    KINF__REQUIRES(cache->lock)
{
    if (!cursor->has_expired &&
        (cursor->epoch != cache->epoch || place_locked(cache, cursor) < cache->history.first))
        expire_locked(cache, cursor);
    return cursor->has_expired;
}

/* Those that began in the future, at a version that a list has passed by. */
void kinf__cursors_pass_gap_locked(struct kinf__watchcache *cache, struct kinf__history_gap gap)
{
    KINF__LIST_FOR_EACH (node, &cache->cursors) {
        struct kinf__watch_cursor *cursor = KINF__LIST_ENTRY(node, struct kinf__watch_cursor, node);

        if (cursor->has_expired || cursor->epoch != cache->epoch ||
            !kinf__history_gap_has(gap, cursor->after))
            continue;
        expire_locked(cache, cursor);
        if (cursor->is_armed)
            kinf__wake_locked(cache, cursor);
    }
}

/* Also takes back a wake-up whose callback did not run yet. */
static void disarm_locked(const struct kinf__watchcache *cache, struct kinf__watch_cursor *cursor)
    KINF__REQUIRES(cache->lock)
{
    cursor->next = place_locked(cache, cursor);
    cursor->is_armed = false;
    kinf__list_remove(&cursor->armed_node);
}

uint64_t kinf__watch_cursor_lag_locked(const struct kinf__watchcache *cache,
                                       const struct kinf__watch_cursor *cursor)
{
    bool is_lost = cursor->has_expired || cursor->epoch != cache->epoch;

    return is_lost ? 0 : cache->history.end - place_locked(cache, cursor);
}

/* --- life --- */

/* The entry's reference is the cursor's. Stalls begin with what is held, and from the limit on they
 * are looked for at each tick. */
static void hold(struct kinf__watch_cursor *cursor, struct kinf__entry *take_entry)
{
    struct kinf__watchcache *cache = cursor->cache;
    size_t bytes = kinf_object_size(take_entry->object), limit = cache->limits.page_bytes, before;

    atomic_store_explicit(&cursor->held, take_entry, memory_order_release);
    before = atomic_fetch_add(&cache->held_bytes, bytes);
    if (before <= limit && before + bytes > limit)
        kinf__watchcache_expect(cache, 0);
}

/* Returns what was held, with its reference; NULL: nothing. */
static struct kinf__entry *let_go(struct kinf__watch_cursor *cursor)
{
    struct kinf__entry *held = atomic_load_explicit(&cursor->held, memory_order_relaxed);

    if (held == NULL)
        return NULL;
    atomic_store_explicit(&cursor->held, NULL, memory_order_relaxed);
    atomic_fetch_sub(&cursor->cache->held_bytes, kinf_object_size(held->object));
    return held;
}

static void release(struct kinf__watch_cursor *cursor)
{
    struct kinf__entry *held = let_go(cursor);

    if (held != NULL)
        kinf__entry_unref(held);
    free(cursor->index_value);
    free(cursor->key);
    free(cursor);
}

static int copy_key(struct kinf__watch_cursor *cursor, const struct kinf__watch_filter *filter)
{
    bool has_namespace = filter->name_space != NULL && filter->name_space[0] != '\0';
    size_t size;

    if (!has_namespace && filter->name == NULL)
        return 0;
    size = (has_namespace ? strlen(filter->name_space) + 1 : 0) +
           (filter->name != NULL ? strlen(filter->name) : 0) + 1;
    cursor->key = malloc(size);
    if (cursor->key == NULL)
        return KINF_ERR_NO_MEMORY;
    snprintf(cursor->key, size, "%s%s%s", has_namespace ? filter->name_space : "",
             has_namespace ? "/" : "", filter->name != NULL ? filter->name : "");
    cursor->key_len = size - 1;
    cursor->is_one_key = filter->name != NULL;
    return 0;
}

static struct kinf__watch_cursor *cursor_new(struct kinf__watchcache *cache,
                                             const struct kinf__watch_filter *filter,
                                             kinf__watch_wake_cb *wake, void *wake_ctx)
{
    struct kinf__watch_cursor *cursor = calloc(1, sizeof *cursor);

    if (cursor == NULL)
        return NULL;
    cursor->cache = cache;
    cursor->match = filter->match;
    cursor->match_ctx = filter->match_ctx;
    cursor->wants_bookmarks = filter->wants_bookmarks;
    cursor->wake = wake;
    cursor->wake_ctx = wake_ctx;
    kinf__list_init(&cursor->armed_node);
    if (filter->index != NULL)
        cursor->index_value = strdup(filter->index_value);
    if (copy_key(cursor, filter) < 0 || (filter->index != NULL && cursor->index_value == NULL)) {
        release(cursor);
        return NULL;
    }
    return cursor;
}

/* The narrowest that the selection allows. */
static int join_bucket_locked(struct kinf__watchcache *cache, struct kinf__watch_cursor *cursor)
    KINF__REQUIRES(cache->lock)
{
    const struct kinf_str key = { cursor->key, cursor->key_len };
    enum kinf__bucket_type type = KINF__BUCKET_ALL;
    struct kinf_str value = KINF_STR("");

    if (cursor->is_one_key) {
        type = KINF__BUCKET_KEY;
        value = key;
    } else if (cursor->index_value != NULL) {
        type = KINF__BUCKET_INDEX;
        value = kinf_str_from(cursor->index_value);
    } else if (cursor->key != NULL) {
        type = KINF__BUCKET_NAMESPACE;
        value = key;
    }
    return kinf__bucket_join_locked(cache, type, type == KINF__BUCKET_INDEX ? cursor->index : 0,
                                    value, &cursor->bucket);
}

static int check_start_locked(const struct kinf__watchcache *cache, uint64_t version,
                              struct kinf_error *err) KINF__REQUIRES(cache->lock)
{
    if (version < cache->history.start)
        return kinf__error_set(err, KINF_ERR_EXPIRED, "too old resource version: %llu (%llu)",
                               (unsigned long long)version,
                               (unsigned long long)cache->history.start);
    if (kinf__history_before_gap(&cache->history, version) != version)
        return kinf__error_set(err, KINF_ERR_EXPIRED,
                               "resource version %llu: what came and went behind it is not known",
                               (unsigned long long)version);
    if (version > cache->version && version <= cache->suspect_version)
        return kinf__error_set(err, KINF_ERR_EXPIRED,
                               "resource version %llu may be of before the server went back to "
                               "an earlier state, it has reached %llu",
                               (unsigned long long)version, (unsigned long long)cache->version);
    return 0;
}

static int find_index_locked(const struct kinf__watchcache *cache,
                             struct kinf__watch_cursor *cursor, const char *index,
                             struct kinf_error *err) KINF__REQUIRES(cache->lock)
{
    if (index == NULL || kinf__index_set_find(cache->current->set, index, &cursor->index))
        return 0;
    return kinf__error_set(err, KINF_ERR_NOT_FOUND, "index %s does not exist", index);
}

/* Puts it in front of the first event above `version`. */
static int join_locked(struct kinf__watchcache *cache, struct kinf__watch_cursor *cursor,
                       const char *index, uint64_t version, struct kinf_error *err)
    KINF__REQUIRES(cache->lock)
{
    int rc = check_start_locked(cache, version, err);

    if (rc == 0)
        rc = find_index_locked(cache, cursor, index, err);
    if (rc < 0)
        return rc;
    if (join_bucket_locked(cache, cursor) < 0)
        return kinf__error_no_memory(err);
    cursor->epoch = cache->epoch;
    cursor->after = version;
    cursor->seen = version;
    cursor->progress = version;
    cursor->next = kinf__history_search(&cache->history, version);
    kinf__list_push_back(&cache->cursors, &cursor->node);
    cache->n_cursors++;
    cache->counts.n_cursors_total++;
    return 0;
}

/* `version` NULL: from now on, with the snapshot of it. */
static int subscribe(struct kinf__watchcache *cache, const struct kinf__watch_filter *filter,
                     const uint64_t *version, kinf__watch_wake_cb *wake, void *wake_ctx,
                     struct kinf_snapshot **ret_snapshot, struct kinf__watch_cursor **ret_cursor,
                     struct kinf_error *err)
{
    struct kinf__watch_cursor *cursor = cursor_new(cache, filter, wake, wake_ctx);
    int rc;

    if (cursor == NULL)
        return kinf__error_no_memory(err);
    kinf__mutex_lock(&cache->lock);
    if (cache->version == 0)
        rc = kinf__error_set(err, KINF_ERR_STATE, "the first list is not in yet");
    else
        rc = join_locked(cache, cursor, filter->index, version != NULL ? *version : cache->version,
                         err);
    if (rc == 0 && version == NULL)
        *ret_snapshot = kinf_snapshot_ref(cache->current);
    kinf__mutex_unlock(&cache->lock);
    if (rc < 0)
        release(cursor);
    else
        *ret_cursor = cursor;
    return rc;
}

int kinf__watchcache_subscribe(struct kinf__watchcache *cache,
                               const struct kinf__watch_filter *filter, uint64_t version,
                               kinf__watch_wake_cb *wake, void *wake_ctx,
                               struct kinf__watch_cursor **ret_cursor, struct kinf_error *err)
{
    return subscribe(cache, filter, &version, wake, wake_ctx, NULL, ret_cursor, err);
}

int kinf__watchcache_subscribe_now(struct kinf__watchcache *cache,
                                   const struct kinf__watch_filter *filter,
                                   kinf__watch_wake_cb *wake, void *wake_ctx,
                                   struct kinf_snapshot **ret_snapshot,
                                   struct kinf__watch_cursor **ret_cursor, struct kinf_error *err)
{
    return subscribe(cache, filter, NULL, wake, wake_ctx, ret_snapshot, ret_cursor, err);
}

void kinf__watch_cursor_free(struct kinf__watch_cursor *cursor)
{
    struct kinf__watchcache *cache;

    if (cursor == NULL)
        return;
    cache = cursor->cache;
    kinf__mutex_lock(&cache->lock);
    disarm_locked(cache, cursor);
    kinf__await_call_locked(cache, cursor);
    /* The callback may have armed it again. */
    disarm_locked(cache, cursor);
    kinf__list_remove(&cursor->node);
    cache->n_cursors--;
    kinf__bucket_leave_locked(cache, cursor->bucket);
    kinf__mutex_unlock(&cache->lock);
    release(cursor);
}

/* --- reading --- */

/* What may be told next, with references of its own. */
static bool take_locked(const struct kinf__watchcache *cache, struct kinf__watch_cursor *cursor,
                        struct kinf__past_event *ret_event) KINF__REQUIRES(cache->lock)
{
    const struct kinf__past_event *event = kinf__history_at(&cache->history, cursor->next++);
    bool is_bookmark = event->old == NULL && event->now == NULL;

    if (event->version <= cursor->after)
        return false;
    cursor->seen = event->version;
    if (is_bookmark ? !cursor->wants_bookmarks
                    : !may_see(cursor, event->old) && !may_see(cursor, event->now))
        return false;
    *ret_event = *event;
    if (event->old != NULL)
        kinf__entry_ref(event->old);
    if (event->now != NULL)
        kinf__entry_ref(event->now);
    return true;
}

/* 1: an event that may be told, with references; else as kinf__watch_cursor_next(). The one before is
 * over. */
static int take_next(struct kinf__watch_cursor *cursor, struct kinf__past_event *ret_event)
{
    struct kinf__watchcache *cache = cursor->cache;
    struct kinf__entry *told;
    size_t n_passed = 0;
    int rc = 0;

    kinf__mutex_lock(&cache->lock);
    told = let_go(cursor);
    disarm_locked(cache, cursor);
    while (rc == 0) {
        if (check_expired_locked(cache, cursor))
            rc = KINF_ERR_EXPIRED;
        else if (cursor->next == cache->history.end)
            break;
        else if (take_locked(cache, cursor, ret_event))
            rc = 1;
        if (rc == 0 && ++n_passed == N_PASSED_AT_ONCE)
            rc = KINF__WATCH_CURSOR_PAUSED;
    }
    kinf__mutex_unlock(&cache->lock);
    if (told != NULL)
        kinf__entry_unref(told);
    return rc;
}

/* What an event is to this selection; takes its references, keeps that of the object. 1: it is
 * written; 0: it is nothing to it. */
static int translate(struct kinf__watch_cursor *cursor, struct kinf__past_event *take_event,
                     struct kinf__watch_event *ret_event)
{
    int was_seen = kinf__watch_cursor_sees(cursor, take_event->old);
    int is_seen = kinf__watch_cursor_sees(cursor, take_event->now);
    bool is_bookmark = take_event->old == NULL && take_event->now == NULL;
    enum kinf__watch_event_type type = KINF__WATCH_BOOKMARK;
    struct kinf__entry *held = NULL;

    if (was_seen < 0 || is_seen < 0) {
        kinf__past_event_release(take_event);
        return KINF_ERR_NO_MEMORY;
    }
    if (is_seen) {
        type = was_seen ? KINF__WATCH_MODIFIED : KINF__WATCH_ADDED;
        held = KINF__TAKE(take_event->now);
    } else if (was_seen) {
        type = KINF__WATCH_DELETED;
        held = KINF__TAKE(take_event->old);
    }
    kinf__past_event_release(take_event);
    if (!is_seen && !was_seen && !is_bookmark)
        return 0;
    if (held != NULL)
        hold(cursor, held);
    *ret_event =
        (struct kinf__watch_event){ type, take_event->version, held != NULL ? held->object : NULL };
    atomic_fetch_add_explicit(&cursor->n_told, 1, memory_order_relaxed);
    return 1;
}

int kinf__watch_cursor_next(struct kinf__watch_cursor *cursor, struct kinf__watch_event *ret_event)
{
    struct kinf__past_event event;

    for (size_t n = 0; n < N_UNSEEN_AT_ONCE; n++) {
        int rc = take_next(cursor, &event);

        if (rc != 1 || (rc = translate(cursor, &event, ret_event)) != 0)
            return rc;
    }
    return KINF__WATCH_CURSOR_PAUSED;
}

bool kinf__watch_cursor_arm(struct kinf__watch_cursor *cursor)
{
    struct kinf__watchcache *cache = cursor->cache;
    bool may_go_on;

    kinf__mutex_lock(&cache->lock);
    disarm_locked(cache, cursor);
    may_go_on = check_expired_locked(cache, cursor) || cursor->next != cache->history.end;
    if (!may_go_on) {
        cursor->is_armed = true;
        kinf__list_push_back(&cursor->bucket->armed, &cursor->armed_node);
    }
    kinf__mutex_unlock(&cache->lock);
    return may_go_on;
}

uint64_t kinf__watch_cursor_progress(struct kinf__watch_cursor *cursor)
{
    struct kinf__watchcache *cache = cursor->cache;
    uint64_t place, version, progress = 0;

    kinf__mutex_lock(&cache->lock);
    if (!check_expired_locked(cache, cursor)) {
        place = place_locked(cache, cursor);
        version = place == cache->history.end
                      ? cache->version
                      : kinf__history_version_before(&cache->history, place);
        version = kinf__history_before_gap(&cache->history, version);
        if (version > cursor->progress)
            cursor->progress = version;
        progress = cursor->progress;
    }
    kinf__mutex_unlock(&cache->lock);
    return progress;
}

/* --- stalling --- */

/* What it keeps in memory of an event that the history has no more; those who are half way through
 * the same one share it. */
static size_t stalled_bytes_locked(struct kinf__watchcache *cache,
                                   struct kinf__watch_cursor *cursor) KINF__REQUIRES(cache->lock)
{
    const struct kinf__entry *held = atomic_load_explicit(&cursor->held, memory_order_acquire);

    if (held == NULL || cursor->is_given_up || !check_expired_locked(cache, cursor) ||
        (cache->current != NULL &&
         kinf__tree_get(&cache->current->items, kinf__object_item_key(held->object)) == held))
        return 0;
    return kinf_object_size(held->object) / atomic_load_explicit(&held->refs, memory_order_relaxed);
}

static void give_up_locked(struct kinf__watchcache *cache, uint64_t next)
    KINF__REQUIRES(cache->lock)
{
    KINF__LIST_FOR_EACH (node, &cache->cursors) {
        struct kinf__watch_cursor *cursor = KINF__LIST_ENTRY(node, struct kinf__watch_cursor, node);

        if (cursor->next > next || stalled_bytes_locked(cache, cursor) == 0)
            continue;
        cursor->is_given_up = true;
        disarm_locked(cache, cursor);
        kinf__list_push_back(&cache->woken, &cursor->armed_node);
        cache->counts.n_cursors_given_up++;
    }
}

bool kinf__cursors_hold_much(struct kinf__watchcache *cache)
{
    return atomic_load(&cache->held_bytes) > cache->limits.page_bytes;
}

/* Of those that are to go on behind `next`. */
static size_t stalled_bytes_behind_locked(struct kinf__watchcache *cache, uint64_t next)
    KINF__REQUIRES(cache->lock)
{
    size_t bytes = 0;

    KINF__LIST_FOR_EACH (node, &cache->cursors) {
        struct kinf__watch_cursor *cursor = KINF__LIST_ENTRY(node, struct kinf__watch_cursor, node);

        if (cursor->next > next)
            bytes += stalled_bytes_locked(cache, cursor);
    }
    return bytes;
}

/* Halves the history to find whom to give up: thousands may stall, each somewhere else, and others wait
 * for the lock. */
void kinf__cursors_bound_stalled_locked(struct kinf__watchcache *cache)
{
    uint64_t low = 0, high = cache->history.end;

    if (!kinf__cursors_hold_much(cache) ||
        stalled_bytes_behind_locked(cache, 0) <= cache->limits.page_bytes)
        return;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (stalled_bytes_behind_locked(cache, middle) > cache->limits.page_bytes)
            low = middle + 1;
        else
            high = middle;
    }
    give_up_locked(cache, high);
}

bool kinf__watch_cursor_is_given_up(struct kinf__watch_cursor *cursor)
{
    bool is_given_up;

    kinf__mutex_lock(&cursor->cache->lock);
    is_given_up = cursor->is_given_up;
    kinf__mutex_unlock(&cursor->cache->lock);
    return is_given_up;
}
