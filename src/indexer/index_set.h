/*
 * The indices that an indexer has, and computing an object's values for them.
 *
 * A set never changes and is counted: by the versions made with it. Index functions are user code:
 * nothing here is called with a lock held.
 *
 * Threads: any thread for sets; a struct kinf_index_values belongs to one.
 */
#ifndef KINF_INDEXER_INDEX_SET_H
#define KINF_INDEXER_INDEX_SET_H

#include <kinformer/indexer.h>

#include "base/buffer.h"
#include "indexer/entry.h"

struct kinf__index {
    _Atomic(uint32_t) refs; /* atomic */
    char *name;
    struct kinf_path *path; /* NULL if `function` is set */
    kinf_index_cb *function;
    void *ctx;
};

struct kinf__index_set {
    _Atomic(uint32_t) refs; /* atomic */
    uint32_t n;
    struct kinf__index *indices[];
};

/* The indices of `base` (may be NULL) and more behind them. Errors as kinf_indexer_add_indices().
 */
KINF_MUST_CHECK int kinf__index_set_new(const struct kinf__index_set *base,
                                        const struct kinf_index *indices, size_t n_indices,
                                        struct kinf__index_set **ret_set, struct kinf_error *err);
struct kinf__index_set *kinf__index_set_ref(struct kinf__index_set *set);
void kinf__index_set_unref(struct kinf__index_set *set); /* NULL is allowed */

/* The number of an index; false if there is none of this name. */
bool kinf__index_set_find(const struct kinf__index_set *set, const char *name,
                          uint32_t *ret_number);

/* What is known of one object while its values are computed; used again for the next. */
struct kinf_index_values {
    struct kinf__buffer bytes;  /* the values found so far, each with its NUL */
    struct kinf__buffer starts; /* one uint32_t for each index, and one behind */
    size_t n_values;            /* of the index at hand */
    bool is_out_of_memory;
    uint64_t n_failed; /* indices that failed, of all objects so far */
};
#define KINF__INDEX_VALUES_INIT                                                                    \
    {                                                                                              \
        KINF__BUFFER_INIT, KINF__BUFFER_INIT, 0, false, 0                                          \
    }
void kinf__index_values_release(struct kinf_index_values *values);
#define KINF__AUTO_INDEX_VALUES KINF__CLEANUP(kinf__index_values_release) struct kinf_index_values

/* Whether this thread runs an index function, which writes to no store. */
bool kinf__index_function_is_running(void);

/* Leaves the values that one index has for an object in `values->bytes`: sorted, each once, each
 * with its NUL. Errors: KINF_ERR_INVALID (the index failed), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__index_values_of(struct kinf_index_values *values,
                                          const struct kinf__index *index,
                                          const struct kinf_object *object);

/* Makes the entry of an object. `known`, if not NULL, is an entry of the same object made with the
 * first indices of this set; their values are taken from it. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__index_values_entry(struct kinf_index_values *values,
                                             const struct kinf__index_set *set,
                                             const struct kinf_object *object,
                                             const struct kinf__entry *known,
                                             struct kinf__entry **ret_entry);

#endif
