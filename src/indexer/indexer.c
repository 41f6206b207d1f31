/*
 * Writing: one current version, and changing it. Neighbours: tree.c for each tree of a version,
 * values.c for what index functions say, snapshot.c for reading.
 *
 * A write computes index values first, without the lock. Under it the current version is changed in
 * place if nobody holds it, else a copy that shares every tree; each tree records what it did, so
 * that a write that runs out of memory half way is taken back. What was replaced is given up after
 * unlocking. Versions made from scratch (replace, added indices) are built outside the lock.
 *
 * Invariant: index values of every entry belong to the set of the version that it is in. A write
 * that finds another set than the one it computed for starts anew.
 */
#include "indexer/indexer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/lock.h"
#include "indexer/rebuild.h"

/* Garbage that each write takes along, so that it does not pile up where nobody reaps. */
#define REAPED_BY_WRITE 256
#define CHANGES_INLINE  8

struct kinf_indexer {
    struct kinf__graveyard *graveyard; /* constant */
    _Atomic(uint64_t) n_failed;        /* atomic */
    struct kinf__mutex lock;
    struct kinf__cond writable;
    /* guarded by lock */
    struct kinf_snapshot *current; /* never NULL */
    bool is_adding_indices;        /* writes wait meanwhile */
};

/* One write under way. */
struct write {
    struct kinf_snapshot *version; /* that is changed */
    struct kinf_snapshot *old;     /* that it replaces; NULL if changed in place */
    struct kinf__tree_change *changes;
    size_t n_changes;
    size_t n_changes_max;
    struct kinf__tree_change few[CHANGES_INLINE];
};

/* --- one write ------------------------------------------------------------------------------- */

static void lock_for_write(struct kinf_indexer *indexer) KINF__ACQUIRES(indexer->lock)
{
    kinf__mutex_lock(&indexer->lock);
    while (indexer->is_adding_indices)
        kinf__cond_wait_until(&indexer->writable, &indexer->lock, KINF__NEVER_MS);
}

static size_t count_values(const struct kinf__entry *entry)
{
    size_t n = 0;

    if (entry == NULL || entry->n_indices == 0)
        return 0;
    for (uint32_t at = entry->starts[0]; at < entry->starts[entry->n_indices]; n++)
        at += (uint32_t)kinf__entry_value(entry, at).len + 1;
    return n;
}

/* Readies the version to be changed, and room for the record of so many changes. */
static int begin_locked(struct kinf_indexer *indexer, struct write *write, size_t n_changes_max)
    KINF__REQUIRES(indexer->lock)
{
    *write = (struct write){ .version = indexer->current, .changes = write->few };
    write->n_changes_max = n_changes_max;
    if (n_changes_max > CHANGES_INLINE)
        write->changes = calloc(n_changes_max, sizeof write->changes[0]);
    if (write->changes == NULL)
        return KINF_ERR_NO_MEMORY;
    /* Who gave a reference up has read before; acquire puts our changes behind that. */
    if (atomic_load_explicit(&indexer->current->refs, memory_order_acquire) != 1) {
        write->version = kinf__snapshot_copy(indexer->current);
        write->old = indexer->current;
    }
    if (write->version != NULL)
        return 0;
    if (write->changes != write->few)
        free(write->changes);
    return KINF_ERR_NO_MEMORY;
}

static void end(struct write *write)
{
    if (write->changes != write->few)
        free(write->changes);
}

static void abort_locked(struct write *write)
{
    while (write->n_changes > 0)
        kinf__tree_take_back(&write->changes[--write->n_changes]);
    if (write->old != NULL)
        kinf_snapshot_unref(write->version);
    end(write);
}

static void commit_locked(struct kinf_indexer *indexer, struct write *write,
                          const char *resource_version) KINF__REQUIRES(indexer->lock)
{
    if (resource_version != NULL && resource_version[0] != '\0')
        strcpy(write->version->resource_version, resource_version);
    indexer->current = write->version;
}

/* Gives up what the write replaced; without the lock. */
static void settle(struct kinf_indexer *indexer, struct write *write)
{
    struct kinf__dead_nodes dead = KINF__DEAD_NODES_INIT;

    for (size_t i = 0; i < write->n_changes; i++)
        kinf__tree_settle(&write->changes[i], &dead);
    kinf__graveyard_bury(indexer->graveyard, &dead);
    kinf_snapshot_unref(write->old);
    end(write);
    kinf__graveyard_reap(indexer->graveyard, REAPED_BY_WRITE);
}

