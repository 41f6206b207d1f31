/*
 * Requests of others on their way: what is sent, how bytes wait for whoever is slow, how each ends.
 */
#include "serve/forward.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/thread.h"
#include "unit/allocation.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define LONG_MS  60000
#define LIMIT_MS 400 /* of what shall be cut */

/* One connection: reads `wants` bytes behind a head once it may, then answers, then, if there is a
 * rest, sends it once it may, then holds or closes. */
struct server {
    int listener;
    pthread_t thread;
    struct kinf__waker may_read, may_go_on, may_end;
    size_t wants;
    const char *answer;
    size_t answer_len; /* 0: all of it */
    const char *rest;
    bool is_in_bytes; /* one by one */
    bool trickles;    /* goes on with the head, line by line, for as long as it may */
    size_t filler;    /* bytes that follow the answer */
    struct kinf__buffer request;
};

static bool has_all(struct server *server)
{
    const char *text = kinf__buffer_cstr(&server->request), *end;

    assert_non_null(text);
    end = strstr(text, "\r\n\r\n");
    return end != NULL && server->request.len - (size_t)(end + 4 - text) >= server->wants;
}

/* The peer may be gone. */
static void say(const struct server *server, int fd, const char *text, size_t len)
{
    int yes = 1;

    if (server->is_in_bytes)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    for (ssize_t n = 1; n > 0 && len != 0; text += n, len -= (size_t)n)
        n = send(fd, text, server->is_in_bytes ? 1 : len, MSG_NOSIGNAL);
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
    say(server, fd, server->answer,
        server->answer_len != 0 ? server->answer_len : strlen(server->answer));
    for (size_t left = server->filler; n > 0 && left != 0; left -= (size_t)n)
        n = send(fd, filler, left < sizeof filler ? left : sizeof filler, MSG_NOSIGNAL);
    while (server->trickles && !kinf__waker_wait(&server->may_end, LIMIT_MS / 4))
        say(server, fd, "X: y\r\n", 6);
    if (server->rest != NULL && kinf__waker_wait(&server->may_go_on, LONG_MS))
        say(server, fd, server->rest, strlen(server->rest));
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

static void setup_with(struct fixture *f, const char *answer,
                       const struct kinf__forwarder_options *limits)
{
    unsigned port;

    memset(f, 0, sizeof *f);
    f->server.answer = answer;
    assert_int_equal(kinf__waker_init(&f->woken, NULL), 0);
    assert_int_equal(kinf__waker_init(&f->server.may_read, NULL), 0);
    assert_int_equal(kinf__waker_init(&f->server.may_go_on, NULL), 0);
    assert_int_equal(kinf__waker_init(&f->server.may_end, NULL), 0);
    f->server.listener = test_listen(4, &port);
    f->client = test_client_of(port, NULL);
    assert_int_equal(kinf__forwarder_new(f->client, limits, &f->forwarder, NULL), 0);
}

static void setup(struct fixture *f, const char *answer)
{
    const struct kinf__forwarder_options one = { .max_forwards = 1 };

    setup_with(f, answer, &one);
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
    kinf__waker_set(&f->server.may_go_on);
    kinf__waker_set(&f->server.may_end);
    shutdown(f->server.listener, SHUT_RDWR);
    if (f->server.thread != 0)
        pthread_join(f->server.thread, NULL);
    close(f->server.listener);
    kinf__waker_release(&f->woken);
    kinf__waker_release(&f->server.may_read);
    kinf__waker_release(&f->server.may_go_on);
    kinf__waker_release(&f->server.may_end);
    kinf__buffer_release(&f->server.request);
}

static struct kinf__forward_request request_of(struct fixture *f, const char *method,
                                               int64_t body_len)
{
    static const struct kinf__header headers[] = { { "Authorization", "Bearer theirs" },
                                                   { "X-Empty", "" } };

    return (struct kinf__forward_request){ .method = method,
                                           .target = KINF_STR("/api/v1/x?a=%2F"),
                                           .headers = headers,
                                           .n_headers = KINF__ARRAY_LEN(headers),
                                           .caller = KINF_STR("theirs"),
                                           .body_len = body_len,
                                           .wake = wake,
                                           .wake_ctx = &f->woken };
}

static int ask(struct fixture *f, const char *method, int64_t body_len,
               struct kinf__forward **ret_forward)
{
    const struct kinf__forward_request request = request_of(f, method, body_len);

    return kinf__forward_new(f->forwarder, &request, ret_forward, NULL);
}

static int ask_as(struct fixture *f, const char *caller, struct kinf__forward **ret_forward,
                  struct kinf_error *err)
{
    struct kinf__forward_request request = request_of(f, "GET", 0);

    request.caller = kinf_str_from(caller);
    return kinf__forward_new(f->forwarder, &request, ret_forward, err);
}

static void pause_until_woken(struct fixture *f)
{
    assert_true(kinf__waker_wait(&f->woken, LONG_MS));
    kinf__waker_clear(&f->woken);
}

static int await_head(struct fixture *f, const struct kinf__head **head, struct kinf_error *err)
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
    const struct kinf__head *head;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    setup(&f, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n"
              "X-A:  b \r\nX-Empty:\r\n\r\nhello");
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "DELETE", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(head->code, 404);
    assert_int_equal(head->body_len, 5);
    assert_int_equal(head->n_headers, 2);
    assert_string_equal(head->headers[0].name, "X-A");
    assert_string_equal(head->headers[0].value, "b");
    assert_string_equal(head->headers[1].value, "");
    assert_int_equal(read_all(&f, &text), KINF__FORWARD_END);
    assert_int_equal(text.len, 5);
    teardown(&f);
}

