/*
 * Patches: what becomes of a document, as kube-apiserver 1.37 makes it, with its departures from the
 * RFCs. Pure.
 *
 * Each takes *tree, an object, and leaves the result there; on failure the tree is in between, and
 * the caller throws it away. Of doubled members of a patch the last one counts. Errors:
 * KINF_ERR_INVALID with the refusal written as the server's (400, 413, 422, 500), KINF_ERR_NO_MEMORY
 * with kinf__refuse_no_memory()'s.
 *
 * Time is bounded: merges take n log n, operations on large lists a number of steps (413).
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_DOCUMENT_PATCH_H
#define KINF_DOCUMENT_PATCH_H

#include "serve/refusal.h"
#include "document/schema.h"
#include "document/tree.h"

/* RFC 6902, but: `null` changes nothing; indexes may be negative, from the end, and have zeros in
 * front; what a path has before its first slash does not matter; replace and copy take a member that
 * is missing for null. Numbers are equal by value, where the server compares their text. The result
 * may be an array, which is no object of any kind. */
KINF_MUST_CHECK int kinf__patch_json(struct cJSON **tree, const struct cJSON *patch,
                                     struct kinf__refusal *refusal);
/* RFC 7386, but: null members go from lists of objects, too, unless they replace an object. */
KINF_MUST_CHECK int kinf__patch_merge(struct cJSON **tree, const struct cJSON *patch,
                                      struct kinf__refusal *refusal);
/* Strategic merge: lists by their merge keys, $patch, $retainKeys, $setElementOrder,
 * $deleteFromPrimitiveList. `node` NULL: nothing is known, lists are replaced. Directives where
 * nothing is merged stay in the result, as fields that nobody knows; nulls in new elements, likewise,
 * as values that are null. */
KINF_MUST_CHECK int kinf__patch_strategic(struct cJSON **tree, const struct cJSON *patch,
                                          const struct kinf__schema_node *node,
                                          struct kinf__refusal *refusal);

/* 422 without a reason, where the server does not tell why. Returns KINF_ERR_INVALID. */
int kinf__patch_reject(struct kinf__refusal *refusal);

#endif
