/*
 * What callbacks write with. Neighbours: apply.c decides what is worth a write.
 *
 * Invariant: every request of a call, also those of apply.c and finalizer.c, goes through
 * kinf__call_send(), which lets none out, nor wait, past the term in which the call began (C6); every
 * write to an object through kinf__call_write() or, what is applied, kinf__call_apply(), behind
 * which own_writes.h knows what the caches are to have before the next call (C3), and applied.h no
 * text that is not the last one.
 */
#include "controller/controller.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/misuse.h"
#include "json/scan.h"
#include "rest/request.h"

#define MEMORY_WAIT_MS 20

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

/* --- the term --- */

bool kinf__call_may_write(const struct kinf_call *call, int64_t *ret_left_ms)
{
    struct kinf_elector *elector = call->controller->options.elector;
    struct kinf_fence fence = { 0, KINF_FOREVER };

    if (kinf__waker_is_set(&call->controller->closed) || kinf__gate_is_stopping(call->controller) ||
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

int kinf__call_send(struct kinf_call *call, struct kinf_request *request,
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

int kinf__call_look(struct kinf_call *call, const struct kinf_type *type, const char *key,
                    const struct kinf_object **ret_object, struct kinf_error *err)
{
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    struct kinf_request request = KINF_REQUEST_INIT;
    char name_space[KINF_NAME_MAX];
    int failed;

    request.type = type;
    request.name = kinf__object_key_split(key, name_space);
    request.name_space = name_space;
    failed = kinf__call_send(call, &request, &response, err);
    return failed < 0
               ? failed
               : kinf_object_new_from_json(type, response.body, response.len, ret_object, err);
}

int kinf__call_is_gone(struct kinf_call *call, const struct kinf_type *type, const char *key,
                       const char *uid, struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    struct kinf_error own = KINF_ERROR_INIT;
    int failed = kinf__call_look(call, type, key, &object, &own);

    if (failed == 0)
        return strcmp(kinf_object_uid(object), uid) != 0;
    if (failed == KINF_ERR_NOT_FOUND)
        return 1;
    if (err != NULL)
        *err = own;
    return failed;
}

void kinf__call_note_gone(struct kinf_call *call, const struct kinf_type *type, const char *key,
                          const char *uid)
{
    struct kinf__own_write write;

    if (kinf__own_write_init(&write, call, type, key, NULL) < 0)
        return;
    kinf__own_write_deleted(&write, uid);
    kinf__own_write_release(&write);
}

void kinf__call_note_changed(struct kinf_call *call)
{
    struct kinf__own_write write;

    if (kinf__own_write_init(&write, call, kinf_object_type(call->object), call->key, NULL) < 0)
        return;
    kinf__own_write_refused(&write, kinf_object_resource_version(call->object));
    kinf__own_write_release(&write);
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

bool kinf__member_text(struct kinf__json_value object, const char *member, char *buf, size_t size)
{
    struct kinf__json_value value;

    return kinf__json_member(object, kinf_str_from(member), &value) &&
           kinf_json_string(value.raw, buf, size) == 0;
}

/* The answer is of another kind, as a Scale. Those that are not the object's have no version, or no
 * uid: a Status, a TokenRequest. */
static void note_version(struct kinf__own_write *write, struct kinf_str body)
{
    char key[KINF__KEY_SIZE], name_space[KINF_NAME_MAX] = "", name[KINF_NAME_MAX];
    char uid[KINF_NAME_MAX], version[KINF_NAME_MAX];
    struct kinf__json_value metadata;

    if (!kinf__json_member(kinf__json_value_of(body), KINF_STR("metadata"), &metadata) ||
        !kinf__member_text(metadata, "uid", uid, sizeof uid) ||
        !kinf__member_text(metadata, "resourceVersion", version, sizeof version) ||
        !kinf__member_text(metadata, "name", name, sizeof name))
        return;
    (void)kinf__member_text(metadata, "namespace", name_space, sizeof name_space);
    if (uid[0] != '\0' && version[0] != '\0' &&
        strcmp(kinf__object_key_join(key, name_space, name), write->key) == 0)
        kinf__own_write_changed(write, version);
}

/* Returns as kinf__own_write_stored(). */
static bool note_stored(struct kinf__own_write *write, struct kinf_str body)
{
    kinf_auto_object const struct kinf_object *object = NULL;

    if (parse(write->call, write->type, body, &object) < 0) {
        note_version(write, body);
        return false;
    }
    return (write->is_nameless || strcmp(kinf_object_key(object), write->key) == 0) &&
           kinf__own_write_stored(write, object);
}

/* What the server had seen of the object, as far as the request says. */
static void note_refused(struct kinf__own_write *write, const struct kinf_request *request,
                         int failed)
{
    struct kinf__json_value metadata;
    char seen[KINF_NAME_MAX];

    if (failed == KINF_ERR_EXISTS)
        kinf__own_write_refused(write, "");
    else if (request->if_resource_version != NULL)
        kinf__own_write_refused(write, request->if_resource_version);
    else if (request->body.len != 0 &&
             kinf__json_member(kinf__json_value_of(request->body), KINF_STR("metadata"),
                               &metadata) &&
             kinf__member_text(metadata, "resourceVersion", seen, sizeof seen))
        kinf__own_write_refused(write, seen);
}

/* A DELETE's answer is the object if it waits for finalizers, else a Status. Returns as
 * kinf__own_write_stored(). */
static bool note_outcome(struct kinf__own_write *write, const struct kinf_request *request,
                         const struct kinf_response *response)
{
    struct kinf_str body = { response->body, response->len };
    struct kinf__json_value details;
    char uid[KINF_NAME_MAX];

    bool is_chosen = note_stored(write, body);

    if (request->verb != KINF_VERB_DELETE)
        return is_chosen;
    if (request->if_uid != NULL)
        kinf__own_write_deleted(write, request->if_uid);
    else if (kinf__json_member(kinf__json_value_of(body), KINF_STR("details"), &details) &&
             kinf__member_text(details, "uid", uid, sizeof uid))
        kinf__own_write_deleted(write, uid);
    return is_chosen;
}

static int send_and_note(struct kinf_call *call, const char *key, struct kinf_request *request,
                         struct kinf_response *ret_response, bool *ret_is_chosen,
                         struct kinf_error *err)
{
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    struct kinf__own_write write;
    int failed = kinf__own_write_init(&write, call, request->type, key, err);

    if (failed < 0)
        return failed;
    failed = kinf__call_send(call, request, &response, err);
    if (failed == 0)
        *ret_is_chosen = note_outcome(&write, request, &response);
    else if (failed == KINF_ERR_CONFLICT || failed == KINF_ERR_EXISTS)
        note_refused(&write, request, failed);
    kinf__own_write_release(&write);
    if (failed == 0 && ret_response != NULL) {
        *ret_response = response;
        response = (struct kinf_response)KINF_RESPONSE_INIT;
    }
    return failed;
}

static void forget_both(struct kinf_call *call, const struct kinf_type *type, const char *key)
{
    kinf__mutex_lock(&call->controller->lock);
    kinf__applied_forget_both(&call->controller->applied, type, key);
    kinf__mutex_unlock(&call->controller->lock);
}

int kinf__call_write(struct kinf_call *call, const char *key, struct kinf_request *request,
                     struct kinf_response *ret_response, struct kinf_error *err)
{
    bool is_chosen;

    forget_both(call, request->type, key);
    return send_and_note(call, key, request, ret_response, &is_chosen, err);
}

int kinf__call_apply(struct kinf_call *call, struct kinf__applied_to to,
                     struct kinf_request *request, bool *ret_is_chosen, struct kinf_error *err)
{
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    int failed;

    kinf__mutex_lock(&call->controller->lock);
    kinf__applied_forget(&call->controller->applied, to);
    kinf__mutex_unlock(&call->controller->lock);
    failed = send_and_note(call, to.key, request, &response, ret_is_chosen, err);
    /* It was made anew, or may have been. */
    if (failed < 0 || response.http_status == 201)
        forget_both(call, to.type, to.key);
    return failed;
}

/* --- any request --- */

/* The name of what is created stands in its body; "": the server is to name it. */
static bool find_name(const struct kinf_request *request, char name[KINF_NAME_MAX])
{
    struct kinf__json_value metadata;

    if (request->name != NULL && strlen(request->name) < KINF_NAME_MAX) {
        snprintf(name, KINF_NAME_MAX, "%s", request->name);
        return true;
    }
    if (request->verb != KINF_VERB_CREATE)
        return false;
    if (!kinf__json_member(kinf__json_value_of(request->body), KINF_STR("metadata"), &metadata) ||
        !kinf__member_text(metadata, "name", name, KINF_NAME_MAX))
        name[0] = '\0';
    return true;
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
    char key[KINF__KEY_SIZE], name[KINF_NAME_MAX];
    int failed = kinf__options_read(&own, sizeof own, request, "struct kinf_request", err);

    if (failed < 0)
        return failed;
    if (own.field_manager == NULL && is_write(&own) && own.verb != KINF_VERB_DELETE)
        own.field_manager = call->controller->name;
    if (!is_write(&own) || !find_name(&own, name))
        return kinf__call_send(call, &own, ret_response, err);
    return kinf__call_write(call, kinf__object_key_join(key, own.name_space, name), &own,
                            ret_response, err);
}

/* --- delete --- */

/* There are others than that another one has its name. */
static int judge_conflict(struct kinf_call *call, const struct kinf_object *object,
                          struct kinf_error *err)
{
    int is_gone = kinf__call_is_gone(call, kinf_object_type(object), kinf_object_key(object),
                                     kinf_object_uid(object), err);

    if (is_gone < 0)
        return is_gone;
    return is_gone != 0 ? KINF_ERR_NOT_FOUND : KINF_ERR_CONFLICT;
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
    request.name = kinf__object_key_split(kinf_object_key(object), name_space);
    request.name_space = name_space;
    request.if_uid = kinf_object_uid(object);
    failed = kinf__call_write(call, kinf_object_key(object), &request, NULL, &own);
    if (failed == KINF_ERR_CONFLICT)
        failed = judge_conflict(call, object, &own);
    /* Also by a try before this one whose answer was lost. */
    if (failed == KINF_ERR_NOT_FOUND) {
        kinf__call_note_gone(call, request.type, kinf_object_key(object), request.if_uid);
        return 0;
    }
    if (failed < 0 && err != NULL)
        *err = own;
    return failed;
}
