/*
 * Asking. Neighbours: remembered.c knows what was answered, inquiries.c whose turn it is, review.c what
 * is sent; access.c asks for requests.
 *
 * A thread that is through with an inquiry looks for the next itself: what became possible by that
 * needs no signal. While inquiries wait, one thread that has none knows when the next turn comes, or
 * all are busy.
 */
#include "serve/authorizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "rest/http.h"

#define ALLOW_MS      30000
#define DENY_MS       5000
#define WATCH_MS      600000
#define MAX_DECISIONS 4096
#define TOKENS_PER_S  50
#define MAX_INQUIRIES (TOKENS_PER_S * KINF__INQUIRY_PATIENCE_MS / 1000) /* more would not last */
#define WARNING_MS    10000
#define PROBE_MS      5000 /* from a review that came to nothing to the next one for nobody */
/* A review takes milliseconds, so one would do: the others are for reviews that hang. */
#define N_REVIEWERS 4
#define REVIEW_MS   10000
#define MAX_ANSWER  (1u << 20)

/* A thread that sends reviews, over a connection of its own. */
struct reviewer {
    struct kinf__authorizer *authorizer;
    struct kinf__http *http;
    pthread_t thread;
    bool has_thread;
};

struct kinf__authorizer {
    /* constant after start */
    struct kinf__authorizer_options options;
    struct kinf__review_sender sender; /* of kinf__authorizer_work() */
    bool is_started;
    struct kinf__waker stop; /* of reviews */
    struct reviewer reviewers[N_REVIEWERS];
    struct kinf__mutex lock;
    struct kinf__cond changed;
    /* guarded by lock */
    struct kinf__inquiries inquiries;
    struct kinf__remembered remembered;
    struct kinf__log_limit warnings;
    uint64_t n_contacts;   /* reviews that the upstream answered */
    int64_t away_since_ms; /* since when it does not; 0: it does */
    int64_t next_probe_ms;
    uint64_t n_stale;
    bool is_stopping;
};

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- verdicts --- */

static enum kinf__verdict fail(struct kinf__access_answer *answer)
{
    answer->verdict = KINF__VERDICT_FAILED;
    return answer->verdict;
}

/* Whether an answer of before stands in, since nobody can be asked. The lock is held. */
static bool stands_in(struct kinf__authorizer *authorizer,
                      const struct kinf__question *token_question,
                      const struct kinf__attributes *attributes, int64_t now_ms,
                      struct kinf__access_answer *answer)
{
    if (authorizer->away_since_ms == 0 ||
        kinf__remembered_find(&authorizer->remembered, token_question, attributes, now_ms, true,
                              answer) != KINF__VERDICT_ALLOWED) {
        *answer = (struct kinf__access_answer){ .verdict = KINF__VERDICT_WAITS };
        return false;
    }
    authorizer->n_stale++;
    return true;
}

/* The lock is held. */
static void settle(struct kinf__authorizer *authorizer, struct kinf__inquiry *inquiry,
                   const struct kinf__access_answer *answer)
{
    while (!kinf__list_is_empty(&inquiry->waiters)) {
        struct kinf__access_waiter *waiter =
            KINF__LIST_ENTRY(inquiry->waiters.next, struct kinf__access_waiter, node);

        kinf__list_remove(&waiter->node);
        waiter->inquiry = NULL;
        waiter->answer = *answer;
        waiter->wake(waiter->ctx);
    }
    kinf__inquiries_remove(&authorizer->inquiries, inquiry);
}

/* Waits with the one that is there, or for a new one, which somebody else may have to make room for. The
 * lock is held. */
static enum kinf__verdict inquire(struct kinf__authorizer *authorizer,
                                  const struct kinf__access_request *request,
                                  const struct kinf__question *question,
                                  const struct kinf__question *token_question,
                                  struct kinf__access_waiter *waiter, int64_t now_ms)
{
    const struct kinf__access_answer throttled = { .verdict = KINF__VERDICT_THROTTLED };
    struct kinf__inquiry *inquiry, *ousted;
    enum kinf__verdict verdict = kinf__inquiries_find(&authorizer->inquiries, request, question,
                                                      token_question, now_ms, &inquiry, &ousted);

