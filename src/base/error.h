/*
 * Writing a struct kinf_error: once at the place of failure, then context in front on the way up.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_BASE_ERROR_H
#define KINF_BASE_ERROR_H

#include <kinformer/error.h>

/* Writes the failure and returns `code`. `err` may be NULL; every other member is reset. */
int kinf__error_set(struct kinf_error *err, enum kinf_errc code, const char *fmt, ...)
    KINF_PRINTF(3, 4);

/* The same for a failed system call: sets sys_errno and appends ": " and its text. */
int kinf__error_set_errno(struct kinf_error *err, enum kinf_errc code, int sys_errno,
                          const char *fmt, ...) KINF_PRINTF(4, 5);

/* KINF_ERR_NO_MEMORY with its one message. */
int kinf__error_no_memory(struct kinf_error *err);

/* Puts "context: " in front of the message that is there. */
void kinf__error_prefix(struct kinf_error *err, const char *fmt, ...) KINF_PRINTF(2, 3);

/* Blanks in place of line ends and other control characters: what others wrote (a server, a file)
 * may be part of a message or a log line, which stays one line. */
void kinf__make_one_line(char *text);

/* The static analyzer does not follow calls into error.c: it shall know that failing is negative.
 */
#ifdef __clang_analyzer__
#define kinf__analyzed_failure(call)                                                               \
    __extension__({                                                                                \
        int failure_ = (call);                                                                     \
        if (failure_ >= 0)                                                                         \
            __builtin_unreachable();                                                               \
        failure_;                                                                                  \
    })
#define kinf__error_set(...)       kinf__analyzed_failure(kinf__error_set(__VA_ARGS__))
#define kinf__error_set_errno(...) kinf__analyzed_failure(kinf__error_set_errno(__VA_ARGS__))
#define kinf__error_no_memory(err) kinf__analyzed_failure(kinf__error_no_memory(err))
#endif

#endif
