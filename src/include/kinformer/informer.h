/*
 * Shared informers: one watch, one store, any number of handlers.
 *
 * Mirrors: cache.SharedIndexInformer.
 *
 * Guarantees (tests cite these numbers):
 *  G1  For each key, a handler's notifications come in the order of the server. There is no order
 *      across keys, nor across handlers.
 *  G2  The store and its indices change before the notification about it; when a handler runs, the
 *      store may be further ahead than what it is told.
 *  G3  A handler is told each change of the store's state at most once. Every state that a watch
 *      brought is told; those that passed between a watch and the next list are not, nor, if the
 *      handler wishes it (KINF_BACKLOG_COALESCE), those that waited for the handler. An object that
 *      comes again with equal bytes is no change: its stored copy stays.
 *  G4  on_add comes first for a key, then any number of on_update, then on_delete; after it the
 *      key may start again with on_add. on_update never joins two objects: one that was deleted
 *      and re-created under its name (another uid) comes as on_delete, then on_add.
 *  G5  on_delete has the last known object. final_state_unknown says that the deletion itself was
 *      missed, so that the object may have changed before it went.
 *  G6  A handler that joins late is told everything in the store by on_add with in_initial_list
 *      set, then what changes; nothing falls between the two.
 *  G7  on_synced of a handler runs once, after the on_add of every object of the initial list.
 *  G8  Callbacks of one handler run one after another, on a thread of its own (or, of a dispatched
 *      one, where kinf_informer_dispatch() is called); a slow handler holds up nobody else. No lock
 *      of the library is held.
 *  G9  After kinf_informer_remove_handler() returns, no callback of that handler is running or
 *      begins. From a callback of any informer, where waiting could never end, it does not wait:
 *      of a handler that does not remove itself one callback may then still be running or just
 *      beginning, and no further one. on_done is the last in any case: behind it `ctx` may go.
 *  G10 kinf_informer_stop() ends within 200 ms in any state, plus the time of callbacks that are
 *      running, and joins every thread. What was on its way is given up by kinf_informer_free(),
 *      which may take longer.
 *  G11 Nothing that the server sent is lost for want of memory: what cannot be stored is tried
 *      again, logged meanwhile, and nothing behind it overtakes it.
 *
 * Call rules, of an informer and of several namespaces as one. A function that breaks one returns
 * what the table says and changes nothing; none waits for ever.
 *
 *                             not     running  stopped  own       own transform,  own
 *                             started                   handlers  index function  on_watch_error
 *   start                     yes     STATE    STATE    STATE     STATE           STATE
 *   stop                      yes     yes      yes      STATE     STATE           STATE
 *   free                      yes     yes      yes      logged    logged          logged
 *   wait_synced, wait_for_rv  yes     yes      STOPPED  yes       STATE           STATE
 *   add_handler               yes     yes      STOPPED  yes       yes             yes
 *   remove_handler            yes     yes      yes      yes       yes             yes
 *   dispatch                  yes     yes      STOPPED  STATE     STATE           STATE
 *   fd                        yes     yes      yes      yes       yes             yes
 *   add indices to the store  yes     yes      yes      yes       yes (1)         yes
 *   status, dump, reading     yes     yes      yes      yes       yes             yes
 *
 * STATE and STOPPED stand for KINF_ERR_STATE and KINF_ERR_STOPPED; "logged": an error is logged and
 * nothing is freed. Waiting for what is in already returns 0 on a stopped informer. What is said of
 * an index function holds on the thread that adds its index, too. (1) From a transform; an index
 * function that adds indices gets KINF_ERR_STATE. A callback may stop another informer, unless one of
 * that one's callbacks waits (perhaps by way of others) for the end of this one: then it gets
 * KINF_ERR_STATE.
 *
 * Threads: any thread, unless a line says otherwise.
 */
#ifndef KINFORMER_INFORMER_H
#define KINFORMER_INFORMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/client.h>
#include <kinformer/deltafifo.h>
#include <kinformer/error.h>
#include <kinformer/indexer.h>
#include <kinformer/lister.h>
#include <kinformer/object.h>
#include <kinformer/type.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_informer;

