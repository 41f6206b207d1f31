/*
 * What a JSON web token (RFC 7519) says of itself.
 *
 * Threads: any thread.
 */
#ifndef KINF_SERVE_WEB_TOKEN_H
#define KINF_SERVE_WEB_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#include <kinformer/str.h>

/* One part: base64url without padding. Returns the length of what it wrote, three quarters of the
 * text's at most; 0 for anything else. */
size_t kinf__web_token_decode(struct kinf_str text, char *out);

/* In whole seconds since 1970; -1: the token does not say. */
struct kinf__web_token_times {
    int64_t expires_s;
    int64_t not_before_s;
};

/* What the token says of itself; nothing if it is not three parts, the second of them JSON. The
 * signature is not looked at: good for being stricter only. */
struct kinf__web_token_times kinf__web_token_times(struct kinf_str token);

#endif
