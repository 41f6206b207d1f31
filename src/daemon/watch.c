/*
 * From a configured resource to running informers. Neighbours: daemon.c owns watches, events.c
 * prints.
 */
#include "daemon/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "informer/informer.h"
#include "informer/saved.h"
#include "rest/discovery_cache.h"

#define REFUSALS 2 /* in a row, for nothing to wait for them any more */

static void print_add(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    const struct kinf__watch *watch = ctx;

    kinf__events_print(&watch->events, NULL, object, in_initial_list, false);
}

static void print_update(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    const struct kinf__watch *watch = ctx;

    kinf__events_print(&watch->events, old, object, false, false);
}

static void print_delete(const struct kinf_object *object, bool final_state_unknown, void *ctx)
{
    const struct kinf__watch *watch = ctx;

    kinf__events_print(&watch->events, object, NULL, false, final_state_unknown);
}

static void feed_add(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    const struct kinf__watch *watch = ((const struct kinf__watch_part *)ctx)->watch;

    for (size_t i = 0; i < watch->feeds.n_items; i++)
        kinf__outbox_feed_put(watch->feeds.items[i], NULL, object, in_initial_list);
}

static void feed_update(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    const struct kinf__watch *watch = ((const struct kinf__watch_part *)ctx)->watch;

    for (size_t i = 0; i < watch->feeds.n_items; i++)
        kinf__outbox_feed_put(watch->feeds.items[i], old, object, false);
}

static void feed_delete(const struct kinf_object *object, bool final_state_unknown, void *ctx)
{
    const struct kinf__watch *watch = ((const struct kinf__watch_part *)ctx)->watch;

    for (size_t i = 0; i < watch->feeds.n_items; i++)
        kinf__outbox_feed_delete(watch->feeds.items[i], object, final_state_unknown);
}

static void settle(struct kinf__watch_part *part)
{
    struct kinf__watch *watch = part->watch;
    bool was_settled = atomic_exchange(&part->is_settled, true);

    if ((was_settled ? atomic_load(&watch->n_unsettled)
                     : atomic_fetch_sub(&watch->n_unsettled, 1) - 1) != 0)
        return;
    for (size_t i = 0; i < watch->feeds.n_items; i++) {
        if (atomic_load(&watch->n_fed) != 0)
            kinf__outbox_feed_synced(watch->feeds.items[i]);
        else
            kinf__outbox_feed_refused(watch->feeds.items[i]);
    }
}

static void feed_synced(void *ctx)
{
    struct kinf__watch_part *part = ctx;

    atomic_fetch_add(&part->watch->n_fed, 1);
    settle(part);
}

/* A server that starts refuses once what it will allow. */
static void note_refusal(struct kinf__watch_part *part, const struct kinf_error *err)
{
    part->n_refusals = err->code == KINF_ERR_FORBIDDEN ? part->n_refusals + 1 : 0;
    if (part->n_refusals == REFUSALS && !atomic_load(&part->is_settled))
        settle(part);
}

static void note_synced(void *ctx)
{
    struct kinf__watch *watch = ctx;

    if (atomic_fetch_sub(&watch->n_unsynced, 1) != 1)
        return;
    atomic_store(&watch->synced_ns, kinf__clock_now_ns());
    if (watch->events.mode != KINF__EVENTS_NONE)
        kinf__events_print_synced(&watch->events);
    watch->owner.on_synced(watch->owner.ctx);
}

static void note_error(const struct kinf_error *err, void *ctx)
{
    struct kinf__watch_part *part = ctx;
    struct kinf__watch *watch = part->watch;

    if (watch->owner.on_error(watch->resource, kinf__watch_is_ready(watch), err, watch->owner.ctx))
        note_refusal(part, err);
}

bool kinf__watch_has_synced(const struct kinf__watch *watch)
{
    return atomic_load(&watch->synced_ns) != 0;
}

bool kinf__watch_is_ready(const struct kinf__watch *watch)
{
    bool is_ready = kinf__state_keeper_serves_saved(watch->keeper);

    if (kinf__watch_has_synced(watch))
        return true;
    for (size_t i = 0; is_ready && i < watch->n_informers; i++)
        is_ready = kinf_informer_has_synced(watch->informers[i]) ||
                   kinf__informer_saved_wall_ms(watch->informers[i]) != 0;
    return is_ready;
}

bool kinf__watch_is_outdated(const struct kinf__watch *watch, struct kinf_client *client)
{
    const struct kinf_type *type;

    for (size_t i = 0; i < watch->n_informers; i++) {
        struct kinf_informer_status status;

        kinf_informer_status(watch->informers[i], &status);
        if (status.state != KINF_STATE_ABSENT || status.n_objects != 0)
            return false;
    }
    return kinf__discovery_find_anew(client, watch->config->resource, &type, NULL) == 0 &&
           type != kinf_informer_type(watch->informers[0]);
}

static void fill_options(struct kinf__watch *watch, const char *name_space,
                         struct kinf_informer_options *options)
{
    const struct kinf__resource_config *config = watch->config;
    bool prints = watch->events.mode != KINF__EVENTS_NONE;

