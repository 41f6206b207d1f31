/*
 * What a failure of a request means: one word for each kind, of which the policy's table has a
 * column, and the log a line.
 *
 * Threads: any thread.
 */
#ifndef KINF_REFLECTOR_FAILURE_H
#define KINF_REFLECTOR_FAILURE_H

#include <kinformer/error.h>

enum kinf__failure {
    KINF__FAILURE_AWAY,        /* no connection, or one that broke */
    KINF__FAILURE_TLS,         /* a certificate, or the handshake */
    KINF__FAILURE_TIMEOUT,     /* no answer, or not its end, in time */
    KINF__FAILURE_BUSY,        /* 429: later */
    KINF__FAILURE_SERVER,      /* 5xx: its own trouble */
    KINF__FAILURE_EXPIRED,     /* 410: the version or page token is too old */
    KINF__FAILURE_TOO_LARGE,   /* it has not reached the version */
    KINF__FAILURE_MALFORMED,   /* 400; also how a version or token is refused */
    KINF__FAILURE_DENIED,      /* 401, 403 */
    KINF__FAILURE_ABSENT,      /* 404 */
    KINF__FAILURE_UNSUPPORTED, /* 422: no such request here */
    KINF__FAILURE_REFUSED,     /* any other answer that cannot get better by itself */
    KINF__FAILURE_OURS,        /* memory, the system */
    KINF__N_FAILURES
};

/* `is_event`: it came as an ERROR event of a watch, whose server had accepted us and had the
 * resource: 401, 403 and 404 are no such refusals. */
enum kinf__failure kinf__failure_of(const struct kinf_error *err, bool is_event);

#endif
