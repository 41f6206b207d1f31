/*
 * Who may do what, from a small file: users with their tokens and groups, and rules like RBAC's.
 * Answers TokenReview and SubjectAccessReview, and guards the server's own requests.
 *
 *   users:
 *   - name: alice
 *     token: alice-token
 *     groups: [developers]
 *   rules:
 *   - groups: [developers]          # or users: [...]
 *     namespaces: [shop]            # none: all
 *     apiGroups: [""]
 *     resources: [pods, pods/log]   # "*", "*" + "/status" as RBAC has them
 *     resourceNames: [web]
 *     verbs: [get, list, watch]
 *   - users: [system:anonymous]
 *     nonResourceURLs: [/metrics]   # a star behind it: all that begin so
 *     verbs: [get]
 *
 * Besides, everybody may ask for health and version, and whoever has a token for discovery and for
 * what it may do, as in every cluster.
 *
 * Threads: constant once read; any thread.
 */
#ifndef KINF_APISERVER_ACCESS_POLICY_H
#define KINF_APISERVER_ACCESS_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

#include "serve/review.h"

struct kinf__access_policy;

struct kinf__access_policy_user {
    const char *name;
    const char *uid; /* "": none */
    const char *const *groups;
    size_t n_groups;
};

/* Errors: KINF_ERR_CONFIG, KINF_ERR_PARSE (file, line, column), KINF_ERR_LIMIT, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__access_policy_read(const char *file,
                                             struct kinf__access_policy **ret_policy,
                                             struct kinf_error *err);
KINF_MUST_CHECK int kinf__access_policy_parse(struct kinf_str text, const char *file,
                                              struct kinf__access_policy **ret_policy,
                                              struct kinf_error *err);
void kinf__access_policy_free(struct kinf__access_policy *policy); /* NULL is allowed */

/* The users in the file's order, with their tokens; false: there are not so many. */
bool kinf__access_policy_get_user(const struct kinf__access_policy *policy, size_t i,
                                  struct kinf__access_policy_user *ret_user,
                                  const char **ret_token);
/* Whose token it is; its groups have system:authenticated in them. False: nobody's. `policy` NULL:
 * every token but an empty one is kubernetes-admin's, of system:masters. */
bool kinf__access_policy_find_token(const struct kinf__access_policy *policy, struct kinf_str token,
                                    struct kinf__access_policy_user *ret_user);
/* Whoever sends no credentials: system:anonymous, of system:unauthenticated. */
struct kinf__access_policy_user kinf__access_policy_anonymous(void);

/* Whether a rule allows it; members of system:masters may do everything. `policy` NULL: everybody
 * may. */
bool kinf__access_policy_allows(const struct kinf__access_policy *policy,
                                const struct kinf__access_policy_user *user,
                                const struct kinf__attributes *attributes);

/*
 * Answers a review, which was posted as `review`, by writing its status. Kinds: TokenReview,
 * SubjectAccessReview, LocalSubjectAccessReview (with the request's namespace in its metadata),
 * SelfSubjectAccessReview, SelfSubjectRulesReview, SelfSubjectReview.
 *
 * What the server refuses is KINF_ERR_INVALID, with its message and http_status 400 (reason
 * BadRequest) or 422 (Invalid). Other errors: KINF_ERR_NOT_FOUND (no such kind), KINF_ERR_NO_MEMORY.
 */
struct cJSON;
KINF_MUST_CHECK int kinf__access_policy_review(const struct kinf__access_policy *policy,
                                               const char *kind,
                                               const struct kinf__access_policy_user *caller,
                                               struct cJSON *review, struct kinf_error *err);

#endif
