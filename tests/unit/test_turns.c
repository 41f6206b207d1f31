/*
 * Turns on a thread, played with a loop of rounds as libmicrohttpd's: in each round everybody who is
 * awake is called once.
 */
#include "serve/turns.h"

#include "base/compiler.h"
#include "unit/test.h"

#define SLICE_US 1000
#define N_MAX    100

struct request {
    struct kinf__turn turn;
    bool is_awake;
    int64_t left_us; /* of its work */
    unsigned n_slices;
};

struct loop {
    struct kinf__turns turns;
    int64_t now_us;
    struct request requests[N_MAX];
};

static void wake(void *ctx)
{
    struct request *request = ctx;

    request->is_awake = true;
}

static void begin(struct loop *loop, struct request *request, bool is_long, int64_t work_us)
{
    *request = (struct request){ .is_awake = true, .left_us = work_us };
    kinf__turn_init(&request->turn, is_long, loop->now_us, wake, request);
}

static void end(struct loop *loop, struct request *request)
{
    request->is_awake = false;
    request->left_us = 0;
    kinf__turn_leave(&loop->turns, &request->turn);
}

/* Works until the request sleeps or is through. */
static void call(struct loop *loop, struct request *request)
{
    while (request->left_us > 0) {
        int64_t slice_us = request->left_us < SLICE_US ? request->left_us : SLICE_US;

        if (!kinf__turn_begin(&loop->turns, &request->turn, loop->now_us)) {
            request->is_awake = false;
            kinf__turn_wait(&loop->turns, &request->turn);
            return;
        }
        request->n_slices++;
        request->left_us -= slice_us;
        loop->now_us += slice_us;
        kinf__turn_end(&loop->turns, &request->turn, loop->now_us);
    }
    end(loop, request);
}

/* Returns how long it took. */
static int64_t run_round(struct loop *loop)
{
    int64_t before_us = loop->now_us;
    bool was_awake[N_MAX];

    for (size_t i = 0; i < N_MAX; i++)
        was_awake[i] = loop->requests[i].is_awake;
    for (size_t i = 0; i < N_MAX; i++) {
        if (was_awake[i])
            call(loop, &loop->requests[i]);
    }
    return loop->now_us - before_us;
}

static void make(struct loop *loop)
{
    *loop = (struct loop){ .now_us = 1 };
    kinf__turns_init(&loop->turns);
    for (size_t i = 0; i < N_MAX; i++)
        kinf__turn_init(&loop->requests[i].turn, false, 0, wake, &loop->requests[i]);
}

static void who_is_alone_goes_on_in_each_round(void **state)
{
    struct loop loop;

    (void)state;
    make(&loop);
    begin(&loop, &loop.requests[0], false, (int64_t)10 * SLICE_US);
    for (unsigned i = 1; i <= 10; i++) {
        assert_int_equal(run_round(&loop), SLICE_US);
        assert_int_equal(loop.requests[0].n_slices, i);
    }
    assert_null(loop.turns.holder);
}

static void a_round_has_one_slice_of_many_long_requests(void **state)
{
    struct loop loop;

    (void)state;
    make(&loop);
    for (size_t i = 0; i < N_MAX; i++)
        begin(&loop, &loop.requests[i], true, (int64_t)3 * SLICE_US);
    assert_int_equal(run_round(&loop), 0);
    for (size_t i = 0; i < (size_t)3 * N_MAX; i++) {
        assert_int_equal(run_round(&loop), SLICE_US);
        assert_int_equal(loop.requests[i % N_MAX].n_slices, i / N_MAX + 1);
    }
    assert_null(loop.turns.holder);
}

static void a_short_one_waits_for_nobody(void **state)
{
    struct loop loop;

    (void)state;
    make(&loop);
    for (size_t i = 1; i < N_MAX; i++)
        begin(&loop, &loop.requests[i], true, (int64_t)100 * SLICE_US);
    run_round(&loop);
    for (int i = 0; i < 50; i++) {
        begin(&loop, &loop.requests[0], false, 50);
        assert_in_range(run_round(&loop), 50, 50 + SLICE_US);
        assert_int_equal(loop.requests[0].left_us, 0);
    }
}

static void what_was_used_at_once_comes_back_slowly(void **state)
{
    struct loop loop;
    struct request *one = &loop.requests[0], *other = &loop.requests[1];

    (void)state;
    make(&loop);
    begin(&loop, one, false, 150);
    begin(&loop, other, true, (int64_t)1000 * SLICE_US);
    run_round(&loop);
    assert_int_equal(one->left_us, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(one->left_us, 0);
        one->left_us = 100;
        one->is_awake = true;
        run_round(&loop);
    }
    /* Behind the other one now, and only for a round. */
    assert_int_equal(one->left_us, 100);
    run_round(&loop);
    assert_int_equal(one->left_us, 0);
    loop.now_us += 1000000;
    one->left_us = 100;
    one->is_awake = true;
    run_round(&loop);
    assert_int_equal(one->left_us, 0);
}

static void a_turn_is_handed_on_by_who_leaves(void **state)
{
    struct loop loop;

    (void)state;
    make(&loop);
    for (size_t i = 0; i < 3; i++)
        begin(&loop, &loop.requests[i], true, (int64_t)10 * SLICE_US);
    run_round(&loop);
    assert_ptr_equal(loop.turns.holder, &loop.requests[0].turn);
    end(&loop, &loop.requests[1]);
    end(&loop, &loop.requests[0]);
    assert_ptr_equal(loop.turns.holder, &loop.requests[2].turn);
    assert_true(loop.requests[2].is_awake);
    assert_int_equal(run_round(&loop), SLICE_US);
    end(&loop, &loop.requests[2]);
    assert_null(loop.turns.holder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_alone_goes_on_in_each_round),
        cmocka_unit_test(a_round_has_one_slice_of_many_long_requests),
        cmocka_unit_test(a_short_one_waits_for_nobody),
        cmocka_unit_test(what_was_used_at_once_comes_back_slowly),
        cmocka_unit_test(a_turn_is_handed_on_by_who_leaves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
