/*
 * The call rules of kinformer/informer.h: each function from each place of the table. A call that
 * waited for ever would be ended by the alarm.
 */
#include <kinformer/informer.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define PATIENCE_MS 60000
#define ALARM_S     120

static const char script[] =
    "exchange once\nmatch GET /api/v1/pods !watch\nfailure 500 InternalError down\n"
    "exchange always\nmatch GET /api/v1/pods !watch\nstatus 200\n"
    "event {\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"10\"},"
    "\"items\":[{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\",\"uid\":\"u\","
    "\"resourceVersion\":\"3\"}}]}\n"
    "exchange always\nmatch GET /api/v1/pods watch=1\nstatus 200\nstall forever\n";

/* X(enumerator, name) */
#define PLACES(X)                                                                                  \
    X(NOT_STARTED, "not started")                                                                  \
    X(RUNNING, "running")                                                                          \
    X(STOPPED, "stopped")                                                                          \
    X(HANDLER, "own handler")                                                                      \
    X(TRANSFORM, "own transform")                                                                  \
    X(INDEX_FUNCTION, "own index function")                                                        \
    X(WATCH_ERROR, "own on_watch_error")                                                           \
    X(ADDED_INDEX, "index function of an index added later")

enum place {
#define X(place, name) place,
    PLACES(X)
#undef X
        N_PLACES
};

static const char *const place_names[] = {
#define X(place, name) name,
    PLACES(X)
#undef X
};

struct scene {
    struct kinf_informer *informer;
    kinf_handler_id handler;
    enum place place;
    int (*call)(struct scene *scene);
    /* atomic */
    _Atomic(bool) has_called;
    _Atomic(int) result; /* 1: not called yet */
};

/* --- the calls --- */

static int call_start(struct scene *scene)
{
    return kinf_informer_start(scene->informer, NULL);
}

static int call_stop(struct scene *scene)
{
    return kinf_informer_stop(scene->informer, NULL);
}

/* Where it is allowed it is what the test ends with. */
static int call_free(struct scene *scene)
{
    if (scene->place >= HANDLER)
        kinf_informer_free(scene->informer);
    return 0;
}

static int call_wait_synced(struct scene *scene)
{
    return kinf_informer_wait_synced(scene->informer, scene->place == NOT_STARTED ? 0 : PATIENCE_MS,
                                     NULL);
}

static int call_wait_for_rv(struct scene *scene)
{
    return kinf_informer_wait_for_rv(scene->informer, "10",
                                     scene->place == NOT_STARTED ? 0 : PATIENCE_MS, NULL);
}

static int call_wait_for_a_later_rv(struct scene *scene)
{
    return kinf_informer_wait_for_rv(scene->informer, "99",
                                     scene->place == STOPPED ? PATIENCE_MS : 0, NULL);
}

static void ignore_change(const struct kinf_object *old, const struct kinf_object *object,
                          void *ctx)
{
    (void)old;
    (void)object;
    (void)ctx;
}

static int call_add_handler(struct scene *scene)
{
    const struct kinf_handler handler = { .on_change = ignore_change };
    kinf_handler_id id;

    return kinf_informer_add_handler(scene->informer, &handler, &id, NULL);
}

static int call_remove_handler(struct scene *scene)
{
    kinf_informer_remove_handler(scene->informer, scene->handler);
    kinf_informer_remove_handler(scene->informer, 999);
    return 0;
}

static int call_dispatch(struct scene *scene)
{
    return kinf_informer_dispatch(scene->informer, 1, NULL, NULL);
}

static int call_fd(struct scene *scene)
{
    int fd;

    return kinf_informer_fd(scene->informer, &fd, NULL);
}

static int call_add_index(struct scene *scene)
{
    const struct kinf_index index = { .name = "later", .path = "spec.nodeName" };

    return kinf_indexer_add_indices(kinf_informer_indexer(scene->informer), &index, 1, NULL);
}

