/*
 * The store against a sorted array, with snapshots held across writes; and with many threads.
 */
#include "indexer/indexer.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "indexer/snapshot.h"
#include "unit/indexer_fixture.h"
#include "unit/test.h"

#define N_HELD_MAX 5

/* --- the twin --- */

/* What a version must hold. */
struct twin {
    const struct kinf_object **objects; /* sorted, with a reference each */
    size_t n;
    char rv[64];
};

static size_t twin_find(const struct twin *twin, const char *key, bool *ret_found)
{
    size_t i = 0;

    while (i < twin->n && strcmp(kinf_object_key(twin->objects[i]), key) < 0)
        i++;
    *ret_found = i < twin->n && strcmp(kinf_object_key(twin->objects[i]), key) == 0;
    return i;
}

static void twin_set(struct twin *twin, const struct kinf_object *object)
{
    bool found;
    size_t at = twin_find(twin, kinf_object_key(object), &found);

    kinf_object_ref(object);
    if (found) {
        kinf_object_unref(twin->objects[at]);
        twin->objects[at] = object;
        return;
    }
    twin->objects = realloc(twin->objects, (twin->n + 1) * sizeof twin->objects[0]);
    assert_non_null(twin->objects);
    memmove(&twin->objects[at + 1], &twin->objects[at], (twin->n - at) * sizeof twin->objects[0]);
    twin->objects[at] = object;
    twin->n++;
}

static void twin_remove(struct twin *twin, const char *key)
{
    bool found;
    size_t at = twin_find(twin, key, &found);

    if (!found)
        return;
    kinf_object_unref(twin->objects[at]);
    twin->n--;
    memmove(&twin->objects[at], &twin->objects[at + 1], (twin->n - at) * sizeof twin->objects[0]);
}

static void twin_release(struct twin *twin)
{
    for (size_t i = 0; i < twin->n; i++)
        kinf_object_unref(twin->objects[i]);
    free(twin->objects);
    *twin = (struct twin){ NULL, 0, "" };
}

static struct twin twin_copy(const struct twin *twin)
{
    struct twin copy = *twin;

    copy.objects = malloc((twin->n + 1) * sizeof copy.objects[0]);
    assert_non_null(copy.objects);
    for (size_t i = 0; i < twin->n; i++)
        copy.objects[i] = kinf_object_ref(twin->objects[i]);
    return copy;
}

/* Whether the object has the word, read without the store's code. An object with "fail" has none.
 */
static bool has_word(const struct kinf_object *object, const char *word)
{
    const char *words = kinf_object_uid(object);
    size_t len = strlen(word);

    if (words[0] == '\0' || strstr(words, "fail") != NULL)
        return false;
    for (;;) {
        size_t n = strcspn(words, ",");

        if (n == len && memcmp(words, word, len) == 0)
            return true;
        if (words[n] == '\0')
            return false;
        words += n + 1;
    }
}

/* --- the model --- */

struct model {
    struct test_random *random;
    size_t n_keys; /* how many different ones */
    bool has_long_keys;
    struct kinf_indexer *indexer;
    struct twin twin;
    struct kinf_snapshot *held[N_HELD_MAX];
    struct twin held_twins[N_HELD_MAX];
    unsigned n_held;
    unsigned n_indices;
    unsigned rv;
};

static const char *const words[] = { "a",
                                     "aa",
                                     "b",
                                     "node-1",
                                     "node-2",
                                     "node-10",
                                     "fail",
                                     "",
                                     "a-word-that-is-longer-than-a-fragment-1",
                                     "a-word-that-is-longer-than-a-fragment-2" };
#define N_WORDS (sizeof words / sizeof words[0])

static const char *random_word(struct test_random *random)
{
    return words[test_random_below(random, N_WORDS)];
}

