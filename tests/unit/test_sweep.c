/*
 * Settling with controllers, lost leadership, and sweeps: that a right controller passes them, and
 * that a wrong one is found, with what it does.
 */
#include <kinformer/kinformer.h>
#include <kinformer/testing.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit/test.h"

#define PATIENCE_MS 60000

static void must(int failed, const struct kinf_error *err)
{
    if (failed < 0)
        print_error("%s\n", err->message);
    assert_int_equal(failed, 0);
}

/* --- a program: a ConfigMap "SOURCE-copy" for each that is labelled --- */

struct program {
    kinf_reconcile_cb *reconcile;
    const char *lease; /* its name; NULL: it has none */
    struct kinf_informer *sources, *copies;
    struct kinf_elector *elector;
    struct kinf_controller *controller;
};

static void stop(void *ctx)
{
    struct program *program = ctx;

    kinf_controller_free(program->controller);
    kinf_elector_free(program->elector);
    kinf_informer_free(program->sources);
    kinf_informer_free(program->copies);
    *program = (struct program){ .reconcile = program->reconcile, .lease = program->lease };
}

static int start(struct kinf_client *client, void *ctx, struct kinf_error *err)
{
    struct program *program = ctx;
    struct kinf_informer_options from = { .size = sizeof from,
                                          .resource = "configmaps",
                                          .label_selector = "source" };
    struct kinf_informer_options to = { .size = sizeof to,
                                        .resource = "configmaps",
                                        .label_selector = "copy" };
    struct kinf_elector_options lease = { .size = sizeof lease,
                                          .name = program->lease,
                                          .name_space = "default",
                                          .release_on_stop = true };
    struct kinf_controller_options options = {
        .size = sizeof options, .name = "copier", .reconcile = program->reconcile, .ctx = program
    };

    if (kinf_informer_new(client, &from, &program->sources, err) == 0 &&
        kinf_informer_new(client, &to, &program->copies, err) == 0 &&
        (program->lease == NULL || kinf_elector_new(client, &lease, &program->elector, err) == 0) &&
        (options.informer = program->sources, options.elector = program->elector,
         kinf_controller_new(client, &options, &program->controller, err)) == 0 &&
        kinf_controller_watch(program->controller, program->copies, kinf_map_annotation,
                              (void *)"of-source", err) == 0 &&
        kinf_controller_start(program->controller, err) == 0)
        return 0;
    stop(program);
    return KINF_ERR_CONFIG;
}

static const char *source_manifest(const char *value, char manifest[512])
{
    snprintf(manifest, 512,
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default, labels: "
             "{source: 'true'}}, data: {value: '%s'}}",
             value);
    return manifest;
}

static int change_once(struct kinf_fake *fake, void *ctx, struct kinf_error *err)
{
    char manifest[512];

    (void)ctx;
    return kinf_fake_put(fake, source_manifest("1", manifest), err);
}

static int change_twice(struct kinf_fake *fake, void *ctx, struct kinf_error *err)
{
    char manifest[512];

    if (change_once(fake, ctx, err) < 0 ||
        kinf_fake_settle_ahead(fake, 60000, PATIENCE_MS, err) < 0)
        return KINF_ERR_TIMEOUT;
    return kinf_fake_put(fake, source_manifest("2", manifest), err);
}

static int apply(struct kinf_call *call, const char *name, const char *value,
                 struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;
    int failed = kinf_json_format(
        &scratch, &json, err,
        "{metadata:{labels:{copy:\"true\"},annotations:{of-source:?s}},data:{value:?s}}",
        kinf_call_key(call), value);

    return failed < 0 ? failed
                      : kinf_call_apply(call, kinf_object_type(kinf_call_object(call)), "default",
                                        name, json, err);
}

static const char *value_of(const struct kinf_object *object, char value[64])
{
    snprintf(value, 64, "-");
    (void)!kinf_object_get_string(object, "data.value", value, 64);
    return value;
}

static int copy(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    char value[64];

    (void)ctx;
    return apply(call, "a-copy", value_of(kinf_call_object(call), value), err);
}

static struct kinf_sweep_result sweep(struct program *program, const char *lease, unsigned faults)
{
    const struct kinf_sweep_options options = { .size = sizeof options,
                                                .start = start,
                                                .stop = stop,
                                                .scenario = change_twice,
                                                .ctx = program,
                                                .lease = lease,
                                                .faults = faults };
    struct kinf_sweep_result result;
    struct kinf_error err = KINF_ERROR_INIT;

    must(kinf_sweep(&options, &result, &err), &err);
    return result;
}

