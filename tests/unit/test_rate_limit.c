/*
 * The token bucket.
 */
#include "base/rate_limit.h"

#include "base/compiler.h"
#include "unit/test.h"

static int64_t wait_of(struct kinf__rate_limit *limit, int64_t now_ms)
{
    int64_t wait_ms = -1;

    assert_true(kinf__rate_limit_take(limit, now_ms, 1000000, &wait_ms));
    return wait_ms;
}

static void a_burst_goes_out_at_once_and_then_one_after_the_other(void **state)
{
    struct kinf__rate_limit limit;

    (void)state;
    kinf__rate_limit_init(&limit, 5, 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(wait_of(&limit, 1000), 0);
    assert_int_equal(wait_of(&limit, 1000), 200);
    assert_int_equal(wait_of(&limit, 1000), 400);
    assert_int_equal(wait_of(&limit, 1400), 200);
    /* After a rest there is a burst again, and not more. */
    for (int i = 0; i < 10; i++)
        assert_int_equal(wait_of(&limit, 60000), 0);
    assert_int_equal(wait_of(&limit, 60000), 200);
}

static void a_turn_that_comes_too_late_is_not_taken(void **state)
{
    struct kinf__rate_limit limit;
    int64_t wait_ms = -1;

    (void)state;
    kinf__rate_limit_init(&limit, 1, 1);
    assert_int_equal(wait_of(&limit, 5), 0);
    assert_false(kinf__rate_limit_take(&limit, 5, 999, &wait_ms));
    assert_int_equal(wait_ms, -1);
    assert_int_equal(wait_of(&limit, 5), 1000);
}

static void a_turn_that_is_given_back_is_another_ones(void **state)
{
    struct kinf__rate_limit limit;

    (void)state;
    kinf__rate_limit_init(&limit, 5, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(wait_of(&limit, 0), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wait_of(&limit, 0), 200);
        kinf__rate_limit_give_back(&limit);
    }
    /* What is not taken for long does not become more than a burst. */
    assert_int_equal(wait_of(&limit, 0), 200);
    kinf__rate_limit_give_back(&limit);
    for (int i = 0; i < 2; i++)
        assert_int_equal(wait_of(&limit, 60000), 0);
    assert_int_equal(wait_of(&limit, 60000), 200);
}

/* Under UBSan: neither a rate near none nor the largest burst leaves the numbers' range. */
static void extreme_limits_are_kept_to(void **state)
{
    static const double rates[] = { 1e-300, 1e-9, 1.0 / 3600, 1e6, 1e300 };
    struct kinf__rate_limit limit;
    int64_t wait_ms;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rates); i++) {
        kinf__rate_limit_init(&limit, rates[i], INT32_MAX);
        for (int k = 0; k < 1000; k++)
            assert_int_equal(wait_of(&limit, 1), 0);
    }
    kinf__rate_limit_init(&limit, 1e-300, 1);
    assert_int_equal(wait_of(&limit, 0), 0);
    assert_false(kinf__rate_limit_take(&limit, 0, 3599999, &wait_ms));
    assert_true(kinf__rate_limit_take(&limit, 0, 3600000, &wait_ms));
}

static void a_negative_rate_is_none(void **state)
{
    struct kinf__rate_limit limit;

    (void)state;
    kinf__rate_limit_init(&limit, -1, 1);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(wait_of(&limit, 1), 0);
}

/* In whatever pattern they come: never more than a burst and what has grown since. */
static void no_pattern_beats_the_rate(void **state)
{
    struct test_random random = test_random_init(__func__);
    struct kinf__rate_limit limit;
    int64_t now_ms = 0, n_gone = 0;

    (void)state;
    kinf__rate_limit_init(&limit, 20, 7);
    for (size_t i = 0; i < 20000; i++) {
        int64_t wait_ms;

        now_ms += (int64_t)test_random_below(&random, 60);
        if (kinf__rate_limit_take(&limit, now_ms, 0, &wait_ms))
            n_gone++;
        assert_true(n_gone <= 7 + now_ms / 50);
    }
    assert_true(n_gone >= now_ms / 50 - 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_goes_out_at_once_and_then_one_after_the_other),
        cmocka_unit_test(a_turn_that_comes_too_late_is_not_taken),
        cmocka_unit_test(a_turn_that_is_given_back_is_another_ones),
        cmocka_unit_test(extreme_limits_are_kept_to),
        cmocka_unit_test(a_negative_rate_is_none),
        cmocka_unit_test(no_pattern_beats_the_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
