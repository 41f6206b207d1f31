/*
 * Keys of tree slots: two runs of bytes that are compared as if they stood behind each other, so
 * that "value NUL key" needs no copy.
 *
 * Threads: as safe as the bytes that they show.
 */
#ifndef KINF_INDEXER_KEY_H
#define KINF_INDEXER_KEY_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include <kinformer/str.h>

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

#endif
