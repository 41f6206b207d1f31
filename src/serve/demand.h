/*
 * A cache that fills itself: which types are asked for that it does not have, which of them it is to
 * take up, and which to give up again. It decides; who runs informers (daemon/on_demand.c) does it and
 * tells how it went.
 *
 * Numbered promises, which tests cite:
 *  D1  The first list or watch of a type asks for it, or the third get.
 *  D2  Never taken up: what cannot be listed and watched, what is excluded, Secrets unless they are
 *      included, and the groups of which the API server shows each caller its own.
 *  D3  Not used for `idle_ms`, it is given up. A watch that is served is use.
 *  D4  At most `max_types` at once. A newcomer takes the place of the least recently used one that
 *      nobody watches, but of none that was used within a thirtieth of `idle_ms`.
 *  D5  At most `max_bytes`, of first lists under way, too. The first to go is what cannot have room even
 *      alone, then as in D4; then the newcomer, then others that nobody watches, and watched ones last.
 *  D6  What was refused, went stale or had to make way stays away for a minute, each time twice as
 *      long, up to an hour; an hour in the cache makes that good.
 *  D7  At most 8 first lists run at once; 64 types may start in a row, then one each 10 s.
 *  D8  A first list that still fails after a minute is refused: others wait for its turn to end.
 *  D9  Whatever was asked for and is not cached has a reason in words, and how long that holds.
 *  D10 A cached one that is not kept fresh is given up: its requests fail for 90 s, which is longer than
 *      any wait before the next of them, or nothing came for `max_staleness_ms`, and the API server answers all the while. While the server does not,
 *      nobody could do better: then none goes, and times count from its return.
 *
 * A type is remembered for good once it was asked for: there are as many as the server's discovery has.
 *
 * Threads: any, unless a line says otherwise; nothing blocks. Time is given.
 */
#ifndef KINF_SERVE_DEMAND_H
#define KINF_SERVE_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/thread.h"
#include "serve/report.h"

#define KINF__DEMAND_IDLE_MS    1800000
#define KINF__DEMAND_MAX_TYPES  100
#define KINF__DEMAND_MAX_BYTES  (UINT64_C(256) << 20)
#define KINF__DEMAND_MANY_GETS  3
#define KINF__DEMAND_AWAY_MS    60000
#define KINF__DEMAND_AWAY_MAX   3600000
#define KINF__DEMAND_TRY_MS     60000
#define KINF__DEMAND_FAILING_MS 90000
#define KINF__DEMAND_AT_ONCE    8
#define KINF__DEMAND_IN_A_ROW   64
#define KINF__DEMAND_START_MS   10000
#define KINF__DEMAND_UNKNOWN_MS 20000
#define KINF__DEMAND_PROBE_MS   10000
#define KINF__DEMAND_STALE_MS   180000
#define KINF__DEMAND_NAME_SIZE  320
#define KINF__DEMAND_REASON_MAX 320

struct kinf__demand_rules {
    bool is_enabled;
    int64_t idle_ms;    /* 0 in these and the next: the default */
    uint64_t max_types; /* started or cached */
    uint64_t max_bytes;
    int64_t max_staleness_ms; /* 0: KINF__DEMAND_STALE_MS */
    /* "events", of any group; "events.events.k8s.io"; "*.example.com", a whole group. Borrowed until
     * other rules are set. */
    const char *const *excludes;
    size_t n_excludes;
    const char *const *includes; /* for Secrets */
    size_t n_includes;
};

/* X(enumerator, name in reports) */
#define KINF__DEMAND_STATES(X)                                                                     \
    X(KINF__DEMAND_ASKED, "passed on")   /* not cached, for its reason */                          \
    X(KINF__DEMAND_QUEUED, "waiting")    /* to be started as soon as D4, D6 and D7 let it */       \
    X(KINF__DEMAND_STARTING, "starting") /* its informer lists; requests are passed on */          \
    X(KINF__DEMAND_CACHED, "cached")                                                               \
    X(KINF__DEMAND_LEAVING, "leaving") /* requests under way are still answered */

enum kinf__demand_state {
#define X(state, name) state,
    KINF__DEMAND_STATES(X)
#undef X
};

/* Why a type was given up. X(enumerator, label of the metric) */
#define KINF__DEMAND_CAUSES(X)                                                                     \
    X(KINF__DEMAND_IDLE, "idle")                                                                   \
    X(KINF__DEMAND_TYPES, "maxTypes")                                                              \
    X(KINF__DEMAND_BYTES, "maxBytes")                                                              \
    X(KINF__DEMAND_REFUSED, "refused")                                                             \
    X(KINF__DEMAND_STALE, "stale")                                                                 \
    X(KINF__DEMAND_RULES, "configuration")

enum kinf__demand_cause {
#define X(cause, name) cause,
    KINF__DEMAND_CAUSES(X)
#undef X
        KINF__N_DEMAND_CAUSES
};

