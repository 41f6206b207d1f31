/*
 * The watch cache with many threads: one feeds, others watch, list in pages, wait and look at the
 * state, all at once. For the thread sanitizer, and for what must hold whatever the order.
 */
#include "unit/watchcache_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

#include "unit/test.h"

enum { n_readers = 3, n_scoped = 2, n_names = 20, first_version = 10 };

struct crowd {
    struct watchcache_fixture *f;
    unsigned last_version;
    _Atomic(bool) is_over; /* the feeding */
    _Atomic(size_t) n_failures;
    _Atomic(size_t) n_expired;
};

/* One thread with one watch; versions follow each other without a gap, so it knows what it misses. */
struct reader {
    struct crowd *crowd;
    struct kinf__waker waker;
    struct kinf__watch_cursor *cursor;
    const char *node; /* NULL: it watches all */
    uint64_t version; /* that it has */
    struct test_random random;
    pthread_t thread;
};

#define EXPECT(crowd, what)                                                                        \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            print_error("%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                         \
            atomic_fetch_add(&(crowd)->n_failures, 1);                                             \
        }                                                                                          \
    } while (0)

static void wake_reader(void *ctx)
{
    struct reader *reader = ctx;

    kinf__waker_set(&reader->waker);
}

/* The object with version v has name v % n_names, and its node is v % 2. */
static unsigned name_at(uint64_t version)
{
    return (unsigned)(version % n_names);
}

static void begin(struct reader *reader)
{
    const struct kinf__watch_filter filter = { .index = reader->node != NULL ? "byNodeName" : NULL,
                                               .index_value = reader->node };
    struct crowd *crowd = reader->crowd;
    struct kinf_snapshot *snapshot = NULL;
    int rc = KINF_ERR_EXPIRED;

    if (reader->version != 0)
        rc = kinf__watchcache_subscribe(crowd->f->cache, &filter, reader->version, wake_reader,
                                        reader, &reader->cursor, NULL);
    if (rc == 0)
        return;
    EXPECT(crowd, rc == KINF_ERR_EXPIRED);
    rc = kinf__watchcache_subscribe_now(crowd->f->cache, &filter, wake_reader, reader, &snapshot,
                                        &reader->cursor, NULL);
    EXPECT(crowd, rc == 0);
    reader->version = kinf__watchcache_parse_rv(kinf_snapshot_resource_version(snapshot));
    kinf_snapshot_unref(snapshot);
}

static void take(struct reader *reader, const struct kinf__watch_event *event)
{
    struct crowd *crowd = reader->crowd;

    if (reader->node == NULL)
        EXPECT(crowd, event->version == reader->version + 1);
    else
        EXPECT(crowd, event->version > reader->version);
    EXPECT(crowd, (unsigned)atoi(kinf_object_name(event->object)) == name_at(event->version));
    reader->version = event->version;
}

/* Reads until there is nothing, then waits to be woken; leaves now and then and comes again. */
static bool go_on(struct reader *reader)
{
    struct crowd *crowd = reader->crowd;
    struct kinf__watch_event event;
    bool is_over;
    int rc;

    /* Before the look at the end, which is told by a wake-up, too. */
    kinf__waker_clear(&reader->waker);
    is_over = atomic_load(&crowd->is_over);
    while ((rc = kinf__watch_cursor_next(reader->cursor, &event)) == 1)
        take(reader, &event);
    if (rc == KINF_ERR_EXPIRED || test_random_below(&reader->random, 20) == 0) {
        atomic_fetch_add(&crowd->n_expired, rc == KINF_ERR_EXPIRED);
        kinf__watch_cursor_free(reader->cursor);
        begin(reader);
        return true;
    }
    if (is_over)
        return kinf__watch_cursor_progress(reader->cursor) < crowd->last_version;
    if (!kinf__watch_cursor_arm(reader->cursor))
        kinf__waker_wait(&reader->waker, KINF__NEVER_MS);
    return true;
}

