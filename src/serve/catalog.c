/*
 * Reading the upstream's discovery documents. Neighbours: discovery.c writes them again, cut down to
 * what is served; rest/discovery_reader.h has them.
 */
#include "serve/catalog.h"

#include <stdlib.h>
#include <string.h>

#include <kinformer/request.h>

#include "base/error.h"
#include "json/scan.h"
#include "rest/discovery_reader.h"
#include "rest/url.h"
#include "serve/catalog_priv.h"

#define MARK "kinformerd"

static void entry_release(struct kinf__catalog_entry *entry)
{
    free(entry->group);
    free(entry->version);
    free(entry->name);
    free(entry->singular);
    free(entry->kind);
    free(entry->short_names);
    free(entry->categories);
    free(entry->verbs);
    free(entry->answer_group);
    free(entry->answer_version);
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

/* The decoded member, or NULL: none, no string, or out of memory. */
static char *dup_member(struct kinf__json_value object, const char *name)
{
    struct kinf__json_value value;
    char *text;
    size_t len;

    if (!kinf__json_member(object, kinf_str_from(name), &value) || value.type != KINF__JSON_STRING)
        return NULL;
    text = malloc(value.raw.len + 1);
    if (text == NULL)
        return NULL;
    len = kinf__json_unescape(value.raw, text, value.raw.len);
    text[len] = '\0';
    return text;
}

static char *dup_raw(struct kinf__json_value object, const char *name)
{
    struct kinf__json_value value;

    if (!kinf__json_member(object, kinf_str_from(name), &value) || value.type != KINF__JSON_ARRAY)
        return NULL;
    return strndup(value.raw.bytes, value.raw.len);
}

static bool is_true(struct kinf__json_value object, const char *name)
{
    struct kinf__json_value value;

    return kinf__json_member(object, kinf_str_from(name), &value) &&
           kinf_str_equal(value.raw, KINF_STR("true"));
}

static int dup_text(const char *text, char **ret_copy)
{
    *ret_copy = text != NULL ? strdup(text) : NULL;
    return (*ret_copy == NULL) == (text == NULL) ? 0 : KINF_ERR_NO_MEMORY;
}

int kinf__catalog_add(struct kinf__catalog *catalog, const struct kinf__catalog_entry *entry)
{
    struct kinf__catalog_entry copy = { .namespaced = entry->namespaced };
    struct kinf__catalog_entry *entries =
        realloc(catalog->entries, (catalog->n_entries + 1) * sizeof *entries);

    if (entries == NULL)
        return KINF_ERR_NO_MEMORY;
    catalog->entries = entries;
    if (dup_text(entry->group, &copy.group) < 0 || dup_text(entry->version, &copy.version) < 0 ||
        dup_text(entry->name, &copy.name) < 0 || dup_text(entry->singular, &copy.singular) < 0 ||
        dup_text(entry->kind, &copy.kind) < 0 ||
        dup_text(entry->short_names, &copy.short_names) < 0 ||
        dup_text(entry->categories, &copy.categories) < 0 ||
        dup_text(entry->verbs, &copy.verbs) < 0 ||
        dup_text(entry->answer_group, &copy.answer_group) < 0 ||
        dup_text(entry->answer_version, &copy.answer_version) < 0) {
        entry_release(&copy);
        return KINF_ERR_NO_MEMORY;
    }
    entries[catalog->n_entries++] = copy;
    return 0;
}

static int add_resource(struct kinf__catalog *catalog, const char *group, const char *version,
                        struct kinf__json_value resource)
{
    KINF__AUTO_FREE char *name = dup_member(resource, "name"),
                         *singular = dup_member(resource, "singularName"),
                         *kind = dup_member(resource, "kind"),
                         *short_names = dup_raw(resource, "shortNames"),
                         *categories = dup_raw(resource, "categories");
    const struct kinf__catalog_entry entry = { .group = (char *)(uintptr_t)group,
                                               .version = (char *)(uintptr_t)version,
                                               .name = name,
                                               .singular = singular,
                                               .kind = kind,
                                               .short_names = short_names,
                                               .categories = categories,
                                               .namespaced = is_true(resource, "namespaced") };

    return name != NULL && kind != NULL ? kinf__catalog_add(catalog, &entry) : KINF_ERR_NO_MEMORY;
}

int kinf__catalog_add_list(struct kinf__catalog *catalog, const char *group, const char *version,
                           struct kinf_str answer)
{
    struct kinf__json_value list, item;
    struct kinf__json_iter iter;
    struct kinf_str key;
    size_t len;
    int failed = 0;

    if (kinf__json_scan_all(answer, KINF__JSON_MAX_DEPTH, &len) < 0 ||
        !kinf__json_member(kinf__json_value_of(answer), KINF_STR("resources"), &list) ||
        !kinf__json_iter_init(&iter, list))
        return 0;
    while (failed == 0 && kinf__json_iter_next(&iter, &key, &item)) {
        if (item.type == KINF__JSON_OBJECT)
            failed = add_resource(catalog, group, version, item);
    }
    return failed;
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
            strcmp(entry->name, name) == 0)
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

static int fetch_list(struct kinf__catalog *catalog, struct kinf__discovery_reader *reader,
                      const char *group, const char *version, struct kinf_error *err)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    struct kinf_str answer;
    int failed;

    if (kinf__url_append_version(&target, group, version) < 0 || kinf__buffer_cstr(&target) == NULL)
        return kinf__error_no_memory(err);
    failed = kinf__discovery_read(reader, target.bytes, &answer, err);
    /* An extension's server may be away: what it has cannot be served then. */
    if (failed == KINF_ERR_SERVER || failed == KINF_ERR_NOT_FOUND || failed == KINF_ERR_FORBIDDEN)
        return 0;
    if (failed < 0)
        return failed;
    return kinf__catalog_add_list(catalog, group, version, answer) < 0 ? kinf__error_no_memory(err)
                                                                       : 0;
}