static void random_key(struct model *model, char *buf, size_t size)
{
    size_t number = test_random_below(model->random, model->n_keys);

    if (model->has_long_keys)
        snprintf(buf, size, "production-of-a-team-%zu/deployment-of-a-service-7f9c6b8d4-%zx",
                 number % 3, number);
    else
        snprintf(buf, size, "%s%zu", number % 2 ? "ns/" : "", number);
}

static const struct kinf_object *random_object(struct model *model)
{
    char key[128], rv[32], text[256] = "";
    size_t n = test_random_below(model->random, 4);

    random_key(model, key, sizeof key);
    snprintf(rv, sizeof rv, "%u", ++model->rv);
    for (size_t i = 0; i < n; i++) {
        strcat(text, i > 0 ? "," : "");
        strcat(text, random_word(model->random));
    }
    return indexer_object(key, rv, text);
}

static void assert_holds(const struct kinf_snapshot *snapshot, const struct twin *twin)
{
    const char *wrong = kinf__snapshot_check(snapshot);
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    size_t n = 0;

    if (wrong != NULL)
        fail_msg("version of %zu objects: %s", twin->n, wrong);
    assert_int_equal(kinf_snapshot_count(snapshot), twin->n);
    assert_string_equal(kinf_snapshot_resource_version(snapshot), twin->rv);
    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL)
        assert_ptr_equal(object, twin->objects[n++]);
    assert_int_equal(n, twin->n);
}

static void assert_word_agrees(const struct kinf_snapshot *snapshot, const struct twin *twin,
                               const char *word)
{
    struct kinf_cursor cursor;

    if (kinf_cursor_index(&cursor, snapshot, "byWord", kinf_str_from(word), NULL) < 0)
        return;
    for (size_t i = 0; i < twin->n; i++) {
        if (has_word(twin->objects[i], word))
            assert_ptr_equal(kinf_cursor_next(&cursor), twin->objects[i]);
    }
    assert_null(kinf_cursor_next(&cursor));
}

static void assert_key_agrees(struct model *model, const struct kinf_snapshot *snapshot,
                              const struct twin *twin)
{
    char key[128];
    struct kinf_cursor cursor;
    bool found;
    size_t at;

    random_key(model, key, sizeof key);
    at = twin_find(twin, key, &found);
    assert_ptr_equal(kinf_snapshot_get(snapshot, key), found ? twin->objects[at] : NULL);
    kinf_cursor_after(&cursor, snapshot, key);
    at += found;
    assert_ptr_equal(kinf_cursor_next(&cursor), at < twin->n ? twin->objects[at] : NULL);
}

static void write_one(struct model *model)
{
    const struct kinf_object *object = random_object(model), *old = NULL, *expected = NULL;
    const char *key = kinf_object_key(object);
    bool found;
    size_t at = twin_find(&model->twin, key, &found);

    if (found)
        expected = kinf_object_ref(model->twin.objects[at]);
    if (test_random_below(model->random, 5) < 3) {
        assert_int_equal(kinf_indexer_add(model->indexer, object, &old, NULL), 0);
        twin_set(&model->twin, object);
        strcpy(model->twin.rv, kinf_object_resource_version(object));
    } else {
        const char *rv =
            test_random_below(model->random, 2) ? kinf_object_resource_version(object) : NULL;

        assert_int_equal(kinf_indexer_delete(model->indexer, key, rv, &old, NULL), 0);
        twin_remove(&model->twin, key);
        if (rv != NULL)
            strcpy(model->twin.rv, rv);
    }
    assert_ptr_equal(old, expected);
    kinf_object_unref(old);
    kinf_object_unref(expected);
    kinf_object_unref(object);
}

