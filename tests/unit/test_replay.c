/*
 * The replay server, seen by a client of bare sockets: every byte, every way to end, every list.
 */
#include "replay/replay.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <kinformer/client.h>

#include "base/buffer.h"
#include "replay/client.h"
#include "replay/request.h"
#include "replay/script.h"
#include "unit/allocation.h"
#include "unit/test.h"

/* Nothing takes nearly as long. */
#define PATIENCE_MS 60000

/* --- a client that asserts --- */

static struct replay_client client_open(const struct replay *replay)
{
    struct replay_client client;

    assert_true(replay_client_open(&client, replay));
    return client;
}

static void client_send(struct replay_client *client, const char *text)
{
    assert_true(replay_client_send(client, text));
}

static void client_get(struct replay_client *client, const char *target)
{
    char request[4096];

    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target);
    client_send(client, request);
}

/* To the end if `len` is SIZE_MAX. The caller releases the buffer. */
static struct kinf__buffer client_read_len(struct replay_client *client, size_t len)
{
    struct kinf__buffer bytes = KINF__BUFFER_INIT;

    assert_int_equal(replay_client_read_more(client, len, &bytes), 0);
    assert_int_not_equal(client->ending, REPLAY_ENDING_LATE);
    return bytes;
}

static struct kinf__buffer client_read_to_end(struct replay_client *client)
{
    return client_read_len(client, SIZE_MAX);
}
static void assert_reads(struct replay_client *client, const char *text)
{
    struct kinf__buffer bytes = client_read_len(client, strlen(text));

    assert_string_equal(kinf__buffer_cstr(&bytes), text);
    kinf__buffer_release(&bytes);
}

#define HEAD_CHUNKED                                                                               \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

/* --- servers --- */

static struct replay *start_with(struct replay_options *options)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct replay *replay = NULL;
    char dir[1024];

    snprintf(dir, sizeof dir, "%s/transcripts", test_data_dir());
    options->transcripts_dir = dir;
    if (replay_start(options, &replay, &err) < 0)
        fail_msg("%s", err.message);
    return replay;
}

static struct replay *start(const char *script)
{
    struct replay_options options = { .script = script };

    return start_with(&options);
}

static struct replay *start_plain(const char *script)
{
    struct replay_options options = { .script = script, .plain = true };

    return start_with(&options);
}

/* --- recordings --- */

static bool is_recording(const char *name)
{
    size_t len = strlen(name);

    return len > 5 && strcmp(name + len - 5, ".http") == 0;
}

static size_t list_recordings(char names[][128], size_t size)
{
    char path[1024];
    DIR *dir;
    size_t n = 0;

    snprintf(path, sizeof path, "%s/transcripts", test_data_dir());
    dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (!is_recording(entry->d_name))
            continue;
        assert_true(n < size);
        snprintf(names[n++], sizeof names[0], "%.*s", (int)strlen(entry->d_name) - 5,
                 entry->d_name);
    }
    closedir(dir);
    return n;
}

static void assert_plays(struct replay *replay, const char *name)
{
    struct replay_client client = client_open(replay);
    struct kinf__buffer played;
    char path[256];
    size_t len;
    char *recorded;

    snprintf(path, sizeof path, "transcripts/%s.http", name);
    recorded = test_read_data(path, &len);
    snprintf(path, sizeof path, "/%s", name);
    client_get(&client, path);
    played = client_read_len(&client, len);
    assert_int_equal(played.len, len);
    assert_memory_equal(played.bytes, recorded, len);
    kinf__buffer_release(&played);
    free(recorded);
    replay_client_close(&client);
}

static void every_recording_is_played_byte_by_byte(void **state)
{
    enum { n_max = 400 };
    static char names[n_max][128];
    size_t n = list_recordings(names, n_max);
    KINF__AUTO_BUFFER script = KINF__BUFFER_INIT;
    struct replay *replay;

    (void)state;
    assert_true(n > 200);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(kinf__buffer_printf(&script, "exchange once\nmatch GET /%s\nrecorded %s\n",
                                             names[i], names[i]),
                         0);
    replay = start_plain(kinf__buffer_cstr(&script));
    for (size_t i = 0; i < n; i++)
        assert_plays(replay, names[i]);
    assert_true(replay_wait_used_up(replay, PATIENCE_MS));
    assert_int_equal(replay_n_violations(replay), 0);
    replay_stop(replay);
}

