/*
 * Actions. Neighbours: fault_endpoint.c calls them, store.c has what they change.
 */
#include "sim/fault_control.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/lock.h"
#include "fault/fault_endpoint.h"
#include "apiserver/sim.h"

#define N_ACTIONS 5

struct kinf__fault_control {
    /* constant after start */
    struct kinf__sim *sim;
    struct kinf__fault_action actions[N_ACTIONS];
    struct kinf__fault_endpoint *endpoint;
    struct kinf__mutex lock;
    /* guarded by lock */
    int (*rotate)(void *ctx);
    void *rotate_ctx;
    /* the endpoint's thread */
    struct kinf__backup *backup; /* NULL: none yet */
};

static int back_up(void *ctx, struct kinf_error *err)
{
    struct kinf__fault_control *control = ctx;
    struct kinf__store *store = kinf__sim_store(control->sim);
    struct kinf__backup *backup = NULL;
    int failed;

    kinf__store_lock(store);
    failed = kinf__store_back_up(store, &backup);
    kinf__store_unlock(store);
    if (failed < 0)
        return kinf__error_set(err, failed, "the backup failed");
    kinf__backup_free(control->backup);
    control->backup = backup;
    return 0;
}

static int restore(void *ctx, struct kinf_error *err)
{
    struct kinf__fault_control *control = ctx;
    struct kinf__store *store = kinf__sim_store(control->sim);
    int failed;

    if (control->backup == NULL)
        return kinf__error_set(err, KINF_ERR_STATE, "there is no backup");
    kinf__store_lock(store);
    failed = kinf__store_restore(store, control->backup);
    kinf__store_unlock(store);
    return failed < 0 ? kinf__error_set(err, failed, "the restore failed") : 0;
}

/* As after a restart of the server. */
static int expire(void *ctx, struct kinf_error *err)
{
    struct kinf__fault_control *control = ctx;
    struct kinf__store *store = kinf__sim_store(control->sim);

    (void)err;
    kinf__store_lock(store);
    kinf__store_expire(store);
    kinf__store_unlock(store);
    return 0;
}

static int drop(void *ctx, struct kinf_error *err)
{
    struct kinf__fault_control *control = ctx;

    (void)err;
    kinf__server_cut_off(kinf__sim_server(control->sim));
    return 0;
}

static int rotate(void *ctx, struct kinf_error *err)
{
    struct kinf__fault_control *control = ctx;
    int (*rotate_cb)(void *ctx);
    void *rotate_ctx;

    kinf__mutex_lock(&control->lock);
    rotate_cb = control->rotate;
    rotate_ctx = control->rotate_ctx;
    kinf__mutex_unlock(&control->lock);
    if (rotate_cb == NULL)
        return kinf__error_set(err, KINF_ERR_UNSUPPORTED, "there is no certificate to change");
    return rotate_cb(rotate_ctx) < 0
               ? kinf__error_set(err, KINF_ERR_SYSTEM, "the certificate was not changed")
               : 0;
}

/* --- life --- */

int kinf__fault_control_start(struct kinf__sim *sim, const char *address,
                              struct kinf__fault_control **ret_control, struct kinf_error *err)
{
    struct kinf__fault_control *control = calloc(1, sizeof *control);
    int failed;

    if (control == NULL)
        return kinf__error_no_memory(err);
    control->sim = sim;
    control->actions[0] = (struct kinf__fault_action){ "backup", back_up, control };
    control->actions[1] = (struct kinf__fault_action){ "restore", restore, control };
    control->actions[2] = (struct kinf__fault_action){ "expire", expire, control };
    control->actions[3] = (struct kinf__fault_action){ "drop", drop, control };
    control->actions[4] = (struct kinf__fault_action){ "rotate", rotate, control };
    kinf__mutex_init(&control->lock, KINF__RANK_FAULTS);
    failed = kinf__fault_endpoint_new(kinf__sim_faults(sim), control->actions, N_ACTIONS, address,
                                      &control->endpoint, err);
    if (failed < 0) {
        kinf__fault_control_free(control);
        return failed;
    }
    *ret_control = control;
    return 0;
}

void kinf__fault_control_on_rotate(struct kinf__fault_control *control, int (*rotate_cb)(void *ctx),
                                   void *ctx)
{
    kinf__mutex_lock(&control->lock);
    control->rotate = rotate_cb;
    control->rotate_ctx = ctx;
    kinf__mutex_unlock(&control->lock);
}

const char *kinf__fault_control_url(const struct kinf__fault_control *control)
{
    return kinf__fault_endpoint_url(control->endpoint);
}

void kinf__fault_control_free(struct kinf__fault_control *control)
{
    if (control == NULL)
        return;
    kinf__fault_endpoint_free(control->endpoint);
    kinf__backup_free(control->backup);
    kinf__mutex_release(&control->lock);
    free(control);
}
