/*
 * Objects made to fit their schema: what is not known goes, what has a default comes, and what Go
 * leaves out is left out. Neighbours: schema_check.c and schema_validate.c refuse, defaults.c fills in
 * what depends on other fields.
 *
 * The order of problems is the server's: of built-in types the document's; of custom resources
 * doubled members first, then what is unknown of their metadata, then the rest, sorted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "document/node_index.h"
#include "document/quantity.h"
#include "document/schema_priv.h"

/* Bits of a member's type that cJSON does not use, set while its object is walked. */
#define REPEATED (1 << 16) /* one of the same name stands before it */
#define DOUBLED  (1 << 17) /* exactly one does: the place to tell */
#define STALE    (1 << 18) /* another one follows */
#define MARKS    (REPEATED | DOUBLED | STALE)

#define FEW_MEMBERS 8

struct walk {
    kinf__schema_problem_cb *problem;
    void *ctx;
    struct kinf__buffer path;
    /* Paths that are unknown, each with its NUL: told later, sorted. */
    struct kinf__buffer unknown;
    bool is_sorted;
};

/* --- paths and problems --- */

static int tell(struct walk *walk, const char *what, const char *path)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    if (walk->problem == NULL)
        return 0;
    if (kinf__buffer_printf(&text, "%s field \"%s\"", what, path) < 0 ||
        kinf__buffer_cstr(&text) == NULL)
        return KINF_ERR_NO_MEMORY;
    return walk->problem(text.bytes, walk->ctx);
}

static int tell_here(struct walk *walk, const char *what)
{
    return kinf__buffer_cstr(&walk->path) != NULL ? tell(walk, what, walk->path.bytes)
                                                  : KINF_ERR_NO_MEMORY;
}

static int tell_unknown(struct walk *walk)
{
    if (!walk->is_sorted)
        return tell_here(walk, "unknown");
    if (kinf__buffer_cstr(&walk->path) == NULL)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(&walk->unknown, walk->path.bytes, walk->path.len + 1);
}

static int compare_paths(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    bool x_first = strncmp(x, "metadata.", 9) == 0, y_first = strncmp(y, "metadata.", 9) == 0;

    return x_first != y_first ? y_first - x_first : strcmp(x, y);
}

static int tell_sorted(struct walk *walk)
{
    KINF__AUTO_FREE const char **paths = NULL;
    size_t n = 0, i = 0;
    int failed = 0;

    for (size_t at = 0; at < walk->unknown.len; at++)
        n += walk->unknown.bytes[at] == '\0';
    if (n == 0)
        return 0;
    paths = calloc(n, sizeof *paths);
    if (paths == NULL)
        return KINF_ERR_NO_MEMORY;
    for (const char *path = walk->unknown.bytes; i < n; path += strlen(path) + 1)
        paths[i++] = path;
    qsort(paths, n, sizeof *paths, compare_paths);
    for (i = 0; failed == 0 && i < n; i++)
        failed = tell(walk, "unknown", paths[i]);
    return failed;
}

/* --- doubled members --- */

static void mark(struct cJSON *before, struct cJSON *node)
{
    node->type |= (before->type & REPEATED) != 0 ? REPEATED : REPEATED | DOUBLED;
    before->type |= STALE;
}

/* In an object of many. */
static int mark_indexed(struct cJSON *object)
{
    KINF__AUTO_NODE_INDEX index = { KINF__HMAP_INIT };
    struct cJSON *node;
    int failed = 0;

    for (node = object->child; failed == 0 && node != NULL; node = node->next) {
        struct kinf__node_index_entry *last = kinf__node_index_find(&index, node->string);

        if (last == NULL) {
            failed = kinf__node_index_add(&index, node->string, node, 0);
        } else {
            mark(last->node, node);
            last->node = node;
        }
    }
    return failed;
}

static int mark_doubles(struct cJSON *object)
{
    struct cJSON *node, *before;

    if (cJSON_GetArraySize(object) > FEW_MEMBERS)
        return mark_indexed(object);
    cJSON_ArrayForEach(node, object)
    {
        for (before = node->prev; before->next != NULL; before = before->prev) {
            if (strcmp(before->string, node->string) == 0) {
                mark(before, node);
                break;
            }
        }
    }
    return 0;
}

