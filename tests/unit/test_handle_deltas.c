/*
 * HandleDeltas with a queue in order: batches, whole lists, resyncs, bookmarks; and what both
 * orders have in common. Where the deltas do not come from the queue they are handled by the test's
 * thread, with an informer that was not started. G1 to G11 are the guarantees of
 * kinformer/informer.h.
 */
#include "unit/informer_fixture.h"

#include <stdio.h>
#include <string.h>

#include "indexer/indexer.h"

#include "unit/allocation.h"
#include "unit/test.h"

#define MANY 2500 /* some slices of a distribution */

/* --- aids --- */

/* An informer whose handlers run, while the test is its processor thread. */
static void make_by_hand(struct informer_fixture *f, const struct kinf_informer_options *options)
{
    informer_make(f, options);
    assert_int_equal(kinf__handlers_start(&f->informer->handlers, NULL), 0);
}

static int try_deltas(struct informer_fixture *f, const struct kinf_delta *deltas, size_t n_deltas)
{
    const struct kinf_deltas together = { NULL, deltas, n_deltas };

    return kinf__handle_deltas(&f->informer->target, &together, false, &f->informer->batch);
}

static void end_deltas(struct informer_fixture *f)
{
    kinf__batch_clear(&f->informer->batch);
    kinf__processor_wake(&f->informer->processor);
}

static void handle(struct informer_fixture *f, const struct kinf_delta *deltas, size_t n_deltas)
{
    assert_int_equal(try_deltas(f, deltas, n_deltas), 0);
    end_deltas(f);
}

static void handle_one(struct informer_fixture *f, enum kinf_delta_type type,
                       const struct kinf_object *take_object)
{
    const struct kinf_delta delta = { .type = type, .object = take_object };

    handle(f, &delta, 1);
    kinf_object_unref(take_object);
}

static void handle_list(struct informer_fixture *f, const char *rv,
                        const struct kinf_object **take_objects, size_t n_objects)
{
    const struct kinf_delta delta = { .type = KINF_DELTA_REPLACED_ALL,
                                      .objects = take_objects,
                                      .n_objects = n_objects,
                                      .resource_version = rv };

    handle(f, &delta, 1);
    for (size_t i = 0; i < n_objects; i++)
        kinf_object_unref(take_objects[i]);
}

/* Borrowed: the store's reference is enough here. */
static const struct kinf_object *stored(struct informer_fixture *f, const char *key)
{
    const struct kinf_object *object = NULL;

    if (kinf_indexer_get_by_key(f->informer->indexer, key, &object) < 0)
        return NULL;
    kinf_object_unref(object);
    return object;
}

static void expect_version(struct informer_fixture *f, const char *expected)
{
    char rv[64];

    assert_int_equal(kinf_informer_resource_version(f->informer, rv, sizeof rv), 0);
    assert_string_equal(rv, expected);
}

/* The lines about one object, in their order. */
static void expect_of(struct recorder *recorder, const char *name, const char *expected)
{
    char pattern[32], lines[256] = "";
    size_t len = 0;

    snprintf(pattern, sizeof pattern, " %s@", name);
    pthread_mutex_lock(&recorder->mutex);
    for (size_t i = 0; i < recorder->n_lines; i++) {
        if (strstr(recorder->lines[i], pattern) != NULL && len < sizeof lines)
            len += (size_t)snprintf(lines + len, sizeof lines - len, "%s%s", len != 0 ? ", " : "",
                                    recorder->lines[i]);
    }
    pthread_mutex_unlock(&recorder->mutex);
    assert_string_equal(lines, expected);
}

/* --- batches --- */

/* The whole batch is in the store, and perhaps what came behind it. */
static void look_into_store(struct recorder *recorder, const char *line)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf_indexer_snapshot(kinf_informer_indexer(recorder->informer));
    int order = -1;

    if (strcmp(line, "add x@1") != 0 ||
        kinf_rv_compare(kinf_snapshot_resource_version(snapshot), "3", &order, NULL) < 0)
        return;
    recorder_set_result(recorder, kinf_snapshot_count(snapshot) == 2 && order >= 0);
}

/* Mirrors TestProcessDeltasInBatch. G2 */
static void batch_is_one_change_of_the_store_told_in_its_order(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];

    informer_make(f, NULL);
    a->react = look_into_store;
    informer_add(f, a);
    feed_add(f, "x", "1");
    feed_add(f, "y", "2");
    feed_delete(f, "z", "3");
    informer_start(f);
    feed_update(f, "y", "4");
    recorder_expect(a, "synced", "add x@1", "add y@2", "update y@2 y@4");
    assert_int_equal(recorder_result(a), true);
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "4", 60000, NULL), 0);
    expect_version(f, "4");
}

