/*
 * What stands below an object and is not the object itself: scale, binding, eviction, token, log.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_SUBRESOURCES_H
#define KINF_APISERVER_SUBRESOURCES_H

#include "apiserver/verbs.h"

/* Whether reads and writes of it are those of the whole object: status, finalize, resize... */
bool kinf__subresource_is_main(const struct kinf__verb *verb);
/* Whether the version has it at all. */
bool kinf__subresource_is_known(const struct kinf__verb *verb);

/* The kind of what is posted to it: "Eviction". */
const char *kinf__subresource_kind(const struct kinf__verb *verb);

/* Whether a body is of this kind; 400 if not. */
KINF_MUST_CHECK int kinf__subresource_check_kind(struct kinf__verb *verb, const struct cJSON *body);

/* The Scale of the verb's object. Errors: KINF_ERR_INVALID with the refusal, KINF_ERR_NO_MEMORY
 * likewise. */
KINF_MUST_CHECK int kinf__scale_read(struct kinf__verb *verb, struct cJSON **ret_scale);
/* Sets the replicas that a Scale says; verb->object is the whole object then. */
KINF_MUST_CHECK int kinf__scale_write(struct kinf__verb *verb, const struct cJSON *scale);

/* The POSTs: `body` is what came, and becomes the answer. */
KINF_MUST_CHECK int kinf__subresource_post(struct kinf__verb *verb, struct cJSON **body);

#endif
