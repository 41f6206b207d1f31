/*
 * When a body that goes on is too slow; time is a parameter.
 */
#include "reflector/pace.h"

#include "unit/test.h"

#define WINDOW_MS 75000

static void a_byte_now_and_then_is_late_when_the_window_is_over(void **state)
{
    struct kinf__pace pace;
    int64_t now_ms = 5000;

    (void)state;
    kinf__pace_begin(&pace, WINDOW_MS, now_ms);
    for (int i = 0; i < 3; i++) {
        now_ms += 20000;
        assert_true(kinf__pace_take(&pace, 1, false, now_ms, now_ms));
    }
    assert_false(kinf__pace_take(&pace, 1, false, now_ms + 20000, now_ms + 20000));
}

static void many_bytes_and_what_means_something_are_progress(void **state)
{
    struct kinf__pace pace;
    int64_t now_ms = 0;

    (void)state;
    kinf__pace_begin(&pace, WINDOW_MS, now_ms);
    for (int i = 0; i < 100; i++) {
        now_ms += WINDOW_MS;
        assert_true(
            kinf__pace_take(&pace, i % 2 == 0 ? KINF__PACE_BYTES : 1, i % 2 != 0, now_ms, now_ms));
    }
}

/* A handler that does not read holds us up, not the peer. */
static void what_the_pieces_are_worked_on_is_not_the_peers_time(void **state)
{
    struct kinf__pace pace;
    int64_t now_ms = 0;

    (void)state;
    kinf__pace_begin(&pace, WINDOW_MS, now_ms);
    for (int i = 0; i < 5; i++) {
        assert_true(kinf__pace_take(&pace, 1, false, now_ms, now_ms + 10 * WINDOW_MS));
        now_ms += 10 * WINDOW_MS + 10000;
    }
    assert_false(kinf__pace_take(&pace, 1, false, now_ms + 30000, now_ms + 30000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_now_and_then_is_late_when_the_window_is_over),
        cmocka_unit_test(many_bytes_and_what_means_something_are_progress),
        cmocka_unit_test(what_the_pieces_are_worked_on_is_not_the_peers_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
