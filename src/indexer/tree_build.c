/*
 * Building a whole tree from sorted items, level by level. Neighbours: tree.c changes it
 * afterwards.
 */
#include "indexer/tree.h"

#include <stdlib.h>

#include "base/compiler.h"

/* Nodes are filled to here, so that the first insertions do not split. */
#define FILL (KINF__NODE_FANOUT * 7 / 8)

/* The nodes of one level as slots of the one above. */
struct level {
    struct kinf__slot *slots;
    size_t n;
};

static struct kinf__key item_key(bool is_index, const struct kinf__tree_item *item)
{
    return is_index ? kinf__entry_index_key(item->entry, item->value)
                    : kinf__object_item_key(item->entry->object);
}

/* The bytes that everything in the node before slot `i` of its level has in common. */
static uint32_t prefix_of(const struct level *level, size_t i)
{
    const struct kinf__key *low = i > 0 ? &level->slots[i].separator : NULL;
    const struct kinf__key *high = i + 1 < level->n ? &level->slots[i + 1].separator : NULL;

    return kinf__node_common_prefix(low, high);
}

static void release_level(struct level *level)
{
    struct kinf__dead_nodes dead = KINF__DEAD_NODES_INIT;

    for (size_t i = 0; i < level->n; i++)
        kinf__node_unref(level->slots[i].child, &dead);
    kinf__dead_nodes_free(&dead, SIZE_MAX);
    free(level->slots);
}

/* Room for the nodes that `n` slots fill, none made yet. */
static int init_level(struct level *level, size_t n)
{
    level->n = (n + FILL - 1) / FILL;
    level->slots = calloc(level->n, sizeof level->slots[0]);
    return level->slots != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* Node i of k gets the slots from here on: evenly, so that none is below its minimum. */
static size_t first_of(size_t i, size_t k, size_t n)
{
    return (size_t)((__extension__(unsigned __int128) i * n) / k);
}

static int build_leaf(bool is_index, const struct kinf__tree_item *items, size_t n,
                      uint32_t prefix_len, struct kinf__slot *ret_slot)
{
    struct kinf__slot slots[KINF__NODE_FANOUT];
    struct kinf__node *leaf = kinf__node_alloc(0, is_index, NULL, 0);

    if (leaf == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        slots[i] = (struct kinf__slot){ .entry = items[i].entry,
                                        .value = items[i].value,
                                        .prefix_len = KINF__SLOT_NO_FRAGMENT };
    kinf__node_fill(leaf, slots, (unsigned)n, prefix_len);
    ret_slot->child = leaf;
    ret_slot->is_counted = true;
    return 0;
}

static int build_leaves(bool is_index, const struct kinf__tree_item *items, size_t n,
                        const struct kinf__stop *stop, struct level *ret_level)
{
    struct level level;
    int result = 0;

    if (init_level(&level, n) < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 1; i < level.n && !kinf__stop_is_set(stop); i++) {
        size_t first = first_of(i, level.n, n);

        level.slots[i].separator = kinf__key_between(item_key(is_index, &items[first - 1]),
                                                     item_key(is_index, &items[first]));
    }
    for (size_t i = 0; i < level.n && result == 0; i++) {
        size_t first = first_of(i, level.n, n), end = first_of(i + 1, level.n, n);

        result = kinf__stop_is_set(stop) ? KINF_ERR_STOPPED
                                         : build_leaf(is_index, items + first, end - first,
                                                      prefix_of(&level, i), &level.slots[i]);
    }
    if (result < 0)
        release_level(&level);
    else
        *ret_level = level;
    return result;
}

/* Takes over the nodes of the level below; on failure it is left for the caller to release. */
static int build_inner_level(bool is_index, unsigned number, struct level *below,
                             struct level *ret_level)
{
    struct level level;
    size_t i;

    if (init_level(&level, below->n) < 0)
        return KINF_ERR_NO_MEMORY;
    for (i = 0; i < level.n; i++) {
        size_t first = first_of(i, level.n, below->n), end = first_of(i + 1, level.n, below->n);

        level.slots[i].separator = below->slots[first].separator;
        level.slots[i].is_counted = true;
        level.slots[i].child =
            kinf__node_alloc(number, is_index, below->slots + first, (unsigned)(end - first));
        if (level.slots[i].child == NULL)
            goto no_memory;
    }
    for (i = 0; i < level.n; i++) {
        size_t first = first_of(i, level.n, below->n), end = first_of(i + 1, level.n, below->n);

        kinf__node_fill(level.slots[i].child, below->slots + first, (unsigned)(end - first),
                        prefix_of(&level, i));
    }
    free(below->slots);
    *ret_level = level;
    return 0;

no_memory:
    while (i-- > 0)
        free(level.slots[i].child);
    free(level.slots);
    return KINF_ERR_NO_MEMORY;
}

/* Above the leaves there is so little to do that only they look at `stop`. */
int kinf__tree_build(bool is_index, const struct kinf__tree_item *items, size_t n_items,
                     const struct kinf__stop *stop, struct kinf__tree *ret_tree)
{
    struct kinf__tree tree = { NULL, is_index };
    struct level level;

    if (n_items != 0) {
        int result = build_leaves(is_index, items, n_items, stop, &level);

        if (result < 0)
            return result;
        for (unsigned number = 1; level.n > 1; number++) {
            if (build_inner_level(is_index, number, &level, &level) < 0) {
                release_level(&level);
                return KINF_ERR_NO_MEMORY;
            }
        }
        tree.root = level.slots[0].child;
        free(level.slots);
    }
    *ret_tree = tree;
    return 0;
}
