/*
 * Certificates that the simulated server makes for itself.
 */
#include "sim/certificate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/compiler.h"
#include "serve/endpoint.h"
#include "serve/identity.h"
#include "serve/kubeconfig_file.h"
#include "base/file.h"
#include "unit/allocation.h"
#include "unit/test.h"

static struct kinf__certificate *make(const char *host)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__certificate *certificate = NULL;

    if (kinf__certificate_new(&host, host != NULL ? 1 : 0, &certificate, &err) < 0)
        fail_msg("%s", err.message);
    return certificate;
}

static X509 *read_certificate(const char *path)
{
    FILE *file = fopen(path, "re");
    X509 *certificate;

    assert_non_null(file);
    certificate = PEM_read_X509(file, NULL, NULL, NULL);
    fclose(file);
    assert_non_null(certificate);
    return certificate;
}

/* Whether clients that trust the authority trust the certificate as it is now, strict ones, too, as
 * Python's are from 3.13 on. */
static bool is_trusted(const struct kinf__certificate *certificate)
{
    X509 *authority = read_certificate(kinf__certificate_authority_file(certificate)),
         *served = read_certificate(kinf__certificate_cert_file(certificate));
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *check = X509_STORE_CTX_new();
    bool is_valid;

    assert_int_equal(X509_STORE_add_cert(store, authority), 1);
    assert_int_equal(X509_STORE_CTX_init(check, store, served, NULL), 1);
    assert_int_equal(X509_STORE_CTX_set_purpose(check, X509_PURPOSE_SSL_SERVER), 1);
    X509_STORE_CTX_set_flags(check, X509_V_FLAG_X509_STRICT);
    is_valid = X509_verify_cert(check) == 1;
    X509_STORE_CTX_free(check);
    X509_STORE_free(store);
    X509_free(served);
    X509_free(authority);
    return is_valid;
}

