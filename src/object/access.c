/*
 * Reading an object. Neighbours: handlers, index functions and the served API read fields through
 * these; kinf__object_body() in object.c knows how the text is held. Nothing is cached: the text is
 * the object.
 */
#include "object/object.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/tree.h>

#include "base/error.h"
#include "base/misuse.h"
#include "json/path.h"
#include "json/tree.h"

/* What kinf_object_each() hands to the walk. */
struct each {
    kinf_object_value_cb *callback;
    void *ctx;
};

/* What stands behind the opening brace, white space skipped. */
static struct kinf_str members_of(struct kinf_str body)
{
    size_t at = 1;

    while (at < body.len && memchr(" \t\r\n", body.bytes[at], 4) != NULL)
        at++;
    return (struct kinf_str){ body.bytes + at, body.len - at };
}

static bool is_null(const struct kinf__json_value *value)
{
    return value->type == KINF__JSON_NULL;
}

/* The first value at `path`, valid as the scratch states. */
static int find_value(const struct kinf_object *object, const char *path,
                      struct kinf_scratch *scratch, struct kinf__json_value *ret_value)
{
    struct kinf__json_value value;
    struct kinf_path *parsed;
    int r = kinf_path_parse(path, &parsed, NULL);

    /* Of too many steps; KINF_ERR_LIMIT asks for a larger buffer. */
    if (r < 0)
        return r == KINF_ERR_LIMIT ? KINF_ERR_PARSE : r;
    r = kinf__object_lookup_first(object, parsed, scratch, &value);
    kinf_path_free(parsed);
    if (r < 0 || is_null(&value))
        return r < 0 ? r : KINF_ERR_NOT_FOUND;
    *ret_value = value;
    return 0;
}

static int value_to_string(const struct kinf__json_value *value, char *buf, size_t size)
{
    return value->type == KINF__JSON_STRING ? kinf_json_string(value->raw, buf, size)
                                            : KINF_ERR_INVALID;
}

/* An integer's text fits into the room of one of 64 bits, or its value does not fit into them. */
static int value_to_int64(const struct kinf__json_value *value, int64_t *ret_number)
{
    char text[24];
    intmax_t number;

    if (value->type != KINF__JSON_NUMBER)
        return KINF_ERR_INVALID;
    for (size_t i = 0; i < value->raw.len; i++) {
        if (memchr(".eE", value->raw.bytes[i], 3) != NULL)
            return KINF_ERR_INVALID;
    }
    if (value->raw.len >= sizeof text)
        return KINF_ERR_LIMIT;
    memcpy(text, value->raw.bytes, value->raw.len);
    text[value->raw.len] = '\0';
    errno = 0;
    number = strtoimax(text, NULL, 10);
    if (errno != 0 || number < INT64_MIN || number > INT64_MAX)
        return KINF_ERR_LIMIT;
    *ret_number = number;
    return 0;
}

/* The value of a key in a map of strings. */
static int map_to_string(struct kinf__json_value map, const char *key, char *buf, size_t size)
{
    struct kinf__json_value value;

    if (!kinf__json_member(map, kinf_str_from(key), &value) || is_null(&value))
        return KINF_ERR_NOT_FOUND;
    return value_to_string(&value, buf, size);
}

/* Of type KINF__JSON_NULL if there are none. */
static int find_annotations(const struct kinf_object *object, struct kinf_scratch *scratch,
                            struct kinf__json_value *ret_annotations)
{
    struct kinf__json_value metadata;
    struct kinf_str body;
    int r = kinf__object_body(object, scratch, &body);

    if (r < 0)
        return r;
    if (!kinf__json_member(kinf__json_value_of(body), KINF_STR("metadata"), &metadata) ||
        !kinf__json_member(metadata, KINF_STR("annotations"), ret_annotations))
        *ret_annotations = (struct kinf__json_value){ .type = KINF__JSON_NULL };
    return 0;
}

/* Decoded they are no longer than raw: both fit, with their NULs, where the quotes were. */
static int call_pair(struct kinf_str key, struct kinf_str value, kinf_object_pair_cb *callback,
                     void *ctx)
{
    KINF__AUTO_FREE char *text = malloc(key.len + value.len);

    if (text == NULL)
        return KINF_ERR_NO_MEMORY;
    if (kinf_json_string(key, text, key.len) < 0 ||
        kinf_json_string(value, text + key.len, value.len) < 0)
        return 0;
    return callback(text, text + key.len, ctx);
}

static int each_pair(struct kinf__json_value map, kinf_object_pair_cb *callback, void *ctx)
{
    struct kinf__json_value value;
    struct kinf__json_iter iter;
    struct kinf_str key;
    int r = 0;

    if (map.type != KINF__JSON_OBJECT || !kinf__json_iter_init(&iter, map))
        return 0;
    while (r == 0 && kinf__json_iter_next(&iter, &key, &value)) {
        if (value.type == KINF__JSON_STRING)
            r = call_pair(key, value.raw, callback, ctx);
    }
    return r;
}

static int hand_out(struct kinf__json_value value, void *ctx)
{
    struct each *each = ctx;

    return each->callback(value.raw, each->ctx);
}

/* Whether an escape of the raw string stands for a NUL. */
static bool has_nul(struct kinf_str raw)
{
    const char *at = raw.bytes, *end = raw.bytes + raw.len;

    while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL && end - at > 2) {
        if (end - at > 6 && memcmp(at, "\\u0000", 6) == 0)
            return true;
        at += 2;
    }
    return false;
}

