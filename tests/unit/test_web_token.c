/*
 * The times of a web token, out of anything that may come as one.
 */
#include "serve/web_token.h"

#include <string.h>

#include "base/compiler.h"
#include "unit/test.h"

static int64_t expiry_of(struct kinf_str token)
{
    return kinf__web_token_times(token).expires_s;
}

static void the_end_of_a_web_token_is_read_and_no_other(void **state)
{
    static const struct {
        const char *token;
        int64_t expiry_s;
    } rows[] = {
        { "e30.eyJleHAiOjE3MDAwMDAwMDB9.sig", 1700000000 },    /* {"exp":1700000000} */
        { "e30.eyJleHAiOjE3MDAwMDAwMDAuNX0.sig", 1700000000 }, /* {"exp":1700000000.5} */
        { "e30.eyJleHAiOjEuN2U5fQ.sig", 1700000000 },          /* {"exp":1.7e9} */
        { "e30.eyJleHAiOjB9.sig", 0 },                         /* {"exp":0} */
        { "e30.eyJleHAiOiJ4In0.sig", -1 },                     /* {"exp":"x"} */
        { "e30.eyJleHAiOi01fQ.sig", -1 },                      /* {"exp":-5} */
        { "e30.eyJleHAiOjFlMzB9.sig", -1 },                    /* {"exp":1e30} */
        { "e30.eyJleHAiOjFlOTk5OX0.sig", -1 },                 /* {"exp":1e9999} */
        { "e30.eyJleHAiOjE3MDAwMDAwMDB9", -1 },
        { "e30.eyJleHAiOjE3MDAwMDAwMDB9.", -1 },
        { ".eyJleHAiOjE3MDAwMDAwMDB9.sig", -1 },
        { "e30.eyJleHAiOjE3MDAwMDAwMDB9.sig.sig", -1 },
        { "e30.eyJleHAiOjE3MDAwMDAwMDB9.s+g", -1 },
        { "e+0.eyJleHAiOjE3MDAwMDAwMDB9.sig", -1 },
        { "e30.eyJleHAiOjE3MDAwMDAwMDA.sig", -1 }, /* {"exp":1700000000 */
        { "e30.+/.sig", -1 },
        { "..", -1 },
        { "plain", -1 },
        { "", -1 },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        assert_int_equal(expiry_of(kinf_str_from(rows[i].token)), rows[i].expiry_s);
}

static void its_beginning_is_read_beside_its_end(void **state)
{
    /* {"nbf":1600000000,"exp":1700000000} and {"nbf":1600000000} */
    const struct kinf__web_token_times
        both = kinf__web_token_times(
            KINF_STR("e30.eyJuYmYiOjE2MDAwMDAwMDAsImV4cCI6MTcwMDAwMDAwMH0.sig")),
        beginning = kinf__web_token_times(KINF_STR("e30.eyJuYmYiOjE2MDAwMDAwMDB9.sig"));

    (void)state;
    assert_int_equal(both.not_before_s, 1600000000);
    assert_int_equal(both.expires_s, 1700000000);
    assert_int_equal(beginning.not_before_s, 1600000000);
    assert_int_equal(beginning.expires_s, -1);
}

/* Groups of a user may be many: 12,000 bytes of "a" in front of the end. */
static void long_claims_are_read(void **state)
{
    static char token[17000] = "e30.eyJhIjoi"; /* {"a":" */

    (void)state;
    for (size_t i = 0; i < 4000; i++)
        memcpy(token + 12 + 4 * i, "QUFB", 4);
    strcat(token, "IiwiZXhwIjoxNzAwMDAwMDAwfQ.sig"); /* ","exp":1700000000} */
    assert_int_equal(expiry_of(kinf_str_from(token)), 1700000000);
}

static void a_token_cut_anywhere_says_nothing(void **state)
{
    static const char whole[] = "e30.eyJleHAiOjE3MDAwMDAwMDB9.";

    (void)state;
    for (size_t len = 0; len < sizeof whole - 1; len++) {
        char *token = malloc(len + 1);

        assert_non_null(token);
        memcpy(token, whole, len);
        assert_int_equal(expiry_of((struct kinf_str){ token, len }), -1);
        free(token);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_a_web_token_is_read_and_no_other),
        cmocka_unit_test(its_beginning_is_read_beside_its_end),
        cmocka_unit_test(long_claims_are_read),
        cmocka_unit_test(a_token_cut_anywhere_says_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
