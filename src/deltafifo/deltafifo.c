/*
 * The queue between reflector and store: what both orders share. Neighbours: the reflector
 * produces, the informer's processor thread consumes; keyed.c and in_order.c hold what is queued.
 *
 * Invariants: one consumer at a time, and no lock is held while it processes; a producer that takes its
 * place does so while it waits. An initial population
 * is what was queued when the first Replace populated the queue; each time the consumer takes
 * something while it is not over, that is one of it.
 */
#include "deltafifo/deltafifo.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "deltafifo/deltafifo_priv.h"

#define CORKED_MAX_ITEMS 64
#define CORKED_MAX_BYTES ((size_t)1 << 20)

static const struct kinf__fifo_ops *const ops_by_order[] = {
    [KINF_FIFO_KEYED] = &kinf__fifo_keyed_ops,
    [KINF_FIFO_IN_ORDER] = &kinf__fifo_in_order_ops,
};

const char *kinf_fifo_order_to_string(enum kinf_fifo_order order)
{
    static const char *const names[] = {
        [KINF_FIFO_KEYED] = "keyed",
        [KINF_FIFO_IN_ORDER] = "in order",
    };

    return (size_t)order < KINF__ARRAY_LEN(names) ? names[order] : "unknown";
}

const char *kinf_delta_type_to_string(enum kinf_delta_type type)
{
    static const char *const names[] = {
        [KINF_DELTA_ADDED] = "Added",      [KINF_DELTA_UPDATED] = "Updated",
        [KINF_DELTA_DELETED] = "Deleted",  [KINF_DELTA_REPLACED] = "Replaced",
        [KINF_DELTA_SYNC] = "Sync",        [KINF_DELTA_REPLACED_ALL] = "ReplacedAll",
        [KINF_DELTA_SYNC_ALL] = "SyncAll", [KINF_DELTA_BOOKMARK] = "Bookmark",
    };

    return (size_t)type < KINF__ARRAY_LEN(names) ? names[type] : "Unknown";
}

/* --- life --- */

static int check_options(const struct kinf_deltafifo_options *options, struct kinf_error *err)
{
    const struct kinf_known_objects *known = &options->known;

    if ((size_t)options->order >= KINF__ARRAY_LEN(ops_by_order))
        return kinf__error_set(err, KINF_ERR_INVALID, "no such order: %d", (int)options->order);
    if ((known->each == NULL) != (known->has_key == NULL))
        return kinf__error_set(err, KINF_ERR_INVALID, "known objects need both each and has_key");
    if (options->order != KINF_FIFO_KEYED && (known->each != NULL || options->replace_as_sync))
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "known objects and replace_as_sync are for the keyed order");
    return 0;
}

static void free_frame(struct kinf_deltafifo *fifo)
{
    kinf__cond_release(&fifo->not_full);
    kinf__cond_release(&fifo->not_empty);
    kinf__mutex_release(&fifo->lock);
    free(fifo);
}

int kinf_deltafifo_new(const struct kinf_deltafifo_options *options,
                       struct kinf_deltafifo **ret_fifo, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, options, ret_fifo);

    struct kinf_deltafifo_options own;
    struct kinf_deltafifo *fifo;
    int rc = kinf__options_read(&own, sizeof own, options, "struct kinf_deltafifo_options", err);

    if (rc == 0)
        rc = check_options(&own, err);
    if (rc < 0)
        return rc;
    fifo = calloc(1, sizeof *fifo);
    if (fifo == NULL)
        return kinf__error_no_memory(err);
    fifo->options = own;
    fifo->ops = ops_by_order[own.order];
    kinf__mutex_init(&fifo->lock, KINF__RANK_FIFO);
    kinf__cond_init(&fifo->not_empty);
    kinf__cond_init(&fifo->not_full);
    if (fifo->ops->init(fifo) < 0) {
        free_frame(fifo);
        return kinf__error_no_memory(err);
    }
    *ret_fifo = fifo;
    return 0;
}

void kinf_deltafifo_free(struct kinf_deltafifo *fifo)
{
    if (fifo == NULL)
        return;
    fifo->ops->release(fifo);
    free_frame(fifo);
}

/* --- producers --- */

uint64_t kinf__fifo_hash(const char *key)
{
    return kinf__hash(kinf_str_from(key));
}

bool kinf__fifo_rv_counts(const char *rv)
{
    return *rv != '\0' && strlen(rv) < KINF__FIFO_RV_SIZE;
}

static bool is_full_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    bool by_consumer = fifo->is_processing && pthread_equal(fifo->consumer, pthread_self());

    return fifo->options.max_bytes != 0 && fifo->n_bytes > fifo->options.max_bytes && !by_consumer;
}