    *options = (struct kinf_informer_options)KINF_INFORMER_OPTIONS_INIT;
    options->resource = config->resource;
    options->name_space = name_space;
    options->label_selector = config->label_selector;
    options->field_selector = config->field_selector;
    options->shard_selector = config->shard_selector;
    options->handler.on_add = prints ? print_add : NULL;
    options->handler.on_update = prints ? print_update : NULL;
    options->handler.on_delete = prints ? print_delete : NULL;
    options->handler.on_synced = note_synced;
    options->handler.ctx = watch;
    options->handler.resync_period_ms = config->resync_period_ms;
    options->drops = (const char *const *)config->drops.items;
    options->n_drops = config->drops.n_items;
    options->keeps = (const char *const *)config->keeps.items;
    options->n_keeps = config->keeps.n_items;
    options->on_watch_error = note_error;
    options->on_watch_error_ctx = &watch->parts[watch->n_informers];
    options->fifo_order = KINF_FIFO_IN_ORDER;
    options->initial = config->initial;
    options->page_size = config->page_size;
    options->max_object_bytes = config->max_object_bytes;
    options->max_queue_bytes = config->max_queue_bytes;
    options->watch_timeout_ms = config->watch_timeout_ms;
    options->silent_after_ms = config->silent_after_ms;
    options->backoff_base_ms = config->backoff_base_ms;
    options->backoff_max_ms = config->backoff_max_ms;
    options->accept_gzip = config->gzip;
    options->compressed = config->is_compressed;
}

static struct kinf_index *make_indices(const struct kinf__resource_config *config)
{
    struct kinf_index *indices = calloc(config->index_names.n_items + 1, sizeof *indices);

    for (size_t i = 0; indices != NULL && i < config->index_names.n_items; i++) {
        indices[i].name = config->index_names.items[i];
        indices[i].path = config->index_paths.items[i];
    }
    return indices;
}

static int add_informer(struct kinf__watch *watch, struct kinf_client *client,
                        const struct kinf_type *type, const char *name_space,
                        struct kinf_error *err)
{
    KINF__AUTO_FREE struct kinf_index *indices = make_indices(watch->config);
    struct kinf_informer_options options;
    int failed;

    if (indices == NULL)
        return kinf__error_no_memory(err);
    fill_options(watch, name_space, &options);
    options.indices = indices;
    options.n_indices = watch->config->index_names.n_items;
    failed = kinf__informer_new_for_type(client, type, &options,
                                         &watch->informers[watch->n_informers], err);
    if (failed == 0)
        watch->n_informers++;
    return failed;
}

static int add_source(struct kinf__watch *watch, size_t i, const char *name_space,
                      struct kinf_error *err)
{
    const struct kinf__resource_config *config = watch->config;
    const struct kinf__source_options options = {
        .informer = watch->informers[i],
        .name_space = name_space,
        .label_selector = config->label_selector,
        .field_selector = config->field_selector,
        .shard_selector = config->shard_selector,
        .index_names = (const char *const *)config->index_names.items,
        .index_paths = (const char *const *)config->index_paths.items,
        .n_indices = config->index_names.n_items,
        .is_pruned = config->drops.n_items != 0 || config->keeps.n_items != 0,
        .assume_scope = config->assume_scope,
        .consistency = config->consistency,
        .is_on_demand = config->is_on_demand,
        .limits = { .history_bytes = config->max_history_bytes,
                    .history_age_ms = config->max_history_age_ms,
                    .page_bytes = config->max_held_bytes },
        .is_unserved = !kinf__choice_is_yes(config->serve, kinf_informer_type(watch->informers[i])),
        .serves_saved = kinf__state_keeper_serves_saved(watch->keeper),
    };

    return kinf__server_add_source(watch->server, &options, &watch->sources[i], err);
}

static char *resource_name(const struct kinf_type *type)
{
    KINF__AUTO_BUFFER name = KINF__BUFFER_INIT;
    const char *text;

    if (kinf__buffer_printf(&name, *type->group != '\0' ? "%s.%s" : "%s", type->resource,
                            type->group) < 0 ||
        (text = kinf__buffer_cstr(&name)) == NULL)
        return NULL;
    return strdup(text);
}

static int find_type(const struct kinf__watch *watch, struct kinf_client *client,
                     const struct kinf_type **ret_type, struct kinf_error *err)
{
    if (watch->keeper != NULL &&
        kinf__state_keeper_find_type(watch->keeper, watch->config, ret_type, NULL) == 0)
        return 0;
    return kinf_client_find_type(client, watch->config->resource, ret_type, err);
}

static int add_informers(struct kinf__watch *watch, struct kinf_client *client,
                         struct kinf_error *err)
{
    const struct kinf__strings *namespaces = &watch->config->namespaces;
    size_t n = namespaces->n_items != 0 ? namespaces->n_items : 1;
    const struct kinf_type *type;
    int failed = find_type(watch, client, &type, err);

