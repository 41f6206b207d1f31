/*
 * What the upstream's discovery says. Neighbours: discovery.c writes it again, cut down to what is
 * served; rest/discovery_cache.h has it.
 */
#include "serve/catalog.h"

#include <stdlib.h>
#include <string.h>

#include <kinformer/request.h>

#include "base/error.h"
#include "json/scan.h"
#include "rest/discovery_cache.h"
#include "serve/catalog_priv.h"

#define MARK "kinformerd"

#define N_TEXTS  10
#define N_ALWAYS 7 /* the first of them are never NULL */

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
    free(catalog->entries);
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

/* --- asking --- */

/* "gitVersion":"v1.37.1" becomes "v1.37.1+kinformerd", build metadata of a semantic version. */
static char *mark_version(struct kinf_str answer)
{
    KINF__AUTO_BUFFER marked = KINF__BUFFER_INIT;
    struct kinf__json_value value;
    struct kinf_str head = answer, tail = answer;
    size_t len;

    if (kinf__json_scan_all(answer, KINF__JSON_MAX_DEPTH, &len) < 0 ||
        !kinf__json_member(kinf__json_value_of(answer), KINF_STR("gitVersion"), &value) ||
        value.type != KINF__JSON_STRING)
        return NULL;
    head.len = (size_t)(value.raw.bytes + value.raw.len - 1 - answer.bytes);
    tail.bytes += head.len;
    tail.len -= head.len;
    if (kinf__buffer_append_str(&marked, head) < 0 ||
        kinf__buffer_printf(&marked, "%s" MARK,
                            memchr(value.raw.bytes, '+', value.raw.len) != NULL ? "." : "+") < 0 ||
        kinf__buffer_append_str(&marked, tail) < 0 || kinf__buffer_cstr(&marked) == NULL)
        return NULL;
    return strdup(marked.bytes);
}

static int add_version(struct kinf__catalog *catalog, const struct kinf__discovery_version *version)
{
    for (size_t i = 0; i < version->n_resources; i++) {
        struct kinf__catalog_entry entry = { .group = version->group,
                                             .version = version->name,
                                             .resource = version->resources[i] };

        entry.resource.verbs = NULL;
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

int kinf__catalog_fetch(struct kinf_client *client, struct kinf__catalog **ret_catalog,
                        struct kinf_error *err)
{
    kinf_auto_response struct kinf_response version = KINF_RESPONSE_INIT;
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
    if (failed < 0) {
        kinf__catalog_free(catalog);
        return failed;
    }
    if (kinf_client_request_raw(client, "GET", "/version", (struct kinf_str){ NULL, 0 }, NULL,
                                &version, NULL) == 0)
        catalog->version = mark_version(kinf_str_from(version.body));
    *ret_catalog = catalog;
    return 0;
}