/* --- handlers --- */

/* What waits for a handler that is slower than the changes. */
enum kinf_backlog {
    /* Every notification, however many: what upstream does. */
    KINF_BACKLOG_UNBOUNDED = 0,
    /* The notifications of one key merge into what leads from the state told last to the newest:
     * one callback a key, or a delete and an add if the object was re-created. An object that came
     * and went meanwhile is not told at all. A key keeps the place of the first notification that
     * waits for it. */
    KINF_BACKLOG_COALESCE,
};

/* Callbacks of one handler; any may be NULL. Objects are borrowed during the call:
 * kinf_object_ref() keeps them longer. (One that is given back without that is freed under the store's
 * feet; debug builds of the library say so and abort.) They run on the handler's own thread, if it is not
 * dispatched, and may call anything of this library but kinf_informer_stop() and
 * kinf_informer_free() of their informer (KINF_ERR_STATE; free only logs it and frees nothing).
 * Mirrors: cache.ResourceEventHandler. */
struct kinf_handler {
    void (*on_add)(const struct kinf_object *object, bool in_initial_list, void *ctx);
    /* `old` and `object` are the same pointer when nothing changed, which is told to handlers with
     * a resync period only. */
    void (*on_update)(const struct kinf_object *old, const struct kinf_object *object, void *ctx);
    void (*on_delete)(const struct kinf_object *object, bool final_state_unknown, void *ctx);
    /* The short form: called where one of the three above is NULL; add: old is NULL, delete: object
     * is NULL. */
    void (*on_change)(const struct kinf_object *old, const struct kinf_object *object, void *ctx);
    /* Everything of the initial list was delivered. */
    void (*on_synced)(void *ctx);
    /* No callback will come any more: `ctx` may be freed. If the informer was never started, or the
     * handler is dispatched, on the thread that removes the handler or stops the informer (but behind
     * a callback of this handler that is running, on that one's). */
    void (*on_done)(void *ctx);
    void *ctx;
    /* on_update for every stored object each time this has passed, in milliseconds; 0: never; less
     * than 1,000 counts as 1,000. Begins once the informer is synced, and goes on while the server
     * is away (upstream: only while a watch is open). */
    int64_t resync_period_ms;
    enum kinf_backlog backlog;
    /* It has no thread: its callbacks run in kinf_informer_dispatch(). What waits for that waits as
     * for any slow handler, in its backlog; nobody else is held up. */
    bool is_dispatched;
    void *reserved[4]; /* NULL: for members to come */
};
#define KINF_HANDLER_INIT                                                                          \
    {                                                                                              \
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, KINF_BACKLOG_UNBOUNDED, false,                \
        {                                                                                          \
            NULL, NULL, NULL, NULL                                                                 \
        }                                                                                          \
    }

/* Identifies a handler in its informer; 0 is none. */
typedef uint64_t kinf_handler_id;

/* --- state --- */

/* X(enumerator, name, what it means) */
#define KINF_INFORMER_STATES(X)                                                                    \
    X(KINF_STATE_STARTING, "starting", "not started, or before the first request")                 \
    X(KINF_STATE_LISTING, "listing", "a list is under way")                                        \
    X(KINF_STATE_LIVE, "live", "synced, and a watch is open")                                      \
    X(KINF_STATE_STALE, "stale", "synced, but no proof of life, or lists in place of watches")     \
    X(KINF_STATE_BACKING_OFF, "backing off", "a request failed; it is tried again")                \
    X(KINF_STATE_FORBIDDEN, "forbidden", "the server refuses us (401, 403); tried again slowly")   \
    X(KINF_STATE_ABSENT, "absent", "the server has no such resource (404); tried again slowly")    \
    X(KINF_STATE_DEGRADED, "degraded", "live, but objects or index values are left out")           \
    X(KINF_STATE_STOPPED, "stopped", "stopped; cannot be started again")

enum kinf_informer_state {
#define X(state, name, meaning) state,
    KINF_INFORMER_STATES(X)
#undef X
};

/* The name of the list above; never NULL. */
KINF_API const char *kinf_informer_state_to_string(enum kinf_informer_state state);

