/*
 * What transport.c leaves to transport_upgrade.c: a trip whose request asks for another protocol.
 *
 * Threads: the transport's.
 */
#ifndef KINF_REST_TRANSPORT_PRIV_H
#define KINF_REST_TRANSPORT_PRIV_H

#include <curl/curl.h>

#include "rest/transport.h"

/* NULL: out of memory. */
struct kinf__upgrade *kinf__upgrade_new(void);
void kinf__upgrade_free(struct kinf__upgrade *upgrade); /* NULL is allowed */

/* What is sent first. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__upgrade_write_head(struct kinf__roundtrip *trip,
                                             const struct kinf__roundtrip_request *request,
                                             const char *url);
/* curl has made the connection. Returns false if it does not say which. */
bool kinf__upgrade_begin(struct kinf__roundtrip *trip);
/* Does what can be done now, both ways. Returns whether the trip is over, with its code. */
bool kinf__upgrade_carry(struct kinf__roundtrip *trip, int *ret_code);
/* Whether there is something to wait for, and what; *ret_has_more is set if there is no time for that. */
bool kinf__upgrade_waits(const struct kinf__roundtrip *trip, struct curl_waitfd *ret_wait,
                         bool *ret_has_more);
/* Whether the server may have seen something. */
bool kinf__upgrade_is_sent(const struct kinf__upgrade *upgrade);

#endif
