/*
 * JSON Patch and merge patch. Neighbour: strategic.c.
 *
 * Invariant: no tree is ever deeper than cJSON parses, since everything that walks one recurses.
 */
#include "document/patch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/node_index.h"

#define MAX_OPERATIONS 10000
/* The server's limits for what copy operations add. */
#define MAX_COPIED (3 * 1024 * 1024)
/* Nodes that are walked, for all operations together: some tenths of a second. */
#define MAX_STEPS 100000000

/* --- JSON Patch: operations --- */

struct operation {
    const char *op; /* these three: NULL: null, or missing */
    const char *path;
    const char *from;
    const struct cJSON *value; /* NULL: missing */
};

static int refuse_type(struct kinf__refusal *refusal, const struct cJSON *value, const char *type)
{
    return kinf__refuse(refusal, 400, "BadRequest",
                        "error decoding patch: json: cannot unmarshal %s into Go %s",
                        kinf__json_type_word(value), type);
}

static int read_text(const struct cJSON *member, const char **ret_text,
                     struct kinf__refusal *refusal)
{
    char type[64];

    *ret_text = cJSON_GetStringValue(member);
    if (*ret_text != NULL || cJSON_IsNull(member))
        return 0;
    snprintf(type, sizeof type, "struct field jsonPatchOp.%s of type string", member->string);
    return refuse_type(refusal, member, type);
}

static int read_operation(const struct cJSON *element, struct operation *ret_operation,
                          struct kinf__refusal *refusal)
{
    struct operation operation = { .op = NULL };
    const struct cJSON *member;
    int failed = 0;

    if (!cJSON_IsObject(element) && !cJSON_IsNull(element))
        return refuse_type(refusal, element, "value of type handlers.jsonPatchOp");
    for (member = element->child; failed == 0 && member != NULL; member = member->next) {
        if (strcmp(member->string, "op") == 0)
            failed = read_text(member, &operation.op, refusal);
        else if (strcmp(member->string, "path") == 0)
            failed = read_text(member, &operation.path, refusal);
        else if (strcmp(member->string, "from") == 0)
            failed = read_text(member, &operation.from, refusal);
        else if (strcmp(member->string, "value") == 0)
            operation.value = member;
    }
    *ret_operation = operation;
    return failed;
}

/* --- JSON Patch: places --- */

struct editor {
    struct cJSON **root;
    struct kinf__refusal *refusal;
    size_t n_steps;
    size_t n_copied;
};

/* What a pointer says: something in a container. */
struct place {
    struct cJSON *container;
    const char *key; /* decoded */
    size_t depth;    /* names in the pointer */
    char *text;      /* the pointer, being decoded */
};

int kinf__patch_reject(struct kinf__refusal *refusal)
{
    kinf__refuse(refusal, 422, "Invalid",
                 "the server rejected our request due to an error in our request");
    refusal->details = KINF__DETAILS_EMPTY;
    return KINF_ERR_INVALID;
}

static int reject(struct editor *editor)
{
    return kinf__patch_reject(editor->refusal);
}

static struct cJSON *find_member(struct editor *editor, const struct cJSON *object,
                                 const char *name)
{
    struct cJSON *member = object->child;

    for (; member != NULL && strcmp(member->string, name) != 0; member = member->next)
        editor->n_steps++;
    return member;
}

static long count_elements(struct editor *editor, const struct cJSON *array)
{
    long n = cJSON_GetArraySize(array);

    editor->n_steps += (size_t)n;
    return n;
}

static bool read_index(const char *key, long *ret_index)
{
    const char *digits = *key == '-' || *key == '+' ? key + 1 : key;

    errno = 0;
    *ret_index = strtol(key, NULL, 10);
    return *digits != '\0' && digits[strspn(digits, "0123456789")] == '\0' && errno == 0;
}

static struct cJSON *find_element(struct editor *editor, const struct cJSON *array, const char *key)
{
    struct cJSON *element = array->child;
    long index;

    if (!read_index(key, &index))
        return NULL;
    if (index < 0)
        index += count_elements(editor, array);
    if (index < 0)
        return NULL;
    for (; element != NULL && index > 0; index--) {
        element = element->next;
        editor->n_steps++;
    }
    return element;
}

static struct cJSON *find_child(struct editor *editor, const struct cJSON *container,
                                const char *key)
{
    return cJSON_IsArray(container) ? find_element(editor, container, key)
                                    : find_member(editor, container, key);
}

