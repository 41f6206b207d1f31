/*
 * TLS of the server. Neighbours: channel.c uses the context, replay.c hands out the authority.
 */
#include "replay/tls.h"

#include <openssl/err.h>

#include "base/compiler.h"
#include "base/error.h"
#include "sim/key_pair.h"

#define DAY_S (24 * 3600)

static int make_key_pair(struct replay__tls *tls, struct kinf__key_pair *ret_pair,
                         struct kinf_error *err)
{
    const struct kinf__key_pair_options of_authority = { .name = "replay authority",
                                                         .valid_s = DAY_S };
    struct kinf__key_pair authority;
    const struct kinf__key_pair_options of_server = { .name = "replay server",
                                                      .alt_names = "IP:127.0.0.1,DNS:localhost",
                                                      .valid_s = DAY_S,
                                                      .issuer = &authority };
    int failed = kinf__key_pair_make(&of_authority, &authority, err);

    if (failed < 0)
        return failed;
    failed = kinf__key_pair_make(&of_server, ret_pair, err);
    tls->ca_pem = KINF__TAKE(authority.cert_pem);
    kinf__key_pair_release(&authority);
    return failed;
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

/* Shows the pair, or lets nobody in but clients of it. */
static bool use(SSL_CTX *context, const struct kinf__key_pair *pair, bool is_authority)
{
    X509 *certificate;
    EVP_PKEY *key;
    bool is_done;

    if (kinf__key_pair_read(pair, &certificate, &key, NULL) < 0)
        return false;
    if (is_authority) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        is_done = X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1;
    } else {
        is_done = SSL_CTX_use_certificate(context, certificate) == 1 &&
                  SSL_CTX_use_PrivateKey(context, key) == 1;
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
    return is_done;
}

/* Old versions are below OpenSSL's own level. */
static bool speak(SSL_CTX *context, int version)
{
    if (version == 0)
        return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
    return SSL_CTX_set_cipher_list(context, "DEFAULT:@SECLEVEL=0") == 1 &&
           SSL_CTX_set_min_proto_version(context, version) == 1 &&
           SSL_CTX_set_max_proto_version(context, version) == 1;
}

/* The cipher is the one that kube-apiserver chooses on machines with AES instructions. */
static bool make_context(struct replay__tls *tls, const struct kinf__key_pair *pair,
                         const struct replay_options *options)
{
    SSL_CTX *context = tls->context = SSL_CTX_new(TLS_server_method());

    if (context == NULL)
        return false;
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    return SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
           speak(context, options->tls_version) && use(context, pair, false) &&
           (options->client_authority == NULL || use(context, options->client_authority, true));
}

int replay__tls_init(struct replay__tls *ret_tls, const struct replay_options *options,
                     struct kinf_error *err)
{
    struct kinf__key_pair made = { NULL, NULL };
    struct replay__tls tls = { NULL, NULL };
    int failed = options->key_pair == NULL ? make_key_pair(&tls, &made, err) : 0;

    if (failed == 0 &&
        !make_context(&tls, options->key_pair != NULL ? options->key_pair : &made, options))
        failed = kinf__error_set(err, KINF_ERR_TLS, "cannot set up TLS: %s",
                                 ERR_reason_error_string(ERR_get_error()));
    kinf__key_pair_release(&made);
    if (failed < 0)
        replay__tls_release(&tls);
    else
        *ret_tls = tls;
    return failed;
}

void replay__tls_release(struct replay__tls *tls)
{
    SSL_CTX_free(tls->context);
    free(tls->ca_pem);
    *tls = (struct replay__tls){ NULL, NULL };
}
