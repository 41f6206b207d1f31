/*
 * One thread that asks the API server, while the main thread goes on: for the types of a new
 * configuration, for those of resources that are gone, for the columns of custom resources. What it
 * made the main thread takes over, so a configuration comes into force as a whole or not at all.
 */
#include "daemon/errand.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <kinformer/log.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/notify.h"
#include "serve/catalog.h"
#include "serve/definitions.h"

#define COLUMNS_MS 10000 /* between two looks */
#define CATALOG_MS 5000

/* --- the thread --- */

/* Its files have the name that they have after a restart, and no other's. */
static bool keeps_files(const struct kinf__watches *watches, const struct kinf__watch *watch,
                        const struct kinf__resource_config *resource)
{
    return watches->keeper == NULL || watch->config->number == resource->number;
}

/* The running watch that is what `resource` asks for; NULL if it has to be made. */
static struct kinf__watch *find_watch(const struct kinf__watches *watches,
                                      const struct kinf__resource_config *resource)
{
    for (size_t i = 0; i < watches->n_items; i++) {
        struct kinf__watch *watch = watches->items[i];

        if (kinf__resource_config_equal(watch->config, resource))
            return keeps_files(watches, watch, resource) &&
                           !kinf__watch_is_outdated(watch, watches->client)
                       ? watch
                       : NULL;
    }
    return NULL;
}

/* Makes the watches that do not run yet; running ones are taken over. Returns whether there is any
 * that is new. */
static bool prepare_watches(struct kinf__errand *errand)
{
    const struct kinf__config *asked = errand->asked;
    bool is_any_new = false;

    for (size_t i = 0; errand->failed == 0 && i < asked->n_resources; i++) {
        errand->items[i] = find_watch(errand->watches, &asked->resources[i]);
        if (errand->items[i] != NULL)
            continue;
        is_any_new = true;
        errand->failed = kinf__watches_make(errand->watches, &asked->resources[i],
                                            &errand->items[i], &errand->err);
    }
    return is_any_new;
}

static void refresh_serving(struct kinf__watches *watches)
{
    bool is_due = atomic_load(&watches->is_catalog_due);
    struct kinf_error err = KINF_ERROR_INIT;

    if (watches->serving == NULL)
        return;
    if (kinf__serving_refresh(watches->serving, watches->client, &err) == 0)
        atomic_store(&watches->is_catalog_due, false);
    else
        KINF__LOG(KINF__LOG_DAEMON, is_due ? KINF_LOG_DEBUG : KINF_LOG_WARN,
                  "what the server has was not read again error=%s", KINF__QUOTED(err.message));
}

static void *run(void *ctx)
{
    struct kinf__errand *errand = ctx;

    if (errand->kind == KINF__ERRAND_COLUMNS) {
        kinf__definitions_fetch(errand->watches->serving->server, errand->watches->client);
    } else if (errand->kind == KINF__ERRAND_ON_DEMAND) {
        kinf__on_demand_prepare(errand->on_demand);
    } else if (errand->kind == KINF__ERRAND_CATALOG) {
        refresh_serving(errand->watches);
    } else {
        bool is_any_new = prepare_watches(errand);

        if (errand->failed == 0 && (is_any_new || errand->kind == KINF__ERRAND_RELOAD))
            refresh_serving(errand->watches);
    }
    atomic_store(&errand->is_done, true);
    kinf__waker_set(errand->watches->wake);
    return NULL;
}

/* What was made and is not taken over. */
static void discard(struct kinf__errand *errand)
{
    for (size_t i = 0; errand->items != NULL && i < errand->asked->n_resources; i++) {
        if (!kinf__watches_have(errand->watches, errand->items[i]))
            kinf__watch_free(errand->items[i]);
    }
    free(KINF__TAKE(errand->items));
    kinf__config_release(&errand->config);
    errand->config = (struct kinf__config){ 0 };
}

/* `asked` NULL: no watches are prepared. */
static int start(struct kinf__errand *errand, enum kinf__errand_kind kind,
                 const struct kinf__config *asked, struct kinf_error *err)
{
    int failed = 0;

    errand->kind = kind;
    errand->asked = asked;
    errand->failed = 0;
    errand->err = (struct kinf_error)KINF_ERROR_INIT;
    atomic_store(&errand->is_done, false);
    if (asked != NULL) {
        errand->items = calloc(asked->n_resources, sizeof(struct kinf__watch *));
        if (errand->items == NULL)
            failed = kinf__error_no_memory(err);
    }
    if (failed == 0)
        failed = kinf__thread_start(&errand->thread, "errand", run, errand, err);
    errand->is_under_way = failed == 0;
    if (failed < 0)
        discard(errand);
    return failed;
}

