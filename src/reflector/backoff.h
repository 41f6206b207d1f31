/*
 * How long to wait after a failure: doubling with jitter.
 *
 * The k-th delay d_k is base * 2^k, at most max; the wait is drawn from [d_k, 2 * d_k), so no wait
 * is above 2 * max. A server that asks for a longer wait (Retry-After) gets it, with jitter on top.
 *
 * The delay starts again at base when KINF__BACKOFF_RESET_MS went by after a wait without another
 * one being asked for. That is client-go's rule up to 0.35. Its newer one resets 2 minutes after
 * the previous *reset*, so that a server which stays dead sees bursts for ever (some 190 requests
 * an hour instead of 85).
 *
 * Mirrors: wait.Backoff with reflector.go's constants.
 * Threads: one thread per object.
 */
#ifndef KINF_REFLECTOR_BACKOFF_H
#define KINF_REFLECTOR_BACKOFF_H

#include <stdint.h>

#define KINF__BACKOFF_RESET_MS 120000
/* A Retry-After above this is not believed. */
#define KINF__RETRY_AFTER_MAX_MS 300000

struct kinf__backoff {
    int64_t base_ms;
    int64_t max_ms;
    int64_t delay_ms;    /* the next one, without jitter */
    int64_t wait_end_ms; /* when the last wait is over */
};

/* 0 < base_ms <= max_ms. */
void kinf__backoff_init(struct kinf__backoff *backoff, int64_t base_ms, int64_t max_ms);

/* The wait after a failure at `now_ms`. `retry_after_ms` is what the server asked for, 0 if
 * nothing. */
int64_t kinf__backoff_next(struct kinf__backoff *backoff, int64_t now_ms, uint64_t random,
                           int64_t retry_after_ms);

/* The next wait starts at base again: what failed had worked for long enough. */
void kinf__backoff_reset(struct kinf__backoff *backoff);

#endif
