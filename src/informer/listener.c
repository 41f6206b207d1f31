/*
 * One handler's queue and thread. Neighbours: the processor pushes, under its lock; this thread
 * pops. The queue is a chain of chunks, and the thread takes the whole chain under one acquisition
 * of the lock, so both sides meet once a batch.
 *
 * Invariant: pushing cannot fail, since what it needs was reserved before the store changed: a
 * handler that missed a notification could never be told the truth again.
 */
#include "informer/listener.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/thread.h"

#define CHUNK_LEN 128

struct kinf__notification_chunk {
    struct kinf__notification_chunk *next;
    size_t n_items;
    size_t capacity;
    struct kinf__notification items[];
};

static _Thread_local const void *callback_owner;

const void *kinf__callback_owner(void)
{
    return callback_owner;
}

void kinf__callback_set_owner(const void *owner)
{
    callback_owner = owner;
}

/* --- chunks --- */

static struct kinf__notification_chunk *chunk_new(size_t capacity)
{
    struct kinf__notification_chunk *chunk = NULL;

    if (capacity <= (SIZE_MAX - sizeof *chunk) / sizeof chunk->items[0])
        chunk = malloc(sizeof *chunk + capacity * sizeof chunk->items[0]);
    if (chunk != NULL) {
        chunk->next = NULL;
        chunk->n_items = 0;
        chunk->capacity = capacity;
    }
    return chunk;
}

static void notification_release(struct kinf__notification *notification)
{
    kinf_object_unref(notification->old);
    kinf_object_unref(notification->object);
}

static void chunks_free(struct kinf__notification_chunk *chunk)
{
    while (chunk != NULL) {
        struct kinf__notification_chunk *next = chunk->next;

        for (size_t i = 0; i < chunk->n_items; i++)
            notification_release(&chunk->items[i]);
        free(chunk);
        chunk = next;
    }
}

/* --- the thread --- */

static bool is_removed(const struct kinf__listener *listener)
{
    return atomic_load_explicit(&listener->is_removed, memory_order_acquire);
}

static void tell_add(const struct kinf_handler *handler, const struct kinf_object *object,
                     bool in_initial_list)
{
    if (handler->on_add != NULL)
        handler->on_add(object, in_initial_list, handler->ctx);
    else if (handler->on_change != NULL)
        handler->on_change(NULL, object, handler->ctx);
}

static void tell_update(const struct kinf_handler *handler, const struct kinf_object *old,
                        const struct kinf_object *object)
{
    if (handler->on_update != NULL)
        handler->on_update(old, object, handler->ctx);
    else if (handler->on_change != NULL)
        handler->on_change(old, object, handler->ctx);
}

static void tell_delete(const struct kinf_handler *handler, const struct kinf_object *object,
                        bool final_state_unknown)
{
    if (handler->on_delete != NULL)
        handler->on_delete(object, final_state_unknown, handler->ctx);
    else if (handler->on_change != NULL)
        handler->on_change(object, NULL, handler->ctx);
}

static void tell_synced(struct kinf__listener *listener)
{
    if (listener->handler.on_synced != NULL)
        listener->handler.on_synced(listener->handler.ctx);
    atomic_store_explicit(&listener->has_synced, true, memory_order_release);
}

static void tell_done(struct kinf__listener *listener)
{
    if (listener->handler.on_done != NULL)
        listener->handler.on_done(listener->handler.ctx);
    atomic_store_explicit(&listener->is_done, true, memory_order_release);
}

static void tell(struct kinf__listener *listener, const struct kinf__notification *notification)
{
    switch (notification->type) {
    case KINF__NOTIFY_ADD:
        tell_add(&listener->handler, notification->object, notification->in_initial_list);
        break;
    case KINF__NOTIFY_UPDATE:
        tell_update(&listener->handler, notification->old, notification->object);
        break;
    case KINF__NOTIFY_DELETE:
        tell_delete(&listener->handler, notification->object, notification->final_state_unknown);
        break;
    case KINF__NOTIFY_SYNCED:
        tell_synced(listener);
        break;
    }
}

static void tell_initial(struct kinf__listener *listener)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    if (listener->initial == NULL)
        return;
    kinf_cursor_all(&cursor, listener->initial);
    while (!is_removed(listener) && (object = kinf_cursor_next(&cursor)) != NULL)
        tell_add(&listener->handler, object, true);
    kinf_snapshot_unref(KINF__TAKE(listener->initial));
}

