/*
 * Definitions in force: a resource in the store for each whose names are free, with the versions
 * that it says are served; and at the end of a definition, the end of its objects. Neighbours:
 * definitions_check.c says which are valid, definitions_names.c which names are free; verbs.c has
 * them applied when they are written. What takes waiting for readers, and what takes long, is the
 * worker's.
 */
#include "apiserver/definitions_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "serve/definitions.h"
#include "apiserver/conditions.h"
#include "apiserver/meta_text.h"
#include "apiserver/verbs.h"

#define GROUP     "apiextensions.k8s.io"
#define FINALIZER "customresourcecleanup.apiextensions.k8s.io"

#define N_VERSIONS_MAX 64
#define PORTION        200 /* objects that are deleted at a time */

static struct kinf__resource *definitions_of(struct kinf__sim *sim)
{
    return kinf__store_find(kinf__sim_store(sim), GROUP, "customresourcedefinitions");
}

/* What it defines, if that is served; NULL: it is not. */
static struct kinf__resource *resource_of(struct kinf__sim *sim, const struct cJSON *definition)
{
    struct kinf__resource *resource = kinf__store_find(
        kinf__sim_store(sim), text_of(definition, "group"), name_of(definition, "plural"));

    return resource != NULL && resource->is_custom ? resource : NULL;
}

/* --- versions --- */

/* "v2beta1": how it is sorted. Others than of this form come last, by their names. */
struct rank {
    int stage; /* 2: no beta and no alpha; -1: of another form */
    long major;
    long minor;
};

static struct rank rank_of(const char *version)
{
    static const struct rank other = { -1, 0, 0 };
    struct rank rank = { 2, 0, 0 };
    char *end;

    if (version[0] != 'v' || version[1] < '1' || version[1] > '9')
        return other;
    rank.major = strtol(version + 1, &end, 10);
    if (*end == '\0')
        return rank;
    if (strncmp(end, "beta", 4) != 0 && strncmp(end, "alpha", 5) != 0)
        return other;
    rank.stage = *end == 'b';
    end += rank.stage == 1 ? 4 : 5;
    rank.minor = strtol(end, &end, 10);
    return *end == '\0' && rank.minor > 0 ? rank : other;
}

/* The preferred one first. */
static int compare_versions(const void *a, const void *b)
{
    const char *x = ((const struct kinf__new_version *)a)->name;
    const char *y = ((const struct kinf__new_version *)b)->name;
    struct rank p = rank_of(x), q = rank_of(y);

    if (p.stage != q.stage)
        return q.stage - p.stage;
    if (p.stage < 0)
        return strcmp(x, y);
    if (p.major != q.major)
        return p.major < q.major ? 1 : -1;
    return p.minor < q.minor ? 1 : p.minor > q.minor ? -1 : 0;
}

struct new_versions {
    struct kinf__new_version items[N_VERSIONS_MAX];
    size_t n_items;
};

static const char *text_or_null(const struct cJSON *object, const char *name)
{
    return cJSON_GetStringValue(kinf__doc_get(object, name));
}

static int make_version(struct kinf__sim *sim, const struct cJSON *definition,
                        const struct cJSON *version, struct kinf__new_version *made,
                        struct kinf_error *err)
{
    const struct cJSON *scale = kinf__doc_find(version, "subresources", "scale", NULL);
    int failed;

    *made = (struct kinf__new_version){
        .name = kinf__doc_text(version, "name", NULL),
        .has_status = kinf__doc_find(version, "subresources", "status", NULL) != NULL,
        .has_scale = scale != NULL,
        .scale_spec_replicas = text_or_null(scale, "specReplicasPath"),
        .scale_status_replicas = text_or_null(scale, "statusReplicasPath"),
        .scale_selector = text_or_null(scale, "labelSelectorPath"),
    };
    failed = kinf__schema_of_definition(kinf__sim_schema(sim),
                                        kinf__doc_find(version, "schema", "openAPIV3Schema", NULL),
                                        &made->own_schema, err);
    if (failed == 0)
        made->schema = kinf__schema_find(made->own_schema, text_of(definition, "group"), made->name,
                                         name_of(definition, "kind"));
    return failed;
}

