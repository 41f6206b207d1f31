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
 * Threads: the one that pops (informer.h).
 */
#ifndef KINF_INFORMER_HANDLE_DELTAS_H
#define KINF_INFORMER_HANDLE_DELTAS_H

#include <kinformer/deltafifo.h>
#include <kinformer/informer.h>

#include "base/log.h"
#include "base/stop.h"
#include "informer/batch.h"
#include "informer/processor.h"

struct kinf__delta_target {
    struct kinf_indexer *indexer;
    struct kinf__processor *processor;
    const struct kinf__sink *sink; /* NULL: none */
    /* As in struct kinf_informer_options; NULL: none. */
    int (*transform)(const struct kinf_object *object, const struct kinf_object **ret_object,
                     void *ctx);
    void *transform_ctx;
    struct kinf__log_limit failures;
    const struct kinf__stop *stop; /* ends what is under way; NULL: nothing does */
};

/* Handles deltas that leave together: a batch, a list, a resync, a bookmark, or of one key a single
 * delta. The batch is empty before. After KINF_ERR_NO_MEMORY nothing changed, and the same call
 * with the same batch tries again: no object is transformed twice. KINF_ERR_STOPPED (`stop` was
 * set): nothing changed, or handlers were not told of all; no such call follows. The caller clears
 * the batch in the end. */
KINF_MUST_CHECK int kinf__handle_deltas(struct kinf__delta_target *target,
                                        const struct kinf_deltas *deltas, bool in_initial_list,
                                        struct kinf__batch *batch);

#endif