/* All the way down, whatever is known. */
static int drop_doubles(struct walk *walk, struct cJSON *tree, bool is_told)
{
    struct cJSON *node, *next;
    size_t len = walk->path.len, i = 0;
    int failed = cJSON_IsObject(tree) ? mark_doubles(tree) : 0;

    for (node = tree->child; failed == 0 && node != NULL; node = next, i++) {
        int marks = node->type & MARKS;

        next = node->next;
        node->type &= ~MARKS;
        failed = cJSON_IsObject(tree) ? kinf__path_enter(&walk->path, node->string)
                                      : kinf__path_enter_index(&walk->path, i);
        if (failed == 0 && is_told && (marks & DOUBLED) != 0)
            failed = tell_here(walk, "duplicate");
        if (failed == 0)
            failed = drop_doubles(walk, node, is_told);
        walk->path.len = len;
        if ((marks & STALE) != 0)
            kinf__doc_drop(tree, node);
    }
    return failed;
}

/* --- unknown members --- */

static int prune(struct walk *walk, const struct kinf__schema_node *node, struct cJSON *tree);

/* A null: of a built-in map Go makes an empty value of it. */
static bool is_nothing(const struct kinf__schema_node *node, const struct kinf__schema_node *known)
{
    return known != NULL && !known->is_nullable &&
           (node->kind == KINF__SCHEMA_OBJECT || known->rules != NULL);
}

static int prune_member(struct walk *walk, const struct kinf__schema_node *node,
                        struct cJSON *object, struct cJSON *member)
{
    const struct kinf__schema_node *known = kinf__schema_member(node, member->string);
    int marks = member->type & MARKS, failed = 0;

    member->type &= ~MARKS;
    if (known == NULL && node->kind == KINF__SCHEMA_OBJECT && !node->preserves_unknown) {
        if ((marks & REPEATED) == 0)
            failed = tell_unknown(walk);
        kinf__doc_drop(object, member);
        return failed;
    }
    if ((marks & DOUBLED) != 0)
        failed = tell_here(walk, "duplicate");
    if (failed == 0)
        failed = prune(walk, known, member);
    if ((marks & STALE) != 0 || (cJSON_IsNull(member) && is_nothing(node, known)))
        kinf__doc_drop(object, member);
    return failed;
}

static int prune_object(struct walk *walk, const struct kinf__schema_node *node,
                        struct cJSON *object)
{
    size_t len = walk->path.len;
    struct cJSON *member, *next;
    int failed = mark_doubles(object);

    for (member = object->child; failed == 0 && member != NULL; member = next) {
        next = member->next;
        failed = kinf__path_enter(&walk->path, member->string);
        if (failed == 0)
            failed = prune_member(walk, node, object, member);
        walk->path.len = len;
    }
    return failed;
}

static int prune_list(struct walk *walk, const struct kinf__schema_node *node, struct cJSON *list)
{
    size_t len = walk->path.len, i = 0;
    struct cJSON *item;
    int failed = 0;

    for (item = list->child; failed == 0 && item != NULL; item = item->next) {
        failed = kinf__path_enter_index(&walk->path, i++);
        if (failed == 0)
            failed = prune(walk, node->element, item);
        walk->path.len = len;
    }
    return failed;
}

/* The depth is bounded by the parser's. */
static int prune(struct walk *walk, const struct kinf__schema_node *node, struct cJSON *tree)
{
    if (node != NULL && cJSON_IsArray(tree) && node->kind == KINF__SCHEMA_LIST)
        return prune_list(walk, node, tree);
    if (node != NULL && cJSON_IsObject(tree) &&
        (node->kind == KINF__SCHEMA_OBJECT || node->kind == KINF__SCHEMA_MAP))
        return prune_object(walk, node, tree);
    return drop_doubles(walk, tree, false);
}

int kinf__schema_prune(const struct kinf__schema_node *node, struct cJSON *tree,
                       kinf__schema_problem_cb *problem, void *ctx)
{
    bool is_custom = node != NULL && node->rules != NULL;
    struct walk walk = { .problem = problem, .ctx = ctx, .is_sorted = is_custom };
    int failed = 0;

    if (is_custom)
        failed = drop_doubles(&walk, tree, true);
    if (failed == 0)
        failed = prune(&walk, node, tree);
    if (failed == 0)
        failed = tell_sorted(&walk);
    kinf__buffer_release(&walk.path);
    kinf__buffer_release(&walk.unknown);
    return failed;
}

/* --- defaults --- */

/* What is known of a member or an element. */
static const struct kinf__schema_node *node_of(const struct kinf__schema_node *node,
                                               const struct cJSON *tree, const struct cJSON *child)
{
    if (cJSON_IsObject(tree))
        return kinf__schema_member(node, child->string);
    return node->kind == KINF__SCHEMA_LIST ? node->element : NULL;
}

