/*
 * What an informer was first asked for, and whether a later request may share it. The rules are
 * those of kinformer/factory.h.
 *
 * Owner: the factory. Threads: one at a time.
 */
#ifndef KINF_INFORMER_SHARED_OPTIONS_H
#define KINF_INFORMER_SHARED_OPTIONS_H

#include <kinformer/informer.h>

struct kinf__shared_options {
    /* Strings and arrays are copies; without resource, handler and indices. */
    struct kinf_informer_options first;
    /* Of all the requests. Names and paths are copies. */
    struct kinf_index *indices;
    size_t n_indices;
};

/* Errors: KINF_ERR_NO_MEMORY, nothing to release. */
KINF_MUST_CHECK int kinf__shared_options_init(struct kinf__shared_options *shared,
                                              const struct kinf_informer_options *options,
                                              struct kinf_error *err);
void kinf__shared_options_release(struct kinf__shared_options *shared);

/* Whether both mean the same objects of a type. */
bool kinf__shared_options_selects_same(const struct kinf__shared_options *shared,
                                       const struct kinf_informer_options *options);

/* Errors: KINF_ERR_INVALID, KINF_ERR_EXISTS: the request conflicts with an earlier one. */
KINF_MUST_CHECK int kinf__shared_options_check(const struct kinf__shared_options *shared,
                                               const struct kinf_informer_options *options,
                                               struct kinf_error *err);

/* Adds the indices that are new to `indexer` and remembers them, after a check. Errors: as
 * kinf_indexer_add_indices(). */
KINF_MUST_CHECK int kinf__shared_options_add_indices(struct kinf__shared_options *shared,
                                                     const struct kinf_informer_options *options,
                                                     struct kinf_indexer *indexer,
                                                     struct kinf_error *err);

#endif