static void a_right_controller_passes(void **state)
{
    struct program program = { .reconcile = copy, .lease = "copier" };
    struct kinf_sweep_result result = sweep(&program, "default/copier", 0);

    (void)state;
    if (result.report != NULL)
        fail_msg("%s", result.report);
    assert_int_equal(result.n_requests, 2);
    assert_int_equal(result.n_runs, 2 * 8);
}

static struct kinf_client *the_client;
static _Atomic(unsigned) n_goodbyes;

static int start_politely(struct kinf_client *client, void *ctx, struct kinf_error *err)
{
    the_client = client;
    return start(client, ctx, err);
}

static int change_beside_a_deployment(struct kinf_fake *fake, void *ctx, struct kinf_error *err)
{
    int failed = kinf_fake_put(
        fake,
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2, "
        "selector: "
        "{matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: "
        "c, image: i}]}}}}",
        err);

    return failed < 0 ? failed : change_once(fake, ctx, err);
}

static void what_is_compared_are_workloads_that_have_come_to_rest(void **state)
{
    const struct kinf_fake_options fake = { .size = sizeof fake, .has_workloads = true };
    struct program program = { .reconcile = copy };
    const struct kinf_sweep_options options = { .size = sizeof options,
                                                .start = start,
                                                .stop = stop,
                                                .scenario = change_beside_a_deployment,
                                                .ctx = &program,
                                                .fake = &fake };
    struct kinf_sweep_result result;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    must(kinf_sweep(&options, &result, &err), &err);
    if (result.report != NULL)
        fail_msg("%s", result.report);
    assert_true(result.n_runs > 0);
}

static void stop_politely(void *ctx)
{
    static const char goodbye[] = "{\"metadata\":{\"name\":\"goodbye\"}}";

    n_goodbyes++;
    (void)!kinf_client_request_raw(the_client, "POST", "/api/v1/namespaces/default/configmaps",
                                   kinf_str_from(goodbye), NULL, NULL, NULL);
    stop(ctx);
}

/* It would be there in the end: what is compared is what was there before the last one. */
static void one_that_is_killed_sends_nothing_more(void **state)
{
    struct program program = { .reconcile = copy, .lease = "copier" };
    const struct kinf_sweep_options options = { .size = sizeof options,
                                                .start = start_politely,
                                                .stop = stop_politely,
                                                .scenario = change_twice,
                                                .ctx = &program,
                                                .faults =
                                                    KINF_SWEEP_KILLED | KINF_SWEEP_KILLED_BEHIND };
    struct kinf_sweep_result result;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    n_goodbyes = 0;
    must(kinf_sweep(&options, &result, &err), &err);
    if (result.report != NULL)
        fail_msg("%s", result.report);
    assert_int_equal(result.n_runs, 4);
    /* Two runs are without a fault, and each other one has two programs. */
    assert_int_equal(n_goodbyes, 2 + 2 * 4);
}

/* --- wrong ones are found --- */

static void expect_report(struct program *program, unsigned faults, const char *expected)
{
    struct kinf_sweep_result result =
        sweep(program, program->lease != NULL ? "default/copier" : NULL, faults);

    assert_non_null(result.report);
    assert_string_equal(result.report, expected);
    free(result.report);
}

static int annotate(struct kinf_call *call, const char *json, struct kinf_error *err)
{
    struct kinf_request patch = KINF_REQUEST_INIT;

    patch.verb = KINF_VERB_MERGE_PATCH;
    patch.type = kinf_object_type(kinf_call_object(call));
    patch.name_space = "default";
    patch.name = kinf_object_name(kinf_call_object(call));
    patch.body = kinf_str_from(json);
    return kinf_call_request(call, &patch, NULL, err);
}

/* Notes behind the first write that it has happened, not before. */
static int create_and_note(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    struct kinf_request create = KINF_REQUEST_INIT;
    int failed;

    (void)ctx;
    if (kinf_object_has(kinf_call_object(call), "metadata.annotations.done"))
        return 0;
    create.verb = KINF_VERB_CREATE;
    create.type = kinf_object_type(kinf_call_object(call));
    create.name_space = "default";
    create.body = KINF_STR("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                           "\"generateName\":\"copy-\"},\"data\":{\"value\":\"1\"}}");
    failed = kinf_call_request(call, &create, NULL, err);
    return failed < 0 ? failed
                      : annotate(call, "{\"metadata\":{\"annotations\":{\"done\":\"true\"}}}", err);
}