static void *read_all(void *ctx)
{
    struct reader *reader = ctx;

    begin(reader);
    while (go_on(reader))
        continue;
    EXPECT(reader->crowd,
           kinf__watch_cursor_progress(reader->cursor) == reader->crowd->last_version);
    kinf__watch_cursor_free(reader->cursor);
    return NULL;
}

/* Looks at everything that looks at the cache. */
static void *look_around(void *ctx)
{
    struct crowd *crowd = ctx;
    struct kinf__watchcache *cache = crowd->f->cache;
    struct kinf__watch_recent_event events[8];
    struct kinf__watchcache_status status;
    struct kinf__store_version version;

    while (!atomic_load(&crowd->is_over)) {
        struct kinf_snapshot *snapshot = kinf__watchcache_snapshot(cache, &version), *again = NULL;

        kinf__watchcache_hold(cache, snapshot, &version, kinf__clock_now_ms());
        if (kinf__watchcache_snapshot_at(cache, &version, &again, NULL) == 0) {
            EXPECT(crowd, kinf_snapshot_count(again) == kinf_snapshot_count(snapshot));
            kinf_snapshot_unref(again);
        }
        kinf_snapshot_unref(snapshot);
        kinf__watchcache_status(cache, &status);
        EXPECT(crowd, status.version >= version.number && status.oldest_version <= status.version);
        for (size_t n = kinf__watchcache_recent(cache, events, 8); n-- > 0;)
            kinf_object_unref(events[n].object);
        kinf__watchcache_tick(cache, kinf__clock_now_ms());
    }
    return NULL;
}

struct sleeper {
    struct kinf__version_waiter waiter;
    struct crowd *crowd;
    struct kinf__waker waker;
};

static void wake_sleeper(struct kinf__version_waiter *waiter, int result, void *ctx)
{
    struct sleeper *sleeper = ctx;

    (void)waiter;
    EXPECT(sleeper->crowd, result == 0);
    EXPECT(sleeper->crowd, kinf__watchcache_version(sleeper->crowd->f->cache) >= waiter->version);
    kinf__waker_set(&sleeper->waker);
}

static void *wait_on(void *ctx)
{
    struct crowd *crowd = ctx;
    struct sleeper sleeper = { .crowd = crowd };
    struct kinf__version_waiter *waiter = &sleeper.waiter;

    EXPECT(crowd, kinf__waker_init(&sleeper.waker, NULL) == 0);
    waiter->done = wake_sleeper;
    waiter->ctx = &sleeper;
    waiter->deadline_ms = INT64_MAX;
    for (uint64_t version = first_version; version <= crowd->last_version; version += 7) {
        waiter->version = version;
        if (kinf__watchcache_wait(crowd->f->cache, waiter))
            continue;
        if (version % 2 == 0 && kinf__watchcache_cancel_wait(crowd->f->cache, waiter))
            continue;
        kinf__waker_wait(&sleeper.waker, KINF__NEVER_MS);
        kinf__waker_clear(&sleeper.waker);
        /* The callback may still be on its way out of the waker. */
        kinf__watchcache_cancel_wait(crowd->f->cache, waiter);
    }
    kinf__waker_release(&sleeper.waker);
    return NULL;
}

static void feed_all(struct crowd *crowd)
{
    for (unsigned i = first_version + 1; i <= crowd->last_version; i++) {
        char text[48];

        snprintf(text, sizeof text, "%u@%u:%u", name_at(i), i, i % 2);
        watchcache_put(crowd->f, text);
    }
}

