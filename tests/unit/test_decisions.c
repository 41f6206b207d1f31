/*
 * Kept decisions: how long, how many, and against a model.
 */
#include "serve/decisions.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/allocation.h"
#include "unit/test.h"

static struct kinf__question question_of(const char *text)
{
    const struct kinf_str part = kinf_str_from(text);
    struct kinf__question question;

    assert_int_equal(kinf__digest(&part, 1, question.digest), 0);
    return question;
}

static void put(struct kinf__decisions *decisions, const char *text, bool is_yes, int64_t until_ms)
{
    const struct kinf__question question = question_of(text);

    const struct kinf__decision decision = { .is_yes = is_yes,
                                             .until_ms = until_ms,
                                             .text = (char *)(uintptr_t)text };

    assert_int_equal(kinf__decisions_put(decisions, &question, &decision), 0);
    assert_true(kinf__decisions_check(decisions));
}

static const struct kinf__decision *find(struct kinf__decisions *decisions, const char *text,
                                         int64_t now_ms)
{
    const struct kinf__question question = question_of(text);
    const struct kinf__decision *decision =
        kinf__decisions_find(decisions, &question, now_ms, false);

    assert_true(kinf__decisions_check(decisions));
    return decision;
}

static void a_decision_holds_until_its_time_is_over(void **state)
{
    struct kinf__decisions decisions;

    (void)state;
    kinf__decisions_init(&decisions, 10);
    put(&decisions, "a", true, 1000);
    put(&decisions, "b", false, 500);
    assert_true(find(&decisions, "a", 999)->is_yes);
    assert_string_equal(find(&decisions, "a", 999)->text, "a");
    assert_false(find(&decisions, "b", 499)->is_yes);
    assert_null(find(&decisions, "b", 500));
    assert_null(find(&decisions, "a", 1000));
    assert_null(find(&decisions, "a", 999));
    assert_null(find(&decisions, "c", 0));
    kinf__decisions_release(&decisions);
}

static void a_newer_decision_takes_the_place_of_the_older(void **state)
{
    struct kinf__decisions decisions;

    (void)state;
    kinf__decisions_init(&decisions, 10);
    put(&decisions, "a", true, 1000);
    put(&decisions, "a", false, 2000);
    assert_false(find(&decisions, "a", 1500)->is_yes);
    assert_int_equal(decisions.map.n_nodes, 1);
    kinf__decisions_release(&decisions);
}

static void the_one_used_the_longest_ago_goes_first(void **state)
{
    struct kinf__decisions decisions;

    (void)state;
    kinf__decisions_init(&decisions, 2);
    put(&decisions, "a", true, 1000);
    put(&decisions, "b", true, 1000);
    assert_non_null(find(&decisions, "a", 0));
    put(&decisions, "c", true, 1000);
    assert_null(find(&decisions, "b", 0));
    assert_non_null(find(&decisions, "a", 0));
    assert_non_null(find(&decisions, "c", 0));
    kinf__decisions_release(&decisions);
}

/* "ab","c" is another question than "a","bc". */
static void questions_differ_by_where_their_parts_end(void **state)
{
    const struct kinf_str one[] = { KINF_STR("ab"), KINF_STR("c") };
    const struct kinf_str other[] = { KINF_STR("a"), KINF_STR("bc") };
    struct kinf__question a, b, c;

    (void)state;
    assert_int_equal(kinf__digest(one, 2, a.digest), 0);
    assert_int_equal(kinf__digest(other, 2, b.digest), 0);
    assert_int_equal(kinf__digest(one, 2, c.digest), 0);
    assert_memory_not_equal(a.digest, b.digest, sizeof a.digest);
    assert_memory_equal(a.digest, c.digest, sizeof a.digest);
}

static void a_stale_one_is_kept_for_who_asks_for_it(void **state)
{
    const struct kinf__question question = question_of("a");
    const struct kinf__decision decision = { .is_yes = true,
                                             .until_ms = 1000,
                                             .stale_until_ms = 3000 };
    struct kinf__decisions decisions;

    (void)state;
    kinf__decisions_init(&decisions, 10);
    assert_int_equal(kinf__decisions_put(&decisions, &question, &decision), 0);
    assert_non_null(kinf__decisions_find(&decisions, &question, 999, false));
    assert_null(kinf__decisions_find(&decisions, &question, 1000, false));
    assert_non_null(kinf__decisions_find(&decisions, &question, 2999, true));
    assert_null(kinf__decisions_find(&decisions, &question, 2999, false));
    assert_null(kinf__decisions_find(&decisions, &question, 3000, true));
    assert_int_equal(decisions.map.n_nodes, 0);
    kinf__decisions_release(&decisions);
}

static void no_memory_leaves_nothing_known(void **state)
{
    const struct kinf__question question = question_of("a");
    struct kinf__decisions decisions;
    char why[] = "why";
    int r = KINF_ERR_NO_MEMORY;

    (void)state;
    kinf__decisions_init(&decisions, 10);
    put(&decisions, "a", true, 1000);
    for (unsigned i = 1; r < 0; i++) {
        assert_in_range(i, 1, 100);
        test_fail_allocation(i);
        r = kinf__decisions_put(&decisions, &question,
                                &(struct kinf__decision){ .until_ms = 2000, .text = why });
        test_fail_allocation(0);
        assert_true(kinf__decisions_check(&decisions));
        assert_true((find(&decisions, "a", 0) != NULL) == (r == 0));
    }
    kinf__decisions_release(&decisions);
}

static void the_check_sees_a_lost_entry(void **state)
{
    struct kinf__decisions decisions;
    struct kinf__list *node;

    (void)state;
    kinf__decisions_init(&decisions, 10);
    put(&decisions, "a", true, 1000);
    put(&decisions, "b", true, 1000);
    node = decisions.by_use.next;
    kinf__list_remove(node);
    assert_false(kinf__decisions_check(&decisions));
    kinf__list_push_back(&decisions.by_use, node);
    assert_true(kinf__decisions_check(&decisions));
    kinf__decisions_release(&decisions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decision_holds_until_its_time_is_over),
        cmocka_unit_test(a_newer_decision_takes_the_place_of_the_older),
        cmocka_unit_test(the_one_used_the_longest_ago_goes_first),
        cmocka_unit_test(questions_differ_by_where_their_parts_end),
        cmocka_unit_test(a_stale_one_is_kept_for_who_asks_for_it),
        cmocka_unit_test(no_memory_leaves_nothing_known),
        cmocka_unit_test(the_check_sees_a_lost_entry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
