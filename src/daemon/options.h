/*
 * The command line.
 *
 * Threads: one thread, at start.
 */
#ifndef KINF_DAEMON_OPTIONS_H
#define KINF_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/error.h>

#include "base/flags.h"
#include "daemon/config.h"

enum kinf__command {
    KINF__COMMAND_RUN,
    KINF__COMMAND_MEASURE,
    KINF__COMMAND_CHECK_CONFIG,
    KINF__COMMAND_CHECK_PLUGIN,
    KINF__COMMAND_VERSION,
    KINF__COMMAND_HELP,
};

/* What flags say in place of the file; texts point into argv. */
struct kinf__overrides {
    const char *kubeconfig; /* NULL: as the file says */
    const char *context;
    enum kinf__events_mode events;           /* KINF__EVENTS_DEFAULT: as the file says */
    bool events_objects;                     /* false: as the file says */
    struct kinf__flag_values listen;         /* beside the file's */
    struct kinf__flag_values execs, plugins; /* likewise */
    const char *health_listen;
    bool pass_through; /* false in these two: as the file says */
    bool on_demand;
};

struct kinf__options {
    enum kinf__command command;
    const char *config_file; /* NULL: all from the command line; points into argv */
    struct kinf__overrides overrides;
    const char *checked_plugin; /* of --check-plugin; points into argv */
    bool is_online;             /* --check-config asks the server, too */
    int64_t timeout_ms;         /* of --measure and --online */
    const char *log_levels;     /* overrides the file; points into argv */
    const char *kubeconfig_out; /* of --write-kubeconfig; NULL: none; points into argv */
    const char *client_token;   /* of --client-token, likewise */
    struct kinf__config config; /* read from the file or made from the flags */
};

/* Errors: KINF_ERR_INVALID (usage), and those of kinf__config_read(). */
KINF_MUST_CHECK int kinf__options_parse(int argc, char *argv[], struct kinf__options *ret_options,
                                        struct kinf_error *err);
void kinf__options_release(struct kinf__options *options);

/* Reads config_file, which is not NULL, as kinf__options_parse() did: flags win. Errors: those of
 * kinf__config_read(), KINF_ERR_INVALID. */
KINF_MUST_CHECK int kinf__options_read_config(const struct kinf__options *options,
                                              struct kinf__config *ret_config,
                                              struct kinf_error *err);

/* Sets what the command line says, else the environment, else the file, else info, of each module. Errors:
 * KINF_ERR_INVALID, nothing has changed then; KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__options_set_log_levels(const struct kinf__options *options,
                                                 const struct kinf__config *config,
                                                 struct kinf_error *err);

/* The text of --help. */
extern const char kinf__options_help[];

#endif
