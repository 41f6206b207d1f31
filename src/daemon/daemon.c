/*
 * Running what the configuration asks for. The main thread starts and ends everything; it sleeps on
 * one waker, which signals, the first complete sync and failures set. Before everything has synced
 * once, a failure that waiting does not mend (400, 401, 403, 404, TLS) ends the daemon; afterwards
 * it is a state of the informer, logged and retried.
 */
#include "daemon/daemon.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kinformer/log.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "daemon/measure.h"
#include "daemon/notify.h"
#include "daemon/serving.h"
#include "daemon/watch.h"

struct daemon {
    /* owned by the main thread */
    const struct kinf__options *options;
    struct kinf__config config;
    struct kinf_client *client;
    struct kinf__serving *serving; /* NULL: nothing listens */
    struct kinf__watch **watches;  /* one for each resource of config, in its order */
    size_t n_watches;
    struct kinf__output output;
    /* constant after start */
    enum kinf__events_mode events_mode;
    bool events_objects;
    /* atomic */
    _Atomic(bool) is_running; /* everything has synced once */
    /* guarded by lock */
    struct kinf__mutex lock;
    struct kinf_error failure; /* why to end; code 0: go on */
};

/* Signal handlers and callbacks set it, the main thread waits on it. */
static struct kinf__waker wake;
static volatile sig_atomic_t stop_asked, reload_asked;
static _Atomic(struct kinf_client *) interruptible; /* whose blocking calls a signal ends */

static void handle_signal(int signal_no)
{
    struct kinf_client *client = atomic_load(&interruptible);

    if (signal_no == SIGHUP) {
        reload_asked = 1;
    } else {
        stop_asked = 1;
        if (client != NULL)
            kinf_client_interrupt(client);
    }
    kinf__waker_set(&wake);
}

static void install_signal_handlers(void)
{
    struct sigaction action = { .sa_handler = handle_signal, .sa_flags = SA_RESTART };
    struct sigaction ignore = { .sa_handler = SIG_IGN };

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

/* The first failure wins. */
static void fail(struct daemon *daemon, const struct kinf_error *err)
{
    kinf__mutex_lock(&daemon->lock);
    if (daemon->failure.code == 0)
        daemon->failure = *err;
    kinf__mutex_unlock(&daemon->lock);
    kinf__waker_set(&wake);
}

static int take_failure(struct daemon *daemon, struct kinf_error *err)
{
    int code;

    kinf__mutex_lock(&daemon->lock);
    code = (int)daemon->failure.code;
    if (code < 0)
        *err = daemon->failure;
    kinf__mutex_unlock(&daemon->lock);
    return code;
}

static void on_synced(void *ctx)
{
    (void)ctx;
    kinf__waker_set(&wake);
}

static void on_output_failure(const struct kinf_error *err, void *ctx)
{
    fail(ctx, err);
}

static bool waiting_mends(const struct kinf_error *err)
{
    return err->code != KINF_ERR_UNAUTHORIZED && err->code != KINF_ERR_FORBIDDEN &&
           err->code != KINF_ERR_NOT_FOUND && err->code != KINF_ERR_TLS && err->http_status != 400;
}

static void on_error(const char *resource, bool has_synced, const struct kinf_error *err, void *ctx)
{
    struct daemon *daemon = ctx;
    struct kinf_error told = *err;

    if (has_synced || atomic_load(&daemon->is_running) || waiting_mends(err))
        return;
    kinf__error_prefix(&told, "%s", resource);
    fail(daemon, &told);
}

static int make_watch(struct daemon *daemon, struct kinf_client *client,
                      const struct kinf__resource_config *resource, struct kinf__watch **ret_watch,
                      struct kinf_error *err)
{
    const struct kinf__watch_owner owner = { on_synced, on_error, on_output_failure, daemon };
    struct kinf__events events = { .output = &daemon->output,
                                   .mode = daemon->events_mode,
                                   .with_objects = daemon->events_objects };

    return kinf__watch_new(client, resource, &events, &owner, kinf__serving_server(daemon->serving),
                           ret_watch, err);
}

/* Clients may come before the first list is in: they are told to come back. */
static int start_serving(struct daemon *daemon, struct kinf_error *err)
{
    int failed = kinf__serving_refresh(daemon->serving, daemon->client, err);

    if (failed < 0)
        return failed;
    return kinf__serving_listen(daemon->serving, &daemon->config, daemon->client,
                                daemon->options->kubeconfig_out, err);
}

static int start_all(struct daemon *daemon, struct kinf_error *err)
{
    int failed = 0;

    daemon->watches = calloc(daemon->config.n_resources, sizeof(struct kinf__watch *));
    if (daemon->watches == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; failed == 0 && i < daemon->config.n_resources; i++) {
        failed = make_watch(daemon, daemon->client, &daemon->config.resources[i],
                            &daemon->watches[i], err);
        if (failed == 0)
            daemon->n_watches++;
    }
    if (failed == 0 && daemon->serving != NULL)
        failed = start_serving(daemon, err);
    for (size_t i = 0; failed == 0 && i < daemon->n_watches; i++)
        failed = kinf__watch_start(daemon->watches[i], err);
    return failed;
}

static bool all_synced(const struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->n_watches; i++) {
        if (!kinf__watch_has_synced(daemon->watches[i]))
            return false;
    }
    return true;
}

