/*
 * Changing faults while the server runs: a small HTTP API of its own, which no fault is for.
 *
 *   GET    /faults         {"faults":[{"id":1,"spec":"list pods 503","requests":4,"hits":2}]}
 *   POST   /faults         one or more lines (fault_spec.h); blank ones, and what begins with #, are
 *                          nothing. All of them are added, or none: {"ids":[1,2]}
 *   DELETE /faults/ID      that one;  /faults: all of them
 *   GET    /requests       the last requests, and which fault each had
 *   GET    /actions        what there is
 *   POST   /actions/NAME   does it: {"done":"NAME"}
 *
 * What there is is its owner's: see sim/main.c.
 *
 * Threads: any; actions run on the endpoint's.
 */
#ifndef KINF_FAULT_FAULT_ENDPOINT_H
#define KINF_FAULT_FAULT_ENDPOINT_H

#include <stddef.h>

#include <kinformer/error.h>

struct kinf__faults;
struct kinf__fault_endpoint;

/* Returns 0, or a negative code; KINF_ERR_STATE (409), KINF_ERR_UNSUPPORTED (501), else 500. */
struct kinf__fault_action {
    const char *name;
    int (*run)(void *ctx, struct kinf_error *err);
};

/* `address`: see serve/address.h; loopback, or a unix socket. Faults and actions are borrowed until
 * it is freed; `ctx` is the actions'. Errors: those of kinf__server_new() and
 * kinf__endpoint_start(). */
KINF_MUST_CHECK int kinf__fault_endpoint_new(struct kinf__faults *faults,
                                             const struct kinf__fault_action *actions,
                                             size_t n_actions, void *ctx, const char *address,
                                             struct kinf__fault_endpoint **ret_endpoint,
                                             struct kinf_error *err);
const char *kinf__fault_endpoint_url(const struct kinf__fault_endpoint *endpoint);
/* NULL is allowed. */
void kinf__fault_endpoint_free(struct kinf__fault_endpoint *endpoint);

#endif
