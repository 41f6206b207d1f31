/*
 * From HTTP to verbs and back. Neighbours: serve/exchange.c brings requests here, verbs.c carries
 * writes out, subresources.c what stands below an object; request_delete.c has deletions.
 */
#include "apiserver/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "document/patch.h"
#include "document/protobuf.h"
#include "document/schema.h"
#include "serve/access.h"
#include "serve/encode.h"
#include "serve/request_head.h"

#include "apiserver/body.h"
#include "apiserver/openapi_request.h"
#include "apiserver/access_policy.h"
#include "apiserver/refuse.h"
#include "apiserver/request_priv.h"
#include "apiserver/subresources.h"
#include "apiserver/types.h"

/* --- what is asked --- */

bool kinf__sim_takes(const struct kinf__request_head *head, const struct kinf__request *request,
                     void *ctx)
{
    bool is_read = strcmp(head->method, "GET") == 0;

    (void)ctx;
    if (is_read && request->route == KINF__ROUTE_OTHER)
        return kinf__openapi_takes(head->target);
    if (request->route != KINF__ROUTE_RESOURCE || *request->resource == '\0')
        return false;
    if (is_read)
        return *request->subresource != '\0';
    return strcmp(head->method, "POST") == 0 || strcmp(head->method, "PUT") == 0 ||
           strcmp(head->method, "PATCH") == 0 || strcmp(head->method, "DELETE") == 0;
}

static bool is_method(const struct kinf__call *call, const char *method)
{
    return strcmp(call->backend->head->method, method) == 0;
}

static const char *find_header(const struct kinf__request_head *head, const char *name)
{
    const char *value = kinf__request_head_value(head, name);

    return value != NULL ? value : "";
}

static void read_content_type(struct kinf__call *call)
{
    const char *text = find_header(call->backend->head, "Content-Type");
    size_t len = strcspn(text, "; ");

    snprintf(call->content_type_text, sizeof call->content_type_text, "%.*s", (int)len, text);
    call->content_type = call->content_type_text;
}

static bool is_content(const struct kinf__call *call, const char *type)
{
    return strcasecmp(call->content_type, type) == 0;
}

/* --- bodies --- */

static int refuse_media_type(struct kinf__call *call, const char *accepted)
{
    return kinf__refuse(
        call->refusal, 415, "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "%s",
        accepted);
}

/* Of custom resources nobody sends it. */
static bool is_protobuf(const struct kinf__call *call)
{
    return is_content(call, KINF__PROTOBUF_CONTENT_TYPE) &&
           (!call->verb.resource->is_custom || is_method(call, "DELETE"));
}

static int read_protobuf(struct kinf__call *call, struct cJSON **ret_object)
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

int kinf__call_read_body(struct kinf__call *call, const char *kind, struct cJSON **ret_object)
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

static int encode_object(struct kinf__call *call, const struct cJSON *object)
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

int kinf__call_answer_tree(struct kinf__call *call, const struct cJSON *tree)
{
    return kinf__doc_print(tree, &call->answer->body) < 0 ||
                   kinf__buffer_append(&call->answer->body, "\n", 1) < 0
               ? kinf__refuse_no_memory(call->refusal)
               : 0;
}

static void tell_warnings(struct kinf__call *call)
{
    for (size_t i = 0; i < call->verb.n_warnings; i++)
        kinf__answer_warn(call->answer, "%s", call->verb.warnings[i]);
}

int kinf__call_answer_verb(struct kinf__call *call, int failed, int code)
{
    tell_warnings(call);
    if (failed < 0)
        return failed;
    call->answer->code = code;
    return encode_object(call, call->verb.object);
}

/* --- create, update, patch --- */

static int create(struct kinf__call *call)
{
    struct cJSON *object = NULL;
    int failed = kinf__call_read_body(call, call->verb.resource->kind, &object);

    if (failed < 0)
        return failed;
    return kinf__call_answer_verb(call, kinf__verb_create(&call->verb, object), 201);
}

static int update(struct kinf__call *call)
{
    struct cJSON *object = NULL;
    int failed = kinf__call_read_body(call, call->verb.resource->kind, &object);

    if (failed < 0)
        return failed;
    failed = kinf__verb_update(&call->verb, object);
    return kinf__call_answer_verb(call, failed, call->verb.is_created ? 201 : 200);
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

static int find_patch_type(struct kinf__call *call, enum kinf__patch_type *ret_type)
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

static int read_patch(struct kinf__call *call, enum kinf__patch_type type, struct cJSON **ret_patch)
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

static int patch(struct kinf__call *call)
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
    return kinf__call_answer_verb(call, failed, call->verb.is_created ? 201 : 200);
}

