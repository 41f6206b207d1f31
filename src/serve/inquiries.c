/*
 * Inquiries: room for them, and their order. Neighbours: authorizer.c has them answered.
 *
 * When too many wait, the newest unknown one of the address with the most makes room: for a known one,
 * and for one of an address that has fewer. So made-up tokens cost other addresses nothing, and their
 * own unknown ones a delay and, only when as many wait as may, a refusal.
 */
#include "serve/inquiries.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rest/secret.h"

#define TOKEN_SHARE 4 /* of the inquiries, the part that one token may have */
#define MAX_UNKNOWN 2 /* under way, for unknown tokens of one address */

/* --- one --- */

static int copy_attributes(const struct kinf__attributes *from, struct kinf__attributes *to)
{
    const char *texts[KINF__N_ATTRIBUTES];
    char *copies[KINF__N_ATTRIBUTES];
    bool is_whole = true;

    kinf__attributes_list(from, texts);
    for (size_t i = 0; i < KINF__N_ATTRIBUTES; i++) {
        copies[i] = strdup(texts[i]);
        is_whole = is_whole && copies[i] != NULL;
    }
    *to = (struct kinf__attributes){ copies[0], copies[1], copies[2], copies[3], copies[4],
                                     copies[5], copies[6], copies[7], copies[8], copies[9] };
    return is_whole ? 0 : KINF_ERR_NO_MEMORY;
}

static void inquiry_free(struct kinf__inquiry *inquiry)
{
    const char *texts[KINF__N_ATTRIBUTES];

    kinf__attributes_list(&inquiry->attributes, texts);
    for (size_t i = 0; i < KINF__N_ATTRIBUTES; i++)
        free((char *)(uintptr_t)texts[i]);
    kinf__secret_free(inquiry->token);
    free(inquiry->user);
    free(inquiry);
}

static struct kinf__inquiry *inquiry_new(const struct kinf__access_request *request,
                                         const struct kinf__question *question,
                                         const struct kinf__question *token_question,
                                         int64_t now_ms)
{
    struct kinf__inquiry *inquiry = calloc(1, sizeof *inquiry);

    if (inquiry == NULL)
        return NULL;
    kinf__list_init(&inquiry->waiters);
    inquiry->question = *question;
    inquiry->token_question = *token_question;
    inquiry->expires_ms = request->expires_ms;
    inquiry->asked_ms = now_ms;
    if (request->user != NULL)
        inquiry->user = strdup(request->user);
    else
        inquiry->token = strndup(request->token.bytes, request->token.len);
    if (copy_attributes(&request->attributes, &inquiry->attributes) < 0 ||
        (inquiry->token == NULL && inquiry->user == NULL)) {
        inquiry_free(inquiry);
        return NULL;
    }
    return inquiry;
}

static struct kinf__inquiry *find(const struct kinf__list *list,
                                  const struct kinf__question *question)
{
    KINF__LIST_FOR_EACH (node, list) {
        struct kinf__inquiry *inquiry = KINF__LIST_ENTRY(node, struct kinf__inquiry, node);

        if (memcmp(&inquiry->question, question, sizeof *question) == 0)
            return inquiry;
    }
    return NULL;
}

static size_t count(const struct kinf__list *list, const struct kinf__question *token_question)
{
    size_t n = 0;

    KINF__LIST_FOR_EACH (node, list)
        n += memcmp(&KINF__LIST_ENTRY(node, struct kinf__inquiry, node)->token_question,
                    token_question, sizeof *token_question) == 0;
    return n;
}

/* --- room --- */

/* The newest inquiry about an unknown token of the address that has the most inquiries. For another
 * unknown token that one has to go only if its address has more even so. NULL: none. */
static struct kinf__inquiry *find_ousted(struct kinf__inquiries *inquiries,
                                         const struct kinf__question *token_question,
                                         const struct kinf__payer *payer, int64_t now_ms)
{
    const struct kinf__payer *greatest = kinf__credit_greatest(&inquiries->credit);

    if (greatest->n_inquiries <= payer->n_inquiries + 1 &&
        !kinf__remembered_knows(inquiries->remembered, token_question, now_ms))
        return NULL;
    KINF__LIST_FOR_EACH_BACK (node, &inquiries->waiting) {
        struct kinf__inquiry *inquiry = KINF__LIST_ENTRY(node, struct kinf__inquiry, node);

        if (inquiry->payer == greatest &&
            !kinf__remembered_knows(inquiries->remembered, &inquiry->token_question, now_ms))
            return inquiry;
    }
    return NULL;
}

/* Whether one more may be made. */
static bool has_room(struct kinf__inquiries *inquiries, const struct kinf__question *token_question,
                     const struct kinf__payer *payer, int64_t now_ms,
                     struct kinf__inquiry **ret_ousted)
{
    size_t n_of_token =
        count(&inquiries->waiting, token_question) + count(&inquiries->under_way, token_question);

    if (n_of_token >= (inquiries->max + TOKEN_SHARE - 1) / TOKEN_SHARE)
        return false;
    if (inquiries->n_inquiries < inquiries->max)
        return true;
    *ret_ousted = find_ousted(inquiries, token_question, payer, now_ms);
    return *ret_ousted != NULL;
}

