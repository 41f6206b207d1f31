/*
 * From an APIGroupDiscoveryList to APIGroupList, APIGroup and APIResourceList. Neighbours:
 * discovery.c and serve/catalog.c read these.
 */
#include "rest/documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/error.h"
#include "json/tree.h"
#include "json/write.h"

#define AUTO_TREE KINF__CLEANUP(kinf__json_tree_free_ptr) struct cJSON

void kinf__documents_release(struct kinf__documents *documents)
{
    for (size_t i = 0; i < documents->n_items; i++) {
        free(documents->items[i].target);
        free(documents->items[i].text);
    }
    free(documents->items);
    *documents = (struct kinf__documents)KINF__DOCUMENTS_INIT;
}

const struct kinf__document *kinf__documents_find(const struct kinf__documents *documents,
                                                  const char *target)
{
    for (size_t i = 0; i < documents->n_items; i++) {
        if (strcmp(documents->items[i].target, target) == 0)
            return &documents->items[i];
    }
    return NULL;
}

static char *copy_of(struct kinf_str text)
{
    char *copy = malloc(text.len + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, text.bytes, text.len);
    copy[text.len] = '\0';
    return copy;
}

int kinf__documents_add(struct kinf__documents *documents, const char *target, struct kinf_str text)
{
    struct kinf__document *items =
        realloc(documents->items, (documents->n_items + 1) * sizeof *items);
    struct kinf__document document = { strdup(target), text.bytes != NULL ? copy_of(text) : NULL };

    if (items != NULL)
        documents->items = items;
    if (items == NULL || document.target == NULL || (text.bytes != NULL && document.text == NULL)) {
        free(document.target);
        free(document.text);
        return KINF_ERR_NO_MEMORY;
    }
    items[documents->n_items++] = document;
    return 0;
}

/* --- writing the legacy form --- */

static const char *text_of(const struct cJSON *object, const char *name)
{
    return kinf__json_tree_string(kinf__json_tree_find(object, name, NULL));
}

/* `,"name":"value"`; nothing for NULL. */
static int append_text(struct kinf__buffer *json, const char *name, const char *value)
{
    if (value == NULL)
        return 0;
    return kinf__buffer_printf(json, ",\"%s\":", name) < 0 ? KINF_ERR_NO_MEMORY
                                                           : kinf__json_append_string(json, value);
}

/* `,"name":["value",...]`; nothing if there is none. */
static int append_words(struct kinf__buffer *json, const char *name, const struct cJSON *words)
{
    const char *comma = "";

    if (words == NULL || kinf__buffer_printf(json, ",\"%s\":[", name) < 0)
        return words == NULL ? 0 : KINF_ERR_NO_MEMORY;
    for (const struct cJSON *at = kinf__json_tree_first(words); at != NULL;
         at = kinf__json_tree_next(at)) {
        const char *word = kinf__json_tree_string(at);

        if (word == NULL)
            continue;
        if (kinf__buffer_printf(json, "%s", comma) < 0 || kinf__json_append_string(json, word) < 0)
            return KINF_ERR_NO_MEMORY;
        comma = ",";
    }
    return kinf__buffer_append(json, "]", 1);
}

