/*
 * Web tokens: "HEAD.CLAIMS.SIGNATURE", each as base64url; the claims are JSON. Neighbours: access.c
 * keeps nothing on a token beyond its end.
 */
#include "serve/web_token.h"

#include <stdlib.h>
#include <string.h>

#include "json/scan.h"

#define MAX_CLAIMS   (24u << 10) /* as many as fit the head of a request */
#define CLAIMS_DEPTH 32
#define MAX_NUMBER   32
#define LAST_S       1e11 /* no date that anybody means is later */

size_t kinf__web_token_decode(struct kinf_str text, char *out)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned bits = 0, n_bits = 0;
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        const char *at = memchr(alphabet, text.bytes[i], sizeof alphabet - 1);

        if (at == NULL)
            return 0;
        bits = bits << 6 | (unsigned)(at - alphabet);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[len++] = (char)(bits >> n_bits & 0xff);
        }
    }
    return len;
}

/* A NumericDate may have a fraction, or an exponent. */
static int64_t read_expiry(struct kinf_str claims)
{
    struct kinf__json_value value;
    char number[MAX_NUMBER];
    double seconds;
    size_t len;

    if (kinf__json_scan_all(claims, CLAIMS_DEPTH, &len) < 0 ||
        !kinf__json_member(kinf__json_value_of(claims), KINF_STR("exp"), &value) ||
        value.type != KINF__JSON_NUMBER || value.raw.len >= sizeof number)
        return -1;
    memcpy(number, value.raw.bytes, value.raw.len);
    number[value.raw.len] = '\0';
    seconds = strtod(number, NULL);
    return seconds >= 0 && seconds < LAST_S ? (int64_t)seconds : -1;
}

int64_t kinf__web_token_expiry_s(struct kinf_str token)
{
    const char *first = memchr(token.bytes, '.', token.len), *second;
    char claims[MAX_CLAIMS];
    struct kinf_str part, json = { claims, 0 };

    if (first == NULL)
        return -1;
    second = memchr(first + 1, '.', token.len - (size_t)(first + 1 - token.bytes));
    if (second == NULL || (size_t)(second - first) > sizeof claims)
        return -1;
    part = (struct kinf_str){ first + 1, (size_t)(second - first - 1) };
    json.len = kinf__web_token_decode(part, claims);
    return json.len != 0 ? read_expiry(json) : -1;
}
