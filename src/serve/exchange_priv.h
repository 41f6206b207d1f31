/*
 * An exchange's insides, shared by exchange.c (its phases and life), route.c, access.c, passthrough.c
 * and resource.c.
 *
 * Threads: the connection's, unless a line says otherwise.
 */
#ifndef KINF_SERVE_EXCHANGE_PRIV_H
#define KINF_SERVE_EXCHANGE_PRIV_H

#include "base/rfc3339.h"
#include "serve/accept.h"
#include "serve/encode.h"
#include "serve/exchange.h"
#include "serve/forward.h"
#include "serve/list_options.h"
#include "serve/request.h"
#include "serve/request_record.h"
#include "serve/route.h"
#include "serve/selection.h"
#include "serve/server_priv.h"
#include "serve/write.h"

/* How far a request is: what its next step does. They only rise. */
enum kinf__phase {
    KINF__PHASE_NEW,      /* read the target */
    KINF__PHASE_HELD,     /* ask whether a fault lets go of it; then its way is decided */
    KINF__PHASE_REVIEW,   /* ask whether whoever asks may have an answer */
    KINF__PHASE_BACKEND,  /* have it answered by the backend, once the body is there */
    KINF__PHASE_CACHE,    /* answer, now that the cache has reached a version or has not */
    KINF__PHASE_PASSED,   /* look what the API server says */
    KINF__PHASE_ANSWERED, /* let the fault have its way with the answer */
    KINF__PHASE_GIVEN,    /* nothing more */
};

/* What becomes of the request's body. */
enum kinf__body {
    KINF__BODY_UNWANTED, /* nobody reads it, or all of it was sent on */
    KINF__BODY_AWAITED,  /* it is kept for the backend, and more may come */
    KINF__BODY_WHOLE,    /* the backend may answer */
    KINF__BODY_SENT_ON,  /* to the API server, as it comes */
    KINF__BODY_TOO_LONG, /* refused; what comes is dropped */
};

struct kinf__exchange {
    /* constant after creation */
    struct kinf__server *server;
    struct kinf__exchange_owner owner;
    struct kinf__request_head head;
    struct kinf__client client;
    uint64_t id; /* of this server's requests, from 1 */
    /* the connection's thread; the request is constant when the others can see a source or a forward */
    struct kinf__request request;
    struct kinf__request_record record;
    struct kinf__list_options options; /* without a text: not read */
    struct kinf__accepted accepted;
    enum kinf__phase phase;
    enum kinf__way way;      /* from KINF__PHASE_REVIEW on */
    int64_t access_until_ms; /* monotonic; 0: for ever */
    struct kinf__access_waiter access;
    struct kinf__fault *fault; /* NULL: none */
    enum kinf__body body_state;
    struct kinf__buffer body; /* the backend's: so far */
    size_t body_len;          /* so far */
    struct kinf__selection selection;
    struct kinf__encoder encoder;
    struct kinf__version_waiter waiter;
    int64_t session_until_ms;  /* when the wait for the session's writes ends; 0: there is none */
    bool reads_ahead;          /* passed on, since the cache is behind what it is to show */
    struct kinf__write *write; /* that is passed on, or read ahead; NULL: none */
    struct kinf__listing *listing; /* NULL: none, or its answer has begun */
    struct kinf__answer answer;
    struct kinf__refusal
        *refusal; /* its own; NULL once a watch has begun, of which there are many */
    /* guarded by the server's lock */
    struct kinf__list node;
    struct kinf__source *source;   /* NULL: none; it counts this exchange */
    struct kinf__stream *watch;    /* the answer's, if it is a watch */
    struct kinf__list watch_node;  /* in its source's; without a watch a place, of debug_state.c */
    struct kinf__forward *forward; /* NULL: not passed on; written by the connection's thread */
    uint64_t
        late_source; /* of a watch that was passed on since its cache was late: that one's number */
    int64_t watch_since_ms;
    int64_t deadline_ms;      /* when the watch ends, or a list is cut off */
    bool is_ending;           /* a watch that was told to: it is cut off then, too */
    struct kinf__timer timer; /* of that, or of its next bookmark */
    bool has_hung_up;         /* the peer */
    int hang_up_fd;           /* negative: none */
    /* atomic */
    _Atomic(int) wait_result; /* KINF__STEP_WAITS: the waiter is with the cache */
    _Atomic(bool) is_to_end;  /* a watch that was passed on: behind the next event */
};

/* Reads the options, once: what was read stays; what was refused is read again. Errors: kinf__list_options_read()'s. */
KINF_MUST_CHECK int kinf__exchange_read_options(struct kinf__exchange *exchange,
                                                struct kinf__refusal *refusal);

/* Answers a request below a version, of which a cache may have something. Returns enum kinf__step, or
 * a negative code. */
KINF_MUST_CHECK int kinf__resource_step(struct kinf__exchange *exchange);
/* Goes on after the wait. */
KINF_MUST_CHECK int kinf__resource_step_again(struct kinf__exchange *exchange);

/* server_time.c, the server's lock is held: a watch has begun; the stream of a list has, that holds a
 * version of the store; nothing is awaited of the peer any more. */
void kinf__server_time_watch(struct kinf__exchange *exchange, int64_t now_ms);
void kinf__server_time_limit(struct kinf__exchange *exchange, int64_t now_ms);
void kinf__server_forget_hang_up(struct kinf__exchange *exchange);

/* Answers KINF__WAY_OWN. */
KINF_MUST_CHECK int kinf__own_answer(struct kinf__exchange *exchange);

/* Texts about the server itself. Errors: KINF_ERR_NO_MEMORY; health: refusal or not, it answers. */
KINF_MUST_CHECK int kinf__state_answer_health(struct kinf__exchange *exchange);
KINF_MUST_CHECK int kinf__state_answer_metrics(struct kinf__exchange *exchange);
KINF_MUST_CHECK int kinf__state_answer_debug(struct kinf__exchange *exchange);
/* The status page, for a browser. */
KINF_MUST_CHECK int kinf__page_answer(struct kinf__exchange *exchange);

/* What its informer says of itself, or what is true of a store that cannot be behind. */
void kinf__source_status(const struct kinf__source *source,
                         struct kinf_informer_status *ret_status);

/* Why nothing is answered from it yet; NULL: it is. */
const char *kinf__source_missing(const struct kinf__source *source);
/* Whether what the source has is of before a restart, and the API server has not confirmed it. */
bool kinf__source_is_saved(const struct kinf__source *source);
/* The same, and if so it writes of when that is. */
bool kinf__source_saved_when(const struct kinf__source *source, char buf[KINF__RFC3339_SIZE]);

/* How long ago the source was last known to be fresh; -1: never. */
int64_t kinf__source_staleness_ms(const struct kinf__source *source, int64_t now_ms);
/* How many objects of its scope it does not have, since they are too large or cannot be decoded. */
uint64_t kinf__source_left_out(const struct kinf__source *source);

#endif
