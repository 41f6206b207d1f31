/*
 * The queue of keys: one thread, in time that the test moves. See test_queue_threads.c for more of
 * them, test_queue_model.c for random calls.
 */
#include "queue/queue_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "unit/allocation.h"
#include "unit/test.h"

static struct kinf_queue *open_queue(const struct kinf_queue_options *options)
{
    struct kinf_queue *queue;

    assert_int_equal(kinf_queue_new(options, &queue, NULL), 0);
    return queue;
}

static int set_up(void **state)
{
    kinf__clock_begin_simulation();
    *state = open_queue(NULL);
    return 0;
}

static int tear_down(void **state)
{
    assert_true(kinf__queue_check(*state));
    kinf_queue_free(*state);
    kinf__clock_end_simulation();
    return 0;
}

/* NULL: none waits. */
static const char *get(struct kinf_queue *queue)
{
    const char *key = NULL;
    int rc = kinf_queue_get(queue, 0, &key, NULL);

    assert_true(rc == 0 || rc == KINF_ERR_TIMEOUT || rc == KINF_ERR_STOPPED);
    assert_true(kinf__queue_check(queue));
    return key;
}

static void done(struct kinf_queue *queue, const char *key)
{
    kinf_queue_done(queue, key);
    assert_true(kinf__queue_check(queue));
}

static void add(struct kinf_queue *queue, const char *key)
{
    assert_int_equal(kinf_queue_add(queue, key, NULL), 0);
}

static void add_after(struct kinf_queue *queue, const char *key, int64_t delay_ms)
{
    assert_int_equal(kinf_queue_add_after(queue, key, delay_ms, NULL), 0);
}

static void add_with(struct kinf_queue *queue, const char *key, enum kinf_priority priority,
                     int64_t delay_ms)
{
    struct kinf_queue_add_options options = KINF_QUEUE_ADD_OPTIONS_INIT;

    options.priority = priority;
    options.delay_ms = delay_ms;
    assert_int_equal(kinf_queue_add_with(queue, key, &options, NULL), 0);
}

/* Takes all that wait and gives them back: "a b c". */
static void expect_keys(struct kinf_queue *queue, const char *expected)
{
    char keys[256] = "";
    const char *key;

    while ((key = get(queue)) != NULL) {
        snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "%s%s",
                 keys[0] != '\0' ? " " : "", key);
        done(queue, key);
    }
    assert_string_equal(keys, expected);
}

static struct kinf_queue_status status_of(struct kinf_queue *queue)
{
    struct kinf_queue_status status;

    kinf_queue_status(queue, &status);
    return status;
}

/* --- what waits, what is in process --- */

static void keys_leave_in_the_order_in_which_they_came(void **state)
{
    add(*state, "default/b");
    add(*state, "a");
    add(*state, "");
    add(*state, "default/a");
    expect_keys(*state, "default/b a  default/a");
    assert_null(get(*state));
}

static void a_key_added_twice_counts_once(void **state)
{
    add(*state, "a");
    assert_int_equal(kinf_queue_len(*state), 1);
    add(*state, "b");
    assert_int_equal(kinf_queue_len(*state), 2);
    add(*state, "a");
    assert_int_equal(kinf_queue_len(*state), 2);
}

static void a_key_added_twice_comes_once_in_its_place(void **state)
{
    add(*state, "a");
    add(*state, "b");
    add(*state, "a");
    expect_keys(*state, "a b");
    assert_int_equal(status_of(*state).n_adds, 2);
}

static void a_key_comes_again_once_it_was_done(void **state)
{
    add(*state, "a");
    expect_keys(*state, "a");
    add(*state, "a");
    expect_keys(*state, "a");
    assert_int_equal(kinf_queue_len(*state), 0);
}

static void a_key_in_process_waits_again_only_when_it_is_done(void **state)
{
    const char *key;

    add(*state, "a");
    key = get(*state);
    add(*state, "a");
    assert_int_equal(kinf_queue_len(*state), 0);
    assert_null(get(*state));
    done(*state, key);
    assert_int_equal(kinf_queue_len(*state), 1);
    expect_keys(*state, "a");
}

static void added_often_in_process_a_key_waits_again_once(void **state)
{
    const char *key;

    add(*state, "a");
    key = get(*state);
    add(*state, "a");
    add(*state, "b");
    add(*state, "a");
    done(*state, key);
    expect_keys(*state, "b a");
    assert_int_equal(status_of(*state).n_adds, 3);
}

