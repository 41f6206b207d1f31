/*
 * One thread that asks the API server, while the main thread goes on: for the types of a new
 * configuration, for what the server has, for the columns of custom resources. What it made the main
 * thread takes over, so a configuration comes into force as a whole or not at all.
 */
#include <stdlib.h>
#include <string.h>

#include <kinformer/log.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/daemon_priv.h"
#include "daemon/notify.h"

#define COLUMNS_MS 10000 /* between two looks */

/* The running watch that is what `resource` asks for; NULL if it has to be made. */
static struct kinf__watch *find_watch(const struct kinf__daemon *daemon,
                                      const struct kinf__resource_config *resource)
{
    for (size_t i = 0; i < daemon->n_watches; i++) {
        if (kinf__resource_config_equal(daemon->watches[i]->config, resource))
            return daemon->watches[i];
    }
    return NULL;
}

/* Makes the watches that do not run yet; running ones are taken over. */
static int prepare_watches(struct kinf__daemon *daemon, struct kinf__errand *errand)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < errand->config.n_resources; i++) {
        errand->watches[i] = find_watch(daemon, &errand->config.resources[i]);
        if (errand->watches[i] == NULL)
            failed = kinf__daemon_make_watch(daemon, &errand->config.resources[i],
                                             &errand->watches[i], &errand->err);
    }
    return failed;
}

static bool is_among(const struct kinf__watch *watch, struct kinf__watch *const *watches,
                     size_t n_watches)
{
    for (size_t i = 0; i < n_watches; i++) {
        if (watches[i] == watch)
            return true;
    }
    return false;
}

/* What was made for a configuration that is not taken over. */
static void discard(const struct kinf__daemon *daemon, struct kinf__errand *errand)
{
    for (size_t i = 0; errand->watches != NULL && i < errand->config.n_resources; i++) {
        if (!is_among(errand->watches[i], daemon->watches, daemon->n_watches))
            kinf__watch_free(errand->watches[i]);
    }
    free(KINF__TAKE(errand->watches));
    kinf__config_release(&errand->config);
    errand->config = (struct kinf__config){ 0 };
}

/* From here on nothing fails: what is not wanted any more goes, what is new starts. */
static void switch_over(struct kinf__daemon *daemon, struct kinf__errand *errand)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__watch **watches = KINF__TAKE(errand->watches);
    const struct kinf__config *config = &errand->config;

    /* Before the old ones go: a client is told to come back, not that there is nothing. */
    for (size_t i = 0; i < config->n_resources; i++) {
        if (!is_among(watches[i], daemon->watches, daemon->n_watches))
            kinf__watch_publish(watches[i]);
    }
    for (size_t i = 0; i < daemon->n_watches; i++) {
        if (!is_among(daemon->watches[i], watches, config->n_resources))
            kinf__watch_free(daemon->watches[i]);
    }
    for (size_t i = 0; i < config->n_resources; i++) {
        watches[i]->config = &config->resources[i];
        if (!is_among(watches[i], daemon->watches, daemon->n_watches) &&
            kinf__watch_start(watches[i], &err) < 0)
            kinf__daemon_fail(daemon, &err);
    }
    free(daemon->watches);
    daemon->watches = watches;
    daemon->n_watches = config->n_resources;
    kinf__config_release(&daemon->config);
    daemon->config = *config;
    errand->config = (struct kinf__config){ 0 };
}

static bool text_differs(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a != b : strcmp(a, b) != 0;
}

static bool strings_differ(const struct kinf__strings *a, const struct kinf__strings *b)
{
    bool differ = a->n_items != b->n_items;

    for (size_t i = 0; !differ && i < a->n_items; i++)
        differ = strcmp(a->items[i], b->items[i]) != 0;
    return differ;
}

/* What is decided once, at start. */
static void tell_unchangeable(const struct kinf__config *now, const struct kinf__config *wanted)
{
    if (strings_differ(&now->listen, &wanted->listen) || now->unix_mode != wanted->unix_mode ||
        now->n_unix_users != wanted->n_unix_users ||
        text_differs(now->cert_file, wanted->cert_file) ||
        text_differs(now->key_file, wanted->key_file) ||
        now->is_delegated != wanted->is_delegated || now->auth_allow_ms != wanted->auth_allow_ms ||
        now->auth_deny_ms != wanted->auth_deny_ms ||
        now->max_staleness_ms != wanted->max_staleness_ms ||
        now->pass_through != wanted->pass_through)
        KINF__LOG(
            KINF__LOG_DAEMON, KINF_LOG_WARN,
            "listen, unix..., tls, auth, maxStaleness and passThrough change only by a restart");
    if (text_differs(now->kubeconfig, wanted->kubeconfig) ||
        text_differs(now->context, wanted->context) || now->events != wanted->events ||
        now->events_objects != wanted->events_objects)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN,
                  "kubeconfig, context, events and eventsObjects change only by a restart");
}

/* --- the thread --- */

