/*
 * The steps of a write, and create. Neighbours: request.c brings what clients send, verb_update.c changes
 * what is there, verb_patch.c makes new objects of patches, verb_delete.c deletes, kinds.c has the rules
 * of certain kinds, managed.c keeps who set what, store.c keeps the result.
 *
 * Each verb goes the server's way: decode (types, unknown fields), identity, defaults, rules of the
 * kind, validation, managed fields, store. A dry run goes all of it but the last step.
 */
#include "apiserver/verbs_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/schema.h"

#include "apiserver/definitions.h"
#include "apiserver/invalid.h"
#include "apiserver/kinds.h"
#include "apiserver/namespaces.h"
#include "apiserver/refuse.h"

#define SUFFIX_LEN        5  /* of generated names */
#define GENERATED_MAX     58 /* what is kept of generateName */
#define OWN_MANAGER       "kinformer-sim"
#define MAX_SCHEMA_FAULTS KINF__REFUSAL_MAX_CAUSES

/* --- decoding --- */

static int warn(const char *problem, void *ctx)
{
    struct kinf__verb *verb = ctx;

    if (verb->n_warnings < KINF__MAX_WARNINGS)
        snprintf(verb->warnings[verb->n_warnings++], sizeof verb->warnings[0], "%s", problem);
    return 0;
}

static int ignore(const char *problem, void *ctx)
{
    (void)problem;
    (void)ctx;
    return 0;
}

/* What was warned of is an error. */
static int refuse_unknown_fields(struct kinf__verb *verb)
{
    const struct kinf_type *type = version_of(verb)->type;
    char problems[KINF__REFUSAL_MESSAGE_SIZE] = "";
    size_t at = 0;

    for (size_t i = 0; i < verb->n_warnings && at < sizeof problems; i++)
        at += (size_t)snprintf(problems + at, sizeof problems - at, "%s%s", i != 0 ? ", " : "",
                               verb->warnings[i]);
    verb->n_warnings = 0;
    return kinf__refuse_bad_request(&verb->refusal,
                                    "%s in version \"%s\" cannot be handled as a %s: strict "
                                    "decoding error: %s",
                                    type->kind, type->version, type->kind, problems);
}

/* Whether the body is of this type; `kind` and `api_version` are what it says. */
static int refuse_kind(struct kinf__verb *verb, const char *kind, const char *api_version,
                       const char *expected)
{
    const struct kinf_type *type = version_of(verb)->type;
    const char *slash = strrchr(api_version, '/');
    const char *version = slash != NULL ? slash + 1 : api_version;

    if (verb->resource->is_custom)
        return kinf__refuse_bad_request(&verb->refusal,
                                        "the API version in the data (%s) does not match the "
                                        "expected API version (%s)",
                                        api_version, expected);
    if (strcmp(api_version, expected) == 0 &&
        kinf__schema_find(kinf__sim_schema(verb->sim), type->group, type->version, kind) != NULL)
        return kinf__refuse_bad_request(&verb->refusal,
                                        "%s in version \"%s\" cannot be handled as a %s: "
                                        "converting (%s.%s) to (%s.%s): unknown conversion",
                                        kind, version, type->kind, version, kind,
                                        kinf__go_package(type->group), type->kind);
    return kinf__refuse_bad_request(
        &verb->refusal,
        "%s in version \"%s\" cannot be handled as a %s: no kind \"%s\" "
        "is registered for version \"%s\" in scheme " KINF__GO_SCHEME,
        kind, version, type->kind, kind, api_version);
}

static int refuse_custom_kind(struct kinf__verb *verb, const char *kind, const char *name)
{
    char text[KINF_NAME_MAX * 2];

    snprintf(text, sizeof text, "Invalid value: \"%s\": must be %s", kind, verb->resource->kind);
    return kinf__refuse_invalid(&verb->refusal, verb->resource->group, kind, name,
                                "FieldValueInvalid", "kind", text);
}

/* What the body does not say is what the path does. */
static int check_kind(struct kinf__verb *verb, const struct cJSON *object)
{
    const struct kinf__resource_version *version = version_of(verb);
    const char *kind = kinf__doc_text(object, "kind", NULL),
               *api_version = kinf__doc_text(object, "apiVersion", NULL);
    char expected[KINF__API_VERSION_SIZE];

    kinf__type_api_version(version->type, expected);
    if (*kind == '\0')
        kind = version->type->kind;
    if (*api_version == '\0')
        api_version = expected;
    if (strcmp(api_version, expected) != 0)
        return refuse_kind(verb, kind, api_version, expected);
    if (strcmp(kind, version->type->kind) == 0)
        return 0;
    return verb->resource->is_custom ? refuse_custom_kind(verb, kind, name_of(object))
                                     : refuse_kind(verb, kind, api_version, expected);
}