static void add(struct kinf__inquiries *inquiries, struct kinf__inquiry *inquiry,
                struct kinf__payer *payer)
{
    kinf__list_push_back(&inquiries->waiting, &inquiry->node);
    inquiry->payer = payer;
    payer->n_inquiries++;
    inquiries->n_inquiries++;
}

enum kinf__verdict kinf__inquiries_find(struct kinf__inquiries *inquiries,
                                        const struct kinf__access_request *request,
                                        const struct kinf__question *question,
                                        const struct kinf__question *token_question, int64_t now_ms,
                                        struct kinf__inquiry **ret_inquiry,
                                        struct kinf__inquiry **ret_ousted)
{
    struct kinf__payer *payer;

    *ret_ousted = NULL;
    *ret_inquiry = find(&inquiries->waiting, question);
    if (*ret_inquiry == NULL)
        *ret_inquiry = find(&inquiries->under_way, question);
    if (*ret_inquiry != NULL)
        return KINF__VERDICT_WAITS;
    payer = kinf__credit_payer(&inquiries->credit, request->address, now_ms);
    if (payer == NULL)
        return KINF__VERDICT_FAILED;
    if (!has_room(inquiries, token_question, payer, now_ms, ret_ousted))
        return KINF__VERDICT_THROTTLED;
    *ret_inquiry = inquiry_new(request, question, token_question, now_ms);
    if (*ret_inquiry == NULL)
        return KINF__VERDICT_FAILED;
    add(inquiries, *ret_inquiry, payer);
    return KINF__VERDICT_WAITS;
}

void kinf__inquiries_remove(struct kinf__inquiries *inquiries, struct kinf__inquiry *inquiry)
{
    kinf__list_remove(&inquiry->node);
    inquiry->payer->n_inquiries--;
    inquiries->n_inquiries--;
    inquiry_free(inquiry);
}

/* --- whose turn it is --- */

/* Its token is known, or it only fails. */
static bool is_free(struct kinf__inquiries *inquiries, const struct kinf__inquiry *inquiry,
                    int64_t now_ms)
{
    return now_ms - inquiry->asked_ms >= KINF__INQUIRY_PATIENCE_MS ||
           kinf__remembered_knows(inquiries->remembered, &inquiry->token_question, now_ms);
}

/* How many inquiries of an address are under way; SIZE_MAX: one is of this token. */
static size_t count_under_way(const struct kinf__inquiries *inquiries,
                              const struct kinf__inquiry *waits)
{
    size_t n = 0;

    KINF__LIST_FOR_EACH (node, &inquiries->under_way) {
        const struct kinf__inquiry *other = KINF__LIST_ENTRY(node, struct kinf__inquiry, node);

        if (memcmp(&other->token_question, &waits->token_question, sizeof waits->token_question) ==
            0)
            return SIZE_MAX;
        n += other->payer == waits->payer;
    }
    return n;
}

/* The oldest that is free, and the oldest of the address that has spent the least: whichever came
 * first. NULL: none, and *ret_ready_ms is when there may be one. */
static struct kinf__inquiry *find_next(struct kinf__inquiries *inquiries, int64_t now_ms,
                                       int64_t *ret_ready_ms)
{
    struct kinf__inquiry *next = NULL;

    *ret_ready_ms = KINF__NEVER_MS;
    KINF__LIST_FOR_EACH (node, &inquiries->waiting) {
        struct kinf__inquiry *inquiry = KINF__LIST_ENTRY(node, struct kinf__inquiry, node);
        size_t n_under_way = count_under_way(inquiries, inquiry);

        if (n_under_way == SIZE_MAX)
            continue;
        if (is_free(inquiries, inquiry, now_ms))
            return next != NULL && *ret_ready_ms <= now_ms ? next : inquiry;
        if (n_under_way < MAX_UNKNOWN &&
            (next == NULL || inquiry->payer->spent_us < next->payer->spent_us)) {
            next = inquiry;
            *ret_ready_ms = kinf__credit_ready_ms(&inquiries->credit, inquiry->payer);
        }
    }
    return *ret_ready_ms <= now_ms ? next : NULL;
}

struct kinf__inquiry *kinf__inquiries_take(struct kinf__inquiries *inquiries, int64_t now_ms,
                                           int64_t *ret_ready_ms)
{
    struct kinf__inquiry *inquiry = find_next(inquiries, now_ms, ret_ready_ms);

    if (inquiry == NULL)
        return NULL;
    if (!is_free(inquiries, inquiry, now_ms))
        kinf__credit_spend(&inquiries->credit, inquiry->payer, now_ms);
    kinf__list_remove(&inquiry->node);
    kinf__list_push_back(&inquiries->under_way, &inquiry->node);
    inquiry->is_under_way = true;
    return inquiry;
}

/* --- life --- */

void kinf__inquiries_init(struct kinf__inquiries *inquiries, struct kinf__remembered *remembered,
                          size_t max, unsigned tokens_per_s)
{
    *inquiries = (struct kinf__inquiries){ .remembered = remembered, .max = max };
    kinf__list_init(&inquiries->waiting);
    kinf__list_init(&inquiries->under_way);
    kinf__credit_init(&inquiries->credit, tokens_per_s);
}

void kinf__inquiries_release(struct kinf__inquiries *inquiries)
{
    kinf__credit_release(&inquiries->credit);
}
