/*
 * What a write's query says of it (CreateOptions and its like), and a deletion's body.
 *
 * Threads: any thread.
 */
#ifndef KINF_APISERVER_WRITE_OPTIONS_H
#define KINF_APISERVER_WRITE_OPTIONS_H

#include "serve/refusal.h"
#include "apiserver/verbs.h"

#define KINF__MANAGER_SIZE 129

/* All return 0, or KINF_ERR_INVALID with the refusal written. `method`: "POST". */

/* dryRun, fieldValidation and fieldManager, which without one is the first part of `agent`. */
KINF_MUST_CHECK int kinf__write_options_read(struct kinf_str query, const char *method,
                                             const char *agent, struct kinf__verb *verb,
                                             char manager[KINF__MANAGER_SIZE],
                                             struct kinf__refusal *refusal);
/* Of a patch: `force`, and that an apply says who it is. */
KINF_MUST_CHECK int kinf__write_options_read_force(struct kinf_str query, bool is_apply,
                                                   bool *ret_force, struct kinf__refusal *refusal);
/* A deletion's, which has a body or a query; NULL: it has no body. What `options` points to is the
 * body's. */
KINF_MUST_CHECK int kinf__write_options_read_delete(struct kinf_str query, const struct cJSON *body,
                                                    struct kinf__delete_options *options,
                                                    bool *is_dry_run,
                                                    struct kinf__refusal *refusal);

#endif