/* --- reading the configuration again --- */

static bool are_same_users(const struct kinf__config *a, const struct kinf__config *b)
{
    return a->n_unix_users == b->n_unix_users &&
           (a->n_unix_users == 0 ||
            memcmp(a->unix_users, b->unix_users, a->n_unix_users * sizeof *a->unix_users) == 0);
}

/* What is decided once, at start. */
static void tell_unchangeable(const struct kinf__config *now, const struct kinf__config *wanted)
{
    if (!kinf__strings_equal(&now->listen, &wanted->listen) ||
        !kinf__text_equal(now->health_listen, wanted->health_listen) ||
        !kinf__text_equal(now->access_log, wanted->access_log) ||
        now->unix_mode != wanted->unix_mode || !are_same_users(now, wanted) ||
        !kinf__text_equal(now->cert_file, wanted->cert_file) ||
        !kinf__text_equal(now->key_file, wanted->key_file) ||
        !kinf__text_equal(now->client_ca_file, wanted->client_ca_file) ||
        now->is_delegated != wanted->is_delegated || now->auth_allow_ms != wanted->auth_allow_ms ||
        now->auth_deny_ms != wanted->auth_deny_ms || now->auth_stale_ms != wanted->auth_stale_ms ||
        now->max_staleness_ms != wanted->max_staleness_ms ||
        now->pass_through != wanted->pass_through)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN,
                  "listen, healthListen, accessLog, unix..., tls, auth, maxStaleness and "
                  "passThrough change only by a restart");
    if (!kinf__text_equal(now->kubeconfig, wanted->kubeconfig) ||
        !kinf__text_equal(now->context, wanted->context) || now->events != wanted->events ||
        now->events_objects != wanted->events_objects ||
        !kinf__text_equal(now->state_dir, wanted->state_dir) ||
        now->state_interval_ms != wanted->state_interval_ms ||
        now->serve_stale != wanted->serve_stale)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN,
                  "kubeconfig, context, events, eventsObjects, stateDir, stateInterval and "
                  "serveStale change only by a restart");
}

static void tell_handlers(const struct kinf__config *now, const struct kinf__config *wanted)
{
    bool are_equal = now->n_handlers == wanted->n_handlers;

    for (size_t i = 0; are_equal && i < now->n_handlers; i++)
        are_equal = kinf__handler_config_equal(&now->handlers[i], &wanted->handlers[i]);
    if (!are_equal)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN,
                  "handlers change only by a restart, but for a plugin's file and config");
}

/* A manager waits for it; before the first sync nothing is ready. */
static void notify_end_of_reload(const struct kinf__watches *watches)
{
    if (atomic_load(&watches->are_running))
        kinf__notify("READY=1");
}

static void tell_reloaded(const struct kinf__watches *watches, const struct kinf_error *err)
{
    if (err != NULL)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_ERROR,
                  "configuration not taken over, nothing changed error=%s",
                  KINF__QUOTED(err->message));
    else
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "configuration read again resources=%zu",
                  watches->n_items);
    notify_end_of_reload(watches);
}

static int begin_reload(struct kinf__errand *errand, struct kinf_error *err)
{
    const char *path = errand->options->config_file;
    struct stat found;
    int failed;

    if (path == NULL)
        return kinf__error_set(err, KINF_ERR_STATE,
                               "there is no configuration file, all came by flags");
    /* A pipe would be empty by now, or hold the main thread. */
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return kinf__error_set(err, KINF_ERR_STATE, "%s is no plain file and is read once", path);
    failed = kinf__options_read_config(errand->options, &errand->config, err);
    if (failed < 0)
        return failed;
    /* Who else has what, and leads, is not decided here. */
    if (!kinf__shard_config_equal(&errand->watches->config.shards, &errand->config.shards)) {
        kinf__config_release(&errand->config);
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "shards, shard, shardBy and lease change only by a restart");
    }
    return start(errand, KINF__ERRAND_RELOAD, &errand->config, err);
}

static void reload(struct kinf__errand *errand)
{
    struct kinf__watches *watches = errand->watches;
    struct kinf_error err = KINF_ERROR_INIT;

    kinf__notify_reloading();
    if (errand->options->config_file == NULL &&
        kinf__daemon_handlers_reload(&watches->handlers, NULL))
        notify_end_of_reload(watches); /* which log what they do */
    else if (begin_reload(errand, &err) < 0)
        tell_reloaded(watches, &err);
}

static int start_watches(struct kinf__errand *errand)
{
    return kinf__watches_start(errand->watches, errand->items, errand->asked->n_resources,
                               &errand->err);
}

