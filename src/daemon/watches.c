/*
 * The set of watches. Neighbours: daemon.c starts and ends it, errand.c brings others meanwhile.
 *
 * Before everything has synced once, a failure that waiting does not mend (400, 401, 403, 404, TLS)
 * ends the daemon; afterwards it is a state of the informer, logged and retried.
 */
#include "daemon/watches.h"

#include <stdlib.h>

#include "base/error.h"

/* The first failure wins. */
void kinf__watches_fail(struct kinf__watches *watches, const struct kinf_error *err)
{
    kinf__mutex_lock(&watches->lock);
    if (watches->failure.code == 0)
        watches->failure = *err;
    kinf__mutex_unlock(&watches->lock);
    kinf__waker_set(watches->wake);
}

int kinf__watches_failure(struct kinf__watches *watches, struct kinf_error *err)
{
    int code;

    kinf__mutex_lock(&watches->lock);
    code = (int)watches->failure.code;
    if (code < 0)
        *err = watches->failure;
    kinf__mutex_unlock(&watches->lock);
    return code;
}

/* --- what a watch tells --- */

static void on_synced(void *ctx)
{
    kinf__waker_set(((struct kinf__watches *)ctx)->wake);
}

static void on_output_failure(const struct kinf_error *err, void *ctx)
{
    kinf__watches_fail(ctx, err);
}

static bool waiting_mends(const struct kinf_error *err)
{
    return err->code != KINF_ERR_UNAUTHORIZED && err->code != KINF_ERR_FORBIDDEN &&
           err->code != KINF_ERR_NOT_FOUND && err->code != KINF_ERR_TLS && err->http_status != 400;
}

static bool on_error(const char *resource, bool is_ready, const struct kinf_error *err, void *ctx)
{
    struct kinf__watches *watches = ctx;
    struct kinf_error told = *err;

    if (is_ready || atomic_load(&watches->are_running)) {
        if (err->code != KINF_ERR_NOT_FOUND)
            return true;
        atomic_store(&watches->misses_one, true);
        kinf__waker_set(watches->wake);
        return true;
    }
    if (waiting_mends(err))
        return true;
    kinf__error_prefix(&told, "%s", resource);
    kinf__watches_fail(watches, &told);
    return false;
}

/* --- the set --- */

int kinf__watches_make(struct kinf__watches *watches, const struct kinf__resource_config *resource,
                       struct kinf__watch **ret_watch, struct kinf_error *err)
{
    const struct kinf__watch_owner owner = { on_synced, on_error, on_output_failure, watches };
    struct kinf__events events = { .output = &watches->output,
                                   .mode = watches->events_mode,
                                   .with_objects = watches->events_objects };

    return kinf__watch_new(watches->client, resource, &events, &watches->handlers, &owner,
                           watches->serving != NULL ? watches->serving->server : NULL,
                           watches->keeper, ret_watch, err);
}

static bool is_among(const struct kinf__watch *watch, struct kinf__watch *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (items[i] == watch)
            return true;
    }
    return false;
}

bool kinf__watches_have(const struct kinf__watches *watches, const struct kinf__watch *watch)
{
    return is_among(watch, watches->items, watches->n_items);
}

bool kinf__watches_have_synced(const struct kinf__watches *watches)
{
    for (size_t i = 0; i < watches->n_items; i++) {
        if (!kinf__watch_has_synced(watches->items[i]))
            return false;
    }
    return true;
}

bool kinf__watches_are_ready(const struct kinf__watches *watches)
{
    for (size_t i = 0; i < watches->n_items; i++) {
        if (!kinf__watch_is_ready(watches->items[i]))
            return false;
    }
    return true;
}

int kinf__watches_start(const struct kinf__watches *watches, struct kinf__watch *const *items,
                        size_t n, struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < n; i++) {
        if (!kinf__watches_have(watches, items[i]))
            failed = kinf__watch_start(items[i], err);
    }
    return failed;
}

/* Those that are not among these; their slow readers are waited for at once. */
static void end_others(const struct kinf__watches *watches, struct kinf__watch *const *items,
                       size_t n)
{
    for (size_t i = 0; i < watches->n_items; i++) {
        if (!is_among(watches->items[i], items, n))
            kinf__watch_withdraw(watches->items[i]);
    }
    for (size_t i = 0; i < watches->n_items; i++) {
        if (!is_among(watches->items[i], items, n))
            kinf__watch_free(watches->items[i]);
    }
}

void kinf__watches_exchange(struct kinf__watches *watches, struct kinf__watch **take_items,
                            struct kinf__config *take_config)
{
    const struct kinf__config *config = take_config != NULL ? take_config : &watches->config;

    for (size_t i = 0; i < config->n_resources; i++) {
        if (!kinf__watches_have(watches, take_items[i]))
            kinf__handler_feeds_join(&take_items[i]->feeds);
    }
    /* Before the old ones go: a client is told to come back, not that there is nothing. */
    for (size_t i = 0; i < config->n_resources; i++) {
        if (!kinf__watches_have(watches, take_items[i]))
            kinf__watch_publish(take_items[i]);
    }
    end_others(watches, take_items, config->n_resources);
    for (size_t i = 0; i < config->n_resources; i++)
        take_items[i]->config = &config->resources[i];
    free(watches->items);
    watches->items = take_items;
    watches->n_items = config->n_resources;
    if (take_config != NULL) {
        if (watches->is_reloaded)
            kinf__config_release(&watches->config);
        else
            watches->started = watches->config;
        watches->is_reloaded = true;
        watches->config = *take_config;
        *take_config = (struct kinf__config){ 0 };
    }
}

const struct kinf__config *kinf__watches_started(const struct kinf__watches *watches)
{
    return watches->is_reloaded ? &watches->started : &watches->config;
}
