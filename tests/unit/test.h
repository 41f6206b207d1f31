/*
 * What every unit test includes: cmocka, and random numbers with a seed that is printed.
 *
 * KINF_TEST_SEED sets the seed of a model test, KINF_TEST_MODE is debug, asan, tsan, release, valgrind or arm64.
 */
#ifndef KINF_TESTS_UNIT_TEST_H
#define KINF_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* A small generator (splitmix64): the same numbers on every machine. */
struct test_random {
    uint64_t state;
};

/* Takes KINF_TEST_SEED or the clock, and prints the seed. */
struct test_random test_random_init(const char *test);
uint64_t test_random_next(struct test_random *random);
/* 0 <= result < limit */
size_t test_random_below(struct test_random *random, size_t limit);

/* Fewer rounds under the sanitizers, which are 3 to 15 times slower: n in debug and release, n/4
 * under asan, n/8 under tsan, n/16 under valgrind, at least 1. */
size_t test_rounds(size_t n);
/* Ends the test as skipped if valgrind lacks what it needs: pidfd_open(), an end of a forked process without a look for leaks. */
void test_skip_in_valgrind(const char *why);
/* How long a stop may take; what makes everything slower does not make the promise longer. */
int64_t test_stop_limit_ms(void);

/* A model test: so many rounds of it, with the numbers of one seed. */
void test_model(const char *test, size_t n_rounds, void (*run)(struct test_random *random));

/* The whole of a file below tests/data, with a NUL behind it (not counted). Fails the test if it
 * cannot be read. The caller frees it. */
char *test_read_data(const char *name, size_t *ret_len);
/* The folder tests/data. */
const char *test_data_dir(void);

#endif
