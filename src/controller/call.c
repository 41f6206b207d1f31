/*
 * What a callback writes with: within the term of its call, and remembered (C3, C6).
 */
#include "controller/controller.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "json/quote.h"
#include "json/scan.h"
#include "rest/request.h"

#define MAX_DEPTH      1000
#define MEMORY_WAIT_MS 20
#define KEY_SIZE       (2 * KINF_NAME_MAX)

/* --- what a call is told --- */

const char *kinf_call_key(const struct kinf_call *call)
{
    KINF__REFUSE_NULL(NULL, "", call);
    return call->key;
}

const struct kinf_object *kinf_call_object(const struct kinf_call *call)
{
    KINF__REFUSE_NULL(NULL, NULL, call);
    return call->object;
}

struct kinf_client *kinf_call_client(const struct kinf_call *call)
{
    KINF__REFUSE_NULL(NULL, NULL, call);
    return call->controller->client;
}

void kinf_call_requeue_after(struct kinf_call *call, int64_t delay_ms)
{
    KINF__REFUSE_NULL(NULL, , call);
    if (delay_ms < 0)
        delay_ms = 0;
    if (call->requeue_after_ms < 0 || delay_ms < call->requeue_after_ms)
        call->requeue_after_ms = delay_ms;
}

const char *kinf__call_split_key(const char *key, char name_space[KINF_NAME_MAX])
{
    const char *slash = strchr(key, '/');

    snprintf(name_space, KINF_NAME_MAX, "%.*s", slash != NULL ? (int)(slash - key) : 0, key);
    return slash != NULL ? slash + 1 : key;
}

/* --- the term --- */

bool kinf__call_may_write(const struct kinf_call *call, int64_t *ret_left_ms)
{
    struct kinf_elector *elector = call->controller->options.elector;
    struct kinf_fence fence = { 0, KINF_FOREVER };

    if (kinf__waker_is_set(&call->controller->closed) ||
        kinf__controller_is_stopping(call->controller) ||
        (elector != NULL && (!kinf_elector_fence(elector, &fence) || fence.term != call->term)))
        return false;
    *ret_left_ms = fence.left_ms;
    return true;
}

static int stopped(struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_STOPPED,
                           "the controller is stopped, or does not lead any more");
}

int kinf__call_begin(struct kinf_call *call, struct kinf_error *err)
{
    struct kinf_elector *elector = call->controller->options.elector;
    struct kinf_fence fence = { 0, 0 };
    int64_t left_ms;

    if (elector != NULL && !kinf_elector_fence(elector, &fence))
        return stopped(err);
    call->term = fence.term;
    return kinf__call_may_write(call, &left_ms) ? 0 : stopped(err);
}

/* --- one request --- */

/* `request` is complete. */
static int send(struct kinf_call *call, struct kinf_request *request,
                struct kinf_response *ret_response, struct kinf_error *err)
{
    struct kinf_client *client = call->controller->client;
    int64_t left_ms, asked_ms = request->timeout_ms;
    int failed;

    if (!kinf__call_may_write(call, &left_ms))
        return stopped(err);
    if (asked_ms == 0)
        asked_ms = kinf__http_request_timeout_ms(call->worker->http);
    request->timeout_ms = asked_ms < left_ms ? asked_ms : left_ms;
    kinf__count(call->controller, KINF__N_REQUESTS);
    failed = kinf__request_over(client, call->worker->http, &call->controller->closed, request,
                                ret_response, err);
    /* It was the term's time that was over. */
    if (failed == KINF_ERR_TIMEOUT && asked_ms > left_ms && !kinf__call_may_write(call, &left_ms))
        return stopped(err);
    return failed;
}

/* What was written must be known: want of memory is waited out. */
static int parse(struct kinf_call *call, const struct kinf_type *type, struct kinf_str body,
                 const struct kinf_object **ret_object)
{
    int64_t left_ms;
    int failed;

    while ((failed = kinf_object_new_from_json(type, body.bytes, body.len, ret_object, NULL)) ==
               KINF_ERR_NO_MEMORY &&
           kinf__call_may_write(call, &left_ms))
        (void)kinf__waker_wait(&call->controller->closed, MEMORY_WAIT_MS);
    return failed;
}