/* G1, G4 */
static void states_of_one_key_are_all_told(void **state)
{
    struct informer_fixture *f = *state;

    informer_make(f, NULL);
    informer_add(f, &f->recorders[0]);
    feed_replace(f, "1", NULL);
    feed_add(f, "x", "2");
    feed_update(f, "x", "3");
    feed_delete(f, "x", "4");
    feed_object(f, KINF_DELTA_ADDED, make_thing_of("x", "other", "5", ""));
    feed_object(f, KINF_DELTA_ADDED, make_thing_of("x", "third", "6", ""));
    informer_start(f);
    recorder_expect(&f->recorders[0], "synced", "add x@2", "update x@2 x@3", "delete x@4",
                    "add x@5", "delete* x@5", "add x@6");
}

static void object_that_cannot_be_stored_does_not_hold_up_its_batch(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_object *objects[] = { make_thing("x", "1"), NULL, make_thing("z", "3") };
    struct kinf_delta deltas[KINF__ARRAY_LEN(objects)];
    char long_rv[65];

    memset(long_rv, '9', sizeof long_rv);
    long_rv[sizeof long_rv - 1] = '\0';
    objects[1] = make_thing("y", long_rv);
    for (size_t i = 0; i < KINF__ARRAY_LEN(deltas); i++)
        deltas[i] = (struct kinf_delta){ .type = KINF_DELTA_ADDED, .object = objects[i] };
    make_by_hand(f, NULL);
    informer_add(f, &f->recorders[0]);
    handle(f, deltas, KINF__ARRAY_LEN(deltas));
    recorder_expect(&f->recorders[0], "add x@1", "add z@3");
    assert_null(stored(f, "ns/y"));
    for (size_t i = 0; i < KINF__ARRAY_LEN(objects); i++)
        kinf_object_unref(objects[i]);
}

/* --- lists --- */

/* Mirrors TestReplaceEvents. G3, G4, G5 */
static void list_is_told_as_its_difference_to_the_store(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];

    informer_make(f, NULL);
    a->is_checking_store = true;
    informer_add(f, a);
    informer_start(f);
    feed_replace(f, "4", "gone", "1", "same", "2", "changed", "3", "recreated", "4");
    recorder_expect(a, "add! gone@1", "add! same@2", "add! changed@3", "add! recreated@4",
                    "synced");
    feed_delete(f, "recreated", "5");
    feed_object(f, KINF_DELTA_ADDED, make_thing_of("recreated", "first", "6", ""));
    recorder_wait(a, 7);
    feed_replace(f, "9", "same", "2", "changed", "7", "recreated", "8", "new", "9");
    recorder_wait(a, 12);
    expect_of(a, "gone", "add! gone@1, delete* gone@1");
    expect_of(a, "same", "add! same@2");
    expect_of(a, "changed", "add! changed@3, update changed@3 changed@7");
    expect_of(a, "recreated",
              "add! recreated@4, delete recreated@5, add recreated@6, delete* recreated@6, "
              "add recreated@8");
    expect_of(a, "new", "add new@9");
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "9", 60000, NULL), 0);
    expect_version(f, "9");
}

/* What is gone comes first, the rest as it was listed. */
static void list_is_told_in_its_order(void **state)
{
    struct informer_fixture *f = *state;

    make_by_hand(f, NULL);
    handle_one(f, KINF_DELTA_ADDED, make_thing("b", "1"));
    handle_one(f, KINF_DELTA_ADDED, make_thing("d", "2"));
    informer_add(f, &f->recorders[0]);
    handle_list(f, "9",
                (const struct kinf_object *[]){ make_thing("z", "3"), make_thing("b", "5"),
                                                make_thing("a", "4") },
                3);
    recorder_expect(&f->recorders[0], "add! b@1", "add! d@2", "delete* d@2", "add z@3",
                    "update b@1 b@5", "add a@4");
}

static void last_of_two_in_a_list_counts(void **state)
{
    struct informer_fixture *f = *state;

    make_by_hand(f, NULL);
    informer_add(f, &f->recorders[0]);
    handle_list(f, "9",
                (const struct kinf_object *[]){ make_thing("x", "3"), make_thing("y", "1"),
                                                make_thing("x", "2"), make_thing("x", "5") },
                4);
    recorder_expect(&f->recorders[0], "add y@1", "add x@5");
    assert_string_equal(kinf_object_resource_version(stored(f, "ns/x")), "5");
}

