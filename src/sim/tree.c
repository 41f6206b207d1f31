/*
 * Trees. Neighbours: json/tree.c parses, patches and writes change them.
 */
#include "sim/tree.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/scan.h"

#define EXACT_INTEGER 9007199254740992.0 /* 2^53 */

/* --- numbers --- */

/* Whether printing the double gives the same digits again. */
static bool is_exact(struct kinf_str raw, double number)
{
    bool is_plain = memchr(raw.bytes, '.', raw.len) == NULL &&
                    memchr(raw.bytes, 'e', raw.len) == NULL &&
                    memchr(raw.bytes, 'E', raw.len) == NULL;

    return is_plain && fabs(number) < EXACT_INTEGER && !kinf_str_equal(raw, KINF_STR("-0"));
}

static int keep_number(struct cJSON *node, struct kinf_str raw)
{
    if (is_exact(raw, node->valuedouble))
        return 0;
    node->valuestring = cJSON_malloc(raw.len + 1);
    if (node->valuestring == NULL)
        return KINF_ERR_NO_MEMORY;
    memcpy(node->valuestring, raw.bytes, raw.len);
    node->valuestring[raw.len] = '\0';
    node->type = cJSON_Raw;
    return 0;
}

/* Walks tree and text side by side; the depth is bounded by the parser's. */
static int keep_numbers(struct cJSON *node, struct kinf__json_value value)
{
    struct kinf__json_value item;
    struct kinf__json_iter iter;
    struct kinf_str key;
    struct cJSON *child = node->child;
    int failed = 0;

    if (cJSON_IsNumber(node))
        return keep_number(node, value.raw);
    if (!kinf__json_iter_init(&iter, value))
        return 0;
    while (failed == 0 && child != NULL && kinf__json_iter_next(&iter, &key, &item)) {
        failed = keep_numbers(child, item);
        child = child->next;
    }
    return failed;
}

bool kinf__tree_is_number(const struct cJSON *node)
{
    return cJSON_IsNumber(node) || cJSON_IsRaw(node);
}

bool kinf__tree_is_integer(const struct cJSON *node)
{
    if (cJSON_IsRaw(node))
        return strpbrk(node->valuestring, ".eE") == NULL;
    return cJSON_IsNumber(node);
}

/* --- text --- */

static bool has_nul(struct kinf_str json)
{
    return memmem(json.bytes, json.len, "\\u0000", 6) != NULL;
}

int kinf__tree_parse(struct kinf_str json, struct cJSON **ret_tree, struct kinf_error *err)
{
    struct cJSON *tree;
    int failed = kinf__json_tree_parse(json, &tree, err);

    if (failed < 0)
        return failed;
    if (has_nul(json))
        failed = kinf__error_set(err, KINF_ERR_LIMIT, "JSON with a NUL in a string");
    else if (keep_numbers(tree, kinf__json_value_of(json)) < 0)
        failed = kinf__error_no_memory(err);
    if (failed < 0) {
        cJSON_Delete(tree);
        return failed;
    }
    *ret_tree = tree;
    return 0;
}

int kinf__tree_print(const struct cJSON *tree, struct kinf__buffer *out)
{
    char *text = cJSON_PrintUnformatted(tree);
    int failed =
        text != NULL ? kinf__buffer_append_str(out, kinf_str_from(text)) : KINF_ERR_NO_MEMORY;

    cJSON_free(text);
    return failed;
}

struct cJSON *kinf__tree_dup(const struct cJSON *tree)
{
    return tree != NULL ? cJSON_Duplicate(tree, true) : NULL;
}

/* --- comparing --- */

static bool equal_numbers(const struct cJSON *a, const struct cJSON *b)
{
    double x = cJSON_IsRaw(a) ? strtod(a->valuestring, NULL) : a->valuedouble;
    double y = cJSON_IsRaw(b) ? strtod(b->valuestring, NULL) : b->valuedouble;

    if (cJSON_IsRaw(a) && cJSON_IsRaw(b) && strcmp(a->valuestring, b->valuestring) == 0)
        return true;
    /* Beyond what a double holds, digits count. */
    return x == y && fabs(x) < EXACT_INTEGER;
}

