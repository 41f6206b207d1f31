/*
 * The watch cache's versions: pages of a list, and waiting for a version.
 */
#include "unit/watchcache_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "watchcache/watchcache_priv.h"

#include "unit/test.h"

#define MINUTE_MS 60000

/* --- pages --- */

/* The feeding thread has a clock of its own, so ages count from now. */
static int64_t now_ms;

/* A version that readers were told. */
struct reading {
    struct kinf_snapshot *snapshot;
    struct kinf__store_version version;
};

static struct reading read_now(struct watchcache_fixture *f)
{
    struct reading reading = { .snapshot = NULL };

    reading.snapshot = kinf__watchcache_snapshot(f->cache, &reading.version);
    assert_non_null(reading.snapshot);
    return reading;
}

static void hold_reading(struct watchcache_fixture *f, struct reading *take_reading)
{
    if (now_ms == 0)
        now_ms = kinf__clock_now_ms();
    kinf__watchcache_hold(f->cache, take_reading->snapshot, &take_reading->version, now_ms);
    kinf_snapshot_unref(take_reading->snapshot);
}

static struct kinf__store_version hold(struct watchcache_fixture *f)
{
    struct reading reading = read_now(f);

    hold_reading(f, &reading);
    return reading.version;
}

/* The number of objects of a version, or what asking for it fails with. */
static int count_of(struct watchcache_fixture *f, struct kinf__store_version version)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;
    struct kinf__store_version found = { .number = version.number, .lineage = version.lineage };
    int rc = kinf__watchcache_snapshot_at(f->cache, &found, &snapshot, NULL);

    if (rc == 0)
        assert_int_equal(kinf__watchcache_parse_rv(kinf_snapshot_resource_version(snapshot)),
                         found.number);
    return rc < 0 ? rc : (int)kinf_snapshot_count(snapshot);
}

static int count_at(struct watchcache_fixture *f, uint64_t number)
{
    return count_of(f, (struct kinf__store_version){ .number = number });
}

static size_t n_pages(struct watchcache_fixture *f)
{
    struct kinf__watchcache_status status;

    kinf__watchcache_status(f->cache, &status);
    watchcache_check(f);
    return status.n_pages;
}

static void remake(struct watchcache_fixture *f, const struct kinf__watchcache_limits *limits)
{
    kinf__watchcache_free(f->cache);
    kinf_informer_free(f->informer);
    watchcache_make(f, limits);
}

static void pages_are_read_at_the_version_of_the_first(void **state)
{
    struct watchcache_fixture *f = *state;

    watchcache_replace(f, "10", "a@1", "b@2");
    hold(f);
    hold(f);
    watchcache_put(f, "c@11");
    watchcache_put(f, "d@12");
    hold(f);
    watchcache_delete(f, "a@13");
    assert_int_equal(count_at(f, 10), 2);
    assert_int_equal(count_at(f, 11), KINF_ERR_EXPIRED);
    assert_int_equal(count_at(f, 12), 4);
    assert_int_equal(count_at(f, 13), 3);
    assert_int_equal(count_at(f, 14), KINF_ERR_RV_TOO_LARGE);
    assert_int_equal(count_at(f, 0), KINF_ERR_EXPIRED);
    assert_int_equal(n_pages(f), 2);
}

static void held_versions_end_with_their_age(void **state)
{
    struct watchcache_fixture *f = *state;

    watchcache_replace(f, "10", "a@1");
    hold(f);
    watchcache_put(f, "b@11");
    now_ms += MINUTE_MS;
    hold(f);
    assert_int_equal(kinf__watchcache_tick(f->cache, now_ms + 4 * MINUTE_MS - 1),
                     now_ms + 4 * MINUTE_MS);
    assert_int_equal(n_pages(f), 2);
    kinf__watchcache_tick(f->cache, now_ms + 4 * MINUTE_MS);
    assert_int_equal(count_at(f, 10), KINF_ERR_EXPIRED);
    assert_int_equal(n_pages(f), 1);
    kinf__watchcache_tick(f->cache, now_ms + 5 * MINUTE_MS);
    assert_int_equal(n_pages(f), 0);
}

