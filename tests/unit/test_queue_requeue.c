/*
 * The rate limit of a queue: its three rules, and the longest of them.
 */
#include "queue/requeue.h"

#include "base/compiler.h"
#include "unit/test.h"

/* None of the three, until a test sets what it is about. */
static struct kinf_queue_options no_rules(void)
{
    struct kinf_queue_options options = KINF_QUEUE_OPTIONS_INIT;

    options.backoff_base_ms = -1;
    options.keys_per_second = -1;
    return options;
}

static struct kinf__requeue init(const struct kinf_queue_options *options)
{
    struct kinf__requeue requeue;

    assert_int_equal(kinf__requeue_init(&requeue, options, NULL), 0);
    return requeue;
}

/* Of the first tries of a key. */
static void expect_waits(const struct kinf_queue_options *options, const int64_t *expected_ms,
                         unsigned n_expected)
{
    struct kinf__requeue requeue = init(options);

    for (unsigned n = 0; n < n_expected; n++)
        assert_int_equal(kinf__requeue_delay_ms(&requeue, n, 0), expected_ms[n]);
}

static void without_a_rule_nothing_waits(void **state)
{
    struct kinf_queue_options options = no_rules();
    struct kinf__requeue requeue = init(&options);

    (void)state;
    for (unsigned n = 0; n < 1000; n++)
        assert_int_equal(kinf__requeue_delay_ms(&requeue, n, 1000), 0);
}

static void a_keys_wait_doubles_with_each_failure(void **state)
{
    static const int64_t expected_ms[] = { 1, 2, 4, 8, 16, 32, 64, 100, 100 };
    struct kinf_queue_options options = no_rules();
    struct kinf__requeue requeue;

    (void)state;
    options.backoff_base_ms = 1;
    options.backoff_max_ms = 100;
    requeue = init(&options);
    for (unsigned n = 0; n < KINF__ARRAY_LEN(expected_ms); n++)
        assert_int_equal(kinf__requeue_delay_ms(&requeue, n, 0), expected_ms[n]);
    /* Forgotten. */
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 0, 0), 1);
}

/* Under UBSan. */
static void waits_that_leave_the_numbers_range_are_the_longest(void **state)
{
    static const int64_t bases_ms[] = { 1, 5, 1000, (int64_t)1 << 40, INT64_MAX };
    struct kinf_queue_options options = no_rules();

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(bases_ms); i++) {
        struct kinf__requeue requeue;
        int64_t last_ms = 0;

        options.backoff_base_ms = bases_ms[i];
        options.backoff_max_ms = INT64_MAX - 7;
        requeue = init(&options);
        for (unsigned n = 0; n < 1000; n++) {
            int64_t wait_ms = kinf__requeue_delay_ms(&requeue, n, 0);

            assert_true(wait_ms >= last_ms);
            last_ms = wait_ms;
        }
        assert_int_equal(last_ms, INT64_MAX - 7);
        assert_int_equal(kinf__requeue_delay_ms(&requeue, UINT32_MAX, 0), INT64_MAX - 7);
    }
}

static void some_fast_tries_are_followed_by_slow_ones(void **state)
{
    static const int64_t expected_ms[] = { 5, 5, 5, 10000, 10000 };
    struct kinf_queue_options options = no_rules();

    (void)state;
    options.fast_ms = 5;
    options.slow_ms = 10000;
    options.n_fast = 3;
    expect_waits(&options, expected_ms, KINF__ARRAY_LEN(expected_ms));
}

static void the_longest_wait_of_all_rules_counts(void **state)
{
    static const int64_t expected_ms[] = { 5,    5,    5,    3000, 3000, 3000, 3000,
                                           3000, 3000, 3000, 3000, 3000, 4096 };
    struct kinf_queue_options options = no_rules();

    (void)state;
    options.fast_ms = 5;
    options.slow_ms = 3000;
    options.n_fast = 3;
    options.backoff_base_ms = 1;
    expect_waits(&options, expected_ms, KINF__ARRAY_LEN(expected_ms));
}

static void all_keys_share_one_rate(void **state)
{
    static const int bursts[] = { 1, 3 };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(bursts); i++) {
        struct kinf_queue_options options = no_rules();
        struct kinf__requeue requeue;

        options.keys_per_second = 2;
        options.burst = bursts[i];
        requeue = init(&options);
        for (int k = 0; k < bursts[i]; k++)
            assert_int_equal(kinf__requeue_delay_ms(&requeue, 0, 1000), 0);
        assert_int_equal(kinf__requeue_delay_ms(&requeue, 0, 1000), 500);
        assert_int_equal(kinf__requeue_delay_ms(&requeue, 0, 1000), 1000);
        assert_int_equal(kinf__requeue_delay_ms(&requeue, 0, 60000), 0);
    }
}

static void no_wait_is_longer_than_its_bound(void **state)
{
    struct kinf_queue_options options = no_rules();
    struct kinf__requeue requeue;

    (void)state;
    options.backoff_base_ms = 10;
    options.max_wait_ms = 25;
    requeue = init(&options);
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 0, 0), 10);
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 1, 0), 20);
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 2, 0), 25);
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 40, 0), 25);
}

/* client-go's: 5 ms doubled up to 1,000 s, and 10 keys a second, of which 100 at once. */
static void the_default_is_upstreams(void **state)
{
    struct kinf_queue_options options = KINF_QUEUE_OPTIONS_INIT;
    struct kinf__requeue requeue = init(&options);

    (void)state;
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 0, 0), 5);
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 1, 0), 10);
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 17, 0), 655360);
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 18, 0), 1000000);
    for (int i = 4; i < 100; i++)
        assert_int_equal(kinf__requeue_delay_ms(&requeue, 0, 0), 5);
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 0, 0), 100);
    assert_int_equal(kinf__requeue_delay_ms(&requeue, 0, 0), 200);
}

static void negative_times_are_refused(void **state)
{
    const struct kinf_queue_options wrong[] = {
        { .size = sizeof wrong[0], .backoff_max_ms = -1 },
        { .size = sizeof wrong[0], .fast_ms = -1 },
        { .size = sizeof wrong[0], .slow_ms = -1 },
        { .size = sizeof wrong[0], .max_wait_ms = -1 },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(wrong); i++) {
        struct kinf__requeue requeue;

        assert_int_equal(kinf__requeue_init(&requeue, &wrong[i], NULL), KINF_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_rule_nothing_waits),
        cmocka_unit_test(a_keys_wait_doubles_with_each_failure),
        cmocka_unit_test(waits_that_leave_the_numbers_range_are_the_longest),
        cmocka_unit_test(some_fast_tries_are_followed_by_slow_ones),
        cmocka_unit_test(the_longest_wait_of_all_rules_counts),
        cmocka_unit_test(all_keys_share_one_rate),
        cmocka_unit_test(no_wait_is_longer_than_its_bound),
        cmocka_unit_test(the_default_is_upstreams),
        cmocka_unit_test(negative_times_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
