/*
 * The store: what each call promises.
 */
#include "indexer/indexer.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "indexer/snapshot.h"
#include "object/object.h"
#include "unit/indexer_fixture.h"
#include "unit/test.h"

static const struct kinf_index by_word = { "byWord", NULL, index_by_word, NULL };
static const struct kinf_index by_letter = { "byLetter", NULL, index_by_letter, NULL };

static struct kinf_indexer *indexer;

static int new_indexer(void **state)
{
    const struct kinf_index indices[] = { by_word, by_letter };

    (void)state;
    return kinf_indexer_new(indices, 2, &indexer, NULL);
}

static int free_indexer(void **state)
{
    (void)state;
    kinf_indexer_free(indexer);
    return kinf__object_count() == 0 ? 0 : -1;
}

static void assert_rv(const char *expected)
{
    char rv[64];

    assert_int_equal(kinf_indexer_resource_version(indexer, rv, sizeof rv), 0);
    assert_string_equal(rv, expected);
}

static const char *rv_of(const char *key)
{
    static char rv[64];
    kinf_auto_object const struct kinf_object *object = NULL;

    if (kinf_indexer_get_by_key(indexer, key, &object) == KINF_ERR_NOT_FOUND)
        return "absent";
    snprintf(rv, sizeof rv, "%s", kinf_object_resource_version(object));
    return rv;
}

/* The list is key, rv, words, ..., NULL. */
static void replace(const char *rv, const char *const *list)
{
    const struct kinf_object *objects[16] = { NULL };
    size_t n = 0;

    for (; list[3 * n] != NULL; n++)
        objects[n] = indexer_object(list[3 * n], list[3 * n + 1], list[3 * n + 2]);
    assert_int_equal(kinf_indexer_replace(indexer, objects, n, rv, NULL), 0);
    while (n-- > 0)
        kinf_object_unref(objects[n]);
    indexer_check(indexer);
}
#define REPLACE(rv, ...) replace(rv, (const char *const[]){ __VA_ARGS__, NULL })

/* --- the store --- */

static void what_was_added_is_found_listed_and_deleted(void **state)
{
    (void)state;
    assert_text(indexer_keys(indexer), "");
    assert_string_equal(rv_of("ns/a"), "absent");
    indexer_add(indexer, "ns/b", "1", "");
    indexer_add(indexer, "ns/a", "2", "");
    indexer_add(indexer, "node", "3", "");
    assert_text(indexer_keys(indexer), "node ns/a ns/b");
    assert_string_equal(rv_of("ns/a"), "2");
    indexer_add(indexer, "ns/a", "4", "");
    assert_string_equal(rv_of("ns/a"), "4");
    indexer_delete(indexer, "ns/a", NULL);
    assert_string_equal(rv_of("ns/a"), "absent");
    assert_text(indexer_keys(indexer), "node ns/b");
    REPLACE("9", "ns/c", "7", "", "ns/b", "8", "");
    assert_text(indexer_keys(indexer), "ns/b ns/c");
    assert_string_equal(rv_of("ns/b"), "8");
    REPLACE("10", NULL);
    assert_text(indexer_keys(indexer), "");
}

static void writes_hand_out_what_was_there(void **state)
{
    kinf_auto_object const struct kinf_object *first = indexer_object("a", "1", "");
    kinf_auto_object const struct kinf_object *second = indexer_object("a", "2", "");
    const struct kinf_object *old = first;

    (void)state;
    assert_int_equal(kinf_indexer_add(indexer, first, &old, NULL), 0);
    assert_null(old);
    assert_int_equal(kinf_indexer_update(indexer, second, &old, NULL), 0);
    assert_ptr_equal(old, first);
    kinf_object_unref(old);
    assert_int_equal(kinf_indexer_delete(indexer, "a", NULL, &old, NULL), 0);
    assert_ptr_equal(old, second);
    kinf_object_unref(old);
    assert_int_equal(kinf_indexer_delete(indexer, "a", NULL, &old, NULL), 0);
    assert_null(old);
}

static void of_two_with_one_key_replace_keeps_the_last(void **state)
{
    (void)state;
    REPLACE("9", "b", "1", "old", "a", "2", "", "b", "3", "new", "b", "4", "newest");
    assert_text(indexer_keys(indexer), "a b");
    assert_string_equal(rv_of("b"), "4");
    assert_text(indexer_values(indexer, "byWord"), "newest");
}

