/*
 * Whether a request may be answered: what it asks for, put to the authorizer.
 *
 * Threads: the connection's.
 */
#ifndef KINF_SERVE_ACCESS_H
#define KINF_SERVE_ACCESS_H

#include "serve/exchange_priv.h"

/* The request is parsed. Returns enum kinf__step: answered means that it may; or a negative code,
 * the refusal written. Without an authorizer everybody may. `head` is needed until it may. */
KINF_MUST_CHECK int kinf__access_step(struct kinf__exchange *exchange,
                                      const struct kinf__exchange_head *head);

/* 403, in the API server's words; `reason` "": none. Returns KINF_ERR_INVALID. */
int kinf__access_refuse(struct kinf__refusal *refusal, const struct kinf__attributes *attributes,
                        const char *user, const char *reason);

/* Whether it is open to everybody wherever it is asked: health, as a whole. */
bool kinf__access_is_open(const struct kinf__exchange *exchange);

/* The verb that authorization and discovery know a request by; `read_verb` if it changes nothing. */
const char *kinf__access_verb(const struct kinf__request *request, const char *method,
                              const char *read_verb);

/* No wake comes any more. */
void kinf__access_release(struct kinf__exchange *exchange);

#endif
