/*
 * Searching and changing the tree. Neighbours: node.c has the nodes, indexer.c changes several
 * trees together, snapshot.c reads.
 *
 * A change goes down to its leaf and notes the path. If every node on it is the writer's own and
 * the leaf keeps a permitted size, the leaf changes in place. Otherwise nodes are made anew from
 * the leaf up (a copy, or what a split or a join makes), until one new node takes the place of one
 * old and the parent is the writer's own: writing that one pointer publishes the change. Nothing
 * that existed is touched before, so a failed allocation leaves no trace.
 */
#include "indexer/tree.h"

#include <assert.h>
#include <stdlib.h>

/* Two nodes that are joined stay one up to this size, so that the next insertion does not split. */
#define JOINED_MAX (KINF__NODE_FANOUT * 3 / 4)

/* The way from the root to a leaf. */
struct path {
    struct kinf__node *nodes[KINF__TREE_MAX_LEVELS];
    unsigned slots[KINF__TREE_MAX_LEVELS]; /* taken in each; in the leaf: the key's */
    unsigned n;
    unsigned n_own; /* the first so many may be changed in place */
    bool is_found;
};

/* The separators on both sides of a node, as far as there are any. */
struct bounds {
    struct kinf__key low;
    struct kinf__key high;
    bool has_low;
    bool has_high;
};

/* Slots [first, first + n_old) of a node give way to new ones. A new child in front keeps the
 * separator of the child whose place it takes. */
struct edit {
    unsigned first;
    unsigned n_old;
    unsigned n_new;
    struct kinf__slot slots[2];
};

/* The slots from which one or two nodes are made, and which slots of the parent they replace. */
struct gathered {
    struct kinf__slot slots[2 * KINF__NODE_FANOUT + 1];
    unsigned n;
    unsigned first_in_parent;
    unsigned n_in_parent;
    bool is_appended; /* the edit was at the end */
};

/* --- the way to a leaf --- */

static void go_down(const struct kinf__tree *tree, const struct kinf__key *key, struct path *path)
{
    struct kinf__node *node = tree->root;
    bool is_own = true;

    path->n = 0;
    path->n_own = 0;
    for (;;) {
        kinf__node_prefetch(node);
        is_own = is_own && kinf__node_is_own(node);
        path->n_own += is_own;
        if (!is_own)
            kinf__node_prefetch_counts(node); /* they rise when it is copied */
        path->nodes[path->n] = node;
        if (node->level == 0)
            break;
        path->slots[path->n] = kinf__inner_search(node, key);
        node = node->children[path->slots[path->n]];
        path->n++;
    }
    path->slots[path->n] = kinf__leaf_search(node, key, &path->is_found);
    path->n++;
}

/* Finds the separators around slots [first, first + n) of the node at `depth`. */
static void find_bounds(const struct path *path, unsigned depth, unsigned first, unsigned n,
                        struct bounds *ret_bounds)
{
    *ret_bounds = (struct bounds){ .has_low = false };
    for (unsigned i = depth + 1; i-- > 0 && !(ret_bounds->has_low && ret_bounds->has_high);) {
        if (!ret_bounds->has_low && first > 0) {
            ret_bounds->low = kinf__node_separator(path->nodes[i], first);
            ret_bounds->has_low = true;
        }
        if (!ret_bounds->has_high && first + n < path->nodes[i]->n_slots) {
            ret_bounds->high = kinf__node_separator(path->nodes[i], first + n);
            ret_bounds->has_high = true;
        }
        if (i > 0) {
            first = path->slots[i - 1];
            n = 1;
        }
    }
}

/* --- making nodes anew --- */

/* Writes the node's slots with the edit done to them. */
static unsigned edited_slots(const struct kinf__node *node, const struct edit *edit,
                             struct kinf__slot *ret_slots)
{
    unsigned n_behind = node->n_slots - edit->first - edit->n_old;
    struct kinf__key separator = { { NULL, 0 }, { NULL, 0 } };

