/*
 * A binary heap over the items, and a map that finds them by kind and key. Neighbours: controllers,
 * which fill it from what they note.
 */
#include "workloads/workqueue.h"

#include <string.h>

static uint64_t hash_of(unsigned kind, const char *key)
{
    return kinf__hash(kinf_str_from(key)) + kind;
}

static struct kinf__work_item *find(const struct kinf__workqueue *queue, unsigned kind,
                                    const char *key)
{
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(&queue->by_key, hash_of(kind, key));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__work_item *item = KINF__CONTAINER_OF(node, struct kinf__work_item, node);

        if (item->kind == kind && strcmp(item->key, key) == 0)
            return item;
    }
    return NULL;
}

static bool is_before(const struct kinf__work_item *a, const struct kinf__work_item *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void put(struct kinf__workqueue *queue, size_t place, struct kinf__work_item *item)
{
    queue->heap[place] = item;
    item->place = place;
}

static void move_up(struct kinf__workqueue *queue, struct kinf__work_item *item)
{
    size_t place = item->place;

    while (place > 0 && is_before(item, queue->heap[(place - 1) / 2])) {
        put(queue, place, queue->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(queue, place, item);
}

static void move_down(struct kinf__workqueue *queue, struct kinf__work_item *item)
{
    size_t place = item->place;

    for (;;) {
        size_t below = 2 * place + 1;

        if (below + 1 < queue->n_items && is_before(queue->heap[below + 1], queue->heap[below]))
            below++;
        if (below >= queue->n_items || !is_before(queue->heap[below], item))
            break;
        put(queue, place, queue->heap[below]);
        place = below;
    }
    put(queue, place, item);
}

void kinf__workqueue_release(struct kinf__workqueue *queue)
{
    for (size_t i = 0; i < queue->n_items; i++)
        free(queue->heap[i]);
    free(queue->heap);
    kinf__hmap_release(&queue->by_key);
    *queue = (struct kinf__workqueue){ 0 };
}

static int reserve(struct kinf__workqueue *queue)
{
    size_t size = queue->size != 0 ? 2 * queue->size : 64;
    struct kinf__work_item **heap;

    if (queue->n_items < queue->size)
        return 0;
    heap = reallocarray(queue->heap, size, sizeof(struct kinf__work_item *));
    if (heap == NULL)
        return KINF_ERR_NO_MEMORY;
    queue->heap = heap;
    queue->size = size;
    return 0;
}

static int add_new(struct kinf__workqueue *queue, unsigned kind, const char *key, int64_t due_ms)
{
    size_t len = strlen(key) + 1;
    struct kinf__work_item *item = malloc(sizeof *item + len);

    if (item == NULL || reserve(queue) < 0 ||
        kinf__hmap_insert(&queue->by_key, &item->node, hash_of(kind, key)) < 0) {
        free(item);
        return KINF_ERR_NO_MEMORY;
    }
    item->kind = kind;
    item->due_ms = due_ms;
    item->order = queue->n_added++;
    memcpy(item->key, key, len);
    put(queue, queue->n_items++, item);
    move_up(queue, item);
    return 0;
}

int kinf__workqueue_add(struct kinf__workqueue *queue, unsigned kind, const char *key,
                        int64_t due_ms)
{
    struct kinf__work_item *item = find(queue, kind, key);

    if (item == NULL)
        return add_new(queue, kind, key, due_ms);
    if (due_ms < item->due_ms) {
        item->due_ms = due_ms;
        move_up(queue, item);
    }
    return 0;
}

int64_t kinf__workqueue_due_ms(const struct kinf__workqueue *queue)
{
    return queue->n_items != 0 ? queue->heap[0]->due_ms : KINF__NEVER_MS;
}

struct kinf__work_item *kinf__workqueue_take(struct kinf__workqueue *queue, int64_t now_ms)
{
    struct kinf__work_item *item;

    if (queue->n_items == 0 || queue->heap[0]->due_ms > now_ms)
        return NULL;
    item = queue->heap[0];
    kinf__hmap_remove(&queue->by_key, &item->node);
    queue->n_items--;
    if (queue->n_items != 0) {
        put(queue, 0, queue->heap[queue->n_items]);
        move_down(queue, queue->heap[0]);
    }
    return item;
}

bool kinf__workqueue_check(const struct kinf__workqueue *queue)
{
    for (size_t i = 0; i < queue->n_items; i++) {
        const struct kinf__work_item *item = queue->heap[i];

        if (item->place != i || find(queue, item->kind, item->key) != item ||
            (i > 0 && is_before(item, queue->heap[(i - 1) / 2])))
            return false;
    }
    return queue->by_key.n_nodes == queue->n_items;
}
