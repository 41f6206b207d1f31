/*
 * The queue as threads see it. Neighbours: keys.c has the keys, requeue.c the rate limit, report.c
 * the metrics.
 *
 * Who waits for a key also waits for what is for later: one of them until the first of it is due
 * (watched_ms), the others until they are woken. So whoever unlocks has to see to it that somebody
 * is awake when a key waits, or when the first one is due before anybody wakes up (unlock()).
 */
#include "queue/queue_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"

const char *kinf_priority_to_string(enum kinf_priority priority)
{
    switch (priority) {
#define X(priority, value, name, what)                                                             \
    case priority:                                                                                 \
        return name;
        KINF_PRIORITIES(X)
#undef X
    }
    return "unknown";
}

/* --- life --- */

static int fill(struct kinf_queue *queue, const struct kinf_queue_options *options,
                struct kinf_error *err)
{
    int rc = kinf__requeue_init(&queue->requeue, options, err);

    if (rc == 0 && options->name != NULL && (queue->name = strdup(options->name)) == NULL)
        rc = kinf__error_no_memory(err);
    return rc;
}

int kinf_queue_new(const struct kinf_queue_options *options, struct kinf_queue **ret_queue,
                   struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, ret_queue);

    struct kinf_queue_options own = KINF_QUEUE_OPTIONS_INIT;
    struct kinf_queue *queue;
    int rc = 0;

    if (options != NULL)
        rc = kinf__options_read(&own, sizeof own, options, "struct kinf_queue_options", err);
    if (rc < 0)
        return rc;
    queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return kinf__error_no_memory(err);
    rc = fill(queue, &own, err);
    if (rc < 0) {
        free(queue);
        return rc;
    }
    queue->watched_ms = KINF__NEVER_MS;
    kinf__keys_init(&queue->keys);
    kinf__mutex_init(&queue->lock, KINF__RANK_QUEUE);
    kinf__cond_init(&queue->awaited);
    kinf__cond_init(&queue->ended);
    *ret_queue = queue;
    return 0;
}

static bool is_waited_for(struct kinf_queue *queue)
{
    bool is;

    kinf__mutex_lock(&queue->lock);
    is = queue->n_getters != 0 || queue->n_drainers != 0;
    kinf__mutex_unlock(&queue->lock);
    return is;
}

void kinf_queue_free(struct kinf_queue *queue)
{
    if (queue == NULL)
        return;
    if (is_waited_for(queue)) {
        (void)kinf__misuse(NULL, KINF_ERR_STATE,
                           "kinf_queue_free: somebody waits in the queue; it is not freed");
        return;
    }
    kinf__cond_release(&queue->ended);
    kinf__cond_release(&queue->awaited);
    kinf__mutex_release(&queue->lock);
    kinf__keys_release(&queue->keys);
    free(queue->name);
    free(queue);
}

void kinf_queue_free_ptr(struct kinf_queue **queue)
{
    KINF__REFUSE_NULL(NULL, , queue);
    kinf_queue_free(*queue);
}

/* --- waking --- */

static uint64_t hash_of(const char *key)
{
    return kinf__hash(kinf_str_from(key));
}

/* When the first key is due that is for later. */
static int64_t due_ms_locked(const struct kinf_queue *queue) KINF__REQUIRES(queue->lock)
{
    return queue->keys.later.first != NULL && !queue->is_shut_down ? queue->keys.later.first->at_ms
                                                                   : KINF__NEVER_MS;
}

int64_t kinf__queue_wake_due_locked(struct kinf_queue *queue)
{
    int64_t now_ns = kinf__clock_now_ns();

    if (!queue->is_shut_down)
        kinf__keys_wake(&queue->keys, now_ns / 1000000);
    return now_ns;
}

static bool has_ended_locked(const struct kinf_queue *queue) KINF__REQUIRES(queue->lock)
{
    return kinf__keys_n_waiting(&queue->keys) == 0 && queue->keys.n_in_process == 0;
}

int64_t kinf__queue_due_ms(struct kinf_queue *queue)
{
    int64_t due_ms;

    kinf__mutex_lock(&queue->lock);
    (void)kinf__queue_wake_due_locked(queue);
    due_ms = has_ended_locked(queue) ? due_ms_locked(queue) : 0;
    kinf__mutex_unlock(&queue->lock);
    return due_ms;
}

