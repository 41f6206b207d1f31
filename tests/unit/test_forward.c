/*
 * Requests of others on their way: what is sent, how bytes wait for whoever is slow, how each ends.
 */
#include "rest/forward.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/thread.h"
#include "unit/http_server.h"
#include "unit/test.h"

#define LONG_MS 60000

/* One connection: reads `wants` bytes behind a head once it may, then answers, then holds or closes. */
struct server {
    int listener;
    pthread_t thread;
    struct kinf__waker may_read, may_end;
    size_t wants;
    const char *answer;
    size_t filler; /* bytes that follow the answer */
    struct kinf__buffer request;
};

static bool has_all(struct server *server)
{
    const char *text = kinf__buffer_cstr(&server->request), *end;

    assert_non_null(text);
    end = strstr(text, "\r\n\r\n");
    return end != NULL && server->request.len - (size_t)(end + 4 - text) >= server->wants;
}

static void talk(struct server *server, int fd)
{
    static const char filler[4096];
    char piece[4096];
    ssize_t n = 1;

    kinf__waker_wait(&server->may_read, LONG_MS);
    while (!has_all(server) && (n = recv(fd, piece, sizeof piece, 0)) > 0)
        assert_int_equal(kinf__buffer_append(&server->request, piece, (size_t)n), 0);
    if (n <= 0 || server->answer == NULL)
        return;
    n = send(fd, server->answer, strlen(server->answer), MSG_NOSIGNAL);
    for (size_t left = server->filler; n > 0 && left != 0; left -= (size_t)n)
        n = send(fd, filler, left < sizeof filler ? left : sizeof filler, MSG_NOSIGNAL);
}

static void *serve(void *ctx)
{
    struct server *server = ctx;
    int fd = accept(server->listener, NULL, NULL);

    if (fd < 0)
        return NULL;
    talk(server, fd);
    kinf__waker_wait(&server->may_end, LONG_MS);
    close(fd);
    return NULL;
}

/* A server, a forwarder to it, and one request. */
struct fixture {
    struct server server;
    struct kinf_client *client;
    struct kinf__forwarder *forwarder;
    struct kinf__forward *forward;
    struct kinf__waker woken;
};

static void wake(void *ctx)
{
    kinf__waker_set(ctx);
}

static void setup(struct fixture *f, const char *answer)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    socklen_t size = sizeof address;
    char *kubeconfig;

    memset(f, 0, sizeof *f);
    f->server.answer = answer;
    assert_int_equal(kinf__waker_init(&f->woken, NULL), 0);
    assert_int_equal(kinf__waker_init(&f->server.may_read, NULL), 0);
    assert_int_equal(kinf__waker_init(&f->server.may_end, NULL), 0);
    f->server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->server.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(f->server.listener, 4), 0);
    assert_int_equal(getsockname(f->server.listener, (struct sockaddr *)&address, &size), 0);
    kubeconfig = test_kubeconfig(ntohs(address.sin_port));
    options.kubeconfig = kubeconfig;
    assert_int_equal(kinf_client_new(&options, &f->client, NULL), 0);
    unlink(kubeconfig);
    free(kubeconfig);
    assert_int_equal(kinf__forwarder_new(f->client, 1, &f->forwarder, NULL), 0);
}

static void begin(struct fixture *f)
{
    assert_int_equal(kinf__thread_start(&f->server.thread, "test-server", serve, &f->server, NULL),
                     0);
}

static void teardown(struct fixture *f)
{
    kinf__forward_free(f->forward);
    kinf__forwarder_free(f->forwarder);
    kinf_client_free(f->client);
    kinf__waker_set(&f->server.may_read);
    kinf__waker_set(&f->server.may_end);
    shutdown(f->server.listener, SHUT_RDWR);
    if (f->server.thread != 0)
        pthread_join(f->server.thread, NULL);
    close(f->server.listener);
    kinf__waker_release(&f->woken);
    kinf__waker_release(&f->server.may_read);
    kinf__waker_release(&f->server.may_end);
    kinf__buffer_release(&f->server.request);
}

