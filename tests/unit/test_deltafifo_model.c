/*
 * DeltaFIFO by key against a naive twin: random calls, also from the callback while an item is in
 * process. The twin is upstream's rules written down over plain arrays, and what ours adds for the
 * key in process. After each step both hold the same; when all is drained the consumer's store is
 * what the history says.
 */
#include "deltafifo/deltafifo_priv.h"

#include <stdio.h>
#include <string.h>

#include "unit/deltafifo_history.h"

enum { n_keys = history_n_keys, n_deltas_most = 256 };

struct twin_item {
    size_t key;
    struct kinf_delta deltas[n_deltas_most];
    size_t n_deltas;
    unsigned rv_before;
};

struct twin {
    struct twin_item items[n_keys]; /* in order of arrival */
    size_t n_items;
    struct twin_item in_process;
    bool is_in_process;
    bool in_process_is_initial;
    bool populated;
    size_t initial_count;
    unsigned last_rv;
};

struct model {
    struct kinf_deltafifo *fifo;
    struct fifo_history history;
    bool replaces_as_sync;
    bool knows; /* the queue is told what the store has */
    struct twin twin;
    const struct kinf_object *store[n_keys]; /* what the consumer stored */
};

static int each_stored(kinf_known_object_cb *callback, void *callback_ctx, void *ctx)
{
    const struct model *m = ctx;
    int rc = 0;

    for (size_t key = 0; key < n_keys && rc == 0; key++) {
        if (m->store[key] != NULL)
            rc = callback(m->store[key], callback_ctx);
    }
    return rc;
}

static bool has_stored_key(const char *key, void *ctx)
{
    const struct model *m = ctx;

    return m->store[key[0] - 'a'] != NULL;
}

/* --- the twin: upstream's rules --- */

static struct twin_item *twin_find(struct twin *twin, size_t key)
{
    for (size_t i = 0; i < twin->n_items; i++) {
        if (twin->items[i].key == key)
            return &twin->items[i];
    }
    return NULL;
}

static bool twin_processes(const struct twin *twin, size_t key)
{
    return twin->is_in_process && twin->in_process.key == key;
}

static void twin_dedup(struct twin_item *item)
{
    struct kinf_delta *newer = &item->deltas[item->n_deltas - 1], *older = newer - 1;

    if (item->n_deltas < 2 || newer->type != KINF_DELTA_DELETED ||
        older->type != KINF_DELTA_DELETED)
        return;
    if (older->final_state_unknown)
        *older = *newer;
    item->n_deltas--;
}

static void twin_enqueue(struct twin *twin, enum kinf_delta_type type, bool is_tombstone,
                         const struct kinf_object *object)
{
    struct twin_item *item = twin_find(twin, history_key_of(object));

    if (item == NULL) {
        item = &twin->items[twin->n_items++];
        item->key = history_key_of(object);
        item->n_deltas = 0;
        item->rv_before = twin->last_rv;
    }
    assert_true(item->n_deltas < n_deltas_most);
    item->deltas[item->n_deltas++] =
        (struct kinf_delta){ .type = type, .final_state_unknown = is_tombstone, .object = object };
    twin_dedup(item);
}

static void twin_delete(struct model *m, const struct kinf_object *object)
{
    size_t key = history_key_of(object);

    if (twin_find(&m->twin, key) != NULL || twin_processes(&m->twin, key) ||
        (m->knows && m->store[key] != NULL))
        twin_enqueue(&m->twin, KINF_DELTA_DELETED, false, object);
}

/* The server went back if it is at a lower version: what was received before counts for nothing. */
static void twin_forget(struct twin *twin, unsigned list_rv)
{
    if (list_rv >= twin->last_rv)
        return;
    twin->last_rv = 0;
    twin->in_process.rv_before = 0;
    for (size_t i = 0; i < twin->n_items; i++)
        twin->items[i].rv_before = 0;
}

static size_t twin_bury_queued(struct twin *twin, const bool *is_listed)
{
    size_t n_buried = 0;

    for (size_t i = 0; i < twin->n_items; i++) {
        struct twin_item *item = &twin->items[i];

        if (is_listed[item->key])
            continue;
        n_buried++;
        twin_enqueue(twin, KINF_DELTA_DELETED, true, item->deltas[item->n_deltas - 1].object);
    }
    return n_buried;
}

static size_t twin_bury_in_process(struct twin *twin, const bool *is_listed)
{
    const struct kinf_delta *newest;

    if (!twin->is_in_process)
        return 0;
    newest = &twin->in_process.deltas[twin->in_process.n_deltas - 1];
    if (is_listed[twin->in_process.key] || newest->type == KINF_DELTA_DELETED ||
        twin_find(twin, twin->in_process.key) != NULL)
        return 0;
    twin_enqueue(twin, KINF_DELTA_DELETED, true, newest->object);
    return 1;
}

