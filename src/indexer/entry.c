/*
 * The life of entries, and comparing their keys. Neighbours: index_set.c computes what they hold, node.c
 * counts them and searches with their keys, as tree.c does.
 */
#include "indexer/entry.h"

#include <stdlib.h>

/* --- keys --- */

static size_t common_bytes(const char *a, const char *b, size_t len)
{
    size_t at = 0;

    while (len - at >= sizeof(uint64_t)) {
        uint64_t left, right;

        memcpy(&left, a + at, sizeof left);
        memcpy(&right, b + at, sizeof right);
        if (left != right)
            return at + (size_t)__builtin_clzll(be64toh(left) ^ be64toh(right)) / 8;
        at += sizeof(uint64_t);
    }
    while (at < len && a[at] == b[at])
        at++;
    return at;
}

/* Drops `len` bytes of the head; an empty head gives way to the tail. */
static void advance(struct kinf__key *key, size_t len)
{
    if (len != 0) {
        key->head.bytes += len;
        key->head.len -= len;
    }
    if (key->head.len == 0) {
        key->head = key->tail;
        key->tail.len = 0;
    }
}

/* Drops the common front of both and returns its length. */
static size_t skip_common(struct kinf__key *a, struct kinf__key *b)
{
    size_t total = 0, len, common;

    if (a->head.len == 0)
        advance(a, 0);
    if (b->head.len == 0)
        advance(b, 0);
    while (a->head.len != 0 && b->head.len != 0) {
        len = a->head.len < b->head.len ? a->head.len : b->head.len;
        common = common_bytes(a->head.bytes, b->head.bytes, len);
        total += common;
        advance(a, common);
        advance(b, common);
        if (common < len)
            break;
    }
    return total;
}

size_t kinf__key_common(struct kinf__key a, struct kinf__key b)
{
    return skip_common(&a, &b);
}

static int compare_pieces(struct kinf__key a, struct kinf__key b)
{
    skip_common(&a, &b);
    if (a.head.len == 0 || b.head.len == 0)
        return (a.head.len != 0) - (b.head.len != 0);
    return (unsigned char)*a.head.bytes < (unsigned char)*b.head.bytes ? -1 : 1;
}

int kinf__key_compare(const struct kinf__key *a, const struct kinf__key *b)
{
    int order;

    if (a->head.len != b->head.len)
        return compare_pieces(*a, *b);
    order = kinf_str_compare(a->head, b->head);
    return order != 0 ? order : kinf_str_compare(a->tail, b->tail);
}

void kinf__key_copy(char *to, struct kinf__key key)
{
    if (key.head.len != 0)
        memcpy(to, key.head.bytes, key.head.len);
    if (key.tail.len != 0)
        memcpy(to + key.head.len, key.tail.bytes, key.tail.len);
}

/* --- entries --- */

struct kinf__entry *kinf__entry_new(const struct kinf_object *object, const char *values,
                                    const uint32_t *starts, uint32_t n_indices)
{
    size_t starts_size = n_indices != 0 ? (n_indices + 1) * sizeof starts[0] : 0;
    size_t values_len = n_indices != 0 ? starts[n_indices] : 0;
    struct kinf__entry *entry = malloc(sizeof *entry + starts_size + values_len);

    if (entry == NULL)
        return NULL;
    atomic_init(&entry->refs, 1);
    entry->n_indices = n_indices;
    entry->object = kinf_object_ref(object);
    for (uint32_t i = 0; i <= n_indices && n_indices != 0; i++)
        entry->starts[i] = (uint32_t)(sizeof *entry + starts_size) + starts[i];
    if (values_len != 0)
        memcpy((char *)entry + sizeof *entry + starts_size, values, values_len);
    return entry;
}

void kinf__entry_unref(struct kinf__entry *entry)
{
    if (atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) != 1)
        return;
    kinf_object_unref(entry->object);
    free(entry);
}
