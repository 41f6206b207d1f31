/*
 * DeltaFIFO: what happened to each key and was not processed yet.
 *
 * The pending deltas of a key are gathered in one item, items leave in the order in which their keys
 * arrived, the last two Deleted of a key collapse.
 *
 * Mirrors: cache.DeltaFIFO. Differences: Pop processes outside the queue's lock, and the key being
 * processed counts as queued for Replace, Resync and Delete, so nothing is lost between queue and
 * store; has_synced turns true after the last item of the first Replace was processed, not before; the
 * queue knows a lower bound of what the store has seen (kinf_deltafifo_resource_version()); it can be
 * bounded by bytes. There is no transform here (the informer has one) and no error from a key function
 * (an object has its key).
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

/* Mirrors: cache.DeltaType. */
enum kinf_delta_type {
    KINF_DELTA_ADDED,
    KINF_DELTA_UPDATED,
    KINF_DELTA_DELETED,
    KINF_DELTA_REPLACED, /* came with a list */
    KINF_DELTA_SYNC,     /* periodic resync of what the store has */
};

KINF_API const char *kinf_delta_type_to_string(enum kinf_delta_type type);

struct kinf_delta {
    enum kinf_delta_type type;
    /* Deleted only: the deletion itself was missed, `object` is the last known state (a tombstone;
     * cache.DeletedFinalStateUnknown). */
    bool final_state_unknown;
    const struct kinf_object *object; /* never NULL */
};

/* The pending deltas of one key, oldest first, at least one. Mirrors: cache.Deltas. */
struct kinf_deltas {
    const char *key;
    const struct kinf_delta *items;
    size_t n_items;
};

/* Called for one known object, borrowed during the call. 0 goes on, anything else ends the walk. */
typedef int kinf_known_object_cb(const struct kinf_object *object, void *ctx);

/* What the consumer has stored, for tombstones and resync. Called with the queue's lock held: it may
 * lock the store, and nothing else. Mirrors: cache.KeyListerGetter. */
struct kinf_known_objects {
    /* Walks one consistent state, each key once; returns 0 or what the callback returned. NULL, as then
     * has_key: nothing is known. */
    int (*each)(kinf_known_object_cb *callback, void *callback_ctx, void *ctx);
    bool (*has_key)(const char *key, void *ctx);
    void *ctx;
};

struct kinf_deltafifo_options {
    struct kinf_known_objects known; /* all zero: none */
    /* Add, Update, Delete and Replace block while the objects in the queue hold more than this; 0:
     * unbounded. A Replace is never split, so it may pass the bound. Resync never blocks, and neither
     * does the consumer in its process callback, since it would wait for itself. */
    size_t max_bytes;
    /* Objects of a Replace come as Sync instead of Replaced (upstream's default for a bare FIFO). */
    bool replace_as_sync;
};
#define KINF_DELTAFIFO_OPTIONS_INIT {{NULL, NULL, NULL}, 0, false}

struct kinf_deltafifo;

/* Errors: KINF_ERR_INVALID (one of known's functions without the other), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_new(const struct kinf_deltafifo_options *options,
                                                struct kinf_deltafifo **ret_fifo, struct kinf_error *err);
/* The consumer and the producers must be gone. NULL is allowed. */
KINF_API void kinf_deltafifo_free(struct kinf_deltafifo *fifo);

