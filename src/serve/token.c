/*
 * Tokens: "ISSUER.PROCESS.VERSION.TAG.KEY", all but the last in hexadecimal, the key as base64url.
 * The tag is a keyed hash of the rest (the key is the process's own random number), so a client can
 * neither change a token nor make one up. Neighbours: list.c writes and resource.c reads them.
 */
#include "serve/token.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hmap.h"
#include "object/shard.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Another one in each process. */
static uint32_t process_tag(void)
{
    return (uint32_t)kinf__hash(KINF_STR("kinformer process"));
}

static uint64_t tag_of(uint32_t issuer, uint64_t version, const char *after)
{
    char text[KINF__TOKEN_KEY_SIZE + 64];
    int len =
        snprintf(text, sizeof text, "continue %" PRIx32 " %" PRIx64 " %s", issuer, version, after);

    return kinf__hash((struct kinf_str){ text, (size_t)len });
}

static int append_base64(struct kinf__buffer *out, const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t bits = 0;
        char piece[4];

        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < n ? (unsigned char)text[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            piece[k] = digits[bits >> (18 - 6 * k) & 63];
        if (kinf__buffer_append(out, piece, n + 1) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static bool decode_base64(const char *text, char *out, size_t size)
{
    size_t len = strlen(text), n_out = 0;
    uint32_t bits = 0;
    unsigned n_bits = 0;

    if (len * 3 / 4 >= size)
        return false;
    for (size_t i = 0; i < len; i++) {
        const char *digit = strchr(digits, text[i]);

        if (digit == NULL)
            return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n_out++] = (char)(bits >> n_bits);
        }
    }
    out[n_out] = '\0';
    return strlen(out) == n_out;
}

uint32_t kinf__token_issuer(const char *source)
{
    return (uint32_t)kinf__shard_hash(kinf_str_from(source));
}

int kinf__token_write(uint32_t issuer, uint64_t version, const char *after,
                      struct kinf__buffer *out)
{
    if (kinf__buffer_printf(out, "%08" PRIx32 ".%08" PRIx32 ".%" PRIx64 ".%016" PRIx64 ".", issuer,
                            process_tag(), version, tag_of(issuer, version, after)) < 0 ||
        append_base64(out, after) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_cstr(out) != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

int kinf__token_refuse_expired(struct kinf__refusal *refusal)
{
    return kinf__refuse(refusal, 410, "Expired",
                        "The provided continue parameter is too old to display a consistent list "
                        "result. You can start a new list without the continue parameter.");
}

static int refuse_invalid(struct kinf__refusal *refusal, const char *why)
{
    return kinf__refuse(refusal, 400, "BadRequest",
                        "invalid continue token: continue key is not valid: %s", why);
}

static bool parse(const char *text, uint32_t *ret_issuer, uint32_t *ret_process,
                  struct kinf__token *ret_token)
{
    int at = 0;

    return sscanf(text, "%8" SCNx32 ".%8" SCNx32 ".%16" SCNx64 ".%*16[0-9a-f].%n", ret_issuer,
                  ret_process, &ret_token->version, &at) == 3 &&
           at != 0 && decode_base64(text + at, ret_token->after, sizeof ret_token->after);
}

bool kinf__token_is_of(uint32_t issuer, const char *text)
{
    struct kinf__token token;
    uint32_t own, process;

    return parse(text, &own, &process, &token) && own == issuer;
}

/* What was read is written again: one token has one spelling. */
int kinf__token_read(uint32_t issuer, const char *text, struct kinf__token *ret_token,
                     struct kinf__refusal *refusal)
{
    KINF__AUTO_BUFFER expected = KINF__BUFFER_INIT;
    struct kinf__token token;
    uint32_t own, process;

    if (!parse(text, &own, &process, &token))
        return refuse_invalid(refusal, "not a token of this server");
    if (own != issuer || process != process_tag())
        return kinf__token_refuse_expired(refusal);
    if (kinf__token_write(issuer, token.version, token.after, &expected) < 0)
        return kinf__refuse_no_memory(refusal);
    if (strcmp(text, expected.bytes) != 0)
        return refuse_invalid(refusal, "it was changed");
    *ret_token = token;
    return 0;
}
