/*
 * Create and update. Neighbours: request.c brings what clients send, verb_patch.c makes new objects of
 * patches, verb_delete.c deletes, kinds.c has the rules of certain kinds, managed.c keeps who set what, store.c keeps the result.
 *
 * Each verb goes the server's way: decode (types, unknown fields), identity, defaults, rules of the
 * kind, validation, managed fields, store. A dry run goes all of it but the last step.
 */
#include "apiserver/verbs_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "document/schema.h"

#include "apiserver/definitions.h"
#include "apiserver/invalid.h"
#include "apiserver/kinds.h"
#include "apiserver/namespaces.h"
#include "apiserver/refuse.h"
#include "apiserver/types.h"

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
    char expected[API_VERSION_SIZE];

    write_api_version(version, expected);
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
    char api_version[API_VERSION_SIZE];
    bool is_ignored = verb->validation == KINF__FIELDS_IGNORE;
    int failed = check_kind(verb, object);

    if (failed == 0)
        failed = kinf__schema_check_types(version->schema, object, version->type->kind,
                                          version->type->version, &verb->refusal);
    if (failed < 0)
        return failed;
    write_api_version(version, api_version);
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
    char uid[37], time[KINF__TIME_SIZE];

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

static int fill_defaults(struct kinf__verb *verb, struct cJSON *object)
{
    if (kinf__omit_empty(version_of(verb)->schema, object) < 0 ||
        kinf__schema_default(version_of(verb)->schema, object) < 0 ||
        (!verb->resource->is_custom &&
         kinf__default_object(verb->resource->group, verb->resource->kind, object) < 0))
        return refuse_no_memory(verb);
    return 0;
}

static int show_lists(struct kinf__verb *verb, struct cJSON *object)
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

static int validate(struct kinf__verb *verb, const struct cJSON *object, const struct cJSON *old)
{
    int failed = kinf__kind_validate(verb->resource, object, old, &verb->refusal);

    return failed == 0 && verb->resource->is_custom ? validate_custom(verb, object) : failed;
}

static int note_manager(struct kinf__verb *verb, const struct cJSON *old, struct cJSON *object)
{
    char time[KINF__TIME_SIZE], api_version[API_VERSION_SIZE];
    struct kinf__manager manager = { verb->manager != NULL ? verb->manager : OWN_MANAGER,
                                     api_version, or_empty(verb->subresource), time };

    kinf__sim_time(time);
    /* The server does not write when something was scaled. */
    if (strcmp(or_empty(verb->subresource), "scale") == 0)
        time[0] = '\0';
    write_api_version(version_of(verb), api_version);
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

    if (!is_definition(verb) || !is_main(verb) || verb->is_dry_run || is_going(verb->object))
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
    if (is_going(there))
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
    failed = fill_defaults(verb, object);
    return failed == 0 ? kinf__kind_keep_rest(verb->resource, NULL, object, "", &verb->refusal)
                       : failed;
}

int kinf__verb_finish_create(struct kinf__verb *verb, struct cJSON *object)
{
    int failed;

    /* A Job's labels have its uid in them, which are defaults, too. */
    if ((failed = begin_life(verb, object)) < 0 || (failed = fill_defaults(verb, object)) < 0 ||
        (failed = show_lists(verb, object)) < 0 ||
        (failed = kinf__kind_prepare_create(verb->sim, verb->resource, object, &verb->refusal)) <
            0 ||
        (failed = validate(verb, object, NULL)) < 0)
        return failed;
    return check_new(verb, object);
}

/* Whose the status is, which a node brings along, is not said. */
static int note_creator(struct kinf__verb *verb, struct cJSON *object)
{
    struct cJSON *status = version_of(verb)->has_status
                               ? cJSON_DetachItemFromObjectCaseSensitive(object, "status")
                               : NULL;
    int failed = note_manager(verb, NULL, object);

    return status != NULL && kinf__doc_set(object, "status", status) < 0 ? refuse_no_memory(verb)
                                                                         : failed;
}

