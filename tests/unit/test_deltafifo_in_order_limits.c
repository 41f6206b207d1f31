/*
 * DeltaFIFO in order of arrival at its limits: the bound by bytes, close and abort, out of memory,
 * a broken structure, many threads. Waiting is in test_deltafifo_limits.c, for both orders.
 */
#include "unit/deltafifo_fixture.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"

#include "unit/allocation.h"
#include "unit/test.h"

/* --- the bound, the end --- */

static void a_closed_queue_refuses_producers_and_drains(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "1", "a", "1", NULL);
    fifo_add(f, "b", "2");
    kinf_deltafifo_close(f->fifo);
    assert_int_equal(kinf_deltafifo_add(f->fifo, f->made[0], NULL), KINF_ERR_STOPPED);
    assert_int_equal(kinf_deltafifo_replace(f->fifo, f->made, 1, "3", NULL), KINF_ERR_STOPPED);
    assert_int_equal(kinf_deltafifo_resync(f->fifo, NULL), KINF_ERR_STOPPED);
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, "3", NULL), KINF_ERR_STOPPED);
    assert_string_equal(fifo_pop(f), "ReplacedAll@1 [a@1] initial");
    assert_string_equal(fifo_pop(f), "b: Added@2");
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, KINF_FOREVER), KINF_ERR_STOPPED);
    assert_string_equal(fifo_processed_rv(f), "2");
}

static void abort_queue(struct fifo_fixture *f)
{
    kinf_deltafifo_abort(f->fifo);
}

static void an_aborted_queue_drops_what_is_left(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "a", "6");
    fifo_add(f, "b", "7");
    fifo_replace(f, "8", "a", "6", NULL);
    fifo_bookmark(f, "9");
    f->window = abort_queue;
    assert_string_equal(fifo_pop(f), "a: Added@6; b: Added@7");
    assert_int_equal(kinf_deltafifo_len(f->fifo), 0);
    assert_int_equal(kinf_deltafifo_bytes(f->fifo), 0);
    assert_string_equal(fifo_processed_rv(f), "7");
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, KINF_FOREVER), KINF_ERR_STOPPED);
    kinf_deltafifo_abort(f->fifo);
}

static void a_dropped_first_list_never_synchronizes(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_bookmark(f, "5");
    fifo_replace(f, "8", "a", "6", NULL);
    f->window = abort_queue;
    assert_string_equal(fifo_pop(f), "Bookmark@5 initial");
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_processed_rv(f), "5");
}

static void abort_does_not_take_the_list_in_process_away(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "8", "a", "6", NULL);
    f->window = abort_queue;
    assert_string_equal(fifo_pop(f), "ReplacedAll@8 [a@6] initial");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_processed_rv(f), "8");
}

static void lists_resyncs_and_bookmarks_pass_the_bound(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_full(f);
    fifo_pop(f);
    fifo_replace(f, "2", "a", "1", "b", "2", NULL);
    fifo_resync(f);
    fifo_bookmark(f, "3");
    assert_int_equal(kinf_deltafifo_len(f->fifo), 3);
}

static void bytes_are_those_of_the_queued_objects(void **state)
{
    struct fifo_fixture *f = *state;
    size_t size;

    fifo_open_bare(f);
    fifo_add(f, "a", "1");
    size = kinf_object_size(f->made[0]);
    fifo_update(f, "a", "2");
    fifo_replace(f, "4", "b", "3", "c", "4", NULL);
    fifo_bookmark(f, "5");
    assert_int_equal(kinf_deltafifo_bytes(f->fifo), 4 * size);
    fifo_pop(f);
    assert_int_equal(kinf_deltafifo_bytes(f->fifo), 3 * size);
    fifo_pop(f);
    fifo_pop(f);
    assert_int_equal(kinf_deltafifo_bytes(f->fifo), 0);
}

/* --- out of memory --- */

static int add_one(struct fifo_fixture *f)
{
    return kinf_deltafifo_add(f->fifo, f->made[0], NULL);
}

static int delete_one(struct fifo_fixture *f)
{
    return kinf_deltafifo_delete(f->fifo, f->made[0], NULL);
}

static int replace_all(struct fifo_fixture *f)
{
    return kinf_deltafifo_replace(f->fifo, f->made, f->n_made, "99", NULL);
}

static int resync(struct fifo_fixture *f)
{
    return kinf_deltafifo_resync(f->fifo, NULL);
}

static int bookmark(struct fifo_fixture *f)
{
    return kinf_deltafifo_bookmark(f->fifo, "99", NULL);
}

/* A ring without room, and some of it popped before. */
static void fill_ring(struct fifo_fixture *f)
{
    fifo_open_bare(f);
    fifo_resync(f);
    fifo_pop(f);
    while (f->fifo->in_order.n_entries < f->fifo->in_order.n_allocated)
        fifo_resync(f);
    fifo_make(f, "a", "1");
    fifo_make(f, "b", "2");
}

