/*
 * What has a template of pods: sets of pods, jobs; and what goes with them, ControllerRevision and
 * HorizontalPodAutoscaler. Selectors find what the template makes, and do not change. Neighbours: kinds.c, kinds_pods.c.
 */
#include "apiserver/kinds_priv.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/conditions.h"
#include "document/node_index.h"

#define NO_MATCH "`selector` does not match template `labels`"

/* --- selectors --- */

static bool meets(const struct kinf__node_members *labels, const struct cJSON *requirement)
{
    const char *key = kinf__doc_text(requirement, "key", NULL);
    const char *operator= kinf__doc_text(requirement, "operator", NULL);
    const struct cJSON *label = kinf__node_members_get(labels, key);
    bool is_in = cJSON_IsString(label) &&
                 kinf__doc_has_text(kinf__doc_get(requirement, "values"), label->valuestring);

    if (strcmp(operator, "In") == 0)
        return is_in;
    if (strcmp(operator, "NotIn") == 0)
        return !is_in;
    return (label != NULL) == (strcmp(operator, "Exists") == 0);
}

static bool has_all(const struct kinf__node_members *labels, const struct cJSON *wanted)
{
    const struct cJSON *label;

    cJSON_ArrayForEach(label, wanted)
    {
        if (!kinf__doc_equal(label, kinf__node_members_get(labels, label->string)))
            return false;
    }
    return true;
}

/* Without memory they do; the write itself fails next. */
static bool has_labels(struct cJSON *labels, const struct cJSON *wanted)
{
    KINF__AUTO_NODE_MEMBERS members = { NULL, false, { KINF__HMAP_INIT } };

    return kinf__node_members_init(&members, labels, (size_t)cJSON_GetArraySize(wanted)) < 0 ||
           has_all(&members, wanted);
}

/* A selector that is not there matches nothing. */
static bool selects(const struct cJSON *selector, struct cJSON *labels)
{
    const struct cJSON *wanted = kinf__doc_get(selector, "matchLabels"),
                       *requirements = kinf__doc_get(selector, "matchExpressions"), *requirement;
    KINF__AUTO_NODE_MEMBERS members = { NULL, false, { KINF__HMAP_INIT } };
    int n_lookups = cJSON_GetArraySize(wanted) + cJSON_GetArraySize(requirements);

    if (!cJSON_IsObject(selector))
        return false;
    if (kinf__node_members_init(&members, labels, (size_t)n_lookups) < 0)
        return true;
    if (!has_all(&members, wanted))
        return false;
    cJSON_ArrayForEach(requirement, requirements)
    {
        if (!meets(&members, requirement))
            return false;
    }
    return true;
}

static bool is_empty_selector(const struct cJSON *selector)
{
    return cJSON_GetArraySize(kinf__doc_get(selector, "matchLabels")) == 0 &&
           cJSON_GetArraySize(kinf__doc_get(selector, "matchExpressions")) == 0;
}

/* --- templates --- */

static void check_template(const struct cJSON *template, const struct kinf__field *field,
                           struct kinf__invalid *invalid)
{
    kinf__metadata_validate_labels(kinf__doc_get(template, "metadata"), KINF__AT(field, "metadata"),
                                   invalid);
    kinf__pod_spec_check(kinf__doc_get(template, "spec"), KINF__AT(field, "spec"), invalid);
}

/* That the selector finds what the template makes, and a template whose pods are kept running. */
static void check_matching(const struct cJSON *spec, bool is_matching,
                           const struct kinf__field *parent, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, "template");
    const struct cJSON *template = kinf__doc_get(spec, "template");

    if (!is_matching)
        kinf__invalid_value(invalid, KINF__AT(&field, "metadata.labels"),
                            kinf__doc_find(template, "metadata", "labels", NULL), NO_MATCH);
    check_template(template, &field, invalid);
    kinf__kind_check_word(kinf__doc_get(template, "spec"), KINF__AT(&field, "spec"),
                          "restartPolicy", "\"Always\"", invalid);
}

static void check_selector(const struct cJSON *spec, const struct kinf__field *parent,
                           const char *empty, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, "selector");
    const struct cJSON *selector = kinf__doc_get(spec, "selector");

    if (!cJSON_IsObject(selector))
        kinf__invalid_required(invalid, &field, "");
    else if (is_empty_selector(selector))
        kinf__invalid_value(invalid, &field, selector, empty);
}

