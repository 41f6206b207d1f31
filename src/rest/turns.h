/*
 * When a request is made: its turn in a token bucket (so many a second, and some at once after a
 * rest), and whether one that failed may be made again. Pure.
 *
 * Mirrors: flowcontrol.NewTokenBucketRateLimiter, rest.WithRetry.
 * Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_REST_TURNS_H
#define KINF_REST_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/error.h>

#define KINF__RETRY_MAX 10 /* tries after the first */

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

/* Whether the request may be made again after `n_retries` earlier ones, and how long to wait before
 * that. */
bool kinf__retry_may(const char *method, const struct kinf_error *err, unsigned n_retries,
                     int64_t *ret_wait_ms);

#endif
