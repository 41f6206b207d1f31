/*
 * The coalescing backlog: notifications that merge by key. Neighbours: backlog.c.
 *
 * Invariant: what waits for a key leads from what the handler was told last (`told`) to what the
 * store has after everything that was pushed (`object`), and is never the way from nothing to
 * nothing.
 */
#include "informer/backlog.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/list.h"
#include "object/object.h"

/* More of them are given back. */
#define SPARES_KEPT 64

/* What waits for one key, or the sentinel, which has no object. Holds references. */
struct pending {
    struct kinf__hmap_node in_map;
    struct kinf__list in_order;
    const struct kinf_object *told;   /* last; NULL: the handler knows nothing of the key */
    const struct kinf_object *gone;   /* of the delete; NULL: none */
    const struct kinf_object *object; /* what there is now; NULL: nothing */
    uint32_t since_ms;                /* of the first notification that is in it */
    bool in_initial_list;
    bool final_state_unknown;
};

/* So much does a handler that lags behind cost for a key, beside the objects. */
_Static_assert(sizeof(struct pending) <= 64, "a pending change is small");

struct coalescing {
    struct kinf__backlog base;
    struct kinf__hmap map;    /* keys */
    struct kinf__list order;  /* what waits, the first first */
    struct kinf__list spares; /* of struct pending, empty */
    size_t n_spares;
};

static struct coalescing *of(struct kinf__backlog *backlog)
{
    return KINF__CONTAINER_OF(backlog, struct coalescing, base);
}

static const struct coalescing *of_const(const struct kinf__backlog *backlog)
{
    return KINF__CONTAINER_OF(backlog, const struct coalescing, base);
}

static struct pending *pending_in_order(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct pending, in_order);
}

/* --- one pending --- */

static const char *key_of(const struct pending *pending)
{
    return kinf_object_key(pending->object != NULL ? pending->object : pending->told);
}

static bool is_sentinel(const struct pending *pending)
{
    return pending->told == NULL && pending->object == NULL;
}

/* Callbacks that it stands for. */
static size_t count(const struct pending *pending)
{
    return pending->gone != NULL && pending->object != NULL ? 2 : 1;
}

static void set_object(const struct kinf_object **to, const struct kinf_object *object)
{
    const struct kinf_object *before = *to;

    *to = kinf_object_ref(object);
    kinf_object_unref(before);
}

static void merge_add(struct pending *pending, const struct kinf__notification *add)
{
    if (pending->gone != NULL && kinf__object_same_uid(pending->gone, add->object))
        set_object(&pending->gone, NULL);
    set_object(&pending->object, add->object);
    pending->in_initial_list = add->in_initial_list;
}

static void merge_delete(struct pending *pending, const struct kinf__notification *delete)
{
    if (pending->told != NULL && pending->gone == NULL) {
        set_object(&pending->gone, delete->object);
        pending->final_state_unknown = delete->final_state_unknown;
    }
    set_object(&pending->object, NULL);
}

/* Of an object, so it is never KINF__NOTIFY_SYNCED. */
static void merge(struct pending *pending, const struct kinf__notification *notification)
{
    if (notification->type == KINF__NOTIFY_ADD)
        merge_add(pending, notification);
    else if (notification->type == KINF__NOTIFY_UPDATE)
        set_object(&pending->object, notification->object);
    else
        merge_delete(pending, notification);
}

/* Takes the references of what there is now out of it. */
static struct kinf__notification take_change(struct pending *pending, bool is_add)
{
    struct kinf__notification change = { .type = KINF__NOTIFY_SYNCED,
                                         .since_ms = pending->since_ms };

    if (is_sentinel(pending))
        return change;
    change.type = is_add ? KINF__NOTIFY_ADD : KINF__NOTIFY_UPDATE;
    change.in_initial_list = is_add && pending->in_initial_list;
    change.old = is_add ? NULL : KINF__TAKE(pending->told);
    change.object = KINF__TAKE(pending->object);
    return change;
}

/* The callbacks, in their order, with its references; returns how many. */
static size_t take_notifications(struct pending *pending,
                                 struct kinf__notification *ret_notifications)
{
    bool is_add = pending->told == NULL || pending->gone != NULL;
    bool has_change = pending->gone == NULL || pending->object != NULL;
    size_t n = 0;

    if (pending->gone != NULL)
        ret_notifications[n++] = (struct kinf__notification){
            .type = KINF__NOTIFY_DELETE,
            .since_ms = pending->since_ms,
            .final_state_unknown = pending->final_state_unknown,
            .object = KINF__TAKE(pending->gone),
        };
    if (has_change)
        ret_notifications[n++] = take_change(pending, is_add);
    return n;
}

static void pending_free(struct pending *pending)
{
    kinf_object_unref(pending->told);
    kinf_object_unref(pending->gone);
    kinf_object_unref(pending->object);
    free(pending);
}

/* --- life, room --- */

static struct pending *take_spare(struct coalescing *backlog)
{
    struct pending *spare = pending_in_order(backlog->spares.next);

    assert(backlog->n_spares != 0);
    kinf__list_remove(&spare->in_order);
    backlog->n_spares--;
    return spare;
}

static struct kinf__backlog *make(void)
{
    struct coalescing *backlog = calloc(1, sizeof *backlog);

    if (backlog == NULL)
        return NULL; /* no memory */
    backlog->map = (struct kinf__hmap)KINF__HMAP_INIT;
    kinf__list_init(&backlog->order);
    kinf__list_init(&backlog->spares);
    return &backlog->base;
}

