/*
 * The shared informer: owns queue, store, reflector and handlers, and ties their threads to one
 * life. Neighbours: pop_loop.c is the processor thread, reflector/ feeds the queue, handlers.c has
 * the handlers.
 *
 * Invariant: a life goes from new over starting, running and stopping to stopped and never back;
 * who moves it to starting or stopping does the work, without a lock, and everybody else waits.
 */
#include "informer/informer.h"

#include <stdlib.h>
#include <string.h>

#include <kinformer/selector.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "base/thread.h"
#include "deltafifo/deltafifo.h"
#include "indexer/indexer.h"
#include "informer/callback.h"
#include "informer/options.h"
#include "rest/client.h"

#define MAX_QUEUE_BYTES ((size_t)64 << 20)
#define SILENT_AFTER_MS 150000
#define LOG_INTERVAL_MS 1000
/* Of several that are waited for: whether another one is refused. */
#define LOOK_INTERVAL_MS 50

/* --- what the fifo asks the store --- */

static int each_known(kinf_known_object_cb *callback, void *callback_ctx, void *ctx)
{
    struct kinf_indexer *indexer = ctx;
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    int rc = 0;

    kinf_cursor_all(&cursor, snapshot);
    while (rc == 0 && (object = kinf_cursor_next(&cursor)) != NULL)
        rc = callback(object, callback_ctx);
    return rc;
}

static bool knows_key(const char *key, void *ctx)
{
    struct kinf_indexer *indexer = ctx;
    kinf_auto_object const struct kinf_object *object = NULL;

    return kinf_indexer_get_by_key(indexer, key, &object) == 0;
}

/* --- the first list is in --- */

static size_t count_objects(struct kinf_informer *informer)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(informer->indexer);

    return kinf_snapshot_count(snapshot);
}

static void tell_unmet(const char *path, const char *role, void *ctx)
{
    const struct kinf_informer *informer = ctx;

    KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_WARN,
              "a path names nothing in the whole first list resource=%s option=%s path=%s",
              informer->type->resource, role, KINF__QUOTED(path));
}

/* What was mistyped, or is of another type. */
static void tell_unmet_paths(struct kinf_informer *informer)
{
    if (informer->client == NULL || count_objects(informer) == 0)
        return;
    kinf__prune_plan_each_unmet(informer->plan, tell_unmet, informer);
    kinf__indexer_each_unmet(informer->indexer, tell_unmet, informer);
}

void kinf__informer_check_synced(struct kinf_informer *informer)
{
    bool is_first;

    if (atomic_load_explicit(&informer->has_synced, memory_order_acquire) ||
        !kinf_deltafifo_has_synced(informer->fifo))
        return;
    kinf__processor_set_synced(&informer->processor);
    kinf__mutex_lock(&informer->status_lock);
    is_first = !informer->state.has_synced;
    kinf__state_synced(&informer->state, kinf__clock_now_ms());
    atomic_store_explicit(&informer->has_synced, true, memory_order_release);
    kinf__cond_broadcast(&informer->status_changed);
    kinf__mutex_unlock(&informer->status_lock);
    if (is_first)
        tell_unmet_paths(informer);
}

/* --- what the reflector reports --- */

void kinf__informer_note_proof(struct kinf_informer *informer)
{
    atomic_store_explicit(&informer->last_proof_ms, kinf__clock_now_ms(), memory_order_relaxed);
    /* By key, a bookmark and an empty list leave nothing to pop. */
    kinf__informer_check_synced(informer);
    kinf__informer_note_progress(informer);
}

static const char *namespace_of(const struct kinf_informer *informer)
{
    return informer->name_space != NULL ? informer->name_space : "*";
}

