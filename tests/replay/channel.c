/*
 * Channels. Neighbours: tls.c has the certificates, connection.c owns a channel. SIGPIPE is blocked
 * in all threads of the server, since OpenSSL's writes raise it.
 */
#include "replay/channel.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

/* How long a peer may go on, and how much it may send, once it was told the end. */
#define DRAIN_MAX_S      1
#define DRAIN_MAX_ROUNDS 64

bool replay__channel_open(struct replay__channel *channel, int fd, SSL_CTX *context)
{
    int on = 1;

    *channel = (struct replay__channel){ .fd = fd };
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (context == NULL)
        return true;
    channel->ssl = SSL_new(context);
    return channel->ssl != NULL && SSL_set_fd(channel->ssl, fd) == 1 &&
           SSL_accept(channel->ssl) == 1;
}

void replay__channel_peer_name(const struct replay__channel *channel, char *name, size_t size)
{
    X509 *certificate = channel->ssl != NULL ? SSL_get0_peer_certificate(channel->ssl) : NULL;

    if (certificate == NULL || X509_NAME_get_text_by_NID(X509_get_subject_name(certificate),
                                                         NID_commonName, name, (int)size) < 0)
        *name = '\0';
}

size_t replay__channel_read(struct replay__channel *channel, char *bytes, size_t size)
{
    size_t n_read = 0;
    ssize_t n;

    if (channel->ssl != NULL) {
        ERR_clear_error();
        return SSL_read_ex(channel->ssl, bytes, size, &n_read) == 1 ? n_read : 0;
    }
    do
        n = recv(channel->fd, bytes, size, 0);
    while (n < 0 && errno == EINTR);
    return n > 0 ? (size_t)n : 0;
}

static bool write_plain(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

bool replay__channel_write(struct replay__channel *channel, const char *bytes, size_t len)
{
    size_t n_written;

    if (len == 0)
        return true;
    if (channel->ssl == NULL)
        return write_plain(channel->fd, bytes, len);
    ERR_clear_error();
    return SSL_write_ex(channel->ssl, bytes, len, &n_written) == 1;
}

/* A close() with unread bytes would turn the FIN into a RST, and so would bytes that come behind it:
 * the peer might not get to read why. */
static void drain(int fd)
{
    const struct timeval limit = { DRAIN_MAX_S, 0 };
    char bytes[16384];

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    for (int i = 0; i < DRAIN_MAX_ROUNDS && recv(fd, bytes, sizeof bytes, 0) > 0; i++)
        ;
}

void replay__channel_finish(struct replay__channel *channel, enum replay__farewell farewell)
{
    const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };

    if (farewell == REPLAY__FAREWELL_RST) {
        setsockopt(channel->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        return;
    }
    if (farewell == REPLAY__FAREWELL_CLOSE_NOTIFY && channel->ssl != NULL) {
        ERR_clear_error();
        SSL_shutdown(channel->ssl);
    }
    shutdown(channel->fd, SHUT_WR);
    drain(channel->fd);
}

void replay__channel_close(struct replay__channel *channel)
{
    SSL_free(channel->ssl);
    close(channel->fd);
    *channel = (struct replay__channel){ .fd = -1 };
}
