/*
 * Jobs: pods until enough of them have succeeded. Neighbours: pods.c lets them succeed. A pod of a
 * Job never fails by itself; one that somebody marked Failed counts against backoffLimit.
 */
#include "workloads/workloads_priv.h"

#define COMPONENT "job-controller"

struct job {
    struct kinf__work *work;
    int64_t n_active, n_ready, n_terminating, n_succeeded, n_failed;
};

/* What was counted once stays counted: pods may be deleted. */
static void count(struct job *job)
{
    const struct kinf__owner *owner = kinf__work_owner(job->work);
    const struct cJSON *status = kinf__doc_get(job->work->tree, "status");
    int64_t succeeded = kinf__doc_integer(status, "succeeded", 0),
            failed = kinf__doc_integer(status, "failed", 0);

    KINF__POD_INDEX_FOR_EACH(pod, owner)
    {
        job->n_succeeded += pod->is_succeeded;
        job->n_failed += pod->is_finished && !pod->is_succeeded;
        job->n_terminating += pod->is_terminating && !pod->is_finished;
        job->n_active += kinf__member_is_active(pod);
        job->n_ready += kinf__member_is_active(pod) && pod->is_ready;
    }
    if (job->n_succeeded < succeeded)
        job->n_succeeded = succeeded;
    if (job->n_failed < failed)
        job->n_failed = failed;
}

static int create_pod(struct job *job)
{
    KINF__AUTO_DOC *pod = kinf__work_make_pod(job->work), *created = NULL;
    struct cJSON *labels = kinf__doc_find(pod, "metadata", "labels", NULL);
    const char *uid = kinf__doc_text(job->work->tree, "metadata", "uid", NULL),
               *name = kinf__doc_text(job->work->tree, "metadata", "name", NULL);
    int failed;

    if (pod == NULL || kinf__doc_set_text(labels, "batch.kubernetes.io/controller-uid", uid) < 0 ||
        kinf__doc_set_text(labels, "batch.kubernetes.io/job-name", name) < 0 ||
        kinf__doc_set_text(labels, "controller-uid", uid) < 0 ||
        kinf__doc_set_text(labels, "job-name", name) < 0)
        return KINF_ERR_NO_MEMORY;
    failed = kinf__workloads_create(job->work->workloads, KINF__WORK_POD, KINF__CONTROLLER_MANAGER,
                                    KINF__TAKE(pod), &created);
    if (failed < 0)
        return failed;
    kinf__work_record(job->work, COMPONENT, "SuccessfulCreate", "Created pod: %.253s",
                      kinf__doc_text(created, "metadata", "name", NULL));
    job->n_active++;
    return 0;
}

/* One that is active; NULL: none. */
static const struct kinf__member *any_active(const struct job *job)
{
    KINF__POD_INDEX_FOR_EACH(pod, kinf__work_owner(job->work))
    {
        if (kinf__member_is_active(pod))
            return pod;
    }
    return NULL;
}

static int scale(struct job *job, int64_t wanted)
{
    int failed = 0;

    if (wanted - job->n_active > KINF__WORK_BURST) {
        wanted = job->n_active + KINF__WORK_BURST;
        kinf__work_again(job->work, job->work->workloads->now_ms);
    }
    while (failed == 0 && job->n_active < wanted)
        failed = create_pod(job);
    while (failed == 0 && job->n_active > wanted) {
        const struct kinf__member *pod = any_active(job);

        if (pod == NULL)
            break;
        job->n_ready -= pod->is_ready;
        failed = kinf__workloads_delete(job->work->workloads, KINF__WORK_POD, pod->key, -1);
        job->n_active--;
        job->n_terminating++;
    }
    return failed;
}

static int set_condition(struct job *job, const char *type, const char *status, const char *reason,
                         const char *message)
{
    const struct kinf__condition condition = { type, status, reason, message };

    return kinf__work_set_condition(job->work, &condition);
}

