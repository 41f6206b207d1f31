/*
 * What the sink is told becomes history. Neighbours: history.c keeps it, wake.c finds whom it concerns.
 *
 * The store has changed when this hears of it; readers are told the version before until history
 * and version move together (W1). What cannot become history, for want of memory or because it is
 * out of order, ends it: it begins anew at the new version, and every cursor expires (W5).
 *
 * Invariant: the current snapshot is held, so each write of the store makes another one, and a
 * write that a snapshot has already is told by the snapshot being the same.
 */
#include "watchcache/watchcache_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define N_EVICTED_AT_ONCE 64

/* One write on its way into the history. */
struct group {
    struct kinf_snapshot *before, *after; /* references */
    uint64_t epoch;                       /* of the history that it was made for */
    uint64_t version_before, version;
    struct kinf__past_event *events;
    size_t n_events;
    size_t bytes_in, bytes_out; /* of the store */
    const char *failure;        /* NULL, or why it cannot be history */
    bool is_list;               /* it replaces everything */
};

/* --- dating the changes of a list, which says only what is there, not when it came to be --- */

/* Versions are given from the highest down; what ended and has no version yet waits on a stack, from
 * which each free version takes one. Taking the highest free version for each finds versions for all
 * whenever there are enough. */

struct dated_change {
    const struct kinf__notification *told;
    uint64_t version;
};

/* Something new or changed, and what of the same name it took the place of. */
struct arrival {
    uint64_t version;
    const struct kinf__notification *told;
    const struct kinf__notification *predecessor; /* NULL: none */
};

struct dating {
    struct arrival *arrivals;
    size_t n_arrivals;
    const struct kinf__notification **ended; /* not dated yet */
    size_t n_ended;
    struct dated_change *dated;
    size_t n_left;    /* of `dated`, from the front */
    uint64_t highest; /* version that is free */
};

static bool is_predecessor(const struct kinf__notification *told,
                           const struct kinf__notification *next)
{
    return told->type == KINF__NOTIFY_DELETE && next->type == KINF__NOTIFY_ADD &&
           strcmp(kinf_object_key(told->old), kinf_object_key(next->object)) == 0;
}

/* What ended and what arrived. */
static void sort_out(struct dating *dating, const struct kinf__notification *told, size_t n)
{
    const struct kinf__notification *predecessor = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct kinf__notification *one = &told[i];

        if (one->type != KINF__NOTIFY_DELETE) {
            const char *rv = kinf_object_resource_version(one->object);

            dating->arrivals[dating->n_arrivals++] =
                (struct arrival){ kinf__watchcache_parse_rv(rv), one, predecessor };
            predecessor = NULL;
        } else if (i + 1 < n && is_predecessor(one, &told[i + 1])) {
            predecessor = one;
        } else {
            dating->ended[dating->n_ended++] = one;
        }
    }
}

static int compare(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;

    return (x->version > y->version) - (x->version < y->version);
}

static void put(struct dating *dating, const struct kinf__notification *told, uint64_t version)
{
    dating->dated[--dating->n_left] = (struct dated_change){ told, version };
    dating->highest = version - 1;
}

static void put_ended_above(struct dating *dating, uint64_t version)
{
    while (dating->n_ended > 0 && dating->highest > version)
        put(dating, dating->ended[--dating->n_ended], dating->highest);
}

static int date(struct dating *dating, uint64_t above)
{
    while (dating->n_arrivals > 0) {
        const struct arrival *arrival = &dating->arrivals[--dating->n_arrivals];

        put_ended_above(dating, arrival->version);
        if (arrival->version <= above || arrival->version > dating->highest)
            return KINF_ERR_INVALID;
        put(dating, arrival->told, arrival->version);
        if (arrival->predecessor != NULL)
            dating->ended[dating->n_ended++] = arrival->predecessor;
    }
    put_ended_above(dating, above);
    return dating->n_ended == 0 ? 0 : KINF_ERR_INVALID;
}

/*
 * Gives each change a version above `above` and up to `list_version` that no other one has, and
 * writes them to `ret_dated` (room for all) ascending: what is new or changed with its own; the end
 * of a name that was re-created with the highest that is free below its new beginning; the other
 * ends with the highest that are free. A server gave each of them one, so there are enough. Errors:
 * KINF_ERR_INVALID (not on this server, or the store was not at `above`), KINF_ERR_NO_MEMORY.
 */
