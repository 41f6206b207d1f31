/*
 * HandleDeltas: one delta on its way into the store and to the handlers.
 *
 * Preparing decides what the delta means for the store; applying changes the store and then tells
 * the handlers. Applying fails only for want of memory, changes nothing then, and may be repeated.
 *
 * Mirrors: cache.processDeltas with sharedIndexInformer.OnAdd, OnUpdate, OnDelete. Differences: a
 * key whose object has another uid comes as delete, then add; deletion of what the store does not
 * have is not told, since nobody was told of the object; the stored copy of an unchanged object
 * stays. Unchanged is what has equal bytes: after a restore of etcd the same resourceVersion may
 * stand for other content, which is a change.
 * Threads: the informer's processor thread.
 */
#ifndef KINF_INFORMER_HANDLE_DELTAS_H
#define KINF_INFORMER_HANDLE_DELTAS_H

#include <kinformer/deltafifo.h>
#include <kinformer/informer.h>

#include "base/log.h"
#include "informer/processor.h"

struct kinf__delta_target {
    struct kinf_indexer *indexer;
    struct kinf__processor *processor;
    /* As in struct kinf_informer_options; NULL: none. */
    int (*transform)(const struct kinf_object *object, const struct kinf_object **ret_object,
                     void *ctx);
    void *transform_ctx;
    struct kinf__log_limit transform_failures;
};

enum kinf__store_change {
    KINF__STORE_KEEP,
    KINF__STORE_PUT,
    KINF__STORE_REMOVE,
};

/* What a delta means. */
struct kinf__change {
    enum kinf__store_change store;
    const struct kinf_object *old;    /* what the store has; NULL: nothing; a reference */
    const struct kinf_object *object; /* of the delta, transformed; a reference */
    const char *resource_version;     /* of a deletion, borrowed from the object; NULL: unknown */
    bool only_syncing;
    size_t n_notifications;
    struct kinf__notification notifications[KINF__PUSH_MAX]; /* borrow old and object */
};

/* Runs the transform. The caller releases the change. */
void kinf__change_prepare(struct kinf__delta_target *target, const struct kinf_delta *delta,
                          bool in_initial_list, struct kinf__change *ret_change);
/* Errors: KINF_ERR_NO_MEMORY, nothing changed. */
KINF_MUST_CHECK int kinf__change_apply(struct kinf__delta_target *target,
                                       const struct kinf__change *change);
void kinf__change_release(struct kinf__change *change);

#endif
