/*
 * What informers tell about themselves: as metrics, and as a text for a person. Neighbours:
 * informer.c has the status, processor.c the handlers; nothing is counted here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/metrics.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "informer/informer.h"

#define VERSION_DIGITS 15 /* what a double holds for sure: readers have nothing else */

/* X(name, type, decimals, help, value) of `status`, `rv`, `contact_age_ms` and `list_age_ms`. */
#define INFORMER_FAMILIES(X)                                                                       \
    X("informer_queued_items", GAUGE, 0, "Keys waiting in the queue.", status->n_queued)           \
    X("kinformer_queued_bytes", GAUGE, 0, "Bytes of the objects waiting in the queue.",            \
      status->queued_bytes)                                                                        \
    X("informer_store_resource_version", GAUGE, 0,                                                 \
      "Last 15 digits of the store's resourceVersion.", rv)                                        \
    X("kinformer_objects", GAUGE, 0, "Objects in the store.", status->n_objects)                   \
    X("kinformer_handlers", GAUGE, 0, "Handlers of the informer.", status->n_handlers)             \
    X("kinformer_synced", GAUGE, 0, "Whether the first list is in the store.", status->has_synced) \
    X("kinformer_last_contact_age_seconds", GAUGE, 3,                                              \
      "Time since the last event, bookmark or list; since the start if none came.",                \
      contact_age_ms)                                                                              \
    X("kinformer_lists_total", COUNTER, 0, "Lists begun.", status->n_lists)                        \
    X("kinformer_watches_total", COUNTER, 0, "Watches begun.", status->n_watches)                  \
    X("kinformer_events_total", COUNTER, 0, "Watch events but bookmarks and errors.",              \
      status->n_events)                                                                            \
    X("kinformer_bookmarks_total", COUNTER, 0, "Bookmarks.", status->n_bookmarks)                  \
    X("kinformer_errors_total", COUNTER, 0, "Failed requests and broken streams.",                 \
      status->n_errors)                                                                            \
    X("kinformer_silent_watches_total", COUNTER, 0, "Watches given up since no byte came.",        \
      status->n_silent)                                                                            \
    X("kinformer_extra_lists_total", COUNTER, 0,                                                   \
      "Lists begun to make up for watches that may not deliver.", status->n_extra_lists)           \
    X("kinformer_quarantined_objects", GAUGE, 0, "Objects left out, since they fail to decode.",   \
      status->n_quarantined)                                                                       \
    X("kinformer_outside_shard_total", COUNTER, 0,                                                 \
      "Objects and changes left out, since they are outside of the shard.",                        \
      status->n_outside_shard)                                                                     \
    X("kinformer_failed_index_values_total", COUNTER, 0, "Index functions that failed.",           \
      status->n_failed_index_values)                                                               \
    X("kinformer_list_objects", GAUGE, 0,                                                          \
      "Objects received of the list that is under way; 0 if none is.", status->n_list_objects)     \
    X("kinformer_list_expected_objects", GAUGE, 0,                                                 \
      "About how many objects it has in all; 0 if that is not known.", status->n_list_expected)    \
    X("kinformer_list_bytes", GAUGE, 0, "Bytes received of it, inflated.", status->list_bytes)     \
    X("kinformer_list_age_seconds", GAUGE, 3, "Time since it was begun.", list_age_ms)             \
    X("kinformer_received_bytes_total", COUNTER, 0, "Bytes of bodies received, inflated.",         \
      status->received_bytes)

/* The same of a handler's `status`. */
#define HANDLER_FAMILIES(X)                                                                        \
    X("kinformer_handler_waiting", GAUGE, 0, "Callbacks to come.", status->n_waiting)              \
    X("kinformer_handler_oldest_seconds", GAUGE, 3, "How long the oldest of them waits.",          \
      (uint64_t)status->oldest_ms)                                                                 \
    X("kinformer_handler_told_total", COUNTER, 0, "Callbacks that have run.", status->n_told)      \
    X("kinformer_handler_merged_total", COUNTER, 0, "Callbacks that merging has spared.",          \
      status->n_merged)

static const struct kinf__metric informer_families[] = { INFORMER_FAMILIES(KINF__METRIC_ROW) };
static const struct kinf__metric handler_families[] = { HANDLER_FAMILIES(KINF__METRIC_ROW) };

static const char *const state_names[] = {
#define X(state, name, meaning) name,
    KINF_INFORMER_STATES(X)
#undef X
};

/* What an informer says at one moment. */
struct report {
    struct kinf__label labels[5]; /* the last is the handler's or the state's */
    const struct kinf_informer *informer;
    struct kinf_informer_status status;
    uint64_t values[KINF__ARRAY_LEN(informer_families)];
    char resource_version[KINF__RESOURCE_VERSION_SIZE]; /* any fits */
    struct kinf__handler_report *handlers;
    size_t n_handlers;
};

#define N_LABELS 4

/* --- gathering --- */

