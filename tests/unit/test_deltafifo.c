/*
 * DeltaFIFO by key: upstream's promises one by one, what the key in process changes, the
 * resourceVersion that was processed. Waiting, closing and failing is in test_deltafifo_limits.c,
 * the model in test_deltafifo_model.c, the other order in test_deltafifo_in_order.c.
 */
#include "unit/deltafifo_fixture.h"

#include <string.h>

#include "base/thread.h"

#include "unit/test.h"

/* --- upstream's promises --- */

struct producer {
    struct kinf_deltafifo *fifo;
    char first_letter;
    const struct kinf_object *objects[20];
};

static void *produce_in_order(void *ctx)
{
    struct producer *producer = ctx;

    for (size_t i = 0; i < KINF__ARRAY_LEN(producer->objects); i++) {
        char name[] = { producer->first_letter, (char)('a' + i), '\0' };

        producer->objects[i] = fifo_object(name, "1");
        if (kinf_deltafifo_add(producer->fifo, producer->objects[i], NULL) < 0)
            return producer;
    }
    return NULL;
}

static void two_producers_keep_their_order(void **state)
{
    struct fifo_fixture *f = *state;
    struct producer producers[2] = { { .first_letter = 'a' }, { .first_letter = 'b' } };
    pthread_t threads[2];
    char next[2] = { 'a', 'a' };

    fifo_open_bare(f);
    for (int i = 0; i < 2; i++) {
        producers[i].fifo = f->fifo;
        assert_int_equal(
            kinf__thread_start(&threads[i], "producer", produce_in_order, &producers[i], NULL), 0);
    }
    for (int i = 0; i < 40; i++) {
        assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, KINF_FOREVER), 0);
        assert_int_equal(f->popped[1], next[f->popped[0] - 'a']++);
    }
    for (int i = 0; i < 2; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
        for (size_t k = 0; k < 20; k++)
            kinf_object_unref(producers[i].objects[k]);
    }
}

static void a_pending_delete_stays_in_front_of_what_is_listed(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known_as_sync(f);
    fifo_know(f, "foo", "5");
    fifo_delete(f, "foo", "10");
    fifo_replace(f, "11", "foo", "11", NULL);
    assert_string_equal(fifo_pop(f), "foo: Deleted@10 Sync@11");
    assert_string_equal(fifo_pop(f), "");
}

static void bury_keys_only_in_queue(struct fifo_fixture *f)
{
    fifo_add(f, "foo", "1");
    fifo_update(f, "foo", "2");
    fifo_add(f, "bar", "3");
    fifo_delete(f, "bar", "4");
    fifo_add(f, "baz", "5");
    fifo_replace(f, "6", NULL);
    fifo_replace(f, "7", "baz", "7", NULL);
    assert_string_equal(fifo_pop(f), "foo: Added@1 Updated@2 Deleted*@2");
    assert_string_equal(fifo_pop(f), "bar: Added@3 Deleted@4");
    assert_string_equal(fifo_pop(f), "baz: Added@5 Deleted*@5 Replaced@7");
    assert_string_equal(fifo_pop(f), "");
}

static void replace_buries_keys_only_in_the_queue_once(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    bury_keys_only_in_queue(f);
}

static void replace_buries_keys_only_in_the_queue_beside_known_ones(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "foo", "0");
    bury_keys_only_in_queue(f);
}

static void deltas_of_a_key_leave_together(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "foo", "10");
    fifo_update(f, "foo", "12");
    fifo_delete(f, "foo", "15");
    assert_string_equal(fifo_pop(f), "foo: Added@10 Updated@12 Deleted@15");
    assert_string_equal(fifo_pop(f), "");
}

static void delete_of_an_unknown_key_is_ignored(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_delete(f, "foo", "10");
    assert_int_equal(kinf_deltafifo_len(f->fifo), 0);
    assert_true(kinf_deltafifo_has_synced(f->fifo));
    fifo_add(f, "bar", "15");
    assert_string_equal(fifo_pop(f), "bar: Added@15");
    assert_string_equal(fifo_pop(f), "");
}

static void delete_of_a_known_key_is_queued(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "foo", "5");
    fifo_add(f, "bar", "15");
    fifo_delete(f, "foo", "20");
    fifo_delete(f, "baz", "21");
    assert_string_equal(fifo_pop(f), "bar: Added@15");
    assert_string_equal(fifo_pop(f), "foo: Deleted@20");
    assert_string_equal(fifo_pop(f), "");
}

