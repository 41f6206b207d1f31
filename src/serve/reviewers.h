/*
 * The threads that send reviews to the API server, each over a connection of its own.
 *
 * Owner: an authorizer. Threads: one, that of new, start and free.
 */
#ifndef KINF_SERVE_REVIEWERS_H
#define KINF_SERVE_REVIEWERS_H

#include <kinformer/client.h>

#include "serve/inquiry.h"

struct kinf__reviewers;

/* Waits for the next inquiry and decides it by `sender`; returns false when it is time to end. Runs
 * on each of the threads. */
typedef bool kinf__review_next_cb(void *ctx, const struct kinf__review_sender *sender);

/* `client` and `ctx` outlive it. Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__reviewers_new(struct kinf_client *client, kinf__review_next_cb *next,
                                        void *ctx, struct kinf__reviewers **ret_reviewers,
                                        struct kinf_error *err);
/* Errors: KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__reviewers_start(struct kinf__reviewers *reviewers,
                                          struct kinf_error *err);
/* Breaks off reviews under way, which fail with KINF_ERR_STOPPED, and ends the threads that were
 * started: `next` returns false by now. NULL is allowed. */
void kinf__reviewers_free(struct kinf__reviewers *reviewers);

#endif
