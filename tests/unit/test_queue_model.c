/*
 * The keys of a queue against a naive twin: random adds of all kinds, takes and dones, in time that
 * goes on by itself now and then. After each step both hold the same. The twin is the guarantees of
 * kinformer/queue.h over a plain array, with a number for each arrival: what came first has the
 * lowest, and what was due in one millisecond has the same.
 */
#include "queue/keys.h"

#include <string.h>

#include "unit/test.h"

enum { n_texts = 12, none = -100 };

struct twin_key {
    bool waits;
    bool is_in_process;
    int priority;   /* waits, or is_in_process */
    int again;      /* none, or the priority by which it waits again */
    int later;      /* none, or that of what is for later */
    int64_t due_ms; /* of later */
    uint64_t place; /* of what waits */
    unsigned n_requeues;
};

struct model {
    struct test_random random;
    struct kinf__keys keys;
    struct kinf__queue_key *taken[n_texts]; /* NULL: not in process */
    struct twin_key twin[n_texts];
    uint64_t n_places;
    uint64_t n_adds;
    int64_t now_ms;
};

static size_t below(struct model *m, size_t limit)
{
    return test_random_below(&m->random, limit);
}

static uint64_t hash_of(const char *text)
{
    return kinf__hash(kinf_str_from(text));
}

static const char *text_of(size_t i)
{
    static char text[] = "namespace/x";

    text[sizeof text - 2] = (char)('a' + i);
    return text;
}

/* --- the twin --- */

static int higher(int a, int b)
{
    return a > b ? a : b;
}

static void twin_add(struct model *m, struct twin_key *key, int priority, uint64_t place)
{
    m->n_adds += key->is_in_process ? key->again == none : !key->waits;
    if (key->is_in_process) {
        key->again = higher(key->again, priority);
    } else if (!key->waits || priority > key->priority) {
        key->waits = true;
        key->priority = priority;
        key->place = place;
    }
}

static struct twin_key *twin_first_due(struct model *m)
{
    struct twin_key *first = NULL;

    for (size_t i = 0; i < n_texts; i++) {
        struct twin_key *key = &m->twin[i];

        if (key->later != none && key->due_ms <= m->now_ms &&
            (first == NULL || key->due_ms < first->due_ms))
            first = key;
    }
    return first;
}

static void twin_wake(struct model *m)
{
    int64_t due_ms = INT64_MIN;
    struct twin_key *key;

    while ((key = twin_first_due(m)) != NULL) {
        int priority = key->later;

        if (key->due_ms != due_ms)
            m->n_places++;
        due_ms = key->due_ms;
        key->later = none;
        twin_add(m, key, priority, m->n_places);
    }
}

/* NULL: none waits. */
static const struct twin_key *twin_next(const struct model *m)
{
    const struct twin_key *next = NULL;

    for (size_t i = 0; i < n_texts; i++) {
        const struct twin_key *key = &m->twin[i];

        if (key->waits && (next == NULL || key->priority > next->priority ||
                           (key->priority == next->priority && key->place < next->place)))
            next = key;
    }
    return next;
}

/* --- both are the same --- */

static void expect_same_key(const struct model *m, size_t i)
{
    const struct twin_key *twin = &m->twin[i];
    const struct kinf__queue_key *key = kinf__keys_find(&m->keys, text_of(i), hash_of(text_of(i)));
    bool is_there =
        twin->waits || twin->is_in_process || twin->later != none || twin->n_requeues != 0;

    assert_int_equal(key != NULL, is_there);
    if (key == NULL)
        return;
    assert_int_equal(key->state == KINF__KEY_WAITING, twin->waits);
    assert_int_equal(key->state == KINF__KEY_IN_PROCESS, twin->is_in_process);
    if (twin->waits || twin->is_in_process)
        assert_int_equal(key->priority, twin->priority);
    assert_int_equal(key->waits_again ? key->again_priority : none, twin->again);
    assert_int_equal(key->later.is_set ? key->later_priority : none, twin->later);
    if (twin->later != none)
        assert_int_equal(key->later.at_ms, twin->due_ms);
}

