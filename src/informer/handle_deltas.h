/*
 * HandleDeltas: what left the queue on its way into the store and to the handlers.
 *
 * First a batch is prepared: what the deltas mean for the store, and what is told about it; here
 * the transform runs, with no lock held. Then it is applied: the store changes by one write, and
 * everybody is told.
 *
 * Mirrors: cache.processDeltas, processDeltasInBatch and processReplacedAllInfo with
 * sharedIndexInformer.OnAdd, OnUpdate, OnDelete. Differences: a key whose object has another uid
 * comes as delete, then add; deletion of what the store does not have is not told, since nobody was
 * told of the object; of a key that is listed twice the last one counts; the stored copy of an
 * unchanged object stays. Unchanged is what has equal bytes: after a restore of etcd the same
 * resourceVersion may stand for other content, which is a change.
 * Threads: the informer's processor thread.
 */
#ifndef KINF_INFORMER_HANDLE_DELTAS_H
#define KINF_INFORMER_HANDLE_DELTAS_H

#include <kinformer/deltafifo.h>
#include <kinformer/informer.h>

#include "base/log.h"
#include "informer/batch.h"

struct kinf__delta_target {
    struct kinf_indexer *indexer;
    struct kinf__processor *processor;
    const struct kinf__sink *sink; /* NULL: none */
    /* As in struct kinf_informer_options; NULL: none. */
    int (*transform)(const struct kinf_object *object, const struct kinf_object **ret_object,
                     void *ctx);
    void *transform_ctx;
    struct kinf__log_limit failures;
};

/* Handles deltas that leave together: a batch, a list, a resync, a bookmark, or of one key a single
 * delta. The batch is empty before. After KINF_ERR_NO_MEMORY, the only error, nothing changed, and
 * the same call with the same batch tries again: no object is transformed twice. The caller clears
 * the batch in the end. */
KINF_MUST_CHECK int kinf__handle_deltas(struct kinf__delta_target *target,
                                        const struct kinf_deltas *deltas, bool in_initial_list,
                                        struct kinf__batch *batch);

/* --- for relist.c --- */

/* The object that is to be stored for a new state of a key: `object`, transformed unless it is
 * `old`, which is what the store has (NULL: nothing); or `old`, if nothing changed or the object
 * cannot be stored. Tells what that means. Borrowed from the batch, or as `old` is. */
const struct kinf_object *kinf__handle_state(struct kinf__delta_target *target,
                                             const struct kinf_object *object,
                                             const struct kinf_object *old, bool in_initial_list,
                                             struct kinf__batch *batch);

/* A ReplacedAll: the difference of the list and the store, whose current version the batch holds.
 * Errors: KINF_ERR_NO_MEMORY, nothing was transformed. */
KINF_MUST_CHECK int kinf__prepare_relist(struct kinf__delta_target *target,
                                         const struct kinf_delta *delta, bool in_initial_list,
                                         struct kinf__batch *batch);

#endif
