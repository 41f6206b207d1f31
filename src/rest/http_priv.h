/*
 * What http.c (the exchange) and http_request.c (the head of its request) share.
 *
 * Threads: the exchange's.
 */
#ifndef KINF_REST_HTTP_PRIV_H
#define KINF_REST_HTTP_PRIV_H

#include <curl/curl.h>

#include "rest/client.h"
#include "rest/http.h"

const char *kinf__http_method(const struct kinf__http_request *request);

/* The credential is sent to servers with https:// alone. Errors: KINF_ERR_NO_MEMORY; the list is the
 * caller's all the same. */
KINF_MUST_CHECK int kinf__http_append_headers(const struct kinf__http_request *request,
                                              const struct kinf_client *client,
                                              const struct kinf__credential *credential,
                                              struct curl_slist **headers, struct kinf_error *err);

#endif
