/*
 * From HTTP to verbs and back. Neighbours: serve/exchange.c brings requests here, verbs.c carries
 * writes out, subresources.c what stands below an object.
 */
#include "apiserver/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "document/patch.h"
#include "document/protobuf.h"
#include "serve/access.h"
#include "serve/encode.h"
#include "serve/list_options.h"
#include "serve/query.h"
#include "serve/request_head.h"
#include "serve/selection.h"

#include "apiserver/body.h"
#include "apiserver/openapi.h"
#include "apiserver/policy.h"
#include "apiserver/refuse.h"
#include "apiserver/subresources.h"
#include "apiserver/types.h"
#include "apiserver/verbs.h"
#include "apiserver/write_options.h"

struct call {
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

/* --- what is asked --- */

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

bool kinf__sim_takes(const struct kinf__request_head *head, const struct kinf__request *request,
                     void *ctx)
{
    bool is_read = strcmp(head->method, "GET") == 0;
    struct kinf_str below;

    (void)ctx;
    if (is_read && request->route == KINF__ROUTE_OTHER)
        return is_openapi(head->target, &below) || is_old_openapi(head->target);
    if (request->route != KINF__ROUTE_RESOURCE || *request->resource == '\0')
        return false;
    if (is_read)
        return *request->subresource != '\0';
    return strcmp(head->method, "POST") == 0 || strcmp(head->method, "PUT") == 0 ||
           strcmp(head->method, "PATCH") == 0 || strcmp(head->method, "DELETE") == 0;
}

static bool is_method(const struct call *call, const char *method)
{
    return strcmp(call->backend->head->method, method) == 0;
}

static const char *find_header(const struct kinf__request_head *head, const char *name)
{
    const char *value = kinf__request_head_value(head, name);

    return value != NULL ? value : "";
}

static void read_content_type(struct call *call)
{
    const char *text = find_header(call->backend->head, "Content-Type");
    size_t len = strcspn(text, "; ");

    snprintf(call->content_type_text, sizeof call->content_type_text, "%.*s", (int)len, text);
    call->content_type = call->content_type_text;
}

static bool is_content(const struct call *call, const char *type)
{
    return strcasecmp(call->content_type, type) == 0;
}

/* --- bodies --- */

static int refuse_media_type(struct call *call, const char *accepted)
{
    return kinf__refuse(
        call->refusal, 415, "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "%s",
        accepted);
}

/* Of custom resources nobody sends it. */
static bool is_protobuf(const struct call *call)
{
    return is_content(call, KINF__PROTOBUF_CONTENT_TYPE) &&
           (!call->verb.resource->is_custom || is_method(call, "DELETE"));
}

static int read_protobuf(struct call *call, struct cJSON **ret_object)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed =
        kinf__protobuf_decode(kinf__sim_schema(call->sim), call->backend->body, ret_object, &err);

    if (failed == 0)
        return 0;
    return failed == KINF_ERR_NO_MEMORY
               ? kinf__refuse_no_memory(call->refusal)
               : kinf__refuse_bad_request(call->refusal, "%s", err.message);
}

/* `kind`: what it is to be, in refusals; NULL: they do not say. */
static int read_body(struct call *call, const char *kind, struct cJSON **ret_object)
{
    bool is_yaml = is_content(call, "application/yaml");
    int failed;

    if (is_protobuf(call))
        return read_protobuf(call, ret_object);
    if (!is_yaml && *call->content_type != '\0' && !is_content(call, "application/json"))
        return refuse_media_type(
            call, call->verb.resource->is_custom && !is_method(call, "DELETE")
                      ? "application/json, application/yaml"
                      : "application/json, application/yaml, " KINF__PROTOBUF_CONTENT_TYPE);
    failed = kinf__body_parse_object(call->backend->body, is_yaml, ret_object, call->refusal);
    return failed == KINF_ERR_INVALID && kind != NULL
               ? kinf__body_refuse(call->backend->body, kind, call->refusal)
               : failed;
}

/* --- answers --- */

