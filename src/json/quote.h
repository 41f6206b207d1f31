/*
 * JSON strings as the API server writes them.
 *
 * Threads: any thread.
 */
#ifndef KINF_JSON_QUOTE_H
#define KINF_JSON_QUOTE_H

#include <stdbool.h>

#include <kinformer/str.h>

#include "base/buffer.h"

/* Appends `text` in quotes; `<`, `>`, `&` and control characters are escaped, bytes that are no
 * UTF-8 become U+FFFD. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__quote(struct kinf__buffer *out, struct kinf_str text);

/* How much of the beginning of `text` a reader has in no more than `max` bytes once it was quoted;
 * characters stay whole. */
size_t kinf__quote_fit(struct kinf_str text, size_t max);

/* Whether all of it is well-formed UTF-8. */
bool kinf__is_utf8(struct kinf_str text);

#endif
