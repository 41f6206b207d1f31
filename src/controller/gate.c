/*
 * The gate in front of all calls, and its keeper: that waits until the informers are synced, starts
 * the elector, and opens and closes as the elector says. It also forgets what calls wrote once the
 * caches have it (own_writes.h).
 *
 * Invariant: it is open for one term, with every informer synced; `closed` is set, and requests of
 * calls are given up, whenever it is not. Between two terms it is closed for a moment, so that no
 * request of the one goes on in the other.
 */
#include "controller/controller.h"

#include "base/clock.h"
#include "elector/elector.h"

#define SYNC_LOOK_MS 20
#define LOOK_MS      100 /* C6 */

/* --- the gate --- */

bool kinf__gate_await(struct kinf_controller *controller)
{
    bool is_open;

    kinf__mutex_lock(&controller->lock);
    while (!controller->is_open && controller->life < KINF__CONTROLLER_STOPPING)
        (void)kinf__cond_wait_until(&controller->changed, &controller->lock, KINF__NEVER_MS);
    is_open = controller->life < KINF__CONTROLLER_STOPPING;
    kinf__mutex_unlock(&controller->lock);
    return is_open;
}

bool kinf__gate_is_stopping(struct kinf_controller *controller)
{
    bool is_stopping;

    kinf__mutex_lock(&controller->lock);
    is_stopping = controller->life >= KINF__CONTROLLER_STOPPING;
    kinf__mutex_unlock(&controller->lock);
    return is_stopping;
}

/* What was applied before may have been applied otherwise by another leader since. */
static void open_gate(struct kinf_controller *controller, int64_t term)
    KINF__REQUIRES(controller->lock)
{
    controller->is_open = true;
    controller->term = term;
    kinf__applied_release(&controller->applied);
    kinf__waker_clear(&controller->closed);
    kinf__cond_broadcast(&controller->changed);
}

/* The keeper is not woken: it looks again in a while. */
static void close_gate(struct kinf_controller *controller) KINF__REQUIRES(controller->lock)
{
    controller->is_open = false;
    kinf__waker_set(&controller->closed);
}

void kinf__gate_close(struct kinf_controller *controller, int64_t term)
{
    kinf__mutex_lock(&controller->lock);
    if (controller->life < KINF__CONTROLLER_STOPPING &&
        (term == KINF__NO_TERM || term == controller->term))
        close_gate(controller);
    kinf__mutex_unlock(&controller->lock);
}

/* --- the keeper --- */

static bool all_synced(struct kinf_controller *controller)
{
    KINF__TRIGGER_FOR_EACH (trigger, controller) {
        if (!kinf_informer_has_synced(trigger->informer))
            return false;
    }
    return true;
}

static bool is_running(const struct kinf_controller *controller)
{
    return controller->life < KINF__CONTROLLER_STOPPING;
}

static void wait_until_synced(struct kinf_controller *controller) KINF__REQUIRES(controller->lock)
{
    while (is_running(controller) && !all_synced(controller))
        (void)kinf__cond_wait_until(&controller->changed, &controller->lock,
                                    kinf__clock_add_ms(kinf__clock_now_ms(), SYNC_LOOK_MS));
    controller->is_synced = is_running(controller);
    kinf__cond_broadcast(&controller->changed);
}

/* Whether it runs now. For want of a thread it is tried again, which is logged once. */
static bool start_elector(struct kinf_controller *controller, bool *is_logged)
    KINF__REQUIRES(controller->lock)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed;

    kinf__mutex_unlock(&controller->lock);
    failed = kinf__elector_run(controller->options.elector, &err);
    if (failed < 0 && !*is_logged) {
        KINF__LOG(KINF__LOG_CONTROLLER, KINF_LOG_ERROR,
                  "the elector cannot be started yet controller=%s error=%s", controller->name,
                  KINF__QUOTED(err.message));
        *is_logged = true;
    }
    kinf__mutex_lock(&controller->lock);
    return failed == 0;
}

static int64_t look_for_term(struct kinf_controller *controller) KINF__REQUIRES(controller->lock)
{
    struct kinf_fence fence = { 0, 0 };
    bool is_leader = true;

    if (controller->options.elector != NULL) {
        kinf__mutex_unlock(&controller->lock);
        is_leader = kinf_elector_fence(controller->options.elector, &fence);
        kinf__mutex_lock(&controller->lock);
    }
    return is_leader ? fence.term : KINF__NO_TERM;
}

/* What another leader has done, or begun, since, no change may tell of: as at the beginning, each object is
 * called. A term of ours has the number behind that of the last one, unless somebody led in between. */
static bool has_another_led(const struct kinf_controller *controller, int64_t term)
    KINF__REQUIRES(controller->lock)
{
    return controller->term != KINF__NO_TERM && term != controller->term &&
           term != controller->term + 1;
}

/* Before the gate opens, so that who is active has all that it must call. */
static void prepare_term(struct kinf_controller *controller, int64_t term)
    KINF__REQUIRES(controller->lock)
{
    controller->term = term;
    kinf__mutex_unlock(&controller->lock);
    kinf__trigger_add_all(kinf__primary(controller));
    kinf__mutex_lock(&controller->lock);
}

/* Nobody says when a term ends, or a cache has what was written. */
static int64_t next_look_ms(const struct kinf_controller *controller)
    KINF__REQUIRES(controller->lock)
{
    bool is_to_look =
        controller->options.elector != NULL || controller->own_writes.keys.n_nodes != 0;

    return is_to_look ? kinf__clock_add_ms(kinf__clock_now_ms(), LOOK_MS) : KINF__NEVER_MS;
}

static void keep_gate(struct kinf_controller *controller) KINF__REQUIRES(controller->lock)
{
    bool is_standing = controller->options.elector == NULL, is_logged = false;

    while (is_running(controller)) {
        int64_t term;

        is_standing = is_standing || start_elector(controller, &is_logged);
        term = look_for_term(controller);
        if (!is_running(controller))
            break;
        if (controller->is_open && term != controller->term) {
            close_gate(controller);
        } else if (!controller->is_open && term != KINF__NO_TERM) {
            if (has_another_led(controller, term)) {
                prepare_term(controller, term);
                continue; /* it may be over */
            }
            open_gate(controller, term);
        }
        kinf__own_writes_forget(controller);
        (void)kinf__cond_wait_until(&controller->changed, &controller->lock,
                                    next_look_ms(controller));
    }
}

void *kinf__gate_keep(void *ctx)
{
    struct kinf_controller *controller = ctx;

    kinf__mutex_lock(&controller->lock);
    wait_until_synced(controller);
    keep_gate(controller);
    kinf__mutex_unlock(&controller->lock);
    return NULL;
}
