/*
 * Children, their steps and their order. Neighbours: field_set.c makes sets of them, apply.c merges by
 * them.
 */
#include "document/children.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

bool kinf__step_is_name(const char *step)
{
    return step[0] == 'f';
}

const struct kinf__schema_node *kinf__step_node(const struct kinf__schema_node *node,
                                                const char *step)
{
    if (kinf__step_is_name(step))
        return kinf__schema_member(node, step + 2);
    return node != NULL ? node->element : NULL;
}

enum kinf__shape kinf__shape_of(const struct kinf__schema_node *node, const struct cJSON *value)
{
    if (value == NULL || cJSON_IsNull(value))
        return KINF__SHAPE_NONE;
    if (cJSON_IsObject(value) && (node == NULL || !node->is_atomic))
        return KINF__SHAPE_MAP;
    if (cJSON_IsArray(value) && node != NULL && node->kind == KINF__SCHEMA_LIST &&
        node->list != KINF__LIST_ATOMIC)
        return KINF__SHAPE_LIST;
    return KINF__SHAPE_LEAF;
}

/* The smallest key that is greater; NULL: none is left. */
static const char *key_after(const char *const *keys, const char *last)
{
    const char *found = NULL;

    for (; keys != NULL && *keys != NULL; keys++) {
        if ((last == NULL || strcmp(*keys, last) > 0) &&
            (found == NULL || strcmp(*keys, found) < 0))
            found = *keys;
    }
    return found;
}

/* {"port":80,"protocol":"TCP"}; a key that is missing has its default, or is left out. */
static int print_step_keys(const struct kinf__schema_node *list, const struct cJSON *element,
                           struct kinf__buffer *step)
{
    const char *before = "k:{";

    for (const char *key = key_after(list->keys, NULL); key != NULL;
         key = key_after(list->keys, key)) {
        const struct kinf__schema_field *field = kinf__schema_field_of(list->element, key);
        const struct cJSON *value = kinf__doc_get(element, key);

        if (value == NULL && field != NULL)
            value = field->fallback;
        if (value == NULL)
            continue;
        if (kinf__buffer_printf(step, "%s\"%s\":", before, key) < 0 ||
            kinf__doc_print(value, step) < 0)
            return KINF_ERR_NO_MEMORY;
        before = ",";
    }
    return step->len != 0 ? kinf__buffer_append(step, "}", 1) : 0;
}

static int print_step(const struct kinf__schema_node *node, enum kinf__shape shape,
                      const struct kinf__tree_child *child, struct kinf__buffer *step)
{
    bool is_scalar = !cJSON_IsNull(child->value) && !cJSON_IsObject(child->value) &&
                     !cJSON_IsArray(child->value);
    int failed = 0;

    if (shape == KINF__SHAPE_MAP)
        return kinf__buffer_printf(step, "f:%s", child->value->string);
    if (node->list == KINF__LIST_MAP && cJSON_IsObject(child->value))
        failed = print_step_keys(node, child->value, step);
    else if (node->list == KINF__LIST_SET && is_scalar)
        failed = kinf__buffer_append(step, "v:", 2) < 0 || kinf__doc_print(child->value, step) < 0
                     ? KINF_ERR_NO_MEMORY
                     : 0;
    if (failed == 0 && step->len == 0)
        failed = kinf__buffer_printf(step, "i:%zu", child->place);
    return failed;
}

static int fill_child(const struct kinf__schema_node *node, enum kinf__shape shape,
                      struct kinf__tree_child *child)
{
    struct kinf__buffer step = KINF__BUFFER_INIT;

    if (print_step(node, shape, child, &step) < 0 || kinf__buffer_cstr(&step) == NULL) {
        kinf__buffer_release(&step);
        return KINF_ERR_NO_MEMORY;
    }
    child->step = step.bytes;
    child->node = kinf__step_node(node, child->step);
    return 0;
}

static int compare_children(const void *a, const void *b)
{
    const struct kinf__tree_child *x = a, *y = b;
    int order = strcmp(x->step, y->step);

    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

int kinf__children_of(const struct kinf__schema_node *node, const struct cJSON *value,
                      struct kinf__children *ret_children)
{
    enum kinf__shape shape = kinf__shape_of(node, value);
    struct kinf__tree_child *items;
    struct cJSON *item;
    size_t n = 0;

    *ret_children = (struct kinf__children){ NULL, 0 };
    if (shape < KINF__SHAPE_MAP || value->child == NULL)
        return 0;
    items = calloc((size_t)cJSON_GetArraySize(value), sizeof *items);
    if (items == NULL)
        return KINF_ERR_NO_MEMORY;
    for (item = value->child; item != NULL; item = item->next) {
        items[n] = (struct kinf__tree_child){ NULL, NULL, item, n };
        *ret_children = (struct kinf__children){ items, n };
        if (fill_child(node, shape, &items[n++]) < 0) {
            kinf__children_release(ret_children);
            return KINF_ERR_NO_MEMORY;
        }
    }
    qsort(items, n, sizeof *items, compare_children);
    *ret_children = (struct kinf__children){ items, n };
    return 0;
}

void kinf__children_release(struct kinf__children *children)
{
    for (size_t i = 0; i < children->n_items; i++)
        free(children->items[i].step);
    free(children->items);
    *children = (struct kinf__children){ NULL, 0 };
}

size_t kinf__children_run(const struct kinf__children *children, size_t begin)
{
    size_t end = begin;

    while (children->items != NULL && end < children->n_items &&
           strcmp(children->items[begin].step, children->items[end].step) == 0)
        end++;
    return end;
}
