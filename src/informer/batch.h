/*
 * A batch: what is written to the store at once, and what is told about it.
 *
 * Room is reserved first; what is then put in cannot fail. An empty batch keeps its room for the
 * next one, unless that is large.
 *
 * Threads: the one that pops (informer.h).
 */
#ifndef KINF_INFORMER_BATCH_H
#define KINF_INFORMER_BATCH_H

#include "indexer/rebuild.h"
#include "informer/sink.h"

/* An array that only grows. All zero is empty. */
struct kinf__room {
    void *items;
    size_t n_allocated;
};

/* All zero is an empty batch. */
struct kinf__batch {
    bool is_prepared; /* complete; nothing of it has to be found out again */
    enum kinf__store_write write;
    size_t n_changes;       /* changes: struct kinf_store_change */
    size_t n_notifications; /* struct kinf__notification */
    size_t n_resynced;
    size_t n_held;                  /* const struct kinf_object *, with a reference */
    const char *resource_version;   /* all, resourceVersion: borrowed from the delta */
    struct kinf__join join;         /* all */
    struct kinf_snapshot *snapshot; /* holds what is told again; NULL: none */
    struct kinf__room changes, notifications, resynced, held;
};

/* Room for so many; at most 2 notifications are told of a change. Errors: KINF_ERR_NO_MEMORY; what
 * is in the batch stays. */
KINF_MUST_CHECK int kinf__batch_reserve_changes(struct kinf__batch *batch, size_t n_changes);
KINF_MUST_CHECK int kinf__batch_reserve_resynced(struct kinf__batch *batch, size_t n_resynced);
/* Joins a whole list with the store's snapshot in an empty batch, with room for what is told: at most
 * 2 notifications of an object. Errors as kinf__join_init(); the batch is empty then. */
KINF_MUST_CHECK int kinf__batch_join(struct kinf__batch *batch, struct kinf_snapshot *take_snapshot,
                                     const struct kinf_object *const *objects, size_t n_objects,
                                     const struct kinf__stop *stop);
/* Empties it. */
void kinf__batch_clear(struct kinf__batch *batch);
/* Empties it and gives its room back. */
void kinf__batch_release(struct kinf__batch *batch);

/* Keeps an object until the batch is cleared; its reference is consumed. NULL is allowed. */
void kinf__batch_hold(struct kinf__batch *batch, const struct kinf_object *take_object);
/* What is written; all borrowed. `resource_version` as in struct kinf_store_change. */
void kinf__batch_put(struct kinf__batch *batch, const struct kinf_object *object,
                     const char *resource_version);
void kinf__batch_remove(struct kinf__batch *batch, const char *key, const char *resource_version);

/* What is told; all borrowed. `old` is what the store had. */
void kinf__batch_notify_add(struct kinf__batch *batch, const struct kinf_object *object,
                            bool in_initial_list);
void kinf__batch_notify_update(struct kinf__batch *batch, const struct kinf_object *old,
                               const struct kinf_object *object);
void kinf__batch_notify_delete(struct kinf__batch *batch, const struct kinf_object *old,
                               const struct kinf_object *object, bool final_state_unknown);
/* Told to syncing handlers only. */
void kinf__batch_notify_unchanged(struct kinf__batch *batch, const struct kinf_object *object);

#endif