static void check_immutable(const struct cJSON *object, const struct cJSON *old, const char *name,
                            struct kinf__invalid *invalid)
{
    if (old != NULL)
        kinf__kind_check_same(kinf__doc_get(old, "spec"), kinf__doc_get(object, "spec"),
                              KINF__AT(NULL, "spec"), name, KINF__IMMUTABLE, invalid);
}

static bool is_matching(const struct cJSON *spec)
{
    return selects(kinf__doc_get(spec, "selector"),
                   kinf__doc_find(spec, "template", "metadata", "labels", NULL));
}

static void check_set(const struct cJSON *object, const struct cJSON *old, const char *empty,
                      struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct cJSON *spec = kinf__doc_get(object, "spec");

    kinf__kind_check_not_negative(spec, &field, "replicas", invalid);
    check_selector(spec, &field, empty, invalid);
    check_matching(spec, is_matching(spec), &field, invalid);
    check_immutable(object, old, "selector", invalid);
}

/* Of all its pods some are new, some are ready, some are available. */
static void check_deployment_status(const struct cJSON *status, struct kinf__invalid *invalid)
{
    static const char *const parts[] = { "updatedReplicas", "readyReplicas", "availableReplicas" };
    const struct kinf__field field = kinf__field(NULL, "status");
    int64_t replicas = kinf__doc_integer(status, "replicas", 0),
            available = kinf__doc_integer(status, "availableReplicas", 0);

    kinf__kind_check_not_negative(status, &field, "replicas", invalid);
    for (size_t i = 0; i < KINF__ARRAY_LEN(parts); i++)
        kinf__kind_check_not_negative(status, &field, parts[i], invalid);
    for (size_t i = 0; i < KINF__ARRAY_LEN(parts); i++) {
        int64_t n = kinf__doc_integer(status, parts[i], 0);

        if (n > replicas)
            kinf__invalid_integer(invalid, KINF__AT(&field, parts[i]), n,
                                  "cannot be greater than status.replicas");
    }
    if (available > kinf__doc_integer(status, "readyReplicas", 0))
        kinf__invalid_integer(invalid, KINF__AT(&field, "availableReplicas"), available,
                              "cannot be greater than readyReplicas");
}

void kinf__deployment_check(const struct cJSON *object, const struct cJSON *old,
                            struct kinf__invalid *invalid)
{
    check_set(object, old, "empty selector is invalid for deployment", invalid);
    if (strcmp(kinf__doc_text(object, "spec", "strategy", "type", NULL), "Recreate") == 0 &&
        kinf__doc_find(object, "spec", "strategy", "rollingUpdate", NULL) != NULL)
        kinf__invalid_forbidden(invalid, KINF__AT(NULL, "spec.strategy.rollingUpdate"),
                                "may not be specified when strategy `type` is 'Recreate'");
    check_deployment_status(kinf__doc_get(object, "status"), invalid);
}

void kinf__replica_set_check(const struct cJSON *object, const struct cJSON *old,
                             struct kinf__invalid *invalid)
{
    check_set(object, old, "empty selector is invalid for deployment", invalid);
}

void kinf__stateful_set_check(const struct cJSON *object, const struct cJSON *old,
                              struct kinf__invalid *invalid)
{
    check_set(object, old, "empty selector is invalid for statefulset", invalid);
}

void kinf__daemon_set_check(const struct cJSON *object, const struct cJSON *old,
                            struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct cJSON *spec = kinf__doc_get(object, "spec");
    const struct cJSON *selector = kinf__doc_get(spec, "selector");

    if (cJSON_IsObject(selector) && is_empty_selector(selector))
        kinf__invalid_value(invalid, KINF__AT(&field, "selector"), selector,
                            "empty selector is invalid for daemonset");
    check_matching(spec, is_matching(spec), &field, invalid);
    check_immutable(object, old, "selector", invalid);
}

void kinf__pod_template_check(const struct cJSON *object, const struct cJSON *old,
                              struct kinf__invalid *invalid)
{
    (void)old;
    check_template(kinf__doc_get(object, "template"), KINF__AT(NULL, "template"), invalid);
}

void kinf__replication_controller_check(const struct cJSON *object, const struct cJSON *old,
                                        struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct cJSON *spec = kinf__doc_get(object, "spec");
    const struct cJSON *selector = kinf__doc_get(spec, "selector");

    (void)old;
    kinf__kind_check_not_negative(spec, &field, "replicas", invalid);
    if (cJSON_GetArraySize(selector) == 0)
        kinf__invalid_required(invalid, KINF__AT(&field, "selector"), "");
    check_matching(
        spec, has_labels(kinf__doc_find(spec, "template", "metadata", "labels", NULL), selector),
        &field, invalid);
}

