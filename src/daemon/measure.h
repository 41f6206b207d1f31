/*
 * --measure: what a cache of this resource costs, in one line, and a checksum that says whether it
 * is right.
 *
 * Threads: the main thread.
 */
#ifndef KINF_DAEMON_MEASURE_H
#define KINF_DAEMON_MEASURE_H

#include "base/buffer.h"
#include "daemon/watch.h"

/* Appends the line of a synced watch. The checksum is FNV-1a 64 over the bytewise sorted lines
 * "namespace/name@resourceVersion\n" ("/name@..." if cluster-scoped). */
KINF_MUST_CHECK int kinf__measure(struct kinf__watch *watch, struct kinf__buffer *line,
                                  struct kinf_error *err);

#endif
