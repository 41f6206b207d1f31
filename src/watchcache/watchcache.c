/*
 * The cache's life and state. Neighbours: feed.c, versions.c, cursor.c, wake.c, which share the
 * insides.
 */
#include "watchcache/watchcache_priv.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

#define HISTORY_BYTES  ((size_t)64 << 20)
#define HISTORY_AGE_MS 300000
#define PAGE_BYTES     ((size_t)64 << 20)
#define PAGE_AGE_MS    300000
#define MAX_PAGES      64

/* --- life --- */

static struct kinf__watchcache_limits with_defaults(const struct kinf__watchcache_limits *limits)
{
    struct kinf__watchcache_limits result = { 0 };

    if (limits != NULL)
        result = *limits;
    if (result.history_bytes == 0)
        result.history_bytes = HISTORY_BYTES;
    if (result.history_age_ms == 0)
        result.history_age_ms = HISTORY_AGE_MS;
    if (result.page_bytes == 0)
        result.page_bytes = PAGE_BYTES;
    if (result.page_age_ms == 0)
        result.page_age_ms = PAGE_AGE_MS;
    if (result.max_pages == 0)
        result.max_pages = MAX_PAGES;
    return result;
}

int kinf__watchcache_new(struct kinf_indexer *indexer, const struct kinf__watchcache_limits *limits,
                         struct kinf__watchcache **ret_cache, struct kinf_error *err)
{
    struct kinf__watchcache *cache = calloc(1, sizeof *cache);

    if (cache == NULL)
        return kinf__error_no_memory(err);
    cache->indexer = indexer;
    cache->limits = with_defaults(limits);
    cache->pages = calloc(cache->limits.max_pages + 1, sizeof cache->pages[0]);
    if (cache->pages == NULL) {
        free(cache);
        return kinf__error_no_memory(err);
    }
    kinf__mutex_init(&cache->lock, KINF__RANK_WATCHCACHE);
    kinf__cond_init(&cache->call_ended);
    kinf__list_init(&cache->cursors);
    kinf__list_init(&cache->waiters);
    kinf__list_init(&cache->woken);
    kinf__list_init(&cache->ended);
    kinf__list_init(&cache->running);
    cache->lowest_awaited = UINT64_MAX;
    cache->counts.last_restart_reason = "";
    *ret_cache = cache;
    return 0;
}

void kinf__watchcache_free(struct kinf__watchcache *cache)
{
    if (cache == NULL)
        return;
    kinf__watchcache_set_enabled(cache, false);
    assert(cache->n_cursors == 0 && kinf__list_is_empty(&cache->running));
    kinf__hmap_release(&cache->buckets);
    kinf__cond_release(&cache->call_ended);
    kinf__mutex_release(&cache->lock);
    free(cache->pages);
    free(cache);
}

void kinf__watchcache_set_on_due(struct kinf__watchcache *cache, kinf__watchcache_due_cb *on_due,
                                 void *ctx)
{
    cache->on_due = on_due;
    cache->due_ctx = ctx;
}

void kinf__watchcache_expect(const struct kinf__watchcache *cache, int64_t due_ms)
{
    if (cache->on_due != NULL)
        cache->on_due(due_ms, cache->due_ctx);
}

/* --- beginning and ending --- */

static void wake_everybody_locked(struct kinf__watchcache *cache) KINF__REQUIRES(cache->lock)
{
    KINF__LIST_FOR_EACH (node, &cache->cursors) {
        struct kinf__watch_cursor *cursor = KINF__LIST_ENTRY(node, struct kinf__watch_cursor, node);

        if (cursor->is_armed)
            kinf__wake_locked(cache, cursor);
    }
}

struct kinf__history kinf__watchcache_restart_locked(struct kinf__watchcache *cache,
                                                     const char *reason)
{
    struct kinf__history held = kinf__history_restart(&cache->history, cache->version);

    cache->epoch++;
    cache->asked = cache->history.end;
    if (reason[0] != '\0') {
        cache->counts.n_restarts++;
        cache->counts.last_restart_reason = reason;
    }
    wake_everybody_locked(cache);
    return held;
}

static size_t bytes_of(const struct kinf_snapshot *snapshot)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    size_t bytes = 0;

    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL)
        bytes += kinf_object_size(object);
    return bytes;
}

static struct kinf__history enable_locked(struct kinf__watchcache *cache)
    KINF__REQUIRES(cache->lock)
{
    cache->current = kinf_indexer_snapshot(cache->indexer);
    cache->version = kinf__watchcache_parse_rv(kinf_snapshot_resource_version(cache->current));
    cache->store_bytes = bytes_of(cache->current);
    kinf__lineage_begin_locked(cache);
    kinf__waiters_note_version_locked(cache);
    return kinf__watchcache_restart_locked(cache, "");
}