struct kinf_informer_status {
    enum kinf_informer_state state;
    char reason[KINF_ERROR_MESSAGE_SIZE]; /* of the last error, while it matters; else "" */
    int64_t state_since_ms;               /* monotonic */
    /* Monotonic; the last event, bookmark or list, or the end of a watch that was silent for its
     * whole time where the server has never sent a bookmark; 0: none. That a watch was accepted is
     * no proof. */
    int64_t last_contact_ms;
    int64_t last_list_ms; /* monotonic; when the last list was received; 0: none was */
    bool has_synced;      /* the first list is in the store */
    size_t n_objects;
    size_t n_queued;     /* in the DeltaFIFO: keys, or deltas in order */
    size_t queued_bytes; /* of their objects */
    size_t max_queued_bytes;
    size_t n_handlers;
    uint64_t n_lists;
    uint64_t n_watches;
    uint64_t n_events;
    uint64_t n_bookmarks;
    uint64_t n_errors;
    uint64_t n_silent;      /* watches given up since no byte came */
    uint64_t n_extra_lists; /* to make up for watches that may not deliver */
    uint64_t n_quarantined;
    uint64_t n_outside_shard; /* objects and changes left out, see shard_selector */
    uint64_t n_failed_index_values;
    uint64_t received_bytes;
    /* Of the list or watch list that is under way, the first one or a later; all 0: none is. */
    int64_t list_since_ms;    /* monotonic; when it was begun */
    uint64_t n_list_objects;  /* received so far */
    uint64_t n_list_expected; /* about how many it has in all: as a page said, or else, of a later
                                 list, as many as are stored; 0: not known */
    uint64_t list_bytes;      /* received so far, inflated */
    uint64_t reserved[4];     /* 0: for members to come */
};

/* --- options --- */

/* How the whole state is asked for, at first and whenever the watch was lost for good.
 * X(enumerator, name) */
#define KINF_INITIALS(X)                                                                           \
    X(KINF_INITIAL_AUTO, "auto") /* a watch list above some 200 MB, else a list */                 \
    X(KINF_INITIAL_WATCHLIST,                                                                      \
      "watchlist") /* a watch that sends it first; a list on servers       \
                                              that have no such watch */                       \
    X(KINF_INITIAL_LIST, "list")

enum kinf_initial {
#define X(initial, name) initial,
    KINF_INITIALS(X)
#undef X
};

KINF_API const char *kinf_initial_to_string(enum kinf_initial initial);
/* Returns false for any other text. */
KINF_API KINF_MUST_CHECK bool kinf_initial_parse(const char *text, enum kinf_initial *ret_initial);

