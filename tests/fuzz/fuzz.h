/*
 * What the fuzz targets share: taking an input apart, and saying what must hold.
 *
 * A target is one file fuzz_NAME.c with LLVMFuzzerTestOneInput(); its inputs are in corpus/NAME.
 * libFuzzer drives it (`make fuzz T=NAME`), replay.c runs what is in the corpus (`make test`).
 */
#ifndef KINF_TESTS_FUZZ_FUZZ_H
#define KINF_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <kinformer/str.h>

#include "base/buffer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process, which is how a fuzz target fails. */
#define FUZZ_REQUIRE(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The first byte of an input, which says how to treat the rest; 0 if there is none. */
static inline unsigned fuzz_take_byte(const uint8_t **data, size_t *size)
{
    if (*size == 0)
        return 0;
    ++*data;
    --*size;
    return (*data)[-1];
}

/* A copy with a NUL behind it and nothing else, so that reading past the end is found. The caller
 * frees it. */
char *fuzz_text(const uint8_t *data, size_t size);

typedef int fuzz_feed_fn(const char *bytes, size_t len, void *ctx);

/* Feeds pieces of 1 to 64 bytes, whose lengths `seed` decides, each a copy of its own. Returns 0, or
 * what `feed` returned. */
int fuzz_feed_pieces(const uint8_t *data, size_t size, unsigned seed, fuzz_feed_fn *feed,
                     void *ctx);

#endif
