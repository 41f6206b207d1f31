/*
 * The informer's insides, shared by informer.c (what it consists of, and calls), life.c (starting,
 * stopping and freeing), status.c (what is known of it, and waiting for it), pop_loop.c (processor thread),
 * and by factory.c and namespaces.c, which have several.
 *
 * Threads: as each member says.
 */
#ifndef KINF_INFORMER_INFORMER_H
#define KINF_INFORMER_INFORMER_H

#include <pthread.h>
#include <stdatomic.h>

#include <kinformer/deltafifo.h>
#include <kinformer/factory.h>
#include <kinformer/informer.h>
#include <kinformer/namespaces.h>

#include "base/lock.h"
#include "base/metrics.h"
#include "base/stop.h"
#include "indexer/snapshot.h"
#include "informer/handle_deltas.h"
#include "informer/handlers.h"
#include "informer/processor.h"
#include "informer/state.h"
#include "object/object.h"
#include "reflector/reflector.h"

enum kinf__informer_life {
    KINF__LIFE_NEW,
    KINF__LIFE_STARTING,
    KINF__LIFE_RUNNING,
    KINF__LIFE_STOPPING,
    KINF__LIFE_STOPPED,
};

/* What is in the store of an earlier run (saved.h). */
enum kinf__informer_saved {
    KINF__SAVED_NONE,      /* nothing, or nothing that was not found true */
    KINF__SAVED_LOADED,    /* nobody knows whether it is true */
    KINF__SAVED_CONFIRMED, /* once the queue is worked off up to a bookmark of the version that did */
};

struct kinf_informer {
    /* the client's, while it runs */
    struct kinf__list client_node;
    /* constant after creation */
    struct kinf_client *client; /* NULL: it is fed by somebody else */
    const struct kinf_type *type;
    bool is_lent; /* a factory, or several namespaces, start, stop and free it */
    enum kinf_fifo_order order;
    size_t max_queued_bytes;
    bool wait_out_refusals;
    char *name_space; /* NULL: all */
    char *label_selector;
    char *field_selector;
    struct kinf__shard_selector *shard; /* NULL: none */
    void (*on_watch_error)(const struct kinf_error *err, void *ctx);
    void *on_watch_error_ctx;
    struct kinf__prune_plan *plan;
    struct kinf__packer
        *packer; /* NULL: objects are held as they are; the reflector's once it runs */
    struct kinf_indexer *indexer;
    struct kinf_deltafifo *fifo;
    struct kinf__reflector *reflector; /* NULL: it is fed by somebody else */
    struct kinf__processor processor;  /* has a lock of its own */
    struct kinf__processor *processors[1];
    struct kinf__handlers handlers; /* has a lock of its own */
    struct kinf__sink sink;         /* constant after start */
    struct kinf__stop stop;         /* set when stop begins */

    /* owned by the queue's consumer: the processor thread, or the reflector's in its place */
    struct kinf__delta_target target;
    struct kinf__batch batch;
    struct kinf__log_limit apply_failures;
    int64_t next_chores_ms;
    int64_t sleeps_until_ms; /* the processor thread, if nothing wakes it */
    bool has_garbage;
    bool is_quiet;    /* nothing was popped since the last chores */
    bool is_resynced; /* some handler is, or that is not known yet */
    size_t n_unheard; /* deltas that were applied since the listeners were woken */

    /* owned by the reflector's thread */
    struct kinf__trouble trouble;
    bool is_in_doubt; /* a request failed, and no watch has brought anything since */

    /* owned by the thread that starts; constant then: see saved.h */
    bool has_saved;

    struct kinf__mutex life_lock;
    struct kinf__cond life_changed;
    /* guarded by life_lock */
    enum kinf__informer_life life;
    size_t n_controllers; /* that were started with it, and not stopped yet */
    bool is_theirs;       /* one of them has started it */
    /* Who moved the life to starting or stopping has these two. */
    pthread_t thread;
    bool has_thread;