static int ask(struct fixture *f, const char *method, int64_t body_len,
               struct kinf__forward **ret_forward)
{
    static const struct kinf__header headers[] = { { "Authorization", "Bearer theirs" },
                                                   { "X-Empty", "" } };
    const struct kinf__forward_request request = { .method = method,
                                                   .target = KINF_STR("/api/v1/x?a=%2F"),
                                                   .headers = headers,
                                                   .n_headers = KINF__ARRAY_LEN(headers),
                                                   .body_len = body_len,
                                                   .wake = wake,
                                                   .wake_ctx = &f->woken };

    return kinf__forward_new(f->forwarder, &request, ret_forward, NULL);
}

static void pause_until_woken(struct fixture *f)
{
    assert_true(kinf__waker_wait(&f->woken, LONG_MS));
    kinf__waker_clear(&f->woken);
}

static int await_head(struct fixture *f, struct kinf__forward_head *head, struct kinf_error *err)
{
    int state;

    while ((state = kinf__forward_head(f->forward, head, err)) == 0)
        pause_until_woken(f);
    return state;
}

/* Reads to the end: KINF__FORWARD_END or KINF__FORWARD_BROKEN. */
static int read_all(struct fixture *f, struct kinf__buffer *text)
{
    char piece[1000];
    ssize_t n;

    while ((n = kinf__forward_read(f->forward, piece, sizeof piece)) >= 0) {
        if (n == 0)
            pause_until_woken(f);
        assert_int_equal(kinf__buffer_append(text, piece, (size_t)n), 0);
    }
    return (int)n;
}

static void send_all(struct fixture *f, size_t len)
{
    char piece[8192];
    size_t n;

    memset(piece, 'u', sizeof piece);
    while (len != 0) {
        n = kinf__forward_send(f->forward, piece, len < sizeof piece ? len : sizeof piece);
        if (n == 0)
            pause_until_woken(f);
        len -= n;
    }
    kinf__forward_end_body(f->forward);
}

static void an_answer_comes_as_it_is(void **state)
{
    struct fixture f;
    struct kinf__forward_head head;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    setup(&f, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n"
              "X-A:  b \r\nX-Empty:\r\n\r\nhello");
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "DELETE", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(head.code, 404);
    assert_int_equal(head.body_len, 5);
    assert_int_equal(head.n_headers, 2);
    assert_string_equal(head.headers[0].name, "X-A");
    assert_string_equal(head.headers[0].value, "b");
    assert_string_equal(head.headers[1].value, "");
    assert_int_equal(read_all(&f, &text), KINF__FORWARD_END);
    assert_int_equal(text.len, 5);
    teardown(&f);
}

