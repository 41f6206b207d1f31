/*
 * What the reflector requests next: a state machine without I/O, clock or randomness of its own.
 *
 * Ask kinf__policy_next() what to do, do it, and tell kinf__policy_event() what came of it, until
 * the action is KINF__DO_STOP. The time and a random number come with each call, so every run can
 * be repeated.
 *
 * Lists. The first asks for the newest state (no resourceVersion): never "0", which after a
 * failover may answer with the past. A relist asks for "not older than the last version". A limit
 * goes only with a list of the newest state, since with a version it would mean "exactly this one":
 * when pages are asked for, or from the first time on that a list in one piece was cut short, in
 * pages of KINF__POLICY_PAGE_SIZE. A page that failed is asked for again; one whose token expired
 * leads to one whole list at once. A version that the server cannot serve (Expired, too large,
 * malformed) leads to a list of the newest state, the first time at once.
 *
 * Watches start at the last version. A clean end or silence leads to the next watch at once; one
 * that ended within KINF__POLICY_SHORT_WATCH_MS and brought no newer version counts as failed.
 * Failed requests are repeated after a wait, at the same version and without a relist. A list is
 * the answer to: ERROR 410, an ERROR that is not the server's own trouble (429, 5xx), a refused
 * request that cannot get better by itself (4xx but 401, 403, 404, 429), an object that cannot be
 * decoded, and KINF__POLICY_MAX_500 failures with status 500 in a row (how a watch at a foreign
 * version fails).
 *
 * All waits come from one backoff (backoff.h), which also starts again at base when a watch broke
 * after it had lived for at least the longest delay: a proxy that cuts streams once a minute does
 * not make us blind for half of it. The bound: a server that is dead or refuses everything sees at
 * most 8 requests in any 60 s, and at most 4 from the second minute on.
 *
 * Mirrors: Reflector.ListAndWatch.
 * Threads: one thread per object.
 */
#ifndef KINF_REFLECTOR_POLICY_H
#define KINF_REFLECTOR_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

#include "reflector/backoff.h"
#include "reflector/stream.h"

#define KINF__POLICY_PAGE_SIZE      500
#define KINF__POLICY_SHORT_WATCH_MS 1000
#define KINF__POLICY_MAX_500        3

/* X(enumerator, name) */
#define KINF__POLICY_STATES(X)                                                                     \
    X(KINF__POLICY_LISTING, "listing")   /* a page of a list is next, or under way */              \
    X(KINF__POLICY_WATCHING, "watching") /* a watch is next, or open */                            \
    X(KINF__POLICY_WAITING, "waiting")   /* one of the two follows when the time has come */       \
    X(KINF__POLICY_STOPPED, "stopped")   /* for good */

enum kinf__policy_state {
#define X(state, name) state,
    KINF__POLICY_STATES(X)
#undef X
};

const char *kinf__policy_state_to_string(enum kinf__policy_state state);

/* X(enumerator, name): what a request led to. In brackets the members that the event has. */
#define KINF__POLICY_EVENTS(X)                                                                     \
    X(KINF__POLICY_LIST_PAGE, "page")            /* complete [rv, continue_token] */               \
    X(KINF__POLICY_LIST_FAILED, "list failed")   /* [err, has_begun] */                            \
    X(KINF__POLICY_WATCH_ACCEPTED, "accepted")   /* the response's head is here */                 \
    X(KINF__POLICY_WATCH_RV, "rv")               /* an event or bookmark was handed on [rv] */     \
    X(KINF__POLICY_WATCH_ENDED, "ended")         /* cleanly */                                     \
    X(KINF__POLICY_WATCH_SILENT, "silent")       /* no byte for idle_timeout_ms */                 \
    X(KINF__POLICY_WATCH_FAILED, "watch failed") /* no answer, refused, or broken [err] */         \
    X(KINF__POLICY_WATCH_ERROR, "error event")   /* [err] */                                       \
    X(KINF__POLICY_UNDECODABLE, "undecodable")   /* an object, for the first time [err] */         \
    X(KINF__POLICY_STOP, "stop")

