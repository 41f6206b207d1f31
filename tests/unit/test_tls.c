/*
 * Certificates and credentials against a TLS server: who is trusted, what is said when not, what
 * the server gets to see.
 */
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <fcntl.h>
#include <poll.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/thread.h"
#include "rest/client.h"
#include "rest/http.h"
#include "rest/transport.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define AN_HOUR       3600
#define STOP_LIMIT_MS 200

static const struct test_reply replies[] = {
    { .path = "/ok", .body = "{}" },
    { .path = "/refused",
      .status = "401 Unauthorized",
      .body = "{\"status\":\"Failure\",\"code\":401}" },
};

/* Made once: an authority that is trusted, and another. */
static struct kinf__key_pair authority, stranger, server_identity, named_identity, old_identity,
    client_identity, other_client, old_client;

static int make_identities(void **state)
{
    (void)state;
    authority = test_key_pair("authority", NULL, AN_HOUR, NULL);
    stranger = test_key_pair("stranger", NULL, AN_HOUR, NULL);
    server_identity = test_key_pair("127.0.0.1", "IP:127.0.0.1", AN_HOUR, &authority);
    named_identity = test_key_pair("api.internal", "DNS:api.internal", AN_HOUR, &authority);
    old_identity = test_key_pair("127.0.0.1", "IP:127.0.0.1", -AN_HOUR, &authority);
    client_identity = test_key_pair("someone", NULL, AN_HOUR, &authority);
    other_client = test_key_pair("another", NULL, AN_HOUR, &authority);
    old_client = test_key_pair("someone", NULL, -AN_HOUR, &authority);
    return 0;
}

static int release_identities(void **state)
{
    struct kinf__key_pair *const all[] = { &authority,      &stranger,     &server_identity,
                                           &named_identity, &old_identity, &client_identity,
                                           &other_client,   &old_client };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        kinf__key_pair_release(all[i]);
    return 0;
}

/* What a kubeconfig says, besides the address. */
struct setup {
    const char *host; /* NULL: 127.0.0.1 */
    const struct kinf__key_pair *trusted;
    const struct kinf__key_pair *client; /* NULL: a token */
    const char *key_pem;                 /* instead of the client's own */
    const char *cluster_more;            /* ", tls-server-name: x" */
    const char *user;                    /* "token: abc" */
};

static void append_data(struct kinf__buffer *text, const char *key, const char *pem)
{
    size_t len = strlen(pem);
    char *encoded = malloc(len * 4 / 3 + 5);

    assert_non_null(encoded);
    EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)pem, (int)len);
    assert_int_equal(kinf__buffer_printf(text, ", %s: %s", key, encoded), 0);
    free(encoded);
}

static int client_new(unsigned port, const struct setup *setup, struct kinf_client **ret_client,
                      struct kinf_error *err)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    assert_int_equal(kinf__buffer_printf(&text,
                                         "current-context: x\ncontexts: [{name: x, context: "
                                         "{cluster: c, user: u}}]\n"
                                         "clusters: [{name: c, cluster: {server: "
                                         "'https://%s:%u'%s",
                                         setup->host != NULL ? setup->host : "127.0.0.1", port,
                                         setup->cluster_more != NULL ? setup->cluster_more : ""),
                     0);
    if (setup->trusted != NULL)
        append_data(&text, "certificate-authority-data", setup->trusted->cert_pem);
    assert_int_equal(kinf__buffer_printf(&text, "}}]\nusers: [{name: u, user: {%s",
                                         setup->user != NULL ? setup->user : "exec: ~"),
                     0);
    if (setup->client != NULL) {
        append_data(&text, "client-certificate-data", setup->client->cert_pem);
        append_data(&text, "client-key-data",
                    setup->key_pem != NULL ? setup->key_pem : setup->client->key_pem);
    }
    assert_int_equal(kinf__buffer_printf(&text, "}}]\n"), 0);
    return test_client_new(kinf__buffer_cstr(&text), NULL, ret_client, err);
}

struct files;

/* What one exchange needs. */
struct fixture {
    struct files *rotated;
    struct kinf_client *client;
    struct kinf__waker waker;
    struct kinf__http *http;
    struct kinf_error err;
    size_t n_body;
};

static void begin(struct fixture *f, unsigned port, const struct setup *setup)
{
    memset(f, 0, sizeof *f);
    if (client_new(port, setup, &f->client, &f->err) < 0)
        fail_msg("%s", f->err.message);
    assert_int_equal(kinf__waker_init(&f->waker, NULL), 0);
    assert_int_equal(kinf__http_new(f->client, &f->waker, &f->http, NULL), 0);
}

