/*
 * What is below a value, in the order of its steps. A step is what fieldsV1 writes: f:name (a member),
 * k:{"name":"x"} (an element of a list, by its keys), v:"x" (an element of a set), i:0 (one that has
 * no keys).
 *
 * The schema says what is taken apart: an atomic map or list, and a scalar, is a leaf; where nothing is
 * known, objects are taken apart and lists are not. `node` may be NULL everywhere.
 *
 * Threads: any thread, while nobody changes the tree.
 */
#ifndef KINF_DOCUMENT_CHILDREN_H
#define KINF_DOCUMENT_CHILDREN_H

#include "document/schema.h"
#include "document/tree.h"

/* Whether it is a member's. */
bool kinf__step_is_name(const char *step);
/* What is there, seen from above; NULL: nothing is known. */
const struct kinf__schema_node *kinf__step_node(const struct kinf__schema_node *node,
                                                const char *step);

enum kinf__shape {
    KINF__SHAPE_NONE, /* NULL, or null */
    KINF__SHAPE_LEAF,
    KINF__SHAPE_MAP,
    KINF__SHAPE_LIST,
};

enum kinf__shape kinf__shape_of(const struct kinf__schema_node *node, const struct cJSON *value);

struct kinf__tree_child {
    char *step;
    const struct kinf__schema_node *node;
    struct cJSON *value;
    size_t place; /* in the object or array */
};

/* Sorted by step, equal ones by place; a leaf has none. */
struct kinf__children {
    struct kinf__tree_child *items;
    size_t n_items;
};

KINF_MUST_CHECK int kinf__children_of(const struct kinf__schema_node *node,
                                      const struct cJSON *value,
                                      struct kinf__children *ret_children);
void kinf__children_release(struct kinf__children *children);
#define KINF__AUTO_CHILDREN KINF__CLEANUP(kinf__children_release) struct kinf__children

/* The end of the run of equal steps that begins at `begin`. */
size_t kinf__children_run(const struct kinf__children *children, size_t begin);

#endif