static bool is_wake_due_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    return fifo->has_news && (!fifo->is_corked || fifo->n_bytes >= CORKED_MAX_BYTES ||
                              fifo->ops->len_locked(fifo) >= CORKED_MAX_ITEMS);
}

void kinf__fifo_unlock(struct kinf_deltafifo *fifo)
{
    bool is_due = is_wake_due_locked(fifo);

    fifo->has_news &= !is_due;
    fifo->is_awaited &= !is_due;
    kinf__mutex_unlock(&fifo->lock);
    if (is_due)
        kinf__cond_signal(&fifo->not_empty);
}

void kinf__deltafifo_set_corked(struct kinf_deltafifo *fifo, bool is_corked)
{
    kinf__mutex_lock(&fifo->lock);
    fifo->is_corked = is_corked;
    kinf__fifo_unlock(fifo);
}

/* The room has to come from the consumer, so it must know of what it may have been spared. */
int kinf__fifo_wait_for_room_locked(struct kinf_deltafifo *fifo)
{
    fifo->n_waiting_producers++;
    while (!fifo->closed && is_full_locked(fifo)) {
        fifo->has_news = false;
        fifo->is_awaited = false;
        kinf__cond_signal(&fifo->not_empty);
        kinf__cond_wait_until(&fifo->not_full, &fifo->lock, KINF__NEVER_MS);
    }
    fifo->n_waiting_producers--;
    return fifo->closed ? KINF_ERR_STOPPED : 0;
}

/* Whoever aborts sets `stop` before it has the lock. */
static size_t len_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    return fifo->aborted || kinf__stop_is_set(&fifo->stop) ? 0 : fifo->ops->len_locked(fifo);
}

void kinf__fifo_populate_locked(struct kinf_deltafifo *fifo)
{
    if (fifo->populated)
        return;
    fifo->populated = true;
    fifo->initial_count = fifo->ops->len_locked(fifo);
}

static int fail(int code, struct kinf_error *err)
{
    if (code == KINF_ERR_NO_MEMORY)
        return kinf__error_no_memory(err);
    return kinf__error_set(err, (enum kinf_errc)code, "the queue is closed");
}

static int check_rv(const char *rv, struct kinf_error *err)
{
    size_t len = strlen(rv);

    if (len < KINF__FIFO_RV_SIZE)
        return 0;
    return kinf__error_set(err, KINF_ERR_LIMIT, "resourceVersion of %zu bytes", len);
}

static int queue_delta(struct kinf_deltafifo *fifo, enum kinf_delta_type type,
                       const struct kinf_object *object, struct kinf_error *err)
{
    const struct kinf_object *dropped = NULL;
    uint64_t hash = kinf__fifo_hash(kinf_object_key(object));
    int rc;

    kinf__mutex_lock(&fifo->lock);
    rc = kinf__fifo_wait_for_room_locked(fifo);
    if (rc == 0)
        rc = fifo->ops->enqueue_locked(fifo, type, object, hash, &dropped);
    if (rc == 0)
        fifo->populated = true;
    kinf__fifo_unlock(fifo);
    kinf_object_unref(dropped);
    return rc == 0 ? 0 : fail(rc, err);
}

int kinf_deltafifo_add(struct kinf_deltafifo *fifo, const struct kinf_object *object,
                       struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fifo, object);
    return queue_delta(fifo, KINF_DELTA_ADDED, object, err);
}

int kinf_deltafifo_update(struct kinf_deltafifo *fifo, const struct kinf_object *object,
                          struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fifo, object);
    return queue_delta(fifo, KINF_DELTA_UPDATED, object, err);
}

int kinf_deltafifo_delete(struct kinf_deltafifo *fifo, const struct kinf_object *object,
                          struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fifo, object);
    return queue_delta(fifo, KINF_DELTA_DELETED, object, err);
}

int kinf_deltafifo_replace(struct kinf_deltafifo *fifo, const struct kinf_object *const *objects,
                           size_t n_objects, const char *resource_version, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fifo, resource_version);
    if (n_objects != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, objects);

    int rc = check_rv(resource_version, err);

    if (rc < 0)
        return rc;
    rc = fifo->ops->replace(fifo, objects, n_objects, resource_version);
    return rc == 0 ? 0 : fail(rc, err);
}

int kinf_deltafifo_resync(struct kinf_deltafifo *fifo, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fifo);

    int rc;

    kinf__mutex_lock(&fifo->lock);
    rc = fifo->closed ? KINF_ERR_STOPPED : fifo->ops->resync_locked(fifo);
    kinf__fifo_unlock(fifo);
    return rc == 0 ? 0 : fail(rc, err);
}

