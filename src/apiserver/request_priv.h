/*
 * A request that the simulated server answers, for request.c and request_delete.c.
 */
#ifndef KINF_APISERVER_REQUEST_PRIV_H
#define KINF_APISERVER_REQUEST_PRIV_H

#include "serve/accept.h"

#include "apiserver/request.h"
#include "apiserver/verbs.h"
#include "apiserver/write_options.h"

struct kinf__call {
    const struct kinf__backend_call *backend;
    const struct kinf__request *request;
    struct kinf__sim *sim;
    struct kinf__answer *answer;
    struct kinf__refusal *refusal; /* the verb's */
    struct kinf__accepted accepted;
    const char *content_type; /* of the body, without parameters; "": none */
    char content_type_text[128];
    char manager[KINF__MANAGER_SIZE];
    struct kinf__verb verb;
};

/* The body; `kind`: what it is to be, in refusals; NULL: they do not say. */
KINF_MUST_CHECK int kinf__call_read_body(struct kinf__call *call, const char *kind,
                                         struct cJSON **ret_object);
KINF_MUST_CHECK int kinf__call_answer_tree(struct kinf__call *call, const struct cJSON *tree);
/* What became of a verb: its object, or its refusal. */
KINF_MUST_CHECK int kinf__call_answer_verb(struct kinf__call *call, int failed, int code);

KINF_MUST_CHECK int kinf__call_delete_one(struct kinf__call *call);
/* deletecollection */
KINF_MUST_CHECK int kinf__call_delete_many(struct kinf__call *call);

#endif
