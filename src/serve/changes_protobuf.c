/*
 * Changes in protobuf: the few fields that tell, by their numbers in the API's .proto files, which
 * are the same in all types. What is behind the magic is a runtime.Unknown: its kind says what its
 * raw bytes are.
 */
#include <string.h>

#include "base/compiler.h"
#include "base/wire.h"
#include "serve/changes.h"
#include "watchcache/watchcache.h"

enum {
    UNKNOWN_TYPE = 1, /* apiVersion = 1, kind = 2 */
    UNKNOWN_RAW = 2,
    OBJECT_METADATA = 1,
    OBJECT_SPEC = 2,
    NAMESPACE_FINALIZERS = 1, /* of its spec */
    LIST_ITEMS = 2,
    META_NAME = 1,
    META_NAMESPACE = 3,
    META_UID = 5,
    META_VERSION = 6,
    META_DELETION_TIMESTAMP = 9,
    META_GRACE = 10,
    META_FINALIZERS = 14,
    STATUS_STATUS = 2,
    STATUS_DETAILS = 5,
    DETAILS_NAME = 1,
    DETAILS_UID = 6,
    DELETE_DRY_RUN = 5,
    EVICTION_OPTIONS = 2,
};

/* The last field of that number, of bytes; false: there is none, or the message is broken. */
static bool find(struct kinf_str message, uint64_t number, struct kinf_str *ret_bytes)
{
    struct kinf__wire_field field;
    bool is_found = false;

    while (message.len != 0) {
        if (kinf__wire_read(&message, &field, NULL) < 0)
            return false;
        if (field.number != number || field.type != KINF__WIRE_BYTES)
            continue;
        *ret_bytes = field.bytes;
        is_found = true;
    }
    return is_found;
}

static bool copy_text(struct kinf_str bytes, char *out, size_t size)
{
    if (bytes.len >= size)
        return false;
    if (bytes.len != 0)
        memcpy(out, bytes.bytes, bytes.len);
    out[bytes.len] = '\0';
    return true;
}

static bool read_field(const struct kinf__wire_field *field, struct kinf__change *change)
{
    char version[32];

    switch (field->number) {
    case META_NAME:
        return copy_text(field->bytes, change->name, sizeof change->name);
    case META_NAMESPACE:
        return copy_text(field->bytes, change->name_space, sizeof change->name_space);
    case META_UID:
        return copy_text(field->bytes, change->uid, sizeof change->uid);
    case META_VERSION:
        if (!copy_text(field->bytes, version, sizeof version))
            return false;
        change->version = kinf__watchcache_parse_rv(version);
        return true;
    case META_DELETION_TIMESTAMP:
        change->is_terminating = true;
        return true;
    case META_GRACE:
        change->has_grace = (int64_t)field->integer > 0;
        return true;
    case META_FINALIZERS:
        change->has_finalizers = true;
        return true;
    default:
        return true;
    }
}

static int read_object(struct kinf_str object, bool is_namespace, kinf__change_cb *callback,
                       void *ctx)
{
    struct kinf__change change = { .version = 0 };
    struct kinf__wire_field field;
    struct kinf_str metadata, spec, finalizer;

    if (!find(object, OBJECT_METADATA, &metadata))
        return KINF_ERR_PARSE;
    while (metadata.len != 0) {
        if (kinf__wire_read(&metadata, &field, NULL) < 0 || !read_field(&field, &change))
            return KINF_ERR_PARSE;
    }
    if (is_namespace && find(object, OBJECT_SPEC, &spec))
        change.has_finalizers =
            change.has_finalizers || find(spec, NAMESPACE_FINALIZERS, &finalizer);
    callback(&change, ctx);
    return 0;
}

static int read_list(struct kinf_str list, bool is_namespace, kinf__change_cb *callback, void *ctx)
{
    struct kinf__wire_field field;
    int failed = 0;

    while (failed == 0 && list.len != 0) {
        failed = kinf__wire_read(&list, &field, NULL);
        if (failed == 0 && field.number == LIST_ITEMS)
            failed = field.type == KINF__WIRE_BYTES
                         ? read_object(field.bytes, is_namespace, callback, ctx)
                         : KINF_ERR_PARSE;
    }
    return failed;
}

static int read_status(struct kinf_str status, kinf__change_cb *callback, void *ctx)
{
    struct kinf__change change = { .is_status = true };
    struct kinf_str verdict, details, text;

    if (!find(status, STATUS_STATUS, &verdict) || verdict.len != strlen("Success") ||
        memcmp(verdict.bytes, "Success", verdict.len) != 0)
        return KINF_ERR_PARSE;
    if (find(status, STATUS_DETAILS, &details)) {
        if ((find(details, DETAILS_NAME, &text) &&
             !copy_text(text, change.name, sizeof change.name)) ||
            (find(details, DETAILS_UID, &text) && !copy_text(text, change.uid, sizeof change.uid)))
            return KINF_ERR_PARSE;
    }
    callback(&change, ctx);
    return 0;
}

/* Writes the kind and what is in the envelope. */
static bool open_envelope(struct kinf_str answer, char *kind, size_t size, struct kinf_str *ret_raw)
{
    const struct kinf_str magic = KINF__PROTOBUF_MAGIC;
    struct kinf_str type, name;

    if (answer.len < magic.len || memcmp(answer.bytes, magic.bytes, magic.len) != 0)
        return false;
    answer.bytes += magic.len;
    answer.len -= magic.len;
    return find(answer, UNKNOWN_TYPE, &type) && find(type, 2, &name) &&
           copy_text(name, kind, size) && find(answer, UNKNOWN_RAW, ret_raw);
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

int kinf__changes_read_protobuf(struct kinf_str answer, kinf__change_cb *callback, void *ctx)
{
    struct kinf_str raw;
    char kind[KINF_NAME_MAX];

    if (!open_envelope(answer, kind, sizeof kind, &raw))
        return KINF_ERR_PARSE;
    if (strcmp(kind, "Status") == 0)
        return read_status(raw, callback, ctx);
    if (ends_with(kind, "List"))
        return read_list(raw, strcmp(kind, "NamespaceList") == 0, callback, ctx);
    return read_object(raw, strcmp(kind, "Namespace") == 0, callback, ctx);
}

bool kinf__changes_are_dry_protobuf(struct kinf_str body)
{
    struct kinf_str raw, options, dry;
    char kind[KINF_NAME_MAX];

    if (!open_envelope(body, kind, sizeof kind, &raw))
        return false;
    options = raw;
    if (strcmp(kind, "Eviction") == 0 ? !find(raw, EVICTION_OPTIONS, &options)
                                      : strcmp(kind, "DeleteOptions") != 0)
        return false;
    return find(options, DELETE_DRY_RUN, &dry);
}
