/*
 * Bodies that are none are refused in the words of Go's decoder, and quoted as the server does.
 */
#include "apiserver/body.h"

#include "test.h"

#include <string.h>

#include "base/compiler.h"

static void what_is_no_object_is_refused_and_quoted(void **state)
{
    static const struct {
        const char *body, *end;
    } rows[] = {
        { "", "unexpected end of JSON input (<empty>)" },
        { "  ", "unexpected end of JSON input (2020)" },
        { "{", "unexpected end of JSON input ({)" },
        { "hello", "invalid character 'h' looking for beginning of value (68656c6c6f)" },
        { "5", "APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
               "\"json:\\\"kind,omitempty\\\"\" } (35)" },
        { "{\"a\":\"0123456789012345678901234567890", "({\"a\":\"012345678901234567890123 ...)" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_str body = kinf_str_from(rows[i].body);
        struct kinf__refusal refusal = { 0 };
        struct cJSON *object;
        const char *message = refusal.message;

        assert_int_equal(kinf__body_parse_object(body, false, &object, &refusal), KINF_ERR_INVALID);
        assert_int_equal(kinf__body_refuse(body, "Pod", &refusal), KINF_ERR_INVALID);
        assert_int_equal(refusal.code, 400);
        assert_ptr_equal(strstr(message, "the object provided is unrecognized (must be of type "
                                         "Pod): couldn't get version/kind; json parse error: "),
                         message);
        assert_string_equal(message + strlen(message) - strlen(rows[i].end), rows[i].end);
    }
}

static void null_is_an_empty_object(void **state)
{
    struct kinf__refusal refusal = { 0 };
    struct cJSON *object;

    (void)state;
    assert_int_equal(kinf__body_parse_object(kinf_str_from("null"), false, &object, &refusal), 0);
    assert_true(cJSON_IsObject(object));
    assert_null(object->child);
    cJSON_Delete(object);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_object_is_refused_and_quoted),
        cmocka_unit_test(null_is_an_empty_object),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
