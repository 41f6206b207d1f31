/*
 * Resources and objects. Neighbours: verbs.c decides what is written, serve/ reads the caches.
 *
 * A feed is one version of a resource: an indexer and its watch cache, registered with the server as
 * a source. It is written under the store's lock and outlives what is read from it: a source is
 * retired before its feed is freed.
 */
#include "apiserver/store.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "json/quote.h"
#include "object/object.h"
#include "apiserver/types.h"

#define VERSION_SIZE 24

/* A write, as one version of a resource sees it. */
struct change {
    const struct kinf_object *object;
    bool is_removal; /* of what has its key */
    uint64_t version;
};

struct kinf__feed {
    /* constant */
    struct kinf__store *store;
    const struct kinf_type *type;
    struct kinf_indexer *indexer;
    struct kinf__source *source;
    struct kinf__watchcache *cache;
    struct kinf__sink sink;
    struct kinf__mutex
        lock; /* for whoever writes, or tells versions: readers do not wait for others */
    /* guarded by lock */
    struct change owed; /* with a reference: what there was no memory for; object NULL: none */
    /* written under lock, read by anyone */
    _Atomic(uint64_t) version; /* up to which the cache was told everything */
};

struct kinf__store {
    /* constant */
    struct kinf__server *server;
    struct kinf__watchcache_limits limits;
    struct kinf__prune_plan *plan;
    kinf__store_change_cb *on_change;
    void *ctx;
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list resources;
    struct kinf__buffer text; /* of the object that is being written */
    /* written under lock, read by anyone */
    _Atomic(uint64_t) version;
};

/* Pods are asked for by node, by every kubelet. */
static const struct kinf_index by_node = KINF_INDEX_BY_NODE_NAME;

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
    return atomic_load(&store->version);
}

static void print_version(uint64_t version, char text[VERSION_SIZE])
{
    snprintf(text, VERSION_SIZE, "%" PRIu64, version);
}

/* --- feeds --- */

/* `*ret_old` is what was there, with a reference. */
static int write_locked(struct kinf__feed *feed, const struct change *change,
                        const struct kinf_object **ret_old, struct kinf_error *err)
    KINF__REQUIRES(feed->lock)
{
    /* What is removed does not know the version of its removal. */
    struct kinf__notification told = { .object = change->object,
                                       .final_state_unknown = change->is_removal };
    char text[VERSION_SIZE];
    int failed;

    print_version(change->version, text);
    failed = change->is_removal
                 ? kinf_indexer_delete(feed->indexer, kinf_object_key(change->object), text,
                                       &told.old, err)
                 : kinf_indexer_update(feed->indexer, change->object, &told.old, err);
    if (failed < 0)
        return failed;
    told.type = change->is_removal ? KINF__NOTIFY_DELETE
                : told.old == NULL ? KINF__NOTIFY_ADD
                                   : KINF__NOTIFY_UPDATE;
    feed->sink.on_write(KINF__WRITE_CHANGES, &told, 1, kinf__clock_now_ms(), feed->sink.ctx);
    atomic_store(&feed->version, change->version);
    *ret_old = told.old;
    return 0;
}

/* Writes what is owed. Errors: KINF_ERR_NO_MEMORY. */
static int settle_locked(struct kinf__feed *feed, struct kinf_error *err) KINF__REQUIRES(feed->lock)
{
    const struct kinf_object *old;
    int failed;

    if (feed->owed.object == NULL)
        return 0;
    failed = write_locked(feed, &feed->owed, &old, err);
    if (failed < 0)
        return failed;
    kinf_object_unref(old);
    kinf_object_unref(KINF__TAKE(feed->owed.object));
    return 0;
}

/* What a bookmark does. Without memory the cache stays behind until the next time. Every write up to
 * the store's version is in its feed, or owed to it. */
