/*
 * A program, and each of its requests failing in turn. Neighbours: fake.c has the server, and calls
 * look() while it settles; end_state.c compares.
 *
 * A program that is killed is one of which no request arrives any more: then it may be taken apart
 * in order, and whatever it does meanwhile is as if it had not been done.
 */
#include <kinformer/testing.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "base/thread.h"
#include "sim/end_state.h"
#include "sim/fake.h"

#define AHEAD_MS   60000
#define TIMEOUT_MS 30000
#define FLY_MS     1000 /* how far time flies in a millisecond */
#define LATE_STEPS 20

#define ALL_VERBS "get,create,update,patch,delete,deletecollection"
#define NO_SKIP   1000000000 /* requests: more than any program sends */

struct sweep;

struct kind {
    enum kinf_sweep_fault fault;
    const char *verbs;
    const char *fails;      /* the request, as a line of fault_spec.h */
    const char *fail_after; /* those behind it; NULL: do not */
    int (*act)(struct sweep *sweep, struct kinf_error *); /* NULL: that is all */
};

struct sweep {
    struct kinf_sweep_options options;
    struct kinf__end_state right; /* without faults */

    /* of one run */
    struct kinf_fake *fake;
    const struct kind *kind; /* NULL: without faults */
    uint64_t i;              /* which request, from 0 */
    unsigned id;             /* of the fault */
    bool has_acted;
    bool is_running; /* the program */
    struct kinf__fault_tally tally;
};

static const char *resources_of(const struct sweep *sweep)
{
    return sweep->options.resources != NULL ? sweep->options.resources : "*,!leases,!events";
}

static int add_fault(struct sweep *sweep, const char *verbs, const char *fails, uint64_t skip,
                     unsigned *ret_id, struct kinf_error *err)
{
    char spec[KINF__FAULT_TARGET_SIZE * 2];

    snprintf(spec, sizeof spec, "%s %s %s skip=%" PRIu64, verbs, resources_of(sweep), fails, skip);
    return kinf__faults_add(kinf__sim_faults(sweep->fake->sim), spec, ret_id, err);
}

/* --- the program --- */

static int start(struct sweep *sweep, struct kinf_error *err)
{
    int failed = sweep->options.start(kinf_fake_client(sweep->fake), sweep->options.ctx, err);

    sweep->is_running = failed == 0;
    return failed;
}

static void *fly(void *ctx)
{
    while (!*(_Atomic(bool) *)ctx) {
        kinf__clock_advance(FLY_MS);
        kinf__fake_nap();
    }
    return NULL;
}

/* Also if it waits for a timeout. */
static void stop(struct sweep *sweep)
{
    _Atomic(bool) is_stopped = false;
    pthread_t thread;
    bool flies = kinf__thread_start(&thread, "kinf-fly", fly, &is_stopped, NULL) == 0;

    sweep->options.stop(sweep->options.ctx);
    sweep->is_running = false;
    is_stopped = true;
    if (flies)
        pthread_join(thread, NULL);
}

static int kill_and_start(struct sweep *sweep, struct kinf_error *err)
{
    int failed = kinf_fake_fault(sweep->fake, "* path=/ reset early", err);

    kinf_fake_drop(sweep->fake);
    stop(sweep);
    kinf_fake_clear_faults(sweep->fake);
    return failed < 0 ? failed : start(sweep, err);
}

static int64_t lease_ms(struct sweep *sweep)
{
    kinf_auto_object const struct kinf_object *lease = NULL;
    int64_t duration_s = 0;

    if (kinf_fake_get(sweep->fake, "leases.coordination.k8s.io", sweep->options.lease, &lease,
                      NULL) == 0)
        (void)!kinf_object_get_int64(lease, "spec.leaseDurationSeconds", &duration_s);
    return duration_s * 1000;
}

/* For the whole duration of the Lease the old leader may believe in its term, and no longer. Then
 * nothing of it may come while the other one leads. */
static int lose_lead(struct sweep *sweep, struct kinf_error *err)
{
    const char *lease = sweep->options.lease;
    struct kinf__fault_tally late;
    unsigned id = 0;
    int failed = kinf_fake_take_lease(sweep->fake, lease, err);

    if (failed < 0)
        return failed;
    kinf_fake_advance(sweep->fake, lease_ms(sweep));
    if ((failed = kinf_fake_take_lease(sweep->fake, lease, err)) < 0)
        return failed;
    kinf_fake_clear_faults(sweep->fake);
    if ((failed = add_fault(sweep, ALL_VERBS, "503", 0, &id, err)) < 0)
        return failed;
    /* In small steps: a thread that is late has some real time, too. */
    for (int i = 0; i < LATE_STEPS; i++)
        kinf_fake_advance(sweep->fake, lease_ms(sweep) / (2 * LATE_STEPS));
    late = kinf__faults_tally(kinf__sim_faults(sweep->fake->sim), id);
    kinf_fake_clear_faults(sweep->fake);
    return late.n_hits == 0
               ? 0
               : kinf__error_set(err, KINF_ERR_STATE,
                                 "while another led, it sent %" PRIu64 " requests, first: %s",
                                 late.n_hits, late.first_hit);
}