static int encode_object(struct call *call, const struct cJSON *object)
{
    const struct kinf_type *type = call->verb.version->type;
    struct kinf__encoder encoder = { .type = type,
                                     .form = call->accepted.form,
                                     .is_v1beta1 = call->accepted.is_v1beta1,
                                     .table = kinf__table_for(type),
                                     .now_s = kinf__clock_wall_ms() / 1000 };
    struct kinf__pieces pieces = { .large = SIZE_MAX };
    const struct kinf_object *decoded = NULL;
    int failed = kinf__store_to_object(kinf__sim_store(call->sim), type, object, &decoded, NULL);

    if (failed == 0)
        failed = kinf__encode_object(&encoder, decoded, NULL, &pieces);
    if (failed == 0)
        failed = kinf__buffer_append(&pieces.bytes, "\n", 1);
    kinf_object_unref(decoded);
    kinf__encoder_release(&encoder);
    if (failed < 0) {
        kinf__pieces_release(&pieces);
        return kinf__refuse_no_memory(call->refusal);
    }
    call->answer->body = pieces.bytes;
    return 0;
}

static int answer_tree(struct call *call, const struct cJSON *tree)
{
    return kinf__doc_print(tree, &call->answer->body) < 0 ||
                   kinf__buffer_append(&call->answer->body, "\n", 1) < 0
               ? kinf__refuse_no_memory(call->refusal)
               : 0;
}

static void tell_warnings(struct call *call)
{
    for (size_t i = 0; i < call->verb.n_warnings; i++)
        kinf__answer_warn(call->answer, "%s", call->verb.warnings[i]);
}

/* What became of a verb: its object, or its refusal. */
static int answer_verb(struct call *call, int failed, int code)
{
    tell_warnings(call);
    if (failed < 0)
        return failed;
    call->answer->code = code;
    return encode_object(call, call->verb.object);
}

/* --- create, update, patch --- */

static int create(struct call *call)
{
    struct cJSON *object = NULL;
    int failed = read_body(call, call->verb.resource->kind, &object);

    if (failed < 0)
        return failed;
    return answer_verb(call, kinf__verb_create(&call->verb, object), 201);
}

static int update(struct call *call)
{
    struct cJSON *object = NULL;
    int failed = read_body(call, call->verb.resource->kind, &object);

    if (failed < 0)
        return failed;
    failed = kinf__verb_update(&call->verb, object);
    return answer_verb(call, failed, call->verb.is_created ? 201 : 200);
}

static const struct {
    const char *content_type;
    enum kinf__patch_type type;
} patch_types[] = {
    { "application/json-patch+json", KINF__PATCH_JSON },
    { "application/merge-patch+json", KINF__PATCH_MERGE },
    { "application/strategic-merge-patch+json", KINF__PATCH_STRATEGIC },
    { "application/apply-patch+yaml", KINF__PATCH_APPLY },
};

static int find_patch_type(struct call *call, enum kinf__patch_type *ret_type)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(patch_types); i++) {
        if (!is_content(call, patch_types[i].content_type) ||
            (patch_types[i].type == KINF__PATCH_STRATEGIC && call->verb.resource->is_custom))
            continue;
        *ret_type = patch_types[i].type;
        return 0;
    }
    if (call->verb.resource->is_custom)
        return refuse_media_type(call, "application/json-patch+json, application/merge-patch+json, "
                                       "application/apply-patch+yaml");
    kinf__refuse(call->refusal, 415, "UnsupportedMediaType", "415: Unsupported Media Type");
    call->refusal->details = KINF__DETAILS_EMPTY;
    return KINF_ERR_INVALID;
}

static int read_patch(struct call *call, enum kinf__patch_type type, struct cJSON **ret_patch)
{
    bool is_apply = type == KINF__PATCH_APPLY;
    int failed = kinf__body_parse(call->backend->body, is_apply, ret_patch, call->refusal);
    char why[KINF__REFUSAL_MESSAGE_SIZE];

    if (failed != KINF_ERR_INVALID)
        return failed;
    snprintf(why, sizeof why, "%s", call->refusal->message);
    return is_apply ? kinf__refuse_bad_request(call->refusal,
                                               "error decoding patch: error converting YAML to "
                                               "JSON: %s",
                                               why)
                    : kinf__refuse_bad_request(call->refusal, "invalid JSON patch");
}

static int patch(struct call *call)
{
    KINF__AUTO_DOC *change = NULL;
    enum kinf__patch_type type;
    bool force = false;
    int failed;

    if ((failed = find_patch_type(call, &type)) < 0 ||
        (failed = kinf__write_options_read_force(call->request->query, type == KINF__PATCH_APPLY,
                                                 &force, call->refusal)) < 0 ||
        (failed = read_patch(call, type, &change)) < 0)
        return failed;
    failed = kinf__verb_patch(&call->verb, type, change, force);
    return answer_verb(call, failed, call->verb.is_created ? 201 : 200);
}

/* --- delete --- */

