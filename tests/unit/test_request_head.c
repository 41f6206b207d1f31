/*
 * Heads as they come, taken apart as libmicrohttpd does it: what it makes nothing of is found by where
 * the rest lies.
 */
#include "serve/request_head.h"

#include <stdio.h>

#include "base/compiler.h"
#include "unit/test.h"

#define HEADERS_MAX 8

/* The bytes of a head, which are ended in place. */
struct cut {
    char bytes[512];
    char target[64];
    struct kinf__header headers[HEADERS_MAX];
    struct kinf__raw_head head;
};

/* The end of a line is as many NULs as it had bytes. Returns the line, and goes behind it. */
static char *take_line(char **at)
{
    char *line = *at, *end = memchr(line, '\n', 512);

    assert_non_null(end);
    *at = end + 1;
    *end = '\0';
    if (end != line && end[-1] == '\r')
        end[-1] = '\0';
    return line;
}

static void take_header(struct cut *cut, char *line)
{
    char *colon = strchr(line, ':');

    assert_non_null(colon);
    *colon++ = '\0';
    cut->headers[cut->head.n_headers++] =
        (struct kinf__header){ line, colon + strspn(colon, " \t") };
}

/* Between the first blank and the last. */
static void take_first(struct cut *cut, char *line, size_t len)
{
    char *target = memchr(line, ' ', len), *version = memrchr(line, ' ', len);

    assert_non_null(target);
    *target++ = '\0';
    *version++ = '\0';
    target += strspn(target, " ");
    snprintf(cut->target, sizeof cut->target, "%s", target);
    cut->head.method = line;
    cut->head.target = cut->target;
    cut->head.target_at = target;
    cut->head.version = version;
}

static int check(const char *bytes, size_t len)
{
    struct cut cut = { .head = { .n_headers = 0 } };
    char *at = cut.bytes, *line;
    const char *why;

    memcpy(cut.bytes, bytes, len);
    line = take_line(&at);
    take_first(&cut, line, (size_t)(at - line));
    while (*(line = take_line(&at)) != '\0')
        take_header(&cut, line);
    cut.head.headers = cut.headers;
    cut.head.size = (size_t)(at - cut.bytes);
    /* The library unescapes it. */
    memset((char *)(uintptr_t)cut.head.target_at, 'x', strlen(cut.target));
    return kinf__raw_head_check(&cut.head, &why);
}

struct row {
    int code;
    const char *bytes;
    size_t len;
};

#define ROW(code, text)                                                                            \
    {                                                                                              \
        code, text, sizeof(text) - 1                                                               \
    }
#define GET  "GET /x?a=%20b HTTP/1.1\r\n"
#define HOST "Host: h\r\n"
#define END  "\r\n"

