/*
 * Changes in JSON. Neighbours: changes_yaml.c makes JSON of YAML, changes_protobuf.c reads the form that
 * is no text, write.c says what a change means.
 */
#include "serve/changes.h"

#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "json/scan.h"
#include "watchcache/watchcache.h"

enum kinf__change_form kinf__change_form_of(const char *content_type)
{
    static const char *const types[] = {
#define X(form, type) type,
        KINF__CHANGE_FORMS(X)
#undef X
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(types); i++) {
        if (strncasecmp(content_type, types[i], strlen(types[i])) == 0)
            return (enum kinf__change_form)i;
    }
    return KINF__CHANGES_OTHER; /* untested: whatever it is, it begins with the last one, "" */
}

/* --- values --- */

static bool is_called(struct kinf_str key, const char *name)
{
    return kinf__json_string_equals(key, kinf_str_from(name));
}

/* Returns false if it is no text, or too long. */
static bool copy_text(struct kinf__json_value value, char *out, size_t size)
{
    size_t len =
        value.type == KINF__JSON_STRING ? kinf__json_unescape(value.raw, out, size - 1) : size;

    if (len > size - 1)
        return false;
    out[len] = '\0';
    return true;
}

static bool has_elements(struct kinf__json_value value)
{
    struct kinf__json_iter iter;
    struct kinf__json_value element;
    struct kinf_str none;

    return kinf__json_iter_init(&iter, value) && kinf__json_iter_next(&iter, &none, &element);
}

static bool is_text(struct kinf__json_value object, const char *key, const char *text)
{
    struct kinf__json_value value;

    return kinf__json_member(object, kinf_str_from(key), &value) &&
           value.type == KINF__JSON_STRING &&
           kinf__json_string_equals(value.raw, kinf_str_from(text));
}

/* --- objects --- */

static bool read_version(struct kinf__json_value value, uint64_t *ret_version)
{
    char text[32];

    if (!copy_text(value, text, sizeof text))
        return false;
    *ret_version = kinf__watchcache_parse_rv(text);
    return true;
}

static bool is_positive(struct kinf__json_value value)
{
    return value.type == KINF__JSON_NUMBER && value.raw.bytes[0] != '0' &&
           value.raw.bytes[0] != '-';
}

static bool read_member(struct kinf_str key, struct kinf__json_value value,
                        struct kinf__change *change)
{
    if (is_called(key, "resourceVersion"))
        return read_version(value, &change->version);
    if (is_called(key, "name"))
        return copy_text(value, change->name, sizeof change->name);
    if (is_called(key, "namespace"))
        return copy_text(value, change->name_space, sizeof change->name_space);
    if (is_called(key, "uid"))
        return copy_text(value, change->uid, sizeof change->uid);
    if (is_called(key, "deletionTimestamp"))
        change->is_terminating = value.type == KINF__JSON_STRING;
    else if (is_called(key, "deletionGracePeriodSeconds"))
        change->has_grace = is_positive(value);
    else if (is_called(key, "finalizers"))
        change->has_finalizers = change->has_finalizers || has_elements(value);
    return true;
}

static bool read_members(struct kinf__json_value object, struct kinf__change *change)
{
    struct kinf__json_iter iter;
    struct kinf__json_value value;
    struct kinf_str key;

    if (object.type != KINF__JSON_OBJECT || !kinf__json_iter_init(&iter, object))
        return false;
    while (kinf__json_iter_next(&iter, &key, &value)) {
        if (!read_member(key, value, change))
            return false;
    }
    return true;
}

static int read_object(struct kinf__json_value object, kinf__change_cb *callback, void *ctx)
{
    struct kinf__change change = { .version = 0 };
    struct kinf__json_value metadata, spec, finalizers;

    if (is_text(object, "kind", "Namespace") && is_text(object, "apiVersion", "v1") &&
        kinf__json_member(object, KINF_STR("spec"), &spec) &&
        kinf__json_member(spec, KINF_STR("finalizers"), &finalizers))
        change.has_finalizers = has_elements(finalizers);
    if (!kinf__json_member(object, KINF_STR("metadata"), &metadata) ||
        !read_members(metadata, &change))
        return KINF_ERR_PARSE;
    callback(&change, ctx);
    return 0;
}

