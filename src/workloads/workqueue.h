/*
 * What is to be looked at, and when: keys of a kind, each of them in it once.
 *
 * Mirrors: workqueue.DelayingInterface, less the keys that are being processed: its owner works on
 * one thread.
 * Threads: one thread per queue, or under its owner's lock.
 */
#ifndef KINF_WORKLOADS_WORKQUEUE_H
#define KINF_WORKLOADS_WORKQUEUE_H

#include <stdbool.h>

#include <kinformer/error.h>

#include "base/clock.h"
#include "base/hmap.h"

/* All zero is empty. */
struct kinf__workqueue {
    struct kinf__hmap by_key;
    struct kinf__work_item **heap; /* the earliest first; of the same time: in order */
    size_t n_items;
    size_t size;
    uint64_t n_added;
};

struct kinf__work_item {
    struct kinf__hmap_node node;
    int64_t due_ms;
    uint64_t order;
    size_t place; /* in the heap */
    unsigned kind;
    char key[];
};

void kinf__workqueue_release(struct kinf__workqueue *queue);

/* If it is in it already, the earlier time counts. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__workqueue_add(struct kinf__workqueue *queue, unsigned kind,
                                        const char *key, int64_t due_ms);
/* When the first one is due; KINF__NEVER_MS: there is none. */
int64_t kinf__workqueue_due_ms(const struct kinf__workqueue *queue);
/* Takes out the first one that is due; the caller frees it. NULL: none is. */
struct kinf__work_item *kinf__workqueue_take(struct kinf__workqueue *queue, int64_t now_ms);

/* Whether the heap is one, and the map has the same. For tests. */
bool kinf__workqueue_check(const struct kinf__workqueue *queue);

#endif
