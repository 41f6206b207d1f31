/*
 * The table of what a server said, and what names mean in it. Neighbours: discovery_cache.c keeps a
 * client's table and asks its server, json/tree.h reads the answers.
 *
 * Invariant: only answers of the right kind can say that something is not there.
 */
#include "rest/discovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "json/tree.h"
#include "rest/url.h"

#define NAME_SIZE    256
#define CORE_VERSION "v1"

#define AGGREGATED "APIGroupDiscoveryList"
#define ACCEPT                                                                                     \
    "application/json;g=apidiscovery.k8s.io;v=v2;as=" AGGREGATED ","                               \
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=" AGGREGATED ",application/json"

#define AUTO_TREE KINF__CLEANUP(kinf__json_tree_free_ptr) struct cJSON

/* One search, and what it went past. */
struct search {
    struct kinf__discovery *table;
    const struct kinf__discovery_source *source;
    char resource[NAME_SIZE]; /* the name as kubectl takes it, in lower case, up to its dot */
    const char *rest;         /* what stands behind that */
    const char *away;         /* a group that did not answer; NULL: none yet */
};

static void drop_resources(struct kinf__discovery_version *version)
{
    for (size_t i = 0; i < version->n_resources; i++) {
        free(version->resources[i].name);
        free(version->resources[i].singular);
        free(version->resources[i].kind);
        free(version->resources[i].short_names);
        free(version->resources[i].categories);
        free(version->resources[i].verbs);
    }
    free(version->resources);
    version->resources = NULL;
    version->n_resources = 0;
}

static void drop_versions(struct kinf__discovery *table, size_t n_left)
{
    while (table->n_versions > n_left) {
        struct kinf__discovery_version *last = &table->versions[--table->n_versions];

        drop_resources(last);
        free(last->group);
        free(last->name);
    }
}

void kinf__discovery_release(struct kinf__discovery *table)
{
    drop_versions(table, 0);
    free(table->versions);
    *table = (struct kinf__discovery)KINF__DISCOVERY_INIT;
}

/* --- reading answers, whose forms differ in few words; out of memory is the only failure --- */

static const char *text_of(const struct cJSON *object, const char *name)
{
    return kinf__json_tree_string(kinf__json_tree_find(object, name, NULL));
}

/* What both forms say by different names; NULL: neither is there. */
static const char *either_of(const char *aggregated, const char *legacy)
{
    return aggregated != NULL ? aggregated : legacy;
}

static bool is_text(const struct cJSON *object, const char *name, const char *text)
{
    const char *value = text_of(object, name);

    return value != NULL && strcmp(value, text) == 0;
}

static const struct cJSON *first_of(const struct cJSON *object, const char *name)
{
    return kinf__json_tree_first(kinf__json_tree_find(object, name, NULL));
}

static char *dup_words(const struct cJSON *object, const char *name)
{
    KINF__AUTO_BUFFER words = KINF__BUFFER_INIT;

    for (const struct cJSON *at = first_of(object, name); at != NULL;
         at = kinf__json_tree_next(at)) {
        const char *word = kinf__json_tree_string(at);

        if (word != NULL && kinf__buffer_printf(&words, words.len != 0 ? ",%s" : "%s", word) < 0)
            return NULL;
    }
    return kinf__buffer_cstr(&words) != NULL ? strdup(words.bytes) : NULL;
}

/* Room for one more: twice as much whenever `n` has come to a power of two. */
static void *grow(void *items, size_t n, size_t size)
{
    return (n & (n - 1)) == 0 ? realloc(items, (n != 0 ? 2 * n : 1) * size) : items;
}

