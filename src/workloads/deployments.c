/*
 * Deployments: a ReplicaSet for each template, and the way from one to the next. Neighbours:
 * rollout.c says how many pods each shall have, replicasets.c makes them.
 *
 * What kubectl lives by is kept in the controller's words: revisions in annotations, and the
 * conditions Available and Progressing with their reasons.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "workloads/rollout.h"
#include "workloads/workloads_priv.h"

#define ANNOTATION "deployment.kubernetes.io/"
#define HASH_LABEL "pod-template-hash"
#define MAX_SETS   64 /* older ones are not looked at */

struct set {
    struct cJSON *tree;
    const char *name;
    int64_t revision;
    struct kinf__rollout_set size;
    struct kinf__pod_counts counts;
};

/* All that a reconcile looks at. */
struct rollout {
    struct kinf__work *work; /* the Deployment's */
    struct kinf__rollout limits;
    struct set sets[MAX_SETS + 1]; /* the oldest first; room for one more */
    size_t n_sets;
    struct set *current;   /* of the template; NULL: there is none yet */
    bool is_created;       /* just now */
    bool has_new_revision; /* not written yet */
};

static void record_scaling(const struct rollout *rollout, const char *set, int64_t from, int64_t to)
{
    kinf__work_record(rollout->work, "deployment-controller", "ScalingReplicaSet",
                      "Scaled %s replica set %.253s from %" PRId64 " to %" PRId64,
                      to > from ? "up" : "down", set, from, to);
}

/* --- reading --- */

static int64_t revision_of(const struct cJSON *object)
{
    return strtoll(kinf__doc_text(object, "metadata", "annotations", ANNOTATION "revision", NULL),
                   NULL, 10);
}

static void describe_set(struct rollout *rollout, struct set *set, struct cJSON *take_tree)
{
    const struct cJSON *spec = kinf__doc_get(take_tree, "spec");

    memset(set, 0, sizeof *set);
    set->tree = take_tree;
    set->name = kinf__doc_text(take_tree, "metadata", "name", NULL);
    set->revision = revision_of(take_tree);
    set->size.wanted = kinf__doc_integer(spec, "replicas", 1);
    set->counts = kinf__count_pods(
        rollout->work,
        kinf__pod_index_find_owner(&rollout->work->workloads->pods,
                                   kinf__doc_text(take_tree, "metadata", "uid", NULL)));
    set->size.available = set->counts.available;
}

static int compare_sets(const void *a, const void *b)
{
    const struct set *left = a, *right = b;
    int order = strcmp(kinf__doc_text(left->tree, "metadata", "creationTimestamp", NULL),
                       kinf__doc_text(right->tree, "metadata", "creationTimestamp", NULL));

    if (order == 0)
        order = (left->revision > right->revision) - (left->revision < right->revision);
    return order != 0 ? order : strcmp(left->name, right->name);
}

static int read_sets(struct rollout *rollout)
{
    const struct kinf__owner *owner = kinf__work_owner(rollout->work);

    KINF__POD_INDEX_FOR_EACH(member, owner)
    {
        struct cJSON *tree;

        if (member->kind != KINF__WORK_REPLICASET || member->is_terminating ||
            rollout->n_sets == MAX_SETS)
            continue;
        if (kinf__workloads_read(rollout->work->workloads, KINF__WORK_REPLICASET, member->key,
                                 &tree) < 0)
            return KINF_ERR_NO_MEMORY;
        describe_set(rollout, &rollout->sets[rollout->n_sets++], tree);
    }
    qsort(rollout->sets, rollout->n_sets, sizeof rollout->sets[0], compare_sets);
    return 0;
}

/* Equal but for the label that tells the pods of one set from another's. */
static int has_template(const struct cJSON *replicaset, const struct cJSON *template, bool *ret_has)
{
    KINF__AUTO_DOC *copy = kinf__doc_dup(kinf__doc_find(replicaset, "spec", "template", NULL));
    struct cJSON *labels = kinf__doc_find(copy, "metadata", "labels", NULL);

    if (copy == NULL)
        return KINF_ERR_NO_MEMORY;
    if (labels != NULL)
        kinf__doc_remove(labels, HASH_LABEL);
    if (labels != NULL && labels->child == NULL)
        kinf__doc_remove(kinf__doc_get(copy, "metadata"), "labels");
    *ret_has = kinf__doc_equal(copy, template);
    return 0;
}