    struct kinf__mutex progress_lock; /* never held with life_lock */
    struct kinf__cond progressed;     /* what the store has seen, or the end of that */
    /* guarded by progress_lock */
    char seen_rv[KINF__RESOURCE_VERSION_SIZE]; /* looked at only while somebody waits */
    uint64_t n_setbacks;                       /* how often it went back */
    bool has_ended;

    struct kinf__mutex status_lock;
    struct kinf__cond status_changed; /* synced, refused or stopping */
    /* guarded by status_lock */
    struct kinf__state state;
    bool is_stopping;

    /* atomic */
    _Atomic(size_t) n_rv_waiters;
    _Atomic(int64_t) last_contact_ms; /* 0: none */
    _Atomic(bool) has_synced;
    _Atomic(enum kinf__informer_saved) saved;
    struct kinf__histogram processing_latency; /* of an item, by the consumer */
};

/* kinf_informer_new() with the type already found. Without a client there is no reflector: then
 * whoever made it feeds `fifo` and calls kinf__informer_note_contact(), as tests do. */
KINF_MUST_CHECK int kinf__informer_new_for_type(struct kinf_client *client,
                                                const struct kinf_type *type,
                                                const struct kinf_informer_options *options,
                                                struct kinf_informer **ret_informer,
                                                struct kinf_error *err);

/* What went wrong lately. Any thread. */
void kinf__informer_last_errors(struct kinf_informer *informer,
                                struct kinf__last_errors *ret_errors);

/* What an owner does with the informers that it lends: kinf_informer_start() and so on refuse those. */
void kinf__informer_lend(struct kinf_informer *informer);
void kinf__informer_free(struct kinf_informer *informer);
/* Of one that has no threads, or not any more. */
void kinf__informer_release(struct kinf_informer *informer);
/* By a controller. Until it is let go as often as it was held, neither it nor its owner is freed. The last
 * that lets it go stops it, if one of them has started it. */
void kinf__informer_hold(struct kinf_informer *informer);
KINF_MUST_CHECK int kinf__informer_start_held(struct kinf_informer *informer,
                                              struct kinf_error *err);
void kinf__informer_let_go(struct kinf_informer *informer);
bool kinf__informer_is_held(struct kinf_informer *informer);
/* Logs that one that is held is to be freed. */
void kinf__informer_refuse_held(const struct kinf_informer *informer);
KINF_MUST_CHECK int kinf__informer_start(struct kinf_informer *informer, struct kinf_error *err);
int kinf__informer_stop(struct kinf_informer *informer, struct kinf_error *err);
/* Whether it is past its start, or in it. */
bool kinf__informer_was_started(struct kinf_informer *informer);
/* Tells its threads to end, and waits for none: each of several that are about to be stopped one
 * after another. */
void kinf__informer_interrupt(struct kinf_informer *informer);

/* The i-th of several; NULL: there are no more. */
typedef struct kinf_informer *kinf__informer_at(size_t i, void *ctx);
/* kinf_informer_wait_synced() of each; one that is refused ends it, whichever that is. */
KINF_MUST_CHECK int kinf__informer_wait_each_synced(kinf__informer_at *at, void *ctx,
                                                    int64_t timeout_ms, struct kinf_error *err);

/* Whether an options' handler is one; all NULL is none. */
static inline bool kinf__handler_has_callback(const struct kinf_handler *handler)
{
    return handler->on_add != NULL || handler->on_update != NULL || handler->on_delete != NULL ||
           handler->on_change != NULL || handler->on_synced != NULL || handler->on_done != NULL;
}

/* What its reflector calls. */
struct kinf__reflector_callbacks kinf__informer_reports(struct kinf_informer *informer);
/* What the reflector reports: an event, a bookmark or a list has come, and is in
 * the queue. */
void kinf__informer_note_contact(struct kinf_informer *informer);

