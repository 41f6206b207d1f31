/*
 * DeltaFIFO in order of arrival: upstream's promises one by one, batches, the exact
 * resourceVersion. What holds by key too is tested there, for both; limits and threads are in
 * test_deltafifo_in_order_limits.c, the model in test_deltafifo_in_order_model.c.
 */
#include "unit/deltafifo_fixture.h"

#include <stdio.h>
#include <string.h>

#include "unit/test.h"

/* --- upstream's promises --- */

static void a_deletion_and_the_list_behind_it_are_both_kept(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_delete(f, "foo", "10");
    fifo_replace(f, "11", "foo", "11", NULL);
    assert_string_equal(fifo_pop(f), "foo: Deleted@10");
    assert_string_equal(fifo_pop(f), "ReplacedAll@11 [foo@11]");
    assert_string_equal(fifo_pop(f), "");
}

static void a_list_makes_no_tombstones(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "foo", "1");
    fifo_add(f, "bar", "3");
    fifo_delete(f, "bar", "4");
    fifo_replace(f, "6", NULL);
    fifo_bookmark(f, "7");
    assert_string_equal(fifo_pop(f), "foo: Added@1; bar: Added@3");
    assert_string_equal(fifo_pop(f), "bar: Deleted@4");
    assert_string_equal(fifo_pop(f), "ReplacedAll@6 []");
    assert_string_equal(fifo_pop(f), "Bookmark@7");
    assert_string_equal(fifo_pop(f), "");
}

static void deltas_of_a_key_leave_one_by_one(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "foo", "10");
    fifo_update(f, "foo", "12");
    fifo_delete(f, "foo", "15");
    assert_int_equal(kinf_deltafifo_len(f->fifo), 3);
    assert_string_equal(fifo_pop(f), "foo: Added@10");
    assert_string_equal(fifo_pop(f), "foo: Updated@12");
    assert_string_equal(fifo_pop(f), "foo: Deleted@15");
    assert_string_equal(fifo_pop(f), "");
}

static void deletions_are_neither_filtered_nor_collapsed(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_delete(f, "unknown", "10");
    fifo_delete(f, "unknown", "10");
    fifo_add(f, "bar", "15");
    fifo_delete(f, "bar", "20");
    assert_string_equal(fifo_pop(f), "unknown: Deleted@10");
    assert_string_equal(fifo_pop(f), "unknown: Deleted@10; bar: Added@15");
    assert_string_equal(fifo_pop(f), "bar: Deleted@20");
    assert_string_equal(fifo_pop(f), "");
}

static void what_is_listed_does_not_join_what_is_pending(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "foo", "10");
    fifo_replace(f, "15", "foo", "15", NULL);
    assert_string_equal(fifo_pop(f), "foo: Added@10");
    assert_string_equal(fifo_pop(f), "ReplacedAll@15 [foo@15]");
    assert_string_equal(fifo_pop(f), "");
}

static void resync_is_one_delta_whatever_is_pending(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_resync(f);
    fifo_resync(f);
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "SyncAll initial");
    fifo_update(f, "foo", "6");
    fifo_resync(f);
    fifo_delete(f, "foo", "10");
    assert_string_equal(fifo_pop(f), "SyncAll");
    assert_string_equal(fifo_pop(f), "foo: Updated@6");
    assert_string_equal(fifo_pop(f), "SyncAll");
    assert_string_equal(fifo_pop(f), "foo: Deleted@10");
    assert_string_equal(fifo_pop(f), "");
}

static void nobody_jumps_the_line(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "foo", "10");
    fifo_add(f, "bar", "1");
    fifo_add(f, "foo", "11");
    fifo_add(f, "foo", "13");
    fifo_add(f, "zab", "30");
    assert_string_equal(fifo_pop(f), "foo: Added@10; bar: Added@1");
    assert_string_equal(fifo_pop(f), "foo: Added@11");
    fifo_add(f, "foo", "14");
    assert_string_equal(fifo_pop(f), "foo: Added@13; zab: Added@30");
    assert_string_equal(fifo_pop(f), "foo: Added@14");
}