static int call_readers(struct scene *scene)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf_indexer_snapshot(kinf_informer_indexer(scene->informer));
    struct kinf_informer_status status;
    struct kinf_handler_status handler_status;
    char rv[64], *dump;
    int r;

    kinf_informer_status(scene->informer, &status);
    (void)kinf_informer_has_synced(scene->informer);
    (void)kinf_informer_handler_has_synced(scene->informer, scene->handler);
    r = kinf_informer_handler_status(scene->informer, scene->handler, &handler_status, NULL);
    if (r < 0 && r != KINF_ERR_NOT_FOUND)
        return r;
    r = kinf_informer_resource_version(scene->informer, rv, sizeof rv);
    if (r < 0)
        return r;
    r = kinf_informer_dump(scene->informer, &dump, NULL);
    if (r == 0)
        free(dump);
    return r;
}

/* --- the places --- */

static void visit(struct scene *scene, enum place place)
{
    if (scene->place == place && !atomic_exchange(&scene->has_called, true))
        atomic_store(&scene->result, scene->call(scene));
}

static void on_add(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    (void)object;
    (void)in_initial_list;
    visit(ctx, HANDLER);
}

static int transform(const struct kinf_object *object, const struct kinf_object **ret_object,
                     void *ctx)
{
    visit(ctx, TRANSFORM);
    *ret_object = kinf_object_ref(object);
    return 0;
}

static int index_function(const struct kinf_object *object, struct kinf_index_values *values,
                          void *ctx)
{
    (void)object;
    (void)values;
    visit(ctx, INDEX_FUNCTION);
    return 0;
}

static int added_index_function(const struct kinf_object *object, struct kinf_index_values *values,
                                void *ctx)
{
    (void)object;
    (void)values;
    visit(ctx, ADDED_INDEX);
    return 0;
}

static void add_index(struct scene *scene)
{
    const struct kinf_index index = { .name = "added",
                                      .function = added_index_function,
                                      .ctx = scene };

    assert_int_equal(
        kinf_indexer_add_indices(kinf_informer_indexer(scene->informer), &index, 1, NULL), 0);
}

static void on_watch_error(const struct kinf_error *err, void *ctx)
{
    (void)err;
    visit(ctx, WATCH_ERROR);
}

static void make(struct scene *scene, struct kinf_client *client)
{
    const struct kinf_index index = { .name = "f", .function = index_function, .ctx = scene };
    const struct kinf_handler handler = { .on_add = on_add, .ctx = scene };
    const struct kinf_informer_options options = { .size = sizeof options,
                                                   .resource = "pods",
                                                   .indices = &index,
                                                   .n_indices = 1,
                                                   .transform = transform,
                                                   .transform_ctx = scene,
                                                   .on_watch_error = on_watch_error,
                                                   .on_watch_error_ctx = scene,
                                                   .initial = KINF_INITIAL_LIST,
                                                   .backoff_base_ms = 1,
                                                   .backoff_max_ms = 10 };

    assert_int_equal(kinf_informer_new(client, &options, &scene->informer, NULL), 0);
    assert_int_equal(kinf_informer_add_handler(scene->informer, &handler, &scene->handler, NULL),
                     0);
}

static void wait_until_called(struct scene *scene)
{
    const struct timespec delay = { .tv_nsec = 1000000 };

    while (atomic_load(&scene->result) > 0)
        nanosleep(&delay, NULL);
}

static int result_of(int (*call)(struct scene *scene), enum place place)
{
    const struct replay_options options = { .script = script, .plain = true };
    struct scene scene = { .place = place, .call = call, .result = 1 };
    struct kinf_client *client;
    struct replay *server;

    assert_int_equal(replay_start(&options, &server, NULL), 0);
    client = test_client_of(replay_port(server), NULL);
    make(&scene, client);
    visit(&scene, NOT_STARTED);
    if (place != NOT_STARTED) {
        assert_int_equal(kinf_informer_start(scene.informer, NULL), 0);
        assert_int_equal(kinf_informer_wait_synced(scene.informer, PATIENCE_MS, NULL), 0);
    }
    visit(&scene, RUNNING);
    if (place == ADDED_INDEX)
        add_index(&scene);
    if (place == STOPPED)
        assert_int_equal(kinf_informer_stop(scene.informer, NULL), 0);
    visit(&scene, STOPPED);
    wait_until_called(&scene);
    kinf_informer_free(scene.informer);
    kinf_client_free(client);
    replay_stop(server);
    return atomic_load(&scene.result);
}

