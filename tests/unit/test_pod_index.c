/*
 * The index of pods: owners, nodes and states, whatever order changes come in.
 */
#include "workloads/pod_index.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/test.h"

#define N_PODS   12
#define N_OWNERS 4
#define N_HOSTS  3

/* What a pod is said to be; the index is asked whether it thinks so, too. */
struct twin {
    bool is_there;
    int owner, host; /* negative: none */
    const char *phase;
    bool is_ready, is_terminating;
};

static const struct kinf_type *type_of(const char *kind, const char *resource, bool namespaced)
{
    const struct kinf_type *type;

    assert_int_equal(kinf_type_intern("", "v1", kind, resource, namespaced, &type, NULL), 0);
    return type;
}

static const struct kinf_object *make_pod(size_t number, const struct twin *twin)
{
    const struct kinf_object *object;
    char text[1024], owner[200] = "", node[64] = "";

    if (twin->owner >= 0)
        snprintf(owner, sizeof owner,
                 ",\"ownerReferences\":[{\"kind\":\"Other\",\"name\":\"x\",\"uid\":\"none\"},{"
                 "\"kind\":\"ReplicaSet\",\"name\":\"o%d\",\"uid\":\"u%d\",\"controller\":true}]",
                 twin->owner, twin->owner);
    if (twin->host >= 0)
        snprintf(node, sizeof node, "\"nodeName\":\"h%d\"", twin->host);
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"p%zu\",\"namespace\":\"ns\"%s%s},\"spec\":{%s},\"status\":{"
             "\"phase\":\"%s\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
             number, owner,
             twin->is_terminating ? ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"" : "", node,
             twin->phase, twin->is_ready ? "True" : "False");
    assert_int_equal(
        kinf_object_new_from_json(type_of("Pod", "pods", true), text, strlen(text), &object, NULL),
        0);
    return object;
}

static void draw(struct test_random *random, struct twin *twin)
{
    static const char *const phases[] = { "Pending", "Running", "Succeeded", "Failed" };

    twin->is_there = test_random_below(random, 4) != 0;
    twin->owner = (int)test_random_below(random, N_OWNERS + 1) - 1;
    twin->host = (int)test_random_below(random, N_HOSTS + 1) - 1;
    twin->phase = phases[test_random_below(random, 4)];
    twin->is_ready = test_random_below(random, 2) == 0;
    twin->is_terminating = test_random_below(random, 4) == 0;
}

static void expect_pod(const struct kinf__pod_index *index, size_t number, const struct twin *twin)
{
    char key[32], name[32];
    const struct kinf__member *pod;

    snprintf(key, sizeof key, "ns/p%zu", number);
    pod = kinf__pod_index_find(index, KINF__WORK_POD, key);
    assert_int_equal(pod != NULL, twin->is_there);
    if (pod == NULL)
        return;
    snprintf(name, sizeof name, "u%d", twin->owner);
    assert_string_equal(pod->owner != NULL ? pod->owner->uid : "u-1", name);
    snprintf(name, sizeof name, "ns/o%d", twin->owner);
    assert_string_equal(pod->owner != NULL ? pod->owner->key : "ns/o-1", name);
    snprintf(name, sizeof name, "h%d", twin->host);
    assert_string_equal(pod->host != NULL ? pod->host->name : "h-1", name);
    assert_int_equal(pod->is_terminating, twin->is_terminating);
    assert_int_equal(pod->is_running, strcmp(twin->phase, "Running") == 0);
    assert_int_equal(pod->is_succeeded, strcmp(twin->phase, "Succeeded") == 0);
    assert_int_equal(pod->is_ready, twin->is_ready && pod->is_running);
}

static void set_pod(struct kinf__pod_index *index, size_t number, const struct twin *twin)
{
    const struct kinf_object *object kinf_auto_object =
        twin->is_there ? make_pod(number, twin) : NULL;
    struct kinf__member_change change;
    char key[32];

    snprintf(key, sizeof key, "ns/p%zu", number);
    assert_int_equal(kinf__pod_index_set(index, KINF__WORK_POD, key, object, &change), 0);
    assert_int_equal(change.member != NULL, twin->is_there);
}

static void any_sequence_of_changes_is_kept(void **state)
{
    struct test_random random = test_random_init("pod index");
    struct twin twins[N_PODS] = { { .is_there = false } };
    struct kinf__pod_index index;

    (void)state;
    kinf__pod_index_init(&index);
    for (size_t round = test_rounds(4000); round > 0; round--) {
        size_t number = test_random_below(&random, N_PODS);

        draw(&random, &twins[number]);
        set_pod(&index, number, &twins[number]);
        assert_true(kinf__pod_index_check(&index));
        for (size_t i = 0; i < N_PODS; i++)
            expect_pod(&index, i, &twins[i]);
    }
    set_pod(&index, 0, &(struct twin){ true, 1, 2, "Running", true, false });
    kinf__pod_index_find_host(&index, "h2")->n_pods++;
    assert_false(kinf__pod_index_check(&index));
    kinf__pod_index_find_host(&index, "h2")->n_pods--;
    kinf__pod_index_release(&index);
}

