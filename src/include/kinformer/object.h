/*
 * Objects: what the API server sent, less what was asked to be dropped.
 *
 * An object is immutable and counted. Whoever is handed one borrows it for as long as is stated
 * there, and takes a reference to keep it longer. Its JSON text comes without `kind` and
 * `apiVersion` (its type has them), so that equal objects have equal bytes however they arrived;
 * numbers stay as their text. The text may be compressed at rest, so it is read through accessors
 * that copy, or through a struct kinf_scratch.
 *
 * Mirrors: runtime.Object with metav1.ObjectMeta.
 * Threads: any thread; a scratch belongs to one.
 */
#ifndef KINFORMER_OBJECT_H
#define KINFORMER_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/error.h>
#include <kinformer/path.h>
#include <kinformer/str.h>
#include <kinformer/type.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Room for a name or a namespace with its NUL (DNS subdomain, 253 bytes). */
#define KINF_NAME_MAX 254

struct kinf_object;

/* Both accept NULL; ref returns its argument. The last unref frees. */
KINF_API const struct kinf_object *kinf_object_ref(const struct kinf_object *object);
KINF_API void kinf_object_unref(const struct kinf_object *object);
KINF_API void kinf_object_unref_ptr(const struct kinf_object **object);
/* Gives up the reference when the variable leaves its scope. */
#define kinf_auto_object __attribute__((cleanup(kinf_object_unref_ptr)))

/* Makes an object, one reference of the caller's, from the JSON text of one, as a server would send it; `kind` and `apiVersion` may
 * be there and are stripped. For tests, and for feeding a store or queue from another source.
 * Errors: KINF_ERR_PARSE (no JSON, no object, no metadata.name, a doubled or wrongly typed identity
 * field, another kind), KINF_ERR_LIMIT, KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_object_new_from_json(const struct kinf_type *type,
                                                       const char *text, size_t len,
                                                       const struct kinf_object **ret_object,
                                                       struct kinf_error *err);

/* Identity. The strings are the object's, terminated, never NULL ("" where the server sent none).
 */
KINF_API const struct kinf_type *kinf_object_type(const struct kinf_object *object);
/* "namespace/name", or "name" of a cluster-scoped object (cache.MetaNamespaceKeyFunc). */
KINF_API const char *kinf_object_key(const struct kinf_object *object);
KINF_API const char *kinf_object_name(const struct kinf_object *object);
/* Not terminated: a view into the key. */
KINF_API struct kinf_str kinf_object_namespace(const struct kinf_object *object);
KINF_API const char *kinf_object_uid(const struct kinf_object *object);
KINF_API const char *kinf_object_resource_version(const struct kinf_object *object);

/* Bytes that the object holds in memory, its own bookkeeping included. */
KINF_API size_t kinf_object_size(const struct kinf_object *object);

/* Room in which an object's text is made readable. All zero is valid; release it once at the end.
 */
struct kinf_scratch {
    char *bytes;
    size_t size;
};
#define KINF_SCRATCH_INIT                                                                          \
    {                                                                                              \
        NULL, 0                                                                                    \
    }
KINF_API void kinf_scratch_release(struct kinf_scratch *scratch);
#define kinf_auto_scratch __attribute__((cleanup(kinf_scratch_release)))

/* The object's JSON text, without kind and apiVersion. Valid until the scratch is used again or
 * released, or the object is given up. Errors: KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_object_json(const struct kinf_object *object,
                                              struct kinf_scratch *scratch,
                                              struct kinf_str *ret_text, struct kinf_error *err);

/* The same with kind and apiVersion in front, as the server sends an object of its own. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_object_full_json(const struct kinf_object *object,
                                                   struct kinf_scratch *scratch,
                                                   struct kinf_str *ret_text,
                                                   struct kinf_error *err);

/*
 * Reading one field. `path` is in the grammar of kinformer/path.h; where it names several values
 * the first counts. None of these writes an error text, the codes say it all: KINF_ERR_NOT_FOUND
 * (not there, null, or dropped), KINF_ERR_PARSE (the path is malformed, or has too many steps),
 * KINF_ERR_INVALID (there, but of another type), KINF_ERR_LIMIT (`size` is too small, or the number does not fit),
 * KINF_ERR_NO_MEMORY. The out-parameter is written on success only.
 */

