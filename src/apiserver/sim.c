/*
 * What the simulated server is made of, and the thread on which it lives on. Neighbours: request.c
 * answers, store.c holds, the controllers (namespaces.c, owners.c, definitions.c; workloads/) do
 * what follows from a change.
 */
#include "apiserver/sim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "apiserver/definitions.h"
#include "apiserver/kinds.h"
#include "document/manifest.h"
#include "apiserver/namespaces.h"
#include "apiserver/owners.h"
#include "apiserver/request.h"
#include "apiserver/types.h"
#include "apiserver/verbs.h"

#define CATCH_UP_MS 1000 /* how often quiet types are told the version of now */

struct kinf__sim {
    /* constant after creation */
    const struct kinf__access_policy *policy;
    struct kinf__backend backend;
    struct kinf__server *server;
    struct kinf__schema *schema;
    struct kinf__store *store;
    struct kinf__faults *faults;
    pthread_t worker;
    bool is_started;
    struct kinf__cond changed;
    /* guarded by the store's lock */
    struct kinf__list controllers;
    uint64_t random;
    int64_t catch_up_ms; /* when the worker tells versions again */
    bool is_stopping;
    bool is_working; /* a controller is at work, and has given the lock up for a moment */
};

/* --- asking --- */

struct kinf__server *kinf__sim_server(struct kinf__sim *sim)
{
    return sim->server;
}

struct kinf__store *kinf__sim_store(struct kinf__sim *sim)
{
    return sim->store;
}

const struct kinf__schema *kinf__sim_schema(const struct kinf__sim *sim)
{
    return sim->schema;
}

struct kinf__faults *kinf__sim_faults(struct kinf__sim *sim)
{
    return sim->faults;
}

const struct kinf__access_policy *kinf__sim_policy(const struct kinf__sim *sim)
{
    return sim->policy;
}

void kinf__sim_time_after(int64_t seconds, char time[KINF__RFC3339_SIZE])
{
    int64_t now_s = kinf__clock_wall_ms() / 1000;

    kinf__rfc3339_write(seconds < INT64_MAX - now_s ? now_s + seconds : INT64_MAX, 0, 0, time);
}

void kinf__sim_time(char time[KINF__RFC3339_SIZE])
{
    kinf__sim_time_after(0, time);
}

