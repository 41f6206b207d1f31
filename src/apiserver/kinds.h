/*
 * What certain kinds do when they are written, beyond what their schema says: upstream's strategies
 * and admission. What is filled in, what an update cannot change, what is no valid object.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_KINDS_H
#define KINF_APISERVER_KINDS_H

#include "apiserver/sim.h"

/* Before a new object is validated and stored, after the schema's defaults. It has its uid and its
 * name. Errors: KINF_ERR_INVALID, KINF_ERR_NO_MEMORY, with the refusal written. */
KINF_MUST_CHECK int kinf__kind_prepare_create(struct kinf__sim *sim,
                                              struct kinf__resource *resource, struct cJSON *object,
                                              struct kinf__refusal *refusal);

/* What this write does not write is `old`'s again (NULL: the object is new, and has none of it): the
 * status, or all else if the status is written (`subresource`). Its metadata has been made the
 * server's already (uid, creationTimestamp and so on), defaults have been filled in. */
KINF_MUST_CHECK int kinf__kind_keep_rest(struct kinf__resource *resource, const struct cJSON *old,
                                         struct cJSON *object, const char *subresource,
                                         struct kinf__refusal *refusal);

/* The object's member is `old`'s again, or none if that has none. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__kind_restore(const struct cJSON *old, struct cJSON *object,
                                       const char *name);
/* The same of those members that the object has not. */
KINF_MUST_CHECK int kinf__kind_keep_unsaid(const struct cJSON *old, struct cJSON *object,
                                           const char *const *names, size_t n_names);

/* Before an update, likewise, after kinf__kind_keep_rest(). */
KINF_MUST_CHECK int kinf__kind_prepare_update(struct kinf__sim *sim,
                                              struct kinf__resource *resource,
                                              const struct cJSON *old, struct cJSON *object,
                                              const char *subresource,
                                              struct kinf__refusal *refusal);

/* Admission of a pod that comes to a node: it gets the labels of its zone and region, if the node is
 * there and has them. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__pod_take_topology(struct kinf__sim *sim, const char *node,
                                            struct cJSON *pod);

/* Whether what is to be stored is valid; `old` NULL: it is new. Custom resources: their metadata.
 * Definitions of such: all of it. Errors: KINF_ERR_INVALID with the server's 422. */
KINF_MUST_CHECK int kinf__kind_validate(const struct kinf__resource *resource,
                                        const struct cJSON *object, const struct cJSON *old,
                                        struct kinf__refusal *refusal);

/* An object of the resource's twin (kinf__store_pair()) becomes one of its own. */
kinf__convert_cb kinf__kind_convert;

/* Whether metadata.generation is counted: 1 at creation, one more with each change that
 * kinf__kind_is_changed() sees, and when deletion begins. */
bool kinf__kind_has_generation(const struct kinf__resource *resource);
/* Whether what is wanted has changed: anything but metadata, and status unless that `counts`. */
bool kinf__kind_is_changed(const struct kinf__resource *resource, bool status_counts,
                           const struct cJSON *old, const struct cJSON *object);

/* Before a deletion: refuses it for what must stay (403), and changes in `object` what a deletion
 * that begins does: a namespace is Terminating, a definition waits for its objects. */
KINF_MUST_CHECK int kinf__kind_prepare_delete(const struct kinf__resource *resource,
                                              struct cJSON *object, struct kinf__refusal *refusal);
/* Whether finalizers hold it: metadata's, and a namespace's own. What is being deleted and not held
 * is to be removed, whoever wrote last. */
bool kinf__kind_is_held(const struct kinf__resource *resource, const struct cJSON *object);

#endif
