/*
 * What is answered in place of what was asked for, and whole answers that are changed.
 *
 * Threads: the connection's.
 */
#ifndef KINF_FAULT_FAULT_ANSWER_H
#define KINF_FAULT_FAULT_ANSWER_H

#include "serve/exchange.h"
#include "fault/fault_spec.h"

/* Of whom. */
struct kinf__fault_object {
    enum kinf__fault_verb verb;
    const char *group;
    const char *resource;
    const char *name;
};

/* Writes the refusal of CODE, LOGIN and REFUSE, but for what is carried out. Returns
 * KINF_ERR_INVALID. */
int kinf__fault_refuse(const struct kinf__fault_effect *effect,
                       const struct kinf__fault_object *object, struct kinf__refusal *refusal);

/* Appends it as an ERROR event of a watch. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__fault_write_event(const struct kinf__refusal *refusal,
                                            struct kinf__buffer *out);

/* The same as an answer, in the form that is wanted: code, content type, Retry-After and the body's
 * text. What else the answer says is reset; its old body and stream are left to the caller. Errors:
 * KINF_ERR_NO_MEMORY, nothing is changed. */
KINF_MUST_CHECK int kinf__fault_rewrite(const struct kinf__fault_effect *effect,
                                        const struct kinf__fault_object *object,
                                        struct kinf__answer *answer, struct kinf__buffer *ret_body);

/* EMPTY and GROW: reads all of the answer, changes it, and leaves it as a body without a stream. What
 * is no such object stays as it is. Errors: KINF_ERR_NO_MEMORY; the answer may be cut. */
KINF_MUST_CHECK int kinf__fault_edit(const struct kinf__fault_effect *effect,
                                     struct kinf__answer *answer);

#endif