static void unlock(struct kinf_queue *queue) KINF__RELEASES(queue->lock)
{
    bool is_awaited = queue->n_getters != 0 && (kinf__keys_n_waiting(&queue->keys) != 0 ||
                                                due_ms_locked(queue) < queue->watched_ms);

    kinf__mutex_unlock(&queue->lock);
    if (is_awaited)
        kinf__cond_signal(&queue->awaited);
}

/* --- adding --- */

/* A part of a millisecond counts as a whole: nothing comes early. */
static int64_t due_ms(int64_t now_ns, int64_t delay_ms)
{
    return kinf__clock_add_ms((now_ns + 999999) / 1000000, delay_ms);
}

static int add_locked(struct kinf_queue *queue, const char *text, uint64_t hash,
                      const struct kinf_queue_add_options *options) KINF__REQUIRES(queue->lock)
{
    int64_t now_ns = kinf__queue_wake_due_locked(queue), delay_ms = options->delay_ms;
    struct kinf__queue_key *key;

    if (queue->is_shut_down)
        return KINF_ERR_STOPPED;
    if (kinf__keys_provide(&queue->keys, text, hash, &key) < 0)
        return KINF_ERR_NO_MEMORY;
    if (options->is_rate_limited) {
        int64_t wait_ms =
            kinf__requeue_delay_ms(&queue->requeue, key->n_requeues++, now_ns / 1000000);

        delay_ms = wait_ms > delay_ms ? wait_ms : delay_ms;
    }
    queue->n_retries += options->is_rate_limited || delay_ms > 0;
    if (delay_ms > 0)
        kinf__keys_add_later(&queue->keys, key, options->priority, due_ms(now_ns, delay_ms));
    else
        kinf__keys_add(&queue->keys, key, options->priority, now_ns);
    return 0;
}

static int fail(int code, struct kinf_error *err)
{
    if (code == KINF_ERR_NO_MEMORY)
        return kinf__error_no_memory(err);
    return kinf__error_set(err, (enum kinf_errc)code, "the queue is shut down");
}

static int add(struct kinf_queue *queue, const char *key,
               const struct kinf_queue_add_options *options, struct kinf_error *err)
{
    uint64_t hash = hash_of(key);
    int rc;

    kinf__mutex_lock(&queue->lock);
    rc = add_locked(queue, key, hash, options);
    unlock(queue);
    return rc == 0 ? 0 : fail(rc, err);
}

int kinf_queue_add(struct kinf_queue *queue, const char *key, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, queue, key);
    return add(queue, key, &(struct kinf_queue_add_options)KINF_QUEUE_ADD_OPTIONS_INIT, err);
}

int kinf_queue_add_after(struct kinf_queue *queue, const char *key, int64_t delay_ms,
                         struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, queue, key);
    return add(queue, key, &(struct kinf_queue_add_options){ .delay_ms = delay_ms }, err);
}

int kinf_queue_add_rate_limited(struct kinf_queue *queue, const char *key, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, queue, key);
    return add(queue, key, &(struct kinf_queue_add_options){ .is_rate_limited = true }, err);
}

int kinf_queue_add_with(struct kinf_queue *queue, const char *key,
                        const struct kinf_queue_add_options *options, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, queue, key, options);

    struct kinf_queue_add_options own;
    int rc = kinf__options_read(&own, sizeof own, options, "struct kinf_queue_add_options", err);

    if (rc < 0)
        return rc;
    if (own.priority < KINF_PRIORITY_LOW || own.priority > KINF_PRIORITY_HIGH)
        return kinf__error_set(err, KINF_ERR_INVALID, "no such priority: %d", (int)own.priority);
    return add(queue, key, &own, err);
}

void kinf_queue_forget(struct kinf_queue *queue, const char *key)
{
    KINF__REFUSE_NULL(NULL, , queue, key);

    uint64_t hash = hash_of(key);
    struct kinf__queue_key *found;

    kinf__mutex_lock(&queue->lock);
    found = kinf__keys_find(&queue->keys, key, hash);
    if (found != NULL)
        kinf__keys_forget(&queue->keys, found);
    kinf__mutex_unlock(&queue->lock);
}