static void note_stored(struct kinf__own_write *write, struct kinf_str body)
{
    const struct kinf_object *object;

    /* Some subresources answer with another kind. */
    if (parse(write->call, write->type, body, &object) < 0)
        return;
    if (strcmp(kinf_object_key(object), write->key) == 0)
        kinf__own_write_stored(write, object);
    kinf_object_unref(object);
}

/* What the server had seen of the object, as far as the request says. */
static void note_refused(struct kinf__own_write *write, const struct kinf_request *request,
                         int failed)
{
    struct kinf__json_value metadata, version;
    char seen[KINF_NAME_MAX];

    if (failed == KINF_ERR_EXISTS)
        kinf__own_write_refused(write, "");
    else if (request->if_resource_version != NULL)
        kinf__own_write_refused(write, request->if_resource_version);
    else if (request->body.len != 0 &&
             kinf__json_member(kinf__json_value_of(request->body), KINF_STR("metadata"),
                               &metadata) &&
             kinf__json_member(metadata, KINF_STR("resourceVersion"), &version) &&
             kinf_json_string(version.raw, seen, sizeof seen) == 0)
        kinf__own_write_refused(write, seen);
}

static void forget_applied(struct kinf_call *call, const struct kinf_type *type, const char *key)
{
    kinf__mutex_lock(&call->controller->lock);
    kinf__applied_forget(&call->controller->applied, type, key);
    kinf__mutex_unlock(&call->controller->lock);
}

/* A DELETE's answer is the object if it waits for finalizers, else a Status. */
static void note_outcome(struct kinf__own_write *write, const struct kinf_request *request,
                         const struct kinf_response *response)
{
    struct kinf_str body = { response->body, response->len };
    struct kinf__json_value details, uid;
    char text[KINF_NAME_MAX];

    note_stored(write, body);
    if (request->verb != KINF_VERB_DELETE)
        return;
    if (request->if_uid != NULL)
        kinf__own_write_deleted(write, request->if_uid);
    else if (kinf__json_member(kinf__json_value_of(body), KINF_STR("details"), &details) &&
             kinf__json_member(details, KINF_STR("uid"), &uid) &&
             kinf_json_string(uid.raw, text, sizeof text) == 0)
        kinf__own_write_deleted(write, text);
}

/* A write to the object of a key, which is remembered. */
static int write_object(struct kinf_call *call, const char *key, struct kinf_request *request,
                        struct kinf_response *ret_response, struct kinf_error *err)
{
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    struct kinf__own_write write;
    int failed = kinf__own_write_init(&write, call, request->type, key, err);

    if (failed < 0)
        return failed;
    forget_applied(call, request->type, key);
    failed = send(call, request, &response, err);
    if (failed == 0)
        note_outcome(&write, request, &response);
    else if (failed == KINF_ERR_CONFLICT || failed == KINF_ERR_EXISTS)
        note_refused(&write, request, failed);
    kinf__own_write_release(&write);
    if (failed == 0 && ret_response != NULL) {
        *ret_response = response;
        response = (struct kinf_response)KINF_RESPONSE_INIT;
    }
    return failed;
}

/* --- any request --- */

static const char *make_key(char key[KEY_SIZE], const char *name_space, const char *name)
{
    bool has_namespace = name_space != NULL && *name_space != '\0';

    snprintf(key, KEY_SIZE, "%s%s%s", has_namespace ? name_space : "", has_namespace ? "/" : "",
             name);
    return key;
}

/* The name of what is created stands in its body, if it has one yet. */
static bool find_name(const struct kinf_request *request, char name[KINF_NAME_MAX])
{
    struct kinf__json_value metadata, value;

    if (request->name != NULL && strlen(request->name) < KINF_NAME_MAX) {
        snprintf(name, KINF_NAME_MAX, "%s", request->name);
        return true;
    }
    return request->verb == KINF_VERB_CREATE &&
           kinf__json_member(kinf__json_value_of(request->body), KINF_STR("metadata"), &metadata) &&
           kinf__json_member(metadata, KINF_STR("name"), &value) &&
           kinf_json_string(value.raw, name, KINF_NAME_MAX) == 0;
}

static bool is_write(const struct kinf_request *request)
{
    return request->verb != KINF_VERB_GET && request->verb != KINF_VERB_LIST &&
           request->verb != KINF_VERB_DELETE_COLLECTION && request->type != NULL &&
           !request->dry_run;
}

