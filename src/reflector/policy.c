/*
 * The state machine of lists and watches. Neighbours: backoff.c below it, reflector.c drives it.
 * Invariants: `continue_token` and `list_rv` are both empty or both set; `rv` changes only by a
 * complete list or by what a watch handed on, so asking again from it loses nothing.
 */
#include "reflector/policy.h"

#include <string.h>

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

static const char *rv_of_list(const struct kinf__policy *policy)
{
    bool newest = policy->is_rv_refused || policy->in_pages || policy->in_one_piece;

    return newest || !is_first_page(policy) ? "" : policy->rv;
}

static size_t limit_of_list(const struct kinf__policy *policy)
{
    if (policy->in_one_piece || rv_of_list(policy)[0] != '\0')
        return 0;
    if (policy->options.page_size != 0)
        return policy->options.page_size;
    return policy->in_pages ? KINF__POLICY_PAGE_SIZE : 0;
}

static void on_list_page(struct kinf__policy *policy, const struct step *step)
{
    const char *token = step->event->continue_token;

    if (is_first_page(policy))
        strcpy(policy->list_rv, step->event->rv);
    if (token != NULL && token[0] != '\0') {
        strcpy(policy->continue_token, token);
        transition(policy, KINF__POLICY_LISTING);
        return;
    }
    strcpy(policy->rv, policy->list_rv);
    start_list_over(policy);
    policy->is_rv_refused = false;
    policy->has_listed_at_once = false;
    policy->in_one_piece = false;
    policy->n_500 = 0;
    transition(policy, KINF__POLICY_WATCHING);
}

static bool is_rv_refusal(const struct kinf_error *err)
{
    return err->code == KINF_ERR_EXPIRED || err->code == KINF_ERR_RV_TOO_LARGE ||
           err->http_status == 400;
}

static bool is_cut(const struct kinf_error *err)
{
    return err->code == KINF_ERR_NETWORK || err->code == KINF_ERR_TIMEOUT ||
           err->code == KINF_ERR_TRUNCATED;
}

static void on_list_failed(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf_error *err = step->event->err;

    if (is_rv_refusal(err) && !is_first_page(policy)) {
        start_list_over(policy);
        policy->in_one_piece = true;
        transition(policy, KINF__POLICY_LISTING);
        return;
    }
    if (is_rv_refusal(err) && rv_of_list(policy)[0] != '\0') {
        policy->is_rv_refused = true;
        if (!policy->has_listed_at_once) {
            policy->has_listed_at_once = true;
            transition(policy, KINF__POLICY_LISTING);
            return;
        }
    }
    if (is_cut(err) && step->event->has_begun && limit_of_list(policy) == 0) {
        policy->in_pages = true;
        policy->in_one_piece = false;
    }
    wait_for(policy, KINF__POLICY_LISTING, step);
}

/* --- watches --- */

static void on_watch_accepted(struct kinf__policy *policy, const struct step *step)
{
    policy->is_accepted = true;
    policy->accepted_ms = step->now_ms;
}

static void on_watch_rv(struct kinf__policy *policy, const struct step *step)
{
    const char *rv = step->event->rv;

    if (rv[0] == '\0' || strlen(rv) >= sizeof policy->rv || strcmp(rv, policy->rv) == 0)
        return;
    strcpy(policy->rv, rv);
    policy->has_newer_rv = true;
    policy->n_500 = 0;
}

static void on_watch_ended(struct kinf__policy *policy, const struct step *step)
{
    policy->n_500 = 0;
    if (!policy->has_newer_rv && step->now_ms - policy->accepted_ms < KINF__POLICY_SHORT_WATCH_MS)
        wait_for(policy, KINF__POLICY_WATCHING, step);
    else
        transition(policy, KINF__POLICY_WATCHING);
}

/* Whether the same watch may succeed later. */
static bool is_worth_watching_again(const struct kinf_error *err, bool is_error_event)
{
    switch (err->code) {
    case KINF_ERR_TOO_MANY_REQUESTS:
        return true;
    case KINF_ERR_SERVER:
        return err->http_status >= 500;
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

static void on_watch_failed(struct kinf__policy *policy, const struct step *step)
{
    const struct kinf_error *err = step->event->err;
    bool again = is_worth_watching_again(err, step->event->type == KINF__POLICY_WATCH_ERROR);

    if (policy->is_accepted && step->now_ms - policy->accepted_ms >= policy->backoff.max_ms)
        kinf__backoff_reset(&policy->backoff);
    policy->n_500 = err->http_status == 500 ? policy->n_500 + 1 : 0;
    if (policy->n_500 >= KINF__POLICY_MAX_500)
        again = false;
    if (err->code == KINF_ERR_RV_TOO_LARGE)
        policy->is_rv_refused = true;
    wait_for(policy, again ? KINF__POLICY_WATCHING : KINF__POLICY_LISTING, step);
}

static void on_undecodable(struct kinf__policy *policy, const struct step *step)
{
    start_list_over(policy);
    wait_for(policy, KINF__POLICY_LISTING, step);
}

/* --- the machine --- */

void kinf__policy_init(struct kinf__policy *policy, const struct kinf__policy_options *options)
{
    struct kinf__policy_options *o = &policy->options;

    *policy = (struct kinf__policy){ .options = *options, .state = KINF__POLICY_LISTING };
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

static void next_watch(struct kinf__policy *policy, uint64_t random,
                       struct kinf__policy_action *action)
{
    uint64_t timeout_s = ((uint64_t)policy->options.watch_timeout_ms + 999) / 1000;
    int64_t silent_ms = policy->options.silent_after_ms;

    policy->is_accepted = false;
    policy->has_newer_rv = false;
    action->type = KINF__DO_WATCH;
    action->rv = policy->rv;
    action->timeout_s = (int64_t)(timeout_s + (random >> 32) % timeout_s);
    action->head_timeout_ms = silent_ms / 2;
    action->idle_timeout_ms = silent_ms - silent_ms / 5 +
                              (int64_t)((uint32_t)random % (uint64_t)(2 * (silent_ms / 5) + 1));
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
    case KINF__POLICY_WATCHING:
        next_watch(policy, random, &action);
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
    switch (event->type) {
    case KINF__POLICY_LIST_PAGE:
        on_list_page(policy, &step);
        break;
    case KINF__POLICY_LIST_FAILED:
        on_list_failed(policy, &step);
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
        transition(policy, KINF__POLICY_WATCHING);
        break;
    case KINF__POLICY_WATCH_FAILED:
    case KINF__POLICY_WATCH_ERROR:
        on_watch_failed(policy, &step);
        break;
    case KINF__POLICY_UNDECODABLE:
        on_undecodable(policy, &step);
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
    if (policy->n_500 >= KINF__POLICY_MAX_500 && next == KINF__POLICY_WATCHING)
        return false;
    if (next == KINF__POLICY_WATCHING)
        return is_first_page(policy) && policy->rv[0] != '\0' && !policy->in_one_piece;
    return next == KINF__POLICY_LISTING || next == KINF__POLICY_STOPPED;
}
