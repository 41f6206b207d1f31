/*
 * Requests that the caches do not answer: writes, subresources, reviews, OpenAPI. Takes a request
 * apart for verbs.c and writes what comes of it.
 *
 * Threads: a connection's, several at once; takes the store's lock itself.
 */
#ifndef KINF_APISERVER_REQUEST_H
#define KINF_APISERVER_REQUEST_H

#include "apiserver/sim.h"

/* For a struct kinf__backend; `ctx` is the sim. */
bool kinf__sim_takes(const struct kinf__request_head *head, const struct kinf__request *request,
                     void *ctx);
KINF_MUST_CHECK int kinf__sim_answer(const struct kinf__backend_call *call,
                                     struct kinf__answer *answer, struct kinf__refusal *refusal,
                                     void *ctx);
/* Whether the caller may, by the policy. */
KINF_MUST_CHECK int kinf__sim_admit(const struct kinf__request_head *head,
                                    const struct kinf__attributes *attributes,
                                    struct kinf__refusal *refusal, void *ctx);

#endif
