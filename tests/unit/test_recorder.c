/*
 * A recorder and its server in one process: what kinformer/recorder.h promises.
 */
#include <kinformer/testing.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <kinformer/kinformer.h>

#include "base/clock.h"
#include "unit/allocation.h"
#include "unit/hanging_client.h"
#include "unit/test.h"

#define PATIENCE_MS 60000

struct stage {
    struct kinf_fake *fake;
    struct kinf_error err;
    struct kinf_recorder *recorder;
    const struct kinf_object *object;
};

static void must(struct stage *stage, int failed)
{
    if (failed < 0)
        print_error("%s\n", stage->err.message);
    assert_int_equal(failed, 0);
}

static void pause_ms(int ms)
{
    const struct timespec pause = { ms / 1000, ms % 1000 * 1000000L };

    nanosleep(&pause, NULL);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void start(struct stage *stage, size_t max_queued)
{
    struct kinf_recorder_options options = KINF_RECORDER_OPTIONS_INIT;

    options.controller = "example.dev/tested";
    options.max_queued = max_queued;
    options.events_per_second = -1;
    must(stage,
         kinf_recorder_new(kinf_fake_client(stage->fake), &options, &stage->recorder, &stage->err));
}

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);

    stage->err = (struct kinf_error)KINF_ERROR_INIT;
    must(stage, kinf_fake_new(NULL, &stage->fake, &stage->err));
    must(stage, kinf_fake_put(stage->fake,
                              "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: "
                              "default}}",
                              &stage->err));
    must(stage, kinf_fake_get(stage->fake, "configmaps", "default/c", &stage->object, &stage->err));
    start(stage, 0);
    *state = stage;
    return 0;
}

static void stop(struct stage *stage)
{
    kinf_recorder_free(stage->recorder);
    stage->recorder = NULL;
}

static int end(void **state)
{
    struct stage *stage = *state;

    stop(stage);
    kinf_object_unref(stage->object);
    kinf_fake_free(stage->fake);
    free(stage);
    return 0;
}

static const struct kinf_object *put_in_namespace(struct stage *stage, const char *name)
{
    const struct kinf_object *object;
    char text[256];

    snprintf(text, sizeof text,
             "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n---\n"
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: %s}}",
             name, name);
    must(stage, kinf_fake_put(stage->fake, text, &stage->err));
    snprintf(text, sizeof text, "%s/c", name);
    must(stage, kinf_fake_get(stage->fake, "configmaps", text, &object, &stage->err));
    return object;
}

static void record_about(struct stage *stage, const struct kinf_object *object, const char *reason,
                         int i)
{
    kinf_recorder_event(stage->recorder, object, NULL, KINF_EVENT_NORMAL, reason, "Test",
                        "the note %d", i);
}

static void record(struct stage *stage, const char *reason, int i)
{
    record_about(stage, stage->object, reason, i);
}

static struct kinf_recorder_status status_of(struct stage *stage)
{
    struct kinf_recorder_status status;

    kinf_recorder_status(stage->recorder, &status);
    return status;
}

#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        for (int n_ = 0; !(condition); n_++) {                                                     \
            if (n_ == PATIENCE_MS)                                                                 \
                fail_msg("not in time: %s", #condition);                                           \
            pause_ms(1);                                                                           \
        }                                                                                          \
    } while (0)

