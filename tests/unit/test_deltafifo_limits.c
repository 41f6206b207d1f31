/*
 * DeltaFIFO at its limits: waiting, the bound by bytes, close and abort, in both orders; out of
 * memory, a broken structure, many threads, by key.
 */
#include "unit/deltafifo_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "deltafifo/deltafifo.h"
#include "object/object.h"

#include "unit/allocation.h"
#include "unit/test.h"

/* --- waiting, the bound, the end --- */

static void pop_gives_up_when_its_time_is_over(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, 0), KINF_ERR_TIMEOUT);
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, 1), KINF_ERR_TIMEOUT);
}

static void a_nudge_ends_one_wait(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    kinf__deltafifo_nudge(f->fifo);
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, KINF_FOREVER), KINF_ERR_TIMEOUT);
    fifo_add(f, "a", "1");
    kinf__deltafifo_nudge(f->fifo); /* what is there comes first: it is the next wait that ends */
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, KINF_FOREVER), 0);
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, KINF_FOREVER), KINF_ERR_TIMEOUT);
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, 1), KINF_ERR_TIMEOUT);
}

static void a_nudge_wakes_a_blocked_pop(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter waiter;

    fifo_open_bare(f);
    fifo_start_blocked_pop(f, &waiter);
    kinf__deltafifo_nudge(f->fifo);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.result, KINF_ERR_TIMEOUT);
}

static void a_closed_queue_refuses_producers_and_drains(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;

    fifo_open_known(f);
    fifo_add(f, "a", "1");
    fifo_add(f, "b", "2");
    kinf_deltafifo_close(f->fifo);
    assert_int_equal(kinf_deltafifo_add(f->fifo, f->made[0], &err), KINF_ERR_STOPPED);
    assert_int_equal(err.code, KINF_ERR_STOPPED);
    assert_int_equal(kinf_deltafifo_update(f->fifo, f->made[0], NULL), KINF_ERR_STOPPED);
    assert_int_equal(kinf_deltafifo_delete(f->fifo, f->made[0], NULL), KINF_ERR_STOPPED);
    assert_int_equal(fifo_try_replace(f, "3", (const char *const[]){ "a", "1", NULL }),
                     KINF_ERR_STOPPED);
    assert_int_equal(kinf_deltafifo_resync(f->fifo, NULL), KINF_ERR_STOPPED);
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, "3", NULL), KINF_ERR_STOPPED);
    assert_string_equal(fifo_pop(f), "a: Added@1");
    assert_string_equal(fifo_pop(f), "b: Added@2");
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, KINF_FOREVER), KINF_ERR_STOPPED);
}

static void abort_queue(struct fifo_fixture *f)
{
    kinf_deltafifo_abort(f->fifo);
}

static void an_aborted_queue_drops_what_is_left(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, "5", NULL), 0);
    fifo_replace(f, "10", "a", "6", "b", "7", "c", "8", NULL);
    f->window = abort_queue;
    assert_string_equal(fifo_pop(f), "a: Replaced@6 initial");
    assert_int_equal(kinf_deltafifo_len(f->fifo), 0);
    assert_int_equal(kinf_deltafifo_bytes(f->fifo), 0);
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_processed_rv(f), "5");
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, KINF_FOREVER), KINF_ERR_STOPPED);
    kinf_deltafifo_abort(f->fifo);
}

/* The consumer gave up in the midst of it. */
static void what_a_consumer_drops_when_it_is_aborted_was_not_processed(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "10", "a", "6", NULL);
    assert_string_not_equal(fifo_pop(f), "");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_processed_rv(f), "10");
    fifo_update(f, "a", "11");
    f->window = abort_queue;
    f->process_result = KINF_ERR_STOPPED;
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, 0), KINF_ERR_STOPPED);
    assert_string_equal(fifo_processed_rv(f), "10");
    assert_true(kinf__deltafifo_check(f->fifo));
}

static void a_first_list_that_is_dropped_is_no_sync(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "10", "a", "6", NULL);
    f->window = abort_queue;
    f->process_result = KINF_ERR_STOPPED;
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, 0), KINF_ERR_STOPPED);
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_processed_rv(f), "");
}

