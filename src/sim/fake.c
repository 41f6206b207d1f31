/*
 * A server in the process of its client. Neighbours: sim.c is the server; rest/client.c dials it;
 * sweep.c tries a program out with it.
 */
#include "sim/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "controller/controller.h"
#include "informer/informer.h"
#include "object/object.h"
#include "rest/client.h"
#include "apiserver/verbs.h"
#include "workloads/workloads.h"

#define LOOK_NS   1000000 /* of real time, between two looks at what is under way */
#define STEP_NS   3000000 /* likewise, between two leaps */
#define STALL_MS  100     /* likewise, until what does not end is given time */
#define LEAP_MS   1000
#define MAX_STEPS 200

#define ADVANCE_MAX_MS ((int64_t)10 * 365 * 86400 * 1000)

/* --- life --- */

static int fill(struct kinf_fake *fake, const struct kinf_fake_options *options,
                struct kinf_error *err)
{
    const struct kinf__sim_options sim_options = { .seed = options->seed };
    struct sockaddr_un address;
    socklen_t address_len;
    int failed;

    if ((failed = kinf__sim_new(&sim_options, &fake->sim, err)) < 0 ||
        (options->has_workloads && (failed = kinf__workloads_add(fake->sim, NULL, err)) < 0) ||
        (failed = kinf__sim_start(fake->sim, err)) < 0 ||
        (failed = kinf__endpoint_start_local(kinf__sim_server(fake->sim), &fake->endpoint, &address,
                                             &address_len, err)) < 0)
        return failed;
    failed = kinf__client_new_local(&address, address_len, &fake->client, err);
    if (failed == 0)
        kinf__client_hold(fake->client);
    return failed;
}

int kinf_fake_new(const struct kinf_fake_options *options, struct kinf_fake **ret_fake,
                  struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, ret_fake);

    struct kinf_fake_options own = KINF_FAKE_OPTIONS_INIT;
    struct kinf_fake *fake;
    int failed = 0;

    if (options != NULL)
        failed = kinf__options_read(&own, sizeof own, options, "struct kinf_fake_options", err);
    if (failed < 0)
        return failed;
    fake = calloc(1, sizeof *fake);
    if (fake == NULL)
        return kinf__error_no_memory(err);
    kinf__clock_begin_simulation();
    failed = fill(fake, &own, err);
    if (failed < 0) {
        kinf_fake_free(fake);
        return failed;
    }
    *ret_fake = fake;
    return 0;
}

/* False if somebody has it still. */
static bool free_client(struct kinf_fake *fake)
{
    if (fake->client == NULL)
        return true;
    kinf__client_let_go(fake->client);
    if (kinf__client_is_held(fake->client)) {
        kinf__client_hold(fake->client);
        return false;
    }
    kinf_client_free(fake->client);
    return true;
}

void kinf_fake_free(struct kinf_fake *fake)
{
    if (fake == NULL || !free_client(fake))
        return;
    if (fake->endpoint != NULL)
        kinf__endpoint_quiesce(fake->endpoint);
    if (fake->sim != NULL)
        kinf__sim_stop(fake->sim);
    kinf__endpoint_free(fake->endpoint);
    kinf__sim_free(fake->sim);
    kinf__clock_end_simulation();
    free(fake);
}

void kinf_fake_free_ptr(struct kinf_fake **fake)
{
    KINF__REFUSE_NULL(NULL, , fake);
    kinf_fake_free(*fake);
}

struct kinf_client *kinf_fake_client(struct kinf_fake *fake)
{
    KINF__REFUSE_NULL(NULL, NULL, fake);
    return fake->client;
}

/* --- objects --- */

int kinf_fake_put(struct kinf_fake *fake, const char *manifest, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fake, manifest);
    return kinf__sim_load(fake->sim, kinf_str_from(manifest), "manifest", err);
}

/* "pods", "deployments.apps", "deployments.v1.apps"; also singular and short names. The lock is
 * held. */
static int find(struct kinf_fake *fake, const char *resource, struct kinf__verb *verb,
                struct kinf_error *err)
{
    verb->sim = fake->sim;
    verb->resource = kinf__store_find_spelling(kinf__sim_store(fake->sim), resource);
    if (verb->resource != NULL && kinf__resource_is_stored(verb->resource))
        return 0;
    return kinf__error_set(err, KINF_ERR_NOT_FOUND, "there is no resource '%s'", resource);
}

int kinf_fake_get(struct kinf_fake *fake, const char *resource, const char *key,
                  const struct kinf_object **ret_object, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fake, resource, key, ret_object);

    struct kinf__verb verb = { .sim = NULL };
    char name_space[KINF_NAME_MAX];
    const char *name = kinf__object_key_split(key, name_space);
    const struct kinf_object *object = NULL;
    int failed;

    kinf__store_lock(kinf__sim_store(fake->sim));
    failed = find(fake, resource, &verb, err);
    if (failed == 0)
        object = kinf__store_get(verb.resource, name_space, name);
    kinf__store_unlock(kinf__sim_store(fake->sim));
    if (failed == 0 && object == NULL)
        failed = kinf__error_set(err, KINF_ERR_NOT_FOUND, "%s \"%s\" not found", resource, key);
    if (failed == 0)
        *ret_object = object;
    return failed;
}

