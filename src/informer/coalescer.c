/*
 * Notifications that merge by key. Neighbours: listener.c, one of its two queues.
 *
 * Invariant: what waits for a key leads from what the handler was told last (`told`) to what the
 * store has after everything that was pushed (`object`), and is never the way from nothing to
 * nothing. Pushing cannot fail after reserving.
 */
#include "informer/coalescer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "object/object.h"

/* More of them are given back. */
#define SPARES_KEPT 64

static struct kinf__pending *pending_in_order(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct kinf__pending, in_order);
}

/* --- one pending --- */

static const char *key_of(const struct kinf__pending *pending)
{
    return kinf_object_key(pending->object != NULL ? pending->object : pending->told);
}

static bool is_sentinel(const struct kinf__pending *pending)
{
    return pending->told == NULL && pending->object == NULL;
}

static size_t count(const struct kinf__pending *pending)
{
    return pending->gone != NULL && pending->object != NULL ? 2 : 1;
}

static void set_object(const struct kinf_object **to, const struct kinf_object *object)
{
    const struct kinf_object *before = *to;

    *to = kinf_object_ref(object);
    kinf_object_unref(before);
}

static void merge_add(struct kinf__pending *pending, const struct kinf__notification *add)
{
    if (pending->gone != NULL && kinf__object_same_uid(pending->gone, add->object))
        set_object(&pending->gone, NULL);
    set_object(&pending->object, add->object);
    pending->in_initial_list = add->in_initial_list;
}

static void merge_delete(struct kinf__pending *pending, const struct kinf__notification *delete)
{
    if (pending->told != NULL && pending->gone == NULL) {
        set_object(&pending->gone, delete->object);
        pending->final_state_unknown = delete->final_state_unknown;
    }
    set_object(&pending->object, NULL);
}

static void merge(struct kinf__pending *pending, const struct kinf__notification *notification)
{
    switch (notification->type) {
    case KINF__NOTIFY_ADD:
        merge_add(pending, notification);
        break;
    case KINF__NOTIFY_UPDATE:
        set_object(&pending->object, notification->object);
        break;
    case KINF__NOTIFY_DELETE:
        merge_delete(pending, notification);
        break;
    case KINF__NOTIFY_SYNCED:
        break;
    }
}

static struct kinf__notification change_of(const struct kinf__pending *pending)
{
    if (is_sentinel(pending))
        return (struct kinf__notification){ .type = KINF__NOTIFY_SYNCED };
    if (pending->told == NULL || pending->gone != NULL)
        return (struct kinf__notification){ .type = KINF__NOTIFY_ADD,
                                            .in_initial_list = pending->in_initial_list,
                                            .object = pending->object };
    return (struct kinf__notification){ .type = KINF__NOTIFY_UPDATE,
                                        .old = pending->told,
                                        .object = pending->object };
}

size_t kinf__pending_notifications(const struct kinf__pending *pending,
                                   struct kinf__notification ret_notifications[KINF__PENDING_MAX])
{
    size_t n = 0;

    if (pending->gone != NULL)
        ret_notifications[n++] = (struct kinf__notification){
            .type = KINF__NOTIFY_DELETE,
            .final_state_unknown = pending->final_state_unknown,
            .old = pending->told,
            .object = pending->gone,
        };
    if (pending->gone == NULL || pending->object != NULL)
        ret_notifications[n++] = change_of(pending);
    return n;
}

void kinf__pending_free(struct kinf__pending *pending)
{
    if (pending == NULL)
        return;
    kinf_object_unref(pending->told);
    kinf_object_unref(pending->gone);
    kinf_object_unref(pending->object);
    free(pending);
}

/* --- life --- */

static struct kinf__pending *take_spare(struct kinf__coalescer *coalescer)
{
    struct kinf__pending *spare = pending_in_order(coalescer->spares.next);

    assert(coalescer->n_spares != 0);
    kinf__list_remove(&spare->in_order);
    coalescer->n_spares--;
    return spare;
}

static void drop_spares(struct kinf__coalescer *coalescer, size_t n_kept)
{
    while (coalescer->n_spares > n_kept)
        free(take_spare(coalescer));
}

