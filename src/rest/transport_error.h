/*
 * What a failure of libcurl means, in one line for a person: which host, what happened, what to do.
 *
 * Threads: any thread.
 */
#ifndef KINF_REST_TRANSPORT_ERROR_H
#define KINF_REST_TRANSPORT_ERROR_H

#include <curl/curl.h>

#include <kinformer/client.h>
#include <kinformer/error.h>

/* `detail` is curl's own text, may be "". Returns KINF_ERR_NETWORK, KINF_ERR_TLS, KINF_ERR_TIMEOUT
 * or KINF_ERR_NO_MEMORY. */
int kinf__transport_error(CURL *easy, CURLcode result, const struct kinf_client *client,
                          const char *detail, struct kinf_error *err);

/* A connection that was there broke: sys_errno is ECONNRESET. Returns KINF_ERR_NETWORK. */
int kinf__broken_off(const struct kinf_client *client, const char *words, struct kinf_error *err);

#endif