static void catch_up_locked(struct kinf__feed *feed) KINF__REQUIRES(feed->lock)
{
    uint64_t version = atomic_load(&feed->store->version);
    char text[VERSION_SIZE];

    if (settle_locked(feed, NULL) < 0 || atomic_load(&feed->version) >= version)
        return;
    print_version(version, text);
    if (kinf_indexer_bookmark(feed->indexer, text, NULL) < 0)
        return;
    feed->sink.on_write(KINF__WRITE_RESOURCE_VERSION, NULL, 0, kinf__clock_now_ms(),
                        feed->sink.ctx);
    atomic_store(&feed->version, version);
}

/* Of readers, too, which do not hold the store's lock. */
static void catch_up(void *ctx)
{
    struct kinf__feed *feed = ctx;

    if (atomic_load(&feed->version) >= atomic_load(&feed->store->version))
        return;
    kinf__mutex_lock(&feed->lock);
    catch_up_locked(feed);
    kinf__mutex_unlock(&feed->lock);
}

static bool has_node_index(const struct kinf_type *type)
{
    return *type->group == '\0' && strcmp(type->resource, "pods") == 0;
}

/* The lock is held: the server's ranks above it. */
static int serve_feed(struct kinf__feed *feed, struct kinf_error *err)
{
    const char *names[] = { by_node.name }, *paths[] = { by_node.path };
    struct kinf__source_options options = {
        .store = { feed->type, feed->indexer, catch_up, feed },
        .index_names = names,
        .index_paths = paths,
        .n_indices = has_node_index(feed->type),
        .limits = feed->store->limits,
    };
    int failed = kinf__server_add_source(feed->store->server, &options, &feed->source, err);

    if (failed < 0)
        return failed;
    feed->cache = kinf__source_cache(feed->source);
    feed->sink = kinf__watchcache_sink(feed->cache);
    kinf__server_publish_source(feed->store->server, feed->source);
    return 0;
}

/* Its server has no exchange of it any more. */
static void feed_free(struct kinf__feed *feed)
{
    if (feed == NULL)
        return;
    kinf__source_free(feed->source);
    kinf_object_unref(feed->owed.object);
    kinf_indexer_free(feed->indexer);
    kinf__mutex_release(&feed->lock);
    free(feed);
}

static int feed_new(struct kinf__store *store, const struct kinf_type *type,
                    struct kinf__feed **ret_feed, struct kinf_error *err)
{
    struct kinf__feed *feed = calloc(1, sizeof *feed);
    char text[VERSION_SIZE];
    int failed;

    if (feed == NULL)
        return kinf__error_no_memory(err);
    feed->store = store;
    feed->type = type;
    kinf__mutex_init(&feed->lock, KINF__RANK_FEED);
    atomic_init(&feed->version, atomic_load(&store->version));
    print_version(atomic_load(&feed->version), text);
    failed = kinf_indexer_new(&by_node, has_node_index(type), &feed->indexer, err);
    if (failed == 0)
        failed = kinf_indexer_replace(feed->indexer, NULL, 0, text, err);
    if (failed == 0)
        failed = serve_feed(feed, err);
    if (failed < 0) {
        feed_free(feed);
        return failed;
    }
    *ret_feed = feed;
    return 0;
}

/* --- versions of a resource --- */