static void replace_by_the_same_objects_shares_everything(void **state)
{
    const struct kinf_object *objects[3] = { indexer_object("a", "1", "x"),
                                             indexer_object("b", "2", "y"),
                                             indexer_object("c", "3", "z") };
    kinf_auto_snapshot struct kinf_snapshot *before = NULL, *after = NULL;

    (void)state;
    assert_int_equal(kinf_indexer_replace(indexer, objects, 3, "5", NULL), 0);
    before = kinf_indexer_snapshot(indexer);
    assert_int_equal(kinf_indexer_replace(indexer, objects, 3, "6", NULL), 0);
    after = kinf_indexer_snapshot(indexer);
    indexer_check(indexer);
    assert_ptr_equal(after->items.root, before->items.root);
    assert_ptr_equal(after->indices[0].root, before->indices[0].root);
    assert_rv("6");
    assert_string_equal(kinf_snapshot_resource_version(before), "5");
    assert_text(indexer_keys(indexer), "a b c");
    assert_int_equal(kinf_indexer_replace(indexer, objects, 2, "7", NULL), 0);
    indexer_check(indexer);
    assert_text(indexer_keys(indexer), "a b");
    assert_text(indexer_values(indexer, "byWord"), "x y");
    for (int i = 0; i < 3; i++)
        kinf_object_unref(objects[i]);
}

static void a_list_of_none_empties_the_store(void **state)
{
    (void)state;
    indexer_add(indexer, "a", "1", "x");
    assert_int_equal(kinf_indexer_replace(indexer, NULL, 0, "2", NULL), 0);
    indexer_check(indexer);
    assert_text(indexer_keys(indexer), "");
    assert_text(indexer_values(indexer, "byWord"), "");
    assert_rv("2");
}

static void the_resource_version_follows_every_write(void **state)
{
    (void)state;
    assert_rv("");
    indexer_add(indexer, "a", "10", "");
    assert_rv("10");
    indexer_add(indexer, "a", "5", "");
    assert_rv("5"); /* never compared */
    indexer_delete(indexer, "a", "12");
    assert_rv("12");
    indexer_delete(indexer, "a", "13"); /* though absent */
    assert_rv("13");
    indexer_delete(indexer, "a", NULL);
    indexer_delete(indexer, "a", "");
    indexer_add(indexer, "a", "", "");
    assert_rv("13");
    assert_int_equal(kinf_indexer_bookmark(indexer, "20", NULL), 0);
    assert_rv("20");
    REPLACE("30", "a", "29", "");
    assert_rv("30");
    assert_string_equal(rv_of("a"), "29");
}

static void a_resource_version_that_does_not_fit_changes_nothing(void **state)
{
    char rv[65];
    kinf_auto_object const struct kinf_object *object = NULL;

    (void)state;
    memset(rv, '1', 64);
    rv[64] = '\0';
    object = indexer_object("a", rv, "");
    assert_int_equal(kinf_indexer_add(indexer, object, NULL, NULL), KINF_ERR_LIMIT);
    assert_int_equal(kinf_indexer_delete(indexer, "a", rv, NULL, NULL), KINF_ERR_LIMIT);
    assert_int_equal(kinf_indexer_replace(indexer, &object, 1, rv, NULL), KINF_ERR_LIMIT);
    assert_int_equal(kinf_indexer_bookmark(indexer, rv, NULL), KINF_ERR_LIMIT);
    assert_rv("");
    assert_text(indexer_keys(indexer), "");
    assert_int_equal(kinf_indexer_bookmark(indexer, rv + 1, NULL), 0);
    assert_int_equal(kinf_indexer_resource_version(indexer, rv, 63), KINF_ERR_LIMIT);
}

static void a_transaction_is_one_version(void **state)
{
    kinf_auto_object const struct kinf_object *a = indexer_object("a", "4", "x,y,z");
    kinf_auto_object const struct kinf_object *b = indexer_object("b", "5", "y,z,v,w");
    kinf_auto_object const struct kinf_object *a_again = indexer_object("a", "6", "z,u");
    const struct kinf_store_change changes[] = { { a, NULL, NULL },  { NULL, "gone", "7" },
                                                 { b, NULL, NULL },  { a_again, NULL, NULL },
                                                 { NULL, "b", "8" }, { NULL, "never", NULL } };
    const struct kinf_store_change neither[] = { { a, NULL, NULL }, { NULL, NULL, "9" } };
    const struct kinf_store_change dated[] = { { a, NULL, "11" }, { a, NULL, "" } };

    (void)state;
    indexer_add(indexer, "gone", "1", "x");
    for (int is_held = 0; is_held <= 1; is_held++) {
        struct kinf_snapshot *before = is_held ? kinf_indexer_snapshot(indexer) : NULL;

        assert_int_equal(kinf_indexer_transaction(indexer, changes, 6, NULL), 0);
        indexer_check(indexer);
        assert_text(indexer_keys(indexer), "a");
        assert_text(indexer_values(indexer, "byWord"), "u z");
        assert_rv("8");
        kinf_snapshot_unref(before);
    }
    assert_int_equal(kinf_indexer_transaction(indexer, neither, 2, NULL), KINF_ERR_INVALID);
    assert_string_equal(rv_of("a"), "6");
    assert_int_equal(kinf_indexer_transaction(indexer, NULL, 0, NULL), 0);
    assert_int_equal(kinf_indexer_transaction(indexer, dated, 2, NULL), 0);
    assert_rv("11");
}

