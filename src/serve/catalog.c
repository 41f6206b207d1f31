/*
 * What the upstream's discovery says, and its documents, cut down to what is served, in the upstream's
 * order. Neighbours: rest/discovery_cache.h has what it said, exchange.c answers with documents.
 */
#include "serve/catalog.h"

#include <stdlib.h>
#include <string.h>

#include <kinformer/request.h>

#include "base/error.h"
#include "json/scan.h"
#include "rest/discovery_cache.h"
#include "serve/exchange_priv.h"
#include "serve/report.h"
#include "serve/server_priv.h"

#define MARK "kinformerd"

/* What did not answer; of these nothing is in the entries. */
struct away_version {
    char *group;
    char *version;
};

struct kinf__catalog {
    struct kinf__catalog_entry *entries; /* in the server's order: the core group first */
    size_t n_entries;
    struct away_version *away;
    size_t n_away;
    char *version; /* NULL: none */
};

#define N_TEXTS  10
#define N_ALWAYS 8 /* the first of them are never NULL */

static void list_texts(struct kinf__catalog_entry *entry, char **texts[N_TEXTS])
{
    struct kinf__discovery_resource *resource = &entry->resource;
    char **const all[N_TEXTS] = {
        &entry->group,        &entry->version,        &resource->name,       &resource->singular,
        &resource->kind,      &resource->short_names, &resource->categories, &resource->verbs,
        &entry->answer_group, &entry->answer_version,
    };

    memcpy(texts, all, sizeof all);
}

static void entry_release(struct kinf__catalog_entry *entry)
{
    char **texts[N_TEXTS];

    list_texts(entry, texts);
    for (size_t i = 0; i < N_TEXTS; i++)
        free(*texts[i]);
}

static int entry_copy(const struct kinf__catalog_entry *entry, struct kinf__catalog_entry *ret_copy)
{
    char **texts[N_TEXTS];
    bool is_whole = true;

    *ret_copy = *entry;
    list_texts(ret_copy, texts);
    for (size_t i = 0; i < N_TEXTS; i++) {
        if (*texts[i] == NULL && i >= N_ALWAYS)
            continue;
        *texts[i] = strdup(*texts[i] != NULL ? *texts[i] : "");
        is_whole = is_whole && *texts[i] != NULL;
    }
    if (is_whole)
        return 0;
    entry_release(ret_copy);
    return KINF_ERR_NO_MEMORY;
}

int kinf__catalog_new(struct kinf__catalog **ret_catalog)
{
    struct kinf__catalog *catalog = calloc(1, sizeof *catalog);

    if (catalog == NULL)
        return KINF_ERR_NO_MEMORY;
    *ret_catalog = catalog;
    return 0;
}

void kinf__catalog_free(struct kinf__catalog *catalog)
{
    if (catalog == NULL)
        return;
    for (size_t i = 0; i < catalog->n_entries; i++)
        entry_release(&catalog->entries[i]);
    for (size_t i = 0; i < catalog->n_away; i++) {
        free(catalog->away[i].group);
        free(catalog->away[i].version);
    }
    free(catalog->entries);
    free(catalog->away);
    free(catalog->version);
    free(catalog);
}

int kinf__catalog_add(struct kinf__catalog *catalog, const struct kinf__catalog_entry *entry)
{
    struct kinf__catalog_entry *entries =
        realloc(catalog->entries, (catalog->n_entries + 1) * sizeof *entries);

    if (entries == NULL)
        return KINF_ERR_NO_MEMORY;
    catalog->entries = entries;
    if (entry_copy(entry, &entries[catalog->n_entries]) < 0)
        return KINF_ERR_NO_MEMORY;
    catalog->n_entries++;
    return 0;
}

