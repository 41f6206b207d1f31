/*
 * Objects: read, written, backed up. Neighbours: verbs.c decides what is written, resources.c has the
 * resources, feed.c what readers see of each version.
 */
#include "apiserver/store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/quote.h"
#include "object/object.h"

#include "apiserver/store_priv.h"

/* Callers elsewhere see no lock to reason about. */
void kinf__store_lock(struct kinf__store *store) KINF__NO_TSA
{
    kinf__mutex_lock(&store->lock);
}

void kinf__store_unlock(struct kinf__store *store) KINF__NO_TSA
{
    kinf__mutex_unlock(&store->lock);
}

struct kinf__mutex *kinf__store_mutex(struct kinf__store *store)
{
    return &store->lock;
}

uint64_t kinf__store_version(const struct kinf__store *store)
{
    return atomic_load(&store->feeds.version);
}

/* --- reading --- */

static struct kinf_indexer *first_indexer(const struct kinf__resource *resource)
{
    return kinf__feed_indexer(resource->versions[0].feed);
}

const struct kinf_object *kinf__store_get(struct kinf__resource *resource, const char *name_space,
                                          const char *name)
{
    const struct kinf_object *object;
    char key[2 * KINF_NAME_MAX + 2];
    int len = snprintf(key, sizeof key, "%s%s%s", name_space, *name_space != '\0' ? "/" : "", name);

    if (len < 0 || (size_t)len >= sizeof key ||
        kinf_indexer_get_by_key(first_indexer(resource), key, &object) < 0)
        return NULL;
    return object;
}

bool kinf__store_has(struct kinf__resource *resource, const char *name_space, const char *name)
{
    const kinf_auto_object struct kinf_object *object = kinf__store_get(resource, name_space, name);

    return object != NULL;
}

bool kinf__is_being_deleted(const struct cJSON *object)
{
    return *kinf__doc_text(object, "metadata", "deletionTimestamp", NULL) != '\0';
}

int kinf__store_to_tree(const struct kinf_object *object, struct cJSON **ret_object)
{
    const struct kinf_type *type = kinf_object_type(object);
    struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    char api_version[KINF__API_VERSION_SIZE];
    struct cJSON *tree = NULL, *body = NULL, *member;
    struct kinf_str text;
    int failed = kinf__object_body(object, &scratch, &text);

    kinf__type_api_version(type, api_version);
    if (failed == 0)
        failed = kinf__doc_parse(text, &body, NULL);
    kinf_scratch_release(&scratch);
    tree = cJSON_CreateObject();
    if (failed == 0 && (tree == NULL || kinf__doc_set_text(tree, "kind", type->kind) < 0 ||
                        kinf__doc_set_text(tree, "apiVersion", api_version) < 0))
        failed = KINF_ERR_NO_MEMORY;
    if (failed < 0 || body == NULL) {
        cJSON_Delete(body);
        cJSON_Delete(tree);
        return KINF_ERR_NO_MEMORY;
    }
    while ((member = body->child) != NULL) {
        cJSON_DetachItemViaPointer(body, member);
        cJSON_AddItemToArray(tree, member);
    }
    cJSON_Delete(body);
    *ret_object = tree;
    return 0;
}

int kinf__store_read(struct kinf__resource *resource, const char *name_space, const char *name,
                     struct cJSON **ret_object)
{
    /* What was written to a twin may be owed. */
    int failed = kinf__resource_settle(resource, NULL);
    const kinf_auto_object struct kinf_object *object = kinf__store_get(resource, name_space, name);

    if (failed < 0)
        return failed;
    return object != NULL ? kinf__store_to_tree(object, ret_object) : KINF_ERR_NOT_FOUND;
}

struct kinf_snapshot *kinf__store_snapshot(struct kinf__resource *resource)
{
    return kinf_indexer_snapshot(first_indexer(resource));
}

/* --- writing --- */

