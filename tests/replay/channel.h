/*
 * One accepted connection as a stream of bytes, with TLS or without, and the ways to end it.
 *
 * Threads: one thread per object. A shutdown() of the descriptor, from any, makes every call fail.
 */
#ifndef KINF_TESTS_REPLAY_CHANNEL_H
#define KINF_TESTS_REPLAY_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/ssl.h>

struct replay__channel {
    int fd;
    SSL *ssl; /* NULL: plain */
};

/* The handshake; `context` NULL: plain. The channel is valid for the functions below if it fails.
 */
bool replay__channel_open(struct replay__channel *channel, int fd, SSL_CTX *context);

/* The name in the certificate that the peer showed, cut to `size`; "" for none. */
void replay__channel_peer_name(const struct replay__channel *channel, char *name, size_t size);

/* Bytes read; 0 when there is nothing more to come. */
size_t replay__channel_read(struct replay__channel *channel, char *bytes, size_t size);
bool replay__channel_write(struct replay__channel *channel, const char *bytes, size_t len);

/* What is told to the peer at the end. Nothing can be read or written afterwards. But for a reset it
 * waits a second for the peer to leave. */
enum replay__farewell {
    REPLAY__FAREWELL_CLOSE_NOTIFY,
    REPLAY__FAREWELL_FIN,
    REPLAY__FAREWELL_RST,
};
void replay__channel_finish(struct replay__channel *channel, enum replay__farewell farewell);

/* Closes the descriptor, behind replay__channel_finish(). */
void replay__channel_close(struct replay__channel *channel);

#endif
