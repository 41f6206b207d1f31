/*
 * Legacy discovery, which every server answers: /api/v1, /apis, /apis/GROUP, /apis/GROUP/VERSION.
 * Neighbours: http.c asks, json/tree.h reads the answers.
 */
#include "rest/discovery.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/error.h"
#include "json/tree.h"
#include "rest/client.h"

#define NAME_SIZE        256
#define ANSWER_MAX_BYTES (16u << 20)

/* A name as kubectl takes it, taken apart; "" where nothing was said. */
struct spelling {
    char resource[NAME_SIZE];
    char version[NAME_SIZE];
    char group[NAME_SIZE];
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

static int ask(struct kinf__http *http, const char *target, struct cJSON **ret_tree,
               struct kinf_error *err)
{
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    const struct kinf__http_request request = { .target = target,
                                                .total_timeout_ms =
                                                    kinf__http_request_timeout_ms(http),
                                                .on_body = collect,
                                                .ctx = &answer };
    int failed = kinf__http_perform(http, &request, err);

    if (failed == 0) {
        failed = kinf__json_tree_parse(kinf__buffer_str(&answer), ret_tree, err);
        if (failed < 0)
            kinf__error_prefix(err, "discovery %s", target);
    }
    return failed;
}

/* --- one APIResourceList --- */

static bool has_word(const struct cJSON *array, const char *word)
{
    for (const struct cJSON *at = kinf__json_tree_first(array); at != NULL;
         at = kinf__json_tree_next(at)) {
        const char *text = kinf__json_tree_string(at);

        if (text != NULL && strcasecmp(text, word) == 0)
            return true;
    }
    return false;
}

static bool is_text(const struct cJSON *resource, const char *key, const char *name)
{
    const char *text = kinf__json_tree_string(kinf__json_tree_find(resource, key, NULL));

    return text != NULL && *text != '\0' && strcasecmp(text, name) == 0;
}

static bool is_subresource(const struct cJSON *resource)
{
    const char *plural = kinf__json_tree_string(kinf__json_tree_find(resource, "name", NULL));

    return plural == NULL || strchr(plural, '/') != NULL;
}

/* Servers before 1.27 leave the singular name of built-in types empty; it is the kind. */
static bool is_named(const struct cJSON *resource, const char *name)
{
    return is_text(resource, "name", name) || is_text(resource, "singularName", name) ||
           is_text(resource, "kind", name);
}

static bool has_short_name(const struct cJSON *resource, const char *name)
{
    return has_word(kinf__json_tree_find(resource, "shortNames", NULL), name);
}

static const struct cJSON *find_resource(const struct cJSON *list, const char *name,
                                         bool (*is_meant)(const struct cJSON *, const char *))
{
    const struct cJSON *at = kinf__json_tree_first(kinf__json_tree_find(list, "resources", NULL));

    while (at != NULL && (is_subresource(at) || !is_meant(at, name)))
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
    const struct cJSON *at = find_resource(list, name, is_named);

    /* Another's short name does not hide a resource's own. */
    if (at == NULL)
        at = find_resource(list, name, has_short_name);
    if (at == NULL)
        return KINF_ERR_NOT_FOUND;
    return make_type(at, group, version, ret_type, err);
}

/* --- where to look --- */

/* Returns KINF_ERR_NOT_FOUND, without an error text, if it is not there. */
static int find_in_version(struct kinf__http *http, const struct spelling *wanted,
                           const char *group, const char *version,
                           const struct kinf_type **ret_type, struct kinf_error *err)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    AUTO_TREE *list = NULL;
    const char *text;
    int failed;

    if ((*group == '\0' ? kinf__buffer_printf(&target, "/api/%s", version)
                        : kinf__buffer_printf(&target, "/apis/%s/%s", group, version)) < 0 ||
        (text = kinf__buffer_cstr(&target)) == NULL)
        return kinf__error_no_memory(err);
    failed = ask(http, text, &list, err);
    return failed < 0 ? failed
                      : kinf__discovery_pick(list, wanted->resource, group, version, ret_type, err);
}

static int find_in_group(struct kinf__http *http, const struct spelling *wanted,
                         const struct cJSON *group, const struct kinf_type **ret_type,
                         struct kinf_error *err)
{
    const char *name = kinf__json_tree_string(kinf__json_tree_find(group, "name", NULL));
    const char *version =
        kinf__json_tree_string(kinf__json_tree_find(group, "preferredVersion", "version", NULL));

    if (name == NULL || version == NULL)
        return KINF_ERR_NOT_FOUND;
    return find_in_version(http, wanted, name, version, ret_type, err);
}

static int find_in_named_group(struct kinf__http *http, const struct spelling *wanted,
                               const struct kinf_type **ret_type, struct kinf_error *err)
{
    char target[NAME_SIZE + 8];
    AUTO_TREE *group = NULL;
    int failed;

    if (*wanted->version != '\0')
        return find_in_version(http, wanted, wanted->group, wanted->version, ret_type, err);
    snprintf(target, sizeof target, "/apis/%s", wanted->group);
    failed = ask(http, target, &group, err);
    return failed < 0 ? failed : find_in_group(http, wanted, group, ret_type, err);
}

