/*
 * --check-config --online: what only the server can say of a configuration.
 *
 * Threads: one thread.
 */
#ifndef KINF_DAEMON_CHECK_H
#define KINF_DAEMON_CHECK_H

#include <kinformer/client.h>

#include "daemon/config.h"

#define KINF__CHECK_MAX_TYPES 500 /* whose rights are asked for one by one: two requests each */

/* Asks whether each resource is there and may be listed and watched in each of its namespaces, and
 * with `auth: delegated` whether others' tokens may be reviewed. Of what is wrong all but the last is
 * printed on stderr, a line each; the last is the error. With `onDemand` a line on stdout says how many
 * types may be cached and which not, of KINF__CHECK_MAX_TYPES at most; that is wrong only if none may.
 * Errors: KINF_ERR_CONFIG (something is wrong), or what a request failed with. */
KINF_MUST_CHECK int kinf__check_online(struct kinf_client *client,
                                       const struct kinf__config *config, struct kinf_error *err);

#endif
