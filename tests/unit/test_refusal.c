/*
 * How a server says no: every recorded refusal gives the right code.
 */
#include "rest/status.h"

#include <stdio.h>
#include <string.h>

#include "unit/test.h"

/* The recorded body, which none of these files chunks or compresses, and the status of its head. */
static void assert_recorded(const char *name, int http_status, int code, const char *word)
{
    struct kinf_error err = KINF_ERROR_INIT;
    char file[128];
    const char *body;
    char *text;
    size_t len;

    snprintf(file, sizeof file, "transcripts/%s.http", name);
    text = test_read_data(file, &len);
    assert_int_equal(strtol(strchr(text, ' '), NULL, 10), http_status);
    body = strstr(text, "\r\n\r\n");
    assert_non_null(body);
    body += 4;
    assert_int_equal(kinf__status_to_error((struct kinf_str){ body, len - (size_t)(body - text) },
                                           http_status, &err),
                     code);
    assert_int_equal(err.http_status, http_status);
    if (strstr(err.message, word) == NULL || strchr(err.message, '\n') != NULL)
        fail_msg("%s: '%s' does not say '%s' in one line", name, err.message, word);
    free(text);
}

static void recorded_refusals_are_told_apart(void **state)
{
    (void)state;
    assert_recorded("05-list-exact-expired", 410, KINF_ERR_EXPIRED, "Expired");
    assert_recorded("05-list-continue-expired", 410, KINF_ERR_EXPIRED, "continue");
    assert_recorded("06-list-too-large", 504, KINF_ERR_RV_TOO_LARGE, "Too large resource version");
    assert_recorded("06-list-events-too-large", 504, KINF_ERR_RV_TOO_LARGE,
                    "Too large resource version");
    assert_recorded("06-list-timeout-param", 504, KINF_ERR_SERVER, "allotted timeout");
    assert_recorded("07-watchlist-gate-off", 422, KINF_ERR_SERVER, "sendInitialEvents");
    assert_recorded("07-bad-rv-list", 400, KINF_ERR_SERVER, "abc");
    assert_recorded("07-bad-rv-watch", 500, KINF_ERR_SERVER, "abc");
    assert_recorded("08-429-apf-reject", 429, KINF_ERR_TOO_MANY_REQUESTS, "try again later");
    assert_recorded("08-429-initializing-list", 429, KINF_ERR_TOO_MANY_REQUESTS, "initializing");
    assert_recorded("08-429-initializing-cr-after-restart", 429, KINF_ERR_TOO_MANY_REQUESTS,
                    "initializing");
    assert_recorded("09-401-bad-token", 401, KINF_ERR_UNAUTHORIZED, "Unauthorized");
    assert_recorded("09-403-list", 403, KINF_ERR_FORBIDDEN, "cannot list");
    assert_recorded("09-404-unknown-resource", 404, KINF_ERR_NOT_FOUND, "could not find");
    assert_recorded("09-404-unknown-group", 404, KINF_ERR_NOT_FOUND, "page not found");
    assert_recorded("09-405-watch-not-supported", 405, KINF_ERR_SERVER, "MethodNotAllowed");
    assert_recorded("09-406-bad-accept", 406, KINF_ERR_SERVER, "Available representations");
    assert_recorded("09-409-conflict", 409, KINF_ERR_CONFLICT, "Conflict");
    assert_recorded("09-409-alreadyexists", 409, KINF_ERR_EXISTS, "already exists");
    assert_recorded("09-503-aggregated-list", 503, KINF_ERR_SERVER, "service unavailable");
    assert_recorded("12-conversion-broken-list", 500, KINF_ERR_SERVER, "conversion webhook");
    assert_recorded("12-crd-gone-list", 404, KINF_ERR_NOT_FOUND, "page not found");
}

static int code_of(const char *text, int http_status, struct kinf_error *err)
{
    return kinf__status_to_error(kinf_str_from(text), http_status, err);
}

