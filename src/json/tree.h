/*
 * A cJSON tree of some text, for those who ask for one (discovery answers, kinf_object_tree()).
 * Nothing on the hot path or at rest is a tree.
 *
 * Threads: any thread; a tree belongs to one.
 */
#ifndef KINF_JSON_TREE_H
#define KINF_JSON_TREE_H

#include <stdbool.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

struct cJSON;

/* Scans the text strictly, then parses it. The caller frees the tree with kinf__json_tree_free().
 * cJSON's own limits apply: depth 1000, no unpaired surrogates, some versions take
 * numbers of 63 bytes at most (KINF_ERR_LIMIT); numbers are doubles, strings end at a NUL. */
KINF_MUST_CHECK int kinf__json_tree_parse(struct kinf_str text, struct cJSON **ret_tree,
                                          struct kinf_error *err);
void kinf__json_tree_free(struct cJSON *tree);
void kinf__json_tree_free_ptr(struct cJSON **tree);

/* Walks by literal keys, NULL at the end of the arguments; NULL if one is missing. Case matters. */
const struct cJSON *kinf__json_tree_find(const struct cJSON *tree, ...) __attribute__((sentinel));

/* The text of a string, or NULL if `node` is NULL or no string. The tree's own. */
const char *kinf__json_tree_string(const struct cJSON *node);

/* Whether `node` is true; NULL and anything else is not. */
bool kinf__json_tree_is_true(const struct cJSON *node);

/* Elements of an array, or NULL. */
const struct cJSON *kinf__json_tree_first(const struct cJSON *array);
const struct cJSON *kinf__json_tree_next(const struct cJSON *node);

#endif
