/*
 * Heads of answers, line by line.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "rest/head.h"
#include "unit/test.h"

static int take(struct kinf__head *head, const char *line, struct kinf_error *err)
{
    return kinf__head_take(head, kinf_str_from(line), err);
}

/* Up to NULL. */
static void take_all(struct kinf__head *head, const char *const *lines)
{
    for (; *lines != NULL; lines++)
        assert_int_equal(take(head, *lines, NULL), 0);
}
#define TAKE(head, ...) take_all((head), (const char *const[]){ __VA_ARGS__, NULL })

static void headers_are_found_by_their_name(void **state)
{
    struct kinf__head head = { 0 };

    (void)state;
    TAKE(&head, "HTTP/1.1 404 Not Found\r\n", "Content-Type:  a/b \t\r\n", "Empty:\r\n",
         "X: 1:2\r\n", "what has no colon\r\n");
    assert_false(head.is_complete);
    TAKE(&head, "\r\n");
    assert_true(head.is_complete);
    assert_int_equal(head.code, 404);
    assert_int_equal(head.body_len, KINF__CHUNKED);
    assert_int_equal(head.n_headers, 3);
    assert_string_equal(kinf__head_value(&head, "content-type"), "a/b");
    assert_string_equal(kinf__head_value(&head, "Empty"), "");
    assert_string_equal(kinf__head_value(&head, "x"), "1:2");
    assert_string_equal(kinf__head_value(&head, "Content"), "");
    kinf__head_release(&head);
    assert_int_equal(head.n_headers, 0);
    assert_int_equal(head.code, 0);
    assert_false(head.is_complete);
}

static void only_the_last_head_counts_and_no_trailer(void **state)
{
    struct kinf__head head = { 0 };

    (void)state;
    TAKE(&head, "HTTP/1.1 100 Continue\r\n", "X: early\r\n", "Content-Length: 3\r\n", "\r\n");
    assert_false(head.is_complete);
    TAKE(&head, "HTTP/1.1 200 OK\r\n");
    assert_int_equal(head.n_headers, 0);
    assert_int_equal(head.body_len, KINF__CHUNKED);
    TAKE(&head, "X: final\r\n", "\r\n", "X: trailer\r\n", "Content-Length: 5\r\n",
         "HTTP/1.1 500 No\r\n");
    assert_int_equal(head.code, 200);
    assert_int_equal(head.n_headers, 1);
    assert_int_equal(head.body_len, KINF__CHUNKED);
    assert_string_equal(kinf__head_value(&head, "X"), "final");
    kinf__head_release(&head);
}

static void a_head_without_a_code_is_never_complete(void **state)
{
    struct kinf__head head = { 0 };

    (void)state;
    TAKE(&head, "HTTP/1.1\r\n", "\r\n");
    assert_int_equal(head.code, 0);
    assert_false(head.is_complete);
    kinf__head_release(&head);
}

/* `first` and `second`, which may be NULL, behind a status line; the length, or an error. */
static int64_t length_of(const char *first, const char *second)
{
    struct kinf__head head = { 0 };
    struct kinf_error err = KINF_ERROR_INIT;
    int64_t len;
    int failed;

    TAKE(&head, "HTTP/1.1 200 OK\r\n");
    failed = take(&head, first, &err);
    if (failed == 0 && second != NULL)
        failed = take(&head, second, &err);
    len = head.body_len;
    kinf__head_release(&head);
    if (failed == 0)
        return len;
    assert_int_equal(failed, KINF_ERR_NETWORK);
    assert_non_null(strstr(err.message, "length"));
    return KINF_ERR_NETWORK;
}

static void a_length_is_told_once_or_is_none(void **state)
{
    static const struct {
        const char *first, *second;
        int64_t len;
    } rows[] = {
        { "Content-Length: 5\r\n", NULL, 5 },
        { "content-length:0\r\n", NULL, 0 },
        { "Content-Length: 9223372036854775807\r\n", NULL, INT64_MAX },
        { "Content-Length: 5\r\n", "Content-Length: 5\r\n", 5 },
        { "Content-Length: 0\r\n", "Content-Length: 0\r\n", 0 },
        { "Content-Length: 5\r\n", "Content-Length: 6\r\n", KINF_ERR_NETWORK },
        { "Content-Length: 0\r\n", "Content-Length: 6\r\n", KINF_ERR_NETWORK },
        { "Content-Length: 5\r\n", "Content-Length: 0\r\n", KINF_ERR_NETWORK },
        { "Content-Length: -1\r\n", NULL, KINF_ERR_NETWORK },
        { "Content-Length:\r\n", NULL, KINF_ERR_NETWORK },
        { "Content-Length: 5, 5\r\n", NULL, KINF_ERR_NETWORK },
        { "Content-Length: x\r\n", NULL, KINF_ERR_NETWORK },
        { "Transfer-Encoding: chunked\r\n", NULL, KINF__CHUNKED },
        { "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n", KINF__CHUNKED },
        { "Transfer-Encoding: chunked\r\n", "Content-Length: x\r\n", KINF__CHUNKED },
        { "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", KINF__CHUNKED },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        int64_t len = length_of(rows[i].first, rows[i].second);

        if (len != rows[i].len)
            fail_msg("row %zu: %lld", i, (long long)len);
    }
}

static void headers_above_the_most_are_left_out(void **state)
{
    struct kinf__head head = { 0 };
    char line[32];

    (void)state;
    TAKE(&head, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < KINF__HEADERS_MAX + 2; i++) {
        snprintf(line, sizeof line, "X-%d: %d\r\n", i, i);
        TAKE(&head, line);
    }
    TAKE(&head, "Content-Length: 7\r\n");
    assert_int_equal(head.n_headers, KINF__HEADERS_MAX);
    assert_int_equal(head.body_len, 7);
    assert_string_equal(kinf__head_value(&head, "X-63"), "63");
    assert_string_equal(kinf__head_value(&head, "X-64"), "");
    kinf__head_release(&head);
}

static void a_time_to_come_back_is_an_hour_at_most(void **state)
{
    static const struct {
        const char *line;
        uint32_t wait_ms;
    } rows[] = {
        { "Retry-After: 0\r\n", 0 },           { "Retry-After: 9\r\n", 9000 },
        { "retry-after: 3600\r\n", 3600000 },  { "Retry-After: 3601\r\n", 3600000 },
        { "Retry-After: 36000\r\n", 3600000 }, { "Retry-After: 1:00\r\n", 0 },
        { "Retry-After: 86400\r\n", 3600000 }, { "Retry-After: 99999999999\r\n", 3600000 },
        { "Retry-After: 86400s\r\n", 0 },      { "Retry-After: 1/2\r\n", 0 },
        { "Retry-Before: 9\r\n", 0 },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__head head = { 0 };

        TAKE(&head, "HTTP/1.1 429 Too Many\r\n", rows[i].line);
        assert_int_equal(kinf__head_retry_after_ms(&head), rows[i].wait_ms);
        kinf__head_release(&head);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_found_by_their_name),
        cmocka_unit_test(only_the_last_head_counts_and_no_trailer),
        cmocka_unit_test(a_head_without_a_code_is_never_complete),
        cmocka_unit_test(a_length_is_told_once_or_is_none),
        cmocka_unit_test(headers_above_the_most_are_left_out),
        cmocka_unit_test(a_time_to_come_back_is_an_hour_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
