/*
 * cJSON trees: what is taken, what is refused, walking.
 */
#include "json/tree.h"

#include <string.h>

#include "base/buffer.h"
#include "unit/test.h"

static struct cJSON *parse(const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct cJSON *tree = NULL;

    if (kinf__json_tree_parse(kinf_str_from(text), &tree, &err) < 0)
        fail_msg("%s", err.message);
    return tree;
}

static void a_tree_is_walked_by_keys(void **state)
{
    KINF__CLEANUP(kinf__json_tree_free_ptr)
    struct cJSON *tree = parse(" {\"a\":{\"b\":\"x\",\"B\":\"y\",\"c\":1}} ");

    (void)state;
    assert_string_equal(kinf__json_tree_string(kinf__json_tree_find(tree, "a", "b", NULL)), "x");
    assert_string_equal(kinf__json_tree_string(kinf__json_tree_find(tree, "a", "B", NULL)), "y");
    assert_null(kinf__json_tree_find(tree, "A", NULL));
    assert_null(kinf__json_tree_find(tree, "a", "b", "c", NULL));
    assert_null(kinf__json_tree_find(NULL, "a", NULL));
    assert_ptr_equal(kinf__json_tree_find(tree, NULL), tree);
    assert_null(kinf__json_tree_string(kinf__json_tree_find(tree, "a", "c", NULL)));
    assert_null(kinf__json_tree_string(NULL));
}

static void elements_come_in_order(void **state)
{
    struct cJSON *tree = parse("{\"a\":[\"x\",\"y\"],\"o\":{\"k\":\"v\"},\"e\":[]}");
    const struct cJSON *node = kinf__json_tree_first(kinf__json_tree_find(tree, "a", NULL));

    (void)state;
    assert_string_equal(kinf__json_tree_string(node), "x");
    node = kinf__json_tree_next(node);
    assert_string_equal(kinf__json_tree_string(node), "y");
    assert_null(kinf__json_tree_next(node));
    assert_null(kinf__json_tree_next(NULL));
    assert_null(kinf__json_tree_first(kinf__json_tree_find(tree, "o", NULL)));
    assert_null(kinf__json_tree_first(kinf__json_tree_find(tree, "e", NULL)));
    assert_null(kinf__json_tree_first(NULL));
    kinf__json_tree_free(tree);
}

static void what_cjson_takes_beyond_json_is_refused(void **state)
{
    static const struct kinf_str texts[] = {
        KINF_STR("[01]"),           KINF_STR("[1.]"), KINF_STR("\"a\tb\""), KINF_STR("\"\xff\""),
        KINF_STR("\xef\xbb\xbf{}"), KINF_STR("{} x"), KINF_STR("{}\0"),
    };
    struct kinf_error err = KINF_ERROR_INIT;
    struct cJSON *tree = NULL;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++)
        assert_int_equal(kinf__json_tree_parse(texts[i], &tree, &err), KINF_ERR_PARSE);
    assert_non_null(strstr(err.message, "offset 2"));
    assert_int_equal(kinf__json_tree_parse(KINF_STR("{\"a\":"), &tree, &err), KINF_ERR_TRUNCATED);
    assert_int_equal(kinf__json_tree_parse(KINF_STR(""), &tree, NULL), KINF_ERR_TRUNCATED);
    assert_null(tree);
}

static void assert_depth(size_t depth, int status)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct cJSON *tree = NULL;

    for (size_t i = 0; i < depth; i++)
        assert_int_equal(kinf__buffer_append(&text, "[", 1), 0);
    for (size_t i = 0; i < depth; i++)
        assert_int_equal(kinf__buffer_append(&text, "]", 1), 0);
    assert_int_equal(kinf__json_tree_parse(kinf__buffer_str(&text), &tree, &err), status);
    kinf__json_tree_free(tree);
}

static void limits_of_cjson_are_named(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct cJSON *tree = NULL;

    (void)state;
    assert_depth(1000, 0);
    assert_depth(1001, KINF_ERR_LIMIT);
    assert_int_equal(kinf__json_tree_parse(KINF_STR("\"\\ud800\""), &tree, &err), KINF_ERR_LIMIT);
    assert_null(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_walked_by_keys),
        cmocka_unit_test(elements_come_in_order),
        cmocka_unit_test(what_cjson_takes_beyond_json_is_refused),
        cmocka_unit_test(limits_of_cjson_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