static void only_what_changes_objects_synchronizes(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    fifo_bookmark(f, "7");
    fifo_resync(f);
    assert_string_equal(fifo_pop(f), "Bookmark@7 initial");
    assert_string_equal(fifo_pop(f), "SyncAll initial");
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    fifo_delete(f, "a", "8");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "a: Deleted@8");
}

static void has_synced_waits_for_the_whole_first_list(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_resync(f);
    fifo_bookmark(f, "1");
    fifo_replace(f, "3", "a", "1", "b", "2", "a", "2", NULL);
    fifo_add(f, "c", "4");
    assert_string_equal(fifo_pop(f), "SyncAll initial");
    assert_string_equal(fifo_pop(f), "Bookmark@1 initial");
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "ReplacedAll@3 [a@1 b@2 a@2] initial");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "c: Added@4");
    fifo_replace(f, "5", NULL);
    assert_true(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "ReplacedAll@5 []");
}

static void an_empty_first_list_counts_when_it_was_processed(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "1", NULL);
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "ReplacedAll@1 [] initial");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
}

static void replace_with_a(struct fifo_fixture *f)
{
    fifo_replace(f, "20", "a", "11", NULL);
}

static void the_first_list_does_not_count_what_was_in_process_before(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_resync(f);
    f->window = replace_with_a;
    assert_string_equal(fifo_pop(f), "SyncAll initial");
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "ReplacedAll@20 [a@11] initial");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
}

static void every_list_is_one_delta_at_its_place(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "foo", "9");
    fifo_replace(f, "10", "foo", "10", "bar", "8", NULL);
    fifo_bookmark(f, "11");
    fifo_replace(f, "12", "bar", "8", NULL);
    assert_int_equal(kinf_deltafifo_len(f->fifo), 4);
    assert_string_equal(fifo_pop(f), "foo: Added@9");
    assert_string_equal(fifo_pop(f), "ReplacedAll@10 [foo@10 bar@8]");
    assert_string_equal(fifo_pop(f), "Bookmark@11");
    assert_string_equal(fifo_pop(f), "ReplacedAll@12 [bar@8]");
    assert_string_equal(fifo_pop(f), "");
}

/* --- batches --- */

static void different_keys_leave_together_until_one_repeats(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "a", "1");
    fifo_update(f, "b", "2");
    fifo_delete(f, "c", "3");
    fifo_update(f, "b", "4");
    fifo_update(f, "a", "5");
    fifo_resync(f);
    fifo_update(f, "d", "6");
    assert_string_equal(fifo_pop(f), "a: Added@1; b: Updated@2; c: Deleted@3");
    assert_string_equal(fifo_pop(f), "b: Updated@4; a: Updated@5");
    assert_string_equal(fifo_pop(f), "SyncAll");
    assert_string_equal(fifo_pop(f), "d: Updated@6");
}

/* The hashes are forged, which the check would see. */
static void keys_of_one_hash_are_different_keys(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf__in_order *queue;

    fifo_open_bare(f);
    fifo_add(f, "a", "1");
    fifo_add(f, "b", "2");
    fifo_add(f, "c", "3");
    fifo_add(f, "b", "4");
    queue = &f->fifo->in_order;
    for (size_t i = 0; i < 3; i++)
        queue->ring[i].hash = queue->ring[3].hash;
    assert_string_equal(fifo_pop(f), "a: Added@1; b: Added@2; c: Added@3");
    assert_string_equal(fifo_pop(f), "b: Added@4");
}

/* Counts what leaves, and expects it in order: the n-th has n as its resourceVersion. */
struct counter {
    size_t n_deltas;
    size_t n_largest;
    size_t n_pops;
};

