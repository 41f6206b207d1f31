/*
 * The garbage collector. Neighbours: verbs.c, which it writes by, and whose deletions begin here.
 *
 * It keeps who depends on whom, by the uids of owners, from what it is told of each change; and a
 * queue of objects to look at: new ones with owners, those that a deletion waits for, and those that
 * are left when an owner is gone. Looking is idempotent, so that nothing is lost by looking twice.
 */
#include "apiserver/owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hmap.h"

#define ORPHAN     "orphan"
#define FOREGROUND "foregroundDeletion"

#define PORTION 100 /* objects that are looked at, one turn of the worker */

/* That an object has an owner. */
struct edge {
    struct kinf__hmap_node node; /* by the owner's uid */
    struct dependent *dependent;
    struct edge *next; /* of the same dependent */
    bool blocks;       /* the owner's deletion in the foreground */
    char owner[];      /* uid */
};

/* An object that has owners. */
struct dependent {
    struct kinf__hmap_node node; /* by its own uid */
    struct kinf__resource *resource;
    const struct kinf_object *object;
    struct edge *edges;
};

struct task {
    struct kinf__list node;
    struct kinf__resource *resource;
    const struct kinf_object *object;
    bool is_gone;  /* it was removed, or has other owners than it had: look around it */
    bool is_first; /* its deletion has just begun */
};

struct owners {
    struct kinf__controller controller;
    struct kinf_path *references; /* metadata.ownerReferences[*] */
    struct kinf_path *deletion;   /* metadata.deletionTimestamp */
    struct kinf__hmap edges;
    struct kinf__hmap dependents;
    struct kinf__list tasks;
    bool is_incomplete; /* for want of memory: all is to be read again */
};

static struct owners *self_of(struct kinf__controller *controller)
{
    return KINF__CONTAINER_OF(controller, struct owners, controller);
}

static uint64_t hash_of(const char *uid)
{
    return kinf__hash(kinf_str_from(uid));
}

/* --- who depends on whom --- */

/* The first edge to this owner from `node` on, which is of its hash; NULL: none. */
static struct edge *edge_from(struct kinf__hmap_node *node, const char *uid)
{
    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct edge *edge = KINF__CONTAINER_OF(node, struct edge, node);

        if (strcmp(edge->owner, uid) == 0)
            return edge;
    }
    return NULL;
}

static struct edge *first_edge(const struct owners *self, const char *uid)
{
    return edge_from(kinf__hmap_first_with_hash(&self->edges, hash_of(uid)), uid);
}

static struct edge *next_edge(struct edge *edge)
{
    return edge_from(kinf__hmap_next_with_hash(&edge->node), edge->owner);
}

static struct dependent *find_dependent(const struct owners *self, const char *uid)
{
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(&self->dependents, hash_of(uid));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct dependent *dependent = KINF__CONTAINER_OF(node, struct dependent, node);

        if (strcmp(kinf_object_uid(dependent->object), uid) == 0)
            return dependent;
    }
    return NULL;
}

static void free_dependent(struct owners *self, struct dependent *dependent)
{
    struct edge *next;

    for (struct edge *edge = dependent->edges; edge != NULL; edge = next) {
        next = edge->next;
        kinf__hmap_remove(&self->edges, &edge->node);
        free(edge);
    }
    kinf_object_unref(dependent->object);
    free(dependent);
}

static void drop_dependent(struct owners *self, struct dependent *dependent)
{
    kinf__hmap_remove(&self->dependents, &dependent->node);
    free_dependent(self, dependent);
}

struct collecting {
    struct owners *self;
    struct dependent *dependent;
};

