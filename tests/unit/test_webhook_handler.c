/*
 * Handlers behind a URL: what is posted there, what of it again, and how it ends. The receiver is the
 * scripted server; pauses are leaps of simulated time.
 */
#include "handlers/webhook_handler.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kinformer/log.h>

#include "base/clock.h"
#include "handlers/outbox.h"
#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/outbox_fixture.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define PATIENCE_MS 60000 /* of real time */
#define AN_HOUR_MS  3600000
#define LEAP_MS     10000
#define STOP_MS     5000 /* at most, on a busy machine */
#define N_MANY      2500
#define LONG_ANSWER 3000000

struct fixture {
    struct replay *server;
    struct kinf__handler *handler;
    struct kinf__outbox_feed *feed;
    char url[64];
    struct kinf__webhook_options options;
    bool has_terms; /* of which `leads` tells */
    int64_t term;
};

static _Atomic(bool) leads;

static int begin(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    kinf__clock_begin_simulation();
    f->options.timeout_ms = AN_HOUR_MS;
    *state = f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    if (f->handler != NULL)
        kinf__handler_stop(f->handler);
    kinf__outbox_feed_free(f->feed);
    kinf__handler_free(f->handler);
    replay_stop(f->server);
    kinf__clock_end_simulation();
    free(f);
    return 0;
}

static bool may_tell(void *ctx)
{
    (void)ctx;
    return atomic_load(&leads);
}

/* A handler that posts to this port; nothing waits but RESET. */
static void start_at(struct fixture *f, const char *scheme, unsigned port)
{
    struct kinf_error err = KINF_ERROR_INIT;

    snprintf(f->url, sizeof f->url, "%s://127.0.0.1:%u/hook?key=secret", scheme, port);
    f->options.site.url = f->url;
    if (kinf__webhook_handler_new(&f->options, &f->handler, &err) < 0)
        fail_msg("%s", err.message);
    f->handler->may_tell = f->has_terms ? may_tell : NULL;
    if (f->has_terms)
        kinf__handler_set_term(f->handler, "watchers-0", f->term);
    if (kinf__handler_start(f->handler, &err) < 0)
        fail_msg("%s", err.message);
    f->feed = outbox_open_feed(&f->handler->outbox, "things");
}

#define START(f, replies)                                                                          \
    do {                                                                                           \
        (f)->server = test_server_start((replies), KINF__ARRAY_LEN(replies));                      \
        start_at((f), "http", replay_port((f)->server));                                           \
    } while (0)

static void put_text(struct fixture *f, const char *name, const char *version, const char *text)
{
    const struct kinf_object *object = make_thing_of(name, name, version, text);

    kinf__outbox_feed_put(f->feed, NULL, object, false);
    kinf_object_unref(object);
}

static void put(struct fixture *f, const char *name, const char *version)
{
    put_text(f, name, version, "x");
}

static void put_many(struct fixture *f, size_t n)
{
    char name[32];

    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "thing-%zu", i);
        put(f, name, "1");
    }
}

static void delete (struct fixture *f, const char *name)
{
    const struct kinf_object *object = make_thing_of(name, name, "9", "x");

    kinf__outbox_feed_delete(f->feed, object, false);
    kinf_object_unref(object);
}

static void nap(void)
{
    const struct timespec moment = { .tv_nsec = 10000000 };

    nanosleep(&moment, NULL);
}

static int64_t real_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct kinf__handler_status status_of(const struct fixture *f)
{
    struct kinf__handler_status status;

    kinf__handler_status(f->handler, &status);
    return status;
}

/* Pauses are leapt over. */
static void wait_a_bit(const struct fixture *f, int64_t deadline_ms)
{
    if (real_ms() > deadline_ms)
        fail_msg("requests: %zu, last error: %s", replay_n_requests(f->server),
                 status_of(f).last_error.message);
    nap();
    if (!status_of(f).is_running)
        kinf__clock_advance(LEAP_MS);
}

static const struct replay_request *request(const struct fixture *f, size_t i)
{
    int64_t deadline_ms = real_ms() + PATIENCE_MS;

    while (replay_n_requests(f->server) <= i)
        wait_a_bit(f, deadline_ms);
    return replay_wait_request(f->server, i, 0);
}

static void wait_taken(const struct fixture *f)
{
    int64_t deadline_ms = real_ms() + PATIENCE_MS;
    struct kinf__outbox_status status;

    do {
        wait_a_bit(f, deadline_ms);
        kinf__outbox_status(&f->handler->outbox, &status);
    } while (!status_of(f).is_running || status.n_waiting != 0 || status.n_unacknowledged != 0);
}

static const char *body(const struct fixture *f, size_t i)
{
    return request(f, i)->body;
}