static int read_delete_options(struct call *call, struct cJSON **ret_body,
                               struct kinf__delete_options *options)
{
    int failed = call->backend->body.len != 0 ? read_body(call, NULL, ret_body) : 0;

    return failed == 0 ? kinf__write_options_read_delete(call->request->query, *ret_body, options,
                                                         &call->verb.is_dry_run, call->refusal)
                       : failed;
}

/* Kinds whose deletion is answered with the object; of the others a Status tells. */
static bool returns_deleted(const struct kinf__resource *resource)
{
    if (*resource->group == '\0')
        return kinf__has_word("pods,services,persistentvolumes,persistentvolumeclaims,podtemplates,"
                              "resourcequotas,serviceaccounts",
                              resource->name);
    return strcmp(resource->group, "storage.k8s.io") == 0 &&
           strcmp(resource->name, "csistoragecapacities") != 0;
}

static int answer_deleted(struct call *call)
{
    const struct kinf__resource *resource = call->verb.resource;
    KINF__AUTO_DOC *status = cJSON_CreateObject();
    struct cJSON *details;

    if (status == NULL || kinf__doc_set_text(status, "kind", "Status") < 0 ||
        kinf__doc_set_text(status, "apiVersion", "v1") < 0 ||
        kinf__doc_object(status, "metadata") == NULL ||
        kinf__doc_set_text(status, "status", "Success") < 0 ||
        (details = kinf__doc_object(status, "details")) == NULL ||
        kinf__doc_set_text(details, "name", call->verb.name) < 0 ||
        (*resource->group != '\0' && kinf__doc_set_text(details, "group", resource->group) < 0) ||
        kinf__doc_set_text(details, "kind", resource->name) < 0 ||
        kinf__doc_set_text(details, "uid",
                           kinf__doc_text(call->verb.object, "metadata", "uid", NULL)) < 0)
        return kinf__refuse_no_memory(call->refusal);
    return answer_tree(call, status);
}

static void warn_of_orphans(struct call *call)
{
    const struct kinf__resource *resource = call->verb.resource;

    if (strcmp(resource->group, "batch") == 0 && strcmp(resource->name, "jobs") == 0)
        kinf__answer_warn(call->answer,
                          "child pods are preserved by default when jobs are deleted; set "
                          "propagationPolicy=Background to remove them or set "
                          "propagationPolicy=Orphan to suppress this warning");
}

static int delete_one(struct call *call)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    KINF__AUTO_DOC *body = NULL;
    bool is_gone;
    int failed = read_delete_options(call, &body, &options);

    if (failed < 0)
        return failed;
    if (options.propagation == KINF__PROPAGATION_DEFAULT)
        warn_of_orphans(call);
    failed = kinf__verb_delete(&call->verb, &options, &is_gone);
    if (failed == 0 && is_gone && !returns_deleted(call->verb.resource))
        return answer_deleted(call);
    return answer_verb(call, failed, 200);
}

/* --- deletecollection --- */

/* Items of built-in types do not say what they are: the list does. */
static int add_item(struct call *call, struct cJSON *items)
{
    struct cJSON *item = KINF__TAKE(call->verb.object);

    if (!call->verb.resource->is_custom) {
        kinf__doc_remove(item, "kind");
        kinf__doc_remove(item, "apiVersion");
    }
    return kinf__doc_append(items, item);
}

/* What is deleted by a selection, and the list that tells of it. */
static int delete_selected(struct call *call, const struct kinf__delete_options *options,
                           const struct kinf__selection *selection, struct cJSON *items)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf__store_snapshot(call->verb.resource);
    size_t patience = SIZE_MAX;
    const struct kinf_object *object;
    struct kinf__walk walk;

    kinf__walk_init(&walk, selection, snapshot, "");
    while (kinf__walk_next(&walk, &patience, &object) == KINF__WALK_OBJECT) {
        const char *key = kinf_object_key(object), *slash = strrchr(key, '/');
        char name_space[KINF_NAME_MAX] = "";
        bool is_gone;
        int failed;

        if (slash != NULL)
            snprintf(name_space, sizeof name_space, "%.*s", (int)(slash - key), key);
        call->verb.name_space = name_space;
        call->verb.name = slash != NULL ? slash + 1 : key;
        /* What is told is what they were. */
        failed = kinf__verb_get(&call->verb);
        if (failed == 0)
            failed = add_item(call, items);
        if (failed == 0)
            failed = kinf__verb_delete(&call->verb, options, &is_gone);
        cJSON_Delete(KINF__TAKE(call->verb.object));
        if (failed < 0)
            return failed == KINF_ERR_NO_MEMORY ? kinf__refuse_no_memory(call->refusal) : failed;
    }
    return 0;
}

