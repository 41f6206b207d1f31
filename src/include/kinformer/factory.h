/*
 * The factory: those who ask for the same objects share one informer.
 *
 * Two requests mean the same informer when resource, namespace and the selectors are the same;
 * NULL and "" are, selectors are compared as text. A request for an informer that is there already
 * must agree with what was asked first, else it fails and changes nothing:
 *  - what is stored (metadata_only, drops and keeps in any order, transform and its ctx) must be
 * equal;
 *  - of everything else but handler and indices, what the request leaves at its default is taken as
 *    it is, what it sets must be equal;
 *  - an index whose name is there already must be the same index; new names are added.
 *
 * Mirrors: informers.SharedInformerFactory. Differences: namespace and selectors belong to the
 * request and not to the factory; no index is there unless somebody asks for it (a lister of a
 * namespace needs none).
 * Threads: any thread.
 */
#ifndef KINFORMER_FACTORY_H
#define KINFORMER_FACTORY_H

#include <kinformer/api.h>
#include <kinformer/client.h>
#include <kinformer/error.h>
#include <kinformer/informer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_factory;

/* `client` is borrowed and must outlive the factory. Errors: KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_factory_new(struct kinf_client *client,
                                              struct kinf_factory **ret_factory,
                                              struct kinf_error *err);
/* Shuts down and frees, with every informer of it. Not from a callback of one of them, and not before the
 * controllers that have one are stopped (it is only logged then, and nothing freed). NULL is allowed. */
KINF_API void kinf_factory_free(struct kinf_factory *factory);
KINF_API void kinf_factory_free_ptr(struct kinf_factory **factory);
#define kinf_auto_factory __attribute__((cleanup(kinf_factory_free_ptr)))

/* The informer for these options, made if nobody asked before; options->handler is added to it.
 * Borrowed until the factory is freed; starting, stopping and freeing it is the factory's, and refused
 * by hand (KINF_ERR_STATE). Asks the
 * server for the resource and blocks as kinf_informer_new(). Errors besides its: KINF_ERR_STOPPED
 * (after shutdown), KINF_ERR_INVALID (the options conflict with the first ones; the message names
 * the member), KINF_ERR_EXISTS (another index of this name), KINF_ERR_STATE (from an index function);
 * if the handler cannot be added, new indices stay. Mirrors: SharedInformerFactory.ForResource, InformerFor. */
KINF_API KINF_MUST_CHECK int kinf_factory_informer(struct kinf_factory *factory,
                                                   const struct kinf_informer_options *options,
                                                   struct kinf_informer **ret_informer,
                                                   struct kinf_error *err);

/* Starts the informers that were not started yet, also those that came after an earlier start. Does
 * nothing after shutdown. Errors: as kinf_informer_start(), of the first that fails; it is stopped
 * then, and those behind it can still be started. Mirrors: SharedInformerFactory.Start. */
KINF_API KINF_MUST_CHECK int kinf_factory_start(struct kinf_factory *factory,
                                                struct kinf_error *err);

/* Waits until every informer that was started has its first list. Errors: as
 * kinf_informer_wait_synced(), of the first that is not synced. Mirrors:
 * SharedInformerFactory.WaitForCacheSync. */
KINF_API KINF_MUST_CHECK int kinf_factory_wait_synced(struct kinf_factory *factory,
                                                      int64_t timeout_ms, struct kinf_error *err);

/* Stops every informer and joins their threads; their stores can still be read. A second shutdown
 * is harmless. Errors: KINF_ERR_STATE (from a callback of one of the informers, or one that such a
 * callback waits for, as in kinformer/informer.h; nothing changed). Mirrors:
 * SharedInformerFactory.Shutdown. */
KINF_API int kinf_factory_shutdown(struct kinf_factory *factory, struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