static void end(struct fixture *f)
{
    kinf__http_free(f->http);
    kinf__waker_release(&f->waker);
    kinf_client_free(f->client);
}

static int count(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    (void)bytes;
    (void)err;
    ((struct fixture *)ctx)->n_body += len;
    return 0;
}

static int get(struct fixture *f, const char *target)
{
    const struct kinf__http_request request = {
        .target = target, .total_timeout_ms = 20000, .on_body = count, .ctx = f
    };

    return kinf__http_perform(f->http, &request, &f->err);
}

static void assert_says(const struct kinf_error *err, const char *word)
{
    if (strstr(err->message, word) == NULL || strchr(err->message, '\n') != NULL)
        fail_msg("'%s' does not say '%s' in one line", err->message, word);
}

/* A server of this identity; NULL: a plain one. */
static struct replay *start(const struct kinf__key_pair *identity,
                            const struct kinf__key_pair *client_authority, int tls_version)
{
    const struct replay_options options = { .plain = identity == NULL,
                                            .key_pair = identity,
                                            .client_authority = client_authority,
                                            .tls_version = tls_version };

    return test_server_start_with(replies, KINF__ARRAY_LEN(replies), &options);
}

/* One exchange with such a server. */
static int exchange(const struct kinf__key_pair *identity,
                    const struct kinf__key_pair *client_authority, const struct setup *setup,
                    struct kinf_error *ret_err, char **ret_requests)
{
    struct replay *server = start(identity, client_authority, 0);
    struct fixture f;
    int code;

    begin(&f, replay_port(server), setup);
    code = get(&f, "/ok");
    assert_int_equal(f.n_body, code == 0 ? 2 : 0);
    *ret_err = f.err;
    *ret_requests = test_server_heads(server);
    end(&f);
    replay_stop(server);
    return code;
}

static void the_right_authority_is_trusted(void **state)
{
    const struct setup setup = { .trusted = &authority, .user = "token: abc" };
    struct kinf_error err;
    KINF__AUTO_FREE char *requests = NULL;

    (void)state;
    assert_int_equal(exchange(&server_identity, NULL, &setup, &err, &requests), 0);
    assert_non_null(strstr(requests, "Authorization: Bearer abc\r\n"));
}

static void basic_credentials_are_encoded(void **state)
{
    const struct setup setup = { .trusted = &authority, .user = "username: me, password: 'p w'" };
    struct kinf_error err;
    KINF__AUTO_FREE char *requests = NULL;

    (void)state;
    assert_int_equal(exchange(&server_identity, NULL, &setup, &err, &requests), 0);
    assert_non_null(strstr(requests, "Authorization: Basic bWU6cCB3\r\n"));
}

/* Fails with KINF_ERR_TLS and these words, and the server saw no request. */
static void assert_distrusted(const struct kinf__key_pair *identity,
                              const struct kinf__key_pair *client_authority,
                              const struct setup *setup, const char *word)
{
    struct kinf_error err;
    KINF__AUTO_FREE char *requests = NULL;

    assert_int_equal(exchange(identity, client_authority, setup, &err, &requests), KINF_ERR_TLS);
    assert_says(&err, word);
    assert_says(&err, "127.0.0.1:");
    assert_string_equal(requests, "");
}

static void a_wrong_server_is_distrusted_and_told_why(void **state)
{
    const struct setup right = { .trusted = &authority, .user = "token: abc" },
                       wrong = { .trusted = &stranger, .user = "token: abc" },
                       system = { .user = "token: abc" };

    (void)state;
    assert_distrusted(&server_identity, NULL, &wrong, "the given certificate authority");
    assert_distrusted(&server_identity, NULL, &system, "that this system trusts");
    assert_distrusted(&named_identity, NULL, &right, "another name");
    assert_distrusted(&old_identity, NULL, &right, "expired");
    assert_distrusted(NULL, NULL, &right, "does not speak TLS");
}

static void assert_n_lines(const char *requests, const char *line, size_t expected)
{
    size_t n = 0;

    for (const char *at = requests; (at = strstr(at, line)) != NULL; at++)
        n++;
    assert_int_equal(n, expected);
}

