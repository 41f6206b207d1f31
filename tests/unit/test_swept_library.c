/*
 * Whole programs of the library in which one allocation fails, or one thread cannot be started,
 * wherever that is: an error, or it is tried again and comes out right. See sweep.h.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "serve/endpoint.h"
#include "sim/fake.h"
#include "unit/sweep.h"
#include "unit/swept_fake.h"
#include "unit/test.h"

#define N_NAMES 6
#define STEP_MS 250
#define N_STEPS 4000

/* --- an informer --- */

/* What a handler knows by what it is told; a value each letter. */
struct told {
    pthread_mutex_t mutex;
    char values[N_NAMES][16];
    bool is_done;
};

static void note(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct told *told = ctx;
    size_t i = (size_t)(kinf_object_name(object != NULL ? object : old)[0] - 'a');

    pthread_mutex_lock(&told->mutex);
    swept_value(object, told->values[i]);
    pthread_mutex_unlock(&told->mutex);
}

static void note_done(void *ctx)
{
    struct told *told = ctx;

    pthread_mutex_lock(&told->mutex);
    told->is_done = true;
    pthread_mutex_unlock(&told->mutex);
}

static struct kinf_handler handler_of(struct told *told)
{
    return (struct kinf_handler){ .on_change = note, .on_done = note_done, .ctx = told };
}

static void check_told(struct kinf_fake *fake, struct told *told)
{
    for (size_t i = 0; i < N_NAMES; i++) {
        const char name[] = { (char)('a' + i), '\0' };

        pthread_mutex_lock(&told->mutex);
        SWEPT_CHECK(strcmp(told->values[i], swept_fake_value(fake, name)) == 0);
        pthread_mutex_unlock(&told->mutex);
    }
}

static void check_store(struct kinf_fake *fake, struct kinf_informer *informer)
{
    struct kinf_lister lister = kinf_informer_lister(informer, "default");

    for (size_t i = 0; i < N_NAMES; i++) {
        const char name[] = { (char)('a' + i), '\0' };
        kinf_auto_object const struct kinf_object *object = NULL;
        char value[16];

        (void)!kinf_lister_get(&lister, name, &object, NULL);
        swept_value(object, value);
        SWEPT_CHECK(strcmp(value, swept_fake_value(fake, name)) == 0);
    }
}

/* What a program asks of an informer that runs. */
static void ask(struct kinf_informer *informer)
{
    struct kinf_lister lister = kinf_informer_lister(informer, NULL);
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_object_list list;
    char *text = NULL;
    int failed;

    SWEPT(failed = kinf_lister_list(&lister, NULL, &list, &err));
    if (SWEPT_OK(failed, &err))
        kinf_object_list_release(&list);
    SWEPT(failed = kinf_informer_dump(informer, &text, &err));
    (void)SWEPT_OK(failed, &err);
    free(text);
}

/* One that comes when the store is full, and goes. */
static void add_and_remove_handler(struct kinf_fake *fake, struct kinf_informer *informer)
{
    struct told told = { .mutex = PTHREAD_MUTEX_INITIALIZER };
    const struct kinf_handler handler = handler_of(&told);
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_handler_id id;
    int failed;

    SWEPT(failed = kinf_informer_add_handler(informer, &handler, &id, &err));
    if (!SWEPT_OK(failed, &err))
        return;
    swept_fake_put(fake, "e", "1");
    swept_fake_settle(fake);
    check_told(fake, &told);
    SWEPT(kinf_informer_remove_handler(informer, id));
    SWEPT_CHECK(told.is_done);
}

/* Lists, watches, and lists again since its version is too old. */
static void live(struct kinf_fake *fake, struct kinf_informer *informer, struct told *told)
{
    struct kinf_error err = KINF_ERROR_INIT;

    swept_fake_settle(fake);
    check_store(fake, informer);
    swept_fake_put(fake, "b", "2");
    swept_fake_put(fake, "c", "1");
    swept_fake_delete(fake, "a");
    swept_fake_settle(fake);
    check_store(fake, informer);
    check_told(fake, told);
    add_and_remove_handler(fake, informer);
    SWEPT_MUST(kinf_fake_fault(fake, "watch configmaps 410 times=1", &err), &err);
    kinf_fake_drop(fake);
    swept_fake_put(fake, "d", "1");
    swept_fake_delete(fake, "c");
    swept_fake_settle(fake);
    kinf_fake_clear_faults(fake);
    check_store(fake, informer);
    check_told(fake, told);
    ask(informer);
}