static int date_replace(const struct kinf__notification *told, size_t n_told, uint64_t above,
                        uint64_t list_version, struct dated_change *ret_dated)
{
    KINF__AUTO_FREE struct arrival *arrivals = calloc(n_told + 1, sizeof *arrivals);
    KINF__AUTO_FREE const struct kinf__notification **ended = calloc(n_told + 1, sizeof *ended);
    struct dating dating = { .arrivals = arrivals,
                             .ended = ended,
                             .dated = ret_dated,
                             .n_left = n_told,
                             .highest = list_version };

    if (arrivals == NULL || ended == NULL)
        return KINF_ERR_NO_MEMORY;
    sort_out(&dating, told, n_told);
    qsort(arrivals, dating.n_arrivals, sizeof arrivals[0], compare);
    return date(&dating, above);
}

/* --- making events --- */

static struct kinf__entry *entry_of(const struct kinf_snapshot *snapshot,
                                    const struct kinf_object *object)
{
    struct kinf__entry *entry = kinf__tree_get(&snapshot->items, kinf__object_item_key(object));

    return entry != NULL && entry->object == object ? kinf__entry_ref(entry) : NULL;
}

/* False if the store does not have what was told. */
static bool add_event(struct group *group, const struct kinf__notification *told, uint64_t version,
                      int64_t now_ms)
{
    bool is_gone = told->type == KINF__NOTIFY_DELETE;
    struct kinf__past_event *event = &group->events[group->n_events++];

    *event = (struct kinf__past_event){ .version = version, .at_ms = now_ms };
    if (told->old != NULL)
        event->old = entry_of(group->before, told->old);
    if (!is_gone)
        event->now = entry_of(group->after, told->object);
    return (event->old != NULL) == (told->old != NULL) && (event->now != NULL) == !is_gone;
}

/* When a deletion that was missed happened nobody knows, but that it was before what comes next. */
static uint64_t version_of(const struct group *group, const struct kinf__notification *told,
                           size_t n_told, size_t i)
{
    if (!told[i].final_state_unknown)
        return kinf__watchcache_parse_rv(kinf_object_resource_version(told[i].object));
    return i + 1 < n_told ? version_of(group, told, n_told, i + 1) - 1 : group->version;
}

static const char *add_changes(struct group *group, const struct kinf__notification *told,
                               size_t n_told, int64_t now_ms)
{
    uint64_t before = group->version_before;

    for (size_t i = 0; i < n_told; i++) {
        uint64_t version = version_of(group, told, n_told, i);

        if (version <= before || version > group->version)
            return "versions out of order";
        if (!add_event(group, &told[i], version, now_ms))
            return "changes that the store does not have";
        before = version;
    }
    return NULL;
}

static const char *add_replaced(struct group *group, const struct kinf__notification *told,
                                size_t n_told, int64_t now_ms)
{
    KINF__AUTO_FREE struct dated_change *dated = calloc(n_told + 1, sizeof *dated);
    int rc = KINF_ERR_NO_MEMORY;

    if (dated != NULL)
        rc = date_replace(told, n_told, group->version_before, group->version, dated);
    if (rc == KINF_ERR_NO_MEMORY)
        return "out of memory";
    if (rc < 0)
        return "a list with versions out of order";
    for (size_t i = 0; i < n_told; i++) {
        if (!add_event(group, dated[i].told, dated[i].version, now_ms))
            return "changes that the store does not have";
    }
    if (group->version > group->version_before)
        group->events[group->n_events++] =
            (struct kinf__past_event){ .version = group->version, .at_ms = now_ms };
    return NULL;
}

static const char *fill(struct group *group, enum kinf__store_write write,
                        const struct kinf__notification *told, size_t n_told, int64_t now_ms)
{
    if (group->version < group->version_before)
        return group->version != 0 ? "the server went back" : "a resourceVersion is no number";
    if (group->before->set != group->after->set)
        return "indices were added";
    group->events = calloc(n_told + 1, sizeof group->events[0]);
    if (group->events == NULL)
        return "out of memory";
    return write == KINF__WRITE_ALL ? add_replaced(group, told, n_told, now_ms)
                                    : add_changes(group, told, n_told, now_ms);
}