/* What can fail comes first, and leaves nothing behind. */
static int take_over_config(struct kinf__errand *errand)
{
    int failed = errand->failed;

    if (failed == 0)
        failed = kinf__options_set_log_levels(errand->options, &errand->config, &errand->err);
    if (failed == 0 && (failed = start_watches(errand)) < 0)
        (void)!kinf__options_set_log_levels(errand->options, &errand->watches->config, NULL);
    if (failed < 0)
        return failed;
    kinf__config_warn(&errand->config);
    tell_unchangeable(kinf__watches_started(errand->watches), &errand->config);
    tell_handlers(kinf__watches_started(errand->watches), &errand->config);
    (void)kinf__daemon_handlers_reload(&errand->watches->handlers, &errand->config);
    kinf__on_demand_set_rules(errand->on_demand, &errand->config);
    kinf__watches_exchange(errand->watches, KINF__TAKE(errand->items), &errand->config);
    return 0;
}

static void finish_reload(struct kinf__errand *errand)
{
    int failed = take_over_config(errand);

    if (failed < 0)
        discard(errand);
    tell_reloaded(errand->watches, failed < 0 ? &errand->err : NULL);
}

/* --- resources that are gone --- */

static void finish_look_up(struct kinf__errand *errand)
{
    if (errand->failed < 0 || start_watches(errand) < 0) {
        discard(errand);
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN, "what is missed was not looked up error=%s",
                  KINF__QUOTED(errand->err.message));
        return;
    }
    for (size_t i = 0; i < errand->asked->n_resources; i++) {
        if (!kinf__watches_have(errand->watches, errand->items[i]))
            KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "back in another version resource=%s",
                      errand->items[i]->resource);
    }
    kinf__watches_exchange(errand->watches, KINF__TAKE(errand->items), NULL);
}

/* --- columns --- */

/* The server ends the watches of a custom resource when its definition changes: if more have begun than
 * before, the columns may be others. */
static bool are_columns_due(struct kinf__errand *errand)
{
    const struct kinf__serving *serving = errand->watches->serving;
    int64_t now_ms = kinf__clock_now_ms();
    uint64_t n_watches;

    if (serving == NULL || now_ms < errand->columns_ms)
        return false;
    errand->columns_ms = kinf__clock_add_ms(now_ms, COLUMNS_MS);
    n_watches = kinf__definitions_watches(serving->server);
    if (n_watches == errand->columns_watches)
        return false;
    errand->columns_watches = n_watches;
    return true;
}

/* A custom resource that was away when the server was asked is none of what it has. */
static bool is_catalog_due(struct kinf__errand *errand)
{
    const struct kinf__serving *serving = errand->watches->serving;
    int64_t now_ms = kinf__clock_now_ms();

    if (serving == NULL || now_ms < errand->catalog_ms)
        return false;
    errand->catalog_ms = kinf__clock_add_ms(now_ms, CATALOG_MS);
    return atomic_load(&errand->watches->is_catalog_due) ||
           kinf__catalog_is_outdated(serving->server);
}

/* --- what the header promises --- */

void kinf__errand_begin(struct kinf__errand *errand, bool is_reload)
{
    struct kinf__watches *watches = errand->watches;
    struct kinf_error err = KINF_ERROR_INIT;
    int failed = 0;

    if (is_reload)
        reload(errand);
    else if (atomic_exchange(&watches->misses_one, false))
        failed = start(errand, KINF__ERRAND_LOOK_UP, &watches->config, &err);
    else if (kinf__on_demand_has_errand(errand->on_demand))
        failed = start(errand, KINF__ERRAND_ON_DEMAND, NULL, &err);
    else if (is_catalog_due(errand))
        failed = start(errand, KINF__ERRAND_CATALOG, NULL, &err);
    else if (are_columns_due(errand))
        failed = start(errand, KINF__ERRAND_COLUMNS, NULL, &err);
    if (failed < 0)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN, "the server is not asked error=%s",
                  KINF__QUOTED(err.message));
}

void kinf__errand_finish(struct kinf__errand *errand)
{
    if (!errand->is_under_way || !atomic_load(&errand->is_done))
        return;
    pthread_join(errand->thread, NULL);
    errand->is_under_way = false;
    if (errand->kind == KINF__ERRAND_RELOAD)
        finish_reload(errand);
    else if (errand->kind == KINF__ERRAND_LOOK_UP)
        finish_look_up(errand);
    else if (errand->kind == KINF__ERRAND_ON_DEMAND)
        kinf__on_demand_take_over(errand->on_demand);
}

void kinf__errand_end(struct kinf__errand *errand)
{
    if (!errand->is_under_way)
        return;
    kinf_client_interrupt(errand->watches->client);
    pthread_join(errand->thread, NULL);
    errand->is_under_way = false;
    discard(errand);
}