static size_t twin_bury_known(struct model *m, const bool *is_listed)
{
    size_t n_buried = 0;

    for (size_t key = 0; key < n_keys && m->knows; key++) {
        if (m->store[key] == NULL || is_listed[key] || twin_find(&m->twin, key) != NULL ||
            twin_processes(&m->twin, key))
            continue;
        n_buried++;
        twin_enqueue(&m->twin, KINF_DELTA_DELETED, true, m->store[key]);
    }
    return n_buried;
}

static void twin_replace(struct model *m, const struct kinf_object *const *list, size_t n_list,
                         unsigned list_rv)
{
    struct twin *twin = &m->twin;
    bool is_listed[n_keys] = { false };
    size_t n_initial = 0;

    twin_forget(twin, list_rv);
    for (size_t i = 0; i < n_list; i++) {
        n_initial += !is_listed[history_key_of(list[i])];
        is_listed[history_key_of(list[i])] = true;
        twin_enqueue(twin, m->replaces_as_sync ? KINF_DELTA_SYNC : KINF_DELTA_REPLACED, false,
                     list[i]);
    }
    n_initial += twin_bury_queued(twin, is_listed);
    n_initial += twin_bury_in_process(twin, is_listed);
    n_initial += twin_bury_known(m, is_listed);
    if (!twin->populated)
        twin->initial_count = n_initial;
    twin->populated = true;
    twin->last_rv = list_rv;
}

static void twin_resync(struct model *m)
{
    for (size_t key = 0; key < n_keys && m->knows; key++) {
        if (m->store[key] != NULL && twin_find(&m->twin, key) == NULL &&
            !twin_processes(&m->twin, key))
            twin_enqueue(&m->twin, KINF_DELTA_SYNC, false, m->store[key]);
    }
}

static bool twin_has_synced(const struct twin *twin)
{
    return twin->populated && twin->initial_count == 0;
}

static void twin_begin(struct twin *twin)
{
    twin->in_process = twin->items[0];
    twin->is_in_process = true;
    twin->in_process_is_initial = twin->initial_count != 0;
    twin->n_items--;
    memmove(&twin->items[0], &twin->items[1], twin->n_items * sizeof twin->items[0]);
}

static void twin_finish(struct twin *twin)
{
    if (twin->in_process_is_initial)
        twin->initial_count--;
    twin->is_in_process = false;
}

static unsigned twin_processed_rv(const struct twin *twin)
{
    if (twin->is_in_process)
        return twin->in_process.rv_before;
    return twin->n_items != 0 ? twin->items[0].rv_before : twin->last_rv;
}

/* --- both are the same --- */

static void expect_equal_deltas(const struct twin_item *expected, const struct kinf_delta *deltas,
                                size_t n_deltas)
{
    assert_int_equal(n_deltas, expected->n_deltas);
    for (size_t i = 0; i < n_deltas; i++) {
        assert_int_equal(deltas[i].type, expected->deltas[i].type);
        assert_int_equal(deltas[i].final_state_unknown, expected->deltas[i].final_state_unknown);
        assert_ptr_equal(deltas[i].object, expected->deltas[i].object);
    }
}

static unsigned processed_rv(struct model *m)
{
    char rv[KINF__FIFO_RV_SIZE];

    assert_int_equal(kinf_deltafifo_resource_version(m->fifo, rv, sizeof rv), 0);
    return (unsigned)strtoul(rv, NULL, 10);
}

/* What the bound promises: no watch event up to it is still to be processed. */
static void expect_all_above(const struct twin_item *item, unsigned rv)
{
    for (size_t i = 0; i < item->n_deltas; i++) {
        const struct kinf_delta *delta = &item->deltas[i];
        bool is_event = delta->type <= KINF_DELTA_DELETED && !delta->final_state_unknown;

        assert_true(!is_event || history_version_of(delta->object) > rv);
    }
}

static void expect_same(struct model *m)
{
    struct twin *twin = &m->twin;
    size_t i = 0, n_bytes = 0;

    assert_true(kinf__deltafifo_check(m->fifo));
    assert_int_equal(kinf_deltafifo_len(m->fifo), twin->n_items);
    assert_int_equal(kinf_deltafifo_has_synced(m->fifo), twin_has_synced(twin));
    assert_int_equal(processed_rv(m), twin_processed_rv(twin));
    if (twin->is_in_process)
        expect_all_above(&twin->in_process, processed_rv(m));
    KINF__LIST_FOR_EACH (node, &m->fifo->keyed.queue) {
        const struct kinf__fifo_item *item =
            KINF__LIST_ENTRY(node, struct kinf__fifo_item, in_queue);

        expect_equal_deltas(&twin->items[i], item->deltas, item->n_deltas);
        expect_all_above(&twin->items[i], processed_rv(m));
        n_bytes += kinf__fifo_item_bytes(item);
        i++;
    }
    assert_int_equal(kinf_deltafifo_bytes(m->fifo), n_bytes);
}

/* --- random calls --- */

