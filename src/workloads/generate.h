/*
 * A cluster's worth of objects from a line of text: "pods=1000,nodes=20".
 *
 * Threads: any thread, without the store's lock.
 */
#ifndef KINF_WORKLOADS_GENERATE_H
#define KINF_WORKLOADS_GENERATE_H

#include "apiserver/sim.h"

/*
 * `what`: numbers of namespaces, nodes, deployments, pods, services and configmaps. Pods belong to
 * the ReplicaSets of Deployments, run and are ready, on nodes; what is needed for that and not said
 * is made, too: a Deployment for ten pods, a node for fifty, a namespace for twenty Deployments. A
 * controller finds nothing to do about any of it. What has one of the names already is replaced.
 *
 * Errors: KINF_ERR_CONFIG (a name that is none of these, no number, too many), KINF_ERR_NO_MEMORY.
 */
KINF_MUST_CHECK int kinf__generate(struct kinf__sim *sim, const char *what, struct kinf_error *err);

#endif
