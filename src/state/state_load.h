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
#include "state/state_object.h"

/* Hands over all that is in the sections from here to the end, in order; on failure what was handed
 * over is to be given up. Errors: of the reader, KINF_ERR_STOPPED, or what the callback returned. */
KINF_MUST_CHECK int kinf__state_load(struct kinf__sealed_reader *reader,
                                     const struct kinf_type *type,
                                     const struct kinf__state_bases *bases,
                                     kinf__state_object_cb *callback, void *ctx,
                                     const struct kinf__stop *stop, uint64_t *ret_n_objects,
                                     struct kinf_error *err);

#endif
