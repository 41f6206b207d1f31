/*
 * The reflector's insides, for its files. Each calls only those below it: reflector.c (the thread);
 * reflector_saved.c, reflector_list.c, reflector_watch.c and reflector_ask.c, which perform; reflector_collect.c;
 * reflector_report.c.
 *
 * Threads: as said at each member.
 */
#ifndef KINF_REFLECTOR_REFLECTOR_PRIV_H
#define KINF_REFLECTOR_REFLECTOR_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/thread.h"
#include "reflector/initial_events.h"
#include "reflector/list_stream.h"
#include "reflector/newest.h"
#include "reflector/pace.h"
#include "reflector/policy.h"
#include "reflector/quarantine.h"
#include "reflector/reflector.h"
#include "reflector/watch_stream.h"
#include "rest/http.h"

/* What metadata_only asks for. Without plain JSON behind it: a server that cannot do it shall say
 * so (406) and not send everything. */
#define KINF__KIND_METADATA "PartialObjectMetadata"
#define KINF__ACCEPT_METADATA(suffix)                                                              \
    "application/json;as=" KINF__KIND_METADATA suffix ";g=meta.k8s.io;v=v1"

/* The objects of the pages so far, with a reference each. */
struct kinf__listed {
    const struct kinf_object **items;
    size_t n_items;
    size_t size;
};

struct kinf__reflector {
    /* constant after new */
    struct kinf__reflector_options options;
    struct kinf__list_stream_callbacks list_callbacks;
    struct kinf__watch_stream_callbacks watch_callbacks;
    struct kinf__waker interrupted;
    kinf__saved_load_fn *load; /* NULL: there is nothing of an earlier run */
    void *load_ctx;

    /* owned by the thread that starts and frees */
    pthread_t thread;
    bool has_thread;

    /* owned by the reflector's thread */
    struct kinf__http *http;
    struct kinf__policy policy;
    struct kinf__object_decoder decoder;
    struct kinf__list_stream list_stream;
    struct kinf__watch_stream watch_stream;
    struct kinf__quarantine quarantine;
    struct kinf__newest newest;
    char server_rv[KINF__RV_SIZE]; /* the server's own when it began to verify; "": not known */
    int64_t n_known; /* objects at the last version, if all are asked for; negative: not known */
    uint64_t random;
    bool is_shard_ignored; /* by the server */
    bool stands_still;     /* as told to the owner */
    bool is_unconfirmed;   /* as told to the owner: the state is of an earlier run */
    bool is_silent;        /* the last watch was, and that was logged */
    bool is_behind;        /* a watch left an object out; what is stored of it stays until a list */
    bool has_phase;
    enum kinf__reflector_phase phase;
    /* - of the list or watch list under way */
    struct kinf__listed listed;
    struct kinf__initial_events initial;
    struct kinf__touched touched;    /* for their objects */
    struct kinf_snapshot *known;     /* the store when it began; NULL: none */
    const struct kinf_object *found; /* what the last lookup found, not a reference */
    int64_t list_begun_ms;           /* 0: none is under way */
    uint64_t n_list_bytes;
    size_t n_list_items;       /* of all pages, with those that are left out */
    uint64_t n_outside_before; /* n_outside_shard when it began */
    /* - of the request under way */
    bool is_streaming; /* a watch list before its bookmark */
    bool has_begun;    /* part of the body, or a watch's head, is here */
    bool is_json;      /* so its Content-Type says */
    size_t n_brought;  /* events and bookmarks of the watch */
    int64_t begun_ms;  /* the watch */
    bool is_late;      /* it was ended since it did not get anywhere */
    struct kinf__pace pace;
    bool must_relist; /* an object failed for the first time; of the whole list */
    bool is_corked;   /* the queue */
    struct kinf_error relist_why;
    bool has_error_event;
    struct kinf_error error_event;

    /* atomic */
    _Atomic(uint64_t) n_lists;
    _Atomic(uint64_t) n_watches;
    _Atomic(uint64_t) n_events;
    _Atomic(uint64_t) n_bookmarks;
    _Atomic(uint64_t) n_errors;
    _Atomic(uint64_t) n_silent;
    _Atomic(uint64_t) n_extra_lists;
    _Atomic(uint64_t) n_quarantined;
    _Atomic(uint64_t) n_outside_shard;
    _Atomic(uint64_t) received_bytes;
    _Atomic(int64_t) last_list_ms; /* 0: none */
    /* - what is told of the list under way; list_since_ms is written last, 0: nothing */
    _Atomic(int64_t) list_since_ms;
    _Atomic(uint64_t) n_list_objects;
    _Atomic(uint64_t) n_list_expected;
    _Atomic(uint64_t) list_bytes;
};

