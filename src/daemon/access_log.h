/*
 * Lines to a file, or to standard error, by a thread of their own: whoever has a line only copies it.
 *
 * What is not written yet is bounded (KINF__ACCESS_LOG_BYTES); lines that do not fit are dropped, whole.
 * A file is appended to, and opened again when it was renamed.
 *
 * Threads: any, but for new and free.
 */
#ifndef KINF_DAEMON_ACCESS_LOG_H
#define KINF_DAEMON_ACCESS_LOG_H

#include <stdint.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

#define KINF__ACCESS_LOG_BYTES (1u << 20)

struct kinf__access_log;

/* `path` "-" is standard error. Errors: KINF_ERR_SYSTEM, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__access_log_new(const char *path, struct kinf__access_log **ret_log,
                                         struct kinf_error *err);
/* Writes what is left, if that is taken within a second. NULL is allowed. */
void kinf__access_log_free(struct kinf__access_log *log);

/* Never waits for the file. Returns how many lines were dropped since the last call: this one, if it does not
 * fit, and those that could not be written. `ctx` is the log: it is a kinf__log_request_cb. */
uint64_t kinf__access_log_take(struct kinf_str line, void *ctx);

/* Opens the file again before the next line; should that fail, the old one is kept, and a warning
 * says why. */
void kinf__access_log_reopen(struct kinf__access_log *log);

#endif