static int fetch_group(struct kinf__catalog *catalog, struct kinf__discovery_reader *reader,
                       struct kinf__json_value group, struct kinf_error *err)
{
    KINF__AUTO_FREE char *name = dup_member(group, "name");
    struct kinf__json_value versions, item;
    struct kinf__json_iter iter;
    struct kinf_str key;
    int failed = 0;

    if (name == NULL || !kinf__json_member(group, KINF_STR("versions"), &versions) ||
        !kinf__json_iter_init(&iter, versions))
        return 0;
    while (failed == 0 && kinf__json_iter_next(&iter, &key, &item)) {
        KINF__AUTO_FREE char *version = dup_member(item, "version");

        if (version != NULL)
            failed = fetch_list(catalog, reader, name, version, err);
    }
    return failed;
}

static int fetch_groups(struct kinf__catalog *catalog, struct kinf__discovery_reader *reader,
                        struct kinf_error *err)
{
    struct kinf__json_value groups, item;
    struct kinf__json_iter iter;
    struct kinf_str key, answer;
    size_t len;
    int failed = kinf__discovery_read(reader, "/apis", &answer, err);

    if (failed < 0)
        return failed;
    if (kinf__json_scan_all(answer, KINF__JSON_MAX_DEPTH, &len) < 0 ||
        !kinf__json_member(kinf__json_value_of(answer), KINF_STR("groups"), &groups) ||
        !kinf__json_iter_init(&iter, groups))
        return kinf__error_set(err, KINF_ERR_PARSE, "the server's list of API groups is none");
    while (failed == 0 && kinf__json_iter_next(&iter, &key, &item))
        failed = fetch_group(catalog, reader, item, err);
    return failed;
}

static int fetch(struct kinf__catalog *catalog, struct kinf__discovery_reader *reader,
                 struct kinf_error *err)
{
    int failed;

    (void)kinf__discovery_refresh(reader);
    failed = fetch_list(catalog, reader, "", "v1", err);
    return failed < 0 ? failed : fetch_groups(catalog, reader, err);
}

int kinf__catalog_fetch(struct kinf_client *client, struct kinf__catalog **ret_catalog,
                        struct kinf_error *err)
{
    kinf_auto_response version = KINF_RESPONSE_INIT;
    struct kinf__discovery_reader *reader = NULL;
    struct kinf__catalog *catalog;
    int failed;

    if (kinf__catalog_new(&catalog) < 0)
        return kinf__error_no_memory(err);
    failed = kinf__discovery_open(client, &reader, err);
    if (failed == 0)
        failed = fetch(catalog, reader, err);
    kinf__discovery_close(reader);
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
