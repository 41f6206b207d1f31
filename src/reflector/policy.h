/*
 * What the reflector requests next: a state machine without I/O, clock or randomness of its own.
 *
 * Ask kinf__policy_next() what to do, do it, and tell kinf__policy_event() what came of it, until
 * the action is KINF__DO_STOP. The time and a random number come with each call, so every run can
 * be repeated.
 *
 * A round brings the whole state, by a list or by a watch list (KEP-3157: a watch that sends the
 * state first, ends it by a bookmark, and goes on as the watch), and watches follow. With
 * KINF_INITIAL_LIST every round is a list, with KINF_INITIAL_WATCHLIST a watch list. With
 * KINF_INITIAL_AUTO it is a watch list when the state is above KINF__POLICY_MAX_LIST_BYTES or a
 * list in one piece was cut short, else a list, which is faster and needs less of the server. How
 * large the state is, the first page tells: it has KINF__POLICY_PROBE_SIZE objects, so a smaller
 * set is complete with it and pays nothing, a larger one pays one request; later rounds go by what
 * the last one received. There is no such page with selectors (servers count nothing for them, and
 * what is selected is small as a rule) or when pages are asked for (then auto means list); a server
 * that does not count is asked for the list.
 *
 * Lists. The first asks for the newest state (no resourceVersion): never "0", which after a
 * failover may answer with the past. A relist asks for "not older than the last version". A limit
 * goes only with a list of the newest state, since with a version it would mean "exactly this one":
 * when pages are asked for, or when a list in one piece was cut short and there is no watch list,
 * in pages of KINF__POLICY_PAGE_SIZE. A page that failed is asked for again; one whose token
 * expired leads to one whole list at once. Which kinds of list there are: KINF__POLICY_LISTS.
 *
 * Watch lists ask for "not older than the last version", too. No version is taken from one before
 * its bookmark, since initial events do not come in the order of versions. A failure that a list
 * would meet as well (429, no answer, 401, 403, 404, our own trouble) leads to a backoff and the
 * same again. One that was accepted and ended, broke or fell silent before the bookmark is asked
 * for again, after a backoff if it broke or was short. After KINF__POLICY_MAX_STREAMS of a round
 * that brought no bookmark (a frozen watch cache answers "too large" for ever), and at once after
 * any other refusal (the feature is off, unknown, or not ready), the round is a list. A 422 says
 * that the server does not offer watch lists; they are not asked for again for
 * KINF__POLICY_UNSUPPORTED_MS, since servers are upgraded under running clients.
 *
 * A version that the server cannot serve (Expired, too large, malformed) leads to the newest state.
 * For one of its future it waits three seconds before it says so: the answer is given longer, or a
 * restored server that nobody writes would never be heard.
 *
 * Watches start at the last version. A clean end or silence leads to the next watch at once; one
 * that ended within KINF__POLICY_SHORT_WATCH_MS and brought no newer version counts as failed.
 * Failed requests are repeated after a wait, at the same version and without another round. A round
 * is the answer to: ERROR 410, an ERROR that is not the server's own trouble (429, 5xx), a refused
 * request that cannot get better by itself (4xx but 401, 403, 404, 429), an object that cannot be
 * decoded, and KINF__POLICY_MAX_500 failures with status 500 in a row (how a watch at a foreign
 * version fails).
 *
 * Outages. Behind one (no connection, one that broke, 502 to 504, silence where bookmarks come) the
 * server may have been restored from a backup. It says nothing of that: a watch at a version of its
 * future is silent, and one at a version that new writes have passed brings only what comes behind
 * that. So before the watch goes on the newest that is known is verified (reflector_verify.c), with
 * the wait of the failure as jitter: at most 8 requests for one object each. Doubt leads to a round
 * of the newest state, one an outage. A verification that comes to nothing does not hold up the
 * watch for longer than KINF__POLICY_VERIFY_MS and a wait; when that watch ends the server is asked
 * again. KINF__POLICY_MAX_UNVERIFIED times it is for a tenth of its time, therefore. So is the first
 * watch behind KINF__POLICY_UNSEEN_MS without one, whatever the others were refused with: a server may
 * have been away while nobody asked it. It is verified when that watch ends, and not before it, since
 * one that refuses watches is not to be asked for more.
 *
 * A state of an earlier run (kinf__policy_resume()) is what was known before an outage: it is
 * verified, and the watch goes on from its version. It is confirmed when it has been verified and all
 * that the server had then is known to have come: by an event or a bookmark at its version of then or
 * behind it, or by a watch that lasted and brought nothing newer, since what was missed comes first.
 * If the server has written nothing since, the verification says it all. So that a quiet resource need
 * not be waited for, each watch until then is asked for KINF__POLICY_CONFIRM_S alone. A round confirms,
 * too; one of the newest state follows when a watch was silent for longer than it was asked for, and
 * when KINF__POLICY_MAX_UNVERIFIED verifications have come to nothing.
 *
 * A watch that brought nothing may be followed by a list of the newest state, as frozen.h says:
 * an extra list. It is made in pages where that matters to the server: while the watch cache stands
 * still such pages are read from etcd, even when a whole list is refused. If it fails, the watch is
 * next, not the list again. While it is found frozen, rounds are such lists as well.
 *
 * A resource that is gone. The second 404 in a row asks whether the server still has the resource
 * (KINF__DO_ASK, at most once in KINF__POLICY_ASK_MS): only its discovery can tell a resource that
 * was withdrawn from a proxy that lost its way or an extension server that starts. If it says no,
 * what is stored is gone, and rounds begin from nothing.
 *
 * What follows a failure is one table in policy.c: the kind of request by the kind of failure
 * (failure.h) gives what is next, and whether after a wait or at once.
 *
 * At once. After a refusal something else is tried at once, one time until a round succeeds. What
 * needs no wait since it went well (a watch that ended cleanly, a page without objects that names
 * another one) spends from a budget: KINF__POLICY_AT_ONCE in a row, then one each time that a third
 * of the longest delay has gone by. A watch that lasted for the time that it was asked for, or was
 * given up by us, spends nothing.
 *
 * All other waits come from one backoff (backoff.h), which also starts again at base when a watch
 * broke after it had lived for at least the longest delay: a proxy that cuts streams once a minute
 * does not make us blind for half of it. The bounds, with the default times:
 *   - A server that is dead or refuses everything, in whatever way, sees at most 8 requests in any
 *     60 s, and at most 4 from the second minute on (a question to discovery counts as one, and so
 *     does a verification: its first request that fails is its last).
 *   - One that serves rounds and fails each watch behind them sees at most three times as many.
 *   - None, whatever it answers in whatever order, sees more than KINF__POLICY_MAX_A_MINUTE. Pages
 *     behind the first that brought objects are not counted, since the state has so many.
 * A watch cache that stands still costs one list in the interval: silent_after_ms less
 * 20 %.
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
#include <kinformer/informer.h>

#include "reflector/backoff.h"
#include "reflector/failure.h"
#include "reflector/frozen.h"
#include "reflector/stream.h"

#define KINF__POLICY_PAGE_SIZE      500
#define KINF__POLICY_SHORT_WATCH_MS 1000
#define KINF__POLICY_MAX_500        3
#define KINF__POLICY_PROBE_SIZE     100
#define KINF__POLICY_MAX_LIST_BYTES 200000000
#define KINF__POLICY_MAX_STREAMS    3
#define KINF__POLICY_UNSUPPORTED_MS 600000
#define KINF__POLICY_MAX_404        2
#define KINF__POLICY_ASK_MS         600000
#define KINF__POLICY_VERIFY_MS      10000 /* for each answer, at most */
#define KINF__POLICY_FUTURE_MS      5000  /* for an answer about a version, at least */
#define KINF__POLICY_MAX_UNVERIFIED 3
#define KINF__POLICY_UNSEEN_MS      2000
#define KINF__POLICY_CONFIRM_S      1
#define KINF__POLICY_AT_ONCE        4
#define KINF__POLICY_MAX_A_MINUTE   32

