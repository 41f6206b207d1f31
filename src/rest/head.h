/*
 * The head of an answer, line by line as curl hands it out.
 *
 * Threads: any thread.
 */
#ifndef KINF_REST_HEAD_H
#define KINF_REST_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/str.h>

/* A status line begins a new head: that of a proxy or a 100 may have come before. 0: it has no code. */
bool kinf__head_is_status(struct kinf_str line, int *ret_code);
bool kinf__head_is_end(struct kinf_str line);
/* "Name: value", without white space around the value; false if it is none. */
bool kinf__head_split(struct kinf_str line, struct kinf_str *ret_name, struct kinf_str *ret_value);
bool kinf__head_is_named(struct kinf_str name, const char *other);

/* Of Retry-After: seconds, an hour at most; the other form, a date, is 0. */
uint32_t kinf__head_retry_after_ms(struct kinf_str value);

#endif