static void a_request_has_the_given_headers_and_no_others(void **state)
{
    struct fixture f;
    const struct kinf__head *head;
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

/* Load balancers refuse one that does not say so (411). */
static void a_post_without_a_body_says_so(void **state)
{
    static const struct {
        const char *method;
        bool says_so;
    } rows[] = { { "POST", true }, { "PUT", true }, { "GET", false }, { "DELETE", false } };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        const struct kinf__head *head;
        struct fixture f;

        setup(&f, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        kinf__waker_set(&f.server.may_read);
        begin(&f);
        assert_int_equal(ask(&f, rows[i].method, 0, &f.forward), 0);
        assert_int_equal(await_head(&f, &head, NULL), 1);
        assert_int_equal(strstr(f.server.request.bytes, "\r\nContent-Length: 0\r\n") != NULL,
                         rows[i].says_so);
        teardown(&f);
    }
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

static void a_caller_has_a_share_of_the_room(void **state)
{
    const struct kinf__forwarder_options limits = { .max_forwards = 8, .max_of_strangers = 8 };
    struct fixture f;
    struct kinf__forward *first[2], *other, *none = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    setup_with(&f, NULL, &limits);
    begin(&f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(first); i++)
        assert_int_equal(ask_as(&f, "greedy", &first[i], NULL), 0);
    assert_int_equal(ask_as(&f, "greedy", &none, &err), KINF_ERR_LIMIT);
    assert_non_null(strstr(err.message, "of yours"));
    assert_int_equal(ask_as(&f, "modest", &other, NULL), 0);
    kinf__forward_free(first[0]);
    /* The thread takes it out; until then there is no room. */
    while (ask_as(&f, "greedy", &first[0], NULL) == KINF_ERR_LIMIT)
        sched_yield();
    kinf__forward_free(first[0]);
    kinf__forward_free(first[1]);
    kinf__forward_free(other);
    teardown(&f);
}

/* Of one place for strangers: whether it is free again once its holder got this answer. */
static bool is_known_after(const char *answer)
{
    const struct kinf__forwarder_options limits = { .max_forwards = 4,
                                                    .max_of_one = 4,
                                                    .max_of_strangers = 1 };
    struct fixture f;
    const struct kinf__head *head;
    struct kinf__forward *other = NULL;
    bool is_known;

    setup_with(&f, answer, &limits);
    begin(&f);
    assert_int_equal(ask_as(&f, "one", &f.forward, NULL), 0);
    assert_int_equal(ask_as(&f, "two", &other, NULL), KINF_ERR_LIMIT);
    kinf__waker_set(&f.server.may_read);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    is_known = ask_as(&f, "two", &other, NULL) == 0;
    kinf__forward_free(other);
    teardown(&f);
    return is_known;
}

static void callers_are_strangers_until_the_server_accepts_them(void **state)
{
    (void)state;
    assert_true(is_known_after("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert_true(is_known_after("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"));
    assert_false(is_known_after("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"));
    assert_false(is_known_after("HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n"));
    assert_false(is_known_after("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"));
    assert_false(is_known_after("HTTP/1.1 100 Continue\r\n\r\n"
                                "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"));
}

static void a_server_that_does_not_answer_is_given_up(void **state)
{
    const struct kinf__forwarder_options limits = { .head_limit_ms = LIMIT_MS };
    struct fixture f;
    const struct kinf__head *head;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    setup_with(&f, NULL, &limits);
    begin(&f);
    assert_int_equal(ask(&f, "DELETE", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, &err), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(err.message, "no answer within"));
    /* It has no body, and yet the server may have acted. */
    assert_true(kinf__forward_is_sent(f.forward));
    teardown(&f);
}

static void interim_answers_are_none(void **state)
{
    const struct kinf__forwarder_options limits = { .head_limit_ms = LIMIT_MS };
    struct fixture f;
    const struct kinf__head *head;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    setup_with(&f, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n",
               &limits);
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, &err), KINF_ERR_TIMEOUT);
    teardown(&f);
}

static void a_head_that_trickles_is_given_up(void **state)
{
    const struct kinf__forwarder_options limits = { .head_limit_ms = LIMIT_MS };
    struct fixture f;
    const struct kinf__head *head;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    setup_with(&f, "HTTP/1.1 200 OK\r\n", &limits);
    f.server.trickles = true;
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, &err), KINF_ERR_TIMEOUT);
    teardown(&f);
}

static void a_connection_that_breaks_without_an_answer_was_sent(void **state)
{
    struct fixture f;
    const struct kinf__head *head;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    setup(&f, NULL);
    kinf__waker_set(&f.server.may_read);
    kinf__waker_set(&f.server.may_end);
    begin(&f);
    assert_int_equal(ask(&f, "DELETE", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, &err), KINF_ERR_NETWORK);
    assert_true(kinf__forward_is_sent(f.forward));
    teardown(&f);
}

