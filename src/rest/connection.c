/*
 * How connections are made, and words for curl's failures. Neighbours: transport.c.
 */
#include "rest/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/x509.h>

#include "base/compiler.h"
#include "base/error.h"
#include "rest/client.h"
#include "rest/no_proxy.h"

/* A vanished peer is found within a minute: by probes while nothing is sent, by the send timeout
 * while something is. */
#define KEEPALIVE_IDLE_S   30
#define KEEPALIVE_PERIOD_S 10
#define KEEPALIVE_PROBES   3
#define UNACKNOWLEDGED_MS  30000

/* curl's own sockets would be inherited by what the program executes. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    int *socket_errno = ctx;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)purpose;
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        *socket_errno = errno;
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* curl connects to what is written into the address; that the socket is connected already is not
 * understood by all of its versions. */
static curl_socket_t open_local_socket(void *ctx, curlsocktype purpose,
                                       struct curl_sockaddr *address)
{
    const struct kinf_client *client = ctx;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)purpose;
    address->family = AF_UNIX;
    address->addrlen = client->local_len;
    memcpy(&address->addr, &client->local, client->local_len);
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    const struct {
        int level, name, value;
    } options[] = {
        { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
        { IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_PERIOD_S },
        { IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES },
        { IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS },
    };

    (void)ctx;
    (void)purpose;
    /* A refusal costs only the early notice; the silence limit remains. */
    for (size_t i = 0; i < KINF__ARRAY_LEN(options); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
    return CURL_SOCKOPT_OK;
}

/* Options fail for want of memory. None may be missing: without its certificate authority curl
 * would trust those of the system. As Go does it, a proxy of https:// is verified like the server. */
static bool set_tls(CURL *easy, const struct kinf__cluster_config *config)
{
    static const CURLoption version[] = { CURLOPT_SSLVERSION, CURLOPT_PROXY_SSLVERSION },
                            peer[] = { CURLOPT_SSL_VERIFYPEER, CURLOPT_PROXY_SSL_VERIFYPEER },
                            host[] = { CURLOPT_SSL_VERIFYHOST, CURLOPT_PROXY_SSL_VERIFYHOST },
                            folder[] = { CURLOPT_CAPATH, CURLOPT_PROXY_CAPATH };
    long is_verified = config->insecure_skip_tls_verify ? 0 : 1;

    for (size_t i = 0; i < KINF__ARRAY_LEN(version); i++) {
        if (curl_easy_setopt(easy, version[i], (long)CURL_SSLVERSION_TLSv1_2) != CURLE_OK ||
            curl_easy_setopt(easy, peer[i], is_verified) != CURLE_OK ||
            curl_easy_setopt(easy, host[i], 2 * is_verified) != CURLE_OK ||
            (config->ca_pem != NULL && curl_easy_setopt(easy, folder[i], NULL) != CURLE_OK))
            return false;
    }
    return true;
}

/* As Go, let the proxy resolve the server's name: curl's name for that is another one. Whether there
 * is a proxy has been decided, and not by curl's rules. */
static bool set_proxy(CURL *easy, const char *url)
{
    KINF__AUTO_SECRET *longer = NULL;

    if (curl_easy_setopt(easy, CURLOPT_NOPROXY, "") != CURLE_OK)
        return false;
    if (url == NULL)
        return true;
    if (strncmp(url, "socks5://", 9) == 0) {
        if (asprintf(&longer, "socks5h%s", url + 6) < 0) {
            longer = NULL;
            return false;
        }
        url = longer;
    }
    return curl_easy_setopt(easy, CURLOPT_PROXY, url) == CURLE_OK;
}

bool kinf__connection_is_loopback(const char *host)
{
    char name[INET_ADDRSTRLEN];
    struct in_addr address;
    size_t len = (size_t)(strrchr(host, ':') - host);

    if (strncmp(host, "[::1]:", 6) == 0 || strncmp(host, "localhost:", 10) == 0)
        return true;
    if (len >= sizeof name)
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    return inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* As Go does it, a proxy of the environment is asked neither for this machine nor for what NO_PROXY
 * names. What curl would look for there is tls-server-name. */
static bool needs_no_proxy(const struct kinf_client *client)
{
    const char *list = getenv("NO_PROXY");

    if (list == NULL || *list == '\0')
        list = getenv("no_proxy");
    return kinf__connection_is_loopback(client->host) ||
           (list != NULL && kinf__no_proxy_has(list, client->host));
}

/* NULL: that of the environment, if there is one; "": none. */
static const char *proxy_for(const struct kinf_client *client)
{
    return client->config.proxy_url == NULL && needs_no_proxy(client) ? ""
                                                                      : client->config.proxy_url;
}

bool kinf__connection_prepare(CURL *easy, const struct kinf_client *client, int *socket_errno)
{
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, socket_errno);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    if (client->local_len != 0) {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_local_socket);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, client);
        curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, NULL);
        /* Nobody's proxy leads there. */
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    }
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    /* url.c escapes the dots of a segment; newer versions of curl would still resolve them. */
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)client->connect_timeout_ms);
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           set_proxy(easy, proxy_for(client)) && set_tls(easy, &client->config);
}

