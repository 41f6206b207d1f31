/*
 * Places and their shares: against a twin that counts naively, and each bound by itself.
 */
#include "serve/places.h"

#include <string.h>

#include "unit/test.h"

static struct kinf__caller *take(struct kinf__places *places, unsigned who)
{
    unsigned char id[KINF__DIGEST_SIZE] = { (unsigned char)(who >> 8), (unsigned char)who };
    const char *why;
    struct kinf__caller *caller = kinf__places_take(places, id, &why);

    assert_true(kinf__places_check(places));
    if (caller != NULL)
        assert_memory_equal(caller->id, id, sizeof id);
    return caller;
}

static void judge(struct kinf__places *places, struct kinf__caller *caller, bool is_known)
{
    kinf__places_judge(places, caller, is_known);
    assert_true(kinf__places_check(places));
}

static void give_back(struct kinf__places *places, struct kinf__caller *caller)
{
    kinf__places_give_back(places, caller);
    assert_true(kinf__places_check(places));
}

static void one_caller_has_a_share_and_others_have_the_rest(void **state)
{
    struct kinf__places places;
    struct kinf__caller *one;

    (void)state;
    assert_int_equal(kinf__places_init(&places, 16, 0, 0), 0);
    one = take(&places, 1);
    judge(&places, one, true);
    for (int i = 1; i < 4; i++)
        assert_ptr_equal(take(&places, 1), one);
    assert_null(take(&places, 1));
    assert_non_null(take(&places, 2));
    give_back(&places, one);
    assert_ptr_equal(take(&places, 1), one);
    kinf__places_release(&places);
}

static void strangers_together_have_a_half(void **state)
{
    struct kinf__places places;
    struct kinf__caller *known;

    (void)state;
    assert_int_equal(kinf__places_init(&places, 8, 0, 0), 0);
    known = take(&places, 1);
    judge(&places, known, true);
    for (unsigned who = 100; who < 104; who++)
        assert_non_null(take(&places, who));
    assert_null(take(&places, 104));
    assert_non_null(take(&places, 1));
    kinf__places_release(&places);
}

static void who_is_known_stays_so_while_strangers_come_and_go(void **state)
{
    struct kinf__places places;
    struct kinf__caller *known;

    (void)state;
    assert_int_equal(kinf__places_init(&places, 4, 4, 1), 0);
    known = take(&places, 1);
    judge(&places, known, true);
    give_back(&places, known);
    for (unsigned who = 100; who < 200; who++)
        give_back(&places, take(&places, who));
    assert_non_null(take(&places, 100));
    assert_non_null(take(&places, 1));
    /* One that is refused after all is a stranger again. */
    judge(&places, known, false);
    assert_null(take(&places, 1));
    kinf__places_release(&places);
}

static void the_oldest_of_many_known_ones_is_forgotten(void **state)
{
    struct kinf__places places;
    struct kinf__caller *stranger;

    (void)state;
    assert_int_equal(kinf__places_init(&places, 4, 0, 1), 0);
    for (unsigned who = 0; who < 50; who++) {
        struct kinf__caller *caller = take(&places, who);

        judge(&places, caller, true);
        give_back(&places, caller);
    }
    stranger = take(&places, 1000);
    assert_false(stranger->is_known);
    assert_null(take(&places, 0));
    assert_true(take(&places, 49)->is_known);
    kinf__places_release(&places);
}

static void each_bound_says_why(void **state)
{
    static const unsigned char a[KINF__DIGEST_SIZE] = { 1 }, b[KINF__DIGEST_SIZE] = { 2 },
                               c[KINF__DIGEST_SIZE] = { 3 };
    struct kinf__places places;
    const char *why;
    struct kinf__caller *caller;

    (void)state;
    assert_int_equal(kinf__places_init(&places, 2, 1, 1), 0);
    caller = kinf__places_take(&places, a, &why);
    assert_non_null(caller);
    assert_null(kinf__places_take(&places, a, &why));
    assert_non_null(strstr(why, "of yours"));
    assert_null(kinf__places_take(&places, b, &why));
    assert_non_null(strstr(why, "not accepted"));
    kinf__places_judge(&places, caller, true);
    assert_non_null(kinf__places_take(&places, b, &why));
    assert_null(kinf__places_take(&places, c, &why));
    assert_string_equal(why, "too many requests are passed on already");
    kinf__places_release(&places);
}

static void any_order_keeps_the_counts(void **state)
{
    enum { MAX = 12, CALLERS = 9, STEPS = 20000 };
    struct kinf__places places;
    struct kinf__caller *held[MAX];
    size_t n_held = 0;
    struct test_random random = test_random_init("any_order_keeps_the_counts");

    (void)state;
    assert_int_equal(kinf__places_init(&places, MAX, 4, 6), 0);
    for (int i = 0; i < STEPS; i++) {
        size_t which = n_held != 0 ? test_random_below(&random, n_held) : 0;
        struct kinf__caller *caller;

        switch (test_random_below(&random, 4)) {
        case 0:
            if (n_held != 0)
                judge(&places, held[which], test_random_below(&random, 2) == 0);
            break;
        case 1:
            if (n_held != 0) {
                give_back(&places, held[which]);
                held[which] = held[--n_held];
            }
            break;
        default:
            caller = take(&places, (unsigned)test_random_below(&random, CALLERS));
            if (caller != NULL)
                held[n_held++] = caller;
        }
        assert_int_equal(places.n_taken, n_held);
    }
    while (n_held != 0)
        give_back(&places, held[--n_held]);
    assert_int_equal(places.n_of_strangers, 0);
    kinf__places_release(&places);
}

static void the_check_sees_a_place_that_is_lost(void **state)
{
    struct kinf__places places;

    (void)state;
    assert_int_equal(kinf__places_init(&places, 4, 0, 0), 0);
    take(&places, 1)->n_places = 0;
    assert_false(kinf__places_check(&places));
    kinf__places_release(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_caller_has_a_share_and_others_have_the_rest),
        cmocka_unit_test(strangers_together_have_a_half),
        cmocka_unit_test(who_is_known_stays_so_while_strangers_come_and_go),
        cmocka_unit_test(the_oldest_of_many_known_ones_is_forgotten),
        cmocka_unit_test(each_bound_says_why),
        cmocka_unit_test(any_order_keeps_the_counts),
        cmocka_unit_test(the_check_sees_a_place_that_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
