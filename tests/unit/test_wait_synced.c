/*
 * Waiting for the first list of a server that refuses it: what ends the wait, and what does not.
 */
#include <kinformer/testing.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

#include <kinformer/kinformer.h>

#include "unit/test.h"

#define PATIENCE_MS 60000

struct stage {
    struct kinf_fake *fake;
    struct kinf_client *client;
    struct kinf_error err;
};

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);

    assert_non_null(stage);
    assert_int_equal(kinf_fake_new(NULL, &stage->fake, NULL), 0);
    stage->client = kinf_fake_client(stage->fake);
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    kinf_fake_free(stage->fake);
    free(stage);
    return 0;
}

static void must_fault(struct stage *stage, const char *spec)
{
    assert_int_equal(kinf_fake_fault(stage->fake, spec, &stage->err), 0);
}

static struct kinf_informer_options quick_options(void)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    options.resource = "pods";
    options.backoff_base_ms = 10;
    options.backoff_max_ms = 20;
    return options;
}

static struct kinf_informer *start(struct stage *stage, const struct kinf_informer_options *options)
{
    struct kinf_informer *informer;

    assert_int_equal(kinf_informer_new(stage->client, options, &informer, &stage->err), 0);
    assert_int_equal(kinf_informer_start(informer, &stage->err), 0);
    return informer;
}

static void a_refused_first_list_ends_the_wait(void **state)
{
    static const struct {
        const char *fault;
        enum kinf_errc code;
        int http_status;
    } rows[] = {
        { "list pods 403", KINF_ERR_FORBIDDEN, 403 },
        { "list pods 401", KINF_ERR_UNAUTHORIZED, 401 },
        { "list pods 404", KINF_ERR_NOT_FOUND, 404 },
        { "list pods 400", KINF_ERR_SERVER, 400 },
    };
    const struct kinf_informer_options options = quick_options();
    struct stage *stage = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kinf_informer *informer;

        must_fault(stage, rows[i].fault);
        informer = start(stage, &options);
        assert_int_equal(kinf_informer_wait_synced(informer, PATIENCE_MS, &stage->err),
                         rows[i].code);
        assert_int_equal(stage->err.code, rows[i].code);
        assert_int_equal(stage->err.http_status, rows[i].http_status);
        assert_non_null(strstr(stage->err.message, "pods: not synced: "));
        assert_false(kinf_informer_has_synced(informer));
        /* It is refused still, whoever asks. */
        assert_int_equal(kinf_informer_wait_synced(informer, PATIENCE_MS, NULL), rows[i].code);
        kinf_informer_free(informer);
        kinf_fake_clear_faults(stage->fake);
    }
}

static void a_selector_that_the_server_does_not_have_ends_the_wait(void **state)
{
    struct kinf_informer_options options = quick_options();
    struct stage *stage = *state;
    struct kinf_informer *informer;

    options.field_selector = "spec.noSuchField=x";
    informer = start(stage, &options);
    assert_int_equal(kinf_informer_wait_synced(informer, KINF_FOREVER, &stage->err),
                     KINF_ERR_SERVER);
    assert_int_equal(stage->err.http_status, 400);
    assert_non_null(strstr(stage->err.message, "spec.noSuchField"));
    kinf_informer_free(informer);
}

/* Rights of a new role are a moment on their way. */
static void one_refusal_may_pass(void **state)
{
    const struct kinf_informer_options options = quick_options();
    struct stage *stage = *state;
    struct kinf_informer *informer;

    must_fault(stage, "list pods 403 times=1");
    informer = start(stage, &options);
    assert_int_equal(kinf_informer_wait_synced(informer, PATIENCE_MS, &stage->err), 0);
    kinf_informer_free(informer);
}

