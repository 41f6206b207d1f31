/*
 * Nodes waiting to be freed, so that nobody pays for a large version alone: letting go of 150,000
 * objects takes about 0.1 s. It outlives its indexer while snapshots are held.
 *
 * Threads: any thread.
 */
#ifndef KINF_INDEXER_GRAVEYARD_H
#define KINF_INDEXER_GRAVEYARD_H

#include "indexer/node.h"

struct kinf__graveyard;

/* With one reference; NULL when out of memory. */
struct kinf__graveyard *kinf__graveyard_new(void);
struct kinf__graveyard *kinf__graveyard_ref(struct kinf__graveyard *graveyard);
/* The last one frees what is left. */
void kinf__graveyard_unref(struct kinf__graveyard *graveyard);

/* Frees a small number of nodes at once and keeps the rest for later. */
void kinf__graveyard_bury(struct kinf__graveyard *graveyard, struct kinf__dead_nodes *dead);

/* Frees until about `max` counts of nodes and entries were given up. Returns whether more is left.
 */
bool kinf__graveyard_reap(struct kinf__graveyard *graveyard, size_t max);

/* Whether there is something to free, or will be when somebody lets go of a version that is not the
 * newest. Each version has a reference to the graveyard, as the indexer does. */
bool kinf__graveyard_may_fill(const struct kinf__graveyard *graveyard);

/* Gives memory back to the system if the graveyard ran empty after much was freed. */
void kinf__graveyard_trim(struct kinf__graveyard *graveyard);

#endif
