/*
 * Changing faults while the server runs, and what befalls a whole server, by HTTP at an address of
 * its own (fault_endpoint.h has the paths). Actions, for POST /actions/NAME:
 *
 *   backup    notes what is stored
 *   restore   makes it so again, resourceVersions included; 409: there is no backup
 *   expire    forgets all history: every watch ends with 410, and so do older versions
 *   drop      breaks the connection of every request under way
 *   rotate    changes the server's certificate; 501: it has none
 *
 * Threads: any; actions run on the endpoint's.
 */
#ifndef KINF_SIM_FAULT_CONTROL_H
#define KINF_SIM_FAULT_CONTROL_H

#include <kinformer/error.h>

struct kinf__fault_control;
struct kinf__sim;

/* `address`: see serve/address.h; loopback, or a unix socket. The sim outlives it. Errors: those of
 * kinf__server_new() and kinf__endpoint_start(). */
KINF_MUST_CHECK int kinf__fault_control_start(struct kinf__sim *sim, const char *address,
                                              struct kinf__fault_control **ret_control,
                                              struct kinf_error *err);
/* What rotate does: returns 0, or a negative code. */
void kinf__fault_control_on_rotate(struct kinf__fault_control *control, int (*rotate)(void *ctx),
                                   void *ctx);
const char *kinf__fault_control_url(const struct kinf__fault_control *control);
/* Before the sim is stopped. NULL is allowed. */
void kinf__fault_control_free(struct kinf__fault_control *control);

#endif
