/*
 * Patches, and server-side apply: objects made of others, which then go the way of updates.
 * Neighbours: patch.c and apply.c make them, verbs.c stores them.
 */
#include <stdio.h>
#include <string.h>

#include "json/quote.h"
#include "document/patch.h"
#include "apiserver/refuse.h"
#include "apiserver/verbs_priv.h"

#define PATCH_TEXT_MAX 1500 /* of what a patch made, in a message */

static int change(struct kinf__verb *verb, enum kinf__patch_type type, const struct cJSON *patch,
                  struct cJSON **tree)
{
    switch (type) {
    case KINF__PATCH_JSON:
        return kinf__patch_json(tree, patch, &verb->refusal);
    case KINF__PATCH_MERGE:
        return kinf__patch_merge(tree, patch, &verb->refusal);
    default:
        return kinf__patch_strategic(tree, patch, version_of(verb)->schema, &verb->refusal);
    }
}

/* The decoder's words, without what they are about. */
int kinf__verb_refuse_made(struct kinf__verb *verb, const char *text)
{
    static const char about[] = " cannot be handled as a ";
    KINF__AUTO_BUFFER quoted = KINF__BUFFER_INIT;
    char why[KINF__REFUSAL_MESSAGE_SIZE];
    const char *at = strstr(verb->refusal.message, about);

    at = at != NULL ? strstr(at, ": ") : NULL;
    snprintf(why, sizeof why, "%s", at != NULL ? at + 2 : verb->refusal.message);
    if (kinf__quote(&quoted, kinf_str_from(text)) < 0 || kinf__buffer_cstr(&quoted) == NULL)
        return refuse_no_memory(verb);
    kinf__refuse(&verb->refusal, 422, "Invalid", " \"\" is invalid: patch: Invalid value: %.*s: %s",
                 PATCH_TEXT_MAX, quoted.bytes, why);
    kinf__refusal_add_cause(&verb->refusal, "FieldValueInvalid", "patch",
                            verb->refusal.message + strlen(" \"\" is invalid: patch: "));
    verb->refusal.details = KINF__DETAILS_CAUSES;
    return KINF_ERR_INVALID;
}

/* Decodes what a patch made, which refusals quote; a strategic one they quote itself. */
static int decode_made(struct kinf__verb *verb, enum kinf__patch_type type,
                       const struct cJSON *patch, struct cJSON *object)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT, room = KINF__BUFFER_INIT;
    const char *quoted = NULL;
    int failed;

    if (kinf__doc_print(object, &text) < 0)
        return refuse_no_memory(verb);
    failed = kinf__verb_decode(verb, object);
    if (failed != KINF_ERR_INVALID || verb->resource->is_custom || verb->refusal.code != 400)
        return failed;
    quoted = type == KINF__PATCH_STRATEGIC ? kinf__doc_go_text(patch, 'v', PATCH_TEXT_MAX, &room)
                                           : kinf__buffer_cstr(&text);
    return quoted != NULL ? kinf__verb_refuse_made(verb, quoted) : refuse_no_memory(verb);
}

/* --- server-side apply --- */

static int apply(struct kinf__verb *verb, const struct cJSON *old, const struct cJSON *config,
                 bool force, struct cJSON **ret_object)
{
    char time[KINF__RFC3339_SIZE], api_version[KINF__API_VERSION_SIZE];
    struct kinf__manager manager = { or_empty(verb->manager), api_version,
                                     or_empty(verb->subresource), time };

    kinf__sim_time(time);
    kinf__type_api_version(version_of(verb)->type, api_version);
    return kinf__managed_apply(version_of(verb)->schema, old, config, &manager, force, ret_object,
                               &verb->refusal);
}

/* Apply has said already who manages what: managedFields are as they shall be. */
static int store_applied(struct kinf__verb *verb, const struct cJSON *old,
                         struct cJSON *take_object)
{
    KINF__AUTO_DOC *object = take_object;
    int failed = kinf__verb_decode(verb, object);

    if (failed == 0 && old != NULL) {
        failed = kinf__verb_begin_change(verb, old, &object);
        if (failed == 0)
            failed = kinf__verb_finish_change(verb, old, object);
    } else if (failed == 0) {
        failed = kinf__verb_begin_create(verb, object);
        if (failed == 0)
            failed = kinf__verb_finish_create(verb, object);
    }
    if (failed < 0)
        return failed;
    verb->is_created = old == NULL;
    return old != NULL ? kinf__verb_store_changed(verb, old, KINF__TAKE(object))
                       : kinf__verb_store(verb, KINF__TAKE(object));
}