int kinf_deltafifo_bookmark(struct kinf_deltafifo *fifo, const char *resource_version,
                            struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, fifo, resource_version);

    int rc = check_rv(resource_version, err);

    if (rc < 0)
        return rc;
    kinf__mutex_lock(&fifo->lock);
    rc = fifo->closed ? KINF_ERR_STOPPED : fifo->ops->bookmark_locked(fifo, resource_version);
    kinf__fifo_unlock(fifo);
    return rc == 0 ? 0 : fail(rc, err);
}

/* --- the consumer --- */

static bool has_synced_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    return fifo->populated && fifo->initial_count == 0;
}

static int wait_for_item_locked(struct kinf_deltafifo *fifo, int64_t deadline_ms)
    KINF__REQUIRES(fifo->lock)
{
    bool in_time = true;

    for (;;) {
        if (fifo->is_borrowed && !pthread_equal(fifo->consumer, pthread_self())) {
            fifo->is_wanted_back = true;
            kinf__cond_wait_until(&fifo->not_empty, &fifo->lock, KINF__NEVER_MS);
            continue;
        }
        if (fifo->is_processing)
            return KINF_ERR_STATE;
        if (len_locked(fifo) != 0)
            return 0;
        if (fifo->closed)
            return KINF_ERR_STOPPED;
        if (!in_time || fifo->is_nudged)
            return KINF_ERR_TIMEOUT;
        fifo->is_awaited = true;
        in_time = kinf__cond_wait_until(&fifo->not_empty, &fifo->lock, deadline_ms);
        fifo->is_awaited = false;
    }
}

static void begin_locked(struct kinf_deltafifo *fifo, struct kinf_deltas *ret_deltas)
    KINF__REQUIRES(fifo->lock)
{
    fifo->ops->take_locked(fifo, ret_deltas);
    fifo->is_processing = true;
    fifo->in_process_is_initial = fifo->initial_count != 0;
    fifo->consumer = pthread_self();
    if (fifo->n_waiting_producers != 0)
        kinf__cond_broadcast(&fifo->not_full);
}

void kinf__fifo_finish_locked(struct kinf_deltafifo *fifo, bool is_dropped)
{
    if (fifo->in_process_is_initial && !is_dropped)
        fifo->initial_count--;
    fifo->in_process_is_initial = false;
    fifo->is_processing = false;
}

/* `rc` says whether there is something to take. */
static int process_and_unlock(struct kinf_deltafifo *fifo, int rc, kinf_pop_process_cb *process,
                              void *ctx) KINF__RELEASES(fifo->lock)
{
    struct kinf_deltas deltas;
    bool in_initial_list = false;

    if (rc == 0) {
        in_initial_list = !has_synced_locked(fifo);
        begin_locked(fifo, &deltas);
    }
    kinf__mutex_unlock(&fifo->lock);
    if (rc < 0)
        return rc;

    assert(kinf__mutex_none_held());
    rc = process(&deltas, in_initial_list, ctx);
    fifo->ops->finish(fifo, rc == KINF_ERR_STOPPED && kinf__stop_is_set(&fifo->stop));
    return rc;
}

int kinf_deltafifo_pop(struct kinf_deltafifo *fifo, kinf_pop_process_cb *process, void *ctx,
                       int64_t timeout_ms)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, fifo, process);

    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms);
    int rc;

    kinf__mutex_lock(&fifo->lock);
    rc = wait_for_item_locked(fifo, deadline_ms);
    if (rc == KINF_ERR_TIMEOUT)
        fifo->is_nudged = false;
    return process_and_unlock(fifo, rc, process, ctx);
}

bool kinf__deltafifo_borrow(struct kinf_deltafifo *fifo)
{
    bool may;

    kinf__mutex_lock(&fifo->lock);
    may = fifo->is_awaited && !fifo->closed;
    if (may) {
        fifo->is_awaited = false;
        fifo->is_borrowed = true;
        fifo->consumer = pthread_self();
    }
    kinf__mutex_unlock(&fifo->lock);
    return may;
}

int kinf__deltafifo_pop_borrowed(struct kinf_deltafifo *fifo, kinf_pop_process_cb *process,
                                 void *ctx)
{
    kinf__mutex_lock(&fifo->lock);
    fifo->has_news = false;
    return process_and_unlock(fifo, len_locked(fifo) != 0 ? 0 : KINF_ERR_TIMEOUT, process, ctx);
}