static void held_versions_are_bounded_by_number(void **state)
{
    const struct kinf__watchcache_limits limits = { .max_pages = 2 };
    struct watchcache_fixture *f = *state;
    struct reading first;

    remake(f, &limits);
    watchcache_replace(f, "10", "a@1");
    first = read_now(f);
    hold(f);
    watchcache_put(f, "a@11");
    hold(f);
    watchcache_put(f, "a@12");
    hold(f);
    hold_reading(f, &first);
    assert_int_equal(n_pages(f), 2);
    assert_int_equal(count_at(f, 10), KINF_ERR_EXPIRED);
    assert_int_equal(count_at(f, 11), 1);
}

/* Of those who ask for a first page alone there may be many: that is how a size is asked for. */
static void version_that_is_read_is_held_longer_than_others(void **state)
{
    const struct kinf__watchcache_limits limits = { .max_pages = 3 };
    struct watchcache_fixture *f = *state;
    char text[32];

    remake(f, &limits);
    watchcache_replace(f, "10", "a@1");
    hold(f);
    watchcache_put(f, "b@11");
    hold(f);
    for (int i = 12; i < 20; i++) {
        snprintf(text, sizeof text, "c@%d", i);
        watchcache_put(f, text);
        assert_int_equal(count_at(f, 11), 2);
        hold(f);
        assert_true(n_pages(f) <= 3);
    }
    assert_int_equal(count_at(f, 10), KINF_ERR_EXPIRED);
    assert_int_equal(count_at(f, 11), 2);
    assert_int_equal(count_at(f, 17), KINF_ERR_EXPIRED);
    assert_int_equal(count_at(f, 18), 3);
}

static void held_versions_are_bounded_by_the_bytes_that_they_keep(void **state)
{
    const struct kinf__watchcache_limits limits = { .page_bytes = 10000 };
    struct watchcache_fixture *f = *state;
    struct kinf__watchcache_status status;
    size_t n_held = 0;
    char text[32];

    remake(f, &limits);
    watchcache_replace(f, "10", "a@1");
    hold(f);
    for (int i = 11; count_at(f, 10) == 1; i++) {
        snprintf(text, sizeof text, "a@%d", i);
        watchcache_put(f, text);
        kinf__watchcache_status(f->cache, &status);
        assert_true(status.page_bytes <= 10000);
        n_held++;
    }
    /* An object of these is between 100 and 1,000 bytes. */
    assert_in_range(n_held, 10, 100);
    assert_int_equal(status.n_pages_dropped, 1);
    assert_int_equal(status.page_bytes, 0);
}

static size_t page_bytes(struct watchcache_fixture *f)
{
    struct kinf__watchcache_status status;

    kinf__watchcache_status(f->cache, &status);
    watchcache_check(f);
    return status.page_bytes;
}

/* A first page may be made for long, and the version is held behind it. */
static void what_leaves_while_a_page_is_made_is_counted(void **state)
{
    const struct kinf__watchcache_limits limits = { .page_bytes = 1000 };
    struct watchcache_fixture *f = *state;
    struct reading first, second;
    size_t bytes;

    remake(f, &limits);
    watchcache_replace(f, "10", "a@1", "b@2");
    first = read_now(f);
    watchcache_put(f, "a@11");
    second = read_now(f);
    watchcache_put(f, "a@12");
    hold_reading(f, &second);
    bytes = page_bytes(f);
    assert_in_range(bytes, 100, 400);
    /* The older one has what the younger one has, goes in front of it, and not after it. */
    now_ms += MINUTE_MS;
    hold_reading(f, &first);
    assert_in_range(page_bytes(f), 2 * bytes - 10, 2 * bytes + 10);
    assert_int_equal(n_pages(f), 2);
    assert_int_equal(count_at(f, 10), 2);
    kinf__watchcache_tick(f->cache, now_ms + 4 * MINUTE_MS);
    assert_int_equal(n_pages(f), 0);
    /* What is too expensive by then is not held at all. */
    first = read_now(f);
    for (int i = 13; i < 25; i++) {
        char text[32];

        snprintf(text, sizeof text, "a@%d", i);
        watchcache_put(f, text);
    }
    hold_reading(f, &first);
    assert_int_equal(n_pages(f), 0);
    assert_int_equal(page_bytes(f), 0);
    assert_int_equal(count_at(f, 12), KINF_ERR_EXPIRED);
}

