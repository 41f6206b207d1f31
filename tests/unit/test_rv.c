/*
 * resourceVersions and resource types: order, identity.
 */
#include <kinformer/object.h>
#include <kinformer/type.h>

#include <stdio.h>
#include <string.h>

#include "unit/test.h"

#define HIGHEST "340282366920938463463374607431768211455"

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static void versions_are_ordered_as_numbers_up_to_128_bits(void **state)
{
    /* Ascending. */
    static const char *const versions[] = {
        "1",
        "2",
        "9",
        "10",
        "11",
        "99",
        "100",
        "4294967295",
        "4294967296",
        "9007199254740992",
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999999999999999",
        "340282366920938463463374607431768211454",
        HIGHEST,
    };
    size_t n = sizeof versions / sizeof versions[0];

    (void)state;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            int order = 99;

            assert_int_equal(kinf_rv_compare(versions[i], versions[j], &order, NULL), 0);
            assert_int_equal(sign(order), (i > j) - (i < j));
        }
    }
}

static void what_is_no_version_has_no_order(void **state)
{
    static const char *const others[] = {
        "",
        "0",
        "00",
        "01",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1.0",
        "1e3",
        "0x1",
        "a",
        "1a",
        "\xd9\xa1",
        "340282366920938463463374607431768211456",
        "999999999999999999999999999999999999999",
        "1000000000000000000000000000000000000000",
    };

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        int order = 99;

        assert_int_equal(kinf_rv_compare(others[i], "1", &order, &err), KINF_ERR_INVALID);
        assert_int_equal(err.code, KINF_ERR_INVALID);
        assert_non_null(strstr(err.message, others[i]));
        assert_int_equal(kinf_rv_compare("1", others[i], &order, NULL), KINF_ERR_INVALID);
        assert_int_equal(order, 99);
    }
}

/* Against 128-bit arithmetic, which gcc and clang have. */
static void random_versions_are_ordered_as_integers(void **state)
{
    struct test_random random = test_random_init(__func__);

    (void)state;
    for (size_t i = test_rounds(20000); i > 0; i--) {
        unsigned __int128 numbers[2];
        char texts[2][40];
        int order;

        for (int k = 0; k < 2; k++) {
            unsigned __int128 rest;
            char *at = texts[k] + sizeof texts[k];

            numbers[k] =
                ((unsigned __int128)test_random_next(&random) << 64) | test_random_next(&random);
            numbers[k] >>= test_random_below(&random, 127);
            numbers[k] += numbers[k] == 0;
            *--at = '\0';
            for (rest = numbers[k]; rest != 0; rest /= 10)
                *--at = (char)('0' + (int)(rest % 10));
            memmove(texts[k], at, strlen(at) + 1);
        }
        assert_int_equal(kinf_rv_compare(texts[0], texts[1], &order, NULL), 0);
        assert_int_equal(sign(order), (numbers[0] > numbers[1]) - (numbers[0] < numbers[1]));
    }
}

static void a_type_exists_once(void **state)
{
    const struct kinf_type *pods, *again, *others;
    char group[] = "";

    (void)state;
    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", true, &pods, NULL), 0);
    assert_int_equal(kinf_type_intern(group, "v1", "Pod", "pods", true, &again, NULL), 0);
    assert_ptr_equal(pods, again);
    assert_ptr_not_equal(pods->group, group);
    assert_int_equal(kinf_type_intern("example.org", "v1", "Pod", "pods", true, &others, NULL), 0);
    assert_ptr_not_equal(pods, others);
    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", false, &others, NULL), 0);
    assert_ptr_not_equal(pods, others);
}

static void a_type_needs_names_that_need_no_escapes(void **state)
{
    static const char *const wrong[] = { "", "a\"b", "a\\b", "a/b", "a b", "a\nb", "\xc3\xa4" };
    const struct kinf_type *type = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(kinf_type_intern("", wrong[i], "Pod", "pods", true, &type, &err),
                         KINF_ERR_INVALID);
        assert_int_equal(kinf_type_intern("", "v1", wrong[i], "pods", true, &type, NULL),
                         KINF_ERR_INVALID);
        assert_int_equal(kinf_type_intern("", "v1", "Pod", wrong[i], true, &type, NULL),
                         KINF_ERR_INVALID);
        if (wrong[i][0] != '\0')
            assert_int_equal(kinf_type_intern(wrong[i], "v1", "Pod", "pods", true, &type, NULL),
                             KINF_ERR_INVALID);
        assert_int_equal(err.code, KINF_ERR_INVALID);
    }
    assert_int_equal(kinf_type_intern(NULL, "v1", "Pod", "pods", true, &type, NULL),
                     KINF_ERR_INVALID);
    assert_null(type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_ordered_as_numbers_up_to_128_bits),
        cmocka_unit_test(what_is_no_version_has_no_order),
        cmocka_unit_test(random_versions_are_ordered_as_integers),
        cmocka_unit_test(a_type_exists_once),
        cmocka_unit_test(a_type_needs_names_that_need_no_escapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
