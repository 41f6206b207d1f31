/*
 * Reading the tree. Neighbours: node.c has the nodes, tree_change.c changes them, snapshot.c reads.
 */
#include "indexer/tree.h"

/* The leaf that has the key, and its slot; NULL if none has. */
static const struct kinf__node *find(const struct kinf__tree *tree, const struct kinf__key *key,
                                     unsigned *ret_slot)
{
    const struct kinf__node *node = tree->root;
    bool found;

    if (node == NULL)
        return NULL;
    while (node->level != 0) {
        node = node->children[kinf__inner_search(node, key)];
        kinf__node_prefetch(node);
    }
    *ret_slot = kinf__leaf_search(node, key, &found);
    return found ? node : NULL;
}

struct kinf__entry *kinf__tree_get(const struct kinf__tree *tree, struct kinf__key key)
{
    unsigned slot;
    const struct kinf__node *leaf = find(tree, &key, &slot);

    return leaf != NULL ? leaf->entries[slot] : NULL;
}

const struct kinf_object *kinf__tree_get_object(const struct kinf__tree *items,
                                                struct kinf__key key)
{
    unsigned slot;
    const struct kinf__node *leaf = find(items, &key, &slot);

    return leaf != NULL ? leaf->objects[slot] : NULL;
}

/* Leaves a position behind a node's last slot for the next that there is; n_levels 0 behind all. */
static void settle_cursor(struct kinf_cursor *cursor)
{
    while (cursor->n_levels != 0) {
        const struct kinf__node *node = cursor->levels[cursor->n_levels - 1].node;
        unsigned slot = cursor->levels[cursor->n_levels - 1].slot;

        if (slot >= node->n_slots) {
            cursor->n_levels--;
            if (cursor->n_levels != 0)
                cursor->levels[cursor->n_levels - 1].slot++;
        } else if (node->level == 0) {
            return;
        } else {
            cursor->levels[cursor->n_levels].node = node->children[slot];
            cursor->levels[cursor->n_levels].slot = 0;
            cursor->n_levels++;
        }
    }
}

void kinf__tree_seek(const struct kinf__tree *tree, struct kinf__key key,
                     struct kinf_cursor *cursor)
{
    const struct kinf__node *node = tree->root;
    bool found;

    _Static_assert(KINF_CURSOR_MAX_LEVELS >= KINF__TREE_MAX_LEVELS, "a cursor holds every level");
    cursor->n_levels = 0;
    while (node != NULL) {
        unsigned slot = node->level != 0 ? kinf__inner_search(node, &key)
                                         : kinf__leaf_search(node, &key, &found);

        cursor->levels[cursor->n_levels].node = node;
        cursor->levels[cursor->n_levels].slot = slot;
        cursor->n_levels++;
        node = node->level != 0 ? node->children[slot] : NULL;
    }
    settle_cursor(cursor);
}

bool kinf__tree_at(const struct kinf_cursor *cursor, struct kinf__entry **ret_entry,
                   uint32_t *ret_value)
{
    const struct kinf__node *leaf;
    unsigned slot;

    if (cursor->n_levels == 0)
        return false;
    leaf = cursor->levels[cursor->n_levels - 1].node;
    slot = cursor->levels[cursor->n_levels - 1].slot;
    *ret_entry = leaf->entries[slot];
    *ret_value = leaf->is_index ? leaf->places[slot] : 0;
    return true;
}

const struct kinf_object *kinf__tree_object_at(const struct kinf_cursor *cursor)
{
    const struct kinf__node *leaf;
    unsigned slot;

    if (cursor->n_levels == 0)
        return NULL;
    leaf = cursor->levels[cursor->n_levels - 1].node;
    slot = cursor->levels[cursor->n_levels - 1].slot;
    return leaf->is_index ? leaf->entries[slot]->object : leaf->objects[slot];
}

void kinf__tree_advance(struct kinf_cursor *cursor)
{
    cursor->levels[cursor->n_levels - 1].slot++;
    settle_cursor(cursor);
}
