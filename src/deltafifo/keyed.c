/*
 * The queue by key: items that gather the deltas of one key each. Neighbours: deltafifo.c calls it.
 *
 * Invariants: a key is in the map exactly if it is in the queue; an item in process is in neither,
 * but still answers for its key. Items leave in the order of arrival, so the oldest one's rv_before
 * is the lower bound of what was processed. Objects are released outside the lock. An item's `deltas`
 * points to its inline room or to an allocation of its own, so an item never moves.
 */
#include "deltafifo/deltafifo_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* --- items --- */

static struct kinf__fifo_item *item_of(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct kinf__fifo_item, in_queue);
}

/* There is room for it; the object gains a reference. */
static void item_push(struct kinf__fifo_item *item, const struct kinf_delta *delta)
{
    item->deltas[item->n_deltas] = *delta;
    kinf_object_ref(delta->object);
    item->n_deltas++;
}

/* An item with one delta, whose object gains a reference; NULL when out of memory. */
static struct kinf__fifo_item *item_new(const struct kinf_delta *first)
{
    struct kinf__fifo_item *item = malloc(sizeof *item);

    if (item == NULL)
        return NULL;
    kinf__list_init(&item->in_queue);
    item->deltas = item->inlined;
    item->n_deltas = 0;
    item->n_allocated = KINF__FIFO_N_INLINE;
    item->rv_before[0] = '\0';
    item_push(item, first);
    return item;
}

/* Gives up the objects too; never under the lock. */
static void item_free(struct kinf__fifo_item *item)
{
    if (item == NULL)
        return;
    for (size_t i = 0; i < item->n_deltas; i++)
        kinf_object_unref(item->deltas[i].object);
    if (item->deltas != item->inlined)
        free(item->deltas);
    free(item);
}

/* Frees every item of a list that nobody else links. */
static void items_free(struct kinf__list *items)
{
    KINF__LIST_FOR_EACH_SAFE (node, items)
        item_free(item_of(node));
    kinf__list_init(items);
}

/* Room for `n_more` deltas, which item_push() then adds without a failure. Errors:
 * KINF_ERR_NO_MEMORY. */
static int item_reserve(struct kinf__fifo_item *item, size_t n_more)
{
    size_t n_needed = item->n_deltas + n_more, n_larger = item->n_allocated * 2;
    struct kinf_delta *larger;

    if (n_needed <= item->n_allocated)
        return 0;
    if (n_larger < n_needed)
        n_larger = n_needed;
    larger = reallocarray(item->deltas != item->inlined ? item->deltas : NULL, n_larger,
                          sizeof(struct kinf_delta));
    if (larger == NULL)
        return KINF_ERR_NO_MEMORY;
    if (item->deltas == item->inlined)
        memcpy(larger, item->inlined, item->n_deltas * sizeof(struct kinf_delta));
    item->deltas = larger;
    item->n_allocated = n_larger;
    return 0;
}

const char *kinf__fifo_item_key(const struct kinf__fifo_item *item)
{
    return kinf_object_key(item->deltas[0].object);
}

static struct kinf_delta *item_newest(struct kinf__fifo_item *item)
{
    return &item->deltas[item->n_deltas - 1];
}

size_t kinf__fifo_item_bytes(const struct kinf__fifo_item *item)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < item->n_deltas; i++)
        n_bytes += kinf_object_size(item->deltas[i].object);
    return n_bytes;
}

/* The item of a key in a map of items; NULL if there is none. */
static struct kinf__fifo_item *item_find(const struct kinf__hmap *map, const char *key,
                                         uint64_t hash)
{
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(map, hash);

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__fifo_item *item = KINF__CONTAINER_OF(node, struct kinf__fifo_item, in_map);

        if (strcmp(kinf__fifo_item_key(item), key) == 0)
            return item;
    }
    return NULL;
}

/* --- the queue --- */

/* Whether the consumer has this key in its hands. */
static bool is_in_process_locked(const struct kinf_deltafifo *fifo, const char *key)
    KINF__REQUIRES(fifo->lock)
{
    return fifo->keyed.in_process != NULL &&
           strcmp(kinf__fifo_item_key(fifo->keyed.in_process), key) == 0;
}

