/*
 * Nodes: allocation, counts, search within one, and filling one from slots. Neighbours: tree.c puts
 * nodes together, graveyard.c frees what dies in large numbers.
 */
#include "indexer/node.h"

#include <assert.h>
#include <stdlib.h>

#include "base/compiler.h"

/* --- counts --- */

void kinf__node_unref(struct kinf__node *node, struct kinf__dead_nodes *dead)
{
    if (node == NULL || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1)
        return;
    node->next_dead = dead->first;
    dead->first = node;
}

void kinf__node_prefetch_counts(const struct kinf__node *node)
{
    for (unsigned i = 0; i < node->n_slots; i++)
        __builtin_prefetch(node->children[i], 1);
}

static void give_up_slots(struct kinf__node *node, struct kinf__dead_nodes *dead)
{
    kinf__node_prefetch_counts(node);
    for (unsigned i = 0; i < node->n_slots; i++) {
        if (node->level == 0)
            kinf__entry_unref(node->entries[i]);
        else
            kinf__node_unref(node->children[i], dead);
    }
}

size_t kinf__dead_nodes_free(struct kinf__dead_nodes *dead, size_t max)
{
    size_t n = 0;

    while (dead->first != NULL && n < max) {
        struct kinf__node *node = dead->first;

        dead->first = node->next_dead;
        n += node->n_slots;
        give_up_slots(node, dead);
        free(node);
    }
    return n;
}

/* --- search --- */

/* How many of `n` rising fragments, at least one, are below `fragment`. Without branches that depend
 * on the data. */
static unsigned count_below(const uint64_t *fragments, unsigned n, uint64_t fragment)
{
    unsigned base = 0;

    assert(n != 0); /* no leaf is empty, and an inner node has two children */
    while (n > 1) {
        unsigned half = n / 2;

        base += fragments[base + half - 1] < fragment ? half : 0;
        n -= half;
    }
    return base + (fragments[base] < fragment);
}

static struct kinf__key slot_key(const struct kinf__node *node, unsigned slot)
{
    return node->level == 0 ? kinf__node_leaf_key(node, slot) : kinf__node_separator(node, slot);
}

/* The first slot from `first` on whose key is not below `key`. */
static unsigned search(const struct kinf__node *node, unsigned first, const struct kinf__key *key,
                       bool *ret_found)
{
    uint64_t fragment = kinf__key_fragment(*key, node->prefix_len);
    unsigned low = first + count_below(node->fragments + first, node->n_slots - first, fragment);
    unsigned high = low;

    while (high < node->n_slots && node->fragments[high] == fragment)
        high++;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        struct kinf__key other = slot_key(node, middle);
        int order = kinf__key_compare(&other, key);

        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = false;
    return low;
}

unsigned kinf__leaf_search(const struct kinf__node *leaf, const struct kinf__key *key,
                           bool *ret_found)
{
    return search(leaf, 0, key, ret_found);
}

unsigned kinf__inner_search(const struct kinf__node *inner, const struct kinf__key *key)
{
    bool found;
    unsigned slot = search(inner, 1, key, &found);

    return found ? slot : slot - 1;
}

/* --- making and filling --- */

static size_t node_size(unsigned level, bool is_index, size_t text_len)
{
    if (level == 0 && !is_index)
        return sizeof(struct kinf__node);
    return offsetof(struct kinf__node, text) + text_len;
}

static struct kinf__node *alloc_node(unsigned level, bool is_index, size_t text_len)
{
    struct kinf__node *node = malloc(node_size(level, is_index, text_len));

    if (node == NULL)
        return NULL;
    atomic_init(&node->refs, 1);
    node->level = (uint8_t)level;
    node->n_slots = 0;
    node->is_index = is_index;
    node->prefix_len = 0;
    return node;
}

struct kinf__node *kinf__node_alloc(unsigned level, bool is_index, const struct kinf__slot *slots,
                                    unsigned n_slots)
{
    size_t text_len = 0;

    for (unsigned i = 1; i < n_slots && level != 0; i++)
        text_len += kinf__key_len(slots[i].separator);
    if (text_len > UINT32_MAX)
        return NULL; /* untested: separators of 4 GiB in one node */
    return alloc_node(level, is_index, text_len);
}

void kinf__leaf_put(struct kinf__node *leaf, unsigned slot, struct kinf__entry *entry,
                    uint32_t value)
{
    leaf->entries[slot] = entry;
    if (leaf->is_index)
        leaf->places[slot] = value;
    else
        leaf->objects[slot] = entry->object;
}

