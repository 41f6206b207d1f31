/*
 * The store: objects by key, and indices over them, in one ordered copy-on-write tree each.
 *
 * Every change makes a new version; a snapshot is one reference to a version and costs nothing to
 * take. Lists come out sorted by key, bytewise.
 *
 * Mirrors: cache.Store, cache.Indexer, cache.ThreadSafeStore. Differences: Delete, Get and Index
 * take what they need (a key, an object) and not interface{}; a failing index function never keeps
 * an object out of the store (upstream panics): the object is stored without that index's values
 * and counted, see kinf_indexer_failed_index_values().
 *
 * Threads: any thread. Writers exclude each other; readers of snapshots exclude nobody.
 */
#ifndef KINFORMER_INDEXER_H
#define KINFORMER_INDEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/error.h>
#include <kinformer/object.h>
#include <kinformer/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- index functions --- */

/* Collects the values of one object for one index. */
struct kinf_index_values;

/* Adds one value; adding a value twice is harmless. The bytes are copied. Errors: KINF_ERR_INVALID
 * (a NUL in the value), KINF_ERR_LIMIT (above 60,000 bytes), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_index_values_add(struct kinf_index_values *values,
                                                   const char *value, size_t len);

/* Computes the values of an object: zero, one or many calls of kinf_index_values_add(). Must depend
 * on the object alone. Returns 0, or a negative value if it failed: then what it added does not
 * count. Called on the thread that writes, with no lock held; it may read stores, but its writes get
 * KINF_ERR_STATE. Mirrors: cache.IndexFunc. */
typedef int kinf_index_cb(const struct kinf_object *object, struct kinf_index_values *values,
                          void *ctx);

/* One index. Either a path, whose strings, numbers and truths (as their JSON text) are the values,
 * or a function. */
struct kinf_index {
    const char *name; /* unique in its indexer; copied */
    const char *path; /* in the grammar of kinformer/path.h; copied; NULL if `function` is set */
    kinf_index_cb *function;
    void *ctx; /* the caller's, must outlive the indexer */
};

/* Ready-made: pods by spec.nodeName; any object by metadata.ownerReferences[*].uid. */
#define KINF_INDEX_BY_NODE_NAME                                                                    \
    {                                                                                              \
        "byNodeName", "spec.nodeName", NULL, NULL                                                  \
    }
#define KINF_INDEX_BY_OWNER_UID                                                                    \
    {                                                                                              \
        "byOwnerUID", "metadata.ownerReferences[*].uid", NULL, NULL                                \
    }

/* --- lists --- */

/* Objects with a reference each, sorted by key. All zero is empty. */
struct kinf_object_list {
    const struct kinf_object **items;
    size_t n_items;
};
#define KINF_OBJECT_LIST_INIT                                                                      \
    {                                                                                              \
        NULL, 0                                                                                    \
    }
KINF_API void kinf_object_list_release(struct kinf_object_list *list);
#define kinf_auto_object_list __attribute__((cleanup(kinf_object_list_release)))

/* Strings of their own, sorted bytewise, terminated. All zero is empty. */
struct kinf_string_list {
    char **items;
    size_t n_items;
};
#define KINF_STRING_LIST_INIT                                                                      \
    {                                                                                              \
        NULL, 0                                                                                    \
    }
KINF_API void kinf_string_list_release(struct kinf_string_list *list);
#define kinf_auto_string_list __attribute__((cleanup(kinf_string_list_release)))

/* --- the indexer --- */

struct kinf_indexer;

/* Errors: KINF_ERR_EXISTS (a name twice), KINF_ERR_PARSE (a path), KINF_ERR_INVALID,
 * KINF_ERR_NO_MEMORY. Mirrors: cache.NewIndexer. */
KINF_API KINF_MUST_CHECK int kinf_indexer_new(const struct kinf_index *indices, size_t n_indices,
                                              struct kinf_indexer **ret_indexer,
                                              struct kinf_error *err);
/* Snapshots that are still held stay valid. NULL is allowed. */
KINF_API void kinf_indexer_free(struct kinf_indexer *indexer);

/* Stores an object under its key, in place of the one that is there. Takes a reference of its own.
 * add and update are the same, as upstream. `ret_old`, if not NULL, receives the object that was
 * there (with a reference) or NULL. The store's resourceVersion becomes the object's, unless that
 * is "": it is overwritten, never compared. Errors, each with nothing changed: KINF_ERR_LIMIT
 * (resourceVersion above 63 bytes), KINF_ERR_NO_MEMORY. Mirrors: Store.Add, Store.Update. */