static int check_config(struct kinf__verb *verb, const struct cJSON *config)
{
    const char *kind = kinf__doc_text(config, "kind", NULL),
               *api_version = kinf__doc_text(config, "apiVersion", NULL), *name = name_of(config),
               *name_space = namespace_of(config);
    char expected[KINF__API_VERSION_SIZE];

    kinf__type_api_version(version_of(verb)->type, expected);
    if (strcmp(kind, version_of(verb)->type->kind) != 0 || strcmp(api_version, expected) != 0)
        return kinf__refuse_bad_request(&verb->refusal, "invalid object type: %s%s, Kind=%s",
                                        strchr(api_version, '/') != NULL ? "" : "/", api_version,
                                        kind);
    if (*name != '\0' && strcmp(name, verb->name) != 0)
        return kinf__verb_refuse_name(verb, name);
    return *name_space != '\0' && strcmp(name_space, verb->name_space) != 0
               ? kinf__verb_refuse_namespace(verb)
               : 0;
}

/* A container that is null is an empty one. The depth is bounded by the parser's. */
static void fill_nulls(const struct kinf__schema_node *node, struct cJSON *config)
{
    struct cJSON *member;

    cJSON_ArrayForEach(member, config)
    {
        const struct kinf__schema_node *its = kinf__schema_member(node, member->string);

        if (cJSON_IsObject(member))
            fill_nulls(its, member);
        else if (cJSON_IsNull(member) && its != NULL && its->kind <= KINF__SCHEMA_LIST)
            member->type = (member->type & ~0xff) |
                           (its->kind == KINF__SCHEMA_LIST ? cJSON_Array : cJSON_Object);
    }
}

/* What is applied to status is of nothing else, and the other way around. */
static void cut_config(struct kinf__verb *verb, struct cJSON *config)
{
    static const char *const described[] = { "labels", "annotations", "finalizers",
                                             "ownerReferences" };

    if (!verb->resource->is_custom)
        fill_nulls(version_of(verb)->schema, config);
    if (is_main(verb) && version_of(verb)->has_status)
        kinf__doc_remove(config, "status");
    if (is_main(verb) || strcmp(verb->subresource, "status") != 0)
        return;
    kinf__doc_remove(config, "spec");
    for (size_t i = 0; verb->resource->is_custom && i < KINF__ARRAY_LEN(described); i++)
        kinf__doc_remove(kinf__doc_get(config, "metadata"), described[i]);
}

static int check_applied_uid(struct kinf__verb *verb, const struct cJSON *config)
{
    const char *uid = kinf__doc_text(config, "metadata", "uid", NULL);

    return *uid != '\0' ? kinf__refuse_conflict(&verb->refusal, verb->resource, verb->name,
                                                "uid mismatch: the provided object specified uid "
                                                "%s, and no existing object was found",
                                                uid)
                        : 0;
}

static int patch_by_apply(struct kinf__verb *verb, const struct cJSON *patch, bool force)
{
    KINF__AUTO_DOC *config = kinf__doc_dup(patch);
    KINF__AUTO_DOC *old = NULL;
    struct cJSON *object = NULL;
    int failed;

    if (config == NULL)
        return refuse_no_memory(verb);
    if (!cJSON_IsObject(config) && !cJSON_IsNull(config))
        return kinf__refuse_bad_request(
            &verb->refusal,
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot "
            "unmarshal %s into Go value of type map[string]interface {}",
            kinf__json_type_word(config));
    failed = kinf__verb_read(verb, or_empty(verb->name_space), verb->name, &old);
    if (failed < 0 && (failed != KINF_ERR_INVALID || !is_main(verb)))
        return failed;
    failed = check_config(verb, config);
    if (failed == 0 && old == NULL)
        failed = check_applied_uid(verb, config);
    if (failed == 0 && old == NULL)
        failed = kinf__verb_check_named(verb, config);
    if (failed < 0)
        return failed;
    cut_config(verb, config);
    failed = apply(verb, old, config, force, &object);
    return failed < 0 ? failed : store_applied(verb, old, object);
}

int kinf__verb_patch(struct kinf__verb *verb, enum kinf__patch_type type, const struct cJSON *patch,
                     bool force)
{
    KINF__AUTO_DOC *old = NULL;
    KINF__AUTO_DOC *object = NULL;
    int failed;

    if (type == KINF__PATCH_APPLY)
        return patch_by_apply(verb, patch, force);
    failed = kinf__verb_read(verb, or_empty(verb->name_space), or_empty(verb->name), &old);
    if (failed < 0)
        return failed;
    object = kinf__doc_dup(old);
    failed = object != NULL ? change(verb, type, patch, &object) : refuse_no_memory(verb);
    if (failed == 0)
        failed = decode_made(verb, type, patch, object);
    if (failed == 0)
        failed = kinf__verb_check_named(verb, object);
    if (failed == 0)
        failed = kinf__verb_place(verb, object);
    return failed == 0 ? kinf__verb_change(verb, old, KINF__TAKE(object)) : failed;
}