static void free_versions(struct new_versions *versions)
{
    for (size_t i = 0; i < versions->n_items; i++)
        kinf__schema_free(versions->items[i].own_schema);
}

/* Those that are served; on success the schemas are for who takes the versions. */
static int make_versions(struct kinf__sim *sim, const struct cJSON *definition,
                         struct new_versions *versions, struct kinf_error *err)
{
    const struct cJSON *version;
    int failed = 0;

    versions->n_items = 0;
    cJSON_ArrayForEach(version, kinf__doc_find(definition, "spec", "versions", NULL))
    {
        if (failed < 0 || !kinf__doc_is_true(version, "served"))
            continue;
        if (versions->n_items == N_VERSIONS_MAX)
            failed = kinf__error_set(err, KINF_ERR_LIMIT, "more than %d versions", N_VERSIONS_MAX);
        else
            failed =
                make_version(sim, definition, version, &versions->items[versions->n_items], err);
        versions->n_items += failed == 0;
    }
    if (failed < 0)
        free_versions(versions);
    else
        qsort(versions->items, versions->n_items, sizeof versions->items[0], compare_versions);
    return failed;
}

static bool is_served(const struct cJSON *definition, const char *name)
{
    const struct cJSON *version;

    cJSON_ArrayForEach(version, kinf__doc_find(definition, "spec", "versions", NULL))
    {
        if (kinf__doc_is_true(version, "served") &&
            strcmp(kinf__doc_text(version, "name", NULL), name) == 0)
            return true;
    }
    return false;
}

/* Whether a version that is served now is not any more: its watches have to end first. */
static bool loses_version(const struct kinf__resource *resource, const struct cJSON *definition)
{
    for (size_t i = 0; i < resource->n_versions; i++) {
        if (!is_served(definition, resource->versions[i].type->version))
            return true;
    }
    return false;
}

/* --- serving --- */

