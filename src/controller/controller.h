/*
 * The controller's insides. controller.c is its life, gate.c says when calls may begin, triggers.c
 * turns changes into keys, reconcile.c decides what a key needs and what becomes of it, finalizer.c
 * sets and removes the finalizer, call.c is what callbacks write with, apply.c decides what is
 * worth a write; own_writes.h and applied.h remember what they wrote.
 *
 * Threads: as each member says.
 */
#ifndef KINF_CONTROLLER_CONTROLLER_H
#define KINF_CONTROLLER_CONTROLLER_H

#include <pthread.h>
#include <stdatomic.h>

#include <kinformer/controller.h>
#include <kinformer/selector.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "controller/applied.h"
#include "controller/own_writes.h"
#include "json/scan.h"
#include "object/object.h"
#include "rest/http.h"

#define KINF__NO_TERM (-1)

/* What a controller watches. Constant once it is started, but for the handler. */
struct kinf__trigger {
    struct kinf__list node;
    struct kinf_controller *controller;
    struct kinf_informer *informer;
    kinf_map_cb *map;
    void *map_ctx;
    struct kinf_label_selector *labels; /* the informer's */
    struct kinf_field_selector *fields;
    kinf_handler_id handler; /* 0: none */
};

/* What is counted: the members of struct kinf_controller_status. */
enum kinf__controller_count {
    KINF__N_RECONCILES,
    KINF__N_CLEANUPS,
    KINF__N_CONFLICTS,
    KINF__N_PUT_OFF,
    KINF__N_INVALID,
    KINF__N_OTHER_ERRORS,
    KINF__N_STOPPED,
    KINF__N_MAP_ERRORS,
    KINF__N_WAITS,
    KINF__N_WAIT_TIMEOUTS,
    KINF__N_APPLIES_SPARED,
    KINF__N_REQUESTS,
    KINF__N_CONTROLLER_COUNTS,
};

enum kinf__controller_life {
    KINF__CONTROLLER_NEW,
    KINF__CONTROLLER_STARTING,
    KINF__CONTROLLER_RUNNING,
    KINF__CONTROLLER_STOPPING,
    KINF__CONTROLLER_STOPPED,
};

/* One thread that calls. */
struct kinf__worker {
    struct kinf_controller *controller;
    struct kinf__http *http; /* owned by the thread */
    pthread_t thread;
    bool has_thread;
};

struct kinf_controller {
    /* the client's, from start to stop */
    struct kinf__list client_node;

    /* constant after creation */
    struct kinf_client *client;
    struct kinf_controller_options options; /* its strings are the following */
    char *name, *finalizer, *owner_annotation;
    struct kinf_queue *queue;
    struct kinf__worker *workers;
    struct kinf__waker closed; /* set while no call may write: of every request of a call */

    /* constant after start; the first one is of the objects themselves */
    struct kinf__list triggers;

    struct kinf__mutex lock;
    struct kinf__cond changed; /* any of the following; a watched informer, if somebody waits */
    /* guarded by lock */
    enum kinf__controller_life life;
    bool is_synced;
    bool is_open;     /* calls may begin */
    int64_t term;     /* for which it was opened last */
    bool has_joined;  /* its elector */
    bool has_factory; /* holds it */
    pthread_t keeper;
    bool has_keeper;
    struct kinf__own_writes own_writes;
    struct kinf__applied applied;
    struct kinf__log_limit failures;

    /* atomic */
    _Atomic(size_t) n_waiters; /* for a change of an informer */
    _Atomic(uint64_t) counts[KINF__N_CONTROLLER_COUNTS];
};

struct kinf_call {
    struct kinf__worker *worker;
    struct kinf_controller *controller;
    const char *key;                  /* the queue's */
    const struct kinf_object *object; /* with a reference; NULL: there is none */
    int64_t term;
    int64_t requeue_after_ms; /* -1: not asked for */
    struct kinf__written *written;
};

#define KINF__TRIGGER_FOR_EACH(trigger, controller)                                                \
    for (struct kinf__trigger *trigger =                                                           \
             KINF__LIST_ENTRY((controller)->triggers.next, struct kinf__trigger, node);            \
         &trigger->node != &(controller)->triggers;                                                \
         trigger = KINF__LIST_ENTRY(trigger->node.next, struct kinf__trigger, node))

static inline struct kinf__trigger *kinf__primary(const struct kinf_controller *controller)
{
    return KINF__LIST_ENTRY(controller->triggers.next, struct kinf__trigger, node);
}

static inline void kinf__count(struct kinf_controller *controller, enum kinf__controller_count what)
{
    atomic_fetch_add_explicit(&controller->counts[what], 1, memory_order_relaxed);
}

/* --- gate.c --- */

/* Waits until calls may begin; false: never again. */
bool kinf__gate_await(struct kinf_controller *controller);
/* A worker has seen that this term is over, or that there is none; if another has begun, the keeper
 * opens again. */
