/*
 * A producer in the consumer's place: who may borrow the queue, and what becomes of the consumer
 * meanwhile.
 */
#include "unit/deltafifo_fixture.h"

#include <sched.h>

#include "base/thread.h"
#include "deltafifo/deltafifo.h"

#include "unit/test.h"

static int pop_borrowed(struct fifo_fixture *f)
{
    int rc = kinf__deltafifo_pop_borrowed(f->fifo, fifo_process, f);

    assert_true(kinf__deltafifo_check(f->fifo));
    return rc;
}

/* Borrowed from a consumer that waits, with "a" queued. */
static void open_borrowed(struct fifo_fixture *f, struct fifo_waiter *consumer)
{
    fifo_open_bare(f);
    fifo_start_blocked_pop(f, consumer);
    kinf__deltafifo_set_corked(f->fifo, true);
    fifo_add(f, "a", "1");
    assert_true(kinf__deltafifo_borrow(f->fifo));
    assert_true(kinf__deltafifo_check(f->fifo));
}

static int result_of(struct fifo_waiter *consumer)
{
    pthread_join(consumer->thread, NULL);
    return consumer->result;
}

static void what_came_alone_is_processed_and_the_consumer_sleeps_on(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer;

    open_borrowed(f, &consumer);
    assert_int_equal(pop_borrowed(f), 0);
    assert_string_equal(f->popped, "a: Added@1");
    assert_int_equal(pop_borrowed(f), KINF_ERR_TIMEOUT);
    kinf__deltafifo_give_back(f->fifo, false);
    kinf__deltafifo_set_corked(f->fifo, false);
    assert_true(kinf__deltafifo_borrow(f->fifo)); /* it waits as before */
    kinf__deltafifo_give_back(f->fifo, false);
    fifo_add(f, "b", "2");
    assert_int_equal(result_of(&consumer), 0);
    assert_string_equal(fifo_pop(f), "");
}

static void nobody_lends_who_does_not_wait(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer;

    fifo_open_bare(f);
    assert_false(kinf__deltafifo_borrow(f->fifo));
    fifo_add(f, "a", "1");
    assert_false(kinf__deltafifo_borrow(f->fifo));
    assert_string_equal(fifo_pop(f), "a: Added@1");
    fifo_reset(f);
    open_borrowed(f, &consumer);
    assert_false(kinf__deltafifo_borrow(f->fifo));
    kinf__deltafifo_give_back(f->fifo, false);
    assert_int_equal(result_of(&consumer), 0);
    assert_false(kinf__deltafifo_borrow(f->fifo));
}

/* Each by one that has woken it, and that it has not run since. */
static void who_was_woken_does_not_lend(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer;

    fifo_open_bare(f);
    fifo_start_blocked_pop(f, &consumer);
    fifo_add(f, "a", "1");
    assert_false(kinf__deltafifo_borrow(f->fifo));
    assert_int_equal(result_of(&consumer), 0);
    fifo_start_blocked_pop(f, &consumer);
    kinf__deltafifo_nudge(f->fifo);
    assert_false(kinf__deltafifo_borrow(f->fifo));
    assert_int_equal(result_of(&consumer), KINF_ERR_TIMEOUT);
    fifo_start_blocked_pop(f, &consumer);
    kinf_deltafifo_close(f->fifo);
    assert_false(kinf__deltafifo_borrow(f->fifo));
    assert_int_equal(result_of(&consumer), KINF_ERR_STOPPED);
}

static void what_is_left_is_the_consumers(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer;

    open_borrowed(f, &consumer);
    kinf__deltafifo_give_back(f->fifo, false);
    assert_int_equal(result_of(&consumer), 0);
    assert_string_equal(fifo_pop(f), "");
}

static void giving_back_nudges(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer;

    open_borrowed(f, &consumer);
    assert_int_equal(pop_borrowed(f), 0);
    kinf__deltafifo_give_back(f->fifo, true);
    assert_int_equal(result_of(&consumer), KINF_ERR_TIMEOUT);
}

static void a_nudge_meanwhile_is_not_lost(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer;

    open_borrowed(f, &consumer);
    kinf__deltafifo_nudge(f->fifo);
    assert_int_equal(pop_borrowed(f), 0);
    assert_int_equal(pop_borrowed(f), KINF_ERR_TIMEOUT);
    kinf__deltafifo_give_back(f->fifo, false);
    assert_int_equal(result_of(&consumer), KINF_ERR_TIMEOUT);
}