static void tls_server_name_is_what_counts(void **state)
{
    const struct setup right = { .trusted = &authority,
                                 .cluster_more = ", tls-server-name: api.internal" },
                       wrong = { .trusted = &authority,
                                 .cluster_more = ", tls-server-name: other.internal" };
    struct kinf_error err;
    KINF__AUTO_FREE char *requests = NULL;

    (void)state;
    assert_int_equal(exchange(&named_identity, NULL, &right, &err, &requests), 0);
    assert_non_null(strstr(requests, "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:"));
    assert_n_lines(requests, "\r\nHost:", 1);
    assert_distrusted(&named_identity, NULL, &wrong, "another name");
}

static bool take_head(const struct kinf__head *head, void *ctx)
{
    (void)head;
    (void)ctx;
    return true;
}

static void take_end(int code, const struct kinf_error *err, void *ctx)
{
    assert_int_equal(code, 0);
    (void)err;
    *(bool *)ctx = true;
}

static int take_nothing(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    (void)bytes;
    (void)len;
    (void)ctx;
    (void)err;
    return 0;
}

/* One request for another protocol, which is answered as any other. */
static void ask_for_upgrade(struct fixture *f)
{
    static const struct kinf__roundtrip_ops ops = { NULL, take_head, take_nothing, take_end };
    const struct kinf__roundtrip_request request = { .method = "GET",
                                                     .target = KINF_STR("/ok"),
                                                     .limits = { .total_ms = 20000 },
                                                     .is_upgrade = true };
    struct kinf__transport transport = { 0 };
    struct kinf__roundtrip trip;
    bool is_through = false;

    assert_int_equal(kinf__transport_init(&transport, NULL), 0);
    assert_int_equal(kinf__roundtrip_init(&trip, f->client, NULL, 16384, &ops, &is_through, NULL),
                     0);
    assert_int_equal(kinf__roundtrip_prepare(&trip, &request, NULL), 0);
    assert_int_equal(kinf__roundtrip_add(&trip, &transport, NULL), 0);
    while (!is_through) {
        kinf__transport_perform(&transport);
        if (!is_through)
            kinf__transport_wait(&transport, &f->waker, KINF__NEVER_MS);
    }
    kinf__roundtrip_release(&trip);
    kinf__transport_release(&transport);
}

static void tls_server_name_is_no_host_of_upgrades(void **state)
{
    const struct setup setup = { .trusted = &authority,
                                 .cluster_more = ", tls-server-name: api.internal" };
    struct replay *server = start(&named_identity, NULL, 0);
    KINF__AUTO_FREE char *requests = NULL;
    struct fixture f;

    (void)state;
    begin(&f, replay_port(server), &setup);
    ask_for_upgrade(&f);
    requests = test_server_heads(server);
    assert_non_null(strstr(requests, "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:"));
    end(&f);
    replay_stop(server);
}

/* The server is at 0.0.0.0, which is this machine, but is not known as it; nobody is where the proxy
 * would be. */
static void tls_server_name_is_no_name_for_no_proxy(void **state)
{
    static const struct {
        const char *list;
        bool is_direct;
    } rows[] = { { "0.0.0.0/8", true }, { "api.internal", false } };
    struct replay *server = start(&named_identity, NULL, 0);
    const struct setup setup = { .host = "0.0.0.0",
                                 .trusted = &authority,
                                 .cluster_more = ", tls-server-name: api.internal" };

    (void)state;
    assert_int_equal(setenv("HTTPS_PROXY", "http://127.0.0.1:1", 1), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct fixture f;

        assert_int_equal(setenv("NO_PROXY", rows[i].list, 1), 0);
        begin(&f, replay_port(server), &setup);
        assert_int_equal(get(&f, "/ok"), rows[i].is_direct ? 0 : KINF_ERR_NETWORK);
        end(&f);
    }
    unsetenv("HTTPS_PROXY");
    unsetenv("NO_PROXY");
    replay_stop(server);
}

static void insecure_trusts_everyone(void **state)
{
    const struct setup setup = { .cluster_more = ", insecure-skip-tls-verify: true" };
    struct kinf_error err;
    KINF__AUTO_FREE char *requests = NULL;

    (void)state;
    assert_int_equal(exchange(&old_identity, NULL, &setup, &err, &requests), 0);
}

static void a_client_certificate_is_shown(void **state)
{
    const struct setup with = { .trusted = &authority,
                                .client = &client_identity,
                                .user = "exec: ~" },
                       without = { .trusted = &authority, .user = "token: abc" };
    struct kinf_error err;
    KINF__AUTO_FREE char *requests = NULL;

    (void)state;
    assert_int_equal(exchange(&server_identity, &authority, &with, &err, &requests), 0);
    assert_null(strstr(requests, "Authorization"));
    assert_distrusted(&server_identity, &authority, &without, "certificate required");
    assert_distrusted(&server_identity, &stranger, &with, "unknown ca");
}