static int set_in(struct write *write, struct kinf__tree *tree, struct kinf__entry *entry,
                  uint32_t value)
{
    assert(write->n_changes < write->n_changes_max);
    if (kinf__tree_set(tree, entry, value, &write->changes[write->n_changes]) < 0)
        return KINF_ERR_NO_MEMORY;
    write->n_changes++;
    return 0;
}

static int remove_from(struct write *write, struct kinf__tree *tree, struct kinf__key key)
{
    assert(write->n_changes < write->n_changes_max);
    if (kinf__tree_remove(tree, key, &write->changes[write->n_changes]) < 0)
        return KINF_ERR_NO_MEMORY;
    write->n_changes++;
    return 0;
}

/* --- index values ---------------------------------------------------------------------------- */

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
static int change_index(struct write *write, uint32_t index, const struct kinf__entry *old,
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

static int change_indices(struct write *write, const struct kinf__entry *old,
                          struct kinf__entry *entry)
{
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < write->version->set->n; i++)
        result = change_index(write, i, old, entry);
    return result;
}

/* --- add and delete -------------------------------------------------------------------------- */

static int check_resource_version(const char *resource_version, struct kinf_error *err)
{
    if (resource_version == NULL || strlen(resource_version) < KINF__RESOURCE_VERSION_SIZE)
        return 0;
    return kinf__error_set(err, KINF_ERR_LIMIT, "resourceVersion longer than %d bytes",
                           KINF__RESOURCE_VERSION_SIZE - 1);
}

static const struct kinf_object *object_of(const struct kinf__entry *entry)
{
    return entry != NULL ? entry->object : NULL;
}

/* Puts the entry in place of the one that is there. `*ret_old` gets a reference. */
static int add_locked(struct kinf_indexer *indexer, struct kinf__entry *entry, struct write *write,
                      const struct kinf_object **ret_old) KINF__REQUIRES(indexer->lock)
{
    struct kinf__entry *old =
        kinf__tree_get(&indexer->current->items, kinf__object_item_key(entry->object));

    if (begin_locked(indexer, write, 1 + count_values(old) + count_values(entry)) < 0)
        return KINF_ERR_NO_MEMORY;
    if (set_in(write, &write->version->items, entry, 0) < 0 ||
        change_indices(write, old, entry) < 0) {
        abort_locked(write);
        return KINF_ERR_NO_MEMORY;
    }
    write->version->count += old == NULL;
    commit_locked(indexer, write, kinf_object_resource_version(entry->object));
    if (ret_old != NULL)
        *ret_old = kinf_object_ref(object_of(old));
    return 0;
}

static struct kinf__index_set *current_set(struct kinf_indexer *indexer)
{
    struct kinf__index_set *set;

    kinf__mutex_lock(&indexer->lock);
    set = kinf__index_set_ref(indexer->current->set);
    kinf__mutex_unlock(&indexer->lock);
    return set;
}

/* One attempt with the indices that there are now; *ret_done is false if there were others in the
 * end. */
static int try_add(struct kinf_indexer *indexer, const struct kinf_object *object, bool *ret_done,
                   const struct kinf_object **ret_old)
{
    KINF__AUTO_INDEX_VALUES values = KINF__INDEX_VALUES_INIT;
    struct kinf__index_set *set = current_set(indexer);
    struct kinf__entry *entry = NULL;
    struct write write;
    int result = kinf__index_values_entry(&values, set, object, NULL, &entry);

    *ret_done = true;
    if (result == 0) {
        lock_for_write(indexer);
        *ret_done = indexer->current->set == set;
        if (*ret_done)
            result = add_locked(indexer, entry, &write, ret_old);
        kinf__mutex_unlock(&indexer->lock);
        if (*ret_done && result == 0) {
            atomic_fetch_add_explicit(&indexer->n_failed, values.n_failed, memory_order_relaxed);
            settle(indexer, &write);
        }
        kinf__entry_unref(entry);
    }
    kinf__index_set_unref(set);
    return result;
}

int kinf_indexer_add(struct kinf_indexer *indexer, const struct kinf_object *object,
                     const struct kinf_object **ret_old, struct kinf_error *err)
{
    bool is_done = false;
    int result = check_resource_version(kinf_object_resource_version(object), err);

    if (result < 0)
        return result;
    while (!is_done && result == 0)
        result = try_add(indexer, object, &is_done, ret_old);
    return result < 0 ? kinf__error_no_memory(err) : 0;
}

int kinf_indexer_update(struct kinf_indexer *indexer, const struct kinf_object *object,
                        const struct kinf_object **ret_old, struct kinf_error *err)
{
    return kinf_indexer_add(indexer, object, ret_old, err);
}