static void expect_same(const struct model *m)
{
    assert_true(kinf__keys_check(&m->keys));
    assert_int_equal(m->keys.n_adds, m->n_adds);
    for (size_t i = 0; i < n_texts; i++)
        expect_same_key(m, i);
}

/* --- random calls --- */

static void add_some(struct model *m)
{
    size_t i = below(m, n_texts);
    enum kinf_priority priority = (enum kinf_priority)((int)below(m, KINF_N_PRIORITIES) - 1);
    int64_t delay_ms = below(m, 2) == 0 ? (int64_t)below(m, 20) : 0;
    struct twin_key *twin = &m->twin[i];
    struct kinf__queue_key *key;

    assert_int_equal(kinf__keys_provide(&m->keys, text_of(i), hash_of(text_of(i)), &key), 0);
    if (below(m, 4) == 0)
        twin->n_requeues = ++key->n_requeues;
    if (delay_ms > 0) {
        kinf__keys_add_later(&m->keys, key, priority, m->now_ms + delay_ms);
        if (twin->later == none || m->now_ms + delay_ms < twin->due_ms)
            twin->due_ms = m->now_ms + delay_ms;
        twin->later = higher(twin->later, priority);
    } else {
        kinf__keys_add(&m->keys, key, priority, m->now_ms * 1000000);
        twin_add(m, twin, priority, ++m->n_places);
    }
}

static void take(struct model *m)
{
    const struct twin_key *expected = twin_next(m);
    struct twin_key *twin;
    struct kinf__queue_key *key;
    size_t i;

    assert_int_equal(kinf__keys_n_waiting(&m->keys) != 0, expected != NULL);
    if (expected == NULL)
        return;
    key = kinf__keys_take(&m->keys, m->now_ms * 1000000);
    i = (size_t)(key->text[strlen(key->text) - 1] - 'a');
    twin = &m->twin[i];
    assert_true(twin->waits);
    assert_int_equal(twin->priority, expected->priority);
    assert_int_equal(twin->place, expected->place);
    assert_true(key->since_ns <= key->began_ns);
    twin->waits = false;
    twin->is_in_process = true;
    m->taken[i] = key;
}

static void give_back(struct model *m)
{
    size_t i = below(m, n_texts);
    struct twin_key *twin = &m->twin[i];

    if (m->taken[i] == NULL)
        return;
    assert_string_equal(m->taken[i]->text, text_of(i));
    kinf__keys_done(&m->keys, m->taken[i]);
    m->taken[i] = NULL;
    twin->is_in_process = false;
    if (twin->again != none) {
        twin->waits = true;
        twin->priority = twin->again;
        twin->again = none;
        twin->place = ++m->n_places;
    }
}

static void forget(struct model *m)
{
    size_t i = below(m, n_texts);
    struct kinf__queue_key *key = kinf__keys_find(&m->keys, text_of(i), hash_of(text_of(i)));

    if (key != NULL)
        kinf__keys_forget(&m->keys, key);
    m->twin[i].n_requeues = 0;
}

static void call_something(struct model *m)
{
    size_t dice = below(m, 16);

    if (below(m, 3) == 0)
        m->now_ms += (int64_t)below(m, 10);
    kinf__keys_wake(&m->keys, m->now_ms);
    twin_wake(m);
    if (dice < 6)
        add_some(m);
    else if (dice < 10)
        take(m);
    else if (dice < 14)
        give_back(m);
    else
        forget(m);
    expect_same(m);
}

static void run(struct test_random *random)
{
    struct model m = { .random = { test_random_next(random) }, .now_ms = 1000 };

    for (size_t i = 0; i < n_texts; i++)
        m.twin[i].again = m.twin[i].later = none;
    kinf__keys_init(&m.keys);
    for (size_t n = 0; n < 200; n++)
        call_something(&m);
    kinf__keys_release(&m.keys);
}

static void random_calls_keep_keys_and_twin_equal(void **state)
{
    (void)state;
    test_model(__func__, 2000, run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_calls_keep_keys_and_twin_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
