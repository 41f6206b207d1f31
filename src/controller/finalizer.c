/*
 * The finalizer: each patch tests what it is based on, so that it never undoes what others did.
 */
#include "controller/controller.h"

#include <inttypes.h>
#include <stdio.h>

#include <kinformer/text.h>

#include "base/error.h"
#include "json/scan.h"

int kinf__finalizer_find(const struct kinf_object *object, const char *finalizer, int64_t *ret_i,
                         bool *ret_has_list)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value value;
    struct kinf__json_iter elements;
    struct kinf_str json, key;
    int rc = kinf_object_get_json(object, "metadata.finalizers", &scratch, &json);

    *ret_i = -1;
    *ret_has_list = rc == 0 && kinf__json_iter_init(&elements, kinf__json_value_of(json));
    if (!*ret_has_list)
        return rc == KINF_ERR_NO_MEMORY ? rc : 0;
    for (int64_t i = 0; kinf__json_iter_next(&elements, &key, &value); i++) {
        if (value.type == KINF__JSON_STRING &&
            kinf__json_string_equals(value.raw, kinf_str_from(finalizer)))
            *ret_i = i;
    }
    return 0;
}

/* A test that fails is a 422 of the API server's; so is what it has against the object as it would be. As
 * long as nobody can say which, it is not refused for good. */
static bool has_changed(struct kinf_call *call)
{
    kinf_auto_object const struct kinf_object *now = NULL;

    return kinf__call_look(call, kinf_object_type(call->object), call->key, &now, NULL) < 0 ||
           strcmp(kinf_object_resource_version(now), kinf_object_resource_version(call->object)) !=
               0;
}

static int patch(struct kinf_call *call, struct kinf_str json, struct kinf_error *err)
{
    struct kinf_request request = KINF_REQUEST_INIT;
    struct kinf_error own = KINF_ERROR_INIT;
    char name_space[KINF_NAME_MAX];
    int failed;

    request.verb = KINF_VERB_JSON_PATCH;
    request.type = kinf_object_type(call->object);
    request.name = kinf__object_key_split(call->key, name_space);
    request.name_space = name_space;
    request.body = json;
    failed = kinf_call_request(call, &request, NULL, &own);
    if (failed == KINF_ERR_SERVER && own.http_status == 422 && has_changed(call))
        failed = KINF_ERR_CONFLICT;
    if (failed == KINF_ERR_CONFLICT || failed == KINF_ERR_NOT_FOUND)
        kinf__call_note_changed(call);
    if (failed < 0 && err != NULL) {
        *err = own;
        err->code = (enum kinf_errc)failed;
        kinf__error_prefix(err, "finalizer");
    }
    return failed;
}

int kinf__finalizer_add(struct kinf_call *call, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const char *finalizer = call->controller->finalizer;
    const char *version = kinf_object_resource_version(call->object);
    struct kinf_str json;
    bool has_any;
    int64_t i;
    int failed = kinf__finalizer_find(call->object, finalizer, &i, &has_any);

    if (failed < 0)
        return kinf__error_no_memory(err);
    failed =
        kinf_json_format(&scratch, &json, err,
                         has_any ? "[{op:\"test\",path:\"/metadata/resourceVersion\",value:?s},"
                                   "{op:\"add\",path:\"/metadata/finalizers/-\",value:?s}]"
                                 : "[{op:\"test\",path:\"/metadata/resourceVersion\",value:?s},"
                                   "{op:\"add\",path:\"/metadata/finalizers\",value:[?s]}]",
                         version, finalizer);
    if (failed == 0)
        failed = patch(call, json, err);
    return failed == KINF_ERR_NOT_FOUND
               ? kinf__error_set(err, KINF_ERR_CONFLICT, "finalizer: the object is gone")
               : failed;
}

int kinf__finalizer_remove(struct kinf_call *call, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const char *finalizer = call->controller->finalizer;
    struct kinf_str json;
    char path[64];
    bool has_any;
    int64_t i;
    int failed = kinf__finalizer_find(call->object, finalizer, &i, &has_any);

    if (failed < 0)
        return kinf__error_no_memory(err);
    if (i < 0)
        return 0;
    snprintf(path, sizeof path, "/metadata/finalizers/%" PRId64, i);
    failed = kinf_json_format(&scratch, &json, err,
                              "[{op:\"test\",path:\"/metadata/uid\",value:?s},"
                              "{op:\"test\",path:?s,value:?s},{op:\"remove\",path:?s}]",
                              kinf_object_uid(call->object), path, finalizer, path);
    if (failed == 0)
        failed = patch(call, json, err);
    return failed == KINF_ERR_NOT_FOUND ? 0 : failed;
}