static void the_queue_has_a_copy_of_the_key(void **state)
{
    char mine[] = "default/a";
    const char *key;

    add(*state, mine);
    memset(mine, 'x', sizeof mine - 1);
    key = get(*state);
    assert_string_equal(key, "default/a");
    /* It stays until it is given back, whatever is added meanwhile. */
    add(*state, "default/a");
    assert_string_equal(key, "default/a");
    done(*state, key);
    expect_keys(*state, "default/a");
}

static void the_memory_of_a_key_is_given_back(void **state)
{
    const char *key;

    for (int i = 0; i < 100; i++) {
        char text[16];

        snprintf(text, sizeof text, "key-%d", i);
        add(*state, text);
        if (i % 2 == 0)
            assert_int_equal(kinf_queue_add_rate_limited(*state, text, NULL), 0);
    }
    kinf__clock_advance(3600000);
    while ((key = get(*state)) != NULL)
        done(*state, key);
    /* Those that were not forgotten. */
    assert_int_equal(status_of(*state).n_keys, 50);
    for (int i = 0; i < 100; i++) {
        char text[16];

        snprintf(text, sizeof text, "key-%d", i);
        kinf_queue_forget(*state, text);
    }
    assert_int_equal(status_of(*state).n_keys, 0);
}

/* --- priorities --- */

static void higher_priorities_leave_first(void **state)
{
    add_with(*state, "low-1", KINF_PRIORITY_LOW, 0);
    add(*state, "1");
    add_with(*state, "high-1", KINF_PRIORITY_HIGH, 0);
    add_with(*state, "low-2", KINF_PRIORITY_LOW, 0);
    add(*state, "2");
    add_with(*state, "high-2", KINF_PRIORITY_HIGH, 0);
    expect_keys(*state, "high-1 high-2 1 2 low-1 low-2");
}

/* A change of an object whose initial add still waits. */
static void a_higher_priority_lifts_a_key_that_waits(void **state)
{
    add_with(*state, "a", KINF_PRIORITY_LOW, 0);
    add_with(*state, "b", KINF_PRIORITY_LOW, 0);
    add_with(*state, "c", KINF_PRIORITY_LOW, 0);
    add(*state, "b");
    expect_keys(*state, "b a c");
    assert_int_equal(status_of(*state).n_adds, 3);
}

static void a_lower_priority_changes_nothing(void **state)
{
    add(*state, "a");
    add_with(*state, "b", KINF_PRIORITY_HIGH, 0);
    add_with(*state, "b", KINF_PRIORITY_LOW, 0);
    add_with(*state, "a", KINF_PRIORITY_LOW, 0);
    add_with(*state, "c", KINF_PRIORITY_LOW, 0);
    expect_keys(*state, "b a c");
}

static void what_waits_again_has_the_highest_priority_it_was_added_with(void **state)
{
    const char *key;

    add(*state, "a");
    key = get(*state);
    add_with(*state, "a", KINF_PRIORITY_LOW, 0);
    add_with(*state, "a", KINF_PRIORITY_HIGH, 0);
    add_with(*state, "a", KINF_PRIORITY_LOW, 0);
    add(*state, "b");
    assert_int_equal(kinf_queue_priority(*state, key), KINF_PRIORITY_NORMAL);
    done(*state, key);
    expect_keys(*state, "a b");
}

static void what_is_for_later_comes_with_its_priority(void **state)
{
    add_with(*state, "a", KINF_PRIORITY_LOW, 1000);
    add_with(*state, "b", KINF_PRIORITY_HIGH, 90000);
    add_with(*state, "b", KINF_PRIORITY_LOW, 80000);
    kinf__clock_advance(100000);
    add(*state, "c");
    expect_keys(*state, "b c a");
}

static void a_worker_can_ask_for_the_priority_of_its_key(void **state)
{
    const char *key;

    add_with(*state, "a", KINF_PRIORITY_LOW, 0);
    assert_int_equal(kinf_queue_priority(*state, "a"), KINF_PRIORITY_NORMAL);
    key = get(*state);
    assert_int_equal(kinf_queue_priority(*state, key), KINF_PRIORITY_LOW);
    done(*state, key);
    assert_int_equal(kinf_queue_priority(*state, "a"), KINF_PRIORITY_NORMAL);
}

static void an_unknown_priority_is_refused(void **state)
{
    struct kinf_queue_add_options options = KINF_QUEUE_ADD_OPTIONS_INIT;

    options.priority = (enum kinf_priority)(KINF_PRIORITY_HIGH + 1);
    assert_int_equal(kinf_queue_add_with(*state, "a", &options, NULL), KINF_ERR_INVALID);
    options.priority = (enum kinf_priority)(KINF_PRIORITY_LOW - 1);
    assert_int_equal(kinf_queue_add_with(*state, "a", &options, NULL), KINF_ERR_INVALID);
    assert_int_equal(kinf_queue_len(*state), 0);
    assert_string_equal(kinf_priority_to_string(KINF_PRIORITY_LOW), "low");
    assert_string_equal(kinf_priority_to_string(KINF_PRIORITY_HIGH), "high");
    assert_string_equal(kinf_priority_to_string(options.priority), "unknown");
}

