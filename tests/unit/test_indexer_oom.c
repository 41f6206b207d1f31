/*
 * The store when memory runs out: every call happens wholly or changes nothing, at each allocation.
 */
#include <stdio.h>
#include <string.h>

#include <kinformer/lister.h>

#include "indexer/indexer.h"
#include "object/object.h"
#include "unit/allocation.h"
#include "unit/indexer_fixture.h"
#include "unit/test.h"

#define N_OBJECTS 150

static struct kinf_indexer *indexer;
/* What the call at hand works on: made before memory runs short. */
static const struct kinf_object *objects[N_OBJECTS];
static const struct kinf_object *object;

static const struct kinf_object *numbered_object(size_t number, const char *rv)
{
    char key[32], words[64];

    snprintf(key, sizeof key, "ns/%04zu", number);
    snprintf(words, sizeof words, "w%zu,x%zu,x%zu,y", number, number % 7, number % 5);
    return indexer_object(key, rv, words);
}

/* A store of several levels, whose words spread over the index. */
static int new_store(void **state)
{
    const struct kinf_index by_word = { "byWord", NULL, index_by_word, NULL };

    (void)state;
    for (size_t i = 0; i < N_OBJECTS; i++)
        objects[i] = numbered_object(3 * i, "1");
    object = numbered_object(6, "2");
    assert_int_equal(kinf_indexer_new(&by_word, 1, &indexer, NULL), 0);
    return kinf_indexer_replace(indexer, objects, N_OBJECTS, "1", NULL);
}

static int free_store(void **state)
{
    (void)state;
    kinf_indexer_free(indexer);
    kinf_object_unref(object);
    for (size_t i = 0; i < N_OBJECTS; i++)
        kinf_object_unref(objects[i]);
    return kinf__object_count() == 0 ? 0 : -1;
}

/* Everything that can be read of the store. */
static char *picture(void)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    const struct kinf_object *stored;
    struct kinf_cursor cursor;
    size_t size = 1 << 16, len;
    char *text = malloc(size);
    kinf_auto_string_list struct kinf_string_list names = KINF_STRING_LIST_INIT;

    assert_non_null(text);
    assert_int_equal(kinf_indexer_get_indices(indexer, &names, NULL), 0);
    len = (size_t)snprintf(text, size, "%zu indices, %zu at %s", names.n_items,
                           kinf_snapshot_count(snapshot), kinf_snapshot_resource_version(snapshot));
    kinf_cursor_all(&cursor, snapshot);
    while ((stored = kinf_cursor_next(&cursor)) != NULL) {
        len += (size_t)snprintf(text + len, size - len, " %s@%s", kinf_object_key(stored),
                                kinf_object_resource_version(stored));
        assert_true(len < size);
    }
    return text;
}

typedef int call_cb(void);

/* Fails each allocation of a call in turn, until it succeeds. Returns how many there were. */
static size_t sweep(call_cb *call)
{
    char *before = picture();
    size_t n = 0;
    int result;

    do {
        test_fail_allocation(++n);
        result = call();
        assert_int_equal(test_allocation_failed(), result < 0);
        indexer_check(indexer);
        if (result < 0) {
            assert_int_equal(result, KINF_ERR_NO_MEMORY);
            assert_text(picture(), before);
        }
    } while (result < 0);
    free(before);
    return n - 1;
}

/* --- writes --- */

static int add(void)
{
    const struct kinf_object *old = NULL;
    int result = kinf_indexer_add(indexer, object, &old, NULL);

    kinf_object_unref(old);
    return result;
}

static int delete (void)
{
    return kinf_indexer_delete(indexer, kinf_object_key(object), "3", NULL, NULL);
}

/* Some objects are stored again, some go. */
static int transact(void)
{
    struct kinf_store_change changes[60] = { { NULL, NULL, NULL } };

    for (size_t i = 0; i < 60; i++) {
        if (i % 3 != 0)
            changes[i].key = kinf_object_key(objects[2 * i]);
        else
            changes[i].object = objects[2 * i + 1];
    }
    changes[59].resource_version = "8";
    return kinf_indexer_transaction(indexer, changes, 60, NULL);
}

static int bookmark(void)
{
    return kinf_indexer_bookmark(indexer, "9", NULL);
}

static int replace(void)
{
    return kinf_indexer_replace(indexer, objects, N_OBJECTS, "9", NULL);
}