    if (ousted != NULL)
        settle(authorizer, ousted, &throttled);
    if (verdict != KINF__VERDICT_WAITS)
        return verdict;
    waiter->inquiry = inquiry;
    kinf__list_push_back(&inquiry->waiters, &waiter->node);
    kinf__cond_signal(&authorizer->changed);
    return KINF__VERDICT_WAITS;
}

/* The lock is held. */
static enum kinf__verdict find_verdict(struct kinf__authorizer *authorizer,
                                       const struct kinf__access_request *request,
                                       const struct kinf__question *question,
                                       const struct kinf__question *token_question,
                                       struct kinf__access_waiter *waiter, int64_t now_ms,
                                       struct kinf__access_answer *answer)
{
    if (waiter->inquiry != NULL)
        return KINF__VERDICT_WAITS;
    if (waiter->answer.verdict != KINF__VERDICT_WAITS) {
        *answer = waiter->answer;
        waiter->answer.verdict = KINF__VERDICT_WAITS;
        return answer->verdict;
    }
    if (kinf__remembered_find(&authorizer->remembered, token_question, &request->attributes, now_ms,
                              false, answer) != KINF__VERDICT_WAITS)
        return answer->verdict;
    if (stands_in(authorizer, token_question, &request->attributes, now_ms, answer))
        return answer->verdict;
    return inquire(authorizer, request, question, token_question, waiter, now_ms);
}

static int make_questions(const struct kinf__access_request *request,
                          struct kinf__question *ret_token_question,
                          struct kinf__question *ret_question)
{
    int failed;

    if (request->user != NULL) {
        failed = kinf__question_of_known(request->user, ret_token_question);
        return failed < 0
                   ? failed
                   : kinf__question_of_user(request->user, &request->attributes, ret_question);
    }
    failed = kinf__question_of_token(request->token, ret_token_question);
    return failed < 0
               ? failed
               : kinf__question_of_request(request->token, &request->attributes, ret_question);
}

/* From then on who is known without a token is as good as one whose token was reviewed. The lock is
 * held. */
static int keep_known(struct kinf__authorizer *authorizer,
                      const struct kinf__access_request *request,
                      const struct kinf__question *token_question, int64_t now_ms)
{
    struct kinf__remembered *remembered = &authorizer->remembered;

    return request->user == NULL ||
                   kinf__remembered_user(remembered, token_question, now_ms) != NULL
               ? 0
               : kinf__remembered_keep_user(remembered, token_question, true, request->user,
                                            request->expires_ms, now_ms);
}

enum kinf__verdict kinf__authorizer_ask(struct kinf__authorizer *authorizer,
                                        const struct kinf__access_request *request,
                                        struct kinf__access_waiter *waiter, int64_t now_ms,
                                        struct kinf__access_answer *ret_answer)
{
    struct kinf__question question, token_question;

    memset(ret_answer, 0, sizeof *ret_answer);
    if (make_questions(request, &token_question, &question) < 0)
        return fail(ret_answer); /* no memory */
    kinf__mutex_lock(&authorizer->lock);
    if (keep_known(authorizer, request, &token_question, now_ms) < 0)
        fail(ret_answer);
    else
        ret_answer->verdict = find_verdict(authorizer, request, &question, &token_question, waiter,
                                           now_ms, ret_answer);
    kinf__mutex_unlock(&authorizer->lock);
    ret_answer->until_ms =
        min(kinf__clock_add_ms(now_ms, authorizer->options.watch_ms), request->expires_ms);
    if (ret_answer->stale_until_ms != 0)
        ret_answer->until_ms = min(ret_answer->until_ms, ret_answer->stale_until_ms);
    return ret_answer->verdict;
}

/* An inquiry that nobody waits for any more is not worth a review. Returns false if it waits for
 * none. The lock is held. */
static bool withdraw(struct kinf__authorizer *authorizer, struct kinf__access_waiter *waiter)
{
    struct kinf__inquiry *inquiry = waiter->inquiry;

    if (inquiry == NULL)
        return false;
    waiter->inquiry = NULL;
    kinf__list_remove(&waiter->node);
    if (!inquiry->is_under_way && kinf__list_is_empty(&inquiry->waiters))
        settle(authorizer, inquiry, NULL);
    return true;
}

void kinf__authorizer_cancel(struct kinf__authorizer *authorizer,
                             struct kinf__access_waiter *waiter)
{
    kinf__mutex_lock(&authorizer->lock);
    withdraw(authorizer, waiter);
    kinf__mutex_unlock(&authorizer->lock);
}

