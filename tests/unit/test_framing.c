/*
 * The framing of answers: whole, byte by byte, and cut at every offset.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "rest/framing.h"
#include "unit/test.h"

struct answer {
    struct kinf__framing framing;
    struct kinf__head head;
    struct kinf__buffer body;
    struct kinf_error err;
};

static void release(struct answer *answer)
{
    kinf__framing_release(&answer->framing);
    kinf__head_release(&answer->head);
    kinf__buffer_release(&answer->body);
}

static int feed(struct answer *answer, const char *bytes, size_t len)
{
    struct kinf_str left = { bytes, len }, piece;

    while (left.len != 0) {
        size_t before = left.len;
        bool was_complete = answer->head.is_complete;
        int failed =
            kinf__framing_take(&answer->framing, &answer->head, &left, &piece, &answer->err);

        if (failed < 0)
            return failed;
        assert_true(left.len < before && piece.len <= before - left.len);
        if (!was_complete)
            assert_int_equal(piece.len, 0);
        assert_int_equal(kinf__buffer_append_str(&answer->body, piece), 0);
    }
    return 0;
}

/* In pieces of `size` bytes, the first of `first`. */
static int feed_pieces(struct answer *answer, const char *bytes, size_t len, size_t first,
                       size_t size)
{
    int failed = 0;

    for (size_t at = 0, n = first; failed == 0 && at < len; at += n, n = size)
        failed = feed(answer, bytes + at, n < len - at ? n : len - at);
    return failed;
}

#define OK "HTTP/1.1 200 OK\r\n"

struct row {
    const char *bytes;
    int code; /* of the head */
    const char *body;
    bool may_end;
};

static void expect(const struct row *row, size_t first, size_t size)
{
    struct answer answer = { .err = KINF_ERROR_INIT };

    if (feed_pieces(&answer, row->bytes, strlen(row->bytes), first, size) < 0)
        fail_msg("%s: %s", row->bytes, answer.err.message);
    assert_int_equal(answer.head.code, row->code);
    if (strcmp(kinf__buffer_cstr(&answer.body), row->body) != 0)
        fail_msg("%s: %s", row->bytes, kinf__buffer_cstr(&answer.body));
    if (kinf__framing_may_end(&answer.framing) != row->may_end)
        fail_msg("%s: ends %d", row->bytes, !row->may_end);
    release(&answer);
}

static void a_body_is_found_wherever_the_bytes_are_cut(void **state)
{
    static const struct row rows[] = {
        { OK "Content-Length: 5\r\n\r\nhello", 200, "hello", true },
        { OK "Content-Length: 5\r\n\r\nhell", 200, "hell", false },
        { OK "Content-Length: 5\r\n\r\nhello, and more", 200, "hello", true },
        { OK "Content-Length: 0\r\n\r\nmore", 200, "", true },
        { OK "\r\nuntil\r\nthe end", 200, "until\r\nthe end", true },
        { OK "Content-Length: 5\r\n", 200, "", false },
        { "HTTP/1.0 200 OK\n\nlines of one byte", 200, "lines of one byte", true },
        { "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", 204, "", true },
        { "HTTP/1.1 304 Not Modified\r\n\r\nhello", 304, "", true },
        { "HTTP/1.1 101 Switching\r\nContent-Length: 1\r\n\r\nanother protocol", 101,
          "another protocol", true },
        { "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\nx", 200, "x", true },
        { "HTTP/1.1 100 Continue\r\n\r\n", 100, "", false },
        { OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n03\r\nllo\r\n0\r\n\r\n", 200, "hello",
          true },
        { OK "Transfer-Encoding: chunked\r\n\r\nA;x=1\r\n0123456789\r\n0 \r\nX: 1\r\n\r\nmore", 200,
          "0123456789", true },
        { OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", 200, "he", false },
        { OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\n", 200, "he", false },
        { OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\nX: 1\r\n", 200, "he", false },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].bytes);

        expect(&rows[i], 1, 1);
        for (size_t first = 1; first <= len; first++)
            expect(&rows[i], first, len);
    }
}

static void what_is_no_answer_is_refused(void **state)
{
    static const struct {
        const char *bytes, *message;
    } rows[] = {
        { "SSH-2.0-x\r\n", "no answer" },
        { "HTTP/2 200\r\n", "no answer" },
        { "\r\n", "no answer" },
        { "HTTP/1.1 OK\r\n\r\n", "no answer" },
        { "HTTP/1.1 99 Low\r\n\r\n", "no status" },
        { OK "Content-Length: x\r\n", "length" },
        { OK "Transfer-Encoding: chunked\r\n\r\n\r\n", "no size" },
        { OK "Transfer-Encoding: chunked\r\n\r\nx\r\n", "no size" },
        { OK "Transfer-Encoding: chunked\r\n\r\n-2\r\n", "no size" },
        { OK "Transfer-Encoding: chunked\r\n\r\n2x\r\n", "no size" },
        { OK "Transfer-Encoding: chunked\r\n\r\n1000000000000000\r\n", "no size" },
        { OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", "longer" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        for (size_t size = 1; size <= 1000; size += 999) {
            struct answer answer = { .err = KINF_ERROR_INIT };

            if (feed_pieces(&answer, rows[i].bytes, strlen(rows[i].bytes), size, size) !=
                    KINF_ERR_NETWORK ||
                strstr(answer.err.message, rows[i].message) == NULL)
                fail_msg("%s: %s", rows[i].bytes, answer.err.message);
            release(&answer);
        }
    }
}

static void a_chunk_may_be_as_long_as_its_size_can_say(void **state)
{
    static const char bytes[] = OK "Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\nhello";
    struct answer answer = { .err = KINF_ERROR_INIT };

    (void)state;
    assert_int_equal(feed(&answer, bytes, strlen(bytes)), 0);
    assert_string_equal(kinf__buffer_cstr(&answer.body), "hello");
    assert_int_equal(answer.framing.left, 0xfffffffffffffff - 5);
    release(&answer);
}

/* So many bytes of 'x' behind `bytes`, each fed alone. */
static int feed_endless(const char *bytes, size_t n)
{
    struct answer answer = { .err = KINF_ERROR_INIT };
    int failed = feed(&answer, bytes, strlen(bytes));

    for (; failed == 0 && n > 0; n--)
        failed = feed(&answer, "x", 1);
    if (failed < 0)
        assert_non_null(strstr(answer.err.message, "does not end"));
    release(&answer);
    return failed;
}

static void lines_have_an_end(void **state)
{
    static const char chunked[] = OK "Transfer-Encoding: chunked\r\n\r\n";

    (void)state;
    assert_int_equal(feed_endless(OK, 262144 - strlen(OK)), 0);
    assert_int_equal(feed_endless(OK, 262144 - strlen(OK) + 1), KINF_ERR_NETWORK);
    assert_int_equal(feed_endless(chunked, 1024), 0);
    assert_int_equal(feed_endless(chunked, 1025), KINF_ERR_NETWORK);
    assert_int_equal(feed_endless(OK "Transfer-Encoding: chunked\r\n\r\n1\r\n.", 1025),
                     KINF_ERR_NETWORK);
    assert_int_equal(feed_endless(OK "Transfer-Encoding: chunked\r\n\r\n0\r\n", 1025), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_is_found_wherever_the_bytes_are_cut),
        cmocka_unit_test(what_is_no_answer_is_refused),
        cmocka_unit_test(a_chunk_may_be_as_long_as_its_size_can_say),
        cmocka_unit_test(lines_have_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
