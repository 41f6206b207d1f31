/*
 * Controllers: a callback that makes the world right for one object, called whenever that may be
 * needed. examples/configmap-sync is a whole one.
 *
 * The callback is told a key and nothing else; what is to be done it sees from the caches.
 *
 * Guarantees (tests cite these numbers):
 *  C1  Never two calls at once for one key. What changes during a call leads to another one.
 *  C2  Each change of a watched informer leads to a call of every key that its map names, for the
 *      old and for the new state; want of memory only delays it.
 *  C3  A call sees what the calls of its key before it wrote: it begins when every informer of the
 *      controller that such an object comes to has it (for a deletion: has it gone, being deleted,
 *      or another of its name). If that takes more than 5 s the key is put off, by its backoff, and
 *      not called upon old data. (A server that was restored from a copy may never get there: after
 *      60 s what was written counts no more.) What other keys' calls wrote is not waited for.
 *      What was written is told by the answer: the object itself, or another kind whose metadata
 *      has a uid, a resourceVersion and the request's namespace and name, as a Scale. (That says
 *      nothing of labels: an informer with selectors waits only if it has the object.) Not waited
 *      for is what has no such answer: evictions and bindings (a Status), tokens (a TokenRequest),
 *      DELETE_COLLECTION.
 *  C4  With `finalizer`, `reconcile` is called for objects only that have it, in the cache, and it
 *      is removed only after a `cleanup` of the object returned 0.
 *  C5  `reconcile` is called with an object that is in the cache and not being deleted, `cleanup`
 *      otherwise: the object is being deleted, is gone, or has left the informer's selectors, which
 *      the server is asked for (so the verb get is needed, too).
 *  C6  Nothing is written by kinf_call_...() when the controller has been told to stop, or the
 *      elector's term in which the call began is over: KINF_ERR_STOPPED. A request takes no longer
 *      than what is left of the term, so that it ends before another may lead, and is given up
 *      within 100 ms of a term that ends before its time. The key is tried again when we lead again; if
 *      another has led in between, every object is called, as at the beginning.
 *  C7  kinf_controller_stop() waits for callbacks that are running, and for nothing else: their
 *      requests are given up.
 *
 * What becomes of a key is said by what its callback returns:
 *   0                         good; kinf_call_requeue_after() holds
 *   KINF_ERR_STOPPED          no failure: it is called again if there is an again
 *   KINF_ERR_CONFLICT, EXISTS called again when the cache has another version of what the refused
 *                             write was about (a second at most), not before the backoff's time,
 *                             which begins with 5 ms
 *   an error with retry_after_ms           called again then
 *   KINF_ERR_INVALID, 400 and 422          called again when something changes that concerns it
 *   anything else             called again by the queue's rate limit
 * Failures are logged, no more than one in two seconds, and counted (kinf_controller_status()).
 *
 * What no controller can see: that an object lost its label, or was deleted, while none ran. With a
 * finalizer a deletion waits for the controller; a label that was lost meanwhile leaves the object
 * its finalizer and what was made for it, until it has the label again. Where that matters, watch
 * without a selector.
 *
 * A callback that crashes or never returns is the program's: nothing here ends it. Requests of
 * calls are under the client's rate limit (kinformer/client.h).
 *
 * Mirrors: controller-runtime's builder and Reconciler; kube-rs's Controller and finalizer().
 * Threads: any thread, unless a line says otherwise.
 */
#ifndef KINFORMER_CONTROLLER_H
#define KINFORMER_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/client.h>
#include <kinformer/elector.h>
#include <kinformer/error.h>
#include <kinformer/factory.h>
#include <kinformer/informer.h>
#include <kinformer/object.h>
#include <kinformer/queue.h>
#include <kinformer/request.h>
#include <kinformer/str.h>
#include <kinformer/type.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_controller;

/* --- one call --- */

/* Lives until the callback returns; belongs to its thread. */
struct kinf_call;

/* Makes it so. May block; may not stop or free the controller, nor one that waits for this one's end
 * (KINF_ERR_STATE). Returns 0 or a negative enum kinf_errc: see above. */
typedef int kinf_reconcile_cb(struct kinf_call *call, void *ctx, struct kinf_error *err);

/* "namespace/name", or "name". The call's own. */
KINF_API const char *kinf_call_key(const struct kinf_call *call);
/* As the cache has it; of one that has left the selectors, as the server has it; NULL: it is gone.
 * The call's own. */
KINF_API const struct kinf_object *kinf_call_object(const struct kinf_call *call);
KINF_API struct kinf_client *kinf_call_client(const struct kinf_call *call);
/* If the callback returns 0, it is called again after so much time, at the latest. */
KINF_API void kinf_call_requeue_after(struct kinf_call *call, int64_t delay_ms);