/* How often `part` is in the server's events. */
static size_t count_events(struct stage *stage, const char *part)
{
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    size_t n = 0;

    must(stage, kinf_client_request_raw(
                    kinf_fake_client(stage->fake), "GET", "/apis/events.k8s.io/v1/events",
                    (struct kinf_str){ NULL, 0 }, NULL, &response, &stage->err));
    for (const char *at = response.body; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

static void the_same_again_and_again_is_one_event_with_a_series(void **state)
{
    struct stage *stage = *state;

    for (int i = 0; i < 20; i++)
        record(stage, "Happened", i);
    record(stage, "Other", 0);
    WAIT_FOR(status_of(stage).n_sent == 3);
    assert_int_equal(count_events(stage, "\"reason\":\"Happened\""), 1);
    assert_int_equal(count_events(stage, "\"count\":2"), 1);
    assert_int_equal(count_events(stage, "\"note\":\"the note 0\""), 2);
    assert_int_equal(count_events(stage, "\"reportingController\":\"example.dev/tested\""), 2);
    stop(stage);
    assert_int_equal(count_events(stage, "\"count\":20"), 1);
}

static void a_series_that_is_over_is_written_without_being_asked(void **state)
{
    struct stage *stage = *state;

    for (int i = 0; i < 5; i++)
        record(stage, "Happened", i);
    /* Whoever is told of this one has counted those before it. */
    record(stage, "Other", 0);
    WAIT_FOR(status_of(stage).n_sent == 3);
    /* Slowly at the end: an answer that takes ten seconds is given up. */
    kinf_fake_advance(stage->fake, 355 * 1000);
    for (int i = 0; i < 20 && status_of(stage).n_sent < 4; i++) {
        kinf_fake_advance(stage->fake, 1000);
        pause_ms(50);
    }
    WAIT_FOR(status_of(stage).n_sent == 4);
    assert_int_equal(count_events(stage, "\"count\":5"), 1);
    /* The next one begins anew. */
    record(stage, "Happened", 5);
    WAIT_FOR(count_events(stage, "\"reason\":\"Happened\"") == 2);
}

static void what_is_too_much_is_dropped_and_counted(void **state)
{
    struct stage *stage = *state;
    struct kinf_recorder_status status;
    int64_t begin_ms = now_ms();

    stop(stage);
    start(stage, 10);
    must(stage, kinf_fake_fault(stage->fake, "create events.events.k8s.io hang", &stage->err));
    for (int i = 0; i < 1000; i++)
        record(stage, "Happened", i);
    assert_true(now_ms() - begin_ms < 2000);
    status = status_of(stage);
    assert_int_equal(status.n_recorded, 1000);
    assert_true(status.n_dropped >= 989);
    assert_int_equal(status.n_sent, 0);
    begin_ms = now_ms();
    stop(stage);
    assert_true(now_ms() - begin_ms < 2500);
}

/* Slowly, since a request takes 10 s at the most, until so much was sent or given up. */
static void advance_until_over(struct stage *stage, uint64_t n)
{
    struct kinf_recorder_status status = status_of(stage);

    for (int i = 0; i < 2000 && status.n_sent + status.n_failed < n; i++) {
        kinf_fake_advance(stage->fake, 300);
        pause_ms(5);
        status = status_of(stage);
    }
}

static void a_server_that_is_away_for_a_while_is_told_later(void **state)
{
    struct stage *stage = *state;

    must(stage,
         kinf_fake_fault(stage->fake, "create events.events.k8s.io 503 times=3", &stage->err));
    record(stage, "Happened", 0);
    advance_until_over(stage, 1);
    WAIT_FOR(status_of(stage).n_sent == 1);
    assert_int_equal(status_of(stage).n_failed, 0);
    assert_int_equal(count_events(stage, "\"reason\":\"Happened\""), 1);
}

static void a_namespace_that_fails_is_in_the_way_of_no_other(void **state)
{
    struct stage *stage = *state;
    const struct kinf_object *bad = put_in_namespace(stage, "bad");
    int64_t begin_ms = now_ms();

    must(stage, kinf_fake_fault(stage->fake, "create events.events.k8s.io 500 namespace=bad",
                                &stage->err));
    for (int i = 0; i < 3; i++)
        record_about(stage, bad, "Broken", i);
    record(stage, "Happened", 0);
    WAIT_FOR(status_of(stage).n_sent == 1);
    assert_true(now_ms() - begin_ms < 5000);
    assert_int_equal(count_events(stage, "\"reason\":\"Happened\""), 1);
    kinf_fake_clear_faults(stage->fake);
    advance_until_over(stage, 2);
    WAIT_FOR(status_of(stage).n_sent == 2);
    assert_int_equal(count_events(stage, "\"count\":3"), 1);
    assert_int_equal(status_of(stage).n_failed, 0);
    assert_int_equal(status_of(stage).n_dropped, 0);
    kinf_object_unref(bad);
}

static void a_namespace_that_hangs_holds_up_others_once(void **state)
{
    struct stage *stage = *state;
    const struct kinf_object *bad = put_in_namespace(stage, "bad");
    int64_t begin_ms = kinf__clock_now_ms();
    char reason[16];

    must(stage, kinf_fake_fault(stage->fake, "create events.events.k8s.io hang namespace=bad",
                                &stage->err));
    for (int i = 0; i < 5; i++) {
        snprintf(reason, sizeof reason, "R%d", i);
        record_about(stage, bad, reason, i);
    }
    record(stage, "Happened", 0);
    advance_until_over(stage, 1);
    assert_int_equal(status_of(stage).n_sent, 1);
    assert_true(kinf__clock_now_ms() - begin_ms < 20000);
    kinf_fake_clear_faults(stage->fake);
    advance_until_over(stage, 6);
    assert_int_equal(status_of(stage).n_sent, 6);
    kinf_object_unref(bad);
}

static void what_waits_for_its_next_try_is_sent_at_the_end(void **state)
{
    struct stage *stage = *state;
    const struct kinf_object *bad = put_in_namespace(stage, "bad");

    must(stage, kinf_fake_fault(stage->fake,
                                "create events.events.k8s.io 503 retry-after=60 namespace=bad",
                                &stage->err));
    record_about(stage, bad, "Broken", 0);
    record(stage, "Happened", 0);
    WAIT_FOR(status_of(stage).n_sent == 1);
    kinf_fake_clear_faults(stage->fake);
    stop(stage);
    assert_int_equal(count_events(stage, "\"reason\":\"Broken\""), 1);
    kinf_object_unref(bad);
}

static void the_next_try_waits_as_long_as_the_server_says_but_a_minute_at_most(void **state)
{
    static const struct {
        const char *fault;
        int64_t least_ms;
    } cases[] = {
        { "create events.events.k8s.io 429 retry-after=40 times=1", 40000 },
        { "create events.events.k8s.io 503 retry-after=3000 times=1", 60000 },
    };
    struct stage *stage = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t begin_ms = kinf__clock_now_ms();
        char reason[16];

        must(stage, kinf_fake_fault(stage->fake, cases[i].fault, &stage->err));
        snprintf(reason, sizeof reason, "R%zu", i);
        record(stage, reason, 0);
        advance_until_over(stage, i + 1);
        WAIT_FOR(status_of(stage).n_sent == i + 1);
        assert_true(kinf__clock_now_ms() - begin_ms >= cases[i].least_ms);
    }
}

static void what_fails_for_a_minute_and_a_half_is_given_up(void **state)
{
    struct stage *stage = *state;
    int64_t begin_ms = kinf__clock_now_ms();

    must(stage, kinf_fake_fault(stage->fake, "create events.events.k8s.io 503", &stage->err));
    for (int i = 0; i < 3; i++)
        record(stage, "Happened", i);
    advance_until_over(stage, 3);
    WAIT_FOR(status_of(stage).n_failed == 3);
    assert_true(kinf__clock_now_ms() - begin_ms >= 85000);
    kinf_fake_clear_faults(stage->fake);
    record(stage, "Happened", 3);
    WAIT_FOR(status_of(stage).n_sent == 1);
}

static void what_nobody_hears_waits_until_somebody_does(void **state)
{
    struct stage *stage = *state;

    must(stage, kinf_fake_fault(stage->fake, "create events.events.k8s.io reset early after=0",
                                &stage->err));
    record(stage, "Happened", 0);
    for (int i = 0; i < 400; i++) { /* slowly: a request takes 10 s at the most */
        kinf_fake_advance(stage->fake, 300);
        pause_ms(5);
    }
    assert_int_equal(status_of(stage).n_failed, 0);
    kinf_fake_clear_faults(stage->fake);
    advance_until_over(stage, 1);
    WAIT_FOR(status_of(stage).n_sent == 1);
    assert_int_equal(count_events(stage, "\"reason\":\"Happened\""), 1);
}

static void one_that_came_though_its_answer_did_not_is_there_once(void **state)
{
    struct stage *stage = *state;

    must(stage, kinf_fake_fault(stage->fake, "create events.events.k8s.io reset after=0 times=1",
                                &stage->err));
    record(stage, "Happened", 0);
    advance_until_over(stage, 1);
    assert_int_equal(status_of(stage).n_sent, 1);
    assert_int_equal(count_events(stage, "\"reason\":\"Happened\""), 1);
}

static void one_whose_answer_was_lost_is_told_of_those_that_came_since(void **state)
{
    struct stage *stage = *state;

    must(stage, kinf_fake_fault(stage->fake, "create events.events.k8s.io reset after=0 times=1",
                                &stage->err));
    record(stage, "Happened", 0);
    WAIT_FOR(count_events(stage, "\"reason\":\"Happened\"") == 1);
    for (int i = 1; i < 3; i++)
        record(stage, "Happened", i);
    WAIT_FOR(status_of(stage).n_queued == 0);
    advance_until_over(stage, 1);
    WAIT_FOR(count_events(stage, "\"count\":3") == 1);
    assert_int_equal(count_events(stage, "\"reason\":\"Happened\""), 1);
}

static void what_is_refused_is_not_tried_again(void **state)
{
    struct stage *stage = *state;

    must(stage,
         kinf_fake_fault(stage->fake, "create events.events.k8s.io 403 times=1", &stage->err));
    record(stage, "Happened", 0);
    WAIT_FOR(status_of(stage).n_failed == 1);
    assert_int_equal(count_events(stage, "\"reason\":\"Happened\""), 0);
    record(stage, "Happened", 1);
    WAIT_FOR(status_of(stage).n_sent == 1);
}

static void an_event_that_was_deleted_is_made_again_with_its_series(void **state)
{
    struct stage *stage = *state;

    record(stage, "Happened", 0);
    WAIT_FOR(status_of(stage).n_sent == 1);
    must(stage, kinf_client_request_raw(kinf_fake_client(stage->fake), "DELETE",
                                        "/apis/events.k8s.io/v1/namespaces/default/events",
                                        (struct kinf_str){ NULL, 0 }, NULL, NULL, &stage->err));
    record(stage, "Happened", 1);
    WAIT_FOR(count_events(stage, "\"count\":2") == 1);
}

static void the_end_sends_what_is_left(void **state)
{
    enum { N = 3 }; /* within a second, on a busy machine */
    struct stage *stage = *state;
    char reason[16];

    for (int i = 0; i < N; i++) {
        snprintf(reason, sizeof reason, "R%d", i);
        record(stage, reason, i);
        record(stage, reason, i);
        record(stage, reason, i);
    }
    stop(stage);
    assert_int_equal(count_events(stage, "\"count\":3"), N);
}

static void namespaces_that_go_away_are_no_trouble(void **state)
{
    struct stage *stage = *state;
    const struct kinf_object *gone = put_in_namespace(stage, "gone");

    must(stage, kinf_fake_delete(stage->fake, "namespaces", "gone", &stage->err));
    must(stage, kinf_fake_settle(stage->fake, PATIENCE_MS, &stage->err));
    kinf_recorder_event(stage->recorder, gone, stage->object, KINF_EVENT_WARNING, "Gone", "Test",
                        "note");
    WAIT_FOR(status_of(stage).n_failed == 1);
    record(stage, "Happened", 0);
    WAIT_FOR(status_of(stage).n_sent == 1);
    kinf_object_unref(gone);
}

static void what_has_no_namespace_is_told_in_default(void **state)
{
    struct stage *stage = *state;
    const struct kinf_object *name_space;

    must(stage, kinf_fake_get(stage->fake, "namespaces", "default", &name_space, &stage->err));
    kinf_recorder_event(stage->recorder, name_space, stage->object, KINF_EVENT_WARNING, "Seen",
                        "Test", "%s", "note");
    WAIT_FOR(status_of(stage).n_sent == 1);
    assert_int_equal(count_events(stage, "\"related\":{"), 1);
    assert_int_equal(count_events(stage, "\"type\":\"Warning\""), 1);
    kinf_object_unref(name_space);
}

static void *record_many(void *ctx)
{
    for (int i = 0; i < 200; i++)
        record(ctx, "Happened", i);
    return NULL;
}

static void any_thread_may_record(void **state)
{
    struct stage *stage = *state;
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, record_many, stage);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(status_of(stage).n_recorded, 800);
    stop(stage);
    assert_int_equal(count_events(stage, "\"count\":800"), 1);
}