static void fill_leaf(struct kinf__node *leaf, const struct kinf__slot *slots, unsigned n_slots)
{
    for (unsigned i = 0; i < n_slots; i++) {
        kinf__leaf_put(leaf, i, slots[i].entry, slots[i].value);
        kinf__entry_ref(slots[i].entry);
        leaf->fragments[i] =
            slots[i].prefix_len == leaf->prefix_len
                ? slots[i].fragment
                : kinf__key_fragment(kinf__node_leaf_key(leaf, i), leaf->prefix_len);
    }
}

static void fill_inner(struct kinf__node *inner, const struct kinf__slot *slots, unsigned n_slots)
{
    uint32_t place = 0;

    for (unsigned i = 0; i < n_slots; i++) {
        inner->children[i] = slots[i].child;
        if (!slots[i].is_counted)
            kinf__node_ref(slots[i].child);
        inner->places[i] = place;
        inner->fragments[i] = 0;
        if (i == 0)
            continue;
        kinf__key_copy(inner->text + place, slots[i].separator);
        place += (uint32_t)kinf__key_len(slots[i].separator);
        inner->fragments[i] = kinf__key_fragment(slots[i].separator, inner->prefix_len);
    }
    inner->places[n_slots] = place;
}

void kinf__node_fill(struct kinf__node *node, const struct kinf__slot *slots, unsigned n_slots,
                     uint32_t prefix_len)
{
    assert(n_slots <= KINF__NODE_FANOUT);
    node->n_slots = (uint8_t)n_slots;
    node->prefix_len = prefix_len;
    if (node->level == 0)
        fill_leaf(node, slots, n_slots);
    else
        fill_inner(node, slots, n_slots);
}

void kinf__node_slots(const struct kinf__node *node, struct kinf__slot *ret_slots)
{
    for (unsigned i = 0; i < node->n_slots; i++) {
        struct kinf__slot *slot = &ret_slots[i];

        slot->is_counted = false;
        slot->prefix_len = node->prefix_len;
        slot->fragment = node->fragments[i];
        if (node->level == 0) {
            slot->entry = node->entries[i];
            slot->value = node->is_index ? node->places[i] : 0;
        } else {
            slot->child = node->children[i];
            slot->separator = kinf__node_separator(node, i);
        }
    }
}

static void count_slot(const struct kinf__node *node, unsigned slot)
{
    if (node->level == 0)
        kinf__entry_ref(node->entries[slot]);
    else
        kinf__node_ref(node->children[slot]);
}

struct kinf__node *kinf__node_copy(const struct kinf__node *node, unsigned slot)
{
    size_t text_len = node->level != 0 ? node->places[node->n_slots] : 0;
    struct kinf__node *copy = alloc_node(node->level, node->is_index, text_len);

    if (copy == NULL)
        return NULL;
    memcpy((char *)copy + sizeof copy->refs, (const char *)node + sizeof node->refs,
           node_size(node->level, node->is_index, text_len) - sizeof node->refs);
    for (unsigned i = 0; i < copy->n_slots; i++) {
        if (i != slot)
            count_slot(copy, i);
    }
    return copy;
}

/* Moves slots [from, n_slots) of a leaf so that they begin at `to`. */
static void move_slots(struct kinf__node *leaf, unsigned from, unsigned to)
{
    size_t n = leaf->n_slots - from;

    memmove(&leaf->entries[to], &leaf->entries[from], n * sizeof leaf->entries[0]);
    memmove(&leaf->fragments[to], &leaf->fragments[from], n * sizeof leaf->fragments[0]);
    if (leaf->is_index)
        memmove(&leaf->places[to], &leaf->places[from], n * sizeof leaf->places[0]);
    else
        memmove(&leaf->objects[to], &leaf->objects[from], n * sizeof leaf->objects[0]);
}

void kinf__leaf_insert(struct kinf__node *leaf, unsigned slot, struct kinf__entry *entry,
                       uint32_t value)
{
    assert(leaf->n_slots < KINF__NODE_FANOUT);
    move_slots(leaf, slot, slot + 1);
    kinf__leaf_put(leaf, slot, entry, value);
    leaf->fragments[slot] = kinf__key_fragment(kinf__node_leaf_key(leaf, slot), leaf->prefix_len);
    leaf->n_slots++;
}

void kinf__leaf_remove(struct kinf__node *leaf, unsigned slot)
{
    move_slots(leaf, slot + 1, slot);
    leaf->n_slots--;
}

/* --- separators --- */

uint32_t kinf__node_common_prefix(const struct kinf__key *low, const struct kinf__key *high)
{
    return low != NULL && high != NULL ? (uint32_t)kinf__key_common(*low, *high) : 0;
}

struct kinf__key kinf__key_between(struct kinf__key left, struct kinf__key right)
{
    return kinf__key_cut(right, kinf__key_common(left, right) + 1);
}