/* A group whose backend is away does not hide those behind it; but if none of these has the
 * resource, nobody knows that it does not exist. */
static int find_in_groups(struct kinf__http *http, const struct spelling *wanted,
                          const struct cJSON *groups, const struct kinf_type **ret_type,
                          struct kinf_error *err)
{
    const struct cJSON *at = kinf__json_tree_first(kinf__json_tree_find(groups, "groups", NULL));
    struct kinf_error told;
    int failed = KINF_ERR_NOT_FOUND, hidden = KINF_ERR_NOT_FOUND;

    for (; at != NULL && (failed == KINF_ERR_NOT_FOUND || failed == KINF_ERR_SERVER);
         at = kinf__json_tree_next(at)) {
        failed = find_in_group(http, wanted, at, ret_type, &told);
        if (failed == KINF_ERR_SERVER)
            hidden = failed;
        if (failed < 0 && failed != KINF_ERR_NOT_FOUND && err != NULL)
            *err = told;
    }
    return failed == KINF_ERR_NOT_FOUND ? hidden : failed;
}

static int find_in_any_group(struct kinf__http *http, const struct spelling *wanted,
                             const struct kinf_type **ret_type, struct kinf_error *err)
{
    AUTO_TREE *groups = NULL;
    int failed = find_in_version(http, wanted, "", "v1", ret_type, err);

    if (failed == KINF_ERR_NOT_FOUND)
        failed = ask(http, "/apis", &groups, err);
    return groups != NULL ? find_in_groups(http, wanted, groups, ret_type, err) : failed;
}

/* --- kubectl's spelling --- */

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* v1, v2beta1, v1alpha3; v2ray is the beginning of a group. */
static bool is_version(const char *text, size_t len)
{
    size_t n = *text == 'v' ? count_digits(text + 1) : 0, n_more;

    if (n == 0 || n + 1 == len)
        return n != 0;
    text += n + 1;
    if (strncmp(text, "alpha", 5) != 0 && strncmp(text, "beta", 4) != 0)
        return false;
    text += *text == 'a' ? 5 : 4;
    n_more = count_digits(text);
    return n_more != 0 && (text[n_more] == '.' || text[n_more] == '\0');
}

/* Names go into a path: nothing that would mean something there. */
static bool is_plain(const char *text)
{
    return *text != '\0' && *text != '.' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") ==
               strlen(text) &&
           strstr(text, "..") == NULL && text[strlen(text) - 1] != '.';
}

/* "pods", "pods.v1", "deployments.apps", "deployments.v1.apps". */
static bool parse_spelling(const char *text, struct spelling *ret_spelling)
{
    const char *dot = strchr(text, '.'), *rest = dot != NULL ? dot + 1 : "";
    size_t first_len = strcspn(rest, ".");

    *ret_spelling = (struct spelling){ .resource = "" };
    if (strlen(text) >= NAME_SIZE || !is_plain(text))
        return false;
    snprintf(ret_spelling->resource, NAME_SIZE, "%.*s",
             (int)(dot != NULL ? dot - text : NAME_SIZE - 1), text);
    if (is_version(rest, first_len)) {
        snprintf(ret_spelling->version, NAME_SIZE, "%.*s", (int)first_len, rest);
        rest += first_len + (rest[first_len] == '.' ? 1 : 0);
    }
    snprintf(ret_spelling->group, NAME_SIZE, "%s", rest);
    return true;
}

static int find(struct kinf__http *http, const struct spelling *wanted,
                const struct kinf_type **ret_type, struct kinf_error *err)
{
    if (*wanted->group != '\0')
        return find_in_named_group(http, wanted, ret_type, err);
    if (*wanted->version != '\0')
        return find_in_version(http, wanted, "", wanted->version, ret_type, err);
    return find_in_any_group(http, wanted, ret_type, err);
}

int kinf__discovery_find(struct kinf__http *http, const char *resource,
                         const struct kinf_type **ret_type, struct kinf_error *err)
{
    struct kinf_error told = KINF_ERROR_INIT;
    struct spelling wanted;
    int failed;

    if (!parse_spelling(resource, &wanted))
        return kinf__error_set(
            err, KINF_ERR_INVALID,
            "'%s' is no name of a resource: pods, deployments.apps or deployments.v1.apps",
            resource);
    /* On the way there may be refusals that do not matter in the end. */
    failed = find(http, &wanted, ret_type, &told);
    if (failed == KINF_ERR_NOT_FOUND)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND,
                               "the server %s has no resource '%s' (see: kubectl api-resources)",
                               kinf__http_host(http), resource);
    if (failed < 0 && err != NULL)
        *err = told;
    return failed;
}