static int find_current(struct rollout *rollout)
{
    const struct cJSON *template = kinf__doc_get(rollout->work->spec, "template");
    bool is_it = false;

    rollout->current = NULL;
    for (size_t i = 0; i < rollout->n_sets && rollout->current == NULL; i++) {
        if (has_template(rollout->sets[i].tree, template, &is_it) < 0)
            return KINF_ERR_NO_MEMORY;
        if (is_it)
            rollout->current = &rollout->sets[i];
    }
    return 0;
}

static int64_t sum_wanted(const struct rollout *rollout)
{
    int64_t sum = 0;

    for (size_t i = 0; i < rollout->n_sets; i++)
        sum += rollout->sets[i].size.wanted;
    return sum;
}

static struct kinf__pod_counts sum_counts(const struct rollout *rollout)
{
    struct kinf__pod_counts sum = { 0 };

    for (size_t i = 0; i < rollout->n_sets; i++) {
        const struct kinf__pod_counts *counts = &rollout->sets[i].counts;

        sum.active += counts->active;
        sum.ready += counts->ready;
        sum.available += counts->available;
        sum.terminating += counts->terminating;
    }
    return sum;
}

/* --- sets --- */

static struct cJSON *sizes_annotations(const struct rollout *rollout)
{
    return kinf__json_format("{\"" ANNOTATION "desired-replicas\":\"%" PRId64 "\",\"" ANNOTATION
                             "max-replicas\":\"%" PRId64 "\"}",
                             rollout->limits.replicas,
                             rollout->limits.replicas + rollout->limits.max_surge);
}

