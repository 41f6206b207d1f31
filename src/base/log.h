/*
 * Writing log lines: "message key=value ...", a level for each module, limited in loops.
 *
 * Threads: any thread; KINF__RANK_LOG is held while the callback runs.
 */
#ifndef KINF_BASE_LOG_H
#define KINF_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/log.h>

/* Folders of src/ that log. X(enumerator, name) */
#define KINF__LOG_MODULES(X)                                                                       \
    X(KINF__LOG_BASE, "base")                                                                      \
    X(KINF__LOG_REST, "rest")                                                                      \
    X(KINF__LOG_REFLECTOR, "reflector")                                                            \
    X(KINF__LOG_INFORMER, "informer")                                                              \
    X(KINF__LOG_ELECTOR, "elector")                                                                \
    X(KINF__LOG_CONTROLLER, "controller")                                                          \
    X(KINF__LOG_RECORDER, "recorder")                                                              \
    X(KINF__LOG_HANDLERS, "handlers")                                                              \
    X(KINF__LOG_SERVE, "serve")                                                                    \
    X(KINF__LOG_DAEMON, "daemon")

enum kinf__log_module {
#define X(module, name) module,
    KINF__LOG_MODULES(X)
#undef X
        KINF__N_LOG_MODULES
};

bool kinf__log_enabled(enum kinf__log_module module, enum kinf_log_level level);
void kinf__log_write(enum kinf__log_module module, enum kinf_log_level level, const char *fmt, ...)
    KINF_PRINTF(3, 4);

/* The level is evaluated once, the other arguments only if the line will be written. */
#define KINF__LOG(module, level, ...)                                                              \
    do {                                                                                           \
        enum kinf_log_level kinf__level = (level);                                                 \
                                                                                                   \
        if (kinf__log_enabled((module), kinf__level))                                              \
            kinf__log_write((module), kinf__level, __VA_ARGS__);                                   \
    } while (0)

/* Room for a text in quotes; longer ones are cut. */
#define KINF__QUOTED_SIZE 1024

/* Writes `text` in quotes, with a backslash before quotes and backslashes, and returns `buf`. */
const char *kinf__log_quote(const char *text, char *buf, size_t size);
/* The same for an argument of a log line: error=%s. The line and the block around it may use it. */
#define KINF__QUOTED(text)                                                                         \
    kinf__log_quote((text), (char[KINF__QUOTED_SIZE]){ "" }, KINF__QUOTED_SIZE)

/* Shows a line of progress on the terminal that standard error is, in place of the one before; "":
 * none. Lines of the log that go there (kinf_log_to_stderr()) erase it first. */
void kinf__log_show_progress(const char *text);

/* Lets one line through an interval and counts the rest. Owner: one thread. */
struct kinf__log_limit {
    int64_t interval_ms;
    int64_t next_ms;
    uint64_t n_suppressed; /* since the last line that went through */
};

/* Whether a line may be written now; *ret_suppressed is how many were not since the last. */
bool kinf__log_limit_pass(struct kinf__log_limit *limit, int64_t now_ms, uint64_t *ret_suppressed);

#endif
