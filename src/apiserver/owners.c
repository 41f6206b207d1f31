/*
 * The garbage collector. Neighbours: verbs.c, which it writes by, and whose deletions begin here.
 *
 * It keeps who depends on whom, by the uids of owners, from what it is told of each change; and a
 * queue of objects to look at: new ones with owners, those that a deletion waits for, and those that
 * are left when an owner is gone. Looking is idempotent, so that nothing is lost by looking twice.
 * It goes by the text of objects; only one that is changed becomes a tree.
 */
#include "apiserver/owners.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "object/object.h"
#include "apiserver/meta_text.h"

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

static int add_edge(struct owners *self, struct dependent *dependent,
                    const struct kinf__owner_reference *reference)
{
    struct edge *edge = malloc(sizeof *edge + strlen(reference->uid) + 1);

    if (edge == NULL)
        return KINF_ERR_NO_MEMORY;
    strcpy(edge->owner, reference->uid);
    edge->dependent = dependent;
    edge->blocks = reference->blocks;
    if (kinf__hmap_insert(&self->edges, &edge->node, hash_of(edge->owner)) < 0) {
        free(edge);
        return KINF_ERR_NO_MEMORY;
    }
    edge->next = dependent->edges;
    dependent->edges = edge;
    return 0;
}

static int add_dependent(struct owners *self, struct kinf__resource *resource,
                         const struct kinf_object *object, struct kinf__json_value owners)
{
    struct dependent *dependent = calloc(1, sizeof *dependent);
    struct kinf__owner_reference reference;
    struct kinf__json_iter iter;
    int failed = 0;

    if (dependent == NULL)
        return KINF_ERR_NO_MEMORY;
    dependent->resource = resource;
    dependent->object = kinf_object_ref(object);
    kinf__json_iter_init(&iter, owners);
    while (failed == 0 && kinf__owner_reference_next(&iter, &reference))
        failed = add_edge(self, dependent, &reference);
    if (failed == 0)
        failed = kinf__hmap_insert(&self->dependents, &dependent->node,
                                   hash_of(kinf_object_uid(object)));
    if (failed < 0)
        free_dependent(self, dependent);
    return failed;
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

/* `before` and `after`: owners, as texts; empty: none. */
static void note_owners(struct owners *self, const struct task *change,
                        const struct kinf_object *old, struct kinf__json_value before,
                        struct kinf__json_value after)
{
    bool is_same = kinf_str_equal(before.raw, after.raw);
    struct dependent *dependent =
        before.raw.len != 0 ? find_dependent(self, kinf_object_uid(old)) : NULL;

    if (is_same && dependent != NULL) {
        kinf_object_unref(dependent->object);
        dependent->object = kinf_object_ref(change->object);
        return;
    }
    if (dependent != NULL)
        drop_dependent(self, dependent);
    if (after.raw.len != 0 && add_dependent(self, change->resource, change->object, after) < 0)
        self->is_incomplete = true;
    if (after.raw.len != 0 && !is_same)
        add_task(self, *change);
    /* Owners may wait for it no longer. */
    if (before.raw.len != 0 && !is_same)
        add_task(self,
                 (struct task){ .resource = change->resource, .object = old, .is_gone = true });
}

/* Events: neither owners nor dependents are looked for. */
static bool is_ignored(const struct kinf__resource *resource)
{
    return !resource->is_custom && strcmp(resource->kind, "Event") == 0;
}

static void note(struct kinf__controller *controller, struct kinf__resource *resource,
                 const struct kinf_object *old, const struct kinf_object *object)
{
    struct owners *self = self_of(controller);
    kinf_auto_scratch struct kinf_scratch old_scratch = KINF_SCRATCH_INIT,
                                          scratch = KINF_SCRATCH_INIT;
    struct task task = { .resource = resource, .object = object };
    struct kinf__meta_text before, after;

    if (is_ignored(resource))
        return;
    if ((old == NULL && object == NULL) || kinf__meta_text_read(old, &old_scratch, &before) < 0 ||
        kinf__meta_text_read(object, &scratch, &after) < 0) {
        self->is_incomplete = true;
        return;
    }
    note_owners(self, &task, old, before.owners, after.owners);
    task.is_first = !before.is_going;
    if (after.is_going)
        add_task(self, task);
    if (object == NULL && first_edge(self, kinf_object_uid(old)) != NULL)
        add_task(self, (struct task){ .resource = resource, .object = old, .is_gone = true });
}

/* --- reading --- */

static bool is_resource(struct kinf__sim *sim, const struct kinf__resource *resource)
{
    const struct kinf__resource *at = NULL;

    while ((at = kinf__store_next(kinf__sim_store(sim), at)) != NULL && at != resource)
        continue;
    return at != NULL;
}

/* The object as it is now, with a reference for the caller; NULL: there is none, or another one. */
static const struct kinf_object *get_now(struct kinf__sim *sim, struct kinf__resource *resource,
                                         const struct kinf_object *object)
{
    const struct kinf_object *now = NULL;
    char name_space[KINF_NAME_MAX];
    const char *name = kinf__object_key_split(kinf_object_key(object), name_space);

    if (is_resource(sim, resource))
        now = kinf__store_get(resource, name_space, name);
    if (now != NULL && !kinf__object_same_uid(now, object)) {
        kinf_object_unref(now);
        return NULL;
    }
    return now;
}

enum owner_state {
    OWNER_SOLID,    /* there, or nobody can tell */
    OWNER_DANGLING, /* not there */
    OWNER_WAITING,  /* being deleted, when its dependents are */
};

/* *ret_owner: with a reference for the caller, or NULL. */
static enum owner_state look_up(struct kinf__sim *sim, const struct kinf_object *dependent,
                                const struct kinf__owner_reference *reference,
                                struct kinf__resource **ret_resource,
                                const struct kinf_object **ret_owner)
{
    struct kinf__resource *resource =
        kinf__store_find_kind(kinf__sim_store(sim), reference->api_version, reference->kind);
    const struct kinf_object *owner;
    char name_space[KINF_NAME_MAX];

    *ret_resource = resource;
    *ret_owner = NULL;
    kinf__object_key_split(kinf_object_key(dependent), name_space);
    if (*reference->api_version == '\0' || resource == NULL ||
        !kinf__resource_is_stored(resource) || (resource->namespaced && *name_space == '\0'))
        return OWNER_SOLID;
    owner = kinf__store_get(resource, resource->namespaced ? name_space : "", reference->name);
    if (owner == NULL || strcmp(kinf_object_uid(owner), reference->uid) != 0) {
        kinf_object_unref(owner);
        return OWNER_DANGLING;
    }
    *ret_owner = owner;
    return OWNER_SOLID;
}

static int classify(struct kinf__sim *sim, const struct kinf_object *dependent,
                    const struct kinf__owner_reference *reference, enum owner_state *ret_state)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const struct kinf_object *owner;
    struct kinf__resource *resource;
    struct kinf__meta_text meta;
    int failed;

    *ret_state = look_up(sim, dependent, reference, &resource, &owner);
    failed = kinf__meta_text_read(owner, &scratch, &meta);
    if (failed == 0 && meta.is_going && kinf__meta_text_has_finalizer(&meta, FOREGROUND))
        *ret_state = OWNER_WAITING;
    kinf_object_unref(owner);
    return failed;
}

