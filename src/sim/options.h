/*
 * The command line of kinformer-sim.
 *
 * Threads: one thread, at start.
 */
#ifndef KINF_SIM_OPTIONS_H
#define KINF_SIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

#include "base/flags.h"
#include "watchcache/watchcache.h"

enum kinf__sim_command {
    KINF__SIM_COMMAND_RUN,
    KINF__SIM_COMMAND_VERSION,
    KINF__SIM_COMMAND_HELP,
};

/* Texts point into argv; NULL: not given. */
struct kinf__sim_arguments {
    enum kinf__sim_command command;
    struct kinf__flag_values listen; /* never empty */
    bool has_tls;
    const char *policy_file;
    const char *kubeconfig_out;
    struct kinf__flag_values loads;
    const char *generate;
    const char *churn;
    uint64_t seed;
    bool has_no_workloads;
    struct kinf__watchcache_limits limits;
    struct kinf__flag_values faults;
    const char *fault_listen;
    const char *log_levels;
};

/* What --generate, --churn and --fault say is left to those who do it. Errors: KINF_ERR_INVALID. */
KINF_MUST_CHECK int kinf__sim_arguments_parse(int argc, char *argv[],
                                              struct kinf__sim_arguments *ret_arguments,
                                              struct kinf_error *err);

/* The text of --help. */
extern const char kinf__sim_help[];

#endif