static void a_request_has_the_given_headers_and_no_others(void **state)
{
    struct fixture f;
    struct kinf__forward_head head;
    const char *line;
    size_t n_lines = 0;

    (void)state;
    setup(&f, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    kinf__waker_set(&f.server.may_read);
    f.server.wants = 3;
    begin(&f);
    assert_int_equal(ask(&f, "PATCH", 3, &f.forward), 0);
    send_all(&f, 3);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    line = f.server.request.bytes;
    assert_memory_equal(line, "PATCH /api/v1/x?a=%2F HTTP/1.1\r\n", 32);
    assert_non_null(strstr(line, "\r\nAuthorization: Bearer theirs\r\n"));
    assert_non_null(strstr(line, "\r\nX-Empty:"));
    assert_non_null(strstr(line, "\r\nContent-Length: 3\r\n"));
    assert_non_null(strstr(line, "\r\n\r\nuuu"));
    for (const char *at = line; (at = strstr(at, "\r\n")) != NULL; at += 2)
        n_lines++;
    /* Request line, Host, the three above, the empty one. */
    assert_int_equal(n_lines, 6);
    teardown(&f);
}

static void there_is_room_for_so_many_at_once(void **state)
{
    struct fixture f;
    struct kinf__forward *other = NULL;

    (void)state;
    setup(&f, NULL);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(ask(&f, "GET", 0, &other), KINF_ERR_LIMIT);
    assert_null(other);
    teardown(&f);
}

static void a_slow_reader_holds_the_server_up(void **state)
{
    enum { MUCH = 16 << 20 };
    struct fixture f;
    struct kinf__forward_head head;
    char text[160];
    KINF__AUTO_BUFFER got = KINF__BUFFER_INIT;

    (void)state;
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", MUCH);
    setup(&f, text);
    f.server.filler = MUCH;
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(read_all(&f, &got), KINF__FORWARD_END);
    assert_int_equal(got.len, MUCH);
    teardown(&f);
}

static void a_body_waits_for_the_server(void **state)
{
    enum { MUCH = 2 << 20 };
    struct fixture f;
    struct kinf__forward_head head;
    char piece[8192] = { 0 };
    size_t n_sent = 0, n;

    (void)state;
    setup(&f, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    f.server.wants = MUCH;
    begin(&f);
    assert_int_equal(ask(&f, "POST", KINF__FORWARD_CHUNKED, &f.forward), 0);
    /* The server reads nothing yet: sooner or later there is no room. */
    while ((n = kinf__forward_send(f.forward, piece, sizeof piece)) != 0) {
        n_sent += n;
        assert_true(n_sent < (64u << 20));
    }
    kinf__waker_set(&f.server.may_read);
    send_all(&f, MUCH);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(head.code, 201);
    assert_true(kinf__forward_is_sent(f.forward));
    assert_non_null(strstr(f.server.request.bytes, "\r\nTransfer-Encoding: chunked\r\n"));
    teardown(&f);
}

static void an_answer_before_the_body_is_complete_counts(void **state)
{
    struct fixture f;
    struct kinf__forward_head head;

    (void)state;
    setup(&f, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "POST", 1000, &f.forward), 0);
    assert_int_equal(kinf__forward_send(f.forward, "x", 1), 1);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(head.code, 401);
    send_all(&f, 999);
    teardown(&f);
}

static void an_end_leaves_whole_lines(void **state)
{
    struct fixture f;
    struct kinf__forward_head head;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    setup(&f, "HTTP/1.1 200 OK\r\n\r\none\ntwo\nthr");
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(head.body_len, -1);
    kinf__forward_end(f.forward);
    assert_int_equal(read_all(&f, &text), KINF__FORWARD_BROKEN);
    assert_true(text.len == 0 || text.bytes[text.len - 1] == '\n');
    teardown(&f);
}

static void an_end_before_the_head_is_told(void **state)
{
    struct fixture f;
    struct kinf__forward_head head;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    setup(&f, NULL);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    kinf__forward_end(f.forward);
    assert_int_equal(await_head(&f, &head, &err), KINF_ERR_STOPPED);
    teardown(&f);
}

static void a_cut_answer_is_broken(void **state)
{
    struct fixture f;
    struct kinf__forward_head head;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    setup(&f, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    kinf__waker_set(&f.server.may_read);
    kinf__waker_set(&f.server.may_end);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(read_all(&f, &text), KINF__FORWARD_BROKEN);
    assert_int_equal(text.len, 5);
    teardown(&f);
}

static void a_server_that_is_not_there_is_told(void **state)
{
    struct fixture f;
    struct kinf__forward_head head;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    setup(&f, NULL);
    shutdown(f.server.listener, SHUT_RDWR);
    assert_int_equal(ask(&f, "POST", 3, &f.forward), 0);
    assert_int_equal(kinf__forward_send(f.forward, "abc", 3), 3);
    kinf__forward_end_body(f.forward);
    assert_int_equal(await_head(&f, &head, &err), KINF_ERR_NETWORK);
    assert_false(kinf__forward_is_sent(f.forward));
    teardown(&f);
}

static void a_head_that_is_cut_short_is_told(void **state)
{
    struct fixture f;
    struct kinf__forward_head head;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    setup(&f, "HTTP/1.1 200 OK\r\nContent-");
    kinf__waker_set(&f.server.may_read);
    kinf__waker_set(&f.server.may_end);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, &err), KINF_ERR_NETWORK);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_comes_as_it_is),
        cmocka_unit_test(a_request_has_the_given_headers_and_no_others),
        cmocka_unit_test(there_is_room_for_so_many_at_once),
        cmocka_unit_test(a_slow_reader_holds_the_server_up),
        cmocka_unit_test(a_body_waits_for_the_server),
        cmocka_unit_test(an_answer_before_the_body_is_complete_counts),
        cmocka_unit_test(an_end_leaves_whole_lines),
        cmocka_unit_test(an_end_before_the_head_is_told),
        cmocka_unit_test(a_cut_answer_is_broken),
        cmocka_unit_test(a_server_that_is_not_there_is_told),
        cmocka_unit_test(a_head_that_is_cut_short_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
