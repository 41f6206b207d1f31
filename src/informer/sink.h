/*
 * The sink: who is told of every write of an informer's store, in the store's order, before any
 * handler hears of it. The served API's watch cache is one; the informer knows nothing of it.
 *
 * Threads: set before start; called on the processor thread, with no lock held.
 */
#ifndef KINF_INFORMER_SINK_H
#define KINF_INFORMER_SINK_H

#include <kinformer/informer.h>

/* What became of one key. A key whose object was replaced by another one of the same name (its uid
 * differs) comes as two: gone, then new. Everything is borrowed during the call. */
struct kinf__sink_change {
    const struct kinf_object *old;    /* what the store had; NULL: nothing */
    const struct kinf_object *object; /* what it has; NULL: nothing */
    /* Of the change; NULL if nobody said: of what a list no longer has, or replaced. */
    const char *resource_version;
};

enum kinf__sink_write {
    KINF__SINK_CHANGES,  /* in the order in which they happened, no other key twice */
    KINF__SINK_REPLACED, /* by a list: all that differs, in no order; may be nothing */
    KINF__SINK_BOOKMARK, /* nothing but the store's resourceVersion */
};

struct kinf__sink {
    /* The store was written; its current version has the changes and its resourceVersion is that of
     * the write, which may be lower than before: the server was restored. A write may change
     * nothing but the resourceVersion. */
    void (*on_write)(enum kinf__sink_write write, const struct kinf__sink_change *changes,
                     size_t n_changes, int64_t now_ms, void *ctx);
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