static int count(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct counter *counter = ctx;

    assert_false(in_initial_list);
    assert_null(deltas->key);
    for (size_t i = 0; i < deltas->n_items; i++) {
        const char *rv = kinf_object_resource_version(deltas->items[i].object);

        assert_int_equal(strtoul(rv, NULL, 10), ++counter->n_deltas);
    }
    if (deltas->n_items > counter->n_largest)
        counter->n_largest = deltas->n_items;
    counter->n_pops++;
    return 0;
}

static void add_numbered(struct kinf_deltafifo *fifo, size_t first, size_t last)
{
    for (size_t n = first; n <= last; n++) {
        const struct kinf_object *object;
        char name[24], rv[24];

        snprintf(name, sizeof name, "pod-%zu", n);
        snprintf(rv, sizeof rv, "%zu", n);
        object = fifo_object(name, rv);
        assert_int_equal(kinf_deltafifo_add(fifo, object, NULL), 0);
        kinf_object_unref(object);
    }
}

static void a_batch_has_a_limit_and_a_large_ring_is_given_back(void **state)
{
    struct fifo_fixture *f = *state;
    struct counter counter = { 0 };

    fifo_open_bare(f);
    add_numbered(f->fifo, 1, 2 * KINF_FIFO_BATCH_MAX + 1);
    assert_true(kinf__deltafifo_check(f->fifo));
    for (size_t n_pops = 1; n_pops <= 3; n_pops++) {
        assert_true(f->fifo->in_order.n_allocated > KINF__FIFO_N_RING_KEPT);
        assert_int_equal(kinf_deltafifo_pop(f->fifo, count, &counter, 0), 0);
        assert_int_equal(counter.n_pops, n_pops);
    }
    assert_int_equal(counter.n_deltas, 2 * KINF_FIFO_BATCH_MAX + 1);
    assert_int_equal(counter.n_largest, KINF_FIFO_BATCH_MAX);
    assert_int_equal(f->fifo->in_order.n_allocated, 0);
    add_numbered(f->fifo, counter.n_deltas + 1, counter.n_deltas + 1);
    assert_int_equal(kinf_deltafifo_pop(f->fifo, count, &counter, 0), 0);
}

static void the_ring_grows_while_it_is_wrapped(void **state)
{
    struct fifo_fixture *f = *state;
    struct counter counter = { 0 };

    fifo_open_bare(f);
    add_numbered(f->fifo, 1, 50);
    assert_int_equal(kinf_deltafifo_pop(f->fifo, count, &counter, 0), 0);
    add_numbered(f->fifo, 51, 110); /* around the end */
    assert_true(f->fifo->in_order.head + f->fifo->in_order.n_entries >
                f->fifo->in_order.n_allocated);
    add_numbered(f->fifo, 111, 300);
    assert_true(kinf__deltafifo_check(f->fifo));
    assert_int_equal(kinf_deltafifo_pop(f->fifo, count, &counter, 0), 0);
    assert_int_equal(counter.n_deltas, 300);
}

/* --- bookmarks and the resourceVersion that was processed --- */

static void bookmarks_in_a_row_are_one(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_bookmark(f, "5");
    fifo_bookmark(f, "1000");
    fifo_bookmark(f, "7");
    fifo_add(f, "a", "8");
    fifo_bookmark(f, "9");
    assert_int_equal(kinf_deltafifo_len(f->fifo), 3);
    assert_string_equal(fifo_pop(f), "Bookmark@7");
    assert_string_equal(fifo_pop(f), "a: Added@8");
    assert_string_equal(fifo_pop(f), "Bookmark@9");
}

static void bookmark_at_6(struct fifo_fixture *f)
{
    fifo_bookmark(f, "6");
}

static void a_bookmark_in_process_does_not_change(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_bookmark(f, "5");
    f->window = bookmark_at_6;
    assert_string_equal(fifo_pop(f), "Bookmark@5 initial");
    assert_string_equal(fifo_processed_rv(f), "5");
    assert_string_equal(fifo_pop(f), "Bookmark@6 initial");
    assert_string_equal(fifo_processed_rv(f), "6");
}

static void expect_rv_10(struct fifo_fixture *f)
{
    assert_string_equal(fifo_processed_rv(f), "10");
}