static char *dup_or_null(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

static void version_release(struct kinf__resource_version *version)
{
    feed_free(version->feed);
    kinf__schema_free(version->own_schema);
    free(version->scale_spec_replicas);
    free(version->scale_status_replicas);
    free(version->scale_selector);
    *version = (struct kinf__resource_version){ 0 };
}

/* Of one that is all zero, what is not its feed. Consumes the schema. */
static int describe_version(struct kinf__resource_version *version,
                            const struct kinf__new_version *like, struct kinf_error *err)
{
    version->schema = like->schema;
    version->own_schema = like->own_schema;
    version->has_status = like->has_status;
    version->has_scale = like->has_scale;
    version->scale_spec_replicas = dup_or_null(like->scale_spec_replicas);
    version->scale_status_replicas = dup_or_null(like->scale_status_replicas);
    version->scale_selector = dup_or_null(like->scale_selector);
    if ((like->scale_spec_replicas == NULL || version->scale_spec_replicas != NULL) &&
        (like->scale_status_replicas == NULL || version->scale_status_replicas != NULL) &&
        (like->scale_selector == NULL || version->scale_selector != NULL))
        return 0;
    version_release(version);
    return kinf__error_no_memory(err);
}

/* Fills one that is all zero. Consumes the schema. */
static int version_init(struct kinf__store *store, const struct kinf__resource *resource,
                        const struct kinf__new_version *like,
                        struct kinf__resource_version *version, struct kinf_error *err)
{
    int failed = describe_version(version, like, err);

    if (failed < 0)
        return failed;
    failed = kinf_type_intern(resource->group, like->name, resource->kind, resource->name,
                              resource->namespaced, &version->type, err);
    if (failed == 0 && kinf__resource_is_stored(resource))
        failed = feed_new(store, version->type, &version->feed, err);
    if (failed < 0)
        version_release(version);
    return failed;
}

bool kinf__resource_is_stored(const struct kinf__resource *resource)
{
    return *resource->verbs == '\0' || kinf__has_word(resource->verbs, "list");
}

struct kinf__resource_version *kinf__resource_find_version(struct kinf__resource *resource,
                                                           const char *version)
{
    for (size_t i = 0; i < resource->n_versions; i++) {
        if (strcmp(resource->versions[i].type->version, version) == 0)
            return &resource->versions[i];
    }
    return NULL;
}

/* --- resources --- */

static void resource_free(struct kinf__resource *resource)
{
    for (size_t i = 0; i < resource->n_versions; i++)
        version_release(&resource->versions[i]);
    free(resource->versions);
    free(resource->group);
    free(resource->name);
    free(resource->singular);
    free(resource->kind);
    free(resource->short_names);
    free(resource->categories);
    free(resource->verbs);
    free(resource->subresources);
    free(resource);
}

static struct kinf__resource *resource_new(const struct kinf__resource *like)
{
    struct kinf__resource *resource = calloc(1, sizeof *resource);

    if (resource == NULL)
        return NULL;
    kinf__list_init(&resource->node);
    resource->group = strdup(like->group);
    resource->name = strdup(like->name);
    resource->singular = strdup(like->singular);
    resource->kind = strdup(like->kind);
    resource->short_names = strdup(like->short_names);
    resource->categories = strdup(like->categories);
    resource->verbs = strdup(like->verbs);
    resource->subresources = strdup(like->subresources);
    resource->namespaced = like->namespaced;
    resource->is_custom = like->is_custom;
    if (resource->group == NULL || resource->name == NULL || resource->singular == NULL ||
        resource->kind == NULL || resource->short_names == NULL || resource->categories == NULL ||
        resource->verbs == NULL || resource->subresources == NULL) {
        resource_free(resource);
        return NULL;
    }
    return resource;
}

static void free_schemas(const struct kinf__new_version *versions, size_t n_versions)
{
    for (size_t i = 0; i < n_versions; i++)
        kinf__schema_free(versions[i].own_schema);
}

/* Takes sources out of the server. The lock is given up meanwhile: whoever answers from them may
 * want it. */
static void retire(struct kinf__store *store, struct kinf__resource_version *versions,
                   size_t n_versions) KINF__NO_TSA
{
    kinf__mutex_unlock(&store->lock);
    for (size_t i = 0; i < n_versions; i++) {
        if (versions[i].feed != NULL)
            kinf__server_retire_source(store->server, versions[i].feed->source);
    }
    kinf__mutex_lock(&store->lock);
}

int kinf__store_add_resource(struct kinf__store *store, const struct kinf__resource *like,
                             const struct kinf__new_version *versions, size_t n_versions,
                             struct kinf__resource **ret_resource, struct kinf_error *err)
{
    struct kinf__resource *resource = resource_new(like);
    int failed = 0;

    if (resource != NULL)
        resource->versions = calloc(n_versions + 1, sizeof *resource->versions);
    if (resource == NULL || resource->versions == NULL) {
        free_schemas(versions, n_versions);
        if (resource != NULL)
            resource_free(resource);
        return kinf__error_no_memory(err);
    }
    for (size_t i = 0; i < n_versions; i++) {
        failed = version_init(store, resource, &versions[i], &resource->versions[i], err);
        if (failed < 0) {
            free_schemas(&versions[i + 1], n_versions - i - 1);
            retire(store, resource->versions, resource->n_versions);
            resource_free(resource);
            return failed;
        }
        resource->n_versions++;
    }
    kinf__list_push_back(&store->resources, &resource->node);
    *ret_resource = resource;
    return 0;
}

void kinf__store_remove_resource(struct kinf__store *store, struct kinf__resource *resource)
{
    kinf__list_remove(&resource->node);
    retire(store, resource->versions, resource->n_versions);
    resource_free(resource);
}

/* Nothing is written to a version that is owed something. Errors: KINF_ERR_NO_MEMORY. */
static int settle_all(struct kinf__resource *resource, struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < resource->n_versions; i++) {
        struct kinf__feed *feed = resource->versions[i].feed;

        kinf__mutex_lock(&feed->lock);
        failed = settle_locked(feed, err);
        kinf__mutex_unlock(&feed->lock);
    }
    return failed;
}

