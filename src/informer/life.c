/*
 * An informer's life, which its threads share, and who may start, stop and free it. Neighbours: informer.c
 * makes what it consists of, callback.c knows who waits for whom.
 *
 * Invariant: a life goes from new over starting, running and stopping to stopped and never back;
 * who moves it to starting or stopping does the work, without a lock, and everybody else waits.
 */
#include "informer/informer.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/misuse.h"
#include "base/thread.h"
#include "deltafifo/deltafifo.h"
#include "indexer/indexer.h"
#include "informer/callback.h"
#include "rest/client.h"

/* --- threads --- */

static int start_reflector(struct kinf_informer *informer, struct kinf_error *err)
{
    return informer->reflector != NULL ? kinf__reflector_start(informer->reflector, err) : 0;
}

static int start_threads(struct kinf_informer *informer, struct kinf_error *err)
{
    int rc = kinf__handlers_start(&informer->handlers, err);

    if (rc < 0)
        return rc;
    rc = kinf__thread_start(&informer->thread, "kinf-processor", kinf__pop_loop, informer, err);
    informer->has_thread = rc == 0;
    if (rc == 0 && informer->client != NULL)
        kinf__client_add_user(informer->client, &informer->client_node);
    return rc == 0 ? start_reflector(informer, err) : rc;
}

/* Wakes those who wait for the informer. */
static void begin_stop(struct kinf_informer *informer)
{
    kinf__mutex_lock(&informer->status_lock);
    informer->is_stopping = true;
    kinf__state_stopped(&informer->state, kinf__clock_now_ms());
    kinf__cond_broadcast(&informer->status_changed);
    kinf__mutex_unlock(&informer->status_lock);
}

/* The reflector first: what the stop ends there it leaves for free, if it has been interrupted. */
void kinf__informer_interrupt(struct kinf_informer *informer)
{
    if (informer->reflector != NULL)
        kinf__reflector_interrupt(informer->reflector);
    kinf__stop_set(&informer->stop);
    kinf__indexer_interrupt(informer->indexer);
    kinf__handlers_close(&informer->handlers);
    kinf_deltafifo_abort(informer->fifo);
}

/* Everybody is told to stop before anybody is waited for. */
static void shut_down(struct kinf_informer *informer)
{
    kinf__informer_interrupt(informer);
    begin_stop(informer);
    if (informer->client != NULL && informer->has_thread)
        kinf__client_remove_user(informer->client, &informer->client_node);
    kinf__informer_end_progress(informer);
    if (informer->reflector != NULL)
        kinf__reflector_stop(informer->reflector);
    if (informer->has_thread)
        pthread_join(informer->thread, NULL);
    informer->has_thread = false;
    kinf__handlers_join(&informer->handlers);
}

static void set_life(struct kinf_informer *informer, enum kinf__informer_life life)
{
    kinf__mutex_lock(&informer->life_lock);
    informer->life = life;
    kinf__cond_broadcast(&informer->life_changed);
    kinf__mutex_unlock(&informer->life_lock);
}

static bool begin_life(struct kinf_informer *informer)
{
    bool is_new;

    kinf__mutex_lock(&informer->life_lock);
    is_new = informer->life == KINF__LIFE_NEW;
    if (is_new)
        informer->life = KINF__LIFE_STARTING;
    kinf__mutex_unlock(&informer->life_lock);
    return is_new;
}

bool kinf__informer_was_started(struct kinf_informer *informer)
{
    bool was_started;

    kinf__mutex_lock(&informer->life_lock);
    was_started = informer->life != KINF__LIFE_NEW;
    kinf__mutex_unlock(&informer->life_lock);
    return was_started;
}

/* False if it has ended, by somebody else's hand. */
static bool end_life(struct kinf_informer *informer)
{
    bool is_mine;

    kinf__mutex_lock(&informer->life_lock);
    while (informer->life == KINF__LIFE_STARTING || informer->life == KINF__LIFE_STOPPING)
        kinf__cond_wait_until(&informer->life_changed, &informer->life_lock, KINF_FOREVER);
    is_mine = informer->life != KINF__LIFE_STOPPED;
    if (is_mine)
        informer->life = KINF__LIFE_STOPPING;
    kinf__mutex_unlock(&informer->life_lock);
    return is_mine;
}

bool kinf__informer_pause(struct kinf_informer *informer, int64_t delay_ms)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), delay_ms);
    bool is_stopping;

    kinf__mutex_lock(&informer->status_lock);
    while (!informer->is_stopping &&
           kinf__cond_wait_until(&informer->status_changed, &informer->status_lock, deadline_ms))
        continue;
    is_stopping = informer->is_stopping;
    kinf__mutex_unlock(&informer->status_lock);
    return !is_stopping;
}