/* All zero but `size` and `resource` is the default. Strings and arrays are copied. */
struct kinf_informer_options {
    size_t size;            /* of this struct: KINF_INFORMER_OPTIONS_INIT sets it */
    const char *resource;   /* as kubectl spells it: "pods", "deployments.apps" */
    const char *name_space; /* NULL or "": all */
    /* NULL: all. The server evaluates both; a malformed one is refused here. */
    const char *label_selector;
    const char *field_selector;
    /* NULL: all. One of several parts of the objects, by hash (KEP-5866): "shardRange(
     * object.metadata.uid, '0x0000000000000000', '0x8000000000000000')", or of
     * object.metadata.namespace; ranges of one field are combined by ||. A malformed one is refused
     * here. Servers without the feature ignore it without a word, and not all answers of those with
     * it say that they obeyed, so each object that comes is looked at: what is outside is never
     * stored or told. Then the informer is right but pays for what it does not need: it is
     * degraded with that reason, logs it once, and counts in n_outside_shard, until a whole list
     * brings nothing from outside. */
    const char *shard_selector;
    struct kinf_handler handler; /* the first handler; all NULL: none */
    const struct kinf_index *indices;
    size_t n_indices;
    /* Paths that are not stored; with keeps, all else is not stored. What the runtime needs cannot
     * be dropped:
     * metadata.{name,namespace,uid,resourceVersion,labels,deletionTimestamp,ownerReferences}. A
     * path that can name nothing is refused, here and in indices: one that cannot be dropped, is
     * kept but dropped, indexed but not kept, or outside of metadata with metadata_only. The log has
     * a warning for one that names nothing in the whole first list. */
    const char *const *drops;
    size_t n_drops;
    const char *const *keeps;
    size_t n_keeps;
    /* Changes an object before it is stored; runs on the informer's processor thread, once for each
     * object that arrived, deleted ones included. Returns 0 and in *ret_object an object with a
     * reference of its own for the informer
     * (`object` itself with kinf_object_ref() for "as it is"), with the same key, or a negative
     * value: the object as received is stored and the failure is logged. Without the uid G4 does not see
     * that an object was re-created, without uid and resourceVersion controllers do not see what they
     * wrote to it. Memory is the job of drops and keeps. Mirrors: cache.TransformFunc. */
    int (*transform)(const struct kinf_object *object, const struct kinf_object **ret_object,
                     void *ctx);
    void *transform_ctx;
    /* Told each failed list or watch, on the reflector's thread; may be NULL. The log has a line
     * when such trouble begins, when it ends, and now and then between. May call what the table
     * above says. Mirrors: cache.WatchErrorHandler. */
    void (*on_watch_error)(const struct kinf_error *err, void *ctx);
    void *on_watch_error_ctx;
    /* Default: in order. What arrives together is then stored at once, a list included, and the
     * store's resourceVersion is exact. By key is what client-go's informers did before: see
     * kinformer/deltafifo.h. */
    enum kinf_fifo_order fifo_order;
    enum kinf_initial initial; /* 0: auto */
    size_t page_size; /* limit of a LIST, and with it auto means list; 0: one page, streamed */
    size_t max_object_bytes;  /* JSON of one object; 0: 16 MiB */
    size_t max_queue_bytes;   /* objects in the DeltaFIFO; 0: 64 MiB */
    int64_t watch_timeout_ms; /* 0: 300,000; drawn from [this, twice this) */
    int64_t silent_after_ms;  /* 0: 150,000 */
    int64_t backoff_base_ms;  /* 0: 800 */
    int64_t backoff_max_ms;   /* 0: 30,000 */
    bool accept_gzip;         /* on LIST: less network, more CPU */
    /* Asks the server for metadata alone: no spec, data or status is sent or stored. The objects
     * have the resource's type; a field of anything but metadata is not there. managedFields, which
     * are often the most of it, are not stored unless keeps say so ("metadata": all of it). Mirrors:
     * metadatainformer. */
    bool metadata_only;
    /* Holds the text of objects compressed, each against the first one of its owner, or the first ones
     * of all: a tenth of the memory where they are alike, for 5 to 20 microseconds when an object
     * arrives, and up to ten for each call that reads of it what is neither its identity, nor a label,
     * nor at the path of one of `indices`.
     * kinf_object_json() and the likes copy then, into their scratch. Types whose objects are 128 KiB
     * altogether stay as they are. Not with a transform (KINF_ERR_INVALID). */
    bool compressed;
    /* kinf_informer_wait_synced() goes on waiting while the server refuses the first list. */
    bool wait_out_refusals;
};
#define KINF_INFORMER_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct kinf_informer_options), NULL, NULL, NULL, NULL, NULL, KINF_HANDLER_INIT,     \
            NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, KINF_FIFO_IN_ORDER,                 \
            KINF_INITIAL_AUTO, 0, 0, 0, 0, 0, 0, 0, false, false, false, false                     \
    }

/* --- life --- */

/* Asks the server for the resource (see kinf_client_find_type() for blocking and errors) and makes
 * an informer; nothing is watched yet. `client` is borrowed: it is not freed before the informer.
 * Errors besides: KINF_ERR_INVALID (options), KINF_ERR_PARSE (a path or selector), KINF_ERR_EXISTS (index name
 * twice), KINF_ERR_NO_MEMORY. Mirrors: cache.NewSharedIndexInformer. */
KINF_API KINF_MUST_CHECK int kinf_informer_new(struct kinf_client *client,
                                               const struct kinf_informer_options *options,
                                               struct kinf_informer **ret_informer,
                                               struct kinf_error *err);