static int add_edge(struct kinf_str json, void *ctx)
{
    struct collecting *collecting = ctx;
    KINF__AUTO_DOC *reference = NULL;
    const char *uid;
    struct edge *edge;

    if (kinf__doc_parse(json, &reference, NULL) < 0)
        return KINF_ERR_NO_MEMORY;
    uid = kinf__doc_text(reference, "uid", NULL);
    edge = malloc(sizeof *edge + strlen(uid) + 1);
    if (edge == NULL)
        return KINF_ERR_NO_MEMORY;
    strcpy(edge->owner, uid);
    edge->dependent = collecting->dependent;
    edge->blocks = cJSON_IsTrue(kinf__doc_get(reference, "blockOwnerDeletion"));
    if (kinf__hmap_insert(&collecting->self->edges, &edge->node, hash_of(uid)) < 0) {
        free(edge);
        return KINF_ERR_NO_MEMORY;
    }
    edge->next = collecting->dependent->edges;
    collecting->dependent->edges = edge;
    return 0;
}

static int stop_at_first(struct kinf_str json, void *ctx)
{
    (void)json;
    (void)ctx;
    return 1;
}

static bool has_value(const struct kinf_object *object, const struct kinf_path *path)
{
    return object != NULL && kinf_object_each(object, path, stop_at_first, NULL) == 1;
}