    kinf__node_slots(node, ret_slots);
    if (node->level != 0)
        separator = ret_slots[edit->first].separator;
    memmove(&ret_slots[edit->first + edit->n_new], &ret_slots[edit->first + edit->n_old],
            n_behind * sizeof ret_slots[0]);
    memcpy(&ret_slots[edit->first], edit->slots, edit->n_new * sizeof ret_slots[0]);
    if (node->level != 0)
        ret_slots[edit->first].separator = separator;
    return edit->first + edit->n_new + n_behind;
}

/* Puts the slots of the sibling in front, or behind where there is none in front. */
static void join_sibling(const struct path *path, unsigned depth, struct gathered *all)
{
    const struct kinf__node *parent = path->nodes[depth - 1];
    const struct kinf__node *sibling;
    unsigned slot = path->slots[depth - 1];

    all->n_in_parent = 2;
    all->is_appended = false;
    if (slot > 0) {
        sibling = parent->children[slot - 1];
        memmove(&all->slots[sibling->n_slots], all->slots, all->n * sizeof all->slots[0]);
        kinf__node_slots(sibling, all->slots);
        all->slots[sibling->n_slots].separator = kinf__node_separator(parent, slot);
        all->first_in_parent = slot - 1;
    } else {
        sibling = parent->children[1];
        kinf__node_slots(sibling, &all->slots[all->n]);
        all->slots[all->n].separator = kinf__node_separator(parent, 1);
    }
    all->n += sibling->n_slots;
}

static void gather(const struct path *path, unsigned depth, const struct edit *edit,
                   struct gathered *all)
{
    all->n = edited_slots(path->nodes[depth], edit, all->slots);
    all->is_appended = edit->first + edit->n_new == all->n;
    all->first_in_parent = depth > 0 ? path->slots[depth - 1] : 0;
    all->n_in_parent = 1;
    if (depth > 0 && all->n < KINF__NODE_MIN)
        join_sibling(path, depth, all);
}

/* How many of the slots the first of the new nodes gets. Keys that come in rising order leave nodes
 * behind that nothing is added to, so those are left fuller. */
static unsigned choose_split(const struct gathered *all)
{
    if (all->n <= (all->n_in_parent == 1 ? KINF__NODE_FANOUT : JOINED_MAX))
        return all->n;
    return all->is_appended ? all->n - all->n / 4 : all->n / 2;
}

static struct kinf__key leaf_slot_key(bool is_index, const struct kinf__slot *slot)
{
    return is_index ? kinf__entry_index_key(slot->entry, slot->value)
                    : kinf__object_item_key(slot->entry->object);
}

static struct kinf__key separator_at(const struct kinf__node *node, const struct gathered *all,
                                     unsigned split)
{
    if (node->level != 0)
        return all->slots[split].separator;
    return kinf__key_between(leaf_slot_key(node->is_index, &all->slots[split - 1]),
                             leaf_slot_key(node->is_index, &all->slots[split]));
}

/* Makes one or two nodes of what was gathered and turns the edit into that of the parent. */
static int make_nodes(const struct path *path, unsigned depth, const struct gathered *all,
                      struct edit *edit)
{
    const struct kinf__node *node = path->nodes[depth];
    unsigned split = choose_split(all);
    struct kinf__node *left = kinf__node_alloc(node->level, node->is_index, all->slots, split);
    struct kinf__node *right = NULL;
    struct kinf__key separator = { { NULL, 0 }, { NULL, 0 } };
    const struct kinf__key *between = NULL, *low, *high;
    struct bounds bounds = { .has_low = false };