static void each_recorded_chunk_is_one_write(void **state)
{
    static const size_t sizes[] = { 341, 2048 + 7, 93 + 6, 482 + 7, 485 + 7, 484 + 7, 105 + 6, 5 };
    struct replay *replay = start("exchange once\n"
                                  "match GET /api/v1/* watch=1\n"
                                  "recorded 03-watchlist-identity\n");
    struct replay_client client = client_open(replay);
    char bytes[16384];

    (void)state;
    client_get(&client, "/api/v1/namespaces/t1/configmaps?watch=1");
    for (size_t i = 0; i < KINF__ARRAY_LEN(sizes); i++)
        assert_int_equal(replay_client_read(&client, bytes, sizeof bytes), sizes[i]);
    replay_client_close(&client);
    replay_stop(replay);
}

static void a_recorded_end_is_repeated(void **state)
{
    static const struct {
        const char *name;
        enum replay_ending ending;
    } cases[] = {
        { "10-sigkill-watch", REPLAY_ENDING_FIN },
        { "18-etcd-down-get", REPLAY_ENDING_CLOSE_NOTIFY },
        { "19-list-request-timeout-truncated", REPLAY_ENDING_CLOSE_NOTIFY },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        char script[256];
        struct replay *replay;
        struct replay_client client;
        struct kinf__buffer bytes;

        snprintf(script, sizeof script, "exchange once\nmatch GET /x\nrecorded %s\n",
                 cases[i].name);
        replay = start(script);
        client = client_open(replay);
        client_get(&client, "/x");
        bytes = client_read_to_end(&client);
        assert_int_equal(client.ending, cases[i].ending);
        kinf__buffer_release(&bytes);
        replay_client_close(&client);
        replay_stop(replay);
    }
}

/* --- written answers --- */

static void a_written_answer_is_framed_as_told(void **state)
{
    struct replay *replay = start_plain("# comment\n"
                                        "exchange once\n"
                                        "  match GET /chunked\n"
                                        "  status 200\n"
                                        "  event {\"a\":\"\\n\"}\n"
                                        "  piece x\\r\\n\\x41\\\\\n"
                                        "exchange once\n"
                                        "match GET /header\n"
                                        "status 404 Nothing Here\n"
                                        "header Content-Type: text/plain\n"
                                        "piece ab\n"
                                        "fill 2 cd\n");
    struct replay_client client = client_open(replay);

    (void)state;
    client_get(&client, "/chunked");
    assert_reads(&client, HEAD_CHUNKED "b\r\n{\"a\":\"\\n\"}\n\r\n5\r\nx\r\nA\\\r\n0\r\n\r\n");
    client_get(&client, "/header");
    assert_reads(&client, "HTTP/1.1 404 Nothing Here\r\nContent-Type: text/plain\r\n"
                          "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n4\r\ncdcd\r\n"
                          "0\r\n\r\n");
    replay_client_close(&client);
    replay_stop(replay);
}

#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","           \
    "\"message\":\"" message "\",\"reason\":\"" reason "\",\"code\":" code "}"

static void failures_come_as_status_objects(void **state)
{
    struct replay *replay = start_plain("exchange once\n"
                                        "match GET /x\n"
                                        "failure 429 TooManyRequests say \"please\"\n"
                                        "header Retry-After: 1\n"
                                        "exchange once\n"
                                        "match GET /y\n"
                                        "status 200\n"
                                        "error 410 Expired too old\n");
    struct replay_client client = client_open(replay);

    (void)state;
    client_get(&client, "/x");
    assert_reads(&client,
                 "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n"
                 "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "85\r\n" STATUS("429", "TooManyRequests", "say \\\"please\\\"") "\r\n0\r\n\r\n");
    client_get(&client, "/y");
    assert_reads(&client, HEAD_CHUNKED "91\r\n{\"type\":\"ERROR\",\"object\":" STATUS(
                              "410", "Expired", "too old") "}\n\r\n0\r\n\r\n");
    replay_client_close(&client);
    replay_stop(replay);
}

/* --- ends --- */