/* What a refused verb is to a caller of ours. */
static int code_of(const struct kinf__refusal *refusal)
{
    switch (refusal->code) {
    case 404:
        return KINF_ERR_NOT_FOUND;
    case 409:
        return KINF_ERR_CONFLICT;
    default:
        return KINF_ERR_CONFIG;
    }
}

int kinf_fake_delete(struct kinf_fake *fake, const char *resource, const char *key,
                     struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fake, resource, key);

    const struct kinf__delete_options options = { .grace_s = 0 };
    struct kinf__verb verb = { .sim = NULL };
    char name_space[KINF_NAME_MAX];
    bool is_gone;
    int failed;

    verb.name = kinf__object_key_split(key, name_space);
    verb.name_space = name_space;
    kinf__store_lock(kinf__sim_store(fake->sim));
    failed = find(fake, resource, &verb, err);
    if (failed == 0 && kinf__verb_delete(&verb, &options, &is_gone) < 0)
        failed = kinf__error_set(err, (enum kinf_errc)code_of(&verb.refusal), "%s",
                                 verb.refusal.message);
    kinf__store_unlock(kinf__sim_store(fake->sim));
    kinf__verb_release(&verb);
    return failed;
}

/* --- faults and time --- */

int kinf_fake_fault(struct kinf_fake *fake, const char *spec, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fake, spec);

    unsigned id;

    return kinf__faults_add(kinf__sim_faults(fake->sim), spec, &id, err);
}

void kinf_fake_clear_faults(struct kinf_fake *fake)
{
    KINF__REFUSE_NULL(NULL, , fake);
    (void)!kinf__faults_remove(kinf__sim_faults(fake->sim), 0);
}

void kinf_fake_drop(struct kinf_fake *fake)
{
    KINF__REFUSE_NULL(NULL, , fake);
    kinf__server_cut_off(kinf__sim_server(fake->sim));
}

void kinf_fake_advance(struct kinf_fake *fake, int64_t ms)
{
    KINF__REFUSE_NULL(NULL, , fake);

    const struct timespec pause = { 0, STEP_NS };
    int64_t n_steps = ms / 1000;

    if (ms < 0 || ms > ADVANCE_MAX_MS) {
        (void)kinf__misuse(NULL, KINF_ERR_INVALID,
                           "kinf_fake_advance: time does not go on by %lld ms", (long long)ms);
        return;
    }
    n_steps = n_steps < 1 ? 1 : n_steps > MAX_STEPS ? MAX_STEPS : n_steps;
    for (int64_t i = 0; i < n_steps; i++) {
        kinf__clock_advance(ms / n_steps + (i < ms % n_steps));
        nanosleep(&pause, NULL);
    }
}

/* --- leadership --- */

int kinf_fake_take_lease(struct kinf_fake *fake, const char *key, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fake, key);

    kinf_auto_object const struct kinf_object *lease = NULL;
    int64_t n_transitions = 0, duration_s = 15;
    char name_space[KINF_NAME_MAX], time[KINF__RFC3339_SIZE], manifest[1024];
    const char *name = kinf__object_key_split(key, name_space);
    struct kinf_error own = KINF_ERROR_INIT; /* it may be new, which is no error */
    int failed = kinf_fake_get(fake, "leases.coordination.k8s.io", key, &lease, &own);

    if (failed < 0 && failed != KINF_ERR_NOT_FOUND) {
        if (err != NULL)
            *err = own;
        return failed;
    }
    if (lease != NULL) {
        (void)!kinf_object_get_int64(lease, "spec.leaseTransitions", &n_transitions);
        (void)!kinf_object_get_int64(lease, "spec.leaseDurationSeconds", &duration_s);
    }
    kinf__rfc3339_write(kinf__clock_wall_ms() / 1000, (int)(kinf__clock_now_ns() / 1000 % 1000000),
                        6, time);
    snprintf(manifest, sizeof manifest,
             "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: '%s', namespace: "
             "'%s'}, spec: {holderIdentity: another, leaseDurationSeconds: %lld, leaseTransitions: "
             "%lld, acquireTime: '%s', renewTime: '%s'}}",
             name, name_space, (long long)duration_s, (long long)n_transitions + 1, time, time);
    return kinf_fake_put(fake, manifest, err);
}

/* --- settling --- */

int64_t kinf__fake_real_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void kinf__fake_nap(void)
{
    const struct timespec pause = { 0, LOOK_NS };

    nanosleep(&pause, NULL);
}

/* What somebody who settles has seen. */
struct look {
    uint64_t told;                       /* the version that every watch was told last */
    const struct kinf_type *informer_of; /* who is not through; NULL: somebody else */
    char controller[128];                /* likewise; "" */
};

/* Makes every watch say how far it is, so that those are heard of too whom nothing concerns. */
static void tell_version(struct kinf_fake *fake)
{
    struct kinf__store *store = kinf__sim_store(fake->sim);

    kinf__store_lock(store);
    kinf__store_catch_up(store);
    kinf__store_unlock(store);
    kinf__server_want_bookmarks(kinf__sim_server(fake->sim));
}