unsigned kinf_queue_n_requeues(struct kinf_queue *queue, const char *key)
{
    KINF__REFUSE_NULL(NULL, 0, queue, key);

    uint64_t hash = hash_of(key);
    const struct kinf__queue_key *found;
    unsigned n_requeues;

    kinf__mutex_lock(&queue->lock);
    found = kinf__keys_find(&queue->keys, key, hash);
    n_requeues = found != NULL ? found->n_requeues : 0;
    kinf__mutex_unlock(&queue->lock);
    return n_requeues;
}

/* --- working --- */

/* Returns false when the time is over. */
static bool wait_locked(struct kinf_queue *queue, int64_t deadline_ms) KINF__REQUIRES(queue->lock)
{
    int64_t until_ms = due_ms_locked(queue);
    bool watches = until_ms < queue->watched_ms;

    if (watches)
        queue->watched_ms = until_ms;
    queue->n_getters++;
    kinf__cond_wait_until(&queue->awaited, &queue->lock,
                          watches && until_ms < deadline_ms ? until_ms : deadline_ms);
    queue->n_getters--;
    if (watches && queue->watched_ms == until_ms)
        queue->watched_ms = KINF__NEVER_MS;
    return kinf__clock_now_ms() < deadline_ms;
}

static int take_locked(struct kinf_queue *queue, int64_t deadline_ms,
                       struct kinf__queue_key **ret_key) KINF__REQUIRES(queue->lock)
{
    bool in_time = true;

    for (;;) {
        int64_t now_ns = kinf__queue_wake_due_locked(queue);

        if (kinf__keys_n_waiting(&queue->keys) != 0) {
            *ret_key = kinf__keys_take(&queue->keys, now_ns);
            queue->n_gets++;
            return 0;
        }
        if (queue->is_shut_down)
            return KINF_ERR_STOPPED;
        if (!in_time)
            return KINF_ERR_TIMEOUT;
        in_time = wait_locked(queue, deadline_ms);
    }
}

int kinf_queue_get(struct kinf_queue *queue, int64_t timeout_ms, const char **ret_key,
                   struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, queue, ret_key);

    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms);
    struct kinf__queue_key *key = NULL;
    int rc;

    kinf__mutex_lock(&queue->lock);
    rc = take_locked(queue, deadline_ms, &key);
    if (rc == 0)
        kinf__histogram_observe(&queue->waits, key->began_ns - key->since_ns);
    unlock(queue);
    if (rc == KINF_ERR_TIMEOUT)
        return kinf__error_set(err, KINF_ERR_TIMEOUT, "no key came in time");
    if (rc < 0)
        return fail(rc, err);
    *ret_key = key->text;
    return 0;
}

static struct kinf__queue_key *find_in_process_locked(const struct kinf_queue *queue,
                                                      const char *text, uint64_t hash)
    KINF__REQUIRES(queue->lock)
{
    struct kinf__queue_key *key = kinf__keys_find(&queue->keys, text, hash);

    return key != NULL && key->state == KINF__KEY_IN_PROCESS ? key : NULL;
}

enum kinf_priority kinf_queue_priority(struct kinf_queue *queue, const char *key)
{
    KINF__REFUSE_NULL(NULL, KINF_PRIORITY_NORMAL, queue, key);

    uint64_t hash = hash_of(key);
    const struct kinf__queue_key *found;
    enum kinf_priority priority;

    kinf__mutex_lock(&queue->lock);
    found = find_in_process_locked(queue, key, hash);
    priority = found != NULL ? (enum kinf_priority)found->priority : KINF_PRIORITY_NORMAL;
    kinf__mutex_unlock(&queue->lock);
    return priority;
}

static bool fails_again(const struct kinf_error *failure)
{
    return kinf_error_is_invalid(failure) || (failure != NULL && failure->code == KINF_ERR_INVALID);
}

int kinf_queue_add_failed(struct kinf_queue *queue, const char *key,
                          const struct kinf_error *failure, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, queue, key);

    struct kinf_queue_add_options how = { .is_rate_limited = true };

    if (fails_again(failure)) {
        kinf_queue_forget(queue, key);
        return 0;
    }
    how.delay_ms = failure != NULL ? failure->retry_after_ms : 0;
    how.priority = kinf_queue_priority(queue, key);
    return add(queue, key, &how, err);
}

