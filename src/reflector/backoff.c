/*
 * Delays that double. Neighbours: the policy, which has one for all requests of a reflector.
 * Invariant: base_ms <= delay_ms <= max_ms.
 */
#include "reflector/backoff.h"

/* A number of [0, limit). The bias of the remainder is below limit / 2^64. */
static int64_t draw_below(uint64_t random, int64_t limit)
{
    return (int64_t)(random % (uint64_t)limit);
}

void kinf__backoff_init(struct kinf__backoff *backoff, int64_t base_ms, int64_t max_ms)
{
    *backoff = (struct kinf__backoff){ .base_ms = base_ms, .max_ms = max_ms, .delay_ms = base_ms };
}

int64_t kinf__backoff_next(struct kinf__backoff *backoff, int64_t now_ms, uint64_t random,
                           int64_t retry_after_ms)
{
    int64_t wait_ms;

    if (now_ms - backoff->wait_end_ms >= KINF__BACKOFF_RESET_MS)
        backoff->delay_ms = backoff->base_ms;
    wait_ms = backoff->delay_ms + draw_below(random, backoff->delay_ms);
    backoff->delay_ms =
        backoff->delay_ms > backoff->max_ms / 2 ? backoff->max_ms : backoff->delay_ms * 2;

    if (retry_after_ms > KINF__RETRY_AFTER_MAX_MS)
        retry_after_ms = KINF__RETRY_AFTER_MAX_MS;
    if (retry_after_ms > 0)
        retry_after_ms += draw_below(random, backoff->base_ms);
    if (wait_ms < retry_after_ms)
        wait_ms = retry_after_ms;
    backoff->wait_end_ms = now_ms + wait_ms;
    return wait_ms;
}

void kinf__backoff_reset(struct kinf__backoff *backoff)
{
    backoff->delay_ms = backoff->base_ms;
}