void kinf__deltafifo_give_back(struct kinf_deltafifo *fifo, bool nudges)
{
    bool must_wake;

    kinf__mutex_lock(&fifo->lock);
    fifo->is_nudged |= nudges;
    must_wake = fifo->is_nudged || fifo->is_wanted_back || fifo->closed || len_locked(fifo) != 0;
    fifo->is_borrowed = false;
    fifo->is_wanted_back = false;
    fifo->is_awaited = !must_wake;
    kinf__mutex_unlock(&fifo->lock);
    if (must_wake)
        kinf__cond_signal(&fifo->not_empty);
}

void kinf__deltafifo_nudge(struct kinf_deltafifo *fifo)
{
    kinf__mutex_lock(&fifo->lock);
    fifo->is_nudged = true;
    fifo->is_awaited = false;
    kinf__cond_broadcast(&fifo->not_empty);
    kinf__mutex_unlock(&fifo->lock);
}

/* --- the end --- */

static void close_locked(struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    fifo->closed = true;
    kinf__cond_broadcast(&fifo->not_empty);
    kinf__cond_broadcast(&fifo->not_full);
}

void kinf_deltafifo_close(struct kinf_deltafifo *fifo)
{
    KINF__REFUSE_NULL(NULL, , fifo);
    kinf__mutex_lock(&fifo->lock);
    close_locked(fifo);
    kinf__mutex_unlock(&fifo->lock);
}

void kinf__fifo_abort_locked(struct kinf_deltafifo *fifo)
{
    close_locked(fifo);
    fifo->aborted = true;
    fifo->n_bytes = 0;
}

/* Who has the lock may be in the midst of a list, and looks at `stop`. */
void kinf_deltafifo_abort(struct kinf_deltafifo *fifo)
{
    KINF__REFUSE_NULL(NULL, , fifo);
    kinf__stop_set(&fifo->stop);
    kinf__mutex_lock(&fifo->lock);
    kinf__fifo_abort_locked(fifo);
    kinf__mutex_unlock(&fifo->lock);
}

/* --- what can be asked --- */

bool kinf_deltafifo_has_synced(struct kinf_deltafifo *fifo)
{
    KINF__REFUSE_NULL(NULL, false, fifo);

    bool has_synced;

    kinf__mutex_lock(&fifo->lock);
    has_synced = has_synced_locked(fifo);
    kinf__mutex_unlock(&fifo->lock);
    return has_synced;
}

int kinf_deltafifo_resource_version(struct kinf_deltafifo *fifo, char *buf, size_t size)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, fifo, buf);

    const char *rv;
    size_t len;

    kinf__mutex_lock(&fifo->lock);
    rv = fifo->ops->processed_rv_locked(fifo);
    len = strlen(rv);
    if (len < size)
        memcpy(buf, rv, len + 1);
    kinf__mutex_unlock(&fifo->lock);
    return len < size ? 0 : KINF_ERR_LIMIT;
}

size_t kinf_deltafifo_len(struct kinf_deltafifo *fifo)
{
    KINF__REFUSE_NULL(NULL, 0, fifo);

    size_t n_items;

    kinf__mutex_lock(&fifo->lock);
    n_items = len_locked(fifo);
    kinf__mutex_unlock(&fifo->lock);
    return n_items;
}

bool kinf__deltafifo_is_idle(struct kinf_deltafifo *fifo)
{
    bool is_idle;

    kinf__mutex_lock(&fifo->lock);
    is_idle = !fifo->is_processing && len_locked(fifo) == 0;
    kinf__mutex_unlock(&fifo->lock);
    return is_idle;
}

size_t kinf_deltafifo_bytes(struct kinf_deltafifo *fifo)
{
    KINF__REFUSE_NULL(NULL, 0, fifo);

    size_t n_bytes;

    kinf__mutex_lock(&fifo->lock);
    n_bytes = fifo->n_bytes;
    kinf__mutex_unlock(&fifo->lock);
    return n_bytes;
}

/* --- soundness --- */

static bool check_counts_locked(const struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock)
{
    size_t n_queued = fifo->ops->len_locked(fifo);

    if (fifo->aborted && (!fifo->closed || fifo->n_bytes != 0))
        return false;
    if (!fifo->is_processing && fifo->in_process_is_initial)
        return false;
    if (fifo->is_borrowed ? fifo->is_awaited : fifo->is_wanted_back)
        return false;
    if (!fifo->populated && fifo->initial_count != 0)
        return false;
    return fifo->aborted || fifo->initial_count <= n_queued + (fifo->in_process_is_initial ? 1 : 0);
}

bool kinf__deltafifo_check(struct kinf_deltafifo *fifo)
{
    bool is_sound;

    kinf__mutex_lock(&fifo->lock);
    is_sound = check_counts_locked(fifo) && fifo->ops->check_locked(fifo);
    kinf__mutex_unlock(&fifo->lock);
    return is_sound;
}
