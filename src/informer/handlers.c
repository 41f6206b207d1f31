/*
 * Who listens, and the threads of those who do. Neighbours: processor.c tells their subscriptions,
 * listener.c is what a thread runs.
 *
 * Invariants: a listener is in `listeners` until it is removed and then in `leaving` until it is
 * joined; whoever claims it there, and nobody else, joins it, without the lock. In `leaving` it has
 * no subscription any more. A thread's last act under the lock is to claim those that are done, and
 * then to be done itself: so who joins one that is done waits for those before it at most.
 * A dispatched one that leaves while it is told something is joined by who dispatches it. The waker
 * is set exactly if something waits for one of `listeners` when no dispatch is under way, or merged
 * away meanwhile: it is cleared first and what waits is looked at then, so no push is overlooked.
 */
#include "informer/handlers.h"

#include "base/error.h"
#include "base/thread.h"
#include "informer/callback.h"

static struct kinf__listener *listener_of(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct kinf__listener, in_owner);
}

static struct kinf__listener *find(struct kinf__list *list, kinf_handler_id id)
{
    KINF__LIST_FOR_EACH (node, list) {
        if (listener_of(node)->id == id)
            return listener_of(node);
    }
    return NULL;
}

void kinf__handlers_init(struct kinf__handlers *handlers, const void *owner,
                         struct kinf__processor *const *processors, size_t n_processors)
{
    *handlers = (struct kinf__handlers){
        .owner = owner, .processors = processors, .n_processors = n_processors, .waker.fd = -1
    };
    kinf__mutex_init(&handlers->lock, KINF__RANK_HANDLERS);
    kinf__cond_init(&handlers->gone);
    kinf__list_init(&handlers->listeners);
    kinf__list_init(&handlers->leaving);
    kinf__list_init(&handlers->joined);
}

void kinf__handlers_release(struct kinf__handlers *handlers)
{
    kinf__handlers_close(handlers);
    kinf__handlers_join(handlers);
    KINF__LIST_FOR_EACH_SAFE (node, &handlers->joined)
        kinf__listener_free(listener_of(node));
    kinf__waker_release(&handlers->waker);
    kinf__cond_release(&handlers->gone);
    kinf__mutex_release(&handlers->lock);
}

/* --- their end --- */

/* The caller has claimed it; its callbacks and on_done may be running or still to come. One without
 * a thread is told on_done here. */
static void join_claimed(struct kinf__handlers *handlers, struct kinf__listener *listener)
{
    bool is_closed;

    if (listener->has_thread)
        pthread_join(listener->thread, NULL);
    else
        kinf__listener_run(listener, handlers->owner);
    kinf__mutex_lock(&handlers->lock);
    kinf__list_remove(&listener->in_owner);
    is_closed = handlers->is_closed;
    if (is_closed)
        kinf__list_push_back(&handlers->joined, &listener->in_owner);
    kinf__cond_broadcast(&handlers->gone);
    kinf__mutex_unlock(&handlers->lock);
    if (!is_closed)
        kinf__listener_free(listener);
}

static void join_locked(struct kinf__handlers *handlers, struct kinf__listener *listener)
    KINF__REQUIRES(handlers->lock)
{
    listener->is_claimed = true;
    kinf__mutex_unlock(&handlers->lock);
    join_claimed(handlers, listener);
    kinf__mutex_lock(&handlers->lock);
}

/* Whether it is somebody else's to join. */
static bool is_taken(const struct kinf__listener *listener)
{
    return listener->is_claimed || listener->is_telling;
}

/* One that leaves, for this thread to join; NULL if there is none. */
static struct kinf__listener *find_leaving(struct kinf__handlers *handlers, bool only_done)
    KINF__REQUIRES(handlers->lock)
{
    KINF__LIST_FOR_EACH (node, &handlers->leaving) {
        struct kinf__listener *listener = listener_of(node);

        if (!is_taken(listener) && (listener->is_done || !only_done))
            return listener;
    }
    return NULL;
}

