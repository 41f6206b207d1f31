/*
 * Rollouts. Neighbours: deployments.c counts and writes. Invariant: the sets together never want
 * more than replicas + max_surge, nor are fewer than replicas - max_unavailable available for what
 * is decided here.
 */
#include "workloads/rollout.h"

#include <stdlib.h>
#include <string.h>

#include "document/tree.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least_0(int64_t n)
{
    return n > 0 ? n : 0;
}

int64_t kinf__rollout_share(const struct cJSON *value, int64_t whole, bool up, int64_t none)
{
    char *end;
    int64_t percent;

    if (kinf__doc_is_integer(value))
        return at_least_0((int64_t)value->valuedouble);
    if (!cJSON_IsString(value))
        return none;
    percent = strtol(value->valuestring, &end, 10);
    if (end == value->valuestring || strcmp(end, "%") != 0 || percent < 0 || percent > 1000)
        return none;
    return (whole * percent + (up ? 99 : 0)) / 100;
}

struct kinf__rollout kinf__rollout_of(const struct cJSON *spec)
{
    const struct cJSON *rolling = kinf__doc_find(spec, "strategy", "rollingUpdate", NULL);
    struct kinf__rollout rollout = { .replicas = kinf__doc_integer(spec, "replicas", 1) };
    int64_t replicas = rollout.replicas;

    if (strcmp(kinf__doc_text(spec, "strategy", "type", NULL), "Recreate") == 0)
        return rollout;
    rollout.max_surge =
        kinf__rollout_share(kinf__doc_get(rolling, "maxSurge"), replicas, true, (replicas + 3) / 4);
    rollout.max_unavailable = kinf__rollout_share(kinf__doc_get(rolling, "maxUnavailable"),
                                                  replicas, false, replicas / 4);
    /* Percentages of few may both be nothing; then it would never get anywhere. */
    if (rollout.max_surge == 0 && rollout.max_unavailable == 0)
        rollout.max_unavailable = 1;
    rollout.max_unavailable = least(rollout.max_unavailable, replicas);
    return rollout;
}

int64_t kinf__rollout_new_size(const struct kinf__rollout *rollout, int64_t wanted, int64_t total)
{
    int64_t room = rollout->replicas + rollout->max_surge - total;

    if (wanted >= rollout->replicas)
        return rollout->replicas;
    return wanted + at_least_0(least(room, rollout->replicas - wanted));
}

/* Lowers each as far as it may be, the oldest first, by `n` in all. */
static void lower(struct kinf__rollout_set *sets, size_t n_sets, int64_t n, bool unavailable_only)
{
    for (size_t i = 0; i < n_sets && n > 0; i++) {
        int64_t may = unavailable_only ? sets[i].wanted - sets[i].available : sets[i].wanted;
        int64_t by = least(at_least_0(may), n);

        sets[i].wanted -= by;
        n -= by;
    }
}

void kinf__rollout_shrink_old(const struct kinf__rollout *rollout,
                              const struct kinf__rollout_set *new_set,
                              struct kinf__rollout_set *old_sets, size_t n_old)
{
    int64_t total = new_set->wanted, available = new_set->available;
    int64_t at_least = rollout->replicas - rollout->max_unavailable;

    for (size_t i = 0; i < n_old; i++) {
        total += old_sets[i].wanted;
        available += least(old_sets[i].available, old_sets[i].wanted);
    }
    /* Old pods that are of no use go first, and count against nothing but the sum: what the new set
     * still lacks may yet come to nothing. */
    lower(old_sets, n_old, total - at_least - at_least_0(new_set->wanted - new_set->available),
          true);
    lower(old_sets, n_old, available - at_least, false);
}
