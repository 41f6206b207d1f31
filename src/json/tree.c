/*
 * cJSON trees. Neighbours: scan.c, which is asked first, since cJSON takes what is not JSON. The
 * only file that knows cJSON.
 */
#include "json/tree.h"

#include <errno.h>
#include <stdarg.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "json/scan.h"

/* NULL also if a part of the value is left: versions of cJSON differ in how long a number they
 * read. */
static struct cJSON *parse_whole(struct kinf_str text)
{
    struct kinf_str value = kinf__json_value_of(text).raw;
    const char *behind;
    struct cJSON *tree = cJSON_ParseWithLengthOpts(value.bytes, value.len, &behind, false);

    if (tree != NULL && behind != value.bytes + value.len) {
        cJSON_Delete(tree); /* untested: the cJSON at hand reads all numbers whole */
        return NULL;
    }
    return tree;
}

int kinf__json_tree_parse(struct kinf_str text, struct cJSON **ret_tree, struct kinf_error *err)
{
    struct cJSON *tree;
    size_t len;
    int status = kinf__json_scan_all(text, CJSON_NESTING_LIMIT, &len);

    if (status < 0)
        return kinf__json_error(err, status, text, len);
    errno = 0;
    tree = parse_whole(text);
    if (tree == NULL) {
        /* cJSON does not tell why; the allocator does. */
        if (errno == ENOMEM)
            return kinf__error_no_memory(err);
        return kinf__error_set(err, KINF_ERR_LIMIT,
                               "JSON with an unpaired surrogate, or a number too long for cJSON");
    }
    *ret_tree = tree;
    return 0;
}

void kinf__json_tree_free(struct cJSON *tree)
{
    cJSON_Delete(tree);
}

void kinf__json_tree_free_ptr(struct cJSON **tree)
{
    cJSON_Delete(*tree);
}

const struct cJSON *kinf__json_tree_find(const struct cJSON *tree, ...)
{
    const char *key;
    va_list keys;

    va_start(keys, tree);
    while (tree != NULL && (key = va_arg(keys, const char *)) != NULL)
        tree = cJSON_GetObjectItemCaseSensitive(tree, key);
    va_end(keys);
    return tree;
}

const char *kinf__json_tree_string(const struct cJSON *node)
{
    return cJSON_GetStringValue(node);
}

bool kinf__json_tree_is_true(const struct cJSON *node)
{
    return cJSON_IsTrue(node) != 0;
}

const struct cJSON *kinf__json_tree_first(const struct cJSON *array)
{
    return cJSON_IsArray(array) ? array->child : NULL;
}

const struct cJSON *kinf__json_tree_next(const struct cJSON *node)
{
    return node != NULL ? node->next : NULL;
}
