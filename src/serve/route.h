/*
 * Where a request is answered: decided once, from what it says and what is served.
 *
 * Threads: the decision, any; an exchange's, the connection's.
 */
#ifndef KINF_SERVE_ROUTE_H
#define KINF_SERVE_ROUTE_H

#include <stdbool.h>

#include "serve/refusal.h"
#include "serve/request.h"
#include "serve/request_head.h"

/* X(enumerator, what becomes of the request) */
#define KINF__WAYS(X)                                                                              \
    X(KINF__WAY_UPSTREAM, "sent on to the API server, which judges by itself who may")             \
    /* Refused, whoever asks. */                                                                   \
    X(KINF__WAY_UPGRADE, "an upgraded connection that is not passed on")                           \
    X(KINF__WAY_NO_TOKEN, "it would be sent on, but has no credentials")                           \
    X(KINF__WAY_PRUNED, "a replacement that would delete fields")                                  \
    X(KINF__WAY_MALFORMED, "it would be sent on, but its head or its target are ambiguous")        \
    X(KINF__WAY_IMPERSONATED, "only the API server knows who may act as somebody else")            \
    /* What is behind here is told to those who may ask. */                                        \
    X(KINF__WAY_BACKEND, "answered by the backend")                                                \
    X(KINF__WAY_CACHE, "answered by a source, or refused, since none has it")                      \
    X(KINF__WAY_OWN, "discovery, or what this server says of itself")                              \
    X(KINF__WAY_UNREADY, "refused: what there is is not known yet")                                \
    X(KINF__WAY_NOTHING, "refused: there is no such thing")                                        \
    X(KINF__WAY_METHOD, "refused: nothing here can be changed")

enum kinf__way {
#define X(way, what) way,
    KINF__WAYS(X)
#undef X
};

/* What a way is decided by. */
struct kinf__route_facts {
    const struct kinf__request_head *head;
    enum kinf__route route;
    bool passes;     /* requests are passed on here */
    bool is_open;    /* to everybody: what there is may be told */
    bool is_named;   /* by a certificate: here it needs no token */
    bool is_backend; /* the backend takes it */
    bool is_plain;   /* kinf__passthrough_is_plain() */
    bool is_pruned;  /* a cache of this resource leaves fields out, or did while there was one */
    bool is_known;   /* what the server has; if not, the next two are true */
    bool is_there;   /* it has something at this path */
    bool takes;      /* that does what the method says */
    bool is_beyond;  /* no cache has what a read asks for */
};

enum kinf__way kinf__route_decide(const struct kinf__route_facts *facts);
/* Whether it is gone only by those who may ask. */
bool kinf__route_is_reviewed(enum kinf__way way);

struct kinf__exchange;
struct kinf__source;

/* The way of a request that is parsed. Its options are read, if they can be. */
enum kinf__way kinf__route_choose(struct kinf__exchange *exchange);
/* Writes the refusal of a way that is one. Returns KINF_ERR_INVALID. */
int kinf__route_refuse(struct kinf__exchange *exchange, enum kinf__way way);

/* Finds the source that answers, and counts the exchange as its user. If none does, this refuses, or
 * passes on what may be passed on. Returns 0, KINF__STEP_WAITS (it is passed on), or a negative code. */
KINF_MUST_CHECK int kinf__route_acquire_source(struct kinf__exchange *exchange);
/* The source has turned out not to have it, and the refusal says so: passes on what may be passed on
 * instead. Returns KINF__STEP_WAITS, or KINF_ERR_INVALID. */
KINF_MUST_CHECK int kinf__route_go_upstream(struct kinf__exchange *exchange);

/* The API server has answered a read that was passed on: what it is of may be cached from now on. */
void kinf__route_note_demand(struct kinf__exchange *exchange);
/* Whether a list is to go on that a cache began: the API server knows nothing of it. */
bool kinf__route_is_page_of_ours(const struct kinf__exchange *exchange);
/* Whether the client wants the newest state there is. A list that began in the cache ends there, one
 * that was passed on at whoever gave its token out. The options are read. */
bool kinf__route_wants_latest(const struct kinf__exchange *exchange);

/* "namespaces//pods/x": all namespaces together have no object. */
bool kinf__route_lacks_namespace(const struct kinf__request *request);

/* Refusals of what is outside the scope of `source` (NULL: nothing is served of it), of what is not
 * ready, and of what the server does not have, with its lock held. */
int kinf__route_refuse_scope(struct kinf__exchange *exchange, const struct kinf__source *source);
int kinf__route_refuse_unready(struct kinf__exchange *exchange);
int kinf__route_refuse_unknown(struct kinf__exchange *exchange);

#endif
