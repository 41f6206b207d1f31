/*
 * A version of the store: what a snapshot is from the inside.
 *
 * The indexer holds the current version; it changes it in place only while nobody else holds it.
 *
 * Threads: constant for those who hold a reference, which are taken under the indexer's lock.
 */
#ifndef KINF_INDEXER_SNAPSHOT_H
#define KINF_INDEXER_SNAPSHOT_H

#include "indexer/graveyard.h"
#include "indexer/index_set.h"
#include "indexer/tree.h"

#define KINF__RESOURCE_VERSION_SIZE 64

struct kinf_snapshot {
    _Atomic(uint32_t) refs;            /* atomic */
    struct kinf__graveyard *graveyard; /* a reference */
    struct kinf__index_set *set;       /* a reference */
    uint64_t n_writes;                 /* of the store, up to this version */
    size_t count;
    char resource_version[KINF__RESOURCE_VERSION_SIZE];
    struct kinf__tree items;
    struct kinf__tree indices[]; /* set->n */
};

/* An empty version with one reference; NULL when out of memory. */
struct kinf_snapshot *kinf__snapshot_new(struct kinf__graveyard *graveyard,
                                         struct kinf__index_set *set);
/* Another version with the same content; NULL when out of memory. */
struct kinf_snapshot *kinf__snapshot_copy(const struct kinf_snapshot *from);
/* Gives a version the resourceVersion and the number of writes of another one. */
void kinf__snapshot_date(struct kinf_snapshot *to, const struct kinf_snapshot *from);
/* Shares the trees of a version with the same indices; `to` must be empty. */
void kinf__snapshot_share(struct kinf_snapshot *to, const struct kinf_snapshot *from);

/* NULL if the version is as it should be, else what is wrong: its trees, and whether each index has
 * exactly the values of every entry. */
const char *kinf__snapshot_check(const struct kinf_snapshot *snapshot);

#endif
