/*
 * Versions of the store for readers: the current one, older ones that are held for lists in pages,
 * and those who wait for one to come. Neighbours: feed.c moves the current one.
 *
 * What a held version keeps in memory is told by what left the store since it was the current one:
 * the oldest has all that the younger ones have, so that is their sum, too. Nodes of the tree are not
 * counted, but bounded by the number of versions held.
 */
#include "watchcache/watchcache_priv.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"

/* What a waiter's result is while it waits. */
#define STILL_WAITING 1

uint64_t kinf__watchcache_parse_rv(const char *rv)
{
    uint64_t version = 0;

    if (rv == NULL || rv[0] == '0')
        return 0;
    for (; *rv >= '0' && *rv <= '9'; rv++) {
        uint64_t digit = (uint64_t)(*rv - '0');

        if (version > (UINT64_MAX - digit) / 10)
            return 0;
        version = version * 10 + digit;
    }
    return *rv == '\0' ? version : 0;
}

/* --- the current one --- */

uint64_t kinf__watchcache_version(struct kinf__watchcache *cache)
{
    uint64_t version;

    kinf__mutex_lock(&cache->lock);
    version = cache->version;
    kinf__mutex_unlock(&cache->lock);
    return version;
}

static struct kinf__store_version current_version_locked(const struct kinf__watchcache *cache)
    KINF__REQUIRES(cache->lock)
{
    return (struct kinf__store_version){ cache->version, cache->lineage, cache->n_bytes_out };
}

struct kinf_snapshot *kinf__watchcache_snapshot(struct kinf__watchcache *cache,
                                                struct kinf__store_version *ret_version)
{
    struct kinf_snapshot *snapshot = NULL;

    kinf__mutex_lock(&cache->lock);
    if (cache->version != 0) {
        snapshot = kinf_snapshot_ref(cache->current);
        if (ret_version != NULL)
            *ret_version = current_version_locked(cache);
    }
    kinf__mutex_unlock(&cache->lock);
    return snapshot;
}

/* --- held ones --- */

static struct kinf__page *find_page_locked(const struct kinf__watchcache *cache, uint64_t number)
    KINF__REQUIRES(cache->lock)
{
    for (size_t i = 0; i < cache->n_pages; i++) {
        if (cache->pages[i].version.number == number)
            return &cache->pages[i];
    }
    return NULL;
}

static struct kinf_snapshot *take_page_locked(struct kinf__watchcache *cache, size_t place)
    KINF__REQUIRES(cache->lock)
{
    struct kinf__page *page = &cache->pages[place];
    struct kinf_snapshot *snapshot = page->snapshot;

    cache->n_pages--;
    memmove(page, page + 1, (cache->n_pages - place) * sizeof *page);
    return snapshot;
}

static struct kinf_snapshot *give_up_page_locked(struct kinf__watchcache *cache, size_t place)
    KINF__REQUIRES(cache->lock)
{
    if (cache->pages[place].version.number > cache->given_up_version)
        cache->given_up_version = cache->pages[place].version.number;
    return take_page_locked(cache, place);
}

/* Of those who ask for a first page many never ask for the second. */
static size_t least_read_page_locked(const struct kinf__watchcache *cache)
    KINF__REQUIRES(cache->lock)
{
    size_t least = 0;

    for (size_t i = 1; i < cache->n_pages; i++) {
        if (cache->pages[i].last_read < cache->pages[least].last_read)
            least = i;
    }
    return least;
}

size_t kinf__pages_bytes_locked(const struct kinf__watchcache *cache)
{
    return cache->n_pages != 0 ? (size_t)(cache->n_bytes_out - cache->pages[0].version.n_bytes_out)
                               : 0;
}

/* Takes one out that has to go. Only without the oldest are there fewer bytes; of too many any may
 * go. */
