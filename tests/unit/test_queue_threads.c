/*
 * The queue of keys with many threads: nothing is lost, no key is with two workers, whoever waits is
 * woken, and the end ends everybody.
 */
#include "queue/queue_priv.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "unit/test.h"

#define WHILE_MS 60000 /* far longer than anything takes: then a test fails */

enum { n_texts = 200, n_producers = 50, n_consumers = 10 };

/* Keys of a number, and what happened to each. */
struct fixture {
    struct kinf_queue *queue;
    atomic_uint n_added[n_texts];   /* changes: each has to be seen */
    atomic_uint n_seen[n_texts];    /* changes that a worker has seen */
    atomic_uint n_workers[n_texts]; /* that have the key */
    atomic_uint n_works;
    size_t n_adds_each;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    assert_int_equal(kinf_queue_new(NULL, &f->queue, NULL), 0);
    f->n_adds_each = test_rounds(400);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_true(kinf__queue_check(f->queue));
    kinf_queue_free(f->queue);
    free(f);
    return 0;
}

static pthread_t start(void *(*run)(void *), void *ctx)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run, ctx), 0);
    return thread;
}

static void *produce(void *ctx)
{
    static _Atomic(uint64_t) n_started;
    struct fixture *f = ctx;
    struct test_random random = { atomic_fetch_add(&n_started, 1) };

    for (size_t n = 0; n < f->n_adds_each; n++) {
        size_t i = test_random_below(&random, n_texts);
        struct kinf_queue_add_options how = KINF_QUEUE_ADD_OPTIONS_INIT;
        char key[16];

        snprintf(key, sizeof key, "%zu", i);
        how.priority = (enum kinf_priority)((int)test_random_below(&random, 3) - 1);
        how.delay_ms = test_random_below(&random, 8) == 0 ? 1 : 0;
        atomic_fetch_add(&f->n_added[i], 1);
        assert_int_equal(kinf_queue_add_with(f->queue, key, &how, NULL), 0);
    }
    return NULL;
}

static void work_on(struct fixture *f, size_t i)
{
    assert_int_equal(atomic_fetch_add(&f->n_workers[i], 1), 0);
    atomic_store(&f->n_seen[i], atomic_load(&f->n_added[i]));
    if (i % 16 == 0)
        sched_yield();
    atomic_fetch_add(&f->n_works, 1);
    assert_int_equal(atomic_fetch_sub(&f->n_workers[i], 1), 1);
}

static void *consume(void *ctx)
{
    struct fixture *f = ctx;
    const char *key;

    while (kinf_queue_get(f->queue, KINF_FOREVER, &key, NULL) == 0) {
        work_on(f, (size_t)atoi(key));
        kinf_queue_done(f->queue, key);
    }
    return NULL;
}

static void wait_until_empty(struct fixture *f)
{
    struct kinf_queue_status status;

    do {
        usleep(1000);
        kinf_queue_status(f->queue, &status);
    } while (status.n_keys != 0);
}

static void run_all(struct fixture *f, bool drains)
{
    pthread_t producers[n_producers], consumers[n_consumers];

    for (size_t i = 0; i < n_consumers; i++)
        consumers[i] = start(consume, f);
    for (size_t i = 0; i < n_producers; i++)
        producers[i] = start(produce, f);
    for (size_t i = 0; i < n_producers; i++)
        pthread_join(producers[i], NULL);
    wait_until_empty(f);
    if (drains)
        assert_int_equal(kinf_queue_drain(f->queue, KINF_FOREVER, NULL), 0);
    else
        kinf_queue_shut_down(f->queue);
    for (size_t i = 0; i < n_consumers; i++)
        pthread_join(consumers[i], NULL);
    for (size_t i = 0; i < n_texts; i++)
        assert_int_equal(atomic_load(&f->n_seen[i]), atomic_load(&f->n_added[i]));
}

static void every_change_of_fifty_producers_is_seen_by_one_worker_at_a_time(void **state)
{
    run_all(*state, false);
}

static void a_drain_ends_the_same(void **state)
{
    run_all(*state, true);
}

/* --- waking --- */

struct waiter {
    struct kinf_queue *queue;
    pthread_t thread;
    int64_t timeout_ms;
    atomic_bool has_ended;
    int result;
};

static void *wait_for_key(void *ctx)
{
    struct waiter *waiter = ctx;
    const char *key;

    waiter->result = kinf_queue_get(waiter->queue, waiter->timeout_ms, &key, NULL);
    if (waiter->result == 0)
        kinf_queue_done(waiter->queue, key);
    atomic_store(&waiter->has_ended, true);
    return NULL;
}

