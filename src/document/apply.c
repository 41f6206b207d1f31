/*
 * Server-side apply: a config is checked against the schema, merged into what is there, and what its
 * manager has given up is pruned; then what changed is held against the fields of others.
 * Neighbours: field_set.c walks, managed.c has the entries.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "document/managed_priv.h"

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

static const struct cJSON nothing = { .type = cJSON_Object };

/* --- the config --- */

struct check {
    const struct cJSON *config;
    struct kinf__buffer path;
    struct kinf__refusal *refusal;
};

static int fail_check(struct check *check, const char *fmt, ...) KINF_PRINTF(2, 3);

/* The server has no status of its own for this one. */
static int fail_check(struct check *check, const char *fmt, ...)
{
    const char *version = kinf__doc_text(check->config, "apiVersion", NULL);
    const char *path = kinf__buffer_cstr(&check->path);
    char text[512];
    va_list args;

    if (path == NULL)
        return kinf__refuse_no_memory(check->refusal);
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return kinf__refuse(check->refusal, 500, "",
                        "failed to create typed patch object (%s/%s; %s%s, Kind=%s): %s: %s",
                        kinf__doc_text(check->config, "metadata", "namespace", NULL),
                        kinf__doc_text(check->config, "metadata", "name", NULL),
                        strchr(version, '/') == NULL ? "/" : "", version,
                        kinf__doc_text(check->config, "kind", NULL), path, text);
}

static int fail_shape(struct check *check, const char *expected, const char *before,
                      const struct cJSON *value)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    const char *got = value->valuestring;

    if (got == NULL && (kinf__doc_print(value, &text) < 0 || kinf__buffer_cstr(&text) == NULL))
        return kinf__refuse_no_memory(check->refusal);
    return fail_check(check, "expected %s, got %s%s}", expected, before,
                      got != NULL ? got : text.bytes);
}

/* An element that has no step of its own. */
static int fail_element(struct check *check, const struct kinf__schema_node *node,
                        const struct kinf__tree_child *child)
{
    KINF__AUTO_BUFFER keys = KINF__BUFFER_INIT;

    if (node->list == KINF__LIST_SET)
        return fail_check(check,
                          "element %zu: associative list without keys has an element that's %s",
                          child->place,
                          cJSON_IsObject(child->value)  ? "a map type"
                          : cJSON_IsArray(child->value) ? "a list type"
                                                        : "an explicit null");
    if (!cJSON_IsObject(child->value))
        return fail_check(check,
                          "element %zu: associative list with keys may not have non-map elements",
                          child->place);
    for (size_t i = 0; node->keys != NULL && node->keys[i] != NULL; i++) {
        if (kinf__buffer_printf(&keys, "%s\"%s\"", i != 0 ? " " : "", node->keys[i]) < 0)
            return kinf__refuse_no_memory(check->refusal);
    }
    return fail_check(check,
                      "element %zu: associative list with keys has an element that omits all key "
                      "fields [%.*s] (and doesn't have default values for any key fields)",
                      child->place, (int)keys.len, keys.bytes != NULL ? keys.bytes : "");
}

static int fail_double(struct check *check, const struct kinf__tree_child *child)
{
    KINF__AUTO_BUFFER step = KINF__BUFFER_INIT;

    if (kinf__field_step_print(child->step, &step) < 0 || kinf__buffer_cstr(&step) == NULL)
        return kinf__refuse_no_memory(check->refusal);
    return fail_check(check, "duplicate entries for key %s", step.bytes);
}

static int check_scalar(struct check *check, const struct kinf__schema_node *node,
                        const struct cJSON *value)
{
    if ((node->kind == KINF__SCHEMA_INTEGER || node->kind == KINF__SCHEMA_NUMBER) &&
        !kinf__doc_is_number(value))
        return fail_check(check, "expected numeric (int or float), got %s",
                          kinf__doc_go_type(value));
    if (node->kind == KINF__SCHEMA_BOOLEAN && !cJSON_IsBool(value))
        return fail_shape(check, "boolean", "&{", value);
    if ((node->kind == KINF__SCHEMA_STRING || node->kind == KINF__SCHEMA_TIME ||
         node->kind == KINF__SCHEMA_BYTES) &&
        !cJSON_IsString(value))
        return fail_shape(check, "string", "&value.valueUnstructured{Value:", value);
    return 0;
}