static void tell_watch_error(struct kinf_informer *informer, const struct kinf_error *err,
                             int64_t wait_ms)
{
    struct kinf__callback_mark before;

    KINF__LOG(KINF__LOG_INFORMER,
              kinf__trouble_level(&informer->trouble, err, kinf__clock_now_ms()),
              "list or watch failed resource=%s namespace=%s retry_in_ms=%lld error=%s",
              informer->type->resource, namespace_of(informer), (long long)wait_ms,
              KINF__QUOTED(err->message));
    if (informer->on_watch_error == NULL)
        return;
    before = kinf__callback_enter(informer, true);
    informer->on_watch_error(err, informer->on_watch_error_ctx);
    kinf__callback_leave(before);
}

static void on_phase(enum kinf__reflector_phase phase, const struct kinf_error *err,
                     int64_t wait_ms, void *ctx)
{
    struct kinf_informer *informer = ctx;

    kinf__mutex_lock(&informer->status_lock);
    kinf__state_phase(&informer->state, phase, err, kinf__clock_now_ms());
    if (kinf__state_refusal(&informer->state) != NULL)
        kinf__cond_broadcast(&informer->status_changed);
    kinf__mutex_unlock(&informer->status_lock);
    if (phase != KINF__REFLECTOR_WAITING || err == NULL)
        return;
    informer->is_in_doubt = true;
    tell_watch_error(informer, err, wait_ms);
}

static void on_standstill(const struct kinf_error *err, void *ctx)
{
    struct kinf_informer *informer = ctx;

    kinf__mutex_lock(&informer->status_lock);
    kinf__state_standstill(&informer->state, err, kinf__clock_now_ms());
    kinf__mutex_unlock(&informer->status_lock);
    if (err != NULL)
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_WARN,
                  "watches are not to be relied on resource=%s namespace=%s error=%s",
                  informer->type->resource, namespace_of(informer), KINF__QUOTED(err->message));
    else
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_INFO,
                  "watches deliver again resource=%s namespace=%s", informer->type->resource,
                  namespace_of(informer));
}

/* Who reads of a failure wants to read of its end. */
static void end_doubt(struct kinf_informer *informer)
{
    informer->is_in_doubt = false;
    kinf__mutex_lock(&informer->status_lock);
    kinf__state_proof(&informer->state);
    kinf__mutex_unlock(&informer->status_lock);
    if (kinf__trouble_end(&informer->trouble))
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_INFO, "watching again resource=%s namespace=%s",
                  informer->type->resource, namespace_of(informer));
}

static void on_proof(bool by_watch, void *ctx)
{
    struct kinf_informer *informer = ctx;

    kinf__informer_note_proof(informer);
    if (by_watch && informer->is_in_doubt)
        end_doubt(informer);
}

static void on_quarantine(const char *key, const struct kinf_error *err, void *ctx)
{
    struct kinf_informer *informer = ctx;

    kinf__mutex_lock(&informer->status_lock);
    kinf__state_quarantine(&informer->state, key, err, kinf__clock_now_ms());
    kinf__mutex_unlock(&informer->status_lock);
    KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_WARN, "object left out resource=%s key=%s error=%s",
              informer->type->resource, key, KINF__QUOTED(err->message));
}

static void on_shard_ignored(const char *key, void *ctx)
{
    struct kinf_informer *informer = ctx;

    kinf__mutex_lock(&informer->status_lock);
    kinf__state_shard_ignored(&informer->state, key, kinf__clock_now_ms());
    kinf__mutex_unlock(&informer->status_lock);
    if (key != NULL)
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_WARN,
                  "server ignores the shard selector, leaving out what is outside resource=%s "
                  "key=%s",
                  informer->type->resource, key);
    else
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_INFO, "server obeys the shard selector resource=%s",
                  informer->type->resource);
}

/* --- options --- */

static int check_selectors(const struct kinf_informer_options *options, struct kinf_error *err)
{
    struct kinf_label_selector *labels = NULL;
    struct kinf_field_selector *fields = NULL;
    int rc = 0;

    if (options->label_selector != NULL)
        rc = kinf_label_selector_parse(options->label_selector, &labels, err);
    if (rc == 0 && options->field_selector != NULL)
        rc = kinf_field_selector_parse(options->field_selector, &fields, err);
    kinf_label_selector_free(labels);
    kinf_field_selector_free(fields);
    return rc;
}

