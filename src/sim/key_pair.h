/*
 * A certificate and its key, P-256, as PEM: of an authority, or issued by one for a server or a
 * client.
 *
 * Threads: any.
 */
#ifndef KINF_SIM_KEY_PAIR_H
#define KINF_SIM_KEY_PAIR_H

#include <stdint.h>

#include <openssl/x509.h>

#include <kinformer/error.h>

struct kinf__key_pair {
    char *cert_pem;
    char *key_pem;
};

struct kinf__key_pair_options {
    const char *name;      /* the subject's */
    const char *alt_names; /* of a server: "DNS:localhost,IP:127.0.0.1"; NULL: of a client */
    int64_t valid_s;       /* from now on; negative: it has expired */
    const struct kinf__key_pair *issuer; /* NULL: an authority */
};

/* Errors: KINF_ERR_TLS, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__key_pair_make(const struct kinf__key_pair_options *options,
                                        struct kinf__key_pair *ret_pair, struct kinf_error *err);
void kinf__key_pair_release(struct kinf__key_pair *pair);

/* For OpenSSL; the caller frees both. Errors: KINF_ERR_TLS, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__key_pair_read(const struct kinf__key_pair *pair, X509 **ret_certificate,
                                        EVP_PKEY **ret_key, struct kinf_error *err);

#endif
