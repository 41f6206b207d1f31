/*
 * Which headers and targets go on to the API server, what comes back, and what is noted of that.
 */
#include "serve/passthrough.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/demand.h"
#include "serve/exchange_priv.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define PATIENCE_MS 60000
#define SILENCE_MS  300 /* of an answer that shall be cut, if it is not to be silent */

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

/* --- requests on their way --- */

#define LIST     "/api/v1/configmaps"
#define OBJECTS  "/api/v1/namespaces/d/configmaps"
#define UNKNOWN  "/apis/example.com/v1/gadgets"
#define OK_HEAD  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define NO_BODY  "Content-Length: 0\r\n\r\n"
#define IN_PARTS "Transfer-Encoding: chunked\r\n\r\n"

/* A server in front of one that the test plays; both have ConfigMaps. */
struct passing {
    struct kinf__waker woken;
    struct kinf__demand demand;
    struct kinf__server_options options;
    struct kinf__server *server;
    struct kinf_client *client;
    struct kinf_indexer *store;
    struct kinf__source *source; /* NULL: none */
    struct kinf__exchange *exchange;
    int listener, upstream; /* negative: not accepted */
};

static void wake(void *ctx)
{
    kinf__waker_set(ctx);
}

static void set_catalog(struct kinf__server *server)
{
    struct kinf__catalog *catalog;
    const struct kinf__catalog_entry entry = {
        .group = (char[]){ "" },
        .version = (char[]){ "v1" },
        .resource = { .name = (char[]){ "configmaps" },
                      .singular = (char[]){ "configmap" },
                      .kind = (char[]){ "ConfigMap" },
                      .verbs = (char[]){ "create,list,watch" },
                      .namespaced = true },
    };

    assert_int_equal(kinf__catalog_new(&catalog), 0);
    assert_int_equal(kinf__catalog_add(catalog, &entry), 0);
    kinf__server_set_catalog(server, catalog);
}

/* All but the server. `silence_ms` 0: the default. */
static void begin_options(struct passing *p, int64_t silence_ms)
{
    const struct kinf__demand_rules rules = { .is_enabled = true };
    unsigned port;

    *p = (struct passing){ .options = { .demand = &p->demand }, .upstream = -1 };
    p->listener = test_listen(1, &port);
    p->client = test_client_of(port, NULL);
    kinf__demand_init(&p->demand, NULL);
    kinf__demand_set_rules(&p->demand, &rules);
    assert_int_equal(kinf__waker_init(&p->woken, NULL), 0);
    assert_int_equal(
        kinf__forwarder_new(p->client,
                            &(struct kinf__forwarder_options){ .silence_limit_ms = silence_ms },
                            &p->options.forwarder, NULL),
        0);
}

static void begin_limited(struct passing *p, const char *method, const char *target,
                          bool is_upgrade, int64_t silence_ms)
{
    static const struct kinf__header headers[] = { { "Authorization", "Bearer x" },
                                                   { "Upgrade", "websocket" } };
    const struct kinf__exchange_owner owner = { .wake = wake, .ctx = &p->woken };
    struct kinf__request_head head =
        kinf__request_head_of(method, kinf_str_from(target), headers, is_upgrade ? 2 : 1);

    begin_options(p, silence_ms);
    assert_int_equal(kinf__server_new(&p->options, &p->server, NULL), 0);
    set_catalog(p->server);
    p->exchange = kinf__exchange_new(p->server, &owner, &head, NULL);
    assert_non_null(p->exchange);
}

static void begin(struct passing *p, const char *method, const char *target, bool is_upgrade)
{
    begin_limited(p, method, target, is_upgrade, 0);
}

static void end(struct passing *p)
{
    kinf__exchange_free(p->exchange);
    if (p->source != NULL)
        kinf__server_retire_source(p->server, p->source);
    kinf__server_stop(p->server);
    kinf__source_free(p->source);
    kinf_indexer_free(p->store);
    kinf__server_free(p->server);
    kinf__forwarder_free(p->options.forwarder);
    kinf__demand_release(&p->demand);
    kinf_client_free(p->client);
    kinf__waker_release(&p->woken);
    if (p->upstream >= 0)
        close(p->upstream);
    close(p->listener);
}

