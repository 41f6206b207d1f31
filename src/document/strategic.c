/*
 * Strategic merge patch. Neighbours: schema.c says which lists are merged, and by what; patch.c has
 * the other patches.
 *
 * A merge uses its patch up: what goes into the document is moved there.
 */
#include <stdlib.h>
#include <string.h>

#include "document/elements.h"
#include "document/patch.h"

#define DIRECTIVE     "$patch"
#define RETAIN_KEYS   "$retainKeys"
#define DELETE_PREFIX "$deleteFromPrimitiveList"
#define ORDER_PREFIX  "$setElementOrder"

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Moves all children; what there was goes. */
static void replace_children(struct cJSON *container, struct cJSON *from)
{
    cJSON_Delete(container->child);
    container->child = from->child;
    from->child = NULL;
}

/* --- refusals --- */

static int refuse_format(struct kinf__refusal *refusal, const char *what)
{
    return kinf__refuse(refusal, 400, "BadRequest", "invalid patch format of %s", what);
}

static int refuse_directive(struct kinf__refusal *refusal, const struct cJSON *directive,
                            const struct cJSON *patch)
{
    static const char *const words[] = { "unknown patch type: ", " in map: ", "" };

    return kinf__refuse_values(refusal, words, 's', directive, patch);
}

static int refuse_order(struct kinf__refusal *refusal, const struct cJSON *patch,
                        const struct cJSON *order)
{
    static const char *const words[] = { "The order in patch list:\n",
                                         "\n doesn't match $setElementOrder list:\n", "\n" };

    return kinf__refuse_values(refusal, words, 'v', patch, order);
}

/* --- merging lists --- */

static int merge_map(struct cJSON *object, struct cJSON *patch,
                     const struct kinf__schema_node *node, struct kinf__refusal *refusal);

/* Removes elements that another one stands for in the index; without a key there is none. */
static int remove_listed(struct cJSON *list, const char *merge_key,
                         const struct kinf__node_index *listed)
{
    KINF__AUTO_BUFFER room = KINF__BUFFER_INIT;
    const struct kinf__node_index_entry *entry;
    const char *key;

    for (struct cJSON *element = list->child, *next; element != NULL; element = next) {
        next = element->next;
        if (kinf__element_key(element, merge_key) == NULL)
            continue;
        key = kinf__element_key_text(element, merge_key, &room);
        if (key == NULL)
            return KINF_ERR_NO_MEMORY;
        entry = kinf__node_index_find(listed, key);
        if (entry != NULL && entry->node != element)
            kinf__doc_drop(list, element);
    }
    return 0;
}

static int delete_scalars(struct cJSON *list, const struct cJSON *patch)
{
    KINF__AUTO_NODE_INDEX listed = { KINF__HMAP_INIT };

    if (kinf__elements_rank(patch, "", &listed) < 0)
        return KINF_ERR_NO_MEMORY;
    return remove_listed(list, "", &listed);
}

/* Moves the element behind the others, unless there is one like it, which is *ret_entry then. */
static int append_unless_there(struct cJSON *list, struct cJSON **element, const char *merge_key,
                               struct kinf__node_index *ranks,
                               struct kinf__node_index_entry **ret_entry)
{
    KINF__AUTO_BUFFER room = KINF__BUFFER_INIT;
    const char *key = kinf__element_key_text(*element, merge_key, &room);

    if (key == NULL)
        return KINF_ERR_NO_MEMORY;
    *ret_entry = kinf__node_index_find(ranks, key);
    if (*ret_entry != NULL)
        return 0;
    if (kinf__node_index_add(ranks, key, *element, KINF__NO_RANK) < 0)
        return KINF_ERR_NO_MEMORY;
    cJSON_AddItemToArray(list, KINF__TAKE(*element));
    return 0;
}

static struct cJSON *take_first(struct cJSON *container)
{
    return cJSON_DetachItemViaPointer(container, container->child);
}