static int stop_before_the_walk(kinf_known_object_cb *callback, void *callback_ctx, void *ctx)
{
    struct fifo_fixture *f = ctx;

    kinf__stop_set(&f->fifo->stop);
    return fifo_each_known(callback, callback_ctx, f);
}

static int stop_behind_the_walk(kinf_known_object_cb *callback, void *callback_ctx, void *ctx)
{
    struct fifo_fixture *f = ctx;
    int rc = fifo_each_known(callback, callback_ctx, f);

    kinf__stop_set(&f->fifo->stop);
    return rc;
}

/* Who aborts says so before it waits for the lock, which a list may hold for long: the list is given
 * up wherever it is, and none of it comes out. */
static void an_abort_gives_up_the_list_that_is_being_queued(void **state)
{
    static int (*const walks[])(kinf_known_object_cb *, void *, void *) = { stop_before_the_walk,
                                                                            stop_behind_the_walk };
    struct fifo_fixture *f = *state;

    for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
        struct kinf_deltafifo_options options = fifo_known_options(f);

        fifo_know(f, "known", "1");
        options.known.each = walks[i];
        fifo_open(f, &options);
        fifo_add(f, "queued", "1");
        assert_int_equal(fifo_try_replace(f, "3", (const char *const[]){ "new", "2", NULL }),
                         KINF_ERR_STOPPED);
        kinf_deltafifo_abort(f->fifo);
        assert_string_equal(fifo_processed_rv(f), "");
        assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, 0), KINF_ERR_STOPPED);
        /* Left to free, which may take its time. */
        assert_false(kinf__list_is_empty(&f->fifo->keyed.dropped));
        fifo_reset(f);
    }
}

static void a_list_that_comes_when_an_abort_has_begun_is_not_queued(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    kinf__stop_set(&f->fifo->stop);
    assert_int_equal(fifo_try_replace(f, "3", (const char *const[]){ "new", "2", NULL }),
                     KINF_ERR_STOPPED);
    assert_int_equal(kinf_deltafifo_len(f->fifo), 0);
}

/* Neither is what is queued made room in for the tombstones of an empty one. Who pops finds nothing more. */
static void an_empty_list_that_comes_then_buries_nothing(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "queued", "1");
    kinf__stop_set(&f->fifo->stop);
    assert_int_equal(fifo_try_replace(f, "3", (const char *const[]){ NULL }), KINF_ERR_STOPPED);
    kinf__mutex_lock(&f->fifo->lock);
    assert_int_equal(f->fifo->ops->len_locked(f->fifo), 1);
    kinf__mutex_unlock(&f->fifo->lock);
    assert_int_equal(kinf_deltafifo_len(f->fifo), 0);
    assert_string_equal(fifo_processed_rv(f), "");
}

static void an_abort_gives_up_a_resync(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf_deltafifo_options options = fifo_known_options(f);

    fifo_know(f, "known", "1");
    options.known.each = stop_before_the_walk;
    fifo_open(f, &options);
    assert_int_equal(kinf_deltafifo_resync(f->fifo, NULL), KINF_ERR_STOPPED);
    assert_int_equal(kinf_deltafifo_len(f->fifo), 0);
}

static void what_succeeds_leaves_the_error_as_it_is(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_object *object = fifo_make(f, "a", "1");

    fifo_open_bare(f);
    assert_int_equal(kinf_deltafifo_add(f->fifo, object, &err), 0);
    assert_int_equal(kinf_deltafifo_update(f->fifo, object, &err), 0);
    assert_int_equal(kinf_deltafifo_delete(f->fifo, object, &err), 0);
    assert_int_equal(kinf_deltafifo_replace(f->fifo, &object, 1, "2", &err), 0);
    assert_int_equal(kinf_deltafifo_resync(f->fifo, &err), 0);
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, "3", &err), 0);
    assert_int_equal(err.code, 0);
    assert_string_equal(err.message, "");
}