static void assert_no_client(const struct setup *setup, const char *word)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_client *client = NULL;

    assert_int_equal(client_new(1, setup, &client, &err), KINF_ERR_TLS);
    assert_null(client);
    assert_says(&err, word);
    assert_null(strstr(err.message, "PRIVATE"));
}

static void bad_certificates_are_found_before_connecting(void **state)
{
    const struct kinf__key_pair no_authority = { (char *)"certificate", NULL };
    const struct setup old = { .trusted = &authority, .client = &old_client },
                       mixed = { .trusted = &authority,
                                 .client = &client_identity,
                                 .key_pem = stranger.key_pem },
                       no_key = { .trusted = &authority,
                                  .client = &client_identity,
                                  .key_pem = "-----BEGIN PRIVATE KEY-----\n" },
                       none = { .trusted = &no_authority };

    (void)state;
    assert_no_client(&old, "client certificate expired on ");
    assert_no_client(&mixed, "does not belong to");
    assert_no_client(&no_key, "client key cannot be read");
    assert_no_client(&none, "certificate authority cannot be read");
}

/* The token's file changes between two requests; a refusal makes the new one known at once, on a
 * connection of its own. */
static void after_401_the_token_is_read_again(void **state)
{
    struct replay *server = start(&server_identity, NULL, 0);
    char path[] = "/tmp/kinformer-test-XXXXXX", user[64];
    int fd = mkstemp(path);
    const struct setup setup = { .trusted = &authority, .user = user };
    KINF__AUTO_FREE char *requests = NULL;
    struct fixture f;

    (void)state;
    assert_int_equal(write(fd, "first\n", 6), 6);
    snprintf(user, sizeof user, "tokenFile: %s", path);
    begin(&f, replay_port(server), &setup);
    assert_int_equal(get(&f, "/ok"), 0);
    assert_int_equal(pwrite(fd, "later\n", 6, 0), 6);
    assert_int_equal(get(&f, "/refused"), KINF_ERR_UNAUTHORIZED);
    assert_int_equal(f.err.http_status, 401);
    assert_null(strstr(f.err.message, "first"));
    assert_int_equal(get(&f, "/ok"), 0);
    requests = test_server_heads(server);
    assert_non_null(strstr(requests, "GET /refused"));
    assert_non_null(strstr(strstr(requests, "GET /refused"), "Bearer first"));
    assert_non_null(strstr(strstr(requests, "GET /refused"), "Bearer later"));
    end(&f);
    close(fd);
    unlink(path);
    replay_stop(server);
}

static void impersonation_goes_with_each_request(void **state)
{
    const struct setup setup = { .trusted = &authority,
                                 .user = "token: abc, as: jane, as-groups: [a, b]" };
    struct kinf_error err;
    KINF__AUTO_FREE char *requests = NULL;

    (void)state;
    assert_int_equal(exchange(&server_identity, NULL, &setup, &err, &requests), 0);
    assert_n_lines(requests, "\r\nAuthorization: Bearer abc\r\n", 1);
    assert_n_lines(requests, "\r\nImpersonate-User: jane\r\n", 1);
    assert_n_lines(requests, "\r\nImpersonate-Group: a\r\n", 1);
    assert_n_lines(requests, "\r\nImpersonate-Group: b\r\n", 1);
}

static void a_redirect_is_an_error_and_carries_no_token_away(void **state)
{
    const struct setup setup = { .trusted = &authority, .user = "token: abc" };
    struct replay *elsewhere = start(&server_identity, NULL, 0);
    const struct replay_options options = { .key_pair = &server_identity };
    char location[64];
    const struct test_reply redirect = {
        .path = "/ok", .status = "307 Temporary Redirect", .headers = location, .body = "gone"
    };
    struct replay *server;
    struct fixture f;

    (void)state;
    snprintf(location, sizeof location, "Location: %s/ok\r\n", replay_url(elsewhere));
    server = test_server_start_with(&redirect, 1, &options);
    begin(&f, replay_port(server), &setup);
    assert_int_equal(get(&f, "/ok"), KINF_ERR_SERVER);
    assert_int_equal(f.err.http_status, 307);
    assert_int_equal(replay_n_requests(server), 1);
    assert_int_equal(replay_n_requests(elsewhere), 0);
    end(&f);
    replay_stop(server);
    replay_stop(elsewhere);
}