static void what_may_heal_is_waited_for(void **state)
{
    const struct kinf_informer_options options = quick_options();
    struct stage *stage = *state;
    struct kinf_informer *informer;

    must_fault(stage, "list pods 503 times=5");
    informer = start(stage, &options);
    assert_int_equal(kinf_informer_wait_synced(informer, PATIENCE_MS, &stage->err), 0);
    kinf_informer_free(informer);
}

static bool is_refused_again(struct kinf_informer *informer)
{
    struct kinf_informer_status status;

    kinf_informer_status(informer, &status);
    return status.n_errors >= 4;
}

static void who_asks_for_it_waits_out_a_refusal(void **state)
{
    struct kinf_informer_options options = quick_options();
    struct stage *stage = *state;
    struct kinf_informer *informer;

    options.wait_out_refusals = true;
    must_fault(stage, "list pods 403");
    informer = start(stage, &options);
    while (!is_refused_again(informer))
        assert_int_equal(kinf_informer_wait_synced(informer, 10, &stage->err), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(stage->err.message, "forbidden"));
    kinf_fake_clear_faults(stage->fake);
    assert_int_equal(kinf_informer_wait_synced(informer, PATIENCE_MS, &stage->err), 0);
    kinf_informer_free(informer);
}

static void an_informer_that_was_refused_goes_on_trying(void **state)
{
    const struct kinf_informer_options options = quick_options();
    struct stage *stage = *state;
    struct kinf_informer *informer;

    must_fault(stage, "list pods 403");
    informer = start(stage, &options);
    assert_int_equal(kinf_informer_wait_synced(informer, PATIENCE_MS, NULL), KINF_ERR_FORBIDDEN);
    kinf_fake_clear_faults(stage->fake);
    while (kinf_informer_wait_synced(informer, PATIENCE_MS, NULL) == KINF_ERR_FORBIDDEN)
        continue;
    assert_int_equal(kinf_informer_wait_synced(informer, 0, NULL), 0);
    kinf_informer_free(informer);
}

static void a_factory_and_namespaces_say_who_was_refused(void **state)
{
    static const char *const names[] = { "default", "kube-system" };
    struct kinf_informer_options options = quick_options();
    struct stage *stage = *state;
    kinf_auto_factory struct kinf_factory *factory = NULL;
    kinf_auto_namespaces struct kinf_namespaces *namespaces = NULL;
    struct kinf_informer *informer;

    must_fault(stage, "list pods 403");
    assert_int_equal(kinf_factory_new(stage->client, &factory, NULL), 0);
    assert_int_equal(kinf_factory_informer(factory, &options, &informer, NULL), 0);
    assert_int_equal(kinf_factory_start(factory, NULL), 0);
    assert_int_equal(kinf_factory_wait_synced(factory, KINF_FOREVER, &stage->err),
                     KINF_ERR_FORBIDDEN);
    assert_int_equal(
        kinf_namespaces_new(stage->client, &options, names, 2, &namespaces, &stage->err), 0);
    assert_int_equal(kinf_namespaces_start(namespaces, &stage->err), 0);
    assert_int_equal(kinf_namespaces_wait_synced(namespaces, KINF_FOREVER, &stage->err),
                     KINF_ERR_FORBIDDEN);
    assert_non_null(strstr(stage->err.message, "namespace default: pods: not synced: "));
}

/* Whoever comes first in the list hangs, and is not waited for. */
static void a_refusal_is_told_whoever_else_is_still_waited_for(void **state)
{
    static const char *const names[] = { "default", "kube-system" };
    const struct kinf_informer_options options = quick_options();
    struct stage *stage = *state;
    kinf_auto_namespaces struct kinf_namespaces *namespaces = NULL;

    must_fault(stage, "list pods hang namespace=default");
    must_fault(stage, "list pods 403 namespace=kube-system");
    assert_int_equal(
        kinf_namespaces_new(stage->client, &options, names, 2, &namespaces, &stage->err), 0);
    assert_int_equal(kinf_namespaces_start(namespaces, &stage->err), 0);
    assert_int_equal(kinf_namespaces_wait_synced(namespaces, KINF_FOREVER, &stage->err),
                     KINF_ERR_FORBIDDEN);
    assert_non_null(strstr(stage->err.message, "namespace kube-system: pods: not synced: "));
    kinf_fake_clear_faults(stage->fake);
}