static struct kinf_snapshot *take_outworn_page_locked(struct kinf__watchcache *cache,
                                                      int64_t now_ms) KINF__REQUIRES(cache->lock)
{
    bool are_too_many = cache->n_pages > cache->limits.max_pages;
    bool is_too_much = kinf__pages_bytes_locked(cache) > cache->limits.page_bytes;

    if (cache->n_pages == 0)
        return NULL;
    if (!are_too_many && !is_too_much &&
        now_ms - cache->pages[0].since_ms < cache->limits.page_age_ms)
        return NULL;
    cache->counts.n_pages_dropped += are_too_many || is_too_much;
    return give_up_page_locked(cache, are_too_many ? least_read_page_locked(cache) : 0);
}

/* Giving up a snapshot is short: what it alone held goes to the indexer's graveyard. */
void kinf__pages_expire_locked(struct kinf__watchcache *cache, int64_t now_ms)
{
    struct kinf_snapshot *snapshot;

    while ((snapshot = take_outworn_page_locked(cache, now_ms)) != NULL)
        kinf_snapshot_unref(snapshot);
}

void kinf__lineage_begin_locked(struct kinf__watchcache *cache)
{
    static _Atomic(uint64_t) last; /* of the process: a cache takes another one's place */

    cache->lineage = atomic_fetch_add(&last, 1) + 1;
    cache->given_up_version = 0;
    while (cache->n_pages > 0)
        kinf_snapshot_unref(take_page_locked(cache, cache->n_pages - 1));
}

/* One that was given up would begin its time anew. */
static bool may_hold_locked(const struct kinf__watchcache *cache,
                            const struct kinf_snapshot *snapshot,
                            const struct kinf__store_version *version) KINF__REQUIRES(cache->lock)
{
    return version->lineage == cache->lineage &&
           (snapshot == cache->current || version->number > cache->given_up_version) &&
           find_page_locked(cache, version->number) == NULL;
}

/* It may have been read for long, and be older than what is held already. */
static void insert_page_locked(struct kinf__watchcache *cache, struct kinf_snapshot *snapshot,
                               const struct kinf__store_version *version, int64_t now_ms)
    KINF__REQUIRES(cache->lock)
{
    struct kinf__page *place = &cache->pages[cache->n_pages++];

    for (; place > cache->pages && place[-1].version.number > version->number; place--) {
        place[0] = place[-1];
        if (place[0].since_ms < now_ms)
            now_ms = place[0].since_ms;
    }
    *place =
        (struct kinf__page){ kinf_snapshot_ref(snapshot), *version, now_ms, ++cache->n_page_reads };
}

void kinf__watchcache_hold(struct kinf__watchcache *cache, struct kinf_snapshot *snapshot,
                           const struct kinf__store_version *version, int64_t now_ms)
{
    kinf__mutex_lock(&cache->lock);
    if (may_hold_locked(cache, snapshot, version)) {
        insert_page_locked(cache, snapshot, version, now_ms);
        kinf__pages_expire_locked(cache, now_ms);
    }
    kinf__mutex_unlock(&cache->lock);
}

/* Whether a number stands for one state alone. */
static bool is_certain_locked(const struct kinf__watchcache *cache,
                              const struct kinf__store_version *version) KINF__REQUIRES(cache->lock)
{
    return version->lineage != 0 ? version->lineage == cache->lineage
                                 : version->number > cache->suspect_version;
}

/* NULL: there is none. */
static struct kinf_snapshot *find_snapshot_locked(struct kinf__watchcache *cache,
                                                  struct kinf__store_version *version)
    KINF__REQUIRES(cache->lock)
{
    struct kinf__page *page = find_page_locked(cache, version->number);

    if (!is_certain_locked(cache, version) || (page == NULL && version->number != cache->version))
        return NULL;
    if (page == NULL) {
        *version = current_version_locked(cache);
        return kinf_snapshot_ref(cache->current);
    }
    page->last_read = ++cache->n_page_reads;
    *version = page->version;
    return kinf_snapshot_ref(page->snapshot);
}

int kinf__watchcache_snapshot_at(struct kinf__watchcache *cache,
                                 struct kinf__store_version *version,
                                 struct kinf_snapshot **ret_snapshot, struct kinf_error *err)
{
    struct kinf_snapshot *snapshot;
    uint64_t current;

