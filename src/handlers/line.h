/*
 * What happened to an object as a line of JSON: what `--events json` prints and handlers are sent.
 *
 *   {"type":"ADDED","resource":"pods","key":"default/web-1","resourceVersion":"1042",
 *    "initial":true,"finalStateUnknown":false,"seq":7,"object":{...}}
 *   {"type":"SYNCED","resource":"pods"}
 *
 * It is a contract: programs rely on it.
 *
 * Threads: any thread.
 */
#ifndef KINF_HANDLERS_LINE_H
#define KINF_HANDLERS_LINE_H

#include <kinformer/plugin.h>

#include "base/buffer.h"

const char *kinf__change_name(enum kinf_change_type type); /* "ADDED" */

/* How much of an object. */
enum kinf__line_parts {
    KINF__LINE_NAMES,
    KINF__LINE_OBJECT,
    KINF__LINE_OBJECTS /* the old one, too */
};

/* Appends it with its end of line, or nothing. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__line_append(struct kinf__buffer *out, const struct kinf_change *change,
                                      enum kinf__line_parts parts);

#endif
