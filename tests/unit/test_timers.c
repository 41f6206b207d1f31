/*
 * The heap of timers, against an array that is searched.
 */
#include "base/timers.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "unit/test.h"

#define N 500

static const struct kinf__timer *earliest(const struct kinf__timer *timers)
{
    const struct kinf__timer *first = NULL;

    for (size_t i = 0; i < N; i++) {
        if (timers[i].is_set && (first == NULL || timers[i].at_ms < first->at_ms))
            first = &timers[i];
    }
    return first;
}

static void the_earliest_is_first_whatever_is_set_and_cleared(void **state)
{
    static struct kinf__timer timers[N];
    struct kinf__timers heap = { NULL };
    struct test_random random = test_random_init("timers");

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct kinf__timer *one = &timers[test_random_below(&random, N)];
        const struct kinf__timer *first;

        switch (test_random_below(&random, 8)) {
        case 0:
            kinf__timer_clear(&heap, one);
            break;
        case 1:
            first = earliest(timers);
            if (first != NULL) {
                int64_t at_ms = first->at_ms;

                assert_null(kinf__timers_take_due(&heap, at_ms - 1));
                one = kinf__timers_take_due(&heap, at_ms);
                assert_int_equal(one->at_ms, at_ms);
                assert_false(one->is_set);
            }
            break;
        default:
            kinf__timer_set(&heap, one, (int64_t)test_random_below(&random, 1000));
        }
        first = earliest(timers);
        assert_int_equal(kinf__timers_next_ms(&heap),
                         first != NULL ? first->at_ms : KINF__NEVER_MS);
    }
}

static void all_come_in_order(void **state)
{
    static struct kinf__timer timers[N];
    struct kinf__timers heap = { NULL };
    int64_t before_ms = 0;

    (void)state;
    for (size_t i = 0; i < N; i++)
        kinf__timer_set(&heap, &timers[i], (int64_t)(i * 7919 % N));
    for (size_t i = 0; i < N; i++) {
        const struct kinf__timer *one = kinf__timers_take_due(&heap, INT64_MAX);

        assert_non_null(one);
        assert_true(one->at_ms >= before_ms);
        before_ms = one->at_ms;
    }
    assert_null(kinf__timers_take_due(&heap, INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earliest_is_first_whatever_is_set_and_cleared),
        cmocka_unit_test(all_come_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
