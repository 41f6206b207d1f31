/*
 * What every connection to the server has in common: authority and name that are verified, proxy,
 * sockets that notice a vanished peer, where requests go, and what its failures mean, in one line for
 * a person: which host, what happened, what to do.
 *
 * Threads: one thread per handle.
 */
#ifndef KINF_REST_CONNECTION_H
#define KINF_REST_CONNECTION_H

#include <stdbool.h>

#include <curl/curl.h>

#include <kinformer/client.h>

#include "base/buffer.h"
#include "rest/credentials.h"

/* Of "name:port", whether it is this machine. */
bool kinf__connection_is_loopback(const char *host);

/* Everything but authority, certificate and key, callbacks and what a request says. `socket_errno`
 * is written when there is no socket because descriptors ran out, which curl does not tell; it must
 * outlive the handle. Returns false when out of memory: the handle is not to be used, since without
 * its options curl would trust others. */
KINF_MUST_CHECK bool kinf__connection_prepare(CURL *easy, const struct kinf_client *client,
                                              int *socket_errno);

/* Authority (of an https:// proxy, too), certificate and key: contents, since curl caches what it
 * read from a name, and not copied, since copies would not be overwritten when they are freed. NULL
 * takes back. When out of memory all are taken back. */
KINF_MUST_CHECK bool kinf__connection_set_credential(CURL *easy,
                                                     const struct kinf__credential_parts *parts);

/* "name:port" as the server's URL has it, without a user: what it is called in requests. */
struct kinf_str kinf__connection_authority(const struct kinf_client *client);
/* Whether the URLs of requests have another one, which certificates are verified against. */
bool kinf__connection_has_other_name(const struct kinf_client *client);

/* Appends the URL of a request. *connect_to, which the caller frees, is for CURLOPT_CONNECT_TO; it
 * stays as it is if it is not needed. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__connection_append_url(const struct kinf_client *client,
                                                struct kinf_str target, struct kinf__buffer *url,
                                                struct curl_slist **connect_to);

/* `detail` is curl's own text, may be ""; where it could tell a password, it is left out. Returns KINF_ERR_NETWORK, KINF_ERR_TLS, KINF_ERR_TIMEOUT
 * or KINF_ERR_NO_MEMORY. */
int kinf__connection_error(CURL *easy, CURLcode result, const struct kinf_client *client,
                           const char *detail, struct kinf_error *err);

/* A connection that was there broke: sys_errno is ECONNRESET. Returns KINF_ERR_NETWORK. */
int kinf__broken_off(const struct kinf_client *client, const char *words, struct kinf_error *err);

#endif