/* Who reads a page while its version is given up holds it no more: neither limit would hold. */
static void versions_that_were_given_up_are_not_held_again(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reading first;

    watchcache_replace(f, "10", "a@1");
    first = read_now(f);
    hold(f);
    watchcache_put(f, "b@11");
    hold(f);
    kinf__watchcache_tick(f->cache, now_ms + 5 * MINUTE_MS);
    assert_int_equal(n_pages(f), 0);
    hold_reading(f, &first);
    assert_int_equal(count_at(f, 10), KINF_ERR_EXPIRED);
    assert_int_equal(n_pages(f), 0);
    /* But what readers are told is held anew. */
    hold(f);
    watchcache_put(f, "c@12");
    assert_int_equal(count_at(f, 11), 2);
}

/* The version stands for another state now. */
static void server_that_went_back_ends_held_versions(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reading before, after;

    watchcache_replace(f, "10", "a@1");
    watchcache_put(f, "b@12");
    hold(f);
    before = read_now(f);
    watchcache_replace(f, "11", "a@1");
    assert_int_equal(n_pages(f), 0);
    assert_int_equal(count_at(f, 12), KINF_ERR_RV_TOO_LARGE);
    after = read_now(f);
    watchcache_put(f, "c@13");
    hold_reading(f, &before); /* first page read before, held after */
    assert_int_equal(n_pages(f), 0);
    assert_int_equal(count_at(f, 12), KINF_ERR_EXPIRED);
    hold_reading(f, &after);
    assert_int_equal(count_of(f, after.version), 1);
    hold(f);
    watchcache_put(f, "c@14");
    assert_int_equal(count_at(f, 13), 2);
}

/* Who has a version of before the server went back, or of before a change that has no version of its
 * own, is not given another state under the same number. */
static void version_of_two_states_is_not_read(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__store_version before, after, later;

    watchcache_replace(f, "10", "a@1");
    watchcache_put(f, "b@12");
    before = hold(f);
    assert_int_equal(count_of(f, before), 2);
    watchcache_replace(f, "11", "a@1");
    watchcache_put(f, "c@12");
    watchcache_put(f, "d@13");
    assert_int_equal(count_at(f, 12), KINF_ERR_EXPIRED);
    watchcache_replace(f, "11", "a@1");
    watchcache_put(f, "c@12");
    after = hold(f);
    assert_int_equal(count_of(f, after), 2);
    assert_int_equal(count_of(f, before), KINF_ERR_EXPIRED);
    assert_int_equal(count_at(f, 12), KINF_ERR_EXPIRED);
    watchcache_put(f, "e@13");
    assert_int_equal(count_of(f, after), 2);
    assert_int_equal(count_of(f, before), KINF_ERR_EXPIRED);
    assert_int_equal(count_at(f, 12), KINF_ERR_EXPIRED);
    later = hold(f);
    watchcache_delete(f, "e@13");
    assert_int_equal(count_of(f, later), KINF_ERR_EXPIRED);
    assert_int_equal(count_at(f, 13), KINF_ERR_EXPIRED);
    assert_int_equal(n_pages(f), 0);
    watchcache_put(f, "e@14");
    assert_int_equal(count_at(f, 14), 3);
}

