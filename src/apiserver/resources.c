/*
 * Which resources there are, and their versions: added, changed with their definition, found.
 * Neighbours: feed.c has the objects of a version, store.c writes them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#include "apiserver/store_priv.h"
#include "apiserver/types.h"

/* --- versions of a resource --- */

static char *dup_or_null(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

static void version_release(struct kinf__resource_version *version)
{
    kinf__feed_free(version->feed);
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
        failed = kinf__feed_new(&store->feeds, version->type, &version->feed, err);
    if (failed < 0)
        version_release(version);
    return failed;
}

bool kinf__resource_is_stored(const struct kinf__resource *resource)
{
    return kinf__has_verb(resource->verbs, "list");
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
            kinf__feed_retire(versions[i].feed);
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

static void swap_texts(char **a, char **b)
{
    char *text = *a;

    *a = *b;
    *b = text;
}

int kinf__resource_rename(struct kinf__resource *resource, const struct kinf__resource *like)
{
    struct kinf__resource *named = resource_new(like);

    if (named == NULL)
        return KINF_ERR_NO_MEMORY;
    swap_texts(&resource->singular, &named->singular);
    swap_texts(&resource->short_names, &named->short_names);
    swap_texts(&resource->categories, &named->categories);
    resource_free(named);
    return 0;
}

void kinf__store_pair(struct kinf__resource *a, struct kinf__resource *b, kinf__convert_cb *convert)
{
    a->twin = b;
    b->twin = a;
    a->convert = b->convert = convert;
}

struct kinf__resource_version *kinf__resource_version_at(struct kinf__resource *resource, size_t i)
{
    if (i < resource->n_versions)
        return &resource->versions[i];
    i -= resource->n_versions;
    return resource->twin != NULL && i < resource->twin->n_versions ? &resource->twin->versions[i]
                                                                    : NULL;
}

int kinf__resource_settle(struct kinf__resource *resource, struct kinf_error *err)
{
    struct kinf__resource_version *version;
    int failed = 0;

    for (size_t i = 0; failed == 0 && (version = kinf__resource_version_at(resource, i)) != NULL;
         i++)
        failed = kinf__feed_settle(version->feed, err);
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
                   ? kinf__feed_fill(version->feed, resource->versions[0].feed, err)
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
    failed = kinf__resource_settle(resource, err);
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
