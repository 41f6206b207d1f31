/*
 * Discovery and SelfSubjectAccessReviews for each entry of a configuration. Neighbours: daemon.c has
 * the client, config.c has checked what needs no server.
 */
#include "daemon/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <kinformer/request.h>
#include <kinformer/text.h>

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/error.h"
#include "daemon/on_demand.h"
#include "daemon/serving.h"
#include "json/scan.h"
#include "rest/discovery_cache.h"
#include "serve/demand_policy.h"
#include "serve/fields.h"

#define REVIEWS   "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define MAX_DEPTH 100

/* What is asked for. NULL: none, or all. */
struct right {
    const char *verb;
    const char *group;
    const char *resource;
    const char *name_space;
    const char *name;
    const char *label_selector;
    const char *field_selector;
};

/* The line that was kept for the caller makes way for another. Returns its code. */
static int keep(const struct kinf_error *trouble, struct kinf_error *err)
{
    if (err->code != 0)
        fprintf(stderr, "kinformerd: %s\n", err->message);
    *err = *trouble;
    return (int)err->code;
}

/* That something is wrong is no reason not to look at the rest. */
KINF_PRINTF(2, 3) static void tell(struct kinf_error *err, const char *fmt, ...)
{
    struct kinf_error problem = { .code = KINF_ERR_CONFIG };
    va_list args;

    va_start(args, fmt);
    vsnprintf(problem.message, sizeof problem.message, fmt, args);
    va_end(args);
    (void)keep(&problem, err);
}

/* --- reviews --- */

/* {"rawSelector":TEXT}; nothing is written for NULL. */
static int write_selector(struct kinf_scratch *room, const char *text, struct kinf_str *ret,
                          struct kinf_error *err)
{
    return text != NULL ? kinf_json_format(room, ret, err, "{rawSelector:?s}", text) : 0;
}

static int write_review(const struct right *right, struct kinf_scratch *room, struct kinf_str *ret,
                        struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch labels_room = KINF_SCRATCH_INIT,
                                          fields_room = KINF_SCRATCH_INIT;
    struct kinf_str labels = { NULL, 0 }, fields = { NULL, 0 };
    int failed = write_selector(&labels_room, right->label_selector, &labels, err);

    if (failed == 0)
        failed = write_selector(&fields_room, right->field_selector, &fields, err);
    if (failed < 0)
        return failed;
    return kinf_json_format(
        room, ret, err,
        "{apiVersion:?s,kind:?s,spec:{resourceAttributes:{verb:?s,group:?s,resource:?s,"
        "namespace:?s,name:?s,labelSelector:?j,fieldSelector:?j}}}",
        "authorization.k8s.io/v1", "SelfSubjectAccessReview", right->verb, right->group,
        right->resource, right->name_space, right->name, labels, fields);
}

static int read_review(struct kinf_str answer, bool *ret_may, struct kinf_error *err)
{
    struct kinf__json_value status, allowed;
    size_t len;

    if (kinf__json_scan_all(answer, MAX_DEPTH, &len) < 0 ||
        !kinf__json_member(kinf__json_value_of(answer), KINF_STR("status"), &status) ||
        !kinf__json_member(status, KINF_STR("allowed"), &allowed))
        return kinf__error_set(err, KINF_ERR_PARSE, "the answer to a review is none");
    *ret_may = allowed.type == KINF__JSON_BOOL && allowed.raw.bytes[0] == 't';
    return 0;
}

static int review(struct kinf_client *client, const struct right *right, bool *ret_may,
                  struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch room = KINF_SCRATCH_INIT;
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    struct kinf_str body;
    int failed = write_review(right, &room, &body, err);

    if (failed == 0)
        failed = kinf_client_request_raw(client, "POST", REVIEWS, body, NULL, &response, err);
    if (failed < 0)
        return failed;
    return read_review((struct kinf_str){ response.body, response.len }, ret_may, err);
}

/* Whether this program may; else that is told. */
static int check_right(struct kinf_client *client, const struct right *right, const char *where,
                       struct kinf_error *err)
{
    struct kinf_error trouble = KINF_ERROR_INIT;
    bool may = false;

    if (review(client, right, &may, &trouble) < 0)
        return keep(&trouble, err);
    if (!may)
        tell(err, "%s%s%s: no right to %s%s%s", right->resource, *right->group != '\0' ? "." : "",
             right->group, right->verb, where, right->name_space != NULL ? right->name_space : "");
    return 0;
}

