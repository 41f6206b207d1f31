/*
 * The samples of the last hour; time is a parameter.
 */
#include "serve/last_hour.h"

#include "unit/test.h"

#define EVERY_MS KINF__SAMPLE_EVERY_MS

static void add_at(struct kinf__last_hour *hour, int64_t now_ms)
{
    const struct kinf__sample sample = { now_ms, { [KINF__SAMPLE_EVENTS] = now_ms / 1000 } };

    kinf__last_hour_add(hour, &sample);
}

static void the_first_sample_is_due_at_once_and_the_others_each_ten_seconds(void **state)
{
    struct kinf__last_hour hour = { .n_samples = 0 };

    (void)state;
    assert_true(kinf__last_hour_is_due(&hour, 5000));
    add_at(&hour, 5000);
    assert_false(kinf__last_hour_is_due(&hour, 5000 + EVERY_MS - 1));
    assert_true(kinf__last_hour_is_due(&hour, 5000 + EVERY_MS));
}

/* Between two ticks are 0.2 s: 360 steps of up to that too much would be a minute. */
static void samples_that_come_a_tick_late_do_not_drift(void **state)
{
    struct kinf__last_hour hour = { .n_samples = 0 };
    int64_t now_ms = 1000;

    (void)state;
    add_at(&hour, now_ms);
    for (int i = 1; i <= 100; i++) {
        now_ms = 1000 + (int64_t)i * EVERY_MS + 199;
        assert_false(kinf__last_hour_is_due(&hour, now_ms - 200));
        assert_true(kinf__last_hour_is_due(&hour, now_ms));
        add_at(&hour, now_ms);
    }
}

static void a_gap_is_no_debt(void **state)
{
    struct kinf__last_hour hour = { .n_samples = 0 };

    (void)state;
    add_at(&hour, 1000);
    add_at(&hour, 1000 + 20 * EVERY_MS);
    assert_int_equal(hour.n_samples, 2);
    assert_false(kinf__last_hour_is_due(&hour, 1000 + 21 * EVERY_MS - 1));
    assert_true(kinf__last_hour_is_due(&hour, 1000 + 21 * EVERY_MS));
}

static void an_hour_is_kept_and_what_is_older_goes(void **state)
{
    static struct kinf__last_hour hour;

    (void)state;
    for (int64_t i = 0; i < 1000; i++)
        add_at(&hour, i * EVERY_MS);
    assert_int_equal(hour.n_samples, KINF__SAMPLES_MAX);
    for (size_t i = 0; i < hour.n_samples; i++)
        assert_int_equal(kinf__last_hour_at(&hour, i)->at_ms,
                         (1000 - KINF__SAMPLES_MAX + (int64_t)i) * EVERY_MS);
    assert_int_equal(kinf__last_hour_at(&hour, KINF__SAMPLES_MAX - 1)->at_ms -
                         kinf__last_hour_at(&hour, 0)->at_ms,
                     3600000);
    assert_true(sizeof hour <= 24000);
}

static void written_is_an_array_of_each_value_and_null_for_none(void **state)
{
    struct kinf__last_hour hour = { .n_samples = 0 };
    const struct kinf__sample samples[] = { { 1000, { 0, 1, 2, 3, 4096, 0, -1 } },
                                            { 11000, { 70, 8, 2, 5, 8192, 30, 250 } } };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__report report = { .out = &text, .now_ms = 12500 };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(samples); i++)
        kinf__last_hour_add(&hour, &samples[i]);
    kinf__last_hour_write(&hour, &report);
    assert_int_equal(kinf__report_end(&report), 0);
    assert_string_equal(kinf__buffer_cstr(&text),
                        "\"lastHour\":{\"everyMs\":10000,\"ageMs\":[11500,1500],\"events\":[0,70],"
                        "\"requestsCache\":[1,8],\"requestsUpstream\":[2,2],\"requestsSelf\":[3,5],"
                        "\"residentBytes\":[4096,8192],\"lagMs\":[0,30],\"stalenessMs\":[null,250]"
                        "}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_sample_is_due_at_once_and_the_others_each_ten_seconds),
        cmocka_unit_test(samples_that_come_a_tick_late_do_not_drift),
        cmocka_unit_test(a_gap_is_no_debt),
        cmocka_unit_test(an_hour_is_kept_and_what_is_older_goes),
        cmocka_unit_test(written_is_an_array_of_each_value_and_null_for_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
