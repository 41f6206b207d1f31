/*
 * What the API server fills into built-in objects by looking at other fields: the pull policy by the
 * image's tag, a service's by its type. kinf__schema_default() fills in what has one value.
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_DOCUMENT_DEFAULTS_H
#define KINF_DOCUMENT_DEFAULTS_H

#include "document/tree.h"

/* After kinf__schema_default(). Kinds that have none are left alone, whatever has a wrong type as
 * well. A Secret's stringData goes into its data; a Job gets labels and a selector if it has a uid;
 * a Service gets no addresses. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__default_object(const char *group, const char *kind, struct cJSON *object);

#endif
