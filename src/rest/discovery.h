/*
 * Discovery: which resources a server has, and how they are spelled.
 *
 * Threads: one thread per http object.
 */
#ifndef KINF_REST_DISCOVERY_H
#define KINF_REST_DISCOVERY_H

#include "rest/http.h"

/* Finds a resource by kubectl's spelling. Errors: as kinf_client_find_type(). */
KINF_MUST_CHECK int kinf__discovery_find(struct kinf__http *http, const char *resource,
                                         const struct kinf_type **ret_type, struct kinf_error *err);

#endif