static struct kinf__history disable_locked(struct kinf__watchcache *cache)
    KINF__REQUIRES(cache->lock)
{
    kinf_snapshot_unref(KINF__TAKE(cache->current));
    cache->version = 0;
    cache->store_bytes = 0;
    kinf__lineage_begin_locked(cache);
    kinf__waiters_end_all_locked(cache, KINF_ERR_STOPPED);
    return kinf__watchcache_restart_locked(cache, "");
}

void kinf__watchcache_set_enabled(struct kinf__watchcache *cache, bool enabled)
{
    struct kinf__history held = { .ring = NULL };

    kinf__mutex_lock(&cache->lock);
    if (enabled && cache->current == NULL)
        held = enable_locked(cache);
    else if (!enabled && cache->current != NULL)
        held = disable_locked(cache);
    kinf__mutex_unlock(&cache->lock);
    kinf__history_release(&held);
    kinf__run_calls(cache);
}

/* --- state --- */

void kinf__watchcache_status(struct kinf__watchcache *cache,
                             struct kinf__watchcache_status *ret_status)
{
    kinf__mutex_lock(&cache->lock);
    *ret_status = cache->counts;
    ret_status->is_enabled = cache->current != NULL;
    ret_status->version = cache->version;
    ret_status->oldest_version = cache->history.start;
    ret_status->n_events = (size_t)(cache->history.end - cache->history.first);
    ret_status->history_bytes = cache->history.bytes;
    ret_status->store_bytes = cache->store_bytes;
    ret_status->n_pages = cache->n_pages;
    ret_status->page_bytes = kinf__pages_bytes_locked(cache);
    ret_status->n_cursors = cache->n_cursors;
    ret_status->n_waiters = cache->n_waiters;
    KINF__LIST_FOR_EACH (node, &cache->cursors) {
        uint64_t lag = kinf__watch_cursor_lag_locked(
            cache, KINF__LIST_ENTRY(node, struct kinf__watch_cursor, node));

        if (lag > ret_status->max_lag)
            ret_status->max_lag = lag;
    }
    if (ret_status->max_lag != 0 && ret_status->max_lag <= ret_status->n_events)
        ret_status->max_lag_since_ms =
            kinf__history_at(&cache->history, cache->history.end - ret_status->max_lag)->at_ms;
    kinf__mutex_unlock(&cache->lock);
}

const struct kinf__watchcache_limits *kinf__watchcache_limits(const struct kinf__watchcache *cache)
{
    return &cache->limits;
}

/* False: a bookmark. */
static bool tell_past(const struct kinf__past_event *event,
                      struct kinf__watch_recent_event *ret_event)
{
    const struct kinf__entry *entry = event->now != NULL ? event->now : event->old;

    if (entry == NULL)
        return false;
    *ret_event = (struct kinf__watch_recent_event){
        .type = event->now == NULL   ? KINF__WATCH_DELETED
                : event->old == NULL ? KINF__WATCH_ADDED
                                     : KINF__WATCH_MODIFIED,
        .version = event->version,
        .at_ms = event->at_ms,
        .object = kinf_object_ref(entry->object),
    };
    return true;
}

size_t kinf__watchcache_recent(struct kinf__watchcache *cache,
                               struct kinf__watch_recent_event *ret_events, size_t n_max)
{
    const struct kinf__history *history = &cache->history;
    size_t n = 0;

    kinf__mutex_lock(&cache->lock);
    for (uint64_t i = history->end; i > history->first && n < n_max; i--)
        n += tell_past(kinf__history_at(history, i - 1), &ret_events[n]);
    kinf__mutex_unlock(&cache->lock);
    return n;
}

static void tell_cursor_locked(const struct kinf__watchcache *cache,
                               const struct kinf__watch_cursor *cursor, int64_t now_ms,
                               struct kinf__watch_cursor_status *ret_status)
    KINF__REQUIRES(cache->lock)
{
    uint64_t lag = kinf__watch_cursor_lag_locked(cache, cursor);
    uint64_t place = cache->history.end - lag;

    *ret_status = (struct kinf__watch_cursor_status){
        .lag_events = lag,
        .n_told = atomic_load_explicit(&cursor->n_told, memory_order_relaxed),
        .is_armed = cursor->is_armed,
        .has_expired =
            cursor->has_expired || cursor->epoch != cache->epoch || place < cache->history.first,
    };
    if (lag != 0 && !ret_status->has_expired)
        ret_status->lag_ms = now_ms - kinf__history_at(&cache->history, place)->at_ms;
}

void kinf__watch_cursor_status(struct kinf__watch_cursor *cursor, int64_t now_ms,
                               struct kinf__watch_cursor_status *ret_status)
{
    struct kinf__watchcache *cache = cursor->cache;

