/*
 * The bucket as one point in time: each turn moves it on by an interval, and whoever comes more
 * than a burst of intervals in front of it waits. Neighbours: request.c.
 */
#include "rest/turns.h"

#include <errno.h>
#include <string.h>

#define PER_SECOND 5.0
#define BURST      10
#define SECOND_US  1000000
/* With the largest burst this is still within 64 bits. */
#define INTERVAL_MAX_US ((int64_t)3600 * SECOND_US)
#define BROKEN_WAIT_MS  1000

void kinf__rate_limit_init(struct kinf__rate_limit *limit, double per_second, int burst)
{
    if (per_second == 0)
        per_second = PER_SECOND;
    *limit = (struct kinf__rate_limit){ .burst = burst > 0 ? burst : BURST };
    if (per_second > 0 && per_second <= SECOND_US)
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

/* A server that names a time to come back has done nothing; a connection that broke may have
 * carried the request. */
bool kinf__retry_may(const char *method, const struct kinf_error *err, unsigned n_retries,
                     int64_t *ret_wait_ms)
{
    bool is_busy = err->http_status == 429 || err->http_status >= 500;

    if (n_retries >= KINF__RETRY_MAX)
        return false;
    if (is_busy && err->retry_after_ms != 0) {
        *ret_wait_ms = err->retry_after_ms;
        return true;
    }
    if (err->code == KINF_ERR_NETWORK && err->sys_errno == ECONNRESET &&
        strcmp(method, "GET") == 0) {
        *ret_wait_ms = BROKEN_WAIT_MS;
        return true;
    }
    return false;
}
