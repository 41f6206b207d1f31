/*
 * The reflector's insides, for the files that perform its requests.
 *
 * Threads: as said at each member.
 */
#ifndef KINF_REFLECTOR_REFLECTOR_PRIV_H
#define KINF_REFLECTOR_REFLECTOR_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "reflector/initial_events.h"
#include "reflector/list_stream.h"
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
    uint64_t random;
    bool is_shard_ignored; /* by the server */
    bool stands_still;     /* as told to the owner */
    bool is_silent;        /* the last watch was, and that was logged */
    bool has_phase;
    enum kinf__reflector_phase phase;
    /* - of the list or watch list under way */
    struct kinf__listed listed;
    struct kinf__initial_events initial;
    struct kinf_snapshot *known;     /* the store when it began; NULL: none */
    const struct kinf_object *found; /* what the last lookup found, not a reference */
    int64_t list_begun_ms;
    uint64_t n_list_bytes;
    uint64_t n_outside_before; /* n_outside_shard when it began */
    /* - of the request under way */
    bool is_streaming; /* a watch list before its bookmark */
    bool has_begun;    /* part of the body, or a watch's head, is here */
    bool must_relist;  /* an object failed for the first time; of the whole list */
    bool is_corked;    /* the queue */
    struct kinf_error relist_why;
    bool has_error_event;
    struct kinf_error error_event;

    /* atomic */
    _Atomic(uint64_t) n_lists;
    _Atomic(uint64_t) n_watch_lists;
    _Atomic(uint64_t) n_watches;
    _Atomic(uint64_t) n_events;
    _Atomic(uint64_t) n_bookmarks;
    _Atomic(uint64_t) n_unchanged;
    _Atomic(uint64_t) n_errors;
    _Atomic(uint64_t) n_silent;
    _Atomic(uint64_t) n_extra_lists;
    _Atomic(uint64_t) n_quarantined;
    _Atomic(uint64_t) n_outside_shard;
    _Atomic(uint64_t) received_bytes;
    _Atomic(int64_t) last_list_ms; /* 0: none */
};

static inline void kinf__reflector_count(_Atomic(uint64_t) *count, uint64_t more)
{
    atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

/* Perform what the policy asks for and tell it what came of it. A watch list is a watch that has
 * something before it. */
void kinf__reflector_list(struct kinf__reflector *reflector,
                          const struct kinf__policy_action *action);
void kinf__reflector_watch(struct kinf__reflector *reflector,
                           const struct kinf__policy_action *action);

/* Asks whether the server still has the resource; if not, empties the queue's owner. */
void kinf__reflector_ask(struct kinf__reflector *reflector);

/* What a list and a watch list have in common. Beginning drops what was collected before; from then
 * on objects whose bytes are those of the stored copy are that copy, until drop. Finishing hands
 * `listed` to the queue and drops it. Errors: as kinf_deltafifo_replace(), nothing changed. */
void kinf__reflector_begin_list(struct kinf__reflector *reflector);
KINF_MUST_CHECK int kinf__reflector_finish_list(struct kinf__reflector *reflector, const char *how,
                                                const char *rv, struct kinf_error *err);
void kinf__reflector_drop_list(struct kinf__reflector *reflector);

/* A watch list, while is_streaming: its beginning, its initial events, its bookmark (is_streaming
 * ends), and its end without one. Errors of the callbacks end the stream. */
void kinf__reflector_begin_stream(struct kinf__reflector *reflector);
KINF_MUST_CHECK int kinf__reflector_on_initial_event(struct kinf__reflector *reflector,
                                                     const struct kinf_object *object,
                                                     bool is_deleted, struct kinf_error *err);
KINF_MUST_CHECK int kinf__reflector_on_initial_end(struct kinf__reflector *reflector,
                                                   const char *rv, struct kinf_error *err);
void kinf__reflector_give_up_stream(struct kinf__reflector *reflector);

/* Tells the policy. An event that leads to a wait also becomes the phase WAITING, with event->err.
 */
void kinf__reflector_tell(struct kinf__reflector *reflector,
                          const struct kinf__policy_event *event);
/* The same for a failure: counted and logged. */
void kinf__reflector_tell_failure(struct kinf__reflector *reflector,
                                  enum kinf__policy_event_type type, const struct kinf_error *err);

void kinf__reflector_set_phase(struct kinf__reflector *reflector, enum kinf__reflector_phase phase);
void kinf__reflector_note_proof(struct kinf__reflector *reflector);

/* The namespace for a log line, "*" for all. */
const char *kinf__reflector_namespace(const struct kinf__reflector *reflector);

/* Appends path and selectors of a request to `target`. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__reflector_append_target(struct kinf__reflector *reflector,
                                                  struct kinf__buffer *target);
/* Appends one parameter, or nothing if the value is NULL or "". Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__reflector_append_query(struct kinf__buffer *target, const char *name,
                                                 const char *value);

/* Whether the object is to be left out since it is outside of the shard; counted and reported. */
bool kinf__reflector_is_outside(struct kinf__reflector *reflector,
                                const struct kinf_object *object);
/* A list is complete: the server may have learned of shards. */
void kinf__reflector_judge_shard(struct kinf__reflector *reflector);

/* A key failed to decode. *ret_verdict as kinf__quarantine_fail(); on its first failure must_relist
 * and relist_why are set. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__reflector_reject(struct kinf__reflector *reflector, const char *key,
                                           const struct kinf_error *why,
                                           enum kinf__quarantine_verdict *ret_verdict,
                                           struct kinf_error *err);
/* A key was decoded; releases it. */
void kinf__reflector_note_decoded(struct kinf__reflector *reflector, const char *key);
/* Makes n_quarantined what it is. */
void kinf__reflector_publish_quarantine(struct kinf__reflector *reflector);

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

#endif
