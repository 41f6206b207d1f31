/*
 * examples/configmap-sync as it is, its main() and all: with each of its requests failing in turn,
 * and under random changes against what its result must be.
 *
 * main() runs on a thread; kinf_controller_run() is replaced by one that the test can end, and the
 * client by the fake's.
 */
#include <kinformer/kinformer.h>
#include <kinformer/testing.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit/test.h"

static struct kinf_fake *fake;
static struct kinf_client *the_client;
static _Atomic(bool) is_running, is_to_end;

static void nap(long ms)
{
    const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&pause, NULL);
}

static int use_client(struct kinf_client **ret_client)
{
    *ret_client = the_client;
    return 0;
}

static int run_until_told(struct kinf_controller *controller, struct kinf_error *err)
{
    int failed = kinf_controller_start(controller, err);

    is_running = true;
    while (failed == 0 && !is_to_end)
        nap(1);
    return failed == 0 ? kinf_controller_stop(controller, err) : failed;
}

int sync_main(void);
#define main                                  sync_main
#define kinf_client_new(options, client, err) use_client(client)
#undef kinf_auto_client
#define kinf_auto_client
#define kinf_controller_run(controller, ms, err) run_until_told(controller, err)
#include "../../examples/configmap-sync/main.c"
#undef main
#undef kinf_controller_run

/* --- the program --- */

static pthread_t program;

static void *run_program(void *ctx)
{
    (void)ctx;
    assert_int_equal(sync_main(), 0);
    return NULL;
}

static int start_program(struct kinf_client *client, void *ctx, struct kinf_error *err)
{
    (void)ctx;
    (void)err;
    the_client = client;
    is_running = is_to_end = false;
    pthread_create(&program, NULL, run_program, NULL);
    while (!is_running)
        nap(1);
    return 0;
}

static void stop_program(void *ctx)
{
    (void)ctx;
    is_to_end = true;
    pthread_join(program, NULL);
}

static void start(void)
{
    (void)start_program(kinf_fake_client(fake), NULL, NULL);
}

static void stop(void)
{
    stop_program(NULL);
}

static void must(int failed, const struct kinf_error *err)
{
    if (failed < 0)
        print_error("%s\n", err->message);
    assert_int_equal(failed, 0);
}

/* Until nothing is to be done but what comes each minute. */
static void settle(void)
{
    struct kinf_error err = KINF_ERROR_INIT;

    must(kinf_fake_settle_ahead(fake, 50000, 60000, &err), &err);
}

/* --- the cluster --- */

static int begin(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    (void)state;
    must(kinf_fake_new(NULL, &fake, &err), &err);
    return 0;
}

static int end(void **state)
{
    (void)state;
    kinf_fake_free(fake);
    return 0;
}

static void put(const char *form, ...) KINF_PRINTF(1, 2);
static void put(const char *form, ...)
{
    struct kinf_error err = KINF_ERROR_INIT;
    char manifest[1024];
    va_list args;

    va_start(args, form);
    vsnprintf(manifest, sizeof manifest, form, args);
    va_end(args);
    must(kinf_fake_put(fake, manifest, &err), &err);
}

static void put_namespace(const char *name)
{
    put("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name);
}

static void put_source(const char *name_space, const char *name, const char *value)
{
    put("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, labels: {sync: "
        "'true'}}, data: {value: '%s'}}",
        name, name_space, value);
}

static void patch(const char *name_space, const char *name, const char *json)
{
    struct kinf_error err = KINF_ERROR_INIT;
    char target[256];
    int failed;

    snprintf(target, sizeof target, "/api/v1/namespaces/%s/configmaps/%s", name_space, name);
    failed = kinf_client_request_raw(kinf_fake_client(fake), "PATCH", target, kinf_str_from(json),
                                     "application/merge-patch+json", NULL, &err);
    must(failed == KINF_ERR_NOT_FOUND ? 0 : failed, &err);
}

static void delete (const char *resource, const char *key)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed = kinf_fake_delete(fake, resource, key, &err);

    must(failed == KINF_ERR_NOT_FOUND ? 0 : failed, &err);
}

/* data.value, or "-". */
static void expect_data(const char *name_space, const char *name, const char *value)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    char key[256], found[64] = "-";

    snprintf(key, sizeof key, "%s/%s", name_space, name);
    if (kinf_fake_get(fake, "configmaps", key, &object, NULL) == 0)
        (void)!kinf_object_get_string(object, "data.value", found, sizeof found);
    if (strcmp(found, value) != 0)
        fail_msg("%s is \"%s\", not \"%s\"", key, found, value);
}

/* --- the program does what it says --- */