/* ~1 and ~0, in place; other tildes stand for themselves. */
static void decode_name(char *name)
{
    char *to = name;

    for (const char *at = name; *at != '\0'; at++) {
        if (at[0] == '~' && (at[1] == '0' || at[1] == '1'))
            *to++ = *++at == '0' ? '~' : '/';
        else
            *to++ = *at;
    }
    *to = '\0';
}

static void release_place(struct place *place)
{
    free(place->text);
}
#define AUTO_PLACE KINF__CLEANUP(release_place) struct place

/* Goes down to the last name, which need not be there. `path` "" is no place in anything. */
static int find_place(struct editor *editor, const char *path, struct place *ret_place)
{
    char *name, *slash;

    *ret_place = (struct place){ .container = *editor->root, .text = strdup(path) };
    if (ret_place->text == NULL)
        return kinf__refuse_no_memory(editor->refusal);
    slash = strchr(ret_place->text, '/');
    if (slash == NULL)
        return reject(editor);
    for (;;) {
        name = slash + 1;
        slash = strchr(name, '/');
        ret_place->depth++;
        if (slash != NULL)
            *slash = '\0';
        decode_name(name);
        if (slash == NULL)
            break;
        ret_place->container = find_child(editor, ret_place->container, name);
        if (!cJSON_IsObject(ret_place->container) && !cJSON_IsArray(ret_place->container))
            return reject(editor);
    }
    ret_place->key = name;
    return 0;
}

/* Whatever is there; a member that is missing is NULL, an element that is, is an error. */
static int get_at(struct editor *editor, const struct place *place, struct cJSON **ret_node)
{
    *ret_node = find_child(editor, place->container, place->key);
    return *ret_node == NULL && cJSON_IsArray(place->container) ? reject(editor) : 0;
}

/* cJSON_InsertItemInArray() does not insert in every distribution's cJSON. */
static void insert_before(struct cJSON *array, struct cJSON *at, struct cJSON *node)
{
    node->next = at;
    node->prev = at->prev;
    at->prev = node;
    if (array->child == at)
        array->child = node;
    else
        node->prev->next = node;
}

static int insert_element(struct editor *editor, const struct place *place,
                          struct cJSON *take_value)
{
    KINF__AUTO_DOC *value = take_value;
    struct cJSON *at = place->container->child;
    bool is_last = strcmp(place->key, "-") == 0;
    long index = 0;

    if (!is_last && !read_index(place->key, &index))
        return reject(editor);
    if (index < 0)
        index += count_elements(editor, place->container) + 1;
    if (index < 0)
        return reject(editor);
    for (; !is_last && at != NULL && index > 0; index--) {
        at = at->next;
        editor->n_steps++;
    }
    if (index > 0)
        return reject(editor);
    if (is_last || at == NULL)
        cJSON_AddItemToArray(place->container, KINF__TAKE(value));
    else
        insert_before(place->container, at, KINF__TAKE(value));
    return 0;
}

static int put_at(struct editor *editor, const struct place *place, struct cJSON *take_value)
{
    struct cJSON *old;

    if (take_value == NULL)
        return kinf__refuse_no_memory(editor->refusal);
    if (cJSON_IsArray(place->container))
        return insert_element(editor, place, take_value);
    old = find_member(editor, place->container, place->key);
    if (kinf__node_put_member(place->container, old, place->key, take_value) < 0)
        return kinf__refuse_no_memory(editor->refusal);
    return 0;
}

/* --- JSON Patch: how large --- */

struct extent {
    size_t n_nodes;
    size_t n_bytes; /* as JSON, about */
    size_t depth;   /* 0: neither object nor array */
};

static void measure(const struct cJSON *node, size_t depth, struct extent *extent)
{
    const struct cJSON *child;

    extent->n_nodes++;
    extent->n_bytes += node->string != NULL ? strlen(node->string) + 4 : 1;
    extent->n_bytes += node->valuestring != NULL ? strlen(node->valuestring) + 2 : 2;
    if ((cJSON_IsObject(node) || cJSON_IsArray(node)) && ++depth > extent->depth)
        extent->depth = depth;
    cJSON_ArrayForEach(child, node)
    {
        measure(child, depth, extent);
    }
}

/* Whether the value may stand there: the tree would become too deep. */
static int check_depth(struct editor *editor, const struct place *place, const struct cJSON *value,
                       struct extent *ret_extent)
{
    *ret_extent = (struct extent){ 0, 0, 0 };
    measure(value, 0, ret_extent);
    editor->n_steps += ret_extent->n_nodes;
    return place->depth + ret_extent->depth > CJSON_NESTING_LIMIT ? reject(editor) : 0;
}