/* --- snapshots and cursors --- */

static void a_snapshot_stays_as_it_was(void **state)
{
    kinf_auto_snapshot struct kinf_snapshot *before = NULL;
    struct kinf_cursor cursor;

    (void)state;
    indexer_add(indexer, "a", "1", "x");
    indexer_add(indexer, "b", "2", "x");
    before = kinf_indexer_snapshot(indexer);
    indexer_add(indexer, "a", "3", "y");
    indexer_delete(indexer, "b", "4");
    REPLACE("9", "c", "5", "x");
    assert_int_equal(kinf_snapshot_count(before), 2);
    assert_string_equal(kinf_snapshot_resource_version(before), "2");
    assert_string_equal(kinf_object_resource_version(kinf_snapshot_get(before, "a")), "1");
    assert_null(kinf_snapshot_get(before, "c"));
    assert_int_equal(kinf_cursor_index(&cursor, before, "byWord", KINF_STR("x"), NULL), 0);
    assert_string_equal(kinf_object_key(kinf_cursor_next(&cursor)), "a");
    assert_string_equal(kinf_object_key(kinf_cursor_next(&cursor)), "b");
    assert_null(kinf_cursor_next(&cursor));
}

static void a_snapshot_outlives_its_indexer(void **state)
{
    struct kinf_snapshot *snapshot;

    (void)state;
    indexer_add(indexer, "a", "1", "x");
    snapshot = kinf_indexer_snapshot(indexer);
    assert_ptr_equal(kinf_snapshot_ref(snapshot), snapshot);
    kinf_snapshot_unref(snapshot);
    kinf_indexer_free(indexer);
    indexer = NULL;
    assert_string_equal(kinf_object_resource_version(kinf_snapshot_get(snapshot, "a")), "1");
    kinf_snapshot_unref(snapshot);
}

static void assert_cursor(struct kinf_cursor *cursor, const char *expected)
{
    char text[512] = "";
    const struct kinf_object *object;

    while ((object = kinf_cursor_next(cursor)) != NULL) {
        strcat(text, text[0] != '\0' ? " " : "");
        strcat(text, kinf_object_key(object));
    }
    assert_string_equal(text, expected);
    assert_null(kinf_cursor_next(cursor));
}

static void cursors_walk_prefixes_and_go_on_behind_a_key(void **state)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;
    struct kinf_cursor cursor;

    (void)state;
    REPLACE("9", "ns/a", "1", "", "ns/ab", "1", "", "ns-2/a", "1", "", "ns/b", "1", "", "nt/a", "1",
            "");
    snapshot = kinf_indexer_snapshot(indexer);
    kinf_cursor_all(&cursor, snapshot);
    assert_cursor(&cursor, "ns-2/a ns/a ns/ab ns/b nt/a");
    kinf_cursor_prefix(&cursor, snapshot, KINF_STR("ns/"));
    assert_cursor(&cursor, "ns/a ns/ab ns/b");
    kinf_cursor_prefix(&cursor, snapshot, KINF_STR("ns/a"));
    assert_cursor(&cursor, "ns/a ns/ab");
    kinf_cursor_prefix(&cursor, snapshot, KINF_STR("o"));
    assert_cursor(&cursor, "");
    kinf_cursor_after(&cursor, snapshot, "ns/a");
    assert_cursor(&cursor, "ns/ab ns/b nt/a");
    kinf_cursor_after(&cursor, snapshot, "ns/aa"); /* which is gone */
    assert_cursor(&cursor, "ns/ab ns/b nt/a");
    kinf_cursor_after(&cursor, snapshot, "nt/a");
    assert_cursor(&cursor, "");
    kinf_cursor_after(&cursor, snapshot, "");
    assert_cursor(&cursor, "ns-2/a ns/a ns/ab ns/b nt/a");
}

/* --- indices --- */

static void an_emptied_set_leaves_the_index(void **state)
{
    (void)state;
    indexer_add(indexer, "a", "1", "foo");
    assert_text(indexer_values(indexer, "byWord"), "foo");
    indexer_delete(indexer, "a", NULL);
    assert_text(indexer_values(indexer, "byWord"), "");
    indexer_add(indexer, "a", "2", "foo");
    indexer_add(indexer, "a", "3", "bar");
    assert_text(indexer_values(indexer, "byWord"), "bar");
}

