/*
 * Web tokens: "HEAD.CLAIMS.SIGNATURE", each as base64url; the claims are JSON. Neighbours: access.c
 * asks nobody about a token whose time is over or to come, and keeps nothing on one beyond its end.
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
static int64_t read_date(struct kinf__json_value claims, struct kinf_str key)
{
    struct kinf__json_value value;
    char number[MAX_NUMBER];
    double seconds;

    if (!kinf__json_member(claims, key, &value) || value.type != KINF__JSON_NUMBER ||
        value.raw.len >= sizeof number)
        return -1;
    memcpy(number, value.raw.bytes, value.raw.len);
    number[value.raw.len] = '\0';
    seconds = strtod(number, NULL);
    return seconds >= 0 && seconds < LAST_S ? (int64_t)seconds : -1;
}

/* Takes what is in front of the next dot, or all, off `text`. */
static struct kinf_str take_part(struct kinf_str *text)
{
    const char *dot = memchr(text->bytes, '.', text->len);
    struct kinf_str part = { text->bytes, dot != NULL ? (size_t)(dot - text->bytes) : text->len };
    size_t n_taken = part.len + (dot != NULL);

    *text = (struct kinf_str){ text->bytes + n_taken, text->len - n_taken };
    return part;
}

struct kinf__web_token_times kinf__web_token_times(struct kinf_str token)
{
    struct kinf__web_token_times times = { -1, -1 };
    struct kinf_str head = take_part(&token), text = take_part(&token), signature = token;
    char claims[MAX_CLAIMS];
    struct kinf_str json = { claims, 0 };
    size_t len;

    if (head.len > sizeof claims || text.len > sizeof claims || signature.len > sizeof claims ||
        kinf__web_token_decode(head, claims) == 0 || kinf__web_token_decode(signature, claims) == 0)
        return times;
    json.len = kinf__web_token_decode(text, claims);
    if (json.len == 0 || kinf__json_scan_all(json, CLAIMS_DEPTH, &len) < 0)
        return times;
    times.expires_s = read_date(kinf__json_value_of(json), KINF_STR("exp"));
    times.not_before_s = read_date(kinf__json_value_of(json), KINF_STR("nbf"));
    return times;
}
