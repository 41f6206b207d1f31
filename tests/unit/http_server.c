/*
 * The scripted server. Neighbours: test_reflector.c. Invariant: what both threads touch is behind
 * `lock`.
 */
#include "unit/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/thread.h"
#include "unit/test.h"

#define WAIT_S 20

struct test_server {
    const struct test_reply *replies;
    size_t n_replies;
    int listener;
    int port;
    struct kinf__waker stopped;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct kinf__buffer targets;
    struct kinf__buffer accepts;
    struct kinf__buffer requests;
    size_t n_requests;
    size_t n_answered;
    size_t n_let_go; /* held replies that may be sent */
    bool is_stopping;
};

/* Waits until the descriptor has something, or the server is stopped (false). */
static bool wait_for(struct test_server *server, int fd)
{
    struct pollfd fds[] = { { fd, POLLIN, 0 }, { server->stopped.fd, POLLIN, 0 } };

    poll(fds, 2, -1);
    return fds[1].revents == 0;
}

/* How long a request with this head is. */
static size_t whole_len(const char *request)
{
    const char *end = strstr(request, "\r\n\r\n");
    const char *len = strstr(request, "\r\nContent-Length: ");

    if (end == NULL)
        return SIZE_MAX;
    return (size_t)(end - request) + 4 +
           (len != NULL && len < end ? strtoul(len + 18, NULL, 10) : 0);
}

/* Reads one request. False: the client has left, or the server is stopped. */
static bool read_request(struct test_server *server, int fd, char *buf, size_t size)
{
    size_t len = 0;

    while (len < size - 1 && wait_for(server, fd)) {
        ssize_t n = recv(fd, buf + len, size - 1 - len, 0);

        if (n <= 0)
            return false;
        len += (size_t)n;
        buf[len] = '\0';
        if (len >= whole_len(buf))
            return true;
    }
    return false;
}

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len != 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        bytes += n;
        len -= (size_t)n;
    }
}

static void send_reply(int fd, const struct test_reply *reply)
{
    const char *body = reply->body != NULL ? reply->body : "";
    char head[512];
    int len = snprintf(head, sizeof head,
                       "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%s"
                       "Transfer-Encoding: chunked\r\n\r\n",
                       reply->status != NULL ? reply->status : "200 OK",
                       reply->headers != NULL ? reply->headers : "");

    send_all(fd, head, (size_t)len);
    if (body[0] != '\0') {
        len = snprintf(head, sizeof head, "%zx\r\n", strlen(body));
        send_all(fd, head, (size_t)len);
        send_all(fd, body, strlen(body));
        send_all(fd, "\r\n", 2);
    }
    if (reply->end == TEST_END_CLEAN)
        send_all(fd, "0\r\n\r\n", 5);
}

static void reply_to(int fd, const struct test_reply *reply)
{
    if (reply->raw != NULL)
        send_all(fd, reply->raw, reply->raw_len);
    else if (reply->end != TEST_NO_REPLY)
        send_reply(fd, reply);
    if (reply->end == TEST_END_CUT)
        shutdown(fd, SHUT_RDWR);
}

static const struct test_reply *note_request(struct test_server *server, const char *request)
{
    static const struct test_reply none = { .end = TEST_NO_REPLY };
    const char *target = strchr(request, ' ') + 1;
    const char *accept = strstr(request, "\r\nAccept: ");
    const char *type = strstr(request, "\r\nContent-Type: ");
    const char *body = strstr(request, "\r\n\r\n") + 4;
    size_t no;

    pthread_mutex_lock(&server->lock);
    no = server->n_requests++;
    accept = accept != NULL ? accept + strlen("\r\nAccept: ") : "";
    if (kinf__buffer_printf(&server->targets, "%.*s\n", (int)strcspn(target, " "), target) < 0 ||
        kinf__buffer_printf(&server->accepts, "%.*s\n", (int)strcspn(accept, "\r"), accept) < 0 ||
        kinf__buffer_printf(&server->requests, "%.*s %.*s %s\n",
                            (int)(target - request + (long)strcspn(target, " ")), request,
                            type != NULL ? (int)strcspn(type + 16, "\r") : 1,
                            type != NULL ? type + 16 : "-", *body != '\0' ? body : "-") < 0)
        abort();
    pthread_mutex_unlock(&server->lock);
    return no < server->n_replies ? &server->replies[no] : &none;
}