static void change_one(struct model *m)
{
    const struct kinf_object *object;
    enum kinf_delta_type type = history_change(&m->history, &object);

    if (type == KINF_DELTA_ADDED)
        assert_int_equal(kinf_deltafifo_add(m->fifo, object, NULL), 0);
    else if (type == KINF_DELTA_UPDATED)
        assert_int_equal(kinf_deltafifo_update(m->fifo, object, NULL), 0);
    else
        assert_int_equal(kinf_deltafifo_delete(m->fifo, object, NULL), 0);
    if (type == KINF_DELTA_DELETED)
        twin_delete(m, object);
    else
        twin_enqueue(&m->twin, type, false, object);
    m->twin.populated = true;
    m->twin.last_rv = m->history.server_rv;
}

static void replace(struct model *m)
{
    const struct kinf_object *list[history_n_list_most];
    size_t n_list = history_list(&m->history, list);
    char rv[16];

    snprintf(rv, sizeof rv, "%u", m->history.server_rv);
    twin_replace(m, list, n_list, m->history.server_rv);
    assert_int_equal(kinf_deltafifo_replace(m->fifo, list, n_list, rv, NULL), 0);
}

static void bookmark(struct model *m)
{
    char rv[16];

    snprintf(rv, sizeof rv, "%u", ++m->history.server_rv);
    assert_int_equal(kinf_deltafifo_bookmark(m->fifo, rv, NULL), 0);
    m->twin.last_rv = m->history.server_rv;
}

static void call_something(struct model *m)
{
    size_t dice = history_below(&m->history, 32);

    if (dice < 24) {
        change_one(m);
    } else if (dice < 27) {
        replace(m);
    } else if (dice < 30) {
        assert_int_equal(kinf_deltafifo_resync(m->fifo, NULL), 0);
        twin_resync(m);
    } else {
        bookmark(m);
    }
    expect_same(m);
}

static void call_some(struct model *m, size_t n_most)
{
    for (size_t n = history_below(&m->history, n_most + 1); n > 0; n--)
        call_something(m);
}

static int process(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct model *m = ctx;
    const struct kinf_delta *newest = &deltas->items[deltas->n_items - 1];
    size_t key = (size_t)(deltas->key[0] - 'a');

    assert_int_equal(in_initial_list, !twin_has_synced(&m->twin));
    twin_begin(&m->twin);
    assert_int_equal(m->twin.in_process.key, key);
    expect_equal_deltas(&m->twin.in_process, deltas->items, deltas->n_items);
    expect_same(m);
    call_some(m, 3);
    m->store[key] = newest->type == KINF_DELTA_DELETED ? NULL : newest->object;
    call_some(m, 3);
    expect_equal_deltas(&m->twin.in_process, deltas->items, deltas->n_items);
    return 0;
}

/* Whether something was there to be popped. */
static bool pop(struct model *m)
{
    int rc = kinf_deltafifo_pop(m->fifo, process, m, 0);

    if (rc == 0)
        twin_finish(&m->twin);
    else
        assert_int_equal(rc, kinf_deltafifo_len(m->fifo) == 0 ? KINF_ERR_TIMEOUT : 0);
    expect_same(m);
    return rc == 0;
}

static int process_last(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct model *m = ctx;
    const struct kinf_delta *newest = &deltas->items[deltas->n_items - 1];

    (void)in_initial_list;
    m->store[deltas->key[0] - 'a'] = newest->type == KINF_DELTA_DELETED ? NULL : newest->object;
    return 0;
}

/* Without known objects a delete that was missed stays missed. */
static void drain_and_compare_with_history(struct model *m)
{
    while (kinf_deltafifo_pop(m->fifo, process_last, m, 0) == 0)
        assert_true(kinf__deltafifo_check(m->fifo));
    for (size_t key = 0; key < n_keys && m->knows; key++)
        assert_ptr_equal(m->store[key], m->history.truth[key]);
    assert_int_equal(processed_rv(m), m->twin.last_rv);
}

static void run(struct test_random *random)
{
    struct kinf_deltafifo_options options = { .size = sizeof options, .order = KINF_FIFO_KEYED };
    struct model *m = calloc(1, sizeof *m);

    assert_non_null(m);
    m->history.random.state = test_random_next(random);
    m->knows = history_below(&m->history, 4) != 0;
    m->replaces_as_sync = history_below(&m->history, 4) == 0;
    options.replace_as_sync = m->replaces_as_sync;
    if (m->knows)
        options.known = (struct kinf_known_objects){ each_stored, has_stored_key, m };
    for (size_t key = 0; key < n_keys; key++) { /* a store that was filled before */
        if (history_below(&m->history, 4) == 0)
            m->store[key] = m->history.truth[key] =
                history_make(&m->history, key, ++m->history.server_rv);
    }
    assert_int_equal(kinf_deltafifo_new(&options, &m->fifo, NULL), 0);
    for (size_t n = 0; n < 60; n++) {
        if (history_below(&m->history, 3) != 0)
            pop(m);
        else
            call_something(m);
    }
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
