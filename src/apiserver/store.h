/*
 * What the simulated server has: its resources, and the objects of each, in the store and the watch
 * cache that the served API reads. One counter gives every change its resourceVersion, as etcd's
 * revision does, whatever type it is of.
 *
 * Threads: one lock for all of it; every function wants it held but where it says otherwise.
 */
#ifndef KINF_APISERVER_STORE_H
#define KINF_APISERVER_STORE_H

#include <kinformer/indexer.h>

#include "base/lock.h"
#include "serve/server.h"
#include "document/schema.h"
#include "document/tree.h"
#include "watchcache/watchcache.h"

struct kinf__store;
struct kinf__feed;

/* One version of a resource. All of them have the same objects, with another apiVersion. */
struct kinf__resource_version {
    const struct kinf_type *type;
    struct kinf__feed *feed;                /* the store's: what readers and the writer share */
    const struct kinf__schema_node *schema; /* NULL: anything goes */
    struct kinf__schema *own_schema;        /* of a definition; NULL: it is the built-in one's */
    bool has_status;                        /* the subresource */
    bool has_scale;
    char *scale_spec_replicas; /* paths of a definition: ".spec.replicas"; NULL: none */
    char *scale_status_replicas;
    char *scale_selector;
};

struct kinf__resource;
/* Makes an object of the resource of one of its twin. Errors: KINF_ERR_NO_MEMORY. */
typedef int kinf__convert_cb(const struct kinf__resource *resource, struct cJSON *object);

struct kinf__resource {
    struct kinf__list node; /* the store's */
    char *group;
    char *name; /* "deployments" */
    char *singular;
    char *kind;
    char *short_names; /* as in types.h */
    char *categories;
    char *verbs;
    char *subresources;
    bool namespaced;
    bool is_custom;
    bool is_going; /* its definition is being deleted: nothing is created any more */
    struct kinf__resource_version *versions; /* those that are served, the preferred one first */
    size_t n_versions;
    struct kinf__resource *twin; /* NULL: none; kinf__store_pair() */
    kinf__convert_cb *convert;
};

/* Told of each change, with the lock held: it may note what it has to do, and must not write. `old`
 * or `object` NULL: created, deleted; both: everything may have changed. Borrowed during the call. */
typedef void kinf__store_change_cb(struct kinf__resource *resource, const struct kinf_object *old,
                                   const struct kinf_object *object, void *ctx);

struct kinf__store_options {
    struct kinf__server *server; /* borrowed */
    struct kinf__watchcache_limits limits;
    kinf__store_change_cb *on_change;
    void *ctx;
};

/* Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__store_new(const struct kinf__store_options *options,
                                    struct kinf__store **ret_store, struct kinf_error *err);
/* The server has stopped. Without the lock. NULL is allowed. */
void kinf__store_free(struct kinf__store *store);

/* Without it. */
void kinf__store_lock(struct kinf__store *store);
void kinf__store_unlock(struct kinf__store *store);
/* For condition variables of those who work under it. */
struct kinf__mutex *kinf__store_mutex(struct kinf__store *store);

/* The newest resourceVersion. Any thread, with the lock or without. */
uint64_t kinf__store_version(const struct kinf__store *store);
/* Tells every watch cache the newest version: bookmarks may say it. */
void kinf__store_catch_up(struct kinf__store *store);

/* --- resources --- */

/* A version as it is added; texts are copied, `own_schema` is taken over, also on failure. */
struct kinf__new_version {
    const char *name;
    const struct kinf__schema_node *schema;
    struct kinf__schema *own_schema;
    bool has_status, has_scale;
    const char *scale_spec_replicas, *scale_status_replicas, *scale_selector;
};

/* `like` has the texts and truths of the resource, which are copied. It is served from here on, but
 * not yet in discovery: kinf__resource_catalog_publish(). Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__store_add_resource(struct kinf__store *store,
                                             const struct kinf__resource *like,
                                             const struct kinf__new_version *versions,
                                             size_t n_versions,
                                             struct kinf__resource **ret_resource,
                                             struct kinf_error *err);
/* Of a definition that changed: its singular, short names and categories are those of `like`, or what
 * they were. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__resource_rename(struct kinf__resource *resource,
                                          const struct kinf__resource *like);
/* Two resources that are empty have the same objects from here on, each in its own form: what is
 * written to one is written to both. Of a change is told once, for the one that was written. */
void kinf__store_pair(struct kinf__resource *a, struct kinf__resource *b,
                      kinf__convert_cb *convert);
