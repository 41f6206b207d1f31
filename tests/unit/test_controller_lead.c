/*
 * A controller with an elector: it acts while it leads, and not a request longer.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit/controller_fixture.h"
#include "unit/test.h"

#define MOMENTS 6000 /* of pass_time(), at the most */

static struct kinf_elector *elector;

static void nap(long ms)
{
    const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&pause, NULL);
}

static void make_elector(struct stage *stage, struct kinf_elector_options *options)
{
    options->name = "test";
    options->name_space = "default";
    options->identity = "we";
    stage_must(stage, kinf_elector_new(stage->client, options, &elector, &stage->err));
    stage->options.elector = elector;
}

static int begin_trying_every(void **state, int64_t retry_ms)
{
    struct kinf_elector_options options = KINF_ELECTOR_OPTIONS_INIT;

    stage_begin(state);
    options.release_on_stop = true;
    options.retry_ms = retry_ms;
    make_elector(*state, &options);
    return 0;
}

static int begin(void **state)
{
    return begin_trying_every(state, 0);
}

static int begin_restless(void **state)
{
    return begin_trying_every(state, 20);
}

static int end(void **state)
{
    struct stage *stage = *state;

    stage_stop(stage);
    kinf_elector_free(elector);
    return stage_end(state);
}

static void put_lease(struct stage *stage, const char *name, int seconds, int term)
{
    char manifest[256];

    snprintf(manifest, sizeof manifest,
             "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: test, namespace: "
             "default}, spec: {holderIdentity: '%s', leaseDurationSeconds: %d, leaseTransitions: "
             "%d}}",
             name, seconds, term);
    stage_must(stage, kinf_fake_put(stage->fake, manifest, &stage->err));
}

/* Somebody has the Lease, from now on for 15 s, behind any term of ours. */
static void take_lease(struct stage *stage)
{
    put_lease(stage, "other", 15, 700);
}

static const char *holder(struct stage *stage)
{
    static char text[256];
    kinf_auto_object const struct kinf_object *lease = NULL;

    text[0] = '\0';
    if (kinf_fake_get(stage->fake, "leases", "default/test", &lease, NULL) == 0)
        (void)!kinf_object_get_string(lease, "spec.holderIdentity", text, sizeof text);
    return text;
}

static int apply(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    int rc = stage_apply(call, "written", "1", err);

    stage->number = rc;
    return rc;
}

/* A clock that runs away from an elector that waits for a processor would end its terms. */
static void pass_time(struct stage *stage)
{
    kinf_fake_advance(stage->fake, 200);
    nap(10);
}

static void wait_until_active(struct stage *stage, struct kinf_controller *controller)
{
    struct kinf_controller_status status = { .is_active = false };

    for (int i = 0; i < MOMENTS && !status.is_active; i++) {
        pass_time(stage);
        kinf_controller_status(controller, &status);
    }
    assert_true(status.is_active);
}

static void advance_until_active(struct stage *stage)
{
    wait_until_active(stage, stage->controller);
}

static void wait_until_synced(struct stage *stage)
{
    for (int i = 0; i < STAGE_PATIENCE_MS && !stage_status(stage).is_synced; i++)
        nap(1);
    assert_true(stage_status(stage).is_synced);
}

static void acts_when_it_leads_and_gives_the_lease_up(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = apply;
    take_lease(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_start(stage);
    wait_until_synced(stage);
    kinf_fake_advance(stage->fake, 5000);
    assert_false(stage_status(stage).is_active);
    assert_int_equal(stage->n_reconciles, 0);
    advance_until_active(stage);
    stage_settle(stage);
    assert_true(stage_has(stage, "default/written"));
    assert_string_equal(holder(stage), "we");
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    assert_string_equal(holder(stage), "");
}

/* C6 */
static void a_term_that_ends_ends_its_requests(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = apply;
    stage_must(stage, kinf_fake_fault(stage->fake, "patch configmaps hang", &stage->err));
    stage_put(stage, "a", "sync: 'true'", "1");
    stage->number = 1;
    stage_start(stage);
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->n_reconciles == 0; i++)
        nap(1);
    nap(20);
    assert_int_equal(stage->number, 1);
    take_lease(stage);
    /* It is seen with the next renewal. */
    for (int i = 0; i < MOMENTS && stage->number == 1; i++)
        pass_time(stage);
    assert_int_equal(stage->number, KINF_ERR_STOPPED);
    assert_false(stage_has(stage, "default/written"));
    assert_int_equal(stage_status(stage).n_other_errors, 0);
    /* The other one goes away: the key was not forgotten. */
    kinf_fake_clear_faults(stage->fake);
    nap(150);
    advance_until_active(stage);
    stage_settle(stage);
    assert_int_equal(stage->number, 0);
    assert_true(stage_has(stage, "default/written"));
}

