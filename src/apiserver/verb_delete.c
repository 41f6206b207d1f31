/*
 * Delete: preconditions, what keeps an object (finalizers, a grace period, dependents), and its end.
 * Neighbours: verbs.c stores what goes on to live; owners.c and kinds.c say what keeps it.
 */
#include "apiserver/verbs_priv.h"

#include <string.h>

#include "base/clock.h"
#include "base/rfc3339.h"
#include "object/object.h"

#include "apiserver/conditions.h"
#include "apiserver/kinds.h"
#include "apiserver/owners.h"
#include "apiserver/refuse.h"

#define POD_GRACE_S 30

/* The time that it was given when it was deleted. */
static int64_t given_s(const struct cJSON *object)
{
    return kinf__is_being_deleted(object) ? kinf__doc_integer(kinf__doc_get(object, "metadata"),
                                                              "deletionGracePeriodSeconds", 0)
                                          : 0;
}

/* What goes already can only go sooner, and only if that is asked for. */
static bool is_pending(const struct kinf__delete_options *options, const struct cJSON *object)
{
    int64_t before_s = given_s(object);

    return before_s > 0 && (options->grace_s < 0 || options->grace_s >= before_s);
}

/* A scheduled pod that has not ended is given time; it is the kubelet's to say when it is gone. */
static int64_t grace_of(const struct kinf__verb *verb, const struct kinf__delete_options *options,
                        const struct cJSON *object)
{
    const char *phase = kinf__doc_text(object, "status", "phase", NULL);

    if (!is_of(verb, "", "pods"))
        return 0;
    if (kinf__is_being_deleted(object))
        return given_s(object) > 0 ? options->grace_s : 0;
    if (*kinf__doc_text(object, "spec", "nodeName", NULL) == '\0' ||
        strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0)
        return 0;
    return options->grace_s >= 0 ? options->grace_s
                                 : kinf__doc_integer(kinf__doc_get(object, "spec"),
                                                     "terminationGracePeriodSeconds", POD_GRACE_S);
}

/* Its end comes sooner by as much as it has less time, but not before now: then there is a last second
 * for whoever ends it. */
static int shorten(struct kinf__verb *verb, struct cJSON *metadata, int64_t grace_s)
{
    int64_t before_s = kinf__doc_integer(metadata, "deletionGracePeriodSeconds", 0);
    int64_t now_s = kinf__clock_wall_ms() / 1000, end_s = now_s;
    char time[KINF__RFC3339_SIZE];

    if (before_s <= grace_s)
        return 0;
    (void)kinf__rfc3339_parse(kinf_str_from(kinf__doc_text(metadata, "deletionTimestamp", NULL)),
                              &end_s);
    end_s -= before_s - grace_s;
    if (end_s <= now_s) {
        end_s = now_s;
        grace_s = grace_s != 0;
    }
    kinf__rfc3339_write(end_s, 0, 0, time);
    return kinf__doc_set_text(metadata, "deletionTimestamp", time) < 0 ||
                   kinf__doc_set_integer(metadata, "deletionGracePeriodSeconds", grace_s) < 0
               ? refuse_no_memory(verb)
               : 0;
}

static int mark_going(struct kinf__verb *verb, struct cJSON *object, int64_t grace_s)
{
    struct cJSON *metadata = metadata_of(object);
    char time[KINF__RFC3339_SIZE];

    if (kinf__is_being_deleted(object))
        return shorten(verb, metadata, grace_s);
    kinf__sim_time_after(grace_s, time);
    if (kinf__doc_set_text(metadata, "deletionTimestamp", time) < 0)
        return refuse_no_memory(verb);
    /* Those two go a way of their own in the server, too. */
    if (is_definition(verb) || is_of(verb, "", "namespaces"))
        return 0;
    if (kinf__doc_set_integer(metadata, "deletionGracePeriodSeconds", grace_s) < 0 ||
        (kinf__kind_has_generation(verb->resource) &&
         kinf__doc_set_integer(metadata, "generation",
                               kinf__doc_integer(metadata, "generation", 0) + 1) < 0))
        return refuse_no_memory(verb);
    return 0;
}

/* Whether something keeps it: a finalizer, a grace period, or what is in a namespace. */
static int begin_end(struct kinf__verb *verb, const struct kinf__delete_options *options,
                     struct cJSON *object, bool *ret_waits)
{
    int64_t grace_s = grace_of(verb, options, object);
    bool waits = false;
    int failed = kinf__owners_begin_delete(verb->resource, object, options->propagation, &waits);