static void readers_miss_nothing_while_everybody_is_busy(void **state)
{
    const struct kinf__watchcache_limits limits = { .history_bytes = 20000,
                                                    .page_bytes = 2000,
                                                    .max_pages = 4 };
    struct watchcache_fixture *f = *state;
    struct crowd crowd = { .f = f };
    struct reader readers[n_readers + n_scoped];
    pthread_t looking, waiting;

    kinf__watchcache_free(f->cache);
    kinf_informer_free(f->informer);
    watchcache_make(f, &limits);
    watchcache_replace(f, "10", "0@1", "1@2");
    crowd.last_version = first_version + (unsigned)test_rounds(20000);
    for (size_t i = 0; i < n_readers + n_scoped; i++) {
        readers[i] = (struct reader){ .crowd = &crowd, .node = i >= n_readers ? "1" : NULL };
        readers[i].random.state = i;
        assert_int_equal(kinf__waker_init(&readers[i].waker, NULL), 0);
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    assert_int_equal(pthread_create(&looking, NULL, look_around, &crowd), 0);
    assert_int_equal(pthread_create(&waiting, NULL, wait_on, &crowd), 0);
    feed_all(&crowd);
    atomic_store(&crowd.is_over, true);
    for (size_t i = 0; i < n_readers + n_scoped; i++) {
        kinf__waker_set(&readers[i].waker);
        pthread_join(readers[i].thread, NULL);
        kinf__waker_release(&readers[i].waker);
    }
    pthread_join(looking, NULL);
    pthread_join(waiting, NULL);
    assert_int_equal(atomic_load(&crowd.n_failures), 0);
}

static void *switch_off_and_on(void *ctx)
{
    struct crowd *crowd = ctx;

    while (!atomic_load(&crowd->is_over)) {
        kinf__watchcache_set_enabled(crowd->f->cache, false);
        for (int i = 0; i < 20; i++)
            EXPECT(crowd, kinf__watchcache_version(crowd->f->cache) == 0);
        kinf__watchcache_set_enabled(crowd->f->cache, true);
    }
    return NULL;
}

/* Follows as well as it can; what it is told has no gap. */
static void *read_between(void *ctx)
{
    struct reader *reader = ctx;
    struct crowd *crowd = reader->crowd;
    const struct kinf__watch_filter all = { .name = NULL };

    while (!atomic_load(&crowd->is_over)) {
        struct kinf_snapshot *snapshot;
        struct kinf__watch_event event;

        if (kinf__watchcache_subscribe_now(crowd->f->cache, &all, wake_reader, reader, &snapshot,
                                           &reader->cursor, NULL) < 0)
            continue;
        reader->version = kinf__watchcache_parse_rv(kinf_snapshot_resource_version(snapshot));
        kinf_snapshot_unref(snapshot);
        for (int i = 0; i < 50; i++) {
            if (kinf__watch_cursor_next(reader->cursor, &event) == 1)
                take(reader, &event);
        }
        (void)!kinf__watch_cursor_arm(reader->cursor);
        kinf__watch_cursor_free(reader->cursor);
    }
    return NULL;
}

static void switching_off_and_on_leaves_no_gap(void **state)
{
    struct watchcache_fixture *f = *state;
    struct crowd crowd = { .f = f };
    struct reader reader = { .crowd = &crowd };
    pthread_t switching;

    watchcache_replace(f, "10", "0@1");
    crowd.last_version = first_version + (unsigned)test_rounds(10000);
    assert_int_equal(kinf__waker_init(&reader.waker, NULL), 0);
    assert_int_equal(pthread_create(&switching, NULL, switch_off_and_on, &crowd), 0);
    assert_int_equal(pthread_create(&reader.thread, NULL, read_between, &reader), 0);
    feed_all(&crowd);
    atomic_store(&crowd.is_over, true);
    pthread_join(switching, NULL);
    pthread_join(reader.thread, NULL);
    kinf__waker_release(&reader.waker);
    assert_int_equal(atomic_load(&crowd.n_failures), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHCACHE_TEST(readers_miss_nothing_while_everybody_is_busy),
        WATCHCACHE_TEST(switching_off_and_on_leaves_no_gap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
