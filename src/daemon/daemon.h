/*
 * The daemon's life: client, watches, signals, and the end.
 *
 * Threads: the main thread.
 */
#ifndef KINF_DAEMON_DAEMON_H
#define KINF_DAEMON_DAEMON_H

#include "daemon/options.h"

/* Before anything else: a SIGHUP waits for kinf__daemon_run(). */
void kinf__daemon_hold_reload(void);

/* Runs until a signal or a failure (KINF__COMMAND_RUN), or until everything is synced and measured
 * (KINF__COMMAND_MEASURE). `options` gives up its configuration. Returns 0, or the failure, whose
 * message is the one line for stderr. If a plugin's call does not return it logs that failure, and ends
 * the process with exit code 1: exit() would take the plugin's library from under its thread. */
KINF_MUST_CHECK int kinf__daemon_run(struct kinf__options *options, struct kinf_error *err);

#endif
