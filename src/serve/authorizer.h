/*
 * Who may read: bearer tokens and access, reviewed by the upstream server (`auth: delegated`). Of who
 * is known by a certificate, access alone is.
 *
 * A question that no kept decision answers becomes an inquiry, and whoever asked is woken when it is
 * decided; who asks the same meanwhile joins it. Only the upstream's word allows: a review that
 * fails is KINF__VERDICT_FAILED and is not kept.
 *
 * Four inquiries are under way at once, in the order of inquiries.h. So a token whose reviews hang (for
 * 10 s each) holds up nobody else, nor do three of them, but two unknown ones the other unknown ones of
 * their address. If there are more, or the upstream answers nobody, the others wait; an inquiry that
 * has not had its turn after 20 s fails. When too many wait, some are refused. An upstream that did not
 * answer is asked every 5 s whether it is back, also when nobody comes.
 *
 * Threads: any, unless a line says otherwise.
 */
#ifndef KINF_SERVE_AUTHORIZER_H
#define KINF_SERVE_AUTHORIZER_H

#include <kinformer/client.h>

#include "base/list.h"
#include "serve/inquiries.h"

/* Zero is the default everywhere. */
struct kinf__authorizer_options {
    int64_t allow_ms; /* how long "may" is kept; 30 s */
    int64_t deny_ms;  /* how long "may not" is kept; 5 s */
    /* How long "may" stands in for an answer beyond that, as long as the upstream cannot be reached,
     * but never beyond the token's end; 0: not at all. */
    int64_t stale_ms;
    int64_t watch_ms;     /* how long a watch goes on by one decision; 10 min */
    size_t max_decisions; /* of tokens, and as many of access; 4,096 */
    /* Tokens of one address that are asked about and were nobody's, as far as known, in the last
     * 10 min; 50. */
    unsigned tokens_per_s;
    size_t max_inquiries; /* at once; 1,000, of one token a quarter of them */
};

struct kinf__authorizer_status {
    int64_t away_ms;     /* how long the upstream does not answer; 0: it does, as far as known */
    bool answers_nobody; /* what was kept from before is too old by now */
    uint64_t n_stale;    /* answers of before that stood in, in all */
};

/* Whoever asks. Zero but for the callback, which runs under the authorizer's lock. */
struct kinf__access_waiter {
    void (*wake)(void *ctx);
    void *ctx;
    /* the authorizer's */
    struct kinf__list node;
    struct kinf__inquiry *inquiry; /* NULL: none under way */
    struct kinf__access_answer answer;
};

struct kinf__authorizer;

/* Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__authorizer_new(const struct kinf__authorizer_options *options,
                                         kinf__review_send_cb *send, void *ctx,
                                         struct kinf__authorizer **ret_authorizer,
                                         struct kinf_error *err);
/* Nobody waits any more. NULL is allowed. */
void kinf__authorizer_free(struct kinf__authorizer *authorizer);

/* Starts the threads that send, each over a connection of its own; `client` outlives them. Then
 * `send` of kinf__authorizer_new() is not used. kinf__authorizer_free() ends them at once, also in
 * the middle of a review, and all that were started, should this fail. Errors: KINF_ERR_NO_MEMORY,
 * KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__authorizer_start(struct kinf__authorizer *authorizer,
                                           struct kinf_client *client, struct kinf_error *err);

/* Returns the verdict, *ret_answer with what goes with it, or KINF__VERDICT_WAITS: then ask again
 * with the same waiter after it was woken. */
enum kinf__verdict kinf__authorizer_ask(struct kinf__authorizer *authorizer,
                                        const struct kinf__access_request *request,
                                        struct kinf__access_waiter *waiter, int64_t now_ms,
                                        struct kinf__access_answer *ret_answer);
/* After this the waiter is not woken. One that does not wait is allowed. */
void kinf__authorizer_cancel(struct kinf__authorizer *authorizer,
                             struct kinf__access_waiter *waiter);
/* If it waits, it is woken, and its answer is KINF__VERDICT_FAILED: whom it is for has gone. */
void kinf__authorizer_give_up(struct kinf__authorizer *authorizer,
                              struct kinf__access_waiter *waiter);

void kinf__authorizer_status(struct kinf__authorizer *authorizer, int64_t now_ms,
                             struct kinf__authorizer_status *ret_status);

/* Decides the inquiry whose turn it is, sending what has to be sent, or asks whether an upstream that
 * did not answer is back; returns false if there is nothing to do. For tests: the authorizer's threads do it by themselves. */
bool kinf__authorizer_work(struct kinf__authorizer *authorizer, int64_t now_ms);

#endif