static int delete_locked(struct kinf_indexer *indexer, struct kinf_str key,
                         const char *resource_version, struct write *write,
                         const struct kinf_object **ret_old) KINF__REQUIRES(indexer->lock)
{
    struct kinf__key item_key = { { NULL, 0 }, key };
    struct kinf__entry *old = kinf__tree_get(&indexer->current->items, item_key);

    if (begin_locked(indexer, write, 1 + count_values(old)) < 0)
        return KINF_ERR_NO_MEMORY;
    if (old != NULL && (change_indices(write, old, NULL) < 0 ||
                        remove_from(write, &write->version->items, item_key) < 0)) {
        abort_locked(write);
        return KINF_ERR_NO_MEMORY;
    }
    write->version->count -= old != NULL;
    commit_locked(indexer, write, resource_version);
    if (ret_old != NULL)
        *ret_old = kinf_object_ref(object_of(old));
    return 0;
}

int kinf_indexer_delete(struct kinf_indexer *indexer, const char *key, const char *resource_version,
                        const struct kinf_object **ret_old, struct kinf_error *err)
{
    struct write write;
    int result = check_resource_version(resource_version, err);

    if (result < 0)
        return result;
    lock_for_write(indexer);
    result = delete_locked(indexer, kinf_str_from(key), resource_version, &write, ret_old);
    kinf__mutex_unlock(&indexer->lock);
    if (result < 0)
        return kinf__error_no_memory(err);
    settle(indexer, &write);
    return 0;
}

int kinf_indexer_bookmark(struct kinf_indexer *indexer, const char *resource_version,
                          struct kinf_error *err)
{
    struct write write;
    int result = check_resource_version(resource_version, err);

    if (result < 0)
        return result;
    lock_for_write(indexer);
    result = begin_locked(indexer, &write, 0);
    if (result == 0)
        commit_locked(indexer, &write, resource_version);
    kinf__mutex_unlock(&indexer->lock);
    if (result < 0)
        return kinf__error_no_memory(err);
    settle(indexer, &write);
    return 0;
}

/* --- whole versions -------------------------------------------------------------------------- */

/* Publishes a version made from `base`, unless the indices changed in between. */
static bool publish_if_same_set(struct kinf_indexer *indexer, const struct kinf_snapshot *base,
                                struct kinf_snapshot *version)
{
    struct kinf_snapshot *old = NULL;

    lock_for_write(indexer);
    if (indexer->current->set == base->set) {
        old = indexer->current;
        indexer->current = version;
    }
    kinf__mutex_unlock(&indexer->lock);
    kinf_snapshot_unref(old);
    return old != NULL;
}

static int try_replace(struct kinf_indexer *indexer, const struct kinf_object *const *objects,
                       size_t n_objects, const char *resource_version, bool *ret_done)
{
    KINF__AUTO_INDEX_VALUES values = KINF__INDEX_VALUES_INIT;
    kinf_auto_snapshot struct kinf_snapshot *base = kinf_indexer_snapshot(indexer);
    struct kinf_snapshot *version;

    if (kinf__snapshot_build(base, objects, n_objects, &values, &version) < 0)
        return KINF_ERR_NO_MEMORY;
    strcpy(version->resource_version, resource_version);
    *ret_done = publish_if_same_set(indexer, base, version);
    if (*ret_done)
        atomic_fetch_add_explicit(&indexer->n_failed, values.n_failed, memory_order_relaxed);
    else
        kinf_snapshot_unref(version);
    return 0;
}

int kinf_indexer_replace(struct kinf_indexer *indexer, const struct kinf_object *const *objects,
                         size_t n_objects, const char *resource_version, struct kinf_error *err)
{
    bool is_done = false;
    int result = check_resource_version(resource_version, err);

    if (result < 0)
        return result;
    /* This takes as long as the store is large anyway; and so no more than one replaced version
     * ever waits to be freed. */
    kinf__graveyard_reap(indexer->graveyard, SIZE_MAX);
    while (!is_done && result == 0)
        result = try_replace(indexer, objects, n_objects,
                             resource_version != NULL ? resource_version : "", &is_done);
    return result < 0 ? kinf__error_no_memory(err) : 0;
}

/* Keeps writes away, so that what is computed for every stored object stays complete. Readers go
 * on. */
static struct kinf_snapshot *begin_adding_indices(struct kinf_indexer *indexer)
{
    struct kinf_snapshot *base;