/* The ladder of base/lock.h: a listener's is the last below the queue's. */
static void the_queue_is_used_under_the_locks_below_it(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf__mutex listener = KINF__MUTEX_INIT(KINF__RANK_LISTENER);

    fifo_open_bare(f);
    kinf__mutex_lock(&listener);
    fifo_add(f, "a", "1");
    kinf__mutex_unlock(&listener);
}

static void close_wakes_ten_blocked_pops(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter waiters[10];

    fifo_open_bare(f);
    for (int i = 0; i < 10; i++)
        fifo_start_blocked_pop(f, &waiters[i]);
    kinf_deltafifo_close(f->fifo);
    for (int i = 0; i < 10; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].result, KINF_ERR_STOPPED);
    }
}

static void a_full_queue_holds_back_a_producer_until_the_next_pop(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter waiter;

    fifo_open_full(f);
    fifo_start_blocked_add(f, &waiter);
    assert_int_equal(kinf_deltafifo_len(f->fifo), 1);
    assert_string_equal(fifo_pop(f), "a: Added@1");
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.result, 0);
    assert_string_equal(fifo_pop(f), "b: Added@2");
}

/* --- corks --- */

static void a_delta_wakes_at_once_unless_the_queue_is_corked(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "a", "1");
    assert_false(fifo_flag(f->fifo, &f->fifo->has_news));
    kinf__deltafifo_set_corked(f->fifo, true);
    fifo_add(f, "b", "2");
    assert_true(fifo_flag(f->fifo, &f->fifo->has_news));
    kinf__deltafifo_set_corked(f->fifo, false);
    assert_false(fifo_flag(f->fifo, &f->fifo->has_news));
}

static void a_corked_queue_wakes_for_64_items(void **state)
{
    struct fifo_fixture *f = *state;
    char name[8];

    fifo_open_bare(f);
    kinf__deltafifo_set_corked(f->fifo, true);
    for (size_t i = 1; i <= 64; i++) {
        snprintf(name, sizeof name, "n%zu", i);
        fifo_add(f, name, "1");
        assert_int_equal(fifo_flag(f->fifo, &f->fifo->has_news), i < 64);
    }
}

static const struct kinf_object *object_of(size_t n_body)
{
    static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };
    static char body[1 << 20];
    struct kinf__object_parts parts = { .type = &pods,
                                        .name = KINF_STR("large"),
                                        .resource_version = KINF_STR("1"),
                                        .body = { body, n_body } };
    const struct kinf_object *object;

    memset(body, ' ', sizeof body);
    assert_int_equal(kinf__object_new(&parts, &object, NULL), 0);
    return object;
}

/* Not for one byte less. */
static void a_corked_queue_wakes_for_a_mib(void **state)
{
    struct fifo_fixture *f = *state;
    const struct kinf_object *small = object_of(0);
    size_t n_body = (1 << 20) - kinf_object_size(small);

    kinf_object_unref(small);
    for (size_t n_less = 0; n_less < 2; n_less++) {
        const struct kinf_object *large = object_of(n_body - n_less);

        fifo_open_bare(f);
        kinf__deltafifo_set_corked(f->fifo, true);
        assert_int_equal(kinf_deltafifo_add(f->fifo, large, NULL), 0);
        kinf_object_unref(large);
        assert_int_equal(fifo_flag(f->fifo, &f->fifo->has_news), n_less);
        fifo_reset(f);
    }
}

static void a_corked_queue_wakes_for_whom_a_producer_waits(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter waiter;

    fifo_open_full(f);
    kinf__deltafifo_set_corked(f->fifo, true);
    f->fifo->has_news = true;
    fifo_start_blocked_add(f, &waiter);
    assert_false(fifo_flag(f->fifo, &f->fifo->has_news));
    assert_string_equal(fifo_pop(f), "a: Added@1");
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.result, 0);
}

/* The consumer was told nothing of what fills the queue. */
static void a_producer_that_waits_for_room_wakes_a_blocked_pop(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf_deltafifo_options options = fifo_bare_options(f);
    struct fifo_waiter consumer, producer;

    options.max_bytes = 1;
    fifo_open(f, &options);
    kinf__deltafifo_set_corked(f->fifo, true);
    fifo_start_blocked_pop(f, &consumer);
    fifo_add(f, "a", "1");
    fifo_start_add(f, &producer);
    pthread_join(consumer.thread, NULL);
    pthread_join(producer.thread, NULL);
    assert_int_equal(consumer.result, 0);
    assert_int_equal(producer.result, 0);
}

