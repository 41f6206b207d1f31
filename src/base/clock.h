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

int64_t kinf__clock_now_ns(void); /* CLOCK_MONOTONIC */
int64_t kinf__clock_now_ms(void);

/* now + delay, KINF__NEVER_MS if either is never or the sum does not fit. */
int64_t kinf__clock_add_ms(int64_t now_ms, int64_t delay_ms);
/* What is left until the deadline, 0 when it is over; KINF__NEVER_MS stays. */
int64_t kinf__clock_left_ms(int64_t now_ms, int64_t deadline_ms);

#endif
