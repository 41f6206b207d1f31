/*
 * What is counted of requests: how many by verb, resource, code and source, how long they took, and
 * what was decided on access.
 *
 * Clients choose none of the labels: resources are those that the server has, else "other", and
 * there are as many rows as KINF__REQUEST_ROWS at most; what comes later is counted as "other", too.
 * Codes are the API server's or our own; a row knows sixteen, of which the last has all others.
 *
 * Threads: any; it has a lock of its own.
 */
#ifndef KINF_SERVE_REQUEST_METRICS_H
#define KINF_SERVE_REQUEST_METRICS_H

#include "base/lock.h"
#include "base/metrics.h"
#include "serve/authorizer.h"
#include "serve/request.h"

/* X(enumerator, label, what answers) */
#define KINF__REQUEST_SOURCES(X)                                                                   \
    X(KINF__SOURCE_CACHE, "cache", "the cache, refusals included")                                 \
    X(KINF__SOURCE_UPSTREAM, "upstream", "the API server")                                         \
    X(KINF__SOURCE_SELF, "self", "what is no resource: discovery, health, metrics, the page")

enum kinf__request_source {
#define X(source, label, what) source,
    KINF__REQUEST_SOURCES(X)
#undef X
};

#define KINF__REQUEST_OTHER "other"
/* The client had gone before there was an answer. */
#define KINF__CODE_GONE 499

#define X(source, label, what) +1
enum { KINF__N_REQUEST_SOURCES = 0 KINF__REQUEST_SOURCES(X) };
#undef X
#define X(verdict, what) +1
enum { KINF__N_VERDICTS = 0 KINF__VERDICTS(X) };
#undef X

enum {
    KINF__REQUEST_CODES = 16, /* of a row */
    /* The last of them are for "other", one for each verb and source. */
    KINF__REQUEST_ROWS = 512 + KINF__N_VERBS * KINF__N_REQUEST_SOURCES,
};

const char *kinf__request_source_to_string(enum kinf__request_source source);

struct kinf__request_row;

struct kinf__request_metrics {
    /* atomic: answered from what is kept, or after a review */
    _Atomic(uint64_t) decisions[2][KINF__N_VERDICTS];
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__request_row *rows[KINF__REQUEST_ROWS];
    size_t n_rows;
    uint64_t totals[KINF__N_REQUEST_SOURCES];
};

void kinf__request_metrics_init(struct kinf__request_metrics *metrics);
void kinf__request_metrics_release(struct kinf__request_metrics *metrics);

struct kinf__request_outcome {
    enum kinf__request_verb verb;
    enum kinf__request_source source;
    const char *resource; /* "deployments.apps"; "": what is no resource */
    int code;
    int64_t duration_ns;
};

/* Without memory nothing is counted. */
void kinf__request_metrics_observe(struct kinf__request_metrics *metrics,
                                   const struct kinf__request_outcome *outcome);
/* How many were counted, by source. */
void kinf__request_metrics_totals(struct kinf__request_metrics *metrics,
                                  uint64_t ret_totals[KINF__N_REQUEST_SOURCES]);
/* `is_kept`: nobody had to be asked. */
void kinf__request_metrics_note_decision(struct kinf__request_metrics *metrics, bool is_kept,
                                         enum kinf__verdict verdict);

/* Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__request_metrics_write(struct kinf__request_metrics *metrics,
                                                struct kinf__buffer *out);

#endif
