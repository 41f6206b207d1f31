/*
 * The indexer: one current version, and replacing it. Neighbours: write.c changes a version,
 * rebuild.c makes whole ones, index_set.c asks index functions, snapshot.c reads.
 *
 * A write computes index values first, without the lock; under it write.c changes the version, and
 * what was replaced is given up after unlocking. Versions made from scratch (replace, added
 * indices) are built outside the lock.
 *
 * Invariant: index values of every entry belong to the set of the version that it is in. A write
 * that finds another set than the one it computed for starts anew.
 */
#include "indexer/indexer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/misuse.h"
#include "indexer/rebuild.h"
#include "indexer/write.h"

/* Of dead nodes, between two looks at whether to stop. */
#define REAPED_AT_ONCE 1000

struct kinf_indexer {
    struct kinf__graveyard *graveyard; /* constant */
    const void *owner;                 /* constant; NULL: nobody's */
    _Atomic(uint64_t) n_failed;        /* atomic */
    struct kinf__mutex lock;
    struct kinf__cond writable;
    /* guarded by lock */
    struct kinf_snapshot *current; /* never NULL */
    bool is_adding_indices;        /* writes wait meanwhile */
    bool is_interrupted;           /* then they do not */
};

static _Thread_local const void *adding_for;

/* Has the lock in any case. KINF_ERR_STOPPED: nothing may be written. */
static int lock_for_write(struct kinf_indexer *indexer) KINF__ACQUIRES(indexer->lock)
{
    kinf__mutex_lock(&indexer->lock);
    while (indexer->is_adding_indices && !indexer->is_interrupted)
        kinf__cond_wait_until(&indexer->writable, &indexer->lock, KINF__NEVER_MS);
    return indexer->is_adding_indices ? KINF_ERR_STOPPED : 0;
}

static int not_written(int result, struct kinf_error *err)
{
    return result == KINF_ERR_STOPPED
               ? kinf__error_set(err, result, "stopped in the midst of a write")
               : kinf__error_no_memory(err);
}

/* --- single changes --- */

/* What it waited for might be this thread. */
static int check_may_write(struct kinf_error *err)
{
    if (kinf__index_function_is_running())
        return kinf__error_set(err, KINF_ERR_STATE, "an index function writes to no store");
    return 0;
}

static int check_resource_version(const char *resource_version, struct kinf_error *err)
{
    if (resource_version == NULL || strlen(resource_version) < KINF__RESOURCE_VERSION_SIZE)
        return 0;
    return kinf__error_set(err, KINF_ERR_LIMIT, "resourceVersion longer than %d bytes",
                           KINF__RESOURCE_VERSION_SIZE - 1);
}

static const char *rv_of(const struct kinf_store_change *change)
{
    return change->object != NULL && change->resource_version == NULL
               ? kinf_object_resource_version(change->object)
               : change->resource_version;
}

static int check_changes(const struct kinf_store_change *changes, size_t n_changes,
                         struct kinf_error *err)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < n_changes; i++) {
        if (changes[i].object == NULL && changes[i].key == NULL)
            return kinf__error_set(err, KINF_ERR_INVALID, "change %zu has no object and no key", i);
        result = check_resource_version(rv_of(&changes[i]), err);
    }
    return result;
}

/* Does the changes to the current version. `*ret_old` is what the last of them replaced, with a
 * reference. */