static int check_options(const struct kinf_informer_options *options, const struct kinf_type *type,
                         struct kinf_error *err)
{
    bool has_namespace = options->name_space != NULL && options->name_space[0] != '\0';

    if (has_namespace && !type->namespaced)
        return kinf__error_set(err, KINF_ERR_INVALID, "%s have no namespaces, but %s was asked for",
                               type->resource, options->name_space);
    if (options->watch_timeout_ms < 0 || options->silent_after_ms < 0 ||
        options->backoff_base_ms < 0 || options->backoff_max_ms < 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "a time of the options is negative");
    if (options->fifo_order != KINF_FIFO_KEYED && options->fifo_order != KINF_FIFO_IN_ORDER)
        return kinf__error_set(err, KINF_ERR_INVALID, "%d is no order of a queue",
                               (int)options->fifo_order);
    return check_selectors(options, err);
}

static int copy_text(char **to, const char *from, struct kinf_error *err)
{
    if (from == NULL)
        return 0;
    *to = strdup(from);
    return *to != NULL ? 0 : kinf__error_no_memory(err);
}

static int copy_options(struct kinf_informer *informer, const struct kinf_informer_options *options,
                        struct kinf_error *err)
{
    int rc = copy_text(&informer->name_space, options->name_space, err);

    if (rc == 0)
        rc = copy_text(&informer->label_selector, options->label_selector, err);
    if (rc == 0)
        rc = copy_text(&informer->field_selector, options->field_selector, err);
    if (rc == 0 && options->shard_selector != NULL)
        rc = kinf__shard_selector_parse(options->shard_selector, &informer->shard, err);
    informer->on_watch_error = options->on_watch_error;
    informer->on_watch_error_ctx = options->on_watch_error_ctx;
    return rc;
}

/* --- making the parts --- */

static int make_fifo(struct kinf_informer *informer, struct kinf_error *err)
{
    struct kinf_deltafifo_options options = KINF_DELTAFIFO_OPTIONS_INIT;

    options.order = informer->order;
    options.max_bytes = informer->max_queued_bytes;
    if (informer->order == KINF_FIFO_KEYED) {
        options.known.each = each_known;
        options.known.has_key = knows_key;
        options.known.ctx = informer->indexer;
    }
    return kinf_deltafifo_new(&options, &informer->fifo, err);
}

static int make_reflector(struct kinf_informer *informer, struct kinf_client *client,
                          const struct kinf_informer_options *options, struct kinf_error *err)
{
    const struct kinf__reflector_options wanted = {
        .client = client,
        .type = informer->type,
        .name_space = informer->name_space,
        .label_selector = informer->label_selector,
        .field_selector = informer->field_selector,
        .shard = informer->shard,
        .plan = informer->plan,
        .fifo = informer->fifo,
        .known = informer->indexer,
        .initial = options->initial,
        .page_size = options->page_size,
        .max_object_bytes = options->max_object_bytes,
        .watch_timeout_ms = options->watch_timeout_ms,
        .silent_after_ms = options->silent_after_ms,
        .backoff_base_ms = options->backoff_base_ms,
        .backoff_max_ms = options->backoff_max_ms,
        .accept_gzip = options->accept_gzip,
        .metadata_only = options->metadata_only,
        .callbacks = { .on_phase = on_phase,
                       .on_proof = on_proof,
                       .on_quarantine = on_quarantine,
                       .on_shard_ignored = on_shard_ignored,
                       .on_standstill = on_standstill,
                       .ctx = informer },
    };

    return kinf__reflector_new(&wanted, &informer->reflector, err);
}