/* G3: a relist of what is there costs no second copy of anything. */
static void unchanged_objects_keep_their_stored_copies(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_object *x, *y;

    make_by_hand(f, NULL);
    informer_add(f, &f->recorders[0]);
    informer_add_resynced(f, &f->recorders[1], 5000);
    handle_one(f, KINF_DELTA_ADDED, make_thing("x", "1"));
    handle_one(f, KINF_DELTA_ADDED, make_thing("y", "2"));
    x = stored(f, "ns/x");
    y = stored(f, "ns/y");
    handle_list(f, "7", (const struct kinf_object *[]){ make_thing("x", "1"), kinf_object_ref(y) },
                2);
    assert_true(kinf__processor_should_resync(&f->informer->processor, KINF_FOREVER - 1, true));
    handle_list(f, "8",
                (const struct kinf_object *[]){ make_thing("x", "1"), make_thing("y", "2") }, 2);
    assert_ptr_equal(stored(f, "ns/x"), x);
    assert_ptr_equal(stored(f, "ns/y"), y);
    assert_int_equal(kinf__object_count() - f->n_objects_before, 2);
    expect_version(f, "8");
    handle_one(f, KINF_DELTA_DELETED, make_thing("x", "9"));
    recorder_expect(&f->recorders[0], "add x@1", "add y@2", "delete x@9");
    recorder_expect(&f->recorders[1], "add x@1", "add y@2", "update x@1 x@1", "update y@2 y@2",
                    "delete x@9");
}

/* Above the slices of a distribution, nothing is lost between them. */
static void large_list_is_told_whole(void **state)
{
    struct informer_fixture *f = *state;

    informer_make(f, NULL);
    informer_add(f, &f->recorders[0]);
    informer_start(f);
    feed_many(f, MANY);
    recorder_wait_for(&f->recorders[0], "synced");
    assert_int_equal(recorder_count(&f->recorders[0], "add! "), MANY);
    feed_replace(f, "7", "o7", "1");
    recorder_wait(&f->recorders[0], MANY + 1 + MANY - 1);
    assert_int_equal(recorder_count(&f->recorders[0], "delete* "), MANY - 1);
}

/* --- resync, bookmark, version --- */

static void resync_tells_syncing_handlers_all_that_is_stored(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_delta resync = { .type = KINF_DELTA_SYNC_ALL };

    make_by_hand(f, NULL);
    handle_one(f, KINF_DELTA_ADDED, make_thing("x", "1"));
    handle_one(f, KINF_DELTA_ADDED, make_thing("y", "2"));
    informer_add(f, &f->recorders[0]);
    informer_add_resynced(f, &f->recorders[1], 5000);
    handle(f, &resync, 1);
    assert_true(kinf__processor_should_resync(&f->informer->processor, KINF_FOREVER - 1, true));
    handle(f, &resync, 1);
    handle_one(f, KINF_DELTA_ADDED, make_thing("z", "3"));
    recorder_expect(&f->recorders[0], "add! x@1", "add! y@2", "add z@3");
    recorder_expect(&f->recorders[1], "add! x@1", "add! y@2", "update x@1 x@1", "update y@2 y@2",
                    "add z@3");
    expect_version(f, "3");
}

/* Mirrors TestStoreResourceVersion. */
static void version_of_the_store_is_that_of_the_last_delta(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_delta bookmark = { .type = KINF_DELTA_BOOKMARK, .resource_version = "20" };

    make_by_hand(f, NULL);
    expect_version(f, "");
    handle_list(f, "10", (const struct kinf_object *[]){ make_thing("x", "3") }, 1);
    expect_version(f, "10");
    handle_one(f, KINF_DELTA_ADDED, make_thing("y", "12"));
    expect_version(f, "12");
    handle_one(f, KINF_DELTA_UPDATED, make_thing("x", "13"));
    expect_version(f, "13");
    handle_one(f, KINF_DELTA_DELETED, make_thing("y", "14"));
    expect_version(f, "14");
    handle_one(f, KINF_DELTA_DELETED, make_thing("never-seen", "15"));
    expect_version(f, "15");
    handle(f, &bookmark, 1);
    expect_version(f, "20");
    handle_one(f, KINF_DELTA_UPDATED, make_thing("x", "13")); /* unchanged */
    expect_version(f, "13");
    handle_list(f, "7", NULL, 0); /* a restored server */
    expect_version(f, "7");
}

/* That of the object before it says nothing. */
static void what_is_left_out_does_not_set_the_version_back(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_delta bookmark = { .type = KINF_DELTA_BOOKMARK, .resource_version = "20" };
    char version[100];

    memset(version, '9', sizeof version - 1);
    version[sizeof version - 1] = '\0';
    make_by_hand(f, NULL);
    handle_one(f, KINF_DELTA_ADDED, make_thing("x", "3"));
    handle(f, &bookmark, 1);
    handle_one(f, KINF_DELTA_UPDATED, make_thing("x", version));
    expect_version(f, "20");
}