/* --- JSON Patch: what operations do --- */

/* A copy of the value; without one, null. */
static struct cJSON *dup_value(const struct cJSON *value)
{
    return value != NULL ? kinf__doc_dup(value) : cJSON_CreateNull();
}

static int op_add(struct editor *editor, const struct operation *operation)
{
    AUTO_PLACE place = { .key = NULL };
    struct extent extent;
    int failed = find_place(editor, operation->path, &place);

    if (failed == 0 && operation->value != NULL)
        failed = check_depth(editor, &place, operation->value, &extent);
    return failed != 0 ? failed : put_at(editor, &place, dup_value(operation->value));
}

/* Takes out what is there. */
static int take_at(struct editor *editor, const struct place *place, struct cJSON **ret_node)
{
    struct cJSON *node = find_child(editor, place->container, place->key);

    if (node == NULL)
        return reject(editor);
    *ret_node = cJSON_DetachItemViaPointer(place->container, node);
    return 0;
}

static int op_remove(struct editor *editor, const struct operation *operation)
{
    AUTO_PLACE place = { .key = NULL };
    KINF__AUTO_DOC *node = NULL;
    int failed = find_place(editor, operation->path, &place);

    return failed != 0 ? failed : take_at(editor, &place, &node);
}

static int replace_root(struct editor *editor, const struct operation *operation)
{
    struct cJSON *value;

    if (!cJSON_IsObject(operation->value) && !cJSON_IsArray(operation->value))
        return reject(editor);
    value = kinf__doc_dup(operation->value);
    if (value == NULL)
        return kinf__refuse_no_memory(editor->refusal);
    cJSON_Delete(*editor->root);
    *editor->root = value;
    return 0;
}

static int op_replace(struct editor *editor, const struct operation *operation)
{
    AUTO_PLACE place = { .key = NULL };
    struct cJSON *old, *value;
    struct extent extent;
    int failed;

    if (*operation->path == '\0')
        return replace_root(editor, operation);
    failed = find_place(editor, operation->path, &place);
    if (failed == 0)
        failed = get_at(editor, &place, &old);
    if (failed == 0 && operation->value != NULL)
        failed = check_depth(editor, &place, operation->value, &extent);
    if (failed != 0)
        return failed;
    if (!cJSON_IsArray(place.container))
        return put_at(editor, &place, dup_value(operation->value));
    value = dup_value(operation->value);
    if (value == NULL)
        return kinf__refuse_no_memory(editor->refusal);
    cJSON_ReplaceItemViaPointer(place.container, old, value);
    return 0;
}

static int op_move(struct editor *editor, const struct operation *operation)
{
    AUTO_PLACE from = { .key = NULL };
    AUTO_PLACE to = { .key = NULL };
    KINF__AUTO_DOC *node = NULL;
    struct extent extent;
    int failed = find_place(editor, operation->from, &from);

    if (failed == 0)
        failed = take_at(editor, &from, &node);
    if (failed == 0)
        failed = find_place(editor, operation->path, &to);
    if (failed == 0 && to.depth > from.depth)
        failed = check_depth(editor, &to, node, &extent);
    return failed != 0 ? failed : put_at(editor, &to, KINF__TAKE(node));
}

static int op_copy(struct editor *editor, const struct operation *operation)
{
    AUTO_PLACE from = { .key = NULL };
    AUTO_PLACE to = { .key = NULL };
    struct cJSON *node = NULL;
    struct extent extent = { 0, 0, 0 };
    int failed = find_place(editor, operation->from, &from);

    if (failed == 0)
        failed = get_at(editor, &from, &node);
    if (failed == 0)
        failed = find_place(editor, operation->path, &to);
    if (failed == 0 && node != NULL)
        failed = check_depth(editor, &to, node, &extent);
    if (failed != 0)
        return failed;
    editor->n_copied += extent.n_bytes;
    if (editor->n_copied > MAX_COPIED)
        return reject(editor);
    return put_at(editor, &to, dup_value(node));
}

static int op_test(struct editor *editor, const struct operation *operation)
{
    AUTO_PLACE place = { .key = NULL };
    struct cJSON *node = *editor->root;
    int failed = 0;

    if (*operation->path != '\0') {
        failed = find_place(editor, operation->path, &place);
        if (failed == 0)
            failed = get_at(editor, &place, &node);
    }
    if (failed < 0)
        return failed;
    if (node == NULL || cJSON_IsNull(node))
        return operation->value == NULL || cJSON_IsNull(operation->value) ? 0 : reject(editor);
    return kinf__doc_equal(node, operation->value) ? 0 : reject(editor);
}

