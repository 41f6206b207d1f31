/*
 * What a list or a watch list has brought so far: objects collected, those that cannot be decoded
 * or lie outside of the shard left out, and the whole handed to the queue. Neighbours:
 * reflector_list.c and reflector_watch.c feed it. Invariant: `listed`, `initial`, `known` and the
 * decoder's lookup are held from a list's begin until it was handed to the queue or given up.
 */
#include "reflector/reflector_priv.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#define OBJECTS_A_LOOK 256 /* at whether it is to stop */
#define N_LISTED_FIRST 64

/* --- what is left out --- */

static void publish_quarantine(struct kinf__reflector *reflector)
{
    atomic_store_explicit(&reflector->n_quarantined, reflector->quarantine.n_quarantined,
                          memory_order_relaxed);
}

int kinf__reflector_reject(struct kinf__reflector *reflector, const char *key,
                           const struct kinf_error *why, enum kinf__quarantine_verdict *ret_verdict,
                           struct kinf_error *err)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;
    int r =
        kinf__quarantine_fail(&reflector->quarantine, key, kinf__clock_now_ms(), ret_verdict, err);

    if (r < 0 || *ret_verdict == KINF__QUARANTINE_KNOWN)
        return r;
    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_DEBUG, "rejected resource=%s key=%s new=%d error=%s",
              reflector->options.type->resource, key, *ret_verdict == KINF__QUARANTINE_RELIST,
              KINF__QUOTED(why->message));
    if (!reflector->must_relist) {
        reflector->relist_why = *why;
        kinf__error_prefix(&reflector->relist_why, "object %s", key[0] != '\0' ? key : "?");
    }
    if (*ret_verdict == KINF__QUARANTINE_RELIST) {
        reflector->must_relist = true;
        return 0;
    }
    publish_quarantine(reflector);
    if (callbacks->on_quarantine != NULL)
        callbacks->on_quarantine(key, why, callbacks->ctx);
    return 0;
}

void kinf__reflector_note_decoded(struct kinf__reflector *reflector, const char *key)
{
    if (!kinf__quarantine_decoded(&reflector->quarantine, key))
        return;
    publish_quarantine(reflector);
    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_INFO, "object decodes again resource=%s key=%s",
              reflector->options.type->resource, key);
}

static void report_shard(struct kinf__reflector *reflector, const char *key)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;

    reflector->is_shard_ignored = key != NULL;
    if (callbacks->on_shard_ignored != NULL)
        callbacks->on_shard_ignored(key, callbacks->ctx);
}

bool kinf__reflector_is_outside(struct kinf__reflector *reflector, const struct kinf_object *object)
{
    const struct kinf__shard_selector *shard = reflector->options.shard;

    if (shard == NULL || kinf__shard_selector_matches(shard, object))
        return false;
    kinf__reflector_count(&reflector->n_outside_shard, 1);
    if (!reflector->is_shard_ignored)
        report_shard(reflector, kinf_object_key(object));
    return true;
}

/* A list is complete: the server may have learned of shards. */
static void judge_shard(struct kinf__reflector *reflector)
{
    if (reflector->is_shard_ignored && reflector->n_outside_shard == reflector->n_outside_before)
        report_shard(reflector, NULL);
}

/* --- how far it is --- */

void kinf__reflector_note_progress(struct kinf__reflector *reflector)
{
    if (reflector->list_begun_ms == 0)
        return;
    atomic_store_explicit(&reflector->n_list_objects, reflector->n_list_items,
                          memory_order_relaxed);
    atomic_store_explicit(&reflector->list_bytes, reflector->n_list_bytes, memory_order_relaxed);
    atomic_store_explicit(&reflector->list_since_ms, reflector->list_begun_ms,
                          memory_order_release);
}

void kinf__reflector_hide_progress(struct kinf__reflector *reflector)
{
    atomic_store_explicit(&reflector->list_since_ms, 0, memory_order_relaxed);
}

void kinf__reflector_expect_items(struct kinf__reflector *reflector, uint64_t n)
{
    atomic_store_explicit(&reflector->n_list_expected, n, memory_order_relaxed);
}

