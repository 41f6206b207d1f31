/*
 * Bodies that are none are refused in the words of Go's decoder, and quoted as the server does.
 */
#include "apiserver/body.h"

#include <stdlib.h>

#include "allocation.h"
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

static void *counted_malloc(size_t size)
{
    return malloc(size);
}

/* Of cJSON's parser nobody knows why it failed: what it says then is that the body is none. */
static void without_memory_a_body_is_refused(void **state)
{
    static const struct {
        const char *text;
        bool is_yaml;
    } bodies[] = {
        { "null", false },
        { "{\"a\":[1.50,{\"x\":\"y\",\"x\":12345678901234567}]}", false },
        { "a: [1.50, {x: y}]\nb: |\n  text\n", true },
        { "[1]", false },
    };
    struct cJSON_Hooks hooks = { counted_malloc, free };

    (void)state;
    cJSON_InitHooks(&hooks);
    for (size_t i = 0; i < KINF__ARRAY_LEN(bodies); i++) {
        bool has_failed = true;

        for (size_t n = 1; has_failed; n++) {
            struct kinf__refusal refusal = { 0 };
            struct cJSON *object = NULL;
            int failed;

            test_fail_allocation(n);
            failed = kinf__body_parse_object(kinf_str_from(bodies[i].text), bodies[i].is_yaml,
                                             &object, &refusal);
            has_failed = test_allocation_failed();
            assert_int_equal(object != NULL, failed == 0);
            assert_int_equal(refusal.code != 0, failed != 0);
            if (has_failed)
                assert_true(refusal.code == 500 || refusal.code == 400);
            else
                assert_int_equal(refusal.code, bodies[i].text[0] == '[' ? 400 : 0);
            assert_true(n > 1 || has_failed);
            cJSON_Delete(object);
        }
    }
    cJSON_InitHooks(NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_object_is_refused_and_quoted),
        cmocka_unit_test(null_is_an_empty_object),
        cmocka_unit_test(without_memory_a_body_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
