/*
 * Sets of fields, and the walks over one or two trees that make them. All of them go through levels
 * that are sorted, side by side, so that no step is searched for. Neighbours: managed.c and apply.c
 * say whose fields they are.
 */
#include "document/field_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* --- sets --- */

static void release_field(struct kinf__set_field *field)
{
    free(field->step);
    kinf__field_set_release(&field->below);
}

void kinf__field_set_release(struct kinf__field_set *set)
{
    for (size_t i = 0; i < set->n_fields; i++)
        release_field(&set->fields[i]);
    free(set->fields);
    *set = (struct kinf__field_set){ 0 };
}

/* Appends; the caller sees to the order. Consumes `below`, also on failure. What has nothing in it
 * is left out. */
static int push(struct kinf__field_set *set, const char *step, struct kinf__set_field *field)
{
    size_t size = set->size != 0 ? 2 * set->size : 4;
    struct kinf__set_field *fields = set->fields;

    if (!field->is_member && kinf__field_set_is_empty(&field->below))
        return 0;
    field->step = strdup(step);
    if (field->step != NULL && set->n_fields == set->size) {
        fields = reallocarray(set->fields, size, sizeof *fields);
        if (fields != NULL) {
            set->fields = fields;
            set->size = size;
        }
    }
    if (field->step == NULL || fields == NULL) {
        release_field(field);
        return KINF_ERR_NO_MEMORY;
    }
    fields[set->n_fields++] = *field;
    return 0;
}

static int append_dup(const struct kinf__set_field *from, struct kinf__set_field *to, size_t *n)
{
    struct kinf__set_field field = { strdup(from->step), from->is_member, { 0 } };

    if (field.step == NULL || kinf__field_set_add(&field.below, &from->below) < 0) {
        release_field(&field);
        return KINF_ERR_NO_MEMORY;
    }
    to[(*n)++] = field;
    return 0;
}

/* Of a field that is there, to one that may not be. */
static int order_at(const struct kinf__field_set *a, size_t i, const struct kinf__field_set *b,
                    size_t j)
{
    return j < b->n_fields ? strcmp(a->fields[i].step, b->fields[j].step) : -1;
}

/* Out of memory, what the set had is still in it. */
int kinf__field_set_add(struct kinf__field_set *set, const struct kinf__field_set *other)
{
    size_t n = 0, j = 0, size = set->n_fields + other->n_fields;
    struct kinf__set_field *fields;
    int failed = 0;

    if (kinf__field_set_is_empty(other))
        return 0;
    fields = calloc(size, sizeof *fields);
    if (fields == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < set->n_fields; i++) {
        for (; order_at(set, i, other, j) > 0; j++)
            failed |= append_dup(&other->fields[j], fields, &n);
        fields[n] = set->fields[i];
        if (order_at(set, i, other, j) == 0) {
            fields[n].is_member |= other->fields[j].is_member;
            failed |= kinf__field_set_add(&fields[n].below, &other->fields[j++].below);
        }
        n++;
    }
    for (; j < other->n_fields; j++)
        failed |= append_dup(&other->fields[j], fields, &n);
    free(set->fields);
    *set = (struct kinf__field_set){ fields, n, size };
    return failed;
}

static void narrow(struct kinf__field_set *set, const struct kinf__field_set *other, bool retains)
{
    static const struct kinf__set_field nothing;
    size_t n = 0, j = 0;

    for (size_t i = 0; i < set->n_fields; i++) {
        struct kinf__set_field *field = &set->fields[i];
        const struct kinf__set_field *with = &nothing;

        while (order_at(set, i, other, j) > 0)
            j++;
        if (order_at(set, i, other, j) == 0)
            with = &other->fields[j];
        field->is_member = field->is_member && with->is_member == retains;
        narrow(&field->below, &with->below, retains);
        if (field->is_member || !kinf__field_set_is_empty(&field->below))
            set->fields[n++] = *field;
        else
            release_field(field);
    }
    set->n_fields = n;
}

void kinf__field_set_subtract(struct kinf__field_set *set, const struct kinf__field_set *other)
{
    if (!kinf__field_set_is_empty(other))
        narrow(set, other, false);
}

void kinf__field_set_retain(struct kinf__field_set *set, const struct kinf__field_set *other)
{
    narrow(set, other, true);
}

void kinf__field_set_add_structs(struct kinf__field_set *set, const struct kinf__schema_node *node)
{
    for (size_t i = 0; i < set->n_fields; i++) {
        struct kinf__set_field *field = &set->fields[i];

        if (kinf__step_is_name(field->step) && kinf__schema_field_of(node, field->step + 2) != NULL)
            field->is_member = true;
        kinf__field_set_add_structs(&field->below, kinf__step_node(node, field->step));
    }
}

