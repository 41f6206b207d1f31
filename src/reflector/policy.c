/*
 * The state machine of lists and watches. Neighbours: backoff.c and frozen.c below it,
 * reflector.c drives it.
 * Invariants: a list's version and token are both empty or both set; `rv` changes only by a
 * complete round or by what a watch handed on, so asking again from it loses nothing.
 */
#include "reflector/policy.h"

#include <string.h>

#include <kinformer/object.h>

#include "base/compiler.h"
#include "base/duration.h"

#define WATCH_TIMEOUT_MS 300000
#define SILENT_AFTER_MS  150000
#define BACKOFF_BASE_MS  800
#define BACKOFF_MAX_MS   30000
/* Of a whole state, as estimated; more is as much. */
#define MAX_EXPECTED_BYTES 1e15

/* One call: what handlers of events need besides the policy. */
struct step {
    int64_t now_ms;
    uint64_t random;
    const struct kinf__policy_event *event;
};

const char *kinf__policy_state_to_string(enum kinf__policy_state state)
{
    static const char *const names[] = {
#define X(state_, name) [state_] = name,
        KINF__POLICY_STATES(X)
#undef X
    };

    return (size_t)state < KINF__ARRAY_LEN(names) ? names[state] : "unknown";
}

const char *kinf__policy_event_to_string(enum kinf__policy_event_type type)
{
    static const char *const names[] = {
#define X(event, name) [event] = name,
        KINF__POLICY_EVENTS(X)
#undef X
    };

    return (size_t)type < KINF__ARRAY_LEN(names) ? names[type] : "unknown";
}

static void transition(struct kinf__policy *policy, enum kinf__policy_state to)
{
    enum kinf__policy_state from = policy->state;

    policy->state = to;
    if (policy->options.trace != NULL)
        policy->options.trace(from, policy->last_event, to, policy->options.trace_ctx);
}

/* --- when --- */

enum when {
    AFTER_WAIT, /* a failure's */
    AT_ONCE,    /* after a refusal: one time until a round succeeds, then as any failure */
    GOES_ON,    /* as long as the budget lasts: it went well */
};

static int64_t wait_of_failure(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf_error *err = step->event->err;

    return kinf__backoff_next(&policy->backoff, step->now_ms, step->random,
                              err != NULL ? err->retry_after_ms : 0);
}

/* Spends one; the wait until there is one to be spent. */
static int64_t wait_of_budget(struct kinf__policy *policy, int64_t now_ms)
{
    int64_t each_ms = policy->options.backoff_max_ms / 3;

    if (policy->at_once_full_ms < now_ms)
        policy->at_once_full_ms = now_ms;
    policy->at_once_full_ms += each_ms;
    return policy->at_once_full_ms - now_ms - KINF__POLICY_AT_ONCE * each_ms;
}

/* The one place that says whether something follows at once. */
static void follow(struct kinf__policy *policy, enum kinf__policy_state then, enum when when,
                   const struct step *step)
{
    int64_t wait_ms = 0;

    if (when == GOES_ON)
        wait_ms = wait_of_budget(policy, step->now_ms);
    else if (when == AFTER_WAIT || policy->round.has_hurried)
        wait_ms = wait_of_failure(policy, step);
    else
        policy->round.has_hurried = true;
    if (wait_ms <= 0) {
        transition(policy, then);
        return;
    }
    policy->wait_end_ms = step->now_ms + wait_ms;
    policy->after_wait = then;
    transition(policy, KINF__POLICY_WAITING);
}

/* --- rounds --- */

static bool may_stream(const struct kinf__policy *policy, int64_t now_ms)
{
    if (policy->round.is_by_list || policy->frozen.is_found ||
        now_ms < policy->unsupported_until_ms)
        return false;
    switch (policy->options.initial) {
    case KINF_INITIAL_AUTO:
        return policy->options.page_size == 0;
    case KINF_INITIAL_WATCHLIST:
        return true;
    case KINF_INITIAL_LIST:
        break;
    }
    return false;
}

/* How the next round begins. */
static enum kinf__policy_state round_state(const struct kinf__policy *policy, int64_t now_ms)
{
    bool wants_stream = policy->options.initial == KINF_INITIAL_WATCHLIST || policy->is_list_cut ||
                        policy->expected_bytes > KINF__POLICY_MAX_LIST_BYTES;

    return wants_stream && may_stream(policy, now_ms) ? KINF__POLICY_STREAMING
                                                      : KINF__POLICY_LISTING;
}

static void forget_list(struct kinf__policy *policy)
{
    policy->list = (struct kinf__policy_list){ .kind = KINF__POLICY_UNDECIDED };
}

