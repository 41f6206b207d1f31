/*
 * The server's clock: it sleeps while nothing is due, and nothing is later for that.
 */
#include <time.h>

#include "base/clock.h"
#include "serve/server_priv.h"
#include "unit/test.h"

#define TICK_MS 200 /* between two, at least */
#define LATE_MS                                                                                    \
    2000 /* of a machine that has much to do, and far from the last hour's next sample */

struct fixture {
    struct kinf__server *server;
    struct kinf__tick_hook hook;
    /* guarded by the server's lock */
    unsigned n_ticks;
    int64_t tick_ms;       /* of the last one */
    int64_t next_ms;       /* what the hook says that is due next */
    int64_t said_again_ms; /* what it says to kinf__server_expect(), from then; 0: nothing */
};

static int64_t on_tick(int64_t now_ms, void *ctx)
{
    struct fixture *f = ctx;

    f->n_ticks++;
    f->tick_ms = now_ms;
    if (f->said_again_ms != 0)
        kinf__server_expect(f->server, now_ms + f->said_again_ms);
    return f->next_ms;
}

static int set_up(void **state)
{
    struct kinf__server_options options = { 0 };
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL || kinf__server_new(&options, &f->server, NULL) < 0)
        return -1;
    f->next_ms = KINF__NEVER_MS;
    f->hook = (struct kinf__tick_hook){ .tick = on_tick, .ctx = f };
    kinf__server_add_hook(f->server, &f->hook);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    kinf__server_remove_hook(f->server, &f->hook);
    kinf__server_stop(f->server);
    kinf__server_free(f->server);
    free(f);
    return 0;
}

static int set_up_simulated(void **state)
{
    kinf__clock_begin_simulation();
    return set_up(state);
}

static int tear_down_simulated(void **state)
{
    int failed = tear_down(state);

    kinf__clock_end_simulation();
    return failed;
}

static unsigned count(struct fixture *f, int64_t *ret_tick_ms)
{
    unsigned n;

    kinf__mutex_lock(&f->server->lock);
    n = f->n_ticks;
    if (ret_tick_ms != NULL)
        *ret_tick_ms = f->tick_ms;
    kinf__mutex_unlock(&f->server->lock);
    return n;
}

static void nap(void)
{
    const struct timespec pause = { 0, 1000000 };

    nanosleep(&pause, NULL);
}

/* Until it has ticked once more; returns when it did, on the clock that is simulated. */
static int64_t await_tick(struct fixture *f, unsigned before)
{
    int64_t tick_ms;

    while (count(f, &tick_ms) <= before)
        nap();
    return tick_ms;
}

/* Simulated time goes by in steps, so that no tick is left out. */
static void pass(int64_t ms)
{
    for (; ms > 0; ms -= 50) {
        kinf__clock_advance(50);
        nap();
        nap();
        nap();
    }
}

/* The one behind the start is through; the next is the last hour's, in ten seconds. */
static unsigned settle(struct fixture *f)
{
    int64_t due_ms = kinf__clock_now_ms() + TICK_MS;

    kinf__server_expect(f->server, due_ms);
    kinf__clock_advance(TICK_MS);
    while (await_tick(f, 0) < due_ms)
        nap();
    return count(f, NULL);
}

static void a_server_to_which_nothing_happens_ticks_for_its_samples_alone(void **state)
{
    struct fixture *f = *state;
    unsigned before = settle(f);
    int64_t begun_ms = kinf__clock_now_ms();

    pass(30000);
    assert_in_range(count(f, NULL) - before, 1,
                    1 + (kinf__clock_now_ms() - begun_ms) / KINF__SAMPLE_EVERY_MS);
}

static void what_is_said_is_done_in_time(void **state)
{
    struct fixture *f = *state;
    unsigned before = settle(f);
    int64_t due_ms = kinf__clock_now_ms() + 3000;

    kinf__server_expect(f->server, due_ms + 60000); /* later than what is known: nothing changes */
    kinf__server_expect(f->server, due_ms);
    kinf__server_expect(f->server, due_ms + 100);
    pass(2000);
    kinf__clock_advance(1000);
    assert_in_range(await_tick(f, before), due_ms, due_ms + TICK_MS + LATE_MS);
}

/* In real time, where it sleeps. */
static void who_has_something_earlier_wakes_it(void **state)
{
    struct fixture *f = *state;
    int64_t before_ms = kinf__clock_now_ms();
    unsigned before;

    while (kinf__clock_now_ms() - before_ms < 2 * TICK_MS)
        nap();
    before = count(f, NULL);
    before_ms = kinf__clock_now_ms();
    kinf__server_expect(f->server, before_ms + 100);
    assert_in_range(await_tick(f, before), before_ms + 100, before_ms + 100 + LATE_MS);
}

/* Neither what a tick finds out nor what is said meanwhile is forgotten. */
static void what_comes_up_in_a_tick_is_not_lost(void **state)
{
    struct fixture *f = *state;
    unsigned before = settle(f);
    int64_t first_ms;

    kinf__mutex_lock(&f->server->lock);
    f->said_again_ms = 700;
    kinf__mutex_unlock(&f->server->lock);
    kinf__server_expect(f->server, 0);
    kinf__clock_advance(TICK_MS);
    first_ms = await_tick(f, before);
    kinf__mutex_lock(&f->server->lock);
    f->said_again_ms = 0;
    f->next_ms = first_ms + 900;
    kinf__mutex_unlock(&f->server->lock);
    pass(700);
    assert_in_range(await_tick(f, before + 1), first_ms + 700, first_ms + 700 + TICK_MS + LATE_MS);
    kinf__mutex_lock(&f->server->lock);
    f->next_ms = KINF__NEVER_MS;
    kinf__mutex_unlock(&f->server->lock);
    pass(400);
    assert_in_range(await_tick(f, before + 2), first_ms + 900,
                    first_ms + 900 + 2 * (TICK_MS + LATE_MS));
}

static void however_much_is_said_ticks_keep_their_distance(void **state)
{
    struct fixture *f = *state;
    unsigned before = settle(f);
    int64_t begun_ms = kinf__clock_now_ms();

    for (int i = 0; i < 200; i++) {
        kinf__server_expect(f->server, 0);
        kinf__clock_advance(10);
        nap();
    }
    assert_in_range(count(f, NULL) - before, 2, 1 + (kinf__clock_now_ms() - begun_ms) / TICK_MS);
}

int main(void)
{
#define TIME_TEST(test) cmocka_unit_test_setup_teardown(test, set_up_simulated, tear_down_simulated)
    const struct CMUnitTest tests[] = {
        TIME_TEST(a_server_to_which_nothing_happens_ticks_for_its_samples_alone),
        TIME_TEST(what_is_said_is_done_in_time),
        cmocka_unit_test_setup_teardown(who_has_something_earlier_wakes_it, set_up, tear_down),
        TIME_TEST(what_comes_up_in_a_tick_is_not_lost),
        TIME_TEST(however_much_is_said_ticks_keep_their_distance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
