/*
 * Sorting that can be stopped.
 *
 * Threads: any thread.
 */
#ifndef KINF_BASE_SORT_H
#define KINF_BASE_SORT_H

#include <kinformer/api.h>

#include "base/stop.h"

/* As qsort(). `stop` may be NULL. Errors: KINF_ERR_STOPPED, KINF_ERR_NO_MEMORY; then the items are in
 * whatever order, each of them once. */
KINF_MUST_CHECK int kinf__sort(void *items, size_t n_items, size_t size,
                               int (*compare)(const void *, const void *),
                               const struct kinf__stop *stop);

#endif
