/*
 * Versions and reading them. Neighbours: indexer.c makes them, tree.c holds their content.
 */
#include "indexer/snapshot.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/misuse.h"

/* --- life --- */

struct kinf_snapshot *kinf__snapshot_new(struct kinf__graveyard *graveyard,
                                         struct kinf__index_set *set)
{
    struct kinf_snapshot *snapshot =
        calloc(1, sizeof *snapshot + set->n * sizeof snapshot->indices[0]);

    if (snapshot == NULL)
        return NULL;
    atomic_init(&snapshot->refs, 1);
    snapshot->graveyard = kinf__graveyard_ref(graveyard);
    snapshot->set = kinf__index_set_ref(set);
    for (uint32_t i = 0; i < set->n; i++)
        snapshot->indices[i].is_index = true;
    return snapshot;
}

static struct kinf__tree share_tree(const struct kinf__tree *tree)
{
    if (tree->root != NULL)
        kinf__node_ref(tree->root);
    return *tree;
}

void kinf__snapshot_share(struct kinf_snapshot *to, const struct kinf_snapshot *from)
{
    to->count = from->count;
    to->items = share_tree(&from->items);
    for (uint32_t i = 0; i < from->set->n; i++)
        to->indices[i] = share_tree(&from->indices[i]);
}

void kinf__snapshot_date(struct kinf_snapshot *to, const struct kinf_snapshot *from)
{
    to->n_writes = from->n_writes;
    memcpy(to->resource_version, from->resource_version, sizeof to->resource_version);
}

struct kinf_snapshot *kinf__snapshot_copy(const struct kinf_snapshot *from)
{
    struct kinf_snapshot *copy = kinf__snapshot_new(from->graveyard, from->set);

    if (copy == NULL)
        return NULL;
    kinf__snapshot_share(copy, from);
    kinf__snapshot_date(copy, from);
    return copy;
}

struct kinf_snapshot *kinf_snapshot_ref(struct kinf_snapshot *snapshot)
{
    KINF__REFUSE_NULL(NULL, NULL, snapshot);
    atomic_fetch_add_explicit(&snapshot->refs, 1, memory_order_relaxed);
    return snapshot;
}

void kinf_snapshot_unref(struct kinf_snapshot *snapshot)
{
    struct kinf__dead_nodes dead = KINF__DEAD_NODES_INIT;

    if (snapshot == NULL ||
        atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) != 1)
        return;
    kinf__node_unref(snapshot->items.root, &dead);
    for (uint32_t i = 0; i < snapshot->set->n; i++)
        kinf__node_unref(snapshot->indices[i].root, &dead);
    kinf__graveyard_bury(snapshot->graveyard, &dead);
    kinf__graveyard_unref(snapshot->graveyard);
    kinf__index_set_unref(snapshot->set);
    free(snapshot);
}

void kinf_snapshot_unref_ptr(struct kinf_snapshot **snapshot)
{
    KINF__REFUSE_NULL(NULL, , snapshot);
    kinf_snapshot_unref(*snapshot);
}

/* --- the check --- */

static const char *check_entry(const struct kinf_snapshot *snapshot,
                               const struct kinf__entry *entry, size_t *n_values)
{
    if (entry->n_indices != snapshot->set->n)
        return "entry made for other indices";
    for (uint32_t i = 0; i < entry->n_indices; i++) {
        uint32_t at = entry->starts[i];

        while (at < entry->starts[i + 1]) {
            struct kinf__key key = kinf__entry_index_key(entry, at);

            if (kinf__tree_get(&snapshot->indices[i], key) != entry)
                return "value missing in its index";
            n_values[i]++;
            at += (uint32_t)key.head.len;
        }
    }
    return NULL;
}

static const char *check_indices(const struct kinf_snapshot *snapshot, size_t *n_values)
{
    struct kinf__key everything = { { NULL, 0 }, { NULL, 0 } };
    struct kinf_cursor cursor;
    struct kinf__entry *entry;
    uint32_t value;
    size_t n_slots;
    const char *wrong = NULL;

    kinf__tree_seek(&snapshot->items, everything, &cursor);
    while (wrong == NULL && kinf__tree_at(&cursor, &entry, &value)) {
        wrong = check_entry(snapshot, entry, n_values);
        kinf__tree_advance(&cursor);
    }
    for (uint32_t i = 0; wrong == NULL && i < snapshot->set->n; i++) {
        wrong = kinf__tree_check(&snapshot->indices[i], &n_slots);
        if (wrong == NULL && n_slots != n_values[i])
            wrong = "index has values that no entry has";
    }
    return wrong;
}

