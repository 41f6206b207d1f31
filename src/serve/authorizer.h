/*
 * Who may read: bearer tokens and access, reviewed by the upstream server (`auth: delegated`).
 *
 * A question that no kept decision answers becomes an inquiry, and whoever asked is woken when it is
 * decided; who asks the same meanwhile joins it. Only the upstream's word allows: a review that
 * fails is KINF__VERDICT_FAILED and is not kept.
 *
 * Threads: any, unless a line says otherwise.
 */
#ifndef KINF_SERVE_AUTHORIZER_H
#define KINF_SERVE_AUTHORIZER_H

#include <kinformer/client.h>

#include "base/list.h"
#include "serve/review.h"

/* X(enumerator, what it means) */
#define KINF__VERDICTS(X)                                                                          \
    X(KINF__VERDICT_WAITS, "ask again after the wake callback")                                    \
    X(KINF__VERDICT_ALLOWED, "may")                                                                \
    X(KINF__VERDICT_DENIED, "is known and may not")                                                \
    X(KINF__VERDICT_UNKNOWN, "is nobody: 401")                                                     \
    X(KINF__VERDICT_THROTTLED, "too many unknown tokens, or inquiries, at once")                   \
    X(KINF__VERDICT_FAILED, "the upstream gave no answer, or there is no memory")

enum kinf__verdict {
#define X(verdict, what) verdict,
    KINF__VERDICTS(X)
#undef X
};

/* Zero is the default everywhere. */
struct kinf__authorizer_options {
    int64_t allow_ms;      /* how long "may" is kept; 30 s */
    int64_t deny_ms;       /* how long "may not" is kept; 5 s */
    size_t max_decisions;  /* of tokens, and as many of access; 4,096 */
    unsigned tokens_per_s; /* tokens nothing is known of that are asked about; 50 */
    size_t max_inquiries;  /* under way at once; 256 */
};

struct kinf__access_answer {
    enum kinf__verdict verdict;
    char user[256];   /* of KINF__VERDICT_DENIED */
    char reason[256]; /* the upstream's; "": none */
};

struct kinf__access_request {
    struct kinf_str token;
    int64_t expires_ms; /* monotonic; nothing on the token is kept beyond; INT64_MAX: unknown */
    struct kinf__attributes attributes;
};

struct kinf__inquiry;

/* Whoever asks. Zero but for the callback, which runs under the authorizer's lock. */
struct kinf__access_waiter {
    void (*wake)(void *ctx);
    void *ctx;
    /* the authorizer's */
    struct kinf__list node;
    struct kinf__inquiry *inquiry; /* NULL: none under way */
    struct kinf__access_answer answer;
};

/* Sends a review and appends the answer's body. */
typedef int kinf__review_send_cb(void *ctx, const char *target, struct kinf_str body,
                                 struct kinf__buffer *answer, struct kinf_error *err);

struct kinf__authorizer;

/* Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__authorizer_new(const struct kinf__authorizer_options *options,
                                         kinf__review_send_cb *send, void *ctx,
                                         struct kinf__authorizer **ret_authorizer,
                                         struct kinf_error *err);
/* Nobody waits any more. NULL is allowed. */
void kinf__authorizer_free(struct kinf__authorizer *authorizer);

/* Starts the thread that sends, over a connection of its own; `client` outlives it. Then `send` of
 * kinf__authorizer_new() is not used. kinf__authorizer_free() ends it. Errors: KINF_ERR_NO_MEMORY,
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

/* Decides the oldest inquiry, sending what has to be sent; returns false if there is none. One
 * thread at a time: the authorizer's own, or a test. */
bool kinf__authorizer_work(struct kinf__authorizer *authorizer, int64_t now_ms);

/* When a JSON web token says that it ends, in seconds since 1970; -1: it is none, or does not say.
 * The signature is not looked at: good for being stricter only. */
int64_t kinf__token_expiry_s(struct kinf_str token);

#endif