    if (failed < 0)
        return failed;
    watch->informers = calloc(n, sizeof(struct kinf_informer *));
    watch->parts = calloc(n, sizeof *watch->parts);
    watch->sources = calloc(n, sizeof(struct kinf__source *));
    watch->states = calloc(n, sizeof(struct kinf__state_entry *));
    if (watch->informers == NULL || watch->parts == NULL || watch->sources == NULL ||
        watch->states == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; failed == 0 && i < n; i++) {
        const char *name_space = namespaces->n_items != 0 ? namespaces->items[i] : NULL;

        watch->parts[i].watch = watch;
        failed = add_informer(watch, client, type, name_space, err);
        if (failed == 0 && watch->server != NULL)
            failed = add_source(watch, i, name_space, err);
        if (failed == 0 && watch->keeper != NULL)
            failed = kinf__state_keeper_add(watch->keeper, watch->informers[i], watch->config,
                                            name_space, &watch->states[i], err);
    }
    if (failed < 0)
        return failed;
    watch->resource = resource_name(type);
    watch->events.resource = watch->resource;
    atomic_store(&watch->n_unsynced, n);
    return watch->resource != NULL ? 0 : kinf__error_no_memory(err);
}

/* By handlers of the informers beside the printing one, which may have to wait for its reader. */
static int add_feeds(struct kinf__watch *watch, const struct kinf__daemon_handlers *handlers,
                     struct kinf_error *err)
{
    struct kinf_handler handler = KINF_HANDLER_INIT;
    kinf_handler_id ignored;
    int failed = kinf__daemon_handlers_make_feeds(handlers, watch->config->resource,
                                                  watch->resource, &watch->feeds, err);

    handler.on_add = feed_add;
    handler.on_update = feed_update;
    handler.on_delete = feed_delete;
    handler.on_synced = feed_synced;
    handler.resync_period_ms = watch->config->resync_period_ms;
    atomic_store(&watch->n_unsettled, watch->n_informers);
    for (size_t i = 0; failed == 0 && watch->feeds.n_items != 0 && i < watch->n_informers; i++) {
        handler.ctx = &watch->parts[i];
        failed = kinf_informer_add_handler(watch->informers[i], &handler, &ignored, err);
    }
    return failed;
}

int kinf__watch_new(struct kinf_client *client, const struct kinf__resource_config *config,
                    const struct kinf__events *events, const struct kinf__daemon_handlers *handlers,
                    const struct kinf__watch_owner *owner, struct kinf__server *server,
                    struct kinf__state_keeper *keeper, struct kinf__watch **ret_watch,
                    struct kinf_error *err)
{
    struct kinf__watch *watch = calloc(1, sizeof *watch);
    int failed;

    if (watch == NULL)
        return kinf__error_no_memory(err);
    watch->config = config;
    watch->owner = *owner;
    watch->server = server;
    watch->keeper = keeper;
    watch->events = *events;
    watch->events.on_failure = owner->on_output_failure;
    watch->events.ctx = owner->ctx;
    failed = add_informers(watch, client, err);
    if (failed == 0 && handlers != NULL)
        failed = add_feeds(watch, handlers, err);
    if (failed < 0) {
        kinf__watch_free(watch);
        return failed;
    }
    *ret_watch = watch;
    return 0;
}

void kinf__watch_publish(struct kinf__watch *watch)
{
    for (size_t i = 0; watch->server != NULL && i < watch->n_informers; i++)
        kinf__server_publish_source(watch->server, watch->sources[i]);
    kinf__handler_feeds_open(&watch->feeds);
}

void kinf__watch_withdraw(struct kinf__watch *watch)
{
    kinf__events_end(&watch->events);
    for (size_t i = 0; watch->server != NULL && i < watch->n_informers; i++)
        kinf__server_withdraw_source(watch->server, watch->sources[i]);
}

int kinf__watch_start(struct kinf__watch *watch, struct kinf_error *err)
{
    int failed = 0;

    watch->started_ns = kinf__clock_now_ns();
    for (size_t i = 0; failed == 0 && i < watch->n_informers; i++)
        failed = kinf_informer_start(watch->informers[i], err);
    return failed;
}

void kinf__watch_interrupt(struct kinf__watch *watch)
{
    for (size_t i = 0; watch != NULL && i < watch->n_informers; i++)
        kinf__informer_interrupt(watch->informers[i]);
}

/* The informer feeds the source until it has stopped; source and keeper read its store. */
static void end_informer(struct kinf__watch *watch, size_t i)
{
    if (watch->sources[i] != NULL)
        kinf__server_retire_source(watch->server, watch->sources[i]);
    kinf__state_keeper_give_up(watch->states[i]);
    (void)kinf_informer_stop(watch->informers[i], NULL);
    kinf__source_free(watch->sources[i]);
    kinf__state_keeper_remove(watch->states[i]);
    kinf_informer_free(watch->informers[i]);
}

void kinf__watch_free(struct kinf__watch *watch)
{
    if (watch == NULL)
        return;
    kinf__events_end(&watch->events);
    for (size_t i = 0; i < watch->n_informers; i++)
        end_informer(watch, i);
    kinf__handler_feeds_release(&watch->feeds);
    free(watch->sources);
    free(watch->states);
    free(watch->parts);
    free(watch->informers);
    free(watch->resource);
    free(watch);
}