static void error_events_bring_their_own_status(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(code_of("{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"too old "
                             "resource version: 232 "
                             "(234)\",\"reason\":\"Expired\",\"code\":410}",
                             0, &err),
                     KINF_ERR_EXPIRED);
    assert_int_equal(err.http_status, 410);
    assert_int_equal(
        code_of("{\"status\":\"Failure\",\"message\":\"\",\"reason\":\"Gone\",\"code\":410}", 0,
                &err),
        KINF_ERR_EXPIRED);
    assert_int_equal(
        code_of(
            "{\"status\":\"Failure\",\"reason\":\"Timeout\",\"code\":504,\"details\":{\"causes\":"
            "[{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"x\"}],\"retryAfterSeconds\":3}"
            "}",
            0, &err),
        KINF_ERR_RV_TOO_LARGE);
    assert_int_equal(err.retry_after_ms, 3000);
    /* Upstream's older form: the words are the cause's message. */
    assert_int_equal(
        code_of(
            "{\"status\":\"Failure\",\"reason\":\"Timeout\",\"code\":504,\"details\":{\"causes\":"
            "[{\"message\":\"Too large resource version\"}]}}",
            0, &err),
        KINF_ERR_RV_TOO_LARGE);
    assert_int_equal(
        code_of(
            "{\"status\":\"Failure\",\"reason\":\"Timeout\",\"code\":504,\"details\":{\"causes\":"
            "[{\"reason\":\"\",\"message\":\"Too large resource version\"}]}}",
            0, &err),
        KINF_ERR_RV_TOO_LARGE);
    assert_int_equal(code_of("{\"kind\":\"Pod\",\"metadata\":{}}", 0, &err), KINF_ERR_PARSE);
    assert_int_equal(code_of("", 0, &err), KINF_ERR_PARSE);
    assert_int_equal(code_of("", 502, &err), KINF_ERR_SERVER);
    assert_string_equal(err.message, "no explanation");
    assert_int_equal(code_of("{\"status\":\"Failure\",\"reason\":\"Gone\"}", 0, &err),
                     KINF_ERR_EXPIRED);
    assert_string_equal(err.message, "no explanation, reason Gone");
    assert_int_equal(
        code_of("{\"status\":\"Failure\",\"code\":500,\"message\":\"a\\nb\\u001b[1m\"}", 0, &err),
        KINF_ERR_SERVER);
    assert_string_equal(err.message, "a b [1m");
}

/* Whatever the status of the answer is. */
static void a_reason_decides_and_else_the_status(void **state)
{
    static const struct {
        const char *reason;
        int http_status;
        int code;
    } rows[] = {
        { "Expired", 500, KINF_ERR_EXPIRED },
        { "Gone", 500, KINF_ERR_EXPIRED },
        { "TooManyRequests", 500, KINF_ERR_TOO_MANY_REQUESTS },
        { "Unauthorized", 500, KINF_ERR_UNAUTHORIZED },
        { "Forbidden", 500, KINF_ERR_FORBIDDEN },
        { "NotFound", 500, KINF_ERR_NOT_FOUND },
        { "AlreadyExists", 409, KINF_ERR_EXISTS },
        { "Conflict", 500, KINF_ERR_CONFLICT },
        { "Another", 401, KINF_ERR_UNAUTHORIZED },
        { "Another", 403, KINF_ERR_FORBIDDEN },
        { "Another", 404, KINF_ERR_NOT_FOUND },
        { "Another", 409, KINF_ERR_CONFLICT },
        { "Another", 410, KINF_ERR_EXPIRED },
        { "Another", 429, KINF_ERR_TOO_MANY_REQUESTS },
        { "Another", 500, KINF_ERR_SERVER },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        char text[128];

        snprintf(text, sizeof text, "{\"status\":\"Failure\",\"reason\":\"%s\"}", rows[i].reason);
        assert_int_equal(code_of(text, rows[i].http_status, &err), rows[i].code);
        assert_int_equal(err.code, rows[i].code);
    }
}

/* An object's name, say, must not send the reflector into a relist. */
static void words_of_another_reason_decide_nothing(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(code_of("{\"status\":\"Failure\",\"reason\":\"Forbidden\",\"code\":403,"
                             "\"message\":\"Too large resource version is forbidden\"}",
                             0, &err),
                     KINF_ERR_FORBIDDEN);
    assert_int_equal(
        code_of("{\"status\":\"Failure\",\"reason\":\"BadRequest\",\"code\":400,"
                "\"details\":{\"causes\":[{\"message\":\"Too large resource version\"},"
                "{\"reason\":7},8]}}",
                0, &err),
        KINF_ERR_SERVER);
}

static void long_and_strange_texts_are_cut(void **state)
{
    static const char head[] = "{\"status\":\"Failure\",\"code\":500,\"message\":\"";
    static char text[4000];
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(code_of(text, 500, &err), KINF_ERR_SERVER);
    assert_true(strlen(err.message) < 300);
    memcpy(text, head, sizeof head - 1);
    memcpy(text + sizeof text - 3, "\"}", 2);
    assert_int_equal(code_of(text, 500, &err), KINF_ERR_SERVER);
    assert_true(strlen(err.message) > 300);
    for (size_t len = 0; len < sizeof text - 1; len += 7)
        assert_true(kinf__status_to_error((struct kinf_str){ text, len }, 500, &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_refusals_are_told_apart),
        cmocka_unit_test(error_events_bring_their_own_status),
        cmocka_unit_test(a_reason_decides_and_else_the_status),
        cmocka_unit_test(words_of_another_reason_decide_nothing),
        cmocka_unit_test(long_and_strange_texts_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
