/*
 * DeltaFIFO in order of arrival against a naive twin: random calls, also from the callback while a
 * batch is in process. The twin is a plain list of what was called, each entry with the state that
 * the server had then. After each step both hold the same; after each batch the consumer's store is
 * that state exactly, and so is the resourceVersion.
 */
#include "deltafifo/deltafifo_priv.h"

#include <stdio.h>
#include <string.h>

#include "unit/deltafifo_history.h"

enum { n_keys = history_n_keys, n_entries_most = 1024 };

struct twin_entry {
    enum kinf_delta_type type;
    const struct kinf_object *object;
    const struct kinf_object *list[history_n_list_most];
    size_t n_list;
    unsigned own_rv; /* of a list or bookmark */
    /* Of the store when this was processed. */
    unsigned rv_after;
    const struct kinf_object *state_after[n_keys];
};

struct twin {
    struct twin_entry entries[n_entries_most]; /* all that ever came */
    size_t n_entries;
    size_t n_taken;
    size_t n_in_process; /* the last of those taken */
    bool in_process_is_initial;
    bool populated;
    size_t initial_count;
    unsigned processed_rv;
};

struct model {
    struct kinf_deltafifo *fifo;
    struct fifo_history history;
    struct twin twin;
    bool aborts; /* from the next callback */
    const struct kinf_object *store[n_keys];
};

/* --- the twin: upstream's rules --- */

static struct twin_entry *twin_newest(struct twin *twin)
{
    return twin->n_entries != 0 ? &twin->entries[twin->n_entries - 1] : NULL;
}

static struct twin_entry *twin_push(struct model *m, enum kinf_delta_type type)
{
    const struct twin_entry *before = twin_newest(&m->twin);
    struct twin_entry *entry = &m->twin.entries[m->twin.n_entries];

    assert_true(m->twin.n_entries < n_entries_most);
    entry->type = type;
    entry->rv_after = before != NULL ? before->rv_after : 0;
    memcpy(entry->state_after, m->history.truth, sizeof entry->state_after);
    m->twin.n_entries++;
    return entry;
}

static void twin_change(struct model *m, enum kinf_delta_type type,
                        const struct kinf_object *object)
{
    struct twin_entry *entry = twin_push(m, type);

    entry->object = object;
    if (history_version_of(object) != 0)
        entry->rv_after = history_version_of(object);
    m->twin.populated = true;
}

static void twin_replace(struct model *m, const struct kinf_object *const *list, size_t n_list)
{
    struct twin_entry *entry = twin_push(m, KINF_DELTA_REPLACED_ALL);

    memcpy(entry->list, list, n_list * sizeof list[0]);
    entry->n_list = n_list;
    entry->own_rv = entry->rv_after = m->history.server_rv;
    if (!m->twin.populated)
        m->twin.initial_count = m->twin.n_entries - m->twin.n_taken;
    m->twin.populated = true;
}

static void twin_bookmark(struct model *m)
{
    struct twin_entry *entry = twin_newest(&m->twin);

    if (m->twin.n_taken == m->twin.n_entries || entry->type != KINF_DELTA_BOOKMARK)
        entry = twin_push(m, KINF_DELTA_BOOKMARK);
    entry->own_rv = entry->rv_after = m->history.server_rv;
}

static bool twin_has_synced(const struct twin *twin)
{
    return twin->populated && twin->initial_count == 0;
}

/* Whether the entry can leave together with the n in front of it. */
static bool twin_joins(const struct twin_entry *entry, size_t n)
{
    for (const struct twin_entry *other = entry - n; other < entry; other++) {
        if (other->object == NULL || entry->object == NULL ||
            history_key_of(other->object) == history_key_of(entry->object))
            return false;
    }
    return true;
}

static void twin_begin(struct twin *twin)
{
    size_t n = 0;

    while (twin->n_taken + n < twin->n_entries && n < KINF_FIFO_BATCH_MAX &&
           twin_joins(&twin->entries[twin->n_taken + n], n))
        n++;
    twin->n_taken += n;
    twin->n_in_process = n;
    twin->in_process_is_initial = twin->initial_count != 0;
}

static void twin_finish(struct twin *twin)
{
    if (twin->in_process_is_initial)
        twin->initial_count--;
    twin->processed_rv = twin->entries[twin->n_taken - 1].rv_after;
    twin->n_in_process = 0;
}

/* --- both are the same --- */

