/*
 * Who may read, with an upstream made of a few rules and time as a parameter.
 */
#include "serve/authorizer.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/test.h"

/* The upstream: a token "u-..." is a user of that name, who may what `allowed` is in the body of. */
struct upstream {
    struct kinf__authorizer *authorizer;
    const char *allowed;
    bool is_dead;
    bool is_garbage;
    const char *slow;     /* what a review has in its body that takes too long; NULL: none does */
    int64_t meanwhile_ms; /* when it does, other work is done; 0: none is */
    int n_token_reviews;
    int n_access_reviews;
    int n_woken;
};

static int answer_token(struct upstream *upstream, struct kinf_str body,
                        struct kinf__buffer *answer)
{
    const char *token = memmem(body.bytes, body.len, "\"u-", 3);
    const char *end = token != NULL ? rawmemchr(token + 1, '"') : NULL;

    upstream->n_token_reviews++;
    if (token == NULL)
        return kinf__buffer_printf(answer, "{\"kind\":\"TokenReview\",\"status\":{}}");
    return kinf__buffer_printf(answer,
                               "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,"
                               "\"user\":{\"username\":\"%.*s\"}}}",
                               (int)(end - token - 1), token + 1);
}

static int send_review(void *ctx, const char *target, struct kinf_str body,
                       struct kinf__buffer *answer, struct kinf_error *err)
{
    struct upstream *upstream = ctx;
    bool may;

    (void)err;
    if (upstream->slow != NULL &&
        memmem(body.bytes, body.len, upstream->slow, strlen(upstream->slow)) != NULL) {
        if (upstream->meanwhile_ms != 0)
            assert_true(kinf__authorizer_work(upstream->authorizer, upstream->meanwhile_ms));
        return KINF_ERR_TIMEOUT;
    }
    if (upstream->is_dead)
        return KINF_ERR_NETWORK;
    if (upstream->is_garbage)
        return kinf__buffer_printf(answer, "{\"allowed\":true}");
    if (strcmp(target, KINF__TOKEN_REVIEW_TARGET) == 0)
        return answer_token(upstream, body, answer);
    upstream->n_access_reviews++;
    may = memmem(body.bytes, body.len, upstream->allowed, strlen(upstream->allowed)) != NULL;
    return kinf__buffer_printf(answer,
                               "{\"kind\":\"SubjectAccessReview\",\"status\":{\"allowed\":%s,"
                               "\"reason\":\"because\"}}",
                               may ? "true" : "false");
}

static void note_wake(void *ctx)
{
    ((struct upstream *)ctx)->n_woken++;
}

static struct kinf__access_waiter waiter_of(struct upstream *upstream)
{
    return (struct kinf__access_waiter){ .wake = note_wake, .ctx = upstream };
}

static void begin(struct upstream *upstream, const struct kinf__authorizer_options *options)
{
    struct kinf_error err = KINF_ERROR_INIT;

    *upstream = (struct upstream){ .allowed = "\"u-reader\"" };
    assert_int_equal(
        kinf__authorizer_new(options, send_review, upstream, &upstream->authorizer, &err), 0);
}

static struct kinf__access_request request_of(const char *token, const char *verb, const char *name)
{
    return (struct kinf__access_request){
        .token = kinf_str_from(token),
        .expires_ms = INT64_MAX,
        .attributes = { verb, "", "", "v1", "pods", "", "default", name, "", "" },
    };
}

static enum kinf__verdict ask_once(struct upstream *upstream,
                                   const struct kinf__access_request *request,
                                   struct kinf__access_waiter *waiter, int64_t now_ms,
                                   struct kinf__access_answer *answer)
{
    return kinf__authorizer_ask(upstream->authorizer, request, waiter, now_ms, answer);
}

/* To the end, whatever has to be sent; still waiting, it leaves. */
static enum kinf__verdict ask_whole(struct upstream *upstream,
                                    const struct kinf__access_request *request, int64_t now_ms)
{
    struct kinf__access_waiter waiter = waiter_of(upstream);
    struct kinf__access_answer answer;

    if (ask_once(upstream, request, &waiter, now_ms, &answer) == KINF__VERDICT_WAITS &&
        kinf__authorizer_work(upstream->authorizer, now_ms)) {
        assert_false(kinf__authorizer_work(upstream->authorizer, now_ms));
        return ask_once(upstream, request, &waiter, now_ms, &answer);
    }
    kinf__authorizer_cancel(upstream->authorizer, &waiter);
    return answer.verdict;
}