/* --- daemon sets --- */

#define TEMPLATE_GENERATION "deprecated.daemonset.template.generation"

static int set_template_generation(struct cJSON *object, int64_t number)
{
    struct cJSON *annotations = kinf__doc_object(kinf__doc_get(object, "metadata"), "annotations");
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)number);
    return annotations != NULL ? kinf__doc_set_text(annotations, TEMPLATE_GENERATION, text)
                               : KINF_ERR_NO_MEMORY;
}

int kinf__daemon_set_create(const struct kinf__write *write)
{
    return set_template_generation(write->object, 1);
}

int kinf__daemon_set_update(const struct kinf__write *write)
{
    const char *before =
        kinf__doc_text(write->old, "metadata", "annotations", TEMPLATE_GENERATION, NULL);
    bool is_changed = !kinf__doc_equal(kinf__doc_find(write->old, "spec", "template", NULL),
                                       kinf__doc_find(write->object, "spec", "template", NULL));

    return set_template_generation(write->object, strtoll(before, NULL, 10) + is_changed);
}

/* --- jobs --- */

static void check_job_template(const struct cJSON *template, const struct kinf__field *field,
                               struct kinf__invalid *invalid)
{
    const char *word = kinf__doc_text(template, "spec", "restartPolicy", NULL);

    check_template(template, field, invalid);
    if (*word == '\0' || strcmp(word, "Always") == 0)
        kinf__invalid_required(invalid, KINF__AT(field, "spec.restartPolicy"),
                               "valid values: \"OnFailure\", \"Never\"");
}

static void check_job_selector(const struct cJSON *object, const struct kinf__field *parent,
                               struct kinf__invalid *invalid)
{
    const struct cJSON *spec = kinf__doc_get(object, "spec");
    const struct cJSON *selector = kinf__doc_get(spec, "selector");

    if (!kinf__doc_is_true(spec, "manualSelector") &&
        (cJSON_GetArraySize(kinf__doc_get(selector, "matchLabels")) != 1 ||
         kinf__doc_get(selector, "matchExpressions") != NULL))
        kinf__invalid_value(invalid, KINF__AT(parent, "selector"), selector,
                            "`selector` not auto-generated");
    if (!is_matching(spec))
        kinf__invalid_value(invalid, KINF__AT(parent, "template.metadata.labels"),
                            kinf__doc_find(spec, "template", "metadata", "labels", NULL), NO_MATCH);
}

/* Where its pods may run, and what they ask for. */
static void forget_directives(struct cJSON *spec)
{
    static const char *const directives[] = { "nodeSelector", "tolerations", "schedulingGates" };
    struct cJSON *affinity = kinf__doc_get(spec, "affinity"), *container;

    for (size_t i = 0; i < KINF__ARRAY_LEN(directives); i++)
        kinf__doc_remove(spec, directives[i]);
    kinf__doc_remove(affinity, "nodeAffinity");
    if (cJSON_GetArraySize(affinity) == 0)
        kinf__doc_remove(spec, "affinity");
    cJSON_ArrayForEach(container, kinf__doc_get(spec, "containers"))
        kinf__doc_remove(container, "resources");
    cJSON_ArrayForEach(container, kinf__doc_get(spec, "initContainers"))
        kinf__doc_remove(container, "resources");
}

/* While none of its pods runs, and none is wanted. */
static bool has_open_template(const struct cJSON *job)
{
    return cJSON_IsTrue(kinf__doc_find(job, "spec", "suspend", NULL)) &&
           kinf__doc_integer(kinf__doc_get(job, "status"), "active", 0) == 0 &&
           (kinf__doc_find(job, "status", "startTime", NULL) == NULL ||
            kinf__condition_is(job, "Suspended", "True"));
}

static void check_job_changes(const struct cJSON *object, const struct cJSON *old,
                              struct kinf__invalid *invalid)
{
    const struct kinf__field template_field = kinf__field(NULL, "spec.template");
    const struct cJSON *spec = kinf__doc_find(object, "spec", "template", "spec", NULL);

    if (!has_open_template(old))
        check_immutable(object, old, "template", invalid);
    else if (!kinf__kind_is_same_but(kinf__doc_find(old, "spec", "template", "spec", NULL), spec,
                                     forget_directives))
        kinf__invalid_value(invalid, KINF__AT(&template_field, "spec"), spec, KINF__IMMUTABLE);
}

