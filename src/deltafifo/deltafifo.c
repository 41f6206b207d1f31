/*
 * The queue between reflector and store. Neighbours: the reflector produces, the informer's
 * processor thread consumes, item.c holds one key's deltas, replace.c takes in whole lists.
 *
 * Invariants: a key is in the map exactly if it is in the queue; an item in process is in neither,
 * but still answers for its key. Items leave in the order of arrival, so the oldest one's rv_before
 * is the lower bound of what was processed. Objects are released outside the lock.
 */
#include "deltafifo/deltafifo_priv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

const char *kinf_delta_type_to_string(enum kinf_delta_type type)
{
    static const char *const names[] = {
        [KINF_DELTA_ADDED] = "Added",     [KINF_DELTA_UPDATED] = "Updated",
        [KINF_DELTA_DELETED] = "Deleted", [KINF_DELTA_REPLACED] = "Replaced",
        [KINF_DELTA_SYNC] = "Sync",
    };

    return (size_t)type < KINF__ARRAY_LEN(names) ? names[type] : "Unknown";
}

static struct kinf__fifo_item *item_of(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct kinf__fifo_item, in_queue);
}

/* --- life --- */

int kinf_deltafifo_new(const struct kinf_deltafifo_options *options,
                       struct kinf_deltafifo **ret_fifo, struct kinf_error *err)
{
    struct kinf_deltafifo *fifo;

    if ((options->known.each == NULL) != (options->known.has_key == NULL))
        return kinf__error_set(err, KINF_ERR_INVALID, "known objects need both each and has_key");
    fifo = calloc(1, sizeof *fifo);
    if (fifo == NULL)
        return kinf__error_no_memory(err);
    fifo->options = *options;
    kinf__mutex_init(&fifo->lock, KINF__RANK_FIFO);
    kinf__cond_init(&fifo->not_empty);
    kinf__cond_init(&fifo->not_full);
    kinf__list_init(&fifo->queue);
    *ret_fifo = fifo;
    return 0;
}

void kinf_deltafifo_free(struct kinf_deltafifo *fifo) KINF__NO_TSA
{
    if (fifo == NULL)
        return;
    kinf__fifo_items_free(&fifo->queue);
    kinf__hmap_release(&fifo->items);
    kinf__cond_release(&fifo->not_full);
    kinf__cond_release(&fifo->not_empty);
    kinf__mutex_release(&fifo->lock);
    free(fifo);
}

/* --- producers --- */

static bool is_full_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    bool by_consumer = fifo->in_process != NULL && pthread_equal(fifo->consumer, pthread_self());

    return fifo->options.max_bytes != 0 && fifo->n_bytes > fifo->options.max_bytes && !by_consumer;
}

int kinf__fifo_wait_for_room_locked(struct kinf_deltafifo *fifo)
{
    fifo->n_waiting_producers++;
    while (!fifo->closed && is_full_locked(fifo))
        kinf__cond_wait_until(&fifo->not_full, &fifo->lock, KINF__NEVER_MS);
    fifo->n_waiting_producers--;
    return fifo->closed ? KINF_ERR_STOPPED : 0;
}

bool kinf__fifo_in_process_locked(const struct kinf_deltafifo *fifo, const char *key)
{
    return fifo->in_process != NULL && strcmp(kinf__fifo_item_key(fifo->in_process), key) == 0;
}

void kinf__fifo_link_locked(struct kinf_deltafifo *fifo, struct kinf__fifo_item *item,
                            uint64_t hash)
{
    memcpy(item->rv_before, fifo->last_rv, sizeof item->rv_before);
    kinf__hmap_insert_reserved(&fifo->items, &item->in_map, hash);
    kinf__list_push_back(&fifo->queue, &item->in_queue);
    fifo->n_bytes += kinf__fifo_item_bytes(item);
}