static int resize(struct rollout *rollout, struct set *set, int64_t wanted)
{
    KINF__AUTO_DOC *patch =
        kinf__json_format("{\"spec\":{\"replicas\":%" PRId64 "},\"metadata\":{}}", wanted);
    char key[KINF__KEY_SIZE];

    if (set->size.wanted == wanted)
        return 0;
    if (patch == NULL || kinf__doc_set(kinf__doc_get(patch, "metadata"), "annotations",
                                       sizes_annotations(rollout)) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__object_key_of(set->tree, key);
    record_scaling(rollout, set->name, set->size.wanted, wanted);
    set->size.wanted = wanted;
    return kinf__workloads_merge(rollout->work->workloads, KINF__WORK_REPLICASET, key,
                                 KINF__TAKE(patch));
}

/* Annotations that say something of the Deployment itself stay there. */
static bool is_own_annotation(const char *name)
{
    return strncmp(name, ANNOTATION, sizeof ANNOTATION - 1) == 0 ||
           strcmp(name, "kubectl.kubernetes.io/last-applied-configuration") == 0;
}

static int copy_annotations(const struct rollout *rollout, struct cJSON *metadata, int64_t revision)
{
    struct cJSON *annotations = sizes_annotations(rollout);
    const struct cJSON *annotation;
    char text[24];

    if (kinf__doc_set(metadata, "annotations", annotations) < 0)
        return KINF_ERR_NO_MEMORY;
    snprintf(text, sizeof text, "%" PRId64, revision);
    if (kinf__doc_set_text(annotations, ANNOTATION "revision", text) < 0)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(annotation,
                       kinf__doc_find(rollout->work->tree, "metadata", "annotations", NULL))
    {
        if (!is_own_annotation(annotation->string) &&
            kinf__doc_set(annotations, annotation->string, kinf__doc_dup(annotation)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static struct cJSON *make_set(const struct rollout *rollout, const char *hash, int64_t revision,
                              int64_t replicas)
{
    const struct cJSON *deployment = rollout->work->tree;
    KINF__AUTO_DOC *set = kinf__json_format(
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"metadata\":{\"name\":\"%s-%s\","
        "\"namespace\":\"%s\"},\"spec\":{\"replicas\":%" PRId64 ",\"minReadySeconds\":%" PRId64
        "}}",
        kinf__doc_text(deployment, "metadata", "name", NULL), hash,
        kinf__doc_text(deployment, "metadata", "namespace", NULL), replicas,
        kinf__doc_integer(rollout->work->spec, "minReadySeconds", 0));
    struct cJSON *metadata = kinf__doc_get(set, "metadata"), *spec = kinf__doc_get(set, "spec");
    struct cJSON *selector = kinf__doc_dup(kinf__doc_get(rollout->work->spec, "selector"));
    struct cJSON *template = kinf__doc_dup(kinf__doc_get(rollout->work->spec, "template"));

    if (kinf__doc_set(spec, "selector", selector) < 0) {
        cJSON_Delete(template);
        return NULL;
    }
    if (kinf__doc_set(spec, "template", template) < 0 ||
        kinf__doc_set_text(kinf__doc_object(selector, "matchLabels"), HASH_LABEL, hash) < 0 ||
        kinf__doc_set_text(kinf__doc_object(kinf__doc_object(template, "metadata"), "labels"),
                           HASH_LABEL, hash) < 0 ||
        kinf__doc_set(metadata, "labels",
                      kinf__doc_dup(kinf__doc_find(template, "metadata", "labels", NULL))) < 0 ||
        copy_annotations(rollout, metadata, revision) < 0 ||
        kinf__work_set_controller(rollout->work, set) < 0)
        return NULL;
    return KINF__TAKE(set);
}

static int64_t newest_revision(const struct rollout *rollout)
{
    int64_t newest = 0;

    for (size_t i = 0; i < rollout->n_sets; i++) {
        if (&rollout->sets[i] != rollout->current && rollout->sets[i].revision > newest)
            newest = rollout->sets[i].revision;
    }
    return newest;
}

/* A set of this name is there already. If it is nobody's and has our template, it becomes ours (the
 * Deployment was deleted, its ReplicaSets were not); else the name is another from now on. */
static int adopt_or_rename(struct rollout *rollout, const char *key)
{
    struct cJSON *status = kinf__doc_object(rollout->work->tree, "status");
    KINF__AUTO_DOC *there = NULL;
    KINF__AUTO_DOC *patch = cJSON_CreateObject();
    bool is_same = false;

    if (kinf__workloads_read(rollout->work->workloads, KINF__WORK_REPLICASET, key, &there) < 0 ||
        patch == NULL || status == NULL ||
        has_template(there, kinf__doc_get(rollout->work->spec, "template"), &is_same) < 0)
        return KINF_ERR_NO_MEMORY;
    if (is_same && kinf__doc_find(there, "metadata", "ownerReferences", NULL) == NULL) {
        if (kinf__work_set_controller(rollout->work, patch) < 0)
            return KINF_ERR_NO_MEMORY;
        return kinf__workloads_merge(rollout->work->workloads, KINF__WORK_REPLICASET, key,
                                     KINF__TAKE(patch));
    }
    if (kinf__doc_set_integer(status, "collisionCount",
                              kinf__doc_integer(status, "collisionCount", 0) + 1) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__work_put_status(rollout->work, KINF__CONTROLLER_MANAGER);
}

/* Returns 1 if the rest has to wait for what was noted of this. */
static int create_current(struct rollout *rollout)
{
    const struct cJSON *spec = rollout->work->spec;
    bool recreates = strcmp(kinf__doc_text(spec, "strategy", "type", NULL), "Recreate") == 0;
    int64_t replicas =
        recreates ? 0 : kinf__rollout_new_size(&rollout->limits, 0, sum_wanted(rollout));
    char hash[KINF__TEMPLATE_HASH_SIZE], key[KINF__KEY_SIZE];
    struct cJSON *set, *created;
    int failed;

    if (kinf__template_hash(
            kinf__doc_get(spec, "template"),
            kinf__doc_integer(kinf__doc_get(rollout->work->tree, "status"), "collisionCount", 0),
            hash) < 0 ||
        (set = make_set(rollout, hash, newest_revision(rollout) + 1, replicas)) == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__object_key_of(set, key);
    failed = kinf__workloads_create(rollout->work->workloads, KINF__WORK_REPLICASET,
                                    KINF__CONTROLLER_MANAGER, set, &created);
    if (failed == KINF_ERR_CONFLICT) {
        failed = adopt_or_rename(rollout, key);
        return failed < 0 ? failed : 1;
    }
    if (failed < 0)
        return failed;
    rollout->current = &rollout->sets[rollout->n_sets++];
    rollout->is_created = true;
    describe_set(rollout, rollout->current, created);
    if (replicas != 0)
        record_scaling(rollout, rollout->current->name, 0, replicas);
    return 0;
}

/* --- strategies --- */

/* Nothing of the old is there any more before anything of the new is. */
static int recreate(struct rollout *rollout)
{
    bool is_clear = true;
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < rollout->n_sets; i++) {
        struct set *set = &rollout->sets[i];

        if (set == rollout->current)
            continue;
        is_clear = is_clear && set->counts.active + set->counts.terminating == 0;
        failed = resize(rollout, set, 0);
    }
    return failed == 0 && is_clear ? resize(rollout, rollout->current, rollout->limits.replicas)
                                   : failed;
}

static int roll(struct rollout *rollout)
{
    struct kinf__rollout_set old_sizes[MAX_SETS + 1];
    struct set *old_sets[MAX_SETS + 1];
    size_t n_old = 0;
    int failed = resize(rollout, rollout->current,
                        kinf__rollout_new_size(&rollout->limits, rollout->current->size.wanted,
                                               sum_wanted(rollout)));

    for (size_t i = 0; i < rollout->n_sets; i++) {
        if (&rollout->sets[i] == rollout->current)
            continue;
        old_sets[n_old] = &rollout->sets[i];
        old_sizes[n_old++] = rollout->sets[i].size;
    }
    kinf__rollout_shrink_old(&rollout->limits, &rollout->current->size, old_sizes, n_old);
    for (size_t i = 0; failed == 0 && i < n_old; i++)
        failed = resize(rollout, old_sets[i], old_sizes[i].wanted);
    return failed;
}

/* While it is paused no template takes another's place, but the one that is there may grow. */
static int scale_paused(struct rollout *rollout)
{
    struct set *only = NULL;
    size_t n_active = 0;

    for (size_t i = 0; i < rollout->n_sets; i++) {
        if (rollout->sets[i].size.wanted == 0 && &rollout->sets[i] != rollout->current)
            continue;
        n_active += rollout->sets[i].size.wanted != 0;
        if (only == NULL || rollout->sets[i].size.wanted != 0)
            only = &rollout->sets[i];
    }
    return only != NULL && n_active <= 1 ? resize(rollout, only, rollout->limits.replicas) : 0;
}

/* --- revisions --- */

/* A template that comes back (an undo) becomes the newest revision; what it was is remembered. */
static int renew_revision(struct rollout *rollout, int64_t revision)
{
    struct set *set = rollout->current;
    const char *past =
        kinf__doc_text(set->tree, "metadata", "annotations", ANNOTATION "revision-history", NULL);
    char key[KINF__KEY_SIZE], history[320] = "";

    if (set->revision != 0)
        snprintf(history, sizeof history,
                 ",\"" ANNOTATION "revision-history\":\"%.200s%s%" PRId64 "\"", past,
                 *past != '\0' ? "," : "", set->revision);
    set->revision = revision;
    kinf__object_key_of(set->tree, key);
    return kinf__workloads_merge(rollout->work->workloads, KINF__WORK_REPLICASET, key,
                                 kinf__json_format("{\"metadata\":{\"annotations\":{\"" ANNOTATION
                                                   "revision\":\"%" PRId64 "\"%s}}}",
                                                   revision, history));
}

/* The Deployment's own is written with its status: so it is no new generation. */
static int sync_revision(struct rollout *rollout)
{
    struct cJSON *annotations =
        kinf__doc_object(kinf__doc_get(rollout->work->tree, "metadata"), "annotations");
    int64_t revision = newest_revision(rollout) + 1;
    char text[24];

    if (annotations == NULL ||
        (rollout->current->revision < revision && renew_revision(rollout, revision) < 0))
        return KINF_ERR_NO_MEMORY;
    if (revision_of(rollout->work->tree) == rollout->current->revision)
        return 0;
    rollout->has_new_revision = true;
    snprintf(text, sizeof text, "%" PRId64, rollout->current->revision);
    return kinf__doc_set_text(annotations, ANNOTATION "revision", text);
}

/* Sets without pods, beyond those that are kept to go back to. */
static int drop_old_sets(struct rollout *rollout)
{
    int64_t n_surplus = (int64_t)rollout->n_sets - 1 -
                        kinf__doc_integer(rollout->work->spec, "revisionHistoryLimit", 10);
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < rollout->n_sets && n_surplus > 0; i++) {
        struct set *set = &rollout->sets[i];
        char key[KINF__KEY_SIZE];

        if (set == rollout->current || set->size.wanted != 0 || set->counts.active != 0)
            continue;
        kinf__object_key_of(set->tree, key);
        failed = kinf__workloads_delete(rollout->work->workloads, KINF__WORK_REPLICASET, key, -1);
        n_surplus--;
    }
    return failed;
}

/* --- status --- */

static int set_condition(struct rollout *rollout, const char *type, const char *status,
                         const char *reason, const char *message)
{
    const struct kinf__condition condition = { type, status, reason, message };

    return kinf__work_set_condition(rollout->work, &condition);
}

static int set_available(struct rollout *rollout, const struct kinf__pod_counts *sum)
{
    bool is_available =
        sum->available >= rollout->limits.replicas - rollout->limits.max_unavailable;
    const char *status = is_available ? "True" : "False";
    const struct cJSON *before = kinf__condition_find(rollout->work->tree, "Available");

    if (before != NULL && strcmp(kinf__doc_text(before, "status", NULL), status) == 0)
        return 0;
    return set_condition(rollout, "Available", status,
                         is_available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                         is_available ? "Deployment has minimum availability."
                                      : "Deployment does not have minimum availability.");
}

/* Whether the counts are nearer to the end than those that the status has. */
static bool has_progressed(const struct rollout *rollout, const struct kinf__pod_counts *sum)
{
    const struct cJSON *status = kinf__doc_get(rollout->work->tree, "status");
    int64_t updated = rollout->current->counts.active,
            old_updated = kinf__doc_integer(status, "updatedReplicas", 0),
            old_rest = kinf__doc_integer(status, "replicas", 0) - old_updated;

    return updated > old_updated || sum->active - updated < old_rest ||
           sum->ready > kinf__doc_integer(status, "readyReplicas", 0) ||
           sum->available > kinf__doc_integer(status, "availableReplicas", 0);
}

static bool is_over_deadline(struct rollout *rollout, const struct cJSON *condition)
{
    int64_t deadline_s = kinf__doc_integer(rollout->work->spec, "progressDeadlineSeconds", 600);
    int64_t now_s = kinf__clock_wall_ms() / 1000, since_s = now_s, left_s;

    (void)kinf__rfc3339_parse(kinf_str_from(kinf__doc_text(condition, "lastUpdateTime", NULL)),
                              &since_s);
    left_s = since_s + deadline_s - now_s;
    if (left_s < 0)
        return true;
    kinf__work_again(rollout->work, rollout->work->workloads->now_ms + (left_s + 1) * 1000);
    return false;
}

static int set_progressing(struct rollout *rollout, const struct kinf__pod_counts *sum)
{
    const struct cJSON *before = kinf__condition_find(rollout->work->tree, "Progressing");
    const char *reason = kinf__doc_text(before, "reason", NULL), *name = rollout->current->name;
    int64_t updated = rollout->current->counts.active, replicas = rollout->limits.replicas;
    bool is_complete = updated == replicas && sum->active == replicas && sum->available == replicas;
    char message[2 * KINF_NAME_MAX];

    if (rollout->is_created) {
        snprintf(message, sizeof message, "Created new replica set \"%s\"", name);
        return set_condition(rollout, "Progressing", "True", "NewReplicaSetCreated", message);
    }
    /* That pods fail later does not undo it. */
    if (strcmp(reason, "NewReplicaSetAvailable") == 0 && updated == sum->active)
        return 0;
    if (is_complete) {
        snprintf(message, sizeof message, "ReplicaSet \"%s\" has successfully progressed.", name);
        return set_condition(rollout, "Progressing", "True", "NewReplicaSetAvailable", message);
    }
    if (before == NULL || has_progressed(rollout, sum) ||
        strcmp(reason, "NewReplicaSetAvailable") == 0) {
        snprintf(message, sizeof message, "ReplicaSet \"%s\" is progressing.", name);
        return set_condition(rollout, "Progressing", "True", "ReplicaSetUpdated", message);
    }
    if (strcmp(reason, "ProgressDeadlineExceeded") == 0 || !is_over_deadline(rollout, before))
        return 0;
    snprintf(message, sizeof message, "ReplicaSet \"%s\" has timed out progressing.", name);
    return set_condition(rollout, "Progressing", "False", "ProgressDeadlineExceeded", message);
}

/* `is_paused` as the spec has it; `was_paused` as the condition says. */
static int set_paused(struct rollout *rollout, bool is_paused, bool *ret_done)
{
    const struct cJSON *before = kinf__condition_find(rollout->work->tree, "Progressing");
    bool was_paused = strcmp(kinf__doc_text(before, "reason", NULL), "DeploymentPaused") == 0;

    *ret_done = is_paused || was_paused;
    if (is_paused == was_paused)
        return 0;
    return is_paused ? set_condition(rollout, "Progressing", "Unknown", "DeploymentPaused",
                                     "Deployment is paused")
                     : set_condition(rollout, "Progressing", "Unknown", "DeploymentResumed",
                                     "Deployment is resumed");
}

static int set_counts(struct rollout *rollout, const struct kinf__pod_counts *sum)
{
    struct cJSON *status = kinf__doc_object(rollout->work->tree, "status");
    int64_t unavailable = sum_wanted(rollout) - sum->available;
    int64_t generation =
        kinf__doc_integer(kinf__doc_get(rollout->work->tree, "metadata"), "generation", 1);

    if (status == NULL || kinf__set_count(status, "observedGeneration", generation) < 0 ||
        kinf__set_count(status, "replicas", sum->active) < 0 ||
        kinf__set_count(status, "updatedReplicas",
                        rollout->current != NULL ? rollout->current->counts.active : 0) < 0 ||
        kinf__set_count(status, "readyReplicas", sum->ready) < 0 ||
        kinf__set_count(status, "availableReplicas", sum->available) < 0 ||
        kinf__set_count(status, "unavailableReplicas", unavailable > 0 ? unavailable : 0) < 0 ||
        kinf__set_count(status, "terminatingReplicas", sum->terminating) < 0)
        return KINF_ERR_NO_MEMORY;
    return 0;
}

static int write_status(struct rollout *rollout)
{
    struct kinf__pod_counts sum = sum_counts(rollout);
    bool is_done = false;

    if (set_available(rollout, &sum) < 0 ||
        set_paused(rollout, kinf__doc_is_true(rollout->work->spec, "paused"), &is_done) < 0 ||
        (!is_done && rollout->current != NULL && set_progressing(rollout, &sum) < 0) ||
        set_counts(rollout, &sum) < 0)
        return KINF_ERR_NO_MEMORY;
    return rollout->has_new_revision
               ? kinf__work_put_status(rollout->work, KINF__CONTROLLER_MANAGER)
               : kinf__work_put_changed_status(rollout->work);
}

/* --- all of it --- */

/* Returns 1 if there is nothing to say of it yet. */
static int advance(struct rollout *rollout)
{
    bool recreates =
        strcmp(kinf__doc_text(rollout->work->spec, "strategy", "type", NULL), "Recreate") == 0;
    int failed;

    if (kinf__is_being_deleted(rollout->work->tree))
        return 0;
    if (kinf__doc_is_true(rollout->work->spec, "paused"))
        return scale_paused(rollout);
    if (rollout->current == NULL && (failed = create_current(rollout)) != 0)
        return failed;
    failed = recreates ? recreate(rollout) : roll(rollout);
    if (failed == 0)
        failed = sync_revision(rollout);
    return failed == 0 ? drop_old_sets(rollout) : failed;
}

static int reconcile(struct rollout *rollout)
{
    int failed;

    rollout->limits = kinf__rollout_of(rollout->work->spec);
    if (read_sets(rollout) < 0 || find_current(rollout) < 0)
        return KINF_ERR_NO_MEMORY;
    failed = advance(rollout);
    if (failed != 0)
        return failed < 0 ? failed : 0;
    return write_status(rollout);
}

int kinf__reconcile_deployment(struct kinf__work *work)
{
    KINF__AUTO_FREE struct rollout *rollout = calloc(1, sizeof *rollout);
    int failed = rollout != NULL ? kinf__work_read(work) : KINF_ERR_NO_MEMORY;

    if (failed < 0)
        return failed;
    rollout->work = work;
    failed = reconcile(rollout);
    for (size_t i = 0; i < rollout->n_sets; i++)
        cJSON_Delete(rollout->sets[i].tree);
    return failed;
}