void kinf_scratch_release(struct kinf_scratch *scratch)
{
    KINF__REFUSE_NULL(NULL, , scratch);
    free(scratch->bytes);
    *scratch = (struct kinf_scratch)KINF_SCRATCH_INIT;
}

int kinf_object_json(const struct kinf_object *object, struct kinf_scratch *scratch,
                     struct kinf_str *ret_text, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, object, scratch, ret_text);
    return kinf__object_body(object, scratch, ret_text) < 0 ? kinf__error_no_memory(err) : 0;
}

int kinf_object_full_json(const struct kinf_object *object, struct kinf_scratch *scratch,
                          struct kinf_str *ret_text, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, object, scratch, ret_text);

    static const char frame[] = "{\"kind\":\"\",\"apiVersion\":\"/\",";
    kinf_auto_scratch struct kinf_scratch body_scratch = KINF_SCRATCH_INIT;
    const struct kinf_type *type = object->type;
    struct kinf_str body, members;
    char *at;

    if (kinf__object_body(object, &body_scratch, &body) < 0)
        return kinf__error_no_memory(err);
    members = members_of(body);
    if (kinf__scratch_reserve(scratch, sizeof frame + strlen(type->kind) + strlen(type->group) +
                                           strlen(type->version) + members.len) < 0)
        return kinf__error_no_memory(err);
    assert(scratch->bytes != NULL);
    at = stpcpy(stpcpy(stpcpy(scratch->bytes, "{\"kind\":\""), type->kind), "\",\"apiVersion\":\"");
    if (*type->group != '\0')
        at = stpcpy(stpcpy(at, type->group), "/");
    at = stpcpy(stpcpy(at, type->version), members.bytes[0] == '}' ? "\"" : "\",");
    memcpy(at, members.bytes, members.len);
    *ret_text = (struct kinf_str){ scratch->bytes, (size_t)(at - scratch->bytes) + members.len };
    return 0;
}

int kinf_object_get_string(const struct kinf_object *object, const char *path, char *buf,
                           size_t size)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, path, buf);

    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value value;
    int r = find_value(object, path, &scratch, &value);

    return r < 0 ? r : value_to_string(&value, buf, size);
}

int kinf_object_get_int64(const struct kinf_object *object, const char *path, int64_t *ret_number)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, path, ret_number);

    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value value;
    int r = find_value(object, path, &scratch, &value);

    return r < 0 ? r : value_to_int64(&value, ret_number);
}

int kinf_object_get_bool(const struct kinf_object *object, const char *path, bool *ret_truth)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, path, ret_truth);

    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value value;
    int r = find_value(object, path, &scratch, &value);

    if (r < 0)
        return r;
    if (value.type != KINF__JSON_BOOL)
        return KINF_ERR_INVALID;
    *ret_truth = value.raw.bytes[0] == 't';
    return 0;
}

int kinf_object_get_label(const struct kinf_object *object, const char *key, char *buf, size_t size)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, key, buf);

    return map_to_string(kinf__object_labels(object), key, buf, size);
}

int kinf_object_get_annotation(const struct kinf_object *object, const char *key, char *buf,
                               size_t size)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, key, buf);

    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value annotations;
    int r = find_annotations(object, &scratch, &annotations);

    return r < 0 ? r : map_to_string(annotations, key, buf, size);
}

bool kinf_object_has(const struct kinf_object *object, const char *path)
{
    KINF__REFUSE_NULL(NULL, false, object, path);

    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value value;

    return find_value(object, path, &scratch, &value) == 0;
}

int kinf_object_get_json(const struct kinf_object *object, const char *path,
                         struct kinf_scratch *scratch, struct kinf_str *ret_json)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, path, scratch, ret_json);

    struct kinf__json_value value;
    int r = find_value(object, path, scratch, &value);

    if (r == 0)
        *ret_json = value.raw;
    return r;
}

int kinf_object_each_label(const struct kinf_object *object, kinf_object_pair_cb *callback,
                           void *ctx)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, callback);

    return each_pair(kinf__object_labels(object), callback, ctx);
}

int kinf_object_each_annotation(const struct kinf_object *object, kinf_object_pair_cb *callback,
                                void *ctx)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, callback);

    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value annotations;
    int r = find_annotations(object, &scratch, &annotations);

    return r < 0 ? r : each_pair(annotations, callback, ctx);
}

int kinf_object_each(const struct kinf_object *object, const struct kinf_path *path,
                     kinf_object_value_cb *callback, void *ctx)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, path, callback);

    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct each each = { callback, ctx };

    return kinf__object_lookup(object, path, &scratch, hand_out, &each);
}

int kinf_json_string(struct kinf_str json, char *buf, size_t size)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, buf);

    size_t len;

    if (json.len < 2 || json.bytes[0] != '"' || json.bytes[json.len - 1] != '"' || has_nul(json))
        return KINF_ERR_INVALID;
    /* Measured first only if it may not fit: the decoded form is never longer than the raw one. */
    if (json.len - 2 >= size && kinf__json_unescape(json, NULL, 0) >= size)
        return KINF_ERR_LIMIT;
    len = kinf__json_unescape(json, buf, size);
    buf[len] = '\0';
    return 0;
}

int kinf_object_tree(const struct kinf_object *object, cJSON **ret_tree, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, object, ret_tree);

    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str text;
    int r = kinf_object_full_json(object, &scratch, &text, err);

    return r < 0 ? r : kinf__json_tree_parse(text, ret_tree, err);
}
