/*
 * Pods. The status column is what the containers say, the init containers first, and what is being
 * deleted last: each step overrides the ones before it.
 */
#include "table/rules.h"

#include <inttypes.h>
#include <string.h>

/* What one pass over a pod's containers gives. */
struct pod {
    struct kinf__json_value object;
    size_t n_containers; /* with sidecars */
    size_t n_ready;
    int64_t n_restarts;
    int64_t last_restart_s; /* INT64_MIN: unknown */
    /* The first init container that is not finished. */
    bool is_initializing;
    size_t init_at;
    struct kinf__json_value init;
};

/* An init container that goes on running. */
static bool is_sidecar(struct kinf__json_value object, struct kinf__json_value status)
{
    struct kinf__json_iter iter;
    struct kinf__json_value container, name, other;
    struct kinf_str key;

    if (!kinf__field(status, "name", &name))
        return false;
    kinf__field_each(&iter, object, "spec.initContainers");
    while (kinf__field_next(&iter, &key, &container)) {
        if (kinf__field(container, "name", &other) && kinf_str_equal(name.raw, other.raw))
            return kinf__field_is(container, "restartPolicy", "Always");
    }
    return false;
}

static void count_restarts(struct pod *pod, struct kinf__json_value status)
{
    int64_t at_s = kinf__field_time(status, "lastState.terminated.finishedAt");

    pod->n_restarts += kinf__field_int(status, "restartCount", 0);
    if (at_s > pod->last_restart_s)
        pod->last_restart_s = at_s;
}

static bool is_finished(struct kinf__json_value status, bool sidecar)
{
    struct kinf__json_value terminated;

    if (kinf__field(status, "state.terminated", &terminated))
        return kinf__field_int(terminated, "exitCode", 0) == 0;
    return sidecar && kinf__field_is_true(status, "started");
}

static void read_init_containers(struct pod *pod)
{
    int64_t n_sidecar_restarts = 0, last_sidecar_s = INT64_MIN;
    struct kinf__json_iter iter;
    struct kinf__json_value status;
    struct kinf_str key;

    kinf__field_each(&iter, pod->object, "status.initContainerStatuses");
    for (size_t i = 0; !pod->is_initializing && kinf__field_next(&iter, &key, &status); i++) {
        bool sidecar = is_sidecar(pod->object, status);

        count_restarts(pod, status);
        if (sidecar) {
            int64_t at_s = kinf__field_time(status, "lastState.terminated.finishedAt");

            n_sidecar_restarts += kinf__field_int(status, "restartCount", 0);
            if (at_s > last_sidecar_s)
                last_sidecar_s = at_s;
        }
        if (is_finished(status, sidecar)) {
            if (sidecar && kinf__field_is_true(status, "ready"))
                pod->n_ready++;
            continue;
        }
        pod->is_initializing = true;
        pod->init_at = i;
        pod->init = status;
    }
    if (!pod->is_initializing) {
        pod->n_restarts = n_sidecar_restarts;
        pod->last_restart_s = last_sidecar_s;
    }
}

static bool is_initialized(const struct pod *pod)
{
    struct kinf__json_value condition;

    return !pod->is_initializing ||
           (kinf__field_condition(pod->object, "Initialized", &condition) &&
            kinf__field_is(condition, "status", "True"));
}

static void read_containers(struct pod *pod)
{
    struct kinf__json_iter iter;
    struct kinf__json_value status, running;
    struct kinf_str key;

    kinf__field_each(&iter, pod->object, "status.containerStatuses");
    while (is_initialized(pod) && kinf__field_next(&iter, &key, &status)) {
        count_restarts(pod, status);
        if (kinf__field_is_true(status, "ready") && kinf__field(status, "state.running", &running))
            pod->n_ready++;
    }
}

static void count_containers(struct pod *pod)
{
    struct kinf__json_iter iter;
    struct kinf__json_value container;
    struct kinf_str key;

    pod->n_containers = kinf__field_count(pod->object, "spec.containers");
    kinf__field_each(&iter, pod->object, "spec.initContainers");
    while (kinf__field_next(&iter, &key, &container)) {
        if (kinf__field_is(container, "restartPolicy", "Always"))
            pod->n_containers++;
    }
}

/* --- the status --- */

/* Begins the text anew. */
static void set(struct kinf__row *row, const char *prefix)
{
    row->text.len = 0;
    kinf__row_printf(row, "%s", prefix);
}

static void set_termination(struct kinf__row *row, const char *prefix,
                            struct kinf__json_value terminated)
{
    int64_t signal_no = kinf__field_int(terminated, "signal", 0);

    set(row, prefix);
    if (kinf__field_has_text(terminated, "reason"))
        kinf__row_append_field(row, terminated, "reason");
    else if (signal_no != 0)
        kinf__row_printf(row, "Signal:%" PRId64, signal_no);
    else
        kinf__row_printf(row, "ExitCode:%" PRId64, kinf__field_int(terminated, "exitCode", 0));
}

