/*
 * Namespaces. Neighbours: verbs.c asks before it creates, kinds_cluster.c has the rules of their
 * fields.
 *
 * One that ends is swept in portions: what is in it is deleted, which takes as long as finalizers
 * and grace periods do. A sweep that finds nothing to delete tells what is left in the conditions,
 * and when that is nothing, takes the finalizer away.
 */
#include "apiserver/namespaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "apiserver/conditions.h"
#include "apiserver/definitions.h"
#include "apiserver/meta_text.h"
#include "apiserver/refuse.h"
#include "apiserver/verbs.h"

#define FINALIZER      "kubernetes"
#define PORTION        200 /* objects that are deleted in a turn of the worker */
#define FINALIZERS_MAX 16  /* different ones that are told of */
#define WORDS_SIZE     1024

static struct kinf__resource *namespaces_of(struct kinf__sim *sim)
{
    return kinf__store_find(kinf__sim_store(sim), "", "namespaces");
}

/* --- what verbs ask --- */

static int refuse_ending(const char *name_space, const struct kinf__resource *resource,
                         const char *name, struct kinf__refusal *refusal)
{
    char why[KINF_NAME_MAX + 96];

    snprintf(why, sizeof why,
             "unable to create new content in namespace %s because it is being terminated",
             name_space);
    (void)kinf__refuse_forbidden(refusal, resource, name, why);
    snprintf(why, sizeof why, "namespace %s is being terminated", name_space);
    kinf__refusal_add_cause(refusal, "NamespaceTerminating", "metadata.namespace", why);
    return KINF_ERR_INVALID;
}

int kinf__namespace_check(struct kinf__sim *sim, const char *name_space,
                          const struct kinf__resource *resource, const char *name,
                          struct kinf__refusal *refusal)
{
    struct kinf__resource *namespaces = namespaces_of(sim);
    const struct kinf_object *object = kinf__store_get(namespaces, "", name_space);
    bool is_ending = object != NULL && kinf__meta_text_is_going(object);

    kinf_object_unref(object);
    if (object == NULL)
        return kinf__refuse_not_found(refusal, namespaces, name_space);
    return is_ending ? refuse_ending(name_space, resource, name, refusal) : 0;
}

int kinf__namespace_begin_end(struct cJSON *object)
{
    struct cJSON *status = kinf__doc_object(object, "status");

    return status != NULL ? kinf__doc_set_text(status, "phase", "Terminating") : KINF_ERR_NO_MEMORY;
}

/* --- the start --- */

static const struct {
    const char *group;
    const char *resource;
    const char *json;
} first_objects[] = {
    { "", "namespaces", "{\"metadata\":{\"name\":\"kube-system\"}}" },
    { "", "namespaces", "{\"metadata\":{\"name\":\"kube-public\"}}" },
    { "", "namespaces", "{\"metadata\":{\"name\":\"kube-node-lease\"}}" },
    { "", "namespaces", "{\"metadata\":{\"name\":\"default\"}}" },
    { "scheduling.k8s.io", "priorityclasses",
      "{\"metadata\":{\"name\":\"system-node-critical\"},\"value\":2000001000,"
      "\"description\":\"Used for system critical pods that must not be moved from their current "
      "node.\"}" },
    { "scheduling.k8s.io", "priorityclasses",
      "{\"metadata\":{\"name\":\"system-cluster-critical\"},\"value\":2000000000,"
      "\"description\":\"Used for system critical pods that must run in the cluster, but can be "
      "moved to another node if necessary.\"}" },
    { "", "services",
      "{\"metadata\":{\"name\":\"kubernetes\",\"namespace\":\"default\",\"labels\":{"
      "\"component\":\"apiserver\",\"provider\":\"kubernetes\"}},\"spec\":{\"clusterIP\":"
      "\"10.0.0.1\",\"ports\":[{\"name\":\"https\",\"port\":443,\"targetPort\":6443}]}}" },
};

/* Consumes the object; NULL: there was no memory for it. */
static int create(struct kinf__sim *sim, const char *group, const char *resource,
                  struct cJSON *take_object, struct kinf_error *err)
{
    struct kinf__verb verb = { .sim = sim,
                               .resource = kinf__store_find(kinf__sim_store(sim), group, resource),
                               .manager = "kube-apiserver" };
    int failed;

