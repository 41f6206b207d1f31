/*
 * What the API server's answer to a write says of the objects that it changed: their identity,
 * version and whether they are on their way out. Nothing else of them is read.
 *
 * Read are JSON, YAML and protobuf: an object, a list, a Table with its objects' metadata, and a Status
 * about one object. Pure.
 *
 * Threads: any.
 */
#ifndef KINF_SERVE_CHANGES_H
#define KINF_SERVE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/object.h>
#include <kinformer/str.h>

#include "base/buffer.h"

struct kinf__change {
    bool is_status;   /* a Status that says Success, with the uid of what it is about, or without */
    uint64_t version; /* 0: not told */
    char name_space[KINF_NAME_MAX];
    char name[KINF_NAME_MAX];
    char uid[128];
    bool is_terminating; /* it has a deletionTimestamp */
    bool has_finalizers; /* the ones in the spec of a namespace, too */
    bool has_grace;      /* deletionGracePeriodSeconds is above 0 */
};

/* X(enumerator, what Content-Type begins with) */
#define KINF__CHANGE_FORMS(X)                                                                      \
    X(KINF__CHANGES_JSON, "application/json")                                                      \
    X(KINF__CHANGES_YAML, "application/yaml")                                                      \
    X(KINF__CHANGES_PROTOBUF, "application/vnd.kubernetes.protobuf")                               \
    X(KINF__CHANGES_OTHER, "")

enum kinf__change_form {
#define X(form, type) form,
    KINF__CHANGE_FORMS(X)
#undef X
};

enum kinf__change_form kinf__change_form_of(const char *content_type);

typedef void kinf__change_cb(const struct kinf__change *change, void *ctx);

/* Calls back for each object of an answer; `form` is not KINF__CHANGES_OTHER. Errors: KINF_ERR_PARSE
 * (cut, of another form than it says, without what an object must have): what was called back for is
 * true, but not all; of YAML also KINF_ERR_LIMIT and KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__changes_read(enum kinf__change_form form, struct kinf_str answer,
                                       kinf__change_cb *callback, void *ctx);

/* Whether the DeleteOptions in a request's body, or those of an Eviction, ask for a dry run. A body
 * that cannot be read does not: the server refused it. */
bool kinf__changes_are_dry(struct kinf_str body);

/* changes_protobuf.c: the same of the form with its magic in front. */
KINF_MUST_CHECK int kinf__changes_read_protobuf(struct kinf_str answer, kinf__change_cb *callback,
                                                void *ctx);
bool kinf__changes_are_dry_protobuf(struct kinf_str body);
#define KINF__PROTOBUF_MAGIC KINF_STR("k8s\0")

/* changes_yaml.c: appends the JSON of a document whose scalars are texts, but whole numbers and null.
 * Errors: KINF_ERR_PARSE, KINF_ERR_LIMIT, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__changes_yaml_to_json(struct kinf_str text, struct kinf__buffer *out);

#endif
