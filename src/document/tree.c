/*
 * Trees. Neighbours: json/tree.c parses, patches and writes change them.
 */
#include "document/tree.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/scan.h"
#include "document/node_index.h"

#define EXACT_INTEGER 9007199254740992.0 /* 2^53 */
/* From here on cJSON prints with an exponent, which no server does. */
#define PLAIN_INTEGER 1e15

/* --- numbers --- */

/* Whether printing the double gives the same digits again. */
static bool is_exact(struct kinf_str raw, double number)
{
    bool is_plain = memchr(raw.bytes, '.', raw.len) == NULL &&
                    memchr(raw.bytes, 'e', raw.len) == NULL &&
                    memchr(raw.bytes, 'E', raw.len) == NULL;

    return is_plain && fabs(number) < PLAIN_INTEGER && !kinf_str_equal(raw, KINF_STR("-0"));
}

static int keep_number(struct cJSON *node, struct kinf_str raw)
{
    if (is_exact(raw, node->valuedouble))
        return 0;
    node->valuestring = cJSON_malloc(raw.len + 1);
    if (node->valuestring == NULL)
        return KINF_ERR_NO_MEMORY;
    *(char *)mempcpy(node->valuestring, raw.bytes, raw.len) = '\0';
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

bool kinf__doc_is_empty(const struct cJSON *container)
{
    return container == NULL || container->child == NULL;
}

bool kinf__doc_is_number(const struct cJSON *node)
{
    return cJSON_IsNumber(node) || cJSON_IsRaw(node);
}

bool kinf__doc_is_integer(const struct cJSON *node)
{
    if (cJSON_IsRaw(node))
        return strpbrk(node->valuestring, ".eE") == NULL;
    return cJSON_IsNumber(node);
}

double kinf__doc_number(const struct cJSON *node)
{
    if (cJSON_IsRaw(node))
        return strtod(node->valuestring, NULL);
    return cJSON_IsNumber(node) ? node->valuedouble : 0;
}

/* The depth is bounded by the parser's. */
void kinf__doc_shorten_numbers(struct cJSON *tree)
{
    double number = kinf__doc_number(tree);

    if (cJSON_IsRaw(tree) && !kinf__doc_is_integer(tree) && fabs(number) < PLAIN_INTEGER &&
        number == floor(number) && !(number == 0 && signbit(number))) {
        cJSON_free(tree->valuestring);
        tree->valuestring = NULL;
        tree->type = cJSON_Number;
        cJSON_SetNumberValue(tree, number);
    }
    for (struct cJSON *child = tree->child; child != NULL; child = child->next)
        kinf__doc_shorten_numbers(child);
}

const char *kinf__json_type_word(const struct cJSON *value)
{
    if (kinf__doc_is_number(value))
        return "number";
    if (cJSON_IsBool(value))
        return "bool";
    if (cJSON_IsNull(value))
        return "null";
    return cJSON_IsString(value) ? "string" : cJSON_IsArray(value) ? "array" : "object";
}

const char *kinf__doc_go_type(const struct cJSON *value)
{
    if (cJSON_IsObject(value))
        return KINF__GO_MAP;
    if (cJSON_IsArray(value))
        return KINF__GO_SLICE;
    if (kinf__doc_is_number(value))
        return kinf__doc_is_integer(value) ? "int64" : "float64";
    if (cJSON_IsNull(value))
        return "%!s(<nil>)";
    return cJSON_IsBool(value) ? "bool" : "string";
}

/* --- text --- */

/* Of JSON that is whole: each backslash begins an escape, which is of two bytes or more. */
static bool has_nul(struct kinf_str json)
{
    const char *end = json.bytes + json.len;

    for (const char *at = json.bytes; (at = memchr(at, '\\', (size_t)(end - at))) != NULL;
         at += 2) {
        if (end - at >= 6 && memcmp(at, "\\u0000", 6) == 0)
            return true;
    }
    return false;
}

int kinf__doc_parse(struct kinf_str json, struct cJSON **ret_tree, struct kinf_error *err)
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

int kinf__doc_print(const struct cJSON *tree, struct kinf__buffer *out)
{
    char *text = cJSON_PrintUnformatted(tree);
    int failed =
        text != NULL ? kinf__buffer_append_str(out, kinf_str_from(text)) : KINF_ERR_NO_MEMORY;

    cJSON_free(text);
    return failed;
}

struct cJSON *kinf__doc_dup(const struct cJSON *tree)
{
    return tree != NULL ? cJSON_Duplicate(tree, true) : NULL;
}

/* --- comparing --- */

static bool equal_numbers(const struct cJSON *a, const struct cJSON *b)
{
    double x = kinf__doc_number(a), y = kinf__doc_number(b);

    if (cJSON_IsRaw(a) && cJSON_IsRaw(b) && strcmp(a->valuestring, b->valuestring) == 0)
        return true;
    /* Beyond what a double holds, digits count. */
    return x == y && fabs(x) < EXACT_INTEGER;
}

static bool equal_arrays(const struct cJSON *a, const struct cJSON *b)
{
    const struct cJSON *x = a->child, *y = b->child;

    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        if (!kinf__doc_equal(x, y))
            return false;
    }
    return x == NULL && y == NULL;
}