static void a_set_that_keeps_a_member_stays_in_the_index(void **state)
{
    (void)state;
    indexer_add(indexer, "keep", "1", "foo");
    indexer_add(indexer, "gone", "2", "foo");
    indexer_delete(indexer, "gone", NULL);
    assert_text(indexer_values(indexer, "byWord"), "foo");
    assert_text(indexer_by_index(indexer, "byWord", "foo"), "keep");
}

static void an_object_is_found_by_each_of_its_values_and_no_other(void **state)
{
    static const char *const words[] = { "foo",    "foo,bar", "bar,foo", "bar",     "foo,bar,baz",
                                         "baz",    "",        ",",       "foo,foo", "a,aa,a,",
                                         "fail,a", "foo",     "aa,a",    "",        "a\x01,a" };

    (void)state;
    indexer_add(indexer, "other", "1", "foo,bar,baz");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        indexer_add(indexer, "key", "1", words[i]);
    indexer_add(indexer, "key", "1", "foo,bar");
    assert_text(indexer_by_index(indexer, "byWord", "foo"), "key other");
    assert_text(indexer_by_index(indexer, "byWord", "baz"), "other");
    assert_text(indexer_by_index(indexer, "byLetter", "b"), "key other");
    indexer_add(indexer, "key", "1", "foo,");
    assert_text(indexer_by_index(indexer, "byWord", ""), "key");
    assert_text(indexer_by_index(indexer, "byWord", "bar"), "other");
}

static void distinct_values_are_listed_once_and_sorted(void **state)
{
    kinf_auto_string_list struct kinf_string_list values = KINF_STRING_LIST_INIT;

    (void)state;
    REPLACE("9", "1", "1", "foo", "2", "1", "bar", "3", "1", "foo", "4", "1", "ba,foo");
    assert_text(indexer_values(indexer, "byWord"), "ba bar foo");
    assert_int_equal(kinf_indexer_list_index_values(indexer, "unknown", &values, NULL), 0);
    assert_int_equal(values.n_items, 0);
}

static void index_unites_the_values_of_a_probe(void **state)
{
    kinf_auto_object const struct kinf_object *probe = indexer_object("probe", "", "foo,bar,none");
    kinf_auto_object const struct kinf_object *bad = indexer_object("bad", "", "fail");
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    REPLACE("9", "1", "1", "foo", "2", "1", "bar", "3", "1", "foo,bar", "4", "1", "baz");
    assert_int_equal(kinf_indexer_index(indexer, "byWord", probe, &list, &err), 0);
    assert_text(indexer_list_text(&list), "1 2 3");
    assert_int_equal(kinf_indexer_index(indexer, "byWord", bad, &list, &err), KINF_ERR_INVALID);
    assert_string_equal(err.message, "index byWord fails on object bad");
    assert_int_equal(kinf_indexer_failed_index_values(indexer), 0);
}

static void an_unknown_index_is_named(void **state)
{
    kinf_auto_object const struct kinf_object *probe = indexer_object("probe", "", "foo");
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    struct kinf_object_list objects;
    struct kinf_string_list keys;
    struct kinf_cursor cursor;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf_indexer_index(indexer, "x", probe, &objects, &err), KINF_ERR_NOT_FOUND);
    assert_string_equal(err.message, "index x does not exist");
    assert_int_equal(kinf_indexer_by_index(indexer, "x", "v", &objects, NULL), KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_indexer_index_keys(indexer, "x", "v", &keys, NULL), KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_cursor_index(&cursor, snapshot, "x", KINF_STR("v"), NULL),
                     KINF_ERR_NOT_FOUND);
}

static void an_index_that_fails_keeps_nobody_out(void **state)
{
    (void)state;
    indexer_add(indexer, "a", "1", "b,fail");
    assert_int_equal(kinf_indexer_failed_index_values(indexer), 1);
    assert_string_equal(rv_of("a"), "1");
    assert_text(indexer_values(indexer, "byWord"), "");
    assert_text(indexer_by_index(indexer, "byLetter", "b"), "a");
    REPLACE("9", "a", "1", "fail", "b", "1", "ok");
    assert_int_equal(kinf_indexer_failed_index_values(indexer), 2);
    assert_text(indexer_values(indexer, "byWord"), "ok");
}

static void what_fails_while_an_index_is_added_is_counted(void **state)
{
    const struct kinf_index index = { "another", NULL, index_by_word, NULL };

    (void)state;
    indexer_add(indexer, "a", "1", "fail");
    assert_int_equal(kinf_indexer_add_indices(indexer, NULL, 0, NULL), 0);
    assert_int_equal(kinf_indexer_failed_index_values(indexer), 1);
    assert_int_equal(kinf_indexer_add_indices(indexer, &index, 1, NULL), 0);
    assert_int_equal(kinf_indexer_failed_index_values(indexer), 2);
}

