/*
 * The server of the tests of src/rest. Invariant: the thread ends when the listener is shut down,
 * and every connection lasts one request.
 */
#include "unit/rest_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/buffer.h"
#include "base/thread.h"
#include "unit/test.h"

#define REQUEST_SIZE 8192
#define GIVE_UP_S    20

struct rest_server {
    const struct rest_answer *answers;
    size_t n_answers;
    SSL_CTX *tls;
    int listener;
    unsigned port;
    pthread_t thread;
    pthread_mutex_t lock;
    struct kinf__buffer requests; /* guarded by lock */
    size_t n_requests;            /* guarded by lock */
    char client_name[64];         /* guarded by lock */
};

/* --- certificates --- */

static char *pem_of(X509 *certificate, EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes, *text;
    long len;

    if (certificate != NULL)
        assert_int_equal(PEM_write_bio_X509(bio, certificate), 1);
    else
        assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    len = BIO_get_mem_data(bio, &bytes);
    text = calloc(1, (size_t)len + 1);
    assert_non_null(text);
    memcpy(text, bytes, (size_t)len);
    BIO_free(bio);
    return text;
}

static X509 *certificate_of(const struct rest_identity *identity)
{
    BIO *bio = BIO_new_mem_buf(identity->cert_pem, -1);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    BIO_free(bio);
    assert_non_null(certificate);
    return certificate;
}

static EVP_PKEY *key_of(const struct rest_identity *identity)
{
    BIO *bio = BIO_new_mem_buf(identity->key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);

    BIO_free(bio);
    assert_non_null(key);
    return key;
}

static void add_extension(X509 *certificate, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void sign(X509 *certificate, EVP_PKEY *key, const struct rest_identity *issuer)
{
    X509 *authority = issuer != NULL ? certificate_of(issuer) : NULL;
    EVP_PKEY *signer = issuer != NULL ? key_of(issuer) : NULL;

    X509_set_issuer_name(certificate,
                         X509_get_subject_name(authority != NULL ? authority : certificate));
    assert_true(X509_sign(certificate, signer != NULL ? signer : key, EVP_sha256()) > 0);
    X509_free(authority);
    EVP_PKEY_free(signer);
}

struct rest_identity rest_identity_make(const char *name, long seconds,
                                        const struct rest_identity *issuer)
{
    static long serial = 1;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    struct rest_identity identity;
    char alternative[128];
    bool is_address = strspn(name, "0123456789.") == strlen(name);

    assert_true(key != NULL && certificate != NULL);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -7200);
    X509_gmtime_adj(X509_getm_notAfter(certificate), seconds);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    snprintf(alternative, sizeof alternative, "%s:%s", is_address ? "IP" : "DNS", name);
    if (issuer == NULL)
        add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
    else
        add_extension(certificate, NID_subject_alt_name, alternative);
    sign(certificate, key, issuer);
    identity = (struct rest_identity){ pem_of(certificate, NULL), pem_of(NULL, key) };
    X509_free(certificate);
    EVP_PKEY_free(key);
    return identity;
}

void rest_identity_release(struct rest_identity *identity)
{
    free(identity->cert_pem);
    free(identity->key_pem);
}

/* --- one connection --- */

/* Through TLS or not, as the connection is. */
static int receive(SSL *ssl, int fd, char *bytes, size_t size)
{
    return ssl != NULL ? SSL_read(ssl, bytes, (int)size) : (int)recv(fd, bytes, size, 0);
}

static void deliver(SSL *ssl, int fd, const char *bytes, size_t len)
{
    ssize_t n;

    for (; len != 0; bytes += n, len -= (size_t)n) {
        n = ssl != NULL ? SSL_write(ssl, bytes, (int)len) : send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
    }
}

static bool read_request(SSL *ssl, int fd, char *request)
{
    size_t len = 0;
    int n;

    while (len < REQUEST_SIZE - 1 &&
           (n = receive(ssl, fd, request + len, REQUEST_SIZE - 1 - len)) > 0) {
        len += (size_t)n;
        request[len] = '\0';
        if (strstr(request, "\r\n\r\n") != NULL)
            return true;
        if (request[0] != 'G')
            return false;
    }
    return false;
}

static struct rest_answer answer_of(const struct rest_server *server, const char *request)
{
    const char *target = strchr(request, ' ') + 1;
    size_t len = strcspn(target, " ");

    for (size_t i = 0; i < server->n_answers; i++) {
        if (strlen(server->answers[i].target) == len &&
            memcmp(server->answers[i].target, target, len) == 0)
            return server->answers[i];
    }
    return (struct rest_answer){ NULL, "404 Not Found", "404 page not found\n" };
}