/* --- later --- */

static void a_delayed_key_comes_once_and_not_early(void **state)
{
    add_after(*state, "a", 50000);
    assert_int_equal(status_of(*state).n_later, 1);
    kinf__clock_advance(30000);
    assert_int_equal(kinf_queue_len(*state), 0);
    assert_null(get(*state));
    kinf__clock_advance(20001);
    assert_int_equal(kinf_queue_len(*state), 1);
    assert_int_equal(status_of(*state).n_later, 0);
    expect_keys(*state, "a");
    kinf__clock_advance(1000000);
    expect_keys(*state, "");
}

/* In real time, asked for again and again: a wait would be rounded up by itself. */
static void no_key_comes_a_part_of_a_millisecond_early(void **state)
{
    kinf__clock_end_simulation();
    for (int i = 0; i < 20; i++) {
        int64_t begun_ns = kinf__clock_now_ns();
        const char *key;

        add_after(*state, "a", 1 + i % 3);
        while ((key = get(*state)) == NULL)
            continue;
        assert_true(kinf__clock_now_ns() - begun_ns >= (1 + i % 3) * 1000000);
        done(*state, key);
    }
    kinf__clock_begin_simulation();
}

static void no_delay_is_now(void **state)
{
    add_after(*state, "a", 0);
    add_after(*state, "b", -1);
    add_after(*state, "c", INT64_MIN);
    expect_keys(*state, "a b c");
    assert_int_equal(status_of(*state).n_retries, 0);
}

static void the_shortest_delay_is_a_retry(void **state)
{
    add_after(*state, "a", 1);
    assert_int_equal(status_of(*state).n_retries, 1);
}

static void the_earlier_of_two_times_counts(void **state)
{
    add_after(*state, "a", 50000);
    add_after(*state, "a", 90000);
    kinf__clock_advance(60000);
    expect_keys(*state, "a");
    kinf__clock_advance(60000);
    expect_keys(*state, "");

    add_after(*state, "b", 90000);
    add_after(*state, "b", 50000);
    kinf__clock_advance(60000);
    expect_keys(*state, "b");
    kinf__clock_advance(60000);
    expect_keys(*state, "");
}

static void a_key_added_behind_another_may_be_due_before_it(void **state)
{
    add_after(*state, "a", 1000000);
    add_after(*state, "b", 50000);
    kinf__clock_advance(60000);
    expect_keys(*state, "b");
    add_after(*state, "c", 200000);
    kinf__clock_advance(300000);
    expect_keys(*state, "c");
    kinf__clock_advance(1000000);
    expect_keys(*state, "a");
}

static void delayed_keys_come_in_the_order_of_their_times(void **state)
{
    add_after(*state, "c", 30000);
    add_after(*state, "a", 10000);
    add_after(*state, "b", 20000);
    kinf__clock_advance(200000);
    expect_keys(*state, "a b c");
}

static void what_was_due_before_a_key_was_added_comes_before_it(void **state)
{
    add_after(*state, "a", 10000);
    kinf__clock_advance(20000);
    add(*state, "b");
    expect_keys(*state, "a b");
}

static void a_key_for_later_that_is_added_comes_now_and_again_then(void **state)
{
    add_after(*state, "a", 50000);
    add(*state, "a");
    expect_keys(*state, "a");
    kinf__clock_advance(60000);
    expect_keys(*state, "a");
}

static void a_key_that_is_due_in_process_waits_again(void **state)
{
    const char *key;

    add(*state, "a");
    key = get(*state);
    add_after(*state, "a", 50000);
    kinf__clock_advance(60000);
    assert_null(get(*state));
    done(*state, key);
    expect_keys(*state, "a");
}

static void a_delay_without_an_end_is_one(void **state)
{
    add_after(*state, "a", KINF_FOREVER);
    kinf__clock_advance(1000000000);
    expect_keys(*state, "");
    add_after(*state, "a", 1000);
    kinf__clock_advance(2000);
    expect_keys(*state, "a");
}

/* --- the rate limit --- */

static struct kinf_queue *open_doubling(int64_t base_ms)
{
    struct kinf_queue_options options = KINF_QUEUE_OPTIONS_INIT;

    options.backoff_base_ms = base_ms;
    return open_queue(&options);
}

