/*
 * What a client asks for: the target of its request line, taken apart and checked.
 *
 * Nothing here knows what is served; a request that is malformed in itself is refused as
 * kube-apiserver does. It is read in the server's order: first the path, then (the route is known
 * to be there) the options. Pure: no clock, no state, any bytes may come in.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_SERVE_REQUEST_H
#define KINF_SERVE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/selector.h>
#include <kinformer/str.h>

#include "serve/accept.h"
#include "serve/fields.h"
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
    struct kinf_str query;    /* as it came, behind the question mark */
    char *text;               /* owned: what all of the above points into */
};

/* `target` is the request line's, as it came: with escapes and query. Refused are targets that do
 * not begin with a slash (absolute-form), broken escapes, and segments that are "." or ".." or hold
 * a slash or a NUL once decoded. On failure `refusal` is the answer and *ret_request is not
 * written. Errors: KINF_ERR_INVALID, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__request_parse(struct kinf_str target, struct kinf__request *ret_request,
                                        struct kinf__refusal *refusal);
void kinf__request_release(struct kinf__request *request);

enum kinf__rv_match {
    KINF__RV_MATCH_UNSET,
    KINF__RV_MATCH_NOT_OLDER_THAN,
    KINF__RV_MATCH_EXACT,
};

/* Query parameters of a resource; the texts are never NULL. */
struct kinf__list_options {
    bool is_watch;
    bool allows_bookmarks;
    bool has_send_initial_events;
    bool sends_initial_events;
    int64_t limit;     /* 0 or less: none */
    int64_t timeout_s; /* timeoutSeconds; 0: the default; negative: over at once */
    const char *continue_token;
    const char *resource_version; /* "" or decimal, of 64 bits */
    enum kinf__rv_match match;
    enum kinf__include_object include;
    const char *include_text;
    const char *label_selector;
    const char *field_selector;
    const char *shard_selector;         /* as it came: it chooses a source, and nothing more */
    struct kinf_label_selector *labels; /* NULL: all */
    struct kinf__fields *fields;        /* NULL: all; not bound to a type yet */
    char *text;                         /* owned: what the texts point into */
};

/* Reads and checks them. Of a repeated parameter the first counts, unknown ones and broken pairs
 * count nothing; for a named object all but resourceVersion and includeObject are unknown. On
 * failure `refusal` is the answer. Errors: as above. */
KINF_MUST_CHECK int kinf__request_read_options(const struct kinf__request *request,
                                               struct kinf__list_options *ret_options,
                                               struct kinf__refusal *refusal);
void kinf__list_options_release(struct kinf__list_options *options);

/* Whether the query has a parameter of this name, with or without a value. */
bool kinf__request_has_parameter(const struct kinf__request *request, const char *name);
/* Whether it is there and neither "0" nor "false". */
bool kinf__request_is_true(const struct kinf__request *request, const char *name);

#endif
