/*
 * The life of namespaces: those that every cluster has, what may be created in one, and that one
 * ends after all that is in it.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_NAMESPACES_H
#define KINF_APISERVER_NAMESPACES_H

#include "apiserver/sim.h"

/* Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__namespaces_new(struct kinf__controller **ret_controller,
                                         struct kinf_error *err);

/* What kube-apiserver makes at its start: four namespaces, its own service, the two priority classes
 * of the system, an APIService for each group and version. Errors: KINF_ERR_CONFIG (refused),
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__namespaces_bootstrap(struct kinf__sim *sim, struct kinf_error *err);

/* Whether `name` of this resource can be created in the namespace: 404 if that is not there, 403
 * while it ends. */
KINF_MUST_CHECK int kinf__namespace_check(struct kinf__sim *sim, const char *name_space,
                                          const struct kinf__resource *resource, const char *name,
                                          struct kinf__refusal *refusal);

/* One that is to be deleted, and waits for what is in it. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__namespace_begin_end(struct cJSON *object);

#endif
