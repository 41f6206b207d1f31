/*
 * The ordered copy-on-write tree: a B+tree of counted nodes (node.h), one for the items of a store
 * and one for each index.
 *
 * A change copies what others hold and changes in place what nobody else does; it never writes into
 * a node that is shared. It leaves a record by which the change can be taken back exactly, without
 * memory, as long as the later ones were taken back before; so several trees change together or not
 * at all. What a change replaced lives until its record is settled.
 *
 * Threads: one thread may change a tree; a struct kinf__tree whose root is counted by its holder
 * may be read by any number at the same time.
 */
#ifndef KINF_INDEXER_TREE_H
#define KINF_INDEXER_TREE_H

#include <kinformer/api.h>
#include <kinformer/indexer.h>

#include "base/stop.h"
#include "indexer/node.h"

struct kinf__tree {
    struct kinf__node *root; /* NULL if empty; the holder's count */
    bool is_index;           /* keys are "value NUL key", else "key" */
};

/* --- reading --- */

/* The entry of a key, borrowed; NULL if there is none. */
struct kinf__entry *kinf__tree_get(const struct kinf__tree *tree, struct kinf__key key);
/* The same in a tree of items, for the object alone. */
const struct kinf_object *kinf__tree_get_object(const struct kinf__tree *items,
                                                struct kinf__key key);

/* Puts the cursor on the first slot that is not below `key`; fills in its levels only. */
void kinf__tree_seek(const struct kinf__tree *tree, struct kinf__key key,
                     struct kinf_cursor *cursor);
/* The slot that a cursor is on; false behind the last. */
bool kinf__tree_at(const struct kinf_cursor *cursor, struct kinf__entry **ret_entry,
                   uint32_t *ret_value);
/* The object of that slot; NULL behind the last. */
const struct kinf_object *kinf__tree_object_at(const struct kinf_cursor *cursor);
void kinf__tree_advance(struct kinf_cursor *cursor);

/* --- changing --- */

enum kinf__tree_change_type {
    KINF__TREE_UNCHANGED,
    KINF__TREE_REPLACED_ENTRY, /* in a leaf, in place */
    KINF__TREE_INSERTED_SLOT,
    KINF__TREE_REMOVED_SLOT,
    KINF__TREE_REPLACED_NODE, /* a child of an inner node, or the root */
};

/* What one change did. */
struct kinf__tree_change {
    enum kinf__tree_change_type type;
    unsigned slot;
    struct kinf__tree *tree;
    struct kinf__node *node; /* that was changed in place; NULL: the root pointer */
    struct kinf__node *old_node;
    struct kinf__entry *old_entry;
    uint32_t old_value;
    struct kinf__entry *found; /* what the key had; NULL: nothing. Until this is settled */
};

/* Inserts an entry, or replaces the one that has the same key; `value` is the offset of the value
 * in it (trees of an index). Takes a count of its own. Errors: KINF_ERR_NO_MEMORY, nothing changed.
 */
KINF_MUST_CHECK int kinf__tree_set(struct kinf__tree *tree, struct kinf__entry *entry,
                                   uint32_t value, struct kinf__tree_change *ret_change);

/* Removes the slot of a key; that there is none is no error. Errors: KINF_ERR_NO_MEMORY, nothing
 * changed. */
KINF_MUST_CHECK int kinf__tree_remove(struct kinf__tree *tree, struct kinf__key key,
                                      struct kinf__tree_change *ret_change);

void kinf__tree_take_back(struct kinf__tree_change *change);
/* Gives up what the change replaced. */
void kinf__tree_settle(struct kinf__tree_change *change, struct kinf__dead_nodes *dead);

/* --- as a whole --- */

struct kinf__tree_item {
    struct kinf__entry *entry;
    uint32_t value;
};

/* Builds a tree from items in strictly rising order, with counts of its own. Errors:
 * KINF_ERR_NO_MEMORY, KINF_ERR_STOPPED (`stop`, which may be NULL, was set before all items were in).
 */
KINF_MUST_CHECK int kinf__tree_build(bool is_index, const struct kinf__tree_item *items,
                                     size_t n_items, const struct kinf__stop *stop,
                                     struct kinf__tree *ret_tree);

/* NULL if the tree is as it should be, else what is wrong. Stores how many slots it has. */
const char *kinf__tree_check(const struct kinf__tree *tree, size_t *ret_n_slots);

#endif
