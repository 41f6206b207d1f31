/*
 * Discovery and SelfSubjectAccessReviews for each entry of a configuration. Neighbours: daemon.c has
 * the client, config.c has checked what needs no server.
 */
#include "daemon/check.h"

#include <stdarg.h>
#include <stdio.h>

#include <kinformer/request.h>
#include <kinformer/text.h>

#include "base/compiler.h"
#include "base/error.h"
#include "json/scan.h"
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

int kinf__check_online(struct kinf_client *client, const struct kinf__config *config,
                       struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < config->n_resources; i++)
        failed = check_resource(client, &config->resources[i], err);
    if (failed == 0 && config->is_delegated)
        failed = check_reviewing(client, err);
    return failed < 0 ? failed : (int)err->code;
}
