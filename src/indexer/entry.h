/*
 * What a tree slot points at: one entry per stored object, shared by the tree of items and the
 * trees of all indices, with the object's index values packed behind it. It never changes after
 * publication, but for its count. And its keys: two runs of bytes that are compared as if they stood
 * behind each other, so that "value NUL key" needs no copy.
 *
 * Threads: any thread; keys are as safe as the bytes that they show.
 */
#ifndef KINF_INDEXER_ENTRY_H
#define KINF_INDEXER_ENTRY_H

#include <endian.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "object/object.h"

/* --- keys --- */

struct kinf__key {
    struct kinf_str head;
    struct kinf_str tail;
};

static inline size_t kinf__key_len(struct kinf__key key)
{
    return key.head.len + key.tail.len;
}

/* The first `len` bytes of a key that has as many. */
static inline struct kinf__key kinf__key_cut(struct kinf__key key, size_t len)
{
    if (len <= key.head.len) {
        key.head.len = len;
        key.tail.len = 0;
    } else {
        key.tail.len = len - key.head.len;
    }
    return key;
}

/* Bytes that both have in common at the front. */
size_t kinf__key_common(struct kinf__key a, struct kinf__key b);

/* Bytewise order, a prefix first: negative, zero or positive. */
int kinf__key_compare(const struct kinf__key *a, const struct kinf__key *b);

void kinf__key_copy(char *to, struct kinf__key key);

/* Up to 8 bytes behind the first `skip`, the first one uppermost, zero where there is none. Rises
 * with the key among keys that share `skip` bytes; different keys may have the same. */
static inline uint64_t kinf__key_fragment(struct kinf__key key, size_t skip)
{
    unsigned char bytes[8] = { 0 };
    size_t n_head = 0, n_tail;
    uint64_t fragment;

    if (skip < key.head.len) {
        n_head = key.head.len - skip < sizeof bytes ? key.head.len - skip : sizeof bytes;
        memcpy(bytes, key.head.bytes + skip, n_head);
        skip = 0;
    } else {
        skip -= key.head.len;
    }
    if (n_head < sizeof bytes && skip < key.tail.len) {
        n_tail = key.tail.len - skip < sizeof bytes - n_head ? key.tail.len - skip
                                                             : sizeof bytes - n_head;
        memcpy(bytes + n_head, key.tail.bytes + skip, n_tail);
    }
    memcpy(&fragment, bytes, sizeof fragment);
    return be64toh(fragment);
}

/* --- entries --- */

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
