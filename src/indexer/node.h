/*
 * Nodes of the copy-on-write tree.
 *
 * A node is counted: by its parents (a snapshot's and the current version's tree share what they
 * have in common), by versions for roots, and by undo records. Who holds a count may read. The
 * writer may change a node in place only while kinf__node_is_own() holds for it and for every node
 * above it. A leaf holds counts of entries, an inner node of its children.
 *
 * Every key below a node starts with the same prefix_len bytes: those that the separators on both
 * sides of it, in the nodes above, have in common. Nobody compares them again, nor are they stored.
 * Per slot there is a fragment: the 8 bytes behind the prefix. Only slots whose fragment equals the
 * sought key's have their key read, so a search seldom leaves the node.
 *
 * Separators are texts of an inner node's own, cut as short as they still separate, so that none
 * keeps a deleted object alive. Separator i bounds child i from below; child 0 has none.
 *
 * Threads: as above; counts are atomic.
 */
#ifndef KINF_INDEXER_NODE_H
#define KINF_INDEXER_NODE_H

#include <stdbool.h>

#include "indexer/entry.h"

#define KINF__NODE_FANOUT 16
/* Every node but the root has at least as many slots, an inner root at least two. */
#define KINF__NODE_MIN (KINF__NODE_FANOUT / 4)
/* Each level holds KINF__NODE_MIN times the one above. */
#define KINF__TREE_MAX_LEVELS 16

struct kinf__node {
    _Atomic(uint32_t) refs; /* atomic */
    uint8_t level;          /* 0: leaf */
    uint8_t n_slots;
    bool is_index;
    uint32_t prefix_len;
    union {
        uint64_t fragments[KINF__NODE_FANOUT]; /* [0] of an inner node is unused */
        struct kinf__node *next_dead;          /* once refs is zero */
    };
    union {
        struct kinf__entry *entries[KINF__NODE_FANOUT];
        struct kinf__node *children[KINF__NODE_FANOUT];
    };
    union {
        /* Leaf of items: the objects of the entries, which spares most reads the way through them.
         */
        const struct kinf_object *objects[KINF__NODE_FANOUT];
        struct {
            /* Leaf of an index: where in its entry the value of each slot stands. Inner node: where
             * in the text each separator begins; one more tells where the last ends. */
            uint32_t places[KINF__NODE_FANOUT + 1];
            char text[];
        };
    };
};

/* A slot on its way from one node to another. */
struct kinf__slot {
    union {
        struct kinf__entry *entry;
        struct kinf__node *child;
    };
    bool is_counted;     /* the new node takes over a child's count instead of raising it */
    uint32_t value;      /* leaf of an index */
    uint32_t prefix_len; /* for which the fragment holds, or KINF__SLOT_NO_FRAGMENT */
    uint64_t fragment;
    struct kinf__key separator; /* in front of the child */
};
#define KINF__SLOT_NO_FRAGMENT UINT32_MAX

/* Nodes whose count fell to zero and that still hold counts themselves. */
struct kinf__dead_nodes {
    struct kinf__node *first;
};
#define KINF__DEAD_NODES_INIT                                                                      \
    {                                                                                              \
        NULL                                                                                       \
    }

static inline struct kinf__node *kinf__node_ref(struct kinf__node *node)
{
    atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}

/* Gives up a count; the node joins `dead` if it was the last. NULL is allowed. */
void kinf__node_unref(struct kinf__node *node, struct kinf__dead_nodes *dead);

/* Frees dead nodes, and what dies with them, until at least `max` counts were given up. Returns how
 * many it were. */
size_t kinf__dead_nodes_free(struct kinf__dead_nodes *dead, size_t max);

/* Whether the caller holds the only count. Acquires what those who gave theirs up did before. */
static inline bool kinf__node_is_own(const struct kinf__node *node)
{
    return atomic_load_explicit(&node->refs, memory_order_acquire) == 1;
}

static inline struct kinf__key kinf__node_separator(const struct kinf__node *inner, unsigned slot)
{
    struct kinf__key key = { { NULL, 0 },
                             { inner->text + inner->places[slot],
                               inner->places[slot + 1] - inner->places[slot] } };

    return key;
}

static inline struct kinf__key kinf__node_leaf_key(const struct kinf__node *leaf, unsigned slot)
{
    if (leaf->is_index)
        return kinf__entry_index_key(leaf->entries[slot], leaf->places[slot]);
    return kinf__object_item_key(leaf->objects[slot]);
}

/* A search reads header, fragments and one pointer of a node: asking for all of its lines at once
 * costs one wait instead of three. */
static inline void kinf__node_prefetch(const struct kinf__node *node)
{
    for (size_t at = 0; at < sizeof *node; at += 64)
        __builtin_prefetch((const char *)node + at);
}

/* Asks for the counts of what the slots point at. They are seldom in the processor's cache, and
 * asking for all at once overlaps the waits. */
void kinf__node_prefetch_counts(const struct kinf__node *node);

/* The first slot of a leaf whose key is not below `key`, maybe n_slots; *ret_found says whether it
 * is `key`. The key must lie between the separators around the leaf. */
unsigned kinf__leaf_search(const struct kinf__node *leaf, const struct kinf__key *key,
                           bool *ret_found);

/* The slot of the child under which `key` belongs. */
unsigned kinf__inner_search(const struct kinf__node *inner, const struct kinf__key *key);

/* Allocates a node for these slots; kinf__node_fill() makes it valid. In between it may only be
 * freed. NULL when out of memory. */
struct kinf__node *kinf__node_alloc(unsigned level, bool is_index, const struct kinf__slot *slots,
                                    unsigned n_slots);
/* Fills in the slots and counts what they point at. */
void kinf__node_fill(struct kinf__node *node, const struct kinf__slot *slots, unsigned n_slots,
                     uint32_t prefix_len);

/* Writes the node's slots, for others to be made from. Texts stay the node's own. */
void kinf__node_slots(const struct kinf__node *node, struct kinf__slot *ret_slots);

/* A copy of a node, which counts what every slot points at but one: the caller puts something else
 * there, or takes it out. `slot` n_slots: all are counted. NULL when out of memory. */
struct kinf__node *kinf__node_copy(const struct kinf__node *node, unsigned slot);

/* Change a leaf in place; each takes over or gives out the entry's count. */
void kinf__leaf_put(struct kinf__node *leaf, unsigned slot, struct kinf__entry *entry,
                    uint32_t value);
void kinf__leaf_insert(struct kinf__node *leaf, unsigned slot, struct kinf__entry *entry,
                       uint32_t value);
void kinf__leaf_remove(struct kinf__node *leaf, unsigned slot);

/* How many bytes a node between two separators can leave out. Either may be NULL: there is none. */
uint32_t kinf__node_common_prefix(const struct kinf__key *low, const struct kinf__key *high);

/* The shortest key above `left` and not above `right`: the front of `right`. */
struct kinf__key kinf__key_between(struct kinf__key left, struct kinf__key right);

#endif
