/*
 * What a Job's status may say: counts, indexes, the times of its end, and conditions, of which some
 * exclude each other and others stay. Rules of what changes leave alone what was wrong before.
 * Neighbours: kinds_workloads.c has the Job itself.
 */
#include "apiserver/kinds_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/conditions.h"

struct job {
    const struct cJSON *object, *old; /* the Job, as it is to be and as it was */
    const struct cJSON *spec, *status, *old_status;
    struct kinf__invalid *invalid;
};

static const struct kinf__field status_field = { .name = "status" };

static bool is_true(const struct cJSON *job, const char *type)
{
    return kinf__condition_is(job, type, "True");
}

static bool is_finished(const struct cJSON *job)
{
    return is_true(job, "Complete") || is_true(job, "Failed");
}

static bool has_turned(const struct job *job, const char *type)
{
    return is_true(job->object, type) != is_true(job->old, type);
}

static bool has_changed(const struct job *job, const char *name)
{
    return !kinf__doc_equal(kinf__doc_get(job->status, name), kinf__doc_get(job->old_status, name));
}

static void fault_conditions(const struct job *job, const char *why)
{
    char message[KINF__NAME_FAULT_SIZE];

    snprintf(message, sizeof message, "Invalid value: %s", why);
    kinf__invalid_add(job->invalid, "FieldValueInvalid", "status.conditions", message);
}

static void fault_value(const struct job *job, const char *name, const char *why)
{
    kinf__invalid_value(job->invalid, KINF__AT(&status_field, name),
                        kinf__doc_get(job->status, name), why);
}

/* --- counts --- */

/* Pods that have ended and are not counted yet: each once. */
static void check_uncounted(const struct job *job)
{
    static const char *const names[] = { "succeeded", "failed" };
    const struct kinf__field field = kinf__field(&status_field, "uncountedTerminatedPods");
    KINF__AUTO_NODE_INDEX seen = { KINF__HMAP_INIT };
    struct cJSON *uid;

    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        const struct kinf__field list = kinf__field(&field, names[i]);
        size_t k = 0;

        cJSON_ArrayForEach(uid,
                           kinf__doc_find(job->status, "uncountedTerminatedPods", names[i], NULL))
        {
            const struct kinf__field item = kinf__field_index(&list, k++);
            const char *text = cJSON_IsString(uid) ? uid->valuestring : "";

            if (*text == '\0')
                kinf__invalid_text(job->invalid, &item, text, "must not be empty");
            else if (kinf__node_index_find(&seen, text) != NULL)
                kinf__invalid_duplicate(job->invalid, &item, text);
            /* Without memory the write itself fails next. */
            else if (kinf__node_index_add(&seen, text, uid, 0) < 0)
                return;
        }
    }
}

static void check_not_less(const struct job *job, const char *name, const char *why)
{
    int64_t n = kinf__doc_integer(job->status, name, 0);

    if (n < kinf__doc_integer(job->old_status, name, 0))
        kinf__invalid_integer(job->invalid, KINF__AT(&status_field, name), n, why);
}

static void check_ready(const struct job *job)
{
    int64_t ready = kinf__doc_integer(job->status, "ready", 0);

    if (kinf__doc_get(job->status, "ready") != NULL &&
        (has_changed(job, "ready") || has_changed(job, "active")) &&
        ready > kinf__doc_integer(job->status, "active", 0))
        kinf__invalid_integer(job->invalid, KINF__AT(&status_field, "ready"), ready,
                              "cannot set more ready pods than active");
}

/* --- indexes --- */

#define WORD_MAX 64 /* of a text that is wrong, in a message */

/* A number of `len` digits. */
static bool read_index(const char *text, size_t len, int64_t n_completions, int64_t *ret_index,
                       char why[KINF__NAME_FAULT_SIZE])
{
    int word_len = (int)(len < WORD_MAX ? len : WORD_MAX);
    bool is_number = len != 0 && strspn(text, "0123456789") >= len;
    int64_t index = is_number ? strtoll(text, NULL, 10) : 0;

    if (!is_number)
        snprintf(why, KINF__NAME_FAULT_SIZE, "cannot convert string to integer for index: \"%.*s\"",
                 word_len, text);
    else if (index >= n_completions)
        snprintf(why, KINF__NAME_FAULT_SIZE, "too large index: \"%.*s\"", word_len, text);
    *ret_index = index;
    return is_number && index < n_completions;
}