/* --- what is collected --- */

static void release_items(struct kinf__reflector *reflector, size_t n_kept)
{
    struct kinf__listed *listed = &reflector->listed;

    while (listed->n_items > n_kept)
        kinf_object_unref(listed->items[--listed->n_items]);
}

void kinf__reflector_release_list(struct kinf__reflector *reflector)
{
    release_items(reflector, 0);
    free(reflector->listed.items);
    reflector->listed = (struct kinf__listed){ .items = NULL };
    kinf__initial_events_release(&reflector->initial);
    reflector->decoder.lookup = NULL;
    kinf_snapshot_unref(KINF__TAKE(reflector->known));
    reflector->found = NULL;
    reflector->list_begun_ms = 0;
    kinf__reflector_hide_progress(reflector);
}

/* Who stops is not kept waiting until a large list is given up. */
void kinf__reflector_keep_items(struct kinf__reflector *reflector, size_t n_kept)
{
    if (!kinf__waker_is_set(&reflector->interrupted))
        release_items(reflector, n_kept);
}

void kinf__reflector_drop_list(struct kinf__reflector *reflector)
{
    if (!kinf__waker_is_set(&reflector->interrupted))
        kinf__reflector_release_list(reflector);
}

static int make_room(struct kinf__listed *listed)
{
    size_t size = listed->size == 0 ? N_LISTED_FIRST : listed->size * 2;
    const struct kinf_object **items;

    if (listed->n_items < listed->size)
        return 0;
    items = realloc(listed->items, size * sizeof *items);
    if (items == NULL)
        return KINF_ERR_NO_MEMORY;
    listed->items = items;
    listed->size = size;
    return 0;
}

/* An object of a list, which is new or what the store has. One that was quarantined is released when the
 * list is complete: until then the store has not heard of it. */
static void note_collected(struct kinf__reflector *reflector, const struct kinf_object *object)
{
    if (object != reflector->found)
        kinf__memory_touch_ahead(&reflector->touched, kinf_object_size(object));
}

int kinf__reflector_collect_item(struct kinf__reflector *reflector,
                                 const struct kinf_object *take_object, struct kinf_error *err)
{
    struct kinf__listed *listed = &reflector->listed;

    reflector->n_list_items++;
    if (kinf__reflector_is_outside(reflector, take_object)) {
        kinf_object_unref(take_object);
        return 0;
    }
    if (make_room(listed) < 0) {
        kinf_object_unref(take_object);
        return kinf__error_no_memory(err);
    }
    note_collected(reflector, take_object);
    listed->items[listed->n_items++] = take_object;
    return 0;
}

int kinf__reflector_collect_event(struct kinf__reflector *reflector,
                                  const struct kinf_object *object, bool is_deleted,
                                  struct kinf_error *err)
{
    int r = kinf__initial_events_add(&reflector->initial, object, is_deleted, err);

    if (r < 0)
        return r;
    note_collected(reflector, object);
    return 0;
}

/* --- a list or a watch list --- */

static const struct kinf_object *look_up(const char *key, void *ctx)
{
    struct kinf__reflector *reflector = ctx;

    reflector->found = kinf_snapshot_get(reflector->known, key);
    return kinf_object_ref(reflector->found);
}

void kinf__reflector_begin_list(struct kinf__reflector *reflector)
{
    kinf__reflector_release_list(reflector);
    if (reflector->options.known != NULL) {
        reflector->known = kinf_indexer_snapshot(reflector->options.known);
        /* Of a first list what an earlier page of another has said stays. */
        if (kinf_snapshot_count(reflector->known) != 0)
            kinf__reflector_expect_items(reflector, kinf_snapshot_count(reflector->known));
        reflector->decoder.lookup = look_up;
        reflector->decoder.lookup_ctx = reflector;
    }
    kinf__quarantine_begin_list(&reflector->quarantine);
    reflector->must_relist = false;
    reflector->n_list_bytes = 0;
    reflector->n_list_items = 0;
    reflector->n_outside_before = reflector->n_outside_shard;
    reflector->list_begun_ms = kinf__clock_now_ms();
    kinf__reflector_note_progress(reflector);
    kinf__reflector_count(&reflector->n_lists, 1);
    kinf__reflector_set_phase(reflector, KINF__REFLECTOR_LISTING);
}

