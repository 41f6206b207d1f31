/*
 * Answers that others would give, and JSON that is changed. Neighbours: fault.c says when.
 */
#include "fault/fault_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "document/tree.h"

#define CHUNK_BYTES (64u << 10)

static const char html[] = "text/html; charset=utf-8";
static const char plain[] = "text/plain; charset=utf-8";
static const char grown_name[] = "kinformer-sim/grown";

/* --- refusals --- */

static const struct {
    int code;
    const char *reason;
    const char *message;
} codes[] = {
    { 400, "BadRequest", "the server rejected our request for an unknown reason" },
    { 401, "Unauthorized", "Unauthorized" },
    { 403, "Forbidden", NULL },
    { 404, "NotFound", "the server could not find the requested resource" },
    { 405, "MethodNotAllowed", "the server does not allow this method on the requested resource" },
    { 409, "Conflict", NULL },
    { 410, "Expired", "The resourceVersion for the provided list is too old." },
    { 413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728" },
    { 415, "UnsupportedMediaType", "the body of the request was in an unknown format" },
    { 422, "Invalid", "the server rejected our request due to an error in our request" },
    { 429, "TooManyRequests", "storage is (re)initializing" },
    { 500, "InternalError", "Internal error occurred: a fault on demand" },
    { 503, "ServiceUnavailable", "the server is currently unable to handle the request" },
    { 504, "Timeout", "Timeout: request did not complete within the allotted timeout" },
};

static const char *dot_of(const struct kinf__fault_object *object)
{
    return *object->group != '\0' ? "." : "";
}

static int refuse_conflict(const struct kinf__fault_object *object, struct kinf__refusal *refusal)
{
    if (object->verb == KINF__FAULT_CREATE)
        return kinf__refuse(refusal, 409, "AlreadyExists", "%s%s%s \"%s\" already exists",
                            object->resource, dot_of(object), object->group, object->name);
    return kinf__refuse(refusal, 409, "Conflict",
                        "Operation cannot be fulfilled on %s%s%s \"%s\": the object has been "
                        "modified; please apply your changes to the latest version and try again",
                        object->resource, dot_of(object), object->group, object->name);
}

static int refuse_forbidden(const struct kinf__fault_object *object, struct kinf__refusal *refusal)
{
    const char *verb =
        object->verb == KINF__FAULT_WATCH_LIST ? "watch" : kinf__fault_verb_to_string(object->verb);

    return kinf__refuse(refusal, 403, "Forbidden",
                        "%s%s%s is forbidden: User \"system:anonymous\" cannot %s resource \"%s\" "
                        "in API group \"%s\" at the cluster scope",
                        object->resource, dot_of(object), object->group, verb, object->resource,
                        object->group);
}

/* Of servers that do not know watch lists. */
static int refuse_watch_list(enum kinf__fault_shape shape, struct kinf__refusal *refusal)
{
    static const char gate_off[] =
        "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    static const char old_server[] = "resourceVersionMatch is forbidden for watch";
    bool is_old = shape == KINF__FAULT_OLD_SERVER;
    const char *field = is_old ? "resourceVersionMatch" : "sendInitialEvents";
    const char *why = is_old ? old_server : gate_off;
    char cause[256];

    kinf__refuse(refusal, 422, "Invalid",
                 "ListOptions.meta.k8s.io \"\" is invalid: %s: Forbidden: %s", field, why);
    kinf__refusal_set_object(refusal, "meta.k8s.io", "ListOptions", "");
    snprintf(cause, sizeof cause, "Forbidden: %s", why);
    kinf__refusal_add_cause(refusal, "FieldValueForbidden", field, cause);
    return KINF_ERR_INVALID;
}

static int refuse_shape(enum kinf__fault_shape shape, const struct kinf__fault_object *object,
                        struct kinf__refusal *refusal)
{
    switch (shape) {
    case KINF__FAULT_BAD_REQUEST:
        return kinf__refuse(refusal, 400, "BadRequest",
                            "sendInitialEvents is not supported by this server");
    case KINF__FAULT_FORBIDDEN:
        return refuse_forbidden(object, refusal);
    case KINF__FAULT_OLD_ETCD:
        return kinf__refuse(refusal, 500, "InternalError",
                            "a watch stream was requested by the client but the required storage "
                            "feature RequestWatchProgress is disabled");
    default:
        return refuse_watch_list(shape, refusal);
    }
}

static int refuse_code(int code, const struct kinf__fault_object *object,
                       struct kinf__refusal *refusal)
{
    if (code == 409)
        return refuse_conflict(object, refusal);
    if (code == 403)
        return refuse_forbidden(object, refusal);
    for (size_t i = 0; i < KINF__ARRAY_LEN(codes); i++) {
        if (codes[i].code == code)
            return kinf__refuse(refusal, code, codes[i].reason, "%s", codes[i].message);
    }
    return kinf__refuse(refusal, code, "", "a fault on demand: %d", code);
}

int kinf__fault_refuse(const struct kinf__fault_effect *effect,
                       const struct kinf__fault_object *object, struct kinf__refusal *refusal)
{
    if (effect->kind == KINF__FAULT_REFUSE)
        return refuse_shape(effect->shape, object, refusal);
    if (effect->kind == KINF__FAULT_LOGIN)
        return kinf__refuse(refusal, 200, "", "login");
    (void)refuse_code(effect->code, object, refusal);
    if (*object->resource != '\0' && refusal->details == KINF__DETAILS_NONE)
        kinf__refusal_set_object(refusal, object->group, object->resource, object->name);
    refusal->retry_after_s = effect->retry_after_s;
    return KINF_ERR_INVALID;
}

/* --- in other forms --- */

static int write_login(struct kinf__buffer *out)
{
    return kinf__buffer_append_str(
        out, KINF_STR("<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>\n"
                      "<form method=\"post\" action=\"/login\"><input name=\"user\">"
                      "<input name=\"password\" type=\"password\"><button>Sign in</button>"
                      "</form></body></html>\n"));
}

int kinf__fault_write_event(const struct kinf__refusal *refusal, struct kinf__buffer *out)
{
    if (kinf__buffer_append_str(out, KINF_STR("{\"type\":\"ERROR\",\"object\":")) < 0 ||
        kinf__refusal_write_status(refusal, out) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append_str(out, KINF_STR("}\n"));
}

static int write_body(const struct kinf__fault_effect *effect, const struct kinf__refusal *refusal,
                      struct kinf__buffer *out)
{
    if (effect->kind == KINF__FAULT_LOGIN)
        return write_login(out);
    if (effect->kind == KINF__FAULT_REFUSE)
        return kinf__fault_write_event(refusal, out);
    if (effect->form == KINF__FAULT_AS_TEXT)
        return kinf__buffer_printf(out, "%s\n", refusal->message);
    if (effect->form == KINF__FAULT_AS_HTML)
        return kinf__buffer_printf(out,
                                   "<html>\n<head><title>%d</title></head>\n<body>\n"
                                   "<center><h1>%d</h1></center>\n<hr>\n</body>\n</html>\n",
                                   refusal->code, refusal->code);
    return kinf__refusal_write(refusal, out);
}

static const char *content_type(const struct kinf__fault_effect *effect)
{
    if (effect->kind == KINF__FAULT_LOGIN || effect->form == KINF__FAULT_AS_HTML)
        return html;
    return effect->form == KINF__FAULT_AS_TEXT ? plain : "application/json";
}

int kinf__fault_rewrite(const struct kinf__fault_effect *effect,
                        const struct kinf__fault_object *object, struct kinf__answer *answer,
                        struct kinf__buffer *ret_body)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    struct kinf__refusal refusal;

    (void)kinf__fault_refuse(effect, object, &refusal);
    if (write_body(effect, &refusal, &body) < 0)
        return KINF_ERR_NO_MEMORY;
    answer->code = effect->kind == KINF__FAULT_REFUSE ? 200 : refusal.code;
    answer->content_type = content_type(effect);
    answer->retry_after_s = refusal.retry_after_s;
    answer->is_gzip = answer->is_public = false;
    answer->etag[0] = '\0';
    answer->warnings.len = 0;
    *ret_body = body;
    body = (struct kinf__buffer)KINF__BUFFER_INIT;
    return 0;
}

/* --- changed --- */

/* Only bodies that are made without waiting are read. */
static int read_stream(struct kinf__stream *stream, struct kinf__buffer *out)
{
    ssize_t n;

    do {
        if (kinf__buffer_reserve(out, CHUNK_BYTES) < 0)
            return KINF_ERR_NO_MEMORY;
        n = stream->read(stream, out->bytes + out->len, CHUNK_BYTES);
        out->len += n > 0 ? (size_t)n : 0;
    } while (n > 0 || n == KINF__STREAM_LATER);
    return n == KINF__STREAM_END ? 0 : KINF_ERR_NO_MEMORY;
}

static int gather(struct kinf__answer *answer)
{
    int failed;

    if (answer->stream == NULL)
        return 0;
    failed = read_stream(answer->stream, &answer->body);
    answer->stream->free(answer->stream);
    answer->stream = NULL;
    answer->stream_len = -1;
    return failed;
}

static int empty(struct cJSON *list)
{
    static const char *const names[] = { "items", "rows" };
    struct cJSON *metadata = kinf__doc_get(list, "metadata");

    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        if (kinf__doc_get(list, names[i]) != NULL &&
            kinf__doc_set(list, names[i], cJSON_CreateArray()) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (metadata != NULL) {
        kinf__doc_remove(metadata, "continue");
        kinf__doc_remove(metadata, "remainingItemCount");
    }
    return 0;
}

static int grow(struct cJSON *tree, size_t len)
{
    struct cJSON *items = kinf__doc_get(tree, "items");
    struct cJSON *object = items != NULL ? items->child : tree, *annotations;
    KINF__AUTO_FREE char *text = malloc(len + 1);

    if (text == NULL)
        return KINF_ERR_NO_MEMORY;
    memset(text, 'x', len);
    text[len] = '\0';
    if (object == NULL || !cJSON_IsObject(kinf__doc_get(object, "metadata")))
        return 0;
    annotations = kinf__doc_object(kinf__doc_get(object, "metadata"), "annotations");
    return annotations != NULL ? kinf__doc_set_text(annotations, grown_name, text)
                               : KINF_ERR_NO_MEMORY;
}

int kinf__fault_edit(const struct kinf__fault_effect *effect, struct kinf__answer *answer)
{
    KINF__AUTO_DOC *tree = NULL;
    KINF__AUTO_BUFFER changed = KINF__BUFFER_INIT;
    int failed = gather(answer);

    if (failed < 0)
        return failed;
    failed = kinf__doc_parse(kinf__buffer_str(&answer->body), &tree, NULL);
    if (failed < 0)
        return failed == KINF_ERR_NO_MEMORY ? failed : 0;
    failed = effect->kind == KINF__FAULT_EMPTY ? empty(tree) : grow(tree, effect->n_bytes);
    if (failed < 0 || kinf__doc_print(tree, &changed) < 0 ||
        kinf__buffer_append(&changed, "\n", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__buffer_release(&answer->body);
    answer->body = changed;
    changed = (struct kinf__buffer)KINF__BUFFER_INIT;
    return 0;
}