/* Of Kinformer-Sequence; checks that the body has these lines. */
static void numbers(const struct fixture *f, size_t i, unsigned *ret_first, unsigned *ret_last)
{
    char value[64], wanted[32];
    const char *line = body(f, i);

    assert_true(replay_request_header(request(f, i), "Kinformer-Sequence", value, sizeof value));
    assert_int_equal(sscanf(value, "%u-%u", ret_first, ret_last), 2);
    for (unsigned n = *ret_first; n <= *ret_last; n++) {
        assert_int_equal(strncmp(line, "{\"type\":\"", 9), 0);
        snprintf(wanted, sizeof wanted, ",\"seq\":%u", n);
        line = strstr(line, wanted);
        assert_non_null(line);
        line = strchr(line, '\n') + 1;
    }
    assert_string_equal(line, "");
}

static void wait_for_errors(const struct fixture *f, uint64_t n)
{
    int64_t deadline_ms = real_ms() + PATIENCE_MS;

    while (status_of(f).n_errors < n) {
        if (real_ms() > deadline_ms)
            fail_msg("%llu errors", (unsigned long long)status_of(f).n_errors);
        nap();
    }
}

static void assert_says(const struct fixture *f, const char *words)
{
    struct kinf__handler_status status = status_of(f);

    if (strstr(status.last_error.message, words) == NULL)
        fail_msg("'%s' does not say '%s'", status.last_error.message, words);
    assert_true(status.last_error.at_ms > 0);
    assert_null(strstr(status.last_error.message, "secret"));
}

static void assert_stops_at_once(const struct fixture *f)
{
    int64_t began_ms = real_ms();

    kinf__handler_stop(f->handler);
    assert_true(real_ms() - began_ms < STOP_MS);
    assert_false(status_of(f).is_running);
}

/* A request that is under way is given up. */
static void one_that_was_halted_posts_all_when_it_is_started_again(void **state)
{
    static const struct test_reply replies[] = {
        { .is_held = true }, { NULL }, { NULL }, { NULL }
    };
    struct fixture *f = *state;
    int64_t began_ms;

    START(f, replies);
    put(f, "a", "1");
    (void)body(f, 0);
    began_ms = real_ms();
    kinf__handler_halt(f->handler);
    assert_true(kinf__handler_join(f->handler));
    assert_true(real_ms() - began_ms < STOP_MS);
    assert_false(status_of(f).is_running);
    test_server_let_go(f->server);
    put(f, "b", "1");
    nap();
    assert_int_equal(replay_n_requests(f->server), 1);
    assert_int_equal(kinf__handler_start(f->handler, NULL), 0);
    assert_int_equal(strncmp(body(f, 1), "{\"type\":\"RESET\"", 15), 0);
    wait_taken(f);
    assert_true(status_of(f).outbox.n_told >= 4);
}

/* As a process that was halted finds it, before anybody has halted the handler. */
static void one_whose_term_is_over_posts_nothing_more(void **state)
{
    static const struct test_reply replies[] = { { .is_held = true }, { NULL }, { NULL } };
    struct fixture *f = *state;
    char term[64];

    f->has_terms = true;
    f->term = 7;
    atomic_store(&leads, true);
    START(f, replies);
    (void)body(f, 0);
    assert_true(replay_request_header(request(f, 0), "Kinformer-Term", term, sizeof term));
    assert_string_equal(term, "7");
    assert_true(replay_request_header(request(f, 0), "Kinformer-Lease", term, sizeof term));
    assert_string_equal(term, "watchers-0");
    put(f, "a", "1");
    atomic_store(&leads, false);
    test_server_let_go(f->server);
    while (status_of(f).outbox.n_unacknowledged != 0)
        nap();
    for (int i = 0; i < 10; i++)
        nap();
    assert_int_equal(replay_n_requests(f->server), 1);
    assert_false(status_of(f).is_running);
    atomic_store(&leads, true);
    assert_int_equal(strncmp(body(f, 1), "{\"type\":\"RESET\"", 15), 0);
    wait_taken(f);
    assert_int_equal(status_of(f).n_errors, 0);
}

/* --- what is posted --- */

