/*
 * A token bucket: so many a second, and some at once after a rest.
 *
 * Mirrors: flowcontrol.NewTokenBucketRateLimiter.
 * Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_REST_RATE_LIMIT_H
#define KINF_REST_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct kinf__rate_limit {
    int64_t interval_us; /* between two; 0: no limit */
    int64_t burst;
    int64_t next_us; /* when the next one is due if all come evenly */
};

/* `per_second` 0: 5, negative: no limit, less than one an hour: one an hour. `burst` 0: 10. */
void kinf__rate_limit_init(struct kinf__rate_limit *limit, double per_second, int burst);

/* Takes the next turn: *ret_wait_ms is how long to wait for it. Returns false, and takes none, if
 * that were more than `max_wait_ms`. */
bool kinf__rate_limit_take(struct kinf__rate_limit *limit, int64_t now_ms, int64_t max_wait_ms,
                           int64_t *ret_wait_ms);

#endif
