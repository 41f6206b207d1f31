/*
 * Sets of fields, as metadata.managedFields has them, and where they come from: one object, or what
 * is different between two. A set is a tree of the steps of its paths, sorted at each level; the
 * schema says what the steps are, and what is one field (children.h). `node` may be NULL everywhere.
 * Fallible functions return KINF_ERR_NO_MEMORY, with the sets as they were or in between.
 *
 * Threads: one thread per set.
 */
#ifndef KINF_DOCUMENT_FIELD_SET_H
#define KINF_DOCUMENT_FIELD_SET_H

#include "document/children.h"

/* All zero is the empty set. */
struct kinf__field_set {
    struct kinf__set_field *fields;
    size_t n_fields;
    size_t size;
};

struct kinf__set_field {
    char *step;
    bool is_member; /* the path up to here, and not only what is below it */
    struct kinf__field_set below;
};

void kinf__field_set_release(struct kinf__field_set *set);
#define KINF__AUTO_FIELD_SET KINF__CLEANUP(kinf__field_set_release) struct kinf__field_set

static inline bool kinf__field_set_is_empty(const struct kinf__field_set *set)
{
    return set->n_fields == 0;
}

/* Of a fieldsV1; steps that nobody knows are left out. `set` is empty. */
KINF_MUST_CHECK int kinf__field_set_read(const struct cJSON *fields, struct kinf__field_set *set);
KINF_MUST_CHECK int kinf__field_set_write(const struct kinf__field_set *set,
                                          struct cJSON **ret_fields);
/* Calls for each member with its path: .spec.ports[port=80,protocol="TCP"].name */
typedef int kinf__field_path_cb(const char *path, void *ctx);
KINF_MUST_CHECK int kinf__field_set_each(const struct kinf__field_set *set, kinf__field_path_cb *cb,
                                         void *ctx);
/* Appends a step as paths have it. */
KINF_MUST_CHECK int kinf__field_step_print(const char *step, struct kinf__buffer *path);

KINF_MUST_CHECK int kinf__field_set_add(struct kinf__field_set *set,
                                        const struct kinf__field_set *other);
void kinf__field_set_subtract(struct kinf__field_set *set, const struct kinf__field_set *other);
/* Leaves what `other` has, too. */
void kinf__field_set_retain(struct kinf__field_set *set, const struct kinf__field_set *other);
/* Makes members of the structs' fields that are above members: who has spec.replicas has spec. Not
 * of maps and lists, which are there for themselves. */
void kinf__field_set_add_structs(struct kinf__field_set *set, const struct kinf__schema_node *node);

/* What an object says. `set` is empty. */
KINF_MUST_CHECK int kinf__field_set_of(const struct kinf__schema_node *node,
                                       const struct cJSON *tree, struct kinf__field_set *set);
/* What is new or has another value, and what is gone; both are empty before. */
KINF_MUST_CHECK int kinf__field_set_compare(const struct kinf__schema_node *node,
                                            const struct cJSON *old, const struct cJSON *tree,
                                            struct kinf__field_set *changed,
                                            struct kinf__field_set *removed);
/* Removes from a tree; maps and lists that become empty are still there, until another call `drops`
 * them, but where a custom resource has them. */
KINF_MUST_CHECK int kinf__field_set_remove_from(const struct kinf__field_set *set,
                                                const struct kinf__schema_node *node,
                                                struct cJSON *tree, bool drops);

#endif