static void transact(struct model *model)
{
    struct kinf_store_change changes[12] = { { NULL, NULL, NULL } };
    const struct kinf_object *objects[12];
    size_t n = test_random_below(model->random, 12);

    for (size_t i = 0; i < n; i++) {
        objects[i] = random_object(model);
        if (test_random_below(model->random, 2)) {
            changes[i].object = objects[i];
            twin_set(&model->twin, objects[i]);
        } else {
            changes[i].key = kinf_object_key(objects[i]);
            changes[i].resource_version = kinf_object_resource_version(objects[i]);
            twin_remove(&model->twin, changes[i].key);
        }
        strcpy(model->twin.rv, kinf_object_resource_version(objects[i]));
    }
    assert_int_equal(kinf_indexer_transaction(model->indexer, changes, n, NULL), 0);
    while (n-- > 0)
        kinf_object_unref(objects[n]);
}

/* Some objects stay, some go, some are new, some come twice, in any order. */
static void replace_all(struct model *model)
{
    const struct kinf_object *objects[200];
    struct twin twin = { NULL, 0, "" };
    bool keeps_all = test_random_below(model->random, 4) == 0;
    size_t n = 0;

    for (size_t i = 0; i < model->twin.n && n < 180; i++) {
        if (keeps_all || test_random_below(model->random, 3) != 0)
            objects[n++] = kinf_object_ref(model->twin.objects[i]);
    }
    for (size_t i = 0; i < 20 && !keeps_all; i++) {
        size_t at = test_random_below(model->random, n + 1);

        memmove(&objects[at + 1], &objects[at], (n - at) * sizeof objects[0]);
        objects[at] = random_object(model);
        n++;
    }
    snprintf(twin.rv, sizeof twin.rv, "%u", ++model->rv);
    assert_int_equal(kinf_indexer_replace(model->indexer, objects, n, twin.rv, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        twin_set(&twin, objects[i]);
        kinf_object_unref(objects[i]);
    }
    twin_release(&model->twin);
    model->twin = twin;
}

static void add_index(struct model *model)
{
    static const struct kinf_index indices[] = { { "byWord", NULL, index_by_word, NULL },
                                                 { "byLetter", NULL, index_by_letter, NULL },
                                                 { "byNamespace", NULL, index_by_namespace,
                                                   NULL } };

    if (model->n_indices == 3)
        return;
    assert_int_equal(kinf_indexer_add_indices(model->indexer, &indices[model->n_indices], 1, NULL),
                     0);
    model->n_indices++;
}

static void hold(struct model *model)
{
    if (model->n_held == N_HELD_MAX)
        return;
    model->held[model->n_held] = kinf_indexer_snapshot(model->indexer);
    model->held_twins[model->n_held] = twin_copy(&model->twin);
    model->n_held++;
}

static void let_go(struct model *model)
{
    unsigned which;

    if (model->n_held == 0)
        return;
    which = (unsigned)test_random_below(model->random, model->n_held);
    assert_holds(model->held[which], &model->held_twins[which]);
    assert_word_agrees(model->held[which], &model->held_twins[which], random_word(model->random));
    kinf_snapshot_unref(model->held[which]);
    twin_release(&model->held_twins[which]);
    model->n_held--;
    model->held[which] = model->held[model->n_held];
    model->held_twins[which] = model->held_twins[model->n_held];
}

static void step(struct model *model)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;
    size_t choice = test_random_below(model->random, 100);

    /* seldom in a large space, which has to grow */
    if (choice < 1 && test_random_below(model->random, 1 + model->n_keys / 5000) == 0)
        replace_all(model);
    else if (choice < 2)
        add_index(model);
    else if (choice < 15)
        hold(model);
    else if (choice < 30)
        let_go(model);
    else if (choice < 35)
        transact(model);
    else
        write_one(model);
    snapshot = kinf_indexer_snapshot(model->indexer);
    if (model->twin.n < 60 || choice < 10)
        assert_holds(snapshot, &model->twin);
    assert_word_agrees(snapshot, &model->twin, random_word(model->random));
    assert_key_agrees(model, snapshot, &model->twin);
}