/* --- writing --- */

static int replace(struct kinf__sim *sim, struct kinf__resource *resource,
                   struct cJSON *take_object)
{
    return kinf__verb_put(sim, resource, "", "kube-controller-manager", take_object);
}

static void remove_finalizer(struct cJSON *object, const char *name)
{
    kinf__doc_remove_text(kinf__doc_get(object, "metadata"), "finalizers", name);
}

static int finish(struct kinf__sim *sim, struct kinf__resource *resource,
                  const struct kinf_object *object, const char *finalizer)
{
    struct cJSON *changed;
    int failed = kinf__store_to_tree(object, &changed);

    if (failed < 0)
        return failed;
    remove_finalizer(changed, finalizer);
    return replace(sim, resource, changed);
}

/* Takes references to this owner out of an object that is `dependent`, or is not there any more. */
static int forget_owner(struct kinf__sim *sim, struct kinf__resource *resource,
                        const struct kinf_object *object, const char *uid)
{
    const kinf_auto_object struct kinf_object *now = get_now(sim, resource, object);
    struct cJSON *changed, *metadata, *references, *reference, *next;
    int failed = now != NULL ? kinf__store_to_tree(now, &changed) : 0;

    if (now == NULL || failed < 0)
        return failed;
    metadata = kinf__doc_get(changed, "metadata");
    references = kinf__doc_get(metadata, "ownerReferences");
    for (reference = references != NULL ? references->child : NULL; reference != NULL;
         reference = next) {
        next = reference->next;
        if (strcmp(kinf__doc_text(reference, "uid", NULL), uid) == 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(references, reference));
    }
    if (references != NULL && references->child == NULL)
        kinf__doc_remove(metadata, "ownerReferences");
    return replace(sim, resource, changed);
}