/* Objects are given up one by one, so that a long batch does not hold what was told. */
static void tell_chunk(struct kinf__listener *listener, struct kinf__notification_chunk *chunk)
{
    for (size_t i = 0; i < chunk->n_items; i++) {
        if (!is_removed(listener))
            tell(listener, &chunk->items[i]);
        notification_release(&chunk->items[i]);
    }
}

/* The whole queue; NULL once the listener is removed and nothing is left to drop. */
static struct kinf__notification_chunk *take_all(struct kinf__listener *listener)
{
    struct kinf__notification_chunk *taken;

    kinf__mutex_lock(&listener->lock);
    listener->is_waiting = true;
    while (listener->first == NULL && !is_removed(listener))
        kinf__cond_wait_until(&listener->not_empty, &listener->lock, KINF_FOREVER);
    listener->is_waiting = false;
    taken = listener->first;
    listener->first = NULL;
    listener->last = NULL;
    kinf__mutex_unlock(&listener->lock);
    return taken;
}

static void *run(void *ctx)
{
    struct kinf__listener *listener = ctx;
    struct kinf__notification_chunk *chunk;

    kinf__callback_set_owner(listener->owner);
    tell_initial(listener);
    while ((chunk = take_all(listener)) != NULL) {
        while (chunk != NULL) {
            struct kinf__notification_chunk *next = chunk->next;

            tell_chunk(listener, chunk);
            free(chunk);
            chunk = next;
        }
    }
    tell_done(listener);
    return NULL;
}

/* --- life --- */

int kinf__listener_new(const struct kinf_handler *handler, kinf_handler_id id, const void *owner,
                       struct kinf_snapshot *take_initial, struct kinf__listener **ret_listener,
                       struct kinf_error *err)
{
    struct kinf__listener *listener = calloc(1, sizeof *listener);

    if (listener == NULL) {
        kinf_snapshot_unref(take_initial);
        return kinf__error_no_memory(err);
    }
    listener->handler = *handler;
    listener->id = id;
    listener->owner = owner;
    listener->initial = take_initial;
    listener->next_resync_ms = KINF_FOREVER;
    kinf__list_init(&listener->in_owner);
    kinf__mutex_init(&listener->lock, KINF__RANK_LISTENER);
    kinf__cond_init(&listener->not_empty);
    listener->sentinel = chunk_new(1);
    if (listener->sentinel == NULL || kinf__listener_reserve(listener, 1, 1) < 0) {
        kinf__listener_free(listener);
        return kinf__error_no_memory(err);
    }
    *ret_listener = listener;
    return 0;
}

int kinf__listener_start(struct kinf__listener *listener, struct kinf_error *err)
{
    int rc = kinf__thread_start(&listener->thread, "kinf-listener", run, listener, err);

    listener->has_thread = rc == 0;
    return rc;
}

/* --- the queue --- */

static void drop_spares(struct kinf__listener *listener)
{
    chunks_free(KINF__TAKE(listener->spares));
    listener->n_spares = 0;
}

static struct kinf__notification_chunk *take_spare(struct kinf__listener *listener)
{
    struct kinf__notification_chunk *spare = listener->spares;

    assert(spare != NULL);
    listener->spares = KINF__TAKE(spare->next);
    listener->n_spares--;
    return spare;
}

/* The thread may take the last chunk, and what room it has, between two pushes. So each push needs
 * a spare chunk with room for all of it. */
int kinf__listener_reserve(struct kinf__listener *listener, size_t n_pushes, size_t n_most)
{
    size_t capacity = n_most > CHUNK_LEN ? n_most : CHUNK_LEN;

    if (listener->spares != NULL && listener->spares->capacity < capacity)
        drop_spares(listener);
    if (listener->spares != NULL)
        capacity = listener->spares->capacity;
    while (listener->n_spares < n_pushes) {
        struct kinf__notification_chunk *spare = chunk_new(capacity);

        if (spare == NULL)
            return KINF_ERR_NO_MEMORY;
        spare->next = listener->spares;
        listener->spares = spare;
        listener->n_spares++;
    }
    return 0;
}

static void append_chunk_locked(struct kinf__listener *listener,
                                struct kinf__notification_chunk *chunk)
    KINF__REQUIRES(listener->lock)
{
    if (listener->last != NULL)
        listener->last->next = chunk;
    else
        listener->first = chunk;
    listener->last = chunk;
}

