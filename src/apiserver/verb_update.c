/*
 * Update: what a new object may change of the one that is there. Neighbours: verbs.c has the steps.
 */
#include <stdio.h>
#include <string.h>

#include "apiserver/kinds.h"
#include "apiserver/refuse.h"
#include "apiserver/types.h"
#include "apiserver/verbs_priv.h"
#include "document/managed.h"

/* Resources of a group: "roles,rolebindings". */
struct kinds {
    const char *group, *resources;
};

static bool is_one_of(const struct kinf__verb *verb, const struct kinds *kinds, size_t n_kinds)
{
    for (size_t i = 0; i < n_kinds; i++) {
        if (strcmp(verb->resource->group, kinds[i].group) == 0)
            return kinf__has_word(kinds[i].resources, verb->resource->name);
    }
    return false;
}

/* Custom resources, and few others, are not updated blindly. */
static bool wants_version(const struct kinf__verb *verb)
{
    static const struct kinds kinds[] = {
        { "apiextensions.k8s.io", "customresourcedefinitions" },
        { "apiregistration.k8s.io", "apiservices" },
        { "coordination.k8s.io", "leases" },
        { "policy", "poddisruptionbudgets" },
        { "storage.k8s.io", "csidrivers,csinodes,csistoragecapacities,volumeattachments" },
    };

    return verb->resource->is_custom || is_one_of(verb, kinds, KINF__ARRAY_LEN(kinds));
}

static int check_version(struct kinf__verb *verb, const struct cJSON *old,
                         const struct cJSON *object)
{
    const char *said = kinf__doc_text(object, "metadata", "resourceVersion", NULL);
    bool is_blind = *said == '\0' || strcmp(said, "0") == 0;

    if (is_blind && wants_version(verb))
        return kinf__refuse_invalid(&verb->refusal, verb->resource->group, verb->resource->name,
                                    name_of(old), "FieldValueInvalid", "metadata.resourceVersion",
                                    "Invalid value: 0: must be specified for an update");
    if (said[strspn(said, "0123456789")] != '\0')
        return kinf__refuse(&verb->refusal, 500, "",
                            "strconv.ParseUint: parsing \"%s\": invalid syntax", said);
    if (is_blind || strcmp(said, kinf__doc_text(old, "metadata", "resourceVersion", NULL)) == 0)
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
                   (kinf__is_being_deleted(old) &&
                    kinf__kind_restore(from, to, "deletionTimestamp") < 0)
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
    return kinf__is_being_deleted(object) && !kinf__kind_is_held(verb->resource, object) &&
           kinf__doc_integer(kinf__doc_get(object, "metadata"), "deletionGracePeriodSeconds", 0) ==
               0;
}

/* Consumes the object, whose life and managers are as they will be. */
int kinf__verb_store_changed(struct kinf__verb *verb, const struct cJSON *old,
                             struct cJSON *take_object)
{
    if (kinf__managed_keep_times(old, take_object) < 0) {
        cJSON_Delete(take_object);
        return refuse_no_memory(verb);
    }
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
        return failed == 0 ? kinf__verb_fill_defaults(verb, *object) : failed;
    }
    failed = kinf__verb_fill_defaults(verb, *object);
    return failed == 0 ? kinf__kind_keep_rest(verb->resource, old, *object,
                                              or_empty(verb->subresource), &verb->refusal)
                       : failed;
}

int kinf__verb_finish_change(struct kinf__verb *verb, const struct cJSON *old, struct cJSON *object)
{
    int failed = kinf__verb_show_lists(verb, object);

    if (failed == 0 && !verb->resource->is_custom)
        failed = kinf__kind_prepare_update(verb->sim, verb->resource, old, object,
                                           or_empty(verb->subresource), &verb->refusal);
    if (failed == 0)
        failed = kinf__verb_validate(verb, object, old);
    return failed == 0 ? count_generation(verb, old, object) : failed;
}

/* Consumes the object. */
int kinf__verb_change(struct kinf__verb *verb, const struct cJSON *old, struct cJSON *take_object)
{
    KINF__AUTO_DOC *object = take_object;
    int failed = kinf__verb_begin_change(verb, old, &object);

    if (failed == 0 && !is_servers_own(verb))
        failed = kinf__verb_note_manager(verb, old, object);
    if (failed == 0)
        failed = kinf__verb_finish_change(verb, old, object);
    return failed == 0 ? kinf__verb_store_changed(verb, old, KINF__TAKE(object)) : failed;
}

/* Kinds that a PUT may create. */
static bool is_created_by_update(const struct kinf__verb *verb)
{
    static const struct kinds kinds[] = {
        { "", "endpoints,events,limitranges,services" },
        { "events.k8s.io", "events" },
        { "coordination.k8s.io", "leases" },
        { "rbac.authorization.k8s.io", "roles,rolebindings,clusterroles,clusterrolebindings" },
    };

    return is_main(verb) && is_one_of(verb, kinds, KINF__ARRAY_LEN(kinds));
}

int kinf__verb_refuse_precondition(struct kinf__verb *verb, const struct cJSON *object,
                                   const char *what, const char *said, const char *there)
{
    const char *name_space = namespace_of(object);

    return kinf__refuse_conflict(&verb->refusal, verb->resource, name_of(object),
                                 "StorageError: invalid object, Code: 4, Key: /registry/%s%s%s/%s, "
                                 "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: %s "
                                 "in precondition: %s, %s in object meta: %s",
                                 verb->resource->name, *name_space != '\0' ? "/" : "", name_space,
                                 name_of(object), what, said, what, there);
}

/* `uid`: of what is there; "": nothing is. */
static int check_uid(struct kinf__verb *verb, const struct cJSON *object, const char *uid)
{
    const char *said = kinf__doc_text(object, "metadata", "uid", NULL);

    return *said == '\0' || strcmp(said, uid) == 0
               ? 0
               : kinf__verb_refuse_precondition(verb, object, "UID", said, uid);
}

int kinf__verb_check_named(struct kinf__verb *verb, const struct cJSON *object)
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
        (failed = kinf__verb_check_named(verb, object)) < 0 ||
        (failed = kinf__verb_place(verb, object)) < 0)
        return failed;
    name_space = namespace_of(object);
    if (is_created_by_update(verb) &&
        !kinf__store_has(verb->resource, name_space, name_of(object))) {
        failed = check_uid(verb, object, "");
        return failed == 0 ? kinf__verb_create_decoded(verb, KINF__TAKE(object)) : failed;
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
