/*
 * Kinds of failures. Neighbours: policy.c decides by them, informer/state.c tells them apart in the
 * log.
 */
#include "reflector/failure.h"

static enum kinf__failure failure_of_status(int http_status)
{
    switch (http_status) {
    case 400:
        return KINF__FAILURE_MALFORMED;
    case 422:
        return KINF__FAILURE_UNSUPPORTED;
    default:
        return http_status >= 500 ? KINF__FAILURE_SERVER : KINF__FAILURE_REFUSED;
    }
}

enum kinf__failure kinf__failure_of(const struct kinf_error *err, bool is_event)
{
    switch (err->code) {
    case KINF_ERR_NETWORK:
    case KINF_ERR_TRUNCATED:
        return KINF__FAILURE_AWAY;
    case KINF_ERR_TLS:
        return KINF__FAILURE_TLS;
    case KINF_ERR_TIMEOUT:
        return KINF__FAILURE_TIMEOUT;
    case KINF_ERR_TOO_MANY_REQUESTS:
        return KINF__FAILURE_BUSY;
    case KINF_ERR_EXPIRED:
        return KINF__FAILURE_EXPIRED;
    case KINF_ERR_RV_TOO_LARGE:
        return KINF__FAILURE_TOO_LARGE;
    case KINF_ERR_UNAUTHORIZED:
    case KINF_ERR_FORBIDDEN:
        return is_event ? KINF__FAILURE_REFUSED : KINF__FAILURE_DENIED;
    case KINF_ERR_NOT_FOUND:
        return is_event ? KINF__FAILURE_REFUSED : KINF__FAILURE_ABSENT;
    case KINF_ERR_NO_MEMORY:
    case KINF_ERR_SYSTEM:
        return KINF__FAILURE_OURS;
    case KINF_ERR_SERVER:
        return failure_of_status(err->http_status);
    default:
        return KINF__FAILURE_REFUSED;
    }
}
