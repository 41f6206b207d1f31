/*
 * Where the library's log lines go. The library prints nothing by itself: until a callback is set,
 * lines are dropped.
 *
 * Mirrors: klog.SetLogger.
 * Threads: any thread.
 */
#ifndef KINFORMER_LOG_H
#define KINFORMER_LOG_H

#include <kinformer/api.h>
#include <kinformer/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum kinf_log_level { KINF_LOG_OFF, KINF_LOG_ERROR, KINF_LOG_WARN, KINF_LOG_INFO, KINF_LOG_DEBUG };

/* Called on whatever thread has something to say, one call at a time. `module` is a folder of src/
 * ("reflector"), `line` is "message key=value ..." without a newline, valid during the call. It may
 * not call back into the library: lines that this would lead to are dropped. */
typedef void kinf_log_cb(enum kinf_log_level level, const char *module, const char *line,
                         void *ctx);

/* Replaces the callback; NULL drops lines. A line that is being delivered may still go to the old
 * one until this returns. Refused (a line tells the callback that stays) from the callback itself. */
KINF_API void kinf_log_set_callback(kinf_log_cb *callback, void *ctx);

/* Sets a callback that writes "2026-01-31T12:00:00.000Z LEVEL MODULE: LINE" to standard error, as the
 * programs of kinformer do. Lines that nobody has room for within a second are lost, and counted at the
 * end of the next one (lines_lost=3): no thread waits longer for who reads them. */
KINF_API void kinf_log_to_stderr(void);

/* Sets levels from "LEVEL" or "all=info,reflector=debug" (the syntax of the KINF_LOG environment
 * variable, which the daemon reads). Default: all=info. Errors: KINF_ERR_INVALID (an unknown level
 * or module; nothing is changed). */
KINF_API KINF_MUST_CHECK int kinf_log_set_levels(const char *text, struct kinf_error *err);

/* "error", "warn" and so on; never NULL. */
KINF_API const char *kinf_log_level_to_string(enum kinf_log_level level);

#ifdef __cplusplus
}
#endif
#endif
