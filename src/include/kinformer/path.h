/*
 * Paths into an object: one grammar for drop, keep, index and get.
 *
 *     path    = segment *( "." segment / subscript )
 *     segment = one or more bytes other than . [ ] ", white space and control characters
 *     subscript = "[*]"            every element of an array, or every value of an object
 *               / "[" digits "]"   one element of an array, from 0
 *               / "[" string "]"   a key in JSON string syntax, for keys with dots or slashes
 *
 *     spec.nodeName   spec.containers[*].name   metadata.annotations["example.org/owner"]
 *
 * A leading dot is accepted, as in kubectl's JSONPath (".spec.nodeName"); its "$" and braces are
 * refused.
 *
 * Mirrors: nothing; kubectl's JSONPath looks like it.
 * Threads: any thread; a path never changes.
 */
#ifndef KINFORMER_PATH_H
#define KINFORMER_PATH_H

#include <kinformer/api.h>
#include <kinformer/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Segments and subscripts of one path at most. */
#define KINF_PATH_MAX_STEPS 32

struct kinf_path;

/* Parses a path. The caller frees it. Errors: KINF_ERR_PARSE (message with the column, from 1),
 * KINF_ERR_LIMIT (more than KINF_PATH_MAX_STEPS), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_path_parse(const char *text, struct kinf_path **ret_path,
                                             struct kinf_error *err);
KINF_API void kinf_path_free(struct kinf_path *path); /* NULL is allowed */

/* The text it was parsed from; the path's own. */
KINF_API const char *kinf_path_text(const struct kinf_path *path);

#ifdef __cplusplus
}
#endif
#endif