static void assert_ending(bool plain, const char *directive, enum replay_ending ending)
{
    char script[256];
    struct replay *replay;
    struct replay_client client;
    struct kinf__buffer bytes;

    snprintf(script, sizeof script,
             "exchange once\nmatch GET /x\nstatus 200\npiece abc\nwait 1\n%s\n", directive);
    replay = plain ? start_plain(script) : start(script);
    client = client_open(replay);
    client_get(&client, "/x");
    assert_reads(&client, HEAD_CHUNKED "3\r\nabc\r\n");
    replay_signal(replay, 1);
    bytes = client_read_to_end(&client);
    assert_int_equal(bytes.len, 0);
    assert_int_equal(client.ending, ending);
    kinf__buffer_release(&bytes);
    replay_client_close(&client);
    assert_true(replay_wait_connections(replay, 0, PATIENCE_MS));
    replay_stop(replay);
}

static void a_connection_ends_as_told(void **state)
{
    (void)state;
    assert_ending(false, "cut", REPLAY_ENDING_FIN);
    assert_ending(false, "reset", REPLAY_ENDING_RST);
    assert_ending(true, "cut", REPLAY_ENDING_FIN);
    assert_ending(true, "reset", REPLAY_ENDING_RST);
}

static void an_answer_is_cut_at_every_offset(void **state)
{
    const char whole[] = HEAD_CHUNKED "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    KINF__AUTO_BUFFER script = KINF__BUFFER_INIT;
    struct replay *replay;

    (void)state;
    for (size_t i = 0; i < sizeof whole; i++)
        assert_int_equal(kinf__buffer_printf(&script,
                                             "exchange once\nmatch GET /x\nafter %zu cut\n"
                                             "status 200\npiece abc\npiece de\n",
                                             i),
                         0);
    replay = start_plain(kinf__buffer_cstr(&script));
    for (size_t i = 0; i < sizeof whole; i++) {
        struct replay_client client = client_open(replay);
        struct kinf__buffer bytes;

        client_get(&client, "/x");
        bytes = client_read_to_end(&client);
        assert_int_equal(bytes.len, i);
        assert_int_equal(client.ending, REPLAY_ENDING_FIN);
        if (i != 0)
            assert_memory_equal(bytes.bytes, whole, i);
        kinf__buffer_release(&bytes);
        replay_client_close(&client);
    }
    replay_stop(replay);
}

/* --- waits --- */

static bool has_bytes(const struct replay_client *client)
{
    struct pollfd fd = { .fd = client->fd, .events = POLLIN };

    return poll(&fd, 1, 0) > 0;
}

static void a_wait_goes_on_at_its_signal_only(void **state)
{
    struct replay *replay = start_plain("exchange once\n"
                                        "match GET /slow\n"
                                        "status 200\n"
                                        "wait 3\n"
                                        "wait 4\n"
                                        "exchange always\n"
                                        "match GET /fast\n"
                                        "status 200\n");
    struct replay_client slow = client_open(replay), fast = client_open(replay);

    (void)state;
    client_get(&slow, "/slow");
    assert_reads(&slow, HEAD_CHUNKED);
    replay_signal(replay, 4);
    replay_signal(replay, 2);
    client_get(&fast, "/fast");
    assert_reads(&fast, HEAD_CHUNKED "0\r\n\r\n");
    assert_false(has_bytes(&slow));
    /* The fourth was given beforehand and is kept. */
    replay_signal(replay, 3);
    assert_reads(&slow, "0\r\n\r\n");
    replay_client_close(&slow);
    replay_client_close(&fast);
    replay_stop(replay);
}

static void a_stalled_connection_ends_when_its_client_leaves(void **state)
{
    struct replay *replay = start("exchange always\nmatch GET /x\nstatus 200\nstall forever\n");
    struct replay_client client = client_open(replay);

    (void)state;
    client_get(&client, "/x");
    assert_reads(&client, HEAD_CHUNKED);
    assert_true(replay_wait_connections(replay, 1, PATIENCE_MS));
    replay_client_close(&client);
    assert_true(replay_wait_connections(replay, 0, PATIENCE_MS));
    replay_stop(replay);
}

