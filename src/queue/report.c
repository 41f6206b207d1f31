/*
 * What a queue tells about itself: its status, and its metrics. Neighbours: queue.c, which counts.
 */
#include "queue/queue_priv.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"

/* --- the status --- */

static int64_t sum_ms(const struct kinf__histogram *histogram)
{
    return (int64_t)(atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed) / 1000000);
}

static void fill_in_process_locked(struct kinf_queue *queue, struct kinf_queue_status *status)
    KINF__REQUIRES(queue->lock)
{
    int64_t now_ns = kinf__clock_now_ns();

    KINF__LIST_FOR_EACH (node, &queue->keys.in_process) {
        int64_t age_ms =
            (now_ns - KINF__LIST_ENTRY(node, struct kinf__queue_key, in_list)->began_ns) / 1000000;

        status->unfinished_ms += age_ms;
        if (node == queue->keys.in_process.next)
            status->longest_ms = age_ms;
    }
}

static void fill_status_locked(struct kinf_queue *queue, struct kinf_queue_status *status)
    KINF__REQUIRES(queue->lock)
{
    *status = (struct kinf_queue_status){
        .n_later = queue->is_shut_down ? 0 : queue->keys.n_later,
        .n_in_process = queue->keys.n_in_process,
        .n_keys = queue->keys.by_text.n_nodes,
        .n_adds = queue->keys.n_adds,
        .n_gets = queue->n_gets,
        .n_done = queue->n_done,
        .n_retries = queue->n_retries,
        .wait_ms = sum_ms(&queue->waits),
        .work_ms = sum_ms(&queue->works),
        .is_shut_down = queue->is_shut_down,
    };
    memcpy(status->n_waiting, queue->keys.n_waiting, sizeof status->n_waiting);
    fill_in_process_locked(queue, status);
}

/* What is due, and nobody has asked for yet, waits. */
void kinf_queue_status(struct kinf_queue *queue, struct kinf_queue_status *ret_status)
{
    KINF__REFUSE_NULL(NULL, , queue, ret_status);
    kinf__mutex_lock(&queue->lock);
    (void)kinf__queue_wake_due_locked(queue);
    fill_status_locked(queue, ret_status);
    kinf__mutex_unlock(&queue->lock);
}

size_t kinf_queue_len(struct kinf_queue *queue)
{
    KINF__REFUSE_NULL(NULL, 0, queue);

    struct kinf_queue_status status;
    size_t n_waiting = 0;

    kinf_queue_status(queue, &status);
    for (size_t i = 0; i < KINF_N_PRIORITIES; i++)
        n_waiting += status.n_waiting[i];
    return n_waiting;
}

/* --- metrics --- */

/* X(name, type, decimals, help, value) of `status`; depth and histograms stand alone. */
#define FAMILIES(X)                                                                                \
    X("workqueue_adds_total", COUNTER, 0, "Keys that began to wait.", status->n_adds)              \
    X("workqueue_retries_total", COUNTER, 0, "Keys added for later, or by the rate limit.",        \
      status->n_retries)                                                                           \
    X("workqueue_unfinished_work_seconds", GAUGE, 3,                                               \
      "Time that the keys in process have taken so far.", status->unfinished_ms)                   \
    X("workqueue_longest_running_processor_seconds", GAUGE, 3,                                     \
      "Time that the key has taken so far that is longest in process.", status->longest_ms)

static const struct kinf__metric families[] = { FAMILIES(KINF__METRIC_ROW) };

static const char *const priority_names[] = {
#define X(priority, value, name, what) name,
    KINF_PRIORITIES(X)
#undef X
};

/* What a queue says at one moment. */
struct report {
    const struct kinf_queue *queue;
    struct kinf_queue_status status;
};

static uint64_t value_of(const struct kinf_queue_status *status, size_t family)
{
    const uint64_t values[] = { FAMILIES(KINF__METRIC_VALUE) };

    return values[family];
}