int kinf__catalog_set_version(struct kinf__catalog *catalog, const char *json)
{
    free(catalog->version);
    catalog->version = strdup(json);
    return catalog->version != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

bool kinf__catalog_has_group(const struct kinf__catalog *catalog, const char *group)
{
    for (size_t i = 0; i < catalog->n_entries; i++) {
        if (strcmp(catalog->entries[i].group, group) == 0)
            return true;
    }
    return false;
}

const struct kinf__catalog_entry *kinf__catalog_find(const struct kinf__catalog *catalog,
                                                     const char *group, const char *version,
                                                     const char *name)
{
    for (size_t i = 0; i < catalog->n_entries; i++) {
        const struct kinf__catalog_entry *entry = &catalog->entries[i];

        if (strcmp(entry->group, group) == 0 && strcmp(entry->version, version) == 0 &&
            strcmp(entry->resource.name, name) == 0)
            return entry;
    }
    return NULL;
}

const char *kinf__catalog_version(const struct kinf__catalog *catalog)
{
    return catalog->version != NULL ? catalog->version : "";
}

/* --- what is away --- */

static int note_away(struct kinf__catalog *catalog, const struct kinf__discovery_version *version)
{
    struct away_version *away =
        realloc(catalog->away, (catalog->n_away + 1) * sizeof *catalog->away);
    struct away_version *noted;

    if (away == NULL)
        return KINF_ERR_NO_MEMORY;
    catalog->away = away;
    noted = &away[catalog->n_away++];
    *noted = (struct away_version){ strdup(version->group), strdup(version->name) };
    return noted->group != NULL && noted->version != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static bool is_away(const struct kinf__catalog *catalog, const struct kinf__catalog_entry *entry)
{
    for (size_t i = 0; i < catalog->n_away; i++) {
        if (strcmp(catalog->away[i].group, entry->group) == 0 &&
            strcmp(catalog->away[i].version, entry->version) == 0)
            return true;
    }
    return false;
}

void kinf__catalog_keep_away(struct kinf__catalog *catalog, const struct kinf__catalog *before)
{
    if (catalog->version == NULL && before->version != NULL)
        catalog->version = strdup(before->version); /* NULL: no memory */
    for (size_t i = 0; i < before->n_entries; i++) {
        if (is_away(catalog, &before->entries[i]) &&
            kinf__catalog_add(catalog, &before->entries[i]) < 0)
            return; /* no memory */
    }
}

/* --- asking --- */

/* "gitVersion":"v1.37.1" becomes "v1.37.1+kinformerd", build metadata of a semantic version. What has
 * none is left out. */
static int mark_version(struct kinf__catalog *catalog, struct kinf_str answer)
{
    KINF__AUTO_BUFFER marked = KINF__BUFFER_INIT;
    struct kinf__json_value value;
    struct kinf_str head = answer, tail = answer;
    size_t len;

    if (kinf__json_scan_all(answer, KINF__JSON_MAX_DEPTH, &len) < 0 ||
        !kinf__json_member(kinf__json_value_of(answer), KINF_STR("gitVersion"), &value) ||
        value.type != KINF__JSON_STRING)
        return 0;
    head.len = (size_t)(value.raw.bytes + value.raw.len - 1 - answer.bytes);
    tail.bytes += head.len;
    tail.len -= head.len;
    if (kinf__buffer_append_str(&marked, head) < 0 ||
        kinf__buffer_printf(&marked, "%s" MARK,
                            memchr(value.raw.bytes, '+', value.raw.len) != NULL ? "." : "+") < 0 ||
        kinf__buffer_append_str(&marked, tail) < 0 || kinf__buffer_cstr(&marked) == NULL)
        return KINF_ERR_NO_MEMORY;
    return kinf__catalog_set_version(catalog, marked.bytes);
}

static int add_version(struct kinf__catalog *catalog, const struct kinf__discovery_version *version)
{
    if (version->state != KINF__DISCOVERY_READ)
        return note_away(catalog, version);
    for (size_t i = 0; i < version->n_resources; i++) {
        struct kinf__catalog_entry entry = { .group = version->group,
                                             .version = version->name,
                                             .resource = version->resources[i],
                                             .is_upstream = true };

        if (*entry.resource.kind != '\0' && kinf__catalog_add(catalog, &entry) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int add_versions(struct kinf__catalog *catalog, const struct kinf__discovery *table,
                        bool are_core)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < table->n_versions; i++) {
        if ((*table->versions[i].group == '\0') == are_core)
            failed = add_version(catalog, &table->versions[i]);
    }
    return failed;
}

static int fetch(struct kinf__catalog *catalog, struct kinf__discovery_reader *reader,
                 struct kinf_error *err)
{
    const struct kinf__discovery *table = &reader->cache->table;
    int failed;

    (void)kinf__discovery_refresh(reader);
    failed = kinf__discovery_read_all(&reader->cache->table, &reader->source, err);
    if (failed < 0)
        return failed;
    return add_versions(catalog, table, true) < 0 || add_versions(catalog, table, false) < 0
               ? kinf__error_no_memory(err)
               : 0;
}

/* A server may refuse it, and then there is none; that it was not asked, or did not answer, is another
 * thing. */
static int fetch_version(struct kinf__catalog *catalog, struct kinf_client *client,
                         struct kinf_error *err)
{
    kinf_auto_response struct kinf_response answer = KINF_RESPONSE_INIT;
    struct kinf_error own = KINF_ERROR_INIT;
    int failed = kinf_client_request_raw(client, "GET", "/version", (struct kinf_str){ NULL, 0 },
                                         NULL, &answer, &own);

    if (failed == 0)
        return mark_version(catalog, kinf_str_from(answer.body)) < 0 ? kinf__error_no_memory(err)
                                                                     : 0;
    if (own.http_status != 0)
        return 0;
    if (err != NULL)
        *err = own;
    return failed;
}

int kinf__catalog_fetch(struct kinf_client *client, struct kinf__catalog **ret_catalog,
                        struct kinf_error *err)
{
    struct kinf__discovery_reader reader;
    struct kinf__catalog *catalog;
    int failed;

    if (kinf__catalog_new(&catalog) < 0)
        return kinf__error_no_memory(err);
    failed = kinf__discovery_open(client, &reader, err);
    if (failed == 0) {
        failed = fetch(catalog, &reader, err);
        kinf__discovery_close(&reader);
    }
    if (failed == 0)
        failed = fetch_version(catalog, client, err);
    if (failed < 0) {
        kinf__catalog_free(catalog);
        return failed;
    }
    *ret_catalog = catalog;
    return 0;
}

static bool is_missing(const struct kinf__server *server, const struct kinf__source *source)
{
    const struct kinf_type *type = source->type;
    struct kinf_informer_status status;

    if (source->is_unserved || source->is_retired ||
        kinf__catalog_find(server->catalog, type->group, type->version, type->resource) != NULL)
        return false;
    kinf__source_status(source, &status);
    return status.state == KINF_STATE_LIVE;
}

bool kinf__catalog_is_outdated(struct kinf__server *server)
{
    bool is_outdated = false;

    kinf__mutex_lock(&server->lock);
    for (size_t i = 0; server->catalog != NULL && i < server->n_sources && !is_outdated; i++)
        is_outdated = is_missing(server, server->sources[i]);
    kinf__mutex_unlock(&server->lock);
    return is_outdated;
}

/* --- documents --- */

struct writer {
    const struct kinf__server *server;
    struct kinf__report report;
};

static struct writer begin(const struct kinf__server *server, struct kinf__buffer *out,
                           const char *kind, const char *version)
{
    struct writer writer = { server, { .out = out } };

    kinf__report_open(&writer.report, NULL, '{');
    kinf__report_text(&writer.report, "kind", kind);
    kinf__report_said(&writer.report, "apiVersion", version);
    return writer;
}

static int end(struct writer *writer)
{
    kinf__report_close(&writer->report, '}');
    return kinf__report_end(&writer->report);
}

static bool is_served(const struct writer *writer, const struct kinf__catalog_entry *entry)
{
    /* A server of its own serves whatever it says that it has. */
    if (!entry->is_upstream)
        return true;
    for (size_t i = 0; i < writer->server->n_sources; i++) {
        const struct kinf__source *source = writer->server->sources[i];
        const struct kinf_type *type = source->type;

        if (!source->is_unserved && strcmp(type->group, entry->group) == 0 &&
            strcmp(type->version, entry->version) == 0 &&
            strcmp(type->resource, entry->resource.name) == 0)
            return true;
    }
    return false;
}

/* The next entry of a served type at or behind *i that is of this group (NULL: any) and version
 * (NULL: any); *i moves behind it. */
static const struct kinf__catalog_entry *next_served(const struct writer *writer, size_t *i,
                                                     const char *group, const char *version)
{
    while (*i < writer->server->catalog->n_entries) {
        const struct kinf__catalog_entry *entry = &writer->server->catalog->entries[(*i)++];

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

/* --- legacy documents --- */

/* "apps/v1", or "v1" of the core group. */
static void put_group_version(struct writer *writer, const char *group, const char *version)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    if (kinf__buffer_printf(&text, *group != '\0' ? "%s/%s" : "%s%s", group, version) < 0)
        writer->report.is_out_of_memory = true;
    kinf__report_str(&writer->report, "groupVersion", kinf__buffer_str(&text));
}

static void put_version(struct writer *writer, const char *key,
                        const struct kinf__catalog_entry *entry)
{
    kinf__report_open(&writer->report, key, '{');
    put_group_version(writer, entry->group, entry->version);
    kinf__report_text(&writer->report, "version", entry->version);
    kinf__report_close(&writer->report, '}');
}

/* The members of an APIGroup behind its kind. */
static void put_group(struct writer *writer, const char *group)
{
    const struct kinf__catalog_entry *entry, *preferred = NULL;

    kinf__report_text(&writer->report, "name", group);
    kinf__report_open(&writer->report, "versions", '[');
    for (size_t i = 0; (entry = next_served(writer, &i, group, NULL)) != NULL;) {
        if (!is_first(writer, entry, true))
            continue;
        preferred = preferred != NULL ? preferred : entry;
        put_version(writer, NULL, entry);
    }
    kinf__report_close(&writer->report, ']');
    if (preferred != NULL)
        put_version(writer, "preferredVersion", preferred);
}

int kinf__catalog_write_groups(const struct kinf__server *server, struct kinf__buffer *out)
{
    struct writer writer = begin(server, out, "APIGroupList", "v1");
    const struct kinf__catalog_entry *entry;

    kinf__report_open(&writer.report, "groups", '[');
    for (size_t i = 0; (entry = next_served(&writer, &i, NULL, NULL)) != NULL;) {
        if (*entry->group == '\0' || !is_first(&writer, entry, false))
            continue;
        kinf__report_open(&writer.report, NULL, '{');
        put_group(&writer, entry->group);
        kinf__report_close(&writer.report, '}');
    }
    kinf__report_close(&writer.report, ']');
    return end(&writer);
}

int kinf__catalog_write_group(const struct kinf__server *server, const char *group,
                              struct kinf__buffer *out)
{
    struct writer writer = begin(server, out, "APIGroup", "v1");
    size_t i = 0;

    if (next_served(&writer, &i, group, NULL) == NULL)
        return KINF_ERR_NOT_FOUND;
    put_group(&writer, group);
    return end(&writer);
}

/* An array of words that are separated by commas. */
static void put_words(struct writer *writer, const char *key, const char *words)
{
    kinf__report_open(&writer->report, key, '[');
    while (*words != '\0') {
        struct kinf_str word = { words, strcspn(words, ",") };

        kinf__report_str(&writer->report, NULL, word);
        words += word.len + (words[word.len] == ',');
    }
    kinf__report_close(&writer->report, ']');
}

/* Its verbs, and how else it may be called. */
static void put_words_of(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    const struct kinf__discovery_resource *resource = &entry->resource;

    put_words(writer, "verbs", entry->is_upstream ? "get,list,watch" : resource->verbs);
    if (*resource->short_names != '\0')
        put_words(writer, "shortNames", resource->short_names);
    if (*resource->categories != '\0')
        put_words(writer, "categories", resource->categories);
}

static void put_resource(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    const struct kinf__discovery_resource *resource = &entry->resource;
    struct kinf__report *report = &writer->report;

    kinf__report_open(report, NULL, '{');
    kinf__report_text(report, "name", resource->name);
    kinf__report_text(report, "singularName", resource->singular);
    kinf__report_bool(report, "namespaced", resource->namespaced);
    if (entry->answer_group != NULL)
        kinf__report_text(report, "group", entry->answer_group);
    if (entry->answer_version != NULL)
        kinf__report_text(report, "version", entry->answer_version);
    kinf__report_text(report, "kind", resource->kind);
    put_words_of(writer, entry);
    kinf__report_close(report, '}');
}

int kinf__catalog_write_resources(const struct kinf__server *server, const char *group,
                                  const char *version, struct kinf__buffer *out)
{
    struct writer writer = begin(server, out, "APIResourceList", *group != '\0' ? "v1" : "");
    const struct kinf__catalog_entry *entry;
    size_t i = 0;

    if (next_served(&writer, &i, group, version) == NULL)
        return KINF_ERR_NOT_FOUND;
    put_group_version(&writer, group, version);
    kinf__report_open(&writer.report, "resources", '[');
    for (i = 0; (entry = next_served(&writer, &i, group, version)) != NULL;)
        put_resource(&writer, entry);
    kinf__report_close(&writer.report, ']');
    return end(&writer);
}

/* --- aggregated documents --- */

static void put_response_kind(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    struct kinf__report *report = &writer->report;

    kinf__report_open(report, "responseKind", '{');
    kinf__report_text(report, "group",
                      entry->answer_group != NULL ? entry->answer_group : entry->group);
    kinf__report_text(report, "version",
                      entry->answer_version != NULL ? entry->answer_version : entry->version);
    kinf__report_text(report, "kind", entry->resource.kind);
    kinf__report_close(report, '}');
}

/* Whether an entry is a subresource of another one. */
static bool is_below(const struct kinf__catalog_entry *entry,
                     const struct kinf__catalog_entry *resource)
{
    size_t len = strlen(resource->resource.name);

    return strncmp(entry->resource.name, resource->resource.name, len) == 0 &&
           entry->resource.name[len] == '/';
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
            kinf__report_open(&writer->report, "subresources", '[');
        has_begun = true;
        kinf__report_open(&writer->report, NULL, '{');
        kinf__report_text(&writer->report, "subresource", strchr(entry->resource.name, '/') + 1);
        put_response_kind(writer, entry);
        put_words_of(writer, entry);
        kinf__report_close(&writer->report, '}');
    }
    if (has_begun)
        kinf__report_close(&writer->report, ']');
}

static void put_aggregated_resource(struct writer *writer, const struct kinf__catalog_entry *entry)
{
    const struct kinf__discovery_resource *resource = &entry->resource;
    struct kinf__report *report = &writer->report;

    kinf__report_open(report, NULL, '{');
    kinf__report_text(report, "resource", resource->name);
    put_response_kind(writer, entry);
    kinf__report_text(report, "scope", resource->namespaced ? "Namespaced" : "Cluster");
    kinf__report_text(report, "singularResource", resource->singular);
    put_words_of(writer, entry);
    put_subresources(writer, entry);
    kinf__report_close(report, '}');
}

static void put_aggregated_version(struct writer *writer, const char *group, const char *version)
{
    const struct kinf__catalog_entry *entry;

    kinf__report_open(&writer->report, NULL, '{');
    kinf__report_text(&writer->report, "version", version);
    kinf__report_open(&writer->report, "resources", '[');
    for (size_t i = 0; (entry = next_served(writer, &i, group, version)) != NULL;) {
        if (strchr(entry->resource.name, '/') == NULL)
            put_aggregated_resource(writer, entry);
    }
    kinf__report_close(&writer->report, ']');
    kinf__report_text(&writer->report, "freshness", "Current");
    kinf__report_close(&writer->report, '}');
}

static void put_aggregated_group(struct writer *writer, const char *group)
{
    const struct kinf__catalog_entry *entry;

    kinf__report_open(&writer->report, NULL, '{');
    kinf__report_open(&writer->report, "metadata", '{');
    kinf__report_said(&writer->report, "name", group);
    kinf__report_close(&writer->report, '}');
    kinf__report_open(&writer->report, "versions", '[');
    for (size_t i = 0; (entry = next_served(writer, &i, group, NULL)) != NULL;) {
        if (is_first(writer, entry, true))
            put_aggregated_version(writer, group, entry->version);
    }
    kinf__report_close(&writer->report, ']');
    kinf__report_close(&writer->report, '}');
}

int kinf__catalog_write_aggregated(const struct kinf__server *server, bool is_core,
                                   struct kinf__buffer *out)
{
    struct writer writer = begin(server, out, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2");
    const struct kinf__catalog_entry *entry;

    kinf__report_open(&writer.report, "metadata", '{');
    kinf__report_close(&writer.report, '}');
    kinf__report_open(&writer.report, "items", '[');
    for (size_t i = 0; (entry = next_served(&writer, &i, NULL, NULL)) != NULL;) {
        if ((*entry->group == '\0') == is_core && is_first(&writer, entry, false))
            put_aggregated_group(&writer, entry->group);
    }
    kinf__report_close(&writer.report, ']');
    return end(&writer);
}