static void a_listed_key_joins_its_pending_deltas(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known_as_sync(f);
    fifo_add(f, "foo", "10");
    fifo_replace(f, "15", "foo", "15", NULL);
    assert_string_equal(fifo_pop(f), "foo: Added@10 Sync@15");
    assert_string_equal(fifo_pop(f), "");
}

static void resync_skips_a_key_with_a_pending_delete(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "foo", "5");
    fifo_delete(f, "foo", "10");
    fifo_resync(f);
    assert_string_equal(fifo_pop(f), "foo: Deleted@10");
    assert_string_equal(fifo_pop(f), "");
}

static void resync_skips_a_key_with_a_pending_update(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "foo", "5");
    fifo_update(f, "foo", "6");
    fifo_resync(f);
    assert_string_equal(fifo_pop(f), "foo: Updated@6");
    assert_string_equal(fifo_pop(f), "");
}

static void resync_queues_what_is_known(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "foo", "5");
    fifo_resync(f);
    fifo_resync(f);
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "foo: Sync@5 initial");
    assert_string_equal(fifo_pop(f), "");
}

static void resync_does_nothing_when_nothing_is_known(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_resync(f);
    assert_int_equal(kinf_deltafifo_len(f->fifo), 0);
}

static void add_and_delete_are_both_kept(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_add(f, "foo", "1");
    fifo_delete(f, "foo", "2");
    assert_string_equal(fifo_pop(f), "foo: Added@1 Deleted@2");
}

static void replace_buries_what_is_queued_or_known_and_not_listed(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "foo", "5");
    fifo_know(f, "bar", "6");
    fifo_know(f, "baz", "7");
    fifo_delete(f, "baz", "10");
    fifo_replace(f, "11", "foo", "5", NULL);
    assert_string_equal(fifo_pop(f), "baz: Deleted@10");
    assert_string_equal(fifo_pop(f), "foo: Replaced@5");
    assert_string_equal(fifo_pop(f), "bar: Deleted*@6");
    assert_string_equal(fifo_pop(f), "");
}

static void a_tombstone_has_the_newest_queued_object(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "foo", "5");
    fifo_know(f, "bar", "6");
    fifo_know(f, "baz", "7");
    fifo_add(f, "foo", "10");    /* listed before as another */
    fifo_delete(f, "bar", "11"); /* deleted, and added again */
    fifo_add(f, "bar", "12");
    fifo_add(f, "new", "13"); /* never known */
    fifo_resync(f);           /* baz: Sync */
    fifo_replace(f, "20", NULL);
    assert_string_equal(fifo_pop(f), "foo: Added@10 Deleted*@10");
    assert_string_equal(fifo_pop(f), "bar: Deleted@11 Added@12 Deleted*@12");
    assert_string_equal(fifo_pop(f), "new: Added@13 Deleted*@13");
    assert_string_equal(fifo_pop(f), "baz: Sync@7 Deleted*@7");
    assert_string_equal(fifo_pop(f), "");
}

static void replace_buries_without_known_objects(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "baz", "10");
    fifo_delete(f, "baz", "11");
    fifo_add(f, "bar", "12");
    fifo_replace(f, "13", "foo", "5", NULL);
    assert_string_equal(fifo_pop(f), "baz: Added@10 Deleted@11");
    assert_string_equal(fifo_pop(f), "bar: Added@12 Deleted*@12");
    assert_string_equal(fifo_pop(f), "foo: Replaced@5");
    assert_string_equal(fifo_pop(f), "");
}

static void the_option_selects_sync_for_what_is_listed(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known_as_sync(f);
    fifo_replace(f, "5", "foo", "5", NULL);
    assert_string_equal(fifo_pop(f), "foo: Sync@5 initial");
    fifo_reset(f);
    fifo_open_known(f);
    fifo_replace(f, "5", "foo", "5", NULL);
    assert_string_equal(fifo_pop(f), "foo: Replaced@5 initial");
}

static void tombstones_of_the_first_list_count_as_initial(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "foo", "5");
    fifo_know(f, "bar", "6");
    fifo_replace(f, "10", "bar", "6", NULL);
    assert_string_equal(fifo_pop(f), "bar: Replaced@6 initial");
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "foo: Deleted*@5 initial");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
}

