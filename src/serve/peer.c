/*
 * Who is connected, and how long they take. Neighbours: endpoint.c makes peers, mhd_request.c awaits
 * and forgives them.
 */
#include "serve/peer.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include "base/clock.h"
#include "serve/client_certificate.h"

#define MOST_CUT 500 /* at a time */

struct kinf__peer {
    struct kinf__list node; /* in the waiting ones' list while it owes something; else alone */
    int fd;
    int64_t deadline_ms;
    struct kinf__address_count *count; /* NULL: it is not counted */
    struct kinf__client_certificate certificate;
    struct kinf__tls_transport transport;
};

/* Runs on the server's timer. The library closes what is shut down here, and only after it has said
 * so, which frees the peer and waits for the lock: the descriptor is still the peer's. The endpoint's
 * thread answers nobody while it closes, so the others are left to the next ticks. */
static int64_t cut_late(int64_t now_ms, void *ctx)
{
    struct kinf__peers *peers = ctx;
    int64_t due_ms = KINF__NEVER_MS;
    int n_cut = 0;

    kinf__mutex_lock(&peers->lock);
    KINF__LIST_FOR_EACH (node, &peers->waiting) {
        struct kinf__peer *peer = KINF__LIST_ENTRY(node, struct kinf__peer, node);

        if (peer->deadline_ms <= now_ms && n_cut < MOST_CUT) {
            shutdown(peer->fd, SHUT_RDWR);
            peer->deadline_ms = KINF__NEVER_MS;
            n_cut++;
        }
        if (peer->deadline_ms < due_ms)
            due_ms = peer->deadline_ms;
    }
    kinf__mutex_unlock(&peers->lock);
    return due_ms;
}

void kinf__peers_init(struct kinf__peers *peers, struct kinf__server *server)
{
    peers->server = server;
    kinf__mutex_init(&peers->lock, KINF__RANK_CONNECTION);
    kinf__list_init(&peers->waiting);
    peers->hook = (struct kinf__tick_hook){ .tick = cut_late, .ctx = peers };
    kinf__server_add_hook(server, &peers->hook);
}

void kinf__peers_release(struct kinf__peers *peers)
{
    kinf__server_remove_hook(peers->server, &peers->hook);
    kinf__mutex_release(&peers->lock);
}

struct kinf__peer *kinf__peer_new(struct kinf__peers *peers, int fd)
{
    struct kinf__peer *peer = calloc(1, sizeof *peer);

    if (peer == NULL)
        return NULL;
    kinf__list_init(&peer->node);
    peer->fd = fd;
    if (!peers->are_uncounted)
        peer->count = kinf__connections_take(&peers->server->connections, kinf__peer_address(fd));
    if (peer->count != NULL || peers->are_uncounted)
        return peer;
    free(peer);
    return NULL;
}

void kinf__peer_free(struct kinf__peers *peers, struct kinf__peer *peer)
{
    if (peer == NULL)
        return;
    kinf__peer_forgive(peers, peer);
    if (peer->count != NULL)
        kinf__connections_give_back(&peers->server->connections, peer->count);
    kinf__client_certificate_release(&peer->certificate);
    free(peer);
}

void kinf__peer_await(struct kinf__peers *peers, struct kinf__peer *peer, int64_t patience_ms)
{
    if (peer == NULL)
        return;
    kinf__mutex_lock(&peers->lock);
    peer->deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), patience_ms);
    kinf__list_remove(&peer->node);
    kinf__list_push_back(&peers->waiting, &peer->node);
    kinf__server_expect(peers->server, peer->deadline_ms);
    kinf__mutex_unlock(&peers->lock);
}

void kinf__peer_forgive(struct kinf__peers *peers, struct kinf__peer *peer)
{
    if (peer == NULL)
        return;
    kinf__mutex_lock(&peers->lock);
    kinf__list_remove(&peer->node);
    kinf__mutex_unlock(&peers->lock);
}

bool kinf__peer_owes(const struct kinf__peer *peer)
{
    return peer != NULL && !kinf__list_is_empty(&peer->node);
}

struct kinf__client_certificate *kinf__peer_certificate(struct kinf__peer *peer)
{
    return peer != NULL ? &peer->certificate : NULL;
}

struct kinf__tls_transport *kinf__peer_transport(struct kinf__peer *peer)
{
    return peer != NULL ? &peer->transport : NULL;
}

static bool read_credentials(int fd, struct ucred *ret_credentials)
{
    socklen_t len = sizeof *ret_credentials;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret_credentials, &len) == 0;
}

/* An address of IPv4 that a socket of IPv6 has accepted. */
static bool is_mapped(const struct sockaddr *address)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;

    return address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
}

/* What the Internet uses of IPv6 begins with a one among its first 32 bits, but for ::1 and IPv4
 * addresses in that form: what is no IPv6 is below. */
uint64_t kinf__peer_network(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    bool is_v4 = address->sa_family != AF_INET6 || is_mapped(address);
    const unsigned char *bytes = address->sa_family != AF_INET6
                                     ? (const unsigned char *)&v4->sin_addr
                                     : &v6->sin6_addr.s6_addr[is_v4 ? 12 : 0];
    uint64_t network = 0;

    for (int i = 0; i < (is_v4 ? 4 : 8); i++)
        network = network << 8 | bytes[i];
    return network;
}

uint64_t kinf__peer_address(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in6 v6;
        struct sockaddr_storage largest;
    } peer;
    socklen_t len = sizeof peer;
    struct ucred credentials;

    memset(&peer, 0, sizeof peer);
    if (getpeername(fd, &peer.any, &len) < 0)
        return 0;
    if (peer.any.sa_family == AF_INET || peer.any.sa_family == AF_INET6)
        return kinf__peer_network(&peer.any);
    return read_credentials(fd, &credentials) ? UINT64_C(1) << 32 | credentials.uid : 0;
}

bool kinf__peer_is_one_of(int fd, const uint32_t *users, size_t n_users)
{
    struct ucred credentials;

    if (!read_credentials(fd, &credentials))
        return false;
    for (size_t i = 0; i < n_users; i++) {
        if (users[i] == credentials.uid)
            return true;
    }
    return false;
}

bool kinf__peer_is_local(int fd)
{
    struct ucred credentials;

    return read_credentials(fd, &credentials) && credentials.pid == getpid();
}

void kinf__peer_describe_process(int fd, char *buf, size_t size)
{
    struct ucred credentials;

    if (read_credentials(fd, &credentials))
        snprintf(buf, size, "unix uid=%u pid=%d", credentials.uid, credentials.pid);
}

void kinf__peer_describe_address(const struct sockaddr *address, char *buf, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "", port[8] = "";
    bool is_v6 = address->sa_family == AF_INET6, is_v4 = !is_v6 || is_mapped(address);
    socklen_t len = is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

    if (getnameinfo(address, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    if (is_v4)
        snprintf(buf, size, "%s:%s", is_v6 ? strrchr(host, ':') + 1 : host, port);
    else
        snprintf(buf, size, "[%s]:%s", host, port);
}
