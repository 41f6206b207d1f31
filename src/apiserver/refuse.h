/*
 * How messages name types and objects: "deployments.apps", "Deployment.apps \"web\"", and the refusals
 * of writes that are always the same.
 *
 * Threads: any thread.
 */
#ifndef KINF_APISERVER_REFUSE_H
#define KINF_APISERVER_REFUSE_H

#include "serve/refusal.h"
#include "apiserver/store.h"

/* What messages of the server's decoder say of itself. */
#define KINF__GO_SCHEME "\"pkg/runtime/scheme.go:111\""
/* Of the group's internal types: "core", "apps", "networking". */
const char *kinf__go_package(const char *group);

/* Each writes the refusal and returns KINF_ERR_INVALID. */
int kinf__refuse_bad_request(struct kinf__refusal *refusal, const char *fmt, ...) KINF_PRINTF(2, 3);
int kinf__refuse_not_found(struct kinf__refusal *refusal, const struct kinf__resource *resource,
                           const char *name);
int kinf__refuse_exists(struct kinf__refusal *refusal, const struct kinf__resource *resource,
                        const char *name);
/* 405. */
int kinf__refuse_method(struct kinf__refusal *refusal);
/* 422 for one field: "KIND.GROUP \"name\" is invalid: field: message"; `reason`: a literal. */
int kinf__refuse_invalid(struct kinf__refusal *refusal, const char *group, const char *kind,
                         const char *name, const char *reason, const char *field,
                         const char *message);
/* 403: "pods \"x\" is forbidden: why". */
int kinf__refuse_forbidden(struct kinf__refusal *refusal, const struct kinf__resource *resource,
                           const char *name, const char *why);
/* 409: "Operation cannot be fulfilled on pods \"x\": why". */
int kinf__refuse_conflict(struct kinf__refusal *refusal, const struct kinf__resource *resource,
                          const char *name, const char *fmt, ...) KINF_PRINTF(4, 5);

#endif
