/*
 * What a request's body says, and how the server tells that it says nothing.
 *
 * Threads: any thread.
 */
#ifndef KINF_APISERVER_BODY_H
#define KINF_APISERVER_BODY_H

#include <stdbool.h>

#include "serve/refusal.h"
#include "document/tree.h"

/* Parses it, as JSON or as YAML. Errors: KINF_ERR_INVALID with a 400 that says what is wrong with it
 * and no more, KINF_ERR_NO_MEMORY likewise. */
KINF_MUST_CHECK int kinf__body_parse(struct kinf_str body, bool is_yaml, struct cJSON **ret_tree,
                                     struct kinf__refusal *refusal);

/* Likewise, and takes null for an empty object; anything but an object is refused. */
KINF_MUST_CHECK int kinf__body_parse_object(struct kinf_str body, bool is_yaml,
                                            struct cJSON **ret_object,
                                            struct kinf__refusal *refusal);

/* Such a refusal becomes that of an object of this kind, and quotes the body. */
int kinf__body_refuse(struct kinf_str body, const char *kind, struct kinf__refusal *refusal);

#endif
