/*
 * Pods made of one: a LIST body, a watch-list stream and events, for benchmarks.
 *
 * Names, namespaces, uids, resourceVersions, nodes and addresses differ, and of each hundred the label
 * pod-template-hash; everything else is the template's. LIST ignores `limit`, but for a page of 1.
 *
 * Threads: one thread to make it; then any.
 */
#ifndef KINF_TESTS_REPLAY_GENERATE_H
#define KINF_TESTS_REPLAY_GENERATE_H

#include "replay/script.h"

struct replay__generator;

/* Reads the template and appends the exchanges, whose streams belong to the generator. Errors:
 * KINF_ERR_CONFIG, KINF_ERR_PARSE (no JSON, or a field that varies is missing), KINF_ERR_INVALID,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int replay__generator_new(const struct replay_generate_options *options,
                                          struct replay__script *script,
                                          struct replay__generator **ret_generator,
                                          struct kinf_error *err);
/* NULL is allowed. */
void replay__generator_free(struct replay__generator *generator);

/* FNV-1a 64 over "namespace/name@resourceVersion\n" of the LIST, in its order, which is sorted. */
uint64_t replay__generator_checksum(const struct replay__generator *generator);
/* See replay_generated_sum(). */
uint64_t replay__generator_sum(const struct replay__generator *generator, uint64_t n_events,
                               bool has_phase);

#endif