/* `parent` NULL: it is no subresource. */
static int add_resource(struct kinf__discovery_version *version, const struct cJSON *parent,
                        const struct cJSON *from)
{
    const struct cJSON *whole = parent != NULL ? parent : from;
    const char *name = either_of(text_of(whole, "resource"), text_of(whole, "name"));
    const char *sub = parent != NULL ? text_of(from, "subresource") : "";
    const char *singular =
        either_of(text_of(from, "singularResource"), text_of(from, "singularName"));
    const char *kind =
        kinf__json_tree_string(kinf__json_tree_find(from, "responseKind", "kind", NULL));
    struct kinf__discovery_resource *resources, *added;

    if (name == NULL || sub == NULL)
        return 0;
    resources = grow(version->resources, version->n_resources, sizeof *resources);
    if (resources == NULL)
        return KINF_ERR_NO_MEMORY;
    version->resources = resources;
    added = &resources[version->n_resources++];
    *added = (struct kinf__discovery_resource){
        .singular = strdup(either_of(singular, "")),
        .kind = strdup(either_of(kind, either_of(text_of(from, "kind"), ""))),
        .short_names = dup_words(from, "shortNames"),
        .categories = dup_words(from, "categories"),
        .verbs = dup_words(from, "verbs"),
        .namespaced = is_text(whole, "scope", "Namespaced") ||
                      kinf__json_tree_is_true(kinf__json_tree_find(whole, "namespaced", NULL)),
    };
    if (asprintf(&added->name, "%s%s%s", name, *sub != '\0' ? "/" : "", sub) < 0)
        added->name = NULL;
    return added->name != NULL && added->singular != NULL && added->kind != NULL &&
                   added->short_names != NULL && added->categories != NULL && added->verbs != NULL
               ? 0
               : KINF_ERR_NO_MEMORY;
}

/* Of an APIResourceList, or of one version of an APIGroupDiscoveryList. */
static int add_resources(struct kinf__discovery_version *version, const struct cJSON *list)
{
    int failed = 0;

    for (const struct cJSON *at = first_of(list, "resources"); failed == 0 && at != NULL;
         at = kinf__json_tree_next(at)) {
        failed = add_resource(version, NULL, at);
        for (const struct cJSON *sub = first_of(at, "subresources"); failed == 0 && sub != NULL;
             sub = kinf__json_tree_next(sub))
            failed = add_resource(version, at, sub);
    }
    return failed;
}

/* `from` NULL: nothing but its name is known. */
static int add_version(struct kinf__discovery *table, const char *group, const char *name,
                       const struct cJSON *from)
{
    struct kinf__discovery_version *versions =
        grow(table->versions, table->n_versions, sizeof *versions);
    struct kinf__discovery_version *added;

    if (versions == NULL)
        return KINF_ERR_NO_MEMORY;
    table->versions = versions;
    added = &versions[table->n_versions++];
    *added = (struct kinf__discovery_version){ .group = strdup(group), .name = strdup(name) };
    if (added->group == NULL || added->name == NULL)
        return KINF_ERR_NO_MEMORY;
    if (from == NULL)
        return 0;
    added->state =
        is_text(from, "freshness", "Stale") ? KINF__DISCOVERY_AWAY : KINF__DISCOVERY_READ;
    return added->state == KINF__DISCOVERY_READ ? add_resources(added, from) : 0;
}

/* The first version of an aggregated group is the preferred one. */
static int add_group(struct kinf__discovery *table, const char *name, const struct cJSON *group,
                     bool is_aggregated)
{
    const struct cJSON *preference =
        is_aggregated ? NULL : kinf__json_tree_find(group, "preferredVersion", NULL);
    const char *preferred = text_of(preference, "version");
    int failed = preferred != NULL ? add_version(table, name, preferred, NULL) : 0;

    for (const struct cJSON *at = first_of(group, "versions"); failed == 0 && at != NULL;
         at = kinf__json_tree_next(at)) {
        const char *version = text_of(at, "version");

        if (version != NULL && (preferred == NULL || strcmp(version, preferred) != 0))
            failed = add_version(table, name, version, is_aggregated ? at : NULL);
    }
    return failed;
}

/* Of an APIGroupDiscoveryList or an APIGroupList: the core group, which has no name, or all that
 * have one. */
static int add_groups(struct kinf__discovery *table, const struct cJSON *list, bool is_core)
{
    bool is_aggregated = is_text(list, "kind", AGGREGATED);
    int failed = 0;

    for (const struct cJSON *at = first_of(list, is_aggregated ? "items" : "groups");
         failed == 0 && at != NULL; at = kinf__json_tree_next(at)) {
        const struct cJSON *metadata =
            is_aggregated ? kinf__json_tree_find(at, "metadata", NULL) : at;
        const char *name = text_of(metadata, "name");

        if ((name == NULL || *name == '\0') == is_core)
            failed = add_group(table, is_core ? "" : name, at, is_aggregated);
    }
    return failed;
}

