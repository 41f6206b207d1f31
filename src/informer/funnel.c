/*
 * Several listeners' notifications on their way to one handler. Neighbours: namespaces.c makes
 * funnels, listener.c knows which callback a notification is.
 *
 * Invariant: each input puts its notifications in order and waits for room, so the order of each is
 * kept; between inputs there is none.
 */
#include "informer/funnel.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/thread.h"
#include "informer/callback.h"

static bool is_removed(const struct kinf__funnel *funnel)
{
    return atomic_load_explicit(&funnel->is_removed, memory_order_acquire);
}

/* --- the inputs --- */

/* On an input's thread. */
static void put(struct kinf__funnel *funnel, const struct kinf__notification *notification)
{
    kinf__mutex_lock(&funnel->lock);
    while (funnel->n_items == KINF__FUNNEL_LEN && !is_removed(funnel))
        kinf__cond_wait_until(&funnel->not_full, &funnel->lock, KINF_FOREVER);
    if (!is_removed(funnel)) {
        funnel->items[(funnel->first + funnel->n_items++) % KINF__FUNNEL_LEN] = *notification;
        kinf_object_ref(notification->old);
        kinf_object_ref(notification->object);
        kinf__cond_signal(&funnel->not_empty);
    }
    kinf__mutex_unlock(&funnel->lock);
}

static void put_add(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    const struct kinf__notification notification = { .type = KINF__NOTIFY_ADD,
                                                     .in_initial_list = in_initial_list,
                                                     .object = object };

    put(ctx, &notification);
}

static void put_update(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    const struct kinf__notification notification = { .type = KINF__NOTIFY_UPDATE,
                                                     .old = old,
                                                     .object = object };

    put(ctx, &notification);
}

static void put_delete(const struct kinf_object *object, bool final_state_unknown, void *ctx)
{
    const struct kinf__notification notification = { .type = KINF__NOTIFY_DELETE,
                                                     .final_state_unknown = final_state_unknown,
                                                     .object = object };

    put(ctx, &notification);
}

static void put_synced(void *ctx)
{
    const struct kinf__notification notification = { .type = KINF__NOTIFY_SYNCED };

    put(ctx, &notification);
}

/* --- the thread --- */

/* The last input's sentinel is the handler's. */
static void tell(struct kinf__funnel *funnel, const struct kinf__notification *notification)
{
    bool is_sentinel = notification->type == KINF__NOTIFY_SYNCED;

    if (is_sentinel && --funnel->n_unsynced != 0)
        return;
    kinf__handler_tell(&funnel->handler, notification);
    if (is_sentinel)
        atomic_store_explicit(&funnel->has_synced, true, memory_order_release);
}

static void tell_done(struct kinf__funnel *funnel)
{
    if (funnel->handler.on_done != NULL)
        funnel->handler.on_done(funnel->handler.ctx);
    atomic_store_explicit(&funnel->is_done, true, memory_order_release);
}

/* Takes everything, for fewer meetings at the lock. Returns 0 once the funnel is removed. */
static size_t take_all(struct kinf__funnel *funnel, struct kinf__notification *items)
{
    size_t n_items = 0;

    kinf__mutex_lock(&funnel->lock);
    while (funnel->n_items == 0 && !is_removed(funnel))
        kinf__cond_wait_until(&funnel->not_empty, &funnel->lock, KINF_FOREVER);
    for (; n_items < funnel->n_items; n_items++)
        items[n_items] = funnel->items[(funnel->first + n_items) % KINF__FUNNEL_LEN];
    funnel->first = 0;
    funnel->n_items = 0;
    kinf__cond_broadcast(&funnel->not_full);
    kinf__mutex_unlock(&funnel->lock);
    return n_items;
}

static void tell_all(struct kinf__funnel *funnel, struct kinf__notification *items, size_t n_items)
{
    for (size_t i = 0; i < n_items; i++) {
        if (!is_removed(funnel))
            tell(funnel, &items[i]);
        kinf__notification_release(&items[i]);
    }
}

static void *run(void *ctx)
{
    struct kinf__notification items[KINF__FUNNEL_LEN];
    struct kinf__funnel *funnel = ctx;
    size_t n_items;

    (void)kinf__callback_enter(funnel->owner, false);
    while ((n_items = take_all(funnel, items)) != 0)
        tell_all(funnel, items, n_items);
    tell_done(funnel);
    return NULL;
}

/* --- life --- */

int kinf__funnel_new(const struct kinf_handler *handler, size_t n_inputs, const void *owner,
                     struct kinf__funnel **ret_funnel, struct kinf_error *err)
{
    struct kinf__funnel *funnel = calloc(1, sizeof *funnel);

    if (funnel == NULL)
        return kinf__error_no_memory(err);
    funnel->handler = *handler;
    funnel->owner = owner;
    funnel->n_unsynced = n_inputs;
    kinf__mutex_init(&funnel->lock, KINF__RANK_LISTENER);
    kinf__cond_init(&funnel->not_empty);
    kinf__cond_init(&funnel->not_full);
    *ret_funnel = funnel;
    return 0;
}

struct kinf_handler kinf__funnel_input(struct kinf__funnel *funnel)
{
    struct kinf_handler input = funnel->handler;

    input.on_add = put_add;
    input.on_update = put_update;
    input.on_delete = put_delete;
    input.on_change = NULL;
    input.on_synced = put_synced;
    input.on_done = NULL;
    input.ctx = funnel;
    return input;
}

int kinf__funnel_start(struct kinf__funnel *funnel, struct kinf_error *err)
{
    int rc = kinf__thread_start(&funnel->thread, "kinf-funnel", run, funnel, err);

    funnel->has_thread = rc == 0;
    return rc;
}

void kinf__funnel_remove(struct kinf__funnel *funnel)
{
    kinf__mutex_lock(&funnel->lock);
    atomic_store_explicit(&funnel->is_removed, true, memory_order_release);
    kinf__cond_broadcast(&funnel->not_full);
    kinf__cond_broadcast(&funnel->not_empty);
    kinf__mutex_unlock(&funnel->lock);
}

void kinf__funnel_finish(struct kinf__funnel *funnel)
{
    struct kinf__callback_mark before;

    if (funnel->has_thread) {
        pthread_join(funnel->thread, NULL);
        return;
    }
    before = kinf__callback_enter(funnel->owner, false);
    tell_done(funnel);
    kinf__callback_leave(before);
}

void kinf__funnel_free(struct kinf__funnel *funnel)
{
    if (funnel == NULL)
        return;
    for (size_t i = 0; i < funnel->n_items; i++)
        kinf__notification_release(&funnel->items[(funnel->first + i) % KINF__FUNNEL_LEN]);
    kinf__cond_release(&funnel->not_full);
    kinf__cond_release(&funnel->not_empty);
    kinf__mutex_release(&funnel->lock);
    free(funnel);
}
