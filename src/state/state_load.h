/*
 * The objects of a state's file, made on two threads if there are many: half of the time goes into
 * memory that is touched for the first time, which two do at once.
 *
 * Threads: one thread per call, and one of its own until it returns.
 */
#ifndef KINF_STATE_STATE_LOAD_H
#define KINF_STATE_STATE_LOAD_H

#include "state/sealed.h"
#include "state/state_file.h"

/* Take what stands at the front of a section's text: a number of so many bytes, or a length and as much
 * text, which is the section's. Errors: KINF_ERR_PARSE. */
KINF_MUST_CHECK int kinf__state_take_number(struct kinf_str *rest, size_t size,
                                            uint64_t *ret_number, struct kinf_error *err);
KINF_MUST_CHECK int kinf__state_take_text(struct kinf_str *rest, uint64_t max_len,
                                          struct kinf_str *ret_text, struct kinf_error *err);

/* What is in a section is not what is written there. Returns KINF_ERR_PARSE. */
int kinf__state_malformed(struct kinf_error *err);

/* Hands over all that is in the sections from here to the end, in order; on failure what was handed
 * over is to be given up. Errors: of the reader, KINF_ERR_STOPPED, or what the callback returned. */
KINF_MUST_CHECK int kinf__state_load(struct kinf__sealed_reader *reader,
                                     const struct kinf_type *type, kinf__state_object_cb *callback,
                                     void *ctx, const struct kinf__stop *stop,
                                     uint64_t *ret_n_objects, struct kinf_error *err);

#endif