/* Makes a list of the events. */
static int take_events(struct kinf__reflector *reflector, struct kinf_error *err)
{
    struct kinf__initial_events *initial = &reflector->initial;
    struct kinf__listed *listed = &reflector->listed;
    int r = kinf__initial_events_settle(initial, reflector->options.stop);

    if (r == KINF_ERR_STOPPED)
        return kinf__error_set(err, r, "stopped");
    if (r < 0)
        return kinf__error_no_memory(err);
    if (initial->n_events == 0)
        return 0;
    listed->items = calloc(initial->n_events, sizeof *listed->items);
    if (listed->items == NULL)
        return kinf__error_no_memory(err);
    listed->size = initial->n_events;
    for (size_t i = 0; i < initial->n_events; i++)
        listed->items[listed->n_items++] = KINF__TAKE(initial->events[i].object);
    initial->n_events = 0;
    return 0;
}

static void log_list(const struct kinf__reflector *reflector, const char *how, const char *rv)
{
    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_INFO,
              "listed resource=%s namespace=%s by=%s objects=%zu rv=%s ms=%" PRId64,
              reflector->options.type->resource, kinf__reflector_namespace(reflector), how,
              reflector->listed.n_items, rv, kinf__clock_now_ms() - reflector->list_begun_ms);
}

int kinf__reflector_finish_list(struct kinf__reflector *reflector, const char *how, const char *rv,
                                struct kinf_error *err)
{
    size_t n_items;
    int r = take_events(reflector, err);

    if (r < 0)
        return r;
    n_items = reflector->listed.n_items;
    r = kinf_deltafifo_replace(reflector->options.fifo, reflector->listed.items,
                               reflector->listed.n_items, rv, err);
    if (r < 0)
        return r;
    atomic_store_explicit(&reflector->last_list_ms, kinf__clock_now_ms(), memory_order_relaxed);
    log_list(reflector, how, rv);
    kinf__reflector_expect_items(reflector, 0);
    kinf__newest_take_list(&reflector->newest, reflector->listed.items, n_items,
                           reflector->options.stop);
    kinf__reflector_drop_list(reflector);
    kinf__quarantine_end_list(&reflector->quarantine, kinf__clock_now_ms());
    reflector->is_behind = false;
    reflector->n_known = reflector->quarantine.n_quarantined == 0 ? (int64_t)n_items : -1;
    judge_shard(reflector);
    publish_quarantine(reflector);
    kinf__reflector_note_contact(reflector, false);
    return 0;
}

/* Where a transform takes the version out, the last one counts: up to that the watch has brought all. */
static bool is_news(const struct kinf__reflector *reflector, const struct kinf_object *item)
{
    const struct kinf_object *known = kinf_snapshot_get(reflector->known, kinf_object_key(item));
    const char *rv = kinf_object_resource_version(item);
    int order;

    if (known != NULL && *kinf_object_resource_version(known) == '\0' &&
        kinf_rv_compare(rv, reflector->policy.rv, &order, NULL) == 0)
        return order > 0;
    return known == NULL || strcmp(kinf_object_resource_version(known), rv) != 0;
}

/* Whether what was listed is not what is stored, by keys and versions. Nobody asks any more when it is
 * to stop. */
bool kinf__reflector_has_news(const struct kinf__reflector *reflector)
{
    const struct kinf__listed *listed = &reflector->listed;

    if (reflector->known == NULL)
        return false; /* untested: an informer's reflector always knows its store */
    for (size_t i = 0; i < listed->n_items; i++) {
        if (is_news(reflector, listed->items[i]) ||
            (i % OBJECTS_A_LOOK == 0 && kinf__waker_is_set(&reflector->interrupted)))
            return true;
    }
    return kinf_snapshot_count(reflector->known) != listed->n_items;
}
