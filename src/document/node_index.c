/*
 * Nodes by text. Neighbours: tree.c compares large objects with it, patch.c and strategic.c merge
 * them.
 */
#include "document/node_index.h"

#include <stdlib.h>
#include <string.h>

#include <kinformer/error.h>

/* So many walks are cheaper than an index. */
#define N_WALKS 8

/* --- index --- */

struct kinf__node_index_entry *kinf__node_index_find(const struct kinf__node_index *index,
                                                     const char *key)
{
    struct kinf__hmap_node *node =
        kinf__hmap_first_with_hash(&index->map, kinf__hash(kinf_str_from(key)));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__node_index_entry *entry =
            KINF__CONTAINER_OF(node, struct kinf__node_index_entry, in_map);

        if (strcmp(entry->key, key) == 0)
            return entry;
    }
    return NULL;
}

int kinf__node_index_add(struct kinf__node_index *index, const char *key, struct cJSON *node,
                         size_t rank)
{
    size_t size = strlen(key) + 1;
    struct kinf__node_index_entry *entry;

    if (kinf__node_index_find(index, key) != NULL)
        return 0;
    entry = malloc(sizeof *entry + size);
    if (entry == NULL)
        return KINF_ERR_NO_MEMORY;
    entry->node = node;
    entry->rank = rank;
    memcpy(entry->key, key, size);
    if (kinf__hmap_insert(&index->map, &entry->in_map, kinf__hash(kinf_str_from(key))) < 0) {
        free(entry);
        return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

void kinf__node_index_release(struct kinf__node_index *index)
{
    for (size_t i = 0; i < index->map.n_buckets; i++) {
        for (struct kinf__hmap_node *node = index->map.buckets[i], *next; node != NULL;
             node = next) {
            next = node->next;
            free(KINF__CONTAINER_OF(node, struct kinf__node_index_entry, in_map));
        }
    }
    kinf__hmap_release(&index->map);
}

/* --- members --- */

static int index_members(struct kinf__node_members *members)
{
    const struct cJSON *object = members->object;
    int failed = 0;

    for (struct cJSON *member = object->child; failed == 0 && member != NULL; member = member->next)
        failed = kinf__node_index_add(&members->index, member->string, member, 0);
    return failed;
}

int kinf__node_members_init(struct kinf__node_members *members, struct cJSON *object,
                            size_t n_lookups)
{
    int failed;

    *members = (struct kinf__node_members){ .object = object, .is_indexed = n_lookups > N_WALKS };
    failed = members->is_indexed ? index_members(members) : 0;
    if (failed < 0)
        kinf__node_members_release(members);
    return failed;
}

struct cJSON *kinf__node_members_get(const struct kinf__node_members *members, const char *name)
{
    const struct kinf__node_index_entry *entry;

    if (!members->is_indexed)
        return cJSON_GetObjectItemCaseSensitive(members->object, name);
    entry = kinf__node_index_find(&members->index, name);
    return entry != NULL ? entry->node : NULL;
}

static int name_node(struct cJSON *node, const char *name)
{
    char *copy;

    if (node->string != NULL && strcmp(node->string, name) == 0)
        return 0;
    copy = strdup(name);
    if (copy == NULL)
        return KINF_ERR_NO_MEMORY;
    if ((node->type & cJSON_StringIsConst) == 0)
        cJSON_free(node->string);
    node->string = copy;
    node->type &= ~cJSON_StringIsConst;
    return 0;
}

/* cJSON's own ReplaceItemInObject does not see that there was no memory for the name. */
int kinf__node_put_member(struct cJSON *object, struct cJSON *old, const char *name,
                          struct cJSON *take_value)
{
    if (object == NULL || take_value == NULL || name_node(take_value, name) < 0) {
        cJSON_Delete(take_value);
        return KINF_ERR_NO_MEMORY;
    }
    if (old != NULL)
        cJSON_ReplaceItemViaPointer(object, old, take_value);
    else
        cJSON_AddItemToArray(object, take_value);
    return 0;
}

int kinf__node_members_set(struct kinf__node_members *members, const char *name,
                           struct cJSON *take_value)
{
    struct cJSON *old = kinf__node_members_get(members, name);

    if (members->is_indexed && kinf__node_index_add(&members->index, name, NULL, 0) < 0) {
        cJSON_Delete(take_value);
        return KINF_ERR_NO_MEMORY;
    }
    if (kinf__node_put_member(members->object, old, name, take_value) < 0)
        return KINF_ERR_NO_MEMORY;
    if (members->is_indexed)
        kinf__node_index_find(&members->index, take_value->string)->node = take_value;
    return 0;
}

struct cJSON *kinf__node_members_take(struct kinf__node_members *members, const char *name)
{
    struct cJSON *old = kinf__node_members_get(members, name);

    if (old != NULL && members->is_indexed)
        kinf__node_index_find(&members->index, name)->node = NULL;
    return cJSON_DetachItemViaPointer(members->object, old);
}

void kinf__node_members_remove(struct kinf__node_members *members, const char *name)
{
    cJSON_Delete(kinf__node_members_take(members, name));
}

void kinf__node_members_release(struct kinf__node_members *members)
{
    kinf__node_index_release(&members->index);
}