/* --- entries --- */

/* Of lists and watches, as the server sees them: of one name, if the selector says so. */
static int check_rights(struct kinf_client *client, const struct kinf__resource_config *resource,
                        const struct kinf_type *type, const char *name_space,
                        struct kinf_error *err)
{
    static const char *const verbs[] = { "list", "watch" };
    const char *where = name_space != NULL ? " in the namespace "
                        : type->namespaced ? " in all namespaces"
                                           : "";
    struct kinf__fields *fields = NULL;
    struct kinf__refusal ignored;
    struct right right = { .group = type->group,
                           .resource = type->resource,
                           .name_space = name_space,
                           .label_selector = resource->label_selector,
                           .field_selector = resource->field_selector };
    int failed = 0;

    if (resource->field_selector != NULL &&
        kinf__fields_parse(resource->field_selector, &fields, &ignored) == KINF_ERR_NO_MEMORY)
        return kinf__error_no_memory(err);
    right.name = kinf__fields_required(fields, "metadata.name");
    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(verbs); i++) {
        right.verb = verbs[i];
        failed = check_right(client, &right, where, err);
    }
    kinf__fields_free(fields);
    return failed;
}

static int check_resource(struct kinf_client *client, const struct kinf__resource_config *resource,
                          struct kinf_error *err)
{
    const struct kinf__strings *namespaces = &resource->namespaces;
    struct kinf_error trouble = KINF_ERROR_INIT;
    const struct kinf_type *type;
    int failed = kinf_client_find_type(client, resource->resource, &type, &trouble);

    if (failed == KINF_ERR_NOT_FOUND || failed == KINF_ERR_UNSUPPORTED) {
        tell(err, "%s", trouble.message);
        return 0;
    }
    if (failed < 0)
        return keep(&trouble, err);
    if (!type->namespaced && namespaces->n_items != 0) {
        tell(err, "%s have no namespaces, but %s was asked for", type->resource,
             namespaces->items[0]);
        return 0;
    }
    if (namespaces->n_items == 0)
        return check_rights(client, resource, type, NULL, err);
    for (size_t i = 0; failed == 0 && i < namespaces->n_items; i++)
        failed = check_rights(client, resource, type, namespaces->items[i], err);
    return failed;
}

static int check_reviewing(struct kinf_client *client, struct kinf_error *err)
{
    static const struct right rights[] = {
        { .verb = "create", .group = "authentication.k8s.io", .resource = "tokenreviews" },
        { .verb = "create", .group = "authorization.k8s.io", .resource = "subjectaccessreviews" },
    };
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(rights); i++)
        failed = check_right(client, &rights[i], ", as auth: delegated needs", err);
    return failed;
}

/* As the elector asks for it. */
static int check_lease(struct kinf_client *client, const struct kinf__shard_config *shards,
                       struct kinf_error *err)
{
    static const char *const verbs[] = { "get", "create", "update", "list" };
    struct right right = { .group = "coordination.k8s.io", .resource = "leases" };
    int failed = 0;

    right.name_space =
        shards->lease_name_space != NULL ? shards->lease_name_space : kinf_client_namespace(client);
    if (*right.name_space == '\0')
        tell(err, "lease: a namespace is needed, as NAMESPACE/%s: the kubeconfig names none",
             shards->lease);
    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(verbs); i++) {
        right.verb = verbs[i];
        failed = check_right(client, &right, ", as lease needs, in the namespace ", err);
    }
    return failed;
}

/* --- types on demand --- */

struct on_demand_check {
    struct kinf_client *client;
    struct kinf__demand_rules rules;
    bool may_all; /* whatever there is */
    size_t n_asked;
    size_t n_types;
    size_t n_may;
    struct kinf__buffer others; /* ", pods, nodes" */
};

static int may_cache(struct kinf_client *client, const char *group, const char *resource,
                     bool *ret_may, struct kinf_error *err)
{
    static const char *const verbs[] = { "list", "watch" };
    int failed = 0;

    *ret_may = true;
    for (size_t i = 0; failed == 0 && *ret_may && i < KINF__ARRAY_LEN(verbs); i++)
        failed = review(client,
                        &(struct right){ .verb = verbs[i], .group = group, .resource = resource },
                        ret_may, err);
    return failed;
}

