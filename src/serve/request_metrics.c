/*
 * The table of requests. Neighbours: request_record.c says what is counted, state.c has it written.
 */
#include "serve/request_metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kinf__request_row {
    enum kinf__request_verb verb;
    enum kinf__request_source source;
    char *resource;
    struct {
        int code; /* 0: none yet */
        uint64_t n;
    } codes[KINF__REQUEST_CODES];
    struct kinf__histogram durations;
};

const char *kinf__request_source_to_string(enum kinf__request_source source)
{
    static const char *const labels[] = {
#define X(source, label, what) label,
        KINF__REQUEST_SOURCES(X)
#undef X
    };

    return labels[source];
}

void kinf__request_metrics_init(struct kinf__request_metrics *metrics)
{
    memset(metrics, 0, sizeof *metrics);
    kinf__mutex_init(&metrics->lock, KINF__RANK_REQUEST_METRICS);
}

void kinf__request_metrics_release(struct kinf__request_metrics *metrics)
{
    for (size_t i = 0; i < metrics->n_rows; i++) {
        free(metrics->rows[i]->resource);
        free(metrics->rows[i]);
    }
    kinf__mutex_release(&metrics->lock);
}

/* --- counting --- */

static struct kinf__request_row *find_locked(struct kinf__request_metrics *metrics,
                                             const struct kinf__request_outcome *outcome,
                                             const char *resource) KINF__REQUIRES(metrics->lock)
{
    for (size_t i = 0; i < metrics->n_rows; i++) {
        struct kinf__request_row *row = metrics->rows[i];

        if (row->verb == outcome->verb && row->source == outcome->source &&
            strcmp(row->resource, resource) == 0)
            return row;
    }
    return NULL;
}

/* NULL: no memory. */
static struct kinf__request_row *add_locked(struct kinf__request_metrics *metrics,
                                            const struct kinf__request_outcome *outcome,
                                            const char *resource) KINF__REQUIRES(metrics->lock)
{
    struct kinf__request_row *row = calloc(1, sizeof *row);

    if (row == NULL || (row->resource = strdup(resource)) == NULL) {
        free(row);
        return NULL;
    }
    row->verb = outcome->verb;
    row->source = outcome->source;
    metrics->rows[metrics->n_rows++] = row;
    return row;
}

static struct kinf__request_row *row_locked(struct kinf__request_metrics *metrics,
                                            const struct kinf__request_outcome *outcome)
    KINF__REQUIRES(metrics->lock)
{
    const size_t n_kept_free = (size_t)KINF__N_VERBS * KINF__N_REQUEST_SOURCES;
    const char *resource = outcome->resource;
    struct kinf__request_row *row = find_locked(metrics, outcome, resource);

    if (row == NULL && metrics->n_rows >= KINF__REQUEST_ROWS - n_kept_free) {
        resource = KINF__REQUEST_OTHER;
        row = find_locked(metrics, outcome, resource);
    }
    return row != NULL ? row : add_locked(metrics, outcome, resource);
}

static void count_code(struct kinf__request_row *row, int code)
{
    size_t i = 0;

    while (i + 1 < KINF__REQUEST_CODES && row->codes[i].code != code && row->codes[i].code != 0)
        i++;
    row->codes[i].code = code;
    row->codes[i].n++;
}

void kinf__request_metrics_observe(struct kinf__request_metrics *metrics,
                                   const struct kinf__request_outcome *outcome)
{
    struct kinf__request_row *row;

    kinf__mutex_lock(&metrics->lock);
    row = row_locked(metrics, outcome);
    if (row != NULL) {
        count_code(row, outcome->code);
        kinf__histogram_observe(&row->durations, outcome->duration_ns);
        metrics->totals[outcome->source]++;
    }
    kinf__mutex_unlock(&metrics->lock);
}

void kinf__request_metrics_totals(struct kinf__request_metrics *metrics,
                                  uint64_t ret_totals[KINF__N_REQUEST_SOURCES])
{
    kinf__mutex_lock(&metrics->lock);
    memcpy(ret_totals, metrics->totals, sizeof metrics->totals);
    kinf__mutex_unlock(&metrics->lock);
}

