/*
 * The cells of the built-in types: each writes the cells behind the name, in the order of the
 * type's columns (table.c).
 *
 * Threads: any thread; one row at a time.
 */
#ifndef KINF_TABLE_RULES_H
#define KINF_TABLE_RULES_H

#include "table/row.h"

typedef void kinf__table_cells_fn(struct kinf__row *row);

/* pod.c */
kinf__table_cells_fn kinf__table_pod;
/* workload.c */
kinf__table_cells_fn kinf__table_deployment;
kinf__table_cells_fn kinf__table_replicaset;
kinf__table_cells_fn kinf__table_replicationcontroller;
kinf__table_cells_fn kinf__table_statefulset;
kinf__table_cells_fn kinf__table_daemonset;
kinf__table_cells_fn kinf__table_job;
kinf__table_cells_fn kinf__table_cronjob;
kinf__table_cells_fn kinf__table_hpa;
kinf__table_cells_fn kinf__table_pdb;
/* network.c */
kinf__table_cells_fn kinf__table_service;
kinf__table_cells_fn kinf__table_endpointslice;
kinf__table_cells_fn kinf__table_ingress;
/* cluster.c */
kinf__table_cells_fn kinf__table_node;
kinf__table_cells_fn kinf__table_namespace;
kinf__table_cells_fn kinf__table_configmap;
kinf__table_cells_fn kinf__table_secret;
kinf__table_cells_fn kinf__table_event;
kinf__table_cells_fn kinf__table_lease;
kinf__table_cells_fn kinf__table_claim;
kinf__table_cells_fn kinf__table_volume;
kinf__table_cells_fn kinf__table_crd;

#endif