static int add_index(void)
{
    const struct kinf_index by_letter = { "byLetter", NULL, index_by_letter, NULL };

    return kinf_indexer_add_indices(indexer, &by_letter, 1, NULL);
}

/* Through splits and joins of nodes, with and without snapshots. */
static void a_write_without_memory_changes_nothing(void **state)
{
    struct test_random random = test_random_init("indexer out of memory");
    struct kinf_snapshot *held = NULL;
    size_t n_failed = 0;

    (void)state;
    for (size_t i = 0; i < test_rounds(1200); i++) {
        bool grows = i / 150 % 2 == 0;

        kinf_object_unref(object);
        object = numbered_object(test_random_below(&random, 3 * N_OBJECTS), "2");
        if (test_random_below(&random, 3) == 0) {
            kinf_snapshot_unref(held);
            held = test_random_below(&random, 2) ? kinf_indexer_snapshot(indexer) : NULL;
        }
        n_failed += sweep(test_random_below(&random, 10) < (grows ? 8 : 2) ? add : delete);
    }
    kinf_snapshot_unref(held);
    assert_true(n_failed > test_rounds(1200));
}

static void whole_versions_without_memory_change_nothing(void **state)
{
    struct kinf_snapshot *held;

    (void)state;
    assert_int_equal(sweep(bookmark), 0); /* in place */
    held = kinf_indexer_snapshot(indexer);
    assert_int_equal(sweep(bookmark), 1);
    assert_true(sweep(transact) > 60);
    kinf_snapshot_unref(held);
    assert_true(sweep(transact) > 60);
    kinf_object_unref(objects[5]);
    objects[5] = numbered_object(900, "7"); /* not in its place */
    assert_true(sweep(replace) > 20);
    assert_true(sweep(add_index) > N_OBJECTS);
}

/* --- reads --- */

static int make(void)
{
    const struct kinf_index indices[] = { { "byWord", NULL, index_by_word, NULL },
                                          KINF_INDEX_BY_NODE_NAME };
    struct kinf_indexer *other;
    int result = kinf_indexer_new(indices, 2, &other, NULL);

    if (result == 0)
        kinf_indexer_free(other);
    return result;
}

static int list(void)
{
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;

    return kinf_indexer_list(indexer, &list, NULL);
}

static int list_keys(void)
{
    kinf_auto_string_list struct kinf_string_list keys = KINF_STRING_LIST_INIT;

    return kinf_indexer_list_keys(indexer, &keys, NULL);
}

static int list_values(void)
{
    kinf_auto_string_list struct kinf_string_list values = KINF_STRING_LIST_INIT;

    return kinf_indexer_list_index_values(indexer, "byWord", &values, NULL);
}

static int get_indices(void)
{
    kinf_auto_string_list struct kinf_string_list names = KINF_STRING_LIST_INIT;

    return kinf_indexer_get_indices(indexer, &names, NULL);
}

static int find_by_probe(void)
{
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;

    return kinf_indexer_index(indexer, "byWord", object, &list, NULL);
}

static int find_by_value(void)
{
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    kinf_auto_string_list struct kinf_string_list keys = KINF_STRING_LIST_INIT;
    int result = kinf_indexer_by_index(indexer, "byWord", "y", &list, NULL);

    return result < 0 ? result : kinf_indexer_index_keys(indexer, "byWord", "y", &keys, NULL);
}

static int list_by_lister(void)
{
    const struct kinf_lister lister = { indexer, "ns" };
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;

    return kinf_lister_list(&lister, NULL, &list, NULL);
}

static int get_by_lister(void)
{
    const struct kinf_lister lister = { indexer, "ns" };
    kinf_auto_object const struct kinf_object *found = NULL;

    return kinf_lister_get(&lister, "0006", &found, NULL);
}

static void a_read_without_memory_says_so(void **state)
{
    static call_cb *const calls[] = { make,          list,           list_keys,
                                      list_values,   get_indices,    find_by_probe,
                                      find_by_value, list_by_lister, get_by_lister };

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        assert_true(sweep(calls[i]) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_write_without_memory_changes_nothing, new_store,
                                        free_store),
        cmocka_unit_test_setup_teardown(whole_versions_without_memory_change_nothing, new_store,
                                        free_store),
        cmocka_unit_test_setup_teardown(a_read_without_memory_says_so, new_store, free_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
