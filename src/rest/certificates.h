/*
 * Whether certificates and keys are what they should be, told before a connection is made with
 * them.
 *
 * Threads: any thread.
 */
#ifndef KINF_REST_CERTIFICATES_H
#define KINF_REST_CERTIFICATES_H

#include <stdint.h>

#include <kinformer/error.h>

/* `source` is where the texts are from and begins each message; no message has a part of a text. */

/* Whether there is a certificate in the text. Errors: KINF_ERR_TLS. */
KINF_MUST_CHECK int kinf__certificates_check_authority(const char *pem, const char *source,
                                                       struct kinf_error *err);

/* Whether certificate and key (both NULL, or neither) belong to each other and have not expired.
 * *ret_not_after (may be NULL) is when they will, in seconds of wall time; INT64_MAX without a
 * certificate. Errors: KINF_ERR_CONFIG (one of the two is missing), KINF_ERR_TLS. */
KINF_MUST_CHECK int kinf__certificates_check_client(const char *cert_pem, const char *key_pem,
                                                    const char *source, int64_t *ret_not_after,
                                                    struct kinf_error *err);

#endif
