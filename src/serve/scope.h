/*
 * What a source covers: which requests it can answer completely.
 *
 * Numbered promises, which tests cite:
 *  S1  A list or watch is covered only if everything that the API server would select for it is
 *      within the scope: namespace, labels, fields and shard.
 *  S2  A field that the source does not keep is never compared: what selects by it is refused, unless
 *      the whole scope has the value that is asked for.
 *
 * Threads: any thread; constant once made.
 */
#ifndef KINF_SERVE_SCOPE_H
#define KINF_SERVE_SCOPE_H

#include <stdbool.h>
#include <stddef.h>

#include "object/object.h"
#include "serve/list_options.h"

/* The texts are never NULL; "" is no limit. */
struct kinf__scope {
    char *name_space;
    char *label_selector;
    char *field_selector;
    char *shard_selector;
    struct kinf__fields *fields; /* of field_selector; NULL: it is none that clients could repeat */
    const struct kinf__prune_plan *plan; /* borrowed; NULL: all fields are kept */
};

/* Copies texts, of which NULL is "". Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__scope_init(struct kinf__scope *scope, const char *name_space,
                                     const char *label_selector, const char *field_selector,
                                     const char *shard_selector,
                                     const struct kinf__prune_plan *plan);
void kinf__scope_release(struct kinf__scope *scope);

/* `name_space` is the path's; "": all. */
bool kinf__scope_covers_namespace(const struct kinf__scope *scope, const char *name_space);
bool kinf__scope_covers_selection(const struct kinf__scope *scope,
                                  const struct kinf__list_options *options);
/* Whether objects of its namespace may be outside: a name that is not in the store may exist. */
bool kinf__scope_is_selective(const struct kinf__scope *scope);

/* For bound fields: terms that the whole scope satisfies hold from here on. Returns the label of one
 * that cannot be compared, or NULL. */
const char *kinf__scope_apply(const struct kinf__scope *scope, struct kinf__fields *fields);

/* A few words on what it is limited to: " in the namespace a with app=web", " of all namespaces". */
void kinf__scope_words(const struct kinf__scope *scope, char *buf, size_t size);

#endif
