/*
 * A client of a bare socket for tests of the server: sends what it is given, reads what comes, and
 * tells how the connection ended.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_TESTS_REPLAY_CLIENT_H
#define KINF_TESTS_REPLAY_CLIENT_H

#include <openssl/ssl.h>

#include "base/buffer.h"
#include "replay/replay.h"

enum replay_ending {
    REPLAY_ENDING_NONE, /* it is open */
    REPLAY_ENDING_CLOSE_NOTIFY,
    REPLAY_ENDING_FIN, /* without close_notify */
    REPLAY_ENDING_RST,
    REPLAY_ENDING_LATE, /* nothing came for 20 s */
};

struct replay_client {
    int fd;
    SSL_CTX *context;
    SSL *ssl; /* NULL: plain */
    enum replay_ending ending;
};

/* Connects, with TLS if the server has it, verifying its certificate. */
bool replay_client_open(struct replay_client *client, const struct replay *replay);
void replay_client_close(struct replay_client *client);

bool replay_client_send(struct replay_client *client, const char *text);

/* One read, with TLS of one record at most. Returns 0 at the end, which `ending` tells. */
size_t replay_client_read(struct replay_client *client, char *bytes, size_t size);

/* Reads until `bytes` has `len` bytes more, or to the end of the connection. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int replay_client_read_more(struct replay_client *client, size_t len,
                                            struct kinf__buffer *bytes);

#endif