static void changes_are_posted_in_order_and_counted_off(void **state)
{
    static const struct test_reply replies[] = {
        { .is_held = true }, { NULL }, { NULL }, { NULL }
    };
    struct fixture *f = *state;
    char run[64], again[64], type[64];
    unsigned first, last, next;

    START(f, replies);
    assert_string_equal(body(f, 0), "{\"type\":\"RESET\",\"seq\":1}\n");
    put(f, "a", "1");
    put(f, "b", "1");
    kinf__outbox_feed_synced(f->feed);
    put(f, "a", "2"); /* in the place of the first */
    test_server_let_go(f->server);
    assert_non_null(strstr(body(f, 1), "\"key\":\"ns/a\",\"resourceVersion\":\"2\""));
    assert_non_null(
        strstr(body(f, 1), "{\"type\":\"SYNCED\",\"resource\":\"things\",\"seq\":4}\n"));
    wait_taken(f);
    delete (f, "b");
    assert_non_null(
        strstr(body(f, 2), "{\"type\":\"DELETED\",\"resource\":\"things\",\"key\":\"ns/b\""));
    wait_taken(f);
    numbers(f, 0, &first, &last);
    assert_int_equal(first, 1);
    for (size_t i = 1; i < 3; i++) {
        numbers(f, i, &next, &last);
        assert_true(next == first + (i == 1 ? 1 : 3));
        first = next;
    }
    assert_true(replay_request_header(request(f, 0), "Kinformer-Run", run, sizeof run));
    assert_true(replay_request_header(request(f, 2), "Kinformer-Run", again, sizeof again));
    assert_string_equal(run, again);
    assert_int_equal(strlen(run), 16);
    assert_false(replay_request_header(request(f, 0), "Kinformer-Term", run, sizeof run));
    assert_true(replay_request_header(request(f, 0), "Content-Type", type, sizeof type));
    assert_string_equal(type, "application/x-ndjson");
    assert_string_equal(request(f, 0)->line, "POST /hook?key=secret HTTP/1.1");
    assert_int_equal(request(f, 0)->connection, request(f, 2)->connection);
    assert_string_equal(f->handler->name + strlen(f->handler->name) - 5, "/hook");
    assert_true(status_of(f).is_running);
    assert_int_equal(status_of(f).n_errors, 0);
    assert_true(kinf__outbox_check(&f->handler->outbox));
    assert_stops_at_once(f);
}

static void two_runs_have_different_names(void **state)
{
    static const struct test_reply replies[] = { { NULL }, { NULL } };
    struct fixture *f = *state;
    char run[64], again[64];

    START(f, replies);
    wait_taken(f);
    kinf__handler_stop(f->handler);
    kinf__outbox_feed_free(f->feed);
    kinf__handler_free(f->handler);
    start_at(f, "http", replay_port(f->server));
    wait_taken(f);
    assert_true(replay_request_header(request(f, 0), "Kinformer-Run", run, sizeof run));
    assert_true(replay_request_header(request(f, 1), "Kinformer-Run", again, sizeof again));
    assert_string_not_equal(run, again);
}

/* Posts many while the first request is held. `n_bytes` is the bound. */
static void assert_bounded(struct fixture *f, size_t n_bytes)
{
    struct test_reply replies[N_MANY] = { { .is_held = true } };
    unsigned first, last, expected = 1;
    size_t n_requests;

    f->options.max_batch_bytes = n_bytes;
    START(f, replies);
    (void)request(f, 0);
    put_many(f, N_MANY);
    test_server_let_go(f->server);
    wait_taken(f);
    n_requests = replay_n_requests(f->server);
    assert_in_range(n_requests, 3, N_MANY);
    for (size_t i = 0; i < n_requests; i++) {
        numbers(f, i, &first, &last);
        assert_int_equal(first, expected);
        assert_in_range(last - first, 0, KINF__OUTBOX_WINDOW - 1);
        assert_true(strlen(body(f, i)) <= n_bytes || last == first);
        expected = last + 1;
    }
    assert_int_equal(expected, N_MANY + 2);
}

static void batches_have_bounded_lines(void **state)
{
    assert_bounded(*state, 0x7fffffff);
}

static void batches_have_bounded_bytes(void **state)
{
    assert_bounded(*state, 5000);
}

static void one_line_may_be_longer(void **state)
{
    static const struct test_reply replies[] = { { NULL }, { NULL }, { NULL } };
    struct fixture *f = *state;

    f->options.max_batch_bytes = 20;
    START(f, replies);
    wait_taken(f);
    put(f, "a", "1");
    wait_taken(f);
    assert_true(strlen(body(f, 1)) > 20);
}

static void a_long_answer_is_passed_over(void **state)
{
    KINF__AUTO_FREE char *text = calloc(1, LONG_ANSWER + 1);
    struct fixture *f = *state;

    assert_non_null(text);
    memset(text, 'x', LONG_ANSWER);
    START(f, ((const struct test_reply[]){ { .body = text }, { NULL } }));
    wait_taken(f);
    put(f, "a", "1");
    wait_taken(f);
    assert_int_equal(status_of(f).n_errors, 0);
    assert_int_equal(request(f, 0)->connection, request(f, 1)->connection);
}

static void loopback_is_reached_without_a_proxy(void **state)
{
    static const struct test_reply replies[] = { { NULL } };
    struct fixture *f = *state;

    setenv("http_proxy", "http://127.0.0.1:1", 1);
    START(f, replies);
    wait_taken(f);
    unsetenv("http_proxy");
    assert_int_equal(status_of(f).n_errors, 0);
}

static _Atomic(unsigned) n_logged, n_secrets;

static void look_for_secrets(enum kinf_log_level level, const char *module, const char *line,
                             void *ctx)
{
    (void)level;
    (void)module;
    (void)ctx;
    atomic_fetch_add(&n_logged, strstr(line, "POST /hook") != NULL);
    atomic_fetch_add(&n_secrets, strstr(line, "secret") != NULL);
}

