/*
 * Inquiries. Neighbours: review.c writes and reads what is sent, authorizer.c decides when, and
 * keeps what came back.
 */
#include "serve/inquiry.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "rest/secret.h"

#define N_TEXTS 10

/* --- texts --- */

/* All of them, in one order. */
static void list_texts(const struct kinf__attributes *attributes, const char *texts[N_TEXTS])
{
    const char *const all[N_TEXTS] = { attributes->verb,           attributes->path,
                                       attributes->group,          attributes->version,
                                       attributes->resource,       attributes->subresource,
                                       attributes->name_space,     attributes->name,
                                       attributes->label_selector, attributes->field_selector };

    memcpy(texts, all, sizeof all);
}

static int copy_attributes(const struct kinf__attributes *from, struct kinf__attributes *to)
{
    const char *texts[N_TEXTS];
    char *copies[N_TEXTS];
    bool is_whole = true;

    list_texts(from, texts);
    for (size_t i = 0; i < N_TEXTS; i++) {
        copies[i] = strdup(texts[i]);
        is_whole = is_whole && copies[i] != NULL;
    }
    *to = (struct kinf__attributes){ copies[0], copies[1], copies[2], copies[3], copies[4],
                                     copies[5], copies[6], copies[7], copies[8], copies[9] };
    return is_whole ? 0 : KINF_ERR_NO_MEMORY;
}

/* --- questions --- */

static int ask(const char *kind, struct kinf_str who, const struct kinf__attributes *attributes,
               struct kinf__question *ret_question)
{
    struct kinf_str parts[N_TEXTS + 2] = { kinf_str_from(kind), who };
    const char *texts[N_TEXTS];

    list_texts(attributes, texts);
    for (size_t i = 0; i < N_TEXTS; i++)
        parts[i + 2] = kinf_str_from(texts[i]);
    return kinf__digest(parts, N_TEXTS + 2, ret_question->digest);
}

int kinf__question_of_token(struct kinf_str token, struct kinf__question *ret_question)
{
    const struct kinf_str parts[] = { KINF_STR("token"), token };

    return kinf__digest(parts, 2, ret_question->digest);
}

int kinf__question_of_request(const struct kinf__access_request *request,
                              struct kinf__question *ret_question)
{
    return ask("inquiry", request->token, &request->attributes, ret_question);
}

int kinf__question_of_user(const char *user, const struct kinf__attributes *attributes,
                           struct kinf__question *ret_question)
{
    return ask("access", kinf_str_from(user), attributes, ret_question);
}

/* --- inquiries --- */

struct kinf__inquiry *kinf__inquiry_new(const struct kinf__access_request *request,
                                        const struct kinf__question *question,
                                        const struct kinf__question *token_question, int64_t now_ms)
{
    struct kinf__inquiry *inquiry = calloc(1, sizeof *inquiry);

    if (inquiry == NULL)
        return NULL;
    kinf__list_init(&inquiry->waiters);
    inquiry->question = *question;
    inquiry->token_question = *token_question;
    inquiry->expires_ms = request->expires_ms;
    inquiry->asked_ms = now_ms;
    inquiry->token = strndup(request->token.bytes, request->token.len);
    if (copy_attributes(&request->attributes, &inquiry->attributes) < 0 || inquiry->token == NULL) {
        kinf__inquiry_free(inquiry);
        return NULL;
    }
    return inquiry;
}

void kinf__inquiry_free(struct kinf__inquiry *inquiry)
{
    const char *texts[N_TEXTS];

    list_texts(&inquiry->attributes, texts);
    for (size_t i = 0; i < N_TEXTS; i++)
        free((char *)(uintptr_t)texts[i]);
    kinf__secret_free(inquiry->token);
    free(inquiry);
}

struct kinf__inquiry *kinf__inquiry_find(const struct kinf__list *inquiries,
                                         const struct kinf__question *question)
{
    KINF__LIST_FOR_EACH (node, inquiries) {
        struct kinf__inquiry *inquiry = KINF__LIST_ENTRY(node, struct kinf__inquiry, node);

        if (memcmp(&inquiry->question, question, sizeof *question) == 0)
            return inquiry;
    }
    return NULL;
}

size_t kinf__inquiry_count(const struct kinf__list *inquiries,
                           const struct kinf__question *token_question)
{
    size_t n = 0;

    KINF__LIST_FOR_EACH (node, inquiries)
        n += memcmp(&KINF__LIST_ENTRY(node, struct kinf__inquiry, node)->token_question,
                    token_question, sizeof *token_question) == 0;
    return n;
}

/* --- reviews --- */

int kinf__inquiry_review_token(const struct kinf__inquiry *inquiry,
                               const struct kinf__review_sender *sender, bool *ret_yes,
                               struct kinf__buffer *user, struct kinf_error *err)
{
    KINF__AUTO_SECRET_BUFFER body = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    int failed;

    if (kinf__review_write_token(kinf_str_from(inquiry->token), &body) < 0)
        return kinf__error_no_memory(err);
    failed =
        sender->send(sender->ctx, KINF__TOKEN_REVIEW_TARGET, kinf__buffer_str(&body), &answer, err);
    return failed < 0 ? failed
                      : kinf__review_read_token(kinf__buffer_str(&answer), ret_yes, user, err);
}

int kinf__inquiry_review_access(const struct kinf__inquiry *inquiry, const char *user,
                                const struct kinf__review_sender *sender, bool *ret_yes,
                                struct kinf__buffer *reason, struct kinf_error *err)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    int failed;

    if (kinf__review_write_access(user, &inquiry->attributes, &body) < 0)
        return kinf__error_no_memory(err);
    failed = sender->send(sender->ctx, KINF__ACCESS_REVIEW_TARGET, kinf__buffer_str(&body), &answer,
                          err);
    return failed < 0 ? failed
                      : kinf__review_read_access(kinf__buffer_str(&answer), ret_yes, reason, err);
}