static int answer_list(struct call *call, struct cJSON *take_items)
{
    const struct kinf__resource *resource = call->verb.resource;
    KINF__AUTO_DOC *list = cJSON_CreateObject();
    KINF__AUTO_DOC *items = take_items;
    char kind[KINF_NAME_MAX + 8], version[24], api_version[2 * KINF_NAME_MAX];
    struct cJSON *metadata;

    snprintf(kind, sizeof kind, "%sList", resource->kind);
    snprintf(version, sizeof version, "%llu",
             (unsigned long long)kinf__store_version(kinf__sim_store(call->sim)));
    snprintf(api_version, sizeof api_version, "%s%s%s", resource->group,
             *resource->group != '\0' ? "/" : "", call->verb.version->type->version);
    if (list == NULL || kinf__doc_set_text(list, "kind", kind) < 0 ||
        kinf__doc_set_text(list, "apiVersion", api_version) < 0 ||
        (metadata = kinf__doc_object(list, "metadata")) == NULL ||
        kinf__doc_set_text(metadata, "resourceVersion", version) < 0 ||
        kinf__doc_set(list, "items", KINF__TAKE(items)) < 0)
        return kinf__refuse_no_memory(call->refusal);
    return answer_tree(call, list);
}

static int delete_many(struct call *call)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    struct kinf__list_options selectors = { .labels = NULL };
    KINF__AUTO_DOC *body = NULL;
    struct kinf__selection selection;
    struct cJSON *items;
    int failed;

    if ((failed = kinf__list_options_read(call->request, &selectors, call->refusal)) < 0)
        return failed;
    failed = read_delete_options(call, &body, &options);
    if (failed == 0 && selectors.fields != NULL)
        failed =
            kinf__fields_bind(selectors.fields, call->verb.version->type, NULL, 0, call->refusal);
    selection = (struct kinf__selection){ .name_space = call->request->name_space,
                                          .name = "",
                                          .labels = selectors.labels,
                                          .fields = selectors.fields };
    items = cJSON_CreateArray();
    if (failed == 0)
        failed = items != NULL ? delete_selected(call, &options, &selection, items)
                               : kinf__refuse_no_memory(call->refusal);
    if (failed == 0)
        failed = answer_list(call, KINF__TAKE(items));
    cJSON_Delete(items);
    kinf__list_options_release(&selectors);
    return failed;
}

/* --- who --- */

/* False: the credentials are nobody's. */
static bool identify(const struct kinf__policy *policy, struct kinf_str token,
                     struct kinf__policy_user *ret_user)
{
    *ret_user = kinf__policy_anonymous();
    return token.len == 0 || kinf__policy_find_token(policy, token, ret_user);
}

/* --- reviews --- */

/* The server's words begin with the type and end with the faults, each of which is one cause. */
static int refuse_review(struct call *call, const struct kinf_error *err)
{
    static const char begin[] = " is invalid: ";
    const char *fault = strstr(err->message, begin), *colon;
    char field[256];

    if (err->http_status != 422 || fault == NULL)
        return kinf__refuse_bad_request(call->refusal, "%s", err->message);
    kinf__refuse(call->refusal, 422, "Invalid", "%s", err->message);
    kinf__refusal_set_object(call->refusal, call->verb.resource->group, "", "");
    fault += sizeof begin - 1;
    colon = strstr(fault, ": ");
    if (*fault == '[' || colon == NULL)
        return KINF_ERR_INVALID;
    snprintf(field, sizeof field, "%.*s", (int)(colon - fault), fault);
    kinf__refusal_add_cause(call->refusal, "FieldValueInvalid", field, colon + 2);
    return KINF_ERR_INVALID;
}

static int review(struct call *call)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf__policy *policy = kinf__sim_policy(call->sim);
    struct kinf__policy_user caller = kinf__policy_anonymous();
    KINF__AUTO_DOC *object = NULL;
    int failed = read_body(call, call->verb.resource->kind, &object);

    if (failed == 0)
        failed = kinf__verb_receive(&call->verb, object);
    tell_warnings(call);
    if (failed < 0)
        return failed;
    if (policy != NULL)
        (void)identify(policy, call->backend->head->token, &caller);
    failed = kinf__policy_review(policy, call->verb.resource->kind, &caller, object, &err);
    if (failed == KINF_ERR_NO_MEMORY)
        return kinf__refuse_no_memory(call->refusal);
    if (failed < 0)
        return refuse_review(call, &err);
    call->answer->code = 201;
    return answer_tree(call, object);
}