static int append_words(const struct cJSON *words, struct kinf__buffer *out)
{
    const struct cJSON *word;

    cJSON_ArrayForEach(word, words)
    {
        if (cJSON_IsString(word) &&
            kinf__buffer_printf(out, "%s%s", out->len != 0 ? "," : "", word->valuestring) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return kinf__buffer_cstr(out) != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static char *borrow(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* What it defines, under the names that are accepted. */
struct description {
    struct kinf__resource resource; /* whose texts are borrowed */
    struct kinf__buffer short_names, categories;
};

static void description_release(struct description *description)
{
    kinf__buffer_release(&description->short_names);
    kinf__buffer_release(&description->categories);
}

static int describe(const struct cJSON *definition, struct description *description)
{
    const struct cJSON *names = kinf__doc_find(definition, "status", "acceptedNames", NULL);

    *description =
        (struct description){ .short_names = KINF__BUFFER_INIT, .categories = KINF__BUFFER_INIT };
    if (append_words(kinf__doc_get(names, "shortNames"), &description->short_names) < 0 ||
        append_words(kinf__doc_get(names, "categories"), &description->categories) < 0)
        return KINF_ERR_NO_MEMORY;
    description->resource = (struct kinf__resource){
        .group = borrow(text_of(definition, "group")),
        .name = borrow(name_of(definition, "plural")),
        .singular = borrow(kinf__doc_text(names, "singular", NULL)),
        .kind = borrow(name_of(definition, "kind")),
        .short_names = description->short_names.bytes,
        .categories = description->categories.bytes,
        .verbs = borrow(""),
        .subresources = borrow("status,scale"), /* if the version has them */
        .namespaced = strcmp(text_of(definition, "scope"), "Namespaced") == 0,
        .is_custom = true,
    };
    return 0;
}

/* Consumes the schemas of the versions. */
static int add_resource(struct kinf__sim *sim, const struct cJSON *definition,
                        struct new_versions *versions, struct kinf__resource **ret_resource,
                        struct kinf_error *err)
{
    struct description description;
    int failed = describe(definition, &description);

    if (failed == 0) {
        failed = kinf__store_add_resource(kinf__sim_store(sim), &description.resource,
                                          versions->items, versions->n_items, ret_resource, err);
    } else {
        free_versions(versions);
        failed = kinf__error_no_memory(err);
    }
    description_release(&description);
    return failed;
}

static int rename_resource(struct kinf__resource *resource, const struct cJSON *definition,
                           struct kinf_error *err)
{
    struct description description;
    int failed = describe(definition, &description);

    if (failed == 0)
        failed = kinf__resource_rename(resource, &description.resource);
    description_release(&description);
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}

/* The columns of its Tables. */
static int take_columns(struct kinf__sim *sim, const struct kinf__resource *resource,
                        const struct cJSON *definition)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    int failed = kinf__doc_print(definition, &text);

    for (size_t i = 0; failed == 0 && i < resource->n_versions; i++)
        failed = kinf__definitions_take(kinf__sim_server(sim), resource->versions[i].type,
                                        kinf__buffer_str(&text));
    return failed;
}

static int publish(struct kinf__sim *sim, const struct kinf__resource *resource,
                   const struct cJSON *definition, struct kinf_error *err)
{
    int failed = take_columns(sim, resource, definition);

    if (failed == KINF_ERR_PARSE)
        failed = 0; /* columns stay as they are */
    if (failed == 0)
        failed = kinf__resource_catalog_publish(kinf__sim_store(sim), kinf__sim_server(sim));
    if (failed == 0)
        failed = kinf__api_services_follow(sim);
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}

static int change(struct kinf__sim *sim, struct kinf__resource *resource,
                  const struct cJSON *definition, struct kinf_error *err)
{
    struct new_versions versions;
    int failed = make_versions(sim, definition, &versions, err);

    /* One that nobody can read stays what it was. */
    if (failed < 0 || versions.n_items == 0)
        return failed;
    failed = kinf__store_set_versions(kinf__sim_store(sim), resource, versions.items,
                                      versions.n_items, err);
    /* The lock was given up: it may be another one, or none. */
    resource = resource_of(sim, definition);
    if (failed < 0 || resource == NULL)
        return failed;
    failed = rename_resource(resource, definition, err);
    return failed == 0 ? publish(sim, resource, definition, err) : failed;
}

/* --- status --- */

static int replace(struct kinf__sim *sim, const char *subresource, struct cJSON *take_definition)
{
    return kinf__verb_put(sim, definitions_of(sim), subresource, "kube-apiserver", take_definition);
}

/* Whoever has changed it meanwhile has written its status, too. */
static int write_status(struct kinf__sim *sim, struct cJSON *take_definition,
                        struct kinf_error *err)
{
    return replace(sim, "status", take_definition) == KINF_ERR_NO_MEMORY
               ? kinf__error_no_memory(err)
               : 0;
}

static int serve(struct kinf__sim *sim, const struct cJSON *definition, struct kinf_error *err)
{
    struct kinf__resource *resource;
    struct new_versions versions;
    int failed = make_versions(sim, definition, &versions, err);

    if (failed < 0 || versions.n_items == 0)
        return failed;
    failed = add_resource(sim, definition, &versions, &resource, err);
    return failed == 0 ? publish(sim, resource, definition, err) : failed;
}

/* What is served becomes what the definition says. Goes on where it stopped for want of memory. */
static int establish(struct kinf__sim *sim, const struct cJSON *definition, struct kinf_error *err)
{
    struct kinf__resource *resource = resource_of(sim, definition);
    unsigned conflicts = kinf__definition_find_conflicts(sim, definition, resource);
    KINF__AUTO_DOC *accepted = kinf__doc_dup(definition);
    int failed = 0;

    if (accepted == NULL || kinf__definition_accept_names(accepted, conflicts) < 0)
        return kinf__error_no_memory(err);
    if (resource != NULL)
        failed = change(sim, resource, accepted, err);
    else if (conflicts == 0)
        failed = serve(sim, accepted, err);
    return failed == 0 ? write_status(sim, KINF__TAKE(accepted), err) : failed;
}

int kinf__definition_apply(struct kinf__sim *sim, const struct cJSON *definition,
                           struct kinf_error *err)
{
    struct kinf__resource *resource = resource_of(sim, definition);

    return resource != NULL && loses_version(resource, definition)
               ? 0
               : establish(sim, definition, err);
}

/* --- the end --- */

int kinf__definition_begin_end(struct cJSON *definition)
{
    static const struct kinf__condition pending = {
        "Terminating", "True", "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    };
    struct cJSON *metadata = kinf__doc_object(definition, "metadata");

    /* It has ended already: nothing is left that would wait. */
    if (kinf__condition_is(definition, "Terminating", "False") ||
        kinf__condition_is(definition, "Terminating", "True"))
        return 0;
    if (metadata == NULL || kinf__doc_add_text(metadata, "finalizers", FINALIZER) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__condition_set(definition, &pending) != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static int tell_progress(struct kinf__sim *sim, const struct cJSON *definition)
{
    static const struct kinf__condition in_progress = { "Terminating", "True",
                                                        "InstanceDeletionInProgress",
                                                        "CustomResource deletion is in progress" };
    KINF__AUTO_DOC *changed = kinf__doc_dup(definition);

    if (changed == NULL || kinf__condition_set(changed, &in_progress) == NULL)
        return KINF_ERR_NO_MEMORY;
    return replace(sim, "status", KINF__TAKE(changed));
}

/* Nobody waits for its objects any more: it goes, unless others hold it. */
static int let_go(struct kinf__sim *sim, const struct cJSON *definition)
{
    struct cJSON *changed = kinf__doc_dup(definition);

    if (changed == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__doc_remove_text(kinf__doc_get(changed, "metadata"), "finalizers", FINALIZER);
    return replace(sim, "", changed);
}

/* Deletes up to PORTION objects that are not being deleted yet; *ret_is_portion: there may be more.
 * Returns how many objects there were when it began, or a negative code. */
static int64_t delete_objects(struct kinf__sim *sim, struct kinf__resource *resource,
                              bool *ret_is_portion)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf__store_snapshot(resource);
    size_t n_left = PORTION;
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    kinf_cursor_all(&cursor, snapshot);
    while (n_left != 0 && (object = kinf_cursor_next(&cursor)) != NULL) {
        if (kinf__meta_text_is_going(object))
            continue;
        if (kinf__verb_delete_object(sim, resource, object, KINF__PROPAGATION_DEFAULT) ==
            KINF_ERR_NO_MEMORY)
            return KINF_ERR_NO_MEMORY;
        n_left--;
    }
    *ret_is_portion = n_left == 0;
    return (int64_t)kinf_snapshot_count(snapshot);
}

/* --- the controller --- */

/* A definition that something is to be done about. */
struct pending {
    struct kinf__list node;
    char name[KINF_NAME_MAX];
};

struct definitions {
    struct kinf__controller controller;
    struct kinf__list pending;
    bool is_incomplete; /* there was no memory to note one: look at all of them */
};

static struct definitions *self_of(struct kinf__controller *controller)
{
    return KINF__CONTAINER_OF(controller, struct definitions, controller);
}

static void note_name(struct definitions *self, const char *name)
{
    struct pending *pending;

    KINF__LIST_FOR_EACH (node, &self->pending) {
        if (strcmp(KINF__LIST_ENTRY(node, struct pending, node)->name, name) == 0)
            return;
    }
    pending = malloc(sizeof *pending);
    if (pending == NULL) {
        self->is_incomplete = true;
        return;
    }
    snprintf(pending->name, sizeof pending->name, "%s", name);
    kinf__list_push_back(&self->pending, &pending->node);
}

/* Changes of definitions, and objects that a definition waits for. */
static void note(struct kinf__controller *controller, struct kinf__resource *resource,
                 const struct kinf_object *old, const struct kinf_object *object)
{
    char name[2 * KINF_NAME_MAX];

    if (old == NULL && object == NULL) {
        self_of(controller)->is_incomplete = true;
    } else if (resource->is_going && object == NULL) {
        snprintf(name, sizeof name, "%s.%s", resource->name, resource->group);
        note_name(self_of(controller), name);
    } else if (object != NULL && strcmp(resource->group, GROUP) == 0 &&
               strcmp(resource->kind, "CustomResourceDefinition") == 0) {
        note_name(self_of(controller), kinf_object_name(object));
    }
}

static void note_all(struct definitions *self, struct kinf__sim *sim)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf__store_snapshot(definitions_of(sim));
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    self->is_incomplete = false;
    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL)
        note_name(self, kinf_object_name(object));
}

/* Its names are free now: others may have waited for them. */
static int withdraw(struct definitions *self, struct kinf__sim *sim,
                    struct kinf__resource *resource)
{
    kinf__store_remove_resource(kinf__sim_store(sim), resource);
    note_all(self, sim);
    if (kinf__resource_catalog_publish(kinf__sim_store(sim), kinf__sim_server(sim)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__api_services_follow(sim);
}

static int end(struct definitions *self, struct kinf__sim *sim, const struct cJSON *definition)
{
    struct kinf__resource *resource = resource_of(sim, definition);
    bool is_portion = false;
    int64_t n_objects;
    int failed;

    if (resource == NULL)
        return let_go(sim, definition);
    resource->is_going = true;
    n_objects = delete_objects(sim, resource, &is_portion);
    if (n_objects < 0)
        return (int)n_objects;
    if (is_portion)
        note_name(self, kinf__doc_text(definition, "metadata", "name", NULL));
    /* Each that goes is noted. */
    if (n_objects > 0)
        return tell_progress(sim, definition);
    failed = withdraw(self, sim, resource);
    return failed == 0 ? let_go(sim, definition) : failed;
}

static int follow(struct definitions *self, struct kinf__sim *sim, const struct cJSON *definition)
{
    struct kinf__resource *resource = resource_of(sim, definition);

    if (kinf__is_being_deleted(definition))
        return end(self, sim, definition);
    return !kinf__condition_is(definition, "NamesAccepted", "True") ||
                   (resource != NULL && loses_version(resource, definition))
               ? establish(sim, definition, NULL)
               : 0;
}

static int64_t work(struct kinf__controller *controller, struct kinf__sim *sim, int64_t now_ms)
{
    struct definitions *self = self_of(controller);
    KINF__AUTO_DOC *definition = NULL;
    struct pending *pending;
    int failed;

    if (self->is_incomplete)
        note_all(self, sim);
    if (kinf__list_is_empty(&self->pending))
        return self->is_incomplete ? kinf__clock_add_ms(now_ms, 1000) : KINF__NEVER_MS;
    pending = KINF__LIST_ENTRY(self->pending.next, struct pending, node);
    kinf__list_remove(&pending->node);
    failed = kinf__store_read(definitions_of(sim), "", pending->name, &definition);
    if (failed == 0)
        failed = follow(self, sim, definition);
    free(pending);
    /* What did not work for want of memory is tried again. */
    if (failed == KINF_ERR_NO_MEMORY) {
        self->is_incomplete = true;
        return kinf__clock_add_ms(now_ms, 1000);
    }
    return kinf__list_is_empty(&self->pending) ? KINF__NEVER_MS : now_ms;
}

static void free_controller(struct kinf__controller *controller)
{
    struct definitions *self = self_of(controller);

    KINF__LIST_FOR_EACH_SAFE (node, &self->pending)
        free(KINF__LIST_ENTRY(node, struct pending, node));
    free(self);
}

int kinf__definitions_new(struct kinf__controller **ret_controller, struct kinf_error *err)
{
    static const struct kinf__controller_ops ops = { note, work, free_controller };
    struct definitions *self = kinf__controller_new(sizeof *self, &ops, err);

    if (self == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__list_init(&self->pending);
    *ret_controller = &self->controller;
    return 0;
}