/* --- as text --- */

static int compare_fields(const void *a, const void *b)
{
    return strcmp(((const struct kinf__set_field *)a)->step,
                  ((const struct kinf__set_field *)b)->step);
}

static void sort_fields(struct kinf__field_set *set)
{
    size_t n = 0;

    if (set->n_fields != 0)
        qsort(set->fields, set->n_fields, sizeof *set->fields, compare_fields);
    for (size_t i = 0; i < set->n_fields; i++) {
        if (n != 0 && strcmp(set->fields[n - 1].step, set->fields[i].step) == 0)
            release_field(&set->fields[i]);
        else
            set->fields[n++] = set->fields[i];
    }
    set->n_fields = n;
}

static int read_field(const struct cJSON *item, struct kinf__field_set *set)
{
    const char *step = item->string;
    struct kinf__set_field field = { NULL,
                                     item->child == NULL || kinf__doc_get(item, ".") != NULL,
                                     { 0 } };
    int failed;

    if (step[0] == '\0' || step[1] != ':' || strchr("fkvi", step[0]) == NULL)
        return 0;
    failed = kinf__field_set_read(item, &field.below);
    return failed | push(set, step, &field);
}

int kinf__field_set_read(const struct cJSON *fields, struct kinf__field_set *set)
{
    const struct cJSON *item;
    int failed = 0;

    if (!cJSON_IsObject(fields))
        return 0;
    for (item = fields->child; failed == 0 && item != NULL; item = item->next)
        failed = read_field(item, set);
    sort_fields(set);
    return failed;
}

static int write_fields(const struct kinf__field_set *set, struct cJSON *to);

static int write_field(const struct kinf__set_field *field, struct cJSON *to)
{
    struct cJSON *below = cJSON_CreateObject();

    if (kinf__doc_append_member(to, field->step, below) < 0)
        return KINF_ERR_NO_MEMORY;
    if (field->is_member && !kinf__field_set_is_empty(&field->below) &&
        kinf__doc_append_member(below, ".", cJSON_CreateObject()) < 0)
        return KINF_ERR_NO_MEMORY;
    return write_fields(&field->below, below);
}