const struct kinf_object *kinf__fifo_append_locked(struct kinf_deltafifo *fifo,
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

static int add_item_locked(struct kinf_deltafifo *fifo, const struct kinf_delta *delta,
                           uint64_t hash) KINF__REQUIRES(fifo->lock)
{
    struct kinf__fifo_item *item;

    if (kinf__hmap_reserve(&fifo->items, 1) < 0)
        return KINF_ERR_NO_MEMORY;
    item = kinf__fifo_item_new(delta);
    if (item == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__fifo_link_locked(fifo, item, hash);
    kinf__cond_signal(&fifo->not_empty);
    return 0;
}

static bool is_known_locked(struct kinf_deltafifo *fifo, const char *key) KINF__REQUIRES(fifo->lock)
{
    const struct kinf_known_objects *known = &fifo->options.known;

    return kinf__fifo_in_process_locked(fifo, key) ||
           (known->has_key != NULL && known->has_key(key, known->ctx));
}

static int enqueue_locked(struct kinf_deltafifo *fifo, const struct kinf_delta *delta,
                          uint64_t hash, const struct kinf_object **ret_dropped)
    KINF__REQUIRES(fifo->lock)
{
    const char *key = kinf_object_key(delta->object);
    struct kinf__fifo_item *item = kinf__fifo_item_find(&fifo->items, key, hash);

    if (item == NULL) {
        if (delta->type == KINF_DELTA_DELETED && !is_known_locked(fifo, key))
            return 0;
        return add_item_locked(fifo, delta, hash);
    }
    if (kinf__fifo_item_reserve(item, 1) < 0)
        return KINF_ERR_NO_MEMORY;
    *ret_dropped = kinf__fifo_append_locked(fifo, item, delta);
    return 0;
}

static void receive_object_rv_locked(struct kinf_deltafifo *fifo, const char *rv)
    KINF__REQUIRES(fifo->lock)
{
    size_t len = strlen(rv);

    if (len != 0 && len < sizeof fifo->last_rv)
        memcpy(fifo->last_rv, rv, len + 1);
}

static int fail(int code, struct kinf_error *err)
{
    if (code == KINF_ERR_NO_MEMORY)
        return kinf__error_no_memory(err);
    return kinf__error_set(err, (enum kinf_errc)code, "the queue is closed");
}

static int queue_delta(struct kinf_deltafifo *fifo, enum kinf_delta_type type,
                       const struct kinf_object *object, struct kinf_error *err)
{
    const struct kinf_delta delta = { type, false, object };
    const struct kinf_object *dropped = NULL;
    uint64_t hash = kinf__fifo_hash(kinf_object_key(object));
    int rc;

    kinf__mutex_lock(&fifo->lock);
    rc = kinf__fifo_wait_for_room_locked(fifo);
    if (rc == 0)
        rc = enqueue_locked(fifo, &delta, hash, &dropped);
    if (rc == 0) {
        fifo->populated = true;
        receive_object_rv_locked(fifo, kinf_object_resource_version(object));
    }
    kinf__mutex_unlock(&fifo->lock);
    kinf_object_unref(dropped);
    return rc == 0 ? 0 : fail(rc, err);
}

int kinf_deltafifo_add(struct kinf_deltafifo *fifo, const struct kinf_object *object,
                       struct kinf_error *err)
{
    return queue_delta(fifo, KINF_DELTA_ADDED, object, err);
}

int kinf_deltafifo_update(struct kinf_deltafifo *fifo, const struct kinf_object *object,
                          struct kinf_error *err)
{
    return queue_delta(fifo, KINF_DELTA_UPDATED, object, err);
}

int kinf_deltafifo_delete(struct kinf_deltafifo *fifo, const struct kinf_object *object,
                          struct kinf_error *err)
{
    return queue_delta(fifo, KINF_DELTA_DELETED, object, err);
}

/* The lock is held by resync, across the walk that calls this. */
static int resync_object(const struct kinf_object *object, void *ctx) KINF__NO_TSA
{
    struct kinf_deltafifo *fifo = ctx;
    const struct kinf_delta delta = { KINF_DELTA_SYNC, false, object };
    const char *key = kinf_object_key(object);
    uint64_t hash = kinf__fifo_hash(key);

    if (kinf__fifo_item_find(&fifo->items, key, hash) != NULL ||
        kinf__fifo_in_process_locked(fifo, key))
        return 0;
    return add_item_locked(fifo, &delta, hash);
}

int kinf_deltafifo_resync(struct kinf_deltafifo *fifo, struct kinf_error *err)
{
    const struct kinf_known_objects *known = &fifo->options.known;
    int rc;

    kinf__mutex_lock(&fifo->lock);
    rc = fifo->closed ? KINF_ERR_STOPPED : 0;
    if (rc == 0 && known->each != NULL)
        rc = known->each(resync_object, fifo, known->ctx);
    kinf__mutex_unlock(&fifo->lock);
    return rc == 0 ? 0 : fail(rc, err);
}

int kinf_deltafifo_bookmark(struct kinf_deltafifo *fifo, const char *resource_version,
                            struct kinf_error *err)
{
    size_t len = strlen(resource_version);
    int rc;

    if (len >= KINF__FIFO_RV_SIZE)
        return kinf__error_set(err, KINF_ERR_LIMIT, "resourceVersion of %zu bytes", len);
    kinf__mutex_lock(&fifo->lock);
    rc = fifo->closed ? KINF_ERR_STOPPED : 0;
    if (rc == 0)
        memcpy(fifo->last_rv, resource_version, len + 1);
    kinf__mutex_unlock(&fifo->lock);
    return rc == 0 ? 0 : fail(rc, err);
}

/* --- the consumer --- */

static bool has_synced_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    return fifo->populated && fifo->initial_count == 0;
}

static int wait_for_item_locked(struct kinf_deltafifo *fifo, int64_t deadline_ms)
    KINF__REQUIRES(fifo->lock)
{
    bool in_time = true;

    for (;;) {
        if (fifo->in_process != NULL)
            return KINF_ERR_STATE;
        if (!kinf__list_is_empty(&fifo->queue))
            return 0;
        if (fifo->closed)
            return KINF_ERR_STOPPED;
        if (!in_time)
            return KINF_ERR_TIMEOUT;
        in_time = kinf__cond_wait_until(&fifo->not_empty, &fifo->lock, deadline_ms);
    }
}

static struct kinf__fifo_item *unlink_head_locked(struct kinf_deltafifo *fifo)
    KINF__REQUIRES(fifo->lock)
{
    struct kinf__fifo_item *item = item_of(fifo->queue.next);

    kinf__list_remove(&item->in_queue);
    kinf__hmap_remove(&fifo->items, &item->in_map);
    fifo->n_bytes -= kinf__fifo_item_bytes(item);
    return item;
}

static struct kinf__fifo_item *begin_locked(struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    fifo->in_process = unlink_head_locked(fifo);
    fifo->in_process_is_initial = fifo->initial_count != 0;
    fifo->consumer = pthread_self();
    if (fifo->n_waiting_producers != 0)
        kinf__cond_broadcast(&fifo->not_full);
    return fifo->in_process;
}

static void finish_locked(struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    if (fifo->in_process_is_initial)
        fifo->initial_count--;
    fifo->in_process_is_initial = false;
    fifo->in_process = NULL;
}

int kinf_deltafifo_pop(struct kinf_deltafifo *fifo, kinf_pop_process_cb *process, void *ctx,
                       int64_t timeout_ms)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms);
    struct kinf__fifo_item *item = NULL;
    struct kinf_deltas deltas;
    bool in_initial_list = false;
    int rc;

    kinf__mutex_lock(&fifo->lock);
    rc = wait_for_item_locked(fifo, deadline_ms);
    if (rc == 0) {
        in_initial_list = !has_synced_locked(fifo);
        item = begin_locked(fifo);
    }
    kinf__mutex_unlock(&fifo->lock);
    if (rc < 0)
        return rc;

    deltas = (struct kinf_deltas){ kinf__fifo_item_key(item), item->deltas, item->n_deltas };
    assert(kinf__mutex_none_held());
    rc = process(&deltas, in_initial_list, ctx);

    kinf__mutex_lock(&fifo->lock);
    finish_locked(fifo);
    kinf__mutex_unlock(&fifo->lock);
    kinf__fifo_item_free(item);
    return rc;
}

