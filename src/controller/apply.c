/*
 * Apply: the body, whose the object is, and whether it is worth a request. Neighbours: call.c
 * sends it, applied.h remembers what was.
 *
 * Invariant: nothing is forced upon an object that is not ours: whose it is comes before what it is
 * to be, and the server is the judge of who created it.
 */
#include "controller/controller.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/misuse.h"
#include "json/quote.h"
#include "json/scan.h"

#define MAX_DEPTH 1000

/* --- the body --- */

/* Which object a write is about. */
struct target {
    const struct kinf_type *type;
    const char *name_space, *name;
    const char *key;
    const char *owner_annotation, *owner; /* NULL: anybody's */
    const char *uid;                      /* of an owned one, once it is there */
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
    char api_version[KINF__API_VERSION_SIZE];

    kinf__type_api_version(target->type, api_version);
    if (kinf__buffer_printf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":",
                            api_version, target->type->kind) < 0 ||
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

/* By the uid the server refuses to force it upon another that has the name since. */
static int append_owner(struct kinf__buffer *out, const struct target *target,
                        struct kinf__json_value metadata)
{
    if (kinf__buffer_append_str(out, KINF_STR(",\"uid\":")) < 0 ||
        kinf__quote(out, kinf_str_from(target->uid)) < 0)
        return KINF_ERR_NO_MEMORY;
    return append_annotations(out, target, member(metadata, "annotations"));
}

static int append_metadata(struct kinf__buffer *out, const struct target *target,
                           struct kinf__json_value metadata)
{
    static const char *const of_any[] = { "name", "namespace", NULL };
    static const char *const of_owned[] = { "name", "namespace", "uid", "annotations", NULL };
    bool is_owned = target->owner_annotation != NULL;

    if (append_name(out, target) < 0 || (is_owned && append_owner(out, target, metadata) < 0) ||
        append_members(out, metadata, is_owned ? of_owned : of_any) < 0)
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

/* --- whether the cache has it --- */

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

/* Of what no informer chooses nobody tells the end, with which it is forgotten. */
static void set_applied(struct kinf_call *call, struct kinf__applied_to to, struct kinf_str body)
{
    kinf__mutex_lock(&call->controller->lock);
    kinf__applied_set(&call->controller->applied, to, body);
    kinf__mutex_unlock(&call->controller->lock);
}

static int apply_body(struct kinf_call *call, const struct target *target, const char *subresource,
                      struct kinf_str body, struct kinf_error *err)
{
    const struct kinf__applied_to to = { target->type, target->key, subresource != NULL };
    struct kinf_request request = KINF_REQUEST_INIT;
    bool is_chosen = false;
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
    failed = kinf__call_apply(call, to, &request, &is_chosen, err);
    if (failed == 0 && is_chosen)
        set_applied(call, to, body);
    return failed;
}

/* --- whose it is --- */

static int check_owner(const struct kinf_object *object, const struct target *target,
                       struct kinf_error *err)
{
    char owner[KINF__KEY_SIZE] = "";
    int rc = kinf_object_get_annotation(object, target->owner_annotation, owner, sizeof owner);