static void stop_ends_whatever_a_connection_does(void **state)
{
    struct replay *replay = start("exchange always\n"
                                  "match GET /stall\n"
                                  "status 200\n"
                                  "stall forever\n"
                                  "exchange always\n"
                                  "match GET /wait\n"
                                  "status 200\n"
                                  "wait 1\n"
                                  "exchange always\n"
                                  "match GET /large\n"
                                  "status 200\n"
                                  "fill 40000000 x\n");
    static const char *const targets[] = { "/stall", "/wait", "/large", NULL };
    struct replay_client clients[4];

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(clients); i++) {
        clients[i] = client_open(replay);
        if (targets[i] != NULL) {
            client_get(&clients[i], targets[i]);
            assert_reads(&clients[i], HEAD_CHUNKED);
        }
    }
    replay_stop(replay);
    for (size_t i = 0; i < KINF__ARRAY_LEN(clients); i++)
        replay_client_close(&clients[i]);
}

/* --- requests --- */

static void matchers_tell_requests_apart(void **state)
{
    static const struct {
        const char *matcher, *target;
        bool matches;
    } cases[] = {
        { "GET /api/v1/pods", "/api/v1/pods", true },
        { "GET /api/v1/pods", "/api/v1/pods?watch=1", true },
        { "GET /api/v1/pods", "/api/v1/pods/a", false },
        { "GET /api/v1/pods*", "/api/v1/pods/a", true },
        { "GET /api/v1/pods*", "/api/v1/pod", false },
        { "POST /api/v1/pods", "/api/v1/pods", false },
        { "GE /api/v1/pods", "/api/v1/pods", false },
        { "GET /x watch", "/x?watch=1", true },
        { "GET /x watch", "/x?watch", true },
        { "GET /x watch", "/x?awatch=1&watchb=1", false },
        { "GET /x watch=1", "/x?watch=true", false },
        { "GET /x !watch", "/x?watch=0", false },
        { "GET /x !watch", "/x", true },
        { "GET /x !resourceVersion=0", "/x?resourceVersion=0", false },
        { "GET /x !resourceVersion=0", "/x?resourceVersion=10", true },
        { "GET /x a=1 b=2", "/x?b=2&&a=1", true },
        { "GET /x a=1 b=2", "/x?b=2&a=2", false },
        { "GET /x fieldSelector=spec.nodeName=n,a!=b",
          "/x?fieldSelector=spec.nodeName%3Dn%2Ca!%3db", true },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        struct replay__matcher matcher;
        struct replay_request request;
        char head[256];

        snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", cases[i].target);
        assert_int_equal(replay__matcher_parse(&matcher, cases[i].matcher, NULL), 0);
        assert_int_equal(replay__request_init(&request, kinf_str_from(head)), 0);
        if (replay__matcher_matches(&matcher, &request) != cases[i].matches)
            fail_msg("'%s' and '%s'", cases[i].matcher, cases[i].target);
        replay__request_release(&request);
        replay__matcher_release(&matcher);
    }
}

static void exchanges_are_used_in_order_and_as_often_as_told(void **state)
{
    static const char *const expected[] = { "a", "b", "b", "c", "c" };
    struct replay *replay = start_plain("exchange\nmatch GET /x\nstatus 200\npiece a\n"
                                        "exchange times 2\nmatch GET /x\nstatus 200\npiece b\n"
                                        "exchange always\nmatch GET /x\nstatus 200\npiece c\n");
    struct replay_client client = client_open(replay);

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(expected); i++) {
        char text[256];

        assert_int_equal(replay_wait_used_up(replay, 0), i >= 3);
        client_get(&client, "/x");
        snprintf(text, sizeof text, "%s1\r\n%s\r\n0\r\n\r\n", HEAD_CHUNKED, expected[i]);
        assert_reads(&client, text);
    }
    assert_int_equal(replay_n_requests(replay), 5);
    replay_client_close(&client);
    replay_stop(replay);
}

static void an_unexpected_request_is_a_violation(void **state)
{
    struct replay *replay = start_plain("exchange once\nmatch GET /x\nstatus 200\n");
    struct replay_client client = client_open(replay);
    const struct replay_request *request;

    (void)state;
    client_get(&client, "/y");
    assert_reads(&client, "HTTP/1.1 500 Internal Server Error\r\n"
                          "Content-Type: application/json\r\nContent-Length: 154\r\n\r\n" STATUS(
                              "500", "InternalError", "the script expects no GET /y HTTP/1.1"));
    client_get(&client, "/x");
    assert_reads(&client, HEAD_CHUNKED "0\r\n\r\n");
    assert_int_equal(replay_n_violations(replay), 1);
    request = replay_wait_request(replay, 0, PATIENCE_MS);
    assert_string_equal(request->line, "GET /y HTTP/1.1");
    assert_false(request->is_expected);
    assert_true(replay_wait_request(replay, 1, PATIENCE_MS)->is_expected);
    assert_null(replay_wait_request(replay, 2, 0));
    replay_client_close(&client);
    replay_stop(replay);
}

