/*
 * An object as a cJSON tree, for those who want to walk it. The only public header with a type of
 * another library. A tree costs about six times the text; the library itself never makes one of an
 * object.
 *
 * Mirrors: unstructured.Unstructured.
 * Threads: any thread; the tree belongs to the caller.
 */
#ifndef KINFORMER_TREE_H
#define KINFORMER_TREE_H

#include <cjson/cJSON.h>

#include <kinformer/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The object with kind and apiVersion. The caller frees it with cJSON_Delete(). cJSON's limits
 * apply: numbers become doubles (int64 above 2^53 lose digits), strings end at their first NUL;
 * deeper than 1000 or with an unpaired surrogate is KINF_ERR_LIMIT. Errors: KINF_ERR_LIMIT,
 * KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_object_tree(const struct kinf_object *object, cJSON **ret_tree,
                                              struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
