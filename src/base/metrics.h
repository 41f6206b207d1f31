/*
 * Metrics in Prometheus' text form, and the histogram of which they are made where a number is not
 * enough.
 *
 * There is no registry: what is counted belongs to whoever counts it, and is written when it is
 * asked for, one family after the other. Values are whole numbers with a decimal point put in, so
 * that no locale changes them.
 *
 * Threads: observing, any thread; writing, one thread per buffer.
 */
#ifndef KINF_BASE_METRICS_H
#define KINF_BASE_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buffer.h"

/* X(enumerator, name in the text) */
#define KINF__METRIC_TYPES(X)                                                                      \
    X(KINF__METRIC_COUNTER, "counter")                                                             \
    X(KINF__METRIC_GAUGE, "gauge")                                                                 \
    X(KINF__METRIC_HISTOGRAM, "histogram")

enum kinf__metric_type {
#define X(type, name) type,
    KINF__METRIC_TYPES(X)
#undef X
};

/* X(upper bound in nanoseconds, the same in seconds) */
#define KINF__HISTOGRAM_BUCKETS(X)                                                                 \
    X(1000000, "0.001")                                                                            \
    X(2500000, "0.0025")                                                                           \
    X(5000000, "0.005")                                                                            \
    X(10000000, "0.01")                                                                            \
    X(25000000, "0.025")                                                                           \
    X(50000000, "0.05")                                                                            \
    X(100000000, "0.1")                                                                            \
    X(250000000, "0.25")                                                                           \
    X(500000000, "0.5")                                                                            \
    X(1000000000, "1")                                                                             \
    X(2500000000, "2.5")                                                                           \
    X(5000000000, "5")                                                                             \
    X(10000000000, "10")
#define X(bound_ns, text) +1
enum { KINF__N_HISTOGRAM_BUCKETS = 0 KINF__HISTOGRAM_BUCKETS(X) };
#undef X

/* Of durations. All zero is empty and valid. */
struct kinf__histogram {
    _Atomic(uint64_t) counts[KINF__N_HISTOGRAM_BUCKETS + 1]; /* each bucket's own; the last: more */
    _Atomic(uint64_t) sum_ns;
};

void kinf__histogram_observe(struct kinf__histogram *histogram, int64_t duration_ns);

struct kinf__label {
    const char *name;
    const char *value; /* any text */
};

/* A family, as tables of them have it; its values are numbers / 10^n_decimals. */
struct kinf__metric {
    const char *name;
    enum kinf__metric_type type;
    unsigned n_decimals;
    const char *help;
};

/* Of a list of X(name, type, decimals, help, value): the table, and its values in the same order. */
#define KINF__METRIC_ROW(name, type, decimals, help, value)                                        \
    { name, KINF__METRIC_##type, decimals, help },
#define KINF__METRIC_VALUE(name, type, decimals, help, value) (uint64_t)(value),

/* Begins a family: HELP and TYPE. Its samples follow, and nothing else of its name comes later.
 * Errors of all: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__metrics_family(struct kinf__buffer *buffer, const char *name,
                                         enum kinf__metric_type type, const char *help);
/* Families of one sample each; `label` NULL: without. */
KINF_MUST_CHECK int kinf__metrics_numbers(struct kinf__buffer *buffer,
                                          const struct kinf__metric *families,
                                          const uint64_t *values, size_t n,
                                          const struct kinf__label *label);
/* value / 10^n_decimals */
KINF_MUST_CHECK int kinf__metrics_sample(struct kinf__buffer *buffer, const char *name,
                                         const struct kinf__label *labels, size_t n_labels,
                                         uint64_t value, unsigned n_decimals);
KINF_MUST_CHECK int kinf__metrics_histogram(struct kinf__buffer *buffer, const char *name,
                                            const struct kinf__label *labels, size_t n_labels,
                                            const struct kinf__histogram *histogram);

#endif