static void set_initializing(struct kinf__row *row, const struct pod *pod)
{
    struct kinf__json_value terminated;

    if (kinf__field(pod->init, "state.terminated", &terminated)) {
        set_termination(row, "Init:", terminated);
    } else if (kinf__field_has_text(pod->init, "state.waiting.reason") &&
               !kinf__field_is(pod->init, "state.waiting.reason", "PodInitializing")) {
        set(row, "Init:");
        kinf__row_append_field(row, pod->init, "state.waiting.reason");
    } else {
        set(row, "Init:");
        kinf__row_printf(row, "%zu/%zu", pod->init_at,
                         kinf__field_count(pod->object, "spec.initContainers"));
    }
}

/* The first container that has something to say. Returns whether another one runs and is ready. */
static bool set_by_containers(struct kinf__row *row, const struct pod *pod)
{
    struct kinf__json_iter iter;
    struct kinf__json_value status, state;
    struct kinf_str key;
    bool has_running = false, is_said = false;

    kinf__field_each(&iter, pod->object, "status.containerStatuses");
    while (kinf__field_next(&iter, &key, &status)) {
        if (kinf__field_has_text(status, "state.waiting.reason")) {
            if (!is_said) {
                set(row, "");
                kinf__row_append_field(row, status, "state.waiting.reason");
            }
            is_said = true;
        } else if (kinf__field(status, "state.terminated", &state)) {
            if (!is_said)
                set_termination(row, "", state);
            is_said = true;
        } else if (kinf__field_is_true(status, "ready") &&
                   kinf__field(status, "state.running", &state)) {
            has_running = true;
        }
    }
    return has_running;
}

static bool text_is(const struct kinf__row *row, const char *text)
{
    return kinf_str_equal(kinf__buffer_str(&row->text), kinf_str_from(text));
}

static void set_deleted(struct kinf__row *row, const struct pod *pod)
{
    if (!kinf__field_has_text(pod->object, "metadata.deletionTimestamp"))
        return;
    if (kinf__field_is(pod->object, "status.reason", "NodeLost"))
        set(row, "Unknown");
    else if (!kinf__field_is(pod->object, "status.phase", "Succeeded") &&
             !kinf__field_is(pod->object, "status.phase", "Failed"))
        set(row, "Terminating");
}

static void cell_status(struct kinf__row *row, const struct pod *pod)
{
    struct kinf__json_value condition;

    kinf__row_append_field(row, pod->object,
                           kinf__field_has_text(pod->object, "status.reason") ? "status.reason"
                                                                              : "status.phase");
    if (kinf__field_condition(pod->object, "PodScheduled", &condition) &&
        kinf__field_is(condition, "reason", "SchedulingGated"))
        set(row, "SchedulingGated");
    if (pod->is_initializing)
        set_initializing(row, pod);
    if (is_initialized(pod) && set_by_containers(row, pod) && text_is(row, "Completed"))
        set(row, kinf__field_condition(pod->object, "Ready", &condition) &&
                         kinf__field_is(condition, "status", "True")
                     ? "Running"
                     : "NotReady");
    set_deleted(row, pod);
    kinf__cell_text(row, "");
}

/* --- the other columns --- */

static void cell_restarts(struct kinf__row *row, const struct pod *pod)
{
    kinf__row_printf(row, "%" PRId64, pod->n_restarts);
    if (pod->n_restarts > 0 && pod->last_restart_s != INT64_MIN) {
        kinf__row_printf(row, " (");
        kinf__row_append_duration(row, row->now_s - pod->last_restart_s);
        kinf__row_printf(row, " ago)");
    }
    kinf__cell_text(row, "");
}

static void cell_gates(struct kinf__row *row)
{
    size_t n_open = 0, n = 0;
    struct kinf__json_iter iter;
    struct kinf__json_value gate, other;
    struct kinf_str key;

    kinf__field_each(&iter, row->object, "spec.readinessGates");
    for (; kinf__field_next(&iter, &key, &gate); n++) {
        struct kinf__json_iter conditions;
        struct kinf__json_value wanted, type;

        kinf__field_each(&conditions, row->object, "status.conditions");
        while (kinf__field(gate, "conditionType", &wanted) &&
               kinf__field_next(&conditions, &key, &other)) {
            if (kinf__field(other, "type", &type) && kinf_str_equal(type.raw, wanted.raw)) {
                n_open += kinf__field_is(other, "status", "True");
                break;
            }
        }
    }
    if (n != 0)
        kinf__row_printf(row, "%zu/%zu", n_open, n);
    kinf__cell_text(row, "<none>");
}

void kinf__table_pod(struct kinf__row *row)
{
    struct pod pod = { .object = row->object, .last_restart_s = INT64_MIN };

    count_containers(&pod);
    read_init_containers(&pod);
    read_containers(&pod);
    kinf__row_printf(row, "%zu/%zu", pod.n_ready, pod.n_containers);
    kinf__cell_text(row, "");
    cell_status(row, &pod);
    cell_restarts(row, &pod);
    kinf__cell_age(row);
    kinf__cell_string(row, "status.podIP", "<none>");
    kinf__cell_string(row, "spec.nodeName", "<none>");
    kinf__cell_string(row, "status.nominatedNodeName", "<none>");
    cell_gates(row);
}