/* A client that knows no better gets through to the server, so it is us who refuse. */
static void assert_speaks(unsigned port, int tls_version)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SSL *ssl;

    assert_int_equal(SSL_CTX_set_cipher_list(context, "DEFAULT:@SECLEVEL=0"), 1);
    assert_int_equal(SSL_CTX_set_min_proto_version(context, tls_version), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(context, tls_version), 1);
    ssl = SSL_new(context);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(SSL_set_fd(ssl, fd), 1);
    assert_int_equal(SSL_connect(ssl), 1);
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
}

static void tls_below_1_2_is_refused(void **state)
{
    static const struct {
        int version, code;
    } rows[] = { { TLS1_1_VERSION, KINF_ERR_TLS }, { TLS1_2_VERSION, 0 }, { TLS1_3_VERSION, 0 } };
    const struct setup setup = { .trusted = &authority, .user = "token: abc" };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct replay *server = start(&server_identity, NULL, rows[i].version);
        struct fixture f;

        assert_speaks(replay_port(server), rows[i].version);
        begin(&f, replay_port(server), &setup);
        assert_int_equal(get(&f, "/ok"), rows[i].code);
        assert_int_equal(replay_n_requests(server), rows[i].code == 0);
        end(&f);
        replay_stop(server);
    }
}

/* --- rotation --- */

static void write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

/* The plugin gives a token that the server does not know, then another. */
static void after_401_the_plugin_runs_again(void **state)
{
    struct replay *server;
    char folder[] = "/tmp/kinformer-test-XXXXXX", plugin[64], tries[64], script[512], user[256];
    const struct setup setup = { .trusted = &authority, .user = user };
    KINF__AUTO_FREE char *requests = NULL;
    struct fixture f;

    (void)state;
    test_skip_in_valgrind("it knows no pidfd_open()");
    server = start(&server_identity, NULL, 0);
    assert_non_null(mkdtemp(folder));
    snprintf(plugin, sizeof plugin, "%s/plugin", folder);
    snprintf(tries, sizeof tries, "%s/tries", folder);
    snprintf(script, sizeof script,
             "#!/bin/sh\necho >>%s\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":"
             "\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"t'$(($(wc -l "
             "<%s)))'\"}}'\n",
             tries, tries);
    write_file(plugin, script, 0700);
    snprintf(user, sizeof user,
             "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: "
             "%s}",
             plugin);
    begin(&f, replay_port(server), &setup);
    assert_int_equal(get(&f, "/ok"), 0);
    assert_int_equal(get(&f, "/refused"), KINF_ERR_UNAUTHORIZED);
    assert_int_equal(get(&f, "/ok"), 0);
    requests = test_server_heads(server);
    assert_n_lines(requests, "Bearer t1\r\n", 2);
    assert_n_lines(requests, "Bearer t2\r\n", 1);
    end(&f);
    unlink(plugin);
    unlink(tries);
    rmdir(folder);
    replay_stop(server);
}

static void a_plugin_is_waited_for_no_longer_than_a_request_may_take(void **state)
{
    const struct setup setup = { .trusted = &authority,
                                 .user = "exec: {apiVersion: client.authentication.k8s.io/v1, "
                                         "interactiveMode: Never, command: sleep, args: ['600']}" };
    static const struct kinf__http_request requests[] = {
        { .target = "/ok", .total_timeout_ms = 50, .on_body = count },
        { .target = "/ok", .head_timeout_ms = 50, .on_body = count },
        { .target = "/ok", .head_timeout_ms = 20000, .total_timeout_ms = 50, .on_body = count },
    };
    struct fixture f;

    (void)state;
    test_skip_in_valgrind("it knows no pidfd_open()");
    begin(&f, 1, &setup);
    for (size_t i = 0; i < KINF__ARRAY_LEN(requests); i++) {
        int64_t began_ms = kinf__clock_now_ms();

        assert_int_equal(kinf__http_perform(f.http, &requests[i], &f.err), KINF_ERR_TIMEOUT);
        assert_in_range(kinf__clock_now_ms() - began_ms, 50, 10000);
        assert_says(&f.err, "credential plugin");
        f.err = (struct kinf_error)KINF_ERROR_INIT;
    }
    end(&f);
}

static void *get_silent(void *ctx)
{
    static const struct kinf__http_request request = { .target = "/silent",
                                                       .total_timeout_ms = 60000,
                                                       .on_body = count };
    struct fixture *f = ctx;

    assert_int_equal(kinf__http_perform(f->http, &request, &f->err), KINF_ERR_TIMEOUT);
    return NULL;
}