static int try_all_writes(const struct kinf_object *object, struct kinf_index_values *values,
                          void *ctx)
{
    const struct kinf_index index = { "more", NULL, index_by_word, NULL };

    (void)values;
    (void)ctx;
    assert_int_equal(kinf_indexer_add(indexer, object, NULL, NULL), KINF_ERR_STATE);
    assert_int_equal(kinf_indexer_delete(indexer, "a", "2", NULL, NULL), KINF_ERR_STATE);
    assert_int_equal(kinf_indexer_replace(indexer, &object, 1, "2", NULL), KINF_ERR_STATE);
    assert_int_equal(kinf_indexer_bookmark(indexer, "2", NULL), KINF_ERR_STATE);
    assert_int_equal(kinf_indexer_add_indices(indexer, &index, 1, NULL), KINF_ERR_STATE);
    return 0;
}

static void an_index_function_writes_to_no_store(void **state)
{
    const struct kinf_index index = { "writing", NULL, try_all_writes, NULL };

    (void)state;
    assert_int_equal(kinf_indexer_add_indices(indexer, &index, 1, NULL), 0);
    indexer_add(indexer, "a", "1", "x");
    assert_rv("1");
}

static int add_bad_values(const struct kinf_object *object, struct kinf_index_values *values,
                          void *ctx)
{
    static char large[60001];
    int *results = ctx;

    (void)object;
    memset(large, 'x', sizeof large);
    results[0] = kinf_index_values_add(values, "a\0b", 3);
    results[1] = kinf_index_values_add(values, large, 60001);
    results[2] = kinf_index_values_add(values, large, 60000);
    return 0;
}

static void values_with_nul_or_too_long_are_refused(void **state)
{
    int results[3] = { 1, 1, 1 };
    const struct kinf_index index = { "bad", NULL, add_bad_values, results };
    kinf_auto_string_list struct kinf_string_list values = KINF_STRING_LIST_INIT;

    (void)state;
    assert_int_equal(kinf_indexer_add_indices(indexer, &index, 1, NULL), 0);
    indexer_add(indexer, "a", "1", "");
    assert_int_equal(results[0], KINF_ERR_INVALID);
    assert_int_equal(results[1], KINF_ERR_LIMIT);
    assert_int_equal(results[2], 0);
    assert_int_equal(kinf_indexer_list_index_values(indexer, "bad", &values, NULL), 0);
    assert_int_equal(values.n_items, 1);
    assert_int_equal(strlen(values.items[0]), 60000);
}

static void indices_are_added_to_a_populated_store(void **state)
{
    const struct kinf_index by_namespace = { "byNamespace", NULL, index_by_namespace, NULL };
    kinf_auto_snapshot struct kinf_snapshot *before = NULL;
    struct kinf_cursor cursor;
    kinf_auto_string_list struct kinf_string_list names = KINF_STRING_LIST_INIT;

    (void)state;
    REPLACE("9", "x/1", "1", "foo", "y/2", "1", "bar", "x/3", "1", "foo,fail");
    before = kinf_indexer_snapshot(indexer);
    assert_int_equal(kinf_indexer_add_indices(indexer, &by_namespace, 1, NULL), 0);
    indexer_check(indexer);
    assert_rv("9");
    assert_text(indexer_by_index(indexer, "byNamespace", "x"), "x/1 x/3");
    assert_text(indexer_by_index(indexer, "byWord", "foo"), "x/1");
    assert_int_equal(kinf_indexer_failed_index_values(indexer), 1); /* old values were kept */
    indexer_add(indexer, "x/4", "2", "");
    assert_text(indexer_by_index(indexer, "byNamespace", "x"), "x/1 x/3 x/4");
    assert_int_equal(kinf_cursor_index(&cursor, before, "byNamespace", KINF_STR("x"), NULL),
                     KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_indexer_get_indices(indexer, &names, NULL), 0);
    assert_int_equal(names.n_items, 3);
    assert_string_equal(names.items[0], "byLetter");
    assert_string_equal(names.items[1], "byNamespace");
}

static int index_nothing(const struct kinf_object *object, struct kinf_index_values *values,
                         void *ctx)
{
    (void)object;
    (void)values;
    (void)ctx;
    return 0;
}

static void *add_an_index(void *ctx)
{
    static const struct kinf_index by_namespace = { "byNamespace", NULL, index_by_namespace, NULL };

    (void)ctx;
    if (kinf_indexer_add_indices(indexer, &by_namespace, 1, NULL) < 0)
        abort();
    return NULL;
}

