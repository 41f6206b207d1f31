/*
 * Key pairs by OpenSSL. Neighbour: certificate.c keeps them in files.
 */
#include "sim/key_pair.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/error.h"

#define VALID_BEFORE_S 3600 /* clocks differ */

static int tls_error(struct kinf_error *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    if (reason == NULL)
        return kinf__error_no_memory(err);
    return kinf__error_set(err, KINF_ERR_TLS, "cannot %s a certificate: %s", what, reason);
}

/* --- what it says --- */

static bool set_serial(X509 *certificate)
{
    uint64_t serial;

    return RAND_bytes((unsigned char *)&serial, sizeof serial) == 1 &&
           ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1;
}

/* What every certificate has. */
static bool describe(X509 *certificate, EVP_PKEY *key, const char *name, int64_t valid_s)
{
    int64_t from_s = (valid_s < 0 ? valid_s : 0) - VALID_BEFORE_S;

    return X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), (long)from_s) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), (long)valid_s) != NULL &&
           X509_set_pubkey(certificate, key) == 1 &&
           X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                                      (const unsigned char *)name, -1, -1, 0) == 1;
}

/* `issuer` may be the certificate itself. */
static bool add_extension(X509 *certificate, const X509 *issuer, int nid, const char *value)
{
    X509_EXTENSION *extension;
    X509V3_CTX context;
    bool is_done;

    X509V3_set_ctx(&context, (X509 *)issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    is_done = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;

    X509_EXTENSION_free(extension);
    return is_done;
}

/* Clients that are strict look for both. */
static bool describe_keys(X509 *certificate, const X509 *issuer)
{
    return add_extension(certificate, issuer, NID_subject_key_identifier, "hash") &&
           add_extension(certificate, issuer, NID_authority_key_identifier, "keyid:always");
}

static bool describe_use(X509 *certificate, const X509 *issuer,
                         const struct kinf__key_pair_options *options)
{
    bool is_server = options->alt_names != NULL;
    const char *use = is_server ? "serverAuth" : "clientAuth";

    if (options->issuer == NULL)
        return add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:TRUE") &&
               add_extension(certificate, issuer, NID_key_usage, "critical,keyCertSign");
    return add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
           add_extension(certificate, issuer, NID_ext_key_usage, use) &&
           (!is_server ||
            add_extension(certificate, issuer, NID_subject_alt_name, options->alt_names));
}

static bool sign(X509 *certificate, const X509 *issuer, EVP_PKEY *issuer_key)
{
    return X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
           X509_sign(certificate, issuer_key, EVP_sha256()) > 0;
}

/* --- PEM --- */

/* Of one of both; the other is NULL. */
static char *write_pem(const X509 *certificate, const EVP_PKEY *key)
{
    BIO *out = BIO_new(BIO_s_mem());
    char *bytes, *pem = NULL;
    long len;

    if (out != NULL &&
        (certificate != NULL
             ? PEM_write_bio_X509(out, certificate)
             : PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL)) == 1 &&
        (len = BIO_get_mem_data(out, &bytes)) > 0) {
        pem = calloc(1, (size_t)len + 1);
        if (pem != NULL)
            memcpy(pem, bytes, (size_t)len);
        OPENSSL_cleanse(bytes, (size_t)len);
    }
    BIO_free(out);
    return pem;
}

int kinf__key_pair_read(const struct kinf__key_pair *pair, X509 **ret_certificate,
                        EVP_PKEY **ret_key, struct kinf_error *err)
{
    BIO *cert_pem = BIO_new_mem_buf(pair->cert_pem, -1);
    BIO *key_pem = BIO_new_mem_buf(pair->key_pem, -1);
    X509 *certificate = cert_pem != NULL ? PEM_read_bio_X509(cert_pem, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = key_pem != NULL ? PEM_read_bio_PrivateKey(key_pem, NULL, NULL, NULL) : NULL;

    BIO_free(cert_pem);
    BIO_free(key_pem);
    if (certificate == NULL || key == NULL) {
        X509_free(certificate);
        EVP_PKEY_free(key);
        return tls_error(err, "read");
    }
    *ret_certificate = certificate;
    *ret_key = key;
    return 0;
}

/* --- life --- */

/* Without an issuer it signs itself. */
static bool make(const struct kinf__key_pair_options *options, const X509 *issuer,
                 EVP_PKEY *issuer_key, struct kinf__key_pair *pair)
{
    X509 *certificate = X509_new();
    EVP_PKEY *key = EVP_EC_gen("P-256");
    const X509 *signer = issuer != NULL ? issuer : certificate;
    bool is_made = certificate != NULL && key != NULL &&
                   describe(certificate, key, options->name, options->valid_s) &&
                   describe_keys(certificate, signer) &&
                   describe_use(certificate, signer, options) &&
                   sign(certificate, signer, issuer != NULL ? issuer_key : key) &&
                   (pair->cert_pem = write_pem(certificate, NULL)) != NULL &&
                   (pair->key_pem = write_pem(NULL, key)) != NULL;

    X509_free(certificate);
    EVP_PKEY_free(key);
    return is_made;
}

int kinf__key_pair_make(const struct kinf__key_pair_options *options,
                        struct kinf__key_pair *ret_pair, struct kinf_error *err)
{
    struct kinf__key_pair pair = { NULL, NULL };
    X509 *issuer = NULL;
    EVP_PKEY *issuer_key = NULL;
    int failed = 0;

    ERR_clear_error(); /* what is found below is ours */
    if (options->issuer != NULL)
        failed = kinf__key_pair_read(options->issuer, &issuer, &issuer_key, err);
    if (failed == 0 && !make(options, issuer, issuer_key, &pair))
        failed = tls_error(err, "make");
    X509_free(issuer);
    EVP_PKEY_free(issuer_key);
    if (failed < 0)
        kinf__key_pair_release(&pair);
    else
        *ret_pair = pair;
    return failed;
}

void kinf__key_pair_release(struct kinf__key_pair *pair)
{
    if (pair->key_pem != NULL)
        OPENSSL_cleanse(pair->key_pem, strlen(pair->key_pem));
    free(pair->key_pem);
    free(pair->cert_pem);
    *pair = (struct kinf__key_pair){ NULL, NULL };
}
