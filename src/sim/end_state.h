/*
 * What is there in the end, without what differs from run to run: a line for each object, and for
 * each value in it.
 *
 *     configmaps default/a
 *     configmaps default/a data.value="1"
 *     pods default/b spec.containers[main].image="example.org/b:1"
 *
 * Elements of arrays are named by their name or type, if they have one; their order is left out.
 */
#ifndef KINF_SIM_END_STATE_H
#define KINF_SIM_END_STATE_H

#include "apiserver/sim.h"
#include "base/buffer.h"

/* All zero is empty. */
struct kinf__end_state {
    char **lines; /* sorted */
    size_t n_lines;
    size_t size;
};

/* Of all types but Leases and Events. Errors: KINF_ERR_NO_MEMORY; to be released then, too. */
KINF_MUST_CHECK int kinf__end_state_take(struct kinf__sim *sim, struct kinf__end_state *ret_state);
void kinf__end_state_release(struct kinf__end_state *state);

/* Appends the lines that only one of them has, "-" in front of `before`'s; of an object that only
 * one has its own line alone; no more than 50. Nothing: they are equal. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__end_state_diff(const struct kinf__end_state *before,
                                         const struct kinf__end_state *after,
                                         struct kinf__buffer *out);

#endif
