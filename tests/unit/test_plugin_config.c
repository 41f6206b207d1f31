/*
 * What a plugin is handed of the configuration.
 */
#include "daemon/plugin_config.h"

#include "unit/allocation.h"
#include "unit/test.h"

static const struct {
    const char *yaml;
    const char *json;
} rows[] = {
    { "", "null" },
    { "~", "null" },
    { "null", "null" },
    { "'null'", "\"null\"" },
    { "true", "true" },
    { "\"true\"", "\"true\"" },
    { "False", "\"False\"" },
    { "yes", "\"yes\"" },
    { "no", "\"no\"" },
    { "7", "7" },
    { "-0.50e+3", "-0.50e+3" },
    { "123456789012345678901234567890", "123456789012345678901234567890" },
    { "'7'", "\"7\"" },
    { "007", "\"007\"" },
    { "+7", "\"+7\"" },
    { "0x1F", "\"0x1F\"" },
    { "1_000", "\"1_000\"" },
    { ".inf", "\".inf\"" },
    { "7 apples", "\"7 apples\"" },
    { "2026-01-31", "\"2026-01-31\"" },
    { "nats://a:4222", "\"nats://a:4222\"" },
    { "\"a\\n\\\"b\"", "\"a\\n\\\"b\"" },
    { "|\n  a\n  b\n", "\"a\\nb\\n\"" },
    { "{}", "{}" },
    { "[]", "[]" },
    { "[1, [true, ~], {}, x]", "[1,[true,null],{},\"x\"]" },
    { "{a: 1, 7: {b: }, true: [\"1\"], 'c d': y}",
      "{\"a\":1,\"7\":{\"b\":null},\"true\":[\"1\"],\"c d\":\"y\"}" },
    { "{a: &x {b: 1}, c: *x, d: {<<: *x, e: 2}}",
      "{\"a\":{\"b\":1},\"c\":{\"b\":1},\"d\":{\"b\":1,\"e\":2}}" },
};

static int to_json(const char *text, struct kinf__buffer *out)
{
    KINF__CLEANUP(kinf__yaml_free_ptr) struct kinf__yaml *yaml = NULL;

    assert_int_equal(kinf__yaml_parse(kinf_str_from(text), "test", &yaml, NULL), 0);
    return kinf__plugin_config_write(kinf__yaml_root(yaml), out);
}

static void yaml_becomes_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

        assert_int_equal(to_json(rows[i].yaml, &out), 0);
        assert_string_equal(kinf__buffer_cstr(&out), rows[i].json);
    }
}

static void nothing_is_null(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__plugin_config_write(NULL, &out), 0);
    assert_string_equal(kinf__buffer_cstr(&out), "null");
}

static void want_of_memory_is_an_error(void **state)
{
    KINF__CLEANUP(kinf__yaml_free_ptr) struct kinf__yaml *yaml = NULL;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    size_t n_failures = 0;
    bool did_fail = true;

    (void)state;
    for (int i = 0; i < 200; i++)
        assert_int_equal(kinf__buffer_printf(&text, "- {key: [text, 7, true, ~]}\n"), 0);
    assert_int_equal(kinf__yaml_parse(kinf__buffer_str(&text), "test", &yaml, NULL), 0);
    for (size_t n = 1; did_fail; n++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        int failed;

        test_fail_allocation(n);
        failed = kinf__plugin_config_write(kinf__yaml_root(yaml), &out);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        n_failures += did_fail;
    }
    assert_true(n_failures > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_becomes_json),
        cmocka_unit_test(nothing_is_null),
        cmocka_unit_test(want_of_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
