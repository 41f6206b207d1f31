/*
 * DeltaFIFO: what happened to the objects and was not processed yet. There are two kinds of queue;
 * what is said further down is true of both.
 *
 * KINF_FIFO_IN_ORDER, the default: every delta leaves in the order of arrival. Nothing is gathered,
 * collapsed or filtered, and what the store has is never asked.
 *   leave together    up to KINF_FIFO_BATCH_MAX of Added, Updated and Deleted, no two of one key, so
 *                     that they may be stored in one transaction; or one of the others alone. How
 *                     many says nothing: it depends on how fast the consumer is. `key` is NULL.
 *   Replace           is one ReplacedAll, with the list as it was given
 *   Resync            is one SyncAll
 *   Bookmark          is a delta, too; one behind another takes its place
 *   resourceVersion   exact: of the last ReplacedAll, Bookmark or object that was processed (of an
 *                     object that has none, or one above 63 bytes, it stays as it is)
 *   length            in deltas: a whole list is one
 * Mirrors: cache.RealFIFO with the gates AtomicFIFO and UnlockWhileProcessingFIFO. Differences:
 * bookmarks in a row are one, the newest; what holds producers back is max_bytes.
 *
 * KINF_FIFO_KEYED, client-go's classic: the pending deltas of a key are one item, and items leave in
 * the order in which their keys arrived.
 *   leave together    all pending deltas of one key, each of them (four that were queued are four);
 *                     only of two Deleted in a row one stays. `key` is theirs.
 *   Delete            of a key that is neither queued, nor in process, nor known queues nothing
 *   Replace           is a Replaced for each object (of a key that is listed twice two), then a
 *                     tombstone for each key that is queued, in process or known, and not in the list
 *   Resync            is a Sync for each known key that has nothing pending and is not in process
 *   Bookmark          moves the resourceVersion and queues nothing
 *   resourceVersion   a lower bound: the one that preceded the oldest item that is queued or in
 *                     process, or the last one received when there is none; "" after a Replace with
 *                     a lower version (a restored server) until all that is queued then is processed
 *   length            in keys
 * Mirrors: cache.DeltaFIFO. Differences: the key being processed counts as queued for Replace,
 * Resync and Delete, so nothing is lost between queue and store; the queue knows a lower bound of
 * what the store has seen.
 *
 * In both: Pop processes outside the queue's lock; has_synced turns true after the last item of the
 * first Replace was processed, not before; the queue can be bounded by bytes. There is no transform
 * here (the informer has one) and no error from a key function (an object has its key).
 *
 * Threads: any number of producers; one consumer. The process callback may call everything but
 * kinf_deltafifo_pop() and kinf_deltafifo_free().
 */
#ifndef KINFORMER_DELTAFIFO_H
#define KINFORMER_DELTAFIFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/error.h>
#include <kinformer/object.h>

#ifdef __cplusplus
extern "C" {
#endif

enum kinf_fifo_order {
    KINF_FIFO_IN_ORDER, /* as it arrived */
    KINF_FIFO_KEYED,    /* by key, in the order in which the keys arrived */
};

/* "in order", "keyed"; never NULL. */
KINF_API const char *kinf_fifo_order_to_string(enum kinf_fifo_order order);

/* Mirrors: cache.DeltaType. */
enum kinf_delta_type {
    KINF_DELTA_ADDED,
    KINF_DELTA_UPDATED,
    KINF_DELTA_DELETED,
    /* keyed only */
    KINF_DELTA_REPLACED, /* came with a list */
    KINF_DELTA_SYNC,     /* periodic resync of what the store has */
    /* in order only */
    KINF_DELTA_REPLACED_ALL, /* a whole list: the store is to hold exactly this */
    KINF_DELTA_SYNC_ALL,     /* resync of whatever the store has then */
    KINF_DELTA_BOOKMARK,     /* nothing but a newer resourceVersion */
};

/* As client-go spells it, "Added"; never NULL. */
KINF_API const char *kinf_delta_type_to_string(enum kinf_delta_type type);

/* Everything it points to is borrowed, as the callback that is handed it says. */
struct kinf_delta {
    enum kinf_delta_type type;
    /* Deleted only: the deletion itself was missed, `object` is the last known state (a tombstone;
     * cache.DeletedFinalStateUnknown). */
    bool final_state_unknown;
    /* NULL in ReplacedAll, SyncAll and Bookmark, and only there. */
    const struct kinf_object *object;
    /* ReplacedAll: the list as it was given, a key that was listed twice is there twice. */
    const struct kinf_object *const *objects;
    size_t n_objects;
    /* ReplacedAll and Bookmark: of the list, of the bookmark; else NULL. */
    const char *resource_version;
};

/* The most deltas that leave together in order. */
#define KINF_FIFO_BATCH_MAX 1000

/* What leaves the queue at once, oldest first, at least one. Mirrors: cache.Deltas. */
struct kinf_deltas {
    const char *key; /* keyed; else NULL */
    const struct kinf_delta *items;
    size_t n_items;
};

/* Called for one known object, borrowed during the call. 0 goes on, anything else ends the walk. */
typedef int kinf_known_object_cb(const struct kinf_object *object, void *ctx);

/* What the consumer has stored, for tombstones and resync. Called with the queue's lock held: it
 * may lock the store, and nothing else. Mirrors: cache.KeyListerGetter. */
struct kinf_known_objects {
    /* Walks one consistent state, each key once; returns 0 or what the callback returned. NULL, as
     * then has_key: nothing is known. */
    int (*each)(kinf_known_object_cb *callback, void *callback_ctx, void *ctx);
    bool (*has_key)(const char *key, void *ctx);
    void *ctx;
};

struct kinf_deltafifo_options {
    size_t size;                     /* of this struct: KINF_DELTAFIFO_OPTIONS_INIT sets it */
    struct kinf_known_objects known; /* keyed only; all zero: none */
    /* Add, Update, Delete and Replace block while the objects in the queue hold more than this; 0:
     * unbounded. A Replace is never split, so it may pass the bound. Resync and bookmark never
     * block, and neither does the consumer in its process callback, since it would wait for itself.
     * What is in process is not counted: in order that may be as much again. */
    size_t max_bytes;
    /* Keyed only: objects of a Replace come as Sync instead of Replaced (upstream's default for a
     * bare FIFO). */
    bool replace_as_sync;
    enum kinf_fifo_order order; /* default: KINF_FIFO_IN_ORDER */
};
#define KINF_DELTAFIFO_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct kinf_deltafifo_options), { NULL, NULL, NULL }, 0, false, KINF_FIFO_IN_ORDER  \
    }

