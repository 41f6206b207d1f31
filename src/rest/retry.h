/*
 * Whether a request that failed may be made again. Pure.
 *
 * Mirrors: rest.WithRetry.
 * Threads: any thread.
 */
#ifndef KINF_REST_RETRY_H
#define KINF_REST_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/error.h>

#define KINF__RETRY_MAX 10 /* tries after the first */

/* Whether the request may be made again after `n_retries` earlier ones, and how long to wait before
 * that. */
bool kinf__retry_may(const char *method, const struct kinf_error *err, unsigned n_retries,
                     int64_t *ret_wait_ms);

#endif