/* Puts a new item at the tail; the map must have room for it. */
static void link_locked(struct kinf_deltafifo *fifo, struct kinf__fifo_item *item, uint64_t hash)
    KINF__REQUIRES(fifo->lock)
{
    memcpy(item->rv_before, fifo->keyed.last_rv, sizeof item->rv_before);
    kinf__hmap_insert_reserved(&fifo->keyed.items, &item->in_map, hash);
    kinf__list_push_back(&fifo->keyed.queue, &item->in_queue);
    fifo->n_bytes += kinf__fifo_item_bytes(item);
}

/* Appends to an item that has room for it, and collapses the last two Deleted. The object that was
 * dropped, if any, is returned for the caller to give up outside the lock. */
static const struct kinf_object *append_locked(struct kinf_deltafifo *fifo,
                                               struct kinf__fifo_item *item,
                                               const struct kinf_delta *delta)
    KINF__REQUIRES(fifo->lock)
{
    struct kinf_delta *newest = item_newest(item);
    const struct kinf_object *dropped = NULL;
    bool both_deleted = newest->type == KINF_DELTA_DELETED && delta->type == KINF_DELTA_DELETED;

    /* Of two deletions the one that was seen says more than the one that was concluded. */
    if (both_deleted && !newest->final_state_unknown)
        return NULL;
    if (both_deleted) {
        dropped = newest->object;
        fifo->n_bytes -= kinf_object_size(dropped);
        item->n_deltas--;
    }
    item_push(item, delta);
    fifo->n_bytes += kinf_object_size(delta->object);
    return dropped;
}

static int init(struct kinf_deltafifo *fifo)
{
    kinf__list_init(&fifo->keyed.queue);
    kinf__list_init(&fifo->keyed.dropped);
    return 0;
}

static void release(struct kinf_deltafifo *fifo)
{
    items_free(&fifo->keyed.queue);
    items_free(&fifo->keyed.dropped);
    item_free(fifo->keyed.in_process);
    kinf__hmap_release(&fifo->keyed.items);
}

static int add_item_locked(struct kinf_deltafifo *fifo, const struct kinf_delta *delta,
                           uint64_t hash) KINF__REQUIRES(fifo->lock)
{
    struct kinf__fifo_item *item;

    if (kinf__hmap_reserve(&fifo->keyed.items, 1) < 0)
        return KINF_ERR_NO_MEMORY;
    item = item_new(delta);
    if (item == NULL)
        return KINF_ERR_NO_MEMORY;
    link_locked(fifo, item, hash);
    fifo->has_news = true;
    return 0;
}

static bool is_known_locked(struct kinf_deltafifo *fifo, const char *key) KINF__REQUIRES(fifo->lock)
{
    const struct kinf_known_objects *known = &fifo->options.known;

    return is_in_process_locked(fifo, key) ||
           (known->has_key != NULL && known->has_key(key, known->ctx));
}

static int append_or_add_locked(struct kinf_deltafifo *fifo, const struct kinf_delta *delta,
                                uint64_t hash, const struct kinf_object **ret_dropped)
    KINF__REQUIRES(fifo->lock)
{
    const char *key = kinf_object_key(delta->object);
    struct kinf__fifo_item *item = item_find(&fifo->keyed.items, key, hash);

    if (item == NULL) {
        if (delta->type == KINF_DELTA_DELETED && !is_known_locked(fifo, key))
            return 0;
        return add_item_locked(fifo, delta, hash);
    }
    if (item_reserve(item, 1) < 0)
        return KINF_ERR_NO_MEMORY;
    *ret_dropped = append_locked(fifo, item, delta);
    return 0;
}

static int enqueue_locked(struct kinf_deltafifo *fifo, enum kinf_delta_type type,
                          const struct kinf_object *object, uint64_t hash,
                          const struct kinf_object **ret_dropped) KINF__REQUIRES(fifo->lock)
{
    const struct kinf_delta delta = { .type = type, .object = object };
    const char *rv = kinf_object_resource_version(object);
    int rc = append_or_add_locked(fifo, &delta, hash, ret_dropped);

    if (rc == 0 && kinf__fifo_rv_counts(rv))
        memcpy(fifo->keyed.last_rv, rv, strlen(rv) + 1);
    return rc;
}

/* The lock is held by resync, across the walk that calls this. */
static int resync_object(const struct kinf_object *object, void *ctx) KINF__NO_TSA
{
    struct kinf_deltafifo *fifo = ctx;
    const struct kinf_delta delta = { .type = KINF_DELTA_SYNC, .object = object };
    const char *key = kinf_object_key(object);
    uint64_t hash = kinf__fifo_hash(key);

    if (kinf__stop_is_set(&fifo->stop))
        return KINF_ERR_STOPPED;
    if (item_find(&fifo->keyed.items, key, hash) != NULL || is_in_process_locked(fifo, key))
        return 0;
    return add_item_locked(fifo, &delta, hash);
}