/* Not even where everything is logged. */
static void what_is_behind_the_question_mark_is_not_logged(void **state)
{
    static const struct test_reply replies[] = { { .status = "500 Internal Server Error" },
                                                 { NULL } };
    struct fixture *f = *state;

    kinf_log_set_callback(look_for_secrets, NULL);
    assert_int_equal(kinf_log_set_levels("debug", NULL), 0);
    START(f, replies);
    wait_taken(f);
    kinf__handler_stop(f->handler);
    assert_int_equal(kinf_log_set_levels("info", NULL), 0);
    kinf_log_set_callback(NULL, NULL);
    assert_string_equal(request(f, 1)->line, "POST /hook?key=secret HTTP/1.1");
    assert_int_equal(atomic_load(&n_logged), 2);
    assert_int_equal(atomic_load(&n_secrets), 0);
}

/* --- what is posted again --- */

static void a_failed_batch_is_posted_again_as_it_was(void **state)
{
    static const struct test_reply replies[] = {
        { .is_held = true },
        { .status = "503 Service Unavailable", .body = "later, please" },
        { .status = "429 Too Many Requests", .body = "slow\ndown" },
        { .status = "408 Request Timeout" },
        { .status = "500 Internal Server Error" },
        { .body = "cut short", .end = TEST_END_CUT },
        { .raw = "HTTP/1.1 200 OK\r\nContent-Le", .raw_len = 26, .end = TEST_END_CUT },
        { .raw = "garbage\r\n\r\n", .raw_len = 11, .end = TEST_END_CUT },
        { .status = "401 Unauthorized", .body = "{\"status\":\"Failure\",\"message\":\"who?\"}" },
        { NULL },
        { NULL },
    };
    const size_t n_last = KINF__ARRAY_LEN(replies) - 2;
    struct fixture *f = *state;
    char numbers_then[64], numbers_now[64], run_then[64], run_now[64];

    START(f, replies);
    (void)request(f, 0);
    put_many(f, 10);
    test_server_let_go(f->server);
    for (size_t i = 2; i <= n_last; i++) {
        assert_string_equal(body(f, i), body(f, 1));
        replay_request_header(request(f, 1), "Kinformer-Sequence", numbers_then, 64);
        replay_request_header(request(f, i), "Kinformer-Sequence", numbers_now, 64);
        assert_string_equal(numbers_now, numbers_then);
        replay_request_header(request(f, 1), "Kinformer-Run", run_then, 64);
        replay_request_header(request(f, i), "Kinformer-Run", run_now, 64);
        assert_string_equal(run_now, run_then);
        if (i == 2)
            put(f, "thing-3", "7"); /* what is newer waits */
    }
    wait_taken(f);
    assert_non_null(strstr(body(f, n_last + 1), "ns/thing-3\",\"resourceVersion\":\"7\""));
    assert_int_equal(status_of(f).n_errors, n_last - 1);
    assert_int_equal(status_of(f).n_starts, 1);
    assert_says(f, "answered 401: who?");
}

static void the_first_line_of_an_answer_is_kept(void **state)
{
    static const struct test_reply replies[] = { { .status = "503 Service Unavailable",
                                                   .body = "no disk\nand more" } };
    struct fixture *f = *state;

    START(f, replies);
    wait_for_errors(f, 1);
    assert_says(f, "changes 1 to 1: server 127.0.0.1:");
    assert_says(f, "answered 503: no disk");
    assert_null(strstr(status_of(f).last_error.message, "more"));
    assert_false(status_of(f).is_running);
}

static void assert_waits(struct fixture *f, int64_t at_least_ms, int64_t less_than_ms)
{
    int64_t waited_ms = request(f, 1)->at_ms - request(f, 0)->at_ms;

    assert_in_range(waited_ms, at_least_ms, less_than_ms - 1);
}

static void retry_after_is_obeyed(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "429 Too Many Requests", .headers = "Retry-After: 120\r\n" }, { NULL }
    };

    START((struct fixture *)*state, replies);
    assert_waits(*state, 120000, 200000);
}

static void nobody_is_believed_to_want_an_hour(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "503 Service Unavailable", .headers = "Retry-After: 3600\r\n" }, { NULL }
    };

    START((struct fixture *)*state, replies);
    assert_waits(*state, 300000, 400000);
}

static void a_mistake_is_posted_again_slowly(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "400 Bad Request", .body = "I do not know SYNCED" }, { NULL }
    };
    struct fixture *f = *state;

    START(f, replies);
    wait_for_errors(f, 1);
    assert_says(f, "answered 400: I do not know SYNCED");
    assert_waits(f, 30000, 100000);
    wait_taken(f);
    assert_true(status_of(f).is_running);
}