static int decode(const struct kinf__store *store, const struct kinf_type *type,
                  struct kinf_str text, const struct kinf_object **ret_object,
                  struct kinf_error *err)
{
    struct kinf__object_decoder decoder;
    size_t len;
    int failed;

    kinf__object_decoder_init(&decoder, type, store->plan);
    failed = kinf__object_decode(&decoder, text, true, ret_object, &len, err);
    kinf__object_decoder_release(&decoder);
    return failed == KINF_ERR_PARSE ? KINF_ERR_INVALID : failed;
}

/* An object of one version, as one of another. */
static int copy_to_feed(struct kinf__feed *feed, const struct kinf_object *object,
                        struct kinf_error *err)
{
    struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const struct kinf_object *copy = NULL;
    struct kinf_str body;
    int failed = kinf__object_body(object, &scratch, &body);

    if (failed == 0)
        failed = decode(feed->store, feed->type, body, &copy, err);
    if (failed == 0)
        failed = kinf_indexer_add(feed->indexer, copy, NULL, err);
    kinf_object_unref(copy);
    kinf_scratch_release(&scratch);
    return failed;
}

/* A new version has what the others have; its history begins then. */
static int fill_feed(struct kinf__feed *feed, struct kinf__feed *from, struct kinf_error *err)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(from->indexer);
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    char text[VERSION_SIZE];
    int failed = 0;

    kinf__watchcache_set_enabled(feed->cache, false);
    kinf_cursor_all(&cursor, snapshot);
    while (failed == 0 && (object = kinf_cursor_next(&cursor)) != NULL)
        failed = copy_to_feed(feed, object, err);
    print_version(atomic_load(&feed->version), text);
    if (failed == 0)
        failed = kinf_indexer_bookmark(feed->indexer, text, err);
    kinf__watchcache_set_enabled(feed->cache, true);
    return failed;
}

/* One that goes on takes its feed along. */
static int change_version(struct kinf__store *store, struct kinf__resource *resource,
                          const struct kinf__new_version *like,
                          struct kinf__resource_version *version, struct kinf_error *err)
{
    struct kinf__resource_version *old = kinf__resource_find_version(resource, like->name);
    int failed;

    if (old == NULL) {
        failed = version_init(store, resource, like, version, err);
        return failed == 0 && resource->n_versions != 0
                   ? fill_feed(version->feed, resource->versions[0].feed, err)
                   : failed;
    }
    failed = describe_version(version, like, err);
    if (failed < 0)
        return failed;
    version->type = old->type;
    version->feed = old->feed;
    return 0;
}

/* Feeds that are in `kept` are not the old version's any more. */
static void forget_feeds(struct kinf__resource_version *versions, size_t n_versions,
                         const struct kinf__resource_version *kept, size_t n_kept)
{
    for (size_t i = 0; i < n_versions; i++) {
        for (size_t k = 0; k < n_kept; k++) {
            if (versions[i].feed == kept[k].feed)
                versions[i].feed = NULL;
        }
    }
}