static int resync_locked(struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    const struct kinf_known_objects *known = &fifo->options.known;

    return known->each != NULL ? known->each(resync_object, fifo, known->ctx) : 0;
}

static int bookmark_locked(struct kinf_deltafifo *fifo, const char *rv) KINF__REQUIRES(fifo->lock)
{
    memcpy(fifo->keyed.last_rv, rv, strlen(rv) + 1);
    return 0;
}

static size_t len_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    return fifo->keyed.items.n_nodes;
}

static struct kinf__fifo_item *unlink_head_locked(struct kinf_deltafifo *fifo)
    KINF__REQUIRES(fifo->lock)
{
    struct kinf__fifo_item *item = item_of(fifo->keyed.queue.next);

    kinf__list_remove(&item->in_queue);
    kinf__hmap_remove(&fifo->keyed.items, &item->in_map);
    fifo->n_bytes -= kinf__fifo_item_bytes(item);
    return item;
}

static void take_locked(struct kinf_deltafifo *fifo, struct kinf_deltas *ret_deltas)
    KINF__REQUIRES(fifo->lock)
{
    struct kinf__fifo_item *item = unlink_head_locked(fifo);

    fifo->keyed.in_process = item;
    *ret_deltas = (struct kinf_deltas){ kinf__fifo_item_key(item), item->deltas, item->n_deltas };
}

/* What was dropped stays: the version that was processed is the one before it. */
static void finish(struct kinf_deltafifo *fifo, bool is_dropped)
{
    struct kinf__fifo_item *item = NULL;

    kinf__mutex_lock(&fifo->lock);
    if (!is_dropped)
        item = KINF__TAKE(fifo->keyed.in_process);
    kinf__fifo_finish_locked(fifo, is_dropped);
    kinf__mutex_unlock(&fifo->lock);
    item_free(item);
}

static const char *processed_rv_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    if (fifo->keyed.in_process != NULL)
        return fifo->keyed.in_process->rv_before;
    if (!kinf__list_is_empty(&fifo->keyed.queue))
        return item_of(fifo->keyed.queue.next)->rv_before;
    return fifo->keyed.last_rv;
}

/* --- replace: a whole list against queue, item in process and known objects --- */

/*
 * All or nothing: everything that can fail happens while staging: the items that will be queued are
 * built beside the queue, and room is made in those that will grow. Committing only links, unless
 * the queue is aborted meanwhile: then nothing in it counts any more.
 */

/* What a Replace is going to queue. */
struct staged {
    struct kinf_deltafifo *fifo;
    struct kinf__hmap items; /* by key, and stale once committed */
    struct kinf__list queue; /* the same in order */
};

static void staged_release(struct staged *staged)
{
    items_free(&staged->queue);
    kinf__hmap_release(&staged->items);
}

static bool is_stopped(const struct staged *staged)
{
    return kinf__stop_is_set(&staged->fifo->stop);
}

static struct kinf__fifo_item *staged_find(const struct staged *staged, const char *key,
                                           uint64_t hash)
{
    return item_find(&staged->items, key, hash);
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
    struct kinf__fifo_item *item = item_new(delta);

    if (item == NULL)
        return KINF_ERR_NO_MEMORY;
    if (kinf__hmap_insert(&staged->items, &item->in_map, hash) < 0) {
        item_free(item);
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
    if (item_reserve(item, 1) < 0)
        return KINF_ERR_NO_MEMORY;
    item_push(item, &delta);
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
        struct kinf__fifo_item *item = item_of(node);
        const struct kinf__fifo_item *twin =
            staged_find(staged, kinf__fifo_item_key(item), item->in_map.hash);

        if (is_stopped(staged))
            return KINF_ERR_STOPPED;
        if (item_reserve(item, twin != NULL ? twin->n_deltas : 1) < 0)
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
    newest = item_newest(fifo->keyed.in_process);
    key = kinf_object_key(newest->object);
    hash = kinf__fifo_hash(key);
    if (newest->type == KINF_DELTA_DELETED || staged_find(staged, key, hash) != NULL ||
        item_find(&fifo->keyed.items, key, hash) != NULL)
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
        item_find(&staged->fifo->keyed.items, key, hash) != NULL ||
        is_in_process_locked(staged->fifo, key))
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
        struct kinf__fifo_item *item = item_of(node);
        const struct kinf_delta *newest = item_newest(item);
        const struct kinf_delta tombstone = { .type = KINF_DELTA_DELETED,
                                              .final_state_unknown = true,
                                              .object = newest->object };

        if (is_stopped(staged))
            return;
        /* A Deleted behind a Deleted would collapse into what is there. */
        if (newest->type != KINF_DELTA_DELETED &&
            staged_find(staged, kinf__fifo_item_key(item), item->in_map.hash) == NULL)
            append_locked(staged->fifo, item, &tombstone);
    }
}