/* X(enumerator, name) */
#define KINF__POLICY_STATES(X)                                                                     \
    X(KINF__POLICY_LISTING, "listing")     /* a page of a list is next, or under way */            \
    X(KINF__POLICY_STREAMING, "streaming") /* a watch list is next, or before its bookmark */      \
    X(KINF__POLICY_WATCHING, "watching")   /* a watch is next, or open */                          \
    X(KINF__POLICY_VERIFYING, "verifying") /* whether what is known is true, before a watch */     \
    X(KINF__POLICY_ASKING, "asking")       /* whether the server has the resource */               \
    X(KINF__POLICY_WAITING, "waiting")     /* one of the five follows when the time has come */    \
    X(KINF__POLICY_STOPPED, "stopped")     /* for good */

enum kinf__policy_state {
#define X(state, name) state,
    KINF__POLICY_STATES(X)
#undef X
};

const char *kinf__policy_state_to_string(enum kinf__policy_state state);

/* The kinds of list. X(enumerator, name) */
#define KINF__POLICY_LISTS(X)                                                                      \
    X(KINF__POLICY_UNDECIDED, "undecided") /* until the first page is asked for */                 \
    X(KINF__POLICY_PROBE, "probe")         /* a first page that tells how large the state is */    \
    X(KINF__POLICY_RELIST, "relist")       /* in one piece, not older than the last version */     \
    X(KINF__POLICY_NEWEST, "newest")       /* in one piece, of the newest state */                 \
    X(KINF__POLICY_PAGES, "pages")         /* of the newest state, with a limit */                 \
    X(KINF__POLICY_RESCUE, "rescue")       /* in one piece, since the token of a page expired */

