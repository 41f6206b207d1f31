/*
 * How many pods the ReplicaSets of a Deployment shall have while it rolls. Pure.
 *
 * Threads: any thread.
 */
#ifndef KINF_WORKLOADS_ROLLOUT_H
#define KINF_WORKLOADS_ROLLOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;

struct kinf__rollout {
    int64_t replicas;        /* that are wanted */
    int64_t max_surge;       /* that may be there beyond them */
    int64_t max_unavailable; /* that may be missing */
};

struct kinf__rollout_set {
    int64_t wanted;    /* its own spec.replicas */
    int64_t available; /* of its pods */
};

/* Of a Deployment's spec; also that of a Recreate has its replicas. */
struct kinf__rollout kinf__rollout_of(const struct cJSON *spec);
/* A number, or a percentage of `whole` ("25%"), rounded up or down; `none` if it is neither. */
int64_t kinf__rollout_share(const struct cJSON *value, int64_t whole, bool up, int64_t none);

/* What the new set shall have; `total` is what all of them, the new one too, want now. */
int64_t kinf__rollout_new_size(const struct kinf__rollout *rollout, int64_t wanted, int64_t total);
/* Lowers what the old sets (the oldest first) want, as far as what is available allows. */
void kinf__rollout_shrink_old(const struct kinf__rollout *rollout,
                              const struct kinf__rollout_set *new_set,
                              struct kinf__rollout_set *old_sets, size_t n_old);

#endif
