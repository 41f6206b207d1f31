/*
 * The clocks, and sums of times that cannot overflow.
 */
#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

#define SLICE_MS 2 /* of a wait while time is simulated */

static _Atomic(int64_t) advanced_ns;
static _Atomic(unsigned) n_simulations;

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec +
           atomic_load_explicit(&advanced_ns, memory_order_relaxed);
}

int64_t kinf__clock_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t kinf__clock_now_ms(void)
{
    return kinf__clock_now_ns() / 1000000;
}

int64_t kinf__clock_boot_ms(void)
{
    return read_ns(CLOCK_BOOTTIME) / 1000000;
}

int64_t kinf__clock_wall_ms(void)
{
    return read_ns(CLOCK_REALTIME) / 1000000;
}

void kinf__clock_begin_simulation(void)
{
    atomic_fetch_add(&n_simulations, 1);
}

void kinf__clock_end_simulation(void)
{
    atomic_fetch_sub(&n_simulations, 1);
}

void kinf__clock_advance(int64_t ms)
{
    atomic_fetch_add(&advanced_ns, ms * 1000000);
}

int64_t kinf__clock_wait_ms(int64_t wait_ms)
{
    return wait_ms > SLICE_MS && atomic_load_explicit(&n_simulations, memory_order_relaxed) != 0
               ? SLICE_MS
               : wait_ms;
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
