/*
 * Manifests and request bodies in YAML, as trees: what the API server makes of them.
 *
 * Plain scalars are of YAML 1.1, as kubectl and the server read them: yes, on and y are true, 010
 * is eight, 1_000 a thousand, ~ nothing; dates are texts. Keys become texts ("yes: 1" is
 * {"true": 1}). Merge keys (<<) are carried out where they stand. Not had: !!binary, which stays
 * base64, and infinity.
 *
 * Threads: any thread.
 */
#ifndef KINF_DOCUMENT_MANIFEST_H
#define KINF_DOCUMENT_MANIFEST_H

#include <kinformer/error.h>
#include <kinformer/str.h>

struct cJSON;

/* Takes an object, which it owns, also on failure; `where` is "file:line", and "file:line: item 3" of a list.
 * Returns 0 or a negative code, which is handed on. */
typedef int kinf__manifest_take_cb(struct cJSON *take_object, const char *where, void *ctx);

/* Hands over each object of a text: JSON values one after the other, or YAML documents. An array,
 * and a List of any kind, counts as its items, which get apiVersion and kind of a typed list where
 * they have none; empty documents count as nothing. A doubled key of YAML is an error. Errors:
 * KINF_ERR_PARSE (with the place; also for what is no object), KINF_ERR_LIMIT, KINF_ERR_NO_MEMORY,
 * those of `take`. */
KINF_MUST_CHECK int kinf__manifest_read(struct kinf_str text, const char *file,
                                        kinf__manifest_take_cb *take, void *ctx,
                                        struct kinf_error *err);

/* A body: the first document, whatever it is; *ret_tree is null if there is none. Doubled keys are
 * doubled members, as kinf__doc_parse() leaves them. Errors: KINF_ERR_PARSE ("yaml:LINE:COLUMN:
 * reason"), KINF_ERR_LIMIT, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__manifest_parse_one(struct kinf_str text, struct cJSON **ret_tree,
                                             struct kinf_error *err);

#endif