/* Those of an indexed one change along with its parallelism. */
static void check_completions(const struct cJSON *spec, const struct cJSON *old,
                              struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct cJSON *completions = kinf__doc_get(spec, "completions");

    if (strcmp(kinf__doc_text(spec, "completionMode", NULL), "Indexed") != 0)
        kinf__kind_check_same(old, spec, &field, "completions", KINF__IMMUTABLE, invalid);
    else if (completions != NULL &&
             !kinf__doc_equal(completions, kinf__doc_get(old, "completions")) &&
             !kinf__doc_equal(completions, kinf__doc_get(spec, "parallelism")))
        kinf__invalid_value(invalid, KINF__AT(&field, "completions"), completions,
                            "can only be modified in tandem with spec.parallelism");
}

void kinf__job_check(const struct cJSON *object, const struct cJSON *old,
                     struct kinf__invalid *invalid)
{
    static const char *const numbers[] = { "parallelism", "completions", "activeDeadlineSeconds",
                                           "backoffLimit", "ttlSecondsAfterFinished" };
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct cJSON *spec = kinf__doc_get(object, "spec");

    for (size_t i = 0; i < KINF__ARRAY_LEN(numbers); i++)
        kinf__kind_check_not_negative(spec, &field, numbers[i], invalid);
    check_job_selector(object, &field, invalid);
    check_job_template(kinf__doc_get(spec, "template"), KINF__AT(&field, "template"), invalid);
    if (old == NULL)
        return;
    check_completions(spec, kinf__doc_get(old, "spec"), invalid);
    check_job_changes(object, old, invalid);
    kinf__job_status_check(object, old, invalid);
}

/* Five words, or a name for such. */
static void check_schedule(const char *schedule, const struct kinf__field *field,
                           struct kinf__invalid *invalid)
{
    char why[KINF__NAME_FAULT_SIZE];
    size_t n_words = 0;

    if (*schedule == '\0') {
        kinf__invalid_required(invalid, field, "");
        return;
    }
    if (*schedule == '@' || strncmp(schedule, "TZ=", 3) == 0)
        return;
    for (const char *at = schedule + strspn(schedule, " "); *at != '\0'; n_words++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    snprintf(why, sizeof why, "expected exactly 5 fields, found %zu: [%.253s]", n_words, schedule);
    if (n_words != 5)
        kinf__invalid_text(invalid, field, schedule, why);
}

void kinf__cron_job_check(const struct cJSON *object, const struct cJSON *old,
                          struct kinf__invalid *invalid)
{
    const struct cJSON *spec = kinf__doc_get(object, "spec");

    (void)old;
    check_job_template(kinf__doc_find(spec, "jobTemplate", "spec", "template", NULL),
                       KINF__AT(NULL, "spec.jobTemplate.spec.template"), invalid);
    check_schedule(kinf__doc_text(spec, "schedule", NULL), KINF__AT(NULL, "spec.schedule"),
                   invalid);
}

/* --- revisions, autoscalers --- */

void kinf__revision_check(const struct cJSON *object, const struct cJSON *old,
                          struct kinf__invalid *invalid)
{
    if (kinf__doc_get(object, "data") == NULL)
        kinf__invalid_required(invalid, KINF__AT(NULL, "data"), "data is mandatory");
    else if (old != NULL)
        kinf__kind_check_same(old, object, NULL, "data", KINF__IMMUTABLE, invalid);
}

void kinf__autoscaler_check(const struct cJSON *object, const struct cJSON *old,
                            struct kinf__invalid *invalid)
{
    const struct kinf__field target_field = kinf__field(NULL, "spec.scaleTargetRef");
    const struct kinf__field max_field = kinf__field(NULL, "spec.maxReplicas");
    const struct cJSON *spec = kinf__doc_get(object, "spec");
    const struct cJSON *target = kinf__doc_get(spec, "scaleTargetRef");
    int64_t max = kinf__doc_integer(spec, "maxReplicas", 0);

    (void)old;
    if (max < kinf__doc_integer(spec, "minReplicas", 1))
        kinf__invalid_integer(invalid, &max_field, max,
                              "must be greater than or equal to `minReplicas`");
    kinf__kind_require(target, &target_field, "kind", invalid);
    kinf__kind_require(target, &target_field, "name", invalid);
    if (kinf__doc_get(spec, "maxReplicas") == NULL)
        kinf__invalid_required(invalid, &max_field, "");
}