/* Reads a head, and what follows up to `end`; 0: the peer has said nothing more. */
static size_t receive_up_to(int fd, const char *end, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n = 1;

    while (n > 0 && len < size - 1) {
        n = recv(fd, text + len, size - 1 - len, 0);
        len += n > 0 ? (size_t)n : 0;
        text[len] = '\0';
        if (len >= strlen(end) && strcmp(text + len - strlen(end), end) == 0)
            return len;
    }
    return 0;
}

/* A request on a connection that is there; the server reads it up to `end`. */
static void ask_again(struct fixture *f, int fd, const char *method, size_t body_len,
                      const char *end)
{
    char text[4096];

    kinf__forward_free(f->forward);
    f->forward = NULL;
    assert_int_equal(ask(f, method, (int64_t)body_len, &f->forward), 0);
    if (body_len != 0)
        send_all(f, body_len);
    assert_true(receive_up_to(fd, end, text, sizeof text) != 0);
    assert_memory_equal(text, method, strlen(method));
}

static void answer_and_await(struct fixture *f, int fd)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    const struct kinf__head *head;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    assert_int_equal(send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL), sizeof answer - 1);
    assert_int_equal(await_head(f, &head, NULL), 1);
    assert_int_equal(read_all(f, &text), KINF__FORWARD_END);
}

/* The place of one that is freed is free a little later. */
static const struct kinf__forwarder_options several = { .max_forwards = 64 };

/* As a server does that goes away; what it has read it may have done. */
static void writes_keep_the_connection_and_are_never_sent_twice(void **state)
{
    static const struct {
        const char *method, *end;
        size_t body_len;
    } writes[] = { { "PATCH", "uuu", 3 }, { "DELETE", "\r\n\r\n", 0 } };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(writes); i++) {
        const struct kinf__head *head;
        struct kinf_error err = KINF_ERROR_INIT;
        char text[4096];
        struct fixture f;
        int fd, other;

        setup_with(&f, NULL, &several);
        assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
        fd = accept(f.server.listener, NULL, NULL);
        assert_true(receive_up_to(fd, "\r\n\r\n", text, sizeof text) != 0);
        answer_and_await(&f, fd);
        ask_again(&f, fd, writes[i].method, writes[i].body_len, writes[i].end);
        answer_and_await(&f, fd);
        ask_again(&f, fd, writes[i].method, writes[i].body_len, writes[i].end);
        close(fd);
        assert_int_equal(await_head(&f, &head, &err), KINF_ERR_NETWORK);
        assert_true(kinf__forward_is_sent(f.forward));
        /* If curl connected again, that was all. */
        assert_int_equal(fcntl(f.server.listener, F_SETFL, O_NONBLOCK), 0);
        other = accept(f.server.listener, NULL, NULL);
        assert_true(other < 0 || recv(other, text, sizeof text, MSG_DONTWAIT) <= 0);
        if (other >= 0)
            close(other);
        teardown(&f);
    }
}

static void what_changes_nothing_is_sent_again(void **state)
{
    struct fixture f;
    char text[4096];
    int fd, other;

    (void)state;
    setup_with(&f, NULL, &several);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    fd = accept(f.server.listener, NULL, NULL);
    assert_true(receive_up_to(fd, "\r\n\r\n", text, sizeof text) != 0);
    answer_and_await(&f, fd);
    ask_again(&f, fd, "GET", 0, "\r\n\r\n");
    close(fd);
    other = accept(f.server.listener, NULL, NULL);
    assert_true(receive_up_to(other, "\r\n\r\n", text, sizeof text) != 0);
    answer_and_await(&f, other);
    close(other);
    teardown(&f);
}

static void an_answer_that_stops_is_cut(void **state)
{
    const struct kinf__forwarder_options limits = { .silence_limit_ms = LIMIT_MS };
    struct fixture f;
    const struct kinf__head *head;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    setup_with(&f, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", &limits);
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(read_all(&f, &text), KINF__FORWARD_BROKEN);
    assert_int_equal(text.len, 5);
    teardown(&f);
}

/* Longer than any limit here, and than the thread needs to see it. */
static void outlast_the_limit(struct fixture *f)
{
    int64_t until_ms = kinf__clock_now_ms() + 3 * LIMIT_MS, left_ms;

    while ((left_ms = until_ms - kinf__clock_now_ms()) > 0) {
        kinf__waker_wait(&f->woken, left_ms);
        kinf__waker_clear(&f->woken);
    }
}

static void an_endless_answer_may_be_silent(void **state)
{
    const struct kinf__forwarder_options limits = { .silence_limit_ms = LIMIT_MS };
    struct fixture f;
    struct kinf__forward_request request;
    const struct kinf__head *head;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    setup_with(&f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &limits);
    f.server.rest = "5\r\nhello\r\n0\r\n\r\n";
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    request = request_of(&f, "GET", 0);
    request.is_endless = true;
    assert_int_equal(kinf__forward_new(f.forwarder, &request, &f.forward, NULL), 0);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    outlast_the_limit(&f);
    kinf__waker_set(&f.server.may_go_on);
    assert_int_equal(read_all(&f, &text), KINF__FORWARD_END);
    assert_int_equal(text.len, 5);
    teardown(&f);
}

static void who_brings_a_body_slowly_is_waited_for(void **state)
{
    const struct kinf__forwarder_options limits = { .head_limit_ms = LIMIT_MS };
    struct fixture f;
    const struct kinf__head *head;

    (void)state;
    setup_with(&f, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", &limits);
    f.server.wants = 4;
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "POST", 4, &f.forward), 0);
    assert_int_equal(kinf__forward_send(f.forward, "u", 1), 1);
    outlast_the_limit(&f);
    send_all(&f, 3);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(head->code, 201);
    teardown(&f);
}

