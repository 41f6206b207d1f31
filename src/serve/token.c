/*
 * Tokens: "ISSUER.PROCESS.LINEAGE.VERSION.REMAINING.TAG.KEY", all but the last in hexadecimal, the key
 * as base64url.
 * The tag is a keyed hash of the rest (the key is the process's own random number), so a client can
 * neither change a token nor make one up. Neighbours: list.c writes and resource.c reads them.
 */
#include "serve/token.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hmap.h"
#include "object/shard.h"
#include "rest/secret.h"
#include "serve/web_token.h"

/* Another one in each process. */
static uint32_t process_tag(void)
{
    return (uint32_t)kinf__hash(KINF_STR("kinformer process"));
}

static uint64_t tag_of(uint32_t issuer, const struct kinf__token *token)
{
    char text[KINF__TOKEN_KEY_SIZE + 96];
    int len = snprintf(
        text, sizeof text, "continue %" PRIx32 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %s", issuer,
        token->version.lineage, token->version.number, token->n_remaining, token->after);

    return kinf__hash((struct kinf_str){ text, (size_t)len });
}

/* As base64url, without padding. */
static int append_key(struct kinf__buffer *out, const char *key)
{
    size_t begin = out->len;

    if (kinf__secret_append_base64(out, key, strlen(key)) < 0)
        return KINF_ERR_NO_MEMORY;
    while (out->len > begin && out->bytes[out->len - 1] == '=')
        out->len--;
    for (char *at = out->bytes + begin; at < out->bytes + out->len; at++)
        *at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
    return 0;
}

static bool decode_key(const char *text, char *out, size_t size)
{
    struct kinf_str encoded = kinf_str_from(text);
    size_t len;

    if (encoded.len * 3 / 4 >= size)
        return false;
    len = kinf__web_token_decode(encoded, out);
    out[len] = '\0';
    return (len != 0 || encoded.len == 0) && strlen(out) == len;
}

uint32_t kinf__token_issuer(const char *source)
{
    return (uint32_t)kinf__shard_hash(kinf_str_from(source));
}

int kinf__token_write(uint32_t issuer, const struct kinf__token *token, struct kinf__buffer *out)
{
    if (kinf__buffer_printf(
            out, "%08" PRIx32 ".%08" PRIx32 ".%" PRIx64 ".%" PRIx64 ".%" PRIx64 ".%016" PRIx64 ".",
            issuer, process_tag(), token->version.lineage, token->version.number,
            token->n_remaining, tag_of(issuer, token)) < 0 ||
        append_key(out, token->after) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_cstr(out) != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

int kinf__token_refuse_expired(struct kinf__refusal *refusal)
{
    return kinf__refuse(refusal, 410, "Expired",
                        "The provided continue parameter is too old to display a consistent list "
                        "result. You can start a new list without the continue parameter.");
}

int kinf__token_offer_rest(uint32_t issuer, const struct kinf__token *token,
                           struct kinf__refusal *refusal)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__token rest = *token;

    rest.version = (struct kinf__store_version){ .number = 0 };
    rest.n_remaining = 0;
    if (kinf__token_write(issuer, &rest, &text) < 0)
        return kinf__refuse_no_memory(refusal);
    kinf__refuse(refusal, 410, "Expired",
                 "The provided continue parameter is too old to display a consistent list result. "
                 "You can start a new list without the continue parameter, or use the continue "
                 "token in this response to retrieve the remainder of the results. Continuing with "
                 "the provided token results in an inconsistent list - objects that were created, "
                 "modified, or deleted between the time the first chunk was returned and now may "
                 "show up in the list.");
    snprintf(refusal->continue_token, sizeof refusal->continue_token, "%s", text.bytes);
    return KINF_ERR_INVALID;
}

static int refuse_invalid(struct kinf__refusal *refusal, const char *why)
{
    return kinf__refuse(refusal, 400, "BadRequest",
                        "invalid continue token: continue key is not valid: %s", why);
}

static bool parse(const char *text, uint32_t *ret_issuer, uint32_t *ret_process,
                  struct kinf__token *ret_token)
{
    struct kinf__store_version *version = &ret_token->version;
    int at = 0;

    return sscanf(text,
                  "%8" SCNx32 ".%8" SCNx32 ".%16" SCNx64 ".%16" SCNx64 ".%16" SCNx64
                  ".%*16[0-9a-f].%n",
                  ret_issuer, ret_process, &version->lineage, &version->number,
                  &ret_token->n_remaining, &at) == 5 &&
           at != 0 && decode_key(text + at, ret_token->after, sizeof ret_token->after);
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
    if (kinf__token_write(issuer, &token, &expected) < 0)
        return kinf__refuse_no_memory(refusal);
    if (strcmp(text, expected.bytes) != 0)
        return refuse_invalid(refusal, "it was changed");
    *ret_token = token;
    return 0;
}
