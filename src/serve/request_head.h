/*
 * The head of a request: checked before anything in it is believed, and read once.
 *
 * What is checked is RFC 9112, as strictly as kube-apiserver does, and in three points more. Two
 * lengths are refused also if they are equal, and so are a length beside chunks and a value that
 * goes on in the next line: they can be read in two ways.
 *
 * Threads: any.
 */
#ifndef KINF_SERVE_REQUEST_HEAD_H
#define KINF_SERVE_REQUEST_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/str.h>

#include "rest/head.h"

/* As it came. Texts lie where they came, each ended in place: what they do not cover is what stood
 * between them. So a NUL, behind which libmicrohttpd reads nothing, and a line that it joined or left
 * out show as a gap. Not seen are NULs in front of a line feed without its carriage return, as which
 * they then count: the value, or the head, ends where it would without them. */
struct kinf__raw_head {
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
int kinf__raw_head_check(const struct kinf__raw_head *head, const char **ret_why);

/* What it says. All is borrowed; the texts are NULL where there is none, but for `user_agent`. */
struct kinf__request_head {
    const char *method;
    struct kinf_str target; /* as it came */
    const struct kinf__header *headers;
    size_t n_headers;
    const char *accept;
    const char *if_none_match;
    const char *user_agent; /* "": none */
    struct kinf_str token;  /* of "Authorization: Bearer"; empty: none */
    bool has_credential;    /* of whatever kind */
    bool has_two_credentials;
    bool is_impersonated;
    bool is_upgrade; /* to something that is no HTTP */
    bool takes_gzip;
    bool expects;     /* a word before it sends its body */
    int64_t body_len; /* 0: none; KINF__CHUNKED: not told */
};

struct kinf__request_head kinf__request_head_of(const char *method, struct kinf_str target,
                                                const struct kinf__header *headers,
                                                size_t n_headers);
/* Of the first header of this name; NULL: none. */
const char *kinf__request_head_value(const struct kinf__request_head *head, const char *name);

#endif