static void it_copies_and_takes_away(void **state)
{
    (void)state;
    put_namespace("one");
    put_namespace("two");
    put_source("one", "a", "1");
    start();
    settle();
    expect_data("two", "a", "1");
    expect_data("default", "a", "1");
    put_source("one", "a", "2");
    put_namespace("three");
    settle();
    expect_data("two", "a", "2");
    expect_data("three", "a", "2");
    /* A key of the data that goes, goes. */
    patch("one", "a", "{\"data\":{\"value\":null,\"more\":\"x\"}}");
    settle();
    expect_data("two", "a", "-");
    patch("one", "a", "{\"data\":{\"value\":\"3\"}}");
    settle();
    expect_data("two", "a", "3");
    delete ("configmaps", "two/a");
    settle();
    expect_data("two", "a", "3");
    patch("one", "a", "{\"metadata\":{\"labels\":{\"sync\":null}}}");
    settle();
    expect_data("two", "a", "-");
    expect_data("one", "a", "3");
    patch("one", "a", "{\"metadata\":{\"labels\":{\"sync\":\"true\"}}}");
    settle();
    expect_data("two", "a", "3");
    delete ("configmaps", "one/a");
    settle();
    expect_data("one", "a", "-");
    expect_data("two", "a", "-");
    stop();
}

static void a_foreign_one_is_left_alone_until_it_goes(void **state)
{
    (void)state;
    put_namespace("one");
    put_namespace("two");
    put("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: two}, data: {value: "
        "foreign}}");
    put_source("one", "a", "1");
    start();
    settle();
    expect_data("two", "a", "foreign");
    expect_data("default", "a", "1");
    put_source("one", "a", "2");
    settle();
    expect_data("two", "a", "foreign");
    expect_data("default", "a", "2");
    /* Another source of the same name: who came first has it. */
    put_source("two", "a", "other");
    settle();
    expect_data("one", "a", "2");
    expect_data("two", "a", "other");
    expect_data("default", "a", "2");
    delete ("configmaps", "one/a");
    settle();
    kinf_fake_advance(fake, 61000);
    settle();
    expect_data("one", "a", "other");
    expect_data("default", "a", "other");
    stop();
}

/* --- each of its requests fails --- */

static int prepare(struct kinf_fake *its_fake, void *ctx, struct kinf_error *err)
{
    (void)ctx;
    (void)err;
    fake = its_fake;
    put_namespace("one");
    put_namespace("two");
    put_source("one", "stays", "1");
    put_source("one", "goes", "1");
    put_source("two", "leaves", "1");
    return 0;
}

static int change_all(struct kinf_fake *its_fake, void *ctx, struct kinf_error *err)
{
    static const char *const names[] = { "default", "one", "two", "three" };
    int failed = kinf_fake_settle_ahead(its_fake, 50000, 60000, err);

    (void)ctx;
    if (failed < 0)
        return failed;
    put_source("one", "stays", "2");
    put_namespace("three");
    delete ("configmaps", "one/goes");
    put("{apiVersion: v1, kind: ConfigMap, metadata: {name: leaves, namespace: two}, data: {value: "
        "'1'}}");
    failed = kinf_fake_settle_ahead(its_fake, 50000, 60000, err);
    for (size_t i = 0; failed == 0 && i < 4; i++) {
        expect_data(names[i], "stays", "2");
        expect_data(names[i], "goes", "-");
        expect_data(names[i], "leaves", i == 2 ? "1" : "-");
    }
    return failed;
}

static void sweep(unsigned faults)
{
#ifdef __SANITIZE_THREAD__
    faults &= -faults; /* the first: threads meet alike whatever becomes of a request */
#endif
    const struct kinf_sweep_options options = { .size = sizeof options,
                                                .start = start_program,
                                                .stop = stop_program,
                                                .before = prepare,
                                                .scenario = change_all,
                                                .lease = "default/configmap-sync",
                                                .faults = faults };
    struct kinf_sweep_result result;
    struct kinf_error err = KINF_ERROR_INIT;

    must(kinf_sweep(&options, &result, &err), &err);
    if (result.report != NULL)
        fail_msg("%s", result.report);
    assert_true(result.n_requests >= 20 && result.n_runs >= 20);
}

static void a_request_that_fails_changes_nothing_in_the_end(void **state)
{
    (void)state;
    sweep(KINF_SWEEP_REFUSED | KINF_SWEEP_CONFLICT | KINF_SWEEP_ANSWER_LOST);
}

static void a_program_that_ends_at_a_request_changes_nothing_in_the_end(void **state)
{
    (void)state;
    sweep(KINF_SWEEP_KILLED | KINF_SWEEP_KILLED_BEHIND);
}

static void a_term_that_ends_at_a_request_changes_nothing_in_the_end(void **state)
{
    (void)state;
    sweep(KINF_SWEEP_LEAD_LOST);
}