static int complete(struct job *job)
{
    char time[KINF__RFC3339_SIZE];

    kinf__sim_time(time);
    kinf__work_record(job->work, COMPONENT, "Completed", "Job completed");
    if (set_condition(job, "SuccessCriteriaMet", "True", "CompletionsReached",
                      "Reached expected number of succeeded pods") < 0 ||
        set_condition(job, "Complete", "True", "CompletionsReached",
                      "Reached expected number of succeeded pods") < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_set_text(kinf__doc_get(job->work->tree, "status"), "completionTime", time);
}

static int fail_job(struct job *job)
{
    static const char message[] = "Job has reached the specified backoff limit";

    kinf__work_record(job->work, COMPONENT, "BackoffLimitExceeded", "%s", message);
    if (set_condition(job, "FailureTarget", "True", "BackoffLimitExceeded", message) < 0)
        return KINF_ERR_NO_MEMORY;
    return set_condition(job, "Failed", "True", "BackoffLimitExceeded", message);
}

static int suspend(struct job *job, bool is_suspended)
{
    if (is_suspended == kinf__condition_is(job->work->tree, "Suspended", "True"))
        return 0;
    return is_suspended ? set_condition(job, "Suspended", "True", "JobSuspended", "Job suspended")
                        : set_condition(job, "Suspended", "False", "JobResumed", "Job resumed");
}

/* Of a Job without completions one success is enough, and the others are not replaced. */
static int advance(struct job *job)
{
    int64_t parallelism = kinf__doc_integer(job->work->spec, "parallelism", 1),
            completions = kinf__doc_integer(job->work->spec, "completions", -1),
            backoff_limit = kinf__doc_integer(job->work->spec, "backoffLimit", 6);
    bool is_suspended = kinf__doc_is_true(job->work->spec, "suspend");
    int64_t rest = completions >= 0       ? completions - job->n_succeeded
                   : job->n_succeeded > 0 ? job->n_active
                                          : parallelism;
    int64_t wanted = is_suspended ? 0 : rest < parallelism ? rest : parallelism;
    int failed;

    if (job->n_failed > backoff_limit)
        wanted = 0;
    failed = scale(job, wanted > 0 ? wanted : 0);
    if (failed == 0)
        failed = suspend(job, is_suspended);
    if (failed < 0 || job->n_active + job->n_terminating != 0)
        return failed;
    if (job->n_failed > backoff_limit)
        return fail_job(job);
    return rest <= 0 && !is_suspended ? complete(job) : 0;
}

static int write_status(struct job *job)
{
    struct cJSON *status = kinf__doc_object(job->work->tree, "status");
    char time[KINF__RFC3339_SIZE];

    kinf__sim_time(time);
    if (status == NULL || kinf__set_count(status, "active", job->n_active) < 0 ||
        kinf__doc_set_integer(status, "ready", job->n_ready) < 0 ||
        kinf__doc_set_integer(status, "terminating", job->n_terminating) < 0 ||
        kinf__set_count(status, "succeeded", job->n_succeeded) < 0 ||
        kinf__set_count(status, "failed", job->n_failed) < 0 ||
        kinf__doc_object(status, "uncountedTerminatedPods") == NULL ||
        (kinf__doc_get(status, "startTime") == NULL &&
         !kinf__doc_is_true(job->work->spec, "suspend") &&
         kinf__doc_set_text(status, "startTime", time) < 0))
        return KINF_ERR_NO_MEMORY;
    return kinf__work_put_changed_status(job->work);
}

/* What is over goes after spec.ttlSecondsAfterFinished. */
static int expire(struct job *job)
{
    int64_t ttl_s = kinf__doc_integer(job->work->spec, "ttlSecondsAfterFinished", -1);
    const struct cJSON *condition = kinf__condition_find(
        job->work->tree,
        kinf__condition_is(job->work->tree, "Complete", "True") ? "Complete" : "Failed");
    int64_t over_s = 0, left_s;

    if (ttl_s < 0)
        return 0;
    (void)kinf__rfc3339_parse(kinf_str_from(kinf__doc_text(condition, "lastTransitionTime", NULL)),
                              &over_s);
    left_s = over_s + ttl_s - kinf__clock_wall_ms() / 1000;
    if (left_s <= 0)
        return kinf__workloads_delete(job->work->workloads, KINF__WORK_JOB, job->work->key, -1);
    kinf__work_again(job->work, kinf__clock_add_ms(job->work->workloads->now_ms, left_s * 1000));
    return 0;
}

int kinf__reconcile_job(struct kinf__work *work)
{
    struct job job = { .work = work };
    int failed = kinf__work_read(work);

    if (failed < 0)
        return failed;
    if (kinf__condition_is(work->tree, "Complete", "True") ||
        kinf__condition_is(work->tree, "Failed", "True"))
        return expire(&job);
    count(&job);
    if (!kinf__is_being_deleted(work->tree))
        failed = advance(&job);
    return failed == 0 ? write_status(&job) : failed;
}