static int make_parts(struct kinf_informer *informer, struct kinf_client *client,
                      const struct kinf_informer_options *options, struct kinf_error *err)
{
    int rc = copy_options(informer, options, err);

    if (rc == 0)
        rc = kinf__prune_plan_new(options->drops, options->n_drops, options->keeps,
                                  options->n_keeps, &informer->plan, err);
    if (rc == 0 && options->metadata_only && options->n_keeps == 0)
        rc = kinf__prune_plan_drop_too(informer->plan, "metadata.managedFields", err);
    if (rc == 0)
        rc = kinf__informer_options_check_paths(options, informer->plan, err);
    if (rc == 0)
        rc = kinf_indexer_new(options->indices, options->n_indices, &informer->indexer, err);
    if (rc == 0)
        rc = make_fifo(informer, err);
    if (rc == 0 && client != NULL)
        rc = make_reflector(informer, client, options, err);
    return rc;
}

static void init(struct kinf_informer *informer, const struct kinf_type *type,
                 const struct kinf_informer_options *options)
{
    int64_t silent_after_ms = options->silent_after_ms;

    informer->type = type;
    informer->order = options->fifo_order;
    informer->wait_out_refusals = options->wait_out_refusals;
    informer->max_queued_bytes =
        options->max_queue_bytes != 0 ? options->max_queue_bytes : MAX_QUEUE_BYTES;
    kinf__mutex_init(&informer->life_lock, KINF__RANK_LIFECYCLE);
    kinf__cond_init(&informer->life_changed);
    kinf__mutex_init(&informer->progress_lock, KINF__RANK_LIFECYCLE);
    kinf__cond_init(&informer->progressed);
    kinf__mutex_init(&informer->status_lock, KINF__RANK_STATUS);
    kinf__cond_init(&informer->status_changed);
    kinf__state_init(&informer->state, silent_after_ms != 0 ? silent_after_ms : SILENT_AFTER_MS,
                     kinf__clock_now_ms());
    informer->apply_failures.interval_ms = LOG_INTERVAL_MS;
}

static void init_processing(struct kinf_informer *informer,
                            const struct kinf_informer_options *options)
{
    kinf__processor_init(&informer->processor, informer->indexer);
    informer->processors[0] = &informer->processor;
    kinf__handlers_init(&informer->handlers, informer, informer->processors, 1);
    informer->target.indexer = informer->indexer;
    informer->target.processor = &informer->processor;
    informer->target.transform = options->transform;
    informer->target.transform_ctx = options->transform_ctx;
    informer->target.stop = &informer->stop;
    informer->target.failures.interval_ms = LOG_INTERVAL_MS;
}

static void release(struct kinf_informer *informer)
{
    kinf__handlers_release(&informer->handlers);
    kinf__processor_release(&informer->processor);
    kinf__reflector_free(informer->reflector);
    kinf_deltafifo_free(informer->fifo);
    kinf_indexer_free(informer->indexer);
    kinf__batch_release(&informer->batch);
    kinf__prune_plan_free(informer->plan);
    kinf__shard_selector_free(informer->shard);
    free(informer->field_selector);
    free(informer->label_selector);
    free(informer->name_space);
    kinf__cond_release(&informer->status_changed);
    kinf__mutex_release(&informer->status_lock);
    kinf__cond_release(&informer->progressed);
    kinf__mutex_release(&informer->progress_lock);
    kinf__cond_release(&informer->life_changed);
    kinf__mutex_release(&informer->life_lock);
    if (informer->client != NULL)
        kinf__client_let_go(informer->client);
    free(informer);
}

/* The first handler joins last: when this fails, its on_done must not run. */
static int add_first_handler(struct kinf_informer *informer, const struct kinf_handler *handler,
                             struct kinf_error *err)
{
    kinf_handler_id id;

    return kinf__handler_has_callback(handler)
               ? kinf_informer_add_handler(informer, handler, &id, err)
               : 0;
}

int kinf__informer_new_for_type(struct kinf_client *client, const struct kinf_type *type,
                                const struct kinf_informer_options *options,
                                struct kinf_informer **ret_informer, struct kinf_error *err)
{
    struct kinf_informer *informer;
    int rc = check_options(options, type, err);

