/*
 * HTTP exchanges against a scripted server: how each response ends, and how each
 * wait is left.
 */
#include "rest/http.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "rest/client.h"
#include "rest/inflate.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define STOP_LIMIT_MS 200
#define LONG_MS       20000

/* `more` goes behind the server in the kubeconfig. */
static struct kinf_client *client_with(const char *server_url, const char *more)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_client *client;
    char text[512];

    snprintf(text, sizeof text,
             "clusters: [{name: c, cluster: {server: \"%s\"%s}}]\n"
             "users: [{name: u, user: {token: secret}}]\n"
             "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
             server_url, more);
    if (test_client_new(text, NULL, &client, &err) < 0)
        fail_msg("%s", err.message);
    return client;
}

/* What one test holds. */
struct fixture {
    struct replay *server;
    struct kinf_client *client;
    struct kinf__waker waker;
    struct kinf__http *http;
    struct kinf__buffer body;
    struct kinf_error err;
    int64_t head_timeout_ms, idle_timeout_ms, total_timeout_ms;
    bool refuse_body;
    int64_t slow_ms;    /* what the first piece of a body takes */
    int64_t piece_ms;   /* what each piece takes */
    bool asks_in_pause; /* for more, once something came */
};

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;

    assert_int_equal(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

/* Whatever the test is about: our end of its connection looks for a vanished peer. */
static void check_connection(struct fixture *f)
{
    struct sockaddr_in peer;
    size_t n_found = 0;

    for (int fd = 0; fd < 256; fd++) {
        socklen_t size = sizeof peer;

        if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0 || peer.sin_family != AF_INET ||
            ntohs(peer.sin_port) != replay_port(f->server))
            continue;
        n_found++;
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_int_equal(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 30);
        assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL), 10);
        assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
        assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000);
    }
    assert_int_equal(n_found, 1);
}

static int keep_body(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct fixture *f = ctx;

    (void)err;
    if (f->refuse_body)
        return KINF_ERR_LIMIT;
    if (f->slow_ms != 0 && f->body.len == 0) {
        kinf__waker_wait(&f->waker, f->slow_ms);
        test_server_let_go(f->server);
    }
    if (f->piece_ms != 0)
        poll(NULL, 0, (int)f->piece_ms);
    if (f->body.len == 0)
        check_connection(f);
    assert_int_equal(kinf__buffer_append(&f->body, bytes, len), 0);
    return 0;
}

static void take_pause(void *ctx)
{
    struct fixture *f = ctx;

    if (f->asks_in_pause && f->body.len != 0)
        test_server_let_go(f->server);
}

/* Exchanges the client, for one of another URL. */
static void use(struct fixture *f, const char *url, const char *more)
{
    kinf__http_free(f->http);
    kinf_client_free(f->client);
    f->client = client_with(url, more);
    assert_int_equal(kinf__http_new(f->client, &f->waker, &f->http, NULL), 0);
}

static void begin_with(struct fixture *f, const struct test_reply *reply)
{
    memset(f, 0, sizeof *f);
    f->server = test_server_start(reply, 1);
    assert_int_equal(kinf__waker_init(&f->waker, NULL), 0);
    use(f, replay_url(f->server), "");
}

/* Each request gets the bytes, and then the end or nothing more. */
static void begin(struct fixture *f, const char *bytes, size_t len, bool stays_open)
{
    const struct test_reply reply = {
        .path = "/x", .raw = bytes, .raw_len = len, .end = stays_open ? TEST_END_OPEN : TEST_END_CUT
    };

    begin_with(f, &reply);
}

static void end(struct fixture *f)
{
    kinf__http_free(f->http);
    kinf__waker_release(&f->waker);
    kinf_client_free(f->client);
    kinf__buffer_release(&f->body);
    replay_stop(f->server);
}

static int get(struct fixture *f)
{
    const struct kinf__http_request request = { .target = "/x?y=1",
                                                .head_timeout_ms = f->head_timeout_ms,
                                                .idle_timeout_ms = f->idle_timeout_ms,
                                                .total_timeout_ms = f->total_timeout_ms,
                                                .on_body = keep_body,
                                                .on_pause = take_pause,
                                                .ctx = f };

    return kinf__http_perform(f->http, &request, &f->err);
}