enum kinf__policy_list_kind {
#define X(kind, name) kind,
    KINF__POLICY_LISTS(X)
#undef X
};

/* X(enumerator, name): what a request led to. In brackets the members that the event has. Those of
 * a watch are those of a watch list, too. */
#define KINF__POLICY_EVENTS(X)                                                                     \
    X(KINF__POLICY_LIST_PAGE, "page")          /* complete [rv, continue_token, n_*, has_news] */  \
    X(KINF__POLICY_LIST_FAILED, "list failed") /* [err, has_begun] */                              \
    X(KINF__POLICY_INITIAL_END, "initial end") /* all initial events are here [rv, n_bytes] */     \
    X(KINF__POLICY_WATCH_ACCEPTED, "accepted") /* the response's head is here */                   \
    X(KINF__POLICY_WATCH_RV, "rv")             /* an event was handed on, or a bookmark [rv] */    \
    X(KINF__POLICY_WATCH_ENDED, "ended")       /* cleanly */                                       \
    X(KINF__POLICY_WATCH_SILENT, "silent")     /* no byte for idle_timeout_ms */                   \
    X(KINF__POLICY_WATCH_FAILED, "watch failed")   /* no answer, refused, or broken [err] */       \
    X(KINF__POLICY_WATCH_ERROR, "error event")     /* [err] */                                     \
    X(KINF__POLICY_UNDECODABLE, "undecodable")     /* an object, for the first time [err] */       \
    X(KINF__POLICY_VERIFIED, "verified")           /* what is known is true [rv] */                \
    X(KINF__POLICY_DOUBTED, "doubted")             /* it is not, or cannot be told [err] */        \
    X(KINF__POLICY_VERIFY_FAILED, "verify failed") /* no answer, or refused [err] */               \
    X(KINF__POLICY_GONE, "gone")                   /* the resource; what was stored, too [err] */  \
    X(KINF__POLICY_NOT_GONE, "not gone")           /* as far as one can tell [err] */              \
    X(KINF__POLICY_STOP, "stop")