/* Types, unknown fields, and its kind written into it. */
int kinf__verb_decode(struct kinf__verb *verb, struct cJSON *object)
{
    const struct kinf__resource_version *version = version_of(verb);
    char api_version[KINF__API_VERSION_SIZE];
    bool is_ignored = verb->validation == KINF__FIELDS_IGNORE;
    int failed = check_kind(verb, object);

    if (failed == 0)
        failed = kinf__schema_check_types(version->schema, object, version->type->kind,
                                          version->type->version, &verb->refusal);
    if (failed < 0)
        return failed;
    kinf__type_api_version(version->type, api_version);
    if (kinf__schema_prune(version->schema, object, is_ignored ? ignore : warn, verb) < 0 ||
        kinf__doc_set_text(object, "kind", version->type->kind) < 0 ||
        kinf__doc_set_text(object, "apiVersion", api_version) < 0 || metadata_of(object) == NULL)
        return refuse_no_memory(verb);
    if (verb->validation == KINF__FIELDS_STRICT && verb->n_warnings != 0)
        return refuse_unknown_fields(verb);
    return 0;
}

/* --- identity --- */

int kinf__verb_refuse_namespace(struct kinf__verb *verb)
{
    return kinf__refuse_bad_request(&verb->refusal,
                                    "the namespace of the provided object does not match the "
                                    "namespace sent on the request");
}

int kinf__verb_refuse_name(struct kinf__verb *verb, const char *said)
{
    return kinf__refuse_bad_request(&verb->refusal,
                                    "the name of the object (%s) does not match the name on the "
                                    "URL (%s)",
                                    said, verb->name);
}

static int check_namespace(struct kinf__verb *verb, struct cJSON *object)
{
    const char *asked = or_empty(verb->name_space), *said = namespace_of(object);

    if (!verb->resource->namespaced) {
        kinf__doc_remove(metadata_of(object), "namespace");
        return 0;
    }
    if (*asked != '\0' && *said != '\0' && strcmp(asked, said) != 0)
        return kinf__verb_refuse_namespace(verb);
    if (*said != '\0')
        return 0;
    return kinf__doc_set_text(metadata_of(object), "namespace",
                              *asked != '\0' ? asked : "default") < 0
               ? refuse_no_memory(verb)
               : 0;
}

static int generate_name(struct kinf__verb *verb, struct cJSON *metadata)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    const char *prefix = kinf__doc_text(metadata, "generateName", NULL);
    char name[GENERATED_MAX + SUFFIX_LEN + 1];
    int len = snprintf(name, GENERATED_MAX + 1, "%s", prefix);

    if (len > GENERATED_MAX)
        len = GENERATED_MAX;
    for (int i = 0; i < SUFFIX_LEN; i++)
        name[len++] = letters[kinf__sim_random(verb->sim) % (sizeof letters - 1)];
    name[len] = '\0';
    return kinf__doc_set_text(metadata, "name", name) < 0 ? refuse_no_memory(verb) : 0;
}

static void write_uid(struct kinf__sim *sim, char uid[37])
{
    uint64_t a = kinf__sim_random(sim), b = kinf__sim_random(sim);

    snprintf(uid, 37, "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
             a >> 32, a >> 16 & 0xffff, a & 0xfff, 0x8000 | (b >> 48 & 0x3fff), b & 0xffffffffffff);
}

static int name_object(struct kinf__verb *verb, struct cJSON *object)
{
    struct cJSON *metadata = metadata_of(object);
    const char *asked = or_empty(verb->name), *said = name_of(object);

    if (*asked != '\0' && *said != '\0' && strcmp(asked, said) != 0)
        return kinf__verb_refuse_name(verb, said);
    if (*said == '\0' && *asked != '\0')
        return kinf__doc_set_text(metadata, "name", asked) < 0 ? refuse_no_memory(verb) : 0;
    if (*said == '\0' && *kinf__doc_text(metadata, "generateName", NULL) != '\0')
        return generate_name(verb, metadata);
    return 0;
}

int kinf__verb_place(struct kinf__verb *verb, struct cJSON *object)
{
    int failed = check_namespace(verb, object);

    return failed == 0 ? name_object(verb, object) : failed;
}

