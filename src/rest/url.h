/*
 * Request targets: paths of resources and escaped query parameters.
 *
 * Threads: any thread.
 */
#ifndef KINF_REST_URL_H
#define KINF_REST_URL_H

#include <kinformer/type.h>

#include "base/buffer.h"

/* Appends "/api/VERSION" for the group "", else "/apis/GROUP/VERSION". Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__url_append_version(struct kinf__buffer *target, const char *group,
                                             const char *version);

/* Appends "/api/v1/namespaces/NS/pods" or "/apis/GROUP/VERSION/..."; `name_space` NULL or "": all.
 * What a namespace may not hold is percent-encoded, so that it cannot mean another path. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__url_append_resource(struct kinf__buffer *target,
                                              const struct kinf_type *type, const char *name_space);

/* Appends "/SEGMENT", escaped likewise. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__url_append_segment(struct kinf__buffer *target, const char *segment);

/* Appends "?name=value" or "&name=value", the value percent-encoded. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__url_append_query(struct kinf__buffer *target, const char *name,
                                           const char *value);

#endif