static int get_once(struct fixture *f, const char *response, bool stays_open)
{
    begin(f, response, strlen(response), stays_open);
    return get(f);
}

static void assert_body(struct fixture *f, const char *expected)
{
    assert_int_equal(f->body.len, strlen(expected));
    assert_memory_equal(f->body.bytes, expected, f->body.len);
}

static void complete_bodies_end_well(void **state)
{
    KINF__AUTO_FREE char *request = NULL;
    struct fixture f;

    (void)state;
    assert_int_equal(get_once(&f, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false), 0);
    assert_body(&f, "hello");
    request = test_server_heads(f.server);
    assert_non_null(strstr(request, "GET /x?y=1 HTTP/1.1\r\n"));
    assert_non_null(strstr(request, "Accept: application/json\r\n"));
    assert_non_null(strstr(request, "Accept-Encoding: identity\r\n"));
    assert_non_null(strstr(request, "User-Agent: kinformer/"));
    /* Credentials never travel in the clear. */
    assert_null(strstr(request, "Authorization"));
    end(&f);
    assert_int_equal(get_once(&f,
                              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
                              true),
                     0);
    assert_body(&f, "hello");
    end(&f);
}

static void a_body_cut_short_is_a_network_error(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(get_once(&f,
                              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "2\r\nhe\r\n3\r\nllo\r\n",
                              false),
                     KINF_ERR_NETWORK);
    assert_non_null(strstr(f.err.message, "cut short"));
    end(&f);
    assert_int_equal(get_once(&f, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", false),
                     KINF_ERR_NETWORK);
    end(&f);
    assert_int_equal(get_once(&f, "", false), KINF_ERR_NETWORK);
    assert_int_equal(strncmp(f.err.message, "server 127.0.0.1:", 17), 0);
    end(&f);
}

static void what_is_no_http_is_a_network_error(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(get_once(&f, "SSH-2.0-x\r\n", false), KINF_ERR_NETWORK);
    assert_int_equal(strncmp(f.err.message, "server 127.0.0.1:", 17), 0);
    end(&f);
}

static void a_refusal_is_told_with_its_status(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(get_once(&f,
                              "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\n"
                              "Retry-After: 7\r\nContent-Length: 4\r\n\r\nlate",
                              true),
                     KINF_ERR_TOO_MANY_REQUESTS);
    assert_int_equal(f.err.http_status, 429);
    assert_int_equal(f.err.retry_after_ms, 7000);
    assert_int_equal(f.body.len, 0);
    end(&f);
    assert_int_equal(
        get_once(
            &f,
            "HTTP/1.1 410 Gone\r\nContent-Length: 101\r\n\r\n"
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"old\","
            "\"reason\":\"Expired\",\"code\":410}    ",
            true),
        KINF_ERR_EXPIRED);
    assert_non_null(strstr(f.err.message, "127.0.0.1:"));
    end(&f);
    assert_int_equal(
        get_once(&f,
                 "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
                 true),
        KINF_ERR_SERVER);
    end(&f);
}

static void a_time_to_come_back_is_in_seconds(void **state)
{
    static const struct {
        const char *value;
        unsigned wait_ms;
    } rows[] = {
        { "1", 1000 },
        { "  32 ", 32000 },
        { "0", 0 },
        { "", 0 },
        { "Fri, 31 Dec 2100 23:59:59 GMT", 0 },
        { "-5", 0 },
        { "1.5", 0 },
        { "7s", 0 },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct fixture f;
        char text[128];

        snprintf(text, sizeof text,
                 "HTTP/1.1 503 Unavailable\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n",
                 rows[i].value);
        assert_int_equal(get_once(&f, text, true), KINF_ERR_SERVER);
        assert_int_equal(f.err.retry_after_ms, rows[i].wait_ms);
        end(&f);
    }
}

/* Half a megabyte and no end. */
static void a_refusal_without_end_is_left(void **state)
{
    static const char head[] = "HTTP/1.1 503 Service Unavailable\r\n\r\n";
    static char response[1 << 19];
    struct fixture f;

    (void)state;
    memset(response, 'x', sizeof response);
    memcpy(response, head, sizeof head - 1);
    begin(&f, response, sizeof response, true);
    f.total_timeout_ms = LONG_MS;
    assert_int_equal(get(&f), KINF_ERR_SERVER);
    assert_int_equal(f.err.http_status, 503);
    end(&f);
    assert_int_equal(
        get_once(&f, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 99\r\n\r\ncut", false),
        KINF_ERR_UNAUTHORIZED);
    end(&f);
}

/* The code that a recorded refusal has to give. */
static int expected_code(int status, const char *text)
{
    if (status == 504 && strstr(text, "ResourceVersionTooLarge") != NULL)
        return KINF_ERR_RV_TOO_LARGE;
    if (status == 409 && strstr(text, "AlreadyExists") != NULL)
        return KINF_ERR_EXISTS;
    switch (status) {
    case 401:
        return KINF_ERR_UNAUTHORIZED;
    case 403:
        return KINF_ERR_FORBIDDEN;
    case 404:
        return KINF_ERR_NOT_FOUND;
    case 409:
        return KINF_ERR_CONFLICT;
    case 410:
        return KINF_ERR_EXPIRED;
    case 429:
        return KINF_ERR_TOO_MANY_REQUESTS;
    default:
        return KINF_ERR_SERVER;
    }
}

static bool exchange_recorded(const char *name)
{
    char file[300];
    size_t len;
    const char *retry_after;
    char *text;
    struct fixture f;
    int status;

    snprintf(file, sizeof file, "transcripts/%s", name);
    text = test_read_data(file, &len);
    status = (int)strtol(text + strcspn(text, " "), NULL, 10);
    if (status >= 400) {
        retry_after = strstr(text, "Retry-After: ");
        begin(&f, text, len, false);
        if (get(&f) != expected_code(status, text))
            fail_msg("%s: %s", name, f.err.message);
        assert_int_equal(f.err.http_status, status);
        if (retry_after != NULL)
            assert_int_equal(f.err.retry_after_ms, 1000 * strtol(retry_after + 13, NULL, 10));
        assert_null(strchr(f.err.message, '\n'));
        assert_int_equal(f.body.len, 0);
        end(&f);
    }
    free(text);
    return status >= 400;
}

static void every_recorded_refusal_comes_through(void **state)
{
    char path[512];
    size_t n = 0;
    const struct dirent *entry;
    DIR *dir;

    (void)state;
    snprintf(path, sizeof path, "%s/transcripts", test_data_dir());
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "05", 2) >= 0 && strncmp(entry->d_name, "10", 2) <= 0 &&
            strstr(entry->d_name, ".http") != NULL && exchange_recorded(entry->d_name))
            n++;
    }
    closedir(dir);
    assert_true(n > 50);
}

