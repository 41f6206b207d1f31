/*
 * The client: a configuration that has been checked, and the credential that changes. Neighbours:
 * kubeconfig.c reads it, http.c connects with it, discovery.c asks for resources.
 */
#include "rest/client.h"

#include <fcntl.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/clock.h"
#include "base/error.h"
#include "rest/discovery.h"
#include "rest/http.h"

#define CONNECT_TIMEOUT_MS  30000
#define REQUEST_TIMEOUT_MS  30000
#define TOKEN_FRESH_MS      60000
#define TOKEN_MAX_BYTES     (1 << 20)
#define ASN1_TIME_TEXT_SIZE 64

/* --- what the process needs once --- */

static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static CURLcode library_status;

static void init_library(void)
{
    library_status = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int check_library(struct kinf_error *err)
{
    const curl_version_info_data *version;

    pthread_once(&library_once, init_library);
    if (library_status != CURLE_OK)
        return kinf__error_set(err, KINF_ERR_UNSUPPORTED, "libcurl does not start: %s",
                               curl_easy_strerror(library_status));
    version = curl_version_info(CURLVERSION_NOW);
    if (version->ssl_version == NULL || strncmp(version->ssl_version, "OpenSSL/", 8) != 0)
        return kinf__error_set(err, KINF_ERR_UNSUPPORTED,
                               "libcurl is built with %s, but kinformer needs its OpenSSL flavour "
                               "(Debian: libcurl4-openssl-dev)",
                               version->ssl_version != NULL ? version->ssl_version : "no TLS");
    return 0;
}

/* --- certificates --- */

static int tls_error(struct kinf_error *err, const struct kinf__cluster_config *config,
                     const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);

    ERR_clear_error();
    return kinf__error_set(err, KINF_ERR_TLS, "%s: %s cannot be read: %s", config->source, what,
                           reason != NULL ? reason : "no PEM block in it");
}

static X509 *read_certificate(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    BIO_free(bio);
    return certificate;
}

static bool has_private_key(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    /* An encrypted key would ask on the terminal; a daemon has none. */
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"") : NULL;
    bool is_there = key != NULL;

    EVP_PKEY_free(key);
    BIO_free(bio);
    return is_there;
}

static void write_time(const ASN1_TIME *time, char *text, size_t size)
{
    BIO *bio = BIO_new(BIO_s_mem());
    int len = 0;

    if (bio != NULL && ASN1_TIME_print(bio, time) == 1)
        len = BIO_read(bio, text, (int)size - 1);
    text[len > 0 ? len : 0] = '\0';
    BIO_free(bio);
}

static int check_validity(const struct kinf__cluster_config *config, const X509 *certificate,
                          struct kinf_error *err)
{
    char when[ASN1_TIME_TEXT_SIZE];

    if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
        write_time(X509_get0_notAfter(certificate), when, sizeof when);
        return kinf__error_set(err, KINF_ERR_TLS,
                               "%s: the client certificate expired on %s; get a new one from the "
                               "cluster's administrator",
                               config->source, when);
    }
    return 0;
}

static int check_client_certificate(const struct kinf__cluster_config *config,
                                    struct kinf_error *err)
{
    X509 *certificate;
    int failed;

    if (config->client_cert_pem == NULL && config->client_key_pem == NULL)
        return 0;
    if (config->client_cert_pem == NULL || config->client_key_pem == NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "%s: client certificate and key go together, one is missing",
                               config->source);
    certificate = read_certificate(config->client_cert_pem);
    if (certificate == NULL)
        return tls_error(err, config, "the client certificate");
    failed = check_validity(config, certificate, err);
    X509_free(certificate);
    if (failed == 0 && !has_private_key(config->client_key_pem))
        failed = tls_error(err, config, "the client key");
    return failed;
}

static int check_certificates(const struct kinf__cluster_config *config, struct kinf_error *err)
{
    X509 *authority;

    if (config->ca_pem != NULL) {
        authority = read_certificate(config->ca_pem);
        if (authority == NULL)
            return tls_error(err, config, "the certificate authority");
        X509_free(authority);
    }
    return check_client_certificate(config, err);
}

/* --- the server's name --- */