/* Creates or changes an object by server-side apply, with the controller's name as field manager,
 * by force: what is in `json` becomes so, what this manager applied before and is not in it goes.
 * `json` is an object with or without kind, apiVersion, metadata.name and metadata.namespace, which
 * are those of the arguments. `name_space` of types without namespaces: NULL. Errors besides:
 * KINF_ERR_EXISTS (see owner_annotation).
 *
 * Nothing is sent if this controller has applied the same text to it last and the cache of a watched
 * informer still has it all (texts, numbers and truths equal as they are written, arrays in the same
 * order; fields that the cache does not keep, or the server writes otherwise, as quantities, make it
 * send each time, which then changes nothing). An object and its status are remembered each by
 * itself; any other write of this controller to the object, and its deletion, forgets both.
 *
 * Errors of all of these: as kinf_client_request(), KINF_ERR_STOPPED (C6; kinf_client_interrupt() does not
 * end them). */
KINF_API KINF_MUST_CHECK int kinf_call_apply(struct kinf_call *call, const struct kinf_type *type,
                                             const char *name_space, const char *name,
                                             struct kinf_str json, struct kinf_error *err);
/* The same for the subresource `status` of an object that is there. */
KINF_API KINF_MUST_CHECK int kinf_call_apply_status(struct kinf_call *call,
                                                    const struct kinf_type *type,
                                                    const char *name_space, const char *name,
                                                    struct kinf_str json, struct kinf_error *err);
/* Deletes this very object: that it is gone, or is another by now (another uid), is success. */
KINF_API KINF_MUST_CHECK int kinf_call_delete(struct kinf_call *call,
                                              const struct kinf_object *object,
                                              struct kinf_error *err);
/* Any request. Its timeout is no longer than what is left of the term. The default field manager is
 * the controller's name. What it writes the next call sees, as far as the answer tells (C3). */
KINF_API KINF_MUST_CHECK int kinf_call_request(struct kinf_call *call,
                                               const struct kinf_request *request,
                                               struct kinf_response *ret_response,
                                               struct kinf_error *err);

/* --- which keys a change concerns --- */

/* Where a map puts keys; lives during its call. */
struct kinf_keys;
/* The key is copied. Errors: KINF_ERR_NO_MEMORY (return it, then the map is called again). */
KINF_API KINF_MUST_CHECK int kinf_keys_add(struct kinf_keys *keys, const char *key);

/* Adds the keys that an object concerns; called for the old and for the new state, on the
 * informer's handler thread. Must not block. Returns 0 or a negative value: KINF_ERR_NO_MEMORY is
 * tried again, others are logged and counted. */
typedef int kinf_map_cb(const struct kinf_object *object, struct kinf_keys *keys, void *ctx);

/* The owner in metadata.ownerReferences that has controller=true, if it is of this group and kind.
 * `ctx`: its const struct kinf_type. Mirrors: handler.EnqueueRequestForOwner. */
KINF_API int kinf_map_owner(const struct kinf_object *object, struct kinf_keys *keys, void *ctx);
/* The value of an annotation, or of a label, as key. `ctx`: its name. A label's has no '/': it names
 * only what has no namespace. */
KINF_API int kinf_map_annotation(const struct kinf_object *object, struct kinf_keys *keys,
                                 void *ctx);
KINF_API int kinf_map_label(const struct kinf_object *object, struct kinf_keys *keys, void *ctx);
/* All keys in the cache of an informer, when an object comes or goes and not when it changes.
 * `ctx`: that informer. */
KINF_API int kinf_map_all(const struct kinf_object *object, struct kinf_keys *keys, void *ctx);

/* --- the controller --- */

