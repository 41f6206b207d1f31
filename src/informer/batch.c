/*
 * The arrays of a batch. Neighbours: handle_deltas.c fills and writes batches, processor.c tells what
 * is in them. Invariant: each key is in a batch once, so the order in which its notifications are
 * told does not matter but for those of one key.
 */
#include "informer/batch.h"

#include <stdlib.h>

/* Arrays above this are given back when the batch is emptied. */
#define N_ROOM_KEPT 4096

/* --- room --- */

static int reserve(struct kinf__room *room, size_t n_used, size_t n_wanted, size_t size)
{
    void *items;

    if (n_wanted <= room->n_allocated)
        return 0;
    items = reallocarray(n_used != 0 ? room->items : NULL, n_wanted, size);
    if (items == NULL)
        return KINF_ERR_NO_MEMORY;
    if (n_used == 0)
        free(room->items);
    *room = (struct kinf__room){ items, n_wanted };
    return 0;
}

static void release(struct kinf__room *room)
{
    free(room->items);
    *room = (struct kinf__room){ NULL, 0 };
}

static void shrink(struct kinf__room *room)
{
    if (room->n_allocated > N_ROOM_KEPT)
        release(room);
}

static int reserve_notifications(struct kinf__batch *batch, size_t n_notifications)
{
    return reserve(&batch->notifications, batch->n_notifications, n_notifications,
                   sizeof(struct kinf__notification));
}

static int reserve_held(struct kinf__batch *batch, size_t n_held)
{
    return reserve(&batch->held, batch->n_held, n_held, sizeof(const struct kinf_object *));
}

int kinf__batch_reserve_changes(struct kinf__batch *batch, size_t n_changes)
{
    int rc =
        reserve(&batch->changes, batch->n_changes, n_changes, sizeof(struct kinf_store_change));

    if (rc == 0)
        rc = reserve_notifications(batch, 2 * n_changes);
    if (rc == 0)
        rc = kinf__batch_reserve_resynced(batch, n_changes);
    return rc == 0 ? reserve_held(batch, 2 * n_changes) : rc;
}

static int reserve_list(struct kinf__batch *batch)
{
    size_t n_listed = batch->join.n_listed;
    int rc = reserve_notifications(batch, batch->join.n_pairs + n_listed);

    if (rc == 0)
        rc = kinf__batch_reserve_resynced(batch, n_listed);
    return rc == 0 ? reserve_held(batch, n_listed) : rc;
}

int kinf__batch_join(struct kinf__batch *batch, struct kinf_snapshot *take_snapshot,
                     const struct kinf_object *const *objects, size_t n_objects,
                     const struct kinf__stop *stop)
{
    int rc = kinf__join_init(&batch->join, take_snapshot, objects, n_objects, stop);

    if (rc == 0 && (rc = reserve_list(batch)) < 0)
        kinf__join_release(&batch->join);
    return rc;
}

int kinf__batch_reserve_resynced(struct kinf__batch *batch, size_t n_resynced)
{
    return reserve(&batch->resynced, batch->n_resynced, n_resynced,
                   sizeof(struct kinf__notification));
}

void kinf__batch_clear(struct kinf__batch *batch)
{
    const struct kinf_object **held = batch->held.items;
    struct kinf__batch empty = { .changes = batch->changes,
                                 .notifications = batch->notifications,
                                 .resynced = batch->resynced,
                                 .held = batch->held };

    for (size_t i = 0; i < batch->n_held; i++)
        kinf_object_unref(held[i]);
    kinf__join_release(&batch->join);
    kinf_snapshot_unref(batch->snapshot);
    shrink(&empty.changes);
    shrink(&empty.notifications);
    shrink(&empty.resynced);
    shrink(&empty.held);
    *batch = empty;
}

void kinf__batch_release(struct kinf__batch *batch)
{
    kinf__batch_clear(batch);
    release(&batch->changes);
    release(&batch->notifications);
    release(&batch->resynced);
    release(&batch->held);
}

/* --- what is written --- */

void kinf__batch_hold(struct kinf__batch *batch, const struct kinf_object *take_object)
{
    const struct kinf_object **held = batch->held.items;

    if (take_object != NULL)
        held[batch->n_held++] = take_object;
}

static void change(struct kinf__batch *batch, struct kinf_store_change one)
{
    struct kinf_store_change *changes = batch->changes.items;

    batch->write = KINF__WRITE_CHANGES;
    changes[batch->n_changes++] = one;
}

void kinf__batch_put(struct kinf__batch *batch, const struct kinf_object *object,
                     const char *resource_version)
{
    change(batch,
           (struct kinf_store_change){ .object = object, .resource_version = resource_version });
}

void kinf__batch_remove(struct kinf__batch *batch, const char *key, const char *resource_version)
{
    change(batch, (struct kinf_store_change){ .key = key, .resource_version = resource_version });
}

/* --- what is told --- */

static void tell(struct kinf__batch *batch, struct kinf__notification notification)
{
    struct kinf__notification *notifications = batch->notifications.items;

    notifications[batch->n_notifications++] = notification;
}

void kinf__batch_notify_add(struct kinf__batch *batch, const struct kinf_object *object,
                            bool in_initial_list)
{
    tell(batch, (struct kinf__notification){ .type = KINF__NOTIFY_ADD,
                                             .in_initial_list = in_initial_list,
                                             .object = object });
}

void kinf__batch_notify_update(struct kinf__batch *batch, const struct kinf_object *old,
                               const struct kinf_object *object)
{
    tell(batch,
         (struct kinf__notification){ .type = KINF__NOTIFY_UPDATE, .old = old, .object = object });
}

void kinf__batch_notify_delete(struct kinf__batch *batch, const struct kinf_object *old,
                               const struct kinf_object *object, bool final_state_unknown)
{
    tell(batch, (struct kinf__notification){ .type = KINF__NOTIFY_DELETE,
                                             .final_state_unknown = final_state_unknown,
                                             .old = old,
                                             .object = object });
}

void kinf__batch_notify_unchanged(struct kinf__batch *batch, const struct kinf_object *object)
{
    struct kinf__notification *resynced = batch->resynced.items;

    resynced[batch->n_resynced++] =
        (struct kinf__notification){ .type = KINF__NOTIFY_UPDATE, .old = object, .object = object };
}
