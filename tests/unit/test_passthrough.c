/*
 * Which headers and targets go on to the API server, and what comes back.
 */
#include "serve/passthrough.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/exchange_priv.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define PATIENCE_MS 60000

static void headers_go_on_only_if_they_are_known(void **state)
{
    static const char *const sent[] = {
        "Accept",          "accept-encoding",  "AUTHORIZATION",
        "Content-Type",    "User-Agent",       "If-None-Match",
        "Audit-ID",        "Impersonate-User", "Impersonate-Extra-a",
        "Kubectl-Command", "Traceparent"
    };
    static const char *const kept[] = { "X-Remote-User",
                                        "X-Remote-Group",
                                        "X-Remote-Extra-a",
                                        "Connection",
                                        "Keep-Alive",
                                        "Upgrade",
                                        "Transfer-Encoding",
                                        "TE",
                                        "Trailer",
                                        "Content-Length",
                                        "Host",
                                        "Expect",
                                        "Cookie",
                                        "X-Forwarded-For",
                                        "Forwarded",
                                        "Proxy-Connection",
                                        "Proxy-Authorization",
                                        "Range" };

    (void)state;
    assert_true(kinf__passthrough_names_protocol("upgrade"));
    assert_true(kinf__passthrough_names_protocol("Sec-WebSocket-Key"));
    assert_false(kinf__passthrough_names_protocol("Connection"));
    assert_false(kinf__passthrough_names_protocol("X-Remote-User"));
    for (size_t i = 0; i < KINF__ARRAY_LEN(sent); i++)
        assert_true(kinf__passthrough_sends(sent[i]));
    for (size_t i = 0; i < KINF__ARRAY_LEN(kept); i++)
        assert_false(kinf__passthrough_sends(kept[i]));
}

static void answers_bring_what_describes_them(void **state)
{
    static const struct {
        struct kinf__header header;
        bool is_returned;
    } cases[] = {
        { { "Content-Type", "application/json" }, true },
        { { "content-encoding", "gzip" }, true },
        { { "ETag", "\"x\"" }, true },
        { { "Audit-Id", "x" }, true },
        { { "Retry-After", "1" }, true },
        { { "Warning", "299 - \"x\"" }, true },
        { { "Location", "/openapi/v3?hash=x" }, true },
        { { "Location", "https://elsewhere/" }, false },
        { { "Location", "//elsewhere/" }, false },
        /* Browsers read these as the one before. */
        { { "Location", "/\\elsewhere/" }, false },
        { { "Location", "/\t/elsewhere/" }, false },
        { { "Connection", "close" }, false },
        { { "Transfer-Encoding", "chunked" }, false },
        { { "Content-Length", "5" }, false },
        { { "Set-Cookie", "x" }, false },
        { { "Date", "x" }, false },
        { { "Strict-Transport-Security", "x" }, false },
        { { "Kinformer-Staleness-Seconds", "0" }, false },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++)
        assert_int_equal(kinf__passthrough_returns(&cases[i].header), cases[i].is_returned);
}

static void targets_that_can_be_read_in_two_ways_stay_here(void **state)
{
    static const struct kinf_str strange[] = {
        { "/a#b", 4 }, { "/a b", 4 }, { "/a\tb", 4 }, { "/a\\b", 4 }, { "/a\x80", 3 }, { "", 0 },
    };

    (void)state;
    assert_true(kinf__passthrough_is_plain(
        "PUT", KINF_STR("/apis/g/v/things/a:b?fieldSelector=a!%3Db,c=(d)&x=~'*+@;$-._//")));
    for (size_t i = 0; i < KINF__ARRAY_LEN(strange); i++)
        assert_false(kinf__passthrough_is_plain("GET", strange[i]));
    /* Proxies merge slashes: what is another path here would be a resource there. */
    assert_true(kinf__passthrough_is_plain("GET", KINF_STR("//api/v1")));
    assert_false(kinf__passthrough_is_plain("PUT", KINF_STR("//api/v1")));
    assert_false(kinf__passthrough_is_plain("DELETE", KINF_STR("/api/v1//pods?a")));
}

static void wake(void *ctx)
{
    kinf__waker_set(ctx);
}

/* Others read it while it is passed on (kinf__server_publish_source()). */
static void a_request_stays_what_it_was_when_it_changes_its_protocol(void **state)
{
    static const struct kinf__header headers[] = { { "Authorization", "Bearer x" },
                                                   { "Upgrade", "websocket" } };
    static const char granted[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
    struct kinf__request_head head = kinf__request_head_of("GET", KINF_STR("/api/v1/pods?watch=1"),
                                                           headers, KINF__ARRAY_LEN(headers));
    struct kinf__waker woken;
    const struct kinf__exchange_owner owner = { .wake = wake, .ctx = &woken };
    struct kinf__server_options options = { 0 };
    struct kinf__exchange *exchange;
    const struct kinf__answer *answer;
    struct kinf_client *client;
    struct kinf__server *server;
    unsigned port;
    int listener = test_listen(1, &port), fd;

    (void)state;
    client = test_client_of(port, NULL);
    assert_int_equal(kinf__waker_init(&woken, NULL), 0);
    assert_int_equal(kinf__forwarder_new(client, &(struct kinf__forwarder_options){ 0 },
                                         &options.forwarder, NULL),
                     0);
    assert_int_equal(kinf__server_new(&options, &server, NULL), 0);
    exchange = kinf__exchange_new(server, &owner, &head, NULL);
    assert_null(kinf__exchange_step(exchange));
    fd = accept(listener, NULL, NULL);
    assert_int_equal(send(fd, granted, sizeof granted - 1, MSG_NOSIGNAL), sizeof granted - 1);
    while ((answer = kinf__exchange_step(exchange)) == NULL) {
        assert_true(kinf__waker_wait(&woken, PATIENCE_MS));
        kinf__waker_clear(&woken);
    }
    assert_int_equal(answer->code, 101);
    assert_int_equal(exchange->request.verb, KINF__VERB_WATCH);
    kinf__exchange_free(exchange);
    kinf__server_stop(server);
    kinf__server_free(server);
    kinf__forwarder_free(options.forwarder);
    kinf_client_free(client);
    kinf__waker_release(&woken);
    close(fd);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_go_on_only_if_they_are_known),
        cmocka_unit_test(answers_bring_what_describes_them),
        cmocka_unit_test(a_request_stays_what_it_was_when_it_changes_its_protocol),
        cmocka_unit_test(targets_that_can_be_read_in_two_ways_stay_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