/* --- transform --- */

static int count_transforms(const struct kinf_object *object, const struct kinf_object **ret_object,
                            void *ctx)
{
    size_t *n_calls = ctx;

    ++*n_calls;
    *ret_object = make_thing_of(kinf_object_name(object), kinf_object_uid(object),
                                kinf_object_resource_version(object), "transformed");
    return 0;
}

/* Mirrors TestTransformingInformerRace. */
static void each_new_object_of_a_list_is_transformed_once(void **state)
{
    struct informer_fixture *f = *state;
    size_t n_calls = 0;
    const struct kinf_informer_options options = { .size = sizeof options,
                                                   .transform = count_transforms,
                                                   .transform_ctx = &n_calls };
    const struct kinf_object *x;

    make_by_hand(f, &options);
    handle_one(f, KINF_DELTA_ADDED, make_thing("x", "1"));
    x = stored(f, "ns/x");
    handle_list(f, "9",
                (const struct kinf_object *[]){ kinf_object_ref(x), make_thing("y", "2"),
                                                make_thing("z", "3"), make_thing("z", "4") },
                4);
    assert_int_equal(n_calls, 3);
    handle_list(f, "10", (const struct kinf_object *[]){ make_thing("x", "1") }, 1);
    assert_int_equal(n_calls, 4);
    assert_ptr_equal(stored(f, "ns/x"), x); /* the same after the transform */
}

static int add_index_once(const struct kinf_object *object, const struct kinf_object **ret_object,
                          void *ctx)
{
    const struct kinf_index late = { .name = "late", .path = "text" };
    struct informer_fixture *f = ctx;
    int rc = kinf_indexer_add_indices(f->informer->indexer, &late, 1, NULL);

    assert_true(rc == 0 || rc == KINF_ERR_EXISTS);
    *ret_object = kinf_object_ref(object);
    return 0;
}

/* What the list was compared with knows nothing of the index. */
static void index_that_comes_amidst_a_list_has_all_of_it(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_index early = { .name = "early", .path = "text" };
    const struct kinf_informer_options options = { .size = sizeof options,
                                                   .transform = add_index_once,
                                                   .transform_ctx = f,
                                                   .indices = &early,
                                                   .n_indices = 1 };
    kinf_auto_object_list struct kinf_object_list found = KINF_OBJECT_LIST_INIT;
    const struct kinf_object *x = make_thing_of("x", "x", "1", "a");

    make_by_hand(f, &options);
    assert_int_equal(kinf_indexer_add(f->informer->indexer, x, NULL, NULL), 0);
    handle_list(f, "9", (const struct kinf_object *[]){ x, make_thing_of("y", "y", "2", "a") }, 2);
    assert_null(kinf__indexer_check(f->informer->indexer));
    assert_int_equal(kinf_indexer_by_index(f->informer->indexer, "late", "a", &found, NULL), 0);
    assert_int_equal(found.n_items, 2);
    assert_ptr_equal(stored(f, "ns/x"), x);
}

/* --- no memory --- */

#define N_ALLOCATIONS_MAX 500

/* Each allocation of these deltas fails once. Until the last try the store stays as it was; no try
 * transforms anything again. Returns how many failed. */
static size_t starve(struct informer_fixture *f, const struct kinf_delta *deltas, size_t n_deltas)
{
    kinf_auto_snapshot struct kinf_snapshot *before = kinf_indexer_snapshot(f->informer->indexer);
    size_t n = 1;
    int rc = KINF_ERR_NO_MEMORY;

    for (; rc != 0; n++) {
        kinf_auto_snapshot struct kinf_snapshot *after = NULL;

        assert_in_range(n, 1, N_ALLOCATIONS_MAX);
        test_fail_allocation(n);
        rc = try_deltas(f, deltas, n_deltas);
        assert_int_equal(rc, test_allocation_failed() ? KINF_ERR_NO_MEMORY : 0);
        after = kinf_indexer_snapshot(f->informer->indexer);
        assert_true(rc == 0 || strcmp(kinf_snapshot_resource_version(before),
                                      kinf_snapshot_resource_version(after)) == 0);
        assert_null(kinf__indexer_check(f->informer->indexer));
        assert_true(kinf__processor_check(&f->informer->processor));
    }
    end_deltas(f);
    return n - 2;
}

