/*
 * Certificates by OpenSSL. Neighbours: the endpoint reads the files, by GnuTLS, and clients the
 * authority's.
 */
#include "sim/certificate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"

#define VALID_BEFORE_S 3600 /* clocks differ */
#define VALID_AFTER_S  (365 * 24 * 3600)
#define HOST_CHARS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_"

/* A certificate with its key. */
struct identity {
    X509 *certificate;
    EVP_PKEY *key;
};

struct kinf__certificate {
    struct identity authority;
    char *names; /* as OpenSSL takes subjectAltName */
    char *folder;
    char *authority_file;
    char *cert_file;
    char *key_file;
};

/* --- making --- */

static int tls_error(struct kinf_error *err)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return kinf__error_set(err, KINF_ERR_TLS, "cannot make a certificate: %s",
                           reason != NULL ? reason : "out of memory");
}

static void identity_release(struct identity *identity)
{
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
    *identity = (struct identity){ NULL, NULL };
}

static bool add_extension(X509 *certificate, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    bool is_done = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;

    X509_EXTENSION_free(extension);
    return is_done;
}

static bool set_serial(X509 *certificate)
{
    uint64_t serial;

    return RAND_bytes((unsigned char *)&serial, sizeof serial) == 1 &&
           ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1;
}

/* What every certificate has. */
static bool describe(X509 *certificate, EVP_PKEY *key, const char *name)
{
    return X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -VALID_BEFORE_S) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), VALID_AFTER_S) != NULL &&
           X509_set_pubkey(certificate, key) == 1 &&
           X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                                      (const unsigned char *)name, -1, -1, 0) == 1;
}

static bool describe_use(X509 *certificate, const char *names)
{
    if (names == NULL)
        return add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
               add_extension(certificate, NID_key_usage, "critical,keyCertSign");
    return add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(certificate, NID_key_usage, "critical,digitalSignature") &&
           add_extension(certificate, NID_ext_key_usage, "serverAuth") &&
           add_extension(certificate, NID_subject_alt_name, names);
}

/* `issuer` NULL: an authority of its own; else a server's certificate for `names`. */
static int make_identity(const struct identity *issuer, const char *names,
                         struct identity *ret_identity, struct kinf_error *err)
{
    struct identity identity = { X509_new(), EVP_EC_gen("P-256") };
    const struct identity *signer = issuer != NULL ? issuer : &identity;

    if (identity.certificate == NULL || identity.key == NULL ||
        !describe(identity.certificate, identity.key,
                  issuer != NULL ? "kinformer-sim" : "kinformer-sim authority") ||
        !describe_use(identity.certificate, issuer != NULL ? names : NULL) ||
        X509_set_issuer_name(identity.certificate, X509_get_subject_name(signer->certificate)) !=
            1 ||
        X509_sign(identity.certificate, signer->key, EVP_sha256()) <= 0) {
        identity_release(&identity);
        return tls_error(err);
    }
    *ret_identity = identity;
    return 0;
}

/* --- names --- */

static bool is_address(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static int write_names(const char *const *hosts, size_t n_hosts, char **ret_names,
                       struct kinf_error *err)
{
    KINF__AUTO_BUFFER names = KINF__BUFFER_INIT;

    if (kinf__buffer_printf(&names, "DNS:localhost,IP:127.0.0.1,IP:::1") < 0)
        return kinf__error_no_memory(err);
    for (size_t i = 0; i < n_hosts; i++) {
        if (hosts[i][0] == '\0' || strspn(hosts[i], HOST_CHARS) != strlen(hosts[i]))
            return kinf__error_set(err, KINF_ERR_INVALID, "no certificate can name '%s'", hosts[i]);
        if (kinf__buffer_printf(&names, ",%s:%s", is_address(hosts[i]) ? "IP" : "DNS", hosts[i]) <
            0)
            return kinf__error_no_memory(err);
    }
    if (kinf__buffer_cstr(&names) == NULL)
        return kinf__error_no_memory(err);
    *ret_names = KINF__TAKE(names.bytes);
    return 0;
}

/* --- files --- */

/* Appends one of both as PEM; the other is NULL. */
static int write_pem(X509 *certificate, EVP_PKEY *key, BIO *out)
{
    return certificate != NULL ? PEM_write_bio_X509(out, certificate)
                               : PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);
}

