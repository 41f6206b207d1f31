/*
 * YAML trees: places, limits, typed fields.
 */
#include "yaml/yaml.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "unit/test.h"

static struct kinf__yaml *parse(const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__yaml *yaml = NULL;

    if (kinf__yaml_parse(kinf_str_from(text), "f", &yaml, &err) < 0)
        fail_msg("%s", err.message);
    return yaml;
}

static void assert_refused(const char *text, int code, const char *place)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__yaml *yaml = NULL;

    assert_int_equal(kinf__yaml_parse(kinf_str_from(text), "f", &yaml, &err), code);
    if (strncmp(err.message, place, strlen(place)) != 0)
        fail_msg("'%s' does not begin with '%s'", err.message, place);
}

static void nodes_know_where_they_stood(void **state)
{
    struct kinf__yaml *yaml = parse("a: 1\nlist:\n  - x\n  - {k: 'v'}\n");
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml),
                                 *list = kinf__yaml_get(root, "list");

    (void)state;
    assert_int_equal(root->n_items, 2);
    assert_int_equal(kinf__yaml_get(root, "a")->line, 1);
    assert_int_equal(kinf__yaml_get(root, "a")->column, 4);
    assert_int_equal(list->n_items, 2);
    assert_int_equal(list->items[0]->line, 3);
    assert_int_equal(list->items[0]->column, 5);
    assert_true(kinf__yaml_get(list->items[1], "k")->is_quoted);
    assert_string_equal(kinf__yaml_get(list->items[1], "k")->text.bytes, "v");
    assert_null(kinf__yaml_get(root, "absent"));
    kinf__yaml_free(yaml);
}

static void json_is_yaml_enough(void **state)
{
    struct kinf__yaml *yaml = parse("{\"a\": [1, {\"b\": \"c\\n\"}], \"d\": null}");

    (void)state;
    assert_string_equal(
        kinf__yaml_get(kinf__yaml_get(kinf__yaml_root(yaml), "a")->items[1], "b")->text.bytes,
        "c\n");
    assert_null(kinf__yaml_get(kinf__yaml_root(yaml), "d"));
    kinf__yaml_free(yaml);
}

static void nothing_is_null(void **state)
{
    static const char *const texts[] = { "", "# only a comment\n", "~", "null", "---\n" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct kinf__yaml *yaml = parse(texts[i]);

        assert_true(kinf__yaml_is_null(kinf__yaml_root(yaml)));
        kinf__yaml_free(yaml);
    }
}

static void what_is_wrong_has_a_place(void **state)
{
    (void)state;
    assert_refused("a: [1\n", KINF_ERR_PARSE, "f:2:1: ");
    assert_refused("a: 1\na: 2\n", KINF_ERR_PARSE, "f:2:1: this key is there twice");
    assert_refused("a: 1\n---\nb: 2\n", KINF_ERR_PARSE, "f:2:1: a second document");
    assert_refused("? [a]\n: b\n", KINF_ERR_PARSE, "f:1:3: a key that is no plain text");
    assert_refused("a: *none\n", KINF_ERR_PARSE, "f:1:4: ");
    assert_refused("a: &x [*x]\n", KINF_ERR_PARSE, "f:1:8: an alias inside its own anchor");
    assert_refused("a: \"x\\0y\"\n", KINF_ERR_PARSE, "f:1:4: a NUL in a text");
    assert_refused("\tb: 1\n", KINF_ERR_PARSE, "f:1:1: ");
}

static void aliases_stand_for_their_anchor(void **state)
{
    struct kinf__yaml *yaml = parse("a: &x {k: v}\nb: *x\nc: &x w\nd: *x\n");
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml);

    (void)state;
    assert_ptr_equal(kinf__yaml_get(root, "a"), kinf__yaml_get(root, "b"));
    assert_string_equal(kinf__yaml_get(root, "d")->text.bytes, "w");
    kinf__yaml_free(yaml);
}

/* Nine lines that stand for a thousand million nodes. */
static void an_alias_bomb_is_refused(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__buffer_printf(&text, "l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n"), 0);
    for (int i = 1; i < 9; i++) {
        assert_int_equal(kinf__buffer_printf(&text, "l%d: &l%d [", i, i), 0);
        for (int k = 0; k < 10; k++)
            assert_int_equal(kinf__buffer_printf(&text, "%s*l%d", k != 0 ? "," : "", i - 1), 0);
        assert_int_equal(kinf__buffer_printf(&text, "]\n"), 0);
    }
    assert_refused(kinf__buffer_cstr(&text), KINF_ERR_LIMIT, "f:6:");
}

