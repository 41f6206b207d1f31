/*
 * A JSON document that is written member by member. What goes wrong (only memory can) is remembered
 * and told at the end; what was written until then is to be thrown away.
 *
 * `key` is the member's name, or NULL in an array. Names need no escapes, texts may be anything.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_SERVE_REPORT_H
#define KINF_SERVE_REPORT_H

#include "base/buffer.h"

struct kinf__report {
    struct kinf__buffer *out;
    /* for kinf__report_time(): the same moment on both clocks */
    int64_t now_ms;
    int64_t now_wall_ms;
    /* its own */
    bool has_before; /* something in the same object or array */
    bool is_out_of_memory;
};

/* `bracket` is '{' or '[', and '}' or ']'. */
void kinf__report_open(struct kinf__report *report, const char *key, char bracket);
void kinf__report_close(struct kinf__report *report, char bracket);

void kinf__report_str(struct kinf__report *report, const char *key, struct kinf_str text);
void kinf__report_text(struct kinf__report *report, const char *key, const char *text);
/* Nothing for "". */
void kinf__report_said(struct kinf__report *report, const char *key, const char *text);
void kinf__report_count(struct kinf__report *report, const char *key, uint64_t count);
void kinf__report_bool(struct kinf__report *report, const char *key, bool value);
/* Milliseconds; null if they are negative. */
void kinf__report_ms(struct kinf__report *report, const char *key, int64_t ms);
/* Milliseconds with three decimals, of nanoseconds that are not negative. */
void kinf__report_exact_ms(struct kinf__report *report, const char *key, int64_t ns);
/* A moment of the monotonic clock as RFC 3339 with milliseconds; 0 is null. */
void kinf__report_time(struct kinf__report *report, const char *key, int64_t at_ms);
/* A resourceVersion: a string; "" for 0, none. */
void kinf__report_version(struct kinf__report *report, const char *key, uint64_t version);

/* Ends the document with a newline. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__report_end(struct kinf__report *report);

#endif