/* What only the server says of an object. */
static void forget_life(struct cJSON *object)
{
    static const char *const servers[] = {
        "uid",      "creationTimestamp",         "resourceVersion", "deletionTimestamp",
        "selfLink", "deletionGracePeriodSeconds"
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(servers); i++)
        kinf__doc_remove(metadata_of(object), servers[i]);
}

static int begin_life(struct kinf__verb *verb, struct cJSON *object)
{
    struct cJSON *metadata = metadata_of(object);
    char uid[37], time[KINF__RFC3339_SIZE];

    write_uid(verb->sim, uid);
    kinf__sim_time(time);
    if (kinf__doc_set_text(metadata, "uid", uid) < 0 ||
        kinf__doc_set_text(metadata, "creationTimestamp", time) < 0 ||
        (kinf__kind_has_generation(verb->resource) &&
         kinf__doc_set_integer(metadata, "generation", 1) < 0))
        return refuse_no_memory(verb);
    return 0;
}

/* --- rules --- */

int kinf__verb_fill_defaults(struct kinf__verb *verb, struct cJSON *object)
{
    if (kinf__omit_empty(version_of(verb)->schema, object) < 0 ||
        kinf__schema_default(version_of(verb)->schema, object) < 0 ||
        (!verb->resource->is_custom &&
         kinf__default_object(verb->resource->group, verb->resource->kind, object) < 0))
        return refuse_no_memory(verb);
    return 0;
}

int kinf__verb_show_lists(struct kinf__verb *verb, struct cJSON *object)
{
    return kinf__show_lists(version_of(verb)->schema, object) < 0 ? refuse_no_memory(verb) : 0;
}

static int validate_custom(struct kinf__verb *verb, const struct cJSON *object)
{
    struct kinf__schema_fault faults[MAX_SCHEMA_FAULTS];
    struct kinf__invalid invalid;
    int n = kinf__schema_validate(version_of(verb)->schema, object, faults, MAX_SCHEMA_FAULTS);

    if (n < 0)
        return refuse_no_memory(verb);
    kinf__invalid_init(&invalid, &verb->refusal);
    for (int i = 0; i < n && i < MAX_SCHEMA_FAULTS; i++)
        kinf__invalid_add(&invalid, faults[i].reason, faults[i].field, faults[i].message);
    return kinf__invalid_finish(&invalid, verb->resource->group, verb->resource->kind,
                                name_of(object));
}

int kinf__verb_validate(struct kinf__verb *verb, struct cJSON *object, const struct cJSON *old)
{
    int failed = kinf__kind_validate(verb->resource, object, old, &verb->refusal);

    if (failed < 0 || !verb->resource->is_custom)
        return failed;
    failed = validate_custom(verb, object);
    if (failed == 0)
        kinf__doc_shorten_numbers(object);
    return failed;
}

int kinf__verb_note_manager(struct kinf__verb *verb, const struct cJSON *old, struct cJSON *object)
{
    char time[KINF__RFC3339_SIZE], api_version[KINF__API_VERSION_SIZE];
    struct kinf__manager manager = { verb->manager != NULL ? verb->manager : OWN_MANAGER,
                                     api_version, or_empty(verb->subresource), time };

    kinf__sim_time(time);
    /* The server does not write when something was scaled. */
    if (strcmp(or_empty(verb->subresource), "scale") == 0)
        time[0] = '\0';
    kinf__type_api_version(version_of(verb)->type, api_version);
    return kinf__managed_update(version_of(verb)->schema, old, object, &manager, false) < 0
               ? refuse_no_memory(verb)
               : 0;
}

/* --- storing --- */

static int refuse_store(struct kinf__verb *verb, int failed, const struct kinf_error *err)
{
    if (failed == KINF_ERR_NO_MEMORY)
        return refuse_no_memory(verb);
    kinf__refuse(&verb->refusal, failed == KINF_ERR_LIMIT ? 413 : 500,
                 failed == KINF_ERR_LIMIT ? "RequestEntityTooLarge" : "InternalError", "%s",
                 err->message);
    return failed;
}

/* What is served follows the definition at once. */
static int follow_definition(struct kinf__verb *verb)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed;

    if (!is_definition(verb) || !is_main(verb) || verb->is_dry_run ||
        kinf__is_being_deleted(verb->object))
        return 0;
    failed = kinf__definition_apply(verb->sim, verb->object, &err);
    return failed < 0 ? refuse_store(verb, failed, &err) : 0;
}