/* What is known of a type that is started or cached. */
struct kinf__demand_use {
    uint64_t bytes;     /* store, history and pages; of a first list, what has come */
    uint64_t expected;  /* about what it will be; at least `bytes` */
    size_t n_watches;   /* that are served */
    int64_t last_ms;    /* when it was used last; 0: not yet */
    int64_t contact_ms; /* when the API server was heard of it last; 0: not yet */
};

/* One that was asked for. Valid until the demand is released. */
struct kinf__demand_type {
    /* constant */
    struct kinf__list node;
    char *group;
    char *version;
    char *resource;
    /* guarded by the demand's lock */
    enum kinf__demand_state state;
    int64_t since_ms;
    int64_t asked_ms; /* when last, in vain */
    uint64_t n_asked; /* in vain */
    unsigned n_gets;  /* since it was given up last */
    unsigned n_away;  /* how often it had to stay away, of late */
    int64_t away_ms;  /* until when; 0: it need not */
    struct kinf__demand_use use;
    bool is_failing;    /* its list or watch */
    int64_t failing_ms; /* since when */
    char reason[KINF__DEMAND_REASON_MAX];
};

struct kinf__demand {
    struct kinf__waker *wake; /* set when something is to be started; NULL: nobody waits */
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__demand_rules rules;
    struct kinf__list types;
    int64_t start_credit_ms; /* when all of D7's row may start again */
    bool has_unknown;        /* something was asked for that discovery did not have */
    int64_t unknown_ms;      /* from when on it may be read again for that */
    int64_t probe_ms;      /* from when on the API server may be asked again whether it is there */
    int64_t answered_ms;   /* when it was last; 0: never */
    int64_t unanswered_ms; /* when it was not last; 0: never */
    uint64_t n_starts;
    uint64_t n_given_up[KINF__N_DEMAND_CAUSES];
};

void kinf__demand_init(struct kinf__demand *demand, struct kinf__waker *wake);
void kinf__demand_release(struct kinf__demand *demand);
void kinf__demand_set_rules(struct kinf__demand *demand, const struct kinf__demand_rules *rules);

/* A request that the cache could not answer. */
struct kinf__demand_request {
    const char *group;
    const char *version;
    const char *resource;
    const char *verbs; /* of discovery, separated by commas */
    bool is_get;       /* of one object; else a list or a watch */
};

void kinf__demand_ask(struct kinf__demand *demand, const struct kinf__demand_request *request,
                      int64_t now_ms);
/* A request for what discovery did not have when it was read last. */
void kinf__demand_ask_unknown(struct kinf__demand *demand);

/* --- for who runs informers; one thread --- */

/* One that is to be started now, and counts as starting from here on; NULL: none. */
struct kinf__demand_type *kinf__demand_next_start(struct kinf__demand *demand, int64_t now_ms);
/* One that is to be given up now, and counts as leaving from here on; NULL: none. */
struct kinf__demand_type *kinf__demand_next_end(struct kinf__demand *demand, int64_t now_ms);

/* How it is with one that is starting or cached. */
void kinf__demand_note_use(struct kinf__demand *demand, struct kinf__demand_type *type,
                           const struct kinf__demand_use *use, int64_t now_ms);
/* Why list or watch of one that is starting or cached fails; NULL: it does not. */
void kinf__demand_note_trouble(struct kinf__demand *demand, struct kinf__demand_type *type,
                               const char *trouble, int64_t now_ms);
/* A starting one answers from here on. */
void kinf__demand_note_cached(struct kinf__demand *demand, struct kinf__demand_type *type,
                              int64_t now_ms);
/* One that is starting or cached cannot be had, or is not to be: it is leaving. `reason` is for
 * a person. */
void kinf__demand_give_up(struct kinf__demand *demand, struct kinf__demand_type *type,
                          enum kinf__demand_cause cause, const char *reason, int64_t now_ms);
/* A leaving one is gone. */
void kinf__demand_note_gone(struct kinf__demand *demand, struct kinf__demand_type *type,
                            int64_t now_ms);

/* Whether the API server is to be asked if it is there at all, since something is wrong with a cached
 * one: at most every 10 s. The answer is for kinf__demand_note_server(). */
bool kinf__demand_take_probe(struct kinf__demand *demand, int64_t now_ms);
void kinf__demand_note_server(struct kinf__demand *demand, bool answers, int64_t now_ms);

/* Whether discovery is to be read again, since something was asked for that it did not have: at most
 * every 20 s. */
bool kinf__demand_take_unknown(struct kinf__demand *demand, int64_t now_ms);
/* Whether one waits to be started. */
bool kinf__demand_has_queued(struct kinf__demand *demand);

/* As kinf_client_find_type() takes it. Returns `buf`. */
const char *kinf__demand_name(const struct kinf__demand_type *type, char *buf, size_t size);

/* --- what is told --- */

/* The member "onDemand" of an object. */
void kinf__demand_report(struct kinf__demand *demand, struct kinf__report *report);
/* Its metrics. NULL: zeros. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__demand_write_metrics(struct kinf__demand *demand, int64_t now_ms,
                                               struct kinf__buffer *out);

#endif
