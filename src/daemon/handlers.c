/*
 * From the configuration to running handlers. Neighbours: daemon.c starts and ends them, watch.c
 * tells their feeds.
 */
#include "daemon/handlers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "handlers/exec_handler.h"
#include "handlers/plugin_handler.h"

#define END_MS       4000   /* of a term, see lease.h */
#define LAST_LINE_US 500000 /* for a log that may block */

static int make(struct kinf__running_handler *running, const struct kinf__handler_config *config,
                struct kinf_error *err)
{
    const struct kinf__webhook_options webhook = kinf__webhook_config_options(&config->webhook);
    int failed = kinf__handler_config_copy(config, &running->config, err);

    if (failed < 0)
        return failed;
    if (config->plugin != NULL)
        return kinf__plugin_handler_new(config->plugin, config->plugin_config, &running->handler,
                                        err);
    if (webhook.site.url != NULL)
        return kinf__webhook_handler_new(&webhook, &running->handler, err);
    return kinf__exec_handler_new(config->exec.items, config->exec.n_items, config->acknowledges,
                                  &running->handler, err);
}

/* --- terms of the Lease --- */

static int run_all(struct kinf__daemon_handlers *handlers, struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < handlers->n_items; i++)
        failed = kinf__handler_start(handlers->items[i].handler, err);
    return failed;
}

static void leave_at_once(const char *why)
{
    const struct itimerval limit = { .it_value = { .tv_usec = LAST_LINE_US } };

    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &limit, NULL);
    KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_ERROR, "ended, since %s", why);
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

/* Who leads and cannot tell would keep others from it. */
static void begin_term(void *ctx)
{
    struct kinf__daemon_handlers *handlers = ctx;
    const char *lease = kinf__daemon_lease_name(handlers->lease);
    int64_t term = kinf__daemon_lease_term(handlers->lease);
    struct kinf_error err = KINF_ERROR_INIT;

    for (size_t i = 0; i < handlers->n_items; i++)
        kinf__handler_set_term(handlers->items[i].handler, lease, term);
    if (run_all(handlers, &err) < 0)
        leave_at_once(err.message);
}

static const char outlived[] = "a handler outlives its term";

/* Who waits for it may wait for a log that nobody reads, or a program that cannot be killed. */
static void *limit_end(void *ctx)
{
    if (!kinf__waker_wait(ctx, END_MS))
        leave_at_once(outlived);
    return NULL;
}

/* A plugin in a call that does not return would go on beside whoever leads next. */
static void end_handlers(struct kinf__daemon_handlers *handlers)
{
    bool have_ended = true;

    for (size_t i = 0; i < handlers->n_items; i++)
        kinf__handler_halt(handlers->items[i].handler);
    for (size_t i = 0; i < handlers->n_items; i++)
        have_ended = kinf__handler_join(handlers->items[i].handler) && have_ended;
    if (!have_ended)
        leave_at_once(outlived);
}

static void end_term(void *ctx)
{
    struct kinf__waker is_over = { -1 };
    pthread_t limit;
    bool is_limited = kinf__waker_init(&is_over, NULL) == 0 &&
                      kinf__thread_start(&limit, "end-of-term", limit_end, &is_over, NULL) == 0;

    end_handlers(ctx);
    if (is_limited) {
        kinf__waker_set(&is_over);
        pthread_join(limit, NULL);
    }
    kinf__waker_release(&is_over);
}

static bool may_tell(void *ctx)
{
    return kinf__daemon_lease_leads(ctx);
}

static int make_lease(struct kinf__daemon_handlers *handlers, const struct kinf__config *config,
                      struct kinf_client *client, struct kinf_error *err)
{
    const struct kinf__lease_hooks hooks = { begin_term, end_term, handlers };
    int failed = kinf__daemon_lease_new(client, &config->shards, &hooks, &handlers->lease, err);

    for (size_t i = 0; failed == 0 && i < handlers->n_items; i++) {
        handlers->items[i].handler->may_tell = may_tell;
        handlers->items[i].handler->may_tell_ctx = handlers->lease;
    }
    return failed;
}

/* --- life --- */

int kinf__daemon_handlers_start(struct kinf__daemon_handlers *handlers,
                                const struct kinf__config *config, struct kinf_client *client,
                                struct kinf_error *err)
{
    int failed = 0;

    handlers->items = calloc(config->n_handlers + 1, sizeof *handlers->items);
    if (handlers->items == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; failed == 0 && i < config->n_handlers; i++) {
        handlers->n_items++;
        failed = make(&handlers->items[i], &config->handlers[i], err);
    }
    if (failed < 0)
        return failed;
    return config->shards.lease != NULL ? make_lease(handlers, config, client, err)
                                        : run_all(handlers, err);
}

