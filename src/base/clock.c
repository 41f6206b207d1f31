/*
 * The clocks, and sums of times that cannot overflow.
 */
#include "base/clock.h"

#include <time.h>

int64_t kinf__clock_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t kinf__clock_now_ms(void)
{
    return kinf__clock_now_ns() / 1000000;
}

int64_t kinf__clock_add_ms(int64_t now_ms, int64_t delay_ms)
{
    if (now_ms == KINF__NEVER_MS || delay_ms > KINF__NEVER_MS - now_ms)
        return KINF__NEVER_MS;
    return now_ms + delay_ms;
}

int64_t kinf__clock_left_ms(int64_t now_ms, int64_t deadline_ms)
{
    if (deadline_ms == KINF__NEVER_MS)
        return KINF__NEVER_MS;
    return deadline_ms > now_ms ? deadline_ms - now_ms : 0;
}
