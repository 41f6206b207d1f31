/*
 * Running what the configuration asks for. The main thread starts and ends everything; it sleeps on
 * one waker, which signals, the first complete sync and failures set. Neighbours: watches.c has what
 * runs, errand.c asks the server meanwhile.
 */
#include "daemon/daemon.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <unistd.h>

#include <kinformer/log.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/check.h"
#include "daemon/errand.h"
#include "daemon/measure.h"
#include "daemon/notify.h"
#include "daemon/progress.h"
#include "reflector/backoff.h"

#define LOOK_MS       10000 /* between two looks at what nobody tells */
#define LOOK_SOON_MS  200
#define WAIT_BASE_MS  500 /* before the server is asked again that was not there at start */
#define WAIT_MAX_MS   10000
#define TELL_AGAIN_MS 600000

/* Signal handlers and callbacks set it, the main thread waits on it. */
static struct kinf__waker wake;
/* Atomic: a thread of somebody else's may take the signal. */
static _Atomic(bool) stop_asked, reload_asked, reopen_asked, time_is_over;
static _Atomic(struct kinf_client *) interruptible; /* whose blocking calls a signal ends */

static void handle_signal(int signal_no)
{
    struct kinf_client *client = atomic_load(&interruptible);

    if (signal_no == SIGHUP)
        atomic_store(&reopen_asked, true);
    atomic_store(signal_no == SIGHUP    ? &reload_asked
                 : signal_no == SIGALRM ? &time_is_over
                                        : &stop_asked,
                 true);
    if (client != NULL && signal_no != SIGHUP)
        kinf_client_interrupt(client);
    kinf__waker_set(&wake);
}

struct daemon {
    const struct kinf__options *options;
    struct kinf__watches watches;
    struct kinf__on_demand on_demand;
    struct kinf__errand errand;
    struct kinf__progress progress;
};

static void mask_sighup(int how)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(how, &signals, NULL);
}

/* `flags`: SA_RESTART, or 0: a signal ends what waits, as for a pipe. */
static void install_signal_handlers(int flags)
{
    struct sigaction action = { .sa_handler = handle_signal, .sa_flags = flags };
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction by_default = { .sa_handler = SIG_DFL };

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    /* Who started us may ignore it: a child would be gone before it is waited for, and its number free. */
    sigaction(SIGCHLD, &by_default, NULL);
}

/* From here on blocking calls end by signals, also by one that came before. */
static void make_interruptible(struct kinf_client *client)
{
    atomic_store(&interruptible, client);
    if (atomic_load(&stop_asked) || atomic_load(&time_is_over))
        kinf_client_interrupt(client);
}

/* The time counts from here, whatever it is spent on: a plugin, discovery, the first list. */
static void limit_time(int64_t limit_ms)
{
    const struct itimerval limit = { .it_value = { .tv_sec = limit_ms / 1000,
                                                   .tv_usec = limit_ms % 1000 * 1000 } };

    setitimer(ITIMER_REAL, &limit, NULL);
}

/* What rotates logs waits for no server. */
static void reopen_log(struct daemon *daemon)
{
    if (atomic_exchange(&reopen_asked, false) && daemon->watches.serving != NULL)
        kinf__serving_reopen_log(daemon->watches.serving);
}

/* --- a server that is not there yet --- */

struct outage {
    struct kinf__backoff backoff;
    struct kinf_error told; /* code 0: nothing */
    int64_t told_ms;
};

static void tell_outage(struct outage *outage, const struct kinf_error *err)
{
    int64_t now_ms = kinf__clock_now_ms();
    bool is_known = outage->told.code == err->code &&
                    outage->told.http_status == err->http_status &&
                    now_ms - outage->told_ms < TELL_AGAIN_MS;

    KINF__LOG(KINF__LOG_DAEMON, is_known ? KINF_LOG_DEBUG : KINF_LOG_WARN,
              "waiting for the server error=%s", KINF__QUOTED(err->message));
    if (is_known)
        return;
    outage->told = *err;
    outage->told_ms = now_ms;
    kinf__notify("STATUS=waiting for the server");
}

