/*
 * Requests to the API server: what a controller does besides watching.
 *
 * One call is one request and its answer, JSON text in and JSON text out (kinformer/tree.h makes
 * trees of it). It blocks, at most for its timeout. Requests of a client share its credentials, a
 * few connections and its rate limit; informers and discovery are not limited by that.
 *
 * What failed is tried again, up to ten times, where it cannot happen twice: any request that the
 * server refused with a time to come back (429 or 5xx with Retry-After), and a GET whose connection
 * broke. Each try takes its turn in the rate limit. Where the last try failed otherwise than the one
 * before, the message has both.
 *
 * Mirrors: rest.Request with dynamic.ResourceInterface.
 * Threads: any thread; the client must outlive the call. kinf_client_interrupt() ends it.
 */
#ifndef KINFORMER_REQUEST_H
#define KINFORMER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/client.h>
#include <kinformer/error.h>
#include <kinformer/str.h>
#include <kinformer/type.h>

#ifdef __cplusplus
extern "C" {
#endif

enum kinf_verb {
    KINF_VERB_GET,
    KINF_VERB_LIST,
    KINF_VERB_CREATE,
    KINF_VERB_UPDATE,
    KINF_VERB_JSON_PATCH,      /* a list of operations, RFC 6902 */
    KINF_VERB_MERGE_PATCH,     /* RFC 7386 */
    KINF_VERB_STRATEGIC_PATCH, /* lists are merged by their keys; not for custom resources */
    KINF_VERB_APPLY,           /* server-side apply; needs field_manager */
    KINF_VERB_DELETE,
    KINF_VERB_DELETE_COLLECTION, /* needs no name; what the selectors choose */
};

/* What becomes of the objects that a deleted one owns. */
enum kinf_propagation {
    KINF_PROPAGATION_DEFAULT,
    KINF_PROPAGATION_ORPHAN,
    KINF_PROPAGATION_BACKGROUND,
    KINF_PROPAGATION_FOREGROUND,
};

/* All borrowed for the call. NULL, 0 and false leave a thing out. Preconditions, selectors and
 * resourceVersions with a verb that has none are refused; `force` is passed over. */
struct kinf_request {
    size_t size; /* of this struct: KINF_REQUEST_INIT sets it */
    enum kinf_verb verb;
    const struct kinf_type *type; /* see kinf_client_find_type() */
    const char *name_space;       /* of types without namespaces: NULL; of LIST: NULL is all */
    const char *name;
    const char *subresource; /* "status", "scale", "eviction" (by CREATE) */
    struct kinf_str body;    /* of CREATE, UPDATE, the patches and APPLY: JSON */

    bool dry_run;                 /* the server checks and answers, and stores nothing */
    const char *field_manager;    /* who changes; default: the server takes the user agent's name */
    const char *field_validation; /* "Ignore", "Warn", "Strict" */
    bool force;                   /* of APPLY: take fields from other managers */

    const char *label_selector; /* of LIST and DELETE_COLLECTION */
    const char *field_selector;
    uint32_t limit;               /* of LIST: a page's size; the answer's metadata.continue ... */
    const char *continue_token;   /* ... goes here for the next page */
    const char *resource_version; /* of GET and these: to read at */
    const char *resource_version_match; /* "Exact", "NotOlderThan" */

    const char *if_uid; /* of DELETE and DELETE_COLLECTION: otherwise it is a conflict */
    const char *if_resource_version;
    enum kinf_propagation propagation;
    const int64_t *grace_period_s; /* NULL: the object's */

    int64_t timeout_ms;        /* of the whole call; default 0: the client's request timeout */
    size_t max_response_bytes; /* default 0: 256 MiB; more is KINF_ERR_LIMIT */
};
#define KINF_REQUEST_INIT                                                                          \
    {                                                                                              \
        sizeof(struct kinf_request), KINF_VERB_GET, NULL, NULL, NULL, NULL, { NULL, 0 }, false,    \
            NULL, NULL, false, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL,                        \
            KINF_PROPAGATION_DEFAULT, NULL, 0, 0                                                   \
    }

/* The answer to a request that succeeded. The caller's. */
struct kinf_response {
    int http_status; /* 200, 201, 202 */
    char *body;      /* ends with a NUL that `len` does not count; never NULL after success */
    size_t len;
    void *reserved[2]; /* NULL: for members to come */
};
#define KINF_RESPONSE_INIT                                                                         \
    {                                                                                              \
        0, NULL, 0,                                                                                \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }
KINF_API void kinf_response_release(struct kinf_response *response);
#define kinf_auto_response __attribute__((cleanup(kinf_response_release)))

/* `ret_response` is written only on success; NULL: the answer is of no interest. Errors:
 * KINF_ERR_INVALID (a part of the request is missing, or cannot be meant: a name ".", ".." or with
 * '/' or '%'), KINF_ERR_EXISTS and
 * KINF_ERR_CONFLICT (see error.h's kinf_error_is_...()), the other refusals of the server with
 * http_status, KINF_ERR_TIMEOUT (also when the rate limit leaves no turn in time, or a credential
 * plugin has not ended),
 * KINF_ERR_LIMIT, KINF_ERR_STOPPED, KINF_ERR_NETWORK, TLS, NO_MEMORY, SYSTEM. After NETWORK or
 * TIMEOUT a change may have happened or not. */
KINF_API KINF_MUST_CHECK int kinf_client_request(struct kinf_client *client,
                                                 const struct kinf_request *request,
                                                 struct kinf_response *ret_response,
                                                 struct kinf_error *err);

/* Any request that is no stream: `target` is "/version", "/api/v1/pods?limit=1"... with its
 * escapes: a blank, '#' or a byte beyond ASCII is KINF_ERR_INVALID. `method` is GET, POST, PUT, PATCH or DELETE; `body.bytes` NULL: none; `content_type`
 * NULL: application/json. Errors: as above. */
KINF_API KINF_MUST_CHECK int kinf_client_request_raw(struct kinf_client *client, const char *method,
                                                     const char *target, struct kinf_str body,
                                                     const char *content_type,
                                                     struct kinf_response *ret_response,
                                                     struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