    if (rc == KINF_ERR_NO_MEMORY)
        return kinf__error_no_memory(err);
    return rc == 0 && strcmp(owner, target->owner) == 0
               ? 0
               : kinf__error_set(err, KINF_ERR_EXISTS, "%s \"%s\" is there, and not ours",
                                 target->type->resource, target->key);
}

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

static int parse_answer(const struct target *target, const struct kinf_response *response,
                        const struct kinf_object **ret_object, struct kinf_error *err)
{
    return kinf_object_new_from_json(target->type, response->body, response->len, ret_object, err);
}

/* With labels and owner alone: what is created can be added to, but not be taken away, by apply. */
static int create(struct kinf_call *call, const struct target *target, struct kinf_str json,
                  const struct kinf_object **ret_object, struct kinf_error *err)
{
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    struct kinf_request request = KINF_REQUEST_INIT;
    struct kinf__json_value labels =
        member(member(kinf__json_value_of(json), "metadata"), "labels");
    struct kinf__json_value none = { KINF__JSON_NULL, { NULL, 0 } };
    int failed;

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
    failed = kinf__call_write(call, target->key, &request, &response, err);
    return failed < 0 ? failed : parse_answer(target, &response, ret_object, err);
}

/* Makes sure that the object is there and ours. The server decides who created it, and whose it is: a cache
 * may be behind, or does not keep annotations. Of what is ours by the cache nothing is asked. */
static int claim(struct kinf_call *call, const struct target *target, struct kinf_str json,
                 const struct kinf_object **ret_object, struct kinf_error *err)
{
    struct kinf_error own = KINF_ERROR_INIT;
    int failed = KINF_ERR_EXISTS;

    *ret_object = get_cached(call, target);
    if (*ret_object != NULL && check_owner(*ret_object, target, NULL) == 0)
        return 0;
    if (*ret_object == NULL)
        failed = create(call, target, json, ret_object, &own);
    kinf_object_unref(failed == KINF_ERR_EXISTS ? KINF__TAKE(*ret_object) : NULL);
    if (failed == KINF_ERR_EXISTS)
        failed = kinf__call_look(call, target->type, target->key, ret_object, &own);
    if (failed == 0)
        return check_owner(*ret_object, target, err);
    if (err != NULL)
        *err = own;
    return failed;
}

/* Why it was refused: for another uid (422), or since it is gone (409)? Then the next call waits until
 * the cache knows. As long as nobody can say, it is not refused for good. */
static int judge_refusal(struct kinf_call *call, const struct target *target,
                         const struct kinf_error *refusal, struct kinf_error *err)
{
    struct kinf_error own = KINF_ERROR_INIT;
    int is_gone = kinf__call_is_gone(call, target->type, target->key, target->uid, &own);

    if (is_gone <= 0) {
        const struct kinf_error *why = is_gone < 0 ? &own : refusal;

        if (err != NULL)
            *err = *why;
        return why->code;
    }
    kinf__call_note_gone(call, target->type, target->key, target->uid);
    return kinf__error_set(err, KINF_ERR_CONFLICT, "%s \"%s\" is gone, or another by now",
                           target->type->resource, target->key);
}

/* --- apply --- */

static int apply(struct kinf_call *call, const struct target *target, const char *subresource,
                 struct kinf_str json, struct kinf_error *err)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    int failed = make_body(&body, target, json, err);

    return failed < 0 ? failed
                      : apply_body(call, target, subresource, kinf__buffer_str(&body), err);
}

static int apply_owned(struct kinf_call *call, struct target *target, struct kinf_str json,
                       struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    struct kinf_error own = KINF_ERROR_INIT;
    int failed = claim(call, target, json, &object, err);

    if (failed < 0)
        return failed;
    target->uid = kinf_object_uid(object);
    failed = apply(call, target, NULL, json, &own);
    if (failed == KINF_ERR_CONFLICT || (failed == KINF_ERR_SERVER && own.http_status == 422))
        return judge_refusal(call, target, &own, err);
    if (failed < 0 && err != NULL)
        *err = own;
    return failed;
}

static int check_target(struct target *target, char key[KINF__KEY_SIZE], struct kinf_str json,
                        struct kinf_error *err)
{
    size_t len =
        strlen(target->name) + (target->name_space != NULL ? strlen(target->name_space) : 0);

    if (len + 2 > KINF__KEY_SIZE)
        return kinf__error_set(err, KINF_ERR_INVALID, "the name is too long");
    target->key = kinf__object_key_join(key, target->name_space, target->name);
    return check_json(json, err);
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
    char key[KINF__KEY_SIZE];
    int failed = check_target(&target, key, json, err);

    if (failed == 0)
        failed = target.owner_annotation != NULL ? apply_owned(call, &target, json, err)
                                                 : apply(call, &target, NULL, json, err);
    return failed;
}

int kinf_call_apply_status(struct kinf_call *call, const struct kinf_type *type,
                           const char *name_space, const char *name, struct kinf_str json,
                           struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, call, type, name, json.bytes);

    struct target target = { .type = type, .name_space = name_space, .name = name };
    char key[KINF__KEY_SIZE];
    int failed = check_target(&target, key, json, err);

    return failed < 0 ? failed : apply(call, &target, "status", json, err);
}