/* --- the end --- */

static void close_locked(struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    fifo->closed = true;
    kinf__cond_broadcast(&fifo->not_empty);
    kinf__cond_broadcast(&fifo->not_full);
}

void kinf_deltafifo_close(struct kinf_deltafifo *fifo)
{
    kinf__mutex_lock(&fifo->lock);
    close_locked(fifo);
    kinf__mutex_unlock(&fifo->lock);
}

static const char *processed_rv_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    if (fifo->in_process != NULL)
        return fifo->in_process->rv_before;
    if (!kinf__list_is_empty(&fifo->queue))
        return item_of(fifo->queue.next)->rv_before;
    return fifo->last_rv;
}

void kinf_deltafifo_abort(struct kinf_deltafifo *fifo)
{
    struct kinf__list dropped;

    kinf__list_init(&dropped);
    kinf__mutex_lock(&fifo->lock);
    close_locked(fifo);
    fifo->aborted = true;
    memmove(fifo->last_rv, processed_rv_locked(fifo), sizeof fifo->last_rv);
    while (!kinf__list_is_empty(&fifo->queue))
        kinf__list_push_back(&dropped, &unlink_head_locked(fifo)->in_queue);
    kinf__mutex_unlock(&fifo->lock);
    kinf__fifo_items_free(&dropped);
}

