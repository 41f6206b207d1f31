/*
 * Pods. The status column is what the containers say, the init containers first, and what is being
 * deleted last: each step overrides the ones before it.
 */
#include "table/rules.h"

#include <inttypes.h>
#include <string.h>

#define ROW_COMPLETED(reason, message)                                                             \
    "[{\"type\":\"Completed\",\"status\":\"True\",\"reason\":\"" reason                            \
    "\",\"message\":\"" message "\"}]"

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

/* An init container that goes on running. `next` walks over the containers beside their statuses:
 * kubelet sorts these, and only others are looked for. */
static bool is_sidecar(struct kinf__json_value object, struct kinf__items *next,
                       struct kinf__json_value status)
{
    struct kinf__json_value name, other, container;

    if (!kinf__field(status, "name", &name))
        return false;
    if (kinf__items_next(next) && kinf__field(next->value, "name", &other) &&
        kinf_str_equal(other.raw, name.raw))
        container = next->value;
    else if (!kinf__field_find_same(object, "spec.initContainers", "name", name, &container))
        return false;
    return kinf__field_is(container, "restartPolicy", "Always");
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

static bool is_initialized(const struct pod *pod)
{
    return !pod->is_initializing || kinf__field_condition_is_true(pod->object, "Initialized");
}

static void read_init_containers(struct pod *pod)
{
    int64_t n_sidecar_restarts = 0, last_sidecar_s = INT64_MIN;
    struct kinf__items items = kinf__field_items(pod->object, "status.initContainerStatuses"),
                       container = kinf__field_items(pod->object, "spec.initContainers");

    for (size_t i = 0; !pod->is_initializing && kinf__items_next(&items); i++) {
        struct kinf__json_value status = items.value;
        bool sidecar = is_sidecar(pod->object, &container, status);

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
    if (is_initialized(pod)) {
        pod->n_restarts = n_sidecar_restarts;
        pod->last_restart_s = last_sidecar_s;
    }
}

static bool is_running(struct kinf__json_value status)
{
    struct kinf__json_value running;

    return kinf__field_is_true(status, "ready") && kinf__field(status, "state.running", &running);
}

static void read_containers(struct pod *pod)
{
    struct kinf__items status = kinf__field_items(pod->object, "status.containerStatuses");

    while (is_initialized(pod) && kinf__items_next(&status)) {
        count_restarts(pod, status.value);
        if (is_running(status.value))
            pod->n_ready++;
    }
}

static void count_containers(struct pod *pod)
{
    pod->n_containers = kinf__field_count(pod->object, "spec.containers");
    for (struct kinf__items container = kinf__field_items(pod->object, "spec.initContainers");
         kinf__items_next(&container);) {
        if (kinf__field_is(container.value, "restartPolicy", "Always"))
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

static bool text_is(const struct kinf__row *row, const char *text)
{
    return kinf_str_equal(kinf__buffer_str(&row->text), kinf_str_from(text));
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

/* What the containers say together. */
struct verdict {
    bool is_said;                   /* in the row's text: by the first that has something to say */
    bool has_running;               /* another one runs and is ready */
    struct kinf__json_value failed; /* the first that ended badly; null: none */
};

static void set_by_container(struct kinf__row *row, struct kinf__json_value status,
                             struct verdict *verdict)
{
    struct kinf__json_value ended;

    if (kinf__field_has_text(status, "state.waiting.reason")) {
        if (!verdict->is_said) {
            set(row, "");
            kinf__row_append_field(row, status, "state.waiting.reason");
        }
        verdict->is_said = true;
    } else if (kinf__field(status, "state.terminated", &ended)) {
        if (!verdict->is_said)
            set_termination(row, "", ended);
        verdict->is_said = true;
        if (verdict->failed.type == KINF__JSON_NULL && kinf__field_int(ended, "exitCode", 0) != 0)
            verdict->failed = ended;
    } else if (is_running(status)) {
        verdict->has_running = true;
    }
}

/* A pod is not completed as long as one of its containers runs, or if one has failed. */
static void set_by_containers(struct kinf__row *row, const struct pod *pod)
{
    struct verdict verdict = { .failed = { .type = KINF__JSON_NULL } };

    for (struct kinf__items status = kinf__field_items(pod->object, "status.containerStatuses");
         kinf__items_next(&status);)
        set_by_container(row, status.value, &verdict);
    if (!text_is(row, "Completed"))
        return;
    if (verdict.has_running && kinf__field_condition_is_true(pod->object, "Ready"))
        set(row, "Running");
    else if (verdict.failed.type != KINF__JSON_NULL)
        set_termination(row, "", verdict.failed);
    else if (verdict.has_running)
        set(row, "NotReady");
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
    if (is_initialized(pod))
        set_by_containers(row, pod);
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

void kinf__cells_pod(struct kinf__row *row)
{
    struct pod pod = { .object = row->object, .last_restart_s = INT64_MIN };

    if (kinf__field_is(row->object, "status.phase", "Succeeded"))
        row->conditions = ROW_COMPLETED("Succeeded", "The pod has completed successfully.");
    else if (kinf__field_is(row->object, "status.phase", "Failed"))
        row->conditions = ROW_COMPLETED("Failed", "The pod failed.");
    count_containers(&pod);
    read_init_containers(&pod);
    read_containers(&pod);
    kinf__row_printf(row, "%zu/%zu", pod.n_ready, pod.n_containers);
    kinf__cell_text(row, "");
    cell_status(row, &pod);
    cell_restarts(row, &pod);
}

void kinf__cell_gates(struct kinf__row *row)
{
    size_t n_open = 0, n = 0;
    struct kinf__items gate = kinf__field_items(row->object, "spec.readinessGates");
    struct kinf__json_value type, condition;

    for (; kinf__items_next(&gate); n++)
        n_open +=
            kinf__field(gate.value, "conditionType", &type) &&
            kinf__field_find_same(row->object, "status.conditions", "type", type, &condition) &&
            kinf__field_is(condition, "status", "True");
    if (n != 0)
        kinf__row_printf(row, "%zu/%zu", n_open, n);
    kinf__cell_text(row, "<none>");
}