/* How many children `a` has, if `b` has as many; no more of either is walked than the shorter one
 * has. */
static bool same_size(const struct cJSON *a, const struct cJSON *b, size_t *ret_n)
{
    const struct cJSON *x = a->child, *y = b->child;

    for (*ret_n = 0; x != NULL && y != NULL; ++*ret_n) {
        x = x->next;
        y = y->next;
    }
    return x == NULL && y == NULL;
}

static bool equal_objects(const struct cJSON *a, const struct cJSON *b)
{
    struct kinf__node_members members;
    const struct cJSON *x;
    size_t n;

    if (!same_size(a, b, &n))
        return false;
    /* Without memory for an index it takes longer. */
    if (kinf__node_members_init(&members, (struct cJSON *)(uintptr_t)b, n) < 0)
        members = (struct kinf__node_members){ .object = (struct cJSON *)(uintptr_t)b };
    for (x = a->child; x != NULL; x = x->next) {
        if (!kinf__doc_equal(x, kinf__node_members_get(&members, x->string)))
            break;
    }
    kinf__node_members_release(&members);
    return x == NULL;
}

bool kinf__doc_equal(const struct cJSON *a, const struct cJSON *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    if (kinf__doc_is_number(a) && kinf__doc_is_number(b))
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

struct cJSON *kinf__doc_get(const struct cJSON *object, const char *name)
{
    return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, name) : NULL;
}

static struct cJSON *find(const struct cJSON *tree, va_list names)
{
    struct cJSON *node = (struct cJSON *)(uintptr_t)tree;
    const char *name;

    while (node != NULL && (name = va_arg(names, const char *)) != NULL)
        node = kinf__doc_get(node, name);
    return node;
}

struct cJSON *kinf__doc_find(const struct cJSON *tree, ...)
{
    struct cJSON *node;
    va_list names;

    va_start(names, tree);
    node = find(tree, names);
    va_end(names);
    return node;
}

const char *kinf__doc_text(const struct cJSON *tree, ...)
{
    const struct cJSON *node;
    va_list names;

    va_start(names, tree);
    node = find(tree, names);
    va_end(names);
    return cJSON_IsString(node) ? node->valuestring : "";
}

bool kinf__doc_is_true(const struct cJSON *object, const char *name)
{
    return cJSON_IsTrue(kinf__doc_get(object, name));
}

int64_t kinf__doc_integer(const struct cJSON *object, const char *name, int64_t none)
{
    const struct cJSON *node = kinf__doc_get(object, name);

    if (!kinf__doc_is_integer(node))
        return none;
    return cJSON_IsRaw(node) ? strtoll(node->valuestring, NULL, 10) : (int64_t)node->valuedouble;
}

/* --- changing --- */