KINF_API KINF_MUST_CHECK int kinf_indexer_add(struct kinf_indexer *indexer,
                                              const struct kinf_object *object,
                                              const struct kinf_object **ret_old,
                                              struct kinf_error *err);
KINF_API KINF_MUST_CHECK int kinf_indexer_update(struct kinf_indexer *indexer,
                                                 const struct kinf_object *object,
                                                 const struct kinf_object **ret_old,
                                                 struct kinf_error *err);

/* Removes a key; that it is absent is no error. `resource_version`, if not NULL and not "", becomes
 * the store's even then. `ret_old` and errors as kinf_indexer_add(). Mirrors: Store.Delete. */
KINF_API KINF_MUST_CHECK int kinf_indexer_delete(struct kinf_indexer *indexer, const char *key,
                                                 const char *resource_version,
                                                 const struct kinf_object **ret_old,
                                                 struct kinf_error *err);

/* One change of a transaction: an object to store, or a key to delete. */
struct kinf_store_change {
    const struct kinf_object *object; /* NULL: delete `key` */
    const char *key;                  /* unused with an object */
    const char *resource_version;     /* as above; with an object NULL: the object's */
};

/* Does all of the changes, in their order, or none: no snapshot shows a part of them. The store's
 * resourceVersion becomes that of the last change that has one. Errors as kinf_indexer_add(), and
 * KINF_ERR_INVALID (neither object nor key). Mirrors: TransactionStore.Transaction. */
KINF_API KINF_MUST_CHECK int kinf_indexer_transaction(struct kinf_indexer *indexer,
                                                      const struct kinf_store_change *changes,
                                                      size_t n_changes, struct kinf_error *err);

/* Replaces the whole content and the resourceVersion by one swap; of two objects with one key the
 * last wins. The new version is built outside the lock: concurrent writers wait only for the swap,
 * and what they wrote in between is replaced too. `resource_version` NULL is "". Errors as
 * kinf_indexer_add(). Mirrors: Store.Replace. */
KINF_API KINF_MUST_CHECK int kinf_indexer_replace(struct kinf_indexer *indexer,
                                                  const struct kinf_object *const *objects,
                                                  size_t n_objects, const char *resource_version,
                                                  struct kinf_error *err);

/* Sets the resourceVersion alone (a bookmark), unless it is NULL or "". Errors as
 * kinf_indexer_add(). Mirrors: Store.Bookmark. */
KINF_API KINF_MUST_CHECK int kinf_indexer_bookmark(struct kinf_indexer *indexer,
                                                   const char *resource_version,
                                                   struct kinf_error *err);

/* Adds indices, also when there are objects already. All or none. Readers go on meanwhile, writers
 * wait: so an index function must not write to its indexer. Errors: KINF_ERR_EXISTS (a name is
 * taken), KINF_ERR_PARSE, KINF_ERR_INVALID, KINF_ERR_NO_MEMORY. Mirrors: Indexer.AddIndexers. */
KINF_API KINF_MUST_CHECK int kinf_indexer_add_indices(struct kinf_indexer *indexer,
                                                      const struct kinf_index *indices,
                                                      size_t n_indices, struct kinf_error *err);

/* How often an index function failed so far; each object concerned is stored without that index's
 * values. */
KINF_API uint64_t kinf_indexer_failed_index_values(const struct kinf_indexer *indexer);

/* The current version, with a reference for the caller; never NULL. */
KINF_API struct kinf_snapshot *kinf_indexer_snapshot(struct kinf_indexer *indexer);

/* The object of a key, with a reference for the caller. Errors: KINF_ERR_NOT_FOUND. Mirrors:
 * Store.Get, Store.GetByKey. For many reads in a row a snapshot is cheaper and consistent. */
KINF_API KINF_MUST_CHECK int kinf_indexer_get_by_key(struct kinf_indexer *indexer, const char *key,
                                                     const struct kinf_object **ret_object);

/* --- snapshots: all reading --- */

struct kinf_snapshot;

KINF_API struct kinf_snapshot *kinf_snapshot_ref(struct kinf_snapshot *snapshot);
KINF_API void kinf_snapshot_unref(struct kinf_snapshot *snapshot); /* NULL is allowed */
KINF_API void kinf_snapshot_unref_ptr(struct kinf_snapshot **snapshot);
#define kinf_auto_snapshot __attribute__((cleanup(kinf_snapshot_unref_ptr)))

/* Objects in it. */
KINF_API size_t kinf_snapshot_count(const struct kinf_snapshot *snapshot);
/* "" before the first write that set one. Valid while the snapshot is held. */
KINF_API const char *kinf_snapshot_resource_version(const struct kinf_snapshot *snapshot);

