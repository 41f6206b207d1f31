/*
 * The queue's insides, for queue.c and report.c.
 */
#ifndef KINF_QUEUE_QUEUE_PRIV_H
#define KINF_QUEUE_QUEUE_PRIV_H

#include <kinformer/queue.h>

#include "base/lock.h"
#include "base/metrics.h"
#include "queue/requeue.h"
#include "queue/keys.h"

struct kinf_queue {
    /* constant after creation */
    char *name; /* NULL: none */

    struct kinf__mutex lock;
    struct kinf__cond awaited; /* by kinf_queue_get() */
    struct kinf__cond ended;   /* by kinf_queue_drain() */

    /* guarded by lock */
    struct kinf__keys keys;
    struct kinf__requeue requeue;
    int64_t
        watched_ms; /* somebody in kinf_queue_get() wakes up then; KINF__NEVER_MS: nobody does */
    size_t n_getters;
    size_t n_drainers;
    unsigned n_shut_downs;
    bool is_shut_down;
    uint64_t n_gets;
    uint64_t n_done;
    uint64_t n_retries;

    /* atomic */
    struct kinf__histogram waits;
    struct kinf__histogram works;
};

/* Adds what was for later and is due; returns the time. In front of every other change or look. */
int64_t kinf__queue_wake_due_locked(struct kinf_queue *queue) KINF__REQUIRES(queue->lock);

/* When there is something to do: 0: now, or it is being done; KINF__NEVER_MS: nothing is known of. */
int64_t kinf__queue_due_ms(struct kinf_queue *queue);

/* Whether all parts agree. For tests. */
bool kinf__queue_check(struct kinf_queue *queue);

#endif
