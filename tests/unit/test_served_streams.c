/*
 * Requests that last: that wait for a version or a turn, watch, bring long bodies, change their
 * protocol; who hangs up meanwhile, what a stop does to them, and what the log says of each.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "unit/scripted_server.h"
#include "unit/serve_fixture.h"
#include "unit/swept_fake.h"
#include "unit/test.h"

#define LARGE (300u << 10)

/* --- waiting --- */

static void a_version_to_come_is_waited_for_until_it_comes(void **state)
{
    struct served_answer answer;
    struct serve_fixture f;
    int fd;

    (void)state;
    serve_setup_whole(&f);
    fd = serve_send_request(&f, "GET " OBJECTS "?resourceVersion=100000", "");
    serve_wait_until_under_way(&f, 1);
    usleep(20000);
    assert_int_equal(serve_n_under_way(&f), 1);
    kinf_fake_advance(f.fake, 5000);
    answer = served_fake_answer(fd);
    serve_expect_answer(&answer, "a version that never comes", 504,
                        "Too large resource version\n"
                        "Timeout",
                        NULL);
    serve_wait_until_under_way(&f, 0);

    /* A watch that begins with the state has begun: it is told in its stream. */
    fd = serve_send_request(&f,
                            "GET " OBJECTS
                            "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                            "&allowWatchBookmarks=true&resourceVersion=100000",
                            "");
    serve_wait_until_under_way(&f, 1);
    kinf_fake_advance(f.fake, 5000);
    answer = served_fake_answer(fd);
    serve_expect_answer(&answer, "a watch of it", 200,
                        "Content-Type: application/json\n"
                        "{\"type\":\"ERROR\",\"object\":\n"
                        "Too large resource version",
                        NULL);
    serve_teardown(&f);
}

/* Returns the version of the list, as a number. */
static unsigned long version_now(const struct serve_fixture *f)
{
    struct served_answer answer = served_fake_answer(serve_send_request(f, "GET " OBJECTS, ""));
    const char *at = strstr(answer.body, "\"metadata\":{\"resourceVersion\":\"");
    unsigned long version;

    assert_non_null(at);
    version = strtoul(at + strlen("\"metadata\":{\"resourceVersion\":\""), NULL, 10);
    served_answer_release(&answer);
    return version;
}

/* Sets up, and sends a request that waits for the next version; it goes to `line`, too. */
static int set_up_waiting(struct serve_fixture *f, char *line, size_t size)
{
    int fd;

    serve_setup_whole(f);
    snprintf(line, size, "GET " OBJECTS "?resourceVersion=%lu", version_now(f) + 1);
    serve_wait_until_under_way(f, 0);
    fd = serve_send_request(f, line, "");
    serve_wait_until_under_way(f, 1);
    return fd;
}

static void a_version_that_comes_is_answered_with(void **state)
{
    struct served_answer answer;
    struct serve_fixture f;
    char line[256];
    int fd;

    (void)state;
    fd = set_up_waiting(&f, line, sizeof line);
    swept_fake_put(f.fake, "c", "3");
    answer = served_fake_answer(fd);
    serve_expect_answer(&answer, line, 200, "\"name\":\"c\"", NULL);
    serve_teardown(&f);
}

/* Whoever waits is woken when the source is taken back, and has to go on waiting. */
static void a_source_that_is_withdrawn_answers_who_waits(void **state)
{
    struct served_answer answer;
    struct serve_fixture f;
    char line[256];
    int fd;

    (void)state;
    fd = set_up_waiting(&f, line, sizeof line);
    usleep(20000);
    kinf__server_withdraw_source(f.served.server, f.served.sources[0].source);
    usleep(20000);
    assert_int_equal(serve_n_under_way(&f), 1);
    swept_fake_put(f.fake, "c", "3");
    answer = served_fake_answer(fd);
    serve_expect_answer(&answer, line, 200, "\"name\":\"c\"", NULL);
    serve_expect(&f, "GET " OBJECTS, "", 401, "token", NULL);
    serve_teardown(&f);
}

/* For a version nobody waits longer than 3 s, whoever is there to hear it. */
static void whoever_hangs_up_is_not_waited_for(void **state)
{
    struct serve_fixture f;
    int waits, watches;

    (void)state;
    serve_setup_whole(&f);
    waits = serve_send_request(&f, "GET " OBJECTS "?resourceVersion=100000", "");
    watches = serve_send_request(&f, "GET " OBJECTS "?watch=1&resourceVersion=100000", "");
    serve_wait_until_under_way(&f, 2);
    close(watches);
    serve_wait_until_under_way(&f, 1);
    serve_wait_until_logged(&f, "?watch=1\\u0026resourceVersion=100000\",\"code\":200");
    close(waits);
    kinf_fake_advance(f.fake, 5000);
    serve_wait_until_under_way(&f, 0);
    serve_wait_until_logged(&f, "?resourceVersion=100000\",\"code\":504");
    serve_teardown(&f);
}