static int apply(struct editor *editor, const struct operation *operation)
{
    static const struct {
        const char *name;
        int (*apply)(struct editor *editor, const struct operation *operation);
        bool takes_from;
    } verbs[] = {
        { "add", op_add, false },  { "remove", op_remove, false }, { "replace", op_replace, false },
        { "move", op_move, true }, { "copy", op_copy, true },      { "test", op_test, false },
    };

    if (editor->n_steps > MAX_STEPS)
        return kinf__refuse(editor->refusal, 413, "RequestEntityTooLarge",
                            "Request entity too large: the operations of the patch take more than "
                            "%d steps",
                            MAX_STEPS);
    if (operation->op == NULL || operation->path == NULL)
        return reject(editor);
    for (size_t i = 0; i < KINF__ARRAY_LEN(verbs); i++) {
        if (strcmp(operation->op, verbs[i].name) == 0 &&
            (operation->from != NULL || !verbs[i].takes_from))
            return verbs[i].apply(editor, operation);
    }
    return reject(editor);
}

/* The server decodes all of them before it applies one. */
static int check_operations(const struct cJSON *patch, struct kinf__refusal *refusal)
{
    const struct cJSON *element;
    struct operation operation;
    size_t n = 0;

    if (!cJSON_IsArray(patch))
        return refuse_type(refusal, patch, "value of type []handlers.jsonPatchOp");
    cJSON_ArrayForEach(element, patch)
    {
        if (read_operation(element, &operation, refusal) < 0)
            return KINF_ERR_INVALID;
        n++;
    }
    if (n > MAX_OPERATIONS)
        return kinf__refuse(refusal, 413, "RequestEntityTooLarge",
                            "Request entity too large: The allowed maximum operations in a JSON "
                            "patch is %d, got %zu",
                            MAX_OPERATIONS, n);
    return 0;
}

int kinf__patch_json(struct cJSON **tree, const struct cJSON *patch, struct kinf__refusal *refusal)
{
    struct editor editor = { .root = tree, .refusal = refusal };
    const struct cJSON *element;
    struct operation operation;
    int failed = cJSON_IsNull(patch) ? 0 : check_operations(patch, refusal);

    for (element = patch->child; failed == 0 && element != NULL; element = element->next) {
        failed = read_operation(element, &operation, refusal);
        if (failed == 0)
            failed = apply(&editor, &operation);
    }
    return failed;
}

/* --- merge patch --- */

static void remove_nulls(struct cJSON *tree)
{
    for (struct cJSON *child = tree->child, *next; child != NULL; child = next) {
        next = child->next;
        if (cJSON_IsObject(tree) && cJSON_IsNull(child))
            kinf__doc_drop(tree, child);
        else
            remove_nulls(child);
    }
}

static int merge_object(struct cJSON *object, struct cJSON *patch);

static int merge_member(struct kinf__node_members *members, struct cJSON *take_value)
{
    KINF__AUTO_DOC *value = take_value;
    struct cJSON *old = kinf__node_members_get(members, value->string);

    if (cJSON_IsNull(value)) {
        kinf__node_members_remove(members, value->string);
        return 0;
    }
    if (cJSON_IsObject(old) && cJSON_IsObject(value))
        return merge_object(old, value);
    if (!cJSON_IsObject(old))
        remove_nulls(value);
    take_value = KINF__TAKE(value);
    return kinf__node_members_set(members, take_value->string, take_value);
}

/* Uses the members of the patch up. */
static int merge_object(struct cJSON *object, struct cJSON *patch)
{
    KINF__AUTO_NODE_MEMBERS members;
    int failed = kinf__node_members_init(&members, object, (size_t)cJSON_GetArraySize(patch));

    while (failed == 0 && patch->child != NULL)
        failed = merge_member(&members, cJSON_DetachItemViaPointer(patch, patch->child));
    return failed;
}

int kinf__patch_merge(struct cJSON **tree, const struct cJSON *patch, struct kinf__refusal *refusal)
{
    KINF__AUTO_DOC *copied = NULL;

    if (cJSON_IsNull(patch))
        return kinf__refuse(refusal, 400, "BadRequest", "Invalid JSON Patch");
    if (!cJSON_IsObject(patch))
        return refuse_type(refusal, patch, "value of type map[string]interface {}");
    copied = kinf__doc_dup(patch);
    if (copied == NULL || kinf__doc_undouble(copied) < 0 || merge_object(*tree, copied) < 0)
        return kinf__refuse_no_memory(refusal);
    return 0;
}
