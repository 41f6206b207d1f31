/*
 * Allocations that fail on demand, in the library and the test alike (not inside the C library).
 *
 * Threads: each thread has its own demand.
 */
#ifndef KINF_TESTS_UNIT_ALLOCATION_H
#define KINF_TESTS_UNIT_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>

/* From now on the n-th allocation of this thread fails, and only that; 0: none. */
void test_fail_allocation(size_t n);

/* Ends the demand; whether an allocation failed since it was made. A sweep is: for n = 1, 2, ...
 * until this is false. */
bool test_allocation_failed(void);

#endif