    if (rc < 0)
        return rc;
    informer = calloc(1, sizeof *informer);
    if (informer == NULL)
        return kinf__error_no_memory(err);
    init(informer, type, options);
    informer->client = client;
    if (client != NULL)
        kinf__client_hold(client);
    rc = make_parts(informer, client, options, err);
    init_processing(informer, options);
    if (rc == 0)
        rc = add_first_handler(informer, &options->handler, err);
    if (rc < 0)
        release(informer);
    else
        *ret_informer = informer;
    return rc;
}

/* --- starting and stopping --- */

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

/* Takes the reflector out of everybody's sight, and wakes those who wait for the informer. */
static struct kinf__reflector *begin_stop(struct kinf_informer *informer)
{
    struct kinf__reflector *reflector;

    kinf__mutex_lock(&informer->status_lock);
    reflector = KINF__TAKE(informer->reflector);
    if (reflector != NULL)
        kinf__reflector_counts(reflector, &informer->last_counts);
    informer->is_stopping = true;
    kinf__state_stopped(&informer->state, kinf__clock_now_ms());
    kinf__cond_broadcast(&informer->status_changed);
    kinf__mutex_unlock(&informer->status_lock);
    return reflector;
}

void kinf__informer_interrupt(struct kinf_informer *informer)
{
    kinf__stop_set(&informer->stop);
    kinf__handlers_close(&informer->handlers);
    kinf_deltafifo_abort(informer->fifo);
    kinf__mutex_lock(&informer->status_lock);
    if (informer->reflector != NULL)
        kinf__reflector_interrupt(informer->reflector);
    kinf__mutex_unlock(&informer->status_lock);
}

/* Everybody is told to stop before anybody is waited for. */
static void shut_down(struct kinf_informer *informer)
{
    struct kinf__reflector *reflector;

    kinf__informer_interrupt(informer);
    reflector = begin_stop(informer);
    if (informer->client != NULL && informer->has_thread)
        kinf__client_remove_user(informer->client, &informer->client_node);
    kinf__informer_end_progress(informer);
    kinf__reflector_free(reflector);
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

/* --- life --- */

int kinf_informer_new(struct kinf_client *client, const struct kinf_informer_options *options,
                      struct kinf_informer **ret_informer, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, options, ret_informer);

    struct kinf_informer_options own;
    const struct kinf_type *type;
    int rc;

    rc = kinf__informer_options_read(client, options, &own, &type, err);
    return rc < 0 ? rc : kinf__informer_new_for_type(client, type, &own, ret_informer, err);
}

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
    release(informer);
}