int kinf__daemon_handlers_stand(struct kinf__daemon_handlers *handlers, struct kinf_error *err)
{
    return handlers->lease != NULL ? kinf__daemon_lease_start(handlers->lease, err) : 0;
}

/* With the configuration of now; with the last one that was its own, if it is another handler by now. */
static int reload(struct kinf__running_handler *running, const struct kinf__handler_config *now,
                  struct kinf_error *err)
{
    if (now != NULL && kinf__handler_config_equal(&running->config, now)) {
        char *config = strdup(now->plugin_config);

        if (config == NULL)
            return kinf__error_no_memory(err);
        free(running->config.plugin_config);
        running->config.plugin_config = config;
    }
    return kinf__plugin_handler_reload(running->handler, running->config.plugin_config, err);
}

bool kinf__daemon_handlers_reload(struct kinf__daemon_handlers *handlers,
                                  const struct kinf__config *config)
{
    struct kinf_error err = KINF_ERROR_INIT;
    bool is_any = false;

    for (size_t i = 0; i < handlers->n_items; i++) {
        bool has_one = config != NULL && i < config->n_handlers;

        if (handlers->items[i].config.plugin == NULL)
            continue;
        is_any = true;
        if (reload(&handlers->items[i], has_one ? &config->handlers[i] : NULL, &err) < 0)
            KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_ERROR, "plugin is not loaded anew error=%s",
                      KINF__QUOTED(err.message));
    }
    return is_any;
}

void kinf__daemon_handlers_look(struct kinf__daemon_handlers *handlers)
{
    for (size_t i = 0; i < handlers->n_items; i++) {
        if (handlers->items[i].config.plugin != NULL)
            kinf__plugin_handler_look(handlers->items[i].handler, kinf__clock_now_ms());
    }
}

void kinf__daemon_handlers_interrupt(struct kinf__daemon_handlers *handlers)
{
    for (size_t i = 0; i < handlers->n_items; i++) {
        if (handlers->items[i].handler != NULL)
            kinf__handler_interrupt(handlers->items[i].handler);
    }
}

bool kinf__daemon_handlers_stop(struct kinf__daemon_handlers *handlers)
{
    bool have_ended = true;

    kinf__daemon_handlers_interrupt(handlers);
    kinf__daemon_lease_free(KINF__TAKE(handlers->lease));
    for (size_t i = 0; i < handlers->n_items; i++) {
        if (handlers->items[i].handler != NULL && !kinf__handler_stop(handlers->items[i].handler))
            have_ended = false;
    }
    return have_ended;
}

void kinf__daemon_handlers_release(struct kinf__daemon_handlers *handlers)
{
    for (size_t i = 0; i < handlers->n_items; i++) {
        kinf__handler_free(handlers->items[i].handler);
        kinf__handler_config_release(&handlers->items[i].config);
    }
    free(handlers->items);
    *handlers = (struct kinf__daemon_handlers){ 0 };
}

/* --- feeds --- */

int kinf__daemon_handlers_make_feeds(const struct kinf__daemon_handlers *handlers,
                                     const char *configured, const char *name,
                                     struct kinf__handler_feeds *feeds, struct kinf_error *err)
{
    int failed = 0;

    feeds->items = calloc(handlers->n_items + 1, sizeof(struct kinf__outbox_feed *));
    if (feeds->items == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; failed == 0 && i < handlers->n_items; i++) {
        if (!kinf__handler_config_wants(&handlers->items[i].config, configured))
            continue;
        failed = kinf__outbox_feed_new(&handlers->items[i].handler->outbox, name,
                                       &feeds->items[feeds->n_items], err);
        if (failed == 0)
            feeds->n_items++;
    }
    return failed;
}

void kinf__handler_feeds_join(const struct kinf__handler_feeds *feeds)
{
    for (size_t i = 0; i < feeds->n_items; i++)
        kinf__outbox_feed_join(feeds->items[i]);
}

void kinf__handler_feeds_open(const struct kinf__handler_feeds *feeds)
{
    for (size_t i = 0; i < feeds->n_items; i++)
        kinf__outbox_feed_open(feeds->items[i]);
}

void kinf__handler_feeds_release(struct kinf__handler_feeds *feeds)
{
    for (size_t i = 0; i < feeds->n_items; i++)
        kinf__outbox_feed_free(feeds->items[i]);
    free(feeds->items);
}

/* --- metrics --- */

