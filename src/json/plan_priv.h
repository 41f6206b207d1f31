/*
 * The trie of a prune plan, which plan.c builds and prune.c walks.
 *
 * It is deterministic: whatever [*] says about the members of a value is repeated in the node of
 * each key that is named beside it, so at every place one node says everything.
 */
#ifndef KINF_JSON_PLAN_PRIV_H
#define KINF_JSON_PLAN_PRIV_H

#include <stdatomic.h>
#include <stdint.h>

#include "json/plan.h"

/* What is done to the value at a node. */
enum {
    KINF__PLAN_DROP = 1,
    KINF__PLAN_KEEP = 2,
    KINF__PLAN_PROTECT = 4,
    KINF__PLAN_CAPTURE = 8,
};

struct kinf__plan_node {
    struct kinf_str key;            /* the node's own; empty in the root and in [*] */
    unsigned marks;                 /* of this node */
    unsigned marks_below;           /* of all nodes below, together */
    uint32_t captures;              /* slots, one bit each */
    _Atomic(bool) is_met;           /* atomic; a value that is to be dropped or kept was there */
    struct kinf__plan_node *each;   /* [*]; may be NULL */
    struct kinf__plan_node **nodes; /* keys, shorter ones first, then in the order of bytes */
    size_t n_nodes;
};

struct kinf__json_plan {
    struct kinf__plan_node root;
    size_t n_nodes;    /* without the root */
    uint32_t captures; /* slots in use */
};

/* What the plan says about the member `key` of a value at `node`: the node of the key, or of [*],
 * or NULL. `has_escapes` says whether a backslash is in the raw key, which comes with its quotes.
 */
const struct kinf__plan_node *kinf__plan_node_find(const struct kinf__plan_node *node,
                                                   struct kinf_str raw_key, bool has_escapes);

#endif
