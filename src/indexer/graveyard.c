/*
 * Freeing in slices. Neighbours: snapshot.c and indexer.c bury, the processor thread reaps.
 * Invariant: dead nodes hold the counts of what is below them, so nothing here is reachable by
 * anyone else.
 */
#include "indexer/graveyard.h"

#include <malloc.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/lock.h"

#define FREED_IN_PLACE_MAX 1000
/* Trimming walks the whole heap, so it has to be worth it. */
#define FREED_WORTH_TRIMMING 100000

struct kinf__graveyard {
    /* atomic */
    _Atomic(uint32_t) refs;
    _Atomic(bool) is_filled; /* a hint that spares the lock */
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__dead_nodes dead;
    size_t n_freed; /* since it was last trimmed */
};

struct kinf__graveyard *kinf__graveyard_new(void)
{
    struct kinf__graveyard *graveyard = calloc(1, sizeof *graveyard);

    if (graveyard == NULL)
        return NULL;
    atomic_init(&graveyard->refs, 1);
    kinf__mutex_init(&graveyard->lock, KINF__RANK_GRAVEYARD);
    return graveyard;
}

struct kinf__graveyard *kinf__graveyard_ref(struct kinf__graveyard *graveyard)
{
    atomic_fetch_add_explicit(&graveyard->refs, 1, memory_order_relaxed);
    return graveyard;
}

void kinf__graveyard_unref(struct kinf__graveyard *graveyard)
{
    if (graveyard == NULL ||
        atomic_fetch_sub_explicit(&graveyard->refs, 1, memory_order_acq_rel) != 1)
        return;
    kinf__graveyard_reap(graveyard, SIZE_MAX);
    kinf__graveyard_trim(graveyard);
    kinf__mutex_release(&graveyard->lock);
    free(graveyard);
}

static void put(struct kinf__graveyard *graveyard, struct kinf__dead_nodes *dead)
    KINF__REQUIRES(graveyard->lock)
{
    while (dead->first != NULL) {
        struct kinf__node *node = dead->first;

        dead->first = node->next_dead;
        node->next_dead = graveyard->dead.first;
        graveyard->dead.first = node;
    }
    atomic_store_explicit(&graveyard->is_filled, graveyard->dead.first != NULL,
                          memory_order_relaxed);
}

void kinf__graveyard_bury(struct kinf__graveyard *graveyard, struct kinf__dead_nodes *dead)
{
    kinf__dead_nodes_free(dead, FREED_IN_PLACE_MAX);
    if (dead->first == NULL)
        return;
    kinf__mutex_lock(&graveyard->lock);
    put(graveyard, dead);
    kinf__mutex_unlock(&graveyard->lock);
}

bool kinf__graveyard_reap(struct kinf__graveyard *graveyard, size_t max)
{
    struct kinf__dead_nodes dead;
    size_t n_freed;
    bool is_filled;

    if (!atomic_load_explicit(&graveyard->is_filled, memory_order_relaxed))
        return false;
    kinf__mutex_lock(&graveyard->lock);
    dead = graveyard->dead;
    graveyard->dead.first = NULL;
    kinf__mutex_unlock(&graveyard->lock);

    n_freed = kinf__dead_nodes_free(&dead, max);

    kinf__mutex_lock(&graveyard->lock);
    graveyard->n_freed += n_freed;
    put(graveyard, &dead);
    is_filled = graveyard->dead.first != NULL;
    kinf__mutex_unlock(&graveyard->lock);
    return is_filled;
}

/* Who lets go buries first: once the reference has gone, what was buried is seen. */
bool kinf__graveyard_may_fill(const struct kinf__graveyard *graveyard)
{
    return atomic_load_explicit(&graveyard->refs, memory_order_acquire) > 2 ||
           atomic_load_explicit(&graveyard->is_filled, memory_order_relaxed);
}

void kinf__graveyard_trim(struct kinf__graveyard *graveyard)
{
    bool is_worth_it;

    kinf__mutex_lock(&graveyard->lock);
    is_worth_it = graveyard->dead.first == NULL && graveyard->n_freed >= FREED_WORTH_TRIMMING;
    if (is_worth_it)
        graveyard->n_freed = 0;
    kinf__mutex_unlock(&graveyard->lock);
#ifdef __GLIBC__
    if (is_worth_it)
        malloc_trim(0);
#endif
}
