/*
 * The follower's mode `controller`: while it leads, each widget has a ConfigMap of its name, whose
 * data.of is the widget's resourceVersion; one whose widget is gone goes.
 *
 * Threads: main.
 */
#ifndef SOAK_CONTROLLER_H
#define SOAK_CONTROLLER_H

#include <kinformer/error.h>

/* Returns 0 when the oracle has gone. */
int controller_run(const char *name, const char *path, struct kinf_error *err);

#endif
