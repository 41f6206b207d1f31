/*
 * Workloads: what makes pods, and what watches over their number.
 */
#include "table/rules.h"

#include <inttypes.h>

static int64_t field_of(const struct kinf__row *row, const char *path)
{
    return kinf__field_int(row->object, path, 0);
}

static void cell_ready(struct kinf__row *row)
{
    kinf__row_printf(row, "%" PRId64 "/%" PRId64, field_of(row, "status.readyReplicas"),
                     field_of(row, "spec.replicas"));
    kinf__cell_text(row, "");
}

static void cell_selector(struct kinf__row *row)
{
    kinf__row_append_selector(row, row->object, "spec.selector");
    kinf__cell_text(row, "<none>");
}

static void cell_labels(struct kinf__row *row, const char *path)
{
    kinf__row_append_labels(row, row->object, path);
    kinf__cell_text(row, "<none>");
}

void kinf__table_deployment(struct kinf__row *row)
{
    cell_ready(row);
    kinf__cell_int(row, field_of(row, "status.updatedReplicas"));
    kinf__cell_int(row, field_of(row, "status.availableReplicas"));
    kinf__cell_age(row);
    kinf__cell_containers(row, "spec.template.spec.containers");
    cell_selector(row);
}

static void replica_cells(struct kinf__row *row)
{
    kinf__cell_int(row, field_of(row, "spec.replicas"));
    kinf__cell_int(row, field_of(row, "status.replicas"));
    kinf__cell_int(row, field_of(row, "status.readyReplicas"));
    kinf__cell_age(row);
    kinf__cell_containers(row, "spec.template.spec.containers");
}

void kinf__table_replicaset(struct kinf__row *row)
{
    replica_cells(row);
    cell_selector(row);
}

void kinf__table_replicationcontroller(struct kinf__row *row)
{
    replica_cells(row);
    cell_labels(row, "spec.selector");
}

void kinf__table_statefulset(struct kinf__row *row)
{
    cell_ready(row);
    kinf__cell_age(row);
    kinf__cell_containers(row, "spec.template.spec.containers");
}

void kinf__table_daemonset(struct kinf__row *row)
{
    kinf__cell_int(row, field_of(row, "status.desiredNumberScheduled"));
    kinf__cell_int(row, field_of(row, "status.currentNumberScheduled"));
    kinf__cell_int(row, field_of(row, "status.numberReady"));
    kinf__cell_int(row, field_of(row, "status.updatedNumberScheduled"));
    kinf__cell_int(row, field_of(row, "status.numberAvailable"));
    cell_labels(row, "spec.template.spec.nodeSelector");
    kinf__cell_age(row);
    kinf__cell_containers(row, "spec.template.spec.containers");
    cell_selector(row);
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

static void cell_completions(struct kinf__row *row)
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

static void cell_duration(struct kinf__row *row)
{
    int64_t begun_s = kinf__field_time(row->object, "status.startTime");
    int64_t ended_s = kinf__field_time(row->object, "status.completionTime");

    if (begun_s != INT64_MIN)
        kinf__row_append_duration(row, (ended_s != INT64_MIN ? ended_s : row->now_s) - begun_s);
    kinf__cell_text(row, "");
}

void kinf__table_job(struct kinf__row *row)
{
    kinf__row_printf(row, "%s", job_state(row));
    kinf__cell_text(row, "");
    cell_completions(row);
    cell_duration(row);
    kinf__cell_age(row);
    kinf__cell_containers(row, "spec.template.spec.containers");
    cell_selector(row);
}

void kinf__table_cronjob(struct kinf__row *row)
{
    kinf__cell_string(row, "spec.schedule", "<none>");
    kinf__cell_string(row, "spec.timeZone", "<none>");
    /* Declared a boolean, and sent as text. */
    kinf__row_printf(row, "%s",
                     kinf__field_is_true(row->object, "spec.suspend") ? "True" : "False");
    kinf__cell_text(row, "");
    kinf__cell_int(row, (int64_t)kinf__field_count(row->object, "status.active"));
    kinf__cell_since(row, kinf__field_time(row->object, "status.lastScheduleTime"), "<none>");
    kinf__cell_age(row);
    kinf__cell_containers(row, "spec.jobTemplate.spec.template.spec.containers");
    kinf__row_append_selector(row, row->object, "spec.jobTemplate.spec.selector");
    kinf__cell_text(row, "<none>");
}

/* --- autoscalers, disruption budgets --- */

/* The current value of the resource metric of this name. */
static bool find_current(struct kinf__json_value object, struct kinf__json_value name,
                         struct kinf__json_value *ret)
{
    struct kinf__json_value metric;

    return kinf__field_find_same(object, "status.currentMetrics", "resource.name", name, &metric) &&
           kinf__field(metric, "resource.current", ret);
}

/* One side of "40%/50%": a utilization, or a quantity. */
static void append_amount(struct kinf__row *row, bool is_there, struct kinf__json_value amount,
                          bool is_utilization)
{
    struct kinf__json_value value;

    if (!is_there ||
        !kinf__field(amount, is_utilization ? "averageUtilization" : "averageValue", &value)) {
        kinf__row_printf(row, "<unknown>");
        return;
    }
    kinf__row_append(row, value);
    if (is_utilization)
        kinf__row_printf(row, "%%");
}

static void append_target(struct kinf__row *row, struct kinf__json_value metric)
{
    struct kinf__json_value name, target, current, value;
    bool is_utilization, has_current;

    if (!kinf__field(metric, "resource.name", &name) ||
        !kinf__field(metric, "resource.target", &target)) {
        kinf__row_append_field(row, metric, "type");
        return;
    }
    is_utilization = !kinf__field(target, "averageValue", &value);
    has_current = find_current(row->object, name, &current);
    kinf__row_append(row, name);
    kinf__row_printf(row, ": ");
    append_amount(row, has_current, has_current ? current : name, is_utilization);
    kinf__row_printf(row, "/");
    append_amount(row, true, target, is_utilization);
}

static void cell_targets(struct kinf__row *row)
{
    enum { MAX_SHOWN = 2 };
    struct kinf__items metric = kinf__field_items(row->object, "spec.metrics");
    size_t n = 0;

    for (; kinf__items_next(&metric); n++) {
        if (n >= MAX_SHOWN)
            continue;
        kinf__row_printf(row, "%s", n != 0 ? ", " : "");
        append_target(row, metric.value);
    }
    if (n > MAX_SHOWN)
        kinf__row_printf(row, " + %zu more...", n - MAX_SHOWN);
    kinf__cell_text(row, "<none>");
}

void kinf__table_hpa(struct kinf__row *row)
{
    kinf__row_append_field(row, row->object, "spec.scaleTargetRef.kind");
    kinf__row_printf(row, "/");
    kinf__row_append_field(row, row->object, "spec.scaleTargetRef.name");
    kinf__cell_text(row, "");
    cell_targets(row);
    kinf__cell_string(row, "spec.minReplicas", "<unset>");
    kinf__cell_int(row, field_of(row, "spec.maxReplicas"));
    kinf__cell_int(row, field_of(row, "status.currentReplicas"));
    kinf__cell_age(row);
}

void kinf__table_pdb(struct kinf__row *row)
{
    kinf__cell_string(row, "spec.minAvailable", "N/A");
    kinf__cell_string(row, "spec.maxUnavailable", "N/A");
    kinf__cell_int(row, field_of(row, "status.disruptionsAllowed"));
    kinf__cell_age(row);
}