static int add_dependent(struct owners *self, struct kinf__resource *resource,
                         const struct kinf_object *object)
{
    struct dependent *dependent = calloc(1, sizeof *dependent);
    struct collecting collecting = { self, dependent };

    if (dependent == NULL)
        return KINF_ERR_NO_MEMORY;
    dependent->resource = resource;
    dependent->object = kinf_object_ref(object);
    if (kinf_object_each(object, self->references, add_edge, &collecting) < 0 ||
        kinf__hmap_insert(&self->dependents, &dependent->node, hash_of(kinf_object_uid(object))) <
            0) {
        free_dependent(self, dependent);
        return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* --- the queue --- */

static void add_task(struct owners *self, struct task task)
{
    struct task *copy = malloc(sizeof *copy);

    if (copy == NULL) {
        self->is_incomplete = true;
        return;
    }
    *copy = task;
    kinf_object_ref(task.object);
    kinf__list_push_back(&self->tasks, &copy->node);
}

static void free_task(struct task *task)
{
    kinf__list_remove(&task->node);
    kinf_object_unref(task->object);
    free(task);
}

static uint64_t hash_references(const struct owners *self, const struct kinf_object *object);

static void note_references(struct owners *self, struct kinf__resource *resource,
                            const struct kinf_object *old, const struct kinf_object *object)
{
    uint64_t before = old != NULL ? hash_references(self, old) : 0;
    uint64_t after = object != NULL ? hash_references(self, object) : 0;
    struct dependent *dependent = before != 0 ? find_dependent(self, kinf_object_uid(old)) : NULL;

    if (before == after && dependent != NULL) {
        kinf_object_unref(dependent->object);
        dependent->object = kinf_object_ref(object);
        return;
    }
    if (dependent != NULL)
        drop_dependent(self, dependent);
    if (after != 0 && add_dependent(self, resource, object) < 0)
        self->is_incomplete = true;
    if (after != 0 && after != before)
        add_task(self, (struct task){ .resource = resource, .object = object });
    /* Owners may wait for it no longer. */
    if (before != 0 && after != before)
        add_task(self, (struct task){ .resource = resource, .object = old, .is_gone = true });
}

static void note(struct kinf__controller *controller, struct kinf__resource *resource,
                 const struct kinf_object *old, const struct kinf_object *object)
{
    struct owners *self = self_of(controller);
    bool is_going = has_value(object, self->deletion);

    if (old == NULL && object == NULL) {
        self->is_incomplete = true;
        return;
    }
    note_references(self, resource, old, object);
    if (is_going)
        add_task(self, (struct task){ .resource = resource,
                                      .object = object,
                                      .is_first = !has_value(old, self->deletion) });
    if (object == NULL && first_edge(self, kinf_object_uid(old)) != NULL)
        add_task(self, (struct task){ .resource = resource, .object = old, .is_gone = true });
}

static int mix(struct kinf_str json, void *ctx)
{
    uint64_t *hash = ctx;

    *hash = (*hash ^ kinf__hash(json)) * 0x9e3779b97f4a7c15 | 1;
    return 0;
}

/* 0: it has no owners. */
static uint64_t hash_references(const struct owners *self, const struct kinf_object *object)
{
    uint64_t hash = 0;

    return kinf_object_each(object, self->references, mix, &hash) == 0 ? hash : 1;
}

/* --- reading --- */

static bool is_resource(struct kinf__sim *sim, const struct kinf__resource *resource)
{
    KINF__LIST_FOR_EACH (node, kinf__store_resources(kinf__sim_store(sim))) {
        if (KINF__LIST_ENTRY(node, struct kinf__resource, node) == resource)
            return true;
    }
    return false;
}

struct place {
    char name_space[KINF_NAME_MAX];
};

static struct place place_of(const struct kinf_object *object)
{
    struct kinf_str name_space = kinf_object_namespace(object);
    struct place place;

    snprintf(place.name_space, sizeof place.name_space, "%.*s", (int)name_space.len,
             name_space.bytes);
    return place;
}

/* The object as it is now. Errors: KINF_ERR_NOT_FOUND (it is another one), KINF_ERR_NO_MEMORY. */
static int read_now(struct kinf__sim *sim, struct kinf__resource *resource,
                    const struct kinf_object *object, struct cJSON **ret_now)
{
    struct place place = place_of(object);
    struct cJSON *now;
    int failed = is_resource(sim, resource) ? 0 : KINF_ERR_NOT_FOUND;

    if (failed == 0)
        failed = kinf__store_read(resource, place.name_space, kinf_object_name(object), &now);
    if (failed < 0)
        return failed;
    if (strcmp(kinf__doc_text(now, "metadata", "uid", NULL), kinf_object_uid(object)) != 0) {
        cJSON_Delete(now);
        return KINF_ERR_NOT_FOUND;
    }
    *ret_now = now;
    return 0;
}

static bool has_finalizer(const struct cJSON *object, const char *name)
{
    const struct cJSON *finalizer;

    cJSON_ArrayForEach(finalizer, kinf__doc_find(object, "metadata", "finalizers", NULL))
    {
        if (cJSON_IsString(finalizer) && strcmp(finalizer->valuestring, name) == 0)
            return true;
    }
    return false;
}

static bool is_going(const struct cJSON *object)
{
    return *kinf__doc_text(object, "metadata", "deletionTimestamp", NULL) != '\0';
}

static struct kinf__resource *find_kind(struct kinf__sim *sim, const struct cJSON *reference)
{
    const char *api_version = kinf__doc_text(reference, "apiVersion", NULL);
    const char *slash = strchr(api_version, '/');
    char group[KINF_NAME_MAX] = "";

    if (slash != NULL)
        snprintf(group, sizeof group, "%.*s", (int)(slash - api_version), api_version);
    return kinf__store_find_kind(kinf__sim_store(sim), group,
                                 kinf__doc_text(reference, "kind", NULL));
}

enum owner_state {
    OWNER_SOLID,    /* there, or nobody can tell */
    OWNER_DANGLING, /* not there */
    OWNER_WAITING,  /* being deleted, when its dependents are */
};

/* *ret_owner: with a reference for the caller, or NULL. */
static enum owner_state look_up(struct kinf__sim *sim, const char *name_space,
                                const struct cJSON *reference, struct kinf__resource **ret_resource,
                                const struct kinf_object **ret_owner)
{
    struct kinf__resource *resource = find_kind(sim, reference);
    const struct kinf_object *owner;

    *ret_resource = resource;
    *ret_owner = NULL;
    if (resource == NULL || !kinf__resource_is_stored(resource) ||
        (resource->namespaced && *name_space == '\0'))
        return OWNER_SOLID;
    owner = kinf__store_get(resource, resource->namespaced ? name_space : "",
                            kinf__doc_text(reference, "name", NULL));
    if (owner == NULL ||
        strcmp(kinf_object_uid(owner), kinf__doc_text(reference, "uid", NULL)) != 0) {
        kinf_object_unref(owner);
        return OWNER_DANGLING;
    }
    *ret_owner = owner;
    return OWNER_SOLID;
}

static int classify(struct kinf__sim *sim, const char *name_space, const struct cJSON *reference,
                    enum owner_state *ret_state)
{
    const struct kinf_object *owner;
    struct kinf__resource *resource;
    struct cJSON *tree;
    int failed;

    *ret_state = look_up(sim, name_space, reference, &resource, &owner);
    if (owner == NULL)
        return 0;
    failed = kinf__store_to_tree(owner, &tree);
    kinf_object_unref(owner);
    if (failed < 0)
        return failed;
    if (is_going(tree) && has_finalizer(tree, FOREGROUND))
        *ret_state = OWNER_WAITING;
    cJSON_Delete(tree);
    return 0;
}

/* --- writing --- */

static int replace(struct kinf__sim *sim, struct kinf__resource *resource,
                   struct cJSON *take_object)
{
    struct kinf__verb verb = { .sim = sim,
                               .resource = resource,
                               .manager = "kube-controller-manager" };
    int failed = kinf__verb_replace(&verb, take_object);

    kinf__verb_release(&verb);
    return failed;
}

static int delete_object(struct kinf__sim *sim, struct kinf__resource *resource,
                         const struct cJSON *object, enum kinf__propagation propagation)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    struct kinf__verb verb = { .sim = sim,
                               .resource = resource,
                               .name_space = kinf__doc_text(object, "metadata", "namespace", NULL),
                               .name = kinf__doc_text(object, "metadata", "name", NULL) };
    bool is_gone;
    int failed;

    options.propagation = propagation;
    options.uid = kinf__doc_text(object, "metadata", "uid", NULL);
    failed = kinf__verb_delete(&verb, &options, &is_gone);
    kinf__verb_release(&verb);
    return failed;
}

/* Takes a finalizer out; none is left: no list is. */
static void remove_finalizer(struct cJSON *object, const char *name)
{
    struct cJSON *metadata = kinf__doc_get(object, "metadata");
    struct cJSON *finalizers = kinf__doc_get(metadata, "finalizers"), *finalizer, *next;

    for (finalizer = finalizers != NULL ? finalizers->child : NULL; finalizer != NULL;
         finalizer = next) {
        next = finalizer->next;
        if (cJSON_IsString(finalizer) && strcmp(finalizer->valuestring, name) == 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(finalizers, finalizer));
    }
    if (finalizers != NULL && finalizers->child == NULL)
        kinf__doc_remove(metadata, "finalizers");
}

static int finish(struct kinf__sim *sim, struct kinf__resource *resource,
                  const struct cJSON *object, const char *finalizer)
{
    struct cJSON *changed = kinf__doc_dup(object);

    if (changed == NULL)
        return KINF_ERR_NO_MEMORY;
    remove_finalizer(changed, finalizer);
    return replace(sim, resource, changed);
}

/* Takes references to this owner out of an object that is `dependent`, or is not there any more. */
static int forget_owner(struct kinf__sim *sim, struct kinf__resource *resource,
                        const struct kinf_object *object, const char *uid)
{
    struct cJSON *now, *metadata, *references, *reference, *next;
    int failed = read_now(sim, resource, object, &now);

    if (failed < 0)
        return failed == KINF_ERR_NOT_FOUND ? 0 : failed;
    metadata = kinf__doc_get(now, "metadata");
    references = kinf__doc_get(metadata, "ownerReferences");
    for (reference = references != NULL ? references->child : NULL; reference != NULL;
         reference = next) {
        next = reference->next;
        if (strcmp(kinf__doc_text(reference, "uid", NULL), uid) == 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(references, reference));
    }
    if (references != NULL && references->child == NULL)
        kinf__doc_remove(metadata, "ownerReferences");
    return replace(sim, resource, now);
}

/* --- deletions that wait --- */

/* A portion of the dependents forgets the owner, which goes when none is left. */
static int orphan(struct owners *self, struct kinf__sim *sim, const struct task *task,
                  const struct cJSON *object)
{
    const char *uid = kinf_object_uid(task->object);
    struct edge *edge;
    int failed = 0;

    for (size_t n = 0; n < PORTION && (edge = first_edge(self, uid)) != NULL; n++) {
        struct kinf__resource *resource = edge->dependent->resource;
        const struct kinf_object *dependent = kinf_object_ref(edge->dependent->object);
        struct dependent *there;

        failed = forget_owner(sim, resource, dependent, uid);
        /* What cannot be changed is not looked at again. */
        there = find_dependent(self, kinf_object_uid(dependent));
        if (there != NULL && there->object == dependent)
            drop_dependent(self, there);
        kinf_object_unref(dependent);
        if (failed == KINF_ERR_NO_MEMORY)
            return failed;
    }
    if (first_edge(self, uid) == NULL)
        return finish(sim, task->resource, object, ORPHAN);
    add_task(self, *task);
    return 0;
}

static void look_at_dependents(struct owners *self, const char *uid)
{
    for (struct edge *edge = first_edge(self, uid); edge != NULL; edge = next_edge(edge))
        add_task(self, (struct task){ .resource = edge->dependent->resource,
                                      .object = edge->dependent->object });
}

/* Dependents that do not block it are left to go later. */
static int wait_for_dependents(struct owners *self, struct kinf__sim *sim, const struct task *task,
                               const struct cJSON *object)
{
    const char *uid = kinf_object_uid(task->object);
    struct edge *edge = first_edge(self, uid);

    while (edge != NULL && !edge->blocks)
        edge = next_edge(edge);
    if (edge == NULL)
        return finish(sim, task->resource, object, FOREGROUND);
    if (task->is_first)
        look_at_dependents(self, uid);
    return 0;
}

/* --- objects with owners --- */

static enum kinf__propagation own_propagation(const struct cJSON *object)
{
    return has_finalizer(object, ORPHAN)       ? KINF__PROPAGATION_ORPHAN
           : has_finalizer(object, FOREGROUND) ? KINF__PROPAGATION_FOREGROUND
                                               : KINF__PROPAGATION_BACKGROUND;
}

/* Removes references to owners that are no reason to stay; one other is. */
static int keep_solid(struct kinf__sim *sim, const struct task *task, const struct cJSON *object)
{
    struct place place = place_of(task->object);
    struct cJSON *changed = kinf__doc_dup(object);
    struct cJSON *references = kinf__doc_find(changed, "metadata", "ownerReferences", NULL);
    struct cJSON *reference, *next;

    if (changed == NULL)
        return KINF_ERR_NO_MEMORY;
    for (reference = references->child; reference != NULL; reference = next) {
        enum owner_state state;

        next = reference->next;
        if (classify(sim, place.name_space, reference, &state) < 0) {
            cJSON_Delete(changed);
            return KINF_ERR_NO_MEMORY;
        }
        if (state != OWNER_SOLID)
            cJSON_Delete(cJSON_DetachItemViaPointer(references, reference));
    }
    return replace(sim, task->resource, changed);
}

static int attempt(struct owners *self, struct kinf__sim *sim, const struct task *task,
                   const struct cJSON *object)
{
    size_t n_states[OWNER_WAITING + 1] = { 0 };
    struct place place = place_of(task->object);
    const struct cJSON *reference;
    bool has_dependents = first_edge(self, kinf_object_uid(task->object)) != NULL;

    cJSON_ArrayForEach(reference, kinf__doc_find(object, "metadata", "ownerReferences", NULL))
    {
        enum owner_state state;

        if (classify(sim, place.name_space, reference, &state) < 0)
            return KINF_ERR_NO_MEMORY;
        n_states[state]++;
    }
    if (n_states[OWNER_DANGLING] + n_states[OWNER_WAITING] == 0)
        return 0;
    if (n_states[OWNER_SOLID] != 0)
        return keep_solid(sim, task, object);
    return delete_object(sim, task->resource, object,
                         n_states[OWNER_WAITING] != 0 && has_dependents
                             ? KINF__PROPAGATION_FOREGROUND
                             : own_propagation(object));
}

static int look_at(struct owners *self, struct kinf__sim *sim, const struct task *task)
{
    KINF__AUTO_DOC *object = NULL;
    int failed = read_now(sim, task->resource, task->object, &object);

    if (failed < 0)
        return failed == KINF_ERR_NOT_FOUND ? 0 : failed;
    if (!is_going(object))
        return attempt(self, sim, task, object);
    if (has_finalizer(object, ORPHAN))
        return orphan(self, sim, task, object);
    return has_finalizer(object, FOREGROUND) ? wait_for_dependents(self, sim, task, object) : 0;
}

struct around {
    struct owners *self;
    struct kinf__sim *sim;
    struct place place;
};

static int look_at_owner(struct kinf_str json, void *ctx)
{
    struct around *around = ctx;
    KINF__AUTO_DOC *reference = NULL;
    const struct kinf_object *owner;
    struct kinf__resource *resource;

    if (kinf__doc_parse(json, &reference, NULL) < 0)
        return KINF_ERR_NO_MEMORY;
    look_up(around->sim, around->place.name_space, reference, &resource, &owner);
    if (has_value(owner, around->self->deletion))
        add_task(around->self, (struct task){ .resource = resource, .object = owner });
    kinf_object_unref(owner);
    return 0;
}

/* Dependents of what is gone, and owners that waited for it. */
static int look_around(struct owners *self, struct kinf__sim *sim, const struct task *task)
{
    struct around around = { self, sim, place_of(task->object) };

    look_at_dependents(self, kinf_object_uid(task->object));
    return kinf_object_each(task->object, self->references, look_at_owner, &around);
}

/* --- the controller --- */

static void clear(struct owners *self)
{
    for (size_t i = 0; i < self->dependents.n_buckets; i++) {
        while (self->dependents.buckets[i] != NULL)
            drop_dependent(self,
                           KINF__CONTAINER_OF(self->dependents.buckets[i], struct dependent, node));
    }
    KINF__LIST_FOR_EACH_SAFE (node, &self->tasks)
        free_task(KINF__LIST_ENTRY(node, struct task, node));
}

static void note_resource(struct owners *self, struct kinf__resource *resource)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf__store_snapshot(resource);
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    kinf_cursor_all(&cursor, snapshot);
    while (!self->is_incomplete && (object = kinf_cursor_next(&cursor)) != NULL)
        note(&self->controller, resource, NULL, object);
}

