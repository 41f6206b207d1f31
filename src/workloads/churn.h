/*
 * Change without anybody's doing, at a given rate: pods that come, start, crash, recover and go,
 * and Deployments that roll, in a namespace of their own ("churn").
 *
 * Threads: as struct kinf__controller states.
 */
#ifndef KINF_WORKLOADS_CHURN_H
#define KINF_WORKLOADS_CHURN_H

#include "apiserver/sim.h"

/* `rate`: changes a second, "50/s", "0.5/s". Every change in the namespace counts, whoever makes it,
 * so that rollouts take from the rest. What somebody else writes to one of its pods makes the pod
 * theirs. Otherwise as kinf__workloads_add(). Errors: KINF_ERR_CONFIG (no rate), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__churn_add(struct kinf__sim *sim, const char *rate,
                                    struct kinf__controller **ret_controller,
                                    struct kinf_error *err);

#endif