int kinf_call_request(struct kinf_call *call, const struct kinf_request *request,
                      struct kinf_response *ret_response, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, call, request);

    struct kinf_request own;
    char key[KEY_SIZE], name[KINF_NAME_MAX];
    int failed = kinf__options_read(&own, sizeof own, request, "struct kinf_request", err);

    if (failed < 0)
        return failed;
    if (own.field_manager == NULL && is_write(&own) && own.verb != KINF_VERB_DELETE)
        own.field_manager = call->controller->name;
    if (!is_write(&own) || !find_name(&own, name))
        return send(call, &own, ret_response, err);
    return write_object(call, make_key(key, own.name_space, name), &own, ret_response, err);
}

/* --- what is applied --- */

/* Which object a write is about. */
struct target {
    const struct kinf_type *type;
    const char *name_space, *name;
    const char *key;
    const char *owner_annotation, *owner; /* NULL: anybody's */
};

/* Appends `,"key":value` for each member whose key is none of `but`. */
static int append_members(struct kinf__buffer *out, struct kinf__json_value object,
                          const char *const *but)
{
    struct kinf__json_iter members;
    struct kinf__json_value value;
    struct kinf_str key;

    if (!kinf__json_iter_init(&members, object))
        return 0;
    while (kinf__json_iter_next(&members, &key, &value)) {
        const char *const *name = but;

        while (*name != NULL && !kinf__json_string_equals(key, kinf_str_from(*name)))
            name++;
        if (*name == NULL &&
            (kinf__buffer_append(out, ",", 1) < 0 || kinf__buffer_append_str(out, key) < 0 ||
             kinf__buffer_append(out, ":", 1) < 0 || kinf__buffer_append_str(out, value.raw) < 0))
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static struct kinf__json_value member(struct kinf__json_value object, const char *key)
{
    struct kinf__json_value value = { KINF__JSON_NULL, { NULL, 0 } };

    (void)kinf__json_member(object, kinf_str_from(key), &value);
    return value;
}

static int append_name(struct kinf__buffer *out, const struct target *target)
{
    const struct kinf_type *type = target->type;

    if (kinf__buffer_printf(
            out, "{\"apiVersion\":\"%s%s%s\",\"kind\":\"%s\",\"metadata\":{\"name\":", type->group,
            type->group[0] != '\0' ? "/" : "", type->version, type->kind) < 0 ||
        kinf__quote(out, kinf_str_from(target->name)) < 0)
        return KINF_ERR_NO_MEMORY;
    if (target->name_space == NULL || *target->name_space == '\0')
        return 0;
    return kinf__buffer_append_str(out, KINF_STR(",\"namespace\":")) < 0
               ? KINF_ERR_NO_MEMORY
               : kinf__quote(out, kinf_str_from(target->name_space));
}

/* Whose it is stands in front of the other annotations. */
static int append_annotations(struct kinf__buffer *out, const struct target *target,
                              struct kinf__json_value annotations)
{
    const char *const but[] = { target->owner_annotation, NULL };

    if (kinf__buffer_append_str(out, KINF_STR(",\"annotations\":{")) < 0 ||
        kinf__quote(out, kinf_str_from(target->owner_annotation)) < 0 ||
        kinf__buffer_append(out, ":", 1) < 0 ||
        kinf__quote(out, kinf_str_from(target->owner)) < 0 ||
        append_members(out, annotations, but) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "}", 1);
}

static int append_metadata(struct kinf__buffer *out, const struct target *target,
                           struct kinf__json_value metadata)
{
    const char *const but[] = { "name", "namespace",
                                target->owner_annotation != NULL ? "annotations" : NULL, NULL };

    if (append_name(out, target) < 0 ||
        (target->owner_annotation != NULL &&
         append_annotations(out, target, member(metadata, "annotations")) < 0) ||
        append_members(out, metadata, but) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "}", 1);
}

static int append_rest(struct kinf__buffer *out, struct kinf__json_value whole)
{
    static const char *const but[] = { "apiVersion", "kind", "metadata", NULL };

    return append_members(out, whole, but) < 0 ? KINF_ERR_NO_MEMORY
                                               : kinf__buffer_append(out, "}", 1);
}

static int check_json(struct kinf_str json, struct kinf_error *err)
{
    size_t len;

    if (kinf__json_scan_all(json, MAX_DEPTH, &len) < 0 ||
        kinf__json_value_of(json).type != KINF__JSON_OBJECT)
        return kinf__error_set(err, KINF_ERR_INVALID, "what is to be applied is no JSON object");
    return 0;
}

static int make_body(struct kinf__buffer *out, const struct target *target, struct kinf_str json,
                     struct kinf_error *err)
{
    struct kinf__json_value whole = kinf__json_value_of(json);

    if (append_metadata(out, target, member(whole, "metadata")) < 0 || append_rest(out, whole) < 0)
        return kinf__error_no_memory(err);
    return 0;
}

static bool covers(const struct kinf_object *object, struct kinf_str body)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str text;

    return kinf_object_full_json(object, &scratch, &text, NULL) == 0 &&
           kinf__json_covers(kinf__json_value_of(text), kinf__json_value_of(body));
}

static bool is_applied(struct kinf_call *call, struct kinf__applied_to to, struct kinf_str body)
{
    bool is_it;

    kinf__mutex_lock(&call->controller->lock);
    is_it = kinf__applied_is(&call->controller->applied, to, body);
    kinf__mutex_unlock(&call->controller->lock);
    if (!is_it)
        return false;
    KINF__TRIGGER_FOR_EACH (trigger, call->controller) {
        kinf_auto_object const struct kinf_object *object =
            kinf__trigger_has_place(trigger, to.type, to.key) ? kinf__trigger_get(trigger, to.key)
                                                              : NULL;

        if (object != NULL && covers(object, body))
            return true;
    }
    return false;
}

static void set_applied(struct kinf_call *call, struct kinf__applied_to to, struct kinf_str body)
{
    bool is_watched = false;

    KINF__TRIGGER_FOR_EACH (trigger, call->controller)
        is_watched = is_watched || kinf__trigger_has_place(trigger, to.type, to.key);
    if (!is_watched)
        return;
    kinf__mutex_lock(&call->controller->lock);
    kinf__applied_set(&call->controller->applied, to, body);
    kinf__mutex_unlock(&call->controller->lock);
}

static int apply_body(struct kinf_call *call, const struct target *target, const char *subresource,
                      struct kinf_str body, struct kinf_error *err)
{
    const struct kinf__applied_to to = { target->type, target->key, subresource != NULL };
    struct kinf_request request = KINF_REQUEST_INIT;
    int failed;

    if (is_applied(call, to, body)) {
        kinf__count(call->controller, KINF__N_APPLIES_SPARED);
        return 0;
    }
    request.verb = KINF_VERB_APPLY;
    request.type = target->type;
    request.name_space = target->name_space;
    request.name = target->name;
    request.subresource = subresource;
    request.body = body;
    request.field_manager = call->controller->name;
    request.force = true;
    failed = write_object(call, target->key, &request, NULL, err);
    if (failed == 0)
        set_applied(call, to, body);
    return failed;
}

/* --- whose it is --- */

static int check_owner(const struct kinf_object *object, const struct target *target,
                       struct kinf_error *err)
{
    char owner[KEY_SIZE] = "";
    int rc = kinf_object_get_annotation(object, target->owner_annotation, owner, sizeof owner);

    if (rc == KINF_ERR_NO_MEMORY)
        return kinf__error_no_memory(err);
    return rc == 0 && strcmp(owner, target->owner) == 0
               ? 0
               : kinf__error_set(err, KINF_ERR_EXISTS, "%s \"%s\" is there, and not ours",
                                 target->type->resource, target->key);
}

/* Nothing is asked of an object that is cached. */
static const struct kinf_object *get_cached(struct kinf_call *call, const struct target *target)
{
    KINF__TRIGGER_FOR_EACH (trigger, call->controller) {
        const struct kinf_object *object =
            kinf__trigger_has_place(trigger, target->type, target->key)
                ? kinf__trigger_get(trigger, target->key)
                : NULL;

        if (object != NULL)
            return object;
    }
    return NULL;
}

/* With labels and owner alone: what is created can be added to, but not be taken away, by apply. */
static int create(struct kinf_call *call, const struct target *target, struct kinf_str json,
                  struct kinf_error *err)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    struct kinf_request request = KINF_REQUEST_INIT;
    struct kinf__json_value labels =
        member(member(kinf__json_value_of(json), "metadata"), "labels");
    struct kinf__json_value none = { KINF__JSON_NULL, { NULL, 0 } };

    if (append_name(&body, target) < 0 || append_annotations(&body, target, none) < 0 ||
        (labels.type == KINF__JSON_OBJECT &&
         (kinf__buffer_append_str(&body, KINF_STR(",\"labels\":")) < 0 ||
          kinf__buffer_append_str(&body, labels.raw) < 0)) ||
        kinf__buffer_append_str(&body, KINF_STR("}}")) < 0)
        return kinf__error_no_memory(err);
    request.verb = KINF_VERB_CREATE;
    request.type = target->type;
    request.name_space = target->name_space;
    request.body = kinf__buffer_str(&body);
    request.field_manager = call->controller->name;
    return write_object(call, target->key, &request, NULL, err);
}

