/*
 * Versions made as a whole: from a list of objects, or from another version for more indices.
 *
 * Threads: any thread, with no lock held: index functions run here.
 */
#ifndef KINF_INDEXER_REBUILD_H
#define KINF_INDEXER_REBUILD_H

#include "base/stop.h"
#include "indexer/snapshot.h"

/* A version of these objects with the indices of `base`; of two with one key the last counts.
 * Objects that are in `base` keep their entries, and if all of them are it shares all of its trees.
 * The resourceVersion is left empty. Errors: KINF_ERR_NO_MEMORY, KINF_ERR_STOPPED (`stop`, which
 * may be NULL, was set). */
KINF_MUST_CHECK int kinf__snapshot_build(const struct kinf_snapshot *base,
                                         const struct kinf_object *const *objects, size_t n_objects,
                                         struct kinf_index_values *values,
                                         const struct kinf__stop *stop,
                                         struct kinf_snapshot **ret_snapshot);

/* The objects and the resourceVersion of `base`, with the indices of `set`, which begins with those
 * of `base`. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__snapshot_reindex(const struct kinf_snapshot *base,
                                           struct kinf__index_set *set,
                                           struct kinf_index_values *values,
                                           struct kinf_snapshot **ret_snapshot);

#endif