static void who_takes_an_answer_slowly_is_waited_for(void **state)
{
    enum { MUCH = 4 << 20 };
    const struct kinf__forwarder_options limits = { .silence_limit_ms = LIMIT_MS };
    struct fixture f;
    const struct kinf__head *head;
    char text[80];
    KINF__AUTO_BUFFER got = KINF__BUFFER_INIT;

    (void)state;
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", MUCH);
    setup_with(&f, text, &limits);
    f.server.filler = MUCH;
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    outlast_the_limit(&f);
    assert_int_equal(read_all(&f, &got), KINF__FORWARD_END);
    assert_int_equal(got.len, MUCH);
    teardown(&f);
}

/* What an answer comes to; the server closes behind it. `body` NULL: there is no head. */
struct outcome {
    const char *answer;
    int code;
    int64_t body_len;
    const char *body;
    int end;
};

static void meet(const struct outcome *outcome, bool is_in_bytes, bool is_upgrade)
{
    struct fixture f;
    struct kinf__forward_request request;
    const struct kinf__head *head;
    struct kinf_error err = KINF_ERROR_INIT;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    setup(&f, outcome->answer);
    f.server.is_in_bytes = is_in_bytes;
    kinf__waker_set(&f.server.may_read);
    kinf__waker_set(&f.server.may_end);
    begin(&f);
    request = request_of(&f, "GET", 0);
    request.is_upgrade = is_upgrade;
    assert_int_equal(kinf__forward_new(f.forwarder, &request, &f.forward, NULL), 0);
    if (outcome->body == NULL) {
        assert_int_equal(await_head(&f, &head, &err), KINF_ERR_NETWORK);
    } else {
        assert_int_equal(await_head(&f, &head, &err), 1);
        assert_int_equal(head->code, outcome->code);
        assert_int_equal(head->body_len, outcome->body_len);
        for (size_t i = 0; i < head->n_headers; i++)
            assert_null(strstr(head->headers[i].name, "Trailer-"));
        assert_int_equal(read_all(&f, &text), outcome->end);
        assert_string_equal(kinf__buffer_cstr(&text), outcome->body);
    }
    teardown(&f);
}

static void each_form_of_an_answer_ends_as_it_says(void **state)
{
    static const struct outcome outcomes[] = {
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, -1,
          "abc", KINF__FORWARD_END },
        /* Trailers are no headers. */
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nTrailer-A: b\r\n"
          "Content-Length: 1\r\n\r\n",
          200, -1, "abc", KINF__FORWARD_END },
        /* Chunks end by themselves, whatever is told beside them. */
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
          "0\r\n\r\n",
          200, -1, "abc", KINF__FORWARD_END },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n3\r\nabc\r\n"
          "0\r\n\r\n",
          200, -1, "abc", KINF__FORWARD_END },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 200, -1, "abc",
          KINF__FORWARD_BROKEN },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", 200, -1, "abc",
          KINF__FORWARD_BROKEN },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 200, -1, "",
          KINF__FORWARD_BROKEN },
        { "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", 200, 4, "abc", KINF__FORWARD_BROKEN },
        /* More than was told is nobody's. */
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", 200, 2, "ab", KINF__FORWARD_END },
        { "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 200, 3, "abc",
          KINF__FORWARD_END },
        { "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 2\r\n\r\nabc", 0, 0, NULL, 0 },
        { "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", 0, 0, NULL, 0 },
        { "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc", 0, 0, NULL, 0 },
        { "HTTP/1.1 204 No Content\r\n\r\nabc", 204, -1, "", KINF__FORWARD_END },
        { "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\nabc", 304, 3, "",
          KINF__FORWARD_END },
        { "HTTP/1.1 200 OK\r\n\r\nabc", 200, -1, "abc", KINF__FORWARD_END },
        { "HTTP/1.1 100 Continue\r\n\r\n", 0, 0, NULL, 0 },
        { "HTTP/1.1 200 OK\r\nX", 0, 0, NULL, 0 },
        { "SSH-2.0\r\n\r\n", 0, 0, NULL, 0 },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(outcomes); i++) {
        meet(&outcomes[i], false, false);
        meet(&outcomes[i], true, false);
        meet(&outcomes[i], false, true);
        meet(&outcomes[i], true, true);
    }
}

static void another_protocol_is_for_who_asked_for_it(void **state)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nabc";
    const struct outcome unasked = { answer, 0, 0, NULL, 0 },
                         asked = { answer, 101, -1, "abc", KINF__FORWARD_END };

    (void)state;
    for (int is_in_bytes = 0; is_in_bytes < 2; is_in_bytes++) {
        meet(&unasked, is_in_bytes != 0, false);
        meet(&asked, is_in_bytes != 0, true);
    }
}