static void the_end_of_a_cork_wakes_a_blocked_pop(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter waiter;

    fifo_open_bare(f);
    fifo_start_blocked_pop(f, &waiter);
    kinf__deltafifo_set_corked(f->fifo, true);
    fifo_add(f, "a", "1");
    kinf__deltafifo_set_corked(f->fifo, false);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.result, 0);
}

static void close_wakes_a_blocked_producer(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter waiter;

    fifo_open_full(f);
    fifo_start_blocked_add(f, &waiter);
    kinf_deltafifo_close(f->fifo);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.result, KINF_ERR_STOPPED);
    assert_string_equal(fifo_pop(f), "a: Added@1");
}

static void abort_wakes_a_blocked_producer(void **state)
{
    struct fifo_fixture *f = *state;
    struct fifo_waiter waiter;

    fifo_open_full(f);
    fifo_start_blocked_add(f, &waiter);
    kinf_deltafifo_abort(f->fifo);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.result, KINF_ERR_STOPPED);
}

static void add_two(struct fifo_fixture *f)
{
    fifo_add(f, "b", "2");
    fifo_add(f, "c", "3");
}

static void the_consumer_never_waits_for_itself(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_full(f);
    f->window = add_two;
    assert_string_equal(fifo_pop(f), "a: Added@1");
    assert_int_equal(kinf_deltafifo_len(f->fifo), 2);
}

static void a_list_is_not_split_by_the_bound_and_resync_passes_it(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_full(f);
    fifo_pop(f);
    fifo_replace(f, "2", "a", "1", "b", "2", NULL);
    fifo_know(f, "c", "3");
    fifo_resync(f);
    assert_int_equal(kinf_deltafifo_len(f->fifo), 3);
}

static void bytes_are_those_of_the_queued_objects(void **state)
{
    struct fifo_fixture *f = *state;
    size_t size;

    fifo_open_known(f);
    fifo_add(f, "a", "1");
    size = kinf_object_size(f->made[0]);
    fifo_update(f, "a", "2");
    fifo_add(f, "b", "3");
    assert_int_equal(kinf_deltafifo_bytes(f->fifo), 3 * size);
    fifo_replace(f, "4", NULL);
    assert_int_equal(kinf_deltafifo_bytes(f->fifo), 5 * size);
    fifo_delete(f, "b", "1000000"); /* takes the place of a tombstone */
    assert_int_equal(kinf_deltafifo_bytes(f->fifo), 5 * size + 6);
    fifo_pop(f);
    assert_int_equal(kinf_deltafifo_bytes(f->fifo), 2 * size + 6);
}

static void what_is_left_is_freed_with_the_queue(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    for (int i = 0; i < 9; i++)
        fifo_update(f, "a", "1");
    fifo_replace(f, "4", "b", "1", NULL);
}

/* --- out of memory --- */

static int add_known_to_queue(struct fifo_fixture *f)
{
    return kinf_deltafifo_add(f->fifo, f->known[0], NULL);
}

static int delete_known(struct fifo_fixture *f)
{
    return kinf_deltafifo_delete(f->fifo, f->known[0], NULL);
}

static int update_what_is_queued(struct fifo_fixture *f)
{
    return kinf_deltafifo_update(f->fifo, f->made[0], NULL);
}

static int resync_one(struct fifo_fixture *f)
{
    return kinf_deltafifo_resync(f->fifo, NULL);
}

/* Lists a queued key three times, new ones (one twice), buries the known one. */
static int replace_all(struct fifo_fixture *f)
{
    return kinf_deltafifo_replace(f->fifo, f->made, 20, "99", NULL);
}