static void updates_keep_their_place_and_a_new_arrival_goes_to_the_tail(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "foo", "10");
    fifo_add(f, "bar", "1");
    fifo_add(f, "foo", "11");
    fifo_add(f, "foo", "13");
    fifo_add(f, "zab", "30");
    assert_string_equal(fifo_pop(f), "foo: Added@10 Added@11 Added@13");
    fifo_add(f, "foo", "14");
    assert_string_equal(fifo_pop(f), "bar: Added@1");
    assert_string_equal(fifo_pop(f), "zab: Added@30");
    assert_string_equal(fifo_pop(f), "foo: Added@14");
}

static void has_synced_starts_false(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, "7", NULL), 0);
    assert_false(kinf_deltafifo_has_synced(f->fifo));
}

static void one_delta_or_an_empty_list_synchronizes(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "a", "1");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
    fifo_reset(f);
    fifo_open_bare(f);
    fifo_replace(f, "0", NULL);
    assert_true(kinf_deltafifo_has_synced(f->fifo));
}

static void has_synced_waits_for_every_key_of_the_first_list(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "0", "a", "1", "b", "2", NULL);
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    fifo_pop(f);
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    fifo_pop(f);
    assert_true(kinf_deltafifo_has_synced(f->fifo));
    fifo_replace(f, "3", "c", "3", NULL);
    assert_true(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "c: Replaced@3");
}

static void a_key_listed_twice_keeps_both_and_counts_once(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "0", "a", "1", "a", "2", "a", "3", NULL);
    assert_string_equal(fifo_pop(f), "a: Replaced@1 Replaced@2 Replaced@3 initial");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
}

static void only_the_last_two_deletes_collapse(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "a", "1");
    fifo_delete(f, "a", "2");
    fifo_delete(f, "a", "3"); /* the first that was seen stays */
    fifo_add(f, "a", "4");
    fifo_replace(f, "5", NULL); /* a tombstone... */
    fifo_delete(f, "a", "6");   /* ...gives way to what was seen */
    assert_string_equal(fifo_pop(f), "a: Added@1 Deleted@2 Added@4 Deleted@6");
}

static void first_list_beside_an_earlier_resync_counts_each_key(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "a", "1");
    fifo_know(f, "b", "2");
    fifo_resync(f);
    fifo_replace(f, "3", "b", "3", "c", "3", NULL);
    assert_string_equal(fifo_pop(f), "a: Sync@1 Deleted*@1 initial");
    assert_string_equal(fifo_pop(f), "b: Sync@2 Replaced@3 initial");
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "c: Replaced@3 initial");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
}

/* --- the key in process --- */

static void expect_not_synced(struct fifo_fixture *f)
{
    assert_false(kinf_deltafifo_has_synced(f->fifo));
}

static void has_synced_waits_until_the_last_item_was_processed(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "1", "a", "1", NULL);
    f->window = expect_not_synced;
    fifo_pop(f);
    assert_true(kinf_deltafifo_has_synced(f->fifo));
}

static void replace_with_nothing(struct fifo_fixture *f)
{
    fifo_replace(f, "20", NULL);
}

static void replace_with_a(struct fifo_fixture *f)
{
    fifo_replace(f, "20", "a", "11", NULL);
}

static void replace_buries_the_key_in_process(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "a", "1");
    fifo_update(f, "a", "10");
    f->window = replace_with_nothing;
    assert_string_equal(fifo_pop(f), "a: Updated@10");
    assert_string_equal(fifo_pop(f), "a: Deleted*@10"); /* not @1, which is still in the store */
    assert_string_equal(fifo_pop(f), "");
}

static void replace_does_not_bury_what_the_consumer_is_deleting(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "a", "1");
    fifo_delete(f, "a", "10");
    f->window = replace_with_nothing;
    assert_string_equal(fifo_pop(f), "a: Deleted@10");
    assert_string_equal(fifo_pop(f), "");
}

static void replace_requeues_a_listed_key_in_process(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_update(f, "a", "10");
    f->window = replace_with_a;
    assert_string_equal(fifo_pop(f), "a: Updated@10");
    assert_string_equal(fifo_pop(f), "a: Replaced@11");
    assert_string_equal(fifo_pop(f), "");
}

static void update_a_then_replace_with_nothing(struct fifo_fixture *f)
{
    fifo_update(f, "a", "15");
    fifo_replace(f, "20", NULL);
}