enum kinf__policy_event_type {
#define X(event, name) event,
    KINF__POLICY_EVENTS(X)
#undef X
};

const char *kinf__policy_event_to_string(enum kinf__policy_event_type type);

struct kinf__policy_event {
    enum kinf__policy_event_type type;
    /* PAGE, END: not empty, shorter than KINF__RV_SIZE; RV: ignored if it is not shorter; VERIFIED:
     * the server's own, shorter; NULL or "": not known */
    const char *rv;
    const char *continue_token; /* shorter than KINF__CONTINUE_SIZE; NULL or "": the last page */
    uint64_t n_bytes;           /* of the list so far, or of the initial events; inflated */
    size_t n_items;             /* of the list so far, with those that are left out */
    int64_t n_remaining;        /* behind this page; negative: the server does not say */
    const struct kinf_error *err;
    bool has_begun;   /* part of the body was received */
    bool is_bookmark; /* RV */
    bool has_news;    /* PAGE, the last: the list is not what is stored */
    bool is_counted;  /* VERIFIED: and there are as many objects as are known */
};

enum kinf__policy_action_type {
    KINF__DO_LIST,
    KINF__DO_WATCH_LIST,
    KINF__DO_WATCH,
    KINF__DO_VERIFY,
    KINF__DO_ASK,
    KINF__DO_WAIT,
    KINF__DO_STOP
};

/* Strings are the policy's, valid until the next event. */
struct kinf__policy_action {
    enum kinf__policy_action_type type;
    /* LIST, WATCH_LIST, WATCH: resourceVersion; "": leave it out. VERIFY, ASK: the last */
    const char *rv;
    const char *continue_token; /* LIST: "" on the first page: drop what was collected before */
    const char *list_rv;        /* LIST: of the first page; "" on it */
    size_t limit;               /* LIST: 0: none */
    bool is_extra;              /* LIST: in doubt about the watches; tell whether it has news */
    int64_t timeout_s;          /* WATCH_LIST, WATCH: timeoutSeconds */
    int64_t total_timeout_ms; /* WATCH_LIST, WATCH: when it is ended by us, if not by the server */
    int64_t head_timeout_ms;  /* of each request */
    int64_t idle_timeout_ms;  /* of each request */
    int64_t wait_ms;          /* WAIT */
};

/* Times: 0 is the default. */
struct kinf__policy_options {
    enum kinf_initial initial;
    bool has_selector;
    size_t page_size;         /* 0: in one piece */
    int64_t watch_timeout_ms; /* drawn from [this, twice this), in whole seconds; 300,000 */
    /* Without a byte on a watch, +-15 % (more while frozen, see frozen.h); half of it,
     * without jitter, for a response's head and between the pieces of a list. Above the 60 s within
     * which a server answers. 150,000 */
    int64_t silent_after_ms;
    int64_t backoff_base_ms; /* 800 */
    int64_t backoff_max_ms;  /* 30,000 */
    /* Told each transition; may be NULL. */
    void (*trace)(enum kinf__policy_state from, enum kinf__policy_event_type event,
                  enum kinf__policy_state to, void *ctx);
    void *trace_ctx;
};

/* What is remembered until a round succeeds. */
struct kinf__policy_round {
    bool is_newest;       /* it asks for the newest state: the last version was refused */
    bool is_rv_too_large; /* - because the server says that it has not reached it */
    bool has_hurried;     /* something was tried at once after a refusal */
    bool is_by_list;      /* no watch list */
    unsigned n_streams;   /* watch lists that brought no bookmark */
    unsigned n_500;       /* failures with status 500 in a row */
    unsigned n_404;       /* the same with 404 */
};