/* Consumes the object. */
int kinf__verb_store(struct kinf__verb *verb, struct cJSON *take_object)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed = 0;

    verb->object = take_object;
    if (!verb->is_dry_run)
        failed = kinf__store_put(store_of(verb), verb->resource, take_object, &err);
    if (failed < 0)
        return refuse_store(verb, failed, &err);
    return follow_definition(verb);
}

int kinf__verb_remove(struct kinf__verb *verb, bool shows_version)
{
    uint64_t version = 0;
    char text[24];
    int failed;

    if (verb->is_dry_run)
        return 0;
    failed = kinf__store_remove(store_of(verb), verb->resource, namespace_of(verb->object),
                                name_of(verb->object), &version);
    if (failed == KINF_ERR_NOT_FOUND)
        return 0;
    snprintf(text, sizeof text, "%" PRIu64, version);
    return failed < 0 || (shows_version && kinf__doc_set_text(metadata_of(verb->object),
                                                              "resourceVersion", text) < 0)
               ? refuse_no_memory(verb)
               : 0;
}

/* --- create --- */

static int check_namespace_exists(struct kinf__verb *verb, const struct cJSON *object)
{
    if (!verb->resource->namespaced)
        return 0;
    return kinf__namespace_check(verb->sim, namespace_of(object), verb->resource, name_of(object),
                                 &verb->refusal);
}

static int check_new(struct kinf__verb *verb, const struct cJSON *object)
{
    KINF__AUTO_DOC *there = NULL;
    char message[KINF__REFUSAL_MESSAGE_SIZE];
    int failed = kinf__store_read(verb->resource, namespace_of(object), name_of(object), &there);

    if (failed == KINF_ERR_NOT_FOUND)
        return 0;
    if (failed < 0)
        return refuse_no_memory(verb);
    kinf__refuse_exists(&verb->refusal, verb->resource, name_of(object));
    snprintf(message, sizeof message, "%s", verb->refusal.message);
    if (kinf__is_being_deleted(there))
        snprintf(verb->refusal.message, sizeof verb->refusal.message, "object is being deleted: %s",
                 message);
    return KINF_ERR_INVALID;
}

static int refuse_version_set(struct kinf__verb *verb, const struct cJSON *object)
{
    const char *said = kinf__doc_text(object, "metadata", "resourceVersion", NULL);

    if (*said == '\0' || strcmp(said, "0") == 0)
        return 0;
    return kinf__refuse(&verb->refusal, 500, "",
                        "resourceVersion should not be set on objects to be created");
}

/* Where it will be and what it is called; with defaults. */
int kinf__verb_begin_create(struct kinf__verb *verb, struct cJSON *object)
{
    int failed;

    if ((failed = kinf__verb_place(verb, object)) < 0 ||
        (failed = check_namespace_exists(verb, object)) < 0)
        return failed;
    forget_life(object);
    failed = kinf__verb_fill_defaults(verb, object);
    return failed == 0 ? kinf__kind_keep_rest(verb->resource, NULL, object, "", &verb->refusal)
                       : failed;
}

int kinf__verb_finish_create(struct kinf__verb *verb, struct cJSON *object)
{
    int failed;

    /* A Job's labels have its uid in them, which are defaults, too. */
    if ((failed = begin_life(verb, object)) < 0 ||
        (failed = kinf__verb_fill_defaults(verb, object)) < 0 ||
        (failed = kinf__verb_show_lists(verb, object)) < 0 ||
        (failed = kinf__kind_prepare_create(verb->sim, verb->resource, object, &verb->refusal)) <
            0 ||
        (failed = kinf__verb_validate(verb, object, NULL)) < 0)
        return failed;
    return check_new(verb, object);
}

/* Whose the status is, which a node brings along, is not said. */
static int note_creator(struct kinf__verb *verb, struct cJSON *object)
{
    struct cJSON *status = version_of(verb)->has_status
                               ? cJSON_DetachItemFromObjectCaseSensitive(object, "status")
                               : NULL;
    int failed = kinf__verb_note_manager(verb, NULL, object);

    return status != NULL && kinf__doc_set(object, "status", status) < 0 ? refuse_no_memory(verb)
                                                                         : failed;
}