/* "name:port" of a URL, or NULL with the error written. */
static char *host_of(const struct kinf__cluster_config *config, struct kinf_error *err)
{
    CURLU *url = curl_url();
    char *host = NULL, *port = NULL, *text = NULL, *scheme = NULL;

    if (url != NULL && curl_url_set(url, CURLUPART_URL, config->server, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
        (strcmp(scheme, "https") == 0 || strcmp(scheme, "http") == 0)) {
        if (asprintf(&text, "%s:%s", host, port) < 0) {
            text = NULL;
            kinf__error_no_memory(err);
        }
    } else {
        kinf__error_set(err, KINF_ERR_CONFIG, "%s: the server '%s' is no https:// or http:// URL",
                        config->source, config->server);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(url);
    return text;
}

/* --- life --- */

static int64_t or_default(int64_t given, int64_t otherwise)
{
    return given > 0 ? given : otherwise;
}

static int fill(struct kinf_client *client, const struct kinf_client_options *options,
                struct kinf_error *err)
{
    int failed =
        kinf__cluster_config_load(options->kubeconfig, options->context, &client->config, err);

    if (failed < 0 || (failed = check_certificates(&client->config, err)) < 0)
        return failed;
    client->host = host_of(&client->config, err);
    if (client->host == NULL)
        return KINF_ERR_CONFIG;
    client->user_agent = strdup(options->user_agent != NULL ? options->user_agent
                                                            : "kinformer/" KINF_VERSION_STRING);
    if (client->user_agent == NULL)
        return kinf__error_no_memory(err);
    client->connect_timeout_ms = or_default(options->connect_timeout_ms, CONNECT_TIMEOUT_MS);
    client->request_timeout_ms = or_default(options->request_timeout_ms, REQUEST_TIMEOUT_MS);
    return 0;
}

int kinf_client_new(const struct kinf_client_options *options, struct kinf_client **ret_client,
                    struct kinf_error *err)
{
    static const struct kinf_client_options defaults = KINF_CLIENT_OPTIONS_INIT;
    struct kinf_client *client;
    int failed = check_library(err);

    if (failed < 0)
        return failed;
    client = calloc(1, sizeof *client);
    if (client == NULL)
        return kinf__error_no_memory(err);
    client->interrupted.fd = -1;
    kinf__mutex_init(&client->lock, KINF__RANK_CREDENTIALS);
    failed = kinf__waker_init(&client->interrupted, err);
    if (failed == 0)
        failed = fill(client, options != NULL ? options : &defaults, err);
    if (failed < 0) {
        kinf_client_free(client);
        return failed;
    }
    *ret_client = client;
    return 0;
}

void kinf_client_free(struct kinf_client *client)
{
    if (client == NULL)
        return;
    kinf__cluster_config_release(&client->config);
    kinf__waker_release(&client->interrupted);
    kinf__mutex_release(&client->lock);
    free(client->host);
    free(client->user_agent);
    free(client->token);
    free(client);
}

void kinf_client_free_ptr(struct kinf_client **client)
{
    kinf_client_free(*client);
}

const char *kinf_client_server(const struct kinf_client *client)
{
    return client->config.server;
}

const char *kinf_client_namespace(const struct kinf_client *client)
{
    return client->config.name_space != NULL ? client->config.name_space : "";
}

void kinf_client_interrupt(struct kinf_client *client)
{
    kinf__waker_set(&client->interrupted);
}

int kinf_client_find_type(struct kinf_client *client, const char *resource,
                          const struct kinf_type **ret_type, struct kinf_error *err)
{
    struct kinf__http *http = NULL;
    int failed = kinf__http_new(client, &client->interrupted, &http, err);

    if (failed == 0)
        failed = kinf__discovery_find(http, resource, ret_type, err);
    kinf__http_free(http);
    return failed;
}

/* --- tokens --- */

/* A token file's content without the white space around it; NULL if there is nothing to be had. */
static char *read_token(const char *path)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;
    size_t start = 0;

    while (fd >= 0 && text.len < TOKEN_MAX_BYTES && kinf__buffer_reserve(&text, 4096) == 0 &&
           ((n = read(fd, text.bytes + text.len, 4096)) > 0 || (n < 0 && errno == EINTR)))
        text.len += n > 0 ? (size_t)n : 0;
    if (n != 0 || fd < 0)
        return NULL;
    while (text.len > 0 && strchr(" \t\r\n", text.bytes[text.len - 1]) != NULL)
        text.len--;
    while (start < text.len && strchr(" \t\r\n", text.bytes[start]) != NULL)
        start++;
    return text.len > start ? strndup(text.bytes + start, text.len - start) : NULL;
}

static void refresh_token_locked(struct kinf_client *client, bool refresh)
    KINF__REQUIRES(client->lock)
{
    int64_t now_ms = kinf__clock_now_ms();
    char *fresh;

    if (client->token != NULL && !refresh && now_ms - client->token_read_ms < TOKEN_FRESH_MS)
        return;
    fresh = read_token(client->config.token_file);
    if (fresh == NULL)
        return;
    free(client->token);
    client->token = fresh;
    client->token_read_ms = now_ms;
}

static int append_basic(struct kinf__buffer *header, const struct kinf__cluster_config *config)
{
    KINF__AUTO_BUFFER plain = KINF__BUFFER_INIT;
    KINF__AUTO_FREE char *encoded = NULL;

    if (kinf__buffer_printf(&plain, "%s:%s", config->username,
                            config->password != NULL ? config->password : "") < 0)
        return KINF_ERR_NO_MEMORY;
    encoded = malloc(plain.len * 4 / 3 + 5);
    if (encoded == NULL)
        return KINF_ERR_NO_MEMORY;
    EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)plain.bytes, (int)plain.len);
    return kinf__buffer_printf(header, "Authorization: Basic %s", encoded);
}

int kinf__client_authorization(struct kinf_client *client, bool refresh,
                               struct kinf__buffer *header, struct kinf_error *err)
{
    const struct kinf__cluster_config *config = &client->config;
    const char *token;
    int failed = 0;

    if (strncmp(config->server, "https://", 8) != 0)
        return 0;
    kinf__mutex_lock(&client->lock);
    if (config->token_file != NULL)
        refresh_token_locked(client, refresh);
    token = client->token != NULL ? client->token : config->token;
    if (token != NULL)
        failed = kinf__buffer_printf(header, "Authorization: Bearer %s", token);
    kinf__mutex_unlock(&client->lock);
    if (token == NULL && config->username != NULL)
        failed = append_basic(header, config);
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}