static void replace_buries_a_key_once_that_is_in_process_and_queued(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_update(f, "a", "10");
    f->window = update_a_then_replace_with_nothing;
    assert_string_equal(fifo_pop(f), "a: Updated@10");
    assert_string_equal(fifo_pop(f), "a: Updated@15 Deleted*@15");
    assert_string_equal(fifo_pop(f), "");
}

static void resync_skips_the_key_in_process(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "a", "1");
    fifo_know(f, "b", "2");
    fifo_update(f, "a", "10");
    f->window = fifo_resync;
    assert_string_equal(fifo_pop(f), "a: Updated@10");
    assert_string_equal(fifo_pop(f), "b: Sync@2");
    assert_string_equal(fifo_pop(f), "");
}

static void delete_a(struct fifo_fixture *f)
{
    fifo_delete(f, "a", "11");
}

static void delete_of_the_key_in_process_is_queued(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "a", "10");
    f->window = delete_a;
    assert_string_equal(fifo_pop(f), "a: Added@10");
    assert_string_equal(fifo_pop(f), "a: Deleted@11");
}

static void the_first_list_does_not_count_what_was_in_process_before(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_know(f, "a", "1");
    fifo_resync(f);
    f->window = replace_with_a;
    assert_string_equal(fifo_pop(f), "a: Sync@1 initial");
    assert_false(kinf_deltafifo_has_synced(f->fifo));
    assert_string_equal(fifo_pop(f), "a: Replaced@11 initial");
    assert_true(kinf_deltafifo_has_synced(f->fifo));
}

static void pop_again(struct fifo_fixture *f)
{
    fifo_add(f, "b", "2");
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, KINF_FOREVER), KINF_ERR_STATE);
}

static void pop_from_its_own_callback_is_refused(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_add(f, "a", "1");
    f->window = pop_again;
    assert_string_equal(fifo_pop(f), "a: Added@1");
    assert_string_equal(fifo_pop(f), "b: Added@2");
}

static void pop_returns_what_its_callback_returned(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "1", "a", "1", NULL);
    f->process_result = KINF_ERR_NO_MEMORY;
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, 0), KINF_ERR_NO_MEMORY);
    assert_true(kinf_deltafifo_has_synced(f->fifo));
    assert_int_equal(kinf_deltafifo_pop(f->fifo, fifo_process, f, 0), KINF_ERR_TIMEOUT);
}

/* --- the resourceVersion that was processed --- */

static void expect_rv_10(struct fifo_fixture *f)
{
    assert_string_equal(fifo_processed_rv(f), "10");
    fifo_update(f, "b", "13");
    assert_string_equal(fifo_processed_rv(f), "10");
}

static void the_resource_version_is_what_preceded_the_oldest_item(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    assert_string_equal(fifo_processed_rv(f), "");
    fifo_replace(f, "10", NULL);
    assert_string_equal(fifo_processed_rv(f), "10");
    fifo_add(f, "a", "11");
    fifo_add(f, "b", "12");
    assert_string_equal(fifo_processed_rv(f), "10");
    f->window = expect_rv_10;
    assert_string_equal(fifo_pop(f), "a: Added@11");
    assert_string_equal(fifo_processed_rv(f), "11");
    assert_string_equal(fifo_pop(f), "b: Added@12 Updated@13");
    assert_string_equal(fifo_processed_rv(f), "13");
    fifo_delete(f, "unknown", "14");
    assert_string_equal(fifo_processed_rv(f), "14");
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, "15", NULL), 0);
    assert_string_equal(fifo_processed_rv(f), "15");
}

static void the_first_list_counts_only_when_all_of_it_was_processed(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_bare(f);
    fifo_replace(f, "10", "a", "1", "b", "2", NULL);
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), "");
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), "10");
}

static void replace_with_a_lower_version(struct fifo_fixture *f)
{
    fifo_replace(f, "50", "b", "40", NULL);
    assert_string_equal(fifo_processed_rv(f), "");
}

static void a_restored_server_starts_the_resource_version_anew(void **state)
{
    struct fifo_fixture *f = *state;

    fifo_open_known(f);
    fifo_add(f, "a", "100");
    fifo_add(f, "b", "101");
    f->window = replace_with_a_lower_version;
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), "");
    assert_string_equal(fifo_pop(f), "b: Added@101 Replaced@40");
    assert_string_equal(fifo_pop(f), "a: Deleted*@100");
    assert_string_equal(fifo_processed_rv(f), "50");
}