static void requests_are_listed_with_what_they_said(void **state)
{
    struct replay *replay = start("exchange always\nmatch GET /x\nstatus 200\n");
    struct replay_client client = client_open(replay);
    const struct replay_request *request;
    char value[64];

    (void)state;
    client_send(&client, "GET /x?continue=a%2Bb&limit HTTP/1.1\r\nHost: x\r\n"
                         "accept:  text/plain\r\nAccept-Encoding: gzip\r\n\r\n");
    request = replay_wait_request(replay, 0, PATIENCE_MS);
    assert_non_null(request);
    assert_true(replay_request_header(request, "Accept", value, sizeof value));
    assert_string_equal(value, "text/plain");
    assert_true(replay_request_header(request, "Accept-Encoding", value, sizeof value));
    assert_string_equal(value, "gzip");
    assert_false(replay_request_header(request, "Authorization", value, sizeof value));
    assert_true(replay_request_query(request, "continue", value, sizeof value));
    assert_string_equal(value, "a+b");
    assert_true(replay_request_query(request, "limit", value, sizeof value));
    assert_string_equal(value, "");
    assert_int_equal(request->connection, 1);
    replay_client_close(&client);
    replay_stop(replay);
}

static void requests_in_one_write_are_answered_in_order(void **state)
{
    struct replay *replay = start_plain("exchange once\nmatch POST /x\nstatus 200\npiece a\n"
                                        "exchange once\nmatch GET /y\nstatus 200\npiece b\n");
    struct replay_client client = client_open(replay);
    struct kinf__buffer rest;

    (void)state;
    client_send(&client, "POST /x HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /"
                         "GET /y HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_reads(&client, HEAD_CHUNKED "1\r\na\r\n0\r\n\r\n" HEAD_CHUNKED "1\r\nb\r\n0\r\n\r\n");
    rest = client_read_to_end(&client);
    assert_int_equal(rest.len, 0);
    kinf__buffer_release(&rest);
    assert_string_equal(replay_wait_request(replay, 0, 0)->body, "GET /");
    assert_null(replay_wait_request(replay, 1, 0)->body);
    assert_int_equal(replay_n_violations(replay), 0);
    replay_client_close(&client);
    replay_stop(replay);
}

static void an_answer_counts_when_nothing_more_can_come(void **state)
{
    struct replay *replay = start_plain("exchange once\nmatch GET /x\nstatus 200\nwait 1\n"
                                        "stall forever\n");
    struct replay_client client = client_open(replay);

    (void)state;
    client_get(&client, "/x");
    assert_reads(&client, HEAD_CHUNKED);
    assert_false(replay_wait_answered(replay, 1, 0));
    replay_signal(replay, 1);
    assert_true(replay_wait_answered(replay, 1, PATIENCE_MS));
    replay_client_close(&client);
    replay_stop(replay);
}

static void a_tls_hello_to_a_plain_port_is_a_bad_request(void **state)
{
    struct replay *replay = start_plain("");
    struct replay_client client = client_open(replay);
    struct kinf__buffer answer;

    (void)state;
    client_send(&client, "\x16\x03\x01\x02");
    answer = client_read_to_end(&client);
    assert_string_equal(kinf__buffer_cstr(&answer),
                        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(client.ending, REPLAY_ENDING_FIN);
    kinf__buffer_release(&answer);
    assert_int_equal(replay_n_requests(replay), 0);
    replay_client_close(&client);
    replay_stop(replay);
}

/* --- scripts --- */

static void a_wrong_script_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *script, *line;
    } cases[] = {
        { "frobnicate\n", "line 1" },
        { "\n# x\nexchange thrice\n", "line 3" },
        { "exchange times 0\n", "line 1" },
        { "match GET /x\n", "line 1" },
        { "exchange\nmatch GET\n", "line 2" },
        { "exchange\nmatch GET /x\nmatch GET /y\n", "line 3" },
        { "exchange\nmatch GET /x\npiece a\n", "line 3" },
        { "exchange\nmatch GET /x\nstatus 20x\n", "line 3" },
        { "exchange\nmatch GET /x\nstatus 200\nstatus 200\n", "line 4" },
        { "exchange\nmatch GET /x\nstatus 200\npiece \\q\n", "line 4" },
        { "exchange\nmatch GET /x\nstatus 200\ncut\npiece a\n", "line 5" },
        { "exchange\nmatch GET /x\nstatus 200\nend\npiece a\n", "line 5" },
        { "exchange\nmatch GET /x\nstatus 200\nwait 16\n", "line 4" },
        { "exchange\nmatch GET /x\nstatus 200\nstall soon\n", "line 4" },
        { "exchange\nmatch GET /x\nafter 5 wait\n", "line 3" },
        { "exchange\nmatch GET /x\nrecorded no-such-recording\n", "line 3" },
        { "exchange\nmatch GET /x\nexchange\n", "line 3: the exchange above has no answer" },
        { "exchange\nstatus 200\n", "line 2: the exchange above has no match" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        struct replay_options options = { .script = cases[i].script, .plain = true };
        struct kinf_error err = KINF_ERROR_INIT;
        struct replay *replay = NULL;

        assert_true(replay_start(&options, &replay, &err) < 0);
        assert_null(replay);
        if (strstr(err.message, cases[i].line) == NULL)
            fail_msg("'%s': %s", cases[i].script, err.message);
    }
}

static void a_script_survives_every_failed_allocation(void **state)
{
    static const char text[] = "exchange times 3\nmatch GET /x* a=1 !b\nstatus 200\nheader A: b\n"
                               "piece abc\nfill 3 x\nerror 410 Expired old\nwait 1\nreset\n"
                               "exchange always\nmatch GET /y\nfailure 500 InternalError x\n";
    bool failed = true;

    (void)state;
    for (size_t n = 1; failed; n++) {
        struct replay__script script = REPLAY__SCRIPT_INIT;
        int result;

        test_fail_allocation(n);
        result = replay__script_parse(&script, text, "", NULL);
        failed = test_allocation_failed();
        assert_int_equal(result, failed ? KINF_ERR_NO_MEMORY : 0);
        replay__script_release(&script);
    }
}

static void the_client_library_discovers_types(void **state)
{
    struct replay *replay = start("exchange once\nmatch GET /never\nstatus 200\n");
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type = NULL;
    char path[] = "/tmp/kinformer-test-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(replay_write_kubeconfig(replay, path, &err), 0);
    options.kubeconfig = path;
    if (kinf_client_new(&options, &client, &err) < 0 ||
        kinf_client_find_type(client, "pods", &type, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(type->kind, "Pod");
    if (kinf_client_find_type(client, "widgets.example.com", &type, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(type->kind, "Widget");
    assert_int_equal(replay_n_requests(replay), 0);
    assert_int_equal(replay_n_violations(replay), 0);
    unlink(path);
    replay_stop(replay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recording_is_played_byte_by_byte),
        cmocka_unit_test(each_recorded_chunk_is_one_write),
        cmocka_unit_test(a_recorded_end_is_repeated),
        cmocka_unit_test(a_written_answer_is_framed_as_told),
        cmocka_unit_test(failures_come_as_status_objects),
        cmocka_unit_test(a_connection_ends_as_told),
        cmocka_unit_test(an_answer_is_cut_at_every_offset),
        cmocka_unit_test(a_wait_goes_on_at_its_signal_only),
        cmocka_unit_test(a_stalled_connection_ends_when_its_client_leaves),
        cmocka_unit_test(stop_ends_whatever_a_connection_does),
        cmocka_unit_test(matchers_tell_requests_apart),
        cmocka_unit_test(exchanges_are_used_in_order_and_as_often_as_told),
        cmocka_unit_test(an_unexpected_request_is_a_violation),
        cmocka_unit_test(requests_are_listed_with_what_they_said),
        cmocka_unit_test(requests_in_one_write_are_answered_in_order),
        cmocka_unit_test(an_answer_counts_when_nothing_more_can_come),
        cmocka_unit_test(a_tls_hello_to_a_plain_port_is_a_bad_request),
        cmocka_unit_test(a_wrong_script_is_refused_with_its_line),
        cmocka_unit_test(a_script_survives_every_failed_allocation),
        cmocka_unit_test(the_client_library_discovers_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
