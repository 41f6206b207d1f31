/*
 * Requests that bring a body: what arrives of them, and that none arrives twice.
 */
#include "rest/http.h"

#include <string.h>

#include "base/compiler.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

struct fixture {
    struct replay *server;
    struct kinf_client *client;
    struct kinf__waker waker;
    struct kinf__http *http;
};

static void start(struct fixture *f, const struct test_reply *replies, size_t n_replies)
{
    f->server = test_server_start(replies, n_replies);
    f->client = test_client_of(replay_port(f->server), NULL);
    assert_int_equal(kinf__waker_init(&f->waker, NULL), 0);
    assert_int_equal(kinf__http_new(f->client, &f->waker, &f->http, NULL), 0);
}

static void stop(struct fixture *f)
{
    kinf__http_free(f->http);
    kinf__waker_release(&f->waker);
    kinf_client_free(f->client);
    replay_stop(f->server);
}

static int ignore(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    (void)bytes;
    (void)len;
    (void)ctx;
    (void)err;
    return 0;
}

static int perform(struct fixture *f, const char *method, struct kinf_str body,
                   const char *content_type)
{
    const struct kinf__http_request request = { .method = method,
                                                .target = "/x",
                                                .body = body,
                                                .content_type = content_type,
                                                .head_timeout_ms = 60000,
                                                .on_body = ignore };

    return kinf__http_perform(f->http, &request, NULL);
}

static void each_method_brings_what_it_was_given(void **state)
{
    static const struct {
        const char *method, *body, *content_type;
        const char *line, *header;
    } rows[] = {
        { NULL, NULL, NULL, "GET /x HTTP/1.1", NULL },
        { NULL, "{}", NULL, "POST /x HTTP/1.1", "\r\nContent-Type: application/json\r\n" },
        { "PUT", "{\"a\":1}", NULL, "PUT /x HTTP/1.1", "\r\nContent-Length: 7\r\n" },
        { "PATCH", "[]", "application/json-patch+json", "PATCH /x HTTP/1.1",
          "\r\nContent-Type: application/json-patch+json\r\n" },
        { "DELETE", NULL, NULL, "DELETE /x HTTP/1.1", NULL },
        { "DELETE", "{\"b\":2}", NULL, "DELETE /x HTTP/1.1", "\r\nContent-Length: 7\r\n" },
        { "POST", "", NULL, "POST /x HTTP/1.1", "\r\nContent-Length: 0\r\n" },
        { NULL, NULL, NULL, "GET /x HTTP/1.1", NULL },
    };
    static const struct test_reply ok = { .path = "/x", .body = "ok" };
    struct fixture f;

    (void)state;
    start(&f, &ok, 1);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_str body =
            rows[i].body != NULL ? kinf_str_from(rows[i].body) : (struct kinf_str){ NULL, 0 };

        assert_int_equal(perform(&f, rows[i].method, body, rows[i].content_type), 0);
    }
    assert_int_equal(replay_n_requests(f.server), KINF__ARRAY_LEN(rows));
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        const struct replay_request *request = replay_wait_request(f.server, i, 0);
        const char *body = rows[i].body != NULL ? rows[i].body : "";

        assert_string_equal(request->line, rows[i].line);
        assert_int_equal(strstr(request->headers, "\r\nContent-") != NULL, rows[i].body != NULL);
        if (rows[i].header != NULL)
            assert_non_null(strstr(request->headers, rows[i].header));
        assert_string_equal(request->body != NULL ? request->body : "", body);
    }
    stop(&f);
}

static void a_long_body_is_sent_at_once(void **state)
{
    enum { LEN = 3 << 20 };
    static const struct test_reply ok = { .body = "ok" };
    const struct replay_request *request;
    char *bytes = calloc(1, LEN + 1);
    struct fixture f;

    (void)state;
    assert_non_null(bytes);
    memset(bytes, 'x', LEN);
    start(&f, &ok, 1);
    assert_int_equal(perform(&f, "PUT", (struct kinf_str){ bytes, LEN }, NULL), 0);
    request = replay_wait_request(f.server, 0, 0);
    assert_null(strstr(request->headers, "Expect"));
    assert_true(strcmp(request->body, bytes) == 0);
    stop(&f);
    free(bytes);
}

/* The server may have done what was asked. */
static void what_was_sent_is_not_sent_again(void **state)
{
    static const struct test_reply replies[] = { { .body = "ok" },
                                                 { .raw = "", .end = TEST_END_CUT },
                                                 { .body = "ok" } };
    struct fixture f;

    (void)state;
    start(&f, replies, 3);
    assert_int_equal(perform(&f, NULL, KINF_STR("{\"n\":1}"), NULL), 0);
    assert_int_equal(perform(&f, NULL, KINF_STR("{\"n\":2}"), NULL), KINF_ERR_NETWORK);
    assert_int_equal(perform(&f, NULL, KINF_STR("{\"n\":3}"), NULL), 0);
    assert_int_equal(replay_n_requests(f.server), 3);
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_method_brings_what_it_was_given),
        cmocka_unit_test(a_long_body_is_sent_at_once),
        cmocka_unit_test(what_was_sent_is_not_sent_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
