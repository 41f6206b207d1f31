/*
 * Deriving an informer's state. Neighbours: the reflector reports phases through informer.c, which
 * asks here for kinf_informer_status().
 */
#include "informer/state.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/misuse.h"
#include "base/rfc3339.h"

const char *kinf_informer_state_to_string(enum kinf_informer_state state)
{
    static const char *const names[] = {
#define X(enumerator, name, meaning) [enumerator] = name,
        KINF_INFORMER_STATES(X)
#undef X
    };

    return (size_t)state < KINF__ARRAY_LEN(names) ? names[state] : "unknown";
}

static const char *const initial_names[] = {
#define X(initial, name) [initial] = name,
    KINF_INITIALS(X)
#undef X
};

const char *kinf_initial_to_string(enum kinf_initial initial)
{
    return (size_t)initial < KINF__ARRAY_LEN(initial_names) ? initial_names[initial] : "unknown";
}

bool kinf_initial_parse(const char *text, enum kinf_initial *ret_initial)
{
    KINF__REFUSE_NULL(NULL, false, text, ret_initial);
    for (size_t i = 0; i < KINF__ARRAY_LEN(initial_names); i++) {
        if (strcmp(text, initial_names[i]) == 0) {
            *ret_initial = (enum kinf_initial)i;
            return true;
        }
    }
    return false;
}

void kinf__state_init(struct kinf__state *state, int64_t silent_after_ms, int64_t now_ms)
{
    if (silent_after_ms > KINF__DURATION_MAX_MS)
        silent_after_ms = KINF__DURATION_MAX_MS;
    *state = (struct kinf__state){ .begun_ms = now_ms,
                                   .stale_after_ms = silent_after_ms + silent_after_ms / 5 };
}

/* Whether asking again in the same way is of no use, as far as the server is concerned. */
static bool is_refusal(const struct kinf_error *err)
{
    switch (kinf__failure_of(err, false)) {
    case KINF__FAILURE_DENIED:
    case KINF__FAILURE_ABSENT:
    case KINF__FAILURE_MALFORMED:
    case KINF__FAILURE_UNSUPPORTED:
        return true;
    case KINF__FAILURE_REFUSED:
        return err->code == KINF_ERR_SERVER && err->http_status >= 400 && err->http_status != 408;
    default:
        return false;
    }
}

static void note_error(struct kinf__state *state, const struct kinf_error *err, int64_t now_ms)
{
    state->n_refusals = is_refusal(err) ? state->n_refusals + 1 : 0;
    if (state->error.code != err->code)
        state->error_since_ms = now_ms;
    state->error = *err;
    kinf__last_errors_note(&state->last_errors, err->message, now_ms);
}

void kinf__state_phase(struct kinf__state *state, enum kinf__reflector_phase phase,
                       const struct kinf_error *err, int64_t now_ms)
{
    if (!state->has_phase || state->phase != phase)
        state->phase_since_ms = now_ms;
    state->has_phase = true;
    state->phase = phase;
    if (phase == KINF__REFLECTOR_WAITING && err != NULL)
        note_error(state, err, now_ms);
}

void kinf__state_contact(struct kinf__state *state)
{
    state->error = (struct kinf_error)KINF_ERROR_INIT;
    state->n_refusals = 0;
}

void kinf__state_frozen(struct kinf__state *state, const struct kinf_error *err, int64_t now_ms)
{
    if (err == NULL) {
        state->frozen = (struct kinf_error)KINF_ERROR_INIT;
        return;
    }
    state->frozen = *err;
    kinf__last_errors_note(&state->last_errors, err->message, now_ms);
    state->frozen_since_ms = now_ms;
}

void kinf__state_quarantine(struct kinf__state *state, const char *key,
                            const struct kinf_error *err, uint64_t n_quarantined, int64_t now_ms)
{
    if (n_quarantined == 1)
        state->degraded_since_ms = now_ms;
    snprintf(state->quarantine, sizeof state->quarantine, "object %s is left out: %s",
             key[0] != '\0' ? key : "without a key", err->message);
    kinf__last_errors_note(&state->last_errors, state->quarantine, now_ms);
}

void kinf__state_shard_ignored(struct kinf__state *state, const char *key, int64_t now_ms)
{
    state->shard_ignored_since_ms = key != NULL ? now_ms : 0;
    if (key != NULL)
        snprintf(state->shard_reason, sizeof state->shard_reason,
                 "the server ignores the shard selector: it sent %s; what is outside is left out",
                 key);
}

void kinf__state_synced(struct kinf__state *state, int64_t now_ms)
{
    if (state->has_synced)
        return;
    state->has_synced = true;
    state->synced_ms = now_ms;
}

void kinf__state_stopped(struct kinf__state *state, int64_t now_ms)
{
    state->is_stopped = true;
    state->stopped_ms = now_ms;
}

const struct kinf_error *kinf__state_refusal(const struct kinf__state *state)
{
    return !state->has_synced && state->n_refusals >= 2 ? &state->error : NULL;
}

/* --- what is worth a line --- */

static int kind_of(const struct kinf_error *err)
{
    switch (err->code) {
    case KINF_ERR_UNAUTHORIZED:
    case KINF_ERR_FORBIDDEN:
        return KINF_STATE_FORBIDDEN;
    case KINF_ERR_NOT_FOUND:
        return KINF_STATE_ABSENT;
    default:
        return KINF_STATE_BACKING_OFF;
    }
}

