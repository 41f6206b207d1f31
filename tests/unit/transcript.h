/*
 * Recorded answers of an API server, and bodies fed in pieces.
 */
#ifndef KINF_TESTS_UNIT_TRANSCRIPT_H
#define KINF_TESTS_UNIT_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>

/* A response, de-chunked and inflated. */
struct test_transcript {
    int http_status;
    bool is_complete; /* the body came to its proper end */
    char *body;
    size_t len;
};

/* Reads tests/data/transcripts/NAME.http. Fails the test if it cannot. */
struct test_transcript test_transcript_read(const char *name);
void test_transcript_release(struct test_transcript *transcript);

/* How a body is cut: into pieces of `step` bytes, or if that is 0 into two at offset `at`. */
struct test_cut {
    size_t step;
    size_t at;
};

typedef int test_feed_fn(const char *bytes, size_t len, void *ctx);

/* Feeds the pieces, each a copy of its own so that reading past its end is found. Returns 0, or
 * what the first `feed` that failed returned. */
int test_feed_cut(const char *body, size_t len, struct test_cut cut, test_feed_fn *feed, void *ctx);

/* Calls `try_cut` for: whole, byte by byte, pieces of some sizes, and two pieces at every offset
 * (at some hundred offsets if the body is above 20 kB). */
void test_each_cut(size_t len, void (*try_cut)(struct test_cut cut, void *ctx), void *ctx);

#endif