static int check_type(struct on_demand_check *check, const char *group, const char *resource,
                      struct kinf_error *err)
{
    bool may = check->may_all;
    int failed = 0;

    check->n_types++;
    if (!may && check->n_asked < KINF__CHECK_MAX_TYPES) {
        check->n_asked++;
        failed = may_cache(check->client, group, resource, &may, err);
    }
    if (failed == 0 && may)
        check->n_may++;
    else if (failed == 0 && kinf__buffer_printf(&check->others, ", %s%s%s", resource,
                                                *group != '\0' ? "." : "", group) < 0)
        failed = kinf__error_no_memory(err);
    return failed;
}

/* Rights know no versions. */
static bool is_known(const struct kinf__discovery *table, size_t n_versions, const char *group,
                     const char *resource)
{
    for (size_t i = 0; i < n_versions; i++) {
        const struct kinf__discovery_version *version = &table->versions[i];

        for (size_t j = 0; strcmp(version->group, group) == 0 && j < version->n_resources; j++) {
            if (strcmp(version->resources[j].name, resource) == 0)
                return true;
        }
    }
    return false;
}

static int check_version(struct on_demand_check *check, const struct kinf__discovery *table,
                         size_t place, struct kinf_error *err)
{
    const struct kinf__discovery_version *version = &table->versions[place];
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < version->n_resources; i++) {
        const struct kinf__discovery_resource *resource = &version->resources[i];

        if (strchr(resource->name, '/') == NULL &&
            kinf__demand_forbids(&check->rules, version->group, resource->name, resource->verbs) ==
                NULL &&
            !is_known(table, place, version->group, resource->name))
            failed = check_type(check, version->group, resource->name, err);
    }
    return failed;
}

static int check_types(struct on_demand_check *check, struct kinf_error *err)
{
    struct kinf__discovery_reader reader;
    int failed = kinf__discovery_open(check->client, &reader, err);

    if (failed < 0)
        return failed;
    failed = kinf__discovery_read_all(&reader.cache->table, &reader.source, err);
    for (size_t i = 0; failed == 0 && i < reader.cache->table.n_versions; i++)
        failed = check_version(check, &reader.cache->table, i, err);
    kinf__discovery_close(&reader);
    return failed;
}

static void tell_types(const struct on_demand_check *check, struct kinf_error *err)
{
    if (check->n_may == 0)
        tell(err, "onDemand: no right to list and watch any type in all namespaces");
    else if (check->n_may == check->n_types)
        printf("on demand: all %zu types may be cached\n", check->n_types);
    else
        printf("on demand: %zu of %zu types may be cached; no right to list and watch in all "
               "namespaces%s: %.*s\n",
               check->n_may, check->n_types,
               check->n_types > KINF__CHECK_MAX_TYPES ? ", or not asked" : "",
               (int)check->others.len - 2, check->others.bytes + 2);
}

static int check_on_demand(struct kinf_client *client, const struct kinf__config *config,
                           struct kinf_error *err)
{
    struct on_demand_check check = { .client = client,
                                     .rules = kinf__on_demand_rules(config),
                                     .others = KINF__BUFFER_INIT };
    struct kinf_error trouble = KINF_ERROR_INIT;
    int failed = may_cache(client, "*", "*", &check.may_all, &trouble);

    if (failed == 0)
        failed = check_types(&check, &trouble);
    if (failed == 0)
        tell_types(&check, err);
    kinf__buffer_release(&check.others);
    return failed < 0 ? keep(&trouble, err) : 0;
}

int kinf__check_online(struct kinf_client *client, const struct kinf__config *config,
                       struct kinf_error *err)
{
    struct kinf_error trouble = KINF_ERROR_INIT;
    int failed = 0;

    if (config->pass_through && kinf__serving_check_upstream(client, &trouble) < 0)
        tell(err, "%s", trouble.message);
    for (size_t i = 0; failed == 0 && i < config->n_resources; i++)
        failed = check_resource(client, &config->resources[i], err);
    if (failed == 0 && config->is_delegated)
        failed = check_reviewing(client, err);
    if (failed == 0 && config->shards.lease != NULL)
        failed = check_lease(client, &config->shards, err);
    if (failed == 0 && config->on_demand.is_enabled)
        failed = check_on_demand(client, config, err);
    return failed < 0 ? failed : (int)err->code;
}
