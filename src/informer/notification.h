/*
 * What a handler is to be told: one callback.
 *
 * Mirrors: cache.addNotification, updateNotification, deleteNotification.
 * Threads: as its queue says.
 */
#ifndef KINF_INFORMER_NOTIFICATION_H
#define KINF_INFORMER_NOTIFICATION_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/object.h>

/* X(enumerator, name) */
#define KINF__NOTIFICATION_TYPES(X)                                                                \
    X(KINF__NOTIFY_ADD, "add")                                                                     \
    X(KINF__NOTIFY_UPDATE, "update")                                                               \
    X(KINF__NOTIFY_DELETE, "delete")                                                               \
    X(KINF__NOTIFY_SYNCED, "synced") /* the sentinel behind the initial list */

enum kinf__notification_type {
#define X(type, name) type,
    KINF__NOTIFICATION_TYPES(X)
#undef X
};

/* Packed, since a slow handler may have very many. */
struct kinf__notification {
    const struct kinf_object *old; /* update, delete: what the store had; else NULL */
    const struct kinf_object *object;
    uint32_t since_ms; /* set when it is queued: the lower half of a monotonic time */
    enum kinf__notification_type type : 8;
    bool in_initial_list;     /* add */
    bool final_state_unknown; /* delete */
};

/* What a handler that lags behind pays for each, beside the objects. */
_Static_assert(sizeof(struct kinf__notification) <= 24, "a notification is small");

/* Drops its references. */
static inline void kinf__notification_release(struct kinf__notification *notification)
{
    kinf_object_unref(notification->old);
    kinf_object_unref(notification->object);
}

#endif