static void owners_hear_only_of_what_concerns_them(void **state)
{
    struct twin twin = { true, 1, 2, "Running", true, false };
    const struct kinf_object *object;
    struct kinf__member_change change;
    struct kinf__pod_index index;

    (void)state;
    kinf__pod_index_init(&index);
    object = make_pod(0, &twin);
    assert_int_equal(kinf__pod_index_set(&index, KINF__WORK_POD, "ns/p0", object, &change), 0);
    assert_int_equal(change.owner_kind, KINF__WORK_REPLICASET);
    assert_string_equal(change.owner_key, "ns/o1");
    assert_int_equal(kinf__pod_index_set(&index, KINF__WORK_POD, "ns/p0", object, &change), 0);
    assert_string_equal(change.owner_key, "");
    kinf_object_unref(object);
    twin.owner = 2;
    object = make_pod(0, &twin);
    assert_int_equal(kinf__pod_index_set(&index, KINF__WORK_POD, "ns/p0", object, &change), 0);
    assert_string_equal(change.owner_key, "ns/o2");
    assert_string_equal(change.old_owner_key, "ns/o1");
    kinf_object_unref(object);
    assert_int_equal(kinf__pod_index_set(&index, KINF__WORK_POD, "ns/p0", NULL, &change), 0);
    assert_string_equal(change.old_owner_key, "ns/o2");
    kinf__pod_index_release(&index);
}

static const struct kinf_object *make_node(const char *rest)
{
    const struct kinf_object *object;
    char text[512];

    snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"h1\"}%s}", rest);
    assert_int_equal(kinf_object_new_from_json(type_of("Node", "nodes", false), text, strlen(text),
                                               &object, NULL),
                     0);
    return object;
}

#define READY                                                                                      \
    ",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"addresses\":[{"      \
    "\"type\":\"InternalIP\",\"address\":\"10.0.0.1\"}]}"
#define NOT_READY ",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}"

static void nodes_take_pods_when_they_are_ready_and_free(void **state)
{
    static const struct {
        const char *rest;
        bool takes_pods, needs_kubelet;
    } table[] = {
        { "", false, true },
        { READY, true, false },
        { NOT_READY, false, false },
        { ",\"spec\":{\"unschedulable\":true}" READY, false, false },
        { ",\"spec\":{\"taints\":[{\"key\":\"a\",\"effect\":\"NoSchedule\"}]}" READY, false,
          false },
        { ",\"spec\":{\"taints\":[{\"key\":\"a\",\"effect\":\"PreferNoSchedule\"}]}" READY, true,
          false },
        { ",\"spec\":{\"taints\":[{\"key\":\"node.kubernetes.io/not-ready\",\"effect\":"
          "\"NoSchedule\"}]}" READY,
          false, true },
    };
    struct kinf__pod_index index;
    struct kinf__host *host;

    (void)state;
    kinf__pod_index_init(&index);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct kinf_object *node kinf_auto_object = make_node(table[i].rest);

        assert_int_equal(kinf__pod_index_set_host(&index, "h1", node, &host), 0);
        assert_int_equal(host->takes_pods, table[i].takes_pods);
        assert_int_equal(host->needs_kubelet, table[i].needs_kubelet);
    }
    assert_int_equal(kinf__pod_index_set_host(&index, "h1", NULL, &host), 0);
    assert_null(host);
    assert_true(kinf__pod_index_check(&index));
    kinf__pod_index_release(&index);
}

static void want_of_memory_leaves_nothing_behind(void **state)
{
    const struct twin twin = { true, 1, 2, "Running", true, false };
    const struct kinf_object *object = make_pod(0, &twin);
    struct kinf__member_change change;
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        struct kinf__pod_index index;
        int failed;

        kinf__pod_index_init(&index);
        test_fail_allocation(n);
        failed = kinf__pod_index_set(&index, KINF__WORK_POD, "ns/p0", object, &change);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
        kinf__pod_index_release(&index);
    }
    kinf_object_unref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_sequence_of_changes_is_kept),
        cmocka_unit_test(owners_hear_only_of_what_concerns_them),
        cmocka_unit_test(nodes_take_pods_when_they_are_ready_and_free),
        cmocka_unit_test(want_of_memory_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
