/*
 * From the configuration to running handlers. Neighbours: daemon.c starts and ends them, watch.c
 * tells their feeds.
 */
#include "daemon/exec_handlers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/metrics.h"

static int start(struct kinf__running_handler *handler, const struct kinf__handler_config *config,
                 struct kinf_error *err)
{
    int failed = kinf__handler_config_copy(config, &handler->config, err);

    return failed < 0
               ? failed
               : kinf__exec_handler_new(handler->config.exec.items, handler->config.exec.n_items,
                                        handler->config.acknowledges, &handler->exec, err);
}

int kinf__exec_handlers_start(struct kinf__exec_handlers *handlers,
                              const struct kinf__config *config, struct kinf_error *err)
{
    int failed = 0;

    handlers->items = calloc(config->n_handlers + 1, sizeof *handlers->items);
    if (handlers->items == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; failed == 0 && i < config->n_handlers; i++) {
        handlers->n_items++;
        failed = start(&handlers->items[i], &config->handlers[i], err);
    }
    return failed;
}

void kinf__exec_handlers_interrupt(struct kinf__exec_handlers *handlers)
{
    for (size_t i = 0; i < handlers->n_items; i++) {
        if (handlers->items[i].exec != NULL)
            kinf__exec_handler_interrupt(handlers->items[i].exec);
    }
}

void kinf__exec_handlers_stop(struct kinf__exec_handlers *handlers)
{
    kinf__exec_handlers_interrupt(handlers);
    for (size_t i = 0; i < handlers->n_items; i++) {
        if (handlers->items[i].exec != NULL)
            kinf__exec_handler_stop(handlers->items[i].exec);
    }
}

void kinf__exec_handlers_release(struct kinf__exec_handlers *handlers)
{
    for (size_t i = 0; i < handlers->n_items; i++) {
        kinf__exec_handler_free(handlers->items[i].exec);
        kinf__handler_config_release(&handlers->items[i].config);
    }
    free(handlers->items);
    *handlers = (struct kinf__exec_handlers){ 0 };
}

/* --- feeds --- */

int kinf__exec_handlers_make_feeds(const struct kinf__exec_handlers *handlers,
                                   const char *configured, const char *name,
                                   struct kinf__outbox_feeds *feeds, struct kinf_error *err)
{
    int failed = 0;

    feeds->items = calloc(handlers->n_items + 1, sizeof(struct kinf__outbox_feed *));
    if (feeds->items == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; failed == 0 && i < handlers->n_items; i++) {
        if (!kinf__handler_config_wants(&handlers->items[i].config, configured))
            continue;
        failed = kinf__outbox_feed_new(kinf__exec_handler_outbox(handlers->items[i].exec), name,
                                       &feeds->items[feeds->n_items], err);
        if (failed == 0)
            feeds->n_items++;
    }
    return failed;
}

void kinf__outbox_feeds_release(struct kinf__outbox_feeds *feeds)
{
    for (size_t i = 0; i < feeds->n_items; i++)
        kinf__outbox_feed_free(feeds->items[i]);
    free(feeds->items);
}

/* --- metrics --- */

/* X(name, type, help, value) of `exec` and `outbox` */
#define HANDLER_METRICS(X)                                                                         \
    X("kinformer_handler_running", GAUGE, "Whether its program runs.", exec.is_running)            \
    X("kinformer_handler_starts_total", COUNTER, "Times that its program was started, or tried.",  \
      exec.n_starts)                                                                               \
    X("kinformer_handler_sent_total", COUNTER, "Lines that it was sent.", outbox.n_told)           \
    X("kinformer_handler_backlog", GAUGE, "Objects of which it is to be told.", outbox.n_waiting)  \
    X("kinformer_handler_unacknowledged", GAUGE, "Lines that it has not acknowledged.",            \
      outbox.n_unacknowledged)                                                                     \
    X("kinformer_handler_bad_lines_total", COUNTER, "Lines of it that are no acknowledgement.",    \
      exec.n_bad_lines)

static const struct {
    const char *name;
    enum kinf__metric_type type;
    const char *help;
} metrics[] = {
#define X(name, type, help, value) { name, KINF__METRIC_##type, help },
    HANDLER_METRICS(X)
#undef X
};

static uint64_t metric_value(size_t metric, struct kinf__exec_handler *handler)
{
    struct kinf__exec_handler_status exec;
    struct kinf__outbox_status outbox;

    kinf__exec_handler_status(handler, &exec);
    kinf__outbox_status(kinf__exec_handler_outbox(handler), &outbox);
    return (const uint64_t[]){
#define X(name, type, help, value) value,
        HANDLER_METRICS(X)
#undef X
    }[metric];
}

static int write_sample(const struct kinf__exec_handlers *handlers, size_t i, size_t metric,
                        struct kinf__buffer *out)
{
    char number[24];
    struct kinf__exec_handler *handler = handlers->items[i].exec;
    const struct kinf__label labels[] = { { "handler", number },
                                          { "command", kinf__exec_handler_name(handler) } };

    snprintf(number, sizeof number, "%zu", i);
    return kinf__metrics_sample(out, metrics[metric].name, labels, KINF__ARRAY_LEN(labels),
                                metric_value(metric, handler), 0);
}

int kinf__exec_handlers_write_metrics(struct kinf__buffer *out, void *ctx)
{
    const struct kinf__exec_handlers *handlers = ctx;
    int failed = 0;

    for (size_t metric = 0; failed == 0 && metric < KINF__ARRAY_LEN(metrics); metric++) {
        if (handlers->n_items != 0)
            failed = kinf__metrics_family(out, metrics[metric].name, metrics[metric].type,
                                          metrics[metric].help);
        for (size_t i = 0; failed == 0 && i < handlers->n_items; i++)
            failed = write_sample(handlers, i, metric, out);
    }
    return failed;
}
