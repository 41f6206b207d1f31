/*
 * The end of main() in a program that does nothing but wait for its handlers.
 *
 * Mirrors: controller-runtime's signals.SetupSignalHandler.
 * Threads: one thread of the program, once at a time.
 */
#ifndef KINFORMER_RUN_H
#define KINFORMER_RUN_H

#include <kinformer/api.h>
#include <kinformer/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks until SIGINT or SIGTERM comes, and returns 0 then. A second signal ends the program as
 * usual. Errors: KINF_ERR_SYSTEM. */
KINF_API KINF_MUST_CHECK int kinf_run_until_signal(struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
