/*
 * A controller with an elector: it acts while it leads, and not a request longer.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit/controller_fixture.h"
#include "unit/test.h"

static struct kinf_elector *elector;

static void nap(long ms)
{
    const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&pause, NULL);
}

static int begin(void **state)
{
    struct kinf_elector_options options = KINF_ELECTOR_OPTIONS_INIT;
    struct stage *stage;

    stage_begin(state);
    stage = *state;
    options.name = "test";
    options.name_space = "default";
    options.identity = "we";
    options.release_on_stop = true;
    stage_must(stage, kinf_elector_new(stage->client, &options, &elector, &stage->err));
    stage->options.elector = elector;
    return 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    stage_stop(stage);
    kinf_elector_free(elector);
    return stage_end(state);
}

/* Somebody has the Lease, from now on for 15 s. */
static void take_lease(struct stage *stage)
{
    stage_must(stage,
               kinf_fake_put(stage->fake,
                             "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: "
                             "test, namespace: default}, spec: {holderIdentity: other, "
                             "leaseDurationSeconds: 15, leaseTransitions: 7}}",
                             &stage->err));
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

static void advance_until_active(struct stage *stage)
{
    for (int i = 0; i < 300 && !stage_status(stage).is_active; i++) {
        kinf_fake_advance(stage->fake, 1000);
        nap(2);
    }
    assert_true(stage_status(stage).is_active);
}

static void acts_when_it_leads_and_gives_the_lease_up(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = apply;
    take_lease(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_start(stage);
    for (int i = 0; i < 5; i++)
        kinf_fake_advance(stage->fake, 1000);
    assert_true(stage_status(stage).is_synced);
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
    for (int i = 0; i < 3000 && stage->n_reconciles == 0; i++)
        nap(1);
    nap(20);
    assert_int_equal(stage->number, 1);
    take_lease(stage);
    /* It is seen with the next renewal. */
    for (int i = 0; i < 100 && stage->number == 1; i++) {
        kinf_fake_advance(stage->fake, 500);
        nap(5);
    }
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

static int lose_it_first(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    int n = stage->n_reconciles;

    if (n == 1) {
        take_lease(stage);
        for (int i = 0; i < 3000 && kinf_elector_leads(elector); i++) {
            kinf_fake_advance(stage->fake, 1000);
            nap(1);
        }
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
    for (int i = 0; i < 5000 && stage->number == 1; i++)
        nap(1);
    assert_int_equal(stage->number, KINF_ERR_STOPPED);
    assert_false(stage_has(stage, "default/written"));
    advance_until_active(stage);
    stage_settle(stage);
    assert_true(stage_has(stage, "default/written"));
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
    for (int i = 0; i < 5000 && !stage_status(stage).is_synced; i++)
        nap(1);
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    assert_int_equal(stage->n_reconciles, 0);
    assert_string_equal(holder(stage), "other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, begin, end)
        T(acts_when_it_leads_and_gives_the_lease_up),
        T(a_term_that_ends_ends_its_requests),
        T(nothing_is_written_when_the_term_is_over),
        T(an_elector_that_runs_already_goes_on),
        T(stops_while_another_leads),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
