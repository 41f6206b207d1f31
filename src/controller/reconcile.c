/*
 * What a key needs, and what becomes of it.
 *
 *   in the cache, not being deleted    the finalizer is set, or reconcile
 *   in the cache, being deleted        cleanup, the finalizer removed
 *   not in the cache                   the server is asked: has it left the selectors, the same as
 *                                      if it were deleted; is it gone, cleanup without an object; is
 *                                      the cache behind, it will come
 */
#include "controller/controller.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "informer/informer.h"
#include "object/shard.h"

/* Of a key, that are not logged: the cache is behind, as a rule. */
#define QUIET_CONFLICTS 3

/* --- callbacks --- */

static _Thread_local const struct kinf_controller *inside;

const struct kinf_controller *kinf__controller_inside(void)
{
    return inside;
}

static int run(struct kinf_call *call, kinf_reconcile_cb *callback,
               enum kinf__controller_count count, struct kinf_error *err)
{
    int rc;

    kinf__count(call->controller, count);
    inside = call->controller;
    rc = callback(call, call->controller->options.ctx, err);
    inside = NULL;
    if (rc > 0)
        rc = kinf__error_set(err, KINF_ERR_INVALID, "the callback returned %d, which is no error",
                             rc);
    return rc;
}

/* The object is going, has left, or is gone. */
static int end_object(struct kinf_call *call, struct kinf_error *err)
{
    const struct kinf_controller *controller = call->controller;
    int rc = 0;

    if (controller->options.cleanup != NULL)
        rc = run(call, controller->options.cleanup, KINF__N_CLEANUPS, err);
    if (rc == 0 && controller->finalizer != NULL && call->object != NULL)
        rc = kinf__finalizer_remove(call, err);
    return rc;
}

/* --- the object is in the cache --- */

static int do_present(struct kinf_call *call, struct kinf_error *err)
{
    const char *finalizer = call->controller->finalizer;
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str when;
    bool has_list;
    int64_t i = 0;
    int failed = kinf_object_get_json(call->object, "metadata.deletionTimestamp", &scratch, &when);

    if (failed == 0 && !kinf_str_equal(when, KINF_STR("null")))
        return end_object(call, err);
    if (failed < 0 && failed != KINF_ERR_NOT_FOUND)
        return kinf__error_no_memory(err);
    if (finalizer != NULL && kinf__finalizer_find(call->object, finalizer, &i, &has_list) < 0)
        return kinf__error_no_memory(err);
    /* That it has it then is a change, which leads to the next call. */
    if (i < 0)
        return kinf__finalizer_add(call, err);
    return run(call, call->controller->options.reconcile, KINF__N_RECONCILES, err);
}

/* --- it is not --- */

/* Any text may have been a key: of one that is none, there is no object. */
static bool is_key(struct kinf_call *call)
{
    bool is_namespaced = kinf__primary(call->controller)->informer->type->namespaced;
    char name_space[KINF_NAME_MAX];
    const char *name = kinf__object_key_split(call->key, name_space);

    return kinf__name_check_segment(name, NULL) == 0 &&
           (is_namespaced ? kinf__name_check_namespace(name_space, NULL) == 0 : name == call->key);
}

static int do_absent(struct kinf_call *call, struct kinf_error *err)
{
    const struct kinf_controller *controller = call->controller;
    const struct kinf__trigger *trigger = kinf__primary(controller);
    struct kinf_error own = KINF_ERROR_INIT;
    int failed = KINF_ERR_NOT_FOUND;

    if (controller->options.cleanup == NULL)
        return 0;
    if (!kinf__trigger_has_place(trigger, trigger->informer->type, call->key))
        return 0;
    if (is_key(call))
        failed = kinf__call_look(call, trigger->informer->type, call->key, &call->object, &own);
    if (failed < 0 && failed != KINF_ERR_NOT_FOUND) {
        if (err != NULL)
            *err = own;
        return failed;
    }
    if (call->object != NULL && kinf__trigger_selects(trigger, call->object))
        return kinf__error_set(err, KINF_ERR_CONFLICT, "the cache does not have the object yet");
    /* Another shard's. */
    if (call->object != NULL && trigger->informer->shard != NULL &&
        !kinf__shard_selector_matches(trigger->informer->shard, call->object))
        return 0;
    return end_object(call, err);
}

/* --- what becomes of it --- */