void kinf_informer_free(struct kinf_informer *informer)
{
    if (informer != NULL && refuse_lent(informer, "freed", NULL) == 0)
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

/* --- state --- */

static void derive_locked(struct kinf_informer *informer, struct kinf_informer_status *status)
    KINF__REQUIRES(informer->status_lock)
{
    struct kinf__reflector_counts counts = informer->last_counts;
    struct kinf__state_counts mattering;

    if (informer->reflector != NULL)
        kinf__reflector_counts(informer->reflector, &counts);
    status->n_lists = counts.n_lists;
    status->n_watches = counts.n_watches;
    status->n_events = counts.n_events;
    status->n_bookmarks = counts.n_bookmarks;
    status->n_errors = counts.n_errors;
    status->n_silent = counts.n_silent;
    status->n_extra_lists = counts.n_extra_lists;
    status->n_quarantined = counts.n_quarantined;
    status->n_outside_shard = counts.n_outside_shard;
    status->received_bytes = counts.received_bytes;
    status->last_list_ms = counts.last_list_ms;
    status->n_failed_index_values = kinf_indexer_failed_index_values(informer->indexer);
    mattering.last_proof_ms = atomic_load_explicit(&informer->last_proof_ms, memory_order_relaxed);
    mattering.n_quarantined = counts.n_quarantined;
    mattering.n_failed_index_values = status->n_failed_index_values;
    kinf__state_derive(&informer->state, &mattering, kinf__clock_now_ms(), status);
}

/* Why the first list is not waited for; NULL: it is. */
static const struct kinf_error *refusal_locked(const struct kinf_informer *informer)
    KINF__REQUIRES(informer->status_lock)
{
    return informer->wait_out_refusals ? NULL : kinf__state_refusal(&informer->state);
}

static int refused(const struct kinf_informer *informer, const struct kinf_error *refusal,
                   struct kinf_error *err)
{
    if (err != NULL)
        *err = *refusal;
    kinf__error_prefix(err, "%s: not synced", informer->type->resource);
    return (int)refusal->code;
}

static int not_synced_locked(struct kinf_informer *informer, int64_t timeout_ms,
                             struct kinf_error *err) KINF__REQUIRES(informer->status_lock)
{
    struct kinf_informer_status status = { 0 };

    if (informer->is_stopping)
        return kinf__error_set(err, KINF_ERR_STOPPED, "%s: stopped before the first list was in",
                               informer->type->resource);
    if (refusal_locked(informer) != NULL)
        return refused(informer, refusal_locked(informer), err);
    derive_locked(informer, &status);
    return kinf__error_set(err, KINF_ERR_TIMEOUT, "%s: not synced after %lld ms: %s%s%s",
                           informer->type->resource, (long long)timeout_ms,
                           kinf_informer_state_to_string(status.state),
                           status.reason[0] != '\0' ? ": " : "", status.reason);
}

static int refuse_feeder(const struct kinf_informer *informer, struct kinf_error *err)
{
    return kinf__callback_feeds(informer)
               ? kinf__error_set(err, KINF_ERR_STATE,
                                 "%s: the store waits for this thread, so it cannot wait for it",
                                 informer->type->resource)
               : 0;
}

int kinf_informer_wait_synced(struct kinf_informer *informer, int64_t timeout_ms,
                              struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer);

    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms);
    int rc = refuse_feeder(informer, err);

    if (rc < 0)
        return rc;
    kinf__mutex_lock(&informer->status_lock);
    while (!informer->state.has_synced && !informer->is_stopping &&
           refusal_locked(informer) == NULL &&
           kinf__cond_wait_until(&informer->status_changed, &informer->status_lock, deadline_ms))
        continue;
    if (!informer->state.has_synced)
        rc = not_synced_locked(informer, timeout_ms, err);
    kinf__mutex_unlock(&informer->status_lock);
    return rc;
}

/* Looks at each. KINF_ERR_TIMEOUT: *ret_waiting is the first that may still become synced. */
static int look_at_each(kinf__informer_at *at, void *ctx, struct kinf_informer **ret_waiting,
                        struct kinf_error *err)
{
    struct kinf_informer *informer, *waiting = NULL;

    for (size_t i = 0; (informer = at(i, ctx)) != NULL; i++) {
        int rc = kinf_informer_wait_synced(informer, 0, err);

        if (rc < 0 && rc != KINF_ERR_TIMEOUT) {
            if (informer->name_space != NULL)
                kinf__error_prefix(err, "namespace %s", informer->name_space);
            return rc;
        }
        if (rc < 0 && waiting == NULL)
            waiting = informer;
    }
    *ret_waiting = waiting;
    return waiting != NULL ? KINF_ERR_TIMEOUT : 0;
}

int kinf__informer_wait_each_synced(kinf__informer_at *at, void *ctx, int64_t timeout_ms,
                                    struct kinf_error *err)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms), left_ms;
    struct kinf_informer *waiting;
    int rc;

    while ((rc = look_at_each(at, ctx, &waiting, err)) == KINF_ERR_TIMEOUT &&
           (left_ms = kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms)) > 0) {
        int64_t look_ms = left_ms < LOOK_INTERVAL_MS ? left_ms : LOOK_INTERVAL_MS;

        if (kinf_informer_wait_synced(waiting, look_ms, NULL) < 0)
            continue; /* the next look tells why */
    }
    if (rc != KINF_ERR_TIMEOUT)
        return rc;
    kinf__mutex_lock(&waiting->status_lock);
    rc = not_synced_locked(waiting, timeout_ms, err);
    kinf__mutex_unlock(&waiting->status_lock);
    if (waiting->name_space != NULL)
        kinf__error_prefix(err, "namespace %s", waiting->name_space);
    return rc;
}