static void join_all_locked(struct kinf__handlers *handlers, bool only_done)
    KINF__REQUIRES(handlers->lock)
{
    struct kinf__listener *listener;

    while ((listener = find_leaving(handlers, only_done)) != NULL)
        join_locked(handlers, listener);
}

static void *run(void *ctx)
{
    struct kinf__listener *listener = ctx;
    struct kinf__handlers *handlers = listener->handlers;

    /* Who adds it has the lock until the id is written, by which callbacks remove it. */
    kinf__mutex_lock(&handlers->lock);
    kinf__mutex_unlock(&handlers->lock);
    kinf__listener_run(listener, handlers->owner);
    kinf__mutex_lock(&handlers->lock);
    join_all_locked(handlers, true);
    listener->is_done = true;
    kinf__mutex_unlock(&handlers->lock);
    return NULL;
}

static int start_thread(struct kinf__listener *listener, struct kinf_error *err)
{
    int rc;

    if (listener->waker != NULL)
        return 0;
    rc = kinf__thread_start(&listener->thread, "kinf-listener", run, listener, err);
    listener->has_thread = rc == 0;
    return rc;
}

/* --- dispatching --- */

static int make_waker_locked(struct kinf__handlers *handlers, struct kinf_error *err)
    KINF__REQUIRES(handlers->lock)
{
    return handlers->waker.fd < 0 ? kinf__waker_init(&handlers->waker, err) : 0;
}

/* Sets the waker if something is to be told; how many. */
static size_t update_waker_locked(struct kinf__handlers *handlers) KINF__REQUIRES(handlers->lock)
{
    size_t n = 0;

    if (handlers->waker.fd < 0)
        return 0;
    kinf__waker_clear(&handlers->waker);
    KINF__LIST_FOR_EACH (node, &handlers->listeners) {
        if (listener_of(node)->waker != NULL)
            n += kinf__listener_arm(listener_of(node));
    }
    if (n != 0)
        kinf__waker_set(&handlers->waker);
    return n;
}

int kinf__handlers_fd(struct kinf__handlers *handlers, int *ret_fd, struct kinf_error *err)
{
    int rc;

    kinf__mutex_lock(&handlers->lock);
    rc = make_waker_locked(handlers, err);
    if (rc == 0)
        *ret_fd = handlers->waker.fd;
    kinf__mutex_unlock(&handlers->lock);
    return rc;
}

/* The next one that there is something for. */
static struct kinf__listener *find_waiting(struct kinf__handlers *handlers)
    KINF__REQUIRES(handlers->lock)
{
    KINF__LIST_FOR_EACH (node, &handlers->listeners) {
        struct kinf__listener *listener = listener_of(node);

        if (listener->waker != NULL && kinf__listener_arm(listener) != 0)
            return listener;
    }
    return NULL;
}

/* Then it is the others' turn. */
static size_t tell_locked(struct kinf__handlers *handlers, struct kinf__listener *listener,
                          size_t max) KINF__REQUIRES(handlers->lock)
{
    size_t n;

    kinf__list_remove(&listener->in_owner);
    kinf__list_push_back(&handlers->listeners, &listener->in_owner);
    listener->is_telling = true;
    kinf__mutex_unlock(&handlers->lock);
    n = kinf__listener_tell(listener, max < KINF__BACKLOG_TAKE ? max : KINF__BACKLOG_TAKE,
                            handlers->owner);
    kinf__mutex_lock(&handlers->lock);
    listener->is_telling = false;
    if (find(&handlers->leaving, listener->id) != NULL)
        join_locked(handlers, listener);
    return n;
}

static void dispatch_locked(struct kinf__handlers *handlers, size_t max)
    KINF__REQUIRES(handlers->lock)
{
    struct kinf__listener *listener;

    handlers->is_dispatching = true;
    while (max != 0 && (listener = find_waiting(handlers)) != NULL)
        max -= tell_locked(handlers, listener, max);
    handlers->is_dispatching = false;
    kinf__cond_broadcast(&handlers->gone);
}