static enum kinf__verdict ask(struct upstream *upstream, const char *token, const char *verb,
                              int64_t now_ms)
{
    const struct kinf__access_request request = request_of(token, verb, "");

    return ask_whole(upstream, &request, now_ms);
}

static void allowed_is_kept_for_30_s_and_denied_for_5(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    assert_int_equal(ask(&upstream, "u-reader", "list", 1000), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask(&upstream, "u-other", "list", 1000), KINF__VERDICT_DENIED);
    assert_int_equal(ask(&upstream, "x", "list", 1000), KINF__VERDICT_UNKNOWN);
    upstream.is_dead = true;
    assert_int_equal(ask(&upstream, "u-reader", "list", 30999), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask(&upstream, "u-other", "list", 5999), KINF__VERDICT_DENIED);
    assert_int_equal(ask(&upstream, "x", "list", 5999), KINF__VERDICT_UNKNOWN);
    assert_int_equal(ask(&upstream, "u-other", "list", 6000), KINF__VERDICT_FAILED);
    assert_int_equal(ask(&upstream, "x", "list", 6000), KINF__VERDICT_FAILED);
    assert_int_equal(ask(&upstream, "u-reader", "list", 31000), KINF__VERDICT_FAILED);
    kinf__authorizer_free(upstream.authorizer);
}

/* Of a certificate, say. What is asked of the upstream is what that user may. */
static void who_is_known_needs_no_review_of_a_token(void **state)
{
    static char user[] = "\"user\":\"jane\",\"groups\":[\"a\"]";
    const struct kinf__authorizer_options options = { .stale_ms = 1000000 };
    struct kinf__access_request request = request_of("", "list", "");
    struct kinf__access_waiter waiter;
    struct kinf__access_answer answer;
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    upstream.allowed = "\"spec\":{\"user\":\"jane\",\"groups\":[\"a\"],\"resource";
    waiter = waiter_of(&upstream);
    /* A token that reads like it is none the less a token. */
    assert_int_equal(ask(&upstream, user, "list", 1000), KINF__VERDICT_UNKNOWN);
    assert_int_equal(upstream.n_token_reviews, 1);
    request.user = user;
    request.expires_ms = 100000;
    assert_int_equal(ask_whole(&upstream, &request, 1000), KINF__VERDICT_ALLOWED);
    request.attributes.verb = "watch";
    /* Its turn comes when what is kept has gone. */
    assert_int_equal(ask_once(&upstream, &request, &waiter, 2000, &answer), KINF__VERDICT_WAITS);
    assert_true(kinf__authorizer_work(upstream.authorizer, 35000));
    assert_int_equal(ask_once(&upstream, &request, &waiter, 35000, &answer), KINF__VERDICT_FAILED);
    assert_int_equal(ask_whole(&upstream, &request, 35000), KINF__VERDICT_ALLOWED);
    assert_int_equal(upstream.n_token_reviews, 1);
    assert_int_equal(ask(&upstream, user, "list", 36000), KINF__VERDICT_UNKNOWN);
    assert_int_equal(upstream.n_token_reviews, 2);
    upstream.is_dead = true;
    assert_int_equal(ask_whole(&upstream, &request, 70000), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask_once(&upstream, &request, &waiter, 71000, &answer), KINF__VERDICT_ALLOWED);
    assert_string_equal(answer.user, "jane");
    assert_int_equal(answer.until_ms, 100000);
    assert_true(kinf__authorizer_work(upstream.authorizer, 75000));
    kinf__authorizer_free(upstream.authorizer);
}

static struct kinf__authorizer_status status_at(struct upstream *upstream, int64_t now_ms)
{
    struct kinf__authorizer_status status;

    kinf__authorizer_status(upstream->authorizer, now_ms, &status);
    return status;
}

