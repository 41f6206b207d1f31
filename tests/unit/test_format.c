/*
 * What a program sends and what it reads of objects beyond single fields: forms of JSON, raw values,
 * labels and annotations with their keys, errors of its own.
 */
#include <kinformer/kinformer.h>

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/test.h"

#define EXPECT(expected, ...)                                                                      \
    do {                                                                                           \
        kinf_auto_scratch struct kinf_scratch scratch_ = KINF_SCRATCH_INIT;                        \
        struct kinf_error err_ = KINF_ERROR_INIT;                                                  \
        struct kinf_str json_;                                                                     \
        char text_[512];                                                                           \
                                                                                                   \
        if (kinf_json_format(&scratch_, &json_, &err_, __VA_ARGS__) < 0)                           \
            fail_msg("%s", err_.message);                                                          \
        snprintf(text_, sizeof text_, "%.*s", (int)json_.len, json_.bytes);                        \
        assert_string_equal(text_, expected);                                                      \
    } while (0)

#define EXPECT_REFUSED(...)                                                                        \
    do {                                                                                           \
        kinf_auto_scratch struct kinf_scratch scratch_ = KINF_SCRATCH_INIT;                        \
        struct kinf_str json_;                                                                     \
                                                                                                   \
        assert_int_equal(kinf_json_format(&scratch_, &json_, NULL, __VA_ARGS__),                   \
                         KINF_ERR_INVALID);                                                        \
    } while (0)

static const struct kinf_str none = { NULL, 0 };

static void a_form_becomes_json_with_its_arguments(void **state)
{
    (void)state;
    EXPECT("{}", "{}");
    EXPECT("{\"metadata\":{\"labels\":{\"sync-copy\":\"true\"},"
           "\"annotations\":{\"sync.example/owner\":\"ns/a\"}},\"data\":{\"a\":1}}",
           "{metadata:{labels:{sync-copy:?s},annotations:{sync.example/owner:?s}},data:?j}", "true",
           "ns/a", KINF_STR("{\"a\":1}"));
    EXPECT("[{\"op\":\"add\",\"path\":\"/spec/replicas\",\"value\":-3}]",
           "[{op:\"add\",path:?s,value:?i}]", "/spec/replicas", (int64_t)-3);
    EXPECT("{\"a\" : [1.5e+3, true , false,null]}", "{a : [1.5e+3, true , false,null]}");
    EXPECT("{\"quo\\\"ted\":\"?s {a:1}\"}", "{\"quo\\\"ted\":\"?s {a:1}\"}");
    EXPECT("{\"k\":\"v\"}", "{?v:?v}", KINF_STR("k"), KINF_STR("v"));
    EXPECT("[null,null,null]", "[?s,?v,?j]", (const char *)NULL, none, none);
    EXPECT("-9223372036854775808", "?i", INT64_MIN);
}

static void no_value_becomes_structure(void **state)
{
    (void)state;
    EXPECT("{\"a\":\"\\\",\\\"b\\\":1,\\\"\\\\\\n\"}", "{a:?s}", "\",\"b\":1,\"\\\n");
    EXPECT("[\"a\\u0000b\"]", "[?v]", KINF_STR("a\0b"));
    EXPECT("[\"\\ufffd\"]", "[?s]", "\xff");
    EXPECT("{\"true\":1}", "{?s:1}", "true");
    EXPECT_REFUSED("{a:?j}", KINF_STR("1,\"b\":2"));
    EXPECT_REFUSED("{a:?j}", KINF_STR("1}"));
    EXPECT_REFUSED("{a:?j}", KINF_STR(""));
    EXPECT_REFUSED("[?j]", KINF_STR("1,2"));
    /* Halves that fit together. */
    EXPECT_REFUSED("[?j ?j]", KINF_STR("[1,"), KINF_STR("2]"));
}

static void what_is_no_form_is_refused(void **state)
{
    static const char *const forms[] = { "",       "{",    "{a}",   "{a:}",   "{a:b}",
                                         "{a:1,}", "?",    "{a:?}", "{a:?x}", "[01]",
                                         "{a:\"}", "{}{}", "{:1}",  "{a:+1}", "\"a\\\"" };
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(forms); i++) {
        if (kinf_json_format(&scratch, &json, &err, forms[i]) != KINF_ERR_INVALID)
            fail_msg("%s", forms[i]);
    }
    assert_int_equal(kinf_json_format(&scratch, &json, &err, "{a:?x}"), KINF_ERR_INVALID);
    assert_non_null(strstr(err.message, "column 4"));
}

/* --- reading --- */

