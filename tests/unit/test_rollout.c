/*
 * Rollouts: shares, and that any sequence of what may happen stays within the limits and comes to
 * its end.
 */
#include "workloads/rollout.h"

#include <string.h>

#include "document/tree.h"
#include "unit/test.h"

static struct cJSON *parse(const char *text)
{
    struct cJSON *tree;

    assert_int_equal(kinf__doc_parse(kinf_str_from(text), &tree, NULL), 0);
    return tree;
}

static void expect_limits(const char *spec, int64_t replicas, int64_t max_surge,
                          int64_t max_unavailable)
{
    struct cJSON *tree = parse(spec);
    struct kinf__rollout rollout = kinf__rollout_of(tree);

    if (rollout.replicas != replicas || rollout.max_surge != max_surge ||
        rollout.max_unavailable != max_unavailable)
        fail_msg("%s: %ld, %ld, %ld", spec, (long)rollout.replicas, (long)rollout.max_surge,
                 (long)rollout.max_unavailable);
    cJSON_Delete(tree);
}

#define ROLLING(surge, unavailable)                                                                \
    "\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxSurge\":" surge              \
    ",\"maxUnavailable\":" unavailable "}}"

static void shares_are_rounded_to_the_safe_side(void **state)
{
    (void)state;
    expect_limits("{\"replicas\":10," ROLLING("\"25%\"", "\"25%\"") "}", 10, 3, 2);
    expect_limits("{\"replicas\":1," ROLLING("\"25%\"", "\"25%\"") "}", 1, 1, 0);
    expect_limits("{\"replicas\":10," ROLLING("2", "0") "}", 10, 2, 0);
    expect_limits("{\"replicas\":10," ROLLING("0", "0") "}", 10, 0, 1);
    expect_limits("{\"replicas\":3," ROLLING("0", "\"10%\"") "}", 3, 0, 1);
    expect_limits("{\"replicas\":3," ROLLING("\"x\"", "\"-1%\"") "}", 3, 1, 0);
    expect_limits("{\"replicas\":2," ROLLING("1", "7") "}", 2, 1, 2);
    expect_limits("{}", 1, 1, 0);
    expect_limits("{\"replicas\":8,\"strategy\":{\"type\":\"Recreate\"}}", 8, 0, 0);
}

#define N_OLD 3

static int64_t sum_wanted(const struct kinf__rollout_set *sets)
{
    int64_t sum = 0;

    for (int i = 0; i <= N_OLD; i++)
        sum += sets[i].wanted;
    return sum;
}

static int64_t sum_available(const struct kinf__rollout_set *sets)
{
    int64_t sum = 0;

    for (int i = 0; i <= N_OLD; i++)
        sum += sets[i].available;
    return sum;
}

/* Pods come up one after the other; what is not wanted is gone at once. */
static void pass_time(struct test_random *random, struct kinf__rollout_set *sets)
{
    for (int i = 0; i <= N_OLD; i++) {
        if (sets[i].available > sets[i].wanted)
            sets[i].available = sets[i].wanted;
    }
    for (int i = 0; i <= N_OLD; i++) {
        if (sets[i].available < sets[i].wanted && test_random_below(random, 2) == 0)
            sets[i].available++;
    }
}

static void any_rollout_stays_within_its_limits_and_ends(void **state)
{
    struct test_random random = test_random_init("rollout");

    (void)state;
    for (size_t round = test_rounds(3000); round > 0; round--) {
        struct kinf__rollout rollout = { .replicas = (int64_t)test_random_below(&random, 20),
                                         .max_surge = (int64_t)test_random_below(&random, 5) };
        struct kinf__rollout_set sets[N_OLD + 1] = { { 0 } }; /* the last one is new */
        int n_steps = 0;

        rollout.max_unavailable =
            rollout.max_surge == 0 ? 1 : (int64_t)test_random_below(&random, 5);
        if (rollout.max_unavailable > rollout.replicas)
            rollout.max_unavailable = rollout.replicas;
        for (int64_t i = 0; i < rollout.replicas; i++)
            sets[test_random_below(&random, N_OLD)].wanted++;
        for (int i = 0; i < N_OLD; i++)
            sets[i].available = sets[i].wanted;
        while (sets[N_OLD].available < rollout.replicas || sum_wanted(sets) != rollout.replicas) {
            int64_t before = sum_available(sets);

            sets[N_OLD].wanted =
                kinf__rollout_new_size(&rollout, sets[N_OLD].wanted, sum_wanted(sets));
            kinf__rollout_shrink_old(&rollout, &sets[N_OLD], sets, N_OLD);
            assert_true(sum_wanted(sets) <= rollout.replicas + rollout.max_surge);
            pass_time(&random, sets);
            assert_true(sum_available(sets) >= rollout.replicas - rollout.max_unavailable ||
                        sum_available(sets) >= before);
            assert_true(++n_steps < 2000);
        }
    }
}

static void pods_that_never_came_up_go_first(void **state)
{
    const struct kinf__rollout rollout = { 5, 1, 0 };
    const struct kinf__rollout_set new_set = { 0, 0 };
    struct kinf__rollout_set old_sets[] = { { 3, 3 }, { 3, 2 } };

    (void)state;
    kinf__rollout_shrink_old(&rollout, &new_set, old_sets, 2);
    assert_int_equal(old_sets[0].wanted, 3);
    assert_int_equal(old_sets[1].wanted, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_rounded_to_the_safe_side),
        cmocka_unit_test(any_rollout_stays_within_its_limits_and_ends),
        cmocka_unit_test(pods_that_never_came_up_go_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