static void count_bytes(struct group *group, const struct kinf__notification *told, size_t n_told)
{
    for (size_t i = 0; i < n_told; i++) {
        if (told[i].type != KINF__NOTIFY_DELETE)
            group->bytes_in += kinf_object_size(told[i].object);
        if (told[i].old != NULL)
            group->bytes_out += kinf_object_size(told[i].old);
    }
}

/* False if there is nothing to do: disabled, or known. */
static bool begin(struct kinf__watchcache *cache, struct group *group)
{
    kinf__mutex_lock(&cache->lock);
    *group = (struct group){ .epoch = cache->epoch, .version_before = cache->version };
    if (cache->current != NULL)
        group->before = kinf_snapshot_ref(cache->current);
    kinf__mutex_unlock(&cache->lock);
    if (group->before == NULL)
        return false;
    group->after = kinf_indexer_snapshot(cache->indexer);
    group->version = kinf__watchcache_parse_rv(kinf_snapshot_resource_version(group->after));
    return group->after != group->before;
}

static void end(struct group *group)
{
    for (size_t i = 0; i < group->n_events; i++)
        kinf__past_event_release(&group->events[i]);
    free(group->events);
    kinf_snapshot_unref(group->before);
    kinf_snapshot_unref(group->after);
}

/* --- publishing --- */

static void append_locked(struct kinf__watchcache *cache, struct group *group)
    KINF__REQUIRES(cache->lock)
{
    for (size_t i = 0; i < group->n_events; i++)
        kinf__history_append(&cache->history, &group->events[i]);
    cache->counts.n_events_total += group->n_events;
    group->n_events = 0;
}

static void note_gap_locked(struct kinf__watchcache *cache, const struct group *group)
    KINF__REQUIRES(cache->lock)
{
    const struct kinf__history_gap gap = { group->version_before, group->version };

    kinf__history_note_gap(&cache->history, gap.before, gap.behind);
    kinf__cursors_pass_gap_locked(cache, gap);
}

/* A server that went back uses versions again, so none of before says any more which state it is; what
 * changed without a new version has used the one that there is. */
static void go_back_locked(struct kinf__watchcache *cache, const struct group *group)
    KINF__REQUIRES(cache->lock)
{
    if (group->version_before > cache->suspect_version)
        cache->suspect_version = group->version_before;
    kinf__lineage_begin_locked(cache);
    if (group->version < group->version_before)
        kinf__waiters_end_all_locked(cache, KINF_ERR_EXPIRED);
}

/* Moves history and version. Returns what of the history is to be released. */
static struct kinf__history publish_locked(struct kinf__watchcache *cache, struct group *group)
    KINF__REQUIRES(cache->lock)
{
    struct kinf_snapshot *before = cache->current;
    struct kinf__history held = { .ring = NULL };

    if (group->failure == NULL && kinf__history_reserve(&cache->history, group->n_events) < 0)
        group->failure = "out of memory";
    cache->current = KINF__TAKE(group->after);
    cache->version = group->version;
    cache->n_bytes_out += group->bytes_out;
    cache->store_bytes += group->bytes_in - group->bytes_out;
    if (group->failure != NULL && group->version <= group->version_before)
        go_back_locked(cache, group);
    if (group->failure == NULL)
        append_locked(cache, group);
    if (group->failure == NULL && group->is_list)
        note_gap_locked(cache, group);
    if (group->failure != NULL)
        held = kinf__watchcache_restart_locked(cache, group->failure);
    kinf__waiters_note_version_locked(cache);
    kinf_snapshot_unref(before);
    return held;
}

/* The epoch of the history that it is part of. */
static uint64_t publish(struct kinf__watchcache *cache, struct group *group)
{
    struct kinf__history held = { .ring = NULL };
    uint64_t epoch;

    kinf__mutex_lock(&cache->lock);
    /* Else it was disabled meanwhile, and if it was enabled again it began with this write. */
    if (cache->epoch == group->epoch)
        held = publish_locked(cache, group);
    epoch = cache->epoch;
    kinf__mutex_unlock(&cache->lock);
    kinf__history_release(&held);
    return epoch;
}

