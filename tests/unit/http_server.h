/*
 * A scripted HTTP server on loopback: each request gets the next reply, whatever it asks for, and
 * is written down. One connection at a time, as one reflector makes them.
 *
 * Threads: made and asked by the test's; it answers on one of its own.
 */
#ifndef KINF_TESTS_UNIT_HTTP_SERVER_H
#define KINF_TESTS_UNIT_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

enum test_reply_end {
    TEST_END_CLEAN, /* the last chunk */
    TEST_END_CUT,   /* the connection is closed without it */
    TEST_END_OPEN,  /* nothing more, until the client leaves */
    TEST_NO_REPLY,  /* not even a head, until the client leaves */
};

struct test_reply {
    const char *status;  /* "429 Too Many Requests"; NULL: "200 OK" */
    const char *headers; /* "Retry-After: 1\r\n"; may be NULL */
    const char *body;    /* may be NULL */
    const char *raw;     /* a recorded response that is sent instead of these three; NULL: none */
    size_t raw_len;      /* less than all of it: a response cut short */
    enum test_reply_end end;
    bool is_held; /* until test_server_let_go() */
};

struct test_server;

/* Starts a server. Requests beyond the replies get TEST_NO_REPLY. The replies are borrowed. */
struct test_server *test_server_start(const struct test_reply *replies, size_t n_replies);
void test_server_stop(struct test_server *server);

int test_server_port(const struct test_server *server);
/* Waits until `n` requests have been received and the last one's reply was sent as far as it goes.
 * Fails the test after 20 s. */
void test_server_wait(struct test_server *server, size_t n);
/* Lets replies go that are held, up to the next that is. */
void test_server_let_go(struct test_server *server);
/* The targets so far, one a line. The caller frees it. */
char *test_server_targets(struct test_server *server);
/* What the requests so far accepted, one a line. The caller frees it. */
char *test_server_accepts(struct test_server *server);

/* "METHOD TARGET CONTENT-TYPE BODY" of the requests so far, one a line; "-" for what is not there.
 * The caller frees it. */
char *test_server_requests(struct test_server *server);

/* Writes a kubeconfig for http://127.0.0.1:PORT to a new file. The caller unlinks and frees the
 * name. */
char *test_kubeconfig(int port);

#endif
