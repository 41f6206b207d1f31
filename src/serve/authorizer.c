/*
 * Inquiries and the decisions that they lead to. Neighbours: review.c writes and reads what is sent,
 * decisions.c keeps what came back, access.c asks for requests.
 *
 * A decision on access is keyed by all that the upstream said of the user, never by the token: who
 * has another group is another user.
 */
#include "serve/authorizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "json/scan.h"
#include "rest/http.h"
#include "rest/secret.h"
#include "serve/decisions.h"

#define ALLOW_MS      30000
#define DENY_MS       5000
#define MAX_DECISIONS 4096
#define TOKENS_PER_S  50
#define MAX_INQUIRIES 256
#define REVIEW_MS     10000
#define MAX_ANSWER    (1u << 20)
#define N_TEXTS       10
#define MAX_CLAIMS    8192
#define CLAIMS_DEPTH  32

struct kinf__inquiry {
    /* constant */
    struct kinf__question question;
    struct kinf__question token_question;
    char *token;
    int64_t expires_ms;
    struct kinf__attributes attributes; /* owned texts */
    /* guarded by the authorizer's lock */
    struct kinf__list node;
    struct kinf__list waiters;
};

struct kinf__authorizer {
    /* constant after start */
    struct kinf__authorizer_options options;
    kinf__review_send_cb *send;
    void *send_ctx;
    bool has_thread;
    pthread_t thread;
    struct kinf__waker stop;
    struct kinf__http *http; /* the thread's */
    struct kinf__mutex lock;
    struct kinf__cond changed;
    /* guarded by lock */
    struct kinf__list inquiries; /* the first is the one under way */
    size_t n_inquiries;
    struct kinf__decisions tokens;
    struct kinf__decisions accesses;
    int64_t credit; /* thousandths of an unknown token */
    int64_t credit_ms;
    bool is_stopping;
};

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

static int ask_of_token(struct kinf_str token, struct kinf__question *question)
{
    const struct kinf_str parts[] = { KINF_STR("token"), token };

    return kinf__digest(parts, 2, question->digest);
}

/* `who`: a token, or what a TokenReview said. */
static int ask_of_access(const char *kind, struct kinf_str who,
                         const struct kinf__attributes *attributes, struct kinf__question *question)
{
    struct kinf_str parts[N_TEXTS + 2] = { kinf_str_from(kind), who };
    const char *texts[N_TEXTS];

    list_texts(attributes, texts);
    for (size_t i = 0; i < N_TEXTS; i++)
        parts[i + 2] = kinf_str_from(texts[i]);
    return kinf__digest(parts, N_TEXTS + 2, question->digest);
}

static void inquiry_free(struct kinf__inquiry *inquiry)
{
    const char *texts[N_TEXTS];

    list_texts(&inquiry->attributes, texts);
    for (size_t i = 0; i < N_TEXTS; i++)
        free((char *)(uintptr_t)texts[i]);
    kinf__secret_free(inquiry->token);
    free(inquiry);
}

static struct kinf__inquiry *inquiry_new(const struct kinf__access_request *request,
                                         const struct kinf__question *question,
                                         const struct kinf__question *token_question)
{
    struct kinf__inquiry *inquiry = calloc(1, sizeof *inquiry);

    if (inquiry == NULL)
        return NULL;
    kinf__list_init(&inquiry->waiters);
    inquiry->question = *question;
    inquiry->token_question = *token_question;
    inquiry->expires_ms = request->expires_ms;
    inquiry->token = strndup(request->token.bytes, request->token.len);
    if (copy_attributes(&request->attributes, &inquiry->attributes) < 0 || inquiry->token == NULL) {
        inquiry_free(inquiry);
        return NULL;
    }
    return inquiry;
}

/* --- verdicts --- */

static enum kinf__verdict fail(struct kinf__access_answer *answer)
{
    answer->verdict = KINF__VERDICT_FAILED;
    return answer->verdict;
}

