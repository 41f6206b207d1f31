/*
 * Requests for the documents of openapi.h.
 */
#ifndef KINF_APISERVER_OPENAPI_REQUEST_H
#define KINF_APISERVER_OPENAPI_REQUEST_H

#include "serve/backend.h"

struct kinf__sim;

/* Whether a target is /openapi/v3, what is below it, or /openapi/v2. */
bool kinf__openapi_takes(struct kinf_str target);
/* Without the store's lock. */
KINF_MUST_CHECK int kinf__openapi_answer(struct kinf__sim *sim,
                                         const struct kinf__request_head *head,
                                         struct kinf__answer *answer,
                                         struct kinf__refusal *refusal);

#endif
