/*
 * The configuration of a pod: environment, token and certificate authority of its service account.
 *
 * Mirrors: rest.InClusterConfig. Threads: any thread.
 */
#ifndef KINF_REST_IN_CLUSTER_H
#define KINF_REST_IN_CLUSTER_H

#include <stdbool.h>

#include "rest/kubeconfig.h"

/* Whether the environment says that this is a pod. */
bool kinf__in_cluster_is_possible(void);

/* Errors: KINF_ERR_CONFIG (token or authority cannot be read), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__in_cluster_load(struct kinf__cluster_config *config,
                                          struct kinf_error *err);

#endif
