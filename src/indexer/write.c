/*
 * Changing one version. Neighbours: tree_change.c changes each tree, indexer.c publishes the
 * result. Invariant: the changes are recorded in their order, and taken back in the reverse one.
 */
#include "indexer/write.h"

#include <stdlib.h>

/* Garbage that each write takes along, and more for each change of a tree, which leaves a path of
 * nodes behind: so that it does not pile up where nobody reaps. */
#define REAPED_BY_WRITE  256
#define REAPED_BY_CHANGE 64

/* --- trees --- */

/* Room to record one more change; NULL when out of memory. */
static struct kinf__tree_change *next_change(struct kinf__write *write)
{
    struct kinf__tree_change *more;

    if (write->n_changes == write->n_changes_max) {
        more = malloc(2 * write->n_changes_max * sizeof more[0]);
        if (more == NULL)
            return NULL;
        memcpy(more, write->changes, write->n_changes * sizeof more[0]);
        if (write->changes != write->few)
            free(write->changes);
        write->changes = more;
        write->n_changes_max *= 2;
    }
    return &write->changes[write->n_changes];
}

static int set_in(struct kinf__write *write, struct kinf__tree *tree, struct kinf__entry *entry,
                  uint32_t value)
{
    struct kinf__tree_change *change = next_change(write);

    if (change == NULL || kinf__tree_set(tree, entry, value, change) < 0)
        return KINF_ERR_NO_MEMORY;
    write->n_changes++;
    return 0;
}

static int remove_from(struct kinf__write *write, struct kinf__tree *tree, struct kinf__key key)
{
    struct kinf__tree_change *change = next_change(write);

    if (change == NULL || kinf__tree_remove(tree, key, change) < 0)
        return KINF_ERR_NO_MEMORY;
    write->n_changes++;
    return 0;
}

/* --- index values --- */

/* Steps through the values that an entry has for one index. */
struct value_walk {
    const struct kinf__entry *entry; /* NULL: none */
    uint32_t at;
    uint32_t end;
};

static struct value_walk walk_values(const struct kinf__entry *entry, uint32_t index)
{
    struct value_walk walk = { entry, 0, 0 };

    if (entry != NULL) {
        walk.at = entry->starts[index];
        walk.end = entry->starts[index + 1];
    }
    return walk;
}

static void next_value(struct value_walk *walk)
{
    walk->at += (uint32_t)kinf__entry_value(walk->entry, walk->at).len + 1;
}

/* Brings one index from the values of `old` to those of `entry`; either may be NULL. A value that
 * both have keeps its slot, which gets the new entry. */
static int change_index(struct kinf__write *write, uint32_t index, const struct kinf__entry *old,
                        struct kinf__entry *entry)
{
    struct kinf__tree *tree = &write->version->indices[index];
    struct value_walk was = walk_values(old, index), is = walk_values(entry, index);
    int result = 0;

    while (result == 0 && (was.at < was.end || is.at < is.end)) {
        int order = was.at == was.end ? 1
                    : is.at == is.end
                        ? -1
                        : strcmp((const char *)old + was.at, (const char *)entry + is.at);

        if (order < 0)
            result = remove_from(write, tree, kinf__entry_index_key(old, was.at));
        else
            result = set_in(write, tree, entry, is.at);
        if (order <= 0)
            next_value(&was);
        if (order >= 0)
            next_value(&is);
    }
    return result;
}

static int change_indices(struct kinf__write *write, const struct kinf__entry *old,
                          struct kinf__entry *entry)
{
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < write->version->set->n; i++)
        result = change_index(write, i, old, entry);
    return result;
}

/* What the last key that was set or removed had before. */
static struct kinf__entry *last_found(const struct kinf__write *write)
{
    return write->changes[write->n_changes - 1].found;
}

/* --- the write --- */

int kinf__write_begin(struct kinf__write *write, struct kinf_snapshot *current)
{
    *write = (struct kinf__write){ .version = current,
                                   .count = current->count,
                                   .n_changes_max = KINF__WRITE_FEW_CHANGES };
    write->changes = write->few;
    /* Who gave a reference up has read before; acquire puts our changes behind that. */
    if (atomic_load_explicit(&current->refs, memory_order_acquire) == 1)
        return 0;
    write->old = current;
    write->version = kinf__snapshot_copy(current);
    return write->version != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static void end(struct kinf__write *write)
{
    if (write->changes != write->few)
        free(write->changes);
}

static void take_back_last(struct kinf__write *write)
{
    kinf__tree_take_back(&write->changes[--write->n_changes]);
}

int kinf__write_set(struct kinf__write *write, struct kinf__entry *entry,
                    const struct kinf_object **ret_old)
{
    struct kinf__entry *old;

    if (set_in(write, &write->version->items, entry, 0) < 0)
        return KINF_ERR_NO_MEMORY;
    old = last_found(write);
    *ret_old = old != NULL ? old->object : NULL;
    if (*ret_old == entry->object) {
        take_back_last(write);
        return 0;
    }
    if (change_indices(write, old, entry) < 0)
        return KINF_ERR_NO_MEMORY;
    write->count += old == NULL;
    return 0;
}

int kinf__write_remove(struct kinf__write *write, const char *key,
                       const struct kinf_object **ret_old)
{
    struct kinf__key item_key = { { NULL, 0 }, kinf_str_from(key) };
    struct kinf__entry *old;

    if (remove_from(write, &write->version->items, item_key) < 0)
        return KINF_ERR_NO_MEMORY;
    old = last_found(write);
    if (change_indices(write, old, NULL) < 0)
        return KINF_ERR_NO_MEMORY;
    write->count -= old != NULL;
    *ret_old = old != NULL ? old->object : NULL;
    return 0;
}

void kinf__write_abort(struct kinf__write *write)
{
    while (write->n_changes > 0)
        take_back_last(write);
    if (write->old != NULL)
        kinf_snapshot_unref(write->version);
    end(write);
}

struct kinf_snapshot *kinf__write_commit(struct kinf__write *write, const char *resource_version)
{
    write->version->count = write->count;
    write->version->n_writes++;
    if (resource_version != NULL && resource_version[0] != '\0')
        strcpy(write->version->resource_version, resource_version);
    return write->version;
}

void kinf__write_settle(struct kinf__write *write, struct kinf__graveyard *graveyard)
{
    struct kinf__dead_nodes dead = KINF__DEAD_NODES_INIT;
    size_t n_reaped = REAPED_BY_WRITE + write->n_changes * REAPED_BY_CHANGE;

    for (size_t i = 0; i < write->n_changes; i++)
        kinf__tree_settle(&write->changes[i], &dead);
    kinf__graveyard_bury(graveyard, &dead);
    kinf_snapshot_unref(write->old);
    end(write);
    kinf__graveyard_reap(graveyard, n_reaped);
}