static void log_failure(struct kinf_call *call, int rc, const struct kinf_error *err)
{
    struct kinf_controller *controller = call->controller;
    uint64_t n_suppressed;
    bool may_pass;

    kinf__mutex_lock(&controller->lock);
    may_pass = kinf__log_limit_pass(&controller->failures, kinf__clock_now_ms(), &n_suppressed);
    kinf__mutex_unlock(&controller->lock);
    if (may_pass)
        KINF__LOG(KINF__LOG_CONTROLLER, KINF_LOG_WARN,
                  "failed controller=%s key=%s code=%s tries=%u error=%s suppressed=%" PRIu64,
                  controller->name, KINF__QUOTED(call->key),
                  kinf_errc_to_string((enum kinf_errc)rc),
                  kinf_queue_n_requeues(controller->queue, call->key) + 1,
                  KINF__QUOTED(err->message), n_suppressed);
}

/* A key that the queue has takes no memory: that the queue is shut down is the only failure. */
static void add_again(struct kinf_call *call, int64_t delay_ms, bool is_rate_limited)
{
    struct kinf_queue *queue = call->controller->queue;
    const struct kinf_queue_add_options options = {
        .size = sizeof options,
        .delay_ms = delay_ms,
        .priority = kinf_queue_priority(queue, call->key),
        .is_rate_limited = is_rate_limited,
    };

    (void)!kinf_queue_add_with(queue, call->key, &options, NULL);
}

static void succeed(struct kinf_call *call)
{
    struct kinf_queue *queue = call->controller->queue;
    unsigned n_failures = kinf_queue_n_requeues(queue, call->key);

    if (n_failures != 0)
        KINF__LOG(KINF__LOG_CONTROLLER, KINF_LOG_INFO, "succeeded controller=%s key=%s tries=%u",
                  call->controller->name, KINF__QUOTED(call->key), n_failures + 1);
    kinf_queue_forget(queue, call->key);
    if (call->requeue_after_ms >= 0)
        add_again(call, call->requeue_after_ms, false);
}

/* That of a program which returns it without being stopped must not keep a worker busy. */
static void give_up(struct kinf_call *call)
{
    int64_t left_ms;
    bool is_over = !kinf__call_may_write(call, &left_ms);

    kinf__count(call->controller, KINF__N_STOPPED);
    if (is_over)
        kinf__gate_close(call->controller, call->term);
    add_again(call, 0, !is_over);
}

static bool is_refused_for_good(int rc, const struct kinf_error *err)
{
    return rc == KINF_ERR_INVALID ||
           (rc == KINF_ERR_SERVER && (err->http_status == 400 || err->http_status == 422));
}

static void fail(struct kinf_call *call, int rc, const struct kinf_error *err)
{
    struct kinf_controller *controller = call->controller;
    bool is_conflict = rc == KINF_ERR_CONFLICT || rc == KINF_ERR_EXISTS;

    if (!is_conflict || kinf_queue_n_requeues(controller->queue, call->key) >= QUIET_CONFLICTS)
        log_failure(call, rc, err);
    if (is_refused_for_good(rc, err)) {
        kinf__count(controller, KINF__N_INVALID);
        kinf_queue_forget(controller->queue, call->key);
    } else if (err->retry_after_ms != 0) {
        kinf__count(controller, KINF__N_PUT_OFF);
        add_again(call, err->retry_after_ms, false);
    } else {
        kinf__count(controller, is_conflict ? KINF__N_CONFLICTS : KINF__N_OTHER_ERRORS);
        add_again(call, 0, true);
    }
}

static void settle(struct kinf_call *call, int rc, const struct kinf_error *err)
{
    kinf__own_writes_end(call, rc == KINF_ERR_CONFLICT || rc == KINF_ERR_EXISTS);
    if (rc == 0)
        succeed(call);
    else if (rc == KINF_ERR_STOPPED)
        give_up(call);
    else
        fail(call, rc, err);
}

void kinf__reconcile(struct kinf__worker *worker, const char *key)
{
    struct kinf_call call = { .worker = worker,
                              .controller = worker->controller,
                              .key = key,
                              .term = KINF__NO_TERM,
                              .requeue_after_ms = -1 };
    struct kinf_error err = KINF_ERROR_INIT;
    int rc = kinf__call_begin(&call, &err);

    if (rc == 0)
        rc = kinf__own_writes_wait(&call, &err);
    if (rc == 0) {
        call.object = kinf__trigger_get(kinf__primary(call.controller), key);
        rc = call.object != NULL ? do_present(&call, &err) : do_absent(&call, &err);
    }
    settle(&call, rc, &err);
    kinf_object_unref(call.object);
}