static int write_locked(struct kinf_indexer *indexer, const struct kinf_store_change *changes,
                        struct kinf__entry *const *entries, size_t n_changes,
                        struct kinf__write *write, const struct kinf_object **ret_old)
    KINF__REQUIRES(indexer->lock)
{
    const struct kinf_object *old = NULL;
    const char *rv = NULL;
    int result = kinf__write_begin(write, indexer->current);

    if (result < 0)
        return result;
    for (size_t i = 0; result == 0 && i < n_changes; i++) {
        const char *own_rv = rv_of(&changes[i]);

        if (entries[i] != NULL)
            result = kinf__write_set(write, entries[i], &old);
        else
            result = kinf__write_remove(write, changes[i].key, &old);
        if (own_rv != NULL && own_rv[0] != '\0')
            rv = own_rv;
    }
    if (result < 0) {
        kinf__write_abort(write);
        return result;
    }
    indexer->current = kinf__write_commit(write, rv);
    *ret_old = kinf_object_ref(old);
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

/* NULL for each change that deletes. */
static int make_entries(const struct kinf__index_set *set, const struct kinf_store_change *changes,
                        size_t n_changes, struct kinf__entry **entries, uint64_t *ret_n_failed)
{
    KINF__AUTO_INDEX_VALUES values = KINF__INDEX_VALUES_INIT;
    int result = 0;

    for (size_t i = 0; result == 0 && i < n_changes; i++) {
        if (changes[i].object != NULL)
            result = kinf__index_values_entry(&values, set, changes[i].object, NULL, &entries[i]);
    }
    *ret_n_failed = values.n_failed;
    return result;
}

/* One attempt with the indices that there are now; *ret_done is false if there were others in the
 * end. */
static int try_write(struct kinf_indexer *indexer, const struct kinf_store_change *changes,
                     size_t n_changes, struct kinf__entry **entries, bool *ret_done,
                     const struct kinf_object **ret_old)
{
    struct kinf__index_set *set = current_set(indexer);
    struct kinf__write write;
    uint64_t n_failed;
    int result = make_entries(set, changes, n_changes, entries, &n_failed);

    *ret_done = true;
    if (result == 0) {
        result = lock_for_write(indexer);
        *ret_done = indexer->current->set == set;
        if (result == 0 && *ret_done)
            result = write_locked(indexer, changes, entries, n_changes, &write, ret_old);
        kinf__mutex_unlock(&indexer->lock);
        if (*ret_done && result == 0) {
            atomic_fetch_add_explicit(&indexer->n_failed, n_failed, memory_order_relaxed);
            kinf__write_settle(&write, indexer->graveyard);
        }
    }
    for (size_t i = 0; i < n_changes; i++) {
        if (entries[i] != NULL)
            kinf__entry_unref(entries[i]);
        entries[i] = NULL;
    }
    kinf__index_set_unref(set);
    return result;
}

/* `ret_old` may be NULL. */
static int write_all(struct kinf_indexer *indexer, const struct kinf_store_change *changes,
                     size_t n_changes, const struct kinf_object **ret_old, struct kinf_error *err)
{
    struct kinf__entry *one[1] = { NULL };
    struct kinf__entry **entries = one;
    const struct kinf_object *old = NULL;
    bool is_done = false;
    int result = check_may_write(err);

    if (result == 0)
        result = check_changes(changes, n_changes, err);
    if (result < 0)
        return result;
    if (n_changes > 1)
        entries = calloc(n_changes, sizeof entries[0]);
    if (entries == NULL)
        return kinf__error_no_memory(err);
    while (!is_done && result == 0)
        result = try_write(indexer, changes, n_changes, entries, &is_done, &old);
    if (entries != one)
        free(entries);
    if (result < 0)
        return not_written(result, err);
    if (ret_old != NULL)
        *ret_old = old;
    else
        kinf_object_unref(old);
    return 0;
}

int kinf_indexer_add(struct kinf_indexer *indexer, const struct kinf_object *object,
                     const struct kinf_object **ret_old, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer, object);

    const struct kinf_store_change change = { .object = object };

    return write_all(indexer, &change, 1, ret_old, err);
}

int kinf_indexer_update(struct kinf_indexer *indexer, const struct kinf_object *object,
                        const struct kinf_object **ret_old, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer, object);
    return kinf_indexer_add(indexer, object, ret_old, err);
}

int kinf_indexer_delete(struct kinf_indexer *indexer, const char *key, const char *resource_version,
                        const struct kinf_object **ret_old, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer, key);

    const struct kinf_store_change change = { NULL, key, resource_version };

    return write_all(indexer, &change, 1, ret_old, err);
}

int kinf_indexer_transaction(struct kinf_indexer *indexer, const struct kinf_store_change *changes,
                             size_t n_changes, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer);
    if (n_changes != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, changes);
    return write_all(indexer, changes, n_changes, NULL, err);
}

/* --- whole versions --- */

/* Publishes a version made for these indices; *ret_done is false if there are others now. */
static int publish_if_same_set(struct kinf_indexer *indexer, const struct kinf__index_set *set,
                               struct kinf_snapshot *version, bool *ret_done)
{
    struct kinf_snapshot *old = NULL;
    int result = lock_for_write(indexer);

    if (result == 0 && indexer->current->set == set) {
        old = indexer->current;
        version->n_writes = old->n_writes + 1;
        indexer->current = version;
    }
    kinf__mutex_unlock(&indexer->lock);
    kinf_snapshot_unref(old);
    *ret_done = old != NULL;
    return result;
}

static int try_replace(struct kinf_indexer *indexer, const struct kinf__join *join,
                       const char *resource_version, bool *ret_done)
{
    KINF__AUTO_INDEX_VALUES values = KINF__INDEX_VALUES_INIT;
    struct kinf__index_set *set = current_set(indexer);
    struct kinf_snapshot *version;
    int result = kinf__snapshot_build(join, set, &values, &version);

    if (result == 0) {
        strcpy(version->resource_version, resource_version);
        result = publish_if_same_set(indexer, set, version, ret_done);
        if (*ret_done)
            atomic_fetch_add_explicit(&indexer->n_failed, values.n_failed, memory_order_relaxed);
        else
            kinf_snapshot_unref(version);
    }
    kinf__index_set_unref(set);
    return result;
}

int kinf__indexer_replace(struct kinf_indexer *indexer, const struct kinf__join *join,
                          const char *resource_version, struct kinf_error *err)
{
    bool is_done = false;
    int result = check_may_write(err);

    if (result == 0)
        result = check_resource_version(resource_version, err);
    if (result < 0)
        return result;
    /* This takes as long as the store is large anyway; and so no more than one replaced version
     * ever waits to be freed. */
    while (!kinf__stop_is_set(join->stop) &&
           kinf__graveyard_reap(indexer->graveyard, REAPED_AT_ONCE))
        continue;
    while (!is_done && result == 0)
        result =
            try_replace(indexer, join, resource_version != NULL ? resource_version : "", &is_done);
    return result < 0 ? not_written(result, err) : 0;
}