static void each_failure_doubles_the_wait_until_it_is_forgotten(void **state)
{
    struct kinf_queue *queue = open_doubling(10000);

    (void)state;
    for (int64_t wait_ms = 10000, n = 0; n < 3; wait_ms *= 2, n++) {
        assert_int_equal(kinf_queue_n_requeues(queue, "a"), n);
        assert_int_equal(kinf_queue_add_rate_limited(queue, "a", NULL), 0);
        kinf__clock_advance(wait_ms - 5000);
        expect_keys(queue, "");
        kinf__clock_advance(5001);
        expect_keys(queue, "a");
    }
    assert_int_equal(kinf_queue_n_requeues(queue, "b"), 0);
    kinf_queue_forget(queue, "a");
    kinf_queue_forget(queue, "b");
    assert_int_equal(kinf_queue_n_requeues(queue, "a"), 0);
    assert_int_equal(kinf_queue_add_rate_limited(queue, "a", NULL), 0);
    kinf__clock_advance(10001);
    expect_keys(queue, "a");
    kinf_queue_free(queue);
}

/* As upstream: forgetting is about the next failure. */
static void what_waits_goes_on_waiting_when_it_is_forgotten(void **state)
{
    struct kinf_queue *queue = open_doubling(10000);

    (void)state;
    assert_int_equal(kinf_queue_add_rate_limited(queue, "a", NULL), 0);
    kinf_queue_forget(queue, "a");
    expect_keys(queue, "");
    kinf__clock_advance(10001);
    expect_keys(queue, "a");
    assert_int_equal(status_of(queue).n_keys, 0);
    kinf_queue_free(queue);
}

/* A server's Retry-After is a floor, not another way. */
static void with_a_delay_and_the_rate_limit_the_longer_one_counts(void **state)
{
    struct kinf_queue *queue = open_doubling(10000);
    struct kinf_queue_add_options options = KINF_QUEUE_ADD_OPTIONS_INIT;

    (void)state;
    options.is_rate_limited = true;
    options.delay_ms = 60000;
    assert_int_equal(kinf_queue_add_with(queue, "a", &options, NULL), 0);
    options.delay_ms = 1;
    assert_int_equal(kinf_queue_add_with(queue, "b", &options, NULL), 0);
    kinf__clock_advance(20000);
    expect_keys(queue, "b");
    kinf__clock_advance(50000);
    expect_keys(queue, "a");
    assert_int_equal(kinf_queue_n_requeues(queue, "a"), 1);
    assert_int_equal(status_of(queue).n_retries, 2);
    kinf_queue_free(queue);
}

/* Takes a key, fails, and gives it back. */
static void fail_key(struct kinf_queue *queue, const struct kinf_error *failure)
{
    const char *key = get(queue);

    assert_non_null(key);
    assert_int_equal(kinf_queue_add_failed(queue, key, failure, NULL), 0);
    done(queue, key);
}

static void what_would_fail_again_comes_when_it_is_added_anew(void **state)
{
    static const struct kinf_error failures[] = {
        { .code = KINF_ERR_INVALID },
        { .code = KINF_ERR_SERVER, .http_status = 422, .retry_after_ms = 1000 },
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(failures); i++) {
        assert_int_equal(kinf_queue_add_rate_limited(*state, "a", NULL), 0);
        add(*state, "a");
        fail_key(*state, &failures[i]);
        assert_int_equal(kinf_queue_n_requeues(*state, "a"), 0);
        kinf__clock_advance(3600000);
        expect_keys(*state, "a");
        assert_int_equal(status_of(*state).n_keys, 0);
        add(*state, "a");
        fail_key(*state, &failures[i]);
        kinf__clock_advance(3600000);
        expect_keys(*state, "");
    }
}

static void a_time_to_come_back_is_kept(void **state)
{
    static const struct kinf_error busy = { .code = KINF_ERR_TOO_MANY_REQUESTS,
                                            .http_status = 429,
                                            .retry_after_ms = 60000 };

    add(*state, "a");
    fail_key(*state, &busy);
    kinf__clock_advance(50000);
    expect_keys(*state, "");
    kinf__clock_advance(10001);
    expect_keys(*state, "a");
    assert_int_equal(kinf_queue_n_requeues(*state, "a"), 1);
}

static void any_other_failure_comes_again_by_the_rate_limit_and_its_priority(void **state)
{
    static const struct kinf_error conflict = { .code = KINF_ERR_CONFLICT, .http_status = 409 };
    struct kinf_queue *queue = open_doubling(10000);

    (void)state;
    add_with(queue, "a", KINF_PRIORITY_LOW, 0);
    fail_key(queue, &conflict);
    kinf__clock_advance(10001);
    fail_key(queue, NULL);
    kinf__clock_advance(15000);
    expect_keys(queue, "");
    kinf__clock_advance(5001);
    add(queue, "b");
    expect_keys(queue, "b a");
    assert_int_equal(kinf_queue_n_requeues(queue, "a"), 2);
    kinf_queue_free(queue);
}

