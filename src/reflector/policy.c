/*
 * The state machine of lists and watches. Neighbours: backoff.c and standstill.c below it,
 * reflector.c drives it.
 * Invariants: `continue_token` and `list_rv` are both empty or both set; `rv` changes only by a
 * complete round or by what a watch handed on, so asking again from it loses nothing.
 */
#include "reflector/policy.h"

#include <string.h>

#include <kinformer/object.h>

#include "base/compiler.h"

#define WATCH_TIMEOUT_MS 300000
#define SILENT_AFTER_MS  150000
#define BACKOFF_BASE_MS  800
#define BACKOFF_MAX_MS   30000

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

static void wait_for(struct kinf__policy *policy, enum kinf__policy_state then,
                     const struct step *step)
{
    const struct kinf_error *err = step->event->err;

    policy->wait_end_ms =
        step->now_ms + kinf__backoff_next(&policy->backoff, step->now_ms, step->random,
                                          err != NULL ? err->retry_after_ms : 0);
    policy->after_wait = then;
    transition(policy, KINF__POLICY_WAITING);
}

/* --- rounds --- */

static bool may_stream(const struct kinf__policy *policy, int64_t now_ms)
{
    if (policy->is_list_round || policy->standstill.is_found ||
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

static void wait_for_round(struct kinf__policy *policy, const struct step *step)
{
    wait_for(policy, round_state(policy, step->now_ms), step);
}

/* One time until a round succeeds; after that, as any failure. */
static void round_at_once(struct kinf__policy *policy, const struct step *step)
{
    if (policy->has_tried_at_once) {
        wait_for_round(policy, step);
        return;
    }
    policy->has_tried_at_once = true;
    transition(policy, round_state(policy, step->now_ms));
}

static void end_round(struct kinf__policy *policy, const char *rv, uint64_t n_bytes)
{
    strcpy(policy->rv, rv);
    policy->expected_bytes = (int64_t)n_bytes;
    policy->is_rv_refused = false;
    policy->is_rv_too_large = false;
    policy->is_extra = false;
    policy->has_tried_at_once = false;
    policy->is_list_round = false;
    policy->n_streams = 0;
    policy->n_500 = 0;
    policy->n_404 = 0;
    transition(policy, KINF__POLICY_WATCHING);
}

/* --- lists --- */

static void start_list_over(struct kinf__policy *policy)
{
    policy->continue_token[0] = '\0';
    policy->list_rv[0] = '\0';
}

static bool is_first_page(const struct kinf__policy *policy)
{
    return policy->continue_token[0] == '\0';
}

/* With a selector, pages are no better than one piece while the watch cache is not there. */
static bool wants_pages(const struct kinf__policy *policy)
{
    return policy->is_list_cut || (policy->standstill.is_found && !policy->options.has_selector) ||
           (policy->is_extra && policy->expected_bytes > KINF__POLICY_MAX_LIST_BYTES);
}

/* Whether the page that is next shall tell how large the state is. */
static bool is_probe(const struct kinf__policy *policy)
{
    const struct kinf__policy_options *options = &policy->options;

    return options->initial == KINF_INITIAL_AUTO && options->page_size == 0 &&
           !options->has_selector && policy->expected_bytes < 0 && !wants_pages(policy);
}

static const char *rv_of_list(const struct kinf__policy *policy)
{
    bool newest = policy->is_rv_refused || policy->is_list_cut || policy->in_one_piece ||
                  policy->is_extra || policy->standstill.is_found;

    return newest || !is_first_page(policy) ? "" : policy->rv;
}

static size_t limit_of_list(const struct kinf__policy *policy)
{
    if (policy->in_one_piece || rv_of_list(policy)[0] != '\0')
        return 0;
    if (is_probe(policy))
        return KINF__POLICY_PROBE_SIZE;
    if (policy->options.page_size != 0)
        return policy->options.page_size;
    return wants_pages(policy) ? KINF__POLICY_PAGE_SIZE : 0;
}

/* The size of the whole state, from its first objects. A server that does not count says nothing
 * of it: then it is taken to be small, and found out if it is not. */
static int64_t estimate_bytes(const struct kinf__policy_event *page)
{
    double per_item;

    if (page->n_remaining < 0 || page->n_items == 0)
        return 0;
    per_item = (double)page->n_bytes / (double)page->n_items;
    return (int64_t)(per_item * ((double)page->n_items + (double)page->n_remaining));
}

/* A server that has not reached the last version although it has handed out this one: its watch
 * cache is behind its own state. If it went back, it is another state. */
static void weigh_list(struct kinf__policy *policy, const struct step *step)
{
    int order = 1;
    bool is_comparable = kinf_rv_compare(policy->list_rv, policy->rv, &order, NULL) == 0;

    if (policy->is_rv_too_large && is_comparable && order >= 0)
        kinf__standstill_sign(&policy->standstill, step->now_ms);
    kinf__standstill_listed(&policy->standstill, step->event->has_news && order >= 0, step->now_ms);
}

static void on_list_page(struct kinf__policy *policy, const struct step *step)
{
    const char *token = step->event->continue_token;
    bool is_last = token == NULL || token[0] == '\0';

    if (!is_last && is_probe(policy)) {
        policy->expected_bytes = estimate_bytes(step->event);
        transition(policy, round_state(policy, step->now_ms));
        return;
    }
    if (is_first_page(policy))
        strcpy(policy->list_rv, step->event->rv);
    if (!is_last) {
        strcpy(policy->continue_token, token);
        transition(policy, KINF__POLICY_LISTING);
        return;
    }
    policy->in_one_piece = false;
    weigh_list(policy, step);
    end_round(policy, policy->list_rv, step->event->n_bytes);
    start_list_over(policy);
}

static bool is_rv_refusal(const struct kinf_error *err)
{
    return err->code == KINF_ERR_EXPIRED || err->code == KINF_ERR_RV_TOO_LARGE;
}

static bool is_cut(const struct kinf_error *err)
{
    return err->code == KINF_ERR_NETWORK || err->code == KINF_ERR_TIMEOUT ||
           err->code == KINF_ERR_TRUNCATED;
}

static void give_up_list(struct kinf__policy *policy, const struct step *step)
{
    if (policy->is_extra)
        kinf__standstill_list_failed(&policy->standstill, step->now_ms);
    policy->is_extra = false;
    policy->in_one_piece = false;
    start_list_over(policy);
}

static void on_list_failed(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf_error *err = step->event->err;
    bool is_refused = is_rv_refusal(err) || err->http_status == 400;

    if (kinf__standstill_is_sign(err))
        kinf__standstill_sign(&policy->standstill, step->now_ms);
    if (is_refused && !is_first_page(policy)) {
        start_list_over(policy);
        policy->in_one_piece = true;
        transition(policy, KINF__POLICY_LISTING);
        return;
    }
    if (policy->is_extra) {
        give_up_list(policy, step);
        wait_for(policy, KINF__POLICY_WATCHING, step);
        return;
    }
    if (is_refused && rv_of_list(policy)[0] != '\0') {
        policy->is_rv_refused = true;
        policy->is_rv_too_large = err->code == KINF_ERR_RV_TOO_LARGE;
        round_at_once(policy, step);
        return;
    }
    if (is_cut(err) && step->event->has_begun && limit_of_list(policy) == 0) {
        policy->is_list_cut = true;
        policy->in_one_piece = false;
    }
    if (is_first_page(policy) && !policy->in_one_piece)
        wait_for_round(policy, step);
    else
        wait_for(policy, KINF__POLICY_LISTING, step);
}

/* --- watch lists --- */

static void on_initial_end(struct kinf__policy *policy, const struct step *step)
{
    policy->has_brought = true;
    policy->has_newer_rv = true;
    kinf__standstill_delivered(&policy->standstill, false);
    end_round(policy, step->event->rv, step->event->n_bytes);
}

/* A watch list brought no bookmark. */
static void count_stream(struct kinf__policy *policy)
{
    if (++policy->n_streams >= KINF__POLICY_MAX_STREAMS)
        policy->is_list_round = true;
}

static void on_stream_ended(struct kinf__policy *policy, const struct step *step)
{
    bool is_short = step->now_ms - policy->accepted_ms < KINF__POLICY_SHORT_WATCH_MS;

    count_stream(policy);
    if (is_short)
        wait_for_round(policy, step);
    else
        transition(policy, round_state(policy, step->now_ms));
}

static void on_stream_rv_refused(struct kinf__policy *policy, const struct step *step)
{
    bool had_rv = policy->rv[0] != '\0' && !policy->is_rv_refused;
    bool is_too_large = step->event->err->code == KINF_ERR_RV_TOO_LARGE;

    count_stream(policy);
    if (is_too_large && had_rv)
        policy->is_rv_too_large = true;
    else if (is_too_large)
        kinf__standstill_sign(&policy->standstill, step->now_ms);
    policy->is_rv_refused = true;
    if (had_rv)
        round_at_once(policy, step);
    else
        wait_for_round(policy, step);
}

/* Whether a list would fare no better. */
static bool is_worth_streaming_again(const struct kinf_error *err, bool is_error_event)
{
    switch (err->code) {
    case KINF_ERR_TOO_MANY_REQUESTS:
        return true;
    case KINF_ERR_NETWORK:
    case KINF_ERR_TLS:
    case KINF_ERR_TIMEOUT:
    case KINF_ERR_TRUNCATED:
    case KINF_ERR_NO_MEMORY:
    case KINF_ERR_SYSTEM:
    case KINF_ERR_UNAUTHORIZED:
    case KINF_ERR_FORBIDDEN:
    case KINF_ERR_NOT_FOUND:
        return !is_error_event;
    default:
        return false;
    }
}

static void on_stream_failed(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf_error *err = step->event->err;
    bool is_error_event = step->event->type == KINF__POLICY_WATCH_ERROR;

    if (kinf__standstill_is_sign(err))
        kinf__standstill_sign(&policy->standstill, step->now_ms);
    if (is_rv_refusal(err)) {
        on_stream_rv_refused(policy, step);
    } else if (is_worth_streaming_again(err, is_error_event)) {
        if (policy->is_accepted && !is_error_event)
            count_stream(policy);
        wait_for_round(policy, step);
    } else {
        if (err->http_status == 422)
            policy->unsupported_until_ms = step->now_ms + KINF__POLICY_UNSUPPORTED_MS;
        policy->is_list_round = true;
        round_at_once(policy, step);
    }
}

/* --- watches --- */

static void on_watch_accepted(struct kinf__policy *policy, const struct step *step)
{
    policy->is_accepted = true;
    policy->accepted_ms = step->now_ms;
    policy->n_404 = 0;
}

static void on_watch_rv(struct kinf__policy *policy, const struct step *step)
{
    const char *rv = step->event->rv;

    if (policy->state != KINF__POLICY_WATCHING)
        return;
    policy->has_brought = true;
    kinf__standstill_delivered(&policy->standstill, step->event->is_bookmark);
    if (rv[0] == '\0' || strlen(rv) >= sizeof policy->rv || strcmp(rv, policy->rv) == 0)
        return;
    strcpy(policy->rv, rv);
    policy->has_newer_rv = true;
    policy->n_500 = 0;
}

/* What follows a watch that is not the reason for a round. */
static enum kinf__policy_state after_watch(struct kinf__policy *policy, const struct step *step)
{
    if (policy->has_brought || !kinf__standstill_begin_list(&policy->standstill, step->now_ms))
        return KINF__POLICY_WATCHING;
    policy->is_extra = true;
    return KINF__POLICY_LISTING;
}

static void on_watch_ended(struct kinf__policy *policy, const struct step *step)
{
    enum kinf__policy_state then = after_watch(policy, step);

    policy->n_500 = 0;
    if (!policy->has_newer_rv && step->now_ms - policy->accepted_ms < KINF__POLICY_SHORT_WATCH_MS)
        wait_for(policy, then, step);
    else
        transition(policy, then);
}

static void on_watch_silent(struct kinf__policy *policy, const struct step *step)
{
    if (!policy->has_brought)
        kinf__standstill_silent(&policy->standstill);
    transition(policy, after_watch(policy, step));
}

/* Whether the same watch may succeed later. */
static bool is_worth_watching_again(const struct kinf_error *err, bool is_error_event)
{
    return is_worth_streaming_again(err, is_error_event) ||
           (err->code == KINF_ERR_SERVER && err->http_status >= 500);
}

static bool is_outage(const struct kinf_error *err)
{
    return is_cut(err) || err->code == KINF_ERR_TLS;
}

static void weigh_watch_failure(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf_error *err = step->event->err;

    policy->n_500 = err->http_status == 500 ? policy->n_500 + 1 : 0;
    if (is_outage(err))
        kinf__standstill_outage(&policy->standstill);
    if (kinf__standstill_is_sign(err) || policy->n_500 >= KINF__POLICY_MAX_500)
        kinf__standstill_sign(&policy->standstill, step->now_ms);
    /* Extra lists do then what a round would. */
    if (policy->n_500 >= KINF__POLICY_MAX_500 && policy->standstill.is_found)
        policy->n_500 = 0;
}

static void on_watch_failed(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf_error *err = step->event->err;
    bool again = is_worth_watching_again(err, step->event->type == KINF__POLICY_WATCH_ERROR);

    if (policy->is_accepted && step->now_ms - policy->accepted_ms >= policy->backoff.max_ms)
        kinf__backoff_reset(&policy->backoff);
    weigh_watch_failure(policy, step);
    if (policy->n_500 >= KINF__POLICY_MAX_500)
        again = false;
    if (err->code == KINF_ERR_RV_TOO_LARGE)
        policy->is_rv_refused = true;
    if (again)
        wait_for(policy, after_watch(policy, step), step);
    else
        wait_for_round(policy, step);
}

static void on_undecodable(struct kinf__policy *policy, const struct step *step)
{
    give_up_list(policy, step);
    wait_for_round(policy, step);
}

/* --- a resource that is gone --- */

/* Makes the next action a question, if a 404 was not the first in a row. */
static bool asks(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf_error *err = step->event->err;
    bool is_watch = policy->state == KINF__POLICY_WATCHING || policy->is_extra;

    policy->n_404 = err->code == KINF_ERR_NOT_FOUND ? policy->n_404 + 1 : 0;
    if (policy->n_404 < KINF__POLICY_MAX_404 || policy->rv[0] == '\0' ||
        step->now_ms < policy->unasked_until_ms)
        return false;
    policy->n_404 = 0;
    policy->unasked_until_ms = step->now_ms + KINF__POLICY_ASK_MS;
    give_up_list(policy, step);
    policy->after_asking = is_watch ? KINF__POLICY_WATCHING : round_state(policy, step->now_ms);
    wait_for(policy, KINF__POLICY_ASKING, step);
    return true;
}

static void on_gone(struct kinf__policy *policy, const struct step *step)
{
    policy->rv[0] = '\0';
    policy->expected_bytes = -1;
    kinf__standstill_delivered(&policy->standstill, false);
    wait_for_round(policy, step);
}

/* --- the machine --- */

void kinf__policy_init(struct kinf__policy *policy, const struct kinf__policy_options *options)
{
    struct kinf__policy_options *o = &policy->options;

    *policy = (struct kinf__policy){ .options = *options, .expected_bytes = -1 };
    policy->unsupported_until_ms = INT64_MIN;
    policy->unasked_until_ms = INT64_MIN;
    policy->state = round_state(policy, 0);
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
    kinf__standstill_init(&policy->standstill, o->silent_after_ms - o->silent_after_ms / 5);
}

static void next_list(const struct kinf__policy *policy, struct kinf__policy_action *action)
{
    action->type = KINF__DO_LIST;
    action->rv = rv_of_list(policy);
    action->continue_token = policy->continue_token;
    action->list_rv = policy->list_rv;
    action->limit = limit_of_list(policy);
    action->head_timeout_ms = policy->options.silent_after_ms / 2;
    action->idle_timeout_ms = policy->options.silent_after_ms / 2;
}

static int64_t silent_after(const struct kinf__policy *policy)
{
    int64_t silent_ms = policy->options.silent_after_ms;

    for (unsigned i = 0; i < policy->standstill.n_quiet && silent_ms < SILENT_AFTER_MS; i++)
        silent_ms = silent_ms < SILENT_AFTER_MS / 2 ? silent_ms * 2 : SILENT_AFTER_MS;
    return silent_ms;
}

static void next_watch(struct kinf__policy *policy, uint64_t random,
                       struct kinf__policy_action *action)
{
    bool is_watch = policy->state == KINF__POLICY_WATCHING;
    uint64_t timeout_s = ((uint64_t)policy->options.watch_timeout_ms + 999) / 1000;
    int64_t silent_ms = silent_after(policy), jitter_ms = silent_ms * 15 / 100;

    policy->is_accepted = false;
    policy->has_brought = false;
    policy->has_newer_rv = false;
    action->type = is_watch ? KINF__DO_WATCH : KINF__DO_WATCH_LIST;
    action->rv = is_watch || !policy->is_rv_refused ? policy->rv : "";
    action->timeout_s = (int64_t)(timeout_s + (random >> 32) % timeout_s);
    action->head_timeout_ms = policy->options.silent_after_ms / 2;
    action->idle_timeout_ms =
        silent_ms - jitter_ms + (int64_t)((uint32_t)random % (uint64_t)(2 * jitter_ms + 1));
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
        next_watch(policy, random, &action);
        break;
    case KINF__POLICY_ASKING:
        action.type = KINF__DO_ASK;
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
    bool is_streaming = policy->state == KINF__POLICY_STREAMING;

    if (policy->state == KINF__POLICY_STOPPED)
        return;
    policy->last_event = event->type;
    switch (event->type) {
    case KINF__POLICY_LIST_PAGE:
        on_list_page(policy, &step);
        break;
    case KINF__POLICY_LIST_FAILED:
        if (!asks(policy, &step))
            on_list_failed(policy, &step);
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
        (is_streaming ? on_stream_ended : on_watch_ended)(policy, &step);
        break;
    case KINF__POLICY_WATCH_SILENT:
        (is_streaming ? on_stream_ended : on_watch_silent)(policy, &step);
        break;
    case KINF__POLICY_WATCH_FAILED:
        if (asks(policy, &step))
            break;
        __attribute__((fallthrough));
    case KINF__POLICY_WATCH_ERROR:
        (is_streaming ? on_stream_failed : on_watch_failed)(policy, &step);
        break;
    case KINF__POLICY_UNDECODABLE:
        on_undecodable(policy, &step);
        break;
    case KINF__POLICY_GONE:
        on_gone(policy, &step);
        break;
    case KINF__POLICY_NOT_GONE:
        wait_for(policy, policy->after_asking, &step);
        break;
    case KINF__POLICY_STOP:
        transition(policy, KINF__POLICY_STOPPED);
        break;
    }
}

bool kinf__policy_check(const struct kinf__policy *policy)
{
    const struct kinf__backoff *backoff = &policy->backoff;
    enum kinf__policy_state next =
        policy->state == KINF__POLICY_WAITING ? policy->after_wait : policy->state;

    if (backoff->delay_ms < backoff->base_ms || backoff->delay_ms > backoff->max_ms)
        return false;
    if (is_first_page(policy) != (policy->list_rv[0] == '\0'))
        return false;
    if (!is_first_page(policy) && policy->in_one_piece)
        return false;
    if (policy->is_extra && (next != KINF__POLICY_LISTING || policy->rv[0] == '\0'))
        return false;
    if (policy->standstill.is_found && next == KINF__POLICY_STREAMING)
        return false;
    if (policy->n_500 >= KINF__POLICY_MAX_500 && next == KINF__POLICY_WATCHING)
        return false;
    if (policy->n_streams >= KINF__POLICY_MAX_STREAMS && !policy->is_list_round)
        return false;
    if (next == KINF__POLICY_WATCHING)
        return is_first_page(policy) && policy->rv[0] != '\0' && !policy->in_one_piece;
    if (next == KINF__POLICY_STREAMING)
        return is_first_page(policy) && !policy->in_one_piece && !policy->is_list_round &&
               policy->options.initial != KINF_INITIAL_LIST;
    return next == KINF__POLICY_LISTING || next == KINF__POLICY_ASKING ||
           next == KINF__POLICY_STOPPED;
}