static void a_credential_plugin_that_hangs_does_not_hold_up_the_end(void **state)
{
    struct stage *stage = *state;
    struct kinf_recorder_options options = KINF_RECORDER_OPTIONS_INIT;
    struct kinf_client *client = test_hanging_client();
    int64_t begin_ms;

    stop(stage);
    options.controller = "c";
    must(stage, kinf_recorder_new(client, &options, &stage->recorder, &stage->err));
    record(stage, "Happened", 0);
    pause_ms(100);
    begin_ms = now_ms();
    stop(stage);
    assert_true(now_ms() - begin_ms < 2500);
    kinf_client_free(client);
}

static void what_cannot_be_meant_is_refused(void **state)
{
    struct stage *stage = *state;
    struct kinf_recorder_options options = KINF_RECORDER_OPTIONS_INIT;
    struct kinf_recorder *recorder;
    char longest[129] = "";

    memset(longest, 'x', sizeof longest - 1);
    assert_int_equal(kinf_recorder_new(kinf_fake_client(stage->fake), &options, &recorder, NULL),
                     KINF_ERR_INVALID);
    options.controller = "c";
    options.instance = "";
    assert_int_equal(kinf_recorder_new(kinf_fake_client(stage->fake), &options, &recorder, NULL),
                     KINF_ERR_INVALID);
    record(stage, "", 0);
    record(stage, longest, 0);
    assert_int_equal(status_of(stage).n_recorded, 1);
    longest[0] = '\xe4';
    record(stage, longest, 0);
    assert_int_equal(status_of(stage).n_recorded, 1);
}

