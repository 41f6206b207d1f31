/*
 * Which options the engine's model gives its informers: at random, and so that within some lives every
 * two ways of two choices are an informer's once.
 *
 * Threads: the test's.
 */
#ifndef KINF_TESTS_UNIT_ENGINE_WAYS_H
#define KINF_TESTS_UNIT_ENGINE_WAYS_H

#include <stddef.h>

#include "unit/test.h"

#define ENGINE_N_VIEWS 4

enum choice {
    CHOICE_VIEW,
    CHOICE_SHARD,
    CHOICE_PART,
    CHOICE_KEEPS,
    CHOICE_FIELD_SELECTOR,
    CHOICE_INDICES,
    CHOICE_TRANSFORM,
    CHOICE_FIFO,
    CHOICE_INITIAL,
    CHOICE_PAGES,
    CHOICE_QUEUE,
    CHOICE_COMPRESSED,
    CHOICE_GZIP,
    N_CHOICES,
};

/* The way of each choice. */
void engine_ways_choose(struct test_random *random, size_t view, size_t ret_ways[N_CHOICES]);

/* Fails the test if two ways that can meet have met in no informer. */
void engine_ways_check(void);

#endif