static int write_fields(const struct kinf__field_set *set, struct cJSON *to)
{
    for (size_t i = 0; i < set->n_fields; i++) {
        if (write_field(&set->fields[i], to) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

int kinf__field_set_write(const struct kinf__field_set *set, struct cJSON **ret_fields)
{
    KINF__AUTO_DOC *fields = cJSON_CreateObject();

    if (fields == NULL || write_fields(set, fields) < 0)
        return KINF_ERR_NO_MEMORY;
    *ret_fields = KINF__TAKE(fields);
    return 0;
}

static int print_keys(const char *keys, struct kinf__buffer *path)
{
    KINF__AUTO_DOC *tree = NULL;
    const struct cJSON *key;
    const char *before = "[";

    int failed = kinf__doc_parse(kinf_str_from(keys), &tree, NULL);

    if (failed == KINF_ERR_NO_MEMORY)
        return failed;
    /* Clients may have written anything. */
    if (!cJSON_IsObject(tree) || tree->child == NULL)
        return kinf__buffer_printf(path, "[%s]", keys);
    cJSON_ArrayForEach(key, tree)
    {
        if (kinf__buffer_printf(path, "%s%s=", before, key->string) < 0 ||
            kinf__doc_print(key, path) < 0)
            return KINF_ERR_NO_MEMORY;
        before = ",";
    }
    return kinf__buffer_append(path, "]", 1);
}

int kinf__field_step_print(const char *step, struct kinf__buffer *path)
{
    if (step[0] == 'k')
        return print_keys(step + 2, path);
    if (step[0] == 'f')
        return kinf__buffer_printf(path, ".%s", step + 2);
    return kinf__buffer_printf(path, step[0] == 'v' ? "[=%s]" : "[%s]", step + 2);
}

static int each(const struct kinf__field_set *set, struct kinf__buffer *path,
                kinf__field_path_cb *cb, void *ctx)
{
    size_t len = path->len;
    const char *text;
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < set->n_fields; i++) {
        failed = kinf__field_step_print(set->fields[i].step, path);
        text = failed == 0 ? kinf__buffer_cstr(path) : NULL;
        if (text == NULL)
            return KINF_ERR_NO_MEMORY;
        if (set->fields[i].is_member)
            failed = cb(text, ctx);
        if (failed == 0)
            failed = each(&set->fields[i].below, path, cb, ctx);
        path->len = len;
    }
    return failed;
}

int kinf__field_set_each(const struct kinf__field_set *set, kinf__field_path_cb *cb, void *ctx)
{
    KINF__AUTO_BUFFER path = KINF__BUFFER_INIT;

    return each(set, &path, cb, ctx);
}

/* --- walks --- */

/* A struct's field needs no mention if there is something below it. */
static bool counts_itself(const struct kinf__schema_node *node,
                          const struct kinf__tree_child *child)
{
    return !kinf__step_is_name(child->step) ||
           kinf__schema_field_of(node, child->step + 2) == NULL ||
           (cJSON_IsObject(child->value) && child->value->child == NULL);
}

static int fill(const struct kinf__schema_node *node, const struct cJSON *value,
                struct kinf__set_field *field)
{
    KINF__AUTO_CHILDREN children = { NULL, 0 };

    if (kinf__children_of(node, value, &children) < 0)
        return KINF_ERR_NO_MEMORY;
    field->is_member = kinf__shape_of(node, value) < KINF__SHAPE_MAP;
    for (size_t i = 0; i < children.n_items; i++) {
        struct kinf__tree_child *child = &children.items[i];
        struct kinf__set_field below = { 0 };
        int failed = fill(child->node, child->value, &below);

        below.is_member |= counts_itself(node, child);
        failed |= push(&field->below, child->step, &below);
        if (failed < 0)
            return failed;
    }
    return 0;
}

int kinf__field_set_of(const struct kinf__schema_node *node, const struct cJSON *tree,
                       struct kinf__field_set *set)
{
    struct kinf__set_field root = { 0 };
    int failed = fill(node, tree, &root);

    *set = root.below;
    return failed;
}

/* What has changed at one path and below, and what is gone. */
struct difference {
    struct kinf__set_field changed;
    struct kinf__set_field removed;
};

static bool has_nothing_below(const struct cJSON *value, enum kinf__shape shape)
{
    return shape == KINF__SHAPE_NONE || (shape >= KINF__SHAPE_MAP && value->child == NULL);
}

static void compare_leaves(const struct cJSON *left, const struct cJSON *right,
                           struct difference *difference)
{
    difference->removed.is_member = right == NULL;
    difference->changed.is_member = right != NULL && !kinf__doc_equal(left, right);
}

/* Go has a pointer for these, and the server makes what it points to. */
static bool is_pointer(const char *name)
{
    return strcmp(name, "securityContext") == 0 ||
           strcmp(name, "persistentVolumeClaimRetentionPolicy") == 0;
}

/* Go has structs, and some lists, where JSON has no member: they neither come nor go. */
static const struct cJSON *value_of_absent(const struct kinf__schema_node *node,
                                           const struct cJSON *parent, const char *step)
{
    static const struct cJSON empty = { .type = cJSON_Object }, null = { .type = cJSON_NULL };
    const struct kinf__schema_field *field = NULL;

    if (cJSON_IsObject(parent) && kinf__step_is_name(step) && node != NULL && node->rules == NULL)
        field = kinf__schema_field_of(node, step + 2);
    if (field == NULL || field->node == NULL || is_pointer(field->name))
        return NULL;
    if (cJSON_IsObject(field->fallback) && field->fallback->child == NULL)
        return &empty;
    return field->is_required && field->node->kind == KINF__SCHEMA_LIST ? &null : NULL;
}

/* Two levels side by side, and how far they have been compared. */
struct levels {
    const struct kinf__schema_node *node;
    const struct cJSON *parents[2];
    struct kinf__children children[2];
    size_t at[2];
};

/* The next step that one of them has, and where its run ends in each; NULL at the end. */
static const struct kinf__tree_child *next_run(const struct levels *levels, size_t ends[2])
{
    const struct kinf__tree_child *next[2] = { NULL, NULL };
    int order;

    for (int i = 0; i < 2; i++) {
        if (levels->at[i] < levels->children[i].n_items)
            next[i] = &levels->children[i].items[levels->at[i]];
        ends[i] = levels->at[i];
    }
    if (next[0] == NULL || next[1] == NULL)
        order = (next[0] == NULL) - (next[1] == NULL);
    else
        order = strcmp(next[0]->step, next[1]->step);
    if (order <= 0)
        ends[0] = kinf__children_run(&levels->children[0], levels->at[0]);
    if (order >= 0)
        ends[1] = kinf__children_run(&levels->children[1], levels->at[1]);
    return order <= 0 ? next[0] : next[1];
}

/* Elements with the same keys, which no type forbids for certain, are one field together. */
static void compare_runs(const struct levels *levels, const size_t ends[2],
                         struct difference *difference)
{
    size_t n = ends[0] - levels->at[0];
    bool is_same = n == ends[1] - levels->at[1];

    for (size_t i = 0; is_same && i < n; i++)
        is_same = kinf__doc_equal(levels->children[0].items[levels->at[0] + i].value,
                                  levels->children[1].items[levels->at[1] + i].value);
    difference->removed.is_member = ends[1] == levels->at[1];
    difference->changed.is_member = ends[1] != levels->at[1] && !is_same;
}

static int compare(const struct kinf__schema_node *node, const struct cJSON *left,
                   const struct cJSON *right, struct difference *difference);

static int compare_next(const struct levels *levels, const struct kinf__tree_child *child,
                        const size_t ends[2], struct difference *difference)
{
    const struct cJSON *values[2];

    if (ends[0] - levels->at[0] > 1 || ends[1] - levels->at[1] > 1) {
        compare_runs(levels, ends, difference);
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        if (ends[i] != levels->at[i])
            values[i] = levels->children[i].items[levels->at[i]].value;
        else
            values[i] = value_of_absent(levels->node, levels->parents[i], child->step);
    }
    return compare(child->node, values[0], values[1], difference);
}

static int compare_levels(struct levels *levels, struct difference *difference)
{
    const struct kinf__tree_child *child;
    size_t ends[2];

    while ((child = next_run(levels, ends)) != NULL) {
        struct difference below = { 0 };
        int failed = compare_next(levels, child, ends, &below);

        failed |= push(&difference->changed.below, child->step, &below.changed);
        failed |= push(&difference->removed.below, child->step, &below.removed);
        if (failed < 0)
            return failed;
        levels->at[0] = ends[0];
        levels->at[1] = ends[1];
    }
    return 0;
}

static int compare(const struct kinf__schema_node *node, const struct cJSON *left,
                   const struct cJSON *right, struct difference *difference)
{
    enum kinf__shape a = kinf__shape_of(node, left), b = kinf__shape_of(node, right);
    struct levels levels = { .node = node, .parents = { left, right } };
    int failed = 0;

    if ((a < KINF__SHAPE_MAP && b < KINF__SHAPE_MAP) ||
        (has_nothing_below(left, a) && has_nothing_below(right, b))) {
        compare_leaves(left, right, difference);
        return 0;
    }
    difference->changed.is_member =
        left == NULL || (a != KINF__SHAPE_NONE && b != KINF__SHAPE_NONE && a != b);
    difference->removed.is_member = right == NULL;
    for (int i = 0; failed == 0 && i < 2; i++)
        failed = kinf__children_of(node, levels.parents[i], &levels.children[i]);
    if (failed == 0)
        failed = compare_levels(&levels, difference);
    kinf__children_release(&levels.children[0]);
    kinf__children_release(&levels.children[1]);
    return failed;
}

int kinf__field_set_compare(const struct kinf__schema_node *node, const struct cJSON *old,
                            const struct cJSON *tree, struct kinf__field_set *changed,
                            struct kinf__field_set *removed)
{
    struct difference difference = { 0 };
    int failed = compare(node, old, tree, &difference);

    *changed = difference.changed.below;
    *removed = difference.removed.below;
    return failed;
}

/* Drops what was empty before: what is above it stays. */
static int remove_child(const struct kinf__set_field *field, const struct kinf__tree_child *child,
                        struct cJSON *tree, bool drops)
{
    bool is_empty =
        kinf__shape_of(child->node, child->value) >= KINF__SHAPE_MAP && child->value->child == NULL;
    bool is_builtin = child->node != NULL && child->node->rules == NULL;

    if (field->is_member || (drops && is_empty && is_builtin)) {
        kinf__doc_drop(tree, child->value);
        return 0;
    }
    return kinf__field_set_remove_from(&field->below, child->node, child->value, drops);
}

int kinf__field_set_remove_from(const struct kinf__field_set *set,
                                const struct kinf__schema_node *node, struct cJSON *tree,
                                bool drops)
{
    KINF__AUTO_CHILDREN children = { NULL, 0 };
    size_t j = 0;

    if (kinf__field_set_is_empty(set))
        return 0;
    if (kinf__children_of(node, tree, &children) < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < children.n_items; i++) {
        const struct kinf__tree_child *child = &children.items[i];

        while (j < set->n_fields && strcmp(set->fields[j].step, child->step) < 0)
            j++;
        if (j < set->n_fields && strcmp(set->fields[j].step, child->step) == 0 &&
            remove_child(&set->fields[j], child, tree, drops) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}