static void two_writes_in_the_wrong_order_are_found(void **state)
{
    struct program program = { .reconcile = create_and_note };

    (void)state;
    expect_report(&program, KINF_SWEEP_KILLED_BEHIND,
                  "request 1, create /api/v1/namespaces/default/configmaps: it is carried out, the "
                  "program killed, and started anew\n"
                  "what is there in the end differs:\n"
                  "+configmaps default/copy-*\n");
    expect_report(&program, 0,
                  "request 2, patch /api/v1/namespaces/default/configmaps/a: it is refused with "
                  "503\n"
                  "what is there in the end differs:\n"
                  "+configmaps default/copy-*\n");
}

static _Atomic(unsigned) n_changes;

/* What it counts are its own tries. */
static int count_changes(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    static char seen[64];
    char value[64], count[16];
    int failed;

    (void)ctx;
    if (strcmp(value_of(kinf_call_object(call), value), seen) == 0)
        return 0;
    snprintf(count, sizeof count, "%u", ++n_changes);
    failed = apply(call, "a-copy", count, err);
    if (failed == 0)
        memcpy(seen, value, sizeof seen);
    return failed;
}

static int start_counting(struct kinf_client *client, void *ctx, struct kinf_error *err)
{
    n_changes = 0;
    return start(client, ctx, err);
}

static void a_counter_of_tries_is_found(void **state)
{
    struct program program = { .reconcile = count_changes };
    const struct kinf_sweep_options options = { .size = sizeof options,
                                                .start = start_counting,
                                                .stop = stop,
                                                .scenario = change_twice,
                                                .ctx = &program,
                                                .faults = KINF_SWEEP_ANSWER_LOST };
    struct kinf_sweep_result result;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    must(kinf_sweep(&options, &result, &err), &err);
    assert_non_null(result.report);
    assert_non_null(strstr(result.report, "its answer is lost\n"));
    assert_non_null(strstr(result.report, "-configmaps default/a-copy data.value=\"2\"\n"
                                          "+configmaps default/a-copy data.value=\"3\"\n"));
    free(result.report);
}

static int copy_or_give_up(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    (void)!copy(call, ctx, err);
    return 0;
}

/* The second change mends what the first one lacks. */
static void one_that_gives_up_is_found(void **state)
{
    struct program program = { .reconcile = copy_or_give_up };

    (void)state;
    expect_report(&program, 0,
                  "request 2, patch /api/v1/namespaces/default/configmaps/a-copy: it is refused "
                  "with 503\n"
                  "what is there in the end differs:\n"
                  "+configmaps default/a-copy data.value=\"1\"\n"
                  "-configmaps default/a-copy data.value=\"2\"\n");
}

/* Past the call, so that nobody ends it with the term. */
static int insist(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    struct kinf_request patch = KINF_REQUEST_INIT;

    (void)ctx;
    if (kinf_object_has(kinf_call_object(call), "metadata.annotations.done"))
        return 0;
    patch.verb = KINF_VERB_MERGE_PATCH;
    patch.type = kinf_object_type(kinf_call_object(call));
    patch.name_space = "default";
    patch.name = kinf_object_name(kinf_call_object(call));
    patch.body = KINF_STR("{\"metadata\":{\"annotations\":{\"done\":\"true\"}}}");
    patch.timeout_ms = 3000;
    while (kinf_client_request(kinf_call_client(call), &patch, NULL, err) < 0)
        continue;
    return 0;
}

static void one_that_writes_when_it_leads_no_more_is_found(void **state)
{
    static const char expected[] =
        ", patch /api/v1/namespaces/default/configmaps/a: another takes the Lease before it is "
        "carried out\n"
        "while another led, it sent ";
    struct program program = { .reconcile = insist, .lease = "copier" };
    struct kinf_sweep_result result = sweep(&program, "default/copier", KINF_SWEEP_LEAD_LOST);

    (void)state;
    assert_non_null(result.report);
    if (strstr(result.report, expected) == NULL)
        fail_msg("%s", result.report);
    free(result.report);
}

static _Atomic(bool) is_to_end;

static int hang_when_refused(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    int failed = copy(call, ctx, err);

    while (failed < 0 && !is_to_end)
        continue;
    return failed;
}

static void stop_hanging(void *ctx)
{
    is_to_end = true;
    stop(ctx);
    is_to_end = false;
}

static void one_that_hangs_is_found(void **state)
{
    struct program program = { .reconcile = hang_when_refused };
    const struct kinf_sweep_options options = { .size = sizeof options,
                                                .start = start,
                                                .stop = stop_hanging,
                                                .scenario = change_once,
                                                .ctx = &program,
                                                .timeout_ms = 2000 };
    struct kinf_sweep_result result;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    must(kinf_sweep(&options, &result, &err), &err);
    assert_non_null(result.report);
    assert_string_equal(result.report, "request 1, patch /api/v1/namespaces/default/configmaps/"
                                       "a-copy: it is refused with 503\n"
                                       "the controller copier is not through\n");
    free(result.report);
}