/* --- who --- */

/* False: the credentials are nobody's. */
static bool identify(const struct kinf__access_policy *policy, struct kinf_str token,
                     struct kinf__access_policy_user *ret_user)
{
    *ret_user = kinf__access_policy_anonymous();
    return token.len == 0 || kinf__access_policy_find_token(policy, token, ret_user);
}

/* --- reviews --- */

/* The server's words begin with the type and end with the faults, each of which is one cause. */
static int refuse_review(struct kinf__call *call, const struct kinf_error *err)
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

static int review(struct kinf__call *call)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf__access_policy *policy = kinf__sim_policy(call->sim);
    struct kinf__access_policy_user caller = kinf__access_policy_anonymous();
    KINF__AUTO_DOC *object = NULL;
    int failed = kinf__call_read_body(call, call->verb.resource->kind, &object);

    if (failed == 0)
        failed = kinf__verb_receive(&call->verb, object);
    tell_warnings(call);
    if (failed < 0)
        return failed;
    if (policy != NULL)
        (void)identify(policy, call->backend->head->token, &caller);
    failed = kinf__access_policy_review(policy, call->verb.resource->kind, &caller, object, &err);
    if (failed == KINF_ERR_NO_MEMORY)
        return kinf__refuse_no_memory(call->refusal);
    if (failed < 0)
        return refuse_review(call, &err);
    call->answer->code = 201;
    return kinf__call_answer_tree(call, object);
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
static int refuse_unknown(struct kinf__call *call)
{
    const char *group = call->request->group;

    if (*group != '\0' &&
        (!has_group(kinf__sim_store(call->sim), group) || kinf__is_custom_group(group)))
        return kinf__refuse_path(call->refusal);
    return kinf__refuse_resource(call->refusal);
}

static int find_resource(struct kinf__call *call)
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

/* What is posted to an object's subresource, or in its name. */
static int post_to_object(struct kinf__call *call, struct cJSON **body)
{
    int failed = kinf__subresource_check_kind(&call->verb, *body);

    if (failed == 0)
        failed = kinf__subresource_post(&call->verb, body);
    if (failed < 0)
        return failed;
    call->answer->code = 201;
    return kinf__call_answer_tree(call, *body);
}

/* The old way: the binding says itself of which pod it is. */
static int bind(struct kinf__call *call)
{
    KINF__AUTO_DOC *binding = NULL;
    int failed = kinf__call_read_body(call, "Binding", &binding);
    char name[KINF_NAME_MAX];

    if (failed < 0)
        return failed;
    snprintf(name, sizeof name, "%s", kinf__doc_text(binding, "metadata", "name", NULL));
    call->verb.resource = kinf__store_find(kinf__sim_store(call->sim), "", "pods");
    call->verb.version = &call->verb.resource->versions[0];
    call->verb.subresource = "binding";
    call->verb.name = name;
    failed = post_to_object(call, &binding);
    call->verb.name = "";
    return failed;
}

static int post_whole(struct kinf__call *call)
{
    if (strcmp(call->verb.resource->kind, "Binding") == 0)
        return bind(call);
    return kinf__resource_is_stored(call->verb.resource) ? create(call) : review(call);
}

static int write_whole(struct kinf__call *call)
{
    static const struct {
        const char *method;
        bool is_named;
        const char *verb;
        int (*answer)(struct kinf__call *call);
    } writes[] = {
        { "POST", false, "create", post_whole },
        { "PUT", true, "update", update },
        { "PATCH", true, "patch", patch },
        { "DELETE", true, "delete", kinf__call_delete_one },
        { "DELETE", false, "deletecollection", kinf__call_delete_many },
    };
    bool is_named = *call->request->name != '\0';

    /* Over all namespaces there are reads only. */
    if (call->verb.resource->namespaced && *call->verb.name_space == '\0')
        return kinf__refuse_method(call->refusal);
    for (size_t i = 0; i < KINF__ARRAY_LEN(writes); i++) {
        if (is_method(call, writes[i].method) && is_named == writes[i].is_named &&
            kinf__has_verb(call->verb.resource->verbs, writes[i].verb))
            return writes[i].answer(call);
    }
    return kinf__refuse_method(call->refusal);
}