int kinf__handlers_dispatch(struct kinf__handlers *handlers, size_t max, size_t *ret_n_waiting,
                            struct kinf_error *err)
{
    size_t n_waiting = 0;
    int rc = 0;

    if (kinf__callback_owner() != NULL)
        return kinf__error_set(err, KINF_ERR_STATE, "a callback cannot dispatch");
    kinf__mutex_lock(&handlers->lock);
    if (handlers->is_closed)
        rc = kinf__error_set(err, KINF_ERR_STOPPED, "the informer has stopped");
    else if (handlers->is_dispatching)
        rc = kinf__error_set(err, KINF_ERR_STATE, "another thread dispatches");
    if (rc == 0) {
        dispatch_locked(handlers, max);
        n_waiting = update_waker_locked(handlers);
    }
    kinf__mutex_unlock(&handlers->lock);
    if (rc == 0 && ret_n_waiting != NULL)
        *ret_n_waiting = n_waiting;
    return rc;
}

/* --- joining --- */

int kinf__handlers_start(struct kinf__handlers *handlers, struct kinf_error *err)
{
    int rc = 0;

    kinf__mutex_lock(&handlers->lock);
    if (handlers->is_started || handlers->is_closed)
        rc = kinf__error_set(err, KINF_ERR_STATE, "the informer was started or stopped before");
    handlers->is_started = true;
    KINF__LIST_FOR_EACH (node, &handlers->listeners) {
        if (rc == 0)
            rc = start_thread(listener_of(node), err);
    }
    kinf__mutex_unlock(&handlers->lock);
    return rc;
}

static void unsubscribe(struct kinf__handlers *handlers, struct kinf__listener *listener)
{
    for (size_t i = 0; i < handlers->n_processors; i++)
        kinf__processor_unsubscribe(handlers->processors[i], &listener->subscriptions[i]);
}

/* The thread comes last: until every subscription is there, nothing is told. */
static int subscribe_locked(struct kinf__handlers *handlers, struct kinf__listener *listener,
                            int64_t now_ms, struct kinf_error *err) KINF__REQUIRES(handlers->lock)
{
    int rc = 0;

    if (listener->handler.is_dispatched) {
        rc = make_waker_locked(handlers, err);
        listener->waker = &handlers->waker;
    }
    for (size_t i = 0; rc == 0 && i < handlers->n_processors; i++)
        rc = kinf__processor_subscribe(handlers->processors[i], &listener->subscriptions[i], now_ms,
                                       err);
    return rc == 0 && handlers->is_started ? start_thread(listener, err) : rc;
}

static int add_locked(struct kinf__handlers *handlers, const struct kinf_handler *handler,
                      int64_t now_ms, kinf_handler_id *ret_id, struct kinf_error *err)
    KINF__REQUIRES(handlers->lock)
{
    static _Atomic(kinf_handler_id)
        last_id; /* of all in the process: metrics have them as labels */
    struct kinf__listener *listener;
    int rc;

    if (handlers->is_closed)
        return kinf__error_set(err, KINF_ERR_STOPPED, "the informer has stopped");
    rc = kinf__listener_new(handler, handlers->n_processors, now_ms, &listener, err);
    if (rc < 0)
        return rc;
    listener->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    listener->handlers = handlers;
    rc = subscribe_locked(handlers, listener, now_ms, err);
    if (rc < 0) {
        unsubscribe(handlers, listener);
        kinf__listener_free(listener);
        return rc;
    }
    kinf__list_push_back(&handlers->listeners, &listener->in_owner);
    update_waker_locked(handlers);
    *ret_id = listener->id;
    return 0;
}

int kinf__handlers_add(struct kinf__handlers *handlers, const struct kinf_handler *handler,
                       int64_t now_ms, kinf_handler_id *ret_id, struct kinf_error *err)
{
    int rc;

    kinf__mutex_lock(&handlers->lock);
    join_all_locked(handlers, true);
    rc = add_locked(handlers, handler, now_ms, ret_id, err);
    kinf__mutex_unlock(&handlers->lock);
    return rc;
}