    kinf__mutex_lock(&cache->lock);
    current = cache->version;
    snapshot = find_snapshot_locked(cache, version);
    kinf__mutex_unlock(&cache->lock);
    if (snapshot != NULL) {
        *ret_snapshot = snapshot;
        return 0;
    }
    if (version->number > current)
        return kinf__error_set(err, KINF_ERR_RV_TOO_LARGE,
                               "Too large resource version: %llu, current: %llu",
                               (unsigned long long)version->number, (unsigned long long)current);
    return kinf__error_set(err, KINF_ERR_EXPIRED, "version %llu is not held",
                           (unsigned long long)version->number);
}

/* --- waiters --- */

static void end_wait_locked(struct kinf__watchcache *cache, struct kinf__version_waiter *waiter,
                            int result) KINF__REQUIRES(cache->lock)
{
    waiter->result = result;
    kinf__list_remove(&waiter->node);
    kinf__list_push_back(&cache->ended, &waiter->node);
    cache->n_waiters--;
}

void kinf__waiters_note_version_locked(struct kinf__watchcache *cache)
{
    if (cache->version < cache->lowest_awaited)
        return;
    cache->lowest_awaited = UINT64_MAX;
    KINF__LIST_FOR_EACH_SAFE (node, &cache->waiters) {
        struct kinf__version_waiter *waiter =
            KINF__LIST_ENTRY(node, struct kinf__version_waiter, node);

        if (waiter->version <= cache->version)
            end_wait_locked(cache, waiter, 0);
        else if (waiter->version < cache->lowest_awaited)
            cache->lowest_awaited = waiter->version;
    }
}

int64_t kinf__waiters_note_time_locked(struct kinf__watchcache *cache, int64_t now_ms)
{
    int64_t due_ms = KINF__NEVER_MS;

    KINF__LIST_FOR_EACH_SAFE (node, &cache->waiters) {
        struct kinf__version_waiter *waiter =
            KINF__LIST_ENTRY(node, struct kinf__version_waiter, node);

        if (waiter->deadline_ms <= now_ms)
            end_wait_locked(cache, waiter, KINF_ERR_TIMEOUT);
        else if (waiter->deadline_ms < due_ms)
            due_ms = waiter->deadline_ms;
    }
    return due_ms;
}

void kinf__waiters_end_all_locked(struct kinf__watchcache *cache, int result)
{
    KINF__LIST_FOR_EACH_SAFE (node, &cache->waiters)
        end_wait_locked(cache, KINF__LIST_ENTRY(node, struct kinf__version_waiter, node), result);
    cache->lowest_awaited = UINT64_MAX;
}

bool kinf__watchcache_wait(struct kinf__watchcache *cache, struct kinf__version_waiter *waiter)
{
    bool is_reached;

    kinf__mutex_lock(&cache->lock);
    is_reached = cache->version != 0 && waiter->version <= cache->version;
    waiter->is_waiting = !is_reached;
    if (!is_reached) {
        waiter->result = STILL_WAITING;
        kinf__list_push_back(&cache->waiters, &waiter->node);
        cache->n_waiters++;
        if (waiter->version < cache->lowest_awaited)
            cache->lowest_awaited = waiter->version;
        kinf__watchcache_expect(cache, waiter->deadline_ms);
    }
    kinf__mutex_unlock(&cache->lock);
    return is_reached;
}

bool kinf__watchcache_cancel_wait(struct kinf__watchcache *cache,
                                  struct kinf__version_waiter *waiter)
{
    bool was_waiting;

    kinf__mutex_lock(&cache->lock);
    was_waiting = waiter->is_waiting;
    if (was_waiting) {
        waiter->is_waiting = false;
        kinf__list_remove(&waiter->node);
        cache->n_waiters -= waiter->result == STILL_WAITING;
    }
    kinf__await_call_locked(cache, waiter);
    kinf__mutex_unlock(&cache->lock);
    return was_waiting;
}