/* authStaleFor. */
static void a_yes_stands_in_while_nobody_can_be_asked(void **state)
{
    const struct kinf__authorizer_options options = { .stale_ms = 100000 };
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    assert_int_equal(ask(&upstream, "u-reader", "list", 1000), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask(&upstream, "u-other", "list", 1000), KINF__VERDICT_DENIED);
    upstream.is_dead = true;
    /* The first one to ask again finds that nobody is there. */
    assert_int_equal(ask(&upstream, "u-reader", "list", 31000), KINF__VERDICT_ALLOWED);
    assert_int_equal(status_at(&upstream, 31000).n_stale, 1);
    assert_int_equal(status_at(&upstream, 33000).away_ms, 2000);
    /* No other question, nobody else, and not for longer. */
    assert_int_equal(ask(&upstream, "u-reader", "get", 32000), KINF__VERDICT_FAILED);
    assert_int_equal(ask(&upstream, "u-other", "list", 33000), KINF__VERDICT_FAILED);
    assert_int_equal(ask(&upstream, "u-new", "list", 34000), KINF__VERDICT_FAILED);
    assert_int_equal(ask(&upstream, "u-reader", "list", 130999), KINF__VERDICT_ALLOWED);
    assert_true(kinf__authorizer_work(upstream.authorizer, 130999));
    assert_false(status_at(&upstream, 130999).answers_nobody);
    assert_int_equal(ask(&upstream, "u-reader", "list", 131000), KINF__VERDICT_FAILED);
    assert_true(status_at(&upstream, 161000).answers_nobody);
    kinf__authorizer_free(upstream.authorizer);
}

/* The upstream asks somebody else about it, say, who hangs. */
static void a_review_that_takes_too_long_says_little_of_others(void **state)
{
    const struct kinf__authorizer_options options = { .stale_ms = 100000 };
    const struct kinf__access_request slow = request_of("u-slow", "list", ""),
                                      other = request_of("u-other", "list", "");
    struct kinf__access_answer answer;
    struct kinf__access_waiter waiter, other_waiter;
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    waiter = waiter_of(&upstream);
    other_waiter = waiter_of(&upstream);
    assert_int_equal(ask(&upstream, "u-reader", "list", 1000), KINF__VERDICT_ALLOWED);
    upstream.allowed = "nobody";
    upstream.slow = "\"u-slow\"";
    upstream.meanwhile_ms = 40000;
    /* Another is answered meanwhile: it is there. */
    assert_int_equal(ask_once(&upstream, &slow, &waiter, 40000, &answer), KINF__VERDICT_WAITS);
    assert_int_equal(ask_once(&upstream, &other, &other_waiter, 40000, &answer),
                     KINF__VERDICT_WAITS);
    assert_true(kinf__authorizer_work(upstream.authorizer, 40000));
    assert_int_equal(ask_once(&upstream, &other, &other_waiter, 40000, &answer),
                     KINF__VERDICT_DENIED);
    assert_int_equal(ask_once(&upstream, &slow, &waiter, 40000, &answer), KINF__VERDICT_FAILED);
    assert_int_equal(status_at(&upstream, 41000).away_ms, 0);
    assert_int_equal(ask(&upstream, "u-reader", "list", 41000), KINF__VERDICT_DENIED);
    /* Nobody else asks: that is asked at once. */
    upstream.meanwhile_ms = 0;
    assert_int_equal(ask_once(&upstream, &slow, &waiter, 50000, &answer), KINF__VERDICT_WAITS);
    assert_true(kinf__authorizer_work(upstream.authorizer, 50000));
    assert_true(kinf__authorizer_work(upstream.authorizer, 50000));
    assert_int_equal(status_at(&upstream, 50001).away_ms, 0);
    assert_false(kinf__authorizer_work(upstream.authorizer, 50000));
    kinf__authorizer_free(upstream.authorizer);
}

static void who_is_back_is_asked_and_has_the_word(void **state)
{
    const struct kinf__authorizer_options options = { .stale_ms = 100000 };
    const struct kinf__access_request request = request_of("u-reader", "list", "");
    struct kinf__access_answer answer;
    struct upstream upstream;
    struct kinf__access_waiter waiter = waiter_of(&upstream);

    (void)state;
    begin(&upstream, &options);
    assert_int_equal(ask(&upstream, "u-reader", "list", 1000), KINF__VERDICT_ALLOWED);
    upstream.is_dead = true;
    assert_int_equal(ask(&upstream, "u-reader", "list", 31000), KINF__VERDICT_ALLOWED);
    upstream.is_dead = false;
    upstream.allowed = "\"nobody\"";
    /* At once by the old answer; what is asked beside it is answered for the next one. */
    assert_int_equal(ask_once(&upstream, &request, &waiter, 40000, &answer), KINF__VERDICT_ALLOWED);
    assert_true(kinf__authorizer_work(upstream.authorizer, 40000));
    assert_false(kinf__authorizer_work(upstream.authorizer, 40000));
    assert_int_equal(status_at(&upstream, 40000).away_ms, 0);
    assert_int_equal(ask(&upstream, "u-reader", "list", 40001), KINF__VERDICT_DENIED);
    kinf__authorizer_free(upstream.authorizer);
}