/* Nobody knows what its server did meanwhile. */
static void cache_that_was_disabled_reads_no_page_of_before(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__store_version before;

    watchcache_replace(f, "10", "a@1");
    before = hold(f);
    kinf__watchcache_set_enabled(f->cache, false);
    assert_int_equal(count_of(f, before), KINF_ERR_RV_TOO_LARGE);
    watchcache_replace(f, "9", "a@1", "b@2");
    watchcache_put(f, "c@10");
    kinf__watchcache_set_enabled(f->cache, true);
    assert_int_equal(count_of(f, before), KINF_ERR_EXPIRED);
    assert_int_equal(count_of(f, hold(f)), 3);
}

/* A source may take another one's place while somebody reads pages of it. */
static void version_of_another_cache_is_not_read(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__store_version before;

    watchcache_replace(f, "10", "a@1");
    before = hold(f);
    remake(f, NULL);
    watchcache_replace(f, "10", "b@1");
    hold(f);
    assert_int_equal(count_of(f, before), KINF_ERR_EXPIRED);
}

/* --- waiting --- */

struct wait {
    struct kinf__version_waiter waiter;
    unsigned n_done;
    int result;
};

static void note_done(struct kinf__version_waiter *waiter, int result, void *ctx)
{
    struct wait *wait = ctx;

    if (!kinf__mutex_none_held())
        abort();
    assert_ptr_equal(waiter, &wait->waiter);
    wait->n_done++;
    wait->result = result;
}

/* Whether it waits. */
static bool begin_wait(struct watchcache_fixture *f, struct wait *wait, uint64_t version,
                       int64_t deadline_ms)
{
    *wait = (struct wait){
        .waiter = { .version = version, .deadline_ms = deadline_ms, .done = note_done, .ctx = wait }
    };
    return !kinf__watchcache_wait(f->cache, &wait->waiter);
}

static void waiting_ends_when_the_version_is_reached(void **state)
{
    struct watchcache_fixture *f = *state;
    struct wait first, second, third, late;

    assert_true(begin_wait(f, &first, 10, INT64_MAX));
    assert_true(begin_wait(f, &second, 12, INT64_MAX));
    assert_true(begin_wait(f, &third, 20, INT64_MAX));
    watchcache_replace(f, "10", "a@1");
    assert_int_equal(first.n_done, 1);
    assert_int_equal(first.result, 0);
    assert_false(begin_wait(f, &late, 10, INT64_MAX));
    watchcache_bookmark(f, "11");
    assert_int_equal(second.n_done, 0);
    watchcache_put(f, "a@13");
    assert_int_equal(second.n_done, 1);
    assert_int_equal(second.result, 0);
    assert_int_equal(third.n_done, 0);
    watchcache_replace(f, "20", "a@13");
    assert_int_equal(third.n_done, 1);
    assert_int_equal(third.result, 0);
    assert_int_equal(late.n_done, 0);
}

static void note_due(int64_t due_ms, void *ctx)
{
    *(int64_t *)ctx = due_ms;
}

static void waiting_ends_with_its_time(void **state)
{
    struct watchcache_fixture *f = *state;
    int64_t told_ms = 0;
    struct kinf__watchcache_status status;
    struct wait wait, longer;

    watchcache_replace(f, "10", "a@1");
    kinf__watchcache_set_on_due(f->cache, note_due, &told_ms);
    assert_true(begin_wait(f, &wait, 11, 3000));
    assert_int_equal(told_ms, 3000);
    assert_true(begin_wait(f, &longer, 11, 4000));
    assert_int_equal(told_ms, 4000);
    assert_int_equal(kinf__watchcache_tick(f->cache, 2999), 3000);
    assert_int_equal(wait.n_done, 0);
    assert_int_equal(kinf__watchcache_tick(f->cache, 3000), 4000);
    assert_int_equal(wait.n_done, 1);
    assert_int_equal(wait.result, KINF_ERR_TIMEOUT);
    assert_int_equal(longer.n_done, 0);
    kinf__watchcache_status(f->cache, &status);
    assert_int_equal(status.n_waiters, 1);
    watchcache_put(f, "a@11");
    assert_int_equal(longer.n_done, 1);
    assert_int_equal(wait.n_done, 1);
}