    if (take_object == NULL)
        return kinf__error_no_memory(err);
    failed = kinf__verb_create(&verb, take_object);
    if (failed < 0 && failed != KINF_ERR_NO_MEMORY)
        failed = kinf__error_set(err, KINF_ERR_CONFIG, "%s", verb.refusal.message);
    else if (failed < 0)
        failed = kinf__error_no_memory(err);
    kinf__verb_release(&verb);
    return failed;
}

int kinf__namespaces_bootstrap(struct kinf__sim *sim, struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(first_objects); i++)
        failed = create(sim, first_objects[i].group, first_objects[i].resource,
                        cJSON_Parse(first_objects[i].json), err);
    if (failed < 0)
        return failed;
    failed = kinf__api_services_follow(sim);
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}

/* --- sweeping --- */

/* Those that are still there, in words. */
struct remains {
    char resources[WORDS_SIZE]; /* "pods. has 1 resource instances" */
    struct {
        char name[KINF_NAME_MAX];
        size_t n_objects;
    } finalizers[FINALIZERS_MAX];
    size_t n_finalizers;
    size_t n_objects;
};

static void count_finalizer(struct kinf__json_value finalizer, struct remains *remains)
{
    char name[KINF_NAME_MAX];

    if (kinf_json_string(finalizer.raw, name, sizeof name) < 0)
        return;
    for (size_t i = 0; i < remains->n_finalizers; i++) {
        if (strcmp(remains->finalizers[i].name, name) == 0) {
            remains->finalizers[i].n_objects++;
            return;
        }
    }
    if (remains->n_finalizers < FINALIZERS_MAX) {
        memcpy(remains->finalizers[remains->n_finalizers].name, name, sizeof name);
        remains->finalizers[remains->n_finalizers++].n_objects = 1;
    }
}

struct sweep {
    struct kinf__sim *sim;
    struct kinf_str prefix; /* of keys */
    size_t n_deleted;       /* in this turn; at most PORTION */
    struct remains remains;
};

/* Deletes it, or counts what holds it. */
static int sweep_object(struct sweep *sweep, struct kinf__resource *resource,
                        const struct kinf_object *object)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value finalizer;
    struct kinf__meta_text meta;
    struct kinf__json_iter iter;
    struct kinf_str key;

    if (kinf__meta_text_read(object, &scratch, &meta) < 0)
        return KINF_ERR_NO_MEMORY;
    if (!meta.is_going) {
        sweep->n_deleted++;
        return kinf__verb_delete_object(sweep->sim, resource, object, KINF__PROPAGATION_BACKGROUND);
    }
    if (kinf__json_iter_init(&iter, meta.finalizers)) {
        while (kinf__json_iter_next(&iter, &key, &finalizer))
            count_finalizer(finalizer, &sweep->remains);
    }
    return 0;
}

static int sweep_resource(struct sweep *sweep, struct kinf__resource *resource)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf__store_snapshot(resource);
    size_t n_objects = 0, len = strlen(sweep->remains.resources);
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    int failed = 0;

    kinf_cursor_prefix(&cursor, snapshot, sweep->prefix);
    while (failed != KINF_ERR_NO_MEMORY && sweep->n_deleted < PORTION &&
           (object = kinf_cursor_next(&cursor)) != NULL) {
        n_objects++;
        failed = sweep_object(sweep, resource, object);
    }
    sweep->remains.n_objects += n_objects;
    if (n_objects != 0)
        snprintf(sweep->remains.resources + len, sizeof sweep->remains.resources - len,
                 "%s%s.%s has %zu resource instances", len != 0 ? ", " : "", resource->name,
                 resource->group, n_objects);
    return failed == KINF_ERR_NO_MEMORY ? failed : 0;
}

static int sweep_all(struct sweep *sweep)
{
    int failed = 0;

    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(kinf__sim_store(sweep->sim), resource)) != NULL;) {
        if (failed == 0 && sweep->n_deleted < PORTION && resource->namespaced &&
            kinf__resource_is_stored(resource))
            failed = sweep_resource(sweep, resource);
    }
    return failed;
}

/* --- what a namespace tells of its end --- */

