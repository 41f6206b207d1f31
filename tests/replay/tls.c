/*
 * TLS of the server. Neighbours: channel.c uses the context, replay.c hands out the authority.
 */
#include "replay/tls.h"

#include <string.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/error.h"

#define HOUR_S 3600

/* A certificate with its key. */
struct identity {
    EVP_PKEY *key;
    X509 *certificate;
};

static void identity_release(struct identity *identity)
{
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
}

static bool add_extension(X509 *certificate, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    bool added = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;

    X509_EXTENSION_free(extension);
    return added;
}

static bool name_it(X509_NAME *name, const char *text)
{
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)text, -1, -1,
                                      0) == 1;
}

static bool make_certificate(struct identity *identity, const char *name, long serial,
                             const struct identity *issuer)
{
    X509 *certificate = identity->certificate = X509_new();

    identity->key = EVP_EC_gen("P-256");
    return certificate != NULL && identity->key != NULL && X509_set_version(certificate, 2) == 1 &&
           ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -HOUR_S) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), 24L * HOUR_S) != NULL &&
           name_it(X509_get_subject_name(certificate), name) &&
           X509_set_issuer_name(certificate, X509_get_subject_name(issuer->certificate)) == 1 &&
           X509_set_pubkey(certificate, identity->key) == 1;
}

static bool make_authority(struct identity *authority)
{
    return make_certificate(authority, "replay authority", 1, authority) &&
           add_extension(authority->certificate, NID_basic_constraints, "critical,CA:TRUE") &&
           add_extension(authority->certificate, NID_key_usage, "critical,keyCertSign") &&
           X509_sign(authority->certificate, authority->key, EVP_sha256()) != 0;
}

static bool make_server(struct identity *server, const struct identity *authority)
{
    return make_certificate(server, "replay server", 2, authority) &&
           add_extension(server->certificate, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost") &&
           add_extension(server->certificate, NID_ext_key_usage, "serverAuth") &&
           X509_sign(server->certificate, authority->key, EVP_sha256()) != 0;
}

static bool write_pem(X509 *certificate, char **ret_pem)
{
    BIO *memory = BIO_new(BIO_s_mem());
    char *bytes;
    long len;

    if (memory != NULL && PEM_write_bio_X509(memory, certificate) == 1) {
        len = BIO_get_mem_data(memory, &bytes);
        *ret_pem = calloc((size_t)len + 1, 1);
        if (*ret_pem != NULL)
            memcpy(*ret_pem, bytes, (size_t)len);
    }
    BIO_free(memory);
    return *ret_pem != NULL;
}

static int choose_protocol(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_len,
                           const unsigned char *offered, unsigned offered_len, void *ctx)
{
    static const unsigned char ours[] = "\x8http/1.1";
    unsigned char *chosen;

    (void)ssl;
    (void)ctx;
    if (SSL_select_next_proto(&chosen, ret_len, ours, sizeof ours - 1, offered, offered_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *ret_name = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* The cipher is the one that kube-apiserver chooses on machines with AES instructions. */
static bool make_context(struct replay__tls *tls, const struct identity *server)
{
    SSL_CTX *context = tls->context = SSL_CTX_new(TLS_server_method());

    if (context == NULL)
        return false;
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
           SSL_CTX_use_certificate(context, server->certificate) == 1 &&
           SSL_CTX_use_PrivateKey(context, server->key) == 1;
}

int replay__tls_init(struct replay__tls *ret_tls, struct kinf_error *err)
{
    struct identity authority = { NULL, NULL }, server = { NULL, NULL };
    struct replay__tls tls = { NULL, NULL };
    bool made = make_authority(&authority) && make_server(&server, &authority) &&
                write_pem(authority.certificate, &tls.ca_pem) && make_context(&tls, &server);

    identity_release(&authority);
    identity_release(&server);
    if (!made) {
        replay__tls_release(&tls);
        return kinf__error_set(err, KINF_ERR_TLS, "cannot make certificates: %s",
                               ERR_reason_error_string(ERR_get_error()));
    }
    *ret_tls = tls;
    return 0;
}

void replay__tls_release(struct replay__tls *tls)
{
    SSL_CTX_free(tls->context);
    free(tls->ca_pem);
    *tls = (struct replay__tls){ NULL, NULL };
}