int kinf__doc_set(struct cJSON *object, const char *name, struct cJSON *take_value)
{
    return kinf__node_put_member(object, kinf__doc_get(object, name), name, take_value);
}

int kinf__doc_set_text(struct cJSON *object, const char *name, const char *text)
{
    return kinf__doc_set(object, name, cJSON_CreateString(text));
}

int kinf__doc_set_integer(struct cJSON *object, const char *name, int64_t number)
{
    char text[24];

    if (fabs((double)number) < PLAIN_INTEGER)
        return kinf__doc_set(object, name, cJSON_CreateNumber((double)number));
    snprintf(text, sizeof text, "%lld", (long long)number);
    return kinf__doc_set(object, name, cJSON_CreateRaw(text));
}

int kinf__doc_append(struct cJSON *array, struct cJSON *take_value)
{
    if (take_value != NULL && cJSON_AddItemToArray(array, take_value))
        return 0;
    cJSON_Delete(take_value);
    return KINF_ERR_NO_MEMORY;
}

int kinf__doc_append_member(struct cJSON *object, const char *name, struct cJSON *take_value)
{
    return kinf__node_put_member(object, NULL, name, take_value);
}

void kinf__doc_remove(struct cJSON *object, const char *name)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
}

void kinf__doc_drop(struct cJSON *container, struct cJSON *child)
{
    cJSON_Delete(cJSON_DetachItemViaPointer(container, child));
}

static int undouble_members(struct cJSON *object)
{
    KINF__AUTO_NODE_INDEX index = { KINF__HMAP_INIT };
    struct kinf__node_index_entry *entry;
    int failed = 0;

    for (struct cJSON *member = object->child; failed == 0 && member != NULL;
         member = member->next) {
        entry = kinf__node_index_find(&index, member->string);
        if (entry == NULL) {
            failed = kinf__node_index_add(&index, member->string, member, 0);
        } else {
            kinf__doc_drop(object, entry->node);
            entry->node = member;
        }
    }
    return failed;
}

int kinf__doc_undouble(struct cJSON *tree)
{
    int failed = cJSON_IsObject(tree) ? undouble_members(tree) : 0;

    for (struct cJSON *child = tree->child; failed == 0 && child != NULL; child = child->next)
        failed = kinf__doc_undouble(child);
    return failed;
}

static struct cJSON *make_container(struct cJSON *object, const char *name,
                                    struct cJSON *take_container)
{
    return kinf__doc_set(object, name, take_container) == 0 ? take_container : NULL;
}

struct cJSON *kinf__doc_object(struct cJSON *object, const char *name)
{
    struct cJSON *member = kinf__doc_get(object, name);

    return cJSON_IsObject(member) ? member : make_container(object, name, cJSON_CreateObject());
}

struct cJSON *kinf__doc_array(struct cJSON *object, const char *name)
{
    struct cJSON *member = kinf__doc_get(object, name);

    return cJSON_IsArray(member) ? member : make_container(object, name, cJSON_CreateArray());
}

/* --- sets of texts --- */

bool kinf__doc_is_text(const struct cJSON *node, const char *text)
{
    return cJSON_IsString(node) && strcmp(node->valuestring, text) == 0;
}

bool kinf__doc_has_text(const struct cJSON *array, const char *text)
{
    const struct cJSON *element;

    cJSON_ArrayForEach(element, array)
    {
        if (kinf__doc_is_text(element, text))
            return true;
    }
    return false;
}

int kinf__doc_add_text(struct cJSON *object, const char *name, const char *text)
{
    struct cJSON *array = kinf__doc_array(object, name);

    if (array == NULL)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_has_text(array, text) ? 0 : kinf__doc_append(array, cJSON_CreateString(text));
}

void kinf__doc_remove_text(struct cJSON *object, const char *name, const char *text)
{
    struct cJSON *array = kinf__doc_get(object, name), *element, *next;

    if (!cJSON_IsArray(array))
        return;
    for (element = array->child; element != NULL; element = next) {
        next = element->next;
        if (kinf__doc_is_text(element, text))
            kinf__doc_drop(array, element);
    }
    if (array->child == NULL)
        kinf__doc_remove(object, name);
}

