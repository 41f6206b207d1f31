/*
 * Writing JSON.
 *
 * Threads: one thread per buffer.
 */
#ifndef KINF_JSON_WRITE_H
#define KINF_JSON_WRITE_H

#include "base/buffer.h"

/* Appends `text`, which is UTF-8, as a JSON string with its quotes. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__json_append_string(struct kinf__buffer *json, const char *text);

#endif
