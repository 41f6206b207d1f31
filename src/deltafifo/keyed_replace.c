/*
 * Replace by key: a whole list against queue, item in process and known objects. Neighbours:
 * keyed.c.
 *
 * Invariant: all or nothing. Everything that can fail happens while staging: the items that will be
 * queued are built beside the queue, and room is made in those that will grow. Committing only
 * links, unless the queue is aborted meanwhile: then nothing in it counts any more.
 */
#include "deltafifo/deltafifo_priv.h"

#include <string.h>

/* What a Replace is going to queue. */
struct staged {
    struct kinf_deltafifo *fifo;
    struct kinf__hmap items; /* by key, and stale once committed */
    struct kinf__list queue; /* the same in order */
};

static void staged_release(struct staged *staged)
{
    kinf__fifo_items_free(&staged->queue);
    kinf__hmap_release(&staged->items);
}

static bool is_stopped(const struct staged *staged)
{
    return kinf__stop_is_set(&staged->fifo->stop);
}

static struct kinf__fifo_item *staged_find(const struct staged *staged, const char *key,
                                           uint64_t hash)
{
    return kinf__fifo_item_find(&staged->items, key, hash);
}

/* To free a large list would hold up a stop. */
static void put_aside(struct staged *staged)
{
    kinf__mutex_lock(&staged->fifo->lock);
    kinf__list_append(&staged->fifo->keyed.dropped, &staged->queue);
    kinf__mutex_unlock(&staged->fifo->lock);
}

static int stage_new(struct staged *staged, const struct kinf_delta *delta, uint64_t hash)
{
    struct kinf__fifo_item *item = kinf__fifo_item_new(delta);

    if (item == NULL)
        return KINF_ERR_NO_MEMORY;
    if (kinf__hmap_insert(&staged->items, &item->in_map, hash) < 0) {
        kinf__fifo_item_free(item);
        return KINF_ERR_NO_MEMORY;
    }
    kinf__list_push_back(&staged->queue, &item->in_queue);
    return 0;
}

