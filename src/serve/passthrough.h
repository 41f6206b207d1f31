/*
 * What goes on to the API server, with the caller's credentials or not at all: which headers go
 * along, and an exchange that goes there.
 *
 * Threads: what is asked about headers and targets, any; an exchange's, the connection's.
 */
#ifndef KINF_SERVE_PASSTHROUGH_H
#define KINF_SERVE_PASSTHROUGH_H

#include <stdbool.h>
#include <stddef.h>

#include "serve/forward.h"
#include "serve/refusal.h"

/* As the API server's own limit. */
#define KINF__PASS_BODY_MAX (3 * 1024 * 1024)

/* Whether a header is sent on with a request, and handed back with an answer. What belongs to one
 * connection, names an identity (X-Remote-) or a place is neither. */
bool kinf__passthrough_sends(const char *name);
bool kinf__passthrough_returns(const struct kinf__header *header);

/* Whether a request's target can be sent on as it is: no byte of it would be read otherwise by
 * others. For what changes something that goes for empty segments, too, which some merge. */
bool kinf__passthrough_is_plain(const char *method, struct kinf_str target);

/* 413, in the API server's words. */
int kinf__passthrough_refuse_length(struct kinf__refusal *refusal);

struct kinf__exchange;

/* Sends the request on; it lets go of its source, if it has one. Returns KINF__STEP_WAITS, or a
 * negative code with the refusal written. */
KINF_MUST_CHECK int kinf__passthrough_begin(struct kinf__exchange *exchange);
/* Goes on after a wake-up: enum kinf__step, or a negative code with the refusal written. */
KINF_MUST_CHECK int kinf__passthrough_step(struct kinf__exchange *exchange);

#endif
