/*
 * A controller's life. Workers pass the gate (gate.c), get a key, and reconcile it.
 *
 * The order of the end: the gate is closed, which gives up requests; workers and keeper are joined;
 * then the elector is stopped, since nothing of its term runs any more; then the informers.
 */
#include "controller/controller.h"

#include <string.h>

#include <kinformer/run.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "elector/elector.h"
#include "informer/callback.h"
#include "informer/informer.h"
#include "queue/queue_priv.h"
#include "rest/client.h"

#define MAX_WORKERS     1000
#define LOG_INTERVAL_MS 2000

/* --- workers --- */

static void *work(void *ctx)
{
    struct kinf__worker *worker = ctx;
    struct kinf_queue *queue = worker->controller->queue;
    const char *key;

    while (kinf__gate_await(worker->controller) &&
           kinf_queue_get(queue, KINF_FOREVER, &key, NULL) == 0) {
        kinf__reconcile(worker, key);
        kinf_queue_done(queue, key);
    }
    return NULL;
}

/* --- start and stop --- */

static int start_threads(struct kinf_controller *controller, struct kinf_error *err)
{
    int failed = 0;

    for (unsigned i = 0; failed == 0 && i < controller->options.n_workers; i++) {
        struct kinf__worker *worker = &controller->workers[i];

        failed = kinf__thread_start(&worker->thread, "kinf-worker", work, worker, err);
        worker->has_thread = failed == 0;
    }
    if (failed == 0) {
        failed = kinf__thread_start(&controller->keeper, "kinf-keeper", kinf__gate_keep, controller,
                                    err);
        controller->has_keeper = failed == 0;
    }
    return failed;
}

static int start_informer(struct kinf__trigger *trigger, struct kinf_error *err)
{
    bool is_lent = trigger->informer->is_lent;
    struct kinf_error own = KINF_ERROR_INIT;
    int failed;

    if (is_lent && (trigger->controller->options.factory != NULL ||
                    kinf__informer_was_started(trigger->informer)))
        return 0;
    failed = kinf__informer_start_held(trigger->informer, &own);
    /* It runs already; or it has stopped: then it is never synced. */
    if (failed == KINF_ERR_STATE && !is_lent)
        return 0;
    if (failed < 0 && err != NULL)
        *err = own;
    return failed;
}

static int join_elector(struct kinf_controller *controller, struct kinf_error *err)
{
    int failed = controller->options.elector != NULL
                     ? kinf__elector_join(controller->options.elector, err)
                     : 0;

    controller->has_joined = failed == 0 && controller->options.elector != NULL;
    return failed;
}

static int start_factory(struct kinf_controller *controller, struct kinf_error *err)
{
    kinf__factory_hold(controller->options.factory);
    controller->has_factory = true;
    return kinf_factory_start(controller->options.factory, err);
}

static int start_all(struct kinf_controller *controller, struct kinf_error *err)
{
    int failed = join_elector(controller, err);

    KINF__TRIGGER_FOR_EACH (trigger, controller) {
        if (failed == 0)
            failed = kinf__trigger_listen(trigger, err);
    }
    if (failed == 0)
        failed = start_threads(controller, err);
    if (failed == 0 && controller->options.factory != NULL)
        failed = start_factory(controller, err);
    KINF__TRIGGER_FOR_EACH (trigger, controller) {
        if (failed == 0)
            failed = start_informer(trigger, err);
    }
    return failed;
}

static void join_threads(struct kinf_controller *controller)
{
    if (controller->has_keeper)
        pthread_join(controller->keeper, NULL);
    for (unsigned i = 0; i < controller->options.n_workers; i++) {
        if (controller->workers[i].has_thread)
            pthread_join(controller->workers[i].thread, NULL);
        controller->workers[i].has_thread = false;
    }
    controller->has_keeper = false;
}

static void stop_informers(struct kinf_controller *controller)
{
    KINF__TRIGGER_FOR_EACH (trigger, controller) {
        if (trigger->handler != 0)
            kinf_informer_remove_handler(trigger->informer, trigger->handler);
    }
    if (controller->has_factory)
        kinf__factory_let_go(controller->options.factory);
    controller->has_factory = false;
    KINF__TRIGGER_FOR_EACH (trigger, controller)
        kinf__trigger_let_go(trigger);
}

