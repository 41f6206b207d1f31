/*
 * Manifests: scalars as kube-apiserver 1.37 reads them (each row was asked of one), merge keys,
 * lists, places.
 */
#include "document/manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "document/tree.h"
#include "unit/allocation.h"
#include "unit/test.h"

/* The document as JSON, in `out`. */
static int to_json(const char *text, struct kinf__buffer *out, struct kinf_error *err)
{
    KINF__AUTO_DOC *tree = NULL;
    int failed = kinf__manifest_parse_one(kinf_str_from(text), &tree, err);

    if (failed == 0)
        failed = kinf__doc_print(tree, out);
    if (failed == 0 && kinf__buffer_cstr(out) == NULL)
        failed = KINF_ERR_NO_MEMORY;
    return failed;
}

static void assert_json(const char *text, const char *json)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    if (to_json(text, &out, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    assert_string_equal(out.bytes, json);
}

static void assert_refused(const char *text, const char *message)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    assert_int_equal(to_json(text, &out, &err), KINF_ERR_PARSE);
    assert_string_equal(err.message, message);
}

static void scalars_are_read_as_the_server_does(void **state)
{
    static const struct {
        const char *text, *json;
    } rows[] = {
        { "yes", "true" },
        { "Y", "true" },
        { "ON", "true" },
        { "oN", "\"oN\"" },
        { "n", "false" },
        { "Off", "false" },
        { "tRUE", "\"tRUE\"" },
        { "~", "null" },
        { "", "null" },
        { "NULL", "null" },
        { "nULL", "\"nULL\"" },
        { "0x1F", "31" },
        { "0X1F", "31" },
        { "0o17", "15" },
        { "0O17", "15" },
        { "0o8", "\"0o8\"" },
        { "017", "15" },
        { "08", "8" },
        { "0b101", "5" },
        { "0b2", "\"0b2\"" },
        { "+5", "5" },
        { "-5", "-5" },
        { "-0x10", "-16" },
        { "-017", "-15" },
        { "1_000", "1000" },
        { "_1", "\"_1\"" },
        { "1_", "1" },
        { "0x_1", "1" },
        { "0x", "\"0x\"" },
        { "1_0.5", "10.5" },
        { "1e3", "1000" },
        { "1.e3", "1000" },
        { "1e", "\"1e\"" },
        { "1.", "1" },
        { ".5", "0.5" },
        { "-.5", "-0.5" },
        { ".", "\".\"" },
        { "+", "\"+\"" },
        { "1e400", "\"1e400\"" },
        { "1.0", "1" },
        { "0.1", "0.1" },
        { "1e20", "100000000000000000000" },
        { "1e21", "1e+21" },
        { "1e-7", "1e-07" },
        { "123456789.123456789", "123456789.12345679" },
        { "1.7976931348623157e308", "1.7976931348623157e+308" },
        { "9223372036854775807", "9223372036854775807" },
        { "9007199254740993", "9007199254740993" },
        { "1000000000000000", "1000000000000000" },
        { "123456789012345678901234", "1.2345678901234569e+23" },
        { "0777777777777777777777777", "7.777777777777778e+23" },
        { "0xFFFFFFFFFFFFFFFFFF", "\"0xFFFFFFFFFFFFFFFFFF\"" },
        { "-0", "0" },
        { "-0.0", "0" },
        { "00", "0" },
        { "2001-12-14", "\"2001-12-14\"" },
        { "190:20:30", "\"190:20:30\"" },
        { "1.2.3", "\"1.2.3\"" },
        { "100m", "\"100m\"" },
        { "0x1p4", "\"0x1p4\"" },
        { "Inf", "\"Inf\"" },
        { "\"5\"", "\"5\"" },
        { "'true'", "\"true\"" },
        { "!!str 5", "\"5\"" },
        { "!!int \"5\"", "5" },
        { "!!bool \"yes\"", "true" },
        { "=", "\"=\"" },
        { "<<", "\"<<\"" },
        { "|\n  x\n  y", "\"x\\ny\"" },
        { ">\n  x\n  y\n", "\"x y\\n\"" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        char text[128], json[128];

        snprintf(text, sizeof text, "v: %s", rows[i].text);
        snprintf(json, sizeof json, "{\"v\":%s}", rows[i].json);
        assert_json(text, json);
    }
}

static void keys_become_texts(void **state)
{
    (void)state;
    assert_json("1: a\n0x10: b\ntrue: c\nn: d\n1.5: e\n1e3: f\n.inf: g\n2001-12-14: h\n",
                "{\"1\":\"a\",\"16\":\"b\",\"true\":\"c\",\"false\":\"d\",\"1.5\":\"e\","
                "\"1000\":\"f\",\".inf\":\"g\",\"2001-12-14\":\"h\"}");
    assert_refused("a:\n  null: x\n", "yaml:2:3: null cannot be a key");
    assert_refused("a: .inf\n", "yaml:1:4: JSON has no such number");
}

static void mappings_are_merged_where_they_are_named(void **state)
{
    (void)state;
    assert_json("a: &x {k: v, l: w}\nb:\n  <<: *x\n  k: z\n",
                "{\"a\":{\"k\":\"v\",\"l\":\"w\"},\"b\":{\"l\":\"w\",\"k\":\"z\"}}");
    /* As the server has it, not as the definition of merge keys says. */
    assert_json("c:\n  a: 2\n  <<: {a: 1}\n", "{\"c\":{\"a\":1}}");
    assert_json("c:\n  <<: [{a: 1, b: 1}, {a: 2, c: 2}]\n  d: 3\n",
                "{\"c\":{\"c\":2,\"a\":1,\"b\":1,\"d\":3}}");
    assert_json("c:\n  <<: {a: 1}\n  <<: {a: 2}\n", "{\"c\":{\"a\":2}}");
    assert_json("c:\n  <<: {<<: {a: 1}, b: 2}\n", "{\"c\":{\"a\":1,\"b\":2}}");
    assert_json("c:\n  \"<<\": {a: 1}\n", "{\"c\":{\"<<\":{\"a\":1}}}");
    assert_refused("c:\n  <<: 5\n", "yaml:2:7: << takes a mapping or a list of mappings");
    assert_refused("c:\n  <<: [5]\n", "yaml:2:8: << takes a mapping or a list of mappings");
}

static void a_body_is_the_first_document(void **state)
{
    (void)state;
    assert_json("a: 1\n---\n]\n", "{\"a\":1}");
    assert_json("", "null");
    assert_json("# nothing\n", "null");
    assert_json("- a\n", "[\"a\"]");
    assert_json("{\"a\": 1.50, \"b\": \"\\u00e9\"}\n", "{\"a\":1.50,\"b\":\"\xc3\xa9\"}");
    assert_json("{\"a\": \"\\\\u0000\"}", "{\"a\":\"\\\\u0000\"}"); /* no NUL */
    assert_json("{\"a\": 1000000000000000}", "{\"a\":1000000000000000}");
    assert_json("{a: 1, \"b\": yes}", "{\"a\":1,\"b\":true}");
    assert_refused("{", "yaml:2:1: did not find expected node content");
}

static void a_doubled_key_of_a_body_is_kept(void **state)
{
    (void)state;
    assert_json("a: 1\na: 2\n", "{\"a\":1,\"a\":2}");
}

/* --- objects --- */

/* Each object as "where json\n". */
struct taking {
    struct kinf__buffer taken;
    size_t n_taken;
    size_t fail_at; /* 0: never */
};

static int take(struct cJSON *take_object, const char *where, void *ctx)
{
    KINF__AUTO_DOC *object = take_object;
    struct taking *taking = ctx;

    if (++taking->n_taken == taking->fail_at)
        return KINF_ERR_STATE;
    if (kinf__buffer_printf(&taking->taken, "%s ", where) < 0 ||
        kinf__doc_print(object, &taking->taken) < 0 ||
        kinf__buffer_append(&taking->taken, "\n", 1) < 0 ||
        kinf__buffer_cstr(&taking->taken) == NULL)
        return KINF_ERR_NO_MEMORY;
    return 0;
}

static void assert_read(const char *text, const char *taken)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct taking taking = { .n_taken = 0 };

    if (kinf__manifest_read(kinf_str_from(text), "f", take, &taking, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    assert_string_equal(taking.taken.bytes != NULL ? taking.taken.bytes : "", taken);
    kinf__buffer_release(&taking.taken);
}

static void assert_unreadable(const char *text, int code, const char *message)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct taking taking = { .n_taken = 0 };

    assert_int_equal(kinf__manifest_read(kinf_str_from(text), "f", take, &taking, &err), code);
    assert_string_equal(err.message, message);
    kinf__buffer_release(&taking.taken);
}

static void objects_come_with_their_places(void **state)
{
    (void)state;
    assert_read("kind: A\n---\n# nothing\n---\nkind: B\n",
                "f:1 {\"kind\":\"A\"}\nf:5 {\"kind\":\"B\"}\n");
    assert_read("\n{\"kind\":\"A\"}\n\n{\"kind\":\"B\"} {\"kind\":\"C\"}",
                "f:2 {\"kind\":\"A\"}\nf:4 {\"kind\":\"B\"}\nf:4 {\"kind\":\"C\"}\n");
    assert_read("{kind: A}", "f:1 {\"kind\":\"A\"}\n");
    assert_read("", "");
    assert_read("---\n---\nnull\n", "");
}

static void lists_are_their_items(void **state)
{
    (void)state;
    assert_read("kind: List\nitems:\n- {kind: A}\n- {kind: List, items: [{kind: B}]}\n",
                "f:1: item 1 {\"kind\":\"A\"}\nf:1: item 2 {\"kind\":\"B\"}\n");
    assert_read("{\"kind\":\"ThingList\",\"apiVersion\":\"x/v1\",\"items\":[{},{\"kind\":\"B\"}]}",
                "f:1: item 1 {\"kind\":\"Thing\",\"apiVersion\":\"x/v1\"}\n"
                "f:1: item 2 {\"kind\":\"B\"}\n");
    assert_read("[{\"kind\":\"A\"},{\"kind\":\"B\"}]",
                "f:1: item 1 {\"kind\":\"A\"}\nf:1: item 2 {\"kind\":\"B\"}\n");
    assert_read("kind: List\nitems: []\n", "");
    /* Such a kind may be somebody's own. */
    assert_read("kind: PriceList\n", "f:1 {\"kind\":\"PriceList\"}\n");
}

static void what_is_no_object_has_a_place(void **state)
{
    (void)state;
    assert_unreadable("a: 1\n---\ntext\n", KINF_ERR_PARSE, "f:3: an object is expected");
    assert_unreadable("kind: List\nitems: [5]\n", KINF_ERR_PARSE, "f:1: an object is expected");
    assert_unreadable("a: 1\na: 2\n", KINF_ERR_PARSE, "f:2:1: this key is there twice");
    assert_unreadable("{\"a\": 1,\n \"b\" 2}", KINF_ERR_PARSE,
                      "f:2:6: did not find expected ',' or '}'");
    assert_unreadable("\n{\"a\": \"\\u0000\"}", KINF_ERR_LIMIT, "f:2: JSON with a NUL in a string");
}

static void a_taker_may_fail(void **state)
{
    static const char *const texts[] = { "a: 1\n---\na: 2\n---\na: 3\n", "{\"a\":1}{\"a\":2}{}",
                                         "[{\"a\":1},{\"a\":2},{}]" };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++) {
        struct taking taking = { .fail_at = 2 };

        assert_int_equal(kinf__manifest_read(kinf_str_from(texts[i]), "f", take, &taking, NULL),
                         KINF_ERR_STATE);
        assert_int_equal(taking.n_taken, 2);
        kinf__buffer_release(&taking.taken);
    }
}

