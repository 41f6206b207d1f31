/*
 * Discovery. Neighbours: store.c has the resources, serve/catalog.c writes what is asked for.
 */
#include "apiserver/store.h"

#include <stdio.h>
#include <string.h>

static const char all_verbs[] = "create,delete,deletecollection,get,list,patch,update,watch",
                  custom_verbs[] = "delete,deletecollection,get,list,patch,create,update,watch";

/* Of what they answer kind, group and version; NULL: the resource's. */
static const struct {
    const char *name, *verbs, *kind, *group, *version;
} known[] = {
    { "status", "get,patch,update", NULL, NULL, NULL },
    { "scale", "get,patch,update", "Scale", "autoscaling", "v1" },
    { "eviction", "create", "Eviction", "policy", "v1" },
    { "binding", "create", "Binding", NULL, NULL },
    { "token", "create", "TokenRequest", "authentication.k8s.io", "v1" },
    { "finalize", "update", NULL, NULL, NULL },
    { "ephemeralcontainers", "get,patch,update", NULL, NULL, NULL },
    { "resize", "get,patch,update", NULL, NULL, NULL },
    { "log", "get", NULL, NULL, NULL },
    { "exec", "create,get", "PodExecOptions", NULL, NULL },
    { "attach", "create,get", "PodAttachOptions", NULL, NULL },
    { "portforward", "create,get", "PodPortForwardOptions", NULL, NULL },
};

static int add_subresource(struct kinf__catalog *catalog, const struct kinf__catalog_entry *parent,
                           const char *name, size_t name_len)
{
    char path[2 * KINF_NAME_MAX];

    snprintf(path, sizeof path, "%s/%.*s", parent->resource.name, (int)name_len, name);
    for (size_t i = 0; i < KINF__ARRAY_LEN(known); i++) {
        struct kinf__catalog_entry entry = *parent;

        if (strlen(known[i].name) != name_len || strncmp(known[i].name, name, name_len) != 0)
            continue;
        entry.resource.name = path;
        entry.resource.singular = entry.resource.short_names = entry.resource.categories = NULL;
        entry.resource.verbs = (char *)(uintptr_t)known[i].verbs;
        entry.answer_group = (char *)(uintptr_t)known[i].group;
        entry.answer_version = (char *)(uintptr_t)known[i].version;
        if (known[i].kind != NULL)
            entry.resource.kind = (char *)(uintptr_t)known[i].kind;
        return kinf__catalog_add(catalog, &entry);
    }
    return 0;
}

static int add_to_catalog(struct kinf__catalog *catalog, const struct kinf__resource *resource,
                          const struct kinf__resource_version *version)
{
    const char *verbs = resource->is_custom ? custom_verbs : all_verbs;
    const struct kinf__catalog_entry entry = {
        .group = resource->group,
        .version = (char *)(uintptr_t)version->type->version,
        .resource = { .name = resource->name,
        .singular = resource->singular,
        .kind = resource->kind,
        .short_names = resource->short_names,
        .categories = resource->categories,
        .verbs = *resource->verbs != '\0' ? resource->verbs : (char *)(uintptr_t)verbs,
        .namespaced = resource->namespaced, },
    };
    int failed = kinf__catalog_add(catalog, &entry);

    for (const char *at = resource->subresources; failed == 0 && *at != '\0';) {
        size_t len = strcspn(at, ",");

        /* Those of a definition are each version's own. */
        if (!resource->is_custom || (strncmp(at, "status", len) == 0 && version->has_status) ||
            (strncmp(at, "scale", len) == 0 && version->has_scale))
            failed = add_subresource(catalog, &entry, at, len);
        at += len + (at[len] == ',');
    }
    return failed;
}

static int fill_catalog(struct kinf__store *store, struct kinf__catalog *catalog)
{
    int failed = kinf__catalog_set_version(
        catalog, "{\"major\":\"1\",\"minor\":\"37\",\"gitVersion\":\"v1.37.1+kinformer-sim\","
                 "\"gitCommit\":\"\",\"gitTreeState\":\"\",\"buildDate\":"
                 "\"1970-01-01T00:00:00Z\",\"goVersion\":\"none\",\"compiler\":\"none\","
                 "\"platform\":\"linux\"}");

    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        for (size_t i = 0; failed == 0 && i < resource->n_versions; i++)
            failed = add_to_catalog(catalog, resource, &resource->versions[i]);
    }
    return failed;
}

int kinf__resource_catalog_publish(struct kinf__store *store, struct kinf__server *server)
{
    struct kinf__catalog *catalog;
    int failed = kinf__catalog_new(&catalog);

    if (failed < 0)
        return failed;
    failed = fill_catalog(store, catalog);
    if (failed < 0) {
        kinf__catalog_free(catalog);
        return failed;
    }
    kinf__server_set_catalog(server, catalog);
    return 0;
}