static void a_certificate_is_for_this_machine_and_the_hosts(void **state)
{
    struct kinf__certificate *certificate = make("sim.example");
    X509 *served = read_certificate(kinf__certificate_cert_file(certificate));

    (void)state;
    assert_true(is_trusted(certificate));
    assert_int_equal(X509_check_host(served, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(served, "sim.example", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(served, "other.example", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ip_asc(served, "127.0.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(served, "::1", 0), 1);
    assert_int_equal(X509_check_ip_asc(served, "10.0.0.1", 0), 0);
    X509_free(served);
    kinf__certificate_free(certificate);
    certificate = make("10.0.0.1");
    served = read_certificate(kinf__certificate_cert_file(certificate));
    assert_int_equal(X509_check_ip_asc(served, "10.0.0.1", 0), 1);
    X509_free(served);
    kinf__certificate_free(certificate);
}

static void a_name_cannot_smuggle_others(void **state)
{
    static const char *const hosts[] = { "a,DNS:b", "", "a b", "a\n" };
    struct kinf__certificate *certificate = NULL;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(hosts); i++)
        assert_int_equal(kinf__certificate_new(&hosts[i], 1, &certificate, NULL), KINF_ERR_INVALID);
}

static void files_are_ours_alone_and_go(void **state)
{
    struct kinf__certificate *certificate = make(NULL);
    KINF__AUTO_FREE char *key = strdup(kinf__certificate_key_file(certificate));
    struct stat file;

    (void)state;
    assert_int_equal(stat(key, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    *strrchr(key, '/') = '\0';
    assert_int_equal(stat(key, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0700);
    kinf__certificate_free(certificate);
    assert_int_equal(stat(key, &file), -1);
}

static void an_endpoint_takes_them_before_and_after_a_change(void **state)
{
    struct kinf__certificate *certificate = make(NULL);
    const char *cert = kinf__certificate_cert_file(certificate),
               *key = kinf__certificate_key_file(certificate);
    X509 *before = read_certificate(cert), *after;

    (void)state;
    assert_int_equal(kinf__endpoint_check_files(cert, key, NULL, NULL), 0);
    assert_int_equal(kinf__certificate_rotate(certificate, NULL), 0);
    after = read_certificate(cert);
    assert_int_not_equal(X509_cmp(before, after), 0);
    assert_true(is_trusted(certificate));
    assert_int_equal(kinf__endpoint_check_files(cert, key, NULL, NULL), 0);
    X509_free(after);
    X509_free(before);
    kinf__certificate_free(certificate);
}

/* They do not change again. */
static void files_that_cannot_be_read_just_now_are_read_later(void **state)
{
    struct kinf__certificate *certificate = make(NULL);
    struct kinf__identity *identity;
    gnutls_pcert_st *before, *chain;
    gnutls_privkey_t key;
    struct rlimit limit, none;
    unsigned n;

    (void)state;
    assert_int_equal(kinf__identity_new(kinf__certificate_cert_file(certificate),
                                        kinf__certificate_key_file(certificate), &identity, NULL),
                     0);
    kinf__identity_get(identity, 0, &before, &n, &key);
    assert_int_equal(kinf__certificate_rotate(certificate, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){ 0, limit.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    kinf__identity_get(identity, 2000, &chain, &n, &key);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_ptr_equal(chain, before);
    kinf__identity_get(identity, 4000, &chain, &n, &key);
    assert_ptr_not_equal(chain, before);
    kinf__identity_free(identity);
    kinf__certificate_free(certificate);
}

static void a_guarded_endpoint_with_tls_may_be_anywhere(void **state)
{
    const struct kinf__server_options server_options = { .name = "test" };
    struct kinf__certificate *certificate = make(NULL);
    struct kinf__endpoint_options options = { .is_guarded = true };
    struct kinf__endpoint *endpoint = NULL;
    struct kinf__server *server;

    (void)state;
    assert_int_equal(kinf__server_new(&server_options, &server, NULL), 0);
    assert_int_equal(kinf__endpoint_start(server, "0.0.0.0:0", &options, &endpoint, NULL),
                     KINF_ERR_INVALID);
    options.cert_file = kinf__certificate_cert_file(certificate);
    options.key_file = kinf__certificate_key_file(certificate);
    assert_int_equal(kinf__endpoint_start(server, "0.0.0.0:0", &options, &endpoint, NULL), 0);
    assert_memory_equal(kinf__endpoint_url(endpoint), "https://0.0.0.0:", 16);
    kinf__endpoint_quiesce(endpoint);
    kinf__server_stop(server);
    kinf__endpoint_free(endpoint);
    endpoint = NULL;
    options.is_guarded = false;
    assert_int_equal(kinf__endpoint_start(server, "0.0.0.0:0", &options, &endpoint, NULL),
                     KINF_ERR_INVALID);
    kinf__server_free(server);
    kinf__certificate_free(certificate);
}

/* Every client finds a user in it, and those that know no files of tokens the token. */
/* What comes for these bytes over TLS, from this port here. */
static void ask_over_tls(uint16_t port, const char *sent, char *answer, size_t size)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), n;
    size_t len = 0;
    SSL *tls;

    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_non_null(context);
    tls = SSL_new(context);
    assert_int_equal(SSL_set_fd(tls, fd), 1);
    assert_int_equal(SSL_connect(tls), 1);
    assert_int_equal(SSL_write(tls, sent, (int)strlen(sent)), strlen(sent));
    while (len < size - 1 && (n = SSL_read(tls, answer + len, (int)(size - 1 - len))) > 0)
        len += (size_t)n;
    answer[len] = '\0';
    SSL_free(tls);
    SSL_CTX_free(context);
    close(fd);
}

/* As without TLS, where others see it. */
static void a_head_that_is_no_request_is_refused_over_tls(void **state)
{
    const struct kinf__server_options server_options = { .name = "test" };
    struct kinf__certificate *certificate = make(NULL);
    struct kinf__endpoint_options options = {
        .cert_file = kinf__certificate_cert_file(certificate),
        .key_file = kinf__certificate_key_file(certificate),
    };
    struct kinf__endpoint *endpoint;
    struct kinf__server *server;
    char answer[1024];
    uint16_t port;

    (void)state;
    assert_int_equal(kinf__server_new(&server_options, &server, NULL), 0);
    assert_int_equal(kinf__endpoint_start(server, "127.0.0.1:0", &options, &endpoint, NULL), 0);
    port = (uint16_t)atoi(strrchr(kinf__endpoint_url(endpoint), ':') + 1);
    ask_over_tls(port, "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                 answer, sizeof answer);
    assert_memory_equal(answer, "HTTP/1.1 200 OK\r\n", 17);
    ask_over_tls(port, "GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", answer,
                 sizeof answer);
    assert_memory_equal(answer, "HTTP/1.1 400 Bad Request\r\n", 26);
    assert_non_null(strstr(answer, "\r\nConnection: close\r\n\r\n"));
    kinf__endpoint_quiesce(endpoint);
    kinf__server_stop(server);
    kinf__endpoint_free(endpoint);
    kinf__server_free(server);
    kinf__certificate_free(certificate);
}

static void a_kubeconfig_follows_what_it_is_made_of(void **state)
{
    struct kinf__certificate *certificate = make(NULL);
    char path[512], token_file[512], expected[1024];
    const struct kinf__kubeconfig_user user = { .name = "me", .token_file = token_file };
    const struct kinf__kubeconfig_file file = { .url = "https://h", .users = &user, .n_users = 1 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    bool has_changed = false;

    (void)state;
    snprintf(path, sizeof path, "%s.kubeconfig", kinf__certificate_cert_file(certificate));
    snprintf(token_file, sizeof token_file, "%s.token", kinf__certificate_cert_file(certificate));
    assert_int_equal(kinf__kubeconfig_file_write(&file, path, NULL), KINF_ERR_CONFIG);
    assert_int_equal(kinf__file_replace(token_file, KINF_STR(" \n"), NULL), 0);
    assert_int_equal(kinf__kubeconfig_file_write(&file, path, NULL), KINF_ERR_CONFIG);
    assert_int_equal(kinf__file_replace(token_file, KINF_STR("one\n"), NULL), 0);
    assert_int_equal(kinf__kubeconfig_file_refresh(&file, path, &has_changed, NULL), 0);
    assert_true(has_changed);
    assert_int_equal(kinf__kubeconfig_file_refresh(&file, path, &has_changed, NULL), 0);
    assert_false(has_changed);
    assert_int_equal(kinf__file_replace(token_file, KINF_STR("two"), NULL), 0);
    assert_int_equal(kinf__kubeconfig_file_refresh(&file, path, &has_changed, NULL), 0);
    assert_true(has_changed);
    assert_int_equal(unlink(token_file), 0);
    assert_int_equal(kinf__kubeconfig_file_refresh(&file, path, &has_changed, NULL),
                     KINF_ERR_CONFIG);
    assert_int_equal(kinf__file_read(path, 1 << 20, &text, NULL), 0);
    snprintf(expected, sizeof expected,
             "  user:\n    token: \"two\"\n    tokenFile: \"%s\"\ncontexts:", token_file);
    assert_non_null(strstr(kinf__buffer_cstr(&text), expected));
    assert_int_equal(unlink(path), 0);
    kinf__certificate_free(certificate);
}

static void a_kubeconfig_has_the_authority_and_the_users(void **state)
{
    static const struct kinf__kubeconfig_user users[] = { { .name = "alice", .token = "a-token" },
                                                          { .name = "b: \"ob", .token = "12" } };
    struct kinf__certificate *certificate = make(NULL);
    struct kinf__kubeconfig_file file = { .url = "http://127.0.0.1:1" };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    char path[512];

    (void)state;
    snprintf(path, sizeof path, "%s.kubeconfig", kinf__certificate_cert_file(certificate));
    assert_int_equal(kinf__kubeconfig_file_write(&file, path, NULL), 0);
    assert_int_equal(kinf__file_read(path, 1 << 20, &text, NULL), 0);
    assert_string_equal(kinf__buffer_cstr(&text),
                        "apiVersion: v1\nkind: Config\nclusters:\n- name: kinformer\n  cluster:\n"
                        "    server: http://127.0.0.1:1\n    insecure-skip-tls-verify: true\n"
                        "users:\n- name: \"kinformer\"\n  user: {}\n"
                        "contexts:\n- name: kinformer\n"
                        "  context:\n    cluster: kinformer\n    user: \"kinformer\"\n"
                        "current-context: kinformer\n");
    file.url = "https://127.0.0.1:1";
    assert_int_equal(kinf__kubeconfig_file_write(&file, path, NULL), 0);
    text.len = 0;
    assert_int_equal(kinf__file_read(path, 1 << 20, &text, NULL), 0);
    assert_non_null(
        strstr(kinf__buffer_cstr(&text), "- name: \"kinformer\"\n  user:\n    token: \"none\"\n"));
    file.users = users;
    file.n_users = 2;
    file.authority_file = kinf__certificate_authority_file(certificate);
    assert_int_equal(kinf__kubeconfig_file_write(&file, path, NULL), 0);
    text.len = 0;
    assert_int_equal(kinf__file_read(path, 1 << 20, &text, NULL), 0);
    assert_non_null(
        strstr(kinf__buffer_cstr(&text), "    certificate-authority-data: LS0tLS1CRUdJTi"));
    assert_non_null(strstr(text.bytes,
                           "\nusers:\n- name: \"alice\"\n  user:\n    token: \"a-token\"\n"
                           "- name: \"b: \\\"ob\"\n  user:\n    token: \"12\"\n"));
    assert_non_null(strstr(text.bytes, "    user: \"alice\"\n"));
    assert_null(strstr(text.bytes, "insecure"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(kinf__kubeconfig_file_write(&file, "/no/such/file", NULL), KINF_ERR_SYSTEM);
    kinf__certificate_free(certificate);
}

static void a_kubeconfig_is_whole_or_not_written_without_memory(void **state)
{
    struct kinf__certificate *certificate = make(NULL);
    const char *cert_file = kinf__certificate_cert_file(certificate);
    char path[512], token_file[512];
    const struct kinf__kubeconfig_user user = { .name = "me", .token_file = token_file };
    const struct kinf__kubeconfig_file file = {
        .url = "https://h", .authority_file = cert_file, .users = &user, .n_users = 1
    };
    bool did_fail = true;

    (void)state;
    snprintf(path, sizeof path, "%s.kubeconfig", cert_file);
    snprintf(token_file, sizeof token_file, "%s.token", cert_file);
    assert_int_equal(kinf__file_replace(token_file, KINF_STR("one"), NULL), 0);
    for (size_t n = 1; did_fail; n++) {
        int failed;

        test_fail_allocation(n);
        failed = kinf__kubeconfig_file_write(&file, path, NULL);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        assert_int_equal(unlink(path), did_fail ? -1 : 0);
    }
    assert_int_equal(unlink(token_file), 0);
    kinf__certificate_free(certificate);
}

/* OpenSSL's allocations are its own. */
static void out_of_memory_leaves_nothing(void **state)
{
    static const char *const hosts[] = { "a.example" };
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        struct kinf__certificate *certificate = NULL;
        int failed;

        test_fail_allocation(n);
        failed = kinf__certificate_new(hosts, 1, &certificate, NULL);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        kinf__certificate_free(certificate);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_is_for_this_machine_and_the_hosts),
        cmocka_unit_test(a_name_cannot_smuggle_others),
        cmocka_unit_test(files_are_ours_alone_and_go),
        cmocka_unit_test(an_endpoint_takes_them_before_and_after_a_change),
        cmocka_unit_test(files_that_cannot_be_read_just_now_are_read_later),
        cmocka_unit_test(a_guarded_endpoint_with_tls_may_be_anywhere),
        cmocka_unit_test(a_head_that_is_no_request_is_refused_over_tls),
        cmocka_unit_test(a_kubeconfig_has_the_authority_and_the_users),
        cmocka_unit_test(a_kubeconfig_follows_what_it_is_made_of),
        cmocka_unit_test(a_kubeconfig_is_whole_or_not_written_without_memory),
        cmocka_unit_test(out_of_memory_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