/* The list that is next or under way. */
struct kinf__policy_list {
    enum kinf__policy_list_kind kind;
    bool is_extra;                            /* nothing asked for it but doubt about the watches */
    size_t n_items;                           /* so far */
    char rv[KINF__RV_SIZE];                   /* of its first page; "" on it */
    char continue_token[KINF__CONTINUE_SIZE]; /* of the page that is next; "" on the first */
};

/* The watch, or watch list, that is next or under way. */
struct kinf__policy_watch {
    bool is_accepted;
    bool has_brought;  /* an event or a bookmark */
    bool has_newer_rv; /* one of them was */
    int64_t accepted_ms;
    int64_t timeout_ms; /* what it asks for */
    bool has_lasted;    /* a watch: it ended no sooner than it was to, or fell silent */
};

struct kinf__policy {
    struct kinf__policy_options options; /* defaults filled in */
    struct kinf__backoff backoff;
    struct kinf__frozen frozen;
    enum kinf__policy_state state;
    enum kinf__policy_state after_wait;      /* while WAITING: any other but STOPPED */
    enum kinf__policy_state after_asking;    /* if it is not gone */
    enum kinf__policy_event_type last_event; /* for the trace of a wait's end */
    int64_t wait_end_ms;                     /* while WAITING */
    int64_t at_once_full_ms;                 /* when nothing of that budget is spent any more */
    char rv[KINF__RV_SIZE];                  /* the last version handed on; "" before the first */
    int64_t seen_ms;    /* when the last watch was open, or what is known was listed or verified */
    bool is_unverified; /* since an outage */
    unsigned n_unverified;             /* verifications since then that came to nothing */
    bool is_unconfirmed;               /* of an earlier run, and nothing shows it to be true */
    char confirming_rv[KINF__RV_SIZE]; /* what came up to it does; "": none is known */
    int64_t expected_bytes;            /* of the whole state; negative: unknown */
    bool is_list_cut;                  /* a list in one piece was cut short, once */
    int64_t unsupported_until_ms;      /* no watch lists before */
    int64_t unasked_until_ms;          /* no question before */
    struct kinf__policy_round round;
    struct kinf__policy_list list;
    struct kinf__policy_watch watch;
};

void kinf__policy_init(struct kinf__policy *policy, const struct kinf__policy_options *options);

/* A state of an earlier run is there, of `n_bytes` at the version `rv`, which is not empty and shorter
 * than KINF__RV_SIZE. Before anything is asked. */
void kinf__policy_resume(struct kinf__policy *policy, const char *rv, uint64_t n_bytes);
/* What is handed on is all that the server had, some time since then. */
bool kinf__policy_is_confirmed(const struct kinf__policy *policy);

/* What to do now. A WAIT may end early or late; ask again. */
void kinf__policy_next(struct kinf__policy *policy, int64_t now_ms, uint64_t random,
                       struct kinf__policy_action *ret_action);

/* What came of it. After KINF__POLICY_STOP every action is KINF__DO_STOP. */
void kinf__policy_event(struct kinf__policy *policy, int64_t now_ms, uint64_t random,
                        const struct kinf__policy_event *event);

/* Negative: it does not wait. */
int64_t kinf__policy_wait_ms(const struct kinf__policy *policy, int64_t now_ms);
/* Lists keep the store true, since the server's watches cannot be relied on. */
bool kinf__policy_stands_still(const struct kinf__policy *policy);
/* There are no watch lists until a round succeeds. */
bool kinf__policy_is_by_list(const struct kinf__policy *policy);
/* Whether the watch that has ended stood for its whole time without a word, of a server that has
 * never sent a bookmark: of a quiet resource there is nothing else to hear. */
bool kinf__policy_was_quiet(const struct kinf__policy *policy);

/* Whether the state agrees with what is remembered of lists, watches and waits. For tests. */
bool kinf__policy_check(const struct kinf__policy *policy);

#endif