/* --- what falls out --- */

static bool take_outworn_locked(struct kinf__watchcache *cache, int64_t now_ms,
                                struct kinf__past_event *ret_event) KINF__REQUIRES(cache->lock)
{
    struct kinf__history *history = &cache->history;
    bool is_too_much = history->bytes > cache->limits.history_bytes;

    /* Nobody was asked about the others yet. */
    if (history->first == cache->asked)
        return false;
    if (!is_too_much &&
        now_ms - kinf__history_at(history, history->first)->at_ms < cache->limits.history_age_ms)
        return false;
    *ret_event = kinf__history_take_oldest(history);
    cache->counts.n_evicted_for_bytes += is_too_much;
    cache->counts.n_evicted_for_age += !is_too_much;
    return true;
}

static size_t take_outworn(struct kinf__watchcache *cache, int64_t now_ms,
                           struct kinf__past_event *events, size_t n_max)
{
    size_t n = 0;

    kinf__mutex_lock(&cache->lock);
    while (n < n_max && take_outworn_locked(cache, now_ms, &events[n]))
        n++;
    kinf__mutex_unlock(&cache->lock);
    return n;
}

static void evict(struct kinf__watchcache *cache, int64_t now_ms)
{
    struct kinf__past_event events[N_EVICTED_AT_ONCE];
    size_t n;

    do {
        n = take_outworn(cache, now_ms, events, N_EVICTED_AT_ONCE);
        for (size_t i = 0; i < n; i++)
            kinf__past_event_release(&events[i]);
    } while (n == N_EVICTED_AT_ONCE);
}

/* What time and limits take. */
static void forget(struct kinf__watchcache *cache, int64_t now_ms)
{
    evict(cache, now_ms);
    kinf__mutex_lock(&cache->lock);
    kinf__pages_expire_locked(cache, now_ms);
    kinf__history_shrink(&cache->history);
    kinf__mutex_unlock(&cache->lock);
}

/* --- the sink --- */

static void on_write(enum kinf__store_write write, const struct kinf__notification *told,
                     size_t n_told, int64_t now_ms, void *ctx)
{
    struct kinf__watchcache *cache = ctx;
    struct group group;

    if (begin(cache, &group)) {
        count_bytes(&group, told, n_told);
        /* Before the first list there is nothing that could have changed. */
        group.is_list = write == KINF__WRITE_ALL;
        if (group.version_before != 0)
            group.failure = fill(&group, write, told, n_told, now_ms);
        else
            group.failure = "";
        kinf__wake_concerned(cache, publish(cache, &group));
        forget(cache, now_ms);
        kinf__run_calls(cache);
    }
    end(&group);
}

struct kinf__sink kinf__watchcache_sink(struct kinf__watchcache *cache)
{
    return (struct kinf__sink){ on_write, cache };
}

/* --- time --- */

static int64_t sooner(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* When something will be too old: what comes after now, not before either age. */
static int64_t too_old_ms_locked(const struct kinf__watchcache *cache, int64_t now_ms)
    KINF__REQUIRES(cache->lock)
{
    const struct kinf__watchcache_limits *limits = &cache->limits;
    const struct kinf__history *history = &cache->history;
    int64_t event_ms = now_ms, page_ms = now_ms;

    if (history->first != history->end)
        event_ms = kinf__history_at(history, history->first)->at_ms;
    if (cache->n_pages != 0)
        page_ms = cache->pages[0].since_ms;
    return sooner(kinf__clock_add_ms(event_ms, limits->history_age_ms),
                  kinf__clock_add_ms(page_ms, limits->page_age_ms));
}

int64_t kinf__watchcache_tick(struct kinf__watchcache *cache, int64_t now_ms)
{
    int64_t due_ms;

    forget(cache, now_ms);
    kinf__mutex_lock(&cache->lock);
    due_ms =
        sooner(too_old_ms_locked(cache, now_ms), kinf__waiters_note_time_locked(cache, now_ms));
    kinf__cursors_bound_stalled_locked(cache);
    kinf__mutex_unlock(&cache->lock);
    kinf__run_calls(cache);
    return kinf__cursors_hold_much(cache) ? now_ms : due_ms;
}
