/*
 * The sink: who is told of every write of an informer's store, in the store's order, before any
 * handler hears of it. The served API's watch cache is one; the informer knows nothing of it.
 *
 * Threads: set before start; called on the thread that pops (informer.h), with no lock held.
 */
#ifndef KINF_INFORMER_SINK_H
#define KINF_INFORMER_SINK_H

#include <kinformer/informer.h>

#include "informer/notification.h"

enum kinf__store_write {
    KINF__WRITE_NOTHING,
    KINF__WRITE_CHANGES,          /* a transaction */
    KINF__WRITE_ALL,              /* Replace */
    KINF__WRITE_RESOURCE_VERSION, /* Bookmark */
};

struct kinf__sink {
    /* The store was written; its current version has the changes and its resourceVersion is that of
     * the write, which may be lower than before: the server was restored. What is told is borrowed:
     * of a transaction in the order in which it happened, no key twice; of a Replace all that
     * differs, in no order. A key whose object was replaced by another one of the same name (its uid
     * differs) comes as two: gone, then new. It may be nothing. */
    void (*on_write)(enum kinf__store_write write, const struct kinf__notification *told,
                     size_t n_told, int64_t now_ms, void *ctx);
    void *ctx;
};

/* Sets the one sink; its ctx must outlive the informer's stop. Errors: KINF_ERR_STATE (started, or
 * a sink is set), KINF_ERR_INVALID (the queue is not KINF_FIFO_IN_ORDER: the store's version would
 * not be exact). */
KINF_MUST_CHECK int kinf__informer_set_sink(struct kinf_informer *informer,
                                            const struct kinf__sink *sink, struct kinf_error *err);

/* What the informer leaves out of objects; valid as long as it is. */
const struct kinf__prune_plan *kinf__informer_plan(const struct kinf_informer *informer);

#endif