static void redirects_are_not_followed(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "307 Temporary Redirect", .headers = "Location: /elsewhere\r\n" }, { NULL }
    };
    struct fixture *f = *state;

    START(f, replies);
    wait_for_errors(f, 1);
    assert_says(f, "redirects are not followed");
    assert_string_equal(request(f, 1)->line, "POST /hook?key=secret HTTP/1.1");
    assert_waits(f, 30000, 100000);
}

/* --- what is told anew --- */

static void who_does_not_know_is_told_anew(void **state)
{
    static const struct test_reply replies[] = {
        { NULL },
        { NULL },
        { .status = "409 Conflict", .body = "who are you?" },
        { .is_held = true },
        { NULL },
    };
    struct fixture *f = *state;
    unsigned first, last;

    START(f, replies);
    wait_taken(f);
    put(f, "a", "1");
    wait_taken(f);
    delete (f, "a");
    wait_for_errors(f, 1);
    assert_says(f, "it asks for everything anew");
    assert_says(f, "who are you?");
    put(f, "b", "1");
    kinf__outbox_feed_synced(f->feed);
    assert_int_equal(strncmp(body(f, 3), "{\"type\":\"RESET\",\"seq\":4}\n", 25), 0);
    assert_non_null(
        strstr(body(f, 3), "{\"type\":\"DELETED\",\"resource\":\"things\",\"key\":\"ns/a\""));
    assert_non_null(
        strstr(body(f, 3), "{\"type\":\"ADDED\",\"resource\":\"things\",\"key\":\"ns/b\""));
    assert_non_null(strstr(body(f, 3), "{\"type\":\"SYNCED\""));
    numbers(f, 3, &first, &last);
    assert_int_equal(first, 4);
    test_server_let_go(f->server);
    wait_taken(f);
    assert_int_equal(status_of(f).n_starts, 2);
    assert_int_equal(replay_n_requests(f->server), 4);
}

static void a_deletion_is_told_until_it_is_taken(void **state)
{
    static const struct test_reply replies[] = {
        { NULL },
        { NULL },
        { .status = "503 Service Unavailable" },
        { .status = "409 Conflict" },
        { .status = "409 Conflict" },
        { NULL },
        { NULL },
    };
    struct fixture *f = *state;

    START(f, replies);
    wait_taken(f);
    put(f, "a", "1");
    wait_taken(f);
    delete (f, "a");
    for (size_t i = 2; i < 6; i++)
        assert_non_null(
            strstr(body(f, i), "{\"type\":\"DELETED\",\"resource\":\"things\",\"key\":\"ns/a\""));
    wait_taken(f);
    put(f, "b", "1");
    wait_taken(f);
    assert_null(strstr(body(f, 6), "DELETED"));
    assert_true(kinf__outbox_check(&f->handler->outbox));
}

static void what_is_too_large_is_posted_in_halves(void **state)
{
    static const struct test_reply replies[] = {
        { .is_held = true },
        { .status = "413 Content Too Large", .body = "8 kB" },
        { .status = "413 Content Too Large", .body = "8 kB" },
        { NULL },
        { NULL },
        { NULL },
        { NULL },
        { NULL },
        { NULL },
        { NULL },
        { NULL },
    };
    struct fixture *f = *state;
    unsigned first, last, expected = 2;
    size_t n_requests;

    START(f, replies);
    (void)request(f, 0);
    put_many(f, 100);
    test_server_let_go(f->server);
    wait_taken(f);
    n_requests = replay_n_requests(f->server);
    assert_true(n_requests >= 6);
    for (size_t i = 3; i < n_requests; i++) {
        assert_true(strlen(body(f, i)) <= strlen(body(f, 1)) / 4);
        numbers(f, i, &first, &last);
        assert_int_equal(first, expected);
        expected = last + 1;
    }
    assert_int_equal(expected, 102);
    assert_int_equal(status_of(f).n_errors, 2);
    assert_says(f, "answered 413: 8 kB: batches have ");
}

/* Nothing else waits for it, or is posted again. */
static void a_line_that_is_too_large_is_posted_without_its_object(void **state)
{
    static const struct test_reply replies[] = {
        { .is_held = true },
        { .status = "413 Content Too Large" }, /* all three, then one by one */
        { NULL },
        { .status = "413 Content Too Large" },
        { NULL },
        { NULL },
        { NULL },
    };
    static const char without[] =
        "{\"type\":\"ADDED\",\"resource\":\"things\",\"key\":\"ns/"
        "giant\",\"resourceVersion\":\"1\","
        "\"initial\":false,\"finalStateUnknown\":false,\"seq\":3,\"object\":{\"tooLarge\":true}}\n";
    char text[350] = "";
    struct fixture *f = *state;
    unsigned first, last;

    START(f, replies);
    (void)request(f, 0);
    put(f, "a", "1");
    put_text(f, "giant", "1", memset(text, 'x', sizeof text - 1));
    put(f, "b", "1");
    test_server_let_go(f->server);
    assert_string_equal(body(f, 4), without);
    for (size_t i = 2; i < 6; i++) {
        numbers(f, i, &first, &last);
        assert_int_equal(first, i - (i > 3));
        assert_int_equal(last, first);
    }
    wait_taken(f);
    assert_says(f, "a line of ");
    assert_says(f, "is too large for it, and is posted without its object: {\"type\":\"ADDED\"");
    assert_says(f, "ns/giant");
    put(f, "giant", "2");
    assert_non_null(strstr(body(f, 6), "{\"type\":\"MODIFIED\",\"resource\":\"things\""));
    assert_non_null(strstr(body(f, 6), "\"text\":\"x\""));
    wait_taken(f);
    assert_true(request(f, 6)->at_ms - request(f, 1)->at_ms < 100000);
    assert_int_equal(status_of(f).n_errors, 2);
    assert_int_equal(status_of(f).n_starts, 1);
    assert_true(kinf__outbox_check(&f->handler->outbox));
}

