/*
 * The table of resource types. It only grows: objects point into it for as long as they live.
 */
#include <kinformer/type.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/misuse.h"
#include "object/object.h"

struct entry {
    struct kinf_type type;
    struct entry *next;
    char text[]; /* the strings of the type */
};

static struct kinf__mutex table_lock = KINF__MUTEX_INIT(KINF__RANK_TYPES);
static struct entry *table KINF__GUARDED_BY(table_lock);

/* These go into JSON text and URLs as they are. */
static bool is_name(const char *text)
{
    if (text == NULL || *text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~' || strchr("\"\\/%?#", *text) != NULL)
            return false;
    }
    return true;
}

static const char *put(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *start = memcpy(*at, text, size);

    *at += size;
    return start;
}

static struct entry *make_entry(const struct kinf_type *wanted)
{
    size_t size = strlen(wanted->group) + strlen(wanted->version) + strlen(wanted->kind) +
                  strlen(wanted->resource) + 4;
    struct entry *entry = malloc(sizeof *entry + size);
    char *at;

    if (entry == NULL)
        return NULL;
    at = entry->text;
    entry->type.group = put(&at, wanted->group);
    entry->type.version = put(&at, wanted->version);
    entry->type.kind = put(&at, wanted->kind);
    entry->type.resource = put(&at, wanted->resource);
    entry->type.namespaced = wanted->namespaced;
    return entry;
}

static bool equal(const struct kinf_type *a, const struct kinf_type *b)
{
    return strcmp(a->group, b->group) == 0 && strcmp(a->version, b->version) == 0 &&
           strcmp(a->kind, b->kind) == 0 && strcmp(a->resource, b->resource) == 0 &&
           a->namespaced == b->namespaced;
}

static struct entry *find_or_add_locked(const struct kinf_type *wanted) KINF__REQUIRES(table_lock)
{
    struct entry *entry = table;

    while (entry != NULL && !equal(&entry->type, wanted))
        entry = entry->next;
    if (entry != NULL)
        return entry;
    entry = make_entry(wanted);
    if (entry != NULL) {
        entry->next = table;
        table = entry;
    }
    return entry;
}

int kinf_type_intern(const char *group, const char *version, const char *kind, const char *resource,
                     bool namespaced, const struct kinf_type **ret_type, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, group, version, kind, resource, ret_type);

    struct kinf_type wanted = { group, version, kind, resource, namespaced };
    struct entry *entry;

    if (!is_name(version) || !is_name(kind) || !is_name(resource) || group == NULL ||
        (*group != '\0' && !is_name(group)))
        return kinf__error_set(
            err, KINF_ERR_INVALID,
            "a resource type needs a version, a kind and a resource of printable ASCII "
            "without blanks, quotes, '/' and '\\'");
    kinf__mutex_lock(&table_lock);
    entry = find_or_add_locked(&wanted);
    kinf__mutex_unlock(&table_lock);
    if (entry == NULL)
        return kinf__error_no_memory(err);
    *ret_type = &entry->type;
    return 0;
}

void kinf__type_api_version(const struct kinf_type *type, char text[KINF__API_VERSION_SIZE])
{
    snprintf(text, KINF__API_VERSION_SIZE, "%s%s%s", type->group, *type->group != '\0' ? "/" : "",
             type->version);
}