/* A bookmark left the queue. On the consumer's thread. */
void kinf__informer_note_bookmark(struct kinf_informer *informer, const char *rv);
/* Turns synced, once the first list is in the store. Any thread. */
void kinf__informer_check_synced(struct kinf_informer *informer);

/* The store may have seen more: for those who wait for a version. Any thread. */
void kinf__informer_note_progress(struct kinf_informer *informer);
/* It will see no more. */
void kinf__informer_end_progress(struct kinf_informer *informer);

/* Whether it has seen `version`, and everything that it was told has been handled: queue and
 * handlers have nothing left. Any thread. */
bool kinf__informer_is_settled(struct kinf_informer *informer, const char *version);

/* Waits a while; false if the informer is stopping. */
bool kinf__informer_pause(struct kinf_informer *informer, int64_t delay_ms);

/* The processor thread's main; `ctx` is the informer. Ends once the fifo is aborted. */
void *kinf__pop_loop(void *ctx);
/* Processes what is queued, if the processor thread sleeps: a wake-up takes longer than an event. On the
 * reflector's thread, which has nothing to read. */
void kinf__pop_at_once(struct kinf_informer *informer);

/* --- what a caller asks of it: read once, before anything is made of it (options.c) --- */

/* Refuses what cannot be meant whatever the type is, then asks for the type. `ret_options` borrows
 * what `given` points to. Errors: KINF_ERR_INVALID, or as kinf_client_find_type(). */
KINF_MUST_CHECK int kinf__informer_options_read(struct kinf_client *client,
                                                const struct kinf_informer_options *given,
                                                struct kinf_informer_options *ret_options,
                                                const struct kinf_type **ret_type,
                                                struct kinf_error *err);

/* If it holds objects compressed: what is at `path` is read without inflating. Before the start.
 * Errors: KINF_ERR_PARSE, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__informer_keep_readable(struct kinf_informer *informer, const char *path,
                                                 struct kinf_error *err);

/* Refuses what cannot be meant of this type. Errors: KINF_ERR_INVALID, KINF_ERR_PARSE (a selector),
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__informer_options_check(const struct kinf_informer_options *options,
                                                 const struct kinf_type *type,
                                                 struct kinf_error *err);

/* Refuses paths that can name nothing of what `plan` leaves. With a transform, which may put there
 * what it likes, an index is not looked at. Errors: KINF_ERR_INVALID, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__informer_options_check_paths(const struct kinf_informer_options *options,
                                                       const struct kinf__prune_plan *plan,
                                                       struct kinf_error *err);

/* --- several as one, with a type that is known already: for tests --- */

/* kinf_namespaces_new() with the type already found. `client` may be NULL: see
 * kinf__informer_new_for_type(). */
KINF_MUST_CHECK int kinf__namespaces_new_for_type(struct kinf_client *client,
                                                  const struct kinf_type *type,
                                                  const struct kinf_informer_options *options,
                                                  const char *const *names, size_t n_names,
                                                  struct kinf_namespaces **ret_namespaces,
                                                  struct kinf_error *err);

/* kinf_factory_new() for tests: `client` may be NULL. */
KINF_MUST_CHECK int kinf__factory_new(struct kinf_client *client, struct kinf_factory **ret_factory,
                                      struct kinf_error *err);

/* By a controller. Until it is let go as often as it was held, it is not freed; the last that lets it go
 * shuts it down. */
void kinf__factory_hold(struct kinf_factory *factory);
void kinf__factory_let_go(struct kinf_factory *factory);

/* kinf_factory_informer() with the type already found. The factory's client may be NULL: see
 * kinf__informer_new_for_type(). */
KINF_MUST_CHECK int kinf__factory_informer_for_type(struct kinf_factory *factory,
                                                    const struct kinf_type *type,
                                                    const struct kinf_informer_options *options,
                                                    struct kinf_informer **ret_informer,
                                                    struct kinf_error *err);

#endif
