/*
 * Connections that have changed their protocol: bytes of a client carried to a forward and back, as
 * fast as the slower side takes them, until either side ends.
 *
 * Tunnels are one thread with any number of them; who may have one, and how many, is the forwarder's
 * business (places.h), and each is a request as any other until it is over. A tunnel may be silent
 * for as long as both peers live. When one side has ended the other gets what is on its way: a client
 * that takes nothing has 90 seconds, as of any answer, the server two.
 *
 * Threads: any for tunnels; a tunnel, one at a time, but for kinf__tunnel_wake().
 */
#ifndef KINF_SERVE_TUNNEL_H
#define KINF_SERVE_TUNNEL_H

#include "base/buffer.h"
#include "serve/forward.h"

struct gnutls_session_int; /* NULL: plain */
struct kinf__tunnels;
struct kinf__tunnel;

/* Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__tunnels_new(struct kinf__tunnels **ret_tunnels, struct kinf_error *err);
/* Closes all, and each that is opened later at once. When this returns the tunnels' thread has
 * ended. May be called again; NULL is allowed. */
void kinf__tunnels_stop(struct kinf__tunnels *tunnels);
/* Every tunnel has been freed. NULL is allowed. */
void kinf__tunnels_free(struct kinf__tunnels *tunnels);

/* `head` is what the client gets first; it is taken. `on_over` is called once, on any thread and with no
 * lock held, when an opened tunnel is over: it leaves alone what it was opened with, and may be freed.
 * NULL: out of memory, nothing is taken. */
struct kinf__tunnel *kinf__tunnel_new(struct kinf__tunnels *tunnels, struct kinf__forward *forward,
                                      struct kinf__buffer *head, void (*on_over)(void *ctx),
                                      void *ctx);
/* One that is closed, or was never opened. NULL is allowed. */
void kinf__tunnel_free(struct kinf__tunnel *tunnel);

/* The client is at `fd`, which does not block. Both stay the caller's, who leaves them alone. */
void kinf__tunnel_open(struct kinf__tunnel *tunnel, int fd, struct gnutls_session_int *tls);

/* The forward has something, or room. */
void kinf__tunnel_wake(struct kinf__tunnel *tunnel);

#endif