static int stage_listed(struct staged *staged, const struct kinf_object *object)
{
    const struct kinf_delta delta = {
        .type = staged->fifo->options.replace_as_sync ? KINF_DELTA_SYNC : KINF_DELTA_REPLACED,
        .object = object,
    };
    const char *key = kinf_object_key(object);
    uint64_t hash = kinf__fifo_hash(key);
    struct kinf__fifo_item *item = staged_find(staged, key, hash);

    if (item == NULL)
        return stage_new(staged, &delta, hash);
    if (kinf__fifo_item_reserve(item, 1) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__fifo_item_push(item, &delta);
    return 0;
}

static int stage_tombstone(struct staged *staged, const struct kinf_object *object, uint64_t hash)
{
    const struct kinf_delta tombstone = { .type = KINF_DELTA_DELETED,
                                          .final_state_unknown = true,
                                          .object = object };

    return stage_new(staged, &tombstone, hash);
}

/* Room in each queued item for what committing will append. */
static int reserve_queued_locked(struct staged *staged) KINF__REQUIRES(staged->fifo->lock)
{
    KINF__LIST_FOR_EACH (node, &staged->fifo->keyed.queue) {
        struct kinf__fifo_item *item = KINF__LIST_ENTRY(node, struct kinf__fifo_item, in_queue);
        const struct kinf__fifo_item *twin =
            staged_find(staged, kinf__fifo_item_key(item), item->in_map.hash);

        if (is_stopped(staged))
            return KINF_ERR_STOPPED;
        if (kinf__fifo_item_reserve(item, twin != NULL ? twin->n_deltas : 1) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* What is in process will be in the store, unless its newest delta takes it out again. */
static int stage_in_process_locked(struct staged *staged) KINF__REQUIRES(staged->fifo->lock)
{
    struct kinf_deltafifo *fifo = staged->fifo;
    const struct kinf_delta *newest;
    const char *key;
    uint64_t hash;

    if (fifo->keyed.in_process == NULL)
        return 0;
    newest = kinf__fifo_item_newest(fifo->keyed.in_process);
    key = kinf_object_key(newest->object);
    hash = kinf__fifo_hash(key);
    if (newest->type == KINF_DELTA_DELETED || staged_find(staged, key, hash) != NULL ||
        kinf__fifo_item_find(&fifo->keyed.items, key, hash) != NULL)
        return 0;
    return stage_tombstone(staged, newest->object, hash);
}

/* The lock is held by replace, across the walk that calls this. */
static int stage_known(const struct kinf_object *object, void *ctx) KINF__NO_TSA
{
    struct staged *staged = ctx;
    const char *key = kinf_object_key(object);
    uint64_t hash = kinf__fifo_hash(key);

    if (is_stopped(staged))
        return KINF_ERR_STOPPED;
    if (staged_find(staged, key, hash) != NULL ||
        kinf__fifo_item_find(&staged->fifo->keyed.items, key, hash) != NULL ||
        kinf__keyed_in_process_locked(staged->fifo, key))
        return 0;
    return stage_tombstone(staged, object, hash);
}

static int stage_locked(struct staged *staged) KINF__REQUIRES(staged->fifo->lock)
{
    const struct kinf_known_objects *known = &staged->fifo->options.known;
    int rc = reserve_queued_locked(staged);

    if (rc == 0)
        rc = stage_in_process_locked(staged);
    if (rc == 0 && known->each != NULL)
        rc = known->each(stage_known, staged, known->ctx);
    return rc == 0 ? kinf__hmap_reserve(&staged->fifo->keyed.items, staged->items.n_nodes) : rc;
}

static void bury_unlisted_locked(struct staged *staged) KINF__REQUIRES(staged->fifo->lock)
{
    KINF__LIST_FOR_EACH (node, &staged->fifo->keyed.queue) {
        struct kinf__fifo_item *item = KINF__LIST_ENTRY(node, struct kinf__fifo_item, in_queue);
        const struct kinf_delta *newest = kinf__fifo_item_newest(item);
        const struct kinf_delta tombstone = { .type = KINF_DELTA_DELETED,
                                              .final_state_unknown = true,
                                              .object = newest->object };

        if (is_stopped(staged))
            return;
        /* A Deleted behind a Deleted would collapse into what is there. */
        if (newest->type != KINF_DELTA_DELETED &&
            staged_find(staged, kinf__fifo_item_key(item), item->in_map.hash) == NULL)
            kinf__keyed_append_locked(staged->fifo, item, &tombstone);
    }
}

/* The deltas of keys that are queued already are copied; their staged items stay behind, to be
 * freed outside the lock. Nothing is dropped: what is listed is never a Deleted. */
static void link_staged_locked(struct staged *staged) KINF__REQUIRES(staged->fifo->lock)
{
    KINF__LIST_FOR_EACH_SAFE (node, &staged->queue) {
        struct kinf__fifo_item *item = KINF__LIST_ENTRY(node, struct kinf__fifo_item, in_queue);
        uint64_t hash = item->in_map.hash;
        struct kinf__fifo_item *queued =
            kinf__fifo_item_find(&staged->fifo->keyed.items, kinf__fifo_item_key(item), hash);

        if (is_stopped(staged))
            return;
        if (queued == NULL) {
            kinf__list_remove(node);
            kinf__keyed_link_locked(staged->fifo, item, hash);
            continue;
        }
        for (size_t i = 0; i < item->n_deltas; i++)
            kinf__keyed_append_locked(staged->fifo, queued, &item->deltas[i]);
    }
}

/* A server that went back counts anew: what was received before says nothing about it. */
static void forget_higher_versions_locked(struct staged *staged, const char *rv)
    KINF__REQUIRES(staged->fifo->lock)
{
    struct kinf_deltafifo *fifo = staged->fifo;
    int order;

    if (kinf_rv_compare(rv, fifo->keyed.last_rv, &order, NULL) < 0 || order >= 0)
        return;
    fifo->keyed.last_rv[0] = '\0';
    if (fifo->keyed.in_process != NULL)
        fifo->keyed.in_process->rv_before[0] = '\0';
    KINF__LIST_FOR_EACH (node, &fifo->keyed.queue)
        KINF__LIST_ENTRY(node, struct kinf__fifo_item, in_queue)->rv_before[0] = '\0';
}

static int commit_locked(struct staged *staged, const char *rv) KINF__REQUIRES(staged->fifo->lock)
{
    struct kinf_deltafifo *fifo = staged->fifo;

    forget_higher_versions_locked(staged, rv);
    bury_unlisted_locked(staged);
    link_staged_locked(staged);
    if (is_stopped(staged)) {
        kinf__fifo_abort_locked(staged->fifo);
        return KINF_ERR_STOPPED;
    }
    memcpy(fifo->keyed.last_rv, rv, strlen(rv) + 1);
    /* Each queued key is in the list or got a tombstone, so all are of the initial population. */
    kinf__fifo_populate_locked(staged->fifo);
    fifo->has_news = true;
    return 0;
}

static int replace(struct staged *staged, const struct kinf_object *const *objects,
                   size_t n_objects, const char *rv)
{
    int rc = 0;

    for (size_t i = 0; i < n_objects && rc == 0; i++)
        rc = is_stopped(staged) ? KINF_ERR_STOPPED : stage_listed(staged, objects[i]);
    if (rc < 0)
        return rc;
    kinf__mutex_lock(&staged->fifo->lock);
    rc = kinf__fifo_wait_for_room_locked(staged->fifo);
    if (rc == 0)
        rc = stage_locked(staged);
    if (rc == 0)
        rc = commit_locked(staged, rv);
    kinf__fifo_unlock(staged->fifo);
    return rc;
}

int kinf__keyed_replace(struct kinf_deltafifo *fifo, const struct kinf_object *const *objects,
                        size_t n_objects, const char *rv)
{
    struct staged staged = { .fifo = fifo, .items = KINF__HMAP_INIT };
    int rc;

    kinf__list_init(&staged.queue);
    rc = replace(&staged, objects, n_objects, rv);
    if (rc == KINF_ERR_STOPPED)
        put_aside(&staged);
    staged_release(&staged);
    return rc;
}
