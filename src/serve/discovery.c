/*
 * Discovery documents of what is served, in the upstream's order. Neighbours: catalog.c has what
 * the upstream said, exchange.c answers with these.
 */
#include <string.h>

#include "json/quote.h"
#include "serve/catalog_priv.h"

struct writer {
    const struct kinf__catalog *catalog;
    const struct kinf__served_types *types;
    struct kinf__buffer *out;
    bool is_failed; /* out of memory */
    bool needs_comma;
};

static void put(struct writer *writer, const char *text)
{
    if (kinf__buffer_append_str(writer->out, kinf_str_from(text)) < 0)
        writer->is_failed = true;
}

static void put_string(struct writer *writer, const char *before, const char *text)
{
    put(writer, before);
    if (kinf__quote(writer->out, kinf_str_from(text)) < 0)
        writer->is_failed = true;
}

/* A comma between items, none before the first. */
static void begin_item(struct writer *writer)
{
    if (writer->needs_comma)
        put(writer, ",");
    writer->needs_comma = true;
}

static void begin_array(struct writer *writer, const char *before)
{
    put(writer, before);
    put(writer, "[");
    writer->needs_comma = false;
}

static void end_array(struct writer *writer)
{
    put(writer, "]");
    writer->needs_comma = true;
}

static bool is_served(const struct writer *writer, const struct kinf__catalog_entry *entry)
{
    /* A server of its own serves whatever it says that it has. */
    if (entry->verbs != NULL)
        return true;
    for (size_t i = 0; i < writer->types->n_items; i++) {
        const struct kinf_type *type = writer->types->items[i];

        if (strcmp(type->group, entry->group) == 0 && strcmp(type->version, entry->version) == 0 &&
            strcmp(type->resource, entry->name) == 0)
            return true;
    }
    return false;
}

/* The next entry of a served type at or behind *i that is of this group (NULL: any) and version
 * (NULL: any); *i moves behind it. */
static const struct kinf__catalog_entry *next_served(const struct writer *writer, size_t *i,
                                                     const char *group, const char *version)
{
    while (*i < writer->catalog->n_entries) {
        const struct kinf__catalog_entry *entry = &writer->catalog->entries[(*i)++];

        if ((group == NULL || strcmp(entry->group, group) == 0) &&
            (version == NULL || strcmp(entry->version, version) == 0) && is_served(writer, entry))
            return entry;
    }
    return NULL;
}

/* Whether this is the first served entry of its group (and version, unless it is NULL). */
static bool is_first(const struct writer *writer, const struct kinf__catalog_entry *entry,
                     bool of_version)
{
    size_t i = 0;

    return next_served(writer, &i, entry->group, of_version ? entry->version : NULL) == entry;
}

static int finish(struct writer *writer)
{
    put(writer, "\n");
    return writer->is_failed ? KINF_ERR_NO_MEMORY : 0;
}

/* --- legacy --- */

static void put_group_version(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    put(writer, "{\"groupVersion\":\"");
    put(writer, entry->group);
    put(writer, "/");
    put(writer, entry->version);
    put_string(writer, "\",\"version\":", entry->version);
    put(writer, "}");
}

/* The members of an APIGroup behind its kind. */
static void put_group(struct writer *writer, const char *group)
{
    const struct kinf__catalog_entry *entry, *preferred = NULL;

    put_string(writer, "\"name\":", group);
    begin_array(writer, ",\"versions\":");
    for (size_t i = 0; (entry = next_served(writer, &i, group, NULL)) != NULL;) {
        if (!is_first(writer, entry, true))
            continue;
        preferred = preferred != NULL ? preferred : entry;
        begin_item(writer);
        put_group_version(writer, entry);
    }
    end_array(writer);
    if (preferred != NULL) {
        put(writer, ",\"preferredVersion\":");
        put_group_version(writer, preferred);
    }
}

int kinf__catalog_write_groups(const struct kinf__catalog *catalog,
                               const struct kinf__served_types *types, struct kinf__buffer *out)
{
    struct writer writer = { catalog, types, out, false, false };
    const struct kinf__catalog_entry *entry;

    put(&writer, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\"");
    begin_array(&writer, ",\"groups\":");
    for (size_t i = 0; (entry = next_served(&writer, &i, NULL, NULL)) != NULL;) {
        if (*entry->group == '\0' || !is_first(&writer, entry, false))
            continue;
        begin_item(&writer);
        put(&writer, "{");
        put_group(&writer, entry->group);
        put(&writer, "}");
    }
    end_array(&writer);
    put(&writer, "}");
    return finish(&writer);
}

int kinf__catalog_write_group(const struct kinf__catalog *catalog,
                              const struct kinf__served_types *types, const char *group,
                              struct kinf__buffer *out)
{
    struct writer writer = { catalog, types, out, false, false };
    size_t i = 0;