static void run_model(struct test_random *random, size_t n_keys, bool has_long_keys, size_t n_steps)
{
    struct model model = { .random = random, .n_keys = n_keys, .has_long_keys = has_long_keys };

    assert_int_equal(kinf_indexer_new(NULL, 0, &model.indexer, NULL), 0);
    add_index(&model);
    for (size_t i = 0; i < n_steps; i++)
        step(&model);
    while (model.n_held != 0)
        let_go(&model);
    twin_release(&model.twin);
    kinf_indexer_free(model.indexer);
    assert_int_equal(kinf__object_count(), 0);
}

static void writes_agree_with_a_sorted_array_and_snapshots_stay(void **state)
{
    struct test_random random = test_random_init("indexer model");

    (void)state;
    run_model(&random, 12, false, test_rounds(9000));
    run_model(&random, 400, true, test_rounds(9000));
    run_model(&random, 100000, false, test_rounds(9000));
}

/* --- that the check fires --- */

#define assert_breaks(snapshot, field, broken, expected)                                           \
    do {                                                                                           \
        __typeof__(field) whole_ = (field);                                                        \
        (field) = (broken);                                                                        \
        assert_non_null(kinf__snapshot_check(snapshot));                                           \
        assert_string_equal(kinf__snapshot_check(snapshot), expected);                             \
        (field) = whole_;                                                                          \
        assert_null(kinf__snapshot_check(snapshot));                                               \
    } while (0)

static void the_check_sees_an_index_that_differs_from_its_entries(void **state)
{
    const struct kinf_index by_word = { "byWord", NULL, index_by_word, NULL };
    struct kinf_indexer *indexer;
    struct kinf_snapshot *snapshot;
    struct kinf__tree empty = { NULL, true }, other;

    (void)state;
    assert_int_equal(kinf_indexer_new(&by_word, 1, &indexer, NULL), 0);
    indexer_add(indexer, "a", "1", "x");
    snapshot = kinf_indexer_snapshot(indexer);
    indexer_add(indexer, "b", "2", "");
    indexer_add(indexer, "a", "3", "x,y");
    {
        kinf_auto_snapshot struct kinf_snapshot *later = kinf_indexer_snapshot(indexer);

        other = later->indices[0];
        assert_breaks(snapshot, snapshot->count, 2, "wrong count of objects");
        assert_breaks(snapshot, snapshot->indices[0], empty, "value missing in its index");
        assert_breaks(snapshot, snapshot->indices[0], other, "value missing in its index");
        assert_breaks(snapshot, snapshot->set->n, 0, "entry made for other indices");
        assert_breaks(snapshot, snapshot->items.root->entries[0]->starts[1],
                      snapshot->items.root->entries[0]->starts[0],
                      "index has values that no entry has");
        assert_breaks(snapshot, snapshot->items.root->fragments[0], 0, "wrong fragment");
        assert_breaks(snapshot, snapshot->indices[0].root->fragments[0], 0,
                      "value missing in its index");
    }
    kinf_snapshot_unref(snapshot);
    kinf_indexer_free(indexer);
}

/* --- threads --- */

#define N_THREAD_KEYS 300

/* Assertions of cmocka belong to the thread that runs the test. */
static void must(bool holds)
{
    if (!holds)
        abort();
}

struct threads {
    struct kinf_indexer *indexer;
    _Atomic(bool) is_over;
    uint64_t seed;
};

/* Each version holds its objects sorted, as many as it counts, and finds each by its words. */
static void read_snapshot(struct threads *threads, struct test_random *random)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(threads->indexer);
    const struct kinf_object *object, *last = NULL;
    const char *word = random_word(random);
    struct kinf_cursor cursor;
    size_t n = 0, n_by_scan = 0, n_by_index = 0;

    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        must(last == NULL || strcmp(kinf_object_key(last), kinf_object_key(object)) < 0);
        n_by_scan += has_word(object, word);
        last = object;
        n++;
    }
    must(kinf_cursor_index(&cursor, snapshot, "byWord", kinf_str_from(word), NULL) == 0);
    while ((object = kinf_cursor_next(&cursor)) != NULL)
        n_by_index += has_word(object, word);
    must(n == kinf_snapshot_count(snapshot) && n_by_index == n_by_scan);
}

