/*
 * Who a client is by its certificate, as kube-apiserver reads it (x509.CommonNameUserConversion): the
 * common name is the user, the organizations are the groups, 1.3.6.1.4.1.57683.2 is the UID.
 *
 * A certificate that is expired, of another authority, for another purpose or without a common name
 * is nobody's, as if none was shown: the handshake takes any, and what else the client has counts.
 * Stricter than kube-apiserver: a subject in BMPString or with a NUL is nobody's.
 *
 * Owner: an endpoint, and each of its connections. Threads: new and free, one; the rest the endpoint's.
 */
#ifndef KINF_SERVE_CLIENT_CERTIFICATE_H
#define KINF_SERVE_CLIENT_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gnutls/gnutls.h>

#include <kinformer/error.h>

/* Whom to trust, from a file that may change. */
struct kinf__client_authority;

/* Errors: KINF_ERR_CONFIG (no such file, no certificate in it), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__client_authority_new(const char *file,
                                               struct kinf__client_authority **ret_authority,
                                               struct kinf_error *err);
void kinf__client_authority_free(struct kinf__client_authority *authority); /* NULL is allowed */

/* What a connection's certificate was found to be; all zero: not looked at. */
struct kinf__client_certificate {
    /* The members of a review that say who, as kinf__review_read_token() has them; NULL: nobody. */
    char *user;
    int64_t expires_ms; /* of the wall clock */
    uint64_t generation;
    int64_t judged_until_ms;
};

/* NULL is allowed, and nobody's. */
static inline bool kinf__client_certificate_names(
    const struct kinf__client_certificate *certificate)
{
    return certificate != NULL && certificate->user != NULL;
}

/* Looks at it, unless that was done less than ten seconds ago by the same authorities. Looks at their
 * file once a second at most: a bad one is logged once, and the old ones stay. `chain` is as
 * gnutls_certificate_get_peers() has it; none is nobody's. Without memory it is nobody's until it is
 * looked at again. */
void kinf__client_certificate_judge(struct kinf__client_certificate *certificate,
                                    struct kinf__client_authority *authority,
                                    const gnutls_datum_t *chain, unsigned n_chain, int64_t now_ms);
void kinf__client_certificate_release(struct kinf__client_certificate *certificate);

#endif