/* While a list is made into a version: once, and on another thread, since this one writes nothing. */
static int index_while_one_is_added(const struct kinf_object *object,
                                    struct kinf_index_values *values, void *ctx)
{
    bool *is_due = ctx;
    pthread_t thread;

    if (*is_due) {
        *is_due = false;
        if (pthread_create(&thread, NULL, add_an_index, NULL) != 0)
            abort();
        pthread_join(thread, NULL);
    }
    return index_nothing(object, values, ctx);
}

static void a_list_that_comes_while_an_index_is_added_has_its_values(void **state)
{
    bool is_due = false;
    const struct kinf_index slow = { "slow", NULL, index_while_one_is_added, &is_due };

    (void)state;
    assert_int_equal(kinf_indexer_add_indices(indexer, &slow, 1, NULL), 0);
    is_due = true;
    REPLACE("9", "x/1", "1", "foo", "y/2", "1", "bar");
    assert_false(is_due);
    assert_rv("9");
    assert_text(indexer_by_index(indexer, "byNamespace", "x"), "x/1");
    assert_text(indexer_by_index(indexer, "byWord", "bar"), "y/2");
}

static void a_name_that_is_taken_adds_no_index(void **state)
{
    const struct kinf_index indices[] = { { "byNamespace", NULL, index_by_namespace, NULL },
                                          by_word };
    const struct kinf_index twice[] = { by_word, by_word };
    kinf_auto_string_list struct kinf_string_list names = KINF_STRING_LIST_INIT;
    struct kinf_indexer *other;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf_indexer_add_indices(indexer, indices, 2, &err), KINF_ERR_EXISTS);
    assert_string_equal(err.message, "index byWord exists already");
    assert_int_equal(kinf_indexer_get_indices(indexer, &names, NULL), 0);
    assert_int_equal(names.n_items, 2);
    indexer_add(indexer, "a", "1", "foo"); /* writes go on */
    assert_int_equal(kinf_indexer_new(twice, 2, &other, NULL), KINF_ERR_EXISTS);
}

static void an_index_needs_a_name_and_one_way_to_its_values(void **state)
{
    const struct kinf_index wrong[] = { { NULL, NULL, index_by_word, NULL },
                                        { "none", NULL, NULL, NULL },
                                        { "both", "a", index_by_word, NULL } };
    const struct kinf_index bad_path = { "path", "a..b", NULL, NULL };
    struct kinf_indexer *other;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(kinf_indexer_new(&wrong[i], 1, &other, NULL), KINF_ERR_INVALID);
    assert_int_equal(kinf_indexer_new(&bad_path, 1, &other, &err), KINF_ERR_PARSE);
    assert_memory_equal(err.message, "index path: ", 12);
}

static void paths_index_strings_numbers_and_truths(void **state)
{
    const struct kinf_index indices[] = { KINF_INDEX_BY_NODE_NAME,
                                          KINF_INDEX_BY_OWNER_UID,
                                          { "byAny", "spec.any[*]", NULL, NULL } };
    kinf_auto_object const struct kinf_object *pod =
        indexer_json_object("{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\","
                            "\"resourceVersion\":\"7\","
                            "\"ownerReferences\":[{\"uid\":\"o1\"},{\"uid\":\"o2\"}]},"
                            "\"spec\":{\"nodeName\":\"node-\\u00e9\",\"any\":[\"s\",12,true,null,{"
                            "\"x\":1},[2],\"s\"]}}");

    (void)state;
    assert_int_equal(kinf_indexer_add_indices(indexer, indices, 3, NULL), 0);
    assert_int_equal(kinf_indexer_add(indexer, pod, NULL, NULL), 0);
    indexer_check(indexer);
    assert_text(indexer_values(indexer, "byNodeName"), "node-\xc3\xa9");
    assert_text(indexer_values(indexer, "byOwnerUID"), "o1 o2");
    assert_text(indexer_values(indexer, "byAny"), "12 s true");
    assert_int_equal(kinf_indexer_failed_index_values(indexer), 0);
}

/* Longer than what is unquoted on the stack. */
static void a_path_indexes_a_long_string(void **state)
{
    const struct kinf_index index = { "byNote", "spec.note", NULL, NULL };
    char note[1001], json[1200];
    kinf_auto_object const struct kinf_object *object = NULL;

    (void)state;
    memset(note, 'n', sizeof note - 1);
    note[sizeof note - 1] = '\0';
    snprintf(json, sizeof json, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"note\":\"%s\"}}", note);
    object = indexer_json_object(json);
    assert_int_equal(kinf_indexer_add_indices(indexer, &index, 1, NULL), 0);
    assert_int_equal(kinf_indexer_add(indexer, object, NULL, NULL), 0);
    assert_text(indexer_values(indexer, "byNote"), note);
    assert_int_equal(kinf_indexer_failed_index_values(indexer), 0);
}

