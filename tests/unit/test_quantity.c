/*
 * Quantities have one text each, and are compared by their values.
 */
#include "document/quantity.h"

#include "test.h"

#include "base/compiler.h"

static void texts_are_the_servers(void **state)
{
    static const char *const rows[][2] = {
        { "0.5", "500m" },    { "1", "1" },         { "1.0", "1" },
        { "1000m", "1" },     { "1500m", "1500m" }, { "1000", "1k" },
        { "100000", "100k" }, { "1024Mi", "1Gi" },  { "1.5Gi", "1536Mi" },
        { "0.5Ki", "512" },   { "1Ki", "1Ki" },     { "1024", "1024" },
        { "0", "0" },         { "0Gi", "0" },       { "-1", "-1" },
        { "1e3", "1e3" },     { "10e3", "10e3" },   { "1E", "1E" },
        { "+5", "5" },        { "100m", "100m" },   { "0.0000000001", "1n" },
        { ".5", "500m" },     { "1e0", "1" },       { "3Ei", "3Ei" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        char text[KINF__QUANTITY_SIZE];

        assert_true(kinf__quantity_write(rows[i][0], text));
        assert_string_equal(text, rows[i][1]);
    }
}

static void what_is_none_or_too_long_is_left_alone(void **state)
{
    static const char *const rows[] = { "x",
                                        "1x",
                                        "1.2.3",
                                        "1e",
                                        "1e1000",
                                        "1e99999999999999999999",
                                        "12345678901234567890",
                                        "9223372036854775808E",
                                        "1 Gi" };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        char text[KINF__QUANTITY_SIZE];

        assert_false(kinf__quantity_write(rows[i], text));
    }
}

static void values_are_compared_whatever_their_texts(void **state)
{
    (void)state;
    assert_true(kinf__quantity_exceeds("2", "1"));
    assert_true(kinf__quantity_exceeds("1Gi", "1G"));
    assert_true(kinf__quantity_exceeds("1", "999m"));
    assert_false(kinf__quantity_exceeds("1", "1000m"));
    assert_false(kinf__quantity_exceeds("-1", "0"));
    assert_false(kinf__quantity_exceeds("x", "0"));
    assert_false(kinf__quantity_exceeds("1", ""));
    assert_false(kinf__quantity_exceeds("1", "m"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_the_servers),
        cmocka_unit_test(what_is_none_or_too_long_is_left_alone),
        cmocka_unit_test(values_are_compared_whatever_their_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