/* 50 s of its 60 the request waits for the plugin, then for the server. */
static void the_wait_for_a_plugin_is_of_the_requests_time(void **state)
{
    const struct replay_options options = { .key_pair = &server_identity };
    static const struct test_reply silent[] = { { .path = "/silent", .end = TEST_NO_REPLY } };
    struct replay *server = test_server_start_with(silent, 1, &options);
    char folder[] = "/tmp/kinformer-test-XXXXXX", gate[64], user[512];
    const struct setup setup = { .trusted = &authority, .user = user };
    int64_t began_ms = kinf__clock_now_ms();
    struct fixture f;
    pthread_t thread;

    (void)state;
    test_skip_in_valgrind("it knows no pidfd_open()");
    assert_non_null(mkdtemp(folder));
    snprintf(gate, sizeof gate, "%s/gate", folder);
    assert_int_equal(mkfifo(gate, 0600), 0);
    snprintf(user, sizeof user,
             "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: "
             "cat, args: [%s]}",
             gate);
    begin(&f, replay_port(server), &setup);
    kinf__clock_begin_simulation();
    assert_int_equal(kinf__thread_start(&thread, "asker", get_silent, &f, NULL), 0);
    int fd = open(gate, O_WRONLY | O_CLOEXEC); /* when the plugin has opened it, too */
    assert_true(fd >= 0);
    kinf__clock_advance(50000);
    assert_true(dprintf(fd,
                        "{\"kind\":\"ExecCredential\",\"apiVersion\":"
                        "\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"t\"}}") > 0);
    close(fd);
    test_server_wait(server, 1);
    kinf__clock_advance(10000);
    pthread_join(thread, NULL);
    kinf__clock_end_simulation();
    assert_says(&f.err, "not complete after 60000 ms");
    assert_in_range(kinf__clock_now_ms() - began_ms, 60000, 90000);
    end(&f);
    unlink(gate);
    rmdir(folder);
    replay_stop(server);
}

/* A client whose authority and certificate are files. */
struct files {
    char folder[32];
    char ca[64], cert[64], key[64];
    char cluster[128], user[256];
};

static void make_files(struct files *files)
{
    strcpy(files->folder, "/tmp/kinformer-test-XXXXXX");
    assert_non_null(mkdtemp(files->folder));
    snprintf(files->ca, sizeof files->ca, "%s/ca", files->folder);
    snprintf(files->cert, sizeof files->cert, "%s/cert", files->folder);
    snprintf(files->key, sizeof files->key, "%s/key", files->folder);
    snprintf(files->cluster, sizeof files->cluster, ", certificate-authority: %s", files->ca);
    snprintf(files->user, sizeof files->user, "client-certificate: %s, client-key: %s", files->cert,
             files->key);
    write_file(files->ca, authority.cert_pem, 0600);
    write_file(files->cert, client_identity.cert_pem, 0600);
    write_file(files->key, client_identity.key_pem, 0600);
}

static void remove_files(struct files *files)
{
    unlink(files->ca);
    unlink(files->cert);
    unlink(files->key);
    rmdir(files->folder);
}

/* The server gets a certificate of another authority. */
static void a_new_authority_is_trusted_after_one_failed_handshake(void **state)
{
    struct kinf__key_pair renewed = test_key_pair("127.0.0.1", "IP:127.0.0.1", AN_HOUR, &stranger);
    struct replay *server = start(&renewed, NULL, 0);
    struct files files;
    const struct setup setup = { .cluster_more = files.cluster, .user = "token: abc" };
    struct fixture f;

    (void)state;
    make_files(&files);
    begin(&f, replay_port(server), &setup);
    assert_int_equal(get(&f, "/ok"), KINF_ERR_TLS);
    write_file(files.ca, stranger.cert_pem, 0600);
    assert_int_equal(get(&f, "/ok"), 0);
    end(&f);
    replay_stop(server);
    remove_files(&files);
    kinf__key_pair_release(&renewed);
}

static int rotate(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct fixture *f = ctx;

    (void)bytes;
    (void)err;
    f->n_body += len;
    write_file(f->rotated->cert, other_client.cert_pem, 0600);
    write_file(f->rotated->key, other_client.key_pem, 0600);
    /* Instead of ten seconds. */
    kinf__credentials_distrusted(&f->client->credentials);
    return 0;
}

static bool may_end(void *ctx)
{
    return ((struct fixture *)ctx)->n_body != 0;
}

/* In the middle of an answer without an end; whoever does not allow it goes on until its time is
 * over. */
