/*
 * A request over a connection of its asker's, ended by a waker of its own: for those whose requests
 * end when they do, and not with the client.
 *
 * Threads: one thread per connection.
 */
#ifndef KINF_REST_REQUEST_H
#define KINF_REST_REQUEST_H

#include <kinformer/request.h>

#include "rest/http.h"

/* kinf_client_request(), over `http`, which was made with `stop`. */
KINF_MUST_CHECK int kinf__request_over(struct kinf_client *client, struct kinf__http *http,
                                       struct kinf__waker *stop, const struct kinf_request *request,
                                       struct kinf_response *ret_response, struct kinf_error *err);

#endif