static void prepare_reload(struct kinf__daemon *daemon, struct kinf__errand *errand)
{
    struct kinf_error err = KINF_ERROR_INIT;

    errand->failed = prepare_watches(daemon, errand);
    if (errand->failed == 0 && daemon->serving != NULL &&
        kinf__serving_refresh(daemon->serving, daemon->client, &err) < 0)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN,
                  "what the server has was not read again error=%s", KINF__QUOTED(err.message));
}

static void *run(void *ctx)
{
    struct kinf__daemon *daemon = ctx;
    struct kinf__errand *errand = &daemon->errand;

    if (errand->is_reload)
        prepare_reload(daemon, errand);
    else
        kinf__serving_refresh_columns(daemon->serving, daemon->client);
    atomic_store(&errand->is_done, true);
    kinf__waker_set(daemon->wake);
    return NULL;
}

static int start(struct kinf__daemon *daemon, bool is_reload, struct kinf_error *err)
{
    struct kinf__errand *errand = &daemon->errand;
    int failed;

    errand->is_reload = is_reload;
    errand->failed = 0;
    errand->err = (struct kinf_error)KINF_ERROR_INIT;
    atomic_store(&errand->is_done, false);
    failed = kinf__thread_start(&errand->thread, "errand", run, daemon, err);
    errand->is_under_way = failed == 0;
    return failed;
}

/* --- reading the configuration again --- */

static int begin_reload(struct kinf__daemon *daemon, struct kinf_error *err)
{
    struct kinf__errand *errand = &daemon->errand;
    int failed;

    if (daemon->options->config_file == NULL)
        return kinf__error_set(err, KINF_ERR_STATE,
                               "there is no configuration file, all came by flags");
    failed = kinf__options_read_config(daemon->options, &errand->config, err);
    if (failed < 0)
        return failed;
    errand->watches = calloc(errand->config.n_resources, sizeof(struct kinf__watch *));
    failed = errand->watches != NULL ? start(daemon, true, err) : kinf__error_no_memory(err);
    if (failed < 0)
        discard(daemon, errand);
    return failed;
}

/* A manager waits for the end of the reload; before the first sync nothing is ready. */
static void tell_reloaded(struct kinf__daemon *daemon, const struct kinf_error *err)
{
    if (err != NULL)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_ERROR,
                  "configuration not taken over, nothing changed error=%s",
                  KINF__QUOTED(err->message));
    else
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "configuration read again resources=%zu",
                  daemon->n_watches);
    if (atomic_load(&daemon->is_running))
        kinf__notify("READY=1");
}

void kinf__errand_reload(struct kinf__daemon *daemon)
{
    struct kinf_error err = KINF_ERROR_INIT;

    kinf__notify_reloading();
    if (begin_reload(daemon, &err) < 0)
        tell_reloaded(daemon, &err);
}

static int take_over(struct kinf__daemon *daemon, struct kinf__errand *errand)
{
    const char *log_levels = errand->config.log_levels;

    if (errand->failed < 0)
        return errand->failed;
    if (log_levels != NULL && daemon->options->log_levels == NULL &&
        kinf_log_set_levels(log_levels, &errand->err) < 0)
        return errand->err.code;
    tell_unchangeable(&daemon->config, &errand->config);
    switch_over(daemon, errand);
    return 0;
}

void kinf__errand_finish(struct kinf__daemon *daemon)
{
    struct kinf__errand *errand = &daemon->errand;
    int failed;

    if (!errand->is_under_way || !atomic_load(&errand->is_done))
        return;
    pthread_join(errand->thread, NULL);
    errand->is_under_way = false;
    if (!errand->is_reload)
        return;
    failed = take_over(daemon, errand);
    if (failed < 0)
        discard(daemon, errand);
    tell_reloaded(daemon, failed < 0 ? &errand->err : NULL);
}

void kinf__errand_end(struct kinf__daemon *daemon)
{
    struct kinf__errand *errand = &daemon->errand;

    if (!errand->is_under_way)
        return;
    kinf_client_interrupt(daemon->client);
    pthread_join(errand->thread, NULL);
    errand->is_under_way = false;
    discard(daemon, errand);
}

/* --- columns --- */

/* The server ends the watches of a custom resource when its definition changes. */
void kinf__errand_refresh_columns(struct kinf__daemon *daemon)
{
    struct kinf__errand *errand = &daemon->errand;
    struct kinf_error err = KINF_ERROR_INIT;
    uint64_t n_watches;
    int64_t now_ms = kinf__clock_now_ms();

    if (daemon->serving == NULL || now_ms < errand->columns_ms)
        return;
    errand->columns_ms = kinf__clock_add_ms(now_ms, COLUMNS_MS);
    n_watches = kinf__serving_defined_watches(daemon->serving);
    if (n_watches == errand->columns_watches)
        return;
    errand->columns_watches = n_watches;
    if (start(daemon, false, &err) < 0)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN, "columns are not asked for error=%s",
                  KINF__QUOTED(err.message));
}
