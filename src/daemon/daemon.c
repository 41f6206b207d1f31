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
#include "daemon/daemon_priv.h"
#include "daemon/measure.h"
#include "daemon/notify.h"

#define LOOK_MS 10000 /* between two looks at what nobody tells */

/* Signal handlers and callbacks set it, the main thread waits on it. */
static struct kinf__waker wake;
/* Atomic: a thread of somebody else's may take the signal. */
static _Atomic(bool) stop_asked, reload_asked;
static _Atomic(struct kinf_client *) interruptible; /* whose blocking calls a signal ends */

static void handle_signal(int signal_no)
{
    struct kinf_client *client = atomic_load(&interruptible);

    if (signal_no == SIGHUP) {
        atomic_store(&reload_asked, true);
    } else {
        atomic_store(&stop_asked, true);
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
void kinf__daemon_fail(struct kinf__daemon *daemon, const struct kinf_error *err)
{
    kinf__mutex_lock(&daemon->lock);
    if (daemon->failure.code == 0)
        daemon->failure = *err;
    kinf__mutex_unlock(&daemon->lock);
    kinf__waker_set(&wake);
}

static int take_failure(struct kinf__daemon *daemon, struct kinf_error *err)
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
    kinf__daemon_fail(ctx, err);
}

static bool waiting_mends(const struct kinf_error *err)
{
    return err->code != KINF_ERR_UNAUTHORIZED && err->code != KINF_ERR_FORBIDDEN &&
           err->code != KINF_ERR_NOT_FOUND && err->code != KINF_ERR_TLS && err->http_status != 400;
}

static void on_error(const char *resource, bool has_synced, const struct kinf_error *err, void *ctx)
{
    struct kinf__daemon *daemon = ctx;
    struct kinf_error told = *err;

    if (has_synced || atomic_load(&daemon->is_running) || waiting_mends(err))
        return;
    kinf__error_prefix(&told, "%s", resource);
    kinf__daemon_fail(daemon, &told);
}

int kinf__daemon_make_watch(struct kinf__daemon *daemon,
                            const struct kinf__resource_config *resource,
                            struct kinf__watch **ret_watch, struct kinf_error *err)
{
    const struct kinf__watch_owner owner = { on_synced, on_error, on_output_failure, daemon };
    struct kinf__events events = { .output = &daemon->output,
                                   .mode = daemon->events_mode,
                                   .with_objects = daemon->events_objects };

    return kinf__watch_new(daemon->client, resource, &events, &owner,
                           kinf__serving_server(daemon->serving), ret_watch, err);
}

/* Clients may come before the first list is in: they are told to come back. */
static int start_serving(struct kinf__daemon *daemon, struct kinf_error *err)
{
    int failed = kinf__serving_refresh(daemon->serving, daemon->client, err);

    if (failed < 0)
        return failed;
    return kinf__serving_listen(daemon->serving, &daemon->config, daemon->client,
                                daemon->options->kubeconfig_out, err);
}

static int start_all(struct kinf__daemon *daemon, struct kinf_error *err)
{
    int failed = 0;

    daemon->watches = calloc(daemon->config.n_resources, sizeof(struct kinf__watch *));
    if (daemon->watches == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; failed == 0 && i < daemon->config.n_resources; i++) {
        failed =
            kinf__daemon_make_watch(daemon, &daemon->config.resources[i], &daemon->watches[i], err);
        if (failed < 0)
            break;
        kinf__watch_publish(daemon->watches[i]);
        daemon->n_watches++;
    }
    if (failed == 0 && daemon->serving != NULL)
        failed = start_serving(daemon, err);
    for (size_t i = 0; failed == 0 && i < daemon->n_watches; i++)
        failed = kinf__watch_start(daemon->watches[i], err);
    return failed;
}

static bool all_synced(const struct kinf__daemon *daemon)
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

static void begin_errand(struct kinf__daemon *daemon)
{
    if (atomic_exchange(&reload_asked, false)) {
        kinf__errand_reload(daemon);
    } else {
        kinf__errand_refresh_columns(daemon);
    }
}

static int run_until_stopped(struct kinf__daemon *daemon, struct kinf_error *err)
{
    int64_t watchdog_ms = kinf__notify_watchdog_ms();
    int failed = 0;

    while (!atomic_load(&stop_asked) && (failed = take_failure(daemon, err)) == 0) {
        if (!atomic_load(&daemon->is_running) && all_synced(daemon)) {
            atomic_store(&daemon->is_running, true);
            KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "all synced resources=%zu",
                      daemon->n_watches);
            kinf__notify("READY=1");
        }
        kinf__errand_finish(daemon);
        if (!daemon->errand.is_under_way)
            begin_errand(daemon);
        if (watchdog_ms > 0)
            kinf__notify("WATCHDOG=1");
        kinf__waker_wait(&wake, watchdog_ms > 0 && watchdog_ms < LOOK_MS ? watchdog_ms : LOOK_MS);
        kinf__waker_clear(&wake);
    }
    kinf__notify("STOPPING=1");
    return failed;
}

static int print_measures(struct kinf__daemon *daemon, struct kinf_error *err)
{
    KINF__AUTO_BUFFER lines = KINF__BUFFER_INIT;
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < daemon->n_watches; i++)
        failed = kinf__measure(daemon->watches[i], &lines, err);
    return failed < 0 ? failed : kinf__output_write(&daemon->output, lines.bytes, lines.len, err);
}

static int unsynced_error(const struct kinf__daemon *daemon, struct kinf_error *err)
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

static int run_measure(struct kinf__daemon *daemon, struct kinf_error *err)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), daemon->options->timeout_ms);
    int failed;

    while (!all_synced(daemon)) {
        int64_t left_ms = deadline_ms - kinf__clock_now_ms();

        if ((failed = take_failure(daemon, err)) < 0)
            return failed;
        if (atomic_load(&stop_asked))
            return kinf__error_set(err, KINF_ERR_STOPPED, "interrupted");
        if (left_ms <= 0)
            return unsynced_error(daemon, err);
        kinf__waker_wait(&wake, left_ms);
        kinf__waker_clear(&wake);
    }
    return print_measures(daemon, err);
}

static void stop_all(struct kinf__daemon *daemon)
{
    kinf__errand_end(daemon);
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

static int run(struct kinf__daemon *daemon, struct kinf_error *err)
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
    if (atomic_load(&stop_asked) && daemon->options->command == KINF__COMMAND_RUN)
        failed = 0;
    return failed;
}

int kinf__daemon_run(struct kinf__options *options, struct kinf_error *err)
{
    struct kinf__daemon daemon = { .options = options,
                                   .events_mode = effective_mode(options),
                                   .wake = &wake };
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