static void the_callback_ends_an_exchange(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 43, true);
    f.refuse_body = true;
    assert_int_equal(get(&f), KINF_ERR_LIMIT);
    end(&f);
}

static void gzip_members_are_inflated_one_behind_the_other(void **state)
{
    struct fixture f;
    size_t len, body_len;
    char *response = test_read_data("transcripts/03-watchlist-gzip.http", &len);
    char *body = test_read_data("transcripts/03-watchlist-gzip.body", &body_len);

    (void)state;
    begin(&f, response, len, true);
    assert_int_equal(get(&f), 0);
    assert_int_equal(f.body.len, body_len);
    assert_memory_equal(f.body.bytes, body, body_len);
    end(&f);
    free(response);
    free(body);
}

static int append_inflated(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    (void)err;
    return kinf__buffer_append(ctx, bytes, len);
}

/* "a" */
static const unsigned char member[] = { 0x1f, 0x8b, 8,    0,    0,    0,    0, 0, 0, 3, 0x4b,
                                        4,    0,    0x43, 0xbe, 0xb7, 0xe8, 1, 0, 0, 0 };

static void a_member_may_come_in_several_chunks(void **state)
{
    KINF__AUTO_BUFFER response = KINF__BUFFER_INIT;
    struct fixture f;

    (void)state;
    assert_int_equal(kinf__buffer_printf(&response, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
                                                    "Transfer-Encoding: chunked\r\n\r\n"),
                     0);
    for (size_t i = 0; i < sizeof member; i++) {
        assert_int_equal(kinf__buffer_append(&response, "1\r\n", 3), 0);
        assert_int_equal(kinf__buffer_append(&response, (const char *)member + i, 1), 0);
        assert_int_equal(kinf__buffer_append(&response, "\r\n", 2), 0);
    }
    assert_int_equal(kinf__buffer_append(&response, "0\r\n\r\n", 5), 0);
    begin(&f, response.bytes, response.len, true);
    assert_int_equal(get(&f), 0);
    assert_body(&f, "a");
    end(&f);
}

