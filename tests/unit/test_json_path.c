/*
 * The path grammar.
 */
#include "json/path.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/test.h"

static struct kinf_path *parse(const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_path *path = NULL;

    if (kinf_path_parse(text, &path, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return path;
}

static void assert_key(const struct kinf_path *path, size_t step, struct kinf_str key)
{
    assert_int_equal(path->steps[step].type, KINF__PATH_KEY);
    assert_true(kinf_str_equal(path->steps[step].key, key));
}

static void segments_are_keys(void **state)
{
    struct kinf_path *path = parse("spec.nodeName");

    (void)state;
    assert_int_equal(path->n_steps, 2);
    assert_key(path, 0, KINF_STR("spec"));
    assert_key(path, 1, KINF_STR("nodeName"));
    assert_string_equal(kinf_path_text(path), "spec.nodeName");
    kinf_path_free(path);
}

static void a_leading_dot_changes_nothing_but_the_text(void **state)
{
    struct kinf_path *path = parse(".f:data");

    (void)state;
    assert_int_equal(path->n_steps, 1);
    assert_key(path, 0, KINF_STR("f:data"));
    assert_string_equal(kinf_path_text(path), ".f:data");
    kinf_path_free(path);
}

static void subscripts_are_stars_numbers_and_strings(void **state)
{
    struct kinf_path *path = parse("a[*][17].b[\"c.d/\\u0065]\\\"\"][\"\"]");

    (void)state;
    assert_int_equal(path->n_steps, 6);
    assert_int_equal(path->steps[1].type, KINF__PATH_EACH);
    assert_int_equal(path->steps[2].type, KINF__PATH_INDEX);
    assert_int_equal(path->steps[2].index, 17);
    assert_key(path, 3, KINF_STR("b"));
    assert_key(path, 4, KINF_STR("c.d/e]\""));
    assert_key(path, 5, KINF_STR(""));
    kinf_path_free(path);
}

static void the_largest_index_is_that_of_the_machine(void **state)
{
    struct kinf_path *path;
    struct kinf_error err = KINF_ERROR_INIT;
    char text[64];

    (void)state;
    snprintf(text, sizeof text, "a[%zu]", SIZE_MAX);
    path = parse(text);
    assert_true(path->steps[1].index == SIZE_MAX);
    kinf_path_free(path);
    snprintf(text, sizeof text, "a[%zu0]", SIZE_MAX);
    assert_int_equal(kinf_path_parse(text, &path, &err), KINF_ERR_PARSE);
}

static void what_is_wrong_is_refused_with_its_column(void **state)
{
    static const struct {
        const char *text;
        int column;
    } rows[] = {
        { "", 1 },        { ".", 2 },          { "..a", 2 },
        { "a.", 3 },      { "a..b", 3 },       { " a", 1 },
        { "a b", 2 },     { "a]", 2 },         { "[*]", 1 },
        { "[\"a\"]", 1 }, { "a[", 3 },         { "a[]", 3 },
        { "a[*", 4 },     { "a[* ]", 4 },      { "a[-1]", 3 },
        { "a[1", 4 },     { "a[1x]", 4 },      { "a[x]", 3 },
        { "a[\"b]", 6 },  { "a[\"\\x\"]", 5 }, { "a[\"\xff\"]", 4 },
        { "a[\"b\"", 6 }, { "a\"b\"", 2 },     { "a[*]b", 5 },
        { "$", 1 },       { "$.a", 1 },        { "$[0]", 1 },
        { "{.a}", 1 },    { "a[*].[*]", 6 },   { "a\tb", 2 },
        { "a.\x7f", 3 },
    };
    struct kinf_path *path = NULL;
    char place[32];

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(kinf_path_parse(rows[i].text, &path, &err), KINF_ERR_PARSE);
        snprintf(place, sizeof place, "column %d", rows[i].column);
        if (strcmp(strstr(err.message, "column"), place) != 0)
            fail_msg("%s: %s, not %s", rows[i].text, err.message, place);
    }
    assert_null(path);
    assert_int_equal(kinf_path_parse("a.", &path, NULL), KINF_ERR_PARSE);
}

static void the_number_of_steps_is_limited(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_path *path = NULL;
    char text[3 * (KINF_PATH_MAX_STEPS + 1) + 1] = "a";

    (void)state;
    for (int i = 1; i < KINF_PATH_MAX_STEPS; i++)
        strcat(text, i % 2 == 0 ? ".b" : "[*]");
    path = parse(text);
    assert_int_equal(path->n_steps, KINF_PATH_MAX_STEPS);
    kinf_path_free(path);
    path = NULL;
    strcat(text, "[0]");
    assert_int_equal(kinf_path_parse(text, &path, &err), KINF_ERR_LIMIT);
    assert_null(path);
}

/* Any text: a result, or an error with a column inside the text or just behind it. */
static void no_text_breaks_the_parser(void **state)
{
    static const char alphabet[] = "ab.[]\"*019\\u \n\xc3\xa9";
    struct test_random random = test_random_init("no_text_breaks_the_parser");
    size_t n_parsed = 0;
    char text[24];

    (void)state;
    for (size_t round = 0; round < test_rounds(100000); round++) {
        size_t len = test_random_below(&random, sizeof text);
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf_path *path = NULL;
        char *copy;

        for (size_t i = 0; i < len; i++)
            text[i] = alphabet[test_random_below(&random, sizeof alphabet - 1)];
        text[len] = '\0';
        copy = strdup(text);
        assert_non_null(copy);
        if (kinf_path_parse(copy, &path, &err) == 0) {
            n_parsed++;
            assert_in_range(path->n_steps, 1, len);
            assert_string_equal(kinf_path_text(path), text);
            kinf_path_free(path);
        } else {
            assert_int_equal(err.code, KINF_ERR_PARSE);
            assert_in_range(strtoul(strstr(err.message, "at column ") + 10, NULL, 10), 1, len + 1);
        }
        free(copy);
    }
    assert_true(n_parsed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_keys),
        cmocka_unit_test(a_leading_dot_changes_nothing_but_the_text),
        cmocka_unit_test(subscripts_are_stars_numbers_and_strings),
        cmocka_unit_test(the_largest_index_is_that_of_the_machine),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_column),
        cmocka_unit_test(the_number_of_steps_is_limited),
        cmocka_unit_test(no_text_breaks_the_parser),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