/* --- deletions that wait --- */

/* A portion of the dependents forgets the owner, which goes when none is left. */
static int orphan(struct owners *self, struct kinf__sim *sim, const struct task *task,
                  const struct kinf_object *object)
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
                               const struct kinf_object *object)
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

static enum kinf__propagation own_propagation(const struct kinf__meta_text *meta)
{
    return kinf__meta_text_has_finalizer(meta, ORPHAN)       ? KINF__PROPAGATION_ORPHAN
           : kinf__meta_text_has_finalizer(meta, FOREGROUND) ? KINF__PROPAGATION_FOREGROUND
                                                             : KINF__PROPAGATION_BACKGROUND;
}

/* Removes references to owners that are no reason to stay; one other is. */
static int keep_solid(struct kinf__sim *sim, const struct task *task,
                      const struct kinf_object *object, struct kinf__json_iter owners)
{
    struct kinf__owner_reference owner;
    KINF__AUTO_DOC *changed = NULL;
    struct cJSON *references, *reference, *next;
    enum owner_state state;
    int failed = kinf__store_to_tree(object, &changed);

    if (failed < 0)
        return failed;
    references = kinf__doc_find(changed, "metadata", "ownerReferences", NULL);
    for (reference = references->child;
         reference != NULL && kinf__owner_reference_next(&owners, &owner); reference = next) {
        next = reference->next;
        if (classify(sim, object, &owner, &state) < 0)
            return KINF_ERR_NO_MEMORY;
        if (state != OWNER_SOLID)
            cJSON_Delete(cJSON_DetachItemViaPointer(references, reference));
    }
    return replace(sim, task->resource, KINF__TAKE(changed));
}

static int attempt(struct owners *self, struct kinf__sim *sim, const struct task *task,
                   const struct kinf_object *object, const struct kinf__meta_text *meta)
{
    size_t n_states[OWNER_WAITING + 1] = { 0 };
    bool has_dependents = first_edge(self, kinf_object_uid(object)) != NULL;
    struct kinf__owner_reference owner;
    struct kinf__json_iter owners, iter;
    enum owner_state state;

    if (!kinf__json_iter_init(&owners, meta->owners))
        return 0;
    for (iter = owners; kinf__owner_reference_next(&iter, &owner);) {
        if (classify(sim, object, &owner, &state) < 0)
            return KINF_ERR_NO_MEMORY;
        n_states[state]++;
    }
    if (n_states[OWNER_DANGLING] + n_states[OWNER_WAITING] == 0)
        return 0;
    if (n_states[OWNER_SOLID] != 0)
        return keep_solid(sim, task, object, owners);
    return kinf__verb_delete_object(sim, task->resource, object,
                                    n_states[OWNER_WAITING] != 0 && has_dependents
                                        ? KINF__PROPAGATION_FOREGROUND
                                        : own_propagation(meta));
}