/* /readyz says that nobody can be answered, and so nobody comes. */
static void it_shows_that_the_upstream_is_back_when_nobody_asks(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    upstream.is_dead = true;
    assert_int_equal(ask(&upstream, "u-reader", "list", 1000), KINF__VERDICT_FAILED);
    assert_false(kinf__authorizer_work(upstream.authorizer, 5999));
    assert_true(kinf__authorizer_work(upstream.authorizer, 6000));
    assert_true(status_at(&upstream, 40000).answers_nobody);
    upstream.is_dead = false;
    assert_true(kinf__authorizer_work(upstream.authorizer, 40000));
    assert_false(status_at(&upstream, 40000).answers_nobody);
    assert_int_equal(status_at(&upstream, 40000).away_ms, 0);
    assert_false(kinf__authorizer_work(upstream.authorizer, 80000));
    kinf__authorizer_free(upstream.authorizer);
}

static void nothing_stands_in_beyond_the_tokens_end(void **state)
{
    const struct kinf__authorizer_options options = { .stale_ms = 1000000 };
    struct kinf__access_request request = request_of("u-reader", "watch", "");
    struct kinf__access_answer answer;
    struct upstream upstream;
    struct kinf__access_waiter waiter = waiter_of(&upstream);

    (void)state;
    begin(&upstream, &options);
    request.expires_ms = 60000;
    assert_int_equal(ask_whole(&upstream, &request, 1000), KINF__VERDICT_ALLOWED);
    upstream.is_dead = true;
    assert_int_equal(ask_whole(&upstream, &request, 40000), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask_once(&upstream, &request, &waiter, 50000, &answer), KINF__VERDICT_ALLOWED);
    assert_int_equal(answer.until_ms, 60000);
    assert_true(kinf__authorizer_work(upstream.authorizer, 50000));
    assert_int_equal(ask_whole(&upstream, &request, 60000), KINF__VERDICT_FAILED);
    kinf__authorizer_free(upstream.authorizer);
}

static void a_revoked_right_ends_with_its_decision(void **state)
{
    const struct kinf__authorizer_options options = { .allow_ms = 100 };
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    assert_int_equal(ask(&upstream, "u-reader", "list", 0), KINF__VERDICT_ALLOWED);
    upstream.allowed = "\"nobody\"";
    assert_int_equal(ask(&upstream, "u-reader", "list", 99), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask(&upstream, "u-reader", "list", 100), KINF__VERDICT_DENIED);
    kinf__authorizer_free(upstream.authorizer);
}

static void a_decision_is_for_its_user_verb_and_name_alone(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    struct kinf__access_request request = request_of("u-reader", "list", "a");
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    upstream.allowed = "\"verb\":\"list\"";
    assert_int_equal(ask(&upstream, "u-reader", "list", 0), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask(&upstream, "u-reader", "watch", 0), KINF__VERDICT_DENIED);
    upstream.allowed = "\"u-reader\"";
    assert_int_equal(ask(&upstream, "u-other", "list", 0), KINF__VERDICT_DENIED);
    assert_int_equal(ask_whole(&upstream, &request, 0), KINF__VERDICT_ALLOWED);
    request.attributes.name_space = "";
    assert_int_equal(ask_whole(&upstream, &request, 0), KINF__VERDICT_ALLOWED);
    assert_int_equal(upstream.n_token_reviews, 2);
    assert_int_equal(upstream.n_access_reviews, 5);
    kinf__authorizer_free(upstream.authorizer);
}

static void the_same_question_at_once_is_asked_once(void **state)
{
    const struct kinf__authorizer_options options = { .tokens_per_s = 1 };
    const struct kinf__access_request request = request_of("u-reader", "list", "");
    struct kinf__access_waiter first, second;
    struct kinf__access_answer answer;
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    first = second = waiter_of(&upstream);
    assert_int_equal(ask_once(&upstream, &request, &first, 0, &answer), KINF__VERDICT_WAITS);
    assert_int_equal(ask_once(&upstream, &request, &second, 0, &answer), KINF__VERDICT_WAITS);
    assert_int_equal(ask_once(&upstream, &request, &second, 0, &answer), KINF__VERDICT_WAITS);
    assert_true(kinf__authorizer_work(upstream.authorizer, 0));
    assert_false(kinf__authorizer_work(upstream.authorizer, 0));
    assert_int_equal(upstream.n_woken, 2);
    assert_int_equal(ask_once(&upstream, &request, &first, 0, &answer), KINF__VERDICT_ALLOWED);
    assert_string_equal(answer.user, "u-reader");
    assert_int_equal(ask_once(&upstream, &request, &second, 0, &answer), KINF__VERDICT_ALLOWED);
    assert_int_equal(upstream.n_token_reviews, 1);
    assert_int_equal(upstream.n_access_reviews, 1);
    kinf__authorizer_free(upstream.authorizer);
}