/* --- what happens to a request --- */

static const struct kind kinds[] = {
    { KINF_SWEEP_REFUSED, ALL_VERBS, "503 times=1", NULL, NULL },
    { KINF_SWEEP_BUSY, ALL_VERBS, "429 retry-after=1 times=1", NULL, NULL },
    { KINF_SWEEP_CONFLICT, "update,patch", "409 times=1", NULL, NULL },
    { KINF_SWEEP_CUT, ALL_VERBS, "reset early times=1", NULL, NULL },
    { KINF_SWEEP_ANSWER_LOST, ALL_VERBS, "reset times=1", NULL, NULL },
    { KINF_SWEEP_KILLED, ALL_VERBS, "reset early", NULL, kill_and_start },
    { KINF_SWEEP_KILLED_BEHIND, ALL_VERBS, "reset times=1", "reset early", kill_and_start },
    { KINF_SWEEP_LEAD_LOST, ALL_VERBS, "hang", NULL, lose_lead },
};

static const char *describe(enum kinf_sweep_fault fault)
{
    switch (fault) {
#define X(enumerator, bit, what)                                                                   \
    case enumerator:                                                                               \
        return what;
        KINF_SWEEP_FAULTS(X)
#undef X
    }
    return "";
}

static int arm(struct sweep *sweep, struct kinf_error *err)
{
    const struct kind *kind = sweep->kind;
    unsigned id;
    int failed;

    if (kind == NULL)
        return 0;
    failed = add_fault(sweep, kind->verbs, kind->fails, sweep->i, &sweep->id, err);
    return failed < 0 || kind->fail_after == NULL
               ? failed
               : add_fault(sweep, kind->verbs, kind->fail_after, sweep->i, &id, err);
}

static void count(struct sweep *sweep)
{
    if (!sweep->has_acted)
        sweep->tally = kinf__faults_tally(kinf__sim_faults(sweep->fake->sim), sweep->id);
}

/* A request that is to be carried out is waited for; one that hangs is never over. */
static int look(void *ctx, struct kinf_error *err)
{
    struct sweep *sweep = ctx;
    const struct kind *kind = sweep->kind;
    int failed;

    if (kind == NULL || kind->act == NULL || sweep->has_acted)
        return 0;
    count(sweep);
    if ((kind->act == lose_lead ? sweep->tally.n_hits : sweep->tally.n_over) == 0)
        return 0;
    sweep->has_acted = true;
    failed = kind->act(sweep, err);
    return failed < 0 ? failed : 1;
}

/* --- one run --- */

static int settle(struct sweep *sweep, struct kinf_error *err)
{
    const struct kinf_sweep_options *options = &sweep->options;

    return kinf_fake_settle_ahead(sweep->fake, options->ahead_ms > 0 ? options->ahead_ms : AHEAD_MS,
                                  options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_MS, err);
}

/* What the program, and its test, do. */
static int play(struct sweep *sweep, struct kinf_error *err)
{
    const struct kinf_sweep_options *options = &sweep->options;
    int failed = options->before != NULL ? options->before(sweep->fake, options->ctx, err) : 0;

    if (failed < 0 || (failed = arm(sweep, err)) < 0 || (failed = start(sweep, err)) < 0 ||
        (failed = options->scenario(sweep->fake, options->ctx, err)) < 0)
        return failed;
    return settle(sweep, err);
}

/* How a run went: *ret_failed is what the program or its test failed with, else *ret_state is what
 * is there in the end. Errors: of our own. */
static int run(struct sweep *sweep, struct kinf__end_state *ret_state, int *ret_failed,
               struct kinf_error *err)
{
    int failed = kinf_fake_new(sweep->options.fake, &sweep->fake, err);

    if (failed < 0)
        return failed;
    sweep->has_acted = false;
    sweep->fake->on_look = look;
    sweep->fake->look_ctx = sweep;
    if (sweep->kind == NULL)
        failed = add_fault(sweep, ALL_VERBS, "500", NO_SKIP, &sweep->id, err);
    *ret_failed = failed == 0 ? play(sweep, err) : 0;
    count(sweep);
    if (failed == 0 && *ret_failed == 0 &&
        (failed = kinf__end_state_take(sweep->fake->sim, ret_state)) < 0)
        (void)kinf__error_no_memory(err);
    if (sweep->is_running)
        stop(sweep);
    kinf_fake_free(sweep->fake);
    return failed;
}

/* --- all of them --- */

