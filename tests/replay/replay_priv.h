/*
 * The server's insides, for replay.c (listening, lists) and connection.c (one connection).
 *
 * Threads: as the banners say.
 */
#ifndef KINF_TESTS_REPLAY_REPLAY_PRIV_H
#define KINF_TESTS_REPLAY_REPLAY_PRIV_H

#include <pthread.h>

#include "base/list.h"
#include "base/thread.h"
#include "replay/channel.h"
#include "replay/generate.h"
#include "replay/script.h"
#include "replay/tls.h"

struct replay {
    /* constant after start */
    char url[64];
    uint16_t port;
    int listener;
    struct replay__tls tls; /* context NULL: plain */
    struct replay__generator *generator;
    pthread_t thread;
    struct kinf__waker stop;

    /* guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* anything below */
    bool is_stopping;
    struct replay__script script; /* n_used; the rest is constant */
    struct kinf__list connections;
    size_t n_open;
    unsigned n_accepted;
    struct replay_request **requests;
    size_t n_requests;
    size_t n_violations;
    size_t n_answered;
    unsigned signals[REPLAY_MAX_SIGNAL + 1]; /* given and not taken yet */
};

struct replay__connection {
    /* constant after start */
    struct kinf__list in_replay;
    struct replay *replay;
    unsigned number;
    int fd;
    pthread_t thread;
    struct kinf__waker waker; /* set at signals and at the stop */

    /* guarded by the server's lock */
    bool is_open; /* fd may be shut down */
    bool is_finished;

    /* owned by the thread */
    struct replay__channel channel;
    struct kinf__buffer input;
    char client_name[64];
    size_t budget;    /* bytes until the response's limit */
    bool is_answered; /* the request at hand, as far as it goes */
};

/* As replay_start(), with these exchanges in front of those of the options. */
KINF_MUST_CHECK int replay__start(const struct replay_options *options,
                                  struct replay__script take_script, struct replay **ret_replay,
                                  struct kinf_error *err);

/* The thread of a connection; ctx is the connection. */
void *replay__connection_main(void *ctx);

/* Puts a request into the list and uses up an exchange: the first that matches. NULL: none does, or
 * the server is stopping. *ret_listed: the list owns the request now. */
const struct replay__exchange *replay__admit(struct replay *replay, struct replay_request *request,
                                             bool *ret_listed);

/* The answer to the request at hand has come as far as it goes. May be called more than once. */
void replay__note_answered(struct replay__connection *connection);

/* Clears the connection's waker and looks what set it. `signal` 0: none is waited for. */
enum replay__wake_up {
    REPLAY__WAKE_UP_NOTHING,
    REPLAY__WAKE_UP_SIGNAL, /* it is taken */
    REPLAY__WAKE_UP_STOP,
};
enum replay__wake_up replay__look(struct replay__connection *connection, unsigned signal);

/* Closes the channel, which stop must not see half closed, and says that the thread is ending. */
void replay__connection_leave(struct replay__connection *connection);

#endif
