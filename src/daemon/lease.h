/*
 * The Lease by which one of several daemons tells its handlers, or one of each shard: they run only
 * while it is led (kinformer/elector.h). What is served needs none.
 *
 * Owner: the daemon. Threads: the main thread, unless a line says otherwise.
 */
#ifndef KINF_DAEMON_LEASE_H
#define KINF_DAEMON_LEASE_H

#include <kinformer/client.h>

#include "base/buffer.h"
#include "daemon/shard_config.h"

struct kinf__daemon_lease;

/* What begins and ends with each term, on a thread of the elector's. `end` returns when all has ended;
 * it takes at most four seconds, which are less than who takes over waits. */
struct kinf__lease_hooks {
    void (*begin)(void *ctx);
    void (*end)(void *ctx);
    void *ctx;
};

/* Without shards it is the only one of a set of one, so that there may be more some day. Nobody is
 * asked yet. Errors: kinf_elector_new()'s. */
KINF_MUST_CHECK int kinf__daemon_lease_new(struct kinf_client *client,
                                           const struct kinf__shard_config *config,
                                           const struct kinf__lease_hooks *hooks,
                                           struct kinf__daemon_lease **ret_lease,
                                           struct kinf_error *err);
/* Errors: kinf_elector_start()'s. */
KINF_MUST_CHECK int kinf__daemon_lease_start(struct kinf__daemon_lease *lease,
                                             struct kinf_error *err);
/* Ends the term, and hands over. NULL is allowed. */
void kinf__daemon_lease_free(struct kinf__daemon_lease *lease);

/* By the clock (L1); `end` may come later. Any thread. */
bool kinf__daemon_lease_leads(const struct kinf__daemon_lease *lease);
/* NAME-SHARD, the lease's own. Any thread. */
const char *kinf__daemon_lease_name(const struct kinf__daemon_lease *lease);
/* Which term is led; 0: the first, or none is. Any thread. */
int64_t kinf__daemon_lease_term(const struct kinf__daemon_lease *lease);
/* Any thread. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__daemon_lease_write_metrics(const struct kinf__daemon_lease *lease,
                                                     struct kinf__buffer *out);

#endif