static void a_rotated_certificate_ends_what_may_end(void **state)
{
    const struct replay_options options = { .key_pair = &server_identity,
                                            .client_authority = &authority };
    static const struct test_reply endless[] = {
        { .path = "/watch", .body = "{}", .end = TEST_END_OPEN }, { .path = "/ok", .body = "{}" }
    };

    (void)state;
    for (int allowed = 0; allowed <= 1; allowed++) {
        struct replay *server = test_server_start_with(endless, 2, &options);
        struct files files;
        const struct setup setup = { .cluster_more = files.cluster, .user = files.user };
        struct fixture f;
        struct kinf__http_request request = { .target = "/watch",
                                              .total_timeout_ms = allowed ? 60000 : 1500,
                                              .on_body = rotate,
                                              .may_end = allowed ? may_end : NULL,
                                              .ctx = &f };

        make_files(&files);
        begin(&f, replay_port(server), &setup);
        f.rotated = &files;
        assert_int_equal(kinf__http_perform(f.http, &request, &f.err),
                         allowed ? 0 : KINF_ERR_TIMEOUT);
        assert_int_equal(f.n_body, 2);
        assert_int_equal(get(&f, "/ok"), 0);
        assert_string_equal(replay_wait_request(server, 1, 0)->client_name, "another");
        end(&f);
        replay_stop(server);
        remove_files(&files);
    }
}

static void count_pause(void *ctx)
{
    ((struct fixture *)ctx)->n_body++;
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

static void *set_soon(void *ctx)
{
    poll(NULL, 0, 100);
    kinf__waker_set(ctx);
    return NULL;
}

/* What may be ended for other certificates is not ended before its head: until then there is no reason
 * to look, nor to be deaf. */
static void waiting_for_a_head_is_waiting(void **state)
{
    static const struct test_reply silent = { .path = "/watch", .raw = "", .end = TEST_END_OPEN };
    const struct replay_options options = { .key_pair = &server_identity };
    struct replay *server = test_server_start_with(&silent, 1, &options);
    struct files files;
    const struct setup setup = { .cluster_more = files.cluster, .user = "token: abc" };
    struct fixture f;
    const struct kinf__http_request request = {
        .target = "/watch", .on_body = count, .on_pause = count_pause, .may_end = always, .ctx = &f
    };
    int64_t began_ms = kinf__clock_now_ms();
    pthread_t thread;

    (void)state;
    make_files(&files);
    begin(&f, replay_port(server), &setup);
    assert_int_equal(kinf__thread_start(&thread, "setter", set_soon, &f.waker, NULL), 0);
    assert_int_equal(kinf__http_perform(f.http, &request, &f.err), KINF_ERR_STOPPED);
    assert_true(kinf__clock_now_ms() - began_ms < 100 + STOP_LIMIT_MS);
    pthread_join(thread, NULL);
    assert_in_range(f.n_body, 1, 100); /* pauses, of which one with nothing to do has none */
    end(&f);
    replay_stop(server);
    remove_files(&files);
}

/* --- a proxy of https:// --- */

/* One request for a server of the network behind this proxy, which answers CONNECT with 404 or, for
 * http://, like any other. */
static int ask_proxy(const struct kinf__key_pair *identity, const char *server_url,
                     const struct kinf__key_pair *trusted, struct kinf_error *ret_err,
                     char **ret_requests)
{
    struct replay *proxy = start(identity, NULL, 0);
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct fixture f = { .n_body = 0 };
    int code;

    assert_int_equal(kinf__buffer_printf(&text,
                                         "current-context: x\ncontexts: [{name: x, context: "
                                         "{cluster: c}}]\nclusters: [{name: c, cluster: {server: "
                                         "'%s', proxy-url: 'https://127.0.0.1:%u'",
                                         server_url, replay_port(proxy)),
                     0);
    append_data(&text, "certificate-authority-data", trusted->cert_pem);
    assert_int_equal(kinf__buffer_printf(&text, "}}]\n"), 0);
    assert_int_equal(test_client_new(kinf__buffer_cstr(&text), NULL, &f.client, &f.err), 0);
    assert_int_equal(kinf__waker_init(&f.waker, NULL), 0);
    assert_int_equal(kinf__http_new(f.client, &f.waker, &f.http, NULL), 0);
    code = get(&f, "/ok");
    *ret_err = f.err;
    *ret_requests = test_server_heads(proxy);
    end(&f);
    replay_stop(proxy);
    return code;
}

/* As kubectl does it: by the authority that the server is verified by. */
static void a_proxy_is_verified_by_the_clusters_authority(void **state)
{
    static const char *const urls[] = { "https://cluster.invalid:6443",
                                        "http://cluster.invalid:8080" };
    static const char *const lines[] = { "CONNECT cluster.invalid:6443 HTTP/1.1\r\n",
                                         "GET http://cluster.invalid:8080/ok HTTP/1.1\r\n" };

    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        KINF__AUTO_FREE char *requests = NULL;
        struct kinf_error err;

        assert_true(ask_proxy(&server_identity, urls[i], &authority, &err, &requests) !=
                    KINF_ERR_TLS);
        assert_non_null(strstr(requests, lines[i]));
    }
}