/* Stops and frees. Not from a callback, not one that a factory or several namespaces have lent, and not
 * before the controllers that it was started with are stopped: that is logged, and nothing is freed.
 * NULL is allowed. Snapshots and objects that are held stay
 * valid. */
KINF_API void kinf_informer_free(struct kinf_informer *informer);
KINF_API void kinf_informer_free_ptr(struct kinf_informer **informer);
#define kinf_auto_informer __attribute__((cleanup(kinf_informer_free_ptr)))

/* Starts the threads, once. Errors: KINF_ERR_STATE (started or stopped before), KINF_ERR_SYSTEM:
 * then the informer is stopped. Mirrors: SharedInformer.Run. */
KINF_API KINF_MUST_CHECK int kinf_informer_start(struct kinf_informer *informer,
                                                 struct kinf_error *err);

/* Stops and joins every thread. What is queued is not delivered any more; each handler's on_done
 * runs. The store can still be read. A second stop is harmless. Errors: KINF_ERR_STATE (from a
 * callback of this informer: it would wait for itself). */
KINF_API int kinf_informer_stop(struct kinf_informer *informer, struct kinf_error *err);

/* Waits until the first list is in the store. Ends sooner when the server has refused it twice in a
 * row for a reason that lies with us, whatever `timeout_ms` is: KINF_ERR_FORBIDDEN,
 * KINF_ERR_UNAUTHORIZED (with credentials that were read again), KINF_ERR_NOT_FOUND (no such
 * resource any more) or KINF_ERR_SERVER (another http_status from 400 to 499, as of a selector that
 * it does not have), with its message. The informer goes on trying all the same, until it is
 * stopped, and so may the caller; wait_out_refusals of the options makes this call do so. Errors
 * besides: KINF_ERR_TIMEOUT (message tells the state and its reason), KINF_ERR_STOPPED. Mirrors:
 * cache.WaitForCacheSync, which waits for ever. */
KINF_API KINF_MUST_CHECK int kinf_informer_wait_synced(struct kinf_informer *informer,
                                                       int64_t timeout_ms, struct kinf_error *err);
/* Mirrors: SharedInformer.HasSynced. */
KINF_API bool kinf_informer_has_synced(struct kinf_informer *informer);

KINF_API void kinf_informer_status(struct kinf_informer *informer,
                                   struct kinf_informer_status *ret_status);
/* State, queue, store and handlers as lines for a person; their form may change. The caller frees
 * the text by free(). Errors: KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_informer_dump(struct kinf_informer *informer, char **ret_text,
                                                struct kinf_error *err);

/* --- handlers of an informer --- */

/* Adds a handler, at any time before stop, also from a callback. `handler` is copied. Its callbacks may
 * begin before this returns; *ret_id is written before, so that they can remove it. Errors, after
 * which none of its callbacks runs: KINF_ERR_STOPPED, KINF_ERR_INVALID (no such backlog),
 * KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. Mirrors: SharedInformer.AddEventHandler. */
KINF_API KINF_MUST_CHECK int kinf_informer_add_handler(struct kinf_informer *informer,
                                                       const struct kinf_handler *handler,
                                                       kinf_handler_id *ret_id,
                                                       struct kinf_error *err);
/* Removes one (G9); what is queued for it is dropped. Removing an unknown or removed one is
 * harmless. Mirrors: SharedInformer.RemoveEventHandler, ShutDownEventHandler. */
KINF_API void kinf_informer_remove_handler(struct kinf_informer *informer, kinf_handler_id id);
/* Whether on_synced of this handler has run. Mirrors: ResourceEventHandlerRegistration.HasSynced.
 */
KINF_API bool kinf_informer_handler_has_synced(struct kinf_informer *informer, kinf_handler_id id);

struct kinf_handler_status {
    enum kinf_backlog backlog;
    bool has_synced;  /* on_synced has run */
    size_t n_waiting; /* callbacks to come, with the one that runs; objects to be told first, too */
    int64_t oldest_ms;    /* how long the oldest of them waits; 0: none does */
    uint64_t n_told;      /* callbacks that have run */
    uint64_t n_merged;    /* callbacks that merging has spared */
    uint64_t reserved[4]; /* 0: for members to come */
};

