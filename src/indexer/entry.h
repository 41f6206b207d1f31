/*
 * What a tree slot points at: one entry per stored object, shared by the tree of items and the
 * trees of all indices, with the object's index values packed behind it. It never changes after
 * publication, but for its count.
 *
 * Threads: any thread.
 */
#ifndef KINF_INDEXER_ENTRY_H
#define KINF_INDEXER_ENTRY_H

#include <stdatomic.h>
#include <stdint.h>

#include "indexer/key.h"
#include "object/object.h"

struct kinf__entry {
    _Atomic(uint32_t) refs; /* atomic */
    uint32_t n_indices;
    const struct kinf_object *object; /* the entry's own reference */
    /* Index i has the values from starts[i] up to starts[i + 1]: offsets from the entry's
     * beginning, each value with its NUL, sorted, no two the same. */
    uint32_t starts[];
};

/* Makes an entry with one reference, and takes one of the object. `values` holds `starts` relative
 * to its first byte; both are copied. NULL when out of memory. */
struct kinf__entry *kinf__entry_new(const struct kinf_object *object, const char *values,
                                    const uint32_t *starts, uint32_t n_indices);
void kinf__entry_unref(struct kinf__entry *entry);

static inline struct kinf__entry *kinf__entry_ref(struct kinf__entry *entry)
{
    atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    return entry;
}

/* The value at an offset, with its NUL: the entry's own. */
static inline struct kinf_str kinf__entry_value(const struct kinf__entry *entry, uint32_t offset)
{
    return kinf_str_from((const char *)entry + offset);
}

static inline struct kinf_str kinf__object_key(const struct kinf_object *object)
{
    struct kinf_str key = { object->text, 0 };

    /* A key often reaches into a second line of the cache: ask for both at once. */
    __builtin_prefetch((const char *)object + 64);
    key.len = object->uid_offset - 1U; /* the uid stands behind the key's NUL */
    return key;
}

/* The key in the tree of items. */
static inline struct kinf__key kinf__object_item_key(const struct kinf_object *object)
{
    struct kinf__key key = { { NULL, 0 }, kinf__object_key(object) };

    return key;
}

/* The key in the tree of an index, for the value at an offset: "value NUL key". */
static inline struct kinf__key kinf__entry_index_key(const struct kinf__entry *entry,
                                                     uint32_t offset)
{
    struct kinf__key key = { kinf__entry_value(entry, offset), kinf__object_key(entry->object) };

    key.head.len++;
    return key;
}

#endif
