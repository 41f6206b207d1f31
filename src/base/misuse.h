/*
 * Refusing what a caller of a public function cannot mean: it is logged, and does nothing.
 *
 * Threads: any thread, with no lock held.
 */
#ifndef KINF_BASE_MISUSE_H
#define KINF_BASE_MISUSE_H

#include <kinformer/error.h>

#include "base/compiler.h"
#include "base/log.h"

/* Writes the failure, logs its message as an error, and returns `code`. */
int kinf__misuse(struct kinf_error *err, enum kinf_errc code, const char *fmt, ...)
    KINF_PRINTF(3, 4);

/* Copies what a caller filled in, of this or another version of the struct, into `own`; the rest is
 * zero, which is every option's default. Both begin with a size_t, theirs. `name` is the struct's.
 * Errors: KINF_ERR_INVALID (no version has this size). */
KINF_MUST_CHECK int kinf__options_read(void *own, size_t own_size, const void *given,
                                       const char *name, struct kinf_error *err);

/* `pointers[i]` is NULL; `names` are the names of all, with commas. */
void kinf__misuse_null(struct kinf_error *err, const char *function, const char *names, size_t i);

static inline bool kinf__has_null(const void *const *pointers, size_t n_pointers, size_t *ret_i)
{
    for (*ret_i = 0; *ret_i < n_pointers; ++*ret_i) {
        if (KINF__UNLIKELY(pointers[*ret_i] == NULL))
            return true;
    }
    return false;
}

/* Makes a public function return `result` (of a void one: nothing) when one of the pointers behind
 * it is NULL. Stands in front of its declarations, which may look into what they point to. `err` may
 * be NULL. */
#define KINF__REFUSE_NULL(err, result, ...)                                                        \
    do {                                                                                           \
        const void *const pointers_[] = { __VA_ARGS__ };                                           \
        size_t i_;                                                                                 \
                                                                                                   \
        if (kinf__has_null(pointers_, KINF__ARRAY_LEN(pointers_), &i_)) {                          \
            kinf__misuse_null((err), __func__, #__VA_ARGS__, i_);                                  \
            return result;                                                                         \
        }                                                                                          \
    } while (0)

#endif