static uint64_t last_digits(const char *resource_version)
{
    size_t len = strlen(resource_version);
    uint64_t value = 0;

    if (strspn(resource_version, "0123456789") != len)
        return 0;
    for (const char *at = resource_version + (len > VERSION_DIGITS ? len - VERSION_DIGITS : 0);
         *at != '\0'; at++)
        value = 10 * value + (uint64_t)(*at - '0');
    return value;
}

static void fill_values(struct report *report, int64_t now_ms)
{
    const struct kinf_informer_status *status = &report->status;
    uint64_t rv = last_digits(report->resource_version);
    int64_t contact_ms =
        status->last_contact_ms != 0 ? status->last_contact_ms : report->informer->state.begun_ms;
    uint64_t contact_age_ms = now_ms > contact_ms ? (uint64_t)(now_ms - contact_ms) : 0;
    uint64_t list_age_ms = status->list_since_ms != 0 && now_ms > status->list_since_ms
                               ? (uint64_t)(now_ms - status->list_since_ms)
                               : 0;
#define X(name, type, decimals, help, value) (uint64_t)(value),
    const uint64_t values[] = { INFORMER_FAMILIES(X) };
#undef X

    memcpy(report->values, values, sizeof report->values);
}

static int gather(struct report *report, const char *name, struct kinf_informer *informer)
{
    const struct kinf_type *type = informer->type;
    int64_t now_ms;

    *report = (struct report){
        .labels = { { "name", name },
                    { "group", type->group },
                    { "version", type->version },
                    { "resource", type->resource } },
        .informer = informer,
    };
    kinf_informer_status(informer, &report->status);
    now_ms = kinf__clock_now_ms();
    (void)!kinf_indexer_resource_version(informer->indexer, report->resource_version,
                                         sizeof report->resource_version);
    fill_values(report, now_ms);
    return kinf__processor_report(&informer->processor, now_ms, &report->handlers,
                                  &report->n_handlers);
}

static void reports_free(struct report *reports, size_t n_reports)
{
    for (size_t i = 0; i < n_reports; i++)
        free(reports[i].handlers);
    free(reports);
}

/* --- metrics --- */

static int write_informer_family(struct kinf__buffer *buffer, size_t index,
                                 const struct report *reports, size_t n_reports)
{
    const struct kinf__metric *family = &informer_families[index];
    int rc = kinf__metrics_family(buffer, family->name, family->type, family->help);

    for (size_t i = 0; i < n_reports && rc == 0; i++)
        rc = kinf__metrics_sample(buffer, family->name, reports[i].labels, N_LABELS,
                                  reports[i].values[index], family->n_decimals);
    return rc;
}

static uint64_t handler_value(const struct kinf_handler_status *status, size_t index)
{
    const uint64_t values[] = { HANDLER_FAMILIES(KINF__METRIC_VALUE) };

    return values[index];
}

static int write_handlers(struct kinf__buffer *buffer, size_t index, struct report *report)
{
    const struct kinf__metric *family = &handler_families[index];
    char id[24];
    int rc = 0;

    for (size_t i = 0; i < report->n_handlers && rc == 0; i++) {
        snprintf(id, sizeof id, "%" PRIu64, report->handlers[i].id);
        report->labels[N_LABELS] = (struct kinf__label){ "handler", id };
        rc = kinf__metrics_sample(buffer, family->name, report->labels, N_LABELS + 1,
                                  handler_value(&report->handlers[i].status, index),
                                  family->n_decimals);
    }
    return rc;
}

static int write_handler_family(struct kinf__buffer *buffer, size_t index, struct report *reports,
                                size_t n_reports)
{
    const struct kinf__metric *family = &handler_families[index];
    int rc = kinf__metrics_family(buffer, family->name, family->type, family->help);

    for (size_t i = 0; i < n_reports && rc == 0; i++)
        rc = write_handlers(buffer, index, &reports[i]);
    return rc;
}

static int write_states(struct kinf__buffer *buffer, struct report *reports, size_t n_reports)
{
    static const char family[] = "kinformer_state";
    int rc = kinf__metrics_family(buffer, family, KINF__METRIC_GAUGE,
                                  "1 for the state that the informer is in, else 0.");

    for (size_t i = 0; i < n_reports && rc == 0; i++) {
        for (size_t k = 0; k < KINF__ARRAY_LEN(state_names) && rc == 0; k++) {
            reports[i].labels[N_LABELS] = (struct kinf__label){ "state", state_names[k] };
            rc = kinf__metrics_sample(buffer, family, reports[i].labels, N_LABELS + 1,
                                      (size_t)reports[i].status.state == k, 0);
        }
    }
    return rc;
}

static int write_latencies(struct kinf__buffer *buffer, const struct report *reports,
                           size_t n_reports)
{
    static const char family[] = "informer_processing_latency_seconds";
    int rc = kinf__metrics_family(buffer, family, KINF__METRIC_HISTOGRAM,
                                  "Time from taking an item out of the queue until the store has "
                                  "it and its notifications are queued.");

    for (size_t i = 0; i < n_reports && rc == 0; i++)
        rc = kinf__metrics_histogram(buffer, family, reports[i].labels, N_LABELS,
                                     &reports[i].informer->processing_latency);
    return rc;
}