static void give_up_list(struct kinf__policy *policy, const struct step *step)
{
    if (policy->list.is_extra)
        kinf__frozen_list_failed(&policy->frozen, step->now_ms);
    forget_list(policy);
}

static void end_round(struct kinf__policy *policy, const struct step *step, const char *rv)
{
    strcpy(policy->rv, rv);
    policy->expected_bytes = (int64_t)step->event->n_bytes;
    policy->round = (struct kinf__policy_round){ .n_streams = 0 };
    policy->seen_ms = step->now_ms;
    policy->is_unverified = false;
    policy->is_unconfirmed = false;
    forget_list(policy);
    transition(policy, KINF__POLICY_WATCHING);
}

/* --- lists --- */

static bool is_first_page(const struct kinf__policy *policy)
{
    return policy->list.continue_token[0] == '\0';
}

/* With a selector, pages are no better than one piece while the watch cache is not there. */
static bool wants_pages(const struct kinf__policy *policy)
{
    return policy->options.page_size != 0 || policy->is_list_cut ||
           (policy->frozen.is_found && !policy->options.has_selector) ||
           (policy->list.is_extra && policy->expected_bytes > KINF__POLICY_MAX_LIST_BYTES);
}

static enum kinf__policy_list_kind choose_list(const struct kinf__policy *policy)
{
    bool is_newest = policy->rv[0] == '\0' || policy->round.is_newest || policy->is_list_cut ||
                     policy->list.is_extra || policy->frozen.is_found;

    if (!is_newest)
        return KINF__POLICY_RELIST;
    if (wants_pages(policy))
        return KINF__POLICY_PAGES;
    return policy->options.initial == KINF_INITIAL_AUTO && !policy->options.has_selector &&
                   policy->expected_bytes < 0
               ? KINF__POLICY_PROBE
               : KINF__POLICY_NEWEST;
}

static size_t limit_of_list(const struct kinf__policy *policy)
{
    if (policy->list.kind == KINF__POLICY_PROBE)
        return KINF__POLICY_PROBE_SIZE;
    if (policy->list.kind != KINF__POLICY_PAGES)
        return 0;
    return policy->options.page_size != 0 ? policy->options.page_size : KINF__POLICY_PAGE_SIZE;
}

/* The size of the whole state, from its first objects. A server that does not count says nothing
 * of it: then it is taken to be small, and found out if it is not. */
static int64_t estimate_bytes(const struct kinf__policy_event *page)
{
    double per_item, n_bytes;

    if (page->n_remaining < 0 || page->n_items == 0)
        return 0;
    per_item = (double)page->n_bytes / (double)page->n_items;
    n_bytes = per_item * ((double)page->n_items + (double)page->n_remaining);
    return n_bytes < MAX_EXPECTED_BYTES ? (int64_t)n_bytes : (int64_t)MAX_EXPECTED_BYTES;
}

/* A server that has not reached the last version although it has handed out this one: its watch
 * cache is behind its own state. If it went back, it is another state. */
static void weigh_list(struct kinf__policy *policy, const struct step *step)
{
    int order = 1;
    bool is_comparable = kinf_rv_compare(policy->list.rv, policy->rv, &order, NULL) == 0;

    if (policy->round.is_rv_too_large && is_comparable && order >= 0)
        kinf__frozen_sign(&policy->frozen, step->now_ms);
    kinf__frozen_listed(&policy->frozen, step->event->has_news && order >= 0, step->now_ms);
}

static void on_list_page(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf__policy_event *page = step->event;
    bool is_last = page->continue_token == NULL || page->continue_token[0] == '\0';
    bool has_brought = page->n_items > policy->list.n_items;
    char rv[KINF__RV_SIZE];

    if (!is_last && policy->list.kind == KINF__POLICY_PROBE) {
        policy->expected_bytes = estimate_bytes(page);
        forget_list(policy);
        transition(policy, round_state(policy, step->now_ms));
        return;
    }
    if (is_first_page(policy))
        strcpy(policy->list.rv, page->rv);
    policy->list.n_items = page->n_items;
    if (is_last) {
        weigh_list(policy, step);
        strcpy(rv, policy->list.rv);
        end_round(policy, step, rv);
        return;
    }
    strcpy(policy->list.continue_token, page->continue_token);
    if (has_brought)
        transition(policy, KINF__POLICY_LISTING);
    else
        follow(policy, KINF__POLICY_LISTING, GOES_ON, step);
}

/* --- watches and watch lists --- */

/* A watch list brought no bookmark. */
static void count_stream(struct kinf__policy *policy)
{
    if (++policy->round.n_streams >= KINF__POLICY_MAX_STREAMS)
        policy->round.is_by_list = true;
}

