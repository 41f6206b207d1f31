/*
 * The unbounded backlog: chunks of notifications, each told as it came. Neighbours: backlog.c.
 *
 * Invariant: the last chunk, if there is one, has what room is left, and the spares have the rest;
 * both together have what was reserved.
 */
#include "informer/backlog.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define CHUNK_LEN 128

struct chunk {
    struct chunk *next;
    size_t begin; /* what was taken lies before it */
    size_t end;
    struct kinf__notification items[CHUNK_LEN]; /* with references; `old` of updates only */
};

struct unbounded {
    struct kinf__backlog base;
    struct chunk *first;
    struct chunk *last;
    struct chunk *spares; /* empty */
    size_t n_spares;
};

static struct unbounded *of(struct kinf__backlog *backlog)
{
    return KINF__CONTAINER_OF(backlog, struct unbounded, base);
}

static const struct unbounded *of_const(const struct kinf__backlog *backlog)
{
    return KINF__CONTAINER_OF(backlog, const struct unbounded, base);
}

static struct kinf__backlog *make(void)
{
    struct unbounded *backlog = calloc(1, sizeof *backlog);

    return backlog != NULL ? &backlog->base : NULL;
}

static void free_chunks(struct chunk *chunk)
{
    while (chunk != NULL) {
        struct chunk *next = chunk->next;

        for (size_t i = chunk->begin; i < chunk->end; i++)
            kinf__notification_release(&chunk->items[i]);
        free(chunk);
        chunk = next;
    }
}

static void free_all(struct kinf__backlog *backlog)
{
    free_chunks(of(backlog)->first);
    free_chunks(of(backlog)->spares);
    free(of(backlog));
}

/* --- room --- */

static size_t room(const struct unbounded *backlog)
{
    size_t in_last = backlog->last != NULL ? CHUNK_LEN - backlog->last->end : 0;

    return in_last + backlog->n_spares * CHUNK_LEN;
}

static void add_spare(struct unbounded *backlog, struct chunk *chunk)
{
    chunk->begin = 0;
    chunk->end = 0;
    chunk->next = backlog->spares;
    backlog->spares = chunk;
    backlog->n_spares++;
}

static struct chunk *take_spare(struct unbounded *backlog)
{
    struct chunk *spare = backlog->spares;

    assert(spare != NULL);
    backlog->spares = KINF__TAKE(spare->next);
    backlog->n_spares--;
    return spare;
}

static int reserve(struct kinf__backlog *base, size_t n)
{
    struct unbounded *backlog = of(base);

    while (room(backlog) < n) {
        struct chunk *chunk = malloc(sizeof *chunk);

        if (chunk == NULL)
            return KINF_ERR_NO_MEMORY;
        add_spare(backlog, chunk);
    }
    return 0;
}

static void trim(struct kinf__backlog *base)
{
    struct unbounded *backlog = of(base);

    while (backlog->n_spares > 1 && room(backlog) >= base->n_reserved + CHUNK_LEN)
        free(take_spare(backlog));
}

/* --- pushing and taking --- */

static struct chunk *chunk_with_room(struct unbounded *backlog)
{
    struct chunk *chunk = backlog->last;

    if (chunk != NULL && chunk->end < CHUNK_LEN)
        return chunk;
    chunk = take_spare(backlog);
    if (backlog->last != NULL)
        backlog->last->next = chunk;
    else
        backlog->first = chunk;
    backlog->last = chunk;
    return chunk;
}

static void push(struct kinf__backlog *base, const struct kinf__notification *notification,
                 uint32_t now_ms)
{
    struct chunk *chunk = chunk_with_room(of(base));
    struct kinf__notification *item = &chunk->items[chunk->end++];

    *item = *notification;
    item->since_ms = now_ms;
    /* A delete is told without it; waiting it would cost an object. */
    if (item->type == KINF__NOTIFY_DELETE)
        item->old = NULL;
    kinf_object_ref(item->old);
    kinf_object_ref(item->object);
    base->n_notifications++;
}

/* Its first chunk is empty. */
static void drop_first(struct unbounded *backlog)
{
    struct chunk *chunk = backlog->first;

    if (chunk == backlog->last) {
        chunk->begin = 0;
        chunk->end = 0;
        return;
    }
    backlog->first = chunk->next;
    add_spare(backlog, chunk);
    trim(&backlog->base);
}

static size_t take(struct kinf__backlog *base, struct kinf__notification *ret_notifications)
{
    struct unbounded *backlog = of(base);
    struct chunk *chunk = backlog->first;
    size_t n;

    if (base->n_notifications == 0)
        return 0;
    n = chunk->end - chunk->begin;
    if (n > KINF__BACKLOG_TAKE)
        n = KINF__BACKLOG_TAKE;
    memcpy(ret_notifications, &chunk->items[chunk->begin], n * sizeof chunk->items[0]);
    chunk->begin += n;
    base->n_notifications -= n;
    if (chunk->begin == chunk->end)
        drop_first(backlog);
    return n;
}

static uint32_t oldest(const struct kinf__backlog *base)
{
    const struct chunk *first = of_const(base)->first;

    return first->items[first->begin].since_ms;
}

/* --- check --- */

static bool notification_is_sound(const struct kinf__notification *notification)
{
    bool has_object = notification->type != KINF__NOTIFY_SYNCED;
    bool has_old = notification->type == KINF__NOTIFY_UPDATE;

    return (notification->object != NULL) == has_object && (notification->old != NULL) == has_old;
}

static bool chunk_is_sound(const struct chunk *chunk, bool is_last)
{
    if (chunk->begin > chunk->end || chunk->end > CHUNK_LEN ||
        (!is_last && (chunk->begin == chunk->end || chunk->end < CHUNK_LEN)))
        return false;
    for (size_t i = chunk->begin; i < chunk->end; i++) {
        if (!notification_is_sound(&chunk->items[i]))
            return false;
    }
    return true;
}

static bool check(const struct kinf__backlog *base)
{
    const struct unbounded *backlog = of_const(base);
    size_t n_notifications = 0;

    for (const struct chunk *chunk = backlog->first; chunk != NULL; chunk = chunk->next) {
        if (!chunk_is_sound(chunk, chunk == backlog->last))
            return false;
        n_notifications += chunk->end - chunk->begin;
    }
    return n_notifications == base->n_notifications && room(backlog) >= base->n_reserved;
}

const struct kinf__backlog_class kinf__backlog_unbounded = {
    .make = make,
    .free = free_all,
    .reserve = reserve,
    .trim = trim,
    .push = push,
    .take = take,
    .oldest = oldest,
    .check = check,
};
