/*
 * Writing metrics. The form: https://prometheus.io/docs/instrumenting/exposition_formats/
 */
#include "base/metrics.h"

#include <inttypes.h>
#include <string.h>

static const int64_t bounds_ns[] = {
#define X(bound_ns, text) bound_ns,
    KINF__HISTOGRAM_BUCKETS(X)
#undef X
};

static const char *const bound_texts[] = {
#define X(bound_ns, text) text,
    KINF__HISTOGRAM_BUCKETS(X)
#undef X
        "+Inf",
};

void kinf__histogram_observe(struct kinf__histogram *histogram, int64_t duration_ns)
{
    size_t i = 0;

    while (i < KINF__N_HISTOGRAM_BUCKETS && duration_ns > bounds_ns[i])
        i++;
    atomic_fetch_add_explicit(&histogram->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_ns, (uint64_t)duration_ns, memory_order_relaxed);
}

static const char *type_to_string(enum kinf__metric_type type)
{
    switch (type) {
#define X(type, name)                                                                              \
    case type:                                                                                     \
        return name;
        KINF__METRIC_TYPES(X)
#undef X
    }
    return "untyped";
}

static int append(struct kinf__buffer *buffer, const char *text)
{
    return kinf__buffer_append(buffer, text, strlen(text));
}

/* Quotes are escaped in label values, and may be in help only by not being there. */
static int append_escaped(struct kinf__buffer *buffer, const char *text, const char *escaped)
{
    int rc = 0;

    while (rc == 0 && *text != '\0') {
        size_t len = strcspn(text, escaped);

        rc = kinf__buffer_append(buffer, text, len);
        text += len;
        if (rc < 0 || *text == '\0')
            break;
        rc = kinf__buffer_printf(buffer, "\\%c", *text == '\n' ? 'n' : *text);
        text++;
    }
    return rc;
}

int kinf__metrics_family(struct kinf__buffer *buffer, const char *name, enum kinf__metric_type type,
                         const char *help)
{
    int rc = kinf__buffer_printf(buffer, "# HELP %s ", name);

    if (rc == 0)
        rc = append_escaped(buffer, help, "\\\n");
    if (rc == 0)
        rc = kinf__buffer_printf(buffer, "\n# TYPE %s %s\n", name, type_to_string(type));
    return rc;
}

static int append_label(struct kinf__buffer *buffer, const struct kinf__label *label, char before)
{
    int rc = kinf__buffer_printf(buffer, "%c%s=\"", before, label->name);

    if (rc == 0)
        rc = append_escaped(buffer, label->value, "\\\"\n");
    return rc == 0 ? append(buffer, "\"") : rc;
}

/* `le` NULL: none. */
static int append_series(struct kinf__buffer *buffer, const char *name, const char *suffix,
                         const struct kinf__label *labels, size_t n_labels, const char *le)
{
    int rc = kinf__buffer_printf(buffer, "%s%s", name, suffix);
    char before = '{';

    for (size_t i = 0; i < n_labels && rc == 0; i++) {
        rc = append_label(buffer, &labels[i], before);
        before = ',';
    }
    if (rc == 0 && le != NULL) {
        rc = append_label(buffer, &(struct kinf__label){ "le", le }, before);
        before = ',';
    }
    if (rc == 0 && before == ',')
        rc = append(buffer, "}");
    return rc;
}

static int append_value(struct kinf__buffer *buffer, uint64_t value, unsigned n_decimals)
{
    uint64_t one = 1;

    for (unsigned i = 0; i < n_decimals; i++)
        one *= 10;
    if (n_decimals == 0)
        return kinf__buffer_printf(buffer, " %" PRIu64 "\n", value);
    return kinf__buffer_printf(buffer, " %" PRIu64 ".%0*" PRIu64 "\n", value / one, (int)n_decimals,
                               value % one);
}

int kinf__metrics_sample(struct kinf__buffer *buffer, const char *name,
                         const struct kinf__label *labels, size_t n_labels, uint64_t value,
                         unsigned n_decimals)
{
    int rc = append_series(buffer, name, "", labels, n_labels, NULL);

    return rc == 0 ? append_value(buffer, value, n_decimals) : rc;
}

int kinf__metrics_numbers(struct kinf__buffer *buffer, const struct kinf__metric *families,
                          const uint64_t *values, size_t n, const struct kinf__label *label)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = kinf__metrics_family(buffer, families[i].name, families[i].type, families[i].help);
        if (rc == 0)
            rc = kinf__metrics_sample(buffer, families[i].name, label, label != NULL, values[i],
                                      families[i].n_decimals);
    }
    return rc;
}

/* The count is made of the buckets, so that it agrees with them while others observe. */
int kinf__metrics_histogram(struct kinf__buffer *buffer, const char *name,
                            const struct kinf__label *labels, size_t n_labels,
                            const struct kinf__histogram *histogram)
{
    uint64_t sum_ns = atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed);
    uint64_t count = 0;
    int rc = 0;

    for (size_t i = 0; i <= KINF__N_HISTOGRAM_BUCKETS && rc == 0; i++) {
        count += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
        rc = append_series(buffer, name, "_bucket", labels, n_labels, bound_texts[i]);
        if (rc == 0)
            rc = append_value(buffer, count, 0);
    }
    if (rc == 0)
        rc = append_series(buffer, name, "_sum", labels, n_labels, NULL);
    if (rc == 0)
        rc = append_value(buffer, sum_ns, 9);
    if (rc == 0)
        rc = append_series(buffer, name, "_count", labels, n_labels, NULL);
    return rc == 0 ? append_value(buffer, count, 0) : rc;
}