/* An empty text is none to Go, unless it is a pointer's; those have no default but "". */
static bool is_missing(const struct kinf__schema_node *node, const struct cJSON *member)
{
    if (member == NULL)
        return true;
    return node->rules == NULL ? cJSON_IsString(member) && member->valuestring[0] == '\0'
                               : cJSON_IsNull(member) && !node->is_nullable;
}

static int default_fields(const struct kinf__schema_node *node, struct cJSON *object)
{
    for (size_t i = 0; i < node->n_fields; i++) {
        const struct kinf__schema_field *field = &node->fields[i];

        if (field->fallback != NULL &&
            is_missing(field->node, kinf__doc_get(object, field->name)) &&
            kinf__doc_set(object, field->name, kinf__doc_dup(field->fallback)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

int kinf__schema_default(const struct kinf__schema_node *node, struct cJSON *tree)
{
    struct cJSON *child;
    int failed = 0;

    if (node == NULL || tree == NULL)
        return 0;
    if (node->kind == KINF__SCHEMA_OBJECT && cJSON_IsObject(tree))
        failed = default_fields(node, tree);
    for (child = tree->child; failed == 0 && child != NULL; child = child->next)
        failed = kinf__schema_default(node_of(node, tree, child), child);
    return failed;
}

/* --- what Go leaves out --- */

static bool is_omitted(const struct kinf__schema_node *node, const struct cJSON *member)
{
    const struct kinf__schema_field *field = kinf__schema_field_of(node, member->string);

    return field != NULL && !field->is_required && member->child == NULL &&
           ((field->node->kind == KINF__SCHEMA_LIST && cJSON_IsArray(member)) ||
            (field->node->kind == KINF__SCHEMA_MAP && cJSON_IsObject(member)));
}

static int become_text(struct cJSON *value, const char *text)
{
    char *copy = strdup(text);

    if (copy == NULL)
        return KINF_ERR_NO_MEMORY;
    free(value->valuestring);
    value->valuestring = copy;
    value->type = cJSON_String;
    return 0;
}

/* "1024Mi" becomes "1Gi". */
static int write_quantity(struct cJSON *value)
{
    char text[KINF__QUANTITY_SIZE], canonical[KINF__QUANTITY_SIZE];

    if (cJSON_IsString(value))
        snprintf(text, sizeof text, "%s", value->valuestring);
    else if (cJSON_IsNumber(value))
        snprintf(text, sizeof text, "%.15g", value->valuedouble);
    else
        return 0;
    return kinf__quantity_write(text, canonical) ? become_text(value, canonical) : 0;
}

/* The depth is bounded by the parser's. */
static int omit(const struct kinf__schema_node *node, struct cJSON *tree)
{
    struct cJSON *child, *next;
    int failed = 0;

    if (node == NULL || tree == NULL)
        return 0;
    if (node->kind == KINF__SCHEMA_QUANTITY)
        return write_quantity(tree);
    for (child = tree->child; failed == 0 && child != NULL; child = next) {
        const struct kinf__schema_node *known = node_of(node, tree, child);

        next = child->next;
        if (cJSON_IsObject(tree) && is_omitted(node, child))
            kinf__doc_drop(tree, child);
        else if (known != NULL && known == node->element && cJSON_IsNull(child) &&
                 known->kind == KINF__SCHEMA_STRING)
            failed = become_text(child, "");
        else
            failed = omit(known, child);
    }
    return failed;
}

int kinf__omit_empty(const struct kinf__schema_node *node, struct cJSON *object)
{
    if (node == NULL || node->rules == NULL)
        return omit(node, object);
    return omit(kinf__schema_member(node, "metadata"), kinf__doc_get(object, "metadata"));
}

/* --- lists that are there always --- */

static bool is_shown(const struct kinf__schema_field *field, const struct cJSON *value)
{
    return field->is_required && field->node->kind == KINF__SCHEMA_LIST &&
           (value == NULL || (cJSON_IsArray(value) && value->child == NULL));
}

int kinf__show_lists(const struct kinf__schema_node *node, struct cJSON *object)
{
    struct cJSON *child;
    int failed = 0;

    if (node == NULL || node->rules != NULL)
        return 0;
    for (size_t i = 0; failed == 0 && cJSON_IsObject(object) && i < node->n_fields; i++) {
        if (is_shown(&node->fields[i], kinf__doc_get(object, node->fields[i].name)))
            failed = kinf__doc_set(object, node->fields[i].name, cJSON_CreateNull());
    }
    for (child = object->child; failed == 0 && child != NULL; child = child->next)
        failed = kinf__show_lists(node_of(node, object, child), child);
    return failed;
}
