/*
 * G10 with large lists: how long stop takes while one is on its way from the reflector into the
 * store and to the handlers, and while handlers are behind. KINF_TEST_STOP_OBJECTS sets how many
 * objects there are; the test of the tree has as many as a busy machine can bear.
 *
 * A round stops in the midst of the work, each at another moment of it.
 */
#include "unit/informer_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"

#include "unit/test.h"

#define N_OBJECTS     100000
#define N_MOMENTS     5
#define STOP_LIMIT_MS 200
#define ALARM_S       120

/* Nine tenths of them change, the rest goes and comes; they are listed in no order. */
struct lists {
    const struct kinf_object **items[2];
    size_t n;
};

static size_t count_objects(void)
{
    const char *given = getenv("KINF_TEST_STOP_OBJECTS");

    return given != NULL ? strtoul(given, NULL, 10) : test_rounds(N_OBJECTS);
}

static void make_list(struct lists *lists, size_t which)
{
    const struct kinf_object **items = calloc(lists->n, sizeof *items);
    char name[32], text[32];

    assert_non_null(items);
    for (size_t i = 0; i < lists->n; i++) {
        size_t number = (i * 7919 + (which != 0 ? lists->n / 10 : 0)) % (lists->n + 1);

        snprintf(name, sizeof name, "o%zu", number);
        snprintf(text, sizeof text, "%zu", number % 1000);
        items[i] = make_thing_of(name, "u", which == 0 ? "1" : "2", text);
    }
    lists->items[which] = items;
}

static void drop_list(struct lists *lists, size_t which)
{
    for (size_t i = 0; i < lists->n; i++)
        kinf_object_unref(lists->items[which][i]);
    free(lists->items[which]);
}

/* --- what is stopped --- */

struct scene {
    struct informer_fixture *f;
    struct lists lists;
    _Atomic(size_t) n_told;
};

static void on_change(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct scene *scene = ctx;

    (void)old;
    (void)object;
    atomic_fetch_add_explicit(&scene->n_told, 1, memory_order_relaxed);
}

static void begin(struct scene *scene)
{
    const struct kinf_index index = { .name = "text", .path = "text" };
    struct kinf_informer_options options = { .size = sizeof options,
                                             .indices = &index,
                                             .n_indices = 1 };
    struct kinf_handler handler = { .on_change = on_change, .ctx = scene };
    kinf_handler_id id;

    informer_make(scene->f, &options);
    assert_int_equal(kinf_informer_add_handler(scene->f->informer, &handler, &id, NULL), 0);
    handler.backlog = KINF_BACKLOG_COALESCE;
    assert_int_equal(kinf_informer_add_handler(scene->f->informer, &handler, &id, NULL), 0);
    informer_start(scene->f);
    assert_int_equal(kinf_deltafifo_replace(scene->f->informer->fifo, scene->lists.items[0],
                                            scene->lists.n, "1", NULL),
                     0);
    wait_synced(scene->f);
}

/* What a reflector's thread does with its list; stop would join it. */
static void *relist(void *ctx)
{
    struct scene *scene = ctx;
    int rc = kinf_deltafifo_replace(scene->f->informer->fifo, scene->lists.items[1], scene->lists.n,
                                    "2", NULL);

    if (rc != 0 && rc != KINF_ERR_STOPPED)
        abort();
    return NULL;
}

static int64_t stop(struct scene *scene, pthread_t reflector)
{
    int64_t begun_ms = kinf__clock_now_ms();

    assert_int_equal(kinf_informer_stop(scene->f->informer, NULL), 0);
    pthread_join(reflector, NULL);
    return kinf__clock_now_ms() - begun_ms;
}

static void end(struct scene *scene)
{
    kinf_informer_free(KINF__TAKE(scene->f->informer));
}

static void pause_us(int64_t delay_us)
{
    const struct timespec delay = { .tv_sec = delay_us / 1000000,
                                    .tv_nsec = delay_us % 1000000 * 1000 };

    nanosleep(&delay, NULL);
}

/* --- rounds --- */

/* How long the whole way takes, for the moments to lie in. */
static int64_t time_relist_us(struct scene *scene)
{
    int64_t begun_ns;
    pthread_t reflector;

    begin(scene);
    begun_ns = kinf__clock_now_ns();
    assert_int_equal(pthread_create(&reflector, NULL, relist, scene), 0);
    while (kinf_informer_wait_for_rv(scene->f->informer, "2", 60000, NULL) < 0)
        continue;
    begun_ns = kinf__clock_now_ns() - begun_ns;
    stop(scene, reflector);
    end(scene);
    return begun_ns / 1000;
}

static int64_t time_stop_ms(struct scene *scene, int64_t delay_us)
{
    pthread_t reflector;
    int64_t took_ms;

    begin(scene);
    assert_int_equal(pthread_create(&reflector, NULL, relist, scene), 0);
    pause_us(delay_us);
    took_ms = stop(scene, reflector);
    end(scene);
    return took_ms;
}

/* The best of some rounds: others use the machine, too. */
static int64_t time_best_stop_ms(struct scene *scene, int64_t delay_us)
{
    int64_t best_ms = INT64_MAX;

    for (int round = 0; round < 3 && best_ms >= STOP_LIMIT_MS; round++) {
        int64_t took_ms = time_stop_ms(scene, delay_us);

        best_ms = took_ms < best_ms ? took_ms : best_ms;
    }
    return best_ms;
}