static const struct kinf_object *make_object(void)
{
    static const char text[] =
        "{\"metadata\":{\"name\":\"a\",\"labels\":{\"app\":\"web\",\"x.y/z\":\"\"},"
        "\"annotations\":{\"note\":\"say \\\"hi\\\"\\n\",\"nul\":\"a\\u0000b\",\"odd\":7}},"
        "\"spec\":{\"list\":[1,{\"b\":\"c\"}],\"text\":\"q\\\"\",\"none\":null}}";
    const struct kinf_object *object;
    const struct kinf_type *type;

    assert_int_equal(kinf_type_intern("", "v1", "Thing", "things", false, &type, NULL), 0);
    assert_int_equal(kinf_object_new_from_json(type, text, strlen(text), &object, NULL), 0);
    return object;
}

static void a_value_can_be_had_raw(void **state)
{
    static const struct {
        const char *path;
        const char *json; /* NULL: there is none */
    } rows[] = {
        { "spec.list", "[1,{\"b\":\"c\"}]" },
        { "spec.list[1]", "{\"b\":\"c\"}" },
        { "spec.list[*]", "1" },
        { "spec.text", "\"q\\\"\"" },
        { "spec.none", NULL },
        { "spec.other", NULL },
    };
    kinf_auto_object const struct kinf_object *object = make_object();
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        int rc = kinf_object_get_json(object, rows[i].path, &scratch, &json);

        assert_int_equal(rc, rows[i].json != NULL ? 0 : KINF_ERR_NOT_FOUND);
        assert_int_equal(kinf_object_has(object, rows[i].path), rows[i].json != NULL);
        if (rc == 0)
            assert_true(kinf_str_equal(json, kinf_str_from(rows[i].json)));
    }
    assert_int_equal(kinf_object_get_json(object, "a..b", &scratch, &json), KINF_ERR_PARSE);
    assert_false(kinf_object_has(object, "a..b"));
}

struct pairs {
    char text[256];
    int result;
};

static int append_pair(const char *key, const char *value, void *ctx)
{
    struct pairs *pairs = ctx;

    sprintf(pairs->text + strlen(pairs->text), "%s=%s;", key, value);
    return pairs->result;
}

static void labels_and_annotations_come_with_their_keys(void **state)
{
    kinf_auto_object const struct kinf_object *object = make_object();
    struct pairs labels = { "", 0 }, annotations = { "", 0 }, first = { "", 5 };

    (void)state;
    assert_int_equal(kinf_object_each_label(object, append_pair, &labels), 0);
    assert_string_equal(labels.text, "app=web;x.y/z=;");
    assert_int_equal(kinf_object_each_annotation(object, append_pair, &annotations), 0);
    assert_string_equal(annotations.text, "note=say \"hi\"\n;");
    assert_int_equal(kinf_object_each_label(object, append_pair, &first), 5);
    assert_string_equal(first.text, "app=web;");
}

static void an_object_without_them_has_none(void **state)
{
    static const char text[] = "{\"metadata\":{\"name\":\"a\",\"labels\":null}}";
    kinf_auto_object const struct kinf_object *object = NULL;
    const struct kinf_type *type;
    struct pairs pairs = { "", 0 };

    (void)state;
    assert_int_equal(kinf_type_intern("", "v1", "Thing", "things", false, &type, NULL), 0);
    assert_int_equal(kinf_object_new_from_json(type, text, strlen(text), &object, NULL), 0);
    assert_int_equal(kinf_object_each_label(object, append_pair, &pairs), 0);
    assert_int_equal(kinf_object_each_annotation(object, append_pair, &pairs), 0);
    assert_string_equal(pairs.text, "");
}

static void a_callback_can_say_why_it_failed(void **state)
{
    struct kinf_error err = { KINF_ERR_TIMEOUT, 500, 7, 9, "old" };

    (void)state;
    assert_int_equal(kinf_error_set(&err, KINF_ERR_CONFIG, "no %s\nhere", "thing"),
                     KINF_ERR_CONFIG);
    assert_int_equal(err.code, KINF_ERR_CONFIG);
    assert_string_equal(err.message, "no thing here");
    assert_int_equal(err.http_status + err.sys_errno, 0);
    assert_int_equal(kinf_error_set(NULL, KINF_ERR_CONFIG, "x"), KINF_ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_form_becomes_json_with_its_arguments),
        cmocka_unit_test(no_value_becomes_structure),
        cmocka_unit_test(what_is_no_form_is_refused),
        cmocka_unit_test(a_value_can_be_had_raw),
        cmocka_unit_test(labels_and_annotations_come_with_their_keys),
        cmocka_unit_test(an_object_without_them_has_none),
        cmocka_unit_test(a_callback_can_say_why_it_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