static void for_who_has_gone_nothing_is_asked_and_nobody_woken(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    const struct kinf__access_request request = request_of("u-reader", "list", "");
    struct kinf__access_waiter waiter;
    struct kinf__access_answer answer;
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    waiter = waiter_of(&upstream);
    assert_int_equal(ask_once(&upstream, &request, &waiter, 0, &answer), KINF__VERDICT_WAITS);
    kinf__authorizer_cancel(upstream.authorizer, &waiter);
    kinf__authorizer_cancel(upstream.authorizer, &waiter);
    assert_false(kinf__authorizer_work(upstream.authorizer, 0));
    assert_int_equal(upstream.n_woken, 0);
    assert_int_equal(upstream.n_token_reviews, 0);
    kinf__authorizer_free(upstream.authorizer);
}

static void who_is_given_up_is_woken_and_has_a_failure(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    const struct kinf__access_request request = request_of("u-reader", "list", "");
    struct kinf__access_waiter waiter;
    struct kinf__access_answer answer;
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    waiter = waiter_of(&upstream);
    kinf__authorizer_give_up(upstream.authorizer, &waiter);
    assert_int_equal(upstream.n_woken, 0);
    assert_int_equal(ask_once(&upstream, &request, &waiter, 0, &answer), KINF__VERDICT_WAITS);
    kinf__authorizer_give_up(upstream.authorizer, &waiter);
    kinf__authorizer_give_up(upstream.authorizer, &waiter);
    assert_int_equal(upstream.n_woken, 1);
    assert_false(kinf__authorizer_work(upstream.authorizer, 0));
    assert_int_equal(ask_once(&upstream, &request, &waiter, 0, &answer), KINF__VERDICT_FAILED);
    kinf__authorizer_free(upstream.authorizer);
}

static void unknown_tokens_beyond_the_rate_wait(void **state)
{
    const struct kinf__authorizer_options options = { .tokens_per_s = 2 };
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    assert_int_equal(ask(&upstream, "u-reader", "list", 0), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask(&upstream, "a", "list", 0), KINF__VERDICT_UNKNOWN);
    assert_int_equal(ask(&upstream, "b", "list", 0), KINF__VERDICT_WAITS);
    assert_int_equal(ask(&upstream, "b", "list", 499), KINF__VERDICT_WAITS);
    assert_int_equal(ask(&upstream, "u-reader", "watch", 499), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask(&upstream, "b", "list", 500), KINF__VERDICT_UNKNOWN);
    assert_int_equal(ask(&upstream, "c", "list", 500), KINF__VERDICT_WAITS);
    assert_int_equal(upstream.n_token_reviews, 3);
    kinf__authorizer_free(upstream.authorizer);
}

static void strangers_do_not_keep_out_whose_token_is_somebodys(void **state)
{
    const struct kinf__authorizer_options options = { .tokens_per_s = 2, .allow_ms = 100 };
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    assert_int_equal(ask(&upstream, "u-reader", "list", 0), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask(&upstream, "a", "list", 0), KINF__VERDICT_UNKNOWN);
    assert_int_equal(ask(&upstream, "b", "list", 100), KINF__VERDICT_WAITS);
    assert_int_equal(ask(&upstream, "u-reader", "list", 100), KINF__VERDICT_ALLOWED);
    assert_int_equal(upstream.n_token_reviews, 3);
    /* After ten minutes it is a stranger, too. */
    assert_int_equal(ask(&upstream, "c", "list", 600300), KINF__VERDICT_UNKNOWN);
    assert_int_equal(ask(&upstream, "d", "list", 600300), KINF__VERDICT_UNKNOWN);
    assert_int_equal(ask(&upstream, "u-reader", "list", 600300), KINF__VERDICT_WAITS);
    kinf__authorizer_free(upstream.authorizer);
}

/* One of N requests that wait at once, each with a token and a waiter of its own. */
struct caller {
    char token[16];
    struct kinf__access_waiter waiter;
    struct kinf__access_request request;
};

static enum kinf__verdict call_again(struct upstream *upstream, struct caller *caller,
                                     int64_t now_ms)
{
    struct kinf__access_answer answer;

    return ask_once(upstream, &caller->request, &caller->waiter, now_ms, &answer);
}