/* A server that sends us elsewhere, or knows no such thing, will not do otherwise later. */
static bool is_away(const struct kinf_error *err)
{
    return err->code == KINF_ERR_NETWORK || err->code == KINF_ERR_TIMEOUT ||
           err->code == KINF_ERR_TOO_MANY_REQUESTS || err->code == KINF_ERR_TRUNCATED ||
           (err->code == KINF_ERR_SERVER && (err->http_status == 0 || err->http_status >= 500));
}

/* Whether what failed is to be tried again, after a pause: a daemon may be there before its server.
 * Whoever measures wants to know now. */
static bool waits_for_server(struct daemon *daemon, struct outage *outage,
                             const struct kinf_error *err)
{
    if (daemon->options->command != KINF__COMMAND_RUN || !is_away(err))
        return false;
    tell_outage(outage, err);
    kinf__waker_wait(&wake,
                     kinf__backoff_next(&outage->backoff, kinf__clock_now_ms(),
                                        (uint64_t)kinf__clock_now_ns(), err->retry_after_ms));
    kinf__waker_clear(&wake);
    reopen_log(daemon);
    return !atomic_load(&stop_asked);
}

/* --- start --- */

static int make_watch(struct daemon *daemon, size_t i, struct outage *outage,
                      struct kinf_error *err)
{
    struct kinf__watches *watches = &daemon->watches;
    struct kinf_error told = KINF_ERROR_INIT;
    int failed;

    do
        failed =
            kinf__watches_make(watches, &watches->config.resources[i], &watches->items[i], &told);
    while (failed < 0 && waits_for_server(daemon, outage, &told));
    if (failed < 0)
        *err = told;
    return failed;
}

static int fetch_catalog(struct daemon *daemon, struct outage *outage, struct kinf_error *err)
{
    struct kinf__watches *watches = &daemon->watches;
    struct kinf_error told = KINF_ERROR_INIT;
    int failed;

    do
        failed = kinf__serving_refresh(watches->serving, watches->client, &told);
    while (failed < 0 && waits_for_server(daemon, outage, &told));
    if (failed < 0)
        *err = told;
    return failed;
}

/* What clients need to know of the server, from what is known of it without asking. */
static int use_types(struct kinf__watches *watches, struct kinf_error *err)
{
    KINF__AUTO_FREE const struct kinf_type **types =
        calloc(watches->n_items + 1, sizeof(struct kinf_type *));

    if (types == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; i < watches->n_items; i++)
        types[i] = kinf_informer_type(watches->items[i]->informers[0]);
    atomic_store(&watches->is_catalog_due, true);
    return kinf__serving_use_types(watches->serving, types, watches->n_items, err);
}

/* Before anything is loaded: of another cluster it would be. */
static int start_keeper(struct daemon *daemon, struct outage *outage, struct kinf_error *err)
{
    struct kinf__state_keeper *keeper = daemon->watches.keeper;
    struct kinf_error told = KINF_ERROR_INIT;
    int failed;

    if (kinf__state_keeper_serves_saved(keeper))
        return kinf__state_keeper_start(keeper, err);
    do
        failed = kinf__state_keeper_find_cluster(keeper, &told);
    while (failed < 0 && waits_for_server(daemon, outage, &told));
    if (failed == 0)
        return kinf__state_keeper_start(keeper, err);
    *err = told;
    return failed;
}

/* Daemons that start together, since the power is back, say, do not all ask at once. */
static void spread_start(const struct daemon *daemon)
{
    int64_t spread_ms = daemon->watches.config.start_spread_ms, until_ms, left_ms;
    uint64_t random = 0;

    if (spread_ms == 0 || daemon->options->command != KINF__COMMAND_RUN)
        return;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = (uint64_t)kinf__clock_now_ns();
    left_ms = (int64_t)(random % (uint64_t)spread_ms);
    KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "waiting before the first request ms=%lld",
              (long long)left_ms);
    until_ms = kinf__clock_add_ms(kinf__clock_now_ms(), left_ms);
    for (; left_ms > 0 && !atomic_load(&stop_asked);
         left_ms = kinf__clock_left_ms(kinf__clock_now_ms(), until_ms)) {
        kinf__waker_wait(&wake, left_ms);
        kinf__waker_clear(&wake);
    }
}