static void waiting_ends_when_the_server_goes_back_or_serving_ends(void **state)
{
    struct watchcache_fixture *f = *state;
    struct wait wait;

    watchcache_replace(f, "10", "a@1");
    assert_true(begin_wait(f, &wait, 11, INT64_MAX));
    watchcache_replace(f, "9", "a@1");
    assert_int_equal(wait.n_done, 1);
    assert_int_equal(wait.result, KINF_ERR_EXPIRED);
    assert_true(begin_wait(f, &wait, 11, INT64_MAX));
    kinf__watchcache_set_enabled(f->cache, false);
    assert_int_equal(wait.n_done, 1);
    assert_int_equal(wait.result, KINF_ERR_STOPPED);
}

static void waiting_ends_when_serving_begins_at_the_version(void **state)
{
    struct watchcache_fixture *f = *state;
    struct wait wait;

    watchcache_replace(f, "10", "a@1");
    kinf__watchcache_set_enabled(f->cache, false);
    assert_true(begin_wait(f, &wait, 10, INT64_MAX));
    kinf__watchcache_set_enabled(f->cache, true);
    assert_int_equal(wait.n_done, 1);
    assert_int_equal(wait.result, 0);
}

static void cancelled_wait_is_not_called(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__watchcache_status status;
    struct wait wait, other;

    watchcache_replace(f, "10", "a@1");
    assert_true(begin_wait(f, &wait, 11, INT64_MAX));
    assert_true(begin_wait(f, &other, 11, INT64_MAX));
    assert_true(kinf__watchcache_cancel_wait(f->cache, &wait.waiter));
    assert_false(kinf__watchcache_cancel_wait(f->cache, &wait.waiter));
    watchcache_put(f, "a@11");
    assert_int_equal(wait.n_done, 0);
    assert_int_equal(other.n_done, 1);
    assert_false(kinf__watchcache_cancel_wait(f->cache, &other.waiter));
    kinf__watchcache_status(f->cache, &status);
    assert_int_equal(status.n_waiters, 0);
}

/* --- callbacks and those who leave --- */

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_in;
    bool is_open;
    bool is_out;
    struct watchcache_fixture *f;
    struct watch watch;
};

/* Stays in the callback until the gate is open. */
static void pass_gate(void *ctx)
{
    struct gate *gate = ctx;

    pthread_mutex_lock(&gate->mutex);
    gate->is_in = true;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->is_open)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    gate->is_out = true;
    pthread_mutex_unlock(&gate->mutex);
}

static void await_in(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    while (!gate->is_in)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
}

static void *feed_one(void *ctx)
{
    struct gate *gate = ctx;

    watchcache_put(gate->f, "a@11");
    return NULL;
}

static void *open_gate(void *ctx)
{
    struct gate *gate = ctx;

    pthread_mutex_lock(&gate->mutex);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
    return NULL;
}

static void watch_that_is_freed_is_not_called_any_more(void **state)
{
    static const struct kinf__watch_filter all = { .name = NULL };
    struct watchcache_fixture *f = *state;
    struct gate gate = { .mutex = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER,
                         .f = f };
    pthread_t feeder, opener;

    watchcache_replace(f, "10", "a@1");
    assert_int_equal(
        kinf__watchcache_subscribe(f->cache, &all, 10, pass_gate, &gate, &gate.watch.cursor, NULL),
        0);
    watch_arm(&gate.watch);
    assert_int_equal(pthread_create(&feeder, NULL, feed_one, &gate), 0);
    await_in(&gate);
    /* The history is read meanwhile, so no lock is held. */
    watch_expect(&gate.watch, "MODIFIED d/a@11");
    assert_int_equal(pthread_create(&opener, NULL, open_gate, &gate), 0);
    kinf__watch_cursor_free(gate.watch.cursor);
    pthread_mutex_lock(&gate.mutex);
    assert_true(gate.is_out);
    pthread_mutex_unlock(&gate.mutex);
    pthread_join(opener, NULL);
    pthread_join(feeder, NULL);
}