/* Cut behind `len` bytes: whatever came, it is a beginning, and not complete. */
static void cut(const char *answer, size_t len, bool is_upgrade)
{
    struct fixture f;
    struct kinf__forward_request request;
    const struct kinf__head *head;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    setup(&f, answer);
    f.server.answer_len = len;
    kinf__waker_set(&f.server.may_read);
    kinf__waker_set(&f.server.may_end);
    begin(&f);
    request = request_of(&f, "GET", 0);
    request.is_upgrade = is_upgrade;
    assert_int_equal(kinf__forward_new(f.forwarder, &request, &f.forward, NULL), 0);
    if (await_head(&f, &head, NULL) == 1) {
        if (read_all(&f, &text) != KINF__FORWARD_BROKEN)
            fail_msg("complete behind %zu bytes", len);
        assert_memory_equal(text.len != 0 ? text.bytes : "", "abcdefghij", text.len);
    }
    teardown(&f);
}

static void an_answer_that_is_cut_anywhere_is_not_complete(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcdefghij",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n6\r\nefghij\r\n0\r\n",
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(answers); i++) {
        for (size_t len = 1; len < strlen(answers[i]); len++) {
            cut(answers[i], len, false);
            cut(answers[i], len, true);
        }
    }
}

static void a_slow_reader_holds_the_server_up(void **state)
{
    enum { MUCH = 16 << 20 };
    struct fixture f;
    const struct kinf__head *head;
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
    const struct kinf__head *head;
    char piece[8192] = { 0 };
    size_t n_sent = 0, n;

    (void)state;
    setup(&f, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    f.server.wants = MUCH;
    begin(&f);
    assert_int_equal(ask(&f, "POST", KINF__CHUNKED, &f.forward), 0);
    /* The server reads nothing yet: sooner or later there is no room. */
    while ((n = kinf__forward_send(f.forward, piece, sizeof piece)) != 0) {
        n_sent += n;
        assert_true(n_sent < (64u << 20));
    }
    kinf__waker_set(&f.server.may_read);
    send_all(&f, MUCH);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(head->code, 201);
    assert_true(kinf__forward_is_sent(f.forward));
    assert_non_null(strstr(f.server.request.bytes, "\r\nTransfer-Encoding: chunked\r\n"));
    teardown(&f);
}

static void an_answer_before_the_body_is_complete_counts(void **state)
{
    struct fixture f;
    const struct kinf__head *head;

    (void)state;
    setup(&f, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "POST", 1000, &f.forward), 0);
    assert_int_equal(kinf__forward_send(f.forward, "x", 1), 1);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(head->code, 401);
    send_all(&f, 999);
    teardown(&f);
}

static void an_end_leaves_whole_lines(void **state)
{
    struct fixture f;
    const struct kinf__head *head;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    setup(&f, "HTTP/1.1 200 OK\r\n\r\none\ntwo\nthr");
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(head->body_len, -1);
    kinf__forward_end(f.forward);
    assert_int_equal(read_all(&f, &text), KINF__FORWARD_BROKEN);
    assert_true(text.len == 0 || text.bytes[text.len - 1] == '\n');
    teardown(&f);
}

static void what_came_before_an_end_is_cut_behind_a_line(void **state)
{
    struct fixture f;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    char first[3];
    ssize_t n;

    (void)state;
    setup(&f, "HTTP/1.1 200 OK\r\n\r\none\ntwo\nthr");
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    /* It comes as a whole. */
    while ((n = kinf__forward_read(f.forward, first, sizeof first)) == 0)
        pause_until_woken(&f);
    assert_int_equal(n, sizeof first);
    kinf__forward_end(f.forward);
    assert_int_equal(read_all(&f, &text), KINF__FORWARD_BROKEN);
    assert_string_equal(kinf__buffer_cstr(&text), "\ntwo\n");
    teardown(&f);
}

static void an_end_before_the_head_is_told(void **state)
{
    struct fixture f;
    const struct kinf__head *head;
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
    const struct kinf__head *head;
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
    const struct kinf__head *head;
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

/* --- another protocol --- */

/* Asks for one, and returns the connection that the request came by. */
static int ask_for_upgrade(struct fixture *f, const char *method, char *text, size_t size)
{
    struct kinf__forward_request request = request_of(f, method, 0);
    int fd;

    request.is_upgrade = true;
    assert_int_equal(kinf__forward_new(f->forwarder, &request, &f->forward, NULL), 0);
    fd = accept(f->server.listener, NULL, NULL);
    assert_true(fd >= 0);
    assert_true(receive_up_to(fd, "\r\n\r\n", text, size) != 0);
    return fd;
}

/* Likewise, and has it granted. */
static int upgrade(struct fixture *f)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
    const struct kinf__head *head;
    char text[4096];
    int fd = ask_for_upgrade(f, "POST", text, sizeof text);

    assert_int_equal(send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL), sizeof answer - 1);
    assert_int_equal(await_head(f, &head, NULL), 1);
    assert_int_equal(head->code, 101);
    assert_string_equal(kinf__head_value(head, "Upgrade"), "x");
    return fd;
}

static int setup_upgraded(struct fixture *f)
{
    setup(f, NULL);
    return upgrade(f);
}

static void await_text(struct fixture *f, const char *text)
{
    KINF__AUTO_BUFFER got = KINF__BUFFER_INIT;
    char piece[64];

    while (got.len < strlen(text)) {
        ssize_t n = kinf__forward_read(f->forward, piece, sizeof piece);

        assert_true(n >= 0);
        if (n == 0)
            pause_until_woken(f);
        assert_int_equal(kinf__buffer_append(&got, piece, (size_t)n), 0);
    }
    assert_int_equal(got.len, strlen(text));
    assert_memory_equal(got.bytes, text, got.len);
}