static void a_watch_tells_what_comes_and_ends_in_time(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct served_answer answer;
    struct serve_fixture f;
    int fd;

    (void)state;
    serve_setup_whole(&f);
    fd = serve_send_request(&f, "GET " OBJECTS "?watch=1&timeoutSeconds=100", "");
    assert_true(served_fake_read(fd, "\"name\":\"b\"", &text));
    swept_fake_put(f.fake, "c", "3");
    assert_true(
        served_fake_read(fd, "{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\"", &text));
    assert_true(served_fake_read(fd, "\"name\":\"c\"", &text));
    close(fd);
    serve_wait_until_under_way(&f, 0);
    serve_expect(&f, "GET /debug/state", "", 200,
                 "\"recentEvents\":[{\n"
                 "\"type\":\"ADDED\",\"key\":\"default/c\"",
                 NULL);

    fd = serve_send_request(&f, "GET " OBJECTS "?watch=1&timeoutSeconds=100", "");
    serve_wait_until_under_way(&f, 1);
    serve_wait_until_logged(&f, "timeoutSeconds=100");
    kinf_fake_advance(f.fake, 50000);
    assert_int_equal(serve_n_under_way(&f), 1);
    kinf_fake_advance(f.fake, 60000);
    answer = served_fake_answer(fd);
    serve_expect_answer(&answer, "a watch", 200,
                        "Transfer-Encoding: chunked\n"
                        "\"ADDED\"",
                        NULL);
    serve_teardown(&f);
}

/* Long targets take turns from their first step on. */
static void who_sleeps_has_given_up_its_turn(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct serve_fixture f;
    char filler[1200] = "", line[1600];
    int watches;

    (void)state;
    serve_setup_whole(&f);
    memset(filler, 'x', sizeof filler - 1);
    snprintf(line, sizeof line, "GET " OBJECTS "?watch=1&filler=%s", filler);
    watches = serve_send_request(&f, line, "");
    assert_true(served_fake_read(watches, "\"name\":\"b\"", &text));
    snprintf(line, sizeof line, "GET " OBJECTS "?filler=%s", filler);
    serve_expect(&f, line, "", 200, "\"name\":\"b\"", NULL);
    close(watches);
    serve_teardown(&f);
}

static void a_stop_answers_who_waits(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct served_answer answer;
    struct serve_fixture f;
    int waits, watches;

    (void)state;
    serve_setup_whole(&f);
    waits = serve_send_request(&f, "GET " OBJECTS "?resourceVersion=100000", "");
    watches = serve_send_request(&f, "GET " OBJECTS "?watch=1", "");
    assert_true(served_fake_read(watches, "\"name\":\"b\"", &text));
    serve_wait_until_under_way(&f, 2);
    served_fake_stop(&f.served);
    answer = served_fake_answer(waits);
    serve_expect_answer(&answer, "who waits", 503,
                        "this cache is going away\n"
                        "ServiceUnavailable\n"
                        "Retry-After: 1",
                        NULL);
    assert_true(served_fake_read(watches, "\r\n0\r\n", &text));
    close(watches);
    serve_teardown(&f);
}

/* --- bodies --- */

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len != 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        assert_true(n > 0);
        bytes += n;
        len -= (size_t)n;
    }
}

/* A ConfigMap of this name, whose value is long. */
static void append_large(struct kinf__buffer *body, const char *name)
{
    assert_int_equal(
        kinf__buffer_printf(
            body,
            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\"},"
            "\"data\":{\"value\":\"",
            name),
        0);
    for (size_t i = 0; i < LARGE; i++)
        assert_int_equal(kinf__buffer_append(body, "x", 1), 0);
    assert_int_equal(kinf__buffer_append_str(body, KINF_STR("\"}}")), 0);
}

static void expect_large(struct serve_fixture *f, const char *key)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    char *value = malloc(LARGE + 2);

    assert_non_null(value);
    assert_int_equal(kinf_fake_get(f->fake, "configmaps", key, &object, &err), 0);
    assert_int_equal(kinf_object_get_string(object, "data.value", value, LARGE + 2), 0);
    assert_int_equal(strspn(value, "x"), LARGE);
    assert_int_equal(strlen(value), LARGE);
    free(value);
}