static void append_unmet(const char *path, const char *role, void *ctx)
{
    char *unmet = ctx;

    assert_string_equal(role, "indices");
    strcat(strcat(unmet, path), " ");
}

/* Of a store without objects nothing is known. */
static void a_path_that_no_object_has_is_told(void **state)
{
    const struct kinf_index indices[] = { { "one", "spec.one", NULL, NULL },
                                          { "two", "spec.two", NULL, NULL },
                                          { "three", "spec.three", NULL, NULL } };
    kinf_auto_object const struct kinf_object *object =
        indexer_json_object("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"two\":\"2\"}}");
    char unmet[64] = "";

    kinf_indexer_free(indexer);
    assert_int_equal(kinf_indexer_new(indices, 3, &indexer, NULL), 0);
    kinf__indexer_each_unmet(indexer, append_unmet, unmet);
    assert_string_equal(unmet, "");
    (void)state;
    assert_int_equal(kinf_indexer_add(indexer, object, NULL, NULL), 0);
    kinf__indexer_each_unmet(indexer, append_unmet, unmet);
    assert_string_equal(unmet, "spec.one spec.three ");
}

static void add_pod_of_users(const char *name, const char *users)
{
    char text[256];
    kinf_auto_object const struct kinf_object *pod = NULL;

    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"annotations\":{\"users\":\"%s\"}}}",
             name, name, users);
    pod = indexer_json_object(text);
    assert_int_equal(kinf_indexer_add(indexer, pod, NULL, NULL), 0);
    indexer_check(indexer);
}

static void pods_are_found_by_their_users(void **state)
{
    const struct kinf_index by_user = { "byUser", NULL, index_by_user, NULL };

    (void)state;
    assert_int_equal(kinf_indexer_add_indices(indexer, &by_user, 1, NULL), 0);
    add_pod_of_users("one", "ernie,bert");
    add_pod_of_users("two", "bert,oscar");
    add_pod_of_users("tre", "ernie,elmo");
    assert_text(indexer_by_index(indexer, "byUser", "ernie"), "one tre");
    assert_text(indexer_by_index(indexer, "byUser", "bert"), "one two");
    assert_text(indexer_by_index(indexer, "byUser", "elmo"), "tre");
    assert_text(indexer_by_index(indexer, "byUser", "oscar"), "two");
    add_pod_of_users("one", "bert");
    indexer_delete(indexer, "two", NULL);
    assert_text(indexer_by_index(indexer, "byUser", "ernie"), "tre");
    assert_text(indexer_by_index(indexer, "byUser", "bert"), "one");
    assert_text(indexer_by_index(indexer, "byUser", "oscar"), "");
    assert_text(indexer_values(indexer, "byUser"), "bert elmo ernie");
}

/* --- large versions --- */

static void fill(size_t n)
{
    const struct kinf_object **objects = calloc(n, sizeof objects[0]);
    char key[64];

    assert_non_null(objects);
    for (size_t i = 0; i < n; i++) {
        snprintf(key, sizeof key, "ns/pod-%zu", i);
        objects[i] = indexer_object(key, "1", "a,b");
    }
    assert_int_equal(kinf_indexer_replace(indexer, objects, n, "1", NULL), 0);
    for (size_t i = 0; i < n; i++)
        kinf_object_unref(objects[i]);
    free(objects);
}

static void a_large_version_is_freed_in_slices(void **state)
{
    size_t n_slices = 0, before;

    (void)state;
    fill(20000);
    indexer_check(indexer);
    REPLACE("2", "only", "1", "");
    assert_true(kinf__object_count() > 15000);
    do {
        before = kinf__object_count();
        n_slices++;
        if (!kinf__indexer_reap(indexer, 500))
            break;
        assert_true(before - kinf__object_count() <= 600);
    } while (true);
    assert_true(n_slices > 20);
    assert_int_equal(kinf__object_count(), 1);
    assert_false(kinf__indexer_reap(indexer, 500));
}

/* Whoever reaps sleeps meanwhile. */
static void garbage_is_foreseen_while_somebody_has_an_old_version(void **state)
{
    struct kinf_snapshot *snapshot;

    (void)state;
    fill(5000);
    assert_false(kinf__indexer_may_have_garbage(indexer));
    snapshot = kinf_indexer_snapshot(indexer);
    assert_false(kinf__indexer_may_have_garbage(indexer));
    REPLACE("2", "only", "1", "");
    assert_true(kinf__indexer_may_have_garbage(indexer));
    assert_false(kinf__indexer_reap(indexer, 500));
    assert_true(kinf__indexer_may_have_garbage(indexer));
    kinf_snapshot_unref(snapshot);
    assert_true(kinf__indexer_may_have_garbage(indexer)); /* what is buried */
    while (kinf__indexer_reap(indexer, 500))
        continue;
    assert_false(kinf__indexer_may_have_garbage(indexer));
}