/* Without kind and apiVersion, which are the type's. */
static int print_body(const struct cJSON *object, struct kinf__buffer *text)
{
    const struct cJSON *member;
    const char *comma = "";

    text->len = 0;
    if (kinf__buffer_append(text, "{", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(member, object)
    {
        if (strcmp(member->string, "kind") == 0 || strcmp(member->string, "apiVersion") == 0)
            continue;
        if (kinf__buffer_append_str(text, kinf_str_from(comma)) < 0 ||
            kinf__quote(text, kinf_str_from(member->string)) < 0 ||
            kinf__buffer_append(text, ":", 1) < 0 || kinf__doc_print(member, text) < 0)
            return KINF_ERR_NO_MEMORY;
        comma = ",";
    }
    return kinf__buffer_append(text, "}", 1);
}

int kinf__store_to_object(struct kinf__store *store, const struct kinf_type *type,
                          const struct cJSON *tree, const struct kinf_object **ret_object,
                          struct kinf_error *err)
{
    if (print_body(tree, &store->text) < 0)
        return kinf__error_no_memory(err);
    return kinf__feeds_decode(&store->feeds, type, kinf__buffer_str(&store->text), ret_object, err);
}

/* `objects` of each version (kinf__resource_version_at()) are stored, or `removed`, of any version,
 * is removed. The store has its new version last: then every feed knows of the write. */
static int write_versions(struct kinf__store *store, struct kinf__resource *resource,
                          const struct kinf_object *const *objects,
                          const struct kinf_object *removed, struct kinf_error *err)
{
    struct kinf__feed_change change = { .is_removal = removed != NULL,
                                        .version = atomic_load(&store->feeds.version) + 1 };
    const struct kinf_object *first_old = NULL;
    struct kinf__resource_version *version;
    int failed = kinf__resource_settle(resource, err);

    for (size_t i = 0; failed == 0 && (version = kinf__resource_version_at(resource, i)) != NULL;
         i++) {
        const struct kinf_object *old = NULL;

        change.object = removed != NULL ? removed : objects[i];
        failed = kinf__feed_write(version->feed, &change, i == 0, &old, i == 0 ? err : NULL);
        if (i == 0)
            first_old = old;
        else
            kinf_object_unref(old);
    }
    if (failed < 0)
        return failed;
    atomic_store(&store->feeds.version, change.version);
    if (store->on_change != NULL)
        store->on_change(resource, first_old, removed != NULL ? NULL : objects[0], store->ctx);
    kinf_object_unref(first_old);
    return 0;
}

int kinf__store_put(struct kinf__store *store, struct kinf__resource *resource,
                    struct cJSON *object, struct kinf_error *err)
{
    struct cJSON *metadata = kinf__doc_object(object, "metadata");
    char version[KINF__VERSION_SIZE];

    kinf__print_version(atomic_load(&store->feeds.version) + 1, version);
    if (metadata == NULL || kinf__doc_set_text(metadata, "resourceVersion", version) < 0 ||
        print_body(object, &store->text) < 0)
        return kinf__error_no_memory(err);
    return kinf__store_put_text(store, resource, kinf__buffer_str(&store->text), err);
}

static int decode_versions(struct kinf__store *store, const struct kinf__resource *resource,
                           struct kinf_str text, const struct kinf_object **objects,
                           struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < resource->n_versions; i++)
        failed =
            kinf__feeds_decode(&store->feeds, resource->versions[i].type, text, &objects[i], err);
    return failed;
}

/* The text is the twin's. */
static int decode_converted(struct kinf__store *store, const struct kinf__resource *resource,
                            struct kinf_str text, const struct kinf_object **objects,
                            struct kinf_error *err)
{
    KINF__AUTO_BUFFER converted = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *tree = NULL;

    if (kinf__doc_parse(text, &tree, NULL) < 0 || resource->convert(resource, tree) < 0 ||
        print_body(tree, &converted) < 0)
        return kinf__error_no_memory(err);
    return decode_versions(store, resource, kinf__buffer_str(&converted), objects, err);
}

int kinf__store_put_text(struct kinf__store *store, struct kinf__resource *resource,
                         struct kinf_str text, struct kinf_error *err)
{
    const struct kinf__resource *twin = resource->twin;
    size_t n_objects = resource->n_versions + (twin != NULL ? twin->n_versions : 0);
    KINF__AUTO_FREE const struct kinf_object **objects =
        calloc(n_objects + 1, sizeof(struct kinf_object *));
    int failed;

    if (objects == NULL)
        return kinf__error_no_memory(err);
    /* All of them are made before any is stored. */
    failed = decode_versions(store, resource, text, objects, err);
    if (failed == 0 && twin != NULL)
        failed = decode_converted(store, twin, text, &objects[resource->n_versions], err);
    if (failed == 0)
        failed = write_versions(store, resource, objects, NULL, err);
    for (size_t i = 0; i < n_objects; i++)
        kinf_object_unref(objects[i]);
    return failed;
}

int kinf__store_remove(struct kinf__store *store, struct kinf__resource *resource,
                       const char *name_space, const char *name, uint64_t *ret_version)
{
    const struct kinf_object *object = kinf__store_get(resource, name_space, name);
    int failed =
        object != NULL ? write_versions(store, resource, NULL, object, NULL) : KINF_ERR_NOT_FOUND;

    kinf_object_unref(object);
    if (failed == 0 && ret_version != NULL)
        *ret_version = atomic_load(&store->feeds.version);
    return failed;
}

void kinf__store_catch_up(struct kinf__store *store)
{
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        for (size_t i = 0; i < resource->n_versions; i++) {
            if (resource->versions[i].feed != NULL)
                kinf__feed_catch_up(resource->versions[i].feed);
        }
    }
}