/* --- as Go prints it --- */

struct go_text {
    char verb;
    size_t max; /* of out->len */
    struct kinf__buffer *out;
};

/* The shortest digits that make the same number. */
static int append_go_double(const struct go_text *text, double number)
{
    char digits[40];

    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    return kinf__buffer_append_str(text->out, kinf_str_from(digits));
}

static int append_go_number(const struct go_text *text, const struct cJSON *node)
{
    int failed = 0;

    if (text->verb == 's')
        failed = kinf__buffer_printf(text->out, "%%!s(%s=", kinf__doc_go_type(node));

    if (failed == 0 && !kinf__doc_is_integer(node))
        failed = append_go_double(text, kinf__doc_number(node));
    else if (failed == 0)
        failed = kinf__doc_print(node, text->out);
    return failed == 0 && text->verb == 's' ? kinf__buffer_append(text->out, ")", 1) : failed;
}

static int append_go(const struct go_text *text, const struct cJSON *node);

static int compare_names(const void *a, const void *b)
{
    const struct cJSON *const *x = a, *const *y = b;

    return strcmp((*x)->string, (*y)->string);
}

/* Go prints maps in the order of their keys. */
static int append_go_members(const struct go_text *text, const struct cJSON *object)
{
    size_t n = (size_t)cJSON_GetArraySize(object), i = 0;
    KINF__AUTO_FREE const struct cJSON **members = calloc(n + 1, sizeof(struct cJSON *));
    const struct cJSON *member;
    int failed = 0;

    if (members == NULL)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(member, object)
    {
        members[i++] = member;
    }
    qsort(members, n, sizeof members[0], compare_names);
    for (i = 0; failed == 0 && i < n && text->out->len < text->max; i++) {
        failed = kinf__buffer_printf(text->out, "%s%s:", i != 0 ? " " : "map[", members[i]->string);
        if (failed == 0)
            failed = append_go(text, members[i]);
    }
    return failed < 0 ? failed : kinf__buffer_printf(text->out, n != 0 ? "]" : "map[]");
}

static int append_go_elements(const struct go_text *text, const struct cJSON *array)
{
    const struct cJSON *element = array->child;
    int failed = kinf__buffer_append(text->out, "[", 1);

    for (; failed == 0 && element != NULL && text->out->len < text->max; element = element->next) {
        failed = element != array->child ? kinf__buffer_append(text->out, " ", 1) : 0;
        if (failed == 0)
            failed = append_go(text, element);
    }
    return failed < 0 ? failed : kinf__buffer_append(text->out, "]", 1);
}

static int append_go(const struct go_text *text, const struct cJSON *node)
{
    if (cJSON_IsObject(node))
        return append_go_members(text, node);
    if (cJSON_IsArray(node))
        return append_go_elements(text, node);
    if (kinf__doc_is_number(node))
        return append_go_number(text, node);
    if (cJSON_IsString(node))
        return kinf__buffer_append_str(text->out, kinf_str_from(node->valuestring));
    if (cJSON_IsBool(node))
        return kinf__buffer_printf(text->out, text->verb == 's' ? "%%!s(bool=%s)" : "%s",
                                   cJSON_IsTrue(node) ? "true" : "false");
    return kinf__buffer_append_str(text->out, KINF_STR("<nil>"));
}

const char *kinf__doc_go_text(const struct cJSON *tree, char verb, size_t max,
                              struct kinf__buffer *room)
{
    struct go_text text = { verb, max, room };
    int failed;

    room->len = 0;
    if (verb == 's' && cJSON_IsNull(tree))
        failed = kinf__buffer_append_str(room, KINF_STR("%!s(<nil>)"));
    else
        failed = append_go(&text, tree);
    return failed < 0 ? NULL : kinf__buffer_cstr(room);
}
