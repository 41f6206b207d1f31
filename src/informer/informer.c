/*
 * The shared informer: owns queue, store, reflector and handlers. Neighbours: life.c starts, stops and
 * frees it, pop_loop.c is the processor thread, reflector/ feeds the queue, handlers.c has the handlers.
 */
#include "informer/informer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "deltafifo/deltafifo.h"
#include "indexer/indexer.h"
#include "informer/saved.h"
#include "object/packed.h"
#include "rest/client.h"

#define MAX_QUEUE_BYTES ((size_t)64 << 20)
#define SILENT_AFTER_MS 150000
#define LOG_INTERVAL_MS 1000

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

/* --- options --- */

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

static int make_indexer(struct kinf_informer *informer, const struct kinf_informer_options *options,
                        struct kinf_error *err)
{
    int rc = kinf_indexer_new(options->indices, options->n_indices, &informer->indexer, err);

    if (rc == 0)
        kinf__indexer_set_owner(informer->indexer, informer);
    return rc;
}

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

static int make_packer(struct kinf_informer *informer, const struct kinf_informer_options *options,
                       struct kinf_error *err)
{
    int rc = kinf__packer_new(&informer->packer, err);

    for (size_t i = 0; rc == 0 && i < options->n_indices; i++) {
        if (options->indices[i].path != NULL)
            rc = kinf__packer_keep(informer->packer, options->indices[i].path, err);
    }
    return rc;
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
        .packer = informer->packer,
        .stop = &informer->stop,
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
        .callbacks = kinf__informer_reports(informer),
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
        rc = make_indexer(informer, options, err);
    if (rc == 0)
        rc = make_fifo(informer, err);
    if (rc == 0 && options->compressed)
        rc = make_packer(informer, options, err);
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
    informer->is_resynced = true;
}

void kinf__informer_release(struct kinf_informer *informer)
{
    kinf__handlers_release(&informer->handlers);
    kinf__processor_release(&informer->processor);
    kinf__reflector_free(informer->reflector);
    kinf_deltafifo_free(informer->fifo);
    kinf_indexer_free(informer->indexer);
    kinf__batch_release(&informer->batch);
    kinf__packer_free(informer->packer);
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
    int rc = kinf__informer_options_check(options, type, err);

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
        kinf__informer_release(informer);
    else
        *ret_informer = informer;
    return rc;
}

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

/* --- the sink --- */

int kinf__informer_set_sink(struct kinf_informer *informer, const struct kinf__sink *sink,
                            struct kinf_error *err)
{
    int rc = 0;

    if (informer->order != KINF_FIFO_IN_ORDER)
        return kinf__error_set(err, KINF_ERR_INVALID, "%s: a sink needs a queue in order",
                               informer->type->resource);
    kinf__mutex_lock(&informer->life_lock);
    if (informer->life != KINF__LIFE_NEW || informer->target.sink != NULL)
        rc = kinf__error_set(err, KINF_ERR_STATE, "%s: %s", informer->type->resource,
                             informer->target.sink != NULL ? "there is a sink already"
                                                           : "a sink is set before start");
    if (rc == 0) {
        informer->sink = *sink;
        informer->target.sink = &informer->sink;
    }
    kinf__mutex_unlock(&informer->life_lock);
    return rc;
}

/* --- a saved state --- */

int kinf__informer_set_saved(struct kinf_informer *informer, kinf__saved_load_fn *load, void *ctx,
                             struct kinf_error *err)
{
    bool is_allowed;

    if (informer->order != KINF_FIFO_IN_ORDER || informer->target.transform != NULL)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "%s: a saved state needs a queue in order, and no transform",
                               informer->type->resource);
    kinf__mutex_lock(&informer->life_lock);
    is_allowed =
        informer->life == KINF__LIFE_NEW && informer->reflector != NULL && !informer->has_saved;
    informer->has_saved = true;
    kinf__mutex_unlock(&informer->life_lock);
    if (!is_allowed)
        return kinf__error_set(err, KINF_ERR_STATE, "%s: there is no saved state now",
                               informer->type->resource);
    kinf__reflector_set_saved(informer->reflector, load, ctx);
    return 0;
}

const struct kinf__prune_plan *kinf__informer_plan(const struct kinf_informer *informer)
{
    return informer->plan;
}

int kinf__informer_keep_readable(struct kinf_informer *informer, const char *path,
                                 struct kinf_error *err)
{
    return informer->packer != NULL ? kinf__packer_keep(informer->packer, path, err) : 0;
}

/* --- handlers --- */

int kinf_informer_add_handler(struct kinf_informer *informer, const struct kinf_handler *handler,
                              kinf_handler_id *ret_id, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer, handler, ret_id);

    int rc = kinf__handlers_add(&informer->handlers, handler, kinf__clock_now_ms(), ret_id, err);

    kinf__deltafifo_nudge(informer->fifo); /* it may wish to be resynced soon */
    return rc;
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

int kinf_informer_fd(struct kinf_informer *informer, int *ret_fd, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer, ret_fd);
    return kinf__handlers_fd(&informer->handlers, ret_fd, err);
}

int kinf_informer_dispatch(struct kinf_informer *informer, size_t max, size_t *ret_n_waiting,
                           struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer);
    return kinf__handlers_dispatch(&informer->handlers, max, ret_n_waiting, err);
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