static void out_of_memory_changes_nothing(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_sweep(f, fill_ring, add_one);
    fifo_sweep(f, fill_ring, delete_one);
    fifo_sweep(f, fill_ring, replace_all);
    fifo_sweep(f, fill_ring, resync);
    fifo_sweep(f, fill_ring, bookmark);
}

static void a_list_that_no_memory_could_hold_is_refused(void **state)
{
    struct fifo_fixture *f = *state;
    const struct kinf_object *objects[] = { NULL };
    struct kinf_error err = KINF_ERROR_INIT;

    fifo_open_bare(f);
    assert_int_equal(
        kinf_deltafifo_replace(f->fifo, objects, SIZE_MAX / sizeof objects[0], "3", &err),
        KINF_ERR_NO_MEMORY);
    assert_int_equal(err.code, KINF_ERR_NO_MEMORY);
    assert_int_equal(kinf_deltafifo_len(f->fifo), 0);
}

static void out_of_memory_makes_no_queue(void **state)
{
    struct fifo_fixture *f = *state;
    const struct kinf_deltafifo_options options = fifo_bare_options(f);
    size_t n_failed = 0;

    for (;; n_failed++) {
        struct kinf_error err = KINF_ERROR_INIT;
        int rc;

        test_fail_allocation(n_failed + 1);
        rc = kinf_deltafifo_new(&options, &f->fifo, &err);
        if (!test_allocation_failed())
            break;
        assert_int_equal(rc, KINF_ERR_NO_MEMORY);
        assert_int_equal(err.code, KINF_ERR_NO_MEMORY);
        assert_null(f->fifo);
    }
    assert_int_equal(n_failed, 2);
}

/* --- the check fires --- */

static void the_check_fires_on_broken_entries(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf__fifo_entry *entries;
    struct kinf_deltafifo *fifo;
    struct kinf__fifo_list *list;

    fifo_open_bare(f);
    fifo_add(f, "a", "1");
    fifo_replace(f, "2", "a", "1", NULL);
    fifo_resync(f);
    fifo_bookmark(f, "3");
    fifo = f->fifo;
    entries = fifo->in_order.ring;
    list = entries[1].list;
    fifo_expect_check_fires(fifo, entries[0].object = NULL, entries[0].object = f->made[0]);
    fifo_expect_check_fires(fifo, entries[0].list = list, entries[0].list = NULL);
    fifo_expect_check_fires(fifo, entries[0].hash++, entries[0].hash--);
    fifo_expect_check_fires(fifo, entries[0].n_bytes++, entries[0].n_bytes--);
    fifo_expect_check_fires(fifo, entries[0].type = KINF_DELTA_REPLACED,
                            entries[0].type = KINF_DELTA_ADDED);
    fifo_expect_check_fires(fifo, entries[1].object = f->made[0], entries[1].object = NULL);
    fifo_expect_check_fires(fifo, entries[1].list = NULL, entries[1].list = list);
    fifo_expect_check_fires(fifo, entries[1].n_bytes++, entries[1].n_bytes--);
    fifo_expect_check_fires(fifo, entries[1].type = KINF_DELTA_BOOKMARK,
                            entries[1].type = KINF_DELTA_REPLACED_ALL);
    fifo_expect_check_fires(fifo, entries[2].list = list, entries[2].list = NULL);
    fifo_expect_check_fires(
        fifo, (entries[2].type = KINF_DELTA_BOOKMARK, entries[2].list = entries[3].list),
        (entries[2].type = KINF_DELTA_SYNC_ALL, entries[2].list = NULL));
}

static void the_check_fires_on_a_broken_queue(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf_deltafifo *fifo;
    struct kinf__in_order *queue;

    fifo_open_bare(f);
    fifo_resync(f);
    fifo_replace(f, "2", "a", "1", NULL);
    fifo_add(f, "a", "2");
    fifo = f->fifo;
    queue = &fifo->in_order;
    fifo_expect_check_fires(fifo, fifo->n_bytes++, fifo->n_bytes--);
    fifo_expect_check_fires(fifo, queue->n_entries = queue->n_allocated + 1, queue->n_entries = 3);
    fifo_expect_check_fires(fifo, queue->n_allocated--, queue->n_allocated++);
    fifo_expect_check_fires(fifo, queue->head = queue->n_allocated, queue->head = 0);
    fifo_expect_check_fires(fifo, queue->n_in_process = 1, queue->n_in_process = 0);
    fifo_expect_check_fires(fifo, fifo->initial_count = 1, fifo->initial_count = 2);
    fifo_expect_check_fires(fifo, fifo->initial_count = 3, fifo->initial_count = 2);
    fifo_expect_check_fires(fifo, fifo->initial_count = 4, fifo->initial_count = 2);
    fifo_expect_check_fires(fifo, fifo->populated = false, fifo->populated = true);
    fifo_expect_check_fires(fifo, fifo->in_process_is_initial = true,
                            fifo->in_process_is_initial = false);
    fifo_expect_check_fires(fifo, fifo->aborted = true, fifo->aborted = false);
    fifo->initial_count = 0;
    fifo_expect_check_fires(fifo, fifo->populated = false, fifo->populated = true);
}

