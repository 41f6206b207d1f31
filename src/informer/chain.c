/*
 * The unbounded queue. Neighbours: listener.c, one of its two queues.
 *
 * Invariant: pushing cannot fail, since what it needs was reserved.
 */
#include "informer/chain.h"

#include <assert.h>
#include <stdlib.h>

#include "base/compiler.h"

#define CHUNK_LEN 128

static struct kinf__chunk *chunk_new(size_t capacity)
{
    struct kinf__chunk *chunk = NULL;

    if (capacity <= (SIZE_MAX - sizeof *chunk) / sizeof chunk->items[0])
        chunk = malloc(sizeof *chunk + capacity * sizeof chunk->items[0]);
    if (chunk != NULL) {
        chunk->next = NULL;
        chunk->n_items = 0;
        chunk->n_released = 0;
        chunk->capacity = capacity;
    }
    return chunk;
}

void kinf__notification_release(struct kinf__notification *notification)
{
    kinf_object_unref(notification->old);
    kinf_object_unref(notification->object);
}

void kinf__chunks_free(struct kinf__chunk *chunk)
{
    while (chunk != NULL) {
        struct kinf__chunk *next = chunk->next;

        for (size_t i = chunk->n_released; i < chunk->n_items; i++)
            kinf__notification_release(&chunk->items[i]);
        free(chunk);
        chunk = next;
    }
}

static void drop_spares(struct kinf__chain *chain)
{
    kinf__chunks_free(KINF__TAKE(chain->spares));
    chain->n_spares = 0;
}

/* --- life --- */

int kinf__chain_init(struct kinf__chain *chain)
{
    *chain = (struct kinf__chain){ .sentinel = chunk_new(1) };
    return chain->sentinel != NULL ? kinf__chain_reserve(chain, 1, 1) : KINF_ERR_NO_MEMORY;
}

void kinf__chain_release(struct kinf__chain *chain)
{
    kinf__chunks_free(chain->first);
    drop_spares(chain);
    free(chain->sentinel);
}

/* --- pushing --- */

static struct kinf__chunk *take_spare(struct kinf__chain *chain)
{
    struct kinf__chunk *spare = chain->spares;

    assert(spare != NULL);
    chain->spares = KINF__TAKE(spare->next);
    chain->n_spares--;
    return spare;
}

/* The last chunk, and what room it has, may be taken out between two pushes. So each push needs a
 * spare chunk with room for all of it. */
int kinf__chain_reserve(struct kinf__chain *chain, size_t n_pushes, size_t n_most)
{
    size_t capacity = n_most > CHUNK_LEN ? n_most : CHUNK_LEN;

    if (chain->spares != NULL && chain->spares->capacity < capacity)
        drop_spares(chain);
    if (chain->spares != NULL)
        capacity = chain->spares->capacity;
    while (chain->n_spares < n_pushes) {
        struct kinf__chunk *spare = chunk_new(capacity);

        if (spare == NULL)
            return KINF_ERR_NO_MEMORY;
        spare->next = chain->spares;
        chain->spares = spare;
        chain->n_spares++;
    }
    return 0;
}

void kinf__chain_trim(struct kinf__chain *chain)
{
    if (chain->spares != NULL && chain->spares->capacity > CHUNK_LEN)
        drop_spares(chain);
    while (chain->n_spares > 1)
        kinf__chunks_free(take_spare(chain));
}

static void append_chunk(struct kinf__chain *chain, struct kinf__chunk *chunk)
{
    if (chain->last != NULL)
        chain->last->next = chunk;
    else
        chain->first = chunk;
    chain->last = chunk;
}

static void append(struct kinf__chain *chain, const struct kinf__notification *notification,
                   int64_t now_ms)
{
    struct kinf__chunk *chunk = chain->last;
    struct kinf__notification *item;

    if (chunk == NULL || chunk->n_items == chunk->capacity) {
        chunk = take_spare(chain);
        append_chunk(chain, chunk);
    }
    item = &chunk->items[chunk->n_items++];
    *item = *notification;
    item->since_ms = (uint32_t)now_ms;
    /* A delete is told without it; waiting it would cost an object. */
    if (item->type == KINF__NOTIFY_DELETE)
        item->old = NULL;
    kinf_object_ref(item->old);
    kinf_object_ref(item->object);
}

void kinf__chain_push(struct kinf__chain *chain, const struct kinf__notification *notifications,
                      size_t n_notifications, int64_t now_ms)
{
    for (size_t i = 0; i < n_notifications; i++)
        append(chain, &notifications[i], now_ms);
    chain->n_notifications += n_notifications;
}

void kinf__chain_push_synced(struct kinf__chain *chain, int64_t now_ms)
{
    struct kinf__chunk *sentinel = KINF__TAKE(chain->sentinel);

    if (sentinel == NULL)
        return;
    sentinel->items[0] =
        (struct kinf__notification){ .type = KINF__NOTIFY_SYNCED, .since_ms = (uint32_t)now_ms };
    sentinel->n_items = 1;
    append_chunk(chain, sentinel);
    chain->n_notifications++;
}

/* --- taking --- */

struct kinf__chunk *kinf__chain_take_all(struct kinf__chain *chain)
{
    chain->last = NULL;
    chain->n_notifications = 0;
    return KINF__TAKE(chain->first);
}

bool kinf__chain_oldest(const struct kinf__chain *chain, uint32_t *ret_since_ms)
{
    if (chain->first == NULL)
        return false;
    *ret_since_ms = chain->first->items[0].since_ms;
    return true;
}

/* --- check --- */

static bool notification_is_sound(const struct kinf__notification *notification)
{
    bool has_object = notification->type != KINF__NOTIFY_SYNCED;
    bool has_old = notification->type == KINF__NOTIFY_UPDATE;

    return (notification->object != NULL) == has_object && (notification->old != NULL) == has_old;
}

static bool chunk_is_sound(const struct kinf__chunk *chunk)
{
    if (chunk->n_items == 0 || chunk->n_items > chunk->capacity)
        return false;
    for (size_t i = 0; i < chunk->n_items; i++) {
        if (!notification_is_sound(&chunk->items[i]))
            return false;
    }
    return true;
}

static bool spares_are_sound(const struct kinf__chain *chain)
{
    size_t n_spares = 0;

    for (const struct kinf__chunk *spare = chain->spares; spare != NULL; spare = spare->next) {
        if (spare->n_items != 0 || spare->capacity != chain->spares->capacity)
            return false;
        n_spares++;
    }
    return n_spares == chain->n_spares;
}

bool kinf__chain_check(const struct kinf__chain *chain)
{
    const struct kinf__chunk *last = NULL;
    size_t n_notifications = 0;

    for (const struct kinf__chunk *chunk = chain->first; chunk != NULL; chunk = chunk->next) {
        if (!chunk_is_sound(chunk))
            return false;
        n_notifications += chunk->n_items;
        last = chunk;
    }
    return last == chain->last && n_notifications == chain->n_notifications &&
           spares_are_sound(chain);
}