static void follow(struct kinf_informer_options *options)
{
    struct told told = { .mutex = PTHREAD_MUTEX_INITIALIZER };
    const struct kinf_index index = { .name = "byValue", .path = "data.value" };
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_fake *fake = swept_fake_new();
    struct kinf_informer *informer = NULL;
    int failed;

    swept_fake_put(fake, "a", "1");
    swept_fake_put(fake, "b", "1");
    options->resource = "configmaps";
    options->label_selector = "sync=true";
    options->handler = handler_of(&told);
    options->indices = &index;
    options->n_indices = 1;
    SWEPT(failed = kinf_informer_new(kinf_fake_client(fake), options, &informer, &err));
    if (SWEPT_OK(failed, &err)) {
        SWEPT(failed = kinf_informer_start(informer, &err));
        if (SWEPT_OK(failed, &err))
            live(fake, informer, &told);
    }
    SWEPT(kinf_informer_free(informer));
    SWEPT_CHECK(told.is_done == (informer != NULL));
    kinf_fake_free(fake);
}

static void follow_in_order(void)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    follow(&options);
}

static void follow_by_key(void)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    options.fifo_order = KINF_FIFO_KEYED;
    options.initial = KINF_INITIAL_WATCHLIST;
    options.compressed = true;
    follow(&options);
}

/* --- requests --- */

static const char kubeconfig[] =
    "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
    "contexts: [{name: c, context: {cluster: s, user: u, namespace: default}}]\n"
    "users: [{name: u, user: {token: t}}]\n"
    "clusters: [{name: s, cluster: {server: \"%s\"}}]\n";

/* Over TCP, as a kubeconfig names it. */
static struct kinf__endpoint *listen_at(struct kinf_fake *fake, char path[64])
{
    static const struct kinf__endpoint_options options = { 0 };
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__endpoint *endpoint;
    FILE *file;
    int fd;

    SWEPT_MUST(
        kinf__endpoint_start(kinf__sim_server(fake->sim), "127.0.0.1:0", &options, &endpoint, &err),
        &err);
    snprintf(path, 64, "/tmp/swept-XXXXXX");
    fd = mkstemp(path);
    SWEPT_CHECK(fd >= 0);
    file = fdopen(fd, "w");
    fprintf(file, kubeconfig, kinf__endpoint_url(endpoint));
    fclose(file);
    return endpoint;
}

static bool has_succeeded(int failed, const struct kinf_error *err, struct kinf_response *response,
                          const char *word)
{
    if (!SWEPT_OK(failed, err))
        return false;
    SWEPT_CHECK(strstr(response->body, word) != NULL);
    kinf_response_release(response);
    return true;
}

static void write_and_read(struct kinf_client *client)
{
    struct kinf_response response = KINF_RESPONSE_INIT;
    struct kinf_request request = KINF_REQUEST_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    int failed;

    SWEPT(failed = kinf_client_find_type(client, "deployments.apps", &request.type, &err));
    (void)SWEPT_OK(failed, &err);
    SWEPT(failed = kinf_client_find_type(client, "cm", &request.type, &err));
    if (!SWEPT_OK(failed, &err))
        return;
    request.verb = KINF_VERB_APPLY;
    request.name_space = "default";
    request.name = "a";
    request.field_manager = "sweep";
    request.body = KINF_STR("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                            "\"a\"},\"data\":{\"value\":\"1\"}}");
    SWEPT(failed = kinf_client_request(client, &request, &response, &err));
    (void)has_succeeded(failed, &err, &response, "\"value\":\"1\"");
    SWEPT(failed = kinf_client_request_raw(client, "GET", "/api/v1/configmaps?limit=5",
                                           (struct kinf_str){ NULL, 0 }, NULL, &response, &err));
    (void)has_succeeded(failed, &err, &response, "ConfigMapList");
}