void kinf__authorizer_give_up(struct kinf__authorizer *authorizer,
                              struct kinf__access_waiter *waiter)
{
    kinf__mutex_lock(&authorizer->lock);
    if (withdraw(authorizer, waiter)) {
        fail(&waiter->answer);
        waiter->wake(waiter->ctx);
    }
    kinf__mutex_unlock(&authorizer->lock);
}

/* --- reviews --- */

static bool is_unreachable(int failed, const struct kinf_error *err)
{
    return failed == KINF_ERR_NETWORK || failed == KINF_ERR_TIMEOUT ||
           (failed == KINF_ERR_SERVER && err->http_status >= 500);
}

static uint64_t count_contacts(struct kinf__authorizer *authorizer)
{
    uint64_t n_contacts;

    kinf__mutex_lock(&authorizer->lock);
    n_contacts = authorizer->n_contacts;
    kinf__mutex_unlock(&authorizer->lock);
    return n_contacts;
}

/* What a review came to says whether the upstream is there. One that took too long may be its token's:
 * that says nothing if another was answered meanwhile, and a probe is to tell, at once. The lock is
 * held. */
static void judge_contact(struct kinf__authorizer *authorizer, int failed, bool is_away,
                          uint64_t n_before, int64_t now_ms)
{
    bool is_sure = failed == KINF_ERR_NETWORK || authorizer->away_since_ms != 0;

    if (!is_away) {
        authorizer->n_contacts++;
        authorizer->away_since_ms = 0;
    } else if (!is_sure && authorizer->n_contacts != n_before) {
        return;
    } else if (authorizer->away_since_ms == 0) {
        authorizer->away_since_ms = now_ms != 0 ? now_ms : 1;
    }
    authorizer->next_probe_ms = kinf__clock_add_ms(now_ms, is_away && !is_sure ? 0 : PROBE_MS);
}

/* `n_before`: count_contacts() when it was begun. */
static void note_contact(struct kinf__authorizer *authorizer, uint64_t n_before, int failed,
                         const struct kinf_error *err, int64_t now_ms)
{
    bool was_away, is_away;

    if (failed == KINF_ERR_STOPPED || failed == KINF_ERR_NO_MEMORY)
        return;
    kinf__mutex_lock(&authorizer->lock);
    was_away = authorizer->away_since_ms != 0;
    judge_contact(authorizer, failed, is_unreachable(failed, err), n_before, now_ms);
    is_away = authorizer->away_since_ms != 0;
    kinf__mutex_unlock(&authorizer->lock);
    if (is_away != was_away && authorizer->options.stale_ms != 0)
        KINF__LOG(KINF__LOG_SERVE, KINF_LOG_WARN, "%s",
                  is_away ? "the API server reviews nothing: who was let in of late still is"
                          : "the API server reviews again");
}

static int review_token(struct kinf__authorizer *authorizer, const struct kinf__inquiry *inquiry,
                        const struct kinf__review_sender *sender, int64_t now_ms, bool *ret_yes,
                        struct kinf__buffer *user, struct kinf_error *err)
{
    uint64_t n_before = count_contacts(authorizer);
    int failed = kinf__review_token(sender, kinf_str_from(inquiry->token), ret_yes, user, err);

    note_contact(authorizer, n_before, failed, err, now_ms);
    if (failed < 0)
        return failed;
    kinf__mutex_lock(&authorizer->lock);
    failed = kinf__remembered_keep_user(&authorizer->remembered, &inquiry->token_question, *ret_yes,
                                        user->bytes, inquiry->expires_ms, now_ms);
    kinf__mutex_unlock(&authorizer->lock);
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}

/* Who it is: what is known or kept, or a review. */
static int find_user(struct kinf__authorizer *authorizer, const struct kinf__inquiry *inquiry,
                     const struct kinf__review_sender *sender, int64_t now_ms, bool *ret_yes,
                     struct kinf__buffer *user, struct kinf_error *err)
{
    const char *known = inquiry->user;
    const struct kinf__decision *who = NULL;
    int failed = 0;