/* The deltas of keys that are queued already are copied; their staged items stay behind, to be
 * freed outside the lock. Nothing is dropped: what is listed is never a Deleted. */
static void link_staged_locked(struct staged *staged) KINF__REQUIRES(staged->fifo->lock)
{
    KINF__LIST_FOR_EACH_SAFE (node, &staged->queue) {
        struct kinf__fifo_item *item = item_of(node);
        uint64_t hash = item->in_map.hash;
        struct kinf__fifo_item *queued =
            item_find(&staged->fifo->keyed.items, kinf__fifo_item_key(item), hash);

        if (is_stopped(staged))
            return;
        if (queued == NULL) {
            kinf__list_remove(node);
            link_locked(staged->fifo, item, hash);
            continue;
        }
        for (size_t i = 0; i < item->n_deltas; i++)
            append_locked(staged->fifo, queued, &item->deltas[i]);
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
        item_of(node)->rv_before[0] = '\0';
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

static int stage_and_commit(struct staged *staged, const struct kinf_object *const *objects,
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

/* The `replace` of this order. */
static int replace(struct kinf_deltafifo *fifo, const struct kinf_object *const *objects,
                   size_t n_objects, const char *rv)
{
    struct staged staged = { .fifo = fifo, .items = KINF__HMAP_INIT };
    int rc;

    kinf__list_init(&staged.queue);
    rc = stage_and_commit(&staged, objects, n_objects, rv);
    if (rc == KINF_ERR_STOPPED)
        put_aside(&staged);
    staged_release(&staged);
    return rc;
}

/* --- soundness --- */

static bool check_delta(const struct kinf__fifo_item *item, size_t i)
{
    const struct kinf_delta *delta = &item->deltas[i];
    bool is_deleted = delta->type == KINF_DELTA_DELETED;

    return delta->object != NULL &&
           strcmp(kinf_object_key(delta->object), kinf__fifo_item_key(item)) == 0 &&
           (is_deleted || !delta->final_state_unknown) &&
           !(is_deleted && i != 0 && item->deltas[i - 1].type == KINF_DELTA_DELETED);
}

static bool check_item(const struct kinf__fifo_item *item)
{
    bool is_sound = item->n_deltas != 0 && item->n_deltas <= item->n_allocated &&
                    (item->deltas == item->inlined) == (item->n_allocated == KINF__FIFO_N_INLINE);

    for (size_t i = 0; is_sound && i < item->n_deltas; i++)
        is_sound = check_delta(item, i);
    return is_sound;
}

static bool check_queue_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    size_t n_items = 0, n_bytes = 0;

    KINF__LIST_FOR_EACH (node, &fifo->keyed.queue) {
        struct kinf__fifo_item *item = item_of(node);
        const char *key;

        if (!check_item(item))
            return false;
        key = kinf__fifo_item_key(item);
        if (item_find(&fifo->keyed.items, key, kinf__fifo_hash(key)) != item)
            return false;
        n_items++;
        n_bytes += kinf__fifo_item_bytes(item);
    }
    return n_items == fifo->keyed.items.n_nodes && (fifo->aborted || n_bytes == fifo->n_bytes);
}

static bool check_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    const struct kinf__fifo_item *in_process = fifo->keyed.in_process;

    return check_queue_locked(fifo) &&
           (fifo->aborted || (in_process != NULL) == fifo->is_processing) &&
           (in_process == NULL || check_item(in_process));
}

const struct kinf__fifo_ops kinf__fifo_keyed_ops = {
    .init = init,
    .release = release,
    .enqueue_locked = enqueue_locked,
    .replace = replace,
    .resync_locked = resync_locked,
    .bookmark_locked = bookmark_locked,
    .len_locked = len_locked,
    .take_locked = take_locked,
    .finish = finish,
    .processed_rv_locked = processed_rv_locked,
    .check_locked = check_locked,
};