static void expect_equal_list(const struct twin_entry *expected,
                              const struct kinf_object *const *objects, size_t n_objects,
                              const char *rv)
{
    assert_int_equal(strtoul(rv, NULL, 10), expected->own_rv);
    assert_int_equal(n_objects, expected->n_list);
    for (size_t i = 0; i < n_objects; i++)
        assert_ptr_equal(objects[i], expected->list[i]);
}

static void expect_equal_batch(const struct twin *twin, const struct kinf_deltas *deltas)
{
    const struct twin_entry *expected = &twin->entries[twin->n_taken - twin->n_in_process];

    assert_null(deltas->key);
    assert_int_equal(deltas->n_items, twin->n_in_process);
    for (size_t i = 0; i < deltas->n_items; i++) {
        const struct kinf_delta *delta = &deltas->items[i];

        assert_int_equal(delta->type, expected[i].type);
        assert_ptr_equal(delta->object, expected[i].object);
        assert_false(delta->final_state_unknown);
        if (delta->resource_version != NULL)
            expect_equal_list(&expected[i], delta->objects, delta->n_objects,
                              delta->resource_version);
        else
            assert_int_equal(expected[i].own_rv, 0);
    }
}

static size_t expect_equal_entry(const struct twin_entry *expected,
                                 const struct kinf__fifo_entry *entry)
{
    size_t n_bytes = expected->object != NULL ? kinf_object_size(expected->object) : 0;

    assert_int_equal(entry->type, expected->type);
    assert_ptr_equal(entry->object, expected->object);
    if (entry->list != NULL)
        expect_equal_list(expected, entry->list->objects, entry->list->n_objects, entry->list->rv);
    else
        assert_int_equal(expected->own_rv, 0);
    for (size_t i = 0; i < expected->n_list; i++)
        n_bytes += kinf_object_size(expected->list[i]);
    return n_bytes;
}

static unsigned processed_rv(struct model *m)
{
    char rv[KINF__FIFO_RV_SIZE];

    assert_int_equal(kinf_deltafifo_resource_version(m->fifo, rv, sizeof rv), 0);
    return (unsigned)strtoul(rv, NULL, 10);
}

static void expect_same(struct model *m)
{
    const struct kinf__in_order *queue = &m->fifo->in_order;
    const struct twin *twin = &m->twin;
    size_t n_bytes = 0;

    assert_true(kinf__deltafifo_check(m->fifo));
    assert_int_equal(kinf_deltafifo_len(m->fifo), twin->n_entries - twin->n_taken);
    assert_int_equal(kinf_deltafifo_has_synced(m->fifo), twin_has_synced(twin));
    assert_int_equal(processed_rv(m), twin->processed_rv);
    for (size_t i = 0; i < twin->n_entries - twin->n_taken; i++)
        n_bytes += expect_equal_entry(&twin->entries[twin->n_taken + i],
                                      &queue->ring[(queue->head + i) % queue->n_allocated]);
    assert_int_equal(kinf_deltafifo_bytes(m->fifo), n_bytes);
}

/* --- random calls --- */

/* Now and then with an object without a resourceVersion. */
static void change_one(struct model *m)
{
    const struct kinf_object *object;
    enum kinf_delta_type type = history_change(&m->history, &object);

    if (history_below(&m->history, 16) == 0) {
        size_t key = history_key_of(object);

        object = history_make(&m->history, key, 0);
        m->history.truth[key] = type == KINF_DELTA_DELETED ? NULL : object;
    }
    if (type == KINF_DELTA_ADDED)
        assert_int_equal(kinf_deltafifo_add(m->fifo, object, NULL), 0);
    else if (type == KINF_DELTA_UPDATED)
        assert_int_equal(kinf_deltafifo_update(m->fifo, object, NULL), 0);
    else
        assert_int_equal(kinf_deltafifo_delete(m->fifo, object, NULL), 0);
    twin_change(m, type, object);
}

static void replace(struct model *m)
{
    const struct kinf_object *list[history_n_list_most];
    size_t n_list = history_list(&m->history, list);
    char rv[16];

    snprintf(rv, sizeof rv, "%u", m->history.server_rv);
    assert_int_equal(kinf_deltafifo_replace(m->fifo, list, n_list, rv, NULL), 0);
    twin_replace(m, list, n_list);
}

static void bookmark(struct model *m)
{
    char rv[16];

    snprintf(rv, sizeof rv, "%u", ++m->history.server_rv);
    assert_int_equal(kinf_deltafifo_bookmark(m->fifo, rv, NULL), 0);
    twin_bookmark(m);
}

