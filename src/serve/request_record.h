/*
 * What is kept of one request for the metrics and the access log, and handed to both when it is
 * over; of what may last for ever, watches and followed logs, when its answer begins.
 *
 * A line of the log is JSON: time, who (`user` if the reviews know one, and `client`), verb, target,
 * code, source, ms. Of the query it has the parameters that say what is read; tokens, values that
 * nobody here knows and what lies behind "/proxy/" are not in it.
 *
 * Threads: the connection's.
 */
#ifndef KINF_SERVE_REQUEST_RECORD_H
#define KINF_SERVE_REQUEST_RECORD_H

#include "serve/request_metrics.h"

struct kinf__exchange;

struct kinf__request_record {
    int64_t began_ns; /* 0: not yet, or it is told */
    bool is_endless;
    bool awaits_review;
    /* owned, of the access log alone; NULL: none */
    char *target;
    char *user;
};

/* Behind reading the target, well formed or not. */
void kinf__request_record_begin(struct kinf__exchange *exchange);
/* What the authorizer said, each time that it was asked. */
void kinf__request_record_access(struct kinf__exchange *exchange,
                                 const struct kinf__access_answer *answer);
/* There is an answer. */
void kinf__request_record_answer(struct kinf__exchange *exchange);
/* It is over. */
void kinf__request_record_end(struct kinf__exchange *exchange);

#endif