static int write_file(const char *path, X509 *certificate, EVP_PKEY *key, struct kinf_error *err)
{
    BIO *pem = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    long len;
    int failed;

    if (pem == NULL || write_pem(certificate, key, pem) != 1 ||
        (len = BIO_get_mem_data(pem, &bytes)) <= 0) {
        failed = tls_error(err);
    } else {
        failed = kinf__file_replace(path, (struct kinf_str){ bytes, (size_t)len }, err);
        OPENSSL_cleanse(bytes, (size_t)len);
    }
    BIO_free(pem);
    return failed;
}

/* A server that looks in between finds a pair that does not belong together, and looks again. */
static int write_served(const struct kinf__certificate *certificate,
                        const struct identity *authority, struct kinf_error *err)
{
    struct identity served;
    int failed = make_identity(authority, certificate->names, &served, err);

    if (failed < 0)
        return failed;
    failed = write_file(certificate->key_file, NULL, served.key, err);
    if (failed == 0)
        failed = write_file(certificate->cert_file, served.certificate, NULL, err);
    identity_release(&served);
    return failed;
}

static char *path_in(const char *folder, const char *name)
{
    char *path;

    return asprintf(&path, "%s/%s", folder, name) >= 0 ? path : NULL;
}

static int make_folder(struct kinf__certificate *certificate, struct kinf_error *err)
{
    const char *parent = getenv("TMPDIR");
    char *folder =
        path_in(parent != NULL && parent[0] != '\0' ? parent : "/tmp", "kinformer-sim-XXXXXX");
    int failed;

    if (folder == NULL)
        return kinf__error_no_memory(err);
    /* Of mode 0700. */
    if (mkdtemp(folder) == NULL) {
        failed = kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno,
                                       "cannot make a folder for certificates, %s", folder);
        free(folder);
        return failed;
    }
    certificate->folder = folder;
    certificate->authority_file = path_in(folder, "ca.crt");
    certificate->cert_file = path_in(folder, "tls.crt");
    certificate->key_file = path_in(folder, "tls.key");
    return certificate->authority_file != NULL && certificate->cert_file != NULL &&
                   certificate->key_file != NULL
               ? 0
               : kinf__error_no_memory(err);
}

/* --- life --- */

int kinf__certificate_new(const char *const *hosts, size_t n_hosts,
                          struct kinf__certificate **ret_certificate, struct kinf_error *err)
{
    struct kinf__certificate *certificate = calloc(1, sizeof *certificate);
    int failed;

    if (certificate == NULL)
        return kinf__error_no_memory(err);
    failed = write_names(hosts, n_hosts, &certificate->names, err);
    if (failed == 0)
        failed = make_identity(NULL, NULL, &certificate->authority, err);
    if (failed == 0)
        failed = make_folder(certificate, err);
    if (failed == 0)
        failed =
            write_file(certificate->authority_file, certificate->authority.certificate, NULL, err);
    if (failed == 0)
        failed = write_served(certificate, &certificate->authority, err);
    if (failed < 0) {
        kinf__certificate_free(certificate);
        return failed;
    }
    *ret_certificate = certificate;
    return 0;
}

static void remove_file(char *path)
{
    if (path != NULL)
        unlink(path);
    free(path);
}

void kinf__certificate_free(struct kinf__certificate *certificate)
{
    if (certificate == NULL)
        return;
    remove_file(certificate->authority_file);
    remove_file(certificate->cert_file);
    remove_file(certificate->key_file);
    if (certificate->folder != NULL)
        rmdir(certificate->folder);
    free(certificate->folder);
    free(certificate->names);
    identity_release(&certificate->authority);
    free(certificate);
}

const char *kinf__certificate_authority_file(const struct kinf__certificate *certificate)
{
    return certificate->authority_file;
}

const char *kinf__certificate_cert_file(const struct kinf__certificate *certificate)
{
    return certificate->cert_file;
}

const char *kinf__certificate_key_file(const struct kinf__certificate *certificate)
{
    return certificate->key_file;
}

int kinf__certificate_rotate(struct kinf__certificate *certificate, bool is_foreign,
                             struct kinf_error *err)
{
    struct identity foreign = { NULL, NULL };
    int failed = is_foreign ? make_identity(NULL, NULL, &foreign, err) : 0;

    if (failed == 0)
        failed = write_served(certificate, is_foreign ? &foreign : &certificate->authority, err);
    identity_release(&foreign);
    return failed;
}