static void depth_is_limited(void **state)
{
    char text[2 * KINF__YAML_MAX_DEPTH + 3];

    (void)state;
    memset(text, '[', KINF__YAML_MAX_DEPTH);
    memset(text + KINF__YAML_MAX_DEPTH, ']', KINF__YAML_MAX_DEPTH);
    text[2 * KINF__YAML_MAX_DEPTH] = '\0';
    kinf__yaml_free(parse(text));
    memset(text, '[', KINF__YAML_MAX_DEPTH + 1);
    text[KINF__YAML_MAX_DEPTH + 1] = '\0';
    assert_refused(text, KINF_ERR_LIMIT, "f:1:65: nested too deep");
}

static void cut_text_is_an_error_or_a_smaller_document(void **state)
{
    static const char text[] =
        "a: &x\n  - 'q'\n  - {k: \"v\\n\", l: [1, 2]}\nb: *x\nc: |\n  block\n";

    (void)state;
    for (size_t len = 0; len < sizeof text; len++) {
        struct kinf__yaml *yaml = NULL;

        if (kinf__yaml_parse((struct kinf_str){ text, len }, "f", &yaml, NULL) == 0)
            kinf__yaml_free(yaml);
    }
}

static void typed_fields_say_what_they_expect(void **state)
{
    struct kinf__yaml *yaml =
        parse("s: text\nyes: true\nquoted: 'false'\nbad: maybe\nn: 42\nd: 1m30s\nseq: [a]\n"
              "map: {a: b}\nnothing: ~\nneg: -1\nbig: 18446744073709551616\n");
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml), *node = NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    const char *text = "before";
    bool truth = false;
    uint64_t number = 7;
    int64_t ms = 7;

    (void)state;
    assert_int_equal(kinf__yaml_read_string(yaml, root, "nothing", &text, &err), 0);
    assert_string_equal(text, "before");
    assert_int_equal(kinf__yaml_read_string(yaml, root, "s", &text, &err), 0);
    assert_string_equal(text, "text");
    assert_int_equal(kinf__yaml_read_string(yaml, root, "seq", &text, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, "f:7:6: seq: a text is expected, not a list");
    assert_int_equal(kinf__yaml_read_bool(yaml, root, "yes", &truth, &err), 0);
    assert_true(truth);
    assert_int_equal(kinf__yaml_read_bool(yaml, root, "quoted", &truth, &err), 0);
    assert_false(truth);
    assert_int_equal(kinf__yaml_read_bool(yaml, root, "bad", &truth, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, "f:4:6: bad: true or false is expected, not 'maybe'");
    assert_int_equal(kinf__yaml_read_uint(yaml, root, "n", 42, &number, &err), 0);
    assert_int_equal(number, 42);
    assert_int_equal(kinf__yaml_read_uint(yaml, root, "n", 41, &number, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_uint(yaml, root, "n", 5, &number, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_uint(yaml, root, "neg", 42, &number, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_uint(yaml, root, "big", UINT64_MAX, &number, &err),
                     KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_duration_ms(yaml, root, "d", &ms, &err), 0);
    assert_int_equal(ms, 90000);
    assert_int_equal(kinf__yaml_read_duration_ms(yaml, root, "n", &ms, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_sequence(yaml, root, "seq", &node, &err), 0);
    assert_int_equal(node->n_items, 1);
    assert_int_equal(kinf__yaml_read_mapping(yaml, root, "seq", &node, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_mapping(yaml, root, "map", &node, &err), 0);
    assert_string_equal(kinf__yaml_get(node, "a")->text.bytes, "b");
    kinf__yaml_free(yaml);
}

static void unknown_keys_are_named_with_those_that_exist(void **state)
{
    static const char *const allowed[] = { "a", "b", NULL };
    struct kinf__yaml *yaml = parse("a: 1\n  \nc: 2\n");
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf__yaml_check_keys(yaml, kinf__yaml_root(yaml), allowed, &err),
                     KINF_ERR_CONFIG);
    assert_string_equal(err.message, "f:3:1: unknown key 'c'; known are a, b");
    kinf__yaml_free(yaml);
}

static void a_missing_file_is_named(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__yaml *yaml = NULL;

    (void)state;
    assert_int_equal(kinf__yaml_read("/no/such/file", &yaml, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, "cannot read /no/such/file: No such file or directory");
    assert_int_equal(kinf__yaml_read("/", &yaml, &err), KINF_ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_know_where_they_stood),
        cmocka_unit_test(json_is_yaml_enough),
        cmocka_unit_test(nothing_is_null),
        cmocka_unit_test(what_is_wrong_has_a_place),
        cmocka_unit_test(aliases_stand_for_their_anchor),
        cmocka_unit_test(an_alias_bomb_is_refused),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(cut_text_is_an_error_or_a_smaller_document),
        cmocka_unit_test(typed_fields_say_what_they_expect),
        cmocka_unit_test(unknown_keys_are_named_with_those_that_exist),
        cmocka_unit_test(a_missing_file_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