/* Cut at every place, byte by byte. */
static void inflating_needs_no_whole_member(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__inflate *inflate = NULL;

    (void)state;
    assert_int_equal(kinf__inflate_new(&inflate, NULL), 0);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof member; i++) {
            assert_int_equal(kinf__inflate_is_complete(inflate), i == 0);
            assert_int_equal(kinf__inflate_feed(inflate, (const char *)member + i, 1,
                                                append_inflated, &out, NULL),
                             0);
        }
    }
    assert_int_equal(out.len, 3);
    assert_memory_equal(out.bytes, "aaa", 3);
    assert_int_equal(kinf__inflate_feed(inflate, "no gzip", 7, append_inflated, &out, NULL),
                     KINF_ERR_PARSE);
    kinf__inflate_free(inflate);
}

/* Output that ends where the buffer does leaves nothing to ask for. */
static void inflating_ends_where_the_buffer_does(void **state)
{
    static unsigned char plain[1 << 17], packed[1 << 12];
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__inflate *inflate = NULL;
    z_stream deflater = { .next_in = plain, .avail_in = sizeof plain, .next_out = packed };

    (void)state;
    deflater.avail_out = sizeof packed;
    assert_int_equal(deflateInit2(&deflater, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&deflater, Z_FINISH), Z_STREAM_END);
    assert_int_equal(kinf__inflate_new(&inflate, NULL), 0);
    assert_int_equal(kinf__inflate_feed(inflate, (const char *)packed, deflater.total_out,
                                        append_inflated, &out, NULL),
                     0);
    assert_int_equal(out.len, sizeof plain);
    assert_true(kinf__inflate_is_complete(inflate));
    kinf__inflate_free(inflate);
    deflateEnd(&deflater);
}

static void a_refused_connection_names_the_host(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, "", 0, false);
    replay_stop(KINF__TAKE(f.server));
    assert_int_equal(get(&f), KINF_ERR_NETWORK);
    assert_non_null(strstr(f.err.message, "127.0.0.1:"));
    assert_non_null(strstr(f.err.message, "Connection refused"));
    end(&f);
}

static void a_lack_of_descriptors_is_called_so(void **state)
{
    static const char response[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    struct rlimit before, none_left;
    struct fixture f;

    (void)state;
    begin(&f, response, strlen(response), false);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none_left = before;
    none_left.rlim_cur = (rlim_t)dup(f.waker.fd);
    close((int)none_left.rlim_cur);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    assert_int_equal(get(&f), KINF_ERR_SYSTEM);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(f.err.sys_errno, EMFILE);
    assert_non_null(strstr(f.err.message, "Too many open files"));
    assert_int_equal(get(&f), 0);
    assert_body(&f, "hello");
    end(&f);
}

static void each_time_is_limited(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, "", 0, true);
    f.head_timeout_ms = 30;
    assert_int_equal(get(&f), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(f.err.message, "no answer"));
    end(&f);
    begin(&f, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 43, true);
    f.idle_timeout_ms = 30;
    assert_int_equal(get(&f), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(f.err.message, "silent"));
    assert_body(&f, "hello");
    end(&f);
    begin(&f, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 43, true);
    f.total_timeout_ms = 30;
    assert_int_equal(get(&f), KINF_ERR_TIMEOUT);
    end(&f);
}

/* "hello", and the rest once it is asked for. */
static const struct test_reply in_two_pieces = {
    .raw = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
    .raw_len = 43,
    .raw_more = " you",
    .end = TEST_END_OPEN,
};

/* What the callback takes is not the peer's silence. */
static void a_slow_callback_is_no_silence(void **state)
{
    struct fixture f;

    (void)state;
    begin_with(&f, &in_two_pieces);
    f.slow_ms = 450;
    f.idle_timeout_ms = 400;
    if (get(&f) < 0)
        fail_msg("%s", f.err.message);
    assert_body(&f, "hello you");
    end(&f);
}