/* One entry of "resources": `name` with `suffix`, which a subresource has. */
static int append_entry(struct kinf__buffer *json, const char *name, const char *subresource,
                        bool is_namespaced, const struct cJSON *from)
{
    KINF__AUTO_BUFFER whole = KINF__BUFFER_INIT;
    const char *separator = json->bytes[json->len - 1] == '[' ? "" : ",", *text;

    if (kinf__buffer_printf(&whole, "%s%s%s", name, subresource != NULL ? "/" : "",
                            subresource != NULL ? subresource : "") < 0 ||
        (text = kinf__buffer_cstr(&whole)) == NULL ||
        kinf__buffer_printf(json, "%s{\"namespaced\":%s", separator,
                            is_namespaced ? "true" : "false") < 0 ||
        append_text(json, "name", text) < 0 ||
        append_text(json, "singularName", text_of(from, "singularResource")) < 0 ||
        append_text(
            json, "kind",
            kinf__json_tree_string(kinf__json_tree_find(from, "responseKind", "kind", NULL))) < 0 ||
        append_words(json, "verbs", kinf__json_tree_find(from, "verbs", NULL)) < 0 ||
        append_words(json, "shortNames", kinf__json_tree_find(from, "shortNames", NULL)) < 0 ||
        append_words(json, "categories", kinf__json_tree_find(from, "categories", NULL)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(json, "}", 1);
}

static int append_resource(struct kinf__buffer *json, const struct cJSON *resource)
{
    const char *name = text_of(resource, "resource"), *scope = text_of(resource, "scope");
    bool is_namespaced = scope != NULL && strcmp(scope, "Namespaced") == 0;
    const struct cJSON *at =
        kinf__json_tree_first(kinf__json_tree_find(resource, "subresources", NULL));

    if (name == NULL)
        return 0;
    if (append_entry(json, name, NULL, is_namespaced, resource) < 0)
        return KINF_ERR_NO_MEMORY;
    for (; at != NULL; at = kinf__json_tree_next(at)) {
        const char *subresource = text_of(at, "subresource");

        if (subresource != NULL && append_entry(json, name, subresource, is_namespaced, at) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int write_resources(struct kinf__buffer *json, const struct cJSON *version)
{
    const struct cJSON *at =
        kinf__json_tree_first(kinf__json_tree_find(version, "resources", NULL));

    if (kinf__buffer_printf(json, "{\"kind\":\"APIResourceList\",\"resources\":[") < 0)
        return KINF_ERR_NO_MEMORY;
    for (; at != NULL; at = kinf__json_tree_next(at)) {
        if (append_resource(json, at) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return kinf__buffer_append(json, "]}", 2);
}

/* The first version is the preferred one. */
static int append_group(struct kinf__buffer *json, const char *name, const struct cJSON *group)
{
    const struct cJSON *at = kinf__json_tree_first(kinf__json_tree_find(group, "versions", NULL));
    const char *preferred = at != NULL ? text_of(at, "version") : NULL, *comma = "";

    if (kinf__buffer_printf(json, "{\"kind\":\"APIGroup\"") < 0 ||
        append_text(json, "name", name) < 0 ||
        kinf__buffer_printf(json, ",\"preferredVersion\":{\"kind\":\"\"") < 0 ||
        append_text(json, "version", preferred) < 0 ||
        kinf__buffer_printf(json, "},\"versions\":[") < 0)
        return KINF_ERR_NO_MEMORY;
    for (; at != NULL; at = kinf__json_tree_next(at)) {
        const char *version = text_of(at, "version");

        if (version == NULL)
            continue;
        if (kinf__buffer_printf(json, "%s{\"version\":", comma) < 0 ||
            kinf__json_append_string(json, version) < 0 || kinf__buffer_append(json, "}", 1) < 0)
            return KINF_ERR_NO_MEMORY;
        comma = ",";
    }
    return kinf__buffer_append(json, "]}", 2);
}

/* --- taking apart --- */

static int add(struct kinf__documents *documents, const char *prefix, const char *group,
               const char *version, struct kinf_str text)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    const char *name;

    if (kinf__buffer_printf(&target, "%s%s%s%s%s", prefix, *group != '\0' ? "/" : "", group,
                            *version != '\0' ? "/" : "", version) < 0 ||
        (name = kinf__buffer_cstr(&target)) == NULL)
        return KINF_ERR_NO_MEMORY;
    return kinf__documents_add(documents, name, text);
}

static int add_version(struct kinf__documents *documents, const char *prefix, const char *group,
                       const struct cJSON *version)
{
    KINF__AUTO_BUFFER json = KINF__BUFFER_INIT;
    const char *name = text_of(version, "version"), *freshness = text_of(version, "freshness");

    if (name == NULL)
        return 0;
    if (freshness != NULL && strcmp(freshness, "Stale") == 0)
        return add(documents, prefix, group, name, (struct kinf_str){ NULL, 0 });
    if (write_resources(&json, version) < 0)
        return KINF_ERR_NO_MEMORY;
    return add(documents, prefix, group, name, kinf__buffer_str(&json));
}

static int add_group(struct kinf__documents *documents, const struct cJSON *group,
                     struct kinf__buffer *list)
{
    const char *name =
        kinf__json_tree_string(kinf__json_tree_find(group, "metadata", "name", NULL));
    const char *prefix = name == NULL || *name == '\0' ? "/api" : "/apis";
    const struct cJSON *at = kinf__json_tree_first(kinf__json_tree_find(group, "versions", NULL));

    name = name != NULL ? name : "";
    for (; at != NULL; at = kinf__json_tree_next(at)) {
        if (add_version(documents, prefix, name, at) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (*name != '\0') {
        KINF__AUTO_BUFFER json = KINF__BUFFER_INIT;

        if (append_group(&json, name, group) < 0 ||
            add(documents, prefix, name, "", kinf__buffer_str(&json)) < 0 ||
            (list->bytes[list->len - 1] != '[' && kinf__buffer_append(list, ",", 1) < 0))
            return KINF_ERR_NO_MEMORY;
        return kinf__buffer_append_str(list, kinf__buffer_str(&json));
    }
    return 0;
}

static int add_groups(struct kinf__documents *documents, const struct cJSON *tree)
{
    KINF__AUTO_BUFFER list = KINF__BUFFER_INIT;
    const struct cJSON *at = kinf__json_tree_first(kinf__json_tree_find(tree, "items", NULL));
    size_t empty_len;

    if (kinf__buffer_printf(&list, "{\"kind\":\"APIGroupList\",\"groups\":[") < 0)
        return KINF_ERR_NO_MEMORY;
    empty_len = list.len;
    for (; at != NULL; at = kinf__json_tree_next(at)) {
        if (add_group(documents, at, &list) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (kinf__buffer_append(&list, "]}", 2) < 0)
        return KINF_ERR_NO_MEMORY;
    return list.len > empty_len + 2
               ? kinf__documents_add(documents, "/apis", kinf__buffer_str(&list))
               : 0;
}

int kinf__documents_add_aggregated(struct kinf__documents *documents, struct kinf_str answer,
                                   struct kinf_error *err)
{
    AUTO_TREE *tree = NULL;
    const char *kind;
    int failed = kinf__json_tree_parse(answer, &tree, err);

    if (failed < 0)
        return failed;
    kind = text_of(tree, "kind");
    if (kind == NULL || strcmp(kind, "APIGroupDiscoveryList") != 0)
        return 0;
    return add_groups(documents, tree) < 0 ? kinf__error_no_memory(err) : 1;
}
