/*
 * The queue in order of arrival: a ring of deltas that leave from its head, in batches. Neighbour:
 * deltafifo.c, which calls it.
 *
 * Invariants: an entry has an object, or a list, or (SyncAll) neither; only entries with an object
 * leave together. What populates the queue without a list has no initial population, so in front of
 * the first ReplacedAll there is only what leaves alone, and no batch crosses the end of the
 * initial population. Objects and lists are released outside the lock.
 */
#include "deltafifo/deltafifo_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define N_RING_FIRST 64
/* Slots to tell the keys of a batch apart: a power of two, and half of them free. */
#define N_SLOTS_MOST 2048

_Static_assert(N_SLOTS_MOST >= 2 * KINF_FIFO_BATCH_MAX, "a full batch needs free slots");

/* --- lists --- */

/* The objects gain a reference, up to where a stop finds it; NULL when out of memory. The
 * resourceVersion fits. */
static struct kinf__fifo_list *list_new(const struct kinf_object *const *objects, size_t n_objects,
                                        const char *rv, const struct kinf__stop *stop)
{
    struct kinf__fifo_list *list;

    if (n_objects > (SIZE_MAX - sizeof *list) / sizeof(struct kinf_object *))
        return NULL;
    list = malloc(sizeof *list + n_objects * sizeof(struct kinf_object *));
    if (list == NULL)
        return NULL;
    memcpy(list->rv, rv, strlen(rv) + 1);
    list->n_objects = 0;
    while (list->n_objects < n_objects && !kinf__stop_is_set(stop)) {
        list->objects[list->n_objects] = kinf_object_ref(objects[list->n_objects]);
        list->n_objects++;
    }
    return list;
}

static void list_free(struct kinf__fifo_list *list)
{
    if (list == NULL)
        return;
    for (size_t i = 0; i < list->n_objects; i++)
        kinf_object_unref(list->objects[i]);
    free(list);
}

static size_t list_bytes(const struct kinf__fifo_list *list, const struct kinf__stop *stop)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < list->n_objects && !kinf__stop_is_set(stop); i++)
        n_bytes += kinf_object_size(list->objects[i]);
    return n_bytes;
}

/* --- the ring --- */

static struct kinf__fifo_entry *entry_at(const struct kinf__in_order *queue, size_t i)
{
    return &queue->ring[(queue->head + i) & (queue->n_allocated - 1)];
}

/* Room for one more entry. Errors: KINF_ERR_NO_MEMORY. */
static int reserve(struct kinf__in_order *queue)
{
    size_t n_larger = queue->n_allocated != 0 ? queue->n_allocated * 2 : N_RING_FIRST;
    struct kinf__fifo_entry *larger;

    if (queue->n_entries < queue->n_allocated)
        return 0;
    larger = reallocarray(NULL, n_larger, sizeof *larger);
    if (larger == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < queue->n_entries; i++)
        larger[i] = *entry_at(queue, i);
    free(queue->ring);
    queue->ring = larger;
    queue->n_allocated = n_larger;
    queue->head = 0;
    return 0;
}

/* Takes over what the entry holds, on success. */
static int push_locked(struct kinf_deltafifo *fifo, const struct kinf__fifo_entry *entry)
    KINF__REQUIRES(fifo->lock)
{
    struct kinf__in_order *queue = &fifo->in_order;

    if (reserve(queue) < 0)
        return KINF_ERR_NO_MEMORY;
    queue->n_entries++;
    *entry_at(queue, queue->n_entries - 1) = *entry;
    fifo->n_bytes += entry->n_bytes;
    fifo->has_news = true;
    return 0;
}

/* A burst must not keep its memory for ever; for the caller to free outside the lock. */
static struct kinf__fifo_entry *take_large_ring_locked(struct kinf__in_order *queue)
{
    struct kinf__fifo_entry *ring = queue->ring;

    if (queue->n_entries != 0 || queue->n_allocated <= KINF__FIFO_N_RING_KEPT)
        return NULL;
    queue->ring = NULL;
    queue->n_allocated = 0;
    queue->head = 0;
    return ring;
}

static void ring_free(struct kinf__in_order *queue)
{
    for (size_t i = 0; i < queue->n_entries; i++) {
        kinf_object_unref(entry_at(queue, i)->object);
        list_free(entry_at(queue, i)->list);
    }
    free(queue->ring);
}

/* --- life --- */