static int look_at_server(struct kinf_call *call, const struct target *target,
                          const struct kinf_object **ret_object, struct kinf_error *err)
{
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    struct kinf_request request = KINF_REQUEST_INIT;
    int failed;

    request.type = target->type;
    request.name_space = target->name_space;
    request.name = target->name;
    failed = send(call, &request, &response, err);
    return failed < 0 ? failed
                      : kinf_object_new_from_json(target->type, response.body, response.len,
                                                  ret_object, err);
}

/* Makes sure that the object is there and ours. The server decides who created it. */
static int claim(struct kinf_call *call, const struct target *target, struct kinf_str json,
                 struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *object = get_cached(call, target);
    struct kinf_error own = KINF_ERROR_INIT;
    int failed;

    if (object != NULL)
        return check_owner(object, target, err);
    failed = create(call, target, json, &own);
    if (failed == KINF_ERR_EXISTS) {
        failed = look_at_server(call, target, &object, &own);
        if (failed == 0)
            return check_owner(object, target, err);
    }
    if (failed < 0 && err != NULL)
        *err = own;
    return failed;
}

/* --- apply and delete --- */

static int apply(struct kinf_call *call, const struct target *target, const char *subresource,
                 struct kinf_str json, struct kinf_error *err)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    int failed = check_json(json, err);

    if (failed == 0 && target->owner_annotation != NULL)
        failed = claim(call, target, json, err);
    if (failed == 0)
        failed = make_body(&body, target, json, err);
    return failed < 0 ? failed
                      : apply_body(call, target, subresource, kinf__buffer_str(&body), err);
}

