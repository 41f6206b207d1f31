/*
 * One request, from its head to its answer.
 *
 * The listener makes an exchange, steps it until it has an answer, sends that and frees it. A step
 * never blocks: one that has to wait says so, and the wake callback runs when it is time for the
 * next.
 *
 * Threads: one thread at a time per exchange; the wake callback runs on any, also under locks of this
 * folder (the server's, the authorizer's, the forwarder's): it calls nothing that takes them.
 */
#ifndef KINF_SERVE_EXCHANGE_H
#define KINF_SERVE_EXCHANGE_H

#include "base/buffer.h"
#include "serve/authorizer.h"
#include "serve/client_certificate.h"
#include "serve/refusal.h"
#include "serve/request_head.h"
#include "serve/server.h"
#include "serve/stream.h"
#include "serve/tunnel.h"

struct kinf__exchange;

enum kinf__step {
    KINF__STEP_ANSWERED = 0, /* the answer is written; negative: the refusal is */
    KINF__STEP_WAITS = 1,
};

/* Who asks, for a person; the texts are cut where they are too long. */
struct kinf__client {
    char peer[64];
    char user_agent[128];
};

/* How the exchange reaches its connection. */
struct kinf__exchange_owner {
    kinf__watch_wake_cb *wake;  /* step or read again */
    void (*cut_off)(void *ctx); /* the connection shall break */
    bool (*is_gone)(void *ctx); /* whether the peer has closed it, while nobody reads */
    void *ctx;
    struct kinf__authorizer *authorizer; /* NULL: everybody may read; outlives the exchange */
    uint64_t address;                    /* the peer's: kinf__peer_address() */
    const struct kinf__client_certificate *certificate; /* the peer's; NULL: none is taken */
    bool is_health; /* what is open to everybody, and nothing else, is answered */
};

struct kinf__answer {
    int code;   /* 101: kinf__exchange_tunnel() carries the rest */
    int breaks; /* KINF__STREAM_BROKEN, KINF__STREAM_RESET: nothing is sent; 0 */
    const char *content_type;
    struct kinf__buffer body;    /* all of it, or */
    struct kinf__stream *stream; /* what is read until it ends; both are the exchange's */
    int64_t stream_len;          /* of all that will be read; negative: not known */
    /* From the API server, with headers of its own, of which some are handed on; what is below says
     * nothing then. */
    bool is_passed;
    const struct kinf__header *headers;
    size_t n_headers;
    bool is_gzip;
    bool varies_by_encoding;      /* Vary: Accept-Encoding */
    bool is_public;               /* of discovery: Cache-Control: public, Vary: Accept */
    bool varies_by_accept;        /* Vary: Accept */
    char policy[320];             /* of a page: Content-Security-Policy; "": none */
    char etag[40];                /* "": none */
    struct kinf__buffer warnings; /* the values of Warning headers, each with its NUL */
    unsigned retry_after_s;       /* 0: none */
    int64_t staleness_ms; /* since the last contact: so long it may be behind; negative: none */
};

/* Adds a Warning; without memory there is none. */
KINF_PRINTF(2, 3) void kinf__answer_warn(struct kinf__answer *answer, const char *fmt, ...);

/* `owner` and `head` are copied; what they point to must outlive the exchange. `peer` says who asks,
 * for a person ("127.0.0.1:4711", "[::1]:4711", "unix uid=0 pid=12"; NULL: unknown). NULL: out of
 * memory. */
struct kinf__exchange *kinf__exchange_new(struct kinf__server *server,
                                          const struct kinf__exchange_owner *owner,
                                          const struct kinf__request_head *head, const char *peer);
/* After this no wake callback runs. NULL is allowed. */
void kinf__exchange_free(struct kinf__exchange *exchange);

/* Returns the answer, valid until the exchange is freed, or NULL: step again after the wake
 * callback. */
const struct kinf__answer *kinf__exchange_step(struct kinf__exchange *exchange);

/* From now on it is seen when the peer at `fd` hangs up: a watch ends, and what was passed on is given
 * up. Once; `fd` stays open until the exchange is freed. */
void kinf__exchange_await_hang_up(struct kinf__exchange *exchange, int fd);

/* Of an answer of 101: what carries it and the other protocol, kinf__tunnel_new(). */
struct kinf__tunnel *kinf__exchange_tunnel(struct kinf__exchange *exchange,
                                           struct kinf__buffer *head, void (*on_over)(void *ctx),
                                           void *ctx);

/* Between the first step and the answer: a piece of the request's body. Returns how much of it was
 * taken; 0: none now, the wake callback will run. */
size_t kinf__exchange_take_body(struct kinf__exchange *exchange, const char *bytes, size_t len);
/* There is no more of it. May be called again. */
void kinf__exchange_end_body(struct kinf__exchange *exchange);

#endif