void kinf__gate_close(struct kinf_controller *controller, int64_t term);
bool kinf__gate_is_stopping(struct kinf_controller *controller);
/* The keeper's thread. */
void *kinf__gate_keep(void *ctx);
/* When it has something to do, if nothing happens meanwhile, or while another leads its elector: 0:
 * now; KINF__NEVER_MS: never. For tests (kinformer/testing.h). */
int64_t kinf__controller_due_ms(struct kinf_controller *controller);

/* --- triggers.c --- */

/* Appends one. `map` NULL: of the objects themselves. Errors: as kinf_controller_watch(). */
KINF_MUST_CHECK int kinf__trigger_add(struct kinf_controller *controller,
                                      struct kinf_informer *informer, kinf_map_cb *map, void *ctx,
                                      struct kinf_error *err);
void kinf__trigger_free(struct kinf__trigger *trigger);
/* Until it is let go, its informer is not freed. */
KINF_MUST_CHECK int kinf__trigger_listen(struct kinf__trigger *trigger, struct kinf_error *err);
/* Behind the handler's end; stops the informer, if no other controller has it on. */
void kinf__trigger_let_go(struct kinf__trigger *trigger);
/* Whether its namespace can have the object of this key. */
bool kinf__trigger_has_place(const struct kinf__trigger *trigger, const struct kinf_type *type,
                             const char *key);
/* Queues the keys of all that is cached, with a low priority. */
void kinf__trigger_add_all(struct kinf__trigger *trigger);
/* Whether its selectors choose the object. */
bool kinf__trigger_selects(const struct kinf__trigger *trigger, const struct kinf_object *object);
/* Whether it has none that could leave one out. */
bool kinf__trigger_selects_all(const struct kinf__trigger *trigger);
/* The object as it is cached, with a reference; NULL: there is none. */
const struct kinf_object *kinf__trigger_get(const struct kinf__trigger *trigger, const char *key);

/* --- reconcile.c --- */

/* All that a key needs now, and what becomes of it; it is not given back to the queue. */
void kinf__reconcile(struct kinf__worker *worker, const char *key);
/* Whose reconcile or cleanup this thread runs; NULL: nobody's. */
const struct kinf_controller *kinf__controller_inside(void);

/* --- finalizer.c --- */

/* Where it is in metadata.finalizers; -1: it is not. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__finalizer_find(const struct kinf_object *object, const char *finalizer,
                                         int64_t *ret_i, bool *ret_has_list);
/* Errors: KINF_ERR_CONFLICT (the object is gone, or another by now), or of the request. */
KINF_MUST_CHECK int kinf__finalizer_add(struct kinf_call *call, struct kinf_error *err);
/* That it is gone already is success. */
KINF_MUST_CHECK int kinf__finalizer_remove(struct kinf_call *call, struct kinf_error *err);

/* --- call.c --- */

/* Begins a term for the call. Errors: KINF_ERR_STOPPED. */
KINF_MUST_CHECK int kinf__call_begin(struct kinf_call *call, struct kinf_error *err);
/* Whether it may still write; *ret_left_ms is how long. */
bool kinf__call_may_write(const struct kinf_call *call, int64_t *ret_left_ms);
/* A request, complete but for what the term allows. */
KINF_MUST_CHECK int kinf__call_send(struct kinf_call *call, struct kinf_request *request,
                                    struct kinf_response *ret_response, struct kinf_error *err);
/* The object of a key, as the server has it. Errors: of the request. */
KINF_MUST_CHECK int kinf__call_look(struct kinf_call *call, const struct kinf_type *type,
                                    const char *key, const struct kinf_object **ret_object,
                                    struct kinf_error *err);
/* Whether the server has nothing of this key, or an object with another uid: 0 or 1. Errors: as
 * kinf__call_look(); then nobody can say. */
KINF_MUST_CHECK int kinf__call_is_gone(struct kinf_call *call, const struct kinf_type *type,
                                       const char *key, const char *uid, struct kinf_error *err);
/* Then the next call of this one's key waits until the caches know. */
void kinf__call_note_gone(struct kinf_call *call, const struct kinf_type *type, const char *key,
                          const char *uid);
/* If the call fails in conflict: the server's object is not the one that the call has. */
void kinf__call_note_changed(struct kinf_call *call);
/* A write to the object of a key, which is remembered. */
KINF_MUST_CHECK int kinf__call_write(struct kinf_call *call, const char *key,
                                     struct kinf_request *request,
                                     struct kinf_response *ret_response, struct kinf_error *err);
/* The same by apply, to an object or to its status alone: of the other one, what was applied last
 * stays known unless the object is made by it. *ret_is_chosen as kinf__own_write_stored(). */
KINF_MUST_CHECK int kinf__call_apply(struct kinf_call *call, struct kinf__applied_to to,
                                     struct kinf_request *request, bool *ret_is_chosen,
                                     struct kinf_error *err);

/* The string of a member, decoded; false: there is none, or it has no room. */
bool kinf__member_text(struct kinf__json_value object, const char *member, char *buf, size_t size);

#endif