/* --- asking --- */

/* `kind` NULL: any answer will do. */
static int read_answer(struct kinf_str answer, const char *accept, const char *kind,
                       struct cJSON **ret_tree, struct kinf_error *err)
{
    int failed = kinf__json_tree_parse(answer, ret_tree, err);

    if (failed == 0 && kind != NULL && !is_text(*ret_tree, "kind", kind) &&
        (accept == NULL || !is_text(*ret_tree, "kind", AGGREGATED)))
        failed = kinf__error_set(err, KINF_ERR_PROTOCOL, "the answer is no %s", kind);
    return failed;
}

static int ask(const struct kinf__discovery_source *source, const char *target, const char *accept,
               const char *kind, struct cJSON **ret_tree, struct kinf_error *err)
{
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    struct kinf_error own = KINF_ERROR_INIT;
    int failed = source->ask(source->ctx, target, accept, &answer, &own);
    bool is_answered = failed == 0 || failed == KINF_ERR_PARSE || failed == KINF_ERR_PROTOCOL;

    if (failed == 0)
        failed = read_answer(kinf__buffer_str(&answer), accept, kind, ret_tree, &own);
    if (failed < 0 && is_answered) {
        if (failed == KINF_ERR_PARSE)
            failed = own.code = KINF_ERR_PROTOCOL;
        kinf__error_prefix(&own, "the server %s: discovery %s", source->host, target);
    }
    if (failed < 0 && err != NULL)
        *err = own;
    return failed;
}

/* A server that does not know the aggregated form may say 404 to /api; it has one core version. */
static int list(struct kinf__discovery *table, const struct kinf__discovery_source *source,
                bool is_core, const char *accept, struct kinf_error *err)
{
    const char *target = is_core ? "/api" : "/apis";
    bool *is_listed = is_core ? &table->has_core : &table->has_groups;
    size_t n_before = table->n_versions;
    AUTO_TREE *tree = NULL;
    int failed =
        *is_listed ? 0 : ask(source, target, accept, is_core ? NULL : "APIGroupList", &tree, err);

    if (*is_listed || (failed < 0 && !(is_core && failed == KINF_ERR_NOT_FOUND)))
        return failed;
    if (is_core && !is_text(tree, "kind", AGGREGATED))
        failed = add_version(table, "", CORE_VERSION, NULL);
    else
        failed = add_groups(table, tree, is_core);
    if (failed < 0) {
        drop_versions(table, n_before);
        return kinf__error_no_memory(err);
    }
    *is_listed = true;
    return 0;
}

static int read_version(struct kinf__discovery_version *version,
                        const struct kinf__discovery_source *source, struct kinf_error *err)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    AUTO_TREE *tree = NULL;
    const char *text;
    int failed;

    if (version->state == KINF__DISCOVERY_READ)
        return 0;
    if (kinf__url_append_version(&target, version->group, version->name) < 0 ||
        (text = kinf__buffer_cstr(&target)) == NULL)
        return kinf__error_no_memory(err);
    if (version->state == KINF__DISCOVERY_AWAY)
        return kinf__error_set(err, KINF_ERR_SERVER, "what answers %s is away", text);
    failed = ask(source, text, NULL, "APIResourceList", &tree, err);
    if (failed < 0)
        return failed;
    if (add_resources(version, tree) < 0) {
        drop_resources(version);
        return kinf__error_no_memory(err);
    }
    version->state = KINF__DISCOVERY_READ;
    return 0;
}

/* What comes of one extension's server that is away, or broken. */
static bool is_broken(int failed)
{
    return failed == KINF_ERR_SERVER || failed == KINF_ERR_PROTOCOL || failed == KINF_ERR_TRUNCATED;
}

