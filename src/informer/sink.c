/*
 * Setting the sink. Neighbours: handle_deltas.c tells it of each write.
 */
#include "informer/sink.h"

#include "base/error.h"
#include "informer/informer.h"

int kinf__informer_set_sink(struct kinf_informer *informer, const struct kinf__sink *sink,
                            struct kinf_error *err)
{
    int rc = 0;

    if (informer->order != KINF_FIFO_IN_ORDER)
        return kinf__error_set(err, KINF_ERR_INVALID, "%s: a sink needs a queue in order",
                               informer->type->resource);
    kinf__mutex_lock(&informer->life_lock);
    if (informer->life != KINF__LIFE_NEW || informer->target.sink != NULL)
        rc = kinf__error_set(err, KINF_ERR_STATE, "%s: %s", informer->type->resource,
                             informer->target.sink != NULL ? "there is a sink already"
                                                           : "a sink is set before start");
    if (rc == 0) {
        informer->sink = *sink;
        informer->target.sink = &informer->sink;
    }
    kinf__mutex_unlock(&informer->life_lock);
    return rc;
}

const struct kinf__prune_plan *kinf__informer_plan(const struct kinf_informer *informer)
{
    return informer->plan;
}