int kinf__verb_create_decoded(struct kinf__verb *verb, struct cJSON *take_object)
{
    KINF__AUTO_DOC *object = take_object;
    int failed;

    if ((failed = kinf__verb_begin_create(verb, object)) < 0 ||
        (failed = note_creator(verb, object)) < 0 ||
        (failed = kinf__verb_finish_create(verb, object)) < 0)
        return failed;
    verb->is_created = true;
    return kinf__verb_store(verb, KINF__TAKE(object));
}

int kinf__verb_create(struct kinf__verb *verb, struct cJSON *take_object)
{
    KINF__AUTO_DOC *object = take_object;
    int failed = kinf__verb_decode(verb, object);

    if (failed == 0)
        failed = refuse_version_set(verb, object);
    return failed == 0 ? kinf__verb_create_decoded(verb, KINF__TAKE(object)) : failed;
}

/* --- what is there --- */

int kinf__verb_read(struct kinf__verb *verb, const char *name_space, const char *name,
                    struct cJSON **ret_old)
{
    int failed = kinf__store_read(verb->resource, name_space, name, ret_old);
    char api_version[KINF__API_VERSION_SIZE];

    if (failed == KINF_ERR_NOT_FOUND)
        return kinf__refuse_not_found(&verb->refusal, verb->resource, name);
    if (failed == 0 && version_of(verb) != &verb->resource->versions[0]) {
        kinf__type_api_version(version_of(verb)->type, api_version);
        failed = kinf__doc_set_text(*ret_old, "apiVersion", api_version);
        if (failed < 0)
            cJSON_Delete(*ret_old);
    }
    return failed < 0 ? refuse_no_memory(verb) : 0;
}

static int load_status(struct kinf__verb *verb, struct cJSON *take_status)
{
    KINF__AUTO_DOC *object = KINF__TAKE(verb->object);

    if (kinf__doc_set(object, "status", take_status) < 0)
        return refuse_no_memory(verb);
    verb->subresource = "status";
    return kinf__verb_replace(verb, KINF__TAKE(object));
}

/* With a reference for the caller; NULL: none. */
static const struct kinf_object *find_loaded(const struct kinf__verb *verb,
                                             const struct cJSON *object)
{
    const char *name_space = namespace_of(object);

    if (!verb->resource->namespaced)
        name_space = "";
    else if (*name_space == '\0')
        name_space = "default";
    return kinf__store_get(verb->resource, name_space, name_of(object));
}

/* A manifest that says no version is of the one that is there. */
static int load_update(struct kinf__verb *verb, const struct kinf_object *old,
                       struct cJSON *take_object)
{
    KINF__AUTO_DOC *object = take_object;

    if (kinf__doc_find(object, "metadata", "resourceVersion", NULL) == NULL &&
        kinf__doc_set_text(metadata_of(object), "resourceVersion",
                           kinf_object_resource_version(old)) < 0)
        return refuse_no_memory(verb);
    return kinf__verb_update(verb, KINF__TAKE(object));
}

int kinf__verb_load(struct kinf__verb *verb, struct cJSON *take_object)
{
    kinf_auto_object const struct kinf_object *old = find_loaded(verb, take_object);
    struct cJSON *status = kinf__doc_dup(kinf__doc_get(take_object, "status"));
    int failed =
        old != NULL ? load_update(verb, old, take_object) : kinf__verb_create(verb, take_object);

    if (failed == 0 && status != NULL)
        return load_status(verb, status);
    cJSON_Delete(status);
    return failed;
}

int kinf__verb_put(struct kinf__sim *sim, struct kinf__resource *resource, const char *subresource,
                   const char *manager, struct cJSON *take_object)
{
    struct kinf__verb verb = {
        .sim = sim, .resource = resource, .subresource = subresource, .manager = manager
    };
    int failed = kinf__verb_replace(&verb, take_object);

    kinf__verb_release(&verb);
    return failed;
}

int kinf__verb_receive(struct kinf__verb *verb, struct cJSON *object)
{
    int failed = kinf__verb_decode(verb, object);

    if (failed == 0)
        failed = kinf__verb_place(verb, object);
    if (failed == 0)
        failed = kinf__verb_note_manager(verb, NULL, object);
    return failed;
}

int kinf__verb_get(struct kinf__verb *verb)
{
    return kinf__verb_read(verb, or_empty(verb->name_space), or_empty(verb->name), &verb->object);
}

void kinf__verb_release(struct kinf__verb *verb)
{
    cJSON_Delete(verb->object);
    verb->object = NULL;
    verb->is_created = false;
    verb->n_warnings = 0;
    memset(&verb->refusal, 0, sizeof verb->refusal);
}
