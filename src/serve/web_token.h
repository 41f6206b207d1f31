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

/* When the token says that it ends, in whole seconds since 1970; -1: it is no such token, or does
 * not say. The signature is not looked at: good for being stricter only. */
int64_t kinf__web_token_expiry_s(struct kinf_str token);

#endif