const char *kinf__snapshot_check(const struct kinf_snapshot *snapshot)
{
    size_t n_slots;
    const char *wrong = kinf__tree_check(&snapshot->items, &n_slots);
    KINF__AUTO_FREE size_t *n_values = calloc(snapshot->set->n + 1, sizeof *n_values);

    if (n_values == NULL)
        return "no memory to check with";
    if (wrong == NULL && n_slots != snapshot->count)
        wrong = "wrong count of objects";
    return wrong != NULL ? wrong : check_indices(snapshot, n_values);
}

/* --- reading --- */

size_t kinf_snapshot_count(const struct kinf_snapshot *snapshot)
{
    KINF__REFUSE_NULL(NULL, 0, snapshot);
    return snapshot->count;
}

const char *kinf_snapshot_resource_version(const struct kinf_snapshot *snapshot)
{
    KINF__REFUSE_NULL(NULL, "", snapshot);
    return snapshot->resource_version;
}

const struct kinf_object *kinf_snapshot_get(const struct kinf_snapshot *snapshot, const char *key)
{
    KINF__REFUSE_NULL(NULL, NULL, snapshot, key);

    struct kinf__key item_key = { { NULL, 0 }, kinf_str_from(key) };

    return kinf__tree_get_object(&snapshot->items, item_key);
}

/* What a cursor is while nothing else is known of it: at the end. */
static const struct kinf_cursor at_end;

void kinf_cursor_all(struct kinf_cursor *cursor, const struct kinf_snapshot *snapshot)
{
    kinf_cursor_prefix(cursor, snapshot, KINF_STR(""));
}

void kinf_cursor_prefix(struct kinf_cursor *cursor, const struct kinf_snapshot *snapshot,
                        struct kinf_str prefix)
{
    KINF__REFUSE_NULL(NULL, , cursor);
    *cursor = at_end;
    KINF__REFUSE_NULL(NULL, , snapshot);

    struct kinf__key key = { { NULL, 0 }, prefix };

    cursor->snapshot = snapshot;
    cursor->prefix = prefix;
    kinf__tree_seek(&snapshot->items, key, cursor);
}

void kinf_cursor_after(struct kinf_cursor *cursor, const struct kinf_snapshot *snapshot,
                       const char *key)
{
    KINF__REFUSE_NULL(NULL, , cursor);
    *cursor = at_end;
    KINF__REFUSE_NULL(NULL, , snapshot, key);

    struct kinf_str bytes = kinf_str_from(key);
    const struct kinf_object *object;

    kinf_cursor_prefix(cursor, snapshot, bytes);
    cursor->prefix = KINF_STR("");
    object = kinf__tree_object_at(cursor);
    if (object != NULL && kinf_str_equal(kinf__object_key(object), bytes))
        kinf__tree_advance(cursor);
}

int kinf_cursor_index(struct kinf_cursor *cursor, const struct kinf_snapshot *snapshot,
                      const char *index, struct kinf_str value, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, cursor, snapshot, index);

    /* "value NUL": in front of every key that has the value */
    struct kinf__key key = { value, { "", 1 } };
    uint32_t number;

    if (!kinf__index_set_find(snapshot->set, index, &number))
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "index %s does not exist", index);
    cursor->snapshot = snapshot;
    cursor->prefix = value;
    cursor->is_index = true;
    kinf__tree_seek(&snapshot->indices[number], key, cursor);
    return 0;
}

/* Whether the slot that the cursor is on still has its prefix or value. */
static bool is_within(const struct kinf_cursor *cursor, const struct kinf_object *object)
{
    struct kinf__entry *entry;
    uint32_t value;
    struct kinf_str key;

    if (cursor->is_index)
        return kinf__tree_at(cursor, &entry, &value) &&
               kinf_str_equal(kinf__entry_value(entry, value), cursor->prefix);
    if (cursor->prefix.len == 0)
        return true;
    key = kinf__object_key(object);
    return key.len >= cursor->prefix.len &&
           memcmp(key.bytes, cursor->prefix.bytes, cursor->prefix.len) == 0;
}

const struct kinf_object *kinf_cursor_next(struct kinf_cursor *cursor)
{
    KINF__REFUSE_NULL(NULL, NULL, cursor);

    const struct kinf_object *object = kinf__tree_object_at(cursor);

    if (object == NULL)
        return NULL;
    if (!is_within(cursor, object)) {
        cursor->n_levels = 0;
        return NULL;
    }
    kinf__tree_advance(cursor);
    return object;
}