static void wait_for_count(const _Atomic(int) *count, int least)
{
    for (int i = 0; i < STAGE_PATIENCE_MS && *count < least; i++)
        nap(1);
    assert_true(*count >= least);
}

static _Atomic(bool) is_over;
static _Atomic(int) n_by_b;

/* "a" writes when it is told to, "b" at once. */
static int write_in_turn(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    bool is_b = strcmp(kinf_call_key(call), "default/b") == 0;

    n_by_b += is_b;
    while (!is_b && !is_over)
        nap(1);
    return apply(stage, call, err);
}

/* Another has had the Lease for a moment, and we are in the next term. */
static void what_is_left_of_a_term_does_not_disturb_the_next(void **state)
{
    struct stage *stage = *state;

    is_over = false;
    n_by_b = 0;
    stage->reconcile = write_in_turn;
    stage->options.n_workers = 2;
    stage_must(stage, kinf_fake_fault(stage->fake, "patch configmaps hang", &stage->err));
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_start(stage);
    wait_for_count(&stage->n_reconciles, 1);
    put_lease(stage, "", 1, 7);
    for (int i = 0; i < STAGE_PATIENCE_MS && strcmp(holder(stage), "we") != 0; i++)
        nap(1);
    advance_until_active(stage);
    stage_put(stage, "b", "sync: 'true'", "1");
    wait_for_count(&n_by_b, 1);
    nap(50);
    is_over = true;
    for (int i = 0; i < STAGE_PATIENCE_MS && stage_status(stage).n_stopped == 0; i++)
        nap(1);
    nap(50);
    assert_int_equal(stage_status(stage).n_stopped, 1);
    assert_int_equal(n_by_b, 1);
}

static int lose_it_first(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    int n = stage->n_reconciles;

    if (n == 1) {
        take_lease(stage);
        for (int i = 0; i < MOMENTS && kinf_elector_leads(elector); i++)
            pass_time(stage);
    }
    return apply(stage, call, err);
}

/* C6 */
static void nothing_is_written_when_the_term_is_over(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = lose_it_first;
    stage_put(stage, "a", "sync: 'true'", "1");
    stage->number = 1;
    stage_start(stage);
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->number == 1; i++)
        nap(1);
    assert_int_equal(stage->number, KINF_ERR_STOPPED);
    assert_false(stage_has(stage, "default/written"));
    advance_until_active(stage);
    stage_settle(stage);
    assert_true(stage_has(stage, "default/written"));
}

static struct kinf_controller *led;
static _Atomic(int) stop_result;

static void stop_what_is_led(void *ctx)
{
    (void)ctx;
    stop_result = kinf_controller_stop(led, NULL);
}

/* Whether it is told since its term is over, or since the controller is being stopped. */
static void its_electors_callbacks_do_not_stop_a_controller(void **state)
{
    struct kinf_elector_options options = KINF_ELECTOR_OPTIONS_INIT;
    struct stage *stage = *state;

    kinf_elector_free(elector);
    stop_result = 0;
    options.on_started = stop_what_is_led;
    options.on_stopped = stop_what_is_led;
    make_elector(stage, &options);
    stage_make(stage);
    led = stage->controller;
    stage_start(stage);
    while (stop_result == 0)
        nap(1);
    assert_int_equal(stop_result, KINF_ERR_STATE);
    assert_true(kinf_elector_leads(elector));
    stop_result = 0;
    assert_int_equal(kinf_controller_stop(led, &stage->err), 0);
    assert_int_equal(stop_result, KINF_ERR_STATE);
    assert_false(kinf_elector_leads(elector));
}

static void stop_from_an_informer(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    (void)object;
    (void)in_initial_list;
    stop_what_is_led(ctx);
}

/* It could not wait for the callbacks of other informers, which use what would be freed. */
static void no_informers_callbacks_stop_a_controller(void **state)
{
    struct kinf_handler handler = KINF_HANDLER_INIT;
    struct stage *stage = *state;
    kinf_handler_id id;

    stop_result = 0;
    stage_make(stage);
    led = stage->controller;
    handler.on_add = stop_from_an_informer;
    stage_must(stage, kinf_informer_add_handler(stage->copies, &handler, &id, &stage->err));
    stage_start(stage);
    stage_put(stage, "x", "sync-copy: 'true'", "1");
    while (stop_result == 0)
        nap(1);
    assert_int_equal(stop_result, KINF_ERR_STATE);
    kinf_informer_remove_handler(stage->copies, id);
}