static void on_initial_end(struct kinf__policy *policy, const struct step *step)
{
    policy->watch.has_brought = true;
    policy->watch.has_newer_rv = true;
    kinf__frozen_delivered(&policy->frozen, false);
    end_round(policy, step, step->event->rv);
}

static void begin_doubt(struct kinf__policy *policy)
{
    policy->is_unverified = true;
    policy->n_unverified = 0;
}

static void note_outage(struct kinf__policy *policy)
{
    begin_doubt(policy);
    kinf__frozen_outage(&policy->frozen);
}

/* Nobody has looked for so long that the server may have been away. */
static bool is_unseen(const struct kinf__policy *policy, int64_t now_ms)
{
    return policy->state == KINF__POLICY_WATCHING &&
           now_ms - policy->seen_ms >= KINF__POLICY_UNSEEN_MS;
}

static void on_watch_accepted(struct kinf__policy *policy, const struct step *step)
{
    if (is_unseen(policy, step->now_ms) && !policy->is_unverified)
        note_outage(policy);
    policy->watch.is_accepted = true;
    policy->watch.accepted_ms = step->now_ms;
    policy->round.n_404 = 0;
}

static bool knows_what_confirms(const struct kinf__policy *policy)
{
    return policy->confirming_rv[0] != '\0';
}

/* Of another history nothing is confirmed: that it is none is known when it has been verified. */
static void confirm(struct kinf__policy *policy)
{
    if (!policy->is_unverified)
        policy->is_unconfirmed = false;
}

/* Behind all that the server had when it was verified. */
static bool is_confirming(const struct kinf__policy *policy, const char *rv)
{
    int order;

    return knows_what_confirms(policy) &&
           kinf_rv_compare(rv, policy->confirming_rv, &order, NULL) == 0 && order >= 0;
}

static void on_watch_rv(struct kinf__policy *policy, const struct step *step)
{
    const char *rv = step->event->rv;

    if (policy->state != KINF__POLICY_WATCHING)
        return;
    policy->watch.has_brought = true;
    kinf__frozen_delivered(&policy->frozen, step->event->is_bookmark);
    if (is_confirming(policy, rv) || (step->event->is_bookmark && !knows_what_confirms(policy)))
        confirm(policy);
    if (rv[0] == '\0' || strlen(rv) >= sizeof policy->rv || strcmp(rv, policy->rv) == 0)
        return;
    strcpy(policy->rv, rv);
    policy->watch.has_newer_rv = true;
    policy->round.n_500 = 0;
}

/* It was tried often enough. */
static bool is_unverifiable(const struct kinf__policy *policy)
{
    return policy->is_unverified && policy->n_unverified > KINF__POLICY_MAX_UNVERIFIED;
}

/* What follows a watch that is not the reason for a round. A state of an earlier run that watches and
 * verifications do not confirm is listed. */
static enum kinf__policy_state after_watch(struct kinf__policy *policy, const struct step *step)
{
    bool is_silent = step->event->type == KINF__POLICY_WATCH_SILENT;

    if (policy->is_unconfirmed && (is_silent || is_unverifiable(policy))) {
        policy->round.is_newest = true;
        return round_state(policy, step->now_ms);
    }
    if (policy->watch.has_brought || !kinf__frozen_begin_list(&policy->frozen, step->now_ms))
        return policy->is_unverified ? KINF__POLICY_VERIFYING : KINF__POLICY_WATCHING;
    policy->list.is_extra = true;
    return KINF__POLICY_LISTING;
}

static void on_watch_ended(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf__policy_watch *watch = &policy->watch;
    int64_t lived_ms = step->now_ms - watch->accepted_ms;
    bool is_streaming = policy->state == KINF__POLICY_STREAMING;
    bool is_short = lived_ms < KINF__POLICY_SHORT_WATCH_MS && !watch->has_newer_rv;
    /* Its last second is the time that the request took. */
    int64_t least_ms = KINF__POLICY_SHORT_WATCH_MS / (policy->is_unconfirmed ? 2 : 1);
    bool has_lasted = lived_ms >= least_ms && lived_ms + 1000 >= watch->timeout_ms;
    enum kinf__policy_state then;

    if (is_streaming)
        count_stream(policy);
    else
        policy->round.n_500 = 0;
    then = is_streaming ? round_state(policy, step->now_ms) : after_watch(policy, step);
    policy->watch.has_lasted = has_lasted && !is_streaming;
    /* One that brought something may have been cut off in the midst of what was missed. */
    if (policy->watch.has_lasted && (!watch->has_newer_rv || !knows_what_confirms(policy)))
        confirm(policy);
    if (has_lasted)
        transition(policy, then);
    else
        follow(policy, then, is_short ? AFTER_WAIT : GOES_ON, step);
}