static int init(struct kinf_deltafifo *fifo)
{
    fifo->in_order.batch = reallocarray(NULL, KINF_FIFO_BATCH_MAX, sizeof(struct kinf_delta));
    return fifo->in_order.batch != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static void release(struct kinf_deltafifo *fifo)
{
    ring_free(&fifo->in_order);
    list_free(fifo->in_order.list_in_process);
    free(fifo->in_order.batch);
}

/* --- producers --- */

static int enqueue_locked(struct kinf_deltafifo *fifo, enum kinf_delta_type type,
                          const struct kinf_object *object, uint64_t hash,
                          const struct kinf_object **ret_dropped) KINF__REQUIRES(fifo->lock)
{
    const struct kinf__fifo_entry entry = {
        .object = object,
        .n_bytes = kinf_object_size(object),
        .hash = (uint32_t)hash,
        .type = type,
    };
    int rc = push_locked(fifo, &entry);

    (void)ret_dropped;
    if (rc == 0)
        kinf_object_ref(object);
    return rc;
}

static int replace(struct kinf_deltafifo *fifo, const struct kinf_object *const *objects,
                   size_t n_objects, const char *rv)
{
    struct kinf__fifo_entry entry = { .type = KINF_DELTA_REPLACED_ALL };
    int rc;

    entry.list = list_new(objects, n_objects, rv, &fifo->stop);
    if (entry.list == NULL)
        return KINF_ERR_NO_MEMORY;
    entry.n_bytes = list_bytes(entry.list, &fifo->stop);
    kinf__mutex_lock(&fifo->lock);
    rc = kinf__fifo_wait_for_room_locked(fifo);
    if (rc == 0 && kinf__stop_is_set(&fifo->stop))
        rc = KINF_ERR_STOPPED;
    if (rc == 0)
        rc = push_locked(fifo, &entry);
    if (rc == 0)
        kinf__fifo_populate_locked(fifo);
    kinf__fifo_unlock(fifo);
    if (rc != 0)
        list_free(entry.list);
    return rc;
}

static int resync_locked(struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    const struct kinf__fifo_entry entry = { .type = KINF_DELTA_SYNC_ALL };

    return push_locked(fifo, &entry);
}

/* The one that gives way is not of the initial population, which ends with a list. */
static int bookmark_locked(struct kinf_deltafifo *fifo, const char *rv) KINF__REQUIRES(fifo->lock)
{
    struct kinf__in_order *queue = &fifo->in_order;
    struct kinf__fifo_entry entry = { .type = KINF_DELTA_BOOKMARK };
    int rc;

    if (queue->n_entries != 0) {
        struct kinf__fifo_entry *newest = entry_at(queue, queue->n_entries - 1);

        if (newest->type == KINF_DELTA_BOOKMARK) {
            memcpy(newest->list->rv, rv, strlen(rv) + 1);
            return 0;
        }
    }
    entry.list = list_new(NULL, 0, rv, NULL);
    if (entry.list == NULL)
        return KINF_ERR_NO_MEMORY;
    rc = push_locked(fifo, &entry);
    if (rc < 0)
        list_free(entry.list);
    return rc;
}

/* --- the consumer --- */

static size_t len_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    return fifo->in_order.n_entries;
}

/* Whether entry i has a key that no earlier one has in `slots`, where it is noted then; a slot is
 * the number of an entry plus one. */
static bool note_key(const struct kinf__in_order *queue, uint16_t *slots, size_t n_slots, size_t i)
{
    const struct kinf__fifo_entry *entry = entry_at(queue, i);
    size_t slot = entry->hash & (n_slots - 1);

    for (; slots[slot] != 0; slot = (slot + 1) & (n_slots - 1)) {
        const struct kinf__fifo_entry *other = entry_at(queue, slots[slot] - 1U);

        if (other->hash == entry->hash &&
            strcmp(kinf_object_key(other->object), kinf_object_key(entry->object)) == 0)
            return false;
    }
    slots[slot] = (uint16_t)(i + 1);
    return true;
}

/* How many entries leave together, of a queue that has some. */
static size_t count_batch_locked(const struct kinf__in_order *queue)
{
    uint16_t slots[N_SLOTS_MOST];
    size_t n_most = queue->n_entries, n_slots = 2, n = 0;

    if (n_most > KINF_FIFO_BATCH_MAX)
        n_most = KINF_FIFO_BATCH_MAX;
    while (n_slots < 2 * n_most)
        n_slots *= 2;
    memset(slots, 0, n_slots * sizeof slots[0]);
    while (n < n_most && entry_at(queue, n)->object != NULL && note_key(queue, slots, n_slots, n))
        n++;
    return n != 0 ? n : 1;
}

static struct kinf_delta delta_of(const struct kinf__fifo_entry *entry)
{
    struct kinf_delta delta = { .type = entry->type, .object = entry->object };

    if (entry->list == NULL)
        return delta;
    delta.resource_version = entry->list->rv;
    if (entry->type == KINF_DELTA_REPLACED_ALL) {
        delta.objects = entry->list->objects;
        delta.n_objects = entry->list->n_objects;
    }
    return delta;
}

static void take_locked(struct kinf_deltafifo *fifo, struct kinf_deltas *ret_deltas)
    KINF__REQUIRES(fifo->lock)
{
    struct kinf__in_order *queue = &fifo->in_order;
    size_t n = count_batch_locked(queue);

    for (size_t i = 0; i < n; i++) {
        queue->batch[i] = delta_of(entry_at(queue, i));
        fifo->n_bytes -= entry_at(queue, i)->n_bytes;
    }
    queue->list_in_process = entry_at(queue, 0)->list;
    queue->n_in_process = n;
    queue->head = (queue->head + n) & (queue->n_allocated - 1);
    queue->n_entries -= n;
    *ret_deltas = (struct kinf_deltas){ .items = queue->batch, .n_items = n };
}

