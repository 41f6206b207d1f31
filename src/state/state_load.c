/*
 * From sections to objects. Neighbours: sealed.c reads sections, state_object.c makes the objects,
 * state_file.c has checked the head.
 *
 * Whoever loads reads the sections and hands the objects over, in order; a helper is started when
 * there is a second one, and both make objects of the oldest section that nobody works on.
 * Invariant: the helper has ended when kinf__state_load() returns.
 */
#include "state/state_load.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/thread.h"

/* Sections that were read and not handed over: what there is ahead at most, some megabytes. */
#define N_JOBS          4
#define N_OBJECTS_FIRST 64

/* --- sections --- */

enum job_state { JOB_READ, JOB_TAKEN, JOB_MADE };

/* A section and what was made of it. */
struct job {
    enum job_state state; /* guarded; the rest is whose who has taken it, else the loader's */
    struct kinf__sealed_section section;
    const struct kinf_object **objects;
    size_t n_objects;
    size_t size;
    int code;
    struct kinf_error err;
};

struct loading {
    /* constant */
    struct kinf__sealed_reader *reader;
    const struct kinf_type *type;
    const struct kinf__state_bases *bases;
    const struct kinf__stop *stop;

    /* the loader's */
    bool is_at_end; /* of the file */
    bool has_helper;
    bool is_alone; /* none could be started */
    pthread_t helper;
    uint64_t n_objects;

    struct kinf__mutex lock;
    struct kinf__cond changed;
    /* guarded by the lock */
    struct job jobs[N_JOBS]; /* a ring */
    size_t first;
    size_t n_jobs;
    bool is_over; /* the helper is to end */
};

static int make_room(struct job *job)
{
    size_t size = job->size == 0 ? N_OBJECTS_FIRST : 2 * job->size;
    const struct kinf_object **objects;

    if (job->n_objects < job->size)
        return 0;
    objects = realloc(job->objects, size * sizeof *objects);
    if (objects == NULL)
        return KINF_ERR_NO_MEMORY;
    job->objects = objects;
    job->size = size;
    return 0;
}

static int make_objects(const struct loading *loading, struct job *job)
{
    struct kinf__touched touched = { 0 };
    struct kinf_str rest;
    int failed = kinf__sealed_inflate(&job->section, &job->err);

    rest = kinf__buffer_str(&job->section.text);
    while (failed == 0 && rest.len != 0) {
        if (kinf__stop_is_set(loading->stop))
            return kinf__error_set(&job->err, KINF_ERR_STOPPED, "there was no time for it");
        if (make_room(job) < 0)
            return kinf__error_no_memory(&job->err);
        failed = kinf__state_take_object(&rest, loading->type, loading->bases,
                                         &job->objects[job->n_objects], &job->err);
        if (failed == 0)
            kinf__memory_touch_ahead(&touched, kinf_object_size(job->objects[job->n_objects++]));
    }
    return failed;
}

static struct job *nth_job(struct loading *loading, size_t i)
{
    return &loading->jobs[(loading->first + i) % N_JOBS];
}

/* Works on the oldest section that nobody works on; returns false if there is none. */
static bool work_locked(struct loading *loading) KINF__REQUIRES(loading->lock)
{
    for (size_t i = 0; i < loading->n_jobs; i++) {
        struct job *job = nth_job(loading, i);

        if (job->state != JOB_READ)
            continue;
        job->state = JOB_TAKEN;
        kinf__mutex_unlock(&loading->lock);
        job->code = make_objects(loading, job);
        kinf__mutex_lock(&loading->lock);
        job->state = JOB_MADE;
        return true;
    }
    return false;
}

static void *help(void *ctx)
{
    struct loading *loading = ctx;

    kinf__mutex_lock(&loading->lock);
    while (!loading->is_over) {
        if (work_locked(loading))
            kinf__cond_broadcast(&loading->changed);
        else
            kinf__cond_wait_until(&loading->changed, &loading->lock, KINF__NEVER_MS);
    }
    kinf__mutex_unlock(&loading->lock);
    return NULL;
}

/* --- the one that loads --- */