/* The object of a key, borrowed while the snapshot is held; NULL if there is none. Mirrors:
 * Store.Get, Store.GetByKey. */
KINF_API const struct kinf_object *kinf_snapshot_get(const struct kinf_snapshot *snapshot,
                                                     const char *key);

/*
 * A cursor walks objects in the order of their keys. It is a plain struct, needs no release, and is
 * valid while its snapshot is held.
 */
#define KINF_CURSOR_MAX_LEVELS 16
struct kinf_cursor {
    const struct kinf_snapshot *snapshot;
    struct kinf_str prefix; /* of the key, or the value of the index: borrowed from the caller */
    unsigned n_levels;
    bool is_index;
    struct {
        const void *node;
        unsigned slot;
    } levels[KINF_CURSOR_MAX_LEVELS];
};

/* All objects. */
KINF_API void kinf_cursor_all(struct kinf_cursor *cursor, const struct kinf_snapshot *snapshot);
/* Objects whose key starts with `prefix`, which must stay valid: "ns/" lists a namespace. */
KINF_API void kinf_cursor_prefix(struct kinf_cursor *cursor, const struct kinf_snapshot *snapshot,
                                 struct kinf_str prefix);
/* Objects whose key is above `key`: goes on where a page ended. */
KINF_API void kinf_cursor_after(struct kinf_cursor *cursor, const struct kinf_snapshot *snapshot,
                                const char *key);
/* Objects that have `value` in an index; `value` must stay valid. Errors: KINF_ERR_NOT_FOUND (no
 * index of this name). */
KINF_API KINF_MUST_CHECK int kinf_cursor_index(struct kinf_cursor *cursor,
                                               const struct kinf_snapshot *snapshot,
                                               const char *index, struct kinf_str value,
                                               struct kinf_error *err);
/* The next object, borrowed while the snapshot is held; NULL at the end. */
KINF_API const struct kinf_object *kinf_cursor_next(struct kinf_cursor *cursor);

/* --- upstream's calls, for those who look for them; each reads one snapshot --- */

/* Mirrors: Store.List, Store.ListKeys. Errors: KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_indexer_list(struct kinf_indexer *indexer,
                                               struct kinf_object_list *ret_list,
                                               struct kinf_error *err);
KINF_API KINF_MUST_CHECK int kinf_indexer_list_keys(struct kinf_indexer *indexer,
                                                    struct kinf_string_list *ret_keys,
                                                    struct kinf_error *err);
/* Objects that share at least one value of the index with `probe` (which need not be stored), each
 * once, sorted by key. Errors: KINF_ERR_NOT_FOUND (no such index), KINF_ERR_INVALID (the index
 * function fails on `probe`), KINF_ERR_NO_MEMORY. Mirrors: Indexer.Index. */
KINF_API KINF_MUST_CHECK int kinf_indexer_index(struct kinf_indexer *indexer, const char *index,
                                                const struct kinf_object *probe,
                                                struct kinf_object_list *ret_list,
                                                struct kinf_error *err);
/* Mirrors: Indexer.ByIndex, Indexer.IndexKeys. Errors: KINF_ERR_NOT_FOUND (no such index). */
KINF_API KINF_MUST_CHECK int kinf_indexer_by_index(struct kinf_indexer *indexer, const char *index,
                                                   const char *value,
                                                   struct kinf_object_list *ret_list,
                                                   struct kinf_error *err);
KINF_API KINF_MUST_CHECK int kinf_indexer_index_keys(struct kinf_indexer *indexer,
                                                     const char *index, const char *value,
                                                     struct kinf_string_list *ret_keys,
                                                     struct kinf_error *err);
/* Distinct values, sorted; none for an unknown index. Mirrors: Indexer.ListIndexFuncValues. */
KINF_API KINF_MUST_CHECK int kinf_indexer_list_index_values(struct kinf_indexer *indexer,
                                                            const char *index,
                                                            struct kinf_string_list *ret_values,
                                                            struct kinf_error *err);
/* Names of the indices, sorted. Mirrors: Indexer.GetIndexers. */
KINF_API KINF_MUST_CHECK int kinf_indexer_get_indices(struct kinf_indexer *indexer,
                                                      struct kinf_string_list *ret_names,
                                                      struct kinf_error *err);
/* Copies the store's resourceVersion with its NUL. Errors: KINF_ERR_LIMIT. Mirrors:
 * Store.LastStoreSyncResourceVersion. */
KINF_API KINF_MUST_CHECK int kinf_indexer_resource_version(struct kinf_indexer *indexer, char *buf,
                                                           size_t size);

#ifdef __cplusplus
}
#endif
#endif