static int fail_always(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    (void)ctx;
    (void)!copy(call, ctx, err);
    return kinf_error_set(err, KINF_ERR_SERVER, "never good");
}

/* It settles: what is due later than that is left. */
static void one_that_fails_for_ever_ends_the_same(void **state)
{
    struct program program = { .reconcile = fail_always };
    struct kinf_sweep_result result = sweep(&program, NULL, KINF_SWEEP_REFUSED);

    (void)state;
    if (result.report != NULL)
        fail_msg("%s", result.report);
    assert_true(result.n_runs >= 2);
}

/* --- what is refused --- */

static int scenario_fails(struct kinf_fake *fake, void *ctx, struct kinf_error *err)
{
    (void)ctx;
    return kinf_fake_put(fake, "{kind: Unheard}", err);
}

static _Atomic(unsigned) n_scenarios;

static int scenario_differs(struct kinf_fake *fake, void *ctx, struct kinf_error *err)
{
    char manifest[512], value[16];

    (void)ctx;
    snprintf(value, sizeof value, "%u", n_scenarios++);
    return kinf_fake_put(fake, source_manifest(value, manifest), err);
}

static int nothing(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    (void)call;
    (void)ctx;
    (void)err;
    return 0;
}

static void a_sweep_that_means_nothing_is_an_error(void **state)
{
    struct program program = { .reconcile = copy };
    struct kinf_sweep_options options = {
        .size = sizeof options, .start = start, .stop = stop, .ctx = &program
    };
    struct kinf_sweep_result result;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf_sweep(&options, &result, &err), KINF_ERR_INVALID);
    options.scenario = change_once;
    options.faults = KINF_SWEEP_LEAD_LOST;
    assert_int_equal(kinf_sweep(&options, &result, &err), KINF_ERR_INVALID);
    options.faults = 0;
    options.scenario = scenario_fails;
    assert_int_equal(kinf_sweep(&options, &result, &err), KINF_ERR_CONFIG);
    options.scenario = scenario_differs;
    assert_int_equal(kinf_sweep(&options, &result, &err), KINF_ERR_STATE);
    assert_string_equal(err.message, "two runs without a fault end differently");
    assert_non_null(strstr(result.report, "+configmaps default/a data.value=\"1\"\n"));
    free(result.report);
    options.scenario = change_twice;
    program.reconcile = nothing;
    assert_int_equal(kinf_sweep(&options, &result, &err), KINF_ERR_STATE);
    assert_string_equal(err.message, "the program sends no request for *,!leases,!events");
    options.resources = "configmaps 503";
    assert_int_equal(kinf_sweep(&options, &result, &err), KINF_ERR_PARSE);
}

/* --- settling --- */

static _Atomic(unsigned) n_calls;

static int come_back_in_20s(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    n_calls++;
    kinf_call_requeue_after(call, 20000);
    return copy(call, ctx, err);
}

static void settling_waits_for_what_is_due_in_time(void **state)
{
    struct program program = { .reconcile = come_back_in_20s };
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_fake struct kinf_fake *fake = NULL;
    char manifest[512];

    (void)state;
    n_calls = 0;
    must(kinf_fake_new(NULL, &fake, &err), &err);
    must(kinf_fake_put(fake, source_manifest("1", manifest), &err), &err);
    must(start(kinf_fake_client(fake), &program, &err), &err);
    must(kinf_fake_settle(fake, PATIENCE_MS, &err), &err);
    /* Once for the source, and once for the copy of which it is told. */
    assert_int_equal(n_calls, 2);
    must(kinf_fake_settle_ahead(fake, 10000, PATIENCE_MS, &err), &err);
    assert_int_equal(n_calls, 2);
    must(kinf_fake_settle_ahead(fake, 50000, PATIENCE_MS, &err), &err);
    assert_int_equal(n_calls, 4);
    stop(&program);
}