/* Whether all informers have handled what there is up to `version`. */
static bool have_seen(struct kinf_fake *fake, uint64_t version, struct look *look)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)version);
    look->informer_of = NULL;
    kinf__mutex_lock(&fake->client->users_lock);
    KINF__LIST_FOR_EACH (node, &fake->client->users) {
        struct kinf_informer *informer = KINF__LIST_ENTRY(node, struct kinf_informer, client_node);

        if (look->informer_of == NULL && !kinf__informer_is_settled(informer, text))
            look->informer_of = informer->type;
    }
    kinf__mutex_unlock(&fake->client->users_lock);
    return look->informer_of == NULL;
}

/* When the first controller has something to do: kinf__controller_due_ms(). */
static int64_t controllers_due_ms(struct kinf_fake *fake, struct look *look)
{
    int64_t due_ms = KINF__NEVER_MS;

    look->controller[0] = '\0';
    kinf__mutex_lock(&fake->client->controllers_lock);
    KINF__LIST_FOR_EACH (node, &fake->client->controllers) {
        struct kinf_controller *controller =
            KINF__LIST_ENTRY(node, struct kinf_controller, client_node);
        int64_t its_ms = kinf__controller_due_ms(controller);

        if (its_ms < due_ms)
            snprintf(look->controller, sizeof look->controller, "%s", controller->name);
        due_ms = its_ms < due_ms ? its_ms : due_ms;
    }
    kinf__mutex_unlock(&fake->client->controllers_lock);
    return due_ms;
}

/* When something is to be done; 0: now. Whoever was not through when asked may have written before
 * the next one was: then there is another version at the end. */
static int64_t look_around(struct kinf_fake *fake, struct look *look)
{
    const struct kinf__store *store = kinf__sim_store(fake->sim);
    uint64_t version = kinf__store_version(store);
    int64_t due_ms, server_due_ms;

    if (kinf__sim_due_ms(fake->sim) == 0)
        return 0;
    if (version != look->told)
        tell_version(fake);
    look->told = version;
    if (!have_seen(fake, version, look))
        return 0;
    due_ms = controllers_due_ms(fake, look);
    server_due_ms = kinf__sim_due_ms(fake->sim);
    if (kinf__store_version(store) != version)
        return 0;
    return due_ms < server_due_ms ? due_ms : server_due_ms;
}

static int fail_unsettled(const struct look *look, struct kinf_error *err)
{
    if (look->informer_of != NULL)
        return kinf__error_set(err, KINF_ERR_TIMEOUT,
                               "the informer of %s, or one of its handlers, is not through",
                               look->informer_of->resource);
    if (look->controller[0] != '\0')
        return kinf__error_set(err, KINF_ERR_TIMEOUT, "the controller %s is not through",
                               look->controller);
    return kinf__error_set(err, KINF_ERR_TIMEOUT, "objects are written all the time");
}

/* To what is due then, or, if something is under way and does not end, a second: it may wait for a
 * time that no queue knows of. Never beyond `until_ms`. */
static void let_time_go(struct kinf_fake *fake, int64_t due_ms, int64_t until_ms)
{
    int64_t now_ms = kinf__clock_now_ms(), to_ms = due_ms != 0 ? due_ms : now_ms + LEAP_MS;

    to_ms = to_ms < until_ms ? to_ms : until_ms;
    if (to_ms > now_ms)
        kinf_fake_advance(fake, to_ms - now_ms < LEAP_MS ? to_ms - now_ms : LEAP_MS);
}

int kinf_fake_settle_ahead(struct kinf_fake *fake, int64_t ahead_ms, int64_t timeout_ms,
                           struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fake);

    int64_t deadline_ms = kinf__clock_add_ms(kinf__fake_real_ms(), timeout_ms);
    int64_t until_ms = kinf__clock_add_ms(kinf__clock_now_ms(), ahead_ms);
    int64_t busy_since_ms = kinf__fake_real_ms(), real_ms;
    struct look look = { .told = 0 };

    for (;;) {
        int64_t due_ms = look_around(fake, &look);

        int acted = fake->on_look != NULL ? fake->on_look(fake->look_ctx, err) : 0;

        if (acted > 0) {
            until_ms = kinf__clock_add_ms(kinf__clock_now_ms(), ahead_ms);
            continue;
        }
        if (acted < 0 || due_ms > until_ms || due_ms == KINF__NEVER_MS)
            return acted;
        real_ms = kinf__fake_real_ms();
        if (real_ms >= deadline_ms)
            return fail_unsettled(&look, err);
        if (due_ms != 0 || real_ms - busy_since_ms >= STALL_MS) {
            let_time_go(fake, due_ms, until_ms);
            busy_since_ms = real_ms;
        }
        kinf__fake_nap();
    }
}

int kinf_fake_settle(struct kinf_fake *fake, int64_t timeout_ms, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fake);
    return kinf_fake_settle_ahead(fake, 0, timeout_ms, err);
}
