/*
 * Patches: what becomes of a document. Pure.
 *
 * Each takes *tree and leaves the result there; on failure the tree is in between, and the caller
 * throws it away. Errors: KINF_ERR_INVALID with the refusal written as the server's (400, 422),
 * KINF_ERR_NO_MEMORY with kinf__refuse_no_memory()'s.
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_SIM_PATCH_H
#define KINF_SIM_PATCH_H

#include "serve/refusal.h"
#include "sim/schema.h"
#include "sim/tree.h"

/* RFC 6902. */
KINF_MUST_CHECK int kinf__patch_json(struct cJSON **tree, const struct cJSON *patch,
                                     struct kinf__refusal *refusal);
/* RFC 7386. */
KINF_MUST_CHECK int kinf__patch_merge(struct cJSON **tree, const struct cJSON *patch,
                                      struct kinf__refusal *refusal);
/* Strategic merge: lists by their merge keys, $patch, $retainKeys, $setElementOrder,
 * $deleteFromPrimitiveList. */
KINF_MUST_CHECK int kinf__patch_strategic(struct cJSON **tree, const struct cJSON *patch,
                                          const struct kinf__schema_node *node,
                                          struct kinf__refusal *refusal);

#endif