/* --- which --- */

static bool has_group(struct kinf__store *store, const char *group)
{
    for (const struct kinf__resource *at = NULL; (at = kinf__store_next(store, at)) != NULL;) {
        if (strcmp(at->group, group) == 0)
            return true;
    }
    return false;
}

/* As resource.c refuses reads of what is not there. */
static int refuse_unknown(struct call *call)
{
    const char *group = call->request->group;

    if (*group != '\0' &&
        (!has_group(kinf__sim_store(call->sim), group) || kinf__is_custom_group(group)))
        return kinf__refuse_path(call->refusal);
    return kinf__refuse_resource(call->refusal);
}

static bool has_verb(const struct kinf__resource *resource, const char *verb)
{
    return *resource->verbs == '\0' || kinf__has_word(resource->verbs, verb);
}

static int find_resource(struct call *call)
{
    const struct kinf__request *request = call->request;
    struct kinf__resource *resource =
        kinf__store_find(kinf__sim_store(call->sim), request->group, request->resource);

    if (resource == NULL)
        return refuse_unknown(call);
    call->verb.resource = resource;
    call->verb.version = kinf__resource_find_version(resource, request->version);
    if (call->verb.version == NULL || (!resource->namespaced && request->is_in_namespace) ||
        (resource->namespaced && *request->name != '\0' && *request->name_space == '\0'))
        return refuse_unknown(call);
    call->verb.name_space = request->name_space;
    call->verb.name = request->name;
    call->verb.subresource = request->subresource;
    return 0;
}

static int post_whole(struct call *call)
{
    return kinf__resource_is_stored(call->verb.resource) ? create(call) : review(call);
}

static int write_whole(struct call *call)
{
    static const struct {
        const char *method;
        bool is_named;
        const char *verb;
        int (*answer)(struct call *call);
    } writes[] = {
        { "POST", false, "create", post_whole },
        { "PUT", true, "update", update },
        { "PATCH", true, "patch", patch },
        { "DELETE", true, "delete", delete_one },
        { "DELETE", false, "deletecollection", delete_many },
    };
    bool is_named = *call->request->name != '\0';

    /* Over all namespaces there are reads only. */
    if (call->verb.resource->namespaced && *call->verb.name_space == '\0')
        return kinf__refuse_method(call->refusal);
    for (size_t i = 0; i < KINF__ARRAY_LEN(writes); i++) {
        if (is_method(call, writes[i].method) && is_named == writes[i].is_named &&
            has_verb(call->verb.resource, writes[i].verb))
            return writes[i].answer(call);
    }
    return kinf__refuse_method(call->refusal);
}

/* --- below an object --- */

static int answer_text(struct call *call, const char *text)
{
    call->answer->content_type = "text/plain";
    return kinf__buffer_append_str(&call->answer->body, kinf_str_from(text)) < 0
               ? kinf__refuse_no_memory(call->refusal)
               : 0;
}

static int answer_scale(struct call *call)
{
    KINF__AUTO_DOC *scale = NULL;
    int failed = kinf__scale_read(&call->verb, &scale);

    return failed < 0 ? failed : answer_tree(call, scale);
}

static int patch_scale(struct call *call, struct cJSON **scale)
{
    KINF__AUTO_DOC *change = NULL;
    enum kinf__patch_type type;
    int failed;

    if ((failed = find_patch_type(call, &type)) < 0 ||
        (failed = read_patch(call, type, &change)) < 0 ||
        (failed = kinf__scale_read(&call->verb, scale)) < 0)
        return failed;
    cJSON_Delete(KINF__TAKE(call->verb.object));
    return type == KINF__PATCH_JSON ? kinf__patch_json(scale, change, call->refusal)
                                    : kinf__patch_merge(scale, change, call->refusal);
}

static int write_scale(struct call *call)
{
    KINF__AUTO_DOC *scale = NULL;
    int failed =
        is_method(call, "PUT") ? read_body(call, "Scale", &scale) : patch_scale(call, &scale);

    if (failed == 0)
        failed = kinf__subresource_check_kind(&call->verb, scale);
    if (failed == 0)
        failed = kinf__scale_write(&call->verb, scale);
    return failed < 0 ? failed : answer_scale(call);
}