static void long_bodies_go_through_whole(void **state)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    struct served_answer answer;
    struct serve_fixture f;
    char length[128];
    int fd;

    (void)state;
    serve_setup_whole(&f);
    append_large(&body, "whole");
    snprintf(length, sizeof length,
             TOKEN "Content-Type: application/json\r\nContent-Length: %zu\r\n", body.len);
    fd = serve_send_request(&f, "POST " OBJECTS, length);
    send_all(fd, body.bytes, body.len);
    answer = served_fake_answer(fd);
    serve_expect_answer(&answer, "a long body", 201, "upstream", NULL);
    expect_large(&f, "default/whole");

    body.len = 0;
    append_large(&body, "chunks");
    fd = serve_send_request(&f, "POST " OBJECTS,
                            TOKEN
                            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n");
    for (size_t at = 0; at < body.len; at += 50000) {
        size_t len = body.len - at < 50000 ? body.len - at : 50000;
        char line[32];

        send_all(fd, line, (size_t)snprintf(line, sizeof line, "%zx\r\n", len));
        send_all(fd, body.bytes + at, len);
        send_all(fd, "\r\n", 2);
    }
    send_all(fd, "0\r\n\r\n", 5);
    answer = served_fake_answer(fd);
    serve_expect_answer(&answer, "chunks", 201, "upstream", NULL);
    expect_large(&f, "default/chunks");
    /* And it is read back, from where it is held. */
    swept_fake_settle(f.fake);
    serve_expect(&f, "GET " OBJECTS "/chunks", "", 200, "xxxxxxxx\"}", NULL);
    serve_teardown(&f);
}

static void who_asks_before_a_body_is_told(void **state)
{
    static const char body[] =
        "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"e\"}}";
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct served_answer answer;
    struct serve_fixture f;
    char headers[256];
    int fd;

    (void)state;
    serve_setup_whole(&f);
    snprintf(headers, sizeof headers,
             "Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n",
             sizeof body - 1);
    serve_expect(&f, "POST " OBJECTS, headers, 401, "token", "100 Continue");
    strcat(headers, TOKEN);
    fd = serve_send_request(&f, "POST " OBJECTS, headers);
    assert_true(served_fake_read(fd, "HTTP/1.1 100 Continue\r\n\r\n", &text));
    send_all(fd, body, sizeof body - 1);
    answer = served_fake_answer(fd);
    serve_expect_answer(&answer, "a body that was asked for", 201, "\"name\":\"e\"", NULL);
    serve_teardown(&f);
}

/* --- who takes nothing --- */

#define PATIENCE_MS 2000

/* Of the source, or of the server with its endpoint. */
struct ending {
    struct serve_fixture *f;
    bool is_stop;
    int64_t took_ms; /* on the clock that is simulated */
    atomic_bool is_over;
};

static void *run_ending(void *ctx)
{
    struct ending *ending = ctx;
    struct served_fake *served = &ending->f->served;
    int64_t begun_ms = kinf__clock_now_ms();

    if (ending->is_stop)
        kinf__server_stop(served->server);
    else
        kinf__server_retire_source(served->server, served->sources[0].source);
    ending->took_ms = kinf__clock_now_ms() - begun_ms;
    atomic_store(&ending->is_over, true);
    return NULL;
}

static void put_large(const struct serve_fixture *f, const char *name)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    append_large(&body, name);
    assert_int_equal(kinf_fake_put(f->fake, kinf__buffer_cstr(&body), &err), 0);
}

/* Sets up, and asks for a list that is too long to be sent at once; nothing behind its head is read. */
static int set_up_listing(struct serve_fixture *f, struct kinf__buffer *text)
{
    int fd;

    serve_setup_whole(f);
    put_large(f, "x");
    put_large(f, "y");
    put_large(f, "z");
    swept_fake_settle(f->fake);
    fd = serve_send_request(f, "GET " OBJECTS, "");
    assert_true(served_fake_read(fd, "\"items\":[", text));
    return fd;
}

