/*
 * What names mean in legacy discovery, which every server answers: /api/v1, /apis, /apis/GROUP,
 * /apis/GROUP/VERSION. Neighbours: discovery_reader.c caches, documents.c takes the aggregated form
 * apart, http.c asks, json/tree.h reads the answers.
 */
#include "rest/discovery.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/misuse.h"
#include "json/tree.h"
#include "rest/client.h"
#include "rest/discovery_reader.h"
#include "rest/http.h"
#include "rest/url.h"

#define NAME_SIZE        256
#define ANSWER_MAX_BYTES (16u << 20)
#define CORE_VERSION     "v1"

/* A name as kubectl takes it, in lower case: the resource, and what stands behind its dot. */
struct spelling {
    char resource[NAME_SIZE];
    char rest[NAME_SIZE];
};

/* One search, and what it went past. */
struct search {
    const struct kinf__discovery_source *source;
    const char *resource;
    char away[NAME_SIZE]; /* a group that did not answer */
};

#define AUTO_TREE KINF__CLEANUP(kinf__json_tree_free_ptr) struct cJSON

static int collect(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct kinf__buffer *answer = ctx;

    if (answer->len + len > ANSWER_MAX_BYTES)
        return kinf__error_set(err, KINF_ERR_LIMIT, "a discovery answer above %u bytes",
                               ANSWER_MAX_BYTES);
    return kinf__buffer_append(answer, bytes, len) < 0 ? kinf__error_no_memory(err) : 0;
}

int kinf__discovery_ask(struct kinf__http *http, const char *target, const char *accept,
                        struct kinf__buffer *answer, struct kinf_error *err)
{
    const struct kinf__http_request request = { .target = target,
                                                .accept = accept,
                                                .total_timeout_ms =
                                                    kinf__http_request_timeout_ms(http),
                                                .on_body = collect,
                                                .ctx = answer };

    return kinf__http_perform(http, &request, err);
}

static int parse(const char *target, struct kinf_str text, struct cJSON **ret_tree,
                 struct kinf_error *err)
{
    int failed = kinf__json_tree_parse(text, ret_tree, err);

    if (failed < 0)
        kinf__error_prefix(err, "discovery %s", target);
    return failed;
}

int kinf__discovery_ask_server(void *ctx, const char *target, struct cJSON **ret_tree,
                               struct kinf_error *err)
{
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    int failed = kinf__discovery_ask(ctx, target, NULL, &answer, err);

    return failed < 0 ? failed : parse(target, kinf__buffer_str(&answer), ret_tree, err);
}

/* Asks the cache: `ctx` is a reader. */
static int ask_cache(void *ctx, const char *target, struct cJSON **ret_tree, struct kinf_error *err)
{
    struct kinf_str text;
    int failed = kinf__discovery_read(ctx, target, &text, err);

    return failed < 0 ? failed : parse(target, text, ret_tree, err);
}

/* --- one APIResourceList --- */

static bool has_word(const struct cJSON *array, const char *word)
{
    for (const struct cJSON *at = kinf__json_tree_first(array); at != NULL;
         at = kinf__json_tree_next(at)) {
        const char *text = kinf__json_tree_string(at);

        if (text != NULL && strcmp(text, word) == 0)
            return true;
    }
    return false;
}

static bool is_plural(const struct cJSON *resource, const char *name)
{
    const char *plural = kinf__json_tree_string(kinf__json_tree_find(resource, "name", NULL));

    return plural != NULL && strcasecmp(plural, name) == 0;
}

/* Singular, kind or a short name. Servers before 1.27 leave the singular of their own types out. */
static bool is_otherwise_named(const struct cJSON *resource, const char *name)
{
    const char *plural = kinf__json_tree_string(kinf__json_tree_find(resource, "name", NULL));
    const char *kind = kinf__json_tree_string(kinf__json_tree_find(resource, "kind", NULL));
    const char *singular =
        kinf__json_tree_string(kinf__json_tree_find(resource, "singularName", NULL));

    if (plural == NULL || strchr(plural, '/') != NULL || *name == '\0')
        return false;
    return (singular != NULL && strcasecmp(singular, name) == 0) ||
           (kind != NULL && strcasecmp(kind, name) == 0) ||
           has_word(kinf__json_tree_find(resource, "shortNames", NULL), name);
}

static const struct cJSON *find_named(const struct cJSON *list, const char *name,
                                      bool (*is_named)(const struct cJSON *, const char *))
{
    const struct cJSON *at = kinf__json_tree_first(kinf__json_tree_find(list, "resources", NULL));

    while (at != NULL && !is_named(at, name))
        at = kinf__json_tree_next(at);
    return at;
}