static int check_value(struct check *check, const struct kinf__schema_node *node,
                       const struct cJSON *value);

static int check_child(struct check *check, const struct kinf__schema_node *node,
                       const struct kinf__tree_child *child)
{
    size_t len = check->path.len;
    bool is_known = node->kind != KINF__SCHEMA_OBJECT || node->preserves_unknown ||
                    kinf__schema_field_of(node, child->value->string) != NULL;
    int failed;

    if (child->step[0] == 'i')
        return fail_element(check, node, child);
    if (kinf__field_step_print(child->step, &check->path) < 0)
        return kinf__refuse_no_memory(check->refusal);
    if (!is_known)
        return fail_check(check, "field not declared in schema");
    failed = check_value(check, child->node, child->value);
    check->path.len = len;
    return failed;
}

static int check_children(struct check *check, const struct kinf__schema_node *node,
                          const struct cJSON *value)
{
    KINF__AUTO_CHILDREN children = { NULL, 0 };
    int failed = 0;

    if (kinf__children_of(node, value, &children) < 0)
        return kinf__refuse_no_memory(check->refusal);
    for (size_t i = 0; failed == 0 && i < children.n_items; i++) {
        if (kinf__children_run(&children, i) != i + 1)
            return fail_double(check, &children.items[i]);
        failed = check_child(check, node, &children.items[i]);
    }
    return failed;
}

/* What is atomic is not looked into, nor what nothing is known of. */
static int check_value(struct check *check, const struct kinf__schema_node *node,
                       const struct cJSON *value)
{
    if (node == NULL || cJSON_IsNull(value))
        return 0;
    if ((node->kind == KINF__SCHEMA_OBJECT || node->kind == KINF__SCHEMA_MAP) &&
        !cJSON_IsObject(value))
        return fail_shape(check, "map", "&{", value);
    if (node->kind == KINF__SCHEMA_LIST && !cJSON_IsArray(value))
        return fail_shape(check, "list", "&{", value);
    return kinf__shape_of(node, value) >= KINF__SHAPE_MAP ? check_children(check, node, value)
                                                          : check_scalar(check, node, value);
}

static int check_config(const struct kinf__schema_node *node, const struct cJSON *config,
                        struct kinf__refusal *refusal)
{
    struct check check = { config, KINF__BUFFER_INIT, refusal };
    const struct cJSON *list = kinf__doc_find(config, "metadata", "managedFields", NULL);
    int failed;

    if (list != NULL && !cJSON_IsNull(list))
        return kinf__refuse(refusal, 400, "BadRequest", "metadata.managedFields must be nil");
    failed = check_value(&check, node, config);
    kinf__buffer_release(&check.path);
    return failed;
}

/* --- merging --- */

/* At the array's or object's end; the name comes along. */
static int append_dup(struct cJSON *to, const struct cJSON *value, struct cJSON **ret_added)
{
    *ret_added = kinf__doc_dup(value);
    if (*ret_added == NULL)
        return KINF_ERR_NO_MEMORY;
    cJSON_AddItemToArray(to, *ret_added);
    return 0;
}

static int merge(const struct kinf__schema_node *node, struct cJSON *live,
                 const struct cJSON *config);

/* Gives the value that stands there afterwards. */
static int merge_value(const struct kinf__schema_node *node, struct cJSON *parent,
                       struct cJSON *live, const struct cJSON *config, struct cJSON **ret_value)
{
    enum kinf__shape shape = kinf__shape_of(node, config);
    struct cJSON *value = live;

    if (shape >= KINF__SHAPE_MAP && kinf__shape_of(node, live) == shape) {
        *ret_value = live;
        return merge(node, live, config);
    }
    if (!kinf__doc_equal(live, config)) {
        value = kinf__doc_dup(config);
        if (value == NULL)
            return KINF_ERR_NO_MEMORY;
        cJSON_ReplaceItemViaPointer(parent, live, value);
    }
    *ret_value = value;
    return 0;
}