    kinf__mutex_lock(&cache->lock);
    tell_cursor_locked(cache, cursor, now_ms, ret_status);
    kinf__mutex_unlock(&cache->lock);
}

/* --- the check --- */

static const char *check_cursor_locked(const struct kinf__watchcache *cache,
                                       const struct kinf__watch_cursor *cursor)
    KINF__REQUIRES(cache->lock)
{
    bool is_in_bucket = false;

    KINF__LIST_FOR_EACH (node, &cursor->bucket->armed)
        is_in_bucket |= node == &cursor->armed_node;
    if (is_in_bucket != cursor->is_armed)
        return "a cursor is armed, and not in its bucket, or the other way round";
    if (cursor->is_armed && cursor->epoch != cache->epoch)
        return "a cursor of an ended history is armed";
    if (cursor->epoch == cache->epoch && cursor->next > cache->history.end)
        return "a cursor is beyond the history";
    return NULL;
}

static const char *check_cursors_locked(const struct kinf__watchcache *cache)
    KINF__REQUIRES(cache->lock)
{
    const char *wrong = NULL;
    size_t n = 0, n_in_buckets = 0, held_bytes = 0;

    KINF__LIST_FOR_EACH (node, &cache->cursors) {
        const struct kinf__watch_cursor *cursor =
            KINF__LIST_ENTRY(node, struct kinf__watch_cursor, node);

        n++;
        held_bytes += cursor->held != NULL ? kinf_object_size(cursor->held->object) : 0;
        if (wrong == NULL)
            wrong = check_cursor_locked(cache, cursor);
    }
    for (size_t i = 0; i < cache->buckets.n_buckets; i++) {
        struct kinf__hmap_node *node = cache->buckets.buckets[i];

        for (; node != NULL; node = node->next)
            n_in_buckets += KINF__CONTAINER_OF(node, struct kinf__bucket, node)->n_cursors;
    }
    if (cache->everybody != NULL)
        n_in_buckets += cache->everybody->n_cursors;
    if (wrong == NULL && (n != cache->n_cursors || n != n_in_buckets))
        wrong = "wrong count of cursors";
    if (wrong == NULL && held_bytes != cache->held_bytes)
        wrong = "wrong count of what cursors hold";
    return wrong;
}

static bool is_younger(const struct kinf__page *page, const struct kinf__page *other)
{
    return page->version.number > other->version.number &&
           page->version.n_bytes_out >= other->version.n_bytes_out &&
           page->since_ms >= other->since_ms;
}

/* Of the objects that the current version does not have. */
static size_t bytes_kept_locked(const struct kinf__watchcache *cache,
                                const struct kinf_snapshot *snapshot) KINF__REQUIRES(cache->lock)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    size_t bytes = 0;

    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        if (kinf_snapshot_get(cache->current, kinf_object_key(object)) != object)
            bytes += kinf_object_size(object);
    }
    return bytes;
}

static const char *check_pages_locked(const struct kinf__watchcache *cache)
    KINF__REQUIRES(cache->lock)
{
    if (cache->n_pages > cache->limits.max_pages)
        return "too many pages";
    for (size_t i = 0; i < cache->n_pages; i++) {
        const struct kinf__page *page = &cache->pages[i];

        if (page->version.lineage != cache->lineage)
            return "a page of another lineage";
        if (page->version.number > cache->version || (i > 0 && !is_younger(page, page - 1)))
            return "pages out of order";
        if (bytes_kept_locked(cache, page->snapshot) >
            cache->n_bytes_out - page->version.n_bytes_out)
            return "a page keeps more in memory than is counted";
    }
    return NULL;
}

static const char *check_versions_locked(const struct kinf__watchcache *cache)
    KINF__REQUIRES(cache->lock)
{
    uint64_t version = 0;

    if (cache->current != NULL)
        version = kinf__watchcache_parse_rv(kinf_snapshot_resource_version(cache->current));
    if (version != cache->version)
        return "the version is not the snapshot's";
    if (cache->store_bytes != (cache->current != NULL ? bytes_of(cache->current) : 0))
        return "wrong count of the store's bytes";
    if (cache->asked < cache->history.first || cache->asked > cache->history.end)
        return "asked about what is not there";
    return check_pages_locked(cache);
}

const char *kinf__watchcache_check(struct kinf__watchcache *cache)
{
    const char *wrong;

    kinf__mutex_lock(&cache->lock);
    wrong = kinf__history_check(&cache->history, cache->version);
    if (wrong == NULL)
        wrong = check_versions_locked(cache);
    if (wrong == NULL)
        wrong = check_cursors_locked(cache);
    kinf__mutex_unlock(&cache->lock);
    return wrong;
}