static int make_type(const struct cJSON *resource, const char *group, const char *version,
                     const struct kinf_type **ret_type, struct kinf_error *err)
{
    const char *plural = kinf__json_tree_string(kinf__json_tree_find(resource, "name", NULL));
    const char *kind = kinf__json_tree_string(kinf__json_tree_find(resource, "kind", NULL));
    const struct cJSON *verbs = kinf__json_tree_find(resource, "verbs", NULL);

    if (!has_word(verbs, "list") || !has_word(verbs, "watch"))
        return kinf__error_set(err, KINF_ERR_UNSUPPORTED,
                               "the resource '%s' cannot be listed and watched", plural);
    return kinf_type_intern(
        group, version, kind, plural,
        kinf__json_tree_is_true(kinf__json_tree_find(resource, "namespaced", NULL)), ret_type, err);
}

int kinf__discovery_pick(const struct cJSON *list, const char *name, const char *group,
                         const char *version, const struct kinf_type **ret_type,
                         struct kinf_error *err)
{
    const struct cJSON *resource = NULL;

    /* A slash is a subresource's. */
    if (strchr(name, '/') == NULL)
        resource = find_named(list, name, is_plural);
    if (resource == NULL)
        resource = find_named(list, name, is_otherwise_named);
    return resource != NULL ? make_type(resource, group, version, ret_type, err)
                            : KINF_ERR_NOT_FOUND;
}

/* --- where to look; KINF_ERR_NOT_FOUND means that it is not there, whatever `err` says --- */

static int ask(const struct search *search, const char *target, struct cJSON **ret_tree,
               struct kinf_error *err)
{
    return search->source->ask(search->source->ctx, target, ret_tree, err);
}

static int find_in_version(const struct search *search, const char *group, const char *version,
                           const struct kinf_type **ret_type, struct kinf_error *err)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    AUTO_TREE *list = NULL;
    const char *text;
    int failed;

    if (kinf__url_append_version(&target, group, version) < 0 ||
        (text = kinf__buffer_cstr(&target)) == NULL)
        return kinf__error_no_memory(err);
    failed = ask(search, text, &list, err);
    return failed < 0 ? failed
                      : kinf__discovery_pick(list, search->resource, group, version, ret_type, err);
}

/* The preferred version first; a type that is young may be in another one only. */
static int find_in_group(const struct search *search, const struct cJSON *group,
                         const struct kinf_type **ret_type, struct kinf_error *err)
{
    const char *name = kinf__json_tree_string(kinf__json_tree_find(group, "name", NULL));
    const char *preferred =
        kinf__json_tree_string(kinf__json_tree_find(group, "preferredVersion", "version", NULL));
    const struct cJSON *at = kinf__json_tree_first(kinf__json_tree_find(group, "versions", NULL));
    int failed;

    if (name == NULL || preferred == NULL)
        return KINF_ERR_NOT_FOUND;
    failed = find_in_version(search, name, preferred, ret_type, err);
    for (; at != NULL && failed == KINF_ERR_NOT_FOUND; at = kinf__json_tree_next(at)) {
        const char *version = kinf__json_tree_string(kinf__json_tree_find(at, "version", NULL));

        if (version != NULL && strcmp(version, preferred) != 0)
            failed = find_in_version(search, name, version, ret_type, err);
    }
    return failed;
}

static int find_in_named_group(const struct search *search, const char *name,
                               const struct kinf_type **ret_type, struct kinf_error *err)
{
    char target[NAME_SIZE + 8];
    AUTO_TREE *group = NULL;
    int failed;

    snprintf(target, sizeof target, "/apis/%s", name);
    failed = ask(search, target, &group, err);
    return failed < 0 ? failed : find_in_group(search, group, ret_type, err);
}

static int find_in_listed_groups(struct search *search, const struct kinf_type **ret_type,
                                 struct kinf_error *err)
{
    AUTO_TREE *groups = NULL;
    const struct cJSON *at;
    int failed = ask(search, "/apis", &groups, err);

    if (failed < 0)
        return failed;
    failed = KINF_ERR_NOT_FOUND;
    at = kinf__json_tree_first(kinf__json_tree_find(groups, "groups", NULL));
    for (; at != NULL && failed == KINF_ERR_NOT_FOUND; at = kinf__json_tree_next(at)) {
        failed = find_in_group(search, at, ret_type, err);
        /* A group whose backend is away must not hide those behind it. */
        if (failed == KINF_ERR_SERVER) {
            snprintf(search->away, sizeof search->away, "%s",
                     kinf__json_tree_string(kinf__json_tree_find(at, "name", NULL)));
            failed = KINF_ERR_NOT_FOUND;
        }
    }
    return failed;
}

static int find_anywhere(struct search *search, const struct kinf_type **ret_type,
                         struct kinf_error *err)
{
    int failed = find_in_version(search, "", CORE_VERSION, ret_type, err);

