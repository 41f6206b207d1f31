/*
 * The replay server (tests/replay) with exchanges from C: each request gets the next reply, or the
 * one for its path, and is written down. Besides, what tests of clients need: clients, listeners,
 * key pairs.
 *
 * Threads: the test's.
 */
#ifndef KINF_TESTS_UNIT_SCRIPTED_SERVER_H
#define KINF_TESTS_UNIT_SCRIPTED_SERVER_H

#include <kinformer/client.h>

#include "replay/replay.h"
#include "sim/key_pair.h"

enum test_reply_end {
    TEST_END_CLEAN, /* the last chunk */
    TEST_END_CUT,   /* the connection is closed without it */
    TEST_END_OPEN,  /* nothing more, until the client leaves */
    TEST_NO_REPLY,  /* not even a head, until the client leaves */
};

struct test_reply {
    const char *path; /* of the requests that get it; NULL: the next one gets it, whatever it is */
    const char *status;   /* "429 Too Many Requests"; NULL: "200 OK" */
    const char *headers;  /* "Retry-After: 1\r\n"; may be NULL */
    const char *body;     /* may be NULL */
    const char *raw;      /* a recorded response that is sent instead of these three; NULL: none */
    size_t raw_len;       /* less than all of it: a response cut short */
    const char *raw_more; /* sent behind it after test_server_let_go(); NULL: nothing */
    enum test_reply_end end;
    bool is_held; /* until test_server_let_go() */
};

/* Starts a plain server; replay_stop() ends it. Requests beyond the replies get TEST_NO_REPLY, or if
 * the replies have paths a 404 with "404 page not found\n", as from kube-apiserver. */
struct replay *test_server_start(const struct test_reply *replies, size_t n_replies);
struct replay *test_server_start_with(const struct test_reply *replies, size_t n_replies,
                                      const struct replay_options *options);

/* Waits until `n` requests have been received and the last one's reply was sent as far as it goes.
 * Fails the test after 20 s. */
void test_server_wait(struct replay *server, size_t n);
/* Lets replies go that are held, up to the next that is. */
void test_server_let_go(struct replay *server);

/* Of the requests so far; the caller frees it: the targets, one a line; */
char *test_server_targets(struct replay *server);
/* what they accept, one a line; */
char *test_server_accepts(struct replay *server);
/* "METHOD TARGET CONTENT-TYPE BODY", one a line, "-" for what is not there; */
char *test_server_requests(struct replay *server);
/* the heads, whole. */
char *test_server_heads(struct replay *server);

/* As kinf_client_new(), of a kubeconfig with this text. `options` NULL: the defaults. */
int test_client_new(const char *kubeconfig, const struct kinf_client_options *options,
                    struct kinf_client **ret_client, struct kinf_error *err);
/* For http://127.0.0.1:PORT, without credentials. Fails the test if it cannot be made. */
struct kinf_client *test_client_of(unsigned port, const struct kinf_client_options *options);

/* A listener on loopback, and its port. The caller closes it. */
int test_listen(int backlog, unsigned *ret_port);

/* A port at which connecting hangs: nobody accepts, and the queue is full. */
struct test_deaf_port {
    int fds[5];
    unsigned port;
};
void test_deaf_port_open(struct test_deaf_port *deaf);
void test_deaf_port_close(struct test_deaf_port *deaf);

/* `alt_names` as in sim/key_pair.h. The caller releases it. */
struct kinf__key_pair test_key_pair(const char *name, const char *alt_names, long valid_s,
                                    const struct kinf__key_pair *issuer);

#endif