static void a_failure_without_a_time_and_a_rate_limit_comes_again_at_once(void **state)
{
    struct kinf_queue_options options = KINF_QUEUE_OPTIONS_INIT;
    struct kinf_queue *queue;

    (void)state;
    options.backoff_base_ms = -1;
    options.keys_per_second = -1;
    queue = open_queue(&options);
    add(queue, "a");
    fail_key(queue, NULL);
    expect_keys(queue, "a");
    kinf_queue_free(queue);
}

/* --- the end --- */

static void a_queue_that_is_shut_down_takes_nothing_and_gives_what_it_has(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const char *key;

    add(*state, "a");
    add_after(*state, "late", 50000);
    add_after(*state, "b", 10000);
    kinf__clock_advance(20000);
    assert_false(kinf_queue_is_shut_down(*state));
    kinf_queue_shut_down(*state);
    assert_true(kinf_queue_is_shut_down(*state));
    assert_int_equal(kinf_queue_add(*state, "c", &err), KINF_ERR_STOPPED);
    assert_int_equal(err.code, KINF_ERR_STOPPED);
    assert_int_equal(kinf_queue_add(*state, "a", NULL), KINF_ERR_STOPPED);
    assert_int_equal(kinf_queue_add_after(*state, "c", 1, NULL), KINF_ERR_STOPPED);
    assert_int_equal(kinf_queue_add_rate_limited(*state, "c", NULL), KINF_ERR_STOPPED);
    assert_int_equal(kinf_queue_n_requeues(*state, "c"), 0);
    kinf__clock_advance(100000);
    expect_keys(*state, "a b");
    assert_int_equal(status_of(*state).n_later, 0);
    assert_int_equal(kinf_queue_get(*state, KINF_FOREVER, &key, &err), KINF_ERR_STOPPED);
    kinf_queue_shut_down(*state);
}

static void what_was_added_again_is_worked_on_behind_the_shut_down(void **state)
{
    const char *key, *none;

    add(*state, "a");
    key = get(*state);
    add(*state, "a");
    kinf_queue_shut_down(*state);
    assert_int_equal(kinf_queue_get(*state, KINF_FOREVER, &none, NULL), KINF_ERR_STOPPED);
    done(*state, key);
    expect_keys(*state, "a");
}

static void shutting_down_waits_for_nobody(void **state)
{
    const char *key;

    add(*state, "a");
    key = get(*state);
    kinf_queue_shut_down(*state);
    done(*state, key);
}

static void a_drain_says_what_is_left_when_its_time_is_over(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const char *key;

    add(*state, "a");
    add(*state, "b");
    key = get(*state);
    assert_int_equal(kinf_queue_drain(*state, 0, &err), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(err.message, "1 keys wait, 1 are in process"));
    assert_int_equal(kinf_queue_add(*state, "c", NULL), KINF_ERR_STOPPED);
    done(*state, key);
    expect_keys(*state, "b");
    assert_int_equal(kinf_queue_drain(*state, KINF_FOREVER, NULL), 0);
    assert_int_equal(kinf_queue_drain(*state, 0, NULL), 0);
}

/* --- time that is over, lack of memory, a broken structure --- */

static void a_get_gives_up_when_its_time_is_over(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const char *key = NULL;

    assert_int_equal(kinf_queue_get(*state, 0, &key, &err), KINF_ERR_TIMEOUT);
    assert_int_equal(err.code, KINF_ERR_TIMEOUT);
    assert_int_equal(kinf_queue_get(*state, 2, &key, NULL), KINF_ERR_TIMEOUT);
    add_after(*state, "a", 3600000);
    assert_int_equal(kinf_queue_get(*state, 2, &key, NULL), KINF_ERR_TIMEOUT);
    assert_null(key);
}

static int add_one(struct kinf_queue *queue)
{
    return kinf_queue_add(queue, "new", NULL);
}

static int add_one_later(struct kinf_queue *queue)
{
    return kinf_queue_add_after(queue, "new", 10, NULL);
}

static int add_one_again(struct kinf_queue *queue)
{
    return kinf_queue_add_rate_limited(queue, "new", NULL);
}