/* --- the table --- */

#define STATE   KINF_ERR_STATE
#define ENDED   KINF_ERR_STOPPED
#define TIMEOUT KINF_ERR_TIMEOUT

static void every_call_from_every_place_does_what_the_table_says(void **state)
{
    static const struct {
        const char *name;
        int (*call)(struct scene *scene);
        int expected[N_PLACES];
    } rows[] = {
        { "start", call_start, { 0, STATE, STATE, STATE, STATE, STATE, STATE, STATE } },
        { "stop", call_stop, { 0, 0, 0, STATE, STATE, STATE, STATE, STATE } },
        { "free", call_free, { 0, 0, 0, 0, 0, 0, 0, 0 } },
        { "wait_synced", call_wait_synced, { TIMEOUT, 0, 0, 0, STATE, STATE, STATE, STATE } },
        { "wait_for_rv", call_wait_for_rv, { TIMEOUT, 0, 0, 0, STATE, STATE, STATE, STATE } },
        { "wait_for_rv, not in",
          call_wait_for_a_later_rv,
          { TIMEOUT, TIMEOUT, ENDED, TIMEOUT, STATE, STATE, STATE, STATE } },
        { "add_handler", call_add_handler, { 0, 0, ENDED, 0, 0, 0, 0, 0 } },
        { "remove_handler", call_remove_handler, { 0, 0, 0, 0, 0, 0, 0, 0 } },
        { "dispatch", call_dispatch, { 0, 0, ENDED, STATE, STATE, STATE, STATE, STATE } },
        { "fd", call_fd, { 0, 0, 0, 0, 0, 0, 0, 0 } },
        { "add indices", call_add_index, { 0, 0, 0, 0, 0, STATE, 0, STATE } },
        { "reading", call_readers, { 0, 0, 0, 0, 0, 0, 0, 0 } },
    };

    (void)state;
    alarm(ALARM_S);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        for (enum place place = 0; place < N_PLACES; place++) {
            int result = result_of(rows[i].call, place);

            if (result != rows[i].expected[place])
                fail_msg("%s, %s: %d instead of %d", rows[i].name, place_names[place], result,
                         rows[i].expected[place]);
        }
    }
    alarm(0);
}

/* --- informers that stop each other --- */

struct pair {
    struct kinf_informer *informers[2];
    /* atomic */
    _Atomic(int) n_there; /* callbacks that run */
    _Atomic(int) n_done;
    _Atomic(int) n_refused;
};

struct side {
    struct pair *pair;
    int other;
};

static void stop_the_other(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    const struct timespec delay = { .tv_nsec = 1000000 };
    struct side *side = ctx;
    struct pair *pair = side->pair;

    (void)object;
    (void)in_initial_list;
    atomic_fetch_add(&pair->n_there, 1);
    while (atomic_load(&pair->n_there) < 2)
        nanosleep(&delay, NULL);
    if (kinf_informer_stop(pair->informers[side->other], NULL) == KINF_ERR_STATE)
        atomic_fetch_add(&pair->n_refused, 1);
    atomic_fetch_add(&pair->n_done, 1);
}