/* Errors: KINF_ERR_NOT_FOUND (no such handler, or a removed one). */
KINF_API KINF_MUST_CHECK int kinf_informer_handler_status(struct kinf_informer *informer,
                                                          kinf_handler_id id,
                                                          struct kinf_handler_status *ret_status,
                                                          struct kinf_error *err);

/* --- handlers in the program's own event loop --- */

/* A descriptor for poll(), epoll, libuv and the like: readable as long as a callback of a dispatched
 * handler of this informer waits (or one that waited has merged away since the last dispatch).
 * Edge-triggered loops may use it, too: a dispatch that leaves something is followed by an edge.
 *
 * The informer's own, the same at each call, valid until the informer is freed, before which it
 * leaves the loop; behind a stop it is not readable any more. It is for waiting alone: not to be
 * read, written or closed. Closed by exec; a child of fork(), which has none of the library's
 * threads, leaves it alone.
 *
 * Several informers have one each (an epoll instance makes one of them); those who share one by a
 * factory share its loop. Errors: KINF_ERR_SYSTEM. Mirrors: nothing in client-go. */
KINF_API KINF_MUST_CHECK int kinf_informer_fd(struct kinf_informer *informer, int *ret_fd,
                                              struct kinf_error *err);
/* Runs callbacks of dispatched handlers that wait, `max` at most, on this thread, the handlers in
 * turns; on_synced is one of them. Does not wait for more. *ret_n_waiting, unless NULL: how many
 * wait still. Any thread may call it, one at a time.
 *
 * A removal or a stop by another thread waits for the callback that runs, as of any handler; behind a
 * stop the dispatch runs no further one. kinf_fake_settle() does not wait for callbacks that are to be
 * dispatched. Errors: KINF_ERR_STATE (from a callback, of whichever informer; another thread
 * dispatches now), KINF_ERR_STOPPED. Mirrors: nothing in client-go. */
KINF_API KINF_MUST_CHECK int kinf_informer_dispatch(struct kinf_informer *informer, size_t max,
                                                    size_t *ret_n_waiting, struct kinf_error *err);

/* --- reading --- */

/* The store, for reading and for adding indices; the informer's own, valid until it is freed.
 * Writing to it is the informer's alone. Mirrors: SharedIndexInformer.GetIndexer. */
KINF_API struct kinf_indexer *kinf_informer_indexer(struct kinf_informer *informer);
KINF_API const struct kinf_type *kinf_informer_type(const struct kinf_informer *informer);
/* A lister on the store. `name_space` NULL: all; borrowed. */
KINF_API struct kinf_lister kinf_informer_lister(struct kinf_informer *informer,
                                                 const char *name_space);

/* The resourceVersion of what the store has; "" before the first list. In order, exactly: what a
 * list of the server at that version would give. By key, a lower bound of what the store has seen:
 * not to be used as a list's version. Errors: KINF_ERR_LIMIT (buffer). Mirrors:
 * Controller.LastSyncResourceVersion. */
KINF_API KINF_MUST_CHECK int kinf_informer_resource_version(struct kinf_informer *informer,
                                                            char *buf, size_t size);

/* Waits until the store has seen `resource_version`, or a later one: then a write that the server
 * answered with this version can be read here. That is promised only of writes to objects that this
 * informer's namespace and selectors deliver; of others nothing may come but a bookmark, minutes
 * later, so give a time. The handlers may not have been told yet. Errors: KINF_ERR_TIMEOUT,
 * KINF_ERR_STOPPED (the informer stopped, or kinf_client_interrupt()), KINF_ERR_INVALID (no version with an order: see kinf_rv_compare()),
 * KINF_ERR_EXPIRED (while it waited the server went back to an older version, as after a restore of
 * etcd: this one may never come, or stand for something else). */
KINF_API KINF_MUST_CHECK int kinf_informer_wait_for_rv(struct kinf_informer *informer,
                                                       const char *resource_version,
                                                       int64_t timeout_ms, struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