static void prepare_sweep(struct fifo_fixture *f)
{
    char name[] = "a";

    fifo_open_known(f);
    for (int i = 0; i < 20; i++) {
        name[0] = (char)('a' + (i < 3 || i == 19 ? 0 : i));
        fifo_make(f, name, "1");
    }
    fifo_know(f, "known", "2");
    assert_int_equal(kinf_deltafifo_resync(f->fifo, NULL), 0);
    fifo_pop(f);
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, "5", NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(kinf_deltafifo_add(f->fifo, f->made[0], NULL), 0);
    fifo_add(f, "unlisted", "6");
    fifo_update(f, "unlisted", "7");
}

static void out_of_memory_changes_nothing(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_sweep(f, prepare_sweep, add_known_to_queue);
    fifo_sweep(f, prepare_sweep, delete_known);
    fifo_sweep(f, prepare_sweep, update_what_is_queued);
    fifo_sweep(f, prepare_sweep, resync_one);
    fifo_sweep(f, prepare_sweep, replace_all);
}

static void out_of_memory_makes_no_queue(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf_deltafifo_options options = { .size = sizeof options, .order = KINF_FIFO_KEYED };
    struct kinf_error err = KINF_ERROR_INIT;

    test_fail_allocation(1);
    assert_int_equal(kinf_deltafifo_new(&options, &f->fifo, &err), KINF_ERR_NO_MEMORY);
    assert_true(test_allocation_failed());
    assert_int_equal(err.code, KINF_ERR_NO_MEMORY);
    options.known.each = fifo_each_known;
    assert_int_equal(kinf_deltafifo_new(&options, &f->fifo, NULL), KINF_ERR_INVALID);
    assert_null(f->fifo);
}

/* --- the check fires --- */

static void the_check_fires_on_broken_items(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf__fifo_item *item;
    const struct kinf_object *object;

    fifo_open_bare(f);
    fifo_add(f, "a", "1");
    fifo_update(f, "a", "2");
    fifo_add(f, "b", "3");
    item = KINF__LIST_ENTRY(f->fifo->keyed.queue.next, struct kinf__fifo_item, in_queue);
    object = item->deltas[1].object;
    fifo_expect_check_fires(f->fifo, item->n_deltas = 0, item->n_deltas = 2);
    fifo_expect_check_fires(f->fifo, item->n_deltas = 3, item->n_deltas = 2);
    fifo_expect_check_fires(f->fifo, item->n_allocated = 4,
                            item->n_allocated = KINF__FIFO_N_INLINE);
    fifo_expect_check_fires(f->fifo, item->deltas[1].object = f->made[2],
                            item->deltas[1].object = object);
    fifo_expect_check_fires(f->fifo, item->deltas[1].object = NULL,
                            item->deltas[1].object = object);
    fifo_expect_check_fires(f->fifo, item->deltas[0].final_state_unknown = true,
                            item->deltas[0].final_state_unknown = false);
    item->deltas[0].type = KINF_DELTA_DELETED;
    fifo_expect_check_fires(f->fifo, item->deltas[1].type = KINF_DELTA_DELETED,
                            item->deltas[1].type = KINF_DELTA_ADDED);
}

static void the_check_fires_on_a_broken_queue(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf_deltafifo *fifo;
    struct kinf__fifo_item *item;

    fifo_open_bare(f);
    fifo_add(f, "a", "1");
    fifo_add(f, "b", "2");
    fifo = f->fifo;
    item = KINF__LIST_ENTRY(fifo->keyed.queue.next, struct kinf__fifo_item, in_queue);
    fifo_expect_check_fires(fifo, kinf__list_remove(&item->in_queue),
                            kinf__list_push_back(&fifo->keyed.queue, &item->in_queue));
    fifo_expect_check_fires(
        fifo, kinf__hmap_remove(&fifo->keyed.items, &item->in_map),
        kinf__hmap_insert_reserved(&fifo->keyed.items, &item->in_map, item->in_map.hash));
    fifo_expect_check_fires(fifo, fifo->n_bytes++, fifo->n_bytes--);
    fifo_expect_check_fires(fifo, fifo->initial_count = 3, fifo->initial_count = 0);
    fifo_expect_check_fires(fifo, fifo->in_process_is_initial = true,
                            fifo->in_process_is_initial = false);
    fifo_expect_check_fires(fifo, fifo->aborted = true, fifo->aborted = false);
    fifo->initial_count = 1;
    fifo_expect_check_fires(fifo, fifo->populated = false, fifo->populated = true);
}