    *ret_yes = known != NULL;
    kinf__mutex_lock(&authorizer->lock);
    if (known == NULL &&
        (who = kinf__remembered_user(&authorizer->remembered, &inquiry->token_question, now_ms))) {
        *ret_yes = who->is_yes;
        known = who->text;
    }
    if (known != NULL)
        failed = kinf__buffer_append_str(user, kinf_str_from(known));
    kinf__mutex_unlock(&authorizer->lock);
    if (failed < 0 || kinf__buffer_cstr(user) == NULL)
        return kinf__error_no_memory(err);
    return known != NULL ? 0
                         : review_token(authorizer, inquiry, sender, now_ms, ret_yes, user, err);
}

static int review_access(struct kinf__authorizer *authorizer, const struct kinf__inquiry *inquiry,
                         const struct kinf__review_sender *sender, int64_t now_ms, const char *user,
                         struct kinf__access_answer *answer, struct kinf_error *err)
{
    KINF__AUTO_BUFFER reason = KINF__BUFFER_INIT;
    uint64_t n_before = count_contacts(authorizer);
    bool is_yes;
    int failed = kinf__review_access(sender, user, &inquiry->attributes, &is_yes, &reason, err);

    note_contact(authorizer, n_before, failed, err, now_ms);
    if (failed < 0)
        return failed;
    kinf__mutex_lock(&authorizer->lock);
    failed = kinf__remembered_keep_access(&authorizer->remembered, user, &inquiry->attributes,
                                          is_yes, reason.bytes, now_ms, answer);
    kinf__mutex_unlock(&authorizer->lock);
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}

static int review(struct kinf__authorizer *authorizer, const struct kinf__inquiry *inquiry,
                  const struct kinf__review_sender *sender, int64_t now_ms,
                  struct kinf__access_answer *answer, struct kinf_error *err)
{
    KINF__AUTO_BUFFER user = KINF__BUFFER_INIT;
    bool is_somebody;
    enum kinf__verdict verdict;
    int failed;

    if (now_ms - inquiry->asked_ms >= KINF__INQUIRY_PATIENCE_MS)
        return kinf__error_set(err, KINF_ERR_TIMEOUT, "reviews wait for %d s",
                               KINF__INQUIRY_PATIENCE_MS / 1000);
    failed = find_user(authorizer, inquiry, sender, now_ms, &is_somebody, &user, err);
    if (failed < 0)
        return failed;
    if (!is_somebody) {
        answer->verdict = KINF__VERDICT_UNKNOWN;
        return 0;
    }
    /* Another token of the same user may have asked the same since. */
    kinf__mutex_lock(&authorizer->lock);
    verdict = kinf__remembered_find(&authorizer->remembered, &inquiry->token_question,
                                    &inquiry->attributes, now_ms, false, answer);
    kinf__mutex_unlock(&authorizer->lock);
    if (verdict != KINF__VERDICT_WAITS)
        return 0;
    return review_access(authorizer, inquiry, sender, now_ms, user.bytes, answer, err);
}

static void warn(struct kinf__authorizer *authorizer, int64_t now_ms, const char *why)
{
    uint64_t n_suppressed;
    bool may_pass;

    kinf__mutex_lock(&authorizer->lock);
    may_pass = kinf__log_limit_pass(&authorizer->warnings, now_ms, &n_suppressed);
    kinf__mutex_unlock(&authorizer->lock);
    if (may_pass)
        KINF__LOG(KINF__LOG_SERVE, KINF_LOG_WARN, "review failed: %s suppressed=%" PRIu64, why,
                  n_suppressed);
}

/* Asks what everybody knows: whether the upstream answers again must not depend on who comes, since
 * nobody may, as long as /readyz says that nobody can be answered. */
static void probe(struct kinf__authorizer *authorizer, const struct kinf__review_sender *sender,
                  int64_t now_ms)
{
    static const struct kinf__attributes attributes = { "get", "/healthz", "", "", "",
                                                        "",    "",         "", "", "" };
    KINF__AUTO_BUFFER reason = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    uint64_t n_before = count_contacts(authorizer);
    bool is_yes;
    int failed = kinf__review_access(sender, "\"user\":\"system:anonymous\"", &attributes, &is_yes,
                                     &reason, &err);

    note_contact(authorizer, n_before, failed, &err, now_ms);
}