static void on_watch_silent(struct kinf__policy *policy, const struct step *step)
{
    if (policy->state == KINF__POLICY_STREAMING) {
        count_stream(policy);
        transition(policy, round_state(policy, step->now_ms));
        return;
    }
    policy->watch.has_lasted = true;
    if (policy->frozen.has_bookmarks)
        begin_doubt(policy);
    if (!policy->watch.has_brought)
        kinf__frozen_silent(&policy->frozen);
    transition(policy, after_watch(policy, step));
}

/* --- failures --- */

enum phase { A_LIST, AN_EXTRA_LIST, A_WATCH_LIST, A_WATCH, A_VERIFICATION, N_PHASES };

/* What is next. But for those that say NOW, after a wait. */
enum reaction {
    AGAIN,       /* the same: the page, the watch list, the watch, the verification */
    WITHOUT,     /* the same without what was refused: the page token, or the version */
    WITHOUT_NOW, /* - at once, if something was sent that can be left out; else as any failure */
    BY_LIST_NOW, /* the round, but not by a watch list */
    ROUND,       /* a new one */
    WATCH,       /* the watch; the list is given up, the verification comes behind it */
};

/* What happens on a failure while something is requested: all of it, but for what is counted on the
 * way (the third watch refused with 500 in a row is a ROUND, the second 404 a question). */
static const enum reaction reactions[KINF__N_FAILURES][N_PHASES] = {
    /* while:                       a list, an extra list, a watch list, a watch, a verification */
    [KINF__FAILURE_AWAY] = { AGAIN, WATCH, AGAIN, AGAIN, AGAIN },
    [KINF__FAILURE_TLS] = { AGAIN, WATCH, AGAIN, AGAIN, AGAIN },
    [KINF__FAILURE_TIMEOUT] = { AGAIN, WATCH, AGAIN, AGAIN, WATCH },
    [KINF__FAILURE_BUSY] = { AGAIN, WATCH, AGAIN, AGAIN, WATCH },
    [KINF__FAILURE_OURS] = { AGAIN, WATCH, AGAIN, AGAIN, AGAIN },
    [KINF__FAILURE_DENIED] = { AGAIN, WATCH, AGAIN, AGAIN, WATCH },
    [KINF__FAILURE_ABSENT] = { AGAIN, WATCH, AGAIN, AGAIN, WATCH },
    [KINF__FAILURE_SERVER] = { AGAIN, WATCH, BY_LIST_NOW, AGAIN, WATCH },
    [KINF__FAILURE_REFUSED] = { AGAIN, WATCH, BY_LIST_NOW, ROUND, WATCH },
    [KINF__FAILURE_UNSUPPORTED] = { AGAIN, WATCH, BY_LIST_NOW, ROUND, WATCH },
    [KINF__FAILURE_MALFORMED] = { WITHOUT_NOW, WITHOUT_NOW, BY_LIST_NOW, ROUND, WATCH },
    [KINF__FAILURE_EXPIRED] = { WITHOUT_NOW, WITHOUT_NOW, WITHOUT_NOW, ROUND, WATCH },
    [KINF__FAILURE_TOO_LARGE] = { WITHOUT_NOW, WITHOUT_NOW, WITHOUT_NOW, WITHOUT, WATCH },
};

static enum phase phase_of(const struct kinf__policy *policy,
                           const struct kinf__policy_event *event)
{
    if (event->type == KINF__POLICY_LIST_FAILED)
        return policy->list.is_extra ? AN_EXTRA_LIST : A_LIST;
    if (event->type == KINF__POLICY_VERIFY_FAILED)
        return A_VERIFICATION;
    return policy->state == KINF__POLICY_STREAMING ? A_WATCH_LIST : A_WATCH;
}

/* Returns whether there was something to leave out. */
static bool leave_out(struct kinf__policy *policy, enum phase phase, enum kinf__failure failure)
{
    struct kinf__policy_round *round = &policy->round;
    bool had_rv = phase == A_WATCH || policy->list.kind == KINF__POLICY_RELIST ||
                  (phase == A_WATCH_LIST && policy->rv[0] != '\0' && !round->is_newest);

    if (phase != A_WATCH && !is_first_page(policy)) {
        policy->list = (struct kinf__policy_list){ .kind = KINF__POLICY_RESCUE,
                                                   .is_extra = policy->list.is_extra };
        return true;
    }
    if (had_rv && phase != A_WATCH)
        round->is_rv_too_large = failure == KINF__FAILURE_TOO_LARGE;
    if (had_rv || phase == A_WATCH_LIST)
        round->is_newest = true;
    return had_rv;
}