/* From whatever was started. Behind it the life is STOPPED. */
static void end_all(struct kinf_controller *controller) KINF__REQUIRES(controller->lock)
{
    controller->life = KINF__CONTROLLER_STOPPING;
    controller->is_open = false;
    kinf__waker_set(&controller->closed);
    kinf__cond_broadcast(&controller->changed);
    kinf__mutex_unlock(&controller->lock);
    kinf__client_remove_controller(controller->client, &controller->client_node);
    kinf_queue_shut_down(controller->queue);
    join_threads(controller);
    if (controller->has_joined)
        kinf__elector_leave(controller->options.elector);
    controller->has_joined = false;
    stop_informers(controller);
    kinf__mutex_lock(&controller->lock);
    controller->life = KINF__CONTROLLER_STOPPED;
    kinf__cond_broadcast(&controller->changed);
}

int kinf_controller_start(struct kinf_controller *controller, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, controller);

    bool is_mine;
    int failed;

    kinf__mutex_lock(&controller->lock);
    is_mine = controller->life == KINF__CONTROLLER_NEW;
    if (is_mine)
        controller->life = KINF__CONTROLLER_STARTING;
    kinf__mutex_unlock(&controller->lock);
    if (!is_mine)
        return kinf__error_set(err, KINF_ERR_STATE,
                               "the controller was started, or stopped, before");
    kinf__client_add_controller(controller->client, &controller->client_node);
    failed = start_all(controller, err);
    kinf__mutex_lock(&controller->lock);
    controller->life = KINF__CONTROLLER_RUNNING;
    if (failed < 0)
        end_all(controller);
    kinf__cond_broadcast(&controller->changed);
    kinf__mutex_unlock(&controller->lock);
    return failed;
}

/* Its elector may be freed when it is stopped. */
static bool needs_elector(struct kinf_controller *controller)
{
    bool needs;

    kinf__mutex_lock(&controller->lock);
    needs = controller->options.elector != NULL && controller->life != KINF__CONTROLLER_NEW &&
            controller->life != KINF__CONTROLLER_STOPPED;
    kinf__mutex_unlock(&controller->lock);
    return needs;
}

/* Where a stop would wait for itself, or could not wait for the callbacks of its handlers. */
static bool is_in_a_callback(struct kinf_controller *controller)
{
    return kinf__callback_owner() != NULL ||
           (needs_elector(controller) && kinf__elector_is_inside(controller->options.elector));
}

int kinf_controller_stop(struct kinf_controller *controller, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, controller);

    struct kinf__callback_wait wait;

    if (is_in_a_callback(controller) ||
        !kinf__callback_begin_wait_of(&wait, kinf__controller_inside(), controller))
        return kinf__misuse(err, KINF_ERR_STATE,
                            "a controller is not stopped from a callback of its own, of its "
                            "elector, of an informer, or of a controller that it waits for");
    kinf__mutex_lock(&controller->lock);
    while (controller->life == KINF__CONTROLLER_STARTING ||
           controller->life == KINF__CONTROLLER_STOPPING)
        (void)kinf__cond_wait_until(&controller->changed, &controller->lock, KINF__NEVER_MS);
    if (controller->life == KINF__CONTROLLER_RUNNING)
        end_all(controller);
    controller->life = KINF__CONTROLLER_STOPPED;
    kinf__mutex_unlock(&controller->lock);
    kinf__callback_end_wait(&wait);
    return 0;
}

/* --- the end of main() --- */

static struct kinf_informer *informer_at(size_t i, void *ctx)
{
    KINF__TRIGGER_FOR_EACH (trigger, (struct kinf_controller *)ctx) {
        if (i-- == 0)
            return trigger->informer;
    }
    return NULL;
}

int kinf_controller_run(struct kinf_controller *controller, int64_t sync_timeout_ms,
                        struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, controller);

    int failed = kinf_controller_start(controller, err);

    if (failed < 0)
        return failed;
    failed = kinf__informer_wait_each_synced(informer_at, controller, sync_timeout_ms, err);
    if (failed == 0)
        failed = kinf_run_until_signal(err);
    (void)kinf_controller_stop(controller, NULL);
    return failed;
}

/* --- new and free --- */

static int refuse(struct kinf_error *err, const char *what)
{
    return kinf__error_set(err, KINF_ERR_INVALID, "controller: %s", what);
}