/* All zero but `size`, `name`, `informer` and `reconcile` is the default. Strings are copied. */
struct kinf_controller_options {
    size_t size;      /* of this struct: KINF_CONTROLLER_OPTIONS_INIT sets it */
    const char *name; /* in the log, of its queue's metrics, its field manager */
    /* The objects. Borrowed, as all informers, until the controller is stopped: from its start until
     * then they cannot be freed. Those that are not running are started by the controller, and stopped
     * by the last that has them; of what has been lent, their factory's with `factory`, and else they
     * must run. */
    struct kinf_informer *informer;
    /* Whose informers these are, or some of them; it is started, and shut down by the last controller
     * with it that stops. NULL: they are no factory's, or their program starts and ends that by itself. */
    struct kinf_factory *factory;
    kinf_reconcile_cb *reconcile;
    kinf_reconcile_cb *cleanup; /* may be called more than once; NULL: there is nothing to do */
    /* Keeps deleted objects until `cleanup`, which must be there then, has returned 0. */
    const char *finalizer;
    /* Marks what kinf_call_apply() makes by the key of its call, and keeps it from what others made:
     * an object of the name without this annotation, or with another key in it, is
     * KINF_ERR_EXISTS and stays as it is. One that no watched informer has is created first, with
     * its labels, since the server alone knows who came first. One that is gone by now, or another
     * (another uid), is KINF_ERR_CONFLICT until the cache knows. A type whose objects must have more
     * than labels when they are created (a Deployment) the server refuses (422): create those with
     * kinf_call_request(). Of the labels that it was created with, apply changes values, and takes none
     * away. Where the cache does not keep annotations the server is asked each time whose it is. NULL:
     * apply takes what it finds.
     * The way back is kinf_map_annotation(). */
    const char *owner_annotation;
    void *ctx;
    unsigned n_workers;                     /* threads that call; 0: 1; 1,000 at most */
    const struct kinf_queue_options *queue; /* NULL: all defaults; default name: `name` */
    /* Calls only while it leads. It is started when the informers are synced, and stopped behind the
     * last call, unless it runs already; of several controllers that have it, by the first that is synced and
     * the last that stops. Cannot be stopped before the controller. */
    struct kinf_elector *elector;
    int64_t resync_period_ms; /* calls for every object each time; 0: never */
};
#define KINF_CONTROLLER_OPTIONS_INIT                                                               \
    {                                                                                              \
        sizeof(struct kinf_controller_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, \
            NULL, NULL, 0                                                                          \
    }

/* Errors: KINF_ERR_INVALID (what must be there is not, or cannot be meant), KINF_ERR_NO_MEMORY,
 * KINF_ERR_SYSTEM. `client` is borrowed until the controller is freed. */
KINF_API KINF_MUST_CHECK int kinf_controller_new(struct kinf_client *client,
                                                 const struct kinf_controller_options *options,
                                                 struct kinf_controller **ret_controller,
                                                 struct kinf_error *err);
/* Stops and frees, before its informers. Not from a callback: that is logged, and nothing is freed.
 * NULL is allowed. */
KINF_API void kinf_controller_free(struct kinf_controller *controller);
KINF_API void kinf_controller_free_ptr(struct kinf_controller **controller);
#define kinf_auto_controller __attribute__((cleanup(kinf_controller_free_ptr)))

/* Changes of these objects concern keys, too. Before start only. `ctx` is the map's. Errors:
 * KINF_ERR_STATE (started), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_controller_watch(struct kinf_controller *controller,
                                                   struct kinf_informer *informer, kinf_map_cb *map,
                                                   void *ctx, struct kinf_error *err);

/* Starts everything, and returns; calls begin when every informer is synced, and the elector leads.
 * Once. Errors: KINF_ERR_STATE (started or stopped before), KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM, or
 * of an informer's start: then it is stopped. */
KINF_API KINF_MUST_CHECK int kinf_controller_start(struct kinf_controller *controller,
                                                   struct kinf_error *err);
/* Ends requests, waits for callbacks that run; then stops the elector, which gives its Lease up if
 * so asked, and the informers. What was not called yet will be after the next start of the program.
 * A second stop is harmless. Errors: KINF_ERR_STATE (from a callback or map of this controller, a
 * callback of its elector, or one of an informer, which it could not wait for; from a callback of
 * another controller for whose end one of this one's callbacks waits, perhaps by way of others). */
KINF_API int kinf_controller_stop(struct kinf_controller *controller, struct kinf_error *err);

/* The end of main(): starts, waits for SIGTERM or SIGINT, and stops. Errors: as of start; of
 * kinf_informer_wait_synced(), if the server refuses an informer for a reason that lies with us, or
 * after `sync_timeout_ms`; KINF_ERR_SYSTEM. Until the informers are synced a signal ends the program
 * as usual: nothing has been written yet. One thread of the program. */
KINF_API KINF_MUST_CHECK int kinf_controller_run(struct kinf_controller *controller,
                                                 int64_t sync_timeout_ms, struct kinf_error *err);

struct kinf_controller_status {
    bool is_synced; /* every informer is */
    bool is_active; /* calls are made: synced, leading, not stopped */
    uint64_t n_reconciles;
    uint64_t n_cleanups;
    uint64_t n_conflicts; /* calls that ended so: KINF_ERR_CONFLICT and EXISTS */
    uint64_t n_put_off;   /* with a time to come back */
    uint64_t n_invalid;   /* KINF_ERR_INVALID, 400, 422 */
    uint64_t n_other_errors;
    uint64_t n_stopped; /* KINF_ERR_STOPPED: given up, no failures */
    uint64_t n_map_errors;
    uint64_t n_waits;         /* for own writes (C3) */
    uint64_t n_wait_timeouts; /* that took too long */
    uint64_t n_applies_spared;
    uint64_t n_requests; /* of calls, and for finalizers */
    struct kinf_queue_status queue;
    uint64_t reserved[4]; /* 0: for members to come */
};
KINF_API void kinf_controller_status(struct kinf_controller *controller,
                                     struct kinf_controller_status *ret_status);
/* Its queue, for kinf_queue_metrics_text() and for adding keys by hand. The controller's own. */
KINF_API struct kinf_queue *kinf_controller_queue(struct kinf_controller *controller);

#ifdef __cplusplus
}
#endif
#endif
