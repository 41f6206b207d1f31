/*
 * A whole list against the store: what is new, what changed, what is gone. Neighbours:
 * handle_deltas.c calls this and knows what a single state means. Both sides are walked by key, so
 * each object of the store is looked at once and nothing is searched for.
 *
 * Invariant: everything that can fail comes before the first transform.
 */
#include "informer/handle_deltas.h"

#include <stdlib.h>
#include <string.h>

/* One object of the list. */
struct listed {
    const struct kinf_object *object; /* NULL: listed again further on */
    const struct kinf_object *old;    /* what the store has; NULL: nothing */
};

struct relist {
    struct listed *listed; /* in the order of the list */
    struct listed **by_key;
    size_t n;
};

static void relist_release(struct relist *relist)
{
    free(relist->listed);
    free(relist->by_key);
}

/* Of one key, the order of the list. */
static int compare(const void *a, const void *b)
{
    const struct listed *x = *(struct listed *const *)a, *y = *(struct listed *const *)b;
    int order = strcmp(kinf_object_key(x->object), kinf_object_key(y->object));

    return order != 0 ? order : (x > y) - (x < y);
}

/* A server lists by key, as a rule. */
static void sort_by_key(struct relist *relist)
{
    size_t i = 1;

    while (i < relist->n && compare(&relist->by_key[i - 1], &relist->by_key[i]) < 0)
        i++;
    if (i < relist->n)
        qsort(relist->by_key, relist->n, sizeof relist->by_key[0], compare);
}

/* Of a key that is listed twice the last one counts. */
static void drop_doubles(struct relist *relist)
{
    size_t n = 0;

    for (size_t i = 0; i < relist->n; i++) {
        struct listed *item = relist->by_key[i];

        if (n > 0 && strcmp(kinf_object_key(relist->by_key[n - 1]->object),
                            kinf_object_key(item->object)) == 0)
            relist->by_key[--n]->object = NULL;
        relist->by_key[n++] = item;
    }
    relist->n = n;
}

static int relist_init(struct relist *relist, const struct kinf_delta *delta)
{
    size_t n = delta->n_objects;

    *relist = (struct relist){ .listed = calloc(n + 1, sizeof *relist->listed),
                               .by_key = calloc(n + 1, sizeof *relist->by_key),
                               .n = n };
    if (relist->listed == NULL || relist->by_key == NULL) {
        relist_release(relist);
        return KINF_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        relist->listed[i].object = delta->objects[i];
        relist->by_key[i] = &relist->listed[i];
    }
    sort_by_key(relist);
    drop_doubles(relist);
    return 0;
}

/* Finds what the store has of each, and tells what is gone. */
static void compare_with_store(struct relist *relist, struct kinf__batch *batch)
{
    const struct kinf_object *stored;
    struct kinf_cursor cursor;
    size_t i = 0;

    kinf_cursor_all(&cursor, batch->snapshot);
    while ((stored = kinf_cursor_next(&cursor)) != NULL) {
        const char *key = kinf_object_key(stored);
        int order = -1;

        while (i < relist->n &&
               (order = strcmp(kinf_object_key(relist->by_key[i]->object), key)) < 0)
            i++;
        if (i < relist->n && order == 0)
            relist->by_key[i++]->old = stored;
        else
            kinf__batch_tell_delete(batch, stored, stored, true, NULL, NULL);
    }
}

static void take_listed(struct kinf__delta_target *target, const struct kinf_delta *delta,
                        const struct relist *relist, bool in_initial_list,
                        struct kinf__batch *batch)
{
    for (size_t i = 0; i < delta->n_objects; i++) {
        const struct listed *item = &relist->listed[i];
        const struct kinf_object *stored;

        if (item->object == NULL)
            continue;
        stored = kinf__handle_state(target, item->object, item->old, in_initial_list, batch);
        if (stored != NULL)
            kinf__batch_list(batch, stored);
    }
}

int kinf__prepare_relist(struct kinf__delta_target *target, const struct kinf_delta *delta,
                         bool in_initial_list, struct kinf__batch *batch)
{
    struct kinf_snapshot *snapshot = kinf_indexer_snapshot(target->indexer);
    struct relist relist = { .n = 0 };
    int rc = kinf__batch_reserve_objects(batch, delta->n_objects, kinf_snapshot_count(snapshot));

    if (rc == 0)
        rc = relist_init(&relist, delta);
    if (rc != 0) {
        kinf_snapshot_unref(snapshot);
        return rc;
    }
    batch->snapshot = snapshot;
    batch->write = KINF__WRITE_ALL;
    batch->resource_version = delta->resource_version;
    compare_with_store(&relist, batch);
    take_listed(target, delta, &relist, in_initial_list, batch);
    relist_release(&relist);
    return 0;
}