/* An element of a list that is merged. */
struct element {
    struct cJSON *value;
    struct element *partner; /* in the other list; NULL: none */
};

static int merge_element(struct cJSON *array, const struct kinf__children *live, size_t begin,
                         const struct kinf__tree_child *config, struct element *to)
{
    /* Of live elements with the same keys, the first one is taken, and the others go. */
    for (size_t i = begin + 1; i < kinf__children_run(live, begin); i++)
        kinf__doc_drop(array, live->items[i].value);
    return merge_value(config->node, array, live->items[begin].value, config->value, &to->value);
}

/* Fills both by place; what only the config has is at the array's end from here on. */
static int pair_elements(struct cJSON *array, const struct kinf__children *live,
                         const struct kinf__children *config, struct element *left,
                         struct element *right)
{
    size_t i = 0;
    int failed = 0;

    for (size_t j = 0; failed == 0 && j < config->n_items; j++) {
        struct element *applied = &right[config->items[j].place];

        while (i < live->n_items && strcmp(live->items[i].step, config->items[j].step) < 0)
            i++;
        if (i == live->n_items || strcmp(live->items[i].step, config->items[j].step) != 0) {
            failed = append_dup(array, config->items[j].value, &applied->value);
            continue;
        }
        applied->partner = &left[live->items[i].place];
        applied->partner->partner = applied;
        failed = merge_element(array, live, i, &config->items[j], applied);
        for (size_t k = i, end = kinf__children_run(live, i); k < end; k++)
            left[live->items[k].place].value = NULL;
        i = kinf__children_run(live, i);
    }
    return failed;
}

static void put(struct cJSON *array, struct cJSON *value)
{
    cJSON_AddItemToArray(array, cJSON_DetachItemViaPointer(array, value));
}

/* The config's order, with what only live has where it stands among the others. A live element that
 * comes too early for the config's order waits for its place there. */
static void order_elements(struct cJSON *array, const struct element *left, size_t n_left,
                           const struct element *right, size_t n_right)
{
    size_t done = 0, shared = 0;

    for (size_t i = 0; i < n_left; i++) {
        while (shared < n_right && right[shared].partner == NULL)
            shared++;
        if (left[i].partner == NULL && left[i].value != NULL)
            put(array, left[i].value);
        if (left[i].partner == NULL || left[i].partner != &right[shared])
            continue;
        for (shared++; done < shared; done++)
            put(array, right[done].value);
    }
    for (; done < n_right; done++)
        put(array, right[done].value);
}

static int merge_lists(struct cJSON *array, const struct kinf__children *live,
                       const struct kinf__children *config)
{
    KINF__AUTO_FREE struct element *left = calloc(live->n_items + 1, sizeof *left);
    KINF__AUTO_FREE struct element *right = calloc(config->n_items + 1, sizeof *right);

    if (left == NULL || right == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < live->n_items; i++)
        left[live->items[i].place].value = live->items[i].value;
    if (pair_elements(array, live, config, left, right) < 0)
        return KINF_ERR_NO_MEMORY;
    order_elements(array, left, live->n_items, right, config->n_items);
    return 0;
}

static int merge_maps(struct cJSON *object, const struct kinf__children *live,
                      const struct kinf__children *config)
{
    struct cJSON *value;
    size_t i = 0;
    int failed = 0;

    for (size_t j = 0; failed == 0 && j < config->n_items; j++) {
        const struct kinf__tree_child *child = &config->items[j];

        while (i < live->n_items && strcmp(live->items[i].step, child->step) < 0)
            i++;
        if (i < live->n_items && strcmp(live->items[i].step, child->step) == 0)
            failed = merge_value(child->node, object, live->items[i++].value, child->value, &value);
        else
            failed = append_dup(object, child->value, &value);
    }
    return failed;
}