/* What a decision on access means; `user` is what was said of the user. */
static enum kinf__verdict judge(const char *user, bool is_yes, const char *reason,
                                struct kinf__access_answer *answer)
{
    KINF__AUTO_BUFFER name = KINF__BUFFER_INIT;

    answer->verdict = is_yes ? KINF__VERDICT_ALLOWED : KINF__VERDICT_DENIED;
    if (is_yes)
        return answer->verdict;
    if (kinf__review_user_name(user, &name) < 0)
        return fail(answer);
    snprintf(answer->user, sizeof answer->user, "%.*s", (int)name.len,
             name.len != 0 ? name.bytes : "");
    snprintf(answer->reason, sizeof answer->reason, "%s", reason != NULL ? reason : "");
    return answer->verdict;
}

/* From what is kept. The lock is held. */
static enum kinf__verdict look_up(struct kinf__authorizer *authorizer,
                                  const struct kinf__question *token_question,
                                  const struct kinf__attributes *attributes, int64_t now_ms,
                                  bool *ret_is_known, struct kinf__access_answer *answer)
{
    const struct kinf__decision *who =
        kinf__decisions_find(&authorizer->tokens, token_question, now_ms);
    const struct kinf__decision *may;
    struct kinf__question question;

    answer->verdict = KINF__VERDICT_WAITS;
    *ret_is_known = who != NULL;
    if (who == NULL)
        return answer->verdict;
    if (!who->is_yes)
        return answer->verdict = KINF__VERDICT_UNKNOWN;
    if (ask_of_access("access", kinf_str_from(who->text), attributes, &question) < 0)
        return fail(answer);
    may = kinf__decisions_find(&authorizer->accesses, &question, now_ms);
    return may != NULL ? judge(who->text, may->is_yes, may->text, answer) : answer->verdict;
}

static struct kinf__inquiry *find_inquiry(const struct kinf__authorizer *authorizer,
                                          const struct kinf__question *question,
                                          const struct kinf__question *token_question,
                                          bool *ret_has_token)
{
    *ret_has_token = false;
    KINF__LIST_FOR_EACH (node, &authorizer->inquiries) {
        struct kinf__inquiry *inquiry = KINF__LIST_ENTRY(node, struct kinf__inquiry, node);

        if (memcmp(&inquiry->question, question, sizeof *question) == 0)
            return inquiry;
        if (memcmp(&inquiry->token_question, token_question, sizeof *token_question) == 0)
            *ret_has_token = true;
    }
    return NULL;
}

/* Whether one more unknown token may be asked about now. */
static bool take_credit(struct kinf__authorizer *authorizer, int64_t now_ms)
{
    int64_t most = (int64_t)authorizer->options.tokens_per_s * 1000;
    int64_t passed_ms = now_ms - authorizer->credit_ms;

    if (passed_ms >= 1000)
        authorizer->credit = most;
    else if (passed_ms > 0)
        authorizer->credit += passed_ms * authorizer->options.tokens_per_s;
    if (authorizer->credit > most)
        authorizer->credit = most;
    if (passed_ms > 0)
        authorizer->credit_ms = now_ms;
    if (authorizer->credit < 1000)
        return false;
    authorizer->credit -= 1000;
    return true;
}

static enum kinf__verdict join(struct kinf__inquiry *inquiry, struct kinf__access_waiter *waiter)
{
    waiter->inquiry = inquiry;
    kinf__list_push_back(&inquiry->waiters, &waiter->node);
    return KINF__VERDICT_WAITS;
}

/* The lock is held. */
static enum kinf__verdict inquire(struct kinf__authorizer *authorizer,
                                  const struct kinf__access_request *request,
                                  const struct kinf__question *question,
                                  const struct kinf__question *token_question, bool is_known,
                                  struct kinf__access_waiter *waiter, int64_t now_ms)
{
    bool has_token;
    struct kinf__inquiry *inquiry = find_inquiry(authorizer, question, token_question, &has_token);