static void resync(struct model *m)
{
    assert_int_equal(kinf_deltafifo_resync(m->fifo, NULL), 0);
    twin_push(m, KINF_DELTA_SYNC_ALL);
}

static void call_something(struct model *m)
{
    size_t dice = history_below(&m->history, 32);

    /* At first rather what does not populate the queue. */
    if (!m->twin.populated)
        dice += history_below(&m->history, 16);
    if (dice < 24)
        change_one(m);
    else if (dice < 27)
        replace(m);
    else if (dice < 29 || dice > 40)
        resync(m);
    else
        bookmark(m);
    expect_same(m);
}

static void call_some(struct model *m, size_t n_most)
{
    for (size_t n = history_below(&m->history, n_most + 1); n > 0; n--)
        call_something(m);
}

static void apply(struct model *m, const struct kinf_delta *delta)
{
    if (delta->type == KINF_DELTA_REPLACED_ALL)
        memset(m->store, 0, sizeof m->store);
    for (size_t i = 0; i < delta->n_objects; i++)
        m->store[history_key_of(delta->objects[i])] = delta->objects[i];
    if (delta->object != NULL)
        m->store[history_key_of(delta->object)] =
            delta->type == KINF_DELTA_DELETED ? NULL : delta->object;
}

static void abort_both(struct model *m)
{
    kinf_deltafifo_abort(m->fifo);
    m->twin.n_entries = m->twin.n_taken;
    expect_same(m);
}

static int process(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct model *m = ctx;

    assert_int_equal(in_initial_list, !twin_has_synced(&m->twin));
    twin_begin(&m->twin);
    expect_equal_batch(&m->twin, deltas);
    expect_same(m);
    if (m->aborts)
        abort_both(m);
    else
        call_some(m, 3);
    for (size_t i = 0; i < deltas->n_items; i++)
        apply(m, &deltas->items[i]);
    if (!m->aborts)
        call_some(m, 3);
    expect_equal_batch(&m->twin, deltas);
    return 0;
}

/* Returns what pop returned. */
static int pop(struct model *m, kinf_pop_process_cb *callback)
{
    int rc = kinf_deltafifo_pop(m->fifo, callback, m, 0);

    if (rc == 0) {
        const struct twin_entry *newest = &m->twin.entries[m->twin.n_taken - 1];

        twin_finish(&m->twin);
        for (size_t key = 0; key < n_keys; key++)
            assert_ptr_equal(m->store[key], newest->state_after[key]);
    }
    expect_same(m);
    return rc;
}

static int process_last(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct model *m = ctx;

    (void)in_initial_list;
    twin_begin(&m->twin);
    expect_equal_batch(&m->twin, deltas);
    for (size_t i = 0; i < deltas->n_items; i++)
        apply(m, &deltas->items[i]);
    return 0;
}

static void drain_and_compare_with_history(struct model *m)
{
    int rc;

    kinf_deltafifo_close(m->fifo);
    while ((rc = pop(m, process_last)) == 0)
        ;
    assert_int_equal(rc, KINF_ERR_STOPPED);
    for (size_t key = 0; key < n_keys; key++)
        assert_ptr_equal(m->store[key], m->history.truth[key]);
}

static void end_by_abort(struct model *m)
{
    m->aborts = true;
    if (pop(m, process) != 0)
        abort_both(m);
    assert_int_equal(pop(m, process), KINF_ERR_STOPPED);
}

static void run(struct test_random *random)
{
    struct kinf_deltafifo_options options = KINF_DELTAFIFO_OPTIONS_INIT;
    struct model *m = calloc(1, sizeof *m);

    assert_non_null(m);
    m->history.random.state = test_random_next(random);
    options.order = KINF_FIFO_IN_ORDER;
    assert_int_equal(kinf_deltafifo_new(&options, &m->fifo, NULL), 0);
    for (size_t n = 0; n < 60; n++) {
        if (history_below(&m->history, 3) == 0)
            call_something(m);
        else if (pop(m, process) != 0)
            assert_int_equal(kinf_deltafifo_len(m->fifo), 0);
    }
    if (history_below(&m->history, 4) == 0)
        end_by_abort(m);
    else
        drain_and_compare_with_history(m);
    kinf_deltafifo_free(m->fifo);
    history_release(&m->history);
    free(m);
}

static void random_calls_keep_queue_and_twin_equal(void **state)
{
    (void)state;
    test_model(__func__, 2000, run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_calls_keep_queue_and_twin_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