static int set_conditions(struct cJSON *object, const struct remains *remains)
{
    char resources[WORDS_SIZE + 64], finalizers[WORDS_SIZE];
    const struct kinf__condition conditions[] = {
        { "NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered",
          "All resources successfully discovered" },
        { "NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions",
          "All legacy kube types successfully parsed" },
        { "NamespaceDeletionContentFailure", "False", "ContentDeleted",
          "All content successfully deleted, may be waiting on finalization" },
        remains->n_objects != 0
            ? (struct kinf__condition){ "NamespaceContentRemaining", "True", "SomeResourcesRemain",
                                        resources }
            : (struct kinf__condition){ "NamespaceContentRemaining", "False", "ContentRemoved",
                                        "All content successfully removed" },
        remains->n_finalizers != 0
            ? (struct kinf__condition){ "NamespaceFinalizersRemaining", "True",
                                        "SomeFinalizersRemain", finalizers }
            : (struct kinf__condition){ "NamespaceFinalizersRemaining", "False",
                                        "ContentHasNoFinalizers",
                                        "All content-preserving finalizers finished" },
    };
    int len = snprintf(finalizers, sizeof finalizers,
                       "Some content in the namespace has finalizers remaining: ");

    snprintf(resources, sizeof resources, "Some resources are remaining: %s", remains->resources);
    for (size_t i = 0; i < remains->n_finalizers && (size_t)len < sizeof finalizers; i++)
        len += snprintf(finalizers + len, sizeof finalizers - (size_t)len,
                        "%s%s in %zu resource instances", i != 0 ? ", " : "",
                        remains->finalizers[i].name, remains->finalizers[i].n_objects);
    for (size_t i = 0; i < KINF__ARRAY_LEN(conditions); i++) {
        if (kinf__condition_set(object, &conditions[i]) == NULL)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int replace(struct kinf__sim *sim, const char *subresource, struct cJSON *take_object)
{
    return kinf__verb_put(sim, namespaces_of(sim), subresource, "kube-controller-manager",
                          take_object);
}

static int tell(struct kinf__sim *sim, const struct cJSON *object, const struct remains *remains)
{
    KINF__AUTO_DOC *changed = kinf__doc_dup(object);

    if (changed == NULL || set_conditions(changed, remains) < 0)
        return KINF_ERR_NO_MEMORY;
    return replace(sim, "status", KINF__TAKE(changed));
}

/* Nothing is in it any more: it goes, unless others hold it. */
static int let_go(struct kinf__sim *sim, const char *name)
{
    struct cJSON *object;
    int failed = kinf__store_read(namespaces_of(sim), "", name, &object);

    if (failed < 0)
        return failed;
    kinf__doc_remove_text(kinf__doc_get(object, "spec"), "finalizers", FINALIZER);
    return replace(sim, "finalize", object);
}

/* --- the controller --- */

/* A namespace that ends. */
struct ending {
    struct kinf__list node;
    bool is_due;
    char name[KINF_NAME_MAX];
};

struct namespaces {
    struct kinf__controller controller;
    struct kinf__list endings;
    bool is_incomplete; /* for want of memory, or told so: look at all namespaces */
};

static struct namespaces *self_of(struct kinf__controller *controller)
{
    return KINF__CONTAINER_OF(controller, struct namespaces, controller);
}

static struct ending *find(struct namespaces *self, struct kinf_str name)
{
    KINF__LIST_FOR_EACH (node, &self->endings) {
        struct ending *ending = KINF__LIST_ENTRY(node, struct ending, node);

        if (kinf_str_equal(kinf_str_from(ending->name), name))
            return ending;
    }
    return NULL;
}

static void note_ending(struct namespaces *self, const char *name)
{
    struct ending *ending = find(self, kinf_str_from(name));

    if (ending == NULL) {
        ending = calloc(1, sizeof *ending);
        if (ending == NULL) {
            self->is_incomplete = true;
            return;
        }
        snprintf(ending->name, sizeof ending->name, "%s", name);
        kinf__list_push_back(&self->endings, &ending->node);
    }
    ending->is_due = true;
}

/* Namespaces that begin to end, and changes in such. */
static void note(struct kinf__controller *controller, struct kinf__resource *resource,
                 const struct kinf_object *old, const struct kinf_object *object)
{
    struct namespaces *self = self_of(controller);
    const struct kinf_object *any = object != NULL ? object : old;
    struct ending *ending;

    if (any == NULL) {
        self->is_incomplete = true;
    } else if (resource->namespaced) {
        ending = find(self, kinf_object_namespace(any));
        if (ending != NULL)
            ending->is_due = true;
    } else if (object != NULL && *resource->group == '\0' &&
               strcmp(resource->name, "namespaces") == 0 && kinf__meta_text_is_going(object)) {
        note_ending(self, kinf_object_name(object));
    }
}

static void note_all(struct namespaces *self, struct kinf__sim *sim)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf__store_snapshot(namespaces_of(sim));
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    self->is_incomplete = false;
    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        if (kinf__meta_text_is_going(object))
            note_ending(self, kinf_object_name(object));
    }
}

