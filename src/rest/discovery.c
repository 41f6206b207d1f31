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

        if (text != NULL && strcmp(text, word) == 0)
            return true;
    }
    return false;
}

/* Plural, singular or a short name, in any case, as kubectl does; subresources have a slash. */
static bool is_named(const struct cJSON *resource, const char *name)
{
    const char *plural = kinf__json_tree_string(kinf__json_tree_find(resource, "name", NULL));
    const char *singular =
        kinf__json_tree_string(kinf__json_tree_find(resource, "singularName", NULL));

    if (plural == NULL || strchr(plural, '/') != NULL)
        return false;
    return strcasecmp(plural, name) == 0 ||
           (singular != NULL && *singular != '\0' && strcasecmp(singular, name) == 0) ||
           has_word(kinf__json_tree_find(resource, "shortNames", NULL), name);
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
    const struct cJSON *at = kinf__json_tree_first(kinf__json_tree_find(list, "resources", NULL));

    while (at != NULL && !is_named(at, name))
        at = kinf__json_tree_next(at);
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
    return find_in_version(http, wanted, name, *wanted->version != '\0' ? wanted->version : version,
                           ret_type, err);
}

static int find_in_named_group(struct kinf__http *http, const struct spelling *wanted,
                               const struct kinf_type **ret_type, struct kinf_error *err)
{
    char target[NAME_SIZE + 8];
    AUTO_TREE *group = NULL;
    int failed;

    snprintf(target, sizeof target, "/apis/%s", wanted->group);
    failed = ask(http, target, &group, err);
    return failed < 0 ? failed : find_in_group(http, wanted, group, ret_type, err);
}

/* A group whose backend is away must not hide those behind it. */
static bool may_go_on(int failed)
{
    return failed == KINF_ERR_NOT_FOUND || failed == KINF_ERR_SERVER;
}

static int find_in_any_group(struct kinf__http *http, const struct spelling *wanted,
                             const struct kinf_type **ret_type, struct kinf_error *err)
{
    AUTO_TREE *groups = NULL;
    int failed = find_in_version(http, wanted, "", "v1", ret_type, err);

    if (failed == KINF_ERR_NOT_FOUND && (failed = ask(http, "/apis", &groups, err)) == 0)
        failed = KINF_ERR_NOT_FOUND;
    for (const struct cJSON *at =
             kinf__json_tree_first(kinf__json_tree_find(groups, "groups", NULL));
         at != NULL && may_go_on(failed); at = kinf__json_tree_next(at))
        failed = find_in_group(http, wanted, at, ret_type, err);
    return failed;
}

/* --- kubectl's spelling --- */

static bool is_version(const char *text, size_t len)
{
    return len >= 2 && text[0] == 'v' && text[1] >= '0' && text[1] <= '9';
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
    struct spelling wanted;
    int failed;

    if (!parse_spelling(resource, &wanted))
        return kinf__error_set(
            err, KINF_ERR_INVALID,
            "'%s' is no name of a resource: pods, deployments.apps or deployments.v1.apps",
            resource);
    failed = find(http, &wanted, ret_type, err);
    if (failed == KINF_ERR_NOT_FOUND)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND,
                               "the server %s has no resource '%s' (see: kubectl api-resources)",
                               kinf__http_host(http), resource);
    return failed;
}
