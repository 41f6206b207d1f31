/*
 * An answer as libmicrohttpd sends it: its headers, and the body, which is there or is read while it
 * is sent.
 *
 * Threads: the connection's.
 */
#ifndef KINF_SERVE_RESPONSE_H
#define KINF_SERVE_RESPONSE_H

#include <microhttpd.h>

#include "serve/exchange.h"

/* `read` and its ctx are of a body that is a stream; the answer outlives the response. NULL: out of
 * memory, or a header does not fit without which the body means something else. */
struct MHD_Response *kinf__response_new(const struct kinf__answer *answer,
                                        MHD_ContentReaderCallback read, void *ctx);

#endif