/* `inner`: the object is a member of an element; NULL: it is the element. */
static int read_elements(struct kinf__json_value array, const char *inner,
                         kinf__change_cb *callback, void *ctx)
{
    struct kinf__json_iter iter;
    struct kinf__json_value object;
    struct kinf_str none;
    int failed = 0;

    if (array.type == KINF__JSON_NULL)
        return 0;
    if (array.type != KINF__JSON_ARRAY || !kinf__json_iter_init(&iter, array))
        return KINF_ERR_PARSE;
    while (failed == 0 && kinf__json_iter_next(&iter, &none, &object)) {
        if (inner != NULL && !kinf__json_member(object, kinf_str_from(inner), &object))
            return KINF_ERR_PARSE;
        failed = read_object(object, callback, ctx);
    }
    return failed;
}

static int read_status(struct kinf__json_value status, kinf__change_cb *callback, void *ctx)
{
    struct kinf__change change = { .is_status = true };
    struct kinf__json_value details;

    if (!is_text(status, "status", "Success"))
        return KINF_ERR_PARSE;
    if (kinf__json_member(status, KINF_STR("details"), &details) && !read_members(details, &change))
        return KINF_ERR_PARSE;
    callback(&change, ctx);
    return 0;
}

static bool is_list(struct kinf__json_value document)
{
    struct kinf__json_value kind;
    const struct kinf_str end = KINF_STR("List\"");

    return kinf__json_member(document, KINF_STR("kind"), &kind) && kind.raw.len > end.len &&
           memcmp(kind.raw.bytes + kind.raw.len - end.len, end.bytes, end.len) == 0;
}

static int read_json(struct kinf_str answer, kinf__change_cb *callback, void *ctx)
{
    struct kinf__json_value document, elements;
    size_t len;

    if (kinf__json_scan_all(answer, KINF__JSON_MAX_DEPTH, &len) < 0)
        return KINF_ERR_PARSE;
    document = kinf__json_value_of(answer);
    if (is_text(document, "kind", "Status"))
        return read_status(document, callback, ctx);
    if (is_text(document, "kind", "Table"))
        return kinf__json_member(document, KINF_STR("rows"), &elements)
                   ? read_elements(elements, "object", callback, ctx)
                   : KINF_ERR_PARSE;
    if (is_list(document) && kinf__json_member(document, KINF_STR("items"), &elements))
        return read_elements(elements, NULL, callback, ctx);
    return read_object(document, callback, ctx);
}

static int read_yaml(struct kinf_str answer, kinf__change_cb *callback, void *ctx)
{
    KINF__AUTO_BUFFER json = KINF__BUFFER_INIT;
    int failed = kinf__changes_yaml_to_json(answer, &json);

    return failed < 0 ? failed : read_json(kinf__buffer_str(&json), callback, ctx);
}

int kinf__changes_read(enum kinf__change_form form, struct kinf_str answer,
                       kinf__change_cb *callback, void *ctx)
{
    switch (form) {
    case KINF__CHANGES_PROTOBUF:
        return kinf__changes_read_protobuf(answer, callback, ctx);
    case KINF__CHANGES_YAML:
        return read_yaml(answer, callback, ctx);
    default:
        return read_json(answer, callback, ctx);
    }
}

/* --- options --- */

/* `json` is valid. */
static bool is_dry_json(struct kinf_str json)
{
    struct kinf__json_value options = kinf__json_value_of(json), inner, dry;

    if (kinf__json_member(options, KINF_STR("deleteOptions"), &inner))
        options = inner;
    return kinf__json_member(options, KINF_STR("dryRun"), &dry) && has_elements(dry);
}

bool kinf__changes_are_dry(struct kinf_str body)
{
    const struct kinf_str magic = KINF__PROTOBUF_MAGIC;
    KINF__AUTO_BUFFER json = KINF__BUFFER_INIT;
    size_t len;

    if (body.len >= magic.len && memcmp(body.bytes, magic.bytes, magic.len) == 0)
        return kinf__changes_are_dry_protobuf(body);
    if (kinf__json_scan_all(body, KINF__JSON_MAX_DEPTH, &len) == 0)
        return is_dry_json(body);
    return kinf__changes_yaml_to_json(body, &json) == 0 && is_dry_json(kinf__buffer_str(&json));
}