bool kinf_informer_has_synced(struct kinf_informer *informer)
{
    KINF__REFUSE_NULL(NULL, false, informer);
    return atomic_load_explicit(&informer->has_synced, memory_order_acquire);
}

void kinf_informer_status(struct kinf_informer *informer, struct kinf_informer_status *ret_status)
{
    KINF__REFUSE_NULL(NULL, , informer, ret_status);
    *ret_status = (struct kinf_informer_status){
        .n_objects = count_objects(informer),
        .n_queued = kinf_deltafifo_len(informer->fifo),
        .queued_bytes = kinf_deltafifo_bytes(informer->fifo),
        .max_queued_bytes = informer->max_queued_bytes,
        .n_handlers = kinf__processor_count(&informer->processor),
    };
    kinf__mutex_lock(&informer->status_lock);
    derive_locked(informer, ret_status);
    kinf__mutex_unlock(&informer->status_lock);
}

static bool has_quiet_handlers(struct kinf_informer *informer)
{
    KINF__AUTO_FREE struct kinf__handler_report *handlers = NULL;
    size_t n_handlers;

    if (kinf__processor_report(&informer->processor, kinf__clock_now_ms(), &handlers, &n_handlers) <
        0)
        return false;
    for (size_t i = 0; i < n_handlers; i++) {
        if (handlers[i].status.n_waiting != 0)
            return false;
    }
    return true;
}

bool kinf__informer_is_settled(struct kinf_informer *informer, const char *version)
{
    char seen[KINF__RESOURCE_VERSION_SIZE];
    int order;

    if (kinf_informer_resource_version(informer, seen, sizeof seen) < 0 ||
        kinf_rv_compare(seen, version, &order, NULL) < 0 || order < 0)
        return false;
    return kinf__deltafifo_is_idle(informer->fifo) && has_quiet_handlers(informer);
}

/* --- handlers --- */

int kinf_informer_add_handler(struct kinf_informer *informer, const struct kinf_handler *handler,
                              kinf_handler_id *ret_id, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer, handler, ret_id);
    return kinf__handlers_add(&informer->handlers, handler, kinf__clock_now_ms(), ret_id, err);
}

void kinf_informer_remove_handler(struct kinf_informer *informer, kinf_handler_id id)
{
    KINF__REFUSE_NULL(NULL, , informer);
    kinf__handlers_remove(&informer->handlers, id);
}

bool kinf_informer_handler_has_synced(struct kinf_informer *informer, kinf_handler_id id)
{
    KINF__REFUSE_NULL(NULL, false, informer);
    return kinf__handlers_has_synced(&informer->handlers, id);
}

int kinf_informer_handler_status(struct kinf_informer *informer, kinf_handler_id id,
                                 struct kinf_handler_status *ret_status, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer, ret_status);
    if (kinf__handlers_status(&informer->handlers, id, kinf__clock_now_ms(), ret_status))
        return 0;
    return kinf__error_set(err, KINF_ERR_NOT_FOUND, "%s: no handler %llu", informer->type->resource,
                           (unsigned long long)id);
}

/* --- reading --- */

struct kinf_indexer *kinf_informer_indexer(struct kinf_informer *informer)
{
    KINF__REFUSE_NULL(NULL, NULL, informer);
    return informer->indexer;
}

const struct kinf_type *kinf_informer_type(const struct kinf_informer *informer)
{
    KINF__REFUSE_NULL(NULL, NULL, informer);
    return informer->type;
}

struct kinf_lister kinf_informer_lister(struct kinf_informer *informer, const char *name_space)
{
    KINF__REFUSE_NULL(NULL, ((struct kinf_lister){ NULL, name_space }), informer);

    struct kinf_lister lister = { informer->indexer, name_space };

    return lister;
}