static int new_client(const struct kinf__config *config, struct kinf_client **ret_client,
                      struct kinf_error *err)
{
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;

    options.kubeconfig = config->kubeconfig;
    options.context = config->context;
    return kinf_client_new(&options, ret_client, err);
}

/* --- reading the configuration again --- */

/* The running watch that is what `resource` asks for; NULL if it has to be made. */
static struct kinf__watch *find_watch(const struct daemon *daemon,
                                      const struct kinf__resource_config *resource)
{
    for (size_t i = 0; i < daemon->n_watches; i++) {
        if (kinf__resource_config_equal(daemon->watches[i]->config, resource))
            return daemon->watches[i];
    }
    return NULL;
}

/* Makes the watches of `config` that do not run yet; running ones are taken over. */
static int prepare_watches(struct daemon *daemon, const struct kinf__config *config,
                           struct kinf__watch **watches, struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < config->n_resources; i++) {
        watches[i] = find_watch(daemon, &config->resources[i]);
        if (watches[i] == NULL)
            failed = make_watch(daemon, daemon->client, &config->resources[i], &watches[i], err);
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
static void discard_watches(const struct daemon *daemon, size_t n_watches,
                            struct kinf__watch **watches)
{
    for (size_t i = 0; watches != NULL && i < n_watches; i++) {
        if (!is_among(watches[i], daemon->watches, daemon->n_watches))
            kinf__watch_free(watches[i]);
    }
    free(watches);
}

/* From here on nothing fails: what is not wanted any more goes, what is new starts. */
static void switch_to(struct daemon *daemon, struct kinf__config *config,
                      struct kinf__watch **watches)
{
    struct kinf_error err = KINF_ERROR_INIT;

    for (size_t i = 0; i < daemon->n_watches; i++) {
        if (!is_among(daemon->watches[i], watches, config->n_resources))
            kinf__watch_free(daemon->watches[i]);
    }
    for (size_t i = 0; i < config->n_resources; i++) {
        watches[i]->config = &config->resources[i];
        if (!is_among(watches[i], daemon->watches, daemon->n_watches) &&
            kinf__watch_start(watches[i], &err) < 0)
            fail(daemon, &err);
    }
    free(daemon->watches);
    daemon->watches = watches;
    daemon->n_watches = config->n_resources;
    kinf__config_release(&daemon->config);
    daemon->config = *config;
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

static int reload(struct daemon *daemon, struct kinf_error *err)
{
    struct kinf__config config = { 0 };
    struct kinf__watch **watches = NULL;
    int failed;

    if (daemon->options->config_file == NULL)
        return kinf__error_set(err, KINF_ERR_STATE,
                               "there is no configuration file, all came by flags");
    failed = kinf__options_read_config(daemon->options, &config, err);
    if (failed < 0)
        return failed;
    watches = calloc(config.n_resources, sizeof(struct kinf__watch *));
    failed = watches != NULL ? prepare_watches(daemon, &config, watches, err)
                             : kinf__error_no_memory(err);
    if (failed == 0 && config.log_levels != NULL && daemon->options->log_levels == NULL)
        failed = kinf_log_set_levels(config.log_levels, err);
    if (failed < 0) {
        discard_watches(daemon, config.n_resources, watches);
        kinf__config_release(&config);
        return failed;
    }
    tell_unchangeable(&daemon->config, &config);
    if (daemon->serving != NULL && kinf__serving_refresh(daemon->serving, daemon->client, err) < 0)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN,
                  "what the server has was not read again error=\"%s\"", err->message);
    switch_to(daemon, &config, watches);
    return 0;
}

static void try_reload(struct daemon *daemon)
{
    struct kinf_error err = KINF_ERROR_INIT;

    kinf__notify_reloading();
    if (reload(daemon, &err) < 0)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_ERROR,
                  "configuration not taken over, nothing changed error=%s",
                  KINF__QUOTED(err.message));
    else
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "configuration read again resources=%zu",
                  daemon->n_watches);
    /* A manager that waits for the end of the reload; before the first sync nothing is ready. */
    if (atomic_load(&daemon->is_running))
        kinf__notify("READY=1");
}

/* --- running --- */

