/*
 * Words for curl's failures. Neighbours: http.c.
 */
#include "rest/transport_error.h"

#include <errno.h>
#include <string.h>

#include <openssl/x509.h>

#include "base/error.h"
#include "rest/client.h"

static int connect_error(CURL *easy, const struct kinf_client *client, const char *words,
                         struct kinf_error *err)
{
    long sys_errno = 0;

    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &sys_errno);
    /* With a proxy it is the proxy that did not answer; curl's words name it. */
    if (sys_errno == 0 || client->config.proxy_url != NULL)
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

int kinf__transport_error(CURL *easy, CURLcode result, const struct kinf_client *client,
                          const char *detail, struct kinf_error *err)
{
    const char *words = *detail != '\0' ? detail : curl_easy_strerror(result);
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