/* Reads everything again. */
static void rebuild(struct owners *self, struct kinf__sim *sim)
{
    clear(self);
    self->is_incomplete = false;
    KINF__LIST_FOR_EACH (node, kinf__store_resources(kinf__sim_store(sim))) {
        struct kinf__resource *resource = KINF__LIST_ENTRY(node, struct kinf__resource, node);

        if (!self->is_incomplete && kinf__resource_is_stored(resource))
            note_resource(self, resource);
    }
}

static int64_t work(struct kinf__controller *controller, struct kinf__sim *sim, int64_t now_ms)
{
    struct owners *self = self_of(controller);

    if (self->is_incomplete)
        rebuild(self, sim);
    for (size_t n = 0; n < PORTION && !kinf__list_is_empty(&self->tasks); n++) {
        struct task *task = KINF__LIST_ENTRY(self->tasks.next, struct task, node);
        int failed = task->is_gone ? look_around(self, sim, task) : look_at(self, sim, task);

        if (failed == KINF_ERR_NO_MEMORY)
            self->is_incomplete = true;
        free_task(task);
    }
    if (self->is_incomplete)
        return kinf__clock_add_ms(now_ms, 1000);
    return kinf__list_is_empty(&self->tasks) ? KINF__NEVER_MS : now_ms;
}