enum kinf_log_level kinf__trouble_level(struct kinf__trouble *trouble, const struct kinf_error *err,
                                        int64_t now_ms)
{
    enum kinf__failure failure = kinf__failure_of(err, false);
    struct kinf__log_limit *limit;
    uint64_t n_suppressed;

    if (failure == KINF__FAILURE_EXPIRED)
        return KINF_LOG_DEBUG;
    if (failure == KINF__FAILURE_BUSY)
        failure = KINF__FAILURE_AWAY;
    limit = &trouble->limits[failure];
    limit->interval_ms = KINF__TROUBLE_INTERVAL_MS;
    trouble->is_told = true;
    return kinf__log_limit_pass(limit, now_ms, &n_suppressed) ? KINF_LOG_WARN : KINF_LOG_DEBUG;
}

bool kinf__trouble_end(struct kinf__trouble *trouble)
{
    bool was_told = trouble->is_told;

    *trouble = (struct kinf__trouble){ .is_told = false };
    return was_told;
}

/* --- deriving --- */

static void put(struct kinf_informer_status *status, enum kinf_informer_state state,
                int64_t since_ms, const char *reason)
{
    status->state = state;
    status->state_since_ms = since_ms;
    snprintf(status->reason, sizeof status->reason, "%s", reason);
}

static int64_t later(int64_t a_ms, int64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

static bool is_standing_still(const struct kinf__state *state)
{
    return state->has_synced && state->frozen.code != 0;
}

static void derive_degraded(const struct kinf__state *state,
                            const struct kinf__state_counts *counts, int64_t live_since_ms,
                            struct kinf_informer_status *status)
{
    char reason[KINF_ERROR_MESSAGE_SIZE];

    if (state->shard_ignored_since_ms != 0) {
        put(status, KINF_STATE_DEGRADED, later(live_since_ms, state->shard_ignored_since_ms),
            state->shard_reason);
        return;
    }
    if (counts->n_quarantined != 0) {
        put(status, KINF_STATE_DEGRADED, later(live_since_ms, state->degraded_since_ms),
            state->quarantine);
        return;
    }
    snprintf(reason, sizeof reason, "index functions failed %llu times",
             (unsigned long long)counts->n_failed_index_values);
    put(status, KINF_STATE_DEGRADED, live_since_ms, reason);
}

static void derive_watching(const struct kinf__state *state,
                            const struct kinf__state_counts *counts, int64_t now_ms,
                            struct kinf_informer_status *status)
{
    int64_t live_since_ms = later(state->phase_since_ms, state->synced_ms);
    int64_t stale_ms = later(counts->last_contact_ms, state->synced_ms) + state->stale_after_ms;

    if (!state->has_synced)
        put(status, KINF_STATE_LISTING, state->phase_since_ms, "");
    else if (is_standing_still(state))
        put(status, KINF_STATE_STALE, state->frozen_since_ms, state->frozen.message);
    else if (now_ms > stale_ms)
        put(status, KINF_STATE_STALE, stale_ms, state->error.message);
    else if (state->shard_ignored_since_ms != 0 || counts->n_quarantined != 0 ||
             counts->n_failed_index_values != 0)
        derive_degraded(state, counts, live_since_ms, status);
    else
        put(status, KINF_STATE_LIVE, live_since_ms, "");
}

/* Retries of a refused request are lists too, but it stays refused until one succeeds. */
static void derive_requesting(const struct kinf__state *state, struct kinf_informer_status *status)
{
    int kind = kind_of(&state->error);

    if (kind != KINF_STATE_BACKING_OFF)
        put(status, (enum kinf_informer_state)kind, state->error_since_ms, state->error.message);
    else if (is_standing_still(state))
        put(status, KINF_STATE_STALE, state->frozen_since_ms, state->frozen.message);
    else
        put(status,
            state->phase == KINF__REFLECTOR_LISTING ? KINF_STATE_LISTING : KINF_STATE_BACKING_OFF,
            state->phase_since_ms, state->error.message);
}

/* What the server says of us is worth more than that it has not confirmed anything. */
static bool is_unconfirmed(const struct kinf__state *state)
{
    bool is_waiting = state->has_phase && state->phase != KINF__REFLECTOR_WATCHING;

    return state->saved_wall_ms != 0 &&
           !(is_waiting && kind_of(&state->error) != KINF_STATE_BACKING_OFF);
}

static void derive_unconfirmed(const struct kinf__state *state, struct kinf_informer_status *status)
{
    char when[KINF__RFC3339_SIZE], reason[KINF_ERROR_MESSAGE_SIZE];

    kinf__rfc3339_write(state->saved_wall_ms / 1000, 0, 0, when);
    snprintf(reason, sizeof reason, "loaded from a file of %s, the server has not confirmed it%s%s",
             when, state->error.message[0] != '\0' ? ": " : "", state->error.message);
    put(status, KINF_STATE_STALE, state->begun_ms, reason);
}

void kinf__state_derive(const struct kinf__state *state, const struct kinf__state_counts *counts,
                        int64_t now_ms, struct kinf_informer_status *status)
{
    status->has_synced = state->has_synced;
    status->last_contact_ms = counts->last_contact_ms;
    if (state->is_stopped)
        put(status, KINF_STATE_STOPPED, state->stopped_ms, state->error.message);
    else if (is_unconfirmed(state))
        derive_unconfirmed(state, status);
    else if (!state->has_phase)
        put(status, KINF_STATE_STARTING, state->begun_ms, "");
    else if (state->phase == KINF__REFLECTOR_WATCHING)
        derive_watching(state, counts, now_ms, status);
    else
        derive_requesting(state, status);
}
