/*
 * The bucket as one point in time: each turn moves it on by an interval, and whoever comes more
 * than a burst of intervals in front of it waits.
 */
#include "base/rate_limit.h"

#define SECOND_US 1000000
/* With the largest burst this is still within 64 bits. */
#define INTERVAL_MAX_US ((int64_t)3600 * SECOND_US)

void kinf__rate_limit_init(struct kinf__rate_limit *limit, double per_second, int burst)
{
    *limit = (struct kinf__rate_limit){ .burst = burst };
    if (per_second >= 0 && per_second <= SECOND_US)
        limit->interval_us = per_second * INTERVAL_MAX_US > SECOND_US
                                 ? (int64_t)(SECOND_US / per_second)
                                 : INTERVAL_MAX_US;
}

bool kinf__rate_limit_take(struct kinf__rate_limit *limit, int64_t now_ms, int64_t max_wait_ms,
                           int64_t *ret_wait_ms)
{
    int64_t now_us = now_ms * 1000;
    int64_t next_us = limit->next_us > now_us ? limit->next_us : now_us;
    int64_t wait_us = next_us - (limit->burst - 1) * limit->interval_us - now_us;
    int64_t wait_ms = wait_us > 0 ? (wait_us + 999) / 1000 : 0;

    if (wait_ms > max_wait_ms)
        return false;
    limit->next_us = next_us + limit->interval_us;
    *ret_wait_ms = wait_ms;
    return true;
}

void kinf__rate_limit_give_back(struct kinf__rate_limit *limit)
{
    limit->next_us -= limit->interval_us;
}