/* --- random changes --- */

#define N_SPACES  4
#define N_SOURCES 4

struct model {
    bool has_space[N_SPACES];
    int value[N_SPACES][N_SOURCES]; /* of the source in a namespace; 0: none */
    bool has_label[N_SPACES][N_SOURCES];
};

/* Each name is a source in one namespace at most, so that there is one right end state. */
static void change(struct model *model, struct test_random *random, bool may_lose_label)
{
    size_t n = test_random_below(random, N_SOURCES), s = n % (N_SPACES - 1);
    char space[8], name[8], key[32];
    struct kinf_error err = KINF_ERROR_INIT;

    snprintf(space, sizeof space, "s%zu", s);
    snprintf(name, sizeof name, "c%zu", n);
    snprintf(key, sizeof key, "%s/%s", space, name);
    switch (test_random_below(random, 7)) {
    case 0:
        delete ("configmaps", key);
        model->value[s][n] = 0;
        break;
    case 1:
        if (model->value[s][n] == 0 || !may_lose_label)
            break;
        patch(space, name, "{\"metadata\":{\"labels\":{\"sync\":null}}}");
        model->has_label[s][n] = false;
        break;
    case 2: /* somebody takes a copy away, or writes to it */
        snprintf(key, sizeof key, "s%zu/%s", (s + 1) % N_SPACES, name);
        delete ("configmaps", key);
        break;
    case 3:
        snprintf(space, sizeof space, "s%zu", (s + 1) % N_SPACES);
        patch(space, name, "{\"data\":{\"value\":\"wrong\",\"more\":\"x\"}}");
        break;
    case 4: /* the namespace that has no source comes and goes */
        model->has_space[N_SPACES - 1] = !model->has_space[N_SPACES - 1];
        snprintf(space, sizeof space, "s%d", N_SPACES - 1);
        if (model->has_space[N_SPACES - 1]) {
            /* One of this name that is going must be gone. */
            must(kinf_fake_settle(fake, 60000, &err), &err);
            put_namespace(space);
        } else
            delete ("namespaces", space);
        break;
    default: {
        char value[16];
        kinf_auto_object const struct kinf_object *object = NULL;

        /* One that is being deleted is not written to. */
        if (kinf_fake_get(fake, "configmaps", key, &object, NULL) == 0 &&
            kinf_object_has(object, "metadata.deletionTimestamp"))
            break;
        model->value[s][n] = 1 + (int)test_random_below(random, 1000);
        model->has_label[s][n] = true;
        snprintf(value, sizeof value, "%d", model->value[s][n]);
        if (object == NULL) {
            put_source(space, name, value);
        } else {
            char json[128];

            snprintf(json, sizeof json,
                     "{\"metadata\":{\"labels\":{\"sync\":\"true\"}},\"data\":{\"value\":\"%s\"}}",
                     value);
            patch(space, name, json);
        }
    }
    }
}

static void check(const struct model *model)
{
    for (size_t n = 0; n < N_SOURCES; n++) {
        size_t home = n % (N_SPACES - 1);
        bool is_synced = model->value[home][n] != 0 && model->has_label[home][n];

        for (size_t s = 0; s < N_SPACES; s++) {
            char space[8], name[8], value[16] = "-";

            snprintf(space, sizeof space, "s%zu", s);
            snprintf(name, sizeof name, "c%zu", n);
            if ((s == home && model->value[home][n] != 0) || (is_synced && model->has_space[s]))
                snprintf(value, sizeof value, "%d", model->value[home][n]);
            expect_data(space, name, value);
        }
    }
}

static void random_changes_end_as_they_must(void **state)
{
    struct test_random random = test_random_init(__func__);
    struct model model = { .has_space = { true, true, true, false } };

    (void)state;
    put_namespace("s0");
    put_namespace("s1");
    put_namespace("s2");
    start();
    for (size_t round = 0; round < test_rounds(80); round++) {
        for (size_t i = test_random_below(&random, 12); i-- > 0;)
            change(&model, &random, true);
        if (test_random_below(&random, 8) == 0) {
            /* A label that is lost while no program runs is seen by nobody. */
            settle();
            for (size_t i = test_random_below(&random, 6); i-- > 0;)
                change(&model, &random, false);
            stop();
            start();
        }
        settle();
        check(&model);
    }
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, begin, end)
        T(it_copies_and_takes_away),
        T(a_foreign_one_is_left_alone_until_it_goes),
        cmocka_unit_test(a_request_that_fails_changes_nothing_in_the_end),
        cmocka_unit_test(a_program_that_ends_at_a_request_changes_nothing_in_the_end),
        cmocka_unit_test(a_term_that_ends_at_a_request_changes_nothing_in_the_end),
        T(random_changes_end_as_they_must),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
