/*
 * What a cluster's controllers, its scheduler and its kubelets do, in small: Deployments,
 * ReplicaSets, StatefulSets, DaemonSets and Jobs get their pods, and pods run on nodes that are
 * nothing but records. Nothing is decided but from what is stored.
 *
 * Threads: as struct kinf__controller states.
 */
#ifndef KINF_WORKLOADS_WORKLOADS_H
#define KINF_WORKLOADS_WORKLOADS_H

#include "apiserver/sim.h"

/* Makes them, and hands them to a sim that has not started. `ret_controller`, which may be NULL, is
 * the sim's. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__workloads_add(struct kinf__sim *sim,
                                        struct kinf__controller **ret_controller,
                                        struct kinf_error *err);

#endif