static bool check_order(int64_t before, int64_t index, char why[KINF__NAME_FAULT_SIZE])
{
    if (index <= before)
        snprintf(why, KINF__NAME_FAULT_SIZE, "non-increasing order, previous: %lld, current: %lld",
                 (long long)before, (long long)index);
    return index > before;
}

/* "3" or "3-5", above `*last`, which becomes its end. */
static bool check_interval(const char *text, size_t len, int64_t n_completions, int64_t *last,
                           char why[KINF__NAME_FAULT_SIZE])
{
    const char *dash = memchr(text, '-', len);
    size_t first_len = dash != NULL ? (size_t)(dash - text) : len;
    size_t rest_len = dash != NULL ? len - first_len - 1 : 0;
    int64_t index, end;

    if (dash != NULL && memchr(dash + 1, '-', rest_len) != NULL) {
        snprintf(why, KINF__NAME_FAULT_SIZE,
                 "the fragment \"%.*s\" violates the requirement that an index interval can have "
                 "at most two parts separated by '-'",
                 (int)(len < WORD_MAX ? len : WORD_MAX), text);
        return false;
    }
    if (!read_index(text, first_len, n_completions, &index, why))
        return false;
    end = index;
    if (dash != NULL && (!read_index(dash + 1, rest_len, n_completions, &end, why) ||
                         !check_order(index, end, why)))
        return false;
    if (!check_order(*last, index, why))
        return false;
    *last = end;
    return true;
}

/* "0,2-4" */
static void find_index_fault(const char *text, int64_t n_completions,
                             char why[KINF__NAME_FAULT_SIZE])
{
    int64_t last = -1;
    size_t len;

    why[0] = '\0';
    if (*text == '\0')
        return;
    do {
        len = strcspn(text, ",");
        if (!check_interval(text, len, n_completions, &last, why))
            return;
        text += len;
    } while (*text++ == ',');
}

static void check_index_list(const struct job *job, const char *name)
{
    const char *text = kinf__doc_text(job->status, name, NULL);
    char fault[KINF__NAME_FAULT_SIZE], why[2 * KINF__NAME_FAULT_SIZE];

    if (kinf__doc_get(job->spec, "completions") == NULL)
        return;
    find_index_fault(text, kinf__doc_integer(job->spec, "completions", 0), fault);
    snprintf(why, sizeof why, "error parsing %s: %s", name, fault);
    if (fault[0] != '\0')
        kinf__invalid_text(job->invalid, KINF__AT(&status_field, name), text, why);
}

static bool is_indexed(const struct job *job)
{
    return strcmp(kinf__doc_text(job->spec, "completionMode", NULL), "Indexed") == 0;
}

