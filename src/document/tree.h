/*
 * JSON documents that are changed: what a write brings, and what it makes of what is stored. The
 * trees are cJSON's; this adds what it lacks: numbers as they were written, errors, equality without
 * regard to order, and walking by names.
 *
 * A number that a double does not hold exactly is a raw item (cJSON_IsRaw): ask
 * kinf__doc_is_number().
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_DOCUMENT_TREE_H
#define KINF_DOCUMENT_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

#include "base/buffer.h"
#include "json/tree.h"

#define KINF__AUTO_DOC KINF__CLEANUP(kinf__json_tree_free_ptr) struct cJSON

/* Parses a whole text strictly. Errors: KINF_ERR_PARSE, KINF_ERR_TRUNCATED, KINF_ERR_LIMIT (too
 * deep, or a NUL in a string), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__doc_parse(struct kinf_str json, struct cJSON **ret_tree,
                                    struct kinf_error *err);
/* Appends the tree as compact JSON. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__doc_print(const struct cJSON *tree, struct kinf__buffer *out);
/* The tree as Go prints one, with %v or (`verb`) %s, of about `max` bytes at most: messages of
 * kube-apiserver have such in them. In `room`; NULL: out of memory. */
const char *kinf__doc_go_text(const struct cJSON *tree, char verb, size_t max,
                              struct kinf__buffer *room);
/* NULL: out of memory, or of NULL. */
struct cJSON *kinf__doc_dup(const struct cJSON *tree);

/* Members in any order, elements in theirs. NULL equals NULL and nothing else. */
bool kinf__doc_equal(const struct cJSON *a, const struct cJSON *b);

/* Whether there is nothing in it; NULL is empty. */
bool kinf__doc_is_empty(const struct cJSON *container);
bool kinf__doc_is_number(const struct cJSON *node);
bool kinf__doc_is_integer(const struct cJSON *node);
/* What it is as a double, about; 0 if it is no number, or NULL. */
double kinf__doc_number(const struct cJSON *node);
/* Whole numbers that were written with a fraction or an exponent lose it, as Go writes them: "1.0" and
 * "1e3" are no integers to those who read one. Those of 16 digits and more stay as they are. */
void kinf__doc_shorten_numbers(struct cJSON *tree);

/* "object", "array", "number" and so on; and as Go has it in an interface, "int64". */
const char *kinf__json_type_word(const struct cJSON *value);
const char *kinf__doc_go_type(const struct cJSON *value);
#define KINF__GO_MAP   "map[string]interface {}"
#define KINF__GO_SLICE "[]interface {}"

/* The member; NULL if there is none or `object` is no object or NULL. Case matters. */
struct cJSON *kinf__doc_get(const struct cJSON *object, const char *name);
/* Walks by names, NULL at the end of the arguments; NULL if one is missing. */
struct cJSON *kinf__doc_find(const struct cJSON *tree, ...) __attribute__((sentinel));
/* The text there; "" if there is none or it is no string. The tree's own. */
const char *kinf__doc_text(const struct cJSON *tree, ...) __attribute__((sentinel));
/* The truth of a member; false of what is none. */
bool kinf__doc_is_true(const struct cJSON *object, const char *name);
/* The integer there, or `none`; beyond 64 bits the nearest. */
int64_t kinf__doc_integer(const struct cJSON *object, const char *name, int64_t none);

/*
 * Changing. `object` is an object; what is there under the name gives way.
 */

/* Consumes `take_value`, also on failure; an object or a value that is NULL is a failure, so that
 * calls nest. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__doc_set(struct cJSON *object, const char *name, struct cJSON *take_value);
KINF_MUST_CHECK int kinf__doc_set_text(struct cJSON *object, const char *name, const char *text);
KINF_MUST_CHECK int kinf__doc_set_integer(struct cJSON *object, const char *name, int64_t number);
/* Appends to an array; consumes the value, likewise. */
KINF_MUST_CHECK int kinf__doc_append(struct cJSON *array, struct cJSON *take_value);
/* Adds a member without looking for one of the name; consumes the value, likewise. */
KINF_MUST_CHECK int kinf__doc_append_member(struct cJSON *object, const char *name,
                                            struct cJSON *take_value);
void kinf__doc_remove(struct cJSON *object, const char *name);
/* Takes out a member or an element, and frees it. */
void kinf__doc_drop(struct cJSON *container, struct cJSON *child);
/* Of doubled members the last one stays, anywhere in it. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__doc_undouble(struct cJSON *tree);
/* The object under the name, made if there is none or it is no object. NULL: out of memory. */
struct cJSON *kinf__doc_object(struct cJSON *object, const char *name);
/* The array, likewise. */
struct cJSON *kinf__doc_array(struct cJSON *object, const char *name);

/* --- arrays as sets of texts: finalizers, versions --- */

/* Whether it is this text; NULL is not. */
bool kinf__doc_is_text(const struct cJSON *node, const char *text);
/* `array` NULL has none. */
bool kinf__doc_has_text(const struct cJSON *array, const char *text);
/* Puts the text into the array under the name, unless it is there. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__doc_add_text(struct cJSON *object, const char *name, const char *text);
/* Takes it out of the array under the name, and with the last element the array. */
void kinf__doc_remove_text(struct cJSON *object, const char *name, const char *text);

#endif
