/*
 * An answer, as libmicrohttpd takes it.
 *
 * Threads: the endpoint's.
 */
#ifndef KINF_SERVE_MHD_RESPONSE_H
#define KINF_SERVE_MHD_RESPONSE_H

#include <microhttpd.h>

#include "serve/exchange.h"

/* `answer` stays until the response is destroyed; `read` brings the body of a stream. NULL: out of
 * memory, or a header does not fit without which the body means something else. */
struct MHD_Response *kinf__mhd_response_new(const struct kinf__answer *answer,
                                            MHD_ContentReaderCallback read, void *ctx);

#endif