static void answer(struct rest_server *server, SSL *ssl, int fd)
{
    /* What a server says to a TLS hello that it took for a request. */
    static const char bad_request[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    static const char endless[] =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n";
    char request[REQUEST_SIZE], head[256];
    struct rest_answer found;

    if (!read_request(ssl, fd, request)) {
        deliver(ssl, fd, bad_request, sizeof bad_request - 1);
        return;
    }
    pthread_mutex_lock(&server->lock);
    server->n_requests++;
    (void)!kinf__buffer_append(&server->requests, request, strlen(request));
    pthread_mutex_unlock(&server->lock);
    found = answer_of(server, request);
    if (found.body == NULL) {
        deliver(ssl, fd, endless, sizeof endless - 1);
        while (receive(ssl, fd, request, sizeof request) > 0)
            continue;
        return;
    }
    snprintf(head, sizeof head,
             "HTTP/1.1 %s\r\nContent-Type: application/json\r\nConnection: close\r\n"
             "Content-Length: %zu\r\n\r\n",
             found.status != NULL ? found.status : "200 OK", strlen(found.body));
    deliver(ssl, fd, head, strlen(head));
    deliver(ssl, fd, found.body, strlen(found.body));
}

static void note_client(struct rest_server *server, const SSL *ssl)
{
    X509 *certificate = SSL_get0_peer_certificate(ssl);

    pthread_mutex_lock(&server->lock);
    server->client_name[0] = '\0';
    if (certificate != NULL)
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                  server->client_name, sizeof server->client_name);
    pthread_mutex_unlock(&server->lock);
}

static void answer_tls(struct rest_server *server, int fd)
{
    SSL *ssl = SSL_new(server->tls);

    if (ssl != NULL && SSL_set_fd(ssl, fd) == 1 && SSL_accept(ssl) == 1) {
        note_client(server, ssl);
        answer(server, ssl, fd);
        SSL_shutdown(ssl);
    }
    SSL_free(ssl);
}

/* What the peer still sends is taken, so that closing does not reset what it has not read. */
static void close_gently(int fd)
{
    char rest[512];

    shutdown(fd, SHUT_WR);
    while (recv(fd, rest, sizeof rest, 0) > 0)
        continue;
    close(fd);
}

static void *serve(void *ctx)
{
    static const struct timeval limit = { GIVE_UP_S, 0 };
    struct rest_server *server = ctx;
    int fd;

    while ((fd = accept(server->listener, NULL, NULL)) >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        if (server->tls != NULL)
            answer_tls(server, fd);
        else
            answer(server, NULL, fd);
        close_gently(fd);
    }
    return NULL;
}

/* --- life --- */

static void set_tls(struct rest_server *server, const struct rest_identity *identity,
                    const struct rest_identity *client_authority)
{
    X509 *certificate = certificate_of(identity), *authority;
    EVP_PKEY *key = key_of(identity);

    server->tls = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate(server->tls, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(server->tls, key), 1);
    if (client_authority != NULL) {
        authority = certificate_of(client_authority);
        X509_STORE_add_cert(SSL_CTX_get_cert_store(server->tls), authority);
        SSL_CTX_set_verify(server->tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        X509_free(authority);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void open_listener(struct rest_server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;

    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server->listener, 4), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
}

struct rest_server *rest_server_start(const struct rest_answer *answers, size_t n_answers,
                                      const struct rest_identity *identity,
                                      const struct rest_identity *client_authority)
{
    struct rest_server *server = calloc(1, sizeof *server);

    assert_non_null(server);
    server->answers = answers;
    server->n_answers = n_answers;
    pthread_mutex_init(&server->lock, NULL);
    if (identity != NULL)
        set_tls(server, identity, client_authority);
    open_listener(server);
    assert_int_equal(kinf__thread_start(&server->thread, "rest-server", serve, server, NULL), 0);
    return server;
}

void rest_server_stop(struct rest_server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
    SSL_CTX_free(server->tls);
    pthread_mutex_destroy(&server->lock);
    kinf__buffer_release(&server->requests);
    free(server);
}

void rest_server_speak_only(struct rest_server *server, int tls_version)
{
    /* Old versions are below OpenSSL's own level. */
    assert_int_equal(SSL_CTX_set_cipher_list(server->tls, "DEFAULT:@SECLEVEL=0"), 1);
    assert_int_equal(SSL_CTX_set_min_proto_version(server->tls, tls_version), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(server->tls, tls_version), 1);
}

unsigned rest_server_port(const struct rest_server *server)
{
    return server->port;
}

char *rest_server_requests(struct rest_server *server)
{
    char *copy;

    pthread_mutex_lock(&server->lock);
    copy = strdup(kinf__buffer_cstr(&server->requests));
    pthread_mutex_unlock(&server->lock);
    return copy;
}

const char *rest_server_client_name(struct rest_server *server)
{
    static char name[sizeof server->client_name];

    pthread_mutex_lock(&server->lock);
    memcpy(name, server->client_name, sizeof name);
    pthread_mutex_unlock(&server->lock);
    return name;
}

size_t rest_server_n_requests(struct rest_server *server)
{
    size_t n;

    pthread_mutex_lock(&server->lock);
    n = server->n_requests;
    pthread_mutex_unlock(&server->lock);
    return n;
}

int rest_client_new(const char *kubeconfig, struct kinf_client **ret_client, struct kinf_error *err)
{
    char path[] = "/tmp/kinformer-test-XXXXXX";
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    KINF__AUTO_CLOSE int fd = mkstemp(path);
    int failed;

    assert_true(fd >= 0);
    assert_true(dprintf(fd, "%s", kubeconfig) > 0);
    options.kubeconfig = path;
    failed = kinf_client_new(&options, ret_client, err);
    unlink(path);
    return failed;
}
