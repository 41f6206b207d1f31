/*
 * Replies as exchanges. Neighbours: tests/replay plays them, and keeps the requests.
 */
#include "unit/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "replay/replay_priv.h"
#include "unit/test.h"

#define WAIT_MS 60000
#define LET_GO  1 /* the signal */

static void must(int r)
{
    assert_int_equal(r, 0);
}

/* --- replies --- */

static void add_written(struct replay__response *response, const struct test_reply *reply)
{
    size_t start = response->wire.len;

    must(kinf__buffer_printf(&response->wire,
                             "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%s"
                             "Transfer-Encoding: chunked\r\n\r\n",
                             reply->status != NULL ? reply->status : "200 OK",
                             reply->headers != NULL ? reply->headers : ""));
    must(replay__response_send_wire(response, start));
    if (reply->body != NULL)
        must(replay__response_send_chunk(response, kinf_str_from(reply->body)));
    if (reply->end == TEST_END_CLEAN)
        must(replay__response_send(response, KINF_STR("0\r\n\r\n")));
}

static void add_reply(struct replay__script *script, const struct test_reply *reply,
                      size_t max_uses)
{
    const struct replay__action hold = { .type = REPLAY__WAIT, .signal = LET_GO },
                                cut = { .type = REPLAY__CUT }, silence = { .type = REPLAY__STALL };
    struct replay__exchange *exchange = replay__script_add(script);

    assert_non_null(exchange);
    exchange->max_uses = max_uses;
    exchange->matcher.path = reply->path != NULL ? strdup(reply->path) : NULL;
    if (reply->is_held)
        must(replay__response_add(&exchange->response, hold));
    if (reply->raw != NULL)
        must(replay__response_send(&exchange->response,
                                   (struct kinf_str){ reply->raw, reply->raw_len }));
    else if (reply->end != TEST_NO_REPLY)
        add_written(&exchange->response, reply);
    if (reply->raw_more != NULL) {
        must(replay__response_add(&exchange->response, hold));
        must(replay__response_send(&exchange->response, kinf_str_from(reply->raw_more)));
    }
    if (reply->end != TEST_END_CLEAN)
        must(replay__response_add(&exchange->response, reply->end == TEST_END_CUT ? cut : silence));
}

struct replay *test_server_start_with(const struct test_reply *replies, size_t n_replies,
                                      const struct replay_options *options)
{
    static const struct test_reply none = { .end = TEST_NO_REPLY },
                                   not_found = { .status = "404 Not Found",
                                                 .body = "404 page not found\n" };
    struct replay__script script = { .has_discovery = false };
    struct kinf_error err = KINF_ERROR_INIT;
    struct replay *server;

    for (size_t i = 0; i < n_replies; i++)
        add_reply(&script, &replies[i], replies[i].path != NULL ? 0 : 1);
    add_reply(&script, n_replies != 0 && replies[0].path != NULL ? &not_found : &none, 0);
    if (replay__start(options, script, &server, &err) < 0)
        fail_msg("%s", err.message);
    return server;
}

struct replay *test_server_start(const struct test_reply *replies, size_t n_replies)
{
    const struct replay_options plain = { .plain = true };

    return test_server_start_with(replies, n_replies, &plain);
}

/* --- requests --- */

void test_server_wait(struct replay *server, size_t n)
{
    if (!replay_wait_answered(server, n, WAIT_MS))
        fail_msg("%zu requests did not come in time:\n%s", n, test_server_targets(server));
}

void test_server_let_go(struct replay *server)
{
    replay_signal(server, LET_GO);
}

typedef int append_cb(struct kinf__buffer *text, const struct replay_request *request);

static char *each_request(struct replay *server, append_cb *append)
{
    struct kinf__buffer text = KINF__BUFFER_INIT;
    size_t n = replay_n_requests(server);

    for (size_t i = 0; i < n; i++)
        must(append(&text, replay_wait_request(server, i, 0)));
    assert_non_null(kinf__buffer_cstr(&text));
    return text.bytes;
}

