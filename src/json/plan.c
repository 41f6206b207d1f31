/*
 * Building prune plans. Neighbours: prune.c, which applies them. Invariant: the trie is
 * deterministic (see plan_priv.h), and a node without marks changes nothing; so a path is added by
 * first growing its nodes, which may fail, and then marking them, which cannot.
 */
#include "json/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/plan_priv.h"

/* Repeating [*] under keys multiplies nodes; no plan that somebody wrote by hand comes near. */
#define MAX_NODES 65536

static int compare_keys(struct kinf_str a, struct kinf_str b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return a.len != 0 ? memcmp(a.bytes, b.bytes, a.len) : 0;
}

/* The place of `key` among the nodes, or where it belongs. */
static size_t lower_bound(const struct kinf__plan_node *node, struct kinf_str key)
{
    size_t low = 0, high = node->n_nodes;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_keys(node->nodes[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct kinf__plan_node *find_exact(const struct kinf__plan_node *node, struct kinf_str key)
{
    size_t place = lower_bound(node, key);

    if (place < node->n_nodes && compare_keys(node->nodes[place]->key, key) == 0)
        return node->nodes[place];
    return NULL;
}

static void node_free(struct kinf__json_plan *plan, struct kinf__plan_node *node)
{
    if (node == NULL)
        return;
    for (size_t i = 0; i < node->n_nodes; i++)
        node_free(plan, node->nodes[i]);
    node_free(plan, node->each);
    free(node->nodes);
    free(node);
    plan->n_nodes--;
}

static int node_new(struct kinf__json_plan *plan, struct kinf_str key,
                    struct kinf__plan_node **ret_node)
{
    struct kinf__plan_node *node;

    if (plan->n_nodes >= MAX_NODES)
        return KINF_ERR_LIMIT;
    node = malloc(sizeof *node + key.len);
    if (node == NULL)
        return KINF_ERR_NO_MEMORY;
    *node = (struct kinf__plan_node){ .key = { (char *)(node + 1), key.len } };
    if (key.len > 0)
        memcpy(node + 1, key.bytes, key.len);
    plan->n_nodes++;
    *ret_node = node;
    return 0;
}

/* Puts `child` at `place` among the nodes of `node`. */
static int insert_node(struct kinf__plan_node *node, size_t place, struct kinf__plan_node *child)
{
    struct kinf__plan_node **nodes =
        realloc(node->nodes, (node->n_nodes + 1) * sizeof *node->nodes);

    if (nodes == NULL)
        return KINF_ERR_NO_MEMORY;
    memmove(nodes + place + 1, nodes + place, (node->n_nodes - place) * sizeof *nodes);
    nodes[place] = child;
    node->nodes = nodes;
    node->n_nodes++;
    return 0;
}

/* A node under a key of its own that says what `source` says, which may be NULL. `source` stems
 * from a
 * [*] and therefore captures nothing. */
static int node_dup(struct kinf__json_plan *plan, struct kinf_str key,
                    const struct kinf__plan_node *source, struct kinf__plan_node **ret_node)
{
    struct kinf__plan_node *node, *child;
    int status = node_new(plan, key, &node);

    if (status < 0)
        return status;
    if (source != NULL) {
        node->marks = source->marks;
        node->marks_below = source->marks_below;
        if (source->each != NULL)
            status = node_dup(plan, KINF_STR(""), source->each, &node->each);
        for (size_t i = 0; status == 0 && i < source->n_nodes; i++) {
            status = node_dup(plan, source->nodes[i]->key, source->nodes[i], &child);
            if (status == 0 && (status = insert_node(node, i, child)) < 0)
                node_free(plan, child); /* no memory */
        }
    }
    if (status < 0)
        node_free(plan, node);
    else
        *ret_node = node;
    return status;
}

/* The node of `key`, made if there is none. */
static int grow_key(struct kinf__json_plan *plan, struct kinf__plan_node *node, struct kinf_str key,
                    struct kinf__plan_node **ret_child)
{
    struct kinf__plan_node *child = find_exact(node, key);
    int status = 0;

    if (child == NULL) {
        status = node_dup(plan, key, node->each, &child);
        if (status == 0 && (status = insert_node(node, lower_bound(node, key), child)) < 0)
            node_free(plan, child);
    }
    if (status == 0)
        *ret_child = child;
    return status;
}

/* Makes the nodes that `path` needs below `node` from its step `at` on. */
static int grow(struct kinf__json_plan *plan, struct kinf__plan_node *node,
                const struct kinf_path *path, size_t at)
{
    struct kinf__plan_node *child = NULL;
    int status = 0;

    if (at == path->n_steps)
        return 0;
    if (path->steps[at].type == KINF__PATH_KEY) {
        status = grow_key(plan, node, path->steps[at].key, &child);
        return status < 0 ? status : grow(plan, child, path, at + 1);
    }
    if (node->each == NULL)
        status = node_new(plan, KINF_STR(""), &node->each);
    if (status == 0)
        status = grow(plan, node->each, path, at + 1);
    for (size_t i = 0; status == 0 && i < node->n_nodes; i++)
        status = grow(plan, node->nodes[i], path, at + 1);
    return status;
}

/* Marks the nodes at the end of `path`; they are all there. */
static void mark(struct kinf__plan_node *node, const struct kinf_path *path, size_t at,
                 unsigned marks, uint32_t captures)
{
    if (at == path->n_steps) {
        node->marks |= marks;
        node->captures |= captures;
        return;
    }
    node->marks_below |= marks;
    if (path->steps[at].type == KINF__PATH_KEY) {
        mark(find_exact(node, path->steps[at].key), path, at + 1, marks, captures);
        return;
    }
    mark(node->each, path, at + 1, marks, captures);
    for (size_t i = 0; i < node->n_nodes; i++)
        mark(node->nodes[i], path, at + 1, marks, captures);
}

static int refuse(const struct kinf_path *path, int code, struct kinf_error *err)
{
    switch (code) {
    case KINF_ERR_NO_MEMORY:
        return kinf__error_no_memory(err);
    case KINF_ERR_LIMIT:
        return kinf__error_set(err, KINF_ERR_LIMIT,
                               "path \"%.200s\": too many [*] in all the paths", path->text);
    default:
        return kinf__error_set(
            err, KINF_ERR_INVALID,
            "path \"%.200s\": elements have no stable places, only [*] is allowed", path->text);
    }
}

static int add(struct kinf__json_plan *plan, const struct kinf_path *path, unsigned marks,
               uint32_t captures, struct kinf_error *err)
{
    int status;

    for (size_t i = 0; i < path->n_steps; i++) {
        if (path->steps[i].type == KINF__PATH_INDEX)
            return refuse(path, KINF_ERR_INVALID, err);
    }
    status = grow(plan, &plan->root, path, 0);
    if (status < 0)
        return refuse(path, status, err);
    mark(&plan->root, path, 0, marks, captures);
    return 0;
}

/* Whether `node`, which may be NULL, says whatever `each` says. A path that could not be added may
 * have left nodes in one and not in the other, which say nothing or what the [*] beside them says.
 */
static bool covers(const struct kinf__plan_node *node, const struct kinf__plan_node *each)
{
    const struct kinf__plan_node *found;

    if (each == NULL || (each->marks | each->marks_below) == 0)
        return true;
    if (node == NULL || (each->marks & ~node->marks) != 0 || !covers(node->each, each->each))
        return false;
    for (size_t i = 0; i < each->n_nodes; i++) {
        found = find_exact(node, each->nodes[i]->key);
        if (!covers(found != NULL ? found : node->each, each->nodes[i]))
            return false;
    }
    return true;
}

static bool check_order(const struct kinf__plan_node *node)
{
    for (size_t i = 1; i < node->n_nodes; i++) {
        if (compare_keys(node->nodes[i - 1]->key, node->nodes[i]->key) >= 0)
            return false;
    }
    return true;
}

static bool check_node(const struct kinf__plan_node *node, size_t depth, size_t *n_nodes)
{
    unsigned below = 0;

    if (depth > KINF_PATH_MAX_STEPS || !check_order(node) ||
        ((node->marks & KINF__PLAN_CAPTURE) != 0) != (node->captures != 0))
        return false;
    for (size_t i = 0; i < node->n_nodes; i++) {
        const struct kinf__plan_node *child = node->nodes[i];

        if (!check_node(child, depth + 1, n_nodes) || !covers(child, node->each))
            return false;
        below |= child->marks | child->marks_below;
    }
    if (node->each != NULL) {
        if (!check_node(node->each, depth + 1, n_nodes) ||
            ((node->each->marks | node->each->marks_below) & KINF__PLAN_CAPTURE) != 0)
            return false;
        below |= node->each->marks | node->each->marks_below;
    }
    ++*n_nodes;
    return below == node->marks_below;
}

const struct kinf__plan_node *kinf__plan_node_find(const struct kinf__plan_node *node,
                                                   struct kinf_str raw_key, bool has_escapes)
{
    const struct kinf__plan_node *found = NULL;

    if (!has_escapes) {
        found = find_exact(node, (struct kinf_str){ raw_key.bytes + 1, raw_key.len - 2 });
    } else {
        for (size_t i = 0; found == NULL && i < node->n_nodes; i++) {
            if (kinf__json_string_equals(raw_key, node->nodes[i]->key))
                found = node->nodes[i];
        }
    }
    return found != NULL ? found : node->each;
}

int kinf__json_plan_new(struct kinf__json_plan **ret_plan, struct kinf_error *err)
{
    struct kinf__json_plan *plan = calloc(1, sizeof *plan);

    if (plan == NULL)
        return kinf__error_no_memory(err);
    *ret_plan = plan;
    return 0;
}

void kinf__json_plan_free(struct kinf__json_plan *plan)
{
    if (plan == NULL)
        return;
    for (size_t i = 0; i < plan->root.n_nodes; i++)
        node_free(plan, plan->root.nodes[i]);
    node_free(plan, plan->root.each);
    free(plan->root.nodes);
    free(plan);
}

int kinf__json_plan_drop(struct kinf__json_plan *plan, const struct kinf_path *path,
                         struct kinf_error *err)
{
    return add(plan, path, KINF__PLAN_DROP, 0, err);
}

int kinf__json_plan_keep(struct kinf__json_plan *plan, const struct kinf_path *path,
                         struct kinf_error *err)
{
    return add(plan, path, KINF__PLAN_KEEP, 0, err);
}

int kinf__json_plan_protect(struct kinf__json_plan *plan, const struct kinf_path *path,
                            struct kinf_error *err)
{
    return add(plan, path, KINF__PLAN_PROTECT, 0, err);
}

int kinf__json_plan_capture(struct kinf__json_plan *plan, const struct kinf_path *path,
                            unsigned slot, struct kinf_error *err)
{
    const uint32_t bit = slot < KINF__JSON_MAX_CAPTURES ? UINT32_C(1) << slot : 0;
    int status;

    if (bit == 0 || (plan->captures & bit) != 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "path \"%.200s\": slot %u is not free",
                               path->text, slot);
    for (size_t i = 0; i < path->n_steps; i++) {
        if (path->steps[i].type != KINF__PATH_KEY)
            return kinf__error_set(err, KINF_ERR_INVALID,
                                   "path \"%.200s\": names more than one value", path->text);
    }
    status = add(plan, path, KINF__PLAN_CAPTURE, bit, err);
    if (status == 0)
        plan->captures |= bit;
    return status;
}

bool kinf__json_plan_check(const struct kinf__json_plan *plan)
{
    size_t n_nodes = 0;

    return plan->root.marks == 0 && check_node(&plan->root, 0, &n_nodes) &&
           n_nodes == plan->n_nodes + 1;
}