/* A finalizer that the cache does not show would be set again and again. */
static int check_finalizer(const struct kinf_controller_options *options, struct kinf_error *err)
{
    struct kinf_path *path;
    bool is_kept;
    int failed;

    if (options->cleanup == NULL)
        return refuse(err, "a finalizer needs a cleanup");
    if (strchr(options->finalizer, '/') == NULL)
        return refuse(err, "a finalizer's name has a domain and a '/'");
    failed = kinf_path_parse("metadata.finalizers", &path, err);
    if (failed < 0)
        return failed;
    is_kept = kinf__prune_plan_keeps(options->informer->plan, path);
    kinf_path_free(path);
    return is_kept ? 0 : refuse(err, "the informer does not keep metadata.finalizers");
}

static int check(struct kinf_controller_options *options, struct kinf_error *err)
{
    if (options->name == NULL || options->name[0] == '\0' || strlen(options->name) > 128)
        return refuse(err, "a name of 1 to 128 bytes is needed: it is the field manager");
    if (options->informer == NULL || options->reconcile == NULL)
        return refuse(err, "an informer and a reconcile are needed");
    if (options->n_workers > MAX_WORKERS || options->resync_period_ms < 0)
        return refuse(err, "more than 1,000 workers, or a negative time");
    if (options->n_workers == 0)
        options->n_workers = 1;
    return options->finalizer != NULL ? check_finalizer(options, err) : 0;
}

static int make_workers(struct kinf_controller *controller, struct kinf_error *err)
{
    int failed = 0;

    controller->workers = calloc(controller->options.n_workers, sizeof *controller->workers);
    if (controller->workers == NULL)
        return kinf__error_no_memory(err);
    for (unsigned i = 0; failed == 0 && i < controller->options.n_workers; i++) {
        controller->workers[i].controller = controller;
        failed = kinf__http_new(controller->client, &controller->closed,
                                &controller->workers[i].http, err);
    }
    return failed;
}

static int make_queue(struct kinf_controller *controller, struct kinf_error *err)
{
    struct kinf_queue_options own = KINF_QUEUE_OPTIONS_INIT;
    int failed = 0;

    if (controller->options.queue != NULL)
        failed = kinf__options_read(&own, sizeof own, controller->options.queue,
                                    "struct kinf_queue_options", err);
    own.size = sizeof own;
    if (own.name == NULL)
        own.name = controller->name;
    return failed < 0 ? failed : kinf_queue_new(&own, &controller->queue, err);
}

static int copy_text(const char *text, char **ret_copy)
{
    if (text == NULL)
        return 0;
    *ret_copy = strdup(text);
    return *ret_copy != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static int fill(struct kinf_controller *controller, struct kinf_error *err)
{
    struct kinf_controller_options *options = &controller->options;
    int failed;

    if (copy_text(options->name, &controller->name) < 0 ||
        copy_text(options->finalizer, &controller->finalizer) < 0 ||
        copy_text(options->owner_annotation, &controller->owner_annotation) < 0)
        return kinf__error_no_memory(err);
    failed = kinf__waker_init(&controller->closed, err);
    if (failed < 0)
        return failed;
    kinf__waker_set(&controller->closed);
    failed = make_queue(controller, err);
    if (failed == 0)
        failed = kinf__trigger_add(controller, options->informer, NULL, NULL, err);
    return failed < 0 ? failed : make_workers(controller, err);
}

static void destroy(struct kinf_controller *controller)
{
    for (unsigned i = 0; controller->workers != NULL && i < controller->options.n_workers; i++)
        kinf__http_free(controller->workers[i].http);
    free(controller->workers);
    KINF__LIST_FOR_EACH_SAFE (node, &controller->triggers)
        kinf__trigger_free(KINF__LIST_ENTRY(node, struct kinf__trigger, node));
    kinf__own_writes_release(&controller->own_writes);
    kinf__applied_release(&controller->applied);
    kinf_queue_free(controller->queue);
    kinf__waker_release(&controller->closed);
    kinf__cond_release(&controller->changed);
    kinf__mutex_release(&controller->lock);
    kinf__client_let_go(controller->client);
    free(controller->name);
    free(controller->finalizer);
    free(controller->owner_annotation);
    free(controller);
}

int kinf_controller_new(struct kinf_client *client, const struct kinf_controller_options *options,
                        struct kinf_controller **ret_controller, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, options, ret_controller);

    struct kinf_controller_options own;
    struct kinf_controller *controller;
    int failed =
        kinf__options_read(&own, sizeof own, options, "struct kinf_controller_options", err);

    if (failed < 0 || (failed = check(&own, err)) < 0)
        return failed;
    controller = calloc(1, sizeof *controller);
    if (controller == NULL)
        return kinf__error_no_memory(err);
    controller->client = client;
    kinf__client_hold(client);
    controller->options = own;
    controller->term = KINF__NO_TERM;
    controller->closed.fd = -1;
    controller->failures.interval_ms = LOG_INTERVAL_MS;
    kinf__list_init(&controller->triggers);
    kinf__mutex_init(&controller->lock, KINF__RANK_CONTROLLER);
    kinf__cond_init(&controller->changed);
    failed = fill(controller, err);
    if (failed < 0)
        destroy(controller);
    else
        *ret_controller = controller;
    return failed;
}