/* The list that is under way, or the round. */
static enum kinf__policy_state resume(struct kinf__policy *policy, const struct step *step)
{
    if (!is_first_page(policy) || policy->list.kind == KINF__POLICY_RESCUE)
        return KINF__POLICY_LISTING;
    forget_list(policy);
    return round_state(policy, step->now_ms);
}

static void react(struct kinf__policy *policy, enum phase phase, enum kinf__failure failure,
                  const struct step *step)
{
    enum reaction reaction = reactions[failure][phase];
    enum kinf__policy_state then = KINF__POLICY_WATCHING;
    bool is_now;

    if (phase == A_WATCH && policy->round.n_500 >= KINF__POLICY_MAX_500)
        reaction = ROUND;
    if ((reaction == WITHOUT || reaction == WITHOUT_NOW) && !leave_out(policy, phase, failure))
        reaction = phase == AN_EXTRA_LIST ? WATCH : AGAIN;
    if (reaction == BY_LIST_NOW)
        policy->round.is_by_list = true;
    is_now = reaction == WITHOUT_NOW || reaction == BY_LIST_NOW;
    if (reaction == WATCH)
        give_up_list(policy, step);
    else if (reaction == AGAIN && phase == A_WATCH)
        then = after_watch(policy, step);
    else if (reaction == AGAIN && phase == A_VERIFICATION)
        then = KINF__POLICY_VERIFYING;
    else
        then = resume(policy, step);
    follow(policy, then, is_now ? AT_ONCE : AFTER_WAIT, step);
}

static bool is_cut(enum kinf__failure failure)
{
    return failure == KINF__FAILURE_AWAY || failure == KINF__FAILURE_TIMEOUT;
}

static void weigh_list_failure(struct kinf__policy *policy, enum kinf__failure failure,
                               const struct step *step)
{
    if (!is_cut(failure) || !step->event->has_begun || limit_of_list(policy) != 0)
        return;
    policy->is_list_cut = true;
    forget_list(policy);
}

static void weigh_stream_failure(struct kinf__policy *policy, enum kinf__failure failure,
                                 const struct step *step)
{
    bool is_refused = failure == KINF__FAILURE_EXPIRED || failure == KINF__FAILURE_TOO_LARGE;
    bool is_broken = policy->watch.is_accepted && reactions[failure][A_WATCH_LIST] == AGAIN &&
                     step->event->type != KINF__POLICY_WATCH_ERROR;

    if (is_refused || is_broken)
        count_stream(policy);
    if (failure == KINF__FAILURE_TOO_LARGE && (policy->rv[0] == '\0' || policy->round.is_newest))
        kinf__frozen_sign(&policy->frozen, step->now_ms);
    if (failure == KINF__FAILURE_UNSUPPORTED)
        policy->unsupported_until_ms = step->now_ms + KINF__POLICY_UNSUPPORTED_MS;
}

/* 500 is the server's own word. */
static bool is_outage(enum kinf__failure failure, const struct kinf_error *err)
{
    return is_cut(failure) || failure == KINF__FAILURE_TLS ||
           (failure == KINF__FAILURE_SERVER && err->http_status != 500);
}

static void weigh_watch_failure(struct kinf__policy *policy, enum kinf__failure failure,
                                const struct step *step)
{
    const struct kinf__policy_watch *watch = &policy->watch;
    unsigned *n_500 = &policy->round.n_500;

    if (watch->is_accepted && step->now_ms - watch->accepted_ms >= policy->backoff.max_ms)
        kinf__backoff_reset(&policy->backoff);
    *n_500 = step->event->err->http_status == 500 ? *n_500 + 1 : 0;
    if (is_outage(failure, step->event->err))
        note_outage(policy);
    if (*n_500 >= KINF__POLICY_MAX_500)
        kinf__frozen_sign(&policy->frozen, step->now_ms);
    /* Extra lists do then what a round would. */
    if (*n_500 >= KINF__POLICY_MAX_500 && policy->frozen.is_found)
        *n_500 = 0;
}

static void on_failed(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf_error *err = step->event->err;
    enum kinf__failure failure =
        kinf__failure_of(err, step->event->type == KINF__POLICY_WATCH_ERROR);
    enum phase phase = phase_of(policy, step->event);

    if (kinf__frozen_is_sign(err))
        kinf__frozen_sign(&policy->frozen, step->now_ms);
    switch (phase) {
    case A_LIST:
        weigh_list_failure(policy, failure, step);
        break;
    case A_WATCH_LIST:
        weigh_stream_failure(policy, failure, step);
        break;
    case A_WATCH:
        weigh_watch_failure(policy, failure, step);
        break;
    case A_VERIFICATION:
        policy->n_unverified++;
        break;
    default:
        break;
    }
    react(policy, phase, failure, step);
}

