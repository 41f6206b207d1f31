/*
 * An elector for the daemon. Neighbours: handlers.c is what begins and ends, shard_config.c what was
 * configured.
 */
#include "daemon/lease.h"

#include <stdio.h>
#include <stdlib.h>

#include <kinformer/elector.h>

#include "base/error.h"
#include "base/metrics.h"

struct kinf__daemon_lease {
    /* constant */
    struct kinf_elector *elector;
    char label[KINF_NAME_MAX + 16]; /* NAME-SHARD */
};

int kinf__daemon_lease_new(struct kinf_client *client, const struct kinf__shard_config *config,
                           const struct kinf__lease_hooks *hooks,
                           struct kinf__daemon_lease **ret_lease, struct kinf_error *err)
{
    struct kinf_elector_options options = KINF_ELECTOR_OPTIONS_INIT;
    struct kinf__daemon_lease *lease = calloc(1, sizeof *lease);
    int failed;

    if (lease == NULL)
        return kinf__error_no_memory(err);
    options.name = config->lease;
    options.name_space = config->lease_name_space;
    options.n_shards = config->n_shards != 0 ? config->n_shards : 1;
    options.shard = config->shard;
    options.release_on_stop = true;
    options.on_started = hooks->begin;
    options.on_stopped = hooks->end;
    options.ctx = hooks->ctx;
    snprintf(lease->label, sizeof lease->label, "%s-%u", config->lease, config->shard);
    failed = kinf_elector_new(client, &options, &lease->elector, err);
    if (failed < 0)
        free(lease);
    else
        *ret_lease = lease;
    return failed;
}

int kinf__daemon_lease_start(struct kinf__daemon_lease *lease, struct kinf_error *err)
{
    return kinf_elector_start(lease->elector, err);
}

void kinf__daemon_lease_free(struct kinf__daemon_lease *lease)
{
    if (lease != NULL)
        kinf_elector_free(lease->elector);
    free(lease);
}

bool kinf__daemon_lease_leads(const struct kinf__daemon_lease *lease)
{
    return kinf_elector_leads(lease->elector);
}

const char *kinf__daemon_lease_name(const struct kinf__daemon_lease *lease)
{
    return lease->label;
}

int64_t kinf__daemon_lease_term(const struct kinf__daemon_lease *lease)
{
    struct kinf_fence fence;

    return kinf_elector_fence(lease->elector, &fence) ? fence.term : 0;
}

/* X(name, type, decimals, help, value) of `status` */
#define LEASE_METRICS(X)                                                                           \
    X("kinformer_lease_leads", GAUGE, 0, "Whether the Lease is led, so that handlers are told.",   \
      status.leads)                                                                                \
    X("kinformer_lease_terms_total", COUNTER, 0, "Times that it was led.", status.n_terms)         \
    X("kinformer_lease_failures_total", COUNTER, 0, "Requests for it that failed.",                \
      status.n_failures)

int kinf__daemon_lease_write_metrics(const struct kinf__daemon_lease *lease,
                                     struct kinf__buffer *out)
{
    static const struct kinf__metric families[] = { LEASE_METRICS(KINF__METRIC_ROW) };
    const struct kinf__label label = { "lease", lease->label };
    struct kinf_elector_status status;

    kinf_elector_status(lease->elector, &status);

    const uint64_t values[] = { LEASE_METRICS(KINF__METRIC_VALUE) };

    return kinf__metrics_numbers(out, families, values, KINF__ARRAY_LEN(families), &label);
}