/* It holds a version of the store. A client that is slow for less is not touched. */
static void who_takes_nothing_is_cut_off_two_seconds_after_the_end(void **state)
{
    (void)state;
    for (int is_stop = 0; is_stop < 2; is_stop++) {
        struct serve_fixture f;
        struct ending ending = { .f = &f, .is_stop = is_stop };
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
        pthread_t thread;
        int fd;

        fd = set_up_listing(&f, &text);
        assert_int_equal(pthread_create(&thread, NULL, run_ending, &ending), 0);
        while (!atomic_load(&ending.is_over)) {
            kinf_fake_advance(f.fake, 100);
            usleep(1000);
        }
        pthread_join(thread, NULL);
        assert_true(ending.took_ms >= PATIENCE_MS);
        assert_false(served_fake_read(fd, "]}\n", &text));
        close(fd);
        if (!is_stop) {
            assert_int_equal(kinf_informer_stop(f.served.sources[0].informer, NULL), 0);
            kinf__source_free(KINF__TAKE(f.served.sources[0].source));
        }
        serve_teardown(&f);
    }
}

/* However often it takes a little: kube-apiserver gives it as long. */
static void a_list_that_is_read_too_slowly_is_cut_off(void **state)
{
    struct serve_fixture f;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    int fd;

    (void)state;
    fd = set_up_listing(&f, &text);
    kinf_fake_advance(f.fake, 59000);
    usleep(20000);
    assert_int_equal(serve_n_under_way(&f), 1);
    kinf_fake_advance(f.fake, 1000);
    serve_wait_until_under_way(&f, 0);
    assert_false(served_fake_read(fd, "]}\n", &text));
    serve_expect(&f, "GET /metrics", "", 200, "kinformer_lists_cut_off_total 1\n", NULL);
    /* One that was read in time leaves nothing behind. */
    serve_expect(&f, "GET " OBJECTS, "", 200, "\"items\":[", NULL);
    kinf_fake_advance(f.fake, 61000);
    serve_expect(&f, "GET /metrics", "", 200, "kinformer_lists_cut_off_total 1\n", NULL);
    close(fd);
    serve_teardown(&f);
}

/* What it is told first is of a version of the store, too. */
static void a_watch_that_is_read_too_slowly_is_cut_off_behind_its_end(void **state)
{
    struct serve_fixture f;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    int fd;

    (void)state;
    serve_setup_whole(&f);
    put_large(&f, "x");
    put_large(&f, "y");
    put_large(&f, "z");
    swept_fake_settle(f.fake);
    fd = serve_send_request(&f, "GET " OBJECTS "?watch=1&timeoutSeconds=5", "");
    assert_true(served_fake_read(fd, "\"ADDED\"", &text));
    kinf_fake_advance(f.fake, 5000);
    usleep(300000);
    kinf_fake_advance(f.fake, 59000);
    usleep(300000);
    assert_int_equal(serve_n_under_way(&f), 1);
    kinf_fake_advance(f.fake, 2000);
    serve_wait_until_under_way(&f, 0);
    close(fd);
    serve_teardown(&f);
}

/* --- another protocol --- */

/* Played by the test: nothing of what it sends is told by how it is encoded. */
static void a_body_whose_encoding_cannot_be_told_is_not_sent(void **state)
{
    static const struct {
        const char *encoding;
        int status; /* 0: cut */
    } rows[] = { { "gzip", 200 }, { "", 200 }, { "gz\rip", 0 } };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        KINF__AUTO_BUFFER head = KINF__BUFFER_INIT;
        struct kinf_error err = KINF_ERROR_INIT;
        struct served_answer answer;
        struct served_fake served;
        struct kinf_client *client;
        char text[256];
        unsigned port;
        int listener = test_listen(4, &port), upstream, fd;

        client = test_client_of(port, NULL);
        assert_int_equal(served_fake_start(&served, client, true, NULL, NULL, &err), 0);
        fd = served_fake_send(&served, "GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: "
                                       "close\r\n" TOKEN "\r\n");
        upstream = accept(listener, NULL, NULL);
        assert_true(served_fake_read(upstream, "\r\n\r\n", &head));
        send_all(upstream, text,
                 (size_t)snprintf(text, sizeof text,
                                  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                                  "Content-Encoding: %s\r\n\r\nab",
                                  rows[i].encoding));
        answer = served_fake_answer(fd);
        assert_int_equal(answer.status, rows[i].status);
        served_answer_release(&answer);
        close(upstream);
        close(listener);
        served_fake_end(&served);
        kinf_client_free(client);
    }
}

