/*
 * A client's side of one HTTP/1.1 request, without ever waiting: what bench_serve has thousands of.
 * The connection is made, secured (https) and written to as the socket lets, and the answer is taken
 * apart as it comes. Certificates are not looked at. What cannot go on for want of memory or
 * descriptors ends the program.
 *
 * Threads: one.
 */
#ifndef KINF_BENCH_SERVE_CLIENT_H
#define KINF_BENCH_SERVE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>
#include <sys/epoll.h>

#include "base/buffer.h"

#define MS         INT64_C(1000000) /* in ns */
#define MAX_EVENTS 256

struct client {
    int fd; /* -1: closed */
    SSL *tls;
    char *request; /* until it is written */
    struct kinf__buffer in;
    bool has_head;
    int status; /* of the answer; 0: none yet */
    bool is_chunked;
    size_t n_left; /* of a body without chunks */
    bool is_over;  /* the answer is complete */
    struct kinf__buffer body;
};

/* Where all clients connect: http://HOST:PORT or https://HOST:PORT, HOST in digits. The bearer token,
 * if there is one, is in the environment: TOKEN. */
void client_server(const char *url);

/* Connects and will send GET of the target; `epoll` tells, with `self`, when to step it. */
void client_open(struct client *client, int epoll, void *self, const char *target);
/* The next request on the same connection, when the answer to the one before is over. */
void client_ask(struct client *client, int epoll, void *self, const char *target);
/* Goes on; returns the bytes that came, 0 if none are there yet, -1 when the connection ended. */
int client_step(struct client *client, int epoll, void *self);
/* At most `ms`, for at most MAX_EVENTS. */
int client_wait(int epoll, struct epoll_event *events, int64_t ms);
void client_close(struct client *client);
void client_release(struct client *client);

void die(const char *what) __attribute__((noreturn));
void *allocate(size_t n, size_t size);
double median_of(double *values, size_t n); /* sorts; 0 if there are none */
double p99_of(const double *sorted, size_t n);

#endif
