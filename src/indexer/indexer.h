/*
 * What the rest of the library needs of an indexer beyond the public calls.
 *
 * Threads: any thread.
 */
#ifndef KINF_INDEXER_INDEXER_H
#define KINF_INDEXER_INDEXER_H

#include <kinformer/indexer.h>

#include "object/object.h"

struct kinf__join;

/* Whose store it is. Before anybody else has the indexer. */
void kinf__indexer_set_owner(struct kinf_indexer *indexer, const void *owner);
/* The owner of the store that this thread is adding indices to, so that an index function runs, while
 * writes to it wait; NULL: none. */
const void *kinf__indexer_adding_for(void);

/* Frees what large versions left behind, until about `max_nodes` counts of nodes and objects were
 * given up. Returns whether more is left; once nothing is, memory goes back to the system. For the
 * processor thread when it has nothing better to do: writes free only a little each. */
bool kinf__indexer_reap(struct kinf_indexer *indexer, size_t max_nodes);
/* Whether that has, or may come to have, something to do without a further write: somebody has an old
 * version. */
bool kinf__indexer_may_have_garbage(const struct kinf_indexer *indexer);

/* From now on a write does not wait until an index has been added, which takes as long as the store
 * is large: it gets KINF_ERR_STOPPED. Indices can still be added. */
void kinf__indexer_interrupt(struct kinf_indexer *indexer);

/* kinf_indexer_replace() by a list that was joined with a version of this indexer. Errors besides:
 * KINF_ERR_STOPPED (the join's `stop` was set, or it was interrupted), nothing changed. */
KINF_MUST_CHECK int kinf__indexer_replace(struct kinf_indexer *indexer,
                                          const struct kinf__join *join,
                                          const char *resource_version, struct kinf_error *err);

/* Told each index over a path (role "indices") that has no value although there are objects. */
void kinf__indexer_each_unmet(struct kinf_indexer *indexer, kinf__unmet_path_cb *callback,
                              void *ctx);

/* NULL if the current version is as it should be, else what is wrong. */
const char *kinf__indexer_check(struct kinf_indexer *indexer);

#endif