/* The length of "GET /x" in "GET /x HTTP/1.1". */
static int asked_len(const struct replay_request *request)
{
    return (int)(strrchr(request->line, ' ') - request->line);
}

static int append_target(struct kinf__buffer *text, const struct replay_request *request)
{
    int method_len = (int)strcspn(request->line, " ") + 1;

    return kinf__buffer_printf(text, "%.*s\n", asked_len(request) - method_len,
                               request->line + method_len);
}

char *test_server_targets(struct replay *server)
{
    return each_request(server, append_target);
}

static int append_accept(struct kinf__buffer *text, const struct replay_request *request)
{
    char accept[512] = "";

    replay_request_header(request, "Accept", accept, sizeof accept);
    return kinf__buffer_printf(text, "%s\n", accept);
}

char *test_server_accepts(struct replay *server)
{
    return each_request(server, append_accept);
}

static int append_request(struct kinf__buffer *text, const struct replay_request *request)
{
    char type[128] = "-";

    replay_request_header(request, "Content-Type", type, sizeof type);
    return kinf__buffer_printf(text, "%.*s %s %s\n", asked_len(request), request->line, type,
                               request->body != NULL ? request->body : "-");
}

char *test_server_requests(struct replay *server)
{
    return each_request(server, append_request);
}

static int append_head(struct kinf__buffer *text, const struct replay_request *request)
{
    return kinf__buffer_printf(text, "%s\r\n%s\r\n", request->line, request->headers);
}

char *test_server_heads(struct replay *server)
{
    return each_request(server, append_head);
}

/* --- clients --- */

int test_client_new(const char *kubeconfig, const struct kinf_client_options *options,
                    struct kinf_client **ret_client, struct kinf_error *err)
{
    struct kinf_client_options with_file = KINF_CLIENT_OPTIONS_INIT;
    char path[] = "/tmp/kinformer-test-XXXXXX";
    KINF__AUTO_CLOSE int fd = mkstemp(path);
    int failed;

    assert_true(fd >= 0);
    assert_true(dprintf(fd, "%s", kubeconfig) > 0);
    if (options != NULL)
        with_file = *options;
    with_file.kubeconfig = path;
    failed = kinf_client_new(&with_file, ret_client, err);
    unlink(path);
    return failed;
}

struct kinf_client *test_client_of(unsigned port, const struct kinf_client_options *options)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_client *client;
    char text[256];

    snprintf(text, sizeof text,
             "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
             "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n",
             port);
    if (test_client_new(text, options, &client, &err) < 0)
        fail_msg("%s", err.message);
    return client;
}

/* --- listeners --- */

static struct sockaddr_in loopback(unsigned port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

int test_listen(int backlog, unsigned *ret_port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    must(bind(fd, (struct sockaddr *)&address, size));
    must(listen(fd, backlog));
    must(getsockname(fd, (struct sockaddr *)&address, &size));
    *ret_port = ntohs(address.sin_port);
    return fd;
}

void test_deaf_port_open(struct test_deaf_port *deaf)
{
    struct sockaddr_in address;

    deaf->fds[0] = test_listen(0, &deaf->port);
    address = loopback(deaf->port);
    for (size_t i = 1; i < KINF__ARRAY_LEN(deaf->fds); i++) {
        deaf->fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(deaf->fds[i], (struct sockaddr *)&address, sizeof address);
    }
}

void test_deaf_port_close(struct test_deaf_port *deaf)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(deaf->fds); i++)
        close(deaf->fds[i]);
}

/* --- certificates --- */

struct kinf__key_pair test_key_pair(const char *name, const char *alt_names, long valid_s,
                                    const struct kinf__key_pair *issuer)
{
    const struct kinf__key_pair_options options = {
        .name = name, .alt_names = alt_names, .valid_s = valid_s, .issuer = issuer
    };
    struct kinf__key_pair pair;
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf__key_pair_make(&options, &pair, &err) < 0)
        fail_msg("%s", err.message);
    return pair;
}