/* With 16 keys the table has to grow, too. */
static void lack_of_memory_changes_nothing(void **state)
{
    static int (*const adds[])(struct kinf_queue *) = { add_one, add_one_later, add_one_again };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(adds); i++) {
        bool has_failed = true;

        for (size_t n = 1; has_failed; n++) {
            struct kinf_queue *queue = open_queue(NULL);
            int rc;

            for (int k = 0; k < 16; k++) {
                char text[] = { (char)('a' + k), '\0' };

                add(queue, text);
            }
            test_fail_allocation(n);
            rc = adds[i](queue);
            has_failed = test_allocation_failed();
            assert_int_equal(rc, has_failed ? KINF_ERR_NO_MEMORY : 0);
            assert_int_equal(status_of(queue).n_keys, has_failed ? 16 : 17);
            assert_int_equal(status_of(queue).n_retries, has_failed || i == 0 ? 0 : 1);
            assert_int_equal(kinf_queue_n_requeues(queue, "new"), !has_failed && i == 2);
            assert_true(kinf__queue_check(queue));
            assert_true(n > 2 || has_failed);
            kinf_queue_free(queue);
        }
    }
}

/* So a worker can never lose its key. */
static void a_key_that_is_there_takes_no_memory(void **state)
{
    const char *key;

    add(*state, "a");
    test_fail_allocation(1);
    key = get(*state);
    add(*state, key);
    add_after(*state, key, 10);
    assert_int_equal(kinf_queue_add_rate_limited(*state, key, NULL), 0);
    add_with(*state, key, KINF_PRIORITY_HIGH, 0);
    done(*state, key);
    assert_false(test_allocation_failed());
}

static void making_a_queue_without_memory_leaves_nothing(void **state)
{
    struct kinf_queue_options options = KINF_QUEUE_OPTIONS_INIT;
    bool has_failed = true;

    (void)state;
    options.name = "pods";
    for (size_t n = 1; has_failed; n++) {
        struct kinf_queue *queue = NULL;
        int rc;

        test_fail_allocation(n);
        rc = kinf_queue_new(&options, &queue, NULL);
        has_failed = test_allocation_failed();
        assert_int_equal(rc, has_failed ? KINF_ERR_NO_MEMORY : 0);
        kinf_queue_free(queue);
    }
}

static void options_that_cannot_be_meant_are_refused(void **state)
{
    struct kinf_queue_options options = KINF_QUEUE_OPTIONS_INIT;
    struct kinf_queue *queue;

    (void)state;
    options.slow_ms = -1;
    assert_int_equal(kinf_queue_new(&options, &queue, NULL), KINF_ERR_INVALID);
    options.size = 0;
    assert_int_equal(kinf_queue_new(&options, &queue, NULL), KINF_ERR_INVALID);
}

#define EXPECT_CHECK_FIRES(queue, break_it, repair_it)                                             \
    do {                                                                                           \
        assert_true(kinf__queue_check(queue));                                                     \
        break_it;                                                                                  \
        assert_false(kinf__queue_check(queue));                                                    \
        repair_it;                                                                                 \
        assert_true(kinf__queue_check(queue));                                                     \
    } while (0)

static void check_finds_a_broken_structure(void **state)
{
    struct kinf_queue *queue = *state;
    struct kinf__keys *keys = &queue->keys;
    struct kinf__queue_key *taken, *waiting, *low;
    const char *text;

    add(queue, "a");
    add(queue, "b");
    add_after(queue, "c", 3600000);
    add_with(queue, "d", KINF_PRIORITY_LOW, 0);
    text = get(queue);
    taken = kinf__keys_find(keys, text, kinf__hash(KINF_STR("a")));
    waiting = kinf__keys_find(keys, "b", kinf__hash(KINF_STR("b")));
    low = kinf__keys_find(keys, "d", kinf__hash(KINF_STR("d")));
    EXPECT_CHECK_FIRES(queue, keys->n_later++, keys->n_later--);
    EXPECT_CHECK_FIRES(queue, keys->n_in_process--, keys->n_in_process++);
    EXPECT_CHECK_FIRES(queue, keys->n_waiting[0]++, keys->n_waiting[0]--);
    EXPECT_CHECK_FIRES(queue, queue->n_gets++, queue->n_gets--);
    EXPECT_CHECK_FIRES(queue, queue->watched_ms = 1, queue->watched_ms = KINF__NEVER_MS);
    EXPECT_CHECK_FIRES(queue, queue->n_shut_downs++, queue->n_shut_downs--);
    EXPECT_CHECK_FIRES(queue, taken->state = KINF__KEY_IDLE, taken->state = KINF__KEY_IN_PROCESS);
    EXPECT_CHECK_FIRES(queue, waiting->priority++, waiting->priority--);
    EXPECT_CHECK_FIRES(queue, low->priority++, low->priority--);
    EXPECT_CHECK_FIRES(queue, waiting->waits_again = true, waiting->waits_again = false);
    EXPECT_CHECK_FIRES(queue, waiting->text[0] = 'x', waiting->text[0] = 'b');
    done(queue, text);
}