static void two_that_stop_each_other_do_not_wait_for_ever(void **state)
{
    const struct replay_options server_options = { .script = script, .plain = true };
    const struct timespec delay = { .tv_nsec = 1000000 };
    struct pair pair = { 0 };
    struct side sides[2] = { { &pair, 1 }, { &pair, 0 } };
    struct kinf_client *client;
    struct replay *server;

    (void)state;
    alarm(ALARM_S);
    assert_int_equal(replay_start(&server_options, &server, NULL), 0);
    client = test_client_of(replay_port(server), NULL);
    for (int i = 0; i < 2; i++) {
        const struct kinf_informer_options options = { .size = sizeof options,
                                                       .resource = "pods",
                                                       .handler = { .on_add = stop_the_other,
                                                                    .ctx = &sides[i] },
                                                       .initial = KINF_INITIAL_LIST,
                                                       .backoff_base_ms = 1,
                                                       .backoff_max_ms = 10 };

        assert_int_equal(kinf_informer_new(client, &options, &pair.informers[i], NULL), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(kinf_informer_start(pair.informers[i], NULL), 0);
    while (atomic_load(&pair.n_done) < 2)
        nanosleep(&delay, NULL);
    assert_int_equal(atomic_load(&pair.n_refused), 1);
    for (int i = 0; i < 2; i++)
        kinf_informer_free(pair.informers[i]);
    kinf_client_free(client);
    replay_stop(server);
    alarm(0);
}

/* --- an index that another informer's handler adds --- */

struct adding {
    struct kinf_informer *store;  /* of which the index is */
    struct kinf_informer *caller; /* whose handler adds it */
    /* atomic */
    _Atomic(int) n_refused;
    _Atomic(bool) is_done;
};

static int wait_and_stop(const struct kinf_object *object, struct kinf_index_values *values,
                         void *ctx)
{
    struct adding *adding = ctx;

    (void)object;
    (void)values;
    adding->n_refused +=
        kinf_informer_wait_for_rv(adding->store, "99", KINF_FOREVER, NULL) == KINF_ERR_STATE;
    adding->n_refused += kinf_informer_stop(adding->store, NULL) == KINF_ERR_STATE;
    adding->n_refused += kinf_informer_stop(adding->caller, NULL) == KINF_ERR_STATE;
    return 0;
}

static void add_index_here(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    struct adding *adding = ctx;
    const struct kinf_index index = { .name = "added", .function = wait_and_stop, .ctx = adding };

    (void)object;
    (void)in_initial_list;
    if (kinf_indexer_add_indices(kinf_informer_indexer(adding->store), &index, 1, NULL) < 0)
        abort();
    adding->is_done = true;
}

static void an_index_function_in_a_handler_keeps_the_rules_of_both(void **state)
{
    const struct replay_options server_options = { .script = script, .plain = true };
    const struct timespec delay = { .tv_nsec = 1000000 };
    struct adding adding = { 0 };
    struct kinf_informer_options options = { .size = sizeof options,
                                             .resource = "pods",
                                             .initial = KINF_INITIAL_LIST,
                                             .backoff_base_ms = 1,
                                             .backoff_max_ms = 10 };
    struct kinf_client *client;
    struct replay *server;

    (void)state;
    alarm(ALARM_S);
    assert_int_equal(replay_start(&server_options, &server, NULL), 0);
    client = test_client_of(replay_port(server), NULL);
    assert_int_equal(kinf_informer_new(client, &options, &adding.store, NULL), 0);
    options.handler = (struct kinf_handler){ .on_add = add_index_here, .ctx = &adding };
    assert_int_equal(kinf_informer_new(client, &options, &adding.caller, NULL), 0);
    assert_int_equal(kinf_informer_start(adding.store, NULL), 0);
    assert_int_equal(kinf_informer_wait_synced(adding.store, PATIENCE_MS, NULL), 0);
    assert_int_equal(kinf_informer_start(adding.caller, NULL), 0);
    while (!adding.is_done)
        nanosleep(&delay, NULL);
    assert_int_equal(adding.n_refused, 3);
    kinf_informer_free(adding.caller);
    kinf_informer_free(adding.store);
    kinf_client_free(client);
    replay_stop(server);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_from_every_place_does_what_the_table_says),
        cmocka_unit_test(two_that_stop_each_other_do_not_wait_for_ever),
        cmocka_unit_test(an_index_function_in_a_handler_keeps_the_rules_of_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
