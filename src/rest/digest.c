/*
 * SHA-256, as OpenSSL has it.
 */
#include "rest/digest.h"

#include <stdint.h>

#include <openssl/evp.h>

static int update(EVP_MD_CTX *ctx, const struct kinf_str *parts, size_t n_parts,
                  unsigned char *digest)
{
    if (EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < n_parts; i++) {
        uint64_t len = parts[i].len;

        if (EVP_DigestUpdate(ctx, &len, sizeof len) != 1 ||
            EVP_DigestUpdate(ctx, parts[i].bytes, parts[i].len) != 1)
            return KINF_ERR_NO_MEMORY;
    }
    return EVP_DigestFinal_ex(ctx, digest, NULL) == 1 ? 0 : KINF_ERR_NO_MEMORY;
}

int kinf__sha256(struct kinf_str text, unsigned char digest[KINF__DIGEST_SIZE])
{
    return EVP_Digest(text.bytes, text.len, digest, NULL, EVP_sha256(), NULL) == 1
               ? 0
               : KINF_ERR_NO_MEMORY;
}

int kinf__digest(const struct kinf_str *parts, size_t n_parts,
                 unsigned char digest[KINF__DIGEST_SIZE])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int failed;

    if (ctx == NULL)
        return KINF_ERR_NO_MEMORY;
    failed = update(ctx, parts, n_parts, digest);
    EVP_MD_CTX_free(ctx);
    return failed;
}