static void hold(struct test_server *server)
{
    pthread_mutex_lock(&server->lock);
    while (server->n_let_go == 0 && !server->is_stopping)
        pthread_cond_wait(&server->changed, &server->lock);
    if (server->n_let_go != 0)
        server->n_let_go--;
    pthread_mutex_unlock(&server->lock);
}

static void note_answer(struct test_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->n_answered++;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void serve(struct test_server *server, int fd)
{
    char request[16384];

    while (read_request(server, fd, request, sizeof request)) {
        const struct test_reply *reply = note_request(server, request);

        if (reply->is_held)
            hold(server);
        reply_to(fd, reply);
        note_answer(server);
    }
}

static void *run(void *ctx)
{
    struct test_server *server = ctx;

    while (wait_for(server, server->listener)) {
        int fd = accept(server->listener, NULL, NULL);

        if (fd >= 0) {
            serve(server, fd);
            close(fd);
        }
    }
    return NULL;
}

static void listen_on_loopback(struct test_server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;

    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->listener >= 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server->listener, 16), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
}

struct test_server *test_server_start(const struct test_reply *replies, size_t n_replies)
{
    struct test_server *server = calloc(1, sizeof *server);

    assert_non_null(server);
    server->replies = replies;
    server->n_replies = n_replies;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    assert_int_equal(kinf__waker_init(&server->stopped, NULL), 0);
    listen_on_loopback(server);
    assert_int_equal(pthread_create(&server->thread, NULL, run, server), 0);
    return server;
}

void test_server_stop(struct test_server *server)
{
    kinf__waker_set(&server->stopped);
    pthread_mutex_lock(&server->lock);
    server->is_stopping = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->thread, NULL);
    close(server->listener);
    kinf__waker_release(&server->stopped);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    kinf__buffer_release(&server->targets);
    kinf__buffer_release(&server->accepts);
    kinf__buffer_release(&server->requests);
    free(server);
}

int test_server_port(const struct test_server *server)
{
    return server->port;
}

void test_server_wait(struct test_server *server, size_t n)
{
    struct timespec until;
    int failed = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&server->lock);
    while (failed == 0 && server->n_answered < n)
        failed = pthread_cond_timedwait(&server->changed, &server->lock, &until);
    pthread_mutex_unlock(&server->lock);
    if (failed != 0)
        fail_msg("%zu requests did not come in time:\n%s", n, test_server_targets(server));
}

void test_server_let_go(struct test_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->n_let_go++;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static char *copy_lines(struct test_server *server, const struct kinf__buffer *lines)
{
    char *copy;

    pthread_mutex_lock(&server->lock);
    copy = strndup(lines->len != 0 ? lines->bytes : "", lines->len);
    pthread_mutex_unlock(&server->lock);
    assert_non_null(copy);
    return copy;
}

char *test_server_targets(struct test_server *server)
{
    return copy_lines(server, &server->targets);
}

char *test_server_accepts(struct test_server *server)
{
    return copy_lines(server, &server->accepts);
}

char *test_server_requests(struct test_server *server)
{
    return copy_lines(server, &server->requests);
}

char *test_kubeconfig(int port)
{
    char *name = strdup("/tmp/kinf-test-XXXXXX");
    int fd = mkstemp(name);

    assert_true(fd >= 0);
    dprintf(fd,
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            "clusters:\n- name: c\n  cluster:\n    server: http://127.0.0.1:%d\n"
            "contexts:\n- name: c\n  context:\n    cluster: c\n    user: u\n"
            "users:\n- name: u\n  user: {}\n",
            port);
    close(fd);
    return name;
}
