/*
 * TLS of the server: with a key pair that it is given, or one for 127.0.0.1, made anew.
 *
 * Threads: one thread to make it; then any.
 */
#ifndef KINF_TESTS_REPLAY_TLS_H
#define KINF_TESTS_REPLAY_TLS_H

#include <openssl/ssl.h>

#include "replay/replay.h"

struct replay__tls {
    SSL_CTX *context;
    char *ca_pem; /* NULL: it was given a key pair */
};

/* Errors: KINF_ERR_TLS with OpenSSL's reason. */
KINF_MUST_CHECK int replay__tls_init(struct replay__tls *ret_tls,
                                     const struct replay_options *options, struct kinf_error *err);
void replay__tls_release(struct replay__tls *tls);

#endif