static inline void kinf__reflector_count(_Atomic(uint64_t) *count, uint64_t more)
{
    atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

/* --- reflector_list.c, reflector_watch.c, reflector_verify.c, reflector_ask.c --- */

/* Perform what the policy asks for and tell it what came of it. A watch list is a watch that has
 * something before it. */
void kinf__reflector_list(struct kinf__reflector *reflector,
                          const struct kinf__policy_action *action);
void kinf__reflector_watch(struct kinf__reflector *reflector,
                           const struct kinf__policy_action *action);
/* Asks whether what is known is still true. */
void kinf__reflector_verify(struct kinf__reflector *reflector,
                            const struct kinf__policy_action *action);
/* Asks whether the server still has the resource; if not, empties the queue's owner. */
void kinf__reflector_ask(struct kinf__reflector *reflector,
                         const struct kinf__policy_action *action);

/* Performs a GET of one page; its items are collected. Errors: of the request, of the stream. */
KINF_MUST_CHECK int kinf__reflector_receive_page(struct kinf__reflector *reflector,
                                                 struct kinf__buffer *target,
                                                 const struct kinf__policy_action *action,
                                                 struct kinf_error *err);

/* What the streams call. */
int kinf__reflector_on_item(const struct kinf_object *take_object, void *ctx,
                            struct kinf_error *err);
int kinf__reflector_on_rejected_item(const char *key, const struct kinf_error *why, void *ctx,
                                     struct kinf_error *err);
int kinf__reflector_on_event(enum kinf__watch_event_type type, const struct kinf_object *object,
                             void *ctx, struct kinf_error *err);
int kinf__reflector_on_bookmark(const char *rv, bool ends_initial_events, void *ctx,
                                struct kinf_error *err);
int kinf__reflector_on_error(const struct kinf_error *event, void *ctx, struct kinf_error *err);
int kinf__reflector_on_rejected_event(const char *key, const struct kinf_error *why, void *ctx,
                                      struct kinf_error *err);

/* --- reflector_saved.c --- */

/* Loads what there is of an earlier run, hands it to the queue and tells the policy. */
void kinf__reflector_load(struct kinf__reflector *reflector);

/* --- reflector_collect.c --- */

/* A list or watch list. Beginning drops what was collected before; from then on objects whose bytes
 * are those of the stored copy are that copy, until drop. Finishing hands what was collected to the
 * queue and drops it. Errors: as kinf_deltafifo_replace(), nothing is queued. */
void kinf__reflector_begin_list(struct kinf__reflector *reflector);
KINF_MUST_CHECK int kinf__reflector_finish_list(struct kinf__reflector *reflector, const char *how,
                                                const char *rv, struct kinf_error *err);
/* Tells how far the list is, if one is under way: once for each piece of a body. */
void kinf__reflector_note_progress(struct kinf__reflector *reflector);
/* About how many items the list has in all; 0: not known. */
void kinf__reflector_expect_items(struct kinf__reflector *reflector, uint64_t n);
/* It stands still, or was given up: nothing is told of it until it goes on. */
void kinf__reflector_hide_progress(struct kinf__reflector *reflector);
/* Unless the reflector is interrupted: then it stays until release. */
void kinf__reflector_drop_list(struct kinf__reflector *reflector);
void kinf__reflector_release_list(struct kinf__reflector *reflector);

/* An item of a list, and an event of a watch list before its bookmark. Errors: KINF_ERR_NO_MEMORY.
 */
KINF_MUST_CHECK int kinf__reflector_collect_item(struct kinf__reflector *reflector,
                                                 const struct kinf_object *take_object,
                                                 struct kinf_error *err);
KINF_MUST_CHECK int kinf__reflector_collect_event(struct kinf__reflector *reflector,
                                                  const struct kinf_object *object, bool is_deleted,
                                                  struct kinf_error *err);
/* Forgets the items behind these. */
void kinf__reflector_keep_items(struct kinf__reflector *reflector, size_t n_kept);
/* Whether the items are not what is stored, by their versions. */
bool kinf__reflector_has_news(const struct kinf__reflector *reflector);

/* Whether the object is to be left out since it is outside of the shard; counted and reported. */
bool kinf__reflector_is_outside(struct kinf__reflector *reflector,
                                const struct kinf_object *object);
/* A key failed to decode. *ret_verdict as kinf__quarantine_fail(); on its first failure must_relist
 * and relist_why are set. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__reflector_reject(struct kinf__reflector *reflector, const char *key,
                                           const struct kinf_error *why,
                                           enum kinf__quarantine_verdict *ret_verdict,
                                           struct kinf_error *err);
/* A watch brought a key whole; releases it. */
void kinf__reflector_note_decoded(struct kinf__reflector *reflector, const char *key);

/* --- reflector_report.c --- */

/* Tells the policy. An event that leads to a wait also becomes the phase WAITING, with event->err.
 */
void kinf__reflector_tell(struct kinf__reflector *reflector,
                          const struct kinf__policy_event *event);
/* The same for a failure: counted and logged. */
void kinf__reflector_tell_failure(struct kinf__reflector *reflector,
                                  enum kinf__policy_event_type type, const struct kinf_error *err);
void kinf__reflector_set_phase(struct kinf__reflector *reflector, enum kinf__reflector_phase phase);
void kinf__reflector_note_contact(struct kinf__reflector *reflector, bool by_watch);

/* The namespace for a log line, "*" for all. */
const char *kinf__reflector_namespace(const struct kinf__reflector *reflector);
/* For jitter. */
uint64_t kinf__reflector_draw(struct kinf__reflector *reflector);

/* Appends path and selectors of a request to `target`: for all objects, or one. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__reflector_append_target(struct kinf__reflector *reflector,
                                                  const struct kinf_object *named,
                                                  struct kinf__buffer *target);
/* Appends one parameter, or nothing if the value is NULL or "". Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__reflector_append_query(struct kinf__buffer *target, const char *name,
                                                 const char *value);
/* Whether the answer is what was asked for, by its Content-Type, when the first piece of it is here: pages
 * of proxies come with 200, too. Errors: KINF_ERR_PROTOCOL, with their beginning. */
KINF_MUST_CHECK int kinf__reflector_check_type(struct kinf__reflector *reflector, const char *bytes,
                                               size_t len, struct kinf_error *err);

#endif