void kinf__request_metrics_note_decision(struct kinf__request_metrics *metrics, bool is_kept,
                                         enum kinf__verdict verdict)
{
    atomic_fetch_add_explicit(&metrics->decisions[is_kept][verdict], 1, memory_order_relaxed);
}

/* --- writing --- */

/* `labels` are three. */
static int write_codes(const struct kinf__request_row *row, const struct kinf__label *labels,
                       struct kinf__buffer *out)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < KINF__REQUEST_CODES && row->codes[i].code != 0; i++) {
        char code[16] = KINF__REQUEST_OTHER;
        const struct kinf__label all[] = { labels[0], labels[1], labels[2], { "code", code } };

        if (i + 1 < KINF__REQUEST_CODES)
            snprintf(code, sizeof code, "%d", row->codes[i].code);
        failed = kinf__metrics_sample(out, "kinformer_requests_total", all, 4, row->codes[i].n, 0);
    }
    return failed;
}

static int write_row(const struct kinf__request_row *row, bool is_histogram,
                     struct kinf__buffer *out)
{
    const struct kinf__label labels[] = {
        { "verb", kinf__request_verb_to_string(row->verb) },
        { "resource", row->resource },
        { "source", kinf__request_source_to_string(row->source) },
    };

    return is_histogram ? kinf__metrics_histogram(out, "kinformer_request_duration_seconds", labels,
                                                  3, &row->durations)
                        : write_codes(row, labels, out);
}

/* The lock is held for one row at a time: whoever has a request to count does not wait for all. */
static int write_rows(struct kinf__request_metrics *metrics, bool is_histogram,
                      struct kinf__buffer *out)
{
    bool is_there = true;
    int failed = 0;

    for (size_t i = 0; failed == 0 && is_there; i++) {
        kinf__mutex_lock(&metrics->lock);
        is_there = i < metrics->n_rows;
        if (is_there)
            failed = write_row(metrics->rows[i], is_histogram, out);
        kinf__mutex_unlock(&metrics->lock);
    }
    return failed;
}

static int write_requests(struct kinf__request_metrics *metrics, struct kinf__buffer *out)
{
    int failed = kinf__metrics_family(out, "kinformer_requests_total", KINF__METRIC_COUNTER,
                                      "Requests that were answered; watches once they begin. Code "
                                      "499: the client left before.");

    if (failed == 0)
        failed = write_rows(metrics, false, out);
    if (failed == 0)
        failed = kinf__metrics_family(
            out, "kinformer_request_duration_seconds", KINF__METRIC_HISTOGRAM,
            "Time from a request's head to the end of its answer; of watches and followed logs to "
            "its beginning.");
    return failed == 0 ? write_rows(metrics, true, out) : failed;
}

static int write_decisions(struct kinf__request_metrics *metrics, struct kinf__buffer *out)
{
    static const struct {
        enum kinf__verdict verdict;
        const char *label;
    } verdicts[] = { { KINF__VERDICT_ALLOWED, "allowed" },
                     { KINF__VERDICT_DENIED, "denied" },
                     { KINF__VERDICT_UNKNOWN, "unauthenticated" },
                     { KINF__VERDICT_THROTTLED, "throttled" },
                     { KINF__VERDICT_FAILED, "failed" } };
    static const char name[] = "kinformer_access_decisions_total";
    int failed = kinf__metrics_family(
        out, name, KINF__METRIC_COUNTER,
        "Requests whose access was decided, by a review that was kept or one that was waited for.");

    for (size_t i = 0; failed == 0 && i < 2 * KINF__ARRAY_LEN(verdicts); i++) {
        size_t is_kept = i % 2, at = i / 2;
        const struct kinf__label labels[] = { { "review", is_kept ? "kept" : "made" },
                                              { "verdict", verdicts[at].label } };

        failed = kinf__metrics_sample(
            out, name, labels, 2, atomic_load(&metrics->decisions[is_kept][verdicts[at].verdict]),
            0);
    }
    return failed;
}

int kinf__request_metrics_write(struct kinf__request_metrics *metrics, struct kinf__buffer *out)
{
    int failed = write_requests(metrics, out);

    return failed == 0 ? write_decisions(metrics, out) : failed;
}