/* A cache of ConfigMaps, that has one. */
static void add_source_of(struct passing *p, struct kinf__source_options options)
{
    static const char json[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"resourceVersion\":\"3\"}}";
    const struct kinf_object *object;

    assert_int_equal(kinf_indexer_new(NULL, 0, &p->store, NULL), 0);
    assert_int_equal(
        kinf_type_intern("", "v1", "ConfigMap", "configmaps", true, &options.store.type, NULL), 0);
    assert_int_equal(
        kinf_object_new_from_json(options.store.type, json, strlen(json), &object, NULL), 0);
    assert_int_equal(kinf_indexer_add(p->store, object, NULL, NULL), 0);
    kinf_object_unref(object);
    options.store.indexer = p->store;
    assert_int_equal(kinf__server_add_source(p->server, &options, &p->source, NULL), 0);
    kinf__server_publish_source(p->server, p->source);
}

static void add_source(struct passing *p, bool is_on_demand)
{
    add_source_of(p, (struct kinf__source_options){ .is_on_demand = is_on_demand });
}

static void remove_source(struct passing *p)
{
    kinf__server_retire_source(p->server, p->source);
    kinf__source_free(p->source);
    kinf_indexer_free(p->store);
    p->source = NULL;
    p->store = NULL;
}

static void send_down(const struct passing *p, const char *text)
{
    assert_int_equal(send(p->upstream, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void await_wake(struct passing *p)
{
    assert_true(kinf__waker_wait(&p->woken, PATIENCE_MS));
    kinf__waker_clear(&p->woken);
}

static const struct kinf__answer *await_answer(struct passing *p)
{
    const struct kinf__answer *answer;

    while ((answer = kinf__exchange_step(p->exchange)) == NULL)
        await_wake(p);
    return answer;
}

/* The request is passed on and gets this answer. */
static const struct kinf__answer *answer_with(struct passing *p, const char *text)
{
    assert_null(kinf__exchange_step(p->exchange));
    p->upstream = accept(p->listener, NULL, NULL);
    assert_true(p->upstream >= 0);
    send_down(p, text);
    return await_answer(p);
}

/* Until `last` has come, or the end; returns the last result. */
static ssize_t read_until(struct passing *p, struct kinf__stream *stream, const char *last,
                          struct kinf__buffer *text)
{
    char piece[100];
    ssize_t n;

    while ((n = stream->read(stream, piece, sizeof piece)) >= 0) {
        if (n == 0)
            await_wake(p);
        assert_int_equal(kinf__buffer_append(text, piece, (size_t)n), 0);
        if (last != NULL && strcmp(kinf__buffer_cstr(text), last) == 0)
            break;
    }
    return n;
}

/* Others read it while it is passed on (kinf__server_publish_source()). */
static void a_request_stays_what_it_was_when_it_changes_its_protocol(void **state)
{
    struct passing p;

    (void)state;
    begin(&p, "GET", LIST "?watch=1", true);
    assert_int_equal(
        answer_with(&p, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")->code,
        101);
    assert_int_equal(p.exchange->request.verb, KINF__VERB_WATCH);
    end(&p);
}

/* Half an event would be lost: its reader goes on from the one before, at the cache that the watch is
 * called back to. */
static void a_watch_that_is_called_back_ends_behind_an_event(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__stream *stream;
    struct passing p;
    char piece[100];

    (void)state;
    begin(&p, "GET", LIST "?watch=1", false);
    stream = answer_with(&p, OK_HEAD IN_PARTS "d\r\n{\"n\":1}\n{\"n\":\r\n")->stream;
    assert_int_not_equal(read_until(&p, stream, "{\"n\":1}\n{\"n\":", &text), KINF__STREAM_END);
    add_source(&p, true);
    assert_int_equal(stream->read(stream, piece, sizeof piece), 0);
    send_down(&p, "9\r\n2}\n{\"n\":3\r\n");
    assert_int_equal(read_until(&p, stream, NULL, &text), KINF__STREAM_END);
    assert_string_equal(kinf__buffer_cstr(&text), "{\"n\":1}\n{\"n\":2}\n");
    end(&p);
}

/* Longer than the limit, and than the thread needs to see it. */
static void outlast_the_limit(struct passing *p)
{
    int64_t until_ms = kinf__clock_now_ms() + 3 * SILENCE_MS, left_ms;

    while ((left_ms = until_ms - kinf__clock_now_ms()) > 0) {
        kinf__waker_wait(&p->woken, left_ms);
        kinf__waker_clear(&p->woken);
    }
}

/* By the parameter, and by the deprecated path, which is a watch whatever the parameter says. */
static void a_watch_may_be_silent(void **state)
{
    static const char *const targets[] = { LIST "?watch=1", "/api/v1/watch/configmaps",
                                           "/api/v1/watch/namespaces/d/configmaps/a?watch=0" };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(targets); i++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
        struct kinf__stream *stream;
        struct passing p;

        begin_limited(&p, "GET", targets[i], false, SILENCE_MS);
        stream = answer_with(&p, OK_HEAD IN_PARTS "8\r\n{\"n\":1}\n\r\n")->stream;
        assert_int_not_equal(read_until(&p, stream, "{\"n\":1}\n", &text), KINF__STREAM_BROKEN);
        outlast_the_limit(&p);
        send_down(&p, "8\r\n{\"n\":2}\n\r\n0\r\n\r\n");
        assert_int_equal(read_until(&p, stream, NULL, &text), KINF__STREAM_END);
        assert_string_equal(kinf__buffer_cstr(&text), "{\"n\":1}\n{\"n\":2}\n");
        end(&p);
    }
}

/* Noted is that it was done, before its client can know. */
static void a_write_that_is_answered_without_a_body_was_done(void **state)
{
    static const struct {
        const char *answer;
        bool is_done;
    } rows[] = {
        { "HTTP/1.1 204 No Content\r\nContent-Type: application/json\r\n\r\n", true },
        { "HTTP/1.1 204 No Content\r\n\r\n", true },
        { "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n" NO_BODY, false },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct passing p;

        begin(&p, "POST", OBJECTS, false);
        add_source(&p, false);
        answer_with(&p, rows[i].answer);
        assert_int_equal(kinf__session_is_behind(&p.source->session), rows[i].is_done);
        end(&p);
    }
}

/* A type that has just been defined: discovery is read again for it. */
static void what_the_server_has_and_discovery_has_not_is_asked_for(void **state)
{
    static const struct {
        const char *target, *answer;
        bool is_unknown, is_asked;
    } rows[] = {
        { UNKNOWN, OK_HEAD NO_BODY, true, false },
        { UNKNOWN, "HTTP/1.1 404 Not Found\r\n" NO_BODY, false, false },
        { LIST, OK_HEAD NO_BODY, false, true },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct passing p;
        int64_t now_ms = kinf__clock_now_ms();

        begin(&p, "GET", rows[i].target, false);
        answer_with(&p, rows[i].answer);
        assert_int_equal(kinf__demand_take_unknown(&p.demand, now_ms), rows[i].is_unknown);
        assert_false(kinf__demand_take_unknown(&p.demand, now_ms));
        assert_int_equal(kinf__demand_has_queued(&p.demand), rows[i].is_asked);
        end(&p);
    }
}

/* Its first page came from there, while the cache was behind what its client had written. */
static void a_list_that_began_at_the_server_is_gone_on_with_there(void **state)
{
    (void)state;
    for (int is_on_demand = 0; is_on_demand < 2; is_on_demand++) {
        struct passing p;

        begin(&p, "GET", LIST "?limit=1&continue=abc", false);
        add_source(&p, is_on_demand);
        assert_int_equal(answer_with(&p, OK_HEAD NO_BODY)->code, 200);
        end(&p);
    }
}

/* Its readers still have what they read of it, and would replace objects by that. */
static void what_was_read_pruned_does_not_replace_anything_when_its_cache_has_gone(void **state)
{
    struct passing p;

    (void)state;
    begin(&p, "PUT", OBJECTS "/a", false);
    add_source_of(&p, (struct kinf__source_options){ .is_pruned = true });
    remove_source(&p);
    assert_int_equal(await_answer(&p)->code, 405);
    end(&p);
    /* A cache that leaves nothing out has told them what it is. */
    begin(&p, "PUT", OBJECTS "/a", false);
    add_source_of(&p, (struct kinf__source_options){ .is_pruned = true });
    remove_source(&p);
    add_source(&p, false);
    assert_int_equal(answer_with(&p, OK_HEAD NO_BODY)->code, 200);
    end(&p);
}

/* --- who is not there any more --- */

/* Returns what to close behind the exchange. */
static int hang_up(struct passing *p)
{
    bool has_hung_up = false;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    close(fds[1]);
    kinf__exchange_await_hang_up(p->exchange, fds[0]);
    while (!has_hung_up) {
        usleep(1000);
        kinf__mutex_lock(&p->server->lock);
        has_hung_up = p->exchange->has_hung_up;
        kinf__mutex_unlock(&p->server->lock);
    }
    return fds[0];
}

static void what_begins_after_its_client_left_ends_at_once(void **state)
{
    static const char *const targets[] = { LIST "?watch=1", UNKNOWN "?watch=1" };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(targets); i++) {
        const struct kinf__answer *answer;
        struct passing p;
        char piece[100];
        int fd;

        begin(&p, "GET", targets[i], false);
        add_source(&p, false);
        fd = hang_up(&p);
        answer = await_answer(&p);
        if (i == 0)
            assert_int_equal(answer->stream->read(answer->stream, piece, sizeof piece),
                             KINF__STREAM_END);
        else
            assert_in_range(answer->code, 503, 504); /* 504: it may be under way */
        end(&p);
        close(fd);
    }
}

/* --- a machine that has nothing left --- */

/* The descriptor that is given out next. */
static int next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);

    assert_true(fd >= 0);
    close(fd);
    return fd;
}

static void a_server_without_descriptors_is_not_begun(void **state)
{
    struct rlimit before, few;
    struct passing p;
    int failed = KINF_ERR_SYSTEM, n_failed = 0, fillers[8];

    (void)state;
    begin_options(&p, 0); /* a server's thread has a descriptor for a moment, to count them */
    /* Behind these there is no gap. */
    for (size_t i = 0; i < KINF__ARRAY_LEN(fillers); i++)
        fillers[i] = dup(STDIN_FILENO);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    while (failed == KINF_ERR_SYSTEM) {
        struct kinf_error err = KINF_ERROR_INIT;
        int next = next_descriptor();

        few = (struct rlimit){ (rlim_t)(next + n_failed), before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        failed = kinf__server_new(&p.options, &p.server, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (failed == 0)
            break;
        n_failed++;
        assert_int_equal(err.code, KINF_ERR_SYSTEM);
        assert_int_equal(next_descriptor(), next);
    }
    assert_int_equal(failed, 0);
    assert_int_equal(n_failed, 4); /* wakers and epolls, of the time and of tunnels */
    for (size_t i = 0; i < KINF__ARRAY_LEN(fillers); i++)
        close(fillers[i]);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_go_on_only_if_they_are_known),
        cmocka_unit_test(answers_bring_what_describes_them),
        cmocka_unit_test(a_request_stays_what_it_was_when_it_changes_its_protocol),
        cmocka_unit_test(a_watch_that_is_called_back_ends_behind_an_event),
        cmocka_unit_test(a_watch_may_be_silent),
        cmocka_unit_test(a_write_that_is_answered_without_a_body_was_done),
        cmocka_unit_test(what_the_server_has_and_discovery_has_not_is_asked_for),
        cmocka_unit_test(a_list_that_began_at_the_server_is_gone_on_with_there),
        cmocka_unit_test(what_was_read_pruned_does_not_replace_anything_when_its_cache_has_gone),
        cmocka_unit_test(what_begins_after_its_client_left_ends_at_once),
        cmocka_unit_test(a_server_without_descriptors_is_not_begun),
        cmocka_unit_test(targets_that_can_be_read_in_two_ways_stay_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
