/*
 * Metrics of informers in Prometheus' text form.
 *
 * They are read from the informers when they are asked for. There is no registry, hence nothing to
 * register, to unregister or to outlive: the caller, who has the informers, says which and under
 * what name.
 *
 * Mirrors: client-go's informer metrics. Of its names: informer_queued_items, informer_processing_latency_seconds,
 * informer_store_resource_version. All others begin with kinformer_.
 *
 * Threads: any thread, while the informers are not freed.
 */
#ifndef KINFORMER_METRICS_H
#define KINFORMER_METRICS_H

#include <stddef.h>

#include <kinformer/api.h>
#include <kinformer/error.h>
#include <kinformer/informer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An informer and its label "name", beside which it is labelled with the group, version and
 * resource of its type. */
struct kinf_metrics_source {
    const char *name;
    struct kinf_informer *informer;
};

/* A text that the caller frees by free(). Errors: KINF_ERR_EXISTS (two informers of one type have
 * the same name: their series would be the same), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_metrics_text(const struct kinf_metrics_source *sources,
                                               size_t n_sources, char **ret_text,
                                               struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