/* X(name, type, decimals, help, value) of `status` */
#define HANDLER_METRICS(X)                                                                         \
    X("kinformer_handler_running", GAUGE, 0, "Whether what it tells is there.", status.is_running) \
    X("kinformer_handler_starts_total", COUNTER, 0, "Times that it began to tell, or tried.",      \
      status.n_starts)                                                                             \
    X("kinformer_handler_sent_total", COUNTER, 0, "Changes that it was sent.",                     \
      status.outbox.n_told)                                                                        \
    X("kinformer_handler_backlog", GAUGE, 0, "Objects of which it is to be told.",                 \
      status.outbox.n_waiting)                                                                     \
    X("kinformer_handler_unacknowledged", GAUGE, 0, "Changes that it has not acknowledged.",       \
      status.outbox.n_unacknowledged)                                                              \
    X("kinformer_handler_errors_total", COUNTER, 0,                                                \
      "What failed: ends, lines that are no acknowledgement, calls, requests.", status.n_errors)

static const struct kinf__metric metrics[] = { HANDLER_METRICS(KINF__METRIC_ROW) };

static uint64_t metric_value(size_t metric, struct kinf__handler *handler)
{
    struct kinf__handler_status status;

    kinf__handler_status(handler, &status);
    return (const uint64_t[]){ HANDLER_METRICS(KINF__METRIC_VALUE) }[metric];
}

static int write_sample(const struct kinf__daemon_handlers *handlers, size_t i, size_t metric,
                        struct kinf__buffer *out)
{
    char number[24];
    struct kinf__handler *handler = handlers->items[i].handler;
    const struct kinf__label labels[] = { { "handler", number }, { "name", handler->name } };

    snprintf(number, sizeof number, "%zu", i);
    return kinf__metrics_sample(out, metrics[metric].name, labels, KINF__ARRAY_LEN(labels),
                                metric_value(metric, handler), 0);
}

static int write_counts(const struct kinf__daemon_handlers *handlers, struct kinf__buffer *out)
{
    static const char family[] = "kinformer_plugin_count_total";
    bool is_any = false;
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < handlers->n_items; i++) {
        char number[24];

        if (handlers->items[i].config.plugin == NULL)
            continue;
        if (!is_any)
            failed = kinf__metrics_family(out, family, KINF__METRIC_COUNTER,
                                          "What a plugin counts, by its names.");
        is_any = true;
        snprintf(number, sizeof number, "%zu", i);
        if (failed == 0)
            failed =
                kinf__plugin_handler_write_counts(handlers->items[i].handler, family, number, out);
    }
    return failed;
}

int kinf__daemon_handlers_write_metrics(struct kinf__buffer *out, void *ctx)
{
    const struct kinf__daemon_handlers *handlers = ctx;
    int failed = 0;

    for (size_t metric = 0; failed == 0 && metric < KINF__ARRAY_LEN(metrics); metric++) {
        if (handlers->n_items != 0)
            failed = kinf__metrics_family(out, metrics[metric].name, metrics[metric].type,
                                          metrics[metric].help);
        for (size_t i = 0; failed == 0 && i < handlers->n_items; i++)
            failed = write_sample(handlers, i, metric, out);
    }
    if (failed == 0)
        failed = write_counts(handlers, out);
    if (failed == 0 && handlers->lease != NULL)
        failed = kinf__daemon_lease_write_metrics(handlers->lease, out);
    return failed;
}

/* --- state --- */

static void report_handler(struct kinf__report *report, struct kinf__handler *handler)
{
    struct kinf__handler_status status;

    kinf__handler_status(handler, &status);
    kinf__report_open(report, NULL, '{');
    kinf__report_text(report, "name", handler->name);
    kinf__report_text(report, "kind", handler->kind->name);
    kinf__report_bool(report, "running", status.is_running);
    kinf__report_count(report, "starts", status.n_starts);
    kinf__report_count(report, "errors", status.n_errors);
    kinf__report_count(report, "sent", status.outbox.n_told);
    kinf__report_count(report, "backlog", status.outbox.n_waiting);
    kinf__report_count(report, "unacknowledged", status.outbox.n_unacknowledged);
    kinf__report_text(report, "lastError", status.last_error.message);
    kinf__report_time(report, "lastErrorTime", status.last_error.at_ms);
    kinf__report_close(report, '}');
}

void kinf__daemon_handlers_report(struct kinf__report *report, void *ctx)
{
    const struct kinf__daemon_handlers *handlers = ctx;

    kinf__report_open(report, "handlers", '[');
    for (size_t i = 0; i < handlers->n_items; i++)
        report_handler(report, handlers->items[i].handler);
    kinf__report_close(report, ']');
}
