/*
 * Items of the queue by key: one key and its pending deltas. Neighbours: keyed.c and
 * keyed_replace.c, which link them. Invariant: `deltas` points to the inline room or to an
 * allocation of its own, so an item never moves.
 */
#include "deltafifo/deltafifo_priv.h"

#include <stdlib.h>
#include <string.h>

struct kinf__fifo_item *kinf__fifo_item_new(const struct kinf_delta *first)
{
    struct kinf__fifo_item *item = malloc(sizeof *item);

    if (item == NULL)
        return NULL;
    kinf__list_init(&item->in_queue);
    item->deltas = item->inlined;
    item->n_deltas = 0;
    item->n_allocated = KINF__FIFO_N_INLINE;
    item->rv_before[0] = '\0';
    kinf__fifo_item_push(item, first);
    return item;
}

void kinf__fifo_item_free(struct kinf__fifo_item *item)
{
    if (item == NULL)
        return;
    for (size_t i = 0; i < item->n_deltas; i++)
        kinf_object_unref(item->deltas[i].object);
    if (item->deltas != item->inlined)
        free(item->deltas);
    free(item);
}

void kinf__fifo_items_free(struct kinf__list *items)
{
    KINF__LIST_FOR_EACH_SAFE (node, items)
        kinf__fifo_item_free(KINF__LIST_ENTRY(node, struct kinf__fifo_item, in_queue));
    kinf__list_init(items);
}

int kinf__fifo_item_reserve(struct kinf__fifo_item *item, size_t n_more)
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

void kinf__fifo_item_push(struct kinf__fifo_item *item, const struct kinf_delta *delta)
{
    item->deltas[item->n_deltas] = *delta;
    kinf_object_ref(delta->object);
    item->n_deltas++;
}

const char *kinf__fifo_item_key(const struct kinf__fifo_item *item)
{
    return kinf_object_key(item->deltas[0].object);
}

struct kinf_delta *kinf__fifo_item_newest(struct kinf__fifo_item *item)
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

struct kinf__fifo_item *kinf__fifo_item_find(const struct kinf__hmap *map, const char *key,
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
