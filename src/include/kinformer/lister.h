/*
 * Listers: reading a store by namespace and label selector.
 *
 * Mirrors: cache.GenericLister, cache.GenericNamespaceLister, cache.ListAll,
 * cache.ListAllByNamespace.
 * Threads: any thread; each call reads one snapshot.
 */
#ifndef KINFORMER_LISTER_H
#define KINFORMER_LISTER_H

#include <kinformer/api.h>
#include <kinformer/indexer.h>
#include <kinformer/selector.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A small value: copy it freely. Borrows the indexer. */
struct kinf_lister {
    struct kinf_indexer *indexer;
    const char *name_space; /* NULL or "": all; borrowed */
};

/* Objects that match, sorted by key. `selector` NULL: all. Errors: KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_lister_list(const struct kinf_lister *lister,
                                              const struct kinf_label_selector *selector,
                                              struct kinf_object_list *ret_list,
                                              struct kinf_error *err);
/* One object by name (of a namespaced lister), or by "namespace/name" or cluster-scoped name; with
 * a reference for the caller. Errors: KINF_ERR_NOT_FOUND (message names it). */
KINF_API KINF_MUST_CHECK int kinf_lister_get(const struct kinf_lister *lister, const char *name,
                                             const struct kinf_object **ret_object,
                                             struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