static void free_controller(struct kinf__controller *controller)
{
    struct owners *self = self_of(controller);

    clear(self);
    kinf__hmap_release(&self->dependents);
    kinf__hmap_release(&self->edges);
    kinf_path_free(self->references);
    kinf_path_free(self->deletion);
    free(self);
}

int kinf__owners_new(struct kinf__controller **ret_controller, struct kinf_error *err)
{
    struct owners *self = calloc(1, sizeof *self);

    if (self == NULL)
        return kinf__error_no_memory(err);
    kinf__list_init(&self->controller.node);
    kinf__list_init(&self->tasks);
    self->controller.note = note;
    self->controller.work = work;
    self->controller.free = free_controller;
    if (kinf_path_parse("metadata.ownerReferences[*]", &self->references, err) < 0 ||
        kinf_path_parse("metadata.deletionTimestamp", &self->deletion, err) < 0) {
        free_controller(&self->controller);
        return KINF_ERR_NO_MEMORY;
    }
    *ret_controller = &self->controller;
    return 0;
}

/* --- how deletions begin --- */

/* Types whose dependents stay unless asked otherwise, as they always have. */
static bool orphans_by_default(const struct kinf__resource *resource)
{
    return (*resource->group == '\0' && strcmp(resource->kind, "ReplicationController") == 0) ||
           (strcmp(resource->group, "batch") == 0 && strcmp(resource->kind, "Job") == 0);
}