/* --- what it tells --- */

static void the_status_counts_and_measures(void **state)
{
    struct kinf_queue_status status;
    const char *first, *second;

    add(*state, "a");
    add_with(*state, "b", KINF_PRIORITY_LOW, 0);
    add_with(*state, "c", KINF_PRIORITY_LOW, 0);
    add_after(*state, "later", 3600000);
    kinf__clock_advance(10000);
    first = get(*state);
    kinf__clock_advance(5000);
    second = get(*state);
    kinf__clock_advance(2000);
    status = status_of(*state);
    assert_int_equal(status.n_waiting[0], 1);
    assert_int_equal(status.n_waiting[1], 0);
    assert_int_equal(status.n_later, 1);
    assert_int_equal(status.n_in_process, 2);
    assert_int_equal(status.n_keys, 4);
    assert_int_equal(status.n_adds, 3);
    assert_int_equal(status.n_retries, 1);
    assert_in_range(status.wait_ms, 24900, 29000);
    assert_in_range(status.unfinished_ms, 9000, 13000);
    assert_in_range(status.longest_ms, 7000, 9900);
    assert_int_equal(status.work_ms, 0);
    done(*state, first);
    status = status_of(*state);
    assert_in_range(status.longest_ms, 2000, 4900);
    assert_in_range(status.work_ms, 7000, 9900);
    done(*state, second);
    status = status_of(*state);
    assert_int_equal(status.longest_ms, 0);
    assert_int_equal(status.unfinished_ms, 0);
    assert_int_equal(status.n_gets, 2);
    assert_int_equal(status.n_done, 2);
    assert_false(status.is_shut_down);
}

/* What nobody got yet waits since it was due. */
static void what_was_for_later_waits_since_it_was_due(void **state)
{
    add_after(*state, "a", 20000);
    kinf__clock_advance(50000);
    expect_keys(*state, "a");
    assert_in_range(status_of(*state).wait_ms, 29000, 34000);
}

static struct kinf_queue *open_named(const char *name)
{
    struct kinf_queue_options options = KINF_QUEUE_OPTIONS_INIT;

    options.name = name;
    return open_queue(&options);
}

static void expect_line(const char *text, const char *line)
{
    const char *at = strstr(text, line);

    if (at == NULL || (at != text && at[-1] != '\n') || at[strlen(line)] != '\n')
        fail_msg("no line '%s' in\n%s", line, text);
}

static void the_metrics_have_upstreams_names(void **state)
{
    struct kinf_queue *queues[] = { open_named("pods"), open_named("no\"des"), *state };
    const char *key;
    char *text;

    add(queues[0], "a");
    add(queues[0], "b");
    add_with(queues[0], "c", KINF_PRIORITY_LOW, 0);
    assert_int_equal(kinf_queue_add_rate_limited(queues[0], "d", NULL), 0);
    key = get(queues[0]);
    kinf__clock_advance(3000);
    done(queues[0], key);
    assert_int_equal(kinf_queue_metrics_text(queues, KINF__ARRAY_LEN(queues), &text, NULL), 0);
    expect_line(text, "# TYPE workqueue_depth gauge");
    expect_line(text, "workqueue_depth{name=\"pods\",priority=\"low\"} 1");
    expect_line(text, "workqueue_depth{name=\"pods\",priority=\"normal\"} 2");
    expect_line(text, "workqueue_depth{name=\"no\\\"des\",priority=\"high\"} 0");
    expect_line(text, "workqueue_adds_total{name=\"pods\"} 4");
    expect_line(text, "workqueue_adds_total{name=\"no\\\"des\"} 0");
    expect_line(text, "workqueue_retries_total{name=\"pods\"} 1");
    expect_line(text, "workqueue_unfinished_work_seconds{name=\"pods\"} 0.000");
    expect_line(text, "workqueue_longest_running_processor_seconds{name=\"pods\"} 0.000");
    expect_line(text, "# TYPE workqueue_queue_duration_seconds histogram");
    expect_line(text, "workqueue_queue_duration_seconds_count{name=\"pods\"} 1");
    expect_line(text, "workqueue_work_duration_seconds_bucket{name=\"pods\",le=\"2.5\"} 0");
    expect_line(text, "workqueue_work_duration_seconds_bucket{name=\"pods\",le=\"5\"} 1");
    assert_null(strstr(text, "name=\"\""));
    free(text);
    assert_int_equal(kinf_queue_metrics_text(NULL, 0, &text, NULL), 0);
    free(text);
    kinf_queue_free(queues[0]);
    kinf_queue_free(queues[1]);
}