static void done_locked(struct kinf_queue *queue, struct kinf__queue_key *key)
    KINF__REQUIRES(queue->lock)
{
    kinf__histogram_observe(&queue->works, kinf__clock_now_ns() - key->began_ns);
    queue->n_done++;
    kinf__keys_done(&queue->keys, key);
    if (queue->n_drainers != 0 && has_ended_locked(queue))
        kinf__cond_broadcast(&queue->ended);
}

void kinf_queue_done(struct kinf_queue *queue, const char *key)
{
    KINF__REFUSE_NULL(NULL, , queue, key);

    uint64_t hash = hash_of(key);
    struct kinf__queue_key *found;

    kinf__mutex_lock(&queue->lock);
    found = find_in_process_locked(queue, key, hash);
    if (found != NULL)
        done_locked(queue, found);
    unlock(queue);
    if (found == NULL)
        (void)kinf__misuse(NULL, KINF_ERR_STATE, "kinf_queue_done: '%s' is not in process", key);
}

/* --- the end --- */

static void shut_down_locked(struct kinf_queue *queue) KINF__REQUIRES(queue->lock)
{
    (void)kinf__queue_wake_due_locked(queue);
    queue->is_shut_down = true;
    kinf__cond_broadcast(&queue->awaited);
}

void kinf_queue_shut_down(struct kinf_queue *queue)
{
    KINF__REFUSE_NULL(NULL, , queue);
    kinf__mutex_lock(&queue->lock);
    shut_down_locked(queue);
    queue->n_shut_downs++;
    kinf__cond_broadcast(&queue->ended);
    kinf__mutex_unlock(&queue->lock);
}

static int wait_ended_locked(struct kinf_queue *queue, int64_t deadline_ms)
    KINF__REQUIRES(queue->lock)
{
    unsigned n_shut_downs = queue->n_shut_downs;
    bool in_time = true;

    while (!has_ended_locked(queue)) {
        if (queue->n_shut_downs != n_shut_downs)
            return KINF_ERR_STOPPED;
        if (!in_time)
            return KINF_ERR_TIMEOUT;
        queue->n_drainers++;
        in_time = kinf__cond_wait_until(&queue->ended, &queue->lock, deadline_ms);
        queue->n_drainers--;
    }
    return 0;
}

int kinf_queue_drain(struct kinf_queue *queue, int64_t timeout_ms, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, queue);

    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms);
    size_t n_waiting, n_in_process;
    int rc;

    kinf__mutex_lock(&queue->lock);
    shut_down_locked(queue);
    rc = wait_ended_locked(queue, deadline_ms);
    n_waiting = kinf__keys_n_waiting(&queue->keys);
    n_in_process = queue->keys.n_in_process;
    kinf__mutex_unlock(&queue->lock);
    if (rc == KINF_ERR_TIMEOUT)
        return kinf__error_set(err, KINF_ERR_TIMEOUT,
                               "the queue did not drain in time: %zu keys wait, %zu are in process",
                               n_waiting, n_in_process);
    return rc == 0 ? 0 : fail(rc, err);
}

bool kinf_queue_is_shut_down(struct kinf_queue *queue)
{
    KINF__REFUSE_NULL(NULL, false, queue);

    bool is_shut_down;

    kinf__mutex_lock(&queue->lock);
    is_shut_down = queue->is_shut_down;
    kinf__mutex_unlock(&queue->lock);
    return is_shut_down;
}

/* --- soundness --- */

/* Who wakes up first is somebody; who ended has nothing that is due. */
bool kinf__queue_check(struct kinf_queue *queue)
{
    bool is_sound;

    kinf__mutex_lock(&queue->lock);
    is_sound = kinf__keys_check(&queue->keys) &&
               (queue->n_getters != 0 || queue->watched_ms == KINF__NEVER_MS) &&
               (queue->n_shut_downs == 0 || queue->is_shut_down) &&
               queue->n_gets == queue->n_done + queue->keys.n_in_process;
    kinf__mutex_unlock(&queue->lock);
    return is_sound;
}