/* --- whose it is --- */

void kinf__informer_lend(struct kinf_informer *informer)
{
    informer->is_lent = true;
}

static int refuse_lent(const struct kinf_informer *informer, const char *what,
                       struct kinf_error *err)
{
    return informer->is_lent
               ? kinf__misuse(err, KINF_ERR_STATE,
                              "%s: the informer is not %s by hand: its factory, or its namespaces, "
                              "have lent it",
                              informer->type->resource, what)
               : 0;
}

void kinf__informer_hold(struct kinf_informer *informer)
{
    kinf__mutex_lock(&informer->life_lock);
    informer->n_controllers++;
    kinf__mutex_unlock(&informer->life_lock);
}

int kinf__informer_start_held(struct kinf_informer *informer, struct kinf_error *err)
{
    int failed = kinf_informer_start(informer, err);

    kinf__mutex_lock(&informer->life_lock);
    informer->is_theirs = informer->is_theirs || failed == 0;
    kinf__mutex_unlock(&informer->life_lock);
    return failed;
}

/* True for the last that has it, which has it on while it stops it. */
static bool let_go_but_last(struct kinf_informer *informer)
{
    bool is_last;

    kinf__mutex_lock(&informer->life_lock);
    is_last = informer->n_controllers == 1 && informer->is_theirs;
    informer->n_controllers -= !is_last;
    kinf__mutex_unlock(&informer->life_lock);
    return is_last;
}

void kinf__informer_let_go(struct kinf_informer *informer)
{
    if (!let_go_but_last(informer))
        return;
    (void)kinf_informer_stop(informer, NULL);
    kinf__mutex_lock(&informer->life_lock);
    informer->n_controllers--;
    kinf__mutex_unlock(&informer->life_lock);
}

bool kinf__informer_is_held(struct kinf_informer *informer)
{
    bool is_held;

    kinf__mutex_lock(&informer->life_lock);
    is_held = informer->n_controllers != 0;
    kinf__mutex_unlock(&informer->life_lock);
    return is_held;
}

void kinf__informer_refuse_held(const struct kinf_informer *informer)
{
    (void)kinf__misuse(NULL, KINF_ERR_STATE,
                       "%s: an informer is not freed before the controllers that have it are "
                       "stopped",
                       informer->type->resource);
}

void kinf__informer_free(struct kinf_informer *informer)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (informer == NULL)
        return;
    if (kinf__informer_stop(informer, &err) < 0) {
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_ERROR, "not freed resource=%s error=%s",
                  informer->type->resource, KINF__QUOTED(err.message));
        return;
    }
    kinf__informer_release(informer);
}

void kinf_informer_free(struct kinf_informer *informer)
{
    if (informer == NULL || refuse_lent(informer, "freed", NULL) < 0)
        return;
    if (kinf__informer_is_held(informer))
        kinf__informer_refuse_held(informer);
    else
        kinf__informer_free(informer);
}

void kinf_informer_free_ptr(struct kinf_informer **informer)
{
    KINF__REFUSE_NULL(NULL, , informer);
    kinf_informer_free(*informer);
}

int kinf__informer_start(struct kinf_informer *informer, struct kinf_error *err)
{
    int rc;

    if (!begin_life(informer))
        return kinf__error_set(err, KINF_ERR_STATE, "the informer was started or stopped before");
    rc = start_threads(informer, err);
    if (rc < 0)
        shut_down(informer);
    set_life(informer, rc < 0 ? KINF__LIFE_STOPPED : KINF__LIFE_RUNNING);
    return rc;
}

int kinf_informer_start(struct kinf_informer *informer, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer);

    int rc;

    rc = refuse_lent(informer, "started", err);
    return rc < 0 ? rc : kinf__informer_start(informer, err);
}

int kinf__informer_stop(struct kinf_informer *informer, struct kinf_error *err)
{
    struct kinf__callback_wait wait;

    if (!kinf__callback_begin_wait(&wait, informer))
        return kinf__error_set(err, KINF_ERR_STATE,
                               "%s: an informer cannot be stopped from its own callback, nor from "
                               "one that it waits for",
                               informer->type->resource);
    if (end_life(informer)) {
        shut_down(informer);
        set_life(informer, KINF__LIFE_STOPPED);
    }
    kinf__callback_end_wait(&wait);
    return 0;
}

int kinf_informer_stop(struct kinf_informer *informer, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer);

    int rc;

    rc = refuse_lent(informer, "stopped", err);
    return rc < 0 ? rc : kinf__informer_stop(informer, err);
}