    if (left != NULL && split < all->n) {
        right = kinf__node_alloc(node->level, node->is_index, all->slots + split, all->n - split);
        separator = separator_at(node, all, split);
        between = &separator;
    }
    if (left == NULL || (between != NULL && right == NULL)) {
        free(left);
        return KINF_ERR_NO_MEMORY;
    }
    if (depth > 0)
        find_bounds(path, depth - 1, all->first_in_parent, all->n_in_parent, &bounds);
    low = bounds.has_low ? &bounds.low : NULL;
    high = bounds.has_high ? &bounds.high : NULL;
    kinf__node_fill(left, all->slots, split,
                    kinf__node_common_prefix(low, between != NULL ? between : high));
    if (right != NULL)
        kinf__node_fill(right, all->slots + split, all->n - split,
                        kinf__node_common_prefix(between, high));
    *edit = (struct edit){
        .first = all->first_in_parent,
        .n_old = all->n_in_parent,
        .n_new = right != NULL ? 2 : 1,
        .slots = { { .child = left, .is_counted = true, .prefix_len = KINF__SLOT_NO_FRAGMENT },
                   { .child = right,
                     .is_counted = true,
                     .prefix_len = KINF__SLOT_NO_FRAGMENT,
                     .separator = separator } },
    };
    return 0;
}

/* Puts the edit into the node at `depth`, and turns it into that of the parent or the root pointer.
 */
static int renew(const struct path *path, unsigned depth, struct edit *edit)
{
    const struct kinf__node *node = path->nodes[depth];
    struct gathered all;

    gather(path, depth, edit, &all);
    if (depth == 0 && all.n == (node->level != 0 ? 1 : 0)) {
        edit->first = 0;
        edit->n_old = 1;
        edit->n_new = all.n;
        edit->slots[0] = all.slots[0];
        assert(all.n == 0 || all.slots[0].is_counted); /* two children were joined to it */
        return 0;
    }
    return make_nodes(path, depth, &all, edit);
}

/* The same where one child gives way to one: nothing but the pointer differs. */
static int renew_pointer(const struct path *path, unsigned depth, struct edit *edit)
{
    struct kinf__node *copy = kinf__node_copy(path->nodes[depth], edit->first);

    if (copy == NULL)
        return KINF_ERR_NO_MEMORY;
    copy->children[edit->first] = edit->slots[0].child;
    edit->first = depth > 0 ? path->slots[depth - 1] : 0;
    edit->slots[0].child = copy;
    return 0;
}

static bool is_pointer_edit(const struct path *path, unsigned depth, const struct edit *edit)
{
    return path->nodes[depth]->level != 0 && edit->n_old == 1 && edit->n_new == 1;
}

static void free_new_nodes(struct edit *edit)
{
    struct kinf__dead_nodes dead = KINF__DEAD_NODES_INIT;

    for (unsigned i = 0; i < edit->n_new; i++)
        kinf__node_unref(edit->slots[i].child, &dead);
    kinf__dead_nodes_free(&dead, SIZE_MAX);
}

static void publish(struct kinf__tree *tree, struct kinf__node *node, unsigned slot,
                    struct kinf__node *child, struct kinf__tree_change *ret_change)
{
    struct kinf__node **place = node != NULL ? &node->children[slot] : &tree->root;

    *ret_change = (struct kinf__tree_change){ .type = KINF__TREE_REPLACED_NODE,
                                              .slot = slot,
                                              .tree = tree,
                                              .node = node,
                                              .old_node = *place };
    *place = child;
}

static int publish_root(struct kinf__tree *tree, struct edit *edit,
                        struct kinf__tree_change *ret_change)
{
    struct kinf__node *root = edit->n_new != 0 ? edit->slots[0].child : NULL;

    if (edit->n_new == 2) {
        unsigned level = root->level + 1U;

        assert(level < KINF__TREE_MAX_LEVELS);
        root = kinf__node_alloc(level, tree->is_index, edit->slots, 2);
        if (root == NULL)
            return KINF_ERR_NO_MEMORY;
        kinf__node_fill(root, edit->slots, 2, 0);
    }
    publish(tree, NULL, 0, root, ret_change);
    return 0;
}

/* Carries an edit up from the node at depth n - 1 (0: of the root pointer) to where one pointer
 * publishes it. */
