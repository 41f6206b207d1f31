/*
 * Connections from accept to close, between whose requests libmicrohttpd counts silence. That is not
 * enough for a client that sends a byte now and then and never a whole request: here is counted how
 * long it owes one.
 *
 * Threads: each peer, its endpoint's; the server's timer cuts off those that are late.
 */
#ifndef KINF_SERVE_PEER_H
#define KINF_SERVE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>

#include "base/list.h"
#include "serve/server_priv.h"
#include "serve/tls_transport.h"

/* Those of one endpoint. */
struct kinf__peers {
    struct kinf__server *server;
    bool are_uncounted; /* there is always room for them */
    struct kinf__tick_hook hook;
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list waiting; /* for a head, or the rest of a body */
};

struct kinf__peer;
struct kinf__client_certificate;

void kinf__peers_init(struct kinf__peers *peers, struct kinf__server *server);
/* All of them are freed. */
void kinf__peers_release(struct kinf__peers *peers);

/* Counted with the server's connections (connections.h). `fd` is shut down when a deadline passes.
 * NULL: there are too many, or there is no memory; for it, what is below does nothing. */
struct kinf__peer *kinf__peer_new(struct kinf__peers *peers, int fd);
void kinf__peer_free(struct kinf__peers *peers, struct kinf__peer *peer);

/* From now on it owes a head, or the rest of a body, for that long at most. */
void kinf__peer_await(struct kinf__peers *peers, struct kinf__peer *peer, int64_t patience_ms);
/* It owes nothing any more. */
void kinf__peer_forgive(struct kinf__peers *peers, struct kinf__peer *peer);

/* Whether it is awaited; the endpoint's thread. */
bool kinf__peer_owes(const struct kinf__peer *peer);

/* What its certificate was found to be, which it owns; the endpoint's thread. NULL if the peer is. */
struct kinf__client_certificate *kinf__peer_certificate(struct kinf__peer *peer);

/* Of its TLS session, if it has one, and as long as it is there. NULL if the peer is. */
struct kinf__tls_transport *kinf__peer_transport(struct kinf__peer *peer);

/* Where it comes from: a number for each that connections.h tells apart; 0: it has gone. */
uint64_t kinf__peer_address(int fd);
/* Of an IPv4 or IPv6 address. */
uint64_t kinf__peer_network(const struct sockaddr *address);
/* Whether the other end of a unix socket is in this process, too. */
bool kinf__peer_is_local(int fd);
/* Whether the process at the other end of a unix socket runs as one of the users. */
bool kinf__peer_is_one_of(int fd, const uint32_t *users, size_t n_users);
/* "unix uid=0 pid=12"; nothing is written if that is not known. */
void kinf__peer_describe_process(int fd, char *buf, size_t size);
/* "127.0.0.1:4711", "[::1]:4711", likewise. */
void kinf__peer_describe_address(const struct sockaddr *address, char *buf, size_t size);

#endif