static enum kinf__propagation decide(const struct kinf__resource *resource,
                                     const struct cJSON *object, enum kinf__propagation propagation)
{
    enum kinf__propagation own = own_propagation(object);

    if (propagation != KINF__PROPAGATION_DEFAULT)
        return propagation;
    if (own != KINF__PROPAGATION_BACKGROUND)
        return own;
    return orphans_by_default(resource) ? KINF__PROPAGATION_ORPHAN : KINF__PROPAGATION_BACKGROUND;
}

static int add_finalizer(struct cJSON *object, const char *name)
{
    struct cJSON *metadata = kinf__doc_object(object, "metadata");

    if (metadata == NULL || (!cJSON_IsArray(kinf__doc_get(metadata, "finalizers")) &&
                             kinf__doc_set(metadata, "finalizers", cJSON_CreateArray()) < 0))
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_append(kinf__doc_get(metadata, "finalizers"), cJSON_CreateString(name));
}

int kinf__owners_begin_delete(const struct kinf__resource *resource, struct cJSON *object,
                              enum kinf__propagation propagation, bool *ret_waits)
{
    enum kinf__propagation decided = decide(resource, object, propagation);
    int failed = 0;

    if (decided != KINF__PROPAGATION_ORPHAN)
        remove_finalizer(object, ORPHAN);
    if (decided != KINF__PROPAGATION_FOREGROUND)
        remove_finalizer(object, FOREGROUND);
    if (decided == KINF__PROPAGATION_ORPHAN && !has_finalizer(object, ORPHAN))
        failed = add_finalizer(object, ORPHAN);
    if (decided == KINF__PROPAGATION_FOREGROUND && !has_finalizer(object, FOREGROUND))
        failed = add_finalizer(object, FOREGROUND);
    *ret_waits = cJSON_GetArraySize(kinf__doc_find(object, "metadata", "finalizers", NULL)) != 0;
    return failed;
}