struct kinf_deltafifo;

/* Errors: KINF_ERR_INVALID (one of known's functions without the other; an option that is keyed
 * only with another order), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_new(const struct kinf_deltafifo_options *options,
                                                struct kinf_deltafifo **ret_fifo,
                                                struct kinf_error *err);
/* The consumer and the producers must be gone. NULL is allowed. */
KINF_API void kinf_deltafifo_free(struct kinf_deltafifo *fifo);

/* Queue one delta; the object gains a reference. Its resourceVersion becomes the last one received,
 * unless it is empty or above 63 bytes. Errors: KINF_ERR_STOPPED (closed), KINF_ERR_NO_MEMORY;
 * nothing changed. Mirrors: Queue.Add, Update, Delete. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_add(struct kinf_deltafifo *fifo,
                                                const struct kinf_object *object,
                                                struct kinf_error *err);
KINF_API KINF_MUST_CHECK int kinf_deltafifo_update(struct kinf_deltafifo *fifo,
                                                   const struct kinf_object *object,
                                                   struct kinf_error *err);
KINF_API KINF_MUST_CHECK int kinf_deltafifo_delete(struct kinf_deltafifo *fifo,
                                                   const struct kinf_object *object,
                                                   struct kinf_error *err);

/* The whole state as of `resource_version`, atomically; each object gains a reference. Errors:
 * KINF_ERR_STOPPED, KINF_ERR_NO_MEMORY, KINF_ERR_LIMIT (a resourceVersion above 63 bytes); nothing
 * changed. Mirrors: Queue.Replace. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_replace(struct kinf_deltafifo *fifo,
                                                    const struct kinf_object *const *objects,
                                                    size_t n_objects, const char *resource_version,
                                                    struct kinf_error *err);

/* Says again what the store has. Errors: KINF_ERR_STOPPED, KINF_ERR_NO_MEMORY (keys so far stay
 * queued). Mirrors: Queue.Resync. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_resync(struct kinf_deltafifo *fifo,
                                                   struct kinf_error *err);

/* All up to `resource_version` has been queued. Does not count towards has_synced. Errors:
 * KINF_ERR_STOPPED, KINF_ERR_LIMIT (63 bytes), KINF_ERR_NO_MEMORY. Mirrors: RealFIFO.Bookmark. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_bookmark(struct kinf_deltafifo *fifo,
                                                     const char *resource_version,
                                                     struct kinf_error *err);

/* Processes what left the queue, on the consumer's thread, with no lock held. The deltas and their
 * objects are borrowed during the call. `in_initial_list`: has_synced was false when they left the
 * queue. What it returns is returned by pop; they count as processed in any case, but for
 * KINF_ERR_STOPPED after an abort. Mirrors: cache.PopProcessFunc, and RealFIFO.PopBatch, whose two
 * callbacks are this one. */
typedef int kinf_pop_process_cb(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx);

/* Waits for an item, at most until `timeout_ms` have passed (KINF_FOREVER: no limit), and processes
 * it. Errors: KINF_ERR_TIMEOUT, KINF_ERR_STOPPED (closed and empty), KINF_ERR_STATE (an item is in
 * process: called from the callback, or by a second consumer), or what `process` returned. Mirrors:
 * Queue.Pop. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_pop(struct kinf_deltafifo *fifo,
                                                kinf_pop_process_cb *process, void *ctx,
                                                int64_t timeout_ms);

/* Wakes everybody: producers get KINF_ERR_STOPPED from now on, the consumer pops what is left and
 * then gets it too. Mirrors: Queue.Close. */
KINF_API void kinf_deltafifo_close(struct kinf_deltafifo *fifo);
/* The same, and drops what is left: the consumer stops after what it is processing. What was
 * dropped was never processed: has_synced and the resourceVersion below say so; its memory is given
 * back with the queue's. Takes no time, however much is queued; a Replace that is under way ends
 * with KINF_ERR_STOPPED. */
KINF_API void kinf_deltafifo_abort(struct kinf_deltafifo *fifo);

/* Whether something was added, updated, deleted or replaced, and if Replace was the first of these,
 * whether all that was queued then was processed, the list included. Never turns back. Mirrors:
 * Queue.HasSynced. */
KINF_API bool kinf_deltafifo_has_synced(struct kinf_deltafifo *fifo);

/* What the consumer has processed; "" before the first. Errors: KINF_ERR_LIMIT (buffer). */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_resource_version(struct kinf_deltafifo *fifo, char *buf,
                                                             size_t size);

/* What is in the queue, without what is in process, and the bytes of its objects. */
KINF_API size_t kinf_deltafifo_len(struct kinf_deltafifo *fifo);
KINF_API size_t kinf_deltafifo_bytes(struct kinf_deltafifo *fifo);

#ifdef __cplusplus
}
#endif
#endif