static void free_all(struct kinf__backlog *base)
{
    struct coalescing *backlog = of(base);

    KINF__LIST_FOR_EACH_SAFE (node, &backlog->order)
        pending_free(pending_in_order(node));
    kinf__hmap_release(&backlog->map);
    while (backlog->n_spares != 0)
        free(take_spare(backlog));
    free(backlog);
}

static int reserve(struct kinf__backlog *base, size_t n)
{
    struct coalescing *backlog = of(base);
    int rc = kinf__hmap_reserve(&backlog->map, n);

    while (rc == 0 && backlog->n_spares < n) {
        struct pending *spare = malloc(sizeof *spare);

        if (spare == NULL)
            return KINF_ERR_NO_MEMORY;
        kinf__list_push_back(&backlog->spares, &spare->in_order);
        backlog->n_spares++;
    }
    return rc;
}

static void trim(struct kinf__backlog *base)
{
    struct coalescing *backlog = of(base);

    while (backlog->n_spares > base->n_reserved + SPARES_KEPT)
        free(take_spare(backlog));
}

/* --- pushing --- */

static struct pending *find(const struct coalescing *backlog, const char *key, uint64_t hash)
{
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(&backlog->map, hash);

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct pending *pending = KINF__CONTAINER_OF(node, struct pending, in_map);

        if (strcmp(key_of(pending), key) == 0)
            return pending;
    }
    return NULL;
}

/* Nothing has changed yet. */
static struct pending *append(struct coalescing *backlog, const struct kinf_object *told,
                              uint32_t now_ms)
{
    struct pending *pending = take_spare(backlog);

    *pending = (struct pending){ .told = kinf_object_ref(told), .since_ms = now_ms };
    kinf__list_push_back(&backlog->order, &pending->in_order);
    return pending;
}

static struct pending *take_out(struct coalescing *backlog, struct pending *pending)
{
    if (!is_sentinel(pending))
        kinf__hmap_remove(&backlog->map, &pending->in_map);
    kinf__list_remove(&pending->in_order);
    backlog->base.n_notifications -= count(pending);
    return pending;
}

static void push_change(struct coalescing *backlog, const struct kinf__notification *notification,
                        uint32_t now_ms)
{
    const char *key = kinf_object_key(notification->object);
    uint64_t hash = kinf__hash(kinf_str_from(key));
    struct pending *pending = find(backlog, key, hash);
    size_t n_before = pending != NULL ? count(pending) : 0;
    size_t n_after;

    if (pending == NULL) {
        pending = append(backlog, notification->old, now_ms);
        kinf__hmap_insert_reserved(&backlog->map, &pending->in_map, hash);
    }
    merge(pending, notification);
    n_after = is_sentinel(pending) ? 0 : count(pending);
    backlog->base.n_notifications += n_after - n_before;
    backlog->base.n_merged += n_before + 1 - n_after;
    if (n_after == 0) {
        kinf__hmap_remove(&backlog->map, &pending->in_map);
        kinf__list_remove(&pending->in_order);
        pending_free(pending);
    }
}

static void push(struct kinf__backlog *base, const struct kinf__notification *notification,
                 uint32_t now_ms)
{
    if (notification->type == KINF__NOTIFY_SYNCED) {
        (void)append(of(base), NULL, now_ms);
        base->n_notifications++;
    } else {
        push_change(of(base), notification, now_ms);
    }
}

/* --- taking --- */

/* Of one key, since what was taken merges no more. */
static size_t take(struct kinf__backlog *base, struct kinf__notification *ret_notifications)
{
    struct coalescing *backlog = of(base);
    struct pending *pending;
    size_t n;

    if (kinf__list_is_empty(&backlog->order))
        return 0;
    pending = take_out(backlog, pending_in_order(backlog->order.next));
    n = take_notifications(pending, ret_notifications);
    pending_free(pending);
    return n;
}

static bool take_initial(struct kinf__backlog *base, const char *key,
                         const struct kinf_object **ret_object)
{
    struct coalescing *backlog = of(base);
    struct pending *pending;

    if (backlog->map.n_nodes == 0)
        return false;
    pending = find(backlog, key, kinf__hash(kinf_str_from(key)));
    if (pending == NULL)
        return false;
    take_out(backlog, pending);
    base->n_merged += count(pending) + (pending->object == NULL ? 1 : 0);
    *ret_object = KINF__TAKE(pending->object);
    pending_free(pending);
    return true;
}

static uint32_t oldest(const struct kinf__backlog *base)
{
    return pending_in_order(of_const(base)->order.next)->since_ms;
}

/* --- check --- */

static bool pending_is_sound(const struct coalescing *backlog, const struct pending *pending)
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
    return pending->in_map.hash == hash && find(backlog, key, hash) == pending;
}

static bool check(const struct kinf__backlog *base)
{
    const struct coalescing *backlog = of_const(base);
    size_t n_keys = 0, n_notifications = 0, n_sentinels = 0;

    KINF__LIST_FOR_EACH (node, &backlog->order) {
        const struct pending *pending = pending_in_order(node);

        n_notifications += count(pending);
        if (is_sentinel(pending))
            n_sentinels++;
        else if (!pending_is_sound(backlog, pending))
            return false;
        else
            n_keys++;
    }
    return n_keys == backlog->map.n_nodes && n_notifications == base->n_notifications &&
           n_sentinels <= 1 && backlog->n_spares >= base->n_reserved;
}

const struct kinf__backlog_class kinf__backlog_coalescing = {
    .make = make,
    .free = free_all,
    .reserve = reserve,
    .trim = trim,
    .push = push,
    .take = take,
    .take_initial = take_initial,
    .oldest = oldest,
    .check = check,
};