static void without_memory_events_are_dropped(void **state)
{
    struct stage *stage = *state;
    bool has_failed = true;

    for (size_t n = 1; has_failed; n++) {
        uint64_t n_dropped = status_of(stage).n_dropped;

        test_fail_allocation(n);
        record(stage, "Happened", 0);
        has_failed = test_allocation_failed();
        test_fail_allocation(0);
        assert_int_equal(status_of(stage).n_dropped, n_dropped + has_failed);
    }
}

static void without_memory_there_is_none(void **state)
{
    struct stage *stage = *state;
    struct kinf_recorder_options options = KINF_RECORDER_OPTIONS_INIT;

    stop(stage);
    options.controller = "c";
    for (size_t n = 1; stage->recorder == NULL; n++) {
        test_fail_allocation(n);
        if (kinf_recorder_new(kinf_fake_client(stage->fake), &options, &stage->recorder,
                              &stage->err) < 0)
            assert_int_equal(stage->err.code, KINF_ERR_NO_MEMORY);
        test_fail_allocation(0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_same_again_and_again_is_one_event_with_a_series),
        TEST(a_series_that_is_over_is_written_without_being_asked),
        TEST(what_is_too_much_is_dropped_and_counted),
        TEST(a_server_that_is_away_for_a_while_is_told_later),
        TEST(a_namespace_that_fails_is_in_the_way_of_no_other),
        TEST(a_namespace_that_hangs_holds_up_others_once),
        TEST(what_waits_for_its_next_try_is_sent_at_the_end),
        TEST(the_next_try_waits_as_long_as_the_server_says_but_a_minute_at_most),
        TEST(what_fails_for_a_minute_and_a_half_is_given_up),
        TEST(what_nobody_hears_waits_until_somebody_does),
        TEST(one_that_came_though_its_answer_did_not_is_there_once),
        TEST(one_whose_answer_was_lost_is_told_of_those_that_came_since),
        TEST(what_is_refused_is_not_tried_again),
        TEST(an_event_that_was_deleted_is_made_again_with_its_series),
        TEST(the_end_sends_what_is_left),
        TEST(namespaces_that_go_away_are_no_trouble),
        TEST(what_has_no_namespace_is_told_in_default),
        TEST(any_thread_may_record),
        TEST(a_credential_plugin_that_hangs_does_not_hold_up_the_end),
        TEST(what_cannot_be_meant_is_refused),
        TEST(without_memory_events_are_dropped),
        TEST(without_memory_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