static int look_at(struct owners *self, struct kinf__sim *sim, const struct task *task)
{
    const kinf_auto_object struct kinf_object *object = get_now(sim, task->resource, task->object);
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__meta_text meta;

    if (object == NULL)
        return 0;
    if (kinf__meta_text_read(object, &scratch, &meta) < 0)
        return KINF_ERR_NO_MEMORY;
    if (!meta.is_going)
        return attempt(self, sim, task, object, &meta);
    if (kinf__meta_text_has_finalizer(&meta, ORPHAN))
        return orphan(self, sim, task, object);
    return kinf__meta_text_has_finalizer(&meta, FOREGROUND)
               ? wait_for_dependents(self, sim, task, object)
               : 0;
}

/* An owner that is going may wait for what is gone. */
static int look_at_owner(struct owners *self, struct kinf__sim *sim,
                         const struct kinf_object *dependent,
                         const struct kinf__owner_reference *reference)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const struct kinf_object *owner;
    struct kinf__resource *resource;
    struct kinf__meta_text meta;
    int failed;

    look_up(sim, dependent, reference, &resource, &owner);
    failed = kinf__meta_text_read(owner, &scratch, &meta);
    if (failed == 0 && meta.is_going)
        add_task(self, (struct task){ .resource = resource, .object = owner });
    kinf_object_unref(owner);
    return failed;
}

/* Dependents of what is gone, and owners that waited for it. */
static int look_around(struct owners *self, struct kinf__sim *sim, const struct task *task)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__owner_reference reference;
    struct kinf__json_iter iter;
    struct kinf__meta_text meta;
    int failed = kinf__meta_text_read(task->object, &scratch, &meta);

    look_at_dependents(self, kinf_object_uid(task->object));
    if (failed < 0 || !kinf__json_iter_init(&iter, meta.owners))
        return failed;
    while (failed == 0 && kinf__owner_reference_next(&iter, &reference))
        failed = look_at_owner(self, sim, task->object, &reference);
    return failed;
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
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(kinf__sim_store(sim), resource)) != NULL;) {
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
    free(self);
}

int kinf__owners_new(struct kinf__controller **ret_controller, struct kinf_error *err)
{
    static const struct kinf__controller_ops ops = { note, work, free_controller };
    struct owners *self = kinf__controller_new(sizeof *self, &ops, err);

    if (self == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__list_init(&self->tasks);
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

static bool has_finalizer(const struct cJSON *object, const char *name)
{
    return kinf__doc_has_text(kinf__doc_find(object, "metadata", "finalizers", NULL), name);
}

static enum kinf__propagation decide(const struct kinf__resource *resource,
                                     const struct cJSON *object, enum kinf__propagation propagation)
{
    if (is_ignored(resource))
        return KINF__PROPAGATION_BACKGROUND;
    if (propagation != KINF__PROPAGATION_DEFAULT)
        return propagation;
    if (has_finalizer(object, ORPHAN))
        return KINF__PROPAGATION_ORPHAN;
    if (has_finalizer(object, FOREGROUND))
        return KINF__PROPAGATION_FOREGROUND;
    return orphans_by_default(resource) ? KINF__PROPAGATION_ORPHAN : KINF__PROPAGATION_BACKGROUND;
}

static int add_finalizer(struct cJSON *object, const char *name)
{
    struct cJSON *metadata = kinf__doc_object(object, "metadata");

    return metadata != NULL ? kinf__doc_add_text(metadata, "finalizers", name) : KINF_ERR_NO_MEMORY;
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
    if (decided == KINF__PROPAGATION_ORPHAN)
        failed = add_finalizer(object, ORPHAN);
    if (decided == KINF__PROPAGATION_FOREGROUND)
        failed = add_finalizer(object, FOREGROUND);
    *ret_waits = cJSON_GetArraySize(kinf__doc_find(object, "metadata", "finalizers", NULL)) != 0;
    return failed;
}