    lock_for_write(indexer);
    indexer->is_adding_indices = true;
    base = kinf_snapshot_ref(indexer->current);
    kinf__mutex_unlock(&indexer->lock);
    return base;
}

/* `version` NULL: leave the current one. */
static void end_adding_indices(struct kinf_indexer *indexer, struct kinf_snapshot *version)
{
    struct kinf_snapshot *old = NULL;

    kinf__mutex_lock(&indexer->lock);
    indexer->is_adding_indices = false;
    if (version != NULL) {
        old = indexer->current;
        indexer->current = version;
    }
    kinf__cond_broadcast(&indexer->writable);
    kinf__mutex_unlock(&indexer->lock);
    kinf_snapshot_unref(old);
}

int kinf_indexer_add_indices(struct kinf_indexer *indexer, const struct kinf_index *indices,
                             size_t n_indices, struct kinf_error *err)
{
    KINF__AUTO_INDEX_VALUES values = KINF__INDEX_VALUES_INIT;
    kinf_auto_snapshot struct kinf_snapshot *base = begin_adding_indices(indexer);
    struct kinf__index_set *set = NULL;
    struct kinf_snapshot *version = NULL;
    int result = kinf__index_set_new(base->set, indices, n_indices, &set, err);

    if (result == 0) {
        result = kinf__snapshot_reindex(base, set, &values, &version);
        if (result < 0)
            kinf__error_no_memory(err);
    }
    end_adding_indices(indexer, version);
    if (result == 0)
        atomic_fetch_add_explicit(&indexer->n_failed, values.n_failed, memory_order_relaxed);
    kinf__index_set_unref(set);
    return result;
}

/* --- life and the rest -------------------------------------------------------------------------
 */

int kinf_indexer_new(const struct kinf_index *indices, size_t n_indices,
                     struct kinf_indexer **ret_indexer, struct kinf_error *err)
{
    struct kinf__index_set *set = NULL;
    struct kinf_indexer *indexer;
    int result = kinf__index_set_new(NULL, indices, n_indices, &set, err);

    if (result < 0)
        return result;
    indexer = calloc(1, sizeof *indexer);
    if (indexer != NULL) {
        indexer->graveyard = kinf__graveyard_new();
        if (indexer->graveyard != NULL)
            indexer->current = kinf__snapshot_new(indexer->graveyard, set);
    }
    kinf__index_set_unref(set);
    if (indexer == NULL || indexer->current == NULL) {
        if (indexer != NULL)
            kinf__graveyard_unref(indexer->graveyard);
        free(indexer);
        return kinf__error_no_memory(err);
    }
    kinf__mutex_init(&indexer->lock, KINF__RANK_INDEXER);
    kinf__cond_init(&indexer->writable);
    *ret_indexer = indexer;
    return 0;
}

void kinf_indexer_free(struct kinf_indexer *indexer) KINF__NO_TSA
{
    if (indexer == NULL)
        return;
    kinf_snapshot_unref(indexer->current);
    kinf__graveyard_unref(indexer->graveyard);
    kinf__cond_release(&indexer->writable);
    kinf__mutex_release(&indexer->lock);
    free(indexer);
}

uint64_t kinf_indexer_failed_index_values(const struct kinf_indexer *indexer)
{
    return atomic_load_explicit(&indexer->n_failed, memory_order_relaxed);
}

struct kinf_snapshot *kinf_indexer_snapshot(struct kinf_indexer *indexer)
{
    struct kinf_snapshot *snapshot;

    kinf__mutex_lock(&indexer->lock);
    snapshot = kinf_snapshot_ref(indexer->current);
    kinf__mutex_unlock(&indexer->lock);
    return snapshot;
}

int kinf_indexer_get_by_key(struct kinf_indexer *indexer, const char *key,
                            const struct kinf_object **ret_object)
{
    const struct kinf_object *object;

    kinf__mutex_lock(&indexer->lock);
    object = kinf_object_ref(kinf_snapshot_get(indexer->current, key));
    kinf__mutex_unlock(&indexer->lock);
    if (object == NULL)
        return KINF_ERR_NOT_FOUND;
    *ret_object = object;
    return 0;
}

bool kinf__indexer_reap(struct kinf_indexer *indexer, size_t max_nodes)
{
    if (kinf__graveyard_reap(indexer->graveyard, max_nodes))
        return true;
    kinf__graveyard_trim(indexer->graveyard);
    return false;
}

const char *kinf__indexer_check(struct kinf_indexer *indexer)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);

    return kinf__snapshot_check(snapshot);
}
