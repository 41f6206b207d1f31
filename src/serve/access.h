/*
 * Whether a request may be answered: what it asks for, put to the authorizer.
 *
 * Threads: the connection's.
 */
#ifndef KINF_SERVE_ACCESS_H
#define KINF_SERVE_ACCESS_H

#include "serve/exchange_priv.h"

/* The request is parsed. Returns enum kinf__step: answered means that it may; or a negative code,
 * the refusal written. Without an authorizer everybody may. */
KINF_MUST_CHECK int kinf__access_step(struct kinf__exchange *exchange);

/* 403, in the API server's words; `reason` "": none. Returns KINF_ERR_INVALID. */
int kinf__access_refuse(struct kinf__refusal *refusal, const struct kinf__attributes *attributes,
                        const char *user, const char *reason);

/* Whether it is open to everybody wherever it is asked: health, as a whole. */
bool kinf__access_is_open(const struct kinf__exchange *exchange);

/* No wake comes any more. */
void kinf__access_release(struct kinf__exchange *exchange);

#endif
