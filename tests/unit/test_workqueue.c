/*
 * Work queues: the order in which keys come out, against a list that is searched.
 */
#include "workloads/workqueue.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/test.h"

#define N_KEYS 40

static void keys_come_out_once_and_when_they_are_due(void **state)
{
    struct kinf__workqueue queue = { 0 };
    struct kinf__work_item *item;

    (void)state;
    assert_true(kinf__workqueue_due_ms(&queue) == KINF__NEVER_MS);
    assert_int_equal(kinf__workqueue_add(&queue, 1, "a", 30), 0);
    assert_int_equal(kinf__workqueue_add(&queue, 2, "a", 20), 0);
    assert_int_equal(kinf__workqueue_add(&queue, 1, "a", 10), 0);
    assert_int_equal(kinf__workqueue_add(&queue, 1, "a", 40), 0);
    assert_int_equal(queue.n_items, 2);
    assert_null(kinf__workqueue_take(&queue, 9));
    item = kinf__workqueue_take(&queue, 10);
    assert_int_equal(item->kind, 1);
    free(item);
    assert_null(kinf__workqueue_take(&queue, 19));
    assert_int_equal(kinf__workqueue_due_ms(&queue), 20);
    kinf__workqueue_release(&queue);
}

/* What is not in the queue is due never. */
static int first_of(const int64_t *due_ms, const uint64_t *order)
{
    int first = -1;

    for (int i = 0; i < N_KEYS; i++) {
        if (due_ms[i] != KINF__NEVER_MS &&
            (first < 0 || due_ms[i] < due_ms[first] ||
             (due_ms[i] == due_ms[first] && order[i] < order[first])))
            first = i;
    }
    return first;
}

static void any_sequence_is_as_a_searched_list(void **state)
{
    struct test_random random = test_random_init("workqueue");
    struct kinf__workqueue queue = { 0 };
    uint64_t order[N_KEYS], n_added = 0;
    int64_t due_ms[N_KEYS];
    char key[16];

    (void)state;
    for (int i = 0; i < N_KEYS; i++)
        due_ms[i] = KINF__NEVER_MS;
    for (size_t round = test_rounds(20000); round > 0; round--) {
        size_t i = test_random_below(&random, N_KEYS);
        int64_t at_ms = (int64_t)test_random_below(&random, 50);

        if (test_random_below(&random, 2) == 0) {
            snprintf(key, sizeof key, "k%zu", i);
            assert_int_equal(kinf__workqueue_add(&queue, (unsigned)i % 3, key, at_ms), 0);
            if (due_ms[i] == KINF__NEVER_MS)
                order[i] = n_added++;
            due_ms[i] = at_ms < due_ms[i] ? at_ms : due_ms[i];
        } else {
            struct kinf__work_item *item = kinf__workqueue_take(&queue, at_ms);
            int first = first_of(due_ms, order);

            assert_int_equal(item != NULL, first >= 0 && due_ms[first] <= at_ms);
            if (item != NULL) {
                snprintf(key, sizeof key, "k%d", first);
                assert_string_equal(item->key, key);
                due_ms[first] = KINF__NEVER_MS;
            }
            free(item);
        }
        assert_true(kinf__workqueue_check(&queue));
    }
    queue.heap[0]->place++;
    assert_false(kinf__workqueue_check(&queue));
    kinf__workqueue_release(&queue);
}

static void want_of_memory_leaves_the_queue_as_it_was(void **state)
{
    struct kinf__workqueue queue = { 0 };
    char key[16];
    int failed;

    (void)state;
    for (int i = 0; i < 70; i++) {
        size_t n = 1;

        snprintf(key, sizeof key, "%d", i);
        do {
            test_fail_allocation(n++);
            failed = kinf__workqueue_add(&queue, 0, key, -i);
            assert_int_equal(failed, test_allocation_failed() ? KINF_ERR_NO_MEMORY : 0);
            assert_true(kinf__workqueue_check(&queue));
        } while (failed < 0);
        test_fail_allocation(0);
    }
    assert_int_equal(queue.n_items, 70);
    kinf__workqueue_release(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come_out_once_and_when_they_are_due),
        cmocka_unit_test(any_sequence_is_as_a_searched_list),
        cmocka_unit_test(want_of_memory_leaves_the_queue_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