/* Listens before the server is asked: probes and clients may come while it is away, and are told so. */
static int start_all(struct daemon *daemon, struct kinf_error *err)
{
    struct kinf__watches *watches = &daemon->watches;
    struct outage outage = { .told_ms = 0 };
    int failed = 0;

    kinf__backoff_init(&outage.backoff, WAIT_BASE_MS, WAIT_MAX_MS);
    watches->items = calloc(watches->config.n_resources + 1, sizeof(struct kinf__watch *));
    if (watches->items == NULL)
        return kinf__error_no_memory(err);
    if (watches->serving != NULL)
        failed = kinf__serving_listen(watches->serving, &watches->config, watches->client,
                                      daemon->options, err);
    if (failed == 0)
        spread_start(daemon);
    for (size_t i = 0; failed == 0 && i < watches->config.n_resources; i++) {
        failed = make_watch(daemon, i, &outage, err);
        if (failed < 0)
            break;
        kinf__watch_publish(watches->items[i]);
        watches->n_items++;
    }
    if (failed == 0 && watches->serving != NULL)
        failed = kinf__state_keeper_serves_saved(watches->keeper)
                     ? use_types(watches, err)
                     : fetch_catalog(daemon, &outage, err);
    if (failed == 0 && watches->keeper != NULL)
        failed = start_keeper(daemon, &outage, err);
    if (failed == 0 && outage.told.code != 0)
        kinf__notify("STATUS=");
    for (size_t i = 0; failed == 0 && i < watches->n_items; i++)
        failed = kinf__watch_start(watches->items[i], err);
    return failed;
}

/* The kubeconfig may be a pipe to which nobody writes: signals end that. */
static int new_client(struct daemon *daemon, struct kinf_error *err)
{
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    struct kinf__watches *watches = &daemon->watches;
    int failed;

    if (daemon->options->command == KINF__COMMAND_CHECK_CONFIG)
        options.queries_per_second = -1;
    options.kubeconfig = watches->config.kubeconfig;
    options.context = watches->config.context;
    failed = kinf_client_new(&options, &watches->client, err);
    install_signal_handlers(SA_RESTART);
    mask_sighup(SIG_UNBLOCK);
    return failed < 0 && atomic_load(&time_is_over)
               ? kinf__error_set(err, KINF_ERR_TIMEOUT,
                                 "the kubeconfig was not read within %lld ms",
                                 (long long)daemon->options->timeout_ms)
               : failed;
}

/* Until somebody wakes the main thread, or it is to look or tell again. */
static void sleep_a_while(struct daemon *daemon, int64_t at_most_ms)
{
    int64_t again_ms = kinf__progress_tell(&daemon->progress, &daemon->watches, &daemon->on_demand);

    kinf__waker_wait(&wake, again_ms >= 0 && again_ms < at_most_ms ? again_ms : at_most_ms);
    kinf__waker_clear(&wake);
}

static void note_synced(struct kinf__watches *watches)
{
    bool have_synced = kinf__watches_have_synced(watches);

    if (atomic_load(&watches->are_running) || (!have_synced && !kinf__watches_are_ready(watches)))
        return;
    atomic_store(&watches->are_running, true);
    KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "%s resources=%zu",
              have_synced ? "all synced" : "serving what was kept until the server confirms it",
              watches->n_items);
    kinf__notify("READY=1");
}

/* `wait_ms` not above 0: whenever it suits. */
static int64_t soonest(int64_t wait_ms, int64_t other_ms)
{
    return wait_ms > 0 && wait_ms < other_ms ? wait_ms : other_ms;
}

/* Nobody tells that what was kept is loaded. */
static int64_t look_ms(const struct daemon *daemon)
{
    const struct kinf__watches *watches = &daemon->watches;

    return kinf__state_keeper_serves_saved(watches->keeper) && !atomic_load(&watches->are_running)
               ? LOOK_SOON_MS
               : LOOK_MS;
}