static void send_requests(void)
{
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_fake *fake = swept_fake_new();
    struct kinf_client *client = NULL;
    struct kinf__endpoint *endpoint;
    char path[64];
    int failed;

    endpoint = listen_at(fake, path);
    options.kubeconfig = path;
    SWEPT(failed = kinf_client_new(&options, &client, &err));
    unlink(path);
    if (SWEPT_OK(failed, &err))
        write_and_read(client);
    SWEPT(kinf_client_free(client));
    kinf__endpoint_quiesce(endpoint);
    kinf__sim_stop(fake->sim);
    kinf__endpoint_free(endpoint);
    kinf_fake_free(fake);
}

/* --- a controller --- */

struct program {
    struct kinf_informer *sources, *copies;
    struct kinf_recorder *recorder;
    struct kinf_elector *elector;
    struct kinf_controller *controller;
};

/* A ConfigMap "SOURCE" of the namespace kube-system for each that is labelled. */
static int copy(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const struct kinf_object *source = kinf_call_object(call);
    struct program *program = ctx;
    struct kinf_str json;
    char value[16];
    int failed;

    if (source == NULL)
        return 0;
    swept_value(source, value);
    failed = kinf_json_format(&scratch, &json, err,
                              "{metadata:{labels:{copy:\"true\"},annotations:{owner:?s}},"
                              "data:{value:?s}}",
                              kinf_call_key(call), value);
    if (failed == 0)
        failed = kinf_call_apply(call, kinf_object_type(source), "kube-system",
                                 kinf_object_name(source), json, err);
    if (failed == 0)
        kinf_recorder_event(program->recorder, source, NULL, KINF_EVENT_NORMAL, "Copied", "Copy",
                            "value %s", value);
    return failed;
}

static int make_informer(struct kinf_client *client, const char *labels,
                         struct kinf_informer **ret_informer, struct kinf_error *err)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    options.resource = "configmaps";
    options.label_selector = labels;
    return kinf_informer_new(client, &options, ret_informer, err);
}

static int start(struct program *program, struct kinf_client *client, struct kinf_error *err)
{
    struct kinf_recorder_options recorder = KINF_RECORDER_OPTIONS_INIT;
    struct kinf_elector_options elector = KINF_ELECTOR_OPTIONS_INIT;
    struct kinf_controller_options controller = KINF_CONTROLLER_OPTIONS_INIT;
    int failed;

    recorder.controller = "example.com/copier";
    elector.name = "copier";
    elector.name_space = "default";
    elector.release_on_stop = true;
    controller.name = "copier";
    controller.reconcile = copy;
    controller.ctx = program;
    if ((failed = make_informer(client, "sync=true", &program->sources, err)) == 0 &&
        (failed = make_informer(client, "copy=true", &program->copies, err)) == 0 &&
        (failed = kinf_recorder_new(client, &recorder, &program->recorder, err)) == 0 &&
        (failed = kinf_elector_new(client, &elector, &program->elector, err)) == 0) {
        controller.informer = program->sources;
        controller.elector = program->elector;
        failed = kinf_controller_new(client, &controller, &program->controller, err);
    }
    if (failed == 0)
        failed = kinf_controller_watch(program->controller, program->copies, kinf_map_annotation,
                                       (void *)(uintptr_t) "owner", err);
    return failed < 0 ? failed : kinf_controller_start(program->controller, err);
}

static void stop(struct program *program)
{
    kinf_controller_free(program->controller);
    kinf_elector_free(program->elector);
    kinf_recorder_free(program->recorder);
    kinf_informer_free(program->sources);
    kinf_informer_free(program->copies);
}

static void check_copy(struct kinf_fake *fake, const char *name, const char *expected)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    char key[64], value[16];

    snprintf(key, sizeof key, "kube-system/%s", name);
    (void)!kinf_fake_get(fake, "configmaps", key, &object, NULL);
    swept_value(object, value);
    SWEPT_CHECK(strcmp(value, expected) == 0);
}

static void control(void)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_fake *fake = swept_fake_new();
    struct program program = { .controller = NULL };
    int failed;

    swept_fake_put(fake, "a", "1");
    SWEPT(failed = start(&program, kinf_fake_client(fake), &err));
    if (SWEPT_OK(failed, &err)) {
        swept_fake_settle(fake);
        check_copy(fake, "a", "1");
        swept_fake_put(fake, "a", "2");
        swept_fake_put(fake, "b", "1");
        swept_fake_settle(fake);
        check_copy(fake, "a", "2");
        check_copy(fake, "b", "1");
    }
    SWEPT(stop(&program));
    kinf_fake_free(fake);
}

