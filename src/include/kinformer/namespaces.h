/*
 * Some namespaces as one: an informer for each, handlers that are fed by all of them, one lister.
 *
 * For a program that watches a few of many namespaces, or has rights in these only. Each namespace
 * has its own watch, queue, store and resourceVersion, and recovers from errors by itself; there is
 * no version of the whole. To watch all namespaces an informer without a namespace is cheaper.
 *
 * The guarantees of kinformer/informer.h hold, with these readings: a handler's on_synced runs
 * once, after every namespace's initial list was told; its callbacks run one after another on one
 * thread, whatever namespace they are about; on_add may have in_initial_list set for one namespace
 * while another one is live.
 *
 * Mirrors: nothing in client-go; controller-runtime's cache with several DefaultNamespaces.
 * Threads: any thread, unless a line says otherwise.
 */
#ifndef KINFORMER_NAMESPACES_H
#define KINFORMER_NAMESPACES_H

#include <kinformer/api.h>
#include <kinformer/client.h>
#include <kinformer/error.h>
#include <kinformer/informer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_namespaces;

/* Asks the server for the resource, once, and makes an informer for each of the names, which are
 * copied. `options` as for kinf_informer_new(), without a namespace; its limits are those of each
 * namespace. Errors: as kinf_informer_new(), and KINF_ERR_INVALID (no names, an empty one, a
 * namespace in the options, a resource without namespaces), KINF_ERR_EXISTS (a name twice). */
KINF_API KINF_MUST_CHECK int kinf_namespaces_new(struct kinf_client *client,
                                                 const struct kinf_informer_options *options,
                                                 const char *const *names, size_t n_names,
                                                 struct kinf_namespaces **ret_namespaces,
                                                 struct kinf_error *err);
/* Stops and frees. Not from a callback, and not before the controllers that have one of its informers are
 * stopped: that is logged, and nothing is freed. NULL is allowed. Objects that are held stay valid. */
KINF_API void kinf_namespaces_free(struct kinf_namespaces *namespaces);
KINF_API void kinf_namespaces_free_ptr(struct kinf_namespaces **namespaces);
#define kinf_auto_namespaces __attribute__((cleanup(kinf_namespaces_free_ptr)))

/* As the calls of an informer, with their errors. A start that fails stops all of them. */
KINF_API KINF_MUST_CHECK int kinf_namespaces_start(struct kinf_namespaces *namespaces,
                                                   struct kinf_error *err);
KINF_API int kinf_namespaces_stop(struct kinf_namespaces *namespaces, struct kinf_error *err);
/* All of them. The message of an error names the namespace that is not synced. */
KINF_API KINF_MUST_CHECK int kinf_namespaces_wait_synced(struct kinf_namespaces *namespaces,
                                                         int64_t timeout_ms,
                                                         struct kinf_error *err);
KINF_API bool kinf_namespaces_has_synced(struct kinf_namespaces *namespaces);

/* --- handlers --- */

/* As of an informer, with their errors. */
KINF_API KINF_MUST_CHECK int kinf_namespaces_add_handler(struct kinf_namespaces *namespaces,
                                                         const struct kinf_handler *handler,
                                                         kinf_handler_id *ret_id,
                                                         struct kinf_error *err);
KINF_API void kinf_namespaces_remove_handler(struct kinf_namespaces *namespaces,
                                             kinf_handler_id id);
KINF_API bool kinf_namespaces_handler_has_synced(struct kinf_namespaces *namespaces,
                                                 kinf_handler_id id);
KINF_API KINF_MUST_CHECK int kinf_namespaces_fd(struct kinf_namespaces *namespaces, int *ret_fd,
                                                struct kinf_error *err);
KINF_API KINF_MUST_CHECK int kinf_namespaces_dispatch(struct kinf_namespaces *namespaces,
                                                      size_t max, size_t *ret_n_waiting,
                                                      struct kinf_error *err);

/* --- reading --- */

/* Objects of all the namespaces that match, sorted by key. `selector` NULL: all. Each namespace is
 * read from a snapshot of its own. Errors: KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_namespaces_list(struct kinf_namespaces *namespaces,
                                                  const struct kinf_label_selector *selector,
                                                  struct kinf_object_list *ret_list,
                                                  struct kinf_error *err);
/* The same by an index of the options. Errors: KINF_ERR_NOT_FOUND (no such index),
 * KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_namespaces_by_index(struct kinf_namespaces *namespaces,
                                                      const char *index, const char *value,
                                                      struct kinf_object_list *ret_list,
                                                      struct kinf_error *err);
/* One object by "namespace/name", with a reference for the caller. Errors: KINF_ERR_NOT_FOUND (no
 * such object, or a namespace that is not among these; the message names it). */
KINF_API KINF_MUST_CHECK int kinf_namespaces_get(struct kinf_namespaces *namespaces,
                                                 const char *key,
                                                 const struct kinf_object **ret_object,
                                                 struct kinf_error *err);

/* As kinf_informer_wait_for_rv(), for a write to the namespace `name`. Errors besides:
 * KINF_ERR_NOT_FOUND (it is not among these). */
KINF_API KINF_MUST_CHECK int kinf_namespaces_wait_for_rv(struct kinf_namespaces *namespaces,
                                                         const char *name,
                                                         const char *resource_version,
                                                         int64_t timeout_ms,
                                                         struct kinf_error *err);

/* The informer of one namespace, for its status, store, lister and resourceVersion, and for
 * controllers; NULL if it is not among these. Borrowed; starting, stopping and freeing it is not the
 * caller's, and refused (KINF_ERR_STATE). */
KINF_API struct kinf_informer *kinf_namespaces_informer(struct kinf_namespaces *namespaces,
                                                        const char *name);
KINF_API const struct kinf_type *kinf_namespaces_type(const struct kinf_namespaces *namespaces);

#ifdef __cplusplus
}
#endif
#endif