static bool set_blob(CURL *easy, CURLoption option, const char *pem)
{
    struct curl_blob blob = { (void *)pem, pem != NULL ? strlen(pem) : 0, CURL_BLOB_NOCOPY };

    return curl_easy_setopt(easy, option, pem != NULL ? &blob : NULL) == CURLE_OK;
}

bool kinf__connection_set_credential(CURL *easy, const struct kinf__credential_parts *parts)
{
    const struct {
        CURLoption option;
        const char *pem;
    } blobs[] = { { CURLOPT_CAINFO_BLOB, parts->ca_pem },
                  { CURLOPT_PROXY_CAINFO_BLOB, parts->ca_pem },
                  { CURLOPT_SSLCERT_BLOB, parts->cert_pem },
                  { CURLOPT_SSLKEY_BLOB, parts->key_pem } };
    bool are_set = true;

    for (size_t i = 0; are_set && i < KINF__ARRAY_LEN(blobs); i++)
        are_set = set_blob(easy, blobs[i].option, blobs[i].pem);
    for (size_t i = 0; !are_set && i < KINF__ARRAY_LEN(blobs); i++)
        curl_easy_setopt(easy, blobs[i].option, NULL);
    return are_set;
}

struct kinf_str kinf__connection_authority(const struct kinf_client *client)
{
    const char *start = strstr(client->config.server, "://"), *user_end;
    size_t len;

    start = start != NULL ? start + 3 : client->config.server;
    len = strcspn(start, "/");
    user_end = memrchr(start, '@', len);
    return user_end != NULL
               ? (struct kinf_str){ user_end + 1, len - (size_t)(user_end + 1 - start) }
               : (struct kinf_str){ start, len };
}

bool kinf__connection_has_other_name(const struct kinf_client *client)
{
    return client->config.tls_server_name != NULL && client->is_https;
}

/* The certificate is verified against the host of the URL, so tls-server-name takes its place
 * there, and the connection goes where the server is. */
int kinf__connection_append_url(const struct kinf_client *client, struct kinf_str target,
                                struct kinf__buffer *url, struct curl_slist **connect_to)
{
    const struct kinf__cluster_config *config = &client->config;
    struct kinf_str authority = kinf__connection_authority(client);
    KINF__AUTO_BUFFER route = KINF__BUFFER_INIT;
    const char *text;

    if (!kinf__connection_has_other_name(client))
        return kinf__buffer_printf(url, "%s%.*s", config->server, (int)target.len, target.bytes);
    if (kinf__buffer_printf(url, "https://%s%s%.*s", config->tls_server_name,
                            authority.bytes + authority.len, (int)target.len, target.bytes) < 0 ||
        kinf__buffer_printf(&route, "::%s", client->host) < 0 ||
        (text = kinf__buffer_cstr(&route)) == NULL)
        return KINF_ERR_NO_MEMORY;
    *connect_to = curl_slist_append(NULL, text);
    return *connect_to != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* --- what failed --- */

static bool may_have_proxy(const struct kinf_client *client)
{
    static const char *const variables[] = { "https_proxy", "HTTPS_PROXY", "http_proxy",
                                             "all_proxy", "ALL_PROXY" };

    if (proxy_for(client) != NULL)
        return *proxy_for(client) != '\0';
    for (size_t i = 0; i < KINF__ARRAY_LEN(variables); i++) {
        const char *value = getenv(variables[i]);

        if (value != NULL && *value != '\0')
            return true;
    }
    return false;
}

static int connect_error(CURL *easy, const struct kinf_client *client, const char *words,
                         struct kinf_error *err)
{
    long sys_errno = 0;

    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &sys_errno);
    /* With a proxy it is the proxy that did not answer; curl's words name it. */
    if (sys_errno == 0 || may_have_proxy(client))
        return kinf__error_set(err, KINF_ERR_NETWORK, "cannot connect to the server %s: %s (%s)",
                               client->host, words, client->config.cluster_source);
    return kinf__error_set_errno(err, KINF_ERR_NETWORK, (int)sys_errno,
                                 "cannot connect to the server %s (%s; is it running?)",
                                 client->host, client->config.cluster_source);
}

/* Who showed the certificate that was looked at last, and where one says whom to expect. */
struct peer {
    const char *what, *where;
    long verdict;
};

/* A proxy of https:// is verified before it is asked for the server. */
static struct peer peer_of(CURL *easy)
{
    struct peer proxy = { "proxy of the server", "proxy-url", X509_V_OK },
                server = { "server", "server and tls-server-name", X509_V_OK };
    long code = 0;

    curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &code);
    curl_easy_getinfo(easy, CURLINFO_PROXY_SSL_VERIFYRESULT, &proxy.verdict);
    curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &server.verdict);
    return code == 0 && proxy.verdict != X509_V_OK ? proxy : server;
}

static int verify_error(const struct peer *peer, const struct kinf_client *client,
                        const char *detail, struct kinf_error *err)
{
    /* The chain is good, the name is not: curl leaves its own beginning value, 1, or OpenSSL's. */
    if (peer->verdict == X509_V_OK || peer->verdict == X509_V_ERR_UNSPECIFIED)
        return kinf__error_set(
            err, KINF_ERR_TLS, "the certificate of the %s %s is for another name: %s (%s: see %s)",
            peer->what, client->host, detail, client->config.cluster_source, peer->where);
    if (peer->verdict == X509_V_ERR_CERT_HAS_EXPIRED ||
        peer->verdict == X509_V_ERR_CERT_NOT_YET_VALID)
        return kinf__error_set(err, KINF_ERR_TLS,
                               "the certificate of the %s %s: %s; it has to be renewed there (or "
                               "the clock here is wrong)",
                               peer->what, client->host,
                               X509_verify_cert_error_string(peer->verdict));
    return kinf__error_set(
        err, KINF_ERR_TLS,
        "the certificate of the %s %s is not signed by %s: %s (%s: see certificate-authority)",
        peer->what, client->host,
        client->config.ca_pem != NULL ? "the given certificate authority"
                                      : "an authority that this system trusts",
        X509_verify_cert_error_string(peer->verdict), client->config.cluster_source);
}

/* A handshake ends by an alert, which OpenSSL numbers, or because the connection broke. With TLS
 * 1.3 our certificate is refused only when we already read the answer. */
static int handshake_error(const struct peer *peer, const struct kinf_client *client,
                           const char *detail, struct kinf_error *err)
{
    if (strstr(detail, "wrong version number") != NULL)
        return kinf__error_set(err, KINF_ERR_TLS,
                               "the %s %s does not speak TLS; is it http:// in %s?", peer->what,
                               client->host, client->config.cluster_source);
    if (strstr(detail, "error:") != NULL && strstr(detail, "unexpected eof") == NULL)
        return kinf__error_set(err, KINF_ERR_TLS, "no TLS with the %s %s: %s (%s)", peer->what,
                               client->host, detail, client->config.cluster_source);
    return kinf__error_set(err, KINF_ERR_NETWORK, "the TLS handshake with the %s %s broke off: %s",
                           peer->what, client->host, detail);
}

/* Of a proxy that it cannot use curl says the whole URL, and a password with it. */
static const char *words_of(CURLcode result, const char *detail)
{
    if (strncmp(detail, "Unsupported proxy", 17) == 0)
        return "the proxy's address is not understood";
    return *detail == '\0' || strchr(detail, '@') != NULL ? curl_easy_strerror(result) : detail;
}

int kinf__connection_error(CURL *easy, CURLcode result, const struct kinf_client *client,
                           const char *detail, struct kinf_error *err)
{
    const char *words = words_of(result, detail);
    struct peer peer = peer_of(easy);
    int code;

    switch (result) {
    case CURLE_OUT_OF_MEMORY:
        return kinf__error_no_memory(err);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return kinf__error_set(err, KINF_ERR_NETWORK, "cannot resolve the server %s: %s (%s)",
                               client->host, words, client->config.cluster_source);
    case CURLE_COULDNT_CONNECT:
        return connect_error(easy, client, words, err);
    case CURLE_OPERATION_TIMEDOUT:
        return kinf__error_set(err, KINF_ERR_TIMEOUT, "no connection to the server %s in time: %s",
                               client->host, words);
    case CURLE_PEER_FAILED_VERIFICATION:
        return verify_error(&peer, client, words, err);
    case CURLE_SSL_CONNECT_ERROR:
        return handshake_error(&peer, client, words, err);
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
        return kinf__error_set(err, KINF_ERR_TLS, "no TLS with the %s %s: %s (%s)", peer.what,
                               client->host, words, client->config.cluster_source);
    case CURLE_PARTIAL_FILE:
        code = kinf__broken_off(client, words, err);
        kinf__error_prefix(err, "the body was cut short");
        return code;
    case CURLE_GOT_NOTHING:
        return kinf__broken_off(client, words, err);
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        if (strstr(words, " alert ") != NULL)
            return handshake_error(&peer, client, words, err);
        return kinf__broken_off(client, words, err);
    default:
        return kinf__error_set(err, KINF_ERR_NETWORK, "server %s: %s", client->host, words);
    }
}

int kinf__broken_off(const struct kinf_client *client, const char *words, struct kinf_error *err)
{
    int code = kinf__error_set(err, KINF_ERR_NETWORK, "server %s: %s", client->host, words);

    if (err != NULL)
        err->sys_errno = ECONNRESET;
    return code;
}