static enum kinf__verdict call(struct upstream *upstream, struct caller *caller, uint64_t address,
                               const char *prefix, unsigned i)
{
    snprintf(caller->token, sizeof caller->token, "%s%u", prefix, i);
    caller->waiter = waiter_of(upstream);
    caller->request = request_of(caller->token, "list", "");
    caller->request.address = address;
    return call_again(upstream, caller, 0);
}

static void leave(struct upstream *upstream, struct caller *callers, size_t n_callers)
{
    for (size_t i = 0; i < n_callers; i++)
        kinf__authorizer_cancel(upstream->authorizer, &callers[i].waiter);
}

static void a_flood_from_one_address_holds_up_no_other(void **state)
{
    const struct kinf__authorizer_options options = { .tokens_per_s = 2 };
    struct caller flood[20], good[3];
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    upstream.allowed = "\"u-";
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(call(&upstream, &flood[i], 1, "x", i), KINF__VERDICT_WAITS);
    assert_true(kinf__authorizer_work(upstream.authorizer, 0));
    assert_true(kinf__authorizer_work(upstream.authorizer, 0));
    assert_false(kinf__authorizer_work(upstream.authorizer, 0));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(call(&upstream, &good[i], 2, "u-", i), KINF__VERDICT_WAITS);
        assert_true(kinf__authorizer_work(upstream.authorizer, 0));
        assert_int_equal(call_again(&upstream, &good[i], 0), KINF__VERDICT_ALLOWED);
    }
    /* At the flood's own address it comes behind, and is not refused. */
    assert_int_equal(call(&upstream, &good[2], 1, "u-", 2), KINF__VERDICT_WAITS);
    for (int64_t now_ms = 500; now_ms <= 9000; now_ms += 500)
        assert_true(kinf__authorizer_work(upstream.authorizer, now_ms));
    assert_int_equal(call_again(&upstream, &good[2], 9000), KINF__VERDICT_WAITS);
    assert_false(kinf__authorizer_work(upstream.authorizer, 9499));
    assert_true(kinf__authorizer_work(upstream.authorizer, 9500));
    assert_int_equal(call_again(&upstream, &good[2], 9500), KINF__VERDICT_ALLOWED);
    leave(&upstream, flood, 20);
    kinf__authorizer_free(upstream.authorizer);
}

static void of_many_addresses_the_one_that_asked_least_goes_first(void **state)
{
    const struct kinf__authorizer_options options = { .tokens_per_s = 2 };
    struct caller callers[10];
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    /* All of four have asked what all together may. */
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(call(&upstream, &callers[i], i / 2, "x", i), KINF__VERDICT_WAITS);
        assert_true(kinf__authorizer_work(upstream.authorizer, 0));
    }
    assert_int_equal(call(&upstream, &callers[8], 0, "x", 8), KINF__VERDICT_WAITS);
    assert_int_equal(call(&upstream, &callers[9], 9, "x", 9), KINF__VERDICT_WAITS);
    assert_false(kinf__authorizer_work(upstream.authorizer, 124));
    assert_true(kinf__authorizer_work(upstream.authorizer, 500));
    assert_int_equal(call_again(&upstream, &callers[8], 500), KINF__VERDICT_WAITS);
    assert_int_equal(call_again(&upstream, &callers[9], 500), KINF__VERDICT_UNKNOWN);
    leave(&upstream, callers, 10);
    kinf__authorizer_free(upstream.authorizer);
}

static void when_too_many_wait_the_address_with_the_most_makes_room(void **state)
{
    const struct kinf__authorizer_options options = { .max_inquiries = 4 };
    struct caller callers[8];
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(call(&upstream, &callers[i], 1, "x", i),
                         i < 4 ? KINF__VERDICT_WAITS : KINF__VERDICT_THROTTLED);
    for (unsigned i = 5; i < 8; i++)
        assert_int_equal(call(&upstream, &callers[i], 2, "x", i),
                         i < 7 ? KINF__VERDICT_WAITS : KINF__VERDICT_THROTTLED);
    assert_int_equal(upstream.n_woken, 2);
    assert_int_equal(call_again(&upstream, &callers[3], 0), KINF__VERDICT_THROTTLED);
    assert_int_equal(call_again(&upstream, &callers[2], 0), KINF__VERDICT_THROTTLED);
    assert_int_equal(call_again(&upstream, &callers[1], 0), KINF__VERDICT_WAITS);
    leave(&upstream, callers, 8);
    kinf__authorizer_free(upstream.authorizer);
}

