/*
 * What Prometheus' own clients say of a process: CPU, start, descriptors, memory.
 *
 * Threads: any.
 */
#ifndef KINF_SERVE_PROCESS_METRICS_H
#define KINF_SERVE_PROCESS_METRICS_H

#include "base/buffer.h"

/* What cannot be found out is 0. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__process_metrics_write(struct kinf__buffer *out);

/* 0: unknown. */
uint64_t kinf__process_resident_bytes(void);

#endif
