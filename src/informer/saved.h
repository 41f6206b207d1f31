/*
 * An informer that begins with the store of an earlier run.
 *
 * Numbered promises, which tests cite; client-go has nothing like it:
 *  R1  What was saved is in the store, and told by on_add with in_initial_list, before the server is
 *      asked anything. The store's resourceVersion is that of the saved state.
 *  R2  Then the watch goes on at that version. Only if the server does not have it any more, or is not
 *      the one that it was, is there a list; objects that it has unchanged stay the stored ones.
 *  R3  What changed meanwhile is told by on_add and on_update, what went by on_delete, with
 *      final_state_unknown if a list says so: nothing is told twice, and nothing is missed.
 *  R4  on_synced, has_synced and wait_synced come behind all of R3: when an event, a bookmark, a watch
 *      that lasted (about a second) without news, or a list has shown that the store has all that the
 *      server had when it was asked after the start (reflector/policy.h). A server that cannot be asked
 *      is listed. Until then the state is stale, and its reason says of when the saved state is;
 *      forbidden and absent are what they are.
 *  R5  What cannot be loaded is as if there were nothing.
 *
 * Threads: before start, unless a line says otherwise.
 */
#ifndef KINF_INFORMER_SAVED_H
#define KINF_INFORMER_SAVED_H

#include <kinformer/informer.h>

#include "reflector/reflector.h"

/* `load` runs on the reflector's thread, once; `ctx` must outlive the informer's stop. Errors:
 * KINF_ERR_STATE (started, fed by somebody else, or set before), KINF_ERR_INVALID (the queue is not
 * KINF_FIFO_IN_ORDER: the store's version would not be exact; or there is a transform, which would
 * see objects a second time). */
KINF_MUST_CHECK int kinf__informer_set_saved(struct kinf_informer *informer,
                                             kinf__saved_load_fn *load, void *ctx,
                                             struct kinf_error *err);

/* The wall time of the saved state, while the store has it and nothing has confirmed it; else 0. Any
 * thread. */
int64_t kinf__informer_saved_wall_ms(struct kinf_informer *informer);

/* The store as it can be saved, with a reference for the caller; NULL: it is not synced, was not
 * confirmed, or something is left out of it that would be missed after a restart. Any thread. */
struct kinf_snapshot *kinf__informer_savable(struct kinf_informer *informer);

#endif