static void decide(struct kinf__authorizer *authorizer, struct kinf__inquiry *inquiry,
                   const struct kinf__review_sender *sender, int64_t now_ms)
{
    struct kinf__access_answer answer = { .verdict = KINF__VERDICT_FAILED };
    struct kinf_error err = KINF_ERROR_INIT;
    int failed = review(authorizer, inquiry, sender, now_ms, &answer, &err);

    if (failed < 0 && failed != KINF_ERR_STOPPED)
        warn(authorizer, now_ms, err.message);
    kinf__mutex_lock(&authorizer->lock);
    if (failed < 0 &&
        !stands_in(authorizer, &inquiry->token_question, &inquiry->attributes, now_ms, &answer))
        answer.verdict = KINF__VERDICT_FAILED;
    settle(authorizer, inquiry, &answer);
    kinf__mutex_unlock(&authorizer->lock);
}

static void work_on(struct kinf__authorizer *authorizer, struct kinf__inquiry *inquiry,
                    const struct kinf__review_sender *sender, int64_t now_ms)
{
    if (inquiry != NULL)
        decide(authorizer, inquiry, sender, now_ms);
    else
        probe(authorizer, sender, now_ms);
}

/* Whether there is something to do: an inquiry, or (NULL) a probe. If not, *ret_ready_ms is when there
 * may be. The lock is held. */
static bool take_work(struct kinf__authorizer *authorizer, int64_t now_ms,
                      struct kinf__inquiry **ret_inquiry, int64_t *ret_ready_ms)
{
    *ret_inquiry = kinf__inquiries_take(&authorizer->inquiries, now_ms, ret_ready_ms);
    /* Whose turn comes with time is another thread's business meanwhile. */
    if (*ret_inquiry != NULL && !kinf__list_is_empty(&authorizer->inquiries.waiting))
        kinf__cond_signal(&authorizer->changed);
    if (*ret_inquiry != NULL || authorizer->away_since_ms == 0)
        return *ret_inquiry != NULL;
    if (now_ms >= authorizer->next_probe_ms) {
        authorizer->next_probe_ms = kinf__clock_add_ms(now_ms, PROBE_MS);
        return true;
    }
    *ret_ready_ms = min(*ret_ready_ms, authorizer->next_probe_ms);
    return false;
}

bool kinf__authorizer_work(struct kinf__authorizer *authorizer, int64_t now_ms)
{
    struct kinf__inquiry *inquiry;
    int64_t ready_ms;
    bool has_work;

    kinf__mutex_lock(&authorizer->lock);
    has_work = take_work(authorizer, now_ms, &inquiry, &ready_ms);
    kinf__mutex_unlock(&authorizer->lock);
    if (has_work)
        work_on(authorizer, inquiry, &authorizer->sender, now_ms);
    return has_work;
}

/* --- the threads --- */

/* Returns false when it is time to end. */
static bool await_work(struct kinf__authorizer *authorizer, struct kinf__inquiry **ret_inquiry)
{
    int64_t ready_ms;
    bool goes_on;

    kinf__mutex_lock(&authorizer->lock);
    while ((goes_on = !authorizer->is_stopping) &&
           !take_work(authorizer, kinf__clock_now_ms(), ret_inquiry, &ready_ms))
        kinf__cond_wait_until(&authorizer->changed, &authorizer->lock, ready_ms);
    kinf__mutex_unlock(&authorizer->lock);
    return goes_on;
}

static int post(void *ctx, const char *target, struct kinf_str body, struct kinf__buffer *answer,
                struct kinf_error *err)
{
    struct kinf__http_body kept = { answer, MAX_ANSWER, 0 };
    const struct kinf__http_request request = { .method = "POST",
                                                .target = target,
                                                .body = body,
                                                .content_type = "application/json",
                                                .total_timeout_ms = REVIEW_MS,
                                                .on_body = kinf__http_body_keep,
                                                .ctx = &kept };

    return kinf__http_perform(ctx, &request, err);
}

static void *run(void *ctx)
{
    struct reviewer *reviewer = ctx;
    struct kinf__authorizer *authorizer = reviewer->authorizer;
    const struct kinf__review_sender sender = { post, reviewer->http };
    struct kinf__inquiry *inquiry;

    while (await_work(authorizer, &inquiry))
        work_on(authorizer, inquiry, &sender, kinf__clock_now_ms());
    return NULL;
}

int kinf__authorizer_start(struct kinf__authorizer *authorizer, struct kinf_client *client,
                           struct kinf_error *err)
{
    int failed = kinf__waker_init(&authorizer->stop, err);