static void what_changes_its_protocol_is_carried_both_ways(void **state)
{
    static const char request[] =
        "POST /api/v1/namespaces/default/pods/p/exec?command=sh HTTP/1.1\r\nHost: "
        "localhost\r\n" TOKEN "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
    static const char upgrade[] =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nfirst";
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER head = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct served_fake served;
    struct kinf_client *client;
    unsigned port;
    int listener = test_listen(4, &port), upstream, fd;

    (void)state;
    client = test_client_of(port, NULL);
    assert_int_equal(served_fake_start(&served, client, true, NULL, NULL, &err), 0);
    fd = served_fake_send(&served, request);
    upstream = accept(listener, NULL, NULL);
    assert_true(served_fake_read(upstream, "\r\n\r\n", &head));
    assert_non_null(strstr(head.bytes, "Upgrade: SPDY/3.1"));
    assert_non_null(strstr(head.bytes, "Authorization: Bearer t"));
    send_all(upstream, upgrade, sizeof upgrade - 1);
    assert_true(served_fake_read(fd, "first", &text));
    assert_non_null(strstr(text.bytes, "HTTP/1.1 101 "));
    assert_non_null(strstr(text.bytes, "Upgrade: SPDY/3.1\r\n"));
    assert_non_null(strstr(text.bytes, "Kinformer-Source: upstream\r\n"));
    send_all(fd, "up", 2);
    assert_true(served_fake_read(upstream, "up", &head));
    send_all(upstream, "down", 4);
    assert_true(served_fake_read(fd, "down", &text));
    close(upstream);
    assert_false(served_fake_read(fd, "more", &text));
    close(fd);
    close(listener);
    served_fake_end(&served);
    kinf_client_free(client);
}

/* --- the log --- */

static void each_request_is_a_line_of_the_log(void **state)
{
    static const struct {
        const char *line, *headers, *told;
    } rows[] = {
        { "GET " OBJECTS "/a", "",
          "\"verb\":\"get\",\"target\":\"" OBJECTS
          "/a\",\"code\":200,\"source\":\"cache\",\"ms\":" },
        { "GET " OBJECTS "?limit=1&continue=x&password=y&labelSelector=z", "",
          "\"verb\":\"list\",\"target\":\"" OBJECTS
          "?limit=1\\u0026continue=...\\u0026labelSelector=z\",\"code\":400," },
        { "GET /api/v1/secrets", TOKEN,
          "\"verb\":\"list\",\"target\":\"/api/v1/"
          "secrets\",\"code\":200,\"source\":\"upstream\"," },
        { "GET /version", "", "\"target\":\"/version\",\"code\":200,\"source\":\"self\"," },
        { "GET /api/v1/namespaces/x/services/y/proxy/secret", "",
          "\"target\":\"/api/v1/namespaces/x/services/y/proxy/\"," },
        { "GET http://user:password@host/version", "", "\"target\":\"\"," },
    };
    struct serve_fixture f;

    (void)state;
    serve_setup_whole(&f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct served_answer answer =
            served_fake_answer(serve_send_request(&f, rows[i].line, rows[i].headers));

        served_answer_release(&answer);
        serve_wait_until_logged(&f, rows[i].told);
    }
    assert_int_equal(memcmp(f.log.text.bytes, "{\"time\":\"", 9), 0);
    assert_non_null(strstr(f.log.text.bytes, "\"client\":\"unix uid="));
    assert_null(strstr(f.log.text.bytes, "password"));
    assert_null(strstr(f.log.text.bytes, "proxy/secret"));
    serve_teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_to_come_is_waited_for_until_it_comes),
        cmocka_unit_test(a_version_that_comes_is_answered_with),
        cmocka_unit_test(a_source_that_is_withdrawn_answers_who_waits),
        cmocka_unit_test(whoever_hangs_up_is_not_waited_for),
        cmocka_unit_test(a_watch_tells_what_comes_and_ends_in_time),
        cmocka_unit_test(who_sleeps_has_given_up_its_turn),
        cmocka_unit_test(a_stop_answers_who_waits),
        cmocka_unit_test(long_bodies_go_through_whole),
        cmocka_unit_test(who_asks_before_a_body_is_told),
        cmocka_unit_test(who_takes_nothing_is_cut_off_two_seconds_after_the_end),
        cmocka_unit_test(a_list_that_is_read_too_slowly_is_cut_off),
        cmocka_unit_test(a_watch_that_is_read_too_slowly_is_cut_off_behind_its_end),
        cmocka_unit_test(a_body_whose_encoding_cannot_be_told_is_not_sent),
        cmocka_unit_test(what_changes_its_protocol_is_carried_both_ways),
        cmocka_unit_test(each_request_is_a_line_of_the_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
