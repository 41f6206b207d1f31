/*
 * Time. Everything that decides takes the time as a parameter; only threads read clocks.
 *
 * Threads: any thread.
 */
#ifndef KINF_BASE_CLOCK_H
#define KINF_BASE_CLOCK_H

#include <stdint.h>

/* "For ever" where a time in milliseconds is asked. */
#define KINF__NEVER_MS INT64_MAX

int64_t kinf__clock_now_ns(void); /* CLOCK_MONOTONIC, and what was advanced */
int64_t kinf__clock_now_ms(void);
/* CLOCK_BOOTTIME, likewise: it counts the time that the machine sleeps, too. */
int64_t kinf__clock_boot_ms(void);

int64_t kinf__clock_wall_ms(void); /* Unix time: for what others read, never for waiting */

/*
 * Simulated time, for tests (kinformer/testing.h): it goes on by itself, and in leaps. While
 * somebody simulates, of whom there may be several, no wait lasts longer than a few milliseconds of
 * real time before it looks at the clock again. A leap is never taken back.
 */
void kinf__clock_begin_simulation(void);
void kinf__clock_end_simulation(void);
void kinf__clock_advance(int64_t ms);
/* How long a wait of `wait_ms` may really last before the clock is looked at again. */
int64_t kinf__clock_wait_ms(int64_t wait_ms);

/* now + delay, KINF__NEVER_MS if either is never or the sum does not fit. */
int64_t kinf__clock_add_ms(int64_t now_ms, int64_t delay_ms);
/* What is left until the deadline, 0 when it is over; KINF__NEVER_MS stays. */
int64_t kinf__clock_left_ms(int64_t now_ms, int64_t deadline_ms);

#endif
