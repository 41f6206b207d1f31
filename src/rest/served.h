/*
 * Whether the server has a resource at all, as its discovery says.
 *
 * A 404 alone does not tell: a proxy that lost its way says 404 to everything, and so does a server
 * whose custom resources are being set up. A resource is gone when the server still lists its API
 * groups and the resource's version is not among them, or lists that version's resources without
 * it.
 *
 * Threads: a source belongs to one.
 */
#ifndef KINF_REST_SERVED_H
#define KINF_REST_SERVED_H

#include <stdbool.h>

#include "rest/discovery.h"

/* Errors, after which nobody knows: those of asking; KINF_ERR_PARSE (an answer that is no
 * discovery). */
KINF_MUST_CHECK int kinf__served_ask(const struct kinf__discovery_source *source,
                                     const struct kinf_type *type, bool *ret_is_served,
                                     struct kinf_error *err);

#endif