static void depth_is_limited(void **state)
{
    char text[4096];

    (void)state;
    memset(text, '[', 1001);
    memset(text + 1001, ']', 1001);
    text[2002] = '\0';
    assert_int_equal(kinf__manifest_read(kinf_str_from(text), "f", NULL, NULL, NULL),
                     KINF_ERR_LIMIT);
    assert_int_equal(
        kinf__manifest_read((struct kinf_str){ text + 1, 2000 }, "f", NULL, NULL, NULL), 0);
}

static void out_of_memory_is_an_ordinary_error(void **state)
{
    static const char *const texts[] = {
        "kind: ThingList\napiVersion: v1\nitems:\n- &x {a: [1, 2.5, x, ~, no]}\n- <<: [*x, {a: "
        "2}]\n",
        "{\"kind\":\"List\",\"items\":[{\"a\":1.5},{}]}\n{\"b\":\"c\"}",
    };

    (void)state;
    for (size_t n = 1, i = 0; i < KINF__ARRAY_LEN(texts); n++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct taking taking = { .n_taken = 0 };
        bool did_fail;
        int failed;

        test_fail_allocation(n);
        failed = kinf__manifest_read(kinf_str_from(texts[i]), "f", take, &taking, &err);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        kinf__buffer_release(&taking.taken);
        if (!did_fail) {
            n = 0;
            i++;
        }
    }
}

static void a_body_without_memory_is_an_error(void **state)
{
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        KINF__AUTO_DOC *tree = NULL;
        int failed;

        test_fail_allocation(n);
        failed = kinf__manifest_parse_one(KINF_STR("a: {<<: {b: c}}\nd: []\n"), &tree, NULL);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_are_read_as_the_server_does),
        cmocka_unit_test(keys_become_texts),
        cmocka_unit_test(mappings_are_merged_where_they_are_named),
        cmocka_unit_test(a_body_is_the_first_document),
        cmocka_unit_test(a_doubled_key_of_a_body_is_kept),
        cmocka_unit_test(objects_come_with_their_places),
        cmocka_unit_test(lists_are_their_items),
        cmocka_unit_test(what_is_no_object_has_a_place),
        cmocka_unit_test(a_taker_may_fail),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(out_of_memory_is_an_ordinary_error),
        cmocka_unit_test(a_body_without_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
