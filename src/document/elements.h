/*
 * Elements of lists that a strategic merge patch merges: what tells them apart, and their order.
 *
 * Inside, and in strategic.c, KINF_ERR_NO_MEMORY comes up bare: kinf__patch_strategic() makes it a
 * refusal. KINF_ERR_INVALID has one.
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_DOCUMENT_ELEMENTS_H
#define KINF_DOCUMENT_ELEMENTS_H

#include "serve/refusal.h"
#include "document/node_index.h"
#include "document/tree.h"

/* What the server does not foresee is 500, without a reason. */
#define kinf__refuse_oddly(refusal, ...) kinf__refuse(refusal, 500, "", __VA_ARGS__)
/* Likewise, in words around two values as Go prints them: the first with %v or (`verb`) %s. */
int kinf__refuse_values(struct kinf__refusal *refusal, const char *const words[3], char verb,
                        const struct cJSON *x, const struct cJSON *y);
int kinf__refuse_go_type(struct kinf__refusal *refusal, const char *expected,
                         const struct cJSON *value);

/* The element's member `merge_key`, or ("") the element itself. NULL: it has none. */
const struct cJSON *kinf__element_key(const struct cJSON *element, const char *merge_key);
/* Refuses an element without a key. */
KINF_MUST_CHECK int kinf__element_check_key(const struct cJSON *element, const char *merge_key,
                                            struct kinf__refusal *refusal);
/* A text that only equal keys have: 80, "80" and 80.0 are three. In `room`, until the next one; NULL:
 * out of memory. The element has a key. */
const char *kinf__element_key_text(const struct cJSON *element, const char *merge_key,
                                   struct kinf__buffer *room);

/* Ranks elements that have a key by their place; of those with the same key the first. */
KINF_MUST_CHECK int kinf__elements_rank(const struct cJSON *list, const char *merge_key,
                                        struct kinf__node_index *ranks);
/* Refuses lists whose elements are not all of one type, or lists. */
KINF_MUST_CHECK int kinf__elements_check(const struct cJSON *original, const struct cJSON *patch,
                                         bool *ret_are_maps, struct kinf__refusal *refusal);

/* The rank of what an order does not have. */
#define KINF__NO_RANK SIZE_MAX

/*
 * Puts a merged list in order. Elements that are `named` (by the patch, or its $setElementOrder) come
 * in that order, all others in the order that they had (`server`). Where both are next, the other one
 * comes first if it was in front of the named one before, else the named one does.
 */
KINF_MUST_CHECK int kinf__elements_arrange(struct cJSON *list, const char *merge_key,
                                           const struct kinf__node_index *server,
                                           const struct kinf__node_index *named,
                                           struct kinf__refusal *refusal);

#endif