static int write_family(struct kinf__buffer *buffer, size_t i, const struct report *reports,
                        size_t n_reports)
{
    int rc = kinf__metrics_family(buffer, families[i].name, families[i].type, families[i].help);

    for (size_t k = 0; k < n_reports && rc == 0; k++) {
        const struct kinf__label label = { "name", reports[k].queue->name };

        rc = kinf__metrics_sample(buffer, families[i].name, &label, 1,
                                  value_of(&reports[k].status, i), families[i].n_decimals);
    }
    return rc;
}

static int write_depths(struct kinf__buffer *buffer, const struct report *reports, size_t n_reports)
{
    static const char family[] = "workqueue_depth";
    int rc = kinf__metrics_family(buffer, family, KINF__METRIC_GAUGE, "Keys that wait.");

    for (size_t i = 0; i < n_reports * KINF_N_PRIORITIES && rc == 0; i++) {
        const struct report *report = &reports[i / KINF_N_PRIORITIES];
        const struct kinf__label labels[] = {
            { "name", report->queue->name }, { "priority", priority_names[i % KINF_N_PRIORITIES] }
        };

        rc = kinf__metrics_sample(buffer, family, labels, KINF__ARRAY_LEN(labels),
                                  report->status.n_waiting[i % KINF_N_PRIORITIES], 0);
    }
    return rc;
}

static const struct kinf__histogram *waits_of(const struct kinf_queue *queue)
{
    return &queue->waits;
}

static const struct kinf__histogram *works_of(const struct kinf_queue *queue)
{
    return &queue->works;
}

static int write_durations(struct kinf__buffer *buffer, const char *family, const char *help,
                           const struct kinf__histogram *(*of)(const struct kinf_queue *),
                           const struct report *reports, size_t n_reports)
{
    int rc = kinf__metrics_family(buffer, family, KINF__METRIC_HISTOGRAM, help);

    for (size_t i = 0; i < n_reports && rc == 0; i++) {
        const struct kinf__label label = { "name", reports[i].queue->name };

        rc = kinf__metrics_histogram(buffer, family, &label, 1, of(reports[i].queue));
    }
    return rc;
}

static int write_all(struct kinf__buffer *buffer, const struct report *reports, size_t n_reports)
{
    int rc = write_depths(buffer, reports, n_reports);

    for (size_t i = 0; i < KINF__ARRAY_LEN(families) && rc == 0; i++)
        rc = write_family(buffer, i, reports, n_reports);
    if (rc == 0)
        rc = write_durations(buffer, "workqueue_queue_duration_seconds",
                             "Time that keys waited until they were got.", waits_of, reports,
                             n_reports);
    if (rc == 0)
        rc = write_durations(buffer, "workqueue_work_duration_seconds",
                             "Time that keys were in process.", works_of, reports, n_reports);
    return rc;
}

/* Of those that have a name. */
static int gather(struct kinf_queue *const *queues, size_t n_queues, struct report *reports,
                  size_t *ret_n_reports, struct kinf_error *err)
{
    size_t n_reports = 0;

    for (size_t i = 0; i < n_queues; i++) {
        if (queues[i]->name == NULL)
            continue;
        for (size_t k = 0; k < n_reports; k++) {
            if (strcmp(reports[k].queue->name, queues[i]->name) == 0)
                return kinf__error_set(err, KINF_ERR_EXISTS, "two queues are named '%s'",
                                       queues[i]->name);
        }
        reports[n_reports].queue = queues[i];
        kinf_queue_status(queues[i], &reports[n_reports++].status);
    }
    *ret_n_reports = n_reports;
    return 0;
}

int kinf_queue_metrics_text(struct kinf_queue *const *queues, size_t n_queues, char **ret_text,
                            struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, ret_text);
    if (n_queues != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, queues);

    KINF__AUTO_BUFFER buffer = KINF__BUFFER_INIT;
    KINF__AUTO_FREE struct report *reports = calloc(n_queues + 1, sizeof *reports);
    size_t n_reports = 0;
    int rc;

    if (reports == NULL)
        return kinf__error_no_memory(err);
    rc = gather(queues, n_queues, reports, &n_reports, err);
    if (rc < 0)
        return rc;
    if (write_all(&buffer, reports, n_reports) < 0)
        return kinf__error_no_memory(err);
    return kinf__buffer_take_text(&buffer, ret_text, err);
}