static int apply(struct kinf__tree *tree, const struct path *path, unsigned n, struct edit *edit,
                 struct kinf__tree_change *ret_change)
{
    for (unsigned depth = n; depth-- > 0;) {
        bool is_pointer = is_pointer_edit(path, depth, edit);

        if (is_pointer && depth < path->n_own) {
            publish(tree, path->nodes[depth], edit->first, edit->slots[0].child, ret_change);
            return 0;
        }
        if ((is_pointer ? renew_pointer : renew)(path, depth, edit) < 0) {
            if (depth + 1 < path->n)
                free_new_nodes(edit);
            return KINF_ERR_NO_MEMORY;
        }
    }
    if (publish_root(tree, edit, ret_change) < 0) {
        free_new_nodes(edit);
        return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* --- changes --- */

/* What is to happen to the slot at the end of a path. */
struct intent {
    struct kinf__entry *entry; /* NULL: the slot goes */
    uint32_t value;
};

static int set_first(struct kinf__tree *tree, const struct intent *intent,
                     struct kinf__tree_change *ret_change)
{
    struct kinf__slot slot = { .entry = intent->entry,
                               .value = intent->value,
                               .prefix_len = KINF__SLOT_NO_FRAGMENT };
    struct kinf__node *leaf = kinf__node_alloc(0, tree->is_index, &slot, 1);

    if (leaf == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__node_fill(leaf, &slot, 1, 0);
    publish(tree, NULL, 0, leaf, ret_change);
    return 0;
}

/* Whether the leaf has a permitted size afterwards. */
static bool is_local(const struct path *path, const struct intent *intent)
{
    unsigned n = path->nodes[path->n - 1]->n_slots;

    if (intent->entry == NULL)
        return n > (path->n == 1 ? 1 : KINF__NODE_MIN);
    return path->is_found || n < KINF__NODE_FANOUT;
}

/* Does it to a leaf of the writer's own; the count of what was there is the caller's from now on.
 */
static void change_leaf(struct kinf__node *leaf, const struct path *path,
                        const struct intent *intent)
{
    unsigned slot = path->slots[path->n - 1];

    if (intent->entry == NULL) {
        kinf__leaf_remove(leaf, slot);
        return;
    }
    kinf__entry_ref(intent->entry);
    if (path->is_found)
        kinf__leaf_put(leaf, slot, intent->entry, intent->value);
    else
        kinf__leaf_insert(leaf, slot, intent->entry, intent->value);
}

static void change_in_place(struct kinf__tree *tree, const struct path *path,
                            const struct intent *intent, struct kinf__tree_change *ret_change)
{
    struct kinf__node *leaf = path->nodes[path->n - 1];
    unsigned slot = path->slots[path->n - 1];

    *ret_change = (struct kinf__tree_change){
        .type = KINF__TREE_INSERTED_SLOT, .slot = slot, .tree = tree, .node = leaf
    };
    if (path->is_found) {
        ret_change->type =
            intent->entry != NULL ? KINF__TREE_REPLACED_ENTRY : KINF__TREE_REMOVED_SLOT;
        ret_change->old_entry = leaf->entries[slot];
        ret_change->old_value = leaf->is_index ? leaf->places[slot] : 0;
    }
    change_leaf(leaf, path, intent);
}

static int change_copy(struct kinf__tree *tree, const struct path *path,
                       const struct intent *intent, struct kinf__tree_change *ret_change)
{
    const struct kinf__node *leaf = path->nodes[path->n - 1];
    unsigned slot = path->is_found ? path->slots[path->n - 1] : leaf->n_slots;
    struct kinf__node *copy = kinf__node_copy(leaf, slot);
    struct edit edit = { .n_old = 1, .n_new = 1 };

    if (copy == NULL)
        return KINF_ERR_NO_MEMORY;
    change_leaf(copy, path, intent);
    edit.first = path->n > 1 ? path->slots[path->n - 2] : 0;
    edit.slots[0].child = copy;
    return apply(tree, path, path->n - 1, &edit, ret_change);
}

/* Splits the leaf, joins it with its sibling, or empties the tree. */
static int change_sizes(struct kinf__tree *tree, const struct path *path,
                        const struct intent *intent, struct kinf__tree_change *ret_change)
{
    struct edit edit = {
        .first = path->slots[path->n - 1],
        .n_old = path->is_found ? 1 : 0,
        .n_new = intent->entry != NULL ? 1 : 0,
        .slots = { { .entry = intent->entry,
                     .value = intent->value,
                     .prefix_len = KINF__SLOT_NO_FRAGMENT } },
    };

    return apply(tree, path, path->n, &edit, ret_change);
}

static int change(struct kinf__tree *tree, const struct path *path, const struct intent *intent,
                  struct kinf__tree_change *ret_change)
{
    const struct kinf__node *leaf = path->nodes[path->n - 1];
    struct kinf__entry *found = path->is_found ? leaf->entries[path->slots[path->n - 1]] : NULL;
    int result = 0;

    if (!is_local(path, intent))
        result = change_sizes(tree, path, intent, ret_change);
    else if (path->n_own < path->n)
        result = change_copy(tree, path, intent, ret_change);
    else
        change_in_place(tree, path, intent, ret_change);
    if (result == 0)
        ret_change->found = found;
    return result;
}

int kinf__tree_set(struct kinf__tree *tree, struct kinf__entry *entry, uint32_t value,
                   struct kinf__tree_change *ret_change)
{
    const struct intent intent = { entry, value };
    struct kinf__key key =
        tree->is_index ? kinf__entry_index_key(entry, value) : kinf__object_item_key(entry->object);
    struct path path;

    if (tree->root == NULL)
        return set_first(tree, &intent, ret_change);
    go_down(tree, &key, &path);
    return change(tree, &path, &intent, ret_change);
}

int kinf__tree_remove(struct kinf__tree *tree, struct kinf__key key,
                      struct kinf__tree_change *ret_change)
{
    const struct intent intent = { NULL, 0 };
    struct path path;

    *ret_change = (struct kinf__tree_change){ .type = KINF__TREE_UNCHANGED };
    if (tree->root == NULL)
        return 0;
    go_down(tree, &key, &path);
    return path.is_found ? change(tree, &path, &intent, ret_change) : 0;
}

static void take_back_node(struct kinf__tree_change *change)
{
    struct kinf__node **place =
        change->node != NULL ? &change->node->children[change->slot] : &change->tree->root;
    struct kinf__dead_nodes dead = KINF__DEAD_NODES_INIT;

    kinf__node_unref(*place, &dead);
    *place = change->old_node;
    kinf__dead_nodes_free(&dead, SIZE_MAX);
}

void kinf__tree_take_back(struct kinf__tree_change *change)
{
    struct kinf__node *leaf = change->node;
    struct kinf__entry *entry;

    switch (change->type) {
    case KINF__TREE_UNCHANGED:
        break;
    case KINF__TREE_REPLACED_ENTRY:
        entry = leaf->entries[change->slot];
        kinf__leaf_put(leaf, change->slot, change->old_entry, change->old_value);
        kinf__entry_unref(entry);
        break;
    case KINF__TREE_INSERTED_SLOT:
        entry = leaf->entries[change->slot];
        kinf__leaf_remove(leaf, change->slot);
        kinf__entry_unref(entry);
        break;
    case KINF__TREE_REMOVED_SLOT:
        kinf__leaf_insert(leaf, change->slot, change->old_entry, change->old_value);
        break;
    case KINF__TREE_REPLACED_NODE:
        take_back_node(change);
        break;
    }
}

void kinf__tree_settle(struct kinf__tree_change *change, struct kinf__dead_nodes *dead)
{
    if (change->type == KINF__TREE_REPLACED_NODE)
        kinf__node_unref(change->old_node, dead);
    else if (change->old_entry != NULL)
        kinf__entry_unref(change->old_entry);
}