static void an_elector_that_runs_already_goes_on(void **state)
{
    struct stage *stage = *state;

    stage_must(stage, kinf_elector_start(elector, &stage->err));
    stage_must(stage, kinf_elector_wait(elector, 10000, &stage->err));
    stage_put(stage, "a", "sync: 'true'", "1");
    stage->reconcile = apply;
    stage_start(stage);
    advance_until_active(stage);
    stage_settle(stage);
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    assert_true(kinf_elector_leads(elector));
}

static void stops_while_another_leads(void **state)
{
    struct stage *stage = *state;

    take_lease(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_start(stage);
    wait_until_synced(stage);
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    assert_int_equal(stage->n_reconciles, 0);
    assert_string_equal(holder(stage), "other");
}

static void lose_the_lead(struct stage *stage)
{
    for (int i = 0; i < MOMENTS && stage_status(stage).is_active; i++)
        pass_time(stage);
    assert_false(stage_status(stage).is_active);
}

static void lead_and_call(struct stage *stage)
{
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_start(stage);
    advance_until_active(stage);
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 1);
}

static void lead_again_and_call(struct stage *stage)
{
    lose_the_lead(stage);
    advance_until_active(stage);
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 2);
}

/* C6: what that one has done no change may tell of. */
static void who_leads_after_another_calls_each_object(void **state)
{
    struct stage *stage = *state;

    lead_and_call(stage);
    take_lease(stage);
    lead_again_and_call(stage);
}

/* C6: also if that one has not seen ours, and counts anew. */
static void who_leads_after_another_behind_a_deletion_calls_each_object(void **state)
{
    struct stage *stage = *state;

    lead_and_call(stage);
    stage_must(stage, kinf_fake_delete(stage->fake, "leases", "default/test", &stage->err));
    put_lease(stage, "other", 15, 0);
    lead_again_and_call(stage);
}

static void who_leads_after_itself_calls_no_object(void **state)
{
    struct stage *stage = *state;

    stage_put(stage, "a", "sync: 'true'", "1");
    stage_start(stage);
    advance_until_active(stage);
    stage_settle(stage);
    stage_must(stage, kinf_fake_fault(stage->fake, "update leases 503", &stage->err));
    lose_the_lead(stage);
    kinf_fake_clear_faults(stage->fake);
    advance_until_active(stage);
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 1);
}

/* Another one of the same elector, of all that the sources have. */
static struct kinf_controller *make_other(struct stage *stage)
{
    struct kinf_controller_options options = stage->options;
    struct kinf_controller *other;

    options.name = "other";
    stage_must(stage, kinf_controller_new(stage->client, &options, &other, &stage->err));
    return other;
}

static void the_last_of_several_gives_the_lease_up(void **state)
{
    struct stage *stage = *state;
    struct kinf_controller *other;

    stage_start(stage);
    other = make_other(stage);
    advance_until_active(stage);
    stage_must(stage, kinf_controller_start(other, &stage->err));
    wait_until_active(stage, other);
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    assert_string_equal(holder(stage), "we");
    stage_must(stage, kinf_controller_stop(other, &stage->err));
    assert_string_equal(holder(stage), "");
    kinf_controller_free(other);
}

static void an_elector_is_not_ended_before_its_controller(void **state)
{
    struct stage *stage = *state;

    stage_start(stage);
    advance_until_active(stage);
    assert_int_equal(kinf_elector_stop(elector, &stage->err), KINF_ERR_STATE);
    kinf_elector_free(elector);
    assert_true(kinf_elector_leads(elector));
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    stage_must(stage, kinf_elector_stop(elector, &stage->err));
}

static void one_whose_elector_was_stopped_does_not_start(void **state)
{
    struct stage *stage = *state;

    stage_must(stage, kinf_elector_start(elector, &stage->err));
    stage_must(stage, kinf_elector_stop(elector, &stage->err));
    stage_make(stage);
    assert_int_equal(kinf_controller_start(stage->controller, &stage->err), KINF_ERR_STATE);
    assert_string_equal(stage->err.message, "the elector was stopped before");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, begin, end)
        T(who_leads_after_another_calls_each_object),
        T(who_leads_after_another_behind_a_deletion_calls_each_object),
        T(who_leads_after_itself_calls_no_object),
        T(the_last_of_several_gives_the_lease_up),
        T(an_elector_is_not_ended_before_its_controller),
        T(one_whose_elector_was_stopped_does_not_start),
        T(acts_when_it_leads_and_gives_the_lease_up),
        T(a_term_that_ends_ends_its_requests),
        cmocka_unit_test_setup_teardown(what_is_left_of_a_term_does_not_disturb_the_next,
                                        begin_restless, end),
        T(nothing_is_written_when_the_term_is_over),
        T(an_elector_that_runs_already_goes_on),
        T(its_electors_callbacks_do_not_stop_a_controller),
        T(no_informers_callbacks_stop_a_controller),
        T(stops_while_another_leads),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