static void *interrupt_soon(void *ctx)
{
    const struct timespec delay = { .tv_nsec = 20000000 };

    nanosleep(&delay, NULL);
    kinf_client_interrupt(ctx);
    return NULL;
}

static void an_interrupt_ends_waiting_for_a_version(void **state)
{
    const struct kinf_informer_options options = quick_options();
    struct stage *stage = *state;
    struct kinf_informer *informer = start(stage, &options);
    pthread_t thread;

    assert_int_equal(kinf_informer_wait_synced(informer, PATIENCE_MS, &stage->err), 0);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, stage->client), 0);
    assert_int_equal(kinf_informer_wait_for_rv(informer, "99999999", PATIENCE_MS, &stage->err),
                     KINF_ERR_STOPPED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(kinf_informer_wait_for_rv(informer, "99999999", PATIENCE_MS, &stage->err),
                     KINF_ERR_STOPPED);
    /* What is in already needs no waiting. */
    assert_int_equal(kinf_informer_wait_for_rv(informer, "1", PATIENCE_MS, &stage->err), 0);
    kinf_informer_free(informer);
}

static bool has_managed_fields(struct stage *stage, const struct kinf_informer_options *options)
{
    struct kinf_informer *informer = start(stage, options);
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    bool has;

    assert_int_equal(kinf_informer_wait_synced(informer, PATIENCE_MS, &stage->err), 0);
    assert_int_equal(kinf_indexer_list(kinf_informer_indexer(informer), &list, &stage->err), 0);
    assert_int_equal(list.n_items, 1);
    has = kinf_object_has(list.items[0], "metadata.managedFields");
    kinf_informer_free(informer);
    return has;
}

static void metadata_alone_is_without_managed_fields_unless_asked_for(void **state)
{
    static const char *const keeps[] = { "metadata" };
    struct kinf_informer_options options = quick_options();
    struct stage *stage = *state;
    const struct kinf_type *type;
    struct kinf_request request = KINF_REQUEST_INIT;

    assert_int_equal(kinf_client_find_type(stage->client, "configmaps", &type, &stage->err), 0);
    request.verb = KINF_VERB_CREATE;
    request.type = type;
    request.name_space = "default";
    request.field_manager = "test";
    request.body = KINF_STR("{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}");
    assert_int_equal(kinf_client_request(stage->client, &request, NULL, &stage->err), 0);
    options.resource = "configmaps";
    options.name_space = "default";
    options.field_selector = "metadata.name=a";
    assert_true(has_managed_fields(stage, &options));
    options.metadata_only = true;
    assert_false(has_managed_fields(stage, &options));
    options.keeps = keeps;
    options.n_keeps = 1;
    assert_true(has_managed_fields(stage, &options));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_refused_first_list_ends_the_wait, begin, end),
        cmocka_unit_test_setup_teardown(a_selector_that_the_server_does_not_have_ends_the_wait,
                                        begin, end),
        cmocka_unit_test_setup_teardown(one_refusal_may_pass, begin, end),
        cmocka_unit_test_setup_teardown(what_may_heal_is_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(who_asks_for_it_waits_out_a_refusal, begin, end),
        cmocka_unit_test_setup_teardown(an_informer_that_was_refused_goes_on_trying, begin, end),
        cmocka_unit_test_setup_teardown(an_interrupt_ends_waiting_for_a_version, begin, end),
        cmocka_unit_test_setup_teardown(metadata_alone_is_without_managed_fields_unless_asked_for,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_factory_and_namespaces_say_who_was_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_refusal_is_told_whoever_else_is_still_waited_for, begin,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
