/*
 * Who set which field: metadata.managedFields, and server-side apply, which lives by it.
 *
 * Fields of one object mean the same in all of its versions here: nothing is converted. Of another
 * group than the one that is written nobody has anything, as the server cannot convert those either.
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_DOCUMENT_MANAGED_H
#define KINF_DOCUMENT_MANAGED_H

#include "serve/refusal.h"
#include "document/schema.h"
#include "document/tree.h"

/* Who writes. */
struct kinf__manager {
    const char *name;        /* fieldManager, or the first part of the User-Agent */
    const char *api_version; /* "apps/v1", of the request */
    const char *subresource; /* "status"; "": none */
    const char *time;        /* "2026-11-22T10:00:00Z"; "": none, as writes to scale have it */
};

/* A create, update or patch that was none of apply: what `object` has that differs from `old` (NULL:
 * it is created) becomes the manager's, and nobody else's; what is gone is nobody's. Defaults have
 * been filled in, and what the server sets itself has not yet been.
 *
 * `object` has the managedFields that the client sent, or those of `old`: clients may change them,
 * but not by way of a subresource. None, or some that make no sense, are those of `old`; an empty
 * list, or one of an empty entry, clears them, and so does `is_reset`. An object without any stays
 * without until it is applied. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__managed_update(const struct kinf__schema_node *node,
                                         const struct cJSON *old, struct cJSON *object,
                                         const struct kinf__manager *manager, bool is_reset);

/* A write that changes nothing but when somebody last wrote is none: `object`, as it is about to be
 * stored in the place of `old`, gets its managedFields then. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__managed_keep_times(const struct cJSON *old, struct cJSON *object);

/* Server-side apply: what `config` says is merged into `live` (NULL: there is nothing yet), what
 * this manager applied before and does not say any more goes, unless somebody else has it, too.
 * *ret_object has managedFields in it; with those of `live`, it equals `live` if nothing changed.
 * What config says of status, or of everything but status, the caller has taken out.
 *
 * Fields of others with another value: KINF_ERR_INVALID and the server's 409 with its causes, unless
 * `force`. "kubectl" may have what its client-side apply says in the annotation of the last one, and
 * the annotation follows. A config that has managedFields, or does not go with the schema, is
 * refused, too (400, 500). Errors: that, KINF_ERR_NO_MEMORY likewise. */
KINF_MUST_CHECK int kinf__managed_apply(const struct kinf__schema_node *node,
                                        const struct cJSON *live, const struct cJSON *config,
                                        const struct kinf__manager *manager, bool force,
                                        struct cJSON **ret_object, struct kinf__refusal *refusal);

#endif
