/*
 * What a client asks for: the target of its request line, taken apart and checked.
 *
 * Nothing here knows what is served; a request that is malformed in itself is refused as
 * kube-apiserver does. What its query means for a list is list_options.h's. Pure: no clock, no state,
 * any bytes may come in.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_SERVE_REQUEST_H
#define KINF_SERVE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/str.h>

#include "serve/refusal.h"

/* X(enumerator, path) */
#define KINF__ROUTES(X)                                                                            \
    X(KINF__ROUTE_ROOT, "/")                                                                       \
    X(KINF__ROUTE_API, "/api")                                                                     \
    X(KINF__ROUTE_APIS, "/apis")                                                                   \
    X(KINF__ROUTE_GROUP, "/apis/GROUP")                                                            \
    X(KINF__ROUTE_GROUP_VERSION, "/api/VERSION, /apis/GROUP/VERSION")                              \
    X(KINF__ROUTE_RESOURCE, "below a version: objects and lists")                                  \
    X(KINF__ROUTE_VERSION, "/version")                                                             \
    X(KINF__ROUTE_HEALTH, "/healthz, /livez, /readyz, and one check below")                        \
    X(KINF__ROUTE_METRICS, "/metrics")                                                             \
    X(KINF__ROUTE_DEBUG_STATE, "/debug/state")                                                     \
    X(KINF__ROUTE_OTHER, "anything else")

enum kinf__route {
#define X(route, path) route,
    KINF__ROUTES(X)
#undef X
};

/* As authorization, discovery and metrics know what a request does. X(enumerator, word) */
#define KINF__VERBS(X)                                                                             \
    X(KINF__VERB_GET, "get")                                                                       \
    X(KINF__VERB_LIST, "list")                                                                     \
    X(KINF__VERB_WATCH, "watch")                                                                   \
    X(KINF__VERB_CREATE, "create")                                                                 \
    X(KINF__VERB_UPDATE, "update")                                                                 \
    X(KINF__VERB_PATCH, "patch")                                                                   \
    X(KINF__VERB_DELETE, "delete")                                                                 \
    X(KINF__VERB_DELETE_COLLECTION, "deletecollection")                                            \
    X(KINF__VERB_OTHER, "other")

enum kinf__request_verb {
#define X(verb, word) verb,
    KINF__VERBS(X)
#undef X
};

#define X(verb, word) +1
enum { KINF__N_VERBS = 0 KINF__VERBS(X) };
#undef X

const char *kinf__request_verb_to_string(enum kinf__request_verb verb);

struct kinf__request {
    enum kinf__route route;
    /* "" where the path has none. Decoded; each is one segment of the path. */
    const char *group;
    const char *version;
    const char *name_space;
    bool
        is_in_namespace; /* behind "namespaces/", also if its name is empty: then it is all of them */
    const char *resource; /* "" in KINF__ROUTE_RESOURCE: there is nothing */
    const char *name;
    const char *subresource;
    bool is_watch_path; /* .../VERSION/watch/...: a watch whatever the options say; deprecated */
    const char *watched_name; /* of one object: `name` is "", as of every watch */
    const char *check;        /* KINF__ROUTE_HEALTH: "livez"; the one below it is `name` */
    enum kinf__request_verb verb;
    struct kinf_str query; /* as it came, behind the question mark */
    char *text;            /* owned: what all of the above points into */
};

/* Methods are case-sensitive. `target` is the request line's, as it came: with escapes and query. Refused are targets that do
 * not begin with a slash (absolute-form), broken escapes, and segments that are "." or ".." or hold
 * a slash or a NUL once decoded. On failure `refusal` is the answer and *ret_request is not
 * written. Errors: KINF_ERR_INVALID, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__request_parse(const char *method, struct kinf_str target,
                                        struct kinf__request *ret_request,
                                        struct kinf__refusal *refusal);
void kinf__request_release(struct kinf__request *request);

/* Whether the query has a parameter of this name, with or without a value. */
bool kinf__request_has_parameter(const struct kinf__request *request, const char *name);
/* Whether it is there and means yes: neither "0" nor "false", in any case. */
bool kinf__request_is_true(const struct kinf__request *request, const char *name);

#endif