/* --- leaving --- */

static void remove_locked(struct kinf__handlers *handlers, struct kinf__listener *listener)
    KINF__REQUIRES(handlers->lock)
{
    unsubscribe(handlers, listener);
    kinf__list_remove(&listener->in_owner);
    kinf__list_push_back(&handlers->leaving, &listener->in_owner);
    kinf__listener_remove(listener);
    update_waker_locked(handlers);
}

/* Returns when the listener is gone, or left to others because this thread must not wait. */
static void join_one_locked(struct kinf__handlers *handlers, kinf_handler_id id)
    KINF__REQUIRES(handlers->lock)
{
    bool may_wait = kinf__callback_owner() == NULL;
    struct kinf__listener *listener;

    while ((listener = find(&handlers->leaving, id)) != NULL &&
           (may_wait || (!listener->has_thread && !is_taken(listener)))) {
        if (is_taken(listener))
            kinf__cond_wait_until(&handlers->gone, &handlers->lock, KINF_FOREVER);
        else
            join_locked(handlers, listener);
    }
}

void kinf__handlers_remove(struct kinf__handlers *handlers, kinf_handler_id id)
{
    struct kinf__listener *listener;

    kinf__mutex_lock(&handlers->lock);
    listener = find(&handlers->listeners, id);
    if (listener != NULL)
        remove_locked(handlers, listener);
    join_one_locked(handlers, id);
    join_all_locked(handlers, true);
    kinf__mutex_unlock(&handlers->lock);
}

void kinf__handlers_close(struct kinf__handlers *handlers)
{
    kinf__mutex_lock(&handlers->lock);
    handlers->is_closed = true;
    KINF__LIST_FOR_EACH_SAFE (node, &handlers->listeners)
        remove_locked(handlers, listener_of(node));
    kinf__mutex_unlock(&handlers->lock);
}

void kinf__handlers_join(struct kinf__handlers *handlers)
{
    kinf__mutex_lock(&handlers->lock);
    join_all_locked(handlers, false);
    while (!kinf__list_is_empty(&handlers->leaving) || handlers->is_dispatching)
        kinf__cond_wait_until(&handlers->gone, &handlers->lock, KINF_FOREVER);
    kinf__mutex_unlock(&handlers->lock);
}

/* --- status, check --- */

bool kinf__handlers_has_synced(struct kinf__handlers *handlers, kinf_handler_id id)
{
    struct kinf_handler_status status = { .has_synced = false };

    (void)kinf__handlers_status(handlers, id, 0, &status);
    return status.has_synced;
}

bool kinf__handlers_status(struct kinf__handlers *handlers, kinf_handler_id id, int64_t now_ms,
                           struct kinf_handler_status *ret_status)
{
    struct kinf__listener *listener;

    kinf__mutex_lock(&handlers->lock);
    listener = find(&handlers->listeners, id);
    if (listener != NULL)
        kinf__listener_status(listener, now_ms, ret_status);
    kinf__mutex_unlock(&handlers->lock);
    return listener != NULL;
}

static bool list_is_sound(struct kinf__list *list, bool is_leaving)
{
    KINF__LIST_FOR_EACH (node, list) {
        struct kinf__listener *listener = listener_of(node);

        if (atomic_load(&listener->is_removed) != is_leaving ||
            (listener->has_thread && listener->waker != NULL) || !kinf__listener_check(listener))
            return false;
    }
    return true;
}

bool kinf__handlers_check(struct kinf__handlers *handlers)
{
    bool is_sound;

    kinf__mutex_lock(&handlers->lock);
    is_sound =
        list_is_sound(&handlers->listeners, false) && list_is_sound(&handlers->leaving, true);
    kinf__mutex_unlock(&handlers->lock);
    return is_sound;
}