static const struct row rows[] = {
    ROW(0, GET HOST END),
    ROW(0, GET "Host: [::1]:80\r\nX:y\r\nY:\t z \r\nZ:\r\n" END),
    ROW(0, "GET / HTTP/1.1\nHost: h\nX: y\r\n\n"),
    ROW(0, "GET / HTTP/1.0\r\n\r\n"),
    ROW(0, "GET / HTTP/1.0\r\nX: a\tb\xc3\xa9\r\n\r\n"),
    ROW(0, GET HOST "Content-Length: 5\r\n" END),
    ROW(0, GET HOST "transfer-encoding: Chunked\r\n" END),
    /* lengths */
    ROW(400, GET HOST "Content-Length: 5\r\nContent-Length: 6\r\n" END),
    ROW(400, GET HOST "Content-Length: 5\r\ncontent-length: 5\r\n" END),
    ROW(400, GET HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END),
    ROW(501, GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END),
    ROW(501, GET HOST "Transfer-Encoding: gzip, chunked\r\n" END),
    ROW(501, GET HOST "Transfer-Encoding: identity\r\nContent-Length: 5\r\n" END),
    ROW(501, GET HOST "Transfer-Encoding: chunked \r\n" END),
    ROW(501, GET HOST "Transfer-Encoding:\r\n" END),
    /* hosts */
    ROW(400, GET END),
    ROW(400, GET HOST HOST END),
    ROW(400, GET "Host: a b\r\n" END),
    ROW(400, "GET / HTTP/1.0\r\n" HOST HOST END),
    /* names */
    ROW(400, GET HOST "X : y\r\n" END),
    ROW(400, GET HOST "X\t: y\r\n" END),
    ROW(400, GET " X: y\r\n" HOST END),
    ROW(400, GET HOST ": y\r\n" END),
    ROW(400, GET HOST "X(: y\r\n" END),
    ROW(400, GET HOST "X\xc3\xa9: y\r\n" END),
    ROW(400, GET HOST "X\rY: y\r\n" END),
    /* values */
    ROW(400, GET HOST "X: a\rb\r\n" END),
    ROW(400, GET HOST "X: a\r\r\n" END),
    ROW(400, GET HOST "X: \x01\r\n" END),
    ROW(400, GET HOST "X: \x7f\r\n" END),
    /* NULs */
    ROW(400, GET HOST "X: a\0b\r\n" END),
    ROW(400, GET HOST "X: a\0b\r\nY: c\r\n" END),
    ROW(400, GET HOST "X: a\0\r\n" END),
    ROW(400, GET HOST "X: a\0\r\nY: c\r\n" END),
    ROW(400, GET HOST "X: \0\r\n" END),
    ROW(400, "GE\0T / HTTP/1.1\r\n" HOST END),
    ROW(400, "GET /a\0b HTTP/1.1\r\n" HOST END),
    ROW(400, "GET / HTTP/1.1\0\r\n" HOST END),
    /* the first line */
    ROW(400, "GET  / HTTP/1.1\r\n" HOST END),
    ROW(400, "GET /  HTTP/1.1\r\n" HOST END),
    ROW(400, "GET /a b HTTP/1.1\r\n" HOST END),
    ROW(400, "GET /a\tb HTTP/1.1\r\n" HOST END),
    ROW(400, "GET /a\x7f HTTP/1.1\r\n" HOST END),
    ROW(400, "G(T / HTTP/1.1\r\n" HOST END),
    ROW(400, "G\xc3\x89T / HTTP/1.1\r\n" HOST END),
};

static void heads_that_can_be_read_in_two_ways_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        int code = check(rows[i].bytes, rows[i].len);

        if (code != rows[i].code)
            fail_msg("row %zu: %s: %d", i, rows[i].bytes, code);
    }
}

/* A line that goes on is joined elsewhere; one without a name is left out. */
static void lines_that_do_not_lie_where_they_came_are_refused(void **state)
{
    static const char bytes[] = "GET\0/\0HTTP/1.1\0\0Host\0 h\0\0X\0 y\0\0 z\0\0\0";
    static const char elsewhere[] = "Xz";
    struct kinf__header headers[] = { { bytes + 16, bytes + 22 }, { elsewhere, bytes + 28 } };
    const struct kinf__raw_head head = {
        .method = bytes,
        .target = "/",
        .target_at = bytes + 4,
        .version = bytes + 6,
        .headers = headers,
        .n_headers = 2,
        .size = sizeof bytes - 1,
    };
    struct kinf__raw_head shorter = head;
    const char *why;

    (void)state;
    assert_int_equal(kinf__raw_head_check(&head, &why), 400);
    shorter.n_headers = 1;
    assert_int_equal(kinf__raw_head_check(&shorter, &why), 400);
    shorter.size = 23 + sizeof "\r\n\r\n" - 1;
    assert_int_equal(kinf__raw_head_check(&shorter, &why), 0);
}

static void is_token(const char *authorization, const char *expected)
{
    const struct kinf__header header = { "authorization", authorization };
    struct kinf__request_head head =
        kinf__request_head_of("GET", KINF_STR("/"), &header, authorization != NULL);

    assert_true(kinf_str_equal(head.token, kinf_str_from(expected)));
    assert_int_equal(head.has_credential, authorization != NULL);
}