static void a_line_that_has_no_object_is_none_too_large(void **state)
{
    static const struct test_reply replies[] = { { .status = "413 Content Too Large" }, { NULL } };
    struct fixture *f = *state;

    START(f, replies);
    wait_for_errors(f, 1);
    assert_says(f, "changes 1 to 1: server 127.0.0.1:");
    assert_waits(f, 30000, 100000);
    assert_string_equal(body(f, 1), body(f, 0));
    wait_taken(f);
}

/* --- time, and the end --- */

static void who_does_not_answer_is_asked_again(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY },
                                                 { .body = "slow", .end = TEST_END_OPEN },
                                                 { NULL } };
    struct fixture *f = *state;

    f->options.timeout_ms = 300;
    START(f, replies);
    wait_for_errors(f, 1);
    assert_says(f, "not complete after 300 ms");
    assert_string_equal(body(f, 1), body(f, 0));
    wait_for_errors(f, 2);
    assert_string_equal(body(f, 2), body(f, 0));
}

static void it_stops_at_once_while_idle(void **state)
{
    static const struct test_reply replies[] = { { NULL } };
    struct fixture *f = *state;

    START(f, replies);
    wait_taken(f);
    assert_stops_at_once(f);
}

static void it_stops_at_once_without_an_answer(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };
    struct fixture *f = *state;

    START(f, replies);
    (void)request(f, 0);
    assert_stops_at_once(f);
    assert_int_equal(status_of(f).n_errors, 0);
    assert_int_equal(status_of(f).outbox.n_unacknowledged, 1);
}

static void it_stops_at_once_within_an_answer(void **state)
{
    static const struct test_reply replies[] = { { .body = "slow", .end = TEST_END_OPEN } };
    struct fixture *f = *state;

    START(f, replies);
    (void)request(f, 0);
    nap();
    assert_stops_at_once(f);
}

static void it_stops_at_once_in_a_pause(void **state)
{
    static const struct test_reply replies[] = { { .status = "400 Bad Request" } };
    struct fixture *f = *state;

    START(f, replies);
    wait_for_errors(f, 1);
    assert_stops_at_once(f);
}

static void it_stops_at_once_while_it_connects(void **state)
{
    struct fixture *f = *state;
    struct test_deaf_port deaf;

    test_deaf_port_open(&deaf);
    start_at(f, "http", deaf.port);
    nap();
    assert_stops_at_once(f);
    test_deaf_port_close(&deaf);
}

static void it_stops_at_once_in_a_handshake(void **state)
{
    struct fixture *f = *state;
    unsigned port;
    int listener = test_listen(5, &port);

    start_at(f, "https", port);
    nap();
    assert_stops_at_once(f);
    close(listener);
}

static void nobody_there_holds_up_nobody(void **state)
{
    struct fixture *f = *state;
    unsigned port;
    int listener = test_listen(5, &port);

    close(listener);
    start_at(f, "http", port);
    put_many(f, N_MANY);
    wait_for_errors(f, 1);
    assert_says(f, "cannot connect to the server 127.0.0.1:");
    for (int i = 0; i < 4; i++)
        put_many(f, N_MANY);
    assert_true(status_of(f).outbox.n_waiting <= N_MANY + 1);
    assert_stops_at_once(f);
}

/* --- TLS --- */

/* Files of the test's own, in a folder. */
struct files {
    char folder[64], ca[96], other_ca[96], cert[96], key[96], token[96];
    struct kinf__key_pair authority, stranger, server, client;
};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void files_begin(struct files *files)
{
    assert_non_null(mkdtemp(strcpy(files->folder, "/tmp/kinformer-test-XXXXXX")));
    files->authority = test_key_pair("authority", NULL, 3600, NULL);
    files->stranger = test_key_pair("stranger", NULL, 3600, NULL);
    files->server = test_key_pair("127.0.0.1", "IP:127.0.0.1", 3600, &files->authority);
    files->client = test_key_pair("someone", NULL, 3600, &files->authority);
    snprintf(files->ca, sizeof files->ca, "%s/ca", files->folder);
    snprintf(files->other_ca, sizeof files->other_ca, "%s/other", files->folder);
    snprintf(files->cert, sizeof files->cert, "%s/cert", files->folder);
    snprintf(files->key, sizeof files->key, "%s/key", files->folder);
    snprintf(files->token, sizeof files->token, "%s/token", files->folder);
    write_file(files->ca, files->authority.cert_pem);
    write_file(files->other_ca, files->stranger.cert_pem);
    write_file(files->cert, files->client.cert_pem);
    write_file(files->key, files->client.key_pem);
    write_file(files->token, "first\n");
}