static void a_known_token_has_room_where_unknown_ones_wait(void **state)
{
    const struct kinf__authorizer_options options = { .max_inquiries = 4 };
    struct caller callers[4], known;
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    assert_int_equal(call(&upstream, &known, 1, "u-", 0), KINF__VERDICT_WAITS);
    assert_true(kinf__authorizer_work(upstream.authorizer, 0));
    assert_int_equal(call_again(&upstream, &known, 0), KINF__VERDICT_DENIED);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(call(&upstream, &callers[i], 1, "x", i), KINF__VERDICT_WAITS);
    known.request.attributes.verb = "watch";
    assert_int_equal(call_again(&upstream, &known, 0), KINF__VERDICT_WAITS);
    assert_int_equal(call_again(&upstream, &callers[3], 0), KINF__VERDICT_THROTTLED);
    assert_int_equal(call_again(&upstream, &callers[2], 0), KINF__VERDICT_WAITS);
    leave(&upstream, callers, 4);
    leave(&upstream, &known, 1);
    kinf__authorizer_free(upstream.authorizer);
}

static void nothing_is_kept_of_a_token_beyond_its_end(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    struct kinf__access_request request = request_of("u-reader", "list", "");
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    request.expires_ms = 1000;
    assert_int_equal(ask_whole(&upstream, &request, 0), KINF__VERDICT_ALLOWED);
    upstream.is_dead = true;
    assert_int_equal(ask_whole(&upstream, &request, 999), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask_whole(&upstream, &request, 1000), KINF__VERDICT_FAILED);
    kinf__authorizer_free(upstream.authorizer);
}

static void what_is_no_review_allows_nothing(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    upstream.is_garbage = true;
    assert_int_equal(ask(&upstream, "u-reader", "list", 0), KINF__VERDICT_FAILED);
    upstream.is_garbage = false;
    assert_int_equal(ask(&upstream, "u-reader", "list", 0), KINF__VERDICT_ALLOWED);
    kinf__authorizer_free(upstream.authorizer);
}

static void without_memory_nothing_is_allowed_and_nothing_leaks(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct upstream upstream = { .allowed = "\"nobody\"" };

        test_fail_allocation(n);
        if (kinf__authorizer_new(&options, send_review, &upstream, &upstream.authorizer, &err) ==
            0) {
            enum kinf__verdict verdict = ask(&upstream, "u-reader", "list", 0);

            assert_true(verdict == KINF__VERDICT_DENIED || verdict == KINF__VERDICT_FAILED);
            kinf__authorizer_free(upstream.authorizer);
        }
        has_failed = test_allocation_failed();
    }
}

/* Whom a certificate names is kept before anything is asked, which needs memory, too. */
static void without_memory_who_is_known_is_asked_about_later(void **state)
{
    static char user[] = "\"user\":\"u-reader\",\"groups\":[]";
    const struct kinf__authorizer_options options = { 0 };
    struct kinf__access_request request = request_of("", "list", "");
    bool has_failed = true;

    (void)state;
    request.user = user;
    for (size_t n = 1; has_failed; n++) {
        struct upstream upstream;
        enum kinf__verdict verdict;

        begin(&upstream, &options);
        test_fail_allocation(n);
        verdict = ask_whole(&upstream, &request, 0);
        has_failed = test_allocation_failed();
        assert_true(verdict == KINF__VERDICT_ALLOWED ||
                    (has_failed && verdict == KINF__VERDICT_FAILED));
        assert_int_equal(ask_whole(&upstream, &request, 0), KINF__VERDICT_ALLOWED);
        kinf__authorizer_free(upstream.authorizer);
    }
}

static void one_token_has_a_quarter_of_the_inquiries(void **state)
{
    const struct kinf__authorizer_options options = { .max_inquiries = 8 };
    static const char *const verbs[] = { "get", "list", "watch" };
    struct kinf__access_waiter waiters[4];
    struct kinf__access_answer answer;
    struct kinf__access_request request;
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    for (size_t i = 0; i < 4; i++) {
        request = request_of(i < 3 ? "u-greedy" : "u-reader", verbs[i % 3], "");
        waiters[i] = waiter_of(&upstream);
        assert_int_equal(ask_once(&upstream, &request, &waiters[i], 0, &answer),
                         i == 2 ? KINF__VERDICT_THROTTLED : KINF__VERDICT_WAITS);
    }
    for (size_t i = 0; i < 4; i++)
        kinf__authorizer_cancel(upstream.authorizer, &waiters[i]);
    kinf__authorizer_free(upstream.authorizer);
}

