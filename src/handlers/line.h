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

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/object.h>

#include "base/buffer.h"

struct kinf__line {
    const char *type;                 /* ADDED, MODIFIED, DELETED, SYNCED, RESET */
    const char *resource;             /* "pods", "deployments.apps"; NULL: of all */
    const struct kinf_object *object; /* NULL: there is none, as of SYNCED */
    const struct kinf_object *old;    /* NULL: what it was is not said */
    bool in_initial_list;
    bool final_state_unknown; /* DELETED, and the deletion itself was missed */
    bool with_object;         /* whole, not its name alone */
    uint64_t sequence;        /* 0: lines are not counted */
};

/* Appends it with its end of line, or nothing. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__line_append(struct kinf__buffer *out, const struct kinf__line *line);

#endif
