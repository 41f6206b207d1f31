/*
 * /openapi/v3: what kubectl asks for before it writes (may fields be validated here, how are lists
 * merged) and what `kubectl explain` prints. No document has descriptions.
 *
 * Threads: constant.
 */
#ifndef KINF_APISERVER_OPENAPI_H
#define KINF_APISERVER_OPENAPI_H

#include "document/schema.h"

/* One version of a resource. Everything is borrowed during the call. */
struct kinf__openapi_resource {
    const char *group;
    const char *version;
    const char *resource;
    const char *kind;
    const char *verbs; /* as in types.h */
    bool namespaced;
    const struct kinf__schema_node *schema; /* NULL: anything goes */
};

/* The document of /openapi/v3: the path of each group's version. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__openapi_write_root(const struct kinf__openapi_resource *resources,
                                             size_t n_resources, struct kinf__buffer *out);

/* The document of /openapi/v3/apis/GROUP/VERSION, of those resources that are of it; `schema` is the
 * built-in one. Errors: KINF_ERR_NOT_FOUND (none is), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__openapi_write_version(const struct kinf__schema *schema,
                                                const struct kinf__openapi_resource *resources,
                                                size_t n_resources, const char *group,
                                                const char *version, struct kinf__buffer *out);

#endif
