/*
 * Credit of addresses, with time as a parameter.
 */
#include "serve/credit.h"

#include "unit/test.h"

static size_t count(const struct kinf__credit *credit)
{
    size_t n = 0;

    KINF__LIST_FOR_EACH (node, &credit->payers)
        n++;
    return n;
}

static void a_second_of_questions_may_come_at_once_and_then_one_after_another(void **state)
{
    struct kinf__credit credit;
    struct kinf__payer *payer;

    (void)state;
    kinf__credit_init(&credit, 50);
    payer = kinf__credit_payer(&credit, 1, 7000);
    assert_non_null(payer);
    for (unsigned i = 0; i < 50; i++) {
        assert_true(kinf__credit_ready_ms(&credit, payer) <= 7000);
        kinf__credit_spend(&credit, payer, 7000);
    }
    assert_int_equal(kinf__credit_ready_ms(&credit, payer), 7020);
    kinf__credit_spend(&credit, payer, 7020);
    assert_int_equal(kinf__credit_ready_ms(&credit, payer), 7040);
    kinf__credit_release(&credit);
}

static void all_together_have_four_times_as_much_as_one(void **state)
{
    struct kinf__credit credit;

    (void)state;
    kinf__credit_init(&credit, 50);
    for (unsigned i = 0; i < 200; i++) {
        struct kinf__payer *payer = kinf__credit_payer(&credit, i, 0);

        assert_non_null(payer);
        assert_true(kinf__credit_ready_ms(&credit, payer) <= 0);
        kinf__credit_spend(&credit, payer, 0);
    }
    assert_int_equal(kinf__credit_ready_ms(&credit, kinf__credit_payer(&credit, 200, 0)), 5);
    kinf__credit_release(&credit);
}

static void an_address_is_forgotten_that_has_no_inquiry_and_whose_credit_is_whole(void **state)
{
    struct kinf__credit credit;
    struct kinf__payer *asks, *spent;

    (void)state;
    kinf__credit_init(&credit, 50);
    assert_null(kinf__credit_greatest(&credit));
    asks = kinf__credit_payer(&credit, 1, 0);
    assert_non_null(asks);
    asks->n_inquiries = 1;
    spent = kinf__credit_payer(&credit, 2, 0);
    assert_non_null(spent);
    kinf__credit_spend(&credit, spent, 0);
    assert_ptr_equal(kinf__credit_greatest(&credit), asks);
    assert_ptr_equal(kinf__credit_payer(&credit, 1, 19), asks);
    assert_int_equal(count(&credit), 2);
    assert_ptr_equal(kinf__credit_payer(&credit, 1, 20), asks);
    assert_int_equal(count(&credit), 1);
    asks->n_inquiries = 0;
    assert_non_null(kinf__credit_payer(&credit, 3, 20));
    assert_int_equal(count(&credit), 1);
    kinf__credit_release(&credit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_of_questions_may_come_at_once_and_then_one_after_another),
        cmocka_unit_test(all_together_have_four_times_as_much_as_one),
        cmocka_unit_test(an_address_is_forgotten_that_has_no_inquiry_and_whose_credit_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
