/*
 * Field selectors as the API server has them: for each kind a list of labels that may be asked for,
 * each with a value even where the object has none ("false" for an absent truth).
 *
 * kinformer/selector.h takes any path; this takes what kube-apiserver would, and the paths that
 * have an index here.
 *
 * Threads: any thread; fields never change once they are bound.
 */
#ifndef KINF_SERVE_FIELDS_H
#define KINF_SERVE_FIELDS_H

#include <stdbool.h>

#include <kinformer/informer.h>
#include <kinformer/object.h>

#include "object/object.h"
#include "serve/refusal.h"

struct kinf__fields;

/* fields.ParseSelector: syntax alone. Refuses with 400. Errors: KINF_ERR_INVALID,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__fields_parse(const char *text, struct kinf__fields **ret_fields,
                                       struct kinf__refusal *refusal);
void kinf__fields_free(struct kinf__fields *fields); /* NULL is allowed */

/* Resolves the labels for a type; `paths` are the indexed ones, which may be asked for, too.
 * Refuses with 400 and the server's words for this kind. */
KINF_MUST_CHECK int kinf__fields_bind(struct kinf__fields *fields, const struct kinf_type *type,
                                      const char *const *paths, size_t n_paths,
                                      struct kinf__refusal *refusal);

/* After bind: terms that stand in `given`, too, hold for every object. NULL is allowed for `fields`. */
void kinf__fields_assume(struct kinf__fields *fields, const struct kinf__fields *given);
/* After that: the label of a term whose field a plan drops, or NULL. NULL is allowed. */
const char *kinf__fields_find_lost(const struct kinf__fields *fields,
                                   const struct kinf__prune_plan *plan);

/* Of an informer that holds objects compressed, what field selectors ask about is read without
 * inflating. Before its start. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__fields_keep_readable(struct kinf_informer *informer,
                                               struct kinf_error *err);

/* After bind; NULL matches everything. 1: it does; 0: it does not. Errors: KINF_ERR_NO_MEMORY, while
 * a value is inflated, or read without its escapes. */
KINF_MUST_CHECK int kinf__fields_match(const struct kinf__fields *fields,
                                       const struct kinf_object *object);

/* The value that every match has for `label` (from `label=value`); NULL if there is none, or if it
 * holds for every object. */
const char *kinf__fields_required(const struct kinf__fields *fields, const char *label);
/* After bind: the value that every match has at `path` itself, so that an index of it finds them
 * all; NULL if there is none: what has nothing there may match, too. */
const char *kinf__fields_required_at(const struct kinf__fields *fields, const char *path);

/* Whether everything that matches also matches `wider`: each term of it is here, too. NULL is allowed
 * for `fields`. */
bool kinf__fields_within(const struct kinf__fields *fields, const struct kinf__fields *wider);

#endif
