/*
 * Questions to the upstream server that wait or are under way, and whose turn it is.
 *
 * Of one token one is under way at a time, of unknown tokens of one address two. Those whose token is
 * known go first; the others cost credit (credit.h), and the address that has spent the least is next.
 *
 * Threads: under the authorizer's lock; what of an inquiry is constant, any.
 */
#ifndef KINF_SERVE_INQUIRIES_H
#define KINF_SERVE_INQUIRIES_H

#include "base/list.h"
#include "serve/credit.h"
#include "serve/remembered.h"

/* Whoever has waited for so long has waited long enough: the upstream does not keep up. */
#define KINF__INQUIRY_PATIENCE_MS 20000

struct kinf__access_request {
    struct kinf_str token;
    /* Who it is, if that is known without a token, as kinf__review_read_token() says it; NULL: not. */
    char *user;
    uint64_t address;   /* where it comes from: kinf__peer_address() */
    int64_t expires_ms; /* monotonic; nothing on it is kept beyond; INT64_MAX: unknown */
    struct kinf__attributes attributes;
};

struct kinf__inquiry {
    /* constant; copies */
    struct kinf__question question;
    struct kinf__question token_question;
    char *token;
    char *user; /* as in the request */
    int64_t expires_ms;
    int64_t asked_ms;
    struct kinf__attributes attributes;
    /* guarded by the authorizer's lock */
    struct kinf__list node;
    struct kinf__list waiters;
    struct kinf__payer *payer; /* who counts it */
    bool is_under_way;
};

struct kinf__inquiries {
    struct kinf__remembered *remembered; /* borrowed: whose token is known */
    struct kinf__list waiting;           /* the oldest first */
    struct kinf__list under_way;
    size_t n_inquiries;
    size_t max; /* at once, of one token a quarter of them */
    struct kinf__credit credit;
};

void kinf__inquiries_init(struct kinf__inquiries *inquiries, struct kinf__remembered *remembered,
                          size_t max, unsigned tokens_per_s);
/* There are none left. */
void kinf__inquiries_release(struct kinf__inquiries *inquiries);

/* Finds the one that asks this already, or makes one. KINF__VERDICT_WAITS: *ret_inquiry is written. If
 * another one has to make room for it, it is *ret_ousted: for kinf__inquiries_remove(); else NULL. */
enum kinf__verdict kinf__inquiries_find(struct kinf__inquiries *inquiries,
                                        const struct kinf__access_request *request,
                                        const struct kinf__question *question,
                                        const struct kinf__question *token_question, int64_t now_ms,
                                        struct kinf__inquiry **ret_inquiry,
                                        struct kinf__inquiry **ret_ousted);
/* The one whose turn it is, which is under way then; NULL: none, and *ret_ready_ms is when there may
 * be one (KINF__NEVER_MS: when something else changes). */
struct kinf__inquiry *kinf__inquiries_take(struct kinf__inquiries *inquiries, int64_t now_ms,
                                           int64_t *ret_ready_ms);
/* Frees it. Nobody waits for it. */
void kinf__inquiries_remove(struct kinf__inquiries *inquiries, struct kinf__inquiry *inquiry);

#endif
