/*
 * The client: a configuration that has been checked, and the credential that changes. Neighbours:
 * kubeconfig.c reads it, http.c connects with it, discovery.c asks for resources.
 */
#include "rest/client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

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

static EVP_PKEY *read_key(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    /* An encrypted key would ask on the terminal; a daemon has none. */
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"") : NULL;

    BIO_free(bio);
    return key;
}

static int check_key(const struct kinf__cluster_config *config, const X509 *certificate,
                     struct kinf_error *err)
{
    EVP_PKEY *key = read_key(config->client_key_pem);
    int failed = 0;

    if (key == NULL)
        return tls_error(err, config, "the client key");
    if (X509_check_private_key(certificate, key) != 1) {
        ERR_clear_error();
        failed = kinf__error_set(err, KINF_ERR_TLS,
                                 "%s: the client key does not belong to the client certificate",
                                 config->source);
    }
    EVP_PKEY_free(key);
    return failed;
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
    if (failed == 0)
        failed = check_key(config, certificate, err);
    X509_free(certificate);
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

/* What `part` of the URL is; NULL if it has none. The caller frees it with curl_free(). */
static char *part_of(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK ? text : NULL;
}

/* Whether requests can be put behind the URL. */
static bool is_bare(CURLU *url)
{
    char *query = part_of(url, CURLUPART_QUERY), *fragment = part_of(url, CURLUPART_FRAGMENT);
    bool is_there = query != NULL || fragment != NULL;

    curl_free(query);
    curl_free(fragment);
    return !is_there;
}

static int server_error(const struct kinf_client *client, const char *what, struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_CONFIG, "%s: the server '%s' %s", client->config.source,
                           client->config.server, what);
}

static int read_server(struct kinf_client *client, CURLU *url, struct kinf_error *err)
{
    char *scheme = part_of(url, CURLUPART_SCHEME), *host = part_of(url, CURLUPART_HOST),
         *port = part_of(url, CURLUPART_PORT);
    int failed = 0;

    if (scheme == NULL || host == NULL || port == NULL ||
        (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)) {
        failed = server_error(client, "is no https:// or http:// URL", err);
    } else if (!is_bare(url)) {
        failed = server_error(client, "has '?' or '#' in it", err);
    } else if (asprintf(&client->host, "%s:%s", host, port) < 0) {
        client->host = NULL;
        failed = kinf__error_no_memory(err);
    } else {
        client->is_https = strcmp(scheme, "https") == 0;
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    return failed;
}

static int check_server(struct kinf_client *client, struct kinf_error *err)
{
    CURLU *url = curl_url();
    CURLUcode status = url != NULL ? curl_url_set(url, CURLUPART_URL, client->config.server, 0)
                                   : CURLUE_OUT_OF_MEMORY;
    int failed;

    if (status == CURLUE_OUT_OF_MEMORY)
        failed = kinf__error_no_memory(err);
    else
        failed = read_server(client, url, err);
    curl_url_cleanup(url);
    return failed;
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

    if (failed < 0 || (failed = check_certificates(&client->config, err)) < 0 ||
        (failed = check_server(client, err)) < 0)
        return failed;
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

/* --- tokens --- */

/* A token file's content without the white space around it; NULL if there is nothing to be had. */
static char *read_token(const char *path)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    size_t start = 0;

    if (kinf__file_read(path, TOKEN_MAX_BYTES, &text, NULL) < 0 || text.len > TOKEN_MAX_BYTES)
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

/* A token goes into a header as it is. */
static bool is_one_line(const char *token)
{
    for (; *token != '\0'; token++) {
        if ((unsigned char)*token < ' ' || *token == '\x7f')
            return false;
    }
    return true;
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
    bool is_clean;
    int failed = 0;

    if (!client->is_https)
        return 0;
    kinf__mutex_lock(&client->lock);
    if (config->token_file != NULL)
        refresh_token_locked(client, refresh);
    token = client->token != NULL ? client->token : config->token;
    is_clean = token == NULL || is_one_line(token);
    if (token != NULL && is_clean)
        failed = kinf__buffer_printf(header, "Authorization: Bearer %s", token);
    kinf__mutex_unlock(&client->lock);
    if (!is_clean)
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "%s: the token has a line break or another control character in it",
                               config->source);
    if (token == NULL && config->username != NULL)
        failed = append_basic(header, config);
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}
