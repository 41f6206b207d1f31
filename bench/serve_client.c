/* See serve_client.h. */
#include "serve_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>

#define READ_BYTES (256u << 10)

static struct sockaddr_in to = { .sin_family = AF_INET };
static SSL_CTX *tls;
static char piece[READ_BYTES];

void die(const char *what)
{
    fprintf(stderr, "bench_serve: %s: %s\n", what, strerror(errno));
    exit(1);
}

void *allocate(size_t n, size_t size)
{
    void *memory = calloc(n, size);

    if (memory == NULL)
        die("memory");
    return memory;
}

static void check(int failed)
{
    if (failed < 0)
        die("memory");
}

void client_server(const char *url)
{
    char scheme[8], host[64];
    unsigned port;

    if (sscanf(url, "%7[a-z]://%63[0-9.]:%u", scheme, host, &port) != 3 ||
        inet_pton(AF_INET, host, &to.sin_addr) != 1) {
        fprintf(stderr, "bench_serve: no address: %s\n", url);
        exit(2);
    }
    to.sin_port = htons((uint16_t)port);
    if (strcmp(scheme, "https") != 0)
        return;
    tls = SSL_CTX_new(TLS_client_method());
    if (tls == NULL)
        die("SSL_CTX_new");
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
}

/* --- the connection --- */

static void listen_for(struct client *client, int epoll, void *self, int how, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = self };

    if (epoll_ctl(epoll, how, client->fd, &event) < 0)
        die("epoll_ctl");
}

static void write_request(struct client *client, const char *target)
{
    const char *token = getenv("TOKEN");

    client->has_head = client->is_over = client->is_chunked = false;
    client->status = 0;
    client->n_left = 0;
    if (asprintf(&client->request,
                 "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n%s%s%s\r\n",
                 target, token != NULL ? "Authorization: Bearer " : "", token != NULL ? token : "",
                 token != NULL ? "\r\n" : "") < 0)
        die("memory");
}

void client_open(struct client *client, int epoll, void *self, const char *target)
{
    static const int yes = 1; /* as Go, curl and Python have it */

    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->fd < 0 || setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) < 0)
        die("socket");
    if (connect(client->fd, (const struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS &&
        errno != ECONNREFUSED)
        die("connect");
    if (tls != NULL) {
        client->tls = SSL_new(tls);
        if (client->tls == NULL || SSL_set_fd(client->tls, client->fd) != 1)
            die("SSL_new");
        SSL_set_connect_state(client->tls);
    }
    write_request(client, target);
    listen_for(client, epoll, self, EPOLL_CTL_ADD, EPOLLOUT);
}

void client_ask(struct client *client, int epoll, void *self, const char *target)
{
    write_request(client, target);
    listen_for(client, epoll, self, EPOLL_CTL_MOD, EPOLLOUT);
}

/* What SSL_read and SSL_write return, as a socket would say it; `ret_wanted` is what to wait for. */
static int tls_result(struct client *client, int n, uint32_t *ret_wanted)
{
    int why;

    if (n > 0)
        return n;
    why = SSL_get_error(client->tls, n);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
        return -1;
    *ret_wanted = why == SSL_ERROR_WANT_READ ? EPOLLIN : EPOLLOUT;
    return 0;
}

static int plain_result(ssize_t n, uint32_t wanted, uint32_t *ret_wanted)
{
    if (n > 0)
        return (int)n;
    *ret_wanted = wanted;
    return n < 0 && errno == EAGAIN ? 0 : -1;
}

static int send_some(struct client *client, uint32_t *ret_wanted)
{
    size_t len = strlen(client->request);

    if (client->tls != NULL)
        return tls_result(client, SSL_write(client->tls, client->request, (int)len), ret_wanted);
    return plain_result(send(client->fd, client->request, len, MSG_NOSIGNAL), EPOLLOUT, ret_wanted);
}

static int read_some(struct client *client, uint32_t *ret_wanted)
{
    if (client->tls != NULL)
        return tls_result(client, SSL_read(client->tls, piece, READ_BYTES), ret_wanted);
    return plain_result(recv(client->fd, piece, READ_BYTES, 0), EPOLLIN, ret_wanted);
}

int client_wait(int epoll, struct epoll_event *events, int64_t ms)
{
    int n = epoll_wait(epoll, events, MAX_EVENTS, ms < 0 ? 0 : (int)ms);

    if (n < 0 && errno != EINTR)
        die("epoll_wait");
    return n < 0 ? 0 : n;
}

/* --- the answer --- */

static size_t take_head(struct client *client)
{
    const char *length, *head = kinf__buffer_cstr(&client->in), *end = strstr(head, "\r\n\r\n");

    if (end == NULL)
        return 0;
    client->has_head = true;
    client->status = atoi(head + strlen("HTTP/1.1 "));
    length = strcasestr(head, "\r\nContent-Length:");
    client->is_chunked = length == NULL || length > end;
    if (!client->is_chunked)
        client->n_left = strtoull(length + 17, NULL, 10);
    client->is_over = !client->is_chunked && client->n_left == 0;
    return (size_t)(end + 4 - head);
}

static size_t take_plain(struct client *client, const char *bytes, size_t len)
{
    len = len < client->n_left ? len : client->n_left;
    check(kinf__buffer_append(&client->body, bytes, len));
    client->n_left -= len;
    client->is_over = client->n_left == 0;
    return len;
}

static size_t take_chunk(struct client *client, const char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\n', len);
    size_t size, head;

    if (end == NULL)
        return 0;
    size = strtoull(bytes, NULL, 16);
    head = (size_t)(end + 1 - bytes);
    if (len < head + size + 2)
        return 0;
    check(kinf__buffer_append(&client->body, end + 1, size));
    client->is_over = size == 0;
    return head + size + 2;
}

static void take(struct client *client, size_t len)
{
    size_t done = 0, n = 1;

    check(kinf__buffer_append(&client->in, piece, len));
    if (!client->has_head)
        done = take_head(client);
    while (client->has_head && !client->is_over && n != 0 && done < client->in.len) {
        const char *at = client->in.bytes + done;
        size_t left = client->in.len - done;

        n = client->is_chunked ? take_chunk(client, at, left) : take_plain(client, at, left);
        done += n;
    }
    kinf__buffer_consume(&client->in, done);
}

int client_step(struct client *client, int epoll, void *self)
{
    uint32_t wanted = EPOLLIN;
    int n = 1;

    ERR_clear_error();
    if (client->request != NULL) {
        n = send_some(client, &wanted);
        if (n > 0) {
            free(client->request);
            client->request = NULL;
        }
        listen_for(client, epoll, self, EPOLL_CTL_MOD, wanted);
        return n > 0 ? 0 : n;
    }
    n = read_some(client, &wanted);
    if (n > 0)
        take(client, (size_t)n);
    return n;
}

void client_close(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    SSL_free(client->tls);
    free(client->request);
    client->fd = -1;
    client->tls = NULL;
    client->request = NULL;
    client->in.len = client->body.len = 0;
}

void client_release(struct client *client)
{
    client_close(client);
    kinf__buffer_release(&client->in);
    kinf__buffer_release(&client->body);
}

/* --- what was measured --- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median_of(double *values, size_t n)
{
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, compare);
    return values[n / 2];
}

double p99_of(const double *sorted, size_t n)
{
    return n == 0 ? 0 : sorted[n - 1 - n / 100];
}
