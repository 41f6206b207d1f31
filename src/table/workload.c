/*
 * Workloads: what makes pods, and what watches over their number.
 */
#include "table/rules.h"

#include <inttypes.h>
#include <string.h>

static int64_t field_of(const struct kinf__row *row, const char *path)
{
    return kinf__field_int(row->object, path, 0);
}

void kinf__cell_ready(struct kinf__row *row, const char *path, const char *otherwise)
{
    kinf__row_printf(row, "%" PRId64 "/%" PRId64, field_of(row, path), field_of(row, otherwise));
    kinf__cell_text(row, "");
}

/* "daemonset.apps/x" of an owner's reference. */
static void append_owner(struct kinf__row *row, struct kinf__json_value owner)
{
    struct kinf__json_value version;
    const char *slash;

    kinf__row_append_field(row, owner, "kind");
    if (kinf__field(owner, "apiVersion", &version) &&
        (slash = memchr(version.raw.bytes, '/', version.raw.len)) != NULL)
        kinf__row_printf(row, ".%.*s", (int)(slash - version.raw.bytes) - 1, version.raw.bytes + 1);
    kinf__row_lower(row);
    kinf__row_printf(row, "/");
    kinf__row_append_field(row, owner, "name");
}

void kinf__cell_controller(struct kinf__row *row)
{
    struct kinf__items owner = kinf__field_items(row->object, "metadata.ownerReferences");

    while (row->text.len == 0 && kinf__items_next(&owner)) {
        if (kinf__field_is_true(owner.value, "controller"))
            append_owner(row, owner.value);
    }
    kinf__cell_text(row, "<none>");
}

/* --- jobs --- */

static const char *job_state(const struct kinf__row *row)
{
    /* What is final goes before what it is heading for. */
    static const char *const types[] = { "Complete", "Failed" }, *const later[] = {
        "Suspended", "FailureTarget", "SuccessCriteriaMet"
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(types); i++) {
        if (kinf__field_condition_is_true(row->object, types[i]))
            return types[i];
    }
    if (kinf__field_has_text(row->object, "metadata.deletionTimestamp"))
        return "Terminating";
    for (size_t i = 0; i < KINF__ARRAY_LEN(later); i++) {
        if (kinf__field_condition_is_true(row->object, later[i]))
            return later[i];
    }
    return "Running";
}

void kinf__cell_job_state(struct kinf__row *row)
{
    kinf__row_printf(row, "%s", job_state(row));
    kinf__cell_text(row, "");
}

void kinf__cell_completions(struct kinf__row *row)
{
    int64_t n_done = field_of(row, "status.succeeded");
    int64_t n_wanted = kinf__field_int(row->object, "spec.completions", -1);
    int64_t parallelism = field_of(row, "spec.parallelism");

    if (n_wanted >= 0)
        kinf__row_printf(row, "%" PRId64 "/%" PRId64, n_done, n_wanted);
    else if (parallelism > 1)
        kinf__row_printf(row, "%" PRId64 "/1 of %" PRId64, n_done, parallelism);
    else
        kinf__row_printf(row, "%" PRId64 "/1", n_done);
    kinf__cell_text(row, "");
}

void kinf__cell_job_duration(struct kinf__row *row)
{
    int64_t begun_s = kinf__field_time(row->object, "status.startTime");
    int64_t ended_s = kinf__field_time(row->object, "status.completionTime");

    if (begun_s != INT64_MIN)
        kinf__row_append_duration(row, (ended_s != INT64_MIN ? ended_s : row->now_s) - begun_s);
    kinf__cell_text(row, "");
}

/* Declared a boolean, and sent as text. */
void kinf__cell_suspend(struct kinf__row *row)
{
    struct kinf__json_value value;

    if (kinf__field(row->object, "spec.suspend", &value))
        kinf__row_printf(row, "%s", value.raw.bytes[0] == 't' ? "True" : "False");
    kinf__cell_text(row, "<unset>");
}

/* --- autoscalers --- */

/* What a metric is compared by. */
struct measure {
    const char *type;
    const char *key;
    const char *field;    /* unless it is an average value */
    bool is_named;        /* after a resource, and in percent */
    bool is_always_there; /* a status without an average has not none, but nil */
};

