/*
 * An intrusive hash map: chains of nodes that live in their entries. The caller compares keys.
 * Hashes are keyed with a random number of the process (SipHash-1-3), since names come from users.
 *
 * Threads: one thread per map, or under its owner's lock.
 */
#ifndef KINF_BASE_HMAP_H
#define KINF_BASE_HMAP_H

#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/str.h>

#include "base/compiler.h"

struct kinf__hmap_node {
    struct kinf__hmap_node *next;
    uint64_t hash;
};

struct kinf__hmap {
    struct kinf__hmap_node **buckets;
    size_t n_buckets; /* zero or a power of two */
    size_t n_nodes;
};

#define KINF__HMAP_INIT                                                                            \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

uint64_t kinf__hash(struct kinf_str key);

/* Frees the buckets; the nodes are the caller's. */
void kinf__hmap_release(struct kinf__hmap *map);

/* Links a node; two with the same key may stand beside each other. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__hmap_insert(struct kinf__hmap *map, struct kinf__hmap_node *node,
                                      uint64_t hash);

/* Room for `n_more` nodes, which kinf__hmap_insert_reserved() then links without a failure. Errors:
 * KINF_ERR_NO_MEMORY, nothing changed. */
KINF_MUST_CHECK int kinf__hmap_reserve(struct kinf__hmap *map, size_t n_more);
void kinf__hmap_insert_reserved(struct kinf__hmap *map, struct kinf__hmap_node *node,
                                uint64_t hash);

void kinf__hmap_remove(struct kinf__hmap *map, struct kinf__hmap_node *node);

/* The first node of this hash, and the next one with the same; NULL at the end. */
struct kinf__hmap_node *kinf__hmap_first_with_hash(const struct kinf__hmap *map, uint64_t hash);
struct kinf__hmap_node *kinf__hmap_next_with_hash(const struct kinf__hmap_node *node);

#endif
