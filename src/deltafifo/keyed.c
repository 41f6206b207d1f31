/*
 * The queue by key: items that gather the deltas of one key each. Neighbours: deltafifo.c calls it,
 * keyed_item.c holds one key's deltas, keyed_replace.c takes in whole lists.
 *
 * Invariants: a key is in the map exactly if it is in the queue; an item in process is in neither,
 * but still answers for its key. Items leave in the order of arrival, so the oldest one's rv_before
 * is the lower bound of what was processed. Objects are released outside the lock.
 */
#include "deltafifo/deltafifo_priv.h"

#include <string.h>

#include "base/compiler.h"

static struct kinf__fifo_item *item_of(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct kinf__fifo_item, in_queue);
}

bool kinf__keyed_in_process_locked(const struct kinf_deltafifo *fifo, const char *key)
{
    return fifo->keyed.in_process != NULL &&
           strcmp(kinf__fifo_item_key(fifo->keyed.in_process), key) == 0;
}

void kinf__keyed_link_locked(struct kinf_deltafifo *fifo, struct kinf__fifo_item *item,
                             uint64_t hash)
{
    memcpy(item->rv_before, fifo->keyed.last_rv, sizeof item->rv_before);
    kinf__hmap_insert_reserved(&fifo->keyed.items, &item->in_map, hash);
    kinf__list_push_back(&fifo->keyed.queue, &item->in_queue);
    fifo->n_bytes += kinf__fifo_item_bytes(item);
}

const struct kinf_object *kinf__keyed_append_locked(struct kinf_deltafifo *fifo,
                                                    struct kinf__fifo_item *item,
                                                    const struct kinf_delta *delta)
{
    struct kinf_delta *newest = kinf__fifo_item_newest(item);
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
    kinf__fifo_item_push(item, delta);
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
    kinf__fifo_items_free(&fifo->keyed.queue);
    kinf__fifo_items_free(&fifo->keyed.dropped);
    kinf__fifo_item_free(fifo->keyed.in_process);
    kinf__hmap_release(&fifo->keyed.items);
}

static int add_item_locked(struct kinf_deltafifo *fifo, const struct kinf_delta *delta,
                           uint64_t hash) KINF__REQUIRES(fifo->lock)
{
    struct kinf__fifo_item *item;

    if (kinf__hmap_reserve(&fifo->keyed.items, 1) < 0)
        return KINF_ERR_NO_MEMORY;
    item = kinf__fifo_item_new(delta);
    if (item == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__keyed_link_locked(fifo, item, hash);
    fifo->has_news = true;
    return 0;
}

static bool is_known_locked(struct kinf_deltafifo *fifo, const char *key) KINF__REQUIRES(fifo->lock)
{
    const struct kinf_known_objects *known = &fifo->options.known;

    return kinf__keyed_in_process_locked(fifo, key) ||
           (known->has_key != NULL && known->has_key(key, known->ctx));
}

static int append_or_add_locked(struct kinf_deltafifo *fifo, const struct kinf_delta *delta,
                                uint64_t hash, const struct kinf_object **ret_dropped)
    KINF__REQUIRES(fifo->lock)
{
    const char *key = kinf_object_key(delta->object);
    struct kinf__fifo_item *item = kinf__fifo_item_find(&fifo->keyed.items, key, hash);

    if (item == NULL) {
        if (delta->type == KINF_DELTA_DELETED && !is_known_locked(fifo, key))
            return 0;
        return add_item_locked(fifo, delta, hash);
    }
    if (kinf__fifo_item_reserve(item, 1) < 0)
        return KINF_ERR_NO_MEMORY;
    *ret_dropped = kinf__keyed_append_locked(fifo, item, delta);
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
    if (kinf__fifo_item_find(&fifo->keyed.items, key, hash) != NULL ||
        kinf__keyed_in_process_locked(fifo, key))
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
    kinf__fifo_item_free(item);
}

static const char *processed_rv_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    if (fifo->keyed.in_process != NULL)
        return fifo->keyed.in_process->rv_before;
    if (!kinf__list_is_empty(&fifo->keyed.queue))
        return item_of(fifo->keyed.queue.next)->rv_before;
    return fifo->keyed.last_rv;
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
        if (kinf__fifo_item_find(&fifo->keyed.items, key, kinf__fifo_hash(key)) != item)
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
    .replace = kinf__keyed_replace,
    .resync_locked = resync_locked,
    .bookmark_locked = bookmark_locked,
    .len_locked = len_locked,
    .take_locked = take_locked,
    .finish = finish,
    .processed_rv_locked = processed_rv_locked,
    .check_locked = check_locked,
};