/* Of a definition that changed: versions that are new are filled, others go. Gives the lock up for
 * moments, as kinf__store_remove_resource() does. */
KINF_MUST_CHECK int kinf__store_set_versions(struct kinf__store *store,
                                             struct kinf__resource *resource,
                                             const struct kinf__new_version *versions,
                                             size_t n_versions, struct kinf_error *err);
/* Its watches end. Gives the lock up until they have: not on a connection's thread. */
void kinf__store_remove_resource(struct kinf__store *store, struct kinf__resource *resource);

/* NULL: none. */
struct kinf__resource *kinf__store_find(struct kinf__store *store, const char *group,
                                        const char *name);
/* Of the group that this apiVersion has. */
struct kinf__resource *kinf__store_find_kind(struct kinf__store *store, const char *api_version,
                                             const char *kind);
/* By kubectl's spelling: "pods", "po", "deployment", "deployments.apps", "deployments.v1.apps". NULL:
 * none. */
struct kinf__resource *kinf__store_find_spelling(struct kinf__store *store, const char *spelling);
/* Whether it has objects: reviews are answered and forgotten. */
bool kinf__resource_is_stored(const struct kinf__resource *resource);
/* One after another, from NULL to NULL. */
struct kinf__resource *kinf__store_next(struct kinf__store *store,
                                        const struct kinf__resource *resource);
/* Whether it is this one's plural, singular or short name. */
bool kinf__resource_is_called(const struct kinf__resource *resource, const char *name);
struct kinf__resource_version *kinf__resource_find_version(struct kinf__resource *resource,
                                                           const char *version);

/* Discovery as the store is now. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__resource_catalog_publish(struct kinf__store *store,
                                                   struct kinf__server *server);

/* --- objects --- */

/* Whether its deletion has begun. */
bool kinf__is_being_deleted(const struct cJSON *object);

/* `name_space` "": cluster-scoped. With a reference for the caller; NULL: none. */
const struct kinf_object *kinf__store_get(struct kinf__resource *resource, const char *name_space,
                                          const char *name);
/* The same as a tree of its own, with apiVersion and kind of the preferred version. Errors:
 * KINF_ERR_NOT_FOUND, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__store_read(struct kinf__resource *resource, const char *name_space,
                                     const char *name, struct cJSON **ret_object);
KINF_MUST_CHECK int kinf__store_to_tree(const struct kinf_object *object,
                                        struct cJSON **ret_object);
/* What would be stored of a tree, as an object of a version's type. Errors: as kinf__store_put(). */
KINF_MUST_CHECK int kinf__store_to_object(struct kinf__store *store, const struct kinf_type *type,
                                          const struct cJSON *tree,
                                          const struct kinf_object **ret_object,
                                          struct kinf_error *err);
bool kinf__store_has(struct kinf__resource *resource, const char *name_space, const char *name);
/* A version of all of its objects, with a reference for the caller. */
struct kinf_snapshot *kinf__store_snapshot(struct kinf__resource *resource);

/* Stores the object under its namespace and name, with the next resourceVersion, which is written
 * into it: in every version of the resource and of its twin or, failing, in none. Errors: KINF_ERR_INVALID (no object
 * of this type: no name), KINF_ERR_LIMIT (too large), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__store_put(struct kinf__store *store, struct kinf__resource *resource,
                                    struct cJSON *object, struct kinf_error *err);
/* The same of a text, which says the resourceVersion itself: the one after kinf__store_version().
 * For many objects that are known to be right. */
KINF_MUST_CHECK int kinf__store_put_text(struct kinf__store *store, struct kinf__resource *resource,
                                         struct kinf_str text, struct kinf_error *err);
/* Takes it out; that is a change with a version of its own, *ret_version (may be NULL). Errors:
 * KINF_ERR_NOT_FOUND, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__store_remove(struct kinf__store *store, struct kinf__resource *resource,
                                       const char *name_space, const char *name,
                                       uint64_t *ret_version);

/* All history is forgotten, as after a restart of the server: watches end with 410. */
void kinf__store_expire(struct kinf__store *store);

/* --- what a restore from a backup does --- */

struct kinf__backup;
KINF_MUST_CHECK int kinf__store_back_up(struct kinf__store *store,
                                        struct kinf__backup **ret_backup);
/* Objects and version are what they were: versions repeat. */
KINF_MUST_CHECK int kinf__store_restore(struct kinf__store *store,
                                        const struct kinf__backup *backup);
void kinf__backup_free(struct kinf__backup *backup); /* NULL is allowed */

#endif
