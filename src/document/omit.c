/*
 * Objects as Go prints them. Neighbours: schema_prune.c has removed what is not known, verbs.c calls.
 */
#include "document/omit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/quantity.h"

static bool is_omitted(const struct kinf__schema_field *field, const struct cJSON *value)
{
    return !field->is_required && value->child == NULL &&
           ((field->node->kind == KINF__SCHEMA_LIST && cJSON_IsArray(value)) ||
            (field->node->kind == KINF__SCHEMA_MAP && cJSON_IsObject(value)));
}

/* "1024Mi" becomes "1Gi". */
static int write_quantity(struct cJSON *value)
{
    char text[KINF__QUANTITY_SIZE], canonical[KINF__QUANTITY_SIZE], *copy;
    size_t size;

    if (cJSON_IsString(value))
        snprintf(text, sizeof text, "%s", value->valuestring);
    else if (cJSON_IsNumber(value))
        snprintf(text, sizeof text, "%.15g", value->valuedouble);
    else
        return 0;
    if (!kinf__quantity_write(text, canonical))
        return 0;
    size = strlen(canonical) + 1;
    copy = malloc(size);
    if (copy == NULL)
        return KINF_ERR_NO_MEMORY;
    memcpy(copy, canonical, size);
    free(value->valuestring);
    value->valuestring = copy;
    value->type = cJSON_String;
    return 0;
}

static bool is_null_text(const struct kinf__schema_node *node, const struct cJSON *value)
{
    return cJSON_IsNull(value) && node->kind == KINF__SCHEMA_STRING;
}

static int omit(const struct kinf__schema_node *node, struct cJSON *tree);

static int omit_from_fields(const struct kinf__schema_node *node, struct cJSON *object)
{
    struct cJSON *member, *next;
    int failed = 0;

    for (member = object->child; failed == 0 && member != NULL; member = next) {
        const struct kinf__schema_field *field = kinf__schema_field_of(node, member->string);

        next = member->next;
        if (field != NULL && is_omitted(field, member))
            cJSON_Delete(cJSON_DetachItemViaPointer(object, member));
        else if (field != NULL)
            failed = omit(field->node, member);
    }
    return failed;
}

static int omit_from_elements(const struct kinf__schema_node *node, struct cJSON *container)
{
    struct cJSON *element, *next, *text;
    int failed = 0;

    for (element = container->child; failed == 0 && element != NULL; element = next) {
        next = element->next;
        if (!is_null_text(node->element, element)) {
            failed = omit(node->element, element);
            continue;
        }
        text = cJSON_CreateString("");
        if (text == NULL)
            return KINF_ERR_NO_MEMORY;
        text->string = element->string;
        element->string = NULL;
        cJSON_ReplaceItemViaPointer(container, element, text);
    }
    return failed;
}

/* The depth is bounded by the parser's. */
static int omit(const struct kinf__schema_node *node, struct cJSON *tree)
{
    if (node == NULL)
        return 0;
    if (node->kind == KINF__SCHEMA_QUANTITY)
        return write_quantity(tree);
    if (node->kind == KINF__SCHEMA_OBJECT && cJSON_IsObject(tree))
        return omit_from_fields(node, tree);
    if ((node->kind == KINF__SCHEMA_MAP && cJSON_IsObject(tree)) ||
        (node->kind == KINF__SCHEMA_LIST && cJSON_IsArray(tree)))
        return omit_from_elements(node, tree);
    return 0;
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

static int show(const struct kinf__schema_node *node, struct cJSON *tree)
{
    bool is_object = node != NULL && node->kind == KINF__SCHEMA_OBJECT && cJSON_IsObject(tree);
    struct cJSON *child;
    int failed = 0;

    if (node == NULL)
        return 0;
    for (size_t i = 0; failed == 0 && is_object && i < node->n_fields; i++) {
        if (is_shown(&node->fields[i], kinf__doc_get(tree, node->fields[i].name)))
            failed = kinf__doc_set(tree, node->fields[i].name, cJSON_CreateNull());
    }
    for (child = tree->child; failed == 0 && child != NULL; child = child->next)
        failed = show(child->string != NULL             ? kinf__schema_member(node, child->string)
                      : node->kind == KINF__SCHEMA_LIST ? node->element
                                                        : NULL,
                      child);
    return failed;
}

int kinf__show_lists(const struct kinf__schema_node *node, struct cJSON *object)
{
    return node != NULL && node->rules == NULL ? show(node, object) : 0;
}