static void two_queues_of_one_name_are_refused(void **state)
{
    struct kinf_queue *queues[] = { open_named("pods"), open_named("pods") };
    struct kinf_error err = KINF_ERROR_INIT;
    char *text = NULL;

    (void)state;
    assert_int_equal(kinf_queue_metrics_text(queues, 2, &text, &err), KINF_ERR_EXISTS);
    assert_non_null(strstr(err.message, "'pods'"));
    assert_null(text);
    kinf_queue_free(queues[0]);
    kinf_queue_free(queues[1]);
}

static void metrics_without_memory_are_an_error(void **state)
{
    struct kinf_queue *queue = open_named("pods");
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        char *text = NULL;
        int rc;

        test_fail_allocation(n);
        rc = kinf_queue_metrics_text(&queue, 1, &text, NULL);
        has_failed = test_allocation_failed();
        assert_int_equal(rc, has_failed ? KINF_ERR_NO_MEMORY : 0);
        free(text);
    }
    kinf_queue_free(queue);
}

int main(void)
{
#define IN_TIME(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_TIME(keys_leave_in_the_order_in_which_they_came),
        IN_TIME(a_key_added_twice_counts_once),
        IN_TIME(a_key_added_twice_comes_once_in_its_place),
        IN_TIME(a_key_comes_again_once_it_was_done),
        IN_TIME(a_key_in_process_waits_again_only_when_it_is_done),
        IN_TIME(added_often_in_process_a_key_waits_again_once),
        IN_TIME(the_queue_has_a_copy_of_the_key),
        IN_TIME(the_memory_of_a_key_is_given_back),
        IN_TIME(higher_priorities_leave_first),
        IN_TIME(a_higher_priority_lifts_a_key_that_waits),
        IN_TIME(a_lower_priority_changes_nothing),
        IN_TIME(what_waits_again_has_the_highest_priority_it_was_added_with),
        IN_TIME(what_is_for_later_comes_with_its_priority),
        IN_TIME(a_worker_can_ask_for_the_priority_of_its_key),
        IN_TIME(an_unknown_priority_is_refused),
        IN_TIME(a_delayed_key_comes_once_and_not_early),
        IN_TIME(no_key_comes_a_part_of_a_millisecond_early),
        IN_TIME(no_delay_is_now),
        IN_TIME(the_shortest_delay_is_a_retry),
        IN_TIME(the_earlier_of_two_times_counts),
        IN_TIME(a_key_added_behind_another_may_be_due_before_it),
        IN_TIME(delayed_keys_come_in_the_order_of_their_times),
        IN_TIME(what_was_due_before_a_key_was_added_comes_before_it),
        IN_TIME(a_key_for_later_that_is_added_comes_now_and_again_then),
        IN_TIME(a_key_that_is_due_in_process_waits_again),
        IN_TIME(a_delay_without_an_end_is_one),
        IN_TIME(each_failure_doubles_the_wait_until_it_is_forgotten),
        IN_TIME(what_waits_goes_on_waiting_when_it_is_forgotten),
        IN_TIME(with_a_delay_and_the_rate_limit_the_longer_one_counts),
        IN_TIME(what_would_fail_again_comes_when_it_is_added_anew),
        IN_TIME(a_time_to_come_back_is_kept),
        IN_TIME(a_failure_without_a_time_and_a_rate_limit_comes_again_at_once),
        IN_TIME(any_other_failure_comes_again_by_the_rate_limit_and_its_priority),
        IN_TIME(a_queue_that_is_shut_down_takes_nothing_and_gives_what_it_has),
        IN_TIME(what_was_added_again_is_worked_on_behind_the_shut_down),
        IN_TIME(shutting_down_waits_for_nobody),
        IN_TIME(a_drain_says_what_is_left_when_its_time_is_over),
        IN_TIME(a_get_gives_up_when_its_time_is_over),
        IN_TIME(lack_of_memory_changes_nothing),
        IN_TIME(a_key_that_is_there_takes_no_memory),
        IN_TIME(making_a_queue_without_memory_leaves_nothing),
        IN_TIME(options_that_cannot_be_meant_are_refused),
        IN_TIME(check_finds_a_broken_structure),
        IN_TIME(the_status_counts_and_measures),
        IN_TIME(what_was_for_later_waits_since_it_was_due),
        IN_TIME(the_metrics_have_upstreams_names),
        IN_TIME(two_queues_of_one_name_are_refused),
        IN_TIME(metrics_without_memory_are_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