/* G10 */
static void stop_is_quick_in_the_midst_of_a_relist(void **state)
{
    struct scene scene = { .f = *state, .lists = { .n = count_objects() } };
    int64_t relist_us, worst_ms = 0;

    make_list(&scene.lists, 0);
    make_list(&scene.lists, 1);
    relist_us = time_relist_us(&scene);
    for (int64_t i = 0; i < N_MOMENTS; i++) {
        int64_t took_ms = time_best_stop_ms(&scene, relist_us * i / N_MOMENTS);

        worst_ms = took_ms > worst_ms ? took_ms : worst_ms;
    }
    print_message("relist of %zu objects: %lld ms; stop: at most %lld ms\n", scene.lists.n,
                  (long long)relist_us / 1000, (long long)worst_ms);
    drop_list(&scene.lists, 0);
    drop_list(&scene.lists, 1);
    assert_in_range(worst_ms, 0, STOP_LIMIT_MS - 1);
}

/* --- an index that is added meanwhile --- */

struct slow_index {
    struct informer_fixture *f;
    _Atomic(bool) has_begun;
    _Atomic(bool) may_end;
};

static int take_long(const struct kinf_object *object, struct kinf_index_values *values, void *ctx)
{
    struct slow_index *slow = ctx;

    (void)object;
    slow->has_begun = true;
    while (!slow->may_end)
        pause_us(1000);
    return kinf_index_values_add(values, "v", 1);
}

static void *add_slow_index(void *ctx)
{
    struct slow_index *slow = ctx;
    const struct kinf_index index = { .name = "slow", .function = take_long, .ctx = slow };

    if (kinf_indexer_add_indices(kinf_informer_indexer(slow->f->informer), &index, 1, NULL) != 0)
        abort();
    return NULL;
}

static void feed_a_change(struct informer_fixture *f)
{
    feed_update(f, "a", "2");
}

static void feed_a_relist(struct informer_fixture *f)
{
    feed_replace(f, "2", "a", "2");
}

static void feed_a_bookmark(struct informer_fixture *f)
{
    assert_int_equal(kinf_deltafifo_bookmark(f->informer->fifo, "2", NULL), 0);
    kinf__informer_note_contact(f->informer);
}

/* Stops while the processor waits with a write until the index has been added, which is not before
 * the stop has ended. */
static void stop_before_index(struct slow_index *slow, void (*feed)(struct informer_fixture *f))
{
    struct informer_fixture *f = slow->f;
    pthread_t thread;

    informer_make(f, NULL);
    informer_start(f);
    feed_replace(f, "1", "a", "1");
    wait_synced(f);
    assert_int_equal(pthread_create(&thread, NULL, add_slow_index, slow), 0);
    while (!slow->has_begun)
        pause_us(1000);
    feed(f);
    while (kinf_deltafifo_len(f->informer->fifo) != 0)
        pause_us(1000);
    assert_int_equal(kinf_informer_stop(f->informer, NULL), 0);
    slow->may_end = true;
    pthread_join(thread, NULL);
}

/* G10 */
static void stop_does_not_wait_for_an_index_that_is_added(void **state)
{
    static void (*const feeds[])(struct informer_fixture * f) = { feed_a_change, feed_a_relist,
                                                                  feed_a_bookmark };
    struct informer_fixture *f = *state;

    alarm(ALARM_S);
    for (size_t i = 0; i < KINF__ARRAY_LEN(feeds); i++) {
        struct slow_index slow = { .f = f };
        kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
        char rv[64];

        stop_before_index(&slow, feeds[i]);
        assert_int_equal(
            kinf_indexer_resource_version(kinf_informer_indexer(f->informer), rv, sizeof rv), 0);
        assert_string_equal(rv, "1");
        assert_int_equal(
            kinf_indexer_by_index(kinf_informer_indexer(f->informer), "slow", "v", &list, NULL), 0);
        assert_int_equal(list.n_items, 1);
        kinf_informer_free(KINF__TAKE(f->informer));
    }
    alarm(0);
}

/* --- a start that fails --- */

/* Of a handler, or the processor's. */
static void informer_whose_thread_cannot_be_started_is_stopped(void **state)
{
    struct informer_fixture *f = *state;

    for (int with_handler = 0; with_handler < 2; with_handler++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf_informer_status status;

        informer_make(f, NULL);
        if (with_handler)
            informer_add(f, &f->recorders[0]);
        kinf__thread_set_stack(NO_STACK);
        assert_int_equal(kinf_informer_start(f->informer, &err), KINF_ERR_SYSTEM);
        kinf__thread_set_stack(0);
        assert_non_null(strstr(err.message, with_handler ? "kinf-listener" : "kinf-processor"));
        kinf_informer_status(f->informer, &status);
        assert_int_equal(status.state, KINF_STATE_STOPPED);
        assert_int_equal(kinf_informer_start(f->informer, NULL), KINF_ERR_STATE);
        kinf_informer_free(KINF__TAKE(f->informer));
    }
    recorder_expect(&f->recorders[0], "done");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        INFORMER_TEST_BOTH(stop_is_quick_in_the_midst_of_a_relist),
        INFORMER_TEST_BOTH(stop_does_not_wait_for_an_index_that_is_added),
        INFORMER_TEST(informer_whose_thread_cannot_be_started_is_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