/* A set: each once, and of its own ones, which the ranks know, the first. */
static int merge_scalars(struct cJSON *list, struct cJSON *patch, struct kinf__refusal *refusal)
{
    KINF__AUTO_NODE_INDEX server = { KINF__HMAP_INIT };
    KINF__AUTO_NODE_INDEX named = { KINF__HMAP_INIT };
    struct kinf__node_index_entry *entry;

    if (kinf__elements_rank(list, "", &server) < 0 || remove_listed(list, "", &server) < 0 ||
        kinf__elements_rank(patch, "", &named) < 0)
        return KINF_ERR_NO_MEMORY;
    while (patch->child != NULL) {
        KINF__AUTO_DOC *element = take_first(patch);

        if (append_unless_there(list, &element, "", &server, &entry) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return kinf__elements_arrange(list, "", &server, &named, refusal);
}

/* Takes an element with a directive out of the patch, and notes what it wants. */
static int take_directive(struct cJSON *take_element, const char *merge_key,
                          struct kinf__node_index *deleted, bool *replaces,
                          struct kinf__refusal *refusal)
{
    KINF__AUTO_DOC *element = take_element;
    KINF__AUTO_BUFFER room = KINF__BUFFER_INIT;
    const struct cJSON *directive = kinf__doc_get(element, DIRECTIVE);
    const char *key;
    int failed;

    if (kinf__doc_is_text(directive, "replace")) {
        *replaces = true;
        return 0;
    }
    if (kinf__doc_is_text(directive, "merge"))
        return kinf__refuse_oddly(refusal, "merging lists cannot yet be specified in the patch");
    if (!kinf__doc_is_text(directive, "delete"))
        return refuse_directive(refusal, directive, element);
    failed = kinf__element_check_key(element, merge_key, refusal);
    if (failed < 0)
        return failed;
    key = kinf__element_key_text(element, merge_key, &room);
    if (key == NULL)
        return KINF_ERR_NO_MEMORY;
    return kinf__node_index_add(deleted, key, NULL, 0);
}

/* What elements with a directive say of the others, which alone stay in the patch. */
static int obey_directives(struct cJSON *list, struct cJSON *patch, const char *merge_key,
                           struct kinf__refusal *refusal)
{
    KINF__AUTO_NODE_INDEX deleted = { KINF__HMAP_INIT };
    bool replaces = false;
    int failed = 0;

    for (struct cJSON *element = patch->child, *next; failed == 0 && element != NULL;
         element = next) {
        next = element->next;
        if (kinf__doc_get(element, DIRECTIVE) != NULL)
            failed = take_directive(cJSON_DetachItemViaPointer(patch, element), merge_key, &deleted,
                                    &replaces, refusal);
    }
    if (failed < 0)
        return failed;
    if (!replaces)
        return remove_listed(list, merge_key, &deleted);
    replace_children(list, patch);
    return 0;
}

static int merge_element(struct cJSON *list, struct cJSON *take_element,
                         const struct kinf__schema_node *node, struct kinf__node_index *server,
                         struct kinf__refusal *refusal)
{
    KINF__AUTO_DOC *element = take_element;
    struct kinf__node_index_entry *entry = NULL;
    int failed = kinf__element_check_key(element, node->merge_key, refusal);

    if (failed == 0)
        failed = append_unless_there(list, &element, node->merge_key, server, &entry);
    if (failed < 0)
        return failed;
    return entry != NULL ? merge_map(entry->node, element, node->element, refusal) : 0;
}

static int merge_elements(struct cJSON *list, struct cJSON *patch,
                          const struct kinf__schema_node *node, struct kinf__refusal *refusal)
{
    KINF__AUTO_NODE_INDEX server = { KINF__HMAP_INIT };
    KINF__AUTO_NODE_INDEX named = { KINF__HMAP_INIT };
    int failed = obey_directives(list, patch, node->merge_key, refusal);

    if (failed == 0)
        failed = kinf__elements_rank(list, node->merge_key, &server);
    if (failed == 0)
        failed = kinf__elements_rank(patch, node->merge_key, &named);
    while (failed == 0 && patch->child != NULL)
        failed = merge_element(list, take_first(patch), node, &server, refusal);
    return failed < 0 ? failed
                      : kinf__elements_arrange(list, node->merge_key, &server, &named, refusal);
}

/* `node`: the list's; NULL, without a merge key: only scalars can be deleted. */
static int merge_list(struct cJSON *list, struct cJSON *patch, const struct kinf__schema_node *node,
                      bool is_deletion, struct kinf__refusal *refusal)
{
    bool are_maps = false;
    int failed;

    if (list->child == NULL && patch->child == NULL)
        return 0;
    failed = kinf__elements_check(list, patch, &are_maps, refusal);
    if (failed < 0)
        return failed;
    if (!are_maps)
        return is_deletion ? delete_scalars(list, patch) : merge_scalars(list, patch, refusal);
    if (node == NULL || node->merge_key == NULL || *node->merge_key == '\0')
        return kinf__refuse_oddly(refusal, "cannot merge lists without merge key for struct");
    return merge_elements(list, patch, node, refusal);
}

/* --- maps --- */

/* Takes nulls and directives out of what becomes new. False: it is a directive itself. */
static bool clean(struct cJSON *value)
{
    const struct cJSON *directive = kinf__doc_get(value, DIRECTIVE);

    if (directive != NULL && !cJSON_IsNull(directive))
        return false;
    for (struct cJSON *child = value->child, *next; child != NULL; child = next) {
        next = child->next;
        if ((cJSON_IsObject(value) && cJSON_IsNull(child)) || !clean(child))
            kinf__doc_drop(value, child);
    }
    return true;
}

static int set_member(struct kinf__node_members *members, const char *name,
                      struct cJSON *take_value, bool is_raw)
{
    if (!is_raw && !clean(take_value)) {
        /* The name may be the value's. */
        kinf__node_members_remove(members, name);
        cJSON_Delete(take_value);
        return 0;
    }
    return kinf__node_members_set(members, name, take_value);
}

/* The list that "$setElementOrder/containers" is about; NULL: it is about none. */
static const char *list_name(const char *directive, const char *prefix)
{
    size_t len = strlen(prefix);

    return directive[len] == '/' ? directive + len + 1 : NULL;
}

static int merge_member(struct kinf__node_members *members, struct cJSON *take_value,
                        const struct kinf__schema_node *node, struct kinf__refusal *refusal)
{
    KINF__AUTO_DOC *value = take_value;
    bool is_deletion = has_prefix(value->string, DELETE_PREFIX);
    const char *name = is_deletion ? list_name(value->string, DELETE_PREFIX) : value->string;
    const struct kinf__schema_node *known;
    struct cJSON *old;

    if (name == NULL)
        return refuse_format(refusal, "primitive list");
    if (cJSON_IsNull(value)) {
        kinf__node_members_remove(members, name);
        return 0;
    }
    old = kinf__node_members_get(members, name);
    known = kinf__schema_member(node, name);
    if (cJSON_IsObject(old) && cJSON_IsObject(value) && !(known != NULL && known->is_replaced))
        return merge_map(old, value, known, refusal);
    if (cJSON_IsArray(old) && cJSON_IsArray(value) &&
        (is_deletion || (known != NULL && known->merge_key != NULL)))
        return merge_list(old, value, known, is_deletion, refusal);
    if (is_deletion)
        return 0;
    return set_member(members, name, KINF__TAKE(value),
                      old != NULL && (old->type & 0xff) == (take_value->type & 0xff));
}

/* $retainKeys: nothing else stays, and the patch sets nothing else. */
static int retain_keys(struct cJSON *object, const struct cJSON *patch, const struct cJSON *keys,
                       struct kinf__refusal *refusal)
{
    KINF__AUTO_NODE_INDEX retained = { KINF__HMAP_INIT };
    const struct cJSON *member;

    if (!cJSON_IsArray(keys))
        return refuse_format(refusal, "retainKeys");
    cJSON_ArrayForEach(member, keys)
    {
        if (cJSON_IsString(member) &&
            kinf__node_index_add(&retained, member->valuestring, NULL, 0) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    cJSON_ArrayForEach(member, patch)
    {
        if (!cJSON_IsNull(member) && !has_prefix(member->string, DELETE_PREFIX) &&
            !has_prefix(member->string, ORDER_PREFIX) &&
            kinf__node_index_find(&retained, member->string) == NULL)
            return refuse_format(refusal, "retainKeys");
    }
    for (struct cJSON *old = object->child, *next; old != NULL; old = next) {
        next = old->next;
        if (kinf__node_index_find(&retained, old->string) == NULL)
            kinf__doc_drop(object, old);
    }
    return 0;
}

/* --- $setElementOrder --- */

/* The patch's elements come in the order, and none that it does not name. */
static int check_order(const struct cJSON *patch, const struct cJSON *order, const char *merge_key,
                       struct kinf__refusal *refusal)
{
    const struct cJSON *element = patch->child, *named = order->child;
    int failed;

    if (element == NULL || named == NULL)
        return 0;
    while (element != NULL && named != NULL) {
        if (kinf__doc_get(element, DIRECTIVE) != NULL) {
            element = element->next;
            continue;
        }
        failed = kinf__element_check_key(element, merge_key, refusal);
        if (failed == 0)
            failed = kinf__element_check_key(named, merge_key, refusal);
        if (failed < 0)
            return failed;
        if (kinf__doc_equal(kinf__element_key(element, merge_key),
                            kinf__element_key(named, merge_key)))
            element = element->next;
        named = named->next;
    }
    while (element != NULL && kinf__doc_is_text(kinf__doc_get(element, DIRECTIVE), "delete"))
        element = element->next;
    return element != NULL ? refuse_order(refusal, patch, order) : 0;
}

static int rank_order(const struct cJSON *order, const char *merge_key,
                      struct kinf__node_index *ranks, struct kinf__refusal *refusal)
{
    const struct cJSON *element;
    int failed, i = 0;

    cJSON_ArrayForEach(element, order)
    {
        if (*merge_key != '\0' && !cJSON_IsObject(element))
            return kinf__refuse_oddly(refusal, "value for key %d is not a map", i);
        failed = kinf__element_check_key(element, merge_key, refusal);
        if (failed < 0)
            return failed;
        i++;
    }
    return kinf__elements_rank(order, merge_key, ranks);
}

/* What is known of the list; NULL: nothing is known of anything here. */
static int find_list(const struct kinf__schema_node *node, const char *name,
                     const struct kinf__schema_node **ret_list, struct kinf__refusal *refusal)
{
    const char *type = node != NULL ? strrchr(node->name, '.') : NULL;

    *ret_list = kinf__schema_member(node, name);
    if (node == NULL || node->kind == KINF__SCHEMA_ANY)
        return 0;
    if (node->kind != KINF__SCHEMA_OBJECT)
        return kinf__refuse_oddly(
            refusal, "merging an object in json but data type is not struct, instead is: map");
    if (*ret_list == NULL)
        return kinf__refuse_oddly(refusal,
                                  "unable to find api field in struct %s for the json field \"%s\"",
                                  type != NULL ? type + 1 : node->name, name);
    if ((*ret_list)->kind != KINF__SCHEMA_LIST)
        return kinf__refuse_oddly(refusal, "expected slice or array type, but got: struct");
    return 0;
}

/* A list that there was, or that the patch brings, or both; what comes of it is *list. */
static int merge_ordered(struct kinf__node_members *members, struct cJSON **list,
                         struct cJSON *take_patch, const struct kinf__schema_node *node,
                         struct kinf__refusal *refusal)
{
    KINF__AUTO_DOC *patch = take_patch;

    if (patch == NULL)
        return 0;
    if (*list != NULL && node != NULL && node->merge_key != NULL)
        return merge_list(*list, patch, node, false, refusal);
    if (*list == NULL)
        clean(patch);
    *list = take_patch = KINF__TAKE(patch);
    return kinf__node_members_set(members, take_patch->string, take_patch);
}

/* The list in the document, or in the patch; NULL: there is none. */
static int find_array(const struct kinf__node_members *members, const char *name,
                      struct cJSON **ret_list, struct kinf__refusal *refusal)
{
    *ret_list = kinf__node_members_get(members, name);
    return *ret_list == NULL || cJSON_IsArray(*ret_list)
               ? 0
               : kinf__refuse_go_type(refusal, KINF__GO_SLICE, *ret_list);
}

/* Merges the list if the patch has it, and then orders it. */
static int order_list(struct kinf__node_members *members, struct kinf__node_members *patches,
                      const struct cJSON *order, const char *name,
                      const struct kinf__schema_node *node, struct kinf__refusal *refusal)
{
    KINF__AUTO_NODE_INDEX server = { KINF__HMAP_INIT };
    KINF__AUTO_NODE_INDEX named = { KINF__HMAP_INIT };
    const char *merge_key = node != NULL && node->merge_key != NULL ? node->merge_key : "";
    struct cJSON *list = NULL, *patch = NULL;
    int failed = find_array(members, name, &list, refusal);

    if (failed == 0)
        failed = find_array(patches, name, &patch, refusal);
    if (failed == 0 && patch != NULL)
        failed = check_order(patch, order, merge_key, refusal);
    /* An empty list in the document is none: Go leaves those out. */
    if (failed == 0 && kinf__doc_is_empty(list) && patch == NULL)
        return 0;
    if (failed == 0 && kinf__doc_is_empty(list) && kinf__doc_is_empty(patch))
        failed = kinf__refuse_oddly(refusal, "no elements in any of the given slices");
    if (failed == 0)
        failed = kinf__elements_rank(list, merge_key, &server);
    if (failed == 0)
        failed =
            merge_ordered(members, &list, kinf__node_members_take(patches, name), node, refusal);
    if (failed == 0)
        failed = rank_order(order, merge_key, &named, refusal);
    return failed < 0 ? failed : kinf__elements_arrange(list, merge_key, &server, &named, refusal);
}

static int set_order(struct kinf__node_members *members, struct kinf__node_members *patches,
                     const struct cJSON *order, const struct kinf__schema_node *node,
                     struct kinf__refusal *refusal)
{
    const char *name = list_name(order->string, ORDER_PREFIX);
    const struct kinf__schema_node *known = NULL;
    struct cJSON *list;
    int failed;

    if (!cJSON_IsArray(order))
        return kinf__refuse_go_type(refusal, KINF__GO_SLICE, order);
    if (name == NULL)
        return refuse_format(refusal, "setElementOrder list");
    failed = find_array(members, name, &list, refusal);
    if (failed == 0)
        failed = find_list(node, name, &known, refusal);
    return failed < 0 ? failed : order_list(members, patches, order, name, known, refusal);
}

/* Moves what begins with the prefix from the patch to the other object. */
static void take_directives(struct cJSON *patch, const char *prefix, struct cJSON *to)
{
    for (struct cJSON *member = patch->child, *next; member != NULL; member = next) {
        next = member->next;
        if (has_prefix(member->string, prefix))
            cJSON_AddItemToArray(to, cJSON_DetachItemViaPointer(patch, member));
    }
}

static int set_orders(struct kinf__node_members *members, struct cJSON *patch,
                      const struct kinf__schema_node *node, struct kinf__refusal *refusal)
{
    KINF__AUTO_DOC *orders = cJSON_CreateObject();
    KINF__AUTO_NODE_MEMBERS patches = { NULL, false, { KINF__HMAP_INIT } };
    int failed;

    if (orders == NULL)
        return KINF_ERR_NO_MEMORY;
    take_directives(patch, ORDER_PREFIX, orders);
    failed = kinf__node_members_init(&patches, patch, (size_t)cJSON_GetArraySize(orders));
    for (struct cJSON *order = orders->child; failed == 0 && order != NULL; order = order->next)
        failed = set_order(members, &patches, order, node, refusal);
    return failed;
}

/* --- all of it --- */

static int obey_directive(struct cJSON *object, struct cJSON *patch, struct cJSON *directive,
                          struct kinf__refusal *refusal)
{
    struct cJSON nothing = { .type = cJSON_Object };
    bool replaces = kinf__doc_is_text(directive, "replace");

    if (!replaces && !kinf__doc_is_text(directive, "delete"))
        return refuse_directive(refusal, directive, patch);
    kinf__doc_drop(patch, directive);
    replace_children(object, replaces ? patch : &nothing);
    return 0;
}

/* Uses the members of the patch up. */
static int merge_map(struct cJSON *object, struct cJSON *patch,
                     const struct kinf__schema_node *node, struct kinf__refusal *refusal)
{
    struct cJSON *directive = kinf__doc_get(patch, DIRECTIVE);
    KINF__AUTO_DOC *keys = NULL;
    KINF__AUTO_NODE_MEMBERS members = { NULL, false, { KINF__HMAP_INIT } };
    int failed;

    if (directive != NULL)
        return obey_directive(object, patch, directive, refusal);
    keys = cJSON_DetachItemFromObjectCaseSensitive(patch, RETAIN_KEYS);
    failed = keys != NULL ? retain_keys(object, patch, keys, refusal) : 0;
    if (failed == 0)
        failed = kinf__node_members_init(&members, object, (size_t)cJSON_GetArraySize(patch));
    if (failed == 0)
        failed = set_orders(&members, patch, node, refusal);
    while (failed == 0 && patch->child != NULL)
        failed = merge_member(&members, take_first(patch), node, refusal);
    return failed;
}

int kinf__patch_strategic(struct cJSON **tree, const struct cJSON *patch,
                          const struct kinf__schema_node *node, struct kinf__refusal *refusal)
{
    KINF__AUTO_DOC *copied = NULL;
    int failed = KINF_ERR_NO_MEMORY;

    if (cJSON_IsNull(patch))
        return 0;
    if (!cJSON_IsObject(patch))
        return kinf__refuse(refusal, 400, "BadRequest",
                            "json: cannot unmarshal %s into Go value of type " KINF__GO_MAP,
                            kinf__json_type_word(patch));
    copied = kinf__doc_dup(patch);
    if (copied != NULL)
        failed = kinf__doc_undouble(copied);
    if (failed == 0)
        failed = merge_map(*tree, copied, node, refusal);
    return failed == KINF_ERR_NO_MEMORY ? kinf__refuse_no_memory(refusal) : failed;
}