static void a_token_stands_behind_one_blank(void **state)
{
    (void)state;
    is_token("Bearer x", "x");
    is_token("bearer X", "X");
    is_token("Bearer x 1", "x");
    is_token("Bearer x ", "x");
    is_token("Bearer  x", "");
    is_token("Bearer   x", "");
    is_token("Bearer ", "");
    is_token("Bearer", "");
    is_token("Bearerx", "");
    is_token("Bearer\tx", "");
    is_token("Basic x", "");
    is_token("", "");
    is_token(NULL, "");
}

static struct kinf__request_head head_of(const char *name, const char *value, const char *other)
{
    static struct kinf__header headers[2];

    headers[0] = (struct kinf__header){ name, value };
    headers[1] = (struct kinf__header){ name, other };
    return kinf__request_head_of("GET", KINF_STR("/"), headers, other != NULL ? 2 : 1);
}

static void headers_say_who_asks_and_for_what(void **state)
{
    (void)state;
    assert_int_equal(head_of("X-Authorization", "Bearer x", NULL).token.len, 0);
    assert_true(head_of("Authorization", "Bearer x", "Bearer y").has_two_credentials);
    assert_false(head_of("Authorization", "Bearer x", NULL).has_two_credentials);
    assert_true(head_of("impersonate-user", "x", NULL).is_impersonated);
    assert_true(head_of("Upgrade", "websocket", NULL).is_upgrade);
    assert_true(head_of("upgrade", "SPDY/3.1", NULL).is_upgrade);
    assert_false(head_of("Upgrade", "h2c", NULL).is_upgrade);
    assert_true(head_of("accept-encoding", "deflate", "gzip;q=1").takes_gzip);
    assert_true(head_of("accept-encoding", "br", "deflate,\tGZIP ;q=0.5, br").takes_gzip);
    assert_true(head_of("accept-encoding", "br", "gzip;").takes_gzip);
    assert_false(head_of("accept-encoding", "br", "gzip;q=0").takes_gzip);
    assert_false(head_of("accept-encoding", "br", "gzip;q=0 , br").takes_gzip);
    assert_false(head_of("accept-encoding", "br", "gzip; q=0.000, identity").takes_gzip);
    assert_false(head_of("accept-encoding", "br", "x-gzip, gzipped").takes_gzip);
    assert_string_equal(head_of("Accept", "a/b", "c/d").accept, "a/b");
    assert_string_equal(head_of("Accept", "a/b", NULL).user_agent, "");
    assert_int_equal(head_of("Content-Length", "17", NULL).body_len, 17);
    assert_int_equal(head_of("Transfer-Encoding", "chunked", NULL).body_len, KINF__CHUNKED);
}

static void a_websocket_brings_its_token_among_its_protocols(void **state)
{
    static const char protocols[] =
        "v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.eHl6, a";
    const struct kinf__header headers[] = { { "sec-websocket-protocol", protocols },
                                            { "Upgrade", "websocket" },
                                            { "Authorization", "Bearer x" } };
    struct kinf__request_head head = kinf__request_head_of("GET", KINF_STR("/"), headers, 2);

    (void)state;
    assert_true(kinf_str_equal(head.token, KINF_STR("base64url.bearer.authorization.k8s.io.eHl6")));
    assert_false(head.has_two_credentials);
    head = kinf__request_head_of("GET", KINF_STR("/"), headers, 3);
    assert_true(head.has_two_credentials);
    /* Where nothing is upgraded it is not sent on, and counts for nothing. */
    head = kinf__request_head_of("GET", KINF_STR("/"), headers, 1);
    assert_int_equal(head.token.len, 0);
    assert_false(head.has_credential);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_websocket_brings_its_token_among_its_protocols),
        cmocka_unit_test(heads_that_can_be_read_in_two_ways_are_refused),
        cmocka_unit_test(lines_that_do_not_lie_where_they_came_are_refused),
        cmocka_unit_test(a_token_stands_behind_one_blank),
        cmocka_unit_test(headers_say_who_asks_and_for_what),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
