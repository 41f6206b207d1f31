/*
 * Many readers beside one writer: every snapshot is one consistent state.
 *
 * The writer changes the two objects of a pair in one transaction, so a snapshot that shows them at
 * different versions shows half of a write. The index has each object's version.
 */
#include <kinformer/indexer.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "indexer/indexer.h"
#include "unit/indexer_fixture.h"
#include "unit/test.h"

#define N_PAIRS   50
#define N_READERS 64
#define N_WRITES  4000

struct world {
    struct kinf_indexer *indexer;
    /* atomic */
    _Atomic(bool) is_over;
    _Atomic(size_t) n_read;
    _Atomic(size_t) n_wrong;
};

/* The uid holds the version, which the index takes for a word. */
static const struct kinf_object *make_half(size_t pair, bool is_second, size_t version)
{
    char key[32], rv[24];

    snprintf(key, sizeof key, "%s/o%zu", is_second ? "b" : "a", pair);
    snprintf(rv, sizeof rv, "%zu", version);
    return indexer_object(key, rv, rv);
}

static void write_pair(struct world *world, size_t pair, size_t version)
{
    kinf_auto_object const struct kinf_object *first = make_half(pair, false, version);
    kinf_auto_object const struct kinf_object *second = make_half(pair, true, version);
    const struct kinf_store_change changes[] = { { .object = first }, { .object = second } };

    assert_int_equal(kinf_indexer_transaction(world->indexer, changes, 2, NULL), 0);
}

/* Whether the index leads from the object's version to the object. */
static bool is_indexed(const struct kinf_snapshot *snapshot, const struct kinf_object *object)
{
    const struct kinf_object *found;
    struct kinf_cursor cursor;

    if (kinf_cursor_index(&cursor, snapshot, "word",
                          kinf_str_from(kinf_object_resource_version(object)), NULL) < 0)
        return false;
    while ((found = kinf_cursor_next(&cursor)) != NULL) {
        if (found == object)
            return true;
    }
    return false;
}

static bool is_consistent(const struct kinf_snapshot *snapshot, size_t pair)
{
    const struct kinf_object *first, *second;
    char key[32];

    snprintf(key, sizeof key, "a/o%zu", pair);
    first = kinf_snapshot_get(snapshot, key);
    key[0] = 'b';
    second = kinf_snapshot_get(snapshot, key);
    return first != NULL && second != NULL &&
           strcmp(kinf_object_resource_version(first), kinf_object_resource_version(second)) == 0 &&
           is_indexed(snapshot, first) && is_indexed(snapshot, second);
}

static size_t count(struct kinf_snapshot *snapshot)
{
    struct kinf_cursor cursor;
    size_t n = 0;

    kinf_cursor_all(&cursor, snapshot);
    while (kinf_cursor_next(&cursor) != NULL)
        n++;
    return n;
}

/* cmocka's assertions belong to the main thread. */
static void *read_on(void *ctx)
{
    struct world *world = ctx;

    while (!atomic_load(&world->is_over)) {
        struct kinf_snapshot *snapshot = kinf_indexer_snapshot(world->indexer);
        bool is_right =
            count(snapshot) == 2 * N_PAIRS && kinf_snapshot_count(snapshot) == 2 * N_PAIRS;

        for (size_t i = 0; i < N_PAIRS; i++)
            is_right = is_right && is_consistent(snapshot, i);
        kinf_snapshot_unref(snapshot);
        atomic_fetch_add(&world->n_wrong, !is_right);
        atomic_fetch_add(&world->n_read, 1);
    }
    return NULL;
}

static void sixty_four_readers_see_whole_writes_only(void **state)
{
    const struct kinf_index index = { .name = "word", .function = index_by_word };
    struct world world = { 0 };
    pthread_t threads[N_READERS];
    size_t n_writes = test_rounds(N_WRITES);

    (void)state;
    assert_int_equal(kinf_indexer_new(&index, 1, &world.indexer, NULL), 0);
    for (size_t i = 0; i < N_PAIRS; i++)
        write_pair(&world, i, 0);
    for (size_t i = 0; i < N_READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &world), 0);
    for (size_t i = 0; i < n_writes || atomic_load(&world.n_read) < 10; i++)
        write_pair(&world, i % N_PAIRS, i + 1);
    atomic_store(&world.is_over, true);
    for (size_t i = 0; i < N_READERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&world.n_wrong), 0);
    indexer_check(world.indexer);
    kinf_indexer_free(world.indexer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixty_four_readers_see_whole_writes_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
