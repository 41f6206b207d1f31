/*
 * One request, from its head to its answer.
 *
 * The listener makes an exchange, steps it until it has an answer, sends that and frees it. A step
 * never blocks: one that has to wait says so, and the wake callback runs when it is time for the
 * next.
 *
 * Threads: one thread at a time per exchange; the wake callback runs on any, with no lock of this
 * folder held but the server's.
 */
#ifndef KINF_SERVE_EXCHANGE_H
#define KINF_SERVE_EXCHANGE_H

#include "base/buffer.h"
#include "serve/authorizer.h"
#include "serve/refusal.h"
#include "serve/server.h"
#include "serve/stream.h"

struct kinf__exchange;

struct kinf__exchange_head {
    const char *method;
    struct kinf_str target; /* as it came */
    /* Header values; NULL: none. Constant as long as the exchange lives. */
    const char *accept;
    const char *accept_encoding;
    const char *if_none_match;
    const char *authorization;
    bool has_many_authorizations;
    bool is_impersonated; /* an Impersonate- header is there */
};

/* How the exchange reaches its connection. */
struct kinf__exchange_owner {
    kinf__watch_wake_cb *wake;  /* step or read again */
    void (*cut_off)(void *ctx); /* the connection shall break */
    bool (*is_gone)(void *ctx); /* whether the peer has closed it, while nobody reads */
    void *ctx;
    struct kinf__authorizer *authorizer; /* NULL: everybody may read; outlives the exchange */
};

struct kinf__answer {
    int code;
    const char *content_type;
    struct kinf__buffer body;    /* all of it, or */
    struct kinf__stream *stream; /* what is read until it ends; both are the exchange's */
    bool is_gzip;
    bool varies_by_encoding; /* Vary: Accept-Encoding */
    bool is_public;          /* of discovery: Cache-Control: public, Vary: Accept */
    char etag[40];           /* "": none */
    char warning[256];       /* the text of a Warning; "": none */
    unsigned retry_after_s;  /* 0: none */
    int64_t staleness_ms;    /* since the last proof that the cache is fresh; negative: none */
};

/* `owner` and what it points to must outlive the exchange. NULL: out of memory. */
struct kinf__exchange *kinf__exchange_new(struct kinf__server *server,
                                          const struct kinf__exchange_owner *owner);
/* After this no wake callback runs. NULL is allowed. */
void kinf__exchange_free(struct kinf__exchange *exchange);

/* Returns the answer, valid until the exchange is freed, or NULL: step again after the wake
 * callback. `head` is needed until there is an answer, and the same each time. */
const struct kinf__answer *kinf__exchange_step(struct kinf__exchange *exchange,
                                               const struct kinf__exchange_head *head);

#endif
