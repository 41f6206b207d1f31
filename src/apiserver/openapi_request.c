/*
 * Neighbours: openapi.c writes the documents.
 */
#include "apiserver/openapi_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/request_head.h"

#include "apiserver/openapi.h"
#include "apiserver/sim.h"
#include "apiserver/store.h"

/* The path is `root`, or one below it: *ret_below, "" or "/apis/apps/v1". */
static bool is_below(const char *root, struct kinf_str target, struct kinf_str *ret_below)
{
    size_t root_len = strlen(root);
    const char *query = memchr(target.bytes, '?', target.len);
    size_t len = query != NULL ? (size_t)(query - target.bytes) : target.len;

    if (len < root_len || memcmp(target.bytes, root, root_len) != 0 ||
        (len != root_len && target.bytes[root_len] != '/'))
        return false;
    *ret_below = (struct kinf_str){ target.bytes + root_len, len - root_len };
    return true;
}

static bool is_openapi(struct kinf_str target, struct kinf_str *ret_below)
{
    return is_below("/openapi/v3", target, ret_below);
}

static bool is_old_openapi(struct kinf_str target)
{
    struct kinf_str below;

    return is_below("/openapi/v2", target, &below) && below.len == 0;
}

bool kinf__openapi_takes(struct kinf_str target)
{
    struct kinf_str below;

    return is_openapi(target, &below) || is_old_openapi(target);
}

/* Every version of every resource; the caller frees it. NULL: out of memory. */
static struct kinf__openapi_resource *collect_resources(struct kinf__store *store, size_t *ret_n)
{
    struct kinf__openapi_resource *resources;
    size_t n_max = 0, n = 0;

    for (const struct kinf__resource *at = NULL; (at = kinf__store_next(store, at)) != NULL;)
        n_max += at->n_versions;
    resources = calloc(n_max + 1, sizeof *resources);
    if (resources == NULL)
        return NULL;
    for (const struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        for (size_t i = 0; i < resource->n_versions; i++)
            resources[n++] = (struct kinf__openapi_resource){
                .group = resource->group,
                .version = resource->versions[i].type->version,
                .resource = resource->name,
                .kind = resource->kind,
                .verbs = resource->verbs,
                .namespaced = resource->namespaced,
                .schema = resource->versions[i].schema,
            };
    }
    *ret_n = n;
    return resources;
}

/* "/api/v1", "/apis/apps/v1". */
static bool split_below(struct kinf_str below, char group[KINF_NAME_MAX],
                        char version[KINF_NAME_MAX])
{
    char text[2 * KINF_NAME_MAX];
    int end = 0;

    snprintf(text, sizeof text, "%.*s", (int)below.len, below.bytes);
    group[0] = '\0';
    if (sscanf(text, "/api/%250[^/]%n", version, &end) == 1 && text[end] == '\0')
        return true;
    return sscanf(text, "/apis/%250[^/]/%250[^/]%n", group, version, &end) == 2 &&
           text[end] == '\0';
}

static int write_openapi(struct kinf__sim *sim, struct kinf_str below, struct kinf__buffer *out)
{
    char group[KINF_NAME_MAX], version[KINF_NAME_MAX];
    KINF__AUTO_FREE struct kinf__openapi_resource *resources = NULL;
    size_t n;

    resources = collect_resources(kinf__sim_store(sim), &n);
    if (resources == NULL)
        return KINF_ERR_NO_MEMORY;
    if (below.len == 0)
        return kinf__openapi_write_root(resources, n, out);
    if (!split_below(below, group, version))
        return KINF_ERR_NOT_FOUND;
    return kinf__openapi_write_version(kinf__sim_schema(sim), resources, n, group, version, out);
}

/* Without types: kubectl, which asks for it before it sends a List, leaves it to the server then to
 * look at the items. */
static int answer_old_openapi(const struct kinf__request_head *head, struct kinf__answer *answer,
                              struct kinf__refusal *refusal)
{
    static const char json[] = "{\"swagger\":\"2.0\",\"info\":{\"title\":\"kinformer-sim\","
                               "\"version\":\"v1.37.1\"},\"paths\":{},\"definitions\":{}}";
    static const char protobuf[] = "\x0a\x03"
                                   "2.0", /* the same: swagger */
        protobuf_type[] = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    const char *accept = kinf__request_head_value(head, "Accept");
    bool is_protobuf = accept != NULL && strstr(accept, "proto-openapi") != NULL;

    if (is_protobuf)
        answer->content_type = protobuf_type;
    return kinf__buffer_append_str(&answer->body, kinf_str_from(is_protobuf ? protobuf : json)) < 0
               ? kinf__refuse_no_memory(refusal)
               : 0;
}

static int answer_openapi(struct kinf__sim *sim, struct kinf_str target,
                          struct kinf__answer *answer, struct kinf__refusal *refusal)
{
    struct kinf_str below;
    int failed;

    if (!is_openapi(target, &below))
        return kinf__refuse_path(refusal);
    kinf__store_lock(kinf__sim_store(sim));
    failed = write_openapi(sim, below, &answer->body);
    kinf__store_unlock(kinf__sim_store(sim));
    if (failed == KINF_ERR_NOT_FOUND)
        return kinf__refuse_path(refusal);
    return failed < 0 ? kinf__refuse_no_memory(refusal) : 0;
}

int kinf__openapi_answer(struct kinf__sim *sim, const struct kinf__request_head *head,
                         struct kinf__answer *answer, struct kinf__refusal *refusal)
{
    return is_old_openapi(head->target) ? answer_old_openapi(head, answer, refusal)
                                        : answer_openapi(sim, head->target, answer, refusal);
}