static void a_pause_is_told_before_the_wait(void **state)
{
    struct fixture f;

    (void)state;
    begin_with(&f, &in_two_pieces);
    f.asks_in_pause = true;
    f.idle_timeout_ms = 2000;
    assert_int_equal(get(&f), 0);
    assert_body(&f, "hello you");
    end(&f);
}

static void the_proxy_of_the_kubeconfig_is_taken(void **state)
{
    static const struct test_reply ok = { .body = "ok" };
    KINF__AUTO_FREE char *targets = NULL;
    struct fixture f;
    char proxy[80];

    (void)state;
    begin_with(&f, &ok);
    snprintf(proxy, sizeof proxy, ", proxy-url: '%s'", replay_url(f.server));
    use(&f, "http://cluster.invalid:8080", proxy);
    assert_int_equal(setenv("no_proxy", "*", 1), 0);
    assert_int_equal(get(&f), 0);
    targets = test_server_targets(f.server);
    assert_string_equal(targets, "http://cluster.invalid:8080/x?y=1\n");
    unsetenv("no_proxy");
    end(&f);
}

/* The proxy would be at a port where nobody is; a server at 0.0.0.0 is this machine, but is not known
 * as it. */
static void no_proxy_is_read_as_go_reads_it(void **state)
{
    static const struct test_reply ok = { .path = "/x", .body = "ok" };
    static const struct {
        const char *upper, *lower;
        bool is_direct;
    } rows[] = {
        { "", "", false },
        { "0.0.0.0/8", "", true },
        { "", "a.example,0.0.0.0:PORT", true },
        { "0.0.0.0:1", "", false },
        { "a.example", "*", false },
    };
    struct fixture f;
    char url[64];

    (void)state;
    begin_with(&f, &ok);
    snprintf(url, sizeof url, "http://0.0.0.0:%u", replay_port(f.server));
    use(&f, url, "");
    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        char lower[64];

        snprintf(lower, sizeof lower, "%s", rows[i].lower);
        if (strstr(lower, "PORT") != NULL)
            snprintf(strstr(lower, "PORT"), 6, "%u", replay_port(f.server));
        assert_int_equal(setenv("NO_PROXY", rows[i].upper, 1), 0);
        assert_int_equal(setenv("no_proxy", lower, 1), 0);
        use(&f, url, "");
        assert_int_equal(get(&f), rows[i].is_direct ? 0 : KINF_ERR_NETWORK);
    }
    unsetenv("http_proxy");
    unsetenv("NO_PROXY");
    unsetenv("no_proxy");
    end(&f);
}

/* curl quotes them whole. */
static void no_error_tells_a_proxys_password(void **state)
{
    static const struct test_reply ok = { .body = "ok" };
    static const char *const proxies[] = { "http://me:s3cret/word@127.0.0.1:1",
                                           "me:s3cret/word@127.0.0.1:1",
                                           "ftp://me:s3cret@127.0.0.1:1", "ftp://s3cret" };
    struct fixture f;

    (void)state;
    begin_with(&f, &ok);
    use(&f, "http://cluster.invalid:8080", "");
    for (size_t i = 0; i < KINF__ARRAY_LEN(proxies); i++) {
        assert_int_equal(setenv("http_proxy", proxies[i], 1), 0);
        assert_int_equal(get(&f), KINF_ERR_NETWORK);
        if (strstr(f.err.message, "s3cret") != NULL || strstr(f.err.message, "proxy") == NULL)
            fail_msg("%s", f.err.message);
    }
    unsetenv("http_proxy");
    end(&f);
}

static void *set_soon(void *ctx)
{
    struct timespec delay = { 0, 30 * 1000 * 1000 };

    nanosleep(&delay, NULL);
    kinf__waker_set(ctx);
    return NULL;
}

static void assert_stops(struct fixture *f)
{
    int64_t began_ms = kinf__clock_now_ms();
    pthread_t thread;

    assert_int_equal(kinf__thread_start(&thread, "setter", set_soon, &f->waker, NULL), 0);
    assert_int_equal(get(f), KINF_ERR_STOPPED);
    assert_true(kinf__clock_now_ms() - began_ms < STOP_LIMIT_MS);
    pthread_join(thread, NULL);
}

