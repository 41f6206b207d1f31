/*
 * --check-config --online: what only the server can say of a configuration.
 *
 * Threads: one thread.
 */
#ifndef KINF_DAEMON_CHECK_H
#define KINF_DAEMON_CHECK_H

#include <kinformer/client.h>

#include "daemon/config.h"

/* Asks whether each resource is there and may be listed and watched in each of its namespaces, and
 * with `auth: delegated` whether others' tokens may be reviewed. Of what is wrong all but the last is
 * printed on stderr, a line each; the last is the error. Errors: KINF_ERR_CONFIG (something is
 * wrong), or what a request failed with. */
KINF_MUST_CHECK int kinf__check_online(struct kinf_client *client,
                                       const struct kinf__config *config, struct kinf_error *err);

#endif