    if (failed < 0)
        return refuse_no_memory(verb);
    failed = kinf__kind_prepare_delete(verb->resource, object, &verb->refusal);
    if (failed < 0)
        return failed;
    *ret_waits = waits || grace_s != 0 || kinf__kind_is_held(verb->resource, object);
    return *ret_waits || is_of(verb, "", "pods") ? mark_going(verb, object, grace_s) : 0;
}

static int refuse_precondition(struct kinf__verb *verb, const char *what, const char *asked,
                               const char *there, const char *why)
{
    const char *group = verb->resource->group;

    kinf__refuse(
        &verb->refusal, 409, "Conflict",
        "Operation cannot be fulfilled on %s%s%s \"%s\": the %s in the precondition (%s) does "
        "not match the %s in record (%s). The object might have been %s",
        verb->resource->kind, *group != '\0' ? "." : "", group, verb->name, what, asked, what,
        there, why);
    kinf__refusal_set_object(&verb->refusal, group, verb->resource->kind, verb->name);
    return KINF_ERR_INVALID;
}

static int check_preconditions(struct kinf__verb *verb, const struct cJSON *old,
                               const struct kinf__delete_options *options)
{
    const char *uid = kinf__doc_text(old, "metadata", "uid", NULL),
               *version = kinf__doc_text(old, "metadata", "resourceVersion", NULL);

    if (*or_empty(options->uid) != '\0' && strcmp(options->uid, uid) != 0)
        return refuse_precondition(verb, "UID", options->uid, uid, "deleted and then recreated");
    if (*or_empty(options->resource_version) != '\0' &&
        strcmp(options->resource_version, version) != 0)
        return refuse_precondition(verb, "ResourceVersion", options->resource_version, version,
                                   "modified");
    return 0;
}

/* A pod that is evicted says so before it goes. */
static int note_eviction(struct kinf__verb *verb, struct cJSON **pod)
{
    static const struct kinf__condition target = { .type = "DisruptionTarget",
                                                   .status = "True",
                                                   .reason = "EvictionByEvictionAPI",
                                                   .message = "Eviction API: evicting" };
    KINF__AUTO_DOC *before = kinf__doc_dup(*pod);
    struct cJSON *condition = before != NULL ? kinf__condition_set(*pod, &target) : NULL;
    int failed;

    if (condition == NULL || kinf__doc_set(condition, "lastProbeTime", cJSON_CreateNull()) < 0)
        return refuse_no_memory(verb);
    if (kinf__doc_equal(before, *pod))
        return 0;
    failed = kinf__verb_store(verb, *pod);
    *pod = KINF__TAKE(verb->object);
    return failed;
}

int kinf__verb_delete(struct kinf__verb *verb, const struct kinf__delete_options *options,
                      bool *ret_is_gone)
{
    KINF__AUTO_DOC *old = NULL;
    KINF__AUTO_DOC *object = NULL;
    bool waits = false;
    int failed = kinf__verb_read(verb, or_empty(verb->name_space), or_empty(verb->name), &old);

    *ret_is_gone = false;
    if (failed == 0)
        failed = check_preconditions(verb, old, options);
    if (failed == 0 && options->is_eviction)
        failed = note_eviction(verb, &old);
    if (failed < 0)
        return failed;
    if (is_pending(options, old)) {
        verb->object = KINF__TAKE(old);
        return 0;
    }
    object = kinf__doc_dup(old);
    failed = object != NULL ? begin_end(verb, options, object, &waits) : refuse_no_memory(verb);
    if (failed < 0)
        return failed;
    verb->object = KINF__TAKE(object);
    /* Watches are told that it goes also if it is gone at once. */
    if (!kinf__doc_equal(old, verb->object))
        failed = kinf__verb_store(verb, verb->object);
    if (failed < 0 || waits)
        return failed;
    *ret_is_gone = true;
    return kinf__verb_remove(verb, true);
}

int kinf__verb_delete_object(struct kinf__sim *sim, struct kinf__resource *resource,
                             const struct kinf_object *object, enum kinf__propagation propagation)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    struct kinf__verb verb = { .sim = sim, .resource = resource };
    char name_space[KINF_NAME_MAX];
    bool is_gone;
    int failed;

    verb.name = kinf__object_key_split(kinf_object_key(object), name_space);
    verb.name_space = name_space;
    options.propagation = propagation;
    options.uid = kinf_object_uid(object);
    failed = kinf__verb_delete(&verb, &options, &is_gone);
    kinf__verb_release(&verb);
    return failed;
}
