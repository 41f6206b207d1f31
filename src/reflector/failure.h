/*
 * What a failure of a request means: one word for each kind, of which the policy's table has a
 * column, and the log a line.
 *
 * Threads: any thread.
 */
#ifndef KINF_REFLECTOR_FAILURE_H
#define KINF_REFLECTOR_FAILURE_H

#include <kinformer/error.h>

/* X(enumerator, name) */
#define KINF__FAILURES(X)                                                                          \
    X(KINF__FAILURE_AWAY, "away")               /* no connection, or one that broke */             \
    X(KINF__FAILURE_TLS, "TLS")                 /* a certificate, or the handshake */              \
    X(KINF__FAILURE_TIMEOUT, "timeout")         /* no answer, or not its end, in time */           \
    X(KINF__FAILURE_BUSY, "busy")               /* 429: later */                                   \
    X(KINF__FAILURE_SERVER, "server")           /* 5xx: its own trouble */                         \
    X(KINF__FAILURE_EXPIRED, "expired")         /* 410: the version or page token is too old */    \
    X(KINF__FAILURE_TOO_LARGE, "too large")     /* it has not reached the version */               \
    X(KINF__FAILURE_MALFORMED, "malformed")     /* 400; also how a version or token is refused */  \
    X(KINF__FAILURE_DENIED, "denied")           /* 401, 403 */                                     \
    X(KINF__FAILURE_ABSENT, "absent")           /* 404 */                                          \
    X(KINF__FAILURE_UNSUPPORTED, "unsupported") /* 422: no such request here */                    \
    X(KINF__FAILURE_REFUSED, "refused") /* any other answer that cannot get better by itself */    \
    X(KINF__FAILURE_OURS, "ours")       /* memory, the system */

enum kinf__failure {
#define X(failure, name) failure,
    KINF__FAILURES(X)
#undef X
        KINF__N_FAILURES
};

const char *kinf__failure_to_string(enum kinf__failure failure);

/* `is_event`: it came as an ERROR event of a watch, whose server had accepted us and had the
 * resource: 401, 403 and 404 are no such refusals. */
enum kinf__failure kinf__failure_of(const struct kinf_error *err, bool is_event);

#endif
