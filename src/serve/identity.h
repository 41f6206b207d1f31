/*
 * The certificate that a TLS listener shows, and its key, from files that may change.
 *
 * Threads: new and free, one; get(), one at a time.
 */
#ifndef KINF_SERVE_IDENTITY_H
#define KINF_SERVE_IDENTITY_H

#include <stdint.h>

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include <kinformer/error.h>

struct kinf__identity;

/* Reads both. Errors: KINF_ERR_CONFIG (a file that is not there or is none; a key of another
 * certificate), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__identity_new(const char *cert_file, const char *key_file,
                                       struct kinf__identity **ret_identity,
                                       struct kinf_error *err);
void kinf__identity_free(struct kinf__identity *identity); /* NULL is allowed */

/* The chain and the key, valid for 10 minutes at least. Looks at the files once a second at most;
 * ones that have changed and are no pair are logged once, and the old pair stays until they are. */
void kinf__identity_get(struct kinf__identity *identity, int64_t now_ms,
                        gnutls_pcert_st **ret_chain, unsigned *ret_n_chain,
                        gnutls_privkey_t *ret_key);

#endif