/* The resourceVersion that the store has after these deltas; NULL if they say nothing about it. */
static const char *rv_after(const struct kinf_delta *deltas, size_t n_deltas)
{
    for (size_t i = n_deltas; i > 0; i--) {
        const struct kinf_delta *delta = &deltas[i - 1];
        const char *rv = delta->object != NULL ? kinf_object_resource_version(delta->object) : "";

        if (delta->resource_version != NULL)
            return delta->resource_version;
        if (kinf__fifo_rv_counts(rv))
            return rv;
    }
    return NULL;
}

/* The batch is given up while it is still in process, since its room is the next one's. A large list
 * would hold up a stop, so it stays where it is then. */
static void finish(struct kinf_deltafifo *fifo, bool is_dropped)
{
    struct kinf__in_order *queue = &fifo->in_order;
    struct kinf__fifo_list *list = NULL;
    const char *rv = is_dropped ? NULL : rv_after(queue->batch, queue->n_in_process);
    struct kinf__fifo_entry *large_ring;
    char rv_copy[KINF__FIFO_RV_SIZE] = "";

    if (rv != NULL)
        memcpy(rv_copy, rv, strlen(rv) + 1);
    for (size_t i = 0; i < queue->n_in_process; i++)
        kinf_object_unref(queue->batch[i].object);
    kinf__mutex_lock(&fifo->lock);
    if (rv != NULL)
        memcpy(queue->processed_rv, rv_copy, sizeof rv_copy);
    queue->n_in_process = 0;
    if (!kinf__stop_is_set(&fifo->stop))
        list = KINF__TAKE(queue->list_in_process);
    large_ring = take_large_ring_locked(queue);
    kinf__fifo_finish_locked(fifo, is_dropped);
    kinf__mutex_unlock(&fifo->lock);
    free(large_ring);
    list_free(list);
}

static const char *processed_rv_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    return fifo->in_order.processed_rv;
}

/* --- soundness --- */

static bool check_entry(const struct kinf__fifo_entry *entry)
{
    switch (entry->type) {
    case KINF_DELTA_ADDED:
    case KINF_DELTA_UPDATED:
    case KINF_DELTA_DELETED:
        return entry->object != NULL && entry->list == NULL &&
               entry->hash == (uint32_t)kinf__fifo_hash(kinf_object_key(entry->object)) &&
               entry->n_bytes == kinf_object_size(entry->object);
    case KINF_DELTA_REPLACED_ALL:
        return entry->object == NULL && entry->list != NULL &&
               entry->n_bytes == list_bytes(entry->list, NULL);
    case KINF_DELTA_SYNC_ALL:
        return entry->object == NULL && entry->list == NULL && entry->n_bytes == 0;
    case KINF_DELTA_BOOKMARK:
        return entry->object == NULL && entry->list != NULL && entry->list->n_objects == 0 &&
               entry->n_bytes == 0;
    case KINF_DELTA_REPLACED:
    case KINF_DELTA_SYNC:
        break;
    }
    return false;
}

static bool check_entries_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    const struct kinf__in_order *queue = &fifo->in_order;
    size_t n_bytes = 0;

    for (size_t i = 0; i < queue->n_entries; i++) {
        const struct kinf__fifo_entry *entry = entry_at(queue, i);

        if (!check_entry(entry))
            return false;
        if (i != 0 && entry->type == KINF_DELTA_BOOKMARK &&
            entry_at(queue, i - 1)->type == KINF_DELTA_BOOKMARK)
            return false;
        n_bytes += entry->n_bytes;
    }
    return fifo->aborted || n_bytes == fifo->n_bytes;
}

/* Without a list there is no initial population, and everything up to the first list is in it. */
static bool check_initial_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    const struct kinf__in_order *queue = &fifo->in_order;
    size_t n_initial = fifo->initial_count - (fifo->in_process_is_initial ? 1 : 0);
    size_t n_alone = fifo->populated ? n_initial : queue->n_entries;

    if (fifo->aborted)
        return true;
    for (size_t i = 0; i < n_alone; i++) {
        bool is_last_initial = i + 1 == n_initial;

        if (entry_at(queue, i)->object != NULL ||
            (entry_at(queue, i)->type == KINF_DELTA_REPLACED_ALL) != is_last_initial)
            return false;
    }
    return true;
}

static bool check_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    const struct kinf__in_order *queue = &fifo->in_order;
    bool is_power_of_two = (queue->n_allocated & (queue->n_allocated - 1)) == 0;
    bool has_valid_ring = (queue->ring != NULL) == (queue->n_allocated != 0) && is_power_of_two &&
                          queue->n_entries <= queue->n_allocated &&
                          (queue->n_allocated == 0 || queue->head < queue->n_allocated);

    return has_valid_ring && check_entries_locked(fifo) && check_initial_locked(fifo) &&
           (queue->n_in_process != 0) == fifo->is_processing;
}

const struct kinf__fifo_ops kinf__fifo_in_order_ops = {
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
