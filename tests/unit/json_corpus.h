/*
 * JSON texts of a real API server, cut out of the recorded transcripts, and ways to spoil them.
 */
#ifndef KINF_TESTS_UNIT_JSON_CORPUS_H
#define KINF_TESTS_UNIT_JSON_CORPUS_H

#include <kinformer/str.h>

#include "base/buffer.h"
#include "unit/test.h"

struct json_corpus {
    size_t n_texts;
    struct kinf_str *texts; /* one whole JSON value each, without white space around it */
    size_t n_bodies;
    char **bodies; /* what the texts point into */
};

/* Takes every body with `dir`/ *.http that is not compressed, unchunks it and splits it into its
 * values; with some small texts of our own. A body that was cut off gives what is whole. Exits with
 * a message if the folder cannot be read. */
void json_corpus_init(struct json_corpus *corpus, const char *dir);
void json_corpus_release(struct json_corpus *corpus);

/* Puts a copy of one of the texts that are not above `max_len`, spoiled in up to three places, into
 * `out`. Some of the results are JSON. */
void json_corpus_mutate(const struct json_corpus *corpus, struct test_random *random,
                        size_t max_len, struct kinf__buffer *out);

#endif