static void who_had_no_turn_for_20_s_fails_unasked(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    const struct kinf__access_request request = request_of("u-reader", "list", "");
    struct kinf__access_waiter waiter;
    struct kinf__access_answer answer;
    struct upstream upstream;

    (void)state;
    begin(&upstream, &options);
    waiter = waiter_of(&upstream);
    assert_int_equal(ask_once(&upstream, &request, &waiter, 0, &answer), KINF__VERDICT_WAITS);
    assert_true(kinf__authorizer_work(upstream.authorizer, 20000));
    assert_int_equal(ask_once(&upstream, &request, &waiter, 20000, &answer), KINF__VERDICT_FAILED);
    assert_int_equal(upstream.n_token_reviews, 0);
    assert_int_equal(ask_once(&upstream, &request, &waiter, 20000, &answer), KINF__VERDICT_WAITS);
    assert_true(kinf__authorizer_work(upstream.authorizer, 39999));
    assert_int_equal(ask_once(&upstream, &request, &waiter, 39999, &answer), KINF__VERDICT_ALLOWED);
    kinf__authorizer_free(upstream.authorizer);
}

static void what_goes_on_ends_within_10_minutes_or_with_the_token(void **state)
{
    struct kinf__access_request request = request_of("u-reader", "watch", "");
    struct kinf__access_waiter waiter;
    struct kinf__access_answer answer;
    struct upstream upstream;

    (void)state;
    for (int64_t watch_ms = 0; watch_ms <= 50; watch_ms += 50) {
        const struct kinf__authorizer_options options = { .watch_ms = watch_ms };
        int64_t expected_ms = 1000 + (watch_ms != 0 ? watch_ms : 600000);

        begin(&upstream, &options);
        waiter = waiter_of(&upstream);
        request.expires_ms = INT64_MAX;
        assert_int_equal(ask_whole(&upstream, &request, 1000), KINF__VERDICT_ALLOWED);
        ask_once(&upstream, &request, &waiter, 1000, &answer);
        assert_int_equal(answer.until_ms, expected_ms);
        request.expires_ms = expected_ms - 1;
        ask_once(&upstream, &request, &waiter, 1000, &answer);
        assert_int_equal(answer.until_ms, expected_ms - 1);
        kinf__authorizer_free(upstream.authorizer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allowed_is_kept_for_30_s_and_denied_for_5),
        cmocka_unit_test(who_is_known_needs_no_review_of_a_token),
        cmocka_unit_test(a_yes_stands_in_while_nobody_can_be_asked),
        cmocka_unit_test(a_review_that_takes_too_long_says_little_of_others),
        cmocka_unit_test(who_is_back_is_asked_and_has_the_word),
        cmocka_unit_test(it_shows_that_the_upstream_is_back_when_nobody_asks),
        cmocka_unit_test(nothing_stands_in_beyond_the_tokens_end),
        cmocka_unit_test(a_revoked_right_ends_with_its_decision),
        cmocka_unit_test(a_decision_is_for_its_user_verb_and_name_alone),
        cmocka_unit_test(the_same_question_at_once_is_asked_once),
        cmocka_unit_test(for_who_has_gone_nothing_is_asked_and_nobody_woken),
        cmocka_unit_test(who_is_given_up_is_woken_and_has_a_failure),
        cmocka_unit_test(unknown_tokens_beyond_the_rate_wait),
        cmocka_unit_test(strangers_do_not_keep_out_whose_token_is_somebodys),
        cmocka_unit_test(a_flood_from_one_address_holds_up_no_other),
        cmocka_unit_test(of_many_addresses_the_one_that_asked_least_goes_first),
        cmocka_unit_test(when_too_many_wait_the_address_with_the_most_makes_room),
        cmocka_unit_test(a_known_token_has_room_where_unknown_ones_wait),
        cmocka_unit_test(nothing_is_kept_of_a_token_beyond_its_end),
        cmocka_unit_test(what_is_no_review_allows_nothing),
        cmocka_unit_test(without_memory_nothing_is_allowed_and_nothing_leaks),
        cmocka_unit_test(without_memory_who_is_known_is_asked_about_later),
        cmocka_unit_test(one_token_has_a_quarter_of_the_inquiries),
        cmocka_unit_test(who_had_no_turn_for_20_s_fails_unasked),
        cmocka_unit_test(what_goes_on_ends_within_10_minutes_or_with_the_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
