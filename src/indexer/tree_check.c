/*
 * Checking a whole tree: what node.h and tree.h promise of its structure. Neighbours: model tests
 * call it after each step.
 */
#include "indexer/tree.h"

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