static void a_wrong_proxy_is_distrusted_and_not_the_server_blamed(void **state)
{
    static const char *const urls[] = { "https://cluster.invalid:6443",
                                        "http://cluster.invalid:8080" };
    const struct {
        const struct kinf__key_pair *identity, *trusted;
        const char *word;
    } rows[] = {
        { &server_identity, &stranger, "of the proxy of the server cluster.invalid:" },
        { &server_identity, &stranger, "is not signed by the given certificate authority" },
        { &named_identity, &authority, "of the proxy of the server cluster.invalid:" },
        { &named_identity, &authority, "is for another name" },
        { &named_identity, &authority, "see proxy-url" },
        { &old_identity, &authority, "of the proxy of the server cluster.invalid:" },
        { &old_identity, &authority, "expired" },
        { NULL, &authority, "the proxy of the server cluster.invalid:" },
        { NULL, &authority, "does not speak TLS" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t k = 0; k < sizeof urls / sizeof *urls; k++) {
            KINF__AUTO_FREE char *requests = NULL;
            struct kinf_error err;

            assert_int_equal(ask_proxy(rows[i].identity, urls[k], rows[i].trusted, &err, &requests),
                             KINF_ERR_TLS);
            assert_says(&err, rows[i].word);
            assert_string_equal(requests, "");
        }
    }
}

/* The kernel accepts the connection, and nobody answers the hello. */
static void the_waker_ends_a_handshake(void **state)
{
    const struct setup setup = { .trusted = &authority };
    unsigned port;
    int listener = test_listen(1, &port);
    int64_t began_ms;
    pthread_t thread;
    struct fixture f;

    (void)state;
    begin(&f, port, &setup);
    began_ms = kinf__clock_now_ms();
    assert_int_equal(kinf__thread_start(&thread, "setter", set_soon, &f.waker, NULL), 0);
    assert_int_equal(get(&f, "/ok"), KINF_ERR_STOPPED);
    assert_true(kinf__clock_now_ms() - began_ms < STOP_LIMIT_MS);
    pthread_join(thread, NULL);
    end(&f);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_authority_is_trusted),
        cmocka_unit_test(basic_credentials_are_encoded),
        cmocka_unit_test(a_wrong_server_is_distrusted_and_told_why),
        cmocka_unit_test(tls_server_name_is_what_counts),
        cmocka_unit_test(tls_server_name_is_no_host_of_upgrades),
        cmocka_unit_test(tls_server_name_is_no_name_for_no_proxy),
        cmocka_unit_test(insecure_trusts_everyone),
        cmocka_unit_test(a_client_certificate_is_shown),
        cmocka_unit_test(bad_certificates_are_found_before_connecting),
        cmocka_unit_test(after_401_the_token_is_read_again),
        cmocka_unit_test(impersonation_goes_with_each_request),
        cmocka_unit_test(a_redirect_is_an_error_and_carries_no_token_away),
        cmocka_unit_test(tls_below_1_2_is_refused),
        cmocka_unit_test(after_401_the_plugin_runs_again),
        cmocka_unit_test(a_plugin_is_waited_for_no_longer_than_a_request_may_take),
        cmocka_unit_test(the_wait_for_a_plugin_is_of_the_requests_time),
        cmocka_unit_test(a_new_authority_is_trusted_after_one_failed_handshake),
        cmocka_unit_test(a_rotated_certificate_ends_what_may_end),
        cmocka_unit_test(waiting_for_a_head_is_waiting),
        cmocka_unit_test(the_waker_ends_a_handshake),
        cmocka_unit_test(a_proxy_is_verified_by_the_clusters_authority),
        cmocka_unit_test(a_wrong_proxy_is_distrusted_and_not_the_server_blamed),
    };

    return cmocka_run_group_tests(tests, make_identities, release_identities);
}