static void a_request_for_another_protocol_says_so(void **state)
{
    struct fixture f;
    char text[4096];
    int fd;

    (void)state;
    setup(&f, NULL);
    fd = ask_for_upgrade(&f, "POST", text, sizeof text);
    assert_memory_equal(text, "POST /api/v1/x?a=%2F HTTP/1.1\r\nHost: 127.0.0.1:", 47);
    assert_non_null(strstr(text, "\r\nConnection: Upgrade\r\n"));
    assert_non_null(strstr(text, "\r\nContent-Length: 0\r\n"));
    assert_non_null(strstr(text, "\r\nAuthorization: Bearer theirs\r\n"));
    assert_non_null(strstr(text, "\r\nX-Empty:"));
    close(fd);
    teardown(&f);
}

static void behind_an_upgrade_bytes_go_both_ways(void **state)
{
    struct fixture f;
    char text[64];
    int fd = setup_upgraded(&f);

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kinf__forward_send(f.forward, "ping", 4), 4);
        assert_int_equal(receive_up_to(fd, "ping", text, sizeof text), 4);
        assert_int_equal(send(fd, "pong!", 5, MSG_NOSIGNAL), 5);
        await_text(&f, "pong!");
    }
    close(fd);
    assert_int_equal(read_all(&f, &(struct kinf__buffer){ 0 }), KINF__FORWARD_END);
    teardown(&f);
}

static void an_upgraded_connection_may_be_silent(void **state)
{
    const struct kinf__forwarder_options limits = { .head_limit_ms = LIMIT_MS,
                                                    .silence_limit_ms = LIMIT_MS };
    struct fixture f;
    int fd;

    (void)state;
    setup_with(&f, NULL, &limits);
    fd = upgrade(&f);
    outlast_the_limit(&f);
    assert_int_equal(send(fd, "late", 4, MSG_NOSIGNAL), 4);
    await_text(&f, "late");
    close(fd);
    teardown(&f);
}

static void an_upgrade_is_awaited_for_so_long(void **state)
{
    const struct kinf__forwarder_options limits = { .head_limit_ms = LIMIT_MS };
    struct fixture f;
    const struct kinf__head *head;
    struct kinf_error err = KINF_ERROR_INIT;
    char text[4096];
    int fd;

    (void)state;
    setup_with(&f, NULL, &limits);
    fd = ask_for_upgrade(&f, "GET", text, sizeof text);
    assert_int_equal(await_head(&f, &head, &err), KINF_ERR_TIMEOUT);
    assert_true(kinf__forward_is_sent(f.forward));
    close(fd);
    teardown(&f);
}

/* What was sent comes before the end. */
static void the_end_of_what_is_sent_ends_an_upgraded_connection(void **state)
{
    struct fixture f;
    char text[64];
    int fd = setup_upgraded(&f);

    (void)state;
    assert_int_equal(kinf__forward_send(f.forward, "last", 4), 4);
    kinf__forward_end_body(f.forward);
    assert_int_equal(receive_up_to(fd, "last", text, sizeof text), 4);
    assert_int_equal(recv(fd, text, sizeof text, 0), 0);
    assert_int_equal(read_all(&f, &(struct kinf__buffer){ 0 }), KINF__FORWARD_END);
    close(fd);
    teardown(&f);
}

/* It closes while something is on its way to it, as a program does that ends before its input: the
 * last words wait in the kernel, and sending fails. */
static void what_the_server_said_before_it_went_is_handed_out(void **state)
{
    enum { MUCH = 100 << 10 };
    struct fixture f;
    KINF__AUTO_FREE char *words = calloc(1, MUCH);
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct pollfd poller = { .fd = setup_upgraded(&f), .events = POLLIN };
    int n_left = 1;

    (void)state;
    assert_non_null(words);
    assert_int_equal(kinf__forward_send(f.forward, "unread", 6), 6);
    assert_int_equal(poll(&poller, 1, LONG_MS), 1);
    assert_int_equal(send(poller.fd, words, MUCH, MSG_NOSIGNAL), MUCH);
    while (n_left != 0)
        assert_int_equal(ioctl(poller.fd, SIOCOUTQ, &n_left), 0);
    close(poller.fd);
    do
        kinf__waker_clear(&f.woken);
    while (kinf__waker_wait(&f.woken, 100));
    assert_int_equal(kinf__forward_send(f.forward, "too late", 8), 8);
    pause_until_woken(&f);
    assert_int_equal(read_all(&f, &text), KINF__FORWARD_BROKEN);
    assert_int_equal(text.len, MUCH);
    teardown(&f);
}

/* A server behind a proxy that says this to CONNECT. Returns the proxy's side. */
static int upgrade_by_proxy(struct fixture *f, const char *answer)
{
    struct kinf__forward_request request;
    unsigned port;
    char text[4096];
    int fd;

    setup(f, NULL);
    kinf__forwarder_free(f->forwarder);
    kinf_client_free(f->client);
    close(f->server.listener);
    f->server.listener = test_listen(4, &port);
    snprintf(text, sizeof text,
             "clusters: [{name: c, cluster: {server: 'http://cluster.invalid:8080', proxy-url: "
             "'http://127.0.0.1:%u'}}]\n"
             "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n",
             port);
    assert_int_equal(test_client_new(text, NULL, &f->client, NULL), 0);
    assert_int_equal(kinf__forwarder_new(f->client, &several, &f->forwarder, NULL), 0);
    request = request_of(f, "POST", 0);
    request.is_upgrade = true;
    assert_int_equal(kinf__forward_new(f->forwarder, &request, &f->forward, NULL), 0);
    fd = accept(f->server.listener, NULL, NULL);
    assert_true(receive_up_to(fd, "\r\n\r\n", text, sizeof text) != 0);
    assert_memory_equal(text, "CONNECT cluster.invalid:8080 HTTP/1.1\r\n", 39);
    assert_null(strstr(text, "theirs"));
    assert_int_equal(send(fd, answer, strlen(answer), MSG_NOSIGNAL), strlen(answer));
    return fd;
}