int kinf_indexer_replace(struct kinf_indexer *indexer, const struct kinf_object *const *objects,
                         size_t n_objects, const char *resource_version, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer);
    if (n_objects != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, objects);

    struct kinf__join join;
    int result = kinf__join_init(&join, kinf_indexer_snapshot(indexer), objects, n_objects, NULL);

    if (result < 0)
        return kinf__error_no_memory(err);
    result = kinf__indexer_replace(indexer, &join, resource_version, err);
    kinf__join_release(&join);
    return result;
}

int kinf_indexer_bookmark(struct kinf_indexer *indexer, const char *resource_version,
                          struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer);

    struct kinf__write write;
    int result = check_may_write(err);

    if (result == 0)
        result = check_resource_version(resource_version, err);
    if (result < 0)
        return result;
    result = lock_for_write(indexer);
    if (result == 0)
        result = kinf__write_begin(&write, indexer->current);
    if (result == 0)
        indexer->current = kinf__write_commit(&write, resource_version);
    kinf__mutex_unlock(&indexer->lock);
    if (result < 0)
        return not_written(result, err);
    kinf__write_settle(&write, indexer->graveyard);
    return 0;
}

/* Keeps writes away, so that what is computed for every stored object stays complete. Readers go
 * on. */
static struct kinf_snapshot *begin_adding_indices(struct kinf_indexer *indexer)
{
    struct kinf_snapshot *base;

    kinf__mutex_lock(&indexer->lock);
    while (indexer->is_adding_indices) /* untested: a race with a new index */
        kinf__cond_wait_until(&indexer->writable, &indexer->lock, KINF__NEVER_MS);
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
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer);
    if (n_indices != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indices);

    KINF__AUTO_INDEX_VALUES values = KINF__INDEX_VALUES_INIT;
    kinf_auto_snapshot struct kinf_snapshot *base = NULL;
    struct kinf__index_set *set = NULL;
    struct kinf_snapshot *version = NULL;
    int result = check_may_write(err);

    if (result < 0)
        return result;
    base = begin_adding_indices(indexer);
    result = kinf__index_set_new(base->set, indices, n_indices, &set, err);
    if (result == 0) {
        adding_for = indexer->owner;
        result = kinf__snapshot_reindex(base, set, &values, &version);
        adding_for = NULL;
        if (result < 0)
            kinf__error_no_memory(err);
    }
    end_adding_indices(indexer, version);
    if (result == 0)
        atomic_fetch_add_explicit(&indexer->n_failed, values.n_failed, memory_order_relaxed);
    kinf__index_set_unref(set);
    return result;
}

/* --- life and the rest --- */

int kinf_indexer_new(const struct kinf_index *indices, size_t n_indices,
                     struct kinf_indexer **ret_indexer, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, ret_indexer);
    if (n_indices != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indices);

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
    KINF__REFUSE_NULL(NULL, 0, indexer);
    return atomic_load_explicit(&indexer->n_failed, memory_order_relaxed);
}

struct kinf_snapshot *kinf_indexer_snapshot(struct kinf_indexer *indexer)
{
    KINF__REFUSE_NULL(NULL, NULL, indexer);

    struct kinf_snapshot *snapshot;

    kinf__mutex_lock(&indexer->lock);
    snapshot = kinf_snapshot_ref(indexer->current);
    kinf__mutex_unlock(&indexer->lock);
    return snapshot;
}

int kinf_indexer_get_by_key(struct kinf_indexer *indexer, const char *key,
                            const struct kinf_object **ret_object)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, indexer, key, ret_object);

    const struct kinf_object *object;

    kinf__mutex_lock(&indexer->lock);
    object = kinf_object_ref(kinf_snapshot_get(indexer->current, key));
    kinf__mutex_unlock(&indexer->lock);
    if (object == NULL)
        return KINF_ERR_NOT_FOUND;
    *ret_object = object;
    return 0;
}

void kinf__indexer_set_owner(struct kinf_indexer *indexer, const void *owner)
{
    indexer->owner = owner;
}

const void *kinf__indexer_adding_for(void)
{
    return adding_for;
}

void kinf__indexer_interrupt(struct kinf_indexer *indexer)
{
    kinf__mutex_lock(&indexer->lock);
    indexer->is_interrupted = true;
    kinf__cond_broadcast(&indexer->writable);
    kinf__mutex_unlock(&indexer->lock);
}

bool kinf__indexer_reap(struct kinf_indexer *indexer, size_t max_nodes)
{
    if (kinf__graveyard_reap(indexer->graveyard, max_nodes))
        return true;
    kinf__graveyard_trim(indexer->graveyard);
    return false;
}

bool kinf__indexer_may_have_garbage(const struct kinf_indexer *indexer)
{
    return kinf__graveyard_may_fill(indexer->graveyard);
}

const char *kinf__indexer_check(struct kinf_indexer *indexer)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);

    return kinf__snapshot_check(snapshot);
}
