/*
 * What may be tried again. Neighbours: request.c.
 */
#include "rest/retry.h"

#include <errno.h>
#include <string.h>

#define BROKEN_WAIT_MS 1000

/* A server that names a time to come back has done nothing; a connection that broke may have
 * carried the request. */
bool kinf__retry_may(const char *method, const struct kinf_error *err, unsigned n_retries,
                     int64_t *ret_wait_ms)
{
    bool is_busy = err->http_status == 429 || err->http_status >= 500;

    if (n_retries >= KINF__RETRY_MAX)
        return false;
    if (is_busy && err->retry_after_ms != 0) {
        *ret_wait_ms = err->retry_after_ms;
        return true;
    }
    if (err->code == KINF_ERR_NETWORK && err->sys_errno == ECONNRESET &&
        strcmp(method, "GET") == 0) {
        *ret_wait_ms = BROKEN_WAIT_MS;
        return true;
    }
    return false;
}