/* --- what can be asked --- */

bool kinf_deltafifo_has_synced(struct kinf_deltafifo *fifo)
{
    bool has_synced;

    kinf__mutex_lock(&fifo->lock);
    has_synced = has_synced_locked(fifo);
    kinf__mutex_unlock(&fifo->lock);
    return has_synced;
}

int kinf_deltafifo_resource_version(struct kinf_deltafifo *fifo, char *buf, size_t size)
{
    const char *rv;
    size_t len;

    kinf__mutex_lock(&fifo->lock);
    rv = processed_rv_locked(fifo);
    len = strlen(rv);
    if (len < size)
        memcpy(buf, rv, len + 1);
    kinf__mutex_unlock(&fifo->lock);
    return len < size ? 0 : KINF_ERR_LIMIT;
}

size_t kinf_deltafifo_len(struct kinf_deltafifo *fifo)
{
    size_t n_items;

    kinf__mutex_lock(&fifo->lock);
    n_items = fifo->items.n_nodes;
    kinf__mutex_unlock(&fifo->lock);
    return n_items;
}

size_t kinf_deltafifo_bytes(struct kinf_deltafifo *fifo)
{
    size_t n_bytes;

    kinf__mutex_lock(&fifo->lock);
    n_bytes = fifo->n_bytes;
    kinf__mutex_unlock(&fifo->lock);
    return n_bytes;
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

static bool check_queue_locked(struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    size_t n_items = 0, n_bytes = 0;

    KINF__LIST_FOR_EACH (node, &fifo->queue) {
        struct kinf__fifo_item *item = item_of(node);
        const char *key;

        if (!check_item(item))
            return false;
        key = kinf__fifo_item_key(item);
        if (kinf__fifo_item_find(&fifo->items, key, kinf__fifo_hash(key)) != item)
            return false;
        n_items++;
        n_bytes += kinf__fifo_item_bytes(item);
    }
    return n_items == fifo->items.n_nodes && n_bytes == fifo->n_bytes;
}

static bool check_counts_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    size_t n_most = fifo->items.n_nodes + (fifo->in_process_is_initial ? 1 : 0);

    if (fifo->aborted && (!fifo->closed || fifo->items.n_nodes != 0))
        return false;
    if (fifo->in_process == NULL && fifo->in_process_is_initial)
        return false;
    if (!fifo->populated && fifo->initial_count != 0)
        return false;
    return fifo->aborted || fifo->initial_count <= n_most;
}

bool kinf__deltafifo_check(struct kinf_deltafifo *fifo)
{
    bool is_sound;

    kinf__mutex_lock(&fifo->lock);
    is_sound = check_queue_locked(fifo) && check_counts_locked(fifo) &&
               (fifo->in_process == NULL || check_item(fifo->in_process));
    kinf__mutex_unlock(&fifo->lock);
    return is_sound;
}