static void a_resource_version_has_a_limit(void **state)
{
    struct fifo_fixture *f = *state;
    char too_long[65], buf[2];

    memset(too_long, '1', 64);
    too_long[64] = '\0';
    fifo_open_bare(f);
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, too_long, NULL), KINF_ERR_LIMIT);
    assert_int_equal(kinf_deltafifo_replace(f->fifo, NULL, 0, too_long, NULL), KINF_ERR_LIMIT);
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, too_long + 1, NULL), 0);
    assert_string_equal(fifo_processed_rv(f), too_long + 1);
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, "12", NULL), 0);
    fifo_add(f, "a", too_long);
    fifo_add(f, "b", "");
    fifo_pop(f);
    fifo_pop(f);
    assert_string_equal(fifo_processed_rv(f), "12");
    assert_int_equal(kinf_deltafifo_resource_version(f->fifo, buf, sizeof buf), KINF_ERR_LIMIT);
}

static void every_delta_type_and_order_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(kinf_delta_type_to_string(KINF_DELTA_ADDED), "Added");
    assert_string_equal(kinf_delta_type_to_string(KINF_DELTA_SYNC), "Sync");
    assert_string_equal(kinf_delta_type_to_string(KINF_DELTA_BOOKMARK), "Bookmark");
    assert_string_equal(kinf_delta_type_to_string((enum kinf_delta_type)99), "Unknown");
    assert_string_equal(kinf_fifo_order_to_string(KINF_FIFO_KEYED), "keyed");
    assert_string_equal(kinf_fifo_order_to_string(KINF_FIFO_IN_ORDER), "in order");
    assert_string_equal(kinf_fifo_order_to_string((enum kinf_fifo_order)99), "unknown");
}

#define T(test)      cmocka_unit_test_setup_teardown(test, fifo_setup, fifo_teardown)
#define T_BOTH(test) T(test), FIFO_IN_ORDER_TEST(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(two_producers_keep_their_order),
        T(a_pending_delete_stays_in_front_of_what_is_listed),
        T(replace_buries_keys_only_in_the_queue_once),
        T(replace_buries_keys_only_in_the_queue_beside_known_ones),
        T(deltas_of_a_key_leave_together),
        T(delete_of_an_unknown_key_is_ignored),
        T(delete_of_a_known_key_is_queued),
        T(a_listed_key_joins_its_pending_deltas),
        T(resync_skips_a_key_with_a_pending_delete),
        T(resync_skips_a_key_with_a_pending_update),
        T(resync_queues_what_is_known),
        T(resync_does_nothing_when_nothing_is_known),
        T(add_and_delete_are_both_kept),
        T(replace_buries_what_is_queued_or_known_and_not_listed),
        T(a_tombstone_has_the_newest_queued_object),
        T(replace_buries_without_known_objects),
        T(the_option_selects_sync_for_what_is_listed),
        T(tombstones_of_the_first_list_count_as_initial),
        T(updates_keep_their_place_and_a_new_arrival_goes_to_the_tail),
        T(has_synced_starts_false),
        T(one_delta_or_an_empty_list_synchronizes),
        T(has_synced_waits_for_every_key_of_the_first_list),
        T(a_key_listed_twice_keeps_both_and_counts_once),
        T(only_the_last_two_deletes_collapse),
        T(first_list_beside_an_earlier_resync_counts_each_key),
        T_BOTH(has_synced_waits_until_the_last_item_was_processed),
        T(replace_buries_the_key_in_process),
        T(replace_does_not_bury_what_the_consumer_is_deleting),
        T(replace_requeues_a_listed_key_in_process),
        T(replace_buries_a_key_once_that_is_in_process_and_queued),
        T(resync_skips_the_key_in_process),
        T(delete_of_the_key_in_process_is_queued),
        T(the_first_list_does_not_count_what_was_in_process_before),
        T_BOTH(pop_from_its_own_callback_is_refused),
        T_BOTH(pop_returns_what_its_callback_returned),
        T(the_resource_version_is_what_preceded_the_oldest_item),
        T(the_first_list_counts_only_when_all_of_it_was_processed),
        T(a_restored_server_starts_the_resource_version_anew),
        T(a_resource_version_has_a_limit),
        T(every_delta_type_and_order_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