static void settling_says_who_is_not_through(void **state)
{
    struct program program = { .reconcile = copy };
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_fake struct kinf_fake *fake = NULL;
    char manifest[512];

    (void)state;
    must(kinf_fake_new(NULL, &fake, &err), &err);
    must(kinf_fake_fault(fake, "patch configmaps hang", &err), &err);
    must(kinf_fake_put(fake, source_manifest("1", manifest), &err), &err);
    must(start(kinf_fake_client(fake), &program, &err), &err);
    assert_int_equal(kinf_fake_settle(fake, 300, &err), KINF_ERR_TIMEOUT);
    assert_string_equal(err.message, "the controller copier is not through");
    /* A request has its timeout, after which it is tried again. */
    kinf_fake_clear_faults(fake);
    must(kinf_fake_settle_ahead(fake, 60000, PATIENCE_MS, &err), &err);
    stop(&program);
}

static bool is_active(const struct program *program)
{
    struct kinf_controller_status status;

    kinf_controller_status(program->controller, &status);
    return status.is_active;
}

static void a_lease_can_be_taken(void **state)
{
    struct program program = { .reconcile = copy, .lease = "copier" };
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_fake struct kinf_fake *fake = NULL;
    int64_t before = 0, after = 0;
    char manifest[512];

    (void)state;
    must(kinf_fake_new(NULL, &fake, &err), &err);
    must(start(kinf_fake_client(fake), &program, &err), &err);
    must(kinf_fake_settle(fake, PATIENCE_MS, &err), &err);
    assert_true(is_active(&program));
    for (int i = 0; i < 2; i++) {
        kinf_auto_object const struct kinf_object *lease = NULL;

        must(kinf_fake_get(fake, "leases", "default/copier", &lease, &err), &err);
        must(kinf_object_get_int64(lease, "spec.leaseTransitions", i == 0 ? &before : &after),
             &err);
        if (i == 0)
            must(kinf_fake_take_lease(fake, "default/copier", &err), &err);
    }
    assert_int_equal(after, before + 1);
    kinf_fake_advance(fake, 11000);
    must(kinf_fake_put(fake, source_manifest("1", manifest), &err), &err);
    must(kinf_fake_settle(fake, PATIENCE_MS, &err), &err);
    assert_false(is_active(&program));
    assert_int_equal(kinf_fake_get(fake, "configmaps", "default/a-copy",
                                   &(const struct kinf_object *){ NULL }, &err),
                     KINF_ERR_NOT_FOUND);
    /* Nobody renews it: it runs out. */
    must(kinf_fake_settle_ahead(fake, 60000, PATIENCE_MS, &err), &err);
    assert_true(is_active(&program));
    assert_int_equal(kinf_fake_delete(fake, "configmaps", "default/a-copy", &err), 0);
    stop(&program);
}

/* Of real time, in which the time of the program could go far. */
static void nap_in_elector(enum kinf_log_level level, const char *module, const char *line,
                           void *ctx)
{
    const struct timespec nap = { 0, 300000000 };

    (void)level;
    (void)line;
    (void)ctx;
    if (strcmp(module, "elector") == 0)
        nanosleep(&nap, NULL);
}

static void settling_waits_for_an_elector_that_is_late(void **state)
{
    struct program program = { .reconcile = copy, .lease = "copier" };
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_fake struct kinf_fake *fake = NULL;
    char manifest[512];

    (void)state;
    kinf_log_set_callback(nap_in_elector, NULL);
    must(kinf_fake_new(NULL, &fake, &err), &err);
    must(kinf_fake_put(fake, source_manifest("1", manifest), &err), &err);
    must(kinf_fake_fault(fake, "get leases 503 times=1", &err), &err);
    must(start(kinf_fake_client(fake), &program, &err), &err);
    must(kinf_fake_settle_ahead(fake, 20000, PATIENCE_MS, &err), &err);
    assert_true(is_active(&program));
    assert_int_equal(kinf_fake_delete(fake, "configmaps", "default/a-copy", &err), 0);
    stop(&program);
    kinf_log_set_callback(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_controller_passes),
        cmocka_unit_test(what_is_compared_are_workloads_that_have_come_to_rest),
        cmocka_unit_test(one_that_is_killed_sends_nothing_more),
        cmocka_unit_test(two_writes_in_the_wrong_order_are_found),
        cmocka_unit_test(a_counter_of_tries_is_found),
        cmocka_unit_test(one_that_gives_up_is_found),
        cmocka_unit_test(one_that_writes_when_it_leads_no_more_is_found),
        cmocka_unit_test(one_that_hangs_is_found),
        cmocka_unit_test(one_that_fails_for_ever_ends_the_same),
        cmocka_unit_test(a_sweep_that_means_nothing_is_an_error),
        cmocka_unit_test(settling_waits_for_what_is_due_in_time),
        cmocka_unit_test(settling_says_who_is_not_through),
        cmocka_unit_test(settling_waits_for_an_elector_that_is_late),
        cmocka_unit_test(a_lease_can_be_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
