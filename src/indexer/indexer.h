/*
 * What the rest of the library needs of an indexer beyond the public calls.
 *
 * Threads: any thread.
 */
#ifndef KINF_INDEXER_INDEXER_H
#define KINF_INDEXER_INDEXER_H

#include <kinformer/indexer.h>

/* Frees what large versions left behind, until about `max_nodes` counts of nodes and objects were
 * given up. Returns whether more is left; once nothing is, memory goes back to the system. For the
 * processor thread when it has nothing better to do: writes free only a little each. */
bool kinf__indexer_reap(struct kinf_indexer *indexer, size_t max_nodes);

/* NULL if the current version is as it should be, else what is wrong. */
const char *kinf__indexer_check(struct kinf_indexer *indexer);

#endif