static size_t n_getters(struct kinf_queue *queue)
{
    size_t n;

    kinf__mutex_lock(&queue->lock);
    n = queue->n_getters;
    kinf__mutex_unlock(&queue->lock);
    return n;
}

/* Returns when it waits, as far as that can be seen from outside. */
static void start_waiter(struct fixture *f, struct waiter *waiter, int64_t timeout_ms)
{
    size_t n_before = n_getters(f->queue);

    *waiter = (struct waiter){ .queue = f->queue, .timeout_ms = timeout_ms };
    waiter->thread = start(wait_for_key, waiter);
    for (int i = 0; i < 200 && n_getters(f->queue) == n_before && !atomic_load(&waiter->has_ended);
         i++)
        usleep(1000);
}

static int join(struct waiter *waiter)
{
    pthread_join(waiter->thread, NULL);
    return waiter->result;
}

static void add_after(struct fixture *f, const char *key, int64_t delay_ms)
{
    assert_int_equal(kinf_queue_add_after(f->queue, key, delay_ms, NULL), 0);
}

static void a_key_wakes_who_waits(void **state)
{
    struct fixture *f = *state;
    struct waiter waiter;

    start_waiter(f, &waiter, WHILE_MS);
    assert_int_equal(kinf_queue_add(f->queue, "a", NULL), 0);
    assert_int_equal(join(&waiter), 0);
}

static void who_waits_is_awake_when_a_key_is_due(void **state)
{
    struct fixture *f = *state;
    struct waiter waiter;

    add_after(f, "a", 20);
    start_waiter(f, &waiter, WHILE_MS);
    assert_int_equal(join(&waiter), 0);
}

/* The one who waits for the first time may not sleep until then. */
static void an_earlier_time_wakes_who_waits_for_a_later_one(void **state)
{
    struct fixture *f = *state;
    struct waiter waiters[3];

    add_after(f, "far", 3600000);
    for (size_t i = 0; i < KINF__ARRAY_LEN(waiters); i++)
        start_waiter(f, &waiters[i], WHILE_MS);
    add_after(f, "b", 40);
    add_after(f, "a", 20);
    add_after(f, "far", 60);
    for (size_t i = 0; i < KINF__ARRAY_LEN(waiters); i++)
        assert_int_equal(join(&waiters[i]), 0);
}

/* The first to wait is the one that watches the time, and it leaves before it has come. */
static void another_one_watches_the_time_when_the_first_leaves(void **state)
{
    struct fixture *f = *state;
    struct waiter leaves, stays;

    add_after(f, "a", 500);
    start_waiter(f, &leaves, 10);
    start_waiter(f, &stays, WHILE_MS);
    assert_int_equal(join(&leaves), KINF_ERR_TIMEOUT);
    assert_int_equal(join(&stays), 0);
}

/* ... or has another key to work on. */
static void another_one_watches_the_time_when_the_first_has_work(void **state)
{
    struct fixture *f = *state;
    struct waiter first, second;

    add_after(f, "a", 50);
    start_waiter(f, &first, WHILE_MS);
    start_waiter(f, &second, WHILE_MS);
    assert_int_equal(kinf_queue_add(f->queue, "b", NULL), 0);
    assert_int_equal(join(&first), 0);
    assert_int_equal(join(&second), 0);
}

static void a_key_that_is_given_back_and_waits_again_wakes_somebody(void **state)
{
    struct fixture *f = *state;
    struct waiter waiter;
    const char *key;

    assert_int_equal(kinf_queue_add(f->queue, "a", NULL), 0);
    assert_int_equal(kinf_queue_get(f->queue, 0, &key, NULL), 0);
    assert_int_equal(kinf_queue_add(f->queue, "a", NULL), 0);
    start_waiter(f, &waiter, WHILE_MS);
    kinf_queue_done(f->queue, key);
    assert_int_equal(join(&waiter), 0);
}

/* A wait that began before time was moved. */
static void time_that_leaps_wakes_who_waits(void **state)
{
    struct fixture *f = *state;
    struct waiter waiter;

    kinf__clock_begin_simulation();
    add_after(f, "a", 3600000);
    start_waiter(f, &waiter, KINF_FOREVER);
    kinf__clock_advance(3600001);
    assert_int_equal(join(&waiter), 0);
    kinf__clock_end_simulation();
}

/* --- the end --- */

