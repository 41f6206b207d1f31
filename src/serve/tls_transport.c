/*
 * Reading and writing for TLS. Neighbours: endpoint.c has a session for each connection, tunnel.c takes
 * some over.
 */
#include "serve/tls_transport.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Only what no event tells of is ever late by as much: the library's own timeouts. */
#define REST_MS 10

static void note_activity(const struct kinf__tls_transport *transport)
{
    if (transport->activity != NULL)
        transport->activity->n++;
}

static void rest(struct kinf__tls_transport *transport)
{
    struct pollfd events = { transport->events_fd, POLLIN, 0 };

    if (transport->activity == NULL)
        return;
    if (transport->n_seen == transport->activity->n)
        (void)poll(&events, 1, REST_MS);
    transport->n_seen = transport->activity->n;
}

static ssize_t pull(gnutls_transport_ptr_t ctx, void *bytes, size_t size)
{
    struct kinf__tls_transport *transport = ctx;
    ssize_t n = recv(transport->fd, bytes, size, 0);

    if (n >= 0 || errno != EAGAIN) {
        note_activity(transport);
        return n;
    }
    rest(transport);
    errno = EAGAIN;
    return n;
}

static ssize_t push(gnutls_transport_ptr_t ctx, const giovec_t *pieces, int n_pieces)
{
    struct kinf__tls_transport *transport = ctx;
    struct msghdr message = { .msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)n_pieces };
    ssize_t n = sendmsg(transport->fd, &message, MSG_NOSIGNAL);

    if (n >= 0 || errno != EAGAIN)
        note_activity(transport);
    return n;
}

void kinf__tls_transport_init(struct kinf__tls_transport *transport, gnutls_session_t session,
                              int fd, int events_fd, struct kinf__tls_activity *activity)
{
    *transport = (struct kinf__tls_transport){
        .fd = fd,
        .events_fd = events_fd,
        .activity = activity,
        .n_seen = UINT64_MAX,
    };
    gnutls_transport_set_ptr(session, transport);
    gnutls_transport_set_pull_function(session, pull);
    gnutls_transport_set_vec_push_function(session, push);
}

void kinf__tls_transport_leave(struct kinf__tls_transport *transport)
{
    transport->activity = NULL;
}