/* --- many threads --- */

enum { n_producers = 3, n_keys = 8 };

/* The store of the consumer: versions by producer and key, 0 if absent. */
struct numbered_store {
    struct kinf__mutex lock;
    const struct kinf_object *objects[n_producers][n_keys];
};

struct numbered_producer {
    struct kinf_deltafifo *fifo;
    size_t number;
    size_t n_rounds;
    struct test_random random;
    int failures;
    unsigned truth[n_keys];
};

static const struct kinf_object **slot_of(struct numbered_store *store, const char *key)
{
    const char *name = fifo_name(key);

    return &store->objects[name[0] - '0'][name[1] - '0'];
}

static unsigned version_of(const struct kinf_object *object)
{
    return object != NULL ? (unsigned)strtoul(kinf_object_resource_version(object), NULL, 10) : 0;
}

static int each_stored(kinf_known_object_cb *callback, void *callback_ctx, void *ctx)
{
    struct numbered_store *store = ctx;
    int rc = 0;

    kinf__mutex_lock(&store->lock);
    for (size_t i = 0; i < (size_t)n_producers * n_keys && rc == 0; i++) {
        const struct kinf_object *object = store->objects[i / n_keys][i % n_keys];

        if (object != NULL)
            rc = callback(object, callback_ctx);
    }
    kinf__mutex_unlock(&store->lock);
    return rc;
}

static bool has_stored_key(const char *key, void *ctx)
{
    struct numbered_store *store = ctx;
    bool is_stored;

    kinf__mutex_lock(&store->lock);
    is_stored = *slot_of(store, key) != NULL;
    kinf__mutex_unlock(&store->lock);
    return is_stored;
}

static int store_deltas(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct numbered_store *store = ctx;
    const struct kinf_object **slot = slot_of(store, deltas->key);
    int rc = 0;

    (void)in_initial_list;
    for (size_t i = 0; i < deltas->n_items; i++) {
        const struct kinf_delta *delta = &deltas->items[i];
        const struct kinf_object *old = *slot;
        bool is_deleted = delta->type == KINF_DELTA_DELETED;

        if (version_of(delta->object) < version_of(old))
            rc = KINF_ERR_INVALID;
        kinf__mutex_lock(&store->lock);
        *slot = is_deleted ? NULL : kinf_object_ref(delta->object);
        kinf__mutex_unlock(&store->lock);
        kinf_object_unref(old);
    }
    return rc;
}

static void *produce_numbered(void *ctx)
{
    struct numbered_producer *producer = ctx;

    for (size_t version = 1; version <= producer->n_rounds; version++) {
        size_t i = test_random_below(&producer->random, n_keys);
        char name[] = { (char)('0' + producer->number), (char)('0' + i), '\0' }, rv[24];
        const struct kinf_object *object;
        bool deletes = test_random_below(&producer->random, 4) == 0;

        snprintf(rv, sizeof rv, "%zu", version);
        object = fifo_object(name, rv);
        producer->failures += deletes ? kinf_deltafifo_delete(producer->fifo, object, NULL) < 0
                                      : kinf_deltafifo_add(producer->fifo, object, NULL) < 0;
        kinf_object_unref(object);
        producer->truth[i] = deletes ? 0 : (unsigned)version;
        if (version % 64 == 0)
            producer->failures += kinf_deltafifo_resync(producer->fifo, NULL) < 0;
    }
    return NULL;
}

static void *close_after_producers(void *ctx)
{
    struct numbered_producer *producers = ctx;
    pthread_t threads[n_producers];
    size_t n_started = 0;

    while (n_started < n_producers &&
           kinf__thread_start(&threads[n_started], "producer", produce_numbered,
                              &producers[n_started], NULL) == 0)
        n_started++;
    for (size_t i = 0; i < n_started; i++)
        pthread_join(threads[i], NULL);
    kinf_deltafifo_close(producers[0].fifo);
    return n_started == n_producers ? NULL : producers;
}