void kinf_controller_free(struct kinf_controller *controller)
{
    if (controller != NULL && kinf_controller_stop(controller, NULL) == 0)
        destroy(controller);
}

void kinf_controller_free_ptr(struct kinf_controller **controller)
{
    KINF__REFUSE_NULL(NULL, , controller);
    kinf_controller_free(*controller);
}

int kinf_controller_watch(struct kinf_controller *controller, struct kinf_informer *informer,
                          kinf_map_cb *map, void *ctx, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, controller, informer, map);

    bool is_new;

    kinf__mutex_lock(&controller->lock);
    is_new = controller->life == KINF__CONTROLLER_NEW;
    kinf__mutex_unlock(&controller->lock);
    return is_new ? kinf__trigger_add(controller, informer, map, ctx, err)
                  : kinf__error_set(err, KINF_ERR_STATE, "the controller is started");
}

/* --- questions --- */

struct kinf_queue *kinf_controller_queue(struct kinf_controller *controller)
{
    KINF__REFUSE_NULL(NULL, NULL, controller);
    return controller->queue;
}

/* It does not lead, and knows who does, or why nobody can be asked. */
static bool is_standing_by(struct kinf_elector *elector)
{
    struct kinf_elector_status status;

    kinf_elector_status(elector, &status);
    return !status.leads && (status.leader[0] != '\0' || status.reason[0] != '\0');
}

int64_t kinf__controller_due_ms(struct kinf_controller *controller)
{
    struct kinf_elector *elector = controller->options.elector;
    bool is_synced, is_open;

    kinf__mutex_lock(&controller->lock);
    is_synced = controller->is_synced;
    is_open = controller->is_open;
    kinf__mutex_unlock(&controller->lock);
    if (is_open)
        return kinf__queue_due_ms(controller->queue);
    return is_synced && elector != NULL && is_standing_by(elector) ? kinf__elector_due_ms(elector)
                                                                   : 0;
}

void kinf_controller_status(struct kinf_controller *controller,
                            struct kinf_controller_status *ret_status)
{
    KINF__REFUSE_NULL(NULL, , controller, ret_status);

    struct kinf_controller_status status = { .is_synced = false };
    uint64_t *const counts[] = {
        [KINF__N_RECONCILES] = &status.n_reconciles,
        [KINF__N_CLEANUPS] = &status.n_cleanups,
        [KINF__N_CONFLICTS] = &status.n_conflicts,
        [KINF__N_PUT_OFF] = &status.n_put_off,
        [KINF__N_INVALID] = &status.n_invalid,
        [KINF__N_OTHER_ERRORS] = &status.n_other_errors,
        [KINF__N_STOPPED] = &status.n_stopped,
        [KINF__N_MAP_ERRORS] = &status.n_map_errors,
        [KINF__N_WAITS] = &status.n_waits,
        [KINF__N_WAIT_TIMEOUTS] = &status.n_wait_timeouts,
        [KINF__N_APPLIES_SPARED] = &status.n_applies_spared,
        [KINF__N_REQUESTS] = &status.n_requests,
    };

    for (size_t i = 0; i < KINF__N_CONTROLLER_COUNTS; i++)
        *counts[i] = atomic_load_explicit(&controller->counts[i], memory_order_relaxed);
    kinf__mutex_lock(&controller->lock);
    status.is_synced = controller->is_synced;
    status.is_active = controller->is_open;
    kinf__mutex_unlock(&controller->lock);
    kinf_queue_status(controller->queue, &status.queue);
    *ret_status = status;
}