static void a_proxy_lets_upgrades_through_to_the_server(void **state)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
    const struct kinf__head *head;
    struct fixture f;
    char text[4096];
    int fd = upgrade_by_proxy(&f, "HTTP/1.1 200 Connection established\r\nX-Proxy: 1\r\n\r\n");

    (void)state;
    assert_true(receive_up_to(fd, "\r\n\r\n", text, sizeof text) != 0);
    assert_memory_equal(text, "POST /api/v1/x?a=%2F HTTP/1.1\r\nHost: cluster.invalid:8080\r\n",
                        59);
    assert_int_equal(send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL), sizeof answer - 1);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(head->code, 101);
    assert_int_equal(head->n_headers, 1);
    assert_int_equal(kinf__forward_send(f.forward, "ping", 4), 4);
    assert_int_equal(receive_up_to(fd, "ping", text, sizeof text), 4);
    assert_int_equal(send(fd, "pong!", 5, MSG_NOSIGNAL), 5);
    await_text(&f, "pong!");
    close(fd);
    teardown(&f);
}

static void an_upgrade_that_the_proxy_refuses_was_not_sent(void **state)
{
    const struct kinf__head *head;
    struct kinf_error err = KINF_ERROR_INIT;
    struct fixture f;
    int fd = upgrade_by_proxy(&f, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");

    (void)state;
    assert_int_equal(await_head(&f, &head, &err), KINF_ERR_NETWORK);
    assert_false(kinf__forward_is_sent(f.forward));
    close(fd);
    teardown(&f);
}

static void an_upgrade_without_a_server_was_not_sent(void **state)
{
    struct fixture f;
    struct kinf__forward_request request;
    const struct kinf__head *head;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    setup(&f, NULL);
    shutdown(f.server.listener, SHUT_RDWR);
    request = request_of(&f, "GET", 0);
    request.is_upgrade = true;
    assert_int_equal(kinf__forward_new(f.forwarder, &request, &f.forward, NULL), 0);
    assert_int_equal(await_head(&f, &head, &err), KINF_ERR_NETWORK);
    assert_false(kinf__forward_is_sent(f.forward));
    teardown(&f);
}

static void who_leaves_an_upgraded_connection_closes_it(void **state)
{
    struct fixture f;
    char text[64];
    int fd = setup_upgraded(&f);

    (void)state;
    kinf__forward_free(f.forward);
    f.forward = NULL;
    assert_int_equal(recv(fd, text, sizeof text, 0), 0);
    close(fd);
    teardown(&f);
}

/* Neither side takes anything: both are held up, and nothing is lost. */
static void slow_sides_of_an_upgraded_connection_are_waited_for(void **state)
{
    struct fixture f;
    char piece[8192];
    size_t n_sent = 0, n_back = 0, n_received = 0, n_read = 0;
    ssize_t n;
    int fd = setup_upgraded(&f);

    (void)state;
    memset(piece, 'u', sizeof piece);
    while ((n = (ssize_t)kinf__forward_send(f.forward, piece, sizeof piece)) != 0 ||
           kinf__waker_wait(&f.woken, 50)) {
        kinf__waker_clear(&f.woken);
        n_sent += (size_t)n;
        assert_true(n_sent < (64u << 20));
    }
    while ((n = send(fd, piece, sizeof piece, MSG_NOSIGNAL | MSG_DONTWAIT)) > 0 ||
           kinf__waker_wait(&f.woken, 50)) {
        kinf__waker_clear(&f.woken);
        n_back += n > 0 ? (size_t)n : 0;
        assert_true(n_back < (64u << 20));
    }
    while (n_received < n_sent && (n = recv(fd, piece, sizeof piece, 0)) > 0)
        n_received += (size_t)n;
    while (n_read < n_back && (n = kinf__forward_read(f.forward, piece, sizeof piece)) >= 0) {
        n_read += (size_t)n;
        if (n == 0)
            pause_until_woken(&f);
    }
    assert_int_equal(n_received, n_sent);
    assert_int_equal(n_read, n_back);
    close(fd);
    teardown(&f);
}

static void a_head_that_is_cut_short_is_told(void **state)
{
    struct fixture f;
    const struct kinf__head *head;
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

static void ask_without_memory(bool is_upgrade)
{
    struct fixture f;
    struct kinf__forward_request request;
    int failed = -1;

    setup(&f, NULL);
    begin(&f);
    request = request_of(&f, "POST", is_upgrade ? 0 : 3);
    request.is_upgrade = is_upgrade;
    for (size_t n = 1; failed != 0; n++) {
        test_fail_allocation(n);
        failed = kinf__forward_new(f.forwarder, &request, &f.forward, NULL);
        assert_int_equal(failed, test_allocation_failed() ? KINF_ERR_NO_MEMORY : 0);
    }
    teardown(&f);
}

static void want_of_memory_is_told_and_takes_no_place(void **state)
{
    struct fixture f;
    struct kinf__forwarder_options limits = { .max_forwards = 1 };
    struct kinf__forwarder *other = NULL;
    int failed = -1;

    (void)state;
    ask_without_memory(false);
    ask_without_memory(true);
    setup(&f, NULL);
    for (size_t n = 1; failed != 0; n++) {
        test_fail_allocation(n);
        failed = kinf__forwarder_new(f.client, &limits, &other, NULL);
        assert_int_equal(failed, test_allocation_failed() ? KINF_ERR_NO_MEMORY : 0);
    }
    kinf__forwarder_free(other);
    teardown(&f);
}

/* The kernel's probes take their time: what is looked at is that they were asked for. */
static void a_peer_that_vanishes_is_noticed_within_a_minute(void **state)
{
    struct fixture f;
    const struct kinf__head *head;
    struct sockaddr_in server = { 0 }, peer;
    socklen_t size = sizeof server;
    int n_found = 0;

    (void)state;
    setup(&f, "HTTP/1.1 200 OK\r\n\r\n");
    kinf__waker_set(&f.server.may_read);
    begin(&f);
    assert_int_equal(ask(&f, "GET", 0, &f.forward), 0);
    assert_int_equal(await_head(&f, &head, NULL), 1);
    assert_int_equal(getsockname(f.server.listener, (struct sockaddr *)&server, &size), 0);
    for (int fd = 3; fd < 256; fd++) {
        int idle_s = 0, period_s = 0, probes = 0, unacknowledged_ms = 0, is_probed = 0;

        size = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0 || peer.sin_family != AF_INET ||
            peer.sin_port != server.sin_port)
            continue;
        n_found++;
        size = sizeof(int);
        getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &is_probed, &size);
        getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, &size);
        getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &period_s, &size);
        getsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, &size);
        getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, &size);
        assert_int_equal(is_probed, 1);
        assert_in_range(idle_s + period_s * probes, 1, 60);
        assert_in_range(unacknowledged_ms, 1, 60000);
    }
    assert_int_equal(n_found, 1);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_comes_as_it_is),
        cmocka_unit_test(a_request_has_the_given_headers_and_no_others),
        cmocka_unit_test(a_post_without_a_body_says_so),
        cmocka_unit_test(there_is_room_for_so_many_at_once),
        cmocka_unit_test(a_caller_has_a_share_of_the_room),
        cmocka_unit_test(callers_are_strangers_until_the_server_accepts_them),
        cmocka_unit_test(a_server_that_does_not_answer_is_given_up),
        cmocka_unit_test(interim_answers_are_none),
        cmocka_unit_test(a_head_that_trickles_is_given_up),
        cmocka_unit_test(a_connection_that_breaks_without_an_answer_was_sent),
        cmocka_unit_test(writes_keep_the_connection_and_are_never_sent_twice),
        cmocka_unit_test(what_changes_nothing_is_sent_again),
        cmocka_unit_test(an_answer_that_stops_is_cut),
        cmocka_unit_test(an_endless_answer_may_be_silent),
        cmocka_unit_test(who_brings_a_body_slowly_is_waited_for),
        cmocka_unit_test(who_takes_an_answer_slowly_is_waited_for),
        cmocka_unit_test(each_form_of_an_answer_ends_as_it_says),
        cmocka_unit_test(another_protocol_is_for_who_asked_for_it),
        cmocka_unit_test(an_answer_that_is_cut_anywhere_is_not_complete),
        cmocka_unit_test(a_slow_reader_holds_the_server_up),
        cmocka_unit_test(a_body_waits_for_the_server),
        cmocka_unit_test(an_answer_before_the_body_is_complete_counts),
        cmocka_unit_test(an_end_leaves_whole_lines),
        cmocka_unit_test(what_came_before_an_end_is_cut_behind_a_line),
        cmocka_unit_test(an_end_before_the_head_is_told),
        cmocka_unit_test(a_cut_answer_is_broken),
        cmocka_unit_test(a_server_that_is_not_there_is_told),
        cmocka_unit_test(a_request_for_another_protocol_says_so),
        cmocka_unit_test(behind_an_upgrade_bytes_go_both_ways),
        cmocka_unit_test(an_upgraded_connection_may_be_silent),
        cmocka_unit_test(an_upgrade_is_awaited_for_so_long),
        cmocka_unit_test(the_end_of_what_is_sent_ends_an_upgraded_connection),
        cmocka_unit_test(what_the_server_said_before_it_went_is_handed_out),
        cmocka_unit_test(a_proxy_lets_upgrades_through_to_the_server),
        cmocka_unit_test(an_upgrade_that_the_proxy_refuses_was_not_sent),
        cmocka_unit_test(an_upgrade_without_a_server_was_not_sent),
        cmocka_unit_test(who_leaves_an_upgraded_connection_closes_it),
        cmocka_unit_test(slow_sides_of_an_upgraded_connection_are_waited_for),
        cmocka_unit_test(a_head_that_is_cut_short_is_told),
        cmocka_unit_test(want_of_memory_is_told_and_takes_no_place),
        cmocka_unit_test(a_peer_that_vanishes_is_noticed_within_a_minute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
