/*
 * Who set which field: metadata.managedFields, and server-side apply, which lives by it.
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_SIM_MANAGED_H
#define KINF_SIM_MANAGED_H

#include "serve/refusal.h"
#include "sim/schema.h"
#include "sim/tree.h"

/* Who writes. */
struct kinf__manager {
    const char *name;        /* fieldManager, or the first part of the User-Agent */
    const char *api_version; /* "apps/v1", of the request */
    const char *subresource; /* "status"; "": none */
    const char *time;        /* "2026-11-22T10:00:00Z" */
};

/* A create, update or patch that was none of apply: what `object` has that differs from `old` (NULL:
 * everything) becomes the manager's, and nobody else's; what is gone is nobody's. `object` begins
 * with the managedFields of `old`, whatever the client sent; an empty list that it sent
 * (`is_reset`) clears them first. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__managed_update(const struct kinf__schema_node *node,
                                         const struct cJSON *old, struct cJSON *object,
                                         const struct kinf__manager *manager, bool is_reset);

/* Server-side apply: what `config` says is merged into `live` (NULL: there is nothing yet), what
 * this manager applied before and does not say any more goes, unless somebody else has it, too.
 * *ret_object has managedFields in it. Fields of others with another value: KINF_ERR_INVALID and
 * the server's 409 with its causes, unless `force`. Errors: that, KINF_ERR_NO_MEMORY likewise. */
KINF_MUST_CHECK int kinf__managed_apply(const struct kinf__schema_node *node,
                                        const struct cJSON *live, const struct cJSON *config,
                                        const struct kinf__manager *manager, bool force,
                                        struct cJSON **ret_object, struct kinf__refusal *refusal);

#endif