static bool equal_arrays(const struct cJSON *a, const struct cJSON *b)
{
    const struct cJSON *x = a->child, *y = b->child;

    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        if (!kinf__tree_equal(x, y))
            return false;
    }
    return x == NULL && y == NULL;
}

static bool equal_objects(const struct cJSON *a, const struct cJSON *b)
{
    const struct cJSON *x;

    if (cJSON_GetArraySize(a) != cJSON_GetArraySize(b))
        return false;
    cJSON_ArrayForEach(x, a)
    {
        if (!kinf__tree_equal(x, kinf__tree_get(b, x->string)))
            return false;
    }
    return true;
}

bool kinf__tree_equal(const struct cJSON *a, const struct cJSON *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    if (kinf__tree_is_number(a) && kinf__tree_is_number(b))
        return equal_numbers(a, b);
    if ((a->type & 0xff) != (b->type & 0xff))
        return false;
    if (cJSON_IsString(a))
        return strcmp(a->valuestring, b->valuestring) == 0;
    if (cJSON_IsArray(a))
        return equal_arrays(a, b);
    return !cJSON_IsObject(a) || equal_objects(a, b);
}

/* --- walking --- */

struct cJSON *kinf__tree_get(const struct cJSON *object, const char *name)
{
    return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, name) : NULL;
}

static struct cJSON *find(const struct cJSON *tree, va_list names)
{
    struct cJSON *node = (struct cJSON *)(uintptr_t)tree;
    const char *name;

    while (node != NULL && (name = va_arg(names, const char *)) != NULL)
        node = kinf__tree_get(node, name);
    return node;
}

struct cJSON *kinf__tree_find(const struct cJSON *tree, ...)
{
    struct cJSON *node;
    va_list names;

    va_start(names, tree);
    node = find(tree, names);
    va_end(names);
    return node;
}

const char *kinf__tree_text(const struct cJSON *tree, ...)
{
    const struct cJSON *node;
    va_list names;

    va_start(names, tree);
    node = find(tree, names);
    va_end(names);
    return cJSON_IsString(node) ? node->valuestring : "";
}

int64_t kinf__tree_integer(const struct cJSON *object, const char *name, int64_t none)
{
    const struct cJSON *node = kinf__tree_get(object, name);

    if (cJSON_IsRaw(node))
        return strtoll(node->valuestring, NULL, 10);
    return cJSON_IsNumber(node) ? (int64_t)node->valuedouble : none;
}

/* --- changing --- */

int kinf__tree_set(struct cJSON *object, const char *name, struct cJSON *take_value)
{
    bool is_done = take_value != NULL;

    if (is_done && kinf__tree_get(object, name) != NULL)
        is_done = cJSON_ReplaceItemInObjectCaseSensitive(object, name, take_value);
    else if (is_done)
        is_done = cJSON_AddItemToObject(object, name, take_value);
    if (is_done)
        return 0;
    cJSON_Delete(take_value);
    return KINF_ERR_NO_MEMORY;
}

int kinf__tree_set_text(struct cJSON *object, const char *name, const char *text)
{
    return kinf__tree_set(object, name, cJSON_CreateString(text));
}

int kinf__tree_set_integer(struct cJSON *object, const char *name, int64_t number)
{
    char text[24];

    if (fabs((double)number) < EXACT_INTEGER)
        return kinf__tree_set(object, name, cJSON_CreateNumber((double)number));
    snprintf(text, sizeof text, "%lld", (long long)number);
    return kinf__tree_set(object, name, cJSON_CreateRaw(text));
}

int kinf__tree_append(struct cJSON *array, struct cJSON *take_value)
{
    if (take_value != NULL && cJSON_AddItemToArray(array, take_value))
        return 0;
    cJSON_Delete(take_value);
    return KINF_ERR_NO_MEMORY;
}

void kinf__tree_remove(struct cJSON *object, const char *name)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
}

struct cJSON *kinf__tree_object(struct cJSON *object, const char *name)
{
    struct cJSON *member = kinf__tree_get(object, name);

    if (cJSON_IsObject(member))
        return member;
    return kinf__tree_set(object, name, cJSON_CreateObject()) == 0 ? kinf__tree_get(object, name)
                                                                   : NULL;
}