/* Allocates nothing, so that the allocations that fail are the library's. */
static int note_transform(const struct kinf_object *object, const struct kinf_object **ret_object,
                          void *ctx)
{
    size_t *n_calls = ctx;

    ++*n_calls;
    *ret_object = kinf_object_ref(object);
    return 0;
}

/* G3, G11 */
static void deltas_without_memory_change_nothing_and_may_be_repeated(void **state)
{
    struct informer_fixture *f = *state;
    size_t n_calls = 0, n_failed = 0;
    const struct kinf_index index = { .name = "text", .path = "text" };
    const struct kinf_informer_options options = { .size = sizeof options,
                                                   .transform = note_transform,
                                                   .transform_ctx = &n_calls,
                                                   .indices = &index,
                                                   .n_indices = 1 };
    const struct kinf_object *objects[] = { make_thing("v", "1"), make_thing("w", "2"),
                                            make_thing("x", "3"), make_thing("w", "4"),
                                            make_thing("y", "5"), make_thing("x", "6") };
    const struct kinf_delta added[] = { { .type = KINF_DELTA_ADDED, .object = objects[0] },
                                        { .type = KINF_DELTA_ADDED, .object = objects[1] },
                                        { .type = KINF_DELTA_ADDED, .object = objects[2] } };
    const struct kinf_delta list = { .type = KINF_DELTA_REPLACED_ALL,
                                     .objects = &objects[2],
                                     .n_objects = 3,
                                     .resource_version = "5" };
    const struct kinf_delta resync = { .type = KINF_DELTA_SYNC_ALL };
    const struct kinf_delta bookmark = { .type = KINF_DELTA_BOOKMARK, .resource_version = "8" };
    const struct kinf_delta deleted = { .type = KINF_DELTA_DELETED, .object = objects[5] };
    const struct kinf_handler merging = { .backlog = KINF_BACKLOG_COALESCE };
    kinf_handler_id id;

    make_by_hand(f, &options);
    assert_int_equal(kinf_informer_add_handler(f->informer, &merging, &id, NULL), 0);
    informer_add(f, &f->recorders[0]);
    informer_add_resynced(f, &f->recorders[1], 5000);
    assert_true(kinf__processor_should_resync(&f->informer->processor, KINF_FOREVER - 1, true));
    n_failed += starve(f, added, KINF__ARRAY_LEN(added));
    assert_int_equal(n_calls, 3);
    n_failed += starve(f, &list, 1);
    assert_int_equal(n_calls, 5); /* x was the stored object */
    n_failed += starve(f, &resync, 1);
    n_failed += starve(f, &bookmark, 1);
    expect_version(f, "8");
    n_failed += starve(f, &deleted, 1);
    assert_int_equal(n_calls, 6);
    assert_true(n_failed > 20);
    recorder_expect(&f->recorders[0], "add v@1", "add w@2", "add x@3", "delete* v@1",
                    "update w@2 w@4", "add y@5", "delete x@6");
    recorder_expect(&f->recorders[1], "add v@1", "add w@2", "add x@3", "delete* v@1",
                    "update w@2 w@4", "add y@5", "update x@3 x@3", "update w@4 w@4",
                    "update x@3 x@3", "update y@5 y@5", "delete x@6");
    for (size_t i = 0; i < KINF__ARRAY_LEN(objects); i++)
        kinf_object_unref(objects[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        INFORMER_TEST_IN_ORDER(batch_is_one_change_of_the_store_told_in_its_order),
        INFORMER_TEST_BOTH(states_of_one_key_are_all_told),
        INFORMER_TEST_IN_ORDER(object_that_cannot_be_stored_does_not_hold_up_its_batch),
        INFORMER_TEST_BOTH(list_is_told_as_its_difference_to_the_store),
        INFORMER_TEST_IN_ORDER(list_is_told_in_its_order),
        INFORMER_TEST_IN_ORDER(last_of_two_in_a_list_counts),
        INFORMER_TEST_IN_ORDER(unchanged_objects_keep_their_stored_copies),
        INFORMER_TEST_BOTH(large_list_is_told_whole),
        INFORMER_TEST_IN_ORDER(resync_tells_syncing_handlers_all_that_is_stored),
        INFORMER_TEST_IN_ORDER(what_is_left_out_does_not_set_the_version_back),
        INFORMER_TEST_IN_ORDER(version_of_the_store_is_that_of_the_last_delta),
        INFORMER_TEST_IN_ORDER(each_new_object_of_a_list_is_transformed_once),
        INFORMER_TEST_IN_ORDER(index_that_comes_amidst_a_list_has_all_of_it),
        INFORMER_TEST_IN_ORDER(deltas_without_memory_change_nothing_and_may_be_repeated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