/* Queue one delta; the object gains a reference. Its resourceVersion becomes the last one received,
 * unless it is empty or above 63 bytes. Errors: KINF_ERR_STOPPED (closed), KINF_ERR_NO_MEMORY; nothing
 * changed. Mirrors: Queue.Add, Update, Delete. A Delete of a key that is neither queued, nor in
 * process, nor known queues nothing. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_add(struct kinf_deltafifo *fifo, const struct kinf_object *object,
                                                struct kinf_error *err);
KINF_API KINF_MUST_CHECK int kinf_deltafifo_update(struct kinf_deltafifo *fifo,
                                                   const struct kinf_object *object, struct kinf_error *err);
KINF_API KINF_MUST_CHECK int kinf_deltafifo_delete(struct kinf_deltafifo *fifo,
                                                   const struct kinf_object *object, struct kinf_error *err);

/* The whole state as of `resource_version`, atomically: each object as Replaced, then a tombstone for
 * each key that is queued, in process or known, and not in the list. Of a key that is listed twice
 * both deltas are kept. Errors: KINF_ERR_STOPPED, KINF_ERR_NO_MEMORY, KINF_ERR_LIMIT (a
 * resourceVersion above 63 bytes); nothing changed. Mirrors: Queue.Replace. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_replace(struct kinf_deltafifo *fifo,
                                                    const struct kinf_object *const *objects,
                                                    size_t n_objects, const char *resource_version,
                                                    struct kinf_error *err);

/* A Sync for each known key that has nothing pending and is not in process. Does nothing when nothing
 * is known. Errors: KINF_ERR_STOPPED, KINF_ERR_NO_MEMORY (keys so far stay queued). Mirrors:
 * Queue.Resync. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_resync(struct kinf_deltafifo *fifo, struct kinf_error *err);

/* All up to `resource_version` has been queued (a bookmark). Errors: KINF_ERR_STOPPED, KINF_ERR_LIMIT
 * (63 bytes). */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_bookmark(struct kinf_deltafifo *fifo, const char *resource_version,
                                                     struct kinf_error *err);

/* Processes the deltas of one key, on the consumer's thread, with no lock held. The deltas and their
 * objects are borrowed during the call. `in_initial_list`: has_synced was false when it left the
 * queue. What it returns is returned by pop; the item counts as processed in any case. Mirrors:
 * cache.PopProcessFunc. */
typedef int kinf_pop_process_cb(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx);

/* Waits for an item, at most until `timeout_ms` have passed (KINF_FOREVER: no limit), and processes it.
 * Errors: KINF_ERR_TIMEOUT, KINF_ERR_STOPPED (closed and empty), KINF_ERR_STATE (an item is in process:
 * called from the callback, or by a second consumer), or what `process` returned. Mirrors: Queue.Pop. */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_pop(struct kinf_deltafifo *fifo, kinf_pop_process_cb *process,
                                                void *ctx, int64_t timeout_ms);

/* Wakes everybody: producers get KINF_ERR_STOPPED from now on, the consumer pops what is left and then
 * gets it too. Mirrors: Queue.Close. */
KINF_API void kinf_deltafifo_close(struct kinf_deltafifo *fifo);
/* The same, and drops what is left: the consumer stops after what it is processing. What was dropped
 * was never processed: has_synced and the resourceVersion below say so. */
KINF_API void kinf_deltafifo_abort(struct kinf_deltafifo *fifo);

/* Whether something was added, updated, deleted or replaced, and every item of the Replace that came
 * first, if one did, was processed. Never turns back. Mirrors: Queue.HasSynced. */
KINF_API bool kinf_deltafifo_has_synced(struct kinf_deltafifo *fifo);

/* A lower bound of what the consumer has processed: the resourceVersion that preceded the oldest item
 * that is queued or in process, or the last one received when there is none. "" before the first, and
 * after a Replace with a lower version (a restored server) until all that is queued then is processed.
 * Errors: KINF_ERR_LIMIT (buffer). */
KINF_API KINF_MUST_CHECK int kinf_deltafifo_resource_version(struct kinf_deltafifo *fifo, char *buf,
                                                             size_t size);

/* Items (keys) in the queue, without the one in process, and the bytes of their objects. */
KINF_API size_t kinf_deltafifo_len(struct kinf_deltafifo *fifo);
KINF_API size_t kinf_deltafifo_bytes(struct kinf_deltafifo *fifo);

#ifdef __cplusplus
}
#endif
#endif
