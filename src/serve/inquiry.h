/*
 * A question to the upstream server that is under way: who wants to do what, and the reviews that
 * answer it.
 *
 * Owner: an authorizer. Threads: an inquiry's members as they say; the rest any.
 */
#ifndef KINF_SERVE_INQUIRY_H
#define KINF_SERVE_INQUIRY_H

#include "base/list.h"
#include "serve/credit.h"
#include "serve/decisions.h"
#include "serve/review.h"

struct kinf__access_request {
    struct kinf_str token;
    uint64_t address;   /* where it comes from: kinf__peer_address() */
    int64_t expires_ms; /* monotonic; nothing on the token is kept beyond; INT64_MAX: unknown */
    struct kinf__attributes attributes;
};

/* What decisions are kept by, and inquiries found by: the token; the token and what is wanted of it;
 * or the user, as a TokenReview described it, and what is wanted. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__question_of_token(struct kinf_str token,
                                            struct kinf__question *ret_question);
KINF_MUST_CHECK int kinf__question_of_request(const struct kinf__access_request *request,
                                              struct kinf__question *ret_question);
KINF_MUST_CHECK int kinf__question_of_user(const char *user,
                                           const struct kinf__attributes *attributes,
                                           struct kinf__question *ret_question);

struct kinf__inquiry {
    /* constant; copies */
    struct kinf__question question;
    struct kinf__question token_question;
    char *token;
    int64_t expires_ms;
    int64_t asked_ms;
    struct kinf__attributes attributes;
    /* guarded by the authorizer's lock */
    struct kinf__list node;
    struct kinf__list waiters;
    struct kinf__payer *payer; /* who counts it */
    bool is_under_way;
};

/* NULL: out of memory. */
struct kinf__inquiry *kinf__inquiry_new(const struct kinf__access_request *request,
                                        const struct kinf__question *question,
                                        const struct kinf__question *token_question,
                                        int64_t now_ms);
/* Nobody waits for it. */
void kinf__inquiry_free(struct kinf__inquiry *inquiry);

/* The one in a list that asks this, NULL: none; and how many are of a token. */
struct kinf__inquiry *kinf__inquiry_find(const struct kinf__list *inquiries,
                                         const struct kinf__question *question);
size_t kinf__inquiry_count(const struct kinf__list *inquiries,
                           const struct kinf__question *token_question);

/* Sends a review and appends the answer's body. */
typedef int kinf__review_send_cb(void *ctx, const char *target, struct kinf_str body,
                                 struct kinf__buffer *answer, struct kinf_error *err);

struct kinf__review_sender {
    kinf__review_send_cb *send;
    void *ctx;
};

/* Whose the token is, and whether that user may. What is appended is as of kinf__review_read_token()
 * and kinf__review_read_access(). Errors: theirs, and what sending fails with. */
KINF_MUST_CHECK int kinf__inquiry_review_token(const struct kinf__inquiry *inquiry,
                                               const struct kinf__review_sender *sender,
                                               bool *ret_yes, struct kinf__buffer *user,
                                               struct kinf_error *err);
KINF_MUST_CHECK int kinf__inquiry_review_access(const struct kinf__inquiry *inquiry,
                                                const char *user,
                                                const struct kinf__review_sender *sender,
                                                bool *ret_yes, struct kinf__buffer *reason,
                                                struct kinf_error *err);

#endif