static void the_waker_ends_every_wait(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, "", 0, true);
    assert_stops(&f);
    end(&f);
    begin(&f, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 43, true);
    assert_stops(&f);
    assert_int_equal(get(&f), KINF_ERR_STOPPED);
    end(&f);
}

/* A server that is always ahead leaves curl no reason to come back by itself. */
static void a_body_that_never_pauses_can_be_left(void **state)
{
    static char response[16 << 20];
    struct fixture f;

    (void)state;
    memset(response, ' ', sizeof response);
    memcpy(response, "HTTP/1.1 200 OK\r\n\r\n", 19);
    begin(&f, response, sizeof response, false);
    f.piece_ms = 5;
    assert_stops(&f);
    kinf__waker_clear(&f.waker);
    f.total_timeout_ms = 60;
    assert_int_equal(get(&f), KINF_ERR_TIMEOUT);
    end(&f);
}

/* In place of the system's: libcurl resolves names here, on a thread of its own, which nobody can
 * stop. It is left when the test is over. */
static struct kinf__waker resolver_may_end;

__attribute__((visibility("default"))) int getaddrinfo(const char *restrict name,
                                                       const char *restrict service,
                                                       const struct addrinfo *restrict hints,
                                                       struct addrinfo **restrict ret_list)
{
    (void)name;
    (void)service;
    (void)hints;
    (void)ret_list;
    kinf__waker_wait(&resolver_may_end, LONG_MS);
    return EAI_AGAIN;
}

static void the_waker_ends_resolving(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(kinf__waker_init(&resolver_may_end, NULL), 0);
    begin(&f, "", 0, false);
    use(&f, "http://slow.invalid", "");
    assert_stops(&f);
    end(&f);
    kinf__waker_set(&resolver_may_end);
}

static void the_waker_ends_connecting(void **state)
{
    struct test_deaf_port deaf;
    struct fixture f;
    char url[64];

    (void)state;
    test_deaf_port_open(&deaf);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", deaf.port);
    begin(&f, "", 0, false);
    use(&f, url, "");
    assert_stops(&f);
    end(&f);
    test_deaf_port_close(&deaf);
}

static void a_connection_is_kept_and_can_be_dropped(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(get_once(&f, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false), 0);
    kinf__http_disconnect(f.http);
    assert_int_equal(get(&f), 0);
    assert_body(&f, "okok");
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_bodies_end_well),
        cmocka_unit_test(a_body_cut_short_is_a_network_error),
        cmocka_unit_test(what_is_no_http_is_a_network_error),
        cmocka_unit_test(a_refusal_is_told_with_its_status),
        cmocka_unit_test(a_time_to_come_back_is_in_seconds),
        cmocka_unit_test(a_refusal_without_end_is_left),
        cmocka_unit_test(every_recorded_refusal_comes_through),
        cmocka_unit_test(the_callback_ends_an_exchange),
        cmocka_unit_test(gzip_members_are_inflated_one_behind_the_other),
        cmocka_unit_test(a_member_may_come_in_several_chunks),
        cmocka_unit_test(inflating_needs_no_whole_member),
        cmocka_unit_test(inflating_ends_where_the_buffer_does),
        cmocka_unit_test(a_refused_connection_names_the_host),
        cmocka_unit_test(a_lack_of_descriptors_is_called_so),
        cmocka_unit_test(each_time_is_limited),
        cmocka_unit_test(a_slow_callback_is_no_silence),
        cmocka_unit_test(a_pause_is_told_before_the_wait),
        cmocka_unit_test(the_proxy_of_the_kubeconfig_is_taken),
        cmocka_unit_test(no_proxy_is_read_as_go_reads_it),
        cmocka_unit_test(no_error_tells_a_proxys_password),
        cmocka_unit_test(the_waker_ends_every_wait),
        cmocka_unit_test(a_body_that_never_pauses_can_be_left),
        cmocka_unit_test(the_waker_ends_resolving),
        cmocka_unit_test(the_waker_ends_connecting),
        cmocka_unit_test(a_connection_is_kept_and_can_be_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