    if (inquiry != NULL)
        return join(inquiry, waiter);
    if (authorizer->n_inquiries >= authorizer->options.max_inquiries ||
        (!is_known && !has_token && !take_credit(authorizer, now_ms)))
        return KINF__VERDICT_THROTTLED;
    inquiry = inquiry_new(request, question, token_question);
    if (inquiry == NULL)
        return KINF__VERDICT_FAILED;
    kinf__list_push_back(&authorizer->inquiries, &inquiry->node);
    authorizer->n_inquiries++;
    kinf__cond_signal(&authorizer->changed);
    return join(inquiry, waiter);
}

enum kinf__verdict kinf__authorizer_ask(struct kinf__authorizer *authorizer,
                                        const struct kinf__access_request *request,
                                        struct kinf__access_waiter *waiter, int64_t now_ms,
                                        struct kinf__access_answer *ret_answer)
{
    struct kinf__question question, token_question;
    bool is_known;

    memset(ret_answer, 0, sizeof *ret_answer);
    if (ask_of_token(request->token, &token_question) < 0 ||
        ask_of_access("inquiry", request->token, &request->attributes, &question) < 0)
        return fail(ret_answer);
    kinf__mutex_lock(&authorizer->lock);
    if (waiter->inquiry != NULL) {
        ret_answer->verdict = KINF__VERDICT_WAITS;
    } else if (waiter->answer.verdict != KINF__VERDICT_WAITS) {
        *ret_answer = waiter->answer;
        waiter->answer.verdict = KINF__VERDICT_WAITS;
    } else if (look_up(authorizer, &token_question, &request->attributes, now_ms, &is_known,
                       ret_answer) == KINF__VERDICT_WAITS) {
        ret_answer->verdict =
            inquire(authorizer, request, &question, &token_question, is_known, waiter, now_ms);
    }
    kinf__mutex_unlock(&authorizer->lock);
    return ret_answer->verdict;
}

void kinf__authorizer_cancel(struct kinf__authorizer *authorizer,
                             struct kinf__access_waiter *waiter)
{
    kinf__mutex_lock(&authorizer->lock);
    if (waiter->inquiry != NULL)
        kinf__list_remove(&waiter->node);
    waiter->inquiry = NULL;
    kinf__mutex_unlock(&authorizer->lock);
}

/* --- reviews --- */

