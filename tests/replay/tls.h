/*
 * A certificate authority and a serving certificate for 127.0.0.1, made anew in memory.
 *
 * Threads: one thread to make it; then any.
 */
#ifndef KINF_TESTS_REPLAY_TLS_H
#define KINF_TESTS_REPLAY_TLS_H

#include <openssl/ssl.h>

#include <kinformer/error.h>

struct replay__tls {
    SSL_CTX *context;
    char *ca_pem;
};

/* Errors: KINF_ERR_TLS with OpenSSL's reason. */
KINF_MUST_CHECK int replay__tls_init(struct replay__tls *ret_tls, struct kinf_error *err);
void replay__tls_release(struct replay__tls *tls);

#endif
