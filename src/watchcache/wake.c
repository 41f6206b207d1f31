/*
 * Whom an event concerns, and calling them. Neighbours: feed.c has new events, cursor.c arms.
 *
 * Cursors that are armed wait in buckets by the value that their selection asks for, so an event is
 * shown to those alone that it may concern: 1,000 watches of a node each cost an event two look-ups.
 * What the selection says beyond that is asked before the wake-up (W6).
 *
 * Invariant: an armed cursor is not concerned by any event before `asked`.
 */
#include "watchcache/watchcache_priv.h"

#include <string.h>

#include "base/clock.h"

/* --- buckets --- */

static uint64_t hash_of(enum kinf__bucket_type type, uint32_t index, struct kinf_str value)
{
    return kinf__hash(value) + ((uint64_t)index * KINF__N_BUCKET_TYPES + type) * 0x9e3779b97f4a7c15;
}

static struct kinf__bucket *find_bucket(const struct kinf__watchcache *cache,
                                        enum kinf__bucket_type type, uint32_t index,
                                        struct kinf_str value)
{
    struct kinf__hmap_node *node;

    if (type == KINF__BUCKET_ALL)
        return cache->everybody;
    node = kinf__hmap_first_with_hash(&cache->buckets, hash_of(type, index, value));
    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__bucket *bucket = KINF__CONTAINER_OF(node, struct kinf__bucket, node);
        const struct kinf_str its_value = { bucket->value, bucket->len };

        if (bucket->type == type && bucket->index == index && kinf_str_equal(its_value, value))
            return bucket;
    }
    return NULL;
}

static struct kinf__bucket *bucket_new(enum kinf__bucket_type type, uint32_t index,
                                       struct kinf_str value)
{
    struct kinf__bucket *bucket = calloc(1, sizeof *bucket + value.len + 1);

    if (bucket == NULL)
        return NULL;
    bucket->type = type;
    bucket->index = index;
    bucket->len = value.len;
    if (value.len != 0)
        memcpy(bucket->value, value.bytes, value.len);
    kinf__list_init(&bucket->armed);
    return bucket;
}

int kinf__bucket_join_locked(struct kinf__watchcache *cache, enum kinf__bucket_type type,
                             uint32_t index, struct kinf_str value,
                             struct kinf__bucket **ret_bucket)
{
    struct kinf__bucket *bucket = find_bucket(cache, type, index, value);

    if (bucket == NULL) {
        bucket = bucket_new(type, index, value);
        if (bucket == NULL)
            return KINF_ERR_NO_MEMORY;
        if (type == KINF__BUCKET_ALL) {
            cache->everybody = bucket;
        } else if (kinf__hmap_insert(&cache->buckets, &bucket->node, hash_of(type, index, value)) <
                   0) {
            free(bucket);
            return KINF_ERR_NO_MEMORY;
        }
        cache->n_buckets[type]++;
    }
    bucket->n_cursors++;
    *ret_bucket = bucket;
    return 0;
}

void kinf__bucket_leave_locked(struct kinf__watchcache *cache, struct kinf__bucket *bucket)
{
    if (--bucket->n_cursors != 0)
        return;
    cache->n_buckets[bucket->type]--;
    if (bucket->type == KINF__BUCKET_ALL)
        cache->everybody = NULL;
    else
        kinf__hmap_remove(&cache->buckets, &bucket->node);
    free(bucket);
}

/* --- waking --- */

void kinf__wake_locked(struct kinf__watchcache *cache, struct kinf__watch_cursor *cursor)
{
    cursor->is_armed = false;
    kinf__list_remove(&cursor->armed_node);
    kinf__list_push_back(&cache->woken, &cursor->armed_node);
}

/* Of one that cannot be told the cursor learns that by itself. */
static bool concerns(const struct kinf__watch_cursor *cursor, const struct kinf__past_event *event)
{
    return kinf__watch_cursor_sees(cursor, event->now) != 0 ||
           kinf__watch_cursor_sees(cursor, event->old) != 0;
}

static void wake_at_locked(struct kinf__watchcache *cache, struct kinf__watch_cursor *cursor,
                           uint64_t number) KINF__REQUIRES(cache->lock)
{
    cursor->next = number;
    kinf__wake_locked(cache, cursor);
}

static void ask_bucket_locked(struct kinf__watchcache *cache, struct kinf__bucket *bucket,
                              uint64_t number) KINF__REQUIRES(cache->lock)
{
    const struct kinf__past_event *event = kinf__history_at(&cache->history, number);

    if (bucket == NULL)
        return;
    KINF__LIST_FOR_EACH_SAFE (node, &bucket->armed) {
        struct kinf__watch_cursor *cursor =
            KINF__LIST_ENTRY(node, struct kinf__watch_cursor, armed_node);

        if (cursor->next <= number && cursor->after < event->version && concerns(cursor, event))
            wake_at_locked(cache, cursor, number);
    }
}

/* But those that `other`, which was asked for, has too; it may be NULL. */
static void ask_values_locked(struct kinf__watchcache *cache, const struct kinf__entry *entry,
                              const struct kinf__entry *other, uint64_t number)
    KINF__REQUIRES(cache->lock)
{
    if (entry == NULL || cache->n_buckets[KINF__BUCKET_INDEX] == 0)
        return;
    for (uint32_t i = 0; i < entry->n_indices; i++) {
        for (uint32_t at = entry->starts[i]; at < entry->starts[i + 1];) {
            struct kinf_str value = kinf__entry_value(entry, at);

            if (other == NULL || !kinf__entry_has_value(other, i, value))
                ask_bucket_locked(cache, find_bucket(cache, KINF__BUCKET_INDEX, i, value), number);
            at += (uint32_t)value.len + 1;
        }
    }
}