/* --- below an object --- */

static int answer_text(struct kinf__call *call, const char *text)
{
    call->answer->content_type = "text/plain";
    return kinf__buffer_append_str(&call->answer->body, kinf_str_from(text)) < 0
               ? kinf__refuse_no_memory(call->refusal)
               : 0;
}

static int answer_scale(struct kinf__call *call)
{
    KINF__AUTO_DOC *scale = NULL;
    int failed = kinf__scale_read(&call->verb, &scale);

    return failed < 0 ? failed : kinf__call_answer_tree(call, scale);
}

static int patch_scale(struct kinf__call *call, struct cJSON **scale)
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

static int check_scale_types(struct kinf__call *call, const struct cJSON *scale)
{
    const struct kinf__schema_node *node =
        kinf__schema_find(kinf__sim_schema(call->sim), "autoscaling", "v1", "Scale");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    int failed = kinf__schema_check_types(node, scale, "Scale", "v1", call->refusal);

    if (failed != KINF_ERR_INVALID || is_method(call, "PUT"))
        return failed;
    return kinf__doc_print(scale, &text) < 0 || kinf__buffer_cstr(&text) == NULL
               ? kinf__refuse_no_memory(call->refusal)
               : kinf__verb_refuse_made(&call->verb, text.bytes);
}

static int write_scale(struct kinf__call *call)
{
    KINF__AUTO_DOC *scale = NULL;
    int failed = is_method(call, "PUT") ? kinf__call_read_body(call, "Scale", &scale)
                                        : patch_scale(call, &scale);

    if (failed == 0)
        failed = kinf__subresource_check_kind(&call->verb, scale);
    if (failed == 0)
        failed = check_scale_types(call, scale);
    if (failed == 0)
        failed = kinf__scale_write(&call->verb, scale);
    return failed < 0 ? failed : answer_scale(call);
}

static int post_below(struct kinf__call *call)
{
    KINF__AUTO_DOC *body = NULL;
    int failed = kinf__call_read_body(call, kinf__subresource_kind(&call->verb), &body);

    return failed == 0 ? post_to_object(call, &body) : failed;
}

static int read_below(struct kinf__call *call)
{
    if (strcmp(call->verb.subresource, "scale") == 0)
        return answer_scale(call);
    if (strcmp(call->verb.subresource, "log") == 0) {
        int failed = kinf__verb_get(&call->verb);

        return failed < 0 ? failed : answer_text(call, "kinformer-sim: nothing runs here\n");
    }
    if (!kinf__subresource_is_main(&call->verb))
        return kinf__refuse_method(call->refusal);
    return kinf__call_answer_verb(call, kinf__verb_get(&call->verb), 200);
}

static int answer_below(struct kinf__call *call)
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

static void warn_of_age(struct kinf__call *call)
{
    const struct kinf__resource *resource = call->verb.resource;

    if (*resource->group == '\0' && strcmp(resource->name, "endpoints") == 0)
        kinf__answer_warn(call->answer, "v1 Endpoints is deprecated in v1.33+; use "
                                        "discovery.k8s.io/v1 EndpointSlice");
}

/* The lock is held. */
static int answer_locked(struct kinf__call *call)
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

int kinf__sim_answer(const struct kinf__backend_call *backend, struct kinf__answer *answer,
                     struct kinf__refusal *refusal, void *ctx)
{
    struct kinf__sim *sim = ctx;
    struct kinf__call call = { .backend = backend,
                               .request = backend->request,
                               .sim = sim,
                               .answer = answer,
                               .refusal = &call.verb.refusal,
                               .verb = { .sim = sim } };
    int failed;

    if (backend->request->route == KINF__ROUTE_OTHER)
        return kinf__openapi_answer(sim, backend->head, answer, refusal);
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
    const struct kinf__access_policy *policy = kinf__sim_policy(ctx);
    struct kinf__access_policy_user user;

    if (policy == NULL)
        return 0;
    if (!identify(policy, head->token, &user))
        return kinf__refuse(refusal, 401, "Unauthorized", "Unauthorized");
    return kinf__access_policy_allows(policy, &user, attributes)
               ? 0
               : kinf__access_refuse(refusal, attributes, user.name, "");
}
