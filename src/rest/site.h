/*
 * A server that is no API server, known by a URL and files: a client of its own, for http.h.
 *
 * What holds of the API server's connections holds of it: certificates are verified, files are read
 * again when they change (credentials.h), redirects are not followed, proxies are the environment's.
 * Over http:// neither token nor certificate is shown, and loopback is reached without a proxy.
 *
 * Threads: any thread.
 */
#ifndef KINF_REST_SITE_H
#define KINF_REST_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/client.h>

/* NULL where there is nothing. */
struct kinf__site {
    const char *url;       /* no user, no '#' */
    const char *ca_file;   /* default: whom the system trusts */
    const char *cert_file; /* of ours, with key_file */
    const char *key_file;
    const char *token_file; /* a bearer token, with https:// alone */
    bool is_plain_allowed;  /* http:// to an address that is not loopback */
    int64_t connect_timeout_ms;
};

/* Reads the files and connects nowhere. `*ret_target` is what is asked for there, a part of the URL but
 * for its first '/', which it begins with in any case; the caller frees it. Errors: KINF_ERR_CONFIG,
 * KINF_ERR_TLS (certificates that are none, or do not fit), KINF_ERR_LIMIT, KINF_ERR_UNSUPPORTED,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__site_client_new(const struct kinf__site *site,
                                          struct kinf_client **ret_client, char **ret_target,
                                          struct kinf_error *err);

#endif