static void on_undecodable(struct kinf__policy *policy, const struct step *step)
{
    give_up_list(policy, step);
    follow(policy, round_state(policy, step->now_ms), AFTER_WAIT, step);
}

static void on_doubted(struct kinf__policy *policy, const struct step *step)
{
    policy->round.is_newest = true;
    follow(policy, round_state(policy, step->now_ms), AT_ONCE, step);
}

static void on_verified(struct kinf__policy *policy, const struct step *step)
{
    const char *rv = step->event->rv != NULL ? step->event->rv : "";

    policy->is_unverified = false;
    policy->seen_ms = step->now_ms;
    strcpy(policy->confirming_rv, rv);
    if (strcmp(rv, policy->rv) == 0)
        policy->is_unconfirmed = false;
    if (step->event->is_counted)
        kinf__frozen_verified(&policy->frozen);
    transition(policy, KINF__POLICY_WATCHING);
}

/* --- a resource that is gone --- */

/* Makes the next action a question, if a 404 was not the first in a row. */
static bool asks(struct kinf__policy *policy, const struct step *step)
{
    unsigned *n_404 = &policy->round.n_404;
    bool is_watch = policy->state == KINF__POLICY_WATCHING ||
                    policy->state == KINF__POLICY_VERIFYING || policy->list.is_extra;

    *n_404 = step->event->err->code == KINF_ERR_NOT_FOUND ? *n_404 + 1 : 0;
    if (*n_404 < KINF__POLICY_MAX_404 || policy->rv[0] == '\0' ||
        step->now_ms < policy->unasked_until_ms)
        return false;
    *n_404 = 0;
    policy->unasked_until_ms = step->now_ms + KINF__POLICY_ASK_MS;
    give_up_list(policy, step);
    policy->after_asking = is_watch ? KINF__POLICY_WATCHING : round_state(policy, step->now_ms);
    follow(policy, KINF__POLICY_ASKING, AFTER_WAIT, step);
    return true;
}

static void on_gone(struct kinf__policy *policy, const struct step *step)
{
    policy->rv[0] = '\0';
    policy->expected_bytes = -1;
    kinf__frozen_delivered(&policy->frozen, false);
    follow(policy, round_state(policy, step->now_ms), AFTER_WAIT, step);
}

/* --- the machine --- */

/* "For ever" among them. */
static void bound_times(struct kinf__policy_options *options)
{
    int64_t *const times_ms[] = { &options->watch_timeout_ms, &options->silent_after_ms,
                                  &options->backoff_base_ms, &options->backoff_max_ms };

    for (size_t i = 0; i < KINF__ARRAY_LEN(times_ms); i++) {
        if (*times_ms[i] > KINF__DURATION_MAX_MS)
            *times_ms[i] = KINF__DURATION_MAX_MS;
    }
}

void kinf__policy_init(struct kinf__policy *policy, const struct kinf__policy_options *options)
{
    struct kinf__policy_options *o = &policy->options;

    *policy = (struct kinf__policy){ .options = *options, .expected_bytes = -1 };
    policy->unsupported_until_ms = INT64_MIN;
    policy->unasked_until_ms = INT64_MIN;
    policy->state = round_state(policy, 0);
    bound_times(o);
    if (o->watch_timeout_ms == 0)
        o->watch_timeout_ms = WATCH_TIMEOUT_MS;
    if (o->silent_after_ms == 0)
        o->silent_after_ms = SILENT_AFTER_MS;
    if (o->backoff_base_ms == 0)
        o->backoff_base_ms = BACKOFF_BASE_MS;
    if (o->backoff_max_ms == 0)
        o->backoff_max_ms = BACKOFF_MAX_MS;
    if (o->backoff_max_ms < o->backoff_base_ms)
        o->backoff_max_ms = o->backoff_base_ms;
    kinf__backoff_init(&policy->backoff, o->backoff_base_ms, o->backoff_max_ms);
    kinf__frozen_init(&policy->frozen, o->silent_after_ms - o->silent_after_ms / 5);
}

void kinf__policy_resume(struct kinf__policy *policy, const char *rv, uint64_t n_bytes)
{
    strcpy(policy->rv, rv);
    policy->expected_bytes = (int64_t)n_bytes;
    policy->is_unconfirmed = true;
    note_outage(policy);
    transition(policy, KINF__POLICY_VERIFYING);
}