static void ask_for_bookmark_locked(struct kinf__watchcache *cache, uint64_t number)
    KINF__REQUIRES(cache->lock)
{
    const struct kinf__past_event *event = kinf__history_at(&cache->history, number);

    KINF__LIST_FOR_EACH (node, &cache->cursors) {
        struct kinf__watch_cursor *cursor = KINF__LIST_ENTRY(node, struct kinf__watch_cursor, node);

        if (cursor->is_armed && cursor->wants_bookmarks && cursor->next <= number &&
            cursor->after < event->version)
            wake_at_locked(cache, cursor, number);
    }
}

static void ask_locked(struct kinf__watchcache *cache, uint64_t number) KINF__REQUIRES(cache->lock)
{
    const struct kinf__past_event *event = kinf__history_at(&cache->history, number);
    const struct kinf__entry *entry = event->now != NULL ? event->now : event->old;
    struct kinf_str key;

    if (entry == NULL) {
        ask_for_bookmark_locked(cache, number);
        return;
    }
    key = kinf__object_key(entry->object);
    ask_bucket_locked(cache, cache->everybody, number);
    if (cache->n_buckets[KINF__BUCKET_KEY] != 0)
        ask_bucket_locked(cache, find_bucket(cache, KINF__BUCKET_KEY, 0, key), number);
    if (cache->n_buckets[KINF__BUCKET_NAMESPACE] != 0 && entry->object->namespace_len != 0) {
        key.len = entry->object->namespace_len + 1U;
        ask_bucket_locked(cache, find_bucket(cache, KINF__BUCKET_NAMESPACE, 0, key), number);
    }
    ask_values_locked(cache, event->now, NULL, number);
    ask_values_locked(cache, event->old, event->now, number);
}

void kinf__wake_concerned(struct kinf__watchcache *cache, uint64_t epoch)
{
    bool goes_on = true;

    while (goes_on) {
        kinf__mutex_lock(&cache->lock);
        goes_on = cache->epoch == epoch && cache->asked < cache->history.end;
        if (goes_on) {
            ask_locked(cache, cache->asked);
            cache->asked++;
        }
        kinf__mutex_unlock(&cache->lock);
    }
}

/* --- calling --- */

/* Of the thread that calls; a waiter may be gone before its callback returns. */
struct kinf__running_call {
    struct kinf__list node;
    const void *whose;
};

static void begin_call_locked(struct kinf__watchcache *cache, struct kinf__running_call *call,
                              const void *whose) KINF__REQUIRES(cache->lock)
{
    call->whose = whose;
    kinf__list_push_back(&cache->running, &call->node);
}

static void end_call_locked(struct kinf__watchcache *cache, struct kinf__running_call *call)
    KINF__REQUIRES(cache->lock)
{
    kinf__list_remove(&call->node);
    kinf__cond_broadcast(&cache->call_ended);
}

static void call_cursor_locked(struct kinf__watchcache *cache) KINF__REQUIRES(cache->lock)
{
    struct kinf__watch_cursor *cursor =
        KINF__LIST_ENTRY(cache->woken.next, struct kinf__watch_cursor, armed_node);
    struct kinf__running_call call;

    kinf__list_remove(&cursor->armed_node);
    cache->counts.n_wakes++;
    begin_call_locked(cache, &call, cursor);
    kinf__mutex_unlock(&cache->lock);
    cursor->wake(cursor->wake_ctx);
    kinf__mutex_lock(&cache->lock);
    end_call_locked(cache, &call);
}

static void call_waiter_locked(struct kinf__watchcache *cache) KINF__REQUIRES(cache->lock)
{
    struct kinf__version_waiter *waiter =
        KINF__LIST_ENTRY(cache->ended.next, struct kinf__version_waiter, node);
    struct kinf__running_call call;

    kinf__list_remove(&waiter->node);
    waiter->is_waiting = false;
    begin_call_locked(cache, &call, waiter);
    kinf__mutex_unlock(&cache->lock);
    waiter->done(waiter, waiter->result, waiter->ctx);
    kinf__mutex_lock(&cache->lock);
    end_call_locked(cache, &call);
}

void kinf__run_calls(struct kinf__watchcache *cache)
{
    kinf__mutex_lock(&cache->lock);
    while (!kinf__list_is_empty(&cache->woken))
        call_cursor_locked(cache);
    while (!kinf__list_is_empty(&cache->ended))
        call_waiter_locked(cache);
    kinf__mutex_unlock(&cache->lock);
}

static bool is_called_locked(const struct kinf__watchcache *cache, const void *whose)
    KINF__REQUIRES(cache->lock)
{
    KINF__LIST_FOR_EACH (node, &cache->running) {
        if (KINF__LIST_ENTRY(node, struct kinf__running_call, node)->whose == whose)
            return true;
    }
    return false;
}

void kinf__await_call_locked(struct kinf__watchcache *cache, const void *whose)
{
    while (is_called_locked(cache, whose))
        kinf__cond_wait_until(&cache->call_ended, &cache->lock, KINF__NEVER_MS);
}