static void *read_on(void *ctx)
{
    struct threads *threads = ctx;
    struct test_random random = { threads->seed ^ (uint64_t)(uintptr_t)&random };
    struct kinf_snapshot *held = kinf_indexer_snapshot(threads->indexer);
    char key[32];

    while (!atomic_load(&threads->is_over)) {
        const struct kinf_object *object;

        read_snapshot(threads, &random);
        for (int i = 0; i < 20; i++) {
            snprintf(key, sizeof key, "ns/%zu", test_random_below(&random, N_THREAD_KEYS));
            if (kinf_indexer_get_by_key(threads->indexer, key, &object) < 0)
                continue;
            must(strcmp(kinf_object_key(object), key) == 0);
            kinf_object_unref(object);
        }
        if (test_random_below(&random, 8) == 0) {
            kinf_snapshot_unref(held);
            held = kinf_indexer_snapshot(threads->indexer);
        }
    }
    kinf_snapshot_unref(held);
    return NULL;
}

static const struct kinf_object *thread_object(struct test_random *random)
{
    char key[32];

    snprintf(key, sizeof key, "ns/%zu", test_random_below(random, N_THREAD_KEYS));
    return indexer_object(key, "1", random_word(random));
}

static void write_on(struct threads *threads, struct test_random *random, size_t n_writes)
{
    for (size_t i = 0; i < n_writes; i++) {
        const struct kinf_object *objects[50];
        size_t n = i % 64 == 0 ? 50 : 1;

        for (size_t k = 0; k < n; k++)
            objects[k] = thread_object(random);
        if (n > 1)
            must(kinf_indexer_replace(threads->indexer, objects, n, "2", NULL) == 0);
        else if (test_random_below(random, 3) != 0)
            must(kinf_indexer_add(threads->indexer, objects[0], NULL, NULL) == 0);
        else
            must(kinf_indexer_delete(threads->indexer, kinf_object_key(objects[0]), NULL, NULL,
                                     NULL) == 0);
        for (size_t k = 0; k < n; k++)
            kinf_object_unref(objects[k]);
    }
}

static void *write_too(void *ctx)
{
    static const struct kinf_index more[] = { { "byLetter", NULL, index_by_letter, NULL },
                                              { "byNamespace", NULL, index_by_namespace, NULL } };
    struct threads *threads = ctx;
    struct test_random random = { threads->seed + 1 };

    for (size_t i = 0; i < 2; i++) {
        write_on(threads, &random, test_rounds(4000));
        must(kinf_indexer_add_indices(threads->indexer, &more[i], 1, NULL) == 0);
    }
    return NULL;
}

static void readers_see_whole_versions_while_writers_write(void **state)
{
    const struct kinf_index by_word = { "byWord", NULL, index_by_word, NULL };
    struct test_random random = test_random_init("indexer threads");
    struct threads threads = { .seed = random.state };
    pthread_t readers[3], writer;

    (void)state;
    assert_int_equal(kinf_indexer_new(&by_word, 1, &threads.indexer, NULL), 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_on, &threads), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_too, &threads), 0);
    write_on(&threads, &random, test_rounds(8000));
    pthread_join(writer, NULL);
    atomic_store(&threads.is_over, true);
    for (size_t i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    indexer_check(threads.indexer);
    kinf_indexer_free(threads.indexer);
    assert_int_equal(kinf__object_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_agree_with_a_sorted_array_and_snapshots_stay),
        cmocka_unit_test(the_check_sees_an_index_that_differs_from_its_entries),
        cmocka_unit_test(readers_see_whole_versions_while_writers_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
