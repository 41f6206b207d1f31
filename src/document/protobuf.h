/*
 * Objects as clients in Go send them: protobuf, in Kubernetes' envelope.
 *
 * Threads: any thread.
 */
#ifndef KINF_DOCUMENT_PROTOBUF_H
#define KINF_DOCUMENT_PROTOBUF_H

#include <kinformer/error.h>
#include <kinformer/str.h>

#include "document/schema.h"

#define KINF__PROTOBUF_CONTENT_TYPE "application/vnd.kubernetes.protobuf"

/* The object as JSON would have it, of a kind that `schema`, the built-in one, knows. Go writes
 * members that JSON would omit: those that are zero are left out, unless JSON would have them;
 * members that are unknown are passed over. The caller frees the tree. Errors: KINF_ERR_PARSE,
 * KINF_ERR_TRUNCATED (JSON inside it), KINF_ERR_LIMIT (JSON inside it is too deep, or a NUL in a
 * string), KINF_ERR_NOT_FOUND (no such kind), KINF_ERR_UNSUPPORTED (a kind without numbers:
 * CustomResourceDefinition), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__protobuf_decode(const struct kinf__schema *schema, struct kinf_str body,
                                          struct cJSON **ret_tree, struct kinf_error *err);

#endif
