/*
 * Cells that are more than a field, by what they are of. Those called kinf__cells_ are several.
 *
 * Threads: any thread; one row at a time.
 */
#ifndef KINF_TABLE_RULES_H
#define KINF_TABLE_RULES_H

#include "table/row.h"

/* pod.c */
kinf__own_cell_fn kinf__cells_pod;
kinf__own_cell_fn kinf__cell_gates;
/* workload.c */
kinf__cell_fn kinf__cell_ready;
kinf__own_cell_fn kinf__cell_controller;
kinf__own_cell_fn kinf__cell_job_state;
kinf__own_cell_fn kinf__cell_completions;
kinf__own_cell_fn kinf__cell_job_duration;
kinf__own_cell_fn kinf__cell_suspend;
kinf__own_cell_fn kinf__cell_targets;
/* network.c */
kinf__own_cell_fn kinf__cell_external_ip;
kinf__own_cell_fn kinf__cell_service_ports;
kinf__own_cell_fn kinf__cell_endpoints;
kinf__own_cell_fn kinf__cell_slice_ports;
kinf__own_cell_fn kinf__cell_slice_endpoints;
kinf__own_cell_fn kinf__cell_hosts;
kinf__own_cell_fn kinf__cell_ingress_address;
kinf__own_cell_fn kinf__cell_ingress_ports;
kinf__own_cell_fn kinf__cell_class_parameters;
kinf__own_cell_fn kinf__cell_parent;
/* cluster.c */
kinf__own_cell_fn kinf__cell_node_status;
kinf__own_cell_fn kinf__cell_node_roles;
kinf__cell_fn kinf__cell_node_address;
kinf__own_cell_fn kinf__cell_kernel;
kinf__own_cell_fn kinf__cell_config_data;
kinf__own_cell_fn kinf__cells_quota;
kinf__own_cell_fn kinf__cell_last_seen;
kinf__own_cell_fn kinf__cell_first_seen;
kinf__own_cell_fn kinf__cell_event_object;
kinf__own_cell_fn kinf__cell_event_source;
kinf__cell_fn kinf__cell_message;
kinf__own_cell_fn kinf__cell_event_count;
kinf__cell_fn kinf__cell_modes;
kinf__own_cell_fn kinf__cell_storage_class;
kinf__own_cell_fn kinf__cell_phase;
kinf__own_cell_fn kinf__cells_bound;
kinf__own_cell_fn kinf__cell_storage_class_name;
kinf__own_cell_fn kinf__cell_ingress_class_name;
kinf__own_cell_fn kinf__cell_audiences;
kinf__own_cell_fn kinf__cell_claim_state;
kinf__own_cell_fn kinf__cells_subjects;
kinf__own_cell_fn kinf__cell_requested_duration;
kinf__own_cell_fn kinf__cell_request_state;
kinf__own_cell_fn kinf__cell_pod_certificate_state;
kinf__own_cell_fn kinf__cell_migration_state;
kinf__own_cell_fn kinf__cell_migrated;
kinf__own_cell_fn kinf__cell_available;
kinf__own_cell_fn kinf__cell_dangling;
kinf__own_cell_fn kinf__cell_param;
kinf__own_cell_fn kinf__cell_versions;
kinf__own_cell_fn kinf__cell_established;

#endif
