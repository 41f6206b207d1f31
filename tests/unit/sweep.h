/*
 * Scenarios that are run once for each thing in them that can fail, on whatever thread that is: the
 * n-th allocation, or the n-th start of a thread.
 *
 * Counted is what the scenario's thread does in SWEPT(), and all that threads do which are started
 * there, or by those. So the scenario's own doing and a fake API server's threads are left out.
 *
 * Each run is a process of its own, so that what is made once for the life of a process is made anew.
 * A run fails if it crashes, leaks, fails a check, or lasts too long: then the stacks of its threads
 * are printed. KINF_TEST_SWEEP=N runs the N-th alone, and says where the failing call is; all: each of them.
 *
 * Threads: the test's.
 */
#ifndef KINF_TESTS_UNIT_SWEEP_H
#define KINF_TESTS_UNIT_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>

enum test_swept { TEST_SWEPT_ALLOCATIONS, TEST_SWEPT_THREADS };

/* Runs `scenario` without a failure first, which counts, and then with each; of those that come about
 * by the same calls with the first and the last, unless an earlier sweep of the program has met them.
 * Fails the test if there are not `at_least` so many. In builds other than asan, which see no leaks,
 * only every 16th of them fails, but for those that measure coverage. */
void test_sweep(enum test_swept what, void (*scenario)(void), size_t at_least);

/* Whether this thread is swept from here on; returns whether it was. */
bool test_swept_set(bool is);
#define SWEPT(statement)                                                                           \
    do {                                                                                           \
        (void)test_swept_set(true);                                                                \
        statement;                                                                                 \
        (void)test_swept_set(false);                                                               \
    } while (0)

/* Whether what is to fail has failed by now. */
bool test_swept_hit(void);

/* Ends the run as a failure. cmocka's assertions are not for scenarios: they would end the test in
 * the process of the run. */
void test_swept_fail(const char *file, int line, const char *what) __attribute__((noreturn));
#define SWEPT_CHECK(condition)                                                                     \
    ((condition) ? (void)0 : test_swept_fail(__FILE__, __LINE__, #condition))
/* What came of a call: success, or, if something has failed, a clean error that says so. Returns
 * whether it is success. */
#define SWEPT_OK(failed, err) test_swept_ok(failed, err, __FILE__, __LINE__)
bool test_swept_ok(int failed, const struct kinf_error *err, const char *file, int line);
/* That nothing failed, of what is not swept. */
#define SWEPT_MUST(failed, err)                                                                    \
    ((failed) == 0 ? (void)0 : test_swept_fail(__FILE__, __LINE__, (err)->message))

/* For allocation.c: whether this allocation is the one. */
bool test_swept_fails_now(enum test_swept what);

#endif