static int check_target(struct target *target, char key[KEY_SIZE], struct kinf_error *err)
{
    size_t len =
        strlen(target->name) + (target->name_space != NULL ? strlen(target->name_space) : 0);

    if (len + 2 > KEY_SIZE)
        return kinf__error_set(err, KINF_ERR_INVALID, "the name is too long");
    target->key = make_key(key, target->name_space, target->name);
    return 0;
}

int kinf_call_apply(struct kinf_call *call, const struct kinf_type *type, const char *name_space,
                    const char *name, struct kinf_str json, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, call, type, name, json.bytes);

    struct target target = { .type = type,
                             .name_space = name_space,
                             .name = name,
                             .owner_annotation = call->controller->owner_annotation,
                             .owner = call->key };
    char key[KEY_SIZE];
    int failed = check_target(&target, key, err);

    return failed < 0 ? failed : apply(call, &target, NULL, json, err);
}

int kinf_call_apply_status(struct kinf_call *call, const struct kinf_type *type,
                           const char *name_space, const char *name, struct kinf_str json,
                           struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, call, type, name, json.bytes);

    struct target target = { .type = type, .name_space = name_space, .name = name };
    char key[KEY_SIZE];
    int failed = check_target(&target, key, err);

    return failed < 0 ? failed : apply(call, &target, "status", json, err);
}

int kinf_call_delete(struct kinf_call *call, const struct kinf_object *object,
                     struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, call, object);

    struct kinf_request request = KINF_REQUEST_INIT;
    struct kinf_error own = KINF_ERROR_INIT;
    char name_space[KINF_NAME_MAX];
    int failed;

    request.verb = KINF_VERB_DELETE;
    request.type = kinf_object_type(object);
    request.name = kinf__call_split_key(kinf_object_key(object), name_space);
    request.name_space = name_space;
    request.if_uid = kinf_object_uid(object);
    failed = write_object(call, kinf_object_key(object), &request, NULL, &own);
    /* It is gone, or another one has its name. */
    if (failed == KINF_ERR_NOT_FOUND || failed == KINF_ERR_CONFLICT)
        return 0;
    if (failed < 0 && err != NULL)
        *err = own;
    return failed;
}
