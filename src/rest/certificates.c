/*
 * Checks of certificates and keys. Neighbours: client.c for those of the configuration,
 * credentials.c for those that come later.
 */
#include "rest/certificates.h"

#include <stddef.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/error.h"

#define ASN1_TIME_TEXT_SIZE 64

static int tls_error(struct kinf_error *err, const char *source, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);

    ERR_clear_error();
    return kinf__error_set(err, KINF_ERR_TLS, "%s: %s cannot be read: %s", source, what,
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

static int check_key(const X509 *certificate, const char *key_pem, const char *source,
                     struct kinf_error *err)
{
    EVP_PKEY *key = read_key(key_pem);
    int failed = 0;

    if (key == NULL)
        return tls_error(err, source, "the client key");
    if (X509_check_private_key(certificate, key) != 1) {
        ERR_clear_error();
        failed =
            kinf__error_set(err, KINF_ERR_TLS,
                            "%s: the client key does not belong to the client certificate", source);
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

static int check_validity(const X509 *certificate, const char *source, struct kinf_error *err)
{
    char when[ASN1_TIME_TEXT_SIZE];

    if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
        write_time(X509_get0_notAfter(certificate), when, sizeof when);
        return kinf__error_set(err, KINF_ERR_TLS,
                               "%s: the client certificate expired on %s; get a new one from the "
                               "cluster's administrator",
                               source, when);
    }
    return 0;
}

static int64_t end_of(const X509 *certificate)
{
    struct tm when;

    return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &when) == 1 ? (int64_t)timegm(&when)
                                                                        : INT64_MAX;
}

int kinf__certificates_check_authority(const char *pem, const char *source, struct kinf_error *err)
{
    X509 *authority = read_certificate(pem);

    if (authority == NULL)
        return tls_error(err, source, "the certificate authority");
    X509_free(authority);
    return 0;
}

int kinf__certificates_check_client(const char *cert_pem, const char *key_pem, const char *source,
                                    int64_t *ret_not_after, struct kinf_error *err)
{
    int64_t not_after = INT64_MAX;
    X509 *certificate;
    int failed = 0;

    if ((cert_pem == NULL) != (key_pem == NULL))
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "%s: client certificate and key go together, one is missing",
                               source);
    if (cert_pem != NULL) {
        certificate = read_certificate(cert_pem);
        if (certificate == NULL)
            return tls_error(err, source, "the client certificate");
        not_after = end_of(certificate);
        failed = check_validity(certificate, source, err);
        if (failed == 0)
            failed = check_key(certificate, key_pem, source, err);
        X509_free(certificate);
    }
    if (failed == 0 && ret_not_after != NULL)
        *ret_not_after = not_after;
    return failed;
}