/* SplitMix64: short, and every seed is a good one. */
uint64_t kinf__sim_random(struct kinf__sim *sim)
{
    uint64_t z = sim->random += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* --- the worker --- */

static void note(struct kinf__resource *resource, const struct kinf_object *old,
                 const struct kinf_object *object, void *ctx)
{
    struct kinf__sim *sim = ctx;

    KINF__LIST_FOR_EACH (node, &sim->controllers) {
        struct kinf__controller *controller = KINF__LIST_ENTRY(node, struct kinf__controller, node);

        controller->ops->note(controller, resource, old, object);
        controller->due_ms = 0;
    }
    kinf__cond_signal(&sim->changed);
}

/* Returns when the next one wants its turn. A controller that notes what another one does is called
 * again at once. */
static int64_t work(struct kinf__sim *sim, int64_t now_ms)
{
    int64_t next_ms = sim->catch_up_ms;

    KINF__LIST_FOR_EACH (node, &sim->controllers) {
        struct kinf__controller *controller = KINF__LIST_ENTRY(node, struct kinf__controller, node);
        int64_t due_ms;

        if (controller->due_ms <= now_ms) {
            controller->due_ms = KINF__NEVER_MS;
            sim->is_working = true;
            due_ms = controller->ops->work(controller, sim, now_ms);
            sim->is_working = false;
            if (due_ms < controller->due_ms)
                controller->due_ms = due_ms;
        }
    }
    KINF__LIST_FOR_EACH (node, &sim->controllers) {
        struct kinf__controller *controller = KINF__LIST_ENTRY(node, struct kinf__controller, node);

        if (controller->due_ms < next_ms)
            next_ms = controller->due_ms;
    }
    return next_ms;
}

static void *live(void *ctx)
{
    struct kinf__sim *sim = ctx;
    struct kinf__mutex *lock = kinf__store_mutex(sim->store);

    kinf__mutex_lock(lock);
    while (!sim->is_stopping) {
        int64_t now_ms = kinf__clock_now_ms(), next_ms;

        if (now_ms >= sim->catch_up_ms) {
            kinf__store_catch_up(sim->store);
            sim->catch_up_ms = now_ms + CATCH_UP_MS;
        }
        next_ms = work(sim, now_ms);
        if (next_ms > now_ms) {
            (void)kinf__cond_wait_until(&sim->changed, lock, next_ms);
        } else {
            /* Requests come in between. */
            kinf__mutex_unlock(lock);
            kinf__mutex_lock(lock);
        }
    }
    kinf__mutex_unlock(lock);
    return NULL;
}

void *kinf__controller_new(size_t size, const struct kinf__controller_ops *ops,
                           struct kinf_error *err)
{
    struct kinf__controller *controller = calloc(1, size);

    if (controller == NULL) {
        (void)kinf__error_no_memory(err);
        return NULL;
    }
    controller->ops = ops;
    return controller;
}

void kinf__sim_add_controller(struct kinf__sim *sim, struct kinf__controller *take_controller)
{
    kinf__store_lock(sim->store);
    kinf__list_push_back(&sim->controllers, &take_controller->node);
    kinf__store_unlock(sim->store);
}

int64_t kinf__sim_due_ms(struct kinf__sim *sim)
{
    int64_t due_ms = KINF__NEVER_MS;

    kinf__store_lock(sim->store);
    KINF__LIST_FOR_EACH (node, &sim->controllers) {
        int64_t its_ms = KINF__LIST_ENTRY(node, struct kinf__controller, node)->due_ms;

        due_ms = its_ms < due_ms ? its_ms : due_ms;
    }
    /* Now is read here: what became due while the lock was waited for is due. */
    if (sim->is_working || due_ms <= kinf__clock_now_ms())
        due_ms = 0;
    kinf__store_unlock(sim->store);
    return due_ms;
}

/* --- manifests --- */

struct loading {
    struct kinf__sim *sim;
    struct kinf_error *err;
};

static int find_loaded(struct loading *loading, const struct cJSON *object, const char *where,
                       struct kinf__verb *verb)
{
    const char *api_version = kinf__doc_text(object, "apiVersion", NULL),
               *kind = kinf__doc_text(object, "kind", NULL), *slash = strchr(api_version, '/');

    if (*api_version == '\0')
        return kinf__error_set(loading->err, KINF_ERR_CONFIG, "%s: an object without apiVersion",
                               where);
    verb->resource = kinf__store_find_kind(loading->sim->store, api_version, kind);
    if (verb->resource != NULL)
        verb->version =
            kinf__resource_find_version(verb->resource, slash != NULL ? slash + 1 : api_version);
    if (verb->version == NULL || !kinf__resource_is_stored(verb->resource))
        return kinf__error_set(loading->err, KINF_ERR_CONFIG,
                               "%s: there is no kind '%s' of %s here (definitions come before "
                               "their objects)",
                               where, kind, api_version);
    return 0;
}

static int load_one(struct cJSON *take_object, const char *where, void *ctx)
{
    struct loading *loading = ctx;
    struct kinf__verb verb = { .sim = loading->sim };
    int failed;

    kinf__store_lock(loading->sim->store);
    failed = find_loaded(loading, take_object, where, &verb);
    if (failed < 0) {
        cJSON_Delete(take_object);
    } else if (kinf__verb_load(&verb, take_object) < 0) {
        failed =
            kinf__error_set(loading->err, KINF_ERR_CONFIG, "%s: %s", where, verb.refusal.message);
    }
    kinf__store_unlock(loading->sim->store);
    kinf__verb_release(&verb);
    return failed;
}

int kinf__sim_load(struct kinf__sim *sim, struct kinf_str manifests, const char *file,
                   struct kinf_error *err)
{
    struct loading loading = { sim, err };

    return kinf__manifest_read(manifests, file, load_one, &loading, err);
}

/* --- life --- */

static int add_builtin(struct kinf__sim *sim, const struct kinf__builtin *builtin,
                       struct kinf_error *err)
{
    const struct kinf__resource like = {
        .group = (char *)(uintptr_t)builtin->group,
        .name = (char *)(uintptr_t)builtin->resource,
        .singular = (char *)(uintptr_t)builtin->singular,
        .kind = (char *)(uintptr_t)builtin->kind,
        .short_names = (char *)(uintptr_t)builtin->short_names,
        .categories = (char *)(uintptr_t)builtin->categories,
        .verbs = (char *)(uintptr_t)builtin->verbs,
        .subresources = (char *)(uintptr_t)builtin->subresources,
        .namespaced = builtin->namespaced,
    };
    const struct kinf__new_version version = {
        .name = builtin->version,
        .schema = kinf__schema_find(sim->schema, builtin->group, builtin->version, builtin->kind),
        .has_status = kinf__has_word(builtin->subresources, "status"),
        .has_scale = kinf__has_word(builtin->subresources, "scale"),
    };
    struct kinf__resource *resource;

    return kinf__store_add_resource(sim->store, &like, &version, 1, &resource, err);
}

/* Events are the same in both groups. */
static void pair_events(struct kinf__store *store)
{
    kinf__store_pair(kinf__store_find(store, "", "events"),
                     kinf__store_find(store, "events.k8s.io", "events"), kinf__kind_convert);
}

static int add_builtins(struct kinf__sim *sim, struct kinf_error *err)
{
    int failed = 0;

    kinf__store_lock(sim->store);
    for (size_t i = 0; failed == 0 && i < kinf__n_builtins; i++)
        failed = add_builtin(sim, &kinf__builtins[i], err);
    if (failed == 0)
        pair_events(sim->store);
    if (failed == 0 && kinf__resource_catalog_publish(sim->store, sim->server) < 0)
        failed = kinf__error_no_memory(err);
    kinf__store_unlock(sim->store);
    return failed;
}

static int add_controllers(struct kinf__sim *sim, struct kinf_error *err)
{
    int (*const makers[])(struct kinf__controller **, struct kinf_error *) = {
        kinf__namespaces_new,
        kinf__owners_new,
        kinf__definitions_new,
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(makers); i++) {
        struct kinf__controller *controller;
        int failed = makers[i](&controller, err);

        if (failed < 0)
            return failed;
        kinf__sim_add_controller(sim, controller);
    }
    return 0;
}

static struct kinf__fault *find_fault(const struct kinf__request_head *head,
                                      const struct kinf__request *request, void *ctx)
{
    struct kinf__sim *sim = ctx;

    return kinf__faults_find(sim->faults, head, request);
}

static int fill(struct kinf__sim *sim, const struct kinf__sim_options *options,
                struct kinf_error *err)
{
    const struct kinf__server_options server_options = { .backend = &sim->backend,
                                                         .name = "kinformer-sim" };
    struct kinf__store_options store_options = { .limits = options->limits,
                                                 .on_change = note,
                                                 .ctx = sim };
    int failed;

    if (kinf__schema_new(&sim->schema) < 0)
        return kinf__error_no_memory(err);
    if ((failed = kinf__faults_new(options->seed, &sim->faults, err)) < 0 ||
        (failed = kinf__server_new(&server_options, &sim->server, err)) < 0)
        return failed;
    store_options.server = sim->server;
    if ((failed = kinf__store_new(&store_options, &sim->store, err)) < 0 ||
        (failed = add_builtins(sim, err)) < 0 || (failed = add_controllers(sim, err)) < 0)
        return failed;
    kinf__store_lock(sim->store);
    failed = kinf__namespaces_bootstrap(sim, err);
    kinf__store_unlock(sim->store);
    return failed;
}

int kinf__sim_new(const struct kinf__sim_options *options, struct kinf__sim **ret_sim,
                  struct kinf_error *err)
{
    struct kinf__sim *sim = calloc(1, sizeof *sim);
    int failed;

    if (sim == NULL)
        return kinf__error_no_memory(err);
    sim->policy = options->policy;
    sim->random = options->seed;
    sim->backend = (struct kinf__backend){
        .admit = kinf__sim_admit,
        .takes = kinf__sim_takes,
        .answer = kinf__sim_answer,
        .find_fault = find_fault,
        .hold = kinf__fault_hold,
        .distort = kinf__fault_distort,
        .free_fault = kinf__fault_free,
        .ctx = sim,
    };
    kinf__cond_init(&sim->changed);
    kinf__list_init(&sim->controllers);
    failed = fill(sim, options, err);
    if (failed < 0) {
        kinf__sim_free(sim);
        return failed;
    }
    *ret_sim = sim;
    return 0;
}

int kinf__sim_start(struct kinf__sim *sim, struct kinf_error *err)
{
    int failed = kinf__thread_start(&sim->worker, "kinf-sim", live, sim, err);

    sim->is_started = failed == 0;
    return failed;
}

void kinf__sim_stop(struct kinf__sim *sim)
{
    kinf__store_lock(sim->store);
    sim->is_stopping = true;
    kinf__cond_signal(&sim->changed);
    kinf__store_unlock(sim->store);
    kinf__faults_stop(sim->faults);
    kinf__server_stop(sim->server);
    if (sim->is_started)
        pthread_join(sim->worker, NULL);
    sim->is_started = false;
}

void kinf__sim_free(struct kinf__sim *sim)
{
    if (sim == NULL)
        return;
    while (!kinf__list_is_empty(&sim->controllers)) {
        struct kinf__controller *controller =
            KINF__LIST_ENTRY(sim->controllers.next, struct kinf__controller, node);

        kinf__list_remove(&controller->node);
        controller->ops->free(controller);
    }
    kinf__store_free(sim->store);
    kinf__server_free(sim->server);
    kinf__faults_free(sim->faults);
    kinf__schema_free(sim->schema);
    kinf__cond_release(&sim->changed);
    free(sim);
}
