/*
 * The store's resources as discovery tells them.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_RESOURCE_CATALOG_H
#define KINF_APISERVER_RESOURCE_CATALOG_H

#include "apiserver/store.h"

/* Discovery as the store is now. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__resource_catalog_publish(struct kinf__store *store,
                                                   struct kinf__server *server);

#endif