int kinf__discovery_read_all(struct kinf__discovery *table,
                             const struct kinf__discovery_source *source, struct kinf_error *err)
{
    struct kinf_error told = KINF_ERROR_INIT;
    int failed = list(table, source, true, ACCEPT, &told);

    if (failed == 0)
        failed = list(table, source, false, ACCEPT, &told);
    for (size_t i = 0; failed == 0 && i < table->n_versions; i++) {
        failed = read_version(&table->versions[i], source, &told);
        if (is_broken(failed) || failed == KINF_ERR_NOT_FOUND || failed == KINF_ERR_FORBIDDEN)
            failed = 0;
    }
    if (failed < 0 && err != NULL)
        *err = told;
    return failed;
}

/* --- one version's resources --- */

bool kinf__has_word(const char *words, const char *word)
{
    size_t len;

    for (; *words != '\0'; words += len + (words[len] == ',')) {
        len = strcspn(words, ",");
        if (len == strlen(word) && memcmp(words, word, len) == 0)
            return true;
    }
    return false;
}

/* The plural, or else singular, kind or a short name. Servers before 1.27 leave the singular of
 * their own types out. A slash is a subresource's. */
static const struct kinf__discovery_resource *find_resource(
    const struct kinf__discovery_version *version, const char *name)
{
    const struct kinf__discovery_resource *found = NULL;

    for (size_t i = 0; i < version->n_resources; i++) {
        const struct kinf__discovery_resource *at = &version->resources[i];

        if (strchr(at->name, '/') != NULL)
            continue;
        if (strcasecmp(at->name, name) == 0)
            return at;
        if (found == NULL &&
            (strcasecmp(at->singular, name) == 0 || strcasecmp(at->kind, name) == 0 ||
             kinf__has_word(at->short_names, name)))
            found = at;
    }
    return found;
}

/* --- where to look; KINF_ERR_NOT_FOUND means that it is not there, whatever `err` says --- */

static int find_in_version(const struct search *search, struct kinf__discovery_version *version,
                           const struct kinf_type **ret_type, struct kinf_error *err)
{
    const struct kinf__discovery_resource *found;
    int failed = read_version(version, search->source, err);

    if (failed < 0)
        return failed;
    found = find_resource(version, search->resource);
    if (found == NULL)
        return KINF_ERR_NOT_FOUND;
    if (!kinf__has_word(found->verbs, "list") || !kinf__has_word(found->verbs, "watch"))
        return kinf__error_set(err, KINF_ERR_UNSUPPORTED,
                               "the resource '%s' cannot be listed and watched", found->name);
    return kinf_type_intern(version->group, version->name, found->kind, found->name,
                            found->namespaced, ret_type, err);
}

static bool is_meant(const struct kinf__discovery_version *version, const char *group,
                     const char *name)
{
    return (group == NULL || strcmp(version->group, group) == 0) &&
           (name == NULL || strcmp(version->name, name) == 0);
}

/* `group` NULL: all groups; `version` NULL: all versions, since a type that is young may be in
 * another one than the preferred. */
static int find_in(struct search *search, const char *group, const char *version,
                   const struct kinf_type **ret_type, struct kinf_error *err)
{
    struct kinf__discovery *table = search->table;
    int failed = list(table, search->source, group != NULL && *group == '\0', ACCEPT, err);

    if (failed < 0)
        return failed;
    failed = KINF_ERR_NOT_FOUND;
    for (size_t i = 0; failed == KINF_ERR_NOT_FOUND && i < table->n_versions; i++) {
        struct kinf__discovery_version *at = &table->versions[i];

        if (!is_meant(at, group, version) ||
            (search->away != NULL && strcmp(at->group, search->away) == 0))
            continue;
        failed = find_in_version(search, at, ret_type, err);
        /* A group whose server is away must not hide those behind it. */
        if (group == NULL && is_broken(failed)) {
            search->away = at->group;
            failed = KINF_ERR_NOT_FOUND;
        }
    }
    return failed;
}

/* --- kubectl's spelling --- */

/* v1, v2beta1 and so on. */
static bool is_version(const char *text, size_t len)
{
    return len >= 2 && text[0] == 'v' && text[1] >= '0' && text[1] <= '9';
}

/* Names go into a path: nothing that would mean something there. */
static bool is_plain(const char *text)
{
    return *text != '\0' && *text != '.' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == strlen(text) &&
           strstr(text, "..") == NULL && text[strlen(text) - 1] != '.';
}