static int run_until_stopped(struct daemon *daemon, struct kinf_error *err)
{
    int64_t watchdog_ms = kinf__notify_watchdog_ms(), again_ms;
    int failed = 0;

    while (!atomic_load(&stop_asked) &&
           (failed = kinf__watches_failure(&daemon->watches, err)) == 0) {
        note_synced(&daemon->watches);
        reopen_log(daemon);
        kinf__errand_finish(&daemon->errand);
        again_ms = kinf__on_demand_look(&daemon->on_demand, !daemon->errand.is_under_way);
        if (!daemon->errand.is_under_way)
            kinf__errand_begin(&daemon->errand, atomic_exchange(&reload_asked, false));
        if (daemon->watches.serving != NULL)
            kinf__serving_refresh_kubeconfig(daemon->watches.serving);
        kinf__daemon_handlers_look(&daemon->watches.handlers);
        if (watchdog_ms > 0)
            kinf__notify("WATCHDOG=1");
        sleep_a_while(daemon, soonest(again_ms, soonest(watchdog_ms, look_ms(daemon))));
    }
    kinf__notify("STOPPING=1");
    return failed;
}

static int print_measures(struct kinf__watches *watches, struct kinf_error *err)
{
    KINF__AUTO_BUFFER lines = KINF__BUFFER_INIT;
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < watches->n_items; i++)
        failed = kinf__measure(watches->items[i], &lines, err);
    return failed < 0 ? failed
                      : kinf__output_write(&watches->output, NULL, lines.bytes, lines.len, err);
}

/* Why time is over: the first resource that is not there yet. */
static int late_error(const struct daemon *daemon, struct kinf_error *err)
{
    const struct kinf__watches *watches = &daemon->watches;
    struct kinf_informer_status status = { .reason = "" };
    const char *name, *state = "looked up";
    size_t i = 0;

    /* The last one may have synced just now. */
    while (i + 1 < watches->config.n_resources && i < watches->n_items &&
           kinf__watch_has_synced(watches->items[i]))
        i++;
    name = watches->config.resources[i].resource;
    if (i < watches->n_items) {
        kinf_informer_status(watches->items[i]->informers[0], &status);
        name = watches->items[i]->resource;
        state = kinf_informer_state_to_string(status.state);
    }
    return kinf__error_set(err, KINF_ERR_TIMEOUT, "%s did not sync within %lld ms (%s%s%s)", name,
                           (long long)daemon->options->timeout_ms, state,
                           *status.reason != '\0' ? ": " : "", status.reason);
}

static int run_measure(struct daemon *daemon, struct kinf_error *err)
{
    struct kinf__watches *watches = &daemon->watches;
    int failed;

    while (!kinf__watches_have_synced(watches)) {
        if ((failed = kinf__watches_failure(watches, err)) < 0)
            return failed;
        if (atomic_load(&stop_asked) || atomic_load(&time_is_over))
            return kinf__error_set(err, KINF_ERR_STOPPED, "interrupted");
        sleep_a_while(daemon, LOOK_MS);
    }
    return print_measures(watches, err);
}

/* Returns false if a handler does not end. With a Lease that ends the process where handlers are stopped,
 * and by then the state has to be written. */
static bool stop_all(struct daemon *daemon)
{
    struct kinf__watches *watches = &daemon->watches;
    bool have_ended;

    kinf__progress_end();
    kinf__state_keeper_begin_stop(watches->keeper);
    kinf__daemon_handlers_interrupt(&watches->handlers);
    kinf__errand_end(&daemon->errand);
    kinf__output_stop(&watches->output);
    kinf__serving_stop(watches->serving);
    kinf__state_keeper_stop(watches->keeper);
    have_ended = kinf__daemon_handlers_stop(&watches->handlers);
    kinf__on_demand_release(&daemon->on_demand);
    for (size_t i = 0; i < watches->n_items; i++)
        kinf__watch_interrupt(watches->items[i]);
    for (size_t i = 0; i < watches->n_items; i++)
        kinf__watch_free(watches->items[i]);
    free(watches->items);
    kinf__serving_free(watches->serving);
    kinf__state_keeper_free(watches->keeper);
    kinf__daemon_handlers_release(&watches->handlers);
    atomic_store(&interruptible, NULL);
    kinf_client_free(watches->client);
    kinf__config_release(&watches->config);
    kinf__config_release(&watches->started);
    return have_ended;
}

