/*
 * Tokens, users and what they may. Neighbours: decisions.c is the table, authorizer.c asks when nothing
 * is known.
 */
#include "serve/remembered.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "serve/digest.h"

#define FAMILIAR_MS 600000 /* beyond its decision: whose token it was is no stranger */

/* --- questions --- */

static int ask(const char *kind, struct kinf_str who, const struct kinf__attributes *attributes,
               struct kinf__question *ret_question)
{
    struct kinf_str parts[KINF__N_ATTRIBUTES + 2] = { kinf_str_from(kind), who };
    const char *texts[KINF__N_ATTRIBUTES];

    kinf__attributes_list(attributes, texts);
    for (size_t i = 0; i < KINF__N_ATTRIBUTES; i++)
        parts[i + 2] = kinf_str_from(texts[i]);
    return kinf__digest(parts, KINF__N_ATTRIBUTES + 2, ret_question->digest);
}

int kinf__question_of_token(struct kinf_str token, struct kinf__question *ret_question)
{
    const struct kinf_str parts[] = { KINF_STR("token"), token };

    return kinf__digest(parts, 2, ret_question->digest);
}

int kinf__question_of_known(const char *user, struct kinf__question *ret_question)
{
    const struct kinf_str parts[] = { KINF_STR("known"), kinf_str_from(user) };

    return kinf__digest(parts, 2, ret_question->digest);
}

int kinf__question_of_request(struct kinf_str token, const struct kinf__attributes *attributes,
                              struct kinf__question *ret_question)
{
    return ask("inquiry", token, attributes, ret_question);
}

int kinf__question_of_user(const char *user, const struct kinf__attributes *attributes,
                           struct kinf__question *ret_question)
{
    return ask("access", kinf_str_from(user), attributes, ret_question);
}

/* --- what is known --- */

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

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
    if (kinf__review_user_name(user, &name) < 0 && !is_yes)
        return fail(answer);
    snprintf(answer->user, sizeof answer->user, "%.*s", (int)name.len,
             name.len != 0 ? name.bytes : "");
    snprintf(answer->reason, sizeof answer->reason, "%s", reason);
    return answer->verdict;
}

enum kinf__verdict kinf__remembered_find(struct kinf__remembered *remembered,
                                         const struct kinf__question *token_question,
                                         const struct kinf__attributes *attributes, int64_t now_ms,
                                         bool or_stale, struct kinf__access_answer *answer)
{
    const struct kinf__decision *who =
        kinf__decisions_find(&remembered->tokens, token_question, now_ms, or_stale);
    const struct kinf__decision *may;
    struct kinf__question question;

    answer->verdict = KINF__VERDICT_WAITS;
    if (who == NULL)
        return answer->verdict;
    if (!who->is_yes)
        return answer->verdict = KINF__VERDICT_UNKNOWN;
    if (kinf__question_of_user(who->text, attributes, &question) < 0)
        return fail(answer); /* no memory */
    may = kinf__decisions_find(&remembered->accesses, &question, now_ms, or_stale);
    if (may == NULL)
        return answer->verdict;
    if (or_stale)
        answer->stale_until_ms = min(who->stale_until_ms, may->stale_until_ms);
    return judge(who->text, may->is_yes, may->text, answer);
}

bool kinf__remembered_knows(struct kinf__remembered *remembered,
                            const struct kinf__question *token_question, int64_t now_ms)
{
    return kinf__decisions_find(&remembered->tokens, token_question, now_ms, false) != NULL ||
           kinf__decisions_find(&remembered->familiar, token_question, now_ms, false) != NULL;
}

const struct kinf__decision *kinf__remembered_user(struct kinf__remembered *remembered,
                                                   const struct kinf__question *token_question,
                                                   int64_t now_ms)
{
    return kinf__decisions_find(&remembered->tokens, token_question, now_ms, false);
}

/* --- what is kept --- */

/* A decision of now, that holds until `end_ms` at most. */
static struct kinf__decision decision_of(const struct kinf__remembered *remembered, bool is_yes,
                                         int64_t now_ms, int64_t end_ms, char *text)
{
    const struct kinf__remembered_times *times = &remembered->times;
    int64_t until_ms = kinf__clock_add_ms(now_ms, is_yes ? times->allow_ms : times->deny_ms);

    return (struct kinf__decision){
        .is_yes = is_yes,
        .until_ms = min(until_ms, end_ms),
        .stale_until_ms = is_yes ? min(kinf__clock_add_ms(until_ms, times->stale_ms), end_ms) : 0,
        .text = text,
    };
}

int kinf__remembered_keep_user(struct kinf__remembered *remembered,
                               const struct kinf__question *token_question, bool is_somebody,
                               char *user, int64_t expires_ms, int64_t now_ms)
{
    const struct kinf__decision who =
        decision_of(remembered, is_somebody, now_ms, is_somebody ? expires_ms : INT64_MAX, user);
    const struct kinf__decision familiar = {
        .is_yes = true,
        .until_ms = kinf__clock_add_ms(now_ms, remembered->times.allow_ms + FAMILIAR_MS),
    };
    int failed = kinf__decisions_put(&remembered->tokens, token_question, &who);

    return failed == 0 && is_somebody
               ? kinf__decisions_put(&remembered->familiar, token_question, &familiar)
               : failed;
}

int kinf__remembered_keep_access(struct kinf__remembered *remembered, const char *user,
                                 const struct kinf__attributes *attributes, bool is_yes,
                                 char *reason, int64_t now_ms, struct kinf__access_answer *answer)
{
    const struct kinf__decision may = decision_of(remembered, is_yes, now_ms, INT64_MAX, reason);
    struct kinf__question question;

    if (kinf__question_of_user(user, attributes, &question) < 0 ||
        kinf__decisions_put(&remembered->accesses, &question, &may) < 0)
        return KINF_ERR_NO_MEMORY;
    judge(user, is_yes, reason, answer);
    return 0;
}

/* --- life --- */

void kinf__remembered_init(struct kinf__remembered *remembered,
                           const struct kinf__remembered_times *times, size_t max)
{
    remembered->times = *times;
    kinf__decisions_init(&remembered->tokens, max);
    kinf__decisions_init(&remembered->familiar, max);
    kinf__decisions_init(&remembered->accesses, max);
}

void kinf__remembered_release(struct kinf__remembered *remembered)
{
    kinf__decisions_release(&remembered->tokens);
    kinf__decisions_release(&remembered->familiar);
    kinf__decisions_release(&remembered->accesses);
}
