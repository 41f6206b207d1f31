/*
 * TokenReview and SubjectAccessReview: what is sent to the upstream server, and what its answer
 * says. Pure, but for who sends.
 *
 * Threads: any thread.
 */
#ifndef KINF_SERVE_REVIEW_H
#define KINF_SERVE_REVIEW_H

#include <stdbool.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

#include "base/buffer.h"

#define KINF__TOKEN_REVIEW_TARGET  "/apis/authentication.k8s.io/v1/tokenreviews"
#define KINF__ACCESS_REVIEW_TARGET "/apis/authorization.k8s.io/v1/subjectaccessreviews"

/* What somebody wants to do. Texts are never NULL; "" is none. */
struct kinf__attributes {
    const char *verb;
    const char *path; /* no resource but this path; then the rest is "" */
    const char *group;
    const char *version;
    const char *resource;
    const char *subresource;
    const char *name_space;
    const char *name;
    const char *label_selector; /* as it was asked for */
    const char *field_selector;
};

#define KINF__N_ATTRIBUTES 10

/* All of them, in one order. */
void kinf__attributes_list(const struct kinf__attributes *attributes,
                           const char *texts[KINF__N_ATTRIBUTES]);

/* Appends the request's body. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__review_write_token(struct kinf_str token, struct kinf__buffer *out);

/* Reads the answer. *ret_yes: it is somebody; appends to `user` the members of a
 * SubjectAccessReview's spec that say who ("user":...,"uid":...,"groups":[...],"extra":{...}), else
 * the reason. Errors: KINF_ERR_PARSE (no such answer), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__review_read_token(struct kinf_str answer, bool *ret_yes,
                                            struct kinf__buffer *user, struct kinf_error *err);

/* Appends the request's body; `user` as read above. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__review_write_access(const char *user,
                                              const struct kinf__attributes *attributes,
                                              struct kinf__buffer *out);

/* *ret_yes: allowed, and not denied; appends the reason. Errors: as above. */
KINF_MUST_CHECK int kinf__review_read_access(struct kinf_str answer, bool *ret_yes,
                                             struct kinf__buffer *reason, struct kinf_error *err);

/* Sends a review and appends the answer's body. */
typedef int kinf__review_send_cb(void *ctx, const char *target, struct kinf_str body,
                                 struct kinf__buffer *answer, struct kinf_error *err);

struct kinf__review_sender {
    kinf__review_send_cb *send;
    void *ctx;
};

/* Write, send and read; what is appended has a NUL behind it. Errors: also the callback's. */
KINF_MUST_CHECK int kinf__review_token(const struct kinf__review_sender *sender,
                                       struct kinf_str token, bool *ret_yes,
                                       struct kinf__buffer *user, struct kinf_error *err);
KINF_MUST_CHECK int kinf__review_access(const struct kinf__review_sender *sender, const char *user,
                                        const struct kinf__attributes *attributes, bool *ret_yes,
                                        struct kinf__buffer *reason, struct kinf_error *err);

/* The name of a user as read above, for messages; "" if it has none. */
KINF_MUST_CHECK int kinf__review_user_name(const char *user, struct kinf__buffer *out);

#endif