/* Of what is decoded. Consumes the object. */
static int create(struct kinf__verb *verb, struct cJSON *take_object)
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
    return failed == 0 ? create(verb, KINF__TAKE(object)) : failed;
}

/* --- update --- */

int kinf__verb_read(struct kinf__verb *verb, const char *name_space, const char *name,
                    struct cJSON **ret_old)
{
    int failed = kinf__store_read(verb->resource, name_space, name, ret_old);
    char api_version[API_VERSION_SIZE];

    if (failed == KINF_ERR_NOT_FOUND)
        return kinf__refuse_not_found(&verb->refusal, verb->resource, name);
    if (failed == 0 && version_of(verb) != &verb->resource->versions[0]) {
        write_api_version(version_of(verb), api_version);
        failed = kinf__doc_set_text(*ret_old, "apiVersion", api_version);
        if (failed < 0)
            cJSON_Delete(*ret_old);
    }
    return failed < 0 ? refuse_no_memory(verb) : 0;
}

/* Custom resources, and few others, are not updated blindly. */
static bool wants_version(const struct kinf__verb *verb)
{
    return verb->resource->is_custom || is_definition(verb) ||
           is_of(verb, "apiregistration.k8s.io", "apiservices");
}

static int check_version(struct kinf__verb *verb, const struct cJSON *old,
                         const struct cJSON *object)
{
    const char *said = kinf__doc_text(object, "metadata", "resourceVersion", NULL);

    if (*said == '\0' && wants_version(verb))
        return kinf__refuse_invalid(&verb->refusal, verb->resource->group, verb->resource->name,
                                    name_of(old), "FieldValueInvalid", "metadata.resourceVersion",
                                    "Invalid value: 0: must be specified for an update");
    if (said[strspn(said, "0123456789")] != '\0')
        return kinf__refuse(&verb->refusal, 500, "",
                            "strconv.ParseUint: parsing \"%s\": invalid syntax", said);
    if (*said == '\0' || strcmp(said, "0") == 0 ||
        strcmp(said, kinf__doc_text(old, "metadata", "resourceVersion", NULL)) == 0)
        return 0;
    return kinf__refuse_conflict(&verb->refusal, verb->resource, name_of(old),
                                 "the object has been modified; please apply your changes to the "
                                 "latest version and try again");
}

/* What an update need not say, and what it cannot change whatever it says. */
static int keep_life(struct kinf__verb *verb, const struct cJSON *old, struct cJSON *object)
{
    static const char *const always[] = { "creationTimestamp", "generation", "resourceVersion" },
                             *const unless_said[] = { "uid", "deletionTimestamp",
                                                      "deletionGracePeriodSeconds",
                                                      "generateName" };
    const struct cJSON *from = kinf__doc_get(old, "metadata");
    struct cJSON *to = metadata_of(object);

    kinf__doc_remove(to, "selfLink");
    for (size_t i = 0; i < KINF__ARRAY_LEN(always); i++) {
        if (kinf__kind_restore(from, to, always[i]) < 0)
            return refuse_no_memory(verb);
    }
    return kinf__kind_keep_unsaid(from, to, unless_said, KINF__ARRAY_LEN(unless_said)) < 0 ||
                   (is_going(old) && kinf__kind_restore(from, to, "deletionTimestamp") < 0)
               ? refuse_no_memory(verb)
               : 0;
}

/* The server's own write, which is nobody's. */
static bool is_servers_own(const struct kinf__verb *verb)
{
    return strcmp(or_empty(verb->subresource), "binding") == 0;
}

static int count_generation(struct kinf__verb *verb, const struct cJSON *old, struct cJSON *object)
{
    struct cJSON *metadata = metadata_of(object);

    if (strcmp(or_empty(verb->subresource), "status") == 0 || is_servers_own(verb) ||
        !kinf__kind_has_generation(verb->resource) ||
        !kinf__kind_is_changed(verb->resource, !version_of(verb)->has_status, old, object))
        return 0;
    return kinf__doc_set_integer(metadata, "generation",
                                 kinf__doc_integer(metadata, "generation", 0) + 1) < 0
               ? refuse_no_memory(verb)
               : 0;
}