/* A string, decoded, with a NUL behind it; one that holds a NUL itself is KINF_ERR_INVALID. */
KINF_API KINF_MUST_CHECK int kinf_object_get_string(const struct kinf_object *object,
                                                    const char *path, char *buf, size_t size);
KINF_API KINF_MUST_CHECK int kinf_object_get_int64(const struct kinf_object *object,
                                                   const char *path, int64_t *ret_number);
KINF_API KINF_MUST_CHECK int kinf_object_get_bool(const struct kinf_object *object,
                                                  const char *path, bool *ret_truth);
/* The value of one label or annotation. */
KINF_API KINF_MUST_CHECK int kinf_object_get_label(const struct kinf_object *object,
                                                   const char *key, char *buf, size_t size);
KINF_API KINF_MUST_CHECK int kinf_object_get_annotation(const struct kinf_object *object,
                                                        const char *key, char *buf, size_t size);

/* Whether there is a value, and it is not null. A malformed path names nothing. */
KINF_API bool kinf_object_has(const struct kinf_object *object, const char *path);
/* The value as raw JSON text: a string with quotes and escapes, an object, an array. Valid until the
 * scratch is used again or released, or the object is given up. */
KINF_API KINF_MUST_CHECK int kinf_object_get_json(const struct kinf_object *object,
                                                  const char *path, struct kinf_scratch *scratch,
                                                  struct kinf_str *ret_json);

/* Called for each label or annotation, in the order of the text; both texts are decoded, terminated
 * and valid during the call. 0 goes on, anything else ends the walk. */
typedef int kinf_object_pair_cb(const char *key, const char *value, void *ctx);

/* Walks all labels, all annotations; one whose value is no string, or holds a NUL, is passed over.
 * Returns 0, what the callback returned, or KINF_ERR_NO_MEMORY. Mirrors: metav1.Object's GetLabels,
 * GetAnnotations. */
KINF_API KINF_MUST_CHECK int kinf_object_each_label(const struct kinf_object *object,
                                                    kinf_object_pair_cb *callback, void *ctx);
KINF_API KINF_MUST_CHECK int kinf_object_each_annotation(const struct kinf_object *object,
                                                         kinf_object_pair_cb *callback, void *ctx);

/* Called for each value that a path names: its raw JSON text (a string with quotes and escapes),
 * valid during the call. 0 goes on, anything else ends the walk. */
typedef int kinf_object_value_cb(struct kinf_str json, void *ctx);

/* Walks every value that `path` names, in the order of the text. Returns 0, what the callback
 * returned, or KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_object_each(const struct kinf_object *object,
                                              const struct kinf_path *path,
                                              kinf_object_value_cb *callback, void *ctx);

/* Decodes a raw JSON string, as kinf_object_each() hands out, into `buf` with a NUL behind it.
 * Errors: KINF_ERR_INVALID (no string, or one with a NUL), KINF_ERR_LIMIT. */
KINF_API KINF_MUST_CHECK int kinf_json_string(struct kinf_str json, char *buf, size_t size);

/*
 * Order of resourceVersions of one resource type (resourceversion.CompareResourceVersion): decimal,
 * no leading zero, at most 2^128-1. *ret_order is negative, zero or positive. Errors:
 * KINF_ERR_INVALID for anything else, "" and "0" included: such versions have no order.
 */
KINF_API KINF_MUST_CHECK int kinf_rv_compare(const char *a, const char *b, int *ret_order,
                                             struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
