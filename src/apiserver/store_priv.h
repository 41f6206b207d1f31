/*
 * The store, for store.c and resources.c.
 */
#ifndef KINF_APISERVER_STORE_PRIV_H
#define KINF_APISERVER_STORE_PRIV_H

#include "apiserver/feed.h"
#include "apiserver/store.h"

struct kinf__store {
    struct kinf__feeds feeds;
    /* constant */
    kinf__store_change_cb *on_change;
    void *ctx;
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list resources;
    struct kinf__buffer text; /* of the object that is being written */
};

/* Of all versions that have its objects, first its own, then those of its twin. NULL: no more. */
struct kinf__resource_version *kinf__resource_version_at(struct kinf__resource *resource, size_t i);
/* Nothing is written to a version that is owed something. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__resource_settle(struct kinf__resource *resource, struct kinf_error *err);

#endif