/* What is to be kept of one answer. */
static int keep(struct kinf__authorizer *authorizer, struct kinf__decisions *decisions,
                const struct kinf__question *question, bool is_yes, int64_t expires_ms,
                int64_t now_ms, struct kinf__buffer *text)
{
    int64_t ms = is_yes ? authorizer->options.allow_ms : authorizer->options.deny_ms;
    int64_t until_ms = kinf__clock_add_ms(now_ms, ms);
    const char *words = kinf__buffer_cstr(text);
    int failed;

    if (words == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__mutex_lock(&authorizer->lock);
    failed = kinf__decisions_put(decisions, question, is_yes,
                                 expires_ms < until_ms ? expires_ms : until_ms, words);
    kinf__mutex_unlock(&authorizer->lock);
    return failed;
}

static int review_token(struct kinf__authorizer *authorizer, const struct kinf__inquiry *inquiry,
                        int64_t now_ms, bool *ret_yes, struct kinf__buffer *user,
                        struct kinf_error *err)
{
    KINF__AUTO_SECRET_BUFFER body = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    int failed;

    if (kinf__review_write_token(kinf_str_from(inquiry->token), &body) < 0)
        return kinf__error_no_memory(err);
    if ((failed = authorizer->send(authorizer->send_ctx, KINF__TOKEN_REVIEW_TARGET,
                                   kinf__buffer_str(&body), &answer, err)) < 0 ||
        (failed = kinf__review_read_token(kinf__buffer_str(&answer), ret_yes, user, err)) < 0)
        return failed;
    failed = keep(authorizer, &authorizer->tokens, &inquiry->token_question, *ret_yes,
                  *ret_yes ? inquiry->expires_ms : INT64_MAX, now_ms, user);
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}

/* Who it is: what is kept, or a review. */
static int find_user(struct kinf__authorizer *authorizer, const struct kinf__inquiry *inquiry,
                     int64_t now_ms, bool *ret_yes, struct kinf__buffer *user,
                     struct kinf_error *err)
{
    const struct kinf__decision *who;
    bool is_kept;
    int failed = 0;

    kinf__mutex_lock(&authorizer->lock);
    who = kinf__decisions_find(&authorizer->tokens, &inquiry->token_question, now_ms);
    is_kept = who != NULL;
    if (is_kept) {
        *ret_yes = who->is_yes;
        failed = kinf__buffer_append_str(user, kinf_str_from(who->text));
    }
    kinf__mutex_unlock(&authorizer->lock);
    if (failed < 0)
        return kinf__error_no_memory(err);
    return is_kept ? 0 : review_token(authorizer, inquiry, now_ms, ret_yes, user, err);
}

static int review_access(struct kinf__authorizer *authorizer, const struct kinf__inquiry *inquiry,
                         int64_t now_ms, const char *user, struct kinf__access_answer *answer,
                         struct kinf_error *err)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER reason = KINF__BUFFER_INIT;
    struct kinf__question question;
    bool is_yes;
    int failed;

    if (ask_of_access("access", kinf_str_from(user), &inquiry->attributes, &question) < 0 ||
        kinf__review_write_access(user, &inquiry->attributes, &body) < 0)
        return kinf__error_no_memory(err);
    if ((failed = authorizer->send(authorizer->send_ctx, KINF__ACCESS_REVIEW_TARGET,
                                   kinf__buffer_str(&body), &text, err)) < 0 ||
        (failed = kinf__review_read_access(kinf__buffer_str(&text), &is_yes, &reason, err)) < 0)
        return failed;
    if (keep(authorizer, &authorizer->accesses, &question, is_yes, INT64_MAX, now_ms, &reason) < 0)
        return kinf__error_no_memory(err);
    judge(user, is_yes, reason.bytes, answer);
    return 0;
}

static int review(struct kinf__authorizer *authorizer, const struct kinf__inquiry *inquiry,
                  int64_t now_ms, struct kinf__access_answer *answer, struct kinf_error *err)
{
    KINF__AUTO_BUFFER user = KINF__BUFFER_INIT;
    bool is_somebody, is_known;
    enum kinf__verdict verdict;
    int failed = find_user(authorizer, inquiry, now_ms, &is_somebody, &user, err);

    if (failed < 0)
        return failed;
    if (!is_somebody) {
        answer->verdict = KINF__VERDICT_UNKNOWN;
        return 0;
    }
    /* Another token of the same user may have asked the same since. */
    kinf__mutex_lock(&authorizer->lock);
    verdict = look_up(authorizer, &inquiry->token_question, &inquiry->attributes, now_ms, &is_known,
                      answer);
    kinf__mutex_unlock(&authorizer->lock);
    if (verdict != KINF__VERDICT_WAITS)
        return 0;
    if (kinf__buffer_cstr(&user) == NULL)
        return kinf__error_no_memory(err);
    return review_access(authorizer, inquiry, now_ms, user.bytes, answer, err);
}

static void finish(struct kinf__authorizer *authorizer, struct kinf__inquiry *inquiry,
                   const struct kinf__access_answer *answer)
{
    kinf__mutex_lock(&authorizer->lock);
    kinf__list_remove(&inquiry->node);
    authorizer->n_inquiries--;
    while (!kinf__list_is_empty(&inquiry->waiters)) {
        struct kinf__access_waiter *waiter =
            KINF__LIST_ENTRY(inquiry->waiters.next, struct kinf__access_waiter, node);

        kinf__list_remove(&waiter->node);
        waiter->inquiry = NULL;
        waiter->answer = *answer;
        waiter->wake(waiter->ctx);
    }
    kinf__mutex_unlock(&authorizer->lock);
    inquiry_free(inquiry);
}

