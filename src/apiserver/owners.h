/*
 * Garbage collection: what is owned goes with its owners, before them or after them, or stays and
 * forgets them.
 *
 * Mirrors: the garbage collector of kube-controller-manager. It acts at once, and knows every owner:
 * one that is not there has been deleted, or never was.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_OWNERS_H
#define KINF_APISERVER_OWNERS_H

#include "apiserver/verbs.h"

/* Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__owners_new(struct kinf__controller **ret_controller,
                                     struct kinf_error *err);

/* An object that is to be deleted gets the finalizer of this propagation and loses that of another;
 * the default is what its finalizers say already, or what its type does. *ret_waits: it has
 * finalizers, of whatever kind. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__owners_begin_delete(const struct kinf__resource *resource,
                                              struct cJSON *object,
                                              enum kinf__propagation propagation, bool *ret_waits);

#endif
