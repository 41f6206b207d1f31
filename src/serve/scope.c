/*
 * Scope decisions. Neighbours: resource.c asks them, fields.c compares terms. They go by the texts
 * of selectors: what is within a scope without repeating its words is refused, not answered.
 */
#include "serve/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

static char *dup_or_empty(const char *text)
{
    return strdup(text != NULL ? text : "");
}

int kinf__scope_init(struct kinf__scope *scope, const char *name_space, const char *label_selector,
                     const char *field_selector, const char *shard_selector,
                     const struct kinf__prune_plan *plan)
{
    struct kinf__refusal refusal;

    *scope = (struct kinf__scope){ .name_space = dup_or_empty(name_space),
                                   .label_selector = dup_or_empty(label_selector),
                                   .field_selector = dup_or_empty(field_selector),
                                   .shard_selector = dup_or_empty(shard_selector),
                                   .plan = plan };
    if (scope->name_space != NULL && scope->label_selector != NULL &&
        scope->field_selector != NULL && scope->shard_selector != NULL &&
        kinf__fields_parse(scope->field_selector, &scope->fields, &refusal) != KINF_ERR_NO_MEMORY)
        return 0;
    kinf__scope_release(scope);
    return KINF_ERR_NO_MEMORY;
}

void kinf__scope_release(struct kinf__scope *scope)
{
    free(scope->name_space);
    free(scope->label_selector);
    free(scope->field_selector);
    free(scope->shard_selector);
    kinf__fields_free(scope->fields);
    *scope = (struct kinf__scope){ 0 };
}

bool kinf__scope_covers_namespace(const struct kinf__scope *scope, const char *name_space)
{
    return *scope->name_space == '\0' || strcmp(scope->name_space, name_space) == 0;
}

/* Whether every label requirement of the scope stands in the request, word for word. */
static bool covers_labels(const struct kinf__scope *scope, const char *selector)
{
    size_t len = strlen(scope->label_selector);

    return len == 0 || (strncmp(selector, scope->label_selector, len) == 0 &&
                        (selector[len] == '\0' || selector[len] == ','));
}

/* A whole cache answers for a shard as a server does that knows no shards: with everything. */
static bool covers_shard(const struct kinf__scope *scope, const char *selector)
{
    return *scope->shard_selector == '\0' || strcmp(scope->shard_selector, selector) == 0;
}

bool kinf__scope_covers_selection(const struct kinf__scope *scope,
                                  const struct kinf__list_options *options)
{
    return covers_labels(scope, options->label_selector) &&
           covers_shard(scope, options->shard_selector) && scope->fields != NULL &&
           kinf__fields_within(options->fields, scope->fields);
}

bool kinf__scope_is_selective(const struct kinf__scope *scope)
{
    return *scope->label_selector != '\0' || *scope->field_selector != '\0' ||
           *scope->shard_selector != '\0';
}

const char *kinf__scope_apply(const struct kinf__scope *scope, struct kinf__fields *fields)
{
    if (scope->fields != NULL)
        kinf__fields_assume(fields, scope->fields);
    return scope->plan != NULL ? kinf__fields_find_lost(fields, scope->plan) : NULL;
}

void kinf__scope_words(const struct kinf__scope *scope, char *buf, size_t size)
{
    const char *const selectors[] = { scope->label_selector, scope->field_selector,
                                      scope->shard_selector };
    const char *joint = " with ";
    int len = 0;

    *buf = '\0';
    if (*scope->name_space != '\0')
        len = snprintf(buf, size, " in the namespace %s", scope->name_space);
    else if (!kinf__scope_is_selective(scope))
        len = snprintf(buf, size, " of all namespaces");
    for (size_t i = 0; i < KINF__ARRAY_LEN(selectors) && (size_t)len < size; i++) {
        if (*selectors[i] == '\0')
            continue;
        len += snprintf(buf + len, size - (size_t)len, "%s%s", joint, selectors[i]);
        joint = " and ";
    }
}
