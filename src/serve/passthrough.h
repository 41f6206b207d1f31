/*
 * What goes on to the API server: what a cache does not have, and everything that changes
 * something; with the caller's credentials, or not at all.
 *
 * Threads: the decisions, any; an exchange's, the connection's.
 */
#ifndef KINF_SERVE_PASSTHROUGH_H
#define KINF_SERVE_PASSTHROUGH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/forward.h"
#include "serve/refusal.h"
#include "serve/request.h"
#include "serve/stream.h"

/* As the API server's own limit. */
#define KINF__PASS_BODY_MAX (3 * 1024 * 1024)

/* What the headers of a request say about who asks, and for what. */
struct kinf__pass_head {
    bool has_token;
    bool is_impersonated;
    bool is_upgrade;       /* to something that is no HTTP; an offer of HTTP/2 is none */
    bool is_malformed;     /* two credentials */
    struct kinf_str token; /* as the API server reads it, in the headers; with has_token */
};

struct kinf__pass_head kinf__passthrough_look(const struct kinf__header *headers, size_t n_headers);

/* Whether a header is sent on with a request, and handed back with an answer. What belongs to one
 * connection, names an identity (X-Remote-) or a place is neither. */
bool kinf__passthrough_sends(const char *name);
bool kinf__passthrough_returns(const struct kinf__header *header);
/* Whether a header belongs to a change of protocol: it goes both ways with one. */
bool kinf__passthrough_names_protocol(const char *name);

/* Whether a request's target can be sent on as it is: no byte of it would be read otherwise by
 * others. For what changes something that goes for empty segments, too, which some merge. */
bool kinf__passthrough_is_plain(const char *method, struct kinf_str target);

/* X(enumerator, what becomes of the request) */
#define KINF__PASS_VERDICTS(X)                                                                     \
    X(KINF__PASS_ANSWER, "answered, or refused, as if nothing were passed through")                \
    X(KINF__PASS_FORWARD, "sent on")                                                               \
    X(KINF__PASS_UPGRADE, "refused: an upgraded connection that cannot be sent on")                \
    X(KINF__PASS_NO_TOKEN, "refused: it would be sent on, but has no credentials")                 \
    X(KINF__PASS_PRUNED, "refused: a replacement that would delete fields")                        \
    X(KINF__PASS_MALFORMED, "refused: its headers or its target are ambiguous")

enum kinf__pass_verdict {
#define X(verdict, what) verdict,
    KINF__PASS_VERDICTS(X)
#undef X
};

struct kinf__pass_question {
    bool is_enabled;
    const char *method;
    enum kinf__route route;
    struct kinf__pass_head head;
    bool has_body;
    bool is_plain;      /* kinf__passthrough_is_plain() */
    bool is_pruned;     /* a cache of this resource leaves fields out */
    bool is_not_cached; /* the caches were asked, and have it not */
};

enum kinf__pass_verdict kinf__passthrough_decide(const struct kinf__pass_question *question);
/* Writes the refusal of a verdict that is one. Returns KINF_ERR_INVALID. */
int kinf__passthrough_refuse(enum kinf__pass_verdict verdict, const char *resource,
                             struct kinf__refusal *refusal);

/* 413, in the API server's words. */
int kinf__passthrough_refuse_length(struct kinf__refusal *refusal);

struct kinf__exchange;
struct kinf__exchange_head;

/* Looks at a request again once it is known whether the caches have what it asks for. Returns a
 * negative code with the refusal written, enum kinf__step, or KINF__PASS_NOT_TAKEN. */
#define KINF__PASS_NOT_TAKEN 2
KINF_MUST_CHECK int kinf__passthrough_step(struct kinf__exchange *exchange,
                                           const struct kinf__exchange_head *head,
                                           bool is_not_cached);
/* Goes on after a wake-up: enum kinf__step, or a negative code with the refusal written. */
KINF_MUST_CHECK int kinf__passthrough_step_again(struct kinf__exchange *exchange);

#endif