/* --- an elector --- */

static void count_term(void *ctx)
{
    ++*(atomic_int *)ctx;
}

/* A start that failed may be tried again. */
static void lead(void)
{
    struct kinf_elector_options options = KINF_ELECTOR_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_fake *fake = swept_fake_new();
    struct kinf_elector *elector = NULL;
    atomic_int n_begun = 0;
    int failed;

    options.name = "leader";
    options.name_space = "default";
    options.release_on_stop = true;
    options.on_started = count_term;
    options.ctx = &n_begun;
    SWEPT(failed = kinf_elector_new(kinf_fake_client(fake), &options, &elector, &err));
    if (SWEPT_OK(failed, &err)) {
        SWEPT(failed = kinf_elector_start(elector, &err));
        if (!SWEPT_OK(failed, &err))
            SWEPT_MUST(kinf_elector_start(elector, &err), &err);
        for (int i = 0; n_begun == 0 && i < N_STEPS; i++)
            kinf_fake_advance(fake, STEP_MS);
        SWEPT_CHECK(n_begun == 1 && kinf_elector_leads(elector));
    }
    SWEPT(kinf_elector_free(elector));
    kinf_fake_free(fake);
}

/* --- informers that are shared --- */

static void share(void)
{
    static const char *const resources[] = { "configmaps", "cm", "secrets" };
    struct kinf_informer *informers[KINF__ARRAY_LEN(resources)];
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_fake *fake = swept_fake_new();
    struct kinf_factory *factory = NULL;
    int failed;

    swept_fake_put(fake, "a", "1");
    SWEPT(failed = kinf_factory_new(kinf_fake_client(fake), &factory, &err));
    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(resources); i++) {
        struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

        options.resource = resources[i];
        SWEPT(failed = kinf_factory_informer(factory, &options, &informers[i], &err));
    }
    if (failed == 0)
        SWEPT(failed = kinf_factory_start(factory, &err));
    if (SWEPT_OK(failed, &err)) {
        swept_fake_settle(fake);
        SWEPT_CHECK(informers[0] == informers[1]);
        check_store(fake, informers[0]);
    }
    SWEPT(kinf_factory_free(factory));
    kinf_fake_free(fake);
}

/* --- what fails --- */

static void an_informer_is_right_whichever_allocation_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_ALLOCATIONS, follow_in_order, 150);
}

static void an_informer_by_key_is_right_whichever_allocation_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_ALLOCATIONS, follow_by_key, 150);
}

static void an_informer_is_right_or_refused_whichever_thread_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_THREADS, follow_in_order, 4);
}

static void a_request_succeeds_or_says_why_whichever_allocation_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_ALLOCATIONS, send_requests, 100);
}

static void a_controller_is_right_whichever_allocation_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_ALLOCATIONS, control, 300);
}

static void a_controller_is_right_or_refused_whichever_thread_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_THREADS, control, 10);
}

static void an_elector_leads_whichever_allocation_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_ALLOCATIONS, lead, 50);
}

static void an_elector_can_be_started_again_whichever_thread_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_THREADS, lead, 2);
}

static void a_factory_is_right_or_refused_whichever_allocation_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_ALLOCATIONS, share, 100);
}

static void a_factory_is_right_or_refused_whichever_thread_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_THREADS, share, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_informer_is_right_whichever_allocation_fails),
        cmocka_unit_test(an_informer_by_key_is_right_whichever_allocation_fails),
        cmocka_unit_test(an_informer_is_right_or_refused_whichever_thread_fails),
        cmocka_unit_test(a_request_succeeds_or_says_why_whichever_allocation_fails),
        cmocka_unit_test(a_controller_is_right_whichever_allocation_fails),
        cmocka_unit_test(a_controller_is_right_or_refused_whichever_thread_fails),
        cmocka_unit_test(an_elector_leads_whichever_allocation_fails),
        cmocka_unit_test(an_elector_can_be_started_again_whichever_thread_fails),
        cmocka_unit_test(a_factory_is_right_or_refused_whichever_allocation_fails),
        cmocka_unit_test(a_factory_is_right_or_refused_whichever_thread_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