static void what_many_producers_queued_ends_in_the_store(void **state)
{
    struct fifo_fixture *f = *state;
    struct test_random random = test_random_init(__func__);
    struct numbered_store store = { .lock = KINF__MUTEX_INIT(KINF__RANK_INDEXER) };
    struct kinf_deltafifo_options options = {
        .size = sizeof options,
        .known = { each_stored, has_stored_key, &store },
        .max_bytes = 2000,
        .order = KINF_FIFO_KEYED,
    };
    struct numbered_producer producers[n_producers];
    pthread_t closer;
    void *failed;
    int rc;

    fifo_open(f, &options);
    for (size_t i = 0; i < n_producers; i++)
        producers[i] = (struct numbered_producer){ .fifo = f->fifo,
                                                   .number = i,
                                                   .n_rounds = test_rounds(20000),
                                                   .random = { test_random_next(&random) } };
    assert_int_equal(kinf__thread_start(&closer, "closer", close_after_producers, producers, NULL),
                     0);
    while ((rc = kinf_deltafifo_pop(f->fifo, store_deltas, &store, KINF_FOREVER)) == 0)
        ;
    assert_int_equal(rc, KINF_ERR_STOPPED);
    pthread_join(closer, &failed);
    assert_null(failed);
    for (size_t i = 0; i < n_producers; i++) {
        assert_int_equal(producers[i].failures, 0);
        for (size_t k = 0; k < n_keys; k++) {
            assert_int_equal(version_of(store.objects[i][k]), producers[i].truth[k]);
            kinf_object_unref(store.objects[i][k]);
        }
    }
}

#define T(test)      cmocka_unit_test_setup_teardown(test, fifo_setup, fifo_teardown)
#define T_BOTH(test) T(test), FIFO_IN_ORDER_TEST(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_BOTH(pop_gives_up_when_its_time_is_over),
        T_BOTH(a_nudge_ends_one_wait),
        T_BOTH(a_nudge_wakes_a_blocked_pop),
        T(a_closed_queue_refuses_producers_and_drains),
        T(an_aborted_queue_drops_what_is_left),
        T_BOTH(what_a_consumer_drops_when_it_is_aborted_was_not_processed),
        T_BOTH(a_first_list_that_is_dropped_is_no_sync),
        T(an_abort_gives_up_the_list_that_is_being_queued),
        T_BOTH(a_list_that_comes_when_an_abort_has_begun_is_not_queued),
        T_BOTH(an_empty_list_that_comes_then_buries_nothing),
        T(an_abort_gives_up_a_resync),
        T_BOTH(what_succeeds_leaves_the_error_as_it_is),
        T_BOTH(the_queue_is_used_under_the_locks_below_it),
        T_BOTH(close_wakes_ten_blocked_pops),
        T_BOTH(a_full_queue_holds_back_a_producer_until_the_next_pop),
        T_BOTH(a_delta_wakes_at_once_unless_the_queue_is_corked),
        T_BOTH(a_corked_queue_wakes_for_64_items),
        T_BOTH(a_corked_queue_wakes_for_a_mib),
        T_BOTH(a_corked_queue_wakes_for_whom_a_producer_waits),
        T_BOTH(a_producer_that_waits_for_room_wakes_a_blocked_pop),
        T_BOTH(the_end_of_a_cork_wakes_a_blocked_pop),
        T_BOTH(close_wakes_a_blocked_producer),
        T_BOTH(abort_wakes_a_blocked_producer),
        T_BOTH(the_consumer_never_waits_for_itself),
        T(a_list_is_not_split_by_the_bound_and_resync_passes_it),
        T(bytes_are_those_of_the_queued_objects),
        T_BOTH(what_is_left_is_freed_with_the_queue),
        T(out_of_memory_changes_nothing),
        T(out_of_memory_makes_no_queue),
        T(the_check_fires_on_broken_items),
        T(the_check_fires_on_a_broken_queue),
        T(what_many_producers_queued_ends_in_the_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
