/*
 * Nodes by text: the members of an object, or the elements of a list by what tells them apart. cJSON
 * walks for each of them, and bodies have room for a hundred thousand.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_DOCUMENT_NODE_INDEX_H
#define KINF_DOCUMENT_NODE_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include <kinformer/api.h>

#include "base/hmap.h"

/* All zero is an empty one. */
struct kinf__node_index {
    struct kinf__hmap map;
};

struct kinf__node_index_entry {
    struct kinf__hmap_node in_map;
    struct cJSON *node; /* the owner's; may be changed, also to NULL */
    size_t rank;
    char key[];
};

/* NULL: none. */
struct kinf__node_index_entry *kinf__node_index_find(const struct kinf__node_index *index,
                                                     const char *key);
/* The key is copied; what has it already stays. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__node_index_add(struct kinf__node_index *index, const char *key,
                                         struct cJSON *node, size_t rank);
void kinf__node_index_release(struct kinf__node_index *index);
#define KINF__AUTO_NODE_INDEX KINF__CLEANUP(kinf__node_index_release) struct kinf__node_index

/* An object that is changed by nobody else in the meantime. */
struct kinf__node_members {
    struct cJSON *object;
    bool is_indexed;
    struct kinf__node_index index;
};

/* `n_lookups`: how many are to come; a few walk. Of doubled members the first one counts. On failure
 * there is nothing to release. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__node_members_init(struct kinf__node_members *members,
                                            struct cJSON *object, size_t n_lookups);
struct cJSON *kinf__node_members_get(const struct kinf__node_members *members, const char *name);
/* What is there gives way, in its place. Consumes `take_value`, also on failure; `name` may be its
 * own. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__node_members_set(struct kinf__node_members *members, const char *name,
                                           struct cJSON *take_value);
void kinf__node_members_remove(struct kinf__node_members *members, const char *name);
/* Takes it out for the caller. NULL: there is none. */
struct cJSON *kinf__node_members_take(struct kinf__node_members *members, const char *name);
void kinf__node_members_release(struct kinf__node_members *members);
#define KINF__AUTO_NODE_MEMBERS KINF__CLEANUP(kinf__node_members_release) struct kinf__node_members

/* The same for one member that is known: puts the value in the place of `old`, or (NULL) behind the
 * last. */
KINF_MUST_CHECK int kinf__node_put_member(struct cJSON *object, struct cJSON *old, const char *name,
                                          struct cJSON *take_value);

#endif