static void writes_take_garbage_along(void **state)
{
    (void)state;
    fill(20000);
    REPLACE("2", "only", "1", "");
    for (int i = 0; i < 60000 && kinf__object_count() > 1; i++)
        indexer_add(indexer, "only", "3", "");
    assert_int_equal(kinf__object_count(), 1);
}

/* Stores an object of another version in place of each `n_apart`th, by one write. */
static void change_many(size_t n, size_t n_apart, size_t first, const char *rv)
{
    struct kinf_store_change *changes = calloc(n, sizeof changes[0]);
    char key[64];

    assert_non_null(changes);
    for (size_t i = 0; i < n; i++) {
        snprintf(key, sizeof key, "ns/pod-%zu", i * n_apart + first);
        changes[i].object = indexer_object(key, rv, "a,b");
    }
    assert_int_equal(kinf_indexer_transaction(indexer, changes, n, NULL), 0);
    for (size_t i = 0; i < n; i++)
        kinf_object_unref(changes[i].object);
    free(changes);
}

/* Each write has `n` changes, far apart. As a watch cache does, somebody always has the version of before;
 * nobody reaps, as while the queue is never empty. */
static void write_often(size_t n)
{
    const size_t n_stored = 20000, n_writes = 30;
    struct kinf_snapshot *before, *after;
    char rv[32];

    fill(n_stored);
    while (kinf__indexer_reap(indexer, 1000))
        continue;
    before = kinf_indexer_snapshot(indexer);
    for (size_t i = 0; i < n_writes; i++) {
        snprintf(rv, sizeof rv, "%zu", i + 2);
        change_many(n, n_stored / n, i % (n_stored / n), rv);
        after = kinf_indexer_snapshot(indexer);
        kinf_snapshot_unref(before);
        before = after;
        assert_true(kinf__object_count() <= n_stored + 2 * n);
    }
    kinf_snapshot_unref(before);
}

static void many_large_writes_pile_up_no_garbage(void **state)
{
    (void)state;
    write_often(1000);
    write_often(100);
    write_often(10);
}

static void a_snapshot_that_goes_last_frees_everything(void **state)
{
    struct kinf_snapshot *snapshot;

    (void)state;
    fill(5000);
    snapshot = kinf_indexer_snapshot(indexer);
    kinf_indexer_free(indexer);
    indexer = NULL;
    assert_int_equal(kinf_snapshot_count(snapshot), 5000);
    kinf_snapshot_unref(snapshot);
    assert_int_equal(kinf__object_count(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_indexer, free_indexer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_added_is_found_listed_and_deleted),
        TEST(writes_hand_out_what_was_there),
        TEST(of_two_with_one_key_replace_keeps_the_last),
        TEST(replace_by_the_same_objects_shares_everything),
        TEST(a_list_of_none_empties_the_store),
        TEST(the_resource_version_follows_every_write),
        TEST(a_resource_version_that_does_not_fit_changes_nothing),
        TEST(a_transaction_is_one_version),
        TEST(a_snapshot_stays_as_it_was),
        TEST(a_snapshot_outlives_its_indexer),
        TEST(cursors_walk_prefixes_and_go_on_behind_a_key),
        TEST(an_emptied_set_leaves_the_index),
        TEST(a_set_that_keeps_a_member_stays_in_the_index),
        TEST(an_object_is_found_by_each_of_its_values_and_no_other),
        TEST(distinct_values_are_listed_once_and_sorted),
        TEST(index_unites_the_values_of_a_probe),
        TEST(an_unknown_index_is_named),
        TEST(an_index_that_fails_keeps_nobody_out),
        TEST(an_index_function_writes_to_no_store),
        TEST(what_fails_while_an_index_is_added_is_counted),
        TEST(values_with_nul_or_too_long_are_refused),
        TEST(indices_are_added_to_a_populated_store),
        TEST(a_list_that_comes_while_an_index_is_added_has_its_values),
        TEST(a_name_that_is_taken_adds_no_index),
        TEST(an_index_needs_a_name_and_one_way_to_its_values),
        TEST(paths_index_strings_numbers_and_truths),
        TEST(a_path_that_no_object_has_is_told),
        TEST(a_path_indexes_a_long_string),
        TEST(pods_are_found_by_their_users),
        TEST(a_large_version_is_freed_in_slices),
        TEST(garbage_is_foreseen_while_somebody_has_an_old_version),
        TEST(writes_take_garbage_along),
        TEST(many_large_writes_pile_up_no_garbage),
        TEST(a_snapshot_that_goes_last_frees_everything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