    return failed == KINF_ERR_NOT_FOUND ? find_in_listed_groups(search, ret_type, err) : failed;
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
static bool parse_spelling(const char *text, struct spelling *ret_spelling)
{
    char lower[NAME_SIZE];
    size_t len = strlen(text);
    const char *dot, *rest = "";

    if (len >= NAME_SIZE)
        return false;
    for (size_t i = 0; i <= len; i++)
        lower[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    dot = strchr(lower, '.');
    if (len != 0 && dot != NULL && lower[len - 1] == '.')
        lower[len - 1] = '\0';
    if (!is_plain(lower))
        return false;
    if (dot == lower + len - 1)
        rest = CORE_VERSION;
    else if (dot != NULL)
        rest = dot + 1;
    snprintf(ret_spelling->resource, NAME_SIZE, "%.*s", (int)strcspn(lower, "."), lower);
    snprintf(ret_spelling->rest, NAME_SIZE, "%s", rest);
    return true;
}

/* "VERSION" or "VERSION.GROUP" */
static int find_in_named_version(const struct search *search, const char *rest,
                                 const struct kinf_type **ret_type, struct kinf_error *err)
{
    char version[NAME_SIZE];
    size_t len = strcspn(rest, ".");

    snprintf(version, sizeof version, "%.*s", (int)len, rest);
    return find_in_version(search, rest[len] == '.' ? rest + len + 1 : "", version, ret_type, err);
}

/* What stands behind the resource can mean a group, or a version and a group: first what it looks
 * like, then the other. A version of the core group always looks like one. */
static int find(struct search *search, const char *rest, const struct kinf_type **ret_type,
                struct kinf_error *err)
{
    bool looks_versioned = is_version(rest, strcspn(rest, "."));
    int failed = KINF_ERR_NOT_FOUND;

    if (*rest == '\0')
        return find_anywhere(search, ret_type, err);
    if (looks_versioned)
        failed = find_in_named_version(search, rest, ret_type, err);
    if (failed == KINF_ERR_NOT_FOUND)
        failed = find_in_named_group(search, rest, ret_type, err);
    if (failed == KINF_ERR_NOT_FOUND && !looks_versioned && strchr(rest, '.') != NULL)
        failed = find_in_named_version(search, rest, ret_type, err);
    return failed;
}

int kinf__discovery_find_from(const struct kinf__discovery_source *source, const char *resource,
                              const struct kinf_type **ret_type, struct kinf_error *err)
{
    struct kinf_error told = KINF_ERROR_INIT;
    struct spelling wanted;
    struct search search = { .source = source, .resource = wanted.resource };
    int failed;

    if (!parse_spelling(resource, &wanted))
        return kinf__error_set(
            err, KINF_ERR_INVALID,
            "'%s' is no name of a resource: pods, deployments.apps or deployments.v1.apps",
            resource);
    failed = find(&search, wanted.rest, ret_type, &told);
    if (failed == KINF_ERR_NOT_FOUND)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND,
                               "the server %s has no resource '%s'%s%s (see: kubectl "
                               "api-resources)",
                               source->host, resource,
                               *search.away != '\0' ? ", unless in a group that is away: " : "",
                               search.away);
    if (failed < 0 && err != NULL)
        *err = told;
    return failed;
}

/* A name that is unknown may be new. */
static int find_cached(struct kinf_client *client, struct kinf__discovery_reader *reader,
                       const char *resource, const struct kinf_type **ret_type,
                       struct kinf_error *err)
{
    const struct kinf__discovery_source source = { ask_cache, reader, client->host };
    struct kinf_error unknown = KINF_ERROR_INIT;
    int failed = kinf__discovery_find_from(&source, resource, ret_type, &unknown);

    /* What is away may be back, and what could not be watched may be able to. */
    if ((failed == KINF_ERR_NOT_FOUND || failed == KINF_ERR_SERVER ||
         failed == KINF_ERR_UNSUPPORTED) &&
        kinf__discovery_refresh(reader))
        failed = kinf__discovery_find_from(&source, resource, ret_type, &unknown);
    if (failed < 0 && err != NULL)
        *err = unknown;
    return failed;
}

static int find_type(struct kinf_client *client, const char *resource, bool is_anew,
                     const struct kinf_type **ret_type, struct kinf_error *err)
{
    struct kinf__discovery_reader *reader = NULL;
    int failed;

    kinf__client_hold(client);
    failed = kinf__discovery_open(client, &reader, err);
    if (failed == 0 && is_anew)
        (void)kinf__discovery_refresh(reader);
    if (failed == 0)
        failed = find_cached(client, reader, resource, ret_type, err);
    kinf__discovery_close(reader);
    kinf__client_let_go(client);
    return failed;
}

int kinf_client_find_type(struct kinf_client *client, const char *resource,
                          const struct kinf_type **ret_type, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, resource, ret_type);
    return find_type(client, resource, false, ret_type, err);
}

int kinf__discovery_find_anew(struct kinf_client *client, const char *resource,
                              const struct kinf_type **ret_type, struct kinf_error *err)
{
    return find_type(client, resource, true, ret_type, err);
}