bool kinf__authorizer_work(struct kinf__authorizer *authorizer, int64_t now_ms)
{
    struct kinf__access_answer answer = { .verdict = KINF__VERDICT_FAILED };
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__inquiry *inquiry = NULL;

    kinf__mutex_lock(&authorizer->lock);
    if (!kinf__list_is_empty(&authorizer->inquiries))
        inquiry = KINF__LIST_ENTRY(authorizer->inquiries.next, struct kinf__inquiry, node);
    kinf__mutex_unlock(&authorizer->lock);
    if (inquiry == NULL)
        return false;
    if (review(authorizer, inquiry, now_ms, &answer, &err) < 0) {
        answer = (struct kinf__access_answer){ .verdict = KINF__VERDICT_FAILED };
        KINF__LOG(KINF__LOG_SERVE, KINF_LOG_WARN, "review failed: %s", err.message);
    }
    finish(authorizer, inquiry, &answer);
    return true;
}

/* --- the thread --- */

static int append_answer(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct kinf__buffer *answer = ctx;

    if (len > MAX_ANSWER - answer->len)
        return kinf__error_set(err, KINF_ERR_LIMIT, "the answer to a review is too long");
    return kinf__buffer_append(answer, bytes, len) < 0 ? kinf__error_no_memory(err) : 0;
}

static int post(void *ctx, const char *target, struct kinf_str body, struct kinf__buffer *answer,
                struct kinf_error *err)
{
    const struct kinf__authorizer *authorizer = ctx;
    const struct kinf__http_request request = { .method = "POST",
                                                .target = target,
                                                .body = body,
                                                .content_type = "application/json",
                                                .total_timeout_ms = REVIEW_MS,
                                                .on_body = append_answer,
                                                .ctx = answer };

    return kinf__http_perform(authorizer->http, &request, err);
}

/* Returns false when it is time to end. */
static bool wait_for_inquiry(struct kinf__authorizer *authorizer)
{
    bool is_stopping;

    kinf__mutex_lock(&authorizer->lock);
    while (!authorizer->is_stopping && kinf__list_is_empty(&authorizer->inquiries))
        kinf__cond_wait_until(&authorizer->changed, &authorizer->lock, KINF__NEVER_MS);
    is_stopping = authorizer->is_stopping;
    kinf__mutex_unlock(&authorizer->lock);
    return !is_stopping;
}

static void *run(void *ctx)
{
    struct kinf__authorizer *authorizer = ctx;

    while (wait_for_inquiry(authorizer))
        kinf__authorizer_work(authorizer, kinf__clock_now_ms());
    return NULL;
}

int kinf__authorizer_start(struct kinf__authorizer *authorizer, struct kinf_client *client,
                           struct kinf_error *err)
{
    int failed = kinf__http_new(client, &authorizer->stop, &authorizer->http, err);

    if (failed < 0)
        return failed;
    authorizer->send = post;
    authorizer->send_ctx = authorizer;
    failed = kinf__thread_start(&authorizer->thread, "authorizer", run, authorizer, err);
    authorizer->has_thread = failed == 0;
    return failed;
}

static void set_defaults(struct kinf__authorizer_options *options)
{
    if (options->allow_ms == 0)
        options->allow_ms = ALLOW_MS;
    if (options->deny_ms == 0)
        options->deny_ms = DENY_MS;
    if (options->max_decisions == 0)
        options->max_decisions = MAX_DECISIONS;
    if (options->tokens_per_s == 0)
        options->tokens_per_s = TOKENS_PER_S;
    if (options->max_inquiries == 0)
        options->max_inquiries = MAX_INQUIRIES;
}