    authorizer->is_started = failed == 0;
    for (size_t i = 0; failed == 0 && i < N_REVIEWERS; i++) {
        struct reviewer *reviewer = &authorizer->reviewers[i];

        reviewer->authorizer = authorizer;
        failed = kinf__http_new(client, &authorizer->stop, &reviewer->http, err);
        if (failed == 0)
            failed = kinf__thread_start(&reviewer->thread, "authorizer", run, reviewer, err);
        reviewer->has_thread = failed == 0;
    }
    return failed;
}

/* Breaks off reviews under way, which fail with KINF_ERR_STOPPED. */
static void end_reviewers(struct kinf__authorizer *authorizer)
{
    if (!authorizer->is_started)
        return;
    kinf__waker_set(&authorizer->stop);
    for (size_t i = 0; i < N_REVIEWERS; i++) {
        if (authorizer->reviewers[i].has_thread)
            pthread_join(authorizer->reviewers[i].thread, NULL);
        kinf__http_free(authorizer->reviewers[i].http);
    }
    kinf__waker_release(&authorizer->stop);
}

void kinf__authorizer_status(struct kinf__authorizer *authorizer, int64_t now_ms,
                             struct kinf__authorizer_status *ret_status)
{
    const struct kinf__authorizer_options *options = &authorizer->options;
    int64_t since_ms;

    kinf__mutex_lock(&authorizer->lock);
    since_ms = authorizer->away_since_ms;
    *ret_status = (struct kinf__authorizer_status){ .n_stale = authorizer->n_stale };
    kinf__mutex_unlock(&authorizer->lock);
    if (since_ms == 0)
        return;
    ret_status->away_ms = now_ms > since_ms ? now_ms - since_ms : 1;
    ret_status->answers_nobody = ret_status->away_ms >= options->allow_ms + options->stale_ms;
}

/* --- life --- */

static int64_t or_default(int64_t value, int64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static struct kinf__authorizer_options complete(const struct kinf__authorizer_options *options)
{
    return (struct kinf__authorizer_options){
        .allow_ms = or_default(options->allow_ms, ALLOW_MS),
        .deny_ms = or_default(options->deny_ms, DENY_MS),
        .stale_ms = options->stale_ms,
        .watch_ms = or_default(options->watch_ms, WATCH_MS),
        .max_decisions = options->max_decisions != 0 ? options->max_decisions : MAX_DECISIONS,
        .tokens_per_s = options->tokens_per_s != 0 ? options->tokens_per_s : TOKENS_PER_S,
        .max_inquiries = options->max_inquiries != 0 ? options->max_inquiries : MAX_INQUIRIES,
    };
}

int kinf__authorizer_new(const struct kinf__authorizer_options *options, kinf__review_send_cb *send,
                         void *ctx, struct kinf__authorizer **ret_authorizer,
                         struct kinf_error *err)
{
    struct kinf__authorizer *authorizer = calloc(1, sizeof *authorizer);

    if (authorizer == NULL)
        return kinf__error_no_memory(err);
    authorizer->options = complete(options);
    options = &authorizer->options;
    authorizer->sender = (struct kinf__review_sender){ send, ctx };
    authorizer->warnings.interval_ms = WARNING_MS;
    kinf__mutex_init(&authorizer->lock, KINF__RANK_AUTHORIZER);
    kinf__cond_init(&authorizer->changed);
    kinf__remembered_init(
        &authorizer->remembered,
        &(struct kinf__remembered_times){ options->allow_ms, options->deny_ms, options->stale_ms },
        options->max_decisions);
    kinf__inquiries_init(&authorizer->inquiries, &authorizer->remembered, options->max_inquiries,
                         options->tokens_per_s);
    *ret_authorizer = authorizer;
    return 0;
}

void kinf__authorizer_free(struct kinf__authorizer *authorizer)
{
    if (authorizer == NULL)
        return;
    kinf__mutex_lock(&authorizer->lock);
    authorizer->is_stopping = true;
    kinf__cond_broadcast(&authorizer->changed);
    kinf__mutex_unlock(&authorizer->lock);
    end_reviewers(authorizer);
    kinf__inquiries_release(&authorizer->inquiries);
    kinf__remembered_release(&authorizer->remembered);
    kinf__cond_release(&authorizer->changed);
    kinf__mutex_release(&authorizer->lock);
    free(authorizer);
}
