/*
 * What a request of ours says before its body. Neighbours: http.c sends it.
 */
#include <curl/curl.h>

#include "base/error.h"
#include "rest/client.h"
#include "rest/connection.h"
#include "rest/http_priv.h"

const char *kinf__http_method(const struct kinf__http_request *request)
{
    if (request->method != NULL)
        return request->method;
    return request->body.bytes != NULL ? "POST" : "GET";
}

static int append_credential(const struct kinf_client *client,
                             const struct kinf__credential *credential, struct curl_slist **headers)
{
    const struct kinf__string_list *impersonation = &client->config.impersonation;
    const char *authorization = credential->parts.authorization;
    int failed = 0;

    if (!client->is_https)
        return 0;
    if (authorization != NULL)
        failed = kinf__connection_append_header(headers, authorization);
    for (size_t i = 0; failed == 0 && i < impersonation->n_items; i++)
        failed = kinf__connection_append_header(headers, impersonation->items[i]);
    return failed;
}

/* curl would ask whether a long body is welcome, and wait a second for an answer. */
static int append_content(const struct kinf__http_request *request, struct curl_slist **headers)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;

    if (request->body.bytes == NULL)
        return 0;
    if (kinf__buffer_printf(&line, "Content-Type: %s",
                            request->content_type != NULL ? request->content_type
                                                          : "application/json") < 0 ||
        kinf__connection_append_header(headers, kinf__buffer_cstr(&line)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__connection_append_header(headers, "Expect:");
}

int kinf__http_append_headers(const struct kinf__http_request *request,
                              const struct kinf_client *client,
                              const struct kinf__credential *credential,
                              struct curl_slist **headers, struct kinf_error *err)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    const char *accept = request->accept != NULL ? request->accept : "application/json";

    if (append_credential(client, credential, headers) < 0 ||
        append_content(request, headers) < 0 ||
        kinf__buffer_printf(&line, "Accept: %s", accept) < 0 ||
        kinf__connection_append_header(headers, kinf__buffer_cstr(&line)) < 0 ||
        kinf__connection_append_header(headers, request->accept_gzip
                                                    ? "Accept-Encoding: gzip"
                                                    : "Accept-Encoding: identity") < 0)
        return kinf__error_no_memory(err);
    return 0;
}