bool kinf__policy_is_confirmed(const struct kinf__policy *policy)
{
    return !policy->is_unconfirmed;
}

/* How long an answer may take that is to be not older than this version. */
static int64_t head_timeout(const struct kinf__policy *policy, const char *rv)
{
    int64_t timeout_ms = policy->options.silent_after_ms / 2;

    return rv[0] != '\0' && timeout_ms < KINF__POLICY_FUTURE_MS ? KINF__POLICY_FUTURE_MS
                                                                : timeout_ms;
}

static void next_list(struct kinf__policy *policy, struct kinf__policy_action *action)
{
    if (policy->list.kind == KINF__POLICY_UNDECIDED)
        policy->list.kind = choose_list(policy);
    action->type = KINF__DO_LIST;
    action->rv =
        policy->list.kind == KINF__POLICY_RELIST && is_first_page(policy) ? policy->rv : "";
    action->continue_token = policy->list.continue_token;
    action->list_rv = policy->list.rv;
    action->limit = limit_of_list(policy);
    action->is_extra = policy->list.is_extra;
    action->head_timeout_ms = head_timeout(policy, action->rv);
    action->idle_timeout_ms = policy->options.silent_after_ms / 2;
}

static int64_t silent_after(const struct kinf__policy *policy)
{
    int64_t silent_ms = policy->options.silent_after_ms;

    for (unsigned i = 0; i < policy->frozen.n_quiet && silent_ms < SILENT_AFTER_MS; i++)
        silent_ms = silent_ms < SILENT_AFTER_MS / 2 ? silent_ms * 2 : SILENT_AFTER_MS;
    return silent_ms;
}

static void next_watch(struct kinf__policy *policy, int64_t now_ms, uint64_t random,
                       struct kinf__policy_action *action)
{
    bool is_watch = policy->state == KINF__POLICY_WATCHING;
    uint64_t timeout_s = ((uint64_t)policy->options.watch_timeout_ms + 999) / 1000;
    int64_t silent_ms = silent_after(policy), jitter_ms = silent_ms * 15 / 100;

    action->type = is_watch ? KINF__DO_WATCH : KINF__DO_WATCH_LIST;
    action->rv = is_watch || !policy->round.is_newest ? policy->rv : "";
    if (is_watch && (policy->is_unverified || is_unseen(policy, now_ms)) &&
        !is_unverifiable(policy))
        timeout_s = (timeout_s + 9) / 10;
    action->timeout_s = (int64_t)(timeout_s + (random >> 32) % timeout_s);
    if (is_watch && policy->is_unconfirmed)
        action->timeout_s = KINF__POLICY_CONFIRM_S;
    policy->watch = (struct kinf__policy_watch){ .timeout_ms = action->timeout_s * 1000 };
    action->head_timeout_ms = head_timeout(policy, is_watch ? "" : action->rv);
    action->total_timeout_ms = policy->watch.timeout_ms + action->head_timeout_ms;
    action->idle_timeout_ms =
        silent_ms - jitter_ms + (int64_t)((uint32_t)random % (uint64_t)(2 * jitter_ms + 1));
}

static void next_verification(struct kinf__policy *policy, struct kinf__policy_action *action)
{
    int64_t timeout_ms = policy->options.silent_after_ms / 2;

    action->type = KINF__DO_VERIFY;
    action->rv = policy->rv;
    action->head_timeout_ms =
        timeout_ms < KINF__POLICY_VERIFY_MS ? timeout_ms : KINF__POLICY_VERIFY_MS;
    action->idle_timeout_ms = action->head_timeout_ms;
}

void kinf__policy_next(struct kinf__policy *policy, int64_t now_ms, uint64_t random,
                       struct kinf__policy_action *ret_action)
{
    struct kinf__policy_action action = { .rv = "", .continue_token = "", .list_rv = "" };

    if (policy->state == KINF__POLICY_WAITING && now_ms >= policy->wait_end_ms)
        transition(policy, policy->after_wait);
    switch (policy->state) {
    case KINF__POLICY_LISTING:
        next_list(policy, &action);
        break;
    case KINF__POLICY_STREAMING:
    case KINF__POLICY_WATCHING:
        next_watch(policy, now_ms, random, &action);
        break;
    case KINF__POLICY_VERIFYING:
        next_verification(policy, &action);
        break;
    case KINF__POLICY_ASKING:
        action.type = KINF__DO_ASK;
        action.rv = policy->rv;
        break;
    case KINF__POLICY_WAITING:
        action.type = KINF__DO_WAIT;
        action.wait_ms = policy->wait_end_ms - now_ms;
        break;
    case KINF__POLICY_STOPPED:
        action.type = KINF__DO_STOP;
        break;
    }
    *ret_action = action;
}

