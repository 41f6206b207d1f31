/*
 * The rate limit of a queue: how long a key waits that is tried again. Pure.
 *
 * Mirrors: workqueue.ItemExponentialFailureRateLimiter, ItemFastSlowRateLimiter, BucketRateLimiter,
 * MaxOfRateLimiter, WithMaxWaitRateLimiter: all of them at once, since what they know of a key is
 * one number, which the queue has.
 * Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_QUEUE_REQUEUE_H
#define KINF_QUEUE_REQUEUE_H

#include <kinformer/queue.h>

#include "base/rate_limit.h"

struct kinf__requeue {
    int64_t base_ms; /* negative: none */
    int64_t max_ms;
    int64_t fast_ms;
    int64_t slow_ms;
    unsigned n_fast;
    struct kinf__rate_limit all;
    int64_t max_wait_ms;
};

/* Errors: KINF_ERR_INVALID. */
KINF_MUST_CHECK int kinf__requeue_init(struct kinf__requeue *requeue,
                                       const struct kinf_queue_options *options,
                                       struct kinf_error *err);

/* How long a key waits that was tried again `n_before` times before; takes a turn of those of all
 * keys. */
int64_t kinf__requeue_delay_ms(struct kinf__requeue *requeue, unsigned n_before, int64_t now_ms);

#endif