/* --- many threads --- */

enum { n_producers = 3, n_keys = 8 };

struct producer {
    struct kinf_deltafifo *fifo;
    size_t number;
    size_t n_rounds;
    struct test_random random;
    pthread_t thread;
    int failures;
    size_t n_seen; /* the consumer's: its last version */
};

/* Version after version, each on a random one of its own keys. */
static void *produce(void *ctx)
{
    struct producer *producer = ctx;

    for (size_t version = 1; version <= producer->n_rounds; version++) {
        size_t i = test_random_below(&producer->random, n_keys);
        char name[] = { (char)('0' + producer->number), (char)('0' + i), '\0' }, rv[24];
        const struct kinf_object *object;

        snprintf(rv, sizeof rv, "%zu", version);
        object = fifo_object(name, rv);
        producer->failures += version % 4 == 0
                                  ? kinf_deltafifo_delete(producer->fifo, object, NULL) < 0
                                  : kinf_deltafifo_add(producer->fifo, object, NULL) < 0;
        kinf_object_unref(object);
        if (version % 64 == 0)
            producer->failures += kinf_deltafifo_resync(producer->fifo, NULL) < 0;
    }
    return NULL;
}

static void *close_after_producers(void *ctx)
{
    struct producer *producers = ctx;
    size_t n_started = 0;

    while (n_started < n_producers && kinf__thread_start(&producers[n_started].thread, "producer",
                                                         produce, &producers[n_started], NULL) == 0)
        n_started++;
    for (size_t i = 0; i < n_started; i++)
        pthread_join(producers[i].thread, NULL);
    kinf_deltafifo_close(producers[0].fifo);
    return n_started == n_producers ? NULL : producers;
}

/* Nothing is missing, nothing is doubled, no key is twice in a batch. */
static int expect_next_versions(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct producer *producers = ctx;
    bool is_in_batch[n_producers][n_keys] = { 0 };

    (void)in_initial_list;
    for (size_t i = 0; i < deltas->n_items; i++) {
        const struct kinf_object *object = deltas->items[i].object;
        const char *name;
        size_t number, key;

        if (object == NULL)
            continue;
        name = kinf_object_name(object);
        number = (size_t)(name[0] - '0');
        key = (size_t)(name[1] - '0');
        if (is_in_batch[number][key] ||
            strtoul(kinf_object_resource_version(object), NULL, 10) != ++producers[number].n_seen)
            return KINF_ERR_INVALID;
        is_in_batch[number][key] = true;
    }
    return 0;
}

static void every_delta_of_many_producers_arrives_in_order(void **state)
{
    struct fifo_fixture *f = *state;
    struct test_random random = test_random_init(__func__);
    struct kinf_deltafifo_options options = fifo_bare_options(f);
    struct producer producers[n_producers];
    pthread_t closer;
    void *failed;
    int rc;

    options.max_bytes = 4000;
    fifo_open(f, &options);
    for (size_t i = 0; i < n_producers; i++)
        producers[i] = (struct producer){ .fifo = f->fifo,
                                          .number = i,
                                          .n_rounds = test_rounds(20000),
                                          .random = { test_random_next(&random) } };
    assert_int_equal(kinf__thread_start(&closer, "closer", close_after_producers, producers, NULL),
                     0);
    while ((rc = kinf_deltafifo_pop(f->fifo, expect_next_versions, producers, KINF_FOREVER)) == 0)
        ;
    assert_int_equal(rc, KINF_ERR_STOPPED);
    pthread_join(closer, &failed);
    assert_null(failed);
    for (size_t i = 0; i < n_producers; i++) {
        assert_int_equal(producers[i].failures, 0);
        assert_int_equal(producers[i].n_seen, producers[i].n_rounds);
    }
}

/* A reflector that lists now and then, and one who asks meanwhile. */
struct reflector {
    struct kinf_deltafifo *fifo;
    size_t n_rounds;
    _Atomic(bool) is_over;
    size_t newest_list; /* the consumer's: version of its last list */
};

static int list_two(struct reflector *reflector, size_t version)
{
    const struct kinf_object *objects[2];
    char rv[24];
    int rc;

    snprintf(rv, sizeof rv, "%zu", version);
    objects[0] = fifo_object("a", rv);
    objects[1] = fifo_object("b", rv);
    rc = kinf_deltafifo_replace(reflector->fifo, objects, 2, rv, NULL);
    kinf_object_unref(objects[0]);
    kinf_object_unref(objects[1]);
    return rc;
}

