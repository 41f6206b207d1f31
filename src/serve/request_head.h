/*
 * The head of a request, before anything in it is believed: RFC 9112, as strictly as kube-apiserver,
 * and in three points more. Two lengths are refused also if they are equal, and so are a length
 * beside chunks and a value that goes on in the next line: they can be read in two ways.
 *
 * Threads: any.
 */
#ifndef KINF_SERVE_REQUEST_HEAD_H
#define KINF_SERVE_REQUEST_HEAD_H

#include <stddef.h>

#include <kinformer/str.h>

#include "rest/head.h"

/* Texts that lie where they came, each ended in place: what they do not cover is what stood between
 * them. So a NUL, behind which libmicrohttpd reads nothing, and a line that it joined or left out
 * show as a gap. Not seen are NULs in front of a line feed without its carriage return, as which they
 * then count: the value, or the head, ends where it would without them. */
struct kinf__request_head {
    const char *method;
    const char *target;    /* as it came, a copy */
    const char *target_at; /* where it came; the text there may have been changed since */
    const char *version;
    const struct kinf__header *headers;
    size_t n_headers;
    size_t size; /* from the method to the end of the empty line; 0: gaps say nothing */
};

/* Returns 0, or the HTTP status of the refusal and in *ret_why its words. The connection is to be
 * closed then: nobody knows where the next request begins. */
int kinf__request_head_check(const struct kinf__request_head *head, const char **ret_why);

/* The token behind "Bearer", by upstream's bearertoken.Authenticator: behind one blank, up to the
 * next one; empty: none. `authorization` may be NULL. */
struct kinf_str kinf__request_head_bearer_token(const char *authorization);

#endif