static void leave_at_once(int failed, const struct kinf_error *err)
{
    if (failed < 0)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_ERROR, "ended error=%s", KINF__QUOTED(err->message));
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

static enum kinf__events_mode effective_mode(const struct kinf__options *options)
{
    if (options->command == KINF__COMMAND_MEASURE)
        return KINF__EVENTS_NONE;
    if (options->config.events != KINF__EVENTS_DEFAULT)
        return options->config.events;
    return isatty(STDOUT_FILENO) ? KINF__EVENTS_TEXT : KINF__EVENTS_NONE;
}

static int check(const struct daemon *daemon, struct kinf_error *err)
{
    int failed = kinf__check_online(daemon->watches.client, &daemon->watches.config, err);

    return failed == KINF_ERR_STOPPED && atomic_load(&time_is_over)
               ? kinf__error_set(err, KINF_ERR_TIMEOUT, "not checked within %lld ms",
                                 (long long)daemon->options->timeout_ms)
               : failed;
}

static int work(struct daemon *daemon, struct kinf_error *err)
{
    struct kinf__watches *watches = &daemon->watches;
    bool is_measure = daemon->options->command == KINF__COMMAND_MEASURE;
    int failed = 0;

    if (watches->config.state_dir != NULL && !is_measure)
        failed = kinf__state_keeper_new(&watches->config, watches->client, &watches->keeper, err);
    if (failed == 0 && !is_measure &&
        (watches->config.listen.n_items != 0 || watches->config.health_listen != NULL))
        failed = kinf__serving_new(&watches->config, watches->client, watches->wake,
                                   &watches->handlers, watches->keeper, &watches->serving, err);
    if (failed == 0 && !is_measure)
        failed =
            kinf__daemon_handlers_start(&watches->handlers, &watches->config, watches->client, err);
    kinf__on_demand_init(&daemon->on_demand, watches);
    if (failed == 0)
        failed = start_all(daemon, err);
    if (failed == 0)
        failed = kinf__daemon_handlers_stand(&watches->handlers, err);
    if (failed == 0)
        failed = is_measure ? run_measure(daemon, err) : run_until_stopped(daemon, err);
    return failed == KINF_ERR_STOPPED && atomic_load(&time_is_over) ? late_error(daemon, err)
                                                                    : failed;
}

static int run(struct daemon *daemon, struct kinf_error *err)
{
    enum kinf__command command = daemon->options->command;
    int failed = new_client(daemon, err);

    if (failed == 0) {
        make_interruptible(daemon->watches.client);
        failed = command == KINF__COMMAND_CHECK_CONFIG ? check(daemon, err) : work(daemon, err);
    }
    /* A signal ends blocking calls, which then fail: that is what was asked for. */
    return atomic_load(&stop_asked) && command == KINF__COMMAND_RUN ? 0 : failed;
}

void kinf__daemon_hold_reload(void)
{
    mask_sighup(SIG_BLOCK);
}

int kinf__daemon_run(struct kinf__options *options, struct kinf_error *err)
{
    struct daemon daemon = { .options = options };
    struct kinf__watches *watches = &daemon.watches;
    int failed;

    daemon.errand.options = options;
    daemon.errand.watches = watches;
    daemon.errand.on_demand = &daemon.on_demand;
    kinf__on_demand_init(&daemon.on_demand, watches);
    watches->events_mode = effective_mode(options);
    watches->events_objects = options->config.events_objects;
    watches->wake = &wake;
    watches->config = options->config;
    options->config = (struct kinf__config){ 0 };
    kinf__progress_init(&daemon.progress);
    kinf__mutex_init(&watches->lock, KINF__RANK_DAEMON);
    failed = kinf__waker_init(&wake, err);
    if (failed == 0)
        failed = kinf__output_init(&watches->output, STDOUT_FILENO, "standard output", err);
    if (failed == 0) {
        install_signal_handlers(0);
        if (options->command != KINF__COMMAND_RUN)
            limit_time(options->timeout_ms);
        failed = run(&daemon, err);
        if (!stop_all(&daemon))
            leave_at_once(failed, err);
        kinf__output_release(&watches->output);
    }
    kinf__waker_release(&wake);
    kinf__mutex_release(&watches->lock);
    return failed;
}
