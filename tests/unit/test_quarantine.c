/*
 * The quarantine: one list for the first failure, none for the next, release when it decodes.
 */
#include "reflector/quarantine.h"

#include <stdio.h>

#include "unit/allocation.h"
#include "unit/test.h"

static enum kinf__quarantine_verdict fail_key(struct kinf__quarantine *quarantine, const char *key,
                                              int64_t now_ms)
{
    enum kinf__quarantine_verdict verdict;

    assert_int_equal(kinf__quarantine_fail(quarantine, key, now_ms, &verdict, NULL), 0);
    assert_true(kinf__quarantine_check(quarantine));
    return verdict;
}

static void a_second_failure_quarantines(void **state)
{
    struct kinf__quarantine quarantine;

    (void)state;
    kinf__quarantine_init(&quarantine);
    assert_int_equal(fail_key(&quarantine, "a/x", 0), KINF__QUARANTINE_RELIST);
    assert_int_equal(quarantine.n_quarantined, 0);
    kinf__quarantine_begin_list(&quarantine);
    assert_int_equal(fail_key(&quarantine, "a/x", 1), KINF__QUARANTINE_NEW);
    assert_int_equal(fail_key(&quarantine, "a/x", 2), KINF__QUARANTINE_KNOWN);
    assert_int_equal(fail_key(&quarantine, "a/y", 3), KINF__QUARANTINE_RELIST);
    assert_int_equal(quarantine.n_quarantined, 1);
    kinf__quarantine_release(&quarantine);
}

static void failures_within_one_list_count_as_one(void **state)
{
    struct kinf__quarantine quarantine;

    (void)state;
    kinf__quarantine_init(&quarantine);
    kinf__quarantine_begin_list(&quarantine);
    assert_int_equal(fail_key(&quarantine, "", 0), KINF__QUARANTINE_RELIST);
    assert_int_equal(fail_key(&quarantine, "", 0), KINF__QUARANTINE_RELIST);
    kinf__quarantine_begin_list(&quarantine);
    assert_int_equal(fail_key(&quarantine, "", 1), KINF__QUARANTINE_NEW);
    assert_int_equal(fail_key(&quarantine, "", 1), KINF__QUARANTINE_KNOWN);
    kinf__quarantine_release(&quarantine);
}

static void decoding_releases(void **state)
{
    struct kinf__quarantine quarantine;

    (void)state;
    kinf__quarantine_init(&quarantine);
    fail_key(&quarantine, "a/x", 0);
    assert_false(kinf__quarantine_decoded(&quarantine, "a/x"));
    kinf__quarantine_begin_list(&quarantine);
    fail_key(&quarantine, "a/x", 0);
    assert_false(kinf__quarantine_decoded(&quarantine, "a/y"));
    assert_true(kinf__quarantine_decoded(&quarantine, "a/x"));
    assert_int_equal(quarantine.n_quarantined, 0);
    assert_true(kinf__quarantine_check(&quarantine));
    kinf__quarantine_release(&quarantine);
}

static void a_list_without_its_failure_releases(void **state)
{
    struct kinf__quarantine quarantine;

    (void)state;
    kinf__quarantine_init(&quarantine);
    for (int i = 0; i < 2; i++) {
        kinf__quarantine_begin_list(&quarantine);
        fail_key(&quarantine, "a/stays", i);
        fail_key(&quarantine, "a/goes", i);
    }
    kinf__quarantine_end_list(&quarantine, 2);
    assert_int_equal(quarantine.n_quarantined, 2);
    kinf__quarantine_begin_list(&quarantine);
    fail_key(&quarantine, "a/stays", 3);
    kinf__quarantine_end_list(&quarantine, 3);
    assert_int_equal(quarantine.n_quarantined, 1);
    assert_int_equal(fail_key(&quarantine, "a/stays", 4), KINF__QUARANTINE_KNOWN);
    kinf__quarantine_release(&quarantine);
}

