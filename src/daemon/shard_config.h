/*
 * What the configuration says of shards, and of the Lease of the handlers.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_DAEMON_SHARD_CONFIG_H
#define KINF_DAEMON_SHARD_CONFIG_H

#include <kinformer/selector.h>

#include "daemon/resource_config.h"

struct kinf__shard_config {
    unsigned n_shards; /* 0: there are none */
    unsigned shard;
    enum kinf_shard_by by;
    char *lease;            /* its name, NULL: handlers need none */
    char *lease_name_space; /* NULL: the client's */
};

/* `shards`, `shard`, `shardBy` and `lease`, of the root, into an empty one, whose owner releases it, on
 * failure too. Errors: KINF_ERR_CONFIG, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__shard_config_read(const struct kinf__config_reader *reader,
                                            struct kinf__shard_config *config);
void kinf__shard_config_release(struct kinf__shard_config *config);
bool kinf__shard_config_equal(const struct kinf__shard_config *a,
                              const struct kinf__shard_config *b);

/* Gives a resource the shard's selector, unless it has one of its own. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__shard_config_apply(const struct kinf__shard_config *config,
                                             struct kinf__resource_config *resource,
                                             struct kinf_error *err);

#endif