enum kinf__policy_event_type {
#define X(event, name) event,
    KINF__POLICY_EVENTS(X)
#undef X
};

const char *kinf__policy_event_to_string(enum kinf__policy_event_type type);

struct kinf__policy_event {
    enum kinf__policy_event_type type;
    const char *rv;             /* PAGE: shorter than KINF__RV_SIZE; RV: ignored if it is not */
    const char *continue_token; /* shorter than KINF__CONTINUE_SIZE; NULL or "": the last page */
    const struct kinf_error *err;
    bool has_begun; /* part of the body was received */
};

enum kinf__policy_action_type { KINF__DO_LIST, KINF__DO_WATCH, KINF__DO_WAIT, KINF__DO_STOP };

/* Strings are the policy's, valid until the next event. */
struct kinf__policy_action {
    enum kinf__policy_action_type type;
    const char *rv;             /* LIST, WATCH: resourceVersion; "": leave it out */
    const char *continue_token; /* LIST: "" on the first page: drop what was collected before */
    const char *list_rv;        /* LIST: of the first page; "" on it */
    size_t limit;               /* LIST: 0: none */
    int64_t timeout_s;          /* WATCH: timeoutSeconds */
    int64_t head_timeout_ms;    /* LIST, WATCH */
    int64_t idle_timeout_ms;    /* LIST, WATCH */
    int64_t wait_ms;            /* WAIT */
};

/* Times: 0 is the default. */
struct kinf__policy_options {
    size_t page_size;         /* 0: in one piece */
    int64_t watch_timeout_ms; /* drawn from [this, twice this), in whole seconds; 300,000 */
    /* Without a byte on a watch, +-20 %; half of it, without jitter, for a response's head and
     * between the pieces of a list. Above the 60 s within which a server answers. 150,000 */
    int64_t silent_after_ms;
    int64_t backoff_base_ms; /* 800 */
    int64_t backoff_max_ms;  /* 30,000 */
    /* Told each transition; may be NULL. */
    void (*trace)(enum kinf__policy_state from, enum kinf__policy_event_type event,
                  enum kinf__policy_state to, void *ctx);
    void *trace_ctx;
};

struct kinf__policy {
    struct kinf__policy_options options; /* defaults filled in */
    struct kinf__backoff backoff;
    enum kinf__policy_state state;
    enum kinf__policy_state after_wait;       /* while WAITING: LISTING or WATCHING */
    enum kinf__policy_event_type last_event;  /* for the trace of a wait's end */
    int64_t wait_end_ms;                      /* while WAITING */
    char rv[KINF__RV_SIZE];                   /* the last version handed on; "" before the first */
    char list_rv[KINF__RV_SIZE];              /* of the list's first page; "" on it */
    char continue_token[KINF__CONTINUE_SIZE]; /* of the page that is next; "" on the first */
    bool is_rv_refused;                       /* list the newest state until a list succeeds */
    bool has_listed_at_once;                  /* since the last list that succeeded */
    bool in_pages;                            /* a list in one piece was cut short */
    bool in_one_piece;                        /* this list, because a token expired */
    bool is_accepted;                         /* this watch */
    bool has_newer_rv;                        /* this watch brought one */
    int64_t accepted_ms;
    unsigned n_500; /* failures with status 500 in a row */
};

void kinf__policy_init(struct kinf__policy *policy, const struct kinf__policy_options *options);

/* What to do now. A WAIT may end early or late; ask again. */
void kinf__policy_next(struct kinf__policy *policy, int64_t now_ms, uint64_t random,
                       struct kinf__policy_action *ret_action);

/* What came of it. After KINF__POLICY_STOP every action is KINF__DO_STOP. */
void kinf__policy_event(struct kinf__policy *policy, int64_t now_ms, uint64_t random,
                        const struct kinf__policy_event *event);

/* Whether the state agrees with what is remembered of lists, watches and waits. For tests. */
bool kinf__policy_check(const struct kinf__policy *policy);

#endif
