/*
 * What a consumer that may be slow, or away, is to be told of any number of resources.
 *
 * Changes wait here by key: one that waits already takes the newer state in its place, one that came
 * and went untold is not told at all. So what waits is bounded by the objects that there are and those
 * that were told and are gone. It takes 72 bytes an object (of a 64-bit machine) for each feed that
 * has it, its share of a hash table, and a reference, mostly to what the store has anyway.
 *
 * Guarantees:
 *   - For each key what is told is ADDED, any number of MODIFIED, DELETED, and so on; of re-created
 *     objects the deletion comes first.
 *   - What several feeds of a resource have is told once, as the newest of them has it, and as deleted
 *     when none of them has it any more.
 *   - SYNCED of a resource comes behind all objects of its first list; of one with several feeds behind
 *     those of all, but for refused ones, whose objects another SYNCED follows should they come.
 *   - After kinf__outbox_reset(), for a consumer that is new and knows nothing, RESET comes first, then
 *     everything as ADDED, with SYNCED behind it for each resource that is synced.
 *   - If it acknowledges: each deletion of what was ever told is told until it is acknowledged, to the
 *     next consumer behind RESET if need be. Changes are counted from 1, never anew, and no more than
 *     KINF__OUTBOX_WINDOW are ahead of the acknowledged one.
 *
 * Owner: who tells (exec_handler.c). Threads: any thread; new and free of both when nobody uses them.
 */
#ifndef KINF_HANDLERS_OUTBOX_H
#define KINF_HANDLERS_OUTBOX_H

#include <kinformer/plugin.h>

#include "base/hmap.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/thread.h"

#define KINF__OUTBOX_WINDOW 1000

struct kinf__outbox_feed;

struct kinf__outbox_options {
    bool acknowledges;
    /* MODIFIED and DELETED say what was told last, which is held while something newer waits. */
    bool keeps_old;
};

struct kinf__outbox {
    /* constant */
    struct kinf__outbox_options options;
    struct kinf__waker wake; /* something is to be told, or it is the end */
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list feeds;
    struct kinf__list waiting;        /* in the order in which they are told */
    struct kinf__list unacknowledged; /* deletions that were told, likewise */
    size_t n_waiting;
    uint64_t n_told; /* the number of the last one */
    uint64_t n_acknowledged;
    bool is_reset_due;
    bool is_closed;
};

KINF_MUST_CHECK int kinf__outbox_init(struct kinf__outbox *outbox,
                                      const struct kinf__outbox_options *options,
                                      struct kinf_error *err);
void kinf__outbox_release(struct kinf__outbox *outbox);

/* --- one side: a resource, whose callbacks tell --- */

/* `resource` is copied. It is closed: what it is told it keeps, and nobody else can tell that it is
 * there. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__outbox_feed_new(struct kinf__outbox *outbox, const char *resource,
                                          struct kinf__outbox_feed **ret_feed,
                                          struct kinf_error *err);
/* Of several that are opened together each joins first: SYNCED of its resource waits for it by then. */
void kinf__outbox_feed_join(struct kinf__outbox_feed *feed);
/* From here on the consumer is told what it has. Once. */
void kinf__outbox_feed_open(struct kinf__outbox_feed *feed);
/* Its objects are not told any more: the consumer is told the others anew, if it was told any of its. NULL is
 * allowed. */
void kinf__outbox_feed_free(struct kinf__outbox_feed *feed);

/* These never wait for the consumer; for want of memory the first waits until there is some, or the
 * outbox is closed. `old` is what the feed had in its place: NULL: nothing; the same: it is told again. */
void kinf__outbox_feed_put(struct kinf__outbox_feed *feed, const struct kinf_object *old,
                           const struct kinf_object *object, bool in_initial_list);
void kinf__outbox_feed_delete(struct kinf__outbox_feed *feed, const struct kinf_object *last,
                              bool final_state_unknown);
void kinf__outbox_feed_synced(struct kinf__outbox_feed *feed);
/* Nothing of it is to be seen, it may be for good. */
void kinf__outbox_feed_refused(struct kinf__outbox_feed *feed);

/* --- the other: who tells --- */

/* The consumer is a new one. */
void kinf__outbox_reset(struct kinf__outbox *outbox);
/* What is to be told next, which counts as told if this returns 0; it may not call the outbox. All that
 * `change` points to is valid during the call. */
typedef int kinf__outbox_take_cb(const struct kinf_change *change, void *ctx);
/* Returns 1, or 0 if there is nothing, or nothing may be told yet, or what take returned: nothing changed
 * then. */
KINF_MUST_CHECK int kinf__outbox_next(struct kinf__outbox *outbox, kinf__outbox_take_cb *take,
                                      void *ctx);
/* All up to this one are done. Returns false if it makes no sense. */
bool kinf__outbox_acknowledge(struct kinf__outbox *outbox, uint64_t sequence);
/* The end: nothing waits in a call any more, wake is set. */
void kinf__outbox_close(struct kinf__outbox *outbox);
bool kinf__outbox_is_closed(struct kinf__outbox *outbox);

/* Walks the lists; for tests. */
bool kinf__outbox_check(struct kinf__outbox *outbox);

struct kinf__outbox_status {
    size_t n_waiting;
    uint64_t n_told;
    uint64_t n_unacknowledged;
};
void kinf__outbox_status(struct kinf__outbox *outbox, struct kinf__outbox_status *ret_status);

#endif
