/*
 * Versions made as a whole: from a list that is joined with a version, or from a version for more
 * indices.
 *
 * Threads: any thread, with no lock held: index functions run here.
 */
#ifndef KINF_INDEXER_REBUILD_H
#define KINF_INDEXER_REBUILD_H

#include "base/stop.h"
#include "indexer/snapshot.h"

/* What list and version have of one key. */
struct kinf__pair {
    const struct kinf_object *object; /* of the list, borrowed; NULL: nothing */
    const struct kinf_object *old;    /* of the version; NULL: nothing */
    struct kinf__entry *old_entry;
};

/* A list and a version side by side. All zero is released. */
struct kinf__join {
    struct kinf_snapshot *base;    /* a reference */
    const struct kinf__stop *stop; /* ends the work on it; NULL: nothing does */
    /* The list in its order, then what only the version has, by key. Each key is in one pair: of an
     * object that is listed again further on there is but an empty one. */
    struct kinf__pair *pairs;
    size_t n_listed;
    size_t n_pairs;
    struct kinf__text *by_key; /* of those that are listed */
    size_t n_keys;
};

/* The one comparison of a list with the store. Both are walked by key: a list is sorted if it is
 * not, and what is the version's own object is not compared. Errors: KINF_ERR_NO_MEMORY,
 * KINF_ERR_STOPPED; the join is released then. */
KINF_MUST_CHECK int kinf__join_init(struct kinf__join *join, struct kinf_snapshot *take_base,
                                    const struct kinf_object *const *objects, size_t n_objects,
                                    const struct kinf__stop *stop);
void kinf__join_release(struct kinf__join *join);

/* A version of the listed objects, with the indices of `set`, which begins with those of the join's
 * version. The caller may have put others of the same keys in their place, or NULL. Objects that are
 * the old ones keep their entries, or at least what these know; if all are and `set` is the same,
 * all trees are shared. The resourceVersion is left empty. Errors: KINF_ERR_NO_MEMORY,
 * KINF_ERR_STOPPED. */
KINF_MUST_CHECK int kinf__snapshot_build(const struct kinf__join *join, struct kinf__index_set *set,
                                         struct kinf_index_values *values,
                                         struct kinf_snapshot **ret_snapshot);

/* The objects and the resourceVersion of `base`, with the indices of `set`, which begins with those
 * of `base`. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__snapshot_reindex(const struct kinf_snapshot *base,
                                           struct kinf__index_set *set,
                                           struct kinf_index_values *values,
                                           struct kinf_snapshot **ret_snapshot);

#endif
