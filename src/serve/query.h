/*
 * The query of a request: escaped pairs, of which the first of a name counts.
 *
 * Threads: any thread.
 */
#ifndef KINF_SERVE_QUERY_H
#define KINF_SERVE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/str.h>

/* Decodes percent escapes (and, if `plus_is_blank`, "+") into `to`, which may be where `from` is
 * and takes from.len bytes at most. Returns the decoded length, or SIZE_MAX for a broken escape. */
size_t kinf__query_unescape(struct kinf_str from, bool plus_is_blank, char *to);

/* One pair; views into the query, still escaped. */
struct kinf__query_pair {
    struct kinf_str name;
    struct kinf_str value;
};

/* Takes the next pair off `rest`; empty ones are stepped over. Returns false at the end. */
bool kinf__query_next(struct kinf_str *rest, struct kinf__query_pair *ret_pair);

/* Whether an escaped name decodes to `name`. */
bool kinf__query_is_named(struct kinf_str escaped, const char *name);

/* strconv.ParseInt(text, 10, 64). Returns NULL, or what is wrong: "invalid syntax", "value out of
 * range". */
const char *kinf__query_parse_int(const char *text, int64_t *ret_number);
/* The same for strconv.ParseUint. */
const char *kinf__query_check_uint(const char *text);

/* What time.ParseDuration says of a text that is no duration; returns false if it is one. */
bool kinf__query_duration_fault(const char *text, char *ret_fault, size_t size);

/* Writes a text as Go's %q does, with its quotes, cut at the end of the room. What is above ASCII is
 * copied. Returns `buf`. */
const char *kinf__query_quote(const char *text, char *buf, size_t size);

#endif
