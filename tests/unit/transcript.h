/*
 * Recorded answers of an API server, and bodies fed in pieces.
 */
#ifndef KINF_TESTS_UNIT_TRANSCRIPT_H
#define KINF_TESTS_UNIT_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A response, de-chunked and inflated, and what was written down beside it. */
struct test_transcript {
    int http_status;  /* 0: nothing came */
    bool is_complete; /* the body came to its proper end */
    char *body;
    size_t len;
    size_t wire_len; /* of head and body as they were received */
    uint32_t retry_after_ms;
    char *target; /* of the request: "/api/v1/pods?watch=1" */
    char *accept;
    int64_t end_ms; /* from the request to the end of the answer */
};

/* Reads tests/data/transcripts/NAME.http and NAME.json. Fails the test if it cannot. */
struct test_transcript test_transcript_read(const char *name);
void test_transcript_release(struct test_transcript *transcript);

/* A parameter of the request as it stands in the target. Returns false, and "", if there is none.
 */
bool test_transcript_query(const struct test_transcript *transcript, const char *name, char *value,
                           size_t size);

/* The names of all recorded HTTP/1.1 answers, sorted. The caller frees each and the array. */
char **test_transcript_names(size_t *ret_n);

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
