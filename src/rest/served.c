/*
 * Asking legacy discovery for one known type. Neighbours: discovery.c finds types by their names
 * and lends the way to ask. Invariant: only answers of the right kind can say that something is not
 * there.
 */
#include "rest/served.h"

#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "json/tree.h"
#include "rest/url.h"

#define AUTO_TREE KINF__CLEANUP(kinf__json_tree_free_ptr) struct cJSON

/* Whether a member of this object is this text. */
static bool is_text(const struct cJSON *object, const char *name, const char *text)
{
    const char *value = kinf__json_tree_string(kinf__json_tree_find(object, name, NULL));

    return value != NULL && strcmp(value, text) == 0;
}

/* The element of an array whose member is this text; NULL: none. */
static const struct cJSON *find_element(const struct cJSON *array, const char *name,
                                        const char *text)
{
    const struct cJSON *at = kinf__json_tree_first(array);

    while (at != NULL && !is_text(at, name, text))
        at = kinf__json_tree_next(at);
    return at;
}

static int ask_kind(const struct kinf__discovery_source *source, const char *target,
                    const char *kind, struct cJSON **ret_tree, struct kinf_error *err)
{
    AUTO_TREE *tree = NULL;
    int rc = source->ask(source->ctx, target, &tree, err);

    if (rc < 0)
        return rc;
    if (!is_text(tree, "kind", kind))
        return kinf__error_set(err, KINF_ERR_PARSE, "%s: the answer to %s is no %s", source->host,
                               target, kind);
    *ret_tree = KINF__TAKE(tree);
    return 0;
}

static int ask_groups(const struct kinf__discovery_source *source, const struct kinf_type *type,
                      bool *ret_has_version, struct kinf_error *err)
{
    AUTO_TREE *groups = NULL;
    const struct cJSON *group;
    int rc = ask_kind(source, "/apis", "APIGroupList", &groups, err);

    if (rc < 0)
        return rc;
    group = find_element(kinf__json_tree_find(groups, "groups", NULL), "name", type->group);
    *ret_has_version = find_element(kinf__json_tree_find(group, "versions", NULL), "version",
                                    type->version) != NULL;
    return 0;
}

static int ask_version(const struct kinf__discovery_source *source, const struct kinf_type *type,
                       bool *ret_is_served, struct kinf_error *err)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    AUTO_TREE *list = NULL;
    const char *text;
    int rc;

    if (kinf__url_append_version(&target, type->group, type->version) < 0 ||
        (text = kinf__buffer_cstr(&target)) == NULL)
        return kinf__error_no_memory(err);
    rc = ask_kind(source, text, "APIResourceList", &list, err);
    if (rc == 0)
        *ret_is_served = find_element(kinf__json_tree_find(list, "resources", NULL), "name",
                                      type->resource) != NULL;
    return rc;
}

int kinf__served_ask(const struct kinf__discovery_source *source, const struct kinf_type *type,
                     bool *ret_is_served, struct kinf_error *err)
{
    bool has_version = true;
    int rc = type->group[0] != '\0' ? ask_groups(source, type, &has_version, err) : 0;

    if (rc == 0 && has_version)
        return ask_version(source, type, ret_is_served, err);
    if (rc == 0)
        *ret_is_served = false;
    return rc;
}