void kinf__policy_event(struct kinf__policy *policy, int64_t now_ms, uint64_t random,
                        const struct kinf__policy_event *event)
{
    const struct step step = { now_ms, random, event };

    if (policy->state == KINF__POLICY_STOPPED)
        return;
    policy->last_event = event->type;
    if (policy->state == KINF__POLICY_WATCHING && policy->watch.is_accepted)
        policy->seen_ms = now_ms;
    switch (event->type) {
    case KINF__POLICY_LIST_PAGE:
        on_list_page(policy, &step);
        break;
    case KINF__POLICY_INITIAL_END:
        on_initial_end(policy, &step);
        break;
    case KINF__POLICY_WATCH_ACCEPTED:
        on_watch_accepted(policy, &step);
        break;
    case KINF__POLICY_WATCH_RV:
        on_watch_rv(policy, &step);
        break;
    case KINF__POLICY_WATCH_ENDED:
        on_watch_ended(policy, &step);
        break;
    case KINF__POLICY_WATCH_SILENT:
        on_watch_silent(policy, &step);
        break;
    case KINF__POLICY_LIST_FAILED:
    case KINF__POLICY_WATCH_FAILED:
    case KINF__POLICY_VERIFY_FAILED:
        if (asks(policy, &step))
            break;
        __attribute__((fallthrough));
    case KINF__POLICY_WATCH_ERROR:
        on_failed(policy, &step);
        break;
    case KINF__POLICY_UNDECODABLE:
        on_undecodable(policy, &step);
        break;
    case KINF__POLICY_VERIFIED:
        on_verified(policy, &step);
        break;
    case KINF__POLICY_DOUBTED:
        on_doubted(policy, &step);
        break;
    case KINF__POLICY_GONE:
        on_gone(policy, &step);
        break;
    case KINF__POLICY_NOT_GONE:
        follow(policy, policy->after_asking, AFTER_WAIT, &step);
        break;
    case KINF__POLICY_STOP:
        transition(policy, KINF__POLICY_STOPPED);
        break;
    }
}

int64_t kinf__policy_wait_ms(const struct kinf__policy *policy, int64_t now_ms)
{
    return policy->state == KINF__POLICY_WAITING ? policy->wait_end_ms - now_ms : -1;
}

bool kinf__policy_stands_still(const struct kinf__policy *policy)
{
    return policy->frozen.is_found;
}

bool kinf__policy_is_by_list(const struct kinf__policy *policy)
{
    return policy->round.is_by_list;
}

bool kinf__policy_was_quiet(const struct kinf__policy *policy)
{
    return policy->watch.has_lasted && !policy->frozen.has_bookmarks;
}

bool kinf__policy_check(const struct kinf__policy *policy)
{
    const struct kinf__backoff *backoff = &policy->backoff;
    const struct kinf__policy_list *list = &policy->list;
    bool is_new_list = is_first_page(policy) && list->kind != KINF__POLICY_RESCUE;
    enum kinf__policy_state next =
        policy->state == KINF__POLICY_WAITING ? policy->after_wait : policy->state;

    if (backoff->delay_ms < backoff->base_ms || backoff->delay_ms > backoff->max_ms)
        return false;
    if (is_first_page(policy) != (list->rv[0] == '\0'))
        return false;
    if (!is_first_page(policy) && list->kind == KINF__POLICY_PROBE)
        return false;
    if (list->is_extra && (next != KINF__POLICY_LISTING || policy->rv[0] == '\0'))
        return false;
    if (policy->frozen.is_found && next == KINF__POLICY_STREAMING)
        return false;
    if (policy->round.n_500 >= KINF__POLICY_MAX_500 && next == KINF__POLICY_WATCHING)
        return false;
    if (policy->round.n_streams >= KINF__POLICY_MAX_STREAMS && !policy->round.is_by_list)
        return false;
    if (next == KINF__POLICY_VERIFYING && !policy->is_unverified)
        return false;
    if (next == KINF__POLICY_WATCHING || next == KINF__POLICY_VERIFYING)
        return is_new_list && policy->rv[0] != '\0';
    if (next == KINF__POLICY_STREAMING)
        return is_new_list && !policy->round.is_by_list &&
               policy->options.initial != KINF_INITIAL_LIST;
    return next == KINF__POLICY_LISTING || next == KINF__POLICY_ASKING ||
           next == KINF__POLICY_STOPPED;
}
