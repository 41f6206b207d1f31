/*
 * Metadata in text. Neighbours: owners.c, namespaces.c, and the workloads' index of pods.
 */
#include "apiserver/meta_text.h"

#include <string.h>

static void take_owners(struct kinf__json_value owners, struct kinf__meta_text *meta)
{
    struct kinf__json_value first;
    struct kinf__json_iter iter;
    struct kinf_str key;

    if (kinf__json_iter_init(&iter, owners) && kinf__json_iter_next(&iter, &key, &first))
        meta->owners = owners;
}

int kinf__meta_text_read(const struct kinf_object *object, struct kinf_scratch *scratch,
                         struct kinf__meta_text *ret_meta)
{
    struct kinf__json_value metadata, value;
    struct kinf__json_iter iter;
    struct kinf_str body, key;

    memset(ret_meta, 0, sizeof *ret_meta);
    if (object == NULL)
        return 0;
    if (kinf__object_body(object, scratch, &body) < 0)
        return KINF_ERR_NO_MEMORY;
    if (!kinf__json_member(kinf__json_value_of(body), KINF_STR("metadata"), &metadata) ||
        !kinf__json_iter_init(&iter, metadata))
        return 0;
    while (kinf__json_iter_next(&iter, &key, &value)) {
        if (kinf__json_string_equals(key, KINF_STR("deletionTimestamp")))
            ret_meta->is_going = value.type == KINF__JSON_STRING;
        else if (kinf__json_string_equals(key, KINF_STR("finalizers")))
            ret_meta->finalizers = value;
        else if (kinf__json_string_equals(key, KINF_STR("ownerReferences")))
            take_owners(value, ret_meta);
    }
    return 0;
}

bool kinf__meta_text_is_going(const struct kinf_object *object)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__meta_text meta;

    return kinf__meta_text_read(object, &scratch, &meta) == 0 && meta.is_going;
}

bool kinf__meta_text_has_finalizer(const struct kinf__meta_text *meta, const char *name)
{
    struct kinf__json_value finalizer;
    struct kinf__json_iter iter;
    struct kinf_str key;

    if (!kinf__json_iter_init(&iter, meta->finalizers))
        return false;
    while (kinf__json_iter_next(&iter, &key, &finalizer)) {
        if (finalizer.type == KINF__JSON_STRING &&
            kinf__json_string_equals(finalizer.raw, kinf_str_from(name)))
            return true;
    }
    return false;
}

static void read_text(struct kinf__json_value value, char *text, size_t size)
{
    if (kinf_json_string(value.raw, text, size) < 0)
        text[0] = '\0';
}

static bool is_true(struct kinf__json_value value)
{
    return value.type == KINF__JSON_BOOL && value.raw.bytes[0] == 't';
}

bool kinf__owner_reference_next(struct kinf__json_iter *iter,
                                struct kinf__owner_reference *ret_reference)
{
    struct kinf__json_value reference, value;
    struct kinf__json_iter members;
    struct kinf_str key;

    memset(ret_reference, 0, sizeof *ret_reference);
    if (!kinf__json_iter_next(iter, &key, &reference))
        return false;
    if (!kinf__json_iter_init(&members, reference))
        return true;
    while (kinf__json_iter_next(&members, &key, &value)) {
        if (kinf__json_string_equals(key, KINF_STR("apiVersion")))
            read_text(value, ret_reference->api_version, sizeof ret_reference->api_version);
        else if (kinf__json_string_equals(key, KINF_STR("kind")))
            read_text(value, ret_reference->kind, sizeof ret_reference->kind);
        else if (kinf__json_string_equals(key, KINF_STR("name")))
            read_text(value, ret_reference->name, sizeof ret_reference->name);
        else if (kinf__json_string_equals(key, KINF_STR("uid")))
            read_text(value, ret_reference->uid, sizeof ret_reference->uid);
        else if (kinf__json_string_equals(key, KINF_STR("controller")))
            ret_reference->is_controller = is_true(value);
        else if (kinf__json_string_equals(key, KINF_STR("blockOwnerDeletion")))
            ret_reference->blocks = is_true(value);
    }
    return true;
}
