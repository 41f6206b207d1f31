/*
 * Command lines of long options: --name VALUE, --name=VALUE, --name.
 *
 * Threads: one thread, at start.
 */
#ifndef KINF_BASE_FLAGS_H
#define KINF_BASE_FLAGS_H

#include <stddef.h>

#include <kinformer/error.h>

#include "base/compiler.h"

#define KINF__FLAG_MAX_VALUES 256

/* Of a flag that may be repeated; they point into argv. */
struct kinf__flag_values {
    const char *items[KINF__FLAG_MAX_VALUES];
    size_t n_items;
};

struct kinf__flag {
    const char *name;
    bool has_value;
    size_t offset; /* of the member of what is read into */
    int set_to;    /* of kinf__flag_set */
    /* `value` is NULL if it has none. Errors: KINF_ERR_INVALID. */
    int (*take)(const struct kinf__flag *flag, const char *value, void *member,
                struct kinf_error *err);
};

/* Members of type const char *, struct kinf__flag_values, bool, and an enum. */
int kinf__flag_text(const struct kinf__flag *flag, const char *value, void *member,
                    struct kinf_error *err);
int kinf__flag_add(const struct kinf__flag *flag, const char *value, void *member,
                   struct kinf_error *err);
int kinf__flag_on(const struct kinf__flag *flag, const char *value, void *member,
                  struct kinf_error *err);
int kinf__flag_set(const struct kinf__flag *flag, const char *value, void *member,
                   struct kinf_error *err);

/* `stray` says how what is no option would be given, say "a resource is given by --resource".
 * Errors: KINF_ERR_INVALID (an option that there is not, or is short for several, without its value
 * or with one that it does not take), and those of `take`. */
KINF_MUST_CHECK int kinf__flags_read(int argc, char *argv[], const struct kinf__flag *flags,
                                     size_t n_flags, void *into, const char *stray,
                                     struct kinf_error *err);

#endif
