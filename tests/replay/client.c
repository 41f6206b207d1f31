/*
 * The client for tests. Neighbours: replay.h tells where the server is.
 */
#include "replay/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <openssl/pem.h>

#define PATIENCE_S 20
#define READ_SIZE  65536

static bool trust(SSL_CTX *context, const char *ca_pem)
{
    BIO *pem = BIO_new_mem_buf(ca_pem, -1);
    X509 *authority = pem != NULL ? PEM_read_bio_X509(pem, NULL, NULL, NULL) : NULL;
    bool trusted =
        authority != NULL && X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority) == 1;

    X509_free(authority);
    BIO_free(pem);
    return trusted;
}

static bool secure(struct replay_client *client, const struct replay *replay)
{
    client->context = SSL_CTX_new(TLS_client_method());
    if (client->context == NULL || !trust(client->context, replay_ca_pem(replay)))
        return false;
    SSL_CTX_set_verify(client->context, SSL_VERIFY_PEER, NULL);
    client->ssl = SSL_new(client->context);
    return client->ssl != NULL &&
           X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(client->ssl), "127.0.0.1") == 1 &&
           SSL_set_fd(client->ssl, client->fd) == 1 && SSL_connect(client->ssl) == 1;
}

bool replay_client_open(struct replay_client *client, const struct replay *replay)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(replay_port(replay)),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct timeval patience = { .tv_sec = PATIENCE_S };

    *client = (struct replay_client){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    if (client->fd >= 0 &&
        setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
        connect(client->fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        (*replay_ca_pem(replay) == '\0' || secure(client, replay)))
        return true;
    replay_client_close(client);
    return false;
}

void replay_client_close(struct replay_client *client)
{
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    if (client->fd >= 0)
        close(client->fd);
    *client = (struct replay_client){ .fd = -1 };
}

bool replay_client_send(struct replay_client *client, const char *text)
{
    size_t len = strlen(text), n_written = 0;

    if (client->ssl != NULL)
        return SSL_write_ex(client->ssl, text, len, &n_written) == 1;
    return send(client->fd, text, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static enum replay_ending ending_of(const struct replay_client *client, int result)
{
    int reason = errno;

    if (client->ssl != NULL && SSL_get_error(client->ssl, result) == SSL_ERROR_ZERO_RETURN)
        return REPLAY_ENDING_CLOSE_NOTIFY;
    if (reason == EAGAIN)
        return REPLAY_ENDING_LATE;
    return reason == ECONNRESET ? REPLAY_ENDING_RST : REPLAY_ENDING_FIN;
}

size_t replay_client_read(struct replay_client *client, char *bytes, size_t size)
{
    ssize_t n;

    errno = 0;
    n = client->ssl != NULL ? SSL_read(client->ssl, bytes, (int)size)
                            : recv(client->fd, bytes, size, 0);
    if (n <= 0)
        client->ending = ending_of(client, (int)n);
    return n > 0 ? (size_t)n : 0;
}

int replay_client_read_more(struct replay_client *client, size_t len, struct kinf__buffer *bytes)
{
    size_t n = 1;

    while (len > 0 && n > 0) {
        if (kinf__buffer_reserve(bytes, READ_SIZE) < 0)
            return KINF_ERR_NO_MEMORY;
        n = replay_client_read(client, bytes->bytes + bytes->len,
                               len < READ_SIZE ? len : READ_SIZE);
        bytes->len += n;
        len -= n;
    }
    return 0;
}