    if (next_served(&writer, &i, group, NULL) == NULL)
        return KINF_ERR_NOT_FOUND;
    put(&writer, "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",");
    put_group(&writer, group);
    put(&writer, "}");
    return finish(&writer);
}

/* An array of words that are separated by commas. */
static void put_words(struct writer *writer, const char *before, const char *words)
{
    begin_array(writer, before);
    while (*words != '\0') {
        struct kinf_str word = { words, strcspn(words, ",") };

        begin_item(writer);
        if (kinf__quote(writer->out, word) < 0)
            writer->is_failed = true;
        words += word.len + (words[word.len] == ',');
    }
    end_array(writer);
}

static void put_names(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    if (entry->short_names != NULL && *entry->short_names != '\0')
        put_words(writer, ",\"shortNames\":", entry->short_names);
    if (entry->categories != NULL && *entry->categories != '\0')
        put_words(writer, ",\"categories\":", entry->categories);
}

static void put_verbs(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    put_words(writer, ",\"verbs\":", entry->verbs != NULL ? entry->verbs : "get,list,watch");
}

static void put_resource(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    put_string(writer, "{\"name\":", entry->name);
    put_string(writer, ",\"singularName\":", entry->singular != NULL ? entry->singular : "");
    put(writer, entry->namespaced ? ",\"namespaced\":true" : ",\"namespaced\":false");
    if (entry->answer_group != NULL)
        put_string(writer, ",\"group\":", entry->answer_group);
    if (entry->answer_version != NULL)
        put_string(writer, ",\"version\":", entry->answer_version);
    put_string(writer, ",\"kind\":", entry->kind);
    put_verbs(writer, entry);
    put_names(writer, entry);
    put(writer, "}");
}

int kinf__catalog_write_resources(const struct kinf__catalog *catalog,
                                  const struct kinf__served_types *types, const char *group,
                                  const char *version, struct kinf__buffer *out)
{
    struct writer writer = { catalog, types, out, false, false };
    const struct kinf__catalog_entry *entry;
    size_t i = 0;

    if (next_served(&writer, &i, group, version) == NULL)
        return KINF_ERR_NOT_FOUND;
    put(&writer, "{\"kind\":\"APIResourceList\",");
    if (*group != '\0')
        put(&writer, "\"apiVersion\":\"v1\",");
    put(&writer, "\"groupVersion\":\"");
    put(&writer, group);
    put(&writer, *group != '\0' ? "/" : "");
    put(&writer, version);
    begin_array(&writer, "\",\"resources\":");
    for (i = 0; (entry = next_served(&writer, &i, group, version)) != NULL;) {
        begin_item(&writer);
        put_resource(&writer, entry);
    }
    end_array(&writer);
    put(&writer, "}");
    return finish(&writer);
}

/* --- aggregated --- */

static void put_response_kind(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    put_string(writer, ",\"responseKind\":{\"group\":",
               entry->answer_group != NULL ? entry->answer_group : entry->group);
    put_string(writer, ",\"version\":",
               entry->answer_version != NULL ? entry->answer_version : entry->version);
    put_string(writer, ",\"kind\":", entry->kind);
    put(writer, "}");
}

static void put_subresource(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    put_string(writer, "{\"subresource\":", strchr(entry->name, '/') + 1);
    put_response_kind(writer, entry);
    put_verbs(writer, entry);
    put(writer, "}");
}

/* Whether an entry is a subresource of another one. */
static bool is_below(const struct kinf__catalog_entry *entry,
                     const struct kinf__catalog_entry *resource)
{
    size_t len = strlen(resource->name);

    return strncmp(entry->name, resource->name, len) == 0 && entry->name[len] == '/';
}

static void put_subresources(struct writer *writer, const struct kinf__catalog_entry *resource)
{
    const struct kinf__catalog_entry *entry;
    bool has_begun = false;

    for (size_t i = 0;
         (entry = next_served(writer, &i, resource->group, resource->version)) != NULL;) {
        if (!is_below(entry, resource))
            continue;
        if (!has_begun)
            begin_array(writer, ",\"subresources\":");
        has_begun = true;
        begin_item(writer);
        put_subresource(writer, entry);
    }
    if (has_begun)
        end_array(writer);
}

static void put_aggregated_resource(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    put_string(writer, "{\"resource\":", entry->name);
    put_response_kind(writer, entry);
    put_string(writer, ",\"scope\":", entry->namespaced ? "Namespaced" : "Cluster");
    put_string(writer, ",\"singularResource\":", entry->singular != NULL ? entry->singular : "");
    put_verbs(writer, entry);
    put_names(writer, entry);
    put_subresources(writer, entry);
    put(writer, "}");
}

static void put_aggregated_version(struct writer *writer, const char *group, const char *version)
{
    const struct kinf__catalog_entry *entry;

    put_string(writer, "{\"version\":", version);
    begin_array(writer, ",\"resources\":");
    for (size_t i = 0; (entry = next_served(writer, &i, group, version)) != NULL;) {
        if (strchr(entry->name, '/') != NULL)
            continue;
        begin_item(writer);
        put_aggregated_resource(writer, entry);
    }
    end_array(writer);
    put(writer, ",\"freshness\":\"Current\"}");
}

static void put_aggregated_group(struct writer *writer, const char *group)
{
    const struct kinf__catalog_entry *entry;

    put(writer, "{\"metadata\":{");
    if (*group != '\0')
        put_string(writer, "\"name\":", group);
    begin_array(writer, "},\"versions\":");
    for (size_t i = 0; (entry = next_served(writer, &i, group, NULL)) != NULL;) {
        if (!is_first(writer, entry, true))
            continue;
        begin_item(writer);
        put_aggregated_version(writer, group, entry->version);
    }
    end_array(writer);
    put(writer, "}");
}

int kinf__catalog_write_aggregated(const struct kinf__catalog *catalog,
                                   const struct kinf__served_types *types, bool is_core,
                                   struct kinf__buffer *out)
{
    struct writer writer = { catalog, types, out, false, false };
    const struct kinf__catalog_entry *entry;

    put(&writer, "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\","
                 "\"metadata\":{}");
    begin_array(&writer, ",\"items\":");
    for (size_t i = 0; (entry = next_served(&writer, &i, NULL, NULL)) != NULL;) {
        if ((*entry->group == '\0') != is_core || !is_first(&writer, entry, false))
            continue;
        begin_item(&writer);
        put_aggregated_group(&writer, entry->group);
    }
    end_array(&writer);
    put(&writer, "}");
    return finish(&writer);
}