static void check_indexes(const struct job *job)
{
    bool has_limit = kinf__doc_get(job->spec, "backoffLimitPerIndex") != NULL;
    bool is_completed = has_changed(job, "completedIndexes");
    bool is_failed = has_changed(job, "failedIndexes");

    if (is_completed)
        check_index_list(job, "completedIndexes");
    if (is_failed && has_limit)
        check_index_list(job, "failedIndexes");
    if (is_completed && !is_indexed(job) &&
        *kinf__doc_text(job->status, "completedIndexes", NULL) != '\0')
        fault_value(job, "completedIndexes",
                    "cannot set non-empty completedIndexes when non-indexed completion mode");
    if (is_failed && !has_limit && kinf__doc_get(job->status, "failedIndexes") != NULL)
        fault_value(job, "failedIndexes",
                    "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
}

/* --- the end --- */

static void check_completion_time(const struct job *job)
{
    const char *start = kinf__doc_text(job->status, "startTime", NULL);
    const char *end = kinf__doc_text(job->status, "completionTime", NULL);
    bool is_complete = is_true(job->object, "Complete");
    bool is_new = has_changed(job, "completionTime");

    if ((is_new || has_turned(job, "Complete")) && *end != '\0' && !is_complete)
        fault_value(job, "completionTime",
                    "cannot set completionTime when there is no Complete=True condition");
    if ((is_new || has_turned(job, "Complete")) && *end == '\0' && is_complete)
        kinf__invalid_required(job->invalid, KINF__AT(&status_field, "completionTime"),
                               "completionTime is required for Complete jobs");
    if ((is_new || has_changed(job, "startTime")) && *start != '\0' && *end != '\0' &&
        strcmp(end, start) < 0)
        fault_value(job, "completionTime", "must be equal to or after `startTime`");
}

/* As messages show them. */
static void fault_uncounted(const struct job *job, const struct cJSON *pods)
{
    KINF__AUTO_DOC *shown = cJSON_CreateObject();
    const struct cJSON *succeeded = kinf__doc_get(pods, "succeeded"),
                       *failed = kinf__doc_get(pods, "failed");

    if (kinf__doc_set(shown, "Succeeded",
                      succeeded != NULL ? kinf__doc_dup(succeeded) : cJSON_CreateNull()) == 0 &&
        kinf__doc_set(shown, "Failed",
                      failed != NULL ? kinf__doc_dup(failed) : cJSON_CreateNull()) == 0)
        kinf__invalid_value(job->invalid, KINF__AT(&status_field, "uncountedTerminatedPods"), shown,
                            "must be empty for finished job");
}

/* Whether this write makes it finished, or changes what a finished one says there. */
static bool ends_with(const struct job *job, const char *name)
{
    return is_finished(job->object) && (!is_finished(job->old) || has_changed(job, name));
}

static void check_none_left(const struct job *job, const char *name, const char *why)
{
    int64_t n = kinf__doc_integer(job->status, name, 0);

    if (ends_with(job, name) && n > 0)
        kinf__invalid_integer(job->invalid, KINF__AT(&status_field, name), n, why);
}

/* One that wants nothing and is suspended ends without a start. */
static bool needs_no_start(const struct job *job)
{
    return kinf__doc_is_true(job->spec, "suspend") &&
           kinf__doc_integer(job->spec, "completions", -1) == 0;
}

static void check_finished(const struct job *job)
{
    const struct cJSON *uncounted = kinf__doc_get(job->status, "uncountedTerminatedPods");

    check_none_left(job, "active", "active>0 is invalid for finished job");
    if (ends_with(job, "startTime") && !needs_no_start(job) &&
        kinf__doc_get(job->status, "startTime") == NULL)
        kinf__invalid_required(job->invalid, KINF__AT(&status_field, "startTime"),
                               "startTime is required for finished job");
    if (ends_with(job, "uncountedTerminatedPods") &&
        cJSON_GetArraySize(kinf__doc_get(uncounted, "succeeded")) +
                cJSON_GetArraySize(kinf__doc_get(uncounted, "failed")) !=
            0)
        fault_uncounted(job, uncounted);
}

/* --- conditions --- */

static void check_pair(const struct job *job, const char *one, const char *other, const char *why)
{
    if (is_true(job->object, one) && is_true(job->object, other))
        fault_conditions(job, why);
}

static void check_needed(const struct job *job, const char *type, const char *needed,
                         const char *why)
{
    if (is_true(job->object, type) && !is_true(job->object, needed))
        fault_conditions(job, why);
}

static void check_completeness(const struct job *job)
{
    if (has_turned(job, "Complete") || has_turned(job, "Failed"))
        check_pair(job, "Complete", "Failed",
                   "cannot set Complete=True and Failed=true conditions");
    if (has_turned(job, "Complete") || has_turned(job, "FailureTarget"))
        check_pair(job, "Complete", "FailureTarget",
                   "cannot set Complete=True and FailureTarget=true conditions");
}

/* What announces the end comes with it. */
static void check_announced(const struct job *job)
{
    if (has_turned(job, "Failed") || has_changed(job, "failedIndexes"))
        check_needed(job, "Failed", "FailureTarget",
                     "cannot set Failed=True condition without the FailureTarget=true condition");
    if (has_turned(job, "Complete") || has_turned(job, "SuccessCriteriaMet"))
        check_needed(job, "Complete", "SuccessCriteriaMet",
                     "cannot set Complete=True condition without the SuccessCriteriaMet=true "
                     "condition");
}

static void check_criteria(const struct job *job)
{
    check_pair(job, "SuccessCriteriaMet", "Failed",
               "cannot set SuccessCriteriaMet=True and Failed=true conditions");
    check_pair(job, "SuccessCriteriaMet", "FailureTarget",
               "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    if (kinf__doc_get(job->spec, "successPolicy") != NULL)
        check_needed(job, "Complete", "SuccessCriteriaMet",
                     "cannot set Complete=True for Job with SuccessPolicy unless "
                     "SuccessCriteriaMet=True");
}

/* --- what was said before --- */

static void check_terminal(const struct job *job)
{
    static const char *const terminal[] = { "Failed", "Complete", "FailureTarget" };
    char why[64];

    for (size_t i = 0; i < KINF__ARRAY_LEN(terminal); i++) {
        if (!is_true(job->old, terminal[i]) || is_true(job->object, terminal[i]))
            continue;
        snprintf(why, sizeof why, "cannot disable the terminal %s=True condition", terminal[i]);
        fault_conditions(job, why);
    }
}

static bool is_resumed(const struct job *job)
{
    return is_true(job->old, "Suspended") && kinf__condition_is(job->object, "Suspended", "False");
}

static void check_times(const struct job *job)
{
    if (kinf__doc_get(job->status, "completionTime") != NULL &&
        kinf__doc_get(job->old_status, "completionTime") != NULL &&
        has_changed(job, "completionTime"))
        fault_value(job, "completionTime", KINF__IMMUTABLE);
    if (kinf__doc_get(job->old_status, "startTime") != NULL && has_changed(job, "startTime") &&
        !is_resumed(job) && !kinf__doc_is_true(job->spec, "suspend"))
        fault_value(job, "startTime", KINF__IMMUTABLE " for unsuspended job once set");
}

static void check_met(const struct job *job)
{
    bool is_met = is_true(job->object, "SuccessCriteriaMet"),
         was_met = is_true(job->old, "SuccessCriteriaMet");

    if (was_met && !is_met)
        fault_conditions(job, "cannot disable the SuccessCriteriaMet=True condition");
    if (is_true(job->old, "Complete") && !was_met && is_met)
        fault_conditions(job, "cannot set SuccessCriteriaMet=True for Job already has "
                              "Complete=true conditions");
}

/* The completions of an indexed Job may become fewer, along with its parallelism. */
static void check_succeeded(const struct job *job)
{
    if (!is_indexed(job) || !kinf__doc_equal(kinf__doc_get(job->spec, "completions"),
                                             kinf__doc_get(job->spec, "parallelism")))
        check_not_less(job, "succeeded", "cannot decrease the succeeded counter");
}

void kinf__job_status_check(const struct cJSON *object, const struct cJSON *old,
                            struct kinf__invalid *invalid)
{
    static const char *const counts[] = { "active", "succeeded", "failed", "ready", "terminating" };
    const struct job job = { object,
                             old,
                             kinf__doc_get(object, "spec"),
                             kinf__doc_get(object, "status"),
                             kinf__doc_get(old, "status"),
                             invalid };

    for (size_t i = 0; i < KINF__ARRAY_LEN(counts); i++)
        kinf__kind_check_not_negative(job.status, &status_field, counts[i], invalid);
    check_uncounted(&job);
    check_completeness(&job);
    check_completion_time(&job);
    check_announced(&job);
    check_finished(&job);
    check_indexes(&job);
    check_none_left(&job, "terminating", "terminating>0 is invalid for finished job");
    check_ready(&job);
    check_criteria(&job);
    check_terminal(&job);
    check_not_less(&job, "failed", "cannot decrease the failed counter");
    check_succeeded(&job);
    check_times(&job);
    check_met(&job);
}