static int watch_one(struct reflector *reflector, size_t version)
{
    const struct kinf_object *object;
    char rv[24];
    int rc;

    snprintf(rv, sizeof rv, "%zu", version);
    if (version % 5 == 0)
        return kinf_deltafifo_bookmark(reflector->fifo, rv, NULL);
    object = fifo_object(version % 2 == 0 ? "a" : "c", rv);
    rc = kinf_deltafifo_update(reflector->fifo, object, NULL);
    kinf_object_unref(object);
    return rc;
}

static void *reflect(void *ctx)
{
    struct reflector *reflector = ctx;
    int n_failures = 0;

    for (size_t version = 1; version <= reflector->n_rounds; version++)
        n_failures +=
            (version % 16 == 1 ? list_two(reflector, version) : watch_one(reflector, version)) < 0;
    kinf_deltafifo_close(reflector->fifo);
    return n_failures == 0 ? NULL : reflector;
}

/* Neither the resourceVersion nor has_synced ever goes back; synchronized means that the version of
 * the first list, or a later one, was processed. */
static void *ask(void *ctx)
{
    struct reflector *reflector = ctx;
    bool has_synced = false, is_right = true;
    unsigned long newest = 0;

    while (!atomic_load(&reflector->is_over) && is_right) {
        bool now_synced = kinf_deltafifo_has_synced(reflector->fifo);
        char text[KINF__FIFO_RV_SIZE];
        unsigned long version;

        is_right = kinf_deltafifo_resource_version(reflector->fifo, text, sizeof text) == 0 &&
                   kinf__deltafifo_check(reflector->fifo);
        version = strtoul(text, NULL, 10);
        is_right = is_right && version >= newest && now_synced >= has_synced &&
                   (!now_synced || version >= 1);
        newest = version;
        has_synced = now_synced;
        sched_yield();
    }
    return is_right ? NULL : reflector;
}

static int follow(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct reflector *reflector = ctx;
    const struct kinf_delta *first = &deltas->items[0];

    if (in_initial_list != (reflector->newest_list == 0))
        return KINF_ERR_INVALID;
    if (first->type != KINF_DELTA_REPLACED_ALL)
        return 0;
    reflector->newest_list = strtoul(first->resource_version, NULL, 10);
    for (size_t i = 0; i < first->n_objects; i++) {
        if (strcmp(kinf_object_resource_version(first->objects[i]), first->resource_version) != 0)
            return KINF_ERR_INVALID;
    }
    return deltas->n_items == 1 ? 0 : KINF_ERR_INVALID;
}

static void what_is_asked_never_goes_back(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf_deltafifo_options options = fifo_bare_options(f);
    struct reflector reflector = { .n_rounds = test_rounds(20000) };
    pthread_t asker, producer;
    char last[24];
    void *failed;
    int rc;

    options.max_bytes = 4000;
    fifo_open(f, &options);
    reflector.fifo = f->fifo;
    assert_int_equal(kinf__thread_start(&asker, "asker", ask, &reflector, NULL), 0);
    assert_int_equal(kinf__thread_start(&producer, "reflector", reflect, &reflector, NULL), 0);
    while ((rc = kinf_deltafifo_pop(f->fifo, follow, &reflector, KINF_FOREVER)) == 0)
        ;
    atomic_store(&reflector.is_over, true);
    assert_int_equal(rc, KINF_ERR_STOPPED);
    pthread_join(producer, &failed);
    assert_null(failed);
    pthread_join(asker, &failed);
    assert_null(failed);
    snprintf(last, sizeof last, "%zu", reflector.n_rounds);
    assert_string_equal(fifo_processed_rv(f), last);
    assert_int_equal(reflector.newest_list, reflector.n_rounds - (reflector.n_rounds - 1) % 16);
}

#define T(test) cmocka_unit_test_setup_teardown(test, fifo_setup_in_order, fifo_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_closed_queue_refuses_producers_and_drains),
        T(an_aborted_queue_drops_what_is_left),
        T(a_dropped_first_list_never_synchronizes),
        T(abort_does_not_take_the_list_in_process_away),
        T(lists_resyncs_and_bookmarks_pass_the_bound),
        T(bytes_are_those_of_the_queued_objects),
        T(out_of_memory_changes_nothing),
        T(a_list_that_no_memory_could_hold_is_refused),
        T(out_of_memory_makes_no_queue),
        T(the_check_fires_on_broken_entries),
        T(the_check_fires_on_a_broken_queue),
        T(every_delta_of_many_producers_arrives_in_order),
        T(what_is_asked_never_goes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