/* Fails in every watch, decodes in every list: without memory this would list for ever. */
static void a_key_asks_for_one_list_in_a_while(void **state)
{
    struct kinf__quarantine quarantine;
    int64_t now_ms = 0;
    int n_lists = 0;

    (void)state;
    kinf__quarantine_init(&quarantine);
    for (; now_ms < 60000; now_ms += 1000) {
        if (fail_key(&quarantine, "a/x", now_ms) == KINF__QUARANTINE_RELIST) {
            n_lists++;
            kinf__quarantine_begin_list(&quarantine);
        }
        kinf__quarantine_decoded(&quarantine, "a/x");
        kinf__quarantine_end_list(&quarantine, now_ms);
    }
    assert_int_equal(n_lists, 1);
    now_ms += KINF__QUARANTINE_MEMORY_MS;
    assert_int_equal(fail_key(&quarantine, "a/x", now_ms), KINF__QUARANTINE_RELIST);
    kinf__quarantine_release(&quarantine);
}

static void old_failures_are_forgotten(void **state)
{
    struct kinf__quarantine quarantine;

    (void)state;
    kinf__quarantine_init(&quarantine);
    fail_key(&quarantine, "a/x", 0);
    kinf__quarantine_end_list(&quarantine, KINF__QUARANTINE_MEMORY_MS - 1);
    assert_int_equal(quarantine.by_key.n_nodes, 1);
    kinf__quarantine_end_list(&quarantine, KINF__QUARANTINE_MEMORY_MS);
    assert_int_equal(quarantine.by_key.n_nodes, 0);
    kinf__quarantine_release(&quarantine);
}

static void too_many_keys_fall_together(void **state)
{
    struct kinf__quarantine quarantine;
    char key[32];

    (void)state;
    kinf__quarantine_init(&quarantine);
    for (int list = 0; list < 2; list++) {
        kinf__quarantine_begin_list(&quarantine);
        for (int i = 0; i < 2 * KINF__QUARANTINE_MAX_KEYS; i++) {
            enum kinf__quarantine_verdict verdict;

            snprintf(key, sizeof key, "a/%d", i);
            assert_int_equal(kinf__quarantine_fail(&quarantine, key, 0, &verdict, NULL), 0);
            assert_true(list > 0 || verdict == KINF__QUARANTINE_RELIST);
            assert_true(list == 0 || verdict != KINF__QUARANTINE_RELIST);
        }
    }
    assert_int_equal(quarantine.n_quarantined, KINF__QUARANTINE_MAX_KEYS + 1);
    assert_int_equal(fail_key(&quarantine, "a/another", 0), KINF__QUARANTINE_KNOWN);
    kinf__quarantine_release(&quarantine);
}

static void no_memory_changes_nothing(void **state)
{
    struct kinf__quarantine quarantine;
    enum kinf__quarantine_verdict verdict;
    size_t n = 1;

    (void)state;
    kinf__quarantine_init(&quarantine);
    for (;; n++) {
        int r;

        test_fail_allocation(n);
        r = kinf__quarantine_fail(&quarantine, "a/x", 0, &verdict, NULL);
        if (!test_allocation_failed()) {
            assert_int_equal(r, 0);
            break;
        }
        assert_int_equal(r, KINF_ERR_NO_MEMORY);
        assert_int_equal(quarantine.by_key.n_nodes, 0);
        assert_true(kinf__quarantine_check(&quarantine));
    }
    assert_int_equal(n, 3);
    test_fail_allocation(0);
    kinf__quarantine_release(&quarantine);
}

static void check_finds_a_wrong_count(void **state)
{
    struct kinf__quarantine quarantine;

    (void)state;
    kinf__quarantine_init(&quarantine);
    fail_key(&quarantine, "a/x", 0);
    quarantine.n_quarantined++;
    assert_false(kinf__quarantine_check(&quarantine));
    quarantine.n_quarantined--;
    quarantine.by_key.n_nodes++;
    assert_false(kinf__quarantine_check(&quarantine));
    quarantine.by_key.n_nodes--;
    assert_true(kinf__quarantine_check(&quarantine));
    kinf__quarantine_release(&quarantine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_failure_quarantines),
        cmocka_unit_test(failures_within_one_list_count_as_one),
        cmocka_unit_test(decoding_releases),
        cmocka_unit_test(a_list_without_its_failure_releases),
        cmocka_unit_test(a_key_asks_for_one_list_in_a_while),
        cmocka_unit_test(old_failures_are_forgotten),
        cmocka_unit_test(too_many_keys_fall_together),
        cmocka_unit_test(no_memory_changes_nothing),
        cmocka_unit_test(check_finds_a_wrong_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