static void pass_gate_of_waiter(struct kinf__version_waiter *waiter, int result, void *ctx)
{
    (void)waiter;
    if (result == 0)
        pass_gate(ctx);
}

static void wait_that_is_cancelled_late_is_over(void **state)
{
    struct watchcache_fixture *f = *state;
    struct gate gate = { .mutex = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER,
                         .f = f };
    struct kinf__version_waiter waiter = {
        .version = 11, .deadline_ms = INT64_MAX, .done = pass_gate_of_waiter, .ctx = &gate
    };
    pthread_t feeder, opener;

    watchcache_replace(f, "10", "a@1");
    assert_false(kinf__watchcache_wait(f->cache, &waiter));
    assert_int_equal(pthread_create(&feeder, NULL, feed_one, &gate), 0);
    await_in(&gate);
    assert_int_equal(pthread_create(&opener, NULL, open_gate, &gate), 0);
    assert_false(kinf__watchcache_cancel_wait(f->cache, &waiter));
    pthread_mutex_lock(&gate.mutex);
    assert_true(gate.is_out);
    pthread_mutex_unlock(&gate.mutex);
    pthread_join(opener, NULL);
    pthread_join(feeder, NULL);
}

struct again {
    struct watch watch;
    char text[128];
};

/* What a server does at once, instead of waking a thread. */
static void read_and_arm(void *ctx)
{
    struct again *again = ctx;
    char *text = watch_read(&again->watch);

    snprintf(again->text + strlen(again->text), sizeof again->text - strlen(again->text), "%s; ",
             text);
    free(text);
    watch_arm(&again->watch);
}

static void wake_callback_may_read_and_arm_again(void **state)
{
    static const struct kinf__watch_filter all = { .name = NULL };
    struct watchcache_fixture *f = *state;
    struct again again = { .text = "" };

    watchcache_replace(f, "10", "a@1");
    assert_int_equal(kinf__watchcache_subscribe(f->cache, &all, 10, read_and_arm, &again,
                                                &again.watch.cursor, NULL),
                     0);
    watch_arm(&again.watch);
    watchcache_put(f, "a@11");
    watchcache_put(f, "a@12");
    watch_end(&again.watch);
    watchcache_put(f, "a@13");
    assert_string_equal(again.text, "MODIFIED d/a@11; MODIFIED d/a@12; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHCACHE_TEST(pages_are_read_at_the_version_of_the_first),
        WATCHCACHE_TEST(held_versions_end_with_their_age),
        WATCHCACHE_TEST(held_versions_are_bounded_by_number),
        WATCHCACHE_TEST(version_that_is_read_is_held_longer_than_others),
        WATCHCACHE_TEST(held_versions_are_bounded_by_the_bytes_that_they_keep),
        WATCHCACHE_TEST(what_leaves_while_a_page_is_made_is_counted),
        WATCHCACHE_TEST(versions_that_were_given_up_are_not_held_again),
        WATCHCACHE_TEST(server_that_went_back_ends_held_versions),
        WATCHCACHE_TEST(version_of_two_states_is_not_read),
        WATCHCACHE_TEST(cache_that_was_disabled_reads_no_page_of_before),
        WATCHCACHE_TEST(version_of_another_cache_is_not_read),
        WATCHCACHE_TEST(waiting_ends_when_the_version_is_reached),
        WATCHCACHE_TEST(waiting_ends_with_its_time),
        WATCHCACHE_TEST(waiting_ends_when_the_server_goes_back_or_serving_ends),
        WATCHCACHE_TEST(waiting_ends_when_serving_begins_at_the_version),
        WATCHCACHE_TEST(cancelled_wait_is_not_called),
        WATCHCACHE_TEST(watch_that_is_freed_is_not_called_any_more),
        WATCHCACHE_TEST(wait_that_is_cancelled_late_is_over),
        WATCHCACHE_TEST(wake_callback_may_read_and_arm_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
