/*
 * The visible state of an informer: what it is derived from, and how; and which failures are worth
 * a line in the log.
 *
 * Threads: under the informer's status lock. Nothing here reads a clock.
 */
#ifndef KINF_INFORMER_STATE_H
#define KINF_INFORMER_STATE_H

#include <kinformer/informer.h>

#include "base/log.h"
#include "indexer/snapshot.h"
#include "informer/last_errors.h"
#include "reflector/failure.h"
#include "reflector/reflector.h"

/* How often a trouble that goes on is told again. */
#define KINF__TROUBLE_INTERVAL_MS 600000

struct kinf__state {
    int64_t begun_ms; /* the informer was made */
    int64_t stale_after_ms;
    bool has_phase; /* the reflector has begun */
    enum kinf__reflector_phase phase;
    int64_t phase_since_ms;
    struct kinf_error error;  /* why the last request failed; until a watch brings something */
    int64_t error_since_ms;   /* since when it fails with this code */
    unsigned n_refusals;      /* failures in a row that are the server's last word */
    struct kinf_error frozen; /* why the server's watches are not relied on; else code 0 */
    int64_t frozen_since_ms;
    bool has_synced;
    int64_t synced_ms;
    int64_t saved_wall_ms; /* of a saved state that nothing has confirmed; 0: there is none */
    char confirming_rv[KINF__RESOURCE_VERSION_SIZE]; /* what has confirmed it, in the queue */
    bool is_stopped;
    int64_t stopped_ms;
    int64_t degraded_since_ms;
    int64_t shard_ignored_since_ms; /* 0: it is not */
    char shard_reason[KINF_ERROR_MESSAGE_SIZE];
    char quarantine[KINF_ERROR_MESSAGE_SIZE]; /* about the last object that was left out; else "" */
    struct kinf__last_errors last_errors;     /* all of these, also when they are over */
};

/* What others count. */
struct kinf__state_counts {
    int64_t last_contact_ms; /* 0: none */
    uint64_t n_quarantined;
    uint64_t n_failed_index_values;
};

/* `silent_after_ms` is the reflector's: it re-watches after that plus 20 % of silence. */
void kinf__state_init(struct kinf__state *state, int64_t silent_after_ms, int64_t now_ms);

/* What the reflector says; `err` comes with waiting, else NULL. */
void kinf__state_phase(struct kinf__state *state, enum kinf__reflector_phase phase,
                       const struct kinf_error *err, int64_t now_ms);
/* The watches are not to be relied on; NULL: they are again. */
void kinf__state_frozen(struct kinf__state *state, const struct kinf_error *err, int64_t now_ms);
/* A watch brought something, so what failed before does not matter any more. */
void kinf__state_contact(struct kinf__state *state);
/* `n_quarantined`: with this one. */
void kinf__state_quarantine(struct kinf__state *state, const char *key,
                            const struct kinf_error *err, uint64_t n_quarantined, int64_t now_ms);
/* `key` is outside of the shard; NULL: the server obeys the selector. */
void kinf__state_shard_ignored(struct kinf__state *state, const char *key, int64_t now_ms);
void kinf__state_synced(struct kinf__state *state, int64_t now_ms);
void kinf__state_stopped(struct kinf__state *state, int64_t now_ms);

/* Why the first list is not to be expected; NULL: it is. Two refusals in a row are needed: rights of
 * a new role, or the endpoints of a new definition, may be on their way, and a token is read again
 * after a 401. */
const struct kinf_error *kinf__state_refusal(const struct kinf__state *state);

/* What was told of a trouble that goes on. Owner: the thread that tells. All zero is none. */
struct kinf__trouble {
    bool is_told;
    struct kinf__log_limit limits[KINF__N_FAILURES];
};

/* How loud a failure is: a warning when a trouble begins, when it shows a kind of failure
 * (failure.h) for the first time, and each KINF__TROUBLE_INTERVAL_MS of each. A server that leaves
 * or comes is away and busy by turns: these two are one kind. A version that expired is no trouble,
 * since the next list mends it. */
enum kinf_log_level kinf__trouble_level(struct kinf__trouble *trouble, const struct kinf_error *err,
                                        int64_t now_ms);
/* The trouble, if any, is over. Returns whether it had been told. */
bool kinf__trouble_end(struct kinf__trouble *trouble);

/* Fills in state, state_since_ms, reason, last_contact_ms and has_synced. */
void kinf__state_derive(const struct kinf__state *state, const struct kinf__state_counts *counts,
                        int64_t now_ms, struct kinf_informer_status *status);

#endif