/* "pods", "deployments.apps", "deployments.v1.apps", "pods.v1" and "pods.v1."; nothing behind the
 * dot is the core group: "pods." */
static bool parse_spelling(const char *text, struct search *search)
{
    char *lower = search->resource, *dot;
    size_t len = strlen(text);
    bool ends_with_dot = len != 0 && text[len - 1] == '.';

    if (len >= NAME_SIZE)
        return false;
    for (size_t i = 0; i <= len; i++)
        lower[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    if (ends_with_dot)
        lower[len - 1] = '\0';
    if (!is_plain(lower))
        return false;
    dot = strchr(lower, '.');
    search->rest = ends_with_dot ? CORE_VERSION : "";
    if (dot != NULL) {
        search->rest = dot + 1;
        *dot = '\0';
    }
    return true;
}

/* "VERSION" or "VERSION.GROUP" */
static int find_versioned(struct search *search, const struct kinf_type **ret_type,
                          struct kinf_error *err)
{
    const char *rest = search->rest;
    char version[NAME_SIZE];
    size_t len = strcspn(rest, ".");

    snprintf(version, sizeof version, "%.*s", (int)len, rest);
    return find_in(search, rest[len] == '.' ? rest + len + 1 : "", version, ret_type, err);
}

/* What stands behind the resource can mean a group, or a version and a group: first what it looks
 * like, then the other. A version of the core group always looks like one. */
static int find(struct search *search, const struct kinf_type **ret_type, struct kinf_error *err)
{
    const char *rest = search->rest;
    bool looks_versioned = is_version(rest, strcspn(rest, "."));
    int failed = KINF_ERR_NOT_FOUND;

    if (*rest == '\0')
        failed = find_in(search, "", NULL, ret_type, err);
    else if (looks_versioned)
        failed = find_versioned(search, ret_type, err);
    if (failed == KINF_ERR_NOT_FOUND)
        failed = find_in(search, *rest != '\0' ? rest : NULL, NULL, ret_type, err);
    if (failed == KINF_ERR_NOT_FOUND && !looks_versioned && strchr(rest, '.') != NULL)
        failed = find_versioned(search, ret_type, err);
    return failed;
}

int kinf__discovery_find(struct kinf__discovery *table, const struct kinf__discovery_source *source,
                         const char *resource, const struct kinf_type **ret_type,
                         struct kinf_error *err)
{
    struct kinf_error told = KINF_ERROR_INIT;
    struct search search = { .table = table, .source = source };
    int failed;

    if (!parse_spelling(resource, &search))
        return kinf__error_set(
            err, KINF_ERR_INVALID,
            "'%s' is no name of a resource: pods, deployments.apps or deployments.v1.apps",
            resource);
    failed = find(&search, ret_type, &told);
    if (failed == KINF_ERR_NOT_FOUND)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND,
                               "the server %s has no resource '%s'%s%s (see: kubectl "
                               "api-resources)",
                               source->host, resource,
                               search.away != NULL ? ", unless in a group that is away: " : "",
                               search.away != NULL ? search.away : "");
    if (failed < 0 && err != NULL)
        *err = told;
    return failed;
}

int kinf__discovery_is_served(const struct kinf__discovery_source *source,
                              const struct kinf_type *type, bool *ret_is_served,
                              struct kinf_error *err)
{
    KINF__CLEANUP(kinf__discovery_release) struct kinf__discovery asked = KINF__DISCOVERY_INIT;
    struct kinf__discovery_version *found = NULL;
    const struct kinf__discovery_resource *resource = NULL;
    int failed;

    if (*type->group != '\0')
        failed = list(&asked, source, false, NULL, err);
    else
        failed = add_version(&asked, "", type->version, NULL) < 0 ? kinf__error_no_memory(err) : 0;
    for (size_t i = 0; found == NULL && i < asked.n_versions; i++)
        found =
            is_meant(&asked.versions[i], type->group, type->version) ? &asked.versions[i] : NULL;
    if (failed == 0 && found != NULL)
        failed = read_version(found, source, err);
    if (failed < 0)
        return failed;
    if (found != NULL)
        resource = find_resource(found, type->resource);
    *ret_is_served = resource != NULL && strcmp(resource->name, type->resource) == 0;
    return 0;
}