static void shutting_down_ends_ten_waits(void **state)
{
    struct fixture *f = *state;
    struct waiter waiters[10];

    add_after(f, "far", 3600000);
    for (size_t i = 0; i < KINF__ARRAY_LEN(waiters); i++)
        start_waiter(f, &waiters[i], KINF_FOREVER);
    kinf_queue_shut_down(f->queue);
    for (size_t i = 0; i < KINF__ARRAY_LEN(waiters); i++)
        assert_int_equal(join(&waiters[i]), KINF_ERR_STOPPED);
}

struct drainer {
    struct kinf_queue *queue;
    pthread_t thread;
    atomic_bool has_ended;
    int result;
};

static void *drain(void *ctx)
{
    struct drainer *drainer = ctx;

    drainer->result = kinf_queue_drain(drainer->queue, KINF_FOREVER, NULL);
    atomic_store(&drainer->has_ended, true);
    return NULL;
}

/* Returns when it waits. */
static void start_drain(struct fixture *f, struct drainer *drainer)
{
    size_t n_drainers = 0;

    drainer->queue = f->queue;
    atomic_init(&drainer->has_ended, false);
    drainer->thread = start(drain, drainer);
    while (n_drainers == 0) {
        kinf__mutex_lock(&f->queue->lock);
        n_drainers = f->queue->n_drainers;
        kinf__mutex_unlock(&f->queue->lock);
    }
}

static const char *get_now(struct fixture *f)
{
    const char *key;

    assert_int_equal(kinf_queue_get(f->queue, 0, &key, NULL), 0);
    return key;
}

static void a_drain_waits_until_all_is_done(void **state)
{
    struct fixture *f = *state;
    struct drainer drainer;
    const char *a, *b;

    assert_int_equal(kinf_queue_add(f->queue, "a", NULL), 0);
    assert_int_equal(kinf_queue_add(f->queue, "b", NULL), 0);
    a = get_now(f);
    start_drain(f, &drainer);
    assert_int_equal(kinf_queue_add(f->queue, "c", NULL), KINF_ERR_STOPPED);
    b = get_now(f);
    kinf_queue_done(f->queue, a);
    usleep(2000);
    assert_false(atomic_load(&drainer.has_ended));
    kinf_queue_done(f->queue, b);
    pthread_join(drainer.thread, NULL);
    assert_int_equal(drainer.result, 0);
}

static void a_drain_waits_for_what_was_added_again_in_process(void **state)
{
    struct fixture *f = *state;
    struct drainer drainer;
    const char *key;

    assert_int_equal(kinf_queue_add(f->queue, "a", NULL), 0);
    key = get_now(f);
    assert_int_equal(kinf_queue_add(f->queue, "a", NULL), 0);
    start_drain(f, &drainer);
    kinf_queue_done(f->queue, key);
    usleep(2000);
    assert_false(atomic_load(&drainer.has_ended));
    key = get_now(f);
    kinf_queue_done(f->queue, key);
    pthread_join(drainer.thread, NULL);
    assert_int_equal(drainer.result, 0);
}

static void shutting_down_ends_a_drain(void **state)
{
    struct fixture *f = *state;
    struct drainer drainer;
    const char *key;

    assert_int_equal(kinf_queue_add(f->queue, "a", NULL), 0);
    key = get_now(f);
    start_drain(f, &drainer);
    kinf_queue_shut_down(f->queue);
    pthread_join(drainer.thread, NULL);
    assert_int_equal(drainer.result, KINF_ERR_STOPPED);
    kinf_queue_done(f->queue, key);
}

int main(void)
{
#define WITH_QUEUE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_QUEUE(every_change_of_fifty_producers_is_seen_by_one_worker_at_a_time),
        WITH_QUEUE(a_drain_ends_the_same),
        WITH_QUEUE(a_key_wakes_who_waits),
        WITH_QUEUE(who_waits_is_awake_when_a_key_is_due),
        WITH_QUEUE(an_earlier_time_wakes_who_waits_for_a_later_one),
        WITH_QUEUE(another_one_watches_the_time_when_the_first_leaves),
        WITH_QUEUE(another_one_watches_the_time_when_the_first_has_work),
        WITH_QUEUE(a_key_that_is_given_back_and_waits_again_wakes_somebody),
        WITH_QUEUE(time_that_leaps_wakes_who_waits),
        WITH_QUEUE(shutting_down_ends_ten_waits),
        WITH_QUEUE(a_drain_waits_until_all_is_done),
        WITH_QUEUE(a_drain_waits_for_what_was_added_again_in_process),
        WITH_QUEUE(shutting_down_ends_a_drain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
