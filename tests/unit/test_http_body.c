/*
 * Requests that bring a body: what arrives of them, and that none arrives twice.
 */
#include "rest/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "unit/http_server.h"
#include "unit/test.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* Reads requests whole. Answers all but the one with the number `unanswered`, behind which it
 * closes the connection. */
struct server {
    int listener;
    pthread_t thread;
    size_t unanswered; /* 0: none */
    /* the thread's until it is joined */
    size_t n_requests;
    struct kinf__buffer received;
};

static size_t body_len_of(const char *head)
{
    const char *found = strstr(head, "\r\nContent-Length: ");

    return found != NULL ? strtoul(found + 18, NULL, 10) : 0;
}

/* Whether a whole request came. */
static bool receive(struct server *server, int connection)
{
    size_t begun = server->received.len, wanted = SIZE_MAX;
    char piece[65536];

    while (server->received.len - begun < wanted) {
        ssize_t n = recv(connection, piece, sizeof piece, 0);
        const char *text, *end;

        if (n <= 0)
            return false;
        assert_int_equal(kinf__buffer_append(&server->received, piece, (size_t)n), 0);
        text = kinf__buffer_cstr(&server->received) + begun;
        end = strstr(text, "\r\n\r\n");
        if (end != NULL)
            wanted = (size_t)(end - text) + 4 + body_len_of(text);
    }
    return true;
}

static void *serve(void *ctx)
{
    struct server *server = ctx;
    int connection;

    while ((connection = accept(server->listener, NULL, NULL)) >= 0) {
        while (receive(server, connection) && ++server->n_requests != server->unanswered)
            assert_true(send(connection, OK, strlen(OK), MSG_NOSIGNAL) > 0);
        close(connection);
    }
    return NULL;
}

struct fixture {
    struct server server;
    struct kinf_client *client;
    struct kinf__waker waker;
    struct kinf__http *http;
};

static int set_up(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    struct fixture *f = calloc(1, sizeof *f);
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    char *path;

    assert_non_null(f);
    f->server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->server.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(f->server.listener, 4), 0);
    assert_int_equal(getsockname(f->server.listener, (struct sockaddr *)&address, &size), 0);
    path = test_kubeconfig(ntohs(address.sin_port));
    options.kubeconfig = path;
    assert_int_equal(kinf_client_new(&options, &f->client, NULL), 0);
    unlink(path);
    free(path);
    assert_int_equal(kinf__waker_init(&f->waker, NULL), 0);
    assert_int_equal(kinf__http_new(f->client, &f->waker, &f->http, NULL), 0);
    *state = f;
    return 0;
}

static void start(struct fixture *f, size_t unanswered)
{
    f->server.unanswered = unanswered;
    assert_int_equal(kinf__thread_start(&f->server.thread, "test-server", serve, &f->server, NULL),
                     0);
}

/* From here on the test may look at what came. */
static void finish(struct fixture *f)
{
    kinf__http_free(f->http);
    f->http = NULL;
    shutdown(f->server.listener, SHUT_RDWR);
    pthread_join(f->server.thread, NULL);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    close(f->server.listener);
    kinf__waker_release(&f->waker);
    kinf_client_free(f->client);
    kinf__buffer_release(&f->server.received);
    free(f);
    return 0;
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
        { NULL, NULL, NULL, "GET /x HTTP/1.1\r\n", NULL },
        { NULL, "{}", NULL, "POST /x HTTP/1.1\r\n", "\r\nContent-Type: application/json\r\n" },
        { "PUT", "{\"a\":1}", NULL, "PUT /x HTTP/1.1\r\n", "\r\nContent-Length: 7\r\n" },
        { "PATCH", "[]", "application/json-patch+json", "PATCH /x HTTP/1.1\r\n",
          "\r\nContent-Type: application/json-patch+json\r\n" },
        { "DELETE", NULL, NULL, "DELETE /x HTTP/1.1\r\n", NULL },
        { "DELETE", "{\"b\":2}", NULL, "DELETE /x HTTP/1.1\r\n", "\r\nContent-Length: 7\r\n" },
        { "POST", "", NULL, "POST /x HTTP/1.1\r\n", "\r\nContent-Length: 0\r\n" },
        { NULL, NULL, NULL, "GET /x HTTP/1.1\r\n", NULL },
    };
    struct fixture *f = *state;
    const char *at;

    start(f, 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_str body =
            rows[i].body != NULL ? kinf_str_from(rows[i].body) : (struct kinf_str){ NULL, 0 };

        assert_int_equal(perform(f, rows[i].method, body, rows[i].content_type), 0);
    }
    finish(f);
    assert_int_equal(f->server.n_requests, KINF__ARRAY_LEN(rows));
    at = kinf__buffer_cstr(&f->server.received);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        const char *end = strstr(at, "\r\n\r\n"), *found;

        assert_memory_equal(at, rows[i].line, strlen(rows[i].line));
        found = strstr(at, "\r\nContent-");
        assert_int_equal(found != NULL && found < end, rows[i].body != NULL);
        if (rows[i].header != NULL) {
            found = strstr(at, rows[i].header);
            assert_true(found != NULL && found < end);
        }
        at = end + 4;
        if (rows[i].body != NULL) {
            assert_memory_equal(at, rows[i].body, strlen(rows[i].body));
            at += strlen(rows[i].body);
        }
    }
}

static void a_long_body_is_sent_at_once(void **state)
{
    enum { LEN = 3 << 20 };
    struct fixture *f = *state;
    char *bytes = malloc(LEN);

    assert_non_null(bytes);
    memset(bytes, 'x', LEN);
    start(f, 0);
    assert_int_equal(perform(f, "PUT", (struct kinf_str){ bytes, LEN }, NULL), 0);
    finish(f);
    assert_null(strstr(kinf__buffer_cstr(&f->server.received), "Expect"));
    assert_memory_equal(f->server.received.bytes + f->server.received.len - LEN, bytes, LEN);
    free(bytes);
}

/* The server may have done what was asked. */
static void what_was_sent_is_not_sent_again(void **state)
{
    struct fixture *f = *state;

    start(f, 2);
    assert_int_equal(perform(f, NULL, KINF_STR("{\"n\":1}"), NULL), 0);
    assert_int_equal(perform(f, NULL, KINF_STR("{\"n\":2}"), NULL), KINF_ERR_NETWORK);
    assert_int_equal(perform(f, NULL, KINF_STR("{\"n\":3}"), NULL), 0);
    finish(f);
    assert_int_equal(f->server.n_requests, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_method_brings_what_it_was_given, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_body_is_sent_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_sent_is_not_sent_again, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