/* Both are maps, or both are lists. */
static int merge(const struct kinf__schema_node *node, struct cJSON *live,
                 const struct cJSON *config)
{
    KINF__AUTO_CHILDREN ours = { NULL, 0 };
    KINF__AUTO_CHILDREN theirs = { NULL, 0 };

    if (kinf__children_of(node, live, &ours) < 0 || kinf__children_of(node, config, &theirs) < 0)
        return KINF_ERR_NO_MEMORY;
    if (cJSON_IsObject(config))
        return merge_maps(live, &ours, &theirs);
    return theirs.n_items != 0 ? merge_lists(live, &ours, &theirs) : 0;
}

/* What the manager had, and nobody has any more, itself included. `gone` is empty. */
static int find_gone(const struct kinf__schema_node *node, const struct kinf__field_set *last,
                     const struct kinf__entries *entries, struct kinf__field_set *gone)
{
    KINF__AUTO_FIELD_SET owned = { 0 };

    if (kinf__field_set_is_empty(last))
        return 0;
    for (size_t i = 0; i < entries->n_items; i++) {
        if (kinf__field_set_add(&owned, &entries->items[i].fields) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (kinf__field_set_add(gone, last) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__field_set_add_structs(gone, node);
    kinf__field_set_add_structs(&owned, node);
    kinf__field_set_subtract(gone, &owned);
    return 0;
}

/* --- conflicts --- */

struct conflicts {
    size_t n_conflicts;
    char who[512];             /* "\"a\" using v1" */
    struct kinf__buffer paths; /* of who, in lines */
    struct kinf__buffer message;
    struct kinf__refusal *refusal;
};

static int note_conflict(const char *path, void *ctx)
{
    struct conflicts *conflicts = ctx;
    char message[sizeof conflicts->who + 32];

    snprintf(message, sizeof message, "conflict with %s", conflicts->who);
    kinf__refusal_add_cause(conflicts->refusal, "FieldManagerConflict", path, message);
    if (conflicts->n_conflicts++ == 0 &&
        kinf__buffer_printf(&conflicts->message, "%s: %s", message, path) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(&conflicts->paths, "\n- %s", path);
}

static int note_conflicts(struct conflicts *conflicts, const struct kinf__entry *entry,
                          const struct kinf__field_set *contested)
{
    KINF__AUTO_FIELD_SET fields = { 0 };
    size_t before = conflicts->n_conflicts;

    if (kinf__field_set_add(&fields, &entry->fields) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__field_set_retain(&fields, contested);
    if (kinf__field_set_is_empty(&fields))
        return 0;
    snprintf(conflicts->who, sizeof conflicts->who, "\"%s\"%s%s%s%s%s", entry->manager,
             *entry->subresource != '\0' ? " with subresource \"" : "", entry->subresource,
             *entry->subresource != '\0' ? "\"" : "", entry->is_apply ? "" : " using ",
             entry->is_apply ? "" : entry->api_version);
    if (kinf__buffer_printf(&conflicts->paths, "%sconflicts with %s:", before != 0 ? "\n" : "",
                            conflicts->who) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__field_set_each(&fields, note_conflict, conflicts);
}

static int compare_managers(const void *a, const void *b)
{
    const struct kinf__entry *x = *(const struct kinf__entry *const *)a;
    const struct kinf__entry *y = *(const struct kinf__entry *const *)b;
    int order = strcmp(x->manager, y->manager);

    return order != 0 ? order : y->is_apply - x->is_apply;
}

static int note_all(struct conflicts *conflicts, const struct kinf__entries *entries,
                    const struct kinf__entry *own, const struct kinf__field_set *contested)
{
    KINF__AUTO_FREE const struct kinf__entry **sorted =
        calloc(entries->n_items + 1, sizeof *sorted);
    int failed = 0;

    if (sorted == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < entries->n_items; i++)
        sorted[i] = &entries->items[i];
    qsort(sorted, entries->n_items, sizeof(struct kinf__entry *), compare_managers);
    for (size_t i = 0; failed == 0 && i < entries->n_items; i++) {
        if (sorted[i] != own)
            failed = note_conflicts(conflicts, sorted[i], contested);
    }
    return failed;
}

static int refuse_conflicts(const struct kinf__entries *entries, const struct kinf__entry *own,
                            const struct kinf__field_set *contested, struct kinf__refusal *refusal)
{
    struct conflicts conflicts = { .refusal = refusal };
    struct kinf__buffer *text = &conflicts.message;
    int failed;

    kinf__refuse(refusal, 409, "Conflict", "Apply failed");
    failed = note_all(&conflicts, entries, own, contested);
    if (conflicts.n_conflicts > 1)
        text = &conflicts.paths;
    if (failed == 0 && conflicts.n_conflicts != 0) {
        snprintf(refusal->message, sizeof refusal->message,
                 "Apply failed with %zu conflict%s: %.*s", conflicts.n_conflicts,
                 conflicts.n_conflicts != 1 ? "s" : "", (int)text->len, text->bytes);
        failed = KINF_ERR_INVALID;
    }
    kinf__buffer_release(&conflicts.paths);
    kinf__buffer_release(&conflicts.message);
    return failed == KINF_ERR_NO_MEMORY ? kinf__refuse_no_memory(refusal) : failed;
}

/* --- kubectl, which applied by itself before servers could --- */

static const char *last_applied(const struct cJSON *live)
{
    return kinf__doc_text(live, "metadata", "annotations", LAST_APPLIED, NULL);
}

/* What kubectl may take from others: what it has applied, and is still as it was. */
static int allow_last_applied(const struct kinf__schema_node *node, const struct cJSON *live,
                              struct kinf__field_set *contested)
{
    KINF__AUTO_DOC *last = NULL;
    KINF__AUTO_FIELD_SET allowed = { 0 };
    KINF__AUTO_FIELD_SET changed = { 0 };
    KINF__AUTO_FIELD_SET removed = { 0 };
    int failed = kinf__doc_parse(kinf_str_from(last_applied(live)), &last, NULL);

    if (failed < 0)
        return failed == KINF_ERR_NO_MEMORY ? failed : 0;
    if (kinf__field_set_of(node, last, &allowed) < 0 ||
        kinf__field_set_compare(node, last, live, &changed, &removed) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__field_set_subtract(&allowed, &changed);
    kinf__field_set_subtract(&allowed, &removed);
    kinf__field_set_subtract(contested, &allowed);
    return 0;
}

/* So that a kubectl that applies by itself again finds what was applied last. */
static int set_last_applied(const struct cJSON *config, struct cJSON *object)
{
    KINF__AUTO_DOC *applied = kinf__doc_dup(config);
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct cJSON *annotations = kinf__doc_find(applied, "metadata", "annotations", NULL);

    if (annotations != NULL)
        kinf__doc_remove(annotations, LAST_APPLIED);
    if (applied == NULL || kinf__doc_print(applied, &text) < 0 ||
        kinf__buffer_append(&text, "\n", 1) < 0 || kinf__buffer_cstr(&text) == NULL)
        return KINF_ERR_NO_MEMORY;
    annotations = kinf__doc_object(kinf__doc_get(object, "metadata"), "annotations");
    return kinf__doc_set_text(annotations, LAST_APPLIED, text.bytes);
}

/* --- applying --- */

struct apply {
    const struct kinf__schema_node *node;
    const struct cJSON *live;
    const struct cJSON *config;
    const struct kinf__manager *manager;
    bool force;
    bool is_upgrade; /* of what kubectl applied by itself */
    struct kinf__entries entries;
    struct cJSON *object;
    struct kinf__field_set gone;
    bool is_changed;
    struct kinf__field_set changed;
    struct kinf__field_set removed;
    struct kinf__refusal *refusal;
};

static void release_apply(struct apply *apply)
{
    kinf__entries_release(&apply->entries);
    cJSON_Delete(apply->object);
    kinf__field_set_release(&apply->gone);
    kinf__field_set_release(&apply->changed);
    kinf__field_set_release(&apply->removed);
}

/* All that an object has that nobody is known to have set. */
static int claim_for_nobody(struct apply *apply)
{
    const struct kinf__manager before = { "before-first-apply", apply->manager->api_version, "",
                                          apply->manager->time };
    KINF__AUTO_FIELD_SET removed = { 0 };
    struct kinf__entry *entry = kinf__entries_get(&apply->entries, &before, false);

    if (entry == NULL ||
        kinf__field_set_compare(apply->node, &nothing, apply->live, &entry->fields, &removed) < 0)
        return KINF_ERR_NO_MEMORY;
    entry->time = apply->manager->time;
    kinf__fields_strip(&entry->fields);
    return 0;
}

static int begin(struct apply *apply)
{
    int failed = kinf__entries_read(&apply->entries, apply->live);

    if (failed == KINF_ERR_NO_MEMORY)
        return failed;
    if (apply->live != NULL && apply->entries.n_items == 0 && claim_for_nobody(apply) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__entries_forget_foreign(&apply->entries, apply->manager->api_version);
    apply->object = kinf__doc_dup(apply->live != NULL ? apply->live : &nothing);
    return apply->object != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* Makes the object, and puts the config's fields into the manager's entry: its name, too, as long as
 * it is to be seen what is above them. */
static int merge_config(struct apply *apply, struct kinf__entry *own)
{
    KINF__AUTO_FIELD_SET last = own->fields;

    own->fields = (struct kinf__field_set){ 0 };
    own->api_version = apply->manager->api_version;
    if (kinf__field_set_of(apply->node, apply->config, &own->fields) < 0 ||
        merge(apply->node, apply->object, apply->config) < 0 ||
        find_gone(apply->node, &last, &apply->entries, &apply->gone) < 0 ||
        kinf__field_set_remove_from(&apply->gone, apply->node, apply->object, false) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__fields_strip(&own->fields);
    /* An order may be all that is new. */
    apply->is_changed = !kinf__doc_equal(apply->live, apply->object);
    if (!apply->is_changed)
        return 0;
    return kinf__field_set_compare(apply->node, apply->live != NULL ? apply->live : &nothing,
                                   apply->object, &apply->changed, &apply->removed);
}

static int check_conflicts(struct apply *apply, const struct kinf__entry *own)
{
    KINF__AUTO_FIELD_SET contested = { 0 };

    if (apply->force)
        return 0;
    if (kinf__field_set_add(&contested, &apply->changed) < 0 ||
        (apply->is_upgrade && allow_last_applied(apply->node, apply->live, &contested) < 0))
        return kinf__refuse_no_memory(apply->refusal);
    return refuse_conflicts(&apply->entries, own, &contested, apply->refusal);
}

static int finish(struct apply *apply, struct kinf__entry *own)
{
    kinf__entries_subtract(&apply->entries, own, &apply->changed);
    kinf__entries_subtract(&apply->entries, own, &apply->removed);
    if (apply->is_changed)
        own->time = apply->manager->time;
    if (kinf__field_set_remove_from(&apply->gone, apply->node, apply->object, true) < 0 ||
        kinf__entries_write(&apply->entries, apply->object) < 0)
        return KINF_ERR_NO_MEMORY;
    return apply->is_upgrade ? set_last_applied(apply->config, apply->object) : 0;
}

static int run(struct apply *apply)
{
    struct kinf__entry *own = NULL;
    int failed;

    if (begin(apply) == 0)
        own = kinf__entries_get(&apply->entries, apply->manager, true);
    if (own == NULL || merge_config(apply, own) < 0)
        return kinf__refuse_no_memory(apply->refusal);
    failed = check_conflicts(apply, own);
    if (failed < 0)
        return failed;
    return finish(apply, own) < 0 ? kinf__refuse_no_memory(apply->refusal) : 0;
}

int kinf__managed_apply(const struct kinf__schema_node *node, const struct cJSON *live,
                        const struct cJSON *config, const struct kinf__manager *manager, bool force,
                        struct cJSON **ret_object, struct kinf__refusal *refusal)
{
    struct apply apply = {
        .node = node,
        .live = live,
        .config = config,
        .manager = manager,
        .force = force,
        .is_upgrade = strcmp(manager->name, "kubectl") == 0 && *last_applied(live) != '\0',
        .refusal = refusal,
    };
    int failed = check_config(node, config, refusal);

    if (failed == 0)
        failed = run(&apply);
    if (failed == 0)
        *ret_object = KINF__TAKE(apply.object);
    release_apply(&apply);
    return failed;
}