static void *pop_for_a_moment(void *ctx)
{
    struct fifo_waiter *consumer = ctx;

    consumer->result = kinf_deltafifo_pop(consumer->fifo, fifo_process, NULL, 30);
    return NULL;
}

/* Its time is over, but the place is taken. */
static void the_consumer_waits_until_it_is_given_back(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer = { 0 };

    fifo_open_bare(f);
    consumer.fifo = f->fifo;
    assert_int_equal(kinf__thread_start(&consumer.thread, "pop", pop_for_a_moment, &consumer, NULL),
                     0);
    while (!kinf__deltafifo_borrow(f->fifo))
        sched_yield();
    while (!fifo_flag(f->fifo, &f->fifo->is_wanted_back))
        sched_yield();
    assert_true(kinf__deltafifo_check(f->fifo));
    kinf__deltafifo_set_corked(f->fifo, true);
    fifo_add(f, "a", "1");
    assert_int_equal(pop_borrowed(f), 0);
    kinf__deltafifo_give_back(f->fifo, false);
    assert_int_equal(result_of(&consumer), KINF_ERR_TIMEOUT);
}

static void close_meanwhile_ends_the_consumers_wait(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer;

    open_borrowed(f, &consumer);
    kinf_deltafifo_close(f->fifo);
    assert_int_equal(pop_borrowed(f), 0); /* what is queued is still to be had */
    kinf__deltafifo_give_back(f->fifo, false);
    assert_int_equal(result_of(&consumer), KINF_ERR_STOPPED);
}

static void abort_in_window(struct fifo_fixture *f)
{
    kinf_deltafifo_abort(f->fifo);
    f->process_result = KINF_ERR_STOPPED;
}

static void an_abort_while_it_is_borrowed_drops_the_item(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer;

    open_borrowed(f, &consumer);
    f->window = abort_in_window;
    assert_int_equal(pop_borrowed(f), KINF_ERR_STOPPED);
    assert_int_equal(pop_borrowed(f), KINF_ERR_TIMEOUT);
    kinf__deltafifo_give_back(f->fifo, false);
    assert_int_equal(result_of(&consumer), KINF_ERR_STOPPED);
}

static void pop_in_window(struct fifo_fixture *f)
{
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, KINF_FOREVER), KINF_ERR_STATE);
}

static void a_pop_out_of_the_callback_is_refused_as_ever(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer;

    open_borrowed(f, &consumer);
    f->window = pop_in_window;
    assert_int_equal(pop_borrowed(f), 0);
    kinf__deltafifo_give_back(f->fifo, true);
    assert_int_equal(result_of(&consumer), KINF_ERR_TIMEOUT);
}

static void check_finds_what_is_unsound(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter consumer;

    open_borrowed(f, &consumer);
    fifo_expect_check_fires(f->fifo, f->fifo->is_awaited = true, f->fifo->is_awaited = false);
    kinf__deltafifo_give_back(f->fifo, false);
    assert_int_equal(result_of(&consumer), 0);
    fifo_expect_check_fires(f->fifo, f->fifo->is_wanted_back = true,
                            f->fifo->is_wanted_back = false);
}

#define T_BOTH(test)                                                                               \
    cmocka_unit_test_setup_teardown(test, fifo_setup, fifo_teardown), FIFO_IN_ORDER_TEST(test)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T_BOTH(what_came_alone_is_processed_and_the_consumer_sleeps_on),
        T_BOTH(nobody_lends_who_does_not_wait),
        T_BOTH(who_was_woken_does_not_lend),
        T_BOTH(what_is_left_is_the_consumers),
        T_BOTH(giving_back_nudges),
        T_BOTH(a_nudge_meanwhile_is_not_lost),
        T_BOTH(the_consumer_waits_until_it_is_given_back),
        T_BOTH(close_meanwhile_ends_the_consumers_wait),
        T_BOTH(an_abort_while_it_is_borrowed_drops_the_item),
        T_BOTH(a_pop_out_of_the_callback_is_refused_as_ever),
        T_BOTH(check_finds_what_is_unsound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