static int run_until_stopped(struct daemon *daemon, struct kinf_error *err)
{
    int64_t watchdog_ms = kinf__notify_watchdog_ms();
    int failed = 0;

    while (!stop_asked && (failed = take_failure(daemon, err)) == 0) {
        if (!atomic_load(&daemon->is_running) && all_synced(daemon)) {
            atomic_store(&daemon->is_running, true);
            KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "all synced resources=%zu",
                      daemon->n_watches);
            kinf__notify("READY=1");
        }
        if (reload_asked) {
            reload_asked = 0;
            try_reload(daemon);
        }
        if (watchdog_ms > 0)
            kinf__notify("WATCHDOG=1");
        kinf__waker_wait(&wake, watchdog_ms > 0 ? watchdog_ms : KINF__NEVER_MS);
        kinf__waker_clear(&wake);
    }
    kinf__notify("STOPPING=1");
    return failed;
}

static int print_measures(struct daemon *daemon, struct kinf_error *err)
{
    KINF__AUTO_BUFFER lines = KINF__BUFFER_INIT;
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < daemon->n_watches; i++)
        failed = kinf__measure(daemon->watches[i], &lines, err);
    return failed < 0 ? failed : kinf__output_write(&daemon->output, lines.bytes, lines.len, err);
}

static int unsynced_error(const struct daemon *daemon, struct kinf_error *err)
{
    for (size_t i = 0; i < daemon->n_watches; i++) {
        struct kinf_informer_status status;

        if (kinf__watch_has_synced(daemon->watches[i]))
            continue;
        kinf_informer_status(daemon->watches[i]->informers[0], &status);
        return kinf__error_set(err, KINF_ERR_TIMEOUT, "%s did not sync within %lld ms (%s%s%s)",
                               daemon->watches[i]->resource, (long long)daemon->options->timeout_ms,
                               kinf_informer_state_to_string(status.state),
                               *status.reason != '\0' ? ": " : "", status.reason);
    }
    return 0;
}

static int run_measure(struct daemon *daemon, struct kinf_error *err)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), daemon->options->timeout_ms);
    int failed;

    while (!all_synced(daemon)) {
        int64_t left_ms = deadline_ms - kinf__clock_now_ms();

        if ((failed = take_failure(daemon, err)) < 0)
            return failed;
        if (stop_asked)
            return kinf__error_set(err, KINF_ERR_STOPPED, "interrupted");
        if (left_ms <= 0)
            return unsynced_error(daemon, err);
        kinf__waker_wait(&wake, left_ms);
        kinf__waker_clear(&wake);
    }
    return print_measures(daemon, err);
}

static void stop_all(struct daemon *daemon)
{
    kinf__output_stop(&daemon->output);
    kinf__serving_stop(daemon->serving);
    for (size_t i = 0; i < daemon->n_watches; i++)
        kinf__watch_free(daemon->watches[i]);
    free(daemon->watches);
    kinf__serving_free(daemon->serving);
    atomic_store(&interruptible, NULL);
    kinf_client_free(daemon->client);
    kinf__config_release(&daemon->config);
}

static enum kinf__events_mode effective_mode(const struct kinf__options *options)
{
    if (options->command == KINF__COMMAND_MEASURE)
        return KINF__EVENTS_NONE;
    if (options->config.events != KINF__EVENTS_DEFAULT)
        return options->config.events;
    return isatty(STDOUT_FILENO) ? KINF__EVENTS_TEXT : KINF__EVENTS_NONE;
}

static int run(struct daemon *daemon, struct kinf_error *err)
{
    int failed = new_client(&daemon->config, &daemon->client, err);

    if (failed < 0)
        return failed;
    atomic_store(&interruptible, daemon->client);
    if (daemon->config.listen.n_items != 0 && daemon->options->command == KINF__COMMAND_RUN)
        failed = kinf__serving_new(&daemon->config, daemon->client, &daemon->serving, err);
    if (failed == 0)
        failed = start_all(daemon, err);
    if (failed == 0)
        failed = daemon->options->command == KINF__COMMAND_MEASURE ? run_measure(daemon, err)
                                                                   : run_until_stopped(daemon, err);
    /* A signal ends blocking calls, which then fail: that is what was asked for. */
    if (stop_asked && daemon->options->command == KINF__COMMAND_RUN)
        failed = 0;
    return failed;
}

int kinf__daemon_run(struct kinf__options *options, struct kinf_error *err)
{
    struct daemon daemon = { .options = options, .events_mode = effective_mode(options) };
    int failed;

    daemon.events_objects = options->config.events_objects;
    daemon.config = options->config;
    options->config = (struct kinf__config){ 0 };
    kinf__mutex_init(&daemon.lock, KINF__RANK_DAEMON);
    failed = kinf__waker_init(&wake, err);
    if (failed == 0)
        failed = kinf__output_init(&daemon.output, STDOUT_FILENO, err);
    if (failed == 0) {
        install_signal_handlers();
        failed = run(&daemon, err);
        stop_all(&daemon);
        kinf__output_release(&daemon.output);
    }
    kinf__waker_release(&wake);
    kinf__mutex_release(&daemon.lock);
    return failed;
}