/* The status of a custom resource is its subresource's, and nothing else is but who set what. */
static int keep_other_half(struct kinf__verb *verb, const struct cJSON *old, struct cJSON **object)
{
    KINF__AUTO_DOC *kept = NULL;
    struct cJSON *status;

    if (!version_of(verb)->has_status)
        return 0;
    if (strcmp(or_empty(verb->subresource), "status") != 0)
        return kinf__kind_restore(old, *object, "status") < 0 ? refuse_no_memory(verb) : 0;
    kept = kinf__doc_dup(old);
    status = cJSON_DetachItemFromObjectCaseSensitive(*object, "status");
    if (kept == NULL || (status != NULL && kinf__doc_set(kept, "status", status) < 0) ||
        kinf__kind_restore(metadata_of(*object), metadata_of(kept), "managedFields") < 0)
        return refuse_no_memory(verb);
    if (status == NULL)
        kinf__doc_remove(kept, "status");
    cJSON_Delete(*object);
    *object = KINF__TAKE(kept);
    return 0;
}

/* Its grace period is over, and nobody holds it any more. */
static bool is_released(const struct kinf__verb *verb, const struct cJSON *object)
{
    return is_going(object) && !kinf__kind_is_held(verb->resource, object) &&
           kinf__doc_integer(kinf__doc_get(object, "metadata"), "deletionGracePeriodSeconds", 0) ==
               0;
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

/* Consumes the object, whose life and managers are as they will be. */
int kinf__verb_store_changed(struct kinf__verb *verb, const struct cJSON *old,
                             struct cJSON *take_object)
{
    if (kinf__doc_equal(old, take_object)) {
        verb->object = take_object;
        return 0;
    }
    if (is_released(verb, take_object)) {
        verb->object = take_object;
        return kinf__verb_remove(verb, false);
    }
    return kinf__verb_store(verb, take_object);
}

/* Up to where it is known what the client wants: what this write does not write is the old. */
int kinf__verb_begin_change(struct kinf__verb *verb, const struct cJSON *old, struct cJSON **object)
{
    int failed;

    if ((failed = check_version(verb, old, *object)) < 0 ||
        (failed = keep_life(verb, old, *object)) < 0)
        return failed;
    if (verb->resource->is_custom) {
        failed = keep_other_half(verb, old, object);
        return failed == 0 ? fill_defaults(verb, *object) : failed;
    }
    failed = fill_defaults(verb, *object);
    return failed == 0 ? kinf__kind_keep_rest(verb->resource, old, *object,
                                              or_empty(verb->subresource), &verb->refusal)
                       : failed;
}

int kinf__verb_finish_change(struct kinf__verb *verb, const struct cJSON *old, struct cJSON *object)
{
    int failed = show_lists(verb, object);

    if (failed == 0 && !verb->resource->is_custom)
        failed = kinf__kind_prepare_update(verb->sim, verb->resource, old, object,
                                           or_empty(verb->subresource), &verb->refusal);
    if (failed == 0)
        failed = validate(verb, object, old);
    return failed == 0 ? count_generation(verb, old, object) : failed;
}

/* Consumes the object. */
int kinf__verb_change(struct kinf__verb *verb, const struct cJSON *old, struct cJSON *take_object)
{
    KINF__AUTO_DOC *object = take_object;
    int failed = kinf__verb_begin_change(verb, old, &object);

    if (failed == 0 && !is_servers_own(verb))
        failed = note_manager(verb, old, object);
    if (failed == 0)
        failed = kinf__verb_finish_change(verb, old, object);
    return failed == 0 ? kinf__verb_store_changed(verb, old, KINF__TAKE(object)) : failed;
}

/* Kinds that a PUT may create. */
static bool is_created_by_update(const struct kinf__verb *verb)
{
    static const struct {
        const char *group, *resources;
    } kinds[] = {
        { "", "endpoints,events,limitranges,services" },
        { "events.k8s.io", "events" },
        { "coordination.k8s.io", "leases" },
        { "rbac.authorization.k8s.io", "roles,rolebindings,clusterroles,clusterrolebindings" },
    };

    for (size_t i = 0; is_main(verb) && i < KINF__ARRAY_LEN(kinds); i++) {
        if (strcmp(verb->resource->group, kinds[i].group) == 0)
            return kinf__has_word(kinds[i].resources, verb->resource->name);
    }
    return false;
}

/* `uid`: of what is there; "": nothing is. */
static int check_uid(struct kinf__verb *verb, const struct cJSON *object, const char *uid)
{
    const char *said = kinf__doc_text(object, "metadata", "uid", NULL);
    const char *name_space = namespace_of(object);

    if (*said == '\0' || strcmp(said, uid) == 0)
        return 0;
    return kinf__refuse_conflict(&verb->refusal, verb->resource, name_of(object),
                                 "StorageError: invalid object, Code: 4, Key: /registry/%s%s%s/%s, "
                                 "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID "
                                 "in precondition: %s, UID in object meta: %s",
                                 verb->resource->name, *name_space != '\0' ? "/" : "", name_space,
                                 name_of(object), said, uid);
}

/* What is sent to a path has to name itself. */
static int check_named(struct kinf__verb *verb, const struct cJSON *object)
{
    const char *asked = or_empty(verb->name);

    return *asked == '\0' || *name_of(object) != '\0'
               ? 0
               : kinf__refuse_bad_request(&verb->refusal,
                                          "the name of the object (%s based on URL) was "
                                          "undeterminable: name must be provided",
                                          asked);
}

int kinf__verb_update(struct kinf__verb *verb, struct cJSON *take_object)
{
    KINF__AUTO_DOC *object = take_object;
    KINF__AUTO_DOC *old = NULL;
    const char *name_space;
    int failed;

    if ((failed = kinf__verb_decode(verb, object)) < 0 ||
        (failed = check_named(verb, object)) < 0 || (failed = kinf__verb_place(verb, object)) < 0)
        return failed;
    name_space = namespace_of(object);
    if (is_created_by_update(verb) &&
        !kinf__store_has(verb->resource, name_space, name_of(object))) {
        failed = check_uid(verb, object, "");
        return failed == 0 ? create(verb, KINF__TAKE(object)) : failed;
    }
    failed = kinf__verb_read(verb, name_space, name_of(object), &old);
    if (failed == 0)
        failed = check_uid(verb, object, kinf__doc_text(old, "metadata", "uid", NULL));
    return failed == 0 ? kinf__verb_change(verb, old, KINF__TAKE(object)) : failed;
}

int kinf__verb_replace(struct kinf__verb *verb, struct cJSON *take_object)
{
    KINF__AUTO_DOC *object = take_object;
    KINF__AUTO_DOC *old = NULL;
    int failed = kinf__verb_read(verb, namespace_of(object), name_of(object), &old);

    return failed == 0 ? kinf__verb_change(verb, old, KINF__TAKE(object)) : failed;
}

static int load_status(struct kinf__verb *verb, struct cJSON *take_status)
{
    KINF__AUTO_DOC *object = KINF__TAKE(verb->object);

    if (kinf__doc_set(object, "status", take_status) < 0)
        return refuse_no_memory(verb);
    verb->subresource = "status";
    return kinf__verb_replace(verb, KINF__TAKE(object));
}

static bool is_there(const struct kinf__verb *verb, const struct cJSON *object)
{
    const char *name_space = namespace_of(object);

    if (!verb->resource->namespaced)
        name_space = "";
    else if (*name_space == '\0')
        name_space = "default";
    return kinf__store_has(verb->resource, name_space,
                           kinf__doc_text(object, "metadata", "name", NULL));
}

int kinf__verb_load(struct kinf__verb *verb, struct cJSON *take_object)
{
    struct cJSON *status = kinf__doc_dup(kinf__doc_get(take_object, "status"));
    int failed = is_there(verb, take_object) ? kinf__verb_update(verb, take_object)
                                             : kinf__verb_create(verb, take_object);

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
        failed = note_manager(verb, NULL, object);
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
