/*
 * So many a second, and some at once after a rest: a token bucket. Pure.
 *
 * Mirrors: flowcontrol.NewTokenBucketRateLimiter, rate.Limiter.
 * Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_BASE_RATE_LIMIT_H
#define KINF_BASE_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct kinf__rate_limit {
    int64_t interval_us; /* between two; 0: no limit */
    int64_t burst;
    int64_t next_us; /* when the next one is due if all come evenly */
};

/* `per_second` negative: no limit, less than one an hour: one an hour. `burst` is above 0. */
void kinf__rate_limit_init(struct kinf__rate_limit *limit, double per_second, int burst);

/* Takes the next turn: *ret_wait_ms is how long to wait for it. Returns false, and takes none, if
 * that were more than `max_wait_ms`. */
bool kinf__rate_limit_take(struct kinf__rate_limit *limit, int64_t now_ms, int64_t max_wait_ms,
                           int64_t *ret_wait_ms);
/* For who took a turn and does not wait for it: those behind it come sooner. */
void kinf__rate_limit_give_back(struct kinf__rate_limit *limit);

#endif