static void the_resource_version_is_exactly_what_was_processed(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "10", "a", "4", NULL);
    fifo_add(f, "b", "11");
    fifo_delete(f, "a", "12");
    fifo_update(f, "b", "13");
    fifo_resync(f);
    fifo_bookmark(f, "20");
    assert_string_equal(fifo_processed_rv(f), "");
    fifo_pop(f);
    f->window = expect_rv_10;
    assert_string_equal(fifo_pop(f), "b: Added@11; a: Deleted@12");
    assert_string_equal(fifo_processed_rv(f), "12");
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), "13");
    assert_string_equal(fifo_pop(f), "SyncAll");
    assert_string_equal(fifo_processed_rv(f), "13");
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), "20");
}

static void a_restored_server_takes_the_resource_version_back(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "a", "100");
    fifo_replace(f, "50", "b", "40", NULL);
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), "100");
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), "50");
}

static void a_resource_version_has_a_limit(void **state)
{
    struct fifo_fixture *f = *state;
    char too_long[65];

    memset(too_long, '1', 64);
    too_long[64] = '\0';
    fifo_open_bare(f);
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, too_long, NULL), KINF_ERR_LIMIT);
    assert_int_equal(kinf_deltafifo_replace(f->fifo, NULL, 0, too_long, NULL), KINF_ERR_LIMIT);
    assert_int_equal(kinf_deltafifo_len(f->fifo), 0);
    fifo_bookmark(f, too_long + 1);
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), too_long + 1);
    fifo_add(f, "a", "12");
    fifo_add(f, "b", too_long);
    fifo_add(f, "c", "");
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), "12");
    fifo_add(f, "a", "");
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), "12");
}

/* --- options --- */

static void what_is_for_the_keyed_order_is_refused(void **state)
{
    struct fifo_fixture *f = *state;
    struct kinf_deltafifo_options options = fifo_known_options(f);
    struct kinf_error err = KINF_ERROR_INIT;

    options.order = KINF_FIFO_IN_ORDER;
    assert_int_equal(kinf_deltafifo_new(&options, &f->fifo, &err), KINF_ERR_INVALID);
    assert_int_equal(err.code, KINF_ERR_INVALID);
    options = fifo_bare_options(f);
    options.replace_as_sync = true;
    assert_int_equal(kinf_deltafifo_new(&options, &f->fifo, NULL), KINF_ERR_INVALID);
    options = fifo_bare_options(f);
    options.order = (enum kinf_fifo_order)99;
    assert_int_equal(kinf_deltafifo_new(&options, &f->fifo, NULL), KINF_ERR_INVALID);
    assert_null(f->fifo);
}

#define T(test) cmocka_unit_test_setup_teardown(test, fifo_setup_in_order, fifo_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_deletion_and_the_list_behind_it_are_both_kept),
        T(a_list_makes_no_tombstones),
        T(deltas_of_a_key_leave_one_by_one),
        T(deletions_are_neither_filtered_nor_collapsed),
        T(what_is_listed_does_not_join_what_is_pending),
        T(resync_is_one_delta_whatever_is_pending),
        T(nobody_jumps_the_line),
        T(only_what_changes_objects_synchronizes),
        T(has_synced_waits_for_the_whole_first_list),
        T(an_empty_first_list_counts_when_it_was_processed),
        T(the_first_list_does_not_count_what_was_in_process_before),
        T(every_list_is_one_delta_at_its_place),
        T(different_keys_leave_together_until_one_repeats),
        T(keys_of_one_hash_are_different_keys),
        T(a_batch_has_a_limit_and_a_large_ring_is_given_back),
        T(the_ring_grows_while_it_is_wrapped),
        T(bookmarks_in_a_row_are_one),
        T(a_bookmark_in_process_does_not_change),
        T(the_resource_version_is_exactly_what_was_processed),
        T(a_restored_server_takes_the_resource_version_back),
        T(a_resource_version_has_a_limit),
        T(what_is_for_the_keyed_order_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