/* What is wrong with how a run ended; nothing: it is right. */
static int write_report(struct sweep *sweep, const struct kinf__end_state *state, int failed,
                        const struct kinf_error *failure, struct kinf__buffer *out)
{
    KINF__AUTO_BUFFER diff = KINF__BUFFER_INIT;

    if (failed == 0) {
        if (kinf__end_state_diff(&sweep->right, state, &diff) < 0)
            return KINF_ERR_NO_MEMORY;
        if (diff.len == 0)
            return 0;
    }
    if (sweep->kind != NULL &&
        kinf__buffer_printf(out, "request %" PRIu64 ", %s: %s\n", sweep->i + 1,
                            sweep->tally.first_hit, describe(sweep->kind->fault)) < 0)
        return KINF_ERR_NO_MEMORY;
    if (failed < 0)
        return kinf__buffer_printf(out, "%s\n", failure->message);
    return kinf__buffer_printf(out, "what is there in the end differs:\n%.*s", (int)diff.len,
                               diff.bytes);
}

/* A run, and a report if it does not end as it should. *ret_has_hit: the fault has met a request. */
static int try(struct sweep *sweep, struct kinf_sweep_result *result, bool *ret_has_hit,
               struct kinf_error *err)
{
    struct kinf__end_state state = { .n_lines = 0 };
    KINF__AUTO_BUFFER report = KINF__BUFFER_INIT;
    struct kinf_error failure = KINF_ERROR_INIT;
    int failed_inside, failed = run(sweep, &state, &failed_inside, &failure);

    *ret_has_hit = sweep->tally.n_hits != 0;
    if (failed < 0 && err != NULL)
        *err = failure;
    if (failed == 0 && write_report(sweep, &state, failed_inside, &failure, &report) < 0)
        failed = kinf__error_no_memory(err);
    if (failed == 0 && report.len != 0)
        failed = kinf__buffer_take_text(&report, &result->report, err);
    kinf__end_state_release(&state);
    return failed;
}

static int try_kind(struct sweep *sweep, const struct kind *kind, struct kinf_sweep_result *result,
                    struct kinf_error *err)
{
    bool has_hit = true;
    int failed = 0;

    sweep->kind = kind;
    for (sweep->i = 0;
         failed == 0 && result->report == NULL && has_hit && sweep->i < result->n_requests;
         sweep->i++) {
        failed = try(sweep, result, &has_hit, err);
        result->n_runs += has_hit;
    }
    return failed;
}

static int try_all(struct sweep *sweep, struct kinf_sweep_result *result, struct kinf_error *err)
{
    unsigned wanted = sweep->options.faults != 0 ? sweep->options.faults : ~0U;
    int failed = 0;

    if (sweep->options.lease == NULL)
        wanted &= ~(unsigned)KINF_SWEEP_LEAD_LOST;
    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(kinds) && result->report == NULL; i++) {
        if ((wanted & kinds[i].fault) != 0)
            failed = try_kind(sweep, &kinds[i], result, err);
    }
    return failed;
}

/* Twice without a fault: what differs then is not for us to judge. */
static int try_none(struct sweep *sweep, struct kinf_sweep_result *result, struct kinf_error *err)
{
    int failed_inside, failed = run(sweep, &sweep->right, &failed_inside, err);
    bool has_hit;

    if (failed == 0)
        failed = failed_inside;
    if (failed < 0)
        return failed;
    result->n_requests = sweep->tally.n_requests;
    if (result->n_requests == 0)
        return kinf__error_set(err, KINF_ERR_STATE, "the program sends no request for %s",
                               resources_of(sweep));
    failed = try(sweep, result, &has_hit, err);
    if (failed == 0 && result->report != NULL)
        failed = kinf__error_set(err, KINF_ERR_STATE, "two runs without a fault end differently");
    return failed;
}

static int check(const struct kinf_sweep_options *options, struct kinf_error *err)
{
    if (options->start == NULL || options->stop == NULL || options->scenario == NULL)
        return kinf__error_set(err, KINF_ERR_INVALID, "sweep: start, stop and scenario are needed");
    if (options->ahead_ms < 0 || options->timeout_ms < 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "sweep: a time is negative");
    if ((options->faults & KINF_SWEEP_LEAD_LOST) != 0 && options->lease == NULL)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "sweep: which Lease is to be lost is not said");
    return 0;
}

int kinf_sweep(const struct kinf_sweep_options *options, struct kinf_sweep_result *ret_result,
               struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, options, ret_result);

    struct sweep sweep = { .kind = NULL };
    int failed = kinf__options_read(&sweep.options, sizeof sweep.options, options,
                                    "struct kinf_sweep_options", err);

    *ret_result = (struct kinf_sweep_result){ .report = NULL };
    if (failed == 0)
        failed = check(&sweep.options, err);
    if (failed == 0)
        failed = try_none(&sweep, ret_result, err);
    if (failed == 0)
        failed = try_all(&sweep, ret_result, err);
    kinf__end_state_release(&sweep.right);
    return failed;
}