static int post_below(struct call *call)
{
    KINF__AUTO_DOC *body = NULL;
    int failed = read_body(call, kinf__subresource_kind(&call->verb), &body);

    if (failed == 0)
        failed = kinf__subresource_check_kind(&call->verb, body);
    if (failed == 0)
        failed = kinf__subresource_post(&call->verb, &body);
    if (failed < 0)
        return failed;
    call->answer->code = 201;
    return answer_tree(call, body);
}

static int read_below(struct call *call)
{
    if (strcmp(call->verb.subresource, "scale") == 0)
        return answer_scale(call);
    if (strcmp(call->verb.subresource, "log") == 0) {
        int failed = kinf__verb_get(&call->verb);

        return failed < 0 ? failed : answer_text(call, "kinformer-sim: nothing runs here\n");
    }
    if (!kinf__subresource_is_main(&call->verb))
        return kinf__refuse_method(call->refusal);
    return answer_verb(call, kinf__verb_get(&call->verb), 200);
}

static int answer_below(struct call *call)
{
    if (!kinf__subresource_is_known(&call->verb))
        return call->verb.resource->is_custom
                   ? kinf__refuse_not_found(call->refusal, call->verb.resource, call->verb.name)
                   : kinf__refuse_resource(call->refusal);
    if (is_method(call, "GET"))
        return read_below(call);
    if (is_method(call, "POST"))
        return post_below(call);
    if (is_method(call, "DELETE"))
        return kinf__refuse_method(call->refusal);
    if (strcmp(call->verb.subresource, "scale") == 0)
        return write_scale(call);
    if (!kinf__subresource_is_main(&call->verb))
        return kinf__refuse_method(call->refusal);
    return is_method(call, "PUT") ? update(call) : patch(call);
}

static void warn_of_age(struct call *call)
{
    const struct kinf__resource *resource = call->verb.resource;

    if (*resource->group == '\0' && strcmp(resource->name, "endpoints") == 0)
        kinf__answer_warn(call->answer, "v1 Endpoints is deprecated in v1.33+; use "
                                        "discovery.k8s.io/v1 EndpointSlice");
}

/* The lock is held. */
static int answer_locked(struct call *call)
{
    int failed = find_resource(call);

    if (failed == 0)
        warn_of_age(call);
    if (failed == 0)
        failed = kinf__write_options_read(call->request->query, call->backend->head->method,
                                          find_header(call->backend->head, "User-Agent"),
                                          &call->verb, call->manager, call->refusal);
    if (failed < 0)
        return failed;
    return *call->request->subresource == '\0' ? write_whole(call) : answer_below(call);
}

/* --- OpenAPI --- */

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
    bool is_protobuf = strstr(find_header(head, "Accept"), "proto-openapi") != NULL;

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

int kinf__sim_answer(const struct kinf__backend_call *backend, struct kinf__answer *answer,
                     struct kinf__refusal *refusal, void *ctx)
{
    struct kinf__sim *sim = ctx;
    struct call call = { .backend = backend,
                         .request = backend->request,
                         .sim = sim,
                         .answer = answer,
                         .refusal = &call.verb.refusal,
                         .verb = { .sim = sim } };
    int failed;

    if (backend->request->route == KINF__ROUTE_OTHER)
        return is_old_openapi(backend->head->target)
                   ? answer_old_openapi(backend->head, answer, refusal)
                   : answer_openapi(sim, backend->head->target, answer, refusal);
    failed = kinf__accept_negotiate(backend->head->accept, KINF__FORMS_RESOURCE, &call.accepted,
                                    refusal);
    if (failed < 0)
        return failed;
    read_content_type(&call);
    kinf__store_lock(kinf__sim_store(sim));
    failed = answer_locked(&call);
    kinf__store_unlock(kinf__sim_store(sim));
    if (failed < 0)
        *refusal = call.verb.refusal;
    kinf__verb_release(&call.verb);
    return failed;
}

int kinf__sim_admit(const struct kinf__request_head *head,
                    const struct kinf__attributes *attributes, struct kinf__refusal *refusal,
                    void *ctx)
{
    const struct kinf__policy *policy = kinf__sim_policy(ctx);
    struct kinf__policy_user user;

    if (policy == NULL)
        return 0;
    if (!identify(policy, head->token, &user))
        return kinf__refuse(refusal, 401, "Unauthorized", "Unauthorized");
    return kinf__policy_allows(policy, &user, attributes)
               ? 0
               : kinf__access_refuse(refusal, attributes, user.name, "");
}
