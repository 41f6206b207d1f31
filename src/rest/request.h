/*
 * A request over a connection of its asker's, ended by a waker of its own: for those whose requests
 * end when they do, and not with the client. And when any request is made again.
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

#define KINF__RETRY_MAX 10 /* tries after the first */

/* Whether a request that failed may be made again after `n_retries` earlier ones, and how long to wait
 * before that (rest.WithRetry). Pure. */
bool kinf__retry_may(const char *method, const struct kinf_error *err, unsigned n_retries,
                     int64_t *ret_wait_ms);

#endif
