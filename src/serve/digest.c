/*
 * SHA-256, as GnuTLS has it.
 */
#include "serve/digest.h"

#include <stdint.h>

#include <gnutls/crypto.h>

int kinf__sha256(struct kinf_str text, unsigned char digest[KINF__DIGEST_SIZE])
{
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, text.bytes, text.len, digest) == 0
               ? 0
               : KINF_ERR_NO_MEMORY;
}

int kinf__digest(const struct kinf_str *parts, size_t n_parts,
                 unsigned char digest[KINF__DIGEST_SIZE])
{
    gnutls_hash_hd_t hash;
    bool is_taken = true;

    if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) != 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; is_taken && i < n_parts; i++) {
        uint64_t len = parts[i].len;

        is_taken = gnutls_hash(hash, &len, sizeof len) == 0 &&
                   gnutls_hash(hash, parts[i].bytes, parts[i].len) == 0;
    }
    gnutls_hash_deinit(hash, digest);
    return is_taken ? 0 : KINF_ERR_NO_MEMORY;
}