static void files_end(struct files *files)
{
    char command[128];

    kinf__key_pair_release(&files->authority);
    kinf__key_pair_release(&files->stranger);
    kinf__key_pair_release(&files->server);
    kinf__key_pair_release(&files->client);
    snprintf(command, sizeof command, "rm -rf %s", files->folder);
    assert_int_equal(system(command), 0);
}

static void start_tls(struct fixture *f, const struct files *files,
                      const struct test_reply *replies, size_t n_replies)
{
    const struct replay_options options = { .key_pair = &files->server,
                                            .client_authority = &files->authority };

    f->server = test_server_start_with(replies, n_replies, &options);
    start_at(f, "https", replay_port(f->server));
}

static void certificates_and_tokens_are_shown_and_read_again(void **state)
{
    static const struct test_reply replies[] = { { NULL },
                                                 { .status = "401 Unauthorized" },
                                                 { NULL } };
    struct fixture *f = *state;
    struct files files;
    char value[64];

    files_begin(&files);
    f->options.site.ca_file = files.ca;
    f->options.site.cert_file = files.cert;
    f->options.site.key_file = files.key;
    f->options.site.token_file = files.token;
    start_tls(f, &files, replies, KINF__ARRAY_LEN(replies));
    wait_taken(f);
    assert_string_equal(request(f, 0)->client_name, "someone");
    assert_true(replay_request_header(request(f, 0), "Authorization", value, sizeof value));
    assert_string_equal(value, "Bearer first");
    write_file(files.token, "later\n");
    put(f, "a", "1");
    wait_for_errors(f, 1);
    assert_true(replay_request_header(request(f, 2), "Authorization", value, sizeof value));
    assert_string_equal(value, "Bearer later");
    assert_null(strstr(status_of(f).last_error.message, "first"));
    wait_taken(f);
    files_end(&files);
}

static void a_stranger_is_told_nothing(void **state)
{
    static const struct test_reply replies[] = { { NULL } };
    struct fixture *f = *state;
    struct files files;

    files_begin(&files);
    f->options.site.ca_file = files.other_ca;
    f->options.site.token_file = files.token;
    start_tls(f, &files, replies, KINF__ARRAY_LEN(replies));
    wait_for_errors(f, 1);
    assert_says(f, "is not signed by the given certificate authority");
    assert_int_equal(replay_n_requests(f->server), 0);
    assert_false(status_of(f).is_running);
    files_end(&files);
}

/* --- what is refused before --- */

static void assert_refused(const struct kinf__site *site, const char *words)
{
    const struct kinf__webhook_options options = { .site = *site };
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__handler *handler = NULL;

    assert_true(kinf__webhook_check(&options, &err) < 0);
    if (strstr(err.message, words) == NULL)
        fail_msg("%s: '%s' does not say '%s'", site->url, err.message, words);
    assert_true(kinf__webhook_handler_new(&options, &handler, NULL) < 0);
    assert_null(handler);
}

static void what_cannot_be_posted_to_is_refused(void **state)
{
    static const struct kinf__site good[] = {
        { .url = "https://example.com/hook" },
        { .url = "https://example.com:8443?x=1" },
        { .url = "http://127.0.0.1:1/" },
        { .url = "http://[::1]:1/" },
        { .url = "http://localhost" },
        { .url = "http://example.com/", .is_plain_allowed = true },
    };
    struct files files;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(good); i++) {
        const struct kinf__webhook_options options = { .site = good[i] };

        assert_int_equal(kinf__webhook_check(&options, NULL), 0);
    }
    files_begin(&files);
    assert_refused(&(struct kinf__site){ .url = "ftp://example.com/" }, "is no https://");
    assert_refused(&(struct kinf__site){ .url = "" }, "is no https://");
    assert_refused(&(struct kinf__site){ .url = "https://me:pw@example.com/" }, "a user in it");
    assert_refused(&(struct kinf__site){ .url = "https://example.com/a b" }, "blanks");
    assert_refused(&(struct kinf__site){ .url = "https://example.com/#a" }, "'#'");
    assert_refused(&(struct kinf__site){ .url = "http://example.com/" }, "to the network");
    assert_refused(&(struct kinf__site){ .url = "http://127.example.com/" }, "to the network");
    assert_refused(&(struct kinf__site){ .url = "http://localhost.example.com/" },
                   "to the network");
    assert_refused(&(struct kinf__site){ .url = "http://localhost/", .token_file = files.token },
                   "https:// alone");
    assert_refused(&(struct kinf__site){ .url = "https://a/", .cert_file = files.cert },
                   "go together");
    assert_refused(&(struct kinf__site){ .url = "https://a/", .ca_file = "/nonexistent" },
                   "cannot read /nonexistent");
    assert_refused(&(struct kinf__site){ .url = "https://a/", .token_file = "/nonexistent" },
                   "cannot read /nonexistent");
    assert_refused(&(struct kinf__site){ .url = "https://a/", .ca_file = files.token },
                   "certificate authority");
    assert_refused(&(struct kinf__site){ .url = "https://a/",
                                         .cert_file = files.cert,
                                         .key_file = files.token },
                   "key");
    files_end(&files);
}