static void replace_versions(struct kinf__store *store, struct kinf__resource_version *gone,
                             size_t n_gone, const struct kinf__resource_version *kept,
                             size_t n_kept)
{
    forget_feeds(gone, n_gone, kept, n_kept);
    retire(store, gone, n_gone);
    for (size_t i = 0; i < n_gone; i++)
        version_release(&gone[i]);
    free(gone);
}

int kinf__store_set_versions(struct kinf__store *store, struct kinf__resource *resource,
                             const struct kinf__new_version *versions, size_t n_versions,
                             struct kinf_error *err)
{
    struct kinf__resource_version *now = calloc(n_versions + 1, sizeof *now), *old;
    size_t n_now = 0, n_old = resource->n_versions;
    int failed;

    if (now == NULL) {
        free_schemas(versions, n_versions);
        return kinf__error_no_memory(err);
    }
    failed = settle_all(resource, err);
    while (failed == 0 && n_now < n_versions) {
        failed = change_version(store, resource, &versions[n_now], &now[n_now], err);
        n_now++;
    }
    if (failed < 0) {
        free_schemas(&versions[n_now], n_versions - n_now);
        replace_versions(store, now, n_now, resource->versions, n_old);
        return failed;
    }
    old = resource->versions;
    resource->versions = now;
    resource->n_versions = n_versions;
    replace_versions(store, old, n_old, now, n_versions);
    return 0;
}

struct kinf__resource *kinf__store_next(struct kinf__store *store,
                                        const struct kinf__resource *resource)
{
    struct kinf__list *node = resource != NULL ? resource->node.next : store->resources.next;

    return node != &store->resources ? KINF__LIST_ENTRY(node, struct kinf__resource, node) : NULL;
}

struct kinf__resource *kinf__store_find(struct kinf__store *store, const char *group,
                                        const char *name)
{
    struct kinf__resource *resource = NULL;

    while ((resource = kinf__store_next(store, resource)) != NULL &&
           (strcmp(resource->group, group) != 0 || strcmp(resource->name, name) != 0))
        continue;
    return resource;
}

struct kinf__resource *kinf__store_find_kind(struct kinf__store *store, const char *api_version,
                                             const char *kind)
{
    const char *slash = strchr(api_version, '/');
    size_t len = slash != NULL ? (size_t)(slash - api_version) : 0;
    struct kinf__resource *resource = NULL;

    while ((resource = kinf__store_next(store, resource)) != NULL &&
           (strlen(resource->group) != len || memcmp(resource->group, api_version, len) != 0 ||
            strcmp(resource->kind, kind) != 0))
        continue;
    return resource;
}

bool kinf__resource_is_called(const struct kinf__resource *resource, const char *name)
{
    return strcmp(resource->name, name) == 0 || strcmp(resource->singular, name) == 0 ||
           kinf__has_word(resource->short_names, name);
}

/* What stands behind the name: "" or "GROUP" or "VERSION.GROUP". */
static bool is_in_group(struct kinf__resource *resource, const char *text)
{
    char version[KINF_NAME_MAX];
    const char *dot;

    if (*text == '\0' || strcmp(resource->group, text) == 0)
        return true;
    snprintf(version, sizeof version, "%.*s", (int)strcspn(text, "."), text);
    dot = strchr(text, '.');
    return dot != NULL && strcmp(resource->group, dot + 1) == 0 &&
           kinf__resource_find_version(resource, version) != NULL;
}

struct kinf__resource *kinf__store_find_spelling(struct kinf__store *store, const char *spelling)
{
    size_t len = strcspn(spelling, ".");
    char name[KINF_NAME_MAX];

    snprintf(name, sizeof name, "%.*s", (int)len, spelling);
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        if (kinf__resource_is_called(resource, name) &&
            is_in_group(resource, spelling[len] == '.' ? spelling + len + 1 : ""))
            return resource;
    }
    return NULL;
}

/* --- reading --- */