/* Sweeps it once. Whatever it deletes makes it due again. */
static int end(struct kinf__sim *sim, struct ending *ending, const struct cJSON *object)
{
    KINF__AUTO_FREE struct sweep *sweep = calloc(1, sizeof *sweep);
    char prefix[KINF_NAME_MAX + 1];
    int failed;

    if (sweep == NULL)
        return KINF_ERR_NO_MEMORY;
    snprintf(prefix, sizeof prefix, "%s/", ending->name);
    sweep->sim = sim;
    sweep->prefix = kinf_str_from(prefix);
    failed = sweep_all(sweep);
    if (failed < 0)
        return failed;
    if (sweep->n_deleted != 0) {
        ending->is_due = true;
        return 0;
    }
    failed = tell(sim, object, &sweep->remains);
    return failed == 0 && sweep->remains.n_objects == 0 ? let_go(sim, ending->name) : failed;
}

static int continue_ending(struct kinf__sim *sim, struct ending *ending)
{
    KINF__AUTO_DOC *object = NULL;
    int failed = kinf__store_read(namespaces_of(sim), "", ending->name, &object);

    ending->is_due = false;
    if (failed == KINF_ERR_NOT_FOUND || (failed == 0 && !kinf__is_being_deleted(object))) {
        kinf__list_remove(&ending->node);
        free(ending);
        return 0;
    }
    /* Others hold it: nothing is left to be done. */
    if (failed == 0 && cJSON_GetArraySize(kinf__doc_find(object, "spec", "finalizers", NULL)) == 0)
        return 0;
    if (failed == 0)
        failed = end(sim, ending, object);
    return failed;
}

static bool has_due(const struct namespaces *self)
{
    KINF__LIST_FOR_EACH (node, &self->endings) {
        if (KINF__LIST_ENTRY(node, struct ending, node)->is_due)
            return true;
    }
    return false;
}

static int64_t work(struct kinf__controller *controller, struct kinf__sim *sim, int64_t now_ms)
{
    struct namespaces *self = self_of(controller);
    int failed = 0;

    if (self->is_incomplete)
        note_all(self, sim);
    KINF__LIST_FOR_EACH_SAFE (node, &self->endings) {
        struct ending *ending = KINF__LIST_ENTRY(node, struct ending, node);

        if (ending->is_due && failed != KINF_ERR_NO_MEMORY)
            failed = continue_ending(sim, ending);
    }
    if (failed == KINF_ERR_NO_MEMORY)
        self->is_incomplete = true;
    if (self->is_incomplete)
        return kinf__clock_add_ms(now_ms, 1000);
    return has_due(self) ? now_ms : KINF__NEVER_MS;
}

static void free_controller(struct kinf__controller *controller)
{
    struct namespaces *self = self_of(controller);

    KINF__LIST_FOR_EACH_SAFE (node, &self->endings)
        free(KINF__LIST_ENTRY(node, struct ending, node));
    free(self);
}

int kinf__namespaces_new(struct kinf__controller **ret_controller, struct kinf_error *err)
{
    static const struct kinf__controller_ops ops = { note, work, free_controller };
    struct namespaces *self = kinf__controller_new(sizeof *self, &ops, err);

    if (self == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__list_init(&self->endings);
    *ret_controller = &self->controller;
    return 0;
}
