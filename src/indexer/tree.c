/*
 * Reading, building and checking a tree. Neighbours: node.c has the nodes, tree_change.c changes them, snapshot.c reads.
 */
#include "indexer/tree.h"

#include <stdlib.h>

#include "base/compiler.h"

/* Nodes are filled to here, so that the first insertions do not split. */
#define FILL (KINF__NODE_FANOUT * 7 / 8)

/* --- reading --- */

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

/* --- building from sorted items, level by level --- */

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

/* --- checking what node.h and tree.h promise of the structure, for tests --- */

struct check {
    const struct kinf__tree *tree;
    size_t n_slots;
};

/* Returned by every function here: what is wrong, or NULL. */
#define REQUIRE(condition, text)                                                                   \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return text;                                                                           \
    } while (0)

static const char *check_leaf(struct check *check, const struct kinf__node *leaf,
                              const struct kinf__key *low, const struct kinf__key *high)
{
    struct kinf__key key, last;

    for (unsigned i = 0; i < leaf->n_slots; i++) {
        REQUIRE(atomic_load(&leaf->entries[i]->refs) != 0, "entry without a count");
        REQUIRE(leaf->is_index || leaf->objects[i] == leaf->entries[i]->object,
                "not the entry's object");
        key = kinf__node_leaf_key(leaf, i);
        REQUIRE(i == 0 || kinf__key_compare(&last, &key) < 0, "leaf out of order");
        REQUIRE(low == NULL || kinf__key_compare(low, &key) <= 0, "key below its separator");
        REQUIRE(high == NULL || kinf__key_compare(&key, high) < 0, "key above its separator");
        REQUIRE(leaf->fragments[i] == kinf__key_fragment(key, leaf->prefix_len), "wrong fragment");
        last = key;
    }
    check->n_slots += leaf->n_slots;
    return NULL;
}

static const char *check_separators(const struct kinf__node *inner, const struct kinf__key *low,
                                    const struct kinf__key *high)
{
    struct kinf__key key, last;

    REQUIRE(inner->places[0] == 0 && inner->places[1] == 0, "first child has a separator");
    for (unsigned i = 1; i < inner->n_slots; i++) {
        REQUIRE(inner->places[i] < inner->places[i + 1], "empty separator");
        key = kinf__node_separator(inner, i);
        REQUIRE(i == 1 || kinf__key_compare(&last, &key) < 0, "separators out of order");
        REQUIRE(low == NULL || kinf__key_compare(low, &key) < 0, "separator below its own");
        REQUIRE(high == NULL || kinf__key_compare(&key, high) < 0, "separator above its own");
        REQUIRE(inner->fragments[i] == kinf__key_fragment(key, inner->prefix_len),
                "wrong fragment");
        last = key;
    }
    return NULL;
}

static const char *check_node(struct check *check, const struct kinf__node *node,
                              const struct kinf__key *low, const struct kinf__key *high)
{
    bool is_root = node == check->tree->root;
    const char *wrong;

    REQUIRE(atomic_load(&node->refs) != 0, "node without a count");
    REQUIRE(node->is_index == check->tree->is_index, "node of another kind of tree");
    REQUIRE(node->n_slots <= KINF__NODE_FANOUT, "overfull node");
    REQUIRE(node->n_slots >= (!is_root           ? KINF__NODE_MIN
                              : node->level != 0 ? 2
                                                 : 1),
            "underfull node");
    REQUIRE(node->prefix_len == kinf__node_common_prefix(low, high), "wrong prefix");
    if (node->level == 0)
        return check_leaf(check, node, low, high);
    wrong = check_separators(node, low, high);
    for (unsigned i = 0; wrong == NULL && i < node->n_slots; i++) {
        struct kinf__key below = kinf__node_separator(node, i);
        struct kinf__key above = kinf__node_separator(node, i + 1 < node->n_slots ? i + 1 : i);

        REQUIRE(node->children[i]->level + 1 == node->level, "levels differ");
        wrong = check_node(check, node->children[i], i > 0 ? &below : low,
                           i + 1 < node->n_slots ? &above : high);
    }
    return wrong;
}

const char *kinf__tree_check(const struct kinf__tree *tree, size_t *ret_n_slots)
{
    struct check check = { tree, 0 };
    const char *wrong = tree->root != NULL ? check_node(&check, tree->root, NULL, NULL) : NULL;

    *ret_n_slots = check.n_slots;
    return wrong;
}
