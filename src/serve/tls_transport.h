/*
 * Reads and writes of a TLS session whose caller is libmicrohttpd. During a handshake the library forgets
 * that a socket had nothing, and tries it again at once, for as long as the client is silent: one that
 * stops half way would keep a processor busy. So a read that finds nothing, as it did before, when nobody
 * of the endpoint has read or written since, waits until something happens to any of them, ten
 * milliseconds at most. Nobody is held up by that: there was nothing to do.
 *
 * Threads: the endpoint's, until kinf__tls_transport_leave(); then one at a time.
 */
#ifndef KINF_SERVE_TLS_TRANSPORT_H
#define KINF_SERVE_TLS_TRANSPORT_H

#include <stdint.h>

#include <gnutls/gnutls.h>

/* How often all sessions of an endpoint have read or written. 0 is the beginning. */
struct kinf__tls_activity {
    uint64_t n;
};

/* Of a session. */
struct kinf__tls_transport {
    int fd;
    int events_fd;                       /* readable when something happens to any of them */
    struct kinf__tls_activity *activity; /* NULL: it does not wait */
    uint64_t n_seen;                     /* of that, when it found nothing */
};

/* The session uses the socket by it, and borrows it. `events_fd` is the epoll set that the thread waits
 * for. */
void kinf__tls_transport_init(struct kinf__tls_transport *transport, gnutls_session_t session,
                              int fd, int events_fd, struct kinf__tls_activity *activity);

/* From now on another thread reads and writes, and it never waits. */
void kinf__tls_transport_leave(struct kinf__tls_transport *transport);

#endif