/* Whenever something has failed, the next allocation of the handler's thread fails, and the one behind
 * it, and so on. */
static struct {
    _Atomic(size_t) n;
    _Atomic(bool) is_through;
} sweep;

static void fail_next(enum kinf_log_level level, const char *module, const char *line, void *ctx)
{
    (void)level;
    (void)ctx;
    if (strcmp(module, "handlers") != 0 || strstr(line, "handler failed") == NULL)
        return;
    if (sweep.n != 0 && !test_allocation_failed())
        sweep.is_through = true;
    if (!sweep.is_through)
        test_fail_allocation(++sweep.n);
}

static void no_memory_is_a_failure_as_others(void **state)
{
    static const struct test_reply replies[] = { { .path = "/hook", .status = "409 Conflict" } };
    struct fixture *f = *state;
    int64_t deadline_ms = real_ms() + PATIENCE_MS;

    f->options.max_batch_bytes = 20; /* so that room is made for each batch anew */
    sweep.n = 0;
    sweep.is_through = false;
    kinf_log_set_callback(fail_next, NULL);
    START(f, replies);
    put(f, "a", "1");
    while (!sweep.is_through)
        wait_a_bit(f, deadline_ms);
    kinf_log_set_callback(NULL, NULL);
    assert_in_range(sweep.n, 8, 1000);
    kinf__handler_stop(f->handler);
    assert_true(kinf__outbox_check(&f->handler->outbox));
    for (size_t i = 0; i < replay_n_requests(f->server); i++)
        assert_int_equal(strncmp(body(f, i), "{\"type\":\"RESET\"", 15), 0);
}

static void no_memory_at_the_start_is_said(void **state)
{
    const struct kinf__webhook_options options = { .site = { .url = "http://127.0.0.1:1/" } };
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        struct kinf__handler *handler = NULL;
        struct kinf_error err = KINF_ERROR_INIT;
        int failed;

        test_fail_allocation(n);
        failed = kinf__webhook_handler_new(&options, &handler, &err);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
        assert_true(has_failed == (handler == NULL));
        kinf__handler_free(handler);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(changes_are_posted_in_order_and_counted_off),
        TEST(one_that_was_halted_posts_all_when_it_is_started_again),
        TEST(one_whose_term_is_over_posts_nothing_more),
        TEST(two_runs_have_different_names),
        TEST(batches_have_bounded_lines),
        TEST(batches_have_bounded_bytes),
        TEST(one_line_may_be_longer),
        TEST(a_long_answer_is_passed_over),
        TEST(loopback_is_reached_without_a_proxy),
        TEST(what_is_behind_the_question_mark_is_not_logged),
        TEST(a_failed_batch_is_posted_again_as_it_was),
        TEST(the_first_line_of_an_answer_is_kept),
        TEST(retry_after_is_obeyed),
        TEST(nobody_is_believed_to_want_an_hour),
        TEST(a_mistake_is_posted_again_slowly),
        TEST(redirects_are_not_followed),
        TEST(who_does_not_know_is_told_anew),
        TEST(a_deletion_is_told_until_it_is_taken),
        TEST(what_is_too_large_is_posted_in_halves),
        TEST(a_line_that_is_too_large_is_posted_without_its_object),
        TEST(a_line_that_has_no_object_is_none_too_large),
        TEST(who_does_not_answer_is_asked_again),
        TEST(it_stops_at_once_while_idle),
        TEST(it_stops_at_once_without_an_answer),
        TEST(it_stops_at_once_within_an_answer),
        TEST(it_stops_at_once_in_a_pause),
        TEST(it_stops_at_once_while_it_connects),
        TEST(it_stops_at_once_in_a_handshake),
        TEST(nobody_there_holds_up_nobody),
        TEST(certificates_and_tokens_are_shown_and_read_again),
        TEST(a_stranger_is_told_nothing),
        TEST(what_cannot_be_posted_to_is_refused),
        TEST(no_memory_is_a_failure_as_others),
        TEST(no_memory_at_the_start_is_said),
    };
#undef TEST

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