static int write_all(struct kinf__buffer *buffer, struct report *reports, size_t n_reports)
{
    int rc = write_latencies(buffer, reports, n_reports);

    for (size_t i = 0; i < KINF__ARRAY_LEN(informer_families) && rc == 0; i++)
        rc = write_informer_family(buffer, i, reports, n_reports);
    if (rc == 0)
        rc = write_states(buffer, reports, n_reports);
    for (size_t i = 0; i < KINF__ARRAY_LEN(handler_families) && rc == 0; i++)
        rc = write_handler_family(buffer, i, reports, n_reports);
    return rc;
}

static int check_names(const struct kinf_metrics_source *sources, size_t n_sources,
                       struct kinf_error *err)
{
    for (size_t i = 0; i < n_sources; i++) {
        for (size_t k = 0; k < i; k++) {
            if (sources[i].informer->type == sources[k].informer->type &&
                strcmp(sources[i].name, sources[k].name) == 0)
                return kinf__error_set(err, KINF_ERR_EXISTS, "two informers of %s are named '%s'",
                                       sources[i].informer->type->resource, sources[i].name);
        }
    }
    return 0;
}

int kinf_metrics_text(const struct kinf_metrics_source *sources, size_t n_sources, char **ret_text,
                      struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, ret_text);
    if (n_sources != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, sources);

    KINF__AUTO_BUFFER buffer = KINF__BUFFER_INIT;
    struct report *reports;
    int rc = check_names(sources, n_sources, err);

    if (rc < 0)
        return rc;
    reports = calloc(n_sources + 1, sizeof *reports);
    if (reports == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; i < n_sources && rc == 0; i++)
        rc = gather(&reports[i], sources[i].name, sources[i].informer);
    if (rc == 0)
        rc = write_all(&buffer, reports, n_sources);
    reports_free(reports, n_sources);
    return rc == 0 ? kinf__buffer_take_text(&buffer, ret_text, err) : kinf__error_no_memory(err);
}

/* --- the dump --- */

static const char *backlog_name(enum kinf_backlog backlog)
{
    return backlog == KINF_BACKLOG_COALESCE ? "coalesce" : "unbounded";
}

static int dump_informer(struct kinf__buffer *buffer, const struct report *report)
{
    const struct kinf_informer *informer = report->informer;
    const struct kinf_informer_status *status = &report->status;
    const char *name_space = informer->name_space != NULL ? informer->name_space : "";
    int rc = kinf__buffer_printf(
        buffer,
        "informer resource=%s group=%s version=%s namespace=%s labels=\"%s\" fields=\"%s\"\n",
        informer->type->resource, informer->type->group, informer->type->version, name_space,
        informer->label_selector != NULL ? informer->label_selector : "",
        informer->field_selector != NULL ? informer->field_selector : "");

    if (rc == 0)
        rc = kinf__buffer_printf(buffer, "state \"%s\" since_ms=%" PRId64 " reason=\"%s\"\n",
                                 kinf_informer_state_to_string(status->state),
                                 status->state_since_ms, status->reason);
    if (rc == 0)
        rc = kinf__buffer_printf(buffer, "store resource_version=%s\n", report->resource_version);
    return rc;
}

static int dump_values(struct kinf__buffer *buffer, const struct report *report)
{
    int rc = 0;

    for (size_t i = 0; i < KINF__ARRAY_LEN(informer_families) && rc == 0; i++)
        rc = kinf__metrics_sample(buffer, informer_families[i].name, NULL, 0, report->values[i],
                                  informer_families[i].n_decimals);
    return rc;
}

static int dump_handlers(struct kinf__buffer *buffer, const struct report *report)
{
    int rc = 0;

    for (size_t i = 0; i < report->n_handlers && rc == 0; i++) {
        const struct kinf_handler_status *status = &report->handlers[i].status;

        rc = kinf__buffer_printf(
            buffer,
            "handler id=%" PRIu64 " backlog=%s dispatched=%d synced=%d waiting=%zu "
            "oldest_ms=%" PRId64 " told=%" PRIu64 " merged=%" PRIu64 "\n",
            report->handlers[i].id, backlog_name(status->backlog),
            report->handlers[i].is_dispatched, status->has_synced, status->n_waiting,
            status->oldest_ms, status->n_told, status->n_merged);
    }
    return rc;
}

int kinf_informer_dump(struct kinf_informer *informer, char **ret_text, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, informer, ret_text);

    KINF__AUTO_BUFFER buffer = KINF__BUFFER_INIT;
    struct report report;
    int rc = gather(&report, "", informer);

    if (rc == 0)
        rc = dump_informer(&buffer, &report);
    if (rc == 0)
        rc = dump_values(&buffer, &report);
    if (rc == 0)
        rc = dump_handlers(&buffer, &report);
    free(report.handlers);
    return rc == 0 ? kinf__buffer_take_text(&buffer, ret_text, err) : kinf__error_no_memory(err);
}
