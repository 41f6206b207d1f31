/*
 * Churn: that it comes at the rate that was asked for, and what it consists of.
 */
#include "workloads/churn.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "unit/test.h"
#include "unit/workloads_fixture.h"

#define WINDOW_MS   10000
#define SLACK_PER_S 0.2 /* a pod's end is two changes at once */

/* Counts what is noted in the namespace. */
struct counter {
    struct kinf__controller controller;
    size_t n_changes, n_created, n_removed, n_sets;
};

static void note(struct kinf__controller *controller, struct kinf__resource *resource,
                 const struct kinf_object *old, const struct kinf_object *object)
{
    struct counter *counter = KINF__CONTAINER_OF(controller, struct counter, controller);

    if (!kinf_str_equal(kinf_object_namespace(object != NULL ? object : old), KINF_STR("churn")))
        return;
    counter->n_changes++;
    counter->n_created += old == NULL && strcmp(resource->name, "pods") == 0;
    counter->n_removed += object == NULL && strcmp(resource->name, "pods") == 0;
    counter->n_sets += old == NULL && strcmp(resource->name, "replicasets") == 0;
}

static int64_t work(struct kinf__controller *controller, struct kinf__sim *sim, int64_t now_ms)
{
    (void)controller;
    (void)sim;
    (void)now_ms;
    return KINF__NEVER_MS;
}

static void free_counter(struct kinf__controller *controller)
{
    free(KINF__CONTAINER_OF(controller, struct counter, controller));
}

static struct counter *add_counter(struct worked *worked)
{
    static const struct kinf__controller_ops ops = { note, work, free_counter };
    struct counter *counter = kinf__controller_new(sizeof *counter, &ops, NULL);

    assert_non_null(counter);
    worked_add(worked, &counter->controller);
    return counter;
}

static struct counter *init_churn(struct worked *worked, const char *rate)
{
    struct kinf_error err = KINF_ERROR_INIT;

    worked_init_workloads(worked, 13);
    worked_create(worked, "", "nodes", "{'metadata':{'name':'n1'}}");
    worked_create(worked, "", "nodes", "{'metadata':{'name':'n2'}}");
    if (kinf__churn_add(worked->sim, rate, &worked->controllers[worked->n_controllers++], &err) < 0)
        fail_msg("%s", err.message);
    return add_counter(worked);
}

static void expect_rate(const char *rate, double per_s, size_t n_windows)
{
    struct worked worked;
    struct counter *counter = init_churn(&worked, rate);

    /* Its beginning is its own. */
    worked_run(&worked, WINDOW_MS);
    for (size_t i = 0; i < n_windows; i++) {
        double n_before = (double)counter->n_changes, n;

        worked_run(&worked, WINDOW_MS);
        n = ((double)counter->n_changes - n_before) / (WINDOW_MS / 1000.0);
        if (n < per_s * 0.8 - SLACK_PER_S || n > per_s * 1.2 + SLACK_PER_S)
            fail_msg("%s: %.1f/s in ten seconds", rate, n);
    }
    if (per_s >= 50) {
        assert_true(counter->n_removed > 3);
        assert_true(counter->n_created >= counter->n_removed);
    }
    if (per_s >= 40)
        assert_true(counter->n_sets > 1);
    worked_release(&worked);
}

static void rates_are_kept_over_ten_seconds(void **state)
{
    (void)state;
    expect_rate("0.5/s", 0.5, 20);
    expect_rate("3/s", 3, 20);
    expect_rate("20/s", 20, 12);
    expect_rate("50/s", 50, 6);
    expect_rate("1000/s", 1000, test_rounds(4));
}

static void what_is_no_rate_is_refused(void **state)
{
    static const char *const texts[] = { "",      "50",    "/s",    "-1/s",     "0/s",
                                         "1/min", "nan/s", "inf/s", "100001/s", "5/sx" };
    struct worked worked;

    (void)state;
    worked_init(&worked, 1);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(kinf__churn_add(worked.sim, texts[i], NULL, &err), KINF_ERR_CONFIG);
        assert_non_null(strstr(err.message, "is no rate of changes"));
    }
    worked_release(&worked);
}

static bool is_of_churn(const struct kinf_object *pod)
{
    char text[64];

    return kinf_object_get_string(pod, "spec.schedulerName", text, sizeof text) == 0 &&
           strcmp(text, "kinformer-sim-churn") == 0;
}

/* The first of its pods that is running; "": none. */
static void find_running(struct worked *worked, char key[2 * KINF_NAME_MAX])
{
    kinf_auto_object_list struct kinf_object_list pods = worked_list(worked, "", "pods", "churn");
    char text[64];

    key[0] = '\0';
    for (size_t i = 0; i < pods.n_items && key[0] == '\0'; i++) {
        if (is_of_churn(pods.items[i]) &&
            kinf_object_get_string(pods.items[i], "status.phase", text, sizeof text) == 0 &&
            strcmp(text, "Running") == 0 &&
            kinf_object_get_string(pods.items[i], "metadata.deletionTimestamp", text, sizeof text) <
                0)
            snprintf(key, 2 * KINF_NAME_MAX, "%s", kinf_object_key(pods.items[i]));
    }
}

static void what_others_write_is_left_to_them(void **state)
{
    char key[2 * KINF_NAME_MAX], version[32];
    struct worked worked;

    (void)state;
    init_churn(&worked, "10/s");
    worked_run(&worked, 3 * WINDOW_MS);
    find_running(&worked, key);
    assert_string_not_equal(key, "");
    worked_merge(&worked, "", "pods", key, "{'metadata':{'labels':{'mine':'yes'}}}");
    snprintf(version, sizeof version, "%s",
             worked_text(&worked, "", "pods", key, "metadata.resourceVersion"));
    worked_run(&worked, 3 * WINDOW_MS);
    assert_string_equal(worked_text(&worked, "", "pods", key, "metadata.resourceVersion"), version);
    worked_delete(&worked, "", "pods", key);
    worked_run(&worked, WINDOW_MS);
    assert_string_equal(worked_text(&worked, "", "pods", key, "metadata.uid"), "");
    worked_release(&worked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_kept_over_ten_seconds),
        cmocka_unit_test(what_is_no_rate_is_refused),
        cmocka_unit_test(what_others_write_is_left_to_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