int kinf__authorizer_new(const struct kinf__authorizer_options *options, kinf__review_send_cb *send,
                         void *ctx, struct kinf__authorizer **ret_authorizer,
                         struct kinf_error *err)
{
    struct kinf__authorizer *authorizer = calloc(1, sizeof *authorizer);
    int failed;

    if (authorizer == NULL)
        return kinf__error_no_memory(err);
    failed = kinf__waker_init(&authorizer->stop, err);
    if (failed < 0) {
        free(authorizer);
        return failed;
    }
    authorizer->options = *options;
    set_defaults(&authorizer->options);
    authorizer->send = send;
    authorizer->send_ctx = ctx;
    authorizer->credit = (int64_t)authorizer->options.tokens_per_s * 1000;
    kinf__mutex_init(&authorizer->lock, KINF__RANK_AUTHORIZER);
    kinf__cond_init(&authorizer->changed);
    kinf__list_init(&authorizer->inquiries);
    kinf__decisions_init(&authorizer->tokens, authorizer->options.max_decisions);
    kinf__decisions_init(&authorizer->accesses, authorizer->options.max_decisions);
    *ret_authorizer = authorizer;
    return 0;
}

void kinf__authorizer_free(struct kinf__authorizer *authorizer)
{
    if (authorizer == NULL)
        return;
    kinf__mutex_lock(&authorizer->lock);
    authorizer->is_stopping = true;
    kinf__cond_signal(&authorizer->changed);
    kinf__mutex_unlock(&authorizer->lock);
    kinf__waker_set(&authorizer->stop);
    if (authorizer->has_thread)
        pthread_join(authorizer->thread, NULL);
    kinf__http_free(authorizer->http);
    while (!kinf__list_is_empty(&authorizer->inquiries)) {
        struct kinf__inquiry *inquiry =
            KINF__LIST_ENTRY(authorizer->inquiries.next, struct kinf__inquiry, node);

        kinf__list_remove(&inquiry->node);
        inquiry_free(inquiry);
    }
    kinf__decisions_release(&authorizer->tokens);
    kinf__decisions_release(&authorizer->accesses);
    kinf__cond_release(&authorizer->changed);
    kinf__mutex_release(&authorizer->lock);
    kinf__waker_release(&authorizer->stop);
    free(authorizer);
}

/* --- tokens --- */

/* base64url, without padding. Returns the length, or 0. */
static size_t decode(struct kinf_str text, char *out)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned bits = 0, n_bits = 0;
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        const char *at = memchr(alphabet, text.bytes[i], sizeof alphabet - 1);

        if (at == NULL)
            return 0;
        bits = bits << 6 | (unsigned)(at - alphabet);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[len++] = (char)(bits >> n_bits & 0xff);
        }
    }
    return len;
}

static int64_t read_expiry(struct kinf_str claims)
{
    struct kinf__json_value value;
    char digits[20];
    size_t len;

    if (kinf__json_scan_all(claims, CLAIMS_DEPTH, &len) < 0 ||
        !kinf__json_member(kinf__json_value_of(claims), KINF_STR("exp"), &value) ||
        value.type != KINF__JSON_NUMBER || value.raw.len >= 12)
        return -1;
    memcpy(digits, value.raw.bytes, value.raw.len);
    digits[value.raw.len] = '\0';
    return strspn(digits, "0123456789") == value.raw.len ? atoll(digits) : -1;
}

int64_t kinf__token_expiry_s(struct kinf_str token)
{
    const char *first = memchr(token.bytes, '.', token.len), *second;
    char claims[MAX_CLAIMS];
    struct kinf_str part, json = { claims, 0 };

    if (first == NULL)
        return -1;
    second = memchr(first + 1, '.', token.len - (size_t)(first + 1 - token.bytes));
    if (second == NULL || (size_t)(second - first) > sizeof claims)
        return -1;
    part = (struct kinf_str){ first + 1, (size_t)(second - first - 1) };
    json.len = decode(part, claims);
    return json.len != 0 ? read_expiry(json) : -1;
}