static void append_locked(struct kinf__listener *listener,
                          const struct kinf__notification *notification)
    KINF__REQUIRES(listener->lock)
{
    struct kinf__notification_chunk *chunk = listener->last;
    struct kinf__notification *item;

    if (chunk == NULL || chunk->n_items == chunk->capacity) {
        chunk = take_spare(listener);
        append_chunk_locked(listener, chunk);
    }
    item = &chunk->items[chunk->n_items++];
    *item = *notification;
    kinf_object_ref(item->old);
    kinf_object_ref(item->object);
}

static void wake_locked(struct kinf__listener *listener) KINF__REQUIRES(listener->lock)
{
    if (listener->is_waiting)
        kinf__cond_signal(&listener->not_empty);
}

/* All under one acquisition: in between the thread could take the chunk that has the room. */
void kinf__listener_push(struct kinf__listener *listener,
                         const struct kinf__notification *notifications, size_t n_notifications)
{
    kinf__mutex_lock(&listener->lock);
    for (size_t i = 0; i < n_notifications; i++)
        append_locked(listener, &notifications[i]);
    kinf__mutex_unlock(&listener->lock);
}

/* Signals after the lock: the thread would only wait for that. */
void kinf__listener_wake(struct kinf__listener *listener)
{
    bool must_wake;

    kinf__mutex_lock(&listener->lock);
    must_wake = listener->first != NULL && listener->is_waiting;
    kinf__mutex_unlock(&listener->lock);
    if (must_wake)
        kinf__cond_signal(&listener->not_empty);
}

void kinf__listener_push_synced(struct kinf__listener *listener)
{
    struct kinf__notification_chunk *sentinel = KINF__TAKE(listener->sentinel);

    if (sentinel == NULL)
        return;
    sentinel->items[0] = (struct kinf__notification){ .type = KINF__NOTIFY_SYNCED };
    sentinel->n_items = 1;
    kinf__mutex_lock(&listener->lock);
    append_chunk_locked(listener, sentinel);
    wake_locked(listener);
    kinf__mutex_unlock(&listener->lock);
}

/* --- the end --- */

void kinf__listener_remove(struct kinf__listener *listener)
{
    kinf__mutex_lock(&listener->lock);
    atomic_store_explicit(&listener->is_removed, true, memory_order_release);
    wake_locked(listener);
    kinf__mutex_unlock(&listener->lock);
}

void kinf__listener_finish(struct kinf__listener *listener)
{
    const void *outer = callback_owner;

    if (listener->has_thread) {
        pthread_join(listener->thread, NULL);
        return;
    }
    kinf__callback_set_owner(listener->owner);
    tell_done(listener);
    kinf__callback_set_owner(outer);
}

void kinf__listener_free(struct kinf__listener *listener)
{
    if (listener == NULL)
        return;
    chunks_free(listener->first);
    drop_spares(listener);
    free(listener->sentinel);
    kinf_snapshot_unref(listener->initial);
    kinf__cond_release(&listener->not_empty);
    kinf__mutex_release(&listener->lock);
    free(listener);
}

/* --- check --- */

static bool notification_is_sound(const struct kinf__notification *notification)
{
    bool has_object = notification->type != KINF__NOTIFY_SYNCED;
    bool has_old = notification->type == KINF__NOTIFY_UPDATE;

    return (notification->object != NULL) == has_object && (notification->old != NULL) == has_old;
}

static bool chunk_is_sound(const struct kinf__notification_chunk *chunk)
{
    if (chunk->n_items == 0 || chunk->n_items > chunk->capacity)
        return false;
    for (size_t i = 0; i < chunk->n_items; i++) {
        if (!notification_is_sound(&chunk->items[i]))
            return false;
    }
    return true;
}

static bool spares_are_sound(const struct kinf__listener *listener)
{
    size_t n_spares = 0;

    for (const struct kinf__notification_chunk *spare = listener->spares; spare != NULL;
         spare = spare->next) {
        if (spare->n_items != 0 || spare->capacity != listener->spares->capacity)
            return false;
        n_spares++;
    }
    return n_spares == listener->n_spares;
}

bool kinf__listener_check(struct kinf__listener *listener)
{
    const struct kinf__notification_chunk *last = NULL;
    bool is_sound = spares_are_sound(listener);

    kinf__mutex_lock(&listener->lock);
    for (const struct kinf__notification_chunk *chunk = listener->first; chunk != NULL && is_sound;
         chunk = chunk->next) {
        is_sound = chunk_is_sound(chunk);
        last = chunk;
    }
    is_sound = is_sound && last == listener->last;
    kinf__mutex_unlock(&listener->lock);
    return is_sound;
}