int kinf__coalescer_init(struct kinf__coalescer *coalescer)
{
    *coalescer = (struct kinf__coalescer){ .map = KINF__HMAP_INIT };
    kinf__list_init(&coalescer->order);
    kinf__list_init(&coalescer->spares);
    coalescer->sentinel = calloc(1, sizeof *coalescer->sentinel);
    return coalescer->sentinel != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

void kinf__coalescer_release(struct kinf__coalescer *coalescer)
{
    KINF__LIST_FOR_EACH_SAFE (node, &coalescer->order)
        kinf__pending_free(pending_in_order(node));
    kinf__hmap_release(&coalescer->map);
    drop_spares(coalescer, 0);
    free(coalescer->sentinel);
}

/* --- pushing --- */

static int add_spare(struct kinf__coalescer *coalescer)
{
    struct kinf__pending *spare = malloc(sizeof *spare);

    if (spare == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__list_push_back(&coalescer->spares, &spare->in_order);
    coalescer->n_spares++;
    return 0;
}

int kinf__coalescer_reserve(struct kinf__coalescer *coalescer, size_t n_notifications)
{
    int rc = kinf__hmap_reserve(&coalescer->map, n_notifications);

    while (rc == 0 && coalescer->n_spares < n_notifications)
        rc = add_spare(coalescer);
    return rc;
}

void kinf__coalescer_trim(struct kinf__coalescer *coalescer)
{
    drop_spares(coalescer, SPARES_KEPT);
}

static struct kinf__pending *find(const struct kinf__coalescer *coalescer, const char *key,
                                  uint64_t hash)
{
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(&coalescer->map, hash);

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__pending *pending = KINF__CONTAINER_OF(node, struct kinf__pending, in_map);

        if (strcmp(key_of(pending), key) == 0)
            return pending;
    }
    return NULL;
}

/* Nothing has changed yet for this key. */
static struct kinf__pending *insert(struct kinf__coalescer *coalescer,
                                    const struct kinf_object *told, uint64_t hash, int64_t now_ms)
{
    struct kinf__pending *pending = take_spare(coalescer);

    *pending =
        (struct kinf__pending){ .told = kinf_object_ref(told), .since_ms = (uint32_t)now_ms };
    kinf__hmap_insert_reserved(&coalescer->map, &pending->in_map, hash);
    kinf__list_push_back(&coalescer->order, &pending->in_order);
    return pending;
}

static void take_out(struct kinf__coalescer *coalescer, struct kinf__pending *pending)
{
    if (!is_sentinel(pending))
        kinf__hmap_remove(&coalescer->map, &pending->in_map);
    kinf__list_remove(&pending->in_order);
}

static void push_one(struct kinf__coalescer *coalescer,
                     const struct kinf__notification *notification, int64_t now_ms)
{
    const char *key = kinf_object_key(notification->object);
    uint64_t hash = kinf__hash(kinf_str_from(key));
    struct kinf__pending *pending = find(coalescer, key, hash);
    size_t n_before = pending != NULL ? count(pending) : 0;
    size_t n_after;

    if (pending == NULL)
        pending = insert(coalescer, notification->old, hash, now_ms);
    merge(pending, notification);
    n_after = pending->told != NULL || pending->object != NULL ? count(pending) : 0;
    coalescer->n_notifications += n_after - n_before;
    coalescer->n_merged += n_before + 1 - n_after;
    if (n_after == 0) {
        kinf__hmap_remove(&coalescer->map, &pending->in_map);
        kinf__list_remove(&pending->in_order);
        kinf__pending_free(pending);
    }
}

void kinf__coalescer_push(struct kinf__coalescer *coalescer,
                          const struct kinf__notification *notifications, size_t n_notifications,
                          int64_t now_ms)
{
    for (size_t i = 0; i < n_notifications; i++)
        push_one(coalescer, &notifications[i], now_ms);
}

void kinf__coalescer_push_synced(struct kinf__coalescer *coalescer, int64_t now_ms)
{
    struct kinf__pending *sentinel = KINF__TAKE(coalescer->sentinel);

    if (sentinel == NULL)
        return;
    sentinel->since_ms = (uint32_t)now_ms;
    kinf__list_push_back(&coalescer->order, &sentinel->in_order);
    coalescer->n_notifications++;
}

/* --- taking --- */

struct kinf__pending *kinf__coalescer_pop(struct kinf__coalescer *coalescer)
{
    struct kinf__pending *pending;

    if (kinf__list_is_empty(&coalescer->order))
        return NULL;
    pending = pending_in_order(coalescer->order.next);
    take_out(coalescer, pending);
    coalescer->n_notifications -= count(pending);
    return pending;
}

struct kinf__pending *kinf__coalescer_take_initial(struct kinf__coalescer *coalescer,
                                                   const char *key)
{
    struct kinf__pending *pending;

    if (coalescer->map.n_nodes == 0)
        return NULL;
    pending = find(coalescer, key, kinf__hash(kinf_str_from(key)));
    if (pending == NULL)
        return NULL;
    take_out(coalescer, pending);
    coalescer->n_notifications -= count(pending);
    coalescer->n_merged += count(pending) + (pending->object == NULL ? 1 : 0);
    return pending;
}

bool kinf__coalescer_oldest(const struct kinf__coalescer *coalescer, uint32_t *ret_since_ms)
{
    if (kinf__list_is_empty(&coalescer->order))
        return false;
    *ret_since_ms = pending_in_order(coalescer->order.next)->since_ms;
    return true;
}

/* --- check --- */

static bool pending_is_sound(const struct kinf__coalescer *coalescer,
                             const struct kinf__pending *pending)
{
    const char *key = key_of(pending);
    uint64_t hash = kinf__hash(kinf_str_from(key));
    bool has_two = pending->gone != NULL && pending->object != NULL;

    if (pending->gone != NULL && pending->told == NULL)
        return false;
    if (pending->gone == NULL && pending->object == NULL)
        return false;
    if (has_two && kinf__object_same_uid(pending->gone, pending->object))
        return false;
    return pending->in_map.hash == hash && find(coalescer, key, hash) == pending;
}

bool kinf__coalescer_check(const struct kinf__coalescer *coalescer)
{
    size_t n_keys = 0, n_notifications = 0, n_sentinels = 0;

    KINF__LIST_FOR_EACH (node, &coalescer->order) {
        const struct kinf__pending *pending = pending_in_order(node);

        n_notifications += count(pending);
        if (is_sentinel(pending))
            n_sentinels++;
        else if (!pending_is_sound(coalescer, pending))
            return false;
        else
            n_keys++;
    }
    return n_keys == coalescer->map.n_nodes && n_notifications == coalescer->n_notifications &&
           n_sentinels <= (coalescer->sentinel == NULL ? 1 : 0);
}