void kinf__store_expire(struct kinf__store *store)
{
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        for (size_t i = 0; i < resource->n_versions; i++) {
            if (resource->versions[i].feed != NULL)
                kinf__feed_expire(resource->versions[i].feed);
        }
    }
    kinf__store_catch_up(store);
}

/* --- life --- */

int kinf__store_new(const struct kinf__store_options *options, struct kinf__store **ret_store,
                    struct kinf_error *err)
{
    struct kinf__store *store = calloc(1, sizeof *store);
    int failed;

    if (store == NULL)
        return kinf__error_no_memory(err);
    store->feeds.server = options->server;
    store->feeds.limits = options->limits;
    store->on_change = options->on_change;
    store->ctx = options->ctx;
    failed = kinf__prune_plan_new(NULL, 0, NULL, 0, &store->feeds.plan, err);
    if (failed < 0) {
        free(store);
        return failed;
    }
    kinf__mutex_init(&store->lock, KINF__RANK_SIM);
    kinf__list_init(&store->resources);
    atomic_init(&store->feeds.version, 1);
    *ret_store = store;
    return 0;
}

void kinf__store_free(struct kinf__store *store)
{
    if (store == NULL)
        return;
    kinf__mutex_lock(&store->lock);
    while (!kinf__list_is_empty(&store->resources))
        kinf__store_remove_resource(
            store, KINF__LIST_ENTRY(store->resources.next, struct kinf__resource, node));
    kinf__mutex_unlock(&store->lock);
    kinf__mutex_release(&store->lock);
    kinf__prune_plan_free(store->feeds.plan);
    kinf__buffer_release(&store->text);
    free(store);
}

/* --- what a restore from a backup does --- */

struct kinf__backup {
    uint64_t version;
    size_t n_resources;
    struct {
        const struct kinf__resource *resource; /* only compared */
        struct kinf_snapshot *snapshot;
    } resources[];
};

int kinf__store_back_up(struct kinf__store *store, struct kinf__backup **ret_backup)
{
    struct kinf__backup *backup;
    size_t n_resources = 0;

    KINF__LIST_FOR_EACH (node, &store->resources)
        n_resources++;
    backup = calloc(1, sizeof *backup + n_resources * sizeof backup->resources[0]);
    if (backup == NULL)
        return KINF_ERR_NO_MEMORY;
    backup->version = atomic_load(&store->feeds.version);
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        if (!kinf__resource_is_stored(resource))
            continue;
        if (kinf__resource_settle(resource, NULL) < 0) {
            kinf__backup_free(backup);
            return KINF_ERR_NO_MEMORY;
        }
        backup->resources[backup->n_resources].resource = resource;
        backup->resources[backup->n_resources++].snapshot = kinf__store_snapshot(resource);
    }
    *ret_backup = backup;
    return 0;
}

void kinf__backup_free(struct kinf__backup *backup)
{
    for (size_t i = 0; backup != NULL && i < backup->n_resources; i++)
        kinf_snapshot_unref(backup->resources[i].snapshot);
    free(backup);
}

/* NULL: it was not there. */
static const struct kinf_snapshot *find_backup(const struct kinf__backup *backup,
                                               const struct kinf__resource *resource)
{
    for (size_t i = 0; i < backup->n_resources; i++) {
        if (backup->resources[i].resource == resource)
            return backup->resources[i].snapshot;
    }
    return NULL;
}

int kinf__store_restore(struct kinf__store *store, const struct kinf__backup *backup)
{
    int failed = 0;

    atomic_store(&store->feeds.version, backup->version);
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        if (!kinf__resource_is_stored(resource))
            continue;
        for (size_t i = 0; failed == 0 && i < resource->n_versions; i++)
            failed = kinf__feed_restore(resource->versions[i].feed, find_backup(backup, resource),
                                        backup->version);
        if (failed == 0 && store->on_change != NULL)
            store->on_change(resource, NULL, NULL, store->ctx);
    }
    return failed;
}
