/*
 * Refusals, and their bodies.
 */
#include "serve/refusal.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "unit/allocation.h"
#include "unit/test.h"

static void expect_body(const struct kinf__refusal *refusal, const char *expected)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    assert_int_equal(kinf__refusal_write(refusal, &text), 0);
    assert_string_equal(kinf__buffer_cstr(&text), expected);
}

#define STATUS(rest)                                                                               \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\"," rest "}"  \
    "\n"

static void a_refusal_begins_anew(void **state)
{
    struct kinf__refusal refusal;

    (void)state;
    memset(&refusal, 'x', sizeof refusal);
    assert_int_equal(kinf__refuse(&refusal, 400, "BadRequest", "no %s", "way"), KINF_ERR_INVALID);
    expect_body(&refusal, STATUS("\"message\":\"no way\",\"reason\":\"BadRequest\",\"code\":400"));
}

static void what_is_not_there_is_told_in_three_ways(void **state)
{
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(kinf__refuse_path(&refusal), KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 404);
    expect_body(&refusal, "404 page not found\n");
    assert_int_equal(kinf__refuse_resource(&refusal), KINF_ERR_INVALID);
    expect_body(&refusal, STATUS("\"message\":\"the server could not find the requested resource\","
                                 "\"reason\":\"NotFound\",\"details\":{},\"code\":404"));
    assert_int_equal(kinf__refuse_no_memory(&refusal), KINF_ERR_NO_MEMORY);
    assert_int_equal(refusal.code, 500);
}

static void details_name_what_there_is(void **state)
{
    struct kinf__refusal refusal;

    (void)state;
    kinf__refuse(&refusal, 429, "TooManyRequests", "later");
    assert_int_equal(kinf__refusal_empty(&refusal, 0), KINF_ERR_INVALID);
    expect_body(&refusal, STATUS("\"message\":\"later\",\"reason\":\"TooManyRequests\","
                                 "\"details\":{},\"code\":429"));
    kinf__refusal_empty(&refusal, 7);
    kinf__refusal_set_object(&refusal, "", "pods", "a");
    snprintf(refusal.continue_token, sizeof refusal.continue_token, "t");
    expect_body(&refusal, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":"
                          "\"t\"},\"status\":\"Failure\",\"message\":\"later\",\"reason\":"
                          "\"TooManyRequests\",\"details\":{\"name\":\"a\",\"kind\":\"pods\","
                          "\"retryAfterSeconds\":7},\"code\":429}\n");
}

/* Also those of an object that is named behind them. */
static void causes_beyond_the_last_place_are_left_out(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__refusal refusal;
    char field[16], last[32];

    (void)state;
    kinf__refuse(&refusal, 422, "Invalid", "bad");
    for (int i = 0; i < KINF__REFUSAL_MAX_CAUSES + 2; i++) {
        snprintf(field, sizeof field, "f%d", i);
        kinf__refusal_add_cause(&refusal, "FieldValueInvalid", field, "m");
    }
    kinf__refusal_set_object(&refusal, "g", "k", "n");
    assert_int_equal(refusal.n_causes, KINF__REFUSAL_MAX_CAUSES);
    assert_int_equal(kinf__refusal_write_status(&refusal, &text), 0);
    assert_non_null(
        strstr(kinf__buffer_cstr(&text),
               "\"details\":{\"name\":\"n\",\"group\":\"g\",\"kind\":\"k\",\"causes\":"
               "[{\"reason\":\"FieldValueInvalid\",\"message\":\"m\",\"field\":\"f0\"}"));
    snprintf(last, sizeof last, "\"f%d\"}]", KINF__REFUSAL_MAX_CAUSES - 1);
    assert_non_null(strstr(text.bytes, last));
    assert_int_equal(text.bytes[text.len - 1], '}');
}

static void every_lack_of_memory_is_an_error(void **state)
{
    struct kinf__refusal refusal;
    bool did_fail = true;

    (void)state;
    kinf__refuse(&refusal, 422, "Invalid", "bad");
    kinf__refusal_add_cause(&refusal, "FieldValueInvalid", "f", "m");
    for (size_t n = 1; did_fail; n++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
        int failed;

        test_fail_allocation(n);
        failed = kinf__refusal_write(&refusal, &text);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_begins_anew),
        cmocka_unit_test(what_is_not_there_is_told_in_three_ways),
        cmocka_unit_test(details_name_what_there_is),
        cmocka_unit_test(causes_beyond_the_last_place_are_left_out),
        cmocka_unit_test(every_lack_of_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