static struct kinf_indexer *first_indexer(const struct kinf__resource *resource)
{
    return resource->versions[0].feed->indexer;
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

int kinf__store_to_tree(const struct kinf_object *object, struct cJSON **ret_object)
{
    const struct kinf_type *type = kinf_object_type(object);
    struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    char api_version[2 * KINF_NAME_MAX];
    struct cJSON *tree = NULL, *body = NULL, *member;
    struct kinf_str text;
    int failed = kinf__object_body(object, &scratch, &text);

    snprintf(api_version, sizeof api_version, "%s%s%s", type->group,
             *type->group != '\0' ? "/" : "", type->version);
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
    const kinf_auto_object struct kinf_object *object = kinf__store_get(resource, name_space, name);

    return object != NULL ? kinf__store_to_tree(object, ret_object) : KINF_ERR_NOT_FOUND;
}

struct kinf_snapshot *kinf__store_snapshot(struct kinf__resource *resource)
{
    return kinf_indexer_snapshot(first_indexer(resource));
}

/* --- writing --- */

/* Without kind and apiVersion, which are the type's. */
static int print_body(struct kinf__store *store, const struct cJSON *object)
{
    const struct cJSON *member;
    const char *comma = "";

    store->text.len = 0;
    if (kinf__buffer_append(&store->text, "{", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(member, object)
    {
        if (strcmp(member->string, "kind") == 0 || strcmp(member->string, "apiVersion") == 0)
            continue;
        if (kinf__buffer_append_str(&store->text, kinf_str_from(comma)) < 0 ||
            kinf__quote(&store->text, kinf_str_from(member->string)) < 0 ||
            kinf__buffer_append(&store->text, ":", 1) < 0 ||
            kinf__doc_print(member, &store->text) < 0)
            return KINF_ERR_NO_MEMORY;
        comma = ",";
    }
    return kinf__buffer_append(&store->text, "}", 1);
}

int kinf__store_to_object(struct kinf__store *store, const struct kinf_type *type,
                          const struct cJSON *tree, const struct kinf_object **ret_object,
                          struct kinf_error *err)
{
    if (print_body(store, tree) < 0)
        return kinf__error_no_memory(err);
    return decode(store, type, kinf__buffer_str(&store->text), ret_object, err);
}

/* A write is done once the first version has it, which is what everybody who writes reads; another one
 * that has no memory for it is owed it, and is not told of anything later before. */
static int write_feed(struct kinf__feed *feed, const struct change *change, bool is_first,
                      const struct kinf_object **ret_old, struct kinf_error *err)
{
    int failed;

    kinf__mutex_lock(&feed->lock);
    failed = write_locked(feed, change, ret_old, err);
    if (failed < 0 && !is_first) {
        kinf_object_ref(change->object);
        feed->owed = *change;
        failed = 0;
    }
    kinf__mutex_unlock(&feed->lock);
    return failed;
}

/* `objects` of each version are stored, or `removed`, of any version, is removed. The store has its
 * new version last: then every feed knows of the write. */
static int write_versions(struct kinf__store *store, struct kinf__resource *resource,
                          const struct kinf_object *const *objects,
                          const struct kinf_object *removed, struct kinf_error *err)
{
    struct change change = { .is_removal = removed != NULL,
                             .version = atomic_load(&store->version) + 1 };
    const struct kinf_object *first_old = NULL;
    int failed = settle_all(resource, err);

    for (size_t i = 0; failed == 0 && i < resource->n_versions; i++) {
        const struct kinf_object *old = NULL;

        change.object = removed != NULL ? removed : objects[i];
        failed = write_feed(resource->versions[i].feed, &change, i == 0, &old, i == 0 ? err : NULL);
        if (i == 0)
            first_old = old;
        else
            kinf_object_unref(old);
    }
    if (failed < 0)
        return failed;
    atomic_store(&store->version, change.version);
    if (store->on_change != NULL)
        store->on_change(resource, first_old, removed != NULL ? NULL : objects[0], store->ctx);
    kinf_object_unref(first_old);
    return 0;
}

int kinf__store_put(struct kinf__store *store, struct kinf__resource *resource,
                    struct cJSON *object, struct kinf_error *err)
{
    struct cJSON *metadata = kinf__doc_object(object, "metadata");
    char version[VERSION_SIZE];

    print_version(atomic_load(&store->version) + 1, version);
    if (metadata == NULL || kinf__doc_set_text(metadata, "resourceVersion", version) < 0 ||
        print_body(store, object) < 0)
        return kinf__error_no_memory(err);
    return kinf__store_put_text(store, resource, kinf__buffer_str(&store->text), err);
}

int kinf__store_put_text(struct kinf__store *store, struct kinf__resource *resource,
                         struct kinf_str text, struct kinf_error *err)
{
    KINF__AUTO_FREE const struct kinf_object **objects =
        calloc(resource->n_versions + 1, sizeof(struct kinf_object *));
    int failed = 0;

    if (objects == NULL)
        return kinf__error_no_memory(err);
    /* All of them are made before any is stored. */
    for (size_t i = 0; failed == 0 && i < resource->n_versions; i++)
        failed = decode(store, resource->versions[i].type, text, &objects[i], err);
    if (failed == 0)
        failed = write_versions(store, resource, objects, NULL, err);
    for (size_t i = 0; i < resource->n_versions; i++)
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
        *ret_version = atomic_load(&store->version);
    return failed;
}

void kinf__store_catch_up(struct kinf__store *store)
{
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        for (size_t i = 0; i < resource->n_versions; i++) {
            if (resource->versions[i].feed != NULL)
                catch_up(resource->versions[i].feed);
        }
    }
}

void kinf__store_expire(struct kinf__store *store)
{
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        for (size_t i = 0; i < resource->n_versions; i++) {
            struct kinf__feed *feed = resource->versions[i].feed;

            if (feed == NULL)
                continue;
            kinf__watchcache_set_enabled(feed->cache, false);
            kinf__watchcache_set_enabled(feed->cache, true);
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
    store->server = options->server;
    store->limits = options->limits;
    store->on_change = options->on_change;
    store->ctx = options->ctx;
    failed = kinf__prune_plan_new(NULL, 0, NULL, 0, &store->plan, err);
    if (failed < 0) {
        free(store);
        return failed;
    }
    kinf__mutex_init(&store->lock, KINF__RANK_SIM);
    kinf__list_init(&store->resources);
    atomic_init(&store->version, 1);
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
    kinf__prune_plan_free(store->plan);
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
    backup->version = atomic_load(&store->version);
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        if (!kinf__resource_is_stored(resource))
            continue;
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

/* Whoever watches is told 410, as after the restart that a restore is; from a version of the lost
 * future on a watch is silent. */
static int restore_feed(struct kinf__feed *feed, const struct kinf_snapshot *snapshot,
                        uint64_t version)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    char text[VERSION_SIZE];
    int failed;

    print_version(version, text);
    kinf__mutex_lock(&feed->lock);
    kinf_object_unref(KINF__TAKE(feed->owed.object));
    kinf__watchcache_set_enabled(feed->cache, false);
    failed = kinf_indexer_replace(feed->indexer, NULL, 0, text, NULL);
    if (snapshot != NULL) {
        kinf_cursor_all(&cursor, snapshot);
        while (failed == 0 && (object = kinf_cursor_next(&cursor)) != NULL)
            failed = copy_to_feed(feed, object, NULL);
    }
    if (failed == 0)
        failed = kinf_indexer_bookmark(feed->indexer, text, NULL);
    atomic_store(&feed->version, version);
    kinf__watchcache_set_enabled(feed->cache, true);
    kinf__mutex_unlock(&feed->lock);
    return failed;
}

int kinf__store_restore(struct kinf__store *store, const struct kinf__backup *backup)
{
    int failed = 0;

    atomic_store(&store->version, backup->version);
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        if (!kinf__resource_is_stored(resource))
            continue;
        for (size_t i = 0; failed == 0 && i < resource->n_versions; i++)
            failed = restore_feed(resource->versions[i].feed, find_backup(backup, resource),
                                  backup->version);
        if (failed == 0 && store->on_change != NULL)
            store->on_change(resource, NULL, NULL, store->ctx);
    }
    return failed;
}