/* Until the ring is full or the file at its end. The helper does not look behind the last job. */
static int read_ahead(struct loading *loading, struct kinf_error *err)
{
    while (loading->n_jobs < N_JOBS && !loading->is_at_end) {
        struct job *job = nth_job(loading, loading->n_jobs);
        int failed = kinf__sealed_next(loading->reader, &job->section, err);

        if (failed < 0)
            return failed;
        loading->is_at_end = job->section.text_len == 0;
        if (loading->is_at_end)
            break;
        kinf__mutex_lock(&loading->lock);
        job->state = JOB_READ;
        loading->n_jobs++;
        kinf__cond_broadcast(&loading->changed);
        kinf__mutex_unlock(&loading->lock);
    }
    return 0;
}

static void get_help(struct loading *loading)
{
    if (loading->has_helper || loading->is_alone || loading->n_jobs < 2)
        return;
    loading->has_helper =
        kinf__thread_start(&loading->helper, "kinf-loader", help, loading, NULL) == 0;
    loading->is_alone = !loading->has_helper;
}

/* Until the first section is done: works on others meanwhile. */
static struct job *wait_for_first(struct loading *loading)
{
    struct job *job = nth_job(loading, 0);

    kinf__mutex_lock(&loading->lock);
    while (job->state != JOB_MADE) {
        if (!work_locked(loading))
            kinf__cond_wait_until(&loading->changed, &loading->lock, KINF__NEVER_MS);
    }
    kinf__mutex_unlock(&loading->lock);
    return job;
}

static void drop_objects(struct job *job, size_t from)
{
    for (size_t i = from; i < job->n_objects; i++)
        kinf_object_unref(job->objects[i]);
    job->n_objects = 0;
}

static int hand_over(struct loading *loading, struct job *job, kinf__state_object_cb *callback,
                     void *ctx, struct kinf_error *err)
{
    int failed = job->code;
    size_t n = 0;

    if (failed < 0 && err != NULL)
        *err = job->err;
    for (; failed == 0 && n < job->n_objects; n++)
        failed = callback(job->objects[n], ctx, err);
    loading->n_objects += n;
    drop_objects(job, n);
    return failed;
}

static void remove_first(struct loading *loading)
{
    kinf__mutex_lock(&loading->lock);
    loading->first = (loading->first + 1) % N_JOBS;
    loading->n_jobs--;
    kinf__mutex_unlock(&loading->lock);
}

static int load_all(struct loading *loading, kinf__state_object_cb *callback, void *ctx,
                    struct kinf_error *err)
{
    int failed;

    while ((failed = read_ahead(loading, err)) == 0 && loading->n_jobs != 0) {
        get_help(loading);
        failed = hand_over(loading, wait_for_first(loading), callback, ctx, err);
        if (failed < 0)
            break;
        remove_first(loading);
    }
    return failed;
}

static void end(struct loading *loading)
{
    if (loading->has_helper) {
        kinf__mutex_lock(&loading->lock);
        loading->is_over = true;
        kinf__cond_broadcast(&loading->changed);
        kinf__mutex_unlock(&loading->lock);
        pthread_join(loading->helper, NULL);
    }
    for (size_t i = 0; i < N_JOBS; i++) {
        drop_objects(&loading->jobs[i], 0);
        free(loading->jobs[i].objects);
        kinf__sealed_section_release(&loading->jobs[i].section);
    }
    kinf__cond_release(&loading->changed);
    kinf__mutex_release(&loading->lock);
}

int kinf__state_load(struct kinf__sealed_reader *reader, const struct kinf_type *type,
                     const struct kinf__state_bases *bases, kinf__state_object_cb *callback,
                     void *ctx, const struct kinf__stop *stop, uint64_t *ret_n_objects,
                     struct kinf_error *err)
{
    struct loading loading = { .reader = reader, .type = type, .bases = bases, .stop = stop };
    int failed;

    kinf__mutex_init(&loading.lock, KINF__RANK_STATE_LOAD);
    kinf__cond_init(&loading.changed);
    failed = load_all(&loading, callback, ctx, err);
    end(&loading);
    *ret_n_objects = loading.n_objects;
    return failed;
}