static const struct measure measures[] = {
    { "Resource", "resource", "averageUtilization", true, true },
    { "ContainerResource", "containerResource", "averageUtilization", true, true },
    { "Pods", "pods", "averageValue", false, true },
    { "Object", "object", "value", false, false },
    { "External", "external", "value", false, false },
};

/* One side of "40%/50%". */
static void append_amount(struct kinf__row *row, struct kinf__json_value from, const char *field,
                          const char *otherwise)
{
    struct kinf__json_value value;

    if (!kinf__field(from, field, &value)) {
        kinf__row_printf(row, "%s", otherwise);
        return;
    }
    kinf__row_append(row, value);
    if (strcmp(field, "averageUtilization") == 0)
        kinf__row_printf(row, "%%");
}

static void append_current(struct kinf__row *row, const struct measure *measure,
                           struct kinf__json_value status, const char *field)
{
    struct kinf__json_value current;
    bool is_nil = strcmp(field, "averageUtilization") != 0 &&
                  (measure->is_always_there || strcmp(field, "value") == 0);

    if (kinf__field(status, measure->key, &status) && kinf__field(status, "current", &current))
        append_amount(row, current, field, is_nil ? "<nil>" : "<unknown>");
    else
        kinf__row_printf(row, "<unknown>");
}

static void append_metric(struct kinf__row *row, const struct measure *measure,
                          struct kinf__json_value metric, struct kinf__json_value status)
{
    struct kinf__json_value target, value;
    const char *field = measure->field;
    bool is_average;

    if (!kinf__field(metric, measure->key, &metric) || !kinf__field(metric, "target", &target))
        return;
    is_average = kinf__field(target, "averageValue", &value);
    if (is_average)
        field = "averageValue";
    if (measure->is_named) {
        kinf__row_append_field(row, metric, "name");
        kinf__row_printf(row, ": ");
    }
    append_current(row, measure, status, field);
    kinf__row_printf(row, "/");
    append_amount(row, target, field, measure->is_named ? "<auto>" : "<nil>");
    if (is_average && !measure->is_always_there)
        kinf__row_printf(row, " (avg)");
}

static void append_target(struct kinf__row *row, struct kinf__json_value metric,
                          struct kinf__json_value status)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(measures); i++) {
        if (kinf__field_is(metric, "type", measures[i].type)) {
            append_metric(row, &measures[i], metric, status);
            return;
        }
    }
    kinf__row_printf(row, "<unknown type>");
}

/* Of autoscaling/v1, which has its other metrics in an annotation: those are left out. */
static void append_cpu_target(struct kinf__row *row)
{
    struct kinf__json_value target, current;

    if (!kinf__field(row->object, "spec.targetCPUUtilizationPercentage", &target))
        return;
    kinf__row_printf(row, "cpu: ");
    if (kinf__field(row->object, "status.currentCPUUtilizationPercentage", &current)) {
        kinf__row_append(row, current);
        kinf__row_printf(row, "%%/");
    } else {
        kinf__row_printf(row, "<unknown>/");
    }
    kinf__row_append(row, target);
    kinf__row_printf(row, "%%");
}

void kinf__cell_targets(struct kinf__row *row)
{
    enum { MAX_SHOWN = 2 };
    struct kinf__items metric = kinf__field_items(row->object, "spec.metrics"),
                       status = kinf__field_items(row->object, "status.currentMetrics");
    size_t n = 0;

    for (; kinf__items_next(&metric); n++) {
        if (!kinf__items_next(&status))
            status.value = (struct kinf__json_value){ .type = KINF__JSON_NULL };
        if (n >= MAX_SHOWN)
            continue;
        kinf__row_printf(row, "%s", n != 0 ? ", " : "");
        append_target(row, metric.value, status.value);
    }
    if (n > MAX_SHOWN)
        kinf__row_printf(row, " + %zu more...", n - MAX_SHOWN);
    if (n == 0)
        append_cpu_target(row);
    kinf__cell_text(row, "<none>");
}
